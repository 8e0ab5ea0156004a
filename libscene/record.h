// What a run leaves on disk. Frames are written as they are made; the .pvd and the CSV files are written anew from time
// to time and at the end, each under a temporary name first, so that at any moment all files on disk are complete.
#ifndef LIMBER_SCENE_RECORD_H
#define LIMBER_SCENE_RECORD_H

#include "libscene/scene.h"

typedef struct scene_record scene_record;

// Makes the folder and removes the .pvd of an earlier run. What the user should know is added to *notes (class.h).
fem_status scene_record_create(scene_record **record, const scene *s, const char *folder, char **notes);
// Writes the state as the next frame.
fem_status scene_record_frame(scene_record *record, double time, const double *u, const double *v);
// Adds a row to the CSV files.
fem_status scene_record_row(scene_record *record, double time, const double *u, const solver_energies *energies);
// Brings .pvd and CSV files up to date. `last` also removes the frames of a longer earlier run.
fem_status scene_record_sync(scene_record *record, bool last);
int        scene_record_frames(const scene_record *record);
double     scene_record_seconds(const scene_record *record); // spent on output
void       scene_record_destroy(scene_record *record);

// Mean displacement of each probe, 3 per probe.
void scene_probe_values(const scene *s, const double *u, double *values);

#endif

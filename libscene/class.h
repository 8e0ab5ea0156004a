// A class: what is computed once for a part, kept on disk, and used by all its instances.
#ifndef LIMBER_SCENE_CLASS_H
#define LIMBER_SCENE_CLASS_H

#include "libscene/scene.h"

typedef struct scene_class {
    modes_basis              basis;
    cubature_polynomial      polynomial; // SCENE_POLYNOMIAL
    double                  *K0;         // SCENE_LINEAR: r x r
    cubature_linear          linear;     // of K0
    cubature_full           *full;       // SCENE_ALL_ELEMENTS
    cubature_rule            rule;       // SCENE_CUBATURE
    cubature_training_report training;   // likewise
    cubature_forces          forces;     // of whichever of them it is
    double                  *M;          // r x r; NULL = identity
    bool                     cached;     // read from the cache
    double                   seconds_modes, seconds_forces;
} scene_class;

// `body` is the part's and must outlive the class. `cache` is a folder, which is made, or NULL. What the user should
// know of a file there that was not what it should be is added to *notes, lines of text that the caller frees.
fem_status scene_class_create(scene_class **class, const scene_part *part, const fem_body *body, fem_mass_kind mass,
                              const char *cache, const fem_progress *progress, char **notes);
void       scene_class_destroy(scene_class *class);

// ---- cubature (class_cubature.c) -----------------------------------------------------------------------------------

fem_hash scene_cubature_hash(fem_hash hash, const cubature_training_options *options);
// Trains the rule of a class whose basis is made. An interrupted training goes on from `checkpoint` (may be NULL).
fem_status scene_cubature_train(scene_class *class, const scene_part *part, const fem_body *body, const fem_sparse *K,
                                const fem_sparse *M, const char *checkpoint, fem_hash key,
                                const fem_progress *progress);
// The arrays of a rule for the store, at most SCENE_CUBATURE_ITEMS; and back, elements and weights only.
enum { SCENE_CUBATURE_ITEMS = 4 };
int        scene_cubature_items(const scene_class *class, int size[3], double numbers[6], fem_store_item *items);
fem_status scene_cubature_read(scene_class *class, const scene_part *part, const fem_store *store, const char *path);
// Completes a rule that was read.
fem_status scene_cubature_finish(scene_class *class, const fem_body *body);
// What the user should know of a training, as one line, or NULL. Caller frees.
fem_status scene_cubature_note(const scene_class *class, const scene_part *part, char **text);
// A .vtu of the chosen elements with their weights.
fem_status scene_cubature_write(const scene_class *class, const fem_mesh *mesh, const char *path);

#endif

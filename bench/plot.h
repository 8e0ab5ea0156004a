// Figures of the benchmarks as SVG: lines over linear or logarithmic axes, bars, matrices, and deformed bodies.
#ifndef LIMBER_BENCH_PLOT_H
#define LIMBER_BENCH_PLOT_H

#include "libfem/fem.h"

typedef struct plot plot;

// All of these end the program with a message when memory or the disk fails: a benchmark has nobody to tell.
plot *plot_create(const char *title, const char *x_label, const char *y_label, bool log_x, bool log_y);
void  plot_series(plot *figure, const char *name, int count, const double *x, const double *y); // line with markers
void  plot_bars(plot *figure, const char *name, int count, const double *x, const double *y); // histogram, equal widths
// Makes the folders of the path, writes the figure and beside it its numbers as .csv, then destroys it.
void plot_write(plot *figure, const char *path);

// Square matrices (n x n each, one after the other) side by side, every entry a cell whose darkness is the logarithm of
// its size: white at `least` and below, black at 1 and above.
void plot_matrices(const char *title, int count, const char *const *names, int n, const double *values, double least,
                   const char *path);

// The surface of a mesh, displaced by u (3 per vertex, or NULL), seen along `view` with `up` upwards; painter's
// algorithm and one light. Several bodies, each with its colour ("#7aa2c4"), stand in one picture in world coordinates.
typedef struct picture picture;

picture *picture_create(const char *title, const double view[3], const double up[3]);
void     picture_body(picture *scene, const fem_mesh *mesh, const double *u, const char *colour);
void     picture_write(picture *scene, const char *path);

#endif

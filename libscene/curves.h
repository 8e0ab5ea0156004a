// Curves over a common axis as a small SVG picture.
#ifndef LIMBER_SCENE_CURVES_H
#define LIMBER_SCENE_CURVES_H

#include "libfem/fem.h"

typedef struct scene_curve {
    const char   *name;
    const double *y; // count; points that are not finite are left out
} scene_curve;

// x ascending. The y axis goes from `low` to `high`; values outside are drawn at its ends.
fem_status scene_curves_write(const char *path, const char *title, const char *x_label, const char *y_label, int count,
                              const double *x, double low, double high, int curves, const scene_curve *list);

#endif

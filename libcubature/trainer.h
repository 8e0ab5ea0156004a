// What the files of training share: the training matrix, column by column, never as a whole.
#ifndef LIMBER_TRAINER_H
#define LIMBER_TRAINER_H

#include "libcubature/points.h"

// Rows of the training matrix: mode l at pose t is row l x stride + t, scaled by 1 / |f_t|, and when
// balanced so that the right-hand side of each mode has length 1; poses are padded to a multiple of eight, with rows of
// zeros. The rows of one mode are neighbours, so that its problem is a part of a column.
typedef struct trainer {
    const fem_body         *body;
    int                     r, poses; // poses that have a force
    size_t                  stride, rows;
    double                 *Ut;         // n x r
    double                 *q;          // blocks of eight poses: r x 8 each
    double                 *scale;      // stride
    double                 *mode_scale; // r: of the rows of a mode
    double                 *b;          // rows: the right-hand side
    double                  b_norm;     // = sqrt(poses)
    fem_material_constants *constants;
    point_set              *sets;         // per worker: room for a few elements
    int                     set_elements; // how many
    int                     dropped;
} trainer;

// Poses without force, or with a force that is not finite, are left out. FEM_BAD_INPUT when none is left.
fem_status trainer_create(trainer *t, const fem_body *body, int r, const double *U, const cubature_poses *poses,
                          bool balanced);
void       trainer_destroy(trainer *t);
// A (rows x count) = the columns of `elements`, on all threads.
void trainer_columns(const trainer *t, int count, const int *elements, double *A);
// The same for at most set_elements of them, by one worker.
void trainer_some_columns(const trainer *t, int worker, int count, const int *elements, double *A);

// Poses around `centre` (NULL: 0) with standard deviations sigma (r), each times spread^u, u uniform in
// (0, 1); numbers `first` on of the sequence of the seed.
fem_status poses_normal(cubature_poses *poses, const fem_body *body, int r, const double *U, const double *centre,
                        const double *sigma, double spread, unsigned seed, int first, int count, int *inverted);

// q (r x count) = answers to random loads of standard deviations amplitude x sqrt(rayleigh) (poses_loaded.c).
fem_status poses_loaded(double *q, const fem_body *body, int r, const double *U, const double *rayleigh,
                        double amplitude, unsigned seed, int count, const fem_progress *progress);

// Random numbers that depend on their place only.
double random_uniform(unsigned seed, unsigned long index); // (0, 1)
double random_normal(unsigned seed, unsigned long index);

#endif

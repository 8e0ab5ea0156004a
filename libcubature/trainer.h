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

// Halves what inverts an element (smallest <= 0), as often as needed, and evaluates it again; *inverted of them.
fem_status poses_shrink_inverted(cubature_poses *poses, const fem_body *body, const double *U, double *smallest,
                                 int *inverted);
double     largest_displacement(int n, const double *u);

// Poses that answer random loads (poses_loaded.c).
typedef struct loading {
    const fem_body *body;
    int             r;
    const double   *U;
    cubature_rule   sample; // elements that stand for all
    double         *K0;     // r x r
    double         *L;      // of K0 = L L^T, lower
    double          amplitude;
} loading;
// With an amplitude so that the median of the largest displacement is `displacement` (metres).
fem_status loading_create(loading *l, const fem_body *body, int r, const double *U, double displacement, unsigned seed);
void       loading_destroy(loading *l);
void       loading_draw(const loading *l, unsigned seed, int pose, double *p); // the load of a pose
double     loading_size(const loading *l, const double *force);                // |L^-1 force|
fem_status loading_poses(const loading *l, unsigned seed, int count, const fem_progress *progress,
                         cubature_poses *poses, int *inverted);
// Of each element the volume that is nearest to it, of its material where it can be, over its own (sample.c).
fem_status sample_shares(const fem_body *body, int count, const int *elements, double *shares);

// Random numbers that depend on their place only.
double random_uniform(unsigned seed, unsigned long index); // (0, 1)
double random_normal(unsigned seed, unsigned long index);

#endif

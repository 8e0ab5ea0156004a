// What the files of training share: the training matrix, column by column, never as a whole.
#ifndef LIMBER_TRAINER_H
#define LIMBER_TRAINER_H

#include "libcubature/points.h"

// A body and a basis, ready for forces in reduced form: made once for all poses and columns.
typedef struct reduced_body {
    const fem_body         *body;
    int                     r;
    const double           *U;  // n x r, the caller's
    double                 *Ut; // its rows (points.h)
    fem_material_constants *constants;
    int                     count;  // elements
    int                    *order;  // by material
    double                 *K0;     // r x r: U^T K(0) U
    double                 *modes;  // r x r: its eigenvectors, of unit length
    double                 *values; // r: its eigenvalues, ascending
} reduced_body;
fem_status reduced_body_create(reduced_body *b, const fem_body *body, int r, const double *U);
void       reduced_body_destroy(reduced_body *b);
// Makes K0, modes and values, which are NULL before.
fem_status reduced_body_modes(reduced_body *b);
basis_rows reduced_body_rows(const reduced_body *b);
// f (r x count) = U^T f(U q) on all threads, the sum over the elements in `order`; smallest and halvings (count each,
// may be NULL): det F of the most compressed point, and how often the pose must be halved to stand every point upright
// that it inverts.
fem_status pose_forces(const reduced_body *b, int count, const double *q, double *f, double *smallest, int *halvings);
// Poses eight by eight, r x 8 each; the last block is filled up with zeros.
double *pack_poses(int r, int count, const double *q);
// Room for `elements` elements, for each worker.
fem_status create_sets(point_set **sets, const reduced_body *b, int elements);
void       destroy_sets(point_set *sets);

// Rows of the training matrix: mode l at pose t is row l x stride + t, scaled by 1 / |f_t|, and when
// balanced so that the right-hand side of each mode has length 1; poses are padded to a multiple of eight, with rows of
// zeros. The rows of one mode are neighbours, so that its problem is a part of a column.
// Where the reduced body knows its modes, the rows of a rule of one weight an element are those of the modes, not of
// the columns of U, which may each be something soft and something stiff: balanced, soft modes count by their own
// forces.
typedef struct trainer {
    const reduced_body *reduced;
    reduced_body        turned;   // with the basis of the modes, or empty
    double             *W;        // that basis
    const fem_body     *body;     // its
    int                 r, poses; // poses that have a force
    size_t              stride, rows;
    double             *q;            // blocks of eight poses: r x 8 each
    double             *scale;        // stride
    double             *mode_scale;   // r: of the rows of a mode
    double             *b;            // rows: the right-hand side
    double              b_norm;       // = sqrt(poses)
    point_set          *sets;         // per worker: room for a few elements
    int                 set_elements; // how many
    int                 dropped;
} trainer;

// Whether a mode has a force to be balanced by, of the sum of squares of its shares f_l / |f| over poses. What moves a
// body stiffly, as its modes may where nothing holds it, has none, and rounding must not be made as large as forces.
bool has_force(double squares, int poses);
// Poses without force, or with a force that is not finite, are left out. FEM_BAD_INPUT when none is left.
fem_status trainer_create(trainer *t, const reduced_body *reduced, const cubature_poses *poses, bool balanced,
                          bool modal);
void       trainer_destroy(trainer *t);
// A (rows x count) = the columns of `elements`, on all threads.
void trainer_columns(const trainer *t, int count, const int *elements, double *A);
// The same for at most set_elements of them, by one worker.
void trainer_some_columns(const trainer *t, int worker, int count, const int *elements, double *A);

// Poses around `centre` (NULL: 0) with standard deviations sigma (r), each times spread^u, u uniform in
// (0, 1); numbers `first` on of the sequence of the seed.
fem_status poses_normal(cubature_poses *poses, const reduced_body *b, const double *centre, const double *sigma,
                        double spread, unsigned seed, int first, int count, int *inverted);
fem_status poses_sample(cubature_poses *poses, const reduced_body *b, const double *rayleigh, double amplitude,
                        double spread, unsigned seed, int count, int *inverted); // as cubature_poses_sample

// One pose for each mode with a stiffness, so small that forces are linear: what a rule learns the stiffness at rest
// from.
fem_status poses_small(cubature_poses *poses, const reduced_body *b, double amplitude);

// Halves what inverts an element (smallest <= 0), as often as needed, and evaluates it again; *inverted of them.
fem_status poses_shrink_inverted(cubature_poses *poses, const reduced_body *b, double *smallest, int *halvings,
                                 int *inverted);
double     largest_displacement(int n, const double *u);

// Poses that answer random loads (poses_loaded.c).
typedef struct loading {
    const reduced_body *reduced;
    const double       *springs; // r x r, or NULL
    int                 r;       // its
    reduced_body        crowd;   // a good part of the elements, for rough forces; only `order` is its own
    cubature_rule       sample;  // elements that stand for all
    double             *K0;      // r x r
    double             *L;       // of K0 = L L^T, lower
    double              amplitude;
} loading;
// With an amplitude so that the median of the largest displacement is `displacement` (metres). The reduced body must
// know its modes.
fem_status loading_create(loading *l, const reduced_body *reduced, const double *springs, double displacement,
                          unsigned seed);
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

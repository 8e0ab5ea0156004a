// Training of cubature rules: poses, their exact reduced forces, and the choice of elements and weights by
// nonnegative least squares. Errors, at training poses or at others, are relative to the forces,
//
//   error^2 = mean over poses t of |f~_t - f_t|^2 / |f_t|^2          as in the papers, or
//   error^2 = mean over modes l of sum_t d_lt^2 / sum_t f_lt^2       balanced (d = f~ - f, both over |f_t|).
//
// The forces of soft modes are small beside those of stiff ones: an error of 1% of |f| can be most of what holds a soft
// mode, and it is the soft ones that move. Balanced, each mode counts by its own force (as in P0 eq. 12). Modes are
// those of U^T K(0) U where cubature_train and cubature_refit make a rule of one weight an element, since a column of U
// may be something soft and something stiff; of modal rules and in the parts below they are the columns of U.
//
// A chapter of cubature.h: include that.
#ifndef LIMBER_TRAINING_H
#define LIMBER_TRAINING_H

#include "libcubature/rule.h"

typedef enum cubature_method {
    CUBATURE_EMPIRICAL, // one weight an element: compressed training matrix, greedy choice among elements spread evenly
    CUBATURE_MODAL,     // evenly spread elements, a weight for each reduced coordinate [P0 section 5]
    CUBATURE_OPTIMIZED, // one weight an element: greedy choice among random candidates [An, Kim, James 2008]
} cubature_method;
const char *cubature_method_name(cubature_method method); // "empirical", ...

// Digits ("%.*g") that show an error in percent: two, or all before the point (2930%, not 2.9e+03%).
int cubature_error_digits(double error);

typedef struct cubature_training_options {
    cubature_method method;
    double          error;        // of the fit, at which the choice of elements ends; (0, 1)
    int             elements;     // at most so many; 0: those of the body
    int             poses;        // Gaussian; 0: incremental generation (P0 Algorithm 1). A rule of one weight an
                                  // element then gets one more for each mode, near rest
    int           given_count;    // poses to be used in place of generated ones
    const double *given;          // r x given_count
    double        displacement;   // of generated poses: median of the largest displacement, over the body's diagonal
    double        spread;         // generated poses are multiplied by spread^u, u uniform in (0, 1). 1: as in P0, and
                                  // better in every motion measured so far. (0, 1]
    int           held_out;       // poses that the rule is tested with and not trained with; 0: none
    unsigned      seed;           // of everything random
    int           candidates;     // optimized: elements looked at in a step; empirical: in all. 0: 1000, or as needed
    int           sample;         // incremental: elements of the modal rule that says where poses are missing; 0: 2 r
    double        settled;        // incremental: relative change of the error at which no more poses are made; 0.005
    bool          balanced;       // what `error` means
    bool          loaded;         // poses are answers to random loads: `poses` of them (0: 400), none is recentred
    const double *springs;        // loaded: r x r, symmetric: linear forces besides the elements', as of stitches; NULL
    bool          recentre;       // incremental: new poses around the worst ones
    int           most_poses;     // incremental; 5000
    const char   *checkpoint;     // file that keeps what was done, for an interrupted training to go on; or NULL
    fem_hash      checkpoint_key; // of everything that the training depends on
} cubature_training_options;
cubature_training_options cubature_training_default_options(void); // empirical, 1%, incremental, 100 held out
fem_status                cubature_training_check(const cubature_training_options *options);
// With all that a rule depends on, beside body and basis; given poses and the checkpoint are not read.
fem_hash cubature_training_hash(fem_hash hash, const cubature_training_options *options);
// u^T K u / u^T M u of each mode.
fem_status cubature_rayleigh(const modes_basis *basis, const fem_sparse *K, const fem_sparse *M, double *rayleigh);

typedef struct cubature_training_report {
    int    poses, batches; // used for training; batches of the incremental generation
    int    dropped;        // poses without force, or whose force is not finite
    int    inverted;       // generated poses that inverted an element and were made smaller; given ones that do
    double amplitude;      // c: the standard deviation of q_i is c / sqrt(Q_i)
    int    elements;
    bool   reached;                   // the target error was reached
    bool   resumed;                   // from a checkpoint
    double fit_error, held_out_error; // held_out_error is 0 without held-out poses
    double modal_error;               // P0 eq. 12 with its mean over r, of a modal rule
    double seconds_poses;             // poses and their forces
    double seconds_fit;
} cubature_training_report;

// rayleigh: r numbers u^T K u / u^T M u > 0, the squared frequencies of the modes (not read with given poses only).
// FEM_BAD_INPUT for options out of range, no usable pose, or forces that are all zero. An error that cannot be reached
// is no failure: the best rule that was found is given, and report->reached is false. FEM_STOPPED when the progress
// callback asked for it, with the checkpoint written. report may be NULL.
fem_status cubature_train(cubature_rule *rule, const fem_body *body, int r, const double *U, const double *rayleigh,
                          const cubature_training_options *options, const fem_progress *progress,
                          cubature_training_report *report);

// A rule for a new basis from one of an old basis, at a fraction of the cost: weights by nonnegative least squares for
// its elements and some evenly spread ones, at fewer poses than training makes. Of the options `springs`,
// `displacement`, `seed` and `balanced` are read. The report's held_out_error says whether it does.
fem_status cubature_refit(cubature_rule *rule, const fem_body *body, int r, const double *U, const cubature_rule *old,
                          const cubature_training_options *options, cubature_training_report *report);

// ---- its parts
// --------------------------------------------------------------------------------------------------------

typedef struct cubature_poses {
    int     r, count;
    double *q, *f; // r x count each: coordinates, exact reduced forces
} cubature_poses;
void cubature_poses_destroy(cubature_poses *poses);

// Gaussian poses with standard deviations amplitude / sqrt(rayleigh), none of which inverts an element: those that do
// are halved until they do not (their number in *inverted, may be NULL). Each is multiplied by spread^u, u uniform in
// (0, 1).
fem_status cubature_poses_sample(cubature_poses *poses, const fem_body *body, int r, const double *U,
                                 const double *rayleigh, double amplitude, double spread, unsigned seed, int count,
                                 int *inverted);
// The poses that a training with these options would use; nothing is kept in a checkpoint. report may be NULL.
fem_status cubature_poses_generate(cubature_poses *poses, const fem_body *body, int r, const double *U,
                                   const double *rayleigh, const cubature_training_options *options,
                                   const fem_progress *progress, cubature_training_report *report);
// The amplitude with which the median of the largest displacement is `displacement` (metres).
fem_status cubature_amplitude(const fem_body *body, int r, const double *U, const double *rayleigh, double displacement,
                              unsigned seed, double *amplitude);
// f (r x count) = U^T f(U q), on all threads; smallest (count, may be NULL): det F of the most compressed point.
fem_status cubature_pose_forces(const fem_body *body, int r, const double *U, int count, const double *q, double *f,
                                double *smallest);
// The error of a rule at poses. Poses without force do not count; NAN when none has.
double cubature_rule_error(const cubature_rule *rule, const cubature_poses *poses, bool balanced);

// At most `wanted` elements, evenly spread: of each occupied cell of a grid that nearest to a random point of its
// middle. Ascending.
fem_status cubature_sample_elements(const fem_mesh *mesh, int wanted, int *elements, int *count);

// Elements and weights for given poses with their forces. progress may be NULL.
fem_status cubature_fit(cubature_rule *rule, const fem_body *body, int r, const double *U, const cubature_poses *poses,
                        const cubature_training_options *options, const fem_progress *progress,
                        cubature_training_report *report);
// Weights of given elements (ascending), one each or modal; elements whose weights are all 0 are left out.
fem_status cubature_fit_weights(cubature_rule *rule, const fem_body *body, int r, const double *U,
                                const cubature_poses *poses, int count, const int *elements, bool modal, bool balanced,
                                cubature_training_report *report);

#endif

// Condensing: a small mass-orthonormal basis out of many candidates.
// A chapter of modes.h: include that.
#ifndef LIMBER_MODES_CONDENSE_H
#define LIMBER_MODES_CONDENSE_H

typedef enum modes_condense_method {
    MODES_PCA,              // mass-PCA [Barbic, James 2005, appendix A]
    MODES_RANDOMIZED_PCA,   // its leading part from a random sketch [Halko, Martinsson, Tropp 2011]
    MODES_RANDOM_PROJECTION // sparse random sums [Yang et al. 2015, eq. 10], then orthonormalised
} modes_condense_method;

// The weight of each candidate. Low frequencies weigh more, as [Barbic, James 2005] have it; [Yang et al. 2015] and
// [Mukherjee et al. 2016] print the inverse of what their text says.
typedef enum modes_scaling {
    MODES_SCALE_NONE,      // as they come
    MODES_SCALE_UNIT,      // mass-normalised
    MODES_SCALE_FREQUENCY, // mass-normalised, times omega_1^2 / omega_i^2 for every mode i that it is made of, so
                           // omega_1^2/omega_i^2 for a mode and omega_1^4/(omega_i^2 omega_j^2) for a derivative
    MODES_SCALE_RAYLEIGH   // mass-normalised, times the smallest Rayleigh quotient of all candidates over its own
} modes_scaling;

// The inner product of PCA. Lumped: rows are scaled by the root of the row sums of M, as VegaFEM does.
typedef enum modes_metric { MODES_METRIC_MASS, MODES_METRIC_LUMPED } modes_metric;

typedef struct modes_condense_options {
    modes_condense_method method;
    modes_scaling         scaling;
    modes_metric          metric; // PCA only
    int                   r;      // columns wanted; 0 = as many as `energy` needs (PCA)
    double energy;         // fraction of the candidates' energy (sum of squared norms after scaling) to keep, (0, 1];
                           // with r > 0 it may end before r; 0 = r columns whatever their energy
    int      oversampling; // randomized PCA: columns of the sketch beyond r
    int      power_iterations; // randomized PCA
    unsigned seed;             // of the random numbers
    bool     no_frequencies;   // omega2 of the basis stays 0: it belongs to another K, as of a stitched body
} modes_condense_options;
modes_condense_options modes_condense_default_options(void); // PCA, by frequency, 30 columns

typedef struct modes_condense_report {
    int     candidates, rank; // rank: of the candidates (PCA), of the sketch
    double *singular;         // singular_count: of the scaled candidates, descending; caller frees
    int     singular_count;   // all of them (PCA), those of the sketch (randomized), 0 (random projection)
    double  energy_kept;      // fraction that lies in the span of the basis
    double  orthogonality;    // max |U^T M U - I|, of PCA at most that
    int     polished;         // columns of PCA that rounding had left too far from that at first
    double  seconds_scale, seconds_condense, seconds_finish; // weights, the method itself, orthonormalising and report
} modes_condense_report;

// Bytes that condensing so many candidates of n rows takes beside them. FEM_BAD_INPUT for more than LAPACK can count.
fem_status modes_condense_size(const modes_condense_options *options, int n, int candidates, double *bytes);

// `omega2` are the squared frequencies of the modes that the pool's origins count (order 0 and more), ascending; NULL
// is allowed unless the scaling is by frequency. For a free body they begin with the first that is not zero. In the
// basis U^T M U = I, and omega2[j] is the Rayleigh quotient u_j^T K u_j: columns come in order of importance (PCA), so
// omega2 is not ascending and a column is no vibration mode.
fem_status modes_condense(const modes_problem *problem, const modes_pool *pool, const double *omega2,
                          const modes_condense_options *options, const fem_progress *progress, modes_basis *basis,
                          modes_condense_report *report);

// errors[j] = |x_j - U U^T M x_j| / |x_j| in the mass norm, for each candidate; the basis must be mass-orthonormal.
fem_status modes_pool_errors(const modes_problem *problem, const modes_pool *pool, const modes_basis *basis,
                             double *errors);

// Shapes that keep their distance, in the mass norm or (M is NULL) the plain one.
//   sequence  each that is at least `distance` from the last one kept [Barbic, James 2005, 5.2]; the first from rest
//   farthest  greedy: the one farthest from rest and from all that were taken, until none is `distance` away
// `most` limits their number (0 = none). *chosen (allocated) gets the columns in the order in which they were taken.
typedef enum modes_select_method { MODES_SELECT_SEQUENCE, MODES_SELECT_FARTHEST } modes_select_method;
fem_status modes_select(const fem_sparse *M, int n, int count, const double *X, modes_select_method method,
                        double distance, int most, int **chosen, int *chosen_count);

#endif

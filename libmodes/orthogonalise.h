// Orthogonalisation in the mass inner product, block by block or of a whole matrix, by three methods that share one
// interface so that they can be compared.
#ifndef LIMBER_MODES_ORTHOGONALISE_H
#define LIMBER_MODES_ORTHOGONALISE_H

#include "libmodes/modes.h"

typedef enum modes_gram_schmidt {
    MODES_GRAM_SCHMIDT_BLOCK,   // two passes of block Gram-Schmidt with CholQR: matrix products throughout
    MODES_GRAM_SCHMIDT_MASS,    // modified Gram-Schmidt, vector by vector (P0 eq. 4)
    MODES_GRAM_SCHMIDT_REDUCED, // modified Gram-Schmidt with inner products over a sample of nodes (P0 Algorithm 2)
} modes_gram_schmidt;

typedef struct modes_orthogonalise_options {
    modes_gram_schmidt method;
    int                passes;     // 0: what the method needs, that is 2, but 1 for modified Gram-Schmidt
    double             dependence; // a column of which less than this fraction (of its norm) is new is dropped
    // of the reduced method
    double threshold; // cosine below which a subtraction is left out (P0: 0.001)
    int    samples;   // nodes wanted in the sample; 0: max(20 log n, 4 r)
    bool   plain;     // as printed, one subtraction of whole vectors at a time: slow, the reference for the fast way
} modes_orthogonalise_options;
modes_orthogonalise_options modes_orthogonalise_default_options(void);
const char                 *modes_gram_schmidt_name(modes_gram_schmidt method); // "block", "mgs", "rmgs"

typedef struct modes_orthogonalise_report {
    int    offered, rank;        // columns given, and kept
    double orthogonality;        // max |U^T M U - I|
    int    samples;              // nodes in the sample of the reduced method
    double sample_orthogonality; // max |U^T W U - I| of the reduced method before it ends with a Cholesky factorisation
    long   subtractions, culled; // of the reduced method: done and left out
    double seconds;              // without the measuring of orthogonality
} modes_orthogonalise_report;

// U (n x columns, column-major) becomes mass-orthonormal in its first *rank columns; columns that depend on those to
// their left are dropped. What the fixed degrees of freedom hold takes part. report may be NULL.
fem_status modes_orthogonalise(const modes_problem *problem, const modes_orthogonalise_options *options, int columns,
                               double *U, int *rank, modes_orthogonalise_report *report);

// The same block by block. U is the caller's, n x capacity; `add` takes the `columns` columns behind those kept so far,
// makes them orthonormal to these and to each other, and closes the gaps of those that it drops.
typedef struct modes_orthogonaliser modes_orthogonaliser;
fem_status modes_orthogonaliser_create(modes_orthogonaliser **orthogonaliser, const modes_problem *problem,
                                       const modes_orthogonalise_options *options, int capacity, double *U);
void       modes_orthogonaliser_destroy(modes_orthogonaliser *orthogonaliser);
fem_status modes_orthogonaliser_add(modes_orthogonaliser *orthogonaliser, int columns, int *kept);
// B = M U for `columns` columns from `first` on.
void modes_orthogonaliser_mass(const modes_orthogonaliser *orthogonaliser, int first, int columns, double *B);
// The reduced method ends with U <- U L^-T, U^T M U = L L^T, and is FEM_INDEFINITE when its sample was too small for
// that. Measures. Nothing can be added afterwards.
fem_status modes_orthogonaliser_finish(modes_orthogonaliser *orthogonaliser, modes_orthogonalise_report *report);

#endif

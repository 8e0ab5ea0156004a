// What the files of the Krylov bases and of the orthogonalisation tell each other.
#ifndef LIMBER_MODES_KRYLOV_INTERNAL_H
#define LIMBER_MODES_KRYLOV_INTERNAL_H

#include "libmodes/internal.h"

#include <stdint.h>

// ---- tall matrices: very many rows, few columns, leading dimension n; row panels on all threads (tall.c) ------------

enum { TALL_PANELS = 16 }; // fixed, so that sums do not depend on the number of threads

// C (a x b) = A^T B
fem_status tall_inner(int n, int a, int b, const double *A, const double *B, double *C);
// X (n x b) += alpha A C, A n x a, C a x b
void tall_add(int n, int a, int b, double alpha, const double *A, const double *C, double *X);
void tall_product(int n, int a, int b, const double *A, const double *C, double *X); // X = A C
// X (n x b) <- X T in its first `columns` columns, T b x columns
fem_status tall_right(int n, int b, int columns, const double *T, double *X);
// X (n x b) <- X T with an upper triangular T (b x b) that is the identity in its first `kept` columns
void tall_right_upper(int n, int kept, int b, const double *T, double *X);
// Upper triangular T with T^T G T = I on the leading columns of G (b x b, symmetric), up to the first whose pivot is
// not above `eaten` times its diagonal entry, or not above its entry of `least` (b, may be NULL); returns their number
// m. T is m x m.
int tall_cholesky_inverse(int b, const double *G, double eaten, const double *least, double *T);
// G (b x b, ones on the diagonal) = L L^T with pivots, up to what is not above `least`; returns the rank. L is b x
// rank in its first columns (leading dimension b, rows in the order of G), with 2 b more numbers of work space behind b
// x b.
int modes_pivoted_cholesky(int b, const double *G, double least, double *L, int *pivots);
// max |G - I|
double tall_distance_from_identity(int b, const double *G);

// ---- random numbers ------------------------------------------------------------------------------------------------

// 53 bits, the same on every machine [splitmix64: Steele, Lea, Flood 2014]
static inline uint64_t modes_random_bits(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) >> 11;
}

// ---- the mass matrix (mass.c) ---------------------------------------------------------------------------------------

// Blocks of a mass matrix are multiples of the identity: a ninth of the numbers, both halves stored so that rows can be
// computed side by side.
typedef struct modes_mass modes_mass;
// Rows (vertices) begin .. end of M X, X n x columns, into columns of Y that stand `apart` numbers apart and start with
// row `begin`.
typedef void (*modes_mass_rows)(const modes_mass *mass, int columns, int begin, int end, const double *X, double *Y,
                                size_t apart);
struct modes_mass {
    const fem_sparse *M;
    int              *start, *column; // M->n + 1; ascending in each row; NULL: a block is no multiple of the identity
    double           *value;
    modes_mass_rows   rows; // the kernel, one of these
};
void       modes_mass_rows_baseline(const modes_mass *mass, int columns, int begin, int end, const double *X, double *Y,
                                    size_t apart);
void       modes_mass_rows_avx2(const modes_mass *mass, int columns, int begin, int end, const double *X, double *Y,
                                size_t apart);
void       modes_mass_rows_avx512(const modes_mass *mass, int columns, int begin, int end, const double *X, double *Y,
                                  size_t apart);
fem_status modes_mass_create(modes_mass *mass, const fem_sparse *M);
void       modes_mass_destroy(modes_mass *mass);
void       modes_mass_multiply(const modes_mass *mass, int columns, const double *X, double *Y); // Y = M X
// G (r x r) = U^T M U from column `first` on; columns may be made in turn: first .. end, up to the diagonal, and
// mirrored; best as many at a time as the width says.
fem_status modes_mass_gram(const modes_mass *mass, int first, int r, const double *U, double *G);
fem_status modes_mass_gram_columns(const modes_mass *mass, int first, int end, const double *U, int r, double *G);
enum { MASS_GRAM_WIDTH = 256 };
static inline int modes_mass_gram_width(const modes_mass *mass) { return mass->start ? MASS_GRAM_WIDTH : 32; }
// Makes nearly mass-orthonormal columns so to rounding, keeping each as it is but for that; those before `first` are so
// already and stay. *orthogonality: max |U^T M U - I| but among these, after a last correction by the small matrices
// that made it. FEM_INDEFINITE when columns depend on others.
fem_status modes_mass_polish(const modes_mass *mass, int first, int r, double *U, double *orthogonality);

// ---- the sample of nodes of the reduced inner product (sample.c) ----------------------------------------------------

typedef struct modes_sample {
    int     count;
    int    *vertex;
    double *weight; // kg
} modes_sample;
// About `wanted` cubes of equal size cover the body; each gives the node nearest its centre, with the mass in the cube.
fem_status modes_sample_create(modes_sample *sample, const modes_problem *problem, int wanted);
void       modes_sample_destroy(modes_sample *sample);

// ---- orthogonalisation (orthogonalise.c, reduced.c) -----------------------------------------------------------------

struct modes_orthogonaliser {
    modes_orthogonalise_options options; // passes and samples chosen
    modes_mass                  mass;
    int                         n, capacity, count;
    double                     *U;  // n x capacity, the caller's
    double                     *MU; // n x capacity; NULL in the reduced method
    // of the reduced method
    modes_sample               sample;
    double                    *S; // 3 samples x capacity: rows of U times the square roots of their weights
    modes_orthogonalise_report report;
};

enum { MODES_PANEL = 32 }; // columns that are treated together

fem_status modes_reduced_add(modes_orthogonaliser *o, int columns);
fem_status modes_reduced_finish(modes_orthogonaliser *o);
// Moves the `behind` columns that stand behind column j of X one to the left.
void modes_close_gap(int n, int behind, double *X);

// ---- seeds (seeds.c, interface.c) -----------------------------------------------------------------------------------

int modes_seed_count(unsigned seeds, int fields);
// U0 (n x modes_seed_count), zero on fixed degrees of freedom
void modes_seed_fields(const modes_problem *problem, const unsigned char *fixed, unsigned seeds, int fields,
                       unsigned random_state, double *U0);
// X (n x columns) <- its `keep` largest combinations in a norm, by the singular value decomposition; BX is the product
// with the matrix of the norm. *share is the part of the squared norms that they keep.
fem_status modes_compress(int n, int columns, int keep, const double *BX, double *X, double *share);
// Weights of an interface's forces and moments in the compression.
fem_status modes_interface_scale(const modes_problem *problem, const modes_interface *interface, double *force,
                                 double *moment);

#endif

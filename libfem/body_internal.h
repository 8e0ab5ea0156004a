// The insides of a body: elements in groups of 8 that share a material, in the order of a space-filling curve, and
// groups in chunks that are coloured so that chunks of one colour share no vertex. Workers take the chunks of one
// colour at a time: no two write to one vertex at once, and every sum has a fixed order, whatever the number of
// threads.
#ifndef LIMBER_BODY_INTERNAL_H
#define LIMBER_BODY_INTERNAL_H

#include "libfem/internal.h"

enum { LANES = 8, MOST_COLOURS = 64 };

enum { T4_BLOCKS = 10, H8_BLOCKS = 36 }; // pairs (a, b) with a <= b of an element's vertices
static inline int pair_index(int a, int b, int width) { return a * width - a * (a - 1) / 2 + (b - a); } // a <= b

// Constant part of a group. Lanes past `count` repeat the last element and are never scattered.
typedef struct element_group {
    int count;          // elements in it: 1 .. 8
    int material;       // index into constants
    int element[LANES]; // of the mesh
} element_group;

struct fem_body {
    const fem_mesh         *mesh;
    fem_body_options        options;
    fem_sparse              pattern;   // value is NULL
    fem_material_constants *constants; // per material of the mesh
    int                     width;     // vertices of an element
    int                     pairs;     // T4_BLOCKS or H8_BLOCKS
    int                     group_count;
    element_group          *groups;
    int    *vertices;  // group x width x LANES; those of a T4 are ascending, so that a < b is row < column
    int    *blocks;    // group x pairs x LANES: block of the pair in the pattern; ~block when transposed
    double *gradients; // T4: group x 9 x LANES, gradients of the shape functions of vertices 1, 2, 3
    double *volumes;   // T4: group x LANES, 0 in unused lanes
    int     chunk_count, chunk_groups; // groups in a chunk
    int    *chunk_order;               // chunks sorted by colour
    int     colour_count;              // the last may be one whose chunks must run one after the other
    int     colour_start[MOST_COLOURS + 1];
    bool    last_colour_serial;
    double *chunk_energy; // chunk_count
};

static inline int chunk_end(const struct fem_body *body, int chunk) { // first group behind it
    int end = (chunk + 1) * body->chunk_groups;
    return end < body->group_count ? end : body->group_count;
}

// One evaluation: what is NULL is not wanted. With `second`, force gets (H(u) : a) b and nothing else is made.
typedef struct element_work {
    const struct fem_body *body;
    const double          *u, *a, *b;
    double                *energy; // per chunk
    double                *force;
    double                *stiffness; // values of the sparse matrix
    bool                   second;
} element_work;

typedef void (*element_kernel)(const element_work *work, int chunk);
void fem_element_kernel_baseline(const element_work *work, int chunk);
void fem_element_kernel_avx2(const element_work *work, int chunk);
void fem_element_kernel_avx512(const element_work *work, int chunk);
void fem_element_plain(const element_work *work, int chunk);

// ---- many (H(0) : a) b at once (body_second.c, kernel_second.c)
// ------------------------------------------------------

enum { SECOND_COLUMNS = 256 }; // columns of one field that a kernel takes, at most

// Elasticity at rest: C by lambda and mu or as a matrix, and the third-order constants n1, n2, n3.
typedef struct rest_elasticity {
    bool   linear, isotropic, has_third;
    double lambda, mu, C[36], third[3];
} rest_elasticity;

typedef struct second_slot {
    int a, b; // column of a, first of eight neighbouring columns of b
} second_slot;

typedef struct second_work {
    const struct fem_body *body;
    const rest_elasticity *elasticity;           // per material
    int                    a_columns, b_columns; // padded to whole vectors, at least one zero vector behind b's
    const double          *a_rows, *b_rows;      // n x columns, row-major
    int                    slot_count;
    const second_slot     *slots;
    double                *out; // n x 8 slots, row-major
} second_work;

typedef void (*second_kernel)(const second_work *work, int chunk);
void fem_second_kernel_baseline(const second_work *work, int chunk);
void fem_second_kernel_avx2(const second_work *work, int chunk);
void fem_second_kernel_avx512(const second_work *work, int chunk);

// Calls task(context, chunk) for all chunks, those of one colour at once.
typedef void (*chunk_task)(const void *context, int chunk);
void fem_body_for_chunks(const struct fem_body *body, chunk_task task, const void *context);

// Gauss points of an H8: derivatives of the eight shape functions (x, y, z each) and the weight.
typedef struct hex_point {
    double dN[8][3];
    double weight;
} hex_point;
int fem_hex_points(int per_direction, hex_point points[27], double values[27][8]); // returns the number; values: N_a

#endif

// Reduced forces of eight integration points at eight poses: the inner loops of training. Compiled once per vector
// width. Points are lanes until the force of a mode is known at all eight poses; then the 8 x 8 matrix is turned, so
// that poses, which are neighbours in a column of the training matrix, stand side by side. Forces that are summed over
// all points are products of matrices: three modes and eight poses stay in registers while several groups pass by.
#include "libcubature/lanes.h"
#include "libcubature/points.h"

enum { POSES = 8 };

typedef long mask __attribute__((vector_size(64)));

// h = B q at two poses, so that an entry of B serves twice
static inline void gradients(const double *B, size_t stride, int r, const double *q, double *h0, double *h1) {
    real a[9], b[9];
    UNROLL for (int c = 0; c < 9; c++) a[c] = b[c] = splat(0);
    for (int l = 0; l < r; l++, B += stride, q += POSES) {
        real x = splat(q[0]), y = splat(q[1]);
        UNROLL for (int c = 0; c < 9; c++) {
            real u = load(B + 8 * c);
            a[c] += u * x, b[c] += u * y;
        }
    }
    UNROLL for (int c = 0; c < 9; c++) store(h0 + 8 * c, a[c]), store(h1 + 8 * c, b[c]);
}

// ---- gradients of the modes ----------------------------------------------------------------------------------------

void JOIN(cubature_point_gradients, SIMD_SUFFIX)(const eight_points *at, size_t row_stride, int r, double *B,
                                                 size_t stride) {
    for (int mode = 0; mode < r; mode += 8) {
        real H[9][8];
        for (int p = 0; p < 8; p++) {
            real h[9];
            UNROLL for (int c = 0; c < 9; c++) h[c] = splat(0);
            for (int a = 0; p < at->points && a < at->width; a++) {
                const double *g = at->g[p] + 3 * a;
                UNROLL for (int i = 0; i < 3; i++) {
                    real u = load(at->vertex[p][a] + (size_t)i * row_stride + (size_t)mode);
                    UNROLL for (int j = 0; j < 3; j++) h[3 * i + j] += u * splat(g[j]);
                }
            }
            UNROLL for (int c = 0; c < 9; c++) H[c][p] = h[c];
        }
        for (int c = 0; c < 9; c++) {
            transpose(H[c]);
            for (int l = 0; l < 8 && mode + l < r; l++) store(B + (size_t)(mode + l) * stride + 8 * c, H[c][l]);
        }
    }
}

// ---- forces --------------------------------------------------------------------------------------------------------

static inline real determinant(const double *h) {
    real F[9];
    UNROLL for (int c = 0; c < 9; c++) F[c] = load(h + 8 * c) + splat(c % 4 == 0);
    return F[0] * (F[4] * F[8] - F[5] * F[7]) - F[1] * (F[3] * F[8] - F[5] * F[6]) + F[2] * (F[3] * F[7] - F[4] * F[6]);
}

// det (I + h / 2^k) is a polynomial of 1 / 2^k: the least k for which it is positive
static int halvings_needed(const double *h, size_t lane) {
    double a[9], s = 1;
    int    k = 0;
    for (size_t c = 0; c < 9; c++) a[c] = h[8 * c + lane];
    double first = a[0] + a[4] + a[8];
    double second = a[0] * a[4] - a[1] * a[3] + a[0] * a[8] - a[2] * a[6] + a[4] * a[8] - a[5] * a[7];
    double third =
        a[0] * (a[4] * a[8] - a[5] * a[7]) - a[1] * (a[3] * a[8] - a[5] * a[6]) + a[2] * (a[3] * a[7] - a[4] * a[6]);
    while (k < MOST_HALVINGS && !(1 + s * (first + s * (second + s * third)) > 0)) k++, s /= 2;
    return k;
}

static void lower_smallest(const point_task *task, int group, const double *h) {
    const int *element = task->set->element + 8 * (size_t)group;
    double    *smallest = task->smallest + task->first;
    real       J[POSES], low = load(smallest);
    for (int t = 0; t < POSES; t++) J[t] = determinant(h + 72 * t);
    transpose(J); // J[lane] at the eight poses
    for (int lane = 0; lane < 8; lane++)
        if (element[lane] >= 0) {
            mask keep = low <= J[lane]; // what is not a number counts as smaller
            low = (real)(((mask)low & keep) | ((mask)J[lane] & ~keep));
        }
    store(smallest, low);
    for (int t = 0; t < POSES; t++) {
        if (low[t] > 0) continue;
        for (int lane = 0; lane < 8; lane++) {
            int k = element[lane] >= 0 && !(J[lane][t] > 0) ? halvings_needed(h + 72 * t, (size_t)lane) : 0;
            if (k > task->halvings[task->first + (size_t)t]) task->halvings[task->first + (size_t)t] = k;
        }
    }
}

// Stress times volume at eight poses, from the gradients h
static inline void stresses(const point_task *task, int group, const double *h, double *P) {
    const fem_material_constants *c = &task->constants[task->set->material[group]];
    fem_material_lanes            evaluate = fem_material_choose_lanes();
    real                          volume = load(task->set->volume + 8 * (size_t)group);
    for (int t = 0; t < POSES; t++) {
        evaluate(c, h + 72 * t, NULL, P + 72 * t, NULL);
        UNROLL for (int k = 0; k < 9; k++) store(P + 72 * t + 8 * k, load(P + 72 * t + 8 * k) * volume);
    }
}

static inline void pose_gradients(const point_task *task, int group, double *h) {
    const point_set *set = task->set;
    const double    *B = set->B + (size_t)group * set->group_size;
    for (int t = 0; t < POSES; t += 2) gradients(B, set->stride, set->r, task->q + t, h + 72 * t, h + 72 * (t + 1));
}

// `modes` modes from l on, of several groups: lanes are summed when all groups are done
static inline void sum_modes(const point_task *task, int first_group, int groups, const double *P, int l,
                             const int modes) {
    const point_set *set = task->set;
    real             sum[3][POSES];
    UNROLL for (int i = 0; i < modes; i++) UNROLL for (int t = 0; t < POSES; t++) sum[i][t] = splat(0);
    for (int group = 0; group < groups; group++, P += POSES * 72) {
        const double *B = set->B + (size_t)(first_group + group) * set->group_size + (size_t)l * set->stride;
        for (int k = 0; k < 9; k++) {
            real b[3];
            UNROLL for (int i = 0; i < modes; i++) b[i] = load(B + (size_t)i * set->stride + 8 * k);
            UNROLL for (int t = 0; t < POSES; t++) {
                real p = load(P + 72 * t + 8 * k);
                UNROLL for (int i = 0; i < modes; i++) sum[i][t] += b[i] * p;
            }
        }
    }
    UNROLL for (int i = 0; i < modes; i++) {
        double *out = task->sums + (size_t)(l + i) * task->row_stride + task->first;
        real   *f = sum[i];
        transpose(f);
        store(out, load(out) + (((f[0] + f[1]) + (f[2] + f[3])) + ((f[4] + f[5]) + (f[6] + f[7]))));
    }
}

void JOIN(cubature_point_sums, SIMD_SUFFIX)(const point_task *task, int first_group, int groups) {
    _Alignas(64) double h[POSES * 72], P[SUM_GROUPS * POSES * 72];
    int                 l = 0, r = task->set->r;
    for (int group = 0; group < groups; group++) {
        pose_gradients(task, first_group + group, h);
        lower_smallest(task, first_group + group, h);
        stresses(task, first_group + group, h, P + (size_t)group * POSES * 72);
    }
    for (; l + 3 <= r; l += 3) sum_modes(task, first_group, groups, P, l, 3);
    for (; l < r; l++) sum_modes(task, first_group, groups, P, l, 1);
}

void JOIN(cubature_point_forces, SIMD_SUFFIX)(const point_task *task, int group) {
    const point_set    *set = task->set;
    const double       *B = set->B + (size_t)group * set->group_size;
    const int          *element = set->element + 8 * (size_t)group;
    real                scale = load(task->scale + task->first);
    _Alignas(64) double h[POSES * 72], P[POSES * 72];
    pose_gradients(task, group, h);
    stresses(task, group, h, P);
    for (int l = 0; l < set->r; l++, B += set->stride) {
        real f[POSES], b[9];
        UNROLL for (int k = 0; k < 9; k++) b[k] = load(B + 8 * k);
        UNROLL for (int t = 0; t < POSES; t++) {
            f[t] = b[0] * load(P + 72 * t);
            for (int k = 1; k < 9; k++) f[t] += b[k] * load(P + 72 * t + 8 * k);
        }
        transpose(f); // f[lane] at the eight poses
        size_t row = (size_t)l * task->row_stride + task->first;
        for (int lane = 0; lane < 8; lane++) {
            if (element[lane] < 0) continue;
            double *out = task->columns[element[lane]] + row;
            store(out, load(out) + scale * task->mode_scale[l] * f[lane]);
        }
    }
}

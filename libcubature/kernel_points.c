// Reduced forces of eight integration points at eight poses: the inner loop of training. Compiled once per vector
// width. Points are lanes until the force of a mode is known at all eight poses; then the 8 x 8 matrix is turned, so
// that poses, which are neighbours in a column of the training matrix, stand side by side.
#include "libcubature/lanes.h"
#include "libcubature/points.h"

enum { POSES = 8 };

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

static inline real determinant(const double *h) {
    real F[9];
    UNROLL for (int c = 0; c < 9; c++) F[c] = load(h + 8 * c) + splat(c % 4 == 0);
    return F[0] * (F[4] * F[8] - F[5] * F[7]) - F[1] * (F[3] * F[8] - F[5] * F[6]) + F[2] * (F[3] * F[7] - F[4] * F[6]);
}

static void lower_smallest(const point_task *task, int group, const double *h) {
    const int *element = task->set->element + 8 * (size_t)group;
    for (int t = 0; t < POSES; t++) {
        real J = determinant(h + 72 * t);
        for (int lane = 0; lane < 8; lane++)
            if (element[lane] >= 0 && !(J[lane] >= task->smallest[task->first + (size_t)t]))
                task->smallest[task->first + (size_t)t] = J[lane];
    }
}

void JOIN(cubature_point_forces, SIMD_SUFFIX)(const point_task *task, int group) {
    const point_set              *set = task->set;
    const double                 *B = set->B + (size_t)group * set->group_size;
    const fem_material_constants *c = &task->constants[set->material[group]];
    const int                    *element = set->element + 8 * (size_t)group;
    fem_material_lanes            evaluate = fem_material_choose_lanes();
    real                          volume = load(set->volume + 8 * (size_t)group);
    _Alignas(64) double           h[POSES * 72], P[POSES * 72];
    for (int t = 0; t < POSES; t += 2) gradients(B, set->stride, set->r, task->q + t, h + 72 * t, h + 72 * (t + 1));
    if (task->smallest) lower_smallest(task, group, h);
    for (int t = 0; t < POSES; t++) {
        evaluate(c, h + 72 * t, NULL, P + 72 * t, NULL);
        UNROLL for (int k = 0; k < 9; k++) store(P + 72 * t + 8 * k, load(P + 72 * t + 8 * k) * volume);
    }
    real scale = task->scale ? load(task->scale + task->first) : splat(1);
    for (int l = 0; l < set->r; l++, B += set->stride) {
        real f[POSES], b[9];
        UNROLL for (int k = 0; k < 9; k++) b[k] = load(B + 8 * k);
        UNROLL for (int t = 0; t < POSES; t++) {
            f[t] = b[0] * load(P + 72 * t);
            for (int k = 1; k < 9; k++) f[t] += b[k] * load(P + 72 * t + 8 * k);
        }
        transpose(f); // f[lane] at the eight poses
        size_t row = (size_t)l * task->row_stride + task->first;
        if (task->sums) {
            real sum = ((f[0] + f[1]) + (f[2] + f[3])) + ((f[4] + f[5]) + (f[6] + f[7]));
            store(task->sums + row, load(task->sums + row) + sum);
        }
        for (int lane = 0; task->columns && lane < 8; lane++) {
            if (element[lane] < 0) continue;
            double *out = task->columns[element[lane]] + row;
            store(out, load(out) + scale * task->mode_scale[l] * f[lane]);
        }
    }
}

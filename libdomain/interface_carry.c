// Shapes of an interface that its child follows; see frame.h.
#include "libdomain/frame.h"

fem_status domain_interface_set_carried(domain_interface *f, int count, const double *points, const double *rows,
                                        int carried, const double *patterns) {
    size_t stride = (size_t)f->stride;
    if (carried < 0) return fem_fail(FEM_BAD_INPUT, "interface: %d shapes, expected >= 0", carried);
    double *B = fem_calloc(9 * (size_t)carried * (stride + 1), sizeof *B);
    if (!B) return fem_fail(FEM_NO_MEMORY, "interface: %d shapes", carried);
    double *rest = B + 9 * (size_t)carried * stride;
    for (size_t s = 0; s < (size_t)carried; s++)
        for (size_t k = 0; k < (size_t)count; k++) {
            const double *P = patterns + 3 * ((size_t)count * s + k);
            for (size_t e = 0; e < 9; e++) {
                rest[9 * s + e] += (points[3 * k + e / 3] - f->x[e / 3]) * P[e % 3];
                for (size_t l = 0; l < (size_t)f->r; l++)
                    B[(9 * s + e) * stride + l] +=
                        (rows[3 * ((size_t)count * l + k) + e / 3] - f->a[stride * (e / 3) + l]) * P[e % 3];
            }
        }
    fem_free(f->B);
    f->B = B, f->carried = carried;
    return FEM_OK;
}

static double contract(const double A[9], const double B[9]) {
    double sum = 0;
    for (int e = 0; e < 9; e++) sum += A[e] * B[e];
    return sum;
}
static void twice_skew(const double A[9], double g[3]) { g[0] = A[7] - A[5], g[1] = A[2] - A[6], g[2] = A[3] - A[1]; }

void domain_interface_carry(const domain_interface *f, const double R[9], const double turn[3], const double bias[3],
                            const double *W, const double *q, const double *dq, double factor,
                            const domain_carried *out) {
    size_t        stride = (size_t)f->stride;
    const double *rest = f->B + 9 * (size_t)f->carried * stride;
    for (size_t s = 0; s < (size_t)f->carried; s++) {
        const double *rows = f->B + 9 * s * stride;
        double       *grad = out->grad + s * stride, B[9], dB[9], C[9], dC[9], g[3], dg[3], Ct[3];
        for (size_t e = 0; e < 9; e++) {
            B[e] = rest[9 * s + e] + dense_dot(f->r, rows + e * stride, q);
            dB[e] = dense_dot(f->r, rows + e * stride, dq);
        }
        mat3_mul_nt(C, B, R);
        mat3_mul_nt(dC, dB, R);
        twice_skew(C, g);
        twice_skew(dC, dg);
        mat3_mul_vec(Ct, C, turn);
        out->w[s] = factor * (contract(R, B) - contract(f->rest, rest + 9 * s));
        out->dw[s] = factor * (vec3_dot(g, turn) + contract(R, dB));
        out->bias[s] = factor * (vec3_dot(g, bias) + vec3_dot(turn, Ct) - vec3_dot(turn, turn) * (C[0] + C[4] + C[8]) +
                                 2 * vec3_dot(dg, turn));
        for (size_t l = 0; l < stride; l++)
            grad[l] = factor * (g[0] * W[l] + g[1] * W[stride + l] + g[2] * W[2 * stride + l]);
        for (size_t e = 0; e < 9; e++) {
            const double *row = rows + e * stride;
            double        x = factor * R[e];
            for (size_t l = 0; l < stride; l++) grad[l] += x * row[l];
        }
    }
}

// Evaluation of a cubature rule: of one instance with points as lanes, and of eight instances as lanes. Compiled once
// per vector width; the reference is cubature_rule_plain.
#include "libcubature/lanes.h"

static inline void gradient(const double *B, size_t stride, int r, const double *q, double *h) {
    real sum[9];
    UNROLL for (int c = 0; c < 9; c++) sum[c] = splat(0);
    for (int l = 0; l < r; l++, B += stride) {
        real x = splat(q[l]);
        UNROLL for (int c = 0; c < 9; c++) sum[c] += load(B + 8 * c) * x;
    }
    UNROLL for (int c = 0; c < 9; c++) store(h + 8 * c, sum[c]);
}

// f += C^T P, still spread over the lanes
static inline void add_force(const double *C, size_t stride, int r, const real P[9], double *f) {
    for (int l = 0; l < r; l++, C += stride, f += 8) {
        real sum = load(f);
        UNROLL for (int c = 0; c < 9; c++) sum += load(C + 8 * c) * P[c];
        store(f, sum);
    }
}

static inline double lane_sum(real x) {
    double sum = 0;
    for (int lane = 0; lane < 8; lane++) sum += x[lane];
    return sum;
}

// T = D B scaled, two modes at a time, so that an entry of D serves twice
static inline void tangent_rows(const double *B, size_t stride, int r, const double *D, real scale, double *T) {
    for (int l = 0; l < r; l += 2, B += 2 * stride, T += 2 * stride) {
        size_t next = l + 1 < r ? stride : 0;
        real   x[9], y[9];
        UNROLL for (int c = 0; c < 9; c++) x[c] = scale * load(B + 8 * c), y[c] = scale * load(B + next + 8 * c);
        for (int c = 0; c < 9; c++) {
            const double *d = D + 72 * c;
            real          a = load(d) * x[0], b = load(d) * y[0];
            UNROLL for (int k = 1; k < 9; k++) a += load(d + 8 * k) * x[k], b += load(d + 8 * k) * y[k];
            store(T + next + 8 * c, b);
            store(T + 8 * c, a);
        }
    }
}

// work: 8 r. T (72 groups x r) becomes the rows that K is a product of; NULL is skipped.
void JOIN(cubature_rule_force, SIMD_SUFFIX)(const cubature_rule *rule, const double *q, double *energy, double *f,
                                            double *T, double *work) {
    const size_t        stride = 72 * (size_t)rule->groups;
    const double       *C = rule->C ? rule->C : rule->B;
    fem_material_lanes  evaluate = fem_material_choose_lanes();
    real                total = splat(0);
    _Alignas(64) double h[72], W[8], P[72], D[9 * 72];
    memset(work, 0, (size_t)rule->r * 8 * sizeof *work);
    for (int g = 0; g < rule->groups; g++) {
        const size_t place = 72 * (size_t)g;
        real         scale = load(rule->scale + 8 * (size_t)g), p[9];
        gradient(rule->B + place, stride, rule->r, q, h);
        evaluate(&rule->constants[rule->material[g]], h, energy ? W : NULL, f ? P : NULL, T ? D : NULL);
        if (energy) total += scale * load(W);
        if (f) {
            UNROLL for (int c = 0; c < 9; c++) p[c] = scale * load(P + 8 * c);
            add_force(C + place, stride, rule->r, p, work);
        }
        if (T) tangent_rows(rule->B + place, stride, rule->r, D, scale, T + place);
    }
    for (int l = 0; f && l < rule->r; l++) f[l] = lane_sum(load(work + 8 * (size_t)l));
    if (energy) *energy = lane_sum(total);
}

// Kp = K(q) p, K as it is. work: 8 r.
void JOIN(cubature_rule_product, SIMD_SUFFIX)(const cubature_rule *rule, const double *q, const double *p, double *Kp,
                                              double *work) {
    const size_t        stride = 72 * (size_t)rule->groups;
    const double       *C = rule->C ? rule->C : rule->B;
    fem_material_lanes  evaluate = fem_material_choose_lanes();
    _Alignas(64) double h[72], d[72], D[9 * 72];
    memset(work, 0, (size_t)rule->r * 8 * sizeof *work);
    for (int g = 0; g < rule->groups; g++) {
        const size_t place = 72 * (size_t)g;
        real         scale = load(rule->scale + 8 * (size_t)g), stress[9];
        gradient(rule->B + place, stride, rule->r, q, h);
        gradient(rule->B + place, stride, rule->r, p, d);
        evaluate(&rule->constants[rule->material[g]], h, NULL, NULL, D);
        for (int c = 0; c < 9; c++) {
            real sum = splat(0);
            UNROLL for (int k = 0; k < 9; k++) sum += load(D + 72 * c + 8 * k) * load(d + 8 * k);
            stress[c] = scale * sum;
        }
        add_force(C + place, stride, rule->r, stress, work);
    }
    for (int l = 0; l < rule->r; l++) Kp[l] = lane_sum(load(work + 8 * (size_t)l));
}

// ---- eight instances -----------------------------------------------------------------------------------------------

// K, packed upper triangle, += sum over c of C_a T_b. T: r x 9 vectors.
static inline void add_pairs(int r, const double *C, const double *T, double *K) {
    for (int b = 0; b < r; b++) {
        real t[9];
        UNROLL for (int c = 0; c < 9; c++) t[c] = load(T + 72 * (size_t)b + 8 * c);
        for (int a = 0; a <= b; a++, K += 8) {
            real sum = load(K);
            UNROLL for (int c = 0; c < 9; c++) sum += splat(C[9 * a + c]) * t[c];
            store(K, sum);
        }
    }
}
// The same with (C_a T_b + C_b T_a) / 2: a modal rule's K is not symmetric
static inline void add_symmetric_pairs(int r, const double *C, const double *T, double *K) {
    for (int b = 0; b < r; b++)
        for (int a = 0; a <= b; a++, K += 8) {
            real sum = splat(0);
            for (int c = 0; c < 9; c++)
                sum += splat(C[9 * a + c]) * load(T + 72 * (size_t)b + 8 * c) +
                       splat(C[9 * b + c]) * load(T + 72 * (size_t)a + 8 * c);
            store(K, load(K) + 0.5 * sum);
        }
}

// One block: q and f are r x 8, K r (r + 1) / 2 x 8, energy 8; NULL is skipped. work: 90 r.
void JOIN(cubature_rule_block, SIMD_SUFFIX)(const cubature_rule *rule, const double *q, double *energy, double *f,
                                            double *K, double *work) {
    const int           r = rule->r;
    const size_t        stride = 72 * (size_t)rule->groups, modes = (size_t)r;
    fem_material_lanes  evaluate = fem_material_choose_lanes();
    double             *T = work, *B = work + 72 * modes, *C = B + 9 * modes; // C, B: r x 9, of one point
    real                total = splat(0);
    _Alignas(64) double h[72], W[8], P[72], D[9 * 72];
    if (f) memset(f, 0, modes * 8 * sizeof *f);
    if (K) memset(K, 0, modes * (modes + 1) / 2 * 8 * sizeof *K);
    for (size_t point = 0; point < 8 * (size_t)rule->groups; point++) {
        const size_t place = 72 * (point / 8) + point % 8;
        const double scale = rule->scale[point];
        if (scale == 0) continue;
        for (size_t l = 0; l < modes; l++)
            for (size_t c = 0; c < 9; c++) {
                B[9 * l + c] = rule->B[l * stride + place + 8 * c];
                C[9 * l + c] = scale * (rule->C ? rule->C[l * stride + place + 8 * c] : B[9 * l + c]);
            }
        real sum[9];
        UNROLL for (int c = 0; c < 9; c++) sum[c] = splat(0);
        for (size_t l = 0; l < modes; l++) {
            real x = load(q + 8 * l);
            UNROLL for (int c = 0; c < 9; c++) sum[c] += splat(B[9 * l + (size_t)c]) * x;
        }
        UNROLL for (int c = 0; c < 9; c++) store(h + 8 * c, sum[c]);
        evaluate(&rule->constants[rule->material[point / 8]], h, energy ? W : NULL, f ? P : NULL, K ? D : NULL);
        if (energy) total += splat(scale) * load(W);
        for (size_t l = 0; f && l < modes; l++) {
            real force = load(f + 8 * l);
            UNROLL for (int c = 0; c < 9; c++) force += splat(C[9 * l + (size_t)c]) * load(P + 8 * c);
            store(f + 8 * l, force);
        }
        if (!K) continue;
        for (size_t l = 0; l < modes; l++)
            for (int c = 0; c < 9; c++) {
                real t = splat(0);
                UNROLL for (int k = 0; k < 9; k++) t += load(D + 72 * c + 8 * k) * splat(B[9 * l + (size_t)k]);
                store(T + 72 * l + 8 * c, t);
            }
        if (rule->C)
            add_symmetric_pairs(r, C, T, K);
        else
            add_pairs(r, C, T, K);
    }
    if (energy) store(energy, total);
}

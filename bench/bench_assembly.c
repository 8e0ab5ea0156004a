// Full StVK force + stiffness of T4 meshes, one core: our kernels against the plain loops and against the
// column-by-column form (a column of the element stiffness is the change of the element's forces under a unit
// displacement), which is how textbook and production codes often do it. All three fill the same sparse matrix.
#include "bench/bench.h"

typedef struct state {
    fem_mesh   mesh;
    fem_body  *fast, *plain;
    double    *u, *force, *reference;
    fem_sparse K, K_reference;
    int        width, *blocks; // per element 16: block of the pair (a, b), or -1 where a > b in the numbering
    double    *gradients;      // per element 12
    double    *volumes;
} state;

static void run_fast(void *context) {
    state *s = context;
    fem_body_evaluate(s->fast, s->u, NULL, s->force, &s->K);
}
static void run_force(void *context) {
    state *s = context;
    fem_body_evaluate(s->fast, s->u, NULL, s->force, NULL);
}
static void run_plain(void *context) {
    state *s = context;
    fem_body_evaluate(s->plain, s->u, NULL, s->reference, &s->K_reference);
}

// P = F S and dP = dF S + F dS for the twelve unit displacements; shape gradients and block places prepared, as ours
// are.
static void run_columns(void *context) {
    state                 *s = context;
    fem_material_constants c;
    fem_material_prepare(&c, &s->mesh.materials[0]);
    fem_sparse_zero(&s->K_reference);
    memset(s->reference, 0, 3 * (size_t)s->mesh.vertex_count * sizeof *s->reference);
    for (int e = 0; e < s->mesh.element_count; e++) {
        const int    *v = s->mesh.elements + 4 * (size_t)e;
        const double *g = s->gradients + 12 * (size_t)e;
        double        volume = s->volumes[e], F[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, S[9], P[9];
        for (int a = 0; a < 4; a++)
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) F[3 * i + j] += s->u[3 * (size_t)v[a] + (size_t)i] * g[3 * a + j];
        double trace = 0;
        for (int i = 0; i < 9; i++) {
            int    m = i / 3, n = i % 3;
            double E = 0.5 * (F[m] * F[n] + F[3 + m] * F[3 + n] + F[6 + m] * F[6 + n] - (m == n));
            S[i] = 2 * c.mu * E;
            if (m == n) trace += E;
        }
        for (int i = 0; i < 3; i++) S[4 * i] += c.lambda * trace;
        mat3_mul(P, F, S);
        for (int a = 0; a < 4; a++)
            for (int i = 0; i < 3; i++)
                s->reference[3 * (size_t)v[a] + (size_t)i] += volume * vec3_dot(P + 3 * i, g + 3 * a);
        for (int b = 0; b < 4; b++)
            for (int k = 0; k < 3; k++) {
                double dE[9], dS[9], dP[9], t = 0;
                // dF = e_k g_b^T, dE = sym(F^T dF) = sym(f_k g_b^T) with f_k the k-th row of F
                for (int i = 0; i < 9; i++)
                    dE[i] = 0.5 * (F[3 * k + i / 3] * g[3 * b + i % 3] + F[3 * k + i % 3] * g[3 * b + i / 3]);
                t = c.lambda * (dE[0] + dE[4] + dE[8]);
                for (int i = 0; i < 9; i++) dS[i] = 2 * c.mu * dE[i] + (i % 4 == 0 ? t : 0);
                mat3_mul(dP, F, dS);
                for (int j = 0; j < 3; j++)
                    dP[3 * k + j] += g[3 * b] * S[j] + g[3 * b + 1] * S[3 + j] + g[3 * b + 2] * S[6 + j];
                for (int a = 0; a < 4; a++) {
                    int block = s->blocks[16 * (size_t)e + (size_t)(4 * a + b)];
                    if (block < 0) continue;
                    double *p = s->K_reference.value + 9 * (size_t)block + k;
                    for (int i = 0; i < 3; i++) p[3 * i] += volume * vec3_dot(dP + 3 * i, g + 3 * a);
                }
            }
    }
}

static void prepare_columns(state *s) {
    size_t elements = (size_t)s->mesh.element_count;
    s->blocks = fem_alloc(16 * elements, sizeof *s->blocks);
    s->gradients = fem_alloc(12 * elements, sizeof *s->gradients);
    s->volumes = fem_alloc(elements, sizeof *s->volumes);
    for (size_t e = 0; e < elements; e++) {
        const int *v = s->mesh.elements + 4 * e;
        double     E[9], inverse[9];
        for (int a = 0; a < 3; a++)
            for (int i = 0; i < 3; i++)
                E[3 * i + a] =
                    s->mesh.vertices[3 * (size_t)v[a + 1] + (size_t)i] - s->mesh.vertices[3 * (size_t)v[0] + (size_t)i];
        s->volumes[e] = mat3_inverse(inverse, E) / 6;
        double *g = s->gradients + 12 * e;
        memcpy(g + 3, inverse, sizeof inverse);
        for (int i = 0; i < 3; i++) g[i] = -(g[3 + i] + g[6 + i] + g[9 + i]);
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < 4; b++)
                s->blocks[16 * e + (size_t)(4 * a + b)] = v[a] <= v[b] ? fem_sparse_find(&s->K, v[a], v[b]) : -1;
    }
}

static double difference(size_t n, const double *x, const double *y) {
    double error = 0, largest = 0;
    for (size_t i = 0; i < n; i++) error = fmax(error, fabs(x[i] - y[i])), largest = fmax(largest, fabs(y[i]));
    return error / largest;
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "T4 StVK force + stiffness assembly, one core, nanoseconds per tetrahedron");
    fem_set_threads(1);
    printf("   %9s %8s | %16s %9s | %16s %16s | %7s %7s | error\n", "tets", "force", "force+stiffness", "(median)",
           "plain", "column by column", "plain/", "column/");
    double sizes[] = {12000, 50000, 200000, 400000};
    for (int i = 0; i < 4; i++) {
        state            s = {0};
        fem_body_options options = fem_body_default_options();
        bench_branching_body(&s.mesh, sizes[i]);
        bench_try(fem_body_create(&s.fast, &s.mesh, &options));
        options.plain = true;
        bench_try(fem_body_create(&s.plain, &s.mesh, &options));
        bench_try(fem_body_matrix(s.fast, &s.K));
        bench_try(fem_body_matrix(s.fast, &s.K_reference));
        size_t n = 3 * (size_t)s.mesh.vertex_count;
        s.u = fem_alloc(n, sizeof *s.u), s.force = fem_alloc(n, sizeof *s.force),
        s.reference = fem_alloc(n, sizeof *s.reference);
        for (size_t k = 0; k < n; k++) s.u[k] = 0.01 * sin((double)k);
        prepare_columns(&s);
        double     per = 1e9 / s.mesh.element_count;
        bench_time fast = bench_measure(20, run_fast, &s), force = bench_measure(20, run_force, &s);
        bench_time plain = bench_measure(3, run_plain, &s);
        double     error = difference(9 * (size_t)s.K.blocks, s.K.value, s.K_reference.value);
        bench_time columns = bench_measure(8, run_columns, &s);
        error = fmax(error, difference(9 * (size_t)s.K.blocks, s.K.value, s.K_reference.value));
        error = fmax(error, difference(n, s.force, s.reference));
        printf("   %9d %8.0f | %16.0f %9.0f | %16.0f %16.0f | %6.1fx %6.1fx | %.0e\n", s.mesh.element_count,
               force.minimum * per, fast.minimum * per, fast.median * per, plain.minimum * per, columns.minimum * per,
               plain.minimum / fast.minimum, columns.minimum / fast.minimum, error);
        fem_body_destroy(s.fast), fem_body_destroy(s.plain);
        fem_sparse_destroy(&s.K), fem_sparse_destroy(&s.K_reference);
        fem_free(s.u), fem_free(s.force), fem_free(s.reference);
        fem_free(s.blocks), fem_free(s.gradients), fem_free(s.volumes);
        fem_mesh_destroy(&s.mesh);
    }
    printf("   goal: at most 150 ns on hardware with 88 GFLOP/s a core, at least 5x the column-by-column form\n");
    return 0;
}

// Ordering, analysing, factorising and solving stiffness matrices of T4 bodies of 50K to 400K tetrahedra, one core.
// Times per right-hand side show what solving many together is worth.
#include "bench/bench.h"

typedef struct solve_work {
    fem_factor *factor;
    int         columns;
    double     *B, *X;
} solve_work;

static void run_solve(void *context) {
    solve_work *w = context;
    bench_try(fem_factor_solve(w->factor, w->columns, w->B, w->X));
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "Cholesky factorisation, one core");
    fem_set_threads(1);
    printf("   %7s %8s | %6s %8s %8s %8s %7s | ms per right-hand side at 1 / 6 / 24 | relative residual\n", "tets",
           "dofs", "order", "analyse", "factor", "GFLOP/s", "GB");
    double sizes[] = {50000, 200000, 400000};
    for (int i = 0; i < 3; i++) {
        fem_mesh         mesh = {0};
        fem_body        *body = NULL;
        fem_sparse       K = {0};
        fem_factor      *factor = NULL;
        fem_body_options options = fem_body_default_options();
        bench_branching_body(&mesh, sizes[i]);
        bench_try(fem_body_create(&body, &mesh, &options));
        bench_try(fem_body_matrix(body, &K));
        int            n = 3 * mesh.vertex_count, columns[] = {1, 6, 24};
        double        *B = fem_alloc(24 * (size_t)n, sizeof *B), *X = fem_alloc(24 * (size_t)n, sizeof *X);
        unsigned char *fixed = bench_hold_bottom(&mesh);
        memset(X, 0, (size_t)n * sizeof *X);
        fem_body_evaluate(body, X, NULL, NULL, &K);
        bench_try(fem_factor_create(&factor, &K, fixed));
        double factorise = INFINITY;
        for (int run = 0; run < (i < 2 ? 3 : 1); run++) {
            double begin = fem_cpu_seconds();
            bench_try(fem_factor_factorise(factor, &K));
            factorise = fmin(factorise, fem_cpu_seconds() - begin);
        }
        for (int k = 0; k < 24 * n; k++) B[k] = fixed[k % n] ? 0 : sin(k);
        fem_factor_report r = fem_factor_get_report(factor);
        printf("   %7d %8d | %6.2f %8.2f %8.2f %8.1f %7.2f |", mesh.element_count, r.free_dofs, r.seconds_order,
               r.seconds_analyse, factorise, r.flops / factorise * 1e-9, r.bytes * 1e-9);
        for (int c = 0; c < 3; c++) {
            solve_work w = {.factor = factor, .columns = columns[c], .B = B, .X = X};
            bench_time t = bench_measure(5, run_solve, &w);
            printf(" %s%.1f", c ? "/ " : "", 1e3 * t.minimum / columns[c]);
        }
        // residual of the first column on the free dofs
        double *r1 = fem_alloc((size_t)n, sizeof *r1), error = 0, size = 0;
        fem_sparse_multiply(&K, 1, X, r1);
        for (int k = 0; k < n; k++)
            if (!fixed[k]) error += (r1[k] - B[k]) * (r1[k] - B[k]), size += B[k] * B[k];
        printf(" | %.0e\n", sqrt(error / size));
        fem_free(r1), fem_free(B), fem_free(X), fem_free(fixed);
        fem_factor_destroy(factor);
        fem_sparse_destroy(&K);
        fem_body_destroy(body);
        fem_mesh_destroy(&mesh);
    }
    return 0;
}

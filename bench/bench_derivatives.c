// The modal part of P0 Table 1 (12 linear modes, 78 first-order derivatives, condensed to 30 columns) and P4 Fig. 8
// (linear modes, right-hand sides, solutions), one thread. The baseline of the right-hand sides is one element sweep a
// pair; of the linear modes, ARPACK.
#include "bench/modes_case.h"

enum { MODES = 12, PAIRS = MODES * (MODES + 1) / 2, COLUMNS = 30 };

static double since(double begin) { return fem_cpu_seconds() - begin; }

static int list_pairs(int modes, fem_pair *pairs) {
    int count = 0;
    for (int i = 0; i < modes; i++)
        for (int j = i; j < modes; j++) pairs[count++] = (fem_pair){.a = i, .b = j};
    return count;
}

typedef struct right_times {
    double many, single, error; // seconds per pair in one sweep and one by one; largest relative difference
} right_times;

// Right-hand sides of all pairs, 64 at a time as modes_derivatives does it, and of some one by one.
static right_times measure_right(const modes_case *c, const modes_basis *basis) {
    fem_pair pairs[512];
    int      count = list_pairs(basis->r, pairs);
    size_t   n = (size_t)c->n;
    double *out = fem_alloc(64 * n, sizeof *out), *one = fem_alloc(n, sizeof *one), *zero = fem_calloc(n, sizeof *zero);
    right_times t = {.many = INFINITY, .single = INFINITY};
    if (!out || !one || !zero) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for right-hand sides"));
    for (int run = 0; run < 3; run++) {
        double begin = fem_cpu_seconds();
        for (int k = 0; k < count; k += 64)
            bench_try(fem_body_second_pairs(c->body, basis->r, basis->U, basis->r, basis->U,
                                            count - k < 64 ? count - k : 64, pairs + k, out));
        t.many = fmin(t.many, since(begin) / count);
    }
    int last = (count - 1) / 64 * 64; // `out` holds the last block
    for (int k = last; k < count; k++) {
        double begin = fem_cpu_seconds(), error = 0, size = 0;
        fem_body_second(c->body, zero, basis->U + (size_t)pairs[k].a * n, basis->U + (size_t)pairs[k].b * n, one);
        t.single = fmin(t.single, since(begin));
        for (size_t i = 0; i < n; i++) {
            error = fmax(error, fabs(one[i] - out[(size_t)(k - last) * n + i]));
            size = fmax(size, fabs(one[i]));
        }
        t.error = fmax(t.error, error / size);
    }
    fem_free(out), fem_free(one), fem_free(zero);
    return t;
}

static double derive(const modes_case *c, modes_inverse *inverse, const modes_basis *basis, modes_derivative_kind kind,
                     modes_pool *pool) {
    modes_derivative_options options = modes_derivative_default_options();
    options.kind = kind;
    double begin = fem_cpu_seconds();
    bench_try(modes_derivatives(&c->problem, c->body, inverse, basis, &options, NULL, pool, NULL));
    return since(begin);
}

static double condense(const modes_case *c, const modes_pool *pool, const double *omega2, modes_condense_method method,
                       double *energy) {
    modes_basis            basis = {0};
    modes_condense_report  report = {0};
    modes_condense_options options = modes_condense_default_options();
    double                 best = INFINITY;
    options.method = method, options.r = COLUMNS;
    for (int run = 0; run < 3; run++) {
        fem_free(report.singular);
        double begin = fem_cpu_seconds();
        bench_try(modes_condense(&c->problem, pool, omega2, &options, NULL, &basis, &report));
        best = fmin(best, since(begin));
    }
    *energy = report.energy_kept;
    fem_free(report.singular);
    modes_basis_destroy(&basis);
    return best;
}

static void table_1(const char *name, double tets, const char *paper_model, double paper) {
    modes_case     c;
    modes_inverse *inverse = NULL;
    modes_basis    exact = {0}, krylov = {0};
    modes_pool     pool = {0};
    double         energy[3], times[3];
    modes_case_create(&c, name, tets);
    double begin = fem_cpu_seconds();
    bench_try(modes_inverse_create(&inverse, &c.problem, MODES_BORDER_MASS));
    double                factor = since(begin);
    modes_lanczos_options lanczos = modes_lanczos_default_options();
    lanczos.count = MODES;
    begin = fem_cpu_seconds();
    bench_try(modes_lanczos(&c.problem, &lanczos, NULL, &exact, NULL));
    double               arpack = since(begin) - factor; // it makes a factor of its own
    modes_krylov_options options = modes_krylov_default_options();
    options.count = MODES, options.inverse = inverse, options.ritz = true;
    begin = fem_cpu_seconds();
    bench_try(modes_krylov(&c.problem, &options, NULL, &krylov, NULL));
    double      linear = since(begin);
    right_times right = measure_right(&c, &krylov);
    double      modal = derive(&c, inverse, &exact, MODES_DERIVATIVE_MODAL, &pool);
    double      derivatives = derive(&c, inverse, &krylov, MODES_DERIVATIVE_INERTIA, &pool);
    for (int method = 0; method < 3; method++)
        times[method] = condense(&c, &pool, krylov.omega2, (modes_condense_method)method, &energy[method]);
    printf("   %-15s %7d %7d | %6.2f %6.2f %6.2f | %5.2f %5.2f %4.1fx %6.2f %6.2f | %5.2f %5.2f %5.2f | %6.2f %6.2f | "
           "%4.1f %s\n",
           c.name, c.mesh.element_count, modes_inverse_get_report(inverse).free_dofs, factor, arpack, linear,
           right.many * PAIRS, right.single * PAIRS, right.single / right.many, derivatives - right.many * PAIRS,
           derivatives, times[0], times[1], times[2], factor + linear + derivatives + times[2],
           factor + arpack + modal + times[0], paper, paper_model);
    printf("   %-15s energy kept by 30 columns: PCA %.6f, randomized %.6f, projection %.6f; sweep against single %.0e; "
           "peak "
           "%.2f GB\n",
           "", energy[0], energy[1], energy[2], right.error, (double)fem_memory_peak() * 1e-9);
    fflush(stdout);
    modes_pool_destroy(&pool), modes_basis_destroy(&exact), modes_basis_destroy(&krylov);
    modes_inverse_destroy(inverse);
    modes_case_destroy(&c);
}

// P4 Fig. 8: a body of our own with the paper's number of elements.
static void figure_8(const char *model, double elements, int modes, double linear, double right, double solve) {
    modes_case       c = {0};
    modes_inverse   *inverse = NULL;
    modes_basis      basis = {0};
    modes_pool       pool = {0};
    fem_body_options options = fem_body_default_options();
    bench_branching_body(&c.mesh, elements);
    c.fixed = bench_hold_bottom(&c.mesh), c.n = 3 * c.mesh.vertex_count;
    bench_try(fem_body_create(&c.body, &c.mesh, &options));
    bench_try(fem_body_matrix(c.body, &c.K));
    bench_try(fem_body_matrix(c.body, &c.M));
    double *rest = fem_calloc((size_t)c.n, sizeof *rest);
    if (!rest || !c.fixed) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for a body"));
    fem_body_evaluate(c.body, rest, NULL, NULL, &c.K);
    fem_body_mass(c.body, FEM_MASS_CONSISTENT, &c.M);
    c.problem = (modes_problem){.mesh = &c.mesh, .K = &c.K, .M = &c.M, .fixed = c.fixed};
    modes_lanczos_options lanczos = modes_lanczos_default_options();
    lanczos.count = modes;
    double begin = fem_cpu_seconds();
    bench_try(modes_lanczos(&c.problem, &lanczos, NULL, &basis, NULL));
    double our_linear = since(begin);
    bench_try(modes_inverse_create(&inverse, &c.problem, MODES_BORDER_MASS));
    right_times r = measure_right(&c, &basis);
    double all = derive(&c, inverse, &basis, MODES_DERIVATIVE_MODAL, &pool), our_right = r.many * (pool.count - modes);
    printf("   %-6s %6d %3d | %7.3f %7.3f %7.3f | %6.0f %6.1f %6.0f | %5.0fx %5.0fx %5.0fx\n", model,
           c.mesh.element_count, modes, our_linear, our_right, all - our_right, linear, right, solve,
           linear / our_linear, right / our_right, solve / (all - our_right));
    modes_pool_destroy(&pool), modes_basis_destroy(&basis);
    modes_inverse_destroy(inverse);
    fem_free(rest);
    modes_case_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv,
                 "Linear modes, derivatives, condensing: P0 Table 1 (modal part) and P4 Fig. 8, one core, seconds");
    fem_set_threads(1);
    printf("   12 linear modes, 78 derivatives, 30 columns. fast = factor + Krylov + derivatives + random projection,\n"
           "   exact = factor + ARPACK + derivatives + PCA. The paper's time is that of its whole precomputation, "
           "cubature\n"
           "   and training included, on 8 cores.\n");
    printf("   %-15s %7s %7s | %6s %6s %6s | %5s %5s %5s %6s %6s | %5s %5s %5s | %6s %6s | paper\n", "mesh", "tets",
           "dofs", "factor", "ARPACK", "Krylov", "right", "one", "ratio", "solve", "deriv.", "PCA", "rand.", "proj.",
           "fast", "exact");
    table_1("bunny_50k", 50e3, "Bunny", 4.2);
    table_1("armadillo_60k", 60e3, "Armadillo", 4.8);
    table_1("dragon_100k", 100e3, "Dragon", 7.2);
    table_1("koala_vox_200k", 200e3, "Dinosaur (193,700)", 9.7);
    printf("   P4 Fig. 8, bodies of our own with the paper's number of elements; the paper on a 3 GHz Pentium\n");
    printf("   %-6s %6s %3s | %7s %7s %7s | %6s %6s %6s | ratio\n", "model", "tets", "k", "linear", "right", "solve",
           "paper:", "right", "solve");
    figure_8("spoon", 2005, 6, 24, 6.5, 33);
    figure_8("tower", 11304, 20, 65, 226, 26 * 60);
    figure_8("heart", 14444, 20, 111, 291, 28 * 60);
    return 0;
}

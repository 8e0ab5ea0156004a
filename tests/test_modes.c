// Vibration modes: against dense eigenvalues, orthonormality, residuals, bodies that are free or half held, failures.
#include "tests/support.h"

#include <math.h>

typedef struct sample {
    fem_mesh       mesh;
    fem_body      *body;
    fem_sparse     K, M;
    unsigned char *fixed;
    int            n;
} sample;

static void make_matrices(sample *p, fem_mass_kind mass) {
    fem_body_options options = fem_body_default_options();
    p->n = 3 * p->mesh.vertex_count;
    assert_ok(fem_body_create(&p->body, &p->mesh, &options));
    assert_ok(fem_body_matrix(p->body, &p->K));
    assert_ok(fem_body_matrix(p->body, &p->M));
    double *u = fem_calloc((size_t)p->n, 8);
    fem_body_evaluate(p->body, u, NULL, NULL, &p->K);
    fem_body_mass(p->body, mass, &p->M);
    fem_free(u);
    p->fixed = fem_calloc((size_t)p->n, 1);
}

static void make_box(sample *p, fem_element type, int x, int y, int z, fem_mass_kind mass) {
    const double low[3] = {0, 0, 0}, high[3] = {0.3 * x, 0.25 * y, 0.2 * z};
    const int    cells[3] = {x, y, z};
    *p = (sample){0};
    assert_ok(fem_generate_box(&p->mesh, type, low, high, cells));
    make_matrices(p, mass);
}

static void free_problem(sample *p) {
    fem_sparse_destroy(&p->K), fem_sparse_destroy(&p->M);
    fem_body_destroy(p->body);
    fem_mesh_destroy(&p->mesh);
    fem_free(p->fixed);
}

static modes_problem view(const sample *p) {
    return (modes_problem){.mesh = &p->mesh, .K = &p->K, .M = &p->M, .fixed = p->fixed};
}

// All eigenvalues of the free dofs by LAPACK, from matrices that are filled here, column by column.
static double *dense_eigenvalues(const sample *p, int *count) {
    int *free_dof = fem_alloc((size_t)p->n, sizeof *free_dof), m = 0;
    for (int i = 0; i < p->n; i++)
        if (!p->fixed[i]) free_dof[m++] = i;
    double *K = fem_alloc((size_t)m * (size_t)m, 8), *M = fem_alloc((size_t)m * (size_t)m, 8),
           *values = fem_alloc((size_t)m, 8);
    double *x = fem_calloc((size_t)p->n, 8), *y = fem_alloc((size_t)p->n, 8);
    for (int j = 0; j < m; j++) {
        x[free_dof[j]] = 1;
        fem_sparse_multiply(&p->K, 1, x, y);
        for (int i = 0; i < m; i++) K[(size_t)j * (size_t)m + (size_t)i] = y[free_dof[i]];
        fem_sparse_multiply(&p->M, 1, x, y);
        for (int i = 0; i < m; i++) M[(size_t)j * (size_t)m + (size_t)i] = y[free_dof[i]];
        x[free_dof[j]] = 0;
    }
    assert_ok(dense_generalized_eigen(m, K, M, values));
    fem_free(free_dof), fem_free(K), fem_free(M), fem_free(x), fem_free(y);
    *count = m;
    return values;
}

static void check_against_dense(sample *p, int rigid, const char *what) {
    int                   m, r = 25;
    double               *values = dense_eigenvalues(p, &m), worst = 0, residual = 0;
    modes_problem         problem = view(p);
    modes_basis           basis = {0};
    modes_report          report;
    modes_lanczos_options options = modes_lanczos_default_options();
    options.count = r;
    assert_ok(modes_lanczos(&problem, &options, NULL, &basis, &report));
    for (int i = 0; i < rigid; i++) assert_true(fabs(values[i]) < 1e-9 * values[rigid]);
    for (int i = 0; i < r; i++) {
        worst = fmax(worst, fabs(basis.omega2[i] / values[rigid + i] - 1));
        residual = fmax(residual, report.residuals[i]);
    }
    printf("  %-34s %d dofs, %d rigid, %d solves: eigenvalues %.1e, residual %.1e, U^T M U - I %.1e\n", what,
           report.free_dofs, report.rigid, report.solves, worst, residual, report.orthogonality);
    assert_int_equal(report.rigid, rigid);
    assert_int_equal(report.free_dofs, m);
    assert_true(report.solves > 0); // ARPACK ran
    assert_true(worst < 1e-9 && residual < 1e-7 && report.orthogonality < 1e-10);
    for (int j = 0; j < r; j++)
        for (int i = 0; i < p->n; i++)
            if (p->fixed[i]) assert_true(basis.U[j * p->n + i] == 0);
    fem_free(values), fem_free(report.residuals);
    modes_basis_destroy(&basis);
}

// ARPACK's modes are LAPACK's: held, free, held at one vertex (three rotations left), at two (one left), at one dof
static void test_against_dense(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int mass = 0; mass < 2; mass++) {
            sample p;
            make_box(&p, (fem_element)type, 7, 3, 3, mass ? FEM_MASS_LUMPED : FEM_MASS_CONSISTENT);
            const fem_set *side = fem_mesh_vertex_set(&p.mesh, "x0");
            check_against_dense(&p, 6, type == FEM_T4 ? "T4, free" : "H8, free");
            memset(p.fixed + 3 * side->items[0], 1, 3);
            check_against_dense(&p, 3, "one vertex held");
            memset(p.fixed + 3 * side->items[side->count - 1], 1, 3);
            check_against_dense(&p, 1, "two vertices held");
            for (int i = 0; i < side->count; i++) memset(p.fixed + 3 * side->items[i], 1, 3);
            check_against_dense(&p, 0, "a side held");
            memset(p.fixed, 0, (size_t)p.n);
            p.fixed[4] = 1;
            check_against_dense(&p, 5, "one degree of freedom held");
            free_problem(&p);
        }
}

// two separate bodies have twelve rigid motions, all left out
static void test_two_components(void **state) {
    (void)state;
    sample a, b, both = {0};
    make_box(&a, FEM_T4, 4, 3, 2, FEM_MASS_CONSISTENT);
    make_box(&b, FEM_T4, 4, 3, 3, FEM_MASS_CONSISTENT);
    assert_ok(fem_mesh_allocate(&both.mesh, FEM_T4, a.mesh.vertex_count + b.mesh.vertex_count,
                                a.mesh.element_count + b.mesh.element_count));
    memcpy(both.mesh.vertices, a.mesh.vertices, (size_t)a.n * 8);
    memcpy(both.mesh.vertices + a.n, b.mesh.vertices, (size_t)b.n * 8);
    memcpy(both.mesh.elements, a.mesh.elements, 16 * (size_t)a.mesh.element_count);
    for (int i = 0; i < 4 * b.mesh.element_count; i++)
        both.mesh.elements[4 * a.mesh.element_count + i] = b.mesh.elements[i] + a.mesh.vertex_count;
    make_matrices(&both, FEM_MASS_CONSISTENT);
    check_against_dense(&both, 12, "two free boxes");
    free_problem(&a), free_problem(&b), free_problem(&both);
}

// every mode of a single element (six for a T4, eighteen for an H8), by the dense path; one more is refused
static void test_all_modes(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        sample p = {0};
        if (type == FEM_T4) {
            const double corners[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
            assert_ok(fem_mesh_allocate(&p.mesh, FEM_T4, 4, 1));
            memcpy(p.mesh.vertices, corners, sizeof corners);
            for (int i = 0; i < 4; i++) p.mesh.elements[i] = i;
            make_matrices(&p, FEM_MASS_CONSISTENT);
        } else {
            make_box(&p, FEM_H8, 1, 1, 1, FEM_MASS_CONSISTENT);
        }
        modes_problem         problem = view(&p);
        modes_basis           basis = {0};
        modes_report          report;
        modes_lanczos_options options = modes_lanczos_default_options();
        options.count = p.n - 6;
        assert_ok(modes_lanczos(&problem, &options, NULL, &basis, &report));
        printf("  %d modes, lowest %.3e, U^T M U - I %.1e\n", basis.r, basis.omega2[0], report.orthogonality);
        assert_true(basis.omega2[0] > 1 && report.orthogonality < 1e-10);
        fem_free(report.residuals);
        options.count++;
        assert_fails(modes_lanczos(&problem, &options, NULL, &basis, &report), FEM_BAD_INPUT, "the body has only");
        assert_int_equal(basis.r, p.n - 6); // the old basis is still there
        modes_basis_destroy(&basis);
        free_problem(&p);
    }
}

// rigid motions have no energy and are mass-orthonormal
static void test_rigid(void **state) {
    (void)state;
    sample  p;
    double *R = NULL;
    int     count = 0;
    make_box(&p, FEM_H8, 4, 3, 2, FEM_MASS_CONSISTENT);
    modes_problem problem = view(&p);
    assert_ok(modes_rigid(&problem, &R, &count));
    assert_int_equal(count, 6);
    double *KR = fem_alloc(6 * (size_t)p.n, 8), *MR = fem_alloc(6 * (size_t)p.n, 8), gram[36], worst = 0, energy = 0;
    fem_sparse_multiply(&p.K, 6, R, KR);
    fem_sparse_multiply(&p.M, 6, R, MR);
    dense_gemm(true, false, 6, 6, p.n, 1, R, MR, 0, gram);
    for (int i = 0; i < 36; i++) worst = fmax(worst, fabs(gram[i] - (i % 7 == 0)));
    for (int i = 0; i < 6 * p.n; i++) energy = fmax(energy, fabs(KR[i]));
    printf("  R^T M R - I %.1e, |K R| %.1e of |K|\n", worst, energy / fem_sparse_norm(&p.K));
    assert_true(worst < 1e-13 && energy < 1e-14 * fem_sparse_norm(&p.K));
    fem_free(R), fem_free(KR), fem_free(MR);
    free_problem(&p);
}

static bool stop_at_once(void *context, const char *what, double fraction) {
    (void)what, (void)fraction;
    return --*(int *)context > 0;
}

// wrong options are named, and a stop is obeyed
static void test_failures(void **state) {
    (void)state;
    sample p;
    make_box(&p, FEM_T4, 7, 3, 3, FEM_MASS_CONSISTENT);
    modes_problem         problem = view(&p);
    modes_basis           basis = {0};
    modes_lanczos_options options = modes_lanczos_default_options();
    int                   calls = 3;
    fem_progress          progress = {.report = stop_at_once, .context = &calls};
    options.count = 0;
    assert_fails(modes_lanczos(&problem, &options, NULL, &basis, NULL), FEM_BAD_INPUT, "modes.count is 0");
    options.count = 20, options.vectors = 20;
    assert_fails(modes_lanczos(&problem, &options, NULL, &basis, NULL), FEM_BAD_INPUT, "modes.vectors is 20");
    options.vectors = 0;
    assert_fails(modes_lanczos(&problem, &options, &progress, &basis, NULL), FEM_STOPPED, "stopped");
    options.max_restarts = 1, options.vectors = 22, options.tolerance = 0;
    assert_fails(modes_lanczos(&problem, &options, NULL, &basis, NULL), FEM_NO_CONVERGENCE, "of 20 modes");
    printf("  %s\n", fem_message());
    memset(p.fixed, 1, (size_t)p.n);
    options = modes_lanczos_default_options();
    assert_fails(modes_lanczos(&problem, &options, NULL, &basis, NULL), FEM_BAD_INPUT, "nothing that could vibrate");
    free_problem(&p);
}

// `count` tetrahedra, each hanging on the one before by a vertex (1), an edge (2) or a face (3), or by nothing (0)
static void make_chain(sample *p, int count, int shared) {
    *p = (sample){0};
    int fresh = 4 - shared;
    assert_ok(fem_mesh_allocate(&p->mesh, FEM_T4, 4 + (count - 1) * fresh, count));
    uint64_t random = 8;
    for (int e = 0; e < count; e++) {
        int *corner = p->mesh.elements + 4 * e;
        for (int k = 0; k < 4; k++) corner[k] = e * fresh + k; // the first `shared` are the last of the one before
        double *x = p->mesh.vertices + 3 * corner[e == 0 ? 0 : shared], jitter[12];
        test_random_fill(&random, 12, 0.1, jitter);
        for (int k = e == 0 ? 0 : shared; k < 4; k++, x += 3) {
            int v = corner[k];
            x[0] = 0.5 * v + jitter[0], x[1] = v % 3 == 1, x[2] = v % 3 == 2;
            x[1] += jitter[k], x[2] += jitter[k + 4] + 0.3 * (v % 2);
        }
        if (fem_element_volume(&p->mesh, e) < 0) {
            int swapped = corner[0];
            corner[0] = corner[1], corner[1] = swapped;
        }
    }
    make_matrices(p, FEM_MASS_CONSISTENT);
}

static fem_status modes_by(const modes_problem *problem, modes_method method, modes_inverse_method inverse,
                           modes_basis *basis) {
    modes_recipe recipe = modes_default_recipe(method);
    recipe.count = 3, recipe.derivatives = 0, recipe.inverse.method = inverse;
    return modes_build(problem, NULL, &recipe, NULL, NULL, basis, NULL);
}

// bodies that have zero modes beyond rigid motions are refused whatever the way, and the message names the reason;
// joined by faces they are not
static void test_hinges(void **state) {
    (void)state;
    static const modes_inverse_method inverses[2] = {MODES_INVERSE_FACTOR, MODES_INVERSE_AMG};
    for (int shared = 1; shared <= 3; shared++)
        for (int method = 0; method < 2; method++)
            for (int i = 0; i < 2; i++)
                for (int held = 0; held < 2; held++) {
                    sample      p;
                    modes_basis basis = {0};
                    make_chain(&p, 5, shared);
                    modes_problem problem = view(&p);
                    if (held) memset(p.fixed, 1, 12); // the first element
                    fem_status status = modes_by(&problem, (modes_method)method, inverses[i], &basis);
                    if (shared == 3) {
                        assert_ok(status);
                        assert_true(basis.r == 3 && basis.omega2[0] > 1);
                    } else {
                        assert_fails(status, FEM_BAD_INPUT, "the elements form 5 groups");
                        assert_null(basis.U);
                    }
                    modes_basis_destroy(&basis);
                    free_problem(&p);
                }
    printf("  %s\n", fem_message());

    // also while memory runs out: either that is said, or the hinges
    sample      p;
    modes_basis basis = {0};
    int         refused = 0;
    make_chain(&p, 5, 2);
    modes_problem problem = view(&p);
    for (long allowed = 0;; allowed++, refused++) {
        fem_memory_fail_after(allowed);
        fem_status status = modes_by(&problem, MODES_KRYLOV, MODES_INVERSE_FACTOR, &basis);
        fem_memory_fail_after(-1);
        assert_null(basis.U);
        if (status == FEM_BAD_INPUT) break;
        assert_true(status == FEM_NO_MEMORY || status == FEM_INDEFINITE);
    }
    printf("  %d allocations refused one after the other\n", refused);
    assert_true(refused > 10);
    free_problem(&p);
}

// a vertex that weighs next to nothing, as in a domain's collar, is no reason to take soft modes for zero ones
static void test_light(void **state) {
    (void)state;
    static const double factor[2] = {1e-4, 1e-7}; // M becomes D M D, the vertex's own mass that of factor squared
    for (int method = 0; method < 2; method++) {
        double first[2];
        for (int lighter = 0; lighter < 2; lighter++) {
            sample      p;
            modes_basis basis = {0};
            make_box(&p, FEM_T4, 12, 2, 2, FEM_MASS_CONSISTENT);
            int last = p.mesh.vertex_count - 1;
            for (int v = 0; v <= last; v++)
                for (int k = p.M.row_start[v]; k < p.M.row_start[v + 1]; k++)
                    for (int i = 0; i < 9; i++)
                        p.M.value[9 * k + i] *=
                            (v == last ? factor[lighter] : 1) * (p.M.column[k] == last ? factor[lighter] : 1);
            for (int v = 0; v <= last; v++)
                if (p.mesh.vertices[3 * v] < 1e-9) memset(p.fixed + 3 * v, 1, 3);
            modes_problem problem = view(&p);
            assert_ok(modes_by(&problem, (modes_method)method, MODES_INVERSE_FACTOR, &basis));
            first[lighter] = basis.omega2[0];
            modes_basis_destroy(&basis);
            free_problem(&p);
        }
        printf("  omega^2 %.9g and %.9g\n", first[0], first[1]);
        assert_true(first[0] > 0 && fabs(first[1] / first[0] - 1) < 1e-4); // the coupling through M is of order 1e-4
    }
}

// vertices without element are refused unless they are held, and so are bodies in very many loose pieces
static void test_loose(void **state) {
    (void)state;
    sample      p;
    modes_basis basis = {0};
    make_chain(&p, 101, 0);
    modes_problem problem = view(&p);
    assert_fails(modes_by(&problem, MODES_LANCZOS, MODES_INVERSE_AUTOMATIC, &basis), FEM_BAD_INPUT,
                 "falls into 101 pieces");
    printf("  %s\n", fem_message());
    memset(p.fixed, 1, 12); // one of them is held: 600 rigid motions are just allowed
    assert_ok(modes_by(&problem, MODES_KRYLOV, MODES_INVERSE_FACTOR, &basis));
    assert_int_equal(basis.r, 3);
    free_problem(&p);

    make_chain(&p, 4, 3);
    problem = view(&p);
    memcpy(p.mesh.elements + 12, p.mesh.elements + 8, 4 * sizeof *p.mesh.elements); // the last vertex is left alone
    for (int method = 0; method < 2; method++)
        assert_fails(modes_by(&problem, (modes_method)method, MODES_INVERSE_FACTOR, &basis), FEM_BAD_INPUT,
                     "vertex 6 belongs to no element");
    memset(p.fixed + 18, 1, 3);
    for (int method = 0; method < 2; method++)
        assert_ok(modes_by(&problem, (modes_method)method, MODES_INVERSE_FACTOR, &basis));
    modes_basis_destroy(&basis);
    free_problem(&p);
}

// Lanczos needs the mass border
static void test_border(void **state) {
    (void)state;
    sample                p;
    modes_inverse        *inverse = NULL;
    modes_basis           basis = {0};
    modes_lanczos_options options = modes_lanczos_default_options();
    make_box(&p, FEM_T4, 4, 3, 3, FEM_MASS_CONSISTENT);
    modes_problem problem = view(&p);
    assert_ok(modes_inverse_create(&inverse, &problem, MODES_BORDER_PLAIN));
    options.inverse = inverse;
    assert_fails(modes_lanczos(&problem, &options, NULL, &basis, NULL), FEM_BAD_INPUT, "expected the mass border");
    modes_inverse_destroy(inverse);
    free_problem(&p);
}

// more vectors than ARPACK can count are refused before anything is allocated for them
static void test_too_many(void **state) {
    (void)state;
    sample p;
    make_box(&p, FEM_H8, 4000, 1, 1, FEM_MASS_LUMPED);
    modes_problem         problem = view(&p);
    modes_basis           basis = {0};
    modes_lanczos_options options = modes_lanczos_default_options();
    options.count = 30000;
    assert_fails(modes_lanczos(&problem, &options, NULL, &basis, NULL), FEM_BAD_INPUT, "expected at most 40000");
    assert_null(basis.U);
    free_problem(&p);
}

// a refused allocation anywhere is reported and leaves nothing behind
static void test_allocation_failure(void **state) {
    (void)state;
    sample p;
    long   failures = 0;
    make_box(&p, FEM_T4, 7, 3, 3, FEM_MASS_CONSISTENT);
    modes_problem         problem = view(&p);
    modes_lanczos_options options = modes_lanczos_default_options();
    options.count = 3;
    for (long allowed = 0;; allowed++) {
        modes_basis  basis = {0};
        modes_report report = {0};
        long         before = fem_memory_blocks();
        fem_memory_fail_after(allowed);
        fem_status status = modes_lanczos(&problem, &options, NULL, &basis, &report);
        fem_memory_fail_after(-1);
        modes_basis_destroy(&basis);
        fem_free(report.residuals);
        assert_int_equal(fem_memory_blocks(), before);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    printf("  %ld allocations refused one after the other\n", failures);
    assert_true(failures > 20);
    free_problem(&p);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_dense),
        cmocka_unit_test(test_two_components),
        cmocka_unit_test(test_all_modes),
        cmocka_unit_test(test_rigid),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_hinges),
        cmocka_unit_test(test_light),
        cmocka_unit_test(test_loose),
        cmocka_unit_test(test_border),
        cmocka_unit_test(test_allocation_failure),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}

// Condensing: PCA against LAPACK, graded weights, energies; randomized PCA and random projection against PCA;
// selection of shapes; sketched bases from static solutions; failures.
#include "libmodes/krylov_internal.h"
#include "tests/modes_case.h"

#include <stdlib.h>

static const int cells[3] = {5, 3, 3};

static void make_pool(const sample *s, modes_pool *pool) {
    modes_derivative_options options = modes_derivative_default_options();
    assert_ok(modes_derivatives(&s->problem, s->body, s->inverse, &s->basis, &options, NULL, pool, NULL));
}

static double rayleigh(const sample *s, const double *x) {
    double *y = fem_alloc((size_t)s->n, 8);
    fem_sparse_multiply(&s->K, 1, x, y);
    double quotient = dense_dot(s->n, x, y) / mass_product(s, x, x);
    fem_free(y);
    return quotient;
}

// The weight by its definition: factor of the candidate as it comes.
static double plain_weight(const sample *s, const modes_pool *pool, int j, modes_scaling scaling) {
    const double       *x = column(pool->X, s->n, j), *omega2 = s->basis.omega2;
    const modes_origin *o = &pool->origin[j];
    double              unit = 1 / sqrt(mass_product(s, x, x)), least = INFINITY;
    switch (scaling) {
    case MODES_SCALE_NONE:
        return 1;
    case MODES_SCALE_UNIT:
        return unit;
    case MODES_SCALE_FREQUENCY:
        if (o->order == 0) return unit * omega2[0] / omega2[o->mode[0]];
        return unit * omega2[0] * omega2[0] / (omega2[o->mode[0]] * omega2[o->mode[1]]);
    default:
        for (int k = 0; k < pool->count; k++) least = fmin(least, rayleigh(s, column(pool->X, s->n, k)));
        return unit * least / rayleigh(s, x);
    }
}

// Singular values of L^T X D by LAPACK, M = L L^T dense (or the root of the lumped mass for L^T).
static void dense_singular(const sample *s, const modes_pool *pool, modes_scaling scaling, bool lumped,
                           double *values) {
    int    *dofs = fem_alloc((size_t)s->n, sizeof *dofs), m = sample_free(s, dofs), c = pool->count;
    double *L = sample_dense(s, &s->M, m, dofs), *Z = fem_calloc((size_t)m * (size_t)c, 8);
    double *masses = fem_alloc((size_t)s->mesh.vertex_count, 8);
    fem_body_vertex_masses(s->body, masses);
    assert_ok(dense_cholesky(m, L));
    for (int j = 0; j < c; j++) {
        const double *x = column(pool->X, s->n, j);
        double        weight = plain_weight(s, pool, j, scaling), *z = column(Z, m, j);
        for (int i = 0; i < m; i++) {
            if (lumped) z[i] = weight * sqrt(masses[dofs[i] / 3]) * x[dofs[i]];
            for (int k = i; !lumped && k < m; k++) z[i] += weight * L[(size_t)i * (size_t)m + (size_t)k] * x[dofs[k]];
        }
    }
    assert_ok(dense_svd(m, c, Z, values, NULL));
    fem_free(dofs), fem_free(L), fem_free(Z), fem_free(masses);
}

// mass-orthonormal, zero where held, Rayleigh quotients; energy_kept is what the errors of the candidates say
static void check_basis(const sample *s, const modes_pool *pool, modes_scaling scaling, const modes_basis *b,
                        const modes_condense_report *report, bool mass_metric) {
    double gram = 0, quotient = 0, kept = 0, total = 0;
    for (int i = 0; i < b->r; i++) {
        for (int j = 0; j <= i; j++)
            gram = fmax(gram, fabs(mass_product(s, column(b->U, s->n, i), column(b->U, s->n, j)) - (i == j)));
        quotient = fmax(quotient, fabs(b->omega2[i] / rayleigh(s, column(b->U, s->n, i)) - 1));
        for (int k = 0; k < s->n; k++)
            if (s->fixed[k]) assert_true(column(b->U, s->n, i)[k] == 0);
    }
    double *errors = fem_alloc((size_t)pool->count, 8);
    assert_ok(modes_pool_errors(&s->problem, pool, b, errors));
    for (int j = 0; j < pool->count; j++) {
        const double *x = column(pool->X, s->n, j);
        double        square = pow(plain_weight(s, pool, j, scaling), 2) * mass_product(s, x, x);
        total += square, kept += square * (1 - errors[j] * errors[j]);
    }
    fem_free(errors);
    assert_true(gram < 1e-12 && report->orthogonality < 1e-12 && quotient < 1e-12);
    if (mass_metric) assert_true(fabs(kept / total - report->energy_kept) < 1e-10);
}

// PCA has LAPACK's singular values, for every scaling, both metrics, held and free
static void test_pca(void **state) {
    (void)state;
    const char *const names[] = {"none", "unit", "frequency", "Rayleigh"};
    for (int held = 0; held < 2; held++) {
        sample     s;
        modes_pool pool = {0};
        sample_create(&s, held ? FEM_H8 : FEM_T4, (const int[3]){3, 2, 2}, FEM_STVK, held, 5);
        make_pool(&s, &pool);
        for (int scaling = 0; scaling < 4; scaling++)
            for (int metric = 0; metric < 2; metric++) {
                double                 values[20], worst = 0;
                modes_basis            basis = {0};
                modes_condense_report  report;
                modes_condense_options options = modes_condense_default_options();
                options.scaling = (modes_scaling)scaling, options.metric = (modes_metric)metric, options.r = 12;
                assert_ok(modes_condense(&s.problem, &pool, s.basis.omega2, &options, NULL, &basis, &report));
                dense_singular(&s, &pool, (modes_scaling)scaling, metric == MODES_METRIC_LUMPED, values);
                assert_int_equal(report.candidates, 20);
                assert_int_equal(report.singular_count, 20);
                for (int k = 0; k < 20; k++) worst = fmax(worst, fabs(report.singular[k] - values[k]) / values[0]);
                printf("  %s, %-9s %s: singular values %.0e of the first (last %.1e), energy kept %.8f\n",
                       held ? "held" : "free", names[scaling], metric ? "lumped" : "mass", worst,
                       values[19] / values[0], report.energy_kept);
                assert_true(worst < 1e-12 && basis.r == 12);
                check_basis(&s, &pool, (modes_scaling)scaling, &basis, &report, metric == MODES_METRIC_MASS);
                fem_free(report.singular);
                modes_basis_destroy(&basis);
            }
        modes_pool_destroy(&pool);
        sample_destroy(&s);
    }
}

// the mass product of every vector width is that of the matrix with 3x3 blocks, for any number of columns
static void test_mass_product(void **state) {
    (void)state;
    enum { COLUMNS = 15 };
    sample   s;
    uint64_t random = 5;
    sample_create(&s, FEM_H8, cells, FEM_STVK, true, 0);
    size_t  n = (size_t)s.n;
    double *X = fem_alloc(n * COLUMNS, 8), *Y = fem_alloc(n * COLUMNS, 8), *Z = fem_alloc(n * COLUMNS, 8);
    for (size_t i = 0; i < n * COLUMNS; i++) X[i] = (double)modes_random_bits(&random) / 9007199254740992.0 - 0.5;
    fem_sparse_multiply(&s.M, COLUMNS, X, Z);
    for (fem_simd level = FEM_SIMD_BASELINE; level <= FEM_SIMD_AVX512; level++) {
        modes_mass mass;
        double     worst = 0;
        setenv("LIMBER_SIMD", fem_simd_name(level), 1);
        assert_ok(modes_mass_create(&mass, &s.M));
        assert_non_null(mass.start);
        for (int columns = 1; columns <= COLUMNS; columns++) {
            double *x = X + (COLUMNS - (size_t)columns) * n; // up to the end of what is allocated
            for (size_t i = 0; i < n * COLUMNS; i++) Y[i] = NAN;
            modes_mass_multiply(&mass, columns, x, Y);
            worst = fmax(worst, test_relative_error(columns * s.n, Y, Z + (COLUMNS - (size_t)columns) * n));
            for (size_t i = n * (size_t)columns; i < n * COLUMNS; i++) assert_true(isnan(Y[i]));
        }
        printf("  %s: %.0e off\n", fem_simd_name(fem_simd_level()), worst);
        assert_true(worst < 1e-15);
        modes_mass_destroy(&mass);
    }
    unsetenv("LIMBER_SIMD");
    fem_free(X), fem_free(Y), fem_free(Z);
    sample_destroy(&s);
}

// Gram matrices of more columns than are made at once, whole and in parts; columns that are orthonormal to a few
// hundredths become so to rounding in one pass, and keep their span
static void test_gram(void **state) {
    (void)state;
    enum { COLUMNS = MASS_GRAM_WIDTH + 37, KEPT = 20 };
    sample     s;
    modes_mass mass;
    uint64_t   random = 3;
    double     worst = 0, orthogonality, gram = 0, away = 0;
    sample_create(&s, FEM_T4, cells, FEM_STVK, true, 5);
    size_t  n = (size_t)s.n;
    double *U = fem_alloc(n * COLUMNS, 8), *V = fem_alloc(n * KEPT, 8);
    double *G = fem_calloc((size_t)COLUMNS * COLUMNS, 8), *H = fem_calloc((size_t)COLUMNS * COLUMNS, 8);
    for (size_t i = 0; i < n * COLUMNS; i++) U[i] = (double)modes_random_bits(&random) / 9007199254740992.0 - 0.5;
    assert_ok(modes_mass_create(&mass, &s.M));
    assert_ok(modes_mass_gram(&mass, 0, COLUMNS, U, G));
    assert_ok(modes_mass_gram_columns(&mass, 0, 11, U, COLUMNS, H));
    assert_ok(modes_mass_gram_columns(&mass, 11, COLUMNS, U, COLUMNS, H));
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            double size = sqrt(G[i * (COLUMNS + 1)] * G[j * (COLUMNS + 1)]);
            if (i % 7 == 0) // each product by itself is slow
                worst = fmax(worst,
                             fabs(G[i * COLUMNS + j] - mass_product(&s, column(U, s.n, i), column(U, s.n, j))) / size);
            worst = fmax(worst, fabs(G[i * COLUMNS + j] - H[i * COLUMNS + j]) / size);
        }
    assert_true(worst < 1e-13);
    assert_ok(modes_mass_polish(&mass, 0, KEPT, U, &orthogonality));
    for (int j = 0; j < KEPT; j++) // each 0.02 of the one before it more
        for (size_t i = 0; i < n; i++)
            V[(size_t)j * n + i] = U[(size_t)j * n + i] + (j > 0 ? 0.02 * U[(size_t)(j - 1) * n + i] : 0);
    assert_ok(modes_mass_polish(&mass, 0, KEPT, V, &orthogonality));
    for (int i = 0; i < KEPT; i++)
        for (int j = 0; j < KEPT; j++) {
            gram = fmax(gram, fabs(mass_product(&s, column(V, s.n, i), column(V, s.n, j)) - (i == j)));
            // columns go in order, so the first ones span what they did: V is U again
            away = fmax(away, fabs(mass_product(&s, column(V, s.n, i), column(U, s.n, j)) - (i == j)));
        }
    printf("  Gram matrix %.0e off; polished %.0e (said: %.0e), %.0e away\n", worst, gram, orthogonality, away);
    assert_true(gram < 1e-13 && orthogonality < 1e-13 && away < 1e-12);
    modes_mass_destroy(&mass);
    fem_free(U), fem_free(V), fem_free(G), fem_free(H);
    sample_destroy(&s);
}

// Columns of which the coefficients say that rounding has not harmed them are left as they are: what is said is never
// less than the truth, be all of them trusted, some or none, and candidates ever so nearly dependent.
static void test_trust(void **state) {
    (void)state;
    sample       s;
    modes_pool   pool = {0};
    int          kinds[3] = {0}; // nothing polished, some, all
    double       narrowest = INFINITY;
    const double lean[] = {1, 1e-2, 1e-5}; // of derivatives, from the one before
    const int    sizes[] = {4, 12, 30, 60, 90};
    sample_create(&s, FEM_T4, cells, FEM_STVK, true, 12);
    for (int k = 0; k < 3; k++) {
        make_pool(&s, &pool);
        for (int j = 13; j < pool.count; j++) {
            double *x = column(pool.X, s.n, j), *before = column(pool.X, s.n, j - 1);
            for (int i = 0; i < s.n && lean[k] < 1; i++) x[i] = before[i] + lean[k] * x[i];
        }
        for (int variant = 0; variant < 10; variant++) {
            modes_basis            basis = {0};
            modes_condense_report  report;
            modes_condense_options options = modes_condense_default_options();
            double                 truth = 0;
            options.r = sizes[variant / 2], options.scaling = variant % 2 ? MODES_SCALE_UNIT : MODES_SCALE_FREQUENCY;
            fem_status status = modes_condense(&s.problem, &pool, s.basis.omega2, &options, NULL, &basis, &report);
            if (status == FEM_BAD_INPUT) continue; // fewer columns are independent
            assert_ok(status);
            for (int i = 0; i < basis.r; i++)
                for (int j = 0; j <= i; j++) {
                    const double *x = column(basis.U, s.n, i), *y = column(basis.U, s.n, j);
                    truth = fmax(truth, fabs(mass_product(&s, x, y) - (i == j)));
                }
            printf("    %2d columns, %2d polished: said %.1e, true %.1e\n", basis.r, report.polished,
                   report.orthogonality, truth);
            assert_true(truth < report.orthogonality + 5e-15 && report.orthogonality <= 1e-13);
            kinds[report.polished == 0 ? 0 : report.polished < basis.r ? 1 : 2]++;
            if (report.polished < basis.r) narrowest = fmin(narrowest, report.orthogonality / truth);
            fem_free(report.singular);
            modes_basis_destroy(&basis);
        }
        modes_pool_destroy(&pool);
    }
    printf("  bases with nothing, something, all polished: %d, %d, %d; said at least %.1f times the truth\n", kinds[0],
           kinds[1], kinds[2], narrowest);
    assert_true(kinds[0] > 2 && kinds[1] > 2 && kinds[0] + kinds[1] + kinds[2] > 20);
    sample_destroy(&s);
}

// orthogonal candidates with weights over fourteen orders of magnitude: each singular value to nine digits
static void test_graded(void **state) {
    (void)state;
    sample                 s;
    modes_pool             pool = {0};
    modes_basis            basis = {0};
    modes_condense_report  report;
    modes_condense_options options = modes_condense_default_options();
    double                 worst = 0;
    sample_create(&s, FEM_T4, cells, FEM_STVK, true, 15);
    assert_ok(modes_pool_from_basis(&pool, &s.basis));
    for (int j = 0; j < 15; j++) dense_scale(s.n, pow(10, -j), column(pool.X, s.n, j));
    options.scaling = MODES_SCALE_NONE, options.r = 15;
    assert_ok(modes_condense(&s.problem, &pool, NULL, &options, NULL, &basis, &report));
    for (int j = 0; j < 15; j++) worst = fmax(worst, fabs(report.singular[j] / pow(10, -j) - 1));
    printf("  relative error of singular values 1 .. 1e-14: %.0e\n", worst);
    assert_true(worst < 1e-9 && report.rank == 15);
    fem_free(report.singular);
    modes_basis_destroy(&basis), modes_pool_destroy(&pool);
    // and by the frequencies: omega_1^2 / omega_j^2
    options.scaling = MODES_SCALE_FREQUENCY;
    assert_ok(modes_pool_from_basis(&pool, &s.basis));
    assert_ok(modes_condense(&s.problem, &pool, s.basis.omega2, &options, NULL, &basis, &report));
    for (int j = 0; j < 15; j++)
        assert_true(fabs(report.singular[j] * s.basis.omega2[j] / s.basis.omega2[0] - 1) < 1e-9);
    fem_free(report.singular);
    modes_basis_destroy(&basis), modes_pool_destroy(&pool);
    sample_destroy(&s);
}

// an energy takes as few columns as reach it; columns that depend on others are seen
static void test_energy_and_rank(void **state) {
    (void)state;
    sample                 s;
    modes_pool             pool = {0}, twice = {0};
    modes_basis            basis = {0};
    modes_condense_report  report;
    modes_condense_options options = modes_condense_default_options();
    sample_create(&s, FEM_T4, cells, FEM_STVK, true, 8);
    make_pool(&s, &pool);
    const double energies[] = {0.5, 0.9, 0.999, 0.999999};
    options.r = 0;
    for (int k = 0; k < 4; k++) {
        options.energy = energies[k];
        assert_ok(modes_condense(&s.problem, &pool, s.basis.omega2, &options, NULL, &basis, &report));
        double total = 0, less = 0;
        for (int j = 0; j < report.singular_count; j++) {
            double square = report.singular[j] * report.singular[j];
            total += square;
            if (j < basis.r - 1) less += square;
        }
        printf("  energy %.6f: %d columns keep %.8f, one less %.8f\n", energies[k], basis.r, report.energy_kept,
               less / total);
        assert_true(report.energy_kept >= energies[k] && less / total < energies[k]);
        fem_free(report.singular);
    }
    // every candidate twice: rank 44, not 88
    double *X = fem_alloc(88 * (size_t)s.n, 8);
    memcpy(X, pool.X, 44 * (size_t)s.n * 8), memcpy(column(X, s.n, 44), pool.X, 44 * (size_t)s.n * 8);
    assert_ok(modes_pool_from_shapes(&twice, s.n, 88, X));
    options.scaling = MODES_SCALE_UNIT, options.energy = 1, options.r = 0;
    assert_ok(modes_condense(&s.problem, &twice, NULL, &options, NULL, &basis, &report));
    printf("  88 candidates of 44 dimensions: rank %d, %d columns\n", report.rank, basis.r);
    assert_true(report.rank == 44 && basis.r == 44);
    fem_free(report.singular);
    options.energy = 0, options.r = 50;
    assert_fails(modes_condense(&s.problem, &twice, NULL, &options, NULL, &basis, NULL), FEM_BAD_INPUT,
                 "span only 44 dimensions");
    options.method = MODES_RANDOM_PROJECTION;
    assert_fails(modes_condense(&s.problem, &twice, NULL, &options, NULL, &basis, NULL), FEM_BAD_INPUT,
                 "only 44 of them are independent");
    assert_int_equal(basis.r, 44); // the old one
    fem_free(X);
    modes_basis_destroy(&basis), modes_pool_destroy(&pool), modes_pool_destroy(&twice);
    sample_destroy(&s);
}

// Mean over the candidates of the relative least-squares error.
static double mean_error(const sample *s, const modes_pool *pool, const modes_basis *basis) {
    double *errors = fem_alloc((size_t)pool->count, 8), sum = 0;
    assert_ok(modes_pool_errors(&s->problem, pool, basis, errors));
    for (int j = 0; j < pool->count; j++) sum += errors[j] / pool->count;
    fem_free(errors);
    return sum;
}

// As in fig. 11 of [Yang et al. 2015]: PCA keeps most, randomized PCA as good as that, random projection less; all
// errors fall with r. What is lost (energy after weighting) is least for PCA by its definition.
static void test_methods(void **state) {
    (void)state;
    sample     s;
    modes_pool pool = {0};
    const int  sizes[] = {10, 20, 30, 60, 90};
    double     last[3] = {INFINITY, INFINITY, INFINITY};
    sample_create(&s, FEM_T4, cells, FEM_STVK, true, 12);
    make_pool(&s, &pool);
    printf("   r | mean error: PCA, randomized, projection | energy lost\n");
    for (int k = 0; k < 5; k++) {
        double lost[3], error[3];
        for (int method = 0; method < 3; method++) {
            modes_basis            basis = {0};
            modes_condense_report  report;
            modes_condense_options options = modes_condense_default_options();
            options.method = (modes_condense_method)method, options.r = sizes[k], options.scaling = MODES_SCALE_UNIT;
            assert_ok(modes_condense(&s.problem, &pool, s.basis.omega2, &options, NULL, &basis, &report));
            check_basis(&s, &pool, options.scaling, &basis, &report, true);
            lost[method] = 1 - report.energy_kept, error[method] = mean_error(&s, &pool, &basis);
            assert_true(error[method] < last[method]);
            last[method] = error[method];
            fem_free(report.singular);
            modes_basis_destroy(&basis);
        }
        printf("  %2d |     %.2e %.2e %.2e | %.2e %.2e %.2e\n", sizes[k], error[0], error[1], error[2], lost[0],
               lost[1], lost[2]);
        if (sizes[k] == 90) {
            for (int method = 0; method < 3; method++) assert_true(error[method] < 1e-7);
            continue;
        }
        assert_true(lost[0] > 1e-6 && lost[0] <= lost[1] * (1 + 1e-9) && lost[0] <= lost[2] * (1 + 1e-9));
        assert_true(lost[1] < 1.2 * lost[0] && lost[2] < 20 * lost[0]);
    }
    modes_pool_destroy(&pool);
    sample_destroy(&s);
}

// One column out of orthonormal candidates shows its random numbers: +a, 0 or -a, with 1/6, 4/6, 1/6 of each.
static void test_projection_numbers(void **state) {
    (void)state;
    enum { SEEDS = 60, MODES = 40, ALL = SEEDS * MODES };
    sample     s;
    modes_pool pool = {0};
    int        counts[3] = {0};
    sample_create(&s, FEM_T4, cells, FEM_STVK, true, MODES);
    assert_ok(modes_pool_from_basis(&pool, &s.basis));
    double *Mu = fem_alloc((size_t)s.n, sizeof *Mu);
    for (int seed = 1; seed <= SEEDS; seed++) {
        modes_basis            basis = {0};
        modes_condense_options options = modes_condense_default_options();
        double                 part[MODES], largest = 0;
        options.method = MODES_RANDOM_PROJECTION, options.scaling = MODES_SCALE_UNIT, options.r = 1;
        options.seed = (unsigned)seed;
        assert_ok(modes_condense(&s.problem, &pool, NULL, &options, NULL, &basis, NULL));
        fem_sparse_multiply(s.problem.M, 1, basis.U, Mu);
        for (int j = 0; j < MODES; j++) {
            part[j] = dense_dot(s.n, s.basis.U + (size_t)j * (size_t)s.n, Mu);
            largest = fmax(largest, fabs(part[j]));
        }
        for (int j = 0; j < MODES; j++) {
            double sign = part[j] / largest;
            assert_true(fabs(sign) < 1e-9 || fabs(fabs(sign) - 1) < 1e-9);
            counts[fabs(sign) < 0.5 ? 1 : sign > 0 ? 2 : 0]++;
        }
        modes_basis_destroy(&basis);
    }
    printf("  of %d numbers %.3f, %.3f, %.3f are negative, zero, positive\n", ALL, counts[0] / (double)ALL,
           counts[1] / (double)ALL, counts[2] / (double)ALL);
    for (int k = 0; k < 3; k++) { // within four standard deviations
        double p = k == 1 ? 4.0 / 6 : 1.0 / 6;
        assert_true(fabs(counts[k] / (double)ALL - p) < 4 * sqrt(p * (1 - p) / ALL));
    }
    fem_free(Mu);
    modes_pool_destroy(&pool);
    sample_destroy(&s);
}

// the same columns, bit by bit, on any number of threads and again; another seed gives others
static void test_repeatable(void **state) {
    (void)state;
    sample     s;
    modes_pool pool = {0};
    sample_create(&s, FEM_T4, cells, FEM_STVK, false, 6);
    make_pool(&s, &pool);
    for (int method = 0; method < 3; method++) {
        modes_basis            a = {0}, b = {0}, c = {0};
        modes_condense_options options = modes_condense_default_options();
        options.method = (modes_condense_method)method, options.r = 8;
        fem_set_threads(1);
        assert_ok(modes_condense(&s.problem, &pool, s.basis.omega2, &options, NULL, &a, NULL));
        fem_set_threads(3);
        assert_ok(modes_condense(&s.problem, &pool, s.basis.omega2, &options, NULL, &b, NULL));
        fem_set_threads(0);
        options.seed = 2;
        assert_ok(modes_condense(&s.problem, &pool, s.basis.omega2, &options, NULL, &c, NULL));
        assert_memory_equal(a.U, b.U, 8 * (size_t)s.n * 8);
        assert_true((memcmp(a.U, c.U, 8 * (size_t)s.n * 8) != 0) == (method != MODES_PCA));
        modes_basis_destroy(&a), modes_basis_destroy(&b), modes_basis_destroy(&c);
    }
    modes_pool_destroy(&pool);
    sample_destroy(&s);
}

// shapes t psi_0 with known t: both ways of choosing; and against a slow farthest-point search
static void test_select(void **state) {
    (void)state;
    sample       s;
    const double t[7] = {0.2, 1.1, 1.5, 2.3, 2.2, 0.1, -1};
    int         *chosen = NULL, count = 0;
    sample_create(&s, FEM_T4, cells, FEM_STVK, true, 6);
    double *X = fem_alloc(40 * (size_t)s.n, 8);
    for (int j = 0; j < 7; j++)
        for (int i = 0; i < s.n; i++) column(X, s.n, j)[i] = t[j] * s.basis.U[i];
    assert_ok(modes_select(&s.M, s.n, 7, X, MODES_SELECT_SEQUENCE, 1, 0, &chosen, &count));
    assert_int_equal(count, 4); // 1.1, 2.3, 0.1, -1
    assert_memory_equal(chosen, ((int[]){1, 3, 5, 6}), 4 * sizeof(int));
    fem_free(chosen);
    assert_ok(modes_select(&s.M, s.n, 7, X, MODES_SELECT_FARTHEST, 1, 0, &chosen, &count));
    assert_int_equal(count, 3); // 2.3, then 1.1 (from 0: 1.1, from 2.3: 1.2), then -1
    assert_memory_equal(chosen, ((int[]){3, 1, 6}), 3 * sizeof(int));
    fem_free(chosen);
    assert_fails(modes_select(&s.M, s.n, 7, X, MODES_SELECT_FARTHEST, 5, 0, &chosen, &count), FEM_BAD_INPUT,
                 "none of 7 shapes is 5 away");
    assert_fails(modes_select(&s.M, s.n, 7, X, MODES_SELECT_FARTHEST, -1, 0, &chosen, &count), FEM_BAD_INPUT,
                 "distance -1");
    uint64_t random = 9;
    for (int j = 0; j < 40; j++) {
        memset(column(X, s.n, j), 0, (size_t)s.n * 8);
        for (int k = 0; k < 6; k++) dense_axpy(s.n, test_random(&random), column(s.basis.U, s.n, k), column(X, s.n, j));
    }
    for (int plain = 0; plain < 2; plain++) {
        assert_ok(modes_select(plain ? NULL : &s.M, s.n, 40, X, MODES_SELECT_FARTHEST, 0, 12, &chosen, &count));
        assert_int_equal(count, 12);
        double *d = fem_alloc((size_t)s.n, 8);
        for (int k = 0; k < 12; k++) { // no other is farther from rest and from those before it
            double best = 0, own = 0;
            for (int j = 0; j < 40; j++) {
                double nearest = INFINITY;
                for (int l = -1; l < k; l++) {
                    for (int i = 0; i < s.n; i++)
                        d[i] = column(X, s.n, j)[i] - (l < 0 ? 0 : column(X, s.n, chosen[l])[i]);
                    nearest = fmin(nearest, plain ? dense_dot(s.n, d, d) : mass_product(&s, d, d));
                }
                best = fmax(best, nearest);
                if (j == chosen[k]) own = nearest;
            }
            assert_true(own >= best * (1 - 1e-10));
        }
        fem_free(d), fem_free(chosen);
    }
    fem_free(X);
    sample_destroy(&s);
}

static bool stop_at_once(void *context, const char *what, double fraction) {
    (void)what, (void)fraction;
    return --*(int *)context > 0;
}

// loads on the tip of a bar: from their static solutions to a basis that holds those shapes; a load without a solution
// is named, or left out
static void test_sketch(void **state) {
    (void)state;
    enum { LOADS = 9 };
    sample               s;
    solver_sketch_report report;
    int                  count = LOADS, kept = 0, *chosen = NULL, solved[LOADS];
    sample_create(&s, FEM_H8, (const int[3]){8, 2, 2}, FEM_STVK, true, 4);
    size_t         n = (size_t)s.n;
    double        *loads = fem_calloc(LOADS * n, 8), *shapes = fem_alloc(LOADS * n, 8);
    const fem_set *tip = fem_mesh_vertex_set(&s.mesh, "x1");
    for (int k = 0; k < LOADS; k++) {
        const double force[3] = {0, 400 * sin(0.7 * k), 300 * cos(0.7 * k)};
        solver_add_vertex_force(tip->count, tip->items, force, loads + (size_t)k * n);
    }
    solver_options options = solver_default_options();
    assert_ok(solver_sketch(s.body, s.fixed, &options, LOADS, loads, NULL, shapes));
    double *force = fem_alloc(n, 8), residual = 0, bend = 0;
    for (int k = 0; k < LOADS; k++) {
        fem_body_evaluate(s.body, column(shapes, s.n, k), NULL, force, NULL);
        for (int i = 0; i < s.n; i++) {
            bend = fmax(bend, fabs(column(shapes, s.n, k)[i]));
            if (!s.fixed[i]) residual = fmax(residual, fabs(force[i] - loads[(size_t)k * n + (size_t)i]));
        }
    }
    printf("  %d loads, largest displacement %.2f m, residual %.1e N\n", count, bend, residual);
    assert_true(bend > 0.3 && residual < 1e-4);
    // select, condense: every shape is in the span, and much better than in that of as many vibration modes
    assert_ok(modes_select(&s.M, s.n, count, shapes, MODES_SELECT_FARTHEST, 4, 0, &chosen, &kept));
    double *selected = fem_alloc((size_t)kept * n, 8);
    for (int k = 0; k < kept; k++) memcpy(column(selected, s.n, k), column(shapes, s.n, chosen[k]), n * 8);
    modes_pool             pool = {0}, all = {0};
    modes_basis            basis = {0};
    modes_condense_options condense = modes_condense_default_options();
    condense.scaling = MODES_SCALE_NONE, condense.r = 4;
    assert_ok(modes_pool_from_shapes(&pool, s.n, kept, selected));
    assert_ok(modes_pool_from_shapes(&all, s.n, count, shapes));
    assert_ok(modes_condense(&s.problem, &pool, NULL, &condense, NULL, &basis, NULL));
    double sketched = mean_error(&s, &all, &basis), linear = mean_error(&s, &all, &s.basis);
    printf("  %d shapes chosen; mean error in 4 columns %.1e, in 4 vibration modes %.1e\n", kept, sketched, linear);
    assert_true(kept >= 4 && kept < LOADS && sketched < 0.02 && sketched < 0.3 * linear);
    fem_free(chosen), fem_free(selected), fem_free(force);
    modes_pool_destroy(&pool), modes_pool_destroy(&all), modes_basis_destroy(&basis);
    // the sixth load is not a number
    double *again = fem_alloc(LOADS * n, 8);
    loads[5 * n + 3 * (size_t)tip->items[0]] = NAN;
    assert_fails(solver_sketch(s.body, s.fixed, &options, LOADS, loads, NULL, again), FEM_BAD_INPUT,
                 "load 6 of 9: the load at vertex");
    assert_ok(solver_sketch_solvable(s.body, s.fixed, &options, LOADS, loads, NULL, again, solved, &report));
    assert_int_equal(report.solved, LOADS - 1);
    assert_memory_equal(solved, ((int[]){0, 1, 2, 3, 4, 6, 7, 8}), 8 * sizeof(int));
    assert_non_null(strstr(report.message, "load 6 of 9"));
    assert_true(test_relative_error(s.n, column(again, s.n, 5), column(shapes, s.n, 6)) < 1e-6);
    assert_fails(solver_sketch(s.body, s.fixed, &options, 0, loads, NULL, again), FEM_BAD_INPUT, "a list of 0 loads");
    assert_fails(solver_sketch_solvable(s.body, NULL, &options, 2, loads, NULL, again, solved, NULL), FEM_BAD_INPUT,
                 "none of 2 loads has a solution; the first: load 1 of 2: the body is not held");
    int          calls = 8;
    fem_progress progress = {.report = stop_at_once, .context = &calls};
    assert_fails(solver_sketch(s.body, s.fixed, &options, LOADS, loads, &progress, again), FEM_STOPPED, "stopped");
    fem_free(loads), fem_free(shapes), fem_free(again);
    sample_destroy(&s);
}

static void test_failures(void **state) {
    (void)state;
    sample                       s;
    modes_pool                   pool = {0}, shapes = {0};
    modes_basis                  basis = {0};
    const modes_condense_options usual = modes_condense_default_options();
    modes_condense_options       o = usual;
    sample_create(&s, FEM_T4, cells, FEM_STVK, true, 8);
    make_pool(&s, &pool);
#define refuses(text)                                                                                                  \
    do {                                                                                                               \
        assert_fails(modes_condense(&s.problem, &pool, s.basis.omega2, &o, NULL, &basis, NULL), FEM_BAD_INPUT, text);  \
        o = usual;                                                                                                     \
    } while (0)
    o.r = 45;
    refuses("condense.r is 45, expected at most the 44 candidates");
    o.energy = 1.5;
    refuses("condense.energy is 1.5");
    o.r = 0;
    refuses("condense.r and condense.energy are both 0");
    o.r = 0, o.energy = 0.9, o.method = MODES_RANDOMIZED_PCA;
    refuses("random methods need the number of columns");
    o.energy = 0.9, o.method = MODES_RANDOM_PROJECTION;
    refuses("a random projection has no singular values");
    o.oversampling = -1;
    refuses("condense.oversampling is -1");
    o.metric = MODES_METRIC_LUMPED, o.method = MODES_RANDOMIZED_PCA;
    refuses("only PCA can use the lumped mass");
    double first = s.basis.omega2[0];
    s.basis.omega2[0] = 0;
    refuses("omega2[0] is 0, expected > 0: leave rigid modes out");
    s.basis.omega2[0] = first;
    assert_fails(modes_condense(&s.problem, &pool, NULL, &o, NULL, &basis, NULL), FEM_BAD_INPUT,
                 "candidate 0 has no frequency");
    pool.X[1000] = NAN;
    refuses("is not finite");
    int          calls = 1;
    fem_progress progress = {.report = stop_at_once, .context = &calls};
    assert_fails(modes_condense(&s.problem, &pool, s.basis.omega2, &o, &progress, &basis, NULL), FEM_STOPPED,
                 "stopped");
    double *zero = fem_calloc(40 * (size_t)s.n, 8);
    assert_ok(modes_pool_from_shapes(&shapes, s.n, 40, zero));
    o.scaling = MODES_SCALE_NONE;
    assert_fails(modes_condense(&s.problem, &shapes, NULL, &o, NULL, &basis, NULL), FEM_BAD_INPUT,
                 "all 40 candidates are zero");
    modes_pool_destroy(&shapes);
    assert_fails(modes_condense(&s.problem, &shapes, NULL, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "no candidates");
    assert_null(basis.U);
    fem_free(zero);
    modes_pool_destroy(&pool);
    sample_destroy(&s);
#undef refuses
}

typedef fem_status (*attempt)(const sample *s, const modes_pool *pool, int variant);

static fem_status try_condense(const sample *s, const modes_pool *pool, int variant) {
    modes_basis            basis = {0};
    modes_condense_report  report = {0};
    modes_condense_options options = modes_condense_default_options();
    options.method = (modes_condense_method)(variant % 3), options.r = 5;
    if (variant == 3) options.metric = MODES_METRIC_LUMPED;
    fem_status status = modes_condense(&s->problem, pool, s->basis.omega2, &options, NULL, &basis, &report);
    fem_free(report.singular);
    if (status == FEM_OK) {
        double errors[64];
        status = modes_pool_errors(&s->problem, pool, &basis, errors);
    }
    modes_basis_destroy(&basis);
    return status;
}

static fem_status try_select(const sample *s, const modes_pool *pool, int variant) {
    int       *chosen = NULL, count = 0;
    fem_status status =
        modes_select(&s->M, s->n, pool->count, pool->X, (modes_select_method)variant, 0, 0, &chosen, &count);
    fem_free(chosen);
    return status;
}

static fem_status try_sketch(const sample *s, const modes_pool *pool, int variant) {
    (void)pool, (void)variant;
    double        *loads = calloc((size_t)s->n, 16), *shapes = calloc((size_t)s->n, 16);
    solver_options options = solver_default_options();
    fem_status     status = solver_sketch(s->body, s->fixed, &options, 2, loads, NULL, shapes);
    free(loads), free(shapes);
    return status;
}

// more candidates than memory holds, or than LAPACK can count, are refused before anything is computed
static void test_size(void **state) {
    (void)state;
    sample                 s;
    modes_basis            basis = {0};
    modes_recipe_report    report;
    modes_condense_options o = modes_condense_default_options();
    modes_recipe           recipe = modes_default_recipe(MODES_KRYLOV);
    double                 bytes = 0;
    sample_create(&s, FEM_T4, cells, FEM_STVK, true, 0);
    recipe.linear = 4, recipe.derivatives = 3, recipe.count = 6;
    recipe.max_bytes = 8.0 * s.n * (4 + 10 + 40 + 160); // the candidates alone
    assert_fails(modes_build(&s.problem, s.body, &recipe, NULL, NULL, &basis, NULL), FEM_BAD_INPUT,
                 "214 linear modes and derivatives up to order 3");
    printf("  %s\n", fem_message());
    recipe.modes[1] = 3, recipe.modes[2] = 1;
    assert_ok(modes_build(&s.problem, s.body, &recipe, NULL, NULL, &basis, &report));
    assert_int_equal(report.candidates, 4 + 10 + 3 * 6 + 1);
    recipe.modes[1] = 5;
    assert_fails(modes_build(&s.problem, s.body, &recipe, NULL, NULL, &basis, NULL), FEM_BAD_INPUT,
                 "derivatives.modes[1] is 5, but the basis has 4 modes");
    assert_ok(modes_condense_size(&o, 1000000, 20000, &bytes));
    assert_true(bytes > 8 * 4 * 4e8);
    assert_fails(modes_condense_size(&o, 1000000, 20001, &bytes), FEM_BAD_INPUT, "randomized PCA or fewer");
    assert_ok(modes_condense_size(&o, 3000, 20001, &bytes));
    o.method = MODES_RANDOMIZED_PCA;
    assert_ok(modes_condense_size(&o, 1000000, 20001, &bytes));
    assert_true(bytes < 8 * 4e8);
    modes_basis_destroy(&basis);
    sample_destroy(&s);
}

// a refused allocation anywhere is reported and leaves nothing behind
static void test_allocation_failure(void **state) {
    (void)state;
    sample        s;
    modes_pool    pool = {0};
    const attempt attempts[] = {try_condense, try_condense, try_condense, try_condense,
                                try_select,   try_select,   try_sketch};
    const int     variants[] = {0, 1, 2, 3, 0, 1, 0};
    sample_create(&s, FEM_T4, (const int[3]){3, 2, 2}, FEM_STVK, true, 4);
    make_pool(&s, &pool);
    for (int k = 0; k < 7; k++) {
        long failures = 0;
        for (;; failures++) {
            long before = fem_memory_blocks();
            fem_memory_fail_after(failures);
            fem_status status = attempts[k](&s, &pool, variants[k]);
            fem_memory_fail_after(-1);
            assert_int_equal(fem_memory_blocks(), before);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
        printf("  %ld allocations refused one after the other\n", failures);
        assert_true(failures > 4);
    }
    modes_pool_destroy(&pool);
    sample_destroy(&s);
}

// With `keep` the linear modes stay in the span, and derivatives fill the rest; without, PCA trades some of them away.
static void test_keep(void **unused) {
    (void)unused;
    sample       s;
    const int    own[3] = {5, 2, 2};
    modes_recipe recipe = modes_default_recipe(MODES_LANCZOS);
    sample_create(&s, FEM_H8, own, FEM_STVK, true, 8);
    recipe.linear = 8, recipe.count = 12;
    double *Mx = fem_alloc((size_t)s.n, sizeof *Mx), worst[2] = {0, 0};
    for (int keep = 0; keep < 2; keep++) {
        modes_basis U = {0};
        recipe.keep = keep;
        assert_ok(modes_build(&s.problem, s.body, &recipe, NULL, NULL, &U, NULL));
        assert_int_equal(U.r, 12);
        for (int l = 0; l < 8; l++) { // what of a vibration mode is not in the span, in the mass norm
            const double *mode = s.basis.U + (size_t)s.n * (size_t)l;
            double        inside = 0;
            fem_sparse_multiply(&s.M, 1, mode, Mx);
            double whole = dense_dot(s.n, mode, Mx);
            for (int i = 0; i < U.r; i++) {
                double part = dense_dot(s.n, U.U + (size_t)s.n * (size_t)i, Mx);
                inside += part * part;
            }
            worst[keep] = fmax(worst[keep], sqrt(fmax(1 - inside / whole, 0)));
        }
        modes_basis_destroy(&U);
    }
    printf("   of the linear modes at most %.1e are missing with keep, %.2f without\n", worst[1], worst[0]);
    assert_true(worst[1] < 1e-5 && worst[0] > 0.01);
    fem_free(Mx);
    sample_destroy(&s);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_pca),
        cmocka_unit_test(test_mass_product),
        cmocka_unit_test(test_gram),
        cmocka_unit_test(test_trust),
        cmocka_unit_test(test_graded),
        cmocka_unit_test(test_energy_and_rank),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_projection_numbers),
        cmocka_unit_test(test_repeatable),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_sketch),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_allocation_failure),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}

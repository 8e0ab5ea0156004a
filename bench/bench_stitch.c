// P2 Table 1: the cost of linear modes (a), of their derivatives (b) and of condensing (c) after stitching, against
// making them from scratch; accuracy of the three forms against the modes from scratch, and what the estimate of
// quality says of it; locking (P2 Fig. 1 b, 7); coverage curves and two rounds (P2 Fig. 3, 10); speed-up against the
// number of stitches (P2 Fig. 5); cubature that is used again (P2 Fig. 4). One thread, processor time.
//
// "From scratch" factorises the stitched matrix and calls ARPACK, as P2's original does; its derivatives are made many
// at once. "One by one" makes these as the textbook has it, a right-hand side and a solve at a time, which is what P2
// compares with. The update holds the factor, the modes and the derivatives of the body before.
#include "bench/plot.h"
#include "bench/stitch_case.h"
#include "libsolver/solver.h"

enum { LINEAR = 30, JUDGED = 20, MOST_COLUMNS = 90 };

static double now(void) { return fem_cpu_seconds(); }

typedef struct before { // what a session holds of the body before
    modes_inverse  *inverse;
    modes_basis     basis;
    modes_rights    rights;
    modes_stitched *stitched;
} before;

static void before_create(before *b, stitch_model *m, bool rights) {
    modes_lanczos_options options = modes_lanczos_default_options();
    *b = (before){0};
    bench_try(modes_inverse_create(&b->inverse, &m->body.problem, MODES_BORDER_MASS));
    options.count = m->old_modes, options.inverse = b->inverse;
    bench_try(modes_lanczos(&m->body.problem, &options, NULL, &b->basis, NULL));
    if (rights) bench_try(modes_rights_create(&b->rights, m->body.body, b->inverse, &b->basis, m->derivatives - 21));
    bench_try(modes_stitched_create(&b->stitched, &m->body.problem, b->inverse));
    if (m->factor != 1) {
        int domain = modes_stitched_domain_of(b->stitched, m->scaled);
        bench_try(modes_stitched_scale(b->stitched, domain, m->factor));
        for (int j = 0; j < b->basis.r; j++) { // a mode moves one domain
            const double *u = b->basis.U + (size_t)j * (size_t)b->basis.n;
            int           most = 0;
            for (int i = 0; i < b->basis.n; i++)
                if (fabs(u[i]) > fabs(u[most])) most = i;
            if (modes_stitched_domain_of(b->stitched, most / 3) == domain) b->basis.omega2[j] *= m->factor;
        }
    }
}

static void before_destroy(before *b) {
    modes_stitched_destroy(b->stitched);
    modes_inverse_destroy(b->inverse);
    modes_basis_destroy(&b->basis);
    modes_rights_destroy(&b->rights);
}

typedef struct scratch {
    fem_sparse     K;
    modes_problem  problem;
    modes_inverse *inverse;
    modes_basis    basis;
    double         seconds, factor; // both, and the factorisation alone
} scratch;

static void scratch_create(scratch *s, const stitch_model *m, const modes_stitched *stitched) {
    modes_lanczos_options options = modes_lanczos_default_options();
    *s = (scratch){.problem = m->body.problem};
    bench_try(modes_stitched_matrix(stitched, &s->K)); // K^ itself is not counted
    s->problem.K = &s->K;
    double begun = now();
    bench_try(modes_inverse_create(&s->inverse, &s->problem, MODES_BORDER_MASS));
    s->factor = now() - begun;
    options.count = LINEAR, options.inverse = s->inverse;
    bench_try(modes_lanczos(&s->problem, &options, NULL, &s->basis, NULL));
    s->seconds = now() - begun;
}

static void scratch_destroy(scratch *s) {
    modes_inverse_destroy(s->inverse);
    modes_basis_destroy(&s->basis);
    fem_sparse_destroy(&s->K);
}

// ---- (a) and accuracy ---------------------------------------------------------------------------------------------

typedef struct figures {
    double              seconds, error, share, examined;
    double              guess_error, guess_share; // of the estimate
    bool                rebuild;
    modes_stitch_report report;
} figures;

static figures measure_form(before *b, const stitch_model *m, const scratch *s, modes_stitch_form form,
                            modes_basis *basis) {
    modes_stitch_options options = modes_stitch_default_options();
    double               covered[JUDGED];
    modes_stitch_quality quality = {0};
    figures              f = {.seconds = INFINITY, .share = 1};
    options.form = form, options.count = LINEAR;
    for (int run = 0; run < 3; run++) { // the whole update: stitches are added, nothing of them is at hand
        if (modes_stitched_count(b->stitched) > 0) bench_try(modes_stitched_remove(b->stitched, m->count, m->stitches));
        double begun = now();
        bench_try(modes_stitched_add(b->stitched, m->count, m->stitches));
        bench_try(modes_stitched_modes(b->stitched, &b->basis, &options, basis, &f.report));
        f.seconds = fmin(f.seconds, now() - begun);
    }
    modes_rebuild_rule rule = modes_rebuild_default_rule();
    f.examined = now();
    bench_try(modes_stitched_examine(b->stitched, basis, &rule, &quality));
    f.examined = now() - f.examined;
    f.guess_error = quality.worst_error, f.guess_share = quality.least_share, f.rebuild = quality.rebuild;
    modes_stitch_quality_destroy(&quality);
    bench_try(modes_coverage(&m->body.problem, basis->r, basis->U, JUDGED, s->basis.U, covered));
    for (int j = 0; j < JUDGED; j++) {
        f.error = fmax(f.error, fabs(sqrt(basis->omega2[j] / s->basis.omega2[j]) - 1));
        f.share = fmin(f.share, covered[j]);
    }
    return f;
}

// ---- (b) ----------------------------------------------------------------------------------------------------------

static double derive_from_scratch(const stitch_model *m, const scratch *s, modes_pool *pool) {
    modes_derivative_options options = modes_derivative_default_options();
    fem_pair                *pairs = fem_alloc((size_t)m->derivatives, sizeof *pairs);
    if (!pairs) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for pairs"));
    bench_try(modes_lowest_pairs(LINEAR, s->basis.omega2, m->derivatives, pairs));
    options.pairs = pairs, options.pair_count = m->derivatives;
    double begun = now();
    bench_try(modes_derivatives(&s->problem, m->body.body, s->inverse, &s->basis, &options, NULL, pool, NULL));
    fem_free(pairs);
    return now() - begun;
}

// As P2's original has it: the factor of K^, then for each pair an element loop and a solve.
static double derive_one_by_one(const stitch_model *m, const scratch *s) {
    fem_pair *pairs = fem_alloc((size_t)m->derivatives, sizeof *pairs);
    double   *F = fem_calloc(3 * (size_t)m->body.n, sizeof *F), *X = F + m->body.n, *rest = X + m->body.n;
    if (!pairs || !F) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for pairs"));
    bench_try(modes_lowest_pairs(LINEAR, s->basis.omega2, m->derivatives, pairs));
    double begun = now();
    for (int p = 0; p < m->derivatives; p++) {
        const double *U = s->basis.U;
        fem_body_second(m->body.body, rest, U + (size_t)pairs[p].a * (size_t)m->body.n,
                        U + (size_t)pairs[p].b * (size_t)m->body.n, F);
        bench_try(modes_inverse_solve(s->inverse, 1, F, X));
    }
    double seconds = now() - begun + s->factor;
    fem_free(pairs), fem_free(F);
    return seconds;
}

// ---- (c) ----------------------------------------------------------------------------------------------------------

// Singular values of the candidates scaled by the root of the lumped mass, by LAPACK: what "standard SVD" means.
static double plain_svd(const stitch_model *m, const modes_pool *pool) {
    size_t  n = (size_t)pool->n;
    double *masses = fem_alloc(n / 3, sizeof *masses), *X = fem_alloc(n * (size_t)pool->count, sizeof *X);
    double *values = fem_alloc((size_t)pool->count, sizeof *values), *Vt;
    Vt = fem_alloc((size_t)pool->count * (size_t)pool->count, sizeof *Vt);
    if (!masses || !X || !values || !Vt) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for an SVD"));
    double begun = now();
    fem_body_vertex_masses(m->body.body, masses);
    for (size_t i = 0; i < n * (size_t)pool->count; i++) X[i] = sqrt(masses[i % n / 3]) * pool->X[i];
    bench_try(dense_svd(pool->n, pool->count, X, values, Vt));
    double seconds = now() - begun;
    fem_free(masses), fem_free(X), fem_free(values), fem_free(Vt);
    return seconds;
}

static double condense(const stitch_model *m, const modes_pool *pool, const double *omega2,
                       modes_condense_method method, modes_basis *basis) {
    modes_condense_options options = modes_condense_default_options();
    options.method = method, options.r = MOST_COLUMNS < pool->count ? MOST_COLUMNS : pool->count;
    options.energy = method == MODES_RANDOMIZED_PCA; // a sketch may span fewer
    options.no_frequencies = true;
    double begun = now();
    bench_try(modes_condense(&m->body.problem, pool, omega2, &options, NULL, basis, NULL));
    return now() - begun;
}

// ---- locking (P2 Fig. 1 b and 7) ------------------------------------------------------------------------------------

// Work of a load in a basis: f^T U (U^T K^ U)^-1 U^T f
static double compliance(const modes_stitched *s, const modes_basis *basis, const double *f) {
    int     r = basis->r, n = basis->n;
    double *KU = fem_alloc((size_t)n * (size_t)r, sizeof *KU), *A = fem_alloc((size_t)r * (size_t)r, sizeof *A);
    double *g = fem_alloc(2 * (size_t)r, sizeof *g);
    if (!KU || !A || !g) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for a load"));
    modes_stitched_multiply(s, r, basis->U, KU);
    dense_gemm(true, false, r, r, n, 1, basis->U, KU, 0, A);
    dense_gemv_t_set(n, r, 1, basis->U, f, g);
    memcpy(g + r, g, (size_t)r * sizeof *g);
    bench_try(dense_cholesky(r, A));
    dense_cholesky_solve(r, A, 1, g);
    double work = dense_dot(r, g, g + r);
    fem_free(KU), fem_free(A), fem_free(g);
    return work;
}

// Gravity sideways on the whole body: how far it gives, in parts of what full FEM gives.
static void print_locking(before *b, const stitch_model *m, const modes_basis *fresh) {
    int                  n = m->body.n;
    double              *e = fem_calloc(4 * (size_t)n, sizeof *e), *f = e + n, *copy = f + n, *x = copy + n;
    modes_basis          without = {0};
    modes_stitch_options options = modes_stitch_default_options();
    if (!e) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for a load"));
    for (int i = 1; i < n; i += 3) e[i] = 1;
    fem_sparse_multiply(&m->body.M, 1, e, f);
    for (int i = 0; i < n; i++) copy[i] = f[i] = m->body.fixed[i] ? 0 : f[i];
    bench_try(modes_stitched_solve(b->stitched, 1, copy, x));
    double full = dense_dot(n, f, x);
    options.count = LINEAR, options.rigid_out = true;
    bench_try(modes_stitched_modes(b->stitched, &b->basis, &options, &without, NULL));
    printf(
        "   gives to sideways gravity, of full FEM: old subspace %.4f, new subspace %.4f, without rigid motions %.4f\n",
        compliance(b->stitched, &b->basis, f) / full, compliance(b->stitched, fresh, f) / full,
        compliance(b->stitched, &without, f) / full);
    modes_basis_destroy(&without);
    fem_free(e);
}

// ---- the table ----------------------------------------------------------------------------------------------------

static void run_model(stitch_model *m) {
    before      b;
    scratch     s;
    figures     form[3];
    modes_basis basis = {0}, kept[2] = {{0}, {0}};
    modes_pool  pool = {0}, scratch_pool = {0};
    double     *omega2 = NULL;
    before_create(&b, m, true);
    bench_try(modes_stitched_add(b.stitched, m->count, m->stitches));
    scratch_create(&s, m, b.stitched);
    printf("%s: %.1fK vertices, %.1fK tets, %d springs (P2: %gK, %gK, %g)\n", m->name, m->body.mesh.vertex_count / 1e3,
           m->body.mesh.element_count / 1e3, m->count, m->paper_size[0], m->paper_size[1], m->paper_size[2]);
    for (modes_stitch_form f = 0; f < 3; f++) {
        form[f] = measure_form(&b, m, &s, f, &basis);
        printf("   (a) %-10s scratch %.3f s, ours %.3f s: %5.1fx (P2 %.1fx); 20 frequencies within %.3g %%, coverage "
               "above %.5f\n",
               modes_stitch_form_name(f), s.seconds, form[f].seconds, s.seconds / form[f].seconds, m->paper[0],
               100 * form[f].error, form[f].share);
        printf(
            "                  dimension %d, reach %.2f, %d steps of refinement with %d solves; the factor of scratch "
            "alone: %.3f s\n",
            form[f].report.dimension, form[f].report.reach, form[f].report.refined, form[f].report.solves, s.factor);
        printf("                  estimate: within %.3g %%, coverage %.5f, %s; %.3f s\n", 100 * form[f].guess_error,
               form[f].guess_share, form[f].rebuild ? "rebuild" : "good", form[f].examined);
    }
    print_locking(&b, m, &basis);
    modes_hybrid_options hybrid = modes_hybrid_default_options();
    modes_hybrid_report  report;
    hybrid.kept = m->derivatives - 21;
    double ours = INFINITY, theirs = INFINITY, svd = INFINITY, pca = INFINITY, random = INFINITY;
    for (int run = 0; run < 2; run++) {
        double begun = now();
        fem_free(omega2), omega2 = NULL;
        bench_try(modes_stitched_derivatives(b.stitched, m->body.body, &basis, &b.rights, &b.basis, &hybrid, &pool,
                                             &omega2, &report));
        ours = fmin(ours, now() - begun);
        theirs = fmin(theirs, derive_from_scratch(m, &s, &scratch_pool));
    }
    double slow = derive_one_by_one(m, &s);
    slow = fmin(slow, derive_one_by_one(m, &s));
    printf("   (b) %d derivatives (%d new, %d answers for the others): ours %.3f s; scratch %.3f s, %5.1fx; one by one "
           "with "
           "the factor %.3f s, %5.1fx (P2 %.1fx)\n",
           m->derivatives, report.fresh, report.loads, ours, theirs, theirs / ours, slow, slow / ours, m->paper[1]);
    for (int run = 0; run < 3; run++) {
        svd = fmin(svd, plain_svd(m, &pool));
        pca = fmin(pca, condense(m, &pool, omega2, MODES_PCA, &kept[0]));
        random = fmin(random, condense(m, &pool, omega2, MODES_RANDOMIZED_PCA, &kept[1]));
    }
    double covered[MOST_COLUMNS], least = 1;
    bench_try(modes_coverage(&m->body.problem, kept[1].r, kept[1].U, 40, kept[0].U, covered));
    for (int j = 0; j < 40; j++) least = fmin(least, covered[j]);
    printf("   (c) %d candidates to %d: SVD %.3f s, mass-PCA %.3f s, %5.1fx; randomized %.3f s, %.1fx (P2 %.1fx); 40 "
           "leading columns covered to %.6f\n",
           pool.count, kept[0].r, svd, pca, svd / pca, random, svd / random, m->paper[2], least);
    double update = form[MODES_STITCH_ATTACHMENT].seconds + ours + pca;
    printf("   whole: ours %.3f s; scratch %.3f s, %.1fx; as P2's original %.3f s, %.1fx (P2 %.1fx)\n", update,
           s.seconds + theirs + pca, (s.seconds + theirs + pca) / update, s.seconds - s.factor + slow + svd,
           (s.seconds - s.factor + slow + svd) / update, m->paper_whole);
    fflush(stdout);
    fem_free(omega2);
    modes_pool_destroy(&pool), modes_pool_destroy(&scratch_pool);
    modes_basis_destroy(&basis), modes_basis_destroy(&kept[0]), modes_basis_destroy(&kept[1]);
    before_destroy(&b);
    scratch_destroy(&s);
    stitch_model_destroy(m);
}

// ---- coverage curves (P2 Fig. 3) and two rounds (P2 Fig. 10)
// ---------------------------------------------------------

// Share of each of the first true modes in a basis, a line of the figure.
static void add_curve(plot *figure, const char *name, const stitch_model *m, const scratch *s,
                      const modes_basis *basis) {
    double covered[LINEAR], x[LINEAR];
    bench_try(modes_coverage(&m->body.problem, basis->r, basis->U, LINEAR, s->basis.U, covered));
    for (int j = 0; j < LINEAR; j++) x[j] = j + 1;
    plot_series(figure, name, LINEAR, x, covered);
    printf("   %-28s coverage of mode 1, 10, 20, 30: %.5f %.5f %.5f %.5f\n", name, covered[0], covered[9], covered[19],
           covered[29]);
}

// A plant of three domains: one branch is stitched on, then the other.
static void run_rounds(void) {
    stitch_model         m = {.factor = 1, .old_modes = LINEAR};
    before               b;
    scratch              s;
    modes_basis          first = {0}, second = {0};
    modes_stitch_options options = modes_stitch_default_options();
    plot                *figure = plot_create("Coverage of the true modes (P2 Fig. 3)", "mode", "share", false, false);
    make_plant(&m, 2);
    before_create(&b, &m, false);
    int right = modes_stitched_domain_of(b.stitched, m.stitches[0].b), front = 0;
    for (int i = 0; i < m.count; i++) // those of one branch first
        if (modes_stitched_domain_of(b.stitched, m.stitches[i].b) == right) {
            modes_stitch swap = m.stitches[front];
            m.stitches[front++] = m.stitches[i], m.stitches[i] = swap;
        }
    bench_try(modes_stitched_add(b.stitched, m.count, m.stitches));
    scratch_create(&s, &m, b.stitched);
    bench_try(modes_stitched_remove(b.stitched, m.count, m.stitches));
    printf("plant of three domains, %.1fK tets, %d and %d stitches in two rounds (P2 Fig. 3 and 10)\n",
           m.body.mesh.element_count / 1e3, front, m.count - front);
    options.count = LINEAR;
    for (modes_stitch_form f = 0; f < 3; f++) {
        char name[64];
        options.form = f, options.since = 0;
        bench_try(modes_stitched_add(b.stitched, front, m.stitches));
        bench_try(modes_stitched_modes(b.stitched, &b.basis, &options, &first, NULL));
        bench_try(modes_stitched_add(b.stitched, m.count - front, m.stitches + front));
        options.since = front;
        bench_try(modes_stitched_modes(b.stitched, &first, &options, &second, NULL));
        snprintf(name, sizeof name, "%s, two rounds", modes_stitch_form_name(f));
        add_curve(figure, name, &m, &s, &second);
        options.since = 0;
        bench_try(modes_stitched_modes(b.stitched, &b.basis, &options, &second, NULL));
        add_curve(figure, modes_stitch_form_name(f), &m, &s, &second);
        bench_try(modes_stitched_remove(b.stitched, m.count, m.stitches));
    }
    plot_write(figure, "out/bench/stitch_coverage.svg");
    modes_basis_destroy(&first), modes_basis_destroy(&second);
    before_destroy(&b), scratch_destroy(&s), stitch_model_destroy(&m);
}

// ---- speed-up against the number of stitches (P2 Fig. 5) -----------------------------------------------------------

// Each form until it has fallen to half of from scratch. Two cuts have 480 places; for more, more cuts are made.
static void run_counts(void) {
    // five in two cuts would leave a band on a hinge of two, a singular body
    const int counts[] = {10, 20, 40, 80, 160, 320, 480, 960, 1440, 1920, 2880};
    enum { COUNTS = sizeof counts / sizeof *counts };
    double x[COUNTS], y[3][COUNTS];
    int    known[3] = {0}, even[3] = {0};
    printf("speed-up of the linear modes against the number of stitches, oball (P2 Fig. 5)\n");
    for (int k = 0; k < COUNTS; k++) {
        stitch_model m = {.factor = 1, .old_modes = LINEAR};
        before       b;
        scratch      s;
        modes_basis  basis = {0};
        int          cuts = counts[k] > 480 ? counts[k] / 240 : 2;
        make_oball(&m, counts[k], cuts);
        m.factor = 1;
        before_create(&b, &m, false);
        bench_try(modes_stitched_add(b.stitched, m.count, m.stitches));
        scratch_create(&s, &m, b.stitched);
        x[k] = m.count;
        printf("   %4d stitches in %2d cuts, scratch %.3f s:", m.count, cuts, s.seconds);
        for (modes_stitch_form f = 0; f < 3; f++) {
            if (known[f] < k || (k > 0 && y[f][k - 1] < 0.5)) continue;
            figures form = measure_form(&b, &m, &s, f, &basis);
            y[f][k] = s.seconds / form.seconds, known[f] = k + 1;
            if (y[f][k] > 1) even[f] = m.count;
            printf(" %s %.2fx (frequencies within %.2g %%)", modes_stitch_form_name(f), y[f][k], 100 * form.error);
            fflush(stdout);
        }
        printf("\n");
        modes_basis_destroy(&basis);
        before_destroy(&b), scratch_destroy(&s), stitch_model_destroy(&m);
    }
    plot *figure = plot_create("Speed-up against from scratch (P2 Fig. 5)", "stitches", "times", true, true);
    for (modes_stitch_form f = 0; f < 3; f++) {
        printf("   %s is ahead up to %d stitches\n", modes_stitch_form_name(f), even[f]);
        plot_series(figure, modes_stitch_form_name(f), known[f], x, y[f]);
    }
    plot_write(figure, "out/bench/stitch_speedup.svg");
}

// ---- cubature that is used again (P2 Fig. 4), frame rates -----------------------------------------------------------

enum { REDUCED = 30, FRAMES = 60, SUBSTEPS = 3 };

static void reduced_basis(const stitch_model *m, const modes_pool *pool, const double *omega2, modes_basis *basis) {
    modes_condense_options options = modes_condense_default_options();
    options.r = REDUCED, options.energy = 0;
    bench_try(modes_condense(&m->body.problem, pool, omega2, &options, NULL, basis, NULL));
}

// Ways to come by the forces of a stitched body.
enum { EXACT, REUSED, REFITTED, ANEW, WAYS };
static const char *const way_names[WAYS] = {"exact polynomial", "old elements and weights", "weights fitted again",
                                            "trained anew"};

typedef struct way {
    cubature_rule      rule;
    cubature_stitched *stitched;
    cubature_forces    forces;
    solver_reduced    *solver;
    double             made, held_out, ran; // seconds to make it, error at fresh poses, seconds of the run
    double             worst, mean, away;   // force per frame, over that of the exact one; motion
    double             worst_shift, shift;  // the same in what forces move the body by
    double             error[FRAMES];
} way;

// Springs, and for a rule what it lacks of the linear part: U^T K^ U at rest less what it has.
static void tie(const before *b, way *w, const cubature_forces *inner, const modes_basis *basis, const double *springs,
                bool linear) {
    size_t  square = REDUCED * REDUCED;
    double *L = fem_calloc(2 * square + REDUCED + inner->work, sizeof *L), *K0 = L + square, *zero = K0 + square;
    double *KU = fem_alloc((size_t)basis->n * REDUCED, sizeof *KU);
    if (!L || !KU) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for %d modes", REDUCED));
    if (linear) {
        inner->evaluate(inner->model, zero, NULL, NULL, K0, zero + REDUCED);
        modes_stitched_multiply(b->stitched, REDUCED, basis->U, KU);
        dense_gemm(true, false, REDUCED, REDUCED, basis->n, 1, basis->U, KU, 0, L);
        dense_axpy((int)square, -1, K0, L);
        for (int i = 0; i < REDUCED; i++)
            for (int j = 0; j < i; j++)
                L[i * REDUCED + j] = L[j * REDUCED + i] = (L[i * REDUCED + j] + L[j * REDUCED + i]) / 2;
    } else {
        memcpy(L, springs, square * sizeof *L);
    }
    bench_try(cubature_stitched_create(&w->stitched, inner, REDUCED, NULL, L));
    w->forces = cubature_stitched_forces(w->stitched);
    fem_free(L), fem_free(KU);
}

// Two sideways gravities in reduced coordinates, so strong that bodies give by a twentieth of their size.
static void make_gravity(const before *b, const stitch_model *m, const modes_basis *basis, double gravity[2][REDUCED]) {
    int     n = basis->n;
    double *e = fem_calloc(3 * (size_t)n, sizeof *e), *f = e + n, *x = f + n, most = 0;
    double  low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    if (!e) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for a load"));
    for (int i = 0; i < n; i++) {
        low[i % 3] = fmin(low[i % 3], m->body.mesh.vertices[i]);
        high[i % 3] = fmax(high[i % 3], m->body.mesh.vertices[i]);
    }
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++) e[i] = i % 3 == 1 - k;
        fem_sparse_multiply(&m->body.M, 1, e, f);
        for (int i = 0; i < n; i++) f[i] *= !m->body.fixed[i];
        dense_gemv_t_set(n, REDUCED, 1, basis->U, f, gravity[k]);
        if (k == 0) {
            bench_try(modes_stitched_solve(b->stitched, 1, f, x));
            for (int i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
        }
        for (int i = 0; i < REDUCED; i++) gravity[k][i] *= 0.05 * vec3_distance(low, high) / most;
    }
    fem_free(e);
}

// A body is stitched, then shaken by gravity that turns. Forces of each way at every frame of the exact motion, and
// the motion with them.
static void reuse_forces(stitch_model *m, const char *figure_path) {
    before                    b;
    modes_basis               linear = {0}, old = {0}, fresh = {0};
    modes_pool                pools[2] = {{0}, {0}};
    double                   *omega2 = NULL;
    modes_stitch_options      stitch = modes_stitch_default_options();
    modes_hybrid_options      hybrid = modes_hybrid_default_options();
    modes_derivative_options  all = modes_derivative_default_options();
    fem_pair                  pairs[70];
    cubature_rule             rule = {0};
    cubature_training_options training = cubature_training_default_options();
    cubature_training_report  report = {0};
    cubature_polynomial       polynomial = {0};
    solver_reduced_options    options = solver_reduced_default_options();
    way                       ways[WAYS] = {0};
    double L[REDUCED * REDUCED], gravity[2][REDUCED], load[REDUCED], f[2][REDUCED], moved[REDUCED], size = 0, trained;
    m->derivatives = 91;
    before_create(&b, m, true);
    bench_try(modes_lowest_pairs(LINEAR, b.basis.omega2, 70, pairs));
    all.pairs = pairs, all.pair_count = 70;
    bench_try(modes_derivatives(&m->body.problem, m->body.body, b.inverse, &b.basis, &all, NULL, &pools[0], NULL));
    reduced_basis(m, &pools[0], b.basis.omega2, &old);
    trained = now();
    bench_try(cubature_train(&rule, m->body.body, old.r, old.U, old.omega2, &training, NULL, &report));
    trained = now() - trained;
    printf("%s, %d modes: the body before has %d of %d elements, %.2f %% off at fresh poses, trained in %.2f s\n",
           m->name, REDUCED, rule.count, m->body.mesh.element_count, 100 * report.held_out_error, trained);
    bench_try(modes_stitched_add(b.stitched, m->count, m->stitches));
    bench_try(modes_stitched_modes(b.stitched, &b.basis, &stitch, &linear, NULL));
    hybrid.kept = 70;
    bench_try(modes_stitched_derivatives(b.stitched, m->body.body, &linear, &b.rights, &b.basis, &hybrid, &pools[1],
                                         &omega2, NULL));
    reduced_basis(m, &pools[1], omega2, &fresh);
    bench_try(modes_stitched_rayleigh(b.stitched, &fresh));
    bench_try(modes_stitched_springs(b.stitched, REDUCED, fresh.U, L));
    training.springs = L;
    fflush(stdout);
    for (int k = 0; k < WAYS; k++) {
        way            *w = &ways[k];
        cubature_forces inner;
        double          begun = now();
        if (k == EXACT) {
            cubature_polynomial_options most = cubature_polynomial_default_options();
            bench_try(cubature_polynomial_create(&polynomial, m->body.body, REDUCED, fresh.U, &most, NULL));
        } else if (k == REUSED) {
            bench_try(cubature_rule_create(&w->rule, m->body.body, REDUCED, fresh.U, rule.count, rule.elements, false,
                                           rule.weights));
        } else if (k == REFITTED) {
            bench_try(cubature_refit(&w->rule, m->body.body, REDUCED, fresh.U, &rule, &training, &report));
        } else {
            bench_try(cubature_train(&w->rule, m->body.body, REDUCED, fresh.U, fresh.omega2, &training, NULL, &report));
        }
        w->made = now() - begun;
        printf("   %s: made in %.3f s\n", way_names[k], w->made), fflush(stdout);
        w->held_out = k > REUSED ? report.held_out_error : 0;
        inner = k == EXACT ? cubature_polynomial_forces(&polynomial) : cubature_rule_forces(&w->rule);
        tie(&b, w, &inner, &fresh, L, k != EXACT);
    }
    make_gravity(&b, m, &fresh, gravity);
    options.time_step = 0.01, options.damping_stiffness = 0.002, options.damping_mass = 0.2; // steps as P2's
    size_t most = 0;
    for (int k = 0; k < WAYS; k++) {
        bench_try(solver_reduced_create(&ways[k].solver, &ways[k].forces, NULL, &options));
        most = ways[k].forces.work > most ? ways[k].forces.work : most;
    }
    double *work = fem_alloc(most + 1, sizeof *work), frames[FRAMES], K[REDUCED * REDUCED], zero[REDUCED] = {0};
    if (!work) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for %d modes", REDUCED));
    ways[EXACT].forces.evaluate(ways[EXACT].forces.model, zero, NULL, NULL, K, work);
    bench_try(dense_cholesky(REDUCED, K));
    for (int frame = 0; frame < FRAMES; frame++) {
        for (int k = 0; k < WAYS; k++) {
            double begun = now();
            for (int step = 0; step < SUBSTEPS; step++) {
                double angle = 0.1 * (SUBSTEPS * frame + step);
                for (int i = 0; i < REDUCED; i++) load[i] = cos(angle) * gravity[0][i] + sin(angle) * gravity[1][i];
                solver_reduced_set_load(ways[k].solver, load);
                bench_try(solver_reduced_step(ways[k].solver));
            }
            ways[k].ran += now() - begun;
        }
        const double *q = solver_reduced_state(ways[EXACT].solver)->q;
        frames[frame] = frame + 1, size += dense_dot(REDUCED, q, q);
        ways[EXACT].forces.evaluate(ways[EXACT].forces.model, q, NULL, f[0], NULL, work);
        for (int k = 1; k < WAYS; k++) {
            const double *p = solver_reduced_state(ways[k].solver)->q;
            ways[k].forces.evaluate(ways[k].forces.model, q, NULL, f[1], NULL, work);
            dense_axpy(REDUCED, -1, f[0], f[1]);
            double off = dense_norm(REDUCED, f[1]) / dense_norm(REDUCED, f[0]);
            ways[k].mean += off / FRAMES, ways[k].worst = fmax(ways[k].worst, off);
            memcpy(moved, f[0], sizeof moved);
            dense_cholesky_solve(REDUCED, K, 1, moved), dense_cholesky_solve(REDUCED, K, 1, f[1]);
            off = dense_norm(REDUCED, f[1]) / dense_norm(REDUCED, moved);
            ways[k].error[frame] = off;
            ways[k].shift += off / FRAMES, ways[k].worst_shift = fmax(ways[k].worst_shift, off);
            for (int i = 0; i < REDUCED; i++) ways[k].away += (q[i] - p[i]) * (q[i] - p[i]);
        }
    }
    plot *figure = plot_create("Error of the force per frame, in what it moves the body by (P2 Fig. 4)", "frame",
                               "share", false, true);
    for (int k = 1; k < WAYS; k++) {
        printf(
            "   %-25s %4d elements, made in %.3f s; force per frame: mean %.3g %%, worst %.3g %%, in what it moves the "
            "body by: mean %.3g %%, worst %.3g %%; motion %.3g %% off (RMS)",
            way_names[k], ways[k].rule.count, ways[k].made, 100 * ways[k].mean, 100 * ways[k].worst,
            100 * ways[k].shift, 100 * ways[k].worst_shift, 100 * sqrt(ways[k].away / size));
        if (k > REUSED) printf("; at fresh poses %.3g %%", 100 * ways[k].held_out);
        printf("; frames of three steps per second: %.0f (P2: 8 to 30)\n", FRAMES / ways[k].ran);
        plot_series(figure, way_names[k], FRAMES, frames, ways[k].error);
    }
    plot_write(figure, figure_path);
    fflush(stdout);
    for (int k = 0; k < WAYS; k++) {
        solver_reduced_destroy(ways[k].solver), cubature_stitched_destroy(ways[k].stitched);
        cubature_rule_destroy(&ways[k].rule);
    }
    cubature_polynomial_destroy(&polynomial), cubature_rule_destroy(&rule);
    modes_pool_destroy(&pools[0]), modes_pool_destroy(&pools[1]);
    modes_basis_destroy(&linear), modes_basis_destroy(&old), modes_basis_destroy(&fresh);
    fem_free(work), fem_free(omega2);
    before_destroy(&b), stitch_model_destroy(m);
}

// The dinosaur as in P2, and the plant, of which a whole part is new to the basis.
static void run_reuse(const char *only) {
    stitch_model plant = {.factor = 1, .old_modes = LINEAR}, dinosaur = plant;
    printf("cubature of the body before, used again (P2 Fig. 4)\n");
    if (!only || strcmp(only, "plant") == 0) {
        make_plant(&plant, 1);
        reuse_forces(&plant, "out/bench/stitch_cubature_plant.svg");
    }
    if (!only || strcmp(only, "dinosaur") == 0) {
        make_dinosaur(&dinosaur);
        reuse_forces(&dinosaur, "out/bench/stitch_cubature_dinosaur.svg");
    }
}

int main(int argc, char **argv) {
    bench_header(argv, "stitching: P2 Table 1, Fig. 1 b, 5, 7; one thread");
    const char *only = argc > 1 ? argv[1] : NULL;
    fem_set_threads(1);
    stitch_model models[5] = {
        {.name = "stomach",
         .old_modes = 30,
         .factor = 1,
         .derivatives = 201,
         .paper_size = {37, 118, 30},
         .paper = {15.3, 5.0, 6.9},
         .paper_whole = 6.9},
        {.name = "plant",
         .old_modes = 30,
         .factor = 1,
         .derivatives = 91,
         .paper_size = {13, 43, 30},
         .paper = {10.3, 7.6, 3.8},
         .paper_whole = 6.7},
        {.name = "fork",
         .old_modes = 30,
         .factor = 1,
         .derivatives = 143,
         .paper_size = {13, 55, 40},
         .paper = {9.0, 5.4, 4.1},
         .paper_whole = 5.9},
        {.name = "dinosaur",
         .old_modes = 30,
         .factor = 1,
         .derivatives = 91,
         .paper_size = {57, 192, 38},
         .paper = {5.3, 8.1, 4.5},
         .paper_whole = 6.3},
        {.name = "oball",
         .old_modes = 30,
         .factor = 1,
         .derivatives = 143,
         .paper_size = {16, 60, 160},
         .paper = {3.4, 5.2, 4.3},
         .paper_whole = 4.1},
    };
    for (int i = 0; i < 5; i++) {
        if (only && strcmp(only, models[i].name) != 0) continue;
        if (i == 0) make_stomach(&models[i]);
        if (i == 1) make_plant(&models[i], 1);
        if (i == 2) make_fork(&models[i]);
        if (i == 3) make_dinosaur(&models[i]);
        if (i == 4) make_oball(&models[i], 160, 2);
        run_model(&models[i]);
    }
    if (!only || strcmp(only, "rounds") == 0) run_rounds();
    if (!only || strcmp(only, "reuse") == 0) run_reuse(argc > 2 ? argv[2] : NULL);
    if (!only || strcmp(only, "counts") == 0) run_counts();
    return 0;
}

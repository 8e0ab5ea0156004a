// What follows from stitched modes: quality and the rule to rebuild, ten rounds, derivatives and condensing, forces
// that are used again, a change of basis in flight, a cut that is sewn.
#include "tests/stitch_case.h"

static void update(modes_stitched *s, const modes_basis *old, modes_stitch_form form, int count, int since,
                   modes_basis *basis) {
    modes_stitch_options options = modes_stitch_default_options();
    options.form = form, options.count = count, options.since = since;
    assert_ok(modes_stitched_modes(s, old, &options, basis, NULL));
}

// ---- quality ----------------------------------------------------------------------------------------------------

// Estimates against the truth: shares, frequencies, and the bound by the residual. The rule fires for ritz, not for
// attachment, as the truth would have it.
static void test_quality(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 8, 2, true);
    modes_basis        old = {0}, truth = {0}, basis = {0};
    modes_stitched    *s = NULL;
    modes_rebuild_rule rule = modes_rebuild_default_rule();
    old_modes(&t.both, 30, &old);
    full_modes(&t.both, t.count, t.stitches, 0, 20, &truth);
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    assert_ok(modes_stitched_add(s, t.count, t.stitches));
    for (modes_stitch_form form = MODES_STITCH_RITZ; form <= MODES_STITCH_ATTACHMENT; form++) {
        modes_stitch_quality q = {0};
        double               covered[20], error = 0, share = 1, off_error = 0, off_share = 0;
        update(s, &old, form, 30, 0, &basis);
        assert_ok(modes_stitched_examine(s, &basis, &rule, &q));
        assert_int_equal(q.count, 20);
        assert_ok(modes_coverage(&t.both.problem, basis.r, basis.U, 20, truth.U, covered));
        for (int j = 0; j < 20; j++) {
            double true_error = sqrt(basis.omega2[j] / truth.omega2[j]) - 1;
            double distance = INFINITY; // of omega^2 from the nearest true one: bounded by the residual, always
            for (int k = 0; k < 20; k++)
                distance = fmin(distance, fabs(basis.omega2[j] - truth.omega2[k]) / basis.omega2[j]);
            if (j < 15) assert_true(distance <= 1.01 * q.residual[j] + 1e-9); // those whose neighbours are known
            error = fmax(error, true_error), share = fmin(share, covered[j]);
            off_error = fmax(off_error, fabs(true_error - q.error[j])),
            off_share = fmax(off_share, fabs(covered[j] - q.share[j]));
        }
        printf("%-10s worst frequency %.3g %% off (estimate %.3g %%), least share %.6f (estimate %.6f); %s%s\n",
               modes_stitch_form_name(form), 100 * error, 100 * q.worst_error, share, q.least_share,
               q.rebuild ? "rebuild: " : "good enough", q.reason);
        printf("           estimates of each mode: frequencies at most %.2g %% off, shares %.2g\n", 100 * off_error,
               off_share);
        assert_true(fabs(q.worst_error - error) < 0.2 * error && fabs(q.least_share - share) < 0.2 * (1 - share));
        assert_true(off_error < 0.2 * error && off_share < 0.2 * (1 - share));
        assert_int_equal(q.rebuild, error > rule.error || share < rule.share);
        assert_int_equal(q.rebuild, form == MODES_STITCH_RITZ);
        modes_stitch_quality_destroy(&q);
    }
    // a mode that the basis has nothing of: the third true one taken out
    modes_basis without = {0};
    assert_ok(modes_basis_allocate(&without, truth.n, 19));
    for (int j = 0; j < 19; j++) {
        memcpy(without.U + (size_t)j * (size_t)truth.n, truth.U + (size_t)(j < 2 ? j : j + 1) * (size_t)truth.n,
               (size_t)truth.n * 8);
        without.omega2[j] = truth.omega2[j < 2 ? j : j + 1];
    }
    modes_stitch_quality q = {0};
    assert_ok(modes_stitched_examine(s, &without, &rule, &q));
    printf("third mode missing: share %.3g, %s\n", q.share[2], q.reason);
    assert_true(q.rebuild && q.share[2] < 0.01);
    modes_stitch_quality_destroy(&q);
    modes_basis_destroy(&without);
    modes_stitched_destroy(s);
    modes_basis_destroy(&old), modes_basis_destroy(&truth), modes_basis_destroy(&basis);
    two_bars_destroy(&t);
}

// A seam closed in ten rounds, each from the modes of the round before: errors grow. From the padded modes each time
// they do not. The rule fires where the truth would have it.
static void test_ten_rounds(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 6, 3, true);
    modes_basis        old = {0};
    modes_rebuild_rule rule = modes_rebuild_default_rule();
    rule.modes = 12;
    old_modes(&t.both, 16, &old);
    for (modes_stitch_form form = MODES_STITCH_RITZ; form <= MODES_STITCH_ATTACHMENT; form++) {
        modes_stitched *s = NULL;
        modes_basis     chain = {0}, direct = {0}, truth = {0};
        int             done = 0, right = 0, fired = 0;
        double          last = 0;
        assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
        for (int round = 1; round <= 10; round++) {
            modes_stitch_quality q = {0};
            int                  until = t.count * round / 10;
            double               error, share, error_direct, share_direct;
            assert_ok(modes_stitched_add(s, until - done, t.stitches + done));
            update(s, round == 1 ? &old : &chain, form, 16, round == 1 ? 0 : done, &direct);
            modes_basis swap = chain;
            chain = direct, direct = swap;
            done = until;
            update(s, &old, form, 16, 0, &direct);
            modes_stitched_report report;
            assert_ok(modes_stitched_get_report(s, &report));
            full_modes(&t.both, done, t.stitches, report.loose, 12, &truth);
            judge(&t.both, &chain, &truth, 12, &error, &share);
            judge(&t.both, &direct, &truth, 12, &error_direct, &share_direct);
            assert_ok(modes_stitched_examine(s, &chain, &rule, &q));
            bool due = error > rule.error || share < rule.share;
            right += q.rebuild == due, fired += q.rebuild;
            printf("%-10s round %2d, %2d stitches: chain %.3g %% %.5f, from the old modes %.3g %% %.5f%s\n",
                   modes_stitch_form_name(form), round, done, 100 * error, share, 100 * error_direct, share_direct,
                   q.rebuild ? ", rebuild" : "");
            if (form == MODES_STITCH_ATTACHMENT) assert_true(error_direct < 0.002 && error < 0.01);
            last = error / fmax(error_direct, 1e-12);
            modes_stitch_quality_destroy(&q);
            modes_basis_destroy(&truth);
        }
        printf("%-10s the rule was right in %d of 10 rounds, fired in %d; the chain ends with %.3g times the error\n",
               modes_stitch_form_name(form), right, fired, last);
        assert_true(right >= 9);
        assert_int_equal(fired, form == MODES_STITCH_RITZ ? 10 : 0);
        modes_stitched_destroy(s);
        modes_basis_destroy(&chain), modes_basis_destroy(&direct);
    }
    modes_basis_destroy(&old);
    two_bars_destroy(&t);
}

// ---- derivatives ------------------------------------------------------------------------------------------------

static void test_derivatives(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 6, 2, true);
    modes_basis          old = {0}, basis = {0}, condensed = {0};
    modes_stitched      *s = NULL;
    modes_rights         rights = {0};
    modes_pool           pool = {0};
    double              *omega2 = NULL;
    modes_hybrid_options options = modes_hybrid_default_options();
    modes_hybrid_report  report;
    old_modes(&t.both, 12, &old);
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    assert_ok(modes_stitched_add(s, t.count, t.stitches));
    assert_ok(modes_stitched_scale(s, 1, 3));
    update(s, &old, MODES_STITCH_ATTACHMENT, 12, 0, &basis);
    modes_inverse *inverse = NULL;
    assert_ok(modes_inverse_create(&inverse, &t.both.problem, MODES_BORDER_MASS));
    assert_ok(modes_rights_create(&rights, t.both.body, inverse, &old, 50));
    modes_inverse_destroy(inverse);
    for (int p = 1; p < 50; p++)
        assert_true(old.omega2[rights.pairs[p].a] * old.omega2[rights.pairs[p].b] >=
                    old.omega2[rights.pairs[p - 1].a] * old.omega2[rights.pairs[p - 1].b]);
    assert_ok(modes_stitched_derivatives(s, t.both.body, &basis, &rights, &old, &options, &pool, &omega2, &report));
    assert_int_equal(report.fresh, 21);
    assert_int_equal(report.kept, 20);
    assert_int_equal(pool.count, 12 + 21 + 20);
    // K^ phi = -(H : psi_i) psi_j by hand: H one pair at a time, K^ of a body with its own stiff material
    sample stiff = {0};
    assert_ok(fem_mesh_copy(&stiff.mesh, &t.both.mesh));
    for (int m = 0; m < stiff.mesh.region_count; m++)
        if (strncmp(stiff.mesh.regions[m].name, "right", 5) == 0)
            stiff.mesh.materials[stiff.mesh.regions[m].material].young *= 3;
    sample_matrices(&stiff);
    double *zero = fem_calloc((size_t)t.both.n, 8), *right = fem_alloc((size_t)t.both.n, 8),
           *left = fem_alloc((size_t)t.both.n, 8);
    double worst = 0;
    for (int k = 12; k < pool.count; k++) {
        const modes_origin *o = &pool.origin[k];
        const modes_basis  *from = o->mode[0] >= 12 ? &old : &basis;
        const double       *x = pool.X + (size_t)k * (size_t)t.both.n;
        double              square = 0, whole = 0;
        assert_int_equal(o->order, 1);
        fem_body_second(stiff.body, zero, from->U + (size_t)(o->mode[0] % 12) * (size_t)t.both.n,
                        from->U + (size_t)(o->mode[1] % 12) * (size_t)t.both.n, right);
        fem_sparse_multiply(&stiff.K, 1, x, left);
        for (int c = 0; c < t.count; c++)
            for (int i = 0; i < 3; i++) {
                int    a = 3 * t.stitches[c].a + i, b = 3 * t.stitches[c].b + i;
                double force = t.stitches[c].stiffness * (x[a] - x[b]);
                left[a] += force, left[b] -= force;
            }
        for (int i = 0; i < t.both.n; i++)
            if (!t.both.fixed[i]) square += pow(left[i] + right[i], 2), whole += right[i] * right[i];
        worst = fmax(worst, sqrt(square / whole));
        assert_true(whole > 0);
    }
    printf("%d derivatives satisfy their equation to %.2g\n", pool.count - 12, worst);
    assert_true(worst < 1e-9);
    modes_condense_options condense = modes_condense_default_options();
    condense.method = MODES_RANDOMIZED_PCA, condense.r = 20;
    assert_ok(modes_condense(&t.both.problem, &pool, omega2, &condense, NULL, &condensed, NULL));
    assert_ok(modes_stitched_rayleigh(s, &condensed));
    fem_sparse_multiply(&stiff.K, 1, condensed.U, left);
    double energy = dense_dot(t.both.n, condensed.U, left), *L = fem_alloc(400, 8);
    assert_ok(modes_stitched_springs(s, 20, condensed.U, L));
    printf("first column of randomized PCA: %.6g of springs in omega^2 = %.6g\n", L[0], condensed.omega2[0]);
    assert_true(fabs(energy + L[0] - condensed.omega2[0]) < 1e-9 * condensed.omega2[0] && L[0] > 1e-9 * energy);
    options.kept = 51;
    assert_fails(modes_stitched_derivatives(s, t.both.body, &basis, &rights, &old, &options, &pool, &omega2, NULL),
                 FEM_BAD_INPUT, "there are 50 old right-hand sides");
    fem_free(zero), fem_free(right), fem_free(left), fem_free(L), fem_free(omega2);
    modes_pool_destroy(&pool), modes_rights_destroy(&rights);
    modes_stitched_destroy(s);
    sample_free(&stiff);
    modes_basis_destroy(&old), modes_basis_destroy(&basis), modes_basis_destroy(&condensed);
    two_bars_destroy(&t);
}

// ---- a cut, sewn ------------------------------------------------------------------------------------------------

typedef struct slit {
    sample       body; // a bar with a slit from below, held at x0
    int          count;
    modes_stitch stitches[128];
} slit;

static void slit_create(slit *t, double stiffness) {
    const double low[3] = {0, 0, 0}, high[3] = {0.8, 0.2, 0.2}, point[3] = {0.3, 0, 0}, normal[3] = {1, 0, 0};
    const int    cells[3] = {8, 3, 4};
    int          count, *pairs;
    *t = (slit){0};
    assert_ok(fem_generate_box(&t->body.mesh, FEM_T4, low, high, cells));
    unsigned char *within = calloc((size_t)t->body.mesh.vertex_count, 1);
    for (int v = 0; v < t->body.mesh.vertex_count; v++) within[v] = t->body.mesh.vertices[3 * v + 2] < 0.16;
    fem_material material = fem_material_default();
    material.kind = FEM_STVK;
    assert_ok(fem_mesh_set_material(&t->body.mesh, &material));
    assert_ok(fem_mesh_cut_plane(&t->body.mesh, point, normal, within, &count, &pairs));
    assert_true(count >= 8 && count <= 128);
    t->count = count;
    sample_matrices(&t->body);
    sample_hold(&t->body, "x0");
    for (int i = 0; i < count; i++)
        t->stitches[i] = (modes_stitch){pairs[2 * i], pairs[2 * i + 1], stiffness * 0.07 * material.young};
    free(within);
    fem_free(pairs);
}

// A cut that is sewn firmly is no cut: frequencies of the whole bar, closer the firmer.
static void test_sewn_cut(void **state) {
    (void)state;
    const double low[3] = {0, 0, 0}, high[3] = {0.8, 0.2, 0.2};
    const int    cells[3] = {8, 3, 4};
    sample       whole = {0};
    modes_basis  truth = {0}, open = {0}, basis = {0};
    double       error[3], before = 0;
    assert_ok(fem_generate_box(&whole.mesh, FEM_T4, low, high, cells));
    sample_matrices(&whole);
    sample_hold(&whole, "x0");
    old_modes(&whole, 12, &truth);
    for (int k = 0; k < 3; k++) {
        slit            t;
        modes_stitched *s = NULL;
        slit_create(&t, pow(10, 1 + k));
        old_modes(&t.body, 80, &open);
        assert_ok(modes_stitched_create(&s, &t.body.problem, NULL));
        assert_ok(modes_stitched_add(s, t.count, t.stitches));
        update(s, &open, MODES_STITCH_ATTACHMENT, 12, 0, &basis);
        error[k] = 0;
        for (int j = 0; j < 12; j++) {
            error[k] = fmax(error[k], fabs(sqrt(basis.omega2[j] / truth.omega2[j]) - 1));
            before = fmax(before, fabs(sqrt(open.omega2[j] / truth.omega2[j]) - 1));
        }
        modes_stitched_destroy(s);
        sample_free(&t.body);
    }
    printf("a slit changes 12 frequencies by %.3g %%; sewn with 10, 100, 1000 E h: %.3g, %.3g, %.3g %%\n", 100 * before,
           100 * error[0], 100 * error[1], 100 * error[2]);
    assert_true(before > 0.1 && error[0] < 0.1 * before && error[2] < error[1] && error[1] < error[0]);
    assert_true(error[2] < 0.005);
    sample_free(&whole);
    modes_basis_destroy(&truth), modes_basis_destroy(&open), modes_basis_destroy(&basis);
}

// ---- forces -----------------------------------------------------------------------------------------------------

// Springs on top of exact forces; old polynomials for a new basis: exact where it lies in the old one, checked where
// not.
static void test_forces(void **state) {
    (void)state;
    slit                        t;
    modes_stitched             *s = NULL;
    modes_basis                 old = {0}, basis = {0}, rotated = {0};
    cubature_polynomial         polynomial = {0};
    cubature_polynomial_options options = cubature_polynomial_default_options();
    cubature_full              *full = NULL, *full_rotated = NULL;
    cubature_stitched          *exact = NULL, *reused = NULL, *exact_rotated = NULL, *reused_rotated = NULL;
    cubature_check              check, check_rotated;
    enum { R = 10 };
    double L[R * R], K[R * R], q[R], f[R], g[R], energy, other;
    slit_create(&t, 1);
    old_modes(&t.body, R, &old);
    assert_ok(modes_stitched_create(&s, &t.body.problem, NULL));
    assert_ok(modes_stitched_add(s, t.count, t.stitches));
    update(s, &old, MODES_STITCH_ATTACHMENT, R, 0, &basis);
    assert_ok(modes_stitched_springs(s, R, basis.U, L));
    assert_ok(cubature_full_create(&full, t.body.body, R, basis.U));
    cubature_forces plain = cubature_full_forces(full);
    assert_ok(cubature_stitched_create(&exact, &plain, R, NULL, L));
    cubature_forces forces = cubature_stitched_forces(exact);
    double         *work = fem_alloc(forces.work, 8);
    // energy by hand: elements, and k/2 |u_a - u_b|^2
    uint64_t seed = 5;
    double  *u = fem_alloc((size_t)t.body.n, 8);
    for (int i = 0; i < R; i++) q[i] = 30 * test_random(&seed) / sqrt(basis.omega2[i]);
    forces.evaluate(forces.model, q, &energy, f, K, work);
    dense_gemv_set(t.body.n, R, 1, basis.U, q, u);
    fem_body_evaluate(t.body.body, u, &other, NULL, NULL);
    double elements = other;
    for (int k = 0; k < t.count; k++)
        other += t.stitches[k].stiffness / 2 * pow(vec3_distance(u + 3 * t.stitches[k].a, u + 3 * t.stitches[k].b), 2);
    printf("energy %.6g J, of springs %.3g; by hand %.2g off\n", energy, other - elements,
           fabs(energy - other) / other);
    assert_true(fabs(energy - other) < 1e-11 * other && other - elements > 1e-9 * other);
    // f = dV/dq and K = df/dq, second order
    double order_f = 0, order_K = 0, error_f[2] = {0}, error_K[2] = {0};
    for (int h = 0; h < 2; h++) {
        double step = (h ? 0.5e-3 : 1e-3) * dense_norm(R, q), low, high, fl[R], fh[R];
        for (int i = 0; i < R; i++) {
            q[i] += step, forces.evaluate(forces.model, q, &high, fh, NULL, work);
            q[i] -= 2 * step, forces.evaluate(forces.model, q, &low, fl, NULL, work);
            q[i] += step;
            error_f[h] = fmax(error_f[h], fabs((high - low) / (2 * step) - f[i]));
            for (int j = 0; j < R; j++)
                error_K[h] = fmax(error_K[h], fabs((fh[j] - fl[j]) / (2 * step) - K[i * R + j]));
        }
    }
    order_f = log2(error_f[0] / error_f[1]), order_K = log2(error_K[0] / error_K[1]);
    printf("force and stiffness are derivatives, observed orders %.2f and %.2f\n", order_f, order_K);
    assert_true(order_f > 1.9 && order_K > 1.9);
    // reuse
    assert_ok(cubature_polynomial_create(&polynomial, t.body.body, R, old.U, &options, NULL));
    cubature_forces before = cubature_polynomial_forces(&polynomial);
    memset(q, 0, sizeof q);
    forces.evaluate(forces.model, q, NULL, NULL, K, work);
    assert_ok(cubature_reuse(&reused, &before, &old, &t.body.M, &basis, K));
    cubature_forces again = cubature_stitched_forces(reused);
    double         *work_again = fem_alloc(again.work, 8), K0[R * R];
    again.evaluate(again.model, q, NULL, g, K0, work_again);
    assert_true(test_relative_error(R * R, K0, K) < 1e-9); // the linear part is exact
    assert_ok(cubature_compare(&again, &forces, basis.omega2, 3, 50, 1, &check));
    // a basis within the old one: old modes mixed by a rotation
    assert_ok(modes_basis_allocate(&rotated, t.body.n, R));
    for (int j = 0; j < R; j++) {
        double c = cos(0.3 + j / 2), d = sin(0.3 + j / 2);
        for (int i = 0; i < t.body.n; i++) {
            const double *x = old.U + (size_t)(j & ~1) * (size_t)t.body.n + i, *y = x + t.body.n;
            rotated.U[(size_t)j * (size_t)t.body.n + (size_t)i] = j % 2 ? -d * *x + c * *y : c * *x + d * *y;
        }
        rotated.omega2[j] = old.omega2[j];
    }
    assert_ok(modes_stitched_springs(s, R, rotated.U, L));
    assert_ok(cubature_full_create(&full_rotated, t.body.body, R, rotated.U));
    cubature_forces plain_rotated = cubature_full_forces(full_rotated);
    assert_ok(cubature_stitched_create(&exact_rotated, &plain_rotated, R, NULL, L));
    cubature_forces forces_rotated = cubature_stitched_forces(exact_rotated);
    forces_rotated.evaluate(forces_rotated.model, q, NULL, NULL, K, work);
    assert_ok(cubature_reuse(&reused_rotated, &before, &old, &t.body.M, &rotated, K));
    cubature_forces again_rotated = cubature_stitched_forces(reused_rotated);
    assert_ok(cubature_compare(&again_rotated, &forces_rotated, rotated.omega2, 3, 50, 1, &check_rotated));
    printf("old polynomials on fresh poses: error %.3g (mean %.3g) in the new basis, %.2g in one that the old spans\n",
           check.worst, check.mean, check_rotated.worst);
    assert_true(check_rotated.worst < 1e-9 && check.worst > 1e-6 && check.worst >= check.mean);
    fem_free(work), fem_free(work_again), fem_free(u);
    cubature_stitched_destroy(exact), cubature_stitched_destroy(reused);
    cubature_stitched_destroy(exact_rotated), cubature_stitched_destroy(reused_rotated);
    cubature_full_destroy(full), cubature_full_destroy(full_rotated);
    cubature_polynomial_destroy(&polynomial);
    modes_stitched_destroy(s);
    modes_basis_destroy(&old), modes_basis_destroy(&basis), modes_basis_destroy(&rotated);
    sample_free(&t.body);
}

// ---- fresh poses ------------------------------------------------------------------------------------------------

enum { COORDINATES = 8 };

typedef struct stiffening {
    double scale, stiffness[COORDINATES];
} stiffening;

// f_i = scale (k_i q_i + q_i^3)
static void stiffening_evaluate(const void *model, const double *q, double *energy, double *f, double *K,
                                double *work) {
    const stiffening *s = model;
    (void)energy, (void)work;
    if (K) memset(K, 0, COORDINATES * COORDINATES * sizeof *K);
    for (int i = 0; i < COORDINATES; i++) {
        f[i] = s->scale * (s->stiffness[i] * q[i] + q[i] * q[i] * q[i]);
        if (K) K[i * COORDINATES + i] = s->scale * (s->stiffness[i] + 3 * q[i] * q[i]);
    }
}

// Forces that are s times the exact ones are |s - 1| off in random poses, and |1 - 1 / s| of the load where they
// balance it. Coordinates that rest are not asked; forces that give way count 1.
static void test_compare(void **state) {
    (void)state;
    stiffening      exact = {1, {4, 1, 9, 2, 3, 5, 6, -7}}, other;
    cubature_forces truth = {.r = COORDINATES, .evaluate = stiffening_evaluate, .model = &exact}, forces = truth;
    cubature_check  check;
    double          omega2[COORDINATES] = {4, 1, 9, 2, 3, 5, 6, 1e300};
    forces.model = &other;
    for (int k = 0; k < 2; k++) {
        other = exact, other.scale = k ? 0.8 : 1.25;
        assert_ok(cubature_compare(&forces, &truth, omega2, 0.5, 10, 1, &check));
        assert_true(fabs(check.worst - 0.25) < 1e-5 && fabs(check.mean - 0.25) < 1e-5); // 1 - 1 / 0.8 and 1.25 - 1
    }
    other = exact, other.stiffness[1] = -0.001; // in random poses off by less than 1 on average
    assert_ok(cubature_compare(&forces, &truth, omega2, 0.01, 10, 1, &check));
    assert_true(fabs(check.mean - 1) < 1e-12 && check.worst >= 1);
    omega2[3] = 0;
    assert_int_equal(cubature_compare(&forces, &truth, omega2, 0.5, 10, 1, &check), FEM_BAD_INPUT);
}

// ---- in flight --------------------------------------------------------------------------------------------------

// A bar with a slit swings, is sewn while it moves, swings on, is opened again. The place and velocity in full are the
// nearest that the new basis has; energy comes only with the springs; a change that fails leaves all bits as they were.
static void test_in_flight(void **state) {
    (void)state;
    slit                   t;
    modes_stitched        *s = NULL;
    modes_basis            old = {0}, basis = {0};
    cubature_full         *full = NULL, *full_old = NULL;
    cubature_stitched     *sewn = NULL;
    solver_reduced        *solver = NULL;
    solver_rebase_report   report, back;
    solver_reduced_options options = solver_reduced_default_options();
    enum { R = 16 };
    double q[R] = {0}, dq[R] = {0};
    slit_create(&t, 1);
    int     wide = R + 3 * t.count; // all that the body had, and the answers of the stitches
    double *L = fem_alloc((size_t)wide * (size_t)wide, 8);
    old_modes(&t.body, R, &old);
    options.time_step = 1e-3, options.newton_iterations = 20;
    assert_ok(cubature_full_create(&full_old, t.body.body, R, old.U));
    cubature_forces forces = cubature_full_forces(full_old);
    assert_ok(solver_reduced_create(&solver, &forces, NULL, &options));
    for (int i = 0; i < 4; i++) dq[i] = 0.3 / (1 + i);
    assert_ok(solver_reduced_set_state(solver, 0, q, dq));
    for (int k = 0; k < 20; k++) assert_ok(solver_reduced_step(solver));
    assert_ok(modes_stitched_create(&s, &t.body.problem, NULL));
    assert_ok(modes_stitched_add(s, t.count, t.stitches));
    update(s, &old, MODES_STITCH_ATTACHMENT, wide, 0, &basis);
    assert_ok(modes_stitched_springs(s, wide, basis.U, L));
    assert_ok(cubature_full_create(&full, t.body.body, wide, basis.U));
    cubature_forces plain = cubature_full_forces(full);
    assert_ok(cubature_stitched_create(&sewn, &plain, wide, NULL, L));
    cubature_forces stitched = cubature_stitched_forces(sewn);
    // refused: forces of another size
    solver_coordinates before = *solver_reduced_state(solver);
    double             kept[R];
    solver_reduced    *same = solver;
    memcpy(kept, before.q, sizeof kept);
    assert_fails(solver_reduced_rebase(&solver, &old, &basis, &t.body.M, &forces, L, NULL, NULL), FEM_BAD_INPUT,
                 "modes, but");
    for (long allowed = 0; allowed < 4; allowed++) {
        fem_memory_fail_after(allowed);
        assert_int_equal(solver_reduced_rebase(&solver, &old, &basis, &t.body.M, &stitched, L, NULL, NULL),
                         FEM_NO_MEMORY);
        fem_memory_fail_after(-1);
    }
    assert_ptr_equal(solver, same);
    assert_memory_equal(kept, solver_reduced_state(solver)->q, sizeof kept);
    double *u = fem_alloc(2 * (size_t)t.body.n, 8), *v = u + t.body.n;
    dense_gemv_set(t.body.n, R, 1, old.U, before.q, u);
    double time = before.time;
    assert_ok(solver_reduced_rebase(&solver, &old, &basis, &t.body.M, &stitched, L, NULL, &report));
    dense_gemv_set(t.body.n, wide, 1, basis.U, solver_reduced_state(solver)->q, v);
    printf("sewn at %.3f s: %.4g J before, %.4g after, springs %.4g, unexplained %.2g; lost %.2g of the place, %.2g of "
           "the velocity\n",
           time, report.energy_before, report.energy_after, report.springs, report.unexplained, report.lost_place,
           report.lost_velocity);
    assert_true(solver_reduced_state(solver)->time == time && report.springs > 1e-3 * report.energy_before);
    assert_true(report.lost_place < 1e-6 && report.lost_velocity < 1e-6);
    assert_true(fabs(report.unexplained) < 1e-9 * report.energy_before);
    assert_true(test_relative_error(t.body.n, v, u) < 1e-9 && dense_norm(t.body.n, u) > 0);
    solver_energies start, end;
    solver_reduced_energies(solver, &start);
    for (int k = 0; k < 100; k++) assert_ok(solver_reduced_step(solver));
    solver_reduced_energies(solver, &end);
    double drift = fabs(end.kinetic + end.strain - report.energy_after) / report.energy_after;
    printf("100 steps on: energy %.3g %% off\n", 100 * drift);
    assert_true(drift < 0.05);
    assert_ok(solver_reduced_rebase(&solver, &basis, &old, &t.body.M, &forces, NULL, NULL, &back)); // opened again
    printf("opened again: %.4g J before, %.4g after, lost %.2g of the place, %.2g of the velocity\n",
           back.energy_before, back.energy_after, back.lost_place, back.lost_velocity);
    assert_true(back.energy_after > 0 &&
                back.energy_after <= back.energy_before); // springs gone, parts of the motion too
    for (int k = 0; k < 20; k++) assert_ok(solver_reduced_step(solver));
    solver_reduced_destroy(solver);
    cubature_stitched_destroy(sewn), cubature_full_destroy(full), cubature_full_destroy(full_old);
    modes_stitched_destroy(s);
    fem_free(L), fem_free(u);
    modes_basis_destroy(&old), modes_basis_destroy(&basis);
    sample_free(&t.body);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quality),   cmocka_unit_test(test_ten_rounds), cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_sewn_cut),  cmocka_unit_test(test_forces),     cmocka_unit_test(test_compare),
        cmocka_unit_test(test_in_flight),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}

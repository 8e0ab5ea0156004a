// Steps of reduced bodies on one core, in microseconds: held and free, StVK by polynomials, beside Barbic and James
// 2005 (figure 11: their whole step, 2005) and VegaFEM's force + stiffness alone on hardware like ours; and contact
// found by the bounded-deformation tree against looking at every sample.
#include "bench/bench.h"
#include "bench/plot.h"

typedef struct body {
    fem_mesh            mesh;
    fem_body           *full;
    modes_basis         basis;
    cubature_polynomial polynomial;
    solver_inertia      inertia;
} body;

static void body_create(body *b, double tets, bool held, int r) {
    unsigned char   *fixed = NULL;
    fem_body_options options = fem_body_default_options();
    fem_material     material = fem_material_default();
    material.kind = FEM_STVK, material.young = 1e6, material.poisson = 0.3, material.density = 1000;
    *b = (body){0};
    bench_branching_body(&b->mesh, tets);
    bench_try(fem_mesh_set_material(&b->mesh, &material));
    bench_try(fem_body_create(&b->full, &b->mesh, &options));
    if (held) fixed = bench_hold_bottom(&b->mesh);
    fem_sparse K = {0}, M = {0};
    double    *u = fem_calloc(3 * (size_t)b->mesh.vertex_count, sizeof *u);
    bench_try(fem_body_matrix(b->full, &K));
    bench_try(fem_body_matrix(b->full, &M));
    fem_body_evaluate(b->full, u, NULL, NULL, &K);
    fem_body_mass(b->full, FEM_MASS_CONSISTENT, &M);
    modes_problem         problem = {.mesh = &b->mesh, .K = &K, .M = &M, .fixed = fixed};
    modes_lanczos_options lanczos = modes_lanczos_default_options();
    lanczos.count = r;
    bench_try(modes_lanczos(&problem, &lanczos, NULL, &b->basis, NULL));
    cubature_polynomial_options po = cubature_polynomial_default_options();
    bench_try(cubature_polynomial_create(&b->polynomial, b->full, r, b->basis.U, &po, NULL));
    bench_try(solver_inertia_create(&b->inertia, b->full, FEM_MASS_CONSISTENT, r, b->basis.U));
    fem_sparse_destroy(&K), fem_sparse_destroy(&M);
    fem_free(u), fem_free(fixed);
}

static void body_destroy(body *b) {
    solver_inertia_destroy(&b->inertia);
    cubature_polynomial_destroy(&b->polynomial);
    modes_basis_destroy(&b->basis);
    fem_body_destroy(b->full);
    fem_mesh_destroy(&b->mesh);
}

// ---- steps -------------------------------------------------------------------------------------------------------

typedef struct steps {
    solver_reduced *held;
    solver_free    *free_body;
    int             count;
} steps;

static void run_steps(void *context) {
    steps *s = context;
    for (int k = 0; k < s->count; k++)
        bench_try(s->held ? solver_reduced_step(s->held) : solver_free_step(s->free_body));
}

// The parts of a step by themselves: the clock of the processor cannot be read between them.
enum { BATCH = 64 };
typedef struct parts {
    const cubature_forces *forces;
    const cubature_batch  *batch;
    int                    r, count, blocks;
    bool                   f_too, K_too;
    double                *q, *f, *K, *work, *H, *x;        // of one instance
    double                *qs, *fs, *Ks, *Hs, *xs, *b_work; // of BATCH instances, in blocks of eight
    unsigned char         *bad;
} parts;

static void run_forces(void *context) {
    parts *p = context;
    for (int k = 0; k < p->count; k++)
        p->forces->evaluate(p->forces->model, p->q, NULL, p->f_too ? p->f : NULL, p->K_too ? p->K : NULL, p->work);
}

static void run_solves(void *context) {
    parts *p = context;
    for (int k = 0; k < p->count; k++) {
        for (int i = 0; i < p->r * p->r; i++) p->H[i] = p->K[i] + (i % (p->r + 1) == 0 ? 1e6 : 0);
        bench_try(dense_cholesky(p->r, p->H));
        memcpy(p->x, p->f, (size_t)p->r * sizeof *p->x);
        dense_cholesky_solve(p->r, p->H, 1, p->x);
    }
}

static void run_batch_forces(void *context) {
    parts *p = context;
    for (int k = 0; k < p->count; k++)
        cubature_batch_evaluate(p->batch, p->blocks, p->qs, NULL, NULL, p->fs, p->Ks, p->b_work);
}

// H = K + 1e6 I in packed upper form, then solved.
static void run_batch_solves(void *context) {
    parts *p = context;
    size_t pairs = (size_t)cubature_pairs(p->r), r = (size_t)p->r;
    for (int k = 0; k < p->count; k++) {
        memcpy(p->Hs, p->Ks, (size_t)p->blocks * pairs * 8 * sizeof *p->Hs);
        memcpy(p->xs, p->fs, (size_t)p->blocks * r * 8 * sizeof *p->xs);
        for (size_t b = 0; b < (size_t)p->blocks; b++)
            for (size_t i = 0; i < r; i++)
                for (size_t lane = 0; lane < 8; lane++) p->Hs[(b * pairs + i * (i + 1) / 2 + i) * 8 + lane] += 1e6;
        fem_batch_solve(p->r, p->blocks, p->Hs, p->xs, p->bad);
    }
}

typedef struct part_times {
    double force, stiffness, both, solve; // us, one instance
    double batch_both, batch_solve;       // us per instance of BATCH
} part_times;

static double microseconds(parts *p, void (*work)(void *), int count) {
    p->count = count;
    return 1e6 * bench_measure(15, work, p).minimum / count;
}

static part_times measure_parts(const cubature_polynomial *polynomial, const double *q) {
    cubature_forces forces = cubature_polynomial_forces(polynomial);
    cubature_batch *batch = NULL;
    bench_try(cubature_batch_create(&batch, polynomial));
    size_t  r = (size_t)forces.r, size = r * r, pairs = (size_t)cubature_pairs(forces.r);
    double *memory = fem_calloc(2 * size + 3 * r, sizeof *memory);
    double *many = fem_calloc(BATCH * (3 * r + 2 * pairs) + cubature_batch_work(batch), sizeof *many);
    parts   p = {.forces = &forces, .batch = batch, .r = forces.r, .blocks = cubature_blocks(BATCH)};
    p.K = memory, p.H = p.K + size, p.q = p.H + size, p.f = p.q + r, p.x = p.f + r;
    p.work = fem_calloc(forces.work, sizeof *p.work); // by itself: its vectors must not cross lines of the cache
    p.qs = many, p.fs = p.qs + BATCH * r, p.xs = p.fs + BATCH * r, p.Ks = p.xs + BATCH * r;
    p.Hs = p.Ks + BATCH * pairs, p.b_work = p.Hs + BATCH * pairs;
    p.bad = fem_calloc((size_t)p.blocks, 1);
    memcpy(p.q, q, r * sizeof *q);
    for (size_t b = 0; b < (size_t)p.blocks; b++)
        for (size_t i = 0; i < 8 * r; i++) p.qs[8 * b * r + i] = q[i / 8];
    part_times t = {0};
    int        often = 200000 / (forces.r * forces.r), seldom = often / 16 + 1;
    p.f_too = true, t.force = microseconds(&p, run_forces, often);
    p.K_too = true, t.both = microseconds(&p, run_forces, often);
    p.f_too = false, t.stiffness = microseconds(&p, run_forces, often);
    t.solve = microseconds(&p, run_solves, often);
    t.batch_both = microseconds(&p, run_batch_forces, seldom) / BATCH;
    t.batch_solve = microseconds(&p, run_batch_solves, seldom) / BATCH;
    fem_free(memory), fem_free(many), fem_free(p.work), fem_free(p.bad);
    cubature_batch_destroy(batch);
    return t;
}

static void excite(steps *s, int r, double speed) {
    double *dq = fem_calloc((size_t)r, sizeof *dq);
    for (int l = 0; l < r; l++) dq[l] = speed / (1 + l);
    const double w[3] = {1, 2, 3};
    if (s->held)
        bench_try(solver_reduced_set_state(s->held, 0, NULL, dq));
    else
        bench_try(solver_free_set_state(s->free_body, &(solver_motion_start){.w = w, .dq = dq}));
    fem_free(dq);
}

static solver_reduced_options step_options(bool held) {
    solver_reduced_options o = held ? solver_reduced_default_options() : solver_free_default_options();
    o.time_step = 1e-3, o.damping_mass = 0.5, o.damping_stiffness = 1e-3;
    return o;
}

// A stretch of the same motion through the elements of the whole mesh: seconds per step, and how far q is at its end.
static double full_baseline(const body *b, int r, const cubature_forces *forces, double *error) {
    solver_reduced_options o = step_options(true);
    cubature_full         *full = NULL;
    steps                  fast = {.count = 60}, slow = {.count = 60};
    bench_try(cubature_full_create(&full, b->full, r, b->basis.U));
    cubature_forces full_forces = cubature_full_forces(full);
    bench_try(solver_reduced_create(&fast.held, forces, NULL, &o));
    bench_try(solver_reduced_create(&slow.held, &full_forces, NULL, &o));
    excite(&fast, r, 300), excite(&slow, r, 300);
    run_steps(&fast);
    double began = fem_cpu_seconds();
    run_steps(&slow);
    double seconds = (fem_cpu_seconds() - began) / slow.count, difference = 0, largest = 0;
    for (int l = 0; l < r; l++) {
        double a = solver_reduced_state(fast.held)->q[l], c = solver_reduced_state(slow.held)->q[l];
        difference = fmax(difference, fabs(a - c)), largest = fmax(largest, fabs(c));
    }
    *error = difference / largest;
    solver_reduced_destroy(fast.held), solver_reduced_destroy(slow.held);
    cubature_full_destroy(full);
    return seconds;
}

// A number, or its place left empty.
static void print_known(const char *format, int width, double value) {
    if (value > 0)
        printf(format, width, value);
    else
        printf("%*s", width, "-");
}

static void bench_held(const body *b, plot *figure) {
    static const struct {
        int    r;
        double paper[4], vega; // force, stiffness, solve, whole step of the paper; force + stiffness of VegaFEM
    } rows[] = {{8, {0}, 0.72},  {12, {8.2, 9.5, 12.5, 30.2}, 0}, {15, {22, 25, 18.4, 65.4}, 0},
                {20, {0}, 12.8}, {30, {550, 770, 75, 1395}, 103}, {40, {0}, 366}};
    double x[6], ours[6], papers[3], paper_r[3];
    int    paper_count = 0;
    printf("   held body, %d tets, semi-implicit Newmark, local damping; microseconds (P4 Figure 11)\n",
           b->mesh.element_count);
    printf("   %3s | %7s %7s %7s %7s %7s (median) | %6s %6s %6s %6s %7s | %7s %8s | %7s %7s %8s | %9s %7s | %s\n", "r",
           "force", "stiff.", "both", "solve", "step", "P4: f", "K", "solve", "step", "ratio", "Vega", "/both", "of 64",
           "solve", "Vega/64", "full mesh", "ratio", "error");
    for (int i = 0; i < 6; i++) {
        int                 r = rows[i].r;
        cubature_polynomial part;
        bench_try(cubature_polynomial_truncate(&part, &b->polynomial, r));
        cubature_forces        forces = cubature_polynomial_forces(&part);
        solver_reduced_options o = step_options(true);
        steps                  s = {.count = 200000 / (r * r)};
        bench_try(solver_reduced_create(&s.held, &forces, NULL, &o));
        excite(&s, r, 5);
        run_steps(&s);
        bench_time    time = bench_measure(15, run_steps, &s);
        double        per = 1e6 / s.count, error = 0, full = full_baseline(b, r, &forces, &error) * 1e6;
        double        step = time.minimum * per;
        const double *paper = rows[i].paper, vega = rows[i].vega;
        part_times    t = measure_parts(&part, solver_reduced_state(s.held)->q);
        printf("   %3d | %7.2f %7.2f %7.2f %7.2f %7.2f %8.2f |", r, t.force, t.stiffness, t.both, t.solve, step,
               time.median * per);
        for (int k = 0; k < 4; k++) print_known(" %*.1f", 6, paper[k]);
        print_known(" %*.0fx", 6, paper[3] / step);
        printf(" |"), print_known(" %*.2f", 7, vega), print_known(" %*.1fx", 7, vega / t.both);
        printf(" | %7.3f %7.3f", t.batch_both, t.batch_solve), print_known(" %*.1fx", 7, vega / t.batch_both);
        printf(" | %9.0f %6.0fx | %.0e\n", full, full / step, error);
        x[i] = r, ours[i] = step;
        if (paper[3] > 0) paper_r[paper_count] = r, papers[paper_count++] = paper[3];
        solver_reduced_destroy(s.held);
        cubature_polynomial_destroy(&part);
    }
    plot_series(figure, "held body, here", 6, x, ours);
    plot_series(figure, "held body, Barbic and James 2005", paper_count, paper_r, papers);
}

static void bench_free(const body *b, plot *figure) {
    static const int rows[] = {8, 12, 15, 20, 30, 40};
    double           x[6], ours[6];
    printf("   free body, %d tets, midpoint rule\n", b->mesh.element_count);
    printf("   %4s | %14s %8s | %14s %8s | %s\n", "r", "2 iterations", "(median)", "1 iteration", "(median)",
           "angular momentum lost");
    for (int i = 0; i < 6; i++) {
        int                 r = rows[i];
        cubature_polynomial part;
        solver_inertia      inertia;
        bench_time          time[2];
        double              lost = 0;
        bench_try(cubature_polynomial_truncate(&part, &b->polynomial, r));
        bench_try(solver_inertia_create(&inertia, b->full, FEM_MASS_CONSISTENT, r, b->basis.U));
        cubature_forces forces = cubature_polynomial_forces(&part);
        int             count = 100000 / (r * r);
        for (int k = 0; k < 2; k++) {
            solver_reduced_options o = step_options(false);
            o.newton_iterations = 2 - k;
            steps                  s = {.count = count};
            solver_motion_energies start, end;
            bench_try(solver_free_create(&s.free_body, &inertia, &forces, &o));
            excite(&s, r, 5);
            solver_free_energies(s.free_body, &start);
            time[k] = bench_measure(15, run_steps, &s);
            solver_free_energies(s.free_body, &end);
            lost = fmax(lost, vec3_distance(start.spin, end.spin) / vec3_norm(start.spin));
            solver_free_destroy(s.free_body);
        }
        double per = 1e6 / count;
        printf("   %4d | %11.2f us %8.2f | %11.2f us %8.2f | %.0e\n", r, time[0].minimum * per, time[0].median * per,
               time[1].minimum * per, time[1].median * per, lost);
        x[i] = r, ours[i] = time[0].minimum * per;
        solver_inertia_destroy(&inertia);
        cubature_polynomial_destroy(&part);
    }
    plot_series(figure, "free body, here", 6, x, ours);
}

// ---- contact -----------------------------------------------------------------------------------------------------

// Looks at every sample of the surface, with one matrix product for their places.
typedef struct everything {
    int           count, r;
    double       *rows; // 3 count x r, column-major
    const double *X, *q, *centre;
    double       *u, radius;
    int           found;
} everything;

static void look_everywhere(void *context) {
    everything *e = context;
    dense_gemv_set(3 * e->count, e->r, 1, e->rows, e->q, e->u);
    e->found = 0;
    for (int i = 0; i < e->count; i++) {
        double d[3];
        for (int k = 0; k < 3; k++) d[k] = e->X[3 * i + k] + e->u[3 * i + k] - e->centre[k];
        e->found += vec3_dot(d, d) < e->radius * e->radius;
    }
}

// A ball pressed against the crown of a held body: whole steps, contact alone, and the search of every sample.
static void bench_contact(double tets) {
    enum { R = 15 };
    body           b;
    solver_samples samples;
    body_create(&b, tets, true, R);
    bench_try(solver_samples_create(&samples, &b.mesh, R, b.basis.U));
    solver_contact_options co = solver_contact_default_options();
    co.stiffness = 1e6, co.damping = 1e4;
    solver_contact *contact = NULL;
    bench_try(solver_contact_create(&contact, &samples, &co));
    int top = 0;
    for (int i = 0; i < samples.count; i++)
        if (samples.X[3 * i + 2] > samples.X[3 * top + 2]) top = i;
    double radius = 0.1, centre[3] = {samples.X[3 * top], samples.X[3 * top + 1], samples.X[3 * top + 2] + 0.09};
    solver_obstacle ball = solver_sphere(centre, radius);
    bench_try(solver_contact_add(contact, &ball, NULL));
    cubature_forces        forces = cubature_polynomial_forces(&b.polynomial);
    solver_reduced_options o = step_options(true);
    steps                  s = {.count = 500};
    bench_try(solver_reduced_create(&s.held, &forces, NULL, &o));
    bench_time without = bench_measure(9, run_steps, &s);
    bench_try(solver_reduced_set_contact(s.held, contact));
    bench_time            with = bench_measure(9, run_steps, &s);
    solver_contact_report report = solver_contact_get_report(contact);

    everything e = {.count = samples.count, .r = R, .X = samples.X, .centre = centre, .radius = radius};
    e.q = solver_reduced_state(s.held)->q;
    e.rows = fem_alloc(3 * (size_t)samples.count * R, sizeof *e.rows);
    e.u = fem_alloc(3 * (size_t)samples.count, sizeof *e.u);
    for (int i = 0; i < 3 * samples.count; i++)
        for (int l = 0; l < R; l++)
            e.rows[(size_t)l * 3 * (size_t)samples.count + (size_t)i] = samples.U[(size_t)i * R + (size_t)l];
    bench_time every = bench_measure(15, look_everywhere, &e);
    double     per = 1e6 / s.count;
    printf("   %8d %8d | %8d %8d %8d | %9.2f %9.2f | %11.2f | %9.0f\n", b.mesh.element_count, samples.count,
           report.contacts, report.spheres, report.samples, without.minimum * per, with.minimum * per,
           every.minimum * 1e6, 1e6 / (with.minimum * per));
    fem_free(e.rows), fem_free(e.u);
    solver_reduced_destroy(s.held);
    solver_contact_destroy(contact);
    solver_samples_destroy(&samples);
    body_destroy(&b);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "steps of reduced bodies, one core, microseconds");
    fem_set_threads(1);
    bench_print_speed();
    plot *figure = plot_create("One time step of a reduced body", "modes", "microseconds", true, true);
    body  b;
    body_create(&b, 3000, true, 40);
    bench_held(&b, figure);
    body_destroy(&b);
    body_create(&b, 3000, false, 40);
    bench_free(&b, figure);
    body_destroy(&b);
    plot_write(figure, "out/bench/reduced_steps.svg");
    printf("   contact of a held body (r = 15) with a ball, tree against looking at every sample\n");
    printf("   %8s %8s | %8s %8s %8s | %9s %9s | %11s | %9s\n", "tets", "samples", "contacts", "spheres", "tested",
           "step us", "with it", "every us", "steps/s");
    bench_contact(3000);
    bench_contact(20000);
    bench_contact(60000);
    if (getenv("LIMBER_LONG")) bench_contact(200000);
    return 0;
}

// P0 Fig. 4 to 7: modified Gram-Schmidt in the mass inner product, the reduced method, and block Gram-Schmidt, on the
// same columns: time, orthogonality, errors of the reduced inner product, and histograms of cosines.
//
// The columns are what the Krylov recursion of P0 hands to its orthogonalisation: K^-1 M of six rigid fields, then of
// what the reduced method (two passes, orthonormal on its sample only) made of the columns before. One thread,
// processor time.
#include "bench/modes_case.h"
#include "bench/plot.h"
#include "libmodes/krylov_internal.h"

enum { MOST = 240, BINS = 41 };

static double *require(double *memory) {
    if (!memory) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for columns"));
    return memory;
}

static double *raw_columns(modes_case *c, int r) {
    modes_inverse              *inverse = NULL;
    modes_orthogonaliser       *orthogonaliser = NULL;
    modes_orthogonalise_options options = modes_orthogonalise_default_options();
    size_t                      n = (size_t)c->n;
    int                         kept = 0;
    double *U = require(fem_alloc(n * (size_t)r, sizeof *U)), *X = require(fem_alloc(n * (size_t)r, sizeof *X));
    bench_try(modes_inverse_create(&inverse, &c->problem, MODES_BORDER_MASS));
    options.method = MODES_GRAM_SCHMIDT_REDUCED;
    bench_try(modes_orthogonaliser_create(&orthogonaliser, &c->problem, &options, r, U));
    for (int have = 0; have < r; have += 6) {
        double *x = X + (size_t)have * n, *u = U + (size_t)have * n;
        if (have == 0) {
            modes_seed_fields(&c->problem, c->fixed, MODES_SEED_RIGID, 0, 0, u);
            fem_sparse_multiply(&c->M, 6, u, x);
        } else {
            modes_orthogonaliser_mass(orthogonaliser, have - 6, 6, x);
        }
        bench_try(modes_inverse_solve(inverse, 6, x, x));
        memcpy(u, x, 6 * n * sizeof *u);
        bench_try(modes_orthogonaliser_add(orthogonaliser, 6, &kept));
        if (kept < 6) bench_try(fem_fail(FEM_BAD_INPUT, "the seeds of %s led to dependent columns", c->name));
    }
    modes_orthogonaliser_destroy(orthogonaliser);
    modes_inverse_destroy(inverse);
    fem_free(U);
    return X;
}

// ---- Fig. 4: time --------------------------------------------------------------------------------------------------

typedef struct variant {
    const char        *name;
    modes_gram_schmidt method;
    int                passes;
    double             threshold;
    bool               plain;
} variant;

static const variant variants[] = {
    {"MGS", MODES_GRAM_SCHMIDT_MASS, 1, 0, false},
    {"MGS, two passes", MODES_GRAM_SCHMIDT_MASS, 2, 0, false},
    {"rMGS as printed, nothing left out", MODES_GRAM_SCHMIDT_REDUCED, 1, 0, true},
    {"rMGS as printed, 0.001", MODES_GRAM_SCHMIDT_REDUCED, 1, 0.001, true},
    {"rMGS as printed, 0.001, two passes", MODES_GRAM_SCHMIDT_REDUCED, 2, 0.001, true},
    {"rMGS by products, 0.001, two passes", MODES_GRAM_SCHMIDT_REDUCED, 2, 0.001, false},
    {"block, two passes", MODES_GRAM_SCHMIDT_BLOCK, 2, 0, false},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

typedef struct work {
    modes_case                 *c;
    modes_mass                  mass;
    modes_orthogonalise_options options;
    int                         r;
    const double               *X;
    double                     *U, *gram;
    modes_orthogonalise_report  report;
} work;

// Without the copying of the columns and without the measuring of orthogonality.
static bench_time measure(work *w, int runs) {
    double seconds[8];
    for (int run = 0; run < runs; run++) {
        modes_orthogonaliser *o = NULL;
        int                   kept = 0;
        memcpy(w->U, w->X, (size_t)w->c->n * (size_t)w->r * sizeof *w->U);
        double begin = fem_cpu_seconds();
        bench_try(modes_orthogonaliser_create(&o, &w->c->problem, &w->options, w->r, w->U));
        bench_try(modes_orthogonaliser_add(o, w->r, &kept));
        fem_status status = w->options.method == MODES_GRAM_SCHMIDT_REDUCED ? modes_reduced_finish(o) : FEM_OK;
        seconds[run] = fem_cpu_seconds() - begin;
        w->report = o->report;
        modes_orthogonaliser_destroy(o);
        if (status == FEM_INDEFINITE) return (bench_time){.minimum = NAN, .median = NAN};
        bench_try(status);
    }
    bench_try(modes_mass_gram(&w->mass, 0, w->report.rank, w->U, w->gram));
    w->report.orthogonality = tall_distance_from_identity(w->report.rank, w->gram);
    qsort(seconds, (size_t)runs, sizeof *seconds, bench_compare);
    return (bench_time){.minimum = seconds[0], .median = seconds[runs / 2]};
}

static void figure_4(modes_case *c, const double *X) {
    const int ranks[] = {30, 60, 120, 240};
    double    seconds[VARIANTS][4], x[4];
    work      w = {.c = c, .X = X, .U = require(fem_alloc((size_t)c->n * MOST, sizeof *w.U))};
    w.gram = require(fem_alloc(MOST * MOST, sizeof *w.gram));
    bench_try(modes_mass_create(&w.mass, &c->M));
    printf("   Fig. 4, time in ms (minimum, median), on %s\n", c->name);
    for (int k = 0; k < 4; k++) {
        double base = 0;
        w.r = ranks[k], x[k] = ranks[k];
        for (int v = 0; v < VARIANTS; v++) {
            w.options = modes_orthogonalise_default_options();
            w.options.method = variants[v].method, w.options.passes = variants[v].passes;
            w.options.threshold = variants[v].threshold, w.options.plain = variants[v].plain;
            bench_time t = measure(&w, w.r <= 120 ? 3 : 2);
            seconds[v][k] = t.minimum;
            if (v == 0) base = t.minimum;
            if (isnan(t.minimum)) {
                printf("     r = %3d  %-36s %s\n", w.r, variants[v].name, fem_message());
                continue;
            }
            printf("     r = %3d  %-36s %8.1f %8.1f %5.1fx | rank %d, U'MU-I %.0e", w.r, variants[v].name,
                   1e3 * t.minimum, 1e3 * t.median, base / t.minimum, w.report.rank, w.report.orthogonality);
            if (variants[v].method == MODES_GRAM_SCHMIDT_REDUCED)
                printf(", on its sample of %d nodes %.0e; %.0f %% left out", w.report.samples,
                       w.report.sample_orthogonality,
                       100.0 * (double)w.report.culled / (double)(w.report.culled + w.report.subtractions));
            printf("\n");
        }
    }
    printf("     [P0: reduced about 75x faster than MGS on a dinosaur of 491K dofs]\n");
    plot *figure = plot_create("Orthogonalisation (P0 Fig. 4)", "columns r", "seconds", true, true);
    for (int v = 0; v < VARIANTS; v++) {
        bool whole = true;
        for (int k = 0; k < 4; k++) whole = whole && isfinite(seconds[v][k]);
        if (whole) plot_series(figure, variants[v].name, 4, x, seconds[v]);
    }
    plot_write(figure, "out/bench/orthogonalise_time.svg");
    modes_mass_destroy(&w.mass);
    fem_free(w.U), fem_free(w.gram);
}

// ---- Fig. 5: the reduced inner product -----------------------------------------------------------------------------

static void figure_5(modes_case *c, const double *X, const double *gram) {
    enum { POINTS = 7 };
    double  nodes[POINTS], mean_error[POINTS], median_error[POINTS];
    double *errors = require(fem_alloc(MOST * MOST, sizeof *errors)), *G = require(fem_alloc(MOST * MOST, sizeof *G));
    printf("   Fig. 5, error of the reduced inner product over all pairs of %d columns of %s\n", MOST, c->name);
    for (int p = 0; p < POINTS; p++) {
        modes_sample sample;
        bench_try(modes_sample_create(&sample, &c->problem, 25 << p));
        int     m = 3 * sample.count, pairs = 0;
        double *S = require(fem_alloc((size_t)m * MOST, sizeof *S)), sum = 0, whole = 0;
        for (size_t j = 0; j < MOST; j++)
            for (int i = 0; i < m; i++)
                S[j * (size_t)m + (size_t)i] = sqrt(sample.weight[i / 3]) *
                                               X[j * (size_t)c->n + 3 * (size_t)sample.vertex[i / 3] + (size_t)(i % 3)];
        dense_gemm(true, false, MOST, MOST, m, 1, S, S, 0, G);
        for (int i = 0; i < MOST; i++)
            for (int j = 0; j < i; j++) {
                double exact = gram[i * MOST + j], size = sqrt(gram[i * MOST + i] * gram[j * MOST + j]);
                errors[pairs++] = fabs((G[i * MOST + j] - exact) / exact);
                sum += errors[pairs - 1];
                whole = fmax(whole, fabs(G[i * MOST + j] - exact) / size);
            }
        qsort(errors, (size_t)pairs, sizeof *errors, bench_compare);
        nodes[p] = sample.count, mean_error[p] = sum / pairs, median_error[p] = errors[pairs / 2];
        printf("     %5d nodes: mean relative error %.2e, median %.2e; largest error of a cosine %.2e\n", sample.count,
               mean_error[p], median_error[p], whole);
        modes_sample_destroy(&sample);
        fem_free(S);
    }
    plot *figure =
        plot_create("Reduced inner product (P0 Fig. 5)", "nodes in the sample", "relative error", true, true);
    plot_series(figure, "mean over pairs", POINTS, nodes, mean_error);
    plot_series(figure, "median", POINTS, nodes, median_error);
    plot_write(figure, "out/bench/orthogonalise_sample.svg");
    fem_free(errors), fem_free(G);
}

// ---- Fig. 6: thresholds --------------------------------------------------------------------------------------------

static void figure_6(modes_case *c, const double *X) {
    enum { R = 30 };
    const double      thresholds[] = {0.999, 0.1, 0.01, 0.001, 0};
    const char *const names[] = {"as they come", "0.1", "0.01", "0.001", "0"};
    double           *U = require(fem_alloc((size_t)c->n * R, sizeof *U)), gram[R * R];
    double           *cosines = require(fem_calloc(5 * R * R, sizeof *cosines)); // of one pass, as the paper has it
    modes_mass        mass;
    bench_try(modes_mass_create(&mass, &c->M));
    printf("   Fig. 6, U'MU of %d columns of %s before the Cholesky factorisation that ends the reduced method\n", R,
           c->name);
    for (int passes = 1; passes <= 2; passes++)
        for (int t = 0; t < 5; t++) {
            modes_orthogonalise_options options = modes_orthogonalise_default_options();
            modes_orthogonaliser       *orthogonaliser = NULL;
            int                         kept = 0;
            double                      largest = 0, mean = 0;
            options.method = MODES_GRAM_SCHMIDT_REDUCED, options.passes = passes, options.threshold = thresholds[t];
            memcpy(U, X, (size_t)c->n * R * sizeof *U);
            bench_try(modes_orthogonaliser_create(&orthogonaliser, &c->problem, &options, R, U));
            bench_try(modes_orthogonaliser_add(orthogonaliser, R, &kept));
            bench_try(modes_mass_gram(&mass, 0, kept, U, gram));
            for (int i = 0; i < kept; i++)
                for (int j = 0; j < i; j++) {
                    double cosine = fabs(gram[i * kept + j]) / sqrt(gram[i * kept + i] * gram[j * kept + j]);
                    if (passes == 1) cosines[(t * R + i) * R + j] = cosines[(t * R + j) * R + i] = cosine;
                    largest = fmax(largest, cosine);
                    mean += 2 * cosine / (kept * (kept - 1));
                }
            printf("     threshold %-5g %d pass%s: largest cosine %.2e, mean %.2e\n", thresholds[t], passes,
                   passes > 1 ? "es" : "", largest, mean);
            modes_orthogonaliser_destroy(orthogonaliser);
        }
    for (int k = 0; k < 5 * R; k++) cosines[k * R + k % R] = 1;
    plot_matrices("U'MU after one pass that leaves cosines below a threshold (P0 Fig. 6)", 5, names, R, cosines, 1e-4,
                  "out/bench/orthogonalise_threshold.svg");
    modes_mass_destroy(&mass);
    fem_free(U), fem_free(cosines);
}

// ---- Fig. 7: cosines -----------------------------------------------------------------------------------------------

// of pairs (i, j), j < i: numerator over the norms of both; returns the standard deviation
static double histogram(const double *product, const double *norm2_i, const double *norm2_j, double *count,
                        double *small) {
    double square = 0;
    int    pairs = MOST * (MOST - 1) / 2;
    memset(count, 0, BINS * sizeof *count);
    *small = 0;
    for (int i = 0; i < MOST; i++)
        for (int j = 0; j < i; j++) {
            double cosine = product[i * MOST + j] / sqrt(norm2_i[i * (MOST + 1)] * norm2_j[j * (MOST + 1)]);
            int    bin = (int)((cosine + 1) / 2 * BINS);
            count[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
            square += cosine * cosine / pairs;
            *small += 100.0 * (fabs(cosine) < 0.001) / pairs;
        }
    return sqrt(square);
}

static double near_zero(const double *count) { // per cent
    double sum = 0;
    for (int b = BINS / 2 - 2; b <= BINS / 2 + 2; b++) sum += count[b];
    return 100 * sum / (MOST * (MOST - 1) / 2);
}

// The columns with each other, as they come, and with the orthonormal columns before them, which is what is subtracted.
static void figure_7(const modes_case *c, const modes_mass *mass, const double *X, const double *gram) {
    double                      x[BINS], count[BINS], normal[BINS], later[BINS], small, small_later;
    size_t                      n = (size_t)c->n;
    modes_orthogonalise_options options = modes_orthogonalise_default_options();
    int                         pairs = MOST * (MOST - 1) / 2, rank = 0;
    double *U = require(fem_copy(X, n * MOST, sizeof *U)), *MX = require(fem_alloc(n * MOST, sizeof *MX));
    double *cross = require(fem_alloc(2 * MOST * MOST, sizeof *cross)), *unit = cross + MOST * MOST;
    for (int b = 0; b < BINS; b++) x[b] = -1 + (2.0 * b + 1) / BINS;
    double deviation = histogram(gram, gram, gram, count, &small);
    bench_try(modes_orthogonalise(&c->problem, &options, MOST, U, &rank, NULL));
    if (rank < MOST) bench_try(fem_fail(FEM_BAD_INPUT, "%s: dependent columns", c->name));
    modes_mass_multiply(mass, MOST, X, MX);
    bench_try(tall_inner(c->n, MOST, MOST, U, MX, cross)); // entry (j, i) at [i * MOST + j]
    bench_try(modes_mass_gram(mass, 0, MOST, U, unit));
    double deviation_later = histogram(cross, gram, unit, later, &small_later);
    printf(
        "   Fig. 7, %d cosines of %s: standard deviation %.3f, %.0f %% within 0.12, %.1f %% below the threshold "
        "0.001;\n"
        "     with the orthonormal columns before: standard deviation %.3f, %.0f %% within 0.12, %.1f %% below 0.001\n",
        pairs, c->name, deviation, near_zero(count), small, deviation_later, near_zero(later), small_later);
    char title[128], path[128];
    snprintf(title, sizeof title, "Cosines of %d inertia modes, %s (P0 Fig. 7)", MOST, c->name);
    snprintf(path, sizeof path, "out/bench/cosines_%s.svg", c->name);
    plot *figure = plot_create(title, "cosine", "pairs", false, false);
    for (int b = 0; b < BINS; b++) // of the same deviation, as the paper draws it
        normal[b] = pairs * (2.0 / BINS) * exp(-0.5 * pow(x[b] / deviation, 2)) / (sqrt(6.283185307179586) * deviation);
    plot_bars(figure, "pairs of columns", BINS, x, count);
    plot_bars(figure, "columns with orthonormal ones before", BINS, x, later);
    plot_series(figure, "normal distribution of the first", BINS, x, normal);
    plot_write(figure, path);
    fem_free(U), fem_free(MX), fem_free(cross);
}

int main(int argc, char **argv) {
    (void)argc;
    static const struct {
        const char *name;
        double      tets;
    } bodies[] = {{"bunny_50k", 50e3}, {"armadillo_60k", 60e3}, {"dragon_100k", 100e3}};
    bench_header(argv, "Orthogonalisation, one core (P0 Fig. 4 to 7)");
    fem_set_threads(1);
    for (int b = 0; b < 3; b++) {
        modes_case c;
        modes_mass mass;
        modes_case_create(&c, bodies[b].name, bodies[b].tets);
        printf("   %s: %d tets, %d dofs\n", c.name, c.mesh.element_count, c.n);
        double *X = raw_columns(&c, MOST), *gram = require(fem_alloc(MOST * MOST, sizeof *gram));
        bench_try(modes_mass_create(&mass, &c.M));
        bench_try(modes_mass_gram(&mass, 0, MOST, X, gram));
        figure_7(&c, &mass, X, gram);
        if (b == 2) figure_4(&c, X), figure_5(&c, X, gram), figure_6(&c, X);
        modes_mass_destroy(&mass);
        fem_free(X), fem_free(gram);
        modes_case_destroy(&c);
        fflush(stdout);
    }
    return 0;
}

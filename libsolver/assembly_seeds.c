// Modes of the whole mesh as seeds of its domains.
//
// What a domain does in the lowest modes of the body is what its own coordinates must be able to do, so that these
// modes come out right. With interfaces that children follow, the tree can then move as the whole does.
#include "libsolver/assembly_internal.h"

#include <pthread.h>
#include <string.h>

struct assembly_seeds {
    pthread_mutex_t lock;
    fem_hash        key;
    int             count;
    bool            tried;
    fem_status      status;
    double          bytes; // that finding them takes, where memory is limited
    modes_basis     basis; // scaled to unit energy
};

// The body, its stiffness at rest and its supports. Caller destroys.
typedef struct whole_body {
    fem_body      *body;
    fem_sparse     K;
    unsigned char *fixed; // NULL: it is free
} whole_body;

static void whole_destroy(whole_body *b) {
    fem_body_destroy(b->body);
    fem_sparse_destroy(&b->K);
    fem_free(b->fixed);
}

static fem_status whole_create(const assembly_work *w, whole_body *b) {
    fem_status       status = FEM_OK;
    size_t           n = 3 * (size_t)w->mesh->vertex_count;
    fem_body_options options = fem_body_default_options();
    options.quadrature = w->options->class.quadrature;
    if (w->fixed_count > 0) {
        b->fixed = fem_calloc(n, 1);
        if (!b->fixed) return fem_fail(FEM_NO_MEMORY, "no memory for %zu degrees of freedom", n);
        for (int i = 0; i < w->fixed_count; i++) memset(b->fixed + 3 * (size_t)w->fixed[i], 1, 3);
    }
    FEM_TRY(fem_body_create(&b->body, w->mesh, &options));
    FEM_TRY(fem_body_matrix(b->body, &b->K));
done:
    return status;
}

// The lowest modes come from a block Krylov space with a Ritz step, whose right-hand sides are solved eight at a time,
// in a third of the time that Lanczos takes for them one by one. It is as wide as it must be for residuals below a few
// hundredths, where squared frequencies are off by 1e-6 at most; where it was not, and for small bodies, Lanczos.
enum { BLOCK = 8 };
static const double RESIDUAL = 0.03;

static int krylov_columns(int count) { return (5 * count + 2 * BLOCK - 1) / BLOCK * BLOCK; }
static int most_modes(const assembly_work *w) { return solver_class_most_modes(w->mesh->vertex_count, w->fixed_count); }
static bool by_krylov(const assembly_work *w, int count) { return krylov_columns(count) <= most_modes(w) / 16; }

static fem_status estimate(const assembly_work *w, assembly_seeds *seeds) {
    fem_status   status = FEM_OK;
    whole_body   b = {0};
    double       kept;
    modes_recipe recipe = modes_default_recipe(MODES_LANCZOS);
    recipe.derivatives = 0, recipe.linear = 1;
    FEM_TRY(whole_create(w, &b));
    solver_need need = {.mesh = w->mesh,
                        .K = &b.K,
                        .fixed = b.fixed,
                        .recipe = &recipe,
                        .modes = by_krylov(w, seeds->count) ? krylov_columns(seeds->count) : seeds->count,
                        .direct = true};
    FEM_TRY(solver_need_bytes(&need, &seeds->bytes, &kept));
done:
    whole_destroy(&b);
    return status;
}

fem_status assembly_seeds_create(assembly_work *w) {
    int             count = w->options->whole_modes, most = most_modes(w) / 4;
    assembly_seeds *seeds = fem_calloc(1, sizeof *seeds);
    if (!seeds) return fem_fail(FEM_NO_MEMORY, "no memory for the modes of the whole");
    if (pthread_mutex_init(&seeds->lock, NULL) != 0) {
        fem_free(seeds);
        return fem_fail(FEM_NO_MEMORY, "no memory for a lock");
    }
    seeds->count = count < most ? count : most;
    const int numbers[] = {seeds->count, (int)w->options->class.mass, w->options->class.quadrature};
    seeds->key = fem_hash_add(fem_mesh_hash(w->mesh), numbers, sizeof numbers);
    seeds->key = fem_hash_add(seeds->key, w->fixed, (size_t)w->fixed_count * sizeof *w->fixed);
    w->seeds = seeds;
    return w->options->class.room ? estimate(w, seeds) : FEM_OK;
}

void assembly_seeds_destroy(assembly_seeds *seeds) {
    if (!seeds) return;
    pthread_mutex_destroy(&seeds->lock);
    modes_basis_destroy(&seeds->basis);
    fem_free(seeds);
}

// *enough: are they as good as they should be?
static fem_status krylov_modes(const modes_problem *problem, modes_inverse *inverse, int count, modes_basis *basis,
                               bool *enough) {
    fem_status           status = FEM_OK;
    modes_basis          space = {0};
    modes_krylov_report  report = {0};
    modes_krylov_options options = modes_krylov_default_options();
    options.count = krylov_columns(count);
    options.seeds = MODES_SEED_RANDOM, options.fields = BLOCK;
    options.ritz = true;
    options.inverse = inverse;
    *enough = false;
    FEM_TRY(modes_krylov(problem, &options, NULL, &space, &report));
    FEM_TRY(modes_basis_allocate(basis, space.n, count));
    memcpy(basis->U, space.U, (size_t)space.n * (size_t)count * sizeof *basis->U);
    memcpy(basis->omega2, space.omega2, (size_t)count * sizeof *basis->omega2);
    *enough = true;
    for (int k = 0; k < count; k++) *enough = *enough && report.residuals[k] < RESIDUAL;
done:
    fem_free(report.rayleigh), fem_free(report.residuals);
    modes_basis_destroy(&space);
    return status;
}

static fem_status find_modes(const assembly_work *w, assembly_seeds *seeds) {
    fem_status            status = FEM_OK;
    size_t                n = 3 * (size_t)w->mesh->vertex_count;
    whole_body            b = {0};
    fem_sparse            M = {0};
    modes_inverse        *inverse = NULL;
    bool                  enough = false;
    modes_lanczos_options lanczos = modes_lanczos_default_options();
    double               *zero = fem_calloc(n, sizeof *zero);
    if (!zero) return fem_fail(FEM_NO_MEMORY, "no memory for %zu degrees of freedom", n);
    FEM_TRY(whole_create(w, &b));
    FEM_TRY(fem_body_matrix(b.body, &M));
    fem_body_mass(b.body, w->options->class.mass, &M);
    fem_body_evaluate(b.body, zero, NULL, NULL, &b.K);
    modes_problem problem = {.mesh = w->mesh, .K = &b.K, .M = &M, .fixed = b.fixed};
    FEM_TRY(modes_inverse_create(&inverse, &problem, MODES_BORDER_MASS));
    if (by_krylov(w, seeds->count)) FEM_TRY(krylov_modes(&problem, inverse, seeds->count, &seeds->basis, &enough));
    lanczos.count = seeds->count;
    lanczos.tolerance = 1e-6; // they are seeds
    lanczos.inverse = inverse;
    if (!enough) FEM_TRY(modes_lanczos(&problem, &lanczos, NULL, &seeds->basis, NULL));
    for (int k = 0; k < seeds->basis.r; k++)
        dense_scale((int)n, 1 / sqrt(fmax(seeds->basis.omega2[k], 1e-300)), seeds->basis.U + n * (size_t)k);
done:
    modes_inverse_destroy(inverse);
    whole_destroy(&b);
    fem_sparse_destroy(&M);
    fem_free(zero);
    return status;
}

// A body so slender that its stiffness is singular to rounding has no modes to be had; its domains do without.
bool assembly_seeds_lost(const assembly_seeds *seeds) {
    return seeds && (seeds->status == FEM_INDEFINITE || seeds->status == FEM_NO_CONVERGENCE);
}

// Rows of a domain and of its collar.
static fem_status find(void *context, double **fields, double *omega2) {
    const assembly_seeds_of *of = context;
    const assembly_work     *w = of->w;
    assembly_seeds          *seeds = w->seeds;
    const domain_part       *part = &w->parts[of->domain];
    size_t                   own = (size_t)part->mesh.vertex_count, whole = 3 * (size_t)w->mesh->vertex_count;
    size_t all = w->around[of->domain].vertex_count > 0 ? (size_t)w->around[of->domain].vertex_count : own;
    pthread_mutex_lock(&seeds->lock);
    if (!seeds->tried) seeds->status = find_modes(w, seeds), seeds->tried = true;
    pthread_mutex_unlock(&seeds->lock);
    *fields = NULL;
    if (assembly_seeds_lost(seeds)) return FEM_OK;
    if (seeds->status != FEM_OK) return fem_fail(seeds->status, "the modes of the whole body were not found");
    double *x = fem_alloc(3 * all * (size_t)seeds->count, sizeof *x);
    if (!x) return fem_fail(FEM_NO_MEMORY, "no memory for %d fields", seeds->count);
    for (size_t k = 0; k < (size_t)seeds->count; k++)
        for (size_t v = 0; v < all; v++) {
            size_t from = (size_t)(v < own ? part->vertices[v] : w->around_vertices[of->domain][v - own]);
            memcpy(x + 3 * (all * k + v), seeds->basis.U + whole * k + 3 * from, 3 * sizeof *x);
        }
    memcpy(omega2, seeds->basis.omega2, (size_t)seeds->count * sizeof *omega2);
    *fields = x;
    return FEM_OK;
}

// Once they are found, or have failed, they take nothing more.
static double find_bytes(void *context) {
    const assembly_seeds_of *of = context;
    assembly_seeds          *seeds = of->w->seeds;
    pthread_mutex_lock(&seeds->lock);
    double bytes = seeds->tried ? 0 : seeds->bytes;
    pthread_mutex_unlock(&seeds->lock);
    return bytes;
}

solver_seeds assembly_seeds_for(assembly_seeds_of *of) {
    return (solver_seeds){
        .count = of->w->seeds->count, .key = of->w->seeds->key, .find = find, .bytes = find_bytes, .context = of};
}

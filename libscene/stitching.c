// A body that is stitched while it moves. Every state is reached from the modes, derivatives and factor of the body
// without stitches, which are held: errors do not add up, and what is undone gives back what was there before.
#include "libscene/stitching_internal.h"

#include <math.h>
#include <string.h>

const char *scene_stitch_form_name(scene_stitch_form form) {
    if (form <= SCENE_STITCH_ATTACHMENT) return modes_stitch_form_name((modes_stitch_form)form);
    return form == SCENE_STITCH_SCRATCH ? "scratch" : "original";
}

void scene_passage_destroy(scene_passage *passage) {
    fem_free(passage->springs), fem_free(passage->pull);
    *passage = (scene_passage){0};
}

void scene_change_destroy(scene_change *change) {
    modes_stitch_quality_destroy(&change->quality);
    fem_free(change->frequency2);
    *change = (scene_change){0};
}

static void springs_destroy(springs_of *springs) {
    fem_free(springs->list), fem_free(springs->factor);
    *springs = (springs_of){0};
}

// ---- life ----------------------------------------------------------------------------------------------------------

void scene_stitching_destroy(scene_stitching *t) {
    if (!t) return;
    modes_stitched_destroy(t->stitched);
    modes_inverse_destroy(t->inverse);
    modes_basis_destroy(&t->linear);
    modes_rights_destroy(&t->rights);
    modes_basis_destroy(&t->plain);
    springs_destroy(&t->before), springs_destroy(&t->next);
    fem_sparse_destroy(&t->K);
    fem_sparse_destroy(&t->M);
    fem_free(t->fixed);
    fem_free(t);
}

fem_status stitching_copy_basis(const modes_basis *from, modes_basis *to) {
    fem_status status = modes_basis_allocate(to, from->n, from->r);
    if (status != FEM_OK) return status;
    memcpy(to->U, from->U, (size_t)from->n * (size_t)from->r * sizeof *to->U);
    memcpy(to->omega2, from->omega2, (size_t)from->r * sizeof *to->omega2);
    return FEM_OK;
}

// The highest modes of a stitched body reach beyond as many old ones: without these `plant.json` has 0.83 of its
// twentieth, with six of them 0.99999.
enum { MODES_BEYOND = 10 };

static int old_modes(const scene_stitching *t) {
    int wanted = t->wanted, free_dofs = -6 * modes_stitched_domains(t->stitched); // at most six rigid motions each
    for (int i = 0; i < 3 * t->part->mesh.vertex_count; i++) free_dofs += !t->fixed[i];
    int beyond = free_dofs - wanted < MODES_BEYOND ? free_dofs - wanted : MODES_BEYOND;
    return beyond > 0 ? wanted + beyond : wanted;
}

// The modes that the body without stitches has by itself; borrowed.
static modes_basis own_modes(const scene_stitching *t) {
    modes_basis own = t->linear;
    own.r = t->wanted;
    return own;
}

// New derivatives are those of the first six modes; as many old ones as twice the basis are kept, lowest first.
static int fresh_modes(const scene_stitching *t) { return t->wanted < 6 ? t->wanted : 6; }
static int kept_pairs(const scene_stitching *t) {
    int all = t->wanted * (t->wanted + 1) / 2, most = 2 * t->part->modes.recipe.count;
    return most < all ? most : all;
}

fem_status scene_stitching_create(scene_stitching **stitching, const scene *s, const fem_body *body,
                                  const scene_class *first, const fem_progress *progress) {
    fem_status            status = FEM_OK;
    modes_lanczos_options options = modes_lanczos_default_options();
    modes_basis           own;
    double               *u = NULL;
    scene_stitching      *t = fem_calloc(1, sizeof *t);
    if (!t) return fem_fail(FEM_NO_MEMORY, "no memory for a stitched body");
    t->s = s, t->part = &s->parts[s->object], t->body = body, t->first = first;
    size_t n = 3 * (size_t)t->part->mesh.vertex_count;
    t->fixed = fem_calloc(n, 1);
    u = fem_calloc(n, sizeof *u);
    if (!t->fixed || !u) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu degrees of freedom", n);
        goto done;
    }
    for (int i = 0; i < t->part->fixed.count; i++) memset(t->fixed + 3 * (size_t)t->part->fixed.items[i], 1, 3);
    FEM_TRY(fem_body_matrix(body, &t->K));
    FEM_TRY(fem_body_matrix(body, &t->M));
    fem_body_evaluate(body, u, NULL, NULL, &t->K);
    fem_body_mass(body, s->solver.mass, &t->M);
    t->problem = (modes_problem){.mesh = &t->part->mesh, .K = &t->K, .M = &t->M, .fixed = t->fixed};
    FEM_TRY(modes_inverse_create(&t->inverse, &t->problem, MODES_BORDER_MASS));
    FEM_TRY(modes_stitched_create(&t->stitched, &t->problem, t->inverse));
    t->wanted = t->part->modes.recipe.linear;
    options.count = old_modes(t), options.inverse = t->inverse;
    if (t->part->modes.method == SCENE_MODES_KRYLOV) {
        modes_recipe recipe = t->part->modes.recipe;
        recipe.derivatives = 0, recipe.count = recipe.linear = options.count;
        FEM_TRY(modes_build(&t->problem, body, &recipe, t->inverse, progress, &t->linear, NULL));
    } else {
        FEM_TRY(modes_lanczos(&t->problem, &options, progress, &t->linear, NULL));
    }
    own = own_modes(t);
    if (first && t->part->modes.recipe.derivatives > 0)
        FEM_TRY(modes_rights_create(&t->rights, body, t->inverse, &own, kept_pairs(t)));
    if (first) FEM_TRY(stitching_copy_basis(&first->basis, &t->plain));
    *stitching = t;
    t = NULL;
done:
    scene_stitching_destroy(t);
    fem_free(u);
    return status;
}

const modes_problem *scene_stitching_problem(const scene_stitching *t) { return &t->problem; }
int                  scene_stitching_count(const scene_stitching *t) { return modes_stitched_count(t->stitched); }

bool stitching_is_scaled(const scene_stitching *t) {
    for (int d = 0; d < modes_stitched_domains(t->stitched); d++)
        if (modes_stitched_factor(t->stitched, d) != 1) return true;
    return false;
}

bool scene_stitching_is_first(const scene_stitching *t) {
    return modes_stitched_count(t->stitched) == 0 && !stitching_is_scaled(t);
}

// ---- linear modes ---------------------------------------------------------------------------------------------------

// Everything anew: the matrix, its factor, its modes.
typedef struct scratch {
    fem_sparse     K;
    modes_problem  problem;
    modes_inverse *inverse;
} scratch;

static void scratch_destroy(scratch *c) {
    modes_inverse_destroy(c->inverse);
    fem_sparse_destroy(&c->K);
}

static fem_status scratch_modes(scene_stitching *t, scratch *c, modes_basis *linear, double *seconds) {
    fem_status            status = FEM_OK;
    modes_lanczos_options options = modes_lanczos_default_options();
    c->problem = t->problem;
    FEM_TRY(modes_stitched_matrix(t->stitched, &c->K)); // not counted: it is at hand in any other program
    c->problem.K = &c->K;
    double begun = fem_cpu_seconds();
    FEM_TRY(modes_inverse_create(&c->inverse, &c->problem, MODES_BORDER_MASS));
    options.count = t->wanted, options.inverse = c->inverse;
    FEM_TRY(modes_lanczos(&c->problem, &options, NULL, linear, NULL));
    *seconds = fem_cpu_seconds() - begun;
done:
    return status;
}

// The weights of a modal rule belong to the coordinates that it was trained for: such a body keeps to its modes.
static bool is_modal(const scene_stitching *t) {
    return t->part->forces == SCENE_CUBATURE && t->part->training.method == CUBATURE_MODAL;
}

// Frequencies of old modes that move one domain each have its factor. Of modes that equal domains share they are
// guesses, which `lowrank` takes as they are; the other forms multiply K^ out where modes are not true.
static fem_status scale_frequencies(const scene_stitching *t, modes_basis *old) {
    old->omega2 = fem_copy(t->linear.omega2, (size_t)t->linear.r, sizeof *old->omega2);
    if (!old->omega2) return fem_fail(FEM_NO_MEMORY, "no memory for %d frequencies", t->linear.r);
    for (int j = 0; j < old->r && stitching_is_scaled(t); j++) {
        const double *u = old->U + (size_t)j * (size_t)old->n;
        int           most = 0;
        for (int i = 0; i < old->n; i++)
            if (fabs(u[i]) > fabs(u[most])) most = i;
        int domain = modes_stitched_domain_of(t->stitched, most / 3);
        if (domain >= 0) old->omega2[j] *= modes_stitched_factor(t->stitched, domain);
    }
    return FEM_OK;
}

fem_status scene_stitching_linear(scene_stitching *t, scene_stitch_form form, modes_basis *linear, double *seconds) {
    fem_status           status = FEM_OK;
    scratch              c = {0};
    modes_stitch_options options = modes_stitch_default_options();
    modes_basis          old = t->linear, own = own_modes(t); // borrowed but for the frequencies of `old`
    double               begun = fem_cpu_seconds();
    old.omega2 = NULL;
    if (form == SCENE_STITCH_SCRATCH) {
        FEM_TRY(scratch_modes(t, &c, linear, seconds));
        goto done;
    }
    if (form == SCENE_STITCH_ORIGINAL) {
        FEM_TRY(stitching_copy_basis(&own, linear));
        FEM_TRY(modes_stitched_rayleigh(t->stitched, linear));
    } else {
        options.form = (modes_stitch_form)form, options.count = t->wanted;
        FEM_TRY(scale_frequencies(t, &old));
        FEM_TRY(modes_stitched_modes(t->stitched, &old, &options, linear, NULL));
    }
    *seconds = fem_cpu_seconds() - begun;
done:
    fem_free(old.omega2);
    scratch_destroy(&c);
    return status;
}

fem_status scene_stitching_quality(scene_stitching *t, const modes_basis *linear, modes_stitch_quality *quality) {
    return modes_stitched_examine(t->stitched, linear, &t->s->stitching.rule, quality);
}

// ---- derivatives and the basis --------------------------------------------------------------------------------------

static fem_status fill_pool(scene_stitching *t, scratch *c, const modes_basis *linear, scene_stitch_form form,
                            const fem_body *body, modes_pool *pool, double **omega2) {
    fem_status               status = FEM_OK;
    modes_hybrid_options     hybrid = modes_hybrid_default_options();
    modes_derivative_options derivatives = modes_derivative_default_options();
    fem_pair                *pairs = NULL;
    modes_basis              own = own_modes(t);
    hybrid.modes = fresh_modes(t), hybrid.kept = t->rights.count;
    if (form != SCENE_STITCH_SCRATCH)
        return modes_stitched_derivatives(t->stitched, t->body, linear, &t->rights, &own, &hybrid, pool, omega2, NULL);
    int all = linear->r * (linear->r + 1) / 2, count = hybrid.modes * (hybrid.modes + 1) / 2 + hybrid.kept;
    derivatives.pair_count = count < all ? count : all;
    pairs = fem_alloc((size_t)derivatives.pair_count, sizeof *pairs);
    *omega2 = fem_copy(linear->omega2, (size_t)linear->r, sizeof **omega2);
    if (!pairs || !*omega2) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d derivatives", count);
        goto done;
    }
    FEM_TRY(modes_lowest_pairs(linear->r, linear->omega2, derivatives.pair_count, pairs));
    derivatives.pairs = pairs;
    FEM_TRY(modes_derivatives(&c->problem, body, c->inverse, linear, &derivatives, NULL, pool, NULL));
done:
    fem_free(pairs);
    return status;
}

// Linear modes, and their derivatives condensed, as the part's recipe says.
static fem_status make_basis(scene_stitching *t, scratch *c, const modes_basis *linear, scene_stitch_form form,
                             const fem_body *body, const fem_progress *progress, modes_basis *basis,
                             scene_change *change) {
    fem_status             status = FEM_OK;
    const modes_recipe    *recipe = &t->part->modes.recipe;
    modes_condense_options condense = modes_condense_default_options();
    modes_pool             pool = {0};
    double                *omega2 = NULL, begun = fem_cpu_seconds();
    if (recipe->derivatives == 0) {
        FEM_TRY(stitching_copy_basis(linear, basis));
        goto done;
    }
    FEM_TRY(fill_pool(t, c, linear, form, body, &pool, &omega2));
    change->seconds_derivatives = fem_cpu_seconds() - begun;
    begun = fem_cpu_seconds();
    condense.method = recipe->condense, condense.r = recipe->count, condense.energy = 0;
    condense.no_frequencies = true; // those of K^ follow
    if (condense.r > pool.count) condense.r = pool.count;
    // frequencies that `lowrank` does not have are no weights
    for (int j = 0; j < linear->r; j++) omega2[j] = fmax(omega2[j], 1e-6 * t->linear.omega2[0]);
    FEM_TRY(modes_condense(&t->problem, &pool, omega2, &condense, progress, basis, NULL));
    FEM_TRY(modes_stitched_rayleigh(t->stitched, basis));
    change->seconds_condense = fem_cpu_seconds() - begun;
done:
    fem_free(omega2);
    modes_pool_destroy(&pool);
    return status;
}

// ---- the class ------------------------------------------------------------------------------------------------------

// In the new basis: springs that are there now, less those of the class before.
static fem_status spring_change(const scene_stitching *t, const modes_basis *basis, const double *L, double **change) {
    int     r = basis->r, rows = 3 * t->before.count;
    double *T = fem_calloc((size_t)rows * (size_t)r + 1, sizeof *T);
    *change = fem_copy(L, (size_t)r * (size_t)r, sizeof *L);
    if (!T || !*change) {
        fem_free(T);
        return fem_fail(FEM_NO_MEMORY, "no memory for the springs of %d modes", r);
    }
    for (int j = 0; j < r; j++)
        for (int i = 0; i < rows; i++) {
            const modes_stitch *stitch = &t->before.list[i / 3];
            const double       *u = basis->U + (size_t)j * (size_t)basis->n;
            T[(size_t)j * (size_t)rows + (size_t)i] =
                sqrt(stitch->stiffness) * (u[3 * stitch->a + i % 3] - u[3 * stitch->b + i % 3]);
        }
    if (rows > 0) dense_gemm(true, false, r, r, rows, -1, T, T, 1, *change);
    fem_free(T);
    return FEM_OK;
}

static double energy_of(int count, const modes_stitch *list, const double *u) {
    double energy = 0;
    for (int i = 0; i < count; i++) {
        double gap = vec3_distance(u + 3 * (size_t)list[i].a, u + 3 * (size_t)list[i].b);
        energy += list[i].stiffness * gap * gap / 2;
    }
    return energy;
}

fem_status scene_stitching_energy(const scene_stitching *t, const double *u, double *energy) {
    fem_status status = FEM_OK;
    int        domains = modes_stitched_domains(t->stitched), *domain = NULL;
    *energy = energy_of(modes_stitched_count(t->stitched), modes_stitched_list(t->stitched), u) -
              energy_of(t->before.count, t->before.list, u);
    for (int d = 0; d < domains; d++) {
        double more = modes_stitched_factor(t->stitched, d) - (t->before.factor ? t->before.factor[d] : 1), whole = 0;
        if (more == 0) continue;
        fem_mesh  view = {0};
        fem_body *alone = NULL;
        int       vertices = t->part->mesh.vertex_count;
        if (!domain) domain = fem_alloc((size_t)vertices, sizeof *domain);
        if (!domain) return fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", vertices);
        for (int v = 0; v < vertices; v++) domain[v] = modes_stitched_domain_of(t->stitched, v);
        FEM_TRY(stitching_group_body(&t->part->mesh, t->part->quadrature, domain, d, &view, &alone));
        fem_body_evaluate(alone, u, &whole, NULL, NULL);
        stitching_group_destroy(&view, alone);
        *energy += more * whole;
    }
done:
    fem_free(domain);
    return status;
}

fem_status scene_stitching_lost(const scene_stitching *t, const modes_basis *basis, const double *state,
                                double *energy) {
    size_t  n = (size_t)basis->n;
    double *w = fem_copy(state, 2 * n, sizeof *w), *Mw = fem_alloc(n, sizeof *Mw);
    double *c = fem_alloc((size_t)basis->r, sizeof *c);
    *energy = 0;
    if (!w || !Mw || !c) {
        fem_free(w), fem_free(Mw), fem_free(c);
        return fem_fail(FEM_NO_MEMORY, "no memory for %zu degrees of freedom", n);
    }
    for (int k = 0; k < 2; k++) {
        double *part = w + (size_t)k * n;
        fem_sparse_multiply(&t->M, 1, part, Mw);
        dense_gemv_t_set(basis->n, basis->r, 1, basis->U, Mw, c);
        dense_gemv_add(basis->n, basis->r, -1, basis->U, c, part);
        if (k == 0)
            modes_stitched_multiply(t->stitched, 1, part, Mw);
        else
            fem_sparse_multiply(&t->M, 1, part, Mw);
        *energy += dense_dot(basis->n, part, Mw) / 2;
    }
    fem_free(w), fem_free(Mw), fem_free(c);
    return FEM_OK;
}

// U^T K u, with the springs that were there before and still are
static fem_status find_pull(const scene_stitching *t, const modes_basis *basis, const double *u, double **pull) {
    double *Ku = fem_alloc((size_t)basis->n, sizeof *Ku);
    *pull = fem_alloc((size_t)basis->r, sizeof **pull);
    if (!Ku || !*pull) {
        fem_free(Ku);
        return fem_fail(FEM_NO_MEMORY, "no memory for %d degrees of freedom", basis->n);
    }
    modes_stitched_multiply(t->stitched, 1, u, Ku);
    const modes_stitch *now = modes_stitched_list(t->stitched);
    for (int i = 0; i < modes_stitched_count(t->stitched); i++) {
        int    k = stitching_find(t->before.count, t->before.list, &now[i]);
        double added = now[i].stiffness - (k < 0 ? 0 : t->before.list[k].stiffness);
        for (int c = 0; added > 0 && c < 3; c++) {
            double force = added * (u[3 * now[i].a + c] - u[3 * now[i].b + c]);
            Ku[3 * now[i].a + c] -= force, Ku[3 * now[i].b + c] += force;
        }
    }
    dense_gemv_t_set(basis->n, basis->r, 1, basis->U, Ku, *pull);
    fem_free(Ku);
    return FEM_OK;
}

static fem_status judge(scene_stitching *t, const modes_basis *linear, scene_change *change) {
    fem_status status = FEM_OK;
    double     begun = fem_cpu_seconds();
    FEM_TRY(scene_stitching_quality(t, linear, &change->quality));
    change->frequency2 = fem_copy(linear->omega2, (size_t)change->quality.count, sizeof *change->frequency2);
    if (!change->frequency2) status = fem_fail(FEM_NO_MEMORY, "no memory for %d frequencies", change->quality.count);
    change->seconds_quality = fem_cpu_seconds() - begun;
done:
    return status;
}

// The modes and derivatives of the body as it is now, in the form of the scene or from scratch.
static fem_status make_whole(scene_stitching *t, const fem_body *body, const fem_progress *progress, modes_basis *whole,
                             scene_change *made) {
    fem_status                  status = FEM_OK;
    const scene_stitch_options *o = &t->s->stitching;
    scratch                     c = {0};
    modes_basis                 linear = {0};
    if (made->form == SCENE_STITCH_ORIGINAL) {
        FEM_TRY(stitching_copy_basis(&t->plain, whole));
        FEM_TRY(modes_stitched_rayleigh(t->stitched, whole));
        goto done;
    }
    if (o->form <= SCENE_STITCH_ATTACHMENT) {
        FEM_TRY(scene_stitching_linear(t, o->form, &linear, &made->seconds_modes));
        if (o->form == SCENE_STITCH_LOWRANK) FEM_TRY(modes_stitched_rayleigh(t->stitched, &linear));
        if (o->rebuild != SCENE_REBUILD_NEVER) FEM_TRY(judge(t, &linear, made));
        if (made->quality.rebuild && o->rebuild == SCENE_REBUILD_AUTOMATIC)
            made->form = SCENE_STITCH_SCRATCH, made->rebuilt = true;
    }
    if (made->form == SCENE_STITCH_SCRATCH) {
        modes_basis_destroy(&linear);
        FEM_TRY(scratch_modes(t, &c, &linear, &made->seconds_modes));
    }
    FEM_TRY(make_basis(t, &c, &linear, made->form, body, progress, whole, made));
done:
    modes_basis_destroy(&linear);
    scratch_destroy(&c);
    return status;
}

// Springs and factors of the body as it is now.
static fem_status copy_springs(const scene_stitching *t, springs_of *springs) {
    int domains = modes_stitched_domains(t->stitched);
    springs_destroy(springs);
    springs->count = modes_stitched_count(t->stitched);
    springs->list = fem_copy(modes_stitched_list(t->stitched), (size_t)springs->count, sizeof *springs->list);
    springs->factor = fem_alloc((size_t)domains, sizeof *springs->factor);
    if (!springs->list || !springs->factor) return fem_fail(FEM_NO_MEMORY, "no memory for %d stitches", springs->count);
    for (int d = 0; d < domains; d++) springs->factor[d] = modes_stitched_factor(t->stitched, d);
    return FEM_OK;
}

void scene_stitching_commit(scene_stitching *t) {
    springs_destroy(&t->before);
    t->before = t->next;
    t->next = (springs_of){0};
}

// A piece that is stitched across a gap of more than this part of its size will turn by an angle that modes do not
// have.
static const double FAR = 0.05;

// Pieces at whose new springs the shape gapes far. Caller frees.
static fem_status find_moving(const scene_stitching *t, const double *u, bool **moving) {
    int                 domains = modes_stitched_domains(t->stitched);
    const modes_stitch *now = modes_stitched_list(t->stitched);
    const fem_mesh     *mesh = &t->part->mesh;
    double             *box = fem_alloc(6 * (size_t)domains, sizeof *box);
    *moving = fem_calloc((size_t)domains, sizeof **moving);
    if (!box || !*moving) {
        fem_free(box);
        return fem_fail(FEM_NO_MEMORY, "no memory for %d pieces", domains);
    }
    for (int i = 0; i < 6 * domains; i++) box[i] = i % 6 < 3 ? INFINITY : -INFINITY;
    for (int i = 0; i < 3 * mesh->vertex_count; i++) {
        int d = modes_stitched_domain_of(t->stitched, i / 3);
        if (d < 0) continue;
        double *low = box + 6 * d + i % 3, *high = low + 3;
        *low = fmin(*low, mesh->vertices[i]), *high = fmax(*high, mesh->vertices[i]);
    }
    for (int i = 0; i < modes_stitched_count(t->stitched); i++) {
        if (stitching_find(t->before.count, t->before.list, &now[i]) >= 0) continue;
        double gap = vec3_distance(u + 3 * (size_t)now[i].a, u + 3 * (size_t)now[i].b);
        for (int k = 0; k < 2; k++) {
            int d = modes_stitched_domain_of(t->stitched, k == 0 ? now[i].a : now[i].b);
            if (gap > FAR * vec3_distance(box + 6 * d, box + 6 * d + 3)) (*moving)[d] = true;
        }
    }
    fem_free(box);
    return FEM_OK;
}

// The basis of a class, and its forces: of a body in several pieces group by group.
static fem_status fill_class(scene_stitching *t, const fem_body *body, const modes_basis *whole, const double *carry,
                             scene_class *class, const fem_progress *progress, double **L, scene_change *change) {
    fem_status   status = FEM_OK;
    modes_blocks blocks = {0};
    bool        *moving = NULL;
    bool         moves = (change->first || change->form != SCENE_STITCH_ORIGINAL) && !is_modal(t);
    if (moves && (carry || modes_stitched_domains(t->stitched) > 1)) {
        if (carry) FEM_TRY(find_moving(t, carry, &moving));
        FEM_TRY(modes_stitched_blocks(t->stitched, whole, true, moving, carry ? 2 : 0, carry, &blocks));
        FEM_TRY(stitching_copy_basis(&blocks.basis, &class->basis));
        class->carried = fem_copy(blocks.more, (size_t)blocks.basis.r, sizeof *blocks.more);
        if (!class->carried) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d modes", blocks.basis.r);
            goto done;
        }
    } else {
        FEM_TRY(stitching_copy_basis(whole, &class->basis));
    }
    size_t r = (size_t) class->basis.r;
    *L = fem_calloc(r * r, sizeof **L);
    if (!*L) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the springs of %zu modes", r);
        goto done;
    }
    FEM_TRY(modes_stitched_springs(t->stitched, class->basis.r, class->basis.U, *L));
    FEM_TRY(stitching_forces(t, body, whole, &blocks, class, *L, progress, change));
done:
    fem_free(moving);
    modes_blocks_destroy(&blocks);
    return status;
}

fem_status scene_stitching_first(scene_stitching *t, const fem_progress *progress, scene_class **result) {
    fem_status   status = FEM_OK;
    double      *L = NULL;
    scene_change change = {.first = true, .form = SCENE_STITCH_ORIGINAL};
    scene_class *class = NULL;
    *result = NULL;
    if (modes_stitched_domains(t->stitched) < 2 || is_modal(t)) return FEM_OK;
    class = fem_calloc(1, sizeof *class);
    if (!class) return fem_fail(FEM_NO_MEMORY, "no memory for a class");
    FEM_TRY(fill_class(t, t->body, &t->plain, NULL, class, progress, &L, &change));
    class->seconds_modes = t->first->seconds_modes, class->seconds_forces = change.seconds_forces;
    class->cached = t->first->cached;
    *result = class;
    class = NULL;
done:
    scene_class_destroy(class);
    fem_free(L);
    return status;
}

void scene_stitching_begin(scene_stitching *t, const scene_class *first) { t->first = first; }

fem_status scene_stitching_class(scene_stitching *t, const double *state, bool carry, const fem_progress *progress,
                                 scene_class **result, scene_passage *passage, scene_change *change) {
    fem_status      status = FEM_OK;
    modes_basis     whole = {0};
    double         *L = NULL;
    scene_passage   through = {0};
    const fem_body *body = t->body;
    bool            first = scene_stitching_is_first(t);
    scene_change    made = {.form = first ? SCENE_STITCH_ORIGINAL : t->s->stitching.form,
                            .first = first,
                            .stitches = modes_stitched_count(t->stitched)};
    scene_class *class = first && !carry ? NULL : fem_calloc(1, sizeof *class);
    const modes_basis *basis = class ? &class->basis : &t->first->basis;
    if (!class && !(first && !carry)) return fem_fail(FEM_NO_MEMORY, "no memory for a class");
    if (class) {
        if (stitching_is_scaled(t)) {
            FEM_TRY(stitching_scaled_body(t, &class->mesh, &class->body));
            body = class->body;
        }
        FEM_TRY(make_whole(t, body, progress, &whole, &made));
        FEM_TRY(fill_class(t, body, &whole, carry ? state : NULL, class, progress, &L, &made));
    } else {
        L = fem_calloc((size_t)basis->r * (size_t)basis->r, sizeof *L);
        if (!L) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d modes", basis->r);
            goto done;
        }
    }
    FEM_TRY(spring_change(t, basis, L, &through.springs));
    if (state) FEM_TRY(find_pull(t, basis, state, &through.pull));
    FEM_TRY(copy_springs(t, &t->next));
    *result = class, *passage = through, *change = made;
    class = NULL, through = (scene_passage){0}, made = (scene_change){0};
done:
    fem_free(L);
    scene_passage_destroy(&through);
    scene_change_destroy(&made);
    modes_basis_destroy(&whole);
    scene_class_destroy(class);
    return status;
}

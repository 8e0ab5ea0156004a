// A stitched body: its list of springs, products with its stiffness, and the inverse of its mass.
#include "libmodes/stitch_internal.h"

#include <stdlib.h>
#include <string.h>

fem_status stitch_no_memory(const modes_stitched *s, const char *what) {
    return fem_fail(FEM_NO_MEMORY, "no memory for the %s of %d stitches", what, s->count);
}

// ---- life -----------------------------------------------------------------------------------------------------------

static void forget_halves(modes_stitched *s) {
    for (int i = 0; i < s->half_count; i++) fem_half_destroy(&s->halves[i]);
    fem_free(s->F), fem_free(s->V);
    s->half_count = s->ready = 0, s->F = s->V = NULL;
}

void modes_stitched_destroy(modes_stitched *s) {
    if (!s) return;
    if (s->own) modes_inverse_destroy(s->inverse);
    modes_mass_destroy(&s->mass);
    stitch_coupling_destroy(&s->whole);
    forget_halves(s);
    fem_free(s->domain), fem_free(s->factor), fem_free(s->diagonal), fem_free(s->stitches), fem_free(s->halves);
    fem_free(s);
}

fem_status modes_stitched_create(modes_stitched **result, const modes_problem *problem, modes_inverse *inverse) {
    fem_status      status = FEM_OK;
    int             vertices = problem->mesh->vertex_count;
    modes_stitched *s = fem_calloc(1, sizeof *s);
    if (!s) return fem_fail(FEM_NO_MEMORY, "no memory for a stitched body");
    s->problem = problem, s->inverse = inverse, s->n = 3 * vertices;
    s->domain = fem_alloc((size_t)vertices, sizeof *s->domain);
    s->diagonal = fem_alloc((size_t)s->n, sizeof *s->diagonal);
    if (!s->domain || !s->diagonal) {
        status = stitch_no_memory(s, "domains");
        goto done;
    }
    FEM_TRY(fem_mesh_components(problem->mesh, s->domain, &s->domains));
    s->factor = fem_alloc((size_t)s->domains, sizeof *s->factor);
    if (!s->factor) {
        status = stitch_no_memory(s, "domains");
        goto done;
    }
    for (int d = 0; d < s->domains; d++) s->factor[d] = 1;
    if (!inverse) {
        FEM_TRY(modes_inverse_create(&s->inverse, problem, MODES_BORDER_MASS));
        s->own = true;
    } else if (inverse->border != MODES_BORDER_MASS || inverse->n != s->n || inverse->amg) {
        status = fem_fail(FEM_BAD_INPUT,
                          "stitching needs the inverse of the same body by a factorisation, with the border by mass");
        goto done;
    }
    if (s->inverse->factor) s->rows = fem_factor_get_report(s->inverse->factor).free_dofs;
    FEM_TRY(modes_mass_create(&s->mass, problem->M));
    for (int i = 0; i < s->n; i++)
        s->diagonal[i] = s->inverse->fixed[i]
                             ? 1
                             : problem->M->value[9 * (size_t)problem->M->row_start[i / 3] + 4 * (size_t)(i % 3)];
    s->report.rigid = s->inverse->report.rigid;
    *result = s;
    s = NULL;
done:
    modes_stitched_destroy(s);
    return status;
}

int                 modes_stitched_count(const modes_stitched *s) { return s->count; }
const modes_stitch *modes_stitched_list(const modes_stitched *s) { return s->stitches; }
int                 modes_stitched_domains(const modes_stitched *s) { return s->domains; }
int                 modes_stitched_domain_of(const modes_stitched *s, int vertex) { return s->domain[vertex]; }
double              modes_stitched_factor(const modes_stitched *s, int domain) { return s->factor[domain]; }

// ---- the list of stitches ---------------------------------------------------------------------------------------

static bool is_held(const modes_stitched *s, int vertex) {
    const unsigned char *fixed = s->problem->fixed ? s->problem->fixed + 3 * (size_t)vertex : NULL;
    return fixed && fixed[0] && fixed[1] && fixed[2];
}

static bool same_ends(const modes_stitch *x, const modes_stitch *y) {
    return (x->a == y->a && x->b == y->b) || (x->a == y->b && x->b == y->a);
}

static fem_status check_ends(const modes_stitched *s, int index, const modes_stitch *stitch, double size) {
    const fem_mesh *mesh = s->problem->mesh;
    int             base = mesh->file_base, ends[2] = {stitch->a, stitch->b};
    for (int e = 0; e < 2; e++) {
        if (ends[e] < 0 || ends[e] >= mesh->vertex_count)
            return fem_fail(FEM_BAD_INPUT, "stitch %d: vertex %d, expected %d to %d", index + 1, ends[e] + base, base,
                            mesh->vertex_count - 1 + base);
        if (s->domain[ends[e]] < 0)
            return fem_fail(FEM_BAD_INPUT, "stitch %d: vertex %d belongs to no element", index + 1, ends[e] + base);
    }
    if (stitch->a == stitch->b)
        return fem_fail(FEM_BAD_INPUT, "stitch %d: vertex %d twice, expected two vertices", index + 1,
                        stitch->a + base);
    if (is_held(s, stitch->a) && is_held(s, stitch->b))
        return fem_fail(FEM_BAD_INPUT, "stitch %d: vertices %d and %d are both fixed, expected one that can move",
                        index + 1, stitch->a + base, stitch->b + base);
    double gap = vec3_distance(mesh->vertices + 3 * (size_t)stitch->a, mesh->vertices + 3 * (size_t)stitch->b);
    if (!(gap <= MODES_STITCH_GAP * size))
        return fem_fail(FEM_BAD_INPUT,
                        "stitch %d: vertices %d and %d are %g m apart, expected two in the same place; aligning them "
                        "before would do",
                        index + 1, stitch->a + base, stitch->b + base, gap);
    return FEM_OK;
}

static fem_status check_stitch(const modes_stitched *s, int index, const modes_stitch *stitch, double size) {
    fem_status status = check_ends(s, index, stitch, size);
    if (status != FEM_OK) return status;
    if (!(stitch->stiffness > 0) || !isfinite(stitch->stiffness))
        return fem_fail(FEM_BAD_INPUT, "stitch %d: stiffness %g N/m, expected > 0", index + 1, stitch->stiffness);
    // that of rest, whatever factors domains have now: what may be stitched does not depend on when
    double material = fmin(modes_stitch_material(s->problem, stitch->a), modes_stitch_material(s->problem, stitch->b));
    double ratio = stitch->stiffness / material;
    if (!(ratio <= MODES_STITCH_RANGE && ratio >= 1 / MODES_STITCH_RANGE))
        return fem_fail(FEM_BAD_INPUT,
                        "stitch %d: stiffness %g N/m is %.3g times that of the material there (%.3g N/m), expected "
                        "%g to %g times; a thousand times holds as if grown together",
                        index + 1, stitch->stiffness, ratio, material, 1 / MODES_STITCH_RANGE, MODES_STITCH_RANGE);
    return FEM_OK;
}

static double mesh_size(const fem_mesh *mesh) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < 3 * mesh->vertex_count; i++) {
        low[i % 3] = fmin(low[i % 3], mesh->vertices[i]);
        high[i % 3] = fmax(high[i % 3], mesh->vertices[i]);
    }
    return vec3_distance(low, high);
}

static int compare_ends(const void *x, const void *y) {
    const modes_stitch *p = *(const modes_stitch *const *)x, *q = *(const modes_stitch *const *)y;
    int                 p0 = p->a < p->b ? p->a : p->b, p1 = p->a + p->b - p0;
    int                 q0 = q->a < q->b ? q->a : q->b, q1 = q->a + q->b - q0;
    if (p0 != q0) return p0 < q0 ? -1 : 1;
    return p1 == q1 ? 0 : p1 < q1 ? -1 : 1;
}

// The first two of a list that have the same ends, by sorting pointers to them.
static fem_status check_repeats(const modes_stitched *s, int total, const modes_stitch *list) {
    const modes_stitch **sorted = fem_alloc((size_t)total, sizeof *sorted);
    fem_status           status = FEM_OK;
    int                  base = s->problem->mesh->file_base;
    if (!sorted) return stitch_no_memory(s, "list");
    for (int i = 0; i < total; i++) sorted[i] = list + i;
    qsort(sorted, (size_t)total, sizeof *sorted, compare_ends);
    for (int i = 1; i < total && status == FEM_OK; i++)
        if (same_ends(sorted[i - 1], sorted[i])) {
            long later = sorted[i] > sorted[i - 1] ? sorted[i] - list : sorted[i - 1] - list;
            status = fem_fail(FEM_BAD_INPUT, "stitch %ld: vertices %d and %d are stitched already",
                              later - s->count + 1, list[later].a + base, list[later].b + base);
        }
    fem_free(sorted);
    return status;
}

fem_status modes_stitches_check(const modes_problem *problem, int known, int count, const modes_stitch *stitches) {
    fem_status     status = FEM_OK;
    int            vertices = problem->mesh->vertex_count;
    double         size = mesh_size(problem->mesh);
    modes_stitched s = {.problem = problem, .n = 3 * vertices, .count = known};
    s.domain = fem_alloc((size_t)vertices, sizeof *s.domain);
    if (!s.domain) return stitch_no_memory(&s, "domains");
    FEM_TRY(fem_mesh_components(problem->mesh, s.domain, &s.domains));
    for (int i = 0; i < count; i++) FEM_TRY(check_stitch(&s, i, &stitches[known + i], size));
    FEM_TRY(check_repeats(&s, known + count, stitches));
done:
    fem_free(s.domain);
    return status;
}

double modes_stitch_material(const modes_problem *problem, int vertex) {
    const double *block = problem->K->value + 9 * (size_t)problem->K->row_start[vertex];
    return fmax(block[0], fmax(block[4], block[8]));
}

static void forget_coupling(modes_stitched *s) {
    stitch_coupling_destroy(&s->whole);
    s->coupled = false;
}

fem_status modes_stitched_add(modes_stitched *s, int count, const modes_stitch *stitches) {
    fem_status status = FEM_OK;
    double     size = mesh_size(s->problem->mesh);
    if (count < 1) return fem_fail(FEM_BAD_INPUT, "%d stitches, expected at least one", count);
    for (int i = 0; i < count; i++) FEM_TRY(check_stitch(s, i, &stitches[i], size));
    FEM_TRY(fem_grow((void **)&s->stitches, &s->capacity, (size_t)s->count + (size_t)count, sizeof *s->stitches));
    memcpy(s->stitches + s->count, stitches, (size_t)count * sizeof *stitches);
    FEM_TRY(check_repeats(s, s->count + count, s->stitches));
    s->count += count;
    forget_coupling(s);
done:
    return status;
}

// What stands ready of stitches that are taken out.
static void drop_columns(modes_stitched *s, const char *gone) {
    int    first = 0, halves = 0, ready = 0, m = 3 * s->ready;
    size_t kept = 0;
    for (int h = 0; h < s->half_count; h++) {
        fem_half *half = &s->halves[h];
        int       left = 0, stitches = half->columns / 3;
        size_t    size = 3 * (size_t)half->rows;
        for (int k = 0; k < stitches; k++) {
            if (gone[first + k]) continue;
            if (left != k) memmove(half->W + size * (size_t)left, half->W + size * (size_t)k, size * sizeof *half->W);
            left++;
        }
        first += stitches, half->columns = 3 * left;
        if (left == 0)
            fem_half_destroy(half);
        else
            s->halves[halves++] = *half;
    }
    s->half_count = halves;
    for (int j = 0; j < m; j++)
        for (int i = 0; i < m; i++)
            if (!gone[i / 3] && !gone[j / 3]) s->F[kept++] = s->F[(size_t)j * (size_t)m + (size_t)i];
    for (int k = 0; k < s->ready; k++) ready += !gone[k];
    s->ready = ready;
}

fem_status modes_stitched_remove(modes_stitched *s, int count, const modes_stitch *stitches) {
    int   base = s->problem->mesh->file_base, kept = 0;
    char *gone = fem_calloc((size_t)s->count + 1, 1);
    if (!gone) return stitch_no_memory(s, "list");
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < s->count && (gone[k] || !same_ends(&s->stitches[k], &stitches[i]))) k++;
        if (k == s->count) {
            fem_free(gone);
            return fem_fail(FEM_BAD_INPUT, "stitch %d: vertices %d and %d are not stitched", i + 1,
                            stitches[i].a + base, stitches[i].b + base);
        }
        gone[k] = 1;
    }
    drop_columns(s, gone);
    for (int k = 0; k < s->count; k++)
        if (!gone[k]) s->stitches[kept++] = s->stitches[k];
    s->count = kept;
    fem_free(gone);
    if (count > 0) forget_coupling(s);
    return FEM_OK;
}

fem_status modes_stitched_scale(modes_stitched *s, int domain, double factor) {
    if (domain < 0 || domain >= s->domains)
        return fem_fail(FEM_BAD_INPUT, "domain %d, but the body has %d", domain, s->domains);
    if (!(factor >= 1 / MODES_STITCH_RANGE && factor <= MODES_STITCH_RANGE))
        return fem_fail(FEM_BAD_INPUT, "stiffness of domain %d: factor %g, expected %g to %g", domain, factor,
                        1 / MODES_STITCH_RANGE, MODES_STITCH_RANGE);
    if (s->factor[domain] != factor) forget_halves(s);
    s->factor[domain] = factor;
    forget_coupling(s);
    return FEM_OK;
}

// ---- products ---------------------------------------------------------------------------------------------------

void stitch_differences(const modes_stitched *s, int first, int count, int columns, const double *X, double *T) {
    const unsigned char *fixed = s->inverse->fixed;
    for (int c = 0; c < columns; c++) {
        const double *x = X + (size_t)c * (size_t)s->n;
        double       *t = T + (size_t)c * 3 * (size_t)count;
        for (int k = 0; k < count; k++)
            for (int i = 0; i < 3; i++) {
                int a = 3 * s->stitches[first + k].a + i, b = 3 * s->stitches[first + k].b + i;
                t[3 * k + i] = (fixed[a] ? 0 : x[a]) - (fixed[b] ? 0 : x[b]);
            }
    }
}

void stitch_spread(const modes_stitched *s, int first, int count, int columns, double alpha, const double *T,
                   double *X) {
    const unsigned char *fixed = s->inverse->fixed;
    for (int c = 0; c < columns; c++) {
        double       *x = X + (size_t)c * (size_t)s->n;
        const double *t = T + (size_t)c * 3 * (size_t)count;
        for (int k = 0; k < count; k++)
            for (int i = 0; i < 3; i++) {
                int a = 3 * s->stitches[first + k].a + i, b = 3 * s->stitches[first + k].b + i;
                if (!fixed[a]) x[a] += alpha * t[3 * k + i];
                if (!fixed[b]) x[b] -= alpha * t[3 * k + i];
            }
    }
}

void stitch_add_springs(const modes_stitched *s, int stitches, const double *x, double *y) {
    double difference[3], force[3];
    for (int k = 0; k < stitches; k++) {
        stitch_differences(s, k, 1, 1, x, difference);
        for (int i = 0; i < 3; i++) force[i] = s->stitches[k].stiffness * difference[i];
        stitch_spread(s, k, 1, 1, 1, force, y);
    }
}

void stitch_multiply(const modes_stitched *s, int stitches, int columns, const double *X, double *Y) {
    size_t n = (size_t)s->n;
    fem_sparse_multiply(s->problem->K, columns, X, Y);
    for (int c = 0; c < columns; c++) {
        double *y = Y + (size_t)c * n;
        for (size_t i = 0; i < n; i++) // K has no entries between domains
            if (s->domain[i / 3] >= 0) y[i] *= s->factor[s->domain[i / 3]];
        stitch_add_springs(s, stitches, X + (size_t)c * n, y);
    }
}

void modes_stitched_multiply(const modes_stitched *s, int columns, const double *X, double *Y) {
    stitch_multiply(s, s->count, columns, X, Y);
}

// ---- M^-1 -------------------------------------------------------------------------------------------------------

typedef struct mass_solve_work {
    const modes_stitched *s;
    const double         *B;
    double               *X, *work;
    double                tolerance;
} mass_solve_work;

enum { MASS_ITERATIONS = 500 }; // many more than a mass matrix needs: D^-1 M has a condition of 5 (T4) or 27 (H8)

static void mass_solve_task(void *context, int column, int worker) {
    mass_solve_work      *w = context;
    const modes_stitched *s = w->s;
    size_t                n = (size_t)s->n;
    const unsigned char  *fixed = s->inverse->fixed;
    double               *x = w->X + (size_t)column * n, *r = w->work + (size_t)worker * 3 * n, *p = r + n, *Mp = p + n;
    const double         *b = w->B + (size_t)column * n;
    double                rho = 0, first = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = 0, r[i] = fixed[i] ? 0 : b[i], p[i] = r[i] / s->diagonal[i];
        rho += r[i] * p[i];
    }
    first = rho;
    for (int k = 0; k < MASS_ITERATIONS && rho > w->tolerance * w->tolerance * first; k++) {
        double power = 0, next = 0;
        modes_mass_multiply(&s->mass, 1, p, Mp);
        for (size_t i = 0; i < n; i++) power += fixed[i] ? 0 : p[i] * Mp[i];
        double alpha = rho / power;
        for (size_t i = 0; i < n; i++) {
            if (fixed[i]) continue;
            x[i] += alpha * p[i], r[i] -= alpha * Mp[i];
            next += r[i] * r[i] / s->diagonal[i];
        }
        for (size_t i = 0; i < n; i++) p[i] = r[i] / s->diagonal[i] + next / rho * p[i];
        rho = next;
    }
}

fem_status stitch_mass_solve(const modes_stitched *s, int columns, const double *B, double tolerance, double *X) {
    double *work = fem_alloc(3 * (size_t)s->n * (size_t)fem_threads(), sizeof *work);
    if (!work) return stitch_no_memory(s, "masses");
    mass_solve_work w = {.s = s, .B = B, .X = X, .work = work, .tolerance = tolerance};
    fem_parallel_for(columns, mass_solve_task, &w);
    fem_free(work);
    return FEM_OK;
}

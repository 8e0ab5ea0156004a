// Forces of the wind on a tree, class by class: displacement, velocity and area of all samples of all instances are
// matrix products, the air is asked at all of them at once, and modal forces are a matrix product again.
//
// A leaf weighs less than the air that passes it in a step, so a force held over the step would throw it about:
// explicit steps must stay below 2 m / (rho C A |w|). The force is therefore that of the end of the step, to first
// order: f - h D a, D = -df/dv >= 0 (solver_tree_set_resistance). The direction of the normal stays explicit, since it
// belongs to positions. A body that stands still feels exactly f.
#include "libsolver/wind_internal.h"

#include <string.h>

typedef struct wind_group {
    const solver_wind_surface *surface;
    int                        count;
    int                       *instances;
} wind_group;

struct solver_wind_load {
    const solver_wind *wind;
    int                class_count;
    wind_group        *groups;
    double            *scale; // per instance
    double           **fall;  // per class: see rest_fall
    // for the largest group; columns are instances
    double              *q, *dq, *modal;      // r rows
    double              *Y, *V, *N, *x, *air; // 3 samples rows
    double              *wrenches;            // 6 rows
    double              *S, *row;             // (r + 6)(r + 7)/2 and r + 6 for the largest class
    solver_frame_motion *frames;
};

void solver_wind_load_destroy(solver_wind_load *load) {
    if (!load) return;
    for (int c = 0; load->groups && c < load->class_count; c++) {
        fem_free(load->groups[c].instances);
        if (load->fall) fem_free(load->fall[c]);
    }
    void *arrays[] = {load->groups, load->scale, load->q,      load->dq,       load->modal, load->Y, load->V,  load->N,
                      load->x,      load->air,   load->frames, load->wrenches, load->fall,  load->S, load->row};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) fem_free(arrays[i]);
    fem_free(load);
}

static fem_status make_groups(solver_wind_load *load, const solver_wind_surface *surfaces, int count,
                              const solver_tree_instance *instances) {
    for (int i = 0; i < count; i++) {
        if (instances[i].class_index < 0 || instances[i].class_index >= load->class_count)
            return fem_fail(FEM_BAD_INPUT, "wind: instance %d has the class %d, expected 0 to %d", i,
                            instances[i].class_index, load->class_count - 1);
        load->groups[instances[i].class_index].count++;
        load->scale[i] = instances[i].scale;
    }
    for (int c = 0; c < load->class_count; c++) {
        wind_group *g = &load->groups[c];
        g->surface = &surfaces[c];
        g->instances = fem_alloc((size_t)g->count, sizeof *g->instances);
        if (!g->instances) return fem_fail(FEM_NO_MEMORY, "wind: no memory for %d instances", g->count);
        g->count = 0;
    }
    for (int i = 0; i < count; i++) {
        wind_group *g = &load->groups[instances[i].class_index];
        g->instances[g->count++] = i;
    }
    return FEM_OK;
}

// How much a sample moves along n when modes and frame of its domain do: (s U^T n; n; y x n). y: its place in the axes
// of the frame.
static void motion_row(const solver_wind_surface *s, size_t sample, double scale, const double y[3], const double n[3],
                       double *row) {
    size_t r = (size_t)s->r, rows = 3 * (size_t)s->count;
    for (size_t l = 0; l < r; l++) row[l] = scale * vec3_dot(s->rows + l * rows + 3 * sample, n);
    memcpy(row + r, n, 3 * sizeof *n);
    vec3_cross(row + r + 3, y, n);
}

// S += factor row row^T
static void add_square(size_t n, double factor, const double *row, double *S) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) *S++ += factor * row[i] * row[j];
}

// Sum over the samples of area times J^T J at rest, J their motion by modes and frame: what friction resists with.
static fem_status rest_fall(const solver_wind_surface *s, double **fall) {
    size_t  n = (size_t)s->r + 6;
    double *work = NULL;
    *fall = fem_calloc(n * (n + 1) / 2, sizeof **fall);
    work = fem_alloc(n, sizeof *work);
    if (!*fall || !work) {
        fem_free(work);
        return fem_fail(FEM_NO_MEMORY, "wind: no memory for %zu coordinates", n);
    }
    for (size_t k = 0; k < (size_t)s->count; k++)
        for (int a = 0; a < 3; a++) {
            double axis[3] = {a == 0, a == 1, a == 2};
            motion_row(s, k, 1, s->X + 3 * k, axis, work);
            add_square(n, vec3_norm(s->area + 3 * k), work, *fall);
        }
    fem_free(work);
    return FEM_OK;
}

fem_status solver_wind_load_create(solver_wind_load **created, const solver_wind *wind, int class_count,
                                   const solver_wind_surface *surfaces, int count,
                                   const solver_tree_instance *instances) {
    fem_status        status = FEM_OK;
    solver_wind_load *load = fem_calloc(1, sizeof *load);
    if (!load) return fem_fail(FEM_NO_MEMORY, "wind: no memory for its loads");
    load->wind = wind, load->class_count = class_count;
    load->groups = fem_calloc((size_t)class_count, sizeof *load->groups);
    load->fall = fem_calloc((size_t)class_count, sizeof *load->fall);
    load->scale = fem_alloc((size_t)count, sizeof *load->scale);
    if (!load->groups || !load->scale || !load->fall) {
        status = fem_fail(FEM_NO_MEMORY, "wind: no memory for %d instances", count);
        goto done;
    }
    FEM_TRY(make_groups(load, surfaces, count, instances));
    size_t modal = 0, rows = 0, most = 0, widest = 6;
    for (int c = 0; c < class_count; c++) {
        const wind_group *g = &load->groups[c];
        size_t            n = (size_t)g->count;
        if ((size_t)g->surface->r * n > modal) modal = (size_t)g->surface->r * n;
        if (3 * (size_t)g->surface->count * n > rows) rows = 3 * (size_t)g->surface->count * n;
        if (n > most) most = n;
        if ((size_t)g->surface->r + 6 > widest) widest = (size_t)g->surface->r + 6;
        if (g->surface->count > 0) FEM_TRY(rest_fall(g->surface, &load->fall[c]));
    }
    load->S = fem_alloc(widest * (widest + 1) / 2, sizeof *load->S);
    load->row = fem_alloc(widest, sizeof *load->row);
    double **arrays[] = {&load->q, &load->dq, &load->modal, &load->Y, &load->V, &load->N, &load->x, &load->air};
    for (int i = 0; i < 8; i++) {
        *arrays[i] = fem_alloc(i < 3 ? modal : rows, sizeof **arrays[i]);
        if (!*arrays[i]) status = FEM_NO_MEMORY;
    }
    load->frames = fem_alloc(most, sizeof *load->frames);
    load->wrenches = fem_alloc(6 * most, sizeof *load->wrenches);
    if (status != FEM_OK || !load->frames || !load->wrenches || !load->S || !load->row) {
        status = fem_fail(FEM_NO_MEMORY, "wind: no memory for samples of %zu instances", most);
        goto done;
    }
    *created = load;
    load = NULL;
done:
    solver_wind_load_destroy(load);
    return status;
}

// Positions and velocities of all samples of a group in the world: x, and V in place.
static void place_samples(solver_wind_load *load, const wind_group *g, solver_tree *tree) {
    const solver_wind_surface *s = g->surface;
    size_t                     r = (size_t)s->r, rows = 3 * (size_t)s->count;
    for (size_t i = 0; i < (size_t)g->count; i++) {
        memcpy(load->q + i * r, solver_tree_q(tree, g->instances[i]), r * sizeof *load->q);
        memcpy(load->dq + i * r, solver_tree_dq(tree, g->instances[i]), r * sizeof *load->dq);
        solver_tree_frame(tree, g->instances[i], &load->frames[i]);
    }
    int m = (int)rows, n = g->count, k = s->r;
    if (k > 0) {
        dense_gemm(false, false, m, n, k, 1, s->rows, load->q, 0, load->Y);
        dense_gemm(false, false, m, n, k, 1, s->rows, load->dq, 0, load->V);
        dense_gemm(false, false, m, n, k, 1, s->turn, load->q, 0, load->N);
    } else {
        memset(load->Y, 0, rows * (size_t)n * sizeof *load->Y);
        memset(load->V, 0, rows * (size_t)n * sizeof *load->V);
        memset(load->N, 0, rows * (size_t)n * sizeof *load->N);
    }
    for (size_t i = 0; i < (size_t)g->count; i++) {
        const solver_frame_motion *f = &load->frames[i];
        double                     scale = load->scale[g->instances[i]];
        for (size_t j = 0; j < rows; j += 3) {
            size_t at = i * rows + j;
            double y[3], w[3], turned[3];
            for (size_t a = 0; a < 3; a++) y[a] = scale * (s->X[j + a] + load->Y[at + a]);
            memcpy(load->Y + at, y, sizeof y); // the arm of the force
            vec3_cross(w, f->w, y);            // velocity in the axes of the frame: w x y + s V
            vec3_axpy(w, scale, load->V + at);
            mat3_mul_vec(turned, f->Q, w);
            for (size_t a = 0; a < 3; a++) load->V[at + a] = f->v[a] + turned[a];
            mat3_mul_vec(turned, f->Q, y);
            for (size_t a = 0; a < 3; a++) load->x[at + a] = f->p[a] + turned[a];
        }
    }
}

// f = 1/2 rho A (C_n |w.n| (w.n) n + C_t |w_t| w_t) in the axes of the frame; `area` = A n. slope = rho A C_n |w.n|, by
// how much the normal force grows with the speed along n.
static void sample_force(const solver_wind_surface *s, double density, const double w[3], const double area[3],
                         double f[3], double *slope, double n[3]) {
    double size = vec3_norm(area), across[3];
    f[0] = f[1] = f[2] = n[0] = n[1] = n[2] = *slope = 0;
    if (!(size > 0)) return;
    for (int i = 0; i < 3; i++) n[i] = area[i] / size;
    double along = vec3_dot(w, n);
    for (int i = 0; i < 3; i++) across[i] = w[i] - along * n[i];
    *slope = density * size * s->normal * fabs(along);
    vec3_axpy(f, 0.5 * *slope * along, n);
    vec3_axpy(f, 0.5 * density * size * s->tangential * vec3_norm(across), across);
}

// S += density C_t |w_t| (sum of area J^T J) of a scaled instance, `speed` the largest |w_t|: more than friction really
// falls by, and cheap. Entries of modes and of torques have a length in them.
static void add_friction(const solver_wind_surface *s, const double *fall, double factor, double scale, double *S) {
    size_t r = (size_t)s->r;
    factor *= scale * scale;
    for (size_t i = 0; i < r + 6; i++)
        for (size_t j = 0; j <= i; j++) {
            bool force_i = i >= r && i < r + 3, force_j = j >= r && j < r + 3;
            *S++ += factor * (force_i ? 1 : scale) * (force_j ? 1 : scale) * *fall++;
        }
}

static fem_status apply(solver_wind_load *load, solver_tree *tree,
                        fem_status (*put)(solver_tree *, int, const double *, const double *)) {
    fem_status status = FEM_OK;
    double     density = load->wind->options.density, h = solver_tree_time_step(tree);
    for (int c = 0; c < load->class_count; c++) {
        const wind_group          *g = &load->groups[c];
        const solver_wind_surface *s = g->surface;
        size_t                     rows = 3 * (size_t)s->count, r = (size_t)s->r;
        if (s->count == 0 || g->count == 0) continue;
        place_samples(load, g, tree);
        FEM_TRY(solver_wind_velocities(load->wind, solver_tree_time(tree), s->count * g->count, load->x, load->air));
        for (size_t i = 0; i < (size_t)g->count; i++) {
            const double *Q = load->frames[i].Q;
            double        scale = load->scale[g->instances[i]], wrench[6] = {0}, fastest = 0;
            memset(load->S, 0, (r + 6) * (r + 7) / 2 * sizeof *load->S);
            for (size_t j = 0; j < rows; j += 3) {
                size_t at = i * rows + j;
                double w[3], local[3], area[3], f[3], torque[3], n[3], slope;
                vec3_sub(w, load->air + at, load->V + at);
                for (int a = 0; a < 3; a++) local[a] = Q[a] * w[0] + Q[3 + a] * w[1] + Q[6 + a] * w[2];
                for (size_t a = 0; a < 3; a++) area[a] = scale * scale * (s->area[j + a] + load->N[at + a]);
                double rest = scale * scale * vec3_norm(s->area + j), grown = vec3_norm(area);
                for (size_t a = 0; grown > rest && a < 3; a++) area[a] *= rest / grown; // see wind.h
                sample_force(s, density, local, area, f, &slope, n);
                motion_row(s, j / 3, scale, load->Y + at, n, load->row);
                if (slope > 0) add_square(r + 6, h * slope, load->row, load->S);
                fastest = fmax(fastest, vec3_norm(local));
                vec3_cross(torque, load->Y + at, f);
                vec3_axpy(wrench, 1, f), vec3_axpy(wrench + 3, 1, torque);
                for (size_t a = 0; a < 3; a++) load->N[at + a] = scale * f[a]; // x = .. + Q s U q: work on q is s U^T f
            }
            memcpy(load->wrenches + 6 * i, wrench, sizeof wrench);
            if (s->tangential > 0)
                add_friction(s, load->fall[c], h * density * s->tangential * fastest, scale, load->S);
            FEM_TRY((put == solver_tree_add_load ? solver_tree_add_resistance
                                                 : solver_tree_set_resistance)(tree, g->instances[i], load->S));
        }
        if (r > 0) dense_gemm(true, false, (int)r, g->count, (int)rows, 1, s->rows, load->N, 0, load->modal);
        for (size_t i = 0; i < (size_t)g->count; i++)
            FEM_TRY(put(tree, g->instances[i], load->wrenches + 6 * i, r > 0 ? load->modal + i * r : NULL));
    }
done:
    return status;
}

fem_status solver_wind_load_apply(solver_wind_load *load, solver_tree *tree) {
    return apply(load, tree, solver_tree_set_load);
}

fem_status solver_wind_load_add(solver_wind_load *load, solver_tree *tree) {
    return apply(load, tree, solver_tree_add_load);
}

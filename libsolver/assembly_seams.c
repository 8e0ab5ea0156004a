// How the copies of vertices that several domains share become one vertex, and one smooth body. (P1, section 6)
//
// C0: the mean of the copies. C1: moving least squares, as for discontinuous elements [Kaufmann et al. 2009]. Around an
// interface, at a point X with a field u over the copies k of both domains,
//     s(X) = c(0) of the linear polynomial c that minimises sum_k w(|X_k - X|) |c(X_k - X) - u_k|^2,
// which has continuous slopes since w has, and gives linear fields (rigid motions among them) back as they are. With the
// distance d(X) from the interface the field goes over into that of the domain,
//     u(X) + t(d) (s(X) - u(X)),   w(d) = t(d) = (1 - (d/R)^2)^2 for d < R:
// t is 1 and flat at the interface, where only s is left. Both depend on rest positions only, so a vertex is a sum over
// copies with weights that are made once.
#include "libsolver/assembly_internal.h"

#include <math.h>
#include <string.h>

static double kernel(double d2, double R2) {
    double s = 1 - d2 / R2;
    return s > 0 ? s * s : 0;
}

fem_status assembly_find_seams(solver_assembly *a) {
    size_t most = 0;
    for (int i = 0; i < a->count; i++) most += (size_t)a->classes[i]->mesh.vertex_count;
    a->seam_start = fem_calloc((size_t)a->count + 1, sizeof *a->seam_start);
    a->seam_vertex = fem_alloc(most, sizeof *a->seam_vertex);
    a->seam_local = fem_alloc(most, sizeof *a->seam_local);
    if (!a->seam_start || !a->seam_vertex || !a->seam_local)
        return fem_fail(FEM_NO_MEMORY, "no memory for the interfaces of %d domains", a->count);
    for (int i = 0; i < a->count; i++) {
        int parent = a->instances[i].parent, shared = a->seam_start[i];
        for (int k = 0; parent >= 0 && k < a->classes[i]->mesh.vertex_count; k++) {
            int v = domain_place_of(a->local[i][k], a->classes[parent]->mesh.vertex_count, a->local[parent]);
            if (v < 0) continue;
            a->seam_vertex[shared] = v;
            a->seam_local[shared++] = k;
        }
        a->seam_start[i + 1] = shared;
    }
    return FEM_OK;
}

// ---- rows ----------------------------------------------------------------------------------------------------------

// A smoothed vertex near one interface: its row over copies, and how much of it counts.
typedef struct seam_row {
    int     vertex; // of the mesh
    double  share;
    int     count;
    int    *copy;
    double *weight;
} seam_row;

typedef struct seam_rows {
    int       count;
    size_t    capacity;
    seam_row *rows;
    double   *total; // per vertex of the mesh: sum of its shares
} seam_rows;

static void rows_destroy(seam_rows *r) {
    for (int i = 0; i < r->count; i++) fem_free(r->rows[i].copy), fem_free(r->rows[i].weight);
    fem_free(r->rows), fem_free(r->total);
}

// Copies of two domains that lie near their interface, with their distances from it.
typedef struct seam_region {
    int     count;
    int    *copy, *vertex;
    double *d2;
} seam_region;

static void region_destroy(seam_region *s) { fem_free(s->copy), fem_free(s->vertex), fem_free(s->d2); }

static const double *rest_of(const solver_assembly *a, int vertex) { return a->rest + 3 * (size_t)vertex; }

// The mean way from a vertex of the interface to those that share elements with it.
static double seam_spacing(const solver_assembly *a, int child, const int *start, const int *adjacent) {
    double sum = 0;
    int    count = 0;
    for (int k = a->seam_start[child]; k < a->seam_start[child + 1]; k++) {
        int v = a->local[child][a->seam_local[k]];
        for (int n = start[v]; n < start[v + 1]; n++)
            if (adjacent[n] != v) sum += vec3_distance(rest_of(a, v), rest_of(a, adjacent[n])), count++;
    }
    return count > 0 ? sum / count : 0;
}

static double distance2(const solver_assembly *a, int child, int vertex) {
    double best = INFINITY;
    for (int k = a->seam_start[child]; k < a->seam_start[child + 1]; k++) {
        double d = vec3_distance(rest_of(a, vertex), rest_of(a, a->local[child][a->seam_local[k]]));
        best = fmin(best, d * d);
    }
    return best;
}

// Those within two radii: what is smoothed lies within one, and its fit looks one further.
static fem_status find_region(const solver_assembly *a, int child, double R, seam_region *s) {
    int    sides[2] = {a->instances[child].parent, child};
    size_t most = 0;
    for (int i = 0; i < 2; i++) most += (size_t)a->classes[sides[i]]->mesh.vertex_count;
    s->copy = fem_alloc(most, sizeof *s->copy);
    s->vertex = fem_alloc(most, sizeof *s->vertex);
    s->d2 = fem_alloc(most, sizeof *s->d2);
    if (!s->copy || !s->vertex || !s->d2) return fem_fail(FEM_NO_MEMORY, "no memory for an interface");
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int k = a->seam_start[child]; k < a->seam_start[child + 1]; k++)
        for (int i = 0; i < 3; i++) {
            double x = rest_of(a, a->local[child][a->seam_local[k]])[i];
            low[i] = fmin(low[i], x - 2 * R), high[i] = fmax(high[i], x + 2 * R);
        }
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < a->classes[sides[side]]->mesh.vertex_count; k++) {
            int           v = a->local[sides[side]][k];
            const double *X = rest_of(a, v);
            bool          near = true;
            for (int i = 0; i < 3; i++) near = near && X[i] >= low[i] && X[i] <= high[i];
            double d2 = near ? distance2(a, child, v) : INFINITY;
            if (d2 >= 4 * R * R) continue;
            s->copy[s->count] = a->first[sides[side]] + k;
            s->vertex[s->count] = v;
            s->d2[s->count++] = d2;
        }
    return FEM_OK;
}

// Weights of the copies in s(X): w_k (1, D_k)^T A^-1 e_1, A = sum_k w_k (1, D_k)(1, D_k)^T, D in radii. A little is added
// to A where a thin body leaves a slope open.
static bool fit(const solver_assembly *a, const seam_region *s, const double X[3], double R, double *weight) {
    double A[16] = {0}, c[4] = {1, 0, 0, 0};
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < s->count; k++) {
            double D[4] = {1}, w;
            vec3_sub(D + 1, rest_of(a, s->vertex[k]), X);
            w = kernel(vec3_dot(D + 1, D + 1), R * R);
            for (int i = 1; i < 4; i++) D[i] /= R;
            if (pass == 1) weight[k] = w * (c[0] + vec3_dot(c + 1, D + 1));
            for (int i = 0; pass == 0 && w > 0 && i < 4; i++)
                for (int j = 0; j < 4; j++) A[4 * i + j] += w * D[i] * D[j];
        }
        if (pass == 1) break;
        for (int i = 1; i < 4; i++) A[5 * i] += 1e-10 * A[0];
        if (dense_cholesky(4, A) != FEM_OK) return false;
        dense_cholesky_solve(4, A, 1, c);
    }
    return true;
}

static bool is_held(const solver_assembly *a, int vertex) {
    const solver_class *root = a->classes[a->instances[0].class_index];
    if (!a->held || !root->fixed || a->owner[vertex] != 0) return false;
    return root->fixed[3 * (size_t)a->vertex[vertex]];
}

static fem_status add_row(seam_rows *rows, const seam_region *s, int vertex, double share, const double *weight) {
    fem_status status = FEM_OK;
    int        count = 0;
    FEM_TRY(fem_grow((void **)&rows->rows, &rows->capacity, (size_t)rows->count + 1, sizeof *rows->rows));
    for (int k = 0; k < s->count; k++) count += weight[k] != 0;
    seam_row *row = &rows->rows[rows->count++];
    *row = (seam_row){.vertex = vertex, .share = share};
    row->copy = fem_alloc((size_t)count, sizeof *row->copy);
    row->weight = fem_alloc((size_t)count, sizeof *row->weight);
    if (!row->copy || !row->weight) return fem_fail(FEM_NO_MEMORY, "no memory for an interface");
    for (int k = 0; k < s->count; k++) {
        if (weight[k] == 0) continue;
        row->copy[row->count] = s->copy[k];
        row->weight[row->count++] = weight[k];
    }
    rows->total[vertex] += share;
done:
    return status;
}

static fem_status smooth_interface(const solver_assembly *a, int child, const int *start, const int *adjacent,
                                   seam_rows *rows) {
    fem_status  status = FEM_OK;
    seam_region s = {0};
    double      R = 3 * seam_spacing(a, child, start, adjacent), *weight = NULL;
    if (!(R > 0)) return FEM_OK;
    FEM_TRY(find_region(a, child, R, &s));
    weight = fem_alloc((size_t)s.count, sizeof *weight);
    if (!weight) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for an interface");
        goto done;
    }
    for (int k = 0; k < s.count; k++) {
        int    v = s.vertex[k], mine = s.copy[k];
        double share = kernel(s.d2[k], R * R);
        bool   second = mine >= a->first[child] && mine < a->first[child + 1] && s.d2[k] == 0; // the parent's has come
        if (share <= 0 || second || is_held(a, v) || !fit(a, &s, rest_of(a, v), R, weight)) continue;
        FEM_TRY(add_row(rows, &s, v, share, weight));
    }
done:
    region_destroy(&s);
    fem_free(weight);
    return status;
}

// ---- joining -------------------------------------------------------------------------------------------------------

typedef struct seam_join {
    int    *start, *copy;
    double *weight;
} seam_join;

static void join_destroy(seam_join *j) { fem_free(j->start), fem_free(j->copy), fem_free(j->weight); }

// Runs over all pieces of all rows; the first time it counts them, the second time it fills them in.
static void gather(const solver_assembly *a, solver_seams seams, const seam_rows *rows, const int *copies, int *fill,
                   seam_join *j) {
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < a->classes[i]->mesh.vertex_count; k++) {
            int v = a->local[i][k];
            if (seams == SOLVER_SEAMS_OWNER && a->owner[v] != i) continue;
            int at = fill[v]++;
            if (!j->copy) continue;
            double total = rows->total ? rows->total[v] : 0, left = 1 - fmin(total, 1);
            j->copy[at] = a->first[i] + k;
            j->weight[at] = left / (seams == SOLVER_SEAMS_OWNER ? 1 : copies[v]);
        }
    for (int n = 0; n < rows->count; n++) {
        const seam_row *row = &rows->rows[n];
        double          share = row->share / fmax(rows->total[row->vertex], 1);
        for (int k = 0; k < row->count; k++) {
            int at = fill[row->vertex]++;
            if (!j->copy) continue;
            j->copy[at] = row->copy[k];
            j->weight[at] = share * row->weight[k];
        }
    }
}

static fem_status make_join(const solver_assembly *a, solver_seams seams, const seam_rows *rows, seam_join *j) {
    fem_status status = FEM_OK;
    size_t     vertices = (size_t)a->vertex_count, sum = 0;
    int       *fill = fem_calloc(vertices, sizeof *fill), *copies = fem_calloc(vertices, sizeof *copies);
    j->start = fem_calloc(vertices + 1, sizeof *j->start);
    if (!fill || !copies || !j->start) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu vertices", vertices);
        goto done;
    }
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < a->classes[i]->mesh.vertex_count; k++) copies[a->local[i][k]]++;
    gather(a, seams, rows, copies, fill, j);
    for (size_t v = 0; v < vertices; v++) {
        j->start[v] = (int)sum;
        sum += (size_t)fill[v];
        fill[v] = j->start[v];
        if (sum > INT32_MAX) {
            status = fem_fail(FEM_BAD_INPUT, "interfaces with %zu weights are too many", sum);
            goto done;
        }
    }
    j->start[vertices] = (int)sum;
    j->copy = fem_alloc(sum, sizeof *j->copy);
    j->weight = fem_alloc(sum, sizeof *j->weight);
    if (!j->copy || !j->weight) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu vertices", vertices);
        goto done;
    }
    gather(a, seams, rows, copies, fill, j);
done:
    fem_free(fill), fem_free(copies);
    return status;
}

fem_status solver_assembly_set_seams(solver_assembly *a, solver_seams seams) {
    fem_status status = FEM_OK;
    seam_rows  rows = {0};
    seam_join  join = {0};
    int       *start = NULL, *adjacent = NULL;
    if (seams == SOLVER_SEAMS_C1) {
        rows.total = fem_calloc((size_t)a->vertex_count, sizeof *rows.total);
        if (!rows.total) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", a->vertex_count);
            goto done;
        }
        FEM_TRY(fem_mesh_vertex_graph(a->mesh, &start, &adjacent));
        for (int i = 0; i < a->count; i++)
            if (a->instances[i].parent >= 0) FEM_TRY(smooth_interface(a, i, start, adjacent, &rows));
    }
    FEM_TRY(make_join(a, seams, &rows, &join));
    seam_join old = {.start = a->join_start, .copy = a->join_copy, .weight = a->join_weight};
    a->join_start = join.start, a->join_copy = join.copy, a->join_weight = join.weight;
    join = old;
done:
    join_destroy(&join);
    rows_destroy(&rows);
    fem_free(start), fem_free(adjacent);
    return status;
}

void assembly_join(const solver_assembly *a, const double *copies, double *values) {
    for (int v = 0; v < a->vertex_count; v++) {
        double *out = values + 3 * (size_t)v;
        out[0] = out[1] = out[2] = 0; // a vertex in no element stays
        for (int k = a->join_start[v]; k < a->join_start[v + 1]; k++)
            vec3_axpy(out, a->join_weight[k], copies + 3 * (size_t)a->join_copy[k]);
    }
}

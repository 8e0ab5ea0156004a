// Integration points of chosen elements: gradients of the modes, eight points side by side.
#include "libcubature/points.h"

#include <string.h>

static int material_of(const fem_mesh *mesh, int element) { return mesh->regions[mesh->region[element]].material; }

static int points_per_element(const fem_body *body) {
    double weight[27], g[27][24];
    return fem_body_points(body, 0, weight, g);
}

int point_groups(const fem_body *body, int count, const int *elements) {
    const fem_mesh *mesh = fem_body_mesh(body);
    int             points = points_per_element(body), groups = 0, used = 8, material = -1;
    for (int i = 0; i < count; i++) {
        if (material_of(mesh, elements[i]) != material) used = 8, material = material_of(mesh, elements[i]);
        for (int p = 0; p < points; p++, used++)
            if (used == 8) groups++, used = 0;
    }
    return groups;
}

void point_set_destroy(point_set *set) {
    fem_free(set->B);
    fem_free(set->volume);
    fem_free(set->element);
    fem_free(set->material);
    *set = (point_set){0};
}

fem_status point_set_create(point_set *set, int r, int capacity, bool by_columns) {
    size_t groups = (size_t)capacity, modes = (size_t)r;
    *set = (point_set){.r = r, .capacity = capacity};
    set->stride = by_columns ? 72 * groups : 72;
    set->group_size = by_columns ? 72 : 72 * modes;
    set->B = fem_calloc(72 * groups, modes * sizeof *set->B);
    set->volume = fem_calloc(8 * groups, sizeof *set->volume);
    set->element = fem_calloc(8 * groups, sizeof *set->element);
    set->material = fem_calloc(groups, sizeof *set->material);
    if (set->B && set->volume && set->element && set->material) return FEM_OK;
    point_set_destroy(set);
    return fem_fail(FEM_NO_MEMORY, "no memory for the gradients of %d modes at %zu points", r, 8 * groups);
}

// du_i/dX_j = sum over vertices a of u_a,i dN_a/dX_j, of all modes
static void fill_point(point_set *set, size_t group, size_t lane, const fem_mesh *mesh, const double *Ut, int element,
                       const double g[24]) {
    size_t     r = (size_t)set->r;
    int        width = fem_element_vertices(mesh->type);
    const int *vertices = mesh->elements + (size_t)element * (size_t)width;
    double    *out = set->B + group * set->group_size + lane;
    for (size_t i = 0; i < 3; i++)
        for (size_t l = 0; l < r; l++) {
            double sum[3] = {0};
            for (int a = 0; a < width; a++) {
                double u = Ut[(3 * (size_t)vertices[a] + i) * r + l];
                for (int j = 0; j < 3; j++) sum[j] += u * g[3 * a + j];
            }
            for (size_t j = 0; j < 3; j++) out[l * set->stride + 8 * (3 * i + j)] = sum[j];
        }
}

// Lanes that are not used repeat nothing: their B is zero, so their F is the identity and their stress finite.
static void clear_lanes(point_set *set, int group, int from) {
    for (size_t lane = (size_t)from; lane < 8; lane++) {
        set->volume[8 * (size_t)group + lane] = 0;
        set->element[8 * (size_t)group + lane] = -1;
        for (size_t l = 0; l < (size_t)set->r; l++)
            for (size_t c = 0; c < 9; c++) set->B[(size_t)group * set->group_size + l * set->stride + 8 * c + lane] = 0;
    }
}

void point_set_fill(point_set *set, const fem_body *body, const double *Ut, int count, const int *elements) {
    const fem_mesh *mesh = fem_body_mesh(body);
    int             used = 8, material = -1;
    double          weight[27], g[27][24];
    set->groups = 0;
    for (int i = 0; i < count; i++) {
        if (material_of(mesh, elements[i]) != material && used < 8) clear_lanes(set, set->groups - 1, used), used = 8;
        material = material_of(mesh, elements[i]);
        int points = fem_body_points(body, elements[i], weight, g);
        for (int p = 0; p < points; p++, used++) {
            if (used == 8) set->material[set->groups++] = material, used = 0;
            size_t group = (size_t)set->groups - 1, lane = (size_t)used;
            set->volume[8 * group + lane] = weight[p];
            set->element[8 * group + lane] = i;
            fill_point(set, group, lane, mesh, Ut, elements[i], g[p]);
        }
    }
    if (used < 8) clear_lanes(set, set->groups - 1, used);
}

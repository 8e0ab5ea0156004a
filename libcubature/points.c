// Integration points of chosen elements: gradients of the modes, eight points side by side.
#include "libcubature/points.h"

#include <string.h>

typedef void (*gradients_kernel)(const eight_points *at, size_t row_stride, int r, double *B, size_t stride);

static int material_of(const fem_mesh *mesh, int element) { return mesh->regions[mesh->region[element]].material; }

int points_per_element(const fem_body *body) {
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

static void finish_group(point_set *set, const eight_points *at, size_t row_stride, gradients_kernel kernel) {
    size_t group = (size_t)set->groups - 1;
    for (size_t lane = (size_t)at->points; lane < 8; lane++) {
        set->volume[8 * group + lane] = 0;
        set->element[8 * group + lane] = -1;
    }
    kernel(at, row_stride, set->r, set->B + group * set->group_size, set->stride);
}

// Lanes that are not used have B = 0, so their F is the identity and their stress finite.
void point_set_fill(point_set *set, const fem_body *body, basis_rows rows, int count, const int *elements) {
    const fem_mesh  *mesh = fem_body_mesh(body);
    gradients_kernel kernel = cubature_choose_kernels().point_gradients;
    int              material = -1, width = fem_element_vertices(mesh->type);
    double           weight[27], g[27][24];
    eight_points     at = {.points = 0, .width = width};
    set->groups = 0;
    for (int i = 0; i < count; i++) {
        const int *vertices = mesh->elements + (size_t)elements[i] * (size_t)width;
        int        points = fem_body_points(body, elements[i], weight, g);
        for (int p = 0; p < points; p++) {
            if (set->groups == 0 || at.points == 8 || material_of(mesh, elements[i]) != material) {
                if (set->groups > 0) finish_group(set, &at, rows.stride, kernel);
                material = material_of(mesh, elements[i]);
                set->material[set->groups++] = material, at.points = 0;
            }
            size_t lane = (size_t)at.points++, place = 8 * ((size_t)set->groups - 1) + lane;
            set->volume[place] = weight[p];
            set->element[place] = i;
            memcpy(at.g[lane], g[p], sizeof g[p]);
            for (int a = 0; a < width; a++) {
                size_t vertex = rows.own ? (size_t)i * (size_t)width + (size_t)a : (size_t)vertices[a];
                at.vertex[lane][a] = rows.values + 3 * vertex * rows.stride;
            }
        }
    }
    if (set->groups > 0) finish_group(set, &at, rows.stride, kernel);
}

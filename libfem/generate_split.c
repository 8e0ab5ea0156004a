// From hexahedra to tetrahedra, and the other work that all generators share.
//
// A hexahedron is pulled at its lowest vertex m: the three faces that do not contain m are cut by the diagonals through
// their own lowest vertices, and the six triangles together with m are six tetrahedra. The three faces at m are then
// cut by diagonals through m, their lowest vertex too. So every face is cut by a rule that both of its hexahedra agree
// on, and the tetrahedra of any conforming mesh of hexahedra conform [Dompierre, Labbe, Vallet, Camarero 1999, How to
// subdivide pyramids, prisms and hexahedra into tetrahedra]. Where vertices are numbered along a grid this is Kuhn's
// split.
#include "libfem/generate.h"

#include <math.h>

static const int hexahedron_faces[6][4] = {{0, 3, 2, 1}, {4, 5, 6, 7}, {0, 1, 5, 4},
                                           {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}}; // outward

static void split(const int *v, int *tetrahedra) {
    int lowest = v[0];
    for (int k = 1; k < 8; k++)
        if (v[k] < lowest) lowest = v[k];
    for (int f = 0; f < 6; f++) {
        int quad[4], first = 0;
        for (int k = 0; k < 4; k++) {
            quad[k] = v[hexahedron_faces[f][k]];
            if (quad[k] < quad[first]) first = k;
        }
        if (quad[first] == lowest) continue;
        for (int t = 0; t < 2; t++) {
            *tetrahedra++ = lowest;
            *tetrahedra++ = quad[first];
            *tetrahedra++ = quad[(first + t + 1) % 4];
            *tetrahedra++ = quad[(first + t + 2) % 4];
        }
    }
}

static fem_status split_element_sets(fem_mesh *tets, const fem_mesh *hexahedra) {
    fem_status status = FEM_OK;
    int       *items = NULL;
    for (int s = 0; s < hexahedra->element_set_count; s++) {
        const fem_set *set = &hexahedra->element_sets[s];
        items = fem_alloc((size_t)set->count, FEM_GENERATE_TETRAHEDRA * sizeof *items);
        if (!items) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for the element set \"%s\"", set->name);
            goto done;
        }
        int count = 0;
        for (int i = 0; i < set->count; i++)
            for (int t = 0; t < FEM_GENERATE_TETRAHEDRA; t++)
                items[count++] = FEM_GENERATE_TETRAHEDRA * set->items[i] + t;
        FEM_TRY(fem_mesh_add_element_set(tets, set->name, count, items));
        fem_free(items);
        items = NULL;
    }
done:
    fem_free(items);
    return status;
}

fem_status fem_mesh_split_hexahedra(fem_mesh *mesh, const fem_mesh *hexahedra) {
    fem_status status = FEM_OK;
    fem_mesh   shell = {0}, tets = {0};
    int       *elements = NULL, *region = NULL;
    if (hexahedra->type != FEM_H8) return fem_fail(FEM_BAD_INPUT, "the mesh to be split has no hexahedra");
    int cells = hexahedra->element_count;
    FEM_TRY(fem_generate_count(cells, FEM_T4));
    elements = fem_alloc((size_t)cells, 4 * FEM_GENERATE_TETRAHEDRA * sizeof *elements);
    region = fem_alloc((size_t)cells, FEM_GENERATE_TETRAHEDRA * sizeof *region);
    if (!elements || !region) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to split %d hexahedra", cells);
        goto done;
    }
    for (int e = 0; e < cells; e++) {
        split(hexahedra->elements + 8 * (size_t)e, elements + 4 * FEM_GENERATE_TETRAHEDRA * (size_t)e);
        for (int t = 0; t < FEM_GENERATE_TETRAHEDRA; t++)
            region[FEM_GENERATE_TETRAHEDRA * e + t] = hexahedra->region[e];
    }
    shell = *hexahedra; // everything but the elements is as it was: a copy of the rest brings it
    shell.element_count = 0;
    shell.element_set_count = 0;
    shell.element_numbers = NULL; // the file has no such elements
    FEM_TRY(fem_mesh_copy(&tets, &shell));
    fem_free(tets.elements), fem_free(tets.region);
    tets.type = FEM_T4;
    tets.element_count = FEM_GENERATE_TETRAHEDRA * cells;
    tets.elements = elements, elements = NULL;
    tets.region = region, region = NULL;
    FEM_TRY(split_element_sets(&tets, hexahedra));
    fem_mesh_destroy(mesh);
    *mesh = tets;
    tets = (fem_mesh){0};
done:
    fem_free(elements), fem_free(region);
    fem_mesh_destroy(&tets);
    return status;
}

fem_status fem_generate_count(double cells, fem_element type) {
    double elements = cells * (type == FEM_T4 ? FEM_GENERATE_TETRAHEDRA : 1);
    if (!(elements <= FEM_GENERATE_MOST))
        return fem_fail(FEM_BAD_INPUT, "%.4g elements would be made, more than %d: fewer or larger cells would do",
                        elements, FEM_GENERATE_MOST);
    return FEM_OK;
}

fem_status fem_generate_regions(fem_mesh *mesh, int count, const char *const *names) {
    fem_region *regions = fem_calloc((size_t)count, sizeof *regions);
    if (!regions) return fem_fail(FEM_NO_MEMORY, "no memory for %d regions", count);
    for (int i = 0; i < count; i++) {
        regions[i].name = fem_copy_string(names[i]);
        if (regions[i].name) continue;
        for (int k = 0; k < i; k++) fem_free(regions[k].name);
        fem_free(regions);
        return fem_fail(FEM_NO_MEMORY, "no memory for the region \"%s\"", names[i]);
    }
    for (int i = 0; i < mesh->region_count; i++) fem_free(mesh->regions[i].name);
    fem_free(mesh->regions);
    mesh->regions = regions;
    mesh->region_count = count;
    return FEM_OK;
}

fem_status fem_generate_set(fem_mesh *mesh, const char *name, const unsigned char *mark, unsigned bit) {
    int count = 0;
    for (int v = 0; v < mesh->vertex_count; v++) count += (mark[v] & bit) != 0;
    if (count == 0) return FEM_OK;
    int *items = fem_alloc((size_t)count, sizeof *items);
    if (!items) return fem_fail(FEM_NO_MEMORY, "no memory for the vertex set \"%s\"", name);
    count = 0;
    for (int v = 0; v < mesh->vertex_count; v++)
        if (mark[v] & bit) items[count++] = v;
    fem_status status = fem_mesh_add_vertex_set(mesh, name, count, items);
    fem_free(items);
    return status;
}

fem_status fem_generate_sides(fem_mesh *mesh, const unsigned char *mark) {
    static const char *const names[6] = {"x0", "x1", "y0", "y1", "z0", "z1"};
    fem_status               status = FEM_OK;
    for (int s = 0; s < 6 && status == FEM_OK; s++) status = fem_generate_set(mesh, names[s], mark, 1u << s);
    return status;
}

fem_status fem_generate_finish(fem_mesh *mesh, fem_element type, fem_mesh *hexahedra) {
    fem_status status = FEM_OK;
    FEM_TRY(fem_mesh_check(hexahedra));
    if (type == FEM_T4) {
        FEM_TRY(fem_mesh_split_hexahedra(hexahedra, hexahedra));
        FEM_TRY(fem_mesh_check(hexahedra));
    }
    fem_mesh_destroy(mesh);
    *mesh = *hexahedra;
    *hexahedra = (fem_mesh){0};
done:
    if (status == FEM_BAD_INPUT) // the inputs were checked one by one: what is left is their proportions
        fem_fail_prefix(status,
                        "these sizes cannot be meshed (too thin, too far from the origin, or too sharply bent): ");
    return status;
}

void fem_generate_rounded(int axes, const double *grid, double roundness, double *point) {
    double ring = 0, direction[3], length = 0;
    for (int k = 0; k < axes; k++) ring = fmax(ring, fabs(grid[k]));
    if (ring == 0) {
        for (int k = 0; k < axes; k++) point[k] = 0;
        return;
    }
    for (int k = 0; k < axes; k++) {
        direction[k] = tan(M_PI / 4 * grid[k] / ring); // equal angles between the grid lines
        length += direction[k] * direction[k];
    }
    double share = roundness * ring;
    for (int k = 0; k < axes; k++) point[k] = (1 - share) * grid[k] + share * ring * direction[k] / sqrt(length);
}

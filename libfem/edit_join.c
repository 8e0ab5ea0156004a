// One mesh out of several that stay apart.
#include "libfem/internal.h"

#include <stdio.h>
#include <string.h>

static fem_status full_name(char **result, const char *part, const char *name) {
    size_t size = strlen(name) + (part ? strlen(part) + 1 : 0) + 1;
    char  *text = fem_alloc(size, 1);
    if (!text) return fem_fail(FEM_NO_MEMORY, "no memory for the name \"%s\"", name);
    if (part)
        snprintf(text, size, "%s.%s", part, name);
    else
        memcpy(text, name, size);
    *result = text;
    return FEM_OK;
}

typedef struct joining {
    fem_mesh *mesh;
    int       vertex, element; // first of the part
    int       regions, materials;
} joining;

// A region of the part in the whole: an earlier one of the same name and material, or a new one.
static fem_status join_region(joining *j, const char *part, const fem_region *region, int *index) {
    fem_status status = FEM_OK;
    char      *name = NULL;
    FEM_TRY(full_name(&name, part, region->name));
    for (*index = 0; *index < j->mesh->region_count; (*index)++)
        if (strcmp(j->mesh->regions[*index].name, name) == 0 && !part) break;
    if (*index == j->mesh->region_count) {
        j->mesh->regions[j->mesh->region_count++] =
            (fem_region){.name = name, .material = j->materials + region->material};
        name = NULL;
    }
done:
    fem_free(name);
    return status;
}

static fem_status join_set(joining *j, const char *part, const fem_set *set, bool of_vertices) {
    fem_status     status = FEM_OK;
    char          *name = NULL;
    int            first = of_vertices ? j->vertex : j->element, before = 0;
    int           *items = NULL;
    const fem_set *earlier = NULL;
    FEM_TRY(full_name(&name, part, set->name));
    earlier = of_vertices ? fem_mesh_vertex_set(j->mesh, name) : fem_mesh_element_set(j->mesh, name);
    before = earlier ? earlier->count : 0;
    items = fem_alloc((size_t)before + (size_t)set->count, sizeof *items);
    if (!items) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the set \"%s\"", name);
        goto done;
    }
    if (earlier) memcpy(items, earlier->items, (size_t)before * sizeof *items);
    for (int i = 0; i < set->count; i++) items[before + i] = first + set->items[i];
    if (earlier) { // larger numbers only: stays ascending
        fem_set *grown = (fem_set *)(of_vertices ? j->mesh->vertex_sets : j->mesh->element_sets);
        while (grown->items != earlier->items) grown++;
        fem_free(grown->items);
        grown->items = items, grown->count = before + set->count;
        items = NULL;
    } else {
        FEM_TRY(of_vertices ? fem_mesh_add_vertex_set(j->mesh, name, set->count, items)
                            : fem_mesh_add_element_set(j->mesh, name, set->count, items));
    }
done:
    fem_free(name), fem_free(items);
    return status;
}

static fem_status join_part(joining *j, const fem_mesh *part, const char *name) {
    fem_status status = FEM_OK;
    int        width = fem_element_vertices(part->type), index = 0;
    int       *region = fem_alloc((size_t)part->region_count, sizeof *region);
    if (!region) return fem_fail(FEM_NO_MEMORY, "no memory for %d regions", part->region_count);
    memcpy(j->mesh->vertices + 3 * (size_t)j->vertex, part->vertices, 3 * (size_t)part->vertex_count * sizeof(double));
    for (size_t i = 0; i < (size_t)part->element_count * (size_t)width; i++)
        j->mesh->elements[(size_t)j->element * (size_t)width + i] = j->vertex + part->elements[i];
    memcpy(j->mesh->materials + j->materials, part->materials, (size_t)part->material_count * sizeof *part->materials);
    for (int r = 0; r < part->region_count; r++) {
        FEM_TRY(join_region(j, name, &part->regions[r], &index));
        region[r] = index;
    }
    for (int e = 0; e < part->element_count; e++) j->mesh->region[j->element + e] = region[part->region[e]];
    for (int i = 0; i < part->vertex_set_count; i++) FEM_TRY(join_set(j, name, &part->vertex_sets[i], true));
    for (int i = 0; i < part->element_set_count; i++) FEM_TRY(join_set(j, name, &part->element_sets[i], false));
    j->vertex += part->vertex_count, j->element += part->element_count, j->materials += part->material_count;
done:
    fem_free(region);
    return status;
}

fem_status fem_mesh_join(fem_mesh *result, int count, const fem_mesh *const *parts, const char *const *names) {
    fem_status status = FEM_OK;
    fem_mesh   mesh = {0};
    long long  vertices = 0, elements = 0;
    size_t     regions = 0, materials = 0;
    if (count < 1) return fem_fail(FEM_BAD_INPUT, "%d meshes to join, expected at least one", count);
    for (int i = 0; i < count; i++) {
        if (parts[i]->type != parts[0]->type)
            return fem_fail(FEM_BAD_INPUT,
                            "mesh %d is of %s and the first of %s: only meshes of one element type can be joined",
                            i + 1, parts[i]->type == FEM_T4 ? "tetrahedra" : "hexahedra",
                            parts[0]->type == FEM_T4 ? "tetrahedra" : "hexahedra");
        vertices += parts[i]->vertex_count, elements += parts[i]->element_count;
        regions += (size_t)parts[i]->region_count, materials += (size_t)parts[i]->material_count;
    }
    if (vertices > 700000000 || elements > 50000000)
        return fem_fail(FEM_BAD_INPUT, "%lld vertices and %lld elements are too many for one mesh", vertices, elements);
    FEM_TRY(fem_mesh_allocate(&mesh, parts[0]->type, (int)vertices, (int)elements));
    fem_free(mesh.regions[0].name), fem_free(mesh.regions), fem_free(mesh.materials);
    mesh.region_count = mesh.material_count = 0;
    mesh.regions = fem_calloc(regions, sizeof *mesh.regions);
    mesh.materials = fem_calloc(materials, sizeof *mesh.materials);
    mesh.file_base = parts[0]->file_base;
    mesh.element_base = mesh.file_base;
    if (!mesh.regions || !mesh.materials) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu regions", regions);
        goto done;
    }
    mesh.material_count = (int)materials;
    joining j = {.mesh = &mesh};
    for (int i = 0; i < count; i++) FEM_TRY(join_part(&j, parts[i], names ? names[i] : NULL));
    fem_mesh_destroy(result);
    *result = mesh;
    mesh = (fem_mesh){0};
done:
    fem_mesh_destroy(&mesh);
    return status;
}

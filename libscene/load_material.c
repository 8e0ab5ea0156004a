// Materials of a scene, and which region of a mesh gets which.
#include "libscene/internal.h"

#include <stdio.h>
#include <string.h>

// Columns of `frame`: the first axis, the second made perpendicular to it, and their cross product.
static fem_status read_axes(scene_reader *reader, const cJSON *axes, double frame[9]) {
    double a[3], b[3], c[3];
    reader_vector(axes->child, a);
    reader_vector(axes->child->next, b);
    double length = vec3_norm(a), other = vec3_norm(b);
    vec3_normalize(a);
    vec3_normalize(b);
    vec3_axpy(b, -vec3_dot(a, b), a);
    if (!(length > 1e-12) || !(other > 1e-12) || !(vec3_norm(b) > 1e-6)) {
        reader_enter(reader, "axes");
        return reader_fail(reader, axes, "holds parallel vectors or a zero, expected two directions");
    }
    vec3_normalize(b);
    vec3_axpy(b, -vec3_dot(a, b), a);
    vec3_normalize(b);
    vec3_cross(c, a, b);
    for (int i = 0; i < 3; i++) frame[3 * i] = a[i], frame[3 * i + 1] = b[i], frame[3 * i + 2] = c[i];
    return FEM_OK;
}

fem_status scene_read_material(scene_reader *reader, const cJSON *node, fem_material *material) {
    fem_status   status = FEM_OK;
    raw_material raw = {0};
    fem_material m = fem_material_default();
    FEM_TRY(reader_table(reader, node, &scene_material_table, &raw));
    snprintf(m.name, sizeof m.name, "%s", node->string);
    m.kind = (fem_material_kind)raw.kind;
    m.density = raw.density;
    if (m.kind == FEM_LINEAR || m.kind == FEM_STVK || m.kind == FEM_NEOHOOKEAN) {
        m.young = raw.young, m.poisson = raw.poisson;
    } else if (m.kind == FEM_ORTHOTROPIC) {
        memcpy(m.young3, raw.young3, sizeof m.young3);
        memcpy(m.poisson3, raw.poisson3, sizeof m.poisson3);
        memcpy(m.shear3, raw.shear3, sizeof m.shear3);
        if (raw.axes) FEM_TRY(read_axes(reader, raw.axes, m.frame));
    } else if (m.kind == FEM_MOONEY_RIVLIN) {
        m.mu01 = raw.mu01, m.mu10 = raw.mu10, m.v1 = raw.v1;
    } else {
        m.mu = raw.mu, m.chain = raw.chain, m.bulk = raw.bulk;
    }
    if (raw.inversion_threshold > 0) m.inversion_threshold = raw.inversion_threshold;
    FEM_TRY(reader_prefix(reader, node, fem_material_check(&m)));
    *material = m;
done:
    return status;
}

fem_status scene_find_material(const scene_reader *reader, const cJSON *node, int count, const fem_material *materials,
                               int *index) {
    if (!cJSON_IsString(node))
        return reader_fail(reader, node, "is %s, expected the name of a material", json_kind(node));
    for (*index = 0; *index < count; ++*index)
        if (strcmp(materials[*index].name, node->valuestring) == 0) return FEM_OK;
    scene_suggestion s;
    suggestion_start(&s, node->valuestring);
    for (int i = 0; i < count; i++) suggestion_offer(&s, materials[i].name);
    return reader_fail(reader, node, "unknown material \"%.60s\"%s", node->valuestring, suggestion_text(&s));
}

fem_status scene_find_region(const scene_reader *reader, const cJSON *node, const char *name, const fem_mesh *mesh,
                             int *region) {
    *region = fem_mesh_region_index(mesh, name);
    if (*region >= 0) return FEM_OK;
    scene_suggestion s;
    suggestion_start(&s, name);
    for (int i = 0; i < mesh->region_count; i++) suggestion_offer(&s, mesh->regions[i].name);
    return reader_fail(reader, node, "the mesh has no such region%s", suggestion_text(&s));
}

static fem_status assign_regions(scene_reader *reader, const cJSON *assignment, int count,
                                 const fem_material *materials, fem_mesh *mesh, unsigned char *assigned) {
    fem_status status = FEM_OK;
    for (const cJSON *item = assignment->child; item; item = item->next) {
        int    region = -1, material = 0;
        size_t length = reader_enter(reader, item->string);
        FEM_TRY(scene_find_region(reader, item, item->string, mesh, &region));
        FEM_TRY(scene_find_material(reader, item, count, materials, &material));
        // the mesh's own materials come first, the scene's behind them
        mesh->regions[region].material = mesh->material_count - count + material;
        assigned[region] = 1;
        reader_leave(reader, length);
    }
done:
    return status;
}

fem_status scene_assign_materials(scene_reader *reader, const cJSON *part, const cJSON *assignment, int material_count,
                                  const fem_material *materials, bool mesh_from_file, fem_mesh *mesh) {
    fem_status     status = FEM_OK;
    int            index = 0;
    unsigned char *assigned = NULL;
    fem_material  *all = NULL;
    // formats without materials, and generators, leave the default that nobody chose
    bool own_material = mesh_from_file && !fem_material_is_default(&mesh->materials[0]);
    if (!assignment) {
        if (own_material) return FEM_OK;
        return reader_fail(reader, part, "the key \"material\" is missing: a %s has no material of its own",
                           mesh_from_file ? "mesh of this file" : "generated mesh");
    }
    size_t length = reader_enter(reader, "material");
    if (cJSON_IsString(assignment)) {
        FEM_TRY(scene_find_material(reader, assignment, material_count, materials, &index));
        FEM_TRY(fem_mesh_set_material(mesh, &materials[index]));
        reader_leave(reader, length);
        return FEM_OK;
    }
    assigned = fem_calloc((size_t)mesh->region_count, 1);
    all = fem_alloc((size_t)mesh->material_count + (size_t)material_count, sizeof *all);
    if (!assigned || !all) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d materials", material_count);
        goto done;
    }
    memcpy(all, mesh->materials, (size_t)mesh->material_count * sizeof *all);
    if (material_count > 0) memcpy(all + mesh->material_count, materials, (size_t)material_count * sizeof *all);
    fem_free(mesh->materials);
    mesh->materials = all;
    mesh->material_count += material_count;
    all = NULL;
    FEM_TRY(assign_regions(reader, assignment, material_count, materials, mesh, assigned));
    for (int i = 0; i < mesh->region_count; i++)
        if (!assigned[i] && !own_material) {
            status = reader_fail(reader, assignment, "gives the region \"%.60s\" no material", mesh->regions[i].name);
            goto done;
        }
    reader_leave(reader, length);
done:
    fem_free(assigned);
    fem_free(all);
    return status;
}

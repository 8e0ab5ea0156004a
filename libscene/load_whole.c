// All instances of a scene as one part, whose mesh is what probes, actions and files see; and objects that are stitched
// together, which are that part and nothing else.
#include "libscene/internal.h"

#include <stdio.h>
#include <string.h>

static fem_status count_all(const scene_reader *reader, const cJSON *node, scene *s, double *vertices, double *elements,
                            int *fixed) {
    scene_forest *f = &s->forest;
    *vertices = *elements = *fixed = 0;
    for (int i = 0; i < f->count; i++) {
        const scene_part *part = &s->parts[f->instances[i].part];
        *vertices += part->mesh.vertex_count;
        *elements += part->mesh.element_count;
        if (*elements > SCENE_ELEMENTS_MOST || *vertices > SCENE_ELEMENTS_MOST)
            return reader_fail(reader, node, "the %d instances have more than %d elements together, expected fewer",
                               f->count, SCENE_ELEMENTS_MOST);
        if (f->instances[i].parent < 0) *fixed += part->fixed.count;
    }
    return FEM_OK;
}

// Regions and materials of all parts, one after the other; a region gets the name of its part.
static fem_status copy_regions(const scene *s, fem_mesh *mesh, int *first) {
    int regions = 0, materials = 0;
    for (int k = 0; k < s->forest.part_count; k++) {
        int whole = s->parts[k].whole; // a domain has those of its whole, which comes before it
        first[k] = whole > 0 ? first[whole - 1] : regions;
        if (whole > 0) continue;
        regions += s->parts[k].mesh.region_count;
        materials += s->parts[k].mesh.material_count;
    }
    for (int i = 0; i < mesh->region_count; i++) fem_free(mesh->regions[i].name);
    fem_free(mesh->regions), fem_free(mesh->materials);
    mesh->region_count = mesh->material_count = 0;
    mesh->regions = fem_calloc((size_t)regions, sizeof *mesh->regions);
    mesh->materials = fem_calloc((size_t)materials, sizeof *mesh->materials);
    if (!mesh->regions || !mesh->materials) return fem_fail(FEM_NO_MEMORY, "no memory for %d regions", regions);
    for (int k = 0; k < s->forest.part_count; k++) {
        const fem_mesh *of = &s->parts[k].mesh;
        if (s->parts[k].whole > 0) continue;
        for (int i = 0; i < of->region_count; i++) {
            char name[200];
            snprintf(name, sizeof name, of->region_count == 1 ? "%s" : "%s.%s", s->parts[k].name, of->regions[i].name);
            fem_region *r = &mesh->regions[mesh->region_count];
            *r =
                (fem_region){.name = fem_copy_string(name), .material = mesh->material_count + of->regions[i].material};
            if (!r->name) return fem_fail(FEM_NO_MEMORY, "no memory for a region");
            mesh->region_count++;
        }
        memcpy(mesh->materials + mesh->material_count, of->materials,
               (size_t)of->material_count * sizeof *of->materials);
        mesh->material_count += of->material_count;
    }
    return FEM_OK;
}

static void copy_instance(const scene *s, const solver_forest *plan, int i, const int *first_region, scene_part *all) {
    const scene_forest     *f = &s->forest;
    const scene_part       *part = &s->parts[f->instances[i].part];
    const solver_placement *at = &plan->world[i];
    size_t                  width = (size_t)fem_element_vertices(part->mesh.type);
    double                 *to = all->mesh.vertices + 3 * (size_t)f->vertex[i];
    for (size_t v = 0; v < (size_t)part->mesh.vertex_count; v++) {
        double turned[3];
        mat3_mul_vec(turned, at->Q, part->mesh.vertices + 3 * v);
        for (size_t k = 0; k < 3; k++) to[3 * v + k] = at->p[k] + at->scale * turned[k];
    }
    for (size_t e = 0; e < (size_t)part->mesh.element_count; e++) {
        size_t into = (size_t)f->element[i] + e;
        all->mesh.region[into] = first_region[f->instances[i].part] + part->mesh.region[e];
        for (size_t k = 0; k < width; k++)
            all->mesh.elements[into * width + k] = f->vertex[i] + part->mesh.elements[e * width + k];
    }
    for (int k = 0; f->instances[i].parent < 0 && k < part->fixed.count; k++)
        all->fixed.items[all->fixed.count++] = f->vertex[i] + part->fixed.items[k];
}

fem_status scene_compose_forest(scene_reader *reader, const cJSON *node, const solver_forest *plan, scene *s) {
    fem_status    status = FEM_OK;
    scene_forest *f = &s->forest;
    scene_part   *all = &s->parts[s->part_count];
    int          *first_region = NULL, fixed;
    double        vertices, elements;
    FEM_TRY(count_all(reader, node, s, &vertices, &elements, &fixed));
    *all = (scene_part){.quadrature = 2, .scale = 1};
    s->object = s->part_count++;
    all->name = fem_copy_string("all");
    all->fixed.items = fem_alloc((size_t)fixed + 1, sizeof *all->fixed.items);
    f->vertex = fem_alloc((size_t)f->count + 1, sizeof *f->vertex);
    f->element = fem_alloc((size_t)f->count + 1, sizeof *f->element);
    first_region = fem_alloc((size_t)f->part_count, sizeof *first_region);
    if (!all->name || !all->fixed.items || !f->vertex || !f->element || !first_region) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d instances", f->count);
        goto done;
    }
    f->vertex[0] = f->element[0] = 0;
    for (int i = 0; i < f->count; i++) {
        const fem_mesh *mesh = &s->parts[f->instances[i].part].mesh;
        f->vertex[i + 1] = f->vertex[i] + mesh->vertex_count;
        f->element[i + 1] = f->element[i] + mesh->element_count;
    }
    FEM_TRY(fem_mesh_allocate(&all->mesh, s->parts[f->instances[0].part].mesh.type, (int)vertices, (int)elements));
    FEM_TRY(copy_regions(s, &all->mesh, first_region));
    for (int i = 0; i < f->count; i++) copy_instance(s, plan, i, first_region, all);
done:
    fem_free(first_region);
    return status;
}

// ---- objects that are stitched together ----------------------------------------------------------------------------

static fem_status check_member(const scene_reader *reader, const cJSON *node, const scene *s, int i) {
    const solver_forest_instance *g = &s->forest.instances[i];
    const scene_part             *part = &s->parts[g->part], *first = &s->parts[s->forest.instances[0].part];
    const char                   *wrong = NULL;
    bool                          moves = false;
    for (int k = 0; k < 6; k++) moves = moves || s->forest.motion[i][k] != 0;
    if (g->parent >= 0)
        wrong = "hangs on another";
    else if (g->stiffness != 1)
        wrong = "has a stiffness of its own";
    else if (g->damping_mass >= 0 || g->damping_stiffness >= 0)
        wrong = "has a damping of its own";
    else if (moves)
        wrong = "starts with a velocity";
    else if (part->modes.method != first->modes.method || part->forces != first->forces)
        wrong = "has another kind of modes or forces than the first";
    if (!wrong) return FEM_OK;
    return reader_fail(reader, node, "\"%s\" %s, which objects that are stitched together (\"seams\") do not have",
                       g->name, wrong);
}

// Seams of the parts, as often as there are objects of them: "object/seam".
static fem_status copy_seams(const scene *s, scene_part *all) {
    const scene_forest *f = &s->members;
    size_t              count = 0;
    for (int i = 0; i < f->count; i++) count += (size_t)s->parts[f->instances[i].part].seam_count;
    scene_seam *grown = fem_realloc(all->seams, (size_t)all->seam_count + count + 1, sizeof *grown);
    if (!grown) return fem_fail(FEM_NO_MEMORY, "no memory for %zu seams", count);
    all->seams = grown;
    for (int i = 0; i < f->count; i++) {
        const scene_part *part = &s->parts[f->instances[i].part];
        for (int k = 0; k < part->seam_count; k++) {
            const scene_seam *from = &part->seams[k];
            scene_seam       *to = &all->seams[all->seam_count];
            size_t            size = strlen(f->instances[i].name) + strlen(from->name) + 2;
            *to = (scene_seam){.count = from->count, .given = from->given, .name = fem_alloc(size, 1)};
            to->pairs = fem_copy(from->pairs, 2 * (size_t)from->count, sizeof *to->pairs);
            all->seam_count++;
            if (!to->name || !to->pairs) return fem_fail(FEM_NO_MEMORY, "no memory for a seam");
            snprintf(to->name, size, "%s/%s", f->instances[i].name, from->name);
            for (int v = 0; v < 2 * to->count; v++) to->pairs[v] += f->vertex[i];
        }
    }
    return FEM_OK;
}

fem_status scene_join_forest(scene_reader *reader, const raw_scene *raw, scene *s) {
    fem_status        status = FEM_OK;
    scene_part       *all = &s->parts[s->object];
    const scene_part *first = &s->parts[s->forest.instances[0].part];
    size_t            length = reader_enter(reader, "objects");
    for (int i = 0; i < s->forest.count; i++) FEM_TRY(check_member(reader, raw->objects, s, i));
    reader_leave(reader, length);
    all->modes = (scene_modes){.method = first->modes.method, .recipe = first->modes.recipe};
    all->forces = first->forces, all->quadrature = first->quadrature, all->training = first->training;
    all->modes.recipe.linear = all->modes.recipe.count = 0;
    for (int i = 0; i < s->forest.count; i++) {
        const modes_recipe *recipe = &s->parts[s->forest.instances[i].part].modes.recipe;
        all->modes.recipe.linear += recipe->linear, all->modes.recipe.count += recipe->count;
    }
    s->members = s->forest;
    s->forest = (scene_forest){0};
    FEM_TRY(scene_read_seams(reader, raw->seams, all));
    FEM_TRY(scene_match_seams(reader, raw->seams, all));
    FEM_TRY(copy_seams(s, all));
done:
    return status;
}

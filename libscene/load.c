// From a scene file to a scene: the text, the overrides, the sections in their order, and what ties them together.
#include "libscene/internal.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double MOST_STEPS_PER_FRAME = 1e6;

// ---- overrides -----------------------------------------------------------------------------------------------------

static void set_line(void *context, cJSON *node) { node->valueint = *(const int *)context; }

// The value behind "=": JSON when it is that, otherwise a plain string. Its lines are -1 - index.
static fem_status parse_override_value(cJSON **value, const char *text, int index) {
    int        line = -1 - index;
    fem_status status = json_parse(value, "--set", text, strlen(text));
    if (status == FEM_BAD_INPUT) {
        *value = cJSON_CreateString(text);
        status = *value ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for --set");
    }
    if (status == FEM_OK) json_visit(*value, set_line, &line);
    return status;
}

// The child of that name, or number in a list.
static cJSON *find_child(cJSON *node, const char *step) {
    if (!cJSON_IsArray(node)) return cJSON_GetObjectItemCaseSensitive(node, step);
    size_t digits = strspn(step, "0123456789");
    if (digits == 0 || digits > 6 || step[digits]) return NULL;
    int number = 0;
    for (const char *c = step; *c; c++) number = 10 * number + (*c - '0');
    return cJSON_GetArrayItem(node, number);
}

static fem_status put_child(cJSON *node, const char *step, cJSON **value) {
    cJSON *old = find_child(node, step);
    if (old) {
        if (old->string && !(*value)->string) {
            (*value)->string = fem_copy_string(old->string); // cJSON's memory is ours, so its names may be too
            if (!(*value)->string) return fem_fail(FEM_NO_MEMORY, "no memory for --set");
        }
        cJSON_ReplaceItemViaPointer(node, old, *value);
    } else if (!cJSON_AddItemToObject(node, step, *value)) {
        return fem_fail(FEM_NO_MEMORY, "no memory for --set");
    }
    *value = NULL;
    return FEM_OK;
}

// One step along the path of an override; a section that is not there is made.
static fem_status descend(cJSON **node, const char *step, const char *override, int index) {
    cJSON     *child = find_child(*node, step);
    fem_status status = FEM_OK;
    if (!child && cJSON_IsObject(*node)) {
        cJSON *made = cJSON_CreateObject();
        if (!made) return fem_fail(FEM_NO_MEMORY, "no memory for --set");
        made->valueint = -1 - index;
        child = made;
        status = put_child(*node, step, &made);
        cJSON_Delete(made);
        if (status != FEM_OK) return status;
    }
    if (!child || !(cJSON_IsObject(child) || cJSON_IsArray(child)))
        return fem_fail(FEM_BAD_INPUT, "--set %s: \"%s\" is no section of the scene", override, step);
    *node = child;
    return status;
}

static fem_status apply_override(cJSON *root, const char *override, int index) {
    fem_status  status = FEM_OK;
    cJSON      *node = root, *value = NULL;
    const char *equals = strchr(override, '=');
    if (!equals || equals == override || equals - override > 200)
        return fem_fail(FEM_BAD_INPUT, "--set %s: expected key=value, for example solver.step=0.005", override);
    char path[256];
    snprintf(path, sizeof path, "%.*s", (int)(equals - override), override);
    char *step = path;
    for (char *dot = strchr(step, '.'); dot; step = dot + 1, dot = strchr(step, '.')) {
        *dot = 0;
        FEM_TRY(descend(&node, step, override, index));
    }
    if (!step[0] || (cJSON_IsArray(node) && !find_child(node, step))) {
        status = fem_fail(FEM_BAD_INPUT, "--set %s: \"%s\" is no section of the scene", override, step);
        goto done;
    }
    FEM_TRY(parse_override_value(&value, equals + 1, index));
    FEM_TRY(put_child(node, step, &value));
done:
    cJSON_Delete(value);
    return status;
}

// ---- sections -------------------------------------------------------------------------------------------------

static fem_status read_materials(scene_reader *reader, const cJSON *node, int *count, fem_material **materials) {
    fem_status status = FEM_OK;
    int        room = node ? cJSON_GetArraySize(node) : 0;
    size_t     length = reader_enter(reader, "materials");
    *materials = fem_calloc((size_t)room, sizeof **materials);
    if (!*materials) return fem_fail(FEM_NO_MEMORY, "no memory for %d materials", room);
    for (const cJSON *item = node ? node->child : NULL; item; item = item->next) {
        size_t inner = reader_enter(reader, item->string);
        FEM_TRY(reader_check_name(reader, item, item->string));
        FEM_TRY(scene_read_material(reader, item, &(*materials)[*count]));
        ++*count;
        reader_leave(reader, inner);
    }
    reader_leave(reader, length);
done:
    return status;
}

// Triangles that move with the part.
static fem_status read_surface(scene_reader *reader, const cJSON *node, const char *file, scene_part *part) {
    fem_status status = FEM_OK;
    char      *path = NULL;
    size_t     length = reader_enter(reader, "surface");
    FEM_TRY(scene_relative_path(&path, reader, file));
    FEM_TRY(reader_prefix(reader, cJSON_GetObjectItemCaseSensitive(node, "surface"),
                          fem_surface_read_remarks(&part->surface, path, reader->remarks)));
    for (size_t i = 0; i < 3 * (size_t)part->surface.vertex_count; i++) part->surface.vertices[i] *= part->scale;
    reader_leave(reader, length);
done:
    fem_free(path);
    return status;
}

static fem_status read_poses_name(scene_reader *reader, const cJSON *node, const raw_part *raw, scene_part *part) {
    bool   given = raw->forces.type == SCENE_CUBATURE && raw->forces.sampling == 2;
    size_t length = reader_enter(reader, "forces");
    if (given && !raw->forces.file)
        return reader_fail(
            reader, node,
            "\"sampling\" is \"given\", but no \"file\" has training poses; a .pvd, .npy or .mtx would do");
    if (!given && raw->forces.file)
        return reader_fail(reader, node, "has a \"file\" of training poses, which only \"sampling\": \"given\" reads");
    reader_leave(reader, length);
    return given ? scene_relative_path(&part->poses, reader, raw->forces.file) : FEM_OK;
}

static fem_status read_part(scene_reader *reader, const cJSON *node, int material_count, const fem_material *materials,
                            scene_part *part) {
    fem_status status = FEM_OK;
    raw_part   raw = {0};
    size_t     length;
    FEM_TRY(reader_table(reader, node, &scene_part_table, &raw));
    part->quadrature = raw.quadrature;
    part->scale = raw.scale;
    part->name = fem_copy_string(node->string);
    if (!part->name) return fem_fail(FEM_NO_MEMORY, "no memory for a part");
    length = reader_enter(reader, "mesh");
    FEM_TRY(scene_read_mesh(reader, raw.mesh, &part->mesh));
    for (size_t i = 0; raw.scale != 1 && i < 3 * (size_t)part->mesh.vertex_count; i++)
        part->mesh.vertices[i] *= raw.scale;
    FEM_TRY(reader_prefix(reader, raw.mesh, fem_mesh_check(&part->mesh)));
    reader_leave(reader, length);
    FEM_TRY(scene_assign_materials(reader, node, raw.material, material_count, materials, cJSON_IsString(raw.mesh),
                                   &part->mesh));
    if (raw.seams) FEM_TRY(scene_read_seams(reader, raw.seams, part));
    if (raw.fixed) {
        length = reader_enter(reader, "fixed");
        FEM_TRY(scene_select(reader, raw.fixed, &part->mesh, &part->fixed));
        reader_leave(reader, length);
    }
    if (raw.seams) FEM_TRY(scene_match_seams(reader, raw.seams, part));
    if (raw.surface) FEM_TRY(read_surface(reader, node, raw.surface, part));
    part->forces = (scene_forces_kind)raw.forces.type;
    part->training = cubature_training_default_options();
    part->training.method = (cubature_method)raw.forces.method;
    part->training.error = raw.forces.error;
    part->training.elements = raw.forces.elements;
    part->training.poses = raw.forces.poses;
    part->training.displacement = raw.forces.displacement;
    part->training.held_out = raw.forces.held_out;
    part->training.loaded = raw.forces.sampling == 0;
    part->training.seed = (unsigned)raw.forces.seed;
    FEM_TRY(read_poses_name(reader, cJSON_GetObjectItemCaseSensitive(node, "forces"), &raw, part));
    part->drag = (scene_drag){raw.drag.normal, raw.drag.tangential, raw.drag.samples};
    FEM_TRY(scene_read_modes(reader, cJSON_GetObjectItemCaseSensitive(node, "modes"), &raw.modes, part, &part->modes));
done:
    return status;
}

static fem_status read_parts(scene_reader *reader, const cJSON *node, int material_count, const fem_material *materials,
                             scene *s) {
    fem_status status = FEM_OK;
    int        count = cJSON_GetArraySize(node);
    size_t     length = reader_enter(reader, "parts");
    s->parts = fem_calloc((size_t)count + 1, sizeof *s->parts); // one more: all instances of a forest
    if (!s->parts) return fem_fail(FEM_NO_MEMORY, "no memory for %d parts", count);
    for (const cJSON *item = node->child; item; item = item->next) {
        size_t inner = reader_enter(reader, item->string);
        FEM_TRY(reader_check_name(reader, item, item->string));
        s->part_count++; // from here on scene_destroy frees what it holds
        FEM_TRY(read_part(reader, item, material_count, materials, &s->parts[s->part_count - 1]));
        reader_leave(reader, inner);
    }
    reader_leave(reader, length);
done:
    return status;
}

// A held body starts where its part is, at rest; only a free reduced one can be placed.
static fem_status check_placement(scene_reader *reader, const cJSON *node, const scene *s) {
    const char *const names[] = {"translation", "rotation", "velocity", "spin"};
    bool              held = s->parts[s->object].fixed.count > 0;
    for (int i = 0; i < 4; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(node, names[i]);
        if (!item) continue;
        reader_enter(reader, names[i]);
        if (held) return reader_fail(reader, item, "has no meaning: the part has \"fixed\" vertices, which stay");
        if (s->method == SCENE_STATIC || (i < 2 && s->method != SCENE_REDUCED))
            return reader_fail(reader, item,
                               "has no meaning with this method, expected \"solver\": {\"method\": \"reduced\"}");
        reader->path[strlen(reader->path) - strlen(names[i]) - 1] = 0;
    }
    return FEM_OK;
}

fem_status scene_find_part(scene_reader *reader, const cJSON *object, const char *name, const scene *s, int *part) {
    scene_suggestion suggestion;
    suggestion_start(&suggestion, name);
    for (*part = 0; *part < s->part_count; ++*part) {
        if (strchr(s->parts[*part].name, '.')) continue; // made of another: the file has none of that name
        if (strcmp(s->parts[*part].name, name) == 0) return FEM_OK;
        suggestion_offer(&suggestion, s->parts[*part].name);
    }
    reader_enter(reader, "part");
    return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(object, "part"), "unknown part \"%.60s\"%s", name,
                       suggestion_text(&suggestion));
}

static fem_status read_objects(scene_reader *reader, const raw_scene *whole, scene *s) {
    fem_status   status = FEM_OK;
    raw_object   raw = {0};
    const cJSON *node = whole->objects;
    if (scene_is_forest(whole)) {
        status = scene_read_forest(reader, whole, s);
        return status == FEM_OK && whole->seams ? scene_join_forest(reader, whole, s) : status;
    }
    if (whole->seams) {
        reader_enter(reader, "seams");
        return reader_fail(reader, whole->seams,
                           "are between objects, and there is one; the seams within it are its part's");
    }
    size_t length = reader_enter(reader, "objects");
    reader_enter_index(reader, 0);
    FEM_TRY(reader_table(reader, node->child, &scene_object_table, &raw));
    FEM_TRY(scene_find_part(reader, node->child, raw.part, s, &s->object));
    memcpy(s->translation, raw.translation, sizeof s->translation);
    memcpy(s->rotation, raw.rotation, sizeof s->rotation);
    memcpy(s->velocity, raw.velocity, sizeof s->velocity);
    memcpy(s->spin, raw.spin, sizeof s->spin);
    FEM_TRY(check_placement(reader, node->child, s));
    bool cut = cJSON_GetObjectItemCaseSensitive(node->child, "decompose");
    if (!cut && s->windy) { // a single body in the wind is a tree of one domain
        raw.decompose.count = 1;
        raw.decompose.total = s->parts[s->object].modes.recipe.count;
    }
    if (cut || s->windy) FEM_TRY(scene_read_decompose(reader, node->child, &raw.decompose, s));
    reader_leave(reader, length);
done:
    return status;
}

// Roots move as a whole: what is fixed of each is selected, or nothing.
static fem_status check_forest_move(scene_reader *reader, const cJSON *node, const scene *s, const scene_vertices *on) {
    int roots = 0;
    for (int i = 0, k = 0; i < s->forest.count; i++) {
        const scene_part *part = &s->parts[s->forest.instances[i].part];
        int               first = s->forest.vertex[i], end = s->forest.vertex[i + 1], selected = 0, fixed = 0;
        for (; k < on->count && on->items[k] < end; k++) {
            selected++;
            for (int v = 0; v < part->fixed.count; v++) fixed += first + part->fixed.items[v] == on->items[k];
        }
        if (selected == 0) continue;
        if (s->forest.instances[i].parent >= 0 || selected != fixed || fixed != part->fixed.count) {
            reader_enter(reader, "on");
            return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "on"),
                               "selects %d vertices of \"%s\", expected just those that are \"fixed\", of objects "
                               "that stand by themselves",
                               selected, s->forest.instances[i].name);
        }
        if (s->forest.instances[i].driven) {
            reader_enter(reader, "on");
            return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "on"),
                               "moves \"%s\", which another action moves already", s->forest.instances[i].name);
        }
        roots++;
        s->forest.instances[i].driven = true;
    }
    return roots > 0 ? FEM_OK : reader_fail(reader, node, "moves no object");
}

static fem_status check_moves(scene_reader *reader, const cJSON *node, const scene *s, int latest) {
    const scene_vertices *on = &s->actions[latest].load.on, *fixed = &s->parts[s->object].fixed;
    if (s->forest.count > 0) return check_forest_move(reader, node, s, on);
    bool all = on->count == fixed->count;
    for (int i = 0; all && i < on->count; i++) all = on->items[i] == fixed->items[i];
    if (s->tree.domains.count > 0 && !all) {
        reader_enter(reader, "on");
        return reader_fail(
            reader, cJSON_GetObjectItemCaseSensitive(node, "on"),
            "selects %d vertices, expected just those %d that are \"fixed\": a tree of domains moves with "
            "its root",
            on->count, fixed->count);
    }
    for (int a = 0; a < latest; a++) {
        const scene_vertices *other = &s->actions[a].load.on;
        if (s->actions[a].kind != SCENE_MOVE) continue;
        for (int i = 0, k = 0; i < on->count; i++) {
            while (k < other->count && other->items[k] < on->items[i]) k++;
            if (k == other->count || other->items[k] != on->items[i]) continue;
            reader_enter(reader, "on");
            return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "on"),
                               "selects vertex %d, which actions[%d] moves already",
                               on->items[i] + s->parts[s->object].mesh.file_base, a);
        }
    }
    return FEM_OK;
}

static fem_status read_environment(scene_reader *reader, const raw_environment *raw, const cJSON *root, scene *s) {
    fem_status   status = FEM_OK;
    const cJSON *section = cJSON_GetObjectItemCaseSensitive(root, "environment");
    int          count = raw->obstacles ? cJSON_GetArraySize(raw->obstacles) : 0;
    size_t       length = reader_enter(reader, "environment");
    memcpy(s->gravity, raw->gravity, sizeof s->gravity);
    s->contact = (solver_contact_options){.stiffness = raw->contact.stiffness,
                                          .damping = raw->contact.damping,
                                          .friction = raw->contact.friction,
                                          .slip_velocity = raw->contact.slip_velocity};
    FEM_TRY(reader_prefix(reader, section, solver_contact_check_options(&s->contact)));
    s->obstacles = fem_calloc((size_t)count, sizeof *s->obstacles);
    if (!s->obstacles) return fem_fail(FEM_NO_MEMORY, "no memory for %d obstacles", count);
    size_t inner = reader_enter(reader, "obstacles");
    if (count > 0 && s->method != SCENE_REDUCED)
        return reader_fail(reader, raw->obstacles,
                           "only reduced bodies collide, expected \"solver\": {\"method\": \"reduced\"}");
    for (const cJSON *item = count > 0 ? raw->obstacles->child : NULL; item; item = item->next) {
        int    index = s->obstacle_count++;
        size_t innermost = reader_enter_index(reader, index);
        FEM_TRY(scene_read_obstacle(reader, item, &s->obstacles[index]));
        reader_leave(reader, innermost);
    }
    reader_leave(reader, inner);
    FEM_TRY(scene_read_wind(reader, section, raw, s));
    reader_leave(reader, length);
done:
    return status;
}

// A material of its own for every region, so that one can change alone.
static fem_status split_materials(fem_mesh *mesh) {
    fem_material *own = fem_alloc((size_t)mesh->region_count, sizeof *own);
    if (!own) return fem_fail(FEM_NO_MEMORY, "no memory for %d materials", mesh->region_count);
    for (int i = 0; i < mesh->region_count; i++) {
        own[i] = mesh->materials[mesh->regions[i].material];
        mesh->regions[i].material = i;
    }
    fem_free(mesh->materials);
    mesh->materials = own;
    mesh->material_count = mesh->region_count;
    return FEM_OK;
}

static fem_status read_actions(scene_reader *reader, const cJSON *node, int material_count,
                               const fem_material *materials, scene *s) {
    fem_status status = FEM_OK;
    int        count = node ? cJSON_GetArraySize(node) : 0;
    size_t     length = reader_enter(reader, "actions");
    s->actions = fem_calloc((size_t)count, sizeof *s->actions);
    if (!s->actions) return fem_fail(FEM_NO_MEMORY, "no memory for %d actions", count);
    for (const cJSON *item = node ? node->child : NULL; item; item = item->next) {
        int    index = s->action_count++;
        size_t inner = reader_enter_index(reader, index);
        FEM_TRY(scene_read_action(reader, item, s, material_count, materials, &s->actions[index]));
        if (s->actions[index].kind == SCENE_MOVE) FEM_TRY(check_moves(reader, item, s, index));
        reader_leave(reader, inner);
    }
    reader_leave(reader, length);
    for (int i = 0; i < s->action_count; i++)
        if (s->actions[i].kind == SCENE_MATERIAL) FEM_TRY(split_materials(&s->parts[s->object].mesh));
    FEM_TRY(scene_plan_stitches(reader, node, s));
done:
    return status;
}

enum { AUTOMATIC, NEWMARK, BACKWARD_EULER, CENTRAL, MIDPOINT }; // solver.integrator

// The integrators that each method has, and which is meant when none is named.
static fem_status read_integrator(scene_reader *reader, const cJSON *section, const raw_solver *r, bool free_body,
                                  bool tree, scene *s) {
    static const solver_integrator meant[] = {SOLVER_NEWMARK, SOLVER_NEWMARK, SOLVER_BACKWARD_EULER,
                                              SOLVER_CENTRAL_DIFFERENCES, SOLVER_MIDPOINT};
    solver_integrator              integrator = meant[r->integrator];
    bool                           reduced = s->method == SCENE_REDUCED;
    if (r->integrator == AUTOMATIC && reduced && (free_body || tree)) integrator = SOLVER_MIDPOINT;
    if (tree) {
        s->tree.options.integrator = integrator == SOLVER_NEWMARK ? SOLVER_TREE_NEWMARK : SOLVER_TREE_MIDPOINT;
        if (integrator == SOLVER_NEWMARK || integrator == SOLVER_MIDPOINT) return FEM_OK;
        reader_enter(reader, "integrator");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(section, "integrator"),
                           "trees of domains have \"midpoint\" and \"newmark\"");
    }
    bool fits = integrator == SOLVER_NEWMARK || integrator == SOLVER_BACKWARD_EULER ||
                (reduced && integrator == (free_body ? SOLVER_MIDPOINT : SOLVER_CENTRAL_DIFFERENCES));
    if (!fits) {
        reader_enter(reader, "integrator");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(section, "integrator"),
                           integrator == SOLVER_CENTRAL_DIFFERENCES
                               ? "central differences are there for held reduced bodies only"
                               : "the midpoint rule is there for free reduced bodies only");
    }
    s->solver.integrator = s->reduced.integrator = integrator;
    return FEM_OK;
}

static void copy_solver(const raw_solver *r, bool free_body, scene *s) {
    s->solver = solver_default_options();
    s->solver.newmark_beta = r->newmark.beta;
    s->solver.newmark_gamma = r->newmark.gamma;
    s->solver.damping_mass = r->damping.mass;
    s->solver.damping_stiffness = isnan(r->damping.stiffness) ? 0 : r->damping.stiffness;
    s->solver.damping_local = r->damping.local;
    s->solver.mass = r->mass == 0 ? FEM_MASS_CONSISTENT : FEM_MASS_LUMPED;
    if (r->newton.iterations > 0) s->solver.newton_iterations = r->newton.iterations;
    s->solver.newton_tolerance = r->newton.tolerance;
    s->solver.line_search = r->newton.line_search;
    s->solver.load_steps = r->load_steps;
    s->solver.load_halvings = r->load_halvings;
    s->solver.linear = (solver_linear)r->linear;
    s->solver.pcg_tolerance = r->pcg.tolerance;
    s->solver.pcg_iterations = r->pcg.iterations;
    s->reduced = free_body ? solver_free_default_options() : solver_reduced_default_options();
    s->reduced.newmark_beta = r->newmark.beta;
    s->reduced.newmark_gamma = r->newmark.gamma;
    s->reduced.damping_mass = r->damping.mass;
    s->reduced.damping_stiffness = s->solver.damping_stiffness;
    s->reduced.damping_local = r->damping.local;
    if (r->newton.iterations > 0) s->reduced.newton_iterations = r->newton.iterations;
    s->reduced.newton_tolerance = r->newton.tolerance;
    s->reduced.line_search = r->newton.line_search;
    s->reduced.solve = (solver_reduced_solve)r->solve;
    s->stitching = (scene_stitch_options){.form = (scene_stitch_form)r->stitching.form,
                                          .reuse = r->stitching.forces == 0,
                                          .forces_error = r->stitching.forces_error,
                                          .rebuild = (scene_rebuild)r->stitching.when,
                                          .rule = modes_rebuild_default_rule()};
    s->stitching.rule.modes = r->stitching.modes;
    s->stitching.rule.error = r->stitching.error, s->stitching.rule.share = r->stitching.share;
    s->tree.damping_ratio = isnan(r->damping.stiffness) && r->damping.mass == 0 ? r->damping.ratio : 0;
    s->tree.options = solver_tree_default_options();
    s->tree.options.newmark_beta = r->newmark.beta;
    s->tree.options.newmark_gamma = r->newmark.gamma;
    s->tree.options.subtree = (solver_subtree)r->subtree;
    s->tree.options.passes = r->passes;
    s->tree.options.theta = r->theta;
}

// The body is free when nothing fixes it; the parts are not read yet, so the file's own words tell.
static bool object_is_free(const raw_scene *raw) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(raw->objects->child, "part");
    const cJSON *part = cJSON_IsString(name) ? cJSON_GetObjectItemCaseSensitive(raw->parts, name->valuestring) : NULL;
    return !raw->seams && part && !cJSON_GetObjectItemCaseSensitive(part, "fixed");
}

static bool object_is_tree(const raw_scene *raw) {
    return (scene_is_forest(raw) && !raw->seams) ||
           cJSON_GetObjectItemCaseSensitive(raw->objects->child, "decompose") != NULL;
}

static fem_status read_solver(scene_reader *reader, const raw_scene *raw, const cJSON *root, scene *s) {
    fem_status        status = FEM_OK;
    const raw_solver *r = &raw->solver;
    const cJSON      *section = cJSON_GetObjectItemCaseSensitive(root, "solver");
    bool              free_body = object_is_free(raw), tree = object_is_tree(raw) && r->method == SCENE_REDUCED;
    s->method = (scene_method)r->method;
    copy_solver(r, free_body, s);
    size_t length = reader_enter(reader, "solver");
    FEM_TRY(read_integrator(reader, section, r, free_body, tree, s));
    // equal steps that fill a frame; the small number forgives 0.0083333 for 1/120
    double frame = 1 / raw->output.rate, steps = ceil(frame / r->step * (1 - 1e-5));
    bool   dynamic = s->method != SCENE_STATIC;
    if (steps < 1) steps = 1;
    if (dynamic && steps > MOST_STEPS_PER_FRAME) {
        reader_enter(reader, "step");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(section, "step"),
                           "is %g s, so that a frame of %g s takes %g steps, expected at most %g", r->step, frame,
                           steps, MOST_STEPS_PER_FRAME);
    }
    s->steps_per_frame = dynamic ? (int)steps : 0;
    s->solver.time_step = s->reduced.time_step = s->tree.options.time_step = dynamic ? frame / steps : r->step;
    if (tree)
        status = solver_tree_check_options(&s->tree.options);
    else if (s->method == SCENE_REDUCED)
        status = free_body ? solver_free_check_options(&s->reduced) : solver_reduced_check_options(&s->reduced);
    else
        status = solver_check_options(&s->solver);
    FEM_TRY(reader_prefix(reader, section, status));
    reader_leave(reader, length);
done:
    return status;
}

static fem_status read_output(scene_reader *reader, const raw_output *raw, const cJSON *root, scene *s) {
    fem_status   status = FEM_OK;
    const cJSON *section = cJSON_GetObjectItemCaseSensitive(root, "output");
    int          count = raw->probes ? cJSON_GetArraySize(raw->probes) : 0;
    size_t       length;
    s->frames = raw->frames;
    s->rate = raw->rate;
    s->write_vtu = raw->formats & 1u;
    s->write_obj = raw->formats & 2u;
    s->write_glb = raw->formats & 4u;
    s->glb = (scene_glb_options){.up = raw->glb.up == 0 ? SCENE_UP_Z : SCENE_UP_Y,
                                 .unit = raw->glb.units == 0 ? 1 : 0.01,
                                 .skin = raw->glb.skin};
    s->seams = (solver_seams)raw->interfaces;
    if (!s->write_glb && cJSON_GetObjectItemCaseSensitive(section, "glb")) {
        reader_enter(reader, "output.glb");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(section, "glb"),
                           "is not written, expected \"formats\" with \"glb\" among them");
    }
    if (s->tree.domains.count == 0 && cJSON_GetObjectItemCaseSensitive(section, "interfaces")) {
        reader_enter(reader, "output.interfaces");
        return reader_fail(
            reader, cJSON_GetObjectItemCaseSensitive(section, "interfaces"),
            "only a body of domains that stands alone has interfaces, expected one object, with \"decompose\"");
    }
    length = reader_enter(reader, "output.probes");
    s->sample_steps = raw->sample == 1;
    s->probes = fem_calloc((size_t)count, sizeof *s->probes);
    if (!s->probes) return fem_fail(FEM_NO_MEMORY, "no memory for %d probes", count);
    for (const cJSON *item = raw->probes ? raw->probes->child : NULL; item; item = item->next) {
        scene_probe *probe = &s->probes[s->probe_count++];
        size_t       inner = reader_enter(reader, item->string);
        FEM_TRY(reader_check_name(reader, item, item->string));
        probe->name = fem_copy_string(item->string);
        if (!probe->name) return fem_fail(FEM_NO_MEMORY, "no memory for a probe");
        FEM_TRY(scene_select(reader, item, &s->parts[s->object].mesh, &probe->on));
        reader_leave(reader, inner);
    }
    reader_leave(reader, length);
done:
    return status;
}

// What only shows when all sections are known.
static fem_status check_whole(scene_reader *reader, const cJSON *root, const scene *s) {
    const cJSON      *parts = cJSON_GetObjectItemCaseSensitive(root, "parts");
    const scene_part *part = &s->parts[s->object];
    const cJSON      *node = cJSON_GetObjectItemCaseSensitive(parts, part->name);
    bool              moved = false;
    for (int i = 0; i < s->action_count; i++) moved = moved || s->actions[i].kind == SCENE_MOVE;
    reader_enter(reader, "parts");
    reader_enter(reader, part->name);
    if (s->method == SCENE_STATIC && part->fixed.count == 0 && !moved)
        return reader_fail(reader, node, "the key \"fixed\" is missing: a static scene needs vertices that are held");
    if (s->method != SCENE_REDUCED) return FEM_OK;
    if (s->tree.domains.count > 0 || s->forest.count > 0) return FEM_OK; // has been checked, domain by domain
    if (moved)
        return reader_fail(
            reader, node, "a \"move\" has no meaning with \"method\": \"reduced\": the basis holds its supports still");
    for (int i = 0; part->forces == SCENE_POLYNOMIAL && i < part->mesh.region_count; i++) {
        const fem_region *region = &part->mesh.regions[i];
        fem_material_kind kind = part->mesh.materials[region->material].kind;
        if (kind == FEM_STVK || kind == FEM_ORTHOTROPIC) continue;
        reader_enter(reader, "forces");
        return reader_fail(
            reader, node,
            "the material of the region \"%.60s\" is %s, which has no polynomial; stvk and orthotropic have, "
            "and \"forces\": {\"type\": \"cubature\"} takes any material",
            region->name, fem_material_kind_name(kind));
    }
    return FEM_OK;
}

// ---- the whole ------------------------------------------------------------------------------------------------

// File name without folder and .json (.gz).
static char *scene_name(const char *path) {
    const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path;
    char       *name = fem_copy_string(start);
    for (int i = 0; name && i < 2; i++) {
        const char *ending = i == 0 ? ".gz" : ".json";
        size_t      length = strlen(name), tail = strlen(ending);
        if (length > tail && strcmp(name + length - tail, ending) == 0) name[length - tail] = 0;
    }
    return name;
}

static fem_status read_tree(scene_reader *reader, const cJSON *root, scene *s) {
    fem_status    status = FEM_OK;
    raw_scene     raw = {0};
    int           material_count = 0;
    fem_material *materials = NULL;
    FEM_TRY(reader_table(reader, root, &scene_top_table, &raw));
    s->name = scene_name(reader->file);
    s->path = fem_copy_string(reader->file);
    s->title = raw.title ? fem_copy_string(raw.title) : NULL;
    if (!s->name || !s->path || (raw.title && !s->title)) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a scene");
        goto done;
    }
    FEM_TRY(read_solver(reader, &raw, root, s));
    FEM_TRY(read_environment(reader, &raw.environment, root, s));
    FEM_TRY(read_materials(reader, raw.materials, &material_count, &materials));
    FEM_TRY(read_parts(reader, raw.parts, material_count, materials, s));
    FEM_TRY(read_objects(reader, &raw, s));
    FEM_TRY(read_actions(reader, raw.actions, material_count, materials, s));
    FEM_TRY(read_output(reader, &raw.output, root, s));
    FEM_TRY(check_whole(reader, root, s));
done:
    fem_free(materials);
    return status;
}

// What was read, without what changes nothing of the motion.
static fem_status hash_text(cJSON *root, fem_hash *hash) {
    cJSON_DeleteItemFromObjectCaseSensitive(root, "title");
    cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, "output"), "frames");
    char *text = cJSON_PrintUnformatted(root);
    if (!text) return fem_fail(FEM_NO_MEMORY, "no memory for a scene");
    *hash = fem_hash_add((fem_hash){0}, text, strlen(text));
    cJSON_free(text);
    return FEM_OK;
}

fem_status scene_load(scene **loaded, const char *path, int override_count, const char *const *overrides) {
    fem_status   status = FEM_OK;
    scene_reader reader = {.file = path, .overrides = overrides};
    char        *text = NULL;
    size_t       size = 0;
    cJSON       *root = NULL;
    scene       *s = fem_calloc(1, sizeof *s);
    if (!s) return fem_fail(FEM_NO_MEMORY, "no memory for a scene");
    reader.remarks = &s->remarks;
    reader.scene = s;
    status = fem_file_read(&text, &size, path);
    if (status == FEM_IO) status = FEM_BAD_INPUT;
    FEM_TRY(status);
    FEM_TRY(json_parse(&root, path, text, size));
    if (!cJSON_IsObject(root)) {
        status = reader_fail(&reader, root, "is %s, expected an object with \"limber\": 1", json_kind(root));
        goto done;
    }
    for (int i = 0; i < override_count; i++) FEM_TRY(apply_override(root, overrides[i], i));
    FEM_TRY(read_tree(&reader, root, s));
    FEM_TRY(hash_text(root, &s->hash));
    *loaded = s;
    s = NULL;
done:
    scene_destroy(s);
    cJSON_Delete(root);
    fem_free(text);
    return status;
}

void scene_destroy(scene *s) {
    if (!s) return;
    for (int i = 0; i < s->part_count; i++) {
        fem_free(s->parts[i].name);
        fem_mesh_destroy(&s->parts[i].mesh);
        fem_surface_destroy(&s->parts[i].surface);
        fem_free(s->parts[i].fixed.items), fem_free(s->parts[i].skin);
        fem_free(s->parts[i].poses);
        scene_modes_destroy(&s->parts[i].modes);
        scene_seams_destroy(&s->parts[i]);
    }
    for (int i = 0; i < s->action_count; i++) {
        fem_free(s->actions[i].load.on.items);
        fem_free(s->actions[i].move.keyframes);
        fem_free(s->actions[i].within.items);
        fem_free(s->actions[i].stitches);
    }
    fem_free(s->grown);
    for (int i = 0; i < s->obstacle_count; i++) fem_free(s->obstacles[i].move.keyframes);
    scene_forest_destroy(&s->forest);
    scene_forest_destroy(&s->members);
    domain_tree_destroy(&s->tree.domains);
    fem_free(s->tree.own);
    fem_free(s->obstacles);
    for (int i = 0; i < s->probe_count; i++) {
        fem_free(s->probes[i].name);
        fem_free(s->probes[i].on.items);
    }
    fem_remarks_destroy(&s->remarks);
    fem_free(s->parts);
    fem_free(s->actions);
    fem_free(s->probes);
    fem_free(s->title);
    fem_free(s->cache);
    fem_free(s->name);
    fem_free(s->path);
    fem_free(s);
}

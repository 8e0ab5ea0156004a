// Runs a scene: one equilibrium, or dynamics frame by frame. However it ends, what was done is on disk.
#include "libscene/class.h"
#include "libscene/internal.h"
#include "libscene/motion.h"
#include "libscene/record.h"
#include "libscene/record_glb.h"
#include "libscene/stitching.h"
#include "libscene/trail.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct simulation {
    const scene        *s;
    const char         *folder;
    const fem_mesh     *mesh;
    fem_body           *body;
    unsigned char      *fixed;
    scene_motion       *motion;
    scene_record       *record;
    scene_record_glb   *glb; // NULL: none is written
    const fem_progress *progress;
    int                 steps;
    fem_hash            key; // of the checkpoints
    char               *checkpoint_path;
    double             *state; // of the motion, to be written
    size_t              state_room;
    scene_checkpoint    from;     // frames 0: the run begins at time 0
    double              diagonal; // of the bounding box
    char               *notes;
} simulation;

static void simulation_destroy(simulation *sim) {
    scene_record_destroy(sim->record);
    scene_record_glb_destroy(sim->glb);
    if (sim->motion) sim->motion->destroy(sim->motion);
    fem_body_destroy(sim->body);
    scene_checkpoint_destroy(&sim->from);
    fem_free(sim->checkpoint_path);
    fem_free(sim->state);
    fem_free(sim->fixed);
    fem_free(sim->notes);
}

void scene_bounding_box(const fem_mesh *mesh, double low[3], double high[3]) {
    for (int i = 0; i < 3; i++) low[i] = INFINITY, high[i] = -INFINITY;
    for (int v = 0; v < mesh->vertex_count; v++)
        for (int i = 0; i < 3; i++) {
            low[i] = fmin(low[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
            high[i] = fmax(high[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
        }
}

static fem_status make_body(simulation *sim) {
    const scene_part *part = &sim->s->parts[sim->s->object];
    fem_body_options  options = fem_body_default_options();
    fem_status        status = FEM_OK;
    double            low[3], high[3];
    options.quadrature = part->quadrature;
    sim->mesh = &part->mesh;
    scene_bounding_box(sim->mesh, low, high);
    sim->diagonal = vec3_distance(low, high);
    sim->fixed = fem_calloc(3 * (size_t)sim->mesh->vertex_count, 1);
    if (!sim->fixed) return fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", sim->mesh->vertex_count);
    scene_fixed_dofs(sim->s, sim->fixed);
    if (sim->s->forest.count == 0) FEM_TRY(fem_body_create(&sim->body, sim->mesh, &options));
done:
    return status;
}

// ---- trouble --------------------------------------------------------------------------------------------------

// The vertex that went first: not a number, or the largest displacement.
static int worst_vertex(const simulation *sim, const double *u) {
    int    worst = 0;
    double largest = -1;
    for (int v = 0; v < sim->mesh->vertex_count; v++) {
        double size = vec3_norm(u + 3 * (size_t)v);
        if (!isfinite(size)) return v;
        if (size > largest) largest = size, worst = v;
    }
    return worst;
}

static const char *region_of_vertex(const fem_mesh *mesh, int vertex) {
    int width = fem_element_vertices(mesh->type);
    for (int e = 0; e < mesh->element_count; e++)
        for (int i = 0; i < width; i++)
            if (mesh->elements[(size_t)e * (size_t)width + (size_t)i] == vertex)
                return mesh->regions[mesh->region[e]].name;
    return "none";
}

// The solver's own message says where; the scene, the part and the step stand in front.
static fem_status fail_in_step(const simulation *sim, fem_status status) {
    const char *part = sim->s->parts[sim->s->object].name;
    if (sim->s->method == SCENE_STATIC) return fem_fail_prefix(status, "%s: part \"%s\": ", sim->s->path, part);
    return fem_fail_prefix(status, "%s: part \"%s\": step %d: ", sim->s->path, part, sim->steps + 1);
}

// A state that no frame should show: not finite, or flung a million times the body's size away.
static fem_status check_state(const simulation *sim) {
    const scene_motion *state = sim->motion;
    double              limit = 1e6 * sim->diagonal;
    for (int i = 0; i < 3 * sim->mesh->vertex_count; i++) {
        double u = fabs(state->u[i]), v = fabs(state->v[i]);
        if (u <= limit && isfinite(v)) continue;
        int vertex = worst_vertex(sim, state->u);
        return fem_fail(
            FEM_UNSTABLE,
            "%s: part \"%s\": at t = %.6g s (step %d) the motion is unstable, most at vertex %d in the region \"%s\"; "
            "a "
            "smaller solver.step, more solver.damping.stiffness or \"integrator\": \"backward-euler\" would help",
            sim->s->path, sim->s->parts[sim->s->object].name, state->time, sim->steps + 1,
            vertex + sim->mesh->file_base, region_of_vertex(sim->mesh, vertex));
    }
    return FEM_OK;
}

// ---- the run ---------------------------------------------------------------------------------------------------

static fem_status keep_row(simulation *sim) {
    solver_energies energies;
    sim->motion->energies(sim->motion, &energies);
    return scene_record_row(sim->record, sim->motion->time, sim->motion->u, &energies);
}

static fem_status keep_frame(simulation *sim) {
    fem_status status = FEM_OK;
    FEM_TRY(scene_record_frame(sim->record, sim->motion->time, sim->motion->u, sim->motion->v));
    if (sim->glb) FEM_TRY(scene_record_glb_frame(sim->glb, sim->motion));
    FEM_TRY(scene_record_sync(sim->record, false));
done:
    return status;
}

static fem_status run_static(simulation *sim) {
    fem_status status = sim->motion->equilibrium(sim->motion, sim->progress);
    if (status != FEM_OK) return fail_in_step(sim, status);
    sim->motion->show(sim->motion);
    FEM_TRY(check_state(sim));
    FEM_TRY(keep_row(sim));
    FEM_TRY(keep_frame(sim));
done:
    return status;
}

// One step; `shown` also brings u and v up to date, which costs what the mesh costs.
static fem_status step(simulation *sim, bool shown) {
    fem_status status = sim->motion->step(sim->motion, (sim->steps + 1) * sim->s->solver.time_step);
    if (status != FEM_OK) return fail_in_step(sim, status);
    if (shown) {
        sim->motion->show(sim->motion);
        status = check_state(sim);
    }
    if (status == FEM_OK) sim->steps++;
    return status;
}

// ---- checkpoints -----------------------------------------------------------------------------------------------

// Before anything is made: a checkpoint that will not do is refused at once.
static fem_status open_checkpoint(simulation *sim, const char *folder, int frames) {
    fem_status   status = FEM_OK;
    const scene *s = sim->s;
    char        *trail = NULL;
    if (s->checkpoint <= 0 && !s->resume) return FEM_OK;
    if (s->method == SCENE_STATIC) return fem_fail(FEM_BAD_INPUT, "%s: a static scene has no checkpoints", s->path);
    FEM_TRY(scene_checkpoint_key(s, &sim->key));
    sim->checkpoint_path = scene_checkpoint_path(s, folder);
    if (!sim->checkpoint_path) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a path");
        goto done;
    }
    if (!s->resume) goto done;
    FEM_TRY(scene_checkpoint_read(&sim->from, s, sim->checkpoint_path, sim->key));
    if (sim->from.frames > frames) {
        status = fem_fail(FEM_BAD_INPUT, "%s: is at frame %d, but %d frames were asked for; run from the start",
                          sim->checkpoint_path, sim->from.frames, frames);
        goto done;
    }
    if (s->write_glb) {
        trail = scene_trail_path(s, folder);
        status =
            trail ? scene_trail_read(trail, &sim->from, NULL, NULL) : fem_fail(FEM_NO_MEMORY, "no memory for a path");
    }
done:
    fem_free(trail);
    return status;
}

static fem_status restore(simulation *sim) {
    fem_status status = FEM_OK;
    if (sim->motion->repeat)
        status = sim->motion->repeat(sim->motion, sim->from.steps, sim->from.state_size, sim->from.state);
    if (status != FEM_OK) return fem_fail_prefix(status, "%s: ", sim->checkpoint_path);
    size_t size = sim->motion->state_size(sim->motion);
    if (sim->from.state_size != size)
        return fem_fail(FEM_BAD_INPUT, "%s: its state has %zu numbers, expected %zu", sim->checkpoint_path,
                        sim->from.state_size, size);
    status = sim->motion->restore(sim->motion, sim->from.steps, sim->from.state);
    if (status != FEM_OK) return fem_fail_prefix(status, "%s: ", sim->checkpoint_path);
    sim->steps = sim->from.steps;
    return FEM_OK;
}

static fem_status keep_checkpoint(simulation *sim) {
    scene_checkpoint c = {.steps = sim->steps, .state_size = sim->motion->state_size(sim->motion)};
    if (sim->state_room < c.state_size) { // a stitched body may have more modes than before
        fem_free(sim->state);
        sim->state = fem_alloc(c.state_size, sizeof *sim->state);
        sim->state_room = sim->state ? c.state_size : 0;
    }
    if (!sim->state) return fem_fail(FEM_NO_MEMORY, "no memory for a checkpoint of %zu numbers", c.state_size);
    scene_record_describe(sim->record, &c);
    if (sim->glb) {
        fem_status status = scene_record_glb_describe(sim->glb, &c);
        if (status != FEM_OK) return status;
    }
    sim->motion->save(sim->motion, sim->state);
    c.state = sim->state;
    return scene_checkpoint_write(&c, sim->checkpoint_path, sim->key);
}

// ---- the loop --------------------------------------------------------------------------------------------------

static fem_status run_dynamic(simulation *sim, int frames) {
    fem_status status = FEM_OK;
    int        substeps = sim->s->steps_per_frame, every = sim->s->checkpoint;
    sim->motion->show(sim->motion);
    if (sim->from.frames == 0) {
        FEM_TRY(keep_row(sim));
        FEM_TRY(keep_frame(sim));
    }
    for (int frame = scene_record_frames(sim->record); frame < frames; frame++) {
        for (int k = 0; k < substeps; k++) {
            bool row = sim->s->sample_steps || k == substeps - 1;
            FEM_TRY(
                fem_progress_report(sim->progress, "simulating", (frame - 1 + (double)k / substeps) / (frames - 1)));
            FEM_TRY(step(sim, row || sim->s->method == SCENE_FULL));
            if (row) FEM_TRY(keep_row(sim));
        }
        FEM_TRY(keep_frame(sim));
        if (every > 0 && (frame % every == 0 || frame == frames - 1)) FEM_TRY(keep_checkpoint(sim));
    }
    FEM_TRY(fem_progress_report(sim->progress, "simulating", 1));
done:
    return status;
}

static fem_status fill_result(simulation *sim, double begun, double prepared, scene_result *result) {
    scene_result r = {.frames = scene_record_frames(sim->record), .steps = sim->steps, .time = sim->motion->time};
    r.probe_count = sim->s->probe_count;
    r.probes = fem_calloc(3 * (size_t)r.probe_count, sizeof *r.probes);
    if (!r.probes) return fem_fail(FEM_NO_MEMORY, "no memory for %d probes", r.probe_count);
    sim->motion->show(sim->motion);
    scene_probe_values(sim->s, sim->motion->u, r.probes);
    r.max_vertex = worst_vertex(sim, sim->motion->u);
    r.max_displacement = vec3_norm(sim->motion->u + 3 * (size_t)r.max_vertex);
    sim->motion->energies(sim->motion, &r.energies);
    sim->motion->report(sim->motion, &r);
    r.change_count = sim->motion->change_count, r.changes = sim->motion->changes;
    sim->motion->change_count = 0, sim->motion->changes = NULL;
    r.seconds = fem_seconds() - begun;
    r.seconds_prepare = prepared - begun;
    r.seconds_output = scene_record_seconds(sim->record);
    r.notes = sim->notes;
    sim->notes = NULL;
    *result = r;
    return FEM_OK;
}

// Ends a run: brings the files up to date and fills the result, whatever happened before. The first failure is
// reported.
static fem_status finish(simulation *sim, fem_status status, double begun, double prepared, scene_result *result) {
    int  shown = 0; // frames of the .glb
    char message[1024];
    snprintf(message, sizeof message, "%s", fem_message());
    fem_status synced = sim->record ? scene_record_sync(sim->record, true) : FEM_OK;
    if (sim->glb && synced == FEM_OK) synced = scene_record_glb_commit(sim->glb, &shown, &sim->notes);
    if (sim->motion && sim->motion->change_count > 0 && synced == FEM_OK)
        synced = scene_changes_write(sim->folder, sim->motion->change_count, sim->motion->changes);
    fem_status filled = sim->record && result ? fill_result(sim, begun, prepared, result) : FEM_OK;
    if (result && sim->s->write_glb && !sim->s->write_vtu && !sim->s->write_obj) result->frames = shown;
    if (status != FEM_OK) return fem_fail(status, "%s", message);
    return synced != FEM_OK ? synced : filled;
}

fem_status scene_run(const scene *s, const char *folder, int frames, const fem_progress *progress,
                     scene_result *result) {
    fem_status status = FEM_OK;
    simulation sim = {.s = s, .folder = folder, .progress = progress};
    double     begun = fem_seconds(), prepared = begun;
    if (result) *result = (scene_result){0};
    if (frames <= 0) frames = s->frames;
    FEM_TRY(fem_progress_report(progress, "preparing", 0));
    FEM_TRY(open_checkpoint(&sim, folder, frames));
    FEM_TRY(make_body(&sim));
    if (s->forest.count > 0)
        FEM_TRY(scene_motion_forest(&sim.motion, s, progress, &sim.notes));
    else if (s->tree.domains.count > 0)
        FEM_TRY(scene_motion_tree(&sim.motion, s, sim.body, progress, &sim.notes));
    else if (s->method == SCENE_REDUCED)
        FEM_TRY(scene_motion_reduced(&sim.motion, s, sim.body, progress, &sim.notes));
    else
        FEM_TRY(scene_motion_full(&sim.motion, s, sim.body, sim.fixed));
    if (sim.from.frames > 0) FEM_TRY(restore(&sim));
    FEM_TRY(scene_record_create(&sim.record, s, folder, sim.from.frames > 0 ? &sim.from : NULL, &sim.notes));
    if (s->write_glb)
        FEM_TRY(scene_record_glb_create(&sim.glb, s, folder, sim.motion, frames, sim.from.frames > 0 ? &sim.from : NULL,
                                        &sim.notes));
    prepared = fem_seconds();
    FEM_TRY(s->method == SCENE_STATIC ? run_static(&sim) : run_dynamic(&sim, frames));
done:
    status = finish(&sim, status, begun, prepared, result);
    simulation_destroy(&sim);
    return status;
}

fem_status scene_precompute(const scene *s, const fem_progress *progress, scene_result *result) {
    fem_status status = FEM_OK;
    simulation sim = {.s = s, .progress = progress};
    scene_class *class = NULL;
    solver_assembly *assembly = NULL;
    solver_forest   *forest = NULL;
    double           begun = fem_seconds();
    *result = (scene_result){0};
    if (s->method != SCENE_REDUCED || !s->cache)
        return fem_fail(FEM_BAD_INPUT, "%s: there is nothing to precompute: %s", s->path,
                        s->cache ? "its solver.method is not \"reduced\"" : "there is no cache to keep it in");
    if (s->forest.count > 0) {
        FEM_TRY(scene_make_forest(&forest, s, progress, &sim.notes, result));
    } else if (s->tree.domains.count > 0) {
        FEM_TRY(scene_assemble(&assembly, s, progress, &sim.notes, result));
        FEM_TRY(scene_note_model(s, assembly, NULL, SCENE_MODEL_MODES, &sim.notes));
    } else {
        FEM_TRY(make_body(&sim));
        FEM_TRY(
            scene_class_create(&class, &s->parts[s->object], sim.body, s->solver.mass, s->cache, progress, &sim.notes));
        result->modes = class->basis.r;
        result->cached = class->cached;
        result->kept = class->kept;
        result->seconds_modes = class->seconds_modes;
        result->seconds_forces = class->seconds_forces;
        result->training = class->training;
        result->room = class->room;
    }
    result->seconds = fem_seconds() - begun;
    result->notes = sim.notes;
    sim.notes = NULL;
done:
    scene_class_destroy(class);
    solver_assembly_destroy(assembly);
    solver_forest_destroy(forest);
    simulation_destroy(&sim);
    return status;
}

fem_status scene_set_cache(scene *s, const char *folder) {
    char *copy = folder ? fem_copy_string(folder) : NULL;
    if (folder && !copy) return fem_fail(FEM_NO_MEMORY, "no memory for the name of a folder");
    fem_free(s->cache);
    s->cache = copy;
    return FEM_OK;
}

void scene_set_memory(scene *s, double bytes) {
    s->memory = bytes;
    for (int i = 0; i < s->part_count; i++) s->parts[i].modes.recipe.max_bytes = bytes;
}

const char *scene_method_name(scene_method method) {
    return method == SCENE_STATIC ? "static" : method == SCENE_FULL ? "full" : "reduced";
}

void scene_result_destroy(scene_result *result) {
    for (int i = 0; i < result->change_count; i++) scene_change_destroy(&result->changes[i]);
    fem_free(result->changes);
    fem_free(result->probes);
    fem_free(result->notes);
    fem_free(result->rules);
    *result = (scene_result){0};
}

// ---- without running ------------------------------------------------------------------------------------------

// Bytes of a run: mesh and matrices by their sizes, the factor by CHOLMOD's own analysis, frames' rows left out.
static double estimate_bytes(const fem_mesh *mesh, const fem_sparse *K, double factor_bytes) {
    double n = 3.0 * mesh->vertex_count, corners = (double)mesh->element_count * fem_element_vertices(mesh->type);
    double matrix = 72.0 * K->blocks + 4.0 * (K->n + K->blocks);
    return 8 * n * 24 + corners * 8 * 16 + 4 * matrix + factor_bytes;
}

static void describe_time(const scene *s, scene_summary *a) {
    if (s->method == SCENE_STATIC) return;
    a->steps = (double)(s->frames - 1) * s->steps_per_frame;
    a->duration = (s->frames - 1) / s->rate;
}

// Of instances: numbers of their parts, each as often as it is used.
static fem_status summarize_forest(const scene *s, scene_summary *summary) {
    const scene_part *all = &s->parts[s->object];
    scene_summary     a = {.fixed = all->fixed.count,
                           .frames = s->frames,
                           .vertices = all->mesh.vertex_count,
                           .elements = all->mesh.element_count,
                           .regions = all->mesh.region_count};
    double            centre[3], begun = fem_seconds();
    for (int i = 0; i < s->action_count; i++)
        a.moved += s->actions[i].kind == SCENE_MOVE ? s->actions[i].load.on.count : 0;
    for (int i = 0; i < s->forest.count; i++) a.free_dofs += s->forest.parts[s->forest.instances[i].part].options.modes;
    for (int e = 0; e < all->mesh.element_count; e++) a.volume += fem_element_volume(&all->mesh, e);
    a.mass = solver_mesh_mass(&all->mesh, centre);
    scene_bounding_box(&all->mesh, a.low, a.high);
    a.bytes = 8.0 * 3 * 4 * a.vertices + 20.0 * a.elements;
    for (int k = 0; k < s->forest.part_count; k++) { // basis, and the polynomial with its copy in batches
        double r = s->forest.parts[k].options.modes;
        a.bytes += 8.0 * 3 * r * s->parts[k].mesh.vertex_count + 8 * r * r * r * r / 12;
    }
    describe_time(s, &a);
    a.seconds_build = fem_seconds() - begun;
    *summary = a;
    return FEM_OK;
}

fem_status scene_summarize(const scene *s, scene_summary *summary) {
    if (s->forest.count > 0) return summarize_forest(s, summary);
    fem_status    status = FEM_OK;
    simulation    sim = {.s = s};
    fem_sparse    K = {0};
    fem_factor   *factor = NULL;
    fem_quality   quality;
    scene_summary a = {.fixed = s->parts[s->object].fixed.count, .frames = s->method == SCENE_STATIC ? 1 : s->frames};
    double        begun = fem_seconds();
    FEM_TRY(make_body(&sim));
    FEM_TRY(fem_body_matrix(sim.body, &K));
    FEM_TRY(fem_mesh_quality(sim.mesh, &quality));
    if (s->solver.linear == SOLVER_DIRECT) {
        FEM_TRY(fem_factor_create(&factor, &K, sim.fixed));
        a.factor_bytes = 8 * fem_factor_get_report(factor).entries;
    }
    a.vertices = sim.mesh->vertex_count;
    a.elements = sim.mesh->element_count;
    a.regions = sim.mesh->region_count;
    for (int i = 0; i < s->action_count; i++)
        a.moved += s->actions[i].kind == SCENE_MOVE ? s->actions[i].load.on.count : 0;
    for (int i = 0; i < 3 * a.vertices; i++) a.free_dofs += !sim.fixed[i];
    a.mass = fem_body_total_mass(sim.body);
    a.volume = quality.volume;
    scene_bounding_box(sim.mesh, a.low, a.high);
    describe_time(s, &a);
    a.bytes = estimate_bytes(sim.mesh, &K, a.factor_bytes);
    a.seconds_build = fem_seconds() - begun;
    *summary = a;
done:
    fem_factor_destroy(factor);
    fem_sparse_destroy(&K);
    simulation_destroy(&sim);
    return status;
}

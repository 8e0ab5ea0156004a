// Checkpoints of runs: see checkpoint.h.
#include "libscene/checkpoint.h"

#include "libscene/class.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// To be raised whenever the same scene moves otherwise, or the arrays mean something else.
enum { CHECKPOINT_VERSION = 2 };

size_t scene_row_width(const scene *s) { return 4 + 3 * (size_t)s->probe_count; }

char *scene_checkpoint_path(const scene *s, const char *folder) {
    size_t size = strlen(folder) + strlen(s->name) + 16;
    char  *path = fem_alloc(size, 1);
    if (path) snprintf(path, size, "%s/%s.checkpoint", folder, s->name);
    return path;
}

// ---- key -----------------------------------------------------------------------------------------------------------

static fem_hash hash_vertices(fem_hash hash, const scene_vertices *on) {
    return fem_hash_add(hash, on->items, (size_t)on->count * sizeof *on->items);
}

static fem_hash hash_surface(fem_hash hash, const fem_surface *surface) {
    size_t corners = 3 * (size_t)surface->triangle_count;
    hash = fem_hash_add(hash, surface->vertices, 3 * (size_t)surface->vertex_count * sizeof(double));
    hash = fem_hash_add(hash, surface->triangles, corners * sizeof(int));
    hash = fem_hash_add(hash, surface->uv, 2 * (size_t)surface->uv_count * sizeof(double));
    hash = fem_hash_add(hash, surface->corners, surface->corners ? corners * sizeof(int) : 0);
    hash = fem_hash_add(hash, surface->material, surface->material ? corners / 3 * sizeof(int) : 0);
    for (int i = 0; i < surface->material_count; i++)
        hash = fem_hash_add(hash, surface->materials[i], strlen(surface->materials[i]));
    return hash;
}

fem_status scene_checkpoint_key(const scene *s, fem_hash *key) {
    const scene_part  *part = &s->parts[s->object];
    const domain_tree *domains = &s->tree.domains;
    fem_hash           hash = s->hash, mesh = fem_mesh_hash(&part->mesh);
    char              *basis = NULL;
    size_t             size = 0;
    hash = fem_hash_add(hash, &mesh, sizeof mesh);
    hash = fem_hash_add(hash, part->mesh.region, (size_t)part->mesh.element_count * sizeof *part->mesh.region);
    hash = hash_vertices(hash, &part->fixed);
    for (int i = 0; i < s->action_count; i++) hash = hash_vertices(hash, &s->actions[i].load.on);
    for (int i = 0; i < s->probe_count; i++) hash = hash_vertices(hash, &s->probes[i].on);
    hash = fem_hash_add(hash, domains->element_domain, (size_t)domains->element_count * sizeof(int));
    for (int i = 0; i < s->part_count; i++) hash = hash_surface(hash, &s->parts[i].surface);
    if (s->method == SCENE_REDUCED && part->modes.method == SCENE_MODES_FILE) {
        fem_status status = fem_file_read(&basis, &size, part->modes.file);
        if (status != FEM_OK) return status == FEM_IO ? FEM_BAD_INPUT : status;
        hash = fem_hash_add(hash, basis, size);
        fem_free(basis);
    }
    if (s->method == SCENE_REDUCED && part->poses) { // the forces are trained with them
        int        count = 0;
        double    *u = NULL;
        fem_status status = scene_poses_read(part, &count, &u);
        if (status != FEM_OK) return status;
        hash = fem_hash_add(hash, u, (size_t)count * 3 * (size_t)part->mesh.vertex_count * sizeof *u);
        fem_free(u);
    }
    *key = hash;
    return FEM_OK;
}

// ---- the file ------------------------------------------------------------------------------------------------------

fem_status scene_checkpoint_write(const scene_checkpoint *c, const char *path, fem_hash key) {
    const uint64_t trail[] = {c->trail_width, c->trail.low, c->trail.high};
    fem_store_item items[] = {
        {"times", FEM_STORE_DOUBLE, (size_t)c->frames, c->times},
        {"rows", FEM_STORE_DOUBLE, c->rows * c->row_width, c->values},
        {"state", FEM_STORE_DOUBLE, c->state_size, c->state},
        {"trail", FEM_STORE_BYTE, sizeof trail, trail},
    };
    return fem_store_write(path, "checkpoint", CHECKPOINT_VERSION, key, c->trail_width > 0 ? 4 : 3, items);
}

static bool all_finite(size_t count, const double *x) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

// How many steps and rows there are follows from the frames.
static fem_status fill(scene_checkpoint *c, const scene *s, const char *path) {
    size_t frames = fem_store_count(&c->store, "times");
    if (frames < 1 || frames > 1000000 || (double)(frames - 1) * s->steps_per_frame > 2e9)
        return fem_fail(FEM_BAD_INPUT, "%s: has %zu frames, expected 1 to 1000000", path, frames);
    c->frames = (int)frames;
    c->steps = (c->frames - 1) * s->steps_per_frame;
    c->rows = s->sample_steps ? (size_t)c->steps + 1 : frames;
    c->row_width = scene_row_width(s);
    c->state_size = fem_store_count(&c->store, "state");
    c->times = fem_store_find(&c->store, "times", FEM_STORE_DOUBLE, frames);
    c->values = fem_store_find(&c->store, "rows", FEM_STORE_DOUBLE, c->rows * c->row_width);
    c->state = fem_store_find(&c->store, "state", FEM_STORE_DOUBLE, c->state_size);
    if (!c->times || !c->values || !c->state)
        return fem_fail(FEM_BAD_INPUT, "%s: its arrays are not those of this scene", path);
    uint64_t    trail[3];
    const void *kept = fem_store_find(&c->store, "trail", FEM_STORE_BYTE, sizeof trail);
    if (s->write_glb && !kept)
        return fem_fail(FEM_BAD_INPUT, "%s: does not know the frames of the .glb; run from the start, without --resume",
                        path);
    if (kept) {
        memcpy(trail, kept, sizeof trail);
        c->trail_width = (size_t)trail[0];
        c->trail = (fem_hash){.low = trail[1], .high = trail[2]};
    }
    if (!all_finite(frames, c->times) || !all_finite(c->rows * c->row_width, c->values))
        return fem_fail(FEM_BAD_INPUT, "%s: has numbers that are not finite", path);
    return FEM_OK;
}

fem_status scene_checkpoint_read(scene_checkpoint *result, const scene *s, const char *path, fem_hash key) {
    fem_status       status = FEM_OK;
    scene_checkpoint c = {0};
    status = fem_store_read(&c.store, path, "checkpoint", CHECKPOINT_VERSION);
    if (status == FEM_IO)
        status = fem_fail(FEM_BAD_INPUT,
                          "%s: cannot be read, so there is nothing to resume; a run with --checkpoint writes it", path);
    FEM_TRY(status);
    if (!fem_hash_equal(c.store.key, key)) {
        status = fem_fail(FEM_BAD_INPUT,
                          "%s: is the checkpoint of another scene, or of this one before it or its files were changed; "
                          "run from the start, without --resume",
                          path);
        goto done;
    }
    FEM_TRY(fill(&c, s, path));
    *result = c;
    c = (scene_checkpoint){0};
done:
    scene_checkpoint_destroy(&c);
    return status;
}

void scene_checkpoint_destroy(scene_checkpoint *checkpoint) {
    fem_store_destroy(&checkpoint->store);
    *checkpoint = (scene_checkpoint){0};
}

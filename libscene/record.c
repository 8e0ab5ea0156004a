// Frames, probes and energies of a run, on disk: see record.h.
#include "libscene/record.h"

#include "libscene/class.h"
#include "libscene/internal.h"
#include "libscene/trail.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRAME_DIGITS = 5 };

struct scene_record {
    const scene *s;
    char        *folder;
    int          frames;
    size_t       times_room;
    double      *times; // per frame
    size_t       rows, row_width, values_room;
    double      *values; // per row: time, kinetic, strain, load, then 3 per probe
    double       synced, sync_cost, seconds;
    // with write_obj: the surface at rest, where its vertices are in the mesh, and as it is written
    fem_surface   skin;
    int          *skin_vertices; // of the mesh, per vertex of the skin
    fem_embedding embedding;     // of a surface that is not the skin
    double       *moved;
};

// mkdir -p
static fem_status make_folder(const char *folder) {
    fem_status status = FEM_OK;
    char      *path = fem_copy_string(folder);
    if (!path) return fem_fail(FEM_NO_MEMORY, "no memory for a path");
    for (char *c = path + 1;; c++) {
        if (*c != '/' && *c) continue;
        char kept = *c;
        *c = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            status = fem_fail(FEM_IO, "%s: cannot make the folder: %s", path, strerror(errno));
            goto done;
        }
        *c = kept;
        if (!kept) break;
    }
    struct stat about;
    if (stat(folder, &about) != 0 || !S_ISDIR(about.st_mode))
        status = fem_fail(FEM_IO, "%s: is not a folder, expected one for the results", folder);
done:
    fem_free(path);
    return status;
}

// FOLDER/NAME, allocated
static char *join(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char  *path = fem_alloc(size, 1);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static char *pvd_path(const scene_record *r) {
    size_t size = strlen(r->folder) + strlen(r->s->name) + 8;
    char  *path = fem_alloc(size, 1);
    if (path) snprintf(path, size, "%s/%s.pvd", r->folder, r->s->name);
    return path;
}

static size_t frame_name_size(const scene_record *r) { return strlen(r->s->name) + 24; }

static void frame_name(const scene_record *r, int frame, const char *ending, char *text) {
    snprintf(text, frame_name_size(r), "%s_%0*d.%s", r->s->name, FRAME_DIGITS, frame, ending);
}

// FOLDER/NAME_00012.ENDING, allocated
static fem_status frame_path(const scene_record *r, int frame, const char *ending, char **path) {
    char *name = fem_alloc(frame_name_size(r), 1);
    if (name) frame_name(r, frame, ending, name);
    *path = name ? join(r->folder, name) : NULL;
    fem_free(name);
    return *path ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for the frame %d", frame);
}

void scene_record_destroy(scene_record *record) {
    if (!record) return;
    fem_free(record->folder);
    fem_free(record->times);
    fem_free(record->values);
    fem_free(record->moved);
    fem_free(record->skin_vertices);
    fem_surface_destroy(&record->skin);
    fem_embedding_destroy(&record->embedding);
    fem_free(record);
}

fem_status scene_surface_of(fem_surface *surface, int **vertices, const fem_mesh *mesh, int count,
                            const int *triangles) {
    fem_status  status = FEM_OK;
    size_t      corners = 3 * (size_t)count, all = (size_t)mesh->vertex_count;
    fem_surface made = {.triangle_count = count};
    int        *number = fem_calloc(all, sizeof *number), *used = fem_alloc(all, sizeof *used); // number: from 1
    made.triangles = fem_alloc(corners + 1, sizeof *made.triangles);
    made.vertices = fem_alloc(3 * all, sizeof *made.vertices);
    if (!number || !used || !made.triangles || !made.vertices) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a surface of %d triangles", count);
        goto done;
    }
    for (size_t i = 0; i < corners; i++) number[triangles[i]] = 1;
    for (size_t v = 0; v < all; v++) {
        if (number[v] == 0) continue;
        memcpy(made.vertices + 3 * (size_t)made.vertex_count, mesh->vertices + 3 * v, 3 * sizeof *made.vertices);
        used[made.vertex_count] = (int)v;
        number[v] = ++made.vertex_count;
    }
    for (size_t i = 0; i < corners; i++) made.triangles[i] = number[triangles[i]] - 1;
    if (vertices) *vertices = used, used = NULL;
    *surface = made, made = (fem_surface){0};
done:
    fem_free(number), fem_free(used);
    fem_surface_destroy(&made);
    return status;
}

// The surface of all instances, without the cuts between domains of a body.
static fem_status outer_triangles(const scene *s, const fem_mesh *mesh, int *count, int **triangles) {
    fem_status          status = FEM_OK;
    const scene_forest *f = &s->forest;
    size_t              more = 0, kept = 0;
    int                *grown;
    FEM_TRY(fem_mesh_surface(mesh, count, triangles, NULL));
    for (int i = 0; i < f->count; i++) more += (size_t)s->parts[f->instances[i].part].skin_count;
    if (more == 0) goto done;
    grown = fem_realloc(*triangles, 3 * ((size_t)*count + more), sizeof *grown);
    if (!grown) return fem_fail(FEM_NO_MEMORY, "no memory for a surface of %d triangles", *count);
    *triangles = grown;
    for (int t = 0, i = 0; t < *count; t++) { // those of bodies that are not cut
        const int *corner = grown + 3 * (size_t)t;
        while (corner[0] < f->vertex[i]) i--;
        while (corner[0] >= f->vertex[i + 1]) i++;
        if (!s->parts[f->instances[i].part].skin) memmove(grown + 3 * kept++, corner, 3 * sizeof *grown);
    }
    for (int i = 0; i < f->count; i++) {
        const scene_part *part = &s->parts[f->instances[i].part];
        for (size_t k = 0; k < 3 * (size_t)part->skin_count; k++) grown[3 * kept + k] = f->vertex[i] + part->skin[k];
        kept += (size_t)part->skin_count;
    }
    *count = (int)kept;
done:
    return status;
}

// The skin of the mesh, and which vertices it has: looking for the elements around them would take those of another
// instance where two overlap.
static fem_status find_skin(scene_record *r, const fem_mesh *mesh) {
    int       *triangles = NULL, count = 0;
    fem_status status = outer_triangles(r->s, mesh, &count, &triangles);
    if (status == FEM_OK) status = scene_surface_of(&r->skin, &r->skin_vertices, mesh, count, triangles);
    fem_free(triangles);
    return status;
}

// The surface that is written: the scene's own, or the skin of the mesh.
static fem_status embed_surface(scene_record *r, char **notes) {
    fem_status         status = FEM_OK;
    const fem_mesh    *mesh = &r->s->parts[r->s->object].mesh;
    const fem_surface *surface = &r->s->parts[r->s->object].surface;
    if (surface->vertex_count == 0) {
        FEM_TRY(find_skin(r, mesh));
        surface = &r->skin;
    } else
        FEM_TRY(fem_embed_points(&r->embedding, mesh, surface->vertex_count, surface->vertices));
    r->moved = fem_alloc(3 * (size_t)surface->vertex_count, sizeof *r->moved);
    if (!r->moved) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a surface of %d vertices", surface->vertex_count);
        goto done;
    }
    if (surface != &r->skin && r->embedding.outside > 0) {
        char text[200];
        snprintf(text, sizeof text,
                 "%d of the %d vertices of the surface lie outside the mesh and follow it from there",
                 r->embedding.outside, surface->vertex_count);
        FEM_TRY(scene_add_note(notes, text));
    }
done:
    return status;
}

static fem_status write_surface(const scene_record *r, const double *u) {
    fem_status  status = FEM_OK;
    fem_surface shown = r->skin.vertex_count > 0 ? r->skin : r->s->parts[r->s->object].surface;
    char       *path = NULL;
    if (r->skin_vertices)
        for (size_t v = 0; v < (size_t)shown.vertex_count; v++)
            memcpy(r->moved + 3 * v, u + 3 * (size_t)r->skin_vertices[v], 3 * sizeof *r->moved);
    else
        fem_embedding_apply(&r->embedding, u, r->moved);
    for (size_t i = 0; i < 3 * (size_t)shown.vertex_count; i++) r->moved[i] += shown.vertices[i];
    shown.vertices = r->moved;
    FEM_TRY(frame_path(r, r->frames, "obj", &path));
    FEM_TRY(fem_surface_write(&shown, path));
done:
    fem_free(path);
    return status;
}

static fem_status check_frame(const scene_record *r, int frame, const char *ending) {
    char      *path = NULL;
    fem_status status = frame_path(r, frame, ending, &path);
    if (status == FEM_OK && access(path, R_OK) != 0)
        status = fem_fail(FEM_BAD_INPUT, "%s: the frame is missing (%s), expected the first %d of them to resume", path,
                          strerror(errno), r->frames);
    fem_free(path);
    return status;
}

static fem_status take_checkpoint(scene_record *r, const scene_checkpoint *c) {
    fem_status status = FEM_OK;
    FEM_TRY(fem_grow((void **)&r->times, &r->times_room, (size_t)c->frames, sizeof *r->times));
    FEM_TRY(fem_grow((void **)&r->values, &r->values_room, c->rows * c->row_width, sizeof *r->values));
    memcpy(r->times, c->times, (size_t)c->frames * sizeof *r->times);
    memcpy(r->values, c->values, c->rows * c->row_width * sizeof *r->values);
    r->frames = c->frames;
    r->rows = c->rows;
    for (int i = 0; i < r->frames; i++) {
        if (r->s->write_vtu) FEM_TRY(check_frame(r, i, "vtu"));
        if (r->s->write_obj) FEM_TRY(check_frame(r, i, "obj"));
    }
done:
    return status;
}

void scene_record_describe(const scene_record *r, scene_checkpoint *checkpoint) {
    checkpoint->frames = r->frames;
    checkpoint->rows = r->rows;
    checkpoint->row_width = r->row_width;
    checkpoint->times = r->times;
    checkpoint->values = r->values;
}

// An earlier run's file that this one replaces.
static fem_status remove_old(const char *path) {
    if (unlink(path) == 0 || errno == ENOENT) return FEM_OK;
    return fem_fail(FEM_IO, "%s: cannot replace it: %s", path, strerror(errno));
}

fem_status scene_record_create(scene_record **record, const scene *s, const char *folder,
                               const scene_checkpoint *checkpoint, char **notes) {
    fem_status    status = FEM_OK;
    char         *pvd = NULL, *old = NULL, *trail = NULL;
    scene_record *r = fem_calloc(1, sizeof *r);
    if (!r) return fem_fail(FEM_NO_MEMORY, "no memory for the results");
    r->s = s;
    r->row_width = scene_row_width(s);
    r->synced = fem_seconds();
    r->folder = fem_copy_string(folder);
    pvd = r->folder ? pvd_path(r) : NULL;
    old = scene_checkpoint_path(s, folder);
    trail = scene_trail_path(s, folder);
    if (!pvd || !old || !trail) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the results");
        goto done;
    }
    if (s->write_obj) FEM_TRY(embed_surface(r, notes));
    FEM_TRY(make_folder(folder));
    if (checkpoint)
        FEM_TRY(take_checkpoint(r, checkpoint));
    else {
        FEM_TRY(remove_old(old));
        FEM_TRY(remove_old(trail));
    }
    FEM_TRY(remove_old(pvd));
    *record = r;
    r = NULL;
done:
    fem_free(pvd);
    fem_free(old);
    fem_free(trail);
    scene_record_destroy(r);
    return status;
}

fem_status scene_record_frame(scene_record *r, double time, const double *u, const double *v) {
    fem_status status = FEM_OK;
    double     begun = fem_seconds();
    fem_field  fields[] = {{.name = "displacement", .components = 3, .values = u},
                           {.name = "velocity", .components = 3, .values = v}};
    char      *path = NULL;
    FEM_TRY(fem_grow((void **)&r->times, &r->times_room, (size_t)r->frames + 1, sizeof *r->times));
    if (r->s->write_vtu) {
        FEM_TRY(frame_path(r, r->frames, "vtu", &path));
        FEM_TRY(fem_mesh_write_vtu(&r->s->parts[r->s->object].mesh, path, u, 2, fields));
    }
    if (r->s->write_obj) FEM_TRY(write_surface(r, u));
    r->times[r->frames++] = time;
done:
    fem_free(path);
    r->seconds += fem_seconds() - begun;
    return status;
}

void scene_probe_values(const scene *s, const double *u, double *values) {
    for (int p = 0; p < s->probe_count; p++) {
        const scene_vertices *on = &s->probes[p].on;
        double               *mean = values + 3 * (size_t)p;
        mean[0] = mean[1] = mean[2] = 0;
        for (int i = 0; i < on->count; i++) vec3_axpy(mean, 1, u + 3 * (size_t)on->items[i]);
        for (int i = 0; i < 3; i++) mean[i] /= on->count;
    }
}

fem_status scene_record_row(scene_record *r, double time, const double *u, const solver_energies *energies) {
    fem_status status = fem_grow((void **)&r->values, &r->values_room, (r->rows + 1) * r->row_width, sizeof *r->values);
    if (status != FEM_OK) return status;
    double *row = r->values + r->rows * r->row_width;
    row[0] = time, row[1] = energies->kinetic, row[2] = energies->strain, row[3] = energies->load;
    scene_probe_values(r->s, u, row + 4);
    r->rows++;
    return FEM_OK;
}

static fem_status write_energies(const scene_record *r) {
    fem_status status = FEM_OK;
    fem_file  *file = NULL;
    char      *path = join(r->folder, "energies.csv");
    if (!path) return fem_fail(FEM_NO_MEMORY, "no memory for a path");
    FEM_TRY(fem_file_create(&file, path));
    fem_file_print(file, "time,kinetic,strain,load,total\n");
    for (size_t i = 0; i < r->rows; i++) {
        const double *row = r->values + i * r->row_width;
        fem_file_print(file, "%.12g,%.12g,%.12g,%.12g,%.12g\n", row[0], row[1], row[2], row[3],
                       row[1] + row[2] + row[3]);
    }
    FEM_TRY(fem_file_commit(file));
done:
    fem_free(path);
    return status;
}

static fem_status write_probes(const scene_record *r) {
    fem_status status = FEM_OK;
    fem_file  *file = NULL;
    char      *path = join(r->folder, "probes.csv");
    if (!path) return fem_fail(FEM_NO_MEMORY, "no memory for a path");
    FEM_TRY(fem_file_create(&file, path));
    fem_file_print(file, "time");
    for (int p = 0; p < r->s->probe_count; p++)
        for (int i = 0; i < 3; i++) fem_file_print(file, ",%s_%c", r->s->probes[p].name, "xyz"[i]);
    fem_file_print(file, "\n");
    for (size_t i = 0; i < r->rows; i++) {
        const double *row = r->values + i * r->row_width;
        fem_file_print(file, "%.12g", row[0]);
        for (size_t k = 4; k < r->row_width; k++) fem_file_print(file, ",%.12g", row[k]);
        fem_file_print(file, "\n");
    }
    FEM_TRY(fem_file_commit(file));
done:
    fem_free(path);
    return status;
}

static fem_status write_collection(const scene_record *r) {
    fem_status   status = FEM_OK;
    size_t       size = frame_name_size(r);
    char        *path = pvd_path(r), *text = fem_alloc((size_t)r->frames * size + 1, 1);
    const char **names = fem_alloc((size_t)r->frames, sizeof *names);
    if (!path || !text || !names) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the names of %d frames", r->frames);
        goto done;
    }
    for (int i = 0; i < r->frames; i++) {
        frame_name(r, i, "vtu", text + (size_t)i * size);
        names[i] = text + (size_t)i * size;
    }
    FEM_TRY(scene_pvd_write(path, r->frames, r->times, names));
done:
    fem_free(path);
    fem_free(text);
    fem_free(names);
    return status;
}

// The number in NAME_00012.vtu or .obj, or -1 when the file is not one of this scene's frames.
static int frame_number(const scene_record *r, const char *file) {
    size_t length = strlen(r->s->name), digits;
    if (strncmp(file, r->s->name, length) != 0 || file[length] != '_') return -1;
    file += length + 1;
    digits = strspn(file, "0123456789");
    if (digits < FRAME_DIGITS || digits > 8) return -1;
    if (strcmp(file + digits, ".vtu") != 0 && strcmp(file + digits, ".obj") != 0) return -1;
    int number = 0;
    for (size_t i = 0; i < digits; i++) number = 10 * number + (file[i] - '0');
    return number;
}

// Frames of an earlier, longer run belong to no .pvd any more and would be shown by programs that go by file names.
static void remove_stale_frames(const scene_record *r) {
    DIR *folder = opendir(r->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (frame_number(r, entry->d_name) >= r->frames) unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder) closedir(folder);
}

fem_status scene_record_sync(scene_record *r, bool last) {
    fem_status status = FEM_OK;
    double     begun = fem_seconds();
    if (!last && begun - r->synced < 1 + 20 * r->sync_cost) return FEM_OK; // at most a twentieth of the time
    if (r->s->write_vtu) FEM_TRY(write_collection(r));
    if (r->s->probe_count > 0) FEM_TRY(write_probes(r));
    FEM_TRY(write_energies(r));
    if (last && (r->s->write_vtu || r->s->write_obj)) remove_stale_frames(r);
    r->synced = fem_seconds();
    r->sync_cost = r->synced - begun;
done:
    r->seconds += fem_seconds() - begun;
    return status;
}

int    scene_record_frames(const scene_record *record) { return record->frames; }
double scene_record_seconds(const scene_record *record) { return record->seconds; }

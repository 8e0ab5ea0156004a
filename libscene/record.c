// Frames, probes and energies of a run, on disk: see record.h.
#include "libscene/record.h"

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

static void frame_name(const scene_record *r, int frame, char *text) {
    snprintf(text, frame_name_size(r), "%s_%0*d.vtu", r->s->name, FRAME_DIGITS, frame);
}

void scene_record_destroy(scene_record *record) {
    if (!record) return;
    fem_free(record->folder);
    fem_free(record->times);
    fem_free(record->values);
    fem_free(record);
}

fem_status scene_record_create(scene_record **record, const scene *s, const char *folder) {
    fem_status    status = FEM_OK;
    char         *pvd = NULL;
    scene_record *r = fem_calloc(1, sizeof *r);
    if (!r) return fem_fail(FEM_NO_MEMORY, "no memory for the results");
    r->s = s;
    r->row_width = 4 + 3 * (size_t)s->probe_count;
    r->synced = fem_seconds();
    r->folder = fem_copy_string(folder);
    pvd = r->folder ? pvd_path(r) : NULL;
    if (!pvd) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the results");
        goto done;
    }
    FEM_TRY(make_folder(folder));
    if (unlink(pvd) != 0 && errno != ENOENT) {
        status = fem_fail(FEM_IO, "%s: cannot replace it: %s", pvd, strerror(errno));
        goto done;
    }
    *record = r;
    r = NULL;
done:
    fem_free(pvd);
    scene_record_destroy(r);
    return status;
}

fem_status scene_record_frame(scene_record *r, double time, const double *u, const double *v) {
    fem_status status = FEM_OK;
    double     begun = fem_seconds();
    fem_field  fields[] = {{.name = "displacement", .components = 3, .values = u},
                           {.name = "velocity", .components = 3, .values = v}};
    char      *name = NULL, *path = NULL;
    FEM_TRY(fem_grow((void **)&r->times, &r->times_room, (size_t)r->frames + 1, sizeof *r->times));
    if (r->s->write_vtu) {
        name = fem_alloc(frame_name_size(r), 1);
        if (name) frame_name(r, r->frames, name);
        path = name ? join(r->folder, name) : NULL;
        if (!path) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for the frame %d", r->frames);
            goto done;
        }
        FEM_TRY(fem_mesh_write_vtu(&r->s->parts[r->s->object].mesh, path, u, 2, fields));
    }
    r->times[r->frames++] = time;
done:
    fem_free(name);
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
        frame_name(r, i, text + (size_t)i * size);
        names[i] = text + (size_t)i * size;
    }
    FEM_TRY(scene_pvd_write(path, r->frames, r->times, names));
done:
    fem_free(path);
    fem_free(text);
    fem_free(names);
    return status;
}

// The number in NAME_00012.vtu, or -1 when the file is not one of this scene's frames.
static int frame_number(const scene_record *r, const char *file) {
    size_t length = strlen(r->s->name), digits;
    if (strncmp(file, r->s->name, length) != 0 || file[length] != '_') return -1;
    file += length + 1;
    digits = strspn(file, "0123456789");
    if (digits < FRAME_DIGITS || digits > 8 || strcmp(file + digits, ".vtu") != 0) return -1;
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
    if (last && r->s->write_vtu) remove_stale_frames(r);
    r->synced = fem_seconds();
    r->sync_cost = r->synced - begun;
done:
    r->seconds += fem_seconds() - begun;
    return status;
}

int    scene_record_frames(const scene_record *record) { return record->frames; }
double scene_record_seconds(const scene_record *record) { return record->seconds; }

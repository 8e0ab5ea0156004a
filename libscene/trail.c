// The frames of a .glb beside a checkpoint: see trail.h.
#include "libscene/trail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct scene_trail {
    char    *path;
    int      descriptor;
    size_t   width; // numbers in a row
    fem_hash hash;  // of the rows so far
};

char *scene_trail_path(const scene *s, const char *folder) {
    size_t size = strlen(folder) + strlen(s->name) + 24;
    char  *path = fem_alloc(size, 1);
    if (path) snprintf(path, size, "%s/%s.checkpoint.frames", folder, s->name);
    return path;
}

void scene_trail_destroy(scene_trail *trail) {
    if (!trail) return;
    if (trail->descriptor >= 0) close(trail->descriptor);
    fem_free(trail->path);
    fem_free(trail);
}

fem_status scene_trail_create(scene_trail **trail, const char *path, size_t width, const scene_checkpoint *from) {
    fem_status   status = FEM_OK;
    scene_trail *t = fem_calloc(1, sizeof *t);
    if (!t) return fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", path);
    t->width = width;
    t->descriptor = -1;
    t->path = fem_copy_string(path);
    if (!t->path) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", path);
        goto done;
    }
    if (from) t->hash = from->trail;
    off_t end = from ? (off_t)((size_t)from->frames * width * sizeof(double)) : 0;
    t->descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (t->descriptor < 0 || ftruncate(t->descriptor, end) != 0 || lseek(t->descriptor, end, SEEK_SET) != end) {
        status = fem_fail(FEM_IO, "%s: cannot be written: %s", path, strerror(errno));
        goto done;
    }
    *trail = t;
    t = NULL;
done:
    scene_trail_destroy(t);
    return status;
}

fem_status scene_trail_add(scene_trail *t, const double *row) {
    const char *at = (const char *)row;
    size_t      left = t->width * sizeof *row;
    while (left > 0) {
        ssize_t written = write(t->descriptor, at, left);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return fem_fail(FEM_IO, "%s: cannot be written: %s", t->path, strerror(errno));
        at += written, left -= (size_t)written;
    }
    t->hash = fem_hash_add(t->hash, row, t->width * sizeof *row);
    return FEM_OK;
}

fem_status scene_trail_describe(scene_trail *t, scene_checkpoint *checkpoint) {
    if (fsync(t->descriptor) != 0 && errno != EINVAL && errno != ENOSYS)
        return fem_fail(FEM_IO, "%s: cannot be written: %s", t->path, strerror(errno));
    checkpoint->trail = t->hash;
    checkpoint->trail_width = t->width;
    return FEM_OK;
}

fem_status scene_trail_read(const char *path, const scene_checkpoint *from, scene_trail_row *take, void *context) {
    fem_status status = FEM_OK;
    fem_hash   hash = {0};
    double    *row = NULL;
    FILE      *file = fopen(path, "rb");
    if (!file) {
        status = fem_fail(FEM_BAD_INPUT,
                          "%s: cannot be read (%s), but the frames of the .glb are kept there; run from "
                          "the start, without --resume",
                          path, strerror(errno));
        goto done;
    }
    double needed = (double)from->frames * (double)from->trail_width * sizeof *row;
    if (fseeko(file, 0, SEEK_END) != 0 || (double)ftello(file) < needed) {
        status = fem_fail(FEM_BAD_INPUT,
                          "%s: is too short for the %d frames of the .glb; run from the start, without "
                          "--resume",
                          path, from->frames);
        goto done;
    }
    rewind(file);
    row = fem_alloc(from->trail_width, sizeof *row);
    if (!row) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for a row of %zu numbers", path, from->trail_width);
        goto done;
    }
    for (int frame = 0; frame < from->frames; frame++) {
        if (fread(row, sizeof *row, from->trail_width, file) != from->trail_width) {
            status = fem_fail(FEM_BAD_INPUT, "%s: cannot be read (%s)", path,
                              feof(file) ? "it is cut short" : strerror(errno));
            goto done;
        }
        hash = fem_hash_add(hash, row, from->trail_width * sizeof *row);
        if (take) FEM_TRY(take(context, frame, row));
    }
    if (!fem_hash_equal(hash, from->trail))
        status = fem_fail(FEM_BAD_INPUT,
                          "%s: its frames are not those of the checkpoint; run from the start, without --resume", path);
done:
    if (file) fclose(file);
    fem_free(row);
    return status;
}

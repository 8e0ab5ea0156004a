// Training poses that a scene gives: displacements of all vertices, from the frames of a run (.pvd) or from a matrix of
// another program (.npy, .mtx), as coordinates of the basis.
#include "libscene/class.h"
#include "libscene/internal.h"

#include <math.h>
#include <string.h>

enum { POSES_MOST = 1000000 };

static bool is_collection(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".pvd") == 0;
}

// The text of the attribute that begins at `from`, with its five entities made characters again; NULL: it has no end.
static char *attribute(const char *from, const char *end) {
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    const char              *quote = memchr(from, '"', (size_t)(end - from));
    char                    *text = quote ? fem_alloc((size_t)(quote - from) + 1, 1) : NULL, *to = text;
    while (text && from < quote) {
        int k = 0;
        while (k < 5 && strncmp(from, entities[k], strlen(entities[k])) != 0) k++;
        *to++ = k < 5 ? "&<>\"'"[k] : *from;
        from += k < 5 ? strlen(entities[k]) : 1;
    }
    if (text) *to = 0;
    return text;
}

// Displacements of a frame, into u.
static fem_status read_frame(const scene_part *part, const char *collection, const char *name, double *u) {
    const char *slash = strrchr(collection, '/');
    size_t   folder = slash && name[0] != '/' ? (size_t)(slash - collection) + 1 : 0, size = folder + strlen(name) + 1;
    char    *path = fem_alloc(size, 1);
    fem_mesh frame = {0};
    fem_status status = FEM_OK;
    if (!path) return fem_fail(FEM_NO_MEMORY, "no memory for the name of a frame");
    memcpy(path, collection, folder);
    memcpy(path + folder, name, strlen(name) + 1);
    FEM_TRY(fem_mesh_read(&frame, path));
    if (frame.vertex_count != part->mesh.vertex_count)
        status = fem_fail(FEM_BAD_INPUT, "%s: has %d vertices, expected the %d of the part", path, frame.vertex_count,
                          part->mesh.vertex_count);
    for (size_t i = 0; status == FEM_OK && i < 3 * (size_t)frame.vertex_count; i++)
        u[i] = frame.vertices[i] - part->mesh.vertices[i];
done:
    fem_mesh_destroy(&frame);
    fem_free(path);
    return status;
}

static fem_status read_collection(const scene_part *part, int *count, double **u) {
    static const char key[] = "file=\"";
    fem_status        status = FEM_OK;
    char             *text = NULL, *name = NULL;
    size_t            size = 0, n = 3 * (size_t)part->mesh.vertex_count, room = 0;
    double           *poses = NULL;
    int               found = 0;
    FEM_TRY(fem_file_read(&text, &size, part->poses));
    for (const char *at = text; (at = strstr(at, key)) && found < POSES_MOST; found++) {
        at += strlen(key);
        name = attribute(at, text + size);
        if (!name) {
            status = fem_fail(FEM_BAD_INPUT, "%s: the name of a frame has no end", part->poses);
            goto done;
        }
        FEM_TRY(fem_grow((void **)&poses, &room, (size_t)found + 1, n * sizeof *poses));
        FEM_TRY(read_frame(part, part->poses, name, poses + (size_t)found * n));
        fem_free(name);
        name = NULL;
    }
    *u = poses, *count = found;
    poses = NULL;
done:
    fem_free(text), fem_free(name), fem_free(poses);
    return status;
}

fem_status scene_poses_read(const scene_part *part, int *count, double **u) {
    fem_status status = FEM_OK;
    int        rows = 3 * part->mesh.vertex_count;
    double    *poses = NULL;
    *count = 0;
    if (is_collection(part->poses)) {
        FEM_TRY(read_collection(part, count, &poses));
    } else {
        FEM_TRY(fem_matrix_read(part->poses, &rows, count, &poses));
        if (rows != 3 * part->mesh.vertex_count) {
            status = fem_fail(FEM_BAD_INPUT,
                              "%s: has %d rows, expected %d: x, y, z of the displacement of each of the %d vertices",
                              part->poses, rows, 3 * part->mesh.vertex_count, part->mesh.vertex_count);
            goto done;
        }
    }
    if (*count < 1) {
        status = fem_fail(FEM_BAD_INPUT, "%s: holds no training pose, expected at least one", part->poses);
        goto done;
    }
    *u = poses;
    poses = NULL;
done:
    fem_free(poses);
    if (status == FEM_IO) status = FEM_BAD_INPUT; // a file that the scene names
    return status;
}

// q = (U^T M U)^-1 U^T M u; *lost: what the basis cannot show of the poses, as a part of them, in the norm of M.
fem_status scene_poses_project(const modes_basis *basis, const fem_sparse *M, int count, const double *u, double *q,
                               double *lost) {
    fem_status status = FEM_OK;
    int        r = basis->r;
    size_t     n = (size_t)basis->n;
    double    *work = fem_alloc(2 * n, sizeof *work), *G = fem_alloc((size_t)r * (size_t)r, sizeof *G), whole = 0,
           rest = 0;
    if (!work || !G) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d training poses", count);
        goto done;
    }
    for (int l = 0; l < r; l++) {
        fem_sparse_multiply(M, 1, basis->U + (size_t)l * n, work);
        dense_gemv_t_set(basis->n, r, 1, basis->U, work, G + (size_t)l * (size_t)r);
    }
    FEM_TRY(dense_cholesky(r, G));
    for (int t = 0; t < count; t++) {
        const double *pose = u + (size_t)t * n;
        double       *left = work + n;
        fem_sparse_multiply(M, 1, pose, work);
        whole += dense_dot(basis->n, pose, work);
        dense_gemv_t_set(basis->n, r, 1, basis->U, work, q + (size_t)t * (size_t)r);
        dense_cholesky_solve(r, G, 1, q + (size_t)t * (size_t)r);
        dense_gemv_set(basis->n, r, -1, basis->U, q + (size_t)t * (size_t)r, left);
        dense_axpy(basis->n, 1, pose, left);
        fem_sparse_multiply(M, 1, left, work);
        rest += dense_dot(basis->n, left, work);
    }
    *lost = whole > 0 ? sqrt(fmax(rest, 0) / whole) : 0;
done:
    fem_free(work), fem_free(G);
    return status;
}

// Which format a mesh file has: its ending says so, with or without .gz behind it.
#include "libfem/mesh_formats.h"

static fem_status write_vtu(const fem_mesh *mesh, const char *path) {
    return fem_mesh_write_vtu(mesh, path, NULL, 0, NULL);
}

static const struct {
    const char *ending;
    fem_status (*read)(fem_mesh *mesh, const char *path);
    fem_status (*write)(const fem_mesh *mesh, const char *path);
} formats[] = {{".veg", fem_mesh_read_veg, fem_mesh_write_veg},
               {".node", fem_mesh_read_tetgen, fem_mesh_write_tetgen},
               {".ele", fem_mesh_read_tetgen, fem_mesh_write_tetgen},
               {".vtu", fem_mesh_read_vtu, write_vtu},
               {".obj", NULL, fem_mesh_write_obj}};
enum { FORMATS = sizeof formats / sizeof *formats };

fem_status fem_mesh_read(fem_mesh *mesh, const char *path) {
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].read && fem_path_ends(path, formats[i].ending)) return formats[i].read(mesh, path);
    if (fem_path_ends(path, ".obj"))
        return fem_fail(FEM_BAD_INPUT, "%s: is a surface, expected a volumetric mesh (.veg, .node, .ele or .vtu)",
                        path);
    return fem_fail(FEM_BAD_INPUT,
                    "%s: unknown kind of mesh, expected .veg, .node, .ele or .vtu (each may have .gz behind it)", path);
}

fem_status fem_mesh_write(const fem_mesh *mesh, const char *path) {
    for (int i = 0; i < FORMATS; i++)
        if (fem_path_ends(path, formats[i].ending)) return formats[i].write(mesh, path);
    return fem_fail(FEM_BAD_INPUT,
                    "%s: unknown kind of mesh, expected .veg, .node, .ele, .vtu or .obj (each may have .gz behind it)",
                    path);
}

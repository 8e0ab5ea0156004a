// Which format a mesh or surface file has: its ending says so, with or without .gz behind it.
#include "libfem/mesh_formats.h"

#include <string.h>

static fem_status write_vtu(const fem_mesh *mesh, const char *path) {
    return fem_mesh_write_vtu(mesh, path, NULL, 0, NULL);
}
static fem_status write_vtk(const fem_mesh *mesh, const char *path) { return fem_mesh_write_vtk(mesh, path, false); }
static fem_status write_msh(const fem_mesh *mesh, const char *path) { return fem_mesh_write_msh(mesh, path, false); }

static const struct {
    const char *ending;
    fem_status (*read)(fem_mesh *mesh, const char *path, fem_remarks *remarks);
    fem_status (*write)(const fem_mesh *mesh, const char *path);
} formats[] = {{".veg", fem_mesh_read_veg, fem_mesh_write_veg},
               {".vegb", fem_mesh_read_vegb, NULL},
               {".node", fem_mesh_read_tetgen, fem_mesh_write_tetgen},
               {".ele", fem_mesh_read_tetgen, fem_mesh_write_tetgen},
               {".vtu", fem_mesh_read_vtu, write_vtu},
               {".vtk", fem_mesh_read_vtk, write_vtk},
               {".msh", fem_mesh_read_msh, write_msh},
               {".mesh", fem_mesh_read_medit, fem_mesh_write_medit},
               {".meshb", fem_mesh_read_medit, NULL},
               {".inp", fem_mesh_read_inp, fem_mesh_write_inp},
               {".obj", NULL, fem_mesh_write_obj}};
enum { FORMATS = sizeof formats / sizeof *formats };

const char *fem_mesh_formats(bool to_write) {
    return to_write ? ".veg, .node, .ele, .vtu, .vtk, .msh, .mesh, .inp or .obj"
                    : ".veg, .vegb, .node, .ele, .vtu, .vtk, .msh, .mesh, .meshb or .inp";
}

bool fem_path_is_surface(const char *path) {
    return fem_path_ends(path, ".obj") || fem_path_ends(path, ".stl") || fem_path_ends(path, ".ply");
}

fem_status fem_mesh_read_remarks(fem_mesh *mesh, const char *path, fem_remarks *remarks) {
    if (remarks) remarks->path = path;
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].read && fem_path_ends(path, formats[i].ending)) return formats[i].read(mesh, path, remarks);
    if (fem_path_is_surface(path))
        return fem_fail(FEM_BAD_INPUT, "%s: is a surface, expected a volumetric mesh (%s)", path,
                        fem_mesh_formats(false));
    return fem_fail(FEM_BAD_INPUT, "%s: unknown kind of mesh, expected %s (each may have .gz behind it)", path,
                    fem_mesh_formats(false));
}

fem_status fem_mesh_read(fem_mesh *mesh, const char *path) { return fem_mesh_read_remarks(mesh, path, NULL); }

fem_status fem_mesh_write(const fem_mesh *mesh, const char *path) {
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].write && fem_path_ends(path, formats[i].ending)) return formats[i].write(mesh, path);
    return fem_fail(FEM_BAD_INPUT, "%s: unknown kind of mesh, expected %s (each may have .gz behind it)", path,
                    fem_mesh_formats(true));
}

fem_status fem_mesh_write_text(const fem_mesh *mesh, const char *path) {
    if (fem_path_ends(path, ".vtk")) return fem_mesh_write_vtk(mesh, path, true);
    if (fem_path_ends(path, ".msh")) return fem_mesh_write_msh(mesh, path, true);
    return fem_mesh_write(mesh, path);
}

// ---- surfaces --------------------------------------------------------------------------------------------------

void fem_surface_destroy(fem_surface *surface) {
    if (!surface) return;
    fem_free(surface->vertices);
    fem_free(surface->triangles);
    fem_free(surface->uv), fem_free(surface->corners);
    for (int i = 0; i < surface->material_count; i++) fem_free(surface->materials[i]);
    fem_free(surface->materials), fem_free(surface->material);
    *surface = (fem_surface){0};
}

fem_status fem_surface_read(fem_surface *surface, const char *path) {
    return fem_surface_read_remarks(surface, path, NULL);
}

fem_status fem_surface_read_remarks(fem_surface *surface, const char *path, fem_remarks *remarks) {
    if (remarks) remarks->path = path;
    if (fem_path_ends(path, ".obj")) return fem_surface_read_obj(surface, path);
    if (fem_path_ends(path, ".stl")) return fem_surface_read_stl(surface, path, remarks);
    if (fem_path_ends(path, ".ply")) return fem_surface_read_ply(surface, path);
    return fem_fail(FEM_BAD_INPUT,
                    "%s: unknown kind of surface, expected .obj, .stl or .ply (each may have .gz behind it)", path);
}

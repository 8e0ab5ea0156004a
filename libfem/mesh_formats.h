// Internal to libfem: the mesh formats, one pair of functions each, and what they share.
#ifndef LIMBER_MESH_FORMATS_H
#define LIMBER_MESH_FORMATS_H

#include "libfem/fem.h"
#include "libfem/text.h"

// The most that fem_mesh_allocate grants: checked before anything is multiplied.
enum { FEM_MOST_VERTICES = 700000000, FEM_MOST_ELEMENTS = 50000000 };

fem_status fem_mesh_read_veg(fem_mesh *mesh, const char *path);
fem_status fem_mesh_write_veg(const fem_mesh *mesh, const char *path);
// The line behind *MATERIAL NAME; the name stays.
fem_status fem_veg_read_material(fem_text *scan, fem_material *material);
fem_status fem_veg_write_material(fem_file *file, const char *name, const fem_material *material);
fem_status fem_mesh_read_tetgen(fem_mesh *mesh, const char *path); // either file of the pair
fem_status fem_mesh_write_tetgen(const fem_mesh *mesh, const char *path);
fem_status fem_mesh_read_vtu(fem_mesh *mesh, const char *path);
fem_status fem_mesh_write_obj(const fem_mesh *mesh, const char *path); // the surface

// Writes numbers in their shortest exact form, each with one character before it.
static inline void fem_file_put_double(fem_file *file, char before, double value) {
    char text[FEM_DIGITS + 1] = {before};
    fem_file_put(file, text, 1 + (size_t)fem_format_double(text + 1, value));
}
static inline void fem_file_put_int(fem_file *file, char before, long long value) {
    char text[FEM_DIGITS + 1] = {before};
    fem_file_put(file, text, 1 + (size_t)fem_format_int(text + 1, value));
}

#endif

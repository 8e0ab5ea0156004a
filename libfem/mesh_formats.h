// Internal to libfem: the mesh formats, one pair of functions each, and what they share.
#ifndef LIMBER_MESH_FORMATS_H
#define LIMBER_MESH_FORMATS_H

#include "libfem/fem.h"
#include "libfem/text.h"

// The most that fem_mesh_allocate grants: checked before anything is multiplied.
enum { FEM_MOST_VERTICES = 700000000, FEM_MOST_ELEMENTS = 50000000 };

// Appends a remark; nothing happens where there are no remarks to append to.
fem_status fem_remark(fem_remarks *remarks, const char *format, ...) __attribute__((format(printf, 2, 3)));

fem_status fem_mesh_read_veg(fem_mesh *mesh, const char *path, fem_remarks *remarks);
fem_status fem_mesh_write_veg(const fem_mesh *mesh, const char *path);
// The line behind *MATERIAL NAME; the name stays.
fem_status fem_veg_read_material(fem_text *scan, fem_material *material);
fem_status fem_veg_write_material(fem_file *file, const char *name, const fem_material *material);
fem_status fem_mesh_read_vegb(fem_mesh *mesh, const char *path, fem_remarks *remarks);
fem_status fem_mesh_read_tetgen(fem_mesh *mesh, const char *path, fem_remarks *remarks); // either file of the pair
fem_status fem_mesh_write_tetgen(const fem_mesh *mesh, const char *path);
fem_status fem_mesh_read_vtu(fem_mesh *mesh, const char *path, fem_remarks *remarks);
fem_status fem_mesh_read_vtk(fem_mesh *mesh, const char *path, fem_remarks *remarks);
fem_status fem_mesh_write_vtk(const fem_mesh *mesh, const char *path, bool as_text);
fem_status fem_mesh_read_msh(fem_mesh *mesh, const char *path, fem_remarks *remarks);
fem_status fem_mesh_write_msh(const fem_mesh *mesh, const char *path, bool as_text);
fem_status fem_mesh_read_medit(fem_mesh *mesh, const char *path, fem_remarks *remarks);
fem_status fem_mesh_write_medit(const fem_mesh *mesh, const char *path);
fem_status fem_mesh_read_inp(fem_mesh *mesh, const char *path, fem_remarks *remarks);
fem_status fem_mesh_write_inp(const fem_mesh *mesh, const char *path);
fem_status fem_mesh_write_obj(const fem_mesh *mesh, const char *path); // the surface

fem_status fem_surface_read_obj(fem_surface *surface, const char *path);
fem_status fem_surface_read_stl(fem_surface *surface, const char *path, fem_remarks *remarks);
fem_status fem_surface_read_ply(fem_surface *surface, const char *path);
// Each different value in `region` becomes a region "region_VALUE" of material 0, in ascending order.
fem_status fem_regions_from_groups(fem_mesh *mesh);

// ---- what other formats have no place for (mesh_notes.c) -------------------------------------------------------

// Lines of text that a format carries along where other programs do not look:
//     limber mesh 1
//     material KIND 28-NUMBERS NAME
//     region MATERIAL NAME
//     vertexset NAME, elementset NAME, each with lines of items (from 1): ": 1 2 3", where the format has no sets
#define FEM_NOTES_HEADER "limber mesh 1"
struct fem_draft;
fem_status fem_notes_make(char **notes, size_t *size, const fem_mesh *mesh, bool with_sets);
// Regions and materials of the mesh are replaced; its `region` stays. Sets go to the draft, whose mesh this is; without
// a draft they are refused.
fem_status fem_notes_read(fem_mesh *mesh, fem_text *scan, struct fem_draft *draft);

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

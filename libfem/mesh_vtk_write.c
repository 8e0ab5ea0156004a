// VTK's legacy .vtk: the writer, version 3.0, as bytes (the big end first) or as text. Regions are the cell array
// "region", sets the arrays "set:NAME" of 0 and 1; the notes of mesh_formats.h stand in a field array of bytes,
// "limber".
#include "libfem/mesh_formats.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

typedef struct vtk_writer {
    fem_file *file;
    bool      as_text;
    int       column;
} vtk_writer;

static void put_bytes(vtk_writer *w, uint64_t bits, int size) {
    unsigned char bytes[8];
    for (int i = 0; i < size; i++) bytes[i] = (unsigned char)(bits >> 8 * (size - 1 - i));
    fem_file_put(w->file, bytes, (size_t)size);
}

static void end_line(vtk_writer *w) {
    if (!w->as_text || w->column > 0) fem_file_put(w->file, "\n", 1);
    w->column = 0;
}

static void separate(vtk_writer *w) {
    if (w->column > 0) fem_file_put(w->file, w->column % 9 ? " " : "\n", 1);
    w->column++;
}

static void put_int(vtk_writer *w, long long value, int size) {
    char text[FEM_DIGITS];
    if (!w->as_text) {
        put_bytes(w, (uint64_t)value, size);
        return;
    }
    separate(w);
    fem_file_put(w->file, text, (size_t)fem_format_int(text, value));
}

static void put_double(vtk_writer *w, double value) {
    char     text[FEM_DIGITS];
    uint64_t bits;
    if (!w->as_text) {
        memcpy(&bits, &value, sizeof bits);
        put_bytes(w, bits, 8);
        return;
    }
    separate(w);
    fem_file_put(w->file, text, (size_t)fem_format_double(text, value));
}

// Blanks, quotes and what is not a plain letter become %20 and the like.
static void put_name(fem_file *file, const char *name) {
    for (; *name; name++)
        if (isgraph((unsigned char)*name) && *name != '%' && *name != '"')
            fem_file_put(file, name, 1);
        else
            fem_file_print(file, "%%%02X", (unsigned char)*name);
}

static fem_status check_sets(int count, const fem_set *sets) {
    for (int i = 0; i < count; i++)
        if (!sets[i].name[0] || strlen(sets[i].name) > 240)
            return fem_fail(FEM_BAD_INPUT, "the name \"%.100s\" of a set is empty or too long", sets[i].name);
    return FEM_OK;
}

static void put_set(vtk_writer *w, const fem_set *set, int tuples) {
    int next = 0;
    fem_file_print(w->file, "set:");
    put_name(w->file, set->name);
    fem_file_print(w->file, " 1 %d unsigned_char\n", tuples);
    for (int i = 0; i < tuples; i++) {
        bool inside = next < set->count && set->items[next] == i;
        next += inside;
        put_int(w, inside, 1);
    }
    end_line(w);
}

static void put_cells(vtk_writer *w, const fem_mesh *m) {
    int    width = fem_element_vertices(m->type), type = m->type == FEM_T4 ? 10 : 12;
    size_t corners = (size_t)m->element_count * (size_t)width;
    fem_file_print(w->file, "CELLS %d %lld\n", m->element_count, (long long)m->element_count * (width + 1));
    for (size_t i = 0; i < corners; i++) {
        if (i % (size_t)width == 0) {
            if (w->as_text) end_line(w);
            put_int(w, width, 4);
        }
        put_int(w, m->elements[i], 4);
    }
    end_line(w);
    fem_file_print(w->file, "CELL_TYPES %d\n", m->element_count);
    for (int e = 0; e < m->element_count; e++) put_int(w, type, 4);
    end_line(w);
}

static void put_mesh(vtk_writer *w, const fem_mesh *m, const char *notes, size_t notes_size) {
    fem_file_print(w->file, "# vtk DataFile Version 3.0\n%d vertices, %d elements\n%s\nDATASET UNSTRUCTURED_GRID\n",
                   m->vertex_count, m->element_count, w->as_text ? "ASCII" : "BINARY");
    fem_file_print(w->file, "POINTS %d double\n", m->vertex_count);
    for (size_t i = 0; i < 3 * (size_t)m->vertex_count; i++) put_double(w, m->vertices[i]);
    end_line(w);
    put_cells(w, m);
    // behind the cells: Gmsh expects the points first
    fem_file_print(w->file, "FIELD FieldData 1\nlimber 1 %zu unsigned_char\n", notes_size);
    for (size_t i = 0; i < notes_size; i++) put_int(w, (unsigned char)notes[i], 1);
    end_line(w);
    fem_file_print(w->file, "CELL_DATA %d\nFIELD FieldData %d\nregion 1 %d int\n", m->element_count,
                   1 + m->element_set_count, m->element_count);
    for (int e = 0; e < m->element_count; e++) put_int(w, m->region[e], 4);
    end_line(w);
    for (int i = 0; i < m->element_set_count; i++) put_set(w, &m->element_sets[i], m->element_count);
    if (m->vertex_set_count == 0) return;
    fem_file_print(w->file, "POINT_DATA %d\nFIELD FieldData %d\n", m->vertex_count, m->vertex_set_count);
    for (int i = 0; i < m->vertex_set_count; i++) put_set(w, &m->vertex_sets[i], m->vertex_count);
}

fem_status fem_mesh_write_vtk(const fem_mesh *mesh, const char *path, bool as_text) {
    vtk_writer w = {.as_text = as_text};
    char      *notes = NULL;
    size_t     size = 0;
    fem_status status = fem_mesh_check(mesh);
    if (status == FEM_OK) status = check_sets(mesh->vertex_set_count, mesh->vertex_sets);
    if (status == FEM_OK) status = check_sets(mesh->element_set_count, mesh->element_sets);
    if (status == FEM_OK) status = fem_notes_make(&notes, &size, mesh, false);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    FEM_TRY(fem_file_create(&w.file, path));
    put_mesh(&w, mesh, notes, size);
    status = fem_file_commit(w.file);
done:
    fem_free(notes);
    return status;
}

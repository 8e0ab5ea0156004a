// VTK's .vtu: the writer. The XML names the arrays with their offsets, the raw bytes follow in <AppendedData>, in the
// same order; both are walked from one list. Sets are arrays "set:NAME" of 0 and 1, regions the cell array "region",
// their names and materials the notes of mesh_vtu.h.
#include "libfem/mesh_vtu.h"

#include <stdint.h>
#include <string.h>

typedef enum vtu_source { NOTES, POINTS, CONNECTIVITY, OFFSETS, TYPES, REGIONS, SET, FIELD } vtu_source;

// One array to write: where it stands, what VTK calls it, and what it is made from.
typedef struct vtu_output {
    vtu_section      section;
    vtu_source       source;
    const char      *type, *prefix, *name;
    int              components;
    size_t           tuples, item_size;
    const fem_set   *set;
    const fem_field *field;
} vtu_output;

typedef struct vtu_writer {
    fem_file       *file;
    const fem_mesh *mesh;
    const double   *displacement;
    char           *notes;
    size_t          notes_size;
    vtu_output     *outputs;
    size_t          count, capacity;
} vtu_writer;

// ---- the list of arrays ----------------------------------------------------------------------------------------

static fem_status add_output(vtu_writer *w, vtu_output output) {
    fem_status status = fem_grow((void **)&w->outputs, &w->capacity, w->count + 1, sizeof *w->outputs);
    if (status != FEM_OK) return status;
    for (size_t i = 0; i < w->count; i++)
        if (w->outputs[i].section == output.section && strcmp(w->outputs[i].prefix, output.prefix) == 0 &&
            strcmp(w->outputs[i].name, output.name) == 0)
            return fem_fail(FEM_BAD_INPUT, "two arrays are called \"%s%s\"", output.prefix, output.name);
    if (!output.name[0] || strlen(output.name) > VTU_NAME - 8)
        return fem_fail(FEM_BAD_INPUT, "the name \"%.100s\" of an array is empty or too long", output.name);
    w->outputs[w->count++] = output;
    return FEM_OK;
}

static fem_status add_sets(vtu_writer *w, vtu_section section, size_t tuples, int count, const fem_set *sets) {
    fem_status status = FEM_OK;
    for (int i = 0; i < count; i++)
        FEM_TRY(add_output(
            w, (vtu_output){section, SET, "UInt8", VTU_SET_PREFIX, sets[i].name, 1, tuples, 1, &sets[i], NULL}));
done:
    return status;
}

static fem_status add_fields(vtu_writer *w, bool on_elements, size_t tuples, int count, const fem_field *fields) {
    fem_status  status = FEM_OK;
    vtu_section section = on_elements ? VTU_CELL_DATA : VTU_POINT_DATA;
    for (int i = 0; i < count; i++)
        if (fields[i].on_elements == on_elements)
            FEM_TRY(add_output(w, (vtu_output){section, FIELD, "Float64", "", fields[i].name, fields[i].components,
                                               tuples, 8, NULL, &fields[i]}));
done:
    return status;
}

static fem_status list_outputs(vtu_writer *w, int field_count, const fem_field *fields) {
    fem_status      status = FEM_OK;
    const fem_mesh *m = w->mesh;
    size_t          points = (size_t)m->vertex_count, cells = (size_t)m->element_count;
    size_t          corners = cells * (size_t)fem_element_vertices(m->type);
    FEM_TRY(
        add_output(w, (vtu_output){VTU_FIELD_DATA, NOTES, "UInt8", "", VTU_NOTES, 1, w->notes_size, 1, NULL, NULL}));
    FEM_TRY(add_sets(w, VTU_POINT_DATA, points, m->vertex_set_count, m->vertex_sets));
    FEM_TRY(add_fields(w, false, points, field_count, fields));
    FEM_TRY(add_output(w, (vtu_output){VTU_CELL_DATA, REGIONS, "Int32", "", "region", 1, cells, 4, NULL, NULL}));
    FEM_TRY(add_sets(w, VTU_CELL_DATA, cells, m->element_set_count, m->element_sets));
    FEM_TRY(add_fields(w, true, cells, field_count, fields));
    FEM_TRY(add_output(w, (vtu_output){VTU_POINTS, POINTS, "Float64", "", "Points", 3, points, 8, NULL, NULL}));
    FEM_TRY(
        add_output(w, (vtu_output){VTU_CELLS, CONNECTIVITY, "Int32", "", "connectivity", 1, corners, 4, NULL, NULL}));
    FEM_TRY(add_output(w, (vtu_output){VTU_CELLS, OFFSETS, "Int32", "", "offsets", 1, cells, 4, NULL, NULL}));
    FEM_TRY(add_output(w, (vtu_output){VTU_CELLS, TYPES, "UInt8", "", "types", 1, cells, 1, NULL, NULL}));
done:
    return status;
}

// ---- the XML ---------------------------------------------------------------------------------------------------

static size_t output_bytes(const vtu_output *o) { return o->tuples * (size_t)o->components * o->item_size; }

static void put_escaped(fem_file *file, const char *text) {
    for (; *text; text++) {
        const char *entity = *text == '&'   ? "&amp;"
                             : *text == '<' ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '"' ? "&quot;"
                                            : NULL;
        fem_file_put(file, entity ? entity : text, entity ? strlen(entity) : 1);
    }
}

static void put_section(vtu_writer *w, vtu_section section, const char *tag) {
    uint64_t offset = 0;
    fem_file_print(w->file, "<%s>\n", tag);
    for (size_t i = 0; i < w->count; i++) {
        const vtu_output *o = &w->outputs[i];
        if (o->section == section) {
            fem_file_print(w->file, "<DataArray type=\"%s\" Name=\"%s", o->type, o->prefix);
            put_escaped(w->file, o->name);
            fem_file_print(w->file, "\" NumberOfComponents=\"%d\" ", o->components);
            if (section == VTU_FIELD_DATA) fem_file_print(w->file, "NumberOfTuples=\"%zu\" ", o->tuples);
            fem_file_print(w->file, "format=\"appended\" offset=\"%llu\"/>\n", (unsigned long long)offset);
        }
        offset += 8 + output_bytes(o);
    }
    fem_file_print(w->file, "</%s>\n", tag);
}

static void put_head(vtu_writer *w) {
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    fem_file_print(w->file,
                   "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"%s\" "
                   "header_type=\"UInt64\">\n"
                   "<UnstructuredGrid>\n",
                   little ? "LittleEndian" : "BigEndian");
    put_section(w, VTU_FIELD_DATA, "FieldData");
    fem_file_print(w->file, "<Piece NumberOfPoints=\"%d\" NumberOfCells=\"%d\">\n", w->mesh->vertex_count,
                   w->mesh->element_count);
    put_section(w, VTU_POINT_DATA, "PointData");
    put_section(w, VTU_CELL_DATA, "CellData");
    put_section(w, VTU_POINTS, "Points");
    put_section(w, VTU_CELLS, "Cells");
    fem_file_print(w->file, "</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_");
}

// ---- the bytes -------------------------------------------------------------------------------------------------

static void put_members(fem_file *file, const fem_set *set, size_t tuples) {
    unsigned char one = 1, zero = 0;
    int           next = 0;
    for (size_t i = 0; i < tuples; i++) {
        bool inside = next < set->count && (size_t)set->items[next] == i;
        next += inside;
        fem_file_put(file, inside ? &one : &zero, 1);
    }
}

static void put_positions(vtu_writer *w) {
    for (size_t i = 0; i < 3 * (size_t)w->mesh->vertex_count; i++) {
        double x = w->mesh->vertices[i] + w->displacement[i];
        fem_file_put(w->file, &x, sizeof x);
    }
}

static void put_bytes(vtu_writer *w, const vtu_output *o) {
    const fem_mesh *m = w->mesh;
    int             width = fem_element_vertices(m->type);
    unsigned char   type = m->type == FEM_T4 ? 10 : 12;
    uint64_t        size = output_bytes(o);
    fem_file_put(w->file, &size, sizeof size);
    switch (o->source) {
    case NOTES:
        fem_file_put(w->file, w->notes, size);
        break;
    case POINTS:
        if (w->displacement)
            put_positions(w);
        else
            fem_file_put(w->file, m->vertices, size);
        break;
    case CONNECTIVITY:
        fem_file_put(w->file, m->elements, size);
        break;
    case REGIONS:
        fem_file_put(w->file, m->region, size);
        break;
    case FIELD:
        fem_file_put(w->file, o->field->values, size);
        break;
    case SET:
        put_members(w->file, o->set, o->tuples);
        break;
    case OFFSETS:
        for (int e = 1; e <= m->element_count; e++) {
            int32_t offset = e * width;
            fem_file_put(w->file, &offset, sizeof offset);
        }
        break;
    case TYPES:
        for (int e = 0; e < m->element_count; e++) fem_file_put(w->file, &type, 1);
        break;
    }
}

_Static_assert(sizeof(int) == 4, "connectivity and regions are written as Int32");

fem_status fem_mesh_write_vtu(const fem_mesh *mesh, const char *path, const double *displacement, int field_count,
                              const fem_field *fields) {
    vtu_writer w = {.mesh = mesh, .displacement = displacement};
    fem_status status = fem_mesh_check(mesh);
    for (int i = 0; status == FEM_OK && i < field_count; i++)
        if (fields[i].components < 1 || fields[i].components > 9)
            status = fem_fail(FEM_BAD_INPUT, "field \"%s\" has %d components, expected 1 to 9", fields[i].name,
                              fields[i].components);
    if (status == FEM_OK) status = fem_notes_make(&w.notes, &w.notes_size, mesh, false);
    if (status == FEM_OK) status = list_outputs(&w, field_count, fields);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    FEM_TRY(fem_file_create(&w.file, path));
    put_head(&w);
    for (size_t i = 0; i < w.count; i++) put_bytes(&w, &w.outputs[i]);
    fem_file_print(w.file, "\n</AppendedData>\n</VTKFile>\n");
    status = fem_file_commit(w.file);
done:
    fem_free(w.notes);
    fem_free(w.outputs);
    return status;
}

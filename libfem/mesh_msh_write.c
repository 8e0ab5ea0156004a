// Gmsh's .msh 4.1: the writer, as bytes or as text. Regions and element sets are physical volumes, vertex sets physical
// points: each set is one point entity whose elements are its vertices. Elements of the same region and sets share a
// volume entity; a run of them is a block, so that the order of the elements stays. The section $Limber, which Gmsh
// passes over, keeps the materials and says which groups are regions.
#include "libfem/mesh_formats.h"

#include <stdint.h>
#include <string.h>

typedef struct msh_writer {
    fem_file       *file;
    const fem_mesh *mesh;
    bool            as_text, mid_line;
    char           *notes;
    size_t          notes_size;
    int            *entity;       // per element
    int             entity_count; // region r is entity r to begin with
    int            *parent, *set; // per entity: the entity without its last set, and that set (-1: none)
    size_t          parent_capacity, set_capacity;
} msh_writer;

// ---- numbers ---------------------------------------------------------------------------------------------------

static void put_number(msh_writer *w, long long value, int size) {
    if (w->as_text) {
        char digits[FEM_DIGITS];
        if (w->mid_line) fem_file_put(w->file, " ", 1);
        fem_file_put(w->file, digits, (size_t)fem_format_int(digits, value));
        w->mid_line = true;
        return;
    }
    int32_t narrow = (int32_t)value;
    int64_t wide = value;
    fem_file_put(w->file, size == 4 ? (const void *)&narrow : (const void *)&wide, (size_t)size);
}
static void put_int(msh_writer *w, long long value) { put_number(w, value, 4); }
static void put_size(msh_writer *w, long long value) { put_number(w, value, 8); }

static void put_double(msh_writer *w, double value) {
    if (w->as_text) {
        char digits[FEM_DIGITS];
        if (w->mid_line) fem_file_put(w->file, " ", 1);
        fem_file_put(w->file, digits, (size_t)fem_format_double(digits, value));
        w->mid_line = true;
    } else {
        fem_file_put(w->file, &value, sizeof value);
    }
}

static void end_record(msh_writer *w) {
    if (w->as_text) fem_file_put(w->file, "\n", 1);
    w->mid_line = false;
}

static void end_section(msh_writer *w, const char *name) { // bytes have no newline behind them
    fem_file_print(w->file, "%s$End%s\n", w->as_text ? "" : "\n", name);
}

// ---- entities --------------------------------------------------------------------------------------------------

static fem_status add_entity(msh_writer *w, int parent, int set, int *entity) {
    fem_status status = FEM_OK;
    size_t     needed = (size_t)w->entity_count + 1;
    FEM_TRY(fem_grow((void **)&w->parent, &w->parent_capacity, needed, sizeof *w->parent));
    FEM_TRY(fem_grow((void **)&w->set, &w->set_capacity, needed, sizeof *w->set));
    w->parent[w->entity_count] = parent;
    w->set[w->entity_count] = set;
    *entity = w->entity_count++;
done:
    return status;
}

// Each set divides the entities that it cuts: its elements go to an entity of their own.
static fem_status split_by_set(msh_writer *w, int set) {
    fem_status     status = FEM_OK;
    const fem_set *s = &w->mesh->element_sets[set];
    int            before = w->entity_count;
    int           *inside = fem_alloc((size_t)before, sizeof *inside); // the part of each entity in the set
    if (!inside) return fem_fail(FEM_NO_MEMORY, "no memory for the sets");
    for (int i = 0; i < before; i++) inside[i] = -1;
    for (int i = 0; i < s->count; i++) {
        int *entity = &w->entity[s->items[i]];
        if (inside[*entity] < 0) FEM_TRY(add_entity(w, *entity, set, &inside[*entity]));
        *entity = inside[*entity];
    }
done:
    fem_free(inside);
    return status;
}

static fem_status make_entities(msh_writer *w) {
    fem_status      status = FEM_OK;
    const fem_mesh *m = w->mesh;
    int             entity;
    w->entity = fem_copy(m->region, (size_t)m->element_count, sizeof *w->entity);
    if (!w->entity) return fem_fail(FEM_NO_MEMORY, "no memory for the groups of %d elements", m->element_count);
    for (int r = 0; r < m->region_count; r++) FEM_TRY(add_entity(w, -1, -1, &entity));
    for (int s = 0; s < m->element_set_count; s++) FEM_TRY(split_by_set(w, s));
done:
    return status;
}

static void put_points(msh_writer *w) {
    const fem_mesh *m = w->mesh;
    for (int i = 0; i < m->vertex_set_count; i++) {
        if (m->vertex_sets[i].count == 0) continue;
        const double *x = m->vertices + 3 * (size_t)m->vertex_sets[i].items[0];
        put_int(w, i + 1);
        for (int k = 0; k < 3; k++) put_double(w, x[k]);
        put_size(w, 1);
        put_int(w, i + 1);
        end_record(w);
    }
}

static void put_volumes(msh_writer *w, const double bounds[6]) {
    for (int i = 0; i < w->entity_count; i++) {
        int groups = 1, root = i;
        for (; w->parent[root] >= 0; root = w->parent[root]) groups++;
        put_int(w, i + 1);
        for (int k = 0; k < 6; k++) put_double(w, bounds[k]);
        put_size(w, groups);
        put_int(w, root + 1); // the region
        for (int at = i; w->parent[at] >= 0; at = w->parent[at]) put_int(w, w->mesh->region_count + w->set[at] + 1);
        put_size(w, 0);
        end_record(w);
    }
}

static void put_entities(msh_writer *w) {
    const fem_mesh *m = w->mesh;
    double          bounds[6];
    int             points = 0;
    for (int k = 0; k < 3; k++) bounds[k] = bounds[3 + k] = m->vertices[k];
    for (int v = 0; v < m->vertex_count; v++)
        for (int k = 0; k < 3; k++) {
            double x = m->vertices[3 * (size_t)v + (size_t)k];
            if (x < bounds[k]) bounds[k] = x;
            if (x > bounds[3 + k]) bounds[3 + k] = x;
        }
    for (int i = 0; i < m->vertex_set_count; i++) points += m->vertex_sets[i].count > 0;
    fem_file_print(w->file, "$Entities\n");
    put_size(w, points), put_size(w, 0), put_size(w, 0), put_size(w, w->entity_count);
    end_record(w);
    put_points(w);
    put_volumes(w, bounds);
    end_section(w, "Entities");
}

// ---- names -----------------------------------------------------------------------------------------------------

static fem_status check_name(const char *name) {
    size_t length = strlen(name);
    bool   good = length > 0 && length < 256;
    for (const char *c = name; *c; c++) good = good && (unsigned char)*c >= ' ' && *c != '"';
    if (good) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "the name \"%.100s\" is empty, too long or has quotes, which .msh cannot hold",
                    name);
}

static fem_status check_names(const fem_mesh *m) {
    fem_status status = FEM_OK;
    for (int i = 0; i < m->region_count; i++) FEM_TRY(check_name(m->regions[i].name));
    for (int i = 0; i < m->element_set_count; i++) FEM_TRY(check_name(m->element_sets[i].name));
    for (int i = 0; i < m->vertex_set_count; i++) FEM_TRY(check_name(m->vertex_sets[i].name));
done:
    return status;
}

static void put_names(msh_writer *w) {
    const fem_mesh *m = w->mesh;
    int             r = m->region_count;
    fem_file_print(w->file, "$PhysicalNames\n%d\n", r + m->element_set_count + m->vertex_set_count);
    for (int i = 0; i < m->vertex_set_count; i++)
        fem_file_print(w->file, "0 %d \"%s\"\n", i + 1, m->vertex_sets[i].name);
    for (int i = 0; i < r; i++) fem_file_print(w->file, "3 %d \"%s\"\n", i + 1, m->regions[i].name);
    for (int i = 0; i < m->element_set_count; i++)
        fem_file_print(w->file, "3 %d \"%s\"\n", r + i + 1, m->element_sets[i].name);
    fem_file_print(w->file, "$EndPhysicalNames\n");
}

// ---- nodes and elements ----------------------------------------------------------------------------------------

static void put_nodes(msh_writer *w) {
    const fem_mesh *m = w->mesh;
    fem_file_print(w->file, "$Nodes\n");
    put_size(w, 1), put_size(w, m->vertex_count), put_size(w, 1), put_size(w, m->vertex_count);
    end_record(w);
    put_int(w, 3), put_int(w, 1), put_int(w, 0), put_size(w, m->vertex_count);
    end_record(w);
    for (int v = 0; v < m->vertex_count; v++) {
        put_size(w, (long long)v + 1);
        end_record(w);
    }
    for (int v = 0; v < m->vertex_count; v++) {
        for (int k = 0; k < 3; k++) put_double(w, m->vertices[3 * (size_t)v + (size_t)k]);
        end_record(w);
    }
    end_section(w, "Nodes");
}

static int run_end(const msh_writer *w, int start) {
    int end = start;
    while (end < w->mesh->element_count && w->entity[end] == w->entity[start]) end++;
    return end;
}

static void put_run(msh_writer *w, int start, int end) {
    const fem_mesh *m = w->mesh;
    size_t          width = (size_t)fem_element_vertices(m->type);
    put_int(w, 3), put_int(w, w->entity[start] + 1), put_int(w, m->type == FEM_T4 ? 4 : 5), put_size(w, end - start);
    end_record(w);
    for (int e = start; e < end; e++) {
        put_size(w, (long long)e + 1);
        for (size_t a = 0; a < width; a++) put_size(w, (long long)m->elements[width * (size_t)e + a] + 1);
        end_record(w);
    }
}

static void put_elements(msh_writer *w) {
    const fem_mesh *m = w->mesh;
    long long       blocks = 0, total = m->element_count, number = m->element_count;
    for (int e = 0; e < m->element_count; e = run_end(w, e)) blocks++;
    for (int i = 0; i < m->vertex_set_count; i++) {
        blocks += m->vertex_sets[i].count > 0;
        total += m->vertex_sets[i].count;
    }
    fem_file_print(w->file, "$Elements\n");
    put_size(w, blocks), put_size(w, total), put_size(w, 1), put_size(w, total);
    end_record(w);
    for (int e = 0; e < m->element_count; e = run_end(w, e)) put_run(w, e, run_end(w, e));
    for (int i = 0; i < m->vertex_set_count; i++) {
        const fem_set *s = &m->vertex_sets[i];
        if (s->count == 0) continue;
        put_int(w, 0), put_int(w, i + 1), put_int(w, 15), put_size(w, s->count);
        end_record(w);
        for (int k = 0; k < s->count; k++) {
            put_size(w, ++number), put_size(w, (long long)s->items[k] + 1);
            end_record(w);
        }
    }
    end_section(w, "Elements");
}

fem_status fem_mesh_write_msh(const fem_mesh *mesh, const char *path, bool as_text) {
    msh_writer w = {.mesh = mesh, .as_text = as_text};
    int32_t    one = 1;
    fem_status status = fem_mesh_check(mesh);
    if (status == FEM_OK) status = check_names(mesh);
    if (status == FEM_OK) status = make_entities(&w);
    if (status == FEM_OK) status = fem_notes_make(&w.notes, &w.notes_size, mesh, false);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    FEM_TRY(fem_file_create(&w.file, path));
    fem_file_print(w.file, "$MeshFormat\n4.1 %d 8\n", !as_text);
    if (!as_text) fem_file_put(w.file, &one, sizeof one);
    end_section(&w, "MeshFormat");
    put_names(&w);
    put_entities(&w);
    put_nodes(&w);
    put_elements(&w);
    fem_file_print(w.file, "$Limber\n");
    fem_file_put(w.file, w.notes, w.notes_size);
    fem_file_print(w.file, "$EndLimber\n");
    status = fem_file_commit(w.file);
done:
    fem_free(w.notes);
    fem_free(w.entity);
    fem_free(w.parent);
    fem_free(w.set);
    return status;
}

// Abaqus' and CalculiX' .inp: the writer. A region is the ELSET of its *ELEMENT blocks, one block a run of elements, so
// that their order stays; its *SOLID SECTION gives the material. CalculiX reads 20 letters of a number, so the few that
// are longer lose their last digits. Kinds of material other than *ELASTIC have no place and are left without it.
#include "libfem/mesh_formats.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_NUMBER = 20, LONGEST_NAME = 80 };

static bool is_plain(const char *name) {
    if (!name[0] || strlen(name) > LONGEST_NAME || name[0] == '*') return false;
    for (; *name; name++)
        if ((unsigned char)*name <= ' ' || strchr(",=\"", *name)) return false;
    return true;
}

static fem_status check_name(const char *name) {
    if (is_plain(name)) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT,
                    "the name \"%.100s\" is empty, longer than %d letters or has a blank, a comma, a quote or =, which "
                    ".inp cannot hold",
                    name, LONGEST_NAME);
}

// Names must differ by more than capitals.
static fem_status check_sets(int count, const fem_set *sets) {
    for (int i = 0; i < count; i++) {
        fem_status status = check_name(sets[i].name);
        if (status != FEM_OK) return status;
        for (int k = 0; k < i; k++)
            if (strcasecmp(sets[i].name, sets[k].name) == 0)
                return fem_fail(FEM_BAD_INPUT, "the names \"%.100s\" and \"%.100s\" are the same in .inp", sets[i].name,
                                sets[k].name);
    }
    return FEM_OK;
}

static fem_status check_names(const fem_mesh *m) {
    fem_status status = FEM_OK;
    for (int i = 0; i < m->material_count; i++) FEM_TRY(check_name(m->materials[i].name));
    for (int i = 0; i < m->region_count; i++) {
        FEM_TRY(check_name(m->regions[i].name));
        for (int k = 0; k < i; k++)
            if (strcasecmp(m->regions[i].name, m->regions[k].name) == 0) {
                status = fem_fail(FEM_BAD_INPUT, "the regions \"%.100s\" and \"%.100s\" are the same in .inp",
                                  m->regions[i].name, m->regions[k].name);
                goto done;
            }
    }
    FEM_TRY(check_sets(m->vertex_set_count, m->vertex_sets));
    FEM_TRY(check_sets(m->element_set_count, m->element_sets));
done:
    return status;
}

// The shortest exact form, or as many digits as have room.
static void put_number(fem_file *file, const char *before, double value) {
    char text[FEM_DIGITS];
    int  length = fem_format_double(text, value);
    for (int digits = 16; length > LONGEST_NUMBER; digits--) length = fem_format_digits(text, digits, value);
    fem_file_put(file, before, strlen(before));
    fem_file_put(file, text, (size_t)length);
}

static void put_numbers(fem_file *file, int count, const double *values) {
    for (int i = 0; i < count; i++) put_number(file, i % 8 > 0 ? ", " : i > 0 ? ",\n" : "", values[i]);
    fem_file_put(file, "\n", 1);
}

static void put_items(fem_file *file, const fem_set *set) {
    char text[FEM_DIGITS];
    for (int i = 0; i < set->count; i++) {
        if (i > 0) fem_file_put(file, i % 10 > 0 ? ", " : ",\n", 2);
        fem_file_put(file, text, (size_t)fem_format_int(text, (long long)set->items[i] + 1));
    }
    if (set->count > 0) fem_file_put(file, "\n", 1);
}

// Two materials may share a name in a mesh, not in a file: the later ones get their number behind it.
static void material_name(const fem_mesh *mesh, int index, char name[96]) {
    bool taken = false;
    for (int i = 0; i < index; i++)
        taken = taken || strcasecmp(mesh->materials[i].name, mesh->materials[index].name) == 0;
    snprintf(name, 96, taken ? "%.48s_%d" : "%s", mesh->materials[index].name, index + 1);
}

static void put_material(fem_file *file, const fem_mesh *mesh, int index) {
    const fem_material *m = &mesh->materials[index];
    char                name[96];
    material_name(mesh, index, name);
    fem_file_print(file, "*MATERIAL, NAME=%s\n", name);
    if (m->kind == FEM_LINEAR || m->kind == FEM_STVK) {
        fem_file_print(file, "*ELASTIC\n");
        put_numbers(file, 2, (double[]){m->young, m->poisson});
    } else if (m->kind == FEM_ORTHOTROPIC) { // nu13 = nu31 E1/E3
        const double *E = m->young3, *nu = m->poisson3, *G = m->shear3;
        fem_file_print(file, "*ELASTIC, TYPE=ENGINEERING CONSTANTS\n");
        put_numbers(file, 9, (double[]){E[0], E[1], E[2], nu[0], nu[2] * (E[0] / E[2]), nu[1], G[0], G[2], G[1]});
    }
    fem_file_print(file, "*DENSITY\n");
    put_numbers(file, 1, &m->density);
    if (m->kind != FEM_ORTHOTROPIC) return;
    const double *R = m->frame; // its columns are the axes
    fem_file_print(file, "*ORIENTATION, NAME=axes_%d, SYSTEM=RECTANGULAR\n", index + 1);
    put_numbers(file, 6, (double[]){R[0], R[3], R[6], R[1], R[4], R[7]});
}

static bool region_fills_set(const fem_mesh *mesh, int region, const fem_set *set) {
    int inside = 0, all = 0;
    for (int i = 0; i < set->count; i++) inside += mesh->region[set->items[i]] == region;
    for (int e = 0; e < mesh->element_count; e++) all += mesh->region[e] == region;
    return inside == all && inside == set->count;
}

// The ELSET of a region: its own name, unless a set with other elements has that.
static void region_name(const fem_mesh *mesh, int region, char name[LONGEST_NAME + 32]) {
    const fem_set *same = NULL;
    snprintf(name, LONGEST_NAME + 32, "%s", mesh->regions[region].name);
    for (int i = 0; i < mesh->element_set_count; i++)
        if (strcasecmp(mesh->element_sets[i].name, name) == 0) same = &mesh->element_sets[i];
    if (same && !region_fills_set(mesh, region, same))
        snprintf(name, LONGEST_NAME + 32, "%.60s_region%d", mesh->regions[region].name, region + 1);
}

typedef struct inp_region_name {
    char text[LONGEST_NAME + 32];
} inp_region_name;

static void put_elements(fem_file *file, const fem_mesh *mesh, const inp_region_name *names) {
    size_t width = (size_t)fem_element_vertices(mesh->type);
    char   text[FEM_DIGITS];
    for (int e = 0; e < mesh->element_count; e++) {
        const int *v = mesh->elements + width * (size_t)e;
        if (e == 0 || mesh->region[e] != mesh->region[e - 1])
            fem_file_print(file, "*ELEMENT, TYPE=%s, ELSET=%s\n", mesh->type == FEM_T4 ? "C3D4" : "C3D8",
                           names[mesh->region[e]].text);
        fem_file_put(file, text, (size_t)fem_format_int(text, (long long)e + 1));
        for (size_t a = 0; a < width; a++) fem_file_put_int(file, ',', (long long)v[a] + 1);
        fem_file_put(file, "\n", 1);
    }
}

// Of the regions that have elements: a section of nothing is refused by CalculiX.
static void put_sections(fem_file *file, const fem_mesh *mesh, const inp_region_name *names, const int *elements) {
    for (int r = 0; r < mesh->region_count; r++) {
        int  material = mesh->regions[r].material;
        char name[96], axes[32] = "";
        if (elements[r] == 0) continue;
        material_name(mesh, material, name);
        if (mesh->materials[material].kind == FEM_ORTHOTROPIC)
            snprintf(axes, sizeof axes, ", ORIENTATION=axes_%d", material + 1);
        fem_file_print(file, "*SOLID SECTION, ELSET=%s, MATERIAL=%s%s\n", names[r].text, name, axes);
    }
}

static fem_status put_mesh(fem_file *file, const fem_mesh *mesh) {
    fem_status       status = FEM_OK;
    char             text[FEM_DIGITS];
    inp_region_name *names = fem_calloc((size_t)mesh->region_count, sizeof *names);
    int             *elements = fem_calloc((size_t)mesh->region_count, sizeof *elements); // of each region
    if (!names || !elements) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the names of %d regions", mesh->region_count);
        goto done;
    }
    for (int r = 0; r < mesh->region_count; r++) region_name(mesh, r, names[r].text);
    for (int e = 0; e < mesh->element_count; e++) elements[mesh->region[e]]++;
    fem_file_print(file, "*HEADING\n%d nodes, %d elements\n*NODE\n", mesh->vertex_count, mesh->element_count);
    for (int v = 0; v < mesh->vertex_count; v++) {
        fem_file_put(file, text, (size_t)fem_format_int(text, (long long)v + 1));
        for (int k = 0; k < 3; k++) put_number(file, ",", mesh->vertices[3 * (size_t)v + (size_t)k]);
        fem_file_put(file, "\n", 1);
    }
    put_elements(file, mesh, names);
    for (int i = 0; i < mesh->element_set_count; i++) {
        fem_file_print(file, "*ELSET, ELSET=%s\n", mesh->element_sets[i].name);
        put_items(file, &mesh->element_sets[i]);
    }
    for (int i = 0; i < mesh->vertex_set_count; i++) {
        fem_file_print(file, "*NSET, NSET=%s\n", mesh->vertex_sets[i].name);
        put_items(file, &mesh->vertex_sets[i]);
    }
    for (int i = 0; i < mesh->material_count; i++) put_material(file, mesh, i);
    put_sections(file, mesh, names, elements);
done:
    fem_free(names);
    fem_free(elements);
    return status;
}

fem_status fem_mesh_write_inp(const fem_mesh *mesh, const char *path) {
    fem_file  *file = NULL;
    fem_status status = fem_mesh_check(mesh);
    if (status == FEM_OK) status = check_names(mesh);
    if (status != FEM_OK) return fem_fail_prefix(status, "%s: ", path);
    FEM_TRY(fem_file_create(&file, path));
    status = put_mesh(file, mesh);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    status = fem_file_commit(file);
    file = NULL;
done:
    fem_file_abandon(file);
    return status;
}

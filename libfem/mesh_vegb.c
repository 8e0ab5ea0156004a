// VegaFEM's binary .vegb: the reader. In the order of its writer (VolumetricMesh::saveToBinary, version 1.0), numbers
// in the machine's own form: the version; element type (1 tetrahedra, 2 cubes); vertices; elements, from 0; materials
// (name, kind, constants); sets of elements without the first, which is all elements; regions (material, set).
#include "libfem/mesh_draft.h"

#include <limits.h>
#include <string.h>

typedef struct vegb_reader {
    fem_feed  feed;
    fem_draft draft;
    int      *set_of; // of the draft, per set of the file; [0]: all elements, -1
    long long sets;
} vegb_reader;

static fem_status take_int(vegb_reader *r, const char *what, long long low, long long high, long long *value) {
    return fem_feed_int(&r->feed, FEM_INT32, what, low, high, value);
}

static fem_status take_doubles(vegb_reader *r, const char *what, int count, double *values) {
    fem_status status = FEM_OK;
    for (int i = 0; i < count; i++) FEM_TRY(fem_feed_double(&r->feed, FEM_FLOAT64, what, &values[i]));
done:
    return status;
}

static fem_status take_name(vegb_reader *r, char *name, size_t size) {
    fem_status  status = FEM_OK;
    long long   length = 0;
    const char *bytes = NULL;
    FEM_TRY(take_int(r, "the length of a name", 1, (long long)size - 1, &length));
    FEM_TRY(fem_feed_bytes(&r->feed, "a name", (size_t)length, &bytes));
    if (memchr(bytes, 0, (size_t)length)) {
        status = fem_feed_fail(&r->feed, "a name has a zero byte");
        goto done;
    }
    memset(name, 0, size); // nothing remains behind the name
    memcpy(name, bytes, (size_t)length);
done:
    return status;
}

static fem_status read_geometry(vegb_reader *r) {
    fem_status status = FEM_OK;
    fem_draft *d = &r->draft;
    double     version = 0, x[3];
    long long  type = 0, count = 0, width = 0, vertex = 0;
    int        corners[8];
    if (fem_feed_left(&r->feed) >= 8 && fem_scalar_double(r->feed.text.at, FEM_FLOAT64, false) != 1)
        r->feed.swapped = true; // written on a machine of the other order
    FEM_TRY(take_doubles(r, "the version", 1, &version));
    if (version != 1) {
        r->feed.text.at -= 8;
        status = fem_feed_fail(&r->feed, "the version is not 1.0 in either order of bytes");
        goto done;
    }
    FEM_TRY(take_int(r, "the type of the elements", 1, 2, &type));
    d->typed = true;
    d->mesh.type = type == 1 ? FEM_T4 : FEM_H8;
    FEM_TRY(take_int(r, "the number of vertices", 1, FEM_MOST_VERTICES, &count));
    FEM_TRY(fem_feed_plausible(&r->feed, "the number of vertices", count, 24));
    FEM_TRY(fem_draft_reserve_vertices(d, count));
    for (long long i = 0; i < count; i++) {
        FEM_TRY(take_doubles(r, "a coordinate", 3, x));
        FEM_TRY(fem_draft_vertex(d, i + 1, x));
    }
    FEM_TRY(take_int(r, "the number of elements", 1, FEM_MOST_ELEMENTS, &count));
    int expected = fem_element_vertices(d->mesh.type);
    FEM_TRY(take_int(r, "the number of vertices of an element", expected, expected, &width));
    FEM_TRY(fem_feed_plausible(&r->feed, "the number of elements", count, 4 * (size_t)width));
    FEM_TRY(fem_draft_reserve_elements(d, count));
    for (long long i = 0; i < count; i++) {
        for (long long a = 0; a < width; a++) {
            FEM_TRY(take_int(r, "a vertex of the element", 0, d->mesh.vertex_count - 1, &vertex));
            corners[a] = (int)vertex;
        }
        FEM_TRY(fem_draft_element(d, i + 1, corners, -1));
    }
done:
    return status;
}

static fem_status read_material(vegb_reader *r) {
    enum { ENU = 1, ORTHOTROPIC = 2, MOONEY_RIVLIN = 3 };
    fem_status   status = FEM_OK;
    fem_material m = fem_material_default();
    long long    kind = 0;
    double       p[10];
    int          index;
    FEM_TRY(take_name(r, m.name, sizeof m.name));
    FEM_TRY(take_int(r, "the kind of a material", ENU, MOONEY_RIVLIN, &kind));
    FEM_TRY(take_doubles(r, "a constant of the material", kind == ENU ? 3 : kind == ORTHOTROPIC ? 10 : 4, p));
    m.density = p[0];
    if (kind == ENU) {
        m.kind = FEM_STVK;
        m.young = p[1], m.poisson = p[2];
    } else if (kind == MOONEY_RIVLIN) {
        m.kind = FEM_MOONEY_RIVLIN;
        m.mu01 = p[1], m.mu10 = p[2], m.v1 = p[3];
    } else {
        m.kind = FEM_ORTHOTROPIC;
        memcpy(m.young3, p + 1, sizeof m.young3);
        memcpy(m.poisson3, p + 4, sizeof m.poisson3);
        memcpy(m.shear3, p + 7, sizeof m.shear3);
        FEM_TRY(take_doubles(r, "an entry of the rotation", 9, m.frame));
    }
    status = fem_material_check(&m);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", r->draft.path);
        goto done;
    }
    FEM_TRY(fem_draft_material(&r->draft, &m, &index));
done:
    return status;
}

static fem_status read_set(vegb_reader *r, int index) {
    fem_status status = FEM_OK;
    char       name[256];
    long long  count = 0, item = 0;
    int        before = r->draft.set_count;
    FEM_TRY(take_name(r, name, sizeof name));
    FEM_TRY(fem_draft_set_named(&r->draft, true, name, &r->set_of[index]));
    if (r->draft.set_count == before) {
        status = fem_feed_fail(&r->feed, "set \"%s\" is defined twice", name);
        goto done;
    }
    FEM_TRY(take_int(r, "the number of elements of a set", 0, r->draft.mesh.element_count, &count));
    for (long long i = 0; i < count; i++) {
        FEM_TRY(take_int(r, "an element of a set", 0, r->draft.mesh.element_count - 1, &item));
        FEM_TRY(fem_draft_set_add(&r->draft, r->set_of[index], (int)item));
    }
done:
    return status;
}

// Later regions override earlier ones, as in .veg.
static fem_status read_region(vegb_reader *r) {
    fem_status status = FEM_OK;
    fem_draft *d = &r->draft;
    long long  material = 0, set = 0;
    int        region = 0;
    FEM_TRY(take_int(r, "the material of a region", 0, d->mesh.material_count - 1, &material));
    FEM_TRY(take_int(r, "the set of a region", 0, r->sets - 1, &set));
    const fem_draft_set *s = set > 0 ? &d->sets[r->set_of[set]] : NULL;
    const char          *name = s ? s->name : "all";
    region = fem_mesh_region_index(&d->mesh, name);
    if (region < 0) FEM_TRY(fem_draft_region(d, name, (int)material, &region));
    d->mesh.regions[region].material = (int)material;
    int count = s ? s->count : d->mesh.element_count;
    for (int i = 0; i < count; i++) d->mesh.region[s ? s->items[i] : i] = region;
done:
    return status;
}

static fem_status read_groups(vegb_reader *r) {
    fem_status status = FEM_OK;
    long long  count = 0;
    FEM_TRY(take_int(r, "the number of materials", 0, FEM_MOST_NAMES, &count));
    for (long long i = 0; i < count; i++) FEM_TRY(read_material(r));
    FEM_TRY(take_int(r, "the number of sets", 1, FEM_MOST_NAMES, &r->sets));
    r->set_of = fem_calloc((size_t)r->sets, sizeof *r->set_of);
    if (!r->set_of) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for its sets", r->draft.path);
        goto done;
    }
    for (int i = 1; i < r->sets; i++) FEM_TRY(read_set(r, i));
    FEM_TRY(take_int(r, "the number of regions", 0, FEM_MOST_NAMES, &count));
    for (long long i = 0; i < count; i++) FEM_TRY(read_region(r));
    if (count == 0 && r->draft.mesh.material_count > 1) {
        status = fem_fail(FEM_BAD_INPUT, "%s: has %d materials but no region that says where they are", r->draft.path,
                          r->draft.mesh.material_count);
        goto done;
    }
    if (fem_feed_left(&r->feed) > 0) status = fem_feed_fail(&r->feed, "expected the end of the file");
done:
    return status;
}

fem_status fem_mesh_read_vegb(fem_mesh *mesh, const char *path, fem_remarks *remarks) {
    fem_status  status = FEM_OK;
    char       *text = NULL;
    size_t      size = 0;
    vegb_reader r = {.draft = {.path = path, .remarks = remarks}};
    FEM_TRY(fem_file_read(&text, &size, path));
    r.feed = fem_feed_open(path, text, size, 0);
    r.feed.binary = true;
    FEM_TRY(read_geometry(&r));
    FEM_TRY(read_groups(&r));
    FEM_TRY(fem_draft_finish(&r.draft, mesh));
done:
    fem_free(text);
    fem_free(r.set_of);
    fem_draft_destroy(&r.draft);
    return status;
}

// Physical groups of volumes in a .msh file. Where every element is in exactly one, they are the regions; else they are
// element sets of one region. Our own files say in their notes which groups are which: the tags 1 .. R are the regions.
#include "libfem/mesh_msh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_volume(const msh_entity *e) { return e->dimension == 3 && e->elements > 0; }

static fem_status element_set(msh_reader *r, int physical) {
    char          made[64];
    msh_physical *p = &r->physicals[physical];
    return fem_draft_set_named(&r->draft, true, msh_physical_name(p, made), &p->set);
}

// ---- elements that come several times (2.2) --------------------------------------------------------------------

typedef struct element_corners {
    int sorted[8];
} element_corners;

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static element_corners sorted_corners(const fem_mesh *mesh, int element) {
    element_corners c = {{0}};
    size_t          width = (size_t)fem_element_vertices(mesh->type);
    memcpy(c.sorted, mesh->elements + width * (size_t)element, width * sizeof(int));
    qsort(c.sorted, width, sizeof(int), compare_ints);
    return c;
}

static bool same_corners(const void *context, int entry, const void *key) {
    element_corners c = sorted_corners(context, entry);
    return memcmp(&c, key, sizeof c) == 0;
}

// first[e] is the first element with the corners of e.
static fem_status find_repeated(const fem_mesh *mesh, int *first, int *repeated) {
    fem_status status = FEM_OK;
    fem_table  table = {0};
    *repeated = 0;
    for (int e = 0; e < mesh->element_count; e++) {
        element_corners key = sorted_corners(mesh, e);
        FEM_TRY(fem_table_enter(&table, &key, sizeof key, same_corners, mesh, e, &first[e]));
        *repeated += first[e] != e;
    }
done:
    fem_table_destroy(&table);
    return status;
}

// Groups become sets of the elements that stay; the others go.
static fem_status join_repeated(msh_reader *r, int *first) {
    fem_status status = FEM_OK;
    fem_draft *d = &r->draft;
    fem_mesh  *m = &d->mesh;
    size_t     width = (size_t)fem_element_vertices(m->type);
    int        kept = 0;
    FEM_TRY(fem_numbers_spell(&d->element_numbers));
    for (int e = 0; e < m->element_count; e++) {
        const msh_entity *entity = &r->entities[m->region[e]];
        int               place = first[e] == e ? kept : first[first[e]];
        if (first[e] == e) {
            memmove(m->elements + width * (size_t)kept, m->elements + width * (size_t)e, width * sizeof(int));
            d->element_numbers.list[kept] = d->element_numbers.list[e];
            m->region[kept] = m->region[e];
            first[e] = kept++; // never above e: from now on its place
        }
        for (int i = 0; i < entity->count; i++) {
            int physical = r->members[entity->first + i];
            if (r->physicals[physical].set < 0) FEM_TRY(element_set(r, physical));
            FEM_TRY(fem_draft_set_add(d, r->physicals[physical].set, place));
        }
    }
    m->element_count = kept;
done:
    return status;
}

static fem_status join_elements(msh_reader *r, bool *joined) {
    fem_status status = FEM_OK;
    int        groups = 0, repeated = 0;
    fem_mesh  *m = &r->draft.mesh;
    *joined = false;
    for (int i = 0; i < r->physical_count; i++) groups += r->physicals[i].dimension == 3;
    if (r->is_4 || groups < 2) return FEM_OK;
    int *first = fem_alloc((size_t)m->element_count, sizeof *first);
    if (!first) return fem_fail(FEM_NO_MEMORY, "%s: no memory for its groups", r->draft.path);
    FEM_TRY(find_repeated(m, first, &repeated));
    if (repeated == 0) goto done;
    FEM_TRY(join_repeated(r, first));
    FEM_TRY(fem_remark(r->draft.remarks,
                       "%d elements come again in another physical group: the groups are element sets", repeated));
    *joined = true;
done:
    fem_free(first);
    return status;
}

// ---- regions and sets ------------------------------------------------------------------------------------------

// Every volume in the sets of its groups; one region.
static fem_status make_element_sets(msh_reader *r) {
    fem_status status = FEM_OK;
    fem_mesh  *m = &r->draft.mesh;
    for (int i = 0; i < r->physical_count; i++)
        if (r->physicals[i].dimension == 3 && r->physicals[i].region < 0) FEM_TRY(element_set(r, i));
    for (int e = 0; e < m->element_count; e++) {
        const msh_entity *entity = &r->entities[m->region[e]];
        for (int i = 0; i < entity->count; i++) {
            const msh_physical *p = &r->physicals[r->members[entity->first + i]];
            if (p->region < 0) FEM_TRY(fem_draft_set_add(&r->draft, p->set, e));
        }
    }
done:
    return status;
}

static fem_status named_region(msh_reader *r, const char *name, int *region) {
    *region = fem_mesh_region_index(&r->draft.mesh, name);
    return *region >= 0 ? FEM_OK : fem_draft_region(&r->draft, name, 0, region);
}

// Groups, or entities where there are no groups, are regions; `region` goes from entities to them.
static fem_status make_regions(msh_reader *r, bool grouped) {
    fem_status status = FEM_OK;
    fem_mesh  *m = &r->draft.mesh;
    char       name[64];
    int       *region = fem_calloc((size_t)r->entity_count, sizeof *region);
    if (!region) return fem_fail(FEM_NO_MEMORY, "%s: no memory for its regions", r->draft.path);
    enum { USED = -2 };
    for (int k = 0; k < r->entity_count && grouped; k++)
        if (is_volume(&r->entities[k])) r->physicals[r->members[r->entities[k].first]].region = USED;
    for (int i = 0; i < r->physical_count; i++) { // in the order of the file
        msh_physical *p = &r->physicals[i];
        if (p->region == USED) FEM_TRY(named_region(r, msh_physical_name(p, name), &p->region));
    }
    for (int k = 0; k < r->entity_count; k++) {
        const msh_entity *e = &r->entities[k];
        if (!is_volume(e)) continue;
        if (grouped) {
            region[k] = r->physicals[r->members[e->first]].region;
            continue;
        }
        snprintf(name, sizeof name, "volume_%lld", e->tag);
        FEM_TRY(named_region(r, name, &region[k]));
    }
    for (int e = 0; e < m->element_count; e++) m->region[e] = region[m->region[e]];
done:
    fem_free(region);
    return status;
}

// Our own file: groups 1 .. R are the regions of the notes, the others element sets.
static fem_status follow_notes(msh_reader *r) {
    fem_status status = FEM_OK;
    fem_mesh  *m = &r->draft.mesh;
    FEM_TRY(fem_notes_read(m, &r->notes, NULL));
    for (int i = 0; i < r->physical_count; i++) {
        msh_physical *p = &r->physicals[i];
        if (p->dimension == 3 && p->tag >= 1 && p->tag <= m->region_count) p->region = (int)p->tag - 1;
    }
    FEM_TRY(make_element_sets(r));
    for (int e = 0; e < m->element_count; e++) {
        const msh_entity *entity = &r->entities[m->region[e]];
        int               found = 0;
        for (int i = 0; i < entity->count; i++) {
            int region = r->physicals[r->members[entity->first + i]].region;
            found += region >= 0;
            if (region >= 0) m->region[e] = region;
        }
        if (found != 1) {
            status =
                fem_fail(FEM_BAD_INPUT, "%s: element %lld is in %d of the regions that $Limber names, expected one",
                         r->draft.path, fem_numbers_at(&r->draft.element_numbers, e), found);
            goto done;
        }
    }
done:
    return status;
}

fem_status msh_make_groups(msh_reader *r) {
    fem_status status = FEM_OK;
    bool       joined = false, partition = true, any = false;
    int        volumes = 0;
    if (r->draft.mesh.element_count == 0) return FEM_OK; // fem_draft_finish says so
    if (r->has_notes) return follow_notes(r);
    FEM_TRY(join_elements(r, &joined));
    if (joined) goto done;
    for (int k = 0; k < r->entity_count; k++) {
        if (!is_volume(&r->entities[k])) continue;
        volumes++;
        partition = partition && r->entities[k].count == 1;
        any = any || r->entities[k].count > 0;
    }
    if (any && !partition)
        FEM_TRY(make_element_sets(r));
    else if (any || volumes > 1)
        FEM_TRY(make_regions(r, any));
done:
    return status;
}

// Materials and sections of an input deck. *ELASTIC is our St. Venant-Kirchhoff material: with large deformation
// CalculiX computes the second Piola-Kirchhoff stress from the Green strain by the same constants, too.
#include "libfem/mesh_inp.h"

#include <math.h>
#include <string.h>

fem_status inp_read_material(inp_reader *r, const inp_keyword *k) {
    fem_status   status = FEM_OK;
    inp_material fresh = {.material = fem_material_default()};
    char         name[INP_NAME];
    bool         more;
    FEM_TRY(inp_name(r, k, "NAME", name));
    if (strlen(name) >= sizeof fresh.material.name) {
        status = fem_text_fail(r->scan, "a material has more than %zu letters", sizeof fresh.material.name - 1);
        goto done;
    }
    for (int i = 0; i < r->material_count; i++)
        if (inp_same(r->materials[i].material.name, name)) {
            status = fem_text_fail(r->scan, "material %s is defined twice", name);
            goto done;
        }
    if (r->material_count == FEM_MOST_NAMES) {
        status = fem_text_fail(r->scan, "more than %d materials", FEM_MOST_NAMES);
        goto done;
    }
    FEM_TRY(
        fem_grow((void **)&r->materials, &r->material_capacity, (size_t)r->material_count + 1, sizeof *r->materials));
    memcpy(fresh.material.name, name, sizeof fresh.material.name);
    r->current = r->material_count;
    r->materials[r->material_count++] = fresh;
    FEM_TRY(inp_next_data(r, &more));
    if (more) status = fem_text_expected(r->scan, "a keyword such as *ELASTIC");
done:
    return status;
}

static fem_status current_material(inp_reader *r, const char *keyword, inp_material **material) {
    if (r->current < 0) return fem_text_fail(r->scan, "%s must come after *MATERIAL", keyword);
    *material = &r->materials[r->current];
    return FEM_OK;
}

// Numbers that may go on over lines.
static fem_status read_numbers(inp_reader *r, int count, double *values) {
    fem_status status = FEM_OK;
    bool       more;
    for (int i = 0; i < count; i++) {
        if (i == 0 || fem_text_at_line_end(r->scan)) {
            FEM_TRY(inp_next_data(r, &more));
            if (!more) {
                status = fem_text_fail(r->scan, "expected %d numbers, found %d", count, i);
                goto done;
            }
        }
        FEM_TRY(fem_text_double(r->scan, "a number", &values[i]));
    }
done:
    return status;
}

// The values behind the first line belong to other temperatures.
static fem_status skip_temperatures(inp_reader *r, const char *keyword) {
    fem_status status = FEM_OK;
    bool       more, some = false;
    fem_text_leave_line(r->scan); // a temperature may stand behind the values
    for (;;) {
        FEM_TRY(inp_next_data(r, &more));
        if (!more) break;
        some = true;
        fem_text_leave_line(r->scan);
    }
    if (some)
        FEM_TRY(fem_remark(r->draft.remarks, "material %s: %s depends on temperature, the first values are taken",
                           r->materials[r->current].material.name, keyword));
done:
    return status;
}

fem_status inp_read_density(inp_reader *r) {
    fem_status    status = FEM_OK;
    inp_material *m = NULL;
    double        density = 0;
    FEM_TRY(current_material(r, "*DENSITY", &m));
    FEM_TRY(read_numbers(r, 1, &density));
    if (!(density > 0)) {
        status = fem_text_fail(r->scan, "the density is %g, expected > 0", density);
        goto done;
    }
    m->material.density = density;
    m->has_density = true;
    FEM_TRY(skip_temperatures(r, "*DENSITY"));
done:
    return status;
}

// E, nu; or E1 E2 E3 nu12 nu13 nu23 G12 G13 G23, where nu31 = nu13 E3/E1.
fem_status inp_read_elastic(inp_reader *r, const inp_keyword *k) {
    fem_status      status = FEM_OK;
    inp_material   *m = NULL;
    double          p[9];
    const fem_word *type = inp_parameter(k, "TYPE");
    char            text[INP_NAME] = "ISOTROPIC", quote[FEM_QUOTE];
    FEM_TRY(current_material(r, "*ELASTIC", &m));
    if (type) FEM_TRY(inp_name(r, k, "TYPE", text));
    if (inp_same(text, "ISOTROPIC") || inp_same(text, "ISO")) {
        FEM_TRY(read_numbers(r, 2, p));
        m->material.kind = FEM_STVK;
        m->material.young = p[0], m->material.poisson = p[1];
    } else if (inp_same(text, "ENGINEERING CONSTANTS")) {
        FEM_TRY(read_numbers(r, 9, p));
        m->material.kind = FEM_ORTHOTROPIC;
        memcpy(m->material.young3, p, 3 * sizeof *p);
        m->material.poisson3[0] = p[3], m->material.poisson3[1] = p[5], m->material.poisson3[2] = p[4] * (p[2] / p[0]);
        m->material.shear3[0] = p[6], m->material.shear3[1] = p[8], m->material.shear3[2] = p[7];
    } else {
        status =
            fem_text_fail(r->scan, "*ELASTIC, TYPE=%s is not supported, expected ISOTROPIC or ENGINEERING CONSTANTS",
                          fem_quote(quote, text, strlen(text)));
        goto done;
    }
    status = fem_material_check(&m->material);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s:%lld: ", r->scan->path, r->scan->line);
        goto done;
    }
    m->has_elastic = true;
    FEM_TRY(skip_temperatures(r, "*ELASTIC"));
done:
    return status;
}

// Two points: a on the first axis, b in the plane of the first two. The columns of the frame are the axes.
fem_status inp_read_orientation(inp_reader *r, const inp_keyword *k) {
    fem_status      status = FEM_OK;
    inp_orientation o = {.rectangular = true};
    const fem_word *system = inp_parameter(k, "SYSTEM");
    char            text[INP_NAME];
    double          p[6], a[3], b[3], c[3];
    bool            more;
    FEM_TRY(inp_name(r, k, "NAME", o.name));
    if (system) {
        FEM_TRY(inp_name(r, k, "SYSTEM", text));
        o.rectangular = inp_same(text, "RECTANGULAR");
    }
    FEM_TRY(read_numbers(r, 6, p));
    FEM_TRY(fem_text_end_line(r->scan));
    vec3_cross(c, p, p + 3);
    double first = vec3_norm(p), third = vec3_norm(c);
    if (o.rectangular && !(first > 0 && third > 0 && isfinite(first) && isfinite(third))) {
        status = fem_text_fail(r->scan, "orientation %s: its two points do not span a plane", o.name);
        goto done;
    }
    for (int i = 0; i < 3 && o.rectangular; i++) a[i] = p[i] / first, c[i] /= third;
    if (o.rectangular) {
        vec3_cross(b, c, a);
        for (int i = 0; i < 3; i++) o.frame[3 * i] = a[i], o.frame[3 * i + 1] = b[i], o.frame[3 * i + 2] = c[i];
    }
    FEM_TRY(inp_next_data(r, &more));
    if (more) { // a further rotation about an axis
        FEM_TRY(fem_text_double(r->scan, "the axis of a rotation", &p[0]));
        FEM_TRY(fem_text_double(r->scan, "the angle of a rotation", &p[1]));
        FEM_TRY(fem_text_end_line(r->scan));
        o.rectangular = o.rectangular && p[1] == 0;
    }
    FEM_TRY(fem_grow((void **)&r->orientations, &r->orientation_capacity, r->orientation_count + 1,
                     sizeof *r->orientations));
    r->orientations[r->orientation_count++] = o;
done:
    return status;
}

fem_status inp_read_section(inp_reader *r, const inp_keyword *k) {
    fem_status  status = FEM_OK;
    inp_section section = {.assembly = r->assembly, .set = -1};
    bool        more;
    FEM_TRY(inp_name(r, k, "ELSET", section.set_name));
    FEM_TRY(inp_name(r, k, "MATERIAL", section.material));
    if (inp_parameter(k, "ORIENTATION")) FEM_TRY(inp_name(r, k, "ORIENTATION", section.orientation));
    if (r->section_count == FEM_MOST_NAMES) {
        status = fem_text_fail(r->scan, "more than %d sections", FEM_MOST_NAMES);
        goto done;
    }
    FEM_TRY(fem_grow((void **)&r->sections, &r->section_capacity, r->section_count + 1, sizeof *r->sections));
    r->sections[r->section_count++] = section;
    for (;;) { // thickness and the like
        FEM_TRY(inp_next_data(r, &more));
        if (!more) goto done;
        fem_text_leave_line(r->scan);
    }
done:
    return status;
}

// ---- regions ---------------------------------------------------------------------------------------------------

// Materials in the order of the file; what has no *ELASTIC is nobody's choice.
static fem_status make_materials(inp_reader *r) {
    fem_status status = FEM_OK;
    int        index;
    for (int i = 0; i < r->material_count; i++) {
        const inp_material *m = &r->materials[i];
        fem_material        material = m->has_elastic ? m->material : fem_material_default();
        if (!m->has_elastic)
            FEM_TRY(fem_remark(r->draft.remarks, "material %s has no *ELASTIC: left unspecified", m->material.name));
        else if (!m->has_density)
            FEM_TRY(fem_remark(r->draft.remarks, "material %s has no *DENSITY: %g is taken", m->material.name,
                               m->material.density));
        FEM_TRY(fem_draft_material(&r->draft, &material, &index));
    }
done:
    return status;
}

// The material of a section, turned by its orientation where that matters.
static fem_status section_material(inp_reader *r, const inp_section *s, int *material) {
    const char *path = r->draft.path, *set = r->sets[s->set].name;
    *material = -1;
    for (int i = 0; i < r->material_count; i++)
        if (inp_same(r->materials[i].material.name, s->material)) *material = i;
    if (*material < 0)
        return fem_fail(FEM_BAD_INPUT, "%s: the section of %s has the material %s, which is not there", path, set,
                        s->material);
    if (!s->orientation[0] || r->materials[*material].material.kind != FEM_ORTHOTROPIC) return FEM_OK;
    const inp_orientation *o = NULL;
    for (size_t i = 0; i < r->orientation_count; i++)
        if (inp_same(r->orientations[i].name, s->orientation)) o = &r->orientations[i];
    if (!o || !o->rectangular)
        return fem_fail(FEM_BAD_INPUT, "%s: the section of %s has the orientation %s, which %s", path, set,
                        s->orientation, o ? "is not rectangular" : "is not there");
    fem_material *m = &r->draft.mesh.materials[*material], turned = *m;
    memcpy(turned.frame, o->frame, sizeof turned.frame);
    bool fresh = true; // another section may have turned it already
    for (size_t i = 0; &r->sections[i] < s; i++) fresh = fresh && !inp_same(r->sections[i].material, s->material);
    if (fresh || memcmp(m->frame, turned.frame, sizeof m->frame) == 0) {
        *m = turned;
        return FEM_OK;
    }
    return fem_draft_material(&r->draft, &turned, material);
}

static fem_status make_region(inp_reader *r, const inp_section *s) {
    fem_status           status = FEM_OK;
    fem_mesh            *m = &r->draft.mesh;
    const fem_draft_set *set = &r->draft.sets[r->sets[s->set].draft_set];
    int                  material = 0, region = 0;
    FEM_TRY(section_material(r, s, &material));
    if (r->sets[s->set].only_faces) {
        FEM_TRY(
            fem_remark(r->draft.remarks, "the section of %s is passed over: its elements have no volume", set->name));
        goto done;
    }
    if (set->count == 0) {
        status = fem_fail(FEM_BAD_INPUT, "%s: the section of %s has no solid elements", r->draft.path, set->name);
        goto done;
    }
    FEM_TRY(fem_draft_region(&r->draft, set->name, material, &region));
    for (int i = 0; i < set->count; i++) {
        int element = set->items[i];
        if (m->region[element] >= 0 && m->region[element] != region) {
            status = fem_fail(FEM_BAD_INPUT, "%s: element %lld is in two *SOLID SECTIONs", r->draft.path,
                              fem_numbers_at(&r->draft.element_numbers, element));
            goto done;
        }
        m->region[element] = region;
    }
done:
    return status;
}

fem_status inp_make_regions(inp_reader *r) {
    fem_status status = FEM_OK;
    fem_mesh  *m = &r->draft.mesh;
    int        region;
    FEM_TRY(make_materials(r));
    for (size_t i = 0; i < r->section_count; i++) FEM_TRY(make_region(r, &r->sections[i]));
    if (r->section_count == 0) {
        if (m->material_count > 1) {
            status = fem_fail(FEM_BAD_INPUT, "%s: has %d materials but no *SOLID SECTION that says where they are",
                              r->draft.path, m->material_count);
            goto done;
        }
        if (m->material_count == 1) FEM_TRY(fem_draft_region(&r->draft, "all", 0, &region));
        for (int e = 0; e < m->element_count; e++) m->region[e] = 0;
    }
    for (int e = 0; e < m->element_count; e++)
        if (m->region[e] < 0) {
            status = fem_fail(FEM_BAD_INPUT, "%s: element %lld is in no *SOLID SECTION", r->draft.path,
                              fem_numbers_at(&r->draft.element_numbers, e));
            goto done;
        }
    for (int i = r->set_count - 1; i >= 0; i--) // sets that are there for a section, or for vertices
        if (r->sets[i].of_elements && (r->sets[i].only_faces || (r->sets[i].has_section && !r->sets[i].listed)))
            fem_draft_set_drop(&r->draft, r->sets[i].draft_set);
done:
    return status;
}

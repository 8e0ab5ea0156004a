// Materials from the command line: --material and its parameters over what the mesh file says.
#include "app/app.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

app_material_options app_material_none(void) {
    return (app_material_options){.young = NAN,
                                  .poisson = NAN,
                                  .density = NAN,
                                  .mu01 = NAN,
                                  .mu10 = NAN,
                                  .v1 = NAN,
                                  .mu = NAN,
                                  .chain = NAN,
                                  .bulk = NAN};
}

// Readers of formats without materials leave the one that fem_mesh_allocate puts in.
bool app_mesh_has_material(const fem_mesh *mesh) {
    return !(mesh->material_count == 1 && fem_material_is_default(&mesh->materials[0]));
}

static bool by_young(fem_material_kind kind) {
    return kind == FEM_LINEAR || kind == FEM_STVK || kind == FEM_NEOHOOKEAN;
}

// One parameter: the option when it is given, else the file's value when that means something here, else it is missing.
static fem_status choose(double *value, const char *option, double given, bool known, const fem_material *m) {
    if (!isnan(given))
        *value = given;
    else if (!known)
        return fem_fail(FEM_BAD_INPUT, "%s is needed: material \"%s\" of the mesh file does not say it", option,
                        m->name);
    return FEM_OK;
}

// "a,b,c" (or nine numbers for a frame) into values.
static fem_status read_list(const char *option, const char *text, int count, double *values) {
    const char *at = text;
    for (int i = 0; i < count; i++) {
        char *end;
        values[i] = strtod(at, &end);
        bool ended = i + 1 < count ? *end != ',' : *end != 0;
        if (end == at || ended || !isfinite(values[i]))
            return fem_fail(FEM_BAD_INPUT, "%s is \"%s\", expected %d numbers with commas between them", option, text,
                            count);
        at = end + 1;
    }
    return FEM_OK;
}

// The nine constants: options over the file's own; a file with E and nu gives the isotropic ones.
static fem_status choose_orthotropic(fem_material *m, const app_material_options *o, bool known) {
    fem_status status = FEM_OK;
    bool       isotropic = known && by_young(m->kind);
    if (isotropic) {
        for (int i = 0; i < 3; i++) {
            m->young3[i] = m->young;
            m->poisson3[i] = m->poisson;
            m->shear3[i] = m->young / (2 * (1 + m->poisson));
        }
        for (int i = 0; i < 9; i++) m->frame[i] = i % 4 == 0;
    }
    bool complete = isotropic || (known && m->kind == FEM_ORTHOTROPIC);
    if (!complete && (!o->young3 || !o->poisson3 || !o->shear3))
        return fem_fail(FEM_BAD_INPUT,
                        "--young3, --poisson3 and --shear3 are needed: material \"%s\" of the mesh file has no "
                        "orthotropic constants",
                        m->name);
    if (o->young3) FEM_TRY(read_list("--young3", o->young3, 3, m->young3));
    if (o->poisson3) FEM_TRY(read_list("--poisson3", o->poisson3, 3, m->poisson3));
    if (o->shear3) FEM_TRY(read_list("--shear3", o->shear3, 3, m->shear3));
    if (o->frame) FEM_TRY(read_list("--frame", o->frame, 9, m->frame));
done:
    return status;
}

static fem_status apply_to_one(fem_material *m, fem_material_kind kind, bool known, bool needs_density,
                               const app_material_options *o) {
    fem_status status = FEM_OK;
    if (needs_density || !isnan(o->density)) FEM_TRY(choose(&m->density, "--density", o->density, known, m));
    if (by_young(kind)) {
        FEM_TRY(choose(&m->young, "--young", o->young, known && by_young(m->kind), m));
        FEM_TRY(choose(&m->poisson, "--poisson", o->poisson, known && by_young(m->kind), m));
    } else if (kind == FEM_ORTHOTROPIC) {
        FEM_TRY(choose_orthotropic(m, o, known));
    } else if (kind == FEM_MOONEY_RIVLIN) {
        FEM_TRY(choose(&m->mu01, "--mu01", o->mu01, known && m->kind == kind, m));
        FEM_TRY(choose(&m->mu10, "--mu10", o->mu10, known && m->kind == kind, m));
        FEM_TRY(choose(&m->v1, "--v1", o->v1, known && m->kind == kind, m));
    } else {
        FEM_TRY(choose(&m->mu, "--mu", o->mu, known && m->kind == kind, m));
        FEM_TRY(choose(&m->chain, "--chain", o->chain, known && m->kind == kind, m));
        FEM_TRY(choose(&m->bulk, "--bulk", o->bulk, known && m->kind == kind, m));
    }
    m->kind = kind;
    FEM_TRY(fem_material_check(m));
done:
    return status;
}

// A parameter that no material of the body reads is a mistake, not a wish to be ignored.
static fem_status refuse_useless(const app_material_options *o, bool young, bool orthotropic, bool mooney,
                                 bool arruda) {
    const struct {
        const char *option;
        bool        given, used;
    } parameters[] = {
        {"--young", !isnan(o->young), young},
        {"--poisson", !isnan(o->poisson), young},
        {"--mu01", !isnan(o->mu01), mooney},
        {"--mu10", !isnan(o->mu10), mooney},
        {"--v1", !isnan(o->v1), mooney},
        {"--mu", !isnan(o->mu), arruda},
        {"--chain", !isnan(o->chain), arruda},
        {"--bulk", !isnan(o->bulk), arruda},
        {"--young3", o->young3 != NULL, orthotropic},
        {"--poisson3", o->poisson3 != NULL, orthotropic},
        {"--shear3", o->shear3 != NULL, orthotropic},
        {"--frame", o->frame != NULL, orthotropic},
    };
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        if (parameters[i].given && !parameters[i].used)
            return fem_fail(FEM_BAD_INPUT, "%s has no meaning for this material; --material chooses another",
                            parameters[i].option);
    return FEM_OK;
}

static fem_status wanted_kind(const app_material_options *o, fem_material_kind *kind) {
    if (fem_material_kind_from_name(kind, o->kind)) return FEM_OK;
    const char *names[FEM_MATERIAL_KINDS];
    char        list[256] = "";
    for (int i = 0; i < FEM_MATERIAL_KINDS; i++) {
        names[i] = fem_material_kind_name((fem_material_kind)i);
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    const char *nearest = app_nearest(o->kind, FEM_MATERIAL_KINDS, names);
    if (nearest) return fem_fail(FEM_BAD_INPUT, "--material is \"%s\" (did you mean \"%s\"?)", o->kind, nearest);
    return fem_fail(FEM_BAD_INPUT, "--material is \"%s\", expected one of %s", o->kind, list);
}

fem_status app_material_apply(fem_mesh *mesh, const char *path, bool needs_density,
                              const app_material_options *options) {
    fem_status        status = FEM_OK;
    bool              known = app_mesh_has_material(mesh);
    bool              used[FEM_MATERIAL_KINDS] = {false};
    fem_material_kind kind = FEM_STVK;
    bool             *in_use = fem_calloc((size_t)mesh->material_count, sizeof *in_use);
    if (!in_use) return fem_fail(FEM_NO_MEMORY, "no memory for %d materials", mesh->material_count);
    if (options->kind) FEM_TRY(wanted_kind(options, &kind));
    for (int e = 0; e < mesh->element_count; e++) in_use[mesh->regions[mesh->region[e]].material] = true;
    for (int i = 0; i < mesh->material_count; i++) {
        fem_material *m = &mesh->materials[i];
        if (!in_use[i]) continue; // Vega's files carry a default material that no element has
        if (!options->kind) kind = m->kind;
        used[kind] = true;
        status = apply_to_one(m, kind, known, needs_density, options);
        if (status != FEM_OK) {
            fem_fail_prefix(status, "%s: ", path);
            goto done;
        }
    }
    FEM_TRY(refuse_useless(options, used[FEM_LINEAR] || used[FEM_STVK] || used[FEM_NEOHOOKEAN], used[FEM_ORTHOTROPIC],
                           used[FEM_MOONEY_RIVLIN], used[FEM_ARRUDA_BOYCE]));
done:
    fem_free(in_use);
    return status;
}

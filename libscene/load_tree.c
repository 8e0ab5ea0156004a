// An object that is cut into domains: the cut itself, and what each domain has of its own.
#include "libscene/internal.h"

#include <math.h>
#include <string.h>

fem_status scene_find_domain(const scene_reader *reader, const cJSON *node, const char *name, const domain_tree *tree,
                             int *domain) {
    scene_suggestion suggestion;
    size_t           digits = strspn(name, "0123456789");
    int              number = 0;
    for (*domain = 0; *domain < tree->count; ++*domain)
        if (strcmp(tree->name[*domain], name) == 0) return FEM_OK;
    for (size_t i = 0; i < digits && i < 8; i++) number = 10 * number + (name[i] - '0');
    if (digits > 0 && digits < 8 && !name[digits] && number < tree->count) {
        *domain = number;
        return FEM_OK;
    }
    suggestion_start(&suggestion, name);
    for (int i = 0; i < tree->count; i++) suggestion_offer(&suggestion, tree->name[i]);
    return reader_fail(reader, node, "unknown domain \"%.60s\"%s, or a number from 0 to %d", name,
                       suggestion_text(&suggestion), tree->count - 1);
}

// Polynomials need materials that have them.
static fem_status check_forces(const scene_reader *reader, const cJSON *node, const scene *s, int domain,
                               solver_forces_kind kind) {
    const fem_mesh    *mesh = &s->parts[s->object].mesh;
    const domain_tree *tree = &s->tree.domains;
    for (int i = tree->element_start[domain]; kind == SOLVER_FORCES_POLYNOMIAL && i < tree->element_start[domain + 1];
         i++) {
        const fem_region *region = &mesh->regions[mesh->region[tree->elements[i]]];
        fem_material_kind material = mesh->materials[region->material].kind;
        if (material != FEM_STVK && material != FEM_ORTHOTROPIC)
            return reader_fail(reader, node,
                               "the material of the region \"%.60s\" is %s, which has no polynomial; stvk and "
                               "orthotropic have, and forces \"cubature\", \"full\" or \"linear\" take any material",
                               region->name, fem_material_kind_name(material));
    }
    return FEM_OK;
}

static fem_status read_domain(scene_reader *reader, const cJSON *item, scene *s) {
    fem_status             status = FEM_OK;
    raw_domain             raw = {0};
    int                    domain;
    solver_domain_options *own;
    FEM_TRY(scene_find_domain(reader, item, item->string, &s->tree.domains, &domain));
    FEM_TRY(reader_table(reader, item, &scene_domain_table, &raw));
    own = &s->tree.own[domain];
    if (raw.modes >= 0) own->modes = raw.modes;
    if (raw.derivatives >= 0) own->derivatives = raw.derivatives;
    if (raw.forces > 0) own->forces = (solver_forces_kind)(raw.forces - 1);
    if (!isnan(raw.stiffness) && !isnan(raw.frequency))
        return reader_fail(reader, item, "has \"stiffness\" and \"frequency\", which are the same thing, expected one");
    if (!isnan(raw.stiffness)) own->stiffness = raw.stiffness;
    if (!isnan(raw.frequency)) own->stiffness = raw.frequency * raw.frequency;
    if (!isnan(raw.damping.mass)) own->damping_mass = raw.damping.mass;
    if (!isnan(raw.damping.stiffness)) own->damping_stiffness = raw.damping.stiffness;
    if (own->modes == 0) return FEM_OK;
    FEM_TRY(check_forces(reader, item, s, domain, own->forces));
done:
    return status;
}

static fem_status read_domains(scene_reader *reader, const cJSON *node, scene *s) {
    fem_status status = FEM_OK;
    size_t     length = reader_enter(reader, "domains");
    for (const cJSON *item = node ? node->child : NULL; item; item = item->next) {
        size_t inner = reader_enter(reader, item->string);
        FEM_TRY(read_domain(reader, item, s));
        reader_leave(reader, inner);
    }
    reader_leave(reader, length);
done:
    return status;
}

int scene_domain_most_modes(const scene_part *part, const domain_part *piece, int domain) {
    int held = piece->interface_count;
    for (int k = 0; domain == 0 && k < part->fixed.count; k++)
        held += domain_part_local(piece, part->fixed.items[k]) >= 0;
    return solver_class_most_modes(piece->mesh.vertex_count, held);
}

// More modes than a domain can have, whichever key asked for them; and domains that can have none. One whose vertices
// are all on the interface to its parent moves with that as a rigid body; only where the cut was given is there one.
static fem_status check_modes(const scene_reader *reader, const cJSON *node, scene *s) {
    fem_status         status = FEM_OK;
    const scene_part  *part = &s->parts[s->object];
    const domain_tree *tree = &s->tree.domains;
    int               *owned = fem_calloc((size_t)tree->count, sizeof *owned);
    if (!owned) return fem_fail(FEM_NO_MEMORY, "no memory for %d domains", tree->count);
    for (int v = 0; v < tree->vertex_count; v++)
        if (tree->vertex_owner[v] >= 0) owned[tree->vertex_owner[v]]++;
    for (int i = 0; i < tree->count; i++) {
        domain_part piece = {0};
        int         asked = s->tree.own[i].modes;
        if (asked == 0 || (asked < 3 && owned[i] > 0)) continue; // a vertex has three
        FEM_TRY(domain_part_create(&piece, &part->mesh, tree, i));
        int most = scene_domain_most_modes(part, &piece, i);
        domain_part_destroy(&piece);
        if (asked > 0 && most == 0 && i > 0)
            status = reader_fail(reader, node,
                                 "%s: %d modes were asked for, but all of its vertices lie on the interface to its "
                                 "parent; 0 modes for it would do, which make it rigid, or one region or set for both",
                                 tree->name[i], asked);
        else if (asked > most)
            status = reader_fail(reader, node,
                                 "%s: %d modes were asked for, but it has at most %d; fewer would do, or "
                                 "\"total\", which is shared out",
                                 tree->name[i], asked, most);
        if (status != FEM_OK) goto done;
        if (most == 0 && i > 0 && s->tree.held_count++ == 0) s->tree.held_first = i;
    }
done:
    fem_free(owned);
    return status;
}

solver_forces_kind scene_forces_in_tree(scene_forces_kind kind) {
    static const solver_forces_kind kinds[] = {[SCENE_POLYNOMIAL] = SOLVER_FORCES_POLYNOMIAL,
                                               [SCENE_LINEAR] = SOLVER_FORCES_LINEAR,
                                               [SCENE_ALL_ELEMENTS] = SOLVER_FORCES_FULL,
                                               [SCENE_CUBATURE] = SOLVER_FORCES_CUBATURE};
    return kinds[kind];
}

static void copy_options(const raw_decompose *raw, const scene_part *part, scene *s) {
    solver_assembly_options *a = &s->tree.assembly;
    *a = solver_assembly_default_options();
    modes_recipe recipe = part->modes.recipe;
    recipe.keep = true;
    if (!part->modes.linear) recipe.linear = 0; // by the places of each domain
    a->class.recipe = recipe;
    a->class.wrenches = raw->wrenches;
    a->class.forces = scene_forces_in_tree(part->forces);
    a->class.training = part->training;
    a->class.quadrature = part->quadrature;
    a->class.mass = s->solver.mass;
    a->damping_mass = s->solver.damping_mass;
    a->damping_stiffness = s->tree.damping_ratio > 0 ? SOLVER_DAMPING_BY_RATIO : s->solver.damping_stiffness;
    a->damping_ratio = s->tree.damping_ratio;
    a->spring_stiffness = raw->springs.stiffness;
    a->spring_damping = raw->springs.damping;
    if (raw->modes >= 0)
        a->class.modes = raw->modes;
    else if (raw->total > 0)
        a->total = raw->total;
    else
        a->total = 20 * s->tree.domains.count, a->class.spare = 6;
}

fem_status scene_read_decompose(scene_reader *reader, const cJSON *object, const raw_decompose *raw, scene *s) {
    fem_status        status = FEM_OK;
    const scene_part *part = &s->parts[s->object];
    const cJSON      *node = cJSON_GetObjectItemCaseSensitive(object, "decompose");
    domain_options    cut = {.method = (domain_method)raw->method,
                             .count = raw->count,
                             .loops = (domain_loops)raw->loops,
                             .feet = (domain_feet)raw->feet,
                             .fixed_count = part->fixed.count,
                             .fixed = part->fixed.items};
    size_t            length = reader_enter(reader, "decompose");
    if (s->method != SCENE_REDUCED)
        return reader_fail(reader, node,
                           "domains are for reduced bodies, expected \"solver\": {\"method\": \"reduced\"}");
    if (part->modes.method == SCENE_MODES_SKETCH || part->modes.method == SCENE_MODES_FILE)
        return reader_fail(reader, node,
                           "the part's modes are a %s, but the bases of domains are \"krylov\" or \"lanczos\"",
                           part->modes.method == SCENE_MODES_FILE ? "file" : "sketch");
    if (part->poses)
        return reader_fail(
            reader, node,
            "the part's training poses are given, but those of domains are made; \"sampling\": \"loads\" "
            "or \"gaussian\" would do");
    if (raw->modes >= 0 && raw->total > 0)
        return reader_fail(reader, node, "has \"modes\" for each domain and a \"total\" to share out, expected one");
    FEM_TRY(reader_prefix(reader, node, domain_decompose(&s->tree.domains, &part->mesh, &cut)));
    copy_options(raw, part, s);
    s->tree.own = fem_alloc((size_t)s->tree.domains.count, sizeof *s->tree.own);
    if (!s->tree.own) return fem_fail(FEM_NO_MEMORY, "no memory for %d domains", s->tree.domains.count);
    for (int i = 0; i < s->tree.domains.count; i++) s->tree.own[i] = solver_assembly_domain_options(&s->tree.assembly);
    s->tree.assembly.domains = s->tree.own;
    FEM_TRY(read_domains(reader, raw->domains, s));
    for (int i = 0; i < s->tree.domains.count; i++)
        if (s->tree.own[i].modes != 0) FEM_TRY(check_forces(reader, node, s, i, s->tree.own[i].forces));
    FEM_TRY(check_modes(reader, node, s));
    if ((s->tree.domains.closures.count > 0 || s->tree.domains.grounds.count > 0) &&
        s->tree.options.subtree != SOLVER_ARTICULATED)
        return reader_fail(reader, node, "needs springs, which work with \"subtree\": \"articulated\" only");
    reader_leave(reader, length);
done:
    return status;
}

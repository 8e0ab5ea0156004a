// The cubature of a class: its training, its place in the cache file, what the user is told, a picture of it.
#include "libscene/class.h"
#include "libscene/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

fem_status scene_cubature_train(scene_class *c, const scene_part *part, const fem_body *body, const fem_sparse *K,
                                const fem_sparse *M, const char *path, fem_hash key, const fem_progress *progress) {
    fem_status                status = FEM_OK;
    cubature_training_options options = part->training;
    double                   *rayleigh = NULL, *u = NULL, *given = NULL;
    char                     *checkpoint = NULL;
    if (path) {
        size_t size = strlen(path) + 16;
        checkpoint = fem_alloc(size, 1);
        if (!checkpoint) return fem_fail(FEM_NO_MEMORY, "no memory for the name of a file");
        snprintf(checkpoint, size, "%s.training", path);
        options.checkpoint = checkpoint;
        options.checkpoint_key = key;
    }
    rayleigh = fem_alloc((size_t)c->basis.r, sizeof *rayleigh);
    if (!rayleigh) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d modes", c->basis.r);
        goto done;
    }
    FEM_TRY(cubature_rayleigh(&c->basis, K, M, rayleigh));
    if (part->poses) {
        FEM_TRY(scene_poses_read(part, &options.given_count, &u));
        given = fem_alloc((size_t)options.given_count, (size_t)c->basis.r * sizeof *given);
        if (!given) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d training poses", options.given_count);
            goto done;
        }
        FEM_TRY(scene_poses_project(&c->basis, M, options.given_count, u, given, &c->lost));
        options.given = given;
    }
    FEM_TRY(cubature_train(&c->rule, body, c->basis.r, c->basis.U, rayleigh, &options, progress, &c->training));
done:
    fem_free(rayleigh), fem_free(u), fem_free(given);
    fem_free(checkpoint);
    return status;
}

// ---- the file ------------------------------------------------------------------------------------------------------

int scene_cubature_items(const scene_stored *stored, int size[3], double numbers[6], fem_store_item *items) {
    const cubature_training_report *t = stored->training;
    const cubature_rule            *rule = stored->rule;
    size_t                          weights = (size_t)rule->count * (rule->modal ? (size_t)rule->r : 1);
    size[0] = rule->count, size[1] = rule->modal, size[2] = t->poses;
    numbers[0] = t->fit_error, numbers[1] = t->held_out_error, numbers[2] = t->modal_error;
    numbers[3] = t->amplitude, numbers[4] = t->inverted, numbers[5] = t->dropped;
    items[0] = (fem_store_item){"rule", FEM_STORE_INT, 3, size};
    items[1] = (fem_store_item){"training", FEM_STORE_DOUBLE, 6, numbers};
    items[2] = (fem_store_item){"elements", FEM_STORE_INT, (size_t)rule->count, rule->elements};
    items[3] = (fem_store_item){"weights", FEM_STORE_DOUBLE, weights, rule->weights};
    return SCENE_CUBATURE_ITEMS;
}

fem_status scene_cubature_read(const scene_stored *stored, const fem_mesh *mesh,
                               const cubature_training_options *options, const fem_store *store, const char *path) {
    cubature_rule *rule = stored->rule;
    const int     *size = fem_store_find(store, "rule", FEM_STORE_INT, 3);
    const double  *numbers = fem_store_find(store, "training", FEM_STORE_DOUBLE, 6);
    bool           sane = size && numbers && size[0] >= 1 && size[0] <= mesh->element_count && (size[1] | 1) == 1 &&
                size[1] == (options->method == CUBATURE_MODAL);
    size_t     count = sane ? (size_t)size[0] : 0, weights = sane && size[1] ? count * (size_t)stored->basis->r : count;
    const int *elements = fem_store_find(store, "elements", FEM_STORE_INT, count);
    const double *w = fem_store_find(store, "weights", FEM_STORE_DOUBLE, weights);
    if (!sane || !elements || !w) return fem_fail(FEM_BAD_INPUT, "%s: its arrays are not those of this part", path);
    *rule = (cubature_rule){.r = stored->basis->r, .count = size[0], .modal = size[1]};
    rule->elements = fem_copy(elements, count, sizeof *elements);
    rule->weights = fem_copy(w, weights, sizeof *w);
    *stored->training = (cubature_training_report){.poses = size[2],
                                                   .elements = size[0],
                                                   .fit_error = numbers[0],
                                                   .held_out_error = numbers[1],
                                                   .modal_error = numbers[2],
                                                   .amplitude = numbers[3],
                                                   .inverted = (int)numbers[4],
                                                   .dropped = (int)numbers[5],
                                                   .reached = numbers[0] <= options->error};
    if (!rule->elements || !rule->weights)
        return fem_fail(FEM_NO_MEMORY, "no memory for a rule of %zu elements", count);
    return FEM_OK;
}

fem_status scene_cubature_finish(scene_class *c, const fem_body *body) {
    cubature_rule whole = {0};
    if (c->rule.B) return FEM_OK;
    fem_status status = cubature_rule_create(&whole, body, c->basis.r, c->basis.U, c->rule.count, c->rule.elements,
                                             c->rule.modal, c->rule.weights);
    if (status != FEM_OK) return status;
    cubature_rule_destroy(&c->rule);
    c->rule = whole;
    return FEM_OK;
}

// ---- for the user --------------------------------------------------------------------------------------------------

// Held-out errors of good rules are up to twice those of their fits; below 1% they do no harm.
enum { FAR_ABOVE = 3 };

static bool is_far_above(const cubature_training_report *t, const scene_part *part) {
    return t->held_out_error > fmax(0.01, FAR_ABOVE * fmax(t->fit_error, part->training.error));
}

static const char *what_helps(const scene_part *part) {
    return part->poses ? "more given poses, or forces.sampling \"loads\", may help where the motion is another"
           : part->training.loaded
               ? "more forces.poses or a smaller forces.displacement may help"
               : "more forces.poses, a smaller forces.displacement or forces.sampling \"loads\" may help";
}

static const char *what_reaches(const cubature_training_report *t, const scene_part *part) {
    int most = part->training.elements;
    return most > 0 && t->elements >= most           ? "more forces.elements may reach it"
           : part->training.method != CUBATURE_MODAL ? "a larger forces.error would be reached"
           : part->poses                             ? "more given poses may reach it"
                                                     : "more forces.poses may reach it";
}

fem_status scene_cubature_note(const scene_class *c, const scene_part *part, char **result) {
    const cubature_training_report *t = &c->training;
    char                            text[1200];
    size_t                          at = 0;
    *result = NULL;
    if (part->forces != SCENE_CUBATURE) return FEM_OK;
    text[0] = 0;
    if (!t->reached)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "cubature: the error is %.3g with %d elements, %g was asked for; %s", t->fit_error,
                               t->elements, part->training.error, what_reaches(t, part));
    if (is_far_above(t, part) && at < sizeof text)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%sthe error is %.*g%% at the %d poses of the training, but %.*g%% at %d others that "
                               "were held out; %s",
                               at > 0 ? "; " : "cubature: ", cubature_error_digits(t->fit_error), 100 * t->fit_error,
                               t->poses, cubature_error_digits(t->held_out_error), 100 * t->held_out_error,
                               part->training.held_out, what_helps(part));
    if (t->inverted > 0 && at < sizeof text)
        at +=
            (size_t)snprintf(text + at, sizeof text - at,
                             part->poses ? "%s%d of the given training poses turn an element inside out, and are used "
                                           "as they are; without them the rule may be better"
                                         : "%s%d training poses inverted an element and were made smaller; a smaller "
                                           "forces.displacement avoids it",
                             at > 0 ? "; " : "cubature: ", t->inverted);
    if (c->lost > 0.1 && at < sizeof text)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s%.0f%% of the given training poses are not in the basis, which has modes of other "
                               "shapes; more modes.count may help",
                               at > 0 ? "; " : "cubature: ", 100 * c->lost);
    if (t->dropped > 0 && at < sizeof text)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d training poses had no force and were left out",
                               at > 0 ? "; " : "cubature: ", t->dropped);
    if (at == 0) return FEM_OK;
    *result = fem_copy_string(text);
    return *result ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for a note");
}

// The class of domain i, or of part i of a scene with several objects.
static int part_of(const scene *s, int i) { return s->forest.count > 0 ? i : s->object; }

fem_status scene_note_rules(const scene *s, int count, solver_class *const *classes, char **notes) {
    int    missed = 0, inverted = 0, dropped = 0, rules = 0, worst = -1, far = 0, farthest = -1;
    char   text[1200];
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const solver_class *c = classes[i];
        if (!c || c->rule.count == 0) continue;
        rules++, inverted += c->training.inverted, dropped += c->training.dropped;
        if (is_far_above(&c->training, &s->parts[part_of(s, i)])) {
            far++;
            if (farthest < 0 || c->training.held_out_error > classes[farthest]->training.held_out_error) farthest = i;
        }
        if (c->training.reached) continue;
        missed++;
        if (worst < 0 || c->training.fit_error > classes[worst]->training.fit_error) worst = i;
    }
    text[0] = 0;
    if (missed > 0) {
        const cubature_training_report *t = &classes[worst]->training;
        const scene_part               *part = &s->parts[part_of(s, worst)];
        at += (size_t)snprintf(
            text, sizeof text,
            "cubature: %d of %d rules did not reach their error; the worst, of \"%.60s\", has %.3g with "
            "%d elements where %g was asked for; %s",
            missed, rules, classes[worst]->name, t->fit_error, t->elements, part->training.error,
            what_reaches(t, part));
    }
    if (far > 0 && at < sizeof text) {
        const cubature_training_report *t = &classes[farthest]->training;
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s%d of %d rules are far worse at held-out poses than at those of their training; the "
                               "worst, of \"%.60s\", has %.*g%% where its fit has %.*g%%; %s",
                               at > 0 ? "; " : "cubature: ", far, rules, classes[farthest]->name,
                               cubature_error_digits(t->held_out_error), 100 * t->held_out_error,
                               cubature_error_digits(t->fit_error), 100 * t->fit_error,
                               what_helps(&s->parts[part_of(s, farthest)]));
    }
    if (inverted > 0 && at < sizeof text)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s%d training poses inverted an element and were made smaller; a smaller "
                               "forces.displacement avoids it",
                               at > 0 ? "; " : "cubature: ", inverted);
    if (dropped > 0 && at < sizeof text)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d training poses had no force and were left out",
                               at > 0 ? "; " : "cubature: ", dropped);
    return at > 0 ? scene_add_note(notes, text) : FEM_OK;
}

// `training` has all elements and the worst errors. Without memory the list is left out.
void scene_report_rules(const scene *s, int count, solver_class *const *classes, scene_result *result) {
    int rules = 0;
    for (int i = 0; i < count; i++) rules += classes[i] && classes[i]->rule.count > 0;
    fem_free(result->rules);
    result->rules = NULL, result->rule_count = 0;
    if (rules == 0) return;
    result->rules = fem_alloc((size_t)rules, sizeof *result->rules);
    cubature_training_report *all = &result->training;
    *all = (cubature_training_report){.reached = true};
    for (int i = 0; i < count; i++) {
        if (!classes[i] || classes[i]->rule.count == 0) continue;
        const cubature_training_report *t = &classes[i]->training;
        if (result->rules)
            result->rules[result->rule_count++] = (scene_rule){
                .domain = i, .part = part_of(s, i), .elements = classes[i]->mesh.element_count, .training = *t};
        all->elements += t->elements, all->poses += t->poses;
        all->inverted += t->inverted, all->dropped += t->dropped;
        all->fit_error = fmax(all->fit_error, t->fit_error);
        all->held_out_error = fmax(all->held_out_error, t->held_out_error);
        all->reached = all->reached && t->reached;
    }
}

// The elements as a mesh of their own; vertices that none of them has are left out. A modal rule's weight is the mean.
fem_status scene_cubature_write(const cubature_rule *rule, const fem_mesh *mesh, const char *path) {
    fem_status status = FEM_OK;
    int        width = fem_element_vertices(mesh->type), count = rule->count, vertices = 0;
    size_t     corners = (size_t)count * (size_t)width, per = rule->modal ? (size_t)rule->r : 1;
    fem_region region = {.name = fem_copy_string("cubature")};
    fem_mesh   chosen = {.type = mesh->type, .element_count = count, .region_count = 1, .regions = &region};
    int       *place = fem_alloc((size_t)mesh->vertex_count, sizeof *place);
    double    *weight = fem_calloc((size_t)count, sizeof *weight), *number = fem_alloc((size_t)count, sizeof *number);
    chosen.material_count = mesh->material_count, chosen.materials = mesh->materials;
    chosen.elements = fem_alloc(corners, sizeof *chosen.elements);
    chosen.region = fem_calloc((size_t)count, sizeof *chosen.region);
    chosen.vertices = fem_alloc(corners, 3 * sizeof *chosen.vertices);
    if (!region.name || !place || !weight || !number || !chosen.elements || !chosen.region || !chosen.vertices) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a mesh of %d elements", count);
        goto done;
    }
    memset(place, 0xff, (size_t)mesh->vertex_count * sizeof *place);
    for (int i = 0; i < count; i++) {
        number[i] = rule->elements[i];
        for (size_t l = 0; l < per; l++) weight[i] += rule->weights[(size_t)i * per + l] / (double)per;
        for (int a = 0; a < width; a++) {
            int v = mesh->elements[(size_t)rule->elements[i] * (size_t)width + (size_t)a];
            if (place[v] < 0) {
                memcpy(chosen.vertices + 3 * (size_t)vertices, mesh->vertices + 3 * (size_t)v, 3 * sizeof(double));
                place[v] = vertices++;
            }
            chosen.elements[(size_t)i * (size_t)width + (size_t)a] = place[v];
        }
    }
    chosen.vertex_count = vertices;
    const fem_field fields[] = {{"weight", 1, weight, true}, {"element", 1, number, true}};
    FEM_TRY(fem_mesh_write_vtu(&chosen, path, NULL, 2, fields));
done:
    fem_free(region.name);
    fem_free(place);
    fem_free(weight);
    fem_free(number);
    fem_free(chosen.elements);
    fem_free(chosen.region);
    fem_free(chosen.vertices);
    return status;
}

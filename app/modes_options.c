// The options of `limber modes` that say how a basis is made, and what they mean.
#include "app/modes_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_word(const char *word, int count, const char *const *words) {
    for (int i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0) return i;
    return -1;
}

// Index of an option's word among those that it may be, or a usage error.
static int choose(const char *option, const char *word, int count, const char *const *words, int *index) {
    char list[160] = "";
    *index = find_word(word, count, words);
    if (*index >= 0) return APP_DONE;
    for (int i = 0; i < count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : i == count - 1 ? " or " : ", ", words[i]);
    }
    return app_usage_error(&command_modes, "%s is \"%s\", expected %s", option, word, list);
}

// "x,y,rz", "rigid", "quadratic", "random", "automatic", or several of them with commas between.
static int read_seeds(const char *text, unsigned *seeds) {
    static const struct {
        const char *name;
        unsigned    bits;
    } known[] = {{"automatic", 0},
                 {"rigid", MODES_SEED_RIGID},
                 {"quadratic", MODES_SEED_QUADRATIC},
                 {"random", MODES_SEED_RANDOM},
                 {"x", MODES_SEED_X},
                 {"y", MODES_SEED_Y},
                 {"z", MODES_SEED_Z},
                 {"rx", MODES_SEED_ROTATION_X},
                 {"ry", MODES_SEED_ROTATION_Y},
                 {"rz", MODES_SEED_ROTATION_Z}};
    *seeds = 0;
    while (*text) {
        size_t length = strcspn(text, ","), i = 0, count = sizeof known / sizeof *known;
        while (i < count && !(strlen(known[i].name) == length && memcmp(known[i].name, text, length) == 0)) i++;
        if (i == count)
            return app_usage_error(
                &command_modes,
                "--seeds: \"%.*s\" is unknown, expected automatic, rigid, quadratic, random, or of x, y, "
                "z, rx, ry, rz, with commas between",
                (int)length, text);
        *seeds |= known[i].bits;
        text += length + (text[length] == ',');
    }
    return APP_DONE;
}

// "12,6,3": 12 linear modes, derivatives of order 2 of the first 6, of order 3 of the first 3.
static int read_linear(const char *text, int orders, modes_recipe *recipe) {
    int most = 1000000; // of the next number
    for (int k = 0; k < orders; k++) {
        char *end = NULL;
        long  number = strtol(text, &end, 10);
        bool  last = *end == 0;
        if (end == text || number < 1 || number > most || !(last || (*end == ',' && k < orders - 1)))
            return app_usage_error(&command_modes,
                                   "--linear: \"%s\" is not a number from 1 to %d%s; expected a number for each order "
                                   "of --derivatives %d at most, none larger than the one before it",
                                   text, most, orders > 1 ? ", or several with commas between" : "", orders);
        if (k == 0)
            recipe->linear = (int)number;
        else
            recipe->modes[k] = (int)number;
        if (last) return APP_DONE;
        most = (int)number;
        text = end + 1;
    }
    return APP_DONE;
}

modes_settings modes_settings_default(void) {
    return (modes_settings){.method = "lanczos", .threshold = NAN, .distance = NAN};
}

// An option that would change nothing is a mistake in the command line, not something to pass over.
static int check_meaning(const modes_settings *s) {
    bool krylov = strcmp(s->method, "krylov") == 0, sketch = strcmp(s->method, "sketch") == 0;
    bool condensed = s->derivatives > 0 || sketch;
    bool reduced = s->orthogonalise && strcmp(s->orthogonalise, "rmgs") == 0;
    bool multigrid = s->inverse ? strcmp(s->inverse, "factor") != 0 : krylov; // automatic: Lanczos takes the factor
    const struct {
        const char *name;
        bool        given, useful;
        const char *needs;
    } rules[] = {
        {"--linear", s->linear, s->derivatives > 0, "--derivatives"},
        {"--kind", s->kind, s->derivatives > 0, "--derivatives"},
        {"--derivatives", s->derivatives > 0, !sketch, "--method lanczos or krylov"},
        {"--condense", s->condense, condensed, "--derivatives or --method sketch"},
        {"--energy", s->energy > 0, condensed, "--derivatives or --method sketch"},
        {"--scaling", s->scaling, s->derivatives > 0, "--derivatives"},
        {"--metric", s->metric, condensed, "--derivatives or --method sketch"},
        {"--seeds", s->seeds, krylov, "--method krylov"},
        {"--fields", s->fields > 0, krylov, "--method krylov"},
        {"--random", s->random_state > 0, krylov, "--method krylov"},
        {"--vectors", s->vectors, krylov, "--method krylov"},
        {"--interface", s->interfaces.count > 0, krylov, "--method krylov"},
        {"--interface-seeds", s->interface_seeds > 0, s->interfaces.count > 0, "--interface"},
        {"--interface-norm", s->norm, s->interfaces.count > 0, "--interface"},
        {"--orthogonalise", s->orthogonalise, krylov, "--method krylov"},
        {"--threshold", !isnan(s->threshold), reduced, "--orthogonalise rmgs"},
        {"--samples", s->samples > 0, reduced, "--orthogonalise rmgs"},
        {"--border", s->border, krylov, "--method krylov"},
        {"--inverse", s->inverse, !sketch, "--method lanczos or krylov"},
        {"--tolerance", s->tolerance > 0, multigrid, "multigrid (--inverse amg)"},
        {"--load", s->loads.count > 0, sketch, "--method sketch"},
        {"--loads", s->load_file, sketch, "--method sketch"},
        {"--distance", !isnan(s->distance), sketch, "--method sketch"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].given && !rules[i].useful)
            return app_usage_error(&command_modes, "%s has no meaning without %s", rules[i].name, rules[i].needs);
    if (sketch && ((s->loads.count == 0 && !s->load_file) || !s->fix))
        return app_usage_error(&command_modes, "--method sketch needs --fix and at least one load (--load or --loads)");
    return APP_DONE;
}

int modes_settings_recipe(const modes_settings *s, modes_recipe *recipe) {
    static const char *const methods[] = {"krylov", "lanczos", "sketch"};
    static const char *const kinds[] = {"modal", "inertia", "tangent"};
    static const char *const condensings[] = {"pca", "randomized", "projection"};
    static const char *const scalings[] = {"none", "unit", "frequency", "rayleigh"};
    static const char *const metrics[] = {"mass", "lumped"};
    static const char *const norms[] = {"mass", "energy"};
    static const char *const orthogonalisations[] = {"block", "mgs", "rmgs"};
    static const char *const borders[] = {"mass", "plain"};
    static const char *const inverses[] = {"automatic", "factor", "amg"};

    int method = 0, kind = 0, condense = 0, scaling = MODES_SCALE_FREQUENCY, metric = 0, orthogonalise = 0, norm = 0;
    int border = 0, inverse = 0, code;
    const struct {
        const char        *option, *word;
        int                count;
        const char *const *words;
        int               *index;
    } choices[] = {
        {"--method", s->method, 3, methods, &method},
        {"--kind", s->kind, 3, kinds, &kind},
        {"--condense", s->condense, 3, condensings, &condense},
        {"--scaling", s->scaling, 4, scalings, &scaling},
        {"--metric", s->metric, 2, metrics, &metric},
        {"--interface-norm", s->norm, 2, norms, &norm},
        {"--orthogonalise", s->orthogonalise, 3, orthogonalisations, &orthogonalise},
        {"--border", s->border, 2, borders, &border},
        {"--inverse", s->inverse, 3, inverses, &inverse},
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].word && (code = choose(choices[i].option, choices[i].word, choices[i].count, choices[i].words,
                                              choices[i].index)) != APP_DONE)
            return code;
    if ((code = check_meaning(s)) != APP_DONE) return code;

    *recipe = modes_default_recipe(method == 1 ? MODES_LANCZOS : MODES_KRYLOV);
    recipe->count = s->count;
    recipe->derivatives = s->derivatives;
    recipe->linear = 12 < s->count ? 12 : s->count;
    if (s->linear && (code = read_linear(s->linear, s->derivatives, recipe)) != APP_DONE) return code;
    recipe->condense = (modes_condense_method)condense;
    recipe->scaling = (modes_scaling)scaling;
    recipe->metric = (modes_metric)metric;
    if (s->kind) recipe->kind = (modes_derivative_kind)kind;
    if (s->energy > 0) recipe->energy = s->energy;
    if (!isnan(s->distance)) recipe->distance = s->distance;
    recipe->inverse.border = (modes_border)border;
    recipe->inverse.method = (modes_inverse_method)inverse;
    if (s->tolerance > 0) recipe->inverse.tolerance = s->tolerance;
    modes_krylov_options *krylov = &recipe->krylov;
    krylov->orthogonalise.method = (modes_gram_schmidt)orthogonalise;
    krylov->orthogonalise.samples = s->samples;
    if (!isnan(s->threshold)) krylov->orthogonalise.threshold = s->threshold;
    krylov->interface_seeds = s->interface_seeds;
    krylov->norm = (modes_norm)norm;
    if (s->fields > 0) krylov->fields = s->fields;
    if (s->random_state > 0) krylov->random_state = (unsigned)s->random_state;
    return s->seeds ? read_seeds(s->seeds, &krylov->seeds) : APP_DONE;
}

enum { LONGEST_LOAD = 255 }; // letters of "WHERE:fx,fy,fz", and of a set's name

// ---- what is read from files ---------------------------------------------------------------------------------------

fem_status modes_read_fixed(const fem_mesh *mesh, const char *fix, unsigned char *fixed) {
    int       *items = NULL, count = 0;
    fem_status status = app_fixed_read(mesh, fix, &items, &count);
    for (int i = 0; i < count; i++) memset(fixed + 3 * (size_t)items[i], 1, 3);
    fem_free(items);
    return status;
}

fem_status modes_read_interfaces(const fem_mesh *mesh, const app_list *names, modes_interface *interfaces) {
    for (int i = 0; i < names->count; i++) {
        const char    *text = names->items[i], *colon = strrchr(text, ':');
        const fem_set *set = fem_mesh_vertex_set(mesh, text);
        double         mass = 1;
        if (!set && colon) { // SET:KG
            char name[LONGEST_LOAD + 1], rest = 0;
            if (sscanf(colon + 1, "%lf%c", &mass, &rest) != 1 || !(mass > 0 && isfinite(mass)))
                return fem_fail(FEM_BAD_INPUT, "--interface: the mass in \"%s\" is not a number > 0, in kg", text);
            snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
            set = fem_mesh_vertex_set(mesh, name);
        }
        if (!set) return fem_fail(FEM_BAD_INPUT, "--interface: the mesh has no vertex set \"%s\"", text);
        interfaces[i] = (modes_interface){.count = set->count, .vertices = set->items, .mass = mass};
    }
    return FEM_OK;
}

fem_status modes_read_vectors(const fem_mesh *mesh, const char *path, double **vectors, int *count) {
    int        rows = 0;
    fem_status status = fem_matrix_read(path, &rows, count, vectors);
    if (status != FEM_OK || rows == 3 * mesh->vertex_count) return status;
    fem_free(*vectors);
    *vectors = NULL, *count = 0;
    return fem_fail(FEM_BAD_INPUT, "--vectors: %s has %d rows, expected %d: x, y, z of each vertex after the other",
                    path, rows, 3 * mesh->vertex_count);
}

// ---- loads ---------------------------------------------------------------------------------------------------------

// Adds "WHERE:fx,fy,fz" to a force, 3 per vertex.
static fem_status add_load(const fem_mesh *mesh, const char *load, double *force) {
    const char *colon = strrchr(load, ':');
    double      total[3];
    char        name[LONGEST_LOAD + 1], rest = 0;
    if (!colon || colon == load || (size_t)(colon - load) >= sizeof name ||
        sscanf(colon + 1, "%lf,%lf,%lf%c", &total[0], &total[1], &total[2], &rest) != 3 || !isfinite(vec3_norm(total)))
        return fem_fail(FEM_BAD_INPUT, "a load is \"%s\", expected WHERE:fx,fy,fz, for example tip:0,0,-4", load);
    snprintf(name, sizeof name, "%.*s", (int)(colon - load), load);
    const fem_set *set = fem_mesh_vertex_set(mesh, name);
    char          *end = NULL;
    long           vertex = strtol(name, &end, 10) - mesh->file_base;
    if (set) {
        solver_add_vertex_force(set->count, set->items, total, force);
        return FEM_OK;
    }
    if (*end || vertex < 0 || vertex >= mesh->vertex_count)
        return fem_fail(FEM_BAD_INPUT,
                        "a load: \"%s\" is neither a vertex set of the mesh nor a vertex number (%d to %d)", name,
                        mesh->file_base, mesh->vertex_count - 1 + mesh->file_base);
    solver_add_vertex_force(1, (int[]){(int)vertex}, total, force);
    return FEM_OK;
}

// One line of a file of loads; *some: it holds a load.
static fem_status add_line(const fem_mesh *mesh, const char *at, size_t length, double *force, bool *some) {
    char word[LONGEST_LOAD + 1];
    *some = false;
    for (const char *end = at + length; at < end;) {
        size_t blanks = strspn(at, " \t\r"), letters = strcspn(at + blanks, " \t\r\n#");
        at += blanks;
        if (at >= end || *at == '#' || letters == 0) break;
        if (letters > LONGEST_LOAD) return fem_fail(FEM_BAD_INPUT, "a word of %zu letters is no load", letters);
        snprintf(word, sizeof word, "%.*s", (int)letters, at);
        fem_status status = add_load(mesh, word, force);
        if (status != FEM_OK) return status;
        *some = true;
        at += letters;
    }
    return FEM_OK;
}

static fem_status read_load_file(const fem_mesh *mesh, const char *path, const char *text, double **loads, int *count) {
    fem_status status = FEM_OK;
    size_t     n = 3 * (size_t)mesh->vertex_count, capacity = 0;
    int        line = 1;
    for (const char *at = text; *at; line++) {
        size_t length = strcspn(at, "\n");
        bool   some = false;
        FEM_TRY(fem_grow((void **)loads, &capacity, ((size_t)*count + 1) * n, sizeof **loads));
        memset(*loads + (size_t)*count * n, 0, n * sizeof **loads);
        status = add_line(mesh, at, length, *loads + (size_t)*count * n, &some);
        if (status != FEM_OK) return fem_fail_prefix(status, "%s:%d: ", path, line);
        *count += some;
        at += length + (at[length] == '\n');
    }
    if (*count == 0) status = fem_fail(FEM_BAD_INPUT, "%s: the file holds no load", path);
done:
    return status;
}

fem_status modes_read_loads(const fem_mesh *mesh, const char *path, const app_list *list, double **loads, int *count) {
    fem_status status = FEM_OK;
    size_t     n = 3 * (size_t)mesh->vertex_count, size = 0;
    char      *text = NULL;
    double    *all = NULL, *more = NULL;
    int        from_file = 0;
    if (path) {
        FEM_TRY(fem_file_read(&text, &size, path));
        FEM_TRY(read_load_file(mesh, path, text, &all, &from_file));
    }
    more = fem_calloc(n * (size_t)(from_file + list->count), sizeof *more);
    if (!more) {
        status = fem_fail(FEM_NO_MEMORY, "modes: no memory for %d loads", from_file + list->count);
        goto done;
    }
    if (from_file > 0) memcpy(more, all, n * (size_t)from_file * sizeof *more);
    for (int i = 0; i < list->count; i++) {
        status = add_load(mesh, list->items[i], more + n * (size_t)(from_file + i));
        if (status != FEM_OK) {
            fem_fail_prefix(status, "--load: ");
            goto done;
        }
    }
    *loads = more, *count = from_file + list->count;
    more = NULL;
done:
    fem_free(text), fem_free(all), fem_free(more);
    return status;
}

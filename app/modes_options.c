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

modes_settings modes_settings_default(void) {
    return (modes_settings){.method = "lanczos",
                            .condense = "pca",
                            .seeds = "automatic",
                            .orthogonalise = "block",
                            .border = "mass",
                            .inverse = "automatic",
                            .energy = 1,
                            .threshold = modes_orthogonalise_default_options().threshold};
}

int modes_settings_recipe(const modes_settings *s, modes_recipe *recipe) {
    static const char *const methods[] = {"krylov", "lanczos", "sketch"};
    static const char *const condensings[] = {"pca", "randomized", "projection"};
    static const char *const kinds[] = {"modal", "inertia", "tangent"};
    static const char *const orthogonalisations[] = {"block", "mgs", "rmgs"};
    static const char *const inverses[] = {"automatic", "factor", "amg"};
    static const char *const borders[] = {"mass", "plain"};

    int      index = 0, code;
    unsigned seeds = 0;
    if ((code = choose("--method", s->method, 3, methods, &index)) != APP_DONE) return code;
    *recipe = modes_default_recipe(index == 1 ? MODES_LANCZOS : MODES_KRYLOV);
    recipe->count = s->count;
    recipe->derivatives = s->derivatives;
    recipe->linear = s->linear > 0 ? s->linear : 12 < s->count ? 12 : s->count;
    recipe->energy = s->energy;
    if ((code = choose("--condense", s->condense, 3, condensings, &index)) != APP_DONE) return code;
    recipe->condense = (modes_condense_method)index;
    if (s->kind) {
        if ((code = choose("--kind", s->kind, 3, kinds, &index)) != APP_DONE) return code;
        recipe->kind = (modes_derivative_kind)index;
    }
    if ((code = choose("--orthogonalise", s->orthogonalise, 3, orthogonalisations, &index)) != APP_DONE) return code;
    recipe->krylov.orthogonalise.method = (modes_gram_schmidt)index;
    recipe->krylov.orthogonalise.threshold = s->threshold;
    recipe->krylov.orthogonalise.samples = s->samples;
    if ((code = choose("--border", s->border, 2, borders, &index)) != APP_DONE) return code;
    recipe->inverse.border = (modes_border)index;
    if ((code = choose("--inverse", s->inverse, 3, inverses, &index)) != APP_DONE) return code;
    recipe->inverse.method = (modes_inverse_method)index;
    if ((code = read_seeds(s->seeds, &seeds)) != APP_DONE) return code;
    recipe->krylov.seeds = seeds;
    if (strcmp(s->method, "sketch") == 0 && (s->loads.count == 0 || !s->fix))
        return app_usage_error(&command_modes, "--method sketch needs --fix and at least one --load");
    if (strcmp(s->method, "sketch") != 0 && s->loads.count > 0)
        return app_usage_error(&command_modes, "--load has no meaning without --method sketch");
    if (s->linear > 0 && s->derivatives == 0)
        return app_usage_error(&command_modes, "--linear has no meaning without --derivatives");
    return APP_DONE;
}

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
        const fem_set *set = fem_mesh_vertex_set(mesh, names->items[i]);
        if (!set) return fem_fail(FEM_BAD_INPUT, "--interface: the mesh has no vertex set \"%s\"", names->items[i]);
        interfaces[i] = (modes_interface){.count = set->count, .vertices = set->items, .mass = 1};
    }
    return FEM_OK;
}

fem_status modes_read_load(const fem_mesh *mesh, const char *load, double *force) {
    const char *colon = strrchr(load, ':');
    double      total[3];
    char        name[128], rest = 0;
    if (!colon || colon == load || (size_t)(colon - load) >= sizeof name ||
        sscanf(colon + 1, "%lf,%lf,%lf%c", &total[0], &total[1], &total[2], &rest) != 3 || !isfinite(vec3_norm(total)))
        return fem_fail(FEM_BAD_INPUT, "--load is \"%s\", expected WHERE:fx,fy,fz, for example tip:0,0,-4", load);
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
                        "--load: \"%s\" is neither a vertex set of the mesh nor a vertex number (%d to %d)", name,
                        mesh->file_base, mesh->vertex_count - 1 + mesh->file_base);
    solver_add_vertex_force(1, (int[]){(int)vertex}, total, force);
    return FEM_OK;
}

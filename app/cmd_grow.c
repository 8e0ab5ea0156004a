// `limber grow`: a plant from a seed, or from a skeleton, as a scene.
#include "app/app.h"

#include <math.h>
#include <string.h>

typedef struct settings {
    scene_plant_options plant;
    const char         *output, *skeleton, *wood, *element, *material;
    double              unit;
    int                 seed;
    bool                json;
} settings;

static const char *const ELEMENTS[] = {"tet", "hex"}, *const MATERIALS[] = {"wood", "mooney-rivlin"};

static int print_report(const settings *s, const scene_plant_report *r) {
    if (s->json) {
        app_json json;
        app_json_begin(&json, stdout);
        app_json_object(&json, NULL);
        app_json_text(&json, "scene", s->output);
        app_json_integer(&json, "branches", r->branches);
        app_json_integer(&json, "leaves", r->leaves);
        app_json_integer(&json, "stubs", r->stubs);
        app_json_integer(&json, "classes", r->classes);
        app_json_integer(&json, "elements", r->elements);
        app_json_number(&json, "height", r->height);
        app_json_number(&json, "worst", r->worst);
        return app_json_finish(&json);
    }
    printf("%d branch%s of %d class%s, %d leaves, %d elements, %.3g m high; branches within %.2g m of the skeleton\n",
           r->branches, r->branches == 1 ? "" : "es", r->classes, r->classes == 1 ? "" : "es", r->leaves, r->elements,
           r->height, r->worst);
    if (r->stubs > 0)
        printf("%d stub%s left out; what stood there stands on the branch below\n", r->stubs,
               r->stubs == 1 ? " was" : "s were");
    printf("scene: %s\n", s->output);
    return APP_DONE;
}

static bool ends_with(const char *name, const char *ending) {
    size_t n = strlen(name), tail = strlen(ending);
    return n > tail && strcmp(name + n - tail, ending) == 0;
}

static int run(int argc, char **argv) {
    settings   s = {.plant = scene_plant_default_options(), .element = "tet", .material = "wood", .unit = 1, .seed = 1};
    app_words  words = {0};
    int        exit_code = APP_DONE;
    app_option options[] = {
        {"--output", "-o", APP_TEXT, &s.output, 0, 0, "SCENE.json", "the scene that is written"},
        {"--seed", NULL, APP_INT, &s.seed, 0, 1e9, "N", "another seed, another plant and another wind (1)"},
        {"--classes", NULL, APP_INT, &s.plant.classes, 1, 1000, "N", "of branches, at most (5)"},
        {"--distinct", NULL, APP_FLAG, &s.plant.distinct, 0, 0, NULL, "every branch and leaf is a class of its own"},
        {"--material", NULL, APP_TEXT, &s.material, 0, 0, "wood|mooney-rivlin",
         "orthotropic with small-strain leaves, or large strain everywhere by cubature (wood)"},
        {"--cubature-error", NULL, APP_NUMBER, &s.plant.cubature_error, 1e-6, 0.9, "E", "with mooney-rivlin (0.02)"},
        {"--gaussian", NULL, APP_FLAG, &s.plant.gaussian, 0, 0, NULL,
         "train with random coordinates, as P0 does: about twenty times as fast, and worse"},
        {"--branch-modes", NULL, APP_INT, &s.plant.branch_modes, 1, 200, "N", "of a class of branches (20)"},
        {"--leaf-modes", NULL, APP_INT, &s.plant.leaf_modes, 1, 100, "N", "of a leaf (8)"},
        {"--element", NULL, APP_TEXT, &s.element, 0, 0, "tet|hex", "what branches are made of (tet)"},
        {"--rings", NULL, APP_INT, &s.plant.rings, 1, 20, "N", "cells of a branch from axis to surface (2)"},
        {"--segments", NULL, APP_INT, &s.plant.segments, 2, 1000, "N", "cells along a branch (48)"},
        {"--leaf-thickness", NULL, APP_NUMBER, &s.plant.leaf_thickness, 1e-6, 1, "M", "m; for its mass (0.0003)"},
        {"--leaf-frequency", NULL, APP_NUMBER, &s.plant.leaf_frequency, 1e-3, 1e4, "HZ", "lowest of a leaf (5)"},
        {"--leaf-scale", NULL, APP_NUMBER, &s.plant.leaf_scale, 1e-3, 1e3, "F", "factor on the size of leaves (1)"},
        {"--leaves", NULL, APP_INT, &s.plant.leaves, 0, 1000000, "N", "at most, evenly left out; 0: none (all)"},
        {"--leaf-cells", NULL, APP_INT, &s.plant.leaf_cells, 2, 100, "N", "along the blade (8)"},
        {"--leaf-derivatives", NULL, APP_INT, &s.plant.leaf_derivatives, 0, 3, "N",
         "their order in the basis of a leaf, with mooney-rivlin (1)"},
        {"--wood", NULL, APP_TEXT, &s.wood, 0, 0, "SPECIES", "of a skeleton: oak, maple, birch, pine, flower (oak)"},
        {"--unit", NULL, APP_NUMBER, &s.unit, 1e-9, 1e9, "M", "of a skeleton: metres per unit of the file (1)"},
        {"--wind", NULL, APP_NUMBER, &s.plant.wind, 0, 100, "V", "m/s at 10 m; 0: none (6)"},
        {"--seconds", NULL, APP_NUMBER, &s.plant.seconds, 0.1, 3e4, "T", "how long a run is (8)"},
        {"--skeleton", NULL, APP_TEXT, &s.skeleton, 0, 0, "FILE.json", "write the skeleton, too"},
        {"--json", NULL, APP_FLAG, &s.json, 0, 0, NULL, "print one JSON object"},
    };
    if (!app_parse(&command_grow, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words, &exit_code))
        return exit_code;
    const char    *what = words.items[0];
    scene_skeleton skeleton = {0};
    scene_species  species = SCENE_OAK;
    bool           file = ends_with(what, ".json") || ends_with(what, ".json.gz");
    if (!s.output) return app_usage_error(&command_grow, "--output SCENE.json is needed: where the scene goes");
    if (!ends_with(s.output, ".json"))
        return app_usage_error(&command_grow, "--output is \"%s\", expected a name that ends in .json", s.output);
    if (strcmp(s.element, ELEMENTS[0]) != 0 && strcmp(s.element, ELEMENTS[1]) != 0)
        return app_usage_error(&command_grow, "--element is \"%s\", expected tet or hex", s.element);
    s.plant.hex = strcmp(s.element, ELEMENTS[1]) == 0;
    if (strcmp(s.material, MATERIALS[0]) != 0 && strcmp(s.material, MATERIALS[1]) != 0)
        return app_usage_error(&command_grow, "--material is \"%s\", expected wood or mooney-rivlin", s.material);
    s.plant.mooney = strcmp(s.material, MATERIALS[1]) == 0;
    if (!file && !scene_species_from_name(&species, what))
        return app_usage_error(&command_grow,
                               "\"%s\" is no plant, expected oak, maple, birch, pine, flower or a skeleton", what);
    if (!file && s.wood) return app_usage_error(&command_grow, "--wood has no use with a plant that brings its own");
    if (s.wood && !scene_species_from_name(&species, s.wood))
        return app_usage_error(&command_grow, "--wood is \"%s\", expected oak, maple, birch, pine or flower", s.wood);
    s.plant.wood = species;
    s.plant.seed = s.seed;
    char       title[200];
    fem_status status =
        file ? scene_skeleton_read(&skeleton, what, s.unit) : scene_skeleton_grow(&skeleton, species, (uint64_t)s.seed);
    bool               grown = status == FEM_OK; // a failure from here on is one of the output
    scene_plant_report report = {0};
    if (file)
        snprintf(title, sizeof title, "A plant from %.150s, in wind",
                 strrchr(what, '/') ? strrchr(what, '/') + 1 : what);
    else
        snprintf(title, sizeof title, "A plant in wind: %s, seed %d", what, s.seed);
    s.plant.title = title;
    if (status == FEM_OK && s.skeleton) status = scene_skeleton_write(&skeleton, s.skeleton);
    if (status == FEM_OK) status = scene_plant_write(&skeleton, &s.plant, s.output, &report);
    exit_code = status == FEM_OK ? print_report(&s, &report) : grown ? app_fail_output(status) : app_fail(status);
    scene_skeleton_destroy(&skeleton);
    return exit_code;
}

const app_command command_grow = {
    "grow",
    "A plant as a scene: grown from a seed, or from a skeleton",
    "SPECIES|SKELETON.json -o SCENE.json [OPTIONS]",
    "limber grow oak -o oak.json --seed 7 && limber run oak.json",
    run,
    "SPECIES is oak, maple, birch, pine or flower. Skeletons are described in docs/plants.md.\n",
};

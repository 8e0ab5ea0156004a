// `limber decompose`: a mesh cut into a tree of domains, or the copies among its pieces.
#include "app/app.h"

#include <string.h>

typedef struct settings {
    domain_options options;
    int            domains;
    const char    *method, *fix, *loops, *feet, *write;
    bool           json, copies;
    double         tolerance; // of copies; 0: not given
} settings;

static const char *const METHODS[] = {"geodesic", "metis", "regions", "sets"}; // in the order of domain_method
static const char *const LOOPS[] = {"merge", "springs", "refuse"};             // of domain_loops, from the second on
static const char *const FEET[] = {"merge", "springs"};                        // of domain_feet

// The place of a word among the choices, or -1 after a message.
static int choose(const char *option, const char *word, int count, const char *const *choices) {
    for (int i = 0; i < count; i++)
        if (strcmp(word, choices[i]) == 0) return i;
    char text[128] = "";
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
                 i == 0          ? ""
                 : i + 1 < count ? ", "
                                 : " or ",
                 choices[i]);
    app_usage_error(&command_decompose, "%s is \"%s\", expected %s", option, word, text);
    return -1;
}

// The rules that the option parser does not know. Returns APP_DONE or, after a message, APP_BAD_INPUT.
static int check_settings(settings *s) {
    if (!s->copies && s->tolerance > 0)
        return app_usage_error(&command_decompose, "--tolerance is for --copies: how far copies may be off");
    if (s->copies && (s->domains > 0 || s->method || s->fix || s->loops))
        return app_usage_error(&command_decompose,
                               "--copies looks at whole pieces, without --domains, --method, --fix and --loops");
    // loops are cut open where they are narrow by METIS, anywhere by level sets
    if (!s->method) s->method = METHODS[s->loops && strcmp(s->loops, "springs") == 0 ? DOMAIN_METIS : DOMAIN_GEODESIC];
    int method = choose("--method", s->method, 4, METHODS),
        loops = s->loops ? choose("--loops", s->loops, 3, LOOPS) : 0;
    int feet = choose("--feet", s->feet, 2, FEET);
    if (method < 0 || loops < 0 || feet < 0) return APP_BAD_INPUT;
    s->options.method = (domain_method)method;
    s->options.loops = s->loops ? (domain_loops)(loops + 1) : DOMAIN_LOOPS_DEFAULT;
    s->options.feet = (domain_feet)feet;
    bool given = s->options.method == DOMAIN_REGIONS || s->options.method == DOMAIN_SETS;
    if (given && s->domains > 0)
        return app_usage_error(&command_decompose, "--domains has no use with --method %s: the mesh says which",
                               s->method);
    if (!given && s->domains == 0 && !s->copies)
        return app_usage_error(&command_decompose, "--domains N is needed: how many");
    s->options.count = s->domains;
    const char *dot = s->write ? strrchr(s->write, '.') : NULL;
    if (s->write && (!dot || strcmp(dot, ".vtu") != 0))
        return app_usage_error(&command_decompose, "--output is \"%s\", expected a name that ends in .vtu", s->write);
    return APP_DONE;
}

// Cell fields: domain, its level, its parent (-1 for the root). Vertex fields: owner, and interface, which is the
// domain whose interface to its parent the vertex lies on (the highest where several meet, 0 elsewhere).
static fem_status write_fields(const fem_mesh *mesh, const domain_tree *tree, const char *path) {
    fem_status status = FEM_OK;
    size_t     elements = (size_t)mesh->element_count, vertices = (size_t)mesh->vertex_count;
    double    *cells = fem_alloc(3 * elements, sizeof *cells), *points = fem_calloc(2 * vertices, sizeof *points);
    if (!cells || !points) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for fields on %zu elements", elements);
        goto done;
    }
    for (size_t e = 0; e < elements; e++) {
        int domain = tree->element_domain[e];
        cells[e] = domain;
        cells[elements + e] = tree->level[domain];
        cells[2 * elements + e] = tree->parent[domain];
    }
    for (size_t v = 0; v < vertices; v++) points[v] = tree->vertex_owner[v];
    for (int i = 1; i < tree->count; i++)
        for (int k = tree->interfaces.start[i]; k < tree->interfaces.start[i + 1]; k++)
            points[vertices + (size_t)tree->interfaces.vertices[k]] = i;
    const fem_field fields[] = {{"domain", 1, cells, true},
                                {"level", 1, cells + elements, true},
                                {"parent", 1, cells + 2 * elements, true},
                                {"owner", 1, points, false},
                                {"interface", 1, points + vertices, false}};
    FEM_TRY(fem_mesh_write_vtu(mesh, path, NULL, 5, fields));
done:
    fem_free(cells), fem_free(points);
    return status;
}

static double interface_area(const domain_tree *tree, int domain) {
    double area = 0;
    for (int k = tree->interfaces.start[domain]; k < tree->interfaces.start[domain + 1]; k++)
        area += tree->interfaces.weights[k];
    return area;
}

static int points_of(const domain_points *points, int list) { return points->start[list + 1] - points->start[list]; }

static int print_json(const fem_mesh *mesh, const domain_tree *tree) {
    const domain_report *r = &tree->report;
    app_json             json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_integer(&json, "vertices", mesh->vertex_count);
    app_json_integer(&json, "elements", mesh->element_count);
    app_json_integer(&json, "asked", r->asked);
    app_json_integer(&json, "domains", r->domains);
    app_json_integer(&json, "depth", r->depth);
    app_json_number(&json, "largest_share", r->largest_share);
    app_json_number(&json, "imbalance", r->imbalance);
    app_json_number(&json, "interface_area", r->area);
    app_json_number(&json, "smallest_interface_area", r->smallest_area);
    app_json_integer(&json, "fewest_interface_points", r->fewest_points);
    app_json_integer(&json, "loops", r->loops);
    app_json_integer(&json, "merged", r->merged);
    app_json_array(&json, "tree");
    for (int i = 0; i < tree->count; i++) {
        app_json_object(&json, NULL);
        app_json_text(&json, "name", tree->name[i]);
        app_json_integer(&json, "parent", tree->parent[i]);
        app_json_integer(&json, "level", tree->level[i]);
        app_json_integer(&json, "elements", tree->element_start[i + 1] - tree->element_start[i]);
        app_json_integer(&json, "interface_points", points_of(&tree->interfaces, i));
        app_json_number(&json, "interface_area", interface_area(tree, i));
        app_json_end(&json);
    }
    app_json_end(&json);
    app_json_array(&json, "closures");
    for (int i = 0; i < tree->closures.count; i++) {
        app_json_object(&json, NULL);
        app_json_integer(&json, "a", tree->closure_pair[2 * i]);
        app_json_integer(&json, "b", tree->closure_pair[2 * i + 1]);
        app_json_integer(&json, "points", points_of(&tree->closures, i));
        app_json_end(&json);
    }
    app_json_end(&json);
    app_json_array(&json, "grounds");
    for (int i = 0; i < tree->grounds.count; i++) {
        app_json_object(&json, NULL);
        app_json_integer(&json, "domain", tree->ground_domain[i]);
        app_json_integer(&json, "points", points_of(&tree->grounds, i));
        app_json_end(&json);
    }
    app_json_end(&json);
    app_json_number(&json, "seconds", r->seconds);
    return app_json_finish(&json);
}

static int print_text(const fem_mesh *mesh, const domain_tree *tree) {
    const domain_report *r = &tree->report;
    printf("%d vertices, %d elements: %d domains", mesh->vertex_count, mesh->element_count, r->domains);
    if (r->asked > 0) printf(" of %d asked for", r->asked);
    printf(", %d level%s below the root, %.3f s\n", r->depth, r->depth == 1 ? "" : "s", r->seconds);
    printf("elements      %d to %d a domain, the largest has %.1f%%, %.2f times the mean\n", r->smallest, r->largest,
           100 * r->largest_share, r->imbalance);
    if (r->interfaces > 0)
        printf("interfaces    %d, %.4g m^2 in all, %.4g to %.4g m^2, %d points or more\n", r->interfaces, r->area,
               r->smallest_area, r->largest_area, r->fewest_points);
    if (r->merged > 0) printf("merged        %d domains, in loops, between feet, or too small\n", r->merged);
    if (r->closures > 0) printf("closures      %d, to be joined by springs\n", r->closures);
    if (r->grounds > 0) printf("ground        %d domains other than the root have held vertices\n", r->grounds);
    printf("\n domain  parent  level  elements  interface: points     m^2  name\n");
    for (int i = 0; i < tree->count; i++) {
        printf("%7d %7d %6d %9d", i, tree->parent[i], tree->level[i],
               tree->element_start[i + 1] - tree->element_start[i]);
        if (i > 0)
            printf(" %18d %9.4g", points_of(&tree->interfaces, i), interface_area(tree, i));
        else
            printf(" %18s %9s", "-", "-");
        app_print("  %s\n", tree->name[i]);
    }
    for (int i = 0; i < tree->closures.count; i++)
        printf("%sclosure of domains %d and %d: %d points\n", i == 0 ? "\n" : "", tree->closure_pair[2 * i],
               tree->closure_pair[2 * i + 1], points_of(&tree->closures, i));
    for (int i = 0; i < tree->grounds.count; i++)
        printf("%sdomain %d is held at %d points\n", i == 0 ? "\n" : "", tree->ground_domain[i],
               points_of(&tree->grounds, i));
    return APP_DONE;
}

// ---- copies
// ----------------------------------------------------------------------------------------------------------

// Cell fields: piece, its shape, and how far it is off.
static fem_status write_copies(const fem_mesh *mesh, const domain_copies *copies, const char *path) {
    fem_status status = FEM_OK;
    size_t     elements = (size_t)mesh->element_count;
    double    *cells = fem_alloc(3 * elements, sizeof *cells);
    if (!cells) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for fields on %zu elements", elements);
    for (size_t e = 0; e < elements; e++) {
        cells[e] = copies->piece[e];
        cells[elements + e] = copies->class_of[copies->piece[e]];
        cells[2 * elements + e] = copies->error[copies->piece[e]];
    }
    const fem_field fields[] = {
        {"piece", 1, cells, true}, {"shape", 1, cells + elements, true}, {"error", 1, cells + 2 * elements, true}};
    status = fem_mesh_write_vtu(mesh, path, NULL, 3, fields);
    fem_free(cells);
    return status;
}

static int json_copies(const fem_mesh *mesh, const domain_copies *copies) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_integer(&json, "vertices", mesh->vertex_count);
    app_json_integer(&json, "elements", mesh->element_count);
    app_json_integer(&json, "shapes", copies->class_count);
    app_json_array(&json, "pieces");
    for (int i = 0; i < copies->count; i++) { // a vertex X of the model is at p + scale Q X
        app_json_object(&json, NULL);
        app_json_integer(&json, "shape", copies->class_of[i]);
        app_json_integer(&json, "model", copies->model[copies->class_of[i]]);
        app_json_integer(&json, "vertices", copies->start[i + 1] - copies->start[i]);
        app_json_numbers(&json, "p", 3, copies->p[i]);
        app_json_numbers(&json, "Q", 9, copies->Q[i]);
        app_json_number(&json, "scale", copies->scale[i]);
        app_json_number(&json, "error", copies->error[i]);
        app_json_end(&json);
    }
    app_json_end(&json);
    return app_json_finish(&json);
}

static int print_copies(const fem_mesh *mesh, const domain_copies *copies) {
    printf("%d vertices, %d elements: %d piece%s, %d shape%s\n", mesh->vertex_count, mesh->element_count, copies->count,
           copies->count == 1 ? "" : "s", copies->class_count, copies->class_count == 1 ? "" : "s");
    printf("\n  shape  pieces  vertices          scales  off by, m\n");
    for (int k = 0; k < copies->class_count; k++) {
        int    model = copies->model[k], pieces = 0;
        double low = 1, high = 1, error = 0;
        for (int i = 0; i < copies->count; i++) {
            if (copies->class_of[i] != k) continue;
            pieces++;
            low = low < copies->scale[i] ? low : copies->scale[i];
            high = high > copies->scale[i] ? high : copies->scale[i];
            error = error > copies->error[i] ? error : copies->error[i];
        }
        printf("%7d %7d %9d %7.3g to %5.3g %10.2g\n", k, pieces, copies->start[model + 1] - copies->start[model], low,
               high, error);
    }
    return fflush(stdout) == 0 ? APP_DONE : APP_FAILED;
}

static int run_copies(const settings *s, const char *path) {
    fem_status    status = FEM_OK;
    bool          writing = false;
    int           exit_code = APP_DONE;
    fem_mesh      mesh = {0};
    domain_copies copies = {0};
    FEM_TRY(fem_mesh_read(&mesh, path));
    status = domain_find_copies(&copies, &mesh, s->tolerance > 0 ? s->tolerance : 1e-4);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    writing = true;
    if (s->write) FEM_TRY(write_copies(&mesh, &copies, s->write));
    exit_code = s->json ? json_copies(&mesh, &copies) : print_copies(&mesh, &copies);
done:
    if (status != FEM_OK) exit_code = writing ? app_fail_output(status) : app_fail(status);
    domain_copies_destroy(&copies);
    fem_mesh_destroy(&mesh);
    return exit_code;
}

static int run(int argc, char **argv) {
    settings         s = {.options = domain_default_options(), .feet = FEET[0]};
    const app_option options[] = {
        {"--domains", "-n", APP_INT, &s.domains, 1, 1e9, "N", "how many domains; fewer may come out"},
        {"--method", NULL, APP_TEXT, &s.method, 0, 0, "NAME",
         "geodesic (the default: cuts across limbs), metis (the default with --loops springs), regions, or sets (the "
         "mesh's own element sets)"},
        {"--fix", NULL, APP_TEXT, &s.fix, 0, 0, "FILE|set:NAME",
         "held vertices, as in `limber modes`: the root is where they are; default: a free body, the root is central"},
        {"--loops", NULL, APP_TEXT, &s.loops, 0, 0, "WHAT",
         "merge (default for geodesic and metis), springs (cut open and list what to join), refuse (default "
         "otherwise)"},
        {"--feet", NULL, APP_TEXT, &s.feet, 0, 0, "WHAT",
         "held vertices on several limbs: merge them into the root (the default), or springs to the ground"},
        {"--copies", NULL, APP_FLAG, &s.copies, 0, 0, NULL,
         "instead: which connected pieces are copies of each other, turned, moved and scaled"},
        {"--tolerance", NULL, APP_NUMBER, &s.tolerance, 1e-15, 0.01, "T",
         "of copies: how far vertices may be off, over the radius of gyration of the piece; default 1e-4"},
        {"--output", "-o", APP_TEXT, &s.write, 0, 0, "FILE.vtu",
         "the mesh with cell fields domain, level, parent and vertex fields owner, interface; of copies with cell "
         "fields piece, shape, error"},
        {"--json", NULL, APP_FLAG, &s.json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    int       exit_code;
    if (!app_parse(&command_decompose, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words, &exit_code))
        return exit_code;
    if ((exit_code = check_settings(&s)) != APP_DONE) return exit_code;
    if (s.copies) return run_copies(&s, words.items[0]);

    fem_status  status = FEM_OK;
    bool        writing = false;
    fem_mesh    mesh = {0};
    domain_tree tree = {0};
    int        *fixed = NULL;
    FEM_TRY(fem_mesh_read(&mesh, words.items[0]));
    if (s.fix) FEM_TRY(app_fixed_read(&mesh, s.fix, &fixed, &s.options.fixed_count));
    s.options.fixed = fixed;
    status = domain_decompose(&tree, &mesh, &s.options);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", words.items[0]);
        goto done;
    }
    writing = true;
    if (s.write) FEM_TRY(write_fields(&mesh, &tree, s.write));
    exit_code = s.json ? print_json(&mesh, &tree) : print_text(&mesh, &tree);
done:
    if (status != FEM_OK) exit_code = writing ? app_fail_output(status) : app_fail(status);
    fem_free(fixed);
    domain_tree_destroy(&tree);
    fem_mesh_destroy(&mesh);
    return exit_code;
}

const app_command command_decompose = {"decompose",
                                       "A mesh cut into a tree of domains",
                                       "MESH --domains N|--copies [OPTIONS]",
                                       "limber decompose hand.veg --domains 20 --fix hand.bou -o hand.vtu",
                                       run,
                                       NULL};

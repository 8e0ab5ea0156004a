// Scenes in: strict JSON with lines, tables of keys, overrides, selections, motions, and the description of the format.
#include "tests/support.h"
#include "libscene/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stddef.h>

static const char SMALL[] =
    "{\n"
    "  \"limber\": 1,\n"
    "  \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},\n"
    "  \"parts\": {\n"
    "    \"beam\": {\n"
    "      \"mesh\": {\"box\": {\"high\": [1, 0.2, 0.2], \"cells\": [5, 2, 2]}},\n"
    "      \"material\": \"rubber\",\n"
    "      \"fixed\": \"x0\"\n"
    "    }\n"
    "  },\n"
    "  \"objects\": [{\"part\": \"beam\"}],\n"
    "  \"environment\": {\"gravity\": [0, 0, -9.81]},\n"
    "  \"actions\": [\n"
    "    {\"force\": [0, 0, -1], \"on\": \"x1\", \"start\": 0.1, \"ramp\": 0.2},\n"
    "    {\"pressure\": 10, \"on\": {\"plane\": {\"point\": [0, 0, 0.2], \"normal\": [0, 0, 1]}}}\n"
    "  ],\n"
    "  \"solver\": {\"step\": 0.01, \"damping\": {\"stiffness\": 0.001, \"local\": true}},\n"
    "  \"output\": {\"frames\": 4, \"rate\": 50, \"probes\": {\"tip\": \"x1\", \"mid\": {\"nearest\": [0.5, 0, 0]}}}\n"
    "}\n";

// ---- JSON
// ----------------------------------------------------------------------------------------------------------------

static fem_status parse(const char *text) {
    cJSON     *root = NULL;
    fem_status status = json_parse(&root, "f", text, strlen(text));
    cJSON_Delete(root);
    return status;
}

// what RFC 8259 refuses is refused with line and reason, and what it allows is read
static void test_json_strict(void **state) {
    (void)state;
    const char *const bad[][2] = {
        {"", "f:1: the file is empty"},
        {"\n\n", "f:3: the file is empty"},
        {"{", "f:1: expected a key in double quotes, found the end"},
        {"{\"a\"}", "expected \":\""},
        {"{\"a\":}", "expected a value, found \"}\""},
        {"{\"a\":1,}", "comma before \"}\""},
        {"[1,]", "comma before \"]\""},
        {"[1 2]", "expected \",\" or \"]\""},
        {"[1\n,2\n}", "f:3: expected \",\" or \"]\" after a value, found \"}\""},
        {"[]]", "behind the end"},
        {"[01]", "must not start with 0"},
        {"[-01]", "must not start with 0"},
        {"[1.]", "followed by a digit"},
        {"[.5]", "must start with a digit"},
        {"[-]", "must start with a digit"},
        {"[1e]", "exponent"},
        {"[1e+]", "exponent"},
        {"[1e999]", "too large"},
        {"[-1e400]", "too large"},
        {"[NaN]", "not numbers"},
        {"[-Infinity]", "not numbers"},
        {"[nul]", "expected a value"},
        {"[tru]", "expected a value"},
        {"[True]", "expected a value"},
        {"['a']", "double quotes"},
        {"[\"a]", "does not end"},
        {"[\"a\nb\"]", "does not end on its line"},
        {"[\"\\q\"]", "not an escape"},
        {"[\"\\u12g4\"]", "hexadecimal"},
        {"[\"\\u12\"]", "hexadecimal"},
        {"[\"\\u0000\"]", "not allowed"},
        {"[\"\\ud800\\u0041\"]", "surrogate"},
        {"[\"\\udc00\"]", "surrogate"},
        {"[\"\x01\"]", "control character 0x01"},
        {"[\"\xff\"]", "not valid UTF-8"},
        {"[\"\xe2\x82\"]", "not valid UTF-8"},
        {"[\"\xed\xa0\x80\"]", "not valid UTF-8"},
        {"[\"\xf4\x90\x80\x80\"]", "not valid UTF-8"},
        {"\xef\xbb\xbf{}", "byte order mark"},
        {"{\"a\": 1,\n \"a\": 2}", "f:2: the key \"a\" stands twice in one object, first on line 1"},
        {"{\"a\": {\"b\": 1,\n\"c\": 2,\n\"\\u0062\": 2}}", "f:3: the key \"b\" stands twice"},
        {"// x\n{}", "comments"},
    };
    const char *const good[] = {"{}",
                                " [ ] ",
                                "[0, -0, 0.5, 1e5, 1E-5, 1.25e+3, -7]",
                                "[true, false, null]",
                                "\"\\ud83d\\ude00 \\n \xe2\x82\xac\"",
                                "{\"a\": {\"a\": 1}, \"A\": 2}",
                                "[1e-999]"};
    enum { BAD = sizeof bad / sizeof *bad, GOOD = sizeof good / sizeof *good };
    for (int i = 0; i < BAD; i++) assert_fails(parse(bad[i][0]), FEM_BAD_INPUT, bad[i][1]);
    for (int i = 0; i < GOOD; i++) assert_ok(parse(good[i]));
    printf("%d texts refused, %d read\n", BAD, GOOD);
}

// 64 levels are read, 65 are refused; a zero byte ends nothing
static void test_json_limits(void **state) {
    (void)state;
    char text[256];
    for (int depth = JSON_DEPTH; depth <= JSON_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        assert_int_equal(parse(text), depth == JSON_DEPTH ? FEM_OK : FEM_BAD_INPUT);
    }
    cJSON *root = NULL;
    assert_fails(json_parse(&root, "f", "{}\0{}", 5), FEM_BAD_INPUT, "0x00");
    assert_fails(json_parse(&root, "f", "[\"a\0b\"]", 7), FEM_BAD_INPUT, "control character 0x00");
    char number[80] = "[";
    memset(number + 1, '1', 60);
    assert_ok(parse(strcat(number, "]")));
    memset(number + 1, '1', 61);
    number[62] = 0;
    assert_fails(parse(strcat(number, "]")), FEM_BAD_INPUT, "60 characters");
    printf("depth %d is the deepest\n", JSON_DEPTH);
}

typedef struct line_check {
    int nodes, wrong;
} line_check;

// every number of the text below is the line that it stands on
static void check_line(void *context, cJSON *node) {
    line_check *check = context;
    check->nodes++;
    if (cJSON_IsNumber(node) && (int)node->valuedouble != node->valueint) check->wrong++;
}

static void test_json_lines(void **state) {
    (void)state;
    const char *text = "{\"a\": 1, \"b\": [1,\n2, 2,\n\n[4], {},\n {\"c\": 5\n}\n],\n\n\"d\":\n 9, \"e\": 10 }";
    cJSON      *root = NULL;
    assert_ok(json_parse(&root, "f", text, strlen(text)));
    line_check check = {0};
    json_visit(root, check_line, &check);
    assert_int_equal(check.nodes, 13);
    assert_int_equal(check.wrong, 0); // "d", whose value is on the next line, counts by its key
    cJSON_Delete(root);
    printf("%d values have their lines\n", check.nodes);
}

// ---- loading
// -----------------------------------------------------------------------------------------------------------------

static fem_status load_text(scene **s, const char *text, int count, const char *const *overrides) {
    return scene_load(s, test_write("scene.json", text), count, overrides);
}

// the values of a scene arrive in the struct, and absent keys have the solver's own defaults
static void test_load(void **state) {
    (void)state;
    scene         *s = NULL;
    solver_options usual = solver_default_options();
    assert_ok(load_text(&s, SMALL, 0, NULL));
    assert_string_equal(s->name, "scene");
    assert_int_equal(s->parts[0].mesh.vertex_count, 54);
    assert_int_equal(s->parts[0].fixed.count, 9);
    assert_int_equal(s->action_count, 2);
    assert_int_equal(s->actions[0].kind, SCENE_FORCE);
    assert_int_equal(s->actions[1].kind, SCENE_PRESSURE);
    assert_true(s->actions[1].load.vector[0] == 10 && isinf(s->actions[1].end));
    assert_int_equal(s->actions[1].load.on.count, 18);
    assert_int_equal(s->steps_per_frame, 2);
    assert_true(fabs(s->solver.time_step - 0.01) < 1e-15);
    assert_true(s->solver.damping_local && s->solver.damping_stiffness == 0.001);
    assert_true(s->parts[0].mesh.materials[s->parts[0].mesh.regions[0].material].young == 1e6);
    assert_int_equal(s->probe_count, 2);
    assert_int_equal(s->probes[1].on.count, 1);
    assert_true(s->solver.newton_tolerance == usual.newton_tolerance &&
                s->solver.newton_iterations == usual.newton_iterations);
    assert_true(s->solver.line_search == usual.line_search && s->solver.load_halvings == usual.load_halvings);
    assert_true(s->solver.newmark_beta == usual.newmark_beta && s->solver.newmark_gamma == usual.newmark_gamma);
    assert_true(s->solver.integrator == usual.integrator && s->solver.mass == usual.mass &&
                s->solver.linear == usual.linear);
    assert_true(s->solver.pcg_tolerance == usual.pcg_tolerance && s->solver.pcg_iterations == usual.pcg_iterations);
    assert_true(s->solver.load_steps == usual.load_steps && s->solver.damping_mass == usual.damping_mass);
    scene_summary summary;
    assert_ok(scene_summarize(s, &summary));
    assert_true(fabs(summary.mass - 40) < 1e-9);
    assert_int_equal(summary.free_dofs, 3 * 45);
    printf("mass %.12g kg, %d free degrees of freedom, %.0f bytes\n", summary.mass, summary.free_dofs, summary.bytes);
    scene_destroy(s);
}

// the choices of a material are the library's kinds in the library's order
static void test_material_kinds(void **state) {
    (void)state;
    char name[32];
    int  count = 0;
    for (; key_choice(&scene_material_table.keys[0], count, name, sizeof name); count++)
        assert_string_equal(name, fem_material_kind_name((fem_material_kind)count));
    assert_int_equal(count, FEM_MATERIAL_KINDS);
    printf("%d kinds\n", count);
}

// an override acts as if the file had said it, and its mistakes are reported as its own
static void test_overrides(void **state) {
    (void)state;
    scene            *s = NULL;
    const char *const good[] = {"solver.step=0.005",         "solver.newton.tolerance=1e-4",
                                "actions.0.force=[1, 2, 3]", "parts.beam.fixed=x1",
                                "actions.0.on=y1",           "title=a test"};
    assert_ok(load_text(&s, SMALL, 6, good));
    assert_int_equal(s->steps_per_frame, 4);
    assert_true(s->solver.newton_tolerance == 1e-4 && s->actions[0].load.vector[2] == 3);
    assert_true(s->parts[0].mesh.vertices[3 * s->parts[0].fixed.items[0]] == 1);
    assert_string_equal(s->title, "a test");
    scene_destroy(s);
    s = NULL;
    const char *const bad[][2] = {
        {"solver.step=-1", "--set solver.step=-1: solver.step: is -1, expected > 0"},
        {"solver.step=fast", "--set solver.step=fast: solver.step: is a string, expected a number"},
        {"solver.stpe=1", "--set solver.stpe=1: solver.stpe: unknown key (did you mean \"step\"?)"},
        {"solvr.step=1", "--set solvr.step=1: solvr: unknown key (did you mean \"solver\"?)"},
        {"solver.step", "--set solver.step: expected key=value"},
        {"=1", "--set =1: expected key=value"},
        {"solver.step.fast=1", "\"step\" is no section"},
        {"actions.7.force=[1,1,1]", "\"7\" is no section"},
        {"actions.2={}", "\"2\" is no section"},
        {"actions.x=1", "\"x\" is no section"},
        {"solver.=1", "is no section"},
        {"environment.gravity=[0,0]", "--set environment.gravity=[0,0]: environment.gravity: has 2 items, expected 3"},
    };
    enum { BAD = sizeof bad / sizeof *bad };
    for (int i = 0; i < BAD; i++) assert_fails(load_text(&s, SMALL, 1, &bad[i][0]), FEM_BAD_INPUT, bad[i][1]);
    printf("6 overrides taken, %d refused\n", BAD);
}

static int select_count(const char *selection) {
    scene *s = NULL;
    char   text[256];
    snprintf(text, sizeof text, "output.probes={\"p\": %s}", selection);
    const char *override = text;
    assert_ok(load_text(&s, SMALL, 1, &override));
    int count = s->probes[0].on.count;
    for (int i = 1; i < count; i++) assert_true(s->probes[0].on.items[i] > s->probes[0].on.items[i - 1]);
    scene_destroy(s);
    return count;
}

// each kind of selection finds the grid points of a 5 x 2 x 2 box that it should
static void test_selections(void **state) {
    (void)state;
    assert_ok(fem_vertex_list_write(test_temporary("list.bou"), 3, (const int[]){2, 5, 9}, 0));
    const struct {
        const char *selection;
        int         count;
    } cases[] = {
        {"\"x1\"", 9},
        {"[\"x0\", \"x1\"]", 18},
        {"[\"x0\", \"y0\"]", 9 + 18 - 3},
        {"{\"vertices\": [3, 1, 3]}", 2},
        {"{\"file\": \"list.bou\"}", 3},
        {"{\"region\": \"all\"}", 54},
        {"{\"box\": [[0.2, 0, 0], [0.6, 0.1, 0]]}", 3 * 2},
        {"{\"plane\": {\"point\": [0.4, 0, 0], \"normal\": [-3, 0, 0]}}", 9},
        {"{\"plane\": {\"point\": [0.4, 0, 0], \"normal\": [1, 0, 0], \"tolerance\": 0.25}}", 27},
        {"{\"halfspace\": {\"point\": [0.4, 0, 0], \"normal\": [1, 0, 0]}}", 36},
        {"{\"ball\": {\"centre\": [0, 0, 0], \"radius\": 0.1}}", 3},
        {"{\"nearest\": [0.49, 3, -7]}", 1},
        {"[{\"nearest\": [0, 0, 0]}, {\"nearest\": [1, 1, 1]}, \"x0\"]", 10},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    for (int i = 0; i < CASES; i++) assert_int_equal(select_count(cases[i].selection), cases[i].count);
    printf("%d selections\n", CASES);
}

// the units of a mesh file may differ: scale multiplies the coordinates before selections are made
static void test_scale(void **state) {
    (void)state;
    scene            *s = NULL;
    const char *const overrides[] = {"parts.beam.scale=0.001",
                                     "output.probes={\"p\": {\"box\": [[0, 0, 0], [0.0005, 1, 1]]}}", "actions=[]"};
    assert_ok(load_text(&s, SMALL, 3, overrides));
    assert_int_equal(s->probes[0].on.count, 27);
    scene_summary summary;
    assert_ok(scene_summarize(s, &summary));
    assert_true(fabs(summary.mass / 40e-9 - 1) < 1e-9);
    printf("mass %.12g kg\n", summary.mass);
    scene_destroy(s);
}

// loads rise and fall over their ramp; motions pass their keyframes, rotate rigidly, and smooth ones rest there
static void test_time(void **state) {
    (void)state;
    scene_action load = {.start = 1, .end = 3, .ramp = 0.5};
    const double factors[][2] = {{0, 0},      {1, 0},   {1.25, 0.5}, {1.5, 1},     {3, 1},
                                 {3.25, 0.5}, {3.5, 0}, {9, 0},      {INFINITY, 1}};
    for (int i = 0; i < 9; i++) assert_true(fabs(scene_load_factor(&load, factors[i][0]) - factors[i][1]) < 1e-14);

    scene_keyframe keyframes[] = {{.time = 1, .translation = {1, 0, 0}},
                                  {.time = 2, .translation = {1, 2, 0}, .rotation = {0, 0, acos(-1)}}};
    scene_move     move = {.centre = {1, 1, 1}, .count = 2, .keyframes = keyframes};
    double         X[3] = {2, 1, 1}, u[3];
    const double   wanted[][4] = {{0, 0, 0, 0},   {0.5, 0.5, 0, 0}, {1, 1, 0, 0},
                                  {1.5, 0, 2, 0}, {2, -1, 2, 0},    {7, -1, 2, 0}};
    for (int i = 0; i < 6; i++) {
        scene_move_point(&move, wanted[i][0], X, u);
        for (int k = 0; k < 3; k++) assert_true(fabs(u[k] - wanted[i][k + 1]) < 1e-12);
    }
    move.smooth = true;
    double before[3], after[3], h = 1e-5;
    scene_move_point(&move, 1 - h, X, before);
    scene_move_point(&move, 1 + h, X, after);
    double speed = vec3_distance(before, after) / (2 * h);
    assert_true(speed < 1e-3);
    printf("speed at a smooth keyframe %.1e m/s\n", speed);
}

// ---- the description
// -----------------------------------------------------------------------------------------------------------

// The committed file is what the tables say; LIMBER_UPDATE=1 writes it anew.
static void compare_file(const char *path, const char *text) {
    char  *committed = NULL;
    size_t size = 0;
    if (getenv("LIMBER_UPDATE")) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
    }
    assert_ok(fem_file_read(&committed, &size, path));
    size_t same = 0;
    while (same < size && text[same] == committed[same]) same++;
    if (same < size || text[same])
        fail_msg("%s differs from the tables at byte %zu; LIMBER_UPDATE=1 writes it anew", path, same);
    fem_free(committed);
}

static void test_description(void **state) {
    (void)state;
    char              *schema = NULL, *page = NULL, *text = NULL;
    size_t             size = 0;
    const scene_table *tables[SCENE_TABLES_MOST];
    int                count = scene_all_tables(tables), keys = 0;
    assert_ok(scene_schema(&schema));
    compare_file("scenes/limber.schema.json", schema);
    assert_ok(fem_file_read(&text, &size, "docs/scenes.md"));
    assert_ok(scene_page(&page, text));
    compare_file("docs/scenes.md", page);
    assert_true(count < SCENE_TABLES_MOST);
    for (int i = 0; i < count; i++) {
        char marker[64];
        snprintf(marker, sizeof marker, "<!-- keys: %s -->\n", tables[i]->name);
        const char *start = strstr(page, marker), *end = start ? strstr(start, "<!-- end -->") : NULL;
        if (!end) fail_msg("docs/scenes.md has no table \"%s\"", tables[i]->name);
        for (int k = 0; k < tables[i]->count; k++, keys++) {
            char        row[64];
            const char *found;
            snprintf(row, sizeof row, "\n| `%s` |", tables[i]->keys[k].name);
            found = strstr(start, row);
            if (!found || found > end)
                fail_msg("docs/scenes.md: %s lacks %s", tables[i]->name, tables[i]->keys[k].name);
        }
    }
    printf("%d keys in %d tables\n", keys, count);
    fem_free(schema);
    fem_free(page);
    fem_free(text);
}

// ---- an independent reading of the schema: a small validator
// -----------------------------------------------------------------

static cJSON *schema_root;

static bool valid(const cJSON *schema, const cJSON *value);

static bool has_type(const cJSON *value, const char *type) {
    if (strcmp(type, "object") == 0) return cJSON_IsObject(value);
    if (strcmp(type, "array") == 0) return cJSON_IsArray(value);
    if (strcmp(type, "string") == 0) return cJSON_IsString(value);
    if (strcmp(type, "boolean") == 0) return cJSON_IsBool(value);
    if (strcmp(type, "integer") == 0) return cJSON_IsNumber(value) && value->valuedouble == floor(value->valuedouble);
    assert_string_equal(type, "number");
    return cJSON_IsNumber(value);
}

static const cJSON *get(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

static bool same_value(const cJSON *a, const cJSON *b) {
    return cJSON_IsString(a) && cJSON_IsString(b) && strcmp(a->valuestring, b->valuestring) == 0;
}

static bool valid_number(const cJSON *schema, double x) {
    const cJSON *limit;
    if ((limit = get(schema, "minimum")) && x < limit->valuedouble) return false;
    if ((limit = get(schema, "maximum")) && x > limit->valuedouble) return false;
    if ((limit = get(schema, "exclusiveMinimum")) && x <= limit->valuedouble) return false;
    return !((limit = get(schema, "exclusiveMaximum")) && x >= limit->valuedouble);
}

// The only pattern in the schema: names of letters, digits, _ and -, and whatever lies beyond ASCII.
static bool valid_name(const cJSON *rule, const char *name) {
    double length = (double)strlen(name);
    assert_string_equal(get(rule, "pattern")->valuestring, "^[A-Za-z0-9_\\-\\u0080-\\uffff]+$");
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x80 && !strchr("_-", *c) && !isalnum((unsigned char)*c)) return false;
    return length >= get(rule, "minLength")->valuedouble && length <= get(rule, "maxLength")->valuedouble;
}

static bool valid_object(const cJSON *schema, const cJSON *value) {
    const cJSON *required = get(schema, "required"), *properties = get(schema, "properties"), *item;
    const cJSON *names = get(schema, "propertyNames"), *least = get(schema, "minProperties");
    if (least && cJSON_GetArraySize(value) < least->valuedouble) return false;
    cJSON_ArrayForEach(item, value) if (names && !valid_name(names, item->string)) return false;
    cJSON_ArrayForEach(item, required) if (!get(value, item->valuestring)) return false;
    cJSON_ArrayForEach(item, value) {
        const cJSON *known = properties ? get(properties, item->string) : NULL,
                    *others = get(schema, "additionalProperties");
        if (known && !valid(known, item)) return false;
        if (!known && others && !valid(others, item)) return false;
    }
    return true;
}

static bool valid_array(const cJSON *schema, const cJSON *value) {
    const cJSON *items = get(schema, "items"), *limit, *item;
    if ((limit = get(schema, "minItems")) && cJSON_GetArraySize(value) < limit->valuedouble) return false;
    if ((limit = get(schema, "maxItems")) && cJSON_GetArraySize(value) > limit->valuedouble) return false;
    cJSON_ArrayForEach(item, value) if (items && !valid(items, item)) return false;
    return true;
}

static int count_valid(const cJSON *schemas, const cJSON *value) {
    int          count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, schemas) count += valid(item, value);
    return count;
}

static bool valid(const cJSON *schema, const cJSON *value) {
    const cJSON *rule, *item;
    if (cJSON_IsBool(schema)) return cJSON_IsTrue(schema);
    if ((rule = get(schema, "$ref"))) {
        const char  *name = strrchr(rule->valuestring, '/') + 1;
        const cJSON *target = get(get(schema_root, "$defs"), name);
        assert_non_null(target);
        if (!valid(target, value)) return false;
    }
    if ((rule = get(schema, "type")) && !has_type(value, rule->valuestring)) return false;
    if ((rule = get(schema, "const")) && !same_value(rule, value)) return false;
    if ((rule = get(schema, "enum"))) {
        bool found = false;
        cJSON_ArrayForEach(item, rule) found = found || same_value(item, value);
        if (!found) return false;
    }
    if ((rule = get(schema, "minLength")) && cJSON_IsString(value) &&
        strlen(value->valuestring) < (size_t)rule->valuedouble)
        return false;
    if (cJSON_IsNumber(value) && !valid_number(schema, value->valuedouble)) return false;
    if (cJSON_IsObject(value) && !valid_object(schema, value)) return false;
    if (cJSON_IsArray(value) && !valid_array(schema, value)) return false;
    if ((rule = get(schema, "anyOf")) && count_valid(rule, value) == 0) return false;
    if ((rule = get(schema, "oneOf")) && count_valid(rule, value) != 1) return false;
    if ((rule = get(schema, "allOf")) && count_valid(rule, value) != cJSON_GetArraySize(rule)) return false;
    if ((rule = get(schema, "if")) && valid(rule, value) && !valid(get(schema, "then"), value)) return false;
    return true;
}

static void open_schema(void) {
    char  *text = NULL;
    size_t size = 0;
    assert_ok(fem_file_read(&text, &size, "scenes/limber.schema.json"));
    assert_ok(json_parse(&schema_root, "schema", text, size));
    fem_free(text);
}

static void close_schema(void) {
    cJSON_Delete(schema_root);
    schema_root = NULL;
}

static bool schema_accepts(const char *path) {
    char  *text = NULL;
    size_t size = 0;
    cJSON *root = NULL;
    assert_ok(fem_file_read(&text, &size, path));
    bool accepted = json_parse(&root, path, text, size) == FEM_OK && valid(schema_root, root);
    cJSON_Delete(root);
    fem_free(text);
    return accepted;
}

// Bad scenes that no schema can know to be bad: it takes a mesh, a file, or a second value to see it.
static const char *const beyond_schema[] = {
    "stitch_same_vertex",
    "stitch_far_apart",
    "stitch_both_fixed",
    "stitch_odd_pairs",
    "stitch_no_vertex",
    "stitch_too_stiff",
    "stitch_unknown_seam",
    "stitch_twice",
    "stitch_unstitch_open",
    "stitch_full",
    "stitch_free",
    "stitch_stiffness_range",
    "stitch_sketch",
    "stitch_child",
    "stitch_one_object",
    "stitch_no_face",
    "stitch_wrong_face",
    "stitch_no_match",
    "stitch_no_cut",
    "stitch_flat_normal",
    "stitch_domain",
    "stitch_material",
    "box_inside_out",
    "box_too_many_cells",
    "components_apart",
    "components_child",
    "components_children",
    "components_modes",
    "empty_box_selection",
    "empty_probe",
    "end_before_start",
    "forest_cut_components",
    "forest_decompose",
    "forest_far_child",
    "forest_free_child",
    "forest_group_of_itself",
    "forest_held_velocity",
    "forest_mixed_elements",
    "forest_same_place",
    "forest_scatter_at_top",
    "forest_scatter_nowhere",
    "forest_too_many",
    "forest_two_factors",
    "forest_two_kinds_of_copies",
    "forest_unknown_group",
    "forest_unknown_instance",
    "forest_unknown_set",
    "forest_zero_row_scale",
    "force_on_fixed",
    "full_obstacles",
    "full_translation",
    "glb_not_written",
    "held_velocity",
    "interfaces_of_one",
    "keyframe_jump",
    "keyframes_out_of_order",
    "leaf_petiole",
    "material_change_free",
    "material_change_full",
    "material_change_lumped",
    "material_change_region",
    "material_change_type",
    "mesh_file_ending",
    "mesh_file_missing",
    "missing_material",
    "move_twice",
    "obstacle_zero_normal",
    "orthotropic_axes",
    "orthotropic_not_positive",
    "pieces_apart",
    "plane_beside_body",
    "pressure_without_face",
    "reduced_central_free",
    "reduced_linear_only",
    "reduced_midpoint_held",
    "reduced_moved",
    "reduced_no_polynomial",
    "reduced_sketch_free",
    "reduced_sketch_on_fixed",
    "region_without_material",
    "reversed_box_selection",
    "selection_file_missing",
    "selection_region",
    "selection_zero_normal",
    "static_not_held",
    "surface_missing",
    "tiny_step",
    "tree_full",
    "tree_hinge",
    "tree_integrator",
    "tree_loop",
    "tree_lumped_springs",
    "tree_move_part",
    "tree_one_element",
    "tree_stiffness_of_one",
    "tree_too_many_modes",
    "tree_two_counts",
    "tree_two_factors",
    "tree_unknown_domain",
    "tube_one_point",
    "tube_radii",
    "two_objects",
    "unknown_material",
    "unknown_part",
    "unknown_region",
    "unknown_set",
    "vertex_number",
    "wind_full",
    "wind_gust_too_long",
    "wind_upwards",
};

static bool is_beyond_schema(const char *file) {
    for (size_t i = 0; i < sizeof beyond_schema / sizeof *beyond_schema; i++)
        if (strncmp(file, beyond_schema[i], strlen(file) - strlen(".json")) == 0 &&
            strlen(file) - 5 == strlen(beyond_schema[i]))
            return true;
    return false;
}

// loader and schema agree on every scene, good or bad, save those above
static void test_schema_agrees(void **state) {
    (void)state;
    const char *const folders[] = {"scenes", "scenes/bad"};
    int               accepted = 0, refused = 0, beyond = 0;
    open_schema();
    for (int f = 0; f < 2; f++) {
        DIR *folder = opendir(folders[f]);
        assert_non_null(folder);
        for (struct dirent *entry; (entry = readdir(folder));) {
            char   path[512];
            scene *s = NULL;
            if (!strstr(entry->d_name, ".json") || strstr(entry->d_name, ".schema.json")) continue;
            snprintf(path, sizeof path, "%s/%.400s", folders[f], entry->d_name);
            bool by_loader = scene_load(&s, path, 0, NULL) == FEM_OK, by_schema = schema_accepts(path);
            scene_destroy(s);
            if (by_schema != by_loader && !(by_schema && is_beyond_schema(entry->d_name)))
                fail_msg("%s: the loader %s it, the schema does not agree", path, by_loader ? "takes" : "refuses");
            accepted += by_loader;
            refused += !by_loader && !by_schema;
            beyond += !by_loader && by_schema;
        }
        closedir(folder);
    }
    close_schema();
    assert_true(accepted >= 7 && refused >= 70);
    assert_int_equal(beyond, sizeof beyond_schema / sizeof *beyond_schema);
    printf("%d scenes accepted by both, %d refused by both, %d refused by the loader only\n", accepted, refused,
           beyond);
}

// ---- key by key ----------------------------------------------------------------------------------------------------

static cJSON *make_object(const scene_table *table, int variant);

// A value that a key takes: the middle of its range, its first choice, the least that its table wants.
static double middle_of(const scene_key *key) {
    double x = key->low == 0 && key->high == 0 ? 1 : (key->low + key->high) / 2;
    return key->type == KEY_INTEGER ? floor(x) : x;
}

static cJSON *row_of(double x, int count) {
    cJSON *row = cJSON_CreateArray();
    for (int i = 0; i < count; i++) cJSON_AddItemToArray(row, cJSON_CreateNumber(x));
    return row;
}

static cJSON *rows_of(double x, int count, int rows) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < rows; i++) cJSON_AddItemToArray(list, row_of(x, count));
    return list;
}

static cJSON *shaped(const scene_key *key, double x) {
    switch (key->shape) {
    case SHAPE_ONE:
    case SHAPE_ANY:
        return cJSON_CreateNumber(x);
    case SHAPE_VECTOR:
        return row_of(x, 3);
    case SHAPE_LIST:
        return row_of(x, 2);
    case SHAPE_PAIR:
        return rows_of(x, 3, 2);
    case SHAPE_POINTS:
        return rows_of(x, 3, 4);
    default:
        return rows_of(x, 7, 2);
    }
}

static cJSON *listed(cJSON *item) {
    cJSON *list = cJSON_CreateArray();
    cJSON_AddItemToArray(list, item);
    return list;
}

static cJSON *named(const char *name, cJSON *item) {
    cJSON *map = cJSON_CreateObject();
    cJSON_AddItemToObject(map, name, item);
    return map;
}

static cJSON *make_value(const scene_key *key) {
    char word[64] = "word";
    switch (key->type) {
    case KEY_NUMBER:
    case KEY_INTEGER:
        return shaped(key, middle_of(key));
    case KEY_FLAG:
        return cJSON_CreateBool(true);
    case KEY_CHOICE:
        assert_true(key_choice(key, 0, word, sizeof word));
        return key->shape == SHAPE_LIST ? listed(cJSON_CreateString(word)) : cJSON_CreateString(word);
    case KEY_SECTION:
        return make_object(key->table, 0);
    case KEY_MAP:
        return named("a", make_object(key->table, 0));
    case KEY_LIST:
        return listed(make_object(key->table, 0));
    case KEY_SELECTIONS:
        return named("a", cJSON_CreateString("all"));
    default:
        return cJSON_CreateString(word);
    }
}

static bool has_key(const scene_key *key, int variant) { return key->only == 0 || key->only >> variant & 1u; }

// The least that a variant of a table wants.
static cJSON *make_object(const scene_table *table, int variant) {
    cJSON *object = cJSON_CreateObject();
    char   word[64];
    int    alternative = 0;
    for (int i = 0; i < table->count; i++) {
        const scene_key *key = &table->keys[i];
        bool             wanted = key->required && has_key(key, variant);
        if (key->alternative) wanted = alternative++ == variant;
        if (table->typed && i == 0 && key_choice(key, variant, word, sizeof word))
            cJSON_AddItemToObject(object, key->name, cJSON_CreateString(word));
        else if (wanted)
            cJSON_AddItemToObject(object, key->name, make_value(key));
    }
    return object;
}

static void set_line(void *context, cJSON *node) {
    (void)context;
    node->valueint = 1;
}

// Does the loader take this object? What its values hold inside lists and maps is looked at one table at a time.
static bool loader_takes(const scene_table *table, cJSON *object) {
    static max_align_t room[4096];
    scene_reader       reader = {.file = "keys.json"};
    memset(room, 0, sizeof room);
    json_visit(object, set_line, NULL);
    return reader_table(&reader, object, table, room) == FEM_OK;
}

static void agree(const scene_table *table, cJSON *object, const char *about, int *taken, int *refused) {
    bool by_schema = valid(get(get(schema_root, "$defs"), table->name), object),
         by_loader = loader_takes(table, object);
    if (by_schema != by_loader) {
        char *text = cJSON_PrintUnformatted(object);
        fail_msg("%s, %s: the loader %s %s, the schema does not agree", table->name, about,
                 by_loader ? "takes" : "refuses", text);
    }
    ++*(by_loader ? taken : refused);
}

static cJSON *with_value(const cJSON *base, const char *key, cJSON *value) {
    cJSON *object = cJSON_Duplicate(base, true);
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (value) cJSON_AddItemToObject(object, key, value);
    return object;
}

static void try_value(const scene_table *table, const cJSON *base, const char *key, cJSON *value, int *taken,
                      int *refused) {
    cJSON *object = with_value(base, key, value);
    agree(table, object, key, taken, refused);
    cJSON_Delete(object);
}

// Values inside, at and beyond the limits of a key, and of every other kind.
static void try_key(const scene_table *table, const cJSON *base, const scene_key *key, int *taken, int *refused) {
    bool        numeric = key->type == KEY_NUMBER || key->type == KEY_INTEGER;
    bool        nested = key->type >= KEY_SECTION;
    const char *name = key->name;
    char        word[64];
    try_value(table, base, name, make_value(key), taken, refused);
    for (int i = 0; key->type == KEY_CHOICE && key_choice(key, i, word, sizeof word); i++)
        try_value(table, base, name,
                  key->shape == SHAPE_LIST ? listed(cJSON_CreateString(word)) : cJSON_CreateString(word), taken,
                  refused);
    if (numeric) {
        double width = key->high - key->low, step = key->type == KEY_INTEGER ? 1 : 1e-3 * width;
        double numbers[] = {key->low, key->high, key->low - step, key->high + step, 0, -1, 0.5, 1e18, -1e18, 3};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            try_value(table, base, name, shaped(key, numbers[i]), taken, refused);
            try_value(table, base, name, cJSON_CreateNumber(numbers[i]), taken, refused);
        }
        for (int count = 0; count < 9; count++) {
            try_value(table, base, name, row_of(middle_of(key), count), taken, refused);
            try_value(table, base, name, rows_of(middle_of(key), count, 2), taken, refused);
            try_value(table, base, name, rows_of(middle_of(key), 3, count), taken, refused);
        }
    }
    if (!nested) {
        cJSON *others[] = {cJSON_CreateArray(), cJSON_CreateObject(), cJSON_CreateString(""),
                           cJSON_CreateString("none of them"), listed(cJSON_CreateString("none of them"))};
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            try_value(table, base, name, others[i], taken, refused);
    }
    if (key->type == KEY_LIST || key->type == KEY_MAP) { // how many, and of which kind
        try_value(table, base, name, cJSON_CreateArray(), taken, refused);
        try_value(table, base, name, cJSON_CreateObject(), taken, refused);
        try_value(table, base, name, cJSON_CreateString("word"), taken, refused);
    }
    try_value(table, base, name, cJSON_CreateNumber(0.5), taken, refused);
    try_value(table, base, name, cJSON_CreateBool(false), taken, refused);
    try_value(table, base, name, cJSON_CreateNull(), taken, refused);
    try_value(table, base, name, NULL, taken, refused); // missing
}

// Table by table, variant by variant, key by key: what the loader takes and refuses, so does the schema. Keys of other
// variants and of no variant are refused by both.
static void test_every_key(void **state) {
    (void)state;
    const scene_table *tables[SCENE_TABLES_MOST];
    int                count = scene_all_tables(tables), taken = 0, refused = 0, keys = 0, variants = 0;
    open_schema();
    for (int t = 0; t < count; t++) {
        const scene_table *table = tables[t];
        int                most = key_variant_count(table);
        assert_non_null(get(get(schema_root, "$defs"), table->name));
        for (int v = 0; v < (most > 0 ? most : 1); v++, variants++) {
            cJSON *base = make_object(table, v);
            if (!loader_takes(table, base)) fail_msg("%s, variant %d: %s", table->name, v, fem_message());
            agree(table, base, "the least", &taken, &refused);
            for (int k = 0; k < table->count; k++, keys++) try_key(table, base, &table->keys[k], &taken, &refused);
            try_value(table, base, "unknown", cJSON_CreateNumber(1), &taken, &refused);
            cJSON_Delete(base);
        }
    }
    close_schema();
    printf("%d tables in %d variants, %d keys: %d objects taken by both, %d refused by both\n", count, variants, keys,
           taken, refused);
    assert_true(taken > 2 * keys && refused > 5 * keys);
}

// ---- hostile input
// ------------------------------------------------------------------------------------------------------------

// any change of bytes gives a scene or an error with a place, never a crash or a leak; what loads, the schema takes
static void test_mutations(void **state) {
    (void)state;
    enum { MUTATIONS = 6000 };
    static const char tokens[][8] = {"{",     "}",  "[", "]", ",",     ":",  "\"", "null", "true",
                                     "1e999", "-1", "0", "9", "\\u00", "e9", "\n", "\xff"};
    uint64_t          seed = 7;
    long              blocks;
    int               good = 0, located = 0;
    open_schema();
    blocks = fem_memory_blocks();
    for (int i = 0; i < MUTATIONS; i++) {
        char   text[4096];
        size_t length = strlen(SMALL);
        memcpy(text, SMALL, length + 1);
        for (int k = 0; k <= i % 3; k++) {
            size_t at = (size_t)((test_random(&seed) + 1) / 2 * (double)(length - 16));
            switch ((int)((test_random(&seed) + 1) * 2)) {
            case 0:
                text[at] = (char)(1 + 126 * (test_random(&seed) + 1) / 2);
                break;
            case 1:
                memmove(text + at, text + at + 1 + i % 9, length - at - (size_t)(i % 9));
                break;
            case 2: {
                const char *token = tokens[(int)((test_random(&seed) + 1) / 2 * 17)];
                memcpy(text + at, token, strlen(token));
                break;
            }
            default:
                text[at] = text[(at * 7) % length];
                break;
            }
            length = strlen(text);
            if (length < 32) break;
        }
        scene     *s = NULL;
        fem_status status = load_text(&s, text, 0, NULL);
        if (status == FEM_OK) {
            good++;
            if (!schema_accepts(test_temporary("scene.json")))
                fail_msg("the loader takes what the schema does not:\n%s", text);
        } else {
            assert_int_equal(status, FEM_BAD_INPUT);
            located += strstr(fem_message(), "scene.json:") != NULL;
        }
        scene_destroy(s);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    close_schema();
    assert_true(good > 50 && good + located == MUTATIONS);
    printf("%d mutations: %d still scenes, %d errors with file and line\n", MUTATIONS, good, located);
}

// a text cut anywhere is an error
static void test_truncations(void **state) {
    (void)state;
    char   text[4096];
    size_t length = strlen(SMALL);
    for (size_t cut = 0; cut + 2 < length; cut++) {
        scene *s = NULL;
        memcpy(text, SMALL, cut);
        text[cut] = 0;
        assert_fails(load_text(&s, text, 0, NULL), FEM_BAD_INPUT, "scene.json:");
    }
    printf("%zu truncations refused\n", length - 2);
}

// every allocation of loading and describing may fail: the status says so and nothing is left behind
static void test_allocation_failures(void **state) {
    (void)state;
    const char *const files[] = {"scenes/shrub.json", "scenes/hook.json", "scenes/leaf.json",
                                 "scenes/shaking_tower.json"};
    const char *const overrides[] = {"solver.newton.iterations=5", "environment={\"gravity\": [0, 0, -1]}",
                                     "title=text"};
    long              walked = 0;
    for (int f = 0; f < 4; f++) {
        long blocks = fem_memory_blocks();
        for (long n = 0;; n++, walked++) {
            scene *s = NULL;
            fem_memory_fail_after(n);
            fem_status status = scene_load(&s, files[f], 3, overrides);
            fem_memory_fail_after(-1);
            if (status == FEM_OK) {
                scene_destroy(s);
                break;
            }
            if (status != FEM_NO_MEMORY) fail_msg("%s, allocation %ld: %s", files[f], n, fem_message());
            assert_null(s);
            assert_int_equal(fem_memory_blocks(), blocks);
        }
    }
    for (long n = 0;; n++, walked++) {
        char *text = NULL;
        fem_memory_fail_after(n);
        fem_status status = scene_schema(&text);
        fem_memory_fail_after(-1);
        fem_free(text);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
    }
    printf("%ld failing allocations survived\n", walked);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_strict),
        cmocka_unit_test(test_json_limits),
        cmocka_unit_test(test_json_lines),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_material_kinds),
        cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_selections),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_schema_agrees),
        cmocka_unit_test(test_every_key),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_allocation_failures),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}

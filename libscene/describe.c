// The format in other words, from the tables that the loader reads by: JSON Schema (draft 2020-12), and the tables of
// keys on the page docs/scenes.md. The committed files are compared with these texts by a test.
#include "libscene/internal.h"
#include "libscene/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
    scene_text out;
    int        depth; // JSON: of the line
    bool       comma; // JSON: something stands before on this level
} writer;

// ---- JSON Schema ----------------------------------------------------------------------------------------------

// A member "key": value, or an item when key is NULL; `value` is put as it is.
static void member(writer *w, const char *key, const char *value) {
    scene_text_print(&w->out, "%s\n%*s", w->comma ? "," : "", 2 * w->depth, "");
    if (key) scene_text_print(&w->out, "\"%s\": ", key);
    scene_text_put(&w->out, value, strlen(value));
    w->comma = true;
}

static void open_level(writer *w, const char *key, const char *bracket) {
    member(w, key, bracket);
    w->depth++;
    w->comma = false;
}

static void close_level(writer *w, const char *bracket) {
    w->depth--;
    scene_text_print(&w->out, "\n%*s%s", 2 * w->depth, "", bracket);
    w->comma = true;
}

static void member_text(writer *w, const char *key, const char *text) {
    char quoted[600];
    int  used = 0;
    quoted[used++] = '"';
    for (const char *c = text; *c && used < (int)sizeof quoted - 4; c++) {
        if (*c == '"' || *c == '\\') quoted[used++] = '\\';
        quoted[used++] = *c;
    }
    quoted[used++] = '"';
    quoted[used] = 0;
    member(w, key, quoted);
}

static void member_number(writer *w, const char *key, double value) {
    char text[40];
    snprintf(text, sizeof text, "%.15g", value);
    member(w, key, text);
}

static void reference(writer *w, const char *key, const char *name) {
    char text[96];
    snprintf(text, sizeof text, "{\"$ref\": \"#/$defs/%s\"}", name);
    member(w, key, text);
}

static void put_type(writer *w, const scene_key *key) {
    char name[32];
    if (key->type == KEY_CHOICE) {
        open_level(w, "enum", "[");
        for (int i = 0; key_choice(key, i, name, sizeof name); i++) member_text(w, NULL, name);
        close_level(w, "]");
        return;
    }
    member_text(w, "type", key->type == KEY_INTEGER ? "integer" : "number");
    if (key->low == 0 && key->high == 0) return;
    member_number(w, key->low_open ? "exclusiveMinimum" : "minimum", key->low);
    member_number(w, key->high_open ? "exclusiveMaximum" : "maximum", key->high);
}

// "type": "array" with least .. most items (most 0: any number); leaves "items" open.
static void open_list(writer *w, int least, int most) {
    member_text(w, "type", "array");
    member_number(w, "minItems", least);
    if (most > 0) member_number(w, "maxItems", most);
    open_level(w, "items", "{");
}

static void put_shape(writer *w, const scene_key *key) {
    switch (key->shape) {
    case SHAPE_ONE:
        put_type(w, key);
        return;
    case SHAPE_VECTOR:
        open_list(w, 3, 3);
        break;
    case SHAPE_LIST:
        open_list(w, key->type == KEY_CHOICE ? 0 : 1, 0);
        break;
    case SHAPE_ANY:
        open_level(w, "anyOf", "[");
        open_level(w, NULL, "{");
        put_type(w, key);
        close_level(w, "}");
        open_level(w, NULL, "{");
        open_list(w, 1, 0);
        put_type(w, key);
        close_level(w, "}");
        close_level(w, "}");
        close_level(w, "]");
        return;
    case SHAPE_PAIR:
    case SHAPE_POINTS:
    case SHAPE_PLACES:
        open_list(w, key->shape == SHAPE_PAIR ? 2 : 1, key->shape == SHAPE_PAIR ? 2 : 0);
        open_list(w, key->shape == SHAPE_PLACES ? 7 : 3, key->shape == SHAPE_PLACES ? 7 : 3);
        put_type(w, key);
        close_level(w, "}");
        close_level(w, "}");
        return;
    }
    put_type(w, key);
    close_level(w, "}");
}

static const char NAME_PATTERN[] =
    "{\"minLength\": 1, \"maxLength\": 60, \"pattern\": \"^[A-Za-z0-9_\\\\-\\\\u0080-\\\\uffff]+$\"}";

static void put_form(writer *w, const scene_key *key) {
    switch (key->type) {
    case KEY_NUMBER:
    case KEY_INTEGER:
    case KEY_CHOICE:
        put_shape(w, key);
        break;
    case KEY_FLAG:
        member_text(w, "type", "boolean");
        break;
    case KEY_TEXT:
        member_text(w, "type", "string");
        member_number(w, "minLength", 1);
        break;
    case KEY_SECTION: {
        char target[64];
        snprintf(target, sizeof target, "#/$defs/%s", key->table->name);
        member_text(w, "$ref", target);
        break;
    }
    case KEY_MAP:
    case KEY_SELECTIONS:
        member_text(w, "type", "object");
        if (key->least > 0) member_number(w, "minProperties", key->least);
        member(w, "propertyNames", NAME_PATTERN);
        reference(w, "additionalProperties", key->type == KEY_MAP ? key->table->name : "selections");
        break;
    case KEY_LIST:
        member_text(w, "type", "array");
        if (key->least > 0) member_number(w, "minItems", key->least);
        if (key->most > 0) member_number(w, "maxItems", key->most);
        reference(w, "items", key->table->name);
        break;
    case KEY_SELECTION:
        member_text(w, "$ref", "#/$defs/selections");
        break;
    case KEY_MESH:
    case KEY_ASSIGNMENT:
        open_level(w, "anyOf", "[");
        member(w, NULL, "{\"type\": \"string\"}");
        if (key->type == KEY_MESH)
            reference(w, NULL, key->table->name);
        else
            member(w, NULL, "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}}");
        close_level(w, "]");
        break;
    }
}

// The default as JSON; empty where there is none to say.
static void default_text(const scene_key *key, char *text, size_t size) {
    char name[32];
    text[0] = 0;
    if (key->required || key->alternative || key->otherwise) return;
    const double *f = key->fallback;
    bool          number = key->type == KEY_NUMBER || key->type == KEY_INTEGER;
    if (number && key->shape == SHAPE_VECTOR) snprintf(text, size, "[%g, %g, %g]", f[0], f[1], f[2]);
    if (number && key->shape == SHAPE_ONE) snprintf(text, size, "%.6g", f[0]);
    if (key->type == KEY_FLAG) snprintf(text, size, "%s", f[0] != 0 ? "true" : "false");
    if (key->type == KEY_CHOICE) {
        key_choice(key, key->shape == SHAPE_LIST ? 0 : (int)f[0], name, sizeof name);
        snprintf(text, size, key->shape == SHAPE_LIST ? "[\"%s\"]" : "\"%s\"", name);
    }
}

static void put_property(writer *w, const scene_key *key) {
    char text[512];
    open_level(w, key->name, "{");
    put_form(w, key);
    snprintf(text, sizeof text, "%s%s%s", key->about, key->unit ? "; in " : "", key->unit ? key->unit : "");
    member_text(w, "description", text);
    default_text(key, text, sizeof text);
    if (text[0]) member(w, "default", text);
    close_level(w, "}");
}

static void put_required(writer *w, const scene_table *table, int variant) {
    bool open = false;
    for (int i = 0; i < table->count; i++) {
        const scene_key *key = &table->keys[i];
        bool             here = variant < 0 ? key->only == 0 : key->only >> variant & 1u;
        if (!key->required || !here) continue;
        if (!open) open_level(w, "required", "[");
        open = true;
        member_text(w, NULL, key->name);
    }
    if (open) close_level(w, "]");
}

// The condition under which a variant is meant.
static void put_condition(writer *w, const scene_table *table, int variant) {
    char name[32];
    open_level(w, "if", "{");
    if (table->typed) {
        key_choice(&table->keys[0], variant, name, sizeof name);
        open_level(w, "properties", "{");
        open_level(w, table->keys[0].name, "{");
        member_text(w, "const", name);
        close_level(w, "}");
        close_level(w, "}");
        if (variant != (int)table->keys[0].fallback[0]) {
            open_level(w, "required", "[");
            member_text(w, NULL, table->keys[0].name);
            close_level(w, "]");
        }
    } else {
        int index = variant;
        open_level(w, "required", "[");
        for (int i = 0; i < table->count; i++)
            if (table->keys[i].alternative && index-- == 0) member_text(w, NULL, table->keys[i].name);
        close_level(w, "]");
    }
    close_level(w, "}");
}

static void put_variants(writer *w, const scene_table *table) {
    bool any = false;
    for (int i = 0; i < table->count; i++) any = any || table->keys[i].only;
    if (!any) return;
    open_level(w, "allOf", "[");
    for (int variant = 0; variant < key_variant_count(table); variant++) {
        open_level(w, NULL, "{");
        put_condition(w, table, variant);
        open_level(w, "then", "{");
        open_level(w, "properties", "{");
        for (int i = 0; i < table->count; i++) {
            const scene_key *key = &table->keys[i];
            if (key->only && !(key->only >> variant & 1u)) member(w, key->name, "false");
        }
        close_level(w, "}");
        put_required(w, table, variant);
        close_level(w, "}");
        close_level(w, "}");
    }
    close_level(w, "]");
}

static void put_table(writer *w, const scene_table *table) {
    open_level(w, table->name, "{");
    member_text(w, "type", "object");
    member_text(w, "description", table->about);
    member(w, "additionalProperties", "false");
    open_level(w, "properties", "{");
    for (int i = 0; i < table->count; i++) put_property(w, &table->keys[i]);
    close_level(w, "}");
    put_required(w, table, -1);
    if (table->has_alternatives) {
        open_level(w, "oneOf", "[");
        for (int i = 0; i < table->count; i++) {
            char text[64];
            snprintf(text, sizeof text, "{\"required\": [\"%s\"]}", table->keys[i].name);
            if (table->keys[i].alternative) member(w, NULL, text);
        }
        close_level(w, "]");
    }
    put_variants(w, table);
    close_level(w, "}");
}

fem_status scene_schema(char **text) {
    const scene_table *tables[SCENE_TABLES_MOST];
    int                count = scene_all_tables(tables);
    writer             w = {0};
    scene_text_print(&w.out, "{");
    w.depth = 1;
    member_text(&w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    member_text(&w, "title", "limber scene");
    member_text(&w, "$ref", "#/$defs/scene");
    open_level(&w, "$defs", "{");
    for (int i = 0; i < count; i++) put_table(&w, tables[i]);
    open_level(&w, "selections", "{");
    open_level(&w, "anyOf", "[");
    member(&w, NULL, "{\"type\": \"string\"}");
    reference(&w, NULL, "selection");
    member(&w, NULL,
           "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"anyOf\": [{\"type\": \"string\"}, {\"$ref\": "
           "\"#/$defs/selection\"}]}}");
    close_level(&w, "]");
    close_level(&w, "}");
    close_level(&w, "}");
    close_level(&w, "}");
    scene_text_print(&w.out, "\n");
    return scene_text_finish(&w.out, text);
}

// ---- the page -------------------------------------------------------------------------------------------------

static void put_value_cell(writer *w, const scene_key *key) {
    static const char *const forms[] = {[SHAPE_ONE] = "number",
                                        [SHAPE_VECTOR] = "3 numbers",
                                        [SHAPE_LIST] = "list of numbers",
                                        [SHAPE_ANY] = "number or list of them",
                                        [SHAPE_PAIR] = "2 points",
                                        [SHAPE_POINTS] = "list of points",
                                        [SHAPE_PLACES] = "list of 7 numbers each"};
    const char              *table = key->table ? key->table->name : "";
    char                     name[32];
    switch (key->type) {
    case KEY_NUMBER:
        scene_text_print(&w->out, "%s", forms[key->shape]);
        break;
    case KEY_INTEGER:
        scene_text_print(&w->out, key->shape == SHAPE_ONE      ? "whole number"
                                  : key->shape == SHAPE_VECTOR ? "3 whole numbers"
                                                               : "list of whole numbers");
        break;
    case KEY_FLAG:
        scene_text_print(&w->out, "true or false");
        break;
    case KEY_TEXT:
        scene_text_print(&w->out, "string");
        break;
    case KEY_CHOICE:
        if (key->shape == SHAPE_LIST) scene_text_print(&w->out, "list of ");
        for (int i = 0; key_choice(key, i, name, sizeof name); i++)
            scene_text_print(&w->out, "%s`\"%s\"`", i > 0 ? ", " : "", name);
        break;
    case KEY_SECTION:
        scene_text_print(&w->out, "[%s](#%s)", table, table);
        break;
    case KEY_MAP:
        scene_text_print(&w->out, "names, each a [%s](#%s)", table, table);
        break;
    case KEY_LIST:
        scene_text_print(&w->out, "list of [%s](#%s)", table, table);
        break;
    case KEY_MESH:
        scene_text_print(&w->out, "file name or [mesh](#mesh)");
        break;
    case KEY_SELECTION:
        scene_text_print(&w->out, "[selection](#selection)");
        break;
    case KEY_SELECTIONS:
        scene_text_print(&w->out, "names, each a [selection](#selection)");
        break;
    case KEY_ASSIGNMENT:
        scene_text_print(&w->out, "name, or region names, each with a name");
        break;
    }
}

static void put_row(writer *w, const scene_table *table, const scene_key *key) {
    char text[160], name[32];
    scene_text_print(&w->out, "| `%s` | ", key->name);
    put_value_cell(w, key);
    scene_text_print(&w->out, " | %s | ", key->unit ? key->unit : "");
    default_text(key, text, sizeof text);
    if (key->required)
        scene_text_print(&w->out, "required");
    else if (key->alternative)
        scene_text_print(&w->out, "one of these");
    else if (key->otherwise)
        scene_text_print(&w->out, "%s", key->otherwise);
    else if (text[0])
        scene_text_print(&w->out, "`%s`", text);
    key_range_text(key, text, sizeof text);
    scene_text_print(&w->out, " | %s | %s", text, key->about);
    if (key->only) {
        scene_text_print(&w->out, "; with ");
        bool some = false;
        for (int v = 0; v < key_variant_count(table); v++) {
            if (!(key->only >> v & 1u)) continue;
            int index = v;
            if (table->typed) key_choice(&table->keys[0], v, name, sizeof name);
            for (int i = 0; !table->typed && i < table->count; i++)
                if (table->keys[i].alternative && index-- == 0) snprintf(name, sizeof name, "%s", table->keys[i].name);
            scene_text_print(&w->out, "%s`%s`", some ? ", " : "", name);
            some = true;
        }
    }
    scene_text_print(&w->out, " |\n");
}

static void put_page_table(writer *w, const scene_table *table) {
    scene_text_print(&w->out, "%s\n\n| key | value | unit | default | range | meaning |\n|---|---|---|---|---|---|\n",
                     table->about);
    for (int i = 0; i < table->count; i++) put_row(w, table, &table->keys[i]);
}

fem_status scene_page(char **text, const char *page) {
    static const char  START[] = "<!-- keys: ", END[] = "<!-- end -->";
    const scene_table *tables[SCENE_TABLES_MOST];
    int                count = scene_all_tables(tables);
    writer             w = {0};
    for (const char *at = page;;) {
        const char *start = strstr(at, START), *close = start ? strchr(start, '\n') : NULL,
                   *end = close ? strstr(close, END) : NULL;
        if (!end) {
            scene_text_put(&w.out, at, strlen(at));
            return scene_text_finish(&w.out, text);
        }
        scene_text_put(&w.out, at, (size_t)(close + 1 - at));
        const char *name = start + strlen(START);
        for (int i = 0; i < count; i++) {
            size_t length = strlen(tables[i]->name);
            if (strncmp(name, tables[i]->name, length) == 0 && name[length] == ' ') put_page_table(&w, tables[i]);
        }
        at = end;
        scene_text_put(&w.out, at, strlen(END));
        at += strlen(END);
    }
}

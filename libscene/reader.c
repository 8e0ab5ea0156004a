// Reads JSON objects by the tables of keys.c: unknown keys, missing keys, types, ranges, variants, defaults.
// The reader keeps the dotted path of what it is reading, so that every message can say where.
#include "libscene/internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- paths and messages ---------------------------------------------------------------------------------------

size_t reader_enter(scene_reader *reader, const char *key) {
    size_t length = strlen(reader->path);
    snprintf(reader->path + length, sizeof reader->path - length, "%s%.60s", length > 0 ? "." : "", key);
    return length;
}

size_t reader_enter_index(scene_reader *reader, int index) {
    size_t length = strlen(reader->path);
    snprintf(reader->path + length, sizeof reader->path - length, "[%d]", index);
    return length;
}

void reader_leave(scene_reader *reader, size_t length) { reader->path[length] = 0; }

// "FILE:LINE: path: "; a negative line is an override's, counted from -1 down.
static void location(const scene_reader *reader, const cJSON *node, char *text, size_t size) {
    const char *separator = reader->path[0] ? ": " : "";
    if (node && node->valueint < 0)
        snprintf(text, size, "--set %.200s: %s%s", reader->overrides[-node->valueint - 1], reader->path, separator);
    else
        snprintf(text, size, "%.400s:%d: %s%s", reader->file, node ? node->valueint : 1, reader->path, separator);
}

fem_status reader_fail(const scene_reader *reader, const cJSON *node, const char *format, ...) {
    char    text[800], where[960];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    location(reader, node, where, sizeof where);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?'; // from escapes in names
    return fem_fail(FEM_BAD_INPUT, "%s%s", where, text);
}

fem_status reader_prefix(const scene_reader *reader, const cJSON *node, fem_status status) {
    char where[960];
    if (status == FEM_OK || status == FEM_NO_MEMORY) return status;
    location(reader, node, where, sizeof where);
    return fem_fail_prefix(status == FEM_IO ? FEM_BAD_INPUT : status, "%s", where);
}

// ---- keys in words --------------------------------------------------------------------------------------------

void key_range_text(const scene_key *key, char *text, size_t size) {
    bool integer = key->type == KEY_INTEGER;
    text[0] = 0;
    if (key->low == 0 && key->high == 0) return;
    if (integer && key->low == key->high)
        snprintf(text, size, "%.0f", key->low);
    else if (integer)
        snprintf(text, size, "%.0f to %.0f", key->low, key->high);
    else
        snprintf(text, size, "%s %g and %s %g", key->low_open ? ">" : ">=", key->low,
                 key->high_open ? "<" : "<=", key->high);
}

bool key_choice(const scene_key *key, int i, char *text, size_t size) {
    const char *at = key->choices;
    for (; at && i > 0; i--) {
        at = strchr(at, '|');
        if (at) at++;
    }
    if (!at) return false;
    snprintf(text, size, "%.*s", (int)strcspn(at, "|"), at);
    return true;
}

int key_variant_count(const scene_table *table) {
    char name[32];
    int  count = 0;
    if (table->typed)
        while (key_choice(&table->keys[0], count, name, sizeof name)) count++;
    for (int i = 0; !table->typed && i < table->count; i++) count += table->keys[i].alternative;
    return count;
}

// What a key wants, for "expected ...".
static const char *expectation(const scene_key *key, char *text, size_t size) {
    static const char *const before[] = {[SHAPE_ONE] = "a ",
                                         [SHAPE_VECTOR] = "a list of three ",
                                         [SHAPE_LIST] = "a list of ",
                                         [SHAPE_ANY] = "a ",
                                         [SHAPE_PAIR] = "two lists of three ",
                                         [SHAPE_POINTS] = "a list of points, each three ",
                                         [SHAPE_PLACES] = "a list of rows, each seven "};
    static const char *const after[] = {
        [SHAPE_ONE] = "",   [SHAPE_VECTOR] = "s", [SHAPE_LIST] = "s",  [SHAPE_ANY] = " or a list of them",
        [SHAPE_PAIR] = "s", [SHAPE_POINTS] = "s", [SHAPE_PLACES] = "s"};
    char        range[96], unit[32] = "";
    const char *one = key->type == KEY_INTEGER ? "whole number" : "number";
    key_range_text(key, range, sizeof range);
    if (key->unit) snprintf(unit, sizeof unit, " (%s)", key->unit);
    switch (key->type) {
    case KEY_NUMBER:
    case KEY_INTEGER:
        snprintf(text, size, "%s%s%s%s%s%s", before[key->shape], one, after[key->shape], unit, range[0] ? ", " : "",
                 range);
        return text;
    case KEY_FLAG:
        return "true or false";
    case KEY_TEXT:
        return "a string in quotes";
    case KEY_CHOICE:
        return key->shape == SHAPE_LIST ? "a list of strings" : "a string in quotes";
    case KEY_LIST:
        return "a list of objects";
    case KEY_MESH:
        return "the name of a mesh file, or an object";
    case KEY_SELECTION:
        return "the name of a vertex set, an object, or a list of those";
    case KEY_ASSIGNMENT:
        return "the name of a material, or an object: region -> material";
    default:
        return "an object";
    }
}

static fem_status wrong_type(const scene_reader *reader, const cJSON *node, const scene_key *key) {
    char text[256];
    return reader_fail(reader, node, "is %s, expected %s", json_kind(node), expectation(key, text, sizeof text));
}

// ---- values ---------------------------------------------------------------------------------------------------

static fem_status check_number(const scene_reader *reader, const cJSON *node, const scene_key *key) {
    double x = node->valuedouble;
    char   range[96];
    if (!cJSON_IsNumber(node)) {
        scene_key one = *key;
        if (one.shape != SHAPE_ANY) one.shape = SHAPE_ONE;
        return wrong_type(reader, node, &one);
    }
    if (key->type == KEY_INTEGER && x != floor(x))
        return reader_fail(reader, node, "is %g, expected a whole number", x);
    if (key->low == 0 && key->high == 0) return FEM_OK;
    bool below = key->low_open ? x <= key->low : x < key->low, above = key->high_open ? x >= key->high : x > key->high;
    if (!below && !above) return FEM_OK;
    key_range_text(key, range, sizeof range);
    return reader_fail(reader, node, "is %.10g, expected %s%s%s", x, range, key->unit ? " " : "",
                       key->unit ? key->unit : "");
}

static fem_status check_count(const scene_reader *reader, const cJSON *node, int count, int exactly) {
    if (exactly > 0 && count != exactly)
        return reader_fail(reader, node, "has %d item%s, expected %d", count, count == 1 ? "" : "s", exactly);
    if (count == 0) return reader_fail(reader, node, "is an empty list, expected at least one item");
    return FEM_OK;
}

// A list of numbers; `exactly` 0 means one or more.
static fem_status check_numbers(scene_reader *reader, const cJSON *node, const scene_key *key, int exactly) {
    fem_status status = FEM_OK;
    int        count = 0;
    if (!cJSON_IsArray(node)) return wrong_type(reader, node, key);
    for (const cJSON *item = node->child; item; item = item->next) {
        size_t length = reader_enter_index(reader, count++);
        FEM_TRY(check_number(reader, item, key));
        reader_leave(reader, length);
    }
    FEM_TRY(check_count(reader, node, count, exactly));
done:
    return status;
}

// A list of vectors, or of rows of another length.
static fem_status check_vectors(scene_reader *reader, const cJSON *node, const scene_key *key, int exactly, int width) {
    fem_status status = FEM_OK;
    int        count = 0;
    scene_key  vector = *key;
    vector.shape = SHAPE_VECTOR;
    if (!cJSON_IsArray(node)) return wrong_type(reader, node, key);
    for (const cJSON *item = node->child; item; item = item->next) {
        size_t length = reader_enter_index(reader, count++);
        FEM_TRY(check_numbers(reader, item, &vector, width));
        reader_leave(reader, length);
    }
    FEM_TRY(check_count(reader, node, count, exactly));
done:
    return status;
}

static fem_status read_numbers(scene_reader *reader, const cJSON *node, const scene_key *key, void *out) {
    fem_status status = FEM_OK;
    switch (key->shape) {
    case SHAPE_ONE:
        FEM_TRY(check_number(reader, node, key));
        if (key->type == KEY_INTEGER)
            *(int *)out = (int)node->valuedouble;
        else
            *(double *)out = node->valuedouble;
        return FEM_OK;
    case SHAPE_VECTOR:
        FEM_TRY(check_numbers(reader, node, key, 3));
        if (key->type == KEY_INTEGER)
            for (int i = 0; i < 3; i++) ((int *)out)[i] = (int)cJSON_GetArrayItem(node, i)->valuedouble;
        else
            reader_vector(node, out);
        return FEM_OK;
    case SHAPE_ANY:
        if (cJSON_IsNumber(node))
            FEM_TRY(check_number(reader, node, key));
        else
            FEM_TRY(check_numbers(reader, node, key, 0));
        break;
    case SHAPE_LIST:
        FEM_TRY(check_numbers(reader, node, key, 0));
        break;
    case SHAPE_PAIR:
        FEM_TRY(check_vectors(reader, node, key, 2, 3));
        break;
    case SHAPE_POINTS:
        FEM_TRY(check_vectors(reader, node, key, 0, 3));
        break;
    case SHAPE_PLACES:
        FEM_TRY(check_vectors(reader, node, key, 0, 7));
        break;
    }
    *(const cJSON **)out = node;
done:
    return status;
}

void reader_vector(const cJSON *node, double out[3]) {
    const cJSON *item = node->child;
    for (int i = 0; i < 3; i++, item = item->next) out[i] = item->valuedouble;
}

static fem_status find_choice(const scene_reader *reader, const cJSON *node, const scene_key *key, int *index) {
    char names[8][32];
    int  count = 0;
    if (!cJSON_IsString(node)) return wrong_type(reader, node, key);
    while (count < 8 && key_choice(key, count, names[count], sizeof names[0])) count++;
    for (*index = 0; *index < count; ++*index)
        if (strcmp(names[*index], node->valuestring) == 0) return FEM_OK;
    scene_suggestion s;
    suggestion_start(&s, node->valuestring);
    for (int i = 0; i < count; i++) suggestion_offer(&s, names[i]);
    return reader_fail(reader, node, "is \"%.60s\", which is none of the choices%s", node->valuestring,
                       suggestion_text(&s));
}

static fem_status read_choices(scene_reader *reader, const cJSON *node, const scene_key *key, unsigned *bits) {
    fem_status status = FEM_OK;
    int        count = 0, index = 0;
    if (!cJSON_IsArray(node)) return wrong_type(reader, node, key);
    *bits = 0;
    for (const cJSON *item = node->child; item; item = item->next) {
        size_t length = reader_enter_index(reader, count++);
        FEM_TRY(find_choice(reader, item, key, &index));
        reader_leave(reader, length);
        *bits |= 1u << index;
    }
done:
    return status;
}

static fem_status read_text(const scene_reader *reader, const cJSON *node, const scene_key *key, const char **out) {
    if (!cJSON_IsString(node)) return wrong_type(reader, node, key);
    if (!node->valuestring[0]) return reader_fail(reader, node, "is an empty string");
    *out = node->valuestring;
    return FEM_OK;
}

static fem_status read_value(scene_reader *reader, const cJSON *node, const scene_key *key, void *out) {
    bool fits = false;
    switch (key->type) {
    case KEY_NUMBER:
    case KEY_INTEGER:
        return read_numbers(reader, node, key, out);
    case KEY_FLAG:
        if (!cJSON_IsBool(node)) return wrong_type(reader, node, key);
        *(bool *)out = cJSON_IsTrue(node);
        return FEM_OK;
    case KEY_TEXT:
        return read_text(reader, node, key, out);
    case KEY_CHOICE:
        return key->shape == SHAPE_LIST ? read_choices(reader, node, key, out) : find_choice(reader, node, key, out);
    case KEY_SECTION:
        return reader_table(reader, node, key->table, out);
    case KEY_MAP:
    case KEY_SELECTIONS:
        fits = cJSON_IsObject(node);
        break;
    case KEY_LIST:
        fits = cJSON_IsArray(node);
        break;
    case KEY_MESH:
    case KEY_ASSIGNMENT:
        fits = cJSON_IsString(node) || cJSON_IsObject(node);
        break;
    case KEY_SELECTION:
        fits = cJSON_IsString(node) || cJSON_IsObject(node) || cJSON_IsArray(node);
        break;
    }
    if (!fits) return wrong_type(reader, node, key);
    int count = cJSON_GetArraySize(node);
    if (count < key->least || (key->most > 0 && count > key->most))
        return reader_fail(reader, node, "has %d items, expected %s", count,
                           key->most == 1 ? "exactly one" : "at least one");
    *(const cJSON **)out = node;
    return FEM_OK;
}

static void set_default(const scene_key *key, void *out) {
    int count = key->shape == SHAPE_VECTOR ? 3 : 1;
    switch (key->type) {
    case KEY_NUMBER:
        if (key->shape == SHAPE_ONE || key->shape == SHAPE_VECTOR)
            for (int i = 0; i < count; i++) ((double *)out)[i] = key->fallback[i];
        break;
    case KEY_INTEGER:
        if (key->shape == SHAPE_ONE || key->shape == SHAPE_VECTOR)
            for (int i = 0; i < count; i++) ((int *)out)[i] = (int)key->fallback[i];
        break;
    case KEY_FLAG:
        *(bool *)out = key->fallback[0] != 0;
        break;
    case KEY_CHOICE:
        if (key->shape == SHAPE_LIST)
            *(unsigned *)out = (unsigned)key->fallback[0];
        else
            *(int *)out = (int)key->fallback[0];
        break;
    default:
        break; // the caller's zeros mean "not given"
    }
}

// ---- objects --------------------------------------------------------------------------------------------------

static const scene_key *find_key(const scene_table *table, const char *name) {
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->keys[i].name, name) == 0) return &table->keys[i];
    return NULL;
}

static fem_status check_known_keys(scene_reader *reader, const cJSON *node, const scene_table *table) {
    for (const cJSON *child = node->child; child; child = child->next) {
        if (find_key(table, child->string)) continue;
        scene_suggestion s;
        suggestion_start(&s, child->string);
        for (int i = 0; i < table->count; i++) suggestion_offer(&s, table->keys[i].name);
        reader_enter(reader, child->string);
        return reader_fail(reader, child, "unknown key%s", suggestion_text(&s));
    }
    return FEM_OK;
}

static const char *list_alternatives(const scene_table *table, char *text, size_t size) {
    text[0] = 0;
    for (int i = 0; i < table->count; i++) {
        size_t used = strlen(text);
        if (table->keys[i].alternative)
            snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", table->keys[i].name);
    }
    return text;
}

static fem_status find_alternative(scene_reader *reader, const cJSON *node, const scene_table *table, int *variant) {
    char             names[160];
    int              index = 0;
    const scene_key *chosen = NULL;
    for (int i = 0; i < table->count; i++) {
        const scene_key *key = &table->keys[i];
        if (!key->alternative) continue;
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(node, key->name);
        if (item && chosen) {
            reader_enter(reader, key->name);
            return reader_fail(reader, item, "cannot stand beside \"%s\", expected only one of %s", chosen->name,
                               list_alternatives(table, names, sizeof names));
        }
        if (item) chosen = key, *variant = index;
        index++;
    }
    if (!chosen)
        return reader_fail(reader, node, "expected one of the keys %s", list_alternatives(table, names, sizeof names));
    return FEM_OK;
}

// "type "stvk"" or ""move"": what the present variant is called
static void variant_name(const scene_table *table, int variant, char *text, size_t size) {
    char name[32] = "";
    if (table->typed) {
        key_choice(&table->keys[0], variant, name, sizeof name);
        snprintf(text, size, "%s \"%s\"", table->keys[0].name, name);
        return;
    }
    for (int i = 0; i < table->count; i++)
        if (table->keys[i].alternative && variant-- == 0) snprintf(text, size, "\"%s\"", table->keys[i].name);
}

static fem_status read_key(scene_reader *reader, const cJSON *node, const scene_table *table, const scene_key *key,
                           int variant, void *out) {
    fem_status   status = FEM_OK;
    const cJSON *item = node ? cJSON_GetObjectItemCaseSensitive(node, key->name) : NULL;
    void        *target = (char *)out + key->offset;
    char         name[64], text[256];
    bool         applies = key->only == 0 || key->only >> variant & 1u;
    if (!item) {
        if (applies && key->required && node) // a section that is not there asks for nothing
            return reader_fail(reader, node, "the key \"%s\" is missing, expected %s", key->name,
                               expectation(key, text, sizeof text));
        if (key->type == KEY_SECTION && !key->alternative) return reader_table(reader, NULL, key->table, target);
        set_default(key, target);
        return FEM_OK;
    }
    size_t length = reader_enter(reader, key->name);
    if (!applies) {
        variant_name(table, variant, name, sizeof name);
        return reader_fail(reader, item, "has no meaning with %s", name);
    }
    FEM_TRY(read_value(reader, item, key, target));
    reader_leave(reader, length);
done:
    return status;
}

fem_status reader_table(scene_reader *reader, const cJSON *node, const scene_table *table, void *out) {
    fem_status status = FEM_OK;
    int        variant = 0;
    if (node && !cJSON_IsObject(node)) return reader_fail(reader, node, "is %s, expected an object", json_kind(node));
    if (node) FEM_TRY(check_known_keys(reader, node, table));
    if (table->has_alternatives) {
        FEM_TRY(find_alternative(reader, node, table, &variant));
        *(int *)((char *)out + table->variant) = variant;
    }
    for (int i = 0; i < table->count; i++) {
        const scene_key *key = &table->keys[i];
        FEM_TRY(read_key(reader, node, table, key, variant, out));
        if (i == 0 && table->typed) variant = *(int *)((char *)out + key->offset);
    }
done:
    return status;
}

fem_status reader_check_name(const scene_reader *reader, const cJSON *node, const char *name) {
    size_t length = strlen(name);
    bool   good = length >= 1 && length <= 60;
    for (const char *c = name; *c && good; c++)
        good = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_' ||
               *c == '-' || (unsigned char)*c >= 0x80;
    if (good) return FEM_OK;
    return reader_fail(reader, node, "is not a name, expected 1 to 60 letters, digits, _ or -");
}

// The XML of a .vtu file [VTK file formats, "XML file formats"], as far as it is needed: tags and attributes, in one
// walk. The walk ends at <AppendedData>, whose raw bytes are not XML.
#include "libfem/mesh_vtu.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ARRAYS = 100000 };

typedef struct vtu_tag {
    fem_word    name;
    bool        closing;    // </name>
    bool        empty;      // <name/>
    fem_word    attributes; // what stands between the name and the end
    const char *behind;     // first byte behind the tag
    long long   line;
} vtu_tag;

typedef struct vtu_walk {
    vtu_document *document;
    const char   *at, *end;
    long long     line;
} vtu_walk;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

__attribute__((format(printf, 3, 4))) static fem_status fail_at(const vtu_walk *walk, long long line,
                                                                const char *format, ...) {
    char    what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return fem_fail(FEM_BAD_INPUT, "%s:%lld: %s", walk->document->path, line, what);
}

static void walk_to(vtu_walk *walk, const char *to) {
    for (; walk->at < to; walk->at++) walk->line += *walk->at == '\n';
}

// Next tag; name of length 0 at the end of the file. Comments and declarations are passed over.
static fem_status next_tag(vtu_walk *walk, vtu_tag *tag) {
    for (;;) {
        const char *open = memchr(walk->at, '<', (size_t)(walk->end - walk->at));
        *tag = (vtu_tag){.behind = walk->end, .line = walk->line};
        if (!open) {
            walk_to(walk, walk->end);
            return FEM_OK;
        }
        walk_to(walk, open);
        size_t      left = (size_t)(walk->end - open);
        const char *close;
        if (left >= 4 && memcmp(open, "<!--", 4) == 0) {
            close = memmem(open + 4, left - 4, "-->", 3);
            if (close) close += 2;
        } else {
            char quote = 0;
            for (close = open; close < walk->end && (quote || *close != '>'); close++) {
                if (quote && *close == quote)
                    quote = 0;
                else if (!quote && (*close == '"' || *close == '\''))
                    quote = *close;
            }
        }
        if (!close || close >= walk->end)
            return fail_at(walk, walk->line, "a tag is not closed: the file was cut short or is damaged");
        tag->line = walk->line;
        tag->behind = close + 1;
        walk_to(walk, tag->behind);
        if (open[1] == '!' || open[1] == '?') continue;
        tag->closing = open[1] == '/';
        tag->empty = close[-1] == '/' && close - 1 > open;
        tag->name.at = open + 1 + tag->closing;
        while (tag->name.at + tag->name.length < close && !is_space(tag->name.at[tag->name.length]) &&
               tag->name.at[tag->name.length] != '/')
            tag->name.length++;
        const char *rest = tag->name.at + tag->name.length, *stop = tag->empty ? close - 1 : close;
        tag->attributes = (fem_word){rest, rest < stop ? (size_t)(stop - rest) : 0};
        if (tag->name.length == 0) return fail_at(walk, tag->line, "a tag has no name");
        return FEM_OK;
    }
}

// Value between the quotes of NAME="VALUE"; false when there is none.
static bool attribute(const vtu_tag *tag, const char *name, fem_word *value) {
    const char *at = tag->attributes.at, *end = at + tag->attributes.length;
    while (at < end) {
        while (at < end && is_space(*at)) at++;
        fem_word key = {at, 0};
        while (at < end && !is_space(*at) && *at != '=') at++, key.length++;
        while (at < end && is_space(*at)) at++;
        if (at == end || *at != '=') return false;
        at++;
        while (at < end && is_space(*at)) at++;
        if (at == end || (*at != '"' && *at != '\'')) return false;
        const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
        if (!close) return false;
        *value = (fem_word){at + 1, (size_t)(close - at - 1)};
        if (fem_word_is(key, name)) return true;
        at = close + 1;
    }
    return false;
}

static fem_status count_attribute(const vtu_walk *walk, const vtu_tag *tag, const char *name, bool needed,
                                  long long *value) {
    fem_word word;
    char     quote[FEM_QUOTE];
    if (!attribute(tag, name, &word)) return needed ? fail_at(walk, tag->line, "%s is missing", name) : FEM_OK;
    while (word.length > 0 && is_space(word.at[word.length - 1])) word.length--;
    while (word.length > 0 && is_space(*word.at)) word.at++, word.length--;
    if (!fem_parse_int(word.at, word.length, value) || *value < 0)
        return fail_at(walk, tag->line, "%s is %s, expected a count", name, fem_quote(quote, word.at, word.length));
    return FEM_OK;
}

// A name with the five entities of XML resolved.
static bool copy_name(char name[VTU_NAME], fem_word word) {
    static const struct {
        const char *entity;
        char        means;
    } entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    size_t used = 0;
    for (size_t i = 0; i < word.length;) {
        char   c = word.at[i];
        size_t step = 1;
        for (size_t k = 0; c == '&' && k < sizeof entities / sizeof *entities; k++) {
            size_t length = strlen(entities[k].entity);
            if (word.length - i >= length && memcmp(word.at + i, entities[k].entity, length) == 0) {
                c = entities[k].means;
                step = length;
                break;
            }
        }
        if (used + 1 == VTU_NAME || c == 0) return false;
        name[used++] = c;
        i += step;
    }
    name[used] = 0;
    return true;
}

static fem_status read_file_tag(vtu_walk *walk, const vtu_tag *tag) {
    vtu_document *d = walk->document;
    fem_word      value;
    char          quote[FEM_QUOTE];
    if (!attribute(tag, "type", &value) || !fem_word_is(value, "UnstructuredGrid"))
        return fail_at(walk, tag->line, "the VTKFile is not of type UnstructuredGrid");
    d->header_size = 4;
    if (attribute(tag, "header_type", &value)) {
        if (!fem_word_is(value, "UInt32") && !fem_word_is(value, "UInt64"))
            return fail_at(walk, tag->line, "header_type %s is not supported, expected UInt32 or UInt64",
                           fem_quote(quote, value.at, value.length));
        d->header_size = fem_word_is(value, "UInt64") ? 8 : 4;
    }
    if (attribute(tag, "compressor", &value) && value.length > 0) {
        if (!fem_word_is(value, "vtkZLibDataCompressor"))
            return fail_at(walk, tag->line, "compressor %s is not supported, expected vtkZLibDataCompressor",
                           fem_quote(quote, value.at, value.length));
        d->compressed = true;
    }
    bool little = true;
    if (attribute(tag, "byte_order", &value)) {
        little = fem_word_is(value, "LittleEndian");
        if (!little && !fem_word_is(value, "BigEndian"))
            return fail_at(walk, tag->line, "byte_order %s is not supported, expected LittleEndian or BigEndian",
                           fem_quote(quote, value.at, value.length));
    }
    d->swapped = little != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    return FEM_OK;
}

static fem_status read_array_tag(vtu_walk *walk, const vtu_tag *tag, vtu_section section) {
    fem_status    status = FEM_OK;
    vtu_document *d = walk->document;
    vtu_array     a = {.section = section,
                       .components = 1,
                       .tuples = -1,
                       .text = tag->behind,
                       .text_end = tag->behind,
                       .line = tag->line};
    fem_word      value;
    long long     offset = 0;
    char          quote[FEM_QUOTE];
    if (attribute(tag, "Name", &value) && !copy_name(a.name, value)) {
        status = fail_at(walk, tag->line, "the name of an array is too long");
        goto done;
    }
    if (!attribute(tag, "type", &value)) value = (fem_word){"", 0};
    a.type = vtu_type_named(value);
    snprintf(a.type_name, sizeof a.type_name, "%.*s", value.length < 31 ? (int)value.length : 31, value.at);
    FEM_TRY(count_attribute(walk, tag, "NumberOfComponents", false, &a.components));
    FEM_TRY(count_attribute(walk, tag, "NumberOfTuples", false, &a.tuples));
    if (attribute(tag, "format", &value)) {
        if (fem_word_is(value, "appended"))
            a.encoding = VTU_APPENDED;
        else if (fem_word_is(value, "binary"))
            a.encoding = VTU_INLINE;
        else if (!fem_word_is(value, "ascii")) {
            status = fail_at(walk, tag->line, "format %s is not supported, expected ascii, binary or appended",
                             fem_quote(quote, value.at, value.length));
            goto done;
        }
    }
    if (a.encoding == VTU_APPENDED) FEM_TRY(count_attribute(walk, tag, "offset", true, &offset));
    a.offset = (size_t)offset;
    if (!tag->empty) {
        const char *close = memchr(tag->behind, '<', (size_t)(walk->end - tag->behind));
        a.text_end = close ? close : walk->end;
    }
    if (d->array_count == MOST_ARRAYS) {
        status = fail_at(walk, tag->line, "more than %d arrays", MOST_ARRAYS);
        goto done;
    }
    FEM_TRY(fem_grow((void **)&d->arrays, &d->array_capacity, d->array_count + 1, sizeof *d->arrays));
    d->arrays[d->array_count++] = a;
done:
    return status;
}

static fem_status read_appended_tag(vtu_walk *walk, const vtu_tag *tag) {
    vtu_document *d = walk->document;
    fem_word      value;
    const char   *at = tag->behind;
    if (!attribute(tag, "encoding", &value)) value = (fem_word){"base64", 6};
    if (!fem_word_is(value, "raw") && !fem_word_is(value, "base64"))
        return fail_at(walk, tag->line, "the encoding of AppendedData is not supported, expected raw or base64");
    d->appended_base64 = fem_word_is(value, "base64");
    while (at < walk->end && is_space(*at)) at++;
    if (at == walk->end || *at != '_') return fail_at(walk, tag->line, "AppendedData must begin with an underscore");
    d->appended = at + 1;
    d->appended_end = walk->end;
    return FEM_OK;
}

static fem_status read_piece_tag(vtu_walk *walk, const vtu_tag *tag) {
    fem_status    status = FEM_OK;
    vtu_document *d = walk->document;
    if (d->pieces++ > 0)
        return fail_at(walk, tag->line, "the file has more than one Piece: merge them, one is supported");
    d->piece_line = tag->line;
    FEM_TRY(count_attribute(walk, tag, "NumberOfPoints", true, &d->points));
    FEM_TRY(count_attribute(walk, tag, "NumberOfCells", true, &d->cells));
    if (d->points < 1 || d->points > FEM_MOST_VERTICES)
        status = fail_at(walk, tag->line, "NumberOfPoints is %lld, expected 1 to %d", d->points, FEM_MOST_VERTICES);
    else if (d->cells < 1 || d->cells > FEM_MOST_ELEMENTS)
        status = fail_at(walk, tag->line, "NumberOfCells is %lld, expected 1 to %d", d->cells, FEM_MOST_ELEMENTS);
done:
    return status;
}

static vtu_section section_named(fem_word name) {
    if (fem_word_is(name, "FieldData")) return VTU_FIELD_DATA;
    if (fem_word_is(name, "PointData")) return VTU_POINT_DATA;
    if (fem_word_is(name, "CellData")) return VTU_CELL_DATA;
    if (fem_word_is(name, "Points")) return VTU_POINTS;
    if (fem_word_is(name, "Cells")) return VTU_CELLS;
    return VTU_OUTSIDE;
}

fem_status vtu_document_open(vtu_document *document, const char *path) {
    fem_status  status = FEM_OK;
    vtu_section section = VTU_OUTSIDE;
    bool        is_vtk = false, closed = false;
    *document = (vtu_document){.path = path};
    FEM_TRY(fem_file_read(&document->text, &document->size, path));
    vtu_walk walk = {.document = document, .at = document->text, .end = document->text + document->size, .line = 1};
    for (;;) {
        vtu_tag tag;
        FEM_TRY(next_tag(&walk, &tag));
        if (tag.name.length == 0 || document->appended) break;
        vtu_section opened = section_named(tag.name);
        if (opened != VTU_OUTSIDE) section = tag.closing || tag.empty ? VTU_OUTSIDE : opened;
        if (fem_word_is(tag.name, "VTKFile")) {
            closed = tag.closing;
            if (!tag.closing) FEM_TRY(read_file_tag(&walk, &tag));
            is_vtk = true;
        } else if (!is_vtk) {
            break;
        } else if (tag.closing) {
            continue;
        } else if (fem_word_is(tag.name, "Piece")) {
            FEM_TRY(read_piece_tag(&walk, &tag));
        } else if (fem_word_is(tag.name, "DataArray")) {
            FEM_TRY(read_array_tag(&walk, &tag, section));
        } else if (fem_word_is(tag.name, "AppendedData")) {
            FEM_TRY(read_appended_tag(&walk, &tag));
            break;
        }
    }
    if (!is_vtk)
        status = fail_at(&walk, walk.line, "is not a VTK file: expected <VTKFile type=\"UnstructuredGrid\"");
    else if (!closed && !document->appended)
        status = fail_at(&walk, walk.line, "</VTKFile> is missing: the file was cut short");
    else if (document->pieces == 0)
        status = fail_at(&walk, walk.line, "the file has no Piece");
done:
    return status;
}

void vtu_document_destroy(vtu_document *document) {
    fem_free(document->text);
    fem_free(document->arrays);
    *document = (vtu_document){0};
}

const vtu_array *vtu_document_find(const vtu_document *document, vtu_section section, const char *name) {
    for (size_t i = 0; i < document->array_count; i++)
        if (document->arrays[i].section == section && (!name || strcmp(document->arrays[i].name, name) == 0))
            return &document->arrays[i];
    return NULL;
}

// Texts that include others: a stack of files that are being read.
#include "libfem/fem.h"
#include "libfem/text.h"

#include <string.h>
#include <sys/stat.h>

enum { MOST_INCLUDES = 1000 }; // in all: nested includes multiply

fem_text *fem_sources_top(fem_sources *s) { return s->depth > 0 ? &s->stack[s->depth - 1].scan : NULL; }

void fem_sources_pop(fem_sources *s) {
    s->depth--;
    fem_free(s->stack[s->depth].path);
    fem_free(s->stack[s->depth].text);
}

void fem_sources_close(fem_sources *s) {
    while (s->depth > 0) fem_sources_pop(s);
}

// Takes over `path`.
static fem_status push(fem_sources *s, char *path, char comment) {
    struct stat about = {0};
    char       *text = NULL;
    size_t      size = 0;
    fem_status  status = fem_file_read(&text, &size, path);
    if (status == FEM_OK && stat(path, &about) != 0) status = fem_fail(FEM_IO, "%s: cannot be opened", path);
    for (int i = 0; i < s->depth && status == FEM_OK; i++)
        if (s->stack[i].device == about.st_dev && s->stack[i].inode == about.st_ino)
            status = fem_fail(FEM_BAD_INPUT, "%s includes itself", path);
    if (status != FEM_OK) {
        fem_free(path);
        fem_free(text);
        return status;
    }
    int top = s->depth++;
    s->stack[top].path = path;
    s->stack[top].text = text;
    s->stack[top].scan = fem_text_open(path, text, size, comment, true);
    s->stack[top].device = about.st_dev;
    s->stack[top].inode = about.st_ino;
    return FEM_OK;
}

fem_status fem_sources_open(fem_sources *s, const char *path, char comment) {
    char *name = fem_copy_string(path);
    if (!name) return fem_fail(FEM_NO_MEMORY, "no memory to read %s", path);
    return push(s, name, comment);
}

fem_status fem_sources_include(fem_sources *s, fem_word name, char comment) {
    fem_text   *here = fem_sources_top(s);
    const char *slash = strrchr(here->path, '/');
    if (name.length == 0 || memchr(name.at, 0, name.length))
        return fem_text_fail(here, "*INCLUDE needs the name of a file");
    if (s->depth == FEM_DEEPEST_INCLUDE)
        return fem_text_fail(here, "*INCLUDE is nested deeper than %d files", FEM_DEEPEST_INCLUDE);
    if (++s->includes > MOST_INCLUDES) return fem_text_fail(here, "more than %d *INCLUDEs", MOST_INCLUDES);
    size_t folder = slash && name.at[0] != '/' ? (size_t)(slash - here->path) + 1 : 0;
    char  *path = fem_calloc(folder + name.length + 1, 1);
    if (!path) return fem_fail(FEM_NO_MEMORY, "%s: no memory for the name of an included file", here->path);
    memcpy(path, here->path, folder);
    memcpy(path + folder, name.at, name.length);
    fem_status status = push(s, path, comment);
    if (status != FEM_OK) return fem_fail_prefix(status, "%s:%lld: *INCLUDE: ", here->path, here->line);
    return FEM_OK;
}

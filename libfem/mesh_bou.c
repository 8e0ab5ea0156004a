// Vertex lists, Vega's .bou: numbers between commas, blanks or newlines; # begins a comment. The list may be empty.
#include "libfem/mesh_formats.h"

#include <stdlib.h>

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

fem_status fem_vertex_list_read(int **items, int *count, const char *path, int file_base, int vertex_count) {
    fem_status status = FEM_OK;
    char      *text = NULL;
    int       *list = NULL;
    size_t     size = 0, used = 0, capacity = 0;
    FEM_TRY(fem_file_read(&text, &size, path));
    FEM_TRY(fem_grow((void **)&list, &capacity, 16, sizeof *list));
    fem_text scan = fem_text_open(path, text, size, '#', true);
    while (fem_text_next(&scan)) {
        long long vertex;
        FEM_TRY(fem_text_int(&scan, "a vertex", file_base, (long long)file_base + vertex_count - 1, &vertex));
        FEM_TRY(fem_grow((void **)&list, &capacity, used + 1, sizeof *list));
        list[used++] = (int)(vertex - file_base);
        if (used == (size_t)FEM_MOST_VERTICES) {
            status = fem_text_fail(&scan, "more than %d entries", FEM_MOST_VERTICES);
            goto done;
        }
    }
    qsort(list, used, sizeof *list, compare_ints);
    int unique = 0;
    for (size_t i = 0; i < used; i++)
        if (i == 0 || list[i] != list[i - 1]) list[unique++] = list[i];
    *items = list;
    *count = unique;
    list = NULL;
done:
    fem_free(list);
    fem_free(text);
    return status;
}

fem_status fem_vertex_list_write(const char *path, int count, const int *items, int file_base) {
    fem_file  *file = NULL;
    fem_status status = fem_file_create(&file, path);
    if (status != FEM_OK) return status;
    for (int i = 0; i < count; i++)
        fem_file_print(file, "%lld%s", (long long)items[i] + file_base, i + 1 == count || i % 10 == 9 ? ",\n" : ",");
    return fem_file_commit(file);
}

// Internal to libfem: what the readers of other programs' files share. A feed gives numbers from text or from bytes; a
// draft is a mesh on its way in: vertices and elements with numbers of their own, groups, named sets.
#ifndef LIMBER_MESH_DRAFT_H
#define LIMBER_MESH_DRAFT_H

#include "libfem/mesh_formats.h"

enum { FEM_MOST_NAMES = 10000, FEM_MOST_SET_ITEMS = 1 << 28 }; // sets, groups; entries of all sets together

// ---- numbers from text or bytes (mesh_feed.c) ------------------------------------------------------------------

typedef struct fem_scalar {
    char kind; // 'f' floating, 'i' signed, 'u' unsigned
    int  size; // bytes: 1, 2, 4, 8; floating: 4, 8
} fem_scalar;
static const fem_scalar FEM_INT32 = {'i', 4}, FEM_INT64 = {'i', 8}, FEM_FLOAT64 = {'f', 8};

typedef struct fem_feed {
    fem_text    text;  // its `at` is the place in both forms
    const char *start; // of the file
    bool        binary, swapped;
} fem_feed;

fem_feed fem_feed_open(const char *path, const char *text, size_t size, char comment);
// "PATH:LINE: ..." for text, "PATH: byte N: ..." for bytes
fem_status fem_feed_fail(fem_feed *feed, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t     fem_feed_left(const fem_feed *feed);                                               // bytes
fem_status fem_feed_bytes(fem_feed *feed, const char *what, size_t size, const char **bytes); // goes behind them
// A record is a line of text; in bytes it has no marks.
fem_status fem_feed_begin(fem_feed *feed, const char *what);
fem_status fem_feed_end(fem_feed *feed);
fem_status fem_feed_int(fem_feed *feed, fem_scalar type, const char *what, long long low, long long high,
                        long long *value);
fem_status fem_feed_double(fem_feed *feed, fem_scalar type, const char *what, double *value); // finite
// How many records of at least `smallest` bytes may still follow: what is announced beyond that is false.
fem_status fem_feed_plausible(fem_feed *feed, const char *what, long long count, size_t smallest);
// The number in these bytes; an integer beyond the range of long long is cut to it.
long long fem_scalar_int(const char *bytes, fem_scalar type, bool swapped);
double    fem_scalar_double(const char *bytes, fem_scalar type, bool swapped);

// ---- numbers of vertices and elements --------------------------------------------------------------------------

// Which index belongs to a number of the file. Numbers that count on from the first take no memory.
typedef struct fem_number_pair {
    long long number;
    int       index;
} fem_number_pair;
typedef struct fem_numbers {
    int              count;
    long long        first;
    long long       *list; // NULL while they count on
    size_t           capacity;
    long long        low;    // of the table
    size_t           span;   // entries of the table
    int             *table;  // index of low + i, -1: none; or else
    fem_number_pair *sorted; // by number
} fem_numbers;

fem_status fem_numbers_add(fem_numbers *numbers, long long number);
fem_status fem_numbers_spell(fem_numbers *numbers);                        // makes the list
fem_status fem_numbers_close(fem_numbers *numbers, long long *twice);      // *twice >= 0: this number comes twice
int        fem_numbers_find(const fem_numbers *numbers, long long number); // -1: there is none
long long  fem_numbers_at(const fem_numbers *numbers, int index);
void       fem_numbers_destroy(fem_numbers *numbers);

// ---- hashing ---------------------------------------------------------------------------------------------------

// Entries 0, 1, 2, .. by content: the caller keeps the content and compares it.
typedef struct fem_table {
    struct {
        int      entry; // -1: free
        unsigned hash;
    } * slots;
    size_t room, used; // room is a power of two
} fem_table;
typedef bool (*fem_table_equal)(const void *context, int entry, const void *key);
// The entry that equals `key`; without one, `fresh` is put there and returned.
fem_status fem_table_enter(fem_table *table, const void *key, size_t key_size, fem_table_equal equal,
                           const void *context, int fresh, int *entry);
void       fem_table_destroy(fem_table *table);

// ---- the draft (mesh_draft.c) ----------------------------------------------------------------------------------

typedef struct fem_draft_set {
    char  *name;
    bool   of_elements;
    int    count;
    size_t capacity;
    int   *items; // indices
} fem_draft_set;

typedef struct fem_draft {
    const char    *path;
    fem_remarks   *remarks; // or NULL
    fem_mesh       mesh;    // vertices and elements; `region` holds the group of each element
    bool           typed;   // mesh.type is known
    size_t         vertex_capacity, element_capacity, group_capacity;
    fem_numbers    vertex_numbers, element_numbers;
    int            quadratic; // elements whose nodes on edges, faces and inside were left out
    const char    *quadratic_name;
    int            set_count;
    size_t         set_capacity, set_items;
    fem_draft_set *sets;
    size_t         region_capacity, material_capacity;
} fem_draft;

void       fem_draft_destroy(fem_draft *draft);
fem_status fem_draft_reserve_vertices(fem_draft *draft, long long count);
fem_status fem_draft_reserve_elements(fem_draft *draft, long long count); // of the draft's type
fem_status fem_draft_vertex(fem_draft *draft, long long number, const double x[3]);
// The vertices are all there: their numbers can be looked up.
fem_status fem_draft_close_vertices(fem_draft *draft);
// The first element decides the type; another kind is refused by name.
fem_status fem_draft_type(fem_draft *draft, fem_element type, char *why, size_t size);
fem_status fem_draft_element(fem_draft *draft, long long number, const int *corners, int group);
// Finds the set or makes it.
fem_status fem_draft_set_named(fem_draft *draft, bool of_elements, const char *name, int *set);
fem_status fem_draft_set_add(fem_draft *draft, int set, int item);
void       fem_draft_set_drop(fem_draft *draft, int set); // those behind it move up
// Appended to the mesh.
fem_status fem_draft_region(fem_draft *draft, const char *name, int material, int *index);
fem_status fem_draft_material(fem_draft *draft, const fem_material *material, int *index);
// Leaves out the vertices that no element has as a corner, and says so: `quadratic` elements came with more nodes.
// `numbers` (of the vertices, or NULL) lose theirs too. Indices must be valid.
fem_status fem_mesh_keep_corners(fem_mesh *mesh, fem_numbers *numbers, int quadratic, const char *name,
                                 fem_remarks *remarks);
// Leaves out the vertices that only quadratic elements had, makes the sets, checks, and replaces *mesh. `region` must
// hold regions by now; without regions there is one, "all", of one default material.
fem_status fem_draft_finish(fem_draft *draft, fem_mesh *mesh);

#endif

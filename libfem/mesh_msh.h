// Internal to libfem: what the two dialects of Gmsh's .msh share [Gmsh manual, "MSH file format"].
#ifndef LIMBER_MESH_MSH_H
#define LIMBER_MESH_MSH_H

#include "libfem/mesh_draft.h"

// A kind of element by its number in the file.
typedef struct msh_kind {
    const char *name;
    int         dimension, nodes, corners; // corners 0: of a shape that is not read
} msh_kind;
const msh_kind *msh_kind_of(long long type); // NULL: of no known number of nodes
#define MSH_NO_KIND                                                                                                    \
    "elements of type %lld are not supported, expected tetrahedra or hexahedra of first or second order (gmsh -order " \
    "1)"

typedef struct msh_physical {
    int       dimension;
    long long tag;
    char     *name;   // NULL: it has none
    int       set;    // of the draft, -1: none yet
    int       region; // -1: none
} msh_physical;

// An entity of the geometry (4.1) or a pair of tags (2.2): elements of one entity are in the same physical groups.
typedef struct msh_entity {
    int       dimension;
    long long tag, physical; // 2.2: physical 0 is none
    int       first, count;  // into `members`: indices of physical groups
    int       elements;      // how many are of it
} msh_entity;

typedef struct msh_reader {
    fem_feed      feed;
    fem_draft     draft;
    bool          is_4; // 4.1, else 2.2
    fem_scalar    size; // size_t of 4.1
    bool          has_nodes, has_elements, has_notes;
    int           physical_count, entity_count, member_count;
    size_t        physical_capacity, entity_capacity, member_capacity;
    msh_physical *physicals;
    msh_entity   *entities;
    int          *members;
    fem_table     physical_table, entity_table;
    int           passed_over;   // elements of lower dimension in no physical group
    long long     elements_left; // of those that $Elements announces
    fem_text      notes;         // inside $Limber
} msh_reader;

fem_status  msh_physical_tagged(msh_reader *r, int dimension, long long tag, int *index); // finds or makes
fem_status  msh_entity_tagged(msh_reader *r, int dimension, long long tag, long long physical, int *index); // likewise
fem_status  msh_entity_add_physical(msh_reader *r, int entity, int physical);
const char *msh_physical_name(const msh_physical *physical, char made[64]);
// One element of an entity: its corners are looked up; volumes go to the draft, others into the sets of their groups.
fem_status msh_element(msh_reader *r, const msh_kind *kind, long long number, const long long *nodes, int entity);

// Regions and element sets from the physical groups of volumes (mesh_msh_groups.c).
fem_status msh_make_groups(msh_reader *r);

fem_status msh_read_nodes_2(msh_reader *r);
fem_status msh_read_elements_2(msh_reader *r);
fem_status msh_read_entities_4(msh_reader *r);
fem_status msh_read_nodes_4(msh_reader *r);
fem_status msh_read_elements_4(msh_reader *r);

#endif

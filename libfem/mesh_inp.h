// Internal to libfem: an input deck of Abaqus or CalculiX on its way in.
#ifndef LIMBER_MESH_INP_H
#define LIMBER_MESH_INP_H

#include "libfem/mesh_draft.h"

enum { INP_NAME = 81, INP_PARAMETERS = 16 };

// "*KEYWORD, NAME=VALUE, NAME": names in capitals, without blanks around them.
typedef struct inp_keyword {
    char name[INP_NAME];
    int  count;
    struct {
        char     name[32];
        fem_word value; // empty: there is none
    } parameters[INP_PARAMETERS];
} inp_keyword;

// Numbers first, first + step, .. last.
typedef struct inp_range {
    int  first, last, step;
    bool generated;   // by GENERATE: of these, those that are there
    bool of_elements; // in a set of nodes: elements, whose nodes are meant
} inp_range;

typedef struct inp_set {
    char       name[INP_NAME]; // as it is first written; capitals do not count
    bool       of_elements;
    bool       listed;   // by *NSET or *ELSET, not only in passing
    bool       assembly; // it stands in the *ASSEMBLY, whose names are apart from those of the *PART
    bool       has_section;
    bool       only_faces; // no solid is in it, but something else
    int        draft_set;
    int        count;
    size_t     capacity;
    inp_range *ranges;
} inp_set;

typedef struct inp_material {
    fem_material material;
    bool         has_elastic, has_density;
} inp_material;

typedef struct inp_orientation {
    char   name[INP_NAME];
    bool   rectangular;
    double frame[9];
} inp_orientation;

typedef struct inp_section {
    char set_name[INP_NAME], material[INP_NAME], orientation[INP_NAME]; // "": none
    bool assembly;                                                      // it stands in the *ASSEMBLY
    int  set;
} inp_section;

// An element without volume: it names vertices where a set has it.
typedef struct inp_face {
    int corners[4], count; // numbers of vertices
} inp_face;

typedef struct inp_reader {
    fem_sources      sources;
    fem_text        *scan;
    fem_draft        draft; // corners are numbers of vertices until the end
    inp_set         *sets;
    int              set_count;
    size_t           set_capacity, range_count;
    inp_face        *faces;
    size_t           face_count, face_capacity;
    fem_numbers      face_numbers;
    inp_material    *materials;
    int              material_count, current; // current: of the last *MATERIAL, -1: none
    size_t           material_capacity;
    inp_orientation *orientations;
    size_t           orientation_count, orientation_capacity;
    inp_section     *sections;
    size_t           section_count, section_capacity;
    int              parts, instances;
    bool             assembly;       // between *ASSEMBLY and *END ASSEMBLY
    char             part[INP_NAME]; // its name; "": none
    char             instance[INP_NAME];
    char             passed_over[300]; // keywords
    char             variants[120];    // element types with a letter behind, as C3D8R
    char             flat_types[120];  // element types without volume
    long long        wanted;           // reading again: refuse the second node (or element) of this number
    bool             wanted_element;
    int              wanted_seen;
} inp_reader;

// mesh_inp.c
fem_status      inp_next_data(inp_reader *r, bool *more); // to the next line with data; false at a keyword or the end
const fem_word *inp_parameter(const inp_keyword *k, const char *name); // NULL: not there
// Refuses parameters that are not among `known`, names with commas between them and around.
fem_status inp_check_parameters(inp_reader *r, const inp_keyword *k, const char *known);
fem_status inp_follow_input(inp_reader *r, const inp_keyword *k); // data go on in the file of INPUT=, if any
fem_status inp_name(inp_reader *r, const inp_keyword *k, const char *name, char text[INP_NAME]); // must be there
bool       inp_same(const char *a, const char *b);                                               // but for capitals

// mesh_inp_parts.c
fem_status inp_read_nodes(inp_reader *r, const inp_keyword *k);
fem_status inp_read_elements(inp_reader *r, const inp_keyword *k);
fem_status inp_read_set(inp_reader *r, const inp_keyword *k, bool of_elements);
// Numbers become indices, sets become the draft's. *twice >= 0: two nodes have this number, or two elements.
fem_status inp_resolve(inp_reader *r, long long *twice, bool *of_elements);

// mesh_inp_material.c
fem_status inp_read_material(inp_reader *r, const inp_keyword *k);
fem_status inp_read_elastic(inp_reader *r, const inp_keyword *k);
fem_status inp_read_density(inp_reader *r);
fem_status inp_read_orientation(inp_reader *r, const inp_keyword *k);
fem_status inp_read_section(inp_reader *r, const inp_keyword *k);
fem_status inp_make_regions(inp_reader *r);

#endif

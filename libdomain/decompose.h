// A body cut into a tree of domains [P1: Barbič & Zhao 2011, sections 3 and 5]: where it is cut, which domain hangs on
// which, the interfaces between them, and the meshes of the domains.
//
// Domains are sets of elements that hang together through faces. Two domains are adjacent where they share faces; the
// faces that they share fall into patches (faces joined by common vertices), and every patch is one edge of the domain
// graph. So a ring cut in two halves is a loop as much as one cut in three: a single frame cannot follow two interfaces
// that move apart. The vertices of a shared face are three or more that do not lie on a line, which is what the frame
// of an interface needs; meeting in an edge or at a vertex makes no edge.
//
// Whose is a vertex that several domains share? The elements around a vertex normally hang together through faces at
// that vertex. Each of those faces that lies between two domains belongs to an edge of the tree, so the domains around
// the vertex form a connected piece of the tree, which has one domain nearest to the root: the owner. All others hold
// the vertex on the interface to their parent and follow. That covers corners where interfaces meet. Only where the
// mesh itself is hinged at a vertex or edge (voxels that touch along an edge) may domains share vertices without that:
// each side then has its own copy, and the vertices are listed among the closures, with weight 0.
#ifndef LIMBER_DECOMPOSE_H
#define LIMBER_DECOMPOSE_H

#include "libfem/fem.h"

// ---- options ---------------------------------------------------------------------------------------------------

typedef enum domain_method {
    DOMAIN_GEODESIC, // level sets of the distance from the root: follows limbs (decompose_cut.c)
    DOMAIN_METIS,    // METIS on the dual graph, made into a tree
    DOMAIN_REGIONS,  // every piece of a region that hangs together
    DOMAIN_SETS,     // the element sets of the mesh; what lies in no set: every piece that hangs together
} domain_method;

// What becomes of loops in the domain graph.
typedef enum domain_loops {
    DOMAIN_LOOPS_DEFAULT, // merged where the cut is ours (geodesic, METIS), refused where it was given
    DOMAIN_LOOPS_MERGE,   // the domains of a loop become one
    DOMAIN_LOOPS_SPRINGS, // loops are cut open; the cuts are listed as closures, to be joined by springs
    DOMAIN_LOOPS_REFUSE,  // an error that names the loop
} domain_loops;

// What becomes of held vertices in several limbs.
typedef enum domain_feet {
    DOMAIN_FEET_MERGE,   // the domains that have them and those between become the root
    DOMAIN_FEET_SPRINGS, // the largest group of held vertices that hang together makes the root; the others are listed
} domain_feet;

typedef struct domain_options {
    domain_method method;
    int           count; // domains wanted, for the methods that cut by themselves; fewer may come out
    domain_loops  loops;
    domain_feet   feet;
    int           fixed_count; // vertices that are held; 0: a free body, whose root is its most central domain
    const int    *fixed;
} domain_options;
domain_options domain_default_options(void); // geodesic, 10 domains, merged loops and feet, free

// ---- the tree --------------------------------------------------------------------------------------------------

// Lists of vertices of the whole mesh, compressed: list i is start[i] .. start[i+1]-1, ascending.
typedef struct domain_points {
    int     count; // lists
    int    *start; // count + 1
    int    *vertices;
    double *weights; // m^2: the share of each vertex in the area of the shared faces
} domain_points;

typedef struct domain_report {
    int    asked;                             // domains wanted; 0 when the cut was given
    int    domains, depth;                    // depth: levels below the root
    int    smallest, largest;                 // elements of a domain
    double largest_share;                     // of all elements
    double imbalance;                         // largest over mean
    int    interfaces;                        // domains - 1
    double area, smallest_area, largest_area; // of interfaces, m^2
    int    fewest_points;                     // of an interface
    int    loops, closures, grounds;          // loops merged or cut open; lists below
    int    merged;                            // domains that were lost to loops, feet and smallness
    double seconds;
} domain_report;

// Domains stand in the order of their levels, parents before children; 0 is the root. Inside a level, children stand in
// the order of their parents.
typedef struct domain_tree {
    int           count;
    int           element_count, vertex_count; // of the mesh
    int          *parent;                      // -1 for the root
    int          *level;                       // 0 for the root
    char        **name;                        // of the set or region, or "domain I"; merged domains: of the largest
    int          *element_start, *elements;    // elements of domain i, ascending
    int          *element_domain;              // per element
    int          *vertex_owner;                // per vertex: the domain nearest to the root; -1: in no element
    domain_points interfaces;                  // list i: vertices that domain i shares with its parent; root: none
    domain_points closures;                    // further vertices shared by pairs of domains: loops cut open, hinges
    int          *closure_pair;                // 2 per closure, ascending
    domain_points grounds;                     // held vertices of domains other than the root; weights 0
    int          *ground_domain;               // per list
    domain_report report;
} domain_tree;

// Cuts a mesh that has passed fem_mesh_check. An empty tree is all zeros; it is replaced on success only.
// Deterministic. FEM_BAD_INPUT names sets that overlap, that are not in one piece, that have one element, or that touch
// the others in fewer than three points; loops that shall be refused; bodies that do not hang together through faces.
fem_status domain_decompose(domain_tree *tree, const fem_mesh *mesh, const domain_options *options);
// The same from a label per element, 0 .. label_count-1; method and count are not looked at. Names may be
// NULL. Labels are kept as sets are: refused where they cannot be domains, merged only as loops and feet say.
fem_status domain_tree_from_labels(domain_tree *tree, const fem_mesh *mesh, const int *label, int label_count,
                                   const char *const *names, const domain_options *options);
void       domain_tree_destroy(domain_tree *tree); // leaves it empty

// ---- meshes of domains (submesh.c) -----------------------------------------------------------------------------

// The part of a mesh that some elements make (ascending, no repeats): regions, materials and those sets that are not
// empty there are kept, local vertices and elements are in the order of the whole. *vertices gets the vertex of the
// whole for every local one, ascending; allocated.
fem_status domain_submesh(fem_mesh *part, int **vertices, const fem_mesh *mesh, int element_count, const int *elements);

// The place of a number in an ascending list, -1 when it is not there.
int domain_place_of(int number, int count, const int *list);

// One domain by itself. Vertices are local here.
typedef struct domain_part {
    fem_mesh       mesh;
    int           *vertices; // local -> vertex of the whole mesh, ascending
    int            interface_count;
    int           *interface;         // vertices on the interface to the parent, ascending: those to be fixed
    double        *interface_weights; // m^2
    unsigned char *on_interface;      // per vertex: 1 on the interface to the parent
    int            child_count;
    int           *children;     // domains of the tree, ascending
    domain_points  child_points; // list i: the interface to children[i]
} domain_part;

fem_status domain_part_create(domain_part *part, const fem_mesh *mesh, const domain_tree *tree, int domain);
void       domain_part_destroy(domain_part *part); // leaves it empty
// The local number of a vertex of the whole mesh, -1 when the domain does not have it.
int domain_part_local(const domain_part *part, int vertex);

// The domain with a collar of the elements below its interfaces to children, `depth` radii (of gyration) of each
// interface deep and nearly massless: what braces the interfaces inside the whole body. Vertices and elements of the
// domain come first, in their order. `start`, `around`: the elements around each vertex of the whole
// (fem_mesh_vertex_elements). *numbers (allocated): of the further vertices, in the whole. The cost is that of the
// collar.
fem_status domain_part_surround(fem_mesh *around_part, int **numbers, const domain_part *part, const fem_mesh *mesh,
                                const domain_tree *tree, const int *start, const int *around, double depth);

#endif

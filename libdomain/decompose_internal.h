// What the files of the decomposition tell each other.
//
// The stages: decompose.c makes labels and settles them (one piece each, no loops, a root, feet gathered), with the
// graph of decompose_graph.c; decompose_cut.c cuts one domain into several; decompose_tree.c writes the result.
// Everything is linear in the mesh but for sorting and heaps, and nothing recurses: chains may be as long as they like.
#ifndef LIMBER_DECOMPOSE_INTERNAL_H
#define LIMBER_DECOMPOSE_INTERNAL_H

#include "libdomain/decompose.h"

// ---- the mesh as faces -----------------------------------------------------------------------------------------

typedef struct domain_topology {
    const fem_mesh *mesh;
    int             face_count, width;     // inner faces; vertices of a face
    int            *pair, *corners;        // 2 elements and `width` vertices per face
    double         *area;                  // per face, m^2
    int            *face_start, *faces;    // inner faces of an element
    int            *around_start, *around; // elements around a vertex
} domain_topology;

fem_status domain_topology_create(domain_topology *topology, const fem_mesh *mesh);
void       domain_topology_destroy(domain_topology *topology);
// The integral of each vertex's shape function over a face, m^2; returns their sum, the area.
double domain_face_weights(const domain_topology *topology, int face, double weights[4]);
// The element on the other side of a face.
static inline int domain_across(const domain_topology *t, int face, int element) {
    return t->pair[2 * (size_t)face] + t->pair[2 * (size_t)face + 1] - element;
}

// ---- labels ----------------------------------------------------------------------------------------------------

typedef struct domain_labels {
    int  count;
    int *label;  // per element
    int *origin; // per label: the given label that it has most elements of, -1 where nothing was given
    int *size;   // per label: elements. origin and size have room for one label per element
} domain_labels;

fem_status domain_labels_create(domain_labels *labels, int element_count); // one label for all
void       domain_labels_destroy(domain_labels *labels);
// A number per element becomes the labels, counted in the order of first use. origin: per number, or NULL.
fem_status domain_labels_set(domain_labels *labels, int element_count, const int *number, int number_count,
                             const int *origin);
// Labels that a union-find forest over them has joined become one, numbered in the order of the lowest.
fem_status domain_labels_join(domain_labels *labels, int element_count, int *forest);
// Every face-connected piece becomes a label of its own.
fem_status domain_labels_split(domain_labels *labels, const domain_topology *topology);
// Elements by label, compressed and ascending; allocated.
fem_status domain_labels_lists(const domain_labels *labels, int element_count, int **start, int **elements);

// Union-find: the lower root wins, paths are halved.
int  domain_find(int *forest, int i);
bool domain_join(int *forest, int a, int b); // were they apart?

// ---- the graph of domains --------------------------------------------------------------------------------------

typedef struct domain_graph {
    int     nodes, edges;
    int    *pair;               // 2 nodes per edge, ascending; edges are ordered by them
    double *area;               // per edge, m^2
    int    *face_start, *faces; // faces of an edge's patch
    int    *start, *incident;   // edges of a node
} domain_graph;

fem_status domain_graph_create(domain_graph *graph, const domain_topology *topology, const domain_labels *labels);
void       domain_graph_destroy(domain_graph *graph);
static inline int domain_graph_other(const domain_graph *g, int edge, int node) {
    return g->pair[2 * (size_t)edge] + g->pair[2 * (size_t)edge + 1] - node;
}
// Steps from a node; -1 where it does not lead. `queue` gets the nodes in the order of their steps; returns how many.
int domain_graph_steps(const domain_graph *graph, int from, int *steps, int *queue);
// bridge[e]: does edge e lie on no loop?
fem_status domain_graph_bridges(const domain_graph *graph, unsigned char *bridge);
// The nodes of a loop through an edge that is no bridge, in their order; returns how many (2: two patches of one pair).
fem_status domain_graph_loop(const domain_graph *graph, int edge, int **nodes, int *count);
// A node from which the farthest is nearest, of two the larger.
fem_status domain_graph_centre(const domain_graph *graph, const int *size, int *centre);

// A spanning tree: breadth first, each node below the neighbour with the largest patch.
typedef struct domain_span {
    int  root;
    int *level, *parent_edge; // per node; the root has parent_edge -1
    int *order;               // nodes by level, then by the order of their parents, then by number
} domain_span;
fem_status domain_span_create(domain_span *span, const domain_graph *graph, int root);
void       domain_span_destroy(domain_span *span);

// Tops: the nodes around a vertex that do not hold it on the interface to their parent. One, unless the mesh is hinged
// there or a loop was cut open. Compressed per vertex; allocated.
fem_status domain_tops(const domain_topology *topology, const domain_labels *labels, const domain_graph *graph,
                       const domain_span *span, int **start, int **tops);
// The vertices of some faces, ascending, without repeats, and their weights; in arrays with room for them all.
// mark: per vertex, zero before and after; sum: per vertex.
int domain_patch_points(const domain_topology *topology, int face_count, const int *faces, unsigned char *mark,
                        double *sum, int *vertices, double *weights);

// ---- settling (decompose_settle.c) -----------------------------------------------------------------------------

enum { DOMAIN_FREE, DOMAIN_GATHERED, DOMAIN_GROUND }; // what becomes of a vertex

// All that the stages share.
typedef struct domain_work {
    domain_topology    topology;
    domain_labels      labels;
    domain_graph       graph;
    domain_span        span;
    unsigned char     *held;  // per vertex: DOMAIN_FREE, DOMAIN_GATHERED or DOMAIN_GROUND
    bool               some;  // is any gathered?
    bool               given; // labels are the caller's: kept or refused, not repaired
    domain_loops       loops; // the default resolved
    int                least; // elements of a domain
    const char *const *names;
    int                begun_with, loop_count; // for the report
} domain_work;

// Marks what becomes of every held vertex: gathered into the root, or, outside the largest group, tied to the ground.
fem_status domain_mark_held(domain_work *work, const domain_options *options);
// Joins METIS's parts into layers around the root.
fem_status domain_join_layers(domain_work *work);
// Every domain in one piece, no loops but those to be closed by springs, a root, feet gathered. Fills graph and span.
fem_status domain_settle(domain_work *work);

// ---- cutting one domain (decompose_cut.c) ----------------------------------------------------------------------

typedef struct domain_cutter domain_cutter;
fem_status                   domain_cutter_create(domain_cutter **cutter, const domain_topology *topology);
void                         domain_cutter_destroy(domain_cutter *cutter);

typedef struct domain_cut {
    int                  element_count;
    const int           *elements; // of the domain, ascending; one piece
    const unsigned char *seed;     // per element of the mesh: where the distance starts; none: an end of the domain
    int                  wanted;   // parts
    int                  needed;   // parts, even if it takes thin slices
    int                  least;    // elements of a part
    bool                 loops;    // may a part touch the rest in several patches?
    // patches that must stay in one part: list i holds faces faces[start[i]] .. of the domain's surface
    int        patch_count;
    const int *patch_start, *patch_faces;
} domain_cut;
// part[i] for elements[i], 0 for those at the seeds; *count <= wanted.
fem_status domain_cutter_run(domain_cutter *cutter, const domain_cut *cut, int *part, int *count);

// ---- the result (decompose_tree.c) -----------------------------------------------------------------------------

fem_status domain_tree_write(domain_tree *tree, const domain_topology *topology, const domain_labels *labels,
                             const domain_graph *graph, const domain_span *span, const unsigned char *held,
                             const char *const *names);
// What the messages call a label: its given name, or "domain I".
void domain_label_name(char text[64], const domain_labels *labels, int label, const char *const *names);

// ---- meshes of domains (submesh.c) -------------------------------------------------------------------------------

// Gives a part the regions and materials of the whole, in place of its own.
fem_status domain_copy_regions(fem_mesh *part, const fem_mesh *mesh);

#endif

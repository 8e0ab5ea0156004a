// Volumetric meshes of linear tetrahedra (T4) or trilinear hexahedra (H8): data, files, generators, topology.
#ifndef LIMBER_MESH_H
#define LIMBER_MESH_H

#include "libfem/base.h"
#include "libfem/material.h"
#include "libfem/store.h"

typedef enum fem_element { FEM_T4, FEM_H8 } fem_element;

static inline int fem_element_vertices(fem_element type) { return type == FEM_T4 ? 4 : 8; }

// A named list of vertices or elements, 0-based, ascending, without repeats.
typedef struct fem_set {
    char *name;
    int   count;
    int  *items;
} fem_set;

// A region is a part of the body with one material. Every element belongs to exactly one.
typedef struct fem_region {
    char *name;
    int   material; // index into materials
} fem_region;

// Vertex order of an H8: (0,0,0) (1,0,0) (1,1,0) (0,1,0), then the same at z = 1. T4: positive volume, that is
// (x1-x0) . ((x2-x0) x (x3-x0)) > 0. All indices are 0-based, whatever the file said.
typedef struct fem_mesh {
    fem_element   type;
    int           vertex_count;
    double       *vertices; // 3 per vertex
    int           element_count;
    int          *elements; // 4 or 8 per element
    int          *region;   // per element: index into regions
    int           region_count;
    fem_region   *regions;
    int           material_count;
    fem_material *materials;
    int           vertex_set_count;
    fem_set      *vertex_sets;
    int           element_set_count;
    fem_set      *element_sets;
    int           file_base;       // number of the first vertex in the file that the mesh came from: 0 or 1
    long long     element_base;    // number of the first element there
    long long    *element_numbers; // of all elements there; NULL: they count on from the first
} fem_mesh;

// A surface of triangles, as in .obj files or as the skin of a mesh.
typedef struct fem_surface {
    int     vertex_count;
    double *vertices; // 3 per vertex
    int     triangle_count;
    int    *triangles; // 3 per triangle
    // of .obj files, where they have them; else 0 and NULL
    int     uv_count;
    double *uv;             // 2 each: texture coordinates, from the lower left corner
    int    *corners;        // 3 per triangle: which of them; -1: none
    int     material_count; //
    char  **materials;      // names
    int    *material;       // per triangle; -1: none
} fem_surface;

// ---- life ------------------------------------------------------------------------------------------------------

// An empty mesh is all zeros (`fem_mesh mesh = {0}`). Functions below that fill a mesh replace what it held only when
// they succeed.
void       fem_mesh_destroy(fem_mesh *mesh); // leaves it empty
fem_status fem_mesh_copy(fem_mesh *copy, const fem_mesh *mesh);
// Allocates vertices, elements and region (all 0), one region "all" with one default material.
fem_status     fem_mesh_allocate(fem_mesh *mesh, fem_element type, int vertex_count, int element_count);
fem_status     fem_mesh_add_vertex_set(fem_mesh *mesh, const char *name, int count, const int *items);  // sorts, checks
fem_status     fem_mesh_add_element_set(fem_mesh *mesh, const char *name, int count, const int *items); // sorts, checks
const fem_set *fem_mesh_vertex_set(const fem_mesh *mesh, const char *name); // NULL when there is none of that name
const fem_set *fem_mesh_element_set(const fem_mesh *mesh, const char *name);
int            fem_mesh_region_index(const fem_mesh *mesh, const char *name); // -1 when there is none
// Of an element in the file that the mesh came from, for messages.
static inline long long fem_mesh_element_number(const fem_mesh *mesh, int element) {
    return mesh->element_numbers ? mesh->element_numbers[element] : mesh->element_base + element;
}
// Of everything that determines forces and masses: vertices, elements, and each element's material. Not of names or
// sets.
fem_hash fem_mesh_hash(const fem_mesh *mesh);
// Gives every region this material.
fem_status fem_mesh_set_material(fem_mesh *mesh, const fem_material *material);
// Counts positive, indices in range, no vertex twice in an element, coordinates finite, volumes positive and finite,
// regions and materials in range and valid. The message names the first offender by its number in the file.
fem_status fem_mesh_check(const fem_mesh *mesh);

// ---- files (mesh_*.c); every reader takes the same name with .gz behind it too ------------------------------------

// What a reader passed over or changed, a line of text each: "FILE: 24 ten-node tetrahedral elements are read as ...".
typedef struct fem_remarks {
    int         count;
    char      **items;
    size_t      capacity;
    const char *path; // of the file that is being read
} fem_remarks;
void fem_remarks_destroy(fem_remarks *remarks); // leaves it empty

// By the ending of the name; readers end with fem_mesh_check. docs/formats.md says what each format holds.
// Read: .veg .vegb, .node or .ele (the pair), .vtu .vtk, .msh, .mesh .meshb, .inp
fem_status fem_mesh_read(fem_mesh *mesh, const char *path);
fem_status fem_mesh_read_remarks(fem_mesh *mesh, const char *path, fem_remarks *remarks); // appends to them
// Written: .veg, .node/.ele, .vtu, .vtk, .msh (binary 4.1), .mesh, .inp, or .obj (the surface)
fem_status  fem_mesh_write(const fem_mesh *mesh, const char *path);
fem_status  fem_mesh_write_text(const fem_mesh *mesh, const char *path); // .msh and .vtk with numbers as text
const char *fem_mesh_formats(bool to_write);                             // ".veg, .node, ... or .inp", for messages
bool        fem_path_is_surface(const char *path);                       // .obj, .stl, .ply, with or without .gz
// A list of vertices, Vega's .bou (1-based, commas, blanks or newlines) in the mesh's own base: file_base is
// subtracted, the range is checked, the result is ascending without repeats.
fem_status fem_vertex_list_read(int **items, int *count, const char *path, int file_base, int vertex_count);
fem_status fem_vertex_list_write(const char *path, int count, const int *items, int file_base);
// .obj, .stl, .ply; polygons become fans. The corners of .stl triangles are joined where they are equal.
fem_status fem_surface_read(fem_surface *surface, const char *path);
fem_status fem_surface_read_remarks(fem_surface *surface, const char *path, fem_remarks *remarks); // appends to them
fem_status fem_surface_write(const fem_surface *surface, const char *path);                        // .obj
void       fem_surface_destroy(fem_surface *surface);
// The outer surface of a mesh, with those vertices only.
fem_status fem_surface_of_mesh(fem_surface *surface, const fem_mesh *mesh);

// A field on a mesh, to be written beside it.
typedef struct fem_field {
    const char   *name;
    int           components; // 1 or 3
    const double *values;     // components per vertex (or per element)
    bool          on_elements;
} fem_field;
// .vtu with fields; positions are the rest positions, plus `displacement` (3 per vertex) when it is not NULL.
fem_status fem_mesh_write_vtu(const fem_mesh *mesh, const char *path, const double *displacement, int field_count,
                              const fem_field *fields);

// Whole file into memory, .gz unpacked, a zero byte behind the last. Caller frees.
fem_status fem_file_read(char **text, size_t *size, const char *path);
// Files are written under a temporary name and renamed when complete: nothing is ever half written. Symbolic links are
// followed, also to where nothing is yet.
typedef struct fem_file fem_file;
fem_status              fem_file_create(fem_file **file, const char *path); // .gz packs
void                    fem_file_print(fem_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
void                    fem_file_put(fem_file *file, const void *bytes, size_t size);
fem_status              fem_file_commit(fem_file *file);  // reports any failure since creation; closes and renames
void                    fem_file_abandon(fem_file *file); // closes and removes; accepts NULL
// FEM_OK when a file of that name can be created. For several outputs: all are asked before the first is written.
fem_status fem_file_try(const char *path);

// ---- generators (generate_*.c) ---------------------------------------------------------------------------------

// Each makes a checked, conforming mesh of H8 or of T4 (six tetrahedra in the place of a hexahedron), with one region
// "all" where nothing else is said. What cannot be made is refused with the reason and what would do, more than 50
// million elements among it.

// Box of cells[0] x cells[1] x cells[2] cells between two corners.
// Vertex sets "x0" "x1" "y0" "y1" "z0" "z1" name the faces.
fem_status fem_generate_box(fem_mesh *mesh, fem_element type, const double low[3], const double high[3],
                            const int cells[3]);

// Tube (solid, round) swept along a polyline with a radius at every point. `rings` cells from the axis to the surface,
// `segment` the wanted cell length along the axis (0: as long as a cell is wide). Between two points the tube is a
// cylinder or cone; at a bend the two meet in a mitre, which must leave room on the inner side and be below 150
// degrees. Sections do not twist (parallel transport). Vertex sets "root", "tip" (first and last section), "surface"
// (the side).
typedef struct fem_tube {
    int           points;
    const double *centre; // 3 per point
    const double *radius; // 1 per point
    int           rings;
    double        segment;
} fem_tube;
fem_status fem_generate_tube(fem_mesh *mesh, fem_element type, const fem_tube *tube);

// Leaf: a thin plate around the xy plane. The petiole (stalk) starts at the origin and runs along +x for petiole_length
// with a constant width; the blade goes on for `length`. At s = 0..1 along the blade it is
//     w(s) = e + (width - e) sin(pi s),    e = base for s < 1/2, 0.15 width for s > 1/2
// wide, so its tip is blunt. Without a petiole the base is 0.4 width. With one, the petiole continues an even number p
// of the n columns of the blade and the base is n/p petiole widths: the most that is not above 0.4 width, or one.
// `cells` along the blade; the columns make them about square where it is widest.
// Vertex sets "root" (the end at the origin), "tip", "bottom" and "top" (low and high z); regions "blade" and
// "petiole".
typedef struct fem_leaf {
    double length, width, thickness;
    double petiole_length, petiole_width; // a length of 0 makes a plate without petiole, rooted at its edge
    int    cells;                         // along the blade
    int    layers;                        // through the thickness
} fem_leaf;
fem_status fem_generate_leaf(fem_mesh *mesh, fem_element type, const fem_leaf *leaf);

// Ball of `cells` cells across: a rounded cube of cells and, from four cells on, shells around it, so that no cell has
// the flat corner that a cube pressed into a ball would have. Vertex sets "surface", and "x0" .. "z1": its six patches.
fem_status fem_generate_sphere(fem_mesh *mesh, fem_element type, const double centre[3], double radius, int cells);

// Branching body: the union of pieces on one voxel grid, conforming. A voxel belongs to the first piece that contains
// its centre; each piece is a region with its name. The grid is centred on the bounding box of the pieces, so a box
// whose sides are whole numbers of voxels is exact. Where voxels meet only along an edge or at a corner one more is
// filled, so that the body has no hinges and its surface is a manifold. Refused: pieces without a name or with
// another's, pieces without a voxel of their own, and what is not connected with the first piece. Vertex sets "x0" ..
// "z1": the vertices on the extreme planes of the body.
typedef enum fem_piece_shape { FEM_CAPSULE, FEM_BOX, FEM_BALL } fem_piece_shape;
typedef struct fem_piece {
    const char     *name;
    fem_piece_shape shape;
    double          a[3], b[3];         // capsule: ends of its axis; box: opposite corners; ball: a is the centre
    double          radius_a, radius_b; // capsule: radius at each end, the hull of two balls; ball: radius_a
} fem_piece;
fem_status fem_generate_pieces(fem_mesh *mesh, fem_element type, int count, const fem_piece *pieces, double voxel);
// The same, hollow: a wall of so many voxels (0: solid), counted along diagonals too.
fem_status fem_generate_shell(fem_mesh *mesh, fem_element type, int count, const fem_piece *pieces, double voxel,
                              int layers);

// Six tetrahedra for every hexahedron (6e .. 6e+5 for e), conforming, on the same vertices; regions, materials and sets
// survive. `mesh` may be `hexahedra` itself. Volumes are positive where no hexahedron is very distorted:
// fem_mesh_check.
fem_status fem_mesh_split_hexahedra(fem_mesh *mesh, const fem_mesh *hexahedra);

// ---- topology (topology.c, quality.c, embed.c) -------------------------------------------------------------------

// These take meshes with valid indices (fem_mesh_check); volumes may have any sign.

// Outer surface: for a T4 its triangles, for an H8 two triangles a face, cut through the lowest vertex; outward, in the
// order of elements. Vertices are those of the mesh; `element` (may be NULL) gets the element under each triangle. The
// arrays are allocated. A face of three elements is an error, here and in the element graph.
fem_status fem_mesh_surface(const fem_mesh *mesh, int *triangle_count, int **triangles, int **element);

// Faces that two elements share: elements 2 f and 2 f + 1 (ascending) and the 3 (T4) or 4 (H8) vertices of face f, seen
// counter-clockwise from outside the first; in the order of the first elements. The arrays are allocated.
fem_status fem_mesh_inner_faces(const fem_mesh *mesh, int *face_count, int **elements, int **vertices);

// Vertices that share an element, compressed: neighbours of v are adjacent[start[v]] .. adjacent[start[v+1]-1],
// ascending.
fem_status fem_mesh_vertex_graph(const fem_mesh *mesh, int **start, int **adjacent);
// Elements that share a face, compressed likewise.
fem_status fem_mesh_element_graph(const fem_mesh *mesh, int **start, int **adjacent);
// Elements around a vertex, compressed likewise.
fem_status fem_mesh_vertex_elements(const fem_mesh *mesh, int **start, int **elements);
// Components joined by shared vertices: label per vertex (-1 for a vertex without element), number of components.
fem_status fem_mesh_components(const fem_mesh *mesh, int *vertex_component, int *component_count);

// Signed volume; for an H8 the integral of det J over its trilinear map.
double fem_element_volume(const fem_mesh *mesh, int element);

typedef struct fem_quality {
    double volume;                     // of the body
    double min_volume, max_volume;     // signed, of an element
    double min_dihedral, max_dihedral; // degrees, T4 and H8
    double min_shape;                  // T4 mean ratio (1 = regular); H8 smallest scaled Jacobian (1 = box)
    int    worst_element;              // that has min_shape
    int    unused_vertices;
    int    components;
    double low[3], high[3];
} fem_quality;
fem_status fem_mesh_quality(const fem_mesh *mesh, fem_quality *quality);

// Embedding of points in a mesh: the element of each point and the weights of its vertices; a point outside belongs to
// the nearest element, with extrapolating weights (T4) or clamped ones (H8). Weights reproduce linear fields. Up to
// 1e-9 of an element's size away counts as inside. The result does not depend on the number of threads.
typedef struct fem_embedding {
    int     point_count;
    int     width;    // 4 or 8 weights a point
    int    *vertices; // width per point
    double *weights;  // width per point, sum 1
    int    *element;  // per point
    int     outside;  // number of points outside the mesh
} fem_embedding;
fem_status fem_embed_points(fem_embedding *embedding, const fem_mesh *mesh, int point_count, const double *points);
// The vertices of fem_surface_of_mesh, each by itself: where a mesh is cut, vertices that lie in one place are told
// apart.
fem_status fem_embed_skin(fem_embedding *embedding, const fem_mesh *mesh);
void       fem_embedding_apply(const fem_embedding *embedding, const double *field, double *out); // 3 per vertex
// From p, which was embedded as that point, to its element; of a tetrahedron an upper bound: to the point that weights
// without the negative ones give.
double fem_embedding_distance(const fem_embedding *embedding, const fem_mesh *mesh, int point, const double p[3]);
void   fem_embedding_destroy(fem_embedding *embedding);

#endif

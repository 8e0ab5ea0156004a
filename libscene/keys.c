// Every key of a scene file, once: type, unit, range, default, meaning, and where its value goes.
// The loader reads by these tables, and the schema and the page docs/scenes.md are written from them.
#include "libscene/internal.h"

#include <math.h>

#define AT(type, field)     .offset = offsetof(type, field)
#define POSITIVE(most)      .low = 0, .low_open = true, .high = (most)
#define WITHIN(least, most) .low = (least), .high = (most)
#define LENGTH              .unit = "m", WITHIN(-1e9, 1e9)
#define TABLE(list)         .keys = (list), .count = (int)(sizeof(list) / sizeof *(list))
#define ONE_OF(type)        .has_alternatives = true, .variant = offsetof(type, variant)

// clang-format off

// ---- materials -------------------------------------------------------------------------------------------------------

enum {
    ISOTROPIC = 1 << FEM_LINEAR | 1 << FEM_STVK | 1 << FEM_NEOHOOKEAN,
    GUARDED = 1 << FEM_NEOHOOKEAN | 1 << FEM_MOONEY_RIVLIN | 1 << FEM_ARRUDA_BOYCE,
};

static const scene_key material_keys[] = {
    {.name = "type", .type = KEY_CHOICE, .fallback = {FEM_STVK}, AT(raw_material, kind),
     .choices = "linear|stvk|orthotropic|neohookean|mooney-rivlin|arruda-boyce", .about = "the strain energy"},
    {.name = "density", .required = true, .unit = "kg/m^3", POSITIVE(1e9), AT(raw_material, density), .about = "mass per rest volume"},
    {.name = "young", .only = ISOTROPIC, .required = true, .unit = "Pa", POSITIVE(1e15), AT(raw_material, young), .about = "Young's modulus"},
    {.name = "poisson", .only = ISOTROPIC, .required = true, .low = -1, .high = 0.5, .low_open = true, .high_open = true,
     AT(raw_material, poisson), .about = "Poisson's ratio"},
    {.name = "young3", .only = 1 << FEM_ORTHOTROPIC, .shape = SHAPE_VECTOR, .required = true, .unit = "Pa", POSITIVE(1e15),
     AT(raw_material, young3), .about = "E1, E2, E3 along the material axes"},
    {.name = "poisson3", .only = 1 << FEM_ORTHOTROPIC, .shape = SHAPE_VECTOR, .required = true, WITHIN(-10, 10),
     AT(raw_material, poisson3), .about = "nu12, nu23, nu31; nu_ij is the contraction along j when pulled along i"},
    {.name = "shear3", .only = 1 << FEM_ORTHOTROPIC, .shape = SHAPE_VECTOR, .required = true, .unit = "Pa", POSITIVE(1e15),
     AT(raw_material, shear3), .about = "G12, G23, G31"},
    {.name = "axes", .only = 1 << FEM_ORTHOTROPIC, .shape = SHAPE_PAIR, .otherwise = "x and y", WITHIN(-1e9, 1e9), AT(raw_material, axes),
     .about = "directions of the first and the second material axis; the second is made perpendicular, the third follows"},
    {.name = "mu01", .only = 1 << FEM_MOONEY_RIVLIN, .required = true, .unit = "Pa", WITHIN(0, 1e15), AT(raw_material, mu01),
     .about = "of the second invariant"},
    {.name = "mu10", .only = 1 << FEM_MOONEY_RIVLIN, .required = true, .unit = "Pa", WITHIN(0, 1e15), AT(raw_material, mu10),
     .about = "of the first invariant"},
    {.name = "v1", .only = 1 << FEM_MOONEY_RIVLIN, .required = true, .unit = "Pa", POSITIVE(1e15), AT(raw_material, v1),
     .about = "of (J - 1)^2"},
    {.name = "mu", .only = 1 << FEM_ARRUDA_BOYCE, .required = true, .unit = "Pa", POSITIVE(1e15), AT(raw_material, mu),
     .about = "rubbery shear modulus"},
    {.name = "chain", .only = 1 << FEM_ARRUDA_BOYCE, .required = true, POSITIVE(1e9), AT(raw_material, chain), .about = "links of a chain"},
    {.name = "bulk", .only = 1 << FEM_ARRUDA_BOYCE, .required = true, .unit = "Pa", POSITIVE(1e15), AT(raw_material, bulk),
     .about = "bulk modulus, of (J - 1)^2 / 2"},
    {.name = "inversion_threshold", .only = GUARDED, .fallback = {0.1}, .low = 0, .high = 1, .low_open = true, .high_open = true,
     AT(raw_material, inversion_threshold), .about = "below this J = det F the energy goes on as a polynomial, so that inverted elements recover"},
};
const scene_table scene_material_table = {.name = "material", TABLE(material_keys), .typed = true,
    .about = "One entry of `materials`."};

// ---- meshes ------------------------------------------------------------------------------------------------------------

#define ELEMENT(raw) {.name = "element", .type = KEY_CHOICE, .choices = "tet|hex", .fallback = {FEM_H8}, AT(raw, element), \
    .about = "linear tetrahedra or trilinear hexahedra"}

static const scene_key box_keys[] = {
    ELEMENT(raw_box),
    {.name = "low", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, LENGTH, AT(raw_box, low), .about = "the corner with the least coordinates"},
    {.name = "high", .shape = SHAPE_VECTOR, .required = true, LENGTH, AT(raw_box, high), .about = "the opposite corner"},
    {.name = "cells", .type = KEY_INTEGER, .shape = SHAPE_VECTOR, .required = true, WITHIN(1, 10000), AT(raw_box, cells),
     .about = "cells along x, y and z; six tetrahedra fill a cell"},
};
static const scene_table box_table = {.name = "box", TABLE(box_keys),
    .about = "A box. Vertex sets: `x0`, `x1`, `y0`, `y1`, `z0`, `z1`, its faces."};

static const scene_key tube_keys[] = {
    ELEMENT(raw_tube),
    {.name = "points", .shape = SHAPE_POINTS, .required = true, LENGTH, AT(raw_tube, points), .about = "the axis, a polyline of at least two points"},
    {.name = "radius", .shape = SHAPE_ANY, .required = true, .unit = "m", POSITIVE(1e9), AT(raw_tube, radius), .about = "one for all points, or one for each"},
    {.name = "rings", .type = KEY_INTEGER, .fallback = {2}, WITHIN(1, 100), AT(raw_tube, rings), .about = "cells from the axis to the surface"},
    {.name = "segment", .fallback = {0}, .unit = "m", WITHIN(0, 1e9), AT(raw_tube, segment), .about = "cell length along the axis; 0: as long as wide"},
};
static const scene_table tube_table = {.name = "tube", TABLE(tube_keys),
    .about = "A solid round rod swept along a polyline. Vertex sets: `root` and `tip`, its ends."};

static const scene_key leaf_keys[] = {
    ELEMENT(raw_leaf),
    {.name = "length", .required = true, .unit = "m", POSITIVE(1e9), AT(raw_leaf, length), .about = "of the blade, along x"},
    {.name = "width", .required = true, .unit = "m", POSITIVE(1e9), AT(raw_leaf, width), .about = "of the blade, along y"},
    {.name = "thickness", .required = true, .unit = "m", POSITIVE(1e9), AT(raw_leaf, thickness), .about = "of blade and petiole"},
    {.name = "petiole_length", .fallback = {0}, .unit = "m", WITHIN(0, 1e9), AT(raw_leaf, petiole_length), .about = "of the stalk; 0: there is none"},
    {.name = "petiole_width", .fallback = {0}, .unit = "m", WITHIN(0, 1e9), AT(raw_leaf, petiole_width), .about = "of the stalk"},
    {.name = "cells", .type = KEY_INTEGER, .fallback = {20}, WITHIN(1, 10000), AT(raw_leaf, cells), .about = "along the blade"},
    {.name = "layers", .type = KEY_INTEGER, .fallback = {1}, WITHIN(1, 1000), AT(raw_leaf, layers), .about = "through the thickness"},
};
static const scene_table leaf_table = {.name = "leaf", TABLE(leaf_keys),
    .about = "A thin blade in the xy plane on a petiole that ends at the origin. Vertex set: `root`. Regions: `blade`, `petiole`."};

static const scene_key sphere_keys[] = {
    ELEMENT(raw_sphere),
    {.name = "centre", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, LENGTH, AT(raw_sphere, centre), .about = "of the ball"},
    {.name = "radius", .required = true, .unit = "m", POSITIVE(1e9), AT(raw_sphere, radius), .about = "of the ball"},
    {.name = "cells", .type = KEY_INTEGER, .fallback = {8}, WITHIN(1, 1000), AT(raw_sphere, cells), .about = "across"},
};
static const scene_table sphere_table = {.name = "sphere", TABLE(sphere_keys),
    .about = "A ball. Vertex set: `surface`."};

static const scene_key capsule_keys[] = {
    {.name = "ends", .shape = SHAPE_PAIR, .required = true, LENGTH, AT(raw_capsule, ends), .about = "the ends of the axis"},
    {.name = "radius", .shape = SHAPE_ANY, .required = true, .unit = "m", POSITIVE(1e9), AT(raw_capsule, radius), .about = "one, or one at each end"},
};
static const scene_table capsule_table = {.name = "capsule", TABLE(capsule_keys),
    .about = "A rod with round ends, which may taper."};

static const scene_key ball_keys[] = {
    {.name = "centre", .shape = SHAPE_VECTOR, .required = true, LENGTH, AT(raw_ball, centre), .about = "of the ball"},
    {.name = "radius", .required = true, .unit = "m", POSITIVE(1e9), AT(raw_ball, radius), .about = "of the ball"},
};
static const scene_table ball_table = {.name = "ball", TABLE(ball_keys),
    .about = "A ball, as a piece of a body or as a selection."};

static const scene_key piece_keys[] = {
    {.name = "name", .type = KEY_TEXT, .required = true, AT(raw_piece, name), .about = "of the region that the piece becomes"},
    {.name = "capsule", .type = KEY_SECTION, .alternative = true, .table = &capsule_table, AT(raw_piece, capsule), .about = "a rod with round ends"},
    {.name = "box", .shape = SHAPE_PAIR, .alternative = true, LENGTH, AT(raw_piece, box), .about = "two opposite corners"},
    {.name = "ball", .type = KEY_SECTION, .alternative = true, .table = &ball_table, AT(raw_piece, ball), .about = "a ball"},
};
const scene_table scene_piece_table = {.name = "piece", TABLE(piece_keys), ONE_OF(raw_piece),
    .about = "One of the `shapes` of a branching body."};

static const scene_key pieces_keys[] = {
    ELEMENT(raw_pieces),
    {.name = "voxel", .required = true, .unit = "m", POSITIVE(1e9), AT(raw_pieces, voxel), .about = "edge of the grid's cells"},
    {.name = "shell", .type = KEY_INTEGER, .fallback = {0}, .otherwise = "solid", WITHIN(1, 1000), AT(raw_pieces, shell), .about = "hollow, with a wall of so many voxels"},
    {.name = "shapes", .type = KEY_LIST, .required = true, .least = 1, .table = &scene_piece_table, AT(raw_pieces, shapes),
     .about = "the pieces; a voxel belongs to the first that contains its centre"},
};
static const scene_table pieces_table = {.name = "pieces", TABLE(pieces_keys),
    .about = "A branching body: the union of pieces on a voxel grid, each a region of its own."};

static const scene_key mesh_keys[] = {
    {.name = "box", .type = KEY_SECTION, .alternative = true, .table = &box_table, AT(raw_mesh, box), .about = "a box"},
    {.name = "tube", .type = KEY_SECTION, .alternative = true, .table = &tube_table, AT(raw_mesh, tube), .about = "a rod along a polyline"},
    {.name = "leaf", .type = KEY_SECTION, .alternative = true, .table = &leaf_table, AT(raw_mesh, leaf), .about = "a thin blade on a stalk"},
    {.name = "sphere", .type = KEY_SECTION, .alternative = true, .table = &sphere_table, AT(raw_mesh, sphere), .about = "a ball"},
    {.name = "pieces", .type = KEY_SECTION, .alternative = true, .table = &pieces_table, AT(raw_mesh, pieces), .about = "a branching body"},
};
const scene_table scene_mesh_table = {.name = "mesh", TABLE(mesh_keys), ONE_OF(raw_mesh),
    .about = "A generated mesh, in place of the name of a mesh file."};

// ---- selections ---------------------------------------------------------------------------------------------------------

static const scene_key plane_keys[] = {
    {.name = "point", .shape = SHAPE_VECTOR, .required = true, LENGTH, AT(raw_plane, point), .about = "a point of the plane"},
    {.name = "normal", .shape = SHAPE_VECTOR, .required = true, WITHIN(-1e9, 1e9), AT(raw_plane, normal), .about = "its normal, of any length but 0"},
    {.name = "tolerance", .fallback = {0}, .unit = "m", WITHIN(0, 1e9), AT(raw_plane, tolerance),
     .about = "distance up to which a vertex belongs to it; 0: 1e-6 of the mesh's diagonal"},
};
static const scene_table plane_table = {.name = "plane", TABLE(plane_keys),
    .about = "A plane, or the half-space on the side to which its normal points."};

static const scene_key selection_keys[] = {
    {.name = "vertices", .type = KEY_INTEGER, .shape = SHAPE_LIST, .alternative = true, WITHIN(0, 2147483647), AT(raw_selection, vertices),
     .about = "numbers as the mesh file counts them (from 0 for generated meshes)"},
    {.name = "file", .type = KEY_TEXT, .alternative = true, AT(raw_selection, file), .about = "a list of such numbers, Vega's .bou"},
    {.name = "region", .type = KEY_TEXT, .alternative = true, AT(raw_selection, region), .about = "all vertices of a region"},
    {.name = "box", .shape = SHAPE_PAIR, .alternative = true, LENGTH, AT(raw_selection, box), .about = "two corners; what lies between them"},
    {.name = "plane", .type = KEY_SECTION, .alternative = true, .table = &plane_table, AT(raw_selection, plane), .about = "what lies in a plane"},
    {.name = "halfspace", .type = KEY_SECTION, .alternative = true, .table = &plane_table, AT(raw_selection, halfspace),
     .about = "what lies on the normal's side of a plane, or in it"},
    {.name = "ball", .type = KEY_SECTION, .alternative = true, .table = &ball_table, AT(raw_selection, ball), .about = "what lies in a ball"},
    {.name = "instance", .type = KEY_TEXT, .alternative = true, AT(raw_selection, instance),
     .about = "scenes with several objects: an instance by name, or all of that name"},
    {.name = "set", .type = KEY_TEXT, .only = 1 << SELECT_INSTANCE, .otherwise = "all its vertices", AT(raw_selection, set), .about = "of the instance: a vertex set of its part's mesh"},
    {.name = "nearest", .shape = SHAPE_VECTOR, .alternative = true, LENGTH, AT(raw_selection, nearest), .about = "the one vertex nearest to a point"},
};
const scene_table scene_selection_table = {.name = "selection", TABLE(selection_keys), ONE_OF(raw_selection),
    .about = "Vertices at rest. A selection is the name of a vertex set of the mesh, one such object, or a list of names and objects, which means all of them together."};

// ---- parts, objects, environment ------------------------------------------------------------------------------------------

static const scene_key sketch_keys[] = {
    {.name = "force", .shape = SHAPE_VECTOR, .alternative = true, .unit = "N", WITHIN(-1e15, 1e15), AT(raw_sketch, force),
     .about = "total force, spread equally over the vertices"},
    {.name = "traction", .shape = SHAPE_VECTOR, .alternative = true, .unit = "Pa", WITHIN(-1e15, 1e15), AT(raw_sketch, traction),
     .about = "force per rest area on the surface between the vertices"},
    {.name = "pressure", .alternative = true, .unit = "Pa", WITHIN(-1e15, 1e15), AT(raw_sketch, pressure),
     .about = "against the outward normal at rest, on the surface between the vertices"},
    {.name = "acceleration", .shape = SHAPE_VECTOR, .alternative = true, .unit = "m/s^2", WITHIN(-1e9, 1e9), AT(raw_sketch, acceleration),
     .about = "body load: force per mass at the vertices"},
    {.name = "on", .type = KEY_SELECTION, .required = true, .table = &scene_selection_table, AT(raw_sketch, on), .about = "what it acts on"},
};
const scene_table scene_sketch_table = {.name = "sketch", TABLE(sketch_keys), ONE_OF(raw_sketch),
    .about = "A load of a sketch: the shape that the body takes under it, at rest and with all its nonlinearity, enters the basis."};

enum { MADE = 1 << SCENE_MODES_KRYLOV | 1 << SCENE_MODES_LANCZOS };
static const scene_key modes_keys[] = {
    {.name = "method", .type = KEY_CHOICE, .choices = "krylov|lanczos|sketch|file", .fallback = {SCENE_MODES_KRYLOV}, AT(raw_modes, method),
     .about = "inertia modes, vibration modes, shapes under loads, or a basis file (`limber modes --write FILE.basis`)"},
    {.name = "count", .type = KEY_INTEGER, .fallback = {30}, WITHIN(1, 1000), AT(raw_modes, count), .about = "modes of the reduced body, at most"},
    {.name = "linear", .type = KEY_INTEGER, .only = MADE, .fallback = {0}, .otherwise = "12; without derivatives `count`", WITHIN(0, 1000), AT(raw_modes, linear),
     .about = "linear modes, whose derivatives are taken"},
    {.name = "derivatives", .type = KEY_INTEGER, .only = MADE, .fallback = {1}, WITHIN(0, 3), AT(raw_modes, derivatives),
     .about = "order up to which derivatives of the linear modes enter the basis: how shapes change as they grow"},
    {.name = "orders", .type = KEY_INTEGER, .shape = SHAPE_LIST, .only = MADE, .otherwise = "all linear modes", WITHIN(1, 1000), AT(raw_modes, orders),
     .about = "for each order up to `derivatives`: how many of the first linear modes its derivatives are made of; their number grows with its square, cube and fourth power"},
    {.name = "condense", .type = KEY_CHOICE, .only = MADE | 1 << SCENE_MODES_SKETCH, .choices = "pca|randomized|projection", AT(raw_modes, condense),
     .about = "how linear modes and derivatives, or sketched shapes, become `count` modes"},
    {.name = "energy", .only = MADE | 1 << SCENE_MODES_SKETCH, .fallback = {1}, POSITIVE(1), AT(raw_modes, energy),
     .about = "part of the shapes' weight that is kept with at most `count` modes; with `pca` and `randomized`"},
    {.name = "seeds", .type = KEY_CHOICE, .only = 1 << SCENE_MODES_KRYLOV, .choices = "automatic|rigid|quadratic|random", AT(raw_modes, seeds),
     .about = "fields that the inertia modes start from; automatic: rigid for a held body, quadratic for a free one"},
    {.name = "orthogonalise", .type = KEY_CHOICE, .only = 1 << SCENE_MODES_KRYLOV, .choices = "block|mgs|rmgs", AT(raw_modes, orthogonalise),
     .about = "block Gram-Schmidt, modified Gram-Schmidt, or that over a sample of the vertices"},
    {.name = "sketch", .type = KEY_LIST, .only = 1 << SCENE_MODES_SKETCH, .required = true, .least = 1, .table = &scene_sketch_table, AT(raw_modes, sketch),
     .about = "the loads"},
    {.name = "file", .type = KEY_TEXT, .only = 1 << SCENE_MODES_FILE, .required = true, AT(raw_modes, file), .about = "a basis file of this mesh"},
};
const scene_table scene_modes_table = {.name = "modes", TABLE(modes_keys), .typed = true,
    .about = "The basis in which a reduced part moves."};

static const scene_key forces_keys[] = {
    {.name = "type", .type = KEY_CHOICE, .choices = "polynomial|linear|full|cubature", .fallback = {SCENE_POLYNOMIAL}, AT(raw_part, forces.type),
     .about = "exact cubic polynomials (materials `stvk` and `orthotropic`), small strain, the sum over all elements (any material, slow), or over a few weighted ones (any material)"},
    {.name = "method", .type = KEY_CHOICE, .only = 1 << SCENE_CUBATURE, .choices = "empirical|modal|optimized", .fallback = {CUBATURE_EMPIRICAL}, AT(raw_part, forces.method),
     .about = "how elements and weights are chosen; `modal` has a weight for each mode and element, the others one for each element"},
    {.name = "error", .only = 1 << SCENE_CUBATURE, .fallback = {0.01}, .low = 0, .high = 1, .low_open = true, .high_open = true, AT(raw_part, forces.error),
     .about = "relative error of the force at the training poses, at which no more elements are taken"},
    {.name = "elements", .type = KEY_INTEGER, .only = 1 << SCENE_CUBATURE, .fallback = {0}, .otherwise = "no limit", WITHIN(0, 1000000), AT(raw_part, forces.elements),
     .about = "elements at most"},
    {.name = "poses", .type = KEY_INTEGER, .only = 1 << SCENE_CUBATURE, .fallback = {0}, .otherwise = "as many as the error needs", WITHIN(0, 1000000), AT(raw_part, forces.poses),
     .about = "training poses, drawn at random; 0: by the number of modes, and with `gaussian` incremental generation, which stops by itself"},
    {.name = "sampling", .type = KEY_CHOICE, .only = 1 << SCENE_CUBATURE, .choices = "loads|gaussian|given", .fallback = {0}, AT(raw_part, forces.sampling),
     .about = "training poses are answers to random loads, random coordinates, or those of `file`"},
    {.name = "file", .type = KEY_TEXT, .only = 1 << SCENE_CUBATURE, .otherwise = "none", AT(raw_part, forces.file),
     .about = "with `given`: the frames of a run of the same mesh (.pvd), or a matrix of displacements, three rows a vertex and a column a pose (.npy, .mtx)"},
    {.name = "displacement", .only = 1 << SCENE_CUBATURE, .fallback = {0.1}, POSITIVE(10), AT(raw_part, forces.displacement),
     .about = "how far training poses go: the median of their largest displacement, as a part of the body's diagonal"},
    {.name = "held_out", .type = KEY_INTEGER, .only = 1 << SCENE_CUBATURE, .fallback = {100}, WITHIN(0, 1000000), AT(raw_part, forces.held_out),
     .about = "further poses, with which the result is tested"},
    {.name = "seed", .type = KEY_INTEGER, .only = 1 << SCENE_CUBATURE, .fallback = {1}, WITHIN(0, 1000000), AT(raw_part, forces.seed),
     .about = "of everything random in the training"},
};
static const scene_table forces_table = {.name = "forces", TABLE(forces_keys), .typed = true, .about = "How a reduced part computes its internal forces."};

static const scene_key seam_plane_keys[] = {
    {.name = "point", .shape = SHAPE_VECTOR, .required = true, LENGTH, AT(raw_seam, plane.point), .about = "a point of the plane"},
    {.name = "normal", .shape = SHAPE_VECTOR, .required = true, WITHIN(-1e9, 1e9), AT(raw_seam, plane.normal), .about = "its normal, of any length but 0"},
    {.name = "within", .type = KEY_SELECTION, .otherwise = "the whole plane", .table = &scene_selection_table, AT(raw_seam, plane.within), .about = "faces with all their vertices in it"},
};
static const scene_table seam_plane_table = {.name = "seam_plane", TABLE(seam_plane_keys), .about = "A cut along a plane: faces between elements whose centres lie on either side of it."};

static const scene_key seam_between_keys[] = {
    {.name = "a", .type = KEY_TEXT, .required = true, AT(raw_seam, between.a), .about = "a region"},
    {.name = "b", .type = KEY_TEXT, .required = true, AT(raw_seam, between.b), .about = "another region"},
};
static const scene_table seam_between_table = {.name = "seam_between", TABLE(seam_between_keys), .about = "A cut along all faces between two regions."};

static const scene_key seam_match_keys[] = {
    {.name = "a", .type = KEY_SELECTION, .required = true, .table = &scene_selection_table, AT(raw_seam, match.a), .about = "vertices of one surface"},
    {.name = "b", .type = KEY_SELECTION, .required = true, .table = &scene_selection_table, AT(raw_seam, match.b), .about = "vertices of the other"},
    {.name = "tolerance", .required = true, .unit = "m", POSITIVE(1e9), AT(raw_seam, match.tolerance), .about = "distance up to which two vertices that are nearest to each other are a pair; both move to one place"},
};
static const scene_table seam_match_table = {.name = "seam_match", TABLE(seam_match_keys), .about = "Two surfaces that lie close together."};

static const scene_key seam_keys[] = {
    {.name = "plane", .type = KEY_SECTION, .alternative = true, .table = &seam_plane_table, .about = "a cut along a plane"},
    {.name = "between", .type = KEY_SECTION, .alternative = true, .table = &seam_between_table, .about = "a cut between two regions"},
    {.name = "faces", .type = KEY_INTEGER, .shape = SHAPE_LIST, .alternative = true, WITHIN(0, 2147483647), AT(raw_seam, faces),
     .about = "a cut along these faces: three vertices each (tetrahedra) or four (hexahedra), all in one list"},
    {.name = "match", .type = KEY_SECTION, .alternative = true, .table = &seam_match_table, .about = "two surfaces that are there already"},
    {.name = "pairs", .type = KEY_INTEGER, .shape = SHAPE_LIST, .alternative = true, WITHIN(0, 2147483647), AT(raw_seam, pairs),
     .about = "pairs of vertices in the same place, two numbers each, all in one list"},
};
const scene_table scene_seam_table = {.name = "seam", TABLE(seam_keys), ONE_OF(raw_seam),
    .about = "Where a part can be stitched: pairs of vertices in the same place. A cut doubles the vertices of its faces; the copies stand behind the others. Seams are open until an action stitches them; those that an action cuts are grown together until then."};

static const scene_key drag_keys[] = {
    {.name = "normal", .fallback = {1.2}, WITHIN(0, 100), AT(raw_part, drag.normal),
     .about = "coefficient of the wind's pressure on its surface: 1.2 for a plate or a leaf, 1.8 for a round rod (whose drag coefficient is then 1.2)"},
    {.name = "tangential", .fallback = {0.02}, WITHIN(0, 100), AT(raw_part, drag.tangential), .about = "coefficient of the friction along its surface"},
    {.name = "samples", .type = KEY_INTEGER, .fallback = {12}, WITHIN(0, 100000), AT(raw_part, drag.samples),
     .about = "places of its surface, of each domain when it is cut, where the wind is felt; 0: it feels none"},
};
static const scene_table drag_table = {.name = "drag", TABLE(drag_keys), .about = "What the wind of the environment does to a part."};

static const scene_key part_keys[] = {
    {.name = "mesh", .type = KEY_MESH, .required = true, .table = &scene_mesh_table, AT(raw_part, mesh),
     .about = "a mesh file (.veg, .vegb, .node, .ele, .vtu, .vtk, .msh, .mesh, .meshb, .inp, each also with .gz), or a "
              "generator"},
    {.name = "scale", .fallback = {1}, POSITIVE(1e9), AT(raw_part, scale), .about = "metres per unit of the mesh; selections are in metres"},
    {.name = "material", .type = KEY_ASSIGNMENT, .otherwise = "the mesh file's own", AT(raw_part, material),
     .about = "a material for the whole part, or an object that gives each region one"},
    {.name = "surface", .type = KEY_TEXT, .otherwise = "the skin of the mesh", AT(raw_part, surface),
     .about = "triangles (.obj, .stl, .ply) in the units of the mesh, shown in .obj and .glb files; they move with the elements that they lie in, and what lies "
              "outside follows the nearest element. Texture coordinates and names of materials (vt, usemtl) are kept"},
    {.name = "fixed", .type = KEY_SELECTION, .otherwise = "nothing", .table = &scene_selection_table, AT(raw_part, fixed), .about = "vertices that are held in place"},
    {.name = "quadrature", .type = KEY_INTEGER, .fallback = {2}, WITHIN(2, 3), AT(raw_part, quadrature), .about = "Gauss points per direction of a hexahedron"},
    {.name = "modes", .type = KEY_SECTION, .table = &scene_modes_table, AT(raw_part, modes), .about = "its basis, when the solver's method is `reduced`"},
    {.name = "forces", .type = KEY_SECTION, .table = &forces_table, .about = "its reduced forces, when the solver's method is `reduced`"},
    {.name = "seams", .type = KEY_MAP, .otherwise = "none", .table = &scene_seam_table, AT(raw_part, seams), .about = "by name: where it can be stitched"},
    {.name = "drag", .type = KEY_SECTION, .table = &drag_table, .about = "how the wind takes hold of it"},
};
const scene_table scene_part_table = {.name = "part", TABLE(part_keys), .about = "One entry of `parts`."};

static const scene_key domain_damping_keys[] = {
    {.name = "mass", .fallback = {NAN}, .otherwise = "the solver's", .unit = "1/s", WITHIN(0, 1e9), AT(raw_domain, damping.mass), .about = "Rayleigh's alpha"},
    {.name = "stiffness", .fallback = {NAN}, .otherwise = "the solver's", .unit = "s", WITHIN(0, 1e9), AT(raw_domain, damping.stiffness), .about = "Rayleigh's beta"},
};
static const scene_table domain_damping_table = {.name = "domain_damping", TABLE(domain_damping_keys), .about = "Rayleigh damping of one domain."};

static const scene_key domain_keys[] = {
    {.name = "modes", .type = KEY_INTEGER, .fallback = {-1}, .otherwise = "as the others", WITHIN(0, 1000), AT(raw_domain, modes), .about = "its modes; 0 makes it rigid"},
    {.name = "derivatives", .type = KEY_INTEGER, .fallback = {-1}, .otherwise = "as the others", WITHIN(0, 3), AT(raw_domain, derivatives), .about = "order of the derivatives in its basis"},
    {.name = "forces", .type = KEY_CHOICE, .choices = "part|polynomial|linear|full|warped|cubature", .fallback = {0}, AT(raw_domain, forces),
     .about = "its internal forces; warped: small strain, shown as if large parts turned; part: those of the part"},
    {.name = "stiffness", .fallback = {NAN}, .otherwise = "1", POSITIVE(1e12), AT(raw_domain, stiffness), .about = "factor on its stiffness"},
    {.name = "frequency", .fallback = {NAN}, .otherwise = "1", POSITIVE(1e6), AT(raw_domain, frequency), .about = "factor on its frequencies, the root of the above"},
    {.name = "damping", .type = KEY_SECTION, .table = &domain_damping_table, .about = "its Rayleigh damping"},
};
const scene_table scene_domain_table = {.name = "domain", TABLE(domain_keys),
    .about = "What one domain has of its own: an entry of `domains`, under the domain's name or number (`limber info SCENE` lists them)."};

static const scene_key object_damping_keys[] = {
    {.name = "mass", .fallback = {-1}, .otherwise = "the solver's", .unit = "1/s", WITHIN(0, 1e9), AT(raw_damping, mass), .about = "Rayleigh's alpha"},
    {.name = "stiffness", .fallback = {-1}, .otherwise = "the solver's", .unit = "s", WITHIN(0, 1e9), AT(raw_damping, stiffness), .about = "Rayleigh's beta"},
};
static const scene_table object_damping_table = {.name = "object_damping", TABLE(object_damping_keys), .about = "Rayleigh damping of one object."};

static const scene_key springs_keys[] = {
    {.name = "stiffness", .fallback = {20}, POSITIVE(1e9), AT(raw_decompose, springs.stiffness), .about = "times what the elements there have"},
    {.name = "damping", .fallback = {1}, WITHIN(0, 1e6), AT(raw_decompose, springs.damping), .about = "1: critical, with the mass at the springs' ends"},
};
static const scene_table springs_table = {.name = "springs", TABLE(springs_keys), .about = "Springs that close loops and hold further feet."};

static const scene_key decompose_keys[] = {
    {.name = "method", .type = KEY_CHOICE, .choices = "geodesic|metis|regions|sets", .fallback = {DOMAIN_GEODESIC}, AT(raw_decompose, method),
     .about = "across the limbs, by METIS, or as the regions or the element sets of the mesh are"},
    {.name = "count", .type = KEY_INTEGER, .fallback = {10}, WITHIN(1, 1000000), AT(raw_decompose, count), .about = "domains wanted (geodesic, metis); fewer may come out"},
    {.name = "loops", .type = KEY_CHOICE, .choices = "automatic|merge|springs|refuse", .fallback = {DOMAIN_LOOPS_DEFAULT}, AT(raw_decompose, loops),
     .about = "domains of a loop become one, are held together by springs, or are refused; automatic: merged where the cut is ours, refused where it was given"},
    {.name = "feet", .type = KEY_CHOICE, .choices = "merge|springs", .fallback = {DOMAIN_FEET_MERGE}, AT(raw_decompose, feet),
     .about = "fixed vertices in several limbs: the limbs and what is between them become the root, or springs hold all but the largest"},
    {.name = "modes", .type = KEY_INTEGER, .fallback = {-1}, .otherwise = "their share of `total`", WITHIN(0, 1000), AT(raw_decompose, modes), .about = "in each domain; 0 makes all rigid"},
    {.name = "total", .type = KEY_INTEGER, .fallback = {0}, .otherwise = "20 for each domain", WITHIN(1, 100000000), AT(raw_decompose, total),
     .about = "modes of all domains, shared out in proportion to the logarithm of their elements"},
    {.name = "wrenches", .type = KEY_FLAG, .fallback = {1}, AT(raw_decompose, wrenches), .about = "Krylov modes also start from what hangs on a domain"},
    {.name = "springs", .type = KEY_SECTION, .table = &springs_table, .about = "those of `loops` and `feet`"},
    {.name = "domains", .type = KEY_MAP, .otherwise = "nothing", .table = &scene_domain_table, AT(raw_decompose, domains), .about = "what single domains have of their own"},
};
static const scene_table decompose_table = {.name = "decompose", TABLE(decompose_keys),
    .about = "A part cut into a tree of domains, each with a few modes in a frame of its own. Bases are made as the part's `modes` say, but for their number."};

static const scene_key repeat_keys[] = {
    {.name = "count", .type = KEY_INTEGER, .required = true, WITHIN(1, 1000000), AT(raw_repeat, count), .about = "how often in all"},
    {.name = "translation", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, LENGTH, AT(raw_repeat, translation), .about = "from each to the next"},
    {.name = "rotation", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, .unit = "rad", WITHIN(-1e4, 1e4), AT(raw_repeat, rotation), .about = "axis times angle, likewise, before the translation"},
    {.name = "scale", .fallback = {1}, POSITIVE(1e3), AT(raw_repeat, scale), .about = "factor from each to the next"},
};
static const scene_table repeat_table = {.name = "repeat", TABLE(repeat_keys),
    .about = "Regular copies: the first stands where the object is, each further one where this step brings the one before."};

static const scene_key scatter_keys[] = {
    {.name = "count", .type = KEY_INTEGER, .required = true, WITHIN(1, 1000000), AT(raw_scatter, count), .about = "how many"},
    {.name = "seed", .type = KEY_INTEGER, .fallback = {1}, WITHIN(0, 2147483647), AT(raw_scatter, seed), .about = "of everything random here"},
    {.name = "region", .type = KEY_TEXT, .otherwise = "all", AT(raw_scatter, region), .about = "the region of the parent on whose surface they stand"},
    {.name = "low", .shape = SHAPE_VECTOR, .fallback = {NAN, NAN, NAN}, .otherwise = "everywhere", LENGTH, AT(raw_scatter, low), .about = "corner of a box in the parent's coordinates in which they stand"},
    {.name = "high", .shape = SHAPE_VECTOR, .fallback = {NAN, NAN, NAN}, .otherwise = "everywhere", LENGTH, AT(raw_scatter, high), .about = "its opposite corner"},
    {.name = "smallest", .fallback = {1}, POSITIVE(1e9), AT(raw_scatter, smallest), .about = "least scale"},
    {.name = "largest", .fallback = {1}, POSITIVE(1e9), AT(raw_scatter, largest), .about = "greatest scale"},
    {.name = "tilt", .fallback = {0}, .unit = "rad", WITHIN(0, 1.5), AT(raw_scatter, tilt), .about = "the part's x axis points out of the surface, but for a random angle up to this"},
    {.name = "depth", .fallback = {0}, LENGTH, AT(raw_scatter, depth), .about = "how far the part's origin lies below the surface"},
};
static const scene_table scatter_table = {.name = "scatter", TABLE(scatter_keys),
    .about = "Seeded random places on the surface of the parent, even by area. The parts turn at random about the normal."};

static const scene_key components_keys[] = {
    {.name = "tolerance", .fallback = {1e-4}, .low_open = true, .high = 0.01, AT(raw_components, tolerance),
     .about = "how far vertices of a copy may be from those of its model, over the radius of gyration of the piece"},
    {.name = "reach", .fallback = {0}, .otherwise = "a fiftieth of the diagonal of the piece", .unit = "m", POSITIVE(1e9), AT(raw_components, reach),
     .about = "how far pieces may be apart and touch"},
    {.name = "modes", .type = KEY_INTEGER, .shape = SHAPE_ANY, .otherwise = "those of the part", WITHIN(0, 1000), AT(raw_components, modes),
     .about = "of each class: one number for all, or a list, c0 first; 0 makes it rigid"},
};
static const scene_table components_table = {.name = "components", TABLE(components_keys),
    .about = "The pieces of a part's mesh as instances: copies, found up to rotation, translation and scale, share a class."};

static const scene_key object_keys[] = {
    {.name = "part", .type = KEY_TEXT, .alternative = true, AT(raw_object, part), .about = "the part that the object is made of"},
    {.name = "group", .type = KEY_TEXT, .alternative = true, AT(raw_object, group), .about = "a group from `groups`, placed as a whole"},
    {.name = "name", .type = KEY_TEXT, .otherwise = "that of the part or group", AT(raw_object, name), .about = "for probes, actions and messages"},
    {.name = "translation", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, LENGTH, AT(raw_object, translation), .about = "at time 0, in the coordinates of the parent's part, or of the world"},
    {.name = "rotation", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, .unit = "rad", WITHIN(-1e4, 1e4), AT(raw_object, rotation),
     .about = "axis times angle, before the translation, about the part's origin; of a free body about its centre of mass"},
    {.name = "scale", .fallback = {1}, POSITIVE(1e9), AT(raw_object, scale), .about = "factor on all lengths, before the rotation, about the same point; of a child on top of its parent's"},
    {.name = "places", .shape = SHAPE_PLACES, .otherwise = "one", WITHIN(-1e9, 1e9), AT(raw_object, places),
     .about = "many copies: rows [x, y, z, rx, ry, rz, scale] of translation, rotation and scale, inside the object's own"},
    {.name = "repeat", .type = KEY_SECTION, .otherwise = "one", .table = &repeat_table, AT(raw_object, repeat), .about = "many copies, each one step on from the one before"},
    {.name = "scatter", .type = KEY_SECTION, .only = 1 << OBJECT_PART, .otherwise = "one", .table = &scatter_table, AT(raw_object, scatter), .about = "many copies, at random on the parent's surface"},
    {.name = "stiffness", .only = 1 << OBJECT_PART, .fallback = {NAN}, .otherwise = "1", POSITIVE(1e12), AT(raw_object, stiffness), .about = "factor on its stiffness"},
    {.name = "frequency", .only = 1 << OBJECT_PART, .fallback = {NAN}, .otherwise = "1", POSITIVE(1e6), AT(raw_object, frequency), .about = "factor on its frequencies, the root of the above"},
    {.name = "damping", .type = KEY_SECTION, .only = 1 << OBJECT_PART, .table = &object_damping_table, AT(raw_object, damping), .about = "its Rayleigh damping"},
    {.name = "reach", .only = 1 << OBJECT_PART, .fallback = {0}, .otherwise = "a tenth of its diagonal", .unit = "m", POSITIVE(1e9), AT(raw_object, reach),
     .about = "how far from the parent the root of a child may be, in the parent's coordinates"},
    {.name = "children", .type = KEY_LIST, .only = 1 << OBJECT_PART, .otherwise = "none", .table = &scene_object_table, AT(raw_object, children),
     .about = "objects that hang on this one (on each copy of it) by the `fixed` vertices of their parts"},
    {.name = "velocity", .only = 1 << OBJECT_PART, .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, .unit = "m/s", WITHIN(-1e6, 1e6), AT(raw_object, velocity), .about = "of the centre of mass at time 0; a body without supports only"},
    {.name = "spin", .only = 1 << OBJECT_PART, .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, .unit = "rad/s", WITHIN(-1e6, 1e6), AT(raw_object, spin),
     .about = "angular velocity at time 0, about the centre of mass; a body without supports only"},
    {.name = "components", .type = KEY_SECTION, .only = 1 << OBJECT_PART, .otherwise = "one body", .table = &components_table, AT(raw_object, components),
     .about = "taken apart into the connected pieces of its mesh, when the solver's method is `reduced`"},
    {.name = "decompose", .type = KEY_SECTION, .only = 1 << OBJECT_PART, .otherwise = "one body", .table = &decompose_table, AT(raw_object, decompose), .about = "cut into domains, when the solver's method is `reduced`"},
};
const scene_table scene_object_table = {.name = "object", TABLE(object_keys), ONE_OF(raw_object),
    .about = "One entry of `objects`, or of an object's `children`: an instance of a part, or of a group."};

static const scene_key group_keys[] = {
    {.name = "objects", .type = KEY_LIST, .required = true, .least = 1, .table = &scene_object_table, AT(raw_group, objects), .about = "what it holds, with children"},
};
const scene_table scene_group_table = {.name = "group", TABLE(group_keys),
    .about = "One entry of `groups`: objects that are placed together, wherever an object says `group`."};

static const scene_key box_obstacle_keys[] = {
    {.name = "centre", .shape = SHAPE_VECTOR, .required = true, LENGTH, AT(raw_box_obstacle, centre), .about = "of the box"},
    {.name = "size", .shape = SHAPE_VECTOR, .required = true, .unit = "m", POSITIVE(1e9), AT(raw_box_obstacle, size), .about = "its edges"},
    {.name = "rotation", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, .unit = "rad", WITHIN(-1e4, 1e4), AT(raw_box_obstacle, rotation), .about = "axis times angle, about its centre"},
};
static const scene_table box_obstacle_table = {.name = "solid", TABLE(box_obstacle_keys), .about = "A solid box that bodies bump into."};

static const scene_key obstacle_keys[] = {
    {.name = "plane", .type = KEY_SECTION, .alternative = true, .table = &plane_table, AT(raw_obstacle, plane), .about = "the ground: what lies behind the plane is solid"},
    {.name = "box", .type = KEY_SECTION, .alternative = true, .table = &box_obstacle_table, AT(raw_obstacle, box), .about = "a box"},
    {.name = "sphere", .type = KEY_SECTION, .alternative = true, .table = &ball_table, AT(raw_obstacle, sphere), .about = "a ball"},
    {.name = "keyframes", .type = KEY_LIST, .otherwise = "it stays", .least = 1, .table = &scene_keyframe_table, AT(raw_obstacle, keyframes),
     .about = "its motion; rotations are about its centre, or the plane's point"},
    {.name = "interpolation", .type = KEY_CHOICE, .choices = "linear|smooth", AT(raw_obstacle, interpolation),
     .about = "between keyframes; smooth starts and stops gently at each"},
};
const scene_table scene_obstacle_table = {.name = "obstacle", TABLE(obstacle_keys), ONE_OF(raw_obstacle),
    .about = "Something solid that reduced bodies collide with. It is not moved by them."};

static const scene_key contact_keys[] = {
    {.name = "stiffness", .fallback = {1e6}, .unit = "N/m^3", POSITIVE(1e15), AT(raw_environment, contact.stiffness), .about = "pressure per depth of penetration"},
    {.name = "damping", .fallback = {0}, .unit = "N s/m^3", WITHIN(0, 1e15), AT(raw_environment, contact.damping), .about = "pressure per speed of approach"},
    {.name = "friction", .fallback = {0.3}, WITHIN(0, 100), AT(raw_environment, contact.friction), .about = "Coulomb's coefficient"},
    {.name = "slip_velocity", .fallback = {0.01}, .unit = "m/s", POSITIVE(1e6), AT(raw_environment, contact.slip_velocity),
     .about = "speed of sliding below which friction fades"},
};
static const scene_table contact_table = {.name = "contact", TABLE(contact_keys), .about = "Penalty contact of reduced bodies with the obstacles."};

static const scene_key wind_keys[] = {
    {.name = "speed", .fallback = {5}, .unit = "m/s", WITHIN(0, 100), AT(raw_environment, wind.speed), .about = "mean at the reference height"},
    {.name = "direction", .shape = SHAPE_VECTOR, .fallback = {1, 0, 0}, WITHIN(-1e6, 1e6), AT(raw_environment, wind.direction), .about = "where it blows to; made horizontal"},
    {.name = "up", .shape = SHAPE_VECTOR, .fallback = {NAN, NAN, NAN}, .otherwise = "against gravity; z without gravity", WITHIN(-1e6, 1e6), AT(raw_environment, wind.up),
     .about = "away from the ground"},
    {.name = "ground", .fallback = {0}, .unit = "m", WITHIN(-1e6, 1e6), AT(raw_environment, wind.ground), .about = "height of the ground, along `up`"},
    {.name = "reference_height", .fallback = {10}, .unit = "m", WITHIN(1e-3, 1e4), AT(raw_environment, wind.reference_height), .about = "above the ground"},
    {.name = "roughness", .fallback = {0.1}, .unit = "m", WITHIN(1e-6, 10), AT(raw_environment, wind.roughness),
     .about = "length of the logarithmic law: 0.03 open grass, 0.3 bushes, 1 forest"},
    {.name = "intensity", .fallback = {0.25}, WITHIN(0, 1), AT(raw_environment, wind.intensity), .about = "of the turbulence: its standard deviation over `speed`"},
    {.name = "length", .fallback = {20}, .unit = "m", WITHIN(1e-3, 1e5), AT(raw_environment, wind.length), .about = "of the turbulence: longitudinal integral scale"},
    {.name = "gust", .fallback = {0.5}, WITHIN(0, 5), AT(raw_environment, wind.gust), .about = "the strongest gust: what it adds, over `speed`"},
    {.name = "gust_period", .fallback = {8}, .unit = "s", WITHIN(1e-2, 1e5), AT(raw_environment, wind.gust_period), .about = "mean time between gusts"},
    {.name = "gust_duration", .fallback = {4}, .unit = "s", WITHIN(1e-2, 1e5), AT(raw_environment, wind.gust_duration), .about = "of one gust, at most `gust_period`"},
    {.name = "density", .fallback = {1.2}, .unit = "kg/m^3", WITHIN(0, 2000), AT(raw_environment, wind.density), .about = "of the air"},
    {.name = "seed", .type = KEY_INTEGER, .fallback = {1}, WITHIN(0, 1000000000), AT(raw_environment, wind.seed), .about = "of gusts and turbulence"},
};
static const scene_table wind_table = {.name = "wind", TABLE(wind_keys),
    .about = "Wind on reduced bodies: a mean that grows with height, gusts and turbulence that travel with it."};

static const scene_key environment_keys[] = {
    {.name = "gravity", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, .unit = "m/s^2", WITHIN(-1e6, 1e6), AT(raw_environment, gravity),
     .about = "acceleration of free fall"},
    {.name = "obstacles", .type = KEY_LIST, .otherwise = "none", .table = &scene_obstacle_table, AT(raw_environment, obstacles), .about = "what reduced bodies collide with"},
    {.name = "contact", .type = KEY_SECTION, .table = &contact_table, .about = "how hard the collisions are"},
    {.name = "wind", .type = KEY_SECTION, .otherwise = "none", .table = &wind_table, .about = "moving air"},
};
static const scene_table environment_table = {.name = "environment", TABLE(environment_keys),
    .about = "What surrounds the objects."};

// ---- actions -----------------------------------------------------------------------------------------------------------------

static const scene_key keyframe_keys[] = {
    {.name = "time", .required = true, .unit = "s", WITHIN(0, 1e9), AT(scene_keyframe, time), .about = "later than that of the keyframe before"},
    {.name = "translation", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, LENGTH, AT(scene_keyframe, translation), .about = "from the rest position"},
    {.name = "rotation", .shape = SHAPE_VECTOR, .fallback = {0, 0, 0}, .unit = "rad", WITHIN(-1e4, 1e4), AT(scene_keyframe, rotation),
     .about = "axis times angle, about the centre, before the translation"},
};
const scene_table scene_keyframe_table = {.name = "keyframe", TABLE(keyframe_keys),
    .about = "Where a moved selection is at a time. The motion starts at rest at time 0 and stays after the last keyframe."};

static const scene_key move_keys[] = {
    {.name = "keyframes", .type = KEY_LIST, .required = true, .least = 1, .table = &scene_keyframe_table, AT(raw_move, keyframes), .about = "at least one"},
    {.name = "centre", .shape = SHAPE_VECTOR, .fallback = {NAN, NAN, NAN}, .otherwise = "mean of the selection", LENGTH, AT(raw_move, centre),
     .about = "of the rotation, at rest"},
    {.name = "interpolation", .type = KEY_CHOICE, .choices = "linear|smooth", AT(raw_move, interpolation),
     .about = "between keyframes; smooth starts and stops gently at each"},
};
static const scene_table move_table = {.name = "move", TABLE(move_keys),
    .about = "A prescribed rigid motion of a selection."};

enum { LOADS = 1 << SCENE_FORCE | 1 << SCENE_TRACTION | 1 << SCENE_PRESSURE | 1 << SCENE_ACCELERATION, CHANGES = 1 << SCENE_MATERIAL | 1 << SCENE_STIFFNESS | 1 << SCENE_FREQUENCY | 1 << SCENE_STITCH | 1 << SCENE_UNSTITCH | 1 << SCENE_CUT };
static const scene_key action_keys[] = {
    {.name = "force", .shape = SHAPE_VECTOR, .alternative = true, .unit = "N", WITHIN(-1e15, 1e15), AT(raw_action, force),
     .about = "total force, spread equally over the vertices"},
    {.name = "traction", .shape = SHAPE_VECTOR, .alternative = true, .unit = "Pa", WITHIN(-1e15, 1e15), AT(raw_action, traction),
     .about = "force per rest area on the surface between the vertices"},
    {.name = "pressure", .alternative = true, .unit = "Pa", WITHIN(-1e15, 1e15), AT(raw_action, pressure),
     .about = "against the outward normal at rest, on the surface between the vertices"},
    {.name = "acceleration", .shape = SHAPE_VECTOR, .alternative = true, .unit = "m/s^2", WITHIN(-1e9, 1e9), AT(raw_action, acceleration),
     .about = "body load: force per mass, on the mass at the vertices; {\"region\": NAME} takes a whole region"},
    {.name = "move", .type = KEY_SECTION, .alternative = true, .table = &move_table, AT(raw_action, move), .about = "prescribed motion of the vertices"},
    {.name = "material", .type = KEY_TEXT, .alternative = true, AT(raw_action, material),
     .about = "another material of the same type from `start` on, by name; reduced bodies with polynomial forces only"},
    {.name = "stiffness", .alternative = true, POSITIVE(1e12), AT(raw_action, stiffness), .about = "factor on the stiffness of domains, or of pieces of a stitched body, from `start` on; of what it was at first"},
    {.name = "frequency", .alternative = true, POSITIVE(1e6), AT(raw_action, frequency), .about = "factor on the frequencies of domains from `start` on"},
    {.name = "stitch", .type = KEY_TEXT, .alternative = true, AT(raw_action, stitch), .about = "a seam of the part, by name, that springs hold together from `start` on; reduced bodies. Of several objects `INSTANCE/SEAM`, or `SEAM` of all that have it"},
    {.name = "unstitch", .type = KEY_TEXT, .alternative = true, AT(raw_action, unstitch), .about = "a seam whose stitches are taken out"},
    {.name = "cut", .type = KEY_TEXT, .alternative = true, AT(raw_action, cut), .about = "a seam that is grown together, with springs 1000 times as stiff as the material, until it is opened"},
    {.name = "spring", .only = 1 << SCENE_STITCH, .fallback = {0}, .otherwise = "1000 times the material's there", .unit = "N/m", .low = 0, .low_open = true, .high = 1e30, AT(raw_action, spring), .about = "stiffness of a stitch"},
    {.name = "count", .type = KEY_INTEGER, .only = 1 << SCENE_STITCH, .fallback = {0}, .otherwise = "all", WITHIN(1, 100000), AT(raw_action, count), .about = "stitches at most, spread evenly over the seam"},
    {.name = "within", .type = KEY_SELECTION, .only = 1 << SCENE_STITCH | 1 << SCENE_UNSTITCH | 1 << SCENE_STIFFNESS, .otherwise = "all", .table = &scene_selection_table, AT(raw_action, within),
     .about = "only pairs of the seam with both vertices in it; of a stiffness, without domains: the pieces of the mesh that it touches"},
    {.name = "domain", .type = KEY_TEXT, .only = 1 << SCENE_STIFFNESS | 1 << SCENE_FREQUENCY, .otherwise = "all", AT(raw_action, domain), .about = "the domain that changes, by name or number; of several objects the instances of that name"},
    {.name = "on", .type = KEY_SELECTION, .only = LOADS | 1 << SCENE_MOVE, .required = true, .table = &scene_selection_table, AT(raw_action, on), .about = "what it acts on"},
    {.name = "region", .type = KEY_TEXT, .only = 1 << SCENE_MATERIAL, .otherwise = "all", AT(raw_action, region), .about = "the region that gets the material"},
    {.name = "start", .only = LOADS | CHANGES, .fallback = {0}, .unit = "s", WITHIN(0, 1e9), AT(raw_action, start), .about = "when the load begins"},
    {.name = "end", .only = LOADS, .fallback = {INFINITY}, .otherwise = "never", .unit = "s", WITHIN(0, 1e9), AT(raw_action, end),
     .about = "when it goes away, later than `start`"},
    {.name = "ramp", .only = LOADS, .fallback = {0}, .unit = "s", WITHIN(0, 1e9), AT(raw_action, ramp),
     .about = "time that it takes to rise from `start`, and to fall from `end`"},
};
const scene_table scene_action_table = {.name = "action", TABLE(action_keys), ONE_OF(raw_action),
    .about = "One entry of `actions`. Static scenes take every load in full and every motion at its last keyframe."};

// ---- solver ------------------------------------------------------------------------------------------------------------------

static const scene_key newmark_keys[] = {
    {.name = "beta", .fallback = {0.25}, POSITIVE(1), AT(raw_solver, newmark.beta), .about = "weight of the new acceleration in the position"},
    {.name = "gamma", .fallback = {0.5}, POSITIVE(1), AT(raw_solver, newmark.gamma), .about = "weight of the new acceleration in the velocity; above 1/2 it damps"},
};
static const scene_table newmark_table = {.name = "newmark", TABLE(newmark_keys), .about = "Parameters of Newmark's method."};

static const scene_key damping_keys[] = {
    {.name = "mass", .fallback = {0}, .unit = "1/s", WITHIN(0, 1e9), AT(raw_solver, damping.mass), .about = "Rayleigh's alpha: damps slow motion"},
    {.name = "stiffness", .fallback = {NAN}, .otherwise = "0; trees: by `ratio`", .unit = "s", WITHIN(0, 1e9), AT(raw_solver, damping.stiffness), .about = "Rayleigh's beta: damps fast vibration"},
    {.name = "ratio", .fallback = {0.01}, WITHIN(0, 1), AT(raw_solver, damping.ratio), .about = "trees of domains with neither `mass` nor `stiffness`: beta such that the lowest mode of the whole is damped so much; 1 is critical"},
    {.name = "local", .type = KEY_FLAG, .fallback = {1}, AT(raw_solver, damping.local), .about = "the stiffness of the present shape; that of rest (false) brakes every part that turns"},
};
static const scene_table damping_table = {.name = "damping", TABLE(damping_keys), .about = "Rayleigh damping: alpha M + beta K."};

static const scene_key newton_keys[] = {
    {.name = "iterations", .type = KEY_INTEGER, .fallback = {0}, .otherwise = "30; reduced held bodies 1, free ones 2", WITHIN(1, 10000), AT(raw_solver, newton.iterations), .about = "at most, per step; reduced: 1 is the semi-implicit step"},
    {.name = "tolerance", .fallback = {1e-9}, .low = 0, .high = 1, .low_open = true, .high_open = true, AT(raw_solver, newton.tolerance),
     .about = "residual relative to the largest force in the balance"},
    {.name = "line_search", .type = KEY_INTEGER, .fallback = {8}, WITHIN(0, 60), AT(raw_solver, newton.line_search), .about = "halvings at most; 0: none"},
};
static const scene_table newton_table = {.name = "newton", TABLE(newton_keys), .about = "Newton's method within a step."};

static const scene_key pcg_keys[] = {
    {.name = "tolerance", .fallback = {1e-8}, .low = 0, .high = 1, .low_open = true, .high_open = true, AT(raw_solver, pcg.tolerance),
     .about = "residual relative to the right-hand side"},
    {.name = "iterations", .type = KEY_INTEGER, .fallback = {0}, WITHIN(0, 1000000000), AT(raw_solver, pcg.iterations),
     .about = "at most; 0: 10 times the root of the unknowns, plus 1000"},
};
static const scene_table pcg_table = {.name = "pcg", TABLE(pcg_keys), .about = "Conjugate gradients, when `linear` is `pcg`."};

static const scene_key rebuild_keys[] = {
    {.name = "when", .type = KEY_CHOICE, .choices = "say|automatic|never", AT(raw_solver, stitching.when), .about = "a basis that is not good enough: say so, make it anew, or do not look"},
    {.name = "modes", .type = KEY_INTEGER, .fallback = {20}, WITHIN(1, 1000), AT(raw_solver, stitching.modes), .about = "modes that are looked at"},
    {.name = "error", .fallback = {0.01}, WITHIN(0, 10), AT(raw_solver, stitching.error), .about = "largest error of a frequency, by estimate"},
    {.name = "share", .fallback = {0.99}, WITHIN(0, 1), AT(raw_solver, stitching.share), .about = "least part of a true mode in the basis, by estimate"},
};
static const scene_table rebuild_table = {.name = "rebuild", TABLE(rebuild_keys), .about = "When the modes of a stitched body are made anew."};

static const scene_key stitching_keys[] = {
    {.name = "form", .type = KEY_CHOICE, .choices = "lowrank|ritz|attachment|scratch|original", .fallback = {SCENE_STITCH_ATTACHMENT}, AT(raw_solver, stitching.form),
     .about = "new modes from the old ones in one of three ways, from scratch, or none: the old basis with the new springs"},
    {.name = "forces", .type = KEY_CHOICE, .choices = "reuse|new", AT(raw_solver, stitching.forces), .about = "forces of the new basis from the old ones where fresh poses find them good, or made anew"},
    {.name = "forces_error", .fallback = {0.01}, WITHIN(0, 10), AT(raw_solver, stitching.forces_error), .about = "mean error on fresh poses up to which old forces are good"},
    {.name = "rebuild", .type = KEY_SECTION, .table = &rebuild_table, .about = "when the modes are made anew"},
};
static const scene_table stitching_table = {.name = "stitching", TABLE(stitching_keys), .about = "How a reduced body gets its new basis when it is stitched."};

static const scene_key solver_keys[] = {
    {.name = "method", .type = KEY_CHOICE, .choices = "static|full|reduced", .fallback = {SCENE_FULL}, AT(raw_solver, method),
     .about = "equilibrium, full-space dynamics, or dynamics in the part's `modes`"},
    {.name = "step", .fallback = {1.0 / 120}, .unit = "s", POSITIVE(1e6), AT(raw_solver, step),
     .about = "longest time step; a frame is divided into equal steps that are no longer"},
    {.name = "integrator", .type = KEY_CHOICE, .choices = "automatic|newmark|backward-euler|central|midpoint", AT(raw_solver, integrator),
     .about = "Newmark keeps the energy of vibrations, backward Euler damps them; central differences are explicit, for held reduced bodies; the implicit midpoint rule is for free reduced ones and for trees of domains. Automatic: Newmark, and midpoint for these"},
    {.name = "subtree", .type = KEY_CHOICE, .choices = "articulated|center|interface", AT(raw_solver, subtree),
     .about = "trees of domains: what a domain feels of those that hang on it: all, a mass at their centre, or a mass at the interface"},
    {.name = "passes", .type = KEY_INTEGER, .fallback = {2}, WITHIN(1, 8), AT(raw_solver, passes), .about = "trees of domains, midpoint: evaluations in a step; 1 is the cheap mode"},
    {.name = "theta", .fallback = {0.5}, WITHIN(0.5, 0.6), AT(raw_solver, theta), .about = "trees of domains, midpoint: the part of a step at which it is evaluated; above 1/2 it damps"},
    {.name = "newmark", .type = KEY_SECTION, .table = &newmark_table, .about = "its parameters"},
    {.name = "damping", .type = KEY_SECTION, .table = &damping_table, .about = "Rayleigh damping"},
    {.name = "mass", .type = KEY_CHOICE, .choices = "consistent|lumped", AT(raw_solver, mass), .about = "the mass matrix"},
    {.name = "newton", .type = KEY_SECTION, .table = &newton_table, .about = "the nonlinear iteration"},
    {.name = "load_steps", .type = KEY_INTEGER, .fallback = {1}, WITHIN(1, 1000000), AT(raw_solver, load_steps), .about = "statics: equal steps in which the load is applied"},
    {.name = "load_halvings", .type = KEY_INTEGER, .fallback = {8}, WITHIN(0, 30), AT(raw_solver, load_halvings),
     .about = "statics: how often in a row a load step that fails may be halved"},
    {.name = "linear", .type = KEY_CHOICE, .choices = "direct|pcg", AT(raw_solver, linear), .about = "linear systems by factorisation or by conjugate gradients"},
    {.name = "pcg", .type = KEY_SECTION, .table = &pcg_table, .about = "its parameters"},
    {.name = "solve", .type = KEY_CHOICE, .choices = "direct|jacobian-free|krylov", AT(raw_solver, solve),
     .about = "the small system of a held reduced body: factorised (its symmetric part), conjugate gradients with differences of forces, or BiCGSTAB"},
    {.name = "stitching", .type = KEY_SECTION, .table = &stitching_table, .about = "how stitched bodies get their new basis"},
};
static const scene_table solver_table = {.name = "solver", TABLE(solver_keys), .about = "How the motion is computed."};

// ---- output and the whole -----------------------------------------------------------------------------------------------------

static const scene_key glb_keys[] = {
    {.name = "up", .type = KEY_CHOICE, .choices = "z|y", AT(raw_output, glb.up), .about = "axis of the scene that points up; in the file it is y, as the format wants"},
    {.name = "units", .type = KEY_CHOICE, .choices = "m|cm", AT(raw_output, glb.units), .about = "of lengths in the file; cm for programs that count centimetres"},
    {.name = "skin", .type = KEY_FLAG, AT(raw_output, glb.skin), .about = "one mesh on a skin with a joint per domain or instance and at most four weights a vertex, for programs without morph targets; bending is approximated"},
};
static const scene_table glb_table = {.name = "glb", TABLE(glb_keys), .about = "How the .glb file is written."};

static const scene_key output_keys[] = {
    {.name = "frames", .type = KEY_INTEGER, .fallback = {100}, WITHIN(1, 1000000), AT(raw_output, frames),
     .about = "dynamics: number of frames; the first is at time 0"},
    {.name = "rate", .fallback = {30}, .unit = "1/s", POSITIVE(1e9), AT(raw_output, rate), .about = "dynamics: frames per second"},
    {.name = "formats", .type = KEY_CHOICE, .shape = SHAPE_LIST, .choices = "vtu|obj|glb", .fallback = {1}, AT(raw_output, formats),
     .about = "of the frames; vtu: one .vtu each and a .pvd for all; obj: one .obj each, the part's `surface` or the skin of the mesh; glb: the same surface and its motion in one file"},
    {.name = "glb", .type = KEY_SECTION, .table = &glb_table, .about = "how the .glb file is written"},
    {.name = "interfaces", .type = KEY_CHOICE, .choices = "c0|c1|owner", AT(raw_output, interfaces),
     .about = "trees of domains: how the vertices that domains share are shown: at the mean of the domains' places, smoothed so that slopes go on too, or with the domain nearest to the root"},
    {.name = "probes", .type = KEY_SELECTIONS, .otherwise = "none", .table = &scene_selection_table, AT(raw_output, probes),
     .about = "names and selections whose mean displacement goes to probes.csv"},
    {.name = "sample", .type = KEY_CHOICE, .choices = "frame|step", AT(raw_output, sample), .about = "rows of the CSV files"},
};
static const scene_table output_table = {.name = "output", TABLE(output_keys), .about = "What is written."};

static const scene_key top_keys[] = {
    {.name = "limber", .type = KEY_INTEGER, .required = true, WITHIN(1, 1), AT(raw_scene, version), .about = "version of the format"},
    {.name = "$schema", .type = KEY_TEXT, .otherwise = "none", AT(raw_scene, schema), .about = "for editors; not used"},
    {.name = "title", .type = KEY_TEXT, .otherwise = "none", AT(raw_scene, title), .about = "what the scene shows"},
    {.name = "materials", .type = KEY_MAP, .otherwise = "none", .table = &scene_material_table, AT(raw_scene, materials), .about = "by name"},
    {.name = "parts", .type = KEY_MAP, .required = true, .least = 1, .table = &scene_part_table, AT(raw_scene, parts), .about = "by name: a mesh, its material, what holds it"},
    {.name = "objects", .type = KEY_LIST, .required = true, .least = 1, .table = &scene_object_table, AT(raw_scene, objects), .about = "what is simulated"},
    {.name = "groups", .type = KEY_MAP, .otherwise = "none", .table = &scene_group_table, AT(raw_scene, groups), .about = "by name: objects that are placed together"},
    {.name = "seams", .type = KEY_MAP, .otherwise = "none", .table = &scene_seam_table, AT(raw_scene, seams), .about = "by name: where several objects can be stitched together; with it they are one body"},
    {.name = "environment", .type = KEY_SECTION, .table = &environment_table, AT(raw_scene, environment), .about = "gravity, obstacles"},
    {.name = "actions", .type = KEY_LIST, .otherwise = "none", .table = &scene_action_table, AT(raw_scene, actions), .about = "loads, prescribed motions, changes of material"},
    {.name = "solver", .type = KEY_SECTION, .table = &solver_table, AT(raw_scene, solver), .about = "how it is computed"},
    {.name = "output", .type = KEY_SECTION, .table = &output_table, AT(raw_scene, output), .about = "what is written"},
};
const scene_table scene_top_table = {.name = "scene", TABLE(top_keys), .about = "The scene file: one JSON object."};

// clang-format on

int scene_all_tables(const scene_table *tables[SCENE_TABLES_MOST]) {
    int count = 0;
    tables[count++] = &scene_top_table;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < tables[i]->count; k++) {
            const scene_table *mentioned = tables[i]->keys[k].table;
            bool               known = !mentioned || count == SCENE_TABLES_MOST;
            for (int j = 0; j < count && !known; j++) known = tables[j] == mentioned;
            if (!known) tables[count++] = mentioned;
        }
    return count;
}

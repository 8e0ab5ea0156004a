// From a skeleton to a scene: branches of similar shape become one class, and every branch an instance of it.
//
// A branch has axes of its own: x from base to tip, y where its centreline bends to, and its arc length is its size.
// Shapes are compared in these axes, by their centrelines and by the logarithms of their radii over the size; classes
// are clusters, each shown by the member nearest to its mean. A child stands on the centreline of its parent's class
// at the share of the length where it stood in the skeleton, with its own direction. So the plant is as exact as its
// classes are many, and children never lose their parent.
//
// A blade of a leaf is a third of a millimetre thick, and elements that thin would lock: they would be stiff by the
// square of their length over their thickness. The blade here is a sixtieth of its length thick and so much lighter
// that its mass is right; its modulus is the one with which its lowest frequency is the one that is asked for.
#include "libscene/internal.h"
#include "libscene/skeleton.h"
#include "libscene/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHAPE = 9, FEATURES = 3 * SHAPE, ROUNDS = 20 }; // points of a shape
static const double THINNEST = 0.12;                   // least radius of a branch over that at its base
static const double TIP = 0.98;                        // share of a branch on which something can stand
static const double LEAF_MODEL = 60;                   // length of a leaf over the thickness of its model
static const double WOOD_POISSON = 0.35, LEAF_POISSON = 0.3;
static const double PETIOLE = 0.15, PETIOLE_WIDTH = 0.06; // of the length of a leaf

// Green wood: Young's modulus along the grain (of bending, and ten percent for shear), density with its water, ratios
// of the radial and tangential moduli and of the shear moduli to it, Poisson's ratios. A branch is round, so radial and
// tangential are averaged. Oak and maple are those of the Wood Handbook [Forest Products Laboratory 2010], whose ratios
// are of dry wood; it has no G_LT of white oak (here that of red oak) and no G_RT of either (typical). Birch and pine
// are typical values.
typedef struct wood {
    const char *name;
    double      young, density;               // Pa, kg/m^3
    double      radial, tangential;           // E_R / E_L, E_T / E_L
    double      shear_lr, shear_lt, shear_rt; // G / E_L
    double      nu_lr, nu_lt, nu_rt;
} wood;
static const wood woods[SCENE_SPECIES] = {
    [SCENE_OAK] = {"green white oak", 9.5e9, 1000, 0.163, 0.072, 0.086, 0.081, 0.021, 0.369, 0.428, 0.618},
    [SCENE_MAPLE] = {"green sugar maple", 11.8e9, 900, 0.132, 0.065, 0.111, 0.063, 0.021, 0.424, 0.476, 0.774},
    [SCENE_BIRCH] = {"green yellow birch", 11.3e9, 920, 0.078, 0.050, 0.074, 0.068, 0.017, 0.426, 0.451, 0.697},
    [SCENE_PINE] = {"green loblolly pine", 10.7e9, 850, 0.113, 0.078, 0.082, 0.081, 0.013, 0.328, 0.292, 0.382},
    // chosen: a stem that is held up by turgor
    [SCENE_FLOWER] = {"herbaceous stem", 0.5e9, 950, 0.15, 0.15, 0.06, 0.06, 0.04, 0.4, 0.4, 0.5},
};
// Chosen: with 0.3 mm 0.21 kg/m^2. Dry leaves of woody plants have 0.115 on average [Niinemets 1999], the rest is
// water.
static const double LEAF_DENSITY = 700;

scene_plant_options scene_plant_default_options(void) {
    return (scene_plant_options){.wood = SCENE_OAK,
                                 .classes = 5,
                                 .branch_modes = 20,
                                 .leaf_modes = 8,
                                 .rings = 2,
                                 .segments = 48,
                                 .leaf_thickness = 0.0003,
                                 .leaf_frequency = 5,
                                 .leaf_scale = 1,
                                 .leaves = -1,
                                 .cubature_error = 0.02,
                                 .leaf_cells = 8,
                                 .leaf_derivatives = 1,
                                 .wind = 6,
                                 .seed = 1,
                                 .seconds = 8};
}

static fem_status check_options(const scene_plant_options *o) {
    const struct {
        const char *name;
        double      value, low, high;
    } rules[] = {{"classes", o->classes, 1, 1000},
                 {"branch_modes", o->branch_modes, 1, 200},
                 {"leaf_modes", o->leaf_modes, 1, 100},
                 {"rings", o->rings, 1, 20},
                 {"segments", o->segments, 2, 1000},
                 {"leaf_thickness", o->leaf_thickness, 1e-6, 1},
                 {"leaf_frequency", o->leaf_frequency, 1e-3, 1e4},
                 {"leaf_scale", o->leaf_scale, 1e-3, 1e3},
                 {"leaves", o->leaves, -1, 1e6},
                 {"cubature_error", o->cubature_error, 1e-6, 0.9},
                 {"leaf_cells", o->leaf_cells, 2, 100},
                 {"leaf_derivatives", o->leaf_derivatives, 0, 3},
                 {"wind", o->wind, 0, 100},
                 {"seconds", o->seconds, 0.1, 3e4}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!(rules[i].value >= rules[i].low && rules[i].value <= rules[i].high))
            return fem_fail(FEM_BAD_INPUT, "plant.%s is %g, expected %g to %g", rules[i].name, rules[i].value,
                            rules[i].low, rules[i].high);
    return FEM_OK;
}

// ---- shapes
// ----------------------------------------------------------------------------------------------------------

typedef struct branch_shape {
    double length;
    double axes[9];           // columns: x, y, z of the branch in the world of the scene
    double points[3 * SHAPE]; // its centreline in its axes, from the base on, over its length
    double radii[SHAPE];      // over its length
    double features[FEATURES];
    int class;
    double base[3]; // where it stands in the scene, which its class has moved
} branch_shape;

typedef struct plant {
    const scene_skeleton      *s;
    const scene_plant_options *o;
    branch_shape              *shapes; // per branch
    int                        class_count;
    int                       *medoid;                 // per class: a branch
    int                       *first_leaf, *next_leaf; // per branch, per leaf: -1 ends
    int                       *first_child, *next_child;
    double                     leaf_length, leaf_width; // mean
    double                     leaf_young;
    double                     low[3], high[3];
} plant;

// y is up in skeletons, z in scenes
static void upright(const double from[3], double to[3]) { to[0] = from[0], to[1] = -from[2], to[2] = from[1]; }

static void column(double M[9], int k, const double v[3]) { M[k] = v[0], M[3 + k] = v[1], M[6 + k] = v[2]; }
static void to_axes(const double M[9], const double v[3], double out[3]) { // M^T v
    for (int i = 0; i < 3; i++) out[i] = M[i] * v[0] + M[3 + i] * v[1] + M[6 + i] * v[2];
}

// x along the chord, y towards the point that is farthest from it (or up, for a straight one)
static void find_axes(const double *points, double axes[9]) {
    double x[3], y[3] = {0}, z[3], farthest = 0, length = 0;
    vec3_sub(x, points + 3 * (SHAPE - 1), points);
    for (int k = 1; k < SHAPE; k++) length += vec3_distance(points + 3 * k, points + 3 * (k - 1));
    if (vec3_norm(x) < 1e-3 * length) vec3_sub(x, points + 3, points); // a ring: as it begins
    vec3_normalize(x);
    for (int k = 1; k < SHAPE; k++) {
        double d[3];
        vec3_sub(d, points + 3 * k, points);
        vec3_axpy(d, -vec3_dot(d, x), x);
        if (vec3_norm(d) > farthest) farthest = vec3_norm(d), memcpy(y, d, sizeof y);
    }
    if (farthest < 1e-6 * length) {
        double up[3] = {fabs(x[2]) < 0.9 ? 0 : 1, 0, fabs(x[2]) < 0.9 ? 1 : 0};
        memcpy(y, up, sizeof y);
        vec3_axpy(y, -vec3_dot(y, x), x);
    }
    vec3_normalize(y);
    vec3_cross(z, x, y);
    column(axes, 0, x), column(axes, 1, y), column(axes, 2, z);
}

static void find_shape(const scene_branch *b, branch_shape *shape) {
    double points[3 * SHAPE], thick = 0;
    shape->length = scene_branch_length(b);
    for (int k = 0; k < SHAPE; k++) {
        double p[3], direction[3];
        scene_branch_at(b, k / (double)(SHAPE - 1), p, direction, &shape->radii[k]);
        upright(p, points + 3 * k);
        shape->radii[k] /= shape->length;
        thick = fmax(thick, shape->radii[k]);
    }
    find_axes(points, shape->axes);
    for (int k = 0; k < SHAPE; k++) {
        double d[3], local[3];
        vec3_sub(d, points + 3 * k, points);
        to_axes(shape->axes, d, local);
        for (int i = 0; i < 3; i++) shape->points[3 * k + i] = local[i] / shape->length;
        shape->radii[k] = fmin(fmax(shape->radii[k], THINNEST * thick), 0.3); // a tip has room for elements
        // a tenth of the length aside counts as much as a third more radius
        shape->features[3 * k] = shape->points[3 * k + 1] / 0.1;
        shape->features[3 * k + 1] = shape->points[3 * k + 2] / 0.1;
        shape->features[3 * k + 2] = log(shape->radii[k]) / 0.3;
    }
    memcpy(shape->base, points, sizeof shape->base);
}

static double apart(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < FEATURES; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

// Nearest of the classes that a branch may have: trunks have the first, alone if others are allowed.
static int nearest(const plant *p, int branch, const double *centres) {
    int    best = p->class_count > 1 && p->s->branches[branch].parent >= 0 ? 1 : 0;
    double least = INFINITY;
    if (p->s->branches[branch].parent < 0) return 0;
    for (int c = best; c < p->class_count; c++) {
        double d = apart(p->shapes[branch].features, centres + (size_t)c * FEATURES);
        if (d < least) least = d, best = c;
    }
    return best;
}

// A class for each branch.
static fem_status find_own_classes(plant *p) {
    int n = p->s->branch_count;
    p->medoid = fem_alloc((size_t)n, sizeof *p->medoid);
    if (!p->medoid) return fem_fail(FEM_NO_MEMORY, "plant: no memory for %d classes", n);
    for (int i = 0; i < n; i++) p->medoid[i] = p->shapes[i].class = i;
    p->class_count = n;
    return FEM_OK;
}

// Clusters: begun with the farthest branches, moved to the means, shown by the member nearest to the mean.
static fem_status find_classes(plant *p) {
    int     n = p->s->branch_count, children = 0;
    double *centres = NULL, *sums = NULL;
    int    *count = NULL;
    for (int i = 0; i < n; i++) children += p->s->branches[i].parent >= 0;
    int wanted = p->o->classes < 1 + children ? p->o->classes : 1 + children;
    centres = fem_calloc((size_t)wanted * FEATURES, sizeof *centres);
    sums = fem_calloc((size_t)wanted * FEATURES, sizeof *sums);
    count = fem_calloc((size_t)wanted, sizeof *count);
    p->medoid = fem_calloc((size_t)wanted, sizeof *p->medoid);
    if (!centres || !sums || !count || !p->medoid) {
        fem_free(centres), fem_free(sums), fem_free(count);
        return fem_fail(FEM_NO_MEMORY, "plant: no memory for %d classes", wanted);
    }
    memcpy(centres, p->shapes[0].features, sizeof p->shapes[0].features); // branch 0 is a trunk
    for (p->class_count = 1; p->class_count < wanted; p->class_count++) {
        double farthest = -1;
        int    seed = -1;
        for (int i = 0; i < n; i++) {
            double least = INFINITY;
            if (p->s->branches[i].parent < 0) continue;
            for (int c = 1; c < p->class_count; c++)
                least = fmin(least, apart(p->shapes[i].features, centres + (size_t)c * FEATURES));
            if (p->class_count == 1) least = -apart(p->shapes[i].features, p->shapes[n - 1].features); // any will do
            if (least > farthest || seed < 0) farthest = least, seed = i;
        }
        if (p->class_count > 1 && farthest < 1e-12) break; // all are alike
        memcpy(centres + (size_t)p->class_count * FEATURES, p->shapes[seed].features, sizeof p->shapes[0].features);
    }
    for (int round = 0; round < ROUNDS; round++) {
        memset(sums, 0, (size_t)wanted * FEATURES * sizeof *sums), memset(count, 0, (size_t)wanted * sizeof *count);
        for (int i = 0; i < n; i++) {
            int c = p->shapes[i].class = nearest(p, i, centres);
            count[c]++;
            for (int k = 0; k < FEATURES; k++) sums[(size_t)c * FEATURES + (size_t)k] += p->shapes[i].features[k];
        }
        for (int c = 0; c < p->class_count; c++)
            for (size_t k = 0; k < FEATURES && count[c] > 0; k++)
                centres[(size_t)c * FEATURES + k] = sums[(size_t)c * FEATURES + k] / count[c];
    }
    int kept = 0;
    for (int c = 0; c < p->class_count; c++) { // without those that nobody chose
        double least = INFINITY;
        if (count[c] == 0) continue;
        for (int i = 0; i < n; i++) {
            if (p->shapes[i].class != c) continue;
            double d = apart(p->shapes[i].features, centres + (size_t)c * FEATURES);
            if (d < least) least = d, p->medoid[kept] = i;
            p->shapes[i].class = kept;
        }
        kept++;
    }
    p->class_count = kept;
    fem_free(centres), fem_free(sums), fem_free(count);
    return FEM_OK;
}

// ---- meshes
// ----------------------------------------------------------------------------------------------------------

typedef struct mesh_size {
    double vertices, elements;
} mesh_size;

// Adds so many copies of a mesh. What it has must suffice for the modes that are wanted: scenes are refused otherwise.
static fem_status count_mesh(mesh_size *size, const fem_mesh *mesh, int copies, int modes, const char *option) {
    const fem_set *root = fem_mesh_vertex_set(mesh, "root");
    int            most = solver_class_most_modes(mesh->vertex_count, root ? root->count : 0);
    size->vertices += (double)mesh->vertex_count * copies;
    size->elements += (double)mesh->element_count * copies;
    if (modes > most)
        return fem_fail(FEM_BAD_INPUT, "plant.%s is %d, expected at most %d with so few cells", option, modes, most);
    if (fmax(size->vertices, size->elements) <= SCENE_ELEMENTS_MOST) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT,
                    "the plant has more than %d elements or vertices, expected fewer leaves, segments, rings or cells",
                    SCENE_ELEMENTS_MOST);
}

// The generator refuses bends that are too narrow for the radius: then the class is straightened, half by half.
static fem_status fit_class(plant *p, int class, mesh_size *size) {
    branch_shape *shape = &p->shapes[p->medoid[class]];
    fem_status    status = FEM_OK;
    for (int attempt = 0; attempt < 12; attempt++) {
        fem_mesh mesh = {0};
        double   centre[3 * SHAPE], radius[SHAPE];
        for (int k = 0; k < 3 * SHAPE; k++) centre[k] = shape->length * shape->points[k];
        for (int k = 0; k < SHAPE; k++) radius[k] = shape->length * shape->radii[k];
        fem_tube tube = {SHAPE, centre, radius, p->o->rings, shape->length / p->o->segments};
        status = fem_generate_tube(&mesh, p->o->hex ? FEM_H8 : FEM_T4, &tube);
        if (status == FEM_OK) {
            int copies = 0;
            for (int i = 0; i < p->s->branch_count; i++) copies += p->shapes[i].class == class;
            status = count_mesh(size, &mesh, copies, p->o->branch_modes, "branch_modes");
            fem_mesh_destroy(&mesh);
            return status;
        }
        fem_mesh_destroy(&mesh);
        if (status != FEM_BAD_INPUT) return status;
        for (int k = 1; k < SHAPE; k++) { // towards the straight line along x
            double share = attempt < 10 ? 0.5 : 1, straight = k / (double)(SHAPE - 1);
            shape->points[3 * k] += share * (straight - shape->points[3 * k]);
            shape->points[3 * k + 1] *= 1 - share, shape->points[3 * k + 2] *= 1 - share;
            if (attempt >= 10) shape->radii[k] = shape->radii[0];
        }
    }
    return status;
}

static fem_leaf leaf_of(const plant *p, double L, double width) {
    return (fem_leaf){.length = (1 - PETIOLE) * L,
                      .width = width,
                      .thickness = L / LEAF_MODEL,
                      .petiole_length = PETIOLE * L,
                      .petiole_width = fmin(PETIOLE_WIDTH * L, 0.5 * width),
                      .cells = p->o->leaf_cells,
                      .layers = 1};
}
static double leaf_density(const plant *p) {
    return LEAF_DENSITY * p->o->leaf_thickness / (p->leaf_length / LEAF_MODEL);
}

// The modulus with which the lowest frequency of a leaf is the one that is wanted: frequencies go with its root.
static fem_status tune_leaf(plant *p, mesh_size *size) {
    fem_status            status = FEM_OK;
    fem_leaf              leaf = leaf_of(p, p->leaf_length, p->leaf_width);
    fem_mesh              mesh = {0};
    fem_body             *body = NULL;
    fem_sparse            K = {0}, M = {0};
    modes_basis           basis = {0};
    unsigned char        *fixed = NULL;
    double               *zero = NULL;
    fem_body_options      options = fem_body_default_options();
    modes_lanczos_options lanczos = modes_lanczos_default_options();
    FEM_TRY(fem_generate_leaf(&mesh, p->o->hex ? FEM_H8 : FEM_T4, &leaf));
    FEM_TRY(count_mesh(size, &mesh, p->o->distinct ? 0 : p->s->leaf_count, p->o->leaf_modes, "leaf_modes"));
    for (int i = 0; i < mesh.material_count; i++)
        mesh.materials[i] = (fem_material){.kind = FEM_STVK, .density = leaf_density(p), .young = 1e6, .poisson = 0.3};
    size_t n = 3 * (size_t)mesh.vertex_count;
    fixed = fem_calloc(n, 1), zero = fem_calloc(n, sizeof *zero);
    const fem_set *root = fem_mesh_vertex_set(&mesh, "root");
    if (!fixed || !zero || !root) {
        status = fem_fail(FEM_NO_MEMORY, "plant: no memory for a leaf");
        goto done;
    }
    for (int k = 0; k < root->count; k++) memset(fixed + 3 * (size_t)root->items[k], 1, 3);
    FEM_TRY(fem_body_create(&body, &mesh, &options));
    FEM_TRY(fem_body_matrix(body, &K));
    FEM_TRY(fem_body_matrix(body, &M));
    fem_body_evaluate(body, zero, NULL, NULL, &K);
    fem_body_mass(body, FEM_MASS_CONSISTENT, &M);
    lanczos.count = 1;
    FEM_TRY(modes_lanczos(&(modes_problem){&mesh, &K, &M, fixed}, &lanczos, NULL, &basis, NULL));
    p->leaf_young = 1e6 * pow(2 * M_PI * p->o->leaf_frequency, 2) / basis.omega2[0];
done:
    modes_basis_destroy(&basis);
    fem_sparse_destroy(&K), fem_sparse_destroy(&M);
    fem_body_destroy(body);
    fem_mesh_destroy(&mesh);
    fem_free(fixed), fem_free(zero);
    return status;
}

static fem_status count_distinct_leaves(const plant *p, mesh_size *size) {
    for (int k = 0; k < p->s->leaf_count; k++) {
        fem_mesh mesh = {0};
        fem_leaf leaf = leaf_of(p, p->s->leaves[k].length * p->o->leaf_scale, p->s->leaves[k].width * p->o->leaf_scale);
        fem_status status = fem_generate_leaf(&mesh, p->o->hex ? FEM_H8 : FEM_T4, &leaf);
        if (status == FEM_OK) status = count_mesh(size, &mesh, 1, p->o->leaf_modes, "leaf_modes");
        fem_mesh_destroy(&mesh);
        if (status != FEM_OK) return status;
    }
    return FEM_OK;
}

// ---- text
// ------------------------------------------------------------------------------------------------------------

static void put_numbers(scene_text *t, int count, const double *numbers) {
    scene_text_print(t, "[");
    for (int i = 0; i < count; i++) {
        if (i > 0) scene_text_print(t, ", ");
        scene_text_number(t, fabs(numbers[i]) < 1e-12 ? 0 : numbers[i], 6);
    }
    scene_text_print(t, "]");
}

static void put_wood(scene_text *t, const wood *w) {
    double across = (w->radial + w->tangential) / 2 * w->young, nu = (w->nu_lr + w->nu_lt) / 2;
    double along = (w->shear_lr + w->shear_lt) / 2 * w->young;
    double young[3] = {w->young, across, across}, shear[3] = {along, w->shear_rt * w->young, along};
    double poisson[3] = {nu, 0.75 * w->nu_rt, nu * across / w->young}; // nu_rt and nu_tr: the mean is three quarters
    scene_text_print(t, "    \"wood\": {\"type\": \"orthotropic\", \"density\": ");
    scene_text_number(t, w->density, 6);
    scene_text_print(t, ", \"young3\": "), put_numbers(t, 3, young);
    scene_text_print(t, ", \"poisson3\": "), put_numbers(t, 3, poisson);
    scene_text_print(t, ", \"shear3\": "), put_numbers(t, 3, shear);
    scene_text_print(t, "}");
}

// Shear modulus 2 (mu10 + mu01) and bulk modulus 2 v1 of an isotropic material, half of the shear in each invariant.
static void put_mooney(scene_text *t, const char *name, double density, double young, double poisson) {
    double                   constants[] = {density, young / (8 * (1 + poisson)), young / (8 * (1 + poisson)),
                                            young / (6 * (1 - 2 * poisson))};
    static const char *const keys[] = {"density", "mu10", "mu01", "v1"};
    scene_text_print(t, "    \"%s\": {\"type\": \"mooney-rivlin\"", name);
    for (int i = 0; i < 4; i++) {
        scene_text_print(t, ", \"%s\": ", keys[i]);
        scene_text_number(t, constants[i], 6);
    }
    scene_text_print(t, "}");
}

// Gaussian poses are as many as make the error at held-out poses that of the fit.
static void put_cubature(scene_text *t, const plant *p) {
    scene_text_print(t, "      \"forces\": {\"type\": \"cubature\", \"error\": ");
    scene_text_number(t, p->o->cubature_error, 6);
    if (p->o->gaussian) scene_text_print(t, ", \"sampling\": \"gaussian\", \"poses\": 200");
    scene_text_print(t, "}, ");
}

static void put_branch_part(scene_text *t, const plant *p, int class) {
    const branch_shape *shape = &p->shapes[p->medoid[class]];
    double              radii[SHAPE];
    scene_text_print(t, "    \"branch%d\": {\n      \"mesh\": {\"tube\": {\"element\": \"%s\", \"points\": [", class,
                     p->o->hex ? "hex" : "tet");
    for (int k = 0; k < SHAPE; k++) {
        double point[3];
        for (int i = 0; i < 3; i++) point[i] = shape->length * shape->points[3 * k + i];
        if (k > 0) scene_text_print(t, ", ");
        put_numbers(t, 3, point);
        radii[k] = shape->length * shape->radii[k];
    }
    scene_text_print(t, "], \"radius\": ");
    put_numbers(t, SHAPE, radii);
    scene_text_print(t, ", \"rings\": %d, \"segment\": ", p->o->rings);
    scene_text_number(t, shape->length / p->o->segments, 6);
    scene_text_print(t, "}},\n      \"material\": \"wood\", \"fixed\": \"root\", \"modes\": {\"count\": %d},\n",
                     p->o->branch_modes);
    if (p->o->mooney)
        put_cubature(t, p);
    else
        scene_text_print(t, "      ");
    scene_text_print(t, "\"drag\": {\"normal\": 1.8, \"samples\": 24}\n    }");
}

// Derivatives of second order are made of the first three linear modes, of which P0 has those of translation.
static void put_leaf_modes(scene_text *t, const plant *p) {
    int count = p->o->leaf_modes, linear = count < 6 ? count : 6;
    scene_text_print(t, "\"modes\": {\"count\": %d", count);
    if (p->o->mooney && p->o->leaf_derivatives != 1)
        scene_text_print(t, ", \"derivatives\": %d", p->o->leaf_derivatives);
    if (p->o->mooney && p->o->leaf_derivatives > 1) {
        scene_text_print(t, ", \"linear\": %d, \"orders\": [%d, %d", linear, linear, linear < 3 ? linear : 3);
        scene_text_print(t, p->o->leaf_derivatives > 2 ? ", %d]" : "]", linear < 2 ? linear : 2);
    }
    scene_text_print(t, "},\n");
}

// number < 0: the one leaf that stands for all
static void put_leaf_part(scene_text *t, const plant *p, int number) {
    double   L = number < 0 ? p->leaf_length : p->s->leaves[number].length * p->o->leaf_scale;
    double   width = number < 0 ? p->leaf_width : p->s->leaves[number].width * p->o->leaf_scale;
    fem_leaf leaf = leaf_of(p, L, width);
    char     name[32] = "leaf";
    if (number >= 0) snprintf(name, sizeof name, "leaf%d", number);
    const char *names[] = {"length", "width", "thickness", "petiole_length", "petiole_width"};
    double      values[] = {leaf.length, leaf.width, leaf.thickness, leaf.petiole_length, leaf.petiole_width};
    scene_text_print(t, "    \"%s\": {\n      \"mesh\": {\"leaf\": {\"element\": \"%s\", ", name,
                     p->o->hex ? "hex" : "tet");
    for (int i = 0; i < 5; i++) {
        scene_text_print(t, "\"%s\": ", names[i]);
        scene_text_number(t, values[i], 6);
        scene_text_print(t, ", ");
    }
    scene_text_print(t, "\"cells\": %d}},\n      \"material\": \"leaf\", \"fixed\": \"root\", ", leaf.cells);
    put_leaf_modes(t, p);
    if (p->o->mooney)
        put_cubature(t, p);
    else
        scene_text_print(t, "      \"forces\": {\"type\": \"linear\"}, ");
    scene_text_print(t, "\"drag\": {\"normal\": 1.2, \"samples\": 8}\n    }");
}

// Place of an instance in the coordinates of its parent's part: rotation as axis times angle.
static void rotation_vector(const double R[9], double v[3]) {
    double axis[3] = {(R[7] - R[5]) / 2, (R[2] - R[6]) / 2, (R[3] - R[1]) / 2}, sine = vec3_norm(axis);
    double cosine = (R[0] + R[4] + R[8] - 1) / 2, angle = atan2(sine, cosine);
    if (sine > 1e-6) {
        for (int i = 0; i < 3; i++) v[i] = axis[i] * angle / sine;
    } else if (cosine > 0) {
        memcpy(v, axis, sizeof axis);
    } else { // half a turn: R = 2 a a^T - 1, the column with the largest diagonal is along the axis
        int k = R[0] > R[4] ? R[0] > R[8] ? 0 : 2 : R[4] > R[8] ? 1 : 2;
        for (int i = 0; i < 3; i++) v[i] = R[3 * i + k] + (i == k);
        vec3_normalize(v);
        for (int i = 0; i < 3; i++) v[i] *= angle;
    }
}

// Point of a class at a share of its length, over the length; and the radius there.
static void class_point(const branch_shape *class, double t, double point[3], double *radius) {
    double at = fmin(fmax(t, 0), 1) * (SHAPE - 1);
    int    k = at >= SHAPE - 1 ? SHAPE - 2 : (int)at;
    double share = at - k;
    for (int i = 0; i < 3; i++)
        point[i] = class->points[3 * k + i] + share * (class->points[3 * (k + 1) + i] - class->points[3 * k + i]);
    *radius = class->radii[k] + share * (class->radii[k + 1] - class->radii[k]);
}

// World position of a point in the coordinates of a branch's axes, over its length.
static void world_point(const branch_shape *shape, const double local[3], double world[3]) {
    double turned[3];
    mat3_mul_vec(turned, shape->axes, local);
    for (int i = 0; i < 3; i++) world[i] = shape->base[i] + shape->length * turned[i];
}

static const branch_shape *class_of(const plant *p, int branch) {
    return &p->shapes[p->medoid[p->shapes[branch].class]];
}

// Children come after their parents, so one pass moves each to where its parent's class has put its place.
static void place_branches(plant *p) {
    for (int i = 0; i < p->s->branch_count; i++) {
        const scene_branch *b = &p->s->branches[i];
        double              local[3], radius;
        if (b->parent < 0) continue;
        class_point(class_of(p, b->parent), fmin(b->t, TIP), local, &radius);
        world_point(&p->shapes[b->parent], local, p->shapes[i].base);
    }
}

// Share of a branch's length that is nearest to a point of the skeleton, and how far that is.
static double nearest_share(const scene_branch *b, const double x[3], double away[3]) {
    double total = scene_branch_length(b), passed = 0, least = INFINITY, share = 0;
    away[0] = away[1] = away[2] = 0;
    for (int k = 0; k + 1 < b->point_count; k++) {
        const double *a = b->points + 3 * (size_t)k;
        double        along[3], d[3], rest[3], step = vec3_distance(a, a + 3);
        vec3_sub(along, a + 3, a), vec3_sub(d, x, a);
        double s = fmin(fmax(vec3_dot(d, along) / (step * step), 0), 1);
        for (int i = 0; i < 3; i++) rest[i] = d[i] - s * along[i];
        if (vec3_norm(rest) < least) {
            least = vec3_norm(rest), share = (passed + s * step) / total;
            memcpy(away, rest, sizeof rest);
        }
        passed += step;
    }
    return share;
}

static void indent(scene_text *t, int depth) {
    for (int i = 0; i < depth; i++) scene_text_print(t, "  ");
}

// Rows [x, y, z, rx, ry, rz, scale] in the coordinates of the part of the branch.
static void put_leaves(scene_text *t, const plant *p, int branch, int depth) {
    const branch_shape *shape = &p->shapes[branch], *class = class_of(p, branch);
    bool                some = false, own = p->o->distinct;
    double              reach = class->length + p->leaf_length * class->length / shape->length; // near by construction
    if (!own) {
        indent(t, depth);
        scene_text_print(t, "{\"part\": \"leaf\", \"reach\": ");
        scene_text_number(t, reach, 3);
        scene_text_print(t, ", \"places\": [\n");
    }
    for (int k = p->first_leaf[branch]; k >= 0; k = p->next_leaf[k]) {
        const scene_leaf *leaf = &p->s->leaves[k];
        double            away[3], offset[3], local[3], radius, axes[9], R[9], row[7];
        double            share = fmin(nearest_share(&p->s->branches[branch], leaf->p, away), TIP), up[3];
        class_point(class, share, local, &radius);
        upright(away, up);
        to_axes(shape->axes, up, offset);
        double size = vec3_norm(offset) / shape->length, most = 0.8 * radius; // petioles begin inside the wood
        for (int i = 0; i < 3; i++)
            row[i] = class->length * (local[i] + (size > 0 ? offset[i] / shape->length * fmin(1, most / size) : 0));
        for (int c = 0; c < 3; c++) { // x of the part is the leaf's y, y of the part minus its x
            int    from = c == 0 ? 1 : c == 1 ? 0 : 2;
            double v[3] = {leaf->Q[from], leaf->Q[3 + from], leaf->Q[6 + from]}, w[3], turned[3];
            upright(v, w);
            to_axes(shape->axes, w, turned);
            for (int i = 0; i < 3; i++) turned[i] *= c == 1 ? -1 : 1;
            column(axes, c, turned);
        }
        memcpy(R, axes, sizeof R);
        rotation_vector(R, row + 3);
        row[6] = leaf->length * p->o->leaf_scale / p->leaf_length * class->length / shape->length;
        if (some) scene_text_print(t, ",\n");
        indent(t, own ? depth : depth + 1);
        some = true;
        if (!own) {
            put_numbers(t, 7, row);
            continue;
        }
        scene_text_print(t, "{\"part\": \"leaf%d\", \"reach\": ", k);
        scene_text_number(t, reach, 3);
        scene_text_print(t, ", \"translation\": "), put_numbers(t, 3, row);
        scene_text_print(t, ", \"rotation\": "), put_numbers(t, 3, row + 3);
        scene_text_print(t, "}");
    }
    if (!own) scene_text_print(t, "]}");
}

static void put_branch(scene_text *t, const plant *p, int branch, int depth) {
    const scene_branch *b = &p->s->branches[branch];
    const branch_shape *shape = &p->shapes[branch], *class = class_of(p, branch);
    double              place[3], turn[3], scale = shape->length / class->length;
    indent(t, depth);
    scene_text_print(t, "{\"part\": \"branch%d\", \"name\": \"b%d\", ", shape->class, branch);
    if (b->parent < 0) {
        memcpy(place, shape->base, sizeof place);
        rotation_vector(shape->axes, turn);
    } else {
        const branch_shape *parent = &p->shapes[b->parent], *above = class_of(p, b->parent);
        double              R[9], radius;
        class_point(above, fmin(b->t, TIP), place, &radius);
        for (int i = 0; i < 3; i++) place[i] *= above->length;
        for (int c = 0; c < 3; c++) {
            double v[3] = {shape->axes[c], shape->axes[3 + c], shape->axes[6 + c]}, own[3];
            to_axes(parent->axes, v, own);
            column(R, c, own);
        }
        rotation_vector(R, turn);
        scale *= above->length / parent->length;
    }
    scene_text_print(t, "\"translation\": "), put_numbers(t, 3, place);
    scene_text_print(t, ", \"rotation\": "), put_numbers(t, 3, turn);
    scene_text_print(t, ", \"scale\": "), scene_text_number(t, scale, 6);
    if (b->parent >= 0) { // its root is around a place on the parent's centreline
        const branch_shape *parent = &p->shapes[b->parent], *above = class_of(p, b->parent);
        scene_text_print(t, ", \"reach\": ");
        scene_text_number(t, above->length * (1 + shape->length / parent->length), 3);
    }
    if (p->first_child[branch] >= 0 || p->first_leaf[branch] >= 0) {
        bool some = false;
        scene_text_print(t, ", \"children\": [\n");
        for (int c = p->first_child[branch]; c >= 0; c = p->next_child[c]) {
            if (some) scene_text_print(t, ",\n");
            put_branch(t, p, c, depth + 1);
            some = true;
        }
        if (p->first_leaf[branch] >= 0) {
            if (some) scene_text_print(t, ",\n");
            put_leaves(t, p, branch, depth + 1);
        }
        scene_text_print(t, "]");
    }
    scene_text_print(t, "}");
}

static void put_scene(scene_text *t, const plant *p) {
    const scene_plant_options *o = p->o;
    bool                       some = false;
    scene_text_print(t, "{\n  \"limber\": 1,\n  \"title\": ");
    scene_text_string(t, o->title ? o->title : "A plant");
    scene_text_print(t, ",\n  \"materials\": {\n");
    if (o->mooney)
        put_mooney(t, "wood", woods[o->wood].density, woods[o->wood].young, WOOD_POISSON);
    else
        put_wood(t, &woods[o->wood]);
    if (p->s->leaf_count > 0 && o->mooney) {
        scene_text_print(t, ",\n");
        put_mooney(t, "leaf", leaf_density(p), p->leaf_young, LEAF_POISSON);
    } else if (p->s->leaf_count > 0) {
        scene_text_print(t, ",\n    \"leaf\": {\"density\": ");
        scene_text_number(t, leaf_density(p), 6);
        scene_text_print(t, ", \"young\": ");
        scene_text_number(t, p->leaf_young, 6);
        scene_text_print(t, ", \"poisson\": 0.3}");
    }
    scene_text_print(t, "\n  },\n  \"parts\": {\n");
    for (int c = 0; c < p->class_count; c++) {
        if (c > 0) scene_text_print(t, ",\n");
        put_branch_part(t, p, c);
    }
    for (int k = 0; k < (o->distinct ? p->s->leaf_count : p->s->leaf_count > 0); k++) {
        scene_text_print(t, ",\n");
        put_leaf_part(t, p, o->distinct ? k : -1);
    }
    scene_text_print(t, "\n  },\n  \"objects\": [\n");
    for (int i = 0; i < p->s->branch_count; i++) {
        if (p->s->branches[i].parent >= 0) continue;
        if (some) scene_text_print(t, ",\n");
        put_branch(t, p, i, 2);
        some = true;
    }
    scene_text_print(t, "\n  ],\n");
    if (o->wind > 0) {
        scene_text_print(t, "  \"environment\": {\"wind\": {\"speed\": ");
        scene_text_number(t, o->wind, 6);
        scene_text_print(t, ", \"up\": [0, 0, 1], \"ground\": ");
        scene_text_number(t, p->low[2], 6);
        scene_text_print(t, ", \"seed\": %d}},\n", o->seed);
    }
    // of blades that bend far, short steps with one pass cost the least (bench_maple)
    scene_text_print(
        t, "  \"solver\": {\"method\": \"reduced\", %s, \"damping\": {\"mass\": 0.15, \"stiffness\": 0.006}},\n",
        o->mooney ? "\"step\": 0.005, \"passes\": 1" : "\"step\": 0.0166667");
    scene_text_print(t, "  \"output\": {\"frames\": %d, \"rate\": 30, \"formats\": [\"glb\"]}\n}\n",
                     (int)(30 * o->seconds) + 1);
}

// ---- the whole
// -------------------------------------------------------------------------------------------------------

static fem_status link_parts(plant *p) {
    size_t n = (size_t)p->s->branch_count, leaves = (size_t)p->s->leaf_count;
    p->shapes = fem_calloc(n, sizeof *p->shapes);
    int **lists[] = {&p->first_leaf, &p->first_child, &p->next_child, &p->next_leaf};
    bool  enough = p->shapes != NULL;
    for (int i = 0; i < 4; i++) {
        size_t count = i == 3 ? leaves : n;
        *lists[i] = fem_alloc(count, sizeof **lists[i]);
        enough = enough && *lists[i];
        for (size_t k = 0; *lists[i] && k < count; k++) (*lists[i])[k] = -1;
    }
    if (!enough) return fem_fail(FEM_NO_MEMORY, "plant: no memory for %zu branches and %zu leaves", n, leaves);
    for (int i = (int)n - 1; i >= 0; i--) {
        int parent = p->s->branches[i].parent;
        if (parent >= 0) p->next_child[i] = p->first_child[parent], p->first_child[parent] = i;
    }
    for (int k = (int)leaves - 1; k >= 0; k--) {
        int branch = p->s->leaves[k].branch;
        p->next_leaf[k] = p->first_leaf[branch], p->first_leaf[branch] = k;
    }
    return FEM_OK;
}

// What the loader would refuse: branches on branches on branches, names that are longer than an instance's may be.
static fem_status check_depth(const scene_skeleton *s) {
    const int most = (JSON_DEPTH - 10) / 2, leaf = (int)sizeof "/leaf.1000000";
    for (int i = 0; i < s->branch_count; i++) {
        int depth = 0, name = leaf;
        for (int b = i; b >= 0; b = s->branches[b].parent, depth++) name += snprintf(NULL, 0, "b%d/", b);
        if (depth - 1 > most)
            return fem_fail(FEM_BAD_INPUT, "branch %d: %d branches are below it, expected at most %d", i, depth - 1,
                            most);
        if (name >= SCENE_NAME_MOST)
            return fem_fail(FEM_BAD_INPUT, "branch %d: the %d branches below it make its name too long, expected fewer",
                            i, depth - 1);
    }
    return FEM_OK;
}

static void measure(plant *p) {
    const scene_skeleton *s = p->s;
    for (int i = 0; i < 3; i++) p->low[i] = INFINITY, p->high[i] = -INFINITY;
    for (int i = 0; i < s->branch_count; i++)
        for (int k = 0; k < s->branches[i].point_count; k++) {
            double x[3];
            upright(s->branches[i].points + 3 * (size_t)k, x);
            for (int a = 0; a < 3; a++) p->low[a] = fmin(p->low[a], x[a]), p->high[a] = fmax(p->high[a], x[a]);
        }
    for (int i = 0; i < s->leaf_count; i++) {
        p->leaf_length += s->leaves[i].length * p->o->leaf_scale / s->leaf_count;
        p->leaf_width += s->leaves[i].width * p->o->leaf_scale / s->leaf_count;
    }
}

static double worst_place(const plant *p) {
    double worst = 0;
    for (int i = 0; i < p->s->branch_count; i++)
        for (int k = 0; k < SHAPE; k++) {
            double local[3], direction[3], at[3], meant[3], world[3], radius, t = k / (double)(SHAPE - 1);
            class_point(class_of(p, i), t, local, &radius);
            world_point(&p->shapes[i], local, world);
            scene_branch_at(&p->s->branches[i], t, at, direction, &radius);
            upright(at, meant);
            worst = fmax(worst, vec3_distance(world, meant));
        }
    return worst;
}

fem_status scene_plant_write(const scene_skeleton *skeleton, const scene_plant_options *options, const char *path,
                             scene_plant_report *report) {
    fem_status     status = FEM_OK;
    scene_skeleton mended = {0};
    plant          p = {.s = &mended, .o = options};
    scene_text     text = {0};
    char          *written = NULL;
    fem_file      *file = NULL;
    FEM_TRY(check_options(options));
    FEM_TRY(scene_skeleton_check(skeleton));
    FEM_TRY(check_depth(skeleton));
    FEM_TRY(scene_plant_mend(skeleton, options->leaves, &mended));
    int stubs = skeleton->branch_count - mended.branch_count;
    skeleton = &mended;
    if (skeleton->branch_count + skeleton->leaf_count > SCENE_INSTANCES_MOST) {
        status =
            fem_fail(FEM_BAD_INPUT, "%d branches and %d leaves, expected at most %d together; fewer leaves would do",
                     skeleton->branch_count, skeleton->leaf_count, SCENE_INSTANCES_MOST);
        goto done;
    }
    FEM_TRY(link_parts(&p));
    measure(&p);
    for (int i = 0; i < skeleton->branch_count; i++) find_shape(&skeleton->branches[i], &p.shapes[i]);
    FEM_TRY(options->distinct ? find_own_classes(&p) : find_classes(&p));
    scene_plant_report r = {.branches = skeleton->branch_count, .leaves = skeleton->leaf_count, .stubs = stubs};
    mesh_size          size = {0};
    for (int c = 0; c < p.class_count; c++) FEM_TRY(fit_class(&p, c, &size));
    if (skeleton->leaf_count > 0) FEM_TRY(tune_leaf(&p, &size));
    if (options->distinct) FEM_TRY(count_distinct_leaves(&p, &size));
    r.elements = (int)size.elements;
    place_branches(&p);
    r.classes = p.class_count;
    r.height = p.high[2] - p.low[2];
    r.worst = worst_place(&p);
    put_scene(&text, &p);
    FEM_TRY(scene_text_finish(&text, &written));
    FEM_TRY(fem_file_create(&file, path));
    fem_file_put(file, written, strlen(written));
    FEM_TRY(fem_file_commit(file));
    if (report) *report = r;
done:
    fem_free(written);
    scene_skeleton_destroy(&mended);
    fem_free(p.shapes), fem_free(p.medoid), fem_free(p.first_leaf), fem_free(p.next_leaf);
    fem_free(p.first_child), fem_free(p.next_child);
    return status;
}

// The oak of Barbič and Zhao 2011 (P1): 41 branches of 5 classes with r = 20, 1,394 leaves of one class with r = 8,
// 11,972 degrees of freedom, about 627K tetrahedra counted over all instances. Grown by scene_skeleton_grow; branches
// are quantised to five shapes, each placed, turned and scaled. Precomputation, the parts of a step in moving wind
// (mean of 1,000 steps in a row, nothing written), 60 s of motion as a .glb, and a grove of 20 such oaks.
//     bench_oak [steps [one]]     one: no film, no grove
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BRANCHES = 41, LEAVES = 1394, CLASSES = 5, PARTS = CLASSES + 1, POINTS = 9, GROVE = 20 };
static const double STEP = 1.0 / 60;

static double cpu(void) { return (double)clock() / CLOCKS_PER_SEC; } // of all threads

typedef struct oak {
    scene_skeleton         skeleton;
    fem_mesh               meshes[PARTS];
    solver_part            parts[PARTS];
    int                    class_of[BRANCHES], like[CLASSES]; // the branch whose shape a class has
    double                 length[CLASSES], curve[CLASSES][3 * POINTS];
    solver_forest_instance instances[BRANCHES + LEAVES];
    int                    count;
} oak;

// Axes of a branch: z along its chord, x to the side to which it bends.
static void branch_axes(const scene_branch *b, double Q[9]) {
    double        z[3], x[3], y[3];
    const double *tip = b->points + 3 * (size_t)(b->point_count - 1);
    vec3_sub(z, tip, b->points);
    vec3_normalize(z);
    vec3_sub(x, b->points + 3 * (size_t)(b->point_count / 2), b->points);
    vec3_axpy(x, -vec3_dot(x, z), z);
    if (vec3_norm(x) < 1e-6) {
        double other[3] = {fabs(z[0]) < 0.7, fabs(z[0]) >= 0.7, 0};
        vec3_cross(x, z, other);
    }
    vec3_normalize(x);
    vec3_cross(y, z, x);
    for (int i = 0; i < 3; i++) Q[3 * i] = x[i], Q[3 * i + 1] = y[i], Q[3 * i + 2] = z[i];
}

// The trunk, two lengths of limbs, two of twigs.
static void choose_classes(oak *o) {
    double middle[3] = {0};
    int    count[3] = {0};
    for (int i = 0; i < BRANCHES; i++) {
        const scene_branch *b = &o->skeleton.branches[i];
        middle[b->level] += scene_branch_length(b), count[b->level]++;
    }
    for (int k = 0; k < 3; k++) middle[k] /= count[k];
    for (int c = 0; c < CLASSES; c++) o->like[c] = -1;
    for (int i = 0; i < BRANCHES; i++) {
        const scene_branch *b = &o->skeleton.branches[i];
        int                 c = b->level == 0 ? 0 : 2 * b->level - 1 + (scene_branch_length(b) < middle[b->level]);
        o->class_of[i] = c;
        if (o->like[c] < 0) o->like[c] = i;
    }
}

static void make_branch_mesh(oak *o, int c, const fem_material *wood) {
    const scene_branch *b = &o->skeleton.branches[o->like[c]];
    double              Q[9], d[3];
    branch_axes(b, Q);
    o->length[c] = scene_branch_length(b);
    for (int k = 0; k < POINTS; k++) {
        vec3_sub(d, b->points + 3 * (size_t)k, b->points);
        for (int i = 0; i < 3; i++) o->curve[c][3 * k + i] = Q[i] * d[0] + Q[3 + i] * d[1] + Q[6 + i] * d[2];
    }
    fem_tube tube = {
        .points = POINTS, .centre = o->curve[c], .radius = b->radii, .rings = 2, .segment = o->length[c] / 68};
    bench_try(fem_generate_tube(&o->meshes[c], FEM_T4, &tube));
    bench_try(fem_mesh_set_material(&o->meshes[c], wood));
}

static void make_parts(oak *o) {
    static const char *const names[PARTS] = {"trunk", "long limb", "short limb", "long twig", "short twig", "leaf"};
    fem_material             wood = fem_material_default(), blade = fem_material_default();
    wood.kind = blade.kind = FEM_STVK;
    wood.young = 8e9, wood.poisson = 0.3, wood.density = 900; // green oak [Wood Handbook, USDA 2010, ch. 5]
    blade.young = 5e8, blade.poisson = 0.3, blade.density = 700;
    for (int c = 0; c < CLASSES; c++) make_branch_mesh(o, c, &wood);
    fem_leaf leaf = {.length = 0.28,
                     .width = 0.18,
                     .thickness = 0.0015,
                     .petiole_length = 0.04,
                     .petiole_width = 0.006,
                     .cells = 9,
                     .layers = 1};
    bench_try(fem_generate_leaf(&o->meshes[CLASSES], FEM_T4, &leaf));
    bench_try(fem_mesh_set_material(&o->meshes[CLASSES], &blade));
    for (int k = 0; k < PARTS; k++) {
        const fem_set *root = fem_mesh_vertex_set(&o->meshes[k], "root");
        o->parts[k] = (solver_part){.name = names[k],
                                    .mesh = &o->meshes[k],
                                    .fixed_count = root->count,
                                    .fixed = root->items,
                                    .options = solver_class_default_options(),
                                    .damping_mass = 0.3,
                                    .damping_stiffness = 0.004};
        o->parts[k].options.modes = k < CLASSES ? 20 : 8;
    }
}

// Position on a class's curve at a share of its length, and the radius there.
static void curve_at(const oak *o, int c, double t, double p[3]) {
    double at = t * (POINTS - 1);
    int    k = (int)fmin(at, POINTS - 2);
    for (int i = 0; i < 3; i++)
        p[i] = (1 - (at - k)) * o->curve[c][3 * k + i] + (at - k) * o->curve[c][3 * (k + 1) + i];
}

// inner = parent^T child
static void relative(const double parent[9], const double child[9], double inner[9]) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            inner[3 * i + j] = 0;
            for (int k = 0; k < 3; k++) inner[3 * i + j] += parent[3 * k + i] * child[3 * k + j];
        }
}

// Branch i is instance i, leaves come behind.
static void make_instances(oak *o) {
    double axes[BRANCHES][9], scale[BRANCHES];
    for (int i = 0; i < BRANCHES; i++) {
        const scene_branch     *b = &o->skeleton.branches[i];
        int                     c = o->class_of[i];
        solver_forest_instance *n = &o->instances[o->count++];
        *n = (solver_forest_instance){
            .part = c, .parent = b->parent, .stiffness = 1, .damping_mass = -1, .damping_stiffness = -1};
        branch_axes(b, axes[i]);
        scale[i] = scene_branch_length(b) / o->length[c];
        n->at.scale = scale[i] / (b->parent < 0 ? 1 : scale[b->parent]);
        memcpy(n->at.Q, axes[i], sizeof n->at.Q);
        memcpy(n->at.p, b->points, sizeof n->at.p);
        if (b->parent < 0) continue;
        curve_at(o, o->class_of[b->parent], b->t, n->at.p);
        relative(axes[b->parent], axes[i], n->at.Q);
    }
    for (int k = 0; k < o->skeleton.leaf_count; k++) {
        const scene_leaf       *leaf = &o->skeleton.leaves[k];
        const scene_branch     *b = &o->skeleton.branches[leaf->branch];
        solver_forest_instance *n = &o->instances[o->count++];
        double                  Q[9], along = 0, best = INFINITY, d[3], on[3], direction[3], radius, away[3];
        *n = (solver_forest_instance){
            .part = CLASSES, .parent = leaf->branch, .stiffness = 1, .damping_mass = -1, .damping_stiffness = -1};
        for (int j = 0; j <= 100; j++) { // where on its branch
            scene_branch_at(b, j / 100.0, on, direction, &radius);
            if (vec3_distance(on, leaf->p) < best) best = vec3_distance(on, leaf->p), along = j / 100.0;
        }
        scene_branch_at(b, along, on, direction, &radius);
        vec3_sub(away, leaf->p, on);
        curve_at(o, o->class_of[leaf->branch], fmin(along, 0.99), n->at.p);
        for (int i = 0; i < 3; i++) {
            d[i] = 0;
            for (int j = 0; j < 3; j++) d[i] += axes[leaf->branch][3 * j + i] * away[j];
            n->at.p[i] += d[i] / scale[leaf->branch];
            // the mesh points along x, the skeleton's leaf along y
            Q[3 * i] = leaf->Q[3 * i + 1], Q[3 * i + 1] = -leaf->Q[3 * i], Q[3 * i + 2] = leaf->Q[3 * i + 2];
        }
        relative(axes[leaf->branch], Q, n->at.Q);
        n->at.scale = leaf->length / 0.28 / scale[leaf->branch];
        n->reach = 0.1;
    }
}

static void oak_create(oak *o, uint64_t seed) {
    bench_try(scene_skeleton_grow(&o->skeleton, SCENE_OAK, seed));
    if (o->skeleton.branch_count != BRANCHES || o->skeleton.leaf_count != LEAVES) {
        printf("the grown oak has %d branches and %d leaves\n", o->skeleton.branch_count, o->skeleton.leaf_count);
        exit(1);
    }
    choose_classes(o);
    make_parts(o);
    make_instances(o);
}

// ---- wind ----------------------------------------------------------------------------------------------------------

typedef struct breeze {
    solver_wind        *wind;
    solver_wind_surface surfaces[PARTS];
    solver_wind_load   *load;
} breeze;

static void breeze_create(breeze *b, const solver_forest *f) {
    solver_wind_options w = solver_wind_default_options();
    w.up[0] = 0, w.up[1] = 1, w.up[2] = 0;
    w.direction[0] = 1, w.direction[1] = 0, w.direction[2] = 0.2;
    w.speed = 6;
    bench_try(solver_wind_create(&b->wind, &w));
    for (int k = 0; k < PARTS; k++) {
        const solver_class *c = f->classes[k];
        int                *triangles = NULL, count = 0;
        bench_try(fem_mesh_surface(&c->mesh, &count, &triangles, NULL));
        bench_try(solver_wind_surface_create(&b->surfaces[k], c->mesh.vertex_count, c->mesh.vertices, count, triangles,
                                             c->basis.r, c->basis.U, k < CLASSES ? 8 : 4, 1.2, 0.05));
        fem_free(triangles);
    }
    bench_try(solver_wind_load_create(&b->load, b->wind, f->part_count, b->surfaces, f->count));
}

static void breeze_destroy(breeze *b) {
    solver_wind_load_destroy(b->load);
    for (int k = 0; k < PARTS; k++) solver_wind_surface_destroy(&b->surfaces[k]);
    solver_wind_destroy(b->wind);
}

// ---- motion --------------------------------------------------------------------------------------------------------

// path: where the tip of a twig is in every tenth step; compared with `like`, the path of another run, when there is
// one
static void run_steps(const solver_forest *f, const char *what, int passes, int steps, double *path,
                      const double *like) {
    solver_tree        *tree = NULL;
    breeze              b = {0};
    solver_tree_options o = solver_tree_default_options();
    const double        gravity[3] = {0, -9.81, 0};
    double wind = 0, whole = 0, wall = 0, fastest = INFINITY, tip[3], first[3], largest = 0, off = 0, turned = 0;
    int    point, twig = 40;
    o.time_step = STEP, o.passes = passes;
    bench_try(solver_forest_tree(&tree, f, &o));
    breeze_create(&b, f);
    solver_tree_set_gravity(tree, gravity);
    bench_try(solver_forest_point(f, tree, twig,
                                  fem_mesh_vertex_set(f->parts[f->given[twig].part].mesh, "tip")->items[0], &point));
    solver_tree_point(tree, point, first, NULL);
    for (int k = 0; k < 100 + steps; k++) { // the first hundred bring it into motion
        if (k == 100) {
            wind = whole = 0;
            wall = fem_seconds();
        }
        double start = cpu();
        bench_try(solver_wind_load_apply(b.load, tree));
        wind += cpu() - start;
        bench_try(solver_tree_step(tree));
        turned = fmax(turned, STEP * solver_wind_load_turning(b.load));
        double took = cpu() - start;
        whole += took, fastest = fmin(fastest, took);
        if (k % 10) continue;
        solver_tree_point(tree, point, tip, NULL);
        largest = fmax(largest, vec3_distance(tip, first));
        if (path) memcpy(path + 3 * (k / 10), tip, sizeof tip);
        if (like) off = fmax(off, vec3_distance(tip, like + 3 * (k / 10)));
    }
    wall = fem_seconds() - wall;
    solver_tree_report r = solver_tree_get_report(tree);
    double             parts = r.seconds_frames + r.seconds_forces + r.seconds_up + r.seconds_down + r.seconds_rest;
    double             own = (whole - wind) / steps;
    printf("%s: %d instances, %d degrees of freedom, depth %d\n", what, solver_tree_count(tree), solver_tree_dofs(tree),
           solver_tree_depth(tree));
    printf(
        "  step %8.3f ms processor time (%.3f ms wall clock, %.3f ms the fastest), mean of %d; P1: 29 ms for one oak\n",
        1e3 * whole / steps, 1e3 * wall / steps, 1e3 * fastest, steps);
    printf("    wind %7.3f, frames %.3f, forces %.3f, up %.3f, down %.3f, rest %.3f ms\n", 1e3 * wind / steps,
           1e3 * own * r.seconds_frames / parts, 1e3 * own * r.seconds_forces / parts, 1e3 * own * r.seconds_up / parts,
           1e3 * own * r.seconds_down / parts, 1e3 * own * r.seconds_rest / parts);
    printf("  a twig's tip moved by %.3g m at most; %d shifts, %d domains left to the plain version\n", largest,
           r.shifts, r.plain);
    printf("  %.2f passes a step, %ld steps halved\n", passes + r.extra_passes / (100.0 + steps), (long)r.halved);
    printf(
        "  by its normals alone the wind would turn a mode by %.2f rad a step at most (scenes divide steps above 2)\n",
        turned);
    if (like) printf("  the tip is off the first run's by %.3g m at most\n", off);
    breeze_destroy(&b);
    solver_tree_destroy(tree);
}

// 60 s as a .glb, 24 frames a second.
static void write_film(const solver_forest *f, double seconds) {
    static const char   path[] = "out/bench/oak.glb";
    solver_tree        *tree = NULL;
    breeze              b = {0};
    solver_tree_options o = solver_tree_default_options();
    const double        gravity[3] = {0, -9.81, 0};
    scene_look          looks[2] = {{.name = "bark", .colour = {0.3, 0.2, 0.12}, .roughness = 0.9},
                                    {.name = "leaf", .colour = {0.16, 0.33, 0.07}, .roughness = 0.7, .double_sided = true}};
    scene_surface       surfaces[PARTS];
    scene_patch         patches[PARTS];
    fem_surface         skins[PARTS] = {{0}};
    double             *modes[PARTS];
    scene_figure       *figures = fem_calloc((size_t)f->count, sizeof *figures);
    scene_pose         *poses = fem_calloc((size_t)f->count, sizeof *poses);
    double             *q = fem_calloc((size_t)f->modes, sizeof *q);
    scene_glb          *glb = NULL;
    scene_glb_options   options = scene_glb_default_options();
    scene_glb_report    report;
    o.time_step = 1.0 / 72;
    mkdir("out", 0777), mkdir("out/bench", 0777); // when they are not there; opening the file says what is wrong
    bench_try(solver_forest_tree(&tree, f, &o));
    breeze_create(&b, f);
    solver_tree_set_gravity(tree, gravity);
    for (int k = 0; k < PARTS; k++) {
        const solver_class *c = f->classes[k];
        fem_embedding       e = {0};
        bench_try(fem_surface_of_mesh(&skins[k], &c->mesh));
        bench_try(fem_embed_points(&e, &c->mesh, skins[k].vertex_count, skins[k].vertices));
        size_t rows = 3 * (size_t)skins[k].vertex_count;
        modes[k] = fem_alloc(rows * (size_t)c->basis.r, sizeof(double));
        for (size_t l = 0; l < (size_t)c->basis.r; l++)
            fem_embedding_apply(&e, c->basis.U + l * (size_t)c->basis.n, modes[k] + l * rows);
        fem_embedding_destroy(&e);
        patches[k] = (scene_patch){.count = skins[k].triangle_count, .look = k == CLASSES};
        surfaces[k] = (scene_surface){.name = c->name,
                                      .vertex_count = skins[k].vertex_count,
                                      .positions = skins[k].vertices,
                                      .triangle_count = skins[k].triangle_count,
                                      .triangles = skins[k].triangles,
                                      .patch_count = 1,
                                      .patches = &patches[k],
                                      .r = c->basis.r,
                                      .modes = modes[k]};
    }
    for (int i = 0; i < f->count; i++)
        figures[i] = (scene_figure){.surface = f->given[i].part, .scale = f->world[i].scale};
    options.up = SCENE_UP_Y;
    bench_try(scene_glb_create(&glb, path, 2, looks, PARTS, surfaces, f->count, figures, &options));
    int frames = (int)(24 * seconds);
    for (int k = 0; k <= frames; k++) {
        for (int s = 0; s < 3 && k > 0; s++) {
            bench_try(solver_wind_load_apply(b.load, tree));
            bench_try(solver_tree_step(tree));
        }
        size_t at = 0;
        for (int i = 0; i < f->count; i++) {
            solver_frame_motion m;
            size_t              r = (size_t)f->classes[f->given[i].part]->basis.r;
            solver_tree_frame(tree, i, &m);
            memcpy(poses[i].p, m.p, sizeof m.p);
            memcpy(poses[i].Q, m.Q, sizeof m.Q);
            memcpy(q + at, solver_tree_q(tree, i), r * sizeof *q);
            at += r;
        }
        bench_try(scene_glb_frame(glb, k / 24.0, poses, q));
    }
    bench_try(scene_glb_commit(glb, &report));
    printf("film: %d frames, %.3g s, %.1f MB (goal for 60 s: 100 MB)\n", report.frames, seconds, report.bytes / 1e6);
    for (int k = 0; k < PARTS; k++) fem_surface_destroy(&skins[k]), fem_free(modes[k]);
    fem_free(figures), fem_free(poses), fem_free(q);
    breeze_destroy(&b);
    solver_tree_destroy(tree);
}

static void run_grove(const oak *o, int steps) {
    size_t                  count = (size_t)o->count;
    solver_forest_instance *all = fem_alloc(GROVE * count, sizeof *all);
    solver_forest          *f = NULL;
    for (int g = 0; g < GROVE; g++)
        for (size_t i = 0; i < count; i++) {
            solver_forest_instance *n = &all[(size_t)g * count + i];
            *n = o->instances[i];
            if (n->parent >= 0) {
                n->parent += (int)((size_t)g * count);
                continue;
            }
            const double     turn[3] = {0, 2.4 * g, 0};
            solver_placement at = {.p = {9.0 * (g % 5), 0, 9.0 * (double)(g / 5)}, .scale = 0.8 + 0.02 * g};
            mat3_exp(at.Q, turn);
            solver_placement_compose(&n->at, &at, &n->at);
        }
    bench_try(solver_forest_create(&f, PARTS, o->parts, (int)(GROVE * count), all, NULL));
    bench_try(solver_forest_precompute(f, NULL, NULL, NULL));
    run_steps(f, "grove of 20", 2, steps, NULL, NULL);
    solver_forest_destroy(f);
    fem_free(all);
}

int main(int argc, char **argv) {
    int            steps = argc > 1 ? atoi(argv[1]) : 1000;
    oak            o = {.count = 0};
    solver_forest *f = NULL;
    double         elements = 0;
    bench_header(argv, "the oak of P1, instanced, in moving wind");
    oak_create(&o, 1);
    for (int i = 0; i < o.count; i++) elements += o.meshes[o.instances[i].part].element_count;
    printf("oak: %d branches of %d classes, %d leaves of one class, %.0f elements over all instances (P1: 627K)\n",
           BRANCHES, CLASSES, LEAVES, elements);
    for (int k = 0; k < PARTS; k++)
        printf("  %-10s %6d elements, %d modes\n", o.parts[k].name, o.meshes[k].element_count,
               o.parts[k].options.modes);
    double start = cpu(), wall = fem_seconds();
    bench_try(solver_forest_create(&f, PARTS, o.parts, o.count, o.instances, NULL));
    bench_try(solver_forest_precompute(f, NULL, NULL, NULL));
    printf("precomputation %.2f s processor time, %.2f s wall clock; P1: 1.0 min\n", cpu() - start,
           fem_seconds() - wall);
    printf("  modes %.2f, forces %.2f, rest %.2f s; %d interfaces\n", f->seconds_modes, f->seconds_forces,
           f->seconds_rest, f->attachment_count);
    int     threads = fem_threads();
    double *path = fem_calloc((size_t)(100 + steps) / 10 + 1, 3 * sizeof *path);
    fem_set_threads(1);
    run_steps(f, "one oak", 2, steps, path, NULL);
    run_steps(f, "one oak, one solve a step as in P1 (semi-implicit)", 1, steps, NULL, path);
    fem_set_threads(threads);
    if (threads > 1) run_steps(f, "one oak, all threads", 2, steps, NULL, path);
    fem_free(path);
    bool more = argc < 3 || strcmp(argv[2], "one") != 0;
    fem_set_threads(1);
    if (more) write_film(f, steps < 1000 ? 1 : 60);
    solver_forest_destroy(f);
    if (more) run_grove(&o, steps / 10 + 1);
    for (int k = 0; k < PARTS; k++) fem_mesh_destroy(&o.meshes[k]);
    scene_skeleton_destroy(&o.skeleton);
    return 0;
}

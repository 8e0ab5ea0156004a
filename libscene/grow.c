// Plants that grow from a seed. Branches come level by level: their places on the parent by the golden angle (or in
// opposite pairs), their directions at an angle to it, bending towards the light or the ground. Radii follow from the
// leaves that hang behind them, by da Vinci's rule, the pipe model [Shinozaki et al. 1964]: at every height the sum of
// cross-sections is the same, r^2 = sum of r_child^2, so each leaf has its pipe down to the root.
#include "libscene/skeleton.h"
#include "libsolver/solver.h"

#include <math.h>
#include <string.h>

enum { LEVELS = 3, POINTS = 9 };

typedef struct habit {
    const char *name;
    double      height, trunk_radius; // m
    int         levels;               // of branches
    int         children[LEVELS];     // of a branch of each level
    double      first[LEVELS];        // share of a branch's length below its first child
    double      angle[LEVELS];      // of children to their parent, degrees, at its base; they close up towards the tip
    double      ratio[LEVELS];      // length of a child over that of its parent
    double      crown[LEVELS];      // 0: children alike; 1: those at the tip vanish, as in a cone
    double      rise[LEVELS + 1];   // how strongly branches of a level turn up (or, negative, down)
    double      wobble;             // random turns, rad
    bool        pairs;              // leaves and branches stand opposite each other
    int         leaves[LEVELS + 1]; // of a branch of each level
    double      leaf_length, leaf_width;
} habit;

static const habit habits[SCENE_SPECIES] = {
    [SCENE_OAK] = {"oak",
                   7,
                   0.1,
                   3,
                   {8, 4, 0},
                   {0.28, 0.3},
                   {62, 50},
                   {0.62, 0.5},
                   {0.25, 0.2},
                   {0, 0.5, 0.25},
                   0.16,
                   false,
                   {34, 34, 34},
                   0.34,
                   0.22},
    [SCENE_MAPLE] = {"maple",
                     8,
                     0.16,
                     3,
                     {10, 4, 0},
                     {0.25, 0.3},
                     {48, 45},
                     {0.5, 0.5},
                     {0.35, 0.2},
                     {0, 0.6, 0.4},
                     0.08,
                     true,
                     {20, 30, 30},
                     0.2,
                     0.2},
    [SCENE_BIRCH] = {"birch",
                     9,
                     0.1,
                     3,
                     {14, 4, 0},
                     {0.25, 0.3},
                     {42, 50},
                     {0.34, 0.5},
                     {0.5, 0.2},
                     {0, 0.1, -0.9},
                     0.1,
                     false,
                     {16, 18, 24},
                     0.12,
                     0.08},
    [SCENE_PINE] = {"pine",
                    10,
                    0.15,
                    3,
                    {30, 5, 0},
                    {0.2, 0.25},
                    {82, 55},
                    {0.3, 0.35},
                    {0.8, 0.4},
                    {0, 0.15, 0.1},
                    0.05,
                    false,
                    {10, 12, 16},
                    0.16,
                    0.03},
    [SCENE_FLOWER] =
        {"flower", 0.5, 0.006, 2, {3, 0, 0}, {0.3}, {35}, {0.5}, {0.1}, {0.1, 0.5}, 0.06, false, {6, 4}, 0.08, 0.04},
};

const char *scene_species_name(scene_species species) { return habits[species].name; }

bool scene_species_from_name(scene_species *species, const char *name) {
    for (int i = 0; i < SCENE_SPECIES; i++)
        if (strcmp(habits[i].name, name) == 0) return *species = (scene_species)i, true;
    return false;
}

static const double GOLDEN = 2.39996322972865332; // rad

// Any unit vector across d, turned about it by an angle.
static void across(const double d[3], double angle, double out[3]) {
    double other[3] = {0, 0, 0}, a[3], b[3];
    other[fabs(d[0]) < 0.7 ? 0 : 2] = 1;
    vec3_cross(a, d, other);
    vec3_normalize(a);
    vec3_cross(b, d, a);
    for (int i = 0; i < 3; i++) out[i] = cos(angle) * a[i] + sin(angle) * b[i];
}

static fem_status add_branch(scene_skeleton *s, int parent, int level, double t) {
    fem_status status =
        fem_grow((void **)&s->branches, &s->branch_room, (size_t)s->branch_count + 1, sizeof *s->branches);
    if (status != FEM_OK) return status;
    scene_branch b = {.parent = parent, .level = level, .t = t, .point_count = POINTS};
    b.points = fem_alloc(3 * POINTS, sizeof *b.points), b.radii = fem_calloc(POINTS, sizeof *b.radii);
    if (!b.points || !b.radii) {
        fem_free(b.points), fem_free(b.radii);
        return fem_fail(FEM_NO_MEMORY, "no memory for a branch");
    }
    s->branches[s->branch_count++] = b;
    return FEM_OK;
}

// The centreline from its base on: it wobbles, and turns up or down by `rise` over its length.
static void draw_branch(scene_branch *b, const double base[3], const double direction[3], double length, double rise,
                        double wobble, uint64_t *state) {
    double d[3] = {direction[0], direction[1], direction[2]}, step = length / (POINTS - 1);
    memcpy(b->points, base, 3 * sizeof *base);
    for (size_t k = 1; k < POINTS; k++) {
        for (size_t i = 0; i < 3; i++) b->points[3 * k + i] = b->points[3 * (k - 1) + i] + step * d[i];
        d[1] += rise / (POINTS - 1);
        for (int i = 0; i < 3; i++) d[i] += wobble * (2 * solver_random(state) - 1);
        vec3_normalize(d);
    }
}

static fem_status grow_children(scene_skeleton *s, const habit *h, int parent, uint64_t *state) {
    fem_status status = FEM_OK;
    int        level = s->branches[parent].level, count = level + 1 < h->levels ? h->children[level] : 0;
    double     length = scene_branch_length(&s->branches[parent]), turn = 2 * M_PI * solver_random(state);
    for (int k = 0; k < count; k++) {
        double base[3], along[3], aside[3], direction[3], radius;
        int    place = h->pairs ? k / 2 : k, places = h->pairs ? (count + 1) / 2 : count;
        double share = (place + 0.5 + 0.3 * (solver_random(state) - 0.5)) / places,
               t = h->first[level] + (0.98 - h->first[level]) * share;
        double azimuth =
            turn + (h->pairs ? place * M_PI / 2 + (k % 2) * M_PI : place * GOLDEN) + 0.3 * (solver_random(state) - 0.5);
        double angle = h->angle[level] * (1 - 0.4 * share) * M_PI / 180;
        FEM_TRY(add_branch(s, parent, level + 1, t));
        scene_branch_at(&s->branches[parent], t, base, along, &radius);
        across(along, azimuth, aside);
        for (int i = 0; i < 3; i++) direction[i] = cos(angle) * along[i] + sin(angle) * aside[i];
        double own = length * h->ratio[level] * (1 - h->crown[level] * share) * (0.9 + 0.2 * solver_random(state));
        draw_branch(&s->branches[s->branch_count - 1], base, direction, own, h->rise[level + 1], h->wobble, state);
    }
done:
    return status;
}

// Leaves stand around the outer part of a branch, their blades aslant to it and rather level.
static fem_status grow_leaves(scene_skeleton *s, const habit *h, int branch, uint64_t *state) {
    const scene_branch *b = &s->branches[branch];
    int                 count = h->leaves[b->level];
    double              first = b->level == 0 && h->levels > 1 ? 0.8 : 0.25, turn = 2 * M_PI * solver_random(state);
    fem_status          status =
        fem_grow((void **)&s->leaves, &s->leaf_room, (size_t)(s->leaf_count + count), sizeof *s->leaves);
    if (status != FEM_OK) return status;
    for (int k = 0; k < count; k++) {
        scene_leaf leaf = {.branch = branch};
        double     along[3], aside[3], y[3], x[3], z[3], up[3] = {0, 1, 0}, radius;
        int        place = h->pairs ? k / 2 : k, places = h->pairs ? (count + 1) / 2 : count;
        double     t = first + (1 - first) * (place + 0.9) / places;
        double     azimuth = turn + (h->pairs ? place * M_PI / 2 + (k % 2) * M_PI : place * GOLDEN);
        double     size = 0.75 + 0.5 * solver_random(state);
        scene_branch_at(b, fmin(t, 1), leaf.p, along, &radius);
        across(along, azimuth, aside);
        vec3_axpy(leaf.p, 0.8 * radius, aside);
        for (int i = 0; i < 3; i++) y[i] = 0.5 * along[i] + 0.85 * aside[i] + 0.3 * (solver_random(state) - 0.5);
        vec3_normalize(y);
        for (int i = 0; i < 3; i++) up[i] += 0.5 * (solver_random(state) - 0.5);
        vec3_cross(x, y, up);
        if (vec3_norm(x) < 0.1) across(y, azimuth, x);
        vec3_normalize(x);
        vec3_cross(z, x, y);
        for (int i = 0; i < 3; i++) leaf.Q[3 * i] = x[i], leaf.Q[3 * i + 1] = y[i], leaf.Q[3 * i + 2] = z[i];
        leaf.length = size * h->leaf_length, leaf.width = size * h->leaf_width;
        s->leaves[s->leaf_count++] = leaf;
    }
    return FEM_OK;
}

// Cross-sections in pipes: own leaves and children from each point on to the tip; the last point has half a pipe's
// worth, since a tip has an end. What a child carries counts in full up to the first point behind it. Children come
// after their parents, so a walk backwards knows them.
static fem_status set_radii(scene_skeleton *s, const habit *h) {
    double *pipes = fem_calloc((size_t)s->branch_count, sizeof *pipes); // at the base
    if (!pipes) return fem_fail(FEM_NO_MEMORY, "no memory for %d branches", s->branch_count);
    for (int i = s->branch_count - 1; i >= 0; i--) pipes[i] = fmax(h->leaves[s->branches[i].level], 1);
    for (int i = s->branch_count - 1; i > 0; i--) pipes[s->branches[i].parent] += pipes[i];
    for (int i = 0; i < s->branch_count; i++) {
        scene_branch *b = &s->branches[i];
        double        own = fmax(h->leaves[b->level], 1), pipe = h->trunk_radius * h->trunk_radius / pipes[0];
        for (int k = 0; k < POINTS; k++) {
            double t = (double)k / (POINTS - 1), carried = own * (1 - 0.85 * t);
            for (int c = i + 1; c < s->branch_count; c++)
                if (s->branches[c].parent == i)
                    carried += pipes[c] * fmin(fmax((s->branches[c].t - t) * (POINTS - 1) + 2, 0), 1);
            b->radii[k] = sqrt(pipe * carried);
        }
    }
    fem_free(pipes);
    return FEM_OK;
}

fem_status scene_skeleton_grow(scene_skeleton *skeleton, scene_species species, uint64_t seed) {
    fem_status     status = FEM_OK;
    scene_skeleton s = {0};
    uint64_t       state = seed;
    if ((int)species < 0 || species >= SCENE_SPECIES)
        return fem_fail(FEM_BAD_INPUT, "there is no species %d", (int)species);
    const habit *h = &habits[species];
    double       lean[3] = {0.1 * (solver_random(&state) - 0.5), 1, 0.1 * (solver_random(&state) - 0.5)};
    vec3_normalize(lean);
    FEM_TRY(add_branch(&s, -1, 0, 0));
    draw_branch(&s.branches[0], (const double[]){0, 0, 0}, lean, h->height, h->rise[0], 0.5 * h->wobble, &state);
    for (int i = 0; i < s.branch_count; i++) FEM_TRY(grow_children(&s, h, i, &state));
    FEM_TRY(set_radii(&s, h));
    for (int i = 0; i < s.branch_count; i++) FEM_TRY(grow_leaves(&s, h, i, &state));
    FEM_TRY(scene_skeleton_check(&s));
    scene_skeleton_destroy(skeleton);
    *skeleton = s;
    s = (scene_skeleton){0};
done:
    scene_skeleton_destroy(&s);
    return status;
}

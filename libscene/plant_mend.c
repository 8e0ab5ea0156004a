// What is no plant in a skeleton, before it becomes a scene: stubs, hairs, leaves beyond the number that is wanted.
#include "libscene/internal.h"
#include "libscene/skeleton.h"

#include <math.h>

// Generators leave stubs that carry nothing and tips as thin as a hair, which no wood is: a branch is at least a five
// thousandth of the plant's height thick, and what is shorter than ten times that is left out. What a stub carries
// stands on its parent instead, where the stub did.
static const double LEAST_RADIUS = 1.0 / 5000, LEAST_LENGTH = 10;
static const double SMALLEST = 1e-3; // m: what is smaller is no plant

static double extent(const scene_skeleton *s) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < s->branch_count; i++)
        for (int k = 0; k < 3 * s->branches[i].point_count; k++) {
            low[k % 3] = fmin(low[k % 3], s->branches[i].points[k]);
            high[k % 3] = fmax(high[k % 3], s->branches[i].points[k]);
        }
    return fmax(high[0] - low[0], fmax(high[1] - low[1], high[2] - low[2]));
}

fem_status scene_plant_mend(const scene_skeleton *s, int leaves, scene_skeleton *out) {
    fem_status status = FEM_OK;
    double     whole = extent(s), least = LEAST_RADIUS * whole;
    if (!(whole >= SMALLEST))
        return fem_fail(FEM_BAD_INPUT, "the plant is %.3g m large, expected at least %g m; its unit is wrong", whole,
                        SMALLEST);
    int    *number = fem_alloc((size_t)s->branch_count, sizeof *number);
    double *moved = fem_alloc((size_t)s->branch_count, sizeof *moved); // of a stub: its place on its parent
    out->branches = fem_calloc((size_t)s->branch_count, sizeof *out->branches);
    out->leaves = fem_alloc((size_t)s->leaf_count, sizeof *out->leaves);
    if (!number || !moved || !out->branches || !out->leaves) {
        status = fem_fail(FEM_NO_MEMORY, "plant: no memory for %d branches", s->branch_count);
        goto done;
    }
    for (int i = 0; i < s->branch_count; i++) {
        const scene_branch *from = &s->branches[i];
        bool                stub = scene_branch_length(from) < LEAST_LENGTH * least;
        bool                hung = from->parent >= 0 && moved[from->parent] >= 0; // its parent is a stub
        if (stub && from->parent < 0) {
            status =
                fem_fail(FEM_BAD_INPUT, "branch %d: a trunk of %.3g m, expected at least %.3g m in a plant of %.3g m",
                         i, scene_branch_length(from), LEAST_LENGTH * least, whole);
            goto done;
        }
        double t = hung ? moved[from->parent] : from->t;
        moved[i] = stub ? t : -1;
        number[i] = stub ? number[from->parent] : out->branch_count;
        if (stub) continue;
        scene_branch *to = &out->branches[out->branch_count++];
        *to = *from;
        to->parent = from->parent >= 0 ? number[from->parent] : -1;
        to->t = t;
        to->points = fem_copy(from->points, 3 * (size_t)from->point_count, sizeof *to->points);
        to->radii = fem_copy(from->radii, (size_t)from->point_count, sizeof *to->radii);
        if (!to->points || !to->radii) {
            status = fem_fail(FEM_NO_MEMORY, "plant: no memory for %d points", from->point_count);
            goto done;
        }
        for (int k = 0; k < to->point_count; k++) to->radii[k] = fmax(to->radii[k], least);
    }
    out->leaf_count = leaves >= 0 && leaves < s->leaf_count ? leaves : s->leaf_count;
    for (int i = 0; i < out->leaf_count; i++) {
        const scene_leaf *from = &s->leaves[(size_t)i * (size_t)s->leaf_count / (size_t)out->leaf_count];
        out->leaves[i] = *from;
        out->leaves[i].branch = number[from->branch];
    }
done:
    fem_free(number), fem_free(moved);
    return status;
}

// The tree of boxes, and the distance of a point from a triangle.
#include "libfem/box_tree.h"

#include <stdint.h>
#include <stdlib.h>

typedef struct coded {
    uint64_t code;
    int      item;
} coded;

static int compare_codes(const void *a, const void *b) {
    const coded *x = a, *y = b;
    if (x->code != y->code) return x->code < y->code ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

// Spreads the lower 21 bits so that two zeros follow each.
static uint64_t spread_bits(uint64_t x) {
    x &= 0x1fffff;
    x = (x | x << 32) & 0x1f00000000ffff;
    x = (x | x << 16) & 0x1f0000ff0000ff;
    x = (x | x << 8) & 0x100f00f00f00f00f;
    x = (x | x << 4) & 0x10c30c30c30c30c3;
    return (x | x << 2) & 0x1249249249249249;
}

static uint64_t morton_code(const fem_box *whole, double scale, const fem_box *b) {
    uint64_t code = 0;
    for (int k = 0; k < 3; k++) {
        double t = (b->low[k] / 2 + b->high[k] / 2 - whole->low[k]) * scale;
        code |= spread_bits((uint64_t)fmax(0, fmin(t, 2097151))) << k;
    }
    return code;
}

void fem_box_tree_destroy(fem_box_tree *t) {
    fem_free(t->order), fem_free(t->boxes), fem_free(t->own);
    *t = (fem_box_tree){0};
}

fem_status fem_box_tree_create(fem_box_tree *t, int n, const fem_box *items) {
    int leaves = 1;
    while ((size_t)leaves * FEM_BOX_LEAF < (size_t)n) leaves *= 2;
    coded *codes = fem_alloc((size_t)n, sizeof *codes);
    *t = (fem_box_tree){.count = n, .leaves = leaves};
    t->order = fem_alloc((size_t)n, sizeof *t->order);
    t->boxes = fem_alloc(2 * (size_t)leaves - 1, sizeof *t->boxes);
    t->own = fem_alloc((size_t)n, sizeof *t->own);
    if (!codes || !t->order || !t->boxes || !t->own) {
        fem_free(codes);
        fem_box_tree_destroy(t);
        return fem_fail(FEM_NO_MEMORY, "no memory for a search tree of %d items", n);
    }
    fem_box whole;
    fem_box_empty(&whole);
    for (int i = 0; i < n; i++) fem_box_add(&whole, items[i].low, items[i].high);
    double extent = 0;
    for (int k = 0; k < 3; k++) extent = fmax(extent, whole.high[k] - whole.low[k]);
    double scale = extent > 0 && isfinite(extent) ? 2097151 / extent : 0;
    for (int i = 0; i < n; i++) codes[i] = (coded){morton_code(&whole, scale, &items[i]), i};
    qsort(codes, (size_t)n, sizeof *codes, compare_codes);
    for (int i = 0; i < n; i++) t->order[i] = codes[i].item, t->own[i] = items[codes[i].item];
    fem_free(codes);
    for (int i = 0; i < leaves; i++) {
        fem_box *b = &t->boxes[leaves - 1 + i];
        fem_box_empty(b);
        for (size_t k = (size_t)i * FEM_BOX_LEAF; k < ((size_t)i + 1) * FEM_BOX_LEAF && k < (size_t)n; k++)
            fem_box_add(b, t->own[k].low, t->own[k].high);
    }
    for (int i = leaves - 2; i >= 0; i--) {
        t->boxes[i] = t->boxes[2 * i + 1];
        fem_box_add(&t->boxes[i], t->boxes[2 * i + 2].low, t->boxes[2 * i + 2].high);
    }
    return FEM_OK;
}

// Squared distance from p to the triangle a, b, c [Ericson 2005, Real-Time Collision Detection, 5.1.5].
double fem_triangle_distance(const double p[3], const double a[3], const double b[3], const double c[3]) {
    double ab[3], ac[3], ap[3], bp[3], cp[3], q[3] = {a[0], a[1], a[2]};
    vec3_sub(ab, b, a), vec3_sub(ac, c, a), vec3_sub(ap, p, a), vec3_sub(bp, p, b), vec3_sub(cp, p, c);
    double d1 = vec3_dot(ab, ap), d2 = vec3_dot(ac, ap), d3 = vec3_dot(ab, bp), d4 = vec3_dot(ac, bp);
    double d5 = vec3_dot(ab, cp), d6 = vec3_dot(ac, cp);
    double va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2;
    double s = 0, t = 0; // nearest point a + s ab + t ac
    if (d1 <= 0 && d2 <= 0)
        s = t = 0;
    else if (d3 >= 0 && d4 <= d3)
        s = 1;
    else if (d6 >= 0 && d5 <= d6)
        t = 1;
    else if (vc <= 0 && d1 >= 0 && d3 <= 0)
        s = d1 / (d1 - d3);
    else if (vb <= 0 && d2 >= 0 && d6 <= 0)
        t = d2 / (d2 - d6);
    else if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0)
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6)), s = 1 - t;
    else
        s = vb / (va + vb + vc), t = vc / (va + vb + vc);
    vec3_axpy(q, s, ab), vec3_axpy(q, t, ac);
    vec3_sub(q, p, q);
    return vec3_dot(q, q);
}

// Forces of a body in several pieces, each with coordinates of its own.
#include "libcubature/cubature.h"

#include <string.h>

struct cubature_pieces {
    int              r, count;
    size_t           work;            // of the largest block with its matrix
    bool             nonconservative; // one of them is
    cubature_forces *forces;
};

void cubature_pieces_destroy(cubature_pieces *b) {
    if (!b) return;
    fem_free(b->forces);
    fem_free(b);
}

fem_status cubature_pieces_create(cubature_pieces **result, int count, const cubature_forces *forces) {
    cubature_pieces *b = fem_calloc(1, sizeof *b);
    if (b) b->forces = fem_copy(forces, (size_t)count, sizeof *forces);
    if (!b || !b->forces) {
        cubature_pieces_destroy(b);
        return fem_fail(FEM_NO_MEMORY, "no memory for the forces of %d pieces", count);
    }
    b->count = count;
    for (int i = 0; i < count; i++) {
        size_t r = (size_t)forces[i].r, work = forces[i].work + r * r;
        b->r += forces[i].r;
        if (work > b->work) b->work = work;
        b->nonconservative = b->nonconservative || forces[i].nonconservative;
    }
    *result = b;
    return FEM_OK;
}

static void evaluate(const void *model, const double *q, double *energy, double *f, double *K, double *work) {
    const cubature_pieces *b = model;
    size_t                 at = 0, whole = (size_t)b->r;
    double                 sum = 0, part = 0;
    if (K) memset(K, 0, whole * whole * sizeof *K);
    for (int i = 0; i < b->count; i++) {
        const cubature_forces *forces = &b->forces[i];
        size_t                 r = (size_t)forces->r;
        double                *block = work;
        forces->evaluate(forces->model, q + at, energy ? &part : NULL, f ? f + at : NULL, K ? block : NULL,
                         work + r * r);
        for (size_t j = 0; K && j < r; j++) memcpy(K + (at + j) * whole + at, block + j * r, r * sizeof *K);
        sum += part, at += r;
    }
    if (energy) *energy = sum;
}

cubature_forces cubature_pieces_forces(const cubature_pieces *b) {
    return (cubature_forces){
        .r = b->r, .work = b->work, .evaluate = evaluate, .model = b, .nonconservative = b->nonconservative};
}

// Columns in use and the factor of their Gram matrix: append by a forward substitution, remove by rotations.
#include "libcubature/active_set.h"

#include <math.h>
#include <string.h>

void active_set_place(active_set *set, int capacity, double *memory) {
    size_t n = (size_t)capacity;
    *set = (active_set){.capacity = capacity};
    set->L = memory;
    set->c = memory + n * n;
    set->x = set->c + n;
    set->z = set->x + n;
    set->column = (int *)(void *)(set->z + n);
}

static double *row(const active_set *set, int i) { return set->L + (size_t)i * (size_t)set->capacity; }

// y = L^-1 y
static void forward(const active_set *set, double *y) {
    for (int i = 0; i < set->count; i++) y[i] = (y[i] - dense_dot(i, row(set, i), y)) / row(set, i)[i];
}

void active_set_solve(const active_set *set, const double *rhs, double *x) {
    if (x != rhs) memcpy(x, rhs, (size_t)set->count * sizeof *x);
    forward(set, x);
    for (int i = set->count - 1; i >= 0; i--) { // x = L^-T x
        x[i] /= row(set, i)[i];
        dense_axpy(i, -x[i], row(set, i), x);
    }
}

bool active_set_append(active_set *set, int column, const double *g, double norm2, double a_dot_b, double independent) {
    int k = set->count;
    if (k == set->capacity) return false;
    double *l = row(set, k);
    memcpy(l, g, (size_t)k * sizeof *l);
    forward(set, l);
    double rest = norm2 - dense_dot(k, l, l);
    if (!(rest > independent * norm2)) return false;
    l[k] = sqrt(rest);
    set->column[k] = column;
    set->c[k] = a_dot_b;
    set->x[k] = 0;
    set->count++;
    return true;
}

// Rows below the removed one have one entry too many; rotations of neighbouring columns push it out.
static void remove_at(active_set *set, int position) {
    int last = --set->count;
    for (int i = position; i < last; i++) {
        double *l = row(set, i);
        memcpy(l, row(set, i + 1), ((size_t)i + 2) * sizeof *l);
        set->column[i] = set->column[i + 1];
        set->c[i] = set->c[i + 1];
        set->x[i] = set->x[i + 1];
    }
    for (int j = position; j < last; j++) { // columns j and j + 1, so that row j ends at j
        double a = row(set, j)[j], b = row(set, j)[j + 1], length = hypot(a, b), c = a / length, s = b / length;
        for (int i = j; i < last; i++) {
            double *l = row(set, i), first = l[j], second = l[j + 1];
            l[j] = c * first + s * second;
            l[j + 1] = c * second - s * first;
        }
    }
}

int active_set_settle(active_set *set) {
    for (int dropped = 0;;) {
        double step = 1;
        int    blocking = -1;
        active_set_solve(set, set->c, set->z);
        for (int i = 0; i < set->count; i++) {
            if (set->z[i] > 0) continue;
            double until = set->x[i] > 0 ? set->x[i] / (set->x[i] - set->z[i]) : 0;
            if (blocking >= 0 && until >= step) continue;
            step = until;
            blocking = i;
        }
        for (int i = 0; i < set->count; i++) set->x[i] += step * (set->z[i] - set->x[i]);
        if (blocking < 0) return dropped;
        remove_at(set, blocking);
        dropped++;
    }
}

// Leaf: a plate whose width varies along x, on a stalk. The formula of its outline stands in mesh.h.
// The plate is a grid of columns (along x) and rows (across), `layers` thick; the petiole continues the middle columns
// of the blade with the same vertices. A cell is a trapezium with two sides across, so it can never turn over.
#include "libfem/generate.h"

enum { ROOT = 1, TIP = 2, BOTTOM = 4, TOP = 8 };

static const double TIP_SHARE = 0.15, BASE_SHARE = 0.4; // of the largest width

// Grid of the leaf: stations along x, each with some points across; the same grid at every height.
typedef struct grid {
    int blade_across, petiole_across; // cells
    int blade_along, petiole_along;   // cells
    int layers;
} grid;

static bool has_petiole(const fem_leaf *leaf) { return leaf->petiole_length > 0; }

// Cells across: even, so that vertices lie on the midrib, and about as wide as long where the blade is widest.
static double wanted_across(const fem_leaf *leaf) {
    return 2 * fmax(1, round(leaf->cells * (leaf->width / leaf->length) / 2));
}

// Fewest middle columns that the petiole can continue without making the base of the blade too wide.
static int petiole_columns(const fem_leaf *leaf, int blade_across) {
    double widest = fmax(leaf->petiole_width, BASE_SHARE * leaf->width);
    double columns = 2 * ceil(leaf->petiole_width * blade_across / widest / 2 * (1 - 1e-12));
    return columns < 2 ? 2 : columns > blade_across ? blade_across : (int)columns;
}

static double base_width(const fem_leaf *leaf, int blade_across) {
    if (!has_petiole(leaf)) return BASE_SHARE * leaf->width;
    return leaf->petiole_width * blade_across / petiole_columns(leaf, blade_across);
}

static fem_status positive(const char *name, double value) {
    if (value > 0 && value < 1e100) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "%s is %g, expected > 0", name, value);
}

static fem_status check_leaf(const fem_leaf *leaf) {
    fem_status status = FEM_OK;
    FEM_TRY(positive("length", leaf->length));
    FEM_TRY(positive("width", leaf->width));
    FEM_TRY(positive("thickness", leaf->thickness));
    if (leaf->petiole_length != 0) {
        FEM_TRY(positive("petiole_length", leaf->petiole_length));
        FEM_TRY(positive("petiole_width", leaf->petiole_width));
        if (leaf->petiole_width > leaf->width)
            return fem_fail(FEM_BAD_INPUT, "petiole_width is %g, expected at most the width %g", leaf->petiole_width,
                            leaf->width);
    }
    if (leaf->cells < 1) return fem_fail(FEM_BAD_INPUT, "cells is %d, expected at least 1", leaf->cells);
    if (leaf->layers < 1) return fem_fail(FEM_BAD_INPUT, "layers is %d, expected at least 1", leaf->layers);
done:
    return status;
}

// All counts as double first: they are small enough for int when their product is.
static fem_status plan(const fem_leaf *leaf, fem_element type, grid *g) {
    fem_status status = FEM_OK;
    double     across = wanted_across(leaf), along = leaf->cells;
    double     stalk = has_petiole(leaf) ? fmax(1, round(leaf->petiole_length / leaf->length * leaf->cells)) : 0;
    FEM_TRY(fem_generate_count(across * along * leaf->layers, type));
    int columns = has_petiole(leaf) ? petiole_columns(leaf, (int)across) : 0;
    FEM_TRY(fem_generate_count((across * along + columns * stalk) * leaf->layers, type));
    *g = (grid){(int)across, columns, leaf->cells, (int)stalk, leaf->layers};
done:
    return status;
}

static double blade_width(const fem_leaf *leaf, double base, double s) {
    double end = s < 0.5 ? base : TIP_SHARE * leaf->width;
    return end + (leaf->width - end) * sin(M_PI * s);
}

// Vertices at one height: those of the petiole, station by station from the root and without those it shares, then the
// blade's.
static int points_below(const grid *g, bool blade, int station) {
    if (!blade) return station * (g->petiole_across + 1);
    return g->petiole_along * (g->petiole_across + 1) + station * (g->blade_across + 1);
}

// Number of a petiole point at one height; its last station is the middle of the blade's first.
static int petiole_point(const grid *g, int station, int row) {
    if (station < g->petiole_along) return points_below(g, false, station) + row;
    return points_below(g, true, 0) + (g->blade_across - g->petiole_across) / 2 + row;
}

static void fill_vertices(const fem_leaf *leaf, const grid *g, fem_mesh *mesh, unsigned char *mark) {
    double base = base_width(leaf, g->blade_across), *x = mesh->vertices;
    for (int layer = 0; layer <= g->layers; layer++) {
        double   z = leaf->thickness * ((double)layer / g->layers - 0.5);
        unsigned side = (layer == 0 ? BOTTOM : 0u) | (layer == g->layers ? TOP : 0u);
        for (int i = 0; i < g->petiole_along; i++)
            for (int j = 0; j <= g->petiole_across; j++) {
                *x++ = leaf->petiole_length * i / g->petiole_along;
                *x++ = leaf->petiole_width * ((double)j / g->petiole_across - 0.5);
                *x++ = z;
                *mark++ = (unsigned char)(side | (i == 0 ? ROOT : 0u));
            }
        for (int i = 0; i <= g->blade_along; i++) {
            double s = (double)i / g->blade_along, width = blade_width(leaf, base, s);
            for (int j = 0; j <= g->blade_across; j++) {
                *x++ = leaf->petiole_length + leaf->length * s;
                *x++ = width * ((double)j / g->blade_across - 0.5);
                *x++ = z;
                *mark++ = (unsigned char)(side | (i == 0 && g->petiole_along == 0 ? ROOT : 0u) |
                                          (i == g->blade_along ? TIP : 0u));
            }
        }
    }
}

// Cells of one part; `points` is the number of vertices at one height.
static int *fill_part(const grid *g, bool blade, int points, int *v) {
    int along = blade ? g->blade_along : g->petiole_along, across = blade ? g->blade_across : g->petiole_across;
    for (int layer = 0; layer < g->layers; layer++)
        for (int i = 0; i < along; i++)
            for (int j = 0; j < across; j++)
                for (int c = 0; c < 8; c++) {
                    int station = i + (c % 4 == 1 || c % 4 == 2), row = j + (c % 4 >= 2);
                    int point = blade ? points_below(g, true, station) + row : petiole_point(g, station, row);
                    *v++ = (layer + c / 4) * points + point;
                }
    return v;
}

fem_status fem_generate_leaf(fem_mesh *mesh, fem_element type, const fem_leaf *leaf) {
    static const char *const names[2] = {"blade", "petiole"};
    fem_status               status = FEM_OK;
    fem_mesh                 hexahedra = {0};
    unsigned char           *mark = NULL;
    grid                     g;
    FEM_TRY(check_leaf(leaf));
    FEM_TRY(plan(leaf, type, &g));
    int points = points_below(&g, true, g.blade_along + 1);
    int blade = g.blade_along * g.blade_across * g.layers, petiole = g.petiole_along * g.petiole_across * g.layers;
    FEM_TRY(fem_mesh_allocate(&hexahedra, FEM_H8, points * (g.layers + 1), blade + petiole));
    mark = fem_calloc((size_t)hexahedra.vertex_count, sizeof *mark);
    if (!mark) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", hexahedra.vertex_count);
        goto done;
    }
    fill_vertices(leaf, &g, &hexahedra, mark);
    int *v = fill_part(&g, true, points, hexahedra.elements);
    fill_part(&g, false, points, v);
    FEM_TRY(fem_generate_regions(&hexahedra, petiole > 0 ? 2 : 1, names));
    for (int e = blade; e < blade + petiole; e++) hexahedra.region[e] = 1;
    FEM_TRY(fem_generate_set(&hexahedra, "root", mark, ROOT));
    FEM_TRY(fem_generate_set(&hexahedra, "tip", mark, TIP));
    FEM_TRY(fem_generate_set(&hexahedra, "bottom", mark, BOTTOM));
    FEM_TRY(fem_generate_set(&hexahedra, "top", mark, TOP));
    FEM_TRY(fem_generate_finish(mesh, type, &hexahedra));
done:
    fem_free(mark);
    fem_mesh_destroy(&hexahedra);
    return status == FEM_BAD_INPUT ? fem_fail_prefix(status, "leaf: ") : status;
}

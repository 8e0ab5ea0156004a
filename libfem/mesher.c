// From a surface to a mesh: signs by winding numbers, then stuffing or voxels.
#include "libfem/mesher.h"
#include "libfem/mesh_formats.h"
#include "libfem/mesher_internal.h"
#include "libfem/stuffing.h"
#include "libfem/voxels.h"

static const double MOST_CELLS = 5e7; // of the lattice, full or not: 20 bytes each
static const double CELL_ELEMENTS = 12;

typedef struct filling {
    fem_surface_tree tree;
    fem_lattice      lattice;
    fem_voxels       voxels;
    float           *winding; // per point of the lattice, or voxel
    bool             closed;
} filling;

double fem_mesher_estimate(const fem_surface *surface, const fem_mesher_options *o) {
    fem_mended        mended = {0};
    fem_mesher_report report = {0};
    if (fem_surface_mend(&mended, surface, &report) != FEM_OK) return 0;
    fem_mended_destroy(&mended);
    double per_cell = o->method == FEM_STUFFING ? CELL_ELEMENTS : o->type == FEM_T4 ? FEM_GENERATE_TETRAHEDRA : 1;
    return per_cell * report.volume / (o->size * o->size * o->size);
}

// ---- checks ----------------------------------------------------------------------------------------------------

static void bounds(const fem_mended *m, double low[3], double high[3]) {
    for (int k = 0; k < 3; k++) low[k] = INFINITY, high[k] = -INFINITY;
    for (size_t i = 0; i < 3 * (size_t)m->triangle_count; i++)
        for (size_t k = 0; k < 3; k++) {
            double x = m->vertices[3 * (size_t)m->triangles[i] + k];
            low[k] = fmin(low[k], x), high[k] = fmax(high[k], x);
        }
}

static fem_status check_options(const fem_mesher_options *o) {
    if (!(o->size > 0) || !(o->size < 1e100))
        return fem_fail(FEM_BAD_INPUT, "size is %g, expected > 0 and < 1e+100", o->size);
    if (o->method == FEM_STUFFING && o->type == FEM_H8)
        return fem_fail(FEM_BAD_INPUT, "stuffing makes tetrahedra: hexahedra need the method voxel");
    return FEM_OK;
}

// Before memory is taken: the cells of the box, the elements that the volume will make, and what would do instead.
static fem_status check_size(const fem_mesher_options *o, const double low[3], const double high[3], double volume) {
    double cells = 1, box = 1, far = 0, per_cell = o->method == FEM_STUFFING ? CELL_ELEMENTS : 1;
    for (int k = 0; k < 3; k++) {
        cells *= (high[k] - low[k]) / o->size + 6;
        box *= high[k] - low[k] + 6 * o->size;
        far = fmax(far, fmax(fabs(low[k]), fabs(high[k])));
    }
    if (o->method == FEM_VOXELS && o->type == FEM_T4) per_cell = FEM_GENERATE_TETRAHEDRA;
    double elements = per_cell * volume / (o->size * o->size * o->size);
    double enough = fmax(cbrt(per_cell * volume / FEM_GENERATE_MOST), cbrt(box / MOST_CELLS));
    if (!(cells <= MOST_CELLS) || !(elements <= FEM_GENERATE_MOST))
        return fem_fail(FEM_BAD_INPUT,
                        "size %g is too small: about %.2g elements on a grid of %.2g cells, at most %.2g and %.2g; "
                        "about %.2g would do",
                        o->size, elements, cells, (double)FEM_GENERATE_MOST, MOST_CELLS, 1.1 * enough);
    if (o->size < 1e-9 * far)
        return fem_fail(FEM_BAD_INPUT,
                        "size %g is below the precision of coordinates as large as %g: move the "
                        "surface to the origin, or use a larger size",
                        o->size, far);
    return FEM_OK;
}

static fem_status nothing_inside(const fem_mesher_options *o, const double low[3], const double high[3],
                                 const fem_mesher_report *r) {
    double extent = INFINITY, longest = 0;
    for (int k = 0; k < 3; k++) extent = fmin(extent, high[k] - low[k]), longest = fmax(longest, high[k] - low[k]);
    // as thick as a plate of this volume and area
    double thick = r->area > 0 ? 2 * r->volume / r->area : 0;
    if (!(thick > 1e-6 * longest))
        return fem_fail(FEM_BAD_INPUT,
                        "the surface encloses no volume: sheets without thickness cannot be filled; give "
                        "them one (in Blender: the modifier Solidify)");
    return fem_fail(FEM_BAD_INPUT, "size %g is too large: the body has no inside at it; about %.2g would do", o->size,
                    fmin(fmin(extent, thick), o->size) / 2);
}

// ---- signs -----------------------------------------------------------------------------------------------------

// Winding numbers of a row of points along x. A closed surface has one between crossings.
static void row_winding(const filling *f, const double p[3], double step, int count, float *winding, size_t stride) {
    unsigned char crossed[256];
    for (int first = 0; first < count; first += 256) {
        int    end = count - first < 256 ? count : first + 256;
        double x[3] = {p[0] + step * first, p[1], p[2]};
        if (f->closed) fem_surface_mark_crossed(&f->tree, x, 0, step, end - first, crossed);
        for (int i = first; i < end; i++) {
            bool same = f->closed && i > first && !crossed[i - first - 1];
            x[0] = p[0] + step * i;
            winding[(size_t)i * stride] =
                same ? winding[(size_t)(i - 1) * stride] : (float)fem_surface_winding(&f->tree, x);
        }
    }
}

static void sign_row(void *context, int row, int worker) {
    (void)worker;
    filling *f = context;
    size_t   n0 = (size_t)f->lattice.n[0], first = 2 * n0 * (size_t)(row / 2) + (size_t)(row % 2);
    double   x[3];
    fem_lattice_point(&f->lattice, first, x);
    row_winding(f, x, f->lattice.size, f->lattice.n[0], f->winding + first, 2);
    for (size_t i = 0; i < n0; i++) f->lattice.sign[first + 2 * i] = f->winding[first + 2 * i] > 0.5f ? 1 : -1;
}

static void voxel_row(void *context, int row, int worker) {
    (void)worker;
    filling *f = context;
    int      at[3] = {0, row % f->voxels.n[1], row / f->voxels.n[1]};
    size_t   first = fem_voxel_index(&f->voxels, at), n0 = (size_t)f->voxels.n[0];
    double   x[3];
    for (int a = 0; a < 3; a++) x[a] = f->voxels.low[a] + (at[a] + 0.5) * f->voxels.size;
    row_winding(f, x, f->voxels.size, f->voxels.n[0], f->winding + first, 1);
    for (size_t i = 0; i < n0; i++) f->voxels.owner[first + i] = f->winding[first + i] > 0.5f;
}

// Where the surface is: at a triangle, or, where a hole is closed, where the winding number is a half.
static double cut_edge(void *context, size_t inside, size_t outside) {
    filling *f = context;
    double   p[3], q[3], x[3];
    fem_lattice_point(&f->lattice, inside, p);
    fem_lattice_point(&f->lattice, outside, q);
    double t = fem_surface_exit(&f->tree, p, q, (double)f->winding[inside]), low = 0, high = 1;
    if (t >= 0) return t;
    for (int step = 0; step < 24; step++) {
        double middle = (low + high) / 2;
        for (int k = 0; k < 3; k++) x[k] = (1 - middle) * p[k] + middle * q[k];
        *(fem_surface_winding(&f->tree, x) > 0.5 ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

// ---- the two methods -------------------------------------------------------------------------------------------

static fem_status stuff(filling *f, const fem_mesher_options *o, const double low[3], const double high[3],
                        fem_mesh *mesh, fem_mesher_report *report) {
    fem_status   status = FEM_OK;
    fem_lattice *l = &f->lattice;
    double       begin = fem_seconds();
    l->size = o->size;
    for (int k = 0; k < 3; k++) {
        l->n[k] = (int)ceil((high[k] - low[k]) / o->size) + 5; // two layers around
        l->low[k] = (low[k] + high[k]) / 2 - (l->n[k] - 1) * o->size / 2;
    }
    size_t count = fem_lattice_count(l);
    l->sign = fem_alloc(count, sizeof *l->sign);
    f->winding = fem_alloc(count, sizeof *f->winding);
    if (!l->sign || !f->winding) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a lattice of %zu points", count);
        goto done;
    }
    fem_parallel_for(2 * l->n[1] * l->n[2], sign_row, f);
    report->seconds_signs = fem_seconds() - begin;
    FEM_TRY(fem_stuff_lattice(mesh, l, cut_edge, f));
    report->seconds_elements = fem_seconds() - begin - report->seconds_signs;
done:
    return status;
}

static fem_status fill_voxels(filling *f, const fem_mesher_options *o, const double low[3], const double high[3],
                              fem_mesh *mesh, fem_mesher_report *report) {
    fem_status  status = FEM_OK;
    fem_mesh    hexahedra = {0};
    fem_voxels *g = &f->voxels;
    double      begin = fem_seconds(), full = 0;
    size_t      filled = 0;
    FEM_TRY(fem_voxels_create(g, low, high, o->size));
    size_t count = (size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2];
    f->winding = fem_alloc(count, sizeof *f->winding);
    if (!f->winding) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu voxels", count);
        goto done;
    }
    fem_parallel_for(g->n[1] * g->n[2], voxel_row, f);
    report->seconds_signs = fem_seconds() - begin;
    FEM_TRY(fem_voxels_repair(g, &filled));
    report->filled = (int)filled;
    for (size_t i = 0; i < count; i++) full += g->owner[i] != 0;
    if (full == 0) goto done;
    FEM_TRY(fem_generate_count(full, o->type));
    FEM_TRY(fem_voxels_mesh(g, full, &hexahedra));
    FEM_TRY(fem_generate_finish(mesh, o->type, &hexahedra));
    report->seconds_elements = fem_seconds() - begin - report->seconds_signs;
done:
    fem_mesh_destroy(&hexahedra);
    return status;
}

// ---- remarks ---------------------------------------------------------------------------------------------------

static fem_status remark_surface(const fem_mesher_report *r, int turned_over, fem_remarks *remarks) {
    fem_status status = FEM_OK;
    if (r->degenerate > 0) FEM_TRY(fem_remark(remarks, "%d triangles without an area are left out", r->degenerate));
    if (r->doubled > 0)
        FEM_TRY(fem_remark(remarks, "every triangle is there from both sides: one of each pair is left out (%d)",
                           r->doubled));
    if (turned_over > 0 && r->doubled == 0)
        FEM_TRY(fem_remark(remarks, "%d triangles that face another way than their neighbours are turned over",
                           turned_over));
    if (r->turned) FEM_TRY(fem_remark(remarks, "the surface faces inwards: it is turned over"));
    if (r->open_edges > 0)
        FEM_TRY(fem_remark(remarks,
                           "the surface is not closed (%d open edges): its inside is where the winding number "
                           "is above a half, so look at the result",
                           r->open_edges));
done:
    return status;
}

static fem_status remark_mesh(const fem_mesher_report *r, double size, double limit, fem_remarks *remarks) {
    fem_status status = FEM_OK;
    if (r->crumbs > 0)
        FEM_TRY(fem_remark(remarks, "%d crumbs of %d elements together that hung by an edge or a vertex are left out",
                           r->crumbs, r->crumb_elements));
    if (r->hinged_parts > 0)
        FEM_TRY(fem_remark(remarks,
                           "%d parts hang on the rest by an edge or a vertex only and will swing freely: a "
                           "smaller size may join them",
                           r->hinged_parts));
    if (r->pinches > 0)
        FEM_TRY(fem_remark(remarks,
                           "the surface of the mesh is pinched at %d vertices, where the body is thinner than "
                           "the size",
                           r->pinches));
    if (r->lost_area > 0)
        FEM_TRY(fem_remark(remarks,
                           "%.2g%% of the surface is farther than %.3g from the mesh: parts thinner than about "
                           "%.3g are lost, most of all at (%.4g, %.4g, %.4g)",
                           100 * r->lost_area / r->area, limit, size, r->places[0][0], r->places[0][1],
                           r->places[0][2]));
done:
    return status;
}

fem_status fem_mesh_fill_surface(fem_mesh *mesh, const fem_surface *surface, const fem_mesher_options *options,
                                 fem_mesher_report *report, fem_remarks *remarks) {
    fem_status        status = FEM_OK;
    filling           f = {0};
    fem_mended        mended = {0};
    fem_mesh          made = {0};
    fem_mesher_report r = {0};
    double            low[3], high[3];
    FEM_TRY(check_options(options));
    FEM_TRY(fem_surface_mend(&mended, surface, &r));
    bounds(&mended, low, high);
    FEM_TRY(check_size(options, low, high, r.volume));
    FEM_TRY(fem_surface_tree_create(&f.tree, mended.triangle_count, mended.triangles, mended.vertices));
    f.closed = r.open_edges == 0;
    FEM_TRY(options->method == FEM_STUFFING ? stuff(&f, options, low, high, &made, &r)
                                            : fill_voxels(&f, options, low, high, &made, &r));
    if (made.element_count == 0) {
        status = nothing_inside(options, low, high, &r);
        goto done;
    }
    FEM_TRY(fem_mesher_clean(&made, &r));
    FEM_TRY(fem_mesh_check(&made));
    double limit = (options->method == FEM_STUFFING ? 0.5 : 1) * options->size; // the steps of voxels are no loss
    FEM_TRY(fem_mesher_compare(&made, &mended, &f.tree, options->size, limit, &r));
    FEM_TRY(remark_surface(&r, mended.turned_over, remarks));
    FEM_TRY(remark_mesh(&r, options->size, limit, remarks));
    fem_mesh_destroy(mesh);
    *mesh = made;
    made = (fem_mesh){0};
    *report = r;
done:
    fem_surface_tree_destroy(&f.tree);
    fem_free(f.lattice.sign), fem_free(f.winding), fem_free(f.voxels.owner);
    fem_mended_destroy(&mended);
    fem_mesh_destroy(&made);
    return status;
}

fem_status fem_embedding_write(const fem_embedding *m, const char *path) {
    fem_status status = FEM_OK;
    fem_file  *file = NULL;
    FEM_TRY(fem_file_create(&file, path));
    for (size_t i = 0; i < (size_t)m->point_count; i++) {
        fem_file_print(file, "%zu", i);
        for (size_t k = i * (size_t)m->width; k < (i + 1) * (size_t)m->width; k++)
            fem_file_print(file, " %d %.17g", m->vertices[k], m->weights[k]);
        fem_file_print(file, "\n");
    }
    FEM_TRY(fem_file_commit(file));
    file = NULL;
done:
    fem_file_abandon(file);
    return status;
}

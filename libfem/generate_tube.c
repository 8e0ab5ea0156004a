// Solid round tube swept along a polyline.
//
// A section is a disc of quadrilaterals, the affine image x = c + X e1 + Y e2 of one pattern on the unit disc. At an
// inner point of the polyline the section lies in the plane that bisects the bend (a mitre) and is stretched there, so
// that both sides continue as round cylinders. Sections in between are interpolated along straight lines. The frame
// goes around a bend by the smallest rotation that turns one tangent into the next: parallel transport, no twist.
#include "libfem/generate.h"

enum { ROOT = 1, TIP = 2, SIDE = 4 };

static const double SHARPEST = 150; // bends, degrees: beyond that a mitre is more than four radii long

// ---- the pattern -----------------------------------------------------------------------------------------------

// A square of 2a x 2a cells with rounded corners in the middle, b rings of 8a cells around it; a + b = rings.
typedef struct pattern {
    int     points, quads, rim; // rim: first of the points on the circle
    double *point;              // 2 per point, in the unit disc
    int    *quad;               // 4 per quad, counter-clockwise
} pattern;

static void pattern_destroy(pattern *p) { fem_free(p->point), fem_free(p->quad); }

// Walks counter-clockwise around the square 0..n x 0..n, from (n, 0); n > 0.
static int boundary_point(int n, int step) {
    int side = step / n % 4, along = step % n;
    int i = side == 0 ? n : side == 1 ? n - along : side == 2 ? 0 : along;
    int j = side == 0 ? along : side == 1 ? n : side == 2 ? n - along : 0;
    return j * (n + 1) + i;
}

// Rings outside the square: about as many as make all cells equally large, none when there is one ring only.
static int outer_rings(int rings) { return (int)(((long)rings + 1) / 3); }

static double pattern_quads(int rings) {
    double a = rings - outer_rings(rings), b = outer_rings(rings);
    return 4 * a * a + 8 * a * b;
}

static fem_status pattern_create(pattern *p, int rings) {
    int b = outer_rings(rings), a = rings - b, n = 2 * a, inner = (n + 1) * (n + 1), around = 4 * n;
    *p = (pattern){.points = inner + around * b, .quads = n * n + around * b, .rim = inner + around * (b - 1)};
    p->point = fem_alloc((size_t)p->points, 2 * sizeof *p->point);
    p->quad = fem_alloc((size_t)p->quads, 4 * sizeof *p->quad);
    if (!p->point || !p->quad) return fem_fail(FEM_NO_MEMORY, "no memory for a section of %d points", p->points);
    double  size = b > 0 ? 0.9 * a / rings : 1; // of the square; 0.9 leaves room at its corners
    double *x = p->point;
    int    *q = p->quad;
    for (int j = 0; j <= n; j++)
        for (int i = 0; i <= n; i++, x += 2) {
            double grid[2] = {(double)(i - a) / a, (double)(j - a) / a};
            fem_generate_rounded(2, grid, b > 0 ? 0.5 : 1, x);
            x[0] *= size, x[1] *= size;
            if (i == n || j == n) continue;
            int v = j * (n + 1) + i;
            *q++ = v, *q++ = v + 1, *q++ = v + n + 2, *q++ = v + n + 1;
        }
    for (int ring = 1; ring <= b; ring++)
        for (int s = 0; s < around; s++, x += 2) {
            int    from = boundary_point(n, s), next = boundary_point(n, s + 1);
            double grid[2] = {(double)(from % (n + 1) - a) / a, (double)(from / (n + 1) - a) / a}, circle[2];
            double t = (double)ring / b;
            fem_generate_rounded(2, grid, 1, circle);
            for (int k = 0; k < 2; k++) x[k] = (1 - t) * p->point[2 * from + k] + t * circle[k];
            int outer = inner + around * (ring - 1), below = outer - around, turn = (s + 1) % around;
            *q++ = ring == 1 ? from : below + s;
            *q++ = outer + s, *q++ = outer + turn;
            *q++ = ring == 1 ? next : below + turn;
        }
    return FEM_OK;
}

// On the circle: the last ring, or the boundary of the square when there is no ring.
static bool pattern_on_rim(const pattern *p, int rings, int point) {
    int n = 2 * (rings - outer_rings(rings));
    if (outer_rings(rings) > 0) return point >= p->rim;
    int i = point % (n + 1), j = point / (n + 1);
    return i == 0 || j == 0 || i == n || j == n;
}

// ---- sections along the polyline -------------------------------------------------------------------------------

typedef struct section {
    double centre[3], normal[3], e1[3], e2[3];
    double bend; // degrees
} section;

static fem_status check_tube(const fem_tube *tube) {
    if (tube->points < 2) return fem_fail(FEM_BAD_INPUT, "%d points, expected at least 2", tube->points);
    if (tube->rings < 1 || tube->rings > 5000)
        return fem_fail(FEM_BAD_INPUT, "%d rings, expected 1 to 5000", tube->rings);
    if (!(tube->segment >= 0) || !isfinite(tube->segment))
        return fem_fail(FEM_BAD_INPUT, "segment is %g, expected > 0, or 0 for cells as long as wide", tube->segment);
    for (int i = 0; i < tube->points; i++) {
        const double *c = tube->centre + 3 * (size_t)i;
        for (int k = 0; k < 3; k++)
            if (!(fabs(c[k]) < 1e100))
                return fem_fail(FEM_BAD_INPUT,
                                "point %d (from 0): coordinate %c is %g, expected a finite number below 1e100", i,
                                "xyz"[k], c[k]);
        if (!(tube->radius[i] > 0) || !(tube->radius[i] < 1e100))
            return fem_fail(FEM_BAD_INPUT, "point %d (from 0): its radius is %g, expected > 0", i, tube->radius[i]);
        if (i == 0) continue;
        double length = vec3_distance(c, c - 3);
        if (!(length > 1e-12 * (vec3_norm(c) + vec3_norm(c - 3))))
            return fem_fail(FEM_BAD_INPUT, "point %d (from 0) repeats the point before it: leave one out", i);
    }
    return FEM_OK;
}

// Any frame across the tangent, from the axis that it is least along.
static void first_frame(const double tangent[3], double f1[3], double f2[3]) {
    double axis[3] = {0, 0, 0};
    int    least = 0;
    for (int k = 1; k < 3; k++)
        if (fabs(tangent[k]) < fabs(tangent[least])) least = k;
    axis[least] = 1;
    vec3_cross(f2, tangent, axis);
    vec3_normalize(f2);
    vec3_cross(f1, f2, tangent);
}

static void tangent_after(const fem_tube *tube, int point, double tangent[3]) {
    vec3_sub(tangent, tube->centre + 3 * (size_t)(point + 1), tube->centre + 3 * (size_t)point);
    vec3_normalize(tangent);
}

static fem_status lay_sections(const fem_tube *tube, section *sections) {
    double in[3], out[3], f1[3], f2[3];
    tangent_after(tube, 0, in);
    first_frame(in, f1, f2);
    for (int i = 0; i < tube->points; i++) {
        section *s = &sections[i];
        bool     inner = i > 0 && i + 1 < tube->points;
        for (int k = 0; k < 3; k++) out[k] = in[k];
        if (inner) tangent_after(tube, i, out);
        for (int k = 0; k < 3; k++)
            s->centre[k] = tube->centre[3 * (size_t)i + (size_t)k], s->normal[k] = in[k] + out[k];
        // half the sum of two unit vectors is as long as the cosine of half their angle, however small that is
        s->bend = 2 * acos(fmin(1, vec3_norm(s->normal) / 2)) * 180 / M_PI;
        if (!(s->bend <= SHARPEST))
            return fem_fail(
                FEM_BAD_INPUT,
                "point %d (from 0): a bend of %.0f degrees; at most %.0f in one point, so spread it over more points",
                i, s->bend, SHARPEST);
        vec3_normalize(s->normal);
        for (int k = 0; k < 3; k++) s->e1[k] = f1[k], s->e2[k] = f2[k];
        vec3_axpy(s->e1, -vec3_dot(f1, s->normal) / vec3_dot(in, s->normal), in); // along the tube into the mitre plane
        vec3_axpy(s->e2, -vec3_dot(f2, s->normal) / vec3_dot(in, s->normal), in);
        for (int k = 0; k < 3; k++) s->e1[k] *= tube->radius[i], s->e2[k] *= tube->radius[i];
        // f - (out . f) / (1 + in . out) (in + out): the rotation from `in` to `out` of a vector across `in`
        double share = vec3_dot(out, f1) / (1 + vec3_dot(in, out));
        vec3_axpy(f1, -share, in), vec3_axpy(f1, -share, out);
        vec3_axpy(f1, -vec3_dot(f1, out), out); // what rounding left
        vec3_normalize(f1);
        vec3_cross(f2, out, f1);
        for (int k = 0; k < 3; k++) in[k] = out[k];
    }
    return FEM_OK;
}

// All of section b must lie ahead of the plane of section a (sign 1) or behind it (sign -1). A section reaches
// |(n.e1, n.e2)| along n, so this is exact for round sections.
static fem_status check_room(const section *sections, int a, int b, double sign) {
    const section *s = &sections[a], *t = &sections[b];
    double         d[3];
    vec3_sub(d, t->centre, s->centre);
    double ahead = sign * vec3_dot(s->normal, d), reach = hypot(vec3_dot(s->normal, t->e1), vec3_dot(s->normal, t->e2));
    if (ahead > 1.001 * reach) return FEM_OK;
    return fem_fail(
        FEM_BAD_INPUT,
        "point %d (from 0): the bend of %.0f degrees is too tight, cells between points %d and %d would turn over: "
        "radii of at most %.2g times these, or points %.2g times as far apart, would do",
        a, s->bend, a < b ? a : b, a < b ? b : a, 0.99 * ahead / reach, 1.01 * reach / ahead);
}

static fem_status check_bends(const fem_tube *tube, const section *sections) {
    fem_status status = FEM_OK;
    for (int i = 0; i + 1 < tube->points; i++) {
        FEM_TRY(check_room(sections, i, i + 1, 1));
        FEM_TRY(check_room(sections, i + 1, i, -1));
    }
done:
    return status;
}

// ---- the mesh --------------------------------------------------------------------------------------------------

// Cells along the part between points i and i + 1. The total of all cells is counted before it is used.
static fem_status count_layers(const fem_tube *tube, fem_element type, int *layers, int *total) {
    fem_status status = FEM_OK;
    double     sum = 0, quads = pattern_quads(tube->rings);
    for (int i = 0; i + 1 < tube->points; i++) {
        double length = vec3_distance(tube->centre + 3 * (size_t)(i + 1), tube->centre + 3 * (size_t)i);
        double wanted =
            tube->segment > 0 ? tube->segment : (tube->radius[i] / 2 + tube->radius[i + 1] / 2) / tube->rings;
        double cells = fmax(1, round(length / wanted));
        sum += cells;
        FEM_TRY(fem_generate_count(sum * quads, type));
        layers[i] = (int)cells;
    }
    *total = (int)sum;
done:
    return status;
}

static void place_section(const section *s, const section *next, double t, const pattern *p, double *x) {
    for (int i = 0; i < p->points; i++, x += 3) {
        double X = p->point[2 * i], Y = p->point[2 * i + 1];
        for (int k = 0; k < 3; k++)
            x[k] = (1 - t) * (s->centre[k] + X * s->e1[k] + Y * s->e2[k]) +
                   t * (next->centre[k] + X * next->e1[k] + Y * next->e2[k]);
    }
}

static void fill_mesh(const fem_tube *tube, const section *sections, const int *layers, const pattern *p,
                      fem_mesh *mesh) {
    double *x = mesh->vertices;
    size_t  stride = 3 * (size_t)p->points;
    place_section(&sections[0], &sections[1], 0, p, x);
    for (int i = 0; i + 1 < tube->points; i++)
        for (int layer = 1; layer <= layers[i]; layer++)
            place_section(&sections[i], &sections[i + 1], (double)layer / layers[i], p, x += stride);
    int *v = mesh->elements, cells = mesh->element_count / p->quads;
    for (int layer = 0; layer < cells; layer++)
        for (int q = 0; q < p->quads; q++)
            for (int up = 0; up < 2; up++)
                for (int k = 0; k < 4; k++) *v++ = (layer + up) * p->points + p->quad[4 * q + k];
}

fem_status fem_generate_tube(fem_mesh *mesh, fem_element type, const fem_tube *tube) {
    fem_status     status = FEM_OK;
    fem_mesh       hexahedra = {0};
    pattern        disc = {0};
    section       *sections = NULL;
    int           *layers = NULL, total = 0;
    unsigned char *mark = NULL;
    FEM_TRY(check_tube(tube));
    sections = fem_alloc((size_t)tube->points, sizeof *sections);
    layers = fem_alloc((size_t)tube->points, sizeof *layers);
    if (!sections || !layers) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a tube of %d points", tube->points);
        goto done;
    }
    FEM_TRY(lay_sections(tube, sections));
    FEM_TRY(check_bends(tube, sections));
    FEM_TRY(count_layers(tube, type, layers, &total));
    FEM_TRY(pattern_create(&disc, tube->rings));
    // a section has at most 9/4 as many points as quads: the count of cells bounds that of vertices
    FEM_TRY(fem_mesh_allocate(&hexahedra, FEM_H8, disc.points * (total + 1), disc.quads * total));
    fill_mesh(tube, sections, layers, &disc, &hexahedra);
    mark = fem_calloc((size_t)hexahedra.vertex_count, sizeof *mark);
    if (!mark) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", hexahedra.vertex_count);
        goto done;
    }
    for (int v = 0; v < hexahedra.vertex_count; v++) {
        if (v < disc.points) mark[v] |= ROOT;
        if (v >= disc.points * total) mark[v] |= TIP;
        if (pattern_on_rim(&disc, tube->rings, v % disc.points)) mark[v] |= SIDE;
    }
    FEM_TRY(fem_generate_set(&hexahedra, "root", mark, ROOT));
    FEM_TRY(fem_generate_set(&hexahedra, "tip", mark, TIP));
    FEM_TRY(fem_generate_set(&hexahedra, "surface", mark, SIDE));
    FEM_TRY(fem_generate_finish(mesh, type, &hexahedra));
done:
    fem_free(sections), fem_free(layers), fem_free(mark);
    pattern_destroy(&disc);
    fem_mesh_destroy(&hexahedra);
    return status == FEM_BAD_INPUT ? fem_fail_prefix(status, "tube: ") : status;
}

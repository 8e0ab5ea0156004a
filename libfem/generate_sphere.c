// Ball: a cube of cells with rounded sides in the middle, and shells of cells between it and the sphere.
// A cube of cells pressed into a ball has eight cells with three edges in one tangent plane, and their Jacobian at that
// corner goes to zero under refinement; with shells around, three cells meet along the edge to each corner instead.
#include "libfem/generate.h"

enum { SURFACE = 1 << 6 };

// m cells across the cube and b shells around it, m + 2 b = cells. Points of shell l > 0 lie above the surface points
// of the cube; they are numbered shell by shell, behind those of the cube.
typedef struct ball {
    int  m, b;
    int  surface_count;
    int *surface; // (m+1)^3: number among the surface points, or -1
} ball;

static int lattice(const ball *s, const int index[3]) {
    return (index[2] * (s->m + 1) + index[1]) * (s->m + 1) + index[0];
}

static int vertex_at(const ball *s, const int index[3], int shell) {
    int inner = (s->m + 1) * (s->m + 1) * (s->m + 1), point = lattice(s, index);
    return shell == 0 ? point : inner + (shell - 1) * s->surface_count + s->surface[point];
}

// About a fifth of the cells across on each side; none where they would leave too little for the cube.
static int shells(int cells) { return cells < 4 ? 0 : cells < 8 ? 1 : (cells + 2) / 5; }

static fem_status ball_create(ball *s, int cells) {
    int b = shells(cells);
    *s = (ball){.m = cells - 2 * b, .b = b};
    int n = s->m + 1;
    s->surface = fem_alloc((size_t)n * (size_t)n * (size_t)n, sizeof *s->surface);
    if (!s->surface) return fem_fail(FEM_NO_MEMORY, "no memory for a ball of %d cells", cells);
    int point = 0;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                bool on = i == 0 || j == 0 || k == 0 || i == s->m || j == s->m || k == s->m;
                s->surface[point++] = on ? s->surface_count++ : -1;
            }
    return FEM_OK;
}

static double ball_cells(int cells) {
    int    b = shells(cells);
    double m = cells - 2 * b;
    return m * m * m + 6 * m * m * b;
}

// Position of a lattice point on shell 0 .. b in the unit ball.
static void place(const ball *s, const int index[3], int shell, double point[3]) {
    double grid[3], round_point[3], size = s->b > 0 ? 0.9 * s->m / (s->m + 2 * s->b) : 1;
    double t = s->b > 0 ? (double)shell / s->b : 0;
    for (int k = 0; k < 3; k++) grid[k] = 2.0 * index[k] / s->m - 1;
    fem_generate_rounded(3, grid, s->b > 0 ? 0.5 : 1, point);
    fem_generate_rounded(3, grid, 1, round_point);
    for (int k = 0; k < 3; k++) point[k] = (1 - t) * size * point[k] + t * round_point[k];
}

static void fill_vertices(const ball *s, const double centre[3], double radius, fem_mesh *mesh, unsigned char *mark) {
    int index[3];
    for (index[2] = 0; index[2] <= s->m; index[2]++)
        for (index[1] = 0; index[1] <= s->m; index[1]++)
            for (index[0] = 0; index[0] <= s->m; index[0]++) {
                unsigned sides = 0;
                for (int k = 0; k < 3; k++) {
                    if (index[k] == 0) sides |= SURFACE | 1u << 2 * k;
                    if (index[k] == s->m) sides |= SURFACE | 2u << 2 * k;
                }
                for (int shell = 0; shell <= (sides ? s->b : 0); shell++) {
                    double point[3];
                    int    v = vertex_at(s, index, shell);
                    place(s, index, shell, point);
                    for (int k = 0; k < 3; k++)
                        mesh->vertices[3 * (size_t)v + (size_t)k] = centre[k] + radius * point[k];
                    if (shell == s->b) mark[v] = (unsigned char)sides;
                }
            }
}

// Cells on the shells over one side of the cube: `axis` 0..2, `high` its far side.
static int *fill_side(const ball *s, int axis, int high, int *v) {
    int p = (axis + 1) % 3, q = (axis + 2) % 3; // (p, q) is counter-clockwise as seen from the high side
    for (int j = 0; j < s->m; j++)
        for (int i = 0; i < s->m; i++)
            for (int shell = 0; shell < s->b; shell++)
                for (int up = 0; up < 2; up++)
                    for (int k = 0; k < 4; k++) {
                        static const int around[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
                        int              corner = high ? k : (4 - k) % 4, index[3];
                        index[axis] = high ? s->m : 0;
                        index[p] = i + around[corner][0];
                        index[q] = j + around[corner][1];
                        *v++ = vertex_at(s, index, shell + up);
                    }
    return v;
}

static void fill_elements(const ball *s, fem_mesh *mesh) {
    static const int at[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                 {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    int             *v = mesh->elements;
    for (int k = 0; k < s->m; k++)
        for (int j = 0; j < s->m; j++)
            for (int i = 0; i < s->m; i++)
                for (int c = 0; c < 8; c++) *v++ = lattice(s, (int[3]){i + at[c][0], j + at[c][1], k + at[c][2]});
    for (int side = 0; side < 6; side++) v = fill_side(s, side / 2, side % 2, v);
}

static fem_status check_ball(const double centre[3], double radius, int cells) {
    for (int k = 0; k < 3; k++)
        if (!isfinite(centre[k]))
            return fem_fail(FEM_BAD_INPUT, "%c of its centre is %g, expected a finite number", "xyz"[k], centre[k]);
    if (!(radius > 0) || !(radius < 1e100)) return fem_fail(FEM_BAD_INPUT, "its radius is %g, expected > 0", radius);
    if (cells < 1 || cells > 1000) return fem_fail(FEM_BAD_INPUT, "%d cells across, expected 1 to 1000", cells);
    return FEM_OK;
}

fem_status fem_generate_sphere(fem_mesh *mesh, fem_element type, const double centre[3], double radius, int cells) {
    fem_status     status = FEM_OK;
    fem_mesh       hexahedra = {0};
    ball           s = {0};
    unsigned char *mark = NULL;
    FEM_TRY(check_ball(centre, radius, cells));
    FEM_TRY(fem_generate_count(ball_cells(cells), type));
    FEM_TRY(ball_create(&s, cells));
    int inner = (s.m + 1) * (s.m + 1) * (s.m + 1);
    FEM_TRY(fem_mesh_allocate(&hexahedra, FEM_H8, inner + s.b * s.surface_count, (int)ball_cells(cells)));
    mark = fem_calloc((size_t)hexahedra.vertex_count, sizeof *mark);
    if (!mark) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", hexahedra.vertex_count);
        goto done;
    }
    fill_vertices(&s, centre, radius, &hexahedra, mark);
    fill_elements(&s, &hexahedra);
    FEM_TRY(fem_generate_set(&hexahedra, "surface", mark, SURFACE));
    FEM_TRY(fem_generate_sides(&hexahedra, mark));
    FEM_TRY(fem_generate_finish(mesh, type, &hexahedra));
done:
    fem_free(mark), fem_free(s.surface);
    fem_mesh_destroy(&hexahedra);
    return status == FEM_BAD_INPUT ? fem_fail_prefix(status, "sphere: ") : status;
}

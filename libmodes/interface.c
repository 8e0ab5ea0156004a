// Unit wrenches on an interface: what the bodies that hang on it can do to this one.
//
// With areas a_p, A = sum a_p, middle c = sum a_p x_p / A and d_p = x_p - c:
//     force e_k:   f_p = a_p / A e_k                      (sum of forces e_k, no moment about c)
//     moment e_k:  f_p = a_p (J^-1 e_k) x d_p             (no force, since sum a_p d_p = 0; moment e_k)
//     J = sum a_p (|d_p|^2 I - d_p d_p^T)
#include "libmodes/krylov_internal.h"

#include <string.h>

typedef struct interface_moments {
    double area, centre[3], J[9], radius; // radius of gyration
} interface_moments;

static double area_of(const modes_interface *f, int p) { return f->areas ? f->areas[p] : 1; }

static fem_status measure(const modes_problem *problem, const modes_interface *f, interface_moments *m) {
    const fem_mesh *mesh = problem->mesh;
    *m = (interface_moments){0};
    if (f->count < 3) return fem_fail(FEM_BAD_INPUT, "an interface of %d points: 3 or more carry moments", f->count);
    bool held = true;
    for (int p = 0; p < f->count; p++) {
        int v = f->vertices[p];
        if (v < 0 || v >= mesh->vertex_count)
            return fem_fail(FEM_BAD_INPUT, "point %d of an interface is vertex %d, expected 0 to %d", p, v,
                            mesh->vertex_count - 1);
        double a = area_of(f, p);
        if (!(a > 0 && isfinite(a)))
            return fem_fail(FEM_BAD_INPUT, "point %d of an interface has the area %g, expected > 0", p, a);
        m->area += a;
        vec3_axpy(m->centre, a, mesh->vertices + 3 * (size_t)v);
        for (int i = 0; i < 3; i++) held = held && problem->fixed && problem->fixed[3 * (size_t)v + (size_t)i];
    }
    if (held)
        return fem_fail(FEM_BAD_INPUT, "every point of an interface is held: loads on it would not move the body");
    for (int i = 0; i < 3; i++) m->centre[i] /= m->area;
    for (int p = 0; p < f->count; p++) {
        double d[3], a = area_of(f, p);
        vec3_sub(d, mesh->vertices + 3 * (size_t)f->vertices[p], m->centre);
        for (int i = 0; i < 9; i++) m->J[i] += a * ((i % 4 == 0 ? vec3_dot(d, d) : 0) - d[i / 3] * d[i % 3]);
    }
    double trace = m->J[0] + m->J[4] + m->J[8]; // 2 sum a |d|^2
    m->radius = sqrt(trace / (2 * m->area));
    if (!(mat3_det(m->J) > 1e-12 * trace * trace * trace))
        return fem_fail(FEM_BAD_INPUT, "the %d points of an interface lie on a line: they carry no moment about it",
                        f->count);
    return FEM_OK;
}

fem_status modes_interface_wrenches(const modes_problem *problem, const modes_interface *f, double *F) {
    interface_moments m;
    size_t            n = 3 * (size_t)problem->mesh->vertex_count;
    fem_status        status = measure(problem, f, &m);
    double            inverse[9];
    if (status != FEM_OK) return status;
    memset(F, 0, 6 * n * sizeof *F);
    for (size_t c = 0; f->wrenches && c < 6; c++)
        for (int p = 0; p < f->count; p++)
            memcpy(F + c * n + 3 * (size_t)f->vertices[p], f->wrenches + 3 * ((size_t)f->count * c + (size_t)p),
                   3 * sizeof *F);
    if (f->wrenches) return FEM_OK;
    mat3_inverse(inverse, m.J);
    for (int p = 0; p < f->count; p++) {
        size_t v = 3 * (size_t)f->vertices[p];
        double a = area_of(f, p), d[3];
        vec3_sub(d, problem->mesh->vertices + v, m.centre);
        for (size_t k = 0; k < 3; k++) {
            const double turn[3] = {inverse[k], inverse[3 + k], inverse[6 + k]};
            double       force[3];
            vec3_cross(force, turn, d);
            F[k * n + v + k] += a / m.area;
            vec3_axpy(F + (3 + k) * n + v, a, force);
        }
    }
    return FEM_OK;
}

// Under an acceleration of 1 the subtree pulls with its mass, and turns with mass times lever.
fem_status modes_interface_scale(const modes_problem *problem, const modes_interface *f, double *force,
                                 double *moment) {
    interface_moments m;
    fem_status        status = measure(problem, f, &m);
    if (status != FEM_OK) return status;
    if (!(f->mass > 0 && isfinite(f->mass)))
        return fem_fail(FEM_BAD_INPUT, "the mass on an interface is %g, expected > 0", f->mass);
    if (!(f->lever >= 0 && isfinite(f->lever)))
        return fem_fail(FEM_BAD_INPUT, "the lever of an interface is %g, expected >= 0", f->lever);
    *force = f->mass;
    *moment = f->mass * (f->lever > 0 ? f->lever : m.radius);
    return FEM_OK;
}

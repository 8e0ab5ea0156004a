// Contact of one domain of a tree, as a load for the next step.
#include "libsolver/contact_internal.h"
#include "libsolver/tree.h"

#include <string.h>

int solver_contact_load_domain(solver_contact *contact, const solver_frame_motion *frame, const double *q,
                               const double *dq, double ahead, double lag, double *work, double *load) {
    static const double zero[3] = {0};
    int                 r = solver_contact_modes(contact);
    double              p[3], Q[9], turn[9], angle[3], *later = work, *v = work + r;
    for (int i = 0; i < 3; i++) {
        p[i] = frame->p[i] + ahead * frame->v[i];
        angle[i] = ahead * frame->w[i];
    }
    mat3_exp(turn, angle);
    mat3_mul(Q, frame->Q, turn);
    for (int l = 0; l < r; l++) later[l] = q[l] + ahead * dq[l];
    mat3_mul_vec_t(v, Q, frame->v);
    solver_contact_view view = {.elapsed = ahead,
                                .lag = lag,
                                .p = p,
                                .Q = Q,
                                .axes = Q,
                                .v = v,
                                .w = frame->w,
                                .centre = zero,
                                .q = later,
                                .dq = dq};
    memset(load, 0, (6 + (size_t)r) * sizeof *load);
    solver_contact_evaluate(contact, &view, 0, 0, load, NULL);
    return solver_contact_get_report(contact).contacts;
}

// Contact of the domains of a tree, implicit: solved together with all else that moves them.
//
// A pass gives accelerations acc = (a; al; ddq) of frame and modes. At the end of the step x = x_0 + h v_0 + h^2/2 acc
// and v = v_0 + h acc, and with acc' of the pass before
//     contact = f(x(acc'), v(acc')) - S (acc - acc'),   S = h^2/2 K + h D,
// K = -df/dx and D = -df/dv made symmetric (reduced_internal.h): S is inertia to those that push the domain. As for one
// body the springs are damped by h k/2 besides, and contacts stay from pass to pass as long as they push in the answer.
// The force is constant over the step [Kane et al. 1999].
// In the first pass acc' is 0 for frames; for modes it is such that they go on as in the step before (tree_step.c).
#include "libsolver/reduced_internal.h"
#include "libsolver/tree_internal.h"

#include <string.h>

struct tree_contact {
    solver_contact     *contact;
    bool                again;  // a pass of this step went before
    solver_frame_motion start;  // of the part of the step
    double             *guess;  // 6 + r: acc'
    double             *f, *E;  // 6 + r, (6 + r) x (6 + r): force and torque before modes
    double             *q, *dq; // r: at the end of the step
};

void tree_contact_destroy(tree_contact *c) {
    if (!c) return;
    fem_free(c->guess), fem_free(c->f), fem_free(c->E), fem_free(c->q), fem_free(c->dq);
    fem_free(c);
}

fem_status solver_tree_set_contact(solver_tree *tree, int instance, solver_contact *contact) {
    fem_status    status = FEM_OK;
    tree_contact *c = NULL;
    if (instance < 0 || instance >= tree->count)
        return fem_fail(FEM_BAD_INPUT, "domain %d, expected 0 to %d", instance, tree->count - 1);
    tree_domain *domain = &tree->domains[tree->sorted[instance]];
    size_t       r = (size_t)domain->r, n = r + 6;
    if (contact) {
        if (tree->options.subtree != SOLVER_ARTICULATED || tree->options.integrator != SOLVER_TREE_MIDPOINT)
            return fem_fail(FEM_BAD_INPUT, "contact in a tree needs solver.subtree articulated and the midpoint rule");
        FEM_TRY(solver_check_contact(contact, domain->r));
        c = fem_calloc(1, sizeof *c);
        if (c) {
            c->contact = contact;
            c->guess = fem_calloc(n, sizeof *c->guess);
            c->f = fem_calloc(n, sizeof *c->f);
            c->E = fem_calloc(n * n, sizeof *c->E);
            c->q = fem_calloc(r + 1, sizeof *c->q);
            c->dq = fem_calloc(r + 1, sizeof *c->dq);
            if (!domain->contact_S) domain->contact_S = fem_calloc(n * (n + 1) / 2, sizeof *domain->contact_S);
        }
        if (!c || !c->guess || !c->f || !c->E || !c->q || !c->dq || !domain->contact_S) {
            tree_contact_destroy(c);
            return fem_fail(FEM_NO_MEMORY, "contact of domain %d", instance);
        }
    }
    tree_contact_destroy(domain->contact);
    domain->contact = c;
    tree->touching = false;
    for (int i = 0; i < tree->count; i++) tree->touching = tree->touching || tree->domains[i].contact;
    if (!c && domain->contact_S) memset(domain->contact_S, 0, n * (n + 1) / 2 * sizeof *domain->contact_S);
done:
    return status;
}

void tree_contact_start(solver_tree *tree) {
    double h = tree->options.time_step;
    for (int i = 0; tree->touching && i < tree->count; i++) {
        const tree_domain *domain = &tree->domains[i];
        tree_contact      *c = domain->contact;
        if (!c) continue;
        solver_tree_frame(tree, domain->user, &c->start);
        c->again = false;
        memset(c->guess, 0, 6 * sizeof *c->guess);
        for (size_t l = 0; l < (size_t)domain->r; l++)
            c->guess[6 + l] = tree->accelerations_known ? -tree->last_step / h * tree->ddq[domain->offset + l] : 0;
    }
}

// Lower triangle row by row, modes before force before torque, as solver_tree_set_resistance has it.
static void reorder(int r, const double *E, double *S) {
    int n = r + 6;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            int row = i < r ? 6 + i : i - r, column = j < r ? 6 + j : j - r;
            *S++ = E[row * n + column];
        }
}

// Contact of one domain into its contact_S, and f + S (acc' - gravity) into wrench and modal forces: A has no gravity.
static void domain_contact(solver_tree *tree, const tree_domain *domain, double elapsed) {
    static const double zero[3] = {0};
    tree_contact       *c = domain->contact;
    tree_lanes         *lanes = tree->blocks[domain->block].lanes;
    const double       *q = tree->q + domain->offset, *dq = tree->dq + domain->offset;
    double h = tree->options.time_step, Q[9], end[9], turn[9], p[3], a[3], v[3], velocity[3], w[3], angle[3], g[3];
    int    r = domain->r, n = r + 6;
    lane_get(9, lanes->Q, domain->lane, Q);
    mat3_mul_vec(a, Q, c->guess);
    for (int i = 0; i < 3; i++) {
        p[i] = c->start.p[i] + h * c->start.v[i] + h * h / 2 * a[i];
        velocity[i] = c->start.v[i] + h * a[i];
        w[i] = c->start.w[i] + h * c->guess[3 + i];
        angle[i] = h * c->start.w[i] + h * h / 2 * c->guess[3 + i];
    }
    mat3_exp(turn, angle);
    mat3_mul(end, c->start.Q, turn);
    mat3_mul_t_vec(v, end, velocity);
    for (int l = 0; l < r; l++) {
        c->q[l] = q[l] + h * dq[l] + h * h / 2 * c->guess[6 + l];
        c->dq[l] = dq[l] + h * c->guess[6 + l];
    }
    solver_contact_view view = {.elapsed = elapsed,
                                .lag = h / 2,
                                .again = c->again,
                                .p = p,
                                .Q = end,
                                .axes = Q,
                                .v = v,
                                .w = w,
                                .centre = zero,
                                .q = c->q,
                                .dq = c->dq};
    memset(c->f, 0, (size_t)n * sizeof *c->f);
    memset(c->E, 0, (size_t)n * (size_t)n * sizeof *c->E);
    solver_contact_evaluate(c->contact, &view, h * h / 2, h, c->f, c->E);
    reorder(r, c->E, domain->contact_S);
    c->again = true;
    mat3_mul_t_vec(g, Q, tree->gravity);
    vec3_axpy(c->guess, -1, g);
    dense_gemv_add(n, n, 1, c->E, c->guess, c->f);
    vec3_axpy(c->guess, 1, g);
    for (int i = 0; i < 6; i++) lanes->wrench[i][domain->lane] += c->f[i];
    for (int l = 0; l < r; l++) tree->modal[domain->offset + (size_t)l] += c->f[6 + l];
}

void tree_gather_contact(solver_tree *tree) {
    double elapsed = tree->time - tree->kept.time + tree->options.time_step;
    for (int i = 0; tree->touching && i < tree->count; i++)
        if (tree->domains[i].contact) domain_contact(tree, &tree->domains[i], elapsed);
}

// acc of the pass becomes acc' of the next.
bool tree_contact_settle(solver_tree *tree) {
    bool settled = true;
    for (int i = 0; tree->touching && i < tree->count; i++) {
        const tree_domain *domain = &tree->domains[i];
        tree_contact      *c = domain->contact;
        tree_lanes        *lanes = tree->blocks[domain->block].lanes;
        double             Q[9], g[3];
        int                n = domain->r + 6;
        if (!c) continue;
        if (solver_contact_pull(c->contact) > 0) settled = false;
        lane_get(9, lanes->Q, domain->lane, Q);
        mat3_mul_t_vec(g, Q, tree->gravity);
        for (int k = 0; k < n; k++) {
            double now = k < 6 ? lanes->A[k][domain->lane] + (k < 3 ? g[k] : 0)
                               : tree->ddq_trial[domain->offset + (size_t)(k - 6)];
            c->f[k] = now - c->guess[k]; // how far the answer is from what was evaluated
            c->guess[k] = now;
        }
        solver_contact_settle(c->contact, c->f, c->f + 6);
    }
    return settled;
}

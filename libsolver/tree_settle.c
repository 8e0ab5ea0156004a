// Does a step do what it should? Where forces are the mean over the way of the step, when passes have settled, and the
// way back to the state before a step that has to be taken in smaller ones.
//
// What limits the midpoint rule is not the frequency of stiff modes but how far they bend in a step. Two things happen.
// The force in the middle is not what the energy changes by, V(q + d) - V(q) != d . f(q + d/2) for curved f: a stiff
// mode gains energy from step to step. The mean of f over the way does balance, and for the cubic forces of StVK two
// Gauss points give it exactly (the average vector field method, Quispel and McLaren 2008). And two passes of Newton's
// method do not get there from a poor guess; then more are made, and when those do not settle the step is halved.
//
// The inertia of the tree does the same with the speeds of such modes: then the energy of the whole step is balanced
// (tree_balance.c). A little stiffness damping takes more than inertia gives, and to balance costs; so this is done
// only where domains have less than LIGHT times the step. What a driven root does within a step is not known well
// enough for it: there, modes that turn by more than a radian are damped by LIGHT times the step instead, which takes
// 4% from the stiffest and next to nothing from slow ones.
//
// Lengths are taken with the diagonal of K(0), the stiffness of the modes at rest, and M/h^2.
#include "libsolver/tree_internal.h"

#include <string.h>

static const double LIGHT = 0.01;

// v^T M v and v^T K(0) v of one domain, diagonals only, scaled as in tree_up.c
typedef struct length {
    double mass, stiffness;
} length;

static length length_of(const solver_tree *tree, const tree_domain *domain, const double *to, const double *from) {
    const double *M = tree->classes[domain->class_index].inertia->Mqq, *K0 = tree->class_K0[domain->class_index];
    length        sum = {0};
    double        s = domain->scale, s3 = s * s * s;
    for (int l = 0; l < domain->r; l++) {
        double d = to[domain->offset + (size_t)l] - from[domain->offset + (size_t)l];
        sum.mass += M[l * (domain->r + 1)] * d * d;
        sum.stiffness += K0[l] * d * d;
    }
    sum.mass *= s3 * s * s;
    sum.stiffness *= s3 * domain->stiffness;
    return sum;
}

// int rho |X|^2 of one domain at rest, about its frame: what lengths of motion are measured against.
static double size_of(const solver_tree *tree, const tree_domain *domain) {
    const double *Z0 = tree->classes[domain->class_index].inertia->Z0;
    double        s = domain->scale;
    return (Z0[0] + Z0[4] + Z0[8]) * s * s * s * s * s;
}

void tree_choose_means(solver_tree *tree, const tree_evaluation *at) {
    double h = tree->options.time_step, theta = tree->options.theta;
    bool   may_balance = tree->options.subtree == SOLVER_ARTICULATED && tree->options.passes > 1 && theta == 0.5;
    for (int i = 0; at->spread > 0 && i < tree->count; i++) {
        const tree_domain *domain = &tree->domains[i];
        tree_block        *block = &tree->blocks[domain->block];
        tree_root         *root = &tree->roots[domain->top];
        bool               light = domain->damping_stiffness < LIGHT * h;
        if (domain->r == 0 || block->calm > 0 || (block->mean && (!light || root->unresolved))) continue;
        length way = length_of(tree, domain, at->q, at->q_from);
        double turn2 = h * h * way.stiffness / way.mass; // square of what the modes turn by in the step, rad
        // less than a ten-thousandth of the domain's size
        if (!(way.mass > 1e-8 * theta * theta * size_of(tree, domain))) continue;
        if (!(turn2 > 0.05)) continue;
        block->mean = true;
        if (!light || !may_balance) continue;
        if (root->kind != SOLVER_ROOT_DRIVEN)
            tree->balance = root->unresolved = true;
        else if (turn2 > 1)
            block->calm = LIGHT * h;
    }
    for (int k = 0; tree->balance && k < tree->block_count; k++) tree->blocks[k].mean = true;
}

// Passes converge linearly, mostly by a factor of 20 each: when the last two changed the whole tree by c1 and c2, what
// is left is about rho / (1 - rho), rho = c2 / c1, of the last change. That must be a hundredth of the way of each
// domain, a tenth of that in steps whose energy is balanced. No such credit above rho = 1/2, before the
// second pass, and for domains that changed by more than a tenth of their way. (Quotients of single domains say less:
// what the first guess missed them by is chance.) A change by 1e-10 of a domain's size is rounding: a body that falls
// does not deform, and its passes would never settle.
//
// In steps whose energy is balanced, what passes leave is also held against the energy. Forces that are off by H x do
// work x.H d on the way d of a domain, at most sqrt(x.H x d.H d), and nothing else changes the energy there: the sum
// over the domains must be less than WORK of the sum of d.H d, which is twice the energy of slow modes and up to eight
// times that of stiff ones (from q to -q). A part of each domain's own way is not enough: modes that hold most of the
// energy would let it wander by a thousandth in each step.
static const double WORK = 1e-5;

bool tree_settled(solver_tree *tree) {
    double h = tree->options.time_step, moved = 0, change = 0, credit = 1, part = tree->balance ? 1e-6 : 1e-4, work = 0;
    for (int i = 0; i < tree->count; i++) {
        tree_domain *domain = &tree->domains[i];
        length       way = length_of(tree, domain, tree->q_trial, tree->q),
               last = length_of(tree, domain, tree->q_trial, tree->q_pass);
        domain->change = last.mass / (h * h) + last.stiffness, domain->moved = way.mass / (h * h) + way.stiffness;
        moved += domain->moved, change += domain->change;
    }
    double rho = sqrt(change / tree->change); // NaN or infinite where it is not known
    if (rho < 0.5) credit = rho / (1 - rho) * (rho / (1 - rho));
    tree->change = change;
    for (int k = 0; k < tree->block_count; k++)
        if (tree->blocks[k].shifts > 0) return false;
    for (int i = 0; i < tree->count; i++) {
        const tree_domain *domain = &tree->domains[i];
        double             enough = part * (domain->moved + 1e-4 * moved); // one that hardly moves need not be exact
        double             rounding = 1e-20 * size_of(tree, domain) / (h * h);
        enough += rounding;
        double left = (domain->change <= 100 * enough ? credit : 1) * domain->change;
        if (!(left <= enough)) return false; // written so that what is not finite has not settled
        if (left > rounding) work += sqrt(left * domain->moved);
    }
    return !tree->balance || work <= WORK * moved;
}

// ---- the state before -------------------------------------------------------------------------------------------

static void transfer(solver_tree *tree, tree_kept *kept, bool back) {
    double *state[3] = {tree->q, tree->dq, tree->ddq}, *copy[3] = {kept->q, kept->dq, kept->ddq};
    size_t  bytes = (size_t)tree->dofs * sizeof(double);
    for (int k = 0; k < 3; k++) memcpy(back ? state[k] : copy[k], back ? copy[k] : state[k], bytes);
    for (int k = 0; k < tree->root_count; k++)
        if (back)
            tree->roots[k].state = tree->roots[k].kept;
        else
            tree->roots[k].kept = tree->roots[k].state;
    for (int k = 0; k < tree->spring_count; k++) {
        tree_spring *spring = &tree->springs[k];
        for (int i = 0; i < 3; i++)
            if (back)
                spring->force[i] = spring->kept[i], spring->acceleration[i] = spring->kept[3 + i];
            else
                spring->kept[i] = spring->force[i], spring->kept[3 + i] = spring->acceleration[i];
    }
}

void tree_keep(solver_tree *tree) {
    tree->kept.time = tree->time, tree->kept.last_step = tree->last_step;
    tree->kept.accelerations_known = tree->accelerations_known;
    transfer(tree, &tree->kept, false);
}

void tree_bring_back(solver_tree *tree) {
    tree->time = tree->kept.time, tree->last_step = tree->kept.last_step;
    tree->accelerations_known = tree->kept.accelerations_known;
    transfer(tree, &tree->kept, true);
}

// The answer of the tree to loads alone, with the matrices that a pass up has left: its T, the factor of its H, and the
// inertia of its free roots. One domain after the other; O(domains).
#include "libsolver/tree_internal.h"

#include <string.h>

// What the parent feels of b, minus the wrench on domain i.
void tree_vector_lift(const solver_tree *tree, int i, double *all_modal, double (*all_b)[6]) {
    const tree_domain      *domain = &tree->domains[i], *parent = &tree->domains[domain->parent];
    const domain_interface *interface = &tree->classes[parent->class_index].interfaces[domain->interface];
    const tree_block       *block = &tree->blocks[domain->block];
    size_t                  stride = (size_t)interface->stride;
    const double           *b = all_b[i];
    double                  R[9], x[3], h[6], t[3], *above = all_b[domain->parent];
    lane_get(9, block->lanes->R, domain->lane, R);
    lane_get(3, block->lanes->x, domain->lane, x);
    mat3_mul_vec(h, R, b);
    mat3_mul_vec(h + 3, R, b + 3);
    vec3_cross(t, x, h);
    for (int k = 0; k < 3; k++) above[k] += h[k], above[3 + k] += h[3 + k] + t[k];
    for (size_t k = 0; k < 3; k++) {
        dense_axpy(parent->r, -parent->scale * h[k], interface->a + stride * k, all_modal + parent->offset);
        dense_axpy(parent->r, -h[3 + k], domain->W + stride * k, all_modal + parent->offset);
    }
    double *carried = all_modal + domain->offset + domain->own;
    for (size_t s = 0; s < (size_t)domain->carried; s++) {
        dense_axpy(parent->r, carried[s], domain->P + stride * s, all_modal + parent->offset);
        carried[s] = 0;
    }
}

// One domain on the way up: b holds minus its wrench plus what its children's frames feel, modal its modal forces.
// Afterwards g = D^-1 L^-1 modal has the place of g in E, and the parent has got its part: b + Mrq H^-1 modal
// = b + T L^-1 modal.
void tree_vector_up(const solver_tree *tree, int i, double *all_modal, double (*all_b)[6]) {
    const tree_domain *domain = &tree->domains[i];
    const tree_block  *block = &tree->blocks[domain->block];
    double            *b = all_b[i], *modal = all_modal + domain->offset, *E = block->E + domain->lane;
    int                r = domain->r;
    for (int l = 0; l < r; l++) {
        for (int j = 0; j < l && j < domain->own; j++) modal[l] -= E[TREE_E(l, j)] * modal[j];
        if (l >= domain->own) continue;
        for (int k = 0; k < 6; k++) b[k] += E[TREE_E(r + k, l)] * modal[l];
        E[TREE_E(r + 6, l)] = modal[l] / E[TREE_E(l, l)];
    }
    if (domain->parent >= 0) tree_vector_lift(tree, i, all_modal, all_b);
}

void tree_vector_down(const solver_tree *tree, int i, const double *ddq, double (*A)[6]) {
    const tree_domain      *domain = &tree->domains[i], *parent = &tree->domains[domain->parent];
    const domain_interface *interface = &tree->classes[parent->class_index].interfaces[domain->interface];
    tree_lanes             *lanes = tree->blocks[domain->block].lanes;
    size_t                  stride = (size_t)interface->stride;
    double                  R[9], x[3], t[3], sum[6];
    const double           *above = A[domain->parent], *modes = ddq + parent->offset;
    lane_get(9, lanes->R, domain->lane, R);
    lane_get(3, lanes->x, domain->lane, x);
    vec3_cross(t, above + 3, x);
    for (size_t k = 0; k < 3; k++) {
        sum[k] = above[k] + t[k] + parent->scale * dense_dot(parent->r, interface->a + stride * k, modes);
        sum[3 + k] = above[3 + k] + dense_dot(parent->r, domain->W + stride * k, modes);
    }
    mat3_mul_t_vec(A[i], R, sum);
    mat3_mul_t_vec(A[i] + 3, R, sum + 3);
}

void tree_respond(const solver_tree *tree, double *modal, double (*b)[6], double (*A)[6]) {
    for (int k = tree->count - 1; k >= 0; k--) tree_vector_up(tree, tree->order[k], modal, b);
    for (int k = 0; k < tree->count; k++) {
        int                i = tree->order[k];
        const tree_domain *domain = &tree->domains[i];
        const tree_block  *block = &tree->blocks[domain->block];
        if (domain->parent >= 0)
            tree_vector_down(tree, i, modal, A);
        else if (tree->roots[domain->root].kind == SOLVER_ROOT_FREE)
            tree_free_root(tree, domain, b[i], A[i]);
        else
            memset(A[i], 0, sizeof A[i]);
        tree_carried_down(tree, domain, 0, modal);
        tree_modes(block, domain->lane, A[i], modal + domain->offset);
    }
}

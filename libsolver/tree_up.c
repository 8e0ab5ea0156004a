// The pass from the leaves to the root: each domain's equation with all that hangs on it, solved for its ddq as a
// linear function of the acceleration A = (a; al) of its frame, and what the parent then feels: I A + b is the wrench
// that it exerts on the domain. One domain at a time here, from nothing but its state and its children; kernel_tree.c
// does the same for eight at once.
//
// With the own blocks of inertia.h and, for every child k in the axes of the domain, its inertia I_k, b_k and
// A_k = X A + J ddq + c, X = [1, -[x]; 0, 1], J = [s a; W]:
//     h = I_k c + b_k,   Mrr += X^T I_k X,   Mrq += X^T I_k J,   Mqq += J^T I_k J,   b_r += X^T h,   b_q += J^T h,
//     H = Mqq + c_damping D + c_stiffness K.
// The equation is one symmetric matrix E with r + 7 rows, whose first r are eliminated, H = L D L^T:
//         [ H                       ]        [ L                          ]
//         [ Mrq          Mrr        ]  --->  [ T = Mrq L^-T D^-1    I     ]
//         [ (f_q-b_q)^T  -b_r^T   0 ]        [ g^T                -b^T  . ]
// Then ddq = L^-T (g - T^T A), and what is left, I = Mrr - Mrq H^-1 Mrq^T and b = b_r + Mrq H^-1 (f_q - b_q), is what
// the parent feels: exact (articulated). The lumped levels give the parent a mass point instead: of the subtree's mass
// at the frame's origin (interface) or at the subtree's centre (center), with the subtree's external wrench. Then the
// equation for ddq is P1 eq. 17, with eq. 16 or its equivalent for the centre.
//
// A child with carried coordinates w (ddw = P ddq + bias) eliminates only those before them. What is left then has rows
// for w too, and its parent, with (A_k; ddw), adds the same sums with (J; P), (X; 0) and (c; bias). The lumped levels
// leave these out.
//
// Uniform scale s, all in class coordinates: m s^3; s, S1 s^4; J, Sth, Mqq s^5; f, K s^3.
#include "libsolver/tree_internal.h"

// ---- small things -----------------------------------------------------------------------------------------------

static void unpack(double (*lanes)[LANES], int lane, double M[36]) {
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) M[6 * i + j] = lanes[SYM6(i, j)][lane];
}
static void pack(const double M[36], double (*lanes)[LANES], int lane) {
    for (int i = 0; i < 6; i++)
        for (int j = i; j < 6; j++) lanes[SYM6(i, j)][lane] = 0.5 * (M[6 * i + j] + M[6 * j + i]);
}

// b += [x] a for the rows of two 3 x n matrices that lie in one 6 x n matrix; (element i, column j) at M[i * row + j *
// column]
static void add_moment(int n, int row, int column, const double x[3], double *M) {
    for (int j = 0; j < n; j++) {
        double *m = M + (size_t)j * (size_t)column;
        double  a[3] = {m[0], m[row], m[2 * row]}, t[3];
        vec3_cross(t, x, a);
        for (int i = 0; i < 3; i++) m[(3 + i) * row] += t[i];
    }
}

// M += X^T I X
static void add_shifted(const double I[36], const double x[3], double M[36]) {
    double N[36];
    for (int k = 0; k < 36; k++) N[k] = I[k];
    add_moment(6, 1, 6, x, N); // columns: I X, as (X^T I)^T
    add_moment(6, 6, 1, x, N); // rows
    for (int k = 0; k < 36; k++) M[k] += N[k];
}

// b += X^T h
static void add_shifted_wrench(const double h[6], const double x[3], double b[6]) {
    double t[3];
    vec3_cross(t, x, h);
    for (int i = 0; i < 3; i++) b[i] += h[i], b[3 + i] += h[3 + i] + t[i];
}

// M = diag(R, R) M diag(R, R)^T, h = diag(R, R) h
static void rotate(const double R[9], double M[36], double h[6]) {
    for (int block = 0; block < 4; block++) {
        double A[9], B[9], C[9], *corner = M + 18 * (block / 2) + 3 * (block % 2);
        for (int i = 0; i < 9; i++) A[i] = corner[6 * (i / 3) + i % 3];
        mat3_mul(B, R, A);
        mat3_mul_nt(C, B, R);
        for (int i = 0; i < 9; i++) corner[6 * (i / 3) + i % 3] = C[i];
    }
    double t[6];
    mat3_mul_vec(t, R, h);
    mat3_mul_vec(t + 3, R, h + 3);
    for (int i = 0; i < 6; i++) h[i] = t[i];
}

static void multiply6(const double M[36], const double x[6], double y[6]) {
    for (int i = 0; i < 6; i++) {
        y[i] = 0;
        for (int j = 0; j < 6; j++) y[i] += M[6 * i + j] * x[j];
    }
}

// ---- one domain -------------------------------------------------------------------------------------------------

// The equation of a domain while it is put together.
typedef struct equation {
    double  Mrr[36], b_r[6];
    double  rigid[36], rigid_b[6], outer[6]; // lumped levels
    double *Mrq, *b_q, *H, *f_q;
} equation;

static void own_inertia(const solver_tree *tree, const tree_domain *domain, const tree_evaluation *at, equation *e,
                        tree_work *work) {
    const solver_inertia *inertia = tree->classes[domain->class_index].inertia;
    tree_lanes           *lanes = tree->blocks[domain->block].lanes;
    solver_inertia_blocks blocks = {.Mrq = e->Mrq, .b_q = e->b_q};
    double                w[3], s = domain->scale, s3 = s * s * s, s4 = s3 * s, s5 = s4 * s;
    int                   r = domain->r;
    lane_get(3, lanes->w, domain->lane, w);
    solver_inertia_evaluate(inertia, at->q + domain->offset, at->dq + domain->offset, w, &blocks, work->inertia);
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++)
            e->Mrr[6 * i + j] = blocks.Mrr[6 * i + j] * (i < 3 ? j < 3 ? s3 : s4 : j < 3 ? s4 : s5);
        e->b_r[i] = blocks.b_r[i] * (i < 3 ? s4 : s5);
    }
    for (int l = 0; l < r; l++) {
        for (int i = 0; i < 6; i++) e->Mrq[6 * l + i] *= i < 3 ? s4 : s5;
        e->b_q[l] *= s5;
    }
    for (int k = 0; k < r * r; k++) e->H[k] = s5 * inertia->Mqq[k];
}

// f_q = load - f(q) - K (q_start - q) - D dq_start, H = Mqq + c_damping D + c_stiffness K; D = alpha Mqq + beta K
static void own_forces(const solver_tree *tree, const tree_domain *domain, const tree_evaluation *at, equation *e,
                       tree_work *work) {
    int    r = domain->r;
    size_t offset = domain->offset;
    double s = domain->scale, factor = s * s * s * domain->stiffness;
    double alpha = domain->damping_mass, beta = domain->damping_stiffness + tree->blocks[domain->block].calm;
    if (r == 0) return;
    tree_domain_forces(tree, domain, at, work->f, work->K, work);
    for (int l = 0; l < r; l++) tree->blocks[domain->block].f[l * LANES + domain->lane] = factor * work->f[l];
    dense_gemv_set(r, r, alpha, e->H, at->dq_start + offset, e->f_q);
    for (size_t l = 0; l < (size_t)r; l++)
        work->v[l] = at->q_start[offset + l] - at->q[offset + l] + beta * at->dq_start[offset + l];
    dense_gemv_add(r, r, factor, work->K, work->v, e->f_q);
    for (size_t l = 0; l < (size_t)r; l++) e->f_q[l] = tree->modal[offset + l] - factor * work->f[l] - e->f_q[l];
    double mass = 1 + at->c_damping * alpha, stiff = factor * (at->c_stiffness + at->c_damping * beta);
    for (int k = 0; k < r * r; k++) e->H[k] = mass * e->H[k] + stiff * work->K[k];
}

void tree_carried_up(const solver_tree *tree, const tree_domain *domain, tree_carried_inertia *out) {
    const tree_block *block = &tree->blocks[domain->block];
    const double     *E = block->E + domain->lane;
    int               n = domain->carried, own = domain->own, r = domain->r;
    double            R[9], c[6];
    lane_get(9, block->lanes->R, domain->lane, R);
    lane_get(6, block->lanes->c, domain->lane, c);
    for (int a = 0; a < n; a++) {
        double force[3], torque[3], *column = out->Irw + 6 * a;
        for (int k = 0; k < 3; k++) force[k] = E[TREE_E(r + k, own + a)], torque[k] = E[TREE_E(r + 3 + k, own + a)];
        mat3_mul_vec(column, R, force);
        mat3_mul_vec(column + 3, R, torque);
        for (int b = 0; b <= a; b++) out->Iww[a * n + b] = out->Iww[b * n + a] = E[TREE_E(own + a, own + b)];
    }
    for (int a = 0; a < n; a++)
        out->h[a] = dense_dot(6, out->Irw + 6 * a, c) + dense_dot(n, out->Iww + a * n, domain->carried_bias) -
                    E[TREE_E(r + 6, own + a)];
}

// J, P and the products of one interface with carried coordinates: IJ += Irw P, and V = Iwr J + Iww P.
static void add_carried(const solver_tree *tree, const tree_domain *domain, const tree_domain *child, equation *e,
                        tree_work *work) {
    const domain_interface *interface = &tree->classes[domain->class_index].interfaces[child->interface];
    size_t                  stride = (size_t)interface->stride, n = (size_t)child->carried;
    int                     r = domain->r;
    tree_carried_inertia    inertia;
    tree_carried_up(tree, child, &inertia);
    for (int l = 0; l < r; l++) {
        double J[6], *V = work->carried + n * (size_t)l, *IJ = work->IJ + 6 * l, Z[6] = {0};
        for (size_t i = 0; i < 3; i++) {
            J[i] = domain->scale * interface->a[stride * i + (size_t)l];
            J[3 + i] = child->W[stride * i + (size_t)l];
        }
        for (size_t a = 0; a < n; a++) {
            V[a] = dense_dot(6, inertia.Irw + 6 * a, J);
            for (size_t b = 0; b < n; b++) V[a] += inertia.Iww[a * n + b] * child->P[stride * b + (size_t)l];
            dense_axpy(6, child->P[stride * a + (size_t)l], inertia.Irw + 6 * a, Z);
            e->b_q[l] += child->P[stride * a + (size_t)l] * inertia.h[a];
        }
        for (int i = 0; i < 6; i++) IJ[i] = Z[i];
    }
    for (int l = 0; l < r; l++) // J^T Irw P + P^T V
        for (int p = 0; p < r; p++) {
            double sum = 0;
            for (size_t i = 0; i < 3; i++)
                sum += domain->scale * interface->a[stride * i + (size_t)l] * work->IJ[6 * p + (int)i] +
                       child->W[stride * i + (size_t)l] * work->IJ[6 * p + 3 + (int)i];
            for (size_t a = 0; a < n; a++) sum += child->P[stride * a + (size_t)l] * work->carried[n * (size_t)p + a];
            e->H[p * r + l] += sum;
        }
}

// Loads that give way: S is inertia to those that push the domain.
static void add_resistance(bool lumped, const tree_domain *domain, const double *S, int step, equation *e) {
    int r = domain->r;
    for (int i = 0; i < r + 6; i++)
        for (int j = 0; j <= i; j++, S += step) {
            if (lumped && i >= r) continue;
            if (j >= r) {
                e->Mrr[6 * (i - r) + j - r] += *S;
                if (i > j) e->Mrr[6 * (j - r) + i - r] += *S;
            } else if (i >= r) {
                e->Mrq[6 * j + i - r] += *S;
            } else {
                e->H[j * r + i] += *S;
                if (i > j) e->H[i * r + j] += *S;
            }
        }
}

// What hangs on one interface.
static void add_child(const solver_tree *tree, const tree_domain *domain, const tree_domain *child, equation *e,
                      tree_work *work) {
    const domain_interface *interface = &tree->classes[domain->class_index].interfaces[child->interface];
    tree_lanes             *lanes = tree->blocks[child->block].lanes;
    size_t                  stride = (size_t)interface->stride;
    int                     r = domain->r;
    double                  I[36], x[3], c[6], h[6];
    unpack(lanes->I, child->lane, I);
    lane_get(3, lanes->x, child->lane, x);
    lane_get(6, lanes->c, child->lane, c);
    bool carried = child->carried > 0 && tree->options.subtree == SOLVER_ARTICULATED;
    if (carried) { // h of it is ready, with what w adds
        lane_get(6, lanes->h, child->lane, h);
        add_carried(tree, domain, child, e, work);
        for (int l = 0; l < r; l++) {
            double *column = work->IJ + 6 * l;
            add_moment(1, 1, 6, x, column);
            for (int i = 0; i < 6; i++) e->Mrq[6 * l + i] += column[i];
        }
    } else {
        multiply6(I, c, h);
        for (int i = 0; i < 6; i++) h[i] += lanes->b[i][child->lane];
    }
    add_shifted(I, x, e->Mrr);
    add_shifted_wrench(h, x, e->b_r);
    for (int l = 0; l < r; l++) {
        double J[6];
        for (size_t i = 0; i < 3; i++) {
            J[i] = domain->scale * interface->a[stride * i + (size_t)l];
            J[3 + i] = child->W[stride * i + (size_t)l];
        }
        multiply6(I, J, work->IJ + 6 * l);
        for (int p = 0; p <= l; p++) { // J_l . I J_p for p <= l
            double sum = dense_dot(6, J, work->IJ + 6 * p);
            e->H[l * r + p] += sum;
            if (p < l) e->H[p * r + l] += sum;
        }
        e->b_q[l] += dense_dot(6, J, h);
    }
    for (int l = 0; l < r; l++) {
        double *column = work->IJ + 6 * l;
        add_moment(1, 1, 6, x, column);
        for (int i = 0; i < 6; i++) e->Mrq[6 * l + i] += column[i];
    }
    if (tree->options.subtree == SOLVER_ARTICULATED) return;
    double outer[6];
    unpack(lanes->rigid, child->lane, I);
    multiply6(I, c, h);
    for (int i = 0; i < 6; i++) h[i] += lanes->rigid_b[i][child->lane];
    lane_get(6, lanes->outer, child->lane, outer);
    add_shifted(I, x, e->rigid);
    add_shifted_wrench(h, x, e->rigid_b);
    add_shifted_wrench(outer, x, e->outer);
}

// Entry (i, j) of one domain's E
static double *entry(double *E, int i, int j) { return E + (size_t)i * ((size_t)i + 1) / 2 + (size_t)j; }

// E with H + shift |diag H| of the first `own`
static void put_together(int r, int own, const equation *e, double shift, double *E) {
    for (int i = 0; i < r; i++) {
        for (int j = 0; j <= i; j++) *entry(E, i, j) = e->H[j * r + i];
        if (i < own) *entry(E, i, i) += shift * fabs(e->H[i * r + i]);
        for (int k = 0; k < 6; k++) *entry(E, r + k, i) = e->Mrq[6 * i + k];
        *entry(E, r + 6, i) = e->f_q[i] - e->b_q[i];
    }
    for (int k = 0; k < 6; k++) {
        for (int j = 0; j <= k; j++) *entry(E, r + k, r + j) = 0.5 * (e->Mrr[6 * k + j] + e->Mrr[6 * j + k]);
        *entry(E, r + 6, r + k) = -e->b_r[k];
    }
    *entry(E, r + 6, r + 6) = 0;
}

// The first `own` pivots; false when one is not positive
static bool eliminate(int r, int own, double *E) {
    for (int i = 0; i < r + 7; i++)
        for (int j = 0; j <= i && j < r + 6; j++) {
            double sum = *entry(E, i, j);
            for (int k = 0; k < j && k < own; k++) sum -= *entry(E, i, k) * *entry(E, k, k) * *entry(E, j, k);
            if (j < own && i > j) sum /= *entry(E, j, j);
            if (j < own && i == j && !(sum > 0 && isfinite(1 / sum))) return false;
            *entry(E, i, j) = sum;
        }
    return true;
}

// Is what is left positive semidefinite? A negative stiffness can leave H positive and still make the domain accelerate
// against the push of its parent.
static bool is_inertia(int r, double *E, const double Mrr[36]) {
    double P[36];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j <= i; j++) P[6 * i + j] = P[6 * j + i] = *entry(E, r + i, r + j);
    for (int j = 0; j < 6; j++) { // Gauss: the pivots
        const double *d = Mrr + (j < 3 ? 0 : 21);
        double        least = 1e-9 * (d[0] + d[7] + d[14]);
        if (!(P[7 * j] >= -least)) return false;
        if (P[7 * j] <= least) continue; // a mass point has no inertia about itself
        for (int i = j + 1; i < 6; i++)
            for (int k = j + 1; k < 6; k++) P[6 * i + k] -= P[6 * i + j] * P[6 * j + k] / P[7 * j];
    }
    return true;
}

// Solves for the modes. A domain that is pressed beyond buckling so far that its matrix is not positive gets a growing
// part of its diagonal: the step is then shorter than Newton's.
static bool solve_domain(const solver_tree *tree, const tree_domain *domain, tree_block *block, equation *e,
                         tree_work *work) {
    bool   lumped = tree->options.subtree != SOLVER_ARTICULATED;
    int    r = domain->r;
    double shift = 0, *E = work->E;
    for (int attempt = 0; attempt < 7; attempt++) {
        put_together(r, domain->own, e, shift, E);
        if (eliminate(r, domain->own, E) && (lumped || is_inertia(r, E, e->Mrr))) {
            size_t size = ((size_t)r + 7) * ((size_t)r + 8) / 2;
            for (size_t k = 0; k < size; k++) block->E[k * LANES + (size_t)domain->lane] = E[k];
            for (int k = 0; !lumped && k < 6; k++) {
                for (int j = 0; j <= k; j++) e->Mrr[6 * k + j] = e->Mrr[6 * j + k] = *entry(E, r + k, r + j);
                e->b_r[k] = -*entry(E, r + 6, r + k);
            }
            return true;
        }
        if (attempt == 0) block->shifts++;
        shift = shift == 0 ? 0.01 : 10 * shift;
    }
    return false;
}

// The subtree as a mass point at d: inertia [m 1, -m [d]; m [d], -m [d]^2], bias m w x (w x d) at d, less the external
// wrench (whose torque a mass at the interface cannot feel).
static void mass_point(bool at_interface, const double w[3], equation *e) {
    double m = e->rigid[0], d[3] = {0}, wd[3], centrifugal[6] = {0};
    if (!at_interface) // rigid has m [d] in its lower left corner
        d[0] = e->rigid[6 * 5 + 1] / m, d[1] = e->rigid[6 * 3 + 2] / m, d[2] = e->rigid[6 * 4 + 0] / m;
    double point[36] = {[0] = m, [7] = m, [14] = m};
    for (int k = 0; k < 36; k++) e->Mrr[k] = 0;
    for (int k = 0; k < 6; k++) e->b_r[k] = 0;
    add_shifted(point, d, e->Mrr);
    vec3_cross(wd, w, d);
    vec3_cross(centrifugal, w, wd);
    for (int k = 0; k < 3; k++) centrifugal[k] *= m;
    add_shifted_wrench(centrifugal, d, e->b_r);
    for (int k = 0; k < (at_interface ? 3 : 6); k++) e->b_r[k] -= e->outer[k];
}

void tree_hand_up(const solver_tree *tree, const tree_domain *domain, double I[36], double b[6]) {
    tree_lanes *lanes = tree->blocks[domain->block].lanes;
    int         lane = domain->lane;
    double      R[9], x[3], c[6], h[6], shifted[36] = {0}, shifted_h[6] = {0};
    if (domain->parent >= 0) {
        lane_get(9, lanes->R, lane, R);
        rotate(R, I, b);
    }
    pack(I, lanes->I, lane);
    lane_put(6, lanes->b, lane, b);
    if (domain->parent < 0) return;
    lane_get(3, lanes->x, lane, x);
    lane_get(6, lanes->c, lane, c);
    multiply6(I, c, h);
    for (int i = 0; i < 6; i++) h[i] += b[i];
    for (int a = 0; a < domain->carried; a++) { // Irw bias
        const double *E = tree->blocks[domain->block].E + lane;
        double        column[6], turned[6];
        for (int k = 0; k < 6; k++) column[k] = E[TREE_E(domain->r + k, domain->own + a)];
        mat3_mul_vec(turned, R, column);
        mat3_mul_vec(turned + 3, R, column + 3);
        dense_axpy(6, domain->carried_bias[a], turned, h);
    }
    add_shifted(I, x, shifted);
    add_shifted_wrench(h, x, shifted_h);
    lane_put(6, lanes->h, lane, h);
    pack(shifted, lanes->shifted, lane);
    lane_put(6, lanes->shifted_h, lane, shifted_h);
}

// The lumped levels: a mass point for the parent, and the subtree as if it were rigid, for those above it.
static void hand_up_lump(const solver_tree *tree, const tree_domain *domain, equation *e) {
    tree_lanes *lanes = tree->blocks[domain->block].lanes;
    int         lane = domain->lane;
    double      w[3], R[9], none[36] = {0};
    lane_get(3, lanes->w, lane, w);
    mass_point(tree->options.subtree == SOLVER_INTERFACE, w, e);
    if (domain->parent >= 0) {
        lane_get(9, lanes->R, lane, R);
        rotate(R, e->rigid, e->rigid_b), rotate(R, none, e->outer);
    }
    pack(e->rigid, lanes->rigid, lane);
    lane_put(6, lanes->rigid_b, lane, e->rigid_b);
    lane_put(6, lanes->outer, lane, e->outer);
}

static bool up_domain(const solver_tree *tree, tree_block *block, int lane, const tree_evaluation *at,
                      tree_work *work) {
    const tree_domain *domain = &tree->domains[block->first + lane];
    equation           e = {.Mrq = work->Mrq, .b_q = work->b_q, .H = work->H, .f_q = work->f_q};
    double             wrench[6];
    own_inertia(tree, domain, at, &e, work);
    own_forces(tree, domain, at, &e, work);
    lane_get(6, block->lanes->wrench, lane, wrench);
    for (int i = 0; i < 6; i++) e.b_r[i] -= wrench[i];
    if (tree->options.subtree != SOLVER_ARTICULATED)
        for (int i = 0; i < 36; i++) {
            e.rigid[i] = e.Mrr[i];
            if (i < 6) e.rigid_b[i] = e.b_r[i], e.outer[i] = wrench[i];
        }
    if (at->resists && domain->resistance)
        add_resistance(tree->options.subtree != SOLVER_ARTICULATED, domain, domain->resistance, LANES, &e);
    if (at->resists && domain->contact_S) add_resistance(false, domain, domain->contact_S, 1, &e);
    for (int k = 0; k < domain->child_count; k++)
        add_child(tree, domain, &tree->domains[domain->children[k]], &e, work);
    if (!solve_domain(tree, domain, block, &e, work)) return false;
    if (tree->options.subtree != SOLVER_ARTICULATED) hand_up_lump(tree, domain, &e);
    tree_hand_up(tree, domain, e.Mrr, e.b_r);
    return true;
}

// ---- the tree ---------------------------------------------------------------------------------------------------

typedef struct up_context {
    solver_tree           *tree;
    const tree_evaluation *at;
    int                    first;
    bool                   fast;
} up_context;

void tree_block_own(solver_tree *tree, tree_block *block, const tree_evaluation *at, tree_work *work) {
    size_t size = ((size_t)block->r + 6) * ((size_t)block->r + 7) / 2;
    tree->kernels.own(tree, block, at, work);
    for (size_t k = 0; at->resists && block->S && k < size * LANES; k++) block->E[k] += block->S[k]; // both row by row
    for (int lane = 0; at->resists && tree->touching && lane < block->count; lane++) {
        const double *C = tree->domains[block->first + lane].contact_S;
        for (size_t k = 0; C && k < size; k++) block->E[k * LANES + (size_t)lane] += C[k];
    }
}

static void own_task(void *context, int index, int worker) {
    up_context *task = context;
    tree_block *block = &task->tree->blocks[index];
    if (!(task->at->apart && block->tips)) tree_block_own(task->tree, block, task->at, &task->tree->work[worker]);
}

void tree_segment_up(solver_tree *tree, const tree_segment *segment, const tree_evaluation *at, bool fast,
                     tree_work *work) {
    tree_block *block = &tree->blocks[segment->block];
    if (fast && segment->together && tree->kernels.up(tree, block, work)) return;
    for (int lane = segment->first; lane < segment->first + segment->count; lane++) {
        if (fast && !segment->together && tree->kernels.up_lane(tree, block, lane, work)) continue;
        block->plain += fast;
        if (!up_domain(tree, block, lane, at, work) && block->failed < 0) block->failed = lane;
    }
}

static void up_task(void *context, int index, int worker) {
    up_context         *task = context;
    solver_tree        *tree = task->tree;
    const tree_segment *segment = &tree->segments[task->first + index];
    if (task->at->apart && tree->blocks[segment->block].tips) return;
    tree_segment_up(tree, segment, task->at, task->fast, &tree->work[worker]);
}

fem_status tree_up(solver_tree *tree, const tree_evaluation *at) {
    up_context task = {.tree = tree, .at = at};
    task.fast = !tree->options.plain && tree->options.subtree == SOLVER_ARTICULATED;
    for (int k = 0; k < tree->block_count; k++) {
        tree_block *block = &tree->blocks[k];
        if (!(at->apart && block->tips)) block->failed = -1, block->shifts = block->plain = 0;
    }
    if (task.fast) tree_parallel(tree, tree->block_count, own_task, &task);
    for (int level = tree->levels - 1; level >= 0; level--) {
        task.first = tree->level_segment[level];
        tree_parallel(tree, tree->level_segment[level + 1] - task.first, up_task, &task);
    }
    for (int k = 0; k < tree->block_count; k++) {
        const tree_block *block = &tree->blocks[k];
        tree->report.shifts += block->shifts;
        tree->report.plain += block->plain;
        if (block->failed >= 0)
            return tree_fail(tree, FEM_UNSTABLE, block->first + block->failed, at->time,
                             "its mass and stiffness are not positive definite, or not finite");
    }
    return FEM_OK;
}

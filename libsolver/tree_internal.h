// The insides of the tree of domains, shared by its files.
//
// Order: domains are sorted by class, inside a class by level, and cut into blocks of LANES. What does not depend on
// the level (frames relative to the parent, forces, inertia) is done for whole blocks, even where every level has only
// one domain. What goes from level to level is done for segments: the lanes of a block that are on the same level, next
// to each other; where a segment is a whole block of several domains, again for all of them at once. Coordinates (q,
// dq, ...) are one array each, domain after domain in that order. What has a fixed size per domain lies in its block
// with the lanes side by side, so that a kernel loads a number of 8 domains at once.
#ifndef LIMBER_SOLVER_TREE_INTERNAL_H
#define LIMBER_SOLVER_TREE_INTERNAL_H

#include "libsolver/internal.h"
#include "libsolver/tree.h"

enum { LANES = 8, TREE_FEW = 2 }; // as few domains as that are done one by one where levels matter

// Symmetric 6x6 matrices: row i of the upper triangle begins at SYM6(i, i). A spatial inertia has force rows 0 .. 2 and
// torque rows 3 .. 5.
#define SYM6(i, j) ((i) <= (j) ? (i) * (11 - (i)) / 2 + (j) : (j) * (11 - (j)) / 2 + (i))
enum { SYM6_SIZE = 21 };

// Of one block, lane by lane. "Parent axes" are those of the parent's frame; everything else is in the domain's own.
typedef struct tree_lanes {
    // given: the interface at rest (x scaled, F by columns), 1 where it is flat, the parent's scale
    double rest_x[3][LANES], rest_F[9][LANES], rest_turn[9][LANES], flat[LANES], above[LANES];
    double scale[LANES], damping_mass[LANES], damping_stiffness[LANES];
    double used[LANES]; // 1 or 0
    // the frame relative to the parent, parent axes (scaled)
    double x[3][LANES], R[9][LANES], v[3][LANES], turn[3][LANES], bias[3][LANES]; // turn = W dq, bias = dW dq
    double F[9][LANES], fit[9][LANES];                                            // of domain_frame
    // the frame's motion
    double w[3][LANES];
    double c[6][LANES];              // acceleration that neither A of the parent nor its ddq make, parent axes
    double p[3][LANES], Q[9][LANES]; // world pose, when it is needed,
    double V[3][LANES];              // and velocity of the origin, world axes
    double wrench[6][LANES];         // external
    double A[6][LANES];
    double motion[3][6][LANES]; // of tree_balance.c, own axes
    // what the parent feels, parent axes about the frame's origin (roots: own axes): I A + b is the wrench it exerts
    double I[SYM6_SIZE][LANES], b[6][LANES]; // b without I c
    // made of them for kernels: h = I c + b, X^T I X, X^T h
    double h[6][LANES], shifted[SYM6_SIZE][LANES], shifted_h[6][LANES];
    // lumped levels: the subtree as if it were rigid, and the external wrench on it, parent axes (roots: own)
    double rigid[SYM6_SIZE][LANES], rigid_b[6][LANES], outer[6][LANES];
} tree_lanes;

typedef struct tree_block {
    int         class_index;
    int         first;  // sorted index of lane 0
    int         count;  // lanes in use
    int         roots;  // of them
    int         r, own; // coordinates, and those that are not carried
    size_t      offset; // of lane 0's coordinates
    tree_lanes *lanes;
    double     *E;            // (r + 7)(r + 8)/2 x LANES: the equation of the domain, see tree_up.c
    double     *f;            // r x LANES: internal forces
    double     *load;         // (6 + r) x LANES: wrenches and modal forces that were set, or NULL
    double     *S;            // (r + 6)(r + 7)/2 x LANES: what loads give way by, 0 where they do not; or NULL
    int         flags[LANES]; // of domain_polar
    int         shifts;       // lanes whose H was not positive definite in this pass
    int         failed;       // lane that no shift could mend, or -1
    int         plain;        // lanes that the kernels left to the plain version in this pass
    bool        mean;         // forces of this step are the mean over the way of the step (tree_settle.c)
    double      calm;         // s: stiffness damping besides that of the domains in this step (tree_settle.c)
    double      turning;      // of wind_load.c: stiffness over mass, 1/s^2
    bool        tips;         // nothing hangs on any of its domains, and all are on one level (tree_tips.c)
} tree_block;

// Lanes of a block on one level. `together`: all that the block has, and enough of them for the kernels.
typedef struct tree_segment {
    int  block, first, count;
    bool together;
} tree_segment;

// Entry (i, j), j <= i, of the equation of a block: E[TREE_E(i, j) + lane]
#define TREE_E(i, j) (((size_t)(i) * ((size_t)(i) + 1) / 2 + (size_t)(j)) * LANES)

// Sorted, one per instance.
typedef struct tree_domain {
    int        user; // index of the caller
    int        class_index, parent, interface;
    int        level;
    int        block, lane;
    int        r;
    int        child_count;
    const int *children; // sorted indices, in the caller's order
    size_t     offset;
    int        carried, own; // of the r coordinates: the last ones, which the parent moves, and those before them
    double    *P;            // `carried` rows of the parent's stride: ddw = P ddq of the parent + carried_bias
    double    *carried_bias; // and w, dw while they are made
    double    *P_ends;       // P at the start of the step and at its end (tree_balance.c)
    double     scale, stiffness, damping_mass, damping_stiffness;
    double    *W;                       // 3 rows of the parent's stride: of the interface to the parent
    double    *load;                    // its lane of the block's load: set by solver_tree_set_load, or NULL
    double    *resistance;              // its lane of the block's S: set by solver_tree_set_resistance, or NULL
    struct tree_contact *contact;       // or NULL
    double              *contact_S;     // likewise: of contact in this pass, or NULL
    int                  root;          // index of its tree_root, or -1
    int                  top;           // of the root that it hangs on
    double               share[3];      // of sums over the tree (tree_balance.c)
    double               moved, change; // squares of lengths (tree_settle.c): in the step, by the last pass
} tree_domain;

typedef struct tree_root {
    int                 domain;
    solver_root         kind;
    solver_drive        drive;
    void               *context;
    solver_frame_motion state; // a, al: of the last step
    solver_frame_motion trial; // where the pass is evaluated; a, al: what it gives
    double              turn[3];
    solver_frame_motion kept;                    // state before the step
    solver_frame_motion end;                     // where the trial point says that the step ends
    double              Q_pass[9];               // Q of the last pass
    bool                unresolved;              // some domain moves a lot in modes that are too fast for the step
    double              sums[6], alpha, kick[6]; // of tree_balance.c; kick: v world, w
} tree_root;

typedef struct tree_point {
    int    domain;
    double X[3], force[3];
    size_t rows; // where its rows begin in tree->point_rows
} tree_point;

// Forces and accelerations of a spring are those of its end a, relative to b, in world axes.
typedef struct tree_spring {
    solver_spring s;
    double        force[3];                              // of the last pass, and of the next to begin with
    double        acceleration[3];                       // that `ddq` and the roots' a, al of the last pass make
    double        target[3], r[3], z[3], p[3], image[3]; // of conjugate gradients
    double        kept[6], start[6];                     // force and acceleration before the step, and before its part
} tree_spring;

// One worker's space, for the largest class.
typedef struct tree_work {
    double seconds[4]; // of tree_tips: frames, loads, forces, up

    double *H, *K;             // r x r
    double *Mrq;               // 6 x r, column-major
    double *IJ;                // 6 x r, column-major
    double *f_q, *b_q, *v, *f; // r
    double *E;                 // (r + 7)(r + 8)/2
    double *inertia;           // of solver_inertia_evaluate
    double *carried;           // SOLVER_MOST_CARRIED x r
    double *forces;            // of the class's forces
    double *modal;             // r: of tree_balance.c
    double *place, *f2, *K2;   // r, 2 r x LANES, r (r + 1) x LANES: of the places where forces are evaluated
    double *lanes;             // for kernels: 6 r + 4 (r + 7) vectors of LANES
    double *sum;               // (n + 13 + SOLVER_MOST_CARRIED) x n, n = r rounded up to a multiple of LANES
    double *square; // (r + 7) x n, n = r + 7 rounded up; what is right of the diagonal is undefined but finite
} tree_work;

// Where and with which weights a pass is evaluated: f_q = load - f(q) - K (q_start - q) - D dq_start,
// H = Mqq + c_damping D + c_stiffness K. What is carried is not given but made with the frames: w and dw of the
// parent's q and dq, and a start such that w_start + c_stiffness ddw is the w of q_start + c_stiffness ddq, to first
// order.
typedef struct tree_evaluation {
    double *q, *dq, *q_start, *dq_start; // all coordinates
    double  c_damping, c_stiffness;
    double  time;
    // Where forces are the mean over the way of the step they are evaluated at q +- spread (q - q_from).
    const double *q_from, *q_to; // q_to: NULL where it is not known
    double        spread;        // 0: never
    bool          resists;       // loads give way
    bool          apart;         // blocks of tips are done by tree_tips, all others leave them out
} tree_evaluation;

// Fast versions of the pieces of a pass (kernel_tree.c), chosen at run time.
typedef struct tree_kernels {
    // all lanes of a block
    void (*frames)(const solver_tree *tree, tree_block *block, const double *q, const double *dq);
    void (*own)(const solver_tree *tree, tree_block *block, const tree_evaluation *at, tree_work *work);
    // a segment that is together; up: false when some lane needs the plain version
    void (*velocities)(const solver_tree *tree, tree_block *block, bool poses);
    bool (*up)(const solver_tree *tree, tree_block *block, tree_work *work);
    void (*down)(const solver_tree *tree, tree_block *block, double *ddq, tree_work *work);
    // one lane; false: likewise
    bool (*up_lane)(const solver_tree *tree, tree_block *block, int lane, tree_work *work);
} tree_kernels;

// Springs' answers to each other, factorised (tree_compliance.c).
typedef struct tree_compliance {
    bool    known;
    double  c_stiffness, c_damping; // of the pass that it was made in
    int     excess;                 // iterations beyond a few since then
    double *L, *Z, *z;              // n x n; (dofs + 6 roots) x n; n
    size_t  capacity, Z_capacity, z_capacity;
} tree_compliance;

// The state before a step that may have to be taken in smaller ones.
typedef struct tree_kept {
    double *q, *dq, *ddq, time, last_step;
    bool    accelerations_known;
} tree_kept;

struct solver_tree {
    solver_tree_options   options;
    int                   class_count, count, dofs, levels, block_count, root_count;
    int                   carried; // coordinates of all domains
    solver_tree_class    *classes;
    solver_tree_instance *instances; // the caller's, copied
    int                  *sorted;    // of the caller's index
    tree_domain          *domains;   // sorted
    int                  *children;  // of all domains
    tree_block           *blocks;
    int                  *order; // sorted indices level by level: parents come before their children
    int                   segment_count;
    tree_segment         *segments;
    int                  *level_segment; // levels + 1: first segment of each level
    int                   tip_count;
    int                  *tips; // segments that are blocks of tips
    tree_root            *roots;
    double                gravity[3];

    double  time;
    double *q, *dq, *ddq;                                        // the state; ddq of the last step
    double *q_trial, *dq_trial, *q_start, *dq_start, *ddq_trial; // of the pass
    double *modal;                                               // external modal forces of the pass
    double *q_end, *dq_end;                                      // where the trial point says that the step ends
    double *u, *kick;                                            // velocities, and what they change by (tree_balance.c)
    double (*kick_b)[6], (*kick_A)[6];                           // count
    double   *q_pass, *dq_pass;                                  // where the last pass was evaluated
    double  **class_K0;                                          // per class: diagonal of K at rest
    double    last_step;                                         // s: the step that ddq is of
    tree_kept kept;
    bool      accelerations_known; // ddq and the roots' a, al belong to the last step
    bool      poses_known;         // blocks hold the frames of the present state
    double    change;              // by the last pass of this step, square of a length (tree_settle.c); 0: none yet

    int          point_count, spring_count;
    size_t       point_capacity, spring_capacity, row_count, row_capacity;
    tree_point  *points;
    double      *point_rows;
    tree_spring *springs;
    double      *spring_modal; // dofs: modal forces, then accelerations, of the springs alone
    double (*spring_b)[6];     // count: what a parent feels of the springs' forces, parent axes
    double (*spring_A)[6];     // count: accelerations of frames, own axes

    tree_compliance compliance;
    bool            touching;        // some domain has contact
    bool            balance;         // the energy of the step at hand is balanced (tree_settle.c)
    bool            always_balanced; // that of every step is, for tests

    tree_kernels kernels;
    int          worker_count;
    tree_work   *work;  // per worker
    fem_scratch  arena; // lanes, coordinates and work space

    solver_tree_report report;
};

// ---- lanes ------------------------------------------------------------------------------------------------------

static inline void lane_get(int n, double (*lanes)[LANES], int lane, double *x) {
    for (int i = 0; i < n; i++) x[i] = lanes[i][lane];
}
static inline void lane_put(int n, double (*lanes)[LANES], int lane, const double *x) {
    for (int i = 0; i < n; i++) lanes[i][lane] = x[i];
}

// y = A^T x
static inline void mat3_mul_t_vec(double y[3], const double A[9], const double x[3]) {
    for (int i = 0; i < 3; i++) y[i] = A[i] * x[0] + A[3 + i] * x[1] + A[6 + i] * x[2];
}

// ---- the pieces of a pass ---------------------------------------------------------------------------------------

// "domain NAME (class NAME) at t = ... s: REASON"; the domain is a sorted index.
fem_status tree_fail(const solver_tree *tree, fem_status status, int domain, double time, const char *reason);

// fem_parallel_for, with no more workers than there is work space for.
void tree_parallel(const solver_tree *tree, int count, fem_task task, void *context);
// Frames relative to the parents, with velocities, and W (tree_frames.c); parallel over all blocks. What is carried is
// written into `at`.
void tree_relative_frames(solver_tree *tree, const tree_evaluation *at);
// What is left of the equation of a domain with carried coordinates after its pivots, in its parent's axes: Irw (6 x
// carried, column-major), Iww (carried x carried, symmetric), h = Iwr c + Iww bias + b_w (tree_up.c).
typedef struct tree_carried_inertia {
    double Irw[6 * SOLVER_MOST_CARRIED], Iww[SOLVER_MOST_CARRIED * SOLVER_MOST_CARRIED], h[SOLVER_MOST_CARRIED];
} tree_carried_inertia;
void tree_carried_up(const solver_tree *tree, const tree_domain *domain, tree_carried_inertia *out);
// ddw = P ddq of the parent (+ bias times `bias`) of one domain, into ddq (tree_down.c).
void tree_carried_down(const solver_tree *tree, const tree_domain *domain, double bias, double *ddq);
void tree_carried_down_all(const solver_tree *tree, double bias, double *ddq);
// Angular velocities and c, from the roots down; world poses too when asked.
void tree_velocities(solver_tree *tree, bool poses, bool apart);
// Memory for loads that were set, of a block.
fem_status tree_reserve_load(const solver_tree *tree, tree_block *block);
fem_status tree_reserve_resistance(const solver_tree *tree, tree_block *block);
// Loads of the pass into wrench and modal (tree_loads.c): of a block, then of all.
void tree_block_loads(solver_tree *tree, tree_block *block, const tree_evaluation *at);
void tree_gather_loads(solver_tree *tree, const tree_evaluation *at);
bool tree_needs_poses(const solver_tree *tree);   // some load is given in world axes,
bool tree_forces_points(const solver_tree *tree); // and some is that of a point
// Steps whose energy is balanced (tree_balance.c). Carried shapes: dw/dq at the start and at the end, and loads of a
// pass by which their forces act with the mean of all.
void tree_carried_start(solver_tree *tree);
void tree_carried_end(solver_tree *tree);
void tree_gather_carried(solver_tree *tree);
// After the last pass of a step, whose end is known: what velocities change by there so that its energy is balanced,
// into `kick` (tree_balance.c).
void tree_balance(solver_tree *tree);
// Contact (tree_contact.c): at the start of a step, as a load of a pass, and after it: do all contacts push?
typedef struct tree_contact tree_contact;
void                        tree_contact_start(solver_tree *tree);
void                        tree_gather_contact(solver_tree *tree);
bool                        tree_contact_settle(solver_tree *tree);
void                        tree_contact_destroy(tree_contact *contact);
// Frames and velocities of the present state, when they are not known (tree_state.c).
void tree_update_motion(solver_tree *tree);
// What the parent of a domain feels, from I and b in the domain's axes: into the parent's, and made ready (tree_up.c).
void tree_hand_up(const solver_tree *tree, const tree_domain *domain, double I[36], double b[6]);
// ddq = L^-T (g - T^T A) of one domain, after the pass up; what is carried is there already.
void tree_modes(const tree_block *block, int lane, const double A[6], double *ddq);
// I A = -b for a free root, after the pass up.
fem_status tree_free_root(const solver_tree *tree, const tree_domain *domain, const double b[6], double A[6]);
// Accelerations that loads alone make, with the matrices of the last pass up (tree_vectors.c): modal holds the modal
// forces and becomes ddq; b holds minus the wrenches, own axes, and is work space; A gets the frames' accelerations.
void tree_respond(const solver_tree *tree, double *modal, double (*b)[6], double (*A)[6]);
// A of domain i, not a root: R^T (X A_parent + J ddq_parent)
void tree_vector_up(const solver_tree *tree, int domain, double *modal, double (*b)[6]);
void tree_vector_lift(const solver_tree *tree, int domain, double *modal, double (*b)[6]);
// Rows of dd/dq of all springs at q = 0, whose frames the blocks hold: G is dofs x 3 springs, sorted order of the
// domains; and their stiffness.
fem_status tree_spring_rows(solver_tree *tree, const double *q, double *G, double *stiffness);
void       tree_vector_down(const solver_tree *tree, int i, const double *ddq, double (*A)[6]);
// y = s (X + U q) in the axes of the domain.
void tree_local_position(const solver_tree *tree, const tree_point *point, const double *q, double y[3]);
// World position, and velocity unless v is NULL, of a point for the frames that the blocks hold.
void tree_point_motion(const solver_tree *tree, const tree_point *point, const double *q, const double *dq, double x[3],
                       double v[3]);
// Springs (tree_springs.c): energy in the present state, and what they add to the accelerations of a pass.
// `weights_old` are those with which the accelerations of the pass before entered the trial point.
typedef struct tree_weights {
    double position, velocity;
} tree_weights;
double tree_spring_energy(const solver_tree *tree, const tree_spring *spring);
// Unit force of a spring in direction k, on both ends, into spring_modal and spring_b.
void       tree_spring_push(solver_tree *tree, const solver_spring *spring, int k, const double *q);
fem_status tree_compliance_reserve(solver_tree *tree); // after a spring was added
void       tree_compliance_make(solver_tree *tree, const tree_evaluation *at);
bool       tree_compliance_is_for(const solver_tree *tree, const tree_evaluation *at);
void       tree_compliance_destroy(tree_compliance *compliance);
void       tree_add_springs(solver_tree *tree, const tree_evaluation *at, const tree_weights *weights_old, double *ddq);
// Internal forces and stiffness for the kernels, into f and the beginning of E, of a block and of all (tree_forces.c).
void tree_block_forces(solver_tree *tree, tree_block *block, const tree_evaluation *at, tree_work *work);
void tree_forces(solver_tree *tree, const tree_evaluation *at);
// The same of one domain of the plain version, without factors: f (r) and K (r x r) of its class.
void tree_domain_forces(const solver_tree *tree, const tree_domain *domain, const tree_evaluation *at, double *f,
                        double *K, tree_work *work);
// H, T, g of all domains and what their parents feel, from the leaves up (tree_up.c).
fem_status tree_up(solver_tree *tree, const tree_evaluation *at);
// Pieces of it: a block's equations without what hangs on them, and the elimination of a segment.
void tree_block_own(solver_tree *tree, tree_block *block, const tree_evaluation *at, tree_work *work);
void tree_segment_up(solver_tree *tree, const tree_segment *segment, const tree_evaluation *at, bool fast,
                     tree_work *work);
// Everything up to there, for one block of tips after the other while it is in the cache (tree_tips.c).
bool tree_tips_apart(const solver_tree *tree); // is that possible in the coming pass?
void tree_tips(solver_tree *tree, const tree_evaluation *at, bool poses);
// A of the roots, then ddq and A of all, from the roots down, into ddq (tree_down.c).
fem_status tree_down(solver_tree *tree, double time, double *ddq);
// Settling (tree_settle.c): which blocks take the mean force, besides those that do; has the trial point settled in the
// last pass; the state before a step, and back to it.
void tree_choose_means(solver_tree *tree, const tree_evaluation *at);
bool tree_settled(solver_tree *tree); // after every pass of a step, in turn
void tree_keep(solver_tree *tree);
void tree_bring_back(solver_tree *tree);
// solver_tree_frequencies with the choice of the method (tree_modes.c): all of M, or Krylov spaces.
fem_status tree_frequencies(solver_tree *tree, int count, bool dense, double *omega, double *shapes);
// The accelerations that belong to the state, into ddq and the roots' state (tree_step.c); Newmark begins with them.
fem_status tree_accelerations(solver_tree *tree);

#endif

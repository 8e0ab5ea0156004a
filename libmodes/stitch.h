// Stitching: a body whose stiffness was changed a little, and its modes at a fraction of the cost of new ones.
// A chapter of modes.h: include that.
//
// A stitch is a spring of no length between two vertices that lie in the same place: K^ = K + sum of k B B^T, B = [.. I
// .. -I ..]^T, three columns each. [Mukherjee et al. 2016], in docs P2. The stiffness of a whole domain (a component of
// the mesh) may be scaled besides. The factor of K is held and never made again: K^-1 goes by Woodbury's formula.
#ifndef LIMBER_MODES_STITCH_H
#define LIMBER_MODES_STITCH_H

#include "libmodes/modes.h"

typedef struct modes_stitch {
    int    a, b;      // vertices
    double stiffness; // N/m, > 0
} modes_stitch;

// A stitch may be so many times stiffer or softer than the material at its softer vertex at rest, a domain than at
// first.
#define MODES_STITCH_RANGE 1e9
// Two vertices lie in the same place when their distance is below this part of the mesh's size.
#define MODES_STITCH_GAP 1e-9

// Would these be added to a body that has the first `known` of the list already? Without a factor, which
// modes_stitched_create needs; the message counts from behind the known ones. The problem's K is that of rest.
fem_status modes_stitches_check(const modes_problem *problem, int known, int count, const modes_stitch *stitches);
// N/m, of the material at a vertex: the largest of the diagonal of K there. A stitch a thousand times as stiff holds as
// if grown together.
double modes_stitch_material(const modes_problem *problem, int vertex);

// ---- a stitched body: stiffness, products, solves ---------------------------------------------------------------

typedef struct modes_stitched modes_stitched;
// The problem is that of the body without stitches and must outlive this. `inverse` is the problem's, with the mass
// border, and is shared; NULL: made here, by a factorisation.
fem_status modes_stitched_create(modes_stitched **stitched, const modes_problem *problem, modes_inverse *inverse);
void       modes_stitched_destroy(modes_stitched *stitched);

// Appends stitches: all of them, or none when one cannot be made; the message names it by its place in the list and
// says what is wrong. Vertices are numbered from 0, in messages from the mesh's file_base.
fem_status modes_stitched_add(modes_stitched *stitched, int count, const modes_stitch *stitches);
// Takes stitches out (vertices in either order; the stiffness is not read): all or none. The others keep their order.
fem_status modes_stitched_remove(modes_stitched *stitched, int count, const modes_stitch *stitches);
// K -> factor K in one domain; the factor is of the original, not of the latest.
fem_status modes_stitched_scale(modes_stitched *stitched, int domain, double factor);

int                 modes_stitched_count(const modes_stitched *stitched);
const modes_stitch *modes_stitched_list(const modes_stitched *stitched);
int                 modes_stitched_domains(const modes_stitched *stitched);
int                 modes_stitched_domain_of(const modes_stitched *stitched, int vertex); // -1: vertex without element
double              modes_stitched_factor(const modes_stitched *stitched, int domain);

// Y = K^ X; fixed degrees of freedom take part as in the problem's K.
void modes_stitched_multiply(const modes_stitched *stitched, int columns, const double *X, double *Y);
// K^ as a matrix of its own, for whoever makes everything anew.
fem_status modes_stitched_matrix(const modes_stitched *stitched, fem_sparse *K);
// X = K^-1 B as modes_inverse_solve does it: rigid motions that the stitches leave free are taken out of both. Once
// refined where the residual asks for it. B is work space afterwards and must not be X.
fem_status modes_stitched_solve(modes_stitched *stitched, int columns, double *B, double *X);

typedef struct modes_stitched_report {
    int    rigid;    // rigid motions of the body without stitches
    int    loose;    // of these, left free by the stitches
    int    solves;   // with the held factor, since creation
    int    refined;  // columns that were refined, since creation
    double residual; // largest |K^ x - b| / |b| of the last solve
    double seconds_solve;
} modes_stitched_report;
// The rigid motions are counted here: fails where memory does.
fem_status modes_stitched_get_report(modes_stitched *stitched, modes_stitched_report *report);

// ---- modes ------------------------------------------------------------------------------------------------------

// Each looks for modes in the span of the old modes, of the rigid motions that have been tied, and of some columns E.
typedef enum modes_stitch_form {
    MODES_STITCH_LOWRANK,   // E = M^-1 A, and K of old modes only: Ritz values of M U L U^T M + A A^T (P2 as printed)
    MODES_STITCH_RITZ,      // the same span, the true K^
    MODES_STITCH_ATTACHMENT // E = K^-1 A, static answers to forces at the stitches, the true K^
} modes_stitch_form;
const char *modes_stitch_form_name(modes_stitch_form form); // "lowrank", "ritz", "attachment"

typedef struct modes_stitch_options {
    modes_stitch_form form;
    int               count; // modes wanted; 0 = as many as there were
    int since;      // the old modes are those of the body with the first so many stitches; those behind are new
    int refine;     // steps of inverse iteration behind that, each at most as many solves as modes. -1: attachment
                    // where new modes, no more than old ones, lie beyond what those know, until they are steady
    bool rigid_out; // leave out the rigid motions of parts that were free: the fault of P2 figure 7 (a)
} modes_stitch_options;
modes_stitch_options modes_stitch_default_options(void); // attachment

typedef struct modes_stitch_report {
    int    dimension;       // of the space that was searched
    int    dropped;         // columns that depend on others
    double orthogonality;   // max |U^T M U - I|
    double reach;           // squared frequency of the last of 20, of the old modes' last
    int    refined, solves; // steps of inverse iteration, and their solves
    double seconds_enrich, seconds_project, seconds_combine; // E; the small problem; the modes
    double seconds_refine;
} modes_stitch_report;

// `old` is mass-orthonormal, n x r, without rigid motions; its omega2 (read by `lowrank`) are those of the domains with
// their present factors. In `basis` omega2 is what the form has for squared frequencies, ascending; `lowrank` has zeros
// where free parts were tied. report may be NULL.
fem_status modes_stitched_modes(modes_stitched *stitched, const modes_basis *old, const modes_stitch_options *options,
                                modes_basis *basis, modes_stitch_report *report);

// omega2[j] = u_j^T K^ u_j / u_j^T M u_j, for a basis that was made otherwise.
fem_status modes_stitched_rayleigh(const modes_stitched *stitched, modes_basis *basis);
// L (r x r) = U^T (K^ - K) U, what the springs are in reduced coordinates; domains keep their factors in K.
fem_status modes_stitched_springs(const modes_stitched *stitched, int r, const double *U, double *L);

// Modes of a body that consists of domains: those of all of them, with zeros elsewhere, by ascending frequency.
// part[i] is domain i's basis; vertex v of it is vertex first[i] + v of the body; factor[i] scales its stiffness (NULL:
// all 1).
fem_status modes_pad(modes_basis *basis, int vertices, int count, const modes_basis *const *part, const int *first,
                     const double *factor);

// A basis for a body in several pieces. Pieces that stitches join are a group; every column moves one group, columns of
// a group stand together, and all are mass-orthonormal. A group that nothing holds gets, with `motions`, the twelve
// affine motions first (where stitches leave hinges: each of its pieces), with which it can be displaced and turned by
// any angle without strain; so do, with `motions`, pieces for which `moving` says so (per domain; NULL: none) and which
// have no fixed vertex themselves. Behind them come the parts of the basis's columns, and of `count` columns X (n x
// count). What others span is left out.
typedef struct modes_blocks {
    modes_basis basis; // omega2: Rayleigh quotients, at least the lowest of the given basis
    int         count; // groups
    int        *first; // count + 1: group g has the columns first[g] .. first[g + 1] - 1
    int        *group; // per vertex; -1: without element
    bool       *more;  // per column: it comes from X
    int         motions;
} modes_blocks;
void       modes_blocks_destroy(modes_blocks *blocks); // leaves it empty
fem_status modes_stitched_blocks(modes_stitched *stitched, const modes_basis *basis, bool motions, const bool *moving,
                                 int count, const double *X, modes_blocks *blocks);

// ---- derivatives ------------------------------------------------------------------------------------------------

// Derivatives of the body before, K phi = -(H : psi_a) psi_b, kept so that nothing of them need be made again: springs
// are no part of H, and with K^ in place of K they differ by answers of the stitches, which are at hand.
typedef struct modes_rights {
    int       n, count, rigid;
    fem_pair *pairs; // of the old modes
    double   *X;     // n x count: the derivatives
    double   *load;  // rigid x count: what of the right-hand sides would move the body as a whole
} modes_rights;
void modes_rights_destroy(modes_rights *rights); // leaves it empty
// For the `count` pairs with the lowest product of frequencies, lowest first. All of the body without stitches.
fem_status modes_rights_create(modes_rights *rights, const fem_body *body, modes_inverse *inverse,
                               const modes_basis *basis, int count);
// The first `count` pairs a <= b of r modes in that order.
fem_status modes_lowest_pairs(int r, const double *omega2, int count, fem_pair *pairs);

typedef struct modes_hybrid_options {
    int modes; // new derivatives are those of the first so many modes, all pairs; P2: 6, so 21
    int kept;  // old right-hand sides that are used again; -1: 40 percent of them
} modes_hybrid_options;
modes_hybrid_options modes_hybrid_default_options(void);

typedef struct modes_hybrid_report {
    int    fresh, kept;                               // derivatives of new modes, and of old ones
    int    loads;                                     // static answers that the old ones change by
    double seconds_right, seconds_solve, seconds_old; // right-hand sides and solutions of new ones; old ones
} modes_hybrid_report;

// Candidates for a basis: the modes, new derivatives, answers of K^ to old right-hand sides [Mukherjee et al.
// 2016, 4.2]. *omega2 (allocated, basis->r + old->r) is what modes_condense weighs them by. report may be NULL.
fem_status modes_stitched_derivatives(modes_stitched *stitched, const fem_body *body, const modes_basis *basis,
                                      const modes_rights *rights, const modes_basis *old,
                                      const modes_hybrid_options *options, modes_pool *pool, double **omega2,
                                      modes_hybrid_report *report);

// ---- quality ------------------------------------------------------------------------------------------------------

// When a basis is to be made anew: an estimated error of one of the first `modes` frequencies above `error`, or an
// estimated share of one of these modes below `share`.
typedef struct modes_rebuild_rule {
    int    modes;
    double error, share;
    int    probes; // random fields that look for modes which the basis does not have at all
} modes_rebuild_rule;
modes_rebuild_rule modes_rebuild_default_rule(void); // 20, 1 %, 99 %, 6

typedef struct modes_stitch_quality {
    int     count;    // modes that were looked at
    double *residual; // |K^ x - omega^2 M x| in the M^-1 norm over omega^2 |x|: bounds the relative error of omega^2
    double *error;    // estimate of the relative error of each frequency
    double *share;    // estimate of the part of each true mode that lies in the basis
    double  worst_error, least_share;
    bool    rebuild;
    char    reason[160]; // in words, when rebuild
    double  seconds;
} modes_stitch_quality;
void modes_stitch_quality_destroy(modes_stitch_quality *quality); // leaves it empty
// Two steps of inverse iteration with K^ find what the true modes must be close to: from the modes themselves, and from
// random fields. They cost modes + 2 probes solves. The basis holds Ritz vectors, ascending.
fem_status modes_stitched_examine(modes_stitched *stitched, const modes_basis *basis, const modes_rebuild_rule *rule,
                                  modes_stitch_quality *quality);

#endif

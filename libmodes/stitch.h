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

// A stitch may be so many times stiffer or softer than the material at its softer vertex.
#define MODES_STITCH_RANGE 1e9
// Two vertices lie in the same place when their distance is below this part of the mesh's size.
#define MODES_STITCH_GAP 1e-9

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
    int  since;     // the old modes are those of the body with the first so many stitches; those behind are new
    bool rigid_out; // leave out the rigid motions of parts that were free: the fault of P2 figure 7 (a)
} modes_stitch_options;
modes_stitch_options modes_stitch_default_options(void); // attachment

typedef struct modes_stitch_report {
    int    dimension;                                        // of the space that was searched
    int    dropped;                                          // columns that depend on others
    double orthogonality;                                    // max |U^T M U - I|
    double seconds_enrich, seconds_project, seconds_combine; // E; the small problem; the modes
} modes_stitch_report;

// `old` is mass-orthonormal, n x r, without rigid motions; its omega2 (read by `lowrank`) are those of the domains with
// their present factors. In `basis` omega2 is what the form has for squared frequencies, ascending; `lowrank` has zeros
// where free parts were tied. report may be NULL.
fem_status modes_stitched_modes(modes_stitched *stitched, const modes_basis *old, const modes_stitch_options *options,
                                modes_basis *basis, modes_stitch_report *report);

// Modes of a body that consists of domains: those of all of them, with zeros elsewhere, by ascending frequency.
// part[i] is domain i's basis; vertex v of it is vertex first[i] + v of the body; factor[i] scales its stiffness (NULL:
// all 1).
fem_status modes_pad(modes_basis *basis, int vertices, int count, const modes_basis *const *part, const int *first,
                     const double *factor);

#endif

// A basis by recipe: linear modes, their derivatives, and what is kept of both. And how good a basis is.
// A chapter of modes.h: include that.
#ifndef LIMBER_MODES_RECIPE_H
#define LIMBER_MODES_RECIPE_H

#include "libmodes/modes.h"

typedef enum modes_method { MODES_KRYLOV, MODES_LANCZOS } modes_method;

typedef struct modes_recipe {
    modes_method          method;      // inertia modes or vibration modes
    int                   linear;      // linear modes
    int                   derivatives; // orders of their derivatives: 0 = none, 1; inertia derivatives also 2 and 3
    int                   modes[MODES_MOST_ORDER]; // order k is made of the first modes[k-1] alone; 0 = all linear ones
    modes_derivative_kind kind;                    // of the derivatives; tangent ones want vibration modes
    double                max_bytes; // that candidates and condensing may take; 0 = what the system can give
    int                   count;  // columns of the basis; without derivatives all are linear, and `linear` is not read
    double                energy; // with derivatives: fewer columns when these keep that part of the energy; 1 = count
    bool                  keep;   // with derivatives: all linear modes stay as they are, derivatives fill what is left
    modes_condense_method condense; // with derivatives
    modes_scaling         scaling;  // of linear modes and derivatives before they are condensed
    modes_metric          metric;   // of PCA
    double                distance; // of a sketch: shapes closer together than this part of the largest count once
    modes_krylov_options  krylov; // seeds, interfaces, orthogonalisation; count, ritz and inverse are set by the recipe
    // Krylov: fields that come before all other linear modes, n x given_count, scaled to a strain energy that counts as
    // 1 (x^T K x). Of each K^-1 K x is taken: x less the static response to what it does at the supports. Directions
    // that hold less than `given_share` of that energy are left out; at most given_most. Where they
    // need it there are up to given_spare linear modes and columns more than asked for. Directions that hold more than
    // `given_need` (0: none) are linear modes even where derivatives then get fewer columns, or none. The energy of
    // fields beyond the first `given_first` is multiplied by `given_rest`: they take what room the others leave.
    int                   given_count, given_first, given_most, given_spare;
    const double         *given;
    double                given_share, given_need, given_rest;
    modes_inverse_options inverse; // how K^-1 is computed; automatic means a factorisation for vibration modes; solves
                                   // is set by the recipe
} modes_recipe;
modes_recipe modes_default_recipe(modes_method method); // 12 linear, first derivatives, 30 columns by PCA
// "modes.linear is 0, expected > 0"
fem_status modes_recipe_check(const modes_recipe *recipe);

// Right-hand sides that a recipe leads to, and bytes of the linear modes and derivatives with what condenses them, of a
// body of n degrees of freedom.
fem_status modes_recipe_bytes(const modes_recipe *recipe, int n, int *solves, double *bytes);

typedef struct modes_recipe_report {
    int                     free_dofs, rigid;
    int                     candidates; // linear modes and derivatives that were condensed; 0 without
    double                  energy_kept;
    double                  seconds_factor, seconds_linear, seconds_derivatives, seconds_condense;
    modes_krylov_report     krylov; // its arrays are NULL
    modes_derivative_report derivatives;
    modes_inverse_report    inverse;
} modes_recipe_report;

// The body is the one that K and M come from. `inverse` shares a factor; NULL: made here. report may be NULL.
fem_status modes_build(const modes_problem *problem, const fem_body *body, const modes_recipe *recipe,
                       modes_inverse *inverse, const fem_progress *progress, modes_basis *basis,
                       modes_recipe_report *report);

// A basis out of given shapes (n x count): those that lie closer together than recipe->distance, in the mass norm,
// count once; then condensed as the recipe says, unscaled. The candidates of the report are the shapes that were kept;
// it may be NULL. [Barbic and James 2005, 5.2]
fem_status modes_build_sketch(const modes_problem *problem, int count, const double *shapes, const modes_recipe *recipe,
                              modes_basis *basis, modes_recipe_report *report);

// What a basis is worth as a model of small vibrations: K and M projected on it, K^ x = omega^2 M^ x.
typedef struct modes_quality {
    double *rayleigh;      // r: u^T K u / u^T M u of each column
    double *ritz;          // r: squared frequencies of the projected problem, ascending
    double *residuals;     // r: |K x - omega^2 M x| / |K x| of each Ritz vector, 2-norms
    double  orthogonality; // max |U^T M U - I|
} modes_quality;
fem_status modes_examine(const modes_problem *problem, const modes_basis *basis, modes_quality *quality);
void       modes_quality_destroy(modes_quality *quality); // leaves it empty

#endif

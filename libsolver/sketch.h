// Shapes for a sketched basis: the static solutions of a list of recorded loads. [Barbic, James 2005, 5.2]
// libmodes does the rest: modes_select to keep shapes apart, modes_pool_from_shapes, modes_condense.
// A chapter of solver.h: include that.
#ifndef LIMBER_SOLVER_SKETCH_H
#define LIMBER_SOLVER_SKETCH_H

typedef struct solver_sketch_report {
    int    solved;       // loads with a solution
    int    restarts;     // loads that were solved from rest because the way from the shape before failed
    char   message[512]; // of the first load without a solution: "load 17 of 353: ..."; empty when all have one
    double seconds;
} solver_sketch_report;

// Equilibria under `loads` (N, one load a column, n x count, n = 3 * vertices) into `shapes` (n x count). Each starts
// from the shape before it, as the hand that recorded them went on, and if that fails once more from rest. The first
// load that has no solution ends it and is named in the message.
fem_status solver_sketch(const fem_body *body, const unsigned char *fixed, const solver_options *options, int count,
                         const double *loads, const fem_progress *progress, double *shapes);
// The same, but loads without a solution are left out: the shapes come one after the other, solved[k] (count) is the
// load of shape k, from 0. Fails when no load has a solution.
fem_status solver_sketch_solvable(const fem_body *body, const unsigned char *fixed, const solver_options *options,
                                  int count, const double *loads, const fem_progress *progress, double *shapes,
                                  int *solved, solver_sketch_report *report);

#endif

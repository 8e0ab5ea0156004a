// Static shapes of a recorded list of loads, out of which a basis can be made. [Barbic and James 2005, 5.2]
#ifndef LIMBER_SOLVER_SKETCH_H
#define LIMBER_SOLVER_SKETCH_H

#include "libsolver/solver.h"

fem_status solver_sketch(const fem_body *body, const unsigned char *fixed, const solver_options *options, int count,
                         const double *loads, const fem_progress *progress, double *u);

#endif

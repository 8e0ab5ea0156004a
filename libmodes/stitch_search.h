// What the search for modes and its refinement share.
#ifndef LIMBER_MODES_STITCH_SEARCH_H
#define LIMBER_MODES_STITCH_SEARCH_H

#include "libmodes/stitch_internal.h"

enum { STITCH_JUDGED = 20 }; // modes that must be good

typedef struct stitch_search {
    modes_stitched             *s;
    const modes_basis          *old;
    const modes_stitch_options *options;
    stitch_coupling             before;  // attachment: of the stitches that the old modes know
    double                     *R;       // n x ..: rigid motions of the body before; the first `tied` are tied now
    int                         n, r, m; // m = tied + r + enriched
    int                         count;   // modes wanted
    int                         tied, fresh, enriched; // fresh stitches, columns of E
    double                     *T;     // attachment: 3 fresh x enriched, the loads at the stitches whose answers E are
    double                     *W;     // n x m: R1, U, E; from true modes only E
    double                     *MW;    // n x (tied + r)
    double                     *E;     // n x enriched, within W
    double                     *A, *G; // m x m: W^T K^ W and W^T M W
    modes_basis                 basis;
    modes_stitch_report         report;
} stitch_search;

// A z = lambda G z in the independent part of the space, in which a column has more than `least` (squared sine) that
// the others have not; values and Z (m x m) have room for all. G is scaled to ones on its diagonal.
fem_status stitch_small_problem(stitch_search *search, double least, double *values, double *Z, int *rank);
// A part (rows x columns) of A (m x m) from `row` and `column` on.
void stitch_put_block(int m, int row, int column, int rows, int columns, const double *part, bool mirrored, double *A);
// Up to which squared frequency the old modes are all that there are.
double stitch_known_up_to(const stitch_search *search);
// Steps of inverse iteration from all Ritz vectors in the basis, of which the first `count` are kept.
fem_status stitch_refine(stitch_search *search);

#endif

// What the files of a stitched body tell each other.
#ifndef LIMBER_SCENE_STITCHING_INTERNAL_H
#define LIMBER_SCENE_STITCHING_INTERNAL_H

#include "libscene/internal.h"
#include "libscene/stitching.h"

// What distinguishes a body from the one without stitches.
typedef struct springs_of {
    int           count;
    modes_stitch *list;
    double       *factor; // per domain; NULL: all 1
} springs_of;

struct scene_stitching {
    const scene       *s;
    const scene_part  *part;
    const fem_body    *body;
    const scene_class *first;
    fem_sparse         K, M;
    unsigned char     *fixed; // 3 per vertex
    modes_problem      problem;
    modes_inverse     *inverse;
    modes_basis        linear; // of the body without stitches, the lowest, more than are wanted
    int                wanted; // linear modes of every state
    modes_rights       rights; // of the body without stitches; empty without derivatives
    modes_basis        plain;  // of the part, without motions of its pieces
    modes_stitched    *stitched;
    springs_of         before, next; // of the class that the body has, and of the one that was made for it
};

fem_status stitching_copy_basis(const modes_basis *from, modes_basis *to); // `to` is empty
bool       stitching_is_scaled(const scene_stitching *stitching); // a domain is stiffer or softer than at first
// The place of a stitch in a list, whichever of its ends comes first; -1: it is not there.
int stitching_find(int count, const modes_stitch *list, const modes_stitch *stitch);
// A body of the elements of one group alone (group per vertex), with all vertices; `view` holds what it needs.
fem_status stitching_group_body(const fem_mesh *mesh, int quadrature, const int *group, int which, fem_mesh *view,
                                fem_body **body);
void       stitching_group_destroy(fem_mesh *view, fem_body *body);
// The part with stiffer domains: each region once for every factor that it has.
fem_status stitching_scaled_body(const scene_stitching *stitching, fem_mesh *mesh, fem_body **body);
// The forces of a class that has its basis (of a body in several pieces, that of the blocks), springs L included: old
// ones where they are good enough, or new ones.
fem_status stitching_forces(scene_stitching *stitching, const fem_body *body, const modes_basis *whole,
                            const modes_blocks *blocks, scene_class *class, const double *L,
                            const fem_progress *progress, scene_change *change);

#endif

// Internal to libfem: what is wrong with a surface, and the triangles that are left when it is put right.
#ifndef LIMBER_SURFACE_MEND_H
#define LIMBER_SURFACE_MEND_H

#include "libfem/mesher.h"

typedef struct fem_mended {
    int     triangle_count;
    int    *triangles; // of the surface's vertices, facing outwards as far as that can be told
    int     vertex_count;
    double *vertices;    // the surface's own
    int     turned_over; // triangles that faced the other way than their neighbours
} fem_mended;

// Leaves out triangles without an area; where every triangle is there from both sides, one of each pair; makes
// neighbours face the same way where they do not, and the whole outwards. Fills the surface's part of the report.
fem_status fem_surface_mend(fem_mended *mended, const fem_surface *surface, fem_mesher_report *report);
void       fem_mended_destroy(fem_mended *mended);

#endif

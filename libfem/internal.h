// What libfem's own files tell each other.
#ifndef LIMBER_FEM_INTERNAL_H
#define LIMBER_FEM_INTERNAL_H

#include "libfem/fem.h"

void fem_cholmod_version(char text[32]);
void fem_metis_version(char text[32]);
void fem_lapack_version(char text[32]);

#endif

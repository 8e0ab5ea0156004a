// libfem: everything that the other libraries stand on. Include this header; the parts below are its chapters.
#ifndef LIMBER_FEM_H
#define LIMBER_FEM_H

#include "libfem/base.h"    // status, memory, scratch, clock, threads, machine
#include "libfem/algebra.h" // 3-vectors, 3x3 matrices, dense matrices
#include "libfem/mesh.h"    // meshes, their files, generators, topology
#include "libfem/edit.h"    // joining, cutting, matching and aligning meshes
#include "libfem/sparse.h"  // symmetric block matrices and their factorisation
#include "libfem/amg.h"     // multigrid for matrices that are too large for it
#include "libfem/body.h"    // materials, elements, mass, assembly
#include "libfem/store.h"   // checked binary files, hashes
#include "libfem/batch.h"   // many small dense systems side by side
#include "libfem/mesher.h"  // from a surface to a mesh

#endif

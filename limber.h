// limber: simulation of deformable bodies. This header brings in all of the library.
#ifndef LIMBER_H
#define LIMBER_H

// System headers stay outside the C++ bracket.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "libscene/scene.h"

#ifdef __cplusplus
}
#endif

#endif

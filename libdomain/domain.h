// libdomain: a body as a tree of domains, and the frames that their interfaces carry.
#ifndef LIMBER_DOMAIN_H
#define LIMBER_DOMAIN_H

#include "libfem/fem.h"
#include "libdomain/crowd.h"
#include "libdomain/decompose.h"
#include "libdomain/frame.h"

#endif

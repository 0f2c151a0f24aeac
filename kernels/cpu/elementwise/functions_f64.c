// SPDX-License-Identifier: MIT
// Loops of functions of f64 that have no instruction in expressions, by groups of elements.
#include "map_loops.h"
#include "math_lgamma.h"
#include "variants.h"

#define T double
#define WORD int64_t
#include "map_groups.inc.h"

MAP1_GROUPS(lgamma_of_f64, (x >= 0) & (x < 8), lgamma_near(x), lgamma_any(x))

void V(cpu_lgamma_f64)(void *out, const void *const *in, int64_t n, uint32_t scalars)
{
    lgamma_of_f64(out, in, n, scalars);
}

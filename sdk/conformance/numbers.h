// SPDX-License-Identifier: MIT
// What the kit and its suite have in common: random numbers, and what dtypes are called and
// how they round. A generator's state is one number.
#ifndef CONFORMANCE_NUMBERS_H
#define CONFORMANCE_NUMBERS_H

#include <stdint.h>
#include <tenon/types.h>

uint64_t numbers_next(uint64_t *state);
// In [lo, hi).
double numbers_between(uint64_t *state, double lo, double hi);
// The state for what has this name, after `state`.
uint64_t numbers_named(uint64_t state, const char *name);

// The error of one rounding of the dtype, relative; 0 for integers and bool.
double dtype_rounding(tn_dtype dtype);

#endif // CONFORMANCE_NUMBERS_H

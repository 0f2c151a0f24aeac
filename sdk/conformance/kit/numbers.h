// SPDX-License-Identifier: MIT
// Shared by the kit and the operator suite: random numbers, whose generator has one integer
// of state, and rounding of dtypes.
#ifndef CONFORMANCE_KIT_NUMBERS_H
#define CONFORMANCE_KIT_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/types.h>

uint64_t numbers_next(uint64_t *state);
// A number in [lo, hi).
double numbers_between(uint64_t *state, double lo, double hi);
// A state derived from `state` and `name`.
uint64_t numbers_named(uint64_t state, const char *name);

// Relative error of one rounding to the dtype; of a complex dtype that of one part. 0 for
// integers, bool, and floats of 8 bits, in which nothing computes.
double dtype_rounding(tn_dtype dtype);

// Whether arrays of the dtype have derivatives: floats and complex numbers.
bool dtype_derives(tn_dtype dtype);

#endif // CONFORMANCE_KIT_NUMBERS_H

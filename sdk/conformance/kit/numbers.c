// SPDX-License-Identifier: MIT
// Random numbers by splitmix64, and rounding of dtypes.
#include <math.h>
#include "numbers.h"

static const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t kit_numbers_mix(uint64_t x) // splitmix64's finaliser
{
    x += golden;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t numbers_next(uint64_t *state)
{
    *state += golden;
    return kit_numbers_mix(*state);
}

double numbers_between(uint64_t *state, double lo, double hi)
{
    return lo + (hi - lo) * (double)(numbers_next(state) >> 11) * 0x1p-53;
}

uint64_t numbers_named(uint64_t state, const char *name)
{
    for (; *name; name++)
        state = kit_numbers_mix(state ^ (uint8_t)*name);
    return state;
}

double dtype_rounding(tn_dtype dtype)
{
    return dtype_derives(dtype) ? ldexp(1, -tn_dtype_precision(dtype)) : 0;
}

bool dtype_derives(tn_dtype dtype)
{
    return tn_is_float(dtype) || tn_is_complex(dtype);
}

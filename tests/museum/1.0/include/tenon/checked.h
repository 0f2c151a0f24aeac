// SPDX-License-Identifier: MIT
// Sums and products of sizes, checked: what does not fit 64 bits is told, never wrapped.
//
// Extents, offsets and counts come from users, files and plugins. Whoever makes bytes,
// offsets or numbers of elements of them does so with these, and fails with an
// error that names the operands.
//
// Each function returns 1 and writes *out when the result fits, or returns 0 and
// leaves *out alone. `out` may be the address of an operand's variable.
//
// Threads. Pure functions.
#ifndef TENON_CHECKED_H
#define TENON_CHECKED_H

#include <stdint.h>

// *out = a + b.
static inline int32_t tn_checked_add(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b > UINT64_MAX - a)
        return 0;
    *out = a + b;
    return 1;
}

// *out = a * b.
static inline int32_t tn_checked_multiply(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a != 0 && b > UINT64_MAX / a)
        return 0;
    *out = a * b;
    return 1;
}

// *out = the least multiple of `alignment` that is at least `size`. `alignment` is at
// least 1; it need not be a power of two.
static inline int32_t tn_checked_round_up(uint64_t size, uint64_t alignment, uint64_t *out)
{
    uint64_t rest = size % alignment;
    return tn_checked_add(size, rest ? alignment - rest : 0, out);
}

// *out = a + b, signed: extents and offsets of layouts.
static inline int32_t tn_checked_add_signed(int64_t a, int64_t b, int64_t *out)
{
    if (b >= 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return 0;
    *out = a + b;
    return 1;
}

// *out = a * b, signed, of numbers that are not negative: extents, counts.
static inline int32_t tn_checked_multiply_extents(int64_t a, int64_t b, int64_t *out)
{
    if (a != 0 && b > INT64_MAX / a)
        return 0;
    *out = a * b;
    return 1;
}

// a + b; UINT64_MAX, more than any memory has, where it does not fit. For functions that
// give a size and cannot fail: the core refuses such a `scratch_size`.
static inline uint64_t tn_saturated_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return tn_checked_add(a, b, &sum) ? sum : UINT64_MAX;
}

// a * b, in the same way.
static inline uint64_t tn_saturated_multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return tn_checked_multiply(a, b, &product) ? product : UINT64_MAX;
}

#endif // TENON_CHECKED_H

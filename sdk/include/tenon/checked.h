// SPDX-License-Identifier: MIT
// Overflow-checked sums and products of sizes: a result that does not fit 64 bits is
// reported and never wraps.
//
// Extents, offsets and counts come from users, files and plugins. Code that computes bytes,
// offsets or numbers of elements from them uses these functions, and fails with a message
// that names the operands:
//
//   uint64_t bytes;
//   if (!tn_checked_multiply(rows, row_bytes, &bytes))
//       return host->fail(host, TN_ERR_ARGUMENT, "%llu rows of %llu bytes: too large",
//       ...);
//
//   // The bytes of a header and of a table behind it; false when either step overflows.
//   if (tn_checked_multiply(rows, row_bytes, &bytes) && tn_checked_add(bytes, 64, &bytes))
//
// The tn_checked_ functions return 1 and write *out when the result fits; otherwise they
// return 0 and leave *out alone. `out` may be the address of an operand's variable, so sums
// chain. They record no failure: only the caller can name the operands. The tn_saturated_
// functions return the result itself.
//
// Threads. Pure functions: any thread.
#ifndef TENON_CHECKED_H
#define TENON_CHECKED_H

#include <stdint.h>

// *out = a + b, unsigned: bytes, and counts of elements.
static inline int32_t tn_checked_add(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b > UINT64_MAX - a)
        return 0;
    *out = a + b;
    return 1;
}

// *out = a * b, unsigned: a count, and the bytes of one element or row.
static inline int32_t tn_checked_multiply(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a != 0 && b > UINT64_MAX / a)
        return 0;
    *out = a * b;
    return 1;
}

// *out = the least multiple of `alignment` that is at least `size`, in the unit of both.
// `alignment` is at least 1 and need not be a power of two. Fails when the multiple
// does not fit, for a `size` near UINT64_MAX.
static inline int32_t tn_checked_round_up(uint64_t size, uint64_t alignment, uint64_t *out)
{
    uint64_t rest = size % alignment;
    return tn_checked_add(size, rest ? alignment - rest : 0, out);
}

// *out = a + b, signed: for the offsets and strides of layouts, which may be negative.
static inline int32_t tn_checked_add_signed(int64_t a, int64_t b, int64_t *out)
{
    if (b >= 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return 0;
    *out = a + b;
    return 1;
}

// *out = a * b for signed numbers that are both at least 0: extents and counts. The
// result for a negative operand is undefined.
static inline int32_t tn_checked_multiply_extents(int64_t a, int64_t b, int64_t *out)
{
    if (a != 0 && b > INT64_MAX / a)
        return 0;
    *out = a * b;
    return 1;
}

// a + b, or UINT64_MAX when the sum does not fit. For functions that return a size and
// cannot fail, such as `scratch_size` of a tn_kernel: the core refuses sizes above
// INT64_MAX.
static inline uint64_t tn_saturated_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return tn_checked_add(a, b, &sum) ? sum : UINT64_MAX;
}

// a * b, or UINT64_MAX when the product does not fit.
static inline uint64_t tn_saturated_multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return tn_checked_multiply(a, b, &product) ? product : UINT64_MAX;
}

#endif // TENON_CHECKED_H

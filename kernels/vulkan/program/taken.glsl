// SPDX-License-Identifier: MIT
// Instruction TAKE of <tenon/expr.h>: the number, below n, of the element that an index means among
// n, at least 1. Negative indices count from the end, and others out of range are the nearest. n
// reaches 2^32 - 1, which an int does not hold: comparisons are unsigned.
#ifdef NEED_TAKE
uint taken_u32(uint i, uint n)
{
    return min(i, n - 1u);
}
uint taken_i32(int i, uint n)
{
    uint from_end = uint(~i); // -1: 0
    return i >= 0 ? min(uint(i), n - 1u) : n - 1u - min(from_end, n - 1u);
}
#ifdef NEED_I64
uint taken_u64(uint64_t i, uint n)
{
    return i < uint64_t(n) ? uint(i) : n - 1u;
}
uint taken_i64(int64_t i, uint n)
{
    uint64_t from_end = uint64_t(~i);
    return i >= int64_t(0) ? taken_u64(uint64_t(i), n) : n - 1u - taken_u64(from_end, n);
}
#endif
#endif

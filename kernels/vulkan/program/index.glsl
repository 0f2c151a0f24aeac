// SPDX-License-Identifier: MIT
// Reads an index of dtype INDEX from `indices`. Negative indices count from the end.
#define UNSIGNED PASTE(UNSIGNED_, INDEX)

// Lengths reach 2^32 - 1, which an int does not hold: comparisons are unsigned.
uint position_of_index(uint m, uint length, uint below, uint above)
{
    PASTE(W_, INDEX) k = PASTE(W_, INDEX)(indices.d[args.index_offset + m]);
#ifdef INDEX_SIGNED
    UNSIGNED from_end = UNSIGNED(~k); // -1: 0
    if (k < 0)
        return from_end < UNSIGNED(length) ? length - 1u - uint(from_end) : below;
#endif
    return UNSIGNED(k) < UNSIGNED(length) ? uint(k) : above;
}

// Index m, clamped to 0 .. length - 1.
uint clamped_index(uint m, uint length)
{
    return position_of_index(m, length, 0u, length - 1u);
}

// Index m, or `length` when it is out of range.
uint checked_index(uint m, uint length)
{
    return position_of_index(m, length, length, length);
}

// SPDX-License-Identifier: MIT
// Reading an index of dtype INDEX from `indices`.

// Within 0 .. length - 1: negative ones count from the end, the rest is clamped.
uint clamped_index(uint m, uint length)
{
    PASTE(W_, INDEX) k = PASTE(W_, INDEX)(indices.d[args.index_offset + m]);
#ifdef INDEX_SIGNED
    if (k < 0)
        k += PASTE(W_, INDEX)(length);
    if (k < 0)
        return 0u;
#endif
    return k >= PASTE(W_, INDEX)(length) ? length - 1u : uint(k);
}

// The same, but `length` for those out of range.
uint checked_index(uint m, uint length)
{
    PASTE(W_, INDEX) k = PASTE(W_, INDEX)(indices.d[args.index_offset + m]);
#ifdef INDEX_SIGNED
    if (k < 0)
        k += PASTE(W_, INDEX)(length);
    if (k < 0)
        return length;
#endif
    return k >= PASTE(W_, INDEX)(length) ? length : uint(k);
}

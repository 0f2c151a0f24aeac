// SPDX-License-Identifier: MIT
// Indices of any integers, as bytes: args.index_offset bytes on, args.index_size bytes each,
// args.index_signed. Negative ones count from the end; others out of range are the nearest.
layout(std430, binding = INDEX_BINDING) readonly buffer Index { uint8_t d[]; } indices;

// The row, of `rows`, that index `m` means.
uint row_of(uint m, uint rows)
{
    uint size = args.index_size, at = args.index_offset + m * size;
    bool is_negative = args.index_signed != 0u && uint(indices.d[at + size - 1u]) > 127u;
    uint low = 0u, high = 0u;
    for (uint i = 0u; i < size; i++) {
        uint byte = uint(indices.d[at + i]) ^ (is_negative ? 0xffu : 0u); // -1: 0
        if (i < 4u)
            low |= byte << (8u * i);
        else
            high |= byte << (8u * i - 32u);
    }
    uint nearest = high == 0u ? min(low, rows - 1u) : rows - 1u;
    return is_negative ? rows - 1u - nearest : nearest;
}

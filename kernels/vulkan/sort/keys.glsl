// SPDX-License-Identifier: MIT
// Keys: unsigned words in whose order elements come, NaN as the greatest, zeros of both signs
// alike. WIDTH: bits of an element. KEY: uint, or uint64_t; KEY_BYTES of it.
layout(constant_id = 1) const uint KIND = 0; // 0: unsigned, 1: signed, 2: float
layout(constant_id = 2) const uint DESCENDING = 0;
layout(constant_id = 3) const uint INFINITY_HIGH = 0; // of a float: the highest 32 bits

#define ONES KEY(KEY(~KEY(0)) >> (8u * uint(KEY_BYTES) - WIDTH))
#define SIGN KEY(KEY(1) << (uint(WIDTH) - 1u))

KEY key_of(KEY bits)
{
    if (KIND == 1u)
        bits ^= SIGN;
    if (KIND == 2u) {
        KEY size = bits & (SIGN - KEY(1)); // without the sign
#if WIDTH == 64
        KEY most = packUint2x32(uvec2(0u, INFINITY_HIGH));
#else
        KEY most = INFINITY_HIGH >> (32u - uint(WIDTH));
#endif
        if (size > most)
            bits = ONES; // NaN
        else if (size == KEY(0))
            bits = SIGN; // both zeros
        else
            bits = (bits & SIGN) != KEY(0) ? SIGN - KEY(1) - size : SIGN | size;
    }
    return DESCENDING != 0u ? bits ^ ONES : bits;
}

// SPDX-License-Identifier: MIT
// Random numbers, the same on every machine.
#include "random.h"

// Blackman and Vigna's splitmix64: a counter, whose bits are mixed.
static uint64_t bits_next(uint64_t *state)
{
    // Arithmetic modulo 2^64, in 128 bits: sanitizers report unsigned 64-bit overflow.
    unsigned __int128 sum = (unsigned __int128)*state + UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state = (uint64_t)sum;
    z = (uint64_t)((unsigned __int128)(z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9));
    z = (uint64_t)((unsigned __int128)(z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb));
    return z ^ (z >> 31);
}

double lm_next_share(uint64_t *state)
{
    return (double)(bits_next(state) >> 11) * 0x1p-53;
}

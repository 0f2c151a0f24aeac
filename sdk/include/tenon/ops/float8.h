// SPDX-License-Identifier: MIT
// For authors of kernels and backends: the formats of floats of 8 bits, E4M3 and E5M2 of
// the OCP 8-bit Floating Point Specification, revision 1.0, and conversion from and to f32.
// Plain C, to compare faster code with.
//
//   uint8_t bits = tn_f8_e4m3_of_f32(0.3f);  // 0x2a: 0.3125
//   float value = tn_f32_of_f8_e4m3(bits);
//
// Both have a sign, and numbers below the least normal one are subnormal. They are dtypes
// for storage: programs compute in f32, and nothing promotes to them or from them.
//
//            greatest   least normal   least       infinity   NaN
//   E4M3     448        2^-6           2^-9        none       0x7f, 0xff
//   E5M2     57344      2^-14          2^-16       0x7c       0x7d, 0x7e, 0x7f; with a sign
//
// Rounding is to nearest, ties to even, and where it leads beyond the greatest number the
// result is NaN for E4M3 and infinity for E5M2, as PyTorch converts to float8_e4m3fn and
// float8_e5m2. (The specification calls this the mode without saturation.) A caller that
// wants saturation clamps before.
//
// Assumes IEEE 754 arithmetic in the default rounding mode, and no -ffast-math.
//
// Threads. Pure functions: any thread. None fails.
#ifndef TENON_OPS_FLOAT8_H
#define TENON_OPS_FLOAT8_H

#include <stdint.h>

// The value of an F8_E4M3 element, given by its bits: 4 bits of exponent with a bias of 7,
// 3 of fraction (OCP 8-bit Floating Point Specification 1.0, 5.3). Exact. The greatest
// finite one is 448, the least normal one 2^-6, the least subnormal one 2^-9. There is no
// infinity, and 0x7f and 0xff are NaN.
static inline float tn_f32_of_f8_e4m3(uint8_t bits)
{
    union {
        uint32_t u;
        float f;
    } v;
    uint32_t exponent = bits >> 3 & 15, mantissa = bits & 7;
    if ((bits & 0x7f) == 0x7f)
        v.u = 0x7fc00000;
    else if (exponent == 0) // subnormal: counted in units of 2^-9
        v.f = (float)mantissa * 0.001953125f;
    else // the biases, 127 and 7, differ by 120
        v.u = (exponent + 120) << 23 | mantissa << 20;
    v.u |= (uint32_t)(bits & 0x80) << 24;
    return v.f;
}

// The bits of the F8_E4M3 nearest to `value`, ties to even, as PyTorch converts to
// torch.float8_e4m3fn: beyond 464, half way to the number after 448, the result is NaN, for
// infinities too. Signs are kept.
static inline uint8_t tn_f8_e4m3_of_f32(float value)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = value;
    uint32_t sign = v.u >> 24 & 0x80, odd = v.u >> 20 & 1;
    v.u &= 0x7fffffff;
    if (v.u > 0x43e80000) // 464, infinity and NaN
        return (uint8_t)(sign | 0x7f);
    // Below 2^-6, subnormal. Floats from 2^14 on have an ulp of 2^-9, so adding 2^14 makes
    // the processor round to a multiple of 2^-9; the multiple is then in the low bits.
    if (v.u < 0x3c800000) {
        v.f += 16384.0f;
        return (uint8_t)(sign | (v.u - 0x46800000));
    }
    // Subtracts 120 from the exponent, and adds half an ulp, less a bit where the last kept
    // bit is even; a carry runs into the exponent.
    return (uint8_t)(sign | (v.u - (UINT32_C(120) << 23) + 0x7ffff + odd) >> 20);
}

// The value of an F8_E5M2 element, given by its bits: 5 bits of exponent with a bias of 15,
// 2 of fraction; the upper half of the binary16 of the same value. Exact. The greatest
// finite one is 57344, the least normal one 2^-14, the least subnormal one 2^-16. 0x7c and
// 0xfc are infinities, and what lies above is NaN, its payload kept.
static inline float tn_f32_of_f8_e5m2(uint8_t bits)
{
    union {
        uint32_t u;
        float f;
    } v;
    uint32_t exponent = bits >> 2 & 31, mantissa = bits & 3;
    if (exponent == 0) // subnormal: counted in units of 2^-16
        v.f = (float)mantissa * 0.0000152587890625f;
    else // the biases differ by 112; the greatest exponent stays infinity and NaN
        v.u = (exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 21;
    v.u |= (uint32_t)(bits & 0x80) << 24;
    return v.f;
}

// The bits of the F8_E5M2 nearest to `value`, ties to even, as PyTorch converts to
// torch.float8_e5m2: from 61440 on, half way to the next power of two, infinity. NaN is
// 0x7f, with the sign of `value`.
static inline uint8_t tn_f8_e5m2_of_f32(float value)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = value;
    uint32_t sign = v.u >> 24 & 0x80, odd = v.u >> 21 & 1;
    v.u &= 0x7fffffff;
    if (v.u > 0x7f800000)
        return (uint8_t)(sign | 0x7f);
    if (v.u >= 0x47700000) // 61440
        return (uint8_t)(sign | 0x7c);
    if (v.u < 0x38800000) { // below 2^-14; floats from 2^7 on have an ulp of 2^-16
        v.f += 128.0f;
        return (uint8_t)(sign | (v.u - 0x43000000));
    }
    return (uint8_t)(sign | (v.u - (UINT32_C(112) << 23) + 0xfffff + odd) >> 21);
}

#endif // TENON_OPS_FLOAT8_H

// SPDX-License-Identifier: MIT
// Element types, by the names of the dtypes: their types in memory and in computation.
//
//   S_x    in a buffer           SV_x  four of them
//   W_x    as loaded: S_x widened to a type that needs no 8 or 16-bit arithmetic
//   WV_x   four of them (SV_x converts to it, and back)
//   C_x    in computation: float for F16, BF16 and floats of 8 bits, int or uint for narrow
//          integers
//   FROM_x(w) from W to C        TO_x(c)  back, rounded to nearest even
//   WRAP_x(c)  reduces a narrow integer to its width
//   UNSIGNED_x  of integers: as W_x, without a sign
//
// Complex numbers are loaded and stored one at a time, so that there is no SV_ and no WV_.
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

// Floats that are stored only: x_value(w) and x_bits(c) of each, those of 8 bits below, with
// NEED_FLOAT8 (their formats are those of <tenon/ops/float8.h>).
#define f16_value(w) unpackHalf2x16(w).x
#define bf16_value(w) uintBitsToFloat((w) << 16)

// The table, from TN_DTYPES of <tenon/types.h> (../pack/tables.py).
#include "dtypes.glsl"

// The upper half of a binary32, rounded to nearest even; a NaN stays a NaN.
uint bf16_bits(float x)
{
    uint bits = floatBitsToUint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (bits >> 16) | 0x40u;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

// binary16, rounded to nearest even: GLSL does not specify the rounding of its own conversions.
uint f16_bits(float x)
{
    uint bits = floatBitsToUint(x);
    uint sign = (bits >> 16) & 0x8000u;
    uint rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return sign | 0x7e00u | ((rest >> 13) & 0x1ffu);
    if (rest >= 0x477ff000u) // rounds to 65536 or more
        return sign | 0x7c00u;
    if (rest < 0x38800000u) { // below 2^-14: in units of 2^-24
        float units = uintBitsToFloat(rest) * 16777216.0;
        return sign | uint(roundEven(units));
    }
    rest += 0xfffu + ((rest >> 13) & 1u);
    return sign | ((rest - 0x38000000u) >> 13);
}

#ifdef NEED_FLOAT8
// E4M3, rounded to nearest even; beyond 464, half way to the number after 448, NaN. Numbers below
// 2^-6 are counted in units of 2^-9: multiplied, since a device may round a sum in another way.
uint f8_e4m3_bits(float x)
{
    uint bits = floatBitsToUint(x), rest = bits & 0x7fffffffu, sign = (bits >> 24) & 0x80u;
    if (rest > 0x43e80000u)
        return sign | 0x7fu;
    if (rest < 0x3c800000u)
        return sign | uint(roundEven(uintBitsToFloat(rest) * 512.0));
    return sign | ((rest - 0x3c000000u + 0x7ffffu + ((rest >> 20) & 1u)) >> 20);
}
float f8_e4m3_value(uint w)
{
    uint exponent = (w >> 3) & 15u, rest = w & 7u, bits = ((exponent + 120u) << 23) | (rest << 20);
    if ((w & 0x7fu) == 0x7fu)
        bits = 0x7fc00000u;
    else if (exponent == 0u)
        bits = floatBitsToUint(float(rest) * 0.001953125);
    return uintBitsToFloat(bits | ((w & 0x80u) << 24));
}

// E5M2, rounded to nearest even; from 61440 on, half way to the next power of two, infinity.
// Numbers below 2^-14 are counted in units of 2^-16.
uint f8_e5m2_bits(float x)
{
    uint bits = floatBitsToUint(x), rest = bits & 0x7fffffffu, sign = (bits >> 24) & 0x80u;
    if (rest > 0x7f800000u)
        return sign | 0x7fu;
    if (rest >= 0x47700000u)
        return sign | 0x7cu;
    if (rest < 0x38800000u)
        return sign | uint(roundEven(uintBitsToFloat(rest) * 65536.0));
    return sign | ((rest - 0x38000000u + 0xfffffu + ((rest >> 21) & 1u)) >> 21);
}
float f8_e5m2_value(uint w)
{
    uint exponent = (w >> 2) & 31u, rest = w & 3u;
    uint bits = ((exponent == 31u ? 255u : exponent + 112u) << 23) | (rest << 21);
    if (exponent == 0u)
        bits = floatBitsToUint(float(rest) * 0.0000152587890625);
    return uintBitsToFloat(bits | ((w & 0x80u) << 24));
}
#endif

// Number of this workgroup: more than the device takes along x are laid out in rows of
// GRID_ROW. A specialisation constant: a driver may write gl_NumWorkGroups to memory before
// each dispatch of a kernel that reads it.
layout(constant_id = 1000) const uint GRID_ROW = 0; // 0: one row
uint group_number()
{
    return gl_WorkGroupID.x + gl_WorkGroupID.y * GRID_ROW;
}

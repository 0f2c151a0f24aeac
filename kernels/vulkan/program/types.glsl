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
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define S_bool uint8_t
#define SV_bool u8vec4
#define W_bool uint
#define WV_bool uvec4
#define C_bool bool
#define FROM_bool(w) ((w) != 0u)
#define TO_bool(c) ((c) ? 1u : 0u)
#define WRAP_bool(c) (c)

#define S_i8 int8_t
#define SV_i8 i8vec4
#define W_i8 int
#define WV_i8 ivec4
#define C_i8 int
#define FROM_i8(w) (w)
#define TO_i8(c) (c)
#define WRAP_i8(c) bitfieldExtract(int(c), 0, 8)

#define S_i16 int16_t
#define SV_i16 i16vec4
#define W_i16 int
#define WV_i16 ivec4
#define C_i16 int
#define FROM_i16(w) (w)
#define TO_i16(c) (c)
#define WRAP_i16(c) bitfieldExtract(int(c), 0, 16)

#define S_i32 int
#define SV_i32 ivec4
#define W_i32 int
#define WV_i32 ivec4
#define C_i32 int
#define FROM_i32(w) (w)
#define TO_i32(c) (c)
#define WRAP_i32(c) (c)

#define S_i64 int64_t
#define SV_i64 i64vec4
#define W_i64 int64_t
#define WV_i64 i64vec4
#define C_i64 int64_t
#define FROM_i64(w) (w)
#define TO_i64(c) (c)
#define WRAP_i64(c) (c)

#define S_u8 uint8_t
#define SV_u8 u8vec4
#define W_u8 uint
#define WV_u8 uvec4
#define C_u8 uint
#define FROM_u8(w) (w)
#define TO_u8(c) (c)
#define WRAP_u8(c) (uint(c) & 0xffu)

#define S_u16 uint16_t
#define SV_u16 u16vec4
#define W_u16 uint
#define WV_u16 uvec4
#define C_u16 uint
#define FROM_u16(w) (w)
#define TO_u16(c) (c)
#define WRAP_u16(c) (uint(c) & 0xffffu)

#define S_u32 uint
#define SV_u32 uvec4
#define W_u32 uint
#define WV_u32 uvec4
#define C_u32 uint
#define FROM_u32(w) (w)
#define TO_u32(c) (c)
#define WRAP_u32(c) (c)

#define S_u64 uint64_t
#define SV_u64 u64vec4
#define W_u64 uint64_t
#define WV_u64 u64vec4
#define C_u64 uint64_t
#define FROM_u64(w) (w)
#define TO_u64(c) (c)
#define WRAP_u64(c) (c)

#define S_f16 uint16_t
#define SV_f16 u16vec4
#define W_f16 uint
#define WV_f16 uvec4
#define C_f16 float
#define FROM_f16(w) unpackHalf2x16(w).x
#define TO_f16(c) half_bits(c)
#define WRAP_f16(c) (c)

#define S_bf16 uint16_t
#define SV_bf16 u16vec4
#define W_bf16 uint
#define WV_bf16 uvec4
#define C_bf16 float
#define FROM_bf16(w) uintBitsToFloat((w) << 16)
#define TO_bf16(c) bfloat_bits(c)
#define WRAP_bf16(c) (c)

#define S_f32 float
#define SV_f32 vec4
#define W_f32 float
#define WV_f32 vec4
#define C_f32 float
#define FROM_f32(w) (w)
#define TO_f32(c) (c)
#define WRAP_f32(c) (c)

#define S_f64 double
#define SV_f64 dvec4
#define W_f64 double
#define WV_f64 dvec4
#define C_f64 double
#define FROM_f64(w) (w)
#define TO_f64(c) (c)
#define WRAP_f64(c) (c)

// Floats of 8 bits, by the bits, with NEED_FLOAT8: their formats are those of
// <tenon/ops/float8.h>.
#define S_f8_e4m3 uint8_t
#define SV_f8_e4m3 u8vec4
#define W_f8_e4m3 uint
#define WV_f8_e4m3 uvec4
#define C_f8_e4m3 float
#define FROM_f8_e4m3(w) f8_e4m3_value(w)
#define TO_f8_e4m3(c) f8_e4m3_bits(c)
#define WRAP_f8_e4m3(c) (c)

#define S_f8_e5m2 uint8_t
#define SV_f8_e5m2 u8vec4
#define W_f8_e5m2 uint
#define WV_f8_e5m2 uvec4
#define C_f8_e5m2 float
#define FROM_f8_e5m2(w) f8_e5m2_value(w)
#define TO_f8_e5m2(c) f8_e5m2_bits(c)
#define WRAP_f8_e5m2(c) (c)

// Complex numbers: loaded and stored one at a time, so that there is no SV_ and no WV_.
#define S_complex64 vec2
#define W_complex64 vec2
#define C_complex64 vec2
#define FROM_complex64(w) (w)
#define TO_complex64(c) (c)
#define WRAP_complex64(c) (c)

#define S_complex128 dvec2
#define W_complex128 dvec2
#define C_complex128 dvec2
#define FROM_complex128(w) (w)
#define TO_complex128(c) (c)
#define WRAP_complex128(c) (c)

// The upper half of a binary32, rounded to nearest even; a NaN stays a NaN.
uint bfloat_bits(float x)
{
    uint bits = floatBitsToUint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (bits >> 16) | 0x40u;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

// binary16, rounded to nearest even: GLSL does not specify the rounding of its own conversions.
uint half_bits(float x)
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

#version 460
// SPDX-License-Identifier: MIT
// The parts that a backend without a compiler links programs from: a function for each
// operation and class of operand, and the types of every dtype in memory. Compiled without
// optimisation, so that the functions stay; parts.py takes the module apart.
//
//   NAME_class(a, b)         the instruction NAME of <tenon/expr.h>, before WRAP_
//   CAST_from_to(a)          conversions between classes; of floats to every integer dtype
//   DECODE_dtype(w)          W_ to C_, where they differ      ENCODE_dtype(c)  and back
//   NARROW_dtype(a)          WRAP_: to the width of a narrow integer
//   BITS_class(low, high)    a value from the words of a constant or parameter
//
//   TYPES_dtype(w, four)     W_, WV_ and C_ by its parameters and result
//   ITEM(0)                  number of this invocation      INDEX(i)  i as int64_t
//
// Classes are the dtypes that are computed with: bool i32 u32 i64 u64 f32 f64.
#define NEED_ALL
#define NEED_I64
#define NEED_F64
#define NEED_F64_FUNCTIONS
#include "types.glsl"
#include "scalar.glsl"
#include "functions.glsl"
#include "functions_f64.glsl"
#include "circular_f64.glsl"

layout(local_size_x = 256) in;

// Every part is listed by one of these, twice: as a definition, then as a call out of main, for
// glslang leaves out what nothing calls. Parameters are const, and so passed as values.
#define PART_1(R, NAME, A, RESULT)                                                         \
    R NAME(const A a)                                                                      \
    {                                                                                      \
        return RESULT;                                                                     \
    }
#define PART_2(R, NAME, A, B, RESULT)                                                      \
    R NAME(const A a, const B b)                                                           \
    {                                                                                      \
        return RESULT;                                                                     \
    }
#define PART_3(R, NAME, A, B, C, RESULT)                                                   \
    R NAME(const A a, const B b, const C c)                                                \
    {                                                                                      \
        return RESULT;                                                                     \
    }

// --- operations ---------------------------------------------------------------------------

#define UNARY_TO(R, NAME, T) PART_1(C_##R, NAME##_##T, C_##T, op_##NAME(a))
#define BINARY_TO(R, NAME, T) PART_2(C_##R, NAME##_##T, C_##T, C_##T, op_##NAME(a, b))
#define UNARY(NAME, T) UNARY_TO(T, NAME, T)
#define BINARY(NAME, T) BINARY_TO(T, NAME, T)
#define SHIFT(NAME, T) PART_3(C_##T, NAME##_##T, C_##T, C_##T, uint, op_##NAME(a, b, int(c)))
#define BINARY_BOOL(NAME) PART_2(bool, NAME##_bool, bool, bool, op_##NAME##_b(a, b))

#define NUMBER(T)                                                                          \
    UNARY(NEG, T)                                                                          \
    UNARY(ABS, T)                                                                          \
    UNARY(SIGN, T)                                                                         \
    BINARY(ADD, T)                                                                         \
    BINARY(SUB, T)                                                                         \
    BINARY(MUL, T)                                                                         \
    BINARY(DIV, T)                                                                         \
    BINARY(MOD, T)                                                                         \
    BINARY(MIN, T)                                                                         \
    BINARY(MAX, T)                                                                         \
    BINARY_TO(bool, EQ, T)                                                                 \
    BINARY_TO(bool, NE, T)                                                                 \
    BINARY_TO(bool, LT, T)                                                                 \
    BINARY_TO(bool, LE, T)                                                                 \
    BINARY_TO(bool, GT, T)                                                                 \
    BINARY_TO(bool, GE, T)
#define INTEGER(T)                                                                         \
    NUMBER(T)                                                                              \
    UNARY(INVERT, T)                                                                       \
    BINARY(POW, T)                                                                         \
    BINARY(AND, T)                                                                         \
    BINARY(OR, T)                                                                          \
    BINARY(XOR, T)                                                                         \
    SHIFT(SHL, T)                                                                          \
    SHIFT(SHR, T)
#define REAL(T)                                                                            \
    NUMBER(T)                                                                              \
    UNARY(FLOOR, T)                                                                        \
    UNARY(CEIL, T)                                                                         \
    UNARY(TRUNC, T)                                                                        \
    UNARY(ROUND, T)                                                                        \
    UNARY(SQRT, T)                                                                         \
    UNARY(RSQRT, T)                                                                        \
    UNARY_TO(bool, ISNAN, T)                                                               \
    UNARY_TO(bool, ISINF, T)                                                               \
    UNARY_TO(bool, ISFINITE, T)
#define FUNCTIONS(T)                                                                       \
    UNARY(EXP, T)                                                                          \
    UNARY(EXP2, T)                                                                         \
    UNARY(EXPM1, T)                                                                        \
    UNARY(LOG, T)                                                                          \
    UNARY(LOG2, T)                                                                         \
    UNARY(LOG10, T)                                                                        \
    UNARY(LOG1P, T)                                                                        \
    UNARY(SIN, T)                                                                          \
    UNARY(COS, T)                                                                          \
    UNARY(TAN, T)                                                                          \
    UNARY(ASIN, T)                                                                         \
    UNARY(ACOS, T)                                                                         \
    UNARY(ATAN, T)                                                                         \
    UNARY(SINH, T)                                                                         \
    UNARY(COSH, T)                                                                         \
    UNARY(TANH, T)                                                                         \
    UNARY(ASINH, T)                                                                        \
    UNARY(ACOSH, T)                                                                        \
    UNARY(ATANH, T)                                                                        \
    UNARY(ERF, T)                                                                          \
    BINARY(POW, T)                                                                         \
    BINARY(ATAN2, T)

#define LOGIC                                                                              \
    UNARY(NOT, bool)                                                                       \
    PART_1(bool, INVERT_bool, bool, op_INVERT_b(a))                                        \
    BINARY(EQ, bool)                                                                       \
    BINARY(NE, bool)                                                                       \
    BINARY_BOOL(AND)                                                                       \
    BINARY_BOOL(OR)                                                                        \
    BINARY_BOOL(XOR)                                                                       \
    BINARY_BOOL(MIN)                                                                       \
    BINARY_BOOL(MAX)                                                                       \
    BINARY_BOOL(LT)                                                                        \
    BINARY_BOOL(LE)                                                                        \
    BINARY_BOOL(GT)                                                                        \
    BINARY_BOOL(GE)

// --- conversions --------------------------------------------------------------------------

#define CAST(FROM, TO) PART_1(C_##TO, CAST_##FROM##_##TO, C_##FROM, C_##TO(a))
#define CAST_BY(FROM, TO) PART_1(C_##TO, CAST_##FROM##_##TO, C_##FROM, to_##TO(a))
#define TRUTH(FROM) PART_1(bool, CAST_##FROM##_bool, C_##FROM, !(a == C_##FROM(0)))
#define CASTS(FROM)                                                                        \
    CAST(FROM, i32)                                                                        \
    CAST(FROM, u32)                                                                        \
    CAST(FROM, i64)                                                                        \
    CAST(FROM, u64)                                                                        \
    CAST(FROM, f32)                                                                        \
    CAST(FROM, f64)
#define INT_CASTS                                                                          \
    CAST(i32, u32)                                                                         \
    CAST_BY(i32, i64)                                                                      \
    CAST_BY(i32, u64)                                                                      \
    CAST(i32, f32)                                                                         \
    CAST(i32, f64)
#define FLOAT_CASTS(FROM)                                                                  \
    CAST_BY(FROM, i8)                                                                   \
    CAST_BY(FROM, i16)                                                                  \
    CAST_BY(FROM, i32)                                                                  \
    CAST_BY(FROM, i64)                                                                  \
    CAST_BY(FROM, u8)                                                                   \
    CAST_BY(FROM, u16)                                                                  \
    CAST_BY(FROM, u32)                                                                  \
    CAST_BY(FROM, u64)                                                                  \
    CAST(FROM, f32)                                                                        \
    CAST(FROM, f64)
#define NARROW(T) PART_1(C_##T, NARROW_##T, C_##T, WRAP_##T(a))
#define ENCODED(T)                                                                         \
    PART_1(C_##T, DECODE_##T, W_##T, FROM_##T(a))                                          \
    PART_1(W_##T, ENCODE_##T, C_##T, TO_##T(a))
#define BITS(T, VALUE) PART_2(C_##T, BITS_##T, uint, uint, VALUE)

// --- memory -------------------------------------------------------------------------------

#define BUFFERS(T)                                                                         \
    layout(std430, binding = 0) buffer Ones_##T { S_##T d[]; } ones_##T;                   \
    layout(std430, binding = 0) buffer Fours_##T { SV_##T d[]; } fours_##T;
BUFFERS(bool)
BUFFERS(i8)
BUFFERS(i16)
BUFFERS(i32)
BUFFERS(i64)
BUFFERS(u8)
BUFFERS(u16)
BUFFERS(u32)
BUFFERS(u64)
BUFFERS(f16)
BUFFERS(bf16)
BUFFERS(f32)
BUFFERS(f64)
#define TYPES(T) PART_2(C_##T, TYPES_##T, W_##T, WV_##T, C_##T(0))

// --- all of them --------------------------------------------------------------------------

#define PARTS                                                                              \
    INTEGER(i32)                                                                           \
    INTEGER(u32)                                                                           \
    INTEGER(i64)                                                                           \
    INTEGER(u64)                                                                           \
    REAL(f32)                                                                              \
    REAL(f64)                                                                              \
    FUNCTIONS(f32)                                                                         \
    FUNCTIONS(f64)                                                                         \
    LOGIC                                                                                  \
    CASTS(bool)                                                                            \
    INT_CASTS                                                                              \
    CASTS(u32)                                                                             \
    CASTS(i64)                                                                             \
    CASTS(u64)                                                                             \
    FLOAT_CASTS(f32)                                                                       \
    FLOAT_CASTS(f64)                                                                       \
    TRUTH(i32)                                                                             \
    TRUTH(u32)                                                                             \
    TRUTH(i64)                                                                             \
    TRUTH(u64)                                                                             \
    PART_1(bool, CAST_f32_bool, float, to_bool(a))                                         \
    TRUTH(f64)                                                                             \
    NARROW(i8)                                                                             \
    NARROW(i16)                                                                            \
    NARROW(u8)                                                                             \
    NARROW(u16)                                                                            \
    ENCODED(bool)                                                                          \
    ENCODED(f16)                                                                           \
    ENCODED(bf16)                                                                          \
    BITS(bool, a != 0u)                                                                    \
    BITS(i32, int(a))                                                                      \
    BITS(u32, a)                                                                           \
    BITS(f32, uintBitsToFloat(a))                                                          \
    BITS(i64, int64_t(packUint2x32(uvec2(a, b))))                                          \
    BITS(u64, packUint2x32(uvec2(a, b)))                                                   \
    BITS(f64, packDouble2x32(uvec2(a, b)))                                                 \
    TYPES(bool)                                                                            \
    TYPES(i8)                                                                              \
    TYPES(i16)                                                                             \
    TYPES(i32)                                                                             \
    TYPES(i64)                                                                             \
    TYPES(u8)                                                                              \
    TYPES(u16)                                                                             \
    TYPES(u32)                                                                             \
    TYPES(u64)                                                                             \
    TYPES(f16)                                                                             \
    TYPES(bf16)                                                                            \
    TYPES(f32)                                                                             \
    TYPES(f64)                                                                             \
    PART_1(uint, ITEM, uint, a + group_number() * 256u + gl_LocalInvocationIndex)          \
    PART_1(int64_t, INDEX, uint, int64_t(a))

PARTS

#undef PART_1
#undef PART_2
#undef PART_3
#undef BUFFERS
#define PART_1(R, NAME, A, RESULT) NAME(A(0));
#define PART_2(R, NAME, A, B, RESULT) NAME(A(0), B(0));
#define PART_3(R, NAME, A, B, C, RESULT) NAME(A(0), B(0), C(0));
// The element, and the pointers to it.
#define BUFFERS(T)                                                                         \
    ones_##T.d[0] = ones_##T.d[1];                                                         \
    fours_##T.d[0] = fours_##T.d[1];
void main()
{
    PARTS
    BUFFERS(bool)
    BUFFERS(i8)
    BUFFERS(i16)
    BUFFERS(i32)
    BUFFERS(i64)
    BUFFERS(u8)
    BUFFERS(u16)
    BUFFERS(u32)
    BUFFERS(u64)
    BUFFERS(f16)
    BUFFERS(bf16)
    BUFFERS(f32)
    BUFFERS(f64)
}

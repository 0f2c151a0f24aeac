#version 460
// SPDX-License-Identifier: MIT
// The parts from which a backend without a compiler links programs: a function for each operation
// and class of operand, and the types of every dtype in memory. Compiled without optimisation, so
// that the functions are not inlined; parts.py splits the module into parts.
//
//   NAME_class(a, b)         the instruction NAME of <tenon/expr.h>, before WRAP_
//   CAST_from_to(a)          conversions between classes; of floats to every integer dtype
//   DECODE_dtype(w)          W_ to C_, where they differ      ENCODE_dtype(c)  and back
//   NARROW_dtype(a)          WRAP_: to the width of a narrow integer
//   BITS_class(low, high)    a value from the words of a constant or parameter
//
//   TYPES_dtype(w, four)     W_, WV_ and C_ by its parameters and result
//   ITEM(0)                  number of this invocation's element      INDEX(i)  i as int64_t
//   DIVIDE(n, factor, shifts)  n / d, see divide.glsl
//   GROUP(0)                 number of this workgroup
//   LANE(0)                  number of this invocation in it
//   SUBGROUP_LANE(0)         the same, adjacent within each subgroup
//   SHUFFLE_class(a, mask)       the value of the invocation of this subgroup whose number differs
//                            by these bits
//
// Classes are the dtypes that are computed with: bool i32 u32 i64 u64 f32 f64 complex64 complex128.
// Complex numbers are converted from and to real ones by their parts.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "needs.glsl"
#include "parts.glsl"
#define NEED_I64
#define NEED_F64
#define NEED_F64_FUNCTIONS
#include "types.glsl"
#include "divide.glsl"
#include "scalar.glsl"
#include "functions.glsl"
#include "functions_f64.glsl"
#include "circular_f64.glsl"
#include "complex.glsl"

layout(local_size_x = 256) in;

// Every part is listed through one of these macros, twice: as a definition, and as a call from
// main, because glslang drops functions that nothing calls. Parameters are const, so they are
// passed by value.
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
// A sum or difference of floats, which compilers may neither reorder nor contract.
#define SUM_2(R, NAME, A, B, RESULT)                                                       \
    R NAME(const A a, const B b)                                                           \
    {                                                                                      \
        precise R sum = RESULT;                                                            \
        return sum;                                                                        \
    }
#define PART_3(R, NAME, A, B, C, RESULT)                                                   \
    R NAME(const A a, const B b, const C c)                                                \
    {                                                                                      \
        return RESULT;                                                                     \
    }

// TABLE_PARTS lists the parts that follow from the tables of instructions and dtypes: tables.py
// writes it.
#define BITS(T, VALUE) PART_2(C_##T, BITS_##T, uint, uint, VALUE)

// --- memory -------------------------------------------------------------------------------

#define BUFFERS(T)                                                                         \
    layout(std430, binding = 0) buffer Ones_##T { S_##T d[]; } ones_##T;                   \
    layout(std430, binding = 0) buffer Fours_##T { SV_##T d[]; } fours_##T;
#define ONES(T) layout(std430, binding = 0) buffer Ones_##T { S_##T d[]; } ones_##T;
TABLE_BUFFERS

// --- definitions and calls of all parts ---------------------------------------------------

#define PARTS                                                                              \
    TABLE_PARTS                                                                           \
    BITS(bool, a != 0u)                                                                    \
    BITS(i32, int(a))                                                                      \
    BITS(u32, a)                                                                           \
    BITS(f32, uintBitsToFloat(a))                                                          \
    BITS(i64, int64_t(packUint2x32(uvec2(a, b))))                                          \
    BITS(u64, packUint2x32(uvec2(a, b)))                                                   \
    BITS(f64, packDouble2x32(uvec2(a, b)))                                                 \
    PART_1(uint, ITEM, uint, a + group_number() * 256u + gl_LocalInvocationIndex)          \
    PART_3(uint, DIVIDE, uint, uint, uint, divide(a, b, c))                                \
    PART_1(int64_t, INDEX, uint, int64_t(a))                                               \
    PART_1(uint, GROUP, uint, a + group_number())                                          \
    PART_1(uint, LANE, uint, a + gl_LocalInvocationIndex)                                  \
    PART_1(uint, SUBGROUP_LANE, uint,                                                      \
           a + gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID)                  \
    PART_2(int, SHUFFLE_i32, int, uint, subgroupShuffleXor(a, b))                              \
    PART_2(uint, SHUFFLE_u32, uint, uint, subgroupShuffleXor(a, b))                            \
    PART_2(float, SHUFFLE_f32, float, uint, subgroupShuffleXor(a, b))                          \
    PART_2(int64_t, SHUFFLE_i64, int64_t, uint,                                                \
           int64_t(packUint2x32(subgroupShuffleXor(unpackUint2x32(uint64_t(a)), b))))      \
    PART_2(uint64_t, SHUFFLE_u64, uint64_t, uint,                                              \
           packUint2x32(subgroupShuffleXor(unpackUint2x32(a), b)))                         \
    PART_2(double, SHUFFLE_f64, double, uint,                                                  \
           packDouble2x32(subgroupShuffleXor(unpackDouble2x32(a), b)))

PARTS

#undef PART_1
#undef PART_2
#undef PART_3
#undef SUM_2
#undef BUFFERS
#undef ONES
#define PART_1(R, NAME, A, RESULT) NAME(A(0));
#define PART_2(R, NAME, A, B, RESULT) NAME(A(0), B(0));
#define SUM_2 PART_2
#define PART_3(R, NAME, A, B, C, RESULT) NAME(A(0), B(0), C(0));
// The number of this invocation's element, and pointers to the element in each buffer.
#define BUFFERS(T)                                                                         \
    ones_##T.d[0] = ones_##T.d[1];                                                         \
    fours_##T.d[0] = fours_##T.d[1];
#define ONES(T) ones_##T.d[0] = ones_##T.d[1];
void main()
{
    PARTS
    TABLE_BUFFERS
}

#version 460
// SPDX-License-Identifier: MIT
// FACTORS products of matrices, 2 to 4, of a few rows and equal extents, whose results one program reads:
// matmul_few.glsl computes them side by side, they are stored as a vector, and a program is linked that
// takes it. SHARED_A: the products have one left operand. COLUMNS: of a workgroup. It is no variant: vulkan-jit compiles
// what a plan needs.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint A_ALONG_K = 1;
layout(constant_id = 1) const uint B_ALONG_K = 0;

#if FACTORS == 2
#define SUMS vec2
#define EACH_FACTOR(f) f(0) f(1)
#elif FACTORS == 3
#define SUMS vec3
#define EACH_FACTOR(f) f(0) f(1) f(2)
#else
#define SUMS vec4
#define EACH_FACTOR(f) f(0) f(1) f(2) f(3)
#endif
#ifdef SHARED_A
#define LEFTS 1
#define EACH_LEFT(f) f(0)
#else
#define LEFTS FACTORS
#define EACH_LEFT(f) EACH_FACTOR(f)
#endif

layout(std430, binding = 0) writeonly buffer C { SUMS d[]; } result;
layout(push_constant) uniform Args {
    uint rows, columns, terms;
    uint a_row, a_k, b_k, b_column; // strides
    uint a_offset[4];
    uint b_offset[4];
} args;

#define LOADED PASTE(W_, IN)
#define COMPUTED(loaded) float(PASTE(FROM_, IN)(loaded))
#define RIGHT_FACTOR(n)                                                                            \
    layout(std430, binding = 1 + n) readonly buffer PASTE(B, n) { PASTE(S_, IN) d[]; } PASTE(b, n); \
    LOADED PASTE(load_right_, n)(uint k, uint column)                                               \
    {                                                                                              \
        return LOADED(PASTE(b, n).d[args.b_offset[n] + k * args.b_k + column * args.b_column]);  \
    }
#define LEFT_FACTOR(n)                                                                             \
    layout(std430, binding = 1 + FACTORS + n) readonly buffer PASTE(A, n) { PASTE(S_, IN) d[]; } PASTE(a, n); \
    LOADED PASTE(load_left_, n)(uint row, uint k)                                                   \
    {                                                                                              \
        return LOADED(PASTE(a, n).d[args.a_offset[n] + row * args.a_row + k * args.a_k]);        \
    }
EACH_FACTOR(RIGHT_FACTOR)
EACH_LEFT(LEFT_FACTOR)

// The program gets what a buffer would hold.
#define ROUNDED(n) sums[n] = float(PASTE(FROM_, IN)(PASTE(TO_, IN)(sums[n])));
void store_sums(uint row, uint column, SUMS sums)
{
    EACH_FACTOR(ROUNDED)
    result.d[row * args.columns + column] = sums;
}
#include "matmul_few.glsl"

void main()
{
    multiply(0u, group_number(), args.rows, args.columns, 0u, args.terms);
}

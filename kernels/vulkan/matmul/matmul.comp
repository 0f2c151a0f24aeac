#version 460
// SPDX-License-Identifier: MIT
// Batched products of matrices with any strides. IN: dtype; ACC: type of the sums. IS_COMPLEX:
// they are pairs. RIGHT: dtype of the right operand, where it has one of its own.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint NUM_BATCH = 0; // axes of batches
layout(constant_id = 1) const uint A_ALONG_K = 1;
layout(constant_id = 2) const uint B_ALONG_K = 0;
// The grid's extents where it is smaller than the product's, else 0: see main().
layout(constant_id = 3) const uint STEP_X = 0;
layout(constant_id = 4) const uint STEP_Y = 0;
layout(constant_id = 5) const uint STEP_Z = 0;
layout(constant_id = 6) const uint IS_TURNED = 0; // 1: a is the right operand, turned round, and so is the result

layout(std430, binding = 0) readonly buffer A { PASTE(S_, IN) d[]; } a_source;
#ifndef RIGHT
#define RIGHT IN
#endif
layout(std430, binding = 1) readonly buffer B { PASTE(S_, RIGHT) d[]; } b_source;
layout(std430, binding = 2) writeonly buffer C { PASTE(S_, IN) d[]; } result;
layout(push_constant) uniform Args {
    uint rows, columns, terms, num_batches;
    uint a_offset, b_offset, out_offset;
    uint a_row, a_k, b_k, b_column; // strides
    uint extent[6];
    uint a_stride[6];
    uint b_stride[6];
} args;

uint a_start, b_start, out_start;

#ifdef ROWS // matmul_few.glsl converts what was loaded
#define FACTORS 1
#define LEFTS 1
#define SUMS float
#define EACH_FACTOR(f) f(0)
#define EACH_LEFT(f) f(0)
#define LOADED PASTE(W_, IN)
#define COMPUTED(loaded) ACC(PASTE(FROM_, IN)(loaded))
#define GIVEN(stored, dtype) LOADED(stored)
#define load_a load_left_0
#define load_b load_right_0
#define store_sums store
#else
#define LOADED ACC
#define GIVEN(stored, dtype) ACC(PASTE(FROM_, dtype)(PASTE(W_, dtype)(stored)))
#endif
LOADED load_a(uint row, uint k)
{
    uint at = a_start + row * args.a_row + k * args.a_k;
    return GIVEN(a_source.d[at], IN);
}
LOADED load_b(uint k, uint column)
{
    uint at = b_start + k * args.b_k + column * args.b_column;
    return GIVEN(b_source.d[at], RIGHT);
}
void store(uint row, uint column, ACC value)
{
    uint at = IS_TURNED != 0u ? column * args.rows + row : row * args.columns + column;
    result.d[out_start + at] =
        PASTE(S_, IN)(PASTE(TO_, IN)(PASTE(C_, IN)(value)));
}
#ifdef ROWS
#include "matmul_few.glsl"
#define TILE_ROWS ROWS
#define TILE_COLUMNS COLUMNS
#elif TILE == 8
#include "matmul_small.glsl"
#else
#if TILE >= 64
#define UNCHECKED_SLICES
#endif
#include "matmul.glsl"
#endif

#include "matmul_grid.glsl"

#version 460
// SPDX-License-Identifier: MIT
// Batched products of f32 matrices that are read four elements at a time: each operand is
// contiguous along one of its two axes; that axis, the other stride and the offset are multiples
// of four elements, and so are the columns of the result. Other products take matmul.comp.
//
// The result is stored four elements at a time, with BY_ELEMENT one at a time: a program takes it.
// RIGHT: f16 or bf16, where the right operand is halves, which become f32 on the way to shared memory.
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = (COLUMNS / OWN_COLUMNS) * (ROWS / OWN_ROWS)) in;
layout(constant_id = 0) const uint NUM_BATCH = 0; // axes of batches
layout(constant_id = 1) const uint A_ALONG_K = 1; // 1: a is contiguous along the terms; 0: from row to row
layout(constant_id = 2) const uint B_ALONG_K = 0;
layout(constant_id = 3) const uint STEP_X = 0; // as in matmul.comp
layout(constant_id = 4) const uint STEP_Y = 0;
layout(constant_id = 5) const uint STEP_Z = 0;

layout(std430, binding = 0) readonly buffer A { vec4 d[]; } a_source;
#ifdef RIGHT
layout(std430, binding = 1) readonly buffer B { uvec2 d[]; } b_source;
vec4 four_of_f16(uvec2 halves)
{
    return vec4(unpackHalf2x16(halves.x), unpackHalf2x16(halves.y));
}
vec4 four_of_bf16(uvec2 halves)
{
    return uintBitsToFloat(uvec4(halves.x << 16, halves.x & 0xffff0000u, halves.y << 16, halves.y & 0xffff0000u));
}
#define FOUR_OF_(dtype) four_of_##dtype
#define FOUR_OF_DTYPE(dtype) FOUR_OF_(dtype)
#define FOUR_OF FOUR_OF_DTYPE(RIGHT)
#else
layout(std430, binding = 1) readonly buffer B { vec4 d[]; } b_source;
#endif
#ifdef BY_ELEMENT
layout(std430, binding = 2) writeonly buffer C { float d[]; } result;
#else
layout(std430, binding = 2) writeonly buffer C { vec4 d[]; } result;
#endif
layout(push_constant) uniform Args {
    uint rows, columns, terms, num_batches;
    uint a_offset, b_offset, out_offset;
    uint a_row, a_k, b_k, b_column; // strides
    uint extent[6];
    uint a_stride[6];
    uint b_stride[6];
} args;

uint a_start, b_start, out_start;

void store(uint row, uint column, vec4 value)
{
    uint at = out_start + row * args.columns + column;
#ifdef BY_ELEMENT
    [[unroll]] for (uint c = 0u; c < 4u; c++)
        result.d[at + c] = value[c];
#else
    result.d[at / 4u] = value;
#endif
}

#define B_COLUMN args.b_column
#define B_K args.b_k
#define A_BEGIN                                                                                    \
    uint a_from = (a_start + (first_row + a_first.x) * args.a_row + a_first.y * args.a_k) / 4u;    \
    uint a_stride = (a_step.x * args.a_row + a_step.y * args.a_k) / 4u;
#define A_LOAD                                                                                     \
    LOAD(next_a, A_LOADS, vec4, a_source, a_from, a_first, a_step, a_stride, first_row, rows)            \
    a_from += DEPTH * args.a_k / 4u;
#include "matmul_wide.glsl"

#define HAS_PARTS
#define TILE_ROWS ROWS
#define TILE_COLUMNS COLUMNS
#include "matmul_grid.glsl"

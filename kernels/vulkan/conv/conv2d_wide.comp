#version 460
// SPDX-License-Identifier: MIT
// Convolutions of f32 and their two transposes (conv2d.glsl), read four elements at a time:
// channels of a group, of both sides, and all offsets are multiples of four. So a term is split
// into filter element and channel once for four elements, and once for all rows of an
// invocation.
//
// The result is stored four elements at a time, with BY_ELEMENT one at a time: a program takes it.
#extension GL_EXT_control_flow_attributes : require
#include "program/divide.glsl"
layout(local_size_x = (COLUMNS / OWN_COLUMNS) * (ROWS / OWN_ROWS)) in;

layout(std430, binding = 0) readonly buffer A { vec4 d[]; } pixels;
layout(std430, binding = 1) readonly buffer B { vec4 d[]; } others;
layout(std430, binding = 2) readonly buffer Bias { vec4 d[]; } bias;
#ifdef BY_ELEMENT
layout(std430, binding = 3) writeonly buffer C { float d[]; } result;
#else
layout(std430, binding = 3) writeonly buffer C { vec4 d[]; } result;
#endif
#include "conv2d.glsl"
#define A_ALONG_K uint(OP != WEIGHT)
#define B_ALONG_K uint(OP == FORWARD)

void store(uint row, uint column, vec4 value)
{
    if (HAS_BIAS != 0u && part == 0u)
        value += bias.d[(args.bias_offset + group * columns + column) / 4u];
    uint at = row_start(row) + column;
#ifdef BY_ELEMENT
    [[unroll]] for (uint c = 0u; c < 4u; c++)
        result.d[at + c] = value[c];
#else
    result.d[at / 4u] = value;
#endif
}

// Vectors of the left operand for an invocation: elements that rows read; for WEIGHT the gradient.
#define A_BEGIN                                                                                    \
    ivec2 origin[A_LOADS];                                                                         \
    int position[A_LOADS];                                                                            \
    if (OP != WEIGHT)                                                                              \
        [[unroll]] for (uint i = 0u; i < A_LOADS; i++)                                             \
            begin_row(first_row + a_first.x + i * a_step.x, origin[i], position[i]);
#define A_LOAD                                                                                     \
    uvec2 a_tap;                                                                                   \
    uint a_channel;                                                                                \
    find_tap(k, k + a_first.y, a_tap, a_channel);                                                  \
    ivec2 moved = ivec2(a_tap) * read_move;                                                        \
    int by = moved.x * int(source.y) + moved.y;                                                    \
    a_channel += args.pixels_offset + group * inner;                                               \
    [[unroll]] for (uint i = 0u; i < A_LOADS; i++) {                                               \
        next_a[i] = vec4(0);                                                                       \
        if (OP == WEIGHT) {                                                                        \
            uint term = k + a_first.y + i * a_step.y, row = first_row + a_first.x;                 \
            uint from = (term * args.groups + group) * rows + row;                                 \
            if (term < k_end && row < rows)                                                        \
                next_a[i] = others.d[(args.others_offset + from) / 4u];                            \
        } else {                                                                                   \
            uvec2 at = uvec2(origin[i] + moved);                                                   \
            if (at.x < source.x && at.y < source.y && k + a_first.y < k_end)                       \
                next_a[i] = pixels.d[(a_channel + uint(position[i] + by) * pitch) / 4u];              \
        }                                                                                          \
    }
// Vectors of the right operand: filters; for WEIGHT elements that terms read.
#define B_BEGIN                                                                                    \
    uvec2 b_tap;                                                                                   \
    uint b_channel;                                                                                \
    find_tap(first_column + b_first.x, first_column + b_first.x, b_tap, b_channel);                \
    b_channel += args.pixels_offset + group * inner;
#define B_LOAD                                                                                     \
    [[unroll]] for (uint i = 0u; i < B_LOADS; i++) {                                               \
        uint term = k + b_first.y + i * b_step.y, column = first_column + b_first.x + i * b_step.x; \
        bool inside = term < k_end && column < columns;                                            \
        uint from = (args.others_offset + (group * columns + column) * terms + term) / 4u;         \
        next_b[i] = vec4(0);                                                                       \
        if (OP == WEIGHT) {                                                                        \
            if (read_pixel(term, b_tap, from) && inside)                                           \
                next_b[i] = pixels.d[(b_channel + from * pitch) / 4u];                             \
        } else if (inside) {                                                                       \
            if (OP == INPUT) {                                                                     \
                uvec2 tap;                                                                         \
                uint channel;                                                                      \
                find_tap(k, term, tap, channel);                                                   \
                from = filter_element(channel, tap, column) / 4u;                                  \
            }                                                                                      \
            next_b[i] = others.d[from];                                                            \
        }                                                                                          \
    }
#include "matmul/matmul_wide.glsl"

void main()
{
    begin();
    uint across = (columns + COLUMNS - 1u) / COLUMNS, down = gl_WorkGroupID.x / across;
    if (down * ROWS < rows)
        multiply(down, gl_WorkGroupID.x - down * across, rows, columns, k_begin, k_end);
}

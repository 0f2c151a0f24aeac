#version 460
// SPDX-License-Identifier: MIT
// Convolution of x [N, H, W, C] with w [O, kH, kW, C / groups] in f32, as conv2d.comp's OP_forward,
// read four elements at a time: channels of a group, of both sides, and all offsets are multiples of
// four. So a term is split into filter element and channel once for four elements, and once for all
// rows of an invocation.
//
// Each group of channels is a layer of workgroups (z), and so is each of `parts` of the terms: with
// several parts the result has the sums of each, one behind the other.
//
// The result is stored four elements at a time, with BY_ELEMENT one at a time: a program takes it.
#extension GL_EXT_control_flow_attributes : require
#include "program/divide.glsl"
layout(local_size_x = (COLUMNS / OWN_COLUMNS) * (ROWS / OWN_ROWS)) in;
layout(constant_id = 0) const uint HAS_BIAS = 0;
layout(constant_id = 1) const uint POINTWISE = 0; // as in conv2d.comp
#define A_ALONG_K 1u
#define B_ALONG_K 1u

layout(std430, binding = 0) readonly buffer A { vec4 d[]; } a_source;
layout(std430, binding = 1) readonly buffer B { vec4 d[]; } b_source;
layout(std430, binding = 2) readonly buffer Bias { vec4 d[]; } bias;
#ifdef BY_ELEMENT
layout(std430, binding = 3) writeonly buffer C { float d[]; } result;
#else
layout(std430, binding = 3) writeonly buffer C { vec4 d[]; } result;
#endif
layout(push_constant) uniform Args {
    uint rows, columns, terms; // output pixels; channels of y and terms of a group
    uint parts, part_terms;
    uint a_offset, b_offset, bias_offset, out_offset;
    uint height, width, channels; // of x; channels of a group
    uint out_height, out_width, kernel_width, groups;
    int stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
    uint by_channels[2], by_kernel_width[2], by_width[2], by_height[2]; // as in conv2d.comp
} args;

uint group, part, b_start;

void store(uint row, uint column, vec4 value)
{
    uint o = group * args.columns + column, pitch = args.groups * args.columns;
    if (HAS_BIAS != 0u && part == 0u)
        value += bias.d[(args.bias_offset + o) / 4u];
    uint at = args.out_offset + (part * args.rows + row) * pitch + o;
#ifdef BY_ELEMENT
    [[unroll]] for (uint c = 0u; c < 4u; c++)
        result.d[at + c] = value[c];
#else
    result.d[at / 4u] = value;
#endif
}

// The input pixel under filter element (0, 0) of an output pixel, and where x of its image begins.
// Far outside where there is no such output pixel.
void find_pixel(uint pixel, uint rows, out ivec2 origin, out uint image)
{
    uint line = divide(pixel, args.by_width[0], args.by_width[1]);
    uint n = divide(line, args.by_height[0], args.by_height[1]);
    int h = int(line - n * args.out_height), w = int(pixel - line * args.out_width);
    origin = ivec2(h * args.stride_y - args.pad_y, w * args.stride_x - args.pad_x);
    if (pixel >= rows)
        origin = ivec2(-0x40000000);
    image = n * args.height * args.width;
}

#define B_COLUMN args.terms
#define B_K 1u
#define A_BEGIN                                                                                    \
    ivec2 origin[A_LOADS];                                                                         \
    uint image[A_LOADS];                                                                           \
    [[unroll]] for (uint i = 0u; i < A_LOADS; i++)                                                 \
        find_pixel(first_row + a_first.x + i * a_step.x, rows, origin[i], image[i]);
#define A_LOAD                                                                                     \
    uint tap = 0u, channel = k + a_first.y;                                                        \
    if (POINTWISE == 0u) {                                                                         \
        tap = divide(channel, args.by_channels[0], args.by_channels[1]);                           \
        channel -= tap * args.channels;                                                            \
    }                                                                                              \
    uint tap_y = divide(tap, args.by_kernel_width[0], args.by_kernel_width[1]);                    \
    ivec2 moved = ivec2(int(tap_y) * args.dilation_y,                                              \
                        int(tap - tap_y * args.kernel_width) * args.dilation_x);                   \
    [[unroll]] for (uint i = 0u; i < A_LOADS; i++) {                                               \
        uvec2 at = uvec2(origin[i] + moved);                                                       \
        uint from = image[i] + at.x * args.width + at.y;                                           \
        next_a[i] = vec4(0);                                                                       \
        if (at.x < args.height && at.y < args.width && k + a_first.y < k_end)                      \
            next_a[i] = a_source.d[(args.a_offset +                                                \
                                    (from * args.groups + group) * args.channels + channel) / 4u]; \
    }
#include "matmul/matmul_wide.glsl"

void main()
{
    part = gl_WorkGroupID.z % args.parts;
    group = gl_WorkGroupID.z / args.parts;
    uint begin = part * args.part_terms;
    b_start = args.b_offset + group * args.columns * args.terms + begin;
    multiply(gl_WorkGroupID.x, gl_WorkGroupID.y, args.rows, args.columns, begin,
             min(begin + args.part_terms, args.terms));
}

#version 460
// SPDX-License-Identifier: MIT
// Convolutions between few channels, without groups. The gradient of the input of a convolution without
// strides is a convolution of the gradient by TURNED filters. IN: dtype, computed in f32.
//
// All filters are in shared memory. An invocation has RUN pixels of a line, and OWN channels of
// each.
#include "program/types.glsl"
#include "program/divide.glsl"
#define GROUP 256u
#define POOL 4096u
#define RUN 4u
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint KERNEL_WIDTH = 3;
layout(constant_id = 1) const uint STRIDE_X = 1;
layout(constant_id = 2) const uint DILATION_X = 1;
layout(constant_id = 3) const uint OWN = 4;
layout(constant_id = 4) const uint HAS_BIAS = 0;
layout(constant_id = 5) const uint TURNED = 0;

layout(std430, binding = 0) readonly buffer X { PASTE(S_, IN) d[]; } x_source;
layout(std430, binding = 1) readonly buffer W { PASTE(S_, IN) d[]; } w_source;
layout(std430, binding = 2) readonly buffer Bias { PASTE(S_, IN) d[]; } bias;
layout(std430, binding = 3) writeonly buffer C { PASTE(S_, IN) d[]; } result;
layout(push_constant) uniform Args {
    uint x_offset, w_offset, bias_offset, out_offset;
    uint height, width, channels, out_height, out_width, out_channels, kernel_height;
    int stride_y, pad_y, pad_x, dilation_y;
    uint blocks; // of OWN channels
    uint line_runs, runs, workgroups;
    uint by_blocks[2], by_line_runs[2], by_out_height[2];
} args;

#define SPAN ((RUN - 1u) * STRIDE_X + (KERNEL_WIDTH - 1u) * DILATION_X + 1u) // of a run's windows

shared float filters[POOL]; // by line, tap, channel of x, channel of the result

void load_filters()
{
    uint all = args.blocks * OWN, o_size = args.kernel_height * KERNEL_WIDTH * args.channels;
    for (uint at = gl_LocalInvocationIndex; at < o_size * all; at += GROUP) {
        uint rest = at / all, o = at - rest * all, tap = rest / args.channels;
        uint c = rest - tap * args.channels, from = o * o_size + rest;
        if (TURNED != 0u)
            from = ((c + 1u) * args.kernel_height * KERNEL_WIDTH - 1u - tap) * args.out_channels + o;
        filters[at] = o < args.out_channels ? PASTE(FROM_, IN)(PASTE(W_, IN)(
                                                  w_source.d[args.w_offset + from]))
                                            : 0.0;
    }
    barrier();
}

float sums[RUN][OWN];
uint block;

// Adds what channel `c` of the pixels from column `first` on of a line of x gives, by line kh of the
// filters. Pixels are read before the first is used.
void add_line(uint line, int first, uint kh, uint c)
{
    float by[KERNEL_WIDTH][OWN], x[SPAN];
    [[unroll]] for (uint j = 0u; j < SPAN; j++) {
        uint w = uint(first + int(j));
        x[j] = 0.0;
        if (w < args.width)
            x[j] = PASTE(FROM_, IN)(PASTE(W_, IN)(
                x_source.d[args.x_offset + (line + w) * args.channels + c]));
    }
    [[unroll]] for (uint kw = 0u; kw < KERNEL_WIDTH; kw++)
        [[unroll]] for (uint o = 0u; o < OWN; o++)
            by[kw][o] = filters[(((kh * KERNEL_WIDTH + kw) * args.channels + c) * args.blocks +
                                 block) * OWN + o];
    [[unroll]] for (uint j = 0u; j < SPAN; j++)
        if (uint(first + int(j)) < args.width)
            [[unroll]] for (uint p = 0u; p < RUN; p++) {
                uint from = j - p * STRIDE_X, kw = from / DILATION_X;
                if (j >= p * STRIDE_X && kw * DILATION_X == from && kw < KERNEL_WIDTH)
                    [[unroll]] for (uint o = 0u; o < OWN; o++)
                        sums[p][o] += x[j] * by[kw][o];
            }
}

void main()
{
    load_filters();
    uint count = args.runs * args.blocks;
    for (uint at = gl_GlobalInvocationID.x; at < count; at += args.workgroups * GROUP) {
        uint run = divide(at, args.by_blocks[0], args.by_blocks[1]);
        block = at - run * args.blocks;
        uint line = divide(run, args.by_line_runs[0], args.by_line_runs[1]);
        uint column = (run - line * args.line_runs) * RUN;
        uint n = divide(line, args.by_out_height[0], args.by_out_height[1]);
        uint y = line - n * args.out_height;
        [[unroll]] for (uint o = 0u; o < OWN; o++) {
            float begin = 0.0;
            if (HAS_BIAS != 0u && block * OWN + o < args.out_channels)
                begin = PASTE(FROM_, IN)(
                    PASTE(W_, IN)(bias.d[args.bias_offset + block * OWN + o]));
            [[unroll]] for (uint p = 0u; p < RUN; p++)
                sums[p][o] = begin;
        }
        for (uint kh = 0u; kh < args.kernel_height; kh++) {
            int h = int(y) * args.stride_y - args.pad_y + int(kh) * args.dilation_y;
            if (h < 0 || h >= int(args.height))
                continue;
            for (uint c = 0u; c < args.channels; c++)
                add_line((n * args.height + uint(h)) * args.width,
                         int(column * STRIDE_X) - args.pad_x, kh, c);
        }
        uint to = args.out_offset + (line * args.out_width + column) * args.out_channels +
                  block * OWN;
        [[unroll]] for (uint p = 0u; p < RUN; p++)
            [[unroll]] for (uint o = 0u; o < OWN; o++)
                if (column + p < args.out_width && block * OWN + o < args.out_channels)
                    result.d[to + p * args.out_channels + o] =
                        PASTE(S_, IN)(PASTE(TO_, IN)(sums[p][o]));
    }
}

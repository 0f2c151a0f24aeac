#version 460
// SPDX-License-Identifier: MIT
// Convolutions whose channels have one filter each (groups = channels), four channels at a
// time, which their number and all offsets are multiples of. IN: dtype, computed in f32.
//
//   OP_filter  an output is read through a window. The gradient of the input is such a convolution
//              of the gradient by TURNED filters, where pixels lie UP apart.
//   OP_weight  gradients of the filters, as sums of parts of the pixels in f32.
//
// An invocation has runs of RUN output pixels of a line, and reads each pixel of their windows'
// lines once. A workgroup has LANES vectors of channels; their filters are in shared memory.
// Without VECTORS outputs are stored one element at a time: a program takes them.
#include "program/types.glsl"
#include "program/divide.glsl"
#include "program/fours.glsl"
#define GROUP 256u
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint KERNEL_HEIGHT = 3;
layout(constant_id = 1) const uint KERNEL_WIDTH = 3;
layout(constant_id = 2) const uint STRIDE_X = 1;
layout(constant_id = 3) const uint DILATION_X = 1;
layout(constant_id = 4) const uint LANES = 32;
layout(constant_id = 5) const uint HAS_BIAS = 0;
layout(constant_id = 6) const uint TURNED = 0;
layout(constant_id = 7) const int UP_Y = 1;
layout(constant_id = 8) const int UP_X = 1;
layout(constant_id = 9) const uint RUN = 4; // of OP_weight divides lines

layout(std430, binding = 0) readonly buffer X { PASTE(LINE_, IN) d[]; } x_source;
#ifdef OP_weight
layout(std430, binding = 1) readonly buffer G { PASTE(LINE_, IN) d[]; } gradient;
#else
layout(std430, binding = 1) readonly buffer W { PASTE(S_, IN) d[]; } w_source;
#endif
layout(std430, binding = 2) readonly buffer Bias { PASTE(S_, IN) d[]; } bias;
#ifdef OP_weight
layout(std430, binding = 3) writeonly buffer C { float d[]; } result;
#else
layout(std430, binding = 3) writeonly buffer C { ELEMENT d[]; } result;
#endif
layout(push_constant) uniform Args {
    uint x_offset, other_offset, bias_offset, out_offset;
    uint height, width, out_height, out_width, vectors; // of channels
    int stride_y, pad_y, pad_x, dilation_y;
    uint line_runs, runs; // of a line, and in all
    uint workgroups; // along x
    uint by_line_runs[2], by_out_height[2];
} args;

#define TAPS (KERNEL_HEIGHT * KERNEL_WIDTH)
#define SPAN ((RUN - 1u) * STRIDE_X + (KERNEL_WIDTH - 1u) * DILATION_X + 1u) // of a run's windows

uint lane, vector;

// The column of the run's first pixel; its image and row.
uvec3 find_run(uint run)
{
    uint line = divide(run, args.by_line_runs[0], args.by_line_runs[1]);
    uint n = divide(line, args.by_out_height[0], args.by_out_height[1]);
    return uvec3((run - line * args.line_runs) * RUN, n, line - n * args.out_height);
}

// Whether virtual position `at` is one of `extent` pixels, which are `up` apart.
bool is_pixel(int at, int up, uint extent)
{
    return at >= 0 && at % up == 0 && uint(at / up) < extent;
}

// Pixel `at` of x.
vec4 load(uint at)
{
    return PASTE(WIDEN_, IN)(x_source.d[args.x_offset / 4u + at * args.vectors + vector]);
}

// Calls USE(p, kw) for each output p of a run that reads column j of its windows, by tap kw.
#define FOR_READERS(j, USE)                                                                        \
    [[unroll]] for (uint p = 0u; p < RUN; p++) {                                                   \
        uint from = j - p * STRIDE_X, kw = from / DILATION_X;                                      \
        if (j >= p * STRIDE_X && kw * DILATION_X == from && kw < KERNEL_WIDTH)                     \
            USE(p, kw);                                                                            \
    }
// FOR_READERS for each pixel of x, with its value x, that the windows of the run at `at` have in line
// kh. Most runs have no padding, so that all pixels of a line are read before the first is
// used.
#define FOR_LINE(at, kh, USE)                                                                      \
    int h = int(at.z) * args.stride_y - args.pad_y + int(kh) * args.dilation_y;                    \
    if (is_pixel(h, UP_Y, args.height)) {                                                          \
        uint line = (at.y * args.height + uint(h / UP_Y)) * args.width;                            \
        int first = int(at.x * STRIDE_X) - args.pad_x;                                             \
        if (UP_X == 1 && first >= 0 && uint(first) + SPAN <= args.width) {                         \
            vec4 read[SPAN];                                                                       \
            [[unroll]] for (uint j = 0u; j < SPAN; j++)                                            \
                read[j] = load(line + uint(first) + j);                                            \
            [[unroll]] for (uint j = 0u; j < SPAN; j++) {                                          \
                vec4 x = read[j];                                                                  \
                FOR_READERS(j, USE)                                                                \
            }                                                                                      \
        } else {                                                                                   \
            [[unroll]] for (uint j = 0u; j < SPAN; j++)                                            \
                if (is_pixel(first + int(j), UP_X, args.width)) {                                  \
                    vec4 x = load(line + uint((first + int(j)) / UP_X));                           \
                    FOR_READERS(j, USE)                                                            \
                }                                                                                  \
        }                                                                                          \
    }

#ifdef OP_weight
shared vec4 shares[GROUP];

// Adds the sums of the workgroup's invocations that have the same channels, and stores them.
void store_sum(uint tap, vec4 sum)
{
    shares[gl_LocalInvocationIndex] = sum;
    barrier();
    if (gl_LocalInvocationIndex < LANES && vector < args.vectors) {
        for (uint i = LANES; i < GROUP; i += LANES)
            sum += shares[gl_LocalInvocationIndex + i];
        uint part = gl_WorkGroupID.x * args.vectors;
        [[unroll]] for (uint c = 0u; c < 4u; c++)
            result.d[((part + vector) * 4u + c) * TAPS + tap] = sum[c];
    }
    barrier();
}

void main()
{
    lane = gl_LocalInvocationIndex % LANES;
    vector = gl_WorkGroupID.y * LANES + lane;
    vec4 sums[TAPS];
    [[unroll]] for (uint tap = 0u; tap < TAPS; tap++)
        sums[tap] = vec4(0.0);
    uint step_ = GROUP / LANES * args.workgroups;
    uint run = gl_WorkGroupID.x * (GROUP / LANES) + gl_LocalInvocationIndex / LANES;
    for (; run < args.runs && vector < args.vectors; run += step_) {
        uvec3 at = find_run(run);
        uint from = ((at.y * args.out_height + at.z) * args.out_width + at.x) * args.vectors;
        vec4 g[RUN];
        [[unroll]] for (uint p = 0u; p < RUN; p++)
            g[p] = PASTE(WIDEN_, IN)(
                gradient.d[args.other_offset / 4u + from + p * args.vectors + vector]);
        [[unroll]] for (uint kh = 0u; kh < KERNEL_HEIGHT; kh++) {
#define ADD(p, kw) sums[kh * KERNEL_WIDTH + kw] += x * g[p]
            FOR_LINE(at, kh, ADD)
        }
    }
    [[unroll]] for (uint tap = 0u; tap < TAPS; tap++)
        store_sum(tap, sums[tap]);
}
#else
shared vec4 filters[TAPS * LANES];

void load_filters()
{
    uint first = gl_WorkGroupID.y * LANES * 4u;
    uint count = min(LANES * 4u, args.vectors * 4u - first);
    for (uint at = gl_LocalInvocationIndex; at < count * TAPS; at += GROUP) {
        uint channel = at / TAPS, tap = at - channel * TAPS;
        tap = TURNED != 0u ? TAPS - 1u - tap : tap;
        filters[tap * LANES + channel / 4u][channel % 4u] = PASTE(FROM_, IN)(
            PASTE(W_, IN)(w_source.d[args.other_offset + first * TAPS + at]));
    }
    barrier();
}

void main()
{
    lane = gl_LocalInvocationIndex % LANES;
    vector = gl_WorkGroupID.y * LANES + lane;
    load_filters();
    vec4 begin = vec4(0.0);
    if (HAS_BIAS != 0u && vector < args.vectors)
        [[unroll]] for (uint c = 0u; c < 4u; c++)
            begin[c] = PASTE(FROM_, IN)(
                PASTE(W_, IN)(bias.d[args.bias_offset + vector * 4u + c]));
    uint step_ = GROUP / LANES * args.workgroups;
    uint run = gl_WorkGroupID.x * (GROUP / LANES) + gl_LocalInvocationIndex / LANES;
    for (; run < args.runs && vector < args.vectors; run += step_) {
        uvec3 at = find_run(run);
        vec4 sums[RUN];
        [[unroll]] for (uint p = 0u; p < RUN; p++)
            sums[p] = begin;
        for (uint kh = 0u; kh < KERNEL_HEIGHT; kh++) {
            vec4 filter_[KERNEL_WIDTH];
            [[unroll]] for (uint kw = 0u; kw < KERNEL_WIDTH; kw++)
                filter_[kw] = filters[(kh * KERNEL_WIDTH + kw) * LANES + lane];
#define ADD(p, kw) sums[p] += x * filter_[kw]
            FOR_LINE(at, kh, ADD)
        }
        uint to = ((at.y * args.out_height + at.z) * args.out_width + at.x) * args.vectors;
        [[unroll]] for (uint p = 0u; p < RUN; p++)
            if (at.x + p < args.out_width) {
                uint first = args.out_offset + (to + p * args.vectors + vector) * 4u;
                STORE(first, first + 4u, sums[p]);
            }
    }
}
#endif

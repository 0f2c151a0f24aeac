#version 460
// SPDX-License-Identifier: MIT
// The gradient of the filters of a convolution with few channels on both sides, and no groups, as
// sums of parts of the pixels in f32. IN: dtype.
//
// A workgroup takes bands of an image's lines: the gradient's, and those of x that they read, are
// in shared memory. A job is a line kh of the filters, a channel of x, and OWN channels of
// the gradient: OWN x KERNEL_WIDTH sums. Invocations that have the same job take other runs of
// RUN pixels of the gradient's lines, whose length is a multiple of RUN.
#include "program/types.glsl"
#define GROUP 256u
#define POOL 4096u
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint KERNEL_WIDTH = 3;
layout(constant_id = 1) const uint STRIDE_X = 1;
layout(constant_id = 2) const uint DILATION_X = 1;
layout(constant_id = 3) const uint OWN = 4;
layout(constant_id = 4) const uint RUN = 4;

layout(std430, binding = 0) readonly buffer X { PASTE(S_, IN) d[]; } x_source;
layout(std430, binding = 1) readonly buffer G { PASTE(S_, IN) d[]; } gradient;
layout(std430, binding = 2) writeonly buffer C { float d[]; } result;
layout(push_constant) uniform Args {
    uint x_offset, gradient_offset;
    uint height, width, channels, out_height, out_width, out_channels, kernel_height;
    int stride_y, pad_y, pad_x, dilation_y;
    uint band_lines, bands, all_bands; // of an image; of all
    uint jobs, blocks, workgroups;     // blocks of OWN channels
} args;

#define SPAN ((RUN - 1u) * STRIDE_X + (KERNEL_WIDTH - 1u) * DILATION_X + 1u) // of a run's windows

shared float pool[POOL];
float sums[OWN][KERNEL_WIDTH];

uint job_block, job_channel, job_line;
int first_h; // the first line of x in the pool
uint of_gradient; // where the gradient's lines begin there

// Fills the pool with `count` lines of the gradient from `first` on, and the lines of x that they read.
void load_band(uint n, uint first, uint count)
{
    int h = int(first) * args.stride_y - args.pad_y;
    int end = h + (int(count) - 1) * args.stride_y +
              (int(args.kernel_height) - 1) * args.dilation_y + 1;
    first_h = max(h, 0);
    uint lines = uint(max(min(end, int(args.height)) - first_h, 0)), line = args.width * args.channels;
    uint from = args.x_offset + (n * args.height + uint(first_h)) * line;
    of_gradient = lines * line;
    for (uint at = gl_LocalInvocationIndex; at < of_gradient; at += GROUP)
        pool[at] = PASTE(FROM_, IN)(PASTE(W_, IN)(x_source.d[from + at]));
    line = args.out_width * args.out_channels;
    from = args.gradient_offset + (n * args.out_height + first) * line;
    for (uint at = gl_LocalInvocationIndex; at < count * line; at += GROUP)
        pool[of_gradient + at] = PASTE(FROM_, IN)(PASTE(W_, IN)(gradient.d[from + at]));
}

// Adds the products of the run at `column` of a line of the gradient, which reads line h of x.
void add_run(uint from, uint column, uint h)
{
    float g[RUN][OWN];
    [[unroll]] for (uint p = 0u; p < RUN; p++)
        [[unroll]] for (uint o = 0u; o < OWN; o++)
            g[p][o] = pool[min(of_gradient + from + p * args.out_channels + o, POOL - 1u)];
    [[unroll]] for (uint j = 0u; j < SPAN; j++) {
        int w = int(column * STRIDE_X + j) - args.pad_x;
        if (w >= 0 && w < int(args.width)) {
            float x = pool[(h * args.width + uint(w)) * args.channels + job_channel];
            [[unroll]] for (uint p = 0u; p < RUN; p++) {
                uint by = j - p * STRIDE_X, kw = by / DILATION_X;
                if (j >= p * STRIDE_X && kw * DILATION_X == by && kw < KERNEL_WIDTH)
                    [[unroll]] for (uint o = 0u; o < OWN; o++)
                        sums[o][kw] += x * g[p][o];
            }
        }
    }
}

void add_band(uint slot, uint slots, uint first, uint count)
{
    uint line_runs = args.out_width / RUN;
    for (uint run = slot; run < count * line_runs; run += slots) {
        uint line = run / line_runs, column = (run - line * line_runs) * RUN;
        int h = int(first + line) * args.stride_y - args.pad_y + int(job_line) * args.dilation_y;
        if (h >= 0 && h < int(args.height))
            add_run((line * args.out_width + column) * args.out_channels + job_block * OWN, column,
                    uint(h - first_h));
    }
}

// Adds the sums of the invocations that have the same job.
void store_sums(uint slots)
{
    uint of_part = args.out_channels * args.kernel_height * KERNEL_WIDTH * args.channels;
    [[unroll]] for (uint o = 0u; o < OWN; o++) {
        [[unroll]] for (uint kw = 0u; kw < KERNEL_WIDTH; kw++)
            pool[gl_LocalInvocationIndex * KERNEL_WIDTH + kw] = sums[o][kw];
        barrier();
        for (uint at = gl_LocalInvocationIndex; at < args.jobs * KERNEL_WIDTH; at += GROUP) {
            float sum = 0.0;
            for (uint slot = 0u; slot < slots; slot++)
                sum += pool[slot * args.jobs * KERNEL_WIDTH + at];
            uint job = at / KERNEL_WIDTH, rest = job / args.blocks;
            uint channel = (job - rest * args.blocks) * OWN + o, kh = rest / args.channels;
            uint to = (channel * args.kernel_height + kh) * KERNEL_WIDTH + at - job * KERNEL_WIDTH;
            if (channel < args.out_channels)
                result.d[gl_WorkGroupID.x * of_part + to * args.channels + rest -
                         kh * args.channels] = sum;
        }
        barrier();
    }
}

void main()
{
    uint slot = gl_LocalInvocationIndex / args.jobs, slots = GROUP / args.jobs;
    uint job = gl_LocalInvocationIndex - slot * args.jobs, rest = job / args.blocks;
    job_block = job - rest * args.blocks;
    job_line = rest / args.channels;
    job_channel = rest - job_line * args.channels;
    [[unroll]] for (uint o = 0u; o < OWN; o++)
        [[unroll]] for (uint kw = 0u; kw < KERNEL_WIDTH; kw++)
            sums[o][kw] = 0.0;
    for (uint band = gl_WorkGroupID.x; band < args.all_bands; band += args.workgroups) {
        uint n = band / args.bands, first = (band - n * args.bands) * args.band_lines;
        uint count = min(args.band_lines, args.out_height - first);
        load_band(n, first, count);
        barrier();
        if (slot < slots)
            add_band(slot, slots, first, count);
        barrier();
    }
    store_sums(slots);
}

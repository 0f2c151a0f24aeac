#version 460
// SPDX-License-Identifier: MIT
// Convolution of x [N, H, W, C] with w [O, kH, kW, C / groups], and its two transposes, as
// products of matrices (implicit GEMM): elements are read from x, w and y in place, and no
// unfolded copy (im2col) is made.
//
//   OP_forward  rows: output pixels (n, oh, ow)   columns: o   terms: (kh, kw, c)
//   OP_input    rows: input pixels (n, h, w)      columns: c   terms: (kh, kw, o)
//   OP_weight   rows: o   columns: (kh, kw, c)    terms: output pixels, in `splits` parts
//
// IN: dtype; ACC: type of the sums. All operands are contiguous. Each group of channels is a layer
// of workgroups (z). With DIRECT, each output is computed by one invocation, without tiles.
#include "program/types.glsl"
#include "program/divide.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint HAS_BIAS = 0;
// A forward convolution by 1x1 filters without strides and padding.
layout(constant_id = 1) const uint POINTWISE = 0;

layout(std430, binding = 0) readonly buffer A { PASTE(S_, IN) d[]; } a_source;
layout(std430, binding = 1) readonly buffer B { PASTE(S_, IN) d[]; } b_source;
layout(std430, binding = 2) readonly buffer Bias { PASTE(S_, IN) d[]; } bias;
#ifdef OP_weight // sums of parts
layout(std430, binding = 3) writeonly buffer C { ACC d[]; } result;
#else
layout(std430, binding = 3) writeonly buffer C { PASTE(S_, IN) d[]; } result;
#endif
layout(push_constant) uniform Args {
    uint a_offset, b_offset, bias_offset, out_offset;
    uint num, height, width, channels;       // of x; channels of one group
    uint out_height, out_width, out_channels; // of y; channels of one group
    uint kernel_height, kernel_width;
    int stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
    uint groups, splits;
    // Constants that divide by the channels of terms, the width of filters, and width and height of the
    // pixels of rows (of OP_weight: of terms).
    uint by_channels[2], by_kernel_width[2], by_width[2], by_height[2];
} args;

uint group, split;

ACC value_a(uint at)
{
    return PASTE(FROM_, IN)(PASTE(W_, IN)(a_source.d[args.a_offset + at]));
}
ACC value_b(uint at)
{
    return PASTE(FROM_, IN)(PASTE(W_, IN)(b_source.d[args.b_offset + at]));
}

// x at the input pixel that output pixel `pixel` reads under filter element (kh, kw); 0 in the
// padding.
ACC load_x(uint pixel, uint kh, uint kw, uint c)
{
    uint line = divide(pixel, args.by_width[0], args.by_width[1]);
    uint ow = pixel - line * args.out_width;
    uint n = divide(line, args.by_height[0], args.by_height[1]);
    uint oh = line - n * args.out_height;
    int h = int(oh) * args.stride_y - args.pad_y + int(kh) * args.dilation_y;
    int w = int(ow) * args.stride_x - args.pad_x + int(kw) * args.dilation_x;
    if (h < 0 || w < 0 || h >= int(args.height) || w >= int(args.width))
        return ACC(0);
    uint at = (n * args.height + uint(h)) * args.width + uint(w);
    return value_a(at * args.channels * args.groups + group * args.channels + c);
}

// Splits the number of a term into (kh, kw, c), with c < count.
void split_tap(uint k, uint count, out uint kh, out uint kw, out uint c)
{
    uint tap = divide(k, args.by_channels[0], args.by_channels[1]);
    c = k - tap * count;
    kh = divide(tap, args.by_kernel_width[0], args.by_kernel_width[1]);
    kw = tap - kh * args.kernel_width;
}

#ifdef OP_forward
#define A_ALONG_K 1u
#define B_ALONG_K 1u
ACC load_a(uint row, uint k)
{
    if (POINTWISE != 0u)
        return value_a((row * args.groups + group) * args.channels + k);
    uint kh, kw, c;
    split_tap(k, args.channels, kh, kw, c);
    return load_x(row, kh, kw, c);
}
ACC load_b(uint k, uint column)
{
    uint terms = args.kernel_height * args.kernel_width * args.channels;
    return value_b((group * args.out_channels + column) * terms + k);
}
void store(uint row, uint column, ACC value)
{
    uint o = group * args.out_channels + column;
    if (HAS_BIAS != 0u)
        value += PASTE(FROM_, IN)(PASTE(W_, IN)(bias.d[args.bias_offset + o]));
    result.d[args.out_offset + row * args.out_channels * args.groups + o] =
        PASTE(S_, IN)(PASTE(TO_, IN)(value));
}
#endif

#ifdef OP_input // a: the gradient, b: w
#define A_ALONG_K 1u
#define B_ALONG_K 0u
ACC load_a(uint row, uint k)
{
    uint kh, kw, o;
    split_tap(k, args.out_channels, kh, kw, o);
    uint line = divide(row, args.by_width[0], args.by_width[1]);
    int w = int(row - line * args.width) + args.pad_x - int(kw) * args.dilation_x;
    uint n = divide(line, args.by_height[0], args.by_height[1]);
    int h = int(line - n * args.height) + args.pad_y - int(kh) * args.dilation_y;
    if (h < 0 || w < 0)
        return ACC(0);
    int oh = h / args.stride_y, ow = w / args.stride_x;
    if (oh * args.stride_y != h || ow * args.stride_x != w || oh >= int(args.out_height) ||
        ow >= int(args.out_width))
        return ACC(0);
    uint at = (n * args.out_height + uint(oh)) * args.out_width + uint(ow);
    return value_a((at * args.groups + group) * args.out_channels + o);
}
ACC load_b(uint k, uint column)
{
    uint kh, kw, o;
    split_tap(k, args.out_channels, kh, kw, o);
    uint row = group * args.out_channels + o;
    uint at = (row * args.kernel_height + kh) * args.kernel_width + kw;
    return value_b(at * args.channels + column);
}
void store(uint row, uint column, ACC value)
{
    uint c = group * args.channels + column;
    result.d[args.out_offset + row * args.channels * args.groups + c] =
        PASTE(S_, IN)(PASTE(TO_, IN)(value));
}
#endif

#ifdef OP_weight // a: x, b: the gradient; rows are o, and load_a takes the gradient
#define A_ALONG_K 0u
#define B_ALONG_K 0u
ACC load_a(uint row, uint k)
{
    return value_b((k * args.groups + group) * args.out_channels + row);
}
ACC load_b(uint k, uint column)
{
    uint kh, kw, c;
    split_tap(column, args.channels, kh, kw, c);
    return load_x(k, kh, kw, c);
}
void store(uint row, uint column, ACC value)
{
    uint columns = args.kernel_height * args.kernel_width * args.channels;
    uint all = args.groups * args.out_channels;
    result.d[args.out_offset + (split * all + group * args.out_channels + row) * columns +
             column] = value;
}
#endif

#ifdef DIRECT
// One output for each invocation, without shared memory: for few channels, where tiles would be
// mostly empty. Divisions are kept out of the loops over channels and pixels.
void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    uint kernel_width = args.kernel_width;
    ACC sum = ACC(0);
#ifdef OP_weight
    uint columns = args.kernel_height * kernel_width * args.channels;
    uint all = args.out_channels * args.groups * columns;
    if (i >= all * args.splits)
        return;
    split = i / all;
    i -= split * all;
    uint o = i / columns, column = i - o * columns;
    group = o / args.out_channels;
    uint row = o - group * args.out_channels;
    uint kh, kw, c;
    split_tap(column, args.channels, kh, kw, c);
    uint pixels = args.num * args.out_height * args.out_width;
    uint chunk = (pixels + args.splits - 1u) / args.splits;
    uint begin = min(split * chunk, pixels), end = min(begin + chunk, pixels);
    uint line = begin / args.out_width;
    int ow = int(begin - line * args.out_width);
    int n = int(line / args.out_height), oh = int(line) - n * int(args.out_height);
    uint all_channels = args.channels * args.groups;
    for (uint k = begin; k < end; k++) {
        int h = oh * args.stride_y - args.pad_y + int(kh) * args.dilation_y;
        int w = ow * args.stride_x - args.pad_x + int(kw) * args.dilation_x;
        if (h >= 0 && w >= 0 && h < int(args.height) && w < int(args.width)) {
            uint at = uint((n * int(args.height) + h) * int(args.width) + w);
            sum += load_a(row, k) *
                   value_a(at * all_channels + group * args.channels + c);
        }
        if (++ow == int(args.out_width)) {
            ow = 0;
            if (++oh == int(args.out_height)) {
                oh = 0;
                n++;
            }
        }
    }
#else
#ifdef OP_forward
    uint rows = args.num * args.out_height * args.out_width, count = args.out_channels;
    int width = int(args.out_width), height = int(args.out_height);
#else
    uint rows = args.num * args.height * args.width, count = args.channels;
    int width = int(args.width), height = int(args.height);
#endif
    uint all = count * args.groups, row = i / all;
    if (row >= rows)
        return;
    uint channel = i - row * all;
    group = channel / count;
    uint column = channel - group * count;
    int line = int(row) / width;
    int x = int(row) - line * width;
    int n = line / height, y = line - n * height;
    for (int kh = 0; kh < int(args.kernel_height); kh++)
        for (int kw = 0; kw < int(kernel_width); kw++) {
            uint tap = uint(kh) * kernel_width + uint(kw);
#ifdef OP_forward
            int h = y * args.stride_y - args.pad_y + kh * args.dilation_y;
            int w = x * args.stride_x - args.pad_x + kw * args.dilation_x;
            if (h < 0 || w < 0 || h >= int(args.height) || w >= int(args.width))
                continue;
            uint at = uint((n * int(args.height) + h) * int(args.width) + w);
            at = (at * args.groups + group) * args.channels;
            uint from = channel * args.kernel_height * kernel_width + tap;
            for (uint c = 0u; c < args.channels; c++)
                sum += value_a(at + c) * value_b(from * args.channels + c);
#else
            int h = y + args.pad_y - kh * args.dilation_y;
            int w = x + args.pad_x - kw * args.dilation_x;
            int oh = h / args.stride_y, ow = w / args.stride_x;
            if (h < 0 || w < 0 || oh * args.stride_y != h || ow * args.stride_x != w ||
                oh >= int(args.out_height) || ow >= int(args.out_width))
                continue;
            uint at = uint((n * int(args.out_height) + oh) * int(args.out_width) + ow);
            at = (at * args.groups + group) * args.out_channels;
            uint step_size = args.kernel_height * kernel_width * args.channels;
            uint from = group * args.out_channels * step_size + tap * args.channels + column;
            for (uint o = 0u; o < args.out_channels; o++)
                sum += value_a(at + o) * value_b(from + o * step_size);
#endif
        }
#endif
    store(row, column, sum);
}
#else
#include "matmul/matmul.glsl"

void main()
{
    group = gl_WorkGroupID.z % args.groups;
    split = gl_WorkGroupID.z / args.groups;
    uint taps = args.kernel_height * args.kernel_width;
    uint pixels = args.num * args.out_height * args.out_width;
#if defined(OP_forward)
    multiply(gl_WorkGroupID.x, gl_WorkGroupID.y, pixels, args.out_channels, 0u,
             taps * args.channels);
#elif defined(OP_input)
    multiply(gl_WorkGroupID.x, gl_WorkGroupID.y, args.num * args.height * args.width,
             args.channels, 0u, taps * args.out_channels);
#else
    uint chunk = (pixels + args.splits - 1u) / args.splits;
    uint begin = min(split * chunk, pixels);
    multiply(gl_WorkGroupID.x, gl_WorkGroupID.y, args.out_channels, taps * args.channels,
             begin, min(begin + chunk, pixels));
#endif
}
#endif

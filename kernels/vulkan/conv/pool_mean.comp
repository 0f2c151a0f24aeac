#version 460
// SPDX-License-Identifier: MIT
// mean_pool2d over x [N, H, W, C], and (OP_share) its transpose: each element of the images sums its
// shares of the windows that it is in. All operands are contiguous.
#include "program/types.glsl"
#include "program/scalar.glsl"
layout(local_size_x = 256) in;
#define ACC PASTE(C_, IN)
layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
layout(std430, binding = 1) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
layout(push_constant) uniform Args {
    uint n, in_offset, unused, out_offset;
    int height, width, channels, out_height, out_width;
    int window_y, window_x, stride_y, stride_x, before_y, before_x, after_y, after_x;
    int count_padding, divisor;
} args;

ACC load_element(int at)
{
    return PASTE(FROM_, IN)(PASTE(W_, IN)(source.d[args.in_offset + uint(at)]));
}

// The divisor of a window's sum.
ACC divisor_of(int oh, int ow)
{
    if (args.divisor != 0)
        return ACC(args.divisor);
    ivec2 first = ivec2(oh * args.stride_y - args.before_y, ow * args.stride_x - args.before_x);
    ivec2 low = ivec2(0, 0), high = ivec2(args.height, args.width);
    if (args.count_padding != 0) {
        low = ivec2(-args.before_y, -args.before_x);
        high += ivec2(args.after_y, args.after_x);
    }
    ivec2 end = ivec2(min(first.x + args.window_y, high.x), min(first.y + args.window_x, high.y));
    return ACC(max(end.x - max(first.x, low.x), 1) * max(end.y - max(first.y, low.y), 1));
}

void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.n)
        return;
    int rest = int(i / uint(args.channels));
    int c = int(i - uint(rest * args.channels));
    ACC y = ACC(0);
#ifndef OP_share
    int ow = rest % args.out_width;
    rest /= args.out_width;
    int oh = rest % args.out_height, image = rest / args.out_height;
    int h0 = oh * args.stride_y - args.before_y, w0 = ow * args.stride_x - args.before_x;
    int h1 = min(h0 + args.window_y, args.height), w1 = min(w0 + args.window_x, args.width);
    for (int h = max(h0, 0); h < h1; h++)
        for (int w = max(w0, 0); w < w1; w++)
            y += load_element(((image * args.height + h) * args.width + w) * args.channels + c);
    y = y / divisor_of(oh, ow);
#else
    int w = rest % args.width;
    rest /= args.width;
    int h = rest % args.height, image = rest / args.height;
    // Windows oh with oh * stride - before <= h < oh * stride - before + window.
    int oh0 = max(h + args.before_y - args.window_y + args.stride_y, 0) / args.stride_y;
    int ow0 = max(w + args.before_x - args.window_x + args.stride_x, 0) / args.stride_x;
    int oh1 = min((h + args.before_y) / args.stride_y, args.out_height - 1);
    int ow1 = min((w + args.before_x) / args.stride_x, args.out_width - 1);
    for (int oh = oh0; oh <= oh1; oh++)
        for (int ow = ow0; ow <= ow1; ow++)
            y += load_element(((image * args.out_height + oh) * args.out_width + ow) * args.channels + c) /
                 divisor_of(oh, ow);
#endif
    result.d[args.out_offset + i] = PASTE(S_, IN)(PASTE(TO_, IN)(y));
}

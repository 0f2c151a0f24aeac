#version 460
// SPDX-License-Identifier: MIT
// max_pool2d over x [N, H, W, C], and (OP_grad) its gradient: each element of x sums the gradients
// of the windows whose first maximum it is. All operands are contiguous.
#define NEED_MAX
#include "program/types.glsl"
#include "program/scalar.glsl"
layout(local_size_x = 256) in;
#define ACC PASTE(C_, IN)
layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
#ifdef OP_grad
layout(std430, binding = 1) readonly buffer Gradient { PASTE(S_, IN) d[]; } gradient;
layout(std430, binding = 2) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
#else
layout(std430, binding = 1) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
#endif
layout(push_constant) uniform Args {
    uint n, in_offset, gradient_offset, out_offset;
    int height, width, channels, out_height, out_width;
    int window_y, window_x, stride_y, stride_x, pad_y, pad_x;
} args;

ACC load_element(int image, int h, int w, int c)
{
    uint at = uint(((image * args.height + h) * args.width + w) * args.channels + c);
    return PASTE(FROM_, IN)(PASTE(W_, IN)(source.d[args.in_offset + at]));
}

// The maximum of a window, and the position of its first occurrence (-1, -1: the window has no
// element).
ACC search(int image, int oh, int ow, int c, out ivec2 position)
{
    int h0 = oh * args.stride_y - args.pad_y, w0 = ow * args.stride_x - args.pad_x;
    int h1 = min(h0 + args.window_y, args.height), w1 = min(w0 + args.window_x, args.width);
    ACC high = ACC(-infinity());
    position = ivec2(-1, -1);
    for (int h = max(h0, 0); h < h1; h++)
        for (int w = max(w0, 0); w < w1; w++) {
            ACC x = load_element(image, h, w, c);
            bool larger = x > high || (is_nan(x) && !is_nan(high));
            if (larger || position.x < 0) {
                high = x;
                position = ivec2(h, w);
            }
        }
    return high;
}

void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.n)
        return;
    int rest = int(i / uint(args.channels));
    int c = int(i - uint(rest * args.channels));
    ivec2 position;
#ifndef OP_grad
    int ow = rest % args.out_width;
    rest /= args.out_width;
    ACC y = search(rest / args.out_height, rest % args.out_height, ow, c, position);
#else
    int w = rest % args.width;
    rest /= args.width;
    int h = rest % args.height, image = rest / args.height;
    // Windows oh with oh * stride - pad <= h < oh * stride - pad + window.
    int oh0 = max(h + args.pad_y - args.window_y + args.stride_y, 0) / args.stride_y;
    int ow0 = max(w + args.pad_x - args.window_x + args.stride_x, 0) / args.stride_x;
    int oh1 = min((h + args.pad_y) / args.stride_y, args.out_height - 1);
    int ow1 = min((w + args.pad_x) / args.stride_x, args.out_width - 1);
    ACC y = ACC(0);
    for (int oh = oh0; oh <= oh1; oh++)
        for (int ow = ow0; ow <= ow1; ow++) {
            search(image, oh, ow, c, position);
            int at = ((image * args.out_height + oh) * args.out_width + ow) * args.channels + c;
            if (position == ivec2(h, w))
                y += PASTE(FROM_, IN)(
                    PASTE(W_, IN)(gradient.d[args.gradient_offset + uint(at)]));
        }
#endif
    result.d[args.out_offset + i] = PASTE(S_, IN)(PASTE(TO_, IN)(y));
}

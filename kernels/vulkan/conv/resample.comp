#version 460
// SPDX-License-Identifier: MIT
// resample2d over x [N, H, W, C], and (OP_share) its transpose. `table` has the taps of each row of
// results, and then of each column, as <tenon/ops/resample.h> says: the first element, how many there
// are, and where the result lies between two. All operands are contiguous.
#include "program/types.glsl"
#include "program/scalar.glsl"
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
layout(std430, binding = 1) readonly buffer Table { uint d[]; } table;
layout(std430, binding = 2) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
layout(push_constant) uniform Args {
    uint n, in_offset, out_offset;
    int channels, rows, columns; // of the images that are read
    int out_rows, out_columns;   // of the results
    uint parts;                  // 1: sums of taps are divided by how many they are
} args;

struct taps {
    int first, count;
    float between;
};

taps taps_of(int result)
{
    uint at = uint(result) * 3u;
    return taps(int(table.d[at]), int(table.d[at + 1u]), uintBitsToFloat(table.d[at + 2u]));
}

// The weight of tap k: of two on a line, of four on cubics.
float weight_of(taps of, int k)
{
    if (of.count == 1 || args.parts != 0u)
        return 1.0;
    float t = of.between;
    if (of.count == 2)
        return k == 0 ? 1.0 - t : t;
    t = k == 0 ? t + 1.0 : k == 1 ? t : k == 2 ? 1.0 - t : 2.0 - t; // the distance
    return k == 1 || k == 2 ? (1.25 * t - 2.25) * t * t + 1.0
                            : ((-0.75 * t + 3.75) * t - 6.0) * t + 3.0;
}

float divisor_of(taps of)
{
    return args.parts != 0u ? float(of.count) : 1.0;
}

float load_element(int at)
{
    return PASTE(FROM_, IN)(PASTE(W_, IN)(source.d[args.in_offset + uint(at)]));
}

#ifndef OP_share
float make_element(int image, int row, int column, int channel)
{
    taps down = taps_of(row), across = taps_of(args.out_rows + column);
    float all = 0.0;
    for (int b = 0; b < across.count; b++) {
        int x = clamp(across.first + b, 0, args.columns - 1);
        float sum = 0.0;
        for (int a = 0; a < down.count; a++) {
            int y = clamp(down.first + a, 0, args.rows - 1);
            sum += weight_of(down, a) *
                   load_element(((image * args.rows + y) * args.columns + x) * args.channels + channel);
        }
        all += weight_of(across, b) * (sum / divisor_of(down));
    }
    return all / divisor_of(across);
}
#else
// The first of `count` results from `begin` on with a tap at `position` or behind it, or (`behind`) all
// of whose taps are behind it. Taps within an axis of `extent` elements lie in the results' order.
int first_result(int begin, int count, int extent, int position, bool behind)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        taps of = taps_of(begin + middle);
        int tap = clamp(behind ? of.first : of.first + of.count - 1, 0, extent - 1);
        if (behind ? tap > position : tap >= position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// The share of the element at `position` in a result.
float share_of(taps of, int extent, int position)
{
    if (args.parts != 0u)
        return 1.0 / float(of.count);
    float sum = 0.0;
    for (int k = 0; k < of.count; k++)
        if (clamp(of.first + k, 0, extent - 1) == position)
            sum += weight_of(of, k);
    return sum;
}

// The images are what is read by the primitive that this one is the transpose of.
float make_element(int image, int row, int column, int channel)
{
    int x = first_result(args.rows, args.columns, args.out_columns, column, false);
    int end = first_result(args.rows, args.columns, args.out_columns, column, true);
    int first = first_result(0, args.rows, args.out_rows, row, false);
    int last = first_result(0, args.rows, args.out_rows, row, true);
    float all = 0.0;
    for (; x < end; x++) {
        float share = share_of(taps_of(args.rows + x), args.out_columns, column), sum = 0.0;
        for (int y = first; y < last; y++)
            sum += share_of(taps_of(y), args.out_rows, row) *
                   load_element(((image * args.rows + y) * args.columns + x) * args.channels + channel);
        all += share * sum;
    }
    return all;
}
#endif

void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.n)
        return;
    int rest = int(i / uint(args.channels));
    int channel = int(i - uint(rest * args.channels));
    int column = rest % args.out_columns;
    rest /= args.out_columns;
    int row = rest % args.out_rows, image = rest / args.out_rows;
    result.d[args.out_offset + i] =
        PASTE(S_, IN)(PASTE(TO_, IN)(make_element(image, row, column, channel)));
}

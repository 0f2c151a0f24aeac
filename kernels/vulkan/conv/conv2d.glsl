// SPDX-License-Identifier: MIT
// A convolution and its two transposes as products of matrices whose operands are read in place:
// what conv2d_matrix.comp and conv2d_wide.comp share.
//
//   FORWARD  rows: output pixels       columns: o           terms: (kh, kw, c)
//   INPUT    rows: input pixels        columns: c           terms: (kh, kw, o)
//   WEIGHT   rows: o                   columns: (kh, kw, c) terms: output pixels
//
// INPUT with strides: pixels that the same filter elements reach are a phase, and each
// phase is a convolution without strides, by those elements alone.
//
// The layers of workgroups (z) are phases, groups and parts of the terms. With parts the
// result has the sums of each, one behind the other.
//
// The including file has buffers `pixels` (x, of INPUT the gradient), `others` (w, of WEIGHT the
// gradient) and `bias`. Zeros in place of padding give a sum that is no number where they meet a
// filter's infinity, or the gradient's: with SUMS_ANEW sum_anew() makes it of its terms alone, by
// of_pixels(at), of_others(at), of_bias(at), the buffers' elements. It is slow: has_padding() tells
// the sums that need it.
#define FORWARD 0u
#define INPUT 1u
#define WEIGHT 2u
layout(constant_id = 0) const uint OP = FORWARD;
layout(constant_id = 1) const uint HAS_BIAS = 0;
layout(constant_id = 2) const uint POINTWISE = 0; // filters of 1x1, without strides and padding
layout(constant_id = 3) const uint WHOLE = 0;     // the terms of a slice have one filter element
layout(constant_id = 4) const uint PHASES = 1;    // of INPUT: those of rows times those of columns

layout(push_constant) uniform Args {
    uint pixels_offset, others_offset, bias_offset, out_offset;
    uint num, height, width, channels;        // of x; channels of one group
    uint out_height, out_width, out_channels; // of y; channels of one group
    uint kernel_height, kernel_width;
    int stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
    uint groups, parts, part_terms;
    // Constants that divide by the channels of terms (of WEIGHT: of x), and by width and height of y.
    uint by_channels[2], by_width[2], by_height[2];
} args;

uint group, part, rows, columns, terms;
uint k_begin, k_end; // the terms of this part
// Position p of the rows (of WEIGHT: of the terms) reads pixel p * read_step + read_first +
// tap * read_move of a source, and filter element tap_first + tap * tap_step. Rows, then columns.
uvec2 grid, source, taps, tap_first, tap_step, phase;
ivec2 read_step, read_first, read_move;
uint inner, pitch; // channels of the source: of a group, of all

// The taps of a phase of INPUT along one axis.
void find_taps(int first, int stride, int dilation, uint size, out uint from, out uint apart,
               out uint count, out int reads, out int moves)
{
    from = 0u;
    while (from < size && (first - int(from) * dilation) % stride != 0)
        from++;
    apart = 1u;
    while (int(apart) * dilation % stride != 0)
        apart++;
    count = from < size ? (size - 1u - from) / apart + 1u : 0u;
    reads = (first - int(from) * dilation) / stride;
    moves = -(int(apart) * dilation / stride);
}

void begin_phase(uint number)
{
    phase = uvec2(number / uint(args.stride_x), number % uint(args.stride_x));
    uvec2 stride = uvec2(args.stride_y, args.stride_x);
    grid = (max(grid, phase) - phase + stride - 1u) / stride;
    find_taps(int(phase.x) + args.pad_y, args.stride_y, args.dilation_y, args.kernel_height,
              tap_first.x, tap_step.x, taps.x, read_first.x, read_move.x);
    find_taps(int(phase.y) + args.pad_x, args.stride_x, args.dilation_x, args.kernel_width,
              tap_first.y, tap_step.y, taps.y, read_first.y, read_move.y);
}

void begin()
{
    uint layer = gl_WorkGroupID.z / args.parts;
    part = gl_WorkGroupID.z % args.parts;
    group = layer % args.groups;
    grid = uvec2(args.out_height, args.out_width);
    source = uvec2(args.height, args.width);
    taps = uvec2(args.kernel_height, args.kernel_width);
    tap_first = phase = uvec2(0u);
    tap_step = uvec2(1u);
    read_step = ivec2(args.stride_y, args.stride_x);
    read_first = -ivec2(args.pad_y, args.pad_x);
    read_move = ivec2(args.dilation_y, args.dilation_x);
    inner = args.channels;
    columns = args.out_channels;
    if (OP == INPUT) {
        source = grid;
        grid = uvec2(args.height, args.width);
        inner = args.out_channels;
        columns = args.channels;
        read_step = ivec2(1);
        read_first = -read_first;
        read_move = -read_move;
        if (PHASES > 1u)
            begin_phase(layer / args.groups);
    }
    pitch = inner * args.groups;
    rows = args.num * grid.x * grid.y;
    terms = taps.x * taps.y * inner;
    if (OP == WEIGHT) {
        columns = terms;
        terms = rows;
        rows = args.out_channels;
    }
    k_begin = part * args.part_terms;
    k_end = min(k_begin + args.part_terms, terms);
}

// Splits term (column of WEIGHT) `at` into tap and channel. With WHOLE the tap is that of
// `slice`.
void find_tap(uint slice, uint at, out uvec2 tap, out uint channel)
{
    tap = uvec2(0u);
    channel = at;
    if (POINTWISE != 0u)
        return;
    uint number = divide(WHOLE != 0u ? slice : at, args.by_channels[0], args.by_channels[1]);
    channel -= number * inner;
    tap.x = number / taps.y;
    tap.y = number - tap.x * taps.y;
}

// The element of w under a tap, of channel `o` of y, and c of x.
uint filter_element(uint o, uvec2 tap, uint c)
{
    tap = tap_first + tap * tap_step;
    uint line = (group * args.out_channels + o) * args.kernel_height + tap.x;
    return args.others_offset + (line * args.kernel_width + tap.y) * args.channels + c;
}

// Finds the source of a row under the first tap: its pixel, which may be outside of the source, and the
// number of this pixel.
void begin_row(uint row, out ivec2 origin, out int position)
{
    uint line = row / grid.y, n = line / grid.x;
    origin = ivec2(line - n * grid.x, row - line * grid.y) * read_step + read_first;
    position = int(n * source.x * source.y) + origin.x * int(source.y) + origin.y;
    if (row >= rows)
        origin = ivec2(-0x40000000);
}

// For WEIGHT: the number of the pixel that term `k` reads under a tap. False: it is padding.
bool read_pixel(uint k, uvec2 tap, out uint position)
{
    position = k;
    if (POINTWISE != 0u)
        return true;
    uint line = divide(k, args.by_width[0], args.by_width[1]);
    uint n = divide(line, args.by_height[0], args.by_height[1]);
    uvec2 at = uvec2(ivec2(line - n * grid.x, k - line * grid.y) * read_step + read_first +
                     ivec2(tap) * read_move);
    position = (n * source.x + at.x) * source.y + at.y;
    return at.x < source.x && at.y < source.y;
}

// Where row `row` of the result begins, in elements.
uint row_start(uint row)
{
    if (OP == WEIGHT)
        return args.out_offset + ((part * args.groups + group) * rows + row) * columns;
    uint pixel = row, all = rows;
    if (PHASES > 1u) {
        uint line = row / grid.y, n = line / grid.x;
        uint y = phase.x + (line - n * grid.x) * uint(args.stride_y);
        uint x = phase.y + (row - line * grid.y) * uint(args.stride_x);
        pixel = (n * args.height + y) * args.width + x;
        all = args.num * args.height * args.width;
    }
    return args.out_offset + ((part * all + pixel) * args.groups + group) * columns;
}

#ifdef SUMS_ANEW
// Whether one of the sum's terms is padding: else the sum is right, number or not.
bool has_padding(uint row, uint column)
{
    ivec2 first, last;
    int position;
    if (OP == WEIGHT) {
        uvec2 tap;
        uint channel;
        find_tap(column, column, tap, channel);
        first = read_first + ivec2(tap) * read_move;
        last = first + (ivec2(grid) - 1) * read_step;
    } else {
        begin_row(row, first, position);
        last = first + (ivec2(taps) - 1) * read_move;
    }
    return any(lessThan(min(first, last), ivec2(0))) ||
           any(greaterThanEqual(max(first, last), ivec2(source)));
}

float sum_anew(uint row, uint column)
{
    float sum = 0.0;
    if (HAS_BIAS != 0u && part == 0u)
        sum = of_bias(args.bias_offset + group * columns + column);
    ivec2 origin;
    int position;
    if (OP != WEIGHT)
        begin_row(row, origin, position);
    [[dont_unroll]] for (uint k = k_begin; k < k_end; k++) {
        uvec2 tap;
        uint channel, at;
        find_tap(OP == WEIGHT ? column : k, OP == WEIGHT ? column : k, tap, channel);
        uint other = args.others_offset + (k * args.groups + group) * args.out_channels + row;
        if (OP == WEIGHT) {
            if (!read_pixel(k, tap, at))
                continue;
        } else {
            ivec2 moved = ivec2(tap) * read_move;
            uvec2 p = uvec2(origin + moved);
            if (p.x >= source.x || p.y >= source.y)
                continue;
            at = uint(position + moved.x * int(source.y) + moved.y);
            other = OP == FORWARD ? filter_element(column, tap, channel)
                                  : filter_element(channel, tap, column);
        }
        sum += of_pixels(args.pixels_offset + group * inner + at * pitch + channel) *
               of_others(other);
    }
    return sum;
}
#endif

#version 460
// SPDX-License-Identifier: MIT
// A few rows of x times the transposed matrix of groupwise codes (<tenon/ops/quant_groups.h>), in f32, ROWS rows at
// a time, for x and results of dtype FLOATS. LANES invocations share the units of 32 codes of EACH columns: what they
// read of x, eight elements by eight, serves all of these columns.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint LANES = 32; // a power of two from 8 to 256
layout(constant_id = 1) const uint MODE = 0;   // TN_GROUPWISE_...
layout(constant_id = 2) const uint BITS = 4;
layout(constant_id = 3) const uint GROUP = 64;
layout(constant_id = 4) const uint SCALES = 0;    // f32, f16, bf16, u8
layout(constant_id = 5) const uint BIASES = 0;    // the same
layout(constant_id = 6) const uint X_ALIGNED = 0; // 1: rows of x begin at a multiple of 16 bytes
layout(constant_id = 7) const uint W_ALIGNED = 0; // 1: units of codes do
layout(std430, binding = 0) readonly buffer X { PASTE(S_, FLOATS) d[]; } x_source;
layout(std430, binding = 1) readonly buffer Words { uint d[]; } words;
layout(std430, binding = 2) readonly buffer Scales { uint d[]; } scales;
layout(std430, binding = 3) readonly buffer Biases { uint d[]; } biases;
layout(std430, binding = 4) writeonly buffer Out { PASTE(S_, FLOATS) d[]; } result;
layout(std430, binding = 5) readonly buffer XFours { uvec4 d[]; } x_fours;       // x, where X_ALIGNED is 1
layout(std430, binding = 6) readonly buffer WordFours { uvec4 d[]; } word_fours; // the words, where W_ALIGNED is 1
layout(push_constant) uniform Args {
    uint rows, columns, terms;
    uint x_offset, w_offset, scales_offset, biases_offset, out_offset;
} args;
#if ROWS == 1
#define EACH 4u
#else
#define EACH 2u
#endif
#define LINES (EACH * uint(ROWS))         // sums of an invocation
const uint COLUMNS = 256u / LANES * EACH; // of a workgroup
shared float part_sums[LINES][256];

#include "groupwise.glsl"

// The words of a unit of each column, which are on their way together.
uint codes[EACH][8];

void load_unit(uint c, uint column, uint unit)
{
    uint first = args.w_offset + (column * (args.terms / 32u) + unit) * BITS;
    if (W_ALIGNED != 0u) {
        [[unroll]] for (uint i = 0u; i < 2u; i++) {
            if (4u * i >= BITS)
                break;
            uvec4 four = word_fours.d[first / 4u + i];
            [[unroll]] for (uint j = 0u; j < 4u; j++)
                codes[c][4u * i + j] = four[j];
        }
        return;
    }
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        if (i >= BITS)
            break;
        codes[c][i] = words.d[first + i];
    }
}

// Decodes code `i` of the unit. In mode affine the value is 1 + code / 2^BITS: the code takes the upper bits of a
// float's fraction, which is quicker than a conversion.
float value_at(uint c, uint i)
{
    uint at = i * BITS, shift = at % 32u, word = codes[c][at / 32u];
    const uint to = 23u - BITS, mask = (1u << BITS) - 1u;
    if (shift + BITS > 32u) {
        word = word >> shift | codes[c][min(at / 32u + 1u, 7u)] << 32u - shift;
        shift = 0u;
    }
    if (MODE == 0u) {
        word = shift <= to ? word << (to - min(shift, to)) : word >> (max(shift, to) - to);
        return uintBitsToFloat(word & mask << to | 0x3f800000u);
    }
    word = word >> shift & mask;
    return MODE == 2u ? of_e4m3(word) : of_e2m1(word);
}

vec4 four_of_f16(uint first, uint second)
{
    return vec4(unpackHalf2x16(first), unpackHalf2x16(second));
}
vec4 four_of_bf16(uint first, uint second)
{
    return uintBitsToFloat(uvec4(first << 16, first & 0xffff0000u, second << 16, second & 0xffff0000u));
}

// Eight elements of x.
void load_x(uint at, out vec4 low, out vec4 high)
{
    if (X_ALIGNED != 0u) {
#ifdef IS_F32
        low = uintBitsToFloat(x_fours.d[at / 4u]);
        high = uintBitsToFloat(x_fours.d[at / 4u + 1u]);
#else
        uvec4 halves = x_fours.d[at / 8u];
        low = PASTE(four_of_, FLOATS)(halves.x, halves.y);
        high = PASTE(four_of_, FLOATS)(halves.z, halves.w);
#endif
        return;
    }
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        low[i] = PASTE(FROM_, FLOATS)(PASTE(W_, FLOATS)(x_source.d[at + i]));
        high[i] = PASTE(FROM_, FLOATS)(PASTE(W_, FLOATS)(x_source.d[at + 4u + i]));
    }
}

// The scale and, in mode affine, the bias of a column's group as factors of sums of value_at() times x, and of x.
vec2 factors(uint group)
{
    uint at = args.scales_offset + group;
    float scale = number_in(SCALES, scales.d[words_before(SCALES, at)], at);
    if (MODE != 0u)
        return vec2(scale, 0.0);
    at = args.biases_offset + group;
    float bias = number_in(BIASES, biases.d[words_before(BIASES, at)], at);
    scale *= float(1u << BITS);
    return vec2(scale, bias - scale);
}

float sum_of(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

float sums[EACH][ROWS];

// Adds the products of a unit of each column.
void add_unit(uint first_column, uint unit, uint first_row)
{
    const uint each = min(GROUP, 32u); // terms that have one scale
    vec2 by[EACH];
    [[unroll]] for (uint c = 0u; c < EACH; c++)
        load_unit(c, min(first_column + c, args.columns - 1u), unit);
    for (uint begin = 0u; begin < 32u; begin += each) {
        float of_codes[EACH][ROWS], of_x[ROWS];
        [[unroll]] for (uint c = 0u; c < EACH; c++)
            by[c] = factors(min(first_column + c, args.columns - 1u) * (args.terms / GROUP) +
                            (unit * 32u + begin) / GROUP);
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
            of_x[r] = 0.0;
            [[unroll]] for (uint c = 0u; c < EACH; c++)
                of_codes[c][r] = 0.0;
        }
        [[unroll]] for (uint piece = 0u; piece < each; piece += 8u) {
            vec4 x_low[ROWS], x_high[ROWS];
            [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
                load_x(args.x_offset + min(first_row + r, args.rows - 1u) * args.terms + unit * 32u + begin + piece,
                       x_low[r], x_high[r]);
                of_x[r] += sum_of(x_low[r] + x_high[r]);
            }
            [[unroll]] for (uint c = 0u; c < EACH; c++)
                [[unroll]] for (uint i = 0u; i < 4u; i++) {
                    float low = value_at(c, begin + piece + i), high = value_at(c, begin + piece + 4u + i);
                    [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
                        of_codes[c][r] += low * x_low[r][i] + high * x_high[r][i];
                }
        }
        [[unroll]] for (uint c = 0u; c < EACH; c++)
            [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
                sums[c][r] += by[c].x * of_codes[c][r] + by[c].y * of_x[r];
    }
}

// Adds the shares of lanes, LINES of an output's at a time, and stores the sums.
void store_sums(uint first_row, uint first_column)
{
    const uint outputs = 256u / LANES * LINES, sharing = LANES / LINES; // invocations of an output
    [[unroll]] for (uint c = 0u; c < EACH; c++)
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            part_sums[c * uint(ROWS) + r][gl_LocalInvocationIndex] = sums[c][r];
    barrier();
    uint of = gl_LocalInvocationIndex / sharing, own = gl_LocalInvocationIndex % sharing;
    uint line = of % LINES, from = of / LINES * LANES;
    float sum = 0.0;
    [[unroll]] for (uint i = 0u; i < LINES; i++)
        sum += part_sums[line][from + own + i * sharing];
    barrier();
    part_sums[0][gl_LocalInvocationIndex] = sum;
    barrier();
    if (gl_LocalInvocationIndex >= outputs)
        return;
    sum = 0.0;
    [[unroll]] for (uint i = 0u; i < sharing; i++)
        sum += part_sums[0][gl_LocalInvocationIndex * sharing + i];
    line = gl_LocalInvocationIndex % LINES;
    uint row = first_row + line % uint(ROWS);
    uint column = first_column + gl_LocalInvocationIndex / LINES * EACH + line / uint(ROWS);
    if (row < args.rows && column < args.columns)
        result.d[args.out_offset + row * args.columns + column] = PASTE(S_, FLOATS)(PASTE(TO_, FLOATS)(sum));
}

void main()
{
    uint number = group_number(), across = (args.columns + COLUMNS - 1u) / COLUMNS;
    uint first_row = number / across * uint(ROWS), first_column = number % across * COLUMNS;
    uint lane = gl_LocalInvocationIndex % LANES, own = gl_LocalInvocationIndex / LANES * EACH;
    if (first_row >= args.rows)
        return;
    [[unroll]] for (uint c = 0u; c < EACH; c++)
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            sums[c][r] = 0.0;
    for (uint unit = lane; unit < args.terms / 32u; unit += LANES)
        add_unit(first_column + own, unit, first_row);
    store_sums(first_row, first_column);
}

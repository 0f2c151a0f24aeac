#version 460
// SPDX-License-Identifier: MIT
// A few rows of x times the transposed matrix of groupwise codes (<tenon/ops/quant_groups.h>), in f32, ROWS rows at
// a time. LANES invocations share the units of 32 codes of EACH columns.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint LANES = 32; // a power of two from 8 to 256
layout(constant_id = 1) const uint MODE = 0;   // TN_GROUPWISE_...
layout(constant_id = 2) const uint BITS = 4;
layout(constant_id = 3) const uint GROUP = 64;
layout(constant_id = 4) const uint SCALES = 0; // f32, f16, bf16, u8
layout(constant_id = 5) const uint BIASES = 0; // the same
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 1) readonly buffer Words { uint d[]; } words;
layout(std430, binding = 2) readonly buffer Scales { uint d[]; } scales;
layout(std430, binding = 3) readonly buffer Biases { uint d[]; } biases;
layout(std430, binding = 4) writeonly buffer Out { float d[]; } result;
layout(push_constant) uniform Args {
    uint rows, columns, terms;
    uint x_offset, w_offset, scales_offset, biases_offset, out_offset;
} args;
#define EACH 2u
const uint COLUMNS = 256u / LANES * EACH; // of a workgroup
shared float part_sums[EACH * uint(ROWS)][256];

float of_e4m3(uint bits)
{
    return unpackHalf2x16((bits & 0x7fu) << 7 | (bits & 0x80u) << 8).x * 256.0;
}

float of_e2m1(uint code)
{
    uint m = code & 7u;
    float v = m < 4u ? float(m) * 0.5 : m < 6u ? float(m) - 2.0 : float(m) * 2.0 - 8.0;
    return (code & 8u) != 0u ? -v : v;
}

// Number `at` of an array of a dtype, of whose memory `word` is the word with it.
uint words_before(uint kind, uint at)
{
    return kind == 0u ? at : kind == 3u ? at / 4u : at / 2u;
}
float number_in(uint kind, uint word, uint at)
{
    if (kind == 0u)
        return uintBitsToFloat(word);
    if (kind == 1u)
        return unpackHalf2x16(word >> at % 2u * 16u).x;
    if (kind == 2u)
        return uintBitsToFloat(word >> at % 2u * 16u << 16);
    uint bits = word >> at % 4u * 8u & 0xffu;
    if (MODE == 3u)
        return of_e4m3(bits);
    return uintBitsToFloat(bits == 0u ? 0x400000u : bits << 23);
}

// Code `i` of 32 whose words begin at `first`.
float value_at(uint first, uint i)
{
    uint at = i * BITS, shift = at % 32u;
    uint code = words.d[first + at / 32u] >> shift;
    if (shift + BITS > 32u)
        code |= words.d[first + at / 32u + 1u] << 32u - shift;
    code &= (1u << BITS) - 1u;
    return MODE == 0u ? float(code) : MODE == 2u ? of_e4m3(code) : of_e2m1(code);
}

// Adds 32 terms of a column to its sums: `count` of them have a scale.
void add_unit(uint column, uint unit, uint first_row, inout float sums[ROWS])
{
    const uint each = min(GROUP, 32u);
    uint first = args.w_offset + (column * (args.terms / 32u) + unit) * BITS;
    for (uint begin = 0u; begin < 32u; begin += each) {
        uint term = unit * 32u + begin;
        uint group = column * (args.terms / GROUP) + term / GROUP;
        uint at = args.scales_offset + group;
        float scale = number_in(SCALES, scales.d[words_before(SCALES, at)], at), bias = 0.0;
        if (MODE == 0u) {
            at = args.biases_offset + group;
            bias = number_in(BIASES, biases.d[words_before(BIASES, at)], at);
        }
        float of_codes[ROWS], of_x[ROWS];
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            of_codes[r] = of_x[r] = 0.0;
        for (uint i = 0u; i < each; i++) {
            float value = value_at(first, begin + i);
            [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
                float x = x_source.d[args.x_offset + min(first_row + r, args.rows - 1u) * args.terms + term + i];
                of_codes[r] += value * x;
                of_x[r] += x;
            }
        }
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            sums[r] += scale * of_codes[r] + bias * of_x[r];
    }
}

void main()
{
    uint number = group_number(), across = (args.columns + COLUMNS - 1u) / COLUMNS;
    uint first_row = number / across * uint(ROWS), first_column = number % across * COLUMNS;
    uint lane = gl_LocalInvocationIndex % LANES, own = gl_LocalInvocationIndex / LANES * EACH;
    if (first_row >= args.rows)
        return;
    [[unroll]] for (uint c = 0u; c < EACH; c++) {
        float sums[ROWS];
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            sums[r] = 0.0;
        for (uint unit = lane; unit < args.terms / 32u; unit += LANES)
            add_unit(min(first_column + own + c, args.columns - 1u), unit, first_row, sums);
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            part_sums[c * uint(ROWS) + r][gl_LocalInvocationIndex] = sums[r];
    }
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < COLUMNS * uint(ROWS); i += 256u) {
        uint at = i % COLUMNS, r = i / COLUMNS, row = first_row + r, column = first_column + at;
        float sum = 0.0;
        for (uint l = 0u; l < LANES; l++)
            sum += part_sums[at % EACH * uint(ROWS) + r][at / EACH * LANES + l];
        if (row < args.rows && column < args.columns)
            result.d[args.out_offset + row * args.columns + column] = sum;
    }
}

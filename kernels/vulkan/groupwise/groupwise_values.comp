#version 460
// SPDX-License-Identifier: MIT
// Rows of groupwise codes (<tenon/ops/quant_groups.h>) as floats of dtype OUT, eight codes for each invocation.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint MODE = 0; // TN_GROUPWISE_...
layout(constant_id = 1) const uint BITS = 4;
layout(constant_id = 2) const uint GROUP = 64;
layout(constant_id = 3) const uint SCALES = 0;      // f32, f16, bf16, u8
layout(constant_id = 4) const uint BIASES = 0;      // the same
layout(constant_id = 5) const uint OUT_ALIGNED = 0; // 1: the result begins at a multiple of 16 bytes
layout(std430, binding = 0) readonly buffer Words { uint d[]; } words;
layout(std430, binding = 1) readonly buffer Scales { uint d[]; } scales;
layout(std430, binding = 2) readonly buffer Biases { uint d[]; } biases;
layout(std430, binding = 3) writeonly buffer Out { PASTE(S_, OUT) d[]; } result;
layout(std430, binding = 4) writeonly buffer Fours { uvec4 d[]; } out_fours; // the result, where OUT_ALIGNED is 1
layout(push_constant) uniform Args {
    uint eights; // of codes
    uint w_offset, scales_offset, biases_offset, out_offset;
} args;

#include "groupwise.glsl"

float of_code(uint code)
{
    return MODE == 0u ? float(code) : MODE == 2u ? of_e4m3(code) : of_e2m1(code);
}

// Code `i` of the eight that begin at a bit of the word `first`.
uint code_at(uint first, uint bit, uint i)
{
    uint at = bit + i * BITS, shift = at % 32u;
    uint code = words.d[first + at / 32u] >> shift;
    if (shift + BITS > 32u)
        code |= words.d[first + at / 32u + 1u] << 32u - shift;
    return code & (1u << BITS) - 1u;
}

void main()
{
    uint own = group_number() * 256u + gl_LocalInvocationIndex;
    if (own >= args.eights)
        return;
    uint bit = own % 4u * 8u * BITS, first = args.w_offset + own / 4u * BITS, group = own * 8u / GROUP;
    uint at = args.scales_offset + group;
    float scale = number_in(SCALES, scales.d[words_before(SCALES, at)], at), bias = 0.0;
    if (MODE == 0u) {
        at = args.biases_offset + group;
        bias = number_in(BIASES, biases.d[words_before(BIASES, at)], at);
    }
    uint bits[8];
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        precise float value = of_code(code_at(first, bit, i)) * scale;
        if (MODE == 0u)
            value += bias;
#ifdef IS_F32
        bits[i] = floatBitsToUint(value);
#else
        bits[i] = PASTE(TO_, OUT)(value);
#endif
    }
    uint to = args.out_offset + own * 8u;
    if (OUT_ALIGNED != 0u) {
#ifdef IS_F32
        out_fours.d[to / 4u] = uvec4(bits[0], bits[1], bits[2], bits[3]);
        out_fours.d[to / 4u + 1u] = uvec4(bits[4], bits[5], bits[6], bits[7]);
#else
        out_fours.d[to / 8u] = uvec4(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16, bits[4] | bits[5] << 16,
                                     bits[6] | bits[7] << 16);
#endif
        return;
    }
    [[unroll]] for (uint i = 0u; i < 8u; i++)
#ifdef IS_F32
        result.d[to + i] = uintBitsToFloat(bits[i]);
#else
        result.d[to + i] = PASTE(S_, OUT)(bits[i]);
#endif
}

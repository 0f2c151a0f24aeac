// SPDX-License-Identifier: MIT
// Numbers of groupwise formats (<tenon/ops/quant_groups.h>). MODE is TN_GROUPWISE_...
float of_e4m3(uint bits)
{
    return unpackHalf2x16((bits & 0x7fu) << 7 | (bits & 0x80u) << 8).x * 256.0;
}

float of_e2m1(uint code)
{
    return unpackHalf2x16((code & 7u) << 9 | (code & 8u) << 12).x * 16384.0;
}

// Number `at` of an array of a dtype (0 to 3: f32, f16, bf16, u8), of whose memory `word` is the word with it.
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

#version 460
// SPDX-License-Identifier: MIT
// Rows of blocks in the order of packed rows (tn_quant_arrange, tn_quant_r16_at), or back: a
// word of 16 bits an invocation.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint UNPACKS = 0;
layout(std430, binding = 0) readonly buffer From { uint8_t d[]; } source;
layout(std430, binding = 1) writeonly buffer To { uint8_t d[]; } result;
layout(push_constant) uniform Args {
    uint words, row_words, block_words;
    uint head;       // words of a block that come first
    uint num_packed; // rows
    uint w_offset, out_offset;
    uint pieces[12]; // of a block, in their packed order: the first word, and words
} args;

uint arranged(uint word)
{
    uint at = 0u, to = word;
    for (uint i = 0u; i < 12u; i += 2u) {
        if (word >= args.pieces[i] && word - args.pieces[i] < args.pieces[i + 1u])
            to = at + word - args.pieces[i];
        at += args.pieces[i + 1u];
    }
    return to;
}

void main()
{
    uint own = group_number() * 256u + gl_LocalInvocationIndex;
    if (own >= args.words)
        return;
    uint row = own / args.row_words, in_row = own % args.row_words, to = own;
    if (row < args.num_packed) {
        uint block = in_row / args.block_words, word = arranged(in_row % args.block_words);
        to = (row / 16u * args.row_words + block * args.block_words) * 16u;
        uint behind = word - args.head, left = args.block_words - args.head - behind / 2u * 2u;
        if (word < args.head)
            to += word * 16u + row % 16u;
        else
            to += args.head * 16u + behind / 2u * 32u + row % 16u * min(left, 2u) + behind % 2u;
    }
    uint from = args.w_offset + 2u * (UNPACKS != 0u ? to : own);
    uint at = args.out_offset + 2u * (UNPACKS != 0u ? own : to);
    result.d[at] = source.d[from];
    result.d[at + 1u] = source.d[from + 1u];
}

#version 460
// SPDX-License-Identifier: MIT
// Products of x, a matrix of a few rows, and w, whose time is that of reading w once: sixteen bytes at a
// time, along the terms (W_ALONG_K) or along the columns, whichever lie side by side. IN: dtype. ROWS: those
// of a workgroup, a power of two up to 8. x may have any strides: it comes to shared memory, CHUNK terms at a time, and is 0 behind its end.
//
// LANES invocations share the terms of an output. Each has parts of PER terms and, along the terms, EACH
// columns, or, along the columns, PER of these; LOADS lines of w are on their way while it multiplies those
// before. Loads stand in no branch: out of bounds an element within is loaded.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint W_ALONG_K = 1;
layout(constant_id = 1) const uint X_ALONG_K = 1;
layout(constant_id = 2) const uint LANES = 64; // a power of two from 32 to 256

layout(std430, binding = 0) readonly buffer X { PASTE(S_, IN) d[]; } x_source;
layout(std430, binding = 1) readonly buffer Lines { uvec4 d[]; } w_source;
layout(std430, binding = 2) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
layout(push_constant) uniform Args {
    uint rows, columns, terms;
    uint x_offset, w_offset, out_offset;
    uint x_row, x_k, w_line; // strides; w_line: of the axis along which w is not contiguous
    uint out_row, out_column;
} args;

#define PER_f32 4
#define PER_f16 8
#define PER_bf16 8
#define PER PASTE(PER_, IN)
#define QUADS (PER / 4)
#define EACH 4
#define LOADS 8
#define SPACE 1024 // vec4s of shared memory
#define CHUNK (SPACE * 4 / ROWS)
#define BROUGHT (SPACE * 4 / 256) // elements of x that an invocation brings
#define HELPERS 16u // invocations that add up an output's shares
#define LINES_AT_ONCE (SPACE / 256)
const uint GROUPS = 256u / LANES;
const uint OF_GROUP = W_ALONG_K != 0u ? uint(EACH) : uint(PER); // columns
const uint ROUND = LANES * (W_ALONG_K != 0u ? uint(LOADS / EACH * PER) : uint(LOADS)); // terms

shared vec4 space[SPACE]; // rows of x; and in the end shares of outputs

// Four elements, number `quad`, of what a load gives.
vec4 four_of_f32(uvec4 line, uint quad)
{
    return uintBitsToFloat(line);
}
vec4 four_of_f16(uvec4 line, uint quad)
{
    uvec2 halves = quad == 0u ? line.xy : line.zw;
    return vec4(unpackHalf2x16(halves.x), unpackHalf2x16(halves.y));
}
vec4 four_of_bf16(uvec4 line, uint quad)
{
    uvec2 halves = quad == 0u ? line.xy : line.zw;
    return uintBitsToFloat(uvec4(halves.x << 16, halves.x & 0xffff0000u, halves.y << 16, halves.y & 0xffff0000u));
}

// The position in `space` of the four terms of x from term 4 * quad of the chunk on: quads of the same
// number in their parts lie side by side.
uint position_of(uint row, uint quad)
{
    return row * (CHUNK / 4u) + quad % QUADS * (CHUNK / 4u / QUADS) + quad / QUADS;
}

void bring_x(uint first_row, uint first)
{
    float brought[BROUGHT];
    [[unroll]] for (uint i = 0u; i < BROUGHT; i++) {
        uint at = gl_LocalInvocationIndex + 256u * i;
        uint row = first_row + (X_ALONG_K != 0u ? at / CHUNK : at % ROWS);
        uint k = first + (X_ALONG_K != 0u ? at % CHUNK : at / ROWS);
        uint from = min(row, args.rows - 1u) * args.x_row + min(k, args.terms - 1u) * args.x_k;
        float x = float(PASTE(FROM_, IN)(PASTE(W_, IN)(x_source.d[args.x_offset + from])));
        brought[i] = row < args.rows && k < args.terms ? x : 0.0;
    }
    [[unroll]] for (uint i = 0u; i < BROUGHT; i++) {
        uint at = gl_LocalInvocationIndex + 256u * i;
        uint row = X_ALONG_K != 0u ? at / CHUNK : at % ROWS, k = X_ALONG_K != 0u ? at % CHUNK : at / ROWS;
        space[position_of(row, k / 4u)][k % 4u] = brought[i];
    }
}

uvec4 next[LOADS];

// The term at which load `i` of a round begins, from the round's begin on.
uint term_of(uint share, uint i)
{
    return W_ALONG_K != 0u ? (i / EACH * LANES + share) * PER
                           : (i / PER * LANES + share) * PER + i % PER;
}

void load_round(uint from, uint share, uint first_column)
{
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uint k = from + term_of(share, i), at;
        if (W_ALONG_K != 0u)
            at = min(first_column + i % EACH, args.columns - 1u) * args.w_line + min(k, args.terms - PER);
        else
            at = min(k, args.terms - 1u) * args.w_line + min(first_column, args.columns - PER);
        next[i] = w_source.d[(args.w_offset + at) / PER];
    }
}

vec4 sums[ROWS][QUADS]; // of columns

// Multiplies the lines `now` by the round of x that begins at term `from` of the chunk.
void multiply(uvec4 now[LOADS], uint from, uint share)
{
    [[unroll]] for (uint begin = 0u; begin < LOADS; begin += 4u) {
        uint quad = (from + term_of(share, begin)) / 4u;
        if (W_ALONG_K != 0u) {
            [[unroll]] for (uint q = 0u; q < QUADS; q++) {
                vec4 w[EACH];
                [[unroll]] for (uint c = 0u; c < EACH; c++)
                    w[c] = PASTE(four_of_, IN)(now[begin + c], q);
                [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                    vec4 x = space[position_of(r, quad + q)];
                    [[unroll]] for (uint t = 0u; t < 4u; t++)
                        sums[r][0] += vec4(w[0][t], w[1][t], w[2][t], w[3][t]) * x[t];
                }
            }
        } else {
            [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                vec4 x = space[position_of(r, quad)];
                [[unroll]] for (uint t = 0u; t < 4u; t++)
                    [[unroll]] for (uint q = 0u; q < QUADS; q++)
                        sums[r][q] += PASTE(four_of_, IN)(now[begin + t], q) * x[t];
            }
        }
    }
}

// Adds the shares of `count` lines of sums, from number `first` on, and stores them.
void add_shares(uint first, uint count, uint first_row, uint tile_column)
{
    uint at = gl_LocalInvocationIndex, outputs = count * GROUPS;
    for (uint i = at; i < outputs * HELPERS; i += 256u) {
        uint from = i / HELPERS * LANES + i % HELPERS;
        vec4 sum = space[from];
        for (uint s = HELPERS; s < LANES; s += HELPERS)
            sum += space[from + s];
        space[from] = sum;
    }
    barrier();
    if (at < outputs) {
        vec4 sum = vec4(0);
        [[unroll]] for (uint i = 0u; i < HELPERS; i++)
            sum += space[at * LANES + i];
        uint line = first + at / GROUPS, lines = OF_GROUP / 4u;
        uint row = first_row + line / lines;
        uint column = tile_column + at % GROUPS * OF_GROUP + line % lines * 4u;
        [[unroll]] for (uint c = 0u; c < 4u; c++)
            if (row < args.rows && column + c < args.columns)
                result.d[args.out_offset + row * args.out_row + (column + c) * args.out_column] =
                    PASTE(S_, IN)(PASTE(TO_, IN)(PASTE(C_, IN)(sum[c])));
    }
}

void main()
{
    // Adjacent workgroups read the same part of w.
    uint down = (args.rows + ROWS - 1u) / ROWS, number = group_number();
    uint first_row = number % down * ROWS, tile_column = number / down * GROUPS * OF_GROUP;
    uint at = gl_LocalInvocationIndex;
    uint share = W_ALONG_K != 0u ? at % LANES : at / GROUPS, group = W_ALONG_K != 0u ? at / LANES : at % GROUPS;
    uint first_column = tile_column + group * OF_GROUP;
    if (tile_column >= args.columns)
        return;
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        [[unroll]] for (uint q = 0u; q < QUADS; q++)
            sums[r][q] = vec4(0);
    load_round(0u, share, first_column);
    for (uint first = 0u; first < args.terms; first += CHUNK) {
        if (first > 0u)
            barrier(); // the terms before are multiplied
        bring_x(first_row, first);
        barrier();
        for (uint k = 0u; k < min(args.terms - first, CHUNK); k += ROUND) {
            uvec4 now[LOADS];
            [[unroll]] for (uint i = 0u; i < LOADS; i++)
                now[i] = first + k + term_of(share, i) < args.terms ? next[i] : uvec4(0u);
            load_round(first + k + ROUND, share, first_column);
            multiply(now, k, share);
        }
    }
    const uint lines = uint(ROWS) * OF_GROUP / 4u;
    [[unroll]] for (uint begin = 0u; begin < ROWS * QUADS; begin += LINES_AT_ONCE) {
        uint count = min(max(lines, begin) - begin, LINES_AT_ONCE);
        barrier(); // x, and the sums before, are read
        [[unroll]] for (uint i = 0u; i < LINES_AT_ONCE; i++)
            if (i < count) {
                uint line = min(begin + i, ROWS * QUADS - 1u);
                space[(i * GROUPS + group) * LANES + share] =
                    W_ALONG_K != 0u ? sums[min(line, ROWS - 1u)][0] : sums[line / QUADS][line % QUADS];
            }
        barrier();
        add_shares(begin, count, first_row, tile_column);
    }
}

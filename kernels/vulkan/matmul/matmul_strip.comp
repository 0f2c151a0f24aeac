#version 460
// SPDX-License-Identifier: MIT
// Products of x, a matrix of a few rows, and w, of 16-bit floats, on cooperative matrices (of
// 16x16x16, sums in f32), whose time is that of reading w once: sixteen bytes at a time, along the terms
// (W_ALONG_K) or along the columns, whichever lie side by side. IN: dtype; ELEMENT: its type in a matrix.
//
// A workgroup of four subgroups computes ROWS x COLUMNS outputs, or with several parts their sums over a
// part of the terms, from slices of DEPTH terms in shared memory. The next slice travels to registers
// meanwhile. Where there are parts, the last workgroup of a tile adds them up.
#include "program/types.glsl"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef IS_BF16
#extension GL_EXT_bfloat16 : require
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
layout(local_size_x = 128) in; // four subgroups of 32
layout(constant_id = 0) const uint W_ALONG_K = 1;
// 0: x is read sixteen bytes at a time, along the terms; else by element: adjacent ones are along the
// terms (1) or the rows (2).
layout(constant_id = 1) const uint X_BY = 0;

layout(std430, binding = 0) readonly buffer X { PASTE(S_, IN) d[]; } x_source;
layout(std430, binding = 1) readonly buffer Lines { uvec4 d[]; } w_source;
layout(std430, binding = 2) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
layout(std430, binding = 3) readonly buffer Eights { uvec4 d[]; } x_eights; // x where X_BY is 0
layout(std430, binding = 4) coherent buffer Parts { vec4 d[]; } parts;
layout(std430, binding = 5) coherent buffer Counters { uint d[]; } counters;
layout(push_constant) uniform Args {
    uint rows, columns, terms;
    uint x_offset, w_offset, out_offset;
    uint x_row, x_k, w_line; // strides; w_line: of the axis along which w is not contiguous
    uint out_row, out_column;
    uint parts, part_terms; // a multiple of DEPTH
} args;

#define GROUP 128u
#ifndef COLUMNS
#define COLUMNS 64
#endif
#ifndef DEPTH
#define DEPTH 128
#endif
#ifndef SPLITS
#define SPLITS 4 // subgroups that share the terms of a slice; the others share its columns
#endif
#define OWN (COLUMNS * SPLITS / 64) // matrices of a subgroup along the columns
#define DOWN (ROWS / 16)           // and along the rows
#define W_LOADS (COLUMNS * DEPTH / 8 / 128) // of an invocation, for a slice
#define X_LOADS (ROWS * DEPTH / 8 / 128)
// Lines of eight elements; one more spreads them over the banks.
#define ALONG_K (DEPTH / 8 + 1)
#define ALONG_COLUMNS (COLUMNS / 8 + 1)
#define X_BEGIN (DEPTH * ALONG_COLUMNS > COLUMNS * ALONG_K ? DEPTH * ALONG_COLUMNS : COLUMNS * ALONG_K)
#define PITCH (COLUMNS / 4 + 1) // vectors of a row of sums
#define ROW_VECTORS (COLUMNS / 4u)
#define COUNTER_PITCH 32u // counters have cache lines of their own

#define OF_SLICES (X_BEGIN + ROWS * ALONG_K)
#define OF_SUMS (SPLITS * 16 * PITCH)
shared uvec4 slices[OF_SLICES > OF_SUMS ? OF_SLICES : OF_SUMS]; // of w and x; and then sums
shared uint num_done;
uvec4 next_w[W_LOADS], next_x[X_LOADS];

// The line, and the position in it, of load `i` of w.
uvec2 w_position(uint i)
{
    uint at = gl_LocalInvocationIndex + i * GROUP, line = W_ALONG_K != 0u ? DEPTH / 8u : COLUMNS / 8u;
    return uvec2(at / line, at % line);
}

// The row, and the eight terms, of load `i` of x.
uvec2 x_position(uint i)
{
    uint at = gl_LocalInvocationIndex + i * GROUP;
    return X_BY == 2u ? uvec2(at % ROWS, at / ROWS) : uvec2(at / (DEPTH / 8u), at % (DEPTH / 8u));
}

#define LOAD_W(num_lines, num_elements)                                                            \
    [[unroll]] for (uint i = 0u; i < W_LOADS; i++) {                                               \
        uvec2 at = w_position(i);                                                                     \
        next_w[i] = uvec4(0u);                                                                     \
        if (at.x < (num_lines) && at.y * 8u < (num_elements))                                      \
            next_w[i] = w_source.d[(from + at.x * args.w_line) / 8u + at.y];                       \
    }

void load_w(uint first_column, uint k, uint k_end)
{
    uint columns = args.columns - first_column, terms = k_end - k;
    uint from = args.w_offset + (W_ALONG_K != 0u ? first_column * args.w_line + k : k * args.w_line + first_column);
    if (columns >= COLUMNS && terms >= DEPTH) {
        LOAD_W(COLUMNS + DEPTH, COLUMNS + DEPTH)
        return;
    }
    LOAD_W(W_ALONG_K != 0u ? columns : terms, W_ALONG_K != 0u ? terms : columns)
}

uint x_element(uint row, uint k, uint k_end)
{
    uint at = args.x_offset + row * args.x_row + k * args.x_k;
    return row < args.rows && k < k_end ? uint(x_source.d[at]) : 0u;
}

void load_x(uint first_row, uint k, uint k_end)
{
    [[unroll]] for (uint i = 0u; i < X_LOADS; i++) {
        uvec2 at = x_position(i);
        uint row = first_row + at.x, first = k + at.y * 8u;
        if (X_BY == 0u) {
            next_x[i] = uvec4(0u);
            if (row < args.rows && first < k_end)
                next_x[i] = x_eights.d[(args.x_offset + row * args.x_row + first) / 8u];
        } else {
            [[unroll]] for (uint c = 0u; c < 4u; c++)
                next_x[i][c] = x_element(row, first + 2u * c, k_end) | x_element(row, first + 2u * c + 1u, k_end) << 16;
        }
    }
}

void keep_slices()
{
    [[unroll]] for (uint i = 0u; i < W_LOADS; i++) {
        uvec2 at = w_position(i);
        slices[at.x * (W_ALONG_K != 0u ? ALONG_K : ALONG_COLUMNS) + at.y] = next_w[i];
    }
    [[unroll]] for (uint i = 0u; i < X_LOADS; i++) {
        uvec2 at = x_position(i);
        slices[X_BEGIN + at.x * ALONG_K + at.y] = next_x[i];
    }
}

#define MATRIX_X coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_W coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

SUMS sums[DOWN][OWN];

void multiply_slices()
{
    [[unroll]] for (uint begin = 0u; begin < DEPTH; begin += 16u * SPLITS) {
        uint k = begin + gl_SubgroupID % SPLITS * 16u;
        MATRIX_X x[DOWN];
        [[unroll]] for (uint i = 0u; i < DOWN; i++)
            coopMatLoad(x[i], slices, X_BEGIN + i * 16u * ALONG_K + k / 8u, ALONG_K,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0u; j < OWN; j++) {
            MATRIX_W w;
            uint column = (gl_SubgroupID / SPLITS * OWN + j) * 16u;
            if (W_ALONG_K != 0u)
                coopMatLoad(w, slices, column * ALONG_K + k / 8u, ALONG_K,
                            gl_CooperativeMatrixLayoutColumnMajor);
            else
                coopMatLoad(w, slices, k * ALONG_COLUMNS + column / 8u, ALONG_COLUMNS,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0u; i < DOWN; i++)
                sums[i][j] = coopMatMulAdd(x[i], w, sums[i][j]);
        }
    }
}

// Sums of terms [k, k_end), to shared memory.
void multiply(uint first_row, uint first_column, uint k, uint k_end)
{
    [[unroll]] for (uint i = 0u; i < DOWN; i++)
        [[unroll]] for (uint j = 0u; j < OWN; j++)
            sums[i][j] = SUMS(0.0);
    load_w(first_column, k, k_end);
    load_x(first_row, k, k_end);
    for (; k < k_end; k += DEPTH) {
        keep_slices();
        barrier();
        if (k + DEPTH < k_end) {
            load_w(first_column, k + DEPTH, k_end);
            load_x(first_row, k + DEPTH, k_end);
        }
        multiply_slices();
        barrier();
    }
}

// Brings sums of 16 rows to shared memory, those of SPLITS subgroups apart.
void share_sums(uint i)
{
    [[unroll]] for (uint j = 0u; j < OWN; j++)
        coopMatStore(sums[i][j], slices,
                     gl_SubgroupID % SPLITS * (16u * PITCH) + (gl_SubgroupID / SPLITS * OWN + j) * 4u, PITCH,
                     gl_CooperativeMatrixLayoutRowMajor);
    barrier();
}

void store(uint row, uint column, vec4 values)
{
    [[unroll]] for (uint c = 0u; c < 4u; c++)
        if (row < args.rows && column + c < args.columns)
            result.d[args.out_offset + row * args.out_row + (column + c) * args.out_column] =
                PASTE(S_, IN)(PASTE(TO_, IN)(values[c]));
}

// Whether this workgroup is the last one of a tile, behind its writes: then all parts are in memory.
bool is_last(uint tile)
{
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationIndex == 0u)
        num_done = atomicAdd(counters.d[tile * COUNTER_PITCH], 1u) + 1u;
    barrier();
    memoryBarrierBuffer();
    return num_done == args.parts;
}

#define AT_ONCE 4u // parts that are on their way together

vec4 add_parts(uint tile, uint of)
{
    const uint size = uint(ROWS) * ROW_VECTORS;
    vec4 total = vec4(0);
    for (uint p = 0u; p < args.parts; p += AT_ONCE) {
        vec4 loaded[AT_ONCE];
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++)
            loaded[i] = parts.d[(tile * args.parts + min(p + i, args.parts - 1u)) * size + of];
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++)
            if (p + i < args.parts)
                total += loaded[i];
    }
    return total;
}

void main()
{
    uint across = (args.columns + COLUMNS - 1u) / COLUMNS, tiles = (args.rows + ROWS - 1u) / ROWS * across;
    uint number = group_number(), tile = number % tiles, part = number / tiles;
    uint first_row = tile / across * ROWS, first_column = tile % across * COLUMNS;
    if (part >= args.parts)
        return;
    multiply(first_row, first_column, part * args.part_terms, min((part + 1u) * args.part_terms, args.terms));
    [[unroll]] for (uint n = 0u; n < DOWN; n++) {
        share_sums(n);
        [[unroll]] for (uint i = gl_LocalInvocationIndex; i < 16u * ROW_VECTORS; i += GROUP) {
            uint at = i / ROW_VECTORS * PITCH + i % ROW_VECTORS, row = first_row + n * 16u + i / ROW_VECTORS;
            vec4 values = uintBitsToFloat(slices[at]);
            [[unroll]] for (uint p = 1u; p < SPLITS; p++)
                values += uintBitsToFloat(slices[p * (16u * PITCH) + at]);
            if (args.parts == 1u)
                store(row, first_column + i % ROW_VECTORS * 4u, values);
            else if (row < args.rows)
                parts.d[(tile * args.parts + part) * (ROWS * ROW_VECTORS) + n * 16u * ROW_VECTORS + i] = values;
        }
        barrier(); // the sums are read
    }
    if (args.parts == 1u || !is_last(tile))
        return;
    for (uint i = gl_LocalInvocationIndex; i < ROWS * ROW_VECTORS; i += GROUP)
        if (first_row + i / ROW_VECTORS < args.rows)
            store(first_row + i / ROW_VECTORS, first_column + i % ROW_VECTORS * 4u, add_parts(tile, i));
    if (gl_LocalInvocationIndex == 0u)
        counters.d[tile * COUNTER_PITCH] = 0u;
}

#version 460
// SPDX-License-Identifier: MIT
// Many rows of x times the transposed matrix w of halves (FLOATS: f16 or bf16; ELEMENT: their type in a
// matrix) on cooperative matrices (of 16x16x16, sums in f32). x lies in two floats of 16
// bits each (quant_halves_x.comp), both of which are multiplied by what is loaded of w: products are
// those of f32 but for what two such floats leave of an element.
//
// A workgroup of HIGH x WIDE subgroups computes a tile of ROWS x COLUMNS, each of them a part, from
// slices of DEPTH terms in shared memory. The next slice travels to registers meanwhile. Workgroups
// along z take a part of the terms each.
//
// A sum that is NaN or infinite is computed again in f32: the second float of an infinity is
// NaN.
#include "program/types.glsl"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef IS_BF16
#extension GL_EXT_bfloat16 : require
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#define PIECES 2
#define DEPTH 32
#define GROUP (HIGH * WIDE * 32)
layout(local_size_x = GROUP) in; // subgroups of 32
layout(std430, binding = 0) readonly buffer Pieces { uvec4 d[]; } pieces;
layout(std430, binding = 1) readonly buffer Weights { uvec4 d[]; } weights;
layout(std430, binding = 2) writeonly buffer Out { float d[]; } result;
layout(std430, binding = 3) readonly buffer X { float d[]; } x_source;
layout(push_constant) uniform Args {
    uint rows, columns, terms; // terms: a multiple of 8
    uint part;                 // terms of a workgroup's part, a multiple of DEPTH; or all
    uint x_offset, w_offset, out_offset; // of w: eights
    uint scales_at; // of rows, in pieces
} args;

#define OWN_ROWS (ROWS / HIGH) // of a subgroup
#define OWN_COLUMNS (COLUMNS / WIDE)
#define DOWN (OWN_ROWS / 16) // its matrices
#define ACROSS (OWN_COLUMNS / 16)
#define LINE (DEPTH / 8)                    // eights of a row of a slice
#define PITCH (LINE + 1)                    // one more spreads them over the banks
#define X_LOADS (ROWS * LINE * PIECES / GROUP) // of an invocation, for a slice
#define W_LOADS (COLUMNS * LINE / GROUP)
#define X_SLICE (ROWS * PITCH * PIECES)
#define SLICE (X_SLICE + COLUMNS * PITCH) // of both operands
#define SUMS_PITCH (OWN_COLUMNS / 4 + 1)
#define SUMS_SIZE (HIGH * WIDE * 16 * SUMS_PITCH)
#if SLICE > SUMS_SIZE
#define SHARED SLICE
#else
#define SHARED SUMS_SIZE
#endif
shared uvec4 slices[SHARED]; // of a slice, and then sixteen rows of each subgroup
uvec4 next_x[X_LOADS], next_w[W_LOADS];

#define MATRIX_A coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
SUMS sums[DOWN][ACROSS];

uint x_from[X_LOADS], w_from[W_LOADS]; // where the loads of an invocation begin, in eights

// Rows and columns behind the end: the last one again, whose sums nobody stores.
void begin_slices(uint row, uint column)
{
    uint parts = args.terms / 8u;
    [[unroll]] for (uint i = 0u; i < X_LOADS; i++) {
        uint at = gl_LocalInvocationIndex + i * GROUP, line = at / LINE;
        x_from[i] = (min(row + line % ROWS, args.rows - 1u) + line / ROWS * args.rows) * parts + at % LINE;
    }
    [[unroll]] for (uint i = 0u; i < W_LOADS; i++) {
        uint at = gl_LocalInvocationIndex + i * GROUP;
        w_from[i] = args.w_offset + min(column + at / LINE, args.columns - 1u) * parts + at % LINE;
    }
}

// Terms behind the end: zeros.
void load_slices(uint k, uint k_end)
{
    bool is_inside = k + DEPTH <= k_end || k + gl_LocalInvocationIndex % LINE * 8u < k_end;
    [[unroll]] for (uint i = 0u; i < X_LOADS; i++) {
        next_x[i] = uvec4(0u);
        if (is_inside)
            next_x[i] = pieces.d[x_from[i] + k / 8u];
    }
    [[unroll]] for (uint i = 0u; i < W_LOADS; i++) {
        next_w[i] = uvec4(0u);
        if (is_inside)
            next_w[i] = weights.d[w_from[i] + k / 8u];
    }
}

void keep_slices()
{
    [[unroll]] for (uint i = 0u; i < X_LOADS; i++) {
        uint at = gl_LocalInvocationIndex + i * GROUP;
        slices[at / LINE * PITCH + at % LINE] = next_x[i];
    }
    [[unroll]] for (uint i = 0u; i < W_LOADS; i++) {
        uint at = gl_LocalInvocationIndex + i * GROUP;
        slices[X_SLICE + at / LINE * PITCH + at % LINE] = next_w[i];
    }
}

void multiply_slices(uint row, uint column)
{
    [[unroll]] for (uint k = 0u; k < LINE; k += 2u) {
        MATRIX_B w[ACROSS];
        [[unroll]] for (uint j = 0u; j < ACROSS; j++)
            coopMatLoad(w[j], slices, X_SLICE + (column + j * 16u) * PITCH + k, PITCH,
                        gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint i = 0u; i < DOWN; i++)
            [[unroll]] for (uint piece = 0u; piece < PIECES; piece++) {
                MATRIX_A x;
                coopMatLoad(x, slices, (piece * ROWS + row + i * 16u) * PITCH + k, PITCH,
                            gl_CooperativeMatrixLayoutRowMajor);
                [[unroll]] for (uint j = 0u; j < ACROSS; j++)
                    sums[i][j] = coopMatMulAdd(x, w[j], sums[i][j]);
            }
    }
}

vec4 four_of_f16(uint first, uint second)
{
    return vec4(unpackHalf2x16(first), unpackHalf2x16(second));
}
vec4 four_of_bf16(uint first, uint second)
{
    return uintBitsToFloat(uvec4(first << 16, first & 0xffff0000u, second << 16, second & 0xffff0000u));
}

float exact_sum(uint row, uint column, uint k, uint k_end)
{
    float sum = 0.0;
    for (; k < k_end; k += 8u) {
        uint at = args.x_offset + row * args.terms + k;
        uvec4 w = weights.d[args.w_offset + (column * args.terms + k) / 8u];
        vec4 low = PASTE(four_of_, FLOATS)(w.x, w.y), high = PASTE(four_of_, FLOATS)(w.z, w.w);
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            sum += x_source.d[at + i] * low[i] + x_source.d[at + 4u + i] * high[i];
    }
    return sum;
}

void store(uint row, uint column, float sum, uint k, uint k_end)
{
    if ((floatBitsToUint(sum) & 0x7f800000u) == 0x7f800000u)
        sum = exact_sum(row, column, k, k_end);
#ifndef IS_BF16
    else
        sum *= uintBitsToFloat(pieces.d[args.scales_at + row / 4u][row % 4u]);
#endif
    result.d[args.out_offset + (gl_WorkGroupID.z * args.rows + row) * args.columns + column] = sum;
}

// Sixteen rows of each subgroup at a time go through shared memory, so that adjacent invocations
// store adjacent elements.
void store_sums(uint first_row, uint first_column, uint k, uint k_end)
{
    uint own = gl_SubgroupID * 16u * SUMS_PITCH;
    [[unroll]] for (uint i = 0u; i < DOWN; i++) {
        barrier();
        [[unroll]] for (uint j = 0u; j < ACROSS; j++)
            coopMatStore(sums[i][j], slices, own + j * 4u, SUMS_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        for (uint at = gl_SubgroupInvocationID; at < 16u * OWN_COLUMNS; at += 32u) {
            uint y = at / OWN_COLUMNS, x = at % OWN_COLUMNS;
            uint row = first_row + i * 16u + y, column = first_column + x;
            if (row < args.rows && column < args.columns)
                store(row, column, uintBitsToFloat(slices[own + y * SUMS_PITCH + x / 4u][x % 4u]), k, k_end);
        }
    }
}

#define PANEL 8u // rows of tiles whose workgroups run together, and read the same part of w

void main()
{
    uint width = (args.columns + COLUMNS - 1u) / COLUMNS, height = (args.rows + ROWS - 1u) / ROWS;
    uint first = gl_WorkGroupID.x / (PANEL * width) * PANEL, rest = gl_WorkGroupID.x % (PANEL * width);
    uint high = min(PANEL, height - first);
    uint row = (first + rest % high) * ROWS, column = rest / high * COLUMNS;
    uint own_row = gl_SubgroupID / WIDE * OWN_ROWS, own_column = gl_SubgroupID % WIDE * OWN_COLUMNS;
    uint k_begin = gl_WorkGroupID.z * args.part, k_end = min(k_begin + args.part, args.terms);
    [[unroll]] for (uint i = 0u; i < DOWN; i++)
        [[unroll]] for (uint j = 0u; j < ACROSS; j++)
            sums[i][j] = SUMS(0.0);
    begin_slices(row, column);
    load_slices(k_begin, k_end);
    for (uint k = k_begin; k < k_end; k += DEPTH) {
        keep_slices();
        barrier();
        if (k + DEPTH < k_end)
            load_slices(k + DEPTH, k_end);
        multiply_slices(own_row, own_column);
        barrier();
    }
    store_sums(row + own_row, column + own_column, k_begin, k_end);
}

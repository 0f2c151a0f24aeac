#version 460
// SPDX-License-Identifier: MIT
// Batched products of matrices of 16-bit floats on cooperative matrices (of 16x16x16,
// sums in f32). IN: dtype; ELEMENT: its type in a matrix. Each operand is contiguous along one of its
// two axes; that axis, the other stride and the offset are multiples of eight elements, so that
// memory is read sixteen bytes at a time. The result may have any extents.
//
// A workgroup of four subgroups computes a tile of TILE x TILE, each of them a quarter, from slices
// of DEPTH terms in shared memory. The next slice travels to registers meanwhile.
//
// Without STAGED, the result is stored sixteen bytes at a time: its rows begin at multiples of eight
// elements, and its extents are multiples of a matrix's. With it a loop stores by element, as OUT.
// With OF_SPLIT f32 is stored, sixteen bytes at a time: sums of one split of the terms.
#include "program/types.glsl"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef IS_BF16
#extension GL_EXT_bfloat16 : require
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#ifndef DEPTH
#define DEPTH 32
#endif
layout(local_size_x = 128) in; // four subgroups of 32
layout(constant_id = 0) const uint NUM_BATCH = 0; // axes of batches
layout(constant_id = 1) const uint A_ALONG_K = 1; // 1: a is contiguous along the terms; 0: from row to row
layout(constant_id = 2) const uint B_ALONG_K = 0;
layout(constant_id = 3) const uint STEP_X = 0; // as in matmul.comp
layout(constant_id = 4) const uint STEP_Y = 0;
layout(constant_id = 5) const uint STEP_Z = 0;

layout(std430, binding = 0) readonly buffer A { uvec4 d[]; } a_source;
layout(std430, binding = 1) readonly buffer B { uvec4 d[]; } b_source;
#ifndef OUT
#define OUT IN
#endif
#ifdef STAGED
layout(std430, binding = 2) writeonly buffer C { PASTE(S_, OUT) d[]; } result;
#elif defined OF_SPLIT
layout(std430, binding = 2) writeonly buffer C { vec4 d[]; } result;
#else
layout(std430, binding = 2) writeonly buffer C { uvec4 d[]; } result;
#endif
layout(push_constant) uniform Args {
    uint rows, columns, terms, num_batches;
    uint a_offset, b_offset, out_offset;
    uint a_row, a_k, b_k, b_column; // strides
    uint extent[6];
    uint a_stride[6];
    uint b_stride[6];
} args;

uint a_start, b_start, out_start;

#define GROUP 128u
#define QUARTER (TILE / 2)               // rows and columns of a subgroup
#define PARTS (QUARTER / 16)             // matrices along each
#define LOADS (TILE * DEPTH / 8 / GROUP) // of an invocation, for a slice of an operand
// Lines of eight elements of a slice: along the terms, or along the tile. One more spreads them over
// the banks.
#define ALONG_K (DEPTH / 8 + 1)
#define ALONG_TILE (TILE / 8 + 1)
#define SLICE (TILE * ALONG_K) // the larger of the two shapes
#define PITCH (QUARTER / 4 + 1) // vectors of a row of the result in shared memory

shared uvec4 slices[2 * SLICE]; // of both operands; and then sixteen rows of each subgroup
uvec4 next_a[LOADS], next_b[LOADS];

// The line and the position in it of load `part` of this invocation.
uvec2 loaded_position(uint part, uint along_k)
{
    uint at = gl_LocalInvocationIndex + part * GROUP;
    uint line = along_k != 0u ? DEPTH / 8u : TILE / 8;
    return uvec2(at / line, at % line);
}

// Lines of a slice whose first element is element `first` of the operand: the lines are `pitch`
// elements apart. num_lines, num_elements: what is left of the operand from there on.
#define LOAD_LINES(next, source, along_k, first, pitch, num_lines, num_elements)                   \
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {                                                 \
        uvec2 at = loaded_position(i, along_k);                                                    \
        next[i] = uvec4(0u);                                                                       \
        if (at.x < (num_lines) && at.y * 8u < (num_elements))                                      \
            next[i] = source.d[((first) + at.x * (pitch)) / 8u + at.y];                            \
    }

void load_slices(uint row, uint column, uint k, uint k_end, bool is_inside)
{
    uint a = a_start + row * args.a_row + k * args.a_k, a_pitch = args.a_row;
    if (A_ALONG_K == 0u)
        a_pitch = args.a_k;
    uint b = b_start + k * args.b_k + column * args.b_column, b_pitch = args.b_column;
    if (B_ALONG_K == 0u)
        b_pitch = args.b_k;
    if (is_inside) {
        LOAD_LINES(next_a, a_source, A_ALONG_K, a, a_pitch, TILE + DEPTH, TILE + DEPTH)
        LOAD_LINES(next_b, b_source, B_ALONG_K, b, b_pitch, TILE + DEPTH, TILE + DEPTH)
        return;
    }
    uint rows = args.rows - row, columns = args.columns - column, terms = k_end - k;
    LOAD_LINES(next_a, a_source, A_ALONG_K, a, a_pitch, A_ALONG_K != 0u ? rows : terms,
               A_ALONG_K != 0u ? terms : rows)
    LOAD_LINES(next_b, b_source, B_ALONG_K, b, b_pitch, B_ALONG_K != 0u ? columns : terms,
               B_ALONG_K != 0u ? terms : columns)
}

void keep_slices()
{
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uvec2 a = loaded_position(i, A_ALONG_K);
        slices[a.x * (A_ALONG_K != 0u ? ALONG_K : ALONG_TILE) + a.y] = next_a[i];
    }
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uvec2 b = loaded_position(i, B_ALONG_K);
        slices[SLICE + b.x * (B_ALONG_K != 0u ? ALONG_K : ALONG_TILE) + b.y] = next_b[i];
    }
}

#define MATRIX_A coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

// The rows and columns of this subgroup in the tile.
uvec2 own_quarter()
{
    return uvec2(gl_SubgroupID / 2u, gl_SubgroupID % 2u) * QUARTER;
}

SUMS sums[PARTS][PARTS];

void multiply_slices(uint row, uint column)
{
    [[unroll]] for (uint k = 0u; k < DEPTH; k += 16u) {
        MATRIX_A a[PARTS];
        [[unroll]] for (uint i = 0u; i < PARTS; i++) {
            uint at = row + i * 16u;
            if (A_ALONG_K != 0u)
                coopMatLoad(a[i], slices, at * ALONG_K + k / 8u, ALONG_K,
                            gl_CooperativeMatrixLayoutRowMajor);
            else
                coopMatLoad(a[i], slices, k * ALONG_TILE + at / 8u, ALONG_TILE,
                            gl_CooperativeMatrixLayoutColumnMajor);
        }
        [[unroll]] for (uint j = 0u; j < PARTS; j++) {
            MATRIX_B b;
            uint at = column + j * 16u;
            if (B_ALONG_K != 0u)
                coopMatLoad(b, slices, SLICE + at * ALONG_K + k / 8u, ALONG_K,
                            gl_CooperativeMatrixLayoutColumnMajor);
            else
                coopMatLoad(b, slices, SLICE + k * ALONG_TILE + at / 8u, ALONG_TILE,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0u; i < PARTS; i++)
                sums[i][j] = coopMatMulAdd(a[i], b, sums[i][j]);
        }
    }
}

#ifdef STAGED
void store(uint row, uint column, float value)
{
    result.d[out_start + row * args.columns + column] =
        PASTE(S_, OUT)(PASTE(TO_, OUT)(value));
}

// Sixteen rows of each subgroup at a time go through shared memory, so that adjacent
// invocations store adjacent elements.
void store_quarter(uint first_row, uint first_column)
{
    uint own = gl_SubgroupID * 16u * PITCH;
    [[unroll]] for (uint i = 0u; i < PARTS; i++) {
        [[unroll]] for (uint j = 0u; j < PARTS; j++)
            coopMatStore(sums[i][j], slices, own + j * 4u, PITCH,
                         gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        for (uint at = gl_SubgroupInvocationID; at < 16u * QUARTER; at += 32u) {
            uint y = at / QUARTER, x = at % QUARTER;
            uint row = first_row + i * 16u + y, column = first_column + x;
            if (row < args.rows && column < args.columns)
                store(row, column, uintBitsToFloat(slices[own + y * PITCH + x / 4u][x % 4u]));
        }
        barrier();
    }
}
#else
#ifdef OF_SPLIT
#define RESULT SUMS
#define EACH 4u // elements of a vector
#else
#define RESULT coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define EACH 8u
#endif
#define LINE (QUARTER / EACH)
// Sixteen rows of each subgroup at a time go through shared memory, so that adjacent
// invocations store adjacent vectors.
void store_quarter(uint first_row, uint first_column)
{
    uint own = gl_SubgroupID * 16u * (LINE + 1u);
    [[unroll]] for (uint i = 0u; i < PARTS; i++) {
        [[unroll]] for (uint j = 0u; j < PARTS; j++) {
#if defined IS_BF16 && !defined OF_SPLIT // NVIDIA's conversion truncates: its operand is rounded first
            [[unroll]] for (uint e = 0u; e < sums[i][j].length(); e++)
                sums[i][j][e] = FROM_bf16(TO_bf16(sums[i][j][e]));
#endif
            coopMatStore(RESULT(sums[i][j]), slices, own + j * (16u / EACH), LINE + 1u,
                         gl_CooperativeMatrixLayoutRowMajor);
        }
        subgroupBarrier();
        [[unroll]] for (uint k = 0u; k < 16u * LINE / 32u; k++) {
            uint at = gl_SubgroupInvocationID + k * 32u, y = at / LINE, x = at % LINE;
            uint row = first_row + i * 16u + y, column = first_column + x * EACH;
            uvec4 value = slices[own + y * (LINE + 1u) + x];
            if (row < args.rows && column < args.columns)
#ifdef OF_SPLIT
                result.d[(out_start + row * args.columns + column) / EACH] = uintBitsToFloat(value);
#else
                result.d[(out_start + row * args.columns + column) / EACH] = value;
#endif
        }
        subgroupBarrier();
    }
}
#endif

void multiply(uint tile_row, uint tile_column, uint rows, uint columns, uint k_begin, uint k_end)
{
    uint row = tile_row * TILE, column = tile_column * TILE;
    bool is_inside = row + TILE <= rows && column + TILE <= columns;
    uvec2 own = own_quarter();
    [[unroll]] for (uint i = 0u; i < PARTS; i++)
        [[unroll]] for (uint j = 0u; j < PARTS; j++)
            sums[i][j] = SUMS(0.0);
    load_slices(row, column, k_begin, k_end, is_inside && k_begin + DEPTH <= k_end);
    [[dont_unroll]] for (uint k = k_begin; k < k_end; k += DEPTH) {
        keep_slices();
        barrier();
        if (k + DEPTH < k_end)
            load_slices(row, column, k + DEPTH, k_end, is_inside && k + 2u * DEPTH <= k_end);
        multiply_slices(own.x, own.y);
        barrier();
    }
    store_quarter(row + own.x, column + own.y);
}
#define HAS_PARTS
#define PANEL 8u
#include "matmul_grid.glsl"

#version 460
// SPDX-License-Identifier: MIT
// Batched products of matrices of 16-bit floats on cooperative matrices, as matrices of a workgroup
// (VK_NV_cooperative_matrix2), with sums in f32. IN: dtype; ELEMENT: its type in a matrix;
// TILE_ROWS, TILE_COLUMNS: the result's tile of a workgroup, which takes slices of DEPTH terms.
//
// Each operand is contiguous along one of its two axes; the other stride, the extents and the
// offsets may be any numbers: loads give zeros behind an operand's edge, and nothing is stored
// there. With ALIGNED, strides and offsets are multiples of eight elements, so that memory is
// moved sixteen bytes at a time, and whole slices are loaded without a look at the edges.
#include "program/types.glsl"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix2 : require
#ifdef IS_BF16
#extension GL_EXT_bfloat16 : require
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
layout(local_size_x = 128) in;
layout(constant_id = 0) const uint NUM_BATCH = 0; // axes of batches
layout(constant_id = 1) const uint A_ALONG_K = 1; // 1: a is contiguous along the terms; 0: from row to row
layout(constant_id = 2) const uint B_ALONG_K = 0;
layout(constant_id = 3) const uint STEP_X = 0; // as in matmul.comp
layout(constant_id = 4) const uint STEP_Y = 0;
layout(constant_id = 5) const uint STEP_Z = 0;

#ifdef ALIGNED
#define HELD uvec4
#define EACH 8u // elements of a HELD
#define EVEN(x) ((x) & ~7u) // tells the driver's compiler that x is a multiple of 8
#else
#define HELD ELEMENT
#define EACH 1u
#define EVEN(x) (x)
#endif
layout(std430, binding = 0) readonly buffer A { HELD d[]; } a_source;
layout(std430, binding = 1) readonly buffer B { HELD d[]; } b_source;
layout(std430, binding = 2) writeonly buffer C { HELD d[]; } result;
layout(push_constant) uniform Args {
    uint rows, columns, terms, num_batches;
    uint a_offset, b_offset, out_offset;
    uint a_row, a_k, b_k, b_column; // strides
    uint extent[6];
    uint a_stride[6];
    uint b_stride[6];
} args;

uint a_start, b_start, out_start;

#define MATRIX_A coopmat<ELEMENT, gl_ScopeWorkgroup, TILE_ROWS, DEPTH, gl_MatrixUseA>
#define MATRIX_B coopmat<ELEMENT, gl_ScopeWorkgroup, DEPTH, TILE_COLUMNS, gl_MatrixUseB>
#define OF_TILE(type)                                                                              \
    coopmat<type, gl_ScopeWorkgroup, TILE_ROWS, TILE_COLUMNS, gl_MatrixUseAccumulator>

// Layouts of the axes as they lie in memory, the contiguous one last. CLAMPED: zeros behind
// the edges.
#define CLAMPED gl_CooperativeMatrixClampModeConstantNV
#define LAYOUT(name, mode, extent_0, extent_1, pitch)                                              \
    tensorLayoutNV<2, mode> name = createTensorLayoutNV(2, mode);                                  \
    name = setTensorLayoutDimensionNV(name, extent_0, extent_1);                                   \
    name = setTensorLayoutStrideNV(name, pitch, 1);
#define TURNED createTensorViewNV(2, false, 1, 0)

// A slice of the operand, `first` of the axis that is not the terms' and `k`.
#define LOAD_A(into, lies, first, k)                                                               \
    if (A_ALONG_K != 0u)                                                                           \
        coopMatLoadTensorNV(into, a_source.d, a_start / EACH,                                      \
                            sliceTensorLayoutNV(lies, first, TILE_ROWS, k, DEPTH));                \
    else                                                                                           \
        coopMatLoadTensorNV(into, a_source.d, a_start / EACH,                                      \
                            sliceTensorLayoutNV(lies, k, DEPTH, first, TILE_ROWS), TURNED);
#define LOAD_B(into, lies, first, k)                                                               \
    if (B_ALONG_K != 0u)                                                                           \
        coopMatLoadTensorNV(into, b_source.d, b_start / EACH,                                      \
                            sliceTensorLayoutNV(lies, first, TILE_COLUMNS, k, DEPTH), TURNED);     \
    else                                                                                           \
        coopMatLoadTensorNV(into, b_source.d, b_start / EACH,                                      \
                            sliceTensorLayoutNV(lies, k, DEPTH, first, TILE_COLUMNS));

#ifdef IS_BF16 // NVIDIA's conversion truncates: its operand is rounded first
float rounded(const in uint row, const in uint column, const in float value)
{
    return FROM_bf16(TO_bf16(value));
}
#endif

void multiply(uint tile_row, uint tile_column, uint rows, uint columns, uint k_begin, uint k_end)
{
    uint row = tile_row * TILE_ROWS, column = tile_column * TILE_COLUMNS, k = k_begin;
    uint a_lines = A_ALONG_K != 0u ? rows : k_end, a_line = A_ALONG_K != 0u ? k_end : rows;
    uint b_lines = B_ALONG_K != 0u ? columns : k_end, b_line = B_ALONG_K != 0u ? k_end : columns;
    uint a_pitch = EVEN(A_ALONG_K != 0u ? args.a_row : args.a_k);
    uint b_pitch = EVEN(B_ALONG_K != 0u ? args.b_column : args.b_k);
    LAYOUT(a_lies, CLAMPED, a_lines, a_line, a_pitch)
    LAYOUT(b_lies, CLAMPED, b_lines, b_line, b_pitch)
    OF_TILE(float) sum = OF_TILE(float)(0.0);
#ifdef ALIGNED
    LAYOUT(a_inside, gl_CooperativeMatrixClampModeUndefinedNV, a_lines, a_line, a_pitch)
    LAYOUT(b_inside, gl_CooperativeMatrixClampModeUndefinedNV, b_lines, b_line, b_pitch)
    if (row + TILE_ROWS <= rows && column + TILE_COLUMNS <= columns) {
        [[dont_unroll]] for (; k + DEPTH <= k_end; k += DEPTH) {
            MATRIX_A a;
            MATRIX_B b;
            LOAD_A(a, a_inside, row, k)
            LOAD_B(b, b_inside, column, k)
            sum = coopMatMulAdd(a, b, sum);
        }
    }
#endif
    [[dont_unroll]] for (; k < k_end; k += DEPTH) {
        MATRIX_A a;
        MATRIX_B b;
        LOAD_A(a, a_lies, row, k)
        LOAD_B(b, b_lies, column, k)
        sum = coopMatMulAdd(a, b, sum);
    }
#ifdef IS_BF16
    coopMatPerElementNV(sum, sum, rounded);
#endif
    LAYOUT(out_lies, CLAMPED, rows, columns, EVEN(columns))
    coopMatStoreTensorNV(OF_TILE(ELEMENT)(sum), result.d, out_start / EACH,
                         sliceTensorLayoutNV(out_lies, row, TILE_ROWS, column, TILE_COLUMNS));
}
#define PANEL 8u
#include "matmul_grid.glsl"

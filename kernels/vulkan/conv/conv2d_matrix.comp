#version 460
// SPDX-License-Identifier: MIT
// Convolutions of 16-bit floats and their two transposes (conv2d.glsl) on cooperative matrices
// of 16x16x16 with sums in f32. IN: dtype; ELEMENT: its type in a matrix.
// Channels of a group, of both sides, and the offsets are multiples of eight, so that memory
// is read sixteen bytes at a time.
//
// A workgroup of DOWN x ACROSS subgroups computes a tile of ROWS x COLUMNS from slices of DEPTH
// terms in shared memory. The next slice travels to registers meanwhile.
//
// The result is stored eight elements at a time; with BY_ELEMENT one at a time: a program
// takes it; with OF_SPLIT as f32: sums of splits of the terms.
#include "program/types.glsl"
#include "program/divide.glsl"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef IS_BF16
#extension GL_EXT_bfloat16 : require
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#define GROUP (32u * DOWN * ACROSS)
layout(local_size_x = 32 * DOWN * ACROSS) in;

layout(std430, binding = 0) readonly buffer A { uvec4 d[]; } pixels;
layout(std430, binding = 1) readonly buffer B { uvec4 d[]; } others;
layout(std430, binding = 2) readonly buffer Bias { PASTE(S_, IN) d[]; } bias;
#ifdef OF_SPLIT
layout(std430, binding = 3) writeonly buffer C { vec4 d[]; } result;
#elif defined BY_ELEMENT
layout(std430, binding = 3) writeonly buffer C { PASTE(S_, IN) d[]; } result;
#else
layout(std430, binding = 3) writeonly buffer C { uvec4 d[]; } result;
#endif

// Element `at` of eight.
float number(uvec4 vector, uint at)
{
    return PASTE(FROM_, IN)((vector[at % 8u / 2u] >> (at % 2u * 16u)) & 0xffffu);
}
float of_pixels(uint at) { return number(pixels.d[at / 8u], at); }
float of_others(uint at) { return number(others.d[at / 8u], at); }
float of_bias(uint at) { return PASTE(FROM_, IN)(PASTE(W_, IN)(bias.d[at])); }
#define SUMS_ANEW
#include "conv2d.glsl"

#define VECTORS (DEPTH / 8u) // of a line along the terms
#define A_LOADS ((ROWS * VECTORS + GROUP - 1u) / GROUP) // of an invocation, for a slice
#define B_LOADS ((COLUMNS * VECTORS + GROUP - 1u) / GROUP)
#define OWN_ROWS (ROWS / DOWN) // of a subgroup
#define OWN_COLUMNS (COLUMNS / ACROSS)
#define A_PARTS (OWN_ROWS / 16) // matrices along each
#define B_PARTS (OWN_COLUMNS / 16)
// Vectors of a line of a slice: along the terms, or along the tile, which is at least as long.
// One more spreads them over the banks.
#define ALONG_K (VECTORS + 1u)
#define ALONG_A (ROWS / 8 + 1)
#define ALONG_B (COLUMNS / 8 + 1)
#define SLICE_A (ROWS * ALONG_K)
#define SLICE (SLICE_A + COLUMNS * ALONG_K) // of both operands
#define PITCH (OWN_COLUMNS / 4 + 1) // vectors of a row of sums
#define ALL_SUMS (DOWN * ACROSS * 16 * PITCH)
#define SHARED (SLICE > ALL_SUMS ? SLICE : ALL_SUMS)

shared uvec4 slices[SHARED]; // and then sixteen rows of sums of each subgroup
uvec4 next_a[A_LOADS], next_b[B_LOADS];
ivec2 origin[A_LOADS]; // of begin_row()
int position[A_LOADS];

bool a_along_k() { return OP != WEIGHT; }
bool b_along_k() { return OP == FORWARD; }

// Line and vector of load `i` of this invocation, of an operand with `width` lines along the terms.
uvec2 loaded(uint i, bool along_k, uint width)
{
    uint at = gl_LocalInvocationIndex + i * GROUP, line = along_k ? VECTORS : width / 8u;
    return uvec2(at / line, at % line);
}

void load_rows(uint k)
{
    uint term = k + loaded(0u, true, ROWS).y * 8u, channel;
    uvec2 tap;
    find_tap(k, term, tap, channel);
    ivec2 moved = ivec2(tap) * read_move;
    int by = moved.x * int(source.y) + moved.y;
    uint from = (args.pixels_offset + group * inner + channel) / 8u;
    [[unroll]] for (uint i = 0u; i < A_LOADS; i++) {
        uvec2 at = uvec2(origin[i] + moved);
        next_a[i] = uvec4(0u);
        if (at.x < source.x && at.y < source.y && term < k_end)
            next_a[i] = pixels.d[from + uint(position[i] + by) * (pitch / 8u)];
    }
}

void load_filters(uint column, uint k)
{
    [[unroll]] for (uint i = 0u; i < B_LOADS; i++) {
        uvec2 at = loaded(i, b_along_k(), COLUMNS), tap;
        uint o = column + at.x, c = column + at.y * 8u, term = k + at.x, channel;
        next_b[i] = uvec4(0u);
        if (b_along_k()) {
            uint from = args.others_offset + (group * columns + o) * terms + k + at.y * 8u;
            if (o < columns && k + at.y * 8u < k_end)
                next_b[i] = others.d[from / 8u];
        } else if (term < k_end && c < columns) {
            find_tap(k, term, tap, channel);
            next_b[i] = others.d[filter_element(channel, tap, c) / 8u];
        }
    }
}

// For WEIGHT: loads the gradient's pixels from k on, and those of x that they read.
void load_gradient(uint row, uint k)
{
    [[unroll]] for (uint i = 0u; i < A_LOADS; i++) {
        uvec2 at = loaded(i, false, ROWS);
        uint from = ((k + at.x) * args.groups + group) * rows + row + at.y * 8u;
        next_a[i] = uvec4(0u);
        if (k + at.x < k_end && row + at.y * 8u < rows)
            next_a[i] = others.d[(args.others_offset + from) / 8u];
    }
}

void load_pixels(uint column, uint k)
{
    uvec2 tap;
    uint channel, from;
    column += loaded(0u, false, COLUMNS).y * 8u; // equal for all loads
    find_tap(column, column, tap, channel);
    channel += args.pixels_offset + group * inner;
    [[unroll]] for (uint i = 0u; i < B_LOADS; i++) {
        uint term = k + loaded(i, false, COLUMNS).x;
        next_b[i] = uvec4(0u);
        if (read_pixel(term, tap, from) && term < k_end && column < columns)
            next_b[i] = pixels.d[(channel + from * pitch) / 8u];
    }
}

void load_slice(uint row, uint column, uint k)
{
    if (OP == WEIGHT) {
        load_gradient(row, k);
        load_pixels(column, k);
    } else {
        load_rows(k);
        load_filters(column, k);
    }
}

void keep_slice()
{
    [[unroll]] for (uint i = 0u; i < A_LOADS; i++) {
        uvec2 at = loaded(i, a_along_k(), ROWS);
        if (ROWS * VECTORS % GROUP == 0u || gl_LocalInvocationIndex + i * GROUP < ROWS * VECTORS)
            slices[at.x * (a_along_k() ? ALONG_K : ALONG_A) + at.y] = next_a[i];
    }
    [[unroll]] for (uint i = 0u; i < B_LOADS; i++) {
        uvec2 at = loaded(i, b_along_k(), COLUMNS);
        if (COLUMNS * VECTORS % GROUP == 0u ||
            gl_LocalInvocationIndex + i * GROUP < COLUMNS * VECTORS)
            slices[SLICE_A + at.x * (b_along_k() ? ALONG_K : ALONG_B) + at.y] =
                next_b[i];
    }
}

#define MATRIX_A coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

SUMS sums[A_PARTS][B_PARTS];

void multiply_slice(uint row, uint column)
{
    [[unroll]] for (uint k = 0u; k < DEPTH; k += 16u) {
        MATRIX_A a[A_PARTS];
        [[unroll]] for (uint i = 0u; i < A_PARTS; i++) {
            uint at = row + i * 16u;
            if (a_along_k())
                coopMatLoad(a[i], slices, at * ALONG_K + k / 8u, ALONG_K,
                            gl_CooperativeMatrixLayoutRowMajor);
            else
                coopMatLoad(a[i], slices, k * ALONG_A + at / 8u, ALONG_A,
                            gl_CooperativeMatrixLayoutColumnMajor);
        }
        [[unroll]] for (uint j = 0u; j < B_PARTS; j++) {
            MATRIX_B b;
            uint at = column + j * 16u;
            if (b_along_k())
                coopMatLoad(b, slices, SLICE_A + at * ALONG_K + k / 8u, ALONG_K,
                            gl_CooperativeMatrixLayoutColumnMajor);
            else
                coopMatLoad(b, slices, SLICE_A + k * ALONG_B + at / 8u, ALONG_B,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0u; i < A_PARTS; i++)
                sums[i][j] = coopMatMulAdd(a[i], b, sums[i][j]);
        }
    }
}

// Sums begin at the bias: sixteen rows of it in shared memory.
void begin_sums(uint first_column, uint own_column)
{
    [[unroll]] for (uint i = 0u; i < A_PARTS; i++)
        [[unroll]] for (uint j = 0u; j < B_PARTS; j++)
            sums[i][j] = SUMS(0.0);
    if (HAS_BIAS == 0u || part != 0u)
        return;
    for (uint at = gl_LocalInvocationIndex; at < 4u * COLUMNS; at += GROUP) {
        uint column = first_column + at % (COLUMNS / 4u) * 4u;
        vec4 four = vec4(0.0);
        if (column < columns)
            [[unroll]] for (uint c = 0u; c < 4u; c++)
                four[c] = of_bias(args.bias_offset + group * columns + column + c);
        slices[at] = floatBitsToUint(four);
    }
    barrier();
    [[unroll]] for (uint j = 0u; j < B_PARTS; j++) {
        coopMatLoad(sums[0][j], slices, own_column / 4u + j * 4u, COLUMNS / 4u,
                    gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint i = 1u; i < A_PARTS; i++)
            sums[i][j] = sums[0][j];
    }
    barrier();
}

#if defined OF_SPLIT || defined BY_ELEMENT
#define STORED SUMS
#define EACH 4u // elements of a vector in shared memory
#else
#define STORED coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define EACH 8u
#endif
#define LINE (OWN_COLUMNS / EACH)

// Whether one of a vector's numbers is NaN. Both halves of a word are tested at once: beyond infinity
// the sum sets the half's uppermost bit.
bool has_nan(uvec4 value)
{
    if (EACH == 4u)
        return any(greaterThan(value & 0x7fffffffu, uvec4(0x7f800000u)));
#ifdef IS_BF16
    value = (value & 0x7fff7fffu) + 0x007f007fu;
#else
    value = (value & 0x7fff7fffu) + 0x03ff03ffu;
#endif
    return any(notEqual(value & 0x80008000u, uvec4(0u)));
}

uvec4 with_sums_anew(uvec4 value, uint row, uint column)
{
    [[dont_unroll]] for (uint c = 0u; c < EACH; c++) {
        uint at = c * 4u / EACH, shift = c % 2u * 16u;
        float x = EACH == 4u ? uintBitsToFloat(value[at]) : number(value, c);
        if ((floatBitsToUint(x) & 0x7fffffffu) <= 0x7f800000u || !has_padding(row, column + c))
            continue;
        x = sum_anew(row, column + c);
        if (EACH == 4u)
            value[at] = floatBitsToUint(x);
        else
            value[at] = (value[at] & ~(0xffffu << shift)) | uint(PASTE(TO_, IN)(x)) << shift;
    }
    return value;
}

// Sixteen rows of each subgroup at a time go through shared memory, so that adjacent
// invocations store adjacent elements.
void store_sums(uint first_row, uint first_column)
{
    uint own = gl_SubgroupID * 16u * PITCH;
    [[unroll]] for (uint i = 0u; i < A_PARTS; i++) {
        [[unroll]] for (uint j = 0u; j < B_PARTS; j++) {
#if defined IS_BF16 && !defined OF_SPLIT && !defined BY_ELEMENT
            // NVIDIA's conversion truncates: its operand is rounded first.
            [[unroll]] for (uint e = 0u; e < sums[i][j].length(); e++)
                sums[i][j][e] = FROM_bf16(TO_bf16(sums[i][j][e]));
#endif
            coopMatStore(STORED(sums[i][j]), slices, own + j * (16u / EACH), LINE + 1u,
                         gl_CooperativeMatrixLayoutRowMajor);
        }
        subgroupBarrier();
        for (uint at = gl_SubgroupInvocationID; at < 16u * LINE; at += 32u) {
            uint y = at / LINE, x = at % LINE;
            uint row = first_row + i * 16u + y, column = first_column + x * EACH;
            if (row < rows && column < columns) {
                uvec4 value = slices[own + y * (LINE + 1u) + x];
                if (has_nan(value))
                    value = with_sums_anew(value, row, column);
                uint to = row_start(row) + column;
#if defined OF_SPLIT
                result.d[to / 4u] = uintBitsToFloat(value);
#elif defined BY_ELEMENT
                [[unroll]] for (uint c = 0u; c < 4u; c++)
                    result.d[to + c] =
                        PASTE(S_, IN)(PASTE(TO_, IN)(uintBitsToFloat(value[c])));
#else
                result.d[to / 8u] = value;
#endif
            }
        }
        subgroupBarrier();
    }
}

void main()
{
    begin();
    uint across = (columns + COLUMNS - 1u) / COLUMNS, down = gl_WorkGroupID.x / across;
    uint row = down * ROWS, column = (gl_WorkGroupID.x - down * across) * COLUMNS;
    if (row >= rows || column >= columns)
        return;
    uint own_row = gl_SubgroupID / ACROSS * OWN_ROWS;
    uint own_column = gl_SubgroupID % ACROSS * OWN_COLUMNS;
    if (OP != WEIGHT)
        [[unroll]] for (uint i = 0u; i < A_LOADS; i++)
            begin_row(row + loaded(i, true, ROWS).x, origin[i], position[i]);
    begin_sums(column, own_column);
    if (k_begin < k_end)
        load_slice(row, column, k_begin);
    [[dont_unroll]] for (uint k = k_begin; k < k_end; k += DEPTH) {
        keep_slice();
        barrier();
        if (k + DEPTH < k_end)
            load_slice(row, column, k + DEPTH);
        multiply_slice(own_row, own_column);
        barrier();
    }
    store_sums(row + own_row, column + own_column);
}

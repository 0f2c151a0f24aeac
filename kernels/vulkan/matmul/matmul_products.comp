#version 460
// SPDX-License-Identifier: MIT
// Several products of matrices in one launch, each computed as matmul.comp does: PRODUCTS of them, 2 to
// 6, of one variant of matmul.comp. SHARED_A: with one left operand. It is not in variants.txt:
// vulkan-jit compiles what a plan needs.
//
// Each product has a range of workgroups. So its number is the same in a workgroup, and where it
// decides, a workgroup takes one branch.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint A_ALONG_K = 1;
layout(constant_id = 1) const uint B_ALONG_K = 0;

struct product {
    uint rows, columns, terms;
    uint a_offset, b_offset, out_offset;
    uint a_row, a_k, b_k, b_column; // strides
    uint first_group, tiles_across;
};
layout(std430, binding = 0) readonly buffer Products { product d[]; } products;

#define RESULT_AND_FACTOR(n)                                                                       \
    layout(std430, binding = 1 + 2 * n) writeonly buffer PASTE(C, n) { PASTE(S_, IN) d[]; } PASTE(c, n); \
    layout(std430, binding = 2 + 2 * n) readonly buffer PASTE(B, n) { PASTE(S_, IN) d[]; } PASTE(b, n);
#define LEFT_FACTOR(n)                                                                             \
    layout(std430, binding = 1 + 2 * PRODUCTS + n) readonly buffer PASTE(A, n) { PASTE(S_, IN) d[]; } PASTE(a, n);

#if PRODUCTS == 2
#define EACH(x) x(0) x(1)
#elif PRODUCTS == 3
#define EACH(x) x(0) x(1) x(2)
#elif PRODUCTS == 4
#define EACH(x) x(0) x(1) x(2) x(3)
#elif PRODUCTS == 5
#define EACH(x) x(0) x(1) x(2) x(3) x(4)
#else
#define EACH(x) x(0) x(1) x(2) x(3) x(4) x(5)
#endif
#ifdef SHARED_A
#define EACH_A(x) x(0)
#else
#define EACH_A(x) EACH(x)
#endif

EACH(RESULT_AND_FACTOR)
EACH_A(LEFT_FACTOR)

uint number; // of the workgroup's product
product own;

#ifdef ROWS // matmul_few.glsl converts what was loaded
#define FACTORS 1
#define LEFTS 1
#define SUMS float
#define EACH_FACTOR(f) f(0)
#define EACH_LEFT(f) f(0)
#define LOADED PASTE(W_, IN)
#define COMPUTED(loaded) ACC(PASTE(FROM_, IN)(loaded))
#define GIVEN(stored) LOADED(stored)
#define load_a load_left_0
#define load_b load_right_0
#define store_sums store
#else
#define LOADED ACC
#define GIVEN(stored) ACC(PASTE(FROM_, IN)(PASTE(W_, IN)(stored)))
#endif
#define LOAD_A(n) if (number == n) return GIVEN(PASTE(a, n).d[at]);
#define LOAD_B(n) if (number == n) return GIVEN(PASTE(b, n).d[at]);
#define STORE(n) if (number == n) PASTE(c, n).d[at] = PASTE(S_, IN)(PASTE(TO_, IN)(PASTE(C_, IN)(value)));

LOADED load_a(uint row, uint k)
{
    uint at = own.a_offset + row * own.a_row + k * own.a_k;
#ifdef SHARED_A
    return GIVEN(a0.d[at]);
#else
    EACH(LOAD_A)
    return LOADED(0);
#endif
}
LOADED load_b(uint k, uint column)
{
    uint at = own.b_offset + k * own.b_k + column * own.b_column;
    EACH(LOAD_B)
    return LOADED(0);
}
void store(uint row, uint column, ACC value)
{
    uint at = own.out_offset + row * own.columns + column;
    EACH(STORE)
}
#ifdef ROWS
#include "matmul_few.glsl"
#define TILE_ROWS ROWS
#elif TILE == 8
#include "matmul_small.glsl"
#define TILE_ROWS TILE
#else
#if TILE >= 64
#define UNCHECKED_SLICES
#endif
#include "matmul.glsl"
#define TILE_ROWS TILE
#endif

void main()
{
    uint group = group_number();
    number = 0u;
    for (uint i = 1u; i < PRODUCTS; i++)
        number += group >= products.d[i].first_group ? 1u : 0u;
    own = products.d[number];
    uint tile = group - own.first_group;
    uint row = tile / own.tiles_across;
    if (row * TILE_ROWS < own.rows)
        multiply(row, tile % own.tiles_across, own.rows, own.columns, 0u, own.terms);
}

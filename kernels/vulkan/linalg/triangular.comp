#version 460
// SPDX-License-Identifier: MIT
// Blocks of triangular matrices: one step of a Cholesky factorisation, CHOLESKY, or of forward
// substitution, whose matrix is the operand `triangle`. T: the type of elements.
//
//   OP_solve   rows of the block at `first`: X = L^-1 X, an invocation a column. CHOLESKY: the
//              rows are columns of the result, and L is the block's factor, which each workgroup
//              makes anew, so that nobody reads what another one writes.
//   OP_factor  with CHOLESKY: the factors of all blocks on the diagonal, once the others are done.
//   OP_update  what lies behind the block: X = X - A X, by tiles of 64 x 64 elements.
//
// Rows and columns have strides modulo 2^32: other triangles are this one read in another order.
// The first step reads `source`, later ones what it wrote.
#include "program/types.glsl"
#include "program/scalar.glsl"
#ifdef OP_update
#define GROUP 256u
#else
#define GROUP 128u
#endif
layout(local_size_x = GROUP) in;
layout(constant_id = 0) const uint NUM_BATCH = 0; // axes of batches
layout(constant_id = 1) const uint UNIT = 0;      // 1: the diagonal of the triangle counts as ones

layout(std430, binding = 0) readonly buffer Source { T d[]; } source;
layout(std430, binding = 1) buffer Result { T d[]; } result;
#ifndef CHOLESKY
layout(std430, binding = 2) readonly buffer Triangle { T d[]; } triangle;
#endif
layout(push_constant) uniform Args {
    uint n, columns, batches, first;
    uint source_offset, result_offset, triangle_offset;
    uint source_row, source_column, result_row, result_column, triangle_row, triangle_column;
    uint extent[6];
    uint source_stride[6];
    uint triangle_stride[6];
} args;

#define BLOCK 32u
#define TILE 64u

uint source_start, result_start, triangle_start, begin; // begin: the block's first row

void start_batch(uint batch)
{
    uint rest = batch;
    source_start = args.source_offset;
    triangle_start = args.triangle_offset;
    result_start = args.result_offset + batch * args.n * args.columns;
    for (uint axis = NUM_BATCH; axis-- > 0u;) {
        uint next = axis > 0u ? rest / args.extent[axis] : 0u;
        uint c = rest - next * args.extent[axis];
        source_start += c * args.source_stride[axis];
        triangle_start += c * args.triangle_stride[axis];
        rest = next;
    }
}

uint position(uint row, uint column)
{
    return result_start + row * args.result_row + column * args.result_column;
}

// An element of X, as the step before left it.
T load(uint row, uint column)
{
    return begin == 0u ? source.d[source_start + row * args.source_row + column * args.source_column]
                       : result.d[position(row, column)];
}

void store(uint row, uint column, T value)
{
    result.d[position(row, column)] = value;
}

#ifdef CHOLESKY
// The operands of an update: both are columns of the factor.
T left(uint row, uint column)
{
    return result.d[position(row, column)];
}
T right(uint row, uint column)
{
    return result.d[position(column, row)];
}
#define LEFT_BY_ROWS (args.result_row == 1u)
#define RIGHT_BY_ROWS (args.result_row != 1u)
#else
T left(uint row, uint column)
{
    return triangle.d[triangle_start + row * args.triangle_row + column * args.triangle_column];
}
T right(uint row, uint column)
{
    return result.d[position(row, column)];
}
// Whether elements adjacent along the rows, not along the columns, are adjacent in memory.
#define LEFT_BY_ROWS (args.triangle_row + 1u <= 2u)
#define RIGHT_BY_ROWS false
#endif

#ifndef OP_update
shared T block[BLOCK][BLOCK + 1u];

// Reads the block on the diagonal; rows behind the matrix are those of the identity.
void read_block(uint size)
{
    for (uint at = gl_LocalInvocationIndex; at < BLOCK * BLOCK; at += GROUP) {
        uint i = at / BLOCK, j = at % BLOCK;
        T x = T(i == j ? 1 : 0);
#ifdef CHOLESKY
        if (i < size && j <= i)
            x = load(begin + i, begin + j);
#else
        if (i < size && (j < i || (j == i && UNIT == 0u)))
            x = left(begin + i, begin + j);
#endif
        block[i][j] = x;
    }
    barrier();
}

#ifdef CHOLESKY
T root(T pivot)
{
    return pivot > T(0) && !is_nan(pivot) ? sqrt(pivot) : T(not_a_number());
}

void factor_block(uint size)
{
    uint lane = gl_LocalInvocationIndex;
    for (uint j = 0u; j < size; j++) {
        T pivot = root(block[j][j]);
        barrier();
        if (lane >= j && lane < size)
            block[lane][j] = lane == j ? pivot : block[lane][j] / pivot;
        barrier();
        for (uint at = lane; at < BLOCK * BLOCK; at += GROUP) {
            uint i = at / BLOCK, c = at % BLOCK;
            if (c > j && c <= i && i < size)
                block[i][c] -= block[i][j] * block[c][j];
        }
        barrier();
    }
}
#endif
#endif

#ifdef OP_factor
void main()
{
    uint lane = gl_LocalInvocationIndex, unit = group_number();
    uint blocks = (args.n + BLOCK - 1u) / BLOCK;
    if (unit >= blocks * args.batches)
        return;
    uint batch = unit / blocks;
    start_batch(batch);
    begin = (unit - batch * blocks) * BLOCK;
    uint size = min(BLOCK, args.n - begin);
    read_block(size);
    factor_block(size);
    for (uint at = lane; at < BLOCK * BLOCK; at += GROUP) {
        uint i = at / BLOCK, j = at % BLOCK;
        if (i < size && j < size)
            store(begin + i, begin + j, j <= i ? block[i][j] : T(0));
    }
}
#endif

#ifdef OP_solve
void main()
{
    uint unit = group_number();
    begin = args.first;
#ifdef CHOLESKY
    uint behind = begin + BLOCK, columns = args.n - behind;
#else
    uint behind = 0u, columns = args.columns;
#endif
    uint groups = (columns + GROUP - 1u) / GROUP;
    if (unit >= groups * args.batches)
        return;
    uint batch = unit / groups;
    start_batch(batch);
    uint size = min(BLOCK, args.n - begin);
    read_block(size);
#ifdef CHOLESKY
    factor_block(size);
#endif
    uint column = (unit - batch * groups) * GROUP + gl_LocalInvocationIndex;
    if (column >= columns)
        return;
    column += behind;
    T x[BLOCK];
    [[unroll]] for (uint i = 0u; i < BLOCK; i++) {
        x[i] = T(0);
        if (i < size)
#ifdef CHOLESKY
            x[i] = load(column, begin + i);
#else
            x[i] = load(begin + i, column);
#endif
    }
    [[unroll]] for (uint i = 0u; i < BLOCK; i++) {
        T sum = x[i];
        [[unroll]] for (uint k = 0u; k < i; k++)
            sum -= block[i][k] * x[k];
        x[i] = sum / block[i][i];
    }
    [[unroll]] for (uint i = 0u; i < BLOCK; i++)
        if (i < size) {
#ifdef CHOLESKY
            store(column, begin + i, x[i]);
            if (begin == 0u)
                store(i, column, T(0));
#else
            store(begin + i, column, x[i]);
#endif
        }
}
#endif

#ifdef OP_update
shared T lefts[DEPTH][TILE + 1u];
shared T rights[DEPTH][TILE + 1u];

// Columns first .. first + DEPTH - 1 of the left rows and rows of the right columns.
void read_parts(uint row, uint column, uint columns, uint first)
{
    for (uint at = gl_LocalInvocationIndex; at < DEPTH * TILE; at += GROUP) {
        uint k = LEFT_BY_ROWS ? at / TILE : at % DEPTH;
        uint i = LEFT_BY_ROWS ? at % TILE : at / DEPTH;
        lefts[k][i] = row + i < args.n ? left(row + i, first + k) : T(0);
        k = RIGHT_BY_ROWS ? at % DEPTH : at / TILE;
        i = RIGHT_BY_ROWS ? at / DEPTH : at % TILE;
        rights[k][i] = column + i < columns ? right(first + k, column + i) : T(0);
    }
}

void main()
{
    uint lane = gl_LocalInvocationIndex, unit = group_number();
    begin = args.first;
    uint behind = begin + BLOCK;
    uint high = (args.n - behind + TILE - 1u) / TILE;
#ifdef CHOLESKY
    uint columns = args.n, least = behind, wide = high;
#else
    uint columns = args.columns, least = 0u, wide = (columns + TILE - 1u) / TILE;
#endif
    if (unit >= high * wide * args.batches)
        return;
    uint batch = unit / (high * wide), tile = unit - batch * (high * wide);
    start_batch(batch);
    uint row = behind + tile / wide * TILE, column = least + tile % wide * TILE;
#ifdef CHOLESKY
    if (column > row && begin != 0u)
        return;
#endif
    T sums[4][4];
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        [[unroll]] for (uint j = 0u; j < 4u; j++)
            sums[i][j] = T(0);
    uint y = lane / 16u, x = lane % 16u;
    for (uint first = 0u; first < BLOCK; first += DEPTH) {
        barrier();
        read_parts(row, column, columns, begin + first);
        barrier();
        for (uint k = 0u; k < DEPTH; k++) {
            T a[4], b[4];
            [[unroll]] for (uint i = 0u; i < 4u; i++) {
                a[i] = lefts[k][y + 16u * i];
                b[i] = rights[k][x + 16u * i];
            }
            [[unroll]] for (uint i = 0u; i < 4u; i++)
                [[unroll]] for (uint j = 0u; j < 4u; j++)
                    sums[i][j] += a[i] * b[j];
        }
    }
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            uint at = row + y + 16u * i, in_row = column + x + 16u * j;
            if (at >= args.n || in_row >= columns)
                continue;
#ifdef CHOLESKY
            if (in_row > at) {
                if (begin == 0u)
                    store(at, in_row, T(0));
                continue;
            }
#endif
            store(at, in_row, load(at, in_row) - sums[i][j]);
        }
}
#endif

// SPDX-License-Identifier: MIT
// The tile of a product of f32 matrices that are read four elements at a time: what matmul_wide.comp
// and conv2d_wide.comp share.
//
// A workgroup computes a tile of ROWS x COLUMNS, an invocation OWN_ROWS x OWN_COLUMNS of it as
// blocks of 4x4, from slices of DEPTH terms in shared memory. With two SLICES, one is filled
// while the other is multiplied, and a slice costs one barrier, but twice the memory.
//
// The including file defines A_ALONG_K, B_ALONG_K (the axis along which an operand is contiguous); for
// the right operand b_source, its strides B_COLUMN and B_K, its begin b_start and, where b_source has no
// vec4s, FOUR_OF, which makes a vec4 of its elements, or instead of these B_BEGIN and B_LOAD; and
//
//   A_BEGIN   declares what stays the same for all slices of the left operand
//   A_LOAD    fills next_a[A_LOADS] with the vectors of slice k, 0 beyond k_end and `rows`
//   store(row, column, vec4)
#ifndef FOUR_OF
#define FOUR_OF vec4
#endif
#ifndef B_LOAD
#define B_BEGIN                                                                                    \
    uint b_from = (b_start + (first_column + b_first.x) * B_COLUMN + b_first.y * B_K) / 4u;        \
    uint b_stride = (b_step.x * B_COLUMN + b_step.y * B_K) / 4u;
#define B_LOAD                                                                                     \
    LOAD(next_b, B_LOADS, FOUR_OF, b_source, b_from, b_first, b_step, b_stride, first_column,      \
         columns)                                                                                  \
    b_from += DEPTH * B_K / 4u;
#endif
#define X_LANES (COLUMNS / OWN_COLUMNS)
#define Y_LANES (ROWS / OWN_ROWS)
#define GROUP (X_LANES * Y_LANES)

// Vectors of a slice that an invocation loads, of each operand.
#define A_LOADS (ROWS * DEPTH / 4 / GROUP)
#define B_LOADS (COLUMNS * DEPTH / 4 / GROUP)

shared vec4 tile_a[SLICES][DEPTH][ROWS / 4 + 1]; // one more spreads the terms over the banks
shared vec4 tile_b[SLICES][DEPTH][COLUMNS / 4 + 1];

// The position in the tile, and the term in the slice, of the first vector that an invocation loads
// of an operand with `width` positions. Its vectors are apart by vector_step().
uvec2 first_vector(bool along_k, uint width)
{
    uint at = gl_LocalInvocationIndex;
    return along_k ? uvec2(at / (DEPTH / 4u), at % (DEPTH / 4u) * 4u)
                   : uvec2(at % (width / 4u) * 4u, at / (width / 4u));
}
uvec2 vector_step(bool along_k, uint width)
{
    return along_k ? uvec2(GROUP / (DEPTH / 4), 0u) : uvec2(0u, GROUP / (width / 4u));
}

// Loads the slice's vectors of an operand; vectors out of bounds are 0.
#define LOAD(next, LOADS, FOUR_OF, source, from, first, step, stride, begin, end)                  \
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {                                                 \
        uvec2 at = first + i * step;                                                               \
        next[i] = vec4(0);                                                                         \
        if (begin + at.x < end && k + at.y < k_end)                                                \
            next[i] = FOUR_OF(source.d[from + i * stride]);                                        \
    }

// Puts them into shared memory, where the positions of a term lie side by side.
#define PUT(tile, next, LOADS, first, step, along_k)                                               \
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {                                                 \
        uvec2 at = first + i * step;                                                               \
        if (along_k) {                                                                             \
            [[unroll]] for (uint c = 0u; c < 4u; c++)                                              \
                tile[slice][at.y + c][at.x / 4u][at.x % 4u] = next[i][c];                          \
        } else {                                                                                   \
            tile[slice][at.y][at.x / 4u] = next[i];                                                \
        }                                                                                          \
    }

void multiply(uint tile_row, uint tile_column, uint rows, uint columns, uint k_begin,
              uint k_end)
{
    // A subgroup of 32 has 8 x 4 blocks side by side: of an operand it reads 128 bytes at most.
    uint lane = gl_LocalInvocationIndex % 32u, block = gl_LocalInvocationIndex / 32u;
    uint x = block % (X_LANES / 8) * 8u + lane % 8u, y = block / (X_LANES / 8) * 4u + lane / 8u;
    uint first_row = tile_row * ROWS, first_column = tile_column * COLUMNS;
    bool a_along = A_ALONG_K != 0u, b_along = B_ALONG_K != 0u;
    uvec2 a_first = first_vector(a_along, ROWS), a_step = vector_step(a_along, ROWS);
    uvec2 b_first = first_vector(b_along, COLUMNS), b_step = vector_step(b_along, COLUMNS);
    A_BEGIN
    B_BEGIN
    vec4 sum[OWN_ROWS][OWN_COLUMNS / 4], next_a[A_LOADS], next_b[B_LOADS];
    [[unroll]] for (uint i = 0u; i < OWN_ROWS; i++)
        [[unroll]] for (uint j = 0u; j < OWN_COLUMNS / 4u; j++)
            sum[i][j] = vec4(0);
    // Double buffering: the next slice is loaded while the current one is multiplied.
    uint slice = 0u;
    [[dont_unroll]] for (uint k = k_begin;; k += DEPTH) {
        bool has_next = k < k_end;
        if (has_next) {
            A_LOAD
            B_LOAD
        }
        if (k != k_begin) {
            uint filled = SLICES - 1u - slice;
            [[unroll]] for (uint d = 0u; d < DEPTH; d++) {
                vec4 a[OWN_ROWS / 4], b[OWN_COLUMNS / 4];
                [[unroll]] for (uint i = 0u; i < OWN_ROWS / 4u; i++)
                    a[i] = tile_a[filled][d][y + Y_LANES * i];
                [[unroll]] for (uint i = 0u; i < OWN_COLUMNS / 4u; i++)
                    b[i] = tile_b[filled][d][x + X_LANES * i];
                [[unroll]] for (uint i = 0u; i < OWN_ROWS; i++)
                    [[unroll]] for (uint j = 0u; j < OWN_COLUMNS / 4u; j++)
                        sum[i][j] += a[i / 4u][i % 4u] * b[j];
            }
            if (SLICES == 1)
                barrier();
        }
        if (!has_next)
            break;
        PUT(tile_a, next_a, A_LOADS, a_first, a_step, a_along)
        PUT(tile_b, next_b, B_LOADS, b_first, b_step, b_along)
        barrier();
        slice = SLICES - 1u - slice;
    }
    [[unroll]] for (uint i = 0u; i < OWN_ROWS; i++)
        [[unroll]] for (uint j = 0u; j < OWN_COLUMNS / 4u; j++) {
            uint row = first_row + (i / 4u * Y_LANES + y) * 4u + i % 4u;
            uint column = first_column + (j * X_LANES + x) * 4u;
            if (row < rows && column < columns)
                store(row, column, sum[i][j]);
        }
    if (SLICES == 2)
        barrier(); // a further tile fills slices anew
}

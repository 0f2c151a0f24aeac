// SPDX-License-Identifier: MIT
// The tiled product of matrices that matmul.comp and conv2d.comp share: workgroups of 256
// invocations compute tiles of TILE x TILE outputs, PER x PER of them each, from slices of
// DEPTH terms of both operands in shared memory. The time of a small product is that of waiting for
// slices, so small products have few, deep ones.
//
// The including file defines ACC, the type of the sums; load_a(row, k) and load_b(k, column), which
// return an ACC and are called within bounds only; and store(row, column, ACC).
//
// UNCHECKED_SLICES: slices that lie within bounds as a whole have code of their own, without a test
// of each element. A large product takes a tenth less time so on an NVIDIA H200.
//
// An invocation's outputs are register blocks of RUN x RUN, so that it reads shared memory RUN
// numbers at a time. Loops over them carry an unroll hint: a sum that is indexed by a variable is
// moved from registers to memory.
#define PER (TILE / 16)
#ifndef DEPTH
#define DEPTH 16
#endif
#define LOADS (DEPTH * TILE / 256) // elements of each operand that an invocation loads for a slice
#if TILE >= 64 && !defined(IS_COMPLEX)
#define RUN 4u
#define RUN_float vec4
#define RUN_double dvec4
#define RUN_int ivec4
#define RUN_uint uvec4
#define RUN_int64_t i64vec4
#define RUN_uint64_t u64vec4
#define LINE PASTE(RUN_, ACC)
#define PAD 1u
#define LANE(x, i) x[i]
#else
#define RUN 1u
#define LINE ACC
#define PAD 1u
#define LANE(x, i) x
#endif

#ifdef IS_COMPLEX
#define ADD_PRODUCT(sum, a, b)                                                                     \
    sum += ACC((a).x * (b).x - (a).y * (b).y, (a).x * (b).y + (a).y * (b).x)
#else
#define ADD_PRODUCT(sum, a, b) sum += (a) * (b)
#endif

shared LINE tile_a[DEPTH][TILE / RUN + PAD];
shared LINE tile_b[DEPTH][TILE / RUN + PAD];

// The row (or column) in the tile of output `i` of the invocation that is number `at` of 16.
uint output_position(uint at, uint i)
{
    return (i / RUN * 16u + at) * RUN + i % RUN;
}

// The term, and the row or column, of load number `part` of an invocation. Adjacent invocations
// load adjacent terms (along_k) or rows, whichever are closer together in memory.
uvec2 loaded_position(uint part, uint along_k)
{
    uint at = gl_LocalInvocationIndex + 256u * part;
    return along_k != 0u ? uvec2(at % DEPTH, at / DEPTH) : uvec2(at / TILE, at % TILE);
}

// Loads the slice that begins at term k. An element for which its condition does not hold is 0; the
// conditions may name `a` and `b`, the positions of the elements.
#define LOAD_SLICE(has_a, has_b)                                                                   \
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {                                                 \
        uvec2 a = loaded_position(i, A_ALONG_K), b = loaded_position(i, B_ALONG_K);                \
        next_a[i] = next_b[i] = ACC(0);                                                            \
        if (has_a)                                                                                 \
            next_a[i] = load_a(first_row + a.y, k + a.x);                                          \
        if (has_b)                                                                                 \
            next_b[i] = load_b(k + b.x, first_column + b.y);                                       \
    }

// Computes one tile of a product of `rows` rows and `columns` columns, over terms [k_begin, k_end).
void multiply(uint tile_row, uint tile_column, uint rows, uint columns, uint k_begin,
              uint k_end)
{
    uint x = gl_LocalInvocationIndex % 16u, y = gl_LocalInvocationIndex / 16u;
    uint first_row = tile_row * TILE, first_column = tile_column * TILE;
#ifdef UNCHECKED_SLICES
    bool is_inside = first_row + TILE <= rows && first_column + TILE <= columns;
#endif
    ACC sum[PER][PER], next_a[LOADS], next_b[LOADS];
    [[unroll]] for (uint i = 0u; i < PER; i++)
        [[unroll]] for (uint j = 0u; j < PER; j++)
            sum[i][j] = ACC(0);
    // Double buffering: the next slice is loaded while the current one is multiplied.
    for (uint k = k_begin;; k += DEPTH) {
        bool has_next = k < k_end;
#ifdef UNCHECKED_SLICES
        if (is_inside && k + DEPTH <= k_end) {
            LOAD_SLICE(true, true)
        } else
#endif
        {
            LOAD_SLICE(k + a.x < k_end && first_row + a.y < rows,
                       k + b.x < k_end && first_column + b.y < columns)
        }
        if (k != k_begin) {
            [[unroll]] for (uint d = 0u; d < DEPTH; d++) {
                LINE a[PER / RUN], b[PER / RUN];
                [[unroll]] for (uint i = 0u; i < PER / RUN; i++) {
                    a[i] = tile_a[d][y + 16u * i];
                    b[i] = tile_b[d][x + 16u * i];
                }
                [[unroll]] for (uint i = 0u; i < PER; i++)
                    [[unroll]] for (uint j = 0u; j < PER; j++)
                        ADD_PRODUCT(sum[i][j], LANE(a[i / RUN], i % RUN),
                                    LANE(b[j / RUN], j % RUN));
            }
            barrier();
        }
        if (!has_next)
            break;
        [[unroll]] for (uint i = 0u; i < LOADS; i++) {
            uvec2 a = loaded_position(i, A_ALONG_K), b = loaded_position(i, B_ALONG_K);
            LANE(tile_a[a.x][a.y / RUN], a.y % RUN) = next_a[i];
            LANE(tile_b[b.x][b.y / RUN], b.y % RUN) = next_b[i];
        }
        barrier();
    }
    [[unroll]] for (uint i = 0u; i < PER; i++)
        [[unroll]] for (uint j = 0u; j < PER; j++) {
            uint row = first_row + output_position(y, i);
            uint column = first_column + output_position(x, j);
            if (row < rows && column < columns)
                store(row, column, sum[i][j]);
        }
}

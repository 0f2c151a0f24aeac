// SPDX-License-Identifier: MIT
// The tiled product of matrices that matmul.comp and conv2d.comp share: workgroups of 256
// invocations compute tiles of TILE x TILE outputs, PER x PER of them each, from slices of
// DEPTH of both operands in shared memory.
//
// To be defined by the file that includes it: ACC; load_a(row, k), load_b(k, column) give
// ACC and are only asked within bounds; store(row, column, ACC).
//
// An invocation's outputs are blocks of RUN x RUN, so that it reads shared memory RUN
// numbers at a time. Loops over them are unrolled whatever a driver thinks of their length:
// sums that are indexed by a variable leave the registers.
#define PER (TILE / 16)
#define DEPTH 16
#if TILE >= 64
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

shared LINE tile_a[DEPTH][TILE / RUN + PAD];
shared LINE tile_b[DEPTH][TILE / RUN + PAD];

// Where output `i` of the invocation that is `at` of 16 lies in the tile.
uint output_place(uint at, uint i)
{
    return (i / RUN * 16u + at) * RUN + i % RUN;
}

// Where number `part` that an invocation loads lies: the term, and the row or column.
// Neighbouring invocations take neighbouring terms or rows: whichever lies closer together
// in memory.
uvec2 loaded_place(uint part, uint along_k)
{
    uint at = gl_LocalInvocationIndex + 256u * part;
    return along_k != 0u ? uvec2(at % DEPTH, at / DEPTH) : uvec2(at / TILE, at % TILE);
}

// Rows `rows`, columns `columns`, terms [k_begin, k_end).
void multiply(uint tile_row, uint tile_column, uint rows, uint columns, uint k_begin,
              uint k_end)
{
    uint x = gl_LocalInvocationIndex % 16u, y = gl_LocalInvocationIndex / 16u;
    uint first_row = tile_row * TILE, first_column = tile_column * TILE;
    ACC sum[PER][PER], next_a[PER], next_b[PER];
    [[unroll]] for (uint i = 0u; i < PER; i++)
        [[unroll]] for (uint j = 0u; j < PER; j++)
            sum[i][j] = ACC(0);
    // The next slice is on its way while the last one is multiplied.
    for (uint k = k_begin;; k += DEPTH) {
        bool has_next = k < k_end;
        [[unroll]] for (uint i = 0u; i < PER; i++) {
            uvec2 a = loaded_place(i, A_ALONG_K), b = loaded_place(i, B_ALONG_K);
            next_a[i] = next_b[i] = ACC(0);
            if (k + a.x < k_end && first_row + a.y < rows)
                next_a[i] = load_a(first_row + a.y, k + a.x);
            if (k + b.x < k_end && first_column + b.y < columns)
                next_b[i] = load_b(k + b.x, first_column + b.y);
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
                        sum[i][j] += LANE(a[i / RUN], i % RUN) * LANE(b[j / RUN], j % RUN);
            }
            barrier();
        }
        if (!has_next)
            break;
        [[unroll]] for (uint i = 0u; i < PER; i++) {
            uvec2 a = loaded_place(i, A_ALONG_K), b = loaded_place(i, B_ALONG_K);
            LANE(tile_a[a.x][a.y / RUN], a.y % RUN) = next_a[i];
            LANE(tile_b[b.x][b.y / RUN], b.y % RUN) = next_b[i];
        }
        barrier();
    }
    [[unroll]] for (uint i = 0u; i < PER; i++)
        [[unroll]] for (uint j = 0u; j < PER; j++) {
            uint row = first_row + output_place(y, i);
            uint column = first_column + output_place(x, j);
            if (row < rows && column < columns)
                store(row, column, sum[i][j]);
        }
}

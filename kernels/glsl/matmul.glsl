// SPDX-License-Identifier: MIT
// The tiled product of matrices that matmul.comp and conv2d.comp share: workgroups of 256
// invocations compute tiles of TILE x TILE outputs, PER x PER of them each, from slices of
// DEPTH of both operands in shared memory.
//
// To be defined by the file that includes it: ACC; load_a(row, k), load_b(k, column) give
// ACC and are only asked within bounds; store(row, column, ACC).
#define PER (TILE / 16)
#define DEPTH 16

shared ACC tile_a[DEPTH][TILE + 1];
shared ACC tile_b[DEPTH][TILE + 1];

// Rows `rows`, columns `columns`, terms [k_begin, k_end).
void multiply(uint tile_row, uint tile_column, uint rows, uint columns, uint k_begin,
              uint k_end)
{
    uint lane = gl_LocalInvocationIndex;
    uint x = lane % 16u, y = lane / 16u;
    uint first_row = tile_row * TILE, first_column = tile_column * TILE;
    ACC sum[PER][PER];
    for (uint i = 0u; i < PER; i++)
        for (uint j = 0u; j < PER; j++)
            sum[i][j] = ACC(0);
    for (uint k = k_begin; k < k_end; k += DEPTH) {
        for (uint at = lane; at < DEPTH * TILE; at += 256u) {
            // Neighbouring invocations take neighbouring terms or rows: whichever lies
            // closer together in memory.
            uint ak = A_ALONG_K != 0u ? at % DEPTH : at / TILE;
            uint ar = A_ALONG_K != 0u ? at / DEPTH : at % TILE;
            bool inside = k + ak < k_end && first_row + ar < rows;
            tile_a[ak][ar] = inside ? load_a(first_row + ar, k + ak) : ACC(0);
            uint bk = B_ALONG_K != 0u ? at % DEPTH : at / TILE;
            uint bc = B_ALONG_K != 0u ? at / DEPTH : at % TILE;
            inside = k + bk < k_end && first_column + bc < columns;
            tile_b[bk][bc] = inside ? load_b(k + bk, first_column + bc) : ACC(0);
        }
        barrier();
        for (uint d = 0u; d < DEPTH; d++) {
            ACC a[PER], b[PER];
            for (uint i = 0u; i < PER; i++)
                a[i] = tile_a[d][y + 16u * i];
            for (uint j = 0u; j < PER; j++)
                b[j] = tile_b[d][x + 16u * j];
            for (uint i = 0u; i < PER; i++)
                for (uint j = 0u; j < PER; j++)
                    sum[i][j] += a[i] * b[j];
        }
        barrier();
    }
    for (uint i = 0u; i < PER; i++)
        for (uint j = 0u; j < PER; j++) {
            uint row = first_row + y + 16u * i, column = first_column + x + 16u * j;
            if (row < rows && column < columns)
                store(row, column, sum[i][j]);
        }
}

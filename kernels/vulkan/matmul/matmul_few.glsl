// SPDX-License-Identifier: MIT
// Products of matrices with a few rows, whose time is that of reading the right operands once: FACTORS of
// them side by side, of equal extents. ROWS: a power of two up to 16, the rows at most. A workgroup of 256
// invocations has COLUMNS columns, and PARTS invocations share the terms of each: an invocation has UNROLL
// terms of each factor on their way while it multiplies those before, and waits for others only where rows
// of the left operands come to shared memory, CHUNK terms at a time.
//
// The including file defines A_ALONG_K, B_ALONG_K, FACTORS and LEFTS, the number of left operands, 1 or
// FACTORS; SUMS, a vector of FACTORS floats; EACH_FACTOR(f) and EACH_LEFT(f), which apply f to each
// number; load_left_N(row, k) and load_right_N(k, column), called within bounds only, which give what
// memory holds, of type LOADED; COMPUTED(loaded), a float; and store_sums(row, column, SUMS).
//
// Loads stand in no branch and their conversions behind all of a round, so that they are on their way
// together: out of bounds the last element is loaded.
#if FACTORS == 1
#define SUM(sums, n) sums
#else
#define SUM(sums, n) sums[n]
#endif
#ifndef COLUMNS
#define COLUMNS 8
#endif
#define PARTS (256 / COLUMNS)
#define LOADS 8 // elements of the left operands that an invocation brings to shared memory at a time

// The rows of a term: LINES lines of WIDTH.
#if ROWS == 1
#define WIDTH 1
#define LINE float
#define LANE(x, i) x
#elif ROWS == 2
#define WIDTH 2
#define LINE vec2
#define LANE(x, i) x[i]
#else
#define WIDTH 4
#define LINE vec4
#define LANE(x, i) x[i]
#endif
#define LINES (ROWS / WIDTH)
#if LINES > 1 && FACTORS < 3
#define AT_ONCE 2 // lines whose parts are added up at a time
#else
#define AT_ONCE 1
#endif

#if LEFTS == 3
#define CHUNK (128 * LOADS / 2 / ROWS)
#else
#define CHUNK (256 * LOADS / ROWS / LEFTS)
#endif
#if FACTORS > 2
#define UNROLL_MOST 4
#else
#define UNROLL_MOST 8
#endif
#if CHUNK / PARTS < UNROLL_MOST
#define UNROLL (CHUNK / PARTS)
#else
#define UNROLL UNROLL_MOST
#endif
#define ROUND (PARTS * UNROLL) // terms that a column's invocations multiply at a time

shared LINE left_rows[LEFTS][CHUNK][LINES];
shared LINE part_sums[AT_ONCE][FACTORS][256];

#define LOAD_RIGHT(n) next[i][n] = load_right_##n(term, own_column);
#define LOAD_LEFT(n) if (position.z == n) next_left[i] = load_left_##n(row, k);

// Loads terms from, from + PARTS, ... of a column.
#define LOAD_ROUND(from)                                                                           \
    [[unroll]] for (uint i = 0u; i < UNROLL; i++) {                                                \
        uint term = min((from) + i * PARTS, k_end - 1u);                                           \
        EACH_FACTOR(LOAD_RIGHT)                                                                    \
    }

// Loads terms [from, from + CHUNK) of rows of the left operands.
#define LOAD_CHUNK(from)                                                                           \
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {                                                 \
        uvec3 position = brought(i);                                                                  \
        uint k = min((from) + position.x, k_end - 1u), row = min(first_row + position.y, rows - 1u);     \
        EACH_LEFT(LOAD_LEFT)                                                                       \
    }

// The term, the row and the left operand of element `i` that an invocation brings to shared memory.
uvec3 brought(uint i)
{
    uint at = gl_LocalInvocationIndex + 256u * i, rest = at / (CHUNK * ROWS);
    return A_ALONG_K != 0u ? uvec3(at % CHUNK, at / CHUNK % ROWS, rest)
                           : uvec3(at / ROWS % CHUNK, at % ROWS, rest);
}

// Adds up the parts of the workgroup's outputs and stores them.
void finish(LINE own[FACTORS][LINES], uint first_row, uint first_column, uint rows, uint columns)
{
    uint at = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < LINES; i += AT_ONCE) {
        if (i > 0u)
            barrier(); // the lines before are added up
        [[unroll]] for (uint j = 0u; j < AT_ONCE; j++)
            [[unroll]] for (uint n = 0u; n < FACTORS; n++)
                part_sums[j][n][at] = own[n][i + j];
        barrier();
        uint of = at / COLUMNS, line = of / WIDTH, lane = of % WIDTH;
        uint row = first_row + i * WIDTH + of, column = first_column + at % COLUMNS;
        if (line < AT_ONCE && row < rows && column < columns) {
            SUMS sums = SUMS(0);
            for (uint p = 0u; p < PARTS; p++) {
                uint from = B_ALONG_K != 0u ? at % COLUMNS * PARTS + p : p * COLUMNS + at % COLUMNS;
                [[unroll]] for (uint n = 0u; n < FACTORS; n++)
                    SUM(sums, n) += LANE(part_sums[line][n][from], lane);
            }
            store_sums(row, column, sums);
        }
    }
}

// Computes ROWS x COLUMNS outputs, from terms [k_begin, k_end).
void multiply(uint tile_row, uint tile_column, uint rows, uint columns, uint k_begin,
              uint k_end)
{
    uint at = gl_LocalInvocationIndex, first_row = tile_row * ROWS;
    // Adjacent invocations take terms or columns, whichever lie closer together in memory.
    bool along = B_ALONG_K != 0u;
    uint part = along ? at % PARTS : at / COLUMNS;
    uint own_column = min(tile_column * COLUMNS + (along ? at / PARTS : at % COLUMNS), columns - 1u);
    LINE own[FACTORS][LINES];
    LOADED next[UNROLL][FACTORS], next_left[LOADS];
    [[unroll]] for (uint n = 0u; n < FACTORS; n++)
        [[unroll]] for (uint i = 0u; i < LINES; i++)
            own[n][i] = LINE(0);
    if (k_begin < k_end) {
        LOAD_CHUNK(k_begin)
        LOAD_ROUND(k_begin + part)
    }
    for (uint first = k_begin; first < k_end; first += CHUNK) {
        [[unroll]] for (uint i = 0u; i < LOADS; i++) {
            uvec3 position = brought(i);
            bool is_inside = first + position.x < k_end && first_row + position.y < rows;
            if (position.z < LEFTS)
                LANE(left_rows[position.z][position.x][position.y / WIDTH], position.y % WIDTH) =
                    is_inside ? COMPUTED(next_left[i]) : 0.0;
        }
        barrier();
        if (first + CHUNK < k_end) { // on their way while these are multiplied
            LOAD_CHUNK(first + CHUNK)
        }
        for (uint k = 0u; k < min(k_end - first, CHUNK); k += ROUND) {
            float now[UNROLL][FACTORS];
            [[unroll]] for (uint i = 0u; i < UNROLL; i++)
                [[unroll]] for (uint n = 0u; n < FACTORS; n++)
                    now[i][n] = first + k + part + i * PARTS < k_end ? COMPUTED(next[i][n]) : 0.0;
            LOAD_ROUND(first + k + ROUND + part)
            [[unroll]] for (uint i = 0u; i < UNROLL; i++)
                [[unroll]] for (uint j = 0u; j < LINES; j++)
                    [[unroll]] for (uint n = 0u; n < FACTORS; n++)
                        own[n][j] += left_rows[min(n, LEFTS - 1u)][k + part + i * PARTS][j] * now[i][n];
        }
        barrier(); // the terms are multiplied
    }
    finish(own, first_row, tile_column * COLUMNS, rows, columns);
    if (k_begin >= k_end)
        barrier(); // else a further tile waits for its terms
}

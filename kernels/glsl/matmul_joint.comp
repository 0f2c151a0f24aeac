#version 460
// SPDX-License-Identifier: MIT
// FACTORS products of matrices, 2 to 4, of a few rows and equal extents, whose results one program reads:
// the result is stored as a vector, and a program is linked that takes it. ROWS: a power of two up to
// 16, the rows at most. SHARED_A: the products have one left operand. It stands not in variants.txt:
// vulkan-jit compiles what a plan needs.
//
// The time is that of reading the right operands once. A workgroup has COLUMNS columns, and PARTS
// invocations share the terms of each: an invocation has UNROLL terms of each factor on their way while
// it multiplies those before, and waits for others only where rows of the left operands come to shared
// memory, CHUNK terms at a time.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint A_ALONG_K = 1;
layout(constant_id = 1) const uint B_ALONG_K = 0;

#if FACTORS == 2
#define SUMS vec2
#define EACH(x) x(0) x(1)
#define UNROLL_MOST 8
#elif FACTORS == 3
#define SUMS vec3
#define EACH(x) x(0) x(1) x(2)
#define UNROLL_MOST 4
#else
#define SUMS vec4
#define EACH(x) x(0) x(1) x(2) x(3)
#define UNROLL_MOST 4
#endif
#ifdef SHARED_A
#define LEFTS 1
#define EACH_LEFT(x) x(0)
#else
#define LEFTS FACTORS
#define EACH_LEFT(x) EACH(x)
#endif

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
#if LINES > 1 && FACTORS == 2
#define AT_ONCE 2 // lines whose parts are added up at a time
#else
#define AT_ONCE 1
#endif

#define PARTS (256 / COLUMNS)
#define LOADS 8 // elements of the left operands that an invocation brings to shared memory at a time
#if LEFTS == 3
#define CHUNK (512 / ROWS)
#else
#define CHUNK (256 * LOADS / ROWS / LEFTS)
#endif
#if CHUNK / PARTS < UNROLL_MOST
#define UNROLL (CHUNK / PARTS)
#else
#define UNROLL UNROLL_MOST
#endif
#define ROUND (PARTS * UNROLL) // terms that a column's invocations multiply at a time

layout(std430, binding = 0) writeonly buffer C { SUMS d[]; } result;
#define RIGHT_FACTOR(n)                                                                            \
    layout(std430, binding = 1 + n) readonly buffer PASTE(B, n) { PASTE(S_, IN) d[]; } PASTE(b, n);
#define LEFT_FACTOR(n)                                                                             \
    layout(std430, binding = 1 + FACTORS + n) readonly buffer PASTE(A, n) { PASTE(S_, IN) d[]; } PASTE(a, n);
EACH(RIGHT_FACTOR)
EACH_LEFT(LEFT_FACTOR)
layout(push_constant) uniform Args {
    uint rows, columns, terms;
    uint a_row, a_k, b_k, b_column; // strides
    uint a_offset[4];
    uint b_offset[4];
} args;

shared LINE left_rows[LEFTS][CHUNK][LINES];
shared LINE part_sums[AT_ONCE][FACTORS][256];

#define COMPUTED(stored) float(PASTE(FROM_, IN)(PASTE(W_, IN)(stored)))
#define LOAD_RIGHT(n) next[i][n] = COMPUTED(PASTE(b, n).d[args.b_offset[n] + from]);
#define LOAD_LEFT(n) if (f == n) value = COMPUTED(PASTE(a, n).d[args.a_offset[n] + from]);
#define ROUNDED(n) sums[n] = float(PASTE(FROM_, IN)(PASTE(TO_, IN)(sums[n])));

// Loads terms k, k + PARTS, ... of a column; zeros out of bounds.
#define LOAD_ROUND(k)                                                                              \
    [[unroll]] for (uint i = 0u; i < UNROLL; i++) {                                                \
        uint term = (k) + i * PARTS, from = term * args.b_k + column * args.b_column;              \
        [[unroll]] for (uint n = 0u; n < FACTORS; n++)                                             \
            next[i][n] = 0.0;                                                                      \
        if (term < args.terms && column < args.columns) {                                          \
            EACH(LOAD_RIGHT)                                                                       \
        }                                                                                          \
    }

float load_left(uint f, uint row, uint term)
{
    float value = 0.0;
    uint from = row * args.a_row + term * args.a_k;
    EACH_LEFT(LOAD_LEFT)
    return value;
}

// Brings terms [first, first + CHUNK) of the left operands to shared memory; zeros out of bounds.
void bring_left(uint first)
{
    float values[LOADS];
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uint at = gl_LocalInvocationIndex + 256u * i;
        uint k = A_ALONG_K != 0u ? at % CHUNK : at / ROWS % CHUNK;
        uint row = A_ALONG_K != 0u ? at / CHUNK % ROWS : at % ROWS, f = at / (CHUNK * ROWS);
        values[i] = 0.0;
        if (f < LEFTS && row < args.rows && first + k < args.terms)
            values[i] = load_left(f, row, first + k);
    }
    if (first > 0u)
        barrier(); // the terms before are multiplied
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uint at = gl_LocalInvocationIndex + 256u * i;
        uint k = A_ALONG_K != 0u ? at % CHUNK : at / ROWS % CHUNK;
        uint row = A_ALONG_K != 0u ? at / CHUNK % ROWS : at % ROWS, f = at / (CHUNK * ROWS);
        if (f < LEFTS)
            LANE(left_rows[f][k][row / WIDTH], row % WIDTH) = values[i];
    }
    barrier();
}

void main()
{
    uint at = gl_LocalInvocationIndex, first_column = group_number() * COLUMNS;
    // Neighbouring invocations take terms or columns, whichever lie closer together in memory.
    bool along = B_ALONG_K != 0u;
    uint part = along ? at % PARTS : at / COLUMNS;
    uint column = first_column + (along ? at / PARTS : at % COLUMNS);
    LINE own[FACTORS][LINES];
    float next[UNROLL][FACTORS];
    [[unroll]] for (uint n = 0u; n < FACTORS; n++)
        [[unroll]] for (uint i = 0u; i < LINES; i++)
            own[n][i] = LINE(0);
    LOAD_ROUND(part)
    for (uint first = 0u; first < args.terms; first += CHUNK) {
        uint end = min(args.terms - first, CHUNK);
        bring_left(first);
        for (uint k = 0u; k < end; k += ROUND) {
            float now[UNROLL][FACTORS];
            [[unroll]] for (uint i = 0u; i < UNROLL; i++)
                [[unroll]] for (uint n = 0u; n < FACTORS; n++)
                    now[i][n] = next[i][n];
            LOAD_ROUND(first + k + ROUND + part)
            [[unroll]] for (uint i = 0u; i < UNROLL; i++)
                [[unroll]] for (uint j = 0u; j < LINES; j++)
                    [[unroll]] for (uint n = 0u; n < FACTORS; n++)
                        own[n][j] += left_rows[min(n, LEFTS - 1u)][k + part + i * PARTS][j] * now[i][n];
        }
    }
    [[unroll]] for (uint i = 0u; i < LINES; i += AT_ONCE) {
        if (i > 0u)
            barrier(); // the lines before are added up
        [[unroll]] for (uint j = 0u; j < AT_ONCE; j++)
            [[unroll]] for (uint n = 0u; n < FACTORS; n++)
                part_sums[j][n][at] = own[n][i + j];
        barrier();
        uint of = at / COLUMNS, row = i * WIDTH + of, line = of / WIDTH, lane = of % WIDTH;
        column = first_column + at % COLUMNS;
        if (line < AT_ONCE && row < args.rows && column < args.columns) {
            SUMS sums = SUMS(0);
            for (uint p = 0u; p < PARTS; p++) {
                uint from = along ? at % COLUMNS * PARTS + p : p * COLUMNS + at % COLUMNS;
                [[unroll]] for (uint n = 0u; n < FACTORS; n++)
                    sums[n] += LANE(part_sums[line][n][from], lane);
            }
            EACH(ROUNDED)
            result.d[row * args.columns + column] = sums;
        }
    }
}

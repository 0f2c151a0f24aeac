// SPDX-License-Identifier: MIT
// Squares of floats in registers.
#ifndef KERNELS_CPU_SQUARES_H
#define KERNELS_CPU_SQUARES_H

typedef float square_row __attribute__((vector_size(32)));
typedef float square_loose __attribute__((vector_size(32), aligned(4), may_alias));

#define PAIR(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
// Element i of x[j] becomes element j of x[i].
static inline __attribute__((always_inline)) void square_transpose(square_row x[8])
{
    square_row t[8], u[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = PAIR(x[2 * i], x[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[2 * i + 1] = PAIR(x[2 * i], x[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        square_row low = t[i / 2 * 4 + i % 2], high = t[i / 2 * 4 + i % 2 + 2];
        u[i / 2 * 4 + i % 2 * 2] = PAIR(low, high, 0, 1, 8, 9, 4, 5, 12, 13);
        u[i / 2 * 4 + i % 2 * 2 + 1] = PAIR(low, high, 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        x[i] = PAIR(u[i], u[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        x[i + 4] = PAIR(u[i], u[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#undef PAIR

#endif // KERNELS_CPU_SQUARES_H

// SPDX-License-Identifier: MIT
// Small matrices of real numbers, several at a time: elements (i, j) of all of them are one
// vector of 64 bytes, so that each lane has a matrix, with its own order of rows.
//
// Threads. Pure functions over memory.
#ifndef KERNELS_CPU_LINALG_SMALL_H
#define KERNELS_CPU_LINALG_SMALL_H

#include <stdbool.h>
#include <stdint.h>

enum { SMALL_VECTOR = 64, SMALL_MOST_LANES = 16, SMALL_MOST_ROWS = 32 };

// A group of n x n matrices, with k columns of right-hand sides behind each row.
struct small_group {
    unsigned char *work; // n rows of n + k vectors; aligned to SMALL_VECTOR
    int64_t n, k;
};

// Matrices in memory: the address of the first element of each lane's matrix, and the
// strides of rows and of columns in elements.
struct small_matrices {
    char *at[SMALL_MOST_LANES];
    int64_t row, column;
};

// Outcome of a factorisation, for each lane.
struct small_answer {
    int zero[SMALL_MOST_LANES];    // 0, or the number, from 1, of the first pivot that is 0
    bool nan[SMALL_MOST_LANES];    // the matrix has a NaN, so its results are meaningless
    double sign[SMALL_MOST_LANES]; // 1, or -1 after an odd number of exchanges of rows
};

// Kernels of one dtype and one instruction set. Columns are numbered from 0 for the matrix
// and from n for the right-hand sides.
struct small_kernels {
    int64_t lanes;
    void (*load)(const struct small_group *group, const struct small_matrices *from,
                 int64_t first, int64_t columns);
    void (*load_identity)(const struct small_group *group, int64_t first);
    // Stores the first `count` lanes.
    void (*store)(const struct small_group *group, const struct small_matrices *to,
                  int64_t first, int64_t columns, int64_t count);
    // Replaces the matrix by its LU factors, with exchanges of rows, and the right-hand
    // sides B by L^-1 P B.
    void (*factor)(const struct small_group *group, struct small_answer *out);
    // Replaces the right-hand sides by the solutions of a triangular system.
    void (*solve)(const struct small_group *group, bool lower, bool unit_diagonal);
    // Replaces the matrix by its lower Cholesky factor, with zeros above the diagonal.
    // `zero` is the number of the first pivot that is not above 0, which a NaN is not
    // either: `nan` is false. `sign` is not written.
    void (*cholesky)(const struct small_group *group, struct small_answer *out);
    // Writes element (i, i) of each lane.
    void (*diagonal)(const struct small_group *group, int64_t i, double *out);
};

// For each instruction set: kernels for a vector of matrices, and for one matrix, with the
// same bits.
#define SMALL_NAME_(dtype, variant) small_kernels_##dtype##_##variant
#define SMALL_NAME(dtype, variant) SMALL_NAME_(dtype, variant)
#define SMALL_DECLARE(variant)                                                             \
    extern const struct small_kernels small_kernels_f32_##variant,                         \
        small_kernels_f64_##variant, small_kernels_f32_one_##variant,                      \
        small_kernels_f64_one_##variant
SMALL_DECLARE(baseline);
#ifdef CPU_BUILD_X86
SMALL_DECLARE(avx2);
SMALL_DECLARE(avx512);
#endif

#endif // KERNELS_CPU_LINALG_SMALL_H

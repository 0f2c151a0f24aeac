// SPDX-License-Identifier: MIT
// Reductions of rows and of columns, and the kernels of neural networks.
//
// Sums of f32 (and of half floats, widened) are kept in 16 lanes of f32 over at most 1024
// elements, and those partial sums in f64; the order is fixed. Integers wrap in 64 bits.
#ifndef KERNELS_CPU_REDUCE_H
#define KERNELS_CPU_REDUCE_H

#include <stdint.h>

enum { CPU_REDUCE_SUM, CPU_REDUCE_MAX, CPU_REDUCE_MIN, CPU_NUM_REDUCTIONS };

// What a reduction accumulates in: `f` for floats, `i` for integers and bool (u64 by its
// bits).
union cpu_accumulator {
    double f;
    int64_t i;
};

// Folds x[0 .. n), stride 1, into *acc.
typedef void cpu_reduce_row_fn(union cpu_accumulator *acc, const void *x, int64_t n);

// Folds `rows` rows of `columns` elements, `stride` elements apart, into acc[0 .. columns).
typedef void cpu_reduce_columns_fn(union cpu_accumulator *acc, const void *x, int64_t rows,
                                   int64_t columns, int64_t stride);

struct cpu_reduce_kernels {
    cpu_reduce_row_fn *row[CPU_NUM_REDUCTIONS][14];         // [reduction][dtype]
    cpu_reduce_columns_fn *columns[CPU_NUM_REDUCTIONS][14]; // [reduction][dtype]
    // The first greatest of x[0 .. n), NaN counting as the greatest; n > 0.
    int64_t (*argmax_f32)(const float *x, int64_t n);
    // The same for each of `columns` columns, of `rows` rows `stride` elements apart.
    void (*argmax_columns_f32)(int64_t *out, const float *x, int64_t rows, int64_t columns,
                               int64_t stride);
};

struct cpu_nn_kernels {
    // out[i] = x[i] - max (log) or its exponential, over the sum, for a row; n > 0. `out`
    // may be x.
    void (*softmax_f32)(float *out, const float *x, int64_t n);
    void (*log_softmax_f32)(float *out, const float *x, int64_t n);
    float (*logsumexp_f32)(const float *x, int64_t n);
    // out[i] = log(sum(exp(x))) uses this: the sum of exp(x[i] - shift).
    double (*sum_exp_f32)(const float *x, float shift, int64_t n);
    // acc[j] += x[j].
    void (*add_into_f32)(float *acc, const float *x, int64_t n);
    // One tap of a pooling window over a row of output pixels, channels last: the output's
    // pixel p meets the input's pixel at x + p * step. acc = max(acc, x).
    void (*pool_max_f32)(float *acc, const float *x, int64_t pixels, int64_t channels,
                         int64_t step);
    // The same for the gradient, which the first maximum of a window takes: where x is out
    // and taken is 0, gx += g and taken = 1.
    void (*pool_grad_f32)(float *gx, const float *x, const float *out, const float *g,
                          uint8_t *taken, int64_t pixels, int64_t channels, int64_t step);
};

#endif // KERNELS_CPU_REDUCE_H

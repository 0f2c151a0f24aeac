// SPDX-License-Identifier: MIT
// Reductions of rows and of columns.
//
// Sums of a row of f32 (and of halves, widened) are accumulated in 32 lanes of f32 over at
// most 1024 elements, and these partial sums in f64; sums of f64 in 16 lanes. The order of
// additions is fixed. Products of floats are accumulated in 16 lanes of f64. Integers wrap
// in 64 bits.
#ifndef KERNELS_CPU_REDUCE_H
#define KERNELS_CPU_REDUCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenon/ops/complex.h>
#include <tenon/types.h>

// The reductions: X(name, NUMBER) for CPU_REDUCE_NUMBER.
#define CPU_REDUCTIONS(X)                                                                  \
    X(sum, SUM)                                                                            \
    X(max, MAX)                                                                            \
    X(min, MIN)                                                                            \
    X(prod, PROD)
enum {
#define CPU_REDUCE_NUMBER(name, number) CPU_REDUCE_##number,
    CPU_REDUCTIONS(CPU_REDUCE_NUMBER)
#undef CPU_REDUCE_NUMBER
        CPU_NUM_REDUCTIONS
};

// The accumulator of a reduction: `f` for floats, `i` for integers and bool (of unsigned
// dtypes the bits of a uint64_t). The caller sets it before the first call; several calls
// continue one reduction.
union cpu_accumulator {
    double f;
    int64_t i;
};

// The dtype of an accumulator's content: F64, I64 or U64.
static inline int32_t reduction_total(int32_t dtype)
{
    return tn_is_float(dtype)                       ? TN_F64
           : tn_dtype_in(dtype, TN_UNSIGNED_DTYPES) ? TN_U64
                                                    : TN_I64;
}

// The identity element of the reduction `kind` (CPU_REDUCE_...). Inline: sums of few
// elements ask for it once a row.
static inline union cpu_accumulator reduction_start(int32_t kind, int32_t dtype)
{
    bool is_float = tn_is_float(dtype);
    int neutral = kind == CPU_REDUCE_PROD;
    if (kind == CPU_REDUCE_SUM || kind == CPU_REDUCE_PROD)
        return is_float ? (union cpu_accumulator){.f = neutral}
                        : (union cpu_accumulator){.i = neutral};
    if (is_float)
        return (union cpu_accumulator){.f = kind == CPU_REDUCE_MAX ? -INFINITY : INFINITY};
    if (tn_dtype_in(dtype, TN_UNSIGNED_DTYPES))
        return (union cpu_accumulator){.i = kind == CPU_REDUCE_MAX ? 0 : -1};
    return (union cpu_accumulator){.i = kind == CPU_REDUCE_MAX ? INT64_MIN : INT64_MAX};
}

// Folds x[0 .. n), stride 1, into *acc.
typedef void cpu_reduce_row_fn(union cpu_accumulator *acc, const void *x, int64_t n);

// Sums of terms that are computed of one or two operands, a and b, each operation rounded
// on its own: the sum has the same bits as if the terms were stored and then summed.
enum {
    CPU_SUM_PRODUCTS,            // a * b
    CPU_SUM_SQUARED_DIFFERENCES, // (a - b) * (a - b), where b is one element for the row
    CPU_NUM_SUMS,
    CPU_SUM_ELEMENTS = CPU_NUM_SUMS, // a; for cpu_sum_rows_fn alone
};

// Adds the n terms of a, stride 1, and of b to *acc.
typedef void cpu_sum_row_fn(union cpu_accumulator *acc, const void *a, const void *b,
                            int64_t n);

// acc[r] = the sum of the n terms of row r of a, whose rows are adjacent, and of b, whose
// rows are b_step elements apart, with the same bits as cpu_sum_row_fn from 0.
typedef void cpu_sum_rows_fn(union cpu_accumulator *acc, const void *a, const void *b,
                             int64_t b_step, int64_t rows, int64_t n);

// Folds `rows` rows of `columns` elements, `stride` elements apart, into acc[0 .. columns).
typedef void cpu_reduce_columns_fn(union cpu_accumulator *acc, const void *x, int64_t rows,
                                   int64_t columns, int64_t stride);

// Folds n complex numbers, stride 1, into *acc. Products are computed in 16 lanes of f64,
// and again one after the other if the lanes have no finite product. Sums add each part
// like a row of reals, in half as many lanes.
typedef void cpu_complex_fold_fn(tn_complex128 *acc, const void *x, int64_t n);

// The reductions of one variant. Entries of F16 and BF16 are NULL, since callers widen
// these to F32 first, but for sums of rows where the processor has an instruction for
// widening.
struct cpu_reduce_kernels {
    cpu_reduce_row_fn *row[CPU_NUM_REDUCTIONS][TN_NUM_DTYPES];         // [reduction][dtype]
    cpu_reduce_columns_fn *columns[CPU_NUM_REDUCTIONS][TN_NUM_DTYPES]; // [reduction][dtype]
    cpu_sum_row_fn *sum[CPU_NUM_SUMS][TN_NUM_DTYPES]; // [sum][dtype]: F32 and F64
    cpu_sum_rows_fn *sum_rows[CPU_NUM_SUMS + 1];      // [sum]: of F32
    cpu_complex_fold_fn *complex_product[2];          // of COMPLEX64 and COMPLEX128
    cpu_complex_fold_fn *complex_sum[2];              // of COMPLEX64 and COMPLEX128
};

// The index of the best element of x[0 .. n), the first of equal ones; a NaN is better than
// all numbers. n > 0.
typedef int64_t cpu_argmax_row_fn(const void *x, int64_t n);

// Folds `rows` rows of `columns` elements, `stride` elements apart, into the best elements
// and the numbers of their rows. The first row has the number `first`; if this is 0, `best`
// and `at` are initialised.
typedef void cpu_argmax_columns_fn(void *best, int32_t *at, const void *x, int32_t first,
                                   int32_t rows, int64_t columns, int64_t stride);

// The best element is the greatest ([0]) or the least ([1]). NULL for F16 and BF16.
struct cpu_argmax_kernels {
    cpu_argmax_row_fn *row[2][TN_NUM_DTYPES];
    cpu_argmax_columns_fn *columns[2][TN_NUM_DTYPES];
};

// Derivatives of (x - mean) / sqrt(variance + eps) * weight + bias of rows, in f32: dx is
// written, and the rows' terms of the gradients of weight and bias are added to dweight and
// dbias. Rows are adjacent. dx may be x or g.
struct cpu_norm_grad {
    const float *x, *g, *weight;
    float *dx, *dweight, *dbias;
    int64_t rows, n;
    double eps;
};
typedef void cpu_layer_norm_grad_fn(const struct cpu_norm_grad *p);

#endif // KERNELS_CPU_REDUCE_H

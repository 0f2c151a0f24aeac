// SPDX-License-Identifier: MIT
// Products of floats of which one matrix has few rows.
#ifndef KERNELS_CPU_FEW_ROWS_H
#define KERNELS_CPU_FEW_ROWS_H

#include <stdint.h>
#include <tenon/types.h>

// Kinds of b: rows of elements, or of whole blocks of <tenon/ops/quant.h>.
enum { CPU_FEW_F32, CPU_FEW_F16, CPU_FEW_BF16, CPU_FEW_Q8_0 };

// The kind of rows of f32, f16 or bf16.
static inline int32_t cpu_few_kind(tn_dtype dtype)
{
    return dtype == TN_F16 ? CPU_FEW_F16 : dtype == TN_BF16 ? CPU_FEW_BF16 : CPU_FEW_F32;
}

// A product of matrices of which a has few rows: c is m by n. Elements of rows are
// adjacent. Strides are in elements, or in bytes if b has blocks. c overlaps neither a nor
// b.
struct cpu_few_rows {
    const float *a;
    const void *b;
    float *c;
    int64_t m, n, k;
    int64_t a_row, b_row, c_row;
    float scale;  // for by_rows alone
    int32_t kind; // of b: CPU_FEW_...
};
#define CPU_FEW_ROWS 8 // most rows of a for which these products are quicker than BLAS

// The products of one variant.
struct cpu_few_kernels {
    // c = scale * a b', where b is n by k.
    void (*by_rows)(const struct cpu_few_rows *p);
    // c += a b, where b is k by n.
    void (*by_columns)(const struct cpu_few_rows *p);
};

#endif // KERNELS_CPU_FEW_ROWS_H

// SPDX-License-Identifier: MIT
// Products of matrices of integers.
#ifndef KERNELS_CPU_PRODUCT_H
#define KERNELS_CPU_PRODUCT_H

#include <stdint.h>

// A matrix product, c = a * b, of integers, which wrap, or of bool, whose sum is OR and
// whose product is AND. Strides in elements; the columns of b and of c are adjacent. c
// overlaps neither a nor b.
struct cpu_product {
    const void *a, *b;
    void *c;
    int64_t m, n, k; // a is m by k, b is k by n
    int64_t a_row, a_column, b_row, c_row;
};
typedef void cpu_product_fn(const struct cpu_product *product);

#endif // KERNELS_CPU_PRODUCT_H

// SPDX-License-Identifier: MIT
// Products of matrices: what their kernels share. An operand is taken as it lies where the
// loops can read it; otherwise it is packed first: converted, and without gaps.
#ifndef CPU_BLAS_MATMUL_H
#define CPU_BLAS_MATMUL_H

#include "blas.h"
#include "kernels.h"

struct matrix {
    const char *data;
    int64_t row_stride, column_stride; // elements
    int transpose;                     // BLAS_NO_TRANS: rows lie together
    int leading;
    bool packed;
};

struct product {
    const struct blas *blas;
    const struct cpu_kernels *kernels;
    int32_t dtype;   // computed in: f32 for halves
    int64_t element; // its bytes
    int64_t m, n, k, batch;
    struct matrix a, b;
    int64_t rank; // of the batch axes
    int64_t extent[TN_MAX_RANK], a_stride[TN_MAX_RANK], b_stride[TN_MAX_RANK]; // elements
    char *c;
    int64_t parts_m, parts_n; // of each matrix
};

void product_read(const tn_layout *a, const tn_layout *b, struct product *p);

// Bytes of what is packed, and of the result where it is converted at the end.
uint64_t product_scratch(const struct product *p, const tn_layout *a, const tn_layout *b);

// Packs what has to be, and sets the matrices' data. Gives the scratch that is left.
char *product_pack(const tn_cpu_call *call, struct product *p);

#endif // CPU_BLAS_MATMUL_H

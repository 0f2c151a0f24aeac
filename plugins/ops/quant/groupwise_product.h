// SPDX-License-Identifier: MIT
// Shared by products with groupwise formats: inputs and attributes, the check of x against
// w, and the product of two matrices in arrays of any layout.
#ifndef QUANT_GROUPWISE_PRODUCT_H
#define QUANT_GROUPWISE_PRODUCT_H

#include "groupwise.h"

#define GROUPWISE_PRODUCT_INPUTS                                                           \
    {"x", "rows along the last axis", 0, TN_FLOAT_DTYPES},                                 \
        {"w", "rows of words along the last axis", TN_INPUT_CONSTANT,                      \
         TN_DTYPE_BIT(TN_U32)},                                                            \
        {"scales", "of the groups of each row of w", 0,                                    \
         GROUPWISE_DTYPES | TN_DTYPE_BIT(TN_U8)},                                          \
    {                                                                                      \
        "biases", "of the groups, in mode affine alone", TN_INPUT_OPTIONAL,                \
            GROUPWISE_DTYPES                                                               \
    }

#define GROUPWISE_PRODUCT_FIELDS(type)                                                     \
    GROUPWISE_FIELDS(type),                                                                \
        TN_BOOL_FIELD(type, transpose, 1, "whether rows of w are columns of the product"), \
        TN_BOOL_FIELD(type, exact, 0, "whether x is never rounded to 8 bits")

// Fails unless x, of at least rank `least`, fits the matrices of w. Gives dtype and columns
// of the product.
tn_status groupwise_product_check(const tn_infer *infer, const struct groupwise *format,
                                  int64_t transpose, int32_t least, tn_dtype *out_dtype,
                                  int64_t *out_columns);

uint64_t groupwise_product_scratch(const tn_kernel_query *query);

// The products of a call, each of a matrix of x and a matrix of w.
struct groupwise_product {
    struct groupwise format;
    const tn_tensor *x, *w, *scales, *biases, *out;
    bool transpose;
    int64_t rows, k, columns;
    int64_t x_row, out_row; // strides
    void *scratch;          // of groupwise_product_scratch()
};

void groupwise_product_of(const tn_cpu_call *call, int64_t transpose,
                          const struct groupwise *format, struct groupwise_product *out);

// Multiplies the matrix of x at offset `from` by the matrix of w at `index`, whose last two
// entries are overwritten, to offset `to` of the result.
void groupwise_multiply(const struct groupwise_product *p, int64_t *index, int64_t from,
                        int64_t to);

// x with its last two axes swapped; NULL for NULL and for a lower rank.
tn_array *groupwise_swapped(const tn_build *build, const tn_array *x);

#endif // QUANT_GROUPWISE_PRODUCT_H

// SPDX-License-Identifier: MIT
// Products with quantised weights: shared by plan_quant.c and plan_quant_matrix.c.
#ifndef KERNELS_VULKAN_QUANT_PLAN_QUANT_H
#define KERNELS_VULKAN_QUANT_PLAN_QUANT_H

#include <tenon/ops/quant.h>
#include "../launch.h"
#include "packings.h"

#define PACKED_ROWS TN_QUANT_PACKED_ROWS
#define FEW_ROWS 8 // of x, at most, where weights are read for some rows at a time

// A matrix of blocks by its format's name.
struct quant_weights {
    const tn_quant_format *format; // the plain one
    bool is_packed;
};

// A product of x, rows by terms, with the transposed matrix of w, columns by terms.
struct quant_product {
    struct quant_weights w;
    const tn_layout *x, *blocks, *out;
    uint64_t rows, columns, terms;
    bool exact;
};

// Fills *result. False: the shaders do not have the format.
bool quant_describe(const char *format, bool exact, const tn_layout *x,
                    const tn_layout *blocks, const tn_layout *out,
                    struct quant_product *result);

#define SCRATCH_ALIGNMENT 256 // bytes

// Whether a device with cooperative matrices runs the product on them.
bool quant_may_round(const struct quant_product *p);

// Bytes of scratch memory of a product on cooperative matrices; 0: it never runs on them.
uint64_t quant_matrix_scratch(const struct quant_product *p);

// A plain format; NULL: there is none of that name. One place has the table of them.
const tn_quant_format *quant_find_plain(const char *name);

// Bytes of a unit, by which quant.glsl counts.
uint32_t quant_unit_bytes(const struct quant_weights *w);

// The dtype of the cooperative matrices that a product runs on, "bf16" or "f16"; NULL: on
// none.
const char *quant_matrix_dtype(const tn_vulkan_limits *limits,
                               const struct quant_product *p);

// Plans a product on cooperative matrices of `dtype`.
tn_status quant_plan_matrices(const tn_vulkan_plan *plan, const struct quant_product *p,
                              const char *dtype);

#endif // KERNELS_VULKAN_QUANT_PLAN_QUANT_H

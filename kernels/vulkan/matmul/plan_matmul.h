// SPDX-License-Identifier: MIT
// A product of matrices, and the kernel for it.
#ifndef KERNELS_VULKAN_MATMUL_PLAN_MATMUL_H
#define KERNELS_VULKAN_MATMUL_PLAN_MATMUL_H

#include "../launch.h"

#define MAX_BATCH_AXES 6

struct matrix {
    uint32_t row, column; // strides
    int32_t num_batch;    // number of batch axes
};

struct product {
    uint64_t rows, columns, terms, batches;
    struct matrix a, b;
    uint32_t num_axes; // of batches
    uint32_t extent[MAX_BATCH_AXES], a_stride[MAX_BATCH_AXES], b_stride[MAX_BATCH_AXES];
};

// Bounds of matmul_few.glsl: the most rows, and the columns of a workgroup.
#define PRODUCT_FEW_ROWS 4
#define PRODUCT_FEW_COLUMNS 8

struct product product_describe(const tn_layout *a, const tn_layout *b);
// product_of without folding: batches of a whose rows follow each other stay batches.
struct product product_of_batches(const tn_layout *a, const tn_layout *b);

// Whether adjacent terms of the operands are adjacent in memory: matmul.comp's
// A_ALONG_K and B_ALONG_K.
bool product_a_along_k(const struct product *p);
bool product_b_along_k(const struct product *p);

// The kernel of a product, and its tile.
struct tiling {
    char name[VARIANT_NAME]; // of the variant: "matmul_f32_64"
    uint32_t rows, columns;
    bool may_split;  // matmul_matrix.comp may take the terms in splits
    bool takes_rest; // the last split may have fewer terms (terms_of in matmul_grid.glsl)
    bool takes_any;  // several products share a launch (matmul_products.comp)
    bool b_along_k;  // the kernel's B_ALONG_K
    bool is_whole;   // never in splits
    bool is_transposed; // computes the transpose: the right operand comes first
};

// A tile of products of f32 that are read four elements at a time (matmul_wide.glsl).
struct product_wide {
    const char *name;                      // of the variant, behind its family's: "32x64"
    uint32_t rows, columns, group, shared; // group: invocations; shared: its bytes
    bool stores_by_element;                // has a variant for programs
};
#define WIDE_ALIGNMENT 4

// The largest of these tiles that the columns fill and with which a large device has work
// for all its processors, else the smallest; NULL: the device takes none. `layers`:
// products of this size.
const struct product_wide *product_wide(const tn_vulkan_limits *limits, uint64_t rows,
                                        uint64_t columns, uint64_t layers);

// Whether kernels may read both operands of the step `alignment` elements at a time.
bool product_aligned(const tn_step *step, const struct product *p, uint32_t alignment);

// Whether the product of the step, however large, is faster with the program behind it than
// alone.
bool product_hides_program(const tn_vulkan_limits *limits, const tn_step *step);

struct tiling product_tiling(const tn_vulkan_limits *limits, const tn_step *step,
                             const struct product *p);

// The product of the step's first two operands, by a kernel with the arguments of
// matmul.comp, to `out` from element out_offset on.
tn_status product_launch(const tn_vulkan_plan *plan, const struct product *p,
                         const struct tiling *tiling, tn_vulkan_operand out,
                         uint64_t out_offset);

// plan_matmul_few.c
// A product of which one operand, x, has few rows, or transposed few columns.
struct product_few {
    char name[VARIANT_NAME];
    bool is_transposed, w_along_k; // x is on the right; w is contiguous along the terms
    bool is_strip; // on cooperative matrices: matmul_strip.comp; else matmul_lines.comp
    uint64_t rows, columns, terms;      // of the transpose, if it is computed
    uint32_t x_row, x_k, w_k, w_column; // strides
    uint32_t tile_rows, tile_columns, lanes, splits;
    uint64_t split_terms;
};

// Whether the product has these kernels; *out is then its launch.
bool product_few(const tn_vulkan_limits *limits, const tn_step *step,
                 const struct product *p, struct product_few *out);
tn_status product_few_launch(const tn_vulkan_plan *plan, struct product_few *few);
uint64_t product_few_scratch(const struct product *p, tn_dtype dtype); // bytes, at most

// plan_matmul_split.c
// The tiling of a step's product, and splits of the terms that are computed beside each
// other; 1: all terms. With more p becomes a batch of products, whose results are of f32
// and side by side.
uint32_t product_split(const tn_vulkan_limits *limits, const tn_step *step,
                       struct product *p, struct tiling *tiling);
uint64_t product_splits_size(const struct product *p, uint32_t splits); // bytes of results
uint64_t vk_matmul_scratch(const tn_kernel_query *query);

#endif // KERNELS_VULKAN_MATMUL_PLAN_MATMUL_H

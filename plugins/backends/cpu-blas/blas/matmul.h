// SPDX-License-Identifier: MIT
// Matrix products: structs and packing. An operand is read in its own memory if the loops
// take its strides and dtype; otherwise the operand is packed first: converted and made
// contiguous.
#ifndef CPU_BLAS_MATMUL_H
#define CPU_BLAS_MATMUL_H

#include "blas.h"
#include "ops/kernels.h"

struct blas_matrix {
    const char *data;
    int64_t row_stride, column_stride; // elements
    int transpose; // BLAS_NO_TRANS: stride 1 along rows; BLAS_TRANS: along columns
    int leading;   // BLAS' leading dimension, elements
    bool packed;   // read from scratch memory, not from the operand's
};

struct blas_product {
    const struct blas *blas;
    const struct cpu_kernels *kernels;
    int32_t dtype;   // computed in: f32 for halves
    int64_t element; // bytes of an element of that
    // The memory that the loops read: an operand's own elements if these are panels', else
    // `element`.
    int64_t operand;
    int32_t operand_dtype;
    bool by_panels;
    int64_t m, n, k, batch;
    struct blas_matrix a, b;
    int64_t rank; // of the batch axes
    int64_t extent[TN_MAX_RANK], a_stride[TN_MAX_RANK], b_stride[TN_MAX_RANK]; // elements
    char *c;
    int64_t parts_m, parts_n; // pieces of each matrix
    // With an epilogue, or of halves by panels: blocks of the result in scratch memory, one
    // for each worker.
    const tn_cpu_call *call;
    cpu_map_fn
        *round;   // from f32 to halves, which lie behind the block or in `out`; or NULL
    char *out;    // where halves belong; NULL: the epilogue takes the block
    char *blocks; // NULL: the product is written to `c`
    int64_t block_rows, block_columns; // at most, of a block
    int64_t block_bytes;               // a multiple of 64
    // The project's own loops for floats; NULL: others multiply.
    const struct cpu_panels_variant *panels;
    char *panel_memory; // panel_bytes for each worker
    int64_t panel_bytes;
    char *shared; // b, copied once for all threads; or NULL
};

// Whether OpenBLAS multiplies matrices of a dtype; else the loops for integers do.
static inline bool product_by_blas(int32_t dtype)
{
    return tn_is_float(dtype) || tn_is_complex(dtype);
}

// Fills *p, but for `data` and `c`, from the layouts of the operands.
void product_read(const tn_layout *a, const tn_layout *b, struct blas_product *p);

// product_read() for a product by panels, which reads any strides and halves: nothing is
// packed.
void product_read_unpacked(const tn_layout *a, const tn_layout *b, struct blas_product *p);

// Whether threads share one copy of b, where there are several; and its bytes.
bool product_shares(const struct blas_product *p);
int64_t product_shared_bytes(const struct blas_product *p);

// Bytes that a product by panels works in: the shared copy of b, then what workers have.
uint64_t product_panel_scratch(struct blas_product *p, const tn_kernel_query *query);

// Sets the size of blocks for operands of `dtype`. False when there is nothing to multiply.
bool product_choose_block(struct blas_product *p, tn_dtype dtype);

// Bytes of the packed operands, and of the result if it is converted at the end or passed
// on.
uint64_t product_scratch(struct blas_product *p, const tn_kernel_query *query);

// Packs operands where `packed` is set, and sets `data` of both. Returns the rest of the
// scratch memory.
char *product_pack(const tn_cpu_call *call, struct blas_product *p);

// Sets the instruction sets, CPU_HAS_..., by which the project's loops multiply from now
// on; the choice between these loops and OpenBLAS depends on them. Any thread.
void product_limit(uint32_t features);

#endif // CPU_BLAS_MATMUL_H

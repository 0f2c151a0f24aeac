// SPDX-License-Identifier: MIT
// Matrix products: reads the layouts of operands, and packs operands that the loops cannot
// take.
#include "matmul.h"

#include <limits.h>

// Whether BLAS can read the matrix in its own memory. If so, sets `transpose` and
// `leading`.
static bool set_storage(struct blas_matrix *x, int64_t rows, int64_t columns)
{
    if (columns == 1 || x->column_stride == 1) {
        int64_t leading = rows == 1 ? columns : x->row_stride;
        if (leading >= columns && leading <= INT_MAX) {
            x->transpose = BLAS_NO_TRANS;
            x->leading = leading > 0 ? (int)leading : 1;
            return true;
        }
    }
    if (rows == 1 || x->row_stride == 1) {
        int64_t leading = columns == 1 ? rows : x->column_stride;
        if (leading >= rows && leading <= INT_MAX) {
            x->transpose = BLAS_TRANS;
            x->leading = leading > 0 ? (int)leading : 1;
            return true;
        }
    }
    return false;
}

// Extents and strides of the matrices in `layout`; a vector is one row (a) or one column
// (b).
static void read_matrix(const tn_layout *layout, bool is_row, struct blas_matrix *x,
                        int64_t *rows, int64_t *columns)
{
    int32_t r = layout->rank;
    if (r == 1) {
        *rows = is_row ? 1 : layout->extent[0];
        *columns = is_row ? layout->extent[0] : 1;
        x->row_stride = is_row ? 0 : layout->stride[0];
        x->column_stride = is_row ? layout->stride[0] : 0;
        return;
    }
    *rows = layout->extent[r - 2];
    *columns = layout->extent[r - 1];
    x->row_stride = layout->stride[r - 2];
    x->column_stride = layout->stride[r - 1];
}

// Batch axes, right-aligned and broadcast: a broadcast axis has stride 0.
static void read_batch(const tn_layout *a, const tn_layout *b, struct blas_product *p)
{
    int32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0;
    p->rank = ra > rb ? ra : rb;
    p->batch = 1;
    for (int64_t i = 0; i < p->rank; i++) {
        int64_t ia = i - (p->rank - ra), ib = i - (p->rank - rb);
        int64_t ea = ia >= 0 ? a->extent[ia] : 1, eb = ib >= 0 ? b->extent[ib] : 1;
        p->extent[i] = ea == 1 ? eb : ea;
        p->a_stride[i] = ia >= 0 && ea != 1 ? a->stride[ia] : 0;
        p->b_stride[i] = ib >= 0 && eb != 1 ? b->stride[ib] : 0;
        p->batch *= p->extent[i];
    }
}

// Whether the dtype is for storage only, and computed in a wider one.
static bool blas_matmul_is_narrow(int32_t dtype)
{
    return tn_dtype_computed(dtype) != dtype;
}

void product_read(const tn_layout *a, const tn_layout *b, struct blas_product *p)
{
    int64_t k;
    *p = (struct blas_product){.dtype = tn_dtype_computed(a->dtype)};
    p->operand = p->element = cpu_dtype_size(p->dtype);
    p->operand_dtype = p->dtype;
    read_matrix(a, true, &p->a, &p->m, &p->k);
    read_matrix(b, false, &p->b, &k, &p->n);
    read_batch(a, b, p);
    p->a.packed = !set_storage(&p->a, p->m, p->k) || blas_matmul_is_narrow(a->dtype);
    p->b.packed = !set_storage(&p->b, p->k, p->n) || blas_matmul_is_narrow(b->dtype);
    // The integer loops take any strides of a, but need stride 1 along the rows of b.
    if (!product_by_blas(p->dtype)) {
        p->a.packed = false;
        p->b.packed = p->n > 1 && p->b.column_stride != 1;
    }
}

// Batches of rows of a, one behind the other, by one b are one matrix.
static void join_batches(struct blas_product *p)
{
    for (; p->rank > 0 && p->batch > 0 && p->k > 0 && p->b_stride[p->rank - 1] == 0 &&
           p->a_stride[p->rank - 1] == p->m * p->a.row_stride;
         p->rank--) {
        p->m *= p->extent[p->rank - 1];
        p->batch /= p->extent[p->rank - 1];
    }
}

void product_read_unpacked(const tn_layout *a, const tn_layout *b, struct blas_product *p)
{
    product_read(a, b, p);
    p->a.packed = p->b.packed = false;
    p->by_panels = true;
    join_batches(p);
    p->operand_dtype = a->dtype;
    p->operand = cpu_dtype_size(a->dtype);
    const int64_t parts = tn_is_complex(p->dtype) ? 2 : 1;
    p->panel_bytes = cpu_panels_scratch(parts * p->m, parts * p->n, p->k) *
                     (p->element / parts == sizeof(double) ? 2 : 1);
}

// b is copied once where threads would copy it many times, unless its copy takes much
// memory: a part of a large product is large, too, so that copies are a small part of its
// time.
#define SHARED_ROWS 128
#define SHARED_ELEMENTS (INT64_C(8) << 20)
#define SHARED_WORK 4e6 // multiplications: copying is a loop more, of some microseconds

bool product_shares(const struct blas_product *p)
{
    return p->batch == 1 && !tn_is_complex(p->dtype) && p->operand_dtype != TN_BF16 &&
           p->m > SHARED_ROWS && p->n > CPU_PANELS_FEW &&
           p->k <= SHARED_ELEMENTS / (p->n + CPU_PANELS_WIDTH) &&
           (double)p->m * (double)p->n * (double)p->k >= SHARED_WORK;
}

int64_t product_shared_bytes(const struct blas_product *p)
{
    return (cpu_panels_packed(p->operand_dtype, p->n, p->k) + 63) / 64 * 64;
}

// --- blocks of the result --------------------------------------------------------------

// OpenBLAS packs one operand anew for each block, so that narrow blocks slow the product
// down, by about a tenth at 64 rows; blocks beyond the cache bring memory traffic, which
// long dot products (LONG_K) outweigh. Hence at least BLOCK_ROWS rows, and as many as
// these bytes hold.
#define BLOCK_ROWS 256
#define BLOCK_COLUMNS 4096
#define BLOCK_BYTES (INT64_C(1) << 20)
#define LONG_BLOCK_BYTES (INT64_C(4) << 20)
#define LONG_K 256
// Panels are of some columns at a time anyway: a block stays in the second-level cache.
#define PANEL_BLOCK_COLUMNS 512

// Elements of equal parts of `extent`, about `most` at most: a multiple of the register
// block, or all.
static int64_t blas_matmul_part_of(int64_t extent, int64_t most)
{
    int64_t parts = (extent + most - 1) / most;
    int64_t part = ((extent + parts - 1) / parts + 31) / 32 * 32;
    return part < extent ? part : extent;
}

bool product_choose_block(struct blas_product *p, tn_dtype dtype)
{
    if (p->k == 0 || p->m == 0 || p->n == 0)
        return false;
    p->block_columns =
        blas_matmul_part_of(p->n, p->by_panels ? PANEL_BLOCK_COLUMNS : BLOCK_COLUMNS);
    int64_t row = p->block_columns * (p->element + (blas_matmul_is_narrow(dtype) ? 2 : 0));
    int64_t rows = (p->k > LONG_K && !p->by_panels ? LONG_BLOCK_BYTES : BLOCK_BYTES) / row;
    p->block_rows = blas_matmul_part_of(p->m, rows > BLOCK_ROWS ? rows : BLOCK_ROWS);
    p->block_bytes = (p->block_rows * row + 63) / 64 * 64;
    return true;
}

// --- packing ---------------------------------------------------------------------------

// The operand's layout in the order in which it is packed, by rows or by columns; broadcast
// batch axes are packed once.
static tn_layout packed_layout(const tn_layout *layout, bool by_columns)
{
    tn_layout packed = *layout;
    int32_t r = layout->rank;
    for (int32_t i = 0; i < r - 2; i++)
        if (layout->stride[i] == 0)
            packed.extent[i] = 1;
    if (by_columns) {
        packed.extent[r - 2] = layout->extent[r - 1];
        packed.extent[r - 1] = layout->extent[r - 2];
        packed.stride[r - 2] = layout->stride[r - 1];
        packed.stride[r - 1] = layout->stride[r - 2];
    }
    return packed;
}

// Whether the operand is packed by columns: if they are contiguous, and the loop takes a
// transposed matrix.
static bool keeps_columns(const struct blas_product *p, const tn_layout *layout)
{
    int32_t r = layout->rank;
    return product_by_blas(p->dtype) && r > 1 && layout->stride[r - 1] != 1 &&
           layout->stride[r - 2] == 1;
}

static uint64_t blas_matmul_packed_bytes(const struct blas_product *p,
                                         const tn_layout *layout)
{
    tn_layout packed = packed_layout(layout, false);
    uint64_t bytes =
        tn_saturated_multiply((uint64_t)count_elements(&packed), (uint64_t)p->element);
    return tn_checked_round_up(bytes, 64, &bytes) ? bytes : UINT64_MAX;
}

uint64_t product_scratch(struct blas_product *p, const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], *b = &query->inputs[1];
    uint64_t bytes = tn_saturated_add(p->a.packed ? blas_matmul_packed_bytes(p, a) : 0,
                                      p->b.packed ? blas_matmul_packed_bytes(p, b) : 0);
    if (query->fused)
        return product_choose_block(p, a->dtype)
                   ? tn_saturated_add(bytes, tn_saturated_multiply((uint64_t)p->block_bytes,
                                                                   query->num_workers))
                   : UINT64_MAX;
    if (!blas_matmul_is_narrow(a->dtype))
        return bytes;
    // No overflow: the output has as many.
    uint64_t elements = (uint64_t)(p->batch * p->m * p->n);
    return tn_saturated_add(bytes, tn_saturated_multiply(elements, (uint64_t)p->element));
}

uint64_t product_panel_scratch(struct blas_product *p, const tn_kernel_query *query)
{
    int64_t each = p->panel_bytes;
    if (query->fused || blas_matmul_is_narrow(p->operand_dtype)) {
        if (product_choose_block(p, p->operand_dtype))
            each += p->block_bytes;
        else if (query->fused)
            return UINT64_MAX;
    }
    const uint64_t all = tn_saturated_multiply((uint64_t)each, query->num_workers);
    return query->num_workers > 1 && product_shares(p)
               ? tn_saturated_add(all, (uint64_t)product_shared_bytes(p))
               : all;
}

struct blas_matmul_packing {
    const struct cpu_kernels *kernels;
    const char *from;
    char *to;
    tn_layout layout; // of the source, axes in packed order
    int32_t dtype;    // of the packed elements
    int64_t row;      // elements of the last axis
};

#define PACK_BLOCK 1024 // elements

// Packs one row, and converts its elements.
static void pack_row(const struct blas_matmul_packing *p, const char *from, char *to)
{
    unsigned char block[PACK_BLOCK * 8];
    int64_t stride = p->layout.stride[p->layout.rank - 1];
    uint32_t size = cpu_dtype_size(p->layout.dtype),
             size_log2 = (uint32_t)__builtin_ctz(size);
    cpu_map_fn *cast = p->kernels->cast[p->layout.dtype][p->dtype];

    if (p->layout.dtype == p->dtype) {
        p->kernels->copy[size_log2](to, 1, from, stride, p->row);
        return;
    }
    for (int64_t i = 0; i < p->row; i += PACK_BLOCK) {
        int64_t n = p->row - i < PACK_BLOCK ? p->row - i : PACK_BLOCK;
        const void *in = from + i * stride * size;
        if (stride != 1) {
            p->kernels->copy[size_log2](block, 1, in, stride, n);
            in = block;
        }
        cast(to + i * (int64_t)cpu_dtype_size(p->dtype), &in, n, 0);
    }
}

static void blas_matmul_pack_rows(void *context, int64_t begin, int64_t end,
                                  uint32_t worker)
{
    (void)worker;
    const struct blas_matmul_packing *p = context;
    const tn_layout *layout = &p->layout;
    int64_t last = layout->rank - 1, size = cpu_dtype_size(layout->dtype);

    for (int64_t i = begin; i < end;) {
        int64_t offset = 0, rest = i, rows = 1;
        for (int64_t axis = last - 1; axis >= 0; axis--) {
            offset += rest % layout->extent[axis] * layout->stride[axis];
            rest /= layout->extent[axis];
        }
        const char *from = p->from + offset * size;
        char *to = p->to + i * p->row * (int64_t)cpu_dtype_size(p->dtype);
        if (last > 0 && layout->dtype == p->dtype && layout->stride[last - 1] == 1) {
            int64_t left = layout->extent[last - 1] - i % layout->extent[last - 1];
            rows = end - i < left ? end - i : left;
            p->kernels->transpose[__builtin_ctz((uint32_t)size)](
                to, p->row, from, layout->stride[last], p->row, rows);
        } else {
            pack_row(p, from, to);
        }
        i += rows;
    }
}

// Packs the operand to `to`; *x and batch_stride then describe the packed matrices.
static void blas_matmul_pack(const tn_cpu_call *call, const struct blas_product *p,
                             const tn_tensor *tensor, char *to, struct blas_matrix *x,
                             int64_t rows, int64_t columns, int64_t *batch_stride)
{
    bool by_columns = keeps_columns(p, &tensor->layout);
    struct blas_matmul_packing packing = {.kernels = p->kernels,
                                          .from = first_element(tensor),
                                          .to = to,
                                          .layout =
                                              packed_layout(&tensor->layout, by_columns),
                                          .dtype = p->dtype};
    const tn_layout *layout = &packing.layout;
    int64_t step = rows * columns;

    packing.row = layout->extent[layout->rank - 1];
    if (packing.row > 0)
        call->parallel_for(call, count_elements(layout) / packing.row,
                           1 + 16384 / packing.row, blas_matmul_pack_rows, &packing);
    x->data = to;
    x->row_stride = by_columns ? 1 : columns;
    x->column_stride = by_columns ? rows : 1;
    set_storage(x, rows, columns);
    for (int64_t i = p->rank - 1, axis = layout->rank - 3; i >= 0 && axis >= 0;
         i--, axis--) {
        batch_stride[i] = layout->extent[axis] == 1 ? 0 : step;
        step *= layout->extent[axis];
    }
}

char *product_pack(const tn_cpu_call *call, struct blas_product *p)
{
    const tn_tensor *a = &call->inputs[0], *b = &call->inputs[1];
    char *scratch = call->scratch;
    p->a.data = first_element(a);
    p->b.data = first_element(b);
    if (p->a.packed) {
        blas_matmul_pack(call, p, a, scratch, &p->a, p->m, p->k, p->a_stride);
        scratch += blas_matmul_packed_bytes(p, &a->layout);
    }
    if (p->b.packed) {
        blas_matmul_pack(call, p, b, scratch, &p->b, p->k, p->n, p->b_stride);
        scratch += blas_matmul_packed_bytes(p, &b->layout);
    }
    return scratch;
}

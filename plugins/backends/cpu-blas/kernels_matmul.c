// SPDX-License-Identifier: MIT
// base.matmul/1 with OpenBLAS. Matrices are taken as they lie when one of their axes has
// stride 1: rows, columns (a transposed view) and gaps between them cost nothing. Others
// (broadcast or reversed axes) are packed first.
//
// OpenBLAS computes on one thread here, and our pool splits the product: two pools would
// spin against each other.
#include <limits.h>
#include <math.h>
#include <string.h>
#include <tenon/ops/base_attrs.h>
#include "blas.h"
#include "kernels.h"

// Multiplications below which one thread is quicker, and a piece's least share.
#define SERIAL_WORK 100000
#define PIECE_ALIGN 16 // rows or columns: a multiple of OpenBLAS's blocks in registers

struct matrix {
    const char *data;
    int64_t row_stride, column_stride; // elements
    int transpose;                     // BLAS_NO_TRANS: rows lie together
    int leading;
    bool packed;
};

struct product {
    const struct blas *blas;
    int64_t m, n, k, batch;
    int64_t element; // bytes
    struct matrix a, b;
    int64_t rank; // of the batch axes
    int64_t extent[TN_MAX_RANK], a_stride[TN_MAX_RANK], b_stride[TN_MAX_RANK]; // elements
    char *c;
    int64_t parts_m, parts_n; // of each matrix
};

// Can BLAS read it as it lies? Then fills transpose and leading.
static bool set_storage(struct matrix *x, int64_t rows, int64_t columns)
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

// Extents and strides of a matrix of `layout`; a vector is a row (a) or a column (b).
static void read_matrix(const tn_layout *layout, bool is_row, struct matrix *x,
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

// Batch axes of both, aligned at their ends; broadcast ones have stride 0.
static void read_batch(const tn_layout *a, const tn_layout *b, struct product *p)
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

static void read_product(const tn_layout *a, const tn_layout *b, struct product *p)
{
    int64_t k;
    *p = (struct product){.element = cpu_dtype_size(a->dtype)};
    read_matrix(a, true, &p->a, &p->m, &p->k);
    read_matrix(b, false, &p->b, &k, &p->n);
    read_batch(a, b, p);
    p->a.packed = !set_storage(&p->a, p->m, p->k);
    p->b.packed = !set_storage(&p->b, p->k, p->n);
}

// Matrices one after the other that packing makes: all of an operand's own.
static int64_t packed_elements(const tn_layout *layout)
{
    return (count_elements(layout) + 15) & ~INT64_C(15);
}

static uint64_t matmul_scratch(const tn_kernel_query *query)
{
    struct product p;
    read_product(&query->inputs[0], &query->inputs[1], &p);
    int64_t elements = (p.a.packed ? packed_elements(&query->inputs[0]) : 0) +
                       (p.b.packed ? packed_elements(&query->inputs[1]) : 0);
    return (uint64_t)(elements * p.element);
}

static int32_t matmul_accepts(const tn_kernel_query *query)
{
    struct product p;
    if (!blas_open())
        return 0;
    read_product(&query->inputs[0], &query->inputs[1], &p);
    return p.m <= INT_MAX && p.n <= INT_MAX && p.k <= INT_MAX;
}

// --- packing ---------------------------------------------------------------------------

struct packing {
    const tn_tensor *tensor;
    char *to;
    const struct cpu_kernels *kernels;
    int64_t row; // elements of the last axis
};

static void pack_rows(void *context, int64_t begin, int64_t end)
{
    const struct packing *packing = context;
    const tn_layout *layout = &packing->tensor->layout;
    int32_t last = layout->rank - 1;
    uint32_t size = cpu_dtype_size(layout->dtype);

    for (int64_t i = begin; i < end; i++) {
        int64_t offset = 0, rest = i;
        for (int32_t axis = last - 1; axis >= 0; axis--) {
            offset += rest % layout->extent[axis] * layout->stride[axis];
            rest /= layout->extent[axis];
        }
        packing->kernels->copy[size == 8 ? 3 : 2](
            packing->to + i * packing->row * size, 1,
            (const char *)first_element(packing->tensor) + offset * size,
            layout->stride[last], packing->row);
    }
}

// Writes the operand row-major to `to`, and describes the result.
static void pack(const tn_cpu_call *call, const tn_tensor *tensor, char *to,
                 struct matrix *x, int64_t rows, int64_t columns, const int64_t rank,
                 int64_t *batch_stride)
{
    const tn_layout *layout = &tensor->layout;
    int64_t row = layout->extent[layout->rank - 1], step = rows * columns;
    struct packing packing = {tensor, to, kernel_variant(call), row};
    if (row > 0)
        call->parallel_for(call, count_elements(layout) / row, 1 + 16384 / row, pack_rows,
                           &packing);
    x->data = to;
    x->row_stride = columns;
    x->column_stride = 1;
    set_storage(x, rows, columns);
    for (int64_t i = rank - 1, axis = layout->rank - 3; i >= 0 && axis >= 0; i--, axis--) {
        batch_stride[i] = layout->extent[axis] == 1 ? 0 : step;
        step *= layout->extent[axis];
    }
}

// --- computing -------------------------------------------------------------------------

static void multiply(const struct product *p, const char *a, const char *b, char *c,
                     int64_t m, int64_t n)
{
    if (p->element == 4)
        p->blas->sgemm(BLAS_ROW_MAJOR, p->a.transpose, p->b.transpose, (int)m, (int)n,
                       (int)p->k, 1, (const float *)(const void *)a, p->a.leading,
                       (const float *)(const void *)b, p->b.leading, 0, (float *)(void *)c,
                       (int)p->n);
    else
        p->blas->dgemm(BLAS_ROW_MAJOR, p->a.transpose, p->b.transpose, (int)m, (int)n,
                       (int)p->k, 1, (const double *)(const void *)a, p->a.leading,
                       (const double *)(const void *)b, p->b.leading, 0,
                       (double *)(void *)c, (int)p->n);
}

// Part `i` of `parts` of [0, extent): its bounds, multiples of PIECE_ALIGN.
static void bounds(int64_t extent, int64_t parts, int64_t i, int64_t *begin, int64_t *end)
{
    int64_t size = (extent + parts - 1) / parts;
    size = (size + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
    *begin = i * size < extent ? i * size : extent;
    *end = *begin + size < extent ? *begin + size : extent;
}

// Elements between the first of a matrix and that of row (or column) `i`.
static int64_t row_offset(const struct matrix *x, int64_t i)
{
    return x->transpose == BLAS_NO_TRANS ? i * x->leading : i;
}
static int64_t column_offset(const struct matrix *x, int64_t i)
{
    return x->transpose == BLAS_NO_TRANS ? i : i * x->leading;
}

static void multiply_pieces(void *context, int64_t begin, int64_t end)
{
    const struct product *p = context;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t part_n = piece % p->parts_n, rest = piece / p->parts_n;
        int64_t part_m = rest % p->parts_m, batch = rest / p->parts_m;
        int64_t m0, m1, n0, n1, a = 0, b = 0, index = batch;

        for (int64_t i = p->rank - 1; i >= 0; i--) {
            a += index % p->extent[i] * p->a_stride[i];
            b += index % p->extent[i] * p->b_stride[i];
            index /= p->extent[i];
        }
        bounds(p->m, p->parts_m, part_m, &m0, &m1);
        bounds(p->n, p->parts_n, part_n, &n0, &n1);
        if (m0 == m1 || n0 == n1)
            continue;
        a += row_offset(&p->a, m0);
        b += column_offset(&p->b, n0);
        multiply(p, p->a.data + a * p->element, p->b.data + b * p->element,
                 p->c + (batch * p->m * p->n + m0 * p->n + n0) * p->element, m1 - m0,
                 n1 - n0);
    }
}

// Splits each matrix when there are fewer of them than threads: along the longer side.
static void choose_parts(struct product *p, int64_t threads)
{
    p->parts_m = p->parts_n = 1;
    if (p->batch >= threads)
        return;
    int64_t wanted = (threads + p->batch - 1) / p->batch;
    while (p->parts_m * p->parts_n < wanted) {
        bool by_rows = p->m / p->parts_m >= p->n / p->parts_n;
        int64_t *parts = by_rows ? &p->parts_m : &p->parts_n;
        int64_t left = wanted / (p->parts_m * p->parts_n);
        *parts *= left % 2 == 0 || left < 2 ? 2 : left;
    }
}

static void compute(const tn_cpu_call *call, struct product *p)
{
    double work = (double)p->m * (double)p->n * (double)p->k;
    p->parts_m = p->parts_n = 1;
    if (work * (double)p->batch <= SERIAL_WORK || call->num_threads == 1) {
        multiply_pieces(p, 0, p->batch);
        return;
    }
    choose_parts(p, call->num_threads);
    int64_t pieces = p->batch * p->parts_m * p->parts_n;
    double piece_work = work * (double)p->batch / (double)pieces;
    int64_t grain = 1 + (int64_t)(SERIAL_WORK / (piece_work + 1));
    call->parallel_for(call, pieces, grain, multiply_pieces, p);
}

static tn_status matmul(const tn_cpu_call *call)
{
    struct product p;
    read_product(&call->inputs[0].layout, &call->inputs[1].layout, &p);
    p.c = first_element(&call->outputs[0]);
    uint64_t out_bytes = (uint64_t)(p.batch * p.m * p.n * p.element);
    if (out_bytes == 0)
        return TN_OK;
    if (p.k == 0) {
        memset(p.c, 0, out_bytes);
        return TN_OK;
    }
    char *scratch = call->scratch;
    p.a.data = first_element(&call->inputs[0]);
    p.b.data = first_element(&call->inputs[1]);
    if (p.a.packed) {
        pack(call, &call->inputs[0], scratch, &p.a, p.m, p.k, p.rank, p.a_stride);
        scratch += packed_elements(&call->inputs[0].layout) * p.element;
    }
    if (p.b.packed)
        pack(call, &call->inputs[1], scratch, &p.b, p.k, p.n, p.rank, p.b_stride);
    p.blas = blas_enter();
    if (!p.blas)
        return call->host->fail(call->host, TN_ERR_UNSUPPORTED,
                                "libopenblas.so.0 is not installed");
    compute(call, &p);
    blas_leave();
    return TN_OK;
}

static const tn_operand_rule matmul_rules[] = {
    {TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64), TN_NEEDS_ANY},
};
static const tn_cpu_kernel matmul_payload = {
    .struct_size = sizeof(matmul_payload),
    .launch = matmul,
};
const tn_kernel matmul_kernel = {
    .struct_size = sizeof(matmul_kernel),
    .flags = TN_KERNEL_SAME_DTYPE,
    .primitive = "base.matmul/1",
    .family = TN_FAMILY_CPU,
    .name = "openblas",
    .priority = 700,
    .num_operands = 1,
    .operands = matmul_rules,
    .accepts = matmul_accepts,
    .scratch_size = matmul_scratch,
    .payload = &matmul_payload,
};

// SPDX-License-Identifier: MIT
// base.matmul/1: floats and complex numbers in OpenBLAS, integers in Tenon's own loops. A
// matrix with stride 1 along rows or columns (a transposed view) is read in its own memory,
// with any gaps. Others (broadcast or reversed axes) are packed first, and so are half
// floats, which are computed in f32 and rounded once at the end.
//
// OpenBLAS runs on one thread here and the pool splits the product, because two pools would
// spin against each other. If OpenBLAS has threads nevertheless, it splits the product
// instead.
#include <limits.h>
#include <math.h>
#include <string.h>
#include "matmul.h"

// Multiplications below which one thread is faster; also the least of a piece.
#define SERIAL_WORK 100000
#define PIECE_ALIGN 16 // rows or columns: a multiple of OpenBLAS' register block

// --- computing -------------------------------------------------------------------------

static void multiply_complex(const struct product *p, const char *a, const char *b, char *c,
                             int64_t m, int64_t n, int64_t leading)
{
    static const tn_complex64 one = {1, 0}, zero = {0, 0};
    static const tn_complex128 wide_one = {1, 0}, wide_zero = {0, 0};
    bool is_wide = p->dtype == TN_COMPLEX128;
    const void *alpha = is_wide ? (const void *)&wide_one : &one;
    const void *beta = is_wide ? (const void *)&wide_zero : &zero;
    (is_wide ? p->blas->zgemm : p->blas->cgemm)(
        BLAS_ROW_MAJOR, p->a.transpose, p->b.transpose, (int)m, (int)n, (int)p->k, alpha, a,
        p->a.leading, b, p->b.leading, beta, c, (int)leading);
}

// Writes m x n elements to `c`, whose rows are `leading` elements apart.
static void multiply(const struct product *p, const char *a, const char *b, char *c,
                     int64_t m, int64_t n, int64_t leading)
{
    if (!product_by_blas(p->dtype))
        p->kernels->product[p->dtype](&(struct cpu_product){.a = a,
                                                            .b = b,
                                                            .c = c,
                                                            .m = m,
                                                            .n = n,
                                                            .k = p->k,
                                                            .a_row = p->a.row_stride,
                                                            .a_column = p->a.column_stride,
                                                            .b_row = p->b.row_stride,
                                                            .c_row = leading});
    else if (tn_is_complex(p->dtype))
        multiply_complex(p, a, b, c, m, n, leading);
    else if (p->dtype == TN_F32)
        p->blas->sgemm(BLAS_ROW_MAJOR, p->a.transpose, p->b.transpose, (int)m, (int)n,
                       (int)p->k, 1, (const float *)(const void *)a, p->a.leading,
                       (const float *)(const void *)b, p->b.leading, 0, (float *)(void *)c,
                       (int)leading);
    else
        p->blas->dgemm(BLAS_ROW_MAJOR, p->a.transpose, p->b.transpose, (int)m, (int)n,
                       (int)p->k, 1, (const double *)(const void *)a, p->a.leading,
                       (const double *)(const void *)b, p->b.leading, 0,
                       (double *)(void *)c, (int)leading);
}

// The bounds of part `i` of [0, extent): multiples of PIECE_ALIGN, or the end.
static void bounds(int64_t extent, int64_t parts, int64_t i, int64_t *begin, int64_t *end)
{
    int64_t size = (extent + parts - 1) / parts;
    size = (size + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
    *begin = i * size < extent ? i * size : extent;
    *end = *begin + size < extent ? *begin + size : extent;
}

// Computes m x n elements in the worker's scratch memory, and stores them while they are in
// the cache. `first`: the number of the first element.
static void multiply_block(const struct product *p, const char *a, const char *b,
                           int64_t first, int64_t m, int64_t n, uint32_t worker)
{
    char *block = p->blocks + worker * p->block_bytes, *values = block;
    const void *in = block;
    int64_t size = p->round ? 2 : p->element;
    multiply(p, a, b, block, m, n, n);
    if (p->round) {
        values += p->block_rows * p->block_columns * p->element;
        p->round(values, &in, m * n, 0);
    }
    if (n == p->n) {
        p->call->store(p->call, 0, first, m * n, values, worker);
        return;
    }
    for (int64_t row = 0; row < m; row++)
        p->call->store(p->call, 0, first + row * p->n, n, values + row * n * size, worker);
}

static void multiply_blocks(const struct product *p, const char *a, const char *b,
                            int64_t first, int64_t m, int64_t n, uint32_t worker)
{
    for (int64_t row = 0; row < m; row += p->block_rows)
        for (int64_t column = 0; column < n; column += p->block_columns) {
            int64_t rows = m - row < p->block_rows ? m - row : p->block_rows;
            int64_t columns = n - column < p->block_columns ? n - column : p->block_columns;
            multiply_block(p, a + row * p->a.row_stride * p->element,
                           b + column * p->b.column_stride * p->element,
                           first + row * p->n + column, rows, columns, worker);
        }
}

static void multiply_pieces(void *context, int64_t begin, int64_t end, uint32_t worker)
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
        a += m0 * p->a.row_stride;
        b += n0 * p->b.column_stride;
        const char *from_a = p->a.data + a * p->element,
                   *from_b = p->b.data + b * p->element;
        int64_t first = (batch * p->m + m0) * p->n + n0;
        if (p->blocks)
            multiply_blocks(p, from_a, from_b, first, m1 - m0, n1 - n0, worker);
        else
            multiply(p, from_a, from_b, p->c + first * p->element, m1 - m0, n1 - n0, p->n);
    }
}

// Splits each matrix, along its longer side, if the batch has fewer matrices than there are
// threads.
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
    if (work * (double)p->batch <= SERIAL_WORK || call->num_threads == 1 ||
        (p->blas && blas_is_threaded())) {
        multiply_pieces(p, 0, p->batch, 0);
        return;
    }
    choose_parts(p, call->num_threads);
    int64_t pieces = p->batch * p->parts_m * p->parts_n;
    double piece_work = work * (double)p->batch / (double)pieces;
    int64_t grain = 1 + (int64_t)(SERIAL_WORK / (piece_work + 1));
    call->parallel_for(call, pieces, grain, multiply_pieces, p);
}

// --- halves ----------------------------------------------------------------------------

struct rounding {
    cpu_map_fn *cast;
    const char *from;
    char *to;
};

static void round_elements(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct rounding *rounding = context;
    const void *in = rounding->from + begin * 4;
    rounding->cast(rounding->to + begin * 2, &in, end - begin, 0);
}

// --- launching -------------------------------------------------------------------------

static tn_status multiply_all(const tn_cpu_call *call, struct product *p)
{
    if (!product_by_blas(p->dtype)) {
        compute(call, p);
        return TN_OK;
    }
    tn_status status = blas_enter(call, &p->blas);
    if (status != TN_OK)
        return status;
    compute(call, p);
    blas_leave();
    return TN_OK;
}

static tn_status matmul(const tn_cpu_call *call)
{
    const tn_tensor *out = &call->outputs[0];
    struct product p;
    product_read(&call->inputs[0].layout, &call->inputs[1].layout, &p);
    int64_t count = p.batch * p.m * p.n;
    if (count == 0)
        return TN_OK;
    if (p.k == 0) {
        memset(first_element(out), 0, (size_t)count * cpu_dtype_size(out->layout.dtype));
        return TN_OK;
    }
    p.kernels = kernel_variant(call);
    char *scratch = product_pack(call, &p);
    bool converted = out->layout.dtype != p.dtype;
    if (!out->data) {
        p.call = call;
        p.round = converted ? p.kernels->cast[p.dtype][out->layout.dtype] : NULL;
        p.blocks = scratch;
        (void)product_choose_block(&p, call->inputs[0].layout.dtype);
        return multiply_all(call, &p);
    }
    p.c = converted ? scratch : first_element(out);
    tn_status status = multiply_all(call, &p);
    if (status != TN_OK || !converted)
        return status;
    struct rounding rounding = {p.kernels->cast[p.dtype][out->layout.dtype], p.c,
                                first_element(out)};
    call->parallel_for(call, count, 16384, round_elements, &rounding);
    return TN_OK;
}

static uint64_t matmul_scratch(const tn_kernel_query *query)
{
    struct product p;
    product_read(&query->inputs[0], &query->inputs[1], &p);
    return product_scratch(&p, query);
}

static int32_t matmul_accepts(const tn_kernel_query *query)
{
    struct product p;
    if (!blas_open())
        return 0;
    product_read(&query->inputs[0], &query->inputs[1], &p);
    return p.m <= INT_MAX && p.n <= INT_MAX && p.k <= INT_MAX &&
           (!query->fused || product_choose_block(&p, query->inputs[0].dtype));
}

static int32_t integer_accepts(const tn_kernel_query *query)
{
    struct product p;
    if (!query->fused)
        return 1;
    product_read(&query->inputs[0], &query->inputs[1], &p);
    return product_choose_block(&p, query->inputs[0].dtype);
}

#define FLOATS (TN_FLOAT_DTYPES | TN_COMPLEX_DTYPES)
#define INTEGERS (TN_INTEGER_DTYPES | TN_DTYPE_BIT(TN_BOOL))
static const tn_operand_rule float_rules[] = {{FLOATS, TN_NEEDS_ANY},
                                              {FLOATS, TN_NEEDS_ANY},
                                              {FLOATS, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
static const tn_operand_rule integer_rules[] = {{INTEGERS, TN_NEEDS_ANY},
                                                {INTEGERS, TN_NEEDS_ANY},
                                                {INTEGERS, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
static const tn_cpu_kernel matmul_payload = {
    .struct_size = sizeof(matmul_payload),
    .launch = matmul,
};
#define RECORD(id, text, rules, ...)                                                       \
    const tn_kernel id = {.struct_size = sizeof(tn_kernel),                                \
                          .flags = TN_KERNEL_SAME_DTYPE,                                   \
                          .primitive = "base.matmul/1",                                    \
                          .family = TN_FAMILY_CPU,                                         \
                          .name = text,                                                    \
                          .priority = 700,                                                 \
                          TN_OPERANDS(rules),                                              \
                          .scratch_size = matmul_scratch,                                  \
                          .payload = &matmul_payload,                                      \
                          __VA_ARGS__}
RECORD(matmul_kernel, "openblas", float_rules, .accepts = matmul_accepts);
RECORD(matmul_integer_kernel, "blocked", integer_rules, .accepts = integer_accepts);
#undef RECORD

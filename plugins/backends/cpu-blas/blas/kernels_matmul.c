// SPDX-License-Identifier: MIT
// base.matmul/1: floats in Tenon's own loops ("panels"), which take any strides, where
// these are faster, else in OpenBLAS, as most complex numbers are; integers in Tenon's own
// loops ("blocked"). For OpenBLAS a matrix with stride 1 along rows or columns (a
// transposed view) is read in its own memory, with any gaps; others (broadcast or reversed
// axes) are packed first. Half floats are computed in f32 and rounded once at the end.
//
// OpenBLAS runs on one thread here and the pool splits the product, because two pools would
// spin against each other. If OpenBLAS has threads nevertheless, it splits the product
// instead.
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include "matmul.h"

// Multiplications below which one thread is faster; also the least of a piece.
#define SERIAL_WORK 100000
#define PIECE_ALIGN 16  // rows or columns: a multiple of OpenBLAS' register block
#define SHARED_PIECES 4 // of a thread, where threads share b's copy: they differ in speed
#define LARGE_WORK 1e8  // multiplications
#define BF16_PIECES 2   // where each has a copy of its own

// --- computing -------------------------------------------------------------------------

static void cpu_matmul_multiply_complex(const struct blas_product *p, const char *a,
                                        const char *b, char *c, int64_t m, int64_t n,
                                        int64_t leading)
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

// Writes m x n elements to `c`, whose rows are `leading` elements apart. `b` points at
// column `column` of the operand.
static void cpu_matmul_multiply(const struct blas_product *p, const char *a, const char *b,
                                int64_t column, char *c, int64_t m, int64_t n,
                                int64_t leading, uint32_t worker)
{
    if (p->panels)
        p->panels->multiply(
            &(struct cpu_panels){.a = a,
                                 .b = b,
                                 .c = c,
                                 .scratch = p->panel_memory + worker * p->panel_bytes,
                                 .m = m,
                                 .n = n,
                                 .k = p->k,
                                 .a_row = p->a.row_stride,
                                 .a_column = p->a.column_stride,
                                 .b_row = p->b.row_stride,
                                 .b_column = p->b.column_stride,
                                 .c_row = leading,
                                 .dtype = p->operand_dtype,
                                 .packed = p->shared,
                                 .packed_first = column,
                                 .packed_columns = p->n});
    else if (!product_by_blas(p->dtype))
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
        cpu_matmul_multiply_complex(p, a, b, c, m, n, leading);
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

// The bounds of part `i` of [0, extent): multiples of `unit`, or the end.
static void cpu_matmul_bounds(int64_t extent, int64_t unit, int64_t parts, int64_t i,
                              int64_t *begin, int64_t *end)
{
    int64_t size = (extent + parts - 1) / parts;
    size = (size + unit - 1) / unit * unit;
    *begin = i * size < extent ? i * size : extent;
    *end = *begin + size < extent ? *begin + size : extent;
}

// Computes m x n elements in the worker's scratch memory, and stores them while they are in
// the cache. `first`: the number of the first element.
static void cpu_matmul_multiply_block(const struct blas_product *p, const char *a,
                                      const char *b, int64_t first, int64_t m, int64_t n,
                                      uint32_t worker)
{
    char *block = p->blocks + worker * p->block_bytes, *values = block;
    const void *in = block;
    int64_t size = p->round ? 2 : p->element;
    cpu_matmul_multiply(p, a, b, first % p->n, block, m, n, n, worker);
    if (p->out) {
        for (int64_t row = 0; row < m; row++) {
            in = block + row * n * p->element;
            p->round(p->out + (first + row * p->n) * size, &in, n, 0);
        }
        return;
    }
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

static void cpu_matmul_multiply_blocks(const struct blas_product *p, const char *a,
                                       const char *b, int64_t first, int64_t m, int64_t n,
                                       uint32_t worker)
{
    for (int64_t row = 0; row < m; row += p->block_rows)
        for (int64_t column = 0; column < n; column += p->block_columns) {
            int64_t rows = m - row < p->block_rows ? m - row : p->block_rows;
            int64_t columns = n - column < p->block_columns ? n - column : p->block_columns;
            cpu_matmul_multiply_block(p, a + row * p->a.row_stride * p->operand,
                                      b + column * p->b.column_stride * p->operand,
                                      first + row * p->n + column, rows, columns, worker);
        }
}

static void multiply_pieces(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct blas_product *p = context;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t part_n = piece % p->parts_n, rest = piece / p->parts_n;
        int64_t part_m = rest % p->parts_m, batch = rest / p->parts_m;
        int64_t m0, m1, n0, n1, a = 0, b = 0, index = batch;

        for (int64_t i = p->rank - 1; i >= 0; i--) {
            a += index % p->extent[i] * p->a_stride[i];
            b += index % p->extent[i] * p->b_stride[i];
            index /= p->extent[i];
        }
        cpu_matmul_bounds(p->m, PIECE_ALIGN, p->parts_m, part_m, &m0, &m1);
        cpu_matmul_bounds(p->n, p->shared ? CPU_PANELS_WIDTH : PIECE_ALIGN, p->parts_n,
                          part_n, &n0, &n1);
        if (m0 == m1 || n0 == n1)
            continue;
        a += m0 * p->a.row_stride;
        b += n0 * p->b.column_stride;
        const char *from_a = p->a.data + a * p->operand,
                   *from_b = p->b.data + b * p->operand;
        int64_t first = (batch * p->m + m0) * p->n + n0;
        if (p->blocks)
            cpu_matmul_multiply_blocks(p, from_a, from_b, first, m1 - m0, n1 - n0, worker);
        else
            cpu_matmul_multiply(p, from_a, from_b, n0, p->c + first * p->element, m1 - m0,
                                n1 - n0, p->n, worker);
    }
}

// Splits each matrix, along its longer side, if the batch has fewer matrices than there are
// threads.
static void cpu_matmul_choose_parts(struct blas_product *p, int64_t threads)
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

// Copies panels of b to where all threads read them.
static void share_columns(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct blas_product *p = context;
    const int64_t last = end * CPU_PANELS_WIDTH;
    (void)worker;
    p->panels->pack(&(struct cpu_panels){.b = p->b.data,
                                         .n = p->n,
                                         .k = p->k,
                                         .b_row = p->b.row_stride,
                                         .b_column = p->b.column_stride,
                                         .dtype = p->operand_dtype},
                    begin * CPU_PANELS_WIDTH, last < p->n ? last : p->n, p->shared);
}

static void cpu_matmul_compute(const tn_cpu_call *call, struct blas_product *p)
{
    double work = (double)p->m * (double)p->n * (double)p->k;
    p->parts_m = p->parts_n = 1;
    if (work * (double)p->batch <= SERIAL_WORK || call->num_threads == 1 ||
        (p->blas && blas_is_threaded())) {
        multiply_pieces(p, 0, p->batch, 0);
        return;
    }
    if (p->shared)
        call->parallel_for(call, (p->n + CPU_PANELS_WIDTH - 1) / CPU_PANELS_WIDTH, 1,
                           share_columns, p);
    const bool is_bf16 = p->panels && p->operand_dtype == TN_BF16 && work >= LARGE_WORK;
    cpu_matmul_choose_parts(p, call->num_threads * (p->shared ? SHARED_PIECES
                                                    : is_bf16 ? BF16_PIECES
                                                              : 1));
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

static tn_status cpu_matmul_multiply_all(const tn_cpu_call *call, struct blas_product *p)
{
    if (!product_by_blas(p->dtype)) {
        cpu_matmul_compute(call, p);
        return TN_OK;
    }
    tn_status status = blas_enter(call, &p->blas);
    if (status != TN_OK)
        return status;
    cpu_matmul_compute(call, p);
    blas_leave();
    return TN_OK;
}

static tn_status matmul(const tn_cpu_call *call)
{
    const tn_tensor *out = &call->outputs[0];
    struct blas_product p;
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
        return cpu_matmul_multiply_all(call, &p);
    }
    p.c = converted ? scratch : first_element(out);
    tn_status status = cpu_matmul_multiply_all(call, &p);
    if (status != TN_OK || !converted)
        return status;
    struct rounding rounding = {p.kernels->cast[p.dtype][out->layout.dtype], p.c,
                                first_element(out)};
    call->parallel_for(call, count, 16384, round_elements, &rounding);
    return TN_OK;
}

static tn_status panels(const tn_cpu_call *call)
{
    const tn_tensor *out = &call->outputs[0];
    struct blas_product p;
    product_read_unpacked(&call->inputs[0].layout, &call->inputs[1].layout, &p);
    int64_t count = p.batch * p.m * p.n;
    bool converted = out->layout.dtype != p.dtype;
    if (count == 0)
        return TN_OK;
    if (p.k == 0) {
        memset(first_element(out), 0, (size_t)count * cpu_dtype_size(out->layout.dtype));
        return TN_OK;
    }
    p.call = call;
    p.kernels = kernel_variant(call);
    p.panels = panels_variant(call);
    p.panel_memory = call->scratch;
    if (call->num_threads > 1 && product_shares(&p)) {
        p.shared = call->scratch;
        p.panel_memory += product_shared_bytes(&p);
    }
    p.a.data = first_element(&call->inputs[0]);
    p.b.data = first_element(&call->inputs[1]);
    if (!out->data || converted) {
        (void)product_choose_block(&p, p.operand_dtype);
        p.blocks = p.panel_memory + call->num_threads * p.panel_bytes;
        p.round = converted ? p.kernels->cast[p.dtype][out->layout.dtype] : NULL;
        p.out = out->data ? first_element(out) : NULL;
    } else {
        p.c = first_element(out);
    }
    cpu_matmul_compute(call, &p);
    return TN_OK;
}

static uint64_t panels_scratch(const tn_kernel_query *query)
{
    struct blas_product p;
    product_read_unpacked(&query->inputs[0], &query->inputs[1], &p);
    return product_panel_scratch(&p, query);
}

// Features that the loops use, kept: a virtual machine takes microseconds to answer CPUID.
#define IS_KNOWN (UINT32_C(1) << 31)
static _Atomic uint32_t known_features;

void product_limit(uint32_t features)
{
    atomic_store_explicit(&known_features, features | IS_KNOWN, memory_order_relaxed);
}

// The features that a device of this backend uses; without one, all of the processor's.
static uint32_t used_features(void)
{
    if (!atomic_load_explicit(&known_features, memory_order_relaxed))
        product_limit(cpu_features());
    return atomic_load_explicit(&known_features, memory_order_relaxed);
}

// Whether panels compute p faster than OpenBLAS 0.3.21, on one core of a Xeon (Emerald
// Rapids). GFLOP/s of panels and OpenBLAS there, m x k x n; OpenBLAS converts halves first:
//
//                              AVX-512 (SkylakeX):   bf16       AVX2 (Haswell):
//                              f32        f64                   f32        f64
// few: 1 x 4096 x 4096         14   4                27   2
//      8 x 512 x 512          157  60               101  23     69  38
//      8 x 256 x 256          145 174                           70  37
// 1024 x 1024 x 1024          153 156     72  72    147 147     79  82     39  39
// 512 x 512 x 512             158 157     73  71                83  82     40  40
// 64 x 1024 x 1024            147 115     70  58                74  74     36  35
// its b transposed            117 112     57  57                70  69     37  34
// 16 x 4096 x 4096             80  48     32  29     43  26     38  46     18  22
// 4096 x 4096 x 16             72  66     37  21     45  40     49  38     25  18
// 2048 x 64 x 256             150 136     70  59    135 100     79  79     41  38
// 128 x 128 x 128             164 131     75  62    111  84     84  76     40  38
// 64 x 120 x 84               148 154     76  82     83 109     78  69     41  36
// 16 x 16 x 16                 72  95     54  66      8  13     53  40     32  24
//
// On another Xeon (Sapphire Rapids, the core of a virtual machine), in turns with MKL, of
// f32 1024 x 1024 x 1024 OpenBLAS reaches 153 (MKL 156) and panels 137 (MKL 148), 2048 x
// 2048 x 2048 157 (158) and 147 (158), 384 x 16384 x 384 137 and 135; of f64 62 and 71 for
// 512 x 512 x 512. Several threads share one copy of b in panels.
#define LARGE_SIDE 1024
static bool panels_are_faster(const struct blas_product *p, uint32_t workers)
{
    const bool is_half = p->operand != p->element, is_wide = p->dtype == TN_F64;
    const uint32_t features = used_features();
    const int64_t few_least = is_half ? 1 << 12 : INT64_C(1) << 18;
    const double work = (double)p->m * (double)p->n * (double)p->k;
    const bool few_rows =
        p->m <= CPU_PANELS_FEW && (p->b.row_stride == 1 || p->b.column_stride == 1);
    const bool few_columns =
        p->n <= CPU_PANELS_FEW &&
        (p->a.column_stride == 1 || (p->n == 1 && p->a.row_stride == 1));
    // 16 x 16 x 16 of complex64 88 and 67, 64 x 64 x 64 138 and 124, 256 x 256 x 256 157
    // and 153, 1024 x 1024 x 1024 146 and 151; with AVX2, and of complex128, OpenBLAS has
    // some per cent more.
    if (tn_is_complex(p->dtype))
        return features & CPU_HAS_AVX512 && p->dtype == TN_COMPLEX64 &&
               p->m > CPU_PANELS_FEW && p->n > CPU_PANELS_FEW && work >= 1 << 12 &&
               work <= 1 << 24;
    if (!(features & CPU_HAS_AVX2) && !is_half && !few_rows && !few_columns)
        return false; // OpenBLAS has loops for AVX
    if ((few_rows || few_columns) && is_wide)
        return false;
    if (few_rows || few_columns)
        return work / (double)(few_rows ? p->m : p->n) >= (double)few_least ||
               (!(features & CPU_HAS_AVX512) && p->n > 1);
    if (workers == 1 && !is_half && !is_wide && p->m >= LARGE_SIDE && p->n >= LARGE_SIDE &&
        p->k >= LARGE_SIDE)
        return false;
    if (features & CPU_HAS_AVX512 || is_half)
        return work >= 1 << 20;
    // Without AVX-512.
    return p->m > 32 || p->k * p->n < 1 << 22;
}

static int32_t panels_accepts(const tn_kernel_query *query)
{
    struct blas_product p;
    product_read_unpacked(&query->inputs[0], &query->inputs[1], &p);
    if (blas_open() && !panels_are_faster(&p, query->num_workers))
        return 0;
    return !query->fused || product_choose_block(&p, p.operand_dtype);
}

static uint64_t matmul_scratch(const tn_kernel_query *query)
{
    struct blas_product p;
    product_read(&query->inputs[0], &query->inputs[1], &p);
    return product_scratch(&p, query);
}

static int32_t cpu_matmul_accepts(const tn_kernel_query *query)
{
    struct blas_product p;
    if (!blas_open())
        return 0;
    product_read(&query->inputs[0], &query->inputs[1], &p);
    return p.m <= INT_MAX && p.n <= INT_MAX && p.k <= INT_MAX &&
           (!query->fused || product_choose_block(&p, query->inputs[0].dtype));
}

static int32_t integer_accepts(const tn_kernel_query *query)
{
    struct blas_product p;
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
static const tn_cpu_kernel panels_payload = {
    .struct_size = sizeof(panels_payload),
    .launch = panels,
};
#define RECORD(id, text, rules, of_kind, ...)                                              \
    const tn_kernel id = {.struct_size = sizeof(tn_kernel),                                \
                          .flags = TN_KERNEL_SAME_DTYPE,                                   \
                          .primitive = "base.matmul/1",                                    \
                          .family = TN_FAMILY_CPU,                                         \
                          .name = text,                                                    \
                          TN_OPERANDS(rules),                                              \
                          .scratch_size = of_kind##_scratch,                               \
                          .payload = &of_kind##_payload,                                   \
                          __VA_ARGS__}
RECORD(matmul_panels_kernel, "panels", float_rules, panels, .priority = 710,
       .accepts = panels_accepts);
RECORD(matmul_kernel, "openblas", float_rules, matmul, .priority = 700,
       .accepts = cpu_matmul_accepts);
RECORD(matmul_integer_kernel, "blocked", integer_rules, matmul, .priority = 700,
       .accepts = integer_accepts);
#undef RECORD

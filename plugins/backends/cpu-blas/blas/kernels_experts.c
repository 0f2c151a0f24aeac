// SPDX-License-Identifier: MIT
// quant.experts_matmul: the rows that chose one expert are one product, that of
// quant.quantized_matmul where its weights are blocks. Rows are gathered and results
// scattered around it, unless there is one.
#include <limits.h>
#include <string.h>
#include <tenon/ops/quant_attrs.h>
#include "blas.h"
#include "quant_matmul.h"
#include "ops/kernels.h"

#define PIECE_WORK 65536 // multiplications of a piece of a loop, at least
#define FLOAT_ROWS 64    // of weights that are floats, in a piece of a loop

// A launch. Pair p is row p / m of x and experts, entry p % m.
struct experts_run {
    const tn_cpu_call *call;
    const struct cpu_kernels *kernels;
    const uint8_t *w;
    const float *x;
    float *out;
    int64_t experts, n, m, k, r;
    int64_t bytes;   // of a matrix of w
    int64_t element; // of w, where they are floats: bytes,
    int32_t kind;    // and CPU_FEW_...
    bool is_shared;  // whether the pairs of a row share x
    bool is_apart;   // whether rows are gathered and results scattered
    int64_t *order;  // pairs by expert,
    int64_t *begin;  // and where those of each begin, and the last end
    float *rows, *results;
    void *scratch; // of the product
};

static bool cpu_experts_is_blocks(const tn_quant_experts_attrs *attrs)
{
    return attrs->format && *attrs->format;
}

static tn_layout cpu_experts_matrix(tn_dtype dtype, int64_t rows, int64_t columns)
{
    return (tn_layout){
        .dtype = dtype, .rank = 2, .extent = {rows, columns}, .stride = {columns, 1}};
}

// --- scratch memory ---------------------------------------------------------------------

static uint64_t cpu_experts_aligned(uint64_t bytes)
{
    return tn_saturated_add(bytes, 63) / 64 * 64;
}

static uint64_t floats_size(int64_t rows, int64_t columns)
{
    return cpu_experts_aligned(tn_saturated_multiply(
        tn_saturated_multiply((uint64_t)rows, (uint64_t)columns), sizeof(float)));
}

static uint64_t order_size(int64_t pairs, int64_t experts)
{
    return cpu_experts_aligned(tn_saturated_multiply(
        tn_saturated_add((uint64_t)pairs, (uint64_t)experts + 2), sizeof(int64_t)));
}

static uint64_t experts_scratch(const tn_kernel_query *query)
{
    const tn_quant_experts_attrs *attrs = query->attrs;
    const tn_layout *w = &query->inputs[1], *ids = &query->inputs[2];
    int64_t k = query->inputs[0].extent[2], r = w->extent[1], pairs = count_elements(ids);
    uint64_t size =
        tn_saturated_add(order_size(pairs, w->extent[0]),
                         tn_saturated_add(floats_size(pairs, k), floats_size(pairs, r)));
    if (!cpu_experts_is_blocks(attrs))
        return size;
    const tn_quant_matmul_attrs of_one = {attrs->format, attrs->exact};
    const tn_layout inputs[] = {cpu_experts_matrix(TN_F32, pairs, k),
                                cpu_experts_matrix(TN_U8, r, w->extent[2])};
    const tn_layout output = cpu_experts_matrix(TN_F32, pairs, r);
    tn_kernel_query one = *query;
    one.inputs = inputs;
    one.outputs = &output;
    one.num_inputs = 2;
    one.attrs = &of_one;
    return tn_saturated_add(size, quant_matmul_scratch(&one));
}

// --- the rows of each expert ------------------------------------------------------------

static int64_t expert_of(const struct experts_run *run, int64_t pair)
{
    const tn_tensor *ids = &run->call->inputs[2];
    int64_t id = tn_get_i64(ids, ids->layout.offset + pair), n = run->experts;
    if (id < 0)
        id = ids->layout.dtype == TN_U64 ? n : id + n;
    return id < 0 ? 0 : id < n ? id : n - 1;
}

// Sorts the pairs by expert, by counting.
static void sort_pairs(struct experts_run *run)
{
    int64_t pairs = run->n * run->m;
    int64_t *next = run->begin + 1; // grows to the end of each expert's pairs
    memset(run->begin, 0, (size_t)(run->experts + 2) * sizeof(*run->begin));
    for (int64_t p = 0; p < pairs; p++)
        run->begin[expert_of(run, p) + 2]++;
    for (int64_t e = 2; e < run->experts + 2; e++)
        run->begin[e] += run->begin[e - 1];
    for (int64_t p = 0; p < pairs; p++)
        run->order[next[expert_of(run, p)]++] = p;
}

static const float *row_of_pair(const struct experts_run *run, int64_t pair)
{
    return run->x + (run->is_shared ? pair / run->m : pair) * run->k;
}

static void gather_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct experts_run *run = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        memcpy(run->rows + i * run->k, row_of_pair(run, run->order[i]),
               (size_t)run->k * sizeof(float));
}

static void scatter_results(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct experts_run *run = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        memcpy(run->out + run->order[i] * run->r, run->results + i * run->r,
               (size_t)run->r * sizeof(float));
}

// --- one expert -------------------------------------------------------------------------

// `rows` rows of x times the transposed matrix at `w`.
struct cpu_experts_product {
    const struct experts_run *run;
    const float *x;
    const uint8_t *w;
    float *out;
    int64_t rows;
};

// Pieces of FLOAT_ROWS rows of weights.
static void cpu_experts_multiply_floats(void *context, int64_t begin, int64_t end,
                                        uint32_t worker)
{
    const struct cpu_experts_product *p = context;
    const struct experts_run *run = p->run;
    int64_t first = begin * FLOAT_ROWS, last = end * FLOAT_ROWS;
    (void)worker;
    last = last < run->r ? last : run->r;
    for (int64_t row = 0; row < p->rows; row += CPU_FEW_ROWS)
        run->kernels->few->by_rows(&(struct cpu_few_rows){
            .a = p->x + row * run->k,
            .b = p->w + first * run->k * run->element,
            .c = p->out + row * run->r + first,
            .m = p->rows - row < CPU_FEW_ROWS ? p->rows - row : CPU_FEW_ROWS,
            .n = last - first,
            .k = run->k,
            .a_row = run->k,
            .b_row = run->k,
            .c_row = run->r,
            .scale = 1,
            .kind = run->kind,
        });
}

static tn_status cpu_experts_multiply(struct cpu_experts_product *p)
{
    const struct experts_run *run = p->run;
    const tn_cpu_call *call = run->call;
    const tn_quant_experts_attrs *attrs = call->attrs;
    if (!cpu_experts_is_blocks(attrs)) {
        int64_t work = p->rows * run->k * FLOAT_ROWS;
        call->parallel_for(call, (run->r + FLOAT_ROWS - 1) / FLOAT_ROWS,
                           1 + PIECE_WORK / (work + 1), cpu_experts_multiply_floats, p);
        return TN_OK;
    }
    const tn_quant_matmul_attrs of_one = {attrs->format, attrs->exact};
    const tn_tensor inputs[] = {
        {(void *)(uintptr_t)p->x, cpu_experts_matrix(TN_F32, p->rows, run->k)},
        {(void *)(uintptr_t)p->w, cpu_experts_matrix(TN_U8, run->r, run->bytes / run->r)}};
    const tn_tensor output = {p->out, cpu_experts_matrix(TN_F32, p->rows, run->r)};
    tn_cpu_call one = *call;
    one.inputs = inputs;
    one.outputs = &output;
    one.num_inputs = 2;
    one.attrs = &of_one;
    one.scratch = run->scratch;
    return quant_matmul(&one);
}

static tn_status cpu_experts_multiply_all(const struct experts_run *run)
{
    tn_status status = TN_OK;
    for (int64_t e = 0; e < run->experts && status == TN_OK; e++) {
        int64_t first = run->begin[e];
        if (run->begin[e + 1] == first)
            continue;
        struct cpu_experts_product p = {.run = run,
                                        .x = run->rows + first * run->k,
                                        .w = run->w + e * run->bytes,
                                        .out = run->results + first * run->r,
                                        .rows = run->begin[e + 1] - first};
        if (!run->is_apart) { // x is read and the result written in place
            p.x = row_of_pair(run, run->order[first]);
            p.out = run->out + run->order[first] * run->r;
        }
        status = cpu_experts_multiply(&p);
    }
    return status;
}

// --- the kernel -------------------------------------------------------------------------

static tn_status quant_experts(const tn_cpu_call *call)
{
    const tn_layout *x = &call->inputs[0].layout, *w = &call->inputs[1].layout;
    const tn_layout *ids = &call->inputs[2].layout;
    struct experts_run run = {.call = call,
                              .kernels = kernel_variant(call),
                              .w = first_element(&call->inputs[1]),
                              .x = first_element(&call->inputs[0]),
                              .out = first_element(&call->outputs[0]),
                              .experts = w->extent[0],
                              .n = ids->extent[0],
                              .m = ids->extent[1],
                              .k = x->extent[2],
                              .r = w->extent[1],
                              .is_shared = x->extent[1] == 1};
    int64_t pairs = run.n * run.m;
    if (pairs == 0 || run.r == 0)
        return TN_OK;
    uint8_t *memory = call->scratch;
    run.element = cpu_dtype_size(w->dtype);
    run.kind = cpu_few_kind(w->dtype);
    run.bytes = run.r * w->extent[2] * run.element;
    run.order = (int64_t *)(void *)memory;
    run.begin = run.order + pairs;
    run.rows = (float *)(void *)(memory += order_size(pairs, run.experts));
    run.results = (float *)(void *)(memory += floats_size(pairs, run.k));
    run.scratch = memory + floats_size(pairs, run.r);
    sort_pairs(&run);
    // The pairs of one row chose an expert each, mostly.
    run.is_apart = run.n > 1;
    for (int64_t e = 0; e < run.experts; e++)
        run.is_apart |= run.begin[e + 1] - run.begin[e] > 1;
    if (run.is_apart)
        call->parallel_for(call, pairs, 1 + PIECE_WORK / 4 / (run.k + 1), gather_rows,
                           &run);
    tn_status status = cpu_experts_multiply_all(&run);
    if (status == TN_OK && run.is_apart)
        call->parallel_for(call, pairs, 1 + PIECE_WORK / 4 / (run.r + 1), scatter_results,
                           &run);
    return status;
}

static int32_t experts_accepts(const tn_kernel_query *query)
{
    const tn_quant_experts_attrs *attrs = query->attrs;
    const tn_layout *w = &query->inputs[1];
    if (!cpu_experts_is_blocks(attrs))
        return w->dtype != TN_U8;
    const tn_quant_matmul_attrs of_one = {attrs->format, attrs->exact};
    tn_layout x = cpu_experts_matrix(TN_F32, count_elements(&query->inputs[2]),
                                     query->inputs[0].extent[2]);
    const tn_layout inputs[] = {x, cpu_experts_matrix(TN_U8, w->extent[1], w->extent[2])};
    tn_kernel_query one = *query;
    one.inputs = inputs;
    one.num_inputs = 2;
    one.attrs = &of_one;
    return quant_matmul_accepts(&one);
}

static const tn_operand_rule rules[] = {{TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
                                        {TN_DTYPE_BIT(TN_U8) | TN_DTYPE_BIT(TN_F32) |
                                             TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16),
                                         TN_NEEDS_CONTIGUOUS},
                                        {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
                                        {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS}};
static const tn_cpu_kernel payload = {.struct_size = sizeof(tn_cpu_kernel),
                                      .launch = quant_experts};
const tn_kernel quant_experts_kernel = {.struct_size = sizeof(tn_kernel),
                                        .primitive = "quant.experts_matmul/1",
                                        .family = TN_FAMILY_CPU,
                                        .name = "quant_experts",
                                        .priority = 700,
                                        TN_OPERANDS(rules),
                                        .payload = &payload,
                                        .accepts = experts_accepts,
                                        .scratch_size = experts_scratch};

// SPDX-License-Identifier: MIT
// nn.layer_norm_grad/1 of f32: rows are read and written once. They are cut into splits, by
// sizes alone, each with sums over its rows; these are added in order.
#include <string.h>
#include <tenon/ops/nn_attrs.h>
#include "kernels.h"

#define SPLIT_ELEMENTS 16384 // least elements of a split
#define MOST_SPLITS 64
#define SUMMED_ROWS 64 // whose sums are f32, then added to those of the split, in f64
#define MOST_COLUMNS 65536
#define FINISH_COLUMNS 128 // of a piece

struct norm_grad {
    struct cpu_norm_grad rows; // of the first one
    cpu_layer_norm_grad_fn *layer_norm_grad;
    float *dweight, *dbias;
    int64_t splits, split; // rows of a split
    char *scratch;
};

static int64_t norm_count_splits(int64_t rows, int64_t n)
{
    int64_t splits = rows * n / SPLIT_ELEMENTS;
    return splits < 1 ? 1 : splits < MOST_SPLITS ? splits : MOST_SPLITS;
}

// Sums of a split: in f64, and those of a few rows in f32; of the weight first.
static int64_t norm_split_bytes(int64_t n)
{
    return (2 * n * (int64_t)(sizeof(double) + sizeof(float)) + 63) / 64 * 64;
}

static void norm_add_sums(double *to, float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] += (double)from[i];
        from[i] = 0;
    }
}

// The loop runs over splits.
static void norm_run_splits(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct norm_grad *s = context;
    int64_t n = s->rows.n;
    for (int64_t split = begin; split < end; split++) {
        double *sums = (double *)(void *)(s->scratch + split * norm_split_bytes(n));
        float *few = (float *)(void *)(sums + 2 * n);
        int64_t first = split * s->split, last = first + s->split;
        memset(sums, 0, (size_t)norm_split_bytes(n));
        last = last < s->rows.rows ? last : s->rows.rows;
        for (; first < last; first += SUMMED_ROWS) {
            struct cpu_norm_grad rows = s->rows;
            rows.rows = last - first < SUMMED_ROWS ? last - first : SUMMED_ROWS;
            rows.x += first * n;
            rows.g += first * n;
            rows.dx += first * n;
            rows.dweight = few;
            rows.dbias = few + n;
            s->layer_norm_grad(&rows);
            norm_add_sums(sums, few, 2 * n);
        }
    }
}

// The loop runs over columns.
static void norm_add_splits(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct norm_grad *s = context;
    int64_t n = s->rows.n, bytes = norm_split_bytes(n);
    double weight[FINISH_COLUMNS], bias[FINISH_COLUMNS];
    for (int64_t first = begin; first < end; first += FINISH_COLUMNS) {
        int64_t count = end - first < FINISH_COLUMNS ? end - first : FINISH_COLUMNS;
        memset(weight, 0, sizeof(weight));
        memset(bias, 0, sizeof(bias));
        for (int64_t split = 0; split < s->splits; split++) {
            const double *sums =
                (const double *)(void *)(s->scratch + split * bytes) + first;
            for (int64_t i = 0; i < count; i++) {
                weight[i] += sums[i];
                bias[i] += sums[n + i];
            }
        }
        for (int64_t i = 0; i < count; i++) {
            s->dweight[first + i] = (float)weight[i];
            s->dbias[first + i] = (float)bias[i];
        }
    }
}

static void norm_extents(const tn_layout *x, int64_t *rows, int64_t *n)
{
    *n = x->extent[x->rank - 1];
    *rows = 1;
    for (int32_t i = 0; i < x->rank - 1; i++)
        *rows *= x->extent[i];
}

static tn_status layer_norm_grad(const tn_cpu_call *call)
{
    const tn_layer_norm_attrs *attrs = call->attrs;
    struct norm_grad s = {
        .rows = {.x = first_element(&call->inputs[0]),
                 .weight = first_element(&call->inputs[1]),
                 .g = first_element(&call->inputs[2]),
                 .dx = first_element(&call->outputs[0]),
                 .eps = attrs->eps},
        .layer_norm_grad = kernel_variant(call)->layer_norm_grad,
        .dweight = first_element(&call->outputs[1]),
        .dbias = first_element(&call->outputs[2]),
        .scratch = call->scratch,
    };
    norm_extents(&call->inputs[0].layout, &s.rows.rows, &s.rows.n);
    s.splits = norm_count_splits(s.rows.rows, s.rows.n);
    s.split = (s.rows.rows + s.splits - 1) / s.splits;
    call->parallel_for(call, s.splits, 1, norm_run_splits, &s);
    call->parallel_for(call, s.rows.n, FINISH_COLUMNS, norm_add_splits, &s);
    return TN_OK;
}

static uint64_t layer_norm_grad_scratch(const tn_kernel_query *query)
{
    int64_t rows, n;
    norm_extents(&query->inputs[0], &rows, &n);
    return (uint64_t)(norm_count_splits(rows, n) * norm_split_bytes(n));
}

static int32_t layer_norm_grad_accepts(const tn_kernel_query *query)
{
    return query->inputs[0].extent[query->inputs[0].rank - 1] <= MOST_COLUMNS;
}

#define F32 (TN_DTYPE_BIT(TN_F32))
static const tn_operand_rule rules[] = {{F32, TN_NEEDS_CONTIGUOUS}};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = layer_norm_grad,
};
const tn_kernel layer_norm_grad_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "nn.layer_norm_grad/1",
    .family = TN_FAMILY_CPU,
    .name = "rows",
    .priority = 500,
    TN_OPERANDS(rules),
    .accepts = layer_norm_grad_accepts,
    .scratch_size = layer_norm_grad_scratch,
    .payload = &payload,
};

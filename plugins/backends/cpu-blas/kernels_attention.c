// SPDX-License-Identifier: MIT
// nn.scaled_dot_product_attention/1 of f32 and f64, without a matrix of all scores.
//
// The queries of a group of heads are rows of one matrix, ROW_BLOCK of which are computed
// at a time, over KEY_BLOCK keys at a time: scores by a product, weights by exp() of scores
// less the greatest so far, and their product with the values is added to the output. When
// a greater score comes, what a row has so far is scaled down (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022).
// Blocks of keys that no row sees are left out.
#include <math.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/reference.h>
#include "blas.h"
#include "kernels.h"

#define ROW_BLOCK 64
#define KEY_BLOCK 256
#define LANES 64               // of blocks, each with memory of its own
#define FAR (INT64_C(1) << 61) // no position or window is beyond it, so that sums fit

struct attention {
    const struct blas *blas;
    const struct cpu_kernels *kernels;
    int32_t dtype;
    int64_t element;                 // bytes of an element
    const tn_tensor *mask, *lengths; // NULL: not given
    int32_t batch_rank;              // axes before those of heads
    int64_t extent[TN_MAX_RANK], k_stride[TN_MAX_RANK], v_stride[TN_MAX_RANK],
        mask_stride[TN_MAX_RANK]; // of these axes
    int64_t batches, groups, per_group, queries, keys, depth, width;
    int64_t k_head, v_head, mask_head, mask_query, mask_key, k_row, v_row;
    double scale, soft_cap;
    int64_t window; // FAR: none
    bool is_causal;
    const char *q, *k, *v;
    char *out, *scratch;
    int64_t blocks, lanes; // blocks of rows of a group
};

// A row of a block: keys [low, high) are seen by place; the greatest score so far, and the
// sum of weights.
struct row_state {
    int64_t low, high, mask_at;
    double most, sum;
};

struct block {
    int64_t rows, low, high; // keys that any row sees
    const char *q, *k, *v;
    char *out;
};

#define T float
#define NAME(word) word##_f32
#define GEMM sgemm
#include "attention_rows.inc.h"
#undef T
#undef NAME
#undef GEMM

#define T double
#define NAME(word) word##_f64
#define GEMM dgemm
#include "attention_rows.inc.h"
#undef T
#undef NAME
#undef GEMM

// --- blocks -----------------------------------------------------------------------------

// Which keys a query at row `row` of a group sees by its place.
static struct row_state see(const struct attention *s, int64_t row, int64_t length,
                            int64_t mask_at, int64_t first_head)
{
    int64_t query = row % s->queries, at = query + length - s->queries;
    struct row_state state = {.high = length < s->keys ? length : s->keys,
                              .most = -INFINITY};
    if (!s->lengths) {
        at = query;
        state.high = s->keys;
    }
    if (s->is_causal && at + 1 < state.high)
        state.high = at + 1;
    if (at - s->window + 1 > 0)
        state.low = at - s->window + 1;
    state.high = state.high > 0 ? state.high : 0;
    state.low = state.low < state.high ? state.low : state.high;
    state.mask_at =
        mask_at + (first_head + row / s->queries) * s->mask_head + query * s->mask_query;
    return state;
}

// How many keys there are for an index of the first axis.
static int64_t length_of(const struct attention *s, int64_t index)
{
    if (!s->lengths)
        return s->keys;
    const tn_layout *l = &s->lengths->layout;
    int64_t n = tn_get_i64(s->lengths, l->offset + (l->rank ? index * l->stride[0] : 0));
    return n > FAR ? FAR : n < -FAR ? -FAR : n;
}

static void run_unit(const struct attention *s, int64_t unit, void *scores)
{
    struct row_state states[ROW_BLOCK];
    int64_t number = unit % s->blocks, group = unit / s->blocks % s->groups;
    int64_t batch = unit / s->blocks / s->groups, rest = batch, first_index = 0;
    int64_t k = group * s->k_head, v = group * s->v_head;
    int64_t mask_at = s->mask ? s->mask->layout.offset : 0;
    for (int32_t i = s->batch_rank - 1; i >= 0; i--) {
        first_index = rest % s->extent[i];
        rest /= s->extent[i];
        k += first_index * s->k_stride[i];
        v += first_index * s->v_stride[i];
        mask_at += first_index * s->mask_stride[i];
    }
    int64_t all = s->per_group * s->queries, begin = number * ROW_BLOCK;
    int64_t row = (batch * s->groups + group) * all + begin;
    struct block b = {.rows = all - begin < ROW_BLOCK ? all - begin : ROW_BLOCK,
                      .low = s->keys,
                      .q = s->q + row * s->depth * s->element,
                      .k = s->k + k * s->element,
                      .v = s->v + v * s->element,
                      .out = s->out + row * s->width * s->element};
    int64_t length = length_of(s, first_index);
    for (int64_t i = 0; i < b.rows; i++) {
        states[i] = see(s, begin + i, length, mask_at, group * s->per_group);
        bool sees = states[i].low < states[i].high;
        b.low = sees && states[i].low < b.low ? states[i].low : b.low;
        b.high = sees && states[i].high > b.high ? states[i].high : b.high;
    }
    if (s->dtype == TN_F32)
        run_block_f32(s, &b, states, scores);
    else
        run_block_f64(s, &b, states, scores);
}

static int64_t count_units(const struct attention *s)
{
    return s->batches * s->groups * s->blocks;
}

// The loop runs over lanes: every so many-th unit.
static void run_lanes(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct attention *s = context;
    for (int64_t lane = begin; lane < end; lane++)
        for (int64_t unit = lane; unit < count_units(s); unit += s->lanes)
            run_unit(s, unit, s->scratch + lane * ROW_BLOCK * KEY_BLOCK * s->element);
}

// --- the kernel -------------------------------------------------------------------------

// The stride of `x` along the axis that lies `behind` axes before the end (1: the last
// one); 0 where x has none, or is repeated along it.
static int64_t stride_of(const tn_layout *x, int32_t behind)
{
    return x->rank >= behind && x->extent[x->rank - behind] != 1
               ? x->stride[x->rank - behind]
               : 0;
}

static int64_t extent_of(const tn_layout *x, int32_t behind)
{
    return x->rank >= behind ? x->extent[x->rank - behind] : 1;
}

// From a row of keys or values to the next one; of one row, its own length.
static int64_t row_of(const tn_layout *x)
{
    return extent_of(x, 2) == 1 ? extent_of(x, 1) : x->stride[x->rank - 2];
}

static void read_shape(const tn_layout *q, const tn_layout *k, const tn_layout *v,
                       struct attention *s)
{
    s->dtype = q->dtype;
    s->element = cpu_dtype_size(q->dtype);
    s->batch_rank = q->rank > 3 ? q->rank - 3 : 0;
    s->batches = 1;
    for (int32_t i = 0; i < s->batch_rank; i++) {
        s->extent[i] = q->extent[i];
        s->batches *= q->extent[i];
        s->k_stride[i] = stride_of(k, q->rank - i);
        s->v_stride[i] = stride_of(v, q->rank - i);
    }
    s->groups = extent_of(k, 3);
    s->per_group = s->groups ? extent_of(q, 3) / s->groups : 0;
    s->queries = extent_of(q, 2);
    s->keys = extent_of(k, 2);
    s->depth = extent_of(q, 1);
    s->width = extent_of(v, 1);
    s->k_head = stride_of(k, 3);
    s->v_head = stride_of(v, 3);
    s->k_row = row_of(k);
    s->v_row = row_of(v);
    s->blocks = (s->per_group * s->queries + ROW_BLOCK - 1) / ROW_BLOCK;
    s->lanes = count_units(s) < LANES ? count_units(s) : LANES;
}

static void read_options(const tn_cpu_call *call, struct attention *s)
{
    const tn_attention_attrs *attrs = call->attrs;
    const tn_layout *q = &call->inputs[0].layout;
    s->scale = attrs->scale != 0 ? attrs->scale : 1 / sqrt((double)s->depth);
    s->soft_cap = attrs->soft_cap;
    s->is_causal = attrs->is_causal != 0;
    s->window = attrs->window > 0 && attrs->window < FAR ? attrs->window : FAR;
    s->mask = call->num_inputs > 3 && call->inputs[3].data ? &call->inputs[3] : NULL;
    s->lengths = call->num_inputs > 4 && call->inputs[4].data ? &call->inputs[4] : NULL;
    if (!s->mask)
        return;
    const tn_layout *mask = &s->mask->layout;
    for (int32_t i = 0; i < s->batch_rank; i++)
        s->mask_stride[i] = stride_of(mask, q->rank - i);
    s->mask_head = stride_of(mask, 3);
    s->mask_query = stride_of(mask, 2);
    s->mask_key = stride_of(mask, 1);
}

static tn_status attention(const tn_cpu_call *call)
{
    struct attention s = {.kernels = kernel_variant(call),
                          .q = first_element(&call->inputs[0]),
                          .k = first_element(&call->inputs[1]),
                          .v = first_element(&call->inputs[2]),
                          .out = first_element(&call->outputs[0]),
                          .scratch = call->scratch};
    read_shape(&call->inputs[0].layout, &call->inputs[1].layout, &call->inputs[2].layout,
               &s);
    if (count_units(&s) * s.width == 0)
        return TN_OK;
    read_options(call, &s);
    tn_status status = blas_enter(call, &s.blas);
    if (status)
        return status;
    call->parallel_for(call, s.lanes, 1, run_lanes, &s);
    blas_leave();
    return TN_OK;
}

static uint64_t attention_scratch(const tn_kernel_query *query)
{
    struct attention s = {0};
    read_shape(&query->inputs[0], &query->inputs[1], &query->inputs[2], &s);
    return (uint64_t)(s.lanes * ROW_BLOCK * KEY_BLOCK * s.element);
}

// BLAS counts in int, and takes no rows that overlap.
static int32_t attention_accepts(const tn_kernel_query *query)
{
    struct attention s = {0};
    int32_t dtype = query->inputs[0].dtype;
    if (dtype != TN_F32 && dtype != TN_F64)
        return 0;
    if (query->num_inputs > 3 && query->inputs[3].dtype != TN_DTYPE_NONE &&
        query->inputs[3].dtype != TN_BOOL && query->inputs[3].dtype != dtype)
        return 0;
    read_shape(&query->inputs[0], &query->inputs[1], &query->inputs[2], &s);
    return s.depth > 0 && s.k_row >= s.depth && s.v_row >= s.width &&
           s.k_row <= INT32_MAX && s.v_row <= INT32_MAX && blas_open() != NULL;
}

#define FLOATS (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64))
static const tn_operand_rule rules[] = {
    {FLOATS, TN_NEEDS_CONTIGUOUS}, // q
    {FLOATS, TN_NEEDS_ROWS},       // k
    {FLOATS, TN_NEEDS_ROWS},       // v
    {0, TN_NEEDS_ANY}, // mask and lengths, which may be left out, and the output
};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = attention,
};
const tn_kernel scaled_dot_product_attention_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "nn.scaled_dot_product_attention/1",
    .family = TN_FAMILY_CPU,
    .name = "blocks",
    .priority = 500,
    TN_OPERANDS(rules),
    .accepts = attention_accepts,
    .scratch_size = attention_scratch,
    .payload = &payload,
};

// SPDX-License-Identifier: MIT
#include "attention.h"
#include <math.h>

#define MOST_WIDTH (INT64_C(1) << 24) // of rows, so that sizes of scratch memory fit

// The stride of `x` along the axis that lies `behind` axes before the end (1: the last
// one); 0 where x has none, or is repeated along it.
static int64_t blas_attention_stride_of(const tn_layout *x, int32_t behind)
{
    return x->rank >= behind && x->extent[x->rank - behind] != 1
               ? x->stride[x->rank - behind]
               : 0;
}

static int64_t blas_attention_extent_of(const tn_layout *x, int32_t behind)
{
    return x->rank >= behind ? x->extent[x->rank - behind] : 1;
}

// The stride from a row of keys or values to the next one; the length of a single row.
static int64_t blas_attention_row_of(const tn_layout *x)
{
    return blas_attention_extent_of(x, 2) == 1 ? blas_attention_extent_of(x, 1)
                                               : x->stride[x->rank - 2];
}

void attention_read_shape(const tn_layout inputs[3], struct attention *s)
{
    const tn_layout *q = &inputs[0], *k = &inputs[1], *v = &inputs[2];
    s->stored = q->dtype;
    s->dtype = tn_dtype_computed(q->dtype);
    s->stored_size = cpu_dtype_size(s->stored);
    s->element = cpu_dtype_size(s->dtype);
    s->kv = k->dtype;
    s->kv_size = cpu_dtype_size(s->kv);
    s->batch_rank = q->rank > 3 ? q->rank - 3 : 0;
    s->batches = 1;
    for (int32_t i = 0; i < s->batch_rank; i++) {
        s->extent[i] = q->extent[i];
        s->batches *= q->extent[i];
        s->k_stride[i] = blas_attention_stride_of(k, q->rank - i);
        s->v_stride[i] = blas_attention_stride_of(v, q->rank - i);
    }
    s->groups = blas_attention_extent_of(k, 3);
    s->per_group = s->groups ? blas_attention_extent_of(q, 3) / s->groups : 0;
    s->queries = blas_attention_extent_of(q, 2);
    s->keys = blas_attention_extent_of(k, 2);
    s->depth = blas_attention_extent_of(q, 1);
    s->width = blas_attention_extent_of(v, 1);
    if (s->kv == TN_U8)
        s->width = s->width / TN_QUANT_BYTES_q8_0 * TN_QUANT_BLOCK_q8_0;
    s->num_slots = q->rank > 3 ? k->extent[0] : 1;
    s->k_head = blas_attention_stride_of(k, 3);
    s->v_head = blas_attention_stride_of(v, 3);
    s->k_row = blas_attention_row_of(k);
    s->v_row = blas_attention_row_of(v);
}

void attention_read_score(const tn_attention_attrs *attrs, struct attention *s)
{
    s->scale = attrs->scale != 0 ? attrs->scale : 1 / sqrt((double)s->depth);
    s->soft_cap = attrs->soft_cap;
    s->is_causal = attrs->is_causal != 0;
    s->window =
        attrs->window > 0 && attrs->window < ATTENTION_FAR ? attrs->window : ATTENTION_FAR;
}

void attention_read_options(const tn_cpu_call *call, uint32_t mask, struct attention *s)
{
    const tn_layout *q = &call->inputs[0].layout;
    attention_read_score(call->attrs, s);
    const tn_tensor *in = call->inputs;
    s->mask = call->num_inputs > mask && in[mask].data ? &in[mask] : NULL;
    s->lengths = call->num_inputs > mask + 1 && in[mask + 1].data ? &in[mask + 1] : NULL;
    if (!s->mask)
        return;
    const tn_layout *m = &s->mask->layout;
    for (int32_t i = 0; i < s->batch_rank; i++)
        s->mask_stride[i] = blas_attention_stride_of(m, q->rank - i);
    s->mask_head = blas_attention_stride_of(m, 3);
    s->mask_query = blas_attention_stride_of(m, 2);
    s->mask_key = blas_attention_stride_of(m, 1);
}

// BLAS counts in int, and takes no rows that overlap.
bool attention_fits(const tn_kernel_query *query)
{
    struct attention s = {0};
    attention_read_shape(query->inputs, &s);
    return s.depth > 0 && s.depth <= MOST_WIDTH && s.width <= MOST_WIDTH &&
           s.k_row >= s.depth && s.v_row >= s.width && s.k_row <= INT32_MAX &&
           s.v_row <= INT32_MAX && blas_open() != NULL;
}

bool attention_is_taken(const tn_kernel_query *query, uint32_t floats, uint32_t mask)
{
    int32_t dtype = query->inputs[0].dtype;
    for (uint32_t i = 1; i < floats; i++)
        if (query->inputs[i].dtype != dtype)
            return false;
    if (query->num_inputs > mask && query->inputs[mask].dtype != TN_DTYPE_NONE &&
        query->inputs[mask].dtype != TN_BOOL && query->inputs[mask].dtype != dtype)
        return false;
    return attention_fits(query);
}

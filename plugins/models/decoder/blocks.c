// SPDX-License-Identifier: MIT
// The weights and the graph of the blocks of a decoder.
#include <stdio.h>
#include "decoder.h"

// --- weights ---------------------------------------------------------------------------

const char *block_name(int64_t layer, const char *what, const char *kind,
                       char out[TN_MODEL_NAME])
{
    if (layer < 0)
        snprintf(out, TN_MODEL_NAME, "%s.%s", what, kind);
    else
        snprintf(out, TN_MODEL_NAME, "blk.%lld.%s.%s", (long long)layer, what, kind);
    return out;
}

void list_add(weight_list *list, int64_t layer, const char *what, const char *kind,
              int64_t rows, int64_t columns, uint32_t flags)
{
    if (list->out && list->count < list->room) {
        tn_model_weight *w = &list->out[list->count];
        *w = (tn_model_weight){
            .extent = {rows, columns}, .rank = columns ? 2 : 1, .flags = flags};
        block_name(layer, what, kind, w->name);
    }
    list->count++;
}

// Adds a matrix that is read by `product`, and its bias, which is optional.
static void list_linear(weight_list *list, int64_t layer, const char *what, int64_t rows,
                        int64_t columns)
{
    list_add(list, layer, what, "weight", rows, columns, TN_MODEL_PRODUCT);
    list_add(list, layer, what, "bias", rows, 0, TN_MODEL_OPTIONAL);
}

// The entries from `first` on have rows of heads that are turned: they are wanted in the
// order of halves.
static void list_in_halves(weight_list *list, const decoder *d, uint64_t first)
{
    uint64_t end = list->count < list->room ? list->count : list->room;
    for (uint64_t i = first; list->out && d->interleaved && i < end; i++) {
        list->out[i].head = d->facts.head_size;
        list->out[i].paired = d->rotary;
    }
}

void list_attention(weight_list *list, const decoder *d, int64_t layer)
{
    const tn_model_facts *f = &d->facts;
    uint64_t first = list->count;
    list_linear(list, layer, "attn_q", f->heads * f->head_size, f->width);
    list_linear(list, layer, "attn_k", f->groups * f->head_size, f->width);
    for (int i = 0; i < 2; i++)
        list_add(list, layer, i ? "attn_k_norm" : "attn_q_norm", "weight", f->head_size, 0,
                 TN_MODEL_OPTIONAL);
    list_in_halves(list, d, first);
    list_linear(list, layer, "attn_v", f->groups * f->head_size, f->width);
    list_linear(list, layer, "attn_output", f->width, f->heads * f->head_size);
    list_add(list, TN_MODEL_EMBEDDING, "rope_freqs", "weight", d->rotary / 2, 0,
             TN_MODEL_OPTIONAL);
}

void list_gated(weight_list *list, const decoder *d, int64_t layer)
{
    list_linear(list, layer, "ffn_gate", d->inner, d->facts.width);
    list_linear(list, layer, "ffn_up", d->inner, d->facts.width);
    list_linear(list, layer, "ffn_down", d->facts.width, d->inner);
}

void list_ends(weight_list *list, const decoder *d, int64_t part, int32_t is_tied)
{
    const tn_model_facts *f = &d->facts;
    if (part == TN_MODEL_EMBEDDING) {
        list_add(list, part, "token_embd", "weight", f->vocabulary, f->width,
                 TN_MODEL_ROWS);
        return;
    }
    list_add(list, part, "output_norm", "weight", f->width, 0, 0);
    list_add(list, part, is_tied ? "token_embd" : "output", "weight", f->vocabulary,
             f->width, TN_MODEL_PRODUCT);
    list_add(list, part, "output", "bias", f->vocabulary, 0, TN_MODEL_OPTIONAL);
}

// --- blocks ----------------------------------------------------------------------------

tn_array *block_add(const tn_model_step *step, tn_array *a, tn_array *b)
{
    return step->build->expr(step->build, "a, b -> a + b", TN_IN(a, b), TN_NO_ATTRS);
}

tn_array *block_norm(const tn_model_step *step, const decoder *d, tn_array *x,
                     int64_t layer, const char *what)
{
    char name[TN_MODEL_NAME];
    tn_array *weight = step->weight(step, block_name(layer, what, "weight", name));
    return step->build->op(step->build, "nn.rms_norm/1", TN_IN(x, weight),
                           tn_attrs("eps", d->eps));
}

// As block_norm, where the model has the weight; else x itself.
static tn_array *block_optional_norm(const tn_model_step *step, const decoder *d,
                                     tn_array *x, int64_t layer, const char *what)
{
    char name[TN_MODEL_NAME];
    return step->weight(step, block_name(layer, what, "weight", name))
               ? block_norm(step, d, x, layer, what)
               : x;
}

tn_array *block_linear(const tn_model_step *step, tn_array *x, int64_t layer,
                       const char *what)
{
    char name[TN_MODEL_NAME];
    tn_array *y = step->product(step, x, block_name(layer, what, "weight", name));
    tn_array *bias = step->weight(step, block_name(layer, what, "bias", name));
    return bias ? block_add(step, y, bias) : y;
}

tn_array *block_reshape(const tn_model_step *step, tn_array *x, int64_t a, int64_t b,
                        int64_t c, int64_t e)
{
    const tn_ints shape = {.count = c ? 4 : 2, .given = 1, .value = {a, b, c, e}};
    return step->build->op(step->build, "base.reshape/1", TN_IN(x),
                           tn_attrs("shape", &shape));
}

tn_array *block_exchange(const tn_model_step *step, tn_array *x, int64_t a, int64_t b,
                         int64_t size)
{
    if (a == 1 || b == 1) // the same order of elements
        return block_reshape(step, x, step->sequences, b, a, size);
    return step->build->op(step->build, "base.transpose/1", TN_IN(x),
                           tn_attrs("axes", TN_INTS(0, 2, 1, 3)));
}

tn_array *block_frequencies(const tn_model_step *step, const decoder *d)
{
    const tn_shape shape = {.rank = 1, .extent = {d->rotary / 2}};
    tn_array *all = step->constant(step, TN_F32, &shape, d->frequencies);
    tn_array *factors = step->weight(step, "rope_freqs.weight");
    return factors ? step->build->expr(step->build, "f, r -> f / r", TN_IN(all, factors),
                                       TN_NO_ATTRS)
                   : all;
}

tn_array *block_heads(const tn_model_step *step, const decoder *d, tn_array *h,
                      int64_t layer, const char *what, int64_t heads, tn_array *frequencies)
{
    char norm[32];
    int64_t size = d->facts.head_size;
    tn_array *x = block_linear(step, h, layer, what);
    x = block_reshape(step, x, step->sequences, step->count, heads, size);
    if (!frequencies)
        return block_exchange(step, x, step->count, heads, size);
    snprintf(norm, sizeof(norm), "%.24s_norm", what);
    x = block_optional_norm(step, d, x, layer, norm);
    x = step->build->op(step->build, "nn.rope/1", TN_IN(x, frequencies, step->position),
                        tn_attrs("axis", (int64_t)1));
    return block_exchange(step, x, step->count, heads, size);
}

void block_caches(const decoder *d, int64_t capacity, tn_type out_types[2])
{
    for (int i = 0; i < 2; i++)
        out_types[i] =
            (tn_type){.dtype = TN_F32,
                      .rank = 4,
                      .extent = {1, d->facts.groups, capacity, d->facts.head_size}};
}

// x in the dtype of an array of floats.
static tn_array *block_as(const tn_model_step *step, tn_array *x, tn_dtype dtype)
{
    const tn_type *type = x ? step->build->type(x) : NULL;
    return type && type->dtype != dtype ? step->build->op(step->build, "base.astype/1",
                                                          TN_IN(x),
                                                          tn_attrs("dtype", (int64_t)dtype))
                                        : x;
}

// A cache with the rows of this step.
static tn_array *block_grow(const tn_model_step *step, tn_array *cache, tn_array *rows)
{
    const tn_type *type = cache ? step->build->type(cache) : NULL;
    if (!step->slots)
        return step->build->op(
            step->build, "base.dynamic_slice_update/1",
            TN_IN(cache, block_as(step, rows, type ? type->dtype : TN_F32), step->start),
            TN_NO_ATTRS);
    return step->build->op(step->build, "quant.cache_update/1",
                           TN_IN(cache, rows, step->position, step->slots),
                           tn_attrs("format", step->cache_format));
}

// Attention of q over the caches, computed from the elements that these have.
static tn_array *block_attend(const tn_model_step *step, const decoder *d, tn_array *q,
                              tn_array *const caches[2], int64_t window)
{
    const tn_build *build = step->build;
    const tn_type *type = caches[0] ? build->type(caches[0]) : NULL;
    const int64_t causal = 1;
    if (type && !step->cache_format)
        q = block_as(step, q, type->dtype);
    if (!step->slots)
        q = build->op(build, "nn.scaled_dot_product_attention/1",
                      TN_IN(q, caches[0], caches[1], NULL, step->length),
                      tn_attrs("scale", d->score_scale, "is_causal", causal, "window",
                               window));
    else
        q = build->op(build, "quant.cached_attention/1",
                      TN_IN(q, caches[0], caches[1], step->length, step->slots),
                      tn_attrs("scale", d->score_scale, "is_causal", causal, "window",
                               window, "format", step->cache_format));
    return block_as(step, q, TN_F32);
}

tn_array *block_attention(tn_model_step *step, const decoder *d, tn_array *h, int64_t layer,
                          tn_array *frequencies, int64_t window)
{
    const tn_model_facts *f = &d->facts;
    tn_array **caches = step->caches + 2 * (layer - step->first);
    tn_array *q = block_heads(step, d, h, layer, "attn_q", f->heads, frequencies);
    tn_array *grown[2] = {block_heads(step, d, h, layer, "attn_k", f->groups, frequencies),
                          block_heads(step, d, h, layer, "attn_v", f->groups, NULL)};
    for (int i = 0; i < 2; i++)
        caches[i] = block_grow(step, caches[i], grown[i]);
    tn_array *seen = block_attend(step, d, q, caches, window);
    seen = block_exchange(step, seen, f->heads, step->count, f->head_size);
    return block_reshape(step, seen, step->sequences * step->count,
                         f->heads * f->head_size, 0, 0);
}

tn_array *block_last(const tn_model_step *step, const decoder *d, tn_array *x,
                     int64_t layer)
{
    const tn_type *type = x ? step->build->type(x) : NULL;
    if (!type || !step->last || layer + 1 < d->facts.layers || step->count == 1)
        return x;
    if (step->sequences > 1)
        return step->build->op(step->build, "base.take/1", TN_IN(x, step->last),
                               tn_attrs("axis", (int64_t)0));
    return step->build->op(step->build, "base.dynamic_slice/1", TN_IN(x, step->last),
                           tn_attrs("sizes", TN_INTS(1)));
}

tn_array *block_gated(const tn_model_step *step, tn_array *h, int64_t layer)
{
    tn_array *gate = block_linear(step, h, layer, "ffn_gate");
    tn_array *up = block_linear(step, h, layer, "ffn_up");
    tn_array *both = step->build->expr(step->build, "g, u -> g / (1 + exp(-g)) * u",
                                       TN_IN(gate, up), TN_NO_ATTRS);
    return block_linear(step, both, layer, "ffn_down");
}

tn_array *block_embed(const tn_model_step *step)
{
    return step->first > 0 ? step->input
                           : step->rows(step, step->input, "token_embd.weight");
}

tn_array *block_logits(const tn_model_step *step, const decoder *d, tn_array *x,
                       int32_t is_tied)
{
    tn_array *h = block_norm(step, d, x, TN_MODEL_OUTPUT, "output_norm");
    tn_array *y = step->product(step, h, is_tied ? "token_embd.weight" : "output.weight");
    tn_array *bias = step->weight(step, "output.bias");
    return bias ? block_add(step, y, bias) : y;
}

// SPDX-License-Identifier: MIT
// The weights and the graph of the blocks of a decoder.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

// The products from `first` on read the same x; `number` tells them from other such sets of
// the layer.
static void decoder_blocks_list_joined(weight_list *list, uint64_t first, int64_t number)
{
    uint64_t end = list->count < list->room ? list->count : list->room;
    for (uint64_t i = first; list->out && i < end; i++)
        if (list->out[i].flags & TN_MODEL_PRODUCT)
            list->out[i].joined = number;
}

// Heads of the entries from `first` on are turned: asks for their rows in the order of
// halves.
static void list_in_halves(weight_list *list, const decoder *d, uint64_t first)
{
    uint64_t end = list->count < list->room ? list->count : list->room;
    for (uint64_t i = first; list->out && d->interleaved && i < end; i++) {
        list->out[i].head = d->facts.head_size;
        list->out[i].paired = d->rotary;
    }
}

// Factors of the frequencies, for contexts up to d->original positions and for longer ones.
static const char *const rope_factors[] = {"rope_factors_short", "rope_factors_long"};

void list_attention(weight_list *list, const decoder *d, int64_t layer)
{
    const tn_model_facts *f = &d->facts;
    uint64_t first = list->count;
    if (d->is_fused) {
        list_linear(list, layer, "attn_qkv", (f->heads + 2 * f->kv_heads) * f->head_size,
                    f->width);
    } else {
        list_linear(list, layer, "attn_q", f->heads * f->head_size, f->width);
        list_linear(list, layer, "attn_k", f->kv_heads * f->head_size, f->width);
    }
    for (int i = 0; i < 2; i++)
        list_add(list, layer, i ? "attn_k_norm" : "attn_q_norm", "weight", f->head_size, 0,
                 TN_MODEL_OPTIONAL);
    list_in_halves(list, d, first);
    if (!d->is_fused) {
        list_linear(list, layer, "attn_v", f->kv_heads * f->head_size, f->width);
        decoder_blocks_list_joined(list, first, 1);
    }
    list_linear(list, layer, "attn_output", f->width, f->heads * f->head_size);
    list_add(list, TN_MODEL_EMBEDDING, "rope_freqs", "weight", d->rotary / 2, 0,
             TN_MODEL_OPTIONAL);
    for (int i = 0; i < 2 && d->original; i++)
        list_add(list, TN_MODEL_EMBEDDING, rope_factors[i], "weight", d->rotary / 2, 0, 0);
}

void list_gated(weight_list *list, const decoder *d, int64_t layer)
{
    uint64_t first = list->count;
    if (!d->is_fused)
        list_linear(list, layer, "ffn_gate", d->inner, d->facts.width);
    list_linear(list, layer, "ffn_up", (1 + d->is_fused) * d->inner, d->facts.width);
    if (!d->is_fused)
        decoder_blocks_list_joined(list, first, 2);
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

// block_norm() where the model has the weight; else x itself.
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
    if (a == 1 || b == 1) // one axis has extent 1: the order of elements stays
        return block_reshape(step, x, step->sequences, b, a, size);
    return step->build->op(step->build, "base.transpose/1", TN_IN(x),
                           tn_attrs("axes", TN_INTS(0, 2, 1, 3)));
}

tn_array *block_frequencies(const tn_model_step *step, const decoder *d)
{
    const tn_shape shape = {.rank = 1, .extent = {d->rotary / 2}};
    char name[TN_MODEL_NAME];
    const char *what =
        d->original ? rope_factors[step->context > d->original] : "rope_freqs";
    tn_array *all = step->constant(step, TN_F32, &shape, d->frequencies);
    tn_array *factors =
        step->weight(step, block_name(TN_MODEL_EMBEDDING, what, "weight", name));
    return factors ? step->build->expr(step->build, "f, r -> f / r", TN_IN(all, factors),
                                       TN_NO_ATTRS)
                   : all;
}

// x converted to the dtype of an array of floats.
static tn_array *block_as(const tn_model_step *step, tn_array *x, tn_dtype dtype)
{
    const tn_type *type = x ? step->build->type(x) : NULL;
    return type && type->dtype != dtype
               ? step->build->op(step->build, "base.astype/1", TN_IN(x),
                                 tn_attrs("dtype", (int64_t)dtype))
               : x;
}

// Multiplies the elements of queries that are turned by d->turned_scale.
static tn_array *block_scale_turned(const tn_model_step *step, const decoder *d,
                                    tn_array *x)
{
    float scales[2 * DECODER_PAIRS];
    const tn_shape shape = {.rank = 1, .extent = {d->facts.head_size}};
    for (int64_t i = 0; i < d->facts.head_size; i++)
        scales[i] = i < d->rotary ? (float)d->turned_scale : 1;
    return step->build->expr(step->build, "x, s -> x * s",
                             TN_IN(x, step->constant(step, TN_F32, &shape, scales)),
                             TN_NO_ATTRS);
}

// Elements first .. first + count - 1 of the last of four axes.
static tn_array *block_part(const tn_model_step *step, tn_array *x, int64_t first,
                            int64_t count)
{
    return step->build->op(
        step->build, "base.slice/1", TN_IN(x),
        tn_attrs("start", TN_INTS(0, 0, 0, first), "stop",
                 TN_INTS(INT64_MAX, INT64_MAX, INT64_MAX, first + count)));
}

static int64_t block_rows(const tn_model_step *step)
{
    return step->sequences * step->count;
}

// Cosines and sines of the angles of all rows, [2, rows, 1, 2, pairs]; the sines of first
// halves are negated. Layers build equal nodes, so a step computes the array once.
static tn_array *block_angles(const tn_model_step *step, const decoder *d,
                              tn_array *frequencies)
{
    const tn_build *build = step->build;
    int64_t pairs = d->rotary / 2, count = block_rows(step);
    tn_array *at = step->position;
    if (step->count > 1) {
        tn_array *first = block_reshape(step, at, step->sequences, 1, 0, 0);
        at = build->op(build, "base.arange/1", NULL, 0,
                       tn_attrs("stop", step->count, "dtype", (int64_t)TN_I64));
        at = build->expr(build, "i, t -> i + i64(t)", TN_IN(at, first), TN_NO_ATTRS);
    }
    at = build->op(build, "base.reshape/1", TN_IN(at),
                   tn_attrs("shape", TN_INTS(count, 1, 1, 1)));
    tn_array *f = build->op(build, "base.broadcast_to/1", TN_IN(frequencies),
                            tn_attrs("shape", TN_INTS(2, 1, 1, 2, pairs)));
    return build->expr(build,
                       "t, f -> a = f32(t) * f;"
                       " select(index // n == 0, cos(a),"
                       " select(index // p % 2 == 0, -sin(a), sin(a)))",
                       TN_IN(at, f), tn_attrs("n", 2 * count * pairs, "p", pairs));
}

// The cosines (0) or the sines (1) of the angles, [rows, 1, 2, pairs].
static tn_array *block_side(const tn_model_step *step, const decoder *d, tn_array *angles,
                            int64_t side)
{
    tn_array *x =
        step->build->op(step->build, "base.slice/1", TN_IN(angles),
                        tn_attrs("start", TN_INTS(side), "stop", TN_INTS(side + 1)));
    return block_reshape(step, x, block_rows(step), 1, 2, d->rotary / 2);
}

// Turns the first `rotary` elements of heads, [sequences, count, heads, size], by their
// positions. Heads that are turned whole get `dtype`: the cast is fused with the turning.
static tn_array *block_turned(const tn_model_step *step, const decoder *d, tn_array *x,
                              int64_t heads, tn_array *frequencies, tn_dtype dtype)
{
    const tn_build *build = step->build;
    int64_t rest = d->facts.head_size - d->rotary;
    tn_array *angles = block_angles(step, d, frequencies);
    tn_array *pairs = rest ? block_part(step, x, 0, d->rotary) : x;
    pairs = block_reshape(step, pairs, block_rows(step), heads, 2, d->rotary / 2);
    tn_array *others =
        build->op(build, "base.flip/1", TN_IN(pairs), tn_attrs("axis", TN_INTS(2)));
    tn_array *turned = build->expr(build, "x, y, c, s -> x * c + y * s",
                                   TN_IN(pairs, others, block_side(step, d, angles, 0),
                                         block_side(step, d, angles, 1)),
                                   TN_NO_ATTRS);
    if (rest == 0)
        turned = block_as(step, turned, dtype);
    turned = block_reshape(step, turned, step->sequences, step->count, heads, d->rotary);
    return rest ? build->op(build, "base.concatenate/1",
                            TN_IN(turned, block_part(step, x, d->rotary, rest)),
                            tn_attrs("axis", (int64_t)3))
                : turned;
}

tn_array *block_heads(const tn_model_step *step, const decoder *d, tn_array *x,
                      int64_t layer, const char *what, int64_t heads, tn_array *frequencies,
                      tn_dtype dtype)
{
    bool is_scaled = d->turned_scale != 1 && strcmp(what, "attn_q") == 0;
    char norm[32];
    int64_t size = d->facts.head_size;
    x = block_reshape(step, x, step->sequences, step->count, heads, size);
    if (!frequencies)
        return block_exchange(step, block_as(step, x, dtype), step->count, heads, size);
    snprintf(norm, sizeof(norm), "%.24s_norm", what);
    x = block_optional_norm(step, d, x, layer, norm);
    x = block_turned(step, d, x, heads, frequencies, is_scaled ? TN_F32 : dtype);
    if (is_scaled)
        x = block_scale_turned(step, d, x);
    return block_exchange(step, block_as(step, x, dtype), step->count, heads, size);
}

void block_caches(const decoder *d, int64_t capacity, tn_type out_types[2])
{
    for (int i = 0; i < 2; i++)
        out_types[i] =
            (tn_type){.dtype = TN_F32,
                      .rank = 4,
                      .extent = {1, d->facts.kv_heads, capacity, d->facts.head_size}};
}

// Adds the rows of this step to a cache.
static tn_array *block_grow(const tn_model_step *step, tn_array *cache, tn_array *rows)
{
    if (!step->slots)
        return step->build->op(step->build, "base.dynamic_slice_update/1",
                               TN_IN(cache, rows, step->start), TN_NO_ATTRS);
    return step->build->op(step->build, "quant.cache_update/1",
                           TN_IN(cache, rows, step->position, step->slots),
                           tn_attrs("format", step->cache_format));
}

// Attention of q over the caches; q has the caches' dtype unless the caches are blocks.
static tn_array *block_attend(const tn_model_step *step, const decoder *d, tn_array *q,
                              tn_array *const caches[2], int64_t window)
{
    const tn_build *build = step->build;
    const int64_t causal = 1;
    if (!step->slots)
        q = build->op(build, "nn.scaled_dot_product_attention/1",
                      TN_IN(q, caches[0], caches[1], NULL, step->length),
                      tn_attrs("scale", d->score_scale, "is_causal", causal, "window",
                               window, "soft_cap", d->score_cap));
    else
        q = build->op(build, "quant.cached_attention/1",
                      TN_IN(q, caches[0], caches[1], step->length, step->slots),
                      tn_attrs("scale", d->score_scale, "is_causal", causal, "window",
                               window, "soft_cap", d->score_cap, "format",
                               step->cache_format));
    return block_as(step, q, TN_F32);
}

// Columns first .. first + count - 1 of a matrix.
static tn_array *block_columns(const tn_model_step *step, tn_array *x, int64_t first,
                               int64_t count)
{
    return step->build->op(
        step->build, "base.slice/1", TN_IN(x),
        tn_attrs("start", TN_INTS(0, first), "stop", TN_INTS(INT64_MAX, first + count)));
}

// The products of queries, keys and values.
static void block_qkv(const tn_model_step *step, const decoder *d, tn_array *h,
                      int64_t layer, tn_array *out[3])
{
    static const char *const names[] = {"attn_q", "attn_k", "attn_v"};
    const tn_model_facts *f = &d->facts;
    const int64_t heads[] = {f->heads, f->kv_heads, f->kv_heads};
    tn_array *all = d->is_fused ? block_linear(step, h, layer, "attn_qkv") : NULL;
    for (int64_t i = 0, first = 0; i < 3; first += heads[i++] * f->head_size)
        out[i] = d->is_fused ? block_columns(step, all, first, heads[i] * f->head_size)
                             : block_linear(step, h, layer, names[i]);
}

tn_array *block_attention(tn_model_step *step, const decoder *d, tn_array *h, int64_t layer,
                          tn_array *frequencies)
{
    const tn_model_facts *f = &d->facts;
    tn_array **caches = step->caches + 2 * (layer - step->first), *made[3];
    block_qkv(step, d, h, layer, made);
    const tn_type *type = caches[0] ? step->build->type(caches[0]) : NULL;
    tn_dtype dtype = type && !step->cache_format ? type->dtype : TN_F32;
    tn_dtype written = step->slots ? TN_F32 : dtype; // quant.cache_update converts it
    tn_array *q =
        block_heads(step, d, made[0], layer, "attn_q", f->heads, frequencies, dtype);
    tn_array *grown[2] = {
        block_heads(step, d, made[1], layer, "attn_k", f->kv_heads, frequencies, written),
        block_heads(step, d, made[2], layer, "attn_v", f->kv_heads, NULL, written)};
    int64_t window = d->sees_all[layer] ? 0 : d->window;
    for (int i = 0; i < 2; i++)
        caches[i] = block_grow(step, caches[i], grown[i]);
    tn_array *seen = block_attend(step, d, q, caches, window);
    seen = block_exchange(step, seen, f->heads, step->count, f->head_size);
    return block_reshape(step, seen, block_rows(step), f->heads * f->head_size, 0, 0);
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

tn_array *block_gate(const tn_model_step *step, const decoder *d, tn_array *g, tn_array *u)
{
    return step->build->expr(step->build, d->gate, TN_IN(g, u), TN_NO_ATTRS);
}

tn_array *block_gated_by(const tn_model_step *step, const decoder *d, tn_array *h,
                         int64_t layer, const char *const names[3])
{
    char name[TN_MODEL_NAME];
    tn_array *gate = step->product(step, h, block_name(layer, names[0], "weight", name));
    tn_array *up = step->product(step, h, block_name(layer, names[1], "weight", name));
    return step->product(step, block_gate(step, d, gate, up),
                         block_name(layer, names[2], "weight", name));
}

tn_array *block_gated(const tn_model_step *step, const decoder *d, tn_array *h,
                      int64_t layer)
{
    tn_array *gate = d->is_fused ? NULL : block_linear(step, h, layer, "ffn_gate");
    tn_array *up = block_linear(step, h, layer, "ffn_up");
    if (d->is_fused) {
        gate = block_columns(step, up, 0, d->inner);
        up = block_columns(step, up, d->inner, d->inner);
    }
    return block_linear(step, block_gate(step, d, gate, up), layer, "ffn_down");
}

tn_array *block_embed(const tn_model_step *step)
{
    return step->first > 0 ? step->input
                           : step->rows(step, step->input, "token_embd.weight");
}

tn_array *block_logits(tn_model_step *step, const decoder *d, tn_array *x, int32_t is_tied)
{
    tn_array *h = block_norm(step, d, x, TN_MODEL_OUTPUT, "output_norm");
    step->hidden = h;
    tn_array *y = step->product(step, h, is_tied ? "token_embd.weight" : "output.weight");
    tn_array *bias = step->weight(step, "output.bias");
    return bias ? block_add(step, y, bias) : y;
}

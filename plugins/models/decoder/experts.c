// SPDX-License-Identifier: MIT
// Feed-forwards of several experts, of which each position uses the few that a router
// chooses for it.
#include <stdbool.h>
#include <stdio.h>
#include "decoder.h"

// --- dimensions ------------------------------------------------------------------------

// Whether a layer has a router: in some models a few layers have one feed-forward.
static int32_t has_router(const tn_model_source *source, int64_t layer)
{
    char name[TN_MODEL_NAME];
    tn_type type;
    return source->weight(source, block_name(layer, "ffn_gate_inp", "weight", name), &type);
}

static tn_status experts_sizes(decoder *d, const tn_model_source *source)
{
    const tn_metadata_list *list = source->metadata;
    tn_type type;
    tn_status status =
        decoder_integer(d, list, "expert_used_count", d->experts, -1, &d->experts_used);
    if (status == TN_OK)
        status = decoder_integer(d, list, "expert_feed_forward_length", 1 << 24, d->inner,
                                 &d->expert_inner);
    for (int64_t layer = 0; layer < d->facts.layers; layer++) {
        char name[TN_MODEL_NAME];
        d->has_experts[layer] = has_router(source, layer) != 0;
        d->has_shared |= source->weight(
            source, block_name(layer, "ffn_up_shexp", "weight", name), &type);
        block_name(layer, "ffn_gate_inp_shexp", "weight", name);
        if (source->weight(source, name, &type))
            d->shared_gate_rank = type.rank == 2 ? 2 : 1;
    }
    if (status == TN_OK && d->has_shared)
        status = decoder_integer(d, list, "expert_shared_feed_forward_length", 1 << 24,
                                 d->inner, &d->shared_inner);
    return status;
}

tn_status decoder_experts(decoder *d, const tn_model_source *source, int32_t is_normed)
{
    const tn_metadata_list *list = source->metadata;
    char key[DECODER_KEY];
    int64_t count = 0, gating = 1;
    const tn_metadata *pair = tn_metadata_find(list, decoder_key(d, "expert_count", key));
    if (!pair || (tn_metadata_integer(pair, &count) && count == 0))
        return TN_OK;
    d->is_normed = is_normed;
    tn_metadata_bool(tn_metadata_find(list, decoder_key(d, "expert_weights_norm", key)),
                     &d->is_normed);
    tn_status status = decoder_integer(d, list, "expert_count", 65536, -1, &d->experts);
    if (status == TN_OK)
        status = experts_sizes(d, source);
    if (status != TN_OK)
        return status;
    decoder_key(d, "expert_gating_func", key);
    if (tn_metadata_integer(tn_metadata_find(list, key), &gating) && gating > 1)
        return d->host->fail(d->host, TN_ERR_UNSUPPORTED,
                             "%s: %s is %lld, expected 1, softmax", list->name, key,
                             (long long)gating);
    return TN_OK;
}

// --- weights ---------------------------------------------------------------------------

static const char *const own[] = {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
static const char *const shared[] = {"ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"};

void list_feed(weight_list *list, const decoder *d, int64_t layer)
{
    if (!d->has_experts[layer]) {
        list_gated(list, d, layer);
        return;
    }
    int64_t width = d->facts.width;
    list_add(list, layer, "ffn_gate_inp", "weight", d->experts, width, TN_MODEL_PRODUCT);
    for (int i = 0; i < 3; i++) {
        int64_t rows = i < 2 ? d->expert_inner : width;
        list_add(list, layer, own[i], "weight", rows, i < 2 ? width : d->expert_inner,
                 TN_MODEL_PRODUCT);
        if (!list->out || list->count > list->room)
            continue;
        tn_model_weight *w = &list->out[list->count - 1];
        w->rank = 3;
        w->extent[2] = w->extent[1];
        w->extent[1] = w->extent[0];
        w->extent[0] = d->experts;
    }
    for (int i = 0; i < 3 && d->has_shared; i++)
        list_add(list, layer, shared[i], "weight", i < 2 ? d->shared_inner : width,
                 i < 2 ? width : d->shared_inner, TN_MODEL_PRODUCT);
    // The shared gate is one row, which newer files of GGUF have as a matrix.
    bool is_matrix = d->shared_gate_rank == 2;
    if (d->has_shared)
        list_add(list, layer, "ffn_gate_inp_shexp", "weight", is_matrix ? 1 : width,
                 is_matrix ? width : 0, TN_MODEL_OPTIONAL);
}

// --- the graph -------------------------------------------------------------------------

static tn_array *decoder_experts_reshape(const tn_model_step *step, tn_array *x, int64_t a,
                                         int64_t b, int64_t c)
{
    return step->build->op(step->build, "base.reshape/1", TN_IN(x),
                           tn_attrs("shape", TN_INTS(a, b, c)));
}

static tn_array *decoder_experts_sum(const tn_model_step *step, tn_array *x, int64_t axis,
                                     int64_t keepdims)
{
    return step->build->op(step->build, "base.sum/1", TN_IN(x),
                           tn_attrs("axis", TN_INTS(axis), "keepdims", keepdims));
}

static tn_array *decoder_experts_times(const tn_model_step *step, tn_array *a, tn_array *b)
{
    return step->build->expr(step->build, "a, b -> a * b", TN_IN(a, b), TN_NO_ATTRS);
}

// The experts of each row, [rows, used], and their weights in *weights.
static tn_array *decoder_experts_route(const tn_model_step *step, const decoder *d,
                                       tn_array *h, int64_t layer, tn_array **weights)
{
    const tn_build *build = step->build;
    char name[TN_MODEL_NAME];
    tn_array *made[2] = {NULL, NULL};
    tn_array *scores =
        step->product(step, h, block_name(layer, "ffn_gate_inp", "weight", name));
    // A softmax over the greatest scores equals the softmax of all, divided by its sum over
    // these.
    if (!d->is_normed)
        scores = build->op(build, "nn.softmax/1", TN_IN(scores), TN_NO_ATTRS);
    build->op_n(build, "base.topk/1", (const tn_array *const[]){scores}, 1,
                tn_attrs("k", d->experts_used), made, 2);
    *weights = d->is_normed ? build->op(build, "nn.softmax/1", TN_IN(made[0]), TN_NO_ATTRS)
                            : made[0];
    return made[1];
}

// The expert that all positions use, times its gate where the file has one.
static tn_array *block_shared(const tn_model_step *step, const decoder *d, tn_array *h,
                              int64_t layer)
{
    char name[TN_MODEL_NAME];
    tn_array *y = block_gated_by(step, d, h, layer, shared);
    tn_array *gate =
        step->weight(step, block_name(layer, "ffn_gate_inp_shexp", "weight", name));
    return gate ? step->build->expr(
                      step->build, "y, g -> y / (1 + exp(-g))",
                      TN_IN(y, decoder_experts_sum(
                                   step, decoder_experts_times(step, h, gate), -1, 1)),
                      TN_NO_ATTRS)
                : y;
}

tn_array *block_feed(const tn_model_step *step, const decoder *d, tn_array *h,
                     int64_t layer)
{
    const tn_type *type = h ? step->build->type(h) : NULL;
    if (!type || !d->has_experts[layer])
        return block_gated(step, d, h, layer);
    char names[3][TN_MODEL_NAME];
    for (int i = 0; i < 3; i++)
        block_name(layer, own[i], "weight", names[i]);
    int64_t rows = type->extent[0], used = d->experts_used, width = d->facts.width;
    tn_array *weights = NULL, *ids = decoder_experts_route(step, d, h, layer, &weights);
    tn_array *x = decoder_experts_reshape(step, h, rows, 1, width);
    tn_array *both = block_gate(step, d, step->experts(step, x, ids, names[0]),
                                step->experts(step, x, ids, names[1]));
    tn_array *each = step->experts(step, both, ids, names[2]);
    tn_array *y = decoder_experts_sum(
        step,
        decoder_experts_times(step, each,
                              decoder_experts_reshape(step, weights, rows, used, 1)),
        1, 0);
    return d->has_shared ? block_add(step, y, block_shared(step, d, h, layer)) : y;
}

// SPDX-License-Identifier: MIT
// The architecture of Llama 2 and 3, Mistral and SmolLM2: RMS norms, rotary embedding,
// key-value heads that query heads share, and a gated feed-forward. Qwen 2, which adds
// biases, Qwen 3, which has norms of queries and keys instead, and Phi-3 differ in the
// order of the pairs that the embedding turns; biases and norms are weights that a file has
// or not. Phi-3 joins some weights; Mixtral, whose architecture is llama, and the ones
// called moe have experts.
#include <stdlib.h>
#include <string.h>
#include <tenon/provider.h>
#include "decoder/decoder.h"

struct tn_model_self {
    decoder d;
    int32_t is_tied; // the embedding is the output matrix, too
};

static tn_status llama_open(const tn_host *host, const tn_model_source *source,
                            tn_model_self **out_model, const tn_model_facts **out_facts)
{
    tn_type output;
    tn_model_self *self = host->alloc(host, sizeof(*self), 0);
    if (!self)
        return TN_ERR_MEMORY;
    memset(self, 0, sizeof(*self));
    self->d.interleaved = decoder_says(source->metadata, "general.architecture", "llama");
    self->d.is_fused = decoder_says(source->metadata, "general.architecture", "phi3");
    self->is_tied = !source->weight(source, "output.weight", &output);
    tn_status status = decoder_read(host, source, &self->d);
    if (status == TN_OK)
        status = decoder_pattern(&self->d, source->metadata, 0);
    if (status == TN_OK)
        status = decoder_experts(&self->d, source,
                                 strcmp(self->d.architecture, "qwen2moe") != 0);
    if (status != TN_OK) {
        host->free(host, self);
        return status;
    }
    *out_model = self;
    *out_facts = &self->d.facts;
    return TN_OK;
}

static void llama_close(const tn_host *host, tn_model_self *self)
{
    host->free(host, self);
}

static tn_status llama_weights(const tn_host *host, const tn_model_self *self,
                               int64_t layer, tn_model_weight *out, uint64_t *count)
{
    (void)host;
    weight_list list = {out, *count, 0};
    if (layer < 0) {
        list_ends(&list, &self->d, layer, self->is_tied);
    } else {
        list_add(&list, layer, "attn_norm", "weight", self->d.facts.width, 0, 0);
        list_attention(&list, &self->d, layer);
        list_add(&list, layer, "ffn_norm", "weight", self->d.facts.width, 0, 0);
        list_feed(&list, &self->d, layer);
    }
    *count = list.count;
    return TN_OK;
}

static tn_status llama_caches(const tn_host *host, const tn_model_self *self, int64_t layer,
                              int64_t capacity, tn_type *out_types)
{
    (void)host, (void)layer;
    block_caches(&self->d, capacity, out_types);
    return TN_OK;
}

static tn_array *llama_layer(tn_model_step *step, const decoder *d, tn_array *x,
                             int64_t layer, tn_array *frequencies)
{
    tn_array *h = block_norm(step, d, x, layer, "attn_norm");
    h = block_attention(step, d, h, layer, frequencies);
    h = block_last(step, d, h, layer);
    x = block_last(step, d, x, layer);
    x = block_add(step, x, block_linear(step, h, layer, "attn_output"));
    h = block_norm(step, d, x, layer, "ffn_norm");
    return block_add(step, x, block_feed(step, d, h, layer));
}

static tn_status llama_build(const tn_host *host, const tn_model_self *self,
                             tn_model_step *step)
{
    (void)host;
    const decoder *d = &self->d;
    tn_array *x = block_embed(step), *frequencies = block_frequencies(step, d);
    for (int64_t layer = step->first; layer < step->end; layer++)
        x = llama_layer(step, d, x, layer, frequencies);
    step->output =
        step->end < d->facts.layers ? x : block_logits(step, d, x, self->is_tied);
    return TN_OK;
}

static const tn_model model = {
    .struct_size = sizeof(model),
    .open = llama_open,
    .close = llama_close,
    .weights = llama_weights,
    .caches = llama_caches,
    .build = llama_build,
};

static const tn_selector selectors[] = {
    {TN_IFACE_MODEL, "architecture", "llama"}, {TN_IFACE_MODEL, "architecture", "phi3"},
    {TN_IFACE_MODEL, "architecture", "qwen2"}, {TN_IFACE_MODEL, "architecture", "qwen2moe"},
    {TN_IFACE_MODEL, "architecture", "qwen3"}, {TN_IFACE_MODEL, "architecture", "qwen3moe"},
};

TN_PROVIDER("org.tenon.llama", "0.1.0", "Tenon", TN_IFACE_MODEL, model, selectors);

// SPDX-License-Identifier: MIT
// The architectures of Gemma 1, 2 and 3 (text): Llama's with a scaled embedding and GELU.
// Gemma 2 adds norms behind attention and feed-forward, soft caps of scores and logits, and
// a window in every other layer; Gemma 3 norms of queries and keys in the place of the
// caps, and a window in five of six layers, which have a rotary embedding of their own.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/provider.h>
#include "decoder/decoder.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define NO_CAP 1e9 // a bound from here on means no bound

// Values of a version that a file may leave out.
struct gemma_version {
    const char *architecture;
    int64_t window, period; // see decoder_pattern
    int64_t has_norms_behind;
    double score_cap, logit_cap;
    double local_base; // of windowed layers' rotary embedding; 0: as in all
    int64_t largest;   // layers of the size that scales scores by the heads' width
};
static const struct gemma_version versions[] = {
    {.architecture = "gemma"},
    {.architecture = "gemma2",
     .window = 4096,
     .period = 2,
     .has_norms_behind = 1,
     .score_cap = 50,
     .logit_cap = 30,
     .largest = 46},
    {.architecture = "gemma3",
     .period = 6,
     .has_norms_behind = 1,
     .local_base = 10000,
     .largest = 62},
};

struct tn_model_self {
    decoder d;
    const struct gemma_version *version;
    double logit_cap;           // 0: none
    float local[DECODER_PAIRS]; // frequencies of windowed layers
    int32_t is_tied;
};

// --- dimensions ------------------------------------------------------------------------

static tn_status gemma_read(const tn_host *host, const tn_model_source *source,
                            tn_model_self *self)
{
    decoder *d = &self->d;
    char key[DECODER_KEY];
    const tn_metadata_list *list = source->metadata;
    for (size_t i = 0; i < COUNT(versions); i++)
        if (decoder_says(list, "general.architecture", versions[i].architecture))
            self->version = &versions[i];
    const struct gemma_version *v = self->version;
    if (!v)
        return host->fail(host, TN_ERR_REFUSED, "%s: general.architecture is no Gemma",
                          list->name);
    double local_base = v->local_base;
    d->window = v->window;
    d->activation = "gelu_pytorch_tanh";
    tn_status status = decoder_read(host, source, d);
    if (status == TN_OK)
        status = decoder_pattern(d, list, v->period);
    if (status == TN_OK)
        status =
            decoder_number(d, list, "attn_logit_softcapping", v->score_cap, &d->score_cap);
    if (status == TN_OK)
        status = decoder_number(d, list, "final_logit_softcapping", v->logit_cap,
                                &self->logit_cap);
    if (status == TN_OK && v->local_base > 0)
        status = decoder_number(d, list, "rope.freq_base_swa", v->local_base, &local_base);
    if (status != TN_OK)
        return status;
    d->score_cap = d->score_cap < NO_CAP ? d->score_cap : 0;
    self->logit_cap = self->logit_cap < NO_CAP ? self->logit_cap : 0;
    rope_frequencies(d, local_base, self->local);
    // GGUF has no key for this scale.
    const tn_model_facts *f = &d->facts;
    if (f->layers == v->largest &&
        !tn_metadata_find(list, decoder_key(d, "attention.scale", key)))
        d->score_scale *= sqrt((double)(f->head_size * f->heads) / (double)f->width);
    return TN_OK;
}

static tn_status gemma_open(const tn_host *host, const tn_model_source *source,
                            tn_model_self **out_model, const tn_model_facts **out_facts)
{
    tn_type output;
    tn_model_self *self = host->alloc(host, sizeof(*self), 0);
    if (!self)
        return TN_ERR_MEMORY;
    memset(self, 0, sizeof(*self));
    self->is_tied = !source->weight(source, "output.weight", &output);
    tn_status status = gemma_read(host, source, self);
    if (status != TN_OK) {
        host->free(host, self);
        return status;
    }
    *out_model = self;
    *out_facts = &self->d.facts;
    return TN_OK;
}

static void gemma_close(const tn_host *host, tn_model_self *self)
{
    host->free(host, self);
}

// --- weights ---------------------------------------------------------------------------

static tn_status gemma_weights(const tn_host *host, const tn_model_self *self,
                               int64_t layer, tn_model_weight *out, uint64_t *count)
{
    (void)host;
    const decoder *d = &self->d;
    int64_t width = d->facts.width;
    weight_list list = {out, *count, 0};
    if (layer < 0) {
        list_ends(&list, d, layer, self->is_tied);
    } else {
        list_add(&list, layer, "attn_norm", "weight", width, 0, 0);
        list_attention(&list, d, layer);
        list_add(&list, layer, "ffn_norm", "weight", width, 0, 0);
        list_gated(&list, d, layer);
        if (self->version->has_norms_behind) {
            list_add(&list, layer, "post_attention_norm", "weight", width, 0, 0);
            list_add(&list, layer, "post_ffw_norm", "weight", width, 0, 0);
        }
    }
    *count = list.count;
    return TN_OK;
}

static tn_status gemma_caches(const tn_host *host, const tn_model_self *self, int64_t layer,
                              int64_t capacity, tn_type *out_types)
{
    (void)host, (void)layer;
    block_caches(&self->d, capacity, out_types);
    return TN_OK;
}

// --- the graph -------------------------------------------------------------------------

static tn_array *gemma_layer(tn_model_step *step, const tn_model_self *self, tn_array *x,
                             int64_t layer, tn_array *frequencies)
{
    const decoder *d = &self->d;
    tn_array *h = block_norm(step, d, x, layer, "attn_norm");
    h = block_attention(step, d, h, layer, frequencies);
    h = block_last(step, d, h, layer);
    x = block_last(step, d, x, layer);
    h = block_linear(step, h, layer, "attn_output");
    if (self->version->has_norms_behind)
        h = block_norm(step, d, h, layer, "post_attention_norm");
    x = block_add(step, x, h);
    h = block_gated(step, d, block_norm(step, d, x, layer, "ffn_norm"), layer);
    if (self->version->has_norms_behind)
        h = block_norm(step, d, h, layer, "post_ffw_norm");
    return block_add(step, x, h);
}

// The hidden state at the beginning of the step: embeddings are scaled.
static tn_array *gemma_embed(const tn_model_step *step, const decoder *d)
{
    tn_array *x = block_embed(step);
    return step->first > 0 ? x
                           : step->build->expr(step->build, "x -> x * s", TN_IN(x),
                                               tn_attrs("s", sqrt((double)d->facts.width)));
}

static tn_array *gemma_logits(tn_model_step *step, const tn_model_self *self, tn_array *x)
{
    tn_array *y = block_logits(step, &self->d, x, self->is_tied);
    return self->logit_cap > 0
               ? step->build->expr(step->build, "y -> cap * tanh(y / cap)", TN_IN(y),
                                   tn_attrs("cap", self->logit_cap))
               : y;
}

static tn_status gemma_build(const tn_host *host, const tn_model_self *self,
                             tn_model_step *step)
{
    (void)host;
    const decoder *d = &self->d;
    const tn_shape shape = {.rank = 1, .extent = {d->rotary / 2}};
    tn_array *x = gemma_embed(step, d), *all = block_frequencies(step, d);
    tn_array *local = self->version->local_base > 0
                          ? step->constant(step, TN_F32, &shape, self->local)
                          : all;
    for (int64_t layer = step->first; layer < step->end; layer++)
        x = gemma_layer(step, self, x, layer,
                        d->window && !d->sees_all[layer] ? local : all);
    step->output = step->end < d->facts.layers ? x : gemma_logits(step, self, x);
    return TN_OK;
}

// --- the plugin ------------------------------------------------------------------------

static const tn_model model = {
    .struct_size = sizeof(model),
    .open = gemma_open,
    .close = gemma_close,
    .weights = gemma_weights,
    .caches = gemma_caches,
    .build = gemma_build,
};

static const tn_selector selectors[] = {
    {TN_IFACE_MODEL, "architecture", "gemma"},
    {TN_IFACE_MODEL, "architecture", "gemma2"},
    {TN_IFACE_MODEL, "architecture", "gemma3"},
};

TN_PROVIDER("org.tenon.gemma", "0.1.0", "Tenon", TN_IFACE_MODEL, model, selectors);

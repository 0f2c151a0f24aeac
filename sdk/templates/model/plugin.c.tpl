// SPDX-License-Identifier: @LICENSE@
// The architecture @NAME@ of language models: layers in which attention and the gated
// feed-forward stand side by side, behind one norm.
#include <decoder.h>
#include <string.h>
#include <tenon/provider.h>

struct tn_model_self {
    decoder d;
    int32_t is_tied; // the embedding is the matrix of the output, too
};

static tn_status model_open(const tn_host *host, const tn_model_source *source,
                            tn_model_self **out_model, const tn_model_facts **out_facts)
{
    tn_type output;
    tn_model_self *self = host->alloc(host, sizeof(*self), 0);
    if (!self)
        return TN_ERR_MEMORY;
    memset(self, 0, sizeof(*self));
    self->is_tied = !source->weight(source, "output.weight", &output);
    tn_status status = decoder_read(host, source, &self->d);
    if (status != TN_OK) {
        host->free(host, self);
        return status;
    }
    *out_model = self;
    *out_facts = &self->d.facts;
    return TN_OK;
}

static void model_close(const tn_host *host, tn_model_self *self)
{
    host->free(host, self);
}

static tn_status model_weights(const tn_host *host, const tn_model_self *self,
                               int64_t layer, tn_model_weight *out, uint64_t *count)
{
    (void)host;
    weight_list list = {out, *count, 0};
    if (layer < 0) {
        list_ends(&list, &self->d, layer, self->is_tied);
    } else {
        list_add(&list, layer, "attn_norm", "weight", self->d.facts.width, 0, 0);
        list_attention(&list, &self->d, layer);
        list_gated(&list, &self->d, layer);
    }
    *count = list.count;
    return TN_OK;
}

static tn_status model_caches(const tn_host *host, const tn_model_self *self, int64_t layer,
                              int64_t capacity, tn_type *out_types)
{
    (void)host, (void)layer;
    block_caches(&self->d, capacity, out_types);
    return TN_OK;
}

static tn_array *model_layer(tn_model_step *step, const decoder *d, tn_array *x,
                             int64_t layer, tn_array *frequencies)
{
    tn_array *h = block_norm(step, d, x, layer, "attn_norm");
    tn_array *seen = block_attention(step, d, h, layer, frequencies);
    seen = block_linear(step, block_last(step, d, seen, layer), layer, "attn_output");
    h = block_gated(step, d, block_last(step, d, h, layer), layer);
    return block_add(step, block_last(step, d, x, layer), block_add(step, seen, h));
}

static tn_status model_build(const tn_host *host, const tn_model_self *self,
                             tn_model_step *step)
{
    (void)host;
    const decoder *d = &self->d;
    tn_array *x = block_embed(step), *frequencies = block_frequencies(step, d);
    for (int64_t layer = step->first; layer < step->end; layer++)
        x = model_layer(step, d, x, layer, frequencies);
    step->output =
        step->end < d->facts.layers ? x : block_logits(step, d, x, self->is_tied);
    return TN_OK;
}

static const tn_model model = {
    .struct_size = sizeof(model),
    .open = model_open,
    .close = model_close,
    .weights = model_weights,
    .caches = model_caches,
    .build = model_build,
};

static const tn_selector selectors[] = {{TN_IFACE_MODEL, "architecture", "@NAME@"}};

TN_PROVIDER("@ID@", "0.1.0", "@VENDOR@", TN_IFACE_MODEL, model, selectors);

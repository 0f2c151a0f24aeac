// SPDX-License-Identifier: MIT
// The dimensions of a decoder, from metadata.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "decoder.h"

// --- reading metadata ------------------------------------------------------------------

const char *decoder_key(const decoder *d, const char *name, char out[DECODER_KEY])
{
    snprintf(out, DECODER_KEY, "%s.%s", d->architecture, name);
    return out;
}

tn_status decoder_integer(const decoder *d, const tn_metadata_list *list, const char *name,
                          int64_t most, int64_t otherwise, int64_t *out)
{
    char key[DECODER_KEY];
    const tn_metadata *pair = tn_metadata_find(list, decoder_key(d, name, key));
    if (!pair && otherwise >= 0) {
        *out = otherwise;
        return TN_OK;
    }
    if (!pair)
        return d->host->fail(d->host, TN_ERR_REFUSED, "%s: %s is missing", list->name, key);
    if (!tn_metadata_integer(pair, out))
        return d->host->fail(d->host, TN_ERR_REFUSED,
                             "%s: %s is no integer, expected 1 to %lld", list->name, key,
                             (long long)most);
    if (*out < 1 || *out > most)
        return d->host->fail(d->host, TN_ERR_REFUSED, "%s: %s is %lld, expected 1 to %lld",
                             list->name, key, (long long)*out, (long long)most);
    return TN_OK;
}

tn_status decoder_number(const decoder *d, const tn_metadata_list *list, const char *name,
                         double otherwise, double *out)
{
    char key[DECODER_KEY];
    const tn_metadata *pair = tn_metadata_find(list, decoder_key(d, name, key));
    if (!pair && otherwise >= 0) {
        *out = otherwise;
        return TN_OK;
    }
    if (!pair)
        return d->host->fail(d->host, TN_ERR_REFUSED, "%s: %s is missing", list->name, key);
    double number = 0;
    if (!tn_metadata_number(pair, &number) || !(number > 0 && number < 1e30))
        return d->host->fail(d->host, TN_ERR_REFUSED,
                             "%s: %s is %s, expected a positive number", list->name, key,
                             number != 0 ? "out of range" : "no number, or 0");
    *out = number;
    return TN_OK;
}

int32_t decoder_says(const tn_metadata_list *list, const char *key, const char *value)
{
    tn_text text;
    return tn_metadata_text(tn_metadata_find(list, key), &text) &&
           text.size == strlen(value) && memcmp(text.data, value, text.size) == 0;
}

// --- dimensions ------------------------------------------------------------------------

// Reads the numbers of query heads and of key-value heads, and the size of a head.
static tn_status decoder_heads(decoder *d, const tn_metadata_list *list)
{
    tn_model_facts *f = &d->facts;
    int64_t values = 0;
    tn_status status =
        decoder_integer(d, list, "attention.head_count", 65536, -1, &f->heads);
    if (status == TN_OK)
        status = decoder_integer(d, list, "attention.head_count_kv", f->heads, f->heads,
                                 &f->kv_heads);
    if (status == TN_OK)
        status = decoder_integer(d, list, "attention.key_length", 65536,
                                 f->width / f->heads, &f->head_size);
    if (status == TN_OK)
        status = decoder_integer(d, list, "attention.value_length", 65536, f->head_size,
                                 &values);
    if (status != TN_OK)
        return status;
    if (f->heads % f->kv_heads || values != f->head_size || f->head_size < 1)
        return d->host->fail(d->host, TN_ERR_REFUSED,
                             "%s: %lld heads of %lld share %lld of keys with values of "
                             "%lld, expected a multiple, and values as long as keys",
                             list->name, (long long)f->heads, (long long)f->head_size,
                             (long long)f->kv_heads, (long long)values);
    status = decoder_number(d, list, "attention.scale", 1 / sqrt((double)f->head_size),
                            &d->score_scale);
    d->turned_scale = 1;
    return status;
}

// Reads the window; files of models without one may say 0.
static tn_status decoder_window(decoder *d, const tn_metadata_list *list)
{
    char key[DECODER_KEY];
    int64_t window = 0;
    const char *name = "attention.sliding_window";
    const tn_metadata *pair = tn_metadata_find(list, decoder_key(d, name, key));
    if (tn_metadata_integer(pair, &window) && window == 0) {
        d->window = 0;
        return TN_OK;
    }
    return decoder_integer(d, list, name, 1 << 30, d->window, &d->window);
}

tn_status decoder_pattern(decoder *d, const tn_metadata_list *list, int64_t period)
{
    static const char name[] = "attention.sliding_window_pattern";
    char key[DECODER_KEY];
    const tn_metadata *pair = tn_metadata_find(list, decoder_key(d, name, key));
    uint64_t layers = (uint64_t)d->facts.layers;
    if (!pair || !(pair->flags & TN_METADATA_LIST)) {
        tn_status status = decoder_integer(d, list, name, 1 << 30, period, &period);
        for (uint64_t i = 0; status == TN_OK && period && i < layers; i++)
            d->sees_all[i] = (i + 1) % (uint64_t)period == 0;
        return status;
    }
    if (pair->kind != TN_METADATA_BOOL || pair->count != layers)
        return d->host->fail(d->host, TN_ERR_REFUSED,
                             "%s: %s has %llu values, expected a bool for each of %llu "
                             "layers",
                             list->name, key, (unsigned long long)pair->count,
                             (unsigned long long)layers);
    for (uint64_t i = 0; i < layers; i++)
        d->sees_all[i] = !((const uint8_t *)pair->data)[i];
    return TN_OK;
}

// Refuses models whose positions see later ones: cached steps cannot compute these.
static tn_status decoder_causal(const decoder *d, const tn_metadata_list *list)
{
    char key[DECODER_KEY];
    int32_t is_causal = 1;
    tn_metadata_bool(tn_metadata_find(list, decoder_key(d, "attention.causal", key)),
                     &is_causal);
    return is_causal ? TN_OK
                     : d->host->fail(d->host, TN_ERR_UNSUPPORTED,
                                     "%s: %s is false, expected true: positions that see "
                                     "later ones are not run",
                                     list->name, key);
}

// Expressions of a gate g and the product u that it multiplies, by transformers' names.
static const struct {
    const char *name, *gate;
} activations[] = {
    {"silu", "g, u -> g / (1 + exp(-g)) * u"},
    {"relu", "g, u -> max(g, 0) * u"},
    {"gelu", "g, u -> 0.5 * g * (1 + erf(g * 0.7071067811865476)) * u"},
    {"gelu_pytorch_tanh",
     "g, u -> 0.5 * g * "
     "(1 + tanh(0.7978845608028654 * (g + 0.044715 * g * g * g))) * u"},
};

static tn_status decoder_activation(decoder *d, const tn_metadata_list *list,
                                    const char *otherwise)
{
    char key[DECODER_KEY];
    tn_text name = {otherwise, strlen(otherwise)};
    (void)tn_metadata_text(tn_metadata_find(list, decoder_key(d, "hidden_activation", key)),
                           &name);
    for (uint32_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++)
        if (strlen(activations[i].name) == name.size &&
            memcmp(activations[i].name, name.data, name.size) == 0)
            d->gate = activations[i].gate;
    if (d->gate)
        return TN_OK;
    return d->host->fail(d->host, TN_ERR_UNSUPPORTED,
                         "%s: %s is '%.64s', expected silu, relu, gelu or "
                         "gelu_pytorch_tanh",
                         list->name, key, name.data);
}

tn_status decoder_read(const tn_host *host, const tn_model_source *source, decoder *d)
{
    const tn_metadata_list *list = source->metadata;
    tn_model_facts *f = &d->facts;
    tn_text name;
    tn_type embedding;
    d->host = host;
    *f = (tn_model_facts){.struct_size = sizeof(*f), .num_caches = 2};
    if (!tn_metadata_text(tn_metadata_find(list, "general.architecture"), &name) ||
        name.size == 0 || name.size >= sizeof(d->architecture))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: general.architecture is missing, or too long", list->name);
    memcpy(d->architecture, name.data, name.size);
    d->architecture[name.size] = 0;
    const struct {
        const char *name;
        int64_t most, *out;
    } numbers[] = {
        {"block_count", DECODER_LAYERS, &f->layers},
        {"embedding_length", 1 << 20, &f->width},
        {"feed_forward_length", 1 << 24, &d->inner},
        {"context_length", 1 << 30, &f->context},
    };
    tn_status status = TN_OK;
    for (uint32_t i = 0; status == TN_OK && i < sizeof(numbers) / sizeof(numbers[0]); i++)
        status =
            decoder_integer(d, list, numbers[i].name, numbers[i].most, -1, numbers[i].out);
    if (status == TN_OK)
        status = decoder_window(d, list);
    if (status == TN_OK)
        status = decoder_number(d, list, "attention.layer_norm_rms_epsilon", -1, &d->eps);
    if (status == TN_OK)
        status = decoder_heads(d, list);
    if (status == TN_OK)
        status = decoder_causal(d, list);
    if (status == TN_OK)
        status = decoder_activation(d, list, d->activation ? d->activation : "silu");
    if (status != TN_OK)
        return status;
    if (!source->weight(source, "token_embd.weight", &embedding) || embedding.rank != 2 ||
        embedding.extent[0] < 1)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: token_embd.weight is missing, or no matrix", list->name);
    f->vocabulary = embedding.extent[0];
    return rope_read(d, source);
}

// SPDX-License-Identifier: MIT
// Hashes of models.
#include "hash.h"
#include <stdlib.h>
#include <string.h>
#include <tenon/backend.h>
#include "../base/fail.h"
#include "devices.h"
#include "source.h"
#include "weights.h"

#define SAMPLE 256 // bytes of a weight, in its middle

void lm_hash_bytes(uint64_t *hash, const void *data, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        *hash = (*hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
}

static void hash_pair(uint64_t *hash, const tn_metadata *pair)
{
    lm_hash_bytes(hash, pair->key, strlen(pair->key) + 1);
    lm_hash_bytes(hash, &pair->kind, sizeof(pair->kind));
    lm_hash_bytes(hash, &pair->count, sizeof(pair->count));
    if (pair->kind != TN_METADATA_TEXT) {
        lm_hash_bytes(hash, pair->data,
                      pair->count * (pair->kind == TN_METADATA_BOOL ? 1 : 8));
        return;
    }
    const tn_text *texts = pair->data;
    for (uint64_t i = 0; i < pair->count; i++) {
        lm_hash_bytes(hash, &texts[i].size, sizeof(texts[i].size));
        lm_hash_bytes(hash, texts[i].data, texts[i].size);
    }
}

void lm_hash_metadata(uint64_t *hash, const tn_metadata_list *list)
{
    for (uint64_t i = 0; i < list->count; i++)
        hash_pair(hash, tn_metadata_at(list, i));
}

void lm_hash_weight(uint64_t *hash, const tn_lm *model, const char *name)
{
    const char *format = NULL;
    tn_type type;
    if (!model->source.find(&model->source, name, &type, &format))
        return;
    lm_hash_bytes(hash, name, strlen(name) + 1);
    lm_hash_bytes(hash, &type.dtype, sizeof(type.dtype));
    lm_hash_bytes(hash, type.extent, (uint64_t)type.rank * sizeof(type.extent[0]));
    if (format)
        lm_hash_bytes(hash, format, strlen(format));
}

// Hashes some bytes of a weight of a mapped file, so that little of it is read.
static void hash_sample(uint64_t *hash, const tn_lm *model, tn_scope *scope,
                        const char *name)
{
    tn_array *array = model->source.load(&model->source, scope, name);
    const char *data = array ? tn_data(scope, array) : NULL;
    if (!data)
        return;
    const tn_type *type = tn_array_type(array);
    uint64_t bytes = (uint64_t)tn_dtype_bytes(type->dtype);
    for (int32_t i = 0; i < type->rank; i++)
        bytes *= (uint64_t)type->extent[i];
    uint64_t count = bytes < SAMPLE ? bytes : SAMPLE;
    lm_hash_bytes(hash, data + (bytes - count) / 2, count);
}

// Hashes the weights of a layer. `sample` NULL: no bytes are hashed.
static tn_status hash_part(uint64_t *hash, uint64_t *sample, const tn_lm *model,
                           tn_scope *scope, int64_t layer)
{
    tn_model_weight *list = NULL;
    uint64_t count;
    tn_status status = lm_weights_list(model, layer, &list, &count);
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        const char *format;
        tn_type type;
        list[i].name[TN_MODEL_NAME - 1] = 0;
        if (!model->source.find(&model->source, list[i].name, &type, &format))
            continue;
        lm_hash_weight(hash, model, list[i].name);
        if (sample)
            hash_sample(sample, model, scope, list[i].name);
        status = lm_fail_scope(scope);
    }
    free(list);
    return status;
}

// Whether tn_data gives the mapped memory itself, without a copy from a device.
static tn_status is_at_hand(const tn_lm *model, bool *out)
{
    tn_selected_device devices[LM_MOST_DEVICES];
    int64_t count;
    tn_status status = lm_devices_ask(model, devices, &count);
    *out = status == TN_OK && lm_source_is_file(model) &&
           devices[0].flags & TN_DEVICE_HOST_MEMORY;
    return status;
}

tn_status lm_hash_whole(const tn_lm *model, uint64_t *out, uint64_t *out_sample)
{
    uint64_t hash = LM_HASH_BEGIN, bytes = LM_HASH_BEGIN, *sample = NULL;
    bool has_bytes = false;
    tn_status status = is_at_hand(model, &has_bytes);
    tn_scope *scope = status == TN_OK ? tn_scope_open(model->runtime) : NULL;
    if (status == TN_OK)
        status = lm_fail_scope(scope);
    sample = has_bytes ? &bytes : NULL;
    lm_hash_metadata(&hash, model->source.metadata);
    if (status == TN_OK)
        status = hash_part(&hash, sample, model, scope, TN_MODEL_EMBEDDING);
    for (int64_t i = 0; i < model->facts->layers && status == TN_OK; i++)
        status = hash_part(&hash, sample, model, scope, i);
    if (status == TN_OK)
        status = hash_part(&hash, sample, model, scope, TN_MODEL_OUTPUT);
    tn_scope_close(scope);
    if (status != TN_OK)
        return status;
    *out = hash;
    *out_sample = sample ? bytes : 0;
    return TN_OK;
}

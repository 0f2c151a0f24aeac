// SPDX-License-Identifier: MIT
// The weights: one safetensors file, or those that an index names.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tenon/ops/reference.h>
#include "../common/names.h"
#include "huggingface.h"

#define SINGLE "model.safetensors"
#define INDEX "model.safetensors.index.json"
#define NAME_SIZE 512
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// --- files ------------------------------------------------------------------------------

static struct hf_shard *find_shard(const struct hf *hf, const char *name)
{
    struct hf_shard *shard = hf->shards;
    while (shard && strcmp(shard->name, name) != 0)
        shard = shard->next;
    return shard;
}

// Opens a file of weights, and reads its header.
static tn_status open_shard(struct hf *hf, const char *name)
{
    struct hf_shard *shard = hf_alloc(hf, sizeof(*shard));
    if (!shard)
        return TN_ERR_MEMORY;
    shard->name = name;
    shard->header.host = hf->host;
    tn_status status = hf->folder->open(hf->folder, name, &shard->header.source);
    if (status != TN_OK)
        return status;
    shard->next = hf->shards; // from here on it is finished with the others
    hf->shards = shard;
    return safetensors_read_header(&shard->header);
}

// Opens what the index names, and checks that each array is in the file that it names.
static tn_status open_indexed(struct hf *hf)
{
    const tn_host *host = hf->host;
    const char *name;
    json_t *value;
    tn_status status = hf_read_json(hf, INDEX, 0, &hf->index);
    if (status == TN_ERR_NOT_FOUND)
        return host->fail(host, TN_ERR_NOT_FOUND,
                          "%s: it has neither " SINGLE " nor " INDEX, hf->folder->name);
    json_t *map = json_object_get(hf->index, "weight_map");
    if (status == TN_OK && !json_is_object(map))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: " INDEX ": expected an object \"weight_map\"",
                          hf->folder->name);
    if (status != TN_OK)
        return status;
    json_object_foreach(map, name, value)
    {
        const char *file = json_string_value(value);
        if (!file)
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: " INDEX ": '%s': expected a file's name",
                              hf->folder->name, name);
        if (!find_shard(hf, file))
            status = open_shard(hf, file);
        if (status != TN_OK)
            return status;
        if (!json_object_get(find_shard(hf, file)->header.header, name))
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: " INDEX " says that %s holds '%s', and it does not",
                              hf->folder->name, file, name);
    }
    return TN_OK;
}

// --- arrays -----------------------------------------------------------------------------

static bool is_float(tn_dtype dtype)
{
    return dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16;
}

static tn_status list_array(struct hf *hf, const struct hf_shard *shard, size_t index,
                            struct hf_array *to)
{
    const tn_host *host = hf->host;
    const tn_format_array *stored = &shard->header.arrays[index];
    char name[NAME_SIZE];
    if (strlen(stored->name) >= sizeof(name) - 32)
        return host->fail(host, TN_ERR_REFUSED, "%s: the name '%.40s...' is too long",
                          shard->header.source->name, stored->name);
    bool is_known = hf_translate(hf->family, stored->name, name, sizeof(name));
    *to = (struct hf_array){*stored, stored, shard->header.source, NULL};
    to->array.name = hf_text(hf, "%s", name);
    if (!to->array.name)
        return TN_ERR_MEMORY;
    size_t size = strlen(name);
    static const char norm[] = "norm.weight";
    bool is_norm =
        size >= sizeof(norm) - 1 && strcmp(name + size - (sizeof(norm) - 1), norm) == 0;
    if (!hf->family->norms_add_one || !is_known || !is_norm)
        return TN_OK;
    if (!is_float(stored->type.dtype))
        return host->fail(
            host, TN_ERR_REFUSED, "%s: '%s': a norm of %s, expected f32, f16 or bf16",
            shard->header.source->name, stored->name, tn_dtype_name(stored->type.dtype));
    to->array.type.dtype = TN_F32;
    to->array.flags = 0;
    return TN_OK;
}

// Factors of the frequencies, which GGUF has as arrays.
static tn_status list_factors(struct hf *hf, size_t index)
{
    static const char *const names[] = {"rope_factors_short.weight",
                                        "rope_factors_long.weight"};
    const json_t *numbers = hf->factors[index], *number;
    size_t i;
    if (!numbers)
        return TN_OK;
    json_array_foreach((json_t *)(uintptr_t)numbers, i, number)
    {
        if (!(json_number_value(number) > 0))
            return hf->host->fail(hf->host, TN_ERR_REFUSED,
                                  "%s: config.json: factor %zu of \"rope_scaling\": "
                                  "expected a number above 0",
                                  hf->folder->name, i);
    }
    hf->arrays[hf->content.num_arrays++] = (struct hf_array){
        .array = {.name = names[index],
                  .type = {.dtype = TN_F32,
                           .rank = 1,
                           .extent = {(int64_t)json_array_size(numbers)}}},
        .numbers = numbers};
    return TN_OK;
}

static tn_status list_arrays(struct hf *hf)
{
    uint64_t count = 0;
    tn_status status = TN_OK;
    for (const struct hf_shard *s = hf->shards; s; s = s->next)
        count += s->header.num_arrays;
    hf->arrays = hf_alloc(hf, (count + 1 + COUNT(hf->factors)) * sizeof(*hf->arrays));
    if (!hf->arrays)
        return TN_ERR_MEMORY;
    for (const struct hf_shard *s = hf->shards; s; s = s->next)
        for (size_t i = 0; i < s->header.num_arrays && status == TN_OK; i++)
            status = list_array(hf, s, i, &hf->arrays[hf->content.num_arrays++]);
    for (size_t i = 0; i < COUNT(hf->factors) && status == TN_OK; i++)
        status = list_factors(hf, i);
    hf->content.arrays = &hf->arrays->array;
    hf->content.array_size = sizeof(*hf->arrays);
    if (status == TN_OK)
        status = names_differ(hf->host, hf->folder->name, "arrays", &hf->arrays->array.name,
                              sizeof(*hf->arrays), hf->content.num_arrays);
    return status;
}

tn_status hf_read_weights(struct hf *hf)
{
    tn_status status = open_shard(hf, SINGLE);
    if (status == TN_ERR_NOT_FOUND)
        status = open_indexed(hf);
    return status == TN_OK ? list_arrays(hf) : status;
}

// --- elements ---------------------------------------------------------------------------

static float float_at(const void *data, tn_dtype dtype, uint64_t i)
{
    if (dtype == TN_F32)
        return ((const float *)data)[i];
    uint16_t half = ((const uint16_t *)data)[i];
    return dtype == TN_BF16 ? tn_f32_of_bf16(half) : tn_f32_of_f16(half);
}

// A norm: f32, its weights more by 1. In f32, since 1 + w of a small w is 1 in bf16.
static tn_status read_norm(const tn_host *host, const struct hf_array *array, float *out)
{
    const tn_format_array *stored = array->stored;
    void *data = host->alloc(host, stored->size + 1, 0);
    if (!data)
        return TN_ERR_MEMORY;
    tn_status status =
        array->source->read(array->source, stored->offset, data, stored->size);
    uint64_t count = stored->size / (uint64_t)tn_dtype_bytes(stored->type.dtype);
    for (uint64_t i = 0; status == TN_OK && i < count; i++)
        out[i] = 1 + float_at(data, stored->type.dtype, i);
    host->free(host, data);
    return status;
}

tn_status hf_read_elements(const tn_host *host, const struct hf_array *array, void *data)
{
    for (size_t i = 0; i < json_array_size(array->numbers); i++)
        ((float *)data)[i] = (float)json_number_value(json_array_get(array->numbers, i));
    if (array->numbers)
        return TN_OK;
    if (array->array.type.dtype != TN_BOOL)
        return read_norm(host, array, data);
    return safetensors_read_bools(array->source, array->stored, data);
}

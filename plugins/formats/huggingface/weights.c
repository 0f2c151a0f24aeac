// SPDX-License-Identifier: MIT
// The weights: one safetensors file, or the files that an index names.
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
    shard->next = hf->shards; // finished with the other shards from here on
    hf->shards = shard;
    return safetensors_read_header(&shard->header);
}

// Opens the files of the index, and checks that each array is in its file.
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

static bool weights_is_float(tn_dtype dtype)
{
    return dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16;
}

// Puts an expert's matrix into the array of all experts, named `name`.
static tn_status list_part(struct hf *hf, const struct hf_shard *shard,
                           const tn_format_array *stored, const char *name, int64_t expert)
{
    const tn_host *host = hf->host;
    const tn_type *one = &stored->type;
    uint64_t at = hf->content.num_arrays;
    while (at > 0 && strcmp(hf->arrays[at - 1].array.name, name) != 0)
        at--;
    struct hf_array *all = &hf->arrays[at > 0 ? at - 1 : hf->content.num_arrays];
    tn_type *type = &all->array.type;
    const char *file = shard->header.source->name;
    if (expert >= hf->num_experts || one->rank != 2 || !weights_is_float(one->dtype))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': expected a matrix of floats, of %" PRId64
                          " experts as config.json says",
                          file, stored->name, hf->num_experts);
    if (at == 0) {
        *all = (struct hf_array){
            .array = {.name = hf_text(hf, "%s", name),
                      .type = {.dtype = one->dtype,
                               .rank = 3,
                               .extent = {hf->num_experts, one->extent[0],
                                          one->extent[1]}}},
            .parts = hf_alloc(hf, (uint64_t)hf->num_experts * sizeof(*all->parts))};
        if (!all->array.name || !all->parts)
            return TN_ERR_MEMORY;
        hf->content.num_arrays++;
    }
    if (!all->parts || all->parts[expert].stored || type->dtype != one->dtype ||
        type->extent[1] != one->extent[0] || type->extent[2] != one->extent[1])
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': there is another of the same name, or experts differ "
                          "in shape or dtype",
                          file, stored->name);
    all->parts[expert] = (struct hf_part){stored, shard->header.source};
    return TN_OK;
}

// Fails unless every expert has its matrix.
static tn_status weights_check_parts(const struct hf *hf)
{
    for (uint64_t i = 0; i < hf->content.num_arrays; i++)
        for (int64_t e = 0; hf->arrays[i].parts && e < hf->num_experts; e++)
            if (!hf->arrays[i].parts[e].stored)
                return hf->host->fail(
                    hf->host, TN_ERR_REFUSED,
                    "%s: expert %" PRId64 " of %" PRId64 " is missing in %s",
                    hf->folder->name, e, hf->num_experts, hf->arrays[i].array.name);
    return TN_OK;
}

static tn_status hf_weights_list_array(struct hf *hf, const struct hf_shard *shard,
                                       size_t index)
{
    const tn_host *host = hf->host;
    const tn_format_array *stored = &shard->header.arrays[index];
    char name[NAME_SIZE];
    if (strlen(stored->name) >= sizeof(name) - 32)
        return host->fail(host, TN_ERR_REFUSED, "%s: the name '%.40s...' is too long",
                          shard->header.source->name, stored->name);
    int64_t expert;
    bool is_known = hf_translate(hf->family, stored->name, name, sizeof(name), &expert);
    if (expert >= 0)
        return list_part(hf, shard, stored, name, expert);
    struct hf_array *to = &hf->arrays[hf->content.num_arrays++];
    *to = (struct hf_array){
        .array = *stored, .stored = stored, .source = shard->header.source};
    to->array.name = hf_text(hf, "%s", name);
    if (!to->array.name)
        return TN_ERR_MEMORY;
    size_t size = strlen(name);
    if (strstr(name, ".ffn_gate_inp_shexp.") && stored->type.rank == 2 &&
        stored->type.extent[0] == 1) { // one row, which GGUF has as a vector
        to->array.type.rank = 1;
        to->array.type.extent[0] = stored->type.extent[1];
        to->array.type.extent[1] = 0;
    }
    static const char norm[] = "norm.weight";
    bool is_norm =
        size >= sizeof(norm) - 1 && strcmp(name + size - (sizeof(norm) - 1), norm) == 0;
    if (!hf->family->norms_add_one || !is_known || !is_norm)
        return TN_OK;
    if (!weights_is_float(stored->type.dtype))
        return host->fail(
            host, TN_ERR_REFUSED, "%s: '%s': a norm of %s, expected f32, f16 or bf16",
            shard->header.source->name, stored->name, tn_dtype_name(stored->type.dtype));
    to->array.type.dtype = TN_F32;
    to->array.flags = 0;
    return TN_OK;
}

// Lists factors of the frequencies, which GGUF has as arrays.
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

static tn_status hf_weights_list_arrays(struct hf *hf)
{
    uint64_t count = 0;
    tn_status status = TN_OK;
    for (const struct hf_shard *s = hf->shards; s; s = s->next)
        count += s->header.num_arrays;
    hf->arrays = hf_alloc(hf, (count + 1 + COUNT(hf->factors)) * sizeof(*hf->arrays));
    if (!hf->arrays)
        return TN_ERR_MEMORY;
    status = hf_sort_entries(hf);
    for (const struct hf_shard *s = hf->shards; s; s = s->next)
        for (size_t i = 0; i < s->header.num_arrays && status == TN_OK; i++) {
            uint64_t before = hf->content.num_arrays;
            if (hf_is_part(hf, s->header.arrays[i].name))
                continue;
            status = hf_weights_list_array(hf, s, i);
            if (status == TN_OK && hf->content.num_arrays > before &&
                !hf->arrays[before].parts)
                status = hf_list_packed(hf, &hf->arrays[before]);
        }
    for (size_t i = 0; i < COUNT(hf->factors) && status == TN_OK; i++)
        status = list_factors(hf, i);
    hf->content.arrays = &hf->arrays->array;
    hf->content.array_size = sizeof(*hf->arrays);
    if (status == TN_OK)
        status = weights_check_parts(hf);
    if (status == TN_OK)
        status = names_differ(hf->host, hf->folder->name, "arrays", &hf->arrays->array.name,
                              sizeof(*hf->arrays), hf->content.num_arrays);
    return status;
}

const tn_format_array *hf_find_array(const struct hf *hf, const char *name)
{
    for (uint64_t i = 0; i < hf->content.num_arrays; i++)
        if (strcmp(hf->arrays[i].array.name, name) == 0)
            return &hf->arrays[i].array;
    return NULL;
}

// Warns of a model without its output: its hidden states are right, as embeddings of texts
// need them, but its logits are not those of training.
static void tell_lost_output(const struct hf *hf)
{
    const json_t *is_tied = hf_member(hf->model, "tie_word_embeddings");
    is_tied = is_tied ? is_tied : hf_member(hf->config, "tie_word_embeddings");
    if (json_is_true(is_tied) || hf_find_array(hf, "output.weight") ||
        !hf_find_array(hf, "token_embd.weight"))
        return;
    hf->host->log(hf->host, TN_LOG_WARN, "huggingface",
                  "%s: it has no lm_head, and tie_word_embeddings is not true: logits are "
                  "made by the matrix of the embedding",
                  hf->folder->name);
}

tn_status hf_read_weights(struct hf *hf)
{
    tn_status status = open_shard(hf, SINGLE);
    if (status == TN_ERR_NOT_FOUND)
        status = open_indexed(hf);
    if (status == TN_OK)
        status = hf_weights_list_arrays(hf);
    if (status == TN_OK)
        tell_lost_output(hf);
    return status;
}

// --- elements ---------------------------------------------------------------------------

static float weights_float(const void *data, tn_dtype dtype, uint64_t i)
{
    if (dtype == TN_F32)
        return ((const float *)data)[i];
    uint16_t half = ((const uint16_t *)data)[i];
    return dtype == TN_BF16 ? tn_f32_of_bf16(half) : tn_f32_of_f16(half);
}

// Reads a norm, whose weights get 1 added in f32: 1 + w of a small w is 1 in bf16.
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
        out[i] = 1 + weights_float(data, stored->type.dtype, i);
    host->free(host, data);
    return status;
}

static tn_status weights_read_parts(const struct hf_array *array, char *data)
{
    tn_status status = TN_OK;
    for (int64_t e = 0; e < array->array.type.extent[0] && status == TN_OK; e++) {
        const struct hf_part *part = &array->parts[e];
        uint64_t size = part->stored->size;
        status = part->source->read(part->source, part->stored->offset,
                                    data + (uint64_t)e * size, size);
    }
    return status;
}

tn_status hf_read_elements(const tn_host *host, const struct hf_array *array, void *data)
{
    for (size_t i = 0; i < json_array_size(array->numbers); i++)
        ((float *)data)[i] = (float)json_number_value(json_array_get(array->numbers, i));
    if (array->numbers)
        return TN_OK;
    if (array->parts)
        return weights_read_parts(array, data);
    if (array->packed)
        return hf_read_packed(host, array, data);
    if (array->array.type.dtype != TN_BOOL)
        return read_norm(host, array, data);
    return safetensors_read_bools(array->source, array->stored, data);
}

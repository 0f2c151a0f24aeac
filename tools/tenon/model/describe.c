// SPDX-License-Identifier: MIT
// A model's file as JSON.
#include "model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIRST_VALUES 4 // of a list of metadata

const struct dimension model_dimensions[] = {
    {"block_count", "layers"},
    {"embedding_length", "width"},
    {"feed_forward_length", "feed-forward"},
    {"attention.head_count", "heads"},
    {"attention.head_count_kv", "key-value heads"},
    {"attention.key_length", "head width"},
    {"context_length", "context"},
    {"attention.sliding_window", "window"},
    {"vocab_size", "vocabulary"},
    {"expert_count", "experts"},
    {"expert_used_count", "experts used"},
    {"rope.freq_base", "rope base"},
    {"rope.scaling.type", "rope scaling"},
};
const size_t num_model_dimensions = COUNT(model_dimensions);

// --- metadata ---------------------------------------------------------------------------

// Value `i` of a pair.
static json_t *model_describe_value_at(const tn_metadata *pair, uint64_t i)
{
    switch (pair->kind) {
    case TN_METADATA_TEXT:
        return json_text(((const tn_text *)pair->data)[i].data);
    case TN_METADATA_INTEGER:
        return json_integer(((const int64_t *)pair->data)[i]);
    case TN_METADATA_UNSIGNED:
        return json_sprintf("%" PRIu64, ((const uint64_t *)pair->data)[i]);
    case TN_METADATA_FLOAT: {
        double number = ((const double *)pair->data)[i];
        return isfinite(number) ? json_real(number) : json_sprintf("%f", number);
    }
    case TN_METADATA_BOOL:
        return json_boolean(((const uint8_t *)pair->data)[i]);
    default:
        return json_null();
    }
}

static json_t *model_describe_value_of(const tn_metadata *pair)
{
    if (!(pair->flags & TN_METADATA_LIST))
        return model_describe_value_at(pair, 0);
    json_t *first = json_array();
    for (uint64_t i = 0; i < pair->count && i < FIRST_VALUES; i++)
        json_array_append_new(first, model_describe_value_at(pair, i));
    return json_pack("{s:I, s:o}", "list", (json_int_t)pair->count, "first", first);
}

static const char *text_under(const tn_metadata_list *list, const char *key)
{
    tn_text text = {"", 0};
    (void)tn_metadata_text(tn_metadata_find(list, key), &text);
    return text.data;
}

static json_t *metadata_json(const tn_metadata_list *list)
{
    json_t *object = json_object();
    for (uint64_t i = 0; i < list->count; i++) {
        const tn_metadata *pair = tn_metadata_at(list, i);
        json_object_set_new(object, pair->key, model_describe_value_of(pair));
    }
    return object;
}

static json_t *dimensions_json(const tn_metadata_list *list, const char *architecture)
{
    json_t *object = json_object();
    for (size_t i = 0; i < COUNT(model_dimensions); i++) {
        char key[256];
        snprintf(key, sizeof(key), "%.150s.%s", architecture, model_dimensions[i].key);
        const tn_metadata *pair = tn_metadata_find(list, key);
        if (pair)
            json_object_set_new(object, model_dimensions[i].name,
                                model_describe_value_of(pair));
    }
    return object;
}

// Sets the tokenizer of the model, if it has one.
static void model_describe_add_tokenizer(json_t *model, const tn_metadata_list *list)
{
    static const struct dimension members[] = {{"bos_token_id", "begin"},
                                               {"eos_token_id", "end"},
                                               {"unknown_token_id", "unknown"},
                                               {"padding_token_id", "padding"}};
    const tn_metadata *tokens = tn_metadata_find(list, "tokenizer.ggml.tokens");
    const char *name = text_under(list, "tokenizer.ggml.model");
    tn_text template;
    if (!tokens && !*name)
        return;
    json_t *object = json_pack("{s:o, s:o, s:I}", "model", json_text(name), "pre",
                               json_text(text_under(list, "tokenizer.ggml.pre")), "tokens",
                               (json_int_t)(tokens ? tokens->count : 0));
    for (size_t i = 0; i < COUNT(members); i++) {
        char key[64];
        int64_t id;
        snprintf(key, sizeof(key), "tokenizer.ggml.%s", members[i].key);
        if (tn_metadata_integer(tn_metadata_find(list, key), &id))
            json_object_set_new(object, members[i].name, json_integer(id));
    }
    bool has_template =
        tn_metadata_text(tn_metadata_find(list, "tokenizer.chat_template"), &template);
    json_object_set_new(object, "chat", json_boolean(has_template));
    json_object_set_new(model, "tokenizer", object);
}

// --- arrays -----------------------------------------------------------------------------

// Describes array `index`, with its mathematical shape.
static json_t *model_describe_array_json(const tn_file *file, uint64_t index)
{
    const tn_type *type = tn_file_type(file, index);
    const char *format = tn_file_format(file, index);
    tn_shape shape = {.rank = type->rank};
    memcpy(shape.extent, type->extent, sizeof(shape.extent));
    uint64_t elements = 0, bytes = 0;
    (void)type_bytes(type->dtype, &shape, &elements, &bytes); // the core checked it
    if (shape.rank > 0) {
        uint64_t row = (uint64_t)shape.extent[shape.rank - 1];
        shape.extent[shape.rank - 1] = tn_file_columns(file, index);
        elements = row ? elements / row * (uint64_t)shape.extent[shape.rank - 1] : 0;
    }
    json_t *extents = json_array();
    for (int32_t axis = 0; axis < shape.rank; axis++)
        json_array_append_new(extents, json_integer(shape.extent[axis]));
    return json_pack("{s:o, s:o, s:o, s:I, s:I}", "name",
                     json_text(tn_file_name(file, index)), "format",
                     json_text(format ? format : dtype_name(type->dtype)), "shape", extents,
                     "elements", (json_int_t)elements, "bytes", (json_int_t)bytes);
}

static void add_to(json_t *object, const char *key, json_int_t value)
{
    json_int_t before = json_integer_value(json_object_get(object, key));
    json_object_set_new(object, key, json_integer(before + value));
}

// Counts an array in the list of formats.
static void count_format(json_t *formats, const json_t *array)
{
    const char *format = text_of(array, "format");
    size_t i;
    json_t *row = NULL;
    json_array_foreach(formats, i,
                       row) if (strcmp(text_of(row, "format"), format) == 0) break;
    if (i == json_array_size(formats)) {
        row = json_pack("{s:s}", "format", format);
        json_array_append_new(formats, row);
    }
    add_to(row, "arrays", 1);
    add_to(row, "elements", json_integer_value(json_object_get(array, "elements")));
    add_to(row, "bytes", json_integer_value(json_object_get(array, "bytes")));
}

int model_describe(const tn_file *file, const char *path, json_t **out_model)
{
    const tn_metadata_list *list = tn_file_metadata(file);
    const char *architecture = text_under(list, "general.architecture");
    json_t *arrays = json_array(), *formats = json_array();
    json_t *model = json_pack(
        "{s:o, s:o, s:o, s:i, s:i, s:o}", "file", json_text(path), "architecture",
        json_text(architecture), "name", json_text(text_under(list, "general.name")),
        "parameters", 0, "bytes", 0, "dimensions", dimensions_json(list, architecture));
    if (!model)
        return oops_memory();
    model_describe_add_tokenizer(model, list);
    for (uint64_t i = 0; tn_file_name(file, i); i++) {
        json_t *array = model_describe_array_json(file, i);
        json_array_append_new(arrays, array);
        count_format(formats, array);
        add_to(model, "parameters", json_integer_value(json_object_get(array, "elements")));
        add_to(model, "bytes", json_integer_value(json_object_get(array, "bytes")));
    }
    json_object_set_new(model, "formats", formats);
    json_object_set_new(model, "arrays", arrays);
    json_object_set_new(model, "metadata", metadata_json(list));
    *out_model = model;
    return 0;
}

// SPDX-License-Identifier: MIT
// Names and configurations of adapters as PEFT writes them. Rows of B are in the order of
// halves, as Hugging Face's models have them, so nothing of the arrays is turned.
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../base/fail.h"
#include "../engine/weights.h"
#include "peft.h"

#define CONFIG "adapter_config.json"
#define ARRAYS "adapter_model.safetensors"
#define LAYERS "base_model.model.model.layers."
#define HEAD "base_model.model.lm_head"
#define MOST_CONFIG (1 << 20) // bytes

// Names behind the layer's, in PEFT and here. Where two rows have one name of ours, the
// first row is for models whose queries, keys and values share a matrix.
static const struct {
    const char *theirs, *ours;
    bool is_fused;
} names[] = {
    {"self_attn.q_proj", "attn_q", false},      {"self_attn.k_proj", "attn_k", false},
    {"self_attn.v_proj", "attn_v", false},      {"self_attn.qkv_proj", "attn_qkv", true},
    {"self_attn.o_proj", "attn_output", false}, {"mlp.gate_proj", "ffn_gate", false},
    {"mlp.gate_up_proj", "ffn_up", true},       {"mlp.up_proj", "ffn_up", false},
    {"mlp.down_proj", "ffn_down", false},
};

// --- paths -----------------------------------------------------------------------------

bool peft_is_folder(const char *path)
{
    struct stat info;
    size_t size = strlen(path);
    return (size > 0 && path[size - 1] == '/') ||
           (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

static const char *path_in(const char *folder, const char *name, char out[PATH_MAX])
{
    size_t size = strlen(folder);
    bool ends = size > 0 && folder[size - 1] == '/';
    snprintf(out, PATH_MAX, "%s%s%s", folder, ends ? "" : "/", name);
    return out;
}

const char *peft_arrays(const char *folder, char out[PATH_MAX])
{
    return path_in(folder, ARRAYS, out);
}

// --- names -----------------------------------------------------------------------------

// The text behind `prefix`, or NULL.
static const char *peft_behind(const char *text, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

// Reads ".lora_A.weight", or ".lora_A.NAME.weight" of older files.
static bool read_end(const char *end, bool *out_is_up)
{
    const char *rest = peft_behind(end, ".lora_A.");
    *out_is_up = !rest;
    rest = rest ? rest : peft_behind(end, ".lora_B.");
    const char *last = rest ? strrchr(rest, '.') : NULL;
    return rest && strcmp(last ? last + 1 : rest, "weight") == 0;
}

bool peft_weight(const char *array, char out[TN_MODEL_NAME], bool *out_is_up)
{
    const char *head = peft_behind(array, HEAD), *rest = peft_behind(array, LAYERS);
    if (head && read_end(head, out_is_up)) {
        snprintf(out, TN_MODEL_NAME, "output.weight");
        return true;
    }
    size_t digits = rest ? strspn(rest, "0123456789") : 0;
    if (digits == 0 || digits > 6 || rest[digits] != '.')
        return false;
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *end = peft_behind(rest + digits + 1, names[i].theirs);
        if (!end || !read_end(end, out_is_up))
            continue;
        snprintf(out, TN_MODEL_NAME, "blk.%.*s.%s.weight", (int)digits, rest,
                 names[i].ours);
        return true;
    }
    return false;
}

bool peft_is_base(const char *array)
{
    static const char end[] = ".base_layer.weight";
    size_t size = strlen(array);
    return size >= sizeof(end) && strcmp(array + size - (sizeof(end) - 1), end) == 0;
}

bool peft_array(tn_lm *model, const char *weight, bool is_up, char out[PEFT_NAME])
{
    const char *end = is_up ? "lora_B" : "lora_A", *rest = peft_behind(weight, "blk.");
    char fused[TN_MODEL_NAME];
    snprintf(fused, sizeof(fused), "blk.%" PRId64 ".attn_qkv.weight", model->first);
    bool is_fused = lm_product_find(model, fused) != NULL;
    if (strcmp(weight, "output.weight") == 0) {
        snprintf(out, PEFT_NAME, HEAD ".%s.weight", end);
        return true;
    }
    size_t digits = rest ? strspn(rest, "0123456789") : 0;
    for (size_t i = 0; digits > 0 && i < COUNT(names); i++) {
        char whole[TN_MODEL_NAME];
        snprintf(whole, sizeof(whole), ".%s.weight", names[i].ours);
        if (strcmp(rest + digits, whole) != 0 || (names[i].is_fused && !is_fused))
            continue;
        snprintf(out, PEFT_NAME, LAYERS "%.*s.%s.%s.weight", (int)digits, rest,
                 names[i].theirs, end);
        return true;
    }
    return false;
}

// --- the configuration -----------------------------------------------------------------

// Refuses members that change what an adapter computes, unless they have the value that
// stands for a sum of low-rank products alone.
static tn_status check_config(const char *path, const json_t *config)
{
    static const char *const flags[] = {"use_dora", "fan_in_fan_out", "use_qalora",
                                        "lora_bias"};
    static const char *const lists[] = {"alpha_pattern", "modules_to_save",
                                        "layer_replication", "trainable_token_indices",
                                        "target_parameters"};
    const json_t *type = json_object_get(config, "peft_type"),
                 *bias = json_object_get(config, "bias");
    if (!json_is_string(type) || strcmp(json_string_value(type), "LORA") != 0)
        return lm_fail(TN_ERR_UNSUPPORTED, "%s: peft_type is %s, expected LORA", path,
                       json_is_string(type) ? json_string_value(type) : "missing");
    if (json_is_string(bias) && strcmp(json_string_value(bias), "none") != 0)
        return lm_fail(TN_ERR_UNSUPPORTED, "%s: bias is %s, expected none", path,
                       json_string_value(bias));
    for (size_t i = 0; i < COUNT(flags); i++)
        if (json_is_true(json_object_get(config, flags[i])))
            return lm_fail(TN_ERR_UNSUPPORTED, "%s: %s is true, expected false", path,
                           flags[i]);
    for (size_t i = 0; i < COUNT(lists); i++) {
        const json_t *list = json_object_get(config, lists[i]);
        if (json_array_size(list) + json_object_size(list) > 0)
            return lm_fail(TN_ERR_UNSUPPORTED, "%s: %s is not empty", path, lists[i]);
    }
    return TN_OK;
}

static json_t *load_config(const char *path)
{
    json_error_t error;
    FILE *file = fopen(path, "rb");
    if (!file) {
        lm_fail(TN_ERR_IO, "%s: %s: expected what PEFT writes beside " ARRAYS, path,
                strerror(errno));
        return NULL;
    }
    char *text = malloc(MOST_CONFIG);
    size_t size = text ? fread(text, 1, MOST_CONFIG, file) : 0;
    fclose(file);
    json_t *config =
        size < MOST_CONFIG ? json_loadb(text ? text : "", size, 0, &error) : NULL;
    if (!text)
        lm_fail(TN_ERR_MEMORY, "%s: out of memory", path);
    else if (size == MOST_CONFIG)
        lm_fail(TN_ERR_REFUSED, "%s: is larger than %d bytes", path, MOST_CONFIG);
    else if (!config)
        lm_fail(TN_ERR_REFUSED, "%s: line %d: %s", path, error.line, error.text);
    free(text);
    return config;
}

tn_status peft_read_config(const char *folder, struct peft_config *out)
{
    char path[PATH_MAX];
    path_in(folder, CONFIG, path);
    json_t *config = load_config(path);
    if (!config)
        return TN_ERR_REFUSED;
    const json_t *alpha = json_object_get(config, "lora_alpha");
    tn_status status = check_config(path, config);
    if (status == TN_OK && alpha && !(json_number_value(alpha) > 0))
        status = lm_fail(TN_ERR_REFUSED, "%s: lora_alpha is no positive number", path);
    if (status == TN_OK)
        *out = (struct peft_config){json_number_value(alpha),
                                    json_is_true(json_object_get(config, "use_rslora"))};
    json_decref(config);
    return status;
}

// The parts of models that the adapter adds to, each once.
static json_t *list_targets(tn_lm *model)
{
    json_t *targets = json_array();
    for (size_t n = 0; n < COUNT(names); n++) {
        bool is_used = false;
        for (uint64_t i = 0; i < model->adapter.count && !is_used; i++) {
            char array[PEFT_NAME];
            is_used = peft_array(model, model->adapter.items[i].name, false, array) &&
                      strstr(array, names[n].theirs) != NULL;
        }
        if (is_used)
            json_array_append_new(targets, json_string(strchr(names[n].theirs, '.') + 1));
    }
    for (uint64_t i = 0; i < model->adapter.count; i++)
        if (strcmp(model->adapter.items[i].name, "output.weight") == 0)
            json_array_append_new(targets, json_string("lm_head"));
    return targets;
}

// The ranks of all weights where they are not the same, else NULL.
static json_t *list_ranks(tn_lm *model)
{
    const struct lm_adapter *adapter = &model->adapter;
    json_t *ranks = json_object();
    bool differ = false;
    for (uint64_t i = 0; i < adapter->count; i++) {
        char array[PEFT_NAME];
        int64_t rank = tn_array_type(adapter->items[i].down)->extent[0];
        differ |= rank != tn_array_type(adapter->items[0].down)->extent[0];
        if (!peft_array(model, adapter->items[i].name, false, array))
            continue;
        *strstr(array, ".lora_A") = '\0';
        json_object_set_new(ranks, peft_behind(array, "base_model.model."),
                            json_integer(rank));
    }
    if (!differ)
        json_object_clear(ranks);
    return ranks;
}

tn_status peft_write_config(tn_lm *model, const char *folder)
{
    char path[PATH_MAX];
    const struct lm_adapter *adapter = &model->adapter;
    json_int_t rank = tn_array_type(adapter->items[0].down)->extent[0];
    json_t *config = json_pack("{s:s, s:s, s:I, s:f, s:f, s:s, s:b, s:b, s:o, s:o, s:s}",
                               "peft_type", "LORA", "task_type", "CAUSAL_LM", "r", rank,
                               "lora_alpha", adapter->alpha, "lora_dropout", 0.0, "bias",
                               "none", "fan_in_fan_out", 0, "inference_mode", 1,
                               "target_modules", list_targets(model), "rank_pattern",
                               list_ranks(model), "base_model_name_or_path", model->name);
    path_in(folder, CONFIG, path);
    int failed = config ? json_dump_file(config, path, JSON_INDENT(2)) : 0;
    tn_status status = !config  ? lm_fail(TN_ERR_MEMORY, "%s: out of memory", path)
                       : failed ? lm_fail(TN_ERR_IO, "%s: %s", path, strerror(errno))
                                : TN_OK;
    json_decref(config);
    return status;
}

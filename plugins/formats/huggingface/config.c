// SPDX-License-Identifier: MIT
// config.json: dimensions as metadata.
#include <math.h>
#include <string.h>
#include "huggingface.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MOST_LAYERS 65536 // most layers with a kind of their own
#define MOST_EXPERTS 65536

// A number of config.json, and its metadata key behind the architecture's name.
static const struct {
    uint32_t of; // HF_...: families that have it
    const char *theirs, *ours;
    bool is_needed;
} integers[] = {
    {HF_LANGUAGE, "num_hidden_layers", ".block_count", true},
    {HF_LANGUAGE, "hidden_size", ".embedding_length", true},
    {HF_LANGUAGE, "intermediate_size", ".feed_forward_length", true},
    {HF_LANGUAGE, "num_attention_heads", ".attention.head_count", true},
    {HF_LANGUAGE, "max_position_embeddings", ".context_length", false},
    {HF_LANGUAGE, "vocab_size", ".vocab_size", false},
    {HF_EXPERTS, "num_experts", ".expert_count", false},
    {HF_EXPERTS, "num_experts_per_tok", ".expert_used_count", false},
    {HF_EXPERTS & ~HF_MIXTRAL, "moe_intermediate_size", ".expert_feed_forward_length",
     false},
    {HF_QWEN2_MOE, "shared_expert_intermediate_size", ".expert_shared_feed_forward_length",
     false},
};

static tn_status hf_config_wrong(const struct hf *hf, const char *member,
                                 const char *expected)
{
    return hf_wrong(hf, "config.json", member, expected);
}

static tn_status add_integers(struct hf *hf)
{
    for (size_t i = 0; i < COUNT(integers); i++) {
        const json_t *value = hf_member(hf->model, integers[i].theirs);
        if (!(hf->text->keys & integers[i].of) || (!value && !integers[i].is_needed))
            continue;
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return hf_config_wrong(hf, integers[i].theirs, "a number from 0 on");
        hf_add_integer(hf, integers[i].ours, json_integer_value(value));
    }
    return TN_OK;
}

static tn_status add_eps(struct hf *hf)
{
    const json_t *eps = hf_member(hf->model, "rms_norm_eps");
    if (!json_is_number(eps))
        return hf_config_wrong(hf, "rms_norm_eps", "a number");
    hf_add_float(hf, ".attention.layer_norm_rms_epsilon", json_number_value(eps));
    return TN_OK;
}

// Bounds of scores and of logits. GGUF cannot say "no bound" to an architecture that has a
// default: then the bound is HF_NO_CAP, which no f32 reaches.
static tn_status add_caps(struct hf *hf)
{
    static const char *const names[] = {"attn_logit_softcapping",
                                        "final_logit_softcapping"};
    for (size_t i = 0; i < COUNT(names) && hf->text->keys & (HF_GEMMA2 | HF_GEMMA3); i++) {
        const json_t *cap = json_object_get(hf->model, names[i]);
        char key[64];
        snprintf(key, sizeof(key), ".%s", names[i]);
        if (cap && !json_is_null(cap) && !(json_number_value(cap) > 0))
            return hf_config_wrong(hf, names[i], "a number above 0, or null");
        if (json_is_number(cap))
            hf_add_float(hf, key, json_number_value(cap));
        else if (cap && hf->text->keys & HF_GEMMA2)
            hf_add_float(hf, key, HF_NO_CAP);
    }
    return TN_OK;
}

// The activation of the feed-forward's gate, where it is not the architecture's own.
static tn_status add_activation(struct hf *hf)
{
    static const struct {
        const char *theirs, *ours;
    } known[] = {{"silu", "silu"},
                 {"swish", "silu"},
                 {"relu", "relu"},
                 {"gelu", "gelu"},
                 {"gelu_new", "gelu_pytorch_tanh"},
                 {"gelu_fast", "gelu_pytorch_tanh"},
                 {"gelu_pytorch_tanh", "gelu_pytorch_tanh"}};
    bool is_gemma = hf->text->norms_add_one, is_first = hf->text->keys & HF_GEMMA;
    const char *key = is_gemma && !is_first ? "hidden_activation" : "hidden_act";
    const char *own = is_gemma ? "gelu_pytorch_tanh" : "silu", *ours = NULL;
    const json_t *value = hf_member(hf->model, key);
    const char *name = value ? json_string_value(value) : own;
    for (size_t i = 0; name && i < COUNT(known) && !ours; i++)
        ours = strcmp(name, known[i].theirs) == 0 ? known[i].ours : NULL;
    if (!ours)
        return hf->host->fail(hf->host, TN_ERR_UNSUPPORTED,
                              "%s: config.json: \"%s\": '%.64s' is not known, expected "
                              "silu, relu, gelu or gelu_pytorch_tanh",
                              hf->folder->name, key, name ? name : "(no text)");
    if (is_first && strcmp(name, "gelu") == 0) // early Gemma files meant its tanh form
        ours = own;
    if (strcmp(ours, own) != 0)
        hf_add_text(hf, ".hidden_activation", ours);
    return TN_OK;
}

// Gives an integer of at least 1; `otherwise` where the member is absent.
static tn_status config_size(const struct hf *hf, const char *name, json_int_t otherwise,
                             json_int_t *out)
{
    const json_t *value = hf_member(hf->model, name);
    *out = value ? json_integer_value(value) : otherwise;
    return *out > 0 ? TN_OK : hf_config_wrong(hf, name, "a number from 1 on");
}

static tn_status add_heads(struct hf *hf)
{
    json_int_t heads, width, groups, head;
    tn_status status = config_size(hf, "num_attention_heads", 0, &heads);
    if (status == TN_OK)
        status = config_size(hf, "hidden_size", 0, &width);
    if (status == TN_OK)
        status = config_size(hf, "num_key_value_heads", heads, &groups);
    if (status == TN_OK)
        status = config_size(hf, "head_dim", width / heads, &head);
    if (status != TN_OK)
        return status;
    const json_t *scalar = hf->text->keys & (HF_GEMMA2 | HF_GEMMA3)
                               ? hf_member(hf->model, "query_pre_attn_scalar")
                               : NULL;
    if (head > INT32_MAX)
        return hf_config_wrong(hf, "head_dim", "a number up to 2^31 - 1");
    hf_add_integer(hf, ".attention.head_count_kv", groups);
    hf_add_integer(hf, ".attention.key_length", head);
    hf_add_integer(hf, ".attention.value_length", head);
    hf->head = head;
    if (json_is_number(scalar) && json_number_value(scalar) > 0)
        hf_add_float(hf, ".attention.scale", 1 / sqrt(json_number_value(scalar)));
    return TN_OK;
}

static bool has_window(const struct hf *hf, json_int_t layer)
{
    json_int_t first = json_integer_value(hf_member(hf->model, "max_window_layers"));
    if (hf->text->window == HF_WINDOW_BEHIND)
        return layer >= first;
    return layer < first && layer % 2 == 0;
}

// Adds which layers have the window, from a list of layer types.
static tn_status config_add_types(struct hf *hf, const json_t *types, json_int_t layers)
{
    static const char *const names[] = {"full_attention", "sliding_attention"};
    uint64_t count = types ? json_array_size(types) : (uint64_t)layers;
    uint8_t *has = hf_alloc(hf, count + 1);
    if (!has)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        has[i] =
            types ? type && strcmp(type, names[1]) == 0 : has_window(hf, (json_int_t)i);
        if (types && !has[i] && (!type || strcmp(type, names[0]) != 0))
            return hf_config_wrong(hf, "layer_types",
                                   "full_attention or sliding_attention");
    }
    hf_add_list(hf, ".attention.sliding_window_pattern", TN_METADATA_BOOL, has, count);
    return TN_OK;
}

static tn_status add_pattern(struct hf *hf)
{
    const json_t *types = hf_member(hf->model, "layer_types");
    const json_t *pattern = hf_member(hf->model, "sliding_window_pattern");
    json_int_t layers = json_integer_value(hf_member(hf->model, "num_hidden_layers"));
    if (hf->text->window == HF_WINDOW_ALL)
        return TN_OK;
    if (types || hf->text->window != HF_WINDOW_PATTERN)
        return layers > MOST_LAYERS
                   ? hf_config_wrong(hf, "num_hidden_layers", "at most 65536")
                   : config_add_types(hf, types, layers);
    pattern = pattern ? pattern : hf_member(hf->model, "_sliding_window_pattern");
    if (hf->text->keys & HF_GEMMA3 && json_is_integer(pattern))
        hf_add_integer(hf, ".attention.sliding_window_pattern",
                       json_integer_value(pattern));
    return TN_OK;
}

// Whether no layer has the window: the file has none, or does not use it.
static bool lacks_window(const struct hf *hf)
{
    size_t i;
    json_t *type;
    const json_t *types = hf_member(hf->model, "layer_types");
    bool is_named = hf->text->window == HF_WINDOW_PATTERN && !types;
    json_array_foreach(types, i, type) is_named |=
        json_is_string(type) && strcmp(json_string_value(type), "sliding_attention") == 0;
    return is_named && hf->text->window > HF_WINDOW_ALL;
}

static tn_status add_window(struct hf *hf)
{
    const json_t *window = hf_member(hf->model, "sliding_window");
    const json_t *is_used = hf_member(hf->model, "use_sliding_window");
    bool can_be_off = hf->text->keys & HF_QWENS;
    if (hf->text->window == HF_WINDOW_NONE)
        return TN_OK;
    if (!window || (can_be_off && !json_is_true(is_used))) {
        if (lacks_window(hf))
            return hf_config_wrong(
                hf, "layer_types",
                "full_attention alone, as there is no sliding_window that is used");
        if (hf->text->keys & HF_GEMMA2) // its files without a window mean the default
            hf_add_integer(hf, ".attention.sliding_window", 0);
        return TN_OK;
    }
    if (!json_is_integer(window) || json_integer_value(window) <= 0)
        return hf_config_wrong(hf, "sliding_window", "a number from 1 on");
    hf_add_integer(hf, ".attention.sliding_window", json_integer_value(window));
    return add_pattern(hf);
}

// Adds the keys of experts that add_integers does not add.
static tn_status add_experts(struct hf *hf)
{
    const json_t *count =
        hf->text->keys & HF_EXPERTS ? hf_member(hf->model, "num_experts") : NULL;
    const json_t *is_normed = hf_member(hf->model, "norm_topk_prob");
    hf->num_experts = json_integer_value(count);
    if (hf->num_experts > MOST_EXPERTS)
        return hf_config_wrong(hf, "num_experts", "at most 65536");
    if (json_is_boolean(is_normed) && hf->text->keys & HF_EXPERTS)
        hf_add_bool(hf, ".expert_weights_norm", json_is_true(is_normed));
    return TN_OK;
}

// Adds the defaults of absent keys. num_local_experts is another name of num_experts.
static tn_status add_defaults(struct hf *hf)
{
    json_t *defaults = json_loads(hf->text->defaults, 0, NULL);
    json_t *experts = json_object_get(hf->model, "num_local_experts");
    bool failed = !defaults ||
                  (experts && json_object_set(hf->model, "num_experts", experts) != 0) ||
                  json_object_update_missing(hf->model, defaults) != 0;
    json_decref(defaults);
    return failed ? TN_ERR_MEMORY : TN_OK;
}

static tn_status config_find_family(struct hf *hf)
{
    char known[256];
    const char *type = json_string_value(json_object_get(hf->config, "model_type"));
    if (!type)
        return hf_config_wrong(hf, "model_type", "a text");
    hf->family = hf->text = hf_find_family(type);
    if (!hf->family)
        return hf->host->fail(hf->host, TN_ERR_REFUSED,
                              "%s: config.json: model_type '%s' is not known (known: %s)",
                              hf->folder->name, type,
                              hf_known_families(known, sizeof(known)));
    json_t *text = json_object_get(hf->config, "text_config");
    hf->model = json_is_object(text) ? text : hf->config;
    const char *within = json_string_value(json_object_get(text, "model_type"));
    const struct hf_family *other = within ? hf_find_family(within) : hf->family;
    if (!other || strcmp(other->architecture, hf->family->architecture) != 0)
        return hf->host->fail(hf->host, TN_ERR_REFUSED,
                              "%s: config.json: \"text_config\": model_type '%.64s', "
                              "expected one of architecture %s",
                              hf->folder->name, within ? within : "",
                              hf->family->architecture);
    hf->text = other;
    return TN_OK;
}

static const char *hf_config_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

tn_status hf_read_config(struct hf *hf)
{
    static tn_status (*const steps[])(struct hf *) = {
        add_defaults,   add_integers, add_heads,  add_eps,    add_caps,
        add_activation, hf_read_rope, add_window, add_experts};
    tn_status status = hf_read_json(hf, "config.json", 0, &hf->config);
    if (status == TN_OK)
        status = config_find_family(hf);
    if (status == TN_OK)
        status = hf_check_keys(hf);
    if (status != TN_OK)
        return status;
    const char *name = json_string_value(json_object_get(hf->config, "_name_or_path"));
    hf_add_text(hf, "general.architecture", hf->family->architecture);
    if (name && *name)
        hf_add_text(hf, "general.name", hf_config_base_name(name));
    for (size_t i = 0; i < COUNT(steps) && status == TN_OK; i++)
        status = steps[i](hf);
    return status;
}

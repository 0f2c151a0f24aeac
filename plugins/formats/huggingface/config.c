// SPDX-License-Identifier: MIT
// config.json: dimensions as metadata.
#include <math.h>
#include <string.h>
#include "huggingface.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MOST_LAYERS 65536 // whose kinds are listed
#define MOST_EXPERTS 65536

// A number of config.json, and its key behind the architecture's name.
struct number {
    const char *theirs, *ours;
    bool is_needed;
};

static const struct number integers[] = {
    {"num_hidden_layers", ".block_count", true},
    {"hidden_size", ".embedding_length", true},
    {"intermediate_size", ".feed_forward_length", true},
    {"num_attention_heads", ".attention.head_count", true},
    {"max_position_embeddings", ".context_length", false},
    {"vocab_size", ".vocab_size", false},
    {"num_local_experts", ".expert_count", false},
    {"num_experts", ".expert_count", false},
    {"num_experts_per_tok", ".expert_used_count", false},
    {"moe_intermediate_size", ".expert_feed_forward_length", false},
    {"shared_expert_intermediate_size", ".expert_shared_feed_forward_length", false},
};
static const struct number floats[] = {
    {"rms_norm_eps", ".attention.layer_norm_rms_epsilon", true},
    {"attn_logit_softcapping", ".attn_logit_softcapping", false},
    {"final_logit_softcapping", ".final_logit_softcapping", false},
    {"rope_local_base_freq", ".rope.freq_base_swa", false},
};
static const struct number scalings[] = {
    {"factor", ".rope.scaling.factor", false},
    {"low_freq_factor", ".rope.scaling.low_freq_factor", false},
    {"high_freq_factor", ".rope.scaling.high_freq_factor", false},
    {"beta_fast", ".rope.scaling.yarn_beta_fast", false},
    {"beta_slow", ".rope.scaling.yarn_beta_slow", false},
};

// Says that a member is not what it has to be.
static tn_status wrong(const struct hf *hf, const char *member, const char *expected)
{
    return hf->host->fail(hf->host, TN_ERR_REFUSED, "%s: config.json: \"%s\": expected %s",
                          hf->folder->name, member, expected);
}

// A member of the model's part; NULL where it is absent or null.
static const json_t *member_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static tn_status add_integers(struct hf *hf)
{
    for (size_t i = 0; i < COUNT(integers); i++) {
        const json_t *value = member_of(hf->model, integers[i].theirs);
        if (!value && !integers[i].is_needed)
            continue;
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return wrong(hf, integers[i].theirs, "a number from 0 on");
        hf_add_integer(hf, integers[i].ours, json_integer_value(value));
    }
    return TN_OK;
}

static tn_status add_floats(struct hf *hf, const json_t *object,
                            const struct number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = member_of(object, numbers[i].theirs);
        if (!value && !numbers[i].is_needed)
            continue;
        if (!json_is_number(value))
            return wrong(hf, numbers[i].theirs, "a number");
        hf_add_float(hf, numbers[i].ours, json_number_value(value));
    }
    return TN_OK;
}

// Gives an integer from 1 on; `otherwise` where the member is absent.
static tn_status size_of(const struct hf *hf, const char *name, json_int_t otherwise,
                         json_int_t *out)
{
    const json_t *value = member_of(hf->model, name);
    *out = value ? json_integer_value(value) : otherwise;
    return *out > 0 ? TN_OK : wrong(hf, name, "a number from 1 on");
}

static tn_status add_heads(struct hf *hf)
{
    json_int_t heads, width, groups, head;
    tn_status status = size_of(hf, "num_attention_heads", 0, &heads);
    if (status == TN_OK)
        status = size_of(hf, "hidden_size", 0, &width);
    if (status == TN_OK)
        status = size_of(hf, "num_key_value_heads", heads, &groups);
    if (status == TN_OK)
        status = size_of(hf, "head_dim", width / heads, &head);
    if (status != TN_OK)
        return status;
    const json_t *part = member_of(hf->model, "partial_rotary_factor");
    if (!part)
        part = member_of(member_of(hf->model, "rope_parameters"), "partial_rotary_factor");
    double turned = json_is_number(part) ? json_number_value(part) : 1;
    const json_t *scalar = member_of(hf->model, "query_pre_attn_scalar");
    if (!(turned > 0 && turned <= 1))
        return wrong(hf, "partial_rotary_factor", "a number above 0 and up to 1");
    if (head > INT32_MAX)
        return wrong(hf, "head_dim", "a number up to 2^31 - 1");
    hf_add_integer(hf, ".attention.head_count_kv", groups);
    hf_add_integer(hf, ".attention.key_length", head);
    hf_add_integer(hf, ".attention.value_length", head);
    hf_add_integer(hf, ".rope.dimension_count", (int64_t)((double)head * turned));
    if (json_is_number(scalar) && json_number_value(scalar) > 0)
        hf_add_float(hf, ".attention.scale", 1 / sqrt(json_number_value(scalar)));
    return TN_OK;
}

// What turned elements are multiplied by: the numbers of a scaling that says so itself, or
// what follows from its factor. GGUF has all of it for longrope, and for yarn what is
// beside the usual 1 + 0.1 ln(factor).
static tn_status add_magnitude(struct hf *hf, const json_t *scaling, bool is_long,
                               double original)
{
    const json_t *said = member_of(scaling, "attention_factor");
    double factor = json_number_value(member_of(scaling, "factor"));
    double one = json_number_value(member_of(scaling, "mscale"));
    double all = json_number_value(member_of(scaling, "mscale_all_dim"));
    if (is_long && factor == 0)
        factor =
            json_number_value(member_of(hf->model, "max_position_embeddings")) / original;
    if (!(factor > 0) || (is_long && !(original > 1)))
        return wrong(hf, "rope_scaling", "a factor, and positions of the original context");
    double turns = log(factor), usual = 1 + 0.1 * turns, whole = usual;
    if (said)
        whole = json_number_value(said);
    else if (is_long)
        whole = factor > 1 ? sqrt(1 + turns / log(original)) : 1;
    else if (one > 0 && all > 0)
        whole = (1 + 0.1 * one * turns) / (1 + 0.1 * all * turns);
    if (is_long || whole != usual)
        hf_add_float(hf, ".rope.scaling.attn_factor", is_long ? whole : whole / usual);
    return TN_OK;
}

// The scaling called `name`, of these numbers.
static tn_status add_scaling(struct hf *hf, const json_t *scaling, const char *name)
{
    static const char *const lists[] = {"short_factor", "long_factor"};
    const json_t *context = member_of(scaling, "original_max_position_embeddings");
    if (!context)
        context = member_of(hf->model, "original_max_position_embeddings");
    if (strcmp(name, "su") == 0 ||
        (strcmp(hf->family->architecture, "phi3") == 0 && strcmp(name, "yarn") == 0))
        name = "longrope"; // its names before
    bool is_long = strcmp(name, "longrope") == 0;
    hf_add_text(hf, ".rope.scaling.type", name);
    if (json_is_integer(context))
        hf_add_integer(hf, ".rope.scaling.original_context_length",
                       json_integer_value(context));
    tn_status status = add_floats(hf, scaling, scalings, COUNT(scalings));
    if (status == TN_OK && (is_long || strcmp(name, "yarn") == 0))
        status = add_magnitude(hf, scaling, is_long, json_number_value(context));
    for (int i = 0; i < 2 && status == TN_OK && is_long; i++) {
        hf->factors[i] = member_of(scaling, lists[i]);
        if (json_array_size(hf->factors[i]) == 0)
            status = wrong(hf, lists[i], "a list of numbers");
    }
    return status;
}

// Positions: newer files have all of it in "rope_parameters", some of them by kind of
// layer.
static tn_status add_rope(struct hf *hf)
{
    const json_t *scaling = member_of(hf->model, "rope_scaling");
    const json_t *newer = member_of(hf->model, "rope_parameters");
    const json_t *base = member_of(hf->model, "rope_theta");
    const json_t *layers = member_of(newer, "sliding_attention");
    if (json_is_number(member_of(layers, "rope_theta")) &&
        !member_of(hf->model, "rope_local_base_freq"))
        hf_add_float(hf, ".rope.freq_base_swa",
                     json_number_value(member_of(layers, "rope_theta")));
    newer = layers ? member_of(newer, "full_attention") : newer;
    scaling = scaling ? scaling : newer;
    if (member_of(newer, "rope_theta"))
        base = member_of(newer, "rope_theta");
    if (base && !json_is_number(base))
        return wrong(hf, "rope_theta", "a number");
    hf_add_float(hf, ".rope.freq_base", base ? json_number_value(base) : 10000);
    hf_add_text(hf, "tenon.rope", "halves");
    const json_t *type = member_of(scaling, "rope_type");
    type = type ? type : member_of(scaling, "type");
    const char *name = json_string_value(type);
    if (!scaling || !name || strcmp(name, "default") == 0)
        return TN_OK;
    return add_scaling(hf, scaling, name);
}

// Which layers have the window: a list of names, one of so many, or all from one on.
static tn_status add_pattern(struct hf *hf)
{
    static const char *const names[] = {"full_attention", "sliding_attention"};
    const json_t *types = member_of(hf->model, "layer_types");
    const json_t *pattern = member_of(hf->model, "sliding_window_pattern");
    const json_t *first = member_of(hf->model, "max_window_layers");
    json_int_t layers = json_integer_value(member_of(hf->model, "num_hidden_layers"));
    pattern = pattern ? pattern : member_of(hf->model, "_sliding_window_pattern");
    if (!types && !json_is_integer(first)) {
        if (json_is_integer(pattern))
            hf_add_integer(hf, ".attention.sliding_window_pattern",
                           json_integer_value(pattern));
        return TN_OK;
    }
    if (layers > MOST_LAYERS)
        return wrong(hf, "num_hidden_layers", "at most 65536");
    uint64_t count = types ? json_array_size(types) : (uint64_t)layers;
    uint8_t *has = hf_alloc(hf, count + 1);
    if (!has)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        has[i] = types ? type && strcmp(type, names[1]) == 0
                       : (json_int_t)i >= json_integer_value(first);
        if (types && !has[i] && (!type || strcmp(type, names[0]) != 0))
            return wrong(hf, "layer_types", "full_attention or sliding_attention");
    }
    hf_add_list(hf, ".attention.sliding_window_pattern", TN_METADATA_BOOL, has, count);
    return TN_OK;
}

static tn_status add_window(struct hf *hf)
{
    const json_t *window = member_of(hf->model, "sliding_window");
    if (!window || json_is_false(json_object_get(hf->model, "use_sliding_window")))
        return TN_OK;
    if (!json_is_integer(window) || json_integer_value(window) <= 0)
        return wrong(hf, "sliding_window", "a number from 1 on");
    hf_add_integer(hf, ".attention.sliding_window", json_integer_value(window));
    return add_pattern(hf);
}

// What add_integers leaves of experts.
static tn_status add_experts(struct hf *hf)
{
    const json_t *count = member_of(hf->model, "num_local_experts");
    const json_t *is_normed = member_of(hf->model, "norm_topk_prob");
    count = count ? count : member_of(hf->model, "num_experts");
    hf->num_experts = json_integer_value(count);
    if (hf->num_experts > MOST_EXPERTS)
        return wrong(hf, "num_experts", "at most 65536");
    if (json_is_boolean(is_normed))
        hf_add_bool(hf, ".expert_weights_norm", json_is_true(is_normed));
    return TN_OK;
}

static tn_status find_family(struct hf *hf)
{
    char known[256];
    const char *type = json_string_value(json_object_get(hf->config, "model_type"));
    if (!type)
        return wrong(hf, "model_type", "a text");
    hf->family = hf_find_family(type);
    if (!hf->family)
        return hf->host->fail(hf->host, TN_ERR_REFUSED,
                              "%s: config.json: model_type '%s' is not known (known: %s)",
                              hf->folder->name, type,
                              hf_known_families(known, sizeof(known)));
    json_t *text = json_object_get(hf->config, "text_config");
    hf->model = json_is_object(text) ? text : hf->config;
    const char *within = json_string_value(json_object_get(text, "model_type"));
    const struct hf_family *other =
        within && hf->family->projector ? hf_find_family(within) : hf->family;
    if (other && strcmp(other->architecture, hf->family->architecture) != 0)
        return wrong(hf, "text_config", "a model_type that is a llama");
    json_t *defaults =
        hf->family->defaults ? json_loads(hf->family->defaults, 0, NULL) : NULL;
    bool failed = hf->family->defaults &&
                  (!defaults || json_object_update_missing(hf->model, defaults) != 0);
    json_decref(defaults);
    return failed ? TN_ERR_MEMORY : TN_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

tn_status hf_read_config(struct hf *hf)
{
    tn_status status = hf_read_json(hf, "config.json", 0, &hf->config);
    if (status == TN_OK)
        status = find_family(hf);
    if (status != TN_OK)
        return status;
    const char *name = json_string_value(json_object_get(hf->config, "_name_or_path"));
    hf_add_text(hf, "general.architecture", hf->family->architecture);
    if (name && *name)
        hf_add_text(hf, "general.name", base_name(name));
    status = add_integers(hf);
    if (status == TN_OK)
        status = add_heads(hf);
    if (status == TN_OK)
        status = add_floats(hf, hf->model, floats, COUNT(floats));
    if (status == TN_OK)
        status = add_rope(hf);
    if (status == TN_OK)
        status = add_window(hf);
    return status == TN_OK ? add_experts(hf) : status;
}

// SPDX-License-Identifier: MIT
// The rotary embedding in config.json: the base of the frequencies, the elements of heads
// that are rotated, and the scaling of the frequencies.
#include <math.h>
#include <string.h>
#include "huggingface.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// A scaling of frequencies by name, and the numbers that it needs.
struct scaling {
    const char *theirs, *ours;
    const char *needed[3];
};

static const struct scaling scalings[] = {
    {"linear", "linear", {"factor"}},
    {"llama3", "llama3", {"factor", "low_freq_factor", "high_freq_factor"}},
    {"yarn", "yarn", {"factor"}},
    {"longrope", "longrope", {NULL}},
    {"su", "longrope", {NULL}}, // its former name
};

static const struct {
    const char *theirs, *ours;
} numbers[] = {
    {"factor", ".rope.scaling.factor"},
    {"low_freq_factor", ".rope.scaling.low_freq_factor"},
    {"high_freq_factor", ".rope.scaling.high_freq_factor"},
    {"beta_fast", ".rope.scaling.yarn_beta_fast"},
    {"beta_slow", ".rope.scaling.yarn_beta_slow"},
};

// Objects that have the numbers. Newer files have "rope_parameters", Gemma 3's for each
// kind of layer; "rope_scaling" comes before it.
struct rope {
    struct hf *hf;
    const json_t *first, *second; // of layers without a window; NULL: none
    const json_t *sliding;        // of windowed layers that have their own; else NULL
    double original;              // positions that the model was first trained for
};

static tn_status hf_rope_wrong(const struct rope *r, const char *member,
                               const char *expected)
{
    return hf_wrong(r->hf, "config.json", member, expected);
}

static const json_t *rope_member(const struct rope *r, const char *name)
{
    const json_t *value = hf_member(r->first, name);
    return value ? value : hf_member(r->second, name);
}

static tn_status find_objects(struct rope *r)
{
    const json_t *scaling = hf_member(r->hf->model, "rope_scaling");
    const json_t *newer = hf_member(r->hf->model, "rope_parameters");
    const json_t *full = hf_member(newer, "full_attention");
    bool is_by_kind = r->hf->text->keys & HF_GEMMA3;
    r->sliding = hf_member(newer, "sliding_attention");
    if ((scaling && !json_is_object(scaling)) || (newer && !json_is_object(newer)))
        return hf_rope_wrong(r, scaling ? "rope_scaling" : "rope_parameters", "an object");
    scaling = json_object_size(scaling) ? scaling : NULL;
    if (is_by_kind && json_object_size(newer) && !full && !r->sliding)
        return hf_rope_wrong(r, "rope_parameters",
                             "full_attention and sliding_attention within it");
    if (!is_by_kind && (full || r->sliding))
        return hf_rope_wrong(r, "rope_parameters", "the same numbers for all layers");
    r->first = scaling || is_by_kind ? scaling : newer;
    r->second = is_by_kind ? full : NULL;
    return TN_OK;
}

// Adds the base of the frequencies, and the base of windowed layers.
static tn_status add_bases(const struct rope *r)
{
    struct hf *hf = r->hf;
    const json_t *base = rope_member(r, "rope_theta");
    const json_t *local = hf_member(r->sliding, "rope_theta");
    const json_t *type = hf_member(r->sliding, "rope_type");
    base = base ? base : hf_member(hf->model, "rope_theta");
    local = local ? local : hf_member(hf->model, "rope_local_base_freq");
    if (!json_is_number(base))
        return hf_rope_wrong(r, "rope_theta", "a number");
    if (local && !json_is_number(local))
        return hf_rope_wrong(r, "rope_local_base_freq", "a number");
    if (type &&
        strcmp(json_string_value(type) ? json_string_value(type) : "", "default") != 0)
        return hf_rope_wrong(r, "sliding_attention", "the rope_type default");
    hf_add_float(hf, ".rope.freq_base", json_number_value(base));
    if (hf->text->keys & HF_GEMMA3)
        hf_add_float(hf, ".rope.freq_base_swa", json_number_value(local));
    return TN_OK;
}

// Adds the number of rotated elements of a head. Only Phi-3 rotates fewer than all:
// transformers' other models ignore the number without a scaling, and fail with one.
static tn_status add_rotated(const struct rope *r, const struct scaling *scaling)
{
    struct hf *hf = r->hf;
    const json_t *part = rope_member(r, "partial_rotary_factor");
    part = part ? part : hf_member(hf->model, "partial_rotary_factor");
    double share = part ? json_number_value(part) : 1;
    if (!(share > 0 && share <= 1))
        return hf_rope_wrong(r, "partial_rotary_factor", "a number above 0 and up to 1");
    if (!(hf->text->keys & HF_PHI3)) {
        if (scaling && share < 1)
            return hf_rope_wrong(r, "partial_rotary_factor", "1 beside a rope_scaling");
        share = 1;
    }
    hf_add_integer(hf, ".rope.dimension_count", (int64_t)((double)hf->head * share));
    return TN_OK;
}

// Adds the factor of rotated elements: the scaling's own number, or one that follows from
// its factor. GGUF stores the whole factor for longrope; for yarn, its quotient by the
// usual 1 + 0.1 ln(factor).
static tn_status add_magnitude(const struct rope *r, bool is_long)
{
    struct hf *hf = r->hf;
    const json_t *said = rope_member(r, "attention_factor");
    double factor = json_number_value(rope_member(r, "factor"));
    double one = json_number_value(rope_member(r, "mscale"));
    double all = json_number_value(rope_member(r, "mscale_all_dim"));
    if (is_long && factor == 0)
        factor = json_number_value(hf_member(hf->model, "max_position_embeddings")) /
                 r->original;
    if (!(factor > 0) || (is_long && !(r->original > 1)))
        return hf_rope_wrong(r, "rope_scaling",
                             "a factor, and positions of the original context");
    double growth = factor > 1 ? log(factor) : 0, usual = 1 + 0.1 * log(factor);
    double whole = 1 + 0.1 * growth;
    if (said)
        whole = json_number_value(said);
    else if (is_long)
        whole = factor > 1 ? sqrt(1 + growth / log(r->original)) : 1;
    else if (one != 0 && all != 0)
        whole = (1 + 0.1 * one * growth) / (1 + 0.1 * all * growth);
    if (is_long || whole != usual)
        hf_add_float(hf, ".rope.scaling.attn_factor", is_long ? whole : whole / usual);
    return TN_OK;
}

static tn_status hf_rope_add_numbers(const struct rope *r, const struct scaling *scaling)
{
    for (size_t i = 0; i < COUNT(scaling->needed) && scaling->needed[i]; i++)
        if (!json_is_number(rope_member(r, scaling->needed[i])))
            return hf_rope_wrong(r, "rope_scaling",
                                 "a factor, and what else its type needs");
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const json_t *value = rope_member(r, numbers[i].theirs);
        if (value && !json_is_number(value))
            return hf_rope_wrong(r, numbers[i].theirs, "a number");
        if (value)
            hf_add_float(r->hf, numbers[i].ours, json_number_value(value));
    }
    return TN_OK;
}

// Finds the factors for short and for long contexts.
static tn_status add_factors(const struct rope *r)
{
    static const char *const lists[] = {"short_factor", "long_factor"};
    for (size_t i = 0; i < COUNT(lists); i++) {
        r->hf->factors[i] = rope_member(r, lists[i]);
        if (json_array_size(r->hf->factors[i]) == 0)
            return hf_rope_wrong(r, lists[i], "a list of numbers");
    }
    return TN_OK;
}

static tn_status add_scaling(struct rope *r, const struct scaling *scaling)
{
    struct hf *hf = r->hf;
    bool is_long = strcmp(scaling->ours, "longrope") == 0;
    bool is_yarn = strcmp(scaling->ours, "yarn") == 0;
    // This number comes before the scaling's own.
    const json_t *context = hf_member(hf->model, "original_max_position_embeddings");
    context = context ? context : rope_member(r, "original_max_position_embeddings");
    hf_add_text(hf, ".rope.scaling.type", scaling->ours);
    if (json_is_integer(context))
        hf_add_integer(hf, ".rope.scaling.original_context_length",
                       json_integer_value(context));
    else
        context = hf_member(hf->model, "max_position_embeddings");
    r->original = json_number_value(context);
    tn_status status = hf_rope_add_numbers(r, scaling);
    if (status == TN_OK && (is_long || is_yarn))
        status = add_magnitude(r, is_long);
    if (is_yarn && json_is_false(rope_member(r, "truncate")))
        hf_add_bool(hf, ".rope.scaling.yarn_truncate", false);
    return status == TN_OK && is_long ? add_factors(r) : status;
}

// Gives the scaling; NULL: there is none.
static tn_status find_scaling(const struct rope *r, const struct scaling **out)
{
    const json_t *type = rope_member(r, "rope_type");
    type = type ? type : rope_member(r, "type");
    const char *name = type ? json_string_value(type) : "default";
    *out = NULL;
    if (name && r->hf->text->keys & HF_PHI3 && strcmp(name, "yarn") == 0)
        name = "longrope"; // early files' name
    for (size_t i = 0; name && i < COUNT(scalings) && !*out; i++)
        *out = strcmp(name, scalings[i].theirs) == 0 ? &scalings[i] : NULL;
    if (*out || (name && strcmp(name, "default") == 0))
        return TN_OK;
    return r->hf->host->fail(
        r->hf->host, TN_ERR_UNSUPPORTED,
        "%s: config.json: \"rope_scaling\" is of type '%.64s', which "
        "Tenon does not run: expected default, linear, llama3, yarn or "
        "longrope",
        r->hf->folder->name, name ? name : "(no text)");
}

tn_status hf_read_rope(struct hf *hf)
{
    struct rope r = {.hf = hf};
    const struct scaling *scaling = NULL;
    tn_status status = find_objects(&r);
    if (status == TN_OK)
        status = find_scaling(&r, &scaling);
    if (status == TN_OK)
        status = add_bases(&r);
    if (status == TN_OK)
        status = add_rotated(&r, scaling);
    hf_add_text(hf, "tenon.rope", "halves");
    return status == TN_OK && scaling ? add_scaling(&r, scaling) : status;
}

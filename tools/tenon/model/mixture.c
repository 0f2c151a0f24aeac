// SPDX-License-Identifier: MIT
// Which array of a model gets which format.
#include "mixture.h"

#include <stdio.h>
#include <string.h>
#include <tenon/ops/quant.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// The layers that a choice is for.
enum when {
    NEVER,
    ALL,
    SPREAD,    // the first eighth, the last eighth, and each third one between
    EIGHTH,    // the first eighth
    SIXTEENTH, // the first sixteenth
    TWO,       // the first two
    FOUR,      // the first four
    SHARED,    // all, where four heads or more share their keys and values
};

struct mixture_choice {
    enum when when;
    const char *format;
};

// Kinds of matrices that may get more bits, by the first choice that fits the layer.
enum { VALUES, DOWN, OUT, JOINT, KINDS };
static const char *const kinds[KINDS] = {"attn_v", "ffn_down", "attn_output", "attn_qkv"};

struct mixture {
    const char *name;
    int64_t number; // general.file_type
    const char *format, *output;
    struct mixture_choice choices[KINDS][2];
};

static const struct mixture mixtures[] = {
    {"q4_0", 2, "q4_0", "q6_k", {{{0}}}},
    {"q4_1", 3, "q4_1", "q6_k", {{{0}}}},
    {"q5_0", 8, "q5_0", "q6_k", {{{0}}}},
    {"q5_1", 9, "q5_1", "q6_k", {{{0}}}},
    {"q8_0", 7, "q8_0", "q8_0", {{{0}}}},
    {"q2_k",
     10,
     "q2_k",
     "q6_k",
     {[VALUES] = {{SHARED, "q4_k"}, {ALL, "q3_k"}},
      [DOWN] = {{ALL, "q3_k"}},
      [OUT] = {{ALL, "q3_k"}}}},
    {"q3_k_s", 11, "q3_k", "q6_k", {{{0}}}},
    {"q3_k_m",
     12,
     "q3_k",
     "q6_k",
     {[VALUES] = {{TWO, "q5_k"}, {ALL, "q4_k"}},
      [DOWN] = {{SIXTEENTH, "q5_k"}, {ALL, "q4_k"}},
      [OUT] = {{ALL, "q4_k"}},
      [JOINT] = {{ALL, "q4_k"}}}},
    {"q3_k_l",
     13,
     "q3_k",
     "q6_k",
     {[VALUES] = {{ALL, "q5_k"}},
      [DOWN] = {{ALL, "q5_k"}},
      [OUT] = {{ALL, "q5_k"}},
      [JOINT] = {{ALL, "q4_k"}}}},
    {"q4_k_s",
     14,
     "q4_k",
     "q6_k",
     {[VALUES] = {{FOUR, "q5_k"}}, [DOWN] = {{EIGHTH, "q5_k"}}}},
    {"q4_k_m",
     15,
     "q4_k",
     "q6_k",
     {[VALUES] = {{SPREAD, "q6_k"}},
      [DOWN] = {{SPREAD, "q6_k"}},
      [JOINT] = {{ALL, "q5_k"}}}},
    {"q5_k_s", 16, "q5_k", "q6_k", {{{0}}}},
    {"q5_k_m",
     17,
     "q5_k",
     "q6_k",
     {[VALUES] = {{SPREAD, "q6_k"}},
      [DOWN] = {{SPREAD, "q6_k"}},
      [JOINT] = {{ALL, "q6_k"}}}},
    {"q6_k", 18, "q6_k", "q6_k", {{{0}}}},
    {"iq4_nl",
     25,
     "iq4_nl",
     "q6_k",
     {[VALUES] = {{SHARED, "q5_k"}}, [DOWN] = {{EIGHTH, "q5_k"}}}},
    {"iq4_xs",
     30,
     "iq4_xs",
     "q6_k",
     {[VALUES] = {{SHARED, "q5_k"}}, [DOWN] = {{EIGHTH, "q5_k"}}}},
    {"mxfp4", 38, "mxfp4", "q8_0", {{{0}}}},
};

const struct mixture *mixture_find(const char *name)
{
    for (size_t i = 0; i < COUNT(mixtures); i++)
        if (strcmp(mixtures[i].name, name) == 0)
            return &mixtures[i];
    return NULL;
}

const char *mixture_known(char *text, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < COUNT(mixtures) && at < size; i++)
        at +=
            (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "", mixtures[i].name);
    return text;
}

const char *mixture_name(const struct mixture *mixture)
{
    return mixture->name;
}

int64_t mixture_number(const struct mixture *mixture)
{
    return mixture->number;
}

static bool mixture_holds(enum when when, const struct mixture_model *model, int64_t layer)
{
    int64_t layers = model->layers, eighth = layers / 8;
    switch (when) {
    case NEVER:
        return false;
    case ALL:
        return true;
    case SPREAD:
        return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
    case EIGHTH:
        return layer < eighth;
    case SIXTEENTH:
        return layer < layers / 16;
    case TWO:
        return layer < 2;
    case FOUR:
        return layer < 4;
    case SHARED:
        return model->sharing >= 4;
    }
    return false;
}

// Reads N and the part between "blk.N." and ".weight"; false: the name is another.
static bool read_layer(const char *name, char *out_part, size_t size, int64_t *out_layer)
{
    long long layer;
    int at = 0;
    if (sscanf(name, "blk.%9lld.%n", &layer, &at) != 1 || at == 0)
        return false;
    const char *end = strrchr(name + at, '.');
    if (!end || (size_t)(end - (name + at)) >= size)
        return false;
    snprintf(out_part, size, "%.*s", (int)(end - (name + at)), name + at);
    *out_layer = layer;
    return true;
}

static bool mixture_is_small(const char *part)
{
    static const char *const ends[] = {"norm", "ffn_gate_inp", "ffn_gate_inp_shexp"};
    for (size_t i = 0; i < COUNT(ends); i++) {
        size_t length = strlen(part), end = strlen(ends[i]);
        if (length >= end && strcmp(part + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

static const char *layer_format(const struct mixture *mixture,
                                const struct mixture_model *model, const char *part,
                                int64_t layer)
{
    char plain[64];
    const char *experts = strstr(part, "_exps"); // matrices of all experts, as one array
    snprintf(plain, sizeof(plain), "%.*s",
             experts ? (int)(experts - part) : (int)strlen(part), part);
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < 2 && strcmp(plain, kinds[kind]) == 0; i++)
            if (mixture_holds(mixture->choices[kind][i].when, model, layer))
                return mixture->choices[kind][i].format;
    return mixture->format;
}

const char *mixture_format(const struct mixture *mixture, const struct mixture_model *model,
                           const char *name)
{
    char part[64];
    int64_t layer;
    size_t length = strlen(name), end = strlen(".weight");
    if (length < end || strcmp(name + length - end, ".weight") != 0)
        return NULL;
    if (strcmp(name, "output.weight") == 0 ||
        (strcmp(name, "token_embd.weight") == 0 && !model->has_output))
        return mixture->output;
    if (strcmp(name, "token_embd.weight") == 0)
        return mixture->format;
    if (!read_layer(name, part, sizeof(part), &layer))
        return NULL;
    bool is_key_or_value = strcmp(part, "attn_k") == 0 || strcmp(part, "attn_v") == 0;
    if (mixture_is_small(part))
        return NULL;
    if (model->experts == 8 && is_key_or_value) // few bytes beside eight experts
        return "q8_0";
    return layer_format(mixture, model, part, layer);
}

const char *mixture_fallback(const char *format, int64_t columns)
{
    static const struct {
        const char *format, *otherwise;
    } rows[] = {{"q2_k", "q4_0"}, {"q3_k", "q4_0"}, {"q4_k", "q5_0"},
                {"q5_k", "q5_1"}, {"q6_k", "q8_0"}, {"iq4_xs", "iq4_nl"}};
    const tn_quant_format *found = tn_quant_find(format);
    if (!found || columns % found->block == 0)
        return format;
    if (columns % 32 == 0)
        for (size_t i = 0; i < COUNT(rows); i++)
            if (strcmp(rows[i].format, format) == 0)
                return rows[i].otherwise;
    return "f16";
}

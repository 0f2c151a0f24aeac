// SPDX-License-Identifier: MIT
// The metadata of a GGUF file that is written: those of the model, as other readers expect
// them. What a folder of Hugging Face says otherwise is brought into GGUF's form.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite.h"

#define KEY_SIZE 256
#define TURN 6.283185307179586 // radians

static const tn_metadata *rewrite_metadata_find(const struct rewrite *r, const char *key)
{
    char whole[KEY_SIZE];
    tn_text architecture = {"", 0};
    const tn_metadata_list *list = tn_file_metadata(r->file);
    (void)tn_metadata_text(tn_metadata_find(list, "general.architecture"), &architecture);
    snprintf(whole, sizeof(whole), "%.128s%s", architecture.data, key);
    return tn_metadata_find(list, whole);
}

int64_t rewrite_number(const struct rewrite *r, const char *key, int64_t otherwise)
{
    const tn_metadata *pair = rewrite_metadata_find(r, key);
    int64_t value = otherwise;
    if (pair && pair->kind == TN_METADATA_INTEGER && pair->count > 0)
        value = *(const int64_t *)pair->data;
    return value;
}

static double rewrite_metadata_float_of(const struct rewrite *r, const char *key,
                                        double otherwise)
{
    (void)tn_metadata_number(rewrite_metadata_find(r, key), &otherwise);
    return otherwise;
}

static bool scales_as_llama3(const struct rewrite *r)
{
    tn_text type = {"", 0};
    (void)tn_metadata_text(rewrite_metadata_find(r, ".rope.scaling.type"), &type);
    return strcmp(type.data, "llama3") == 0;
}

int64_t rewrite_factors(const struct rewrite *r, float factors[256])
{
    double factor = rewrite_metadata_float_of(r, ".rope.scaling.factor", 1);
    double low = rewrite_metadata_float_of(r, ".rope.scaling.low_freq_factor", 1);
    double high = rewrite_metadata_float_of(r, ".rope.scaling.high_freq_factor", 4);
    double original =
        rewrite_metadata_float_of(r, ".rope.scaling.original_context_length",
                                  rewrite_metadata_float_of(r, ".context_length", 0));
    double base = rewrite_metadata_float_of(r, ".rope.freq_base", 10000);
    if (!scales_as_llama3(r) || high <= low || r->rotary > 512 || r->rotary < 2)
        return 0;
    for (int64_t i = 0; i < r->rotary / 2; i++) {
        double turns = original * pow(base, -2 * (double)i / (double)r->rotary) / TURN;
        double share = (turns - low) / (high - low);
        share = share < 0 ? 0 : share > 1 ? 1 : share;
        factors[i] = (float)(1 / ((1 - share) / factor + share));
    }
    return r->rotary / 2;
}

// Whether a pair is not copied: keys of files in parts, keys that are written anew, Tenon's
// own keys of folders, and Llama 3's scaling, for which GGUF has an array.
static bool rewrite_metadata_is_left(const struct rewrite *r, const tn_metadata *pair)
{
    static const char *const keys[] = {"split.no",
                                       "split.count",
                                       "split.tensors.count",
                                       "general.file_type",
                                       "general.quantization_version",
                                       "general.alignment",
                                       "tenon.rope"};
    for (size_t i = 0; i < COUNT(keys); i++)
        if (tn_metadata_is(pair, keys[i]))
            return true;
    return strstr(pair->key, ".rope.scaling.") && scales_as_llama3(r);
}

int64_t rewrite_file_type(const char *dtype)
{
    static const struct {
        const char *name;
        int64_t number;
    } types[] = {{"f32", 0}, {"f16", 1}, {"bf16", 32}};
    for (size_t i = 0; i < COUNT(types); i++)
        if (strcmp(types[i].name, dtype) == 0)
            return types[i].number;
    return -1;
}

// The number for general.file_type: by the first matrix of f32, f16 or bf16, else the
// number in the old file, or 0.
static int64_t number_of_type(const struct rewrite *r)
{
    int64_t number;
    for (uint64_t i = 0; i < r->count; i++) {
        const struct rewrite_array *a = &r->arrays[i];
        if (a->type && a->type->rank > 1 && (number = rewrite_file_type(a->to)) >= 0)
            return number;
    }
    const tn_metadata_list *list = tn_file_metadata(r->file);
    const tn_metadata *old = tn_metadata_find(list, "general.file_type");
    return tn_metadata_integer(old, &number) ? number : 0;
}

static void rewrite_metadata_add(struct rewrite *r, const char *key, int64_t *value)
{
    r->pairs[r->num_pairs++] = (tn_metadata){key, value, 1, TN_METADATA_INTEGER, 0};
}

// A key that Tenon reads for every architecture and other programs for some alone, with the
// value that they assume. A window is only noted where the context is longer.
static const struct own_pair {
    const char *architecture, *key;
    double usual;
} own_pairs[] = {
    {NULL, ".hidden_activation", NAN},
    {NULL, ".rope.scaling.yarn_truncate", 1},
    {NULL, ".rope.scaling.yarn_beta_fast", 32},
    {NULL, ".rope.scaling.yarn_beta_slow", 1},
    {"qwen2moe", ".expert_weights_norm", 0},
    {"qwen3moe", ".expert_weights_norm", 1},
    {"llama", ".attention.sliding_window", 0},
    {"phi3", ".attention.sliding_window", 0},
    {"qwen2", ".attention.sliding_window", 0},
    {"qwen2moe", ".attention.sliding_window", 0},
    {"qwen3", ".attention.sliding_window", 0},
    {"qwen3moe", ".attention.sliding_window", 0},
};

static bool rewrite_metadata_is_usual(const struct rewrite *r, const tn_metadata *pair,
                                      double usual)
{
    double number = -1;
    int32_t truth;
    if (tn_metadata_bool(pair, &truth))
        number = truth;
    (void)tn_metadata_number(pair, &number);
    return number == usual ||
           (strstr(pair->key, ".sliding_window") &&
            number >= rewrite_metadata_float_of(r, ".context_length", 0));
}

// Notes the pairs for which other programs compute something else than Tenon.
static void tell_own_pairs(const struct rewrite *r)
{
    tn_text architecture = {"", 0};
    const tn_metadata_list *list = tn_file_metadata(r->file);
    (void)tn_metadata_text(tn_metadata_find(list, "general.architecture"), &architecture);
    for (size_t i = 0; i < COUNT(own_pairs); i++) {
        const struct own_pair *own = &own_pairs[i];
        const tn_metadata *pair = rewrite_metadata_find(r, own->key);
        if (!pair || rewrite_metadata_is_usual(r, pair, own->usual) ||
            (own->architecture && strcmp(own->architecture, architecture.data) != 0))
            continue;
        note("Tenon reads %s in %s; llama.cpp leaves it out, and computes something else",
             pair->key, r->out);
    }
}

// Notes where the number of tokens differs from the rows of the embedding.
static void tell_tokens(const struct rewrite *r)
{
    const tn_metadata *tokens =
        tn_metadata_find(tn_file_metadata(r->file), "tokenizer.ggml.tokens");
    for (uint64_t i = 0; tokens && i < r->count; i++) {
        const struct rewrite_array *a = &r->arrays[i];
        if (strcmp(a->name, "token_embd.weight") == 0 && (uint64_t)a->rows != tokens->count)
            note("%s has %lld rows, and the tokenizer %llu tokens: llama.cpp opens no such "
                 "file",
                 a->name, (long long)a->rows, (unsigned long long)tokens->count);
    }
}

void rewrite_set_type(struct rewrite *r, int64_t number)
{
    r->numbers[0] = number;
}

// Fails where GGUF has no name for the rule by which a folder's tokenizer splits text:
// other programs would split it by another rule, without a warning.
static int check_rule(const struct rewrite *r, const tn_metadata_list *list)
{
    tn_text rule;
    if (!r->is_gguf || tn_metadata_find(list, "tokenizer.ggml.pre") ||
        !tn_metadata_text(tn_metadata_find(list, "tenon.tokenizer.rule"), &rule))
        return 0;
    return oops(
        "%s: GGUF has no name for how its tokenizer cuts text ('%s', with the steps "
        "that `tenon model show` lists under tenon.tokenizer.pipeline): other readers "
        "of %s would have other tokens. The folder itself can be used, and its arrays "
        "be written to a .safetensors file",
        r->in, rule.data, r->out);
}

int rewrite_metadata(struct rewrite *r)
{
    const tn_metadata_list *list = tn_file_metadata(r->file);
    int failed = check_rule(r, list);
    if (failed)
        return failed;
    r->pairs = calloc(list->count + 2, sizeof(*r->pairs));
    r->floats = calloc(list->count + 1, sizeof(*r->floats));
    if (!r->pairs || !r->floats)
        return oops_memory();
    for (uint64_t i = 0; i < list->count; i++) {
        tn_metadata pair = *tn_metadata_at(list, i);
        if (rewrite_metadata_is_left(r, &pair))
            continue;
        if (pair.kind == TN_METADATA_FLOAT && !(pair.flags & TN_METADATA_LIST)) {
            r->floats[i] = (double)(float)*(const double *)pair.data; // as GGUF has them
            pair.data = &r->floats[i];
        }
        r->pairs[r->num_pairs++] = pair;
    }
    r->numbers[0] = number_of_type(r);
    r->numbers[1] = 2; // of the block formats
    rewrite_metadata_add(r, "general.file_type", &r->numbers[0]);
    rewrite_metadata_add(r, "general.quantization_version", &r->numbers[1]);
    if (r->is_gguf) {
        tell_own_pairs(r);
        tell_tokens(r);
    }
    return 0;
}

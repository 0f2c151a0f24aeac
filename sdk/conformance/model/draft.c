// SPDX-License-Identifier: MIT
// The metadata of a small decoder, and the types of those weights that tell what it has.
#include "draft.h"

const char draft_name[] = "/folder/model.of-weights";

static const struct {
    const char *name; // the key behind the architecture and a dot
    int64_t value;
    enum draft_kind kind; // the kind with this key; DRAFT_PLAIN: every kind
} integers[] = {
    {"block_count", DRAFT_LAYERS, DRAFT_PLAIN},
    {"embedding_length", DRAFT_WIDTH, DRAFT_PLAIN},
    {"feed_forward_length", 48, DRAFT_PLAIN},
    {"context_length", DRAFT_CONTEXT, DRAFT_PLAIN},
    {"vocab_size", DRAFT_VOCABULARY, DRAFT_PLAIN},
    {"attention.head_count", DRAFT_HEADS, DRAFT_PLAIN},
    {"attention.head_count_kv", DRAFT_GROUPS, DRAFT_PLAIN},
    {"attention.key_length", DRAFT_WIDTH / DRAFT_HEADS, DRAFT_PLAIN},
    {"attention.value_length", DRAFT_WIDTH / DRAFT_HEADS, DRAFT_PLAIN},
    {"rope.dimension_count", DRAFT_WIDTH / DRAFT_HEADS, DRAFT_PLAIN},
    {"attention.sliding_window", DRAFT_WINDOW, DRAFT_FULL},
    {"expert_count", DRAFT_EXPERTS, DRAFT_MIXED},
    {"expert_used_count", 2, DRAFT_MIXED},
    {"expert_feed_forward_length", 24, DRAFT_MIXED},
};

static const struct {
    const char *name;
    double value;
} floats[] = {
    {"attention.layer_norm_rms_epsilon", 1e-5},
    {"attention.layer_norm_epsilon", 1e-5},
    {"rope.freq_base", 10000},
};

static tn_type model_draft_matrix(int64_t rows, int64_t columns)
{
    return (tn_type){.dtype = TN_F32, .rank = 2, .extent = {rows, columns}};
}

// Whether `name` is "blk.N." and `rest`, N a layer.
static bool is_of_layer(const char *name, const char *rest)
{
    for (int i = 0; i < DRAFT_LAYERS; i++) {
        char whole[TN_MODEL_NAME];
        if (strcmp(name, format_text(whole, sizeof(whole), "blk.%d.%s", i, rest)) == 0)
            return true;
    }
    return false;
}

static int32_t draft_weight(const tn_model_source *source, const char *name,
                            tn_type *out_type)
{
    const struct model_draft *d = (const struct model_draft *)(const void *)source;
    for (uint64_t i = 0; i < d->num_known; i++) {
        const tn_model_weight *w = &d->known[i].weight;
        if (strcmp(w->name, name) != 0)
            continue;
        *out_type = (tn_type){.dtype = TN_F32, .rank = w->rank};
        memcpy(out_type->extent, w->extent, sizeof(w->extent));
        return 1;
    }
    if (strcmp(name, "token_embd.weight") == 0 && d->embedding.rank >= 0)
        *out_type = d->embedding;
    else if (strcmp(name, "position_embd.weight") == 0)
        *out_type = model_draft_matrix(DRAFT_CONTEXT, DRAFT_WIDTH);
    else if (d->kind == DRAFT_MIXED && is_of_layer(name, "ffn_gate_inp.weight"))
        *out_type = model_draft_matrix(DRAFT_EXPERTS, DRAFT_WIDTH);
    else
        return 0;
    return 1;
}

static tn_metadata *draft_add(struct model_draft *d, const char *key)
{
    tn_metadata *pair = &d->pairs[d->list.count];
    pair->key = format_text(d->keys[d->list.count++], sizeof(d->keys[0]), "%s", key);
    pair->count = 1;
    return pair;
}

static void model_draft_add_numbers(struct model_draft *d)
{
    char key[128];
    for (size_t i = 0; i < COUNT(integers); i++) {
        if (integers[i].kind != DRAFT_PLAIN && integers[i].kind != d->kind)
            continue;
        format_text(key, sizeof(key), "%s.%s", d->name, integers[i].name);
        int64_t *value = &d->integers[d->list.count];
        *value = integers[i].value;
        tn_metadata *pair = draft_add(d, key);
        pair->kind = TN_METADATA_INTEGER;
        pair->data = value;
    }
    for (size_t i = 0; i < COUNT(floats); i++) {
        format_text(key, sizeof(key), "%s.%s", d->name, floats[i].name);
        double *value = &d->floats[d->list.count];
        *value = floats[i].value;
        tn_metadata *pair = draft_add(d, key);
        pair->kind = TN_METADATA_FLOAT;
        pair->data = value;
    }
}

void model_draft_init(struct model_draft *d, const char *architecture, enum draft_kind kind)
{
    memset(d, 0, sizeof(*d));
    d->kind = kind;
    d->embedding = model_draft_matrix(DRAFT_VOCABULARY, DRAFT_WIDTH);
    format_text(d->name, sizeof(d->name), "%s", architecture);
    d->architecture = (tn_text){d->name, strlen(d->name)};
    for (int i = 0; i < DRAFT_VOCABULARY; i++)
        d->tokens[i] = (tn_text){"x", 1};
    d->list = (tn_metadata_list){.struct_size = sizeof(d->list),
                                 .entry_size = sizeof(d->pairs[0]),
                                 .entries = d->pairs,
                                 .name = draft_name};
    d->source = (tn_model_source){
        .struct_size = sizeof(d->source), .metadata = &d->list, .weight = draft_weight};
    tn_metadata *pair = draft_add(d, "general.architecture");
    pair->kind = TN_METADATA_TEXT;
    pair->data = &d->architecture;
    model_draft_add_numbers(d);
    pair = draft_add(d, "tokenizer.ggml.tokens");
    pair->kind = TN_METADATA_TEXT;
    pair->flags = TN_METADATA_LIST;
    pair->count = DRAFT_VOCABULARY;
    pair->data = d->tokens;
}

// SPDX-License-Identifier: MIT
// Families of models, and the names of their arrays in GGUF.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "huggingface.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Files of Gemma leave out what is as in the family's first model.
static const char gemma2[] =
    "{\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 256,"
    " \"rms_norm_eps\": 1e-6, \"max_position_embeddings\": 8192, \"sliding_window\": 4096,"
    " \"query_pre_attn_scalar\": 256, \"attn_logit_softcapping\": 50.0,"
    " \"final_logit_softcapping\": 30.0}";
static const char gemma3[] =
    "{\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 256,"
    " \"rms_norm_eps\": 1e-6, \"max_position_embeddings\": 131072,"
    " \"sliding_window\": 4096, \"query_pre_attn_scalar\": 256, \"rope_theta\": 1e6}";

// Of the language model beside a tower.
static const char idefics3[] = "{\"rms_norm_eps\": 1e-5, \"num_attention_heads\": 32, "
                               "\"max_position_embeddings\": 2048}";

static const struct hf_family families[] = {
    {"gemma", "gemma", true, false, NULL, NULL},
    {"gemma2", "gemma2", true, true, gemma2, NULL},
    {"gemma3", "gemma3", true, true, gemma3, NULL},
    {"gemma3_text", "gemma3", true, true, gemma3, NULL},
    {"llama", "llama", false, false, NULL, NULL},
    {"mistral", "llama", false, false, NULL, NULL},
    {"mixtral", "llama", false, false, NULL, NULL},
    {"phi3", "phi3", false, false, NULL, NULL},
    {"qwen2", "qwen2", false, false, NULL, NULL},
    {"qwen2_moe", "qwen2moe", false, false, NULL, NULL},
    {"qwen3", "qwen3", false, false, NULL, NULL},
    {"qwen3_moe", "qwen3moe", false, false, NULL, NULL},
    {"idefics3", "llama", false, false, idefics3, "idefics3"},
    {"smolvlm", "llama", false, false, idefics3, "idefics3"},
};

const struct hf_family *hf_find_family(const char *model_type)
{
    for (size_t i = 0; i < COUNT(families); i++)
        if (strcmp(families[i].model_type, model_type) == 0)
            return &families[i];
    return NULL;
}

const char *hf_known_families(char *text, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < COUNT(families) && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "",
                               families[i].model_type);
    return text;
}

// What stands before ".weight" or ".bias" there and here.
struct pair {
    const char *theirs, *ours;
};

static const struct pair globals[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
};

// Behind "model.layers.N." there, and "blk.N." here.
static const struct pair in_layers[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
};
// Of a tower.
static const struct pair of_towers[] = {
    {"vision_model.embeddings.patch_embedding", "v.patch_embd"},
    {"vision_model.embeddings.position_embedding", "v.position_embd"},
    {"vision_model.post_layernorm", "v.post_ln"},
    {"connector.modality_projection.proj", "mm.model.fc"},
};

// Behind "vision_model.encoder.layers.N." there, and "v.blk.N." here.
static const struct pair in_towers[] = {
    {"layer_norm1", "ln1"},         {"layer_norm2", "ln2"},
    {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"}, {"self_attn.out_proj", "attn_out"},
    {"mlp.fc1", "ffn_up"},          {"mlp.fc2", "ffn_down"},
};
// One name for two norms: behind attention, or before what comes next.
static const char behind_attention[] = "post_attention_layernorm";

static const char *find(const struct pair *pairs, size_t count, const char *name,
                        size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(pairs[i].theirs) == size && strncmp(pairs[i].theirs, name, size) == 0)
            return pairs[i].ours;
    return NULL;
}

// What is behind `prefix`, or NULL.
static const char *behind(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(name, prefix, size) == 0 ? name + size : NULL;
}

// Behind "mlp.experts.N." or "block_sparse_moe.experts.N." there.
static const struct pair of_experts[] = {
    {"gate_proj", "ffn_gate_exps"}, {"up_proj", "ffn_up_exps"},
    {"down_proj", "ffn_down_exps"}, {"w1", "ffn_gate_exps"},
    {"w3", "ffn_up_exps"},          {"w2", "ffn_down_exps"},
};

// What stands for a matrix of an expert, or NULL.
static const char *find_of_expert(const char *name, size_t size, int64_t *expert)
{
    const char *rest = behind(name, "mlp.experts.");
    rest = rest ? rest : behind(name, "block_sparse_moe.experts.");
    size_t digits = rest ? strspn(rest, "0123456789") : 0;
    if (digits == 0 || digits > 9 || rest[digits] != '.')
        return NULL;
    const char *part = rest + digits + 1;
    if (part >= name + size)
        return NULL;
    const char *ours =
        find(of_experts, COUNT(of_experts), part, (size_t)(name + size - part));
    if (ours)
        *expert = strtol(rest, NULL, 10);
    return ours;
}

static const char *find_in_layer(const struct hf_family *family, const char *name,
                                 size_t size)
{
    if (size == sizeof(behind_attention) - 1 && strncmp(name, behind_attention, size) == 0)
        return family->has_two_norms ? "post_attention_norm" : "ffn_norm";
    return find(in_layers, COUNT(in_layers), name, size);
}

// The number of a layer and what is behind it: of "12.mlp.up_proj" 2 digits. NULL: another
// name.
static const char *behind_layer(const char *layer, size_t *digits)
{
    *digits = layer ? strspn(layer, "0123456789") : 0;
    return *digits == 0 || *digits > 9 || layer[*digits] != '.' ? NULL
                                                                : layer + *digits + 1;
}

// The name of a tower's array, whose last point is at `point`.
static bool translate_tower(const char *part, const char *point, char *out, size_t size)
{
    size_t digits;
    const char *layer = behind(part, "vision_model.encoder.layers.");
    const char *within = behind_layer(layer, &digits);
    const char *ours = NULL;
    if (within && point > within)
        ours = find(in_towers, COUNT(in_towers), within, (size_t)(point - within));
    if (ours) {
        snprintf(out, size, "v.blk.%.*s.%s%s", (int)digits, layer, ours, point);
        return true;
    }
    ours = find(of_towers, COUNT(of_towers), part, (size_t)(point - part));
    if (ours)
        snprintf(out, size, "%s%s", ours, point);
    return ours != NULL;
}

bool hf_translate(const struct hf_family *family, const char *name, char *out, size_t size,
                  int64_t *expert)
{
    *expert = -1;
    char whole[256];
    const char *part = behind(name, "language_model."); // beside one for images
    const char *newer = behind(name, "model.language_model.");
    newer = newer ? newer : behind(name, "model.text_model.");
    snprintf(out, size, "%s", name);
    if (newer) {
        snprintf(whole, sizeof(whole), "model.%s", newer);
        part = whole;
    }
    part = part ? part : name;
    const char *point = strrchr(part, '.');
    if (!point || (strcmp(point, ".weight") != 0 && strcmp(point, ".bias") != 0))
        return false;
    const char *tower = behind(part, "model.");
    if (translate_tower(tower ? tower : part, point, out, size))
        return true;
    const char *layer = behind(part, "model.layers.");
    if (!layer) {
        const char *ours = find(globals, COUNT(globals), part, (size_t)(point - part));
        if (ours)
            snprintf(out, size, "%s%s", ours, point);
        return ours != NULL;
    }
    size_t digits;
    const char *within = behind_layer(layer, &digits);
    if (!within)
        return false;
    const char *ours =
        point > within ? find_in_layer(family, within, (size_t)(point - within)) : NULL;
    if (!ours && point > within)
        ours = find_of_expert(within, (size_t)(point - within), expert);
    if (ours)
        snprintf(out, size, "blk.%.*s.%s%s", (int)digits, layer, ours, point);
    return ours != NULL;
}

// SPDX-License-Identifier: MIT
// Families of models, and the names of their arrays in GGUF.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "huggingface.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Keys that files may leave out have the defaults of transformers' classes; null is no
// default. An absent number of key-value heads without a default is that of query heads.
static const char llama[] =
    "{\"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_hidden_layers\": 32,"
    " \"num_attention_heads\": 32, \"max_position_embeddings\": 2048,"
    " \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0}";
static const char mistral[] =
    "{\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32,"
    " \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
    " \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-6,"
    " \"rope_theta\": 10000.0, \"sliding_window\": 4096}";
static const char mixtral[] =
    "{\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32,"
    " \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
    " \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-5, \"rope_theta\": 1e6,"
    " \"num_experts\": 8, \"num_experts_per_tok\": 2}";
static const char phi3[] =
    "{\"hidden_size\": 3072, \"intermediate_size\": 8192, \"num_hidden_layers\": 32,"
    " \"num_attention_heads\": 32, \"max_position_embeddings\": 4096,"
    " \"original_max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-5,"
    " \"rope_theta\": 10000.0}";
static const char qwen2[] =
    "{\"hidden_size\": 4096, \"intermediate_size\": 22016, \"num_hidden_layers\": 32,"
    " \"num_attention_heads\": 32, \"num_key_value_heads\": 32,"
    " \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-6,"
    " \"rope_theta\": 10000.0, \"use_sliding_window\": false, \"sliding_window\": 4096,"
    " \"max_window_layers\": 28}";
static const char qwen2_moe[] =
    "{\"hidden_size\": 2048, \"intermediate_size\": 5632, \"num_hidden_layers\": 24,"
    " \"num_attention_heads\": 16, \"num_key_value_heads\": 16,"
    " \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-6,"
    " \"rope_theta\": 10000.0, \"use_sliding_window\": false, \"sliding_window\": 4096,"
    " \"max_window_layers\": 28, \"moe_intermediate_size\": 1408,"
    " \"shared_expert_intermediate_size\": 5632, \"num_experts_per_tok\": 4,"
    " \"num_experts\": 60, \"norm_topk_prob\": false}";
static const char qwen3[] =
    "{\"hidden_size\": 4096, \"intermediate_size\": 22016, \"num_hidden_layers\": 32,"
    " \"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"head_dim\": 128,"
    " \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-6,"
    " \"rope_theta\": 10000.0, \"use_sliding_window\": false, \"sliding_window\": 4096,"
    " \"max_window_layers\": 28}";
static const char qwen3_moe[] =
    "{\"hidden_size\": 2048, \"intermediate_size\": 6144, \"num_hidden_layers\": 24,"
    " \"num_attention_heads\": 32, \"num_key_value_heads\": 4,"
    " \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-6,"
    " \"rope_theta\": 10000.0, \"use_sliding_window\": false, \"sliding_window\": 4096,"
    " \"moe_intermediate_size\": 768, \"num_experts_per_tok\": 8,"
    " \"num_experts\": 128, \"norm_topk_prob\": false}";
static const char gemma[] =
    "{\"hidden_size\": 3072, \"intermediate_size\": 24576, \"num_hidden_layers\": 28,"
    " \"num_attention_heads\": 16, \"num_key_value_heads\": 16, \"head_dim\": 256,"
    " \"max_position_embeddings\": 8192, \"rms_norm_eps\": 1e-6,"
    " \"rope_theta\": 10000.0, \"tie_word_embeddings\": true}";
static const char gemma2[] =
    "{\"hidden_size\": 2304, \"intermediate_size\": 9216, \"num_hidden_layers\": 26,"
    " \"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 256,"
    " \"max_position_embeddings\": 8192, \"rms_norm_eps\": 1e-6,"
    " \"rope_theta\": 10000.0, \"sliding_window\": 4096, \"query_pre_attn_scalar\": 256,"
    " \"attn_logit_softcapping\": 50.0, \"final_logit_softcapping\": 30.0,"
    " \"tie_word_embeddings\": true}";
static const char gemma3[] =
    "{\"hidden_size\": 2304, \"intermediate_size\": 9216, \"num_hidden_layers\": 26,"
    " \"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 256,"
    " \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-6, \"rope_theta\": 1e6,"
    " \"rope_local_base_freq\": 10000.0, \"sliding_window\": 4096,"
    " \"query_pre_attn_scalar\": 256, \"tie_word_embeddings\": true}";

static const struct hf_family families[] = {
    {"gemma", "gemma", gemma, NULL, HF_GEMMA, HF_WINDOW_NONE, true, false},
    {"gemma2", "gemma2", gemma2, NULL, HF_GEMMA2, HF_WINDOW_PATTERN, true, true},
    {"gemma3", "gemma3", gemma3, NULL, HF_GEMMA3 | HF_OUTER, HF_WINDOW_PATTERN, true, true},
    {"gemma3_text", "gemma3", gemma3, NULL, HF_GEMMA3, HF_WINDOW_PATTERN, true, true},
    {"llama", "llama", llama, NULL, HF_LLAMA, HF_WINDOW_NONE},
    {"mistral", "llama", mistral, NULL, HF_MISTRAL, HF_WINDOW_ALL},
    {"mixtral", "llama", mixtral, NULL, HF_MIXTRAL, HF_WINDOW_ALL},
    {"phi3", "phi3", phi3, NULL, HF_PHI3, HF_WINDOW_ALL},
    {"qwen2", "qwen2", qwen2, NULL, HF_QWEN2, HF_WINDOW_BEHIND},
    {"qwen2_moe", "qwen2moe", qwen2_moe, NULL, HF_QWEN2_MOE, HF_WINDOW_BEFORE},
    {"qwen3", "qwen3", qwen3, NULL, HF_QWEN3, HF_WINDOW_BEHIND},
    {"qwen3_moe", "qwen3moe", qwen3_moe, NULL, HF_QWEN3_MOE, HF_WINDOW_ALL},
    {"idefics3", "llama", llama, "idefics3", HF_LLAMA | HF_OUTER, HF_WINDOW_NONE},
    {"smolvlm", "llama", llama, "idefics3", HF_LLAMA | HF_OUTER, HF_WINDOW_NONE},
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

// Names before ".weight" or ".bias": Hugging Face's and GGUF's.
struct name_pair {
    const char *theirs, *ours;
};

static const struct name_pair globals[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
};

// Names of a layer: behind "layers.N." and behind "blk.N.".
static const struct name_pair in_layers[] = {
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
// Names of a vision encoder.
static const struct name_pair of_encoders[] = {
    {"vision_model.embeddings.patch_embedding", "v.patch_embd"},
    {"vision_model.embeddings.position_embedding", "v.position_embd"},
    {"vision_model.post_layernorm", "v.post_ln"},
    {"connector.modality_projection.proj", "mm.model.fc"},
};

// Names of an encoder's layer: behind "vision_model.encoder.layers.N." and "v.blk.N.".
static const struct name_pair in_encoders[] = {
    {"layer_norm1", "ln1"},         {"layer_norm2", "ln2"},
    {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"}, {"self_attn.out_proj", "attn_out"},
    {"mlp.fc1", "ffn_up"},          {"mlp.fc2", "ffn_down"},
};
// This name stands for two norms: behind attention, or before the feed-forward.
static const char behind_attention[] = "post_attention_layernorm";

static const char *name_pair_find(const struct name_pair *pairs, size_t count,
                                  const char *name, size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(pairs[i].theirs) == size && strncmp(pairs[i].theirs, name, size) == 0)
            return pairs[i].ours;
    return NULL;
}

// Gives the rest behind `prefix`, or NULL.
static const char *name_behind(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(name, prefix, size) == 0 ? name + size : NULL;
}

// Names of an expert: behind "mlp.experts.N." or "block_sparse_moe.experts.N.".
static const struct name_pair of_experts[] = {
    {"gate_proj", "ffn_gate_exps"}, {"up_proj", "ffn_up_exps"},
    {"down_proj", "ffn_down_exps"}, {"w1", "ffn_gate_exps"},
    {"w3", "ffn_up_exps"},          {"w2", "ffn_down_exps"},
};

// Finds GGUF's name of an expert's matrix, or NULL.
static const char *find_of_expert(const char *name, size_t size, int64_t *expert)
{
    const char *rest = name_behind(name, "mlp.experts.");
    rest = rest ? rest : name_behind(name, "block_sparse_moe.experts.");
    size_t digits = rest ? strspn(rest, "0123456789") : 0;
    if (digits == 0 || digits > 9 || rest[digits] != '.')
        return NULL;
    const char *part = rest + digits + 1;
    if (part >= name + size)
        return NULL;
    const char *ours =
        name_pair_find(of_experts, COUNT(of_experts), part, (size_t)(name + size - part));
    if (ours)
        *expert = strtol(rest, NULL, 10);
    return ours;
}

static const char *find_in_layer(const struct hf_family *family, const char *name,
                                 size_t size)
{
    if (size == sizeof(behind_attention) - 1 && strncmp(name, behind_attention, size) == 0)
        return family->has_two_norms ? "post_attention_norm" : "ffn_norm";
    return name_pair_find(in_layers, COUNT(in_layers), name, size);
}

// The text behind a layer's number, whose digits are counted: of "12.mlp.up_proj" 2. NULL:
// the name is not a layer's.
static const char *behind_layer(const char *layer, size_t *digits)
{
    *digits = layer ? strspn(layer, "0123456789") : 0;
    return *digits == 0 || *digits > 9 || layer[*digits] != '.' ? NULL
                                                                : layer + *digits + 1;
}

// Writes GGUF's name of a vision encoder's array, whose last point is at `point`.
static bool translate_encoder(const char *part, const char *point, char *out, size_t size)
{
    size_t digits;
    const char *layer = name_behind(part, "vision_model.encoder.layers.");
    const char *within = behind_layer(layer, &digits);
    const char *ours = NULL;
    if (within && point > within)
        ours = name_pair_find(in_encoders, COUNT(in_encoders), within,
                              (size_t)(point - within));
    if (ours) {
        snprintf(out, size, "v.blk.%.*s.%s%s", (int)digits, layer, ours, point);
        return true;
    }
    ours = name_pair_find(of_encoders, COUNT(of_encoders), part, (size_t)(point - part));
    if (ours)
        snprintf(out, size, "%s%s", ours, point);
    return ours != NULL;
}

// Gives the name behind the prefixes of outer models: "model." where the model has an
// output, others beside a vision encoder. Folders of a model without an output have none.
static const char *behind_models(const char *name)
{
    static const char *const around[] = {"model.", "language_model.", "text_model."};
    for (size_t i = 0; i < COUNT(around);) {
        const char *rest = name_behind(name, around[i]);
        name = rest ? rest : name;
        i = rest ? 0 : i + 1;
    }
    return name;
}

bool hf_translate(const struct hf_family *family, const char *name, char *out, size_t size,
                  int64_t *expert)
{
    *expert = -1;
    const char *part = behind_models(name);
    snprintf(out, size, "%s", name);
    const char *point = strrchr(part, '.');
    if (!point || (strcmp(point, ".weight") != 0 && strcmp(point, ".bias") != 0))
        return false;
    if (translate_encoder(part, point, out, size))
        return true;
    const char *layer = name_behind(part, "layers.");
    if (!layer) {
        const char *ours =
            name_pair_find(globals, COUNT(globals), part, (size_t)(point - part));
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

// SPDX-License-Identifier: MIT
// Every known key of config.json by family: used ones, ones that change no result, and ones
// that are refused unless their value means what Tenon computes. The keys are those of
// transformers' configuration classes, and extra ones of published folders.
#include <stdio.h>
#include <string.h>
#include "huggingface.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum use { USED, HARMLESS, FIXED };

// Keys of some families, separated by spaces.
struct keys {
    uint32_t of; // HF_...
    enum use use;
    const char *names;
    const char *values; // of FIXED: accepted values, beside null
};

#define GEMMAS (HF_GEMMA | HF_GEMMA2 | HF_GEMMA3)

static const struct keys table[] = {
    // Keys of all language models.
    {HF_LANGUAGE, USED,
     "hidden_size intermediate_size num_hidden_layers num_attention_heads "
     "num_key_value_heads head_dim max_position_embeddings vocab_size rms_norm_eps "
     "rope_theta rope_scaling rope_parameters partial_rotary_factor "
     "original_max_position_embeddings tie_word_embeddings",
     NULL},
    {HF_LANGUAGE & ~(HF_GEMMA2 | HF_GEMMA3), USED, "hidden_act", NULL},
    {HF_GEMMA2 | HF_GEMMA3, USED, "hidden_activation", NULL},
    {HF_GEMMA2 | HF_GEMMA3, HARMLESS, "hidden_act", NULL},
    {HF_GEMMA, FIXED, "hidden_activation", "gelu_pytorch_tanh"},
    // The arrays themselves show whether there are biases.
    {HF_LANGUAGE, HARMLESS, "attention_bias mlp_bias qkv_bias lm_head_bias", NULL},
    {HF_LANGUAGE, FIXED,
     "is_encoder_decoder is_decoder add_cross_attention rope_interleaved", "false"},
    {HF_LANGUAGE, FIXED, "qk_layer_norms use_resampler use_mrope", "false"},
    {HF_LANGUAGE, FIXED, "per_layer_config", "{}"},
    // Windows, scores and experts.
    {HF_MISTRAL | HF_MIXTRAL | HF_PHI3 | HF_QWENS | HF_GEMMA2 | HF_GEMMA3, USED,
     "sliding_window", NULL},
    {HF_QWENS, USED, "use_sliding_window", NULL},
    {HF_QWENS & ~HF_QWEN3_MOE, USED, "max_window_layers", NULL},
    {HF_QWEN3_MOE, HARMLESS, "max_window_layers", NULL}, // its windows are of all layers
    {(HF_QWENS & ~HF_QWEN3_MOE) | HF_GEMMA2 | HF_GEMMA3, USED, "layer_types", NULL},
    {HF_GEMMA3, USED, "sliding_window_pattern _sliding_window_pattern rope_local_base_freq",
     NULL},
    {HF_GEMMA2 | HF_GEMMA3, USED, "query_pre_attn_scalar final_logit_softcapping", NULL},
    {HF_GEMMA2, USED, "attn_logit_softcapping", NULL},
    {HF_GEMMA3, FIXED, "attn_logit_softcapping", ""},
    {GEMMAS, FIXED, "use_bidirectional_attention", "false"},
    {HF_EXPERTS, USED, "num_experts num_local_experts num_experts_per_tok", NULL},
    {HF_QWEN2_MOE | HF_QWEN3_MOE, USED, "moe_intermediate_size norm_topk_prob", NULL},
    {HF_QWEN2_MOE, USED, "shared_expert_intermediate_size", NULL},
    // The arrays show which layers have experts.
    {HF_QWEN2_MOE | HF_QWEN3_MOE, HARMLESS, "decoder_sparse_step mlp_only_layers", NULL},
    // Training, and how other implementations compute the same.
    {HF_LANGUAGE, HARMLESS,
     "attention_dropout resid_pdrop embd_pdrop output_router_logits router_aux_loss_coef "
     "router_jitter_noise pretraining_tp neftune_noise_alpha cache_implementation "
     "is_llama_config pixel_shuffle_factor perceiver_config _flash_attn_2_enabled",
     NULL},
    {HF_PHI3, FIXED, "full_attn_mod interpolate_factor", "1"},
    // Keys of the object around the language model's, in models that read images.
    {HF_OUTER, USED, "text_config vision_config scale_factor tie_word_embeddings", NULL},
    {HF_OUTER, HARMLESS,
     "image_token_id image_token_index boi_token_id boi_token_index eoi_token_id "
     "eoi_token_index mm_tokens_per_image vocab_size image_seq_len _pad_token_id",
     NULL},
    // Keys of vision encoders.
    {HF_VISION, USED,
     "image_size patch_size hidden_size intermediate_size num_hidden_layers "
     "num_attention_heads layer_norm_eps hidden_act",
     NULL},
    {HF_VISION, HARMLESS,
     "attention_dropout size max_image_size tie_word_embeddings use_base_siglip", NULL},
    {HF_VISION, FIXED, "num_channels", "3"},
    // Keys of the rotary embedding.
    {HF_ROPE, USED,
     "rope_type type rope_theta partial_rotary_factor factor "
     "original_max_position_embeddings attention_factor beta_fast beta_slow short_factor "
     "long_factor low_freq_factor high_freq_factor mscale mscale_all_dim truncate",
     NULL},
    {HF_ROPE, HARMLESS, "finetuned", NULL},
    {HF_ROPE, FIXED, "extrapolation_factor", "1"},
    {HF_ROPE, FIXED, "mrope_section short_mscale long_mscale", ""},
    // Keys of every file.
    {HF_LANGUAGE | HF_OUTER, USED,
     "eos_token_id bos_token_id pad_token_id quantization quantization_config", NULL},
    {HF_LANGUAGE | HF_OUTER | HF_VISION, USED, "model_type _name_or_path", NULL},
    {HF_LANGUAGE | HF_OUTER | HF_VISION, HARMLESS,
     "architectures dtype torch_dtype transformers_version transformers.js_config "
     "name_or_path "
     "auto_map use_cache initializer_range initializer_factor id2label label2id num_labels "
     "problem_type finetuning_task task_specific_params tokenizer_class prefix "
     "unsloth_version unsloth_fixed sep_token_id decoder_start_token_id return_dict "
     "output_hidden_states output_attentions chunk_size_feed_forward torchscript "
     "use_bfloat16 pruned_heads tie_encoder_decoder cross_attention_hidden_size "
     "tie_last_hidden_states attn_implementation _attn_implementation "
     "_attn_implementation_autoset _attn_implementation_internal "
     "_experts_implementation_internal experts_implementation tf_legacy_loss _commit_hash",
     NULL},
    // Sampling, which the caller decides.
    {HF_LANGUAGE | HF_OUTER | HF_VISION, HARMLESS,
     "assistant_confidence_threshold assistant_lookbehind bad_words_ids "
     "begin_suppress_tokens diversity_penalty do_sample early_stopping "
     "encoder_no_repeat_ngram_size encoder_repetition_penalty epsilon_cutoff eta_cutoff "
     "exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id "
     "length_penalty max_length min_length no_repeat_ngram_size num_assistant_tokens "
     "num_assistant_tokens_schedule num_beam_groups num_beams num_return_sequences "
     "output_scores remove_invalid_values repetition_penalty return_dict_in_generate "
     "suppress_tokens target_lookbehind temperature top_k top_p typical_p",
     NULL},
};

// Whether a list of words separated by spaces has the word.
static bool has_word(const char *list, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = list; size && (at = strstr(at, word)) != NULL; at += size)
        if ((at == list || at[-1] == ' ') && (at[size] == ' ' || at[size] == 0))
            return true;
    return false;
}

static const struct keys *find_key(uint32_t of, const char *key)
{
    for (size_t i = 0; i < COUNT(table); i++)
        if (table[i].of & of && has_word(table[i].names, key))
            return &table[i];
    return NULL;
}

// A short text of a value.
static const char *hf_keys_value_text(const json_t *value, char out[64])
{
    const char *text = json_string_value(value);
    if (text || json_is_boolean(value))
        snprintf(out, 64, "%s", text ? text : json_is_true(value) ? "true" : "false");
    else if (json_is_number(value))
        snprintf(out, 64, "%g", json_number_value(value));
    else if (json_is_array(value))
        snprintf(out, 64, json_array_size(value) ? "[...]" : "[]");
    else
        snprintf(out, 64, json_object_size(value) ? "{...}" : "{}");
    return out;
}

static tn_status check_value(const struct hf *hf, const struct keys *row, const char *key,
                             const json_t *value)
{
    char text[64];
    if (row->use != FIXED || json_is_null(value) ||
        has_word(row->values, hf_keys_value_text(value, text)))
        return TN_OK;
    return hf->host->fail(
        hf->host, TN_ERR_UNSUPPORTED,
        "%s: config.json: \"%s\" is %s, which Tenon does not run: expected %s%snull",
        hf->folder->name, key, text, row->values, *row->values ? " or " : "");
}

// Keys that the table does not have: the first names, and their number.
struct unknown {
    char names[256];
    size_t used, count;
};

static void add_unknown(struct unknown *unknown, const char *key)
{
    size_t room = sizeof(unknown->names) - unknown->used;
    int size = snprintf(unknown->names + unknown->used, room, "%s\"%.64s\"",
                        unknown->count ? ", " : "", key);
    if (size > 0 && (size_t)size < room)
        unknown->used += (size_t)size;
    unknown->names[unknown->used] = 0;
    unknown->count++;
}

// Refuses keys that Tenon cannot follow, and collects unknown ones.
static tn_status check_object(const struct hf *hf, const json_t *object, uint32_t of,
                              struct unknown *unknown)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        const struct keys *row = find_key(of, key);
        tn_status status = row ? check_value(hf, row, key, value) : TN_OK;
        if (status != TN_OK)
            return status;
        if (!row && !json_is_null(value))
            add_unknown(unknown, key);
    }
    return TN_OK;
}

// Accepts MLX's quantised weights alone, which name no method.
static tn_status check_quantization(const struct hf *hf)
{
    const json_t *numbers = json_object_get(hf->config, "quantization_config");
    numbers = numbers ? numbers : json_object_get(hf->model, "quantization_config");
    const char *method = json_string_value(json_object_get(numbers, "quant_method"));
    if (!method || strcmp(method, "mlx") == 0)
        return TN_OK;
    return hf->host->fail(
        hf->host, TN_ERR_UNSUPPORTED,
        "%s: config.json: its weights are quantised by '%.64s', which "
        "Tenon does not read: expected floats, or weights as MLX has them",
        hf->folder->name, method);
}

// The rotary embedding: of all layers, or separately of windowed layers and others.
static tn_status check_rope(const struct hf *hf, const char *name, struct unknown *unknown)
{
    const json_t *rope = hf_member(hf->model, name);
    const json_t *full = hf_member(rope, "full_attention");
    const json_t *sliding = hf_member(rope, "sliding_attention");
    tn_status status = check_object(hf, full || sliding ? full : rope, HF_ROPE, unknown);
    return status == TN_OK ? check_object(hf, sliding, HF_ROPE, unknown) : status;
}

tn_status hf_check_keys(struct hf *hf)
{
    struct unknown unknown = {.count = 0};
    bool is_outer = hf->model != hf->config;
    tn_status status = check_quantization(hf);
    if (status == TN_OK)
        status = check_object(hf, hf->model,
                              hf->text->keys | (is_outer ? 0 : hf->family->keys), &unknown);
    if (status == TN_OK && is_outer)
        status = check_object(hf, hf->config, HF_OUTER, &unknown);
    if (status == TN_OK && hf->family->projector)
        status =
            check_object(hf, hf_member(hf->config, "vision_config"), HF_VISION, &unknown);
    if (status == TN_OK)
        status = check_rope(hf, "rope_scaling", &unknown);
    if (status == TN_OK)
        status = check_rope(hf, "rope_parameters", &unknown);
    if (status == TN_OK && unknown.count)
        hf->host->log(hf->host, TN_LOG_WARN, "huggingface",
                      "%s: config.json: Tenon does not know %zu of its keys, and leaves "
                      "them out: %s",
                      hf->folder->name, unknown.count, unknown.names);
    return status;
}

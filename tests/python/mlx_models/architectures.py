# SPDX-License-Identifier: MIT
"""Configurations of small models, an architecture of mlx_lm each. Their weights follow from their names (worker.py)."""

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
         "rms_norm_eps": 1e-6, "vocab_size": 64, "max_position_embeddings": 128}
HEADS = {"head_dim": 8}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [], "moe_intermediate_size": 24,
           "norm_topk_prob": True, "rope_theta": 1e4, "tie_word_embeddings": False}

ARCHITECTURES = {
    "llama": {**SIZES, "rope_theta": 5e4},
    "qwen2": {**SIZES},
    "qwen3": {**SIZES, **HEADS, "rope_theta": 1e6, "tie_word_embeddings": True},
    "gemma2": {**SIZES, **HEADS, "query_pre_attn_scalar": 8.0},
    "gemma3_text": {**SIZES, **HEADS, "query_pre_attn_scalar": 8.0, "sliding_window": 6, "sliding_window_pattern": 2},
    "phi3": {**SIZES},
    "olmo2": {**SIZES},
    "cohere2": {**SIZES, **HEADS, "sliding_window": 6, "sliding_window_pattern": 2},
    "mixtral": {**SIZES, "num_local_experts": 4},
    "qwen3_moe": {**SIZES, **HEADS, **EXPERTS},
    "deepseek_v3": {**SIZES, "moe_intermediate_size": 24, "n_routed_experts": 6, "n_shared_experts": 1, "num_experts_per_tok": 2, "kv_lora_rank": 16,
                    "q_lora_rank": 24, "qk_rope_head_dim": 4, "v_head_dim": 8, "qk_nope_head_dim": 8, "first_k_dense_replace": 1},
    "gpt_oss": {**SIZES, **HEADS, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 6},
    # Linear attention, states of a fixed size.
    "qwen3_next": {**SIZES, **HEADS, **EXPERTS, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8,
                   "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4, "shared_expert_intermediate_size": 24,
                   "partial_rotary_factor": 0.5, "full_attention_interval": 2},
    "mamba2": {**SIZES, **HEADS, "num_heads": 8, "state_size": 16, "layer_norm_epsilon": 1e-5, "conv_kernel": 4, "n_groups": 1, "use_bias": False,
               "use_conv_bias": True, "tie_word_embeddings": True, "time_step_limit": [0.0, 1e9], "time_step_rank": "auto"},
    "lfm2": {**SIZES, "norm_eps": 1e-5, "conv_bias": False, "conv_L_cache": 3, "block_dim": 32, "block_multiple_of": 16,
             "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": False, "full_attn_idxs": [1], "block_ff_dim": 64},
    "rwkv7": {**SIZES, **HEADS, "norm_eps": 1e-5, "a_low_rank_dim": 8, "v_low_rank_dim": 8, "gate_low_rank_dim": 8, "decay_low_rank_dim": 8},
}

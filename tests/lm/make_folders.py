#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes what folders.py compares with, by Hugging Face's transformers: folders.json has config.json of small random
models, the shapes of their arrays, and the logits of some positions; and of each family the keys of its configuration
with what they are where a file does not say.

    python3 make_folders.py [NAME ...]   # needs torch and transformers; NAMEs alone are made anew

A model is saved by transformers, its arrays are filled with numbers that follow from their names (folders.py has them
too), config.json is replaced by that of the table, and what transformers then reads from the folder gives the logits.
"""

import copy
import dataclasses
import json
import pathlib
import sys
import tempfile

import safetensors.torch
import torch
import transformers

import folders

SIZES = dict(vocab_size=folders.WORDS, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=False)
WIDE = SIZES | {"head_dim": 16}
EXPERTS = dict(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=24)
GEMMA = SIZES | {"head_dim": 8, "query_pre_attn_scalar": 8, "tie_word_embeddings": True, "num_hidden_layers": 3}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
LISTS = {"short_factor": [1.0, 1.25, 1.5], "long_factor": [1.5, 3.5, 5.5]}


def of(model_type, sizes=None, without=(), **more):
    config = {"model_type": model_type, **(sizes or SIZES), **more}
    return {k: v for k, v in config.items() if k not in without}


# The first ones are compared with llama.cpp, too (tools/lm/llama.py).
MODELS = {
    "llama": of("llama", rope_theta=5e4),
    "qwen2": of("qwen2", rope_theta=1e6),
    "qwen3": of("qwen3", WIDE, rope_theta=1e6, tie_word_embeddings=True),
    "phi3": of("phi3", pad_token_id=0),
    "gemma3": of("gemma3_text", GEMMA, sliding_window=8, sliding_window_pattern=2, rope_local_base_freq=500.0),
    "qwen2_moe": of("qwen2_moe", SIZES | EXPERTS, shared_expert_intermediate_size=40),
    "mixtral": of("mixtral", num_local_experts=4, num_experts_per_tok=2, rope_theta=1e6),
    "gemma2": of("gemma2", GEMMA | {"num_hidden_layers": 2}, sliding_window=8, attn_logit_softcapping=1.5, final_logit_softcapping=4.0),
    # Gates.
    "llama_relu": of("llama", hidden_act="relu"),
    "llama_gelu": of("llama", hidden_act="gelu"),
    "llama_gelu_new": of("llama", hidden_act="gelu_new"),
    "phi3_swish": of("phi3", hidden_act="swish", pad_token_id=0),
    "mixtral_relu": of("mixtral", num_local_experts=4, num_experts_per_tok=2, hidden_act="relu"),
    "gemma_gelu": of("gemma", SIZES | {"head_dim": 8, "tie_word_embeddings": True}, hidden_act="gelu"),
    "gemma3_gelu": of("gemma3_text", GEMMA, hidden_activation="gelu", hidden_act="relu"),
    # Biases.
    "llama_biases": of("llama", attention_bias=True, mlp_bias=True),
    "qwen2_moe_unbiased": of("qwen2_moe", SIZES | EXPERTS, shared_expert_intermediate_size=40, qkv_bias=False),
    "gemma3_biases": of("gemma3_text", GEMMA, attention_bias=True),
    # Bounds.
    "gemma2_uncapped": of("gemma2", GEMMA, attn_logit_softcapping=None, final_logit_softcapping=None),
    "gemma2_capped": of("gemma2", GEMMA, attn_logit_softcapping=0.5),
    "gemma3_capped": of("gemma3_text", GEMMA, final_logit_softcapping=2.0),
    # Frequencies.
    "llama_yarn": of("llama", WIDE, rope_scaling=YARN),
    "llama_yarn_untruncated": of("llama", WIDE, rope_scaling=YARN | {"truncate": False}),
    "llama_yarn_mscale": of("llama", WIDE, rope_scaling=YARN | {"mscale": 2.0, "mscale_all_dim": 0.5}),
    "llama_yarn_betas": of("llama", WIDE, rope_scaling=YARN | {"beta_fast": 4, "beta_slow": 0.5}),
    "llama_yarn_factor": of("llama", WIDE, rope_scaling=YARN | {"attention_factor": 0.75}),
    "llama_yarn_beside": of("llama", WIDE, rope_scaling=YARN, original_max_position_embeddings=64),
    "llama_linear": of("llama", rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 100.0}),
    "llama_two": of("llama", rope_scaling={"type": "linear", "factor": 2.0}, rope_parameters={"rope_type": "default", "rope_theta": 50.0}),
    "llama_partial": of("llama", WIDE, partial_rotary_factor=0.5),
    "qwen3_partial": of("qwen3", WIDE, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}),
    "phi3_partial": of("phi3", partial_rotary_factor=0.75, pad_token_id=0),
    "phi3_long": of("phi3", partial_rotary_factor=0.75, original_max_position_embeddings=16, pad_token_id=0,
                    rope_scaling={"type": "longrope", **LISTS}),
    "phi3_short": of("phi3", rope_scaling={"type": "su", "short_factor": [1.0, 1.25, 1.5, 2.0], "long_factor": [2.0] * 4,
                                                "original_max_position_embeddings": 32}, pad_token_id=0),
    "mixtral_theta": of("mixtral", num_local_experts=4, num_experts_per_tok=2),
    "gemma3_kinds": of("gemma3_text", GEMMA, sliding_window=8, sliding_window_pattern=2, rope_local_base_freq=50.0, rope_parameters={
        "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 700.0}, "sliding_attention": {"rope_theta": 60.0}}),
    "gemma3_scaled": of("gemma3_text", GEMMA, sliding_window=8, rope_theta=900.0, rope_scaling={"rope_type": "linear", "factor": 8.0},
                        layer_types=["full_attention", "sliding_attention", "full_attention"]),
    # Windows.
    "mistral": of("mistral", sliding_window=8),
    "mistral_null": of("mistral", sliding_window=None),
    "qwen2_unused": of("qwen2", sliding_window=8, max_window_layers=1),
    "qwen2_used": of("qwen2", sliding_window=8, max_window_layers=1, use_sliding_window=True),
    "qwen2_types": of("qwen2", sliding_window=8, use_sliding_window=True, layer_types=["sliding_attention", "full_attention"]),
    "qwen2_moe_used": of("qwen2_moe", SIZES | EXPERTS, num_hidden_layers=4, shared_expert_intermediate_size=40, sliding_window=8,
                         max_window_layers=3, use_sliding_window=True),
    "qwen3_moe_used": of("qwen3_moe", WIDE | EXPERTS, sliding_window=8, use_sliding_window=True, max_window_layers=2),
    # Experts.
    "qwen2_moe_normed": of("qwen2_moe", SIZES | EXPERTS, shared_expert_intermediate_size=40, norm_topk_prob=True),
    "qwen3_moe": of("qwen3_moe", WIDE | EXPERTS, norm_topk_prob=True, mlp_only_layers=[0]),
    "qwen3_moe_normed": of("qwen3_moe", WIDE | EXPERTS, norm_topk_prob=True),
    "qwen3_moe_absent": of("qwen3_moe", WIDE | EXPERTS),
    # What is left out.
    "llama_absent": of("llama", without=["num_key_value_heads", "tie_word_embeddings"]),
    "mixtral_absent": of("mixtral", SIZES | {"num_attention_heads": 8}, num_local_experts=4, without=["num_key_value_heads"]),
    "qwen3_absent": of("qwen3", SIZES | {"num_attention_heads": 2, "num_key_value_heads": 1}),
    "gemma_absent": of("gemma", SIZES | {"num_attention_heads": 1, "num_key_value_heads": 1}, without=["tie_word_embeddings"]),
    # Saved by AutoModel: names without "model.".
    "llama_base": of("llama", tie_word_embeddings=True),
    "qwen3_base": of("qwen3", WIDE, tie_word_embeddings=True),
    "gemma3_base": of("gemma3_text", GEMMA),
    "mixtral_base": of("mixtral", num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=True),
}


def make(name):
    config = MODELS[name]
    made = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config)) # it writes into what it reads
    auto = transformers.AutoModel if name.endswith("_base") else transformers.AutoModelForCausalLM
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        auto.from_config(made).save_pretrained(path)
        file = path / "model.safetensors"
        shapes = {key: list(value.shape) for key, value in safetensors.torch.load_file(file).items()}
        file.write_bytes(folders.safetensors(shapes, config["model_type"]))
        (path / "config.json").write_text(json.dumps(config))
        (path / "generation_config.json").unlink(missing_ok=True)
        model = transformers.AutoModelForCausalLM.from_pretrained(path, attn_implementation="eager", dtype=torch.float32).eval()
        with torch.no_grad():
            logits = model(torch.tensor([folders.IDS])).logits[0]
    print(f"{name}: logits of {logits.std():.3f}")
    return {"config": config, "arrays": [" ".join(map(str, [key, *shape])) for key, shape in shapes.items()],
            "rows": {str(row): " ".join(f"{x:.7g}" for x in logits[row].tolist()) for row in folders.ROWS}}


def families():
    """The keys of each family that Tenon reads, and their values where a file has none."""
    found = {}
    base = {f.name for f in dataclasses.fields(transformers.PreTrainedConfig)}
    for family in folders.FAMILIES:
        config = transformers.CONFIG_MAPPING[family]
        found[family] = {"keys": sorted(f.name for f in dataclasses.fields(config)),
                         "absent": {k: v for k, v in config().to_dict().items() if k in
                                    {f.name for f in dataclasses.fields(config)} - base - {"text_config", "vision_config"}}}
    found["generation"] = sorted(transformers.GenerationConfig._get_default_generation_params())  # pylint: disable=protected-access
    return found


def main():
    path = pathlib.Path(__file__).parent / "folders.json"
    chosen = sys.argv[1:] or MODELS
    old = json.loads(path.read_text()) if sys.argv[1:] else {"models": {}}
    models = old["models"] | {name: make(name) for name in chosen}
    all_of = {"transformers": transformers.__version__, "families": families(), "models": {name: models[name] for name in MODELS}}
    path.write_text(json.dumps(all_of, indent=1) + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes what the tests of small random models compare with, by Hugging Face's transformers: NAME.txt has
a model's metadata, the shapes of its weights, and the logits of some positions. Weights and tokens are
numbers that follow from their names: value() and fixture.h make the same ones.

    python3 make_fixtures.py [NAME ...]   # needs torch and transformers; writes beside this file

The files are kept in the repository, so only who changes them needs the packages.
"""

import math
import pathlib
import sys

import numpy
import torch
import transformers

WIDTH, INNER, HEADS, GROUPS, HEAD, WORDS, LAYERS = 16, 24, 4, 2, 8, 32, 2
POSITIONS = 600
# Around the borders of chunks and of the window, and far behind them.
ROWS = [0, 1, 6, 7, 8, 15, 16, 17, 62, 63, 64, 65, 128, 510, 511, 512, 599]
SIZES = dict(vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
             num_attention_heads=HEADS, num_key_value_heads=GROUPS, max_position_embeddings=1024,
             rms_norm_eps=1e-5, attn_implementation="eager")

PARTS = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "ffn_norm", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}
PARTS |= {"mlp.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp", "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
          "mlp.shared_expert.up_proj": "ffn_up_shexp", "mlp.shared_expert.down_proj": "ffn_down_shexp"}
# Of families with norms before and behind each part of a layer.
TWO_NORMS = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
             "post_feedforward_layernorm": "post_ffw_norm"}


def llama(scaling=None, tied=False, head=HEAD):
    rope = {"rope_type": "default", "rope_theta": 10000.0, **(scaling or {})}
    config = transformers.LlamaConfig(**SIZES, head_dim=head, tie_word_embeddings=tied, rope_parameters=rope)
    return transformers.LlamaForCausalLM(config), "llama"


def mistral():
    config = transformers.MistralConfig(**SIZES, head_dim=HEAD, sliding_window=16,
                                        rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    return transformers.MistralForCausalLM(config), "llama"


def qwen2():
    sizes = dict(SIZES, hidden_size=32) # heads have hidden_size / heads elements there
    config = transformers.Qwen2Config(**sizes, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    return transformers.Qwen2ForCausalLM(config), "qwen2"


def qwen3():
    config = transformers.Qwen3Config(**SIZES, head_dim=HEAD, tie_word_embeddings=True,
                                      rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    return transformers.Qwen3ForCausalLM(config), "qwen3"


# Of Gemma: heads of another size than width / heads, and scores scaled by neither.
GEMMA = dict(SIZES, head_dim=HEAD, hidden_activation="gelu_pytorch_tanh")


def gemma():
    config = transformers.GemmaConfig(**SIZES, head_dim=HEAD, hidden_act="gelu_pytorch_tanh", tie_word_embeddings=True,
                                      rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    return transformers.GemmaForCausalLM(config), "gemma"


def gemma2():
    config = transformers.Gemma2Config(**GEMMA | {"num_hidden_layers": 3}, sliding_window=16, query_pre_attn_scalar=6,
                                       attn_logit_softcapping=1.5, final_logit_softcapping=4.0,
                                       rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    return transformers.Gemma2ForCausalLM(config), "gemma2"


def gemma3():
    config = transformers.Gemma3TextConfig(
        **GEMMA | {"num_hidden_layers": 3}, sliding_window=16, query_pre_attn_scalar=6,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})
    return transformers.Gemma3ForCausalLM(config), "gemma3"


def phi3(window=None, part=1.0, original=1024, **more):
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": part}
    if original < 1024 or more:
        pairs = int(HEAD * part) // 2
        rope |= {"rope_type": "longrope", "original_max_position_embeddings": original,
                 "short_factor": [1.0 + i / 4 for i in range(pairs)], "long_factor": [1.5 + i * 2 for i in range(pairs)]}
    # Heads have hidden_size / heads elements.
    sizes = dict(SIZES, hidden_size=32, **more)
    config = transformers.Phi3Config(**sizes, original_max_position_embeddings=original, sliding_window=window,
                                     rope_parameters=rope, pad_token_id=0)
    return transformers.Phi3ForCausalLM(config), "phi3"


EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=32)


def mixtral():
    config = transformers.MixtralConfig(**SIZES | {"intermediate_size": 32}, head_dim=HEAD, num_local_experts=4,
                                        num_experts_per_tok=2, sliding_window=None,
                                        rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    return transformers.MixtralForCausalLM(config), "llama"


def qwen2moe():
    config = transformers.Qwen2MoeConfig(**SIZES | {"hidden_size": 32}, **EXPERTS, num_experts=5, norm_topk_prob=False,
                                         shared_expert_intermediate_size=40, decoder_sparse_step=1,
                                         rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    return transformers.Qwen2MoeForCausalLM(config), "qwen2moe"


def qwen3moe():
    config = transformers.Qwen3MoeConfig(**SIZES, **EXPERTS, num_experts=5, head_dim=HEAD, norm_topk_prob=True,
                                         mlp_only_layers=[0], decoder_sparse_step=1,
                                         rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    return transformers.Qwen3MoeForCausalLM(config), "qwen3moe"


MODELS = {
    "llama": llama,
    "llama_tied": lambda: llama(tied=True),
    "llama_linear": lambda: llama({"rope_type": "linear", "factor": 4.0}),
    "llama3": lambda: llama({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                             "high_freq_factor": 4.0, "original_max_position_embeddings": 128}),
    "llama_yarn": lambda: llama({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}),
    "llama_yarn_factor": lambda: llama({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256,
                                        "attention_factor": 0.75}),
    "mistral": mistral,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "gemma": gemma,
    "gemma2": gemma2,
    "gemma3": gemma3,
    "phi3": lambda: phi3(window=16),
    "phi3_short": lambda: phi3(original=640), # the context of the test
    "phi3_long": lambda: phi3(part=0.75, original=256),
    "mixtral": mixtral,
    "qwen2moe": qwen2moe,
    "qwen3moe": qwen3moe,
}


def numbers(name, count):
    """Whole numbers of 0 .. 2047 that follow from a name, by splitmix64 of its FNV-1a hash."""
    with numpy.errstate(over="ignore"):
        state = numpy.uint64(0xcbf29ce484222325)
        for byte in name.encode():
            state = (state ^ numpy.uint64(byte)) * numpy.uint64(0x100000001b3)
        z = state + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
        z ^= z >> numpy.uint64(31)
    return (z >> numpy.uint64(53)).astype(numpy.int64)


def value(name, shape):
    """A weight. Half floats have all of its values, but for those of norms."""
    drawn = torch.tensor(numbers(name, int(numpy.prod(shape))) - 1024).reshape(shape).float() / 1024
    if "norm" in name:
        return 1 + drawn / 4
    return drawn * 2 if name.startswith("token_embd") else drawn / 2


def halves(weight, heads):
    """Rows in the order of Hugging Face, of those in the order of GGUF's llama, which has the pairs of
    the rotary embedding side by side."""
    shape = weight.shape
    return weight.reshape(heads, shape[0] // heads // 2, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def name_of(name, parts):
    ends = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
            "lm_head.weight": "output.weight"}
    if name in ends:
        return ends[name]
    layer, part = name.removeprefix("model.layers.").split(".", 1)
    part, kind = part.rsplit(".", 1)
    return f"blk.{layer}.{parts[part]}.{kind}"


def fill_experts(name, place, shapes):
    """Sets the matrices of all experts. Those of gate and up, which are one behind the other, have names of their own."""
    layer, part = name.removeprefix("model.layers.").split(".mlp.experts.")
    names = {"gate_up_proj": ["gate", "up"], "down_proj": ["down"]}[part]
    shape = (place.shape[0], place.shape[1] // len(names), place.shape[2])
    for i, kind in enumerate(names):
        new = f"blk.{layer}.ffn_{kind}_exps.weight"
        shapes[new] = shape
        place[:, i * shape[1]:(i + 1) * shape[1]] = value(new, shape)


def fill(model, architecture):
    """Sets the model's weights. Returns their shapes under GGUF's names."""
    shapes, parts = {}, PARTS | (TWO_NORMS if architecture in ("gemma2", "gemma3") else {})
    for name, place in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        if ".mlp.experts." in name:
            fill_experts(name, place, shapes)
            continue
        new = name_of(name, parts)
        shapes[new] = place.shape[-1:] if place.shape[0] == 1 else place.shape
        weight = value(new, place.shape)
        if architecture == "llama" and (".attn_q." in new or ".attn_k." in new):
            weight = halves(weight, HEADS if ".attn_q." in new else GROUPS)
        place.copy_(weight - 1 if architecture.startswith("gemma") and "norm" in new else weight)
    return shapes


def metadata_of(model, architecture):
    config, rope, texts = model.config, model.config.rope_parameters, {}
    head = getattr(config, "head_dim", None) or config.hidden_size // HEADS
    if "sliding_attention" in rope:
        rope, texts = rope["full_attention"], {"rope.freq_base_swa": rope["sliding_attention"]["rope_theta"]}
    texts |= {"block_count": config.num_hidden_layers, "embedding_length": config.hidden_size, "feed_forward_length": INNER,
             "context_length": config.max_position_embeddings, "attention.head_count": HEADS,
             "attention.head_count_kv": GROUPS, "attention.key_length": head, "attention.value_length": head,
             "attention.layer_norm_rms_epsilon": 1e-5,
             "rope.dimension_count": int(head * rope.get("partial_rotary_factor", 1)),
             "rope.freq_base": rope["rope_theta"]}
    if getattr(config, "sliding_window", None) or architecture == "phi3": # whose files say 0
        texts["attention.sliding_window"] = config.sliding_window or 0
    if architecture == "gemma3": # Gemma 2 has it in each second layer by itself
        texts["attention.sliding_window_pattern"] = 2
    if getattr(config, "query_pre_attn_scalar", None):
        texts["attention.scale"] = f"{config.query_pre_attn_scalar ** -0.5:.17g}"
    experts = getattr(config, "num_local_experts", None) or getattr(config, "num_experts", None)
    if experts:
        texts |= {"feed_forward_length": config.intermediate_size, "expert_count": experts,
                  "expert_used_count": config.num_experts_per_tok}
    for theirs, ours in (("moe_intermediate_size", "expert_feed_forward_length"),
                         ("shared_expert_intermediate_size", "expert_shared_feed_forward_length")):
        if getattr(config, theirs, None):
            texts[ours] = getattr(config, theirs)
    for cap in ("attn_logit_softcapping", "final_logit_softcapping"):
        if getattr(config, cap, None):
            texts[cap] = getattr(config, cap)
    if rope["rope_type"] in ("linear", "yarn"):
        texts |= {"rope.scaling.type": rope["rope_type"], "rope.scaling.factor": rope["factor"]}
    if rope["rope_type"] == "yarn" and "attention_factor" in rope: # in GGUF beside YaRN's own
        texts["rope.scaling.attn_factor"] = f"{rope['attention_factor'] / (1 + 0.1 * math.log(rope['factor'])):.17g}"
    if rope["rope_type"] == "longrope":
        texts["rope.scaling.attn_factor"] = f"{model.model.rotary_emb.attention_scaling:.17g}"
        if rope["original_max_position_embeddings"] < POSITIONS: # GGUF's files mostly do not say
            texts["rope.scaling.type"] = "longrope"
    if rope["rope_type"] in ("yarn", "longrope"):
        texts["rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
    return {"general.architecture": architecture, **{f"{architecture}.{k}": str(v) for k, v in texts.items()}}


def make(name):
    model, architecture = MODELS[name]()
    model = model.float().eval()
    with torch.no_grad():
        shapes = fill(model, architecture)
        ids = torch.tensor(numbers("ids", POSITIONS) % WORDS)[None]
        logits = model(ids).logits[0]
    lines = [f"key {key} {text}" for key, text in metadata_of(model, architecture).items()]
    lines += [f"weight {key} {' '.join(map(str, shape))}" for key, shape in shapes.items()]
    rope = model.config.rope_parameters
    if rope.get("rope_type") == "llama3": # the file of such a model has factors
        head = model.config.head_dim
        plain = rope["rope_theta"] ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)
        factors = (plain / model.model.rotary_emb.inv_freq.double()).tolist()
        lines.append("factors rope_freqs " + " ".join(f"{x:.9g}" for x in factors))
    for kind in ("short", "long"):
        if f"{kind}_factor" in rope:
            lines.append(f"factors rope_factors_{kind} " + " ".join(map(str, rope[f"{kind}_factor"])))
    for row in ROWS:
        lines.append(f"row {row}")
        numbers_of_row = [f"{x:.7g}" for x in logits[row].tolist()]
        lines += [" ".join(numbers_of_row[i:i + 8]) for i in range(0, WORDS, 8)]
    path = pathlib.Path(__file__).parent / f"{name}.txt"
    path.write_text("\n".join(lines) + "\n")
    print(path.name, path.stat().st_size, f"logits of {logits.std():.3f}")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or MODELS:
        make(chosen)

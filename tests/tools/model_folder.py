# SPDX-License-Identifier: MIT
"""Folders as Hugging Face has them: config.json, safetensors, tokenizer.json, under GGUF's names and keys."""

import json
import os
import pathlib
import struct

import tap

CONFIG = {"model_type": "llama", "_name_or_path": "acme/Tiny", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
          "vocab_size": 6, "rope_theta": 500000.0, "sliding_window": None, "eos_token_id": [5, 3]}
SHAPES = {"input_layernorm.weight": (8,), "self_attn.q_proj.weight": (8, 8), "self_attn.k_proj.weight": (4, 8),
          "self_attn.v_proj.weight": (4, 8), "self_attn.o_proj.weight": (8, 8), "post_attention_layernorm.weight": (8,),
          "mlp.gate_proj.weight": (16, 8), "mlp.up_proj.weight": (16, 8), "mlp.down_proj.weight": (8, 16)}
OURS = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
WEIGHTS = {"model.embed_tokens.weight": (6, 8), "model.norm.weight": (8,), "lm_head.weight": (6, 8),
           **{f"model.layers.{layer}.{name}": shape for layer in range(2) for name, shape in SHAPES.items()}}
# Bytes as letters: the tokenizer of GPT-2 and those after it.
LETTERS = {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
                                                                   {"type": "ByteLevel", "add_prefix_space": False}]},
           "added_tokens": [{"id": 0, "content": "<|end|>", "special": True}, {"id": 5, "content": "<tag>", "special": False}],
           "post_processor": None, "model": {"type": "BPE", "vocab": {"<|end|>": 0, "a": 1, "b": 2, "ab": 3}, "merges": [["a", "b"]]}}
# Pieces with bytes: that of Llama 2.
SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PIECES = {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, SPACES]}, "pre_tokenizer": None,
          "added_tokens": [{"id": 0, "content": "<unk>", "special": True}, {"id": 1, "content": "<s>", "special": True}],
          "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}]},
          "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "merges": ["a b", "▁ ab"],
                    "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "a": 3, "b": 4, "▁": 5, "ab": 6, "▁ab": 7}}}


def elements_of(name, count):
    return [float(sum(name.encode()) % 19 + i) for i in range(count)]


def safetensors(weights):
    """Weights are shapes, of f32, or (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, weight in weights.items():
        kind, shape, part = weight if isinstance(weight[0], str) else ("F32", weight, None)
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        part = part or struct.pack(f"<{count}f", *elements_of(name, count))
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def folder(name, config=None, weights=None, **files):
    """Makes a folder; `files` by their names with "_" for "."; a text is written as it is."""
    path = pathlib.Path(name)
    path.mkdir()
    parts = {"config.json": CONFIG | (config or {}), **{k.replace("_json", ".json"): v for k, v in files.items()}}
    if weights is None or weights:
        (path / "model.safetensors").write_bytes(safetensors(weights or WEIGHTS))
    for file, value in parts.items():
        (path / file).write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


def show(path):
    return json.loads(tap.tenon("model", "show", path, "--json").stdout)


def flat(values):
    return [v for row in values for v in row] if isinstance(values[0], list) else values


def arrays_have_the_names_of_gguf_and_their_elements():
    path = folder("tiny")
    model = show(path)
    names = {a["name"]: tuple(a["shape"]) for a in model["arrays"]}
    want = {"token_embd.weight": (6, 8), "output_norm.weight": (8,), "output.weight": (6, 8),
            **{f"blk.{layer}.{OURS[name[:-7]]}.weight": shape for layer in range(2) for name, shape in SHAPES.items()}}
    assert names == want, names
    got = tap.values("x", f"x={path}:blk.1.attn_k.weight")[0]
    assert flat(got) == elements_of("model.layers.1.self_attn.k_proj.weight", 32), got
    assert model["architecture"] == "llama" and model["name"] == "Tiny"
    dimensions = {"layers": 2, "width": 8, "feed-forward": 16, "heads": 4, "key-value heads": 2, "head width": 2, "context": 64,
                  "vocabulary": 6, "rope base": 500000.0}
    assert model["dimensions"] == dimensions, model["dimensions"]
    metadata = model["metadata"]
    assert metadata["tenon.rope"] == "halves" and metadata["llama.attention.layer_norm_rms_epsilon"] == 1e-5
    assert "llama.attention.sliding_window" not in metadata and "tokenizer" not in model


def families_have_their_own_keys():
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}
    llama = show(folder("llama3", {"rope_scaling": scaling}))["metadata"]
    for key, value in {"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_context_length": 8192}.items():
        assert llama["llama.rope.scaling." + key] == value, key
    mistral = show(folder("mistral", {"model_type": "mistral", "sliding_window": 16, "head_dim": 4}))
    assert mistral["architecture"] == "llama" and mistral["dimensions"]["window"] == 16, mistral["dimensions"]
    assert mistral["dimensions"]["head width"] == 4
    qwen = show(folder("qwen", {"model_type": "qwen2", "sliding_window": 16, "use_sliding_window": False},
                       {"model.layers.0.self_attn.q_proj.bias": (8,)}))
    assert "window" not in qwen["dimensions"] and qwen["arrays"][0]["name"] == "blk.0.attn_q.bias", qwen
    layers = {"full_attention": {"rope_theta": 1e6, "rope_type": "default"}, "sliding_attention": {"rope_theta": 1e4}}
    text = {k: v for k, v in CONFIG.items() if k not in ("rope_theta", "model_type")}
    config = {"model_type": "gemma3", "text_config": {**text, "rope_parameters": layers, "sliding_window": 16,
                                                      "sliding_window_pattern": 6, "query_pre_attn_scalar": 16}}
    weights = {"language_model.model.layers.0.post_attention_layernorm.weight": (8,), "language_model.model.norm.weight": (8,),
               "language_model.model.layers.0.pre_feedforward_layernorm.weight": (8,), "vision_tower.norm.weight": (8,)}
    gemma = show(folder("gemma", config, weights))
    names = [a["name"] for a in gemma["arrays"]]
    assert names == ["blk.0.post_attention_norm.weight", "output_norm.weight", "blk.0.ffn_norm.weight", "vision_tower.norm.weight"], names
    assert gemma["metadata"]["gemma3.rope.freq_base_swa"] == 1e4 and gemma["metadata"]["gemma3.rope.freq_base"] == 1e6
    assert gemma["metadata"]["gemma3.attention.scale"] == 0.25
    norm = tap.values("x", "x=gemma:output_norm.weight")[0]  # what is in the file is added to 1
    assert norm == [1 + v for v in elements_of("language_model.model.norm.weight", 8)], norm
    vision = tap.values("x", "x=gemma:vision_tower.norm.weight")[0]
    assert vision == elements_of("vision_tower.norm.weight", 8), vision


def what_a_config_says_becomes_the_keys_of_gguf():
    def scaled(**scaling):
        return {"rope_scaling": {"original_max_position_embeddings": 16, "factor": 4.0, **scaling}}
    lists = {"short_factor": [1, 1.5], "long_factor": [2, 3.5]}
    text = {k: v for k, v in CONFIG.items() if k in ("hidden_size", "intermediate_size", "num_hidden_layers")}
    rows = [  # config, and what follows: None is absent
        ({"model_type": "gemma3", "text_config": {**text, "sliding_window": 512, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}},
         {"gemma3.attention.head_count": 8, "gemma3.attention.head_count_kv": 4, "gemma3.attention.key_length": 256,
          "gemma3.attention.sliding_window": 512, "gemma3.rope.freq_base": 1e6, "gemma3.rope.scaling.factor": 8.0,
          "gemma3.context_length": 131072, "gemma3.attention.scale": 1 / 16}),
        ({"model_type": "gemma2", "final_logit_softcapping": None, "layer_types": ["full_attention"] * 2},
         {"gemma2.attn_logit_softcapping": 50.0, "gemma2.final_logit_softcapping": 1e9, "gemma2.attention.sliding_window": 0}),
        ({"model_type": "gemma3_text", "sliding_window": 9, "rope_local_base_freq": 5e3, "rope_parameters": {
            "sliding_attention": {"rope_theta": 6e3}, "full_attention": {"rope_theta": 7e3}}},
         {"gemma3.rope.freq_base_swa": 6e3, "gemma3.rope.freq_base": 7e3}),
        ({"model_type": "qwen3", "sliding_window": 9, "use_sliding_window": True, "layer_types": ["full_attention", "sliding_attention"]},
         {"qwen3.attention.sliding_window_pattern": {"list": 2, "first": [False, True]}}),
        ({"model_type": "qwen2", "sliding_window": 9, "use_sliding_window": True, "max_window_layers": 1},
         {"qwen2.attention.sliding_window_pattern": {"list": 2, "first": [False, True]}}),
        ({"model_type": "gemma3_text", "sliding_window": 9, "sliding_window_pattern": 6}, {"gemma3.attention.sliding_window_pattern": 6}),
        ({"sliding_window": 9, "num_experts": 4, "final_logit_softcapping": 3.0},  # no keys of a llama
         {"llama.attention.sliding_window": None, "llama.expert_count": None, "llama.final_logit_softcapping": None}),
        (scaled(rope_type="yarn"), {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.attn_factor": None}),
        (scaled(rope_type="yarn", attention_factor=0.75), {"llama.rope.scaling.attn_factor": 0.6586868}),
        (scaled(rope_type="yarn", mscale=2.0, mscale_all_dim=1.0),
         {"llama.rope.scaling.attn_factor": (1 + 0.2 * 1.3862944) / (1 + 0.1 * 1.3862944) ** 2}),
        (scaled(rope_type="longrope", **lists), {"llama.rope.scaling.attn_factor": 1.5 ** 0.5}),
        (scaled(rope_type="longrope", attention_factor=1.25, **lists), {"llama.rope.scaling.attn_factor": 1.25}),
        ({"model_type": "phi3", "original_max_position_embeddings": 16, "rope_scaling": {"type": "su", **lists}},
         {"phi3.rope.scaling.type": "longrope", "phi3.rope.scaling.attn_factor": 1.5 ** 0.5,
          "phi3.rope.scaling.original_context_length": 16}),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 5e3, "partial_rotary_factor": 0.5}},
         {"llama.rope.dimension_count": 2, "llama.rope.freq_base": 5e3}),
        ({"model_type": "phi3", "rope_parameters": {"partial_rotary_factor": 0.5}}, {"phi3.rope.dimension_count": 1}),
    ]
    for number, (config, expected) in enumerate(rows):
        metadata = show(folder(f"config{number}", config))["metadata"]
        for key, value in expected.items():
            got = metadata.get(key)
            assert got == value or (isinstance(value, float) and abs(got - value) <= 1e-6 * value), (number, key, got, value)
    assert tap.values("x", "x=config12:rope_factors_long.weight")[0] == [2, 3.5]


EXPERTS = {f"model.layers.0.mlp.experts.{e}.{part}.weight": shape for e in range(2)
           for part, shape in {"gate_proj": (3, 8), "up_proj": (3, 8), "down_proj": (8, 3)}.items()}


def experts_are_one_array():
    parts = {"w1": "gate", "w3": "up", "w2": "down"}
    old = {f"model.layers.0.block_sparse_moe.experts.{e}.{part}.weight": (3, 8) for e in range(2) for part in parts}
    more = {"model.layers.0.mlp.shared_expert_gate.weight": (1, 8), "model.layers.0.mlp.gate.weight": (2, 8)}
    config = {"model_type": "qwen2_moe", "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 3, "norm_topk_prob": False}
    qwen = show(folder("qwen_moe", config, {**EXPERTS, **more}))
    arrays = {a["name"]: tuple(a["shape"]) for a in qwen["arrays"]}
    assert arrays == {"blk.0.ffn_gate_exps.weight": (2, 3, 8), "blk.0.ffn_up_exps.weight": (2, 3, 8), "blk.0.ffn_down_exps.weight": (2, 8, 3),
                      "blk.0.ffn_gate_inp_shexp.weight": (8,), "blk.0.ffn_gate_inp.weight": (2, 8)}, arrays
    for key, value in {"expert_count": 2, "expert_used_count": 1, "expert_feed_forward_length": 3, "expert_weights_norm": False}.items():
        assert qwen["metadata"]["qwen2moe." + key] == value, key
    mixtral = folder("mixtral", {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 2}, old)
    assert show(mixtral)["architecture"] == "llama"
    for part, ours in parts.items():
        got = tap.values("x", f"x={mixtral}:blk.0.ffn_{ours}_exps.weight")[0]
        for e in range(2):
            assert flat(got[e]) == elements_of(f"model.layers.0.block_sparse_moe.experts.{e}.{part}.weight", 24), (part, e, got)


def names_may_lack_the_model_around_them():
    bare = folder("bare", weights={name.removeprefix("model."): shape for name, shape in WEIGHTS.items() if name != "lm_head.weight"})
    told = tap.tenon("model", "show", bare, "--json")
    assert "bare: it has no lm_head, and tie_word_embeddings is not true: logits are made by the matrix of the embedding" in told.stderr, told
    names = {a["name"]: tuple(a["shape"]) for a in json.loads(told.stdout)["arrays"]}
    whole = {a["name"]: tuple(a["shape"]) for a in show(folder("around"))["arrays"]}
    whole.pop("output.weight")
    assert names == whole, names
    tied = folder("tied", {"tie_word_embeddings": True}, {"embed_tokens.weight": (6, 8)})
    assert not tap.tenon("model", "show", tied).stderr
    weights = {"text_model.norm.weight": (8,), "vision_model.post_layernorm.weight": (8,), "vision_model.encoder.layers.3.mlp.fc1.bias": (8,),
               "text_model.layers.1.mlp.up_proj.weight": (16, 8), "connector.modality_projection.proj.weight": (8, 8)}
    parts = {"model_type": "idefics3", "text_config": {k: v for k, v in CONFIG.items() if k != "sliding_window"}, "vision_config": {}}
    assert {a["name"] for a in show(folder("beside", parts, weights))["arrays"]} == {
        "output_norm.weight", "v.post_ln.weight", "v.blk.3.ffn_up.bias", "blk.1.ffn_up.weight", "mm.model.fc.weight"}
    outer = {"model.language_model.norm.weight": (8,), "model.language_model.layers.0.mlp.up_proj.weight": (16, 8)}
    config = {"model_type": "gemma3", "text_config": {k: v for k, v in CONFIG.items() if k in ("hidden_size", "vocab_size")}}
    assert [a["name"] for a in show(folder("outer", config, outer))["arrays"]] == ["output_norm.weight", "blk.0.ffn_up.weight"]


def weights_in_several_files_are_one_model():
    names = list(WEIGHTS)
    path = folder("big", weights={})
    parts = {"a-00001-of-00002.safetensors": names[:9], "a-00002-of-00002.safetensors": names[9:]}
    for file, part in parts.items():
        (path / file).write_bytes(safetensors({n: WEIGHTS[n] for n in part}))
    index = {"weight_map": {n: file for file, part in parts.items() for n in part}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert len(show(path)["arrays"]) == len(WEIGHTS)
    for theirs, ours in {"model.norm.weight": "output_norm.weight", names[-1]: "blk.1.ffn_down.weight"}.items():
        got = tap.values("x", f"x={path}:{ours}")[0]
        assert flat(got) == elements_of(theirs, len(flat(got))), theirs


def tokenizers_become_those_of_gguf():
    letters = show(folder("letters", tokenizer_json=LETTERS, tokenizer_config_json={
        "eos_token": {"content": "<|end|>"}, "chat_template": [{"name": "tool", "template": "no"}, {"name": "default", "template": "{{x}}"}]}))
    assert letters["tokenizer"] == {"model": "gpt2", "pre": "smollm", "tokens": 6, "end": 0, "chat": True}, letters["tokenizer"]
    metadata = letters["metadata"]
    assert metadata["tokenizer.ggml.tokens"] == {"list": 6, "first": ["<|end|>", "a", "b", "ab"]}
    assert metadata["tokenizer.ggml.token_type"] == {"list": 6, "first": [3, 1, 1, 1]}
    assert metadata["tokenizer.ggml.merges"] == {"list": 1, "first": ["a b"]}
    assert metadata["tokenizer.chat_template"] == "{{x}}" and metadata["tokenizer.ggml.add_bos_token"] is False
    pieces = folder("pieces", tokenizer_json=PIECES, tokenizer_config_json={"bos_token": "<s>", "model_max_length": 10**30})
    (pieces / "chat_template.jinja").write_text("{{y}}")
    pieces = show(pieces)
    assert pieces["tokenizer"] == {"model": "llama", "pre": "default", "tokens": 8, "begin": 1, "end": 5, "unknown": 0, "chat": True}, pieces
    metadata = pieces["metadata"]
    assert metadata["tokenizer.chat_template"] == "{{y}}", metadata
    assert metadata["tokenizer.ggml.token_type"]["first"] == [2, 3, 6, 1], metadata
    assert metadata["tokenizer.ggml.scores"] == {"list": 8, "first": [0.0, 0.0, 0.0, 0.0]}, metadata
    assert metadata["tokenizer.ggml.add_space_prefix"] is True and metadata["tokenizer.ggml.add_bos_token"] is True
    assert metadata["tenon.tokenizer.pipeline"] == "prepend replace bytes strip", metadata
    assert metadata["tokenizer.ggml.merges"] == {"list": 2, "first": ["a b", "▁ ab"]}


def what_surrounds_a_text_is_read():
    """The post-processor's tokens are begin and end, unless tokenizer_config.json says otherwise."""
    post = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<tag>"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|end|>"}}]}
    for name, config, want in (("both", {}, (True, True, 5, 0)), ("said", {"add_bos_token": False, "add_eos_token": False}, (False, False, 5, 0)),
                               ("named", {"bos_token": "<tag>", "add_eos_token": False}, (True, False, 5, 0))):
        metadata = show(folder(name, tokenizer_json={**LETTERS, "post_processor": post}, tokenizer_config_json=config))["metadata"]
        got = tuple(metadata[f"tokenizer.ggml.{key}"] for key in ("add_bos_token", "add_eos_token", "bos_token_id", "eos_token_id"))
        assert got == want, (name, got)


MIXTRAL = {"model_type": "mixtral", "num_experts_per_tok": 1}


def tokenizer(**model):
    return {**LETTERS, "model": {**LETTERS["model"], **model}}


def cut(expression, **letters):
    """A pre-tokenizer that cuts by an expression."""
    split = {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, {"type": "ByteLevel", "use_regex": False, **letters}]}


def what_is_wrong_with_a_folder_is_told():
    cases = [
        ({"config": {"model_type": "bert"}}, "config.json: model_type 'bert' is not known (known: gemma, gemma2, gemma3, "),
        ({"config": {"model_type": 7}}, 'config.json: "model_type": expected a text'),
        ({"config": {"hidden_size": None}}, 'config.json: "hidden_size": expected a number from 0 on'),
        ({"config": {"hidden_size": -8}}, 'config.json: "hidden_size": expected a number from 0 on'),
        ({"config": {"num_attention_heads": 0}}, 'config.json: "num_attention_heads": expected a number from 1 on'),
        ({"config": {"head_dim": 2**40}}, 'config.json: "head_dim": expected a number up to 2^31 - 1'),
        ({"config": {"model_type": "phi3", "partial_rotary_factor": 2}}, 'config.json: "partial_rotary_factor": expected a number above 0 and up to 1'),
        ({"config": {"rms_norm_eps": "x"}}, 'config.json: "rms_norm_eps": expected a number'),
        ({"config": {"rope_theta": "x"}}, 'config.json: "rope_theta": expected a number'),
        ({"config": {"model_type": "mistral", "sliding_window": -1}}, 'config.json: "sliding_window": expected a number from 1 on'),
        ({"config": {"model_type": "gemma2", "sliding_window": 9, "layer_types": ["chunked"]}}, '"layer_types": expected full_attention or sliding_attention'),
        ({"config": {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1, "num_hidden_layers": 2**40}},
         '"num_hidden_layers": expected at most 65536'),
        ({"config": {"rope_scaling": {"type": "yarn", "factor": -1}}}, '"rope_scaling": expected a factor, and positions'),
        ({"config": {"rope_scaling": {"type": "longrope", "factor": 2}, "max_position_embeddings": 1}}, '"rope_scaling": expected a factor, and positions'),
        ({"config": {"rope_scaling": {"type": "longrope", "factor": 2, "original_max_position_embeddings": 9}}},
         '"short_factor": expected a list of numbers'),
        ({"config": {"rope_scaling": {"type": "longrope", "factor": 2, "original_max_position_embeddings": 9,
                                      "short_factor": [1, "x"], "long_factor": [1]}}}, 'factor 1 of "rope_scaling": expected a number above 0'),
        ({"config": {**MIXTRAL, "num_experts": 1}, "weights": EXPERTS}, "expected a matrix of floats, of 1 experts as config.json says"),
        ({"config": {**MIXTRAL, "num_experts": 3}, "weights": EXPERTS}, "expert 2 of 3 is missing in blk.0.ffn_gate_exps.weight"),
        ({"config": {**MIXTRAL, "num_experts": 2}, "weights": EXPERTS | {"model.layers.0.mlp.experts.1.up_proj.weight": (3, 9)}},
         "experts differ in shape or dtype"),
        ({"config": {**MIXTRAL, "num_experts": 2}, "weights": EXPERTS | {"model.layers.0.block_sparse_moe.experts.1.w3.weight": (3, 8)}},
         "there is another of the same name"),
        ({"config": {**MIXTRAL, "num_experts": 10**6}}, '"num_experts": expected at most 65536'),
        # What Tenon does not run.
        ({"config": {"hidden_act": "relu2"}}, """"hidden_act": 'relu2' is not known, expected silu, relu, gelu or gelu_pytorch_tanh"""),
        ({"config": {"hidden_act": 3}}, """"hidden_act": '(no text)' is not known"""),
        ({"config": {"model_type": "gemma3_text", "hidden_activation": "mish"}}, """"hidden_activation": 'mish' is not known"""),
        ({"config": {"model_type": "gemma", "hidden_activation": "relu"}}, '"hidden_activation" is relu, which Tenon does not run: '
         'expected gelu_pytorch_tanh or null'),
        *[({"config": {"model_type": family, "use_bidirectional_attention": True}}, '"use_bidirectional_attention" is true, which Tenon does not '
           "run: expected false or null") for family in ("gemma", "gemma2", "gemma3_text")],
        ({"config": {"model_type": "gemma3_text", "attn_logit_softcapping": 5.0}}, '"attn_logit_softcapping" is 5, which Tenon does not run: '
         "expected null"),
        ({"config": {"model_type": "gemma2", "sliding_window": None}}, '"layer_types": expected full_attention alone'),
        ({"config": {"model_type": "gemma2", "attn_logit_softcapping": 0}}, '"attn_logit_softcapping": expected a number above 0, or null'),
        *[({"config": {"rope_scaling": {kind: name, "factor": 2.0}}}, f"is of type '{name}', which Tenon does not run: expected default, linear")
          for kind, name in (("type", "dynamic"), ("rope_type", "dynamic"), ("rope_type", "proportional"))],
        ({"config": {"rope_parameters": {"rope_type": "default", "mrope_section": [1, 1]}}}, '"mrope_section" is [...], which'),
        ({"config": {"rope_scaling": {"type": "linear"}}}, '"rope_scaling": expected a factor, and what else its type needs'),
        ({"config": {"rope_scaling": {"type": "llama3", "factor": 2.0}}}, '"rope_scaling": expected a factor, and what else its type needs'),
        ({"config": {"rope_scaling": {"type": "linear", "factor": 2.0}, "partial_rotary_factor": 0.5}},
         '"partial_rotary_factor": expected 1 beside a rope_scaling'),
        ({"config": {"rope_scaling": 3}}, '"rope_scaling": expected an object'),
        ({"config": {"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}}, '"rope_parameters": expected the same numbers for all layers'),
        ({"config": {"model_type": "gemma3_text", "rope_parameters": {"rope_theta": 1e4}}}, "expected full_attention and sliding_attention within"),
        ({"config": {"model_type": "gemma3_text", "rope_parameters": {"sliding_attention": {"rope_type": "linear"}}}}, "expected the rope_type default"),
        *[({"config": {"quantization_config": {"quant_method": name, "bits": 4}}}, f"its weights are quantised by '{name}', which Tenon does not read")
          for name in ("awq", "gptq", "fp8", "bitsandbytes")],
        ({"config": {"model_type": "qwen2", "layer_types": ["sliding_attention"] * 2, "sliding_window": 9}},
         '"layer_types": expected full_attention alone, as there is no sliding_window'),
        ({"config": {"model_type": "idefics3", "text_config": {"model_type": "qwen2"}}}, "\"text_config\": model_type 'qwen2', expected one of"),
        ({"config": {"model_type": "idefics3", "text_config": {}, "vision_config": {"num_channels": 1}}}, '"num_channels" is 1, which'),
        ({"generation_config_json": b"["}, "generation_config.json: line 1", {"tokenizer_json": LETTERS}),
        ({"config_json": b"{"}, "config.json: line 1: "),
        ({"config_json": b"[]"}, "config.json: expected a JSON object"),
        ({"weights": {}}, "it has neither model.safetensors nor model.safetensors.index.json"),
        ({"weights": {}, "model.safetensors.index_json": {}}, 'model.safetensors.index.json: expected an object "weight_map"'),
        ({"weights": {}, "model.safetensors.index_json": {"weight_map": {"a": 1}}}, "'a': expected a file's name"),
        ({"weights": {}, "model.safetensors.index_json": {"weight_map": {"a": "../x"}}}, "it names the file '../x', expected one of"),
        ({"weights": {}, "model.safetensors.index_json": {"weight_map": {"a": "x"}}}, "x: No such file"),
        ({"weights": {"model.norm.weight": (2,), "language_model.model.norm.weight": (2,)}}, "two arrays named 'output_norm.weight'"),
        ({"weights": {"a" * 600: (2,)}}, "is too long"),
        ({"tokenizer_json": tokenizer(vocab={"a": 10**9})}, "a token has no number, or one far behind the others"),
        ({"tokenizer_json": tokenizer(vocab={"a": "x"})}, "a token has no number"),
        ({"tokenizer_json": tokenizer(vocab={"a": 1, "b": 1})}, "two tokens have the same number"),
        ({"tokenizer_json": {**LETTERS, "added_tokens": [{"id": 0}]}}, "a token has no number"),
        ({"tokenizer_json": tokenizer(merges=[["a"]])}, "a merge is no pair of texts"),
        ({"tokenizer_json": tokenizer(merges=["ab"])}, "a merge is no pair of texts"),
        ({"tokenizer_json": {**PIECES, "model": {**PIECES["model"], "merges": ["b b"]}}}, "a merge makes what is no token"),
        ({"tokenizer_json": {**PIECES, "model": {**PIECES["model"], "merges": ["a " + "b" * 600]}}}, "a piece of over 511 bytes"),
        ({"tokenizer_json": tokenizer(merges=[["a b", "a"]])}, "a merge is no pair of texts"),
        ({"tokenizer_json": tokenizer(dropout=0.1)}, "dropout: 'above 0', expected none"),
        ({"tokenizer_json": tokenizer(end_of_word_suffix="</w>")}, "end_of_word_suffix: '</w>', expected none"),
        ({"tokenizer_json": {**LETTERS, "normalizer": {"type": "Lowercase"}}}, "normalizer: 'Lowercase', expected one of NFC, NFD"),
        ({"tokenizer_json": {**LETTERS, "normalizer": {"type": "Sequence", "normalizers": [SPACES, {"type": "NFC"}]}}}, "normalizer: 'NFC', expected"),
        ({"tokenizer_json": {**LETTERS, "pre_tokenizer": cut(r"\p{L}+|\s+")}}, "expected one of the known: that of GPT-2, Llama 3, Qwen2"),
        ({"tokenizer_json": {**LETTERS, "pre_tokenizer": {"type": "Whitespace"}}}, "expected a step of a pre-tokenizer that is known"),
        ({"tokenizer_json": {**LETTERS, "pre_tokenizer": cut("x", add_prefix_space=True)}}, "pre_tokenizer: '{\"type\":\"ByteLevel\""),
        ({"tokenizer_json": {**LETTERS, "decoder": {"type": "WordPiece"}}}, "decoder: 'WordPiece', expected ByteLevel"),
        ({"tokenizer_json": {**PIECES, "decoder": {"type": "BPEDecoder"}}}, "decoder: 'BPEDecoder', expected Metaspace, or"),
        ({"tokenizer_json": {**PIECES, "normalizer": None}}, "pre_tokenizer: 'none', expected one of the known"),
        ({"tokenizer_json": {**LETTERS, "post_processor": {"type": "BertProcessing"}}}, "post_processor: 'BertProcessing', expected ByteLevel"),
        ({"tokenizer_json": {**LETTERS, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": t}} for t in "ab"]}}},
         "at most one token in front of a text"),
        ({"tokenizer_json": {**LETTERS, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<no>"}}]}}},
         "the post-processor adds what is no token"),
        ({"tokenizer_json": {**LETTERS, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<tag>"}}]}},
          "tokenizer_config_json": {"bos_token": "<|end|>"}}, "post_processor: '<tag>', expected the bos_token, '<|end|>', or nothing"),
        ({"tokenizer_json": b"\xff"}, "tokenizer.json: line "),
    ]
    for number, (parts, says, *more) in enumerate(cases):
        path = folder(f"bad{number}", **parts, **(more[0] if more else {}))
        told = tap.refused("model", "show", path, saying=f"{path}").stderr
        assert says in told, (parts, says, told)
    pathlib.Path("bad").mkdir()
    tap.refused("model", "show", "bad", saying="bad: no installed plugin provides tn.format/1 for folder (by a file in it)")
    wrong = folder("wrong", weights={})
    (wrong / "x").write_bytes(safetensors({"b": (2,)}))
    (wrong / "model.safetensors.index.json").write_text('{"weight_map": {"a": "x"}}')
    tap.refused("model", "show", wrong, saying="says that x holds 'a', and it does not")


def every_cut_of_a_file_is_told():
    files = {"config.json": None, "tokenizer.json": LETTERS, "tokenizer_config.json": {"eos_token": "<|end|>"},
             "model.safetensors": None}
    path = folder("cut", tokenizer_json=LETTERS, tokenizer_config_json=files["tokenizer_config.json"])
    for name in files:
        whole = (path / name).read_bytes()
        for size in range(0, len(whole) - 1, max(1, len(whole) // 9)):
            (path / name).write_bytes(whole[:size])
            tap.refused("model", "show", path, saying="cut/" + name)
        (path / name).write_bytes(whole)
    assert os.path.exists(path) and show(path)["arrays"]


GATE = "model.layers.0.mlp.gate_proj."
# Of MLX's weights: bits, elements of a group, dtype of the scales, and how they are listed.
PACKED = [(4, 32, "F16", "q4_1"), (4, 64, "F16", "q4_1"), (4, 64, "BF16", "q4_1"), (2, 32, "F16", "q4_1"), (3, 64, "F16", "q4_1"),
          (5, 32, "F16", "q5_1"), (6, 32, "BF16", "f32"), (8, 64, "F16", "f32"), (4, 32, "F32", "f32"), (4, 16, "F16", "f32")]
NIBBLES = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]


def number(kind, value):
    wide = struct.pack("<f", value)
    return {"F32": wide, "BF16": wide[2:], "F16": struct.pack("<e", value)}[kind]


def bits_of(fractions, bits):
    return sum(q << i * bits for i, q in enumerate(fractions)).to_bytes(len(fractions) * bits // 8, "little")


def packed(bits, group, kind, rows=3, columns=64):
    """The three arrays of a weight, and what it stands for."""
    fractions = [[(row * 37 + i * i * 5 + i) % 2**bits for i in range(columns)] for row in range(rows)]
    count = columns // group
    scales = [[(1 + row + g) / 64 for g in range(count)] for row in range(rows)]
    biases = [[-(row + 3 * g) / 8 for g in range(count)] for row in range(rows)]
    arrays = {GATE + "weight": ("U32", (rows, columns * bits // 32), b"".join(bits_of(f, bits) for f in fractions)),
              GATE + "scales": (kind, (rows, count), b"".join(number(kind, v) for row in scales for v in row)),
              GATE + "biases": (kind, (rows, count), b"".join(number(kind, v) for row in biases for v in row))}
    want = [[scales[row][i // group] * q + biases[row][i // group] for i, q in enumerate(fractions[row])] for row in range(rows)]
    return arrays, want


def weights_of_few_bits_are_blocks():
    for bits, group, kind, listed in PACKED:
        arrays, want = packed(bits, group, kind)
        path = folder(f"mlx-{bits}-{group}-{kind}", {"quantization": {"group_size": group, "bits": bits}},
                      {**arrays, "model.norm.weight": (8,)})
        got = {a["name"]: (a["format"], a["shape"]) for a in show(path)["arrays"]}
        assert got == {"blk.0.ffn_gate.weight": (listed, [3, 64]), "output_norm.weight": ("f32", [8])}, (path, got)
        tap.tenon("model", "convert", path, "mlx.gguf", "--type", "f32")
        assert tap.values("x", "x=mlx.gguf:blk.0.ffn_gate.weight")[0] == want, path
    own = {"quantization": {"group_size": 32, "bits": 8, GATE[:-1]: {"group_size": 64, "bits": 4}}}  # a layer's own
    assert show(folder("own", own, packed(4, 64, "F16")[0]))["arrays"][0]["format"] == "q4_1"
    nibbles = [i * 7 % 16 for i in range(64)]
    floats = {GATE + "weight": ("U32", (1, 8), bits_of(nibbles, 4)), GATE + "scales": ("U8", (1, 2), bytes([126, 130]))}
    path = folder("mxfp4", {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}, floats)
    assert show(path)["arrays"][0]["format"] == "mxfp4"
    tap.tenon("model", "convert", path, "mlx.gguf", "--type", "f32")
    got = tap.values("x", "x=mlx.gguf:blk.0.ffn_gate.weight")[0]
    assert got == [[NIBBLES[q] * (0.5 if i < 32 else 8) for i, q in enumerate(nibbles)]], got
    good = packed(4, 64, "F16")[0]
    for name, (numbers, change, says) in {
            "no-numbers": ({}, {}, "expected a group_size from 1 on, and 2 to 6 or 8 bits"),
            "seven": ({"group_size": 64, "bits": 7}, {}, "expected a group_size from 1 on, and 2 to 6 or 8 bits"),
            "group": ({"group_size": 32, "bits": 4}, {}, "its scales and biases do not fit it"),
            "biases": ({"group_size": 64, "bits": 4}, {GATE + "biases": ("F16", (1, 1), bytes(2))}, "do not fit it"),
            "none": ({"group_size": 64, "bits": 4}, {GATE + "biases": None}, "do not fit it")}.items():
        weights = {k: v for k, v in {**good, **change}.items() if v}
        tap.refused("model", "show", folder("bad-" + name, {"quantization": numbers}, weights), saying=says)


def rows_of_pairs(rows, heads):
    """Rows in GGUF's order: the two that are turned together beside each other."""
    head = len(rows) // heads
    return [rows[h * head + i % 2 * (head // 2) + i // 2] for h in range(heads) for i in range(head)]


def a_folder_becomes_a_file_of_gguf():
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}
    path = folder("whole", {"rope_scaling": scaling, "head_dim": 4, "num_attention_heads": 2, "num_key_value_heads": 1},
                  tokenizer_json=LETTERS, tokenizer_config_json={"eos_token": "<|end|>", "chat_template": "{{x}}"})
    told = tap.tenon("model", "convert", path, "whole.gguf")
    assert not told.stderr, told.stderr
    theirs, model = show(path), show("whole.gguf")
    of = {a["name"]: (a["format"], tuple(a["shape"])) for a in model["arrays"]}
    assert of.pop("rope_freqs.weight") == ("f32", (2,)) and of == {a["name"]: (a["format"], tuple(a["shape"])) for a in theirs["arrays"]}
    for name, heads in {"blk.1.attn_q": 2, "blk.1.attn_k": 1, "blk.1.attn_v": 0}.items():
        want = tap.values("x", f"x={path}:{name}.weight")[0]
        got = tap.values("x", f"x=whole.gguf:{name}.weight")[0]
        assert got == (rows_of_pairs(want, heads) if heads else want) and (not heads or got != want), name
    factors = tap.values("x", "x=whole.gguf:rope_freqs.weight")[0]
    assert factors[0] == 1 and abs(factors[1] - 2.694530) < 1e-5, factors
    metadata = {k: v for k, v in theirs["metadata"].items() if ".rope.scaling." not in k and k != "tenon.rope"}
    metadata["llama.attention.layer_norm_rms_epsilon"] = struct.unpack("<f", struct.pack("<f", 1e-5))[0]
    got = model["metadata"]
    assert got.pop("general.file_type") == 0 and got.pop("general.quantization_version") == 2
    assert got == metadata, (got, metadata)
    assert "has no tokenizer that can be read" in tap.tenon("model", "convert", folder("mute"), "mute.gguf").stderr
    told = tap.tenon("model", "convert", folder("many", tokenizer_json=PIECES), "many.gguf").stderr
    assert "note: token_embd.weight has 6 rows, and the tokenizer 8 tokens: llama.cpp opens no such file" in told, told
    qwen = folder("other", {"model_type": "qwen2"})  # in halves there as here
    tap.tenon("model", "quantize", qwen, "qwen.gguf", "--format", "q8_0")  # rows of 8: none has blocks
    assert tap.values("x", "x=qwen.gguf:blk.1.attn_q.weight") == tap.values("x", f"x={qwen}:blk.1.attn_q.weight")
    wrong = folder("wrong", {"num_attention_heads": 3, "head_dim": 4})
    tap.refused("model", "convert", wrong, "wrong.gguf", saying="attn_q.weight': 8 rows, expected those of 3 heads of 4 or more")


tap.run([a_folder_becomes_a_file_of_gguf, weights_of_few_bits_are_blocks,
         arrays_have_the_names_of_gguf_and_their_elements, families_have_their_own_keys,
         what_a_config_says_becomes_the_keys_of_gguf, experts_are_one_array, names_may_lack_the_model_around_them,
         weights_in_several_files_are_one_model, tokenizers_become_those_of_gguf, what_surrounds_a_text_is_read,
         what_is_wrong_with_a_folder_is_told,
         every_cut_of_a_file_is_told])

# SPDX-License-Identifier: MIT
"""Folders of Hugging Face, small and random, and the files of GGUF that they become: their logits are those of
transformers (folders.json, which make_folders.py makes).

    folders.py TENON PLUGINS LIBRARY
"""

import ctypes
import json
import math
import os
import pathlib
import re
import struct
import sys

import numpy

WORDS, TOKENS = 40, 32  # rows of the embedding, and of them those that are tokens
POSITIONS = 24
ROWS = [0, 7, 8, 16, 23]
FAMILIES = ["llama", "mistral", "mixtral", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text",
            "gemma3", "idefics3", "smolvlm"]
SIX = ["llama", "qwen2", "qwen3", "phi3", "gemma3", "qwen2_moe"]


def numbers(name, count):
    """Whole numbers of 0 .. 2047 that follow from a name, by splitmix64 of its FNV-1a hash, as make_fixtures.py has them."""
    with numpy.errstate(over="ignore"):
        state = numpy.uint64(0xcbf29ce484222325)
        for byte in name.encode():
            state = (state ^ numpy.uint64(byte)) * numpy.uint64(0x100000001b3)
        z = state + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
    return ((z ^ (z >> numpy.uint64(31))) >> numpy.uint64(53)).astype(numpy.int64)


IDS = (numbers("ids", POSITIONS) % TOKENS).tolist()


def values(name, shape, family):
    """Elements of an array: all of them are half floats, but those of norms."""
    drawn = (numbers(name, math.prod(shape)) - 1024) / 1024
    if "norm" in name:  # of Gemma what is added to 1
        drawn = drawn / 4 + (not family.startswith("gemma"))
    elif "embed" not in name:
        drawn = drawn / 2
    return drawn.astype("<f4").tobytes()


def safetensors(shapes, family):
    header, data, at = {}, [], 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        data.append(values(name, shape, family))
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(data)


# Letters, of which two are merged; the last one ends a text.
LETTERS = [chr(ord("a") + i) for i in range(26)] + ["\u0120", "\u010a", "ab", ".", ",", "<end>"]
TOKENIZER = {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "post_processor": None,
             "added_tokens": [{"id": TOKENS - 1, "content": "<end>", "special": True}],
             "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(LETTERS[:-1])}, "merges": [["a", "b"]]}}
# Pieces, as Llama 2's and Gemma's.
PIECES = ["<unk>", "<s>", "</s>", "<0x0A>", "\u2581"] + LETTERS[:26] + ["ab"]
PIECES = {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                                                            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
          "pre_tokenizer": None, "post_processor": None,
          "added_tokens": [{"id": i, "content": PIECES[i], "special": True} for i in range(3)],
          "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "merges": ["a b"], "vocab": {t: i for i, t in enumerate(PIECES)}}}
WITH_PIECES = ("phi3", "mixtral", "gemma", "gemma2", "gemma3_text")


LIBRARY = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else "libtenon-lm.so.0"


def known():
    return json.loads((pathlib.Path(__file__).parent / "folders.json").read_text())


def write(path, model, **files):
    """Makes a folder of one of known()["models"]."""
    path.mkdir()
    shapes = {name: list(map(int, shape)) for name, *shape in (line.split() for line in model["arrays"])}
    (path / "model.safetensors").write_bytes(safetensors(shapes, model["config"]["model_type"]))
    has_pieces = model["config"]["model_type"] in WITH_PIECES
    parts = {"config": model["config"], "tokenizer": PIECES if has_pieces else TOKENIZER,
             "tokenizer_config": {"eos_token": "</s>" if has_pieces else "<end>"}, **files}
    for name, value in parts.items():
        (path / f"{name}.json").write_text(json.dumps(value))
    return path


class Options(ctypes.Structure):  # tn_lm_options
    _fields_ = [("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("context", ctypes.c_int64), ("cache", ctypes.c_char_p),
                ("sequences", ctypes.c_int64), ("split", ctypes.c_char_p)]


class Model:
    """A model, by libtenon-lm."""

    def __init__(self, library, path):
        self.lib, core = ctypes.CDLL(library), ctypes.CDLL("libtenon.so.0")
        self.lib.tn_lm_error.restype = ctypes.c_char_p
        self.core, self.runtime, self.model, self.sequence = core, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        assert core.tn_runtime_open(None, ctypes.byref(self.runtime)) == 0
        options = Options(ctypes.sizeof(Options), 0, 64, b"f32", 0, None)
        self.must(self.lib.tn_lm_open(self.runtime, str(path).encode(), ctypes.byref(options), ctypes.byref(self.model)))
        self.must(self.lib.tn_lm_sequence_open(self.model, ctypes.byref(self.sequence)))

    def must(self, status):
        assert status == 0, self.lib.tn_lm_error().decode()

    def logits(self, ids):
        row, given = ctypes.c_float * WORDS, (ctypes.c_int32 * len(ids))(*ids)
        out = (row * len(ids))()
        self.must(self.lib.tn_lm_infer(self.sequence, given, ctypes.c_int64(len(ids)), 1, out))
        return [list(r) for r in out]

    def is_end(self, token):
        return bool(self.lib.tn_lm_is_end(self.model, ctypes.c_int32(token)))

    def close(self):
        self.lib.tn_lm_sequence_close(self.sequence)
        self.lib.tn_lm_close(self.model)
        self.core.tn_runtime_close(self.runtime)


def opened(path, use):
    model = Model(LIBRARY, path)
    try:
        return use(model)
    finally:
        model.close()


def far(got, model):
    """How far logits are from those of transformers, at most."""
    rows = {int(row): list(map(float, text.split())) for row, text in model["rows"].items()}
    return max(abs(x - y) for row, want in rows.items() for x, y in zip(got[row], want))


def logits_of_folders_are_those_of_transformers():
    for name, model in known()["models"].items():
        path = write(pathlib.Path(name), model)
        apart = far(opened(path, lambda m: m.logits(IDS)), model)
        assert apart <= 2e-4, (name, apart)


# Keys of files that other readers leave out.
OWN = {**{name: {"hidden_activation"} for name in ("llama_relu", "llama_gelu", "llama_gelu_new", "mixtral_relu", "gemma3_gelu")},
       "llama_yarn_untruncated": {"rope.scaling.yarn_truncate"},
       "llama_yarn_betas": {"rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"},
       **{name: {"expert_weights_norm"} for name in ("qwen2_moe_normed", "qwen3_moe_absent")},
       **{name: {"attention.sliding_window"} for name in ("mistral", "qwen2_used", "qwen2_types", "qwen2_moe_used")},
       "qwen3_moe_used": {"expert_weights_norm", "attention.sliding_window"}}


def files_of_gguf_have_the_logits_of_their_folders():
    for name, model in known()["models"].items():
        path = write(pathlib.Path(name), model)
        file = path.with_suffix(".gguf")
        told = tap.tenon("model", "convert", path, file).stderr
        assert set(re.findall(r"Tenon reads \w+\.([^ ]+) in", told)) == OWN.get(name, set()), (name, told)
        apart = far(opened(file, lambda m: m.logits(IDS)), model)
        assert apart <= 2e-4, (name, apart)
        if name not in SIX:
            continue
        shown = json.loads(tap.tenon("model", "show", file, "--json").stdout)
        rows = {a["name"]: a["shape"][0] for a in shown["arrays"]}["token_embd.weight"]
        assert rows == WORDS == shown["metadata"]["tokenizer.ggml.tokens"]["list"], (name, rows)


def what_fills_up_an_embedding_is_no_text():
    path = write(pathlib.Path("padded"), known()["models"]["llama"])
    tap.tenon("model", "convert", path, "padded.gguf")
    data = pathlib.Path("padded.gguf").read_bytes()
    for token in range(TOKENS, WORDS):
        assert f"[PAD{token}]".encode() in data, token
    kinds = data[data.index(b"tokenizer.ggml.token_type") + 25:]
    kinds = struct.unpack_from(f"<{WORDS}i", kinds, 16)
    assert kinds == (1,) * (TOKENS - 1) + (3,) + (5,) * (WORDS - TOKENS), kinds
    bias = ",".join(f"{i}=999" for i in range(TOKENS, WORDS))  # what it writes is none of the tokens
    for model in path, "padded.gguf":
        got = json.loads(tap.tenon("generate", model, "abc", "--tokens", "5", "--json", "--bias", bias).stdout)
        assert len(got["tokens"]) == 5 and all(t["id"] >= TOKENS for t in got["tokens"]) and got["text"] == "", got


def all_tokens_that_end_a_text_end_it():
    base = known()["models"]["llama"]
    for number, (config, files, ends) in enumerate([
            ({}, {}, []),
            ({"eos_token_id": 3}, {}, [3]),
            ({"eos_token_id": [3, 5]}, {}, [3, 5]),
            ({"eos_token_id": [3]}, {"generation_config": {"eos_token_id": [5, 3, 7, 99, -1]}}, [3, 5, 7]),
            ({}, {"generation_config": {"eos_token_id": 6}}, [6]),
            ({"eos_token_id": [*range(0, 26)] * 9}, {}, [*range(0, 26)])]):
        path = write(pathlib.Path(f"ends{number}"), {**base, "config": {**base["config"], **config}}, **files)
        tap.tenon("model", "convert", path, path.with_suffix(".gguf"))
        for file in path, path.with_suffix(".gguf"):
            got = opened(file, lambda m: [i for i in range(TOKENS) if m.is_end(i)])
            assert got == ends + [TOKENS - 1], (number, file, got)


def shown_of(name, config, arrays):
    path = pathlib.Path(name)
    write(path, {"config": config, "arrays": arrays})
    done = tap.tenon("model", "show", path, "--json")
    return json.loads(done.stdout)["metadata"], done.stderr


# Of the models around one of language: what stands within them.
WITHIN = {"gemma3": {"text_config": {"model_type": "gemma3_text"}}, "idefics3": {"text_config": {"model_type": "llama"}, "vision_config": {}},
          "smolvlm": {"text_config": {"model_type": "llama"}, "vision_config": {}}}
EMBEDDING = ["model.embed_tokens.weight 40 32", "lm_head.weight 40 32"]


def what_a_config_leaves_out_is_as_transformers_has_it():
    for family in FAMILIES:
        keys = known()["families"][family]
        config = {"model_type": family, **WITHIN.get(family, {})}
        short, told = shown_of("short_" + family, config, EMBEDDING)
        assert not told, told
        long, told = shown_of("long_" + family, {**config, **keys["absent"], "layer_types": None}, EMBEDDING)
        assert not told, told
        short, long = ({k: v for k, v in m.items() if not k.endswith("vocab_size") and "tokenizer" not in k} for m in (short, long))
        assert short == long, (family, [(k, short.get(k), long.get(k)) for k in sorted(set(short) | set(long)) if short.get(k) != long.get(k)])


def keys_of_a_config_are_known_or_told_once():
    for family in FAMILIES:
        everything = known()["families"]
        keys = everything[family]["keys"] + everything["generation"]
        config = {**{k: None for k in keys}, "model_type": family, **everything[family]["absent"], **WITHIN.get(family, {})}
        config |= {k: 1 for k in keys if config[k] is None and k in everything["generation"] + ["id2label", "architectures", "dtype"]}
        assert shown_of("all_" + family, config, EMBEDDING)[1] == "", family
        told = shown_of("more_" + family, {**config, "acme_key": 1, "acme_null": None}, EMBEDDING)[1]
        assert re.fullmatch(r'.*config.json: Tenon does not know 1 of its keys, and leaves them out: "acme_key"\n', told), told
    many = shown_of("many", {"model_type": "llama", **{f"acme_{i}_{'x' * 40}": i for i in range(900)}}, EMBEDDING)[1]
    assert "does not know 900 of its keys" in many and len(many) < 600, many


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
    import tap
    tap.run([logits_of_folders_are_those_of_transformers, files_of_gguf_have_the_logits_of_their_folders,
             what_fills_up_an_embedding_is_no_text, all_tokens_that_end_a_text_end_it, what_a_config_leaves_out_is_as_transformers_has_it,
             keys_of_a_config_are_known_or_told_once])

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens files of GGUF that `tenon model convert` writes by llama.cpp, and compares logits: those of llama.cpp, of Tenon,
and of transformers, where the models are from (tests/lm/folders.py).

    PYTHON llama.py TENON [--library libtenon-lm.so.0] [NAME ...]

PYTHON has llama-cpp-python and numpy. TENON_PLUGIN_PATH and LD_LIBRARY_PATH are needed where Tenon is not installed.
Fails where llama.cpp refuses a file, or logits are further apart than 1e-4; of Gemma, whose GELU llama.cpp reads from a table
of 16-bit floats, than 1e-2.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import llama_cpp.llama_cpp as llama
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "lm"))
import folders  # noqa: E402 pylint: disable=wrong-import-position

MOST, MOST_OF_GEMMA = 1e-4, 1e-2
# The six architectures, and other models of folders.json that llama.cpp computes alike. It has one activation for each
# architecture, attends to all positions but in Gemma's, and rounds the ends of YaRN's ramp.
NAMES = folders.SIX + ["mixtral", "gemma2", "gemma_gelu", "gemma2_capped", "gemma2_uncapped", "gemma3_capped", "gemma3_kinds", "gemma3_scaled",
                       "llama_yarn", "llama_yarn_mscale", "llama_yarn_factor", "llama_linear", "llama_partial", "phi3_partial", "phi3_long", "mistral_null", "qwen2_unused",
                       "qwen3_moe_normed", "llama_biases", "qwen2_moe_unbiased", "llama_base", "qwen3_base", "gemma3_base", "mixtral_base"]
messages = []


@llama.llama_log_callback
def keep(_level, text, _user):
    messages.append(text.decode(errors="replace"))


def logits_of(path):
    """The logits of all positions, by llama.cpp."""
    del messages[:]
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if not model:
        sys.exit(f"{path}: llama.cpp refuses it\n" + "".join(messages[-4:]))
    params = llama.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 64
    params.n_threads = params.n_threads_batch = 1
    params.type_k = params.type_v = 0  # f32
    params.flash_attn_type = 0
    context = llama.llama_init_from_model(model, params)
    words = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    batch = llama.llama_batch_init(len(folders.IDS), 0, 1)
    batch.n_tokens = len(folders.IDS)
    for i, token in enumerate(folders.IDS):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, True
        batch.seq_id[i][0] = 0
    if llama.llama_decode(context, batch):
        sys.exit(f"{path}: llama_decode failed")
    rows = [numpy.ctypeslib.as_array(llama.llama_get_logits_ith(context, i), (words,)).copy() for i in range(len(folders.IDS))]
    llama.llama_batch_free(batch)
    llama.llama_free(context)
    llama.llama_model_free(model)
    return numpy.array(rows)


def compare(tenon, name, model, folder):
    path = folders.write(folder / name, model)
    file = folder / f"{name}.gguf"
    subprocess.run([tenon, "model", "convert", path, file], check=True, stdout=subprocess.DEVNULL)
    theirs, ours = logits_of(file), numpy.array(folders.opened(file, lambda m: m.logits(folders.IDS)))
    if theirs.shape != ours.shape:
        sys.exit(f"{name}: logits of {theirs.shape} and {ours.shape}")
    apart = [float(numpy.abs(theirs - ours).max()), folders.far(theirs, model), folders.far(ours, model)]
    same = int((theirs.argmax(axis=1) == ours.argmax(axis=1)).sum())
    print(f"{name:20}{model['config']['model_type']:14}{apart[0]:12.2g}{apart[1]:24.2g}{apart[2]:20.2g}{same:10} of {len(ours)}", flush=True)
    return max(apart) <= (MOST_OF_GEMMA if name.startswith("gemma") else MOST)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("names", nargs="*")
    parser.add_argument("--library", default="libtenon-lm.so.0")
    args = parser.parse_args()
    folders.LIBRARY = args.library
    llama.llama_log_set(keep, None)
    llama.llama_backend_init()
    models = folders.known()["models"]
    print(f"{'model':20}{'family':14}{'Tenon-llama':>12}{'transformers-llama':>24}{'transformers-Tenon':>20}{'first token':>14}")
    with tempfile.TemporaryDirectory() as folder:
        near = [compare(args.tenon, name, models[name], pathlib.Path(folder)) for name in args.names or NAMES]
    if not all(near):
        sys.exit(f"expected at most {MOST:g}, of Gemma {MOST_OF_GEMMA:g}")


if __name__ == "__main__":
    main()

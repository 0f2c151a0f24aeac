#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares a model's predictions with those of llama.cpp, token by token.

    PYTHON oracle.py MODEL.gguf TEXT [--quantised] [--tokens 1000] [--library libtenon-lm.so.0]

PYTHON has llama-cpp-python and numpy. The model is rewritten as F32 in --folder first, so that both
compute the same function: llama.cpp rounds activations where weights are quantised. Prints the share of
positions with the same most probable token, and the mean Kullback-Leibler divergence; fails below 99.8 %
or above 1e-5.

With --quantised each computes the model as it is, and what the F32 model gives on the CPU is the exact
result that both are compared with. Fails where Tenon's divergence is over 1.1 times that of llama.cpp,
or its perplexity 0.6 % from the exact one.

TENON_BACKEND says what Tenon runs on; TENON_PLUGIN_PATH is needed where it is not installed.
"""

import argparse
import ctypes
import math
import os
import pathlib
import sys

import llama_cpp.llama_cpp as llama
import numpy

WINDOW = 500


@llama.llama_log_callback
def silent(_level, _text, _user):
    pass


def rewritten(model, folder):
    path = folder / (model.stem + ".f32.gguf")
    if not path.exists():
        params = llama.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize, params.nthread = 0, True, 2
        if llama.llama_model_quantize(str(model).encode(), str(path).encode(), ctypes.byref(params)):
            sys.exit(f"{model}: llama.cpp cannot rewrite it")
    return path


class Peer:
    def __init__(self, path):
        llama.llama_backend_init()
        self.model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
        params = llama.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = WINDOW + 12
        params.n_threads = params.n_threads_batch = 2
        params.type_k = params.type_v = 0 # f32
        params.flash_attn_type = 0
        self.context = llama.llama_init_from_model(self.model, params)
        self.vocab = llama.llama_model_get_vocab(self.model)
        self.words = llama.llama_vocab_n_tokens(self.vocab)

    def tokens(self, text):
        ids = (llama.llama_token * (len(text) + 8))()
        count = llama.llama_tokenize(self.vocab, text, len(text), ids, len(ids), True, False)
        return numpy.array(ids[:count], dtype=numpy.int32)

    def logits(self, ids):
        llama.llama_memory_clear(llama.llama_get_memory(self.context), True)
        batch = llama.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), i, 1, True
            batch.seq_id[i][0] = 0
        if llama.llama_decode(self.context, batch):
            sys.exit("llama_decode failed")
        rows = [numpy.ctypeslib.as_array(llama.llama_get_logits_ith(self.context, i), (self.words,)).copy()
                for i in range(len(ids))]
        llama.llama_batch_free(batch)
        return numpy.array(rows)


class Options(ctypes.Structure): # tn_lm_options
    _fields_ = [("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("context", ctypes.c_int64),
                ("cache", ctypes.c_char_p), ("sequences", ctypes.c_int64), ("split", ctypes.c_char_p)]


class Own:
    def __init__(self, library, path, words):
        self.lib, self.words = ctypes.CDLL(library), words
        self.lib.tn_lm_error.restype = ctypes.c_char_p
        core = ctypes.CDLL("libtenon.so.0")
        self.runtime, self.model, self.sequence = (ctypes.c_void_p() for _ in range(3))
        if core.tn_runtime_open(None, ctypes.byref(self.runtime)):
            sys.exit("no runtime")
        options = Options(ctypes.sizeof(Options), 0, WINDOW + 12, b"f32", 0, None)
        self.must(self.lib.tn_lm_open(self.runtime, str(path).encode(), ctypes.byref(options), ctypes.byref(self.model)))
        self.must(self.lib.tn_lm_sequence_open(self.model, ctypes.byref(self.sequence)))

    def must(self, status):
        if status:
            sys.exit(self.lib.tn_lm_error().decode())

    def tokens(self, text):
        ids, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_uint64()
        self.must(self.lib.tn_lm_tokenize(self.model, text, ctypes.c_uint64(len(text)), 1, ctypes.byref(ids), ctypes.byref(count)))
        return numpy.array(ids[:count.value], dtype=numpy.int32)

    def logits(self, ids):
        out = numpy.empty((len(ids), self.words), numpy.float32)
        self.must(self.lib.tn_lm_sequence_cut(self.sequence, ctypes.c_int64(0)))
        self.must(self.lib.tn_lm_infer(self.sequence, ids.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(len(ids)), 1,
                                       out.ctypes.data_as(ctypes.c_void_p)))
        return out


def logarithms(logits):
    wide = logits.astype(numpy.float64)
    wide -= wide.max(axis=1, keepdims=True)
    return wide - numpy.log(numpy.exp(wide).sum(axis=1, keepdims=True))


# Of what q gives, where p is right.
def divergence_of(p, q):
    return float((numpy.exp(p) * (p - q)).sum())


# Of the next tokens, but that behind the last one.
def surprise_of(logs, ids):
    return -float(logs[numpy.arange(len(ids) - 1), ids[1:]].sum())


# Windows of the text, each as logarithms of probabilities by each of the sources.
def windows(ids, sources):
    for at in range(0, len(ids), WINDOW):
        part = numpy.ascontiguousarray(ids[at:at + WINDOW])
        yield part, [logarithms(source.logits(part)) for source in sources]


def compare_floats(own, peer, ids):
    same = divergence = 0
    for _, (ours, theirs) in windows(ids, [own, peer]):
        same += int((ours.argmax(axis=1) == theirs.argmax(axis=1)).sum())
        divergence += divergence_of(theirs, ours)
    count = len(ids)
    print(f"{count} tokens: the same first token at {100 * same / count:.2f} %, KL {divergence / count:.3g}")
    if same < 0.998 * count or divergence > 1e-5 * count:
        sys.exit("expected at least 99.8 %, and at most 1e-5")


def compare_quantised(own, peer, exact, ids):
    divergence, surprise, count = [0, 0], [0, 0, 0], 0
    for part, logs in windows(ids, [own, peer, exact]):
        for i in range(2):
            divergence[i] += divergence_of(logs[2], logs[i]) / len(ids)
        for i in range(3):
            surprise[i] += surprise_of(logs[i], part)
        count += len(part) - 1
    ours, theirs, right = (math.exp(one / count) for one in surprise)
    print(f"{len(ids)} tokens: KL {divergence[0]:.4g}, llama.cpp's {divergence[1]:.4g}; "
          f"perplexity {ours:.4f}, llama.cpp's {theirs:.4f}, exact {right:.4f}")
    if divergence[0] > 1.1 * divergence[1] or abs(ours - right) > 0.006 * right:
        sys.exit("expected at most 1.1 times llama.cpp's, and a perplexity within 0.6 %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp"))
    parser.add_argument("--library", default="libtenon-lm.so.0")
    parser.add_argument("--quantised", action="store_true", help="compare both with the exact result of the weights")
    args = parser.parse_args()
    llama.llama_log_set(silent, None)
    floats = rewritten(args.model, args.folder)
    peer = Peer(args.model if args.quantised else floats)
    own = Own(args.library, args.model if args.quantised else floats, peer.words)
    text = args.text.read_bytes()[: 8 * args.tokens]
    ids = own.tokens(text)
    if not numpy.array_equal(ids, peer.tokens(text)):
        sys.exit("the tokens differ from those of llama.cpp")
    ids = ids[: args.tokens]
    if args.quantised:
        os.environ["TENON_BACKEND"] = "cpu-blas"
        compare_quantised(own, peer, Own(args.library, floats, peer.words), ids)
    else:
        compare_floats(own, peer, ids)


main()

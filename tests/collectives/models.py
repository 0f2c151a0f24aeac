#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Language models on processes of `tenon run`: logits and tokens of one process; who differs or fails is named.

    models.py TENON MODEL [LAUNCHER]    without a launcher: the first of Debian's packages
"""

import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fixtures"))
import gguf  # noqa: E402 pylint: disable=wrong-import-position
from sentences import run  # noqa: E402 pylint: disable=wrong-import-position

TENON, MODEL = map(os.path.abspath, sys.argv[1:3])
LAUNCHER = (sys.argv[3:] or [name for name in ("mpirun.openmpi", "mpirun.mpich") if shutil.which(name)] or [None])[0]
WITHIN = 5  # seconds in which a failure is known
LAYERS, WIDTH, HEADS, GROUPS, HEAD, INNER, WORDS = 5, 64, 12, 6, 32, 192, 64
FORMATS = ("f16", "q8_0", "q4_0")
FOLDER = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with


# --- models ------------------------------------------------------------------------------

def elements(kind, shape, seed):
    """Random numbers of a type, around 0."""
    draw = random.Random(seed)
    count = gguf.size_of(kind, shape) // gguf.TYPES[kind][2]
    if kind == "f32":
        return struct.pack(f"<{count}f", *(draw.uniform(0.5, 1.5) for _ in range(count)))
    if kind == "f16":
        return struct.pack(f"<{count}e", *(draw.uniform(-0.2, 0.2) for _ in range(count)))
    scale = struct.pack("<e", 0.2 / (127 if kind == "q8_0" else 8))
    return b"".join(scale + draw.randbytes(gguf.TYPES[kind][2] - 2) for _ in range(count))


EXPERTS, USED = 4, 2


def gated(experts):
    """The weights of a layer's feed-forward: of one, or of experts that a router chooses."""
    if not experts:
        return {"ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
    return {"ffn_gate_inp": (experts, WIDTH), "ffn_gate_exps": (experts, INNER, WIDTH), "ffn_up_exps": (experts, INNER, WIDTH),
            "ffn_down_exps": (experts, WIDTH, INNER)}


def written(name, kind, seed=1, groups=GROUPS, experts=0, has_output=False):
    """A file of a small model of letters, whose embedding is its output, too, or which has one."""
    architecture = "qwen3moe" if experts else "llama"
    numbers = {"block_count": LAYERS, "context_length": 512, "embedding_length": WIDTH, "feed_forward_length": INNER,
               "attention.head_count": HEADS, "attention.head_count_kv": groups, "attention.key_length": HEAD,
               "attention.value_length": HEAD}
    if experts:
        numbers |= {"expert_count": experts, "expert_used_count": USED, "expert_feed_forward_length": INNER}
    shapes = {"token_embd": (WORDS, WIDTH), "output_norm": (WIDTH,)}
    if has_output:
        shapes["output"] = (WORDS, WIDTH)
    for i in range(LAYERS):
        for what, shape in {"attn_q": (HEADS * HEAD, WIDTH), "attn_k": (groups * HEAD, WIDTH), "attn_v": (groups * HEAD, WIDTH),
                            "attn_output": (WIDTH, HEADS * HEAD), "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,),
                            **gated(experts)}.items():
            shapes[f"blk.{i}.{what}"] = shape
    pairs = [gguf.pair("general.architecture", gguf.TEXT, architecture), gguf.pair("general.name", gguf.TEXT, name),
             gguf.pair(f"{architecture}.attention.layer_norm_rms_epsilon", gguf.F32, 1e-5)]
    pairs += [gguf.pair(f"{architecture}.{key}", gguf.U32, value) for key, value in numbers.items()]
    pairs += [gguf.pair("tokenizer.ggml.model", gguf.TEXT, "gpt2"), gguf.pair("tokenizer.ggml.pre", gguf.TEXT, "gpt-2"),
              gguf.pair("tokenizer.ggml.tokens", (gguf.LIST, gguf.TEXT), [chr(ord("A") + i) for i in range(WORDS)]),
              gguf.pair("tokenizer.ggml.merges", (gguf.LIST, gguf.TEXT), ["A B"])]
    records, data, offset = [], [], 0
    for what, shape in shapes.items():
        one = "f32" if len(shape) == 1 or what.endswith("ffn_gate_inp") else kind
        bytes_ = elements(one, shape, f"{what} {seed if 'blk.3' in what else 1}")
        bytes_ += bytes(-len(bytes_) % 32)
        records.append(gguf.tensor(f"{what}.weight", one, shape, offset))
        data.append(bytes_)
        offset += len(bytes_)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(records), len(pairs)) + b"".join(pairs + records)
    path = pathlib.Path(FOLDER.name, f"{name}.gguf")
    path.write_bytes(head + bytes(-len(head) % 32) + b"".join(data))
    return str(path)


# --- processes ---------------------------------------------------------------------------

def started(ranks, *command, **variables):
    whole = [TENON, "run", "-n", str(ranks), "--launcher", LAUNCHER, "--allow-root", "--grace", "20", *command]
    return subprocess.Popen(whole if ranks else command, env={**os.environ, "TENON_BACKEND": "cpu-blas", "TENON_THREADS": "1", **variables},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process, status, seconds=60):
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate()
        raise AssertionError(f"it hangs:\n{out}{err}") from None
    assert process.returncode == status, f"status {process.returncode}, expected {status}:\n{out}{err}"
    return out


def models_of(text):
    """{(how, file): (layers of the ranks, rows of logits, lists of tokens)}"""
    found, rows = {}, None
    for line in text.splitlines():
        word, *rest = line.split()
        if word == "model":
            rows = found[rest[0], rest[1]] = (" ".join(rest[2:]), [], [])
        elif word in ("logits", "tokens"):
            rows[1 if word == "logits" else 2].append([float(x) for x in rest])
    return found


def needs_launcher(check):
    def test():
        return check() if LAUNCHER else "no MPI is installed"
    test.__name__ = check.__name__
    return test


# --- tests -------------------------------------------------------------------------------

@needs_launcher
def logits_and_tokens_are_those_of_one_process():
    files = [written(kind, kind) for kind in FORMATS]
    files += [written("own-f16", "f16", has_output=True), written("experts-f16", "f16", experts=EXPERTS, has_output=True),
              written("experts-q8_0", "q8_0", experts=EXPERTS)]
    alone = models_of(ended(started(0, MODEL, "run", *(word for file in files for word in ("alone", file))), 0))
    assert len({str(tokens) for _, _, tokens in alone.values()}) > 1, "all models say the same"
    parts = {2: ["0-2 3-4", "0-1 2-4"], 3: ["0-1 2-3 4-4", "0-1 2-2 3-4"]}
    for ranks in (2, 3):
        words = [word for file in files for how in ("pipeline", "tensor") for word in (how, file)]
        many = models_of(ended(started(ranks, MODEL, "run", *words), 0))
        assert len(many) == 2 * len(files), many
        for (how, file), (layers, logits, tokens) in many.items():
            where = f"{ranks} ranks, {how}, {file}"
            _, expected, said = alone["alone", file]
            assert layers in (parts[ranks] if how == "pipeline" else [" ".join(["0-4"] * ranks)]), f"{where}: {layers}"
            most = max(abs(a - b) for one, two in zip(expected, logits) for a, b in zip(one, two))
            size = max(abs(a) for row in expected for a in row)
            # Sums of parts are rounded elsewhere; quantised products round what they read to 8 bits, too.
            is_exact = how == "pipeline" or file.endswith("f16.gguf")
            bound = 0 if how == "pipeline" else 1e-5 if is_exact else 0.05
            assert len(logits) == len(expected) and most <= bound * size, f"{where}: {most} of {size}"
            assert not is_exact or tokens == said, f"{where}: {tokens}, alone {said}"


@needs_launcher
def the_command_writes_what_one_process_writes():
    words = (TENON, "generate", written("f16", "f16"), "once", "--tokens", "8")
    alone = ended(started(0, *words), 0)
    assert len(alone.strip()) > len("once"), alone
    assert ended(started(2, *words, "--parallel", "tensor"), 0) == alone
    said = started(0, *words, "--parallel", "other").communicate()[1]
    assert "--parallel is 'other', expected pipeline, tensor or none" in said, said


@needs_launcher
def adapters_are_divided_by_layers():
    """Trained on one process, an adapter changes what is written, by the same words on two; products are not divided."""
    file, text, adapter = (os.path.join(FOLDER.name, name) for name in ("f16.gguf", "text", "adapter.safetensors"))
    written("f16", "f16")
    pathlib.Path(text).write_text("ABCDEFGHIJKLMNOP" * 8)
    ended(started(0, TENON, "train", "lora", file, text, "--steps", "2", "--window", "8", "--rate", "0.1", "-o", adapter), 0)
    words = (TENON, "generate", file, "ABCD", "--tokens", "8", "--cache", "f32")
    plain, changed = (ended(started(0, *words, *more), 0) for more in ((), ("--adapter", adapter)))
    assert plain != changed, changed
    assert ended(started(2, *words, "--adapter", adapter), 0) == changed
    said = started(2, *words, "--adapter", adapter, "--parallel", "tensor").communicate()[1]
    assert "adapters of a model whose products are divided among processes are not supported: divide its layers" in said, said


@needs_launcher
def what_cannot_be_divided_is_told():
    few, odd, blocks = written("few", "q8_0"), written("odd", "f16", groups=3), written("blocks", "q4_0", groups=4)
    rows = (("tensor:5,0", odd, "a split of '5,0': products are divided evenly"),
            ("pipeline:5,0", few, "a split of '5,0' for 5 layers on 4 processes: each process has one layer or more"),
            ("tensor", odd, "llama.attention.head_count_kv: 3 on 4 processes, expected a multiple"),
            ("tensor", blocks, "ffn_down.weight: columns of 192 on 4 processes are not whole blocks of 32 (q4_0)"))
    out = ended(started(4, MODEL, "run", *(word for how, file, _ in rows for word in (how, file))), 0)
    for *_, saying in rows:
        assert out.count(saying) == 4, f"expected of each: {saying}\n{out}"


@needs_launcher
def ranks_that_differ_are_told():
    one, two = written("one", "q8_0"), written("two", "q8_0", seed=2)
    renamed = pathlib.Path(FOLDER.name, "renamed.gguf")
    renamed.write_bytes(pathlib.Path(two).read_bytes().replace(b"two", b"one"))
    rows = (("pipeline", two, "rank 1 has another model: 'two', rank 0 has 'one'"),
            ("pipeline", str(renamed), "they differ in their weights"),
            ("pipeline@300", one, "rank 1 has other options: context 300"),
            ("tensor", one, "rank 1 has another division: tensor, rank 0 has pipeline"))
    theirs = " ".join(f"{how} {file}" for how, file, _ in rows)
    mine = " ".join(["pipeline", one] * len(rows))
    script = f'case "$TENON_RUN" in rank=1*) exec "$0" run {theirs};; esac; exec "$0" run {mine}'
    out = ended(started(2, "sh", "-c", script, MODEL), 0)
    for *_, saying in rows:
        assert out.count(saying) == 2, f"expected of both: {saying}\n{out}"


@needs_launcher
def what_fits_nowhere_is_told_with_what_is_missing_on_whom():
    """Memory is what TENON_LM_MEMORY grants; layers are divided by it where they fit."""
    words = (TENON, "generate", written("f16", "f16"), "once", "--tokens", "2", "--parallel")
    # Rank 1 has less than rank 0.
    limited = ("sh", "-c", 'case "$TENON_RUN" in rank=1*) export TENON_LM_MEMORY=$0;; esac; exec "$@"')
    all_ = [started(2, *words, "pipeline", TENON_LM_MEMORY="900000"), started(2, *limited, "1600000", MODEL, "run", "pipeline", words[2]),
            started(2, *limited, "100000", *words, "tensor")]
    missing, divided, whole = ((process.communicate(timeout=60), process.returncode) for process in all_)
    saying = r"rank 1, on cpu-blas:0 .* has 0.9 MB .* and 1.6 MB are missing for layer 2 of 5 and those behind it: more processes"
    assert missing[1] == 1 and len(re.findall(saying, missing[0][1])) == 2, missing
    assert divided[1] == 0 and [layers for layers, *_ in models_of(divided[0][0]).values()] == ["0-3 4-4"], divided
    assert whole[1] == 1 and "no room for layers 0 to 4 of 5 on cpu-blas:0, which has 0.1 MB of memory for layers: 1.5 MB" in whole[0][1], whole
    assert re.search("rank 1 ended (the group: .*no room for layers|with status 1; rank 0 was in)", whole[0][1]), whole


@needs_launcher
def who_fails_is_named():
    file = written("q8_0", "q8_0")
    for how, victim, number, words, status in (
            ("pipeline", 1, signal.SIGKILL, "was ended by signal 9 (Killed)", 137),
            ("tensor", 0, signal.SIGSTOP, "is stopped by signal 19 (Stopped (signal))", 1)):
        process, pids, line = started(3, MODEL, "loop", how, file), {}, "-"
        while line and not line.startswith("steps"):
            line = process.stdout.readline()
            if found := re.match(r"ready (\d+) rank=(\d+)", line):
                pids[int(found[2])] = int(found[1])
        assert len(pids) == 3, f"it ended: {process.communicate()}"
        os.kill(pids[victim], number)
        began = time.monotonic()
        told = 0
        while told < 2:
            line = process.stdout.readline()
            assert line, f"{how}: it ended: {process.communicate()}"
            told += f"rank {victim} {words}" in line
        assert time.monotonic() - began < WITHIN, f"{how}: known after {time.monotonic() - began:.1f} s"
        ended(process, status)


run([logits_and_tokens_are_those_of_one_process, the_command_writes_what_one_process_writes, adapters_are_divided_by_layers, what_cannot_be_divided_is_told, ranks_that_differ_are_told, what_fits_nowhere_is_told_with_what_is_missing_on_whom, who_fails_is_named])

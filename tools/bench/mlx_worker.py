# SPDX-License-Identifier: MIT
"""The programs of MLX that tools/bench/mlx times, over MLX's build or over Tenon (python -m tenon.mlx). Prints JSON.

    mlx_worker.py model FOLDER PROMPT TOKENS      a language model by mlx_lm's own loop
    mlx_worker.py mnist FOLDER                    FOLDER/main.py of MLX's examples, unchanged, on Fashion-MNIST
    mlx_worker.py transformer FOLDER [OPTION...]  as that, on words drawn from a vocabulary of 10,000
"""

import contextlib
import gzip
import io
import json
import pathlib
import re
import runpy
import statistics
import sys
import time
import types

import numpy as np

IMAGES = pathlib.Path("/usr/share/datasets/fashion-mnist")
TEXT = "The tenon and the mortise are the oldest joint of carpenters. Once upon a time"
VOCABULARY = 10_000


def model(folder, prompt, tokens):
    import mlx.core as mx
    from mlx_lm import load
    from mlx_lm.generate import generate_step

    network, tokenizer = load(folder)
    ids = mx.array((tokenizer.encode(TEXT) * int(prompt))[: int(prompt)])
    for _ in range(2):  # the first time plans
        times = [time.perf_counter()]
        for _ in generate_step(ids, network, max_tokens=int(tokens)):
            times.append(time.perf_counter())
    steps = [after - before for before, after in zip(times[1:], times[2:])]
    return {"prompt": times[1] - times[0], "token": statistics.median(steps)}


def printed(folder, name, module, options):
    """The output of an example, whose data come from `module`."""
    sys.modules[name] = module
    sys.argv, text = ["main.py", *options], io.StringIO()
    with contextlib.redirect_stdout(text):
        runpy.run_path(str(pathlib.Path(folder) / "main.py"), run_name="__main__")
    return text.getvalue()


def elements(name, skip):
    return np.frombuffer(gzip.decompress((IMAGES / f"{name}.gz").read_bytes()), np.uint8, offset=skip)


def mnist(folder):
    data = types.ModuleType("mnist")
    data.mnist = lambda: tuple(
        part for name in ("train", "t10k")
        for part in (elements(f"{name}-images-idx3-ubyte", 16).reshape(-1, 784).astype(np.float32) / 255,
                     elements(f"{name}-labels-idx1-ubyte", 8).astype(np.uint32)))
    epochs = re.findall(r"Time ([\d.]+)", printed(folder, "mnist", data, []))
    return {"step": statistics.median(map(float, epochs[1:])) / -(-60_000 // 256)}


def transformer(folder, *options):
    random, data = np.random.default_rng(0), types.ModuleType("datasets")
    often = 1 / np.arange(1, VOCABULARY + 1)
    words = [random.choice(VOCABULARY, count, p=often / often.sum()).astype(np.uint32) for count in (200_000, 20_000, 20_000)]
    data.load_dataset = lambda name: (range(VOCABULARY), *words)
    rates = re.findall(r"It/sec ([\d.]+)", printed(folder, "datasets", data, options))
    return {"step": 1 / statistics.median(map(float, rates[1:]))}


if __name__ == "__main__":
    print(json.dumps({"model": model, "mnist": mnist, "transformer": transformer}[sys.argv[1]](*sys.argv[2:])))

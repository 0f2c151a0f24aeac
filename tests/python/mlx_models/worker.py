# SPDX-License-Identifier: MIT
"""What runs over MLX's build, or over Tenon by `python -m tenon.mlx`: the same program of mlx_lm.

    worker.py logits OUT.npz [NAME...]             logits of small models (architectures.py), or why there are none
    worker.py tokens FOLDER COUNT OUT.json         greedy tokens, each with how far the best two logits are apart
    worker.py follow FOLDER TOKENS.json OUT.json   the best token behind each prefix of those
    worker.py small                                of small models by mlx_lm: greedy tokens, weights of 4 bits, losses of LoRA, as JSON
    worker.py lora FOLDER DATA ADAPTER OUT.json    losses of LoRA training, step by step
    worker.py timed FOLDER COUNT OUT.json          seconds of a prompt and of each token
"""

import importlib
import json
import sys
import tempfile
import time
import types
import zlib

import numpy as np

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache

from architectures import ARCHITECTURES

PROMPT, STEPS = 9, 4  # tokens at once, then one by one
TEXT = "The tenon and the mortise are the oldest joint of carpenters. Once upon a time"


def weights(model):
    """Numbers that follow from the names of parameters."""
    for name, value in tree_flatten(model.parameters()):
        drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(value.shape).astype("f4")
        if value.ndim > 1:
            drawn /= value.shape[-1] ** 0.5
        else:
            drawn = drawn * 0.1 + (1 if "norm" in name else 0)
        yield name, mx.array(drawn)


def small_model(name, **more):
    module = importlib.import_module(f"mlx_lm.models.{name}")
    model = module.Model(module.ModelArgs.from_dict({"model_type": name, **ARCHITECTURES[name], **more}))
    model.load_weights(list(weights(model)))
    return model


def logits_of(model):
    ids = np.random.default_rng(1).integers(0, 64, (1, PROMPT + STEPS))
    cache = make_prompt_cache(model)
    rows = [model(mx.array(ids[:, :PROMPT]), cache=cache)]
    for i in range(PROMPT, PROMPT + STEPS):
        rows.append(model(mx.array(ids[:, i : i + 1]), cache=cache))
        mx.eval(rows[-1])
    return np.array(mx.concatenate(rows, axis=1).astype(mx.float32))


def logits(out, *names):
    found = {}
    for name in names or ARCHITECTURES:
        try:
            found[name] = logits_of(small_model(name))
        except Exception as error:  # each is told by compare
            found[name] = np.array(f"{type(error).__name__}: {error}"[:500])
    np.savez(out, **found)


def load(folder):
    from mlx_lm import load as load_model

    model, tokenizer = load_model(folder)
    return model, tokenizer.encode(TEXT)


def step(model, ids, cache):
    row = model(mx.array([ids]), cache=cache)[0, -1].astype(mx.float32)
    mx.eval(row)
    return np.array(row)


def tokens(folder, count, out):
    model, ids = load(folder)
    cache, found, given = make_prompt_cache(model), [], ids
    for _ in range(int(count)):
        row = step(model, given, cache)
        last, best = np.sort(row)[-2:]
        given = [int(row.argmax())]
        found.append((given[0], float(best - last)))
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)


def follow(folder, given, out):
    model, ids = load(folder)
    with open(given, encoding="utf-8") as file:
        prefix = [token for token, _ in json.load(file)]
    cache, found = make_prompt_cache(model), []
    for token in prefix:
        found.append(int(step(model, ids, cache).argmax()))
        ids = [token]
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)


def greedy(model, count, **options):
    from mlx_lm.generate import generate_step

    ids = mx.array(np.random.default_rng(1).integers(0, 64, PROMPT))
    return [int(token) for token, _ in generate_step(ids, model, max_tokens=count, **options)]


def checksum(model):
    """Of all bytes of parameters, by name."""
    found = 0
    for name, value in sorted(tree_flatten(model.parameters())):
        found = zlib.crc32(np.array(value).tobytes(), zlib.crc32(name.encode(), found))
    return found


def reported():
    """A list, and what puts the losses of a training there."""
    from mlx_lm.tuner.callbacks import TrainingCallback

    class Losses(TrainingCallback):
        found = []

        def on_train_loss_report(self, info):
            self.found.append(float(info["train_loss"]))

    return Losses.found, Losses()


def trained(model, count):
    """Losses of mlx_lm's LoRA training, step by step."""
    import mlx.optimizers
    from mlx_lm.tuner import TrainingArgs, linear_to_lora_layers, train

    losses, callback = reported()
    mx.random.seed(5)
    np.random.seed(5)
    model.freeze()
    linear_to_lora_layers(model, 1, {"rank": 4, "scale": 8.0, "dropout": 0.0})
    rows = [([(7 * i + j * j) % 64 for j in range(20 + i)], 0) for i in range(6)]
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArgs(batch_size=6, iters=count, steps_per_report=1, steps_per_eval=count + 1, steps_per_save=count + 1,
                            adapter_file=f"{folder}/adapters.safetensors")
        train(model, mlx.optimizers.Adam(learning_rate=5e-3), rows, None, args, training_callback=callback)
        saved = mx.load(args.adapter_file)
    weights = dict(tree_flatten(model.trainable_parameters()))
    assert saved and all(mx.array_equal(saved[name], weights[name]) for name in saved)
    return losses


def small():
    found = {}
    for name, bits in [("llama", None), ("llama", 4), ("qwen3_next", None)]:
        model = small_model(name)
        if bits:
            nn.quantize(model, group_size=32, bits=bits)
            found["weights of 4 bits"] = checksum(model)
        found[f"{name} {bits or 'f32'}"] = greedy(model, 16)
    wide = small_model("llama", head_dim=32)
    found["a cache of 8 bits"] = greedy(wide, 16, kv_bits=8, kv_group_size=32)
    found["losses"] = trained(small_model("llama"), 12)
    print(json.dumps(found))


def lora(folder, data, adapter, out):
    """mlx_lm's own training of adapters, whose losses its table rounds."""
    from mlx_lm import lora as program

    losses, callback = reported()
    program.get_reporting_callbacks = lambda *unused, **named: callback
    options = {"model": folder, "data": data, "adapter_path": adapter, "train": True, "iters": 12, "batch_size": 1, "num_layers": 4, "steps_per_report": 1,
               "steps_per_eval": 100, "val_batches": 1, "learning_rate": 1e-4, "seed": 3}
    program.run(types.SimpleNamespace(**{**program.CONFIG_DEFAULTS, **options}))
    with open(out, "w", encoding="utf-8") as file:
        json.dump(losses, file)


def timed(folder, count, out):
    model, ids = load(folder)
    ids = (ids * 64)[:256]
    seconds = []
    for _ in range(2):  # the first one plans
        cache, seconds, given = make_prompt_cache(model), [], ids
        for _ in range(int(count)):
            begin = time.perf_counter()
            given = [int(step(model, given, cache).argmax())]
            seconds.append(time.perf_counter() - begin)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(seconds, file)


if __name__ == "__main__":
    {"logits": logits, "tokens": tokens, "follow": follow, "small": small, "lora": lora, "timed": timed}[sys.argv[1]](*sys.argv[2:])

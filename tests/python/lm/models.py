# SPDX-License-Identifier: MIT
"""Small models that these tests write, as tests/tools does, and the command, whose tokens are compared."""

import contextlib
import functools
import importlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMMAND = pathlib.Path(os.environ["TEST_BUILD"]) / "tools/tenon/tenon"


@functools.cache
def tools(name):
    """A module of tests/tools, which reads its command line when it is imported."""
    before = sys.argv
    sys.argv = [name, str(COMMAND), os.environ["TENON_PLUGIN_PATH"], os.environ.get("TEST_SANITIZER", "none")]
    sys.path.insert(0, str(ROOT / "tests/tools"))
    try:
        return importlib.import_module(name)
    finally:
        sys.argv = before


def letters(folder):
    """Models of letters: random weights; all tokens equally probable, without an end; a long context; one that is cut off, one that is NaN."""
    lm = tools("lm")
    for name, spread, more in [("letters", 1.0, {"chat": lm.SMOLLM}), ("endless", 0.0, {"endless": True}), ("formless", 1.0, {}),
                               ("long", 1.0, {"chat": lm.SMOLLM, "context": 512}),
                               ("nan", 1.0, {"wrong": ("blk.1.ffn_down.weight", float("nan"))})]:
        lm.gguf(folder / f"{name}.gguf", spread, **more)
    whole = (folder / "letters.gguf").read_bytes()
    (folder / "cut.gguf").write_bytes(whole[:len(whole) // 2])
    (folder / "text.gguf").write_text("no model")
    return folder


def images(folder):
    """A model that reads images in two files, two images, and the lines with its logits."""
    files = tools("image_files")
    with contextlib.chdir(folder):
        lines = files.two_files()
        files.make_image("one.png", 30, 70)
        files.make_image("two.png", 64, 20)
    return files, lines


def command(*arguments):
    """What `tenon ... --json` prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD",)}
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def real_model():
    """The file of SmolLM2-135M-Instruct that tools/packages/models fetches; None: it was not fetched."""
    path = pathlib.Path(os.environ.get("TEST_MODELS", "/nowhere"), "SmolLM2-135M-Instruct.Q4_1.gguf")
    return path if path.exists() else None

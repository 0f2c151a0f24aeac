# SPDX-License-Identifier: MIT
"""mlx_lm, unchanged, generates over tenon.mlx what it generates over MLX's own build: a Llama, one of 4 bits, and one of linear
attention and experts, of random weights. By hand, compare does more."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# What `worker.py small` prints over PyPI's mlx[cpu] 0.32.2.
FROZEN = {
    "llama f32": [38, 38, 38, 17, 45, 38, 23, 36, 23, 45, 23, 36, 45, 23, 36, 38],
    "llama 4": [38, 38, 38, 38, 8, 23, 50, 58, 58, 58, 58, 38, 38, 38, 38, 38],
    "qwen3_next f32": [25, 10, 61, 17, 19, 52, 54, 43, 54, 39, 5, 15, 5, 15, 32, 13],
}


@pytest.mark.skipif(importlib.util.find_spec("mlx_lm") is None, reason="mlx-lm is not installed")
def test_tokens_are_those_of_mlx():
    environment = {**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"] + os.pathsep + str(HERE), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-m", "tenon.mlx", HERE / "worker.py", "small"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == FROZEN

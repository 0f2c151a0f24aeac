# SPDX-License-Identifier: MIT
"""mlx_lm, unchanged, does over tenon.mlx what it does over MLX's own build, of small models of random weights: it generates with a
Llama, one of 4 bits, one whose cache has 8, and one of linear attention and experts, quantises weights to the byte, and trains LoRA adapters. TEST_MLX names
the folder that tools/packages/mlx has made; by hand, compare does more."""

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
    "weights of 4 bits": 567816485,
    "a cache of 8 bits": [36, 22, 22, 22, 22, 57, 57, 57, 57, 60, 60, 60, 60, 60, 60, 3],
}
LOSSES = [4.6082926, 4.1590338, 3.7393823, 3.4158998, 3.2534082, 3.2864344, 3.1083386, 2.9833403, 2.7884331, 2.6700346, 2.5814116, 2.4476824]


def folders():
    """Where mlx, mlx_lm and transformers are; None: nowhere."""
    if "TEST_MLX" in os.environ:
        return [os.environ["TEST_MLX"]]
    return [] if importlib.util.find_spec("mlx_lm") else None


@pytest.mark.skipif(folders() is None, reason="mlx-lm is not installed: run tools/packages/mlx")
def test_tokens_weights_and_losses_are_those_of_mlx():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(HERE), *folders()]), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-m", "tenon.mlx", HERE / "worker.py", "small"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("losses") == pytest.approx(LOSSES, rel=1e-4)
    assert found == FROZEN

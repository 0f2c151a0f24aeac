#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fifty steps of each network of `tenon train` have PyTorch's losses, within rounding, on each backend.

    losses.py TENON-TRAIN [--few] BACKEND...    a test; fewer steps, for drivers in software
    losses.py --write                           writes losses.json anew (Python with PyTorch)

losses.json has of each step PyTorch's loss in f64, and how far trainings in f32 are from that whose initial values were
moved by half an ulp: what rounding does to this training. In the residual network it is more from where a rectifier's
input first has another sign. A backend, which rounds elsewhere, may be MOST times as far, such signs AHEAD steps earlier.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

FROZEN = pathlib.Path(__file__).with_suffix(".json")
STEPS, SEED, IMAGES, TEST = 50, 3, 40, 8
BATCH = {"mlp": 8, "lenet": 8, "resnet": 4, "transformer": 2}
FEW = {"mlp": 20, "lenet": 10, "resnet": 3, "transformer": 3}
RATE = {"mlp": 0.005, "lenet": 0.001, "resnet": 0.003, "transformer": 0.001}
MOST, LEAST, AHEAD = 4, 2e-6, 12
MASK = (1 << 64) - 1


# --- data: the same everywhere -------------------------------------------------------------

def mixed(seed, stream, counter):
    """A number that depends on nothing but its arguments, as libtenon-train draws it."""
    x = (seed * 0x9e3779b97f4a7c15 & MASK) ^ (stream << 40 & MASK) ^ counter
    for _ in range(2):
        x = (x + 0x9e3779b97f4a7c15) & MASK
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
        x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
        x ^= x >> 31
    return x


def images(count, stream):
    """Noise with a bright square at the place of the class: pixels, labels."""
    pixels, labels = bytearray(), bytearray()
    for i in range(count):
        label = mixed(1, stream, i) % 10
        image = bytearray(mixed(2 + i, stream, k) % 100 for k in range(784))
        for y in range(6):
            start = (label // 5 * 14 + 4 + y) * 28 + label % 5 * 5
            image[start:start + 5] = b"\xff" * 5
        labels.append(label)
        pixels += image
    return bytes(pixels), bytes(labels)


TEXT = "".join(f"{i % 7} plus {i % 5} is {i % 7 + i % 5}.\n" for i in range(40)).encode()


# --- the test ------------------------------------------------------------------------------

def write_data(folder):
    for prefix, count, stream in (("train", IMAGES, 1), ("t10k", TEST, 2)):
        pixels, labels = images(count, stream)
        pathlib.Path(folder, f"{prefix}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, 28, 28) + pixels)
        pathlib.Path(folder, f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
    pathlib.Path(folder, "text").write_bytes(TEXT)


def losses_of(program, network, backend, folder, steps):
    words = [program, network, "--steps", str(steps), "--batch", str(BATCH[network]), "--lr", str(RATE[network]),
             "--seed", str(SEED), "--json", "--save", f"{backend}-{network}"]
    words += ["text"] if network == "transformer" else ["--data", "."]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "TENON_BACKEND": backend})
    assert done.returncode == 0, (words, done.stderr)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [e["loss"] for e in events if e["event"] == "step"]


def compare(network, backend, got, steps):
    frozen, worst = json.loads(FROZEN.read_text())[network], 0
    assert len(got) == steps and len(frozen["loss"]) == STEPS
    for step, (loss, wanted) in enumerate(zip(got, frozen["loss"]), 1):
        bound = max(LEAST, LEAST * abs(wanted), MOST * max(frozen["rounding"][:step + AHEAD]))
        worst = max(worst, abs(loss - wanted) / bound)
        assert abs(loss - wanted) <= bound, f"{network} on {backend}: step {step}: {loss:.9g}, PyTorch's {wanted:.9g}, expected within {bound:.2g}"
    return worst


def main():
    few = "--few" in sys.argv
    program, *backends = [word for word in sys.argv[1:] if word != "--few"]
    program = os.path.abspath(program)
    failed = number = 0
    print(f"1..{len(BATCH) * len(backends)}")
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)
        for backend in backends:
            for network in BATCH:
                number += 1
                steps = FEW[network] if few else STEPS
                try:
                    worst = compare(network, backend, losses_of(program, network, backend, folder, steps), steps)
                    print(f"ok {number} - {network} on {backend}, {steps} steps: {worst:.2f} of what may differ", flush=True)
                except AssertionError as reason:
                    failed = 1
                    print(f"# {reason}\nnot ok {number} - {network} on {backend}", flush=True)
    return failed


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        import losses_torch
        FROZEN.write_text(losses_torch.frozen())
    else:
        sys.exit(main())

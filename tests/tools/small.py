# SPDX-License-Identifier: MIT
"""The smallest installation, made from a build folder by tools/build-small: it keeps its budget, and
LeNet learns in it on the software driver. What is over the budget, or missing, is named.

    small.py TENON STAGING BUILD TENON-TRAIN
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import tap
from made_images import make_data

BUILD, TRAIN = (os.path.abspath(name) for name in sys.argv[3:])
HERE = pathlib.Path(__file__).resolve().parent
TOOL, BUDGET = HERE.parents[1] / "tools" / "build-small", HERE / "small_budget.txt"


def build_small(*args, status=0):
    done = subprocess.run([TOOL, *args], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, f"status {done.returncode}: {done.stdout}{done.stderr}"
    return done


def it_keeps_its_budget_and_lenet_learns_in_it():
    for line in build_small("--from", BUILD, "--budget", BUDGET, "small").stdout.splitlines():
        print("#", line)
    make_data(train=96, test=32)
    # A checkpoint is a file of another plugin, and a step that of an optimiser.
    for plugin in "org.tenon.safetensors", "org.tenon.optim":
        shutil.copytree(pathlib.Path(tap.STAGING, plugin), pathlib.Path("more", plugin))
    small, more = pathlib.Path("small").resolve(), pathlib.Path("more").resolve()
    environment = {**tap.ENVIRONMENT, "TENON_BACKEND": "vulkan-jit", "LD_LIBRARY_PATH": f"{small}/lib",
                   "TENON_PLUGIN_PATH": f"{small}/lib/tenon/plugins:{more}"}
    done = subprocess.run([TRAIN, "lenet", "--data", ".", "--steps", "3", "--batch", "32", "--json"],
                          env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    losses = [event["loss"] for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "step"]
    assert len(losses) == 3 and len(set(losses)) == 3, f"expected 3 different losses, got {done.stdout}"


def what_is_over_the_budget_is_named():
    lines = BUDGET.read_text().splitlines()
    library = "lib/libtenon.so.0 code "
    pathlib.Path("budget").write_text("\n".join(
        library + "1000" if line.startswith(library) else line for line in lines) + "\nlib/none rest 5\n")
    said = build_small("--from", BUILD, "--budget", "budget", "small", status=1).stderr
    assert "lib/libtenon.so.0: code: got " in said and "expected at most 1000" in said, said
    assert "lib/none: its budget names the file, which is not there" in said, said


def wrong_arguments_are_refused():
    pathlib.Path("empty").mkdir()
    said = build_small("--from", "empty", "small", status=1).stderr
    assert "libtenon.so.0 is missing: expected a build folder" in said, said
    pathlib.Path("budget").write_text("lib/libtenon.so.0 words 10\n")
    said = build_small("--from", BUILD, "--budget", "budget", "small", status=1).stderr
    assert "budget:1: got 'lib/libtenon.so.0 words 10', expected FILE, one of code" in said, said


tap.run([it_keeps_its_budget_and_lenet_learns_in_it, what_is_over_the_budget_is_named,
         wrong_arguments_are_refused])

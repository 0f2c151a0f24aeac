# SPDX-License-Identifier: MIT
"""Commands that end in the middle of writing a file, by a signal or killed: the old file stays, and nothing else does."""

import os
import pathlib
import signal
import stat
import subprocess
import sys

import lm
import tap
from tap import tenon

KILLER = pathlib.Path(sys.argv[3]).absolute()
# Each writes a file of its own.
COMMANDS = {
    "out.npy": ["eval", "x + 1", "x=x.npy"],
    "a/out.gguf": ["model", "quantize", "--format", "q8_0", "letters.gguf"],
    "b/out.gguf": ["model", "convert", "letters.gguf"],
    "out.safetensors": ["train", "lora", "letters.gguf", "text", "--steps", "1", "--window", "4"],
    "out.cache": ["generate", "letters.gguf", "a", "--tokens", "2"],
    "out.graph": ["eval", "x + 1", "x=x.npy", "--save"],
}
FLAG = {"out.cache": "--save-cache", "out.graph": None, "a/out.gguf": None, "b/out.gguf": None}


def command(out):
    """The command that writes `out`."""
    flag = FLAG.get(out, "-o")
    return COMMANDS[out] + ([flag] if flag else []) + [out]


def prepare():
    lm.gguf("letters.gguf", 1.0)
    pathlib.Path("text").write_text("once upon a time there was a model. " * 4)
    tenon("eval", "full([4000], 1.0)", "-o", "x.npy")
    for folder in ("a", "b"):
        os.mkdir(folder)


def run(out, **variables):
    env = {**tap.ENVIRONMENT, "LD_PRELOAD": str(KILLER), **{k: str(v) for k, v in variables.items()}}
    return subprocess.run([tap.TENON, *command(out)], env=env, capture_output=True, text=True, timeout=100, check=False)


def beside(out):
    """Other files of the folder that a save made."""
    return {n for n in os.listdir(os.path.dirname(out) or ".") if n.startswith(".tenon")}


def steps_of(out, **variables):
    """How many changes of files the command makes."""
    done = run(out, **variables)
    assert done.returncode == 0, done
    low, high = 0, 1  # it makes `low`, and not `high`
    while run(out, KILL_AT=high, **variables).returncode:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if run(out, KILL_AT=middle, **variables).returncode else (low, middle)
    return low


def put_old(path):
    path.write_bytes(b"old")
    path.chmod(0o640)


def ended_at_many_moments(out, nameless, number):
    """Ends the command at its first, middle and last changes of files. At how many of them it left a temporary name,
    and at how many the old file."""
    path = pathlib.Path(out)
    put_old(path)
    last, named, seen = steps_of(out, KILL_NAMELESS=nameless), 0, []
    assert run(out, KILL_NAMELESS=nameless).returncode == 0
    whole = path.read_bytes()
    assert not beside(out) and stat.S_IMODE(path.stat().st_mode) == 0o640, (out, beside(out), path.stat())
    for step in sorted({1, last // 2, *range(max(1, last - 8), last + 1)}):
        put_old(path)
        done = run(out, KILL_AT=step, KILL_SIGNAL=int(number), KILL_NAMELESS=nameless)
        assert done.returncode in (-number, 77), (out, step, done)  # 77: a signal that the command caught
        found = beside(out)
        assert len(found) <= 1, (out, step, found)  # the next writer removes that of the one before
        named += bool(found)
        seen.append(path.read_bytes())
    assert set(seen) <= {b"old", whole}, (out, [len(data) for data in seen])
    assert run(out, KILL_NAMELESS=nameless).returncode == 0
    assert path.read_bytes() == whole and not beside(out), (out, beside(out))
    return named, seen.count(b"old")


def test_of(out):
    def test():
        prepare()
        named, left = ended_at_many_moments(out, 1, signal.SIGINT)
        assert named <= 2 and left > 0, (named, left)  # between link and rename, and before the next one removes that
        named, left = ended_at_many_moments(out, 0, signal.SIGTERM)
        assert named > 0 and left > 0, (named, left)
    test.__name__ = f"{' '.join(COMMANDS[out][:2]).replace(' ', '_')}_{out.replace('/', '_')}_leaves_nothing"
    return test


def every_signal_ends_it():
    prepare()
    for number in (signal.SIGHUP, signal.SIGKILL):
        for nameless in (0, 1):
            ended_at_many_moments("out.npy", nameless, number)


if __name__ == "__main__":
    tap.run([*map(test_of, COMMANDS), every_signal_ends_it])

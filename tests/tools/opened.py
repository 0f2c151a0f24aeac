# SPDX-License-Identifier: MIT
"""What the commands open: files and pipes. Devices, which need not end, are refused; a mapped file that becomes
shorter is told."""

import os
import pathlib
import signal
import subprocess
import time

import lm
import tap
from tap import refused, tenon

DEVICES = "/dev/zero", "/dev/urandom", "/dev/full", "/dev/null"
# Commands that read a file, {}.
READERS = ["model show {}", "eval x x={}", "eval x x={}:a", "eval @{}", "graph {}", "why last {}", "chat {}",
           "generate {} a", "generate letters.gguf a --grammar {}", "generate letters.gguf a --json-schema {}",
           "generate letters.gguf a --adapter {}", "generate letters.gguf a --load-cache {}",
           "model tokens {} a", "model convert {} out.gguf", "model quantize {} out.gguf --format q8_0",
           "model quantize letters.gguf out.gguf --format q8_0 --imatrix {}", "model imatrix letters.gguf {} -o out.imatrix",
           "perplexity letters.gguf {}", "embed {} a", "train lora letters.gguf {}"]


def devices_are_refused():
    lm.gguf("letters.gguf", 1.0)
    for reader in READERS:
        for device in DEVICES:
            start = time.monotonic()
            done = refused(*reader.format(device).split(), stdin=subprocess.DEVNULL)
            assert "expected a regular file" in done.stderr or "it is a device, expected a file" in done.stderr, (reader, done)
            assert time.monotonic() - start < 20, reader
    for reader in READERS:
        refused(*reader.format(".").split(), stdin=subprocess.DEVNULL)
    assert not pathlib.Path("out.gguf").exists()


def pipes_are_read():
    tenon("eval", "[1.0, 2, 3]", "-o", "x.npy")
    for path, arguments in (("x.npy", ["eval", "sum(x)", "x=/dev/stdin"]), ("letters.gguf", ["model", "show", "/dev/stdin"])):
        lm.gguf("letters.gguf", 1.0)
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            tenon(*arguments, stdin=cat.stdout)


def start(*arguments):
    return subprocess.Popen([tap.TENON, *arguments], env=tap.ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def check_told(done, path):
    out, text = done.communicate(timeout=100)
    assert done.returncode == 1, (done.returncode, out, text)
    assert f"tenon: {os.path.abspath(path)} became shorter while it was used" in text, text


def a_file_that_becomes_shorter_is_told():
    tenon("eval", "full([100000], 1.0)", "-o", "x.npy")
    tenon("eval", "1.0", "-o", "one.npy")
    os.mkfifo("pipe.npy")
    done = start("eval", "sum(x) + y", "x=x.npy", "y=pipe.npy")
    with open("pipe.npy", "wb") as pipe:  # from here on x is open
        os.truncate("x.npy", 1000)
        pipe.write(pathlib.Path("one.npy").read_bytes())
    check_told(done, "x.npy")


def a_model_that_becomes_shorter_is_told():
    if tap.ENVIRONMENT.get("TENON_BACKEND", "cpu-blas") != "cpu-blas":
        return "weights are copied to the device"
    lm.gguf("letters.gguf", 1.0)
    done = start("chat", "letters.gguf", "--template", "chatml", "--temperature", "0", "--tokens", "4")
    done.stdin.write("a\n")
    done.stdin.flush()
    done.stdout.readline()  # of the first reply
    os.truncate("letters.gguf", 4096)
    done.stdin.write("b\n")
    done.stdin.flush()
    check_told(done, "letters.gguf")
    return None


def other_errors_of_the_bus_end_it_as_before():
    os.mkfifo("again.npy")
    done = start("eval", "x", "x=again.npy")
    with open("again.npy", "wb"):
        done.send_signal(signal.SIGBUS)
        done.communicate(timeout=100)
    assert done.returncode == -signal.SIGBUS, done.returncode


tap.run([devices_are_refused, pipes_are_read, a_file_that_becomes_shorter_is_told, a_model_that_becomes_shorter_is_told,
         other_errors_of_the_bus_end_it_as_before])

# SPDX-License-Identifier: MIT
"""The process around the package: memory, threads, its end, the doctor."""

import gc
import os
import pathlib
import subprocess
import sys
import threading

import pytest

import tenon as tn

X = tn.array([1.0] * 8)


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


CALLS = [lambda: X + X, lambda: X * 2.0, lambda: tn.sum(X, 0), lambda: tn.zeros([2]), lambda: tn.array([1.0]),
         lambda: X[1:], lambda: X.tolist(), lambda: bytes(memoryview(X)), lambda: tn.split(X, 2)]


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_memory_does_not_grow(call):
    for _ in range(300):
        call()
    gc.collect()
    before = resident()
    for _ in range(3000):
        call()
    gc.collect()
    assert resident() - before < 300000


def test_threads():
    results = [None] * 4

    def work(i):
        x = tn.array([float(i)] * 100)
        for _ in range(50):
            x = tn.sqrt(x * x + 1.0) * 0.5
        results[i] = tn.sum(x).item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({round(r, 3) for r in results}) == 1


def test_the_process_ends_with_arrays_alive():
    done = run("-c", "import tenon as tn, numpy\nx = tn.array([1.0]); y = x + 1; z = numpy.asarray(y)\n"
                     "f = tn.function(lambda a: a); f(x)\nclass C: pass\nc = C(); c.self = c; c.x = x * 2\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_doctor_computes():
    done = run("-m", "tenon.doctor")
    assert done.returncode == 0, done.stderr
    assert "1 + 4 + 9 = 14" in done.stdout

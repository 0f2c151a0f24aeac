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
    """A process of its own, which looks for leaks at its end where the address sanitizer is preloaded."""
    said = os.environ.get("LSAN_OPTIONS", "").replace("leak_check_at_exit=0", "leak_check_at_exit=1")
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, "LSAN_OPTIONS": said})


CALLS = [lambda: X + X, lambda: X * 2.0, lambda: tn.sum(X, 0), lambda: tn.zeros([2]), lambda: tn.array([1.0]),
         lambda: X[1:], lambda: X.tolist(), lambda: bytes(memoryview(X)), lambda: tn.split(X, 2)]


@pytest.mark.skipif("TEST_SANITIZER" in os.environ, reason="a sanitizer keeps what was freed")
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


ENDS = {
    "arrays": "y = x + 1; z = numpy.asarray(y); v = memoryview(x)",
    "functions": "f = tn.function(lambda a: a); f(x); g = tn.function(tn.grad(lambda a: tn.sum(a * a))); g(x)",
    "cycles": "class C: pass\nc = C(); c.self = c; c.x = x * 2\nl = [x + 1]; l.append(l)",
    "unevaluated": "y = x\nfor _ in range(100): y = y * x + 1",
    "capsules": "c = x.__dlpack__(); d = tn.from_dlpack(numpy.arange(3.0)); e = tn.from_dlpack(x.__dlpack__())",
    "threads": "import threading\nt = [threading.Thread(target=lambda: (x + 1).tolist()) for _ in range(4)]\n"
               "[i.start() for i in t]; [i.join() for i in t]",
    "asynchronous": "y = tn.sqrt(tn.ones([1000])) * 2; tn.async_eval(y)",
    "exceptions": """
def fails(*a):
    raise KeyError(a and type(a[0]).__name__)
for call in (lambda: tn.function(fails)(x), lambda: tn.grad(fails)(x), lambda: tn.vmap(fails)(x), lambda: tn.jvp(fails, (x,), (x,)),
             lambda: tn.cond(tn.array(True), fails, fails, x), lambda: tn.while_loop(fails, fails, x),
             lambda: tn.scan(fails, x, x), lambda: tn.checkpoint(fails)(x), lambda: tn.grad(tn.checkpoint(fails))(x)):
    for _ in range(3):
        try:
            call()
        except KeyError as error:
            kept = error
        else:
            raise SystemExit("no exception")
assert (x + 1).tolist() == [2]""",
}


@pytest.mark.parametrize("what", ENDS)
def test_the_process_ends_with(what):
    done = run("-c", f"import tenon as tn, numpy\nx = tn.array([1.0])\n{ENDS[what]}\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_doctor_computes():
    done = run("-m", "tenon.doctor")
    assert done.returncode == 0, done.stderr
    assert "1 + 4 + 9 = 14" in done.stdout

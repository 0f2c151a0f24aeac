# SPDX-License-Identifier: MIT
"""Threads that use the package at once, each result held against one thread's.

    python3 tests/python/threads.py [--seconds 600] [--threads 8] [--seed 1]

Graphs are built and evaluated, functions traced and replayed, by all threads on the same arrays and on their own,
beside one that changes arrays, lets go of them, and converts them. test_threads runs it for a moment, under the thread sanitizer, too;
by hand it is what Python without a GIL is tried with.
"""

import argparse
import gc
import random
import sys
import threading
import time
import traceback

import tenon as tn

SIZES = [1, 8, 300, 5000]


class Shared:
    """What all threads use."""

    def __init__(self):
        self.arrays = [tn.array([float(i % 7) for i in range(size)]) for size in SIZES]
        self.lazy = [x * 2.0 + 1.0 for x in self.arrays]
        self.function = tn.function(lambda x, y: tn.sum(x * y + 1.0))
        self.tree = tn.function(lambda d: {"s": d["a"] + d["b"][0], "t": (d["a"],)})
        self.slope = tn.function(tn.grad(lambda x: tn.sum(x * x * x)))
        self.loop = tn.function(lambda n: tn.while_loop(lambda v: v[0] < v[1], lambda v: [v[0] + 1.0, v[1]], [n * 0.0, n])[0])
        self.changed = tn.zeros([64])
        self.lock = threading.Lock()
        self.objects = [None] * 16


def elementwise(s, r, own):
    i = r.randrange(len(SIZES))
    y = s.arrays[i]
    for _ in range(r.randrange(1, 6)):
        y = y + 1.0
    return tn.sum(y - s.arrays[i]).item() / SIZES[i] % 1.0 == 0.0


def lazy(s, r, own):
    i = r.randrange(len(SIZES))
    return (s.lazy[i] - s.arrays[i] * 2.0).tolist() == [1.0] * SIZES[i]


def replay(s, r, own):
    i = r.randrange(len(SIZES))
    n = float(r.randrange(5))
    return s.function(s.arrays[i], tn.full([SIZES[i]], n)).item() == sum(k % 7 * n + 1.0 for k in range(SIZES[i]))


def new_signature(s, r, own):
    n = r.randrange(1, 40)
    return s.function(tn.ones([n]), tn.ones([n])).item() == 2.0 * n


def trees(s, r, own):
    n = float(r.randrange(9))
    result = s.tree({"a": tn.array(n), "b": [own["x"][0]]})
    return result["s"].item() == n + own["n"] and result["t"][0].item() == n


def derivative(s, r, own):
    i = r.randrange(2)
    return s.slope(s.arrays[i]).tolist() == tn.grad(lambda x: tn.sum(x * x * x))(s.arrays[i]).tolist()


def mapped(s, r, own):
    return tn.vmap(lambda row: tn.sum(row))(tn.ones([3, 5])).tolist() == [5.0] * 3


def branches(s, r, own):
    n = float(r.randrange(6))
    got = tn.cond(tn.array(n) > 2.0, lambda x: x + 1.0, lambda x: x - 1.0, tn.array(n)).item()
    return got == (n + 1.0 if n > 2.0 else n - 1.0) and s.loop(n).item() == n


def update(s, r, own):
    own["n"] += 1.0
    own["x"] += 1.0
    own["x"][3] = own["n"]
    return own["x"][3].item() == own["n"] and own["x"].tolist() == [own["n"]] * 8


def update_shared(s, r, own):
    s.changed[r.randrange(64)] = 1.0
    values = set(s.changed.tolist())
    return values <= {0.0, 1.0} and tn.sum(s.changed * 1.0).item() <= 64.0


def exchange(s, r, own):
    i = r.randrange(16)
    s.objects[i] = tn.full([4], float(i)) * 1.0
    other = s.objects[r.randrange(16)]
    return other is None or len(set(other.tolist())) == 1


def convert(s, r, own):
    i = r.randrange(len(SIZES))
    view = memoryview(s.arrays[i])
    taken = tn.from_dlpack(s.arrays[i].__dlpack__())
    return view[SIZES[i] - 1] == (SIZES[i] - 1) % 7 and tn.array(list(range(5))).shape == (5,) and taken.shape == (SIZES[i],)


def fails(s, r, own):
    try:
        s.arrays[2] + tn.zeros([7])
    except ValueError as error:
        return "broadcast" in str(error)
    return False


def collect(s, r, own):
    cycle = [s.arrays[1] * 3.0]
    cycle.append(cycle)
    if r.random() < 0.02:
        gc.collect()
    return repr(s.arrays[0]) == "array([0.])" and s.arrays[0].dtype == tn.float32


def together(s, r, own):
    xs = {"a": s.arrays[1] + 1.0, "b": [s.arrays[1] * 2.0, s.lazy[1]]}
    (tn.async_eval if r.random() < 0.5 else tn.eval)(xs)
    return (xs["b"][0] + 1.0).tolist() == s.lazy[1].tolist()


DEEDS = [elementwise, lazy, replay, new_signature, trees, derivative, mapped, branches, update, update_shared, exchange, convert, fails, collect,
         together]


def work(shared, seed, until, counts, faults):
    r, own = random.Random(seed), {"x": tn.zeros([8]), "n": 0.0}
    while time.monotonic() < until and not faults:
        deed = r.choice(DEEDS)
        try:
            if not deed(shared, r, own):
                faults.append(f"{deed.__name__}: wrong result")
        except BaseException:
            faults.append(f"{deed.__name__}: {traceback.format_exc()}")
        counts[seed] += 1


def run(seconds, threads, seed=1):
    """What went wrong, and how much was done."""
    shared, faults, counts = Shared(), [], {}
    until = time.monotonic() + seconds
    workers = []
    for i in range(threads):
        counts[seed + i] = 0
        workers.append(threading.Thread(target=work, args=(shared, seed + i, until, counts, faults)))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return faults, sum(counts.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    faults, count = run(given.seconds, given.threads, given.seed)
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"{count} deeds of {given.threads} threads in {given.seconds:g} s, {'with' if locked else 'without'} a GIL: "
          f"{faults[0] if faults else 'all results are right'}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())

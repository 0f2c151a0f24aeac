# SPDX-License-Identifier: MIT
"""`tenon kernels`: launches and kernels of a plan are counted by what they have in common, and
nothing runs."""

import json
import os

from tap import refused, run, tenon

BACKENDS = ("vulkan", "vulkan-jit")


def environment(backend, **more):
    return {"TENON_BACKEND": backend, "TENON_CACHE_DIR": os.path.abspath("cache"), **more}


def present(backend):
    return tenon_status("eval", "[1.0] + 1", env=environment(backend)) == 0


def tenon_status(*args, **options):
    try:
        tenon(*args, **options)
    except AssertionError:
        return 1
    return 0


def report(backend, *args):
    return json.loads(tenon("kernels", "--json", *args, env=environment(backend)).stdout)


def counts(r):
    return tuple(r[key] for key in ("launches", "baked", "exact", "folded", "modules"))


# Expression, values, then: launches, baked, exact, folded, modules. Reductions along the first axis and
# products keep elementwise steps apart.
A, B, C = "a=[[1.0,2],[3,4]]", "b=[[5.0,6],[7,8]]", "c=[[1.0,2,3],[4,5,6]]"
COUNTS = [
    ("exp(a)", (A,), (1, 1, 1, 1, 1)),
    # One program with other constants, other extents, or the same of other values.
    ("exp(a * 2), exp(b * 3)", (A, B), (2, 2, 2, 1, 1)),
    ("exp(a * 2), exp(c * 2)", (A, C), (2, 2, 2, 1, 1)),
    ("exp(a * 2), exp(b * 2)", (A, B), (2, 1, 1, 1, 1)),
    ("exp(a * 2), tanh(b * 2)", (A, B), (2, 2, 2, 2, 2)),
    # A chain of equal steps, whose operands lie in other places of the memory.
    ("argsort(a), argsort(b)", (A, B), None),
    # A loop's body counts once.
    ("while_loop(x, body='x -> tanh(x) * 2', times=3)", ("x=[1.0,2]",), None),
]


def launches_are_counted_by_what_they_share():
    backends = [b for b in BACKENDS if present(b)]
    if not backends:
        return "no Vulkan device"
    for backend in backends:
        for expression, values, expected in COUNTS:
            print("#", backend, expression, counts(report(backend, expression, *values)))


run([launches_are_counted_by_what_they_share])

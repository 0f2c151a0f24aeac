# SPDX-License-Identifier: MIT
"""Under limits of memory and of threads the command computes or says what is missing, soon.

OpenBLAS tries for ever when it gets no memory for a call.
"""

import json
import os
import resource
import struct
import sys
import time

import tap
from tap import run

X = "x=broadcast_to(1.0,[300,300])"
PRODUCT, EIGENVALUES, BOTH = "z = astype(x, dtype=complex128); sum(real(z@z))", "sum(lapack.eigvalsh(x))", "sum(lapack.eigvalsh(x@x))"
SANITIZED = len(sys.argv) > 3 and sys.argv[3] != "none"
SECONDS = 60


def limited(what, limit, expression, **variables):
    """The command's status and message with a limit (RLIMIT_..., bytes or count)."""
    def set_limit():
        resource.setrlimit(what, (limit, limit))
        if what == resource.RLIMIT_NPROC and os.geteuid() == 0: # root has none
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
    try:
        done = tap.subprocess.run([tap.TENON, "eval", expression, X], env={**tap.ENVIRONMENT, **variables},
                                  capture_output=True, text=True, timeout=SECONDS, preexec_fn=set_limit)
    except PermissionError as error: # in a folder that is root's own
        return error.errno, str(error)
    return done.returncode, done.stdout + done.stderr


def little_memory_is_an_error_and_no_endless_loop():
    if SANITIZED:
        return "sanitizers need terabytes of addresses"
    if not tap.has_plugins("org.tenon.cpu-blas"):
        return "cpu-blas is not built"
    expressions = [PRODUCT] + ([EIGENVALUES, BOTH] if tap.has_plugins("org.tenon.lapack") else [])
    for expression in expressions:
        for threads in (1, 2):
            seen, needs = set(), "OpenBLAS needs 128 MiB" if expression != EIGENVALUES else "eigvalsh/1: OpenBLAS needs"
            said = ""
            # Of the library alone, of one buffer, of two; and amply.
            for megabytes in (50, 100, 160, 190, 240, 320, 400, 520, 1000):
                status, text = limited(resource.RLIMIT_AS, megabytes << 20, expression,
                                       TENON_THREADS=str(threads))
                assert status in (0, 1), (expression, threads, megabytes, status, text)
                assert status == 0 or "memory" in text or "ulimit -v" in text or "map" in text, text
                seen.add(status)
                said += text
                if "or set TENON_THREADS=1" in text and expression != BOTH:  # of which each needs memory
                    status, text = limited(resource.RLIMIT_AS, megabytes << 20, expression, TENON_THREADS="1")
                    assert status == 0, (expression, megabytes, text)
            assert status == 0, f"1000 MB are enough: {text}"
            assert seen == {0, 1}, f"{expression}: no limit was low enough"
            assert needs in said, (expression, said)
            assert threads == 1 or "or set TENON_THREADS=1" in said, (expression, said)


def the_users_threads_of_openblas_need_memory_too():
    if SANITIZED or not tap.has_plugins("org.tenon.cpu-blas"):
        return "cpu-blas is not built, or with a sanitizer"
    for megabytes in (160, 240, 320, 400, 520):
        status, text = limited(resource.RLIMIT_AS, megabytes << 20, PRODUCT, TENON_THREADS="1",
                               OPENBLAS_NUM_THREADS="2")
        assert status == 0 or "ulimit -v" in text, (megabytes, status, text)


def without_threads_there_is_one():
    if SANITIZED or not tap.has_plugins("org.tenon.cpu-blas"):
        return "cpu-blas is not built, or with a sanitizer, which needs threads of its own"
    for variables in ({}, {"OPENBLAS_NUM_THREADS": "2"}):
        status, text = limited(resource.RLIMIT_NPROC, 1, PRODUCT, TENON_THREADS="4", HOME="/nonexistent",
                               **variables)
        if "Permission denied" in text:
            return "another user cannot read the build folder"
        assert status == 0 and "27000000" in text and "could not be started" in text, (status, text)


# --- files of graphs ---------------------------------------------------------------------

TYPE = ["f32", [2]]


def body_of(graph):
    return {"body": {"graph": graph}}


def nested(operator, levels, width, attrs=body_of, leaf=None, first=()):
    """A file whose graphs have each the one before `width` times, one behind the other."""
    leaf = leaf or {"op": 2, "in": [0], "out": [TYPE]}
    graphs = [{"inputs": [TYPE], "nodes": [leaf], "outputs": [1]}]
    for level in range(levels):
        at = 1 + len(first)
        inputs = [0, *range(at, at + width)]
        nodes = [*first, *({"op": 0, "in": [1] * len(first) + [inputs[i]], "attrs": attrs(level), "out": [TYPE]}
                           for i in range(width))]
        graphs.append({"inputs": [TYPE], "nodes": nodes, "outputs": [inputs[-1]]})
    signature = {"name": "f", "graph": levels, "inputs": ["x"], "outputs": ["y"], "constants": [], "donated": []}
    text = json.dumps({"version": 1, "operators": [operator, "base.roll/1", "base.sin/1"], "graphs": graphs, "constants": [],
                       "signatures": [signature]}, separators=(",", ":"))
    header = json.dumps({"__metadata__": {"tenon.graph": text}}).encode()
    return struct.pack("<Q", len(header)) + header


def leaf_of_text(terms):
    return {"expr": "x -> " + " + ".join(f"sin(x * {i}.5)" for i in range(terms)), "in": [0], "out": [TYPE]}


CHECKPOINT = "base.checkpoint/1"
ENDLESS = {
    "two of each": nested(CHECKPOINT, 22, 2),
    "deeper than any plan": nested(CHECKPOINT, 60, 2),
    "many of few": nested(CHECKPOINT, 5, 16),
    "many, a larger file": nested(CHECKPOINT, 2, 900),
    "long expressions": nested(CHECKPOINT, 3, 14, leaf=leaf_of_text(60)),
    "loops": nested("base.while_loop/1", 6, 16, lambda graph: {**body_of(graph), "times": {"i64": 1}}),
    "branches": nested("base.cond/1", 9, 8, lambda graph: {"then": {"graph": graph}, "otherwise": {"graph": graph}},
                       first=[{"number": 1, "type": ["bool", []]}]),
}
AMPLE = {
    "some of few": nested(CHECKPOINT, 3, 16),
    "an operator of many": nested(CHECKPOINT, 2, 24, leaf={
        "op": 1, "in": [0], "attrs": {"shift": {"ints": [1]}, "axis": {"ints": [0]}}, "out": [TYPE]}),
    "rows": nested(CHECKPOINT, 2, 50, leaf={"expr": "x -> exp(x - max(x)) / sum(exp(x))", "in": [0], "out": [TYPE],
                                            "attrs": {"axis": {"i64": 0}}}),
}


def evaluated(data, *more, **variables):
    """Status, message, seconds and bytes of memory of the command that evaluates a file."""
    with open("x.graph", "wb") as file:
        file.write(data)
    start = time.monotonic()
    child = tap.subprocess.Popen([tap.TENON, "eval", "@x.graph", "x=[1.0,2]", *more], stderr=tap.subprocess.PIPE,
                                 stdout=tap.subprocess.DEVNULL, env={**tap.ENVIRONMENT, **variables})
    text = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, text, time.monotonic() - start, usage.ru_maxrss * 1024


def a_small_file_of_graphs_takes_little():
    *_, empty = evaluated(nested(CHECKPOINT, 1, 1))
    for name, data in ENDLESS.items():
        limit = max(64 << 20, 1000 * len(data))
        for more in ([], ["--grad", "x"], ["--vmap", "x"]):
            status, text, seconds, memory = evaluated(data, *more)
            assert status == 1 and "TENON_GRAPH_LIMIT=BYTES raises the limit" in text, (name, status, text)
            assert SANITIZED or (seconds < SECONDS and memory < empty + limit), (name, seconds, memory)
    for name, data in AMPLE.items():
        status, text, seconds, memory = evaluated(data)
        assert status == 0, (name, text)
        assert SANITIZED or memory < empty + (64 << 20), (name, memory)


def the_limit_of_a_file_of_graphs_is_the_users():
    status, text, *_ = evaluated(AMPLE["some of few"], TENON_GRAPH_LIMIT="1000000")
    assert status == 1 and "more than 162 nodes, which take more than 1000000 bytes" in text, text
    data = nested(CHECKPOINT, 3, 26)
    assert evaluated(data)[0] == 1
    status, text, *_ = evaluated(data, TENON_GRAPH_LIMIT="1000000000")
    assert status == 0, text


run([a_small_file_of_graphs_takes_little, the_limit_of_a_file_of_graphs_is_the_users, little_memory_is_an_error_and_no_endless_loop, the_users_threads_of_openblas_need_memory_too,
     without_threads_there_is_one])

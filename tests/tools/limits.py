# SPDX-License-Identifier: MIT
"""Under limits of memory and of threads the command computes or says what is missing, soon.

OpenBLAS tries for ever when it gets no memory for a call.
"""

import os
import resource
import sys

import tap
from tap import run

X = "x=broadcast_to(1.0,[300,300])"
PRODUCT, EIGENVALUES, BOTH = "sum(x@x)", "sum(lapack.eigvalsh(x))", "sum(lapack.eigvalsh(x@x))"
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


run([little_memory_is_an_error_and_no_endless_loop, the_users_threads_of_openblas_need_memory_too,
     without_threads_there_is_one])

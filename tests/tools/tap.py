# SPDX-License-Identifier: MIT
"""Runs the command under test and reports checks as TAP."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sentences import run  # noqa: F401 pylint: disable=unused-import,wrong-import-position

TENON = os.path.abspath(sys.argv[1])
STAGING = os.path.abspath(sys.argv[2])
# Whether the command was built with a sanitizer, which makes each start of it ten times as long.
SANITIZED = "TEST_SANITIZER" in os.environ
ENVIRONMENT = {**os.environ, "TENON_PLUGIN_PATH": STAGING}
for name in ("TENON_BACKEND", "TENON_FALLBACK", "TENON_LOG"):
    ENVIRONMENT.pop(name, None)


def tenon(*args, status=0, **options):
    """Runs the command, checks its exit status, and gives the finished process."""
    environment = {**ENVIRONMENT, **options.pop("env", {})}
    done = subprocess.run([TENON, *map(str, args)], env=environment, capture_output=True,
                          text=True, timeout=300, **options)
    assert done.returncode == status, (
        f"tenon {' '.join(map(str, args))}: status {done.returncode}, expected {status}\n"
        f"{done.stdout}{done.stderr}")
    if status:
        assert done.stderr.startswith("tenon: "), f"no message on stderr: {done.stderr!r}"
    return done


def refused(*args, status=1, saying="", **options):
    """The command fails with `status`, and its one message contains `saying`."""
    done = tenon(*args, status=status, **options)
    assert saying in done.stderr, f"{args}: expected {saying!r} in {done.stderr!r}"
    return done


def values(*args, **options):
    """The results of `tenon eval --json`, as nested lists."""
    return [r["data"] for r in json.loads(tenon("eval", "--json", *args, **options).stdout)["results"]]


def has_mpi(launcher=None):
    """Whether collectives work, which they do not under sanitizers: libraries of MPI leak."""
    done = subprocess.run([TENON, "eval", "dist.all_reduce(x)", "x=[1, 2]"], env=ENVIRONMENT, capture_output=True, check=False)
    return done.returncode == 0 and (launcher is None or shutil.which(launcher) is not None)


def has_plugins(*ids):
    return all((pathlib.Path(STAGING) / i / "plugin.json").exists() for i in ids)

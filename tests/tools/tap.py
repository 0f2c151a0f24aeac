# SPDX-License-Identifier: MIT
"""Runs the command under test and reports checks as TAP."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

TENON = os.path.abspath(sys.argv[1])
STAGING = os.path.abspath(sys.argv[2])
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


def has_plugins(*ids):
    return all((pathlib.Path(STAGING) / i / "plugin.json").exists() for i in ids)


def run(tests):
    """Runs functions named as sentences, each in a folder of its own."""
    failures = 0
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        name = test.__name__.replace("_", " ")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                skipped = test()
                print(f"ok {number} - {name}{f' # SKIP {skipped}' if skipped else ''}", flush=True)
            except Exception:
                failures += 1
                for line in traceback.format_exc().splitlines():
                    print(f"# {line}")
                print(f"not ok {number} - {name}", flush=True)
            os.chdir("/")
    sys.exit(failures > 0)

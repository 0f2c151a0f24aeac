# SPDX-License-Identifier: MIT
"""Reports checks, functions named as sentences, as TAP: of the tests that run a command."""

import os
import sys
import tempfile
import traceback


def run(tests):
    """Runs functions named as sentences, each in a folder of its own. One that returns a text was
    skipped, for that reason."""
    failures = 0
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        name = test.__name__.replace("_", " ")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                skipped = test()
                print(f"ok {number} - {name}{f' # SKIP {skipped}' if skipped else ''}", flush=True)
            except Exception:  # pylint: disable=broad-except
                failures += 1
                for line in traceback.format_exc().splitlines():
                    print(f"# {line}")
                print(f"not ok {number} - {name}", flush=True)
            os.chdir("/")
    sys.exit(failures > 0)

# SPDX-License-Identifier: MIT
"""Reports checks, functions named as sentences, as TAP: of the tests that run a command."""

import concurrent.futures
import os
import sys
import tempfile
import traceback


def lines_of(number, test):
    """Runs a test: whether it failed, and what is reported."""
    name = test.__name__.replace("_", " ")
    try:
        skipped = test()
    except Exception:  # pylint: disable=broad-except
        return True, [f"# {line}" for line in traceback.format_exc().splitlines()] + [f"not ok {number} - {name}"]
    return False, [f"ok {number} - {name}{f' # SKIP {skipped}' if skipped else ''}"]


def run(tests, at_once=1):
    """Runs functions named as sentences, each in a folder of its own; or several at once, for processes that wait, in one
    folder. One that returns a text was skipped, for that reason."""
    def one(number, test):
        if at_once > 1:
            return lines_of(number, test)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            result = lines_of(number, test)
            os.chdir("/")
        return result
    failures = 0
    print(f"1..{len(tests)}", flush=True)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        os.chdir(folder)
        # What a test prints comes before the next one's lines: one alone runs in this thread.
        every = pool.map if at_once > 1 else map
        for failed, lines in every(one, range(1, len(tests) + 1), tests):
            failures += failed
            print("\n".join(lines), flush=True)
        os.chdir("/")
    sys.exit(failures > 0)

# SPDX-License-Identifier: MIT
"""Tests of the package `tenon`: what all files share.

    python3 -m pytest tests/python [--examples N] [--tap]

--examples: of how many random cases each property is tried (a few by default, always the same ones).
--tap: one line a case in the Test Anything Protocol, which meson counts.
"""

import ctypes
import gc
import os
import sys

import hypothesis
import pytest

sys.dont_write_bytecode = True


def pytest_addoption(parser):
    parser.addoption("--examples", type=int, default=int(os.environ.get("TEST_EXAMPLES", 10)))
    parser.addoption("--tap", action="store_true")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    hypothesis.settings.register_profile(
        "tenon", max_examples=config.getoption("examples"), derandomize=True, database=None, deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck), print_blob=False)
    hypothesis.settings.load_profile("tenon")
    if config.getoption("tap"):
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(Tap())


def lost_memory():
    """Whether the address sanitizer, where it is preloaded, finds memory that nothing refers to, of which
    it writes to stderr. The interpreter still refers to all that is its own."""
    look = getattr(ctypes.CDLL(None), "__lsan_do_recoverable_leak_check", None)
    gc.collect()
    return look() != 0 if look else None


class Tap:
    """Prints each case as a line, and how it failed as comments."""

    def __init__(self):
        self.count = 0

    def line(self, ok, name, end="", detail=""):
        self.count += 1
        print(f"{'ok' if ok else 'not ok'} {self.count} - {name.replace('#', ' ')}{end}")
        for line in str(detail).splitlines():
            print("#", line)

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self.line(True, report.nodeid, f" # SKIP {report.longrepr[2]}")
        elif report.failed:
            self.line(False, report.nodeid, "", report.longreprtext)
        elif report.when == "call":
            self.line(True, report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.line(False, report.nodeid, "", report.longreprtext)
        elif report.skipped:  # a whole file
            self.line(True, report.nodeid, f" # SKIP {report.longrepr[2]}")

    def pytest_sessionfinish(self, session, exitstatus):
        lost = lost_memory()
        if lost is not None:
            self.line(not lost, "no memory was lost")
            session.exitstatus = session.exitstatus or lost
        print(f"1..{self.count}")
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.count:  # the file was skipped
            session.exitstatus = 0

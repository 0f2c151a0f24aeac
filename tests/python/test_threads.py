# SPDX-License-Identifier: MIT
"""Eight threads that use the package at once, for a moment."""

import os

import threads


def test_threads_that_use_all_at_once():
    faults, count = threads.run(float(os.environ.get("TEST_SECONDS", 2)), 8)
    assert not faults, faults[0]
    assert count > 100

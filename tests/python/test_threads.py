# SPDX-License-Identifier: MIT
"""Eight threads that use the package at once, for a moment."""

import os
import queue
import threading

import tenon as tn
import threads
from tenon import _core


def test_threads_that_use_all_at_once():
    faults, count = threads.run(float(os.environ.get("TEST_SECONDS", 2)), 8)
    assert not faults, faults[0]
    assert count > 100


def test_the_devices_of_the_process_and_of_a_thread():
    """A thread that chose no device has the process's, also where it has computed before."""
    asked, answers = queue.Queue(), queue.Queue()

    def work():
        while (name := asked.get()) is not None:
            try:
                if name == "within":
                    with tn.device("cpu-blas:0"):
                        answers.put(float(tn.array(1.0) + 1.0))
                else:
                    answers.put(float(tn.array(1.0) + 1.0))
            except Exception as error:
                answers.put(type(error))

    def answer(name):
        asked.put(name)
        return answers.get(timeout=60)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert answer("plain") == 2
        _core.set_process_device("cpu-blas:7")
        got = answer("plain"), answer("within"), answer("plain"), _core.current_device()
    finally:
        _core.set_process_device(None)
    assert got[0] is got[2] and issubclass(got[0], Exception) and got[1] == 2 and got[3] == "cpu-blas:7"
    assert answer("plain") == 2 and _core.current_device() is None
    asked.put(None)
    thread.join()

# SPDX-License-Identifier: MIT
"""TENON_TRACE: what ran when and with which kernel, on each backend that has a device."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import time

from tap import ENVIRONMENT, TENON, refused, run, tenon

FILE = "run.json"


def traced(backend, expression="argmax((exp([[1.0, 2.0]]) * 3) @ [[1.0, 2.0], [3.0, 4.0]])", **options):
    """The events of one run, and the span in which it ran, in microseconds."""
    begin = time.monotonic_ns() / 1000
    tenon("eval", expression, env={"TENON_BACKEND": backend, "TENON_TRACE": FILE}, **options)
    end = time.monotonic_ns() / 1000
    events = json.loads(pathlib.Path(FILE).read_text())["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    return [{**e, "track": tracks[e["tid"]]} for e in events if e["ph"] == "X"], begin, end


STAGES = ["prepare", "simplify", "place", "fuse", "order", "assign", "compile"]


def inside(events, outer, names):
    """The events of these names that lie within `outer`, on its track, in their order."""
    end = outer["ts"] + outer["dur"]
    found = [e for e in events if e["name"] in names and e["track"] == outer["track"]
             and outer["ts"] <= e["ts"] and e["ts"] + e["dur"] <= end + 0.002]
    return sorted(found, key=lambda e: e["ts"])


def check_host(events, backend):
    """Loading, planning with all its stages, compiling, and what was waited for."""
    plans = [e for e in events if e["name"] == "plan"]
    assert plans, events
    for plan in plans:
        stages = inside(events, plan, STAGES)
        assert [e["name"] for e in stages] == STAGES, (stages, events)
        assert stages[-1]["args"]["operations"] == plan["args"]["steps"], (stages, plan)
        (compiled,) = inside(events, stages[-1], ["compile segment"])
        assert compiled["args"] == {"device": f"{backend}:0", "steps": plan["args"]["steps"]}
    loaded = {e["args"]["plugin"] for e in events if e["name"] == "load plugin"}
    assert {f"org.tenon.{backend}", "org.tenon.base"} <= loaded, loaded
    waits = [e["args"] for e in events if e["name"] == "wait"]
    assert waits and all(w["device"] == f"{backend}:0" and w["point"] > 0 for w in waits), events


def check_backend(backend):
    environment = {**ENVIRONMENT, "TENON_BACKEND": backend}
    if subprocess.run([TENON, "eval", "[1.0] + 1"], env=environment,
                      capture_output=True).returncode:
        return f"no device of {backend}"
    every, begin, end = traced(backend)
    check_host(every, backend)
    events = [e for e in every if not e["track"].startswith("host ")]
    names = [e["name"] for e in events]
    assert names[0] == "exp·multiply" and names[-1] == "base.argmax/1" and len(names) > 2, names
    for event in events:
        assert event["args"]["kernel"], event
        assert event["dur"] >= 0 and begin <= event["ts"] <= event["ts"] + event["dur"] <= end, (
            begin, event, end)
    (track,) = {e["track"] for e in events}
    assert track.startswith(f"{backend}:"), track
    starts = [e["ts"] for e in events]
    assert starts == sorted(starts), events
    return None


def the_cpu_backend_tells_what_ran():
    return check_backend("cpu-blas")


def vulkan_tells_what_ran():
    return check_backend("vulkan")


def vulkan_jit_tells_what_ran():
    return check_backend("vulkan-jit")


def a_run_that_fails_leaves_whole_json():
    traced("cpu-blas", "[1.0, 2.0] + [1.0, 2.0, 3.0]", status=1)


def a_file_that_cannot_be_written_is_refused():
    refused("eval", "1 + 1", env={"TENON_TRACE": "no/such/folder/run.json"},
            saying="TENON_TRACE: cannot write no/such/folder/run.json: No such file")
    os.symlink("elsewhere", "link")
    refused("eval", "1 + 1", env={"TENON_TRACE": "link"}, saying="TENON_TRACE: cannot write link")
    assert not os.path.exists("elsewhere")


def a_full_disk_is_a_warning():
    done = tenon("eval", "cos([1.0, 2.0])", preexec_fn=small_files,
                 env={"TENON_BACKEND": "cpu-blas", "TENON_TRACE": FILE})
    assert "the trace is incomplete" in done.stderr and "0.5403" in done.stdout, done


def closed_streams_take_nothing_into_files():
    for streams in [(2,), (1, 2), (0, 1, 2)]:
        done = subprocess.run([TENON, "eval", "cos([1.0, 2.0])", "-o", "out.npy"],
                              preexec_fn=lambda: [os.close(fd) for fd in streams],
                              env={**ENVIRONMENT, "TENON_TRACE": FILE, "TENON_WHY": "why.jsonl", "TENON_LOG": "trace"})
        assert done.returncode == 0, done
        json.loads(pathlib.Path(FILE).read_text())
        for line in pathlib.Path("why.jsonl").read_text().splitlines():
            json.loads(line)
        assert "0.5403" in tenon("eval", "x", "x=out.npy").stdout
    lost = subprocess.run([TENON, "eval", "1 + 1"], preexec_fn=lambda: os.close(1), env=ENVIRONMENT)
    assert lost.returncode == 1, "an output that is lost is a failure"


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))


run([the_cpu_backend_tells_what_ran, vulkan_tells_what_ran, vulkan_jit_tells_what_ran,
     a_run_that_fails_leaves_whole_json, a_file_that_cannot_be_written_is_refused,
     a_full_disk_is_a_warning, closed_streams_take_nothing_into_files])

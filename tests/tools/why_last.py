# SPDX-License-Identifier: MIT
"""TENON_WHY and `tenon why last`: what was decided is kept, stays small, survives a crash."""

import json
import os
import pathlib
import stat
import subprocess

from tap import ENVIRONMENT, TENON, refused, run, tenon

FILE = "why.jsonl"
LIMIT = 1 << 20


def record(expression, env=None, status=0):
    return tenon("eval", expression, env={"TENON_WHY": FILE, **(env or {})}, status=status)


def events():
    return [json.loads(line) for line in pathlib.Path(FILE).read_text().splitlines()]


def the_last_run_is_told():
    record("sum([1.0, 2.0] ** 2)")
    record("max([1.0, 2.0])")
    said = tenon("why", "last", FILE).stdout
    assert "base.max/1, giving f64[], runs on cpu-blas:0 with kernel" in said, said
    assert "base.sum" not in said, said
    assert "Device 1 is cpu-blas:0" in said and f"TENON_WHY={FILE}" in said, said
    assert "base.sum" in tenon("why", "last", "--all", FILE).stdout
    assert tenon("why", "last", env={"TENON_WHY": FILE}).stdout == said
    assert stat.S_IMODE(os.stat(FILE).st_mode) == 0o600


def a_graph_that_was_not_run_is_told_with_its_message():
    backend = {"TENON_BACKEND": "vulkan-jit"}
    if subprocess.run([TENON, "eval", "[1.0] + 1"], env={**ENVIRONMENT, **backend},
                      capture_output=True).returncode:
        return "no device of vulkan-jit"
    done = record("[1.0, 2.0] @ [1.0, 2.0]", {**backend, "TENON_KERNELS": "base.matmul=!*"}, 1)
    said = tenon("why", "last", FILE).stdout
    message = done.stderr.split("\n")[0].removeprefix("tenon: ")
    assert "was not run" in said and message in said, (said, message)


def plugins_that_are_not_used_are_told():
    record("[1.0] + 1", env={"TENON_PLUGINS_DISABLE": "org.tenon.nn"})
    said = tenon("why", "last", FILE).stdout
    assert "Plugin org.tenon.nn" in said and "TENON_PLUGINS_DISABLE" in said, said


def the_file_stays_small_and_keeps_the_newest():
    line = json.dumps({"event": "plan", "pid": 1, "time": 0, "nodes": [], "fill": "x" * 5000})
    pathlib.Path(FILE).write_text((line + "\n") * (LIMIT // len(line)))
    for _ in range(3):
        record("cos([1.0, 2.0])")
        assert os.path.getsize(FILE) <= LIMIT
    assert os.path.getsize(FILE) < LIMIT // 2 + 100_000
    assert all(e["event"] for e in events())
    assert "base.cos" in tenon("why", "last", FILE).stdout


def what_a_crash_cut_short_is_left_out():
    record("cos([1.0, 2.0])")
    with open(FILE, "a") as file:
        file.write('{"event":"plan","pid":1,"no')
    assert "base.cos" in tenon("why", "last", FILE).stdout
    record("sin([1.0, 2.0])")
    assert "base.sin" in tenon("why", "last", FILE).stdout
    assert len(pathlib.Path(FILE).read_text().splitlines()) == 5


def processes_share_one_file():
    running = [subprocess.Popen([TENON, "eval", f"tan([1.0, {i}.0])"], stdout=subprocess.DEVNULL,
                                env={**ENVIRONMENT, "TENON_WHY": FILE}) for i in range(8)]
    assert not any(process.wait() for process in running)
    assert sorted(e["event"] for e in events()) == ["open"] * 8 + ["plan"] * 8
    assert len({e["pid"] for e in events()}) == 8
    assert tenon("why", "last", FILE).stdout.count("base.tan/1, giving") == 1


def what_is_no_such_file_is_refused():
    refused("why", "last", "absent", saying="absent: No such file")
    pathlib.Path("empty").touch()
    refused("why", "last", "empty", saying="expected a file that TENON_WHY names")
    refused("why", "last", saying="usage: tenon why last FILE", status=2)
    refused("eval", "1 + 1", env={"TENON_WHY": "no/such/folder/file"},
            saying="TENON_WHY: cannot write no/such/folder/file")
    refused("eval", "1 + 1", env={"TENON_WHY": "/dev/null"}, saying="expected a regular file")
    os.symlink("elsewhere", "link")
    refused("eval", "1 + 1", env={"TENON_WHY": "link"}, saying="TENON_WHY: cannot write link")
    assert not os.path.exists("elsewhere")


def a_full_disk_is_a_warning():
    done = tenon("eval", "cos([1.0, 2.0])", env={"TENON_WHY": FILE}, preexec_fn=small_files)
    assert "TENON_WHY: what was decided is not written any more" in done.stderr, done.stderr
    assert "0.5403" in done.stdout, done.stdout


def small_files():
    import resource
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


run([the_last_run_is_told, a_graph_that_was_not_run_is_told_with_its_message,
     plugins_that_are_not_used_are_told, the_file_stays_small_and_keeps_the_newest,
     what_a_crash_cut_short_is_left_out, processes_share_one_file,
     what_is_no_such_file_is_refused, a_full_disk_is_a_warning])

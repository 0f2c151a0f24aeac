#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gdb stops at a name of each of five rooms, and its backtrace names every frame's function and line.

    backtraces.py BUILD

BUILD is a folder with symbols (docs/CONTRIBUTING.md, "Debugging"). Ends with 77 where there is no gdb, or
where processes may not be traced.
"""

import os
import re
import shutil
import subprocess
import sys

COMMAND = ["eval", "sum(argsort(x, axis=1), axis=0)", "x=[[1.5,2,0],[2,1,7]]"]
# What is stopped at, and the room in which it is.
NAMES = {
    "lang_parse": "tools/tenon/lang",
    "plan_fuse": "core/plan/fuse",
    "argsort_infer": "plugins/ops/base/sort",
    "cpu_submit": "plugins/backends/cpu-blas/run",
    "sum_columns_u64": "kernels/cpu/reduce",
}


def stopped(gdb, build, name):
    """What gdb tells of a run that stops at `name`."""
    environment = dict(os.environ, TENON_PLUGIN_PATH=f"{build}/plugins-staged", TENON_BACKEND="cpu-blas",
                       DEBUGINFOD_URLS="", ASAN_OPTIONS="detect_leaks=0") # which cannot look where gdb does
    steps = ["set breakpoint pending on", "set width 0", f"break {name}", "run", "bt"]
    command = [gdb, "-nx", "-batch", *(word for step in steps for word in ("-ex", step)), "--args",
               f"{build}/tools/tenon/tenon", *COMMAND]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False).stdout


def check(name, room, told):
    """What is wrong with a backtrace."""
    frames = re.findall(r"^#\d+ .*", told, re.M)
    if not frames:
        return f"{name}: not stopped at"
    if not re.match(rf"#0 .*\b{name} .* at \S*{room}/", frames[0]):
        return f"{name}: got {frames[0]!r}, expected a line of {room}"
    bare = [frame for frame in frames if " ?? " in frame or not re.search(r" at \S+:\d+$| from /", frame)]
    if bare:
        return f"{name}: got frames without a line: {bare}"
    if " main (" not in frames[-1] and "thread" not in frames[-1]:
        return f"{name}: the backtrace ends in {frames[-1]!r}, expected main or a thread's start"
    return None


def main():
    build, gdb = os.path.abspath(sys.argv[1]), shutil.which("gdb")
    if not gdb:
        print("no gdb")
        return 77
    failed = 0
    for name, room in NAMES.items():
        told = stopped(gdb, build, name)
        if re.search(r"ptrace: Operation not permitted|Could not trace the inferior", told):
            print("processes may not be traced here")
            return 77
        wrong = check(name, room, told)
        if wrong:
            print(wrong, told, sep="\n")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

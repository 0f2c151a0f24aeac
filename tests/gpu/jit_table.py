#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of tools/bench/jit has its lines: jit_table.py JIT BUILD-FOLDER. Its numbers are not
looked at."""
import re
import subprocess
import sys

LINES = [
    r"sizes, kB",
    r"  vulkan-jit +\d+  \(at most 600",
    r"  vulkan +\d+  \(at most 4000",
    r"  add 4 .* vulkan +[0-9.]+ us, ratio [0-9.]+",
    r"  geometric mean of [1-9]\d*, \d+ below 0.95 +[0-9.]+  \(at least 0.99",
    # With an empty cache the JIT compiles, and finds what it made in the next run; both have the
    # driver make a pipeline.
    r"  1 \+ x +empty +[0-9.]+ +(?!0\.0 )[0-9.]+ +[0-9.]+ ",
    r"  1 \+ x +warm +[0-9.]+ +[0-9.]+ +[0-9.]+ ",
    r"  empty cache, the worst over vulkan's, less driver +-?[0-9.]+ ms",
    r"  warm cache, the worst over vulkan's, less driver +-?[0-9.]+ ms",
    r"missed: |all targets are met",
]


def main():
    done = subprocess.run([sys.executable, sys.argv[1], "--quick", sys.argv[2]],
                          stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout)
    if done.returncode == 0:
        missing = [line for line in LINES if not re.search("^" + line, done.stdout, re.M)]
        sys.exit("no line of the table is like: " + "; ".join(missing) if missing else 0)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Budgets of size: files of at most 600 lines; at most 2 % of functions over 60 lines.

Exit status 77 (skipped) without Universal Ctags, which finds the ends of functions.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import tree

MAX_FILE, MAX_FUNCTION, MAX_SHARE = 600, 60, 0.02
GENERATED = {pathlib.Path("tests/headers/offsets.h")}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    sources = [p for p in tree.files(root, ".c", ".h") if p not in GENERATED]
    wrong = []
    for path in sources:
        lines = (root / path).read_text(errors="replace").count("\n")
        if lines > MAX_FILE:
            wrong.append(f"{path}: {lines} lines, at most {MAX_FILE}")

    ctags = shutil.which("ctags")
    if not ctags or b"Universal" not in subprocess.run(
            [ctags, "--version"], stdout=subprocess.PIPE, check=False).stdout:
        print("\n".join(wrong + ["no Universal Ctags: functions are not measured"]))
        return 1 if wrong else 77
    listing = subprocess.run(
        [ctags, "-x", "--c-kinds=f", "--fields=+ne", "--output-format=json", "-L", "-"],
        input="\n".join(map(str, sources)), cwd=root, stdout=subprocess.PIPE, text=True,
        check=True).stdout
    tags = [json.loads(line) for line in listing.splitlines()]
    functions = [(t["end"] - t["line"] + 1, t["path"], t["name"]) for t in tags if "end" in t]
    long = sorted((f for f in functions if f[0] > MAX_FUNCTION), reverse=True)
    print(f"{len(sources)} files, {len(functions)} functions, {len(long)} over {MAX_FUNCTION}")
    if len(long) > MAX_SHARE * len(functions):
        wrong += [f"{path}: {name}() has {lines} lines" for lines, path, name in long]
        wrong.append(f"at most {MAX_SHARE:.0%} of the functions may pass {MAX_FUNCTION} lines")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

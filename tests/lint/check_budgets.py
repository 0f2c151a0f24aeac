#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Budgets: files of at most 600 lines; at most 2 % of functions over 60 lines; at least 40 % of
the lines of each public header are prose.

A macro of more than 25 lines that holds code counts as a function: a loop in a macro is read, and
debugged, as one. Exit status 77 (skipped) without Universal Ctags, which finds the ends of
functions.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import tree

MAX_FILE, MAX_FUNCTION, MAX_SHARE = 600, 60, 0.02
MIN_MACRO, MIN_PROSE = 25, 0.40
PUBLIC = "sdk/include/"
GENERATED = {pathlib.Path("tests/headers/offsets.h")}


def without_strings(line):
    return re.sub(r'"(\\.|[^"\\])*"', '""', line)


def prose(text):
    """The share of comments in the lines that are not blank. A line of code with a comment behind
    it is half of each."""
    comments = code = 0
    for line in map(str.strip, text.splitlines()):
        if line.startswith("//"):
            comments += 1
        elif re.search(r"//|/\*", without_strings(line)):
            comments, code = comments + 0.5, code + 0.5
        elif line:
            code += 1
    return comments / max(comments + code, 1)


def long_macros(text):
    """(lines, name) of each macro that is long and holds code: statements, or blocks in braces."""
    for macro in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:.*\\\n)*.*)", text, re.M):
        lines = macro[2].count("\n") + 1
        body = re.sub(r"/\*.*?\*/", "", without_strings(macro[2]))
        if lines > MIN_MACRO and re.search(r"[;{}]", body):
            yield lines, macro[1]


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    sources = [p for p in tree.files(root, ".c", ".h") if p not in GENERATED]
    wrong, macros = [], []
    for path in sources:
        text = (root / path).read_text(errors="replace")
        lines = text.count("\n")
        if lines > MAX_FILE:
            wrong.append(f"{path}: {lines} lines, at most {MAX_FILE}")
        if path.as_posix().startswith(PUBLIC) and prose(text) < MIN_PROSE:
            wrong.append(f"{path}: got {int(100 * prose(text))} %, at least {MIN_PROSE * 100:.0f} %")
        macros += [(lines, path.as_posix(), name) for lines, name in long_macros(text)]

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
    functions += macros
    long = sorted((f for f in functions if f[0] > MAX_FUNCTION), reverse=True)
    print(f"{len(sources)} files, {len(functions)} functions, {len(macros)} of them macros, "
          f"{len(long)} over {MAX_FUNCTION}")
    if len(long) > MAX_SHARE * len(functions):
        wrong += [f"{path}: {name} has {lines} lines" for lines, path, name in long]
        wrong.append(f"at most {MAX_SHARE:.0%} of the functions may pass {MAX_FUNCTION} lines")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What each text file must and must not say."""

import pathlib
import re
import sys

import tree

LICENSED = {".c", ".h", ".cc", ".in", ".py", ".sh", ".glsl", ".comp", ".build", ".dot"}
SCRIPTS = {"tools/freeze-abi", "tools/fuzz", "tools/quickstart", "tools/run-tests", "tests/gpu/run",
           ".ci/run", "sdk/glue/tenon-plugin"}
BINARY = {".npy", ".gz", ".png", ".spv"}
# Names are put together so that this file does not hold them.
FORBIDDEN = [
    (re.compile(r"TO" + r"DO|FIX" + r"ME|\bXX" + r"X\b"), "unfinished work is finished or dropped"),
    (re.compile(r"[ \t]+$", re.M), "blanks at the end of a line"),
]
# The core's files get descriptors above 2, through core/base/file.h.
OPENS = re.compile(r"\b(open|openat|creat|fopen|mkstemp|mkostemp|tmpfile)\(")

# The command prints what may come from outside through say(); these print their own words, numbers and scripts.
PRINTS = re.compile(r"(?<![a-z_(])v?printf\(|\bfprintf\(std")
OWN_WORDS = {"tools/tenon/" + name for name in (
    "base/args.c", "complete/bash.c", "complete/fish.c", "complete/zsh.c", "main.c", "eval/print.c")}


# docs/CONTRIBUTING.md says where things are.
PLACES = re.compile(r"`((?:core|docs|kernels|plugins|sdk|tests|tools)/[^` ]+)`")


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    wrong = []
    for path in tree.files(root):
        if path.suffix in BINARY:
            continue
        data = (root / path).read_bytes()
        if b"\0" in data[:4096]:
            wrong.append(f"{path}: is no text: what is built or trained stays out of the tree")
            continue
        text = data.decode(errors="replace")
        name = path.as_posix()
        if (path.suffix in LICENSED or name in SCRIPTS) and \
                "SPDX-License-Identifier: MIT" not in "\n".join(text.splitlines()[:3]):
            wrong.append(f"{name}:1: no line `SPDX-License-Identifier: MIT`")
        if text and not text.endswith("\n"):
            wrong.append(f"{name}: does not end in a newline")
        if name == "docs/CONTRIBUTING.md":
            wrong += [f"{name}: {place} does not exist" for place in PLACES.findall(text)
                      if not any(root.glob(place.rstrip("/")))]
        if path.suffix in (".md", ".svg"):
            continue
        rules = list(FORBIDDEN)
        if name.startswith("core/") and name != "core/base/file.c":
            rules.append((OPENS, "core opens files with file_open()"))
        if name.startswith("tools/tenon/") and path.suffix == ".c" and name not in OWN_WORDS:
            rules.append((PRINTS, "the command prints with say(), complain() or table_print()"))
        for pattern, why in rules:
            if found := pattern.search(text):
                line = text.count("\n", 0, found.start()) + 1
                wrong.append(f"{name}:{line}: {found[0]!r}: {why}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

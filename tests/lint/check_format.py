#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All C sources are as clang-format 14 writes them. Exit status 77 (skipped) without it."""

import pathlib
import re
import shutil
import subprocess
import sys

import tree


def clang_format_14():
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if program and re.search(r"version 14\.", subprocess.run(
                [program, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout):
            return program
    return None


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    program = clang_format_14()
    if not program:
        print("clang-format 14 is not here; other versions format differently")
        return 77
    sources = [str(p) for p in tree.files(root, ".c", ".h", ".cc")]
    return subprocess.run([program, "--dry-run", "-Werror", *sources], cwd=root,
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

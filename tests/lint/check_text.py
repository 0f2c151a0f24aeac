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


# Paths from the tree's top, in documents and comments: each exists. Without a suffix it may be a
# program of the build folder; capitals stand for a name, an id for a plugin's folder.
PLACES = re.compile(r"(?<![\w/.<$}\"'=-])((?:core|docs|kernels|plugins|sdk|tests|tools)/[\w./*{},-]*\w)(?![\w/(])")
STANDS_FOR = re.compile(r"[A-Z]{4}|^plugins/(com|org)\.")
COMMENT = {".c": r"//.*", ".h": r"//.*", ".cc": r"//.*", ".comp": r"//.*", ".glsl": r"//.*", ".in": r"//.*",
           ".py": r"#.*|\"\"\"(?:.|\n)*?\"\"\"", ".build": r"#.*", ".sh": r"#.*", ".txt": r"#.*"}
OTHERS_PATHS = {"tests/test-chat-template.cpp"} # of other projects
# What CONTRIBUTING.md names by file alone ("`order.c` there") stands somewhere.
FILES = re.compile(r"`([\w.]+\.(?:c|h|py|glsl|comp|txt))`")

# Backends are chosen by what they say of themselves: their names are their own, and those of tests.
BACKENDS = re.compile(r'^(?:(?!//).)*"(?:cpu-blas|vulkan|vulkan-jit)"', re.M)
NAMES_BACKENDS = {
    "core/base/log.c": "topics of TENON_LOG",
    "docs/examples/devices.c": "an application that asks for a backend",
    "kernels/vulkan/record.h": "how the kernels of these backends are called",
    "tools/tenon/new/new.c": "names that a new project may not take",
}
# What a document shows of a file that a reader may add: tests add it, to a copy of the tree.
SHOWN = re.compile(r"`[^`]+`(?:, (?:behind|before) `[^`]+`)?:\n\n```")


def braces(place):
    """The paths that "a/{b,c}.d" means."""
    found = re.search(r"\{([^{}]*)\}", place)
    if not found:
        return [place]
    return [path for part in found[1].split(",")
            for path in braces(place[:found.start()] + part + place[found.end():])]


def missing(root, name, suffix, text):
    """What a document or a file's comments name that does not exist."""
    if suffix == ".md":
        said = SHOWN.sub("", text)
    elif suffix in COMMENT:
        said = "\n".join(re.findall(COMMENT[suffix], text))
    else:
        return
    for place in PLACES.findall(said):
        if STANDS_FOR.search(place) or place in OTHERS_PATHS:
            continue
        for path in braces(place):
            built = "." not in path.rpartition("/")[2] and (root / path).parent.joinpath("meson.build").is_file()
            if not built and not any(root.glob(path)):
                yield f"{name}: {path} does not exist"


# A dtype that is stored only, one that is computed in and one of a kind of its own: the files to change for
# such a dtype are those that name it, and CONTRIBUTING.md lists them.
DTYPES = re.compile(r"^(?:(?!//).)*\bTN_(?:F8_E4M3|U16|COMPLEX64)\b", re.M)


def unlisted(name, text, contributing):
    """What a file has to do with dtypes that the list of their files leaves out."""
    if name.startswith(("tests/", "docs/", "sdk/conformance/", "sdk/examples/")) or not DTYPES.search(text):
        return
    if f"`{name}`" not in contributing:
        yield f"{name}: names a dtype of the examples, and docs/CONTRIBUTING.md does not list it for dtypes"


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    wrong, files = [], tree.files(root)
    known = {path.name for path in files}
    contributing = (root / "docs/CONTRIBUTING.md").read_text()
    decisions = (root / "docs/decisions/README.md").read_text()
    for path in files:
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
        wrong += missing(root, name, path.suffix, text)
        if name == "docs/CONTRIBUTING.md":
            wrong += [f"{name}: {file} does not exist" for file in FILES.findall(text)
                      if file not in known]
        if re.fullmatch(r"docs/decisions/\d.*\.md", name) and f"({path.name})" not in decisions:
            wrong.append(f"{name}: docs/decisions/README.md does not list it")
        if path.suffix in (".md", ".svg"):
            continue
        wrong += unlisted(name, text, contributing)
        rules = list(FORBIDDEN)
        if name.startswith("core/") and name != "core/base/file.c":
            rules.append((OPENS, "core opens files with file_open()"))
        if name.startswith("tools/tenon/") and path.suffix == ".c" and name not in OWN_WORDS:
            rules.append((PRINTS, "the command prints with say(), complain() or table_print()"))
        if path.suffix in (".c", ".h") and not name.startswith(("plugins/", "tests/", "tools/bench/")) \
                and name not in NAMES_BACKENDS:
            rules.append((BACKENDS, "nobody but a backend knows its name"))
        for pattern, why in rules:
            if found := pattern.search(text):
                line = text.count("\n", 0, found.start()) + 1
                wrong.append(f"{name}:{line}: {found[0]!r}: {why}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

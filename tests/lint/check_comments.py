#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Comments of C and GLSL have a subject: none opens with "Of", "Those", "That", "What" or "Which".

    check_comments.py [--self-test]

Rooms that still have such comments stand in a table with their number, which may only fall.
"""

import collections
import pathlib
import re
import sys

import tree

OPENS = re.compile(r"\s*// ?(Of|Those|That|What|Which)\b")
COMMENT = re.compile(r"\s*//")
# Rooms, the longest name that fits, and how many such comments each has; all other rooms have none.
MOST = {}


def openings(text):
    """The numbers of the lines on which a comment opens so; what is behind code is no sentence."""
    within = False
    for number, line in enumerate(text.splitlines(), 1):
        is_comment = bool(COMMENT.match(line))
        if is_comment and not within and OPENS.match(line):
            yield number
        within = is_comment


def room_of(name, rooms):
    fits = [room for room in rooms if name.startswith(room + "/")]
    return max(fits, key=len, default=None)


def faults(files, most):
    """Faults of {name: text}. A room with fewer than it may have is told: the table is to fall."""
    found = collections.defaultdict(list)
    for name, text in files.items():
        for number in openings(text):
            found[room_of(name, most)].append(f"{name}:{number}")
    for place in found.pop(None, []):
        yield f"{place}: the comment has no subject: say what it is before \"of\", \"that\" or \"what\""
    for room, number in most.items():
        got = len(found[room])
        if got > number:
            yield f"{room}: {got} comments without a subject, at most {number}: {', '.join(found[room][:got])}"
        elif got < number:
            print(f"{room}: {got} comments without a subject, MOST says {number}: write the smaller number down")


def self_test():
    good = {"a/b.c": "// Bytes of a row.\nint a; // of a row\n// A row\n// that is long.\n"}
    plants = (({"a/b.c": "// Of a row: its bytes.\n"}, {}), ({"a/b.c": "    // What a row has.\n"}, {}),
              ({"a/b.c": "// Those that wait.\n// Which one.\n"}, {"a": 0}))
    missed = [str(plant) for plant in plants if not list(faults(*plant))]
    wrong = list(faults(good, {})) + list(faults({"a/b.c": "// Of a row.\n"}, {"a": 1}))
    print("\n".join(missed + wrong) or f"{len(plants)} faults found")
    return bool(missed or wrong)


def main():
    if "--self-test" in sys.argv:
        return self_test()
    root = pathlib.Path(__file__).resolve().parents[2]
    files = {path.as_posix(): (root / path).read_text(errors="replace")
             for path in tree.files(root, ".c", ".h", ".comp", ".glsl")
             if not path.as_posix().startswith(("tests/", "docs/"))}
    wrong = list(faults(files, MOST))
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

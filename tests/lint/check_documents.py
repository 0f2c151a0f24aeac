#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How documents are set: the length of their lines and sentences, and the distance between their headings."""

import pathlib
import re
import sys

LINE = 120    # characters of a line of prose, code and targets of links not counted
SENTENCE = 25 # words of a sentence, on average over a page
SCREEN = 60   # lines of prose below one heading, tables and code not counted
# What a page of docs/decisions begins with, and has among its headings.
DECISION = ("\n\n*Status: ", "\n## Context\n", "\n## Decision\n", "\n## Cost\n")
GENERATED = {"docs/abi-reference.md"}

HEADING = re.compile(r"#{1,6} ")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
# A sentence ends before a blank; "e.g. x" and "1. x" do not end one.
END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?][)\"*_]*(?=\s|$)")


def without_code(line):
    """The line without what cannot be broken: code in backticks, targets of links and addresses."""
    return re.sub(r"<https?://[^>]*>|https?://\S+", "", re.sub(r"`[^`]*`|(?<=\])\([^)]*\)", "", line))


def prose(text):
    """(number, line) of the lines that are neither code nor table nor comment."""
    fenced = comment = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        comment = comment or line.startswith("<!--")
        if not fenced and not comment and not line.lstrip().startswith("|"):
            yield number, line
        if "-->" in line:
            comment = False


def paragraphs(text):
    """The page's paragraphs and items of lists, each as one line."""
    words = []
    for _, line in prose(text):
        starts = ITEM.match(line)
        if words and (not line.strip() or starts or HEADING.match(line)):
            yield " ".join(words)
            words = []
        if line.strip() and not HEADING.match(line):
            words.append(line[starts.end():].strip() if starts else line.strip())
    if words:
        yield " ".join(words)


def sentences(text):
    """The number of words of each sentence; code and a link's text count as they are read."""
    for paragraph in paragraphs(text):
        plain = re.sub(r"`[^`]*`", "code", re.sub(r"(?<=\])\([^)]*\)", "", paragraph))
        for sentence in END.split(plain):
            count = len(re.findall(r"[^\W_][\w'.,/*+-]*", sentence))
            if count:
                yield count


def faults(name, text):
    counts = list(sentences(text))
    if counts and sum(counts) > SENTENCE * len(counts):
        yield (f"{name}: sentences of {sum(counts) / len(counts):.1f} words on average, expected {SENTENCE} "
               f"at most; the longest have {', '.join(map(str, sorted(counts)[-3:]))}")
    if re.match(r"docs/decisions/\d", name):
        yield from (f"{name}: no line '{each.strip()}'" for each in DECISION if each not in text)
    heading, below = 1, 0
    for number, line in prose(text):
        if len(without_code(line)) > LINE:
            yield f"{name}:{number}: {len(line)} characters, expected {LINE} at most"
        if HEADING.match(line):
            heading, below = number, 0
        elif line.strip():
            below += 1
            if below == SCREEN + 1:
                yield f"{name}:{heading}: more than {SCREEN} lines below one heading"


PLANTED = (
    ("docs/decisions/1.md", "# 1. A\n\n*Status: in force.*\n\n## Context\n\n## Decision\n", "no line '## Cost'"),
    ("line", "# A\n\n" + "word " * 30 + "\n", "characters"),
    ("sentence", "# A\n\n" + ("word " * 20 + "\n") * 2 + "end.\n", "on average"),
    ("screen", "# A\n\n" + "Short words.\n" * 61, "below one heading"),
    ("code", "# A\n\n```\n" + "x" * 200 + "\n```\n| " + "y " * 200 + "|\n\n[a](" + "z" * 200 + ") `" + "c" * 200 + "`.\n", None),
    ("items", "# A\n\n" + "- " + "word " * 20 + "\n" + "- " + "word " * 20 + "\n", None),
)


def self_test():
    for what, text, expected in PLANTED:
        found = list(faults(what, text))
        if bool(found) != bool(expected) or expected and not any(expected in each for each in found):
            return f"{what}: got {found}, expected {expected}"
    return None


def main():
    if "--self-test" in sys.argv:
        wrong = self_test()
        print(wrong or f"{len(PLANTED)} planted pages are judged as expected")
        return 1 if wrong else 0
    root = pathlib.Path(__file__).resolve().parents[2]
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "sdk").rglob("README.md")]
    wrong = [fault for page in sorted(pages) if (name := page.relative_to(root).as_posix()) not in GENERATED
             for fault in faults(name, page.read_text())]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

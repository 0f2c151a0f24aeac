#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Divides the files of a target into batches that are compiled together: a unity build.

    unity.py DEPFILE BATCH.c... -- SOURCE.c...

Writes each BATCH.c, which includes its sources; headers are then read once a batch. Two sources share a
batch where no name that one defines for itself (a static function or variable, a type, an enumerator, a
macro; in it or in a header that the other does not include) occurs in the other, whatever it means
there. So a source need not know what it is compiled with. Fails where there are too few batches.
DEPFILE gets the headers that were read.
"""

import os
import pathlib
import re
import sys

MOST = 14 # sources of a batch

NAME = re.compile(r"[A-Za-z_]\w*")
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([\"<])([^\">]+)", re.M)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
UNDEFINE = re.compile(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.M)
# Comments, strings and characters.
NO_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
ENUM = re.compile(r"\benum\b[^;{}()]*\{([^}]*)\}")
TAG = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|\b(?:typeof|sizeof)\s*\([^)]*\)")


# The declarations of a file: the text of each outside of its outermost braces, and a function's body.
def declarations(text):
    depth, head, start = 0, "", 0
    for mark in re.finditer(r"[{};]", text):
        if mark.group() == "{":
            if depth == 0:
                head += text[start:mark.start()]
                start = mark.start()
            depth += 1
        elif mark.group() == "}":
            depth -= 1
            if depth == 0:
                if head.rstrip().endswith(")") and "=" not in head:
                    yield head, text[start:mark.end()]
                    head = ""
                else:
                    head += "{}"
                start = mark.end()
        elif depth == 0:
            yield head + text[start:mark.start()], ""
            head, start = "", mark.end()


# What a declaration declares, apart from types with tags.
def declared(head):
    plain = ATTRIBUTE.sub("", head)
    function = re.search(r"\(\s*\*\s*(?:const\s+)?(\w+)|(\w+)\s*\(", plain.split("=")[0])
    if function:
        return {function.group(1) or function.group(2)}
    nested = None
    while nested != plain:
        nested, plain = plain, re.sub(r"\([^()]*\)", "", plain)
    names = (re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", one.split("=")[0].strip()) for one in plain.split(","))
    return {name.group(1) for name in names if name}


class File:
    """What a file, or a header, brings into a batch.

    macros, tags: what it defines of them. private: functions, variables, types and enumerators that no
    other file can mean by their names. words: names in it, but members behind a dot or an arrow.
    public: of a header, names that it declares and those in functions that it defines.
    """

    known = {}

    def __init__(self, path):
        raw = path.read_text()
        text = NO_CODE.sub(lambda found: '""' if found.group()[0] in "\"'" else " ", raw.replace("\\\n", " "))
        self.headers = set()
        self.repeats = False # includes what is included more than once
        # Strings are gone from `text`, and with them the names of headers.
        for quote, name in INCLUDE.findall(raw):
            header = path.parent / name if quote == '"' else INCLUDES / name
            if name.endswith(".inc.h"):
                self.repeats = True
            elif header.exists():
                header = header.resolve()
                self.headers |= {header} | File.of(header).headers
                self.repeats |= File.of(header).repeats
        self.macros = set(DEFINE.findall(text)) - set(UNDEFINE.findall(text))
        self.words = set(NAME.findall(re.sub(r"(?:\.|->)\s*[A-Za-z_]\w*", "", text)))
        body = re.sub(r"^[ \t]*#[^\n]*", "", text, flags=re.M)
        self.tags = set(TAG.findall(body))
        self.private = {one.split("=")[0].strip() for part in ENUM.findall(body) for one in part.split(",")} - {""}
        self.public = set(self.private)
        for head, function in declarations(body):
            names = declared(head)
            self.public |= names
            if re.search(r"\b(?:static|typedef)\b", head):
                self.private |= names
            if function:
                self.public |= set(NAME.findall(head + function))

    @classmethod
    def of(cls, path):
        if path not in cls.known:
            cls.known[path] = cls(path)
        return cls.known[path]


# If `second` cannot stand behind `first`.
def meet(first, second):
    ours = [first] + [File.of(header) for header in first.headers - second.headers]
    theirs = [File.of(header) for header in second.headers - first.headers]
    for one in ours:
        for other in [second] + theirs:
            words = second.words if other is second else other.public
            if one.macros & other.words or one.private & words or one.tags & other.tags:
                return True
    return False


def main():
    at = sys.argv.index("--")
    batches = [(pathlib.Path(path), []) for path in sys.argv[2:at]]
    for path in sorted(map(pathlib.Path, sys.argv[at + 1:])):
        source = File.of(path.resolve())
        for _, batch in batches:
            if not batch or (len(batch) < MOST and not source.repeats and
                             not any(one.repeats or meet(one, source) or meet(source, one) for _, one in batch)):
                batch.append((path, source))
                break
        else:
            sys.exit(f"{path}: each of {len(batches)} batches has {MOST} files or one that shares a name with it: "
                     f"tn_batches in meson.build should have more for this target")
    for output, batch in batches:
        lines = [f'#include "{os.path.relpath(path, output.parent)}"\n' for path, _ in batch]
        text = "".join(lines) or "typedef int tn_unity_empty;\n"
        if not output.exists() or output.read_text() != text:
            output.write_text(text)
    read = " ".join(str(path).replace(" ", "\\ ") for path in File.known)
    pathlib.Path(sys.argv[1]).write_text(f"{sys.argv[2]}: {read}\n")


INCLUDES = pathlib.Path(__file__).resolve().parents[2] / "sdk" / "include"
main()

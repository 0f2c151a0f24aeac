#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pins the ABI: writes offsets.h, static assertions on every struct and enumerator.

Run with --update after adding a member at the end of a struct, or an enumerator. Lines
may be added to offsets.h, never changed: --update refuses to change one unless --break is
given, which is for a new major version only.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
DIRECTIVES = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", re.M)
# Macros whose rows are enumerators, X(NAME, "text", ...), and how these begin.
TABLES = {"TN_DTYPES": "TN_", "TN_EXPR_OPS": "TN_EXPR_"}
# Counts and sets of dtypes, which grow whenever something is added.
UNPINNED = re.compile(r"_NUM_|_DTYPES_$")


def block(text, opening):
    """The text between the brace at `opening` and the one that closes it."""
    depth = 0
    for i in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[opening + 1 : i]
    raise ValueError(f"no closing brace after {text[opening:opening + 40]!r}")


def split(text, separator):
    """Splits at separators that stand outside of all brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(c, 0)
        if c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in parts + [text[start:]] if p.strip()]


def member_names(declaration):
    """The names that one member declaration declares."""
    if pointer := re.search(r"\(\*\s*(\w+)\)\s*\(", declaration):
        return [pointer.group(1)]
    if declaration.startswith("struct {"):
        declaration = "nested " + declaration[declaration.rindex("}") + 1 :]
    return [re.search(r"(\w+)\s*(?:\[[^]]*\]\s*)*$", d).group(1)
            for d in split(declaration, ",")]


def scan(include):
    """(structs: [(C type, [member])], enumerators: [name]) of all headers, in order."""
    structs, enumerators = [], []
    for header in sorted(include.glob("tenon/**/*.h")):
        text = COMMENTS.sub(" ", header.read_text())
        for table, rows in re.findall(r"^#define (\w+)\(X\)((?:[^\n]*\\\n)*[^\n]*)", text, re.M):
            enumerators += [TABLES[table] + name for name in re.findall(r'X\((\w+), "', rows)]
        text = DIRECTIVES.sub("", text)
        for found in re.finditer(r"(typedef\s+)?struct\s+(\w+)\s*\{", text):
            members = [name for declaration in split(block(text, found.end() - 1), ";")
                       for name in member_names(declaration)]
            structs.append(("struct " + found.group(2), members))
        for found in re.finditer(r"enum\s*\{", text):
            names = [e.split("=")[0].strip() for e in split(block(text, found.end() - 1), ",")]
            enumerators += [n for n in names if re.fullmatch(r"TN_\w+", n)
                            and not n.startswith("TN_EXPR_")]
    return structs, [e for e in enumerators if not UNPINNED.search(e)]


def measure(structs, enumerators, include, compiler):
    """The assertions, as the compiler sees the headers now."""
    c_only = {"struct tn_note_image"}  # behind #ifndef __cplusplus
    lines = ["#include <stdio.h>", "#include <stddef.h>"]
    lines += [f"#include <{h.relative_to(include)}>"
              for h in sorted(include.glob("tenon/**/*.h"))]
    lines += ["int main(void) {"]
    for name, members in structs:
        tag = name.split()[1]
        guard = name in c_only
        if guard:
            lines.append(r'printf("#ifndef __cplusplus\n");')
        lines.append(f'printf("PIN(sizeof({name}) == %zu, \\"{tag}\\");\\n", sizeof({name}));')
        lines += [f'printf("PIN(offsetof({name}, {m}) == %zu, \\"{tag}.{m}\\");\\n",'
                  f" offsetof({name}, {m}));" for m in members]
        if guard:
            lines.append(r'printf("#endif\n");')
    lines += [f'printf("PIN((int64_t){e} == INT64_C(%lld), \\"{e}\\");\\n", (long long){e});'
              for e in enumerators]
    lines += ["return 0; }"]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "measure.c")
        source.write_text("\n".join(lines))
        subprocess.run([*compiler, "-std=c11", f"-I{include}", str(source), "-o",
                        f"{folder}/measure"], check=True)
        return subprocess.run([f"{folder}/measure"], check=True, stdout=subprocess.PIPE,
                              text=True).stdout


HEAD = """\
// SPDX-License-Identifier: MIT
// The layout of every struct, and the value of every enumerator, that crosses the plugin
// ABI on 64-bit machines. Made by pin_offsets.py --update; lines are added, never changed.
// clang-format off
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("--include", type=pathlib.Path, default=here.parents[1] / "sdk/include")
    parser.add_argument("--golden", type=pathlib.Path, default=here / "offsets.h")
    parser.add_argument("--cc", nargs="+", default=["cc"])
    parser.add_argument("--check", action="store_true", help="fail when offsets.h is not complete")
    parser.add_argument("--listed", nargs="*", help="with --check: the headers that are tested alone")
    parser.add_argument("--update", action="store_true", help="add what is new")
    parser.add_argument("--break", action="store_true", dest="break_abi",
                        help="with --update: change lines too (a new major version)")
    args = parser.parse_args()

    structs, enumerators = scan(args.include)
    now = HEAD + measure(structs, enumerators, args.include, args.cc)
    old = args.golden.read_text() if args.golden.exists() else HEAD
    asserts = lambda text: {line for line in text.splitlines() if line.startswith("PIN")}
    gone, new = asserts(old) - asserts(now), asserts(now) - asserts(old)
    # The size of a struct that grew at its end is the one thing that may change.
    moved = sorted(line for line in gone if not line.startswith("PIN(sizeof("))

    if args.check:
        for line in sorted(gone):
            print(f"offsets.h has, but the headers have not: {line}")
        for line in sorted(new):
            print(f"not in offsets.h: {line}")
        if gone or new:
            print("a member or enumerator added at the end: run tests/headers/pin_offsets.py "
                  "--update; anything else breaks the ABI")
        unlisted = {h.relative_to(args.include / "tenon").with_suffix("").as_posix()
                    for h in args.include.glob("tenon/**/*.h")} ^ set(args.listed)
        for header in sorted(unlisted):
            print(f"in one of sdk/include and tests/headers/meson.build only: {header}")
        return 1 if gone or new or unlisted else 0
    if args.update:
        if moved and not args.break_abi:
            print("these would change, which breaks plugins already built:")
            print("\n".join(moved))
            return 1
        args.golden.write_text(now)
        print(f"{args.golden}: {len(structs)} structs, {len(enumerators)} enumerators, "
              f"{len(new)} new lines")
        return 0
    parser.print_help()
    return 2


if __name__ == "__main__":
    sys.exit(main())

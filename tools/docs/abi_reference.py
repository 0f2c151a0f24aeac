#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/abi-reference.md from the public headers and the offsets that tests pin.

abi_reference.py            writes it
abi_reference.py --check    says what is out of date, and what has no comment of its own
"""

import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "sdk/include/tenon"
OFFSETS = ROOT / "tests/headers/offsets.h"
OUTPUT = ROOT / "docs/abi-reference.md"
# In the order in which a reader meets them; others follow by name.
FIRST = ["types", "status", "tenon", "attr", "expr", "primitive", "kernel", "backend", "host", "plugin", "pack"]
# What macros are made of, and guards: of no use by themselves.
INNER = re.compile(r"TN_PACK_\w+|TN_ATTR_(PAIRS|PICK|\d)|TN_API|TN_EXPORT|TN_LIST_\w+|\w+_$")


@dataclasses.dataclass
class Item:
    """Declarations that share a comment."""
    doc: list      # lines of the comment above
    names: list
    code: list     # lines
    more: list = dataclasses.field(default_factory=list)  # names within, for the index

    def is_documented(self):
        words = " ".join(self.doc).split()
        inside = sum("//" in line for line in self.code)
        return len(words) >= 3 or (self.code[0].startswith("enum") and inside > 0)


# --- reading -----------------------------------------------------------------------------


def without_comment(line):
    return re.sub(r"//.*|/\*.*?\*/", "", line)


def macro(lines, at):
    """The lines of a #define, and what is behind them."""
    end = at
    while lines[end].endswith("\\"):
        end += 1
    return lines[at:end + 1], end + 1


def declaration(lines, at):
    """The lines of one declaration or definition at file scope, and what is behind them."""
    depth, end = 0, at
    while True:
        bare = without_comment(lines[end]).rstrip()
        depth += sum(bare.count(c) for c in "({") - sum(bare.count(c) for c in ")}")
        end += 1
        if depth == 0 and (bare.endswith(";") or (bare.endswith("}") and not lines[at].startswith("typedef"))):
            return lines[at:end], end


def name_of(code):
    text = " ".join(without_comment(line) for line in code)
    if text.startswith("enum"):  # one that a macro fills is known by its end
        words = re.findall(r"(\w+)\b(?!\()", re.sub(r"= [^,}]*", "", text))
        return words[-1] if "#define" in text else words[1]
    for pattern in (r"^#define (\w+)", r"^typedef (?:struct|union) \w+ \{.*\}\s*(\w+);", r"^struct (\w+) \{",
                    r"^typedef .*\(\*(\w+)\)", r"^typedef .*?(\w+);", r"(\w+)\("):
        found = re.search(pattern, text)
        if found:
            return found[1]
    found = re.search(r"(\w+);", text)
    return found[1] if found else text.strip()


def shown(code):
    """A declaration as readers need it, without function bodies and attributes."""
    if code[0].startswith("#define"):
        head = re.match(r"#define \w+(\([^)]*\))?", code[0] if len(code) < 2 else " ".join(
            line.rstrip("\\").strip() for line in code))
        is_list = head[0].endswith("(X)")  # what it lists is what it says
        return [line.rstrip("\\").rstrip() for line in code] if len(code) == 1 or is_list else [f"{head[0]} ..."]
    text = "\n".join(code)
    text = re.sub(r"^TN_API ", "", text)
    if re.match(r"(__attribute__\(\(\w+\)\) )?static ", text) and "{" in text and "(" in text.split("{")[0]:
        text = text.split("{")[0].rstrip() + ";"
        text = re.sub(r"^__attribute__\(\(\w+\)\) ", "", text)
    return text.split("\n")


def items_of(lines):
    """Items in order; a str is the title of a part of the header."""
    found, doc, current, at = [], [], None, 0
    undefined = set(re.findall(r"^#undef (\w+)", "\n".join(lines), re.M))
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            doc, current, at = [], None, at + 1
        elif line.startswith("// ---"):
            found.append(line.strip("/- "))
            doc, at = [], at + 1
        elif line.startswith("// clang-format"):
            at += 1
        elif line.startswith("//"):
            if current is not None:
                doc, current = [], None
            doc.append(line[3:])
            at += 1
        elif line.startswith("#define"):
            code, at = macro(lines, at)
            if name_of(code) not in undefined:
                current = add(found, current, doc, code)
        elif line.startswith("#") or line.startswith('extern "C"') or line == "}":
            at += 1
        else:
            code, at = declaration(lines, at)
            forward = re.fullmatch(r"(?:typedef )?struct (\w+)(?: \1)?;.*", code[0])
            completed = forward and re.search(rf"^struct {forward[1]} \{{", "\n".join(lines), re.M)
            again = code[0].startswith("static inline") and code[-1].endswith(");") and not doc
            if not completed and not again and not (forward and not doc):
                current = add(found, current, doc, code)
    return found


def add(found, current, doc, code):
    """Adds to the item that has the same comment, or makes one."""
    name = name_of(code)
    known = {n for item in found if isinstance(item, Item) for n in item.names}
    if INNER.fullmatch(name) or name.startswith("TENON_") or name in known:
        return current
    if current is None:
        current = Item(list(doc), [], [])
        found.append(current)
    current.names.append(name)
    if code[0].startswith("enum"):
        current.more += re.findall(r"^    (\w+)(?: =|,)", "\n".join(code), re.M)
    current.code += shown(code)
    return current


def read(path):
    """What a header is for, and its items."""
    lines = path.read_text().splitlines()
    lines = lines[1:] if "SPDX" in lines[0] else lines
    end = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    return [line[3:] for line in lines[:end]], items_of(lines[end:])


def offsets():
    """For each struct its size and its members' offsets."""
    sizes, positions = {}, {}
    for line in OFFSETS.read_text().splitlines():
        size = re.match(r"PIN\(sizeof\(struct (\w+)\) == (\d+)", line)
        position = re.match(r"PIN\(offsetof\(struct (\w+), (\w+)\) == (\d+)", line)
        if size:
            sizes[size[1]] = size[2]
        if position:
            positions.setdefault(position[1], []).append(f"`{position[2]}` {position[3]}")
    return {name: (size, positions.get(name, [])) for name, size in sizes.items()}


def headers():
    paths = sorted(HEADERS.rglob("*.h"), key=lambda p: p.relative_to(HEADERS).as_posix())
    return sorted(paths, key=lambda p: FIRST.index(p.stem) if p.parent == HEADERS and p.stem in FIRST else 99)


# --- writing -----------------------------------------------------------------------------


def prose(doc):
    """A comment as Markdown: what is indented is code."""
    lines, code = [], False
    for line in doc:
        is_code = line.startswith("  ")
        if is_code != code and (line or code):
            lines += ["```" if code else "```c"] if is_code or line else []
            code = is_code if line else code
        lines.append(line[2:] if is_code else line)
    return lines + (["```"] if code else [])


def anchor(name):
    return re.sub(r"[^\w-]", "", name.lower().replace(" ", "-"))


def title(item):
    return ", ".join(item.names)


def item_lines(item, layout):
    lines = ["", f"### {title(item)}", "", "```c", *item.code, "```", "", *prose(item.doc)]
    for name in item.names:
        if name in layout:
            size, positions = layout[name]
            lines += ["", f"Size {size} bytes. Offsets: {', '.join(positions)}."]
    return lines


def header_lines(path, layout):
    about, items = read(path)
    name = path.relative_to(HEADERS.parent).as_posix()
    lines = ["", f"## {name}", "", *prose(about)]
    for item in items:
        lines += ["", f"*{item}*"] if isinstance(item, str) else item_lines(item, layout)
    return lines


def index():
    links = {}
    for path in headers():
        for item in read(path)[1]:
            if not isinstance(item, str):
                links.update({name: anchor(title(item)) for name in item.names + item.more})
    return ["", "## Index", "", " · ".join(f"[{n}](#{links[n]})" for n in sorted(links))]


def reference():
    lines = ["# ABI reference", "",
             "Made from the headers in `sdk/include/tenon` by `tools/docs/abi_reference.py`; edit those. Offsets",
             "are in bytes, on 64-bit machines. [The plugin ABI](abi.md) has the rules."]
    layout = offsets()
    for path in headers():
        lines += header_lines(path, layout)
    text = "\n".join(lines + index()) + "\n"
    return re.sub(r"\n{3,}", "\n\n", text)


# --- checking ----------------------------------------------------------------------------


def slots_without_comment(item):
    """Functions of an interface (a struct with a size) that no comment stands above."""
    undocumented, commented = [], False
    for line in item.code[1:]:
        slot = re.search(r"\(\*(\w+)\)\(", line)
        if line.strip().startswith("//"):
            commented = True
        elif slot and not commented and "//" not in line:
            undocumented.append(slot[1])
        elif not line.strip():
            commented = False
    return undocumented


def faults():
    for path in headers():
        about, items = read(path)
        name = path.relative_to(HEADERS.parent)
        if not any(line.startswith("Threads.") for line in about):
            yield f"{name}: its first comment has no paragraph 'Threads.'"
        for item in items:
            if isinstance(item, str):
                continue
            for other in item.names:
                if not re.match("tn_|TN_|k?DL", other):  # DLPack's names are its own
                    yield f"{name}: '{other}' is taken for the name of what begins {item.code[0]!r}"
            if not item.is_documented():
                yield f"{name}: {title(item)} has no comment above it"
            for slot in slots_without_comment(item) if item.code[0].startswith(("typedef struct", "struct")) else []:
                yield f"{name}: {title(item)}.{slot} has no comment above it"
    if not OUTPUT.exists() or OUTPUT.read_text() != reference():
        yield "docs/abi-reference.md is out of date: run tools/docs/abi_reference.py"


def main():
    if sys.argv[1:] == ["--check"]:
        found = list(faults())
        print("\n".join(found) or "docs/abi-reference.md is up to date, and everything in it is explained")
        return bool(found)
    OUTPUT.write_text(reference())
    return 0


if __name__ == "__main__":
    sys.exit(main())

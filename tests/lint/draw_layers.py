#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/layers.svg from the tables of check_layers.py and the folders of the tree.

    draw_layers.py          writes docs/layers.dot and, by dot (graphviz), docs/layers.svg
    draw_layers.py --check  fails where the two files are not what the tables and folders say

A box is a folder; its lines are its rooms, those above use those below. An arrow says what a
layer's files may include. Nobody edits the two files.
"""

import hashlib
import pathlib
import subprocess
import sys

import tree
from check_layers import FLOORS, LAYERS, layer_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOT, SVG = ROOT / "docs/layers.dot", ROOT / "docs/layers.svg"

# Colour of a part of the tree, its text, and its boxes: folders, in rows.
PARTS = {
    "tools": ("#f4f4f4", "applications", [["tools/tenon", "tools/lm", "tools/bench"]]),
    "libraries": ("#f9f0fa", "libraries for applications", [["sdk/lm", "sdk/train", "sdk/python", "sdk/conformance"]]),
    "core": ("#e8f0fa", "libtenon.so: no operator, no device", [["core"]]),
    "plugins": ("#eaf6ea", "shared objects, found at run time, linked by nothing", [
        ["plugins/ops", "plugins/formats", "plugins/models", "plugins/tokenizers", "plugins/collectives"],
        ["plugins/backends/null", "plugins/backends/cpu-blas", "plugins/backends/vulkan", "plugins/common"]]),
    "kernels": ("#fdeee6", "pure functions, shaders and their plans, the compiler of shaders", [
        ["kernels/cpu", "kernels/vulkan", "kernels/compiler", "kernels/spirv"]]),
    "sdk": ("#fff3d6", "what plugins and applications include", [["sdk/include"]]),
}
# Arrows that the tables cannot tell: what an application includes is libtenon's, and what loads what.
USERS = {"application": "core"}
LOADS = [("core", "plugins", "dlopen")]
# What a room is for, where its name does not say it.
ABOUT = {
    "core/watch": "explanations, traces, pictures", "core/file": "load, save, map", "core/check": "launches run again",
    "core/run": "eval, submit, function", "core/plan": "simplify, place, fuse, order, assign",
    "core/transform": "vjp, jvp, vmap", "core/graph": "lazy nodes, scopes", "core/device": "memory, points",
    "core/plugin": "find, trust, load", "core/primitive": "ids, rules, kernels", "core/expr": "one-line primitives",
    "core/attr": "attribute schemas", "core/base": "status, log, dtype, shape",
    "kernels/spirv": "the table of SPIR-V", "tools/lm": "tenon-lm", "tools/bench": "tenon-bench",
    "plugins/backends/null": "computes nothing: to copy", "sdk/include": "plugin.h  primitive.h  kernel.h  backend.h  tenon.h",
}


def folders(tree_files, parent):
    """Folders of `parent` that hold files, by name."""
    depth = parent.count("/") + 1
    return sorted({path.parts[depth] for path in tree_files
                   if path.as_posix().startswith(parent + "/") and len(path.parts) > depth + 1})


def levels(parent, tree_files):
    """Rooms of a folder, a list of those on one floor for each floor, from the top."""
    rooms = [name for name in folders(tree_files, parent) if parent != "sdk/include"]
    table = FLOORS.get(parent)
    if not table:
        return [rooms] if rooms else []
    height = {}
    while len(height) < len(table): # check_layers.py says that no floors come round
        for name, below in table.items():
            if name not in height and all(other in height for other in below):
                height[name] = 1 + max((height[other] for other in below), default=0)
    floors = {}
    for name in rooms:
        floors.setdefault(height.get(name, 0), []).append(name)
    return [floors[number] for number in sorted(floors, reverse=True)]


def told(parent, name, tree_files):
    """A room's name, with its own rooms or what it is for."""
    inner = levels(f"{parent}/{name}", tree_files) if f"{parent}/{name}" in FLOORS else []
    about = ABOUT.get(f"{parent}/{name}")
    inside = " · ".join(room for floor in inner for room in floor)
    return name + (f": {about}" if about else "") + (f" ({inside})" if inside else "")


def in_lines(rooms):
    """The rooms of a floor, as lines of some 40 letters."""
    lines = [rooms[0]]
    for room in rooms[1:]:
        if len(lines[-1]) + len(room) > 40:
            lines.append(room)
        else:
            lines[-1] += " · " + room
    return lines


def box(folder, tree_files):
    rows = []
    for floor in levels(folder, tree_files):
        rows.append("<br/>".join(in_lines([told(folder, name, tree_files) for name in floor])))
    if not rows and folder in ABOUT:
        rows = [ABOUT[folder]]
    cells = "".join(f'<tr><td bgcolor="white" border="1">{row}</td></tr>' for row in rows)
    return (f'<<table border="0" cellborder="0" cellspacing="2" cellpadding="3" color="#bbbbbb">'
            f'<tr><td><b>{folder}</b></td></tr>{cells}</table>>')


def part_of(folder):
    """The part whose boxes hold a layer of the tables; None: it is not drawn."""
    return next((part for part, (_, _, boxes) in PARTS.items()
                 if any(one == folder or one.startswith(folder + "/") or folder.startswith(one + "/")
                        for row in boxes for one in row)), None)


def arrows():
    """(part, part) of what the tables let files include, without those that others imply."""
    pairs = set()
    for layer, may in LAYERS.items():
        for other in may:
            pair = part_of(layer), USERS.get(other) or part_of(other)
            if None not in pair and pair[0] != pair[1]:
                pairs.add(pair)
    reach = {a: {c for b, c in pairs if b == a} for a, _ in pairs}
    return sorted((a, b) for a, b in pairs if not any(b in reach.get(c, ()) for c in reach[a] - {b}))


def drawing():
    files = tree.files(ROOT)
    assert all(layer_of(pathlib.Path(f"{one}/x")) for _, _, boxes in PARTS.values() for row in boxes for one in row)
    lines = ["// SPDX-License-Identifier: MIT", "// Written by tests/lint/draw_layers.py.", "digraph layers {",
             '    graph [fontname="Helvetica", fontsize=12, nodesep=0.2, ranksep=0.5, compound=true, newrank=true]',
             '    node [fontname="Helvetica", fontsize=10, shape=plain]',
             '    edge [color="#666666", arrowsize=0.7, fontname="Helvetica", fontsize=10]']
    for part, (colour, text, boxes) in PARTS.items():
        lines += [f"    subgraph cluster_{part} {{", f'        label="{text}"', '        style="rounded,filled"',
                  f'        color="#999999" fillcolor="{colour}"']
        for row in boxes:
            lines += [f'        "{one}" [label={box(one, files)}]' for one in row]
            lines.append("        { rank=same; " + " ".join(f'"{one}"' for one in row) + " }")
        lines += [f'        "{above[0]}" -> "{below[0]}" [style=invis]' for above, below in zip(boxes, boxes[1:])]
        lines.append("    }")
    first = {part: boxes[0][len(boxes[0]) // 2] for part, (_, _, boxes) in PARTS.items()}
    last = {part: boxes[-1][len(boxes[-1]) // 2] for part, (_, _, boxes) in PARTS.items()}
    for a, b in arrows():
        lines.append(f'    "{last[a]}" -> "{first[b]}" [ltail=cluster_{a}, lhead=cluster_{b}]')
    for a, b, text in LOADS:
        lines.append(f'    "{last[a]}" -> "{first[b]}" [ltail=cluster_{a}, lhead=cluster_{b}, style=dashed, label="{text}"]')
    return "\n".join(lines + ["}", ""])


def mark(text):
    return f"<!-- Of docs/layers.dot, SHA-256 {hashlib.sha256(text.encode()).hexdigest()} -->\n"


def main():
    text = drawing()
    if "--check" in sys.argv:
        old = [path.name for path, fine in ((DOT, DOT.read_text() == text), (SVG, mark(text) in SVG.read_text())) if not fine]
        if old:
            print(f"docs/{', docs/'.join(old)}: not what the tables of layers say: run tests/lint/draw_layers.py")
        return 1 if old else 0
    DOT.write_text(text)
    SVG.write_text(subprocess.run(["dot", "-Tsvg"], input=text, stdout=subprocess.PIPE, text=True, check=True).stdout + mark(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())

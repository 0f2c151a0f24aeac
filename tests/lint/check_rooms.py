#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rooms: how large a folder may be, which folders call each other, how names repeat.

    check_rooms.py [--build FOLDER] [--self-test]

Each table holds today's numbers, which may only fall: a smaller one is told, and written down here.
With --build, the arrows are calls, read by nm from the objects of a build with one object a file
(-Dbatches=false; exit status 77 for another). Without it they are includes, and only folders are
looked at. --self-test plants violations and fails when one is not seen.
"""

import collections
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tree

SOURCES = (".c", ".h", ".cc", ".comp", ".glsl", ".py")
MOST_FILES, MOST_LINES = 25, 6000
# Not rooms: what users include, documents, data.
APART = re.compile(r"(sdk/include|docs|tests/fuzz/corpus|tests/museum)(/|$)|.*/fixtures(/|$)")
# Folders over either bound, and how many sources each has: what is new goes into a folder of its own.
LARGE = {
    "core/base": 34,
    "plugins/ops/ffi": 35,
    "tests/compiler": 42,
    "tests/fuzz": 35,
    "tests/kernels": 37,
    "tests/tools": 36,
}

# Rooms in which no circle of calls has more files than this.
CIRCLES = {
    "core/plugin": 3,
    "kernels/compiler": 3,
    "kernels/vulkan": 2,
    "kernels/cpu": 2,
    "plugins/backends/cpu-blas": 1,
    "plugins/common": 1,
    "plugins/backends/vulkan": 3,
    "sdk/conformance": 3,
    "sdk/lm": 3,
}
# Circles that are larger: files of one recursion, and why it is one.
RECURSIONS = {
}
# Pairs of folders that call each other both ways, and why.
BOTH_WAYS = {
}
# Pairs of folders that include each other both ways, by headers, and why.
BOTH_INCLUDE = {
}
# No rooms of the product: what stands alone, and programs of tests.
ALONE = re.compile(r"(tests|sdk/templates|sdk/examples|docs)/")

# Per mille of the functions whose name stands in several files (to be under 50); that are of one word
# (under 10); struct tags that several files define, without the ABI's opaque types (0).
NAMES = {"repeated": 20, "one word": 10, "tags": 0}
# Not counted: files that are compiled in several ways or copied by users, and functions whose names
# are another's choice: main, slots of the ABI's tables (slot_functions), what ctags reads wrongly.
UNNAMED = re.compile(r"(tests|docs|sdk/templates|sdk/examples)/|.*\.inc\.h$")
OTHERS_NAMES = {"repeated": 20, "one word": 10, "tags": 0}


# --- sizes --------------------------------------------------------------------------------

def folders(root):
    """{folder: (sources, lines)} of the files that lie directly in it."""
    sizes = collections.defaultdict(lambda: [0, 0])
    for path in tree.files(root, *SOURCES):
        size = sizes[path.parent.as_posix()]
        size[0] += 1
        size[1] += (root / path).read_text(errors="replace").count("\n")
    return {name: tuple(size) for name, size in sizes.items() if not APART.match(name)}


def check_sizes(root, large):
    sizes = folders(root)
    for name, (files, lines) in sorted(sizes.items()):
        if name in large:
            if files > large[name]:
                yield (f"{name}: {files} sources, {large[name]} were there: what is new goes into a "
                       "folder of its own")
            elif files <= MOST_FILES and lines <= MOST_LINES:
                yield f"{name}: {files} sources and {lines} lines are within the bounds: remove it from LARGE"
            elif files < large[name]:
                yield f"{name}: {files} sources, LARGE says {large[name]}: write the smaller number down"
        elif files > MOST_FILES or lines > MOST_LINES:
            yield f"{name}: {files} sources and {lines} lines, at most {MOST_FILES} and {MOST_LINES}"
    for name in sorted(large.keys() - sizes.keys()):
        yield f"{name}: no such folder with sources: remove it from LARGE"


# --- arrows -------------------------------------------------------------------------------

class NoObjects(Exception):
    """The build has no object for each file."""


def objects(root, build):
    """{object: file of the tree} of the build."""
    commands = json.loads((build / "compile_commands.json").read_text())
    known = {path.as_posix() for path in tree.files(root, ".c", ".cc")}
    found = {}
    for entry in commands:
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        try:
            name = file.relative_to(root.resolve()).as_posix()
        except ValueError:
            continue
        if name in known and not ALONE.match(name):
            found[pathlib.Path(entry["directory"], entry["output"])] = name
        elif name not in known and re.search(r"/[\w-]+-\d+\.c$", name):
            raise NoObjects(f"{build}: {file.name} is a batch of several files (-Dbatches=false has none)")
    return {path: name for path, name in found.items() if path.exists()}


def symbols(paths):
    """(object, symbol, whether it is defined) of the symbols that objects share."""
    paths = list(map(str, paths))
    for first in range(0, len(paths), 500):
        listed = subprocess.run(["nm", "-A", "-P", "-g", *paths[first:first + 500]], check=True,
                                stdout=subprocess.PIPE, text=True).stdout
        for line in listed.splitlines():
            path, rest = line.rsplit(": ", 1)
            name, kind = rest.split()[:2]
            yield pathlib.Path(path), name, kind not in "Uw"


def calls(root, build):
    """{file: {file that it calls or reads a variable of: the symbols}}."""
    of = objects(root, build)
    definers, wanted = collections.defaultdict(set), collections.defaultdict(set)
    for path, symbol, defined in symbols(of):
        (definers[symbol] if defined else wanted[symbol]).add(of[path])
    arrows = collections.defaultdict(lambda: collections.defaultdict(set))
    for symbol, users in wanted.items():
        if len(definers[symbol]) == 1: # else a program's own, of several that define it
            target = next(iter(definers[symbol]))
            for user in users - {target}:
                arrows[user][target].add(symbol)
    return arrows


def includes(root):
    """{file: {file that it includes: its name}}, as far as quoted names tell."""
    known = {path.as_posix() for path in tree.files(root, ".c", ".h")}
    ends = collections.defaultdict(list)
    for name in known:
        parts = name.split("/")
        for first in range(len(parts)):
            ends["/".join(parts[first:])].append(name)
    arrows = collections.defaultdict(dict)
    for name in known:
        if ALONE.match(name):
            continue
        for quoted in re.findall(r'^\s*#\s*include\s+"([^"]+)"', (root / name).read_text(errors="replace"), re.M):
            beside = (root / name).parent.joinpath(quoted).resolve()
            if beside.is_file():
                arrows[name][beside.relative_to(root.resolve()).as_posix()] = {quoted}
            elif len(ends[quoted]) == 1:
                arrows[name][ends[quoted][0]] = {quoted}
    return arrows


def between_folders(arrows):
    """{(folder, folder): "file -> file: symbol" of the arrows between them}."""
    between = collections.defaultdict(list)
    for source, targets in arrows.items():
        for target, names in targets.items():
            pair = source.rpartition("/")[0], target.rpartition("/")[0]
            if pair[0] != pair[1]:
                between[pair] += [f"{source} -> {target}: {name}" for name in sorted(names)]
    return between


def check_folders(arrows, allowed, what):
    """Pairs of folders with arrows both ways that the table does not name."""
    between = between_folders(arrows)
    if what == "include": # what a folder shows its own folders is a header of its own
        between = {pair: told for pair, told in between.items() if not pair[0].startswith(pair[1] + "/")}
    seen = set()
    for first, second in sorted(between):
        if first < second and (second, first) in between:
            seen.add((first, second))
            if (first, second) not in allowed:
                less = min(between[first, second], between[second, first], key=len)
                yield f"{first} and {second} {what} each other:\n    " + "\n    ".join(less[:6])
    for pair in sorted(allowed.keys() - seen):
        yield f"{pair[0]} and {pair[1]} do not {what} each other any more: remove them from the table"


def circles(nodes, arrows):
    """Sets of files that reach each other (Tarjan's components, without recursion)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(sorted(arrows.get(root, ()))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in nodes:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on.add(target)
                    work.append((target, iter(sorted(arrows.get(target, ())))))
                    break
                if target in on:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = set(stack[stack.index(node):])
                    del stack[stack.index(node):]
                    on -= part
                    found.append(part)
    return found


def check_circles(arrows, rooms, recursions):
    every = set(arrows) | {target for targets in arrows.values() for target in targets}
    used = set()
    for room, most in sorted(rooms.items()):
        inside = {name for name in every if name.startswith(room + "/")}
        for part in circles(inside, arrows):
            if len(part) <= most:
                continue
            if any(part <= set(files) for files in recursions):
                used |= {files for files in recursions if part <= set(files)}
                continue
            lines = [f"{a} -> {b}: {', '.join(sorted(arrows[a][b])[:4])}"
                     for a in sorted(part) for b in sorted(arrows.get(a, ())) if b in part]
            yield f"{room}: a circle of {len(part)} files, at most {most}:\n    " + "\n    ".join(lines)
    for files in recursions.keys() - used:
        yield f"{files[0]}: no recursion of these {len(files)} files: remove it from RECURSIONS"


# --- names --------------------------------------------------------------------------------

def slot_functions(text):
    """Functions that a designated initialiser of a table of the ABI names: tn_x y = {.slot = function}."""
    found = set()
    for table in re.finditer(r"\btn_\w+ \**\w+(?:\[\w*\])? = \{", text):
        end, depth = table.end(), 1
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found |= set(re.findall(r"\.\w+ = (\w+)", text[table.end():end]))
    return found


def names(root):
    """The numbers of NAMES for the tree; None without Universal Ctags."""
    ctags = shutil.which("ctags")
    if not ctags or b"Universal" not in subprocess.run([ctags, "--version"], stdout=subprocess.PIPE, check=False).stdout:
        return None
    sources = [p for p in tree.files(root, ".c", ".h") if not UNNAMED.match(p.as_posix())]
    slots = {p.as_posix(): slot_functions((root / p).read_text(errors="replace")) for p in sources}
    listing = subprocess.run([ctags, "-x", "--c-kinds=fs", "--output-format=json", "-L", "-"], cwd=root, check=True,
                             input="\n".join(map(str, sources)), stdout=subprocess.PIPE, text=True).stdout
    functions, tags = collections.defaultdict(list), collections.defaultdict(set)
    for tag in map(json.loads, listing.splitlines()):
        if tag["kind"] == "function" and tag["name"].isupper():
            continue  # the head of a function that a macro names: DECOMPOSE(diag) { ... }
        if tag["kind"] == "function":
            if tag["name"] in OTHERS_NAMES or tag["name"] in slots[tag["path"]]:
                continue
            functions[tag["name"]].append(tag["path"])
        elif not tag["name"].startswith(("__anon", "tn_")):
            tags[tag["name"]].add(tag["path"])
    count = sum(map(len, functions.values()))
    repeated = sum(len(paths) for paths in functions.values() if len(set(paths)) > 1)
    one = sum(len(paths) for name, paths in functions.items() if "_" not in name)
    return {"repeated": math.ceil(1000 * repeated / count), "one word": math.ceil(1000 * one / count),
            "tags": sum(len(paths) > 1 for paths in tags.values())}


def check_names(got, most):
    for what, number in got.items():
        if number > most[what]:
            yield f"names: {what}: got {number}, at most {most[what]}: functions are noun_verb with their room's noun"
        elif number < most[what]:
            print(f"names: {what}: {number} of at most {most[what]}")


# --- the check ----------------------------------------------------------------------------

def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for number in range(27):
            (root / "kernels/small").mkdir(parents=True, exist_ok=True)
            (root / f"kernels/small/{number}.c").write_text("int x;\n")
        (root / "core").mkdir()
        (root / "core/long.c").write_text("\n" * 6001)
        (root / "core/a").mkdir()
        (root / "core/b").mkdir()
        for one, other in ("ab", "ba"):
            (root / f"core/{one}/{one}.h").write_text("")
            (root / f"core/{one}/{one}.c").write_text(f'#include "{other}/{other}.h"\n')
        sizes = list(check_sizes(root, {}))
        assert len(sizes) == 2 and "kernels/small: 27 sources" in sizes[1], sizes
        assert not list(check_sizes(root, {"kernels/small": 27, "core": 1})), "a table's folder"
        assert len(list(check_sizes(root, {"kernels/small": 26, "core": 2, "gone": 3}))) == 3
        both = list(check_folders(includes(root), {}, "include"))
        assert len(both) == 1 and both[0].startswith("core/a and core/b include"), both
        assert len(list(check_folders({}, {("core/a", "core/b"): ""}, "include"))) == 1
    ring = {f"r/{i}.c": {f"r/{(i + 1) % 4}.c": {"f"}} for i in range(4)}
    assert len(list(check_circles(ring, {"r": 3}, {}))) == 1
    assert not list(check_circles(ring, {"r": 4}, {}))
    assert not list(check_circles(ring, {"r": 3}, {tuple(ring): "one recursion"}))
    assert len(list(check_circles({}, {"r": 3}, {tuple(ring): "one recursion"}))) == 1
    assert slot_functions("static const tn_ops ops = {.open = device_open, .x = {.y = z}};\nint a = f();") == {"device_open", "z"}
    assert list(check_names({"tags": 2}, {"tags": 1})) and not list(check_names({"tags": 1}, {"tags": 1}))


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    if "--self-test" in sys.argv:
        return self_test()
    if "--build" in sys.argv:
        try:
            arrows = calls(root, pathlib.Path(sys.argv[sys.argv.index("--build") + 1]).resolve())
        except NoObjects as reason:
            print(reason)
            return 77
        wrong = [*check_folders(arrows, BOTH_WAYS, "call"), *check_circles(arrows, CIRCLES, RECURSIONS)]
    else:
        wrong = [*check_sizes(root, LARGE), *check_folders(includes(root), BOTH_INCLUDE, "include")]
        wrong += check_names(names(root) or {}, NAMES)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

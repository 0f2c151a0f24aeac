#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Arrows between the layers point one way: fails on an #include that turns round.

--self-test plants violations in a made-up tree and fails when one is not seen.
"""

import pathlib
import re
import sys
import tempfile

import tree

# Layer (a folder; the longest that matches counts): folders it may include from.
LAYERS = {
    "sdk/include": [],
    "kernels": ["sdk/include"],
    "core": ["sdk/include"],
    "sdk/python": ["sdk/include"],  # the package for Python stands on libtenon, too
    "sdk/lm": ["sdk/include"],  # an application's library; it stands on libtenon
    "sdk/train": ["sdk/include"],  # likewise
    "plugins/backends": ["sdk/include", "kernels"],
    "plugins/backends/cpu-blas": ["sdk/include", "kernels", "plugins/common/openblas"],
    "plugins": ["sdk/include"],
    "plugins/common": ["sdk/include"],  # libraries that plugins of several kinds share
    "plugins/formats/safetensors": ["sdk/include", "plugins/formats/common"],
    "plugins/formats/gguf": ["sdk/include", "plugins/formats/common"],
    "plugins/formats/huggingface": ["sdk/include", "plugins/formats/common"],
    "plugins/ops/ffi": ["sdk/include", "plugins/common/openblas"],
    "plugins/ops/linalg": ["sdk/include", "kernels", "plugins/common/openblas"],
    "plugins/tokenizers": ["sdk/include", "plugins/tokenizers/common"],
    "tools": ["application"],
    "tools/tenon/doctor": ["application", "kernels", "tools/tenon"],  # the processors that a backend would use
    "docs/examples": ["application"],
    "sdk/examples": ["sdk/include"],
    "sdk/templates": ["sdk/include"],
    "sdk/conformance": ["application", "sdk/include", "kernels"],
    "tests": ["*"],
    "tests/suite": ["application", "sdk/include", "sdk/conformance"],  # installed, as the kit is
}
# Each folder below these is a part of its own: parts do not include each other.
PARTS = ["plugins/backends", "plugins/collectives", "plugins/common", "plugins/formats", "plugins/ops", "plugins/tokenizers"]


def tower(*floors):
    """A table of floors from the bottom up: each may include all below it. Those of one tuple
    stand side by side and may not include each other."""
    table, below = {}, []
    for floor in floors:
        beside = [floor] if isinstance(floor, str) else list(floor)
        table.update({name: list(below) for name in beside})
        below += beside
    return table


# A folder: its folders, and for each the others that it may include from. What lies in the
# folder itself (main.c) stands on top: it may include all, and none of its folders may include it,
# unless the table names the file: then it is a floor of its own (a header that all stand on).
FLOORS = {
    "core": tower("base", "attr", "expr", "primitive", "plugin", "device", "graph",
                  "transform", "plan", ("run", "check"), "file", "watch"),
    "core/plan": tower("work", "fuse"),
    "core/plugin": tower("cache", "find", "load", "host"),
    "kernels/compiler": tower("compiler.h", "base", ("preprocess", "ir"), ("types", "passes", "write"),
                              "tree", "emit", "front") | {"tool": ["compiler.h"]},
    "plugins/ops/base": tower("elementwise.h", "pack.h", "common",
                              ("control", "create", "elementwise", "index", "matmul", "move", "random", "reduce", "sort")),
    "sdk/lm": tower("base", ("grammar", "engine"), ("image", "adapt", "spread"), "text"),
    "sdk/conformance": tower("kit", ("plugin", "pack", "packing", "segment", "backend", "format", "tokenizer", "model"),
                             ("primitive", "rules", "kernel", "queue", "family"), "device"),
    "plugins/backends/vulkan": tower("device", ("spirv", "pipeline", "program"), "dispatch", "segment",
                                     ("aot", "jit")),
    "kernels/vulkan": tower(("pack", "program"), "launch.h", "record.h", ("move", "reduce", "sort"), "matmul",
                            ("attention", "conv", "groupwise", "index", "linalg", "quant", "recurrence", "rows")),
    "tools/tenon": {
        "base": [],
        "files": ["base"],
        "plugins": ["base", "files"],
        "cache": ["base", "files", "plugins", "lang"],
        "kernels": ["base", "lang"],
        "devices": ["base"],
        "ops": ["base", "plugins"],
        "header": ["base", "files", "plugins", "ops"],
        "lang": ["base", "ops"],
        "eval": ["base", "lang"],
        "why": ["base", "plugins", "devices", "ops", "lang", "kernels"],
        "doctor": ["base", "files", "devices"],
        "model": ["base", "programs"],
        "new": ["base", "files", "ops"],
        "complete": ["base"],
        "programs": ["base", "files"],
        "run": ["base"],
    },
    "kernels/cpu": tower(("variant.h", "x86.h", "amx.h", "sizes.h", "squares.h", "instruction_sets.h"), "lanes.h",
                         ("conv", "elementwise", "linalg", "matmul", "move", "quant", "reduce", "sort"), ("fft", "random", "recurrence"), "cpu.h", "attention"),
    "plugins/backends/cpu-blas": tower("device", ("program", "ops"), ("run", "blas"), "groupwise"),
}

# Libraries and who may use them; what is in none is taken for the C library's and must be in
# C_LIBRARY or below sys/, linux/ or netinet/.
LIBRARIES = {
    "Python.h": ["sdk/python"],
    "structmember.h": ["sdk/python"],
    "ffi.h": ["plugins/ops/ffi"],
    "archive.h": ["tools"],
    "archive_entry.h": ["tools"],
    "jansson.h": ["core", "sdk/lm", "plugins/formats/common", "plugins/formats/safetensors", "plugins/formats/huggingface", "plugins/formats/graph", "plugins/ops/ffi", "tools", "sdk/conformance"],
    "nettle/sha2.h": ["core", "sdk/lm", "tools"],
    "sodium.h": ["core", "tools"],
    "cblas.h": ["plugins/backends/cpu-blas", "sdk/examples"],
    "vulkan/": ["plugins/backends/vulkan"],
    "glslang/": ["tests/compiler"],
    "pcre2.h": ["plugins/tokenizers/bpe"],
    "utf8proc.h": ["plugins/tokenizers/common"],
    "png.h": ["plugins/formats/image"],
    "jpeglib.h": ["plugins/formats/image"],
    "jerror.h": ["plugins/formats/image"],
    "zlib.h": ["kernels/vulkan/pack", "sdk/train"],
}
C_LIBRARY = set("""
aio alloca assert complex ctype cpuid dirent dlfcn elf emmintrin errno execinfo fcntl fenv float fnmatch ftw
getopt glob immintrin inttypes iso646 libgen limits link locale malloc math netdb poll pthread pwd
regex sched semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio
stdlib stdnoreturn string strings termios tgmath threads time unistd wchar wctype xmmintrin
""".split())
SDK_ONLY = {"stdint", "stddef"}  # all that public headers may include

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:<([^>]+)>|"([^"]+)")', re.M)


def layer_of(path):
    """The longest folder of LAYERS that holds `path`, or None."""
    found = [l for l in LAYERS if path.as_posix().startswith(l + "/")]
    return max(found, key=len, default=None)


def part_of(path):
    """The part that `path` is in: its layer, or a folder below one of PARTS."""
    for parent in PARTS:
        if path.as_posix().startswith(parent + "/"):
            return "/".join(path.parts[: len(pathlib.PurePath(parent).parts) + 1])
    return layer_of(path)


def floors_of(name, floors):
    """The folders of the table `floors` that the file `name` is below, from the outermost, each
    with its floor there ("" for the folder itself)."""
    found = {}
    for parent in sorted(floors, key=len):
        if name.startswith(parent + "/"):
            inside = name[len(parent) + 1:].split("/")
            is_floor = len(inside) > 1 or inside[0] in floors[parent]
            found[parent] = inside[0] if is_floor else ""
    return found


def unordered(table):
    """Floors of a table that come round to themselves, or that it does not list."""
    wrong, left = [], {name: set(below) for name, below in table.items()}
    for name, below in sorted(table.items()):
        wrong += [f"{name} may include {b}, which is not in the table"
                  for b in below if b not in table]
    while left:
        bottom = [name for name, below in left.items() if not below & left.keys()]
        if not bottom:
            return wrong + [f"{', '.join(sorted(left))} include each other in a circle"]
        for name in bottom:
            del left[name]
    return wrong


class Checker:
    def __init__(self, root, floors=None):
        self.root = pathlib.Path(root)
        self.floors = FLOORS if floors is None else floors
        self.sources = tree.files(root, ".c", ".h", ".cc", ".glsl", ".comp")
        self.known = {p.as_posix() for p in self.sources}
        self.application = (self.reachable("sdk/include/tenon/tenon.h") |
                            self.reachable("sdk/include/tenon/control.h") |
                            self.reachable("sdk/include/tenon/file.h") |
                            self.reachable("sdk/include/tenon/retain.h") |
                            self.reachable("sdk/include/tenon/stats.h") |
                            self.reachable("sdk/include/tenon/train.h") |
                            self.reachable("sdk/include/tenon/cache_file.h") |
                            self.reachable("sdk/include/tenon/launches.h") |
                            self.reachable("sdk/include/tenon/graph_format.h") |
                            self.reachable("sdk/include/tenon/share.h") |
                            self.reachable("sdk/include/tenon/lm_adapter.h") |
                            self.reachable("sdk/include/tenon/lm_image.h") |
                            self.reachable("sdk/include/tenon/lm_dist.h") |
                            self.reachable("sdk/include/tenon/dist.h") |
                            self.reachable("sdk/include/tenon/tokenizer.h") |
                            self.reachable("sdk/include/tenon/ops/quant.h") |  # names of tn_file_format
                            self.reachable("sdk/include/tenon/ffi.h") |
                            self.reachable("sdk/include/tenon/checked.h") |
                            self.reachable("sdk/include/tenon/ops/reference.h"))

    def includes(self, path):
        text = (self.root / path).read_text(errors="replace")
        for found in INCLUDE.finditer(text):
            yield text.count("\n", 0, found.start(1 if found[1] else 2)) + 1, found[1], found[2]

    def reachable(self, header):
        """`header` and the public headers that it includes."""
        seen, todo = set(), [header]
        while todo:
            name = todo.pop()
            if name in seen or name not in self.known:
                continue
            seen.add(name)
            todo += ["sdk/include/" + system for _, system, _ in
                     self.includes(pathlib.Path(name)) if system]
        return seen

    def may(self, path, target):
        """May the file `path` include the project's file `target`?"""
        layer, part = layer_of(path), part_of(path)
        allowed = LAYERS[layer]
        if "*" in allowed:
            return True
        if target.startswith(part + "/"):
            return self.is_below(path, target)
        if "application" in allowed and target in self.application:
            return True
        return any(target.startswith(a + "/") for a in allowed)

    def is_below(self, path, target):
        """Is `target` on the floor of `path`, or on one that this floor may use?"""
        others = floors_of(target, self.floors)
        return all(floor in ("", others[parent]) or
                   others[parent] in self.floors[parent].get(floor, [])
                   for parent, floor in floors_of(path.as_posix(), self.floors).items()
                   if parent in others)

    def system(self, path, name):
        """What is wrong with <name>, or None."""
        layer = layer_of(path)
        if name.startswith("tenon/"):
            target = "sdk/include/" + name
            generated = name.startswith("tenon/ops/") and target not in self.known
            if generated:  # <tenon/ops/base.h>: for users of operators only
                fine = "application" in LAYERS[layer] or "*" in LAYERS[layer]
            else:
                fine = self.may(path, target)
            return None if fine else f"{layer} may not include <{name}>"
        for prefix, users in LIBRARIES.items():
            if name.startswith(prefix):
                if "*" in LAYERS[layer] or any(path.as_posix().startswith(u + "/") for u in users):
                    return None
                return f"only {', '.join(users)} may use <{name}>"
        stem = name.removesuffix(".h")
        if layer == "sdk/include" and stem not in SDK_ONLY:
            return f"public headers may include <stdint.h> and <stddef.h> only, not <{name}>"
        if "*" in LAYERS[layer] or stem in C_LIBRARY or name.startswith(("sys/", "linux/", "netinet/")):
            return None
        return f"<{name}> is neither the C library's nor a library that {layer} may use"

    def quoted(self, path, name):
        """What is wrong with "name", or None."""
        beside = (self.root / path.parent / name).resolve()
        if beside.is_file():
            candidates = [beside.relative_to(self.root.resolve()).as_posix()]
        else:  # found through an include path: any file that ends so
            candidates = [k for k in self.known if k.endswith("/" + name)]
        if not candidates or any(self.may(path, c) for c in candidates):
            return None  # none at all: generated in the build folder
        own = [f"{parent}/{floor}" for parent, floor in floors_of(path.as_posix(), self.floors).items()
               if floor]
        who = own[-1] if own else part_of(path)
        return f'{who} may not include "{name}" ({candidates[0]})'

    def check_tables(self):
        """What is wrong with the tables of floors themselves."""
        for parent, table in self.floors.items():
            yield from (f"{parent}:1: {why}" for why in unordered(table))
            yield from (f"{parent}:1: the table of floors has {name}, which is neither a source nor a folder with sources"
                        for name in table
                        if f"{parent}/{name}" not in self.known
                        and not any(k.startswith(f"{parent}/{name}/") for k in self.known))

    def check(self):
        wrong = list(self.check_tables())
        for path in self.sources:
            if layer_of(path) is None:
                wrong.append(f"{path}:1: in no layer of the table")
                continue
            wrong += [f"{path}:1: {parent}/{floor} is not in the table of floors"
                      for parent, floor in floors_of(path.as_posix(), self.floors).items()
                      if floor and floor not in self.floors[parent]]
            for line, system, quoted in self.includes(path):
                why = self.system(path, system) if system else self.quoted(path, quoted)
                if why:
                    wrong.append(f"{path}:{line}: {why}")
        return wrong


PLANTED = {  # file: (its text, is it wrong?)
    "sdk/include/tenon/types.h": ("#include <stdint.h>\n", False),
    "sdk/include/tenon/tenon.h": ("#include <tenon/types.h>\n", False),
    "sdk/include/tenon/backend.h": ("#include <tenon/types.h>\n", False),
    "sdk/include/tenon/bad_bool.h": ("#include <stdbool.h>\n", True),
    "sdk/include/tenon/bad_up.h": ('#include "../../../core/base/a.h"\n', True),
    "kernels/cpu/good.c": ('#include <math.h>\n#include "generated_table.h"\n', False),
    "kernels/cpu/k.h": ("", False),
    "kernels/cpu/fine.c": ("#include <tenon/types.h>\n", False),
    "kernels/cpu/bad.c": ('#include "base/a.h"\n', True),
    "core/base/a.h": ("#include <tenon/backend.h>\n", False),
    "core/graph/good.c": ('#include "../base/a.h"\n#include "base/a.h"\n', False),
    "core/graph/bad_kernels.c": ('#include "cpu/k.h"\n', True),
    "core/graph/bad_plugin.c": ('#include "../../plugins/ops/base/b.h"\n', True),
    "core/graph/bad_blas.c": ("#include <cblas.h>\n", True),
    "core/graph/bad_ops.c": ("#include <tenon/ops/base.h>\n", True),
    "plugins/ops/base/b.h": ("#include <tenon/types.h>\n", False),
    "plugins/ops/nn/bad_sibling.c": ('#include "../base/b.h"\n', True),
    "plugins/ops/nn/bad_kernel.c": ('#include "cpu/k.h"\n', True),
    "plugins/backends/vulkan/device/v.h": ("#include <vulkan/vulkan.h>\n", False),
    "plugins/backends/vulkan/jit/good.c": ('#include "../device/v.h"\n', False),
    "plugins/backends/null/bad_vulkan.c": ('#include "../vulkan/device/v.h"\n', True),
    "plugins/backends/null/bad_core.c": ('#  include "../../../core/base/a.h"\n', True),
    "tools/tenon/good.c": ("#include <tenon/tenon.h>\n#include <tenon/ops/base.h>\n", False),
    "tools/tenon/bad_abi.c": ("#include <tenon/backend.h>\n", True),
    "tools/tenon/bad_core.c": ('#include "base/a.h"\n', True),
    "tools/tenon/bad_library.c": ("#include <curl/curl.h>\n", True),
    "tests/unit/good.c": ('#include "base/a.h"\n#include <criterion/criterion.h>\n', False),
    "lost/bad.c": ("", True),
    "tower/top.c": ('#include "roof/r.h"\n#include "left/l.h"\n', False),
    "tower/top.h": ("", False),
    "tower/floor.h": ("", False),
    "tower/bad_floor.h": ('#include "ground/g.h"\n', True),
    "tower/roof/r.h": ('#include "ground/g.h"\n#include "../left/l.h"\n', False),
    "tower/roof/bad_top.c": ('#include "../top.h"\n', True),
    "tower/left/l.h": ('#include "ground/g.h"\n#include "l2.h"\n', False),
    "tower/left/l2.h": ("", False),
    "tower/left/bad_up.c": ('#include "roof/r.h"\n', True),
    "tower/right/bad_beside.c": ('#include "../left/l.h"\n', True),
    "tower/ground/g.h": ('#include "../floor.h"\n', False),
    "tower/ground/bad_up.c": ('#include "left/l.h"\n', True),
    "tower/attic/bad_unknown.c": ("", True),
    "tower/roof/stairs/s.h": ('#include "ground/g.h"\n', False),
    "tower/roof/stairs/bad_up.c": ('#include "../rail/rail.h"\n', True),
    "tower/roof/rail/rail.h": ('#include "../stairs/s.h"\n', False),
}
PLANTED_FLOORS = {"tower": tower(("floor.h", "bad_floor.h"), "ground", ("left", "right"), "roof"),
                  "tower/roof": tower("stairs", "rail")}
PLANTED_TABLES = {  # name: (a table, is it wrong?)
    "ordered": (tower("a", ("b", "c")), False),
    "round": ({"a": ["b"], "b": ["c"], "c": ["a"]}, True),
    "unknown": ({"a": ["b"]}, True),
}


def self_test_tables():
    """The tables that are judged wrongly."""
    for name, (table, wrong) in PLANTED_TABLES.items():
        if bool(unordered(table)) != wrong:
            print(f"the table '{name}' is {'wrong' if wrong else 'right'}, and was not seen so")
            yield name


def self_test():
    LAYERS["tower"] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, _) in PLANTED.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        seen = {line.split(":")[0] for line in
                Checker(folder, PLANTED_FLOORS).check()}
    expected = {name for name, (_, wrong) in PLANTED.items() if wrong}
    for name in sorted(expected - seen):
        print(f"planted in {name}, and not seen")
    for name in sorted(seen - expected):
        print(f"{name} is right, and was reported")
    return 1 if list(self_test_tables()) or seen != expected else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    wrong = Checker(root).check()
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

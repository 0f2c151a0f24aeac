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
    "kernels": [],
    "core": ["sdk/include"],
    "plugins/backends": ["sdk/include", "kernels"],
    "plugins/backends/cpu-blas": ["sdk/include", "kernels", "plugins/openblas"],
    "plugins/backends/vulkan": ["sdk/include", "kernels", "plugins/backends/vulkan-common"],
    "plugins/backends/vulkan-jit": ["sdk/include", "kernels", "plugins/backends/vulkan-common"],
    "plugins": ["sdk/include"],
    "plugins/ops/ffi": ["sdk/include", "plugins/openblas"],
    "tools": ["application"],
    "docs/examples": ["application"],
    "sdk/examples": ["sdk/include"],
    "sdk/templates": ["sdk/include"],
    "sdk/conformance": ["application", "sdk/include"],
    "tests": ["*"],
}
# Each folder below these is a part of its own: parts do not include each other.
PARTS = ["plugins/backends", "plugins/ops"]

# Libraries and who may use them; what is in none is taken for the C library's and must be in
# C_LIBRARY or below sys/.
LIBRARIES = {
    "ffi.h": ["plugins/ops/ffi"],
    "archive.h": ["tools"],
    "archive_entry.h": ["tools"],
    "jansson.h": ["core", "plugins/ops/ffi", "tools", "sdk/conformance"],
    "sodium.h": ["core", "tools"],
    "cblas.h": ["plugins/backends/cpu-blas", "tools/bench", "sdk/examples"],
    "openblas_config.h": ["tools/bench"],
    "vulkan/": ["plugins/backends/vulkan-common", "plugins/backends/vulkan",
                "plugins/backends/vulkan-jit"],
    "glslang/": ["kernels/compiler"],
    "zlib.h": ["tools"],
}
C_LIBRARY = set("""
aio alloca assert complex ctype cpuid dirent dlfcn elf errno execinfo fcntl fenv float fnmatch ftw
getopt glob immintrin inttypes iso646 libgen limits link locale malloc math poll pthread pwd
regex sched semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio
stdlib stdnoreturn string strings termios tgmath threads time unistd wchar wctype
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


class Checker:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.sources = tree.files(root, ".c", ".h", ".cc", ".glsl", ".comp")
        self.known = {p.as_posix() for p in self.sources}
        self.application = (self.reachable("sdk/include/tenon/tenon.h") |
                            self.reachable("sdk/include/tenon/ffi.h") |
                            self.reachable("sdk/include/tenon/checked.h"))

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
        if "*" in allowed or target.startswith(part + "/"):
            return True
        if "application" in allowed and target in self.application:
            return True
        return any(target.startswith(a + "/") for a in allowed)

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
        if "*" in LAYERS[layer] or stem in C_LIBRARY or name.startswith(("sys/", "linux/")):
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
        return f'{part_of(path)} may not include "{name}" ({candidates[0]})'

    def check(self):
        wrong = []
        for path in self.sources:
            if layer_of(path) is None:
                wrong.append(f"{path}:1: in no layer of the table")
                continue
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
    "kernels/cpu/bad.c": ("#include <tenon/types.h>\n", True),
    "core/base/a.h": ("#include <tenon/backend.h>\n", False),
    "core/graph/good.c": ('#include "../base/a.h"\n#include "base/a.h"\n', False),
    "core/graph/bad_kernels.c": ('#include "cpu/k.h"\n', True),
    "core/graph/bad_plugin.c": ('#include "../../plugins/ops/base/b.h"\n', True),
    "core/graph/bad_blas.c": ("#include <cblas.h>\n", True),
    "core/graph/bad_ops.c": ("#include <tenon/ops/base.h>\n", True),
    "plugins/ops/base/b.h": ("#include <tenon/types.h>\n", False),
    "plugins/ops/nn/bad_sibling.c": ('#include "../base/b.h"\n', True),
    "plugins/ops/nn/bad_kernel.c": ('#include "cpu/k.h"\n', True),
    "plugins/backends/vulkan-common/v.h": ("#include <vulkan/vulkan.h>\n", False),
    "plugins/backends/vulkan/good.c": ('#include "../vulkan-common/v.h"\n', False),
    "plugins/backends/null/bad_common.c": ('#include "../vulkan-common/v.h"\n', True),
    "plugins/backends/null/bad_core.c": ('#  include "../../../core/base/a.h"\n', True),
    "tools/tenon/good.c": ("#include <tenon/tenon.h>\n#include <tenon/ops/base.h>\n", False),
    "tools/tenon/bad_abi.c": ("#include <tenon/backend.h>\n", True),
    "tools/tenon/bad_core.c": ('#include "base/a.h"\n', True),
    "tools/tenon/bad_library.c": ("#include <curl/curl.h>\n", True),
    "tests/unit/good.c": ('#include "base/a.h"\n#include <cmocka.h>\n', False),
    "lost/bad.c": ("", True),
}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, _) in PLANTED.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        seen = {line.split(":")[0] for line in Checker(folder).check()}
    expected = {name for name, (_, wrong) in PLANTED.items() if wrong}
    for name in sorted(expected - seen):
        print(f"planted in {name}, and not seen")
    for name in sorted(seen - expected):
        print(f"{name} is right, and was reported")
    return 1 if seen != expected else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    wrong = Checker(root).check()
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An operator and a quantised format that are added to the tree as docs/CONTRIBUTING.md says work on every
backend.

  added.py SOURCE BUILD COMPILER

Copies what changes of SOURCE, adds the files and rows of the document's sections, of MOST files at most
each, makes the plugins again with the commands of the build folder (embed.py with COMPILER, tenon-glslc),
and runs both on the CPU and on both Vulkan backends. Ends with 77 where one of these has no device.
"""
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

SECTIONS = ("## Adding an operator with kernels everywhere", "## Adding a quantised format")
MOST = 8 # files that each takes
KERNELS = "kernels/vulkan"
VULKAN = "plugins/backends/vulkan"
COPIED = (KERNELS, "kernels/cpu", VULKAN, "plugins/backends/cpu-blas", "plugins/ops/nn", "plugins/ops/quant",
          "sdk/include")
LISTS = ("plugins/ops/nn/pack.h", "plugins/backends/cpu-blas/ops/kernels.h",
         "kernels/vulkan/rows/variants.txt") # which the build reads
# A plugin's folder, and how embed.py makes its kernels.
PLUGINS = {"nn": ("plugins/ops/nn", None, None),
           "quant": ("plugins/ops/quant", None, None),
           "cpu-blas": ("plugins/backends/cpu-blas", None, None),
           "vulkan": (VULKAN + "/aot", "spirv", "spirv.c"),
           "vulkan-jit": (VULKAN + "/jit", "sources", "jit_sources.c")}
BACKENDS = ("cpu-blas", "vulkan", "vulkan-jit")
VALUES = [[-3.5, -0.25, 0.0, 1.0, 2.75, 0.5], [4.0, -6.0, 1.5, 0.75, 6.0, -1.0]]
# Expressions, whether the gate is first, and how near the result is.
CASES = {"sglu(astype(x, f32))": (False, 1e-6), "sglu(astype(x, f32), gate_first=true)": (True, 1e-6),
         "sglu(x)": (False, 1e-14), "sglu(astype(x, f16))": (False, 4e-3)}
VARIANTS = {"vulkan": ("sglu_f32", "sglu_f64", "sglu_f16"), "vulkan-jit": ("sglu_f32", "sglu_f64", "sglu_f16")}


PACKED = "org.tenon.o4_r16" # the packed rows of the format


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        sys.exit("%.2000s: %d\n%s" % (shlex.join(map(str, command)), done.returncode, done.stdout[-3000:]))
    return done.stdout


def blocks(document, section):
    """[(file, "behind" or "before", line, block)] of the section: a block stands behind a paragraph that
    ends with its file, and the line of the file that it goes to. Without a line it is a new file, or the
    end of one."""
    text = document.read_text().split(section + "\n")[1].split("\n## ")[0]
    return re.findall(r"`([^`]+)`(?:, (behind|before) `([^`]+)`)?:\n\n```\w*\n(.*?)```\n", text, re.S)


def insert(path, where, line, text):
    lines = path.read_text().splitlines(keepends=True)
    if not line and path.suffix == ".h":
        where, line = "before", lines[-1].strip() # the end of the guard
    found = [i for i, each in enumerate(lines) if each.rstrip("\\\n").strip() == line]
    if line and len(found) != 1:
        sys.exit("%s: %r stands there %d times, expected once" % (path, line, len(found)))
    at = len(lines) if not line else found[0] + (where == "behind")
    path.write_text("".join(lines[:at] + [text] + lines[at:]))


def add(source, tree, section):
    """Adds what the section has to the copy of the tree. The files that are new."""
    files, new = {}, []
    for file, where, line, text in blocks(source / "docs/CONTRIBUTING.md", section):
        files[file] = path = tree / file
        if path.exists():
            insert(path, where, line, text)
        else:
            path.write_text(text)
            new.append(path)
    print("%s: %d files: %s" % (section.strip("# "), len(files), ", ".join(files)))
    if not 1 < len(files) <= MOST:
        sys.exit("got %d files, expected %d at most" % (len(files), MOST))
    return new


def check_lists(build):
    """That the build asks the lists which files there are, whenever one changes."""
    again = re.search(r"^build build\.ninja.*$", (build / "build.ninja").read_text(), re.M)[0]
    for file in LISTS:
        if file not in again:
            sys.exit("%s: the build does not read it" % file)


class Tree:
    def __init__(self, source, build, compiler, folder):
        self.source, self.build, self.compiler, self.tree = source, build, compiler, folder
        self.made = folder / "made"
        self.made.mkdir()
        self.objects = {}
        self.embed("list", self.made / "modules.h")
        with (build / "compile_commands.json").open() as file:
            self.commands = {entry["output"]: entry for entry in json.load(file)}

    def embed(self, *words):
        run([sys.executable, self.tree / KERNELS / "pack/embed.py", *words],
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))

    def compile(self, like, file):
        """The object of a file, compiled as the build compiles those in the folder `like`; files of the
        copy and those that are made are found first."""
        if (like, file) in self.objects:
            return self.objects[like, file]
        entry = next(entry for output, entry in self.commands.items()
                     if output.startswith(like) and output.endswith(".c.o"))
        words = shlex.split(entry["command"])
        out = self.made / ("%d.o" % len(self.objects))
        words[words.index("-o") + 1] = str(out)
        words[words.index("-MF") + 1] = str(out) + ".d"
        words[words.index("-c") + 1] = str(file)
        first = next(i for i, word in enumerate(words) if word.startswith("-I"))
        words[first:first] = ["-I%s" % folder for folder in (
            self.made, self.tree / "plugins/backends/cpu-blas", self.tree / VULKAN, self.tree / "kernels",
            self.tree / KERNELS / "pack", self.tree / "sdk/include")]
        run([*words, "-O1", "-Wno-maybe-uninitialized"], cwd=entry["directory"]) # which takes half as long; each runs for moments
        self.objects[like, file] = out
        return out

    def copied(self, batch):
        """A batch of files that the build compiles together, of the copy's files where it has them."""
        lines = []
        for name in re.findall(r'#include "(.*)"', batch.read_text()):
            path = (batch.parent / name).resolve()
            copy = self.tree / path.relative_to(self.source)
            lines.append('#include "%s"\n' % (copy if copy.exists() else path))
        out = self.made / batch.name
        out.write_text("".join(lines))
        return out

    def plugin_object(self, folder, target, words):
        """The object of those that are linked which has plugin.c, and the same of the copy."""
        plain = target + ".p/plugin.c.o"
        if plain in words:
            return plain, self.compile(target + ".p/", self.tree / folder / "plugin.c")
        for word in words:
            batch = self.build / folder / word.replace("meson-generated_.._", "").split("/")[-1][:-2]
            if word.startswith(target + ".p/") and "/plugin.c" in batch.read_text():
                return word, self.compile(word, self.copied(batch))
        return sys.exit("%s: none of its objects has plugin.c" % target)

    def link(self, folder, target, objects, out):
        """Links the plugin as the build does, where these objects are found first."""
        ninja = shutil.which("ninja") or shutil.which("ninja-build")
        if not ninja:
            print("no ninja, whose file has the command that links")
            sys.exit(77)
        words = shlex.split(run([ninja, "-C", self.build, "-t", "commands", "-s", target]
                                ).strip().split("\n")[-1])
        old, new = self.plugin_object(folder, target, words)
        words[words.index(old)] = str(new)
        at = words.index("-o") + 2
        words[at - 1] = str(out)
        words[at:at] = ["-Wl,--allow-multiple-definition", *map(str, objects)]
        run(words, cwd=self.build)

    def quant_loops(self):
        """The products with quantised weights, for each instruction set."""
        likes = sorted(output for output in self.commands if output.startswith("kernels/cpu/libkernels-cpu-quant-"))
        return [self.compile(like, self.tree / "kernels/cpu/quant" / ("quant_amx.c" if "-amx.a" in like else "quant.c"))
                for like in likes]

    def make(self, name, plugins, new):
        """The plugin, staged: with the new files below its folder, and those that read a changed list."""
        folder, form, generated = PLUGINS[name]
        target = "%s/org.tenon.%s.so" % (folder, name)
        objects = [self.compile(target + ".p/", path) for path in new
                   if path.suffix == ".c" and self.tree / folder in path.parents]
        if name == "quant":
            objects += [self.compile(target + ".p/", path) for path in sorted((self.tree / folder).glob("*.c"))
                        if path.name != "plugin.c"]
        if name == "cpu-blas":
            objects += self.quant_loops() + [
                self.compile(target + ".p/", self.tree / folder / "blas" / file)
                for file in ("kernels_quant.c", "kernels_experts.c")]
        if form:
            made = self.made / name
            made.mkdir()
            self.embed(form, made / generated, *(["--compiler", self.compiler] if form == "spirv" else []))
            objects.append(self.compile(target + ".p/", made / generated))
            # Each record has the number of the modules.
            objects += [self.compile(VULKAN + "/libtenon-vulkan-cold.a.p/", path)
                        for path in sorted((self.tree / KERNELS).glob("*/plan_*.c"))]
        out = self.made / ("org.tenon.%s.so" % name)
        self.link(folder, target, objects, out)
        run([self.source / "sdk/glue/tenon-plugin", "stage", "--tenon",
             self.build / "tools/tenon/tenon", "--id", "org.tenon." + name, "--directory", plugins,
             "--license", self.source / "LICENSE", "--stamp", self.made / "stamp", out])


def sglu(row, gate_first):
    n = len(row) // 2
    gate, value = (row[:n], row[n:]) if gate_first else (row[n:], row[:n])
    return [v / (1 + math.exp(-g)) for v, g in zip(value, gate)]


def check(build, backend, plugins, cache):
    """That the backend runs its kernels, and they compute sglu."""
    env = dict(os.environ, TENON_PLUGIN_PATH=str(plugins), TENON_BACKEND=backend,
               TENON_CACHE_DIR=str(cache), TENON_CHECK="1")
    command, x = build / "tools/tenon/tenon", "x=" + json.dumps(VALUES)
    expression = ", ".join(CASES)
    told = run([command, "why", "sglu(astype(x, f32))", x], env=env)
    runs = re.search(r"^nn\.sglu/1, .* with kernel '\w+' of org\.tenon\.%s\.$" % backend, told, re.M)
    if not runs:
        sys.exit("%s: got no kernel of its own, expected one\n%s" % (backend, told))
    listed = run([command, "kernels", expression, x], env=env) if backend in VARIANTS else ""
    for kernel in VARIANTS.get(backend, ()):
        if not re.search("^%s +[12] " % kernel, listed, re.M):
            sys.exit("%s: got no launch of %s, expected one\n%s" % (backend, kernel, listed))
    results = json.loads(run([command, "eval", expression, x, "--json"], env=env))["results"]
    for (case, (gate_first, near)), result in zip(CASES.items(), results):
        expected = [value for row in VALUES for value in sglu(row, gate_first)]
        got = sum(result["data"], []) if isinstance(result["data"][0], list) else result["data"]
        for a, b in zip(got, expected, strict=True):
            if not abs(a - b) <= near * abs(b):
                sys.exit("%s: %s: got %.17g, expected %.17g" % (backend, case, a, b))
    print("%s: %s" % (backend, runs[0]))


def halves(a, b):
    return struct.unpack("<e", bytes([a, b]))[0]


def decoded(block):
    """The elements of a block of o4, as the document says."""
    d = halves(*block[:2])
    return [d * (2 * q - 15) for q in [byte & 15 for byte in block[2:]] + [byte >> 4 for byte in block[2:]]]


def evaluate(build, env, expressions, given):
    given = ["%s=astype(%s, %s)" % (name, json.dumps(value), dtype) for name, (value, dtype) in given.items()]
    done = run([build / "tools/tenon/tenon", "eval", ", ".join(expressions), *given, "--json"], env=env)
    return [result["data"] for result in json.loads(done)["results"]]


def check_format(build, backend, plugins, cache):
    """That o4 is decoded as its bytes mean, and products with plain and packed rows are those with its
    elements. Blocks are made on the CPU, where the rule is."""
    env = dict(os.environ, TENON_PLUGIN_PATH=str(plugins), TENON_BACKEND="cpu-blas", TENON_CACHE_DIR=str(cache))
    weights = [[math.sin(7 * i + j * j) for j in range(64)] for i in range(16)]
    x = [[math.cos(i + 3 * j) for j in range(64)] for i in range(2)]
    rows = evaluate(build, env, ['quantize(w, format="o4")'], {"w": (weights, "f32")})[0]
    packed = 'pack(w, format="o4", to="%s")' % PACKED
    expressions = ['dequantize(w, format="o4")', 'quantized_matmul(x, w, format="o4", exact=true)',
                   'quantized_matmul(x, w, format="o4")']
    if backend == "cpu-blas": # whose kernels read packed rows
        expressions.append('quantized_matmul(x, %s, format="%s")' % (packed, PACKED))
    values, *products = evaluate(build, dict(env, TENON_BACKEND=backend), expressions,
                                 {"w": (rows, "u8"), "x": (x, "f32")})
    for row, got, weight in zip(rows, values, weights, strict=True):
        expected = decoded(row[:18]) + decoded(row[18:])
        if got != expected:
            sys.exit("%s: o4: got %s, expected %s" % (backend, got, expected))
        if max(abs(a - b) for a, b in zip(expected, weight)) > 0.07: # half of the distance between two values
            sys.exit("%s: o4: got %s, expected values near to %s" % (backend, expected, weight))
    for expression, product in zip(expressions[1:], products, strict=True):
        for row, got in zip(x, product, strict=True):
            for weight, a in zip(values, got, strict=True):
                b = sum(u * v for u, v in zip(row, weight))
                if abs(a - b) > (1e-4 if "exact" in expression else 0.05): # else x is rounded to 8 bits
                    sys.exit("%s: %s: got %g, expected %g" % (backend, expression, a, b))
    print("%s: %s" % (backend, ", ".join(expressions)))


def has_device(build, backend):
    """Whether the build's own plugin has a device."""
    listed = json.loads(run([build / "tools/tenon/tenon", "devices", "--json"], env=dict(
        os.environ, TENON_PLUGIN_PATH=str(build / "plugins-staged"))))
    return any(row["backend"] == backend and not row["reason"] for row in listed)


def main():
    source, build, compiler = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    if not all(has_device(build, name) for name in BACKENDS):
        print("no device of each backend")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        tree, plugins = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "plugins"
        plugins.mkdir()
        shutil.copytree(build / "plugins-staged/org.tenon.base", plugins / "org.tenon.base")
        for copied in COPIED:
            shutil.copytree(source / copied, tree / copied)
        new = [path for section in SECTIONS for path in add(source, tree, section)]
        check_lists(build)
        made = Tree(source, build, compiler, tree)
        for name in PLUGINS:
            made.make(name, plugins, new)
        (tree / "cache").mkdir(mode=0o700)
        for name in BACKENDS:
            check(build, name, plugins, tree / "cache")
            check_format(build, name, plugins, tree / "cache")


if __name__ == "__main__":
    main()

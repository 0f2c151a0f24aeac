#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An operator that is added to the tree as docs/CONTRIBUTING.md says works on every backend.

  added.py SOURCE BUILD COMPILER

Copies what changes of SOURCE, adds the files and rows of the document's section, of which there may be
MOST at most, makes the plugins again with the commands of the build folder (embed.py with COMPILER,
tenon-glslc), and runs the operator on the CPU and on both Vulkan backends. Ends with 77 where one of them
has no device.
"""
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SECTION = "## Adding an operator with kernels everywhere"
MOST = 8 # files that it takes
KERNELS = "kernels/vulkan"
VULKAN = "plugins/backends/vulkan"
COPIED = (KERNELS, VULKAN, "plugins/backends/cpu-blas", "plugins/ops/nn", "sdk/include")
# Lists that the build reads: behind which line a row goes.
LISTS = {"plugins/ops/nn/pack.h": r"#define NN_PRIMITIVES\(X\) +\\\n",
         "plugins/backends/cpu-blas/ops/kernels.h": r"#define CPU_KERNELS\(X\) +\\\n"}
# A plugin's folder, and how embed.py makes its kernels.
PLUGINS = {"nn": ("plugins/ops/nn", None, None),
           "cpu-blas": ("plugins/backends/cpu-blas", None, None),
           "vulkan": (VULKAN + "/aot", "spirv", "spirv.c"),
           "vulkan-jit": (VULKAN + "/jit", "sources", "jit_sources.c")}
BACKENDS = ("cpu-blas", "vulkan", "vulkan-jit")
VALUES = [[-3.5, -0.25, 0.0, 1.0, 2.75, 0.5], [4.0, -6.0, 1.5, 0.75, 6.0, -1.0]]
# Expressions, whether the gate is first, and how near the result is.
CASES = {"glu(astype(x, f32))": (False, 1e-6), "glu(astype(x, f32), gate_first=true)": (True, 1e-6),
         "glu(x)": (False, 1e-14), "glu(astype(x, f16))": (False, 4e-3)}
VARIANTS = {"vulkan": ("glu_f32", "glu_f64", "glu_f16"), "vulkan-jit": ("glu_f32", "glu_f64", "glu_f16")}


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        sys.exit("%s: %d\n%s" % (shlex.join(map(str, command)), done.returncode, done.stdout[-3000:]))
    return done.stdout


def blocks(document, section):
    """{file: the block behind a paragraph that ends with it} of the section."""
    text = document.read_text().split(section + "\n")[1].split("\n## ")[0]
    return {file: block for file, block in re.findall(r"`([^`]+)`:\n\n```\w*\n(.*?)```\n", text, re.S)}


def insert(path, before, text):
    """Puts the text behind what matches `before`, which is there once."""
    content = path.read_text()
    found = list(re.finditer(before, content))
    if len(found) != 1:
        sys.exit("%s: %r stands there %d times, expected once" % (path, before, len(found)))
    at = found[0].end()
    path.write_text(content[:at] + text + content[at:])


def add(source, tree):
    """The copy of the tree with the operator; the files that are new."""
    for folder in COPIED:
        shutil.copytree(source / folder, tree / folder)
    files, new = blocks(source / "docs/CONTRIBUTING.md", SECTION), []
    if len(files) > MOST:
        sys.exit("the operator takes %d files, expected %d at most: %s" % (len(files), MOST, ", ".join(files)))
    for file, text in files.items():
        path = tree / file
        if not path.exists():
            path.write_text(text)
            new.append(path)
        elif file in LISTS:
            insert(path, LISTS[file], text)
        elif path.suffix == ".h":
            insert(path, r"(?=#endif // \w+_H\n\Z)", text)
        else:
            path.write_text(path.read_text() + text)
    return files, new


def check_lists(build, files):
    """That the build asks the lists which files there are, whenever one changes."""
    rules = (build / "build.ninja").read_text()
    again = re.search(r"^build build\.ninja.*$", rules, re.M)[0]
    for file in files:
        if (file in LISTS or file.endswith("variants.txt")) and file not in again:
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
        if file in self.objects:
            return self.objects[file]
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
        run(words, cwd=entry["directory"])
        self.objects[file] = out
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

    def make(self, name, plugins, new):
        """The plugin, staged: with the new files below its folder, and those that read a changed list."""
        folder, form, generated = PLUGINS[name]
        target = "%s/org.tenon.%s.so" % (folder, name)
        objects = [self.compile(target + ".p/", path) for path in new
                   if path.suffix == ".c" and self.tree / folder in path.parents]
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


def glu(row, gate_first):
    n = len(row) // 2
    gate, value = (row[:n], row[n:]) if gate_first else (row[n:], row[:n])
    return [v / (1 + math.exp(-g)) for v, g in zip(value, gate)]


def check(build, backend, plugins, cache):
    """That the backend runs its kernels, and they compute glu."""
    env = dict(os.environ, TENON_PLUGIN_PATH=str(plugins), TENON_BACKEND=backend,
               TENON_CACHE_DIR=str(cache), TENON_CHECK="1")
    command, x = build / "tools/tenon/tenon", "x=" + json.dumps(VALUES)
    expression = ", ".join(CASES)
    told = run([command, "why", "glu(astype(x, f32))", x], env=env)
    runs = re.search(r"^nn\.glu/1, .* with kernel '\w+' of org\.tenon\.%s\.$" % backend, told, re.M)
    if not runs:
        sys.exit("%s: got no kernel of its own, expected one\n%s" % (backend, told))
    listed = run([command, "kernels", expression, x], env=env) if backend in VARIANTS else ""
    for kernel in VARIANTS.get(backend, ()):
        if not re.search("^%s +[12] " % kernel, listed, re.M):
            sys.exit("%s: got no launch of %s, expected one\n%s" % (backend, kernel, listed))
    results = json.loads(run([command, "eval", expression, x, "--json"], env=env))["results"]
    for (case, (gate_first, near)), result in zip(CASES.items(), results):
        expected = [value for row in VALUES for value in glu(row, gate_first)]
        got = sum(result["data"], []) if isinstance(result["data"][0], list) else result["data"]
        for a, b in zip(got, expected, strict=True):
            if not abs(a - b) <= near * abs(b):
                sys.exit("%s: %s: got %.17g, expected %.17g" % (backend, case, a, b))
    print("%s: %s" % (backend, runs[0]))


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
        files, new = add(source, tree)
        print("%d files: %s" % (len(files), ", ".join(files)))
        check_lists(build, files)
        made = Tree(source, build, compiler, tree)
        for name in PLUGINS:
            made.make(name, plugins, new)
        (tree / "cache").mkdir(mode=0o700)
        for name in BACKENDS:
            check(build, name, plugins, tree / "cache")


if __name__ == "__main__":
    main()

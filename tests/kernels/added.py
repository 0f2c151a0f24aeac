#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A kernel that is added to the tree as docs/CONTRIBUTING.md says works in both Vulkan backends.

  added.py SOURCE BUILD COMPILER

Copies what changes of SOURCE, adds the kernel of the document's section, makes the two plugins again
with the commands of the build folder (embed.py with COMPILER, tenon-glslc), and runs the kernel on
both. Nobody says anything about either backend. Ends with 77 where one of them has no device.
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

SECTION = "## Adding a kernel of the Vulkan backends"
KERNELS_FOLDER = "kernels/vulkan"
FAMILY = KERNELS_FOLDER + "/rows" # which the document adds its kernel to
BACKEND = "plugins/backends/vulkan"
BACKENDS = {"vulkan": ("aot", "spirv", "spirv.c"), "vulkan-jit": ("jit", "sources", "jit_sources.c")}
OTHERS = ("org.tenon.base", "org.tenon.nn")
VALUES = [-3.5, -0.25, 0.0, 1.0, 2.75]
EXPRESSION = "silu(x), silu(astype(x, f32)), silu(astype(x, f16))"
KERNELS = {"silu_f64": 1e-14, "silu_f32": 1e-6, "silu_f16": 2e-3}  # and how near they are


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        sys.exit("%s: %d\n%s" % (shlex.join(map(str, command)), done.returncode, done.stdout[-3000:]))
    return done.stdout


def blocks(document):
    """{file: the block behind a paragraph that ends with it} of the section."""
    text = document.read_text().split(SECTION + "\n")[1].split("\n## ")[0]
    return {file: block for file, block in re.findall(r"`([^`]+)`:\n\n```\w*\n(.*?)```\n", text, re.S)}


def insert(path, after, text):
    content = path.read_text()
    if content.count(after) != 1:
        sys.exit("%s: %r stands there %d times, expected once" % (path, after, content.count(after)))
    path.write_text(content.replace(after, after + text))


def add(source, tree):
    """The copy of the tree, with the kernel."""
    for folder in (KERNELS_FOLDER, BACKEND):
        shutil.copytree(source / folder, tree / folder)
    (tree / "sdk").symlink_to(source / "sdk")
    files = blocks(source / "docs/CONTRIBUTING.md")
    for file in ("silu.comp", "plan_silu.c"):
        (tree / FAMILY / file).write_text(files.pop(file))
    with (tree / FAMILY / "variants.txt").open("a") as variants:
        variants.write(files.pop(FAMILY + "/variants.txt"))
    records = tree / FAMILY / "records.h"
    head = re.search(r"#define \w+_KERNELS\(X\) +\\\n", records.read_text())[0]
    insert(records, head, files.pop(FAMILY + "/records.h"))
    insert(records, "tn_status vk_plan_cross_entropy(const tn_vulkan_plan *plan);\n",
           "tn_status vk_plan_silu(const tn_vulkan_plan *plan);\n")
    if files:
        sys.exit("the document has blocks that are not used: " + ", ".join(files))


class Tree:
    def __init__(self, source, build, compiler, folder):
        self.source, self.build, self.compiler, self.tree = source, build, compiler, folder
        with (build / "compile_commands.json").open() as file:
            self.commands = {entry["output"]: entry for entry in json.load(file)}

    def compile(self, like, file, made):
        """Compiles a file of the copy as the build compiles the object `like`, or objects in a folder
        of that name; files of the copy and those in `made` are found first."""
        entry = next(entry for output, entry in self.commands.items() if output.startswith(like))
        words = shlex.split(entry["command"])
        out = made / (file.stem + ".o")
        words[words.index("-o") + 1] = str(out)
        words[words.index("-MF") + 1] = str(out) + ".d"
        words[words.index("-c") + 1] = str(file)
        first = next(i for i, word in enumerate(words) if word.startswith("-I"))
        words[first:first] = ["-I%s" % folder for folder in (
            made, file.parent, self.tree / BACKEND, self.tree / "kernels",
            self.tree / KERNELS_FOLDER / "pack")]
        run(words, cwd=entry["directory"])
        return out

    def link(self, name, objects, added, out):
        """Links the plugin as the build does, with other objects in places."""
        target = "%s/%s/org.tenon.%s.so" % (BACKEND, BACKENDS[name][0], name)
        ninja = shutil.which("ninja") or shutil.which("ninja-build")
        if not ninja:
            print("no ninja, whose file has the command that links")
            sys.exit(77)
        words = shlex.split(run([ninja, "-C", self.build, "-t", "commands", "-s", target]
                                ).strip().split("\n")[-1])
        for old, new in objects.items():
            words[words.index(old)] = str(new)
        words[words.index("-o") + 1] = str(out)
        words.insert(words.index("-o") + 2, str(added))
        run(words, cwd=self.build)

    def make(self, name, plugins):
        """The plugin, staged."""
        place, form, generated = BACKENDS[name]
        made = self.tree / "made" / name
        made.mkdir(parents=True)
        run([sys.executable, self.tree / KERNELS_FOLDER / "pack/embed.py", form, made / generated,
             made / "modules.h"] + (["--compiler", self.compiler] if form == "spirv" else []),
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
        folder = "%s/%s" % (BACKEND, place)
        inside = "%s/org.tenon.%s.so.p/" % (folder, name)
        objects = {inside + "plugin.c.o": self.tree / folder / "plugin.c",
                   inside + "meson-generated_.._%s.o" % generated: made / generated}
        objects = {like: self.compile(like, file, made) for like, file in objects.items()}
        plan = self.compile(BACKEND + "/libtenon-vulkan-cold.a.p/", self.tree / FAMILY / "plan_silu.c", made)
        out = made / ("org.tenon.%s.so" % name)
        self.link(name, objects, plan, out)
        run([self.source / "sdk/glue/tenon-plugin", "stage", "--tenon",
             self.build / "tools/tenon/tenon", "--id", "org.tenon." + name, "--directory", plugins,
             "--license", self.source / "LICENSE", "--stamp", made / "stamp", out])


def check(build, backend, plugins, cache):
    """That the backend runs the kernels, and they compute silu."""
    env = dict(os.environ, TENON_PLUGIN_PATH=str(plugins), TENON_BACKEND=backend,
               TENON_CACHE_DIR=str(cache))
    command = build / "tools/tenon/tenon"
    x = "x=" + json.dumps(VALUES)
    listed = run([command, "kernels", EXPRESSION, x], env=env)
    results = json.loads(run([command, "eval", EXPRESSION, x, "--json"], env=env))["results"]
    for (kernel, near), result in zip(KERNELS.items(), results):
        if not re.search("^%s +1 " % kernel, listed, re.M):
            sys.exit("%s: got no launch of %s, expected one\n%s" % (backend, kernel, listed))
        for value, got in zip(VALUES, result["data"]):
            expected = value / (1 + math.exp(-value))
            if not abs(got - expected) <= near * abs(expected):
                sys.exit("%s: %s(%g): got %.17g, expected %.17g"
                         % (backend, kernel, value, got, expected))
    print("%s: %s" % (backend, ", ".join(KERNELS)))


def has_device(build, backend):
    """Whether the build's own plugin has a device."""
    listed = json.loads(run([build / "tools/tenon/tenon", "devices", "--json"], env=dict(
        os.environ, TENON_PLUGIN_PATH=str(build / "plugins-staged"))))
    return any(row["backend"] == backend and not row["reason"] for row in listed)


def main():
    source, build, compiler = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    if not all(has_device(build, name) for name in BACKENDS):
        print("no device of both backends")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        tree, plugins = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "plugins"
        plugins.mkdir()
        for other in OTHERS:
            shutil.copytree(build / "plugins-staged" / other, plugins / other)
        add(source, tree)
        made = Tree(source, build, compiler, tree)
        for name in BACKENDS:
            made.make(name, plugins)
        (tree / "cache").mkdir(mode=0o700)
        for name in BACKENDS:
            check(build, name, plugins, tree / "cache")


if __name__ == "__main__":
    main()

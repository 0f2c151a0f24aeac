#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `tenon new` writes builds with an installed SDK alone, passes its tests and the check, and
computes, before anyone adds a line."""

import json
import os
import pathlib
import re
import resource
import sys
import time

import bench

FLAGS = ["--c", "--glsl", "--with-vjp"]
KERNELS = [
    (["--for", "nn.softmax"], ["softmax"]),
    (["--for", "nn.relu", "--c", "--glsl"], ["kernel on cpu-blas", "kernel on vulkan"]),
]
# Operators, and whether their kernel computes from the beginning.
OPERATORS = {"base.add": True, "base.exp": True, "base.tanh": True, "nn.relu": True,
             "base.maximum": True, "base.less": False, "base.where": False, "base.power": False,
             "base.left_shift": False, "base.floor_divide": False, "base.sum": False,
             "base.take": False, "base.concatenate": False, "base.random_bits": False,
             "base.clip": False, "base.sigmoid": False, "nn.conv2d": False, "nn.adam": False}
# Built and run; the others are compiled.
BUILT = [["--expr"], ["--c", "--with-vjp"], ["--expr", "--c", "--glsl", "--with-vjp"]]
LICENSES = ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MPL-2.0", "0BSD"]
REFUSED = [
    (["op-pack", "3d"], "expected a C identifier"),
    (["op-pack", "Smooth"], "expected a C identifier"),
    (["op-pack", "../x"], "expected a C identifier"),
    (["op-pack", "a" * 41], "at most 40"),
    (["op-pack", ""], "expected a C identifier"),
    (["op-pack", "nn"], "Tenon uses it"),
    (["op-pack", "ok", "--op", "int"], "no word of C"),
    (["op-pack", "ok", "--op", "exp"], "the C library has a function"),
    (["op-pack", "ok", "--id", "acme"], "is no plugin id"),
    (["op-pack", "ok", "--id", "com..acme"], "is no plugin id"),
    (["op-pack", "ok", "--id", "org.tenon.base"], "Tenon's own"),
    (["op-pack", "ok", "--license", "Apache-2"], "did you mean 'Apache-2.0'?"),
    (["op-pack", "ok", "--vendor", 'a"b'], "without quotes"),
    (["op-pack", "ok", "--gsl"], "did you mean --glsl?"),
    (["op-pack"], "too few arguments"),
    (["backend", "ok", "--glsl"], "unknown option --glsl"),
    (["backend", "null"], "Tenon uses it"),
    (["backed", "ok"], "did you mean 'tenon new backend'?"),
    (["kernels", "ok"], "--for"),
    (["kernels", "ok", "--for", "nn.softmax", "--glsl"], "leave --glsl out"),
    (["kernels", "ok", "--for", "nn.linear"], "is made of other primitives"),
]


class New(bench.Bench):
    def new(self, kind, name, *flags, where=None):
        where = where or self.folder / "projects"
        where.mkdir(exist_ok=True)
        self.tenon("new", kind, name, *flags, cwd=where)
        return where / name

    def run_tests(self, project):
        """What the project builds passes its own tests and the check."""
        build = self.build(project)
        self.run("meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs")
        return build

    def try_pack(self, flags):
        name = "pack" + str(BUILT.index(flags))
        build = self.run_tests(self.new("op-pack", name, *flags))
        self.tenon("plugin", "install", build / f"com.example.{name}")
        value = self.tenon("eval", f"{name}.axpby(x, y, alpha=4, beta=2)", "x=[1,2]", "y=[10,20]")
        assert value.splitlines()[1] == "[24. 48.]", value
        header = build / f"com.example.{name}/{name}.h"
        assert self.tenon("header", f"com.example.{name}") == header.read_text()
        includes = self.run("pkg-config", "--cflags", "tenon").split()
        self.run("c++", "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                 *includes, header)
        self.tenon("plugin", "remove", f"com.example.{name}")

    def begins_kernels(self, flags, tests):
        project = self.new("kernels", f"fast{len(tests)}", *flags)
        build = self.run_tests(project)
        listed = self.run("meson", "test", "-C", build, "--list").splitlines()
        assert "check" in listed and set(tests) <= set(listed), listed

    def translates(self):
        """kernels for operators of all kinds compile, and compute where an expression tells how"""
        includes = self.run("pkg-config", "--cflags", "tenon-sdk").split()
        for number, (operator, computes) in enumerate(OPERATORS.items()):
            project = self.new("kernels", f"made{number}", "--for", operator)
            source = (project / "plugin.c").read_text()
            assert ("TN_ROW_KERNEL" in source) == computes, f"{operator}: {source}"
            assert re.search(r"@[A-Z_]+@", source) is None, source
            assert f'"{operator}/1"' in source, source
        sources = (self.folder / "projects").glob("made*/plugin.c")
        self.run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *includes,
                 *sources)

    def is_quick(self):
        """from an empty folder to a first result in five commands and 20 s of machine time"""
        if self.args.sanitize != "none":
            raise bench.Skip("plugins that are built without sanitizers are refused")
        place = self.folder / "quick"
        place.mkdir()
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        told = self.tenon("new", "op-pack", "x", "--expr", cwd=place)
        commands = [l.strip() for l in told.splitlines() if l.startswith("  ")]
        assert len(commands) <= 4, told
        for command in commands:
            value = self.run("sh", "-c", command, cwd=place)
        wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"# {seconds:.1f} s of machine time, {wall:.1f} s passed")
        assert value.splitlines()[1] == "[24. 48.]" and seconds <= 20, (value, seconds)

    def compiles_all(self):
        """every other combination compiles without a warning"""
        includes = self.run("pkg-config", "--cflags", "tenon-sdk").split()
        tool = self.run("pkg-config", "--variable=tool", "tenon-sdk").strip()
        for number in range(8):
            flags = [f for bit, f in enumerate(FLAGS) if number >> bit & 1]
            project = self.new("op-pack", f"some{number}", "--op", "blend", *flags)
            if "--glsl" in flags:
                self.run(tool, "shader", "--name", "blend", "-o", "blend_shader.h", "blend.comp",
                         cwd=project)
            self.run("cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                     "-fsyntax-only", *includes, "plugin.c", cwd=project)

    def makes_wheel(self):
        """pip makes a wheel of an op pack, which is then there in the package for Python"""
        if self.args.sanitize != "none":
            raise bench.Skip("an interpreter without a sanitizer imports no module that has one")
        try:
            package = self.installed("tenon/_core.abi3.so").parent.parent
        except RuntimeError:
            raise bench.Skip("the package for Python is not built") from None
        project, packages = self.new("op-pack", "wheeled", "--python"), self.folder / "packages"
        offline = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
        self.run(sys.executable, "-m", "pip", "install", *offline, "--target", packages, project)
        code = """if True:
            import inspect, tenon as tn
            x, y = tn.array([1.0, 2.0]), tn.array([10.0, 20.0])
            print(inspect.signature(tn.wheeled.axpby), tn.wheeled.axpby(x, y, alpha=4, beta=2).tolist())
            print(tn.grad(lambda x: tn.sum(tn.wheeled.axpby(x, y, alpha=4)))(x).tolist())"""
        env = {"PYTHONPATH": f"{packages}:{package}", "LD_LIBRARY_PATH": str(self.installed("libtenon.so.0").parent)}
        said = self.run(sys.executable, "-c", code, env=env).splitlines()
        assert said == ["(x, y, alpha=1.0, beta=1.0) [24.0, 48.0]", "[4.0, 4.0]"], said

    def begins_backend(self):
        """a new backend builds, passes its tests, and computes"""
        build = self.run_tests(self.new("backend", "plain", "--id", "com.acme.plain-one"))
        self.tenon("plugin", "install", build / "com.acme.plain-one")
        value = self.tenon("eval", "sum(x * x)", "x=[1,2,3]", backend="plain")
        assert "14" in value.split(), value
        self.tenon("plugin", "remove", "com.acme.plain-one")

    def begins_format(self):
        """a new format builds, passes its tests, and is found by extension and first bytes"""
        build = self.run_tests(self.new("format", "some_2", "--id", "com.acme.some"))
        self.tenon("plugin", "install", build / "com.acme.some")
        for extension in ("some_2", "other"):
            file = self.folder / f"x.{extension}"
            if extension == "other":
                os.rename(self.folder / "x.some_2", file)
            else:
                self.tenon("eval", "astype([[1, 2, 3]], i16)", "-o", file)
            value = json.loads(self.tenon("eval", "--json", "x * x", f"x={file}"))["results"][0]
            assert (value["dtype"], value["data"]) == ("i16", [[1, 4, 9]]), value
        file.write_bytes(file.read_bytes().replace(b"1 3", b"1 9223372036854775808"))
        told = self.tenon("eval", "x", f"x={file}", status=1)
        assert "expected 256 bytes that begin like" in told, told
        self.tenon("plugin", "remove", "com.acme.some")

    def begins_model(self):
        """a new architecture builds, passes its tests, and its models are run"""
        build = self.run_tests(self.new("model", "some_3", "--id", "com.acme.models"))
        random = "architecture=some_3,layers=2,width=64,heads=4,kv_heads=2,inner=128,format=f32"
        run = ("bench", "llm", "--tokens", "4", "--rounds", "1", "--random")
        told = self.tenon(*run, random, status=1)
        assert "some_3" in told, told
        self.tenon("plugin", "install", build / "com.acme.models")
        self.tenon(*run, random)
        told = self.tenon(*run, random.replace("kv_heads=2", "kv_heads=3"), status=1)
        assert "random: 4 heads of 16 share 3 of keys" in told, told
        self.tenon("plugin", "remove", "com.acme.models")

    def writes_licenses(self):
        """each license can be chosen, and is named in the sources"""
        for number, license in enumerate(LICENSES):
            project = self.new("backend", f"b{number}", "--license", license, "--vendor", "A & Co")
            text = (project / "LICENSE").read_text()
            assert len(text) > 500 and "@" not in text.replace("@mozilla", ""), text[:200]
            if license not in ("Apache-2.0", "MPL-2.0"):
                assert "A & Co" in text, text[:200]
            for file in ("meson.build", "device.c"):
                assert f"SPDX-License-Identifier: {license}\n" in (project / file).read_text()

    def runs_from_build(self):
        """the command in a build folder finds the templates of its sources"""
        place = self.folder / "from-build"
        place.mkdir()
        self.run(pathlib.Path(self.args.build).resolve() / "tools/tenon/tenon", "new", "op-pack",
                 "here", cwd=place)
        assert (place / "here/plugin.c").exists()

    def refuses(self):
        """wrong names and flags are refused, and nothing is written"""
        empty = self.folder / "empty"
        empty.mkdir()
        for arguments, saying in REFUSED:
            told = self.tenon("new", *arguments, cwd=empty, status=2)
            assert told.startswith("tenon: ") and saying in told, f"{arguments}: {told}"
            assert told.count("\n") == 1 and not os.listdir(empty), f"{arguments}: {told}"

    def keeps_folders(self):
        """a folder, file or link that is there already is left alone"""
        place = self.folder / "there"
        place.mkdir()
        (place / "folder").mkdir()
        (place / "file").write_text("mine")
        (place / "link").symlink_to("nowhere")
        for name in ("folder", "file", "link"):
            told = self.tenon("new", "op-pack", name, cwd=place, status=1)
            assert "is there already" in told, told
        assert sorted(os.listdir(place)) == ["file", "folder", "link"]
        assert (place / "file").read_text() == "mine" and not os.listdir(place / "folder")

    def leaves_nothing_half(self):
        """where a file cannot be written, nothing is left"""
        place = self.folder / "full"
        place.mkdir()
        done = self.finished("sh", "-c", f"ulimit -f 1; exec {self.command} new op-pack big",
                             cwd=place)
        assert done.returncode == 1 and done.stderr.startswith("tenon: "), done
        assert not os.listdir(place), os.listdir(place)

    def blames_lines(self):
        """an error in an expression or a shader names file and line"""
        project = self.new("op-pack", "wrong", "--glsl")
        plugin, shader = project / "plugin.c", project / "axpby.comp"
        good = plugin.read_text()
        plugin.write_text(good.replace('"alpha * x + beta * y"', '"alpha * x + bata * y"'))
        line = 1 + plugin.read_text()[:plugin.read_text().index("bata")].count("\n")
        self.configure(project)
        told = self.ninja_fails(project)
        assert f"plugin.c:{line}: error:" in told and "did you mean 'beta'?" in told, told
        plugin.write_text(good)
        shader.write_text(shader.read_text().replace("alpha * x[x_at + i]", "alpha * z[x_at + i]"))
        line = 1 + shader.read_text()[:shader.read_text().index("z[x_at")].count("\n")
        told = self.ninja_fails(project)
        assert f"axpby.comp:{line}:" in told and ": error: 'z'" in told, told
        shader.write_text('#version 460\n#include "other.glsl"\nvoid main() {}\n')
        told = self.ninja_fails(project)
        assert "axpby.comp:2: " in told and "without #include" in told, told

    def blames_push_constants(self):
        """a push constant that the shader has and the pack does not list stops the build"""
        project = self.new("op-pack", "pushes", "--glsl")
        plugin = project / "plugin.c"
        plugin.write_text(plugin.read_text().replace("TN_PUSH_NUMBERS(2)", "TN_PUSH_NUMBERS(1)"))
        self.configure(project)
        assert "not as long as the block of the shader" in self.ninja_fails(project)

    def blames_attributes(self):
        """wrong attributes of a one-line operator are one error each, none is no error"""
        includes = self.run("pkg-config", "--cflags", "tenon-sdk").split()
        for text, saying in [('"x * x"', None), ('(), "x * x"', None), ('(a, 1), "a * x"', None),
                             ('(a), "a * x"', "an attribute needs a default"),
                             ('(a, 1, b), "a * x"', "names and defaults in turn"),
                             ('a, 1, "a * x"', "attributes stand in parentheses"),
                             ("(" + ", ".join(f"a{i}, {i}" for i in range(9)) + '), "a0 * x"', "at most eight")]:
            source = self.folder / "one.c"
            source.write_text("#include <tenon/pack.h>\n"
                              f'TN_EXPR_OP(one, "acme.one/1", (x), {text});\n'
                              'TN_PACK("com.acme.one", "1.0.0", "Acme", TN_PRIMITIVES(&one));\n')
            done = self.finished("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", *includes, "-c", source, "-o", "/dev/null")
            assert (done.returncode == 0) == (saying is None), f"{text}: {done.stderr}"
            errors = [line for line in done.stderr.split("\n") if " error: " in line]
            assert not saying or len(errors) == 1 and saying in errors[0], f"{text}: {errors}"

    def emits_defaults(self):
        """the header of an operator with any default compiles"""
        includes = self.run("pkg-config", "--cflags", "tenon").split()
        folder = self.folder / "defaults"
        folder.mkdir()
        (folder / "one.c").write_text(
            "#include <tenon/pack.h>\n"
            'TN_EXPR_OP(one, "acme.one/1", (x), (a, __builtin_nan(""), b, -__builtin_inf(), c, 1e300), '
            '"a * x + b + c");\n'
            'TN_PACK("com.acme.one", "1.0.0", "Acme", TN_PRIMITIVES(&one));\n')
        self.run("cc", "-std=c11", "-shared", "-fPIC", *self.sanitizers(), *includes, folder / "one.c", "-o", folder / "one.so")
        (folder / "one.h").write_text(self.tenon("header", folder / "one.so"))
        (folder / "call.c").write_text('#include "one.h"\n')
        self.run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", *includes, "-c", folder / "call.c", "-o", "/dev/null")

    def installs_documents(self):
        """documents that headers cite are installed, and the links between documents hold"""
        share = self.command.parent.parent / "share/doc/tenon"
        cited = {match for header in (self.command.parent.parent / "include").rglob("*.h")
                 for match in re.findall(r"docs/[\w/-]+\.md", header.read_text())}
        assert cited and not [c for c in cited if not (share / c).exists()], cited
        for page in share.rglob("*.md"):
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
                assert (page.parent / link).exists(), f"{page}: {link}"

    def ninja_fails(self, project):
        done = self.finished("ninja", "-C", "build", cwd=project)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    def installs_for_all(self):
        """meson install puts the plugin where it is told, for every user"""
        place = self.folder / "dest"
        self.run("meson", "install", "-C", self.folder / "projects/pack0/build", "--no-rebuild",
                 env={"DESTDIR": str(place)})
        found = sorted(p.name for p in place.glob("**/tenon/plugins/com.example.pack0/*"))
        assert found == ["LICENSE", "com.example.pack0.so", "ops.json", "pack0.h", "plugin.json"], found


def tests_of(new):
    tests = [("tenon installs", new.install, ())]
    for flags in BUILT:
        tests.append((f"an op pack with {' '.join(flags)} builds, passes its tests, and computes",
                      new.try_pack, (flags,)))
    for flags, listed in KERNELS:
        tests.append((f"kernels {' '.join(flags)} build and pass their tests",
                      new.begins_kernels, (flags, listed)))
    return tests + [(t.__doc__, t, ()) for t in (
        new.is_quick, new.translates, new.makes_wheel, new.begins_backend, new.begins_format, new.begins_model, new.compiles_all, new.writes_licenses,
        new.runs_from_build, new.refuses, new.keeps_folders, new.leaves_nothing_half,
        new.blames_lines, new.blames_push_constants,
        new.blames_attributes, new.emits_defaults, new.installs_documents, new.installs_for_all)]


if __name__ == "__main__":
    sys.exit(bench.run(tests_of, New))

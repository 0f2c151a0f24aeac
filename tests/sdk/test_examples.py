#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of docs/examples are built with one line against an installed Tenon, without a
warning, and print what they say at their tops."""

import re
import sys

import bench
from bench import Skip

WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def promised(text):
    """What the comment at the top says that it prints; " ..." at an end stands for anything."""
    lines = re.search(r"^// Prints:\n((?://   .*\n)+)", text, re.M)[1].splitlines()
    return "".join(re.escape(l[5:].removesuffix(" ...")) + (".*" if l.endswith(" ...") else "") + "\n" for l in lines)


class Examples(bench.Bench):
    def installs(self):
        """Tenon installs"""
        self.install()
        self.env["LD_LIBRARY_PATH"] = str(self.installed("libtenon.so.0").parent)

    def runs(self, path):
        text = path.read_text()
        if "<tenon/ffi.h>" in text and not (self.plugins / "org.tenon.ffi").exists():
            raise Skip("the plugin org.tenon.ffi is not built")
        flags = self.run("pkg-config", "--cflags", "--libs", "tenon").split()
        program = self.folder / path.stem
        self.run("cc", *WARNINGS, *self.sanitizers(), path, *flags, "-o", program)
        printed = self.run(program)
        assert re.fullmatch(promised(text), printed), f"expected\n{promised(text)}printed\n{printed}"

    def networks_are_built(self):
        """The folder of networks is built as its line says"""
        flags = self.run("pkg-config", "--cflags", "--libs", "tenon-train").split()
        program = self.folder / "train"
        sources = sorted((self.args.source / "docs/examples/networks").glob("*.c"))
        for source in sources:
            lines = len(source.read_text().splitlines())
            assert lines < 150, f"{source.name} has {lines} lines, expected less than 150"
        self.run("cc", "-Wall", "-Wextra", "-Werror", *self.sanitizers(), *sources, *flags, "-o", program)
        said = self.run(program, "lenet", "--data", self.folder / "absent", status=1)
        assert "dataset-fashion-mnist" in said, said
        assert "expected mlp, lenet, resnet or transformer" in self.run(program, "other", status=2)
        assert "wrong option --nothing" in self.run(program, "lenet", "--nothing", status=2)

    def comparison_runs(self):
        """The column C of the comparison with PyTorch and MLX runs"""
        text = (self.args.source / "docs/coming-from-pytorch-or-mlx.md").read_text()
        rows = [line.strip("| ").split(" | ") for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")]
        cells = [re.findall("`(.*)`", row[4])[0] for row in rows[1:]]
        assert len(cells) == 20, cells
        program = self.folder / "comparison.c"
        frame = re.search(r"```c\n(.*?)```", text, re.S)[1]
        for comment, rows in ('// "an operator of your own"', cells[-1:]), ("// the other rows", cells[:-1]):
            assert comment in frame, f"the page's program has no line '{comment}'"
            frame = frame.replace(comment, "\n".join(rows))
        program.write_text(frame)
        flags = self.run("pkg-config", "--cflags", "--libs", "tenon").split()
        self.run("cc", "-Wall", "-Werror", "-Wno-unused-variable", *self.sanitizers(), program, *flags, "-o",
                 self.folder / "comparison")
        self.run(self.folder / "comparison", cwd=self.folder)

    def readme_runs(self):
        """The program in C of the README is built by its line and prints what it says"""
        text = (self.args.source / "README.md").read_text()
        code = next(block for block in re.findall(r"```c\n(.*?)```", text, re.S) if "int main(" in block)
        program = self.folder / "app.c"
        program.write_text(code)
        flags = self.run("pkg-config", "--cflags", "--libs", "tenon").split()
        self.run("cc", *WARNINGS, *self.sanitizers(), program, *flags, "-o", self.folder / "app")
        printed, said = self.run(self.folder / "app"), re.search(r"printf\(.*// (.*)", code)[1]
        assert printed == said + "\n", f"got {printed!r}, the comment says {said!r}"

    def are_listed(self):
        """The list of examples names each of them"""
        listed = (self.args.source / "docs/examples/README.md").read_text()
        for path in self.programs():
            assert f"| [{path.name}]({path.name}) |" in listed, path.name

    def programs(self):
        return sorted((self.args.source / "docs/examples").glob("*.c"))


def tests(examples):
    found = [("Tenon installs", examples.installs, ())]
    found += [(f"{p.name} prints what it says", examples.runs, (p,)) for p in examples.programs()]
    found += [("the folder of networks is built as its line says", examples.networks_are_built, ())]
    found += [("the README's program in C runs", examples.readme_runs, ())]
    found += [("the comparison with PyTorch and MLX runs", examples.comparison_runs, ())]
    return found + [("the list of examples names each of them", examples.are_listed, ())]


if __name__ == "__main__":
    sys.exit(bench.run(tests, Examples))

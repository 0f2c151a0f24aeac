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
    return found + [("the list of examples names each of them", examples.are_listed, ())]


if __name__ == "__main__":
    sys.exit(bench.run(tests, Examples))

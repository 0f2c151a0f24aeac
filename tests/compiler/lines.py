#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Errors in kernels name the author's file, line and column: #line in the texts that are embedded.

  lines.py TENON-GLSLC TENON-PLUGIN"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "kernels" / "vulkan" / "pack")]
import embed  # pylint: disable=wrong-import-position
import sentences  # pylint: disable=wrong-import-position

GLSLC, PLUGIN = map(os.path.abspath, sys.argv[1:])
FAMILIES = pathlib.Path(embed.FAMILIES)
KERNELS = sorted(p.relative_to(FAMILIES).as_posix() for p in FAMILIES.glob("*/*.comp"))


def numbered(text, skips):
    """[(file, number, line)] as a compiler counts them. With `skips` each group behind an #if that
    is not at the outer level of the text is left out, as the compiler does where it is false."""
    file, number, depth, out = "", 1, 0, []
    for line in text.split("\n"):
        told = re.match(r'#line (\d+) "(.*)"$', line)
        directive = re.match(r"\s*#\s*(if|endif)", line)
        depth -= bool(directive and directive.group(1) == "endif")
        if told and not (skips and depth > 0):
            file, number = told.group(2), int(told.group(1))
            continue
        # The line of an #endif itself is not known behind what was left out.
        if line.strip() and not told and not (skips and (depth > 0 or directive)):
            out.append((file, number, line))
        depth += bool(directive and directive.group(1) == "if")
        number += 1
    assert depth == 0
    return out


def original(name, known={}):  # pylint: disable=dangerous-default-value
    if name not in known:
        made = embed.MADE.get(name)
        known[name] = (made() if made else
                       pathlib.Path(FAMILIES, name).read_text(encoding="utf-8")).split("\n")
    return known[name]


def lines_are_those_of_the_files():
    count = 0
    for kernel in KERNELS + ["program/expression.glsl", "program/complex.glsl"]:
        for skips in (False, True):
            for file, number, line in numbered(embed.resolve(kernel, ""), skips):
                if line.startswith("#version"):
                    continue
                want = re.sub(r"/\*.*?\*/", "", original(file)[number - 1])
                assert want.startswith(line), (kernel, file, number, line, want)
                count += 1
    assert count > 10000, count


def refused(text, *flags):
    done = subprocess.run([GLSLC, "-", "-o", "/dev/null", *flags], input=text.encode(),
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 1, done
    return done.stderr.decode()


def an_error_in_a_kernel_names_its_file():
    """also behind groups that are skipped, and in an included file"""
    for file, wanted in (("matmul/matmul_grid.glsl", "void main()"),
                         ("matmul/matmul.glsl", "barrier();"),
                         ("program/types.glsl", "#define PASTE(a, b)")):
        text = embed.resolve("matmul/matmul.comp", "some/")
        at = text.index(wanted, text.index(f'"some/{file}"'))
        text = text[:at] + "@" + text[at:]
        flags = next([f"-D{name}={value}" for name, value in defines]
                     for _, source, defines, _ in embed.read_variants()
                     if source == "matmul/matmul.comp" and ("TILE", "64") in defines)
        found = [number for number, line in enumerate(original(file), 1) if wanted in line]
        told = refused(text, *flags)
        assert any(told.startswith(f"some/{file}:{number}:") for number in found), (told, found)


def a_pack_s_text_names_its_file():
    text = ("// a comment\n/* #version 100\n*/\n#version 460\n"
            "layout(local_size_x = 1) in;\n\nvoid main() {}\n")
    pathlib.Path('my "own".comp').write_text(text)
    command = [PLUGIN, "shader", "--name", "own", "--compiler", GLSLC, "-o", "own.h"]
    subprocess.run([*command, 'my "own".comp'], check=True, timeout=60)
    numbers = re.search(r"own_glsl_code\[\d+\] = {([^}]*)}",
                        pathlib.Path("own.h").read_text()).group(1)
    embedded = bytes(int(n) for n in numbers.split(",") if n.strip())[:-1].decode()
    assert '#line 5 "my _own_.comp"\n' in embedded, embedded
    told = refused(embedded.replace("void main() {}", "void main() { x = 1; }"))
    assert told.startswith("my _own_.comp:7:15: error: 'x' is not declared"), told
    pathlib.Path("own.comp").write_text(text.replace("main() {}", "main() { x = 1; }"))
    done = subprocess.run([*command, "own.comp"], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert "own.comp:7:15: error: 'x' is not declared" in done.stderr, done.stderr


if __name__ == "__main__":
    sentences.run([lines_are_those_of_the_files, an_error_in_a_kernel_names_its_file,
                   a_pack_s_text_names_its_file])

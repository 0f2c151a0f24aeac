# SPDX-License-Identifier: MIT
"""tenon-glslc from outside: outputs, options, messages, exit statuses.

  command.py TENON-GLSLC"""

import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import sentences  # pylint: disable=wrong-import-position

GLSLC = os.path.abspath(sys.argv[1])
SHADER = """#version 450
layout(local_size_x = WIDTH) in;
layout(std430, binding = 0) buffer X { float x[]; };
float twice(float a) { return a * 2.0; }
void main() { x[gl_GlobalInvocationID.x] = twice(x[gl_GlobalInvocationID.x]); }
"""


def run(*args, status=0, **options):
    done = subprocess.run([GLSLC, *args], capture_output=True, timeout=60, **options)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    assert bool(done.stderr) == bool(status), (args, done.stderr)
    return done


def said(*args, status=1, **options):
    return run(*args, status=status, **options).stderr.decode()


def words(data):
    assert len(data) % 4 == 0 and len(data) > 20
    out = struct.unpack(f"={len(data) // 4}I", data)
    assert out[0] == 0x07230203
    return out


def shader(text=SHADER, name="twice.comp"):
    pathlib.Path(name).write_text(text)
    return name


def words_go_to_the_output():
    run(shader(), "-DWIDTH=64")
    assert words(pathlib.Path("twice.comp.spv").read_bytes())[1] == 0x00010300
    run(shader(), "-D", "WIDTH=64", "-o", "a.spv")
    data = pathlib.Path("a.spv").read_bytes()
    assert data == pathlib.Path("twice.comp.spv").read_bytes()
    assert run(shader(), "-DWIDTH=64", "-o", "-").stdout == data
    assert run("-", "-DWIDTH=64", input=SHADER.encode()).stdout == data
    assert run("-", "-DWIDTH=32", input=SHADER.encode()).stdout != data
    assert sorted(os.listdir()) == ["a.spv", "twice.comp", "twice.comp.spv"]


def versions_are_those_of_the_target():
    for flags, version in ((["--target", "vulkan1.1"], 3), (["--target=vulkan1.2"], 5),
                           (["--target", "vulkan1.3"], 6), (["--spirv", "1.4"], 4)):
        out = run(shader(), "-DWIDTH=1", "-o", "-", *flags).stdout
        assert words(out)[1] == 0x00010000 + (version << 8), flags


def functions_are_kept_with_their_names():
    small = run(shader(), "-DWIDTH=1", "-o", "-").stdout
    kept = run(shader(), "-DWIDTH=1", "-o", "-", "--functions").stdout
    assert b"twice" in kept and b"twice" not in small
    assert run(shader(), "-DWIDTH=1", "-o", "-", "-O0").stdout not in (small, kept)


def text_behind_the_preprocessor():
    out = run(shader("#version 450\n#define A(x) x ## 1\nA(b) __LINE__ W\n"), "-DW",
              "--preprocess").stdout
    assert out == b"b1 3 1\n", out


def includes_are_found_beside_their_file_then_in_folders():
    os.makedirs("sub")
    os.makedirs("other")
    pathlib.Path("sub/a.glsl").write_text('#include "b.glsl"\n')
    pathlib.Path("sub/b.glsl").write_text("beside\n")
    pathlib.Path("other/c.glsl").write_text("folder\n")
    text = '#version 450\n#include "sub/a.glsl"\n#include <c.glsl>\n'
    out = run(shader(text), "-Iother", "--preprocess", "-o", "o", "-MD").stdout
    assert out == b"" and pathlib.Path("o").read_text() == "beside\nfolder\n"
    assert pathlib.Path("o.d").read_text() == \
        "o: twice.comp sub/a.glsl sub/b.glsl other/c.glsl\n"
    run(shader(text), "-I", "other", "--preprocess", "-o", "o", "-MF", "d")
    assert pathlib.Path("d").read_text() == pathlib.Path("o.d").read_text()
    told = said(shader(text), "--preprocess")
    assert told.startswith("twice.comp:3:10: error: c.glsl is included"), told


def errors_show_the_line():
    told = said(shader(SHADER.replace("a * 2.0", "a *\tb")), "-DWIDTH=1", "-o", "o.spv")
    lines = told.split("\n")
    assert lines[0].startswith("twice.comp:4:35: error: ") and "'b'" in lines[0], told
    assert lines[1] == "float twice(float a) { return a *\tb; }", told
    assert lines[2] == " " * 33 + "\t^", told
    assert not os.path.exists("o.spv")
    os.makedirs("sub")
    pathlib.Path("sub/wrong.glsl").write_text("\n  @\n")
    told = said(shader('#version 450\n#include "sub/wrong.glsl"\n'))
    assert told == "sub/wrong.glsl:2:3: error: the character '@' begins no token\n  @\n  ^\n", \
        told
    told = said("-", input=b"")
    assert told.startswith("<stdin>:1:1: error: the source begins without #version"), told


def files_that_cannot_be_used():
    assert "no.comp: No such file or directory" in said("no.comp")
    assert "Is a directory" in said(".")
    assert "no/o.spv: No such file" in said(shader(), "-DWIDTH=1", "-o", "no/o.spv")
    pathlib.Path("full").mkdir()
    assert "full" in said(shader(), "-DWIDTH=1", "-o", "full")
    if os.path.exists("/dev/full"):
        assert "No space left" in said(shader(), "-DWIDTH=1", "-o", "/dev/full")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([GLSLC, shader(), "-DWIDTH=1", "-o", "-"], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        assert done.returncode == 1 and b"No space left" in done.stderr


def wrong_arguments():
    for args, text in (([], "no file"), (["--oops"], "unknown option --oops"),
                       (["a", "b"], "a second file: b"), (["a", "-o"], "missing behind -o"),
                       (["a", "--target", "vulkan1"], "--target is not"),
                       (["a", "--spirv=1.2"], "--spirv is not")):
        assert text in said(*args, status=2), args
    assert "-MD has no file" in said(shader(), "-DWIDTH=1", "-o", "-", "-MD", status=2)


def what_it_says_of_itself():
    assert run("--version").stdout.startswith(b"tenon-glslc ")
    assert b"GL_KHR_shader_subgroup_basic\n" in run("--extensions").stdout
    text = run("--help").stdout.decode()
    assert text.startswith("usage: tenon-glslc") and max(map(len, text.split("\n"))) <= 90


if __name__ == "__main__":
    sentences.run([words_go_to_the_output, versions_are_those_of_the_target,
                   functions_are_kept_with_their_names, text_behind_the_preprocessor,
                   includes_are_found_beside_their_file_then_in_folders, errors_show_the_line,
                   files_that_cannot_be_used, wrong_arguments, what_it_says_of_itself])

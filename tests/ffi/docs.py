# SPDX-License-Identifier: MIT
"""docs/ffi.md followed word for word: its files are written, its commands are run in order; and it
names every field that the reader of manifests knows."""

import json
import os
import pathlib
import re
import subprocess
import sys

import tap

PAGE = pathlib.Path(sys.argv[3]).read_text()
INCLUDE, LIBRARIES, PACKS = map(os.path.abspath, sys.argv[4:7])
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)

# How tenon.pc stands for an installation.
PKG_CONFIG = f"""#!/bin/sh
echo "-I{INCLUDE} -L{LIBRARIES} -ltenon -Wl,-rpath,{LIBRARIES}"
"""


def shell(text, status=0):
    os.makedirs("bin", exist_ok=True)
    pathlib.Path("bin/pkg-config").write_text(PKG_CONFIG)
    os.chmod("bin/pkg-config", 0o755)
    environment = {**tap.ENVIRONMENT, "XDG_DATA_HOME": f"{os.getcwd()}/data",
                   "PATH": f"{os.getcwd()}/bin:{os.path.dirname(tap.TENON)}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=environment,
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def manifest():
    return next(text for kind, text in BLOCKS if kind == "json")


def the_manifest_is_checked_made_and_used():
    pathlib.Path("zlib.json").write_text(manifest())
    commands = next(text for kind, text in BLOCKS if not kind and "ffi make" in text)
    said = shell(commands)
    for expected in ("the pack com.acme.zlib is described correctly", "907060870",
                     "[1438416925 1817977022]", "zlib.crc32(x) -> out", "PASS"):
        assert expected in said, f"{expected}\n{said}"


def a_mistake_is_shown_as_the_page_says():
    shown = next(text for kind, text in BLOCKS if "inptu" in text)
    pathlib.Path("zlib.json").write_text(manifest().replace('"kind": "input"', '"kind": "inptu"'))
    start, _, end = shown.strip().partition("...")
    said = shell("tenon ffi check zlib.json", status=1)
    assert start in said and end in said, said


def the_derivative_is_that_of_the_shipped_pack():
    shown = next(text for kind, text in BLOCKS if text.startswith('"vjp"'))
    packs = pathlib.Path(PACKS) / "lapack.json"
    solve = json.loads(packs.read_text())["functions"][0]
    assert json.loads("{" + shown + "}")["vjp"] == solve["vjp"]


def the_callback_is_compiled_and_run():
    code = next(text for kind, text in BLOCKS if kind == "c" and "tn_callback_add" in text)
    pathlib.Path("clip.c").write_text(code)
    commands = next(text for kind, text in BLOCKS if not kind and "./clip" in text)
    said = shell(commands)
    assert said.endswith("0 0.25 1\n"), said


def every_field_is_named():
    head = json.loads(manifest())
    places = {"": head, "function": head["functions"][0], "input": head["functions"][0]["inputs"][0],
              "output": head["functions"][0]["outputs"][0], "returns": head["functions"][0]["returns"]}
    function = head["functions"][0]
    function["attributes"] = [{"name": "a", "type": "i64", "default": 0}]
    function["work"] = [{"name": "w", "count": 1}]
    places.update(attribute=function["attributes"][0], work=function["work"][0])
    more = [{"kind": "stride", "of": "x"}, {"kind": "attribute", "name": "a"},
            {"kind": "character", "value": "U"}, {"kind": "status"}, {"kind": "work", "name": "w"},
            {"kind": "output", "name": "out"}]
    function["args"] += more
    for argument in function["args"]:
        places[argument["kind"]] = argument
    for place, fields in places.items():
        fields["nonsense"] = 1
        pathlib.Path("zlib.json").write_text(json.dumps(head))
        said = shell("tenon ffi check zlib.json", status=1)
        names = re.search(r"expected one of ([\w, ]+)", said)
        assert names, f"{place}: {said}"
        for name in names.group(1).split(", "):
            assert f"`{name}`" in PAGE, f"{place}: docs/ffi.md does not name the field {name}"
        del fields["nonsense"]


tap.run([the_manifest_is_checked_made_and_used, a_mistake_is_shown_as_the_page_says,
         the_derivative_is_that_of_the_shipped_pack, the_callback_is_compiled_and_run,
         every_field_is_named])

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What shared objects export and need.

libtenon exports tn_* alone, needs libc, libm, jansson, libsodium and nettle alone, and is small. A
plugin exports tn_plugin_v1 alone, needs nothing of ours, is as small as its limit says, and carries no RUNPATH, so that the
file that is installed is, byte for byte, the one whose hash stands in plugin.json.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

C_LIBRARIES = r"lib(c|m|dl|pthread|rt)\.so.*|ld-linux.*|linux-vdso.*"
CORE_LIBRARIES = C_LIBRARIES + r"|lib(jansson|sodium|nettle)\.so.*"
SANITIZER_LIBRARIES = r"lib(asan|ubsan|tsan|gcc_s|clang_rt\..*)\.so.*"
LIBTENON_LIMIT = 420 * 1000  # bytes, stripped
PLUGIN_LIMITS = {"org.tenon.vulkan-jit": 700 * 1000, "org.tenon.vulkan": 4400 * 1000}
NO_LIBRARIES = ["org.tenon.null", "org.tenon.base", "org.tenon.fft", "org.tenon.nn",
                "org.tenon.optim", "org.tenon.quant", "org.tenon.random"]  # but C's


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def symbols(file, which):
    lines = run("nm", "--dynamic", which, str(file)).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.strip()}


def dynamic(file, tag):
    return re.findall(rf"\({tag}\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", str(file)))


def stripped_size(file):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "stripped")
        shutil.copy(file, copy)
        run("strip", "--strip-unneeded", str(copy))
        return copy.stat().st_size


def check_needed(file, allowed):
    return [f"{file}: needs {name}" for name in dynamic(file, "NEEDED")
            if not re.fullmatch(allowed, name)]


def check_library(file, args):
    sanitizer = "|" + SANITIZER_LIBRARIES if args.sanitized else ""
    wrong = check_needed(file, CORE_LIBRARIES + sanitizer)
    exported = symbols(file, "--defined-only")
    if args.sanitized:
        exported = {s for s in exported if not s.startswith("__")}
    wrong += [f"{file}: exports {name}" for name in sorted(exported)
              if not name.startswith("tn_")]
    if not any(name == "tn_eval_n" for name in exported):
        wrong.append(f"{file}: does not export tn_eval_n")
    size = stripped_size(file)
    print(f"{file}: {len(exported)} symbols, {size} bytes stripped")
    if args.size and size > LIBTENON_LIMIT:
        wrong.append(f"{file}: {size} bytes stripped, at most {LIBTENON_LIMIT}")
    return wrong


def check_plugin(file, args):
    exported = symbols(file, "--defined-only")
    if args.sanitized:
        exported = {s for s in exported if not s.startswith("__")}
    wrong = []
    if exported != {"tn_plugin_v1"}:
        wrong.append(f"{file}: exports {sorted(exported)[:8]}, expected tn_plugin_v1 alone")
    wrong += [f"{file}: needs {name}, which is ours" for name in dynamic(file, "NEEDED")
              if "tenon" in name]
    wrong += [f"{file}: leaves {name} undefined" for name in
              sorted(symbols(file, "--undefined-only")) if name.startswith("tn_")]
    wrong += [f"{file}: has a RUNPATH, {path}" for tag in ("RUNPATH", "RPATH")
              for path in dynamic(file, tag)]
    limit = PLUGIN_LIMITS.get(file.stem)
    if args.size and limit and stripped_size(file) > limit:
        wrong.append(f"{file}: {stripped_size(file)} bytes stripped, at most {limit}")
    if file.stem in NO_LIBRARIES and not args.sanitized:
        wrong += check_needed(file, C_LIBRARIES)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--plugins", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--sanitized", action="store_true", help="built with sanitizers")
    parser.add_argument("--size", action="store_true", help="an optimised build: check its size")
    args = parser.parse_args()
    wrong = check_library(args.library, args)
    for file in args.plugins:
        wrong += check_plugin(file, args)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

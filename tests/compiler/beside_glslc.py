#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what `tenon-glslc --preprocess` and `glslc -E` make of every variant of the kernels,
token by token. Run by hand: glslc takes minutes.

  beside_glslc.py TENON-GLSLC
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "kernels" / "vulkan" / "pack"))
import embed  # pylint: disable=wrong-import-position

TOKEN = re.compile(r"[A-Za-z_]\w*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*|<<=|>>=|[-+*/%&|^<>=!]="
                   r"|&&|\|\||\^\^|<<|>>|\+\+|--|\S")


def tokens(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return [done.stderr]
    return TOKEN.findall(re.sub(r"(?m)^\s*#.*$", "", done.stdout))


def difference(variant, folder):
    name, source, defines, _ = variant
    path = os.path.join(folder, embed.flat(source))
    flags = [f"-D{key}={value}" for key, value in defines]
    own = tokens([sys.argv[1], "--preprocess", path, *flags])
    other = tokens(["glslc", "--target-env=vulkan1.1", "-E", path, *flags])
    if own == other:
        return None
    at = next((i for i, pair in enumerate(zip(own, other)) if pair[0] != pair[1]),
              min(len(own), len(other)))
    return f"{name}: token {at}: {own[at:at + 8]}, glslc {other[at:at + 8]}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    variants = embed.read_variants()
    with tempfile.TemporaryDirectory() as folder:
        for source in {variant[1] for variant in variants}:
            pathlib.Path(folder, embed.flat(source)).write_text(embed.resolve(source))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            found = list(filter(None, threads.map(lambda v: difference(v, folder), variants)))
    print("\n".join(found))
    print(f"{len(variants)} variants, {len(found)} differ")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()

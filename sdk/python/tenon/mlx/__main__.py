# SPDX-License-Identifier: MIT
"""python -m tenon.mlx [--exact] PROGRAM | -m MODULE: runs a program of MLX over Tenon."""

import os
import runpy
import sys

from . import install


def main(arguments):
    is_exact = arguments[:1] == ["--exact"]
    arguments = arguments[is_exact:]
    if not arguments or arguments[0] in ("-h", "--help") or arguments[0] == "-m" and len(arguments) < 2:
        print("usage: python -m tenon.mlx [--exact] PROGRAM [ARGUMENT...]\n       python -m tenon.mlx [--exact] -m MODULE [ARGUMENT...]\n"
              "--exact: products with quantised weights never round x",
              file=sys.stderr if not arguments else sys.stdout)
        return 0 if arguments and arguments[0] != "-m" else 2
    install(is_exact)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0:0] = [] if sys.path and sys.path[0] in ("", os.getcwd()) else [os.getcwd()]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


sys.exit(main(sys.argv[1:]))

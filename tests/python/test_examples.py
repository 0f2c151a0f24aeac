# SPDX-License-Identifier: MIT
"""The programs of docs/examples/python print what stands at their top, on the devices of TENON_BACKEND."""

import ast
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/examples/python"


@pytest.mark.parametrize("program", sorted(path.name for path in FOLDER.glob("*.py")))
def test_an_example_prints_what_it_says(program):
    text = (FOLDER / program).read_text()
    want = ast.get_docstring(ast.parse(text)).partition("Prints:\n\n")[2]
    done = subprocess.run([sys.executable, FOLDER / program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, want), done.stderr
    assert program in (FOLDER.parent / "README.md").read_text()

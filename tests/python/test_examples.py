# SPDX-License-Identifier: MIT
"""The programs of docs/examples/python print what stands at their top, on the devices of TENON_BACKEND."""

import ast
import pathlib
import re
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


def test_the_comparison_with_pytorch_and_mlx_runs(tmp_path, monkeypatch):
    """The column of Tenon, cell by cell, and the blocks of Python behind the table."""
    monkeypatch.chdir(tmp_path)
    text = (FOLDER.parents[1] / "coming-from-pytorch-or-mlx.md").read_text()
    table = [line.strip("| ").split(" | ") for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    cells = [row[3] for row in table[1:]]
    assert len(cells) == 20
    names = {}
    exec("import numpy; import tenon as tn\n"  # what the sentence behind the table says
         "loss = lambda w: tn.mean(y @ w)\nf = lambda row: tn.sum(row * row)\n"
         "device = next(f'{d[\"backend\"]}:{d[\"index\"]}' for d in tn.devices() if d['selected'])", names)
    for code in (re.findall("`([^`]*)`", cell)[0] for cell in cells):
        exec(code, names)
    assert names["g"].shape == (2, 2) and names["x"][0, 0].item() == 5
    for block in re.findall("```python\n(.*?)```", text, re.S):
        exec(block, names)


def test_the_page_on_python_runs(capsys):
    """Its blocks one behind the other, but those that need a language model."""
    names = {}
    for block in re.findall("```python\n(.*?)```", (FOLDER.parents[1] / "python.md").read_text(), re.S):
        if "tenon.lm" not in block:
            exec(block, names)
    printed = capsys.readouterr().out
    assert "True Sequential(" in printed and names["clipped"](names["x"]).shape == names["x"].shape


def test_the_page_on_reproducible_results_runs(capsys):
    text = (FOLDER.parents[1] / "reproducible.md").read_text()
    exec(re.findall("```python\n(.*?)```", text, re.S)[0], {})
    assert capsys.readouterr().out == "True\n"

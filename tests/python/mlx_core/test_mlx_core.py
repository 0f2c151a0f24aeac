# SPDX-License-Identifier: MIT
"""tenon.mlx beside values of MLX's own build (cases.py), how it is installed, and what it says of bad input."""

import json
import math
import pathlib
import subprocess
import sys

import pytest
import tenon
import tenon.mlx

tenon.mlx.install()
import mlx.core as mx  # noqa: E402
from cases import cases, run  # noqa: E402

FROZEN = json.loads((pathlib.Path(__file__).parent / "frozen.json").read_text())
# Digits of a dtype that may differ: sums and functions are rounded otherwise.
LOOSE = {"mlx.core.float16": 2e-3, "mlx.core.float32": 3e-6, "mlx.core.complex64": 3e-6}


def agrees(got, want, bound=0.0):
    """Whether values are equal, numbers of floats within a bound."""
    if isinstance(want, list) and want and isinstance(want[0], str) and want[0] in LOOSE:
        bound = LOOSE[want[0]]
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(agrees(a, b, bound) for a, b in zip(got, want))
    if isinstance(want, float):
        return math.isclose(got, want, rel_tol=bound, abs_tol=bound) or (got != got and want != want)
    return got == want and type(got) is type(want)


@pytest.mark.parametrize("case", cases())
def test_case(case):
    got = run(case, mx)
    assert agrees(got, FROZEN[case]), f"{case}\ngot      {got}\nexpected {FROZEN[case]}"


def test_frozen_has_all_cases():
    assert list(FROZEN) == cases() and len(FROZEN) >= 100


def counted(name, function):
    before = tenon.stats()[name]
    function()
    return tenon.stats()[name] - before


def test_a_cache_update_copies_nothing():
    cache = mx.zeros((8, 1 << 16))
    row = mx.ones((1, 1 << 16))
    mx.eval(cache, row)

    def update():
        cache[2:3, :] = row
        mx.eval(cache)

    update()
    peak = tenon.stats()["buffer_bytes"]
    assert counted("bytes_written", update) <= 2 * row.nbytes
    assert tenon.stats()["buffer_bytes"] <= peak
    assert cache[2, 5].item() == 1 and cache[3, 5].item() == 0


def test_names_and_memory():
    for name in ("fast", "random", "linalg", "fft", "metal", "cuda", "distributed"):
        assert getattr(mx, name) is sys.modules[f"mlx.core.{name}"]
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        mx.softmx
    assert memoryview(mx.array([1.5, 2.0])).tolist() == [1.5, 2.0]


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_a_program_runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys, mlx.core as mx\nprint(mx.array([1, 2]) + 1, sys.argv[1:])\n")
    done = python("-m", "tenon.mlx", str(program), "more")
    assert done.stdout == "array([2, 3], dtype=int32) ['more']\n", done.stderr
    assert python("-m", "tenon.mlx").returncode == 2


def test_both_modules_are_not_mixed(tmp_path):
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "core.py").write_text("")
    done = python("-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mlx.core, tenon.mlx; tenon.mlx.install()")
    assert "mlx.core was imported before" in done.stderr and "core.py" in done.stderr

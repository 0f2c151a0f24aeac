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
    assert mx.matrix_norm is mx.linalg.norm and mx.array([3.0]).__div__(2).tolist() == [1.5]
    info = mx.array([1]).__array_namespace__().__array_namespace_info__()
    assert info.default_device() in info.devices() and info.dtypes(kind="real floating")["float32"] is mx.float32
    assert "float64" in info.dtypes(device=mx.Device(mx.cpu)) and "float64" not in info.dtypes(device=mx.Device(mx.gpu))
    with pytest.raises(TypeError, match="expected a Device"):
        info.dtypes(device="cpu")

    class Pair:
        def __mlx_array__(self):
            return mx.array([1.0, 2.0])

    assert (mx.array(1) + mx.ArrayLike(Pair())).tolist() == mx.add(Pair(), 1).tolist() == [2.0, 3.0]


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_a_program_runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys, mlx.core as mx\nprint(mx.array([1, 2]) + 1, sys.argv[1:])\n")
    done = python("-m", "tenon.mlx", str(program), "more")
    assert done.stdout == "array([2, 3], dtype=int32) ['more']\n", done.stderr
    assert python("-m", "tenon.mlx").returncode == 2


def test_products_of_a_program_are_exact_where_it_says_so(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import mlx.core as mx\nx = mx.sin(mx.arange(256.0)).reshape(2, 128)\nq = mx.quantize(mx.cos(mx.arange(8192.0)).reshape(64, 128))\n"
                       "print(mx.abs(mx.quantized_matmul(x, *q) - x @ mx.dequantize(*q).T).max().item())\n")
    done = python("-m", "tenon.mlx", "--exact", str(program))
    assert float(done.stdout) < 1e-4, done.stderr


def test_both_modules_are_not_mixed(tmp_path):
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "core.py").write_text("")
    done = python("-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mlx.core, tenon.mlx; tenon.mlx.install()")
    assert "mlx.core was imported before" in done.stderr and "core.py" in done.stderr


def test_steps_of_a_cache_share_a_plan():
    keys, values = mx.zeros((1, 2, 64, 8)), mx.zeros((1, 2, 64, 8))
    q = mx.sin(mx.arange(32.0)).reshape(1, 4, 1, 8)
    plans = []
    for n in range(8):
        row = mx.fast.rope(mx.cos(mx.arange(16.0) + n).reshape(1, 2, 1, 8), 8, traditional=False, base=1e4, scale=1.0, offset=n)
        keys[..., n : n + 1, :] = row
        values[..., n : n + 1, :] = row * 2
        seen = [keys[..., : n + 1, :], values[..., : n + 1, :]]
        out = mx.fast.scaled_dot_product_attention(q, *seen, scale=0.5)
        del seen
        plans.append(counted("plans_made", lambda: mx.eval(out, keys, values)))
    assert plans[2:] == [0] * 6
    k, v = (mx.repeat(x[:, :, :8], 2, 1) for x in (keys, values))
    want = mx.softmax(0.5 * q @ k.swapaxes(-1, -2), axis=-1) @ v
    assert mx.allclose(out, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("repeats", [1, 2])
def test_steps_of_a_quantised_cache_share_a_plan(repeats):
    """As mlx_lm does with QuantizedKVCache; what lies behind the elements in use does not count, NaN among it."""
    form = {"group_size": 32, "bits": 8}
    q = mx.sin(mx.arange(2 * repeats * 32.0)).reshape(1, 2, repeats, 1, 32)
    wide = (lambda x: mx.expand_dims(x, axis=-3)) if repeats > 1 else (lambda x: x)
    q = q if repeats > 1 else q[:, :, 0]
    cache = [[mx.zeros((1, 2, 64, 8), mx.uint32), mx.full((1, 2, 64, 1), mx.nan), mx.full((1, 2, 64, 1), mx.nan)] for _ in "kv"]
    plans = []
    for n in range(6):
        for sign, stored in zip((1, -1), cache):
            row = sign * mx.cos(mx.arange(64.0) * (n + 1)).reshape(1, 2, 1, 32)
            for i, x in enumerate(mx.quantize(row, **form)):
                stored[i][..., n : n + 1, :] = x
        keys, values = ([wide(x[..., : n + 1, :]) for x in stored] for stored in cache)
        assert keys[0].shape[-2] == n + 1 and keys[1].dtype == mx.float32
        scores = mx.softmax(mx.quantized_matmul(q, *keys, transpose=True, **form), axis=-1, precise=True)
        out = mx.quantized_matmul(scores, *values, transpose=False, **form)
        plans.append(counted("plans_made", lambda: mx.eval(out, *cache[0], *cache[1])))
        del keys, values
    assert plans[2:] == [0] * 4 and scores.shape[-1] == 6
    k, v = (mx.dequantize(*[x[..., :6, :] for x in stored], **form) for stored in cache)
    want = mx.softmax(q @ wide(k).swapaxes(-1, -2), axis=-1) @ wide(v)
    assert mx.allclose(out, want, rtol=0, atol=1e-2)  # products round x to bytes


def test_a_part_of_a_buffer_is_an_array():
    buffer = mx.arange(24.0).reshape(2, 3, 4)
    part = buffer[:, :2, :]
    buffer[:, 0:1, :] = mx.zeros((1, 4))
    assert part.shape == (2, 2, 4) and part[0, 0].tolist() == [0, 1, 2, 3]
    part[:, :1, :] = 7
    assert part.tolist()[1] == [[7] * 4, [16, 17, 18, 19]] and buffer[1].tolist()[0] == [0] * 4
    assert (buffer[:, :3, :] + 1).sum().item() == 24 + sum(range(4, 12)) + sum(range(16, 24))
    with pytest.raises(AttributeError):
        part.nothing


@pytest.mark.parametrize("body, is_free", [
    (lambda x: mx.abs(x) * 2.5 + 1, True), (lambda x: x + x.sum(0, keepdims=True) + mx.arange(x.shape[-1]), True),
    (lambda x: mx.mean(x, axis=-1) + x.shape[0], True), (lambda x: x.reshape(x.shape[0] * x.shape[1], -1), True),
    (lambda x: x.astype(mx.float16) * 3, True), (lambda x: sum(x[i] for i in range(x.shape[0])), False),
    (lambda x: x * mx.array([1.0, 2.0]).sum(), False),
])  # fmt: skip
def test_a_shapeless_function_is_right_for_other_extents(body, is_free):
    calls = []

    def counted(x):
        calls.append(x.shape)
        return body(x)

    compiled = mx.compile(counted, shapeless=True)
    for step, shape in enumerate([(2, 3), (4, 5), (6, 7)]):
        x = mx.arange(shape[0] * shape[1], dtype=mx.float32).reshape(shape) / 8
        assert compiled(x).tolist() == body(x).tolist()
        first = len(calls) if step == 0 else first
    assert (len(calls) == first) is is_free


def test_text_of_numbers_and_missing_files(tmp_path):
    assert f"{mx.array(3)} {mx.array(2.5):.2f} {mx.array([1, 2])}" == "3 2.50 array([1, 2], dtype=int32)"
    for name, error in [("none.npy", RuntimeError), ("none.npz", ValueError), ("none.safetensors", RuntimeError), ("none.gguf", ValueError)]:
        with pytest.raises(error):
            mx.load(str(tmp_path / name))

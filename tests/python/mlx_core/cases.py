# SPDX-License-Identifier: MIT
"""Cases of mlx.core, whose results are frozen in frozen.json, as MLX's own build computes them:

    PYTHON-WITH-MLX tests/python/mlx_core/cases.py >tests/python/mlx_core/frozen.json    # mlx[cpu]==0.32.2

test_mlx_core.py computes the same over tenon.mlx. A case is a line: statements, then what is compared.
"""

import json
import math


def numbers(*shape, scale=1.0):
    """The same numbers everywhere: sines of the positions, as nested lists."""
    flat = [scale * round(math.sin(1.7 * i + 0.3), 4) for i in range(math.prod(shape))]
    for n in reversed(shape[1:]):
        flat = [flat[i : i + n] for i in range(0, len(flat), n)]
    return flat


NAMES = """
x = mx.array(numbers(3, 4)); y = mx.array(numbers(4, 3, scale=2.0)); v = mx.array(numbers(4)); i = mx.array([[7, -3], [2, 0]])
u = mx.array([1, 2, 250], mx.uint8); b = mx.array([True, False, True]); z = mx.array([1 + 2j, -3j, 0.5]); h = x.astype(mx.float16)
t = mx.array(numbers(2, 3, 2, 2)); p = mx.abs(x) + 0.1; e = mx.zeros((0, 3))
"""

CASES = """
x + 1 | x * x - 2.5 | 2 ** v | i // 2 | i % 3 | i / 2 | -i | u + 10 | u - 3 | ~b | b + b | b * 3 | x > 0 | i == 7 | z * z | abs(z) | h + 1.5 | h * x
mx.add(1, 2) | mx.maximum(x, 0.2) | mx.minimum(i, 1) | mx.divmod(i, 2) | mx.logaddexp(x, 1.0) | mx.power(i, 2) | mx.left_shift(u, 1)
mx.bitwise_and(i, 3) | mx.where(x > 0, x, -1) | mx.clip(x, -0.5, 0.5) | mx.nan_to_num(mx.array([math.nan, math.inf, 1.0])) | mx.isclose(x, x + 1e-7)
mx.exp(x) | mx.log(p) | mx.log1p(p) | mx.sqrt(p) | mx.rsqrt(p) | mx.sin(x) | mx.tanh(x) | mx.arctan2(x, p) | mx.erf(x) | mx.erfinv(x * 0.5) | mx.sigmoid(x)
mx.round(x, 1) | mx.floor(x * 3) | mx.sign(x) | mx.square(i) | mx.reciprocal(p) | mx.exp(i.astype(mx.float32) * 0.1) | mx.degrees(v)
mx.sum(x) | mx.sum(x, axis=0) | mx.sum(i) | mx.sum(b) | mx.sum(u) | mx.prod(v, keepdims=True) | mx.mean(i) | mx.var(x, axis=1, ddof=1) | mx.std(x)
mx.max(x, axis=-1) | mx.argmax(x, axis=0) | mx.argmin(x) | mx.all(b) | mx.any(x > 2, axis=(0, 1)) | mx.logsumexp(x, axis=1, keepdims=True) | mx.median(x, axis=1)
mx.cumsum(x, axis=1) | mx.cumsum(i, axis=0, reverse=True) | mx.cumprod(v, inclusive=False) | mx.cummax(x, axis=1) | mx.logcumsumexp(v) | mx.softmax(x, axis=-1)
mx.sort(x, axis=0) | mx.argsort(v) | mx.topk(v, 2) | mx.partition(v, 1)[1] | mx.searchsorted(mx.array([1, 3, 5]), mx.array([0, 3, 9]))
mx.reshape(x, (2, -1)) | x.T | t.transpose(3, 0, 1, 2) | mx.flatten(t, 1, 2) | mx.unflatten(v, 0, (2, 2)) | mx.expand_dims(x, (0, 3)) | mx.squeeze(x[:, :1])
mx.concatenate([x, y.T], axis=0) | mx.stack([v, v * 2], axis=1) | mx.split(x, [1, 3], axis=1) | mx.repeat(v, 2) | mx.tile(v, (2, 1)) | mx.roll(x, 1, 1) | mx.flip(x, 0)
mx.pad(x, ((1, 0), (0, 2)), constant_values=5) | mx.pad(v, 2, mode="edge") | mx.diagonal(x, 1) | mx.diag(v) | mx.trace(x) | mx.tril(x) | mx.diff(v, n=2)
mx.take(x, mx.array([2, 0]), axis=1) | mx.take_along_axis(x, mx.argsort(x, axis=1), axis=1) | mx.put_along_axis(x, mx.array([[1], [0], [3]]), mx.array(9.0), axis=1)
mx.broadcast_to(v, (2, 4)) | mx.as_strided(x, (2, 3), (4, 1), 1) | mx.view(v, mx.int32) | mx.meshgrid(mx.arange(2), mx.arange(3)) | mx.slice(x, mx.array([1]), (0,), (2, 4))
mx.arange(5) | mx.arange(1, 2, 0.25) | mx.linspace(0, 1, 5) | mx.eye(2, 3, 1) | mx.full((2, 2), 7) | mx.ones_like(i) | mx.tri(2, 3) | mx.hamming(5)
x @ y | mx.matmul(t, t) | mx.addmm(x @ y, x, y, 0.5, 2.0) | mx.inner(v, v) | mx.outer(v, v) | mx.einsum("ij,jk->k", x, y) | mx.tensordot(x, y, 1) | mx.kron(v, v)
mx.einsum_path("ij,jk,kl", x, y, x)[0] | mx.convolve(v, mx.array([1.0, 0.5]), "same") | mx.conv1d(t[0], mx.ones((2, 2, 2, 2))[0], padding=1)
mx.conv2d(t, mx.ones((3, 2, 1, 2)), stride=(2, 1)) | mx.conv_transpose2d(t, mx.ones((1, 2, 2, 2)), stride=2) | mx.conv_general(t, mx.ones((2, 1, 2, 2)), flip=True)
x[1] | x[:, ::2] | x[..., -1] | x[None, 1:] | x[mx.array([2, 0])] | x[[0, 1], [1, 2]] | x[mx.array([[0], [1]]), :2] | x[::-1]
a = x[1:]; c = a; a[0] = 9; c | a = x + 0; s = a[0]; a[0] = 5; s | a = x + 0; a[:, 1] = v[:3]; a | a = x + 0; a[a > 0] = 0; a | a = v + 0; c = a; c += 1; a
x.at[0].add(1) | v.at[mx.array([0, 0, 1])].add(mx.array([1.0, 2.0, 3.0])) | v.at[mx.array([1, 1])].maximum(3.0) | v.at[1:].multiply(2)
x.dtype | (i + 1.5).dtype | (u + mx.array([1], mx.int8)).dtype | (b + 1).dtype | (h + mx.array([1], mx.bfloat16)).dtype | mx.result_type(u, h) | mx.issubdtype(mx.int8, mx.integer)
mx.array([1, 2.5]).dtype | mx.array([1.7, 300.2], mx.int32) | mx.array([[1, 2], [3, 4]]).tolist() | mx.array(3).item() | i.astype(mx.float16) | e.shape | mx.array([x[0], x[1]])
str(x) | str(i) | repr(h[0]) | str(mx.zeros((2, 8))) | str(z) | f"{v[1]:.2f}" | str(mx.float32) | str(mx.finfo(mx.float16).max)
mx.matmul(i, i) | x[0, 0, 0] | mx.sum(x, axis=5) | mx.reshape(x, (5,)) | mx.concatenate([]) | mx.array([[1], [2, 3]]) | x + "s" | mx.add(x, None) | u + 300 | mx.foo | mx.sum(1)
"""


def cases():
    """The cases by name, each a text."""
    return [part.strip() for line in CASES.strip().splitlines() for part in line.split(" | ")]


def run(case, mx):
    """What a case gives, as JSON has it: [dtype, shape, numbers] of arrays, lists of such, else a text."""
    names = {"mx": mx, "numbers": numbers, "math": math}
    exec(NAMES, names)
    *statements, last = case.split("; ")
    try:
        exec("\n".join(statements), names)
        return plain(eval(last, names), mx)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return type(error).__name__


def plain(value, mx):
    if isinstance(value, mx.array):
        flat = value.reshape(-1).tolist() if value.size else []
        flat = [[v.real, v.imag] if isinstance(v, complex) else v for v in flat]
        return [str(value.dtype), list(value.shape), flat]
    if isinstance(value, (list, tuple)):
        return [plain(item, mx) for item in value]
    return str(value)


if __name__ == "__main__":
    import mlx.core

    rows = {case: run(case, mlx.core) for case in cases()}
    print("{\n" + ",\n".join(f"{json.dumps(case)}: {json.dumps(value)}" for case, value in rows.items()) + "\n}")

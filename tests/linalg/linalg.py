# SPDX-License-Identifier: MIT
"""Pack linalg through the command, beside NumPy: values, or what factors give again where they are
not unique; gradients beside differences, second ones beside differences of gradients; wrong
arguments; matrices that have no result; without LAPACK."""

import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import tap  # noqa: E402 pylint: disable=wrong-import-position
from tap import refused, tenon  # noqa: E402 pylint: disable=wrong-import-position

try:
    import numpy as np
except ImportError:
    np = None

CPU = {"TENON_BACKEND": "cpu-blas"}
DTYPES = ("f4", "f8", "c8", "c16")


# --- matrices -----------------------------------------------------------------------------

def numbers(dtype, *shape, seed=0):
    random = np.random.default_rng([seed, *shape])
    x = random.uniform(-1, 1, shape)
    return (x + 1j * random.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def positive(dtype, *shape, seed=0):
    x = numbers(dtype, *shape, seed=seed)
    return x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype)


def lower(dtype, *shape, seed=0):
    return np.tril(numbers(dtype, *shape, seed=seed)) / max(1, shape[-1]) + 2 * np.eye(shape[-1], dtype=dtype)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


# --- runs ---------------------------------------------------------------------------------

def array(result):
    shape, data = result["shape"], np.array(result["data"], dtype=object)
    kind = {"f32": "f4", "f64": "f8", "complex64": "c8", "complex128": "c16", "i32": "i4", "i64": "i8"}[result["dtype"]]
    if kind[0] != "c":
        return np.array(result["data"], dtype=float).astype(kind).reshape(shape)
    data = np.array(result["data"], dtype=float).reshape([*shape, 2])
    return (data[..., 0] + 1j * data[..., 1]).astype(kind)


def run(expression, env=None, grad=None, **given):
    """What the expression gives for these arrays; with `grad` the gradients by these names."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for name, x in given.items():
            path = os.path.join(folder, name + ".npy")
            np.save(path, x)
            names.append(f"{name}={path}")
        more = ["--grad", grad] if grad else []
        done = json.loads(tenon("eval", "--json", expression, *names, *more, env=env or CPU).stdout)
    if grad:
        return [array(done["gradients"][n]) for n in grad.split(",")]
    return [array(r) for r in done["results"]]


def close(got, want, what, factor=50):
    assert got.shape == want.shape and got.dtype == want.dtype, (
        f"{what}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}")
    bound = factor * np.finfo(want.dtype).eps * max(1, np.abs(want).max(initial=0))
    off = np.abs(got - want).max(initial=0)
    assert off <= bound, f"{what}: off by {off}, allowed {bound}"


# --- values -------------------------------------------------------------------------------

def cholesky_is_numpys():
    for d in DTYPES:
        for shape in ([1, 1], [5, 5], [3, 4, 4], [2, 3, 33, 33], [0, 0], [0, 3, 3], [70, 70]):
            a = positive(d, *shape)
            low, up, turned = run("linalg.cholesky(a), linalg.cholesky(a, upper=true), linalg.cholesky(a.mT)", a=a)
            close(low, np.linalg.cholesky(a), f"cholesky of {d}{shape}")
            close(up, adjoint(low), f"upper cholesky of {d}{shape}")
            close(turned, low.conj(), f"cholesky of transposed {d}{shape}")
        # One triangle is read.
        a = positive(d, 4, 4)
        low, up = run("linalg.cholesky(tril(a)), linalg.cholesky(triu(a), upper=true)", a=a)
        close(low, np.linalg.cholesky(a), f"cholesky of a lower triangle of {d}")
        close(up, adjoint(low), f"cholesky of an upper triangle of {d}")


def triangular_systems_are_solved():
    shapes = [((1, 1), (1,)), ((4, 4), (4,)), ((5, 5), (5, 3)), ((2, 3, 4, 4), (4, 2)), ((4, 4), (3, 4, 1)),
              ((2, 1, 4, 4), (3, 4, 2)), ((3, 4, 4), (4,)), ((0, 0), (0, 2)), ((4, 4), (4, 0)), ((0, 4, 4), (0, 4, 1)),
              ((65, 65), (65, 70))]
    for d in DTYPES:
        for of_a, of_b in shapes:
            a, b = lower(d, *of_a), numbers(d, *of_b, seed=1)
            column = b[..., None] if b.ndim == 1 else b
            for trans, op in (("none", lambda x: x), ("transpose", lambda x: x.swapaxes(-1, -2)), ("adjoint", adjoint)):
                for unit in (False, True):
                    one = a - np.tril(np.triu(a)) + np.eye(of_a[-1]) if unit else a
                    u = str(unit).lower()
                    # The other triangle is not read: a has numbers there.
                    got = run(f"f = a + triu(c, k=1); linalg.solve_triangular(f, b, lower=true, transpose={trans}, unit_diagonal={u}),"
                              f" linalg.solve_triangular(f.mT, b, transpose={trans}, unit_diagonal={u})",
                              a=a, b=b, c=numbers(d, *of_a, seed=2))
                    for x, factor in zip(got, (one, one.swapaxes(-1, -2))):
                        again = op(factor) @ (x[..., None] if b.ndim == 1 else x)
                        again = again[..., 0] if b.ndim == 1 else again
                        want = np.broadcast_to(column[..., 0] if b.ndim == 1 else b, again.shape)
                        close(again.astype(d), want, f"solve_triangular of {d}{of_a} {of_b} {trans} {u}", 500)


# --- gradients ----------------------------------------------------------------------------

# What is differentiated, of x, a square matrix, and y of the same shape: whatever is Hermitian is made so.
SMOOTH = {
    "cholesky": "linalg.cholesky(x @ conjugate(x).mT + e)",
    "upper cholesky": "linalg.cholesky(x @ conjugate(x).mT + e, upper=true)",
    "solve_triangular": "linalg.solve_triangular(x + 3 * e, y, lower=true)",
    "solve_triangular transposed": "linalg.solve_triangular(x + 3 * e, y, transpose=transpose)",
    "solve_triangular adjoint": "linalg.solve_triangular(x + 3 * e, y, transpose=adjoint, unit_diagonal=true)",
    "solve_triangular of a vector": "linalg.solve_triangular(x + 3 * e, y[0], transpose=adjoint)",
}
SECOND = ["cholesky"]


def differences(loss, x, given, step=1e-6):
    """d loss / d x by central differences: all of them as one batch."""
    want = np.zeros_like(x)
    for part in (1, 1j) if x.dtype.kind == "c" else (1,):
        moved = []
        for sign in (1, -1):
            for i in np.ndindex(x.shape):
                z = x.copy()
                z[i] += sign * step * part
                moved.append(z)
        got = loss(np.stack(moved), given).reshape(2, *x.shape)
        want = want + part * (got[0] - got[1]) / (2 * step)
    return want




def gradients_are_those_of_differences():
    for d in ("f8", "c16"):
        x, y, e = numbers(d, 3, 3, seed=3), numbers(d, 3, 3, seed=4), np.eye(3, dtype=d)
        for name, expression in SMOOTH.items():
            w = numbers(d, 3, seed=5) if "vector" in name else numbers(d, 3, 3, seed=5)
            axes = "[-1]" if "vector" in name else "[-2, -1]"
            losses = f"r = {expression}; z = r * w; sum(real(z) + 0.7 * imag(z), axis={axes})"

            def loss(batch, given, losses=losses):
                return run(losses, **given, x=batch)[0]
            given = {"y": y, "e": e, "w": w}
            got, = run(losses, grad="x", x=x, **given)
            want = differences(loss, x, given)
            assert np.abs(got - want).max() < 1e-7, f"gradient of {name} of {d}: {got}, by differences {want}"


def second_gradients_are_those_of_differences():
    for d in ("f8", "c16"):
        x, y, e, w = (numbers(d, 3, 3, seed=6), numbers(d, 3, 3, seed=4), np.eye(3, dtype=d), numbers(d, 3, 3, seed=5))
        for name in SECOND:
            expression = (f"r = {SMOOTH[name]}; z = r * w; g = grad(sum(real(z) + 0.7 * imag(z)), x); v = g * y;"
                          "sum(real(v) - 0.3 * imag(v), axis=[-2, -1])")

            def loss(batch, given, expression=expression):
                return run(expression, **given, x=batch)[0]
            given = {"y": y, "e": e, "w": w}
            got, = run(expression, grad="x", x=x, **given)
            want = differences(loss, x, given)
            assert np.abs(got - want).max() < 1e-6, f"second gradient of {name} of {d}: {got}, by differences {want}"


# --- bad input ----------------------------------------------------------------------------

REFUSED = [
    ("linalg.cholesky(x)", "x has shape"),
    ("linalg.cholesky(x[0])", "a has shape [3], expected a matrix: at least 2 axes"),
    ("linalg.cholesky(astype(x, f16)[:2, :2])", "input a is f16, expected one of f32, f64, complex64, complex128"),
    ("linalg.solve_triangular(x, x)", "a has shape [2, 3], expected square matrices"),
    ("linalg.solve_triangular(x[:, :2], x.mT)", "a has shape [2, 2] and b [3, 2], expected 2 rows of b"),
    ("linalg.solve_triangular(x[:, :2], astype(x, f32))", "a is f64 and b f32, expected one dtype"),
    ("linalg.solve_triangular(broadcast_to(x[:, :2], [3, 2, 2]), broadcast_to(x, [2, 2, 3]))",
     "the axes in front of their matrices do not broadcast"),
]
# Evaluations that fail, of x, three matrices: their second one is not positive definite, and singular.
FAILS = [
    ("linalg.cholesky(x)", "linalg.cholesky: matrix 1 of 3 is not positive definite"),
    ("linalg.cholesky(x / 0.0 * 0.0)", "linalg.cholesky: matrix 0 of 3 is not positive definite"),
    ("linalg.solve_triangular(x, x)", "linalg.solve_triangular: matrix 1 of 3 is singular: there is a 0 on its diagonal"),
]
THREE = "x=[[[2.0, 1], [1, 2]], [[0.0, 0], [0, 0]], [[1.0, 0], [0, 1]]]"


def wrong_arguments_are_named():
    for expression, saying in REFUSED:
        saying = saying.replace("x has shape", "a has shape [2, 3], expected square matrices")
        refused("eval", expression, "x=[[1.0, 2, 3], [4, 5, 6]]", saying=saying, env=CPU)


def matrices_without_a_result_are_named():
    for expression, saying in FAILS:
        refused("eval", expression, THREE, saying=saying, env=CPU)
        refused("eval", expression, THREE, saying=saying, env={**CPU, "TENON_KERNELS": "linalg.*=!org.tenon.linalg"})


def definitions_do_without_lapack():
    """Without the kernels; and each launch beside its definition."""
    a, b = positive("c16", 3, 5, 5), numbers("c16", 5, 2)
    expression = "l = linalg.cholesky(a); l, linalg.solve_triangular(l, b, lower=true, transpose=adjoint)"
    want = run(expression, a=a, b=b)
    for got, w in zip(run(expression, a=a, b=b, env={**CPU, "TENON_KERNELS": "linalg.*=!org.tenon.linalg"}), want):
        close(got, w, expression)
    done = tenon("eval", expression, "a=[[4.0, 1], [1, 3]]", "b=[1.0, 2]",
                 env={**CPU, "TENON_CHECK": "1", "TENON_LOG": "warn"})
    assert done.stderr == "", done.stderr


def kernels_are_lapacks_on_the_cpu():
    done = tenon("why", "linalg.cholesky(x)", THREE, env=CPU).stdout
    assert "linalg.cholesky/1" in done and "'lapack' of org.tenon.linalg" in done, done


if __name__ == "__main__":
    tap.run([kernels_are_lapacks_on_the_cpu, wrong_arguments_are_named, matrices_without_a_result_are_named] + (
        [cholesky_is_numpys, triangular_systems_are_solved, gradients_are_those_of_differences,
         second_gradients_are_those_of_differences, definitions_do_without_lapack] if np else []))

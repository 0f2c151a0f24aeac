# SPDX-License-Identifier: MIT
"""Rows of products, of linear algebra, of Fourier transforms; see standard_rows."""

import numpy as np
from hypothesis import strategies as st

from drawn import FLOATS, INEXACT, NUMERIC, Dtype, arrays, axes, broadcasting, pairs, shapes
from standard_rows import KEEP, ROWS, Row, reduced, row

# --- products ----------------------------------------------------------------------------------------------


@row("matmul linalg.matmul", near=64, scale=100)
def matmul(draw):
    left, right = draw(pairs(NUMERIC))
    n, k, m = draw(st.tuples(*[st.integers(0, 4)] * 3))
    a, b = broadcasting(draw, most=2)
    a, b = draw(st.sampled_from([(a + (n, k), b + (k, m)), ((k,), b + (k, m)), (a + (n, k), (k,)), ((k,), (k,))]))
    return (arrays(draw, left, a, 5, False), arrays(draw, right, b, 5, False)), {}


@row("tensordot linalg.tensordot", near=64, scale=100)
def tensordot(draw):
    left, right = draw(pairs(NUMERIC))
    shared = draw(shapes(0, 2, 3))
    a, b = draw(shapes(0, 2, 3)), draw(shapes(0, 2, 3))
    x, y = arrays(draw, left, a + shared, 5, False), arrays(draw, right, shared + b, 5, False)
    count = len(shared)
    given = (tuple(range(len(a), x.ndim)), tuple(range(count)))
    return (x, y), {"axes": draw(st.sampled_from([count, given]))}


@row("vecdot linalg.vecdot", near=64, scale=100)
def vecdot(draw):
    left, right = draw(pairs(NUMERIC))
    a, b = broadcasting(draw, most=2)
    n = draw(st.integers(0, 4))
    return (arrays(draw, left, a + (n,), 5, False), arrays(draw, right, b + (n,), 5, False)), {}


@row("linalg.outer", near=8)
def outer(draw):
    left, right = draw(pairs(NUMERIC))
    return (arrays(draw, left, shapes(1, 1), 5, False), arrays(draw, right, shapes(1, 1), 5, False)), {}


@row("linalg.cross", near=32, scale=50)
def cross(draw):
    left, right = draw(pairs(NUMERIC))
    a, b = broadcasting(draw, most=2)
    return (arrays(draw, left, a + (3,), 5, False), arrays(draw, right, b + (3,), 5, False)), {}


# --- matrices ----------------------------------------------------------------------------------------------


def matrix(draw, name, square=True, regular=True, least=0):
    """Matrices, which are far from singular where they are square."""
    batch = draw(shapes(0, 1, 3))
    n = draw(st.integers(least, 4))
    m = n if square else draw(st.integers(max(least, 1), 4))
    x = arrays(draw, name, batch + (n, m), 1, False)
    return x + (3 * n * np.eye(n, m)).astype(name) if regular else x


def symmetric(draw, name):
    x = matrix(draw, name)
    return ((x + np.conj(np.swapaxes(x, -1, -2))) / 2).astype(name)


def of_matrix(names, make, keywords=None, **options):
    def drawn(draw):
        x = make(draw, draw(st.sampled_from(INEXACT)))
        return (x,), {k: draw(s) for k, s in (keywords or {}).items()}

    for name in names.split():
        ROWS["linalg." + name] = Row(drawn, **options)


def turned(ns, x):
    return ns.matrix_transpose(ns.conj(x) if ns.isdtype(x.dtype, "complex floating") else x)


def scaled(ns, x, by):
    return x * ns.astype(ns.expand_dims(by, axis=-2), x.dtype)


def svd_seen(ns, arguments, result):
    u, s, vh = result
    n = s.shape[-1]
    return s, list(u.shape), list(vh.shape), ns.matmul(scaled(ns, u[..., :n], s), vh[..., :n, :]), ns.matmul(turned(ns, u), u)


def qr_seen(ns, arguments, result):
    q, r = result
    return list(q.shape), list(r.shape), ns.matmul(q, r), ns.matmul(turned(ns, q), q), ns.triu(r) - r


def eigh_seen(ns, arguments, result):
    values, vectors = result
    return values, ns.matmul(scaled(ns, vectors, values), turned(ns, vectors))


def eigvals_seen(ns, arguments, values):
    return values.dtype, ns.sum(values, axis=-1), ns.sum(values * values, axis=-1)


def eig_seen(ns, arguments, result):
    values, vectors = result
    x = ns.astype(arguments[0], vectors.dtype)
    return *eigvals_seen(ns, arguments, values), ns.matmul(x, vectors) - scaled(ns, vectors, values)


of_matrix("inv", matrix, near=500, scale=1)
of_matrix("det", matrix, near=500, scale=1)
of_matrix("slogdet", matrix, near=500, scale=1)
of_matrix("cholesky", symmetric, near=500, scale=1, keywords={"upper": st.booleans()})
of_matrix("eigvalsh", symmetric, near=500, scale=10)
of_matrix("eigh", symmetric, near=500, scale=10, seen=eigh_seen)
of_matrix("eigvals", matrix, near=500, scale=100, seen=eigvals_seen)
of_matrix("eig", matrix, near=500, scale=100, seen=eig_seen)
of_matrix("svdvals", lambda draw, name: matrix(draw, name, False, False), near=500, scale=10)
of_matrix("svd", lambda draw, name: matrix(draw, name, False, False, 1), near=500, scale=10, seen=svd_seen,
          keywords={"full_matrices": st.booleans()})
of_matrix("qr", lambda draw, name: matrix(draw, name, False, False, 1), near=500, scale=10, seen=qr_seen,
          keywords={"mode": st.sampled_from(["reduced", "complete"])})
of_matrix("pinv", lambda draw, name: matrix(draw, name, False), near=500, scale=1)
of_matrix("matrix_rank", lambda draw, name: matrix(draw, name, False, least=1))
of_matrix("matrix_norm", lambda draw, name: matrix(draw, name, False, False, 1), near=500, scale=10,
          keywords={**KEEP, "ord": st.sampled_from(["fro", "nuc", 1, 2, np.inf, -1, -2, -np.inf])})


@row("linalg.matrix_power", near=500, scale=1)
def matrix_power(draw):
    x = matrix(draw, draw(st.sampled_from(INEXACT))) / 4
    return (x, draw(st.integers(-3, 4))), {}


@row("linalg.solve", near=500, scale=10)
def solve(draw):
    left, right = draw(pairs(INEXACT))
    x = matrix(draw, left)
    n = x.shape[-1]
    shape = draw(st.sampled_from([(n,), (n, 2), x.shape[:-2] + (n, 3)]))
    return (x, arrays(draw, right, shape, 5, False)), {}


@row("linalg.diagonal")
def diagonal(draw):
    return (arrays(draw, draw(st.sampled_from(NUMERIC)), shapes(2)),), {"offset": draw(st.integers(-5, 5))}


@row("linalg.trace", near=64, scale=20)
def trace(draw):
    x = arrays(draw, draw(st.sampled_from(NUMERIC)), shapes(2), 5, False)
    return (x,), {"offset": draw(st.integers(-5, 5))}


reduced("linalg.vector_norm", INEXACT, bound=10, special=False, min_side=1, near=64, scale=20,
        keywords={**KEEP, "ord": st.sampled_from([1, 2, 0, np.inf, -np.inf, 3, 0.5])})
ROWS["linalg.vector_norm"].near = 200

# --- Fourier transforms ------------------------------------------------------------------------------------

NORM = st.sampled_from(["backward", "ortho", "forward"])
COMPLEX, REALS = ("complex64", "complex128"), FLOATS


def transforms(names, dtypes, several):
    @row(" ".join("fft." + n for n in names.split()), near=64, scale=100)
    def drawn(draw, name):
        x = arrays(draw, draw(st.sampled_from(dtypes)), shapes(1, 3, 6, min_side=2), 5, False)
        said = {"norm": draw(NORM)}
        if several:
            at = draw(st.lists(st.integers(0, x.ndim - 1), min_size=1, unique=True).map(tuple))
            sizes = [draw(st.integers(2, 7)) for _ in at]
            return (x,), {**said, "axes": at, "s": draw(st.sampled_from([None, tuple(sizes)]))}
        return (x,), {**said, "axis": draw(st.integers(-x.ndim, x.ndim - 1)), "n": draw(st.one_of(st.none(), st.integers(2, 9)))}


transforms("fft ifft irfft hfft", COMPLEX, False)
transforms("rfft ihfft", REALS, False)
transforms("fftn ifftn irfftn", COMPLEX, True)
transforms("rfftn", REALS, True)


@row("fft.fftfreq fft.rfftfreq", near=4)
def frequencies(draw):
    return (draw(st.integers(1, 9)),), {"d": draw(st.sampled_from([1.0, 0.5, 3])), "dtype": Dtype(draw(st.sampled_from(FLOATS)))}


@row("fft.fftshift fft.ifftshift")
def fftshift(draw):
    x = arrays(draw, draw(st.sampled_from(INEXACT)), shapes(1))
    return (x,), {"axes": axes(draw, x.ndim)}

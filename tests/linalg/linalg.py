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
# With --few, under sanitizers, for which the code of each is the same: a real and a complex one.
FEW = "--few" in sys.argv
DTYPES = ("f4", "c16") if FEW else ("f4", "f8", "c8", "c16")
EXACT = ("c16",) if FEW else ("f8", "c16") # what differences are taken of


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
            ways = [(trans, op, unit) for trans, op in (("none", lambda x: x), ("transpose", lambda x: x.swapaxes(-1, -2)), ("adjoint", adjoint))
                    for unit in (False, True)]
            # The other triangle is not read: a has numbers there.
            solved = run("f = a + triu(c, k=1); " + ", ".join(
                f"linalg.solve_triangular({f}, b{more}, transpose={trans}, unit_diagonal={str(unit).lower()})"
                for trans, _, unit in ways for f, more in (("f", ", lower=true"), ("f.mT", ""))), a=a, b=b, c=numbers(d, *of_a, seed=2))
            for i, (trans, op, unit) in enumerate(ways):
                one = a - np.tril(np.triu(a)) + np.eye(of_a[-1]) if unit else a
                for x, factor in zip(solved[2 * i:], (one, one.swapaxes(-1, -2))):
                    again = op(factor) @ (x[..., None] if b.ndim == 1 else x)
                    again = again[..., 0] if b.ndim == 1 else again
                    want = np.broadcast_to(column[..., 0] if b.ndim == 1 else b, again.shape)
                    close(again.astype(d), want, f"solve_triangular of {d}{of_a} {of_b} {trans} {unit}", 500)


MATRICES = [[1, 1], [4, 4], [3, 4, 4], [5, 3], [3, 5], [2, 2, 33, 20], [0, 3], [3, 0], [0, 0], [0, 3, 2]]
SQUARE = [[1, 1], [4, 4], [2, 3, 4, 4], [33, 33], [0, 0], [0, 3, 3]]


def rebuilt(name, got, a, factor=200):
    close(got.astype(a.dtype), a, name, factor)


def orthonormal(name, q):
    rebuilt(name + ": columns", adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), [*q.shape[:-2], q.shape[-1], q.shape[-1]]))


def factors_give_the_matrix_again():
    for d in DTYPES:
        for shape in MATRICES:
            a, name = numbers(d, *shape), f"{d}{shape}"
            k = min(shape[-2:])
            p, l, u, q, r, q2, r2, t = run("linalg.lu(a), linalg.qr(a), linalg.qr(a, mode=complete), linalg.qr(a.mT.mT)[1]", a=a)
            rebuilt("lu of " + name, p @ l @ u, a)
            assert l.shape[-1] == k and (np.triu(l, 1) == 0).all() and (np.tril(u, -1) == 0).all(), name
            assert p.size == 0 or (np.sort(p.reshape(-1, shape[-2]), axis=-1)[:, -1] == 1).all(), name
            for x, y, columns in ((q, r, k), (q2, r2, shape[-2])):
                assert x.shape[-1] == columns and (np.tril(y, -1) == 0).all(), name
                rebuilt("qr of " + name, x @ y, a)
                orthonormal("q of " + name, x)
            close(t, r, "r of " + name)
            u, s, vh, s2, u2, s3, vh2 = run("linalg.svd(a), linalg.svdvals(a), linalg.svd(a, full_matrices=false)", a=a)
            close(s, np.linalg.svd(a, compute_uv=False), "singular values of " + name, 200)
            close(s2, s, "svdvals of " + name, 200)
            close(s3, s, "values of a reduced svd of " + name, 200)
            rebuilt("svd of " + name, u2 * s[..., None, :] @ vh2, a)
            rebuilt("full svd of " + name, u[..., :k] * s[..., None, :] @ vh[..., :k, :], a)
            for x in (u, adjoint(vh), u2, adjoint(vh2)):
                orthonormal("svd of " + name, x)
            assert u.shape[-1] == shape[-2] and vh.shape[-1] == shape[-1] and u2.shape[-1] == vh2.shape[-2] == k, name


def eigenvalues_are_numpys():
    for d in DTYPES:
        for shape in SQUARE:
            a, name = positive(d, *shape) - 2 * np.eye(shape[-1], dtype=d), f"{d}{shape}"
            w, v, w2, v2, w3, w4 = run("l = tril(a) + triu(a * 7, k=1); u = triu(a) + tril(a * 7, k=-1);"
                                       "linalg.eigh(l), linalg.eigh(u, uplo=U), linalg.eigvalsh(l), linalg.eigvalsh(u, uplo=U)", a=a)
            for x in (w, w2, w3, w4):
                close(x, np.linalg.eigvalsh(a), "eigvalsh of " + name, 200)
            for x in (v, v2):
                rebuilt("eigh of " + name, x * w[..., None, :] @ adjoint(x), a, 1000)
                orthonormal("eigh of " + name, x)


def general_eigenvalues_are_numpys():
    for d in DTYPES:
        for shape in SQUARE:
            a, name = numbers(d, *shape), f"{d}{shape}"
            wide = np.result_type(d, "c8").type
            w, v, w2 = run("linalg.eig(a), linalg.eigvals(a)", a=a)
            want = np.linalg.eigvals(a).astype(wide)
            for x in (w, w2):  # in any order
                assert x.dtype == wide and x.shape == want.shape, name
                distance = np.abs(x[..., :, None] - want[..., None, :])
                assert distance.min(axis=-1, initial=9).max(initial=0) < 2e4 * np.finfo(d).eps, name
            close(a @ v, (v * w[..., None, :]).astype(wide), "eig of " + name, 1000)
            close(np.linalg.norm(v, axis=-2), np.ones(w.shape, np.finfo(d).dtype), "lengths of " + name)


def least_squares_are_numpys():
    for d in DTYPES:
        for of_a, of_b in (((4, 4), (4,)), ((5, 3), (5, 2)), ((3, 5), (3,)), ((40, 7), (40, 9)), ((7, 40), (7, 1)), ((1, 1), (1,))):
            a, b = numbers(d, *of_a), numbers(d, *of_b, seed=1)
            deficient = a.copy()
            deficient[:, -1] = deficient[:, 0]
            for x in (a, deficient):
                got, rest, rank, s = run("linalg.lstsq(a, b)", a=x, b=b)
                want, _, r, values = np.linalg.lstsq(x, b, rcond=None)
                name = f"lstsq of {d}{of_a} {of_b}"
                close(got, want, name, 2000)
                close(s, values, name, 200)
                assert rank == r, name
                m, n = of_a
                both = np.abs(x @ want - b) ** 2
                close(rest, np.atleast_1d(both.sum(axis=0)).astype(s.dtype) if m > n else np.zeros(0, s.dtype), name, 2000)
        a, b = numbers(d, 2, 1, 5, 3), numbers(d, 3, 5, 2)
        got = run("linalg.lstsq(a, b)", a=a, b=b)
        for i in np.ndindex(2, 3):
            want = np.linalg.lstsq(a[i[0], 0], b[i[1]], rcond=None)
            for x, y in zip(got, want):
                if x.dtype.kind == "i":
                    assert x[i] == y
                else:
                    close(x[i], np.asarray(y), f"lstsq of batches of {d}", 2000)
    for of_a, of_b in (((0, 3), (0,)), ((3, 0), (3, 2)), ((3, 2), (3, 0)), ((0, 3, 2), (3,))):
        run("linalg.lstsq(a, b)", a=numbers("f8", *of_a), b=numbers("f8", *of_b))


def inverses_of_factors_are_inverses():
    for d in DTYPES:
        for shape in SQUARE:
            l, name = lower(d, *shape), f"{d}{shape}"
            low, up, a, b = run("linalg.tri_inv(l), linalg.tri_inv(l.mT, upper=true), linalg.cholesky_inv(l), linalg.cholesky_inv(conjugate(l).mT, upper=true)", l=l)
            close(low, np.linalg.inv(l), "tri_inv of " + name, 200)
            close(up, low.swapaxes(-1, -2), "upper tri_inv of " + name, 200)
            for x in (a, b):
                close(x, np.linalg.inv(l @ adjoint(l)), "cholesky_inv of " + name, 500)


def systems_are_numpys():
    for d in DTYPES:
        for shape in SQUARE:
            a, name = numbers(d, *shape) + 3 * np.eye(shape[-1], dtype=d), f"{d}{shape}"
            n = shape[-1]
            x, det, sign, size, adj, turned = run("linalg.inv(a), linalg.det(a), linalg.slogdet(a), linalg.adjugate(a), linalg.inv(a.mT)", a=a)
            close(x, np.linalg.inv(a), "inv of " + name, 200)
            close(turned, x.swapaxes(-1, -2), "inv of transposed " + name, 200)
            s, z = np.linalg.slogdet(a)
            close(sign, np.asarray(s, d), "sign of " + name, 200)
            close(size, np.asarray(z), "logabsdet of " + name, 200)
            if n < 10:
                close(det, np.asarray(np.linalg.det(a), d), "det of " + name, 200)
                wide = a.astype("c16" if a.dtype.kind == "c" else "f8")
                close(adj, (np.linalg.inv(wide) * np.linalg.det(wide)[..., None, None]).astype(d), "adjugate of " + name, 400)
            for of_b in ([n], [n, 1], [n, 3], [2, 1, n, 2] if len(shape) == 4 else [n, 0]):
                b = numbers(d, *of_b, seed=1)
                got, = run("linalg.solve(a, b)", a=a, b=b)
                again = a @ (got[..., None] if len(of_b) == 1 else got)
                again = again[..., 0] if len(of_b) == 1 else again
                rebuilt(f"solve of {name} {of_b}", again, np.broadcast_to(b, again.shape))


def small_matrices_of_a_batch_are_numpys():
    """Side by side: more of them than lanes, axes that end within a vector, broadcasts, each instruction set."""
    for cpu in ("baseline", "avx2", "avx512"):
        for d in ("f4", "f8"):
            for of_a, of_b in (((17, 3, 3), (17, 3, 2)), ((3, 5, 4, 4), (5, 4, 1)), ((1, 32, 32), (21, 32, 33)), ((2, 1, 9, 9), (7, 9, 64))):
                a, b = positive(d, *of_a), numbers(d, *of_b, seed=1)
                x, turned, inv, det, sign, size, low, up, tri = run(
                    "linalg.solve(a.mT, b), linalg.solve(a, b + 0), linalg.inv(a), linalg.det(a / 4), linalg.slogdet(a), linalg.cholesky(a),"
                    "linalg.cholesky(a, upper=true), linalg.solve_triangular(a, b, transpose=transpose)", env={**CPU, "TENON_CPU": cpu}, a=a, b=b)
                name = f"{d} {of_a} {of_b} {cpu}"
                wide = a.astype("f8")
                close(x, np.linalg.solve(wide, np.broadcast_to(b, x.shape)).astype(d), "solve " + name, 2000)
                close(turned, x, "solve of transposed " + name, 2000)
                close(inv, np.linalg.inv(wide).astype(d), "inv " + name, 2000)
                close(det, np.linalg.det(wide / 4).astype(d), "det " + name, 2000)
                close(sign, np.ones_like(sign), "sign " + name)
                close(size, np.linalg.slogdet(wide)[1].astype(d), "logabsdet " + name, 2000)
                close(low, np.linalg.cholesky(wide).astype(d), "cholesky " + name, 2000)
                close(up, low.swapaxes(-1, -2), "upper cholesky " + name, 2000)
                rebuilt("solve_triangular " + name, np.tril(a) @ tri, np.broadcast_to(b, tri.shape))
    # Of 20 matrices the one that is named, and NaN that stays in its own.
    a = np.stack([np.eye(3)] * 20)
    a[17, 1, 1] = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.npy")
        np.save(path, a)
        for call in ("inv(a)", "solve(a, a)", "cholesky(a)", "solve_triangular(a, a)"):
            refused("eval", f"linalg.{call}", f"a={path}", env=CPU, saying=f"linalg.{call.split('(')[0]}: matrix 17 of 20 is")
    a[17, 1, 1], a[11, 2, 0] = 1, np.nan
    for x in run("linalg.inv(a), linalg.det(a), linalg.slogdet(a)[1], linalg.solve(a, a)", a=a):
        assert np.isnan(x[11]).all() and np.isfinite(np.delete(x, 11, 0)).all(), x


def large_matrices_are_factored_by_threads():
    """By blocks of columns: numbers of rows beside multiples of these, each dtype, more rows than columns, and less; with threads of
    OpenBLAS' own beside them; and what has no result."""
    residuals = {"solve": "a @ linalg.solve(a, b) - b", "inv": "a @ linalg.inv(a) - e", "cholesky": "l = linalg.cholesky(p); l @ conjugate(l.mT) - p",
                 "upper cholesky": "u = linalg.cholesky(p, upper=true); conjugate(u.mT) @ u - p", "other triangle": "triu(linalg.cholesky(p), k=1)",
                 "other upper triangle": "tril(linalg.cholesky(p, upper=true), k=-1)",
                 "solve_triangular": "tril(p) @ linalg.solve_triangular(p, b, lower=true) - b", "lu of columns": "p, l, u = linalg.lu(a[:, :280]); p @ l @ u - a[:, :280]",
                 "lu of rows": "p, l, u = linalg.lu(a[:280]); p @ l @ u - a[:280]"}
    text = "; ".join(f"{e.rsplit('; ', 1)[0]}; r{i} = max(abs({e.rsplit('; ', 1)[1]}))" if "; " in e else f"r{i} = max(abs({e}))"
                     for i, e in enumerate(residuals.values())).replace("p, l, u", "q, l, u").replace("p @ l @ u", "q @ l @ u")
    for d, n, more in (("f4", 300, {}), ("f8", 320, {"OPENBLAS_NUM_THREADS": "2"}), ("c16", 289, {})):
        threads = {**CPU, "TENON_THREADS": "4", **more}
        pos = positive(d, n, n) + np.eye(n, dtype=d)
        a = (numbers(d, n, n) + 30 * np.eye(n, dtype=d))[::-1].copy()  # rows have to be exchanged
        *got, sign, size = run(text + "; " + ", ".join(f"r{i}" for i in range(len(residuals))) + ", linalg.slogdet(a)", env=threads,
                               a=a, b=numbers(d, n, 70, seed=1), p=pos, e=np.eye(n, dtype=d))
        for name, off in zip(residuals, got):
            bound = 0 if "other" in name else 5000 * np.finfo(d).eps * (1000 if name == "solve_triangular" else 1)
            assert off <= bound, f"{name} of {d} {n} {more}: off by {off}, allowed {bound}"
        s, z = np.linalg.slogdet(a)
        close(sign, np.asarray(s, d), f"sign of {d}", 2000)
        close(size, np.asarray(z), f"logabsdet of {d}", 2000)
    threads, bad, batch = {**CPU, "TENON_THREADS": "4"}, np.eye(300), positive("f8", 20, 64, 64)
    for more in ({}, {"OPENBLAS_NUM_THREADS": "2"}):
        off, = run("max(abs(a @ linalg.inv(a) - e))", env={**threads, **more}, a=batch, e=np.eye(64))
        assert off < 1e-9, f"inv of 20 {more}: off by {off}"
    bad[290, 290] = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.npy")
        np.save(path, bad)
        for call, saying in (("inv(a)", "is singular"), ("solve(a, a)", "is singular"), ("cholesky(a)", "is not positive definite")):
            refused("eval", f"linalg.{call}", f"a={path}", env=threads, saying=f"linalg.{call.split('(')[0]}: matrix 0 of 1 {saying}")
    assert run("linalg.det(a)", env=threads, a=bad)[0] == 0
    bad[5, 5] = np.nan
    assert np.isnan(run("linalg.solve(a, a)", env=threads, a=bad)[0]).all()


def singular_matrices_have_determinants_and_adjugates():
    for a in (np.arange(9.0).reshape(3, 3), np.zeros((3, 3)), np.array([[1.0, 2], [2, 4]]), np.diag([1.0, 2, 0]),
              np.array([[1j, 2], [2j, 4]]), np.zeros((1, 1)), np.ones((4, 4))):
        n = len(a)
        cofactors = np.array([[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for i in range(n)]
                              for j in range(n)]).astype(a.dtype)
        det, sign, size, adj = run("linalg.det(a), linalg.slogdet(a), linalg.adjugate(a)", a=a)
        close(det, np.zeros((), a.dtype), f"det of {a}", 500)
        close(adj, cofactors, f"adjugate of {a}", 500)
        assert size == -np.inf or size < -30, (a, sign, size)
        g, = run("d = linalg.det(a); real(d) + imag(d)", grad="a", a=a)
        close(g, adjoint(cofactors) * (1 if a.dtype.kind == "f" else 1 + 1j), f"gradient of det of {a}", 500)


def nan_and_infinity_come_to_an_end():
    """Decompositions by iterations name the matrix; direct methods give NaN."""
    for d in DTYPES:
        for k, bad in enumerate((np.nan, np.inf)):
            for i, n in enumerate((2, 5, 40)):
                a = np.stack([np.eye(n, dtype=d), positive(d, n, n)])
                a[1, n - 1, 0] = bad
                with tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "a.npy")
                    np.save(path, a)
                    for name in ITERATIVE[(i + k) % 3::3]:
                        refused("eval", f"linalg.{name}(a)", f"a={path}", env=CPU,
                                saying=f"linalg.{name}: matrix 1 of 2 has a NaN or an infinity, expected finite elements")
                if np.isnan(bad):
                    for x in run("linalg.inv(a), linalg.det(a), linalg.slogdet(a)[1], linalg.solve(a, a), linalg.lu_factor(a)[0],"
                                 "linalg.qr(a)[1], linalg.adjugate(a)", a=a):
                        assert np.isfinite(x[0]).all() and np.isnan(x[1]).any(), (d, x)
                else:
                    run("linalg.inv(a), linalg.det(a), linalg.slogdet(a), linalg.solve(a, a), linalg.lu(a), linalg.qr(a)", a=a)


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
# Losses that no sign and no phase of a vector changes.
SMOOTH |= {
    "inv": "linalg.inv(x + 3 * e)",
    "solve": "linalg.solve(x + 3 * e, y)",
    "solve for the right side": "linalg.solve(y + 3 * e, x)",
    "det": "expand_dims(linalg.det(x), axis=[-2, -1]) * y",
    "slogdet": "s, l = linalg.slogdet(x); expand_dims(s * l, axis=[-2, -1]) * y",
    "adjugate": "linalg.adjugate(x)",
    "lu_factor": "linalg.lu_factor(x + 3 * e)[0]",
    "lu": "p, l, u = linalg.lu(x + 3 * e); p @ l + u * 2",
    "qr": "q, r = linalg.qr(x); q + 2 * r",
    "svdvals": "expand_dims(linalg.svdvals(x), axis=[-2]) * y",
    "svd": "u, s, v = linalg.svd(x); abs(u) ** 2 * y + abs(v) * expand_dims(s, axis=[-2])",
    "svd with phases": "u, s, v = linalg.svd(x); (u * expand_dims(s, axis=[-2]) ** 2) @ v",
    "eig": "l, v = linalg.eig(x); abs(v) ** 2 * expand_dims(l, axis=[-2])",
    "eig with phases": "l, v = linalg.eig(x); (v * expand_dims(l, axis=[-2]) ** 2) @ linalg.inv(v)",
    "eigvals": "expand_dims(linalg.eigvals(x) ** 2, axis=[-2]) * abs(y[0, 0])",
    "lstsq": "a, r, k, s = linalg.lstsq(x[..., :2], y); concatenate([a, e[0, 0] * expand_dims(r, axis=[-2])], axis=-2)",
    "lstsq of more columns": "linalg.lstsq(x[..., :2, :], y[:2])[0]",
    "lstsq for the right side": "a, r, k, s = linalg.lstsq(y[:, :2], x); concatenate([a, e[0, 0] * expand_dims(r, axis=[-2])], axis=-2)",
    "singular values of lstsq": "expand_dims(linalg.lstsq(x, y)[3], axis=[-2]) * abs(y)",
    "tri_inv": "linalg.tri_inv(x + 3 * e, upper=true)",
    "cholesky_inv": "linalg.cholesky_inv(x + 3 * e)",
    "eigvalsh": "expand_dims(linalg.eigvalsh(x + conjugate(x).mT), axis=[-2]) * y",
    "eigh": "l, v = linalg.eigh(x + conjugate(x).mT); abs(v) ** 2 * expand_dims(l, axis=[-2])",
    "eigh with phases": "l, v = linalg.eigh(x + conjugate(x).mT); (v * expand_dims(l, axis=[-2]) ** 3) @ conjugate(v).mT + y",
}
SECOND = ["cholesky", "inv", "solve", "det", "slogdet", "adjugate", "eigh", "eigvalsh", "svdvals", "svd", "qr", "solve_triangular"]


def result(expression):
    *before, last = expression.split("; ")
    return "; ".join([*before, f"r = {last}"])


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
    for d in EXACT:
        x, y, e = numbers(d, 3, 3, seed=3), numbers(d, 3, 3, seed=4), np.eye(3, dtype=d)
        for name, expression in SMOOTH.items():
            w = numbers(d, 3, seed=5) if "vector" in name else numbers(d, 3, 3, seed=5)
            axes = "[-1]" if "vector" in name else "[-2, -1]"
            losses = f"{result(expression)}; z = r * w; sum(real(z) + 0.7 * imag(z), axis={axes})"

            def loss(batch, given, losses=losses):
                return run(losses, **given, x=batch)[0]
            given = {"y": y, "e": e, "w": w}
            got, = run(losses, grad="x", x=x, **given)
            want = differences(loss, x, given)
            assert np.abs(got - want).max() < 1e-7, f"gradient of {name} of {d}: {got}, by differences {want}"


def second_gradients_are_those_of_differences():
    for d in EXACT:
        x, y, e, w = (numbers(d, 3, 3, seed=6), numbers(d, 3, 3, seed=4), np.eye(3, dtype=d), numbers(d, 3, 3, seed=5))
        for name in SECOND:
            expression = (f"{result(SMOOTH[name])}; z = r * w; g = grad(sum(real(z) + 0.7 * imag(z)), x); v = g * y;"
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
    *[(f"linalg.{name}(x)", "a has shape [2, 3], expected square matrices")
      for name in ("inv", "det", "slogdet", "adjugate", "eigh", "eigvalsh")],
    *[(f"linalg.{name}(x[0])", "a has shape [3], expected a matrix: at least 2 axes") for name in ("lu_factor", "qr", "svd", "svdvals")],
    ("linalg.qr(broadcast_to(x[:, :1], [2, 2147483648]))", "a has shape [2, 2147483648], expected fewer than 2147483647 rows and columns"),
    ("linalg.solve(x, x)", "a has shape [2, 3], expected square matrices"),
    ("linalg.solve(x[:, :2], x.mT)", "a has shape [2, 2] and b [3, 2], expected 2 rows of b"),
    ("linalg.eigh(astype(x, i32)[:, :2])", "input a is i32, expected one of f32, f64, complex64, complex128"),
    ("linalg.lu_permutation(astype(x, i32), rows=2)", "pivots have shape [2, 3] and rows is 2, expected at least one row for each pivot"),
    ("grad(sum(linalg.qr(x.mT, mode=complete)[0]), x)", "of mode complete with more rows than columns there is no derivative"),
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
FAILS += [(f"linalg.{name}", f"linalg.{name.split('(')[0]}: matrix 1 of 3 is singular") for name in ("inv(x)", "solve(x, x)", "solve(x, x[0, 0])")]
ITERATIVE = ["svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals"]
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
        [cholesky_is_numpys, triangular_systems_are_solved, factors_give_the_matrix_again, eigenvalues_are_numpys, general_eigenvalues_are_numpys, least_squares_are_numpys,
         inverses_of_factors_are_inverses, systems_are_numpys, small_matrices_of_a_batch_are_numpys,
         large_matrices_are_factored_by_threads,
         singular_matrices_have_determinants_and_adjugates, nan_and_infinity_come_to_an_end, gradients_are_those_of_differences,
         second_gradients_are_those_of_differences, definitions_do_without_lapack] if np else []))

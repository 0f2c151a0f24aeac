# SPDX-License-Identifier: MIT
"""Cases of golden.py for pack linalg: norms, condition numbers, powers, ranks and pseudo-inverses as
numpy.linalg gives them, computed in f64; exponentials by closed forms. Of norms and powers those that need
no factors, which GPUs have none of: the others are in tests/linalg/functions.py."""
import numpy as np
from golden_operators import F4, F8, I4, real

ORDERS = ('fro', 1, -1, np.inf, -np.inf)


def pair(z):
    """A complex number as a matrix."""
    return np.array([[z.real, -z.imag], [z.imag, z.real]])


def norms(add):
    x = real((3, 4, 5))
    v = np.array([3.0, 0, -4, 0.5, 1e-3])
    for d in (F4, F8):
        y, w = x.astype(d), v.astype(d)
        z, u = y.astype('f8'), w.astype('f8')
        for ord in (0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf):
            add('linalg.vector_norm', [w], np.linalg.norm(u, ord).astype(d), 32, ord=ord)
            add('linalg.vector_norm', [y], np.linalg.norm(z, ord, 1, True).astype(d), 32, ord=ord, axis=[1], keepdims=True)
            add('linalg.norm', [w], np.linalg.norm(u, ord).astype(d), 32, ord=ord)
        add('linalg.vector_norm', [y], np.sqrt((z * z).sum((0, 2))).astype(d), 32, axis=[0, -1])
        add('linalg.norm', [y], np.linalg.norm(z).astype(d), 32)
        add('linalg.norm', [y], np.linalg.norm(z, axis=(0, 2)).astype(d), 32, axis=[0, 2])
        for ord in ORDERS:
            add('linalg.matrix_norm', [y], np.linalg.norm(z, ord, (1, 2)).astype(d), 64, ord=ord)
            add('linalg.matrix_norm', [y], np.linalg.norm(z, ord, (2, 0), True).astype(d), 64, ord=ord, axis=[2, 0],
                keepdims=True)
            add('linalg.norm', [y[0]], np.linalg.norm(z[0], ord).astype(d), 64, ord=ord)
            add('linalg.cond', [y[:, :, :4].copy()], np.array([np.linalg.cond(a[:, :4], ord) for a in z]).astype(d), 2000, p=ord)
        add('linalg.cond', [y], np.linalg.cond(z).astype(d), 500)
        add('linalg.vector_norm', [y[:0]], np.zeros((), d))
        add('linalg.vector_norm', [np.array(-2.5, d)], np.array(2.5, d))
    add('linalg.vector_norm', [np.array([3, 4], I4)], np.array(5.0), 2)
    add('linalg.matrix_norm', [np.array([[True, False], [True, True]])], np.sqrt(3.0), 2)
    add('linalg.vector_norm', [np.array([300, 400], 'f2')], np.array(500, 'f2'), 1)


def complex_norms(add):
    z = real((2, 3, 4)) + 1j * real((2, 3, 4))
    for d in ('c8', 'c16'):
        y = z.astype(d)
        w = y.astype('c16')
        f = y.real.dtype
        for ord in ORDERS:
            add('linalg.matrix_norm', [y], np.linalg.norm(w, ord, (1, 2)).astype(f), 64, ord=ord)
        for ord in (0, 1, 2, 3, -1, np.inf):
            add('linalg.vector_norm', [y], np.linalg.norm(w, ord, 2).astype(f), 32, ord=ord, axis=[2])
        add('linalg.pinv', [y], np.linalg.pinv(w).astype(d), 2000)
        add('linalg.matrix_power', [y[:, :, :3].copy()], np.linalg.matrix_power(w[:, :, :3], 5).astype(d), 500, n=5)
        t = np.array([[1j, 0], [0, 2 - 1j]], d)
        add('linalg.expm', [t], np.diag(np.exp(np.diag(t.astype('c16')))).astype(d), 32)


def functions(add):
    a = real((2, 4, 4)) + 3 * np.eye(4)
    m = np.arange(12.0).reshape(3, 4)
    for d in (F4, F8):
        b = a.astype(d)
        c, eps = b.astype('f8'), np.finfo(d).eps
        for n in (0, 1, 2, 3, 8):
            add('linalg.matrix_power', [b], np.linalg.matrix_power(c, n).astype(d), 2000, n=n)
        for x in (b, b[:, :3].copy(), b[:, :, :2].copy(), m.astype(d)):
            y = x.astype('f8')
            limit = max(x.shape[-2:]) * eps
            add('linalg.pinv', [x], np.linalg.pinv(y, limit).astype(d), 4000)
            s = np.linalg.svd(y, compute_uv=False)
            add('linalg.matrix_rank', [x], (s > limit * s.max(-1, keepdims=True)).sum(-1))
        h = (m.T @ m).astype(d)
        add('linalg.pinv', [h], np.linalg.pinv(h.astype('f8'), 1e-5, True).astype(d), 40000, rtol=1e-5, hermitian=True)
        add('linalg.matrix_rank', [h], np.array(2), rtol=1e-5, hermitian=True)
        add('linalg.matrix_rank', [m.astype(d)], np.array(1), tol=5.0)
    add('linalg.matrix_power', [np.array([[1, 1], [1, 0]], 'i8')], np.array([[10946, 6765], [6765, 4181]]), n=20)


def exponentials(add):
    """Diagonal, nilpotent and Jordan blocks, rotations, and products with them of integers without rounding."""
    up = np.array([[1.0, 2, 0], [0, 1, -1], [0, 0, 1]])
    back = np.array([[1.0, -2, -2], [0, 1, 1], [0, 0, 1]])
    for d in (F4, F8):
        for t in (0.0, 1e-3, 1.0, -7.5, 40.0):
            add('linalg.expm', [pair(1j * t).astype(d)], pair(np.exp(1j * np.float64(d.type(t)))).astype(d), 4000)
            add('linalg.expm', [np.array([[t]], d)], np.exp(np.array([[t]], d)), 4000)
            add('linalg.expm', [np.array([[t, 1], [0, t]], d)], np.exp(d.type(t)) * np.array([[1, 1], [0, 1]], d), 400)
        add('linalg.expm', [np.array([[0, 3, 5], [0, 0, -2], [0, 0, 0]], d)],
            np.array([[1, 3, 2], [0, 1, -2], [0, 0, 1]], d), 64)
        for l in ([1.0, 2, -1], [0.5, 0.5, 0.25], [-8, 4, 2]):
            assert np.array_equal(up @ back, np.eye(3))
            add('linalg.expm', [(up @ np.diag(l) @ back).astype(d)], (up @ np.diag(np.exp(l)) @ back).astype(d), 20000)
        # Moler and Van Loan: eigenvalues -1 and -17.
        v = np.array([[1.0, 3], [2, 4]])
        add('linalg.expm', [np.array([[-49, 24], [-64, 31]], d)],
            (v @ np.diag(np.exp([-1.0, -17])) @ np.linalg.inv(v)).astype(d), 20000)
        add('linalg.expm', [np.stack([np.zeros((2, 2)), pair(3j), np.diag([5.0, -5])]).astype(d)],
            np.stack([np.eye(2), pair(np.exp(3j)), np.diag(np.exp([5.0, -5]))]).astype(d), 4000)


def make(add):
    norms(add)
    functions(add)
    exponentials(add)


def make_complex(add):
    complex_norms(add)

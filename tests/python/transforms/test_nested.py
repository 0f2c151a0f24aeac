# SPDX-License-Identifier: MIT
"""Transforms of transforms of functions with loops, branches, checkpoints, rules of their own and operators of
all packs: batches of batches, of gradients and Hessians, gradients of batches, forward over reverse beside
reverse over reverse and differences. What is mapped is compared with a loop."""

import numpy as np
import pytest

import tenon as tn

D = "float64"


def A(x):
    return tn.array(np.asarray(x, D))


W = A(np.cos(np.arange(9.0)).reshape(3, 3) * 0.4)


def powers(x, w):
    return tn.while_loop(lambda c: c["i"] < 4, lambda c: {"i": c["i"] + 1, "v": tn.tanh(c["v"] @ w) + x}, {"i": tn.array(0), "v": x}, times=4)["v"]


def until(x, w):  # as many times as the data says
    return tn.while_loop(lambda v: tn.sum(v * v) > 0.3, lambda v: 0.6 * tn.sin(v @ w + 0.1 * x), x, times=7)


def scanned(x, w):
    carry, ys = tn.scan(lambda c, a: (tn.tanh(c + a * x), c * a), x, tn.sin(w))
    return carry + tn.sum(ys, axis=0)


def scanned_back(x, w):
    carry, ys = tn.scan(lambda c, a: (tn.sin(c @ w) + a, tn.sum(c * c)), x, tn.stack([x, x * x, x + 1]), reverse=True)
    return carry * ys


def branches(x, w):
    return tn.cond(tn.sum(x) > 0.4, lambda x: tn.exp(x) @ w, lambda x: x * x * x, x)


def branch_of_all(x, w):
    return tn.cond(w[0, 0] > 0, lambda x: tn.sin(x @ w), lambda x: x, x)


def checked(x, w):
    return tn.checkpoint(lambda x, w: tn.tanh(tn.exp(x) @ w))(x, w)


def chain(x, w):
    return tn.checkpoint_sequential([lambda v: tn.tanh(v @ w), lambda v: v * x, tn.sin], 2, x)


@tn.custom_function
def cubed(x):
    return x * x * x


@cubed.vjp
def _(primals, cotangents, outputs):
    return 3 * cotangents * primals * primals


def custom(x, w):
    return cubed(x @ w) * x


def nested(x, w):
    def step(c, a):
        c = tn.cond(tn.sum(c) > 0.2, lambda c: tn.sin(c @ w), lambda c: tn.while_loop(None, lambda v: v * v + x, c, times=2), c)
        return c, tn.checkpoint(lambda c: tn.exp(-c * a))(c)
    carry, ys = tn.scan(step, x, tn.array(np.array([0.5, 1.5])))
    return carry + tn.sum(ys, axis=0)


def mapped(x, w):  # a map within a scan
    carry, _ = tn.scan(lambda c, a: (tn.vmap(lambda u: tn.sum(tn.sin(u * c)))(w) * a, a), x, x)
    return carry


def sorted_(x, w):
    y = tn.sort(x @ w)
    return tn.cumsum(y * y) + tn.take(y, tn.argsort(x), axis=0)


def solved(x, w):
    m = w + 3 * tn.eye(3, dtype=D) + x[:, None] * x
    return tn.linalg.solve(m, x[:, None])[:, 0] + tn.linalg.det(m) + tn.linalg.inv(m) @ x


def noisy(x, w):
    key = tn.random.key(7)
    return x * tn.random.normal(key, shape=[3], dtype=D) + tn.random.uniform(key, shape=[3], dtype=D) * tn.sum(w)


def attends(x, w):
    q = tn.reshape(tn.stack([x, x * x, tn.sin(x), x + 1]) @ w, [1, 4, 3])
    return tn.nn.scaled_dot_product_attention(q, q * 0.5, q + 1)[0, 1]


def spectrum(x, w):
    f = tn.fft.fft(x @ w)
    return tn.real(f * tn.conj(f))


def through_function(x, w):
    return tn.function(lambda x, w: tn.sin(x @ w) * x)(x, w)


def convolved(x, w):
    return tn.nn.conv1d(tn.reshape(x, [1, 3, 1]), tn.reshape(w[:2], [2, 3, 1])[:, :2], padding=[1])[0, :3, 0]


def symmetric(x, w):
    return x[:, None] * x + w + tn.transpose(w) + tn.array(np.diag([1.0, 3.0, 6.0]))


def eigenvalues(x, w):
    values, vectors = tn.linalg.eigh(symmetric(x, w))
    return values * values + tn.sum(vectors * vectors * x, axis=0) + tn.linalg.eigvalsh(symmetric(x * x, w))


def triangles(x, w):
    l = tn.linalg.cholesky(symmetric(x, w * 0.3) + 3 * tn.eye(3, dtype=D))
    q, r = tn.linalg.qr(w + x[:, None] + 2 * tn.eye(3, dtype=D))
    return l @ x + tn.abs(r) @ x + (q * q) @ x


def singular(x, w):
    u, s, v = tn.linalg.svd(w + x[:, None] * x + tn.array(np.diag([1.0, 3.0, 6.0])), full_matrices=False)
    return s * s + (u @ v) @ x


def matrix_functions(x, w):
    m = w + x[:, None] * x * 0.1
    return tn.linalg.expm(m) @ x + tn.linalg.pinv(m + 2 * tn.eye(3, dtype=D)) @ x + tn.linalg.matrix_power(m, 3) @ x


def indices(x, w):
    order = tn.argsort(x)
    y = tn.zeros([3], dtype=D).at[order].add(x * x)
    values, places = tn.topk(x @ w, k=2)
    return tn.take(w, places, axis=0)[0] * values[0] + y + tn.take_along_axis(x, order, axis=0) * values[1]


def statistics(x, w):
    return tn.std(x @ w) * x + tn.median(x) * tn.var(w, axis=0) + tn.quantile(x * x, 0.3) + tn.logsumexp(x) * tn.cumprod(x)


def recurrent(x, w):
    wi, wh = tn.concatenate([w, w * 0.5, -w, w * w]), tn.concatenate([w * 0.3, w, w * w, -w])
    b = tn.zeros([12], dtype=D)
    out = tn.nn.lstm(tn.reshape(tn.stack([x, x * x]), [2, 1, 3]), wi, wh, b, b)
    first = out[0] if isinstance(out, tuple) else out
    return tn.reshape(first, [-1])[-3:]


def sinks(x, w):
    q = tn.reshape(tn.stack([x, x * x, tn.sin(x), x + 1]) @ w, [1, 4, 3])
    return tn.nn.attention_with_sinks(q, q * 0.5, q + 1, tn.reshape(x[:1], [1]))[0, 1]


def normed(x, w):
    y = tn.nn.layer_norm(x @ w, x, x * 0.1) + tn.nn.rms_norm(x, w[0])
    return tn.nn.softmax(y) + tn.nn.gelu(y) + tn.nn.log_softmax(x)


def einsums(x, w):
    return tn.einsum("i,ij,jk->k", x, w, w) + tn.kron(x, tn.ones([1], dtype=D)) + tn.convolve(x, x)[:3] + tn.cross(x, w[0])


def padded(x, w):
    y = tn.pad(x, before=[1], after=[2])
    return y[1:4] * tn.roll(x, 1) + tn.flip(x) * tn.interp(x * 0.1 + 0.05, tn.array(np.array([-1.0, 0.0, 1.0])), w[0])


def transformed(x, w):
    f = tn.fft.rfft(x @ w)
    y = tn.fft.irfft(f * tn.conj(f) * f, n=3)
    return y + tn.real(tn.fft.fftn(w + x)[0]) * x


def pooled(x, w):
    image = tn.reshape(tn.concatenate([x, x * x, w[0], x + w[1]])[:12], [1, 3, 4, 1])
    y = tn.nn.avg_pool2d(image, window=[2, 2], stride=[1, 1])
    z = tn.nn.conv2d(image, tn.reshape(w[:2, :2], [1, 2, 2, 1]))
    return tn.reshape(z, [-1])[:3] * tn.reshape(y, [-1])[:3]


def draws(x, w):
    keys = tn.random.split(tn.array(np.array([1, 2], "uint32")), num=3)
    return tn.vmap(lambda k, a: a * tn.random.normal(k, dtype=D))(keys, x)


def complexes(x, w):
    z = x + 1j * (x @ w)
    return tn.abs(z * z + 1j) + tn.real(tn.exp(z)) + tn.angle(z + 3)


FUNCTIONS = [
    powers, until, scanned, scanned_back, branches, branch_of_all, checked, chain, nested,
    mapped, sorted_, solved, noisy, attends, spectrum, through_function, convolved, custom,
    eigenvalues, triangles, singular, matrix_functions, indices, statistics, recurrent, sinks, normed,
    einsums, padded, transformed, pooled, draws, complexes,
]

X = A(np.sin(np.arange(18.0) * 0.7).reshape(2, 3, 3) * 0.8)


def total(f):
    return lambda x, w: tn.sum(f(x, w) * tn.array(np.array([1.0, -0.5, 2.0])))


def near(got, want, what):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: {got.shape} for {want.shape}"
    err = np.abs(got - want) / (1 + np.abs(want))
    assert np.all(err < 1e-9), f"{what}: {err.max()}"


def loop(f, *rest):
    return np.stack([np.stack([np.asarray(f(X[a, b], W, *rest)) for b in range(3)]) for a in range(2)])


def both(f):
    return tn.vmap(tn.vmap(f, in_axes=(0, None)), in_axes=(0, None))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_transforms_of_transforms(f):
    value = total(f)
    near(both(f)(X, W), loop(f), "vmap of vmap")
    near(tn.vmap(tn.vmap(f, in_axes=(0, None)), in_axes=(2, None))(tn.transpose(X, [1, 2, 0]), W), loop(f), "vmap of vmap, other axes")
    g = tn.grad(value)
    near(both(g)(X, W), loop(g), "vmap of vmap of grad")
    near(both(tn.grad(value, argnums=1))(X, W), loop(tn.grad(value, argnums=1)), "vmap of vmap of grad by w")
    near(tn.grad(lambda x: tn.sum(both(value)(x, W)))(X), loop(g), "grad of vmap of vmap")
    near(tn.grad(lambda w: tn.sum(both(value)(X, w)))(W), loop(tn.grad(value, argnums=1)).sum((0, 1)), "grad by what is shared")

    def inner(row, w):
        return tn.grad(lambda r: tn.sum(tn.vmap(value, in_axes=(0, None))(r, w)))(row)

    near(tn.vmap(inner, in_axes=(0, None))(X, W), loop(g), "vmap of grad of vmap")
    t = A([0.3, -1.0, 0.7])

    def hv(x, w):
        return tn.jvp(lambda x: g(x, w), (x,), (t,))[1]

    def hr(x, w):
        return tn.grad(lambda x: tn.sum(g(x, w) * t))(x)

    near(loop(hv), loop(hr), "forward over reverse, reverse over reverse")
    near(both(hv)(X, W), loop(hv), "vmap of vmap of forward over reverse")
    h = 1e-5
    want = loop(lambda x, w: (g(x + h * t, w) - g(x - h * t, w)) / (2 * h))
    assert np.all(np.abs(want - loop(hv)) < 1e-6 * (1 + np.abs(want))), "differences"
    near(both(tn.hessian(value))(X, W), loop(tn.hessian(value)), "vmap of vmap of hessian")
    near(tn.function(both(g))(X, W), loop(g), "function of vmap of vmap of grad")

# SPDX-License-Identifier: MIT
"""Recurrent layers of f32, which have a kernel, beside the formulas in NumPy and beside their own definition in
f64: values, gradients, batches, second derivatives, rows and units of edge sizes."""

import numpy as np
import pytest

import tenon as tn

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
# Positions, rows, units: few rows by other products than more, w packed and not, tiles with a rest.
SIZES = [(2, 1, 5), (9, 1, 16), (9, 3, 33), (2, 8, 7), (3, 9, 1), (2, 15, 64), (8, 33, 17), (1, 2, 3), (9, 2, 300)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def position(kind, a, b, h, c):
    if kind == "lstm":
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "rnn":
        return np.tanh(a + b), c
    (r, z, n), (s, y, m) = np.split(a, 3, -1), np.split(b, 3, -1)
    z = sigmoid(z + y)
    return (1 - z) * np.tanh(n + sigmoid(r + s) * m) + z * h, c


def expected(kind, x, w, u, a, b, h, c=None, reverse=False):
    out = [None] * len(x)
    for t in range(len(x))[:: -1 if reverse else 1]:
        h, c = position(kind, x[t] @ w.T + a, h @ u.T + b, h, c)
        out[t] = h
    return [np.stack(out), h] + ([c] if kind == "lstm" else [])


def inputs(kind, length, rows, units, seed=0):
    g, random = GATES[kind] * units, np.random.default_rng(seed)
    shapes = [(length, rows, 4), (g, 4), (g, units), (g,), (g,), (rows, units)] + [(rows, units)] * (kind == "lstm")
    return [random.standard_normal(s) / (units**0.5 if s == (g, units) else 1) for s in shapes]


def arrays(values, dtype):
    return [tn.array(v.astype(dtype)) for v in values]


def loss(kind, dtype, weights, **attrs):
    def call(*args):
        results = getattr(tn.nn, kind)(*args, **attrs)
        return sum(tn.sum(r * tn.array(w.astype(dtype))) for r, w in zip(results, weights))

    return call


def close(got, want, bound=2e-5):
    for a, b in zip(got, want):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=bound, atol=bound * max(1, np.abs(np.asarray(b)).max()))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_values_and_gradients(kind, size):
    values, reverse = inputs(kind, *size), size[0] % 2 == 1
    want = expected(kind, *values, reverse=reverse)
    close(getattr(tn.nn, kind)(*arrays(values, np.float32), reverse=reverse), want)
    weights = [np.random.default_rng(1).standard_normal(w.shape) for w in want]
    each = tuple(range(len(values)))
    got = tn.grad(loss(kind, np.float32, weights, reverse=reverse), argnums=each)(*arrays(values, np.float32))
    close(got, tn.grad(loss(kind, np.float64, weights, reverse=reverse), argnums=each)(*arrays(values, np.float64)))


@pytest.mark.parametrize("kind", GATES)
def test_gradients_beside_differences(kind):
    values = inputs(kind, 3, 2, 4)
    weights = [np.random.default_rng(1).standard_normal(w.shape) for w in expected(kind, *values)]

    def scalar(at, change):
        moved = [v + change if i == at else v for i, v in enumerate(values)]
        return sum((w * r).sum() for w, r in zip(weights, expected(kind, *moved)))

    gradients = tn.grad(loss(kind, np.float64, weights), argnums=tuple(range(len(values))))(*arrays(values, np.float64))
    for at, gradient in enumerate(gradients):
        change = np.random.default_rng(2).standard_normal(values[at].shape) * 1e-5
        slope = (scalar(at, change) - scalar(at, -change)) / 2
        assert abs(slope - (np.asarray(gradient) * change).sum()) < 1e-9


@pytest.mark.parametrize("kind", GATES)
def test_batches_share_weights_or_have_their_own(kind):
    many = [inputs(kind, 3, 2, 5, seed) for seed in range(4)]
    call = lambda *args: tuple(getattr(tn.nn, kind)(*args))
    for shared in ((1, 2, 3, 4), (), (2, 4)):
        values = [np.stack([m[i] for m in many]) if i not in shared else many[0][i] for i in range(len(many[0]))]
        axes = tuple(None if i in shared else 0 for i in range(len(values)))
        got = tn.vmap(call, in_axes=axes)(*arrays(values, np.float32))
        for n in range(4):
            own = [v if i in shared else v[n] for i, v in enumerate(values)]
            close([np.asarray(g)[n] for g in got], expected(kind, *own))


@pytest.mark.parametrize("kind", GATES)
def test_gradients_of_samples_and_second_derivatives(kind):
    values = inputs(kind, 3, 1, 4)
    x = np.stack([inputs(kind, 3, 1, 4, seed)[0] for seed in range(3)])
    total = lambda x, u, *rest: tn.sum(getattr(tn.nn, kind)(x, rest[0], u, *rest[1:])[0])
    for dtype, bound in ((np.float32, 2e-5), (np.float64, 1e-12)):
        a = arrays(values, dtype)
        rest = [a[1], *a[3:]]
        slopes = tn.grad(total, argnums=1)
        every = tn.vmap(lambda x: slopes(x, a[2], *rest))(tn.array(x.astype(dtype)))
        for n in range(3):
            close([np.asarray(every)[n]], [slopes(tn.array(x[n].astype(dtype)), a[2], *rest)], bound)
    # The derivative of the gradient's length along a direction, in both orders of modes.
    squares = lambda u: tn.sum(slopes(a[0], u, *rest) ** 2)
    t = tn.array(np.random.default_rng(3).standard_normal(values[2].shape))
    reverse = tn.sum(tn.grad(squares)(a[2]) * t).item()
    assert abs(tn.jvp(squares, (a[2],), (t,))[1].item() - reverse) <= 1e-9 * max(1, abs(reverse))
    step = 1e-5
    difference = (squares(a[2] + t * step).item() - squares(a[2] - t * step).item()) / (2 * step)
    assert abs(difference - reverse) <= 1e-6 * max(1, abs(reverse))


def test_threads_change_no_bit():
    for size in ((3, 1, 700), (3, 70, 40)):
        values = inputs("lstm", *size)
        first, again = (np.asarray(tn.nn.lstm(*arrays(values, np.float32))[0]) for _ in range(2))
        assert (first == again).all()


@pytest.mark.parametrize("kind", GATES)
def test_nan_stays_in_its_row(kind):
    values = inputs(kind, 9, 3, 20)
    values[0][4, 1, 0] = np.nan
    out = np.asarray(getattr(tn.nn, kind)(*arrays(values, np.float32))[0])
    assert np.isnan(out[4:, 1]).all() and not np.isnan(out[:4]).any() and not np.isnan(out[:, [0, 2]]).any()


@pytest.mark.parametrize("kind", GATES)
def test_without_positions_rows_or_units(kind):
    for size in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        values = [v if v.size else np.zeros(v.shape) for v in inputs(kind, *size)] if size[2] else None
        g = GATES[kind] * size[2]
        shapes = [(*size[:2], 4), (g, 4), (g, size[2]), (g,), (g,), (size[1], size[2])] + [(size[1], size[2])] * (kind == "lstm")
        values = values or [np.zeros(s) for s in shapes]
        out, h, *c = getattr(tn.nn, kind)(*arrays(values, np.float32))
        assert out.shape == size and (np.asarray(h) == values[5].astype(np.float32)).all()
        assert not c or (np.asarray(c[0]) == values[6].astype(np.float32)).all()

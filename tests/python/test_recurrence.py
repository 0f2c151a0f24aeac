# SPDX-License-Identifier: MIT
"""Recurrent layers of f32, which have a kernel, beside the formulas in NumPy and beside their own definition in
f64: values, gradients, batches, second derivatives, rows and units of edge sizes."""

import numpy as np
import pytest

import tenon as tn

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
# Positions, rows, units: few rows by other products than more, w packed and not, tiles with a rest.
SIZES = [(2, 1, 5), (9, 1, 16), (9, 3, 33), (2, 8, 7), (3, 9, 1), (2, 15, 64), (8, 33, 17), (1, 2, 3), (9, 2, 300), (10, 1, 70), (9, 1, 3)]


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


def stacked(kind, x, weights, h, c=None, bidirectional=False):
    """Layers of `expected`, in one direction or both."""
    directions, last = 2 if bidirectional else 1, ([], [])
    for first in range(0, len(weights), 4 * directions):
        sides = []
        for side in range(directions):
            own, n = weights[first + 4 * side : first + 4 * side + 4], first // 4 + side
            out, *states = expected(kind, x, *own, h[n], *([c[n]] if kind == "lstm" else []), reverse=side == 1)
            sides.append(out)
            for kept, state in zip(last, states):
                kept.append(state)
        x = np.concatenate(sides, -1)
    return [x] + [np.stack(kept) for kept in last if kept]


def layers(kind, number, bidirectional, length=4, rows=3, units=5):
    g, directions = GATES[kind] * units, 2 if bidirectional else 1
    random = np.random.default_rng(0)
    weights = []
    for n in range(number):
        for _ in range(directions):
            wide = 4 if n == 0 else units * directions
            weights += [random.standard_normal(s) / 2 for s in ((g, wide), (g, units), (g,), (g,))]
    states = [random.standard_normal((number * directions, rows, units)) for _ in range(1 + (kind == "lstm"))]
    return random.standard_normal((length, rows, 4)), states, weights


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("number, bidirectional", [(1, True), (2, False), (3, True)])
def test_layers_and_directions(kind, number, bidirectional):
    x, states, weights = layers(kind, number, bidirectional)
    call = getattr(tn.nn, kind + "_layers")
    attrs = {"layers": number, "bidirectional": bidirectional}
    want = stacked(kind, x, weights, *states, bidirectional=bidirectional)
    given, w = arrays([x, *states], np.float32), arrays(weights, np.float32)
    close(call(*given, w, **attrs), want)
    # The batch in front; without states; without a batch; without biases.
    turned = [tn.array(np.moveaxis(x, 0, 1).astype(np.float32)), *given[1:]]
    out = call(*turned, w, batch_first=True, **attrs)
    close([np.moveaxis(np.asarray(out[0]), 0, 1), *out[1:]], want)
    close(call(given[0], *[None] * len(states), w, **attrs),
          stacked(kind, x, weights, *[0 * s for s in states], bidirectional=bidirectional))
    one = call(given[0][:, 0], *[s[:, 0] for s in given[1:]], w, **attrs)
    close(one, [want[0][:, 0], *[state[:, 0] for state in want[1:]]])
    zeros = [one if i % 4 < 2 else 0 * one for i, one in enumerate(weights)]
    bare = [one for i, one in enumerate(w) if i % 4 < 2]
    close(call(*given, bare, biases=False, **attrs),
          stacked(kind, x, zeros, *states, bidirectional=bidirectional))


def test_dropout_between_layers():
    x, states, weights = layers("gru", 2, False)
    given, w = arrays([x, *states], np.float32), arrays(weights, np.float32)
    call = lambda seed, **attrs: np.asarray(tn.nn.gru_layers(*given, w, layers=2, dropout=0.5, seed=seed, **attrs)[0])
    assert (call(1) == np.asarray(tn.nn.gru_layers(*given, w, layers=2)[0])).all()
    first, again, other = call(1, training=True), call(1, training=True), call(2, training=True)
    assert (first == again).all() and (first != other).any() and (first != call(1)).any()
    # All of the first layer's result is dropped: the second one sees zeros.
    dropped = np.asarray(tn.nn.gru_layers(*given, w, layers=2, dropout=1, training=True)[0])
    close([dropped], [expected("gru", np.zeros((4, 3, 5)), *weights[4:], states[0][1])[0]])
    # What follows the last layer is as it is.
    one = tn.nn.gru_layers(given[0], given[1][:1], w[:4], dropout=0.5, training=True)
    close(one, expected("gru", x, *weights[:4], states[0][0])[:1] + [expected("gru", x, *weights[:4], states[0][0])[1][None]])


def test_mistakes_of_layers():
    x, states, weights = layers("lstm", 2, False)
    given, w = arrays([x, *states], np.float32), arrays(weights, np.float32)
    for call, message in (
        (lambda: tn.nn.lstm_layers(*given, w[:-1], layers=2), "got 7 weights, expected 8: 2 layers of 1 directions with 4"),
        (lambda: tn.nn.lstm_layers(*given, w, layers=2, bidirectional=True), "got 8 weights, expected 16: 2 layers of 2 directions with 4"),
        (lambda: tn.nn.lstm_layers(*given, w, layers=0), "layers is 0, expected at least 1"),
        (lambda: tn.nn.lstm_layers(*given, w, layers=2, dropout=2), "dropout is 2, expected 0 to 1"),
        (lambda: tn.nn.lstm_layers(given[0], given[1][:1], given[2], w, layers=2), r"h has shape \[1, 3, 5\], expected \[2, 3, 5\]"),
        (lambda: tn.nn.lstm_layers(given[0]), "got 0 weights, expected 4: 1 layers of 1 directions with 4"),
    ):
        with pytest.raises(ValueError, match=message):
            call()

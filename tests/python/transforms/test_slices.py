# SPDX-License-Identifier: MIT
"""Gradients of slices of one array: joined where they make up the array, else added to their part of the others."""
import numpy as np
import pytest
import tenon as tn

X = np.arange(4 * 6 * 3, dtype="f4").reshape(4, 6, 3) / 7 - 3

# What is taken of x, and whether the gradients are joined alone.
SLICES = {
    "places of the last axis": (lambda x: [x[:, :, i] for i in range(3)], True),
    "parts of the first axis, in another order": (lambda x: [x[3:], x[:1], x[1:3]], True),
    "parts of unequal length": (lambda x: [x[:, :1], x[:, 1:5], x[:, 5:]], True),
    "elements one by one": (lambda x: [x[:, i : i + 1] for i in range(6)], True),
    "many in any order": (
        lambda x: (lambda y: [y[k : k + 1] for k in (i * 29 % 72 for i in range(72))])(x.reshape([72])),
        True,
    ),
    "parts of a part": (lambda x: (lambda y: [y[:, :1], y[:, 1:], x[:, 4:]])(x[:, :4]), True),
    "parts along two axes": (lambda x: [y[:, half] for y in (x[:2], x[2:]) for half in (slice(3), slice(3, 6))], True),
    "split": (lambda x: list(tn.split(x, 3, axis=1)), True),
    "a gap": (lambda x: [x[:, :2], x[:, 3:]], False),
    "an overlap": (lambda x: [x[:, :4], x[:, 3:]], False),
    "the same twice": (lambda x: [x[:, :3], x[:, :3]], False),
    "too short": (lambda x: [x[:1], x[1:3]], False),
    "different axes": (lambda x: [x[:2], x[:, 2:]], False),
    "every other": (lambda x: [x[::2], x[1::2]], False),
    "backwards": (lambda x: [x[:2], x[:1:-1]], False),
    "one": (lambda x: [x[:, :2]], False),
}


def taken_of(name, x):
    return SLICES[name][0](x) if name != "split" or isinstance(x, tn.Array) else np.split(x, 3, axis=1)


def sum_of(name, x):
    return sum(tn.sum(tn.sin(y) * (i + 1)) for i, y in enumerate(taken_of(name, x)))


def factors(name):
    """Of the sine of each element, in all slices."""
    places, total = np.arange(X.size).reshape(X.shape), np.zeros(X.size)
    for i, at in enumerate(taken_of(name, places)):
        np.add.at(total, at, i + 1)
    return total.reshape(X.shape)


def check(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("name", SLICES)
def test_gradients(name):
    gradient = tn.grad(lambda x: sum_of(name, x))(tn.array(X))
    operations = str(tn.graph(gradient))
    assert ("concatenate" in operations, "slice_update" in operations) == (SLICES[name][1], not SLICES[name][1])
    check(gradient, factors(name) * np.cos(X.astype("f8")))


@pytest.mark.parametrize("name", ["places of the last axis", "parts of a part", "an overlap"])
def test_other_uses_second_derivatives_and_batches(name):
    x, factor, exact = tn.array(X), factors(name), X.astype("f8")
    check(tn.grad(lambda x: sum_of(name, x) + tn.sum(x * x))(x), factor * np.cos(exact) + 2 * exact)
    squares = tn.grad(lambda x: tn.sum(tn.grad(lambda y: sum_of(name, y))(x) ** 2))(x)
    check(squares, -2 * factor**2 * np.cos(exact) * np.sin(exact))
    check(tn.jvp(tn.grad(lambda x: sum_of(name, x)), (x,), (x,))[1], -factor * np.sin(exact) * exact)
    rows = tn.vmap(tn.grad(lambda x: sum_of(name, x)))(tn.stack([x, x * 2]))
    check(rows, factor * np.cos(np.stack([exact, 2 * exact])))


@pytest.mark.parametrize("name", [name for name in SLICES if not SLICES[name][1]])
def test_beside_a_kernel(name):
    """What a kernel gives of the other uses is written to in the slices alone: nothing is as large as x but that."""
    exact, w = X.astype("f8"), np.cos(np.arange(9.0, dtype="f4")).reshape(3, 3)
    gradient = tn.grad(lambda x: tn.sum(tn.exp(x @ tn.array(w))) + sum_of(name, x))(tn.array(X))
    operations = str(tn.graph(gradient))
    assert "slice_update" in operations and ('"copy\\n' in operations) == (name in ("every other", "backwards"))
    check(gradient, np.exp(exact @ w) @ w.T + factors(name) * np.cos(exact))

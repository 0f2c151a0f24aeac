# SPDX-License-Identifier: MIT
"""Indices beside NumPy's: reading, `[]=`, `.at`."""

import hypothesis
import numpy as np
import pytest
from hypothesis import given, strategies as st

import draw_index
import tenon as tn
from drawn import shapes

A = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
I, J = np.array([0, 2, 1]), np.array([[1], [3]])
INDICES = [
    0, -1, (0, 1), (slice(None), 1), slice(None, None, -1), (slice(1, None), slice(None, None, 2)), (Ellipsis, 0),
    (None, 0), (0, None, Ellipsis, 1), (slice(None), I), (I[:2] % 2, I[:2]), (slice(None), slice(None), I, I),
    (0, slice(None), I), (slice(None), I, 0), (I % 2, slice(None), I), (slice(None), I, slice(None), I), (J % 2, I),
    A[:, :, 0, 0] > 20, (A[:, :, 0, 0] > 20, 0), (slice(None), slice(None), 0, slice(4, 1, -1)), A > 50,
    (slice(None, None, -2), Ellipsis, slice(-1, -4, -2)), (Ellipsis, None), np.int64(1), [0, 1], ([0, 1], [1, 2]),
    (slice(5, 2),), (0, 0, 0, 0), np.zeros(A.shape, bool), (slice(None), np.array([True, False, True])),
]  # fmt: skip


def ours(index):
    """The same index with Arrays for NumPy's."""
    if isinstance(index, tuple):
        return tuple(ours(part) for part in index)
    return tn.array(index) if isinstance(index, np.ndarray) else index


def has_repeats(a, index):
    return a[index].size != np.unique(a[index]).size


def same(got, want):
    got = np.asarray(got)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))
def test_reading(index):
    same(tn.array(A)[ours(index)], A[index])


@pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))
def test_updates(index):
    want, value = A.copy(), np.arange(A[index].size, dtype=np.float32).reshape(A[index].shape) + 1000
    if not has_repeats(A, index):
        x = tn.array(A)
        x[ours(index)] = tn.array(value)
        want[index] = value
        same(x, want)
    want = A.copy()
    want[index] = 7
    same(tn.array(A).at[ours(index)].set(7), want)
    for mode, ufunc in [("add", np.add), ("subtract", np.subtract), ("max", np.maximum)]:
        want = A.copy()
        ufunc.at(want, index, 60)
        same(getattr(tn.array(A).at[ours(index)], mode)(60), want)


def drawn(data, min_side=0):
    """An array of different elements, and an index that NumPy takes."""
    shape = data.draw(shapes(0, 4, 4, min_side))
    a = np.arange(np.prod(shape, dtype=int), dtype=data.draw(st.sampled_from(["float32", "int64", "int8"]))).reshape(shape)
    index = draw_index.index(data.draw, shape)
    try:
        a[index]
    except IndexError:
        with pytest.raises((IndexError, ValueError)):
            tn.array(a)[ours(index)].tolist()
        hypothesis.reject()
    return a, index


@given(st.data())
def test_drawn_reading(data):
    a, index = drawn(data)
    same(tn.array(a)[ours(index)], a[index])


@given(st.data())
def test_drawn_assignment(data):
    a, index = drawn(data)
    value = data.draw(st.sampled_from([100, a[index] + 100, a[index][:1] + 50 if a[index].ndim and a[index].size else 7]))
    x, want = tn.array(a), a.copy()
    if has_repeats(a, index) and np.ndim(value):
        value = 100  # which of several values stays is NumPy's own
    x[ours(index)] = tn.array(value) if isinstance(value, np.ndarray) else value
    want[index] = value
    same(x, want)


UPDATES = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "max": np.maximum, "min": np.minimum,
           "divide": np.divide, "power": np.power}


@pytest.mark.parametrize("mode", UPDATES)
@given(st.data())
def test_drawn_updates(mode, data):
    a, index = drawn(data)
    if mode in ("divide", "power"):
        a = np.asarray(a.astype("float64") / 16)
    value = np.arange(a[index].size, dtype=a.dtype).reshape(a[index].shape) % 3 + 1
    want = a.copy()
    UPDATES[mode].at(want, index, value)
    got = getattr(tn.array(a).at[ours(index)], mode)(tn.array(value))
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


@given(st.data())
def test_drawn_derivatives(data):
    """The derivative of reading is a sum at the places that were read."""
    a, index = drawn(data)
    a = a.astype("float32")
    weight = np.arange(a[index].size, dtype="float32").reshape(a[index].shape) + 1
    got = tn.grad(lambda x: tn.sum(x[ours(index)] * tn.array(weight)))(tn.array(a))
    want = np.zeros_like(a)
    np.add.at(want, index, weight)
    same(got, want)

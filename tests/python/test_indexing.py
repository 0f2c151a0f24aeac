# SPDX-License-Identifier: MIT
"""Indices beside NumPy's: reading, `[]=`, `.at`."""

import numpy as np
import pytest

import tenon as tn

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

# SPDX-License-Identifier: MIT
"""Arrays: what they are made of and become, their dtypes, their text, their memory."""

import copy
import pickle

import numpy as np
import pytest

import tenon as tn


@pytest.mark.parametrize("name", tn._dtypes)
def test_dtype_goes_to_python_and_back(name):
    x = tn.array([0, 1], name)
    assert x.dtype == name
    assert [complex(v) for v in x.tolist()] == [0, 1]
    y = pickle.loads(pickle.dumps(x))
    assert (y.dtype, y.tolist()) == (x.dtype, x.tolist())
    if not name.startswith(("bfloat", "float8")):
        assert np.asarray(x).dtype.name == name
        assert tn.array(np.array([0, 1], name)).dtype == name


def test_narrow_floats_are_widened_for_numpy():
    assert np.asarray(tn.array([1], "bfloat16")).dtype == np.float32
    for name, want in [("bfloat16", 0.10009765625), ("float8_e4m3fn", 0.1015625), ("float16", 0.0999755859375)]:
        x = tn.array([0.1], name)
        assert np.asarray(x).tolist() == [want]
        assert (tn.array([0.1], name).tolist(), tn.array(0.1, name).item()) == ([want], want)


def test_numbers_take_the_dtype_of_the_array():
    x = tn.array([1, 2], "int8")
    for result, name in [(x + 1, "int8"), (x + 1.5, "float64"), (x * True, "int8"), (1 - x, "int8"),
                         (tn.array([1.0]) * 2, "float32"), (tn.array([1.0]) * 2j, "complex64"),
                         (tn.array([1, 2]), "int64"), (tn.array([1.0]), "float32"), (tn.array(1j), "complex64"),
                         (tn.array(2**63), "uint64"), (tn.array([]), "float32"), (tn.array([True]), "bool")]:
        assert result.dtype == name


def test_an_object_takes_a_new_value_and_others_keep_theirs():
    x = tn.array([1.0, 2.0])
    y, part = x, x[:1]
    x[0] = 9
    assert (y.tolist(), part.tolist()) == ([9, 2], [1])
    x += 1
    assert (x.tolist(), y.tolist(), part.tolist(), y is x) == ([10, 3], [10, 3], [1], True)
    assert copy.deepcopy(x).tolist() == [10, 3]


def test_memory_is_handed_over():
    x = tn.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(np.from_dlpack(x), np.array([[1, 2], [3, 4]], np.float32))
    np.testing.assert_array_equal(tn.from_dlpack(np.arange(3.0)), np.arange(3.0))
    np.testing.assert_array_equal(tn.array(np.arange(6).reshape(2, 3).T), np.arange(6).reshape(2, 3).T)
    view = memoryview(x)
    assert view.readonly
    x[0] = 0
    assert view.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(BufferError):
        memoryview(tn.array([1], "bfloat16"))

# SPDX-License-Identifier: MIT
"""Arrays as text, beside NumPy's."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tenon as tn
from drawn import ALL, arrays, elements, shapes

# Of these dtypes neither NumPy nor we tell the dtype, or both.
ALIKE = ("bool", "int8", "int64", "uint16", "float16")


def kind(x):
    """NumPy's text of an array of a dtype, without what it says of the dtype."""
    return np.array2string(x, separator=", ", prefix="array(")


@pytest.mark.parametrize("name", ALL + ("float16",))
@given(st.data())
def test_drawn(name, data):
    values = elements(name) if name != "float16" else st.floats(width=16, allow_subnormal=False)
    near = st.sampled_from([0.5, 2.25, -1.0, 2.0**-9, 0.0]) if name.startswith(("float", "complex")) else values
    x = arrays(data.draw, name, shapes(0, 3, 5), values=data.draw(st.sampled_from([values, near])))
    y = tn.array(x)
    assert str(y) == str(x)
    if x.size:
        assert repr(y).startswith("array(" + kind(x))
    if name in ALIKE:
        assert repr(y) == repr(x)


LARGE = [np.arange(2000), np.arange(2000.0) / 7, np.zeros((30, 40), "int8"), np.ones((3, 4, 200), "float16"),
         np.arange(1001.0).reshape(1, 1001), np.linspace(-1, 1, 100), np.arange(100) % 2 == 0,
         np.arange(1000) * 1000003, np.linspace(0, 1, 60).reshape(3, 20) * (1 + 2j), np.arange(1200).reshape(600, 2),
         np.array([1e-20, 1.0]), np.array([1e200, -1.5]), np.array([np.nan, -np.inf, 1.0]), np.array([0.1, 1 / 3])]


@pytest.mark.parametrize("x", LARGE, ids=range(len(LARGE)))
def test_large(x):
    y = tn.array(x)
    assert str(y) == str(x)
    assert repr(y).startswith("array(" + kind(x))


def test_dtypes_that_are_told():
    for x, want in [(tn.array([1.0, 2.5]), "array([1. , 2.5])"), (tn.array(5), "array(5)"),
                    (tn.array([[True], [False]]), "array([[ True],\n       [False]])"),
                    (tn.array([1], "int8"), "array([1], dtype=int8)"), (tn.array([1j]), "array([0.+1.j])"),
                    (tn.array([0.1], "float64"), "array([0.1], dtype=float64)"),
                    (tn.array([0.1], "bfloat16"), "array([0.10009766], dtype=bfloat16)"),
                    (tn.arange(2000), "array([   0,    1,    2, ..., 1997, 1998, 1999])"),
                    (tn.zeros([0, 3]), "array([], shape=(0, 3), dtype=float32)")]:  # fmt: skip
        assert repr(x) == want


def test_values_that_are_not_there():
    said = []
    tn.function(lambda x: said.append(repr(x)) or x)(tn.array([1.0, 2.0]))
    assert said == ["<float32[2] within a traced body>"]

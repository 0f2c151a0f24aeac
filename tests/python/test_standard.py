# SPDX-License-Identifier: MIT
"""Every function of the array API beside array_api_strict, over drawn dtypes, shapes and values.

tools/packages/oracle fetches array_api_strict; without it these cases are skipped. --examples N
draws more.
"""

import inspect
import operator
import os
import sys

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import tenon as tn

sys.path += [os.environ["TEST_ORACLE"]] if "TEST_ORACLE" in os.environ else []
strict = pytest.importorskip("array_api_strict", reason="array_api_strict is absent")

import standard_rows_linalg  # noqa: E402: adds rows
from drawn import Dtype  # noqa: E402
from standard_rows import ROWS  # noqa: E402

# Not functions of arrays.
BESIDE = {"get_array_api_strict_flags", "set_array_api_strict_flags", "reset_array_api_strict_flags"}
EXTENSIONS = {"linalg", "fft"}


def functions(namespace, prefix=""):
    public = {n for n in dir(namespace) if inspect.isfunction(getattr(namespace, n)) and not n.startswith("_")}
    return {prefix + n for n in public & set(getattr(namespace, "__all__", public)) - BESIDE}


def called(namespace, name):
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def given_to(namespace, value):
    """Arguments as a namespace takes them."""
    if isinstance(value, (np.ndarray, np.generic)):
        return namespace.asarray(value) if namespace is strict else tn.array(value)
    if isinstance(value, Dtype):
        return getattr(namespace, value)
    if isinstance(value, list):
        return [given_to(namespace, v) for v in value]
    return value


def applied(namespace, name, row, arguments, keywords):
    arguments = [given_to(namespace, v) for v in arguments]
    with np.errstate(all="ignore"):
        result = called(namespace, name)(*arguments, **{k: given_to(namespace, v) for k, v in keywords.items()})
        return row.seen(namespace, arguments, result) if row.seen else result


def in_numpy(x):
    return x._array if hasattr(x, "_array") else np.asarray(x)


def kind(x):
    """A dtype by its name, of either namespace."""
    return str(getattr(x, "name", None) or getattr(x, "_np_dtype", x))


def compare(got, want, row):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            compare(g, w, row)
    elif isinstance(want, strict._array_object.Array):
        assert kind(got.dtype) == kind(want.dtype)
        assert got.shape == want.shape
        near(in_numpy(got), in_numpy(want), row)
    elif isinstance(want, strict._dtypes.DType):
        assert kind(got) == kind(want)
    else:
        assert got == want


def near(got, want, row):
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want)
        return
    eps = np.finfo(want.dtype).eps
    if want.dtype.kind == "c" and not row.near:
        np.testing.assert_array_equal(got.real, want.real)
        np.testing.assert_array_equal(got.imag, want.imag)
        return
    # What is below the least normal number has fewer digits.
    np.testing.assert_allclose(got, want, rtol=row.near * eps, atol=row.near * eps * row.scale + 4 * np.finfo(want.dtype).tiny)
    if row.zeros and want.dtype.kind == "f":
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


def test_every_function_has_a_row():
    names = functions(strict).union(*(functions(getattr(strict, e), e + ".") for e in EXTENSIONS))
    assert names - set(ROWS) == set()


@pytest.mark.parametrize("name", ROWS)
@given(st.data())
def test_function(name, data):
    row = ROWS[name]
    arguments, keywords = row.draw(data.draw)
    want = applied(strict, name, row, arguments, keywords)
    compare(applied(tn, name, row, arguments, keywords), want, row)


# Python's operators, by the functions that they stand for.
OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
             "mod": "remainder", "pow": "pow", "matmul": "matmul", "and_": "bitwise_and", "or_": "bitwise_or",
             "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "lt": "less",
             "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
             "neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}
# Where a number may stand on the left, too.
COMMUTE = {"add", "sub", "mul", "and_", "or_", "xor", "eq", "ne", "lt", "ge"}


def both(f, row, *arguments):
    """f of the arguments as both namespaces take them."""
    with np.errstate(all="ignore"):
        got, want = (f(*(given_to(ns, a) for a in arguments)) for ns in (tn, strict))
    compare(got, want, row)


@pytest.mark.parametrize("name", OPERATORS)
@given(st.data())
def test_operator(name, data):
    row, f = ROWS[OPERATORS[name]], getattr(operator, name)
    arguments = row.draw(data.draw)[0]
    both(f, row, *arguments)
    if len(arguments) == 1:
        return
    x, y = arguments
    in_place = getattr(operator, "i" + name.rstrip("_"), None)
    if in_place and name != "matmul" and x.dtype == np.result_type(x, y.dtype) and x.shape == np.broadcast_shapes(x.shape, y.shape):
        both(in_place, row, x, y)
    if name == "matmul" or y.size == 0 or y.dtype.kind != x.dtype.kind:
        return
    number = y.ravel()[0].item()
    assume(x.dtype.kind not in "iu" or np.iinfo(x.dtype).min <= number <= np.iinfo(x.dtype).max)
    both(f, row, x, number)
    if name in COMMUTE:
        both(f, row, number, x)

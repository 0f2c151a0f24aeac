# SPDX-License-Identifier: MIT
"""Bad input: one exception of Python's kind each, with what was got and expected, and nothing lost."""

import ctypes

import numpy as np
import pytest

import tenon as tn

X = tn.array([1.0, 2.0])


def on_device(name):
    with tn.device(name):
        return X + 1


class Liar:
    """Says that it has a tensor, and gives something else."""

    def __dlpack__(self, **options):
        return 3


def capsule(name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(1, name, None)


OTHER, TAKEN = b"other", X.__dlpack__()
tn.from_dlpack(TAKEN)


class Vanishing:
    """Takes itself out of the list that it is converted with, and fails."""

    def __init__(self, items):
        self.items = items

    def __float__(self):
        self.items.clear()
        raise ZeroDivisionError


def vanishing():
    items = [1.0]
    items[0] = Vanishing(items)
    return tn.array([items])


def assigned(index, value, dtype="float32"):
    x = tn.array([1, 2], dtype)
    try:
        x[index] = value
    finally:
        assert x.tolist() == [1, 2]


# What is called, the exception's kind, words of its sentence.
FAULTS = [
    # Objects that are no array.
    (ValueError, "ragged", lambda: tn.array([[1], [1, 2]])),
    (ValueError, "ragged", lambda: tn.array([1, [2]])),
    (ValueError, "on axis 2 one part has 1", lambda: tn.array([[[1], [2]], [[1, 2], [3, 4]]])),
    (ValueError, "nested deeper than 8", lambda: tn.array([[[[[[[[[1]]]]]]]]])),
    (TypeError, "no array", lambda: tn.array(object())),
    (TypeError, "no array", lambda: tn.array("a")),
    (TypeError, "no array", lambda: tn.array({})),
    (TypeError, "no array", lambda: tn.array(x for x in [1])),
    (TypeError, "None in a list is no number", lambda: tn.array([1, None])),
    (TypeError, "in a list is no number", vanishing),
    (TypeError, "no dtype", lambda: tn.array(np.array(["a"]))),
    (TypeError, 'format "O"', lambda: tn.array(np.array([1, None], object))),
    (TypeError, 'format ">f"', lambda: tn.array(np.arange(3, dtype=">f4"))),
    (TypeError, 'format "g"', lambda: tn.array(np.zeros(2, np.longdouble))),
    (TypeError, "no dtype", lambda: tn.array(np.zeros(2, [("a", "i4")]))),
    (ValueError, "9 axes, expected at most 8", lambda: tn.array(np.zeros((1,) * 9))),
    (ValueError, "at most 8 integers, the most axes", lambda: tn.zeros((1,) * 9)),
    (AttributeError, "did you mean 'softmax'?", lambda: tn.softmaxx),
    (AttributeError, "PyTorch's 'cat' is 'tenon.concatenate'", lambda: tn.cat),
    (AttributeError, "did you mean 'Linear'?", lambda: tn.nn.Linea),
    (AttributeError, "no operator 'zzzzzz': no installed op pack brings it", lambda: tn.zzzzzz),
    (TypeError, "no dtype", lambda: tn.array([1], "q")),
    (TypeError, "no dtype", lambda: tn.array([1], np.dtype("O"))),
    (TypeError, "cannot create", lambda: tn.Array()),
    # Capsules of DLPack.
    (ValueError, "taken before", lambda: tn.from_dlpack(TAKEN)),
    (TypeError, 'expected one named "dltensor"', lambda: tn.from_dlpack(capsule(OTHER))),
    (TypeError, 'expected one named "dltensor"', lambda: tn.from_dlpack(capsule(None))),
    (TypeError, "no DLPack capsule", lambda: tn.from_dlpack(Liar())),
    (TypeError, "no DLPack capsule", lambda: tn.array(Liar())),
    (TypeError, "no __dlpack__", lambda: tn.from_dlpack(3)),
    (BufferError, "no stream", lambda: X.__dlpack__(stream=3)),
    (BufferError, "the host as device", lambda: X.__dlpack__(dl_device=(2, 0))),
    (TypeError, "pairs of integers", lambda: X.__dlpack__(max_version="1")),
    (BufferError, "no format", lambda: memoryview(tn.array([1], "bfloat16"))),
    # Numbers out of range.
    (OverflowError, "300", lambda: tn.array([300], "uint8")),
    (OverflowError, "-1", lambda: tn.array([-1], "uint8")),
    (OverflowError, "", lambda: tn.array([2**70])),
    (OverflowError, "below 0 beside", lambda: tn.array([2**63, -1])),
    (OverflowError, "nan is out of the range of i32", lambda: tn.array([float("nan")], "int32")),
    (OverflowError, "3e+09 is out of the range of i32", lambda: tn.array([1.5, 3e9], "int32")),
    (OverflowError, "out of the range of u64", lambda: tn.array(-1.0, "uint64")),
    (OverflowError, "out of the range of i64", lambda: tn.array(2.0**63, "int64")),
    (TypeError, "complex numbers for an array of f32", lambda: tn.array([1j], "float32")),
    (OverflowError, "300", lambda: tn.full([2], 300, dtype="int8")),
    (ValueError, "a number that i8 holds", lambda: tn.array([1], "int8") + 300),
    (ValueError, "a number that u8 holds", lambda: tn.array([1], "uint8") + -1),
    (OverflowError, "300", lambda: assigned(0, 300, "int8")),
    (OverflowError, "nan", lambda: assigned(0, float("nan"), "int8")),
    (TypeError, "complex", lambda: assigned(0, 1j)),
    (TypeError, "no array", lambda: assigned(0, "a")),
    (ValueError, "does not broadcast", lambda: assigned(slice(None), [1, 2, 3])),
    (IndexError, "out of range", lambda: assigned(5, 1)),
    (OverflowError, "float infinity", lambda: int(tn.array(float("inf")))),
    # Shapes.
    (OverflowError, "9223372036854775808", lambda: tn.zeros([2**63])),
    (ValueError, "does not fit 63 bits", lambda: tn.zeros([2**62, 4])),
    (MemoryError, "more than any machine has", lambda: tn.zeros([2**50]).tolist()),
    (ValueError, "at least 0", lambda: tn.zeros([-1])),
    (ValueError, "at most 8", lambda: tn.zeros([1] * 9)),
    (ValueError, "at most 8", lambda: tn.zeros([1] * 8)[None]),
    (TypeError, "float", lambda: tn.zeros([1.5])),
    (OverflowError, "9223372036854775808", lambda: tn.reshape(X, [2**63])),
    (ValueError, "at most one -1", lambda: tn.reshape(X, [-1, -1])),
    (OverflowError, "9223372036854775808", lambda: tn.broadcast_to(X, [2**63, 2])),
    (ValueError, "overflows", lambda: tn.repeat(X, 2**62)),
    (ValueError, "too many", lambda: tn.arange(2**70)),
    (ValueError, "a step that is not 0", lambda: tn.arange(0, 3, 0)),
    (ValueError, "finite", lambda: tn.arange(0, float("inf"))),
    (ValueError, "num at least 0", lambda: tn.linspace(0, 1, -3)),
    # Devices.
    (TypeError, "a device is a text", lambda: tn.device(3).__enter__()),
    (ValueError, 'expected "default"', lambda: X.to_device("q")),
    (ValueError, 'expected "default"', lambda: tn.zeros([2], device="q")),
    (ValueError, 'expected "default"', lambda: tn.asarray([2], device="q")),
    (ValueError, 'expected "default"', lambda: tn.from_dlpack(np.zeros(2), device="q")),
    (ValueError, "copy=False", lambda: tn.asarray([2], copy=False)),
    # Arguments of operators.
    (TypeError, "unsupported operand", lambda: X + "a"),
    (TypeError, "misses argument 'y'", lambda: tn.add(X)),
    (TypeError, "at most 2", lambda: tn.add(X, X, X)),
    (TypeError, "unexpected argument 'z'", lambda: tn.add(X, z=X)),
    (TypeError, "two values for argument 'x'", lambda: tn.add(X, x=X)),
    (TypeError, "zeros() takes 1 positional", lambda: tn.zeros(2, 2)),
    (TypeError, "sum() got an unexpected keyword argument 'dim'", lambda: tn.sum(X, dim=0)),
    (TypeError, "mse_loss() missing", lambda: tn.nn.losses.mse_loss(X)),
    (TypeError, "axis: got 'q'", lambda: tn.sum(X, axis="q")),
    (AttributeError, "no operator 'foo'", lambda: tn.foo),
    (TypeError, "'&' of f32 and f32: expected integers or bool", lambda: X & X),
    (TypeError, "'-' of bool and bool", lambda: (X > 0) - (X > 0)),
    (TypeError, "input a is i32, expected one of f32", lambda: tn.linalg.cholesky(tn.zeros([2, 2], dtype="int32"))),
    (TypeError, "'&' of f32", lambda: tn.function(lambda x: x & x)(X)),
    (ValueError, "do not broadcast", lambda: X + tn.array([1.0, 2.0, 3.0])),
    (ValueError, "do not fill", lambda: tn.reshape(X, [7])),
    # What an array is not.
    (ValueError, "single number", lambda: bool(X)),
    (TypeError, "unhashable", lambda: hash(X)),
    (TypeError, "without axes", lambda: len(tn.array(1))),
    # Indices.
    (IndexError, "out of range", lambda: X[2]),
    (IndexError, "axes", lambda: X[0, 0]),
    (IndexError, "at most one", lambda: X[..., ...]),
    (IndexError, "no index", lambda: X[1.5]),
    (IndexError, "no index", lambda: X[tn.array([1.0])]),
    (IndexError, "mask", lambda: X[tn.array([True])]),
    # Bodies and trees.
    (ValueError, "no value yet", lambda: tn.function(lambda a: float(a[0]))(X)),
    (ValueError, "traced body", lambda: tn.function(lambda a: a[a > 1])(X)),
    (ValueError, "one element", lambda: tn.grad(lambda a: a)(X)),
    (TypeError, "expected floats", lambda: tn.grad(lambda a: tn.sum(a))(tn.array([1]))),
    (ValueError, "structure", lambda: tn.vjp(lambda a: (a, a), X)[1](X)),
    (ValueError, "branches", lambda: tn.cond(tn.array(True), lambda a: a, lambda a: (a, a), X)),
    (ValueError, "out_axes", lambda: tn.vmap(lambda a: a, out_axes=-1)(X)),
    (ValueError, "no argument", lambda: tn.vmap(lambda a: a, in_axes=None)(X)),
    (ZeroDivisionError, "", lambda: tn.function(lambda a: a / (1 // 0))(X)),
    # What is not installed.
    (LookupError, "no installed plugin", lambda: tn.save("/nonexistent/x.qqq", X)),
    (LookupError, "qqq", lambda: on_device("qqq:7")),
    (LookupError, "none of the selected", lambda: on_device("")),
    (LookupError, "none of the selected", lambda: on_device("cpu-blas:99999999999999999999")),
]


@pytest.mark.parametrize("kind, words, f", FAULTS, ids=range(len(FAULTS)))
def test_fault(kind, words, f):
    with pytest.raises(kind) as caught:
        f()
    assert type(caught.value) is kind or kind is LookupError
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (X + 1).tolist() == [2, 3]


def test_an_array_that_leaves_a_trace_says_so():
    kept = []
    tn.function(lambda a: kept.append(a * 2) or a)(tn.array([1.0]))
    with pytest.raises(ValueError, match="has ended"):
        print(kept[0])
    with pytest.raises(ValueError, match="has ended"):
        kept[0] + 1


def test_names_of_pytorch_lead_to_operators():
    from tenon._torch_names import NAMES

    for other, name in NAMES.items():
        found = tn
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found)
        assert not hasattr(tn, other)

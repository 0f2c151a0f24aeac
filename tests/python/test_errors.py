# SPDX-License-Identifier: MIT
"""Bad input: one exception of Python's kind each, with what was got and expected, and nothing lost."""

import numpy as np
import pytest

import tenon as tn

X = tn.array([1.0, 2.0])


def on_no_device():
    with tn.device("qqq:7"):
        return X + 1


# What is called, the exception's kind, words of its sentence.
FAULTS = [
    # Objects that are no array.
    (ValueError, "ragged", lambda: tn.array([[1], [1, 2]])),
    (ValueError, "ragged", lambda: tn.array([1, [2]])),
    (TypeError, "no array", lambda: tn.array(object())),
    (TypeError, "no array", lambda: tn.array("a")),
    (TypeError, "no dtype", lambda: tn.array(np.array(["a"]))),
    (TypeError, "no dtype", lambda: tn.array([1], "q")),
    # Numbers out of range.
    (OverflowError, "300", lambda: tn.array([300], "uint8")),
    (OverflowError, "-1", lambda: tn.array([-1], "uint8")),
    (OverflowError, "", lambda: tn.array([2**70])),
    # Arguments of operators.
    (TypeError, "unsupported operand", lambda: X + "a"),
    (TypeError, "misses argument 'y'", lambda: tn.add(X)),
    (TypeError, "at most 2", lambda: tn.add(X, X, X)),
    (TypeError, "unexpected argument 'z'", lambda: tn.add(X, z=X)),
    (TypeError, "two values for argument 'x'", lambda: tn.add(X, x=X)),
    (TypeError, "axis: got 'q'", lambda: tn.sum(X, axis="q")),
    (AttributeError, "no operator 'foo'", lambda: tn.foo),
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
    (LookupError, "qqq", on_no_device),
]


@pytest.mark.parametrize("kind, words, f", FAULTS, ids=range(len(FAULTS)))
def test_fault(kind, words, f):
    with pytest.raises(kind) as caught:
        f()
    assert type(caught.value) is kind or kind is LookupError
    assert words in str(caught.value)
    assert (X + 1).tolist() == [2, 3]


def test_an_array_that_leaves_a_trace_says_so():
    kept = []
    tn.function(lambda a: kept.append(a * 2) or a)(tn.array([1.0]))
    with pytest.raises(ValueError, match="has ended"):
        print(kept[0])
    with pytest.raises(ValueError, match="has ended"):
        kept[0] + 1

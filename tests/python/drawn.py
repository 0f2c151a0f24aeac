# SPDX-License-Identifier: MIT
"""What hypothesis draws for the tests: dtypes, shapes, arrays of NumPy with hostile elements."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

BOOL = ("bool",)
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
FLOATS, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
REAL = INTS + FLOATS
NUMERIC = REAL + COMPLEX
INEXACT = FLOATS + COMPLEX
ALL = BOOL + NUMERIC


class Dtype(str):
    """A dtype's name, which becomes the dtype of the namespace that is called."""


def shapes(least=0, most=3, side=4, min_side=0):
    return hnp.array_shapes(min_dims=least, max_dims=most, min_side=min_side, max_side=side)


def floats(name, bound=None, special=True):
    """Numbers of a dtype of floats: simple ones, any, those at limits; up to `bound`, beside infinities and NaN."""
    limits = np.finfo(name)
    width = 32 if name == "float32" else 64
    bound = float(limits.max) if bound is None else bound
    simple = [v for v in (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -1.5) if abs(v) <= bound]
    kinds = [st.sampled_from(simple), st.floats(-min(bound, 100), min(bound, 100), width=width),
             st.floats(-bound, bound, width=width, allow_subnormal=False)]
    if special:
        edges = [np.inf, -np.inf, np.nan, float(limits.tiny), -float(limits.tiny)]
        kinds.append(st.sampled_from(edges + ([float(limits.max), -float(limits.max)] if bound >= limits.max else [])))
    return st.one_of(kinds)


def integers(name, low=None, high=None):
    info = np.iinfo(name)
    low = info.min if low is None else max(low, int(info.min))
    high = info.max if high is None else min(high, int(info.max))
    near = [v for v in (0, 1, 2, 3, -1, -2, low, high, low + 1, high - 1) if low <= v <= high]
    return st.one_of(st.sampled_from(near), st.integers(max(low, -20), min(high, 20)) if low <= 20 and high >= -20
                     else st.nothing(), st.integers(low, high))


def elements(name, bound=None, special=True):
    if name == "bool":
        return st.booleans()
    if name.startswith("complex"):
        part = floats("float32" if name == "complex64" else "float64", bound, special)
        return st.builds(complex, part, part)
    if name.startswith("float"):
        return floats(name, bound, special)
    return integers(name, None if bound is None else -int(bound), None if bound is None else int(bound))


def arrays(draw, name, shape, bound=None, special=True, values=None):
    """An array of NumPy."""
    if not isinstance(shape, tuple):
        shape = draw(shape)
    return draw(hnp.arrays(name, shape, elements=elements(name, bound, special) if values is None else values,
                           fill=st.nothing()))


def broadcasting(draw, count=2, most=3):
    """Shapes that broadcast to one another."""
    return draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=most, max_side=3, min_side=0)).input_shapes


def together(a, b):
    """Whether the array API promotes two dtypes to one: of one kind, and no uint64 beside signed integers."""
    kinds = np.dtype(a).kind, np.dtype(b).kind
    if kinds[0] == kinds[1] or set(kinds) == {"f", "c"}:
        return True
    return set(kinds) == {"i", "u"} and "uint64" not in (a, b)


def pairs(names):
    return st.sampled_from([(a, b) for a in names for b in names if together(a, b)])


def axes(draw, ndim, several=True):
    """None, an axis, or a tuple of different ones, counted from either end."""
    if ndim == 0:
        return draw(st.sampled_from([None, ()])) if several else None
    one = st.integers(-ndim, ndim - 1)
    if not several:
        return draw(one)
    many = st.lists(one, max_size=ndim, unique_by=lambda a: a % ndim).map(tuple)
    return draw(st.one_of(st.none(), one, many))

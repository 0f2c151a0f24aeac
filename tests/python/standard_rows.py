# SPDX-License-Identifier: MIT
"""The functions of the array API, a row each: what is drawn for it, and how near results are.

A row is called with hypothesis' draw and gives arguments: arrays of NumPy, Dtype, plain values.
"""

import dataclasses
from typing import Callable

import numpy as np
from hypothesis import strategies as st

from drawn import (ALL, BOOL, COMPLEX, FLOATS, INEXACT, INTS, NUMERIC, REAL, Dtype, arrays, axes, broadcasting,
                   elements, integers, pairs, shapes)


@dataclasses.dataclass
class Row:
    draw: Callable  # draw -> (arguments, keywords)
    near: float = 0  # in units of the dtype's eps, relative
    scale: float = 0  # and of this absolute size
    zeros: bool = False  # signs of zeros count
    seen: Callable = None  # (namespace, arguments, result) -> what is compared


ROWS = {}


def row(names, **options):
    """A decorator: f(draw) or f(draw, name) draws arguments of the functions named."""

    def decorate(f):
        for name in names.split():
            call = f if f.__code__.co_argcount == 1 else lambda draw, name=name: f(draw, name.rpartition(".")[2])
            ROWS[name] = Row(call, **options)
        return f

    return decorate


def one(dtypes, least=0, min_side=0, **options):
    """Draws one array."""
    return lambda draw: ((arrays(draw, draw(st.sampled_from(dtypes)), shapes(least, min_side=min_side), **options),), {})


def unary(names, dtypes, bound=None, special=True, **options):
    for name in names.split():
        ROWS[name] = Row(one(dtypes, bound=bound, special=special), **options)


def binary(names, dtypes, bound=None, special=True, **options):
    def drawn(draw):
        left, right = draw(pairs(dtypes))
        a, b = broadcasting(draw)
        return (arrays(draw, left, a, bound, special), arrays(draw, right, b, bound, special)), {}

    for name in names.split():
        ROWS[name] = Row(drawn, **options)


# --- elementwise -------------------------------------------------------------------------------------------

unary("abs", REAL, zeros=True)
unary("ceil floor trunc", REAL, zeros=True)
unary("round", NUMERIC, zeros=True)
unary("positive negative square", NUMERIC, near=4)
unary("sign", REAL)
unary("conj real imag", COMPLEX)
unary("bitwise_invert", BOOL + INTS)
unary("logical_not", BOOL)
unary("isfinite isinf isnan", NUMERIC)
unary("signbit", FLOATS)
unary("acos asin atan acosh asinh atanh cos sin cosh sinh tan tanh exp expm1 log log1p log2 log10", FLOATS,
      near=8, zeros=True)
unary("sqrt reciprocal", FLOATS, near=2, zeros=True)
binary("add subtract multiply", NUMERIC, bound=1e6, near=8)
binary("divide", FLOATS, near=2, zeros=True)
binary("maximum minimum", REAL)
binary("equal not_equal", ALL)
binary("less less_equal greater greater_equal", REAL)
binary("logical_and logical_or logical_xor", BOOL)
binary("bitwise_and bitwise_or bitwise_xor", BOOL + INTS)
binary("atan2 hypot logaddexp", FLOATS, near=8, scale=1)
binary("copysign nextafter", FLOATS, zeros=True)


@row("floor_divide remainder")
def division(draw):
    left, right = draw(pairs(REAL))
    a, b = broadcasting(draw)
    # Division of integers by 0, of the least by -1, and of infinities are left open, or NumPy's here.
    a, b = arrays(draw, left, a, 1e4, special=False), arrays(draw, right, b, 1e4, special=False)
    return (a, np.where((b == 0) | (b == -1), b.dtype.type(2), b)), {}


@row("pow", near=16)
def power(draw):
    a, b = broadcasting(draw)
    if draw(st.booleans()):
        left, right = draw(pairs(INTS))
        return (arrays(draw, left, a), arrays(draw, right, b, values=integers(right, 0, 9))), {}
    left, right = draw(pairs(FLOATS))
    return (arrays(draw, left, a, 50), arrays(draw, right, b, 20)), {}


@row("bitwise_left_shift bitwise_right_shift")
def shift(draw):
    left, right = draw(pairs(INTS))
    a, b = broadcasting(draw)
    return (arrays(draw, left, a), arrays(draw, right, b, values=integers(right, 0, 7))), {}


@row("clip")
def clip(draw):
    name = draw(st.sampled_from(REAL))
    x = arrays(draw, name, shapes())
    low, high = sorted(draw(st.tuples(*[elements(name, 50, False)] * 2)))
    return (x,), {"min": draw(st.sampled_from([None, low])), "max": draw(st.sampled_from([None, high]))}


@row("where")
def where(draw):
    left, right = draw(pairs(ALL))
    a, b, c = broadcasting(draw, 3)
    return (arrays(draw, "bool", a), arrays(draw, left, b), arrays(draw, right, c)), {}


# --- reductions --------------------------------------------------------------------------------------------


def reduced(names, dtypes, least=0, min_side=0, bound=None, special=True, several=True, keywords=None, **options):
    def drawn(draw):
        x = arrays(draw, draw(st.sampled_from(dtypes)), shapes(least, min_side=min_side), bound, special)
        said = {"axis": axes(draw, x.ndim, several), **{k: draw(s) for k, s in (keywords or {}).items()}}
        return (x,), said

    for name in names.split():
        ROWS[name] = Row(drawn, **options)


KEEP = {"keepdims": st.booleans()}
reduced("sum", NUMERIC, bound=10, near=64, scale=100, keywords=KEEP)
reduced("prod", NUMERIC, bound=4, special=False, near=200, keywords=KEEP)
reduced("mean", FLOATS, bound=10, near=64, scale=10, keywords=KEEP, min_side=1)
reduced("var std", FLOATS, bound=10, special=False, near=256, scale=200, min_side=2,
        keywords={**KEEP, "correction": st.sampled_from([0, 0.5, 1, 1.0])})
reduced("max min", REAL, min_side=1, keywords=KEEP)
reduced("all any", ALL, keywords=KEEP)
reduced("count_nonzero", ALL, keywords=KEEP)
reduced("argmax argmin", REAL, least=1, min_side=1, several=False, keywords=KEEP)
reduced("cumulative_sum", REAL, least=1, bound=10, near=64, scale=100, several=False,
        keywords={"include_initial": st.booleans()})
reduced("cumulative_prod", REAL, least=1, bound=4, special=False, near=200, several=False,
        keywords={"include_initial": st.booleans()})
reduced("diff", NUMERIC, least=1, min_side=1, bound=1e3, near=8, several=False, keywords={"n": st.integers(0, 2)})
ROWS["diff"].scale = 1e3

# --- sorting, searching, sets ------------------------------------------------------------------------------

reduced("sort argsort", REAL, least=1, several=False, keywords={"descending": st.booleans()})
unary("nonzero", ALL)
ROWS["nonzero"].draw = one(ALL, 1)
unary("unique_all unique_counts unique_inverse unique_values", ALL)


@row("searchsorted")
def searchsorted(draw):
    name, other = draw(pairs(REAL))
    x = np.sort(arrays(draw, name, shapes(1, 1, 6), special=False))
    return (x, arrays(draw, other, shapes(0, 2), special=False)), {"side": draw(st.sampled_from(["left", "right"]))}


@row("isin")
def isin(draw):
    name = draw(st.sampled_from(INTS))
    # Of `invert` the oracle takes no notice.
    return (arrays(draw, name, shapes(), 3), arrays(draw, name, shapes(), 3)), {}


@row("take")
def take(draw):
    x = arrays(draw, draw(st.sampled_from(ALL)), shapes(1, min_side=1))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    n = x.shape[axis]
    return (x, arrays(draw, draw(st.sampled_from(["int64", "int32"])), shapes(1, 1), values=st.integers(0, n - 1))), {
        "axis": axis}


@row("take_along_axis")
def take_along_axis(draw):
    x = arrays(draw, draw(st.sampled_from(ALL)), shapes(1, min_side=1))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    shape = list(x.shape)
    shape[axis] = draw(st.integers(1, 3))
    return (x, arrays(draw, "int64", tuple(shape), values=st.integers(0, x.shape[axis] - 1))), {"axis": axis}


# --- shapes ------------------------------------------------------------------------------------------------


def some(draw, least=0, min_side=0, most=3):
    return arrays(draw, draw(st.sampled_from(ALL)), shapes(least, most, min_side=min_side))


@row("broadcast_arrays")
def broadcast_arrays(draw):
    return tuple(arrays(draw, draw(st.sampled_from(ALL)), s) for s in broadcasting(draw, 3)), {}


@row("broadcast_shapes")
def broadcast_shapes(draw):
    return broadcasting(draw, 3), {}


@row("broadcast_to")
def broadcast_to(draw):
    a, b = broadcasting(draw)
    return (arrays(draw, "int32", a), np.broadcast_shapes(a, b)), {}


@row("concat")
def concat(draw):
    left, right = draw(pairs(ALL))
    shape = draw(shapes(1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    other = list(shape)
    other[axis] = draw(st.integers(0, 3))
    return ([arrays(draw, left, shape), arrays(draw, right, tuple(other))],), {"axis": draw(st.sampled_from([axis, None]))}


@row("stack")
def stack(draw):
    left, right = draw(pairs(ALL))
    shape = draw(shapes())
    return ([arrays(draw, left, shape), arrays(draw, right, shape)],), {
        "axis": draw(st.integers(-len(shape) - 1, len(shape)))}


@row("unstack")
def unstack(draw):
    x = some(draw, 1)
    return (x,), {"axis": draw(st.integers(-x.ndim, x.ndim - 1))}


@row("expand_dims")
def expand_dims(draw):
    x = some(draw)
    return (x,), {"axis": draw(st.integers(-x.ndim - 1, x.ndim))}


@row("squeeze")
def squeeze(draw):
    shape = draw(shapes(1, side=2))
    at = [a for a, n in enumerate(shape) if n == 1]
    return (arrays(draw, "float32", shape),), {"axis": tuple(draw(st.lists(st.sampled_from(at), unique=True)) if at else ())}


@row("flip")
def flip(draw):
    x = some(draw)
    return (x,), {"axis": axes(draw, x.ndim)}


@row("moveaxis")
def moveaxis(draw):
    x = some(draw, 1)
    at = st.integers(-x.ndim, x.ndim - 1)
    return (x, draw(at), draw(at)), {}


@row("permute_dims")
def permute_dims(draw):
    x = some(draw)
    return (x, tuple(draw(st.permutations(range(x.ndim))))), {}


@row("matrix_transpose linalg.matrix_transpose")
def matrix_transpose(draw):
    return (some(draw, 2),), {}


@row("repeat")
def repeat(draw):
    x = some(draw, 1)
    axis = draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)))
    n = x.size if axis is None else x.shape[axis]
    return (x, draw(st.one_of(st.integers(0, 3), st.just(arrays(draw, "int64", (n,), values=st.integers(0, 2)))))), {
        "axis": axis}


@row("reshape")
def reshape(draw):
    x = some(draw)
    cuts = [(x.size,), (1, x.size), (x.size, 1, 1)] + ([(-1, 1), (-1,)] if x.size else [])
    return (x, draw(st.sampled_from(cuts + [x.shape[::-1]]))), {}


@row("roll")
def roll(draw):
    x = some(draw)
    if x.ndim and draw(st.booleans()):
        at = draw(st.lists(st.integers(0, x.ndim - 1), min_size=1, unique=True).map(tuple))
        return (x,), {"shift": tuple(draw(st.integers(-9, 9)) for _ in at), "axis": at}
    return (x,), {"shift": draw(st.integers(-9, 9)), "axis": axes(draw, x.ndim, False) if x.ndim else None}


@row("tile")
def tile(draw):
    return (some(draw, most=2), tuple(draw(st.lists(st.integers(0, 2), min_size=1, max_size=3)))), {}


@row("tril triu")
def triangle(draw):
    return (some(draw, 2),), {"k": draw(st.integers(-5, 5))}


@row("meshgrid")
def meshgrid(draw):
    name = draw(st.sampled_from(NUMERIC))
    return tuple(arrays(draw, name, shapes(1, 1)) for _ in range(draw(st.integers(1, 3)))), {
        "indexing": draw(st.sampled_from(["xy", "ij"]))}


# --- creation, dtypes --------------------------------------------------------------------------------------


@row("arange", near=4)
def arange(draw):
    number = draw(st.sampled_from([st.integers(-20, 20), st.floats(-20, 20, width=16)]))
    start, stop, step = draw(number), draw(number), draw(number.filter(lambda v: abs(v) > 0.1))
    integral = all(isinstance(v, int) for v in (start, stop, step))
    return (start, stop, step), {"dtype": Dtype(draw(st.sampled_from(FLOATS + (("int64", "int16") if integral else ()))))}


@row("linspace", near=8, scale=50)
def linspace(draw):
    bound = st.floats(-50, 50, width=16)
    return (draw(bound), draw(bound), draw(st.integers(0, 9))), {
        "endpoint": draw(st.booleans()), "dtype": Dtype(draw(st.sampled_from(FLOATS)))}


@row("eye")
def eye(draw):
    return (draw(st.integers(0, 5)), draw(st.one_of(st.none(), st.integers(0, 5)))), {
        "k": draw(st.integers(-6, 6)), "dtype": Dtype(draw(st.sampled_from(NUMERIC)))}


@row("zeros ones")
def filled(draw):
    return (draw(shapes()),), {"dtype": Dtype(draw(st.sampled_from(ALL)))}


@row("zeros_like ones_like")
def filled_like(draw):
    return (some(draw),), {"dtype": draw(st.sampled_from([None, *map(Dtype, ALL)]))}


@row("empty", seen=lambda ns, arguments, x: (list(x.shape), x.dtype))
def empty(draw):
    return filled(draw)


@row("empty_like", seen=lambda ns, arguments, x: (list(x.shape), x.dtype))
def empty_like(draw):
    return filled_like(draw)


@row("full")
def full(draw):
    name = draw(st.sampled_from(ALL))
    return (draw(shapes()), draw(elements(name))), {"dtype": Dtype(name)}


@row("full_like")
def full_like(draw):
    x = some(draw)
    return (x, draw(elements(x.dtype.name))), {}


@row("asarray")
def asarray(draw):
    return (some(draw).tolist(),), {"dtype": Dtype("complex128")}


@row("from_dlpack")
def from_dlpack(draw):
    return (arrays(draw, draw(st.sampled_from(NUMERIC)), shapes()),), {}  # older NumPy hands over no bools


@row("astype")
def astype(draw):
    source = draw(st.sampled_from(ALL))
    kinds = ALL if source not in COMPLEX else COMPLEX
    target = draw(st.sampled_from(kinds))
    values = None
    if source in INEXACT and target in INTS:
        values = st.floats(0, 100, width=32)  # beyond its range is left open
    return (arrays(draw, source, shapes(), values=values), Dtype(target)), {}


@row("can_cast")
def can_cast(draw):
    left, right = draw(pairs(ALL))
    return (Dtype(left), Dtype(right)), {}


@row("isdtype")
def isdtype(draw):
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    return (Dtype(draw(st.sampled_from(ALL))), draw(st.sampled_from(kinds))), {}


@row("result_type")
def result_type(draw):
    left, right = draw(pairs(ALL))
    return (draw(st.sampled_from([Dtype(left), np.zeros(2, left)])), Dtype(right)), {}


@row("finfo", seen=lambda ns, arguments, i: [float(v) for v in (i.eps, i.max, i.min, i.smallest_normal, i.bits)])
def finfo(draw):
    return (Dtype(draw(st.sampled_from(INEXACT))),), {}


@row("iinfo", seen=lambda ns, arguments, i: [int(v) for v in (i.max, i.min, i.bits)])
def iinfo(draw):
    return (Dtype(draw(st.sampled_from(INTS))),), {}

# SPDX-License-Identifier: MIT
"""Reductions, running reductions, sorting and searching."""

from .._core import Array
from .convert import as_array, astype, convert, inexact, operands, tenon_dtype
from .table import base, function, nn

# Sums and products of narrow integers are of 32 bits.
_SUMMED = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}


def checked_axes(a, axis):
    """Axes as a list from 0, or None; an IndexError for one that is none."""
    if axis is None:
        return None
    if type(a) is not Array:
        raise TypeError(f"got {type(a).__name__}, expected an array")
    axes = [axis] if isinstance(axis, int) else list(axis)
    for each in axes:
        if not -a.ndim <= each < a.ndim:
            raise IndexError(f"Invalid axis {each} for array with {a.ndim} dimensions.")
    return [each % a.ndim for each in axes]


def _reduction(name, prepare, doc):
    def body(a, axis=None, keepdims=False):
        if type(a) is not Array:
            raise TypeError(f"got {type(a).__name__}, expected an array")
        axes = checked_axes(a, axis)
        if axes is not None and len(set(axes)) < len(axes):
            raise ValueError(f"[{name}] Duplicate axes detected in reduction.")
        a = prepare(a)
        if axes == []:
            return _of_no_axes(name, a)
        if name in ("sum", "prod"):
            return getattr(base, name)(a, axes, keepdims, a.dtype)
        return getattr(base, name)(a, axes, keepdims)

    body.__name__, body.__doc__ = name, doc
    function(body)


def _of_no_axes(name, a):
    if name in ("all", "any"):
        return a != 0 if a.dtype.kind != "b" else a
    return a if name != "logsumexp" else inexact(a)


def _as_it_is(a):
    return a


def _widened(a):
    wide = _SUMMED.get(a.dtype.name)
    return base.astype(a, wide) if wide else a


def _nonempty(name):
    def prepare(a):
        if a.size == 0:
            raise ValueError(f"[{name}] Cannot {name} reduce zero size array.")
        return a

    return prepare


for _name, _prepare, _doc in [
    ("sum", _widened, "Sums over axes."), ("prod", _widened, "Products over axes."), ("all", _as_it_is, "Whether all elements are not 0."),
    ("any", _as_it_is, "Whether an element is not 0."), ("max", _as_it_is, "The greatest elements."),
    ("min", _as_it_is, "The least elements."), ("mean", inexact, "Means over axes."), ("logsumexp", inexact, "Logarithms of sums of exponentials."),
]:
    _reduction(_name, _prepare, _doc)


@function
def median(a, axis=None, keepdims=False):
    """The middle elements, or the means of two."""
    return base.median(inexact(a), checked_axes(a, axis), keepdims)


@function
def var(a, axis=None, keepdims=False, ddof=0):
    """Variances over axes."""
    return base.var(inexact(a), checked_axes(a, axis), keepdims, float(ddof))


@function
def std(a, axis=None, keepdims=False, ddof=0):
    """Standard deviations over axes."""
    return base.std(inexact(a), checked_axes(a, axis), keepdims, float(ddof))


@function
def count_nonzero(a, *, axis=None, keepdims=False):
    """How many elements are not 0."""
    return base.sum(base.astype(a if a.dtype.kind == "b" else a != 0, "int32"), checked_axes(a, axis), keepdims, "int32")


def _place(name):
    def body(a, axis=None, keepdims=False):
        axes = checked_axes(a, axis)
        return base.astype(getattr(base, name)(a, None if axes is None else axes[0], keepdims), "uint32")

    body.__name__, body.__doc__ = name, f"The index of the {'greatest' if name == 'argmax' else 'least'} element."
    function(body)


_place("argmax")
_place("argmin")


@function
def softmax(a, axis=None, *, precise=False):
    """Exponentials over their sums."""
    a = inexact(a)
    if a.ndim == 0:
        return base.ones_like(a)
    axes = checked_axes(a, axis)
    if axes is not None and len(axes) == 1:
        return nn.softmax(a, axes[0])
    shifted = base.exp(a - base.stop_gradient(base.max(a, axes, True)))
    return shifted / base.sum(shifted, axes, True)


# --- running reductions --------------------------------------------------------------------------------------


def _running(name, has_dtype):
    def run(a, axis, reverse, inclusive, dtype=None):
        if type(a) is not Array:
            raise TypeError(f"got {type(a).__name__}, expected an array")
        if axis is None:
            a, axis = base.flatten(a), 0
        axis = checked_axes(a, axis)[0]
        if dtype is not None:
            a = astype(a, tenon_dtype(dtype))
        elif name in ("cumsum", "cumprod") and a.dtype.kind == "b":
            a = base.astype(a, "int32")
        elif name == "logcumsumexp":
            a = inexact(a)
        given = (a.dtype,) if name in ("cumsum", "cumprod") else ()
        result = getattr(base, name)(a, axis, reverse, *given)
        return result if inclusive else _shifted(name, result, axis, reverse)

    if has_dtype:
        def body(a, axis=None, *, reverse=False, inclusive=True, dtype=None):
            return run(a, axis, reverse, inclusive, dtype)
    else:
        def body(a, axis=None, *, reverse=False, inclusive=True):
            return run(a, axis, reverse, inclusive)
    body.__name__, body.__doc__ = name, f"Running results along an axis; without `inclusive`, of what is before each element."
    function(body, also={"cumsum": ("cumulative_sum",), "cumprod": ("cumulative_prod",)}.get(name, ()))


def _first(name, dtype):
    """What nothing comes to."""
    if name == "cumsum":
        return 0
    if name == "cumprod":
        return 1
    if dtype.kind == "f":
        return float("inf") if name == "cummin" else float("-inf")
    if dtype.kind == "b":
        return name == "cummin"
    bits, is_signed = 8 * dtype.itemsize, dtype.kind == "i"
    return 2 ** (bits - is_signed) - 1 if name == "cummin" else -(2 ** (bits - 1)) if is_signed else 0


def _shifted(name, x, axis, reverse):
    count = x.shape[axis]
    if count == 0:
        return x
    shape = [*x.shape[:axis], 1, *x.shape[axis + 1:]]
    first = base.broadcast_to(convert(_first(name, x.dtype), x.dtype), shape)
    where = [slice(None)] * x.ndim
    where[axis] = slice(1, None) if reverse else slice(0, count - 1)
    part = x[tuple(where)]
    return base.concatenate([part, first] if reverse else [first, part], axis)


for _name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
    _running(_name, _name in ("cumsum", "cumprod"))


# --- sorting and searching --------------------------------------------------------------------------------------


def _flattened(a, axis):
    if axis is None:
        return base.flatten(a), 0
    return a, checked_axes(a, axis)[0]


@function
def sort(a, axis=-1):
    """Elements in order along an axis; None: all of them."""
    return base.sort(*_flattened(a, axis))


@function
def argsort(a, axis=-1):
    """The indices that sort a."""
    return base.astype(base.argsort(*_flattened(a, axis)), "uint32")


def _checked_kth(name, a, kth, axis):
    a, axis = _flattened(a, axis)
    if not -a.shape[axis] <= kth < a.shape[axis]:
        raise ValueError(f"[{name}] Received invalid kth {kth} along axis {axis} for array with shape: {a.shape}")
    return a, axis


@function
def partition(a, kth, axis=-1):
    """a, so that element `kth` along an axis is where sorting puts it."""
    return base.sort(*_checked_kth("partition", a, kth, axis))


@function
def argpartition(a, kth, axis=-1):
    """The indices of partition()."""
    return base.astype(base.argsort(*_checked_kth("argpartition", a, kth, axis)), "uint32")


@function
def topk(a, k, axis=-1):
    """The k greatest elements along an axis."""
    a, axis = _flattened(a, axis)
    if not 0 <= k <= a.shape[axis]:
        raise ValueError(f"[topk] Received invalid k={k} along axis {axis} for array with shape: {a.shape}")
    where = [slice(None)] * a.ndim
    where[axis] = slice(a.shape[axis] - k, None)
    return base.sort(a, axis)[tuple(where)]


@function
def searchsorted(sorted_sequence, values, side="left"):
    """Where values go in what is sorted."""
    if side not in ("left", "right"):
        raise ValueError(f"[searchsorted] Invalid side '{side}': expected 'left' or 'right'.")
    a, v = operands(sorted_sequence, as_array(values))
    return base.astype(base.searchsorted(a, v, side), "uint32")

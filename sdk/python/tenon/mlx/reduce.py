# SPDX-License-Identifier: MIT
"""Reductions, running reductions, sorting and searching."""

import math

from .._core import Array
from .convert import as_array, astype, convert, inexact, operands, tenon_dtype, whole
from .dtypes import of_name
from .table import ArgumentError, base, function, nn

_FLOAT32 = of_name("float32").tenon

# Sums and products of narrow integers are of 32 bits.
_SUMMED = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}


def checked_axes(a, axis, kind=IndexError):
    """Axes as a list from 0, or None; an error of a kind for one that is none."""
    if axis is None:
        return None
    if type(a) is not Array:
        raise ArgumentError(f"got {type(a).__name__}, expected an array")
    axes = [axis] if isinstance(axis, int) else list(axis)
    for each in axes:
        if not -a.ndim <= each < a.ndim:
            raise kind(f"Invalid axis {each} for array with {a.ndim} dimensions.")
    return [each % a.ndim for each in axes]


def _reduction(name, prepare, doc):
    def body(a, axis=None, keepdims=False):
        if type(a) is not Array:
            raise ArgumentError(f"got {type(a).__name__}, expected an array")
        axes = checked_axes(a, axis)
        if axes is not None and len(set(axes)) < len(axes):
            raise ValueError(f"[{name}] Duplicate axes detected in reduction.")
        a = prepare(a)
        if name in ("max", "min"):
            if 0 in (a.shape if axes is None else [a.shape[each] for each in axes]):
                raise ValueError(f"[{name}] Cannot {name} reduce zero size array.")
            if a.dtype.kind == "c":
                return _extreme_of_complex(name, a, axes, keepdims)
        if axes == []:
            return _of_no_axes(name, a)
        if name in ("sum", "prod"):
            return getattr(base, name)(a, axes, keepdims, a.dtype)
        return getattr(base, name)(a, axes, keepdims)

    body.__name__, body.__doc__ = name, doc
    function(body)


def _extreme_of_complex(name, a, axes, keepdims):
    """The extreme element by real parts, then by imaginary parts; NaN where an element is NaN."""
    apply, worst = getattr(base, name), float("-inf" if name == "max" else "inf")
    real, imag = base.real(a), base.imag(a)
    first = apply(real, axes, True)
    second = apply(base.where(real == first, imag, worst), axes, True)
    has_nan = base.any(base.isnan(a), axes, True)
    nan = float("nan")
    result = base.astype(base.where(has_nan, nan, first), a.dtype) + base.astype(base.where(has_nan, nan, second), a.dtype) * 1j
    return result if keepdims else base.squeeze(result, axes)


def _of_no_axes(name, a):
    if name in ("all", "any"):
        return a != 0 if a.dtype.kind != "b" else a
    return a if name != "logsumexp" else inexact(a)


def _as_it_is(a):
    return a


def _widened(a):
    wide = _SUMMED.get(a.dtype.name)
    return base.astype(a, wide) if wide else a


for _name, _prepare, _doc in [
    ("sum", _widened, "Sums over axes."), ("prod", _widened, "Products over axes."), ("all", _as_it_is, "Whether all elements are not 0."),
    ("any", _as_it_is, "Whether an element is not 0."), ("max", _as_it_is, "The greatest elements."),
    ("min", _as_it_is, "The least elements."), ("mean", inexact, "Means over axes."), ("logsumexp", inexact, "Logarithms of sums of exponentials."),
]:
    _reduction(_name, _prepare, _doc)


@function
def median(a, axis=None, keepdims=False):
    """The middle elements, or the means of two; NaN where an element is NaN."""
    axes = checked_axes(a, axis, ValueError)
    if axes is not None and len(set(axes)) < len(axes):
        raise ValueError("[median] Received duplicate axes.")
    if a.size == 0:
        raise ValueError("[median] median along zero dimensions.")
    a = inexact(a)
    if a.dtype.kind != "c":
        return base.median(a, axes, keepdims)
    kept = [1 if axes is None or i in axes else n for i, n in enumerate(a.shape)]
    axes = list(range(a.ndim)) if axes is None else axes
    rest = [i for i in range(a.ndim) if i not in axes]
    lines = base.reshape(base.transpose(a, [*rest, *axes]), [*(a.shape[i] for i in rest), math.prod(a.shape[i] for i in axes)])
    count = lines.shape[-1]
    ordered = _sorted(lines, -1)
    middle = (ordered[..., (count - 1) // 2] + ordered[..., count // 2]) * 0.5
    nan = base.any(base.isnan(lines), -1)
    middle = base.where(nan, convert(complex(float("nan"), 0)), middle)
    return base.reshape(middle, kept) if keepdims else middle


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


def _position(name):
    def body(a, axis=None, keepdims=False):
        axes = checked_axes(a, axis)
        return base.astype(getattr(base, name)(a, None if axes is None else axes[0], keepdims), "uint32")

    body.__name__, body.__doc__ = name, f"The index of the {'greatest' if name == 'argmax' else 'least'} element."
    function(body)


_position("argmax")
_position("argmin")


@function
def softmax(a, axis=None, *, precise=False):
    """Exponentials over their sums."""
    a = inexact(a)
    if precise and a.dtype.itemsize == 2:  # rounded once, also within a fused chain
        return astype(softmax(astype(a, _FLOAT32), axis), a.dtype)
    axes = checked_axes(a, axis, ValueError)
    if a.ndim == 0:
        return base.ones_like(a)
    if axes is not None and len(axes) == 1:
        return nn.softmax(a, axes[0])
    shifted = base.exp(a - base.stop_gradient(base.max(a, axes, True)))
    return shifted / base.sum(shifted, axes, True)


# --- running reductions --------------------------------------------------------------------------------------


def _running(name, has_dtype):
    def run(a, axis, reverse, inclusive, dtype=None):
        if type(a) is not Array:
            raise ArgumentError(f"got {type(a).__name__}, expected an array")
        if axis is None:
            a, axis = base.flatten(a), 0
        axis = checked_axes(a, axis)[0]
        if dtype is not None:
            a = astype(a, tenon_dtype(dtype))
        elif name in ("cumsum", "cumprod") and a.dtype.kind == "b":
            a = base.astype(a, "int32")
        elif name == "logcumsumexp":
            a = inexact(a)
            if a.dtype.kind == "c":
                return _logcumsumexp_of_complex(a, axis, reverse, inclusive)
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


def _logcumsumexp_of_complex(a, axis, reverse, inclusive):
    """The logarithm of running sums of exponentials, from which the greatest real part is taken out first."""
    top = base.max(base.real(a), axis, True)
    top = base.astype(base.stop_gradient(base.where(base.isfinite(top), top, 0.0)), a.dtype)
    sums = base.cumsum(base.exp(a - top), axis, reverse, a.dtype)
    return base.log(sums if inclusive else _shifted("cumsum", sums, axis, reverse)) + top


def _first(name, dtype):
    """The result of a running reduction before its first element."""
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


def _order(a, axis):
    """The indices that sort; complex numbers are ordered by real parts, then by imaginary parts, and NaN comes last."""
    if a.dtype.kind != "c":
        return base.argsort(a, axis)
    real, imag, is_none = base.real(a), base.imag(a), base.isnan(a)
    keys = [base.where(is_none, 0.0, imag), base.where(is_none, 0.0, real), base.astype(is_none, "float32")]
    return base.lexsort(keys, axis)


def _sorted(a, axis):
    return base.sort(a, axis) if a.dtype.kind != "c" else base.take_along_axis(a, _order(a, axis), axis)


@function
def sort(a, axis=-1):
    """Elements in order along an axis; None: all of them."""
    return _sorted(*_flattened(a, axis))


@function
def argsort(a, axis=-1):
    """The indices that sort a."""
    return base.astype(_order(*_flattened(a, axis)), "uint32")


def _checked_kth(name, a, kth, axis):
    a, axis = _flattened(a, axis)
    if not -a.shape[axis] <= kth < a.shape[axis]:
        raise ValueError(f"[{name}] Received invalid kth {kth} along axis {axis} for array with shape: {a.shape}")
    return a, axis


@function
def partition(a, kth, axis=-1):
    """a, so that element `kth` along an axis is where sorting puts it."""
    a, axis = _checked_kth("partition", a, kth, axis)
    return base.partition(a, kth, axis) if a.dtype.kind != "c" else _sorted(a, axis)


@function
def argpartition(a, kth, axis=-1):
    """The indices of partition()."""
    a, axis = _checked_kth("argpartition", a, kth, axis)
    positions = base.argpartition(a, kth, axis) if a.dtype.kind != "c" else _order(a, axis)
    return base.astype(positions, "uint32")


@function
def topk(a, k, axis=-1):
    """The k greatest elements along an axis."""
    a, axis = _flattened(a, axis)
    k = whole(k)
    if not 0 <= k <= a.shape[axis]:
        raise ValueError(f"[topk] Received invalid k={k} along axis {axis} for array with shape: {a.shape}")
    where = [slice(None)] * a.ndim
    where[axis] = slice(a.shape[axis] - k, None)
    return _sorted(a, axis)[tuple(where)]


@function
def searchsorted(sorted_sequence, values, side="left"):
    """Where values go in what is sorted."""
    if side not in ("left", "right"):
        raise ValueError(f"[searchsorted] Invalid side '{side}': expected 'left' or 'right'.")
    a, v = operands(sorted_sequence, as_array(values))
    return base.astype(base.searchsorted(a, v, side), "uint32")

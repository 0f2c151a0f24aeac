# SPDX-License-Identifier: MIT
"""Arrays of nothing but numbers: filled ones, ranges, identities, windows."""

import math

from .. import _core
from .._dtypes import dtypes
from .convert import NARROWER, as_array, astype, convert, extents, tenon_dtype
from .dtypes import Dtype
from .table import ArgumentError, array, base, function, put, wrap

_FLOAT32 = dtypes["float32"]


def _dtype(dtype):
    return _FLOAT32 if dtype is None else tenon_dtype(dtype)


def checked_extents(shape):
    """A shape as a list; a ValueError for negative extents."""
    shape = extents(shape)
    for n in shape:
        if n < 0:
            raise ValueError(f"Negative dimensions not allowed: {tuple(shape)}")
    return shape


@function(also=("empty",))
def zeros(shape, dtype=None):
    """An array of zeros; float32 unless told otherwise."""
    return base.zeros(checked_extents(shape), dtype=_dtype(dtype))


@function
def ones(shape, dtype=None):
    """An array of ones; float32 unless told otherwise."""
    return base.ones(checked_extents(shape), dtype=_dtype(dtype))


@function(also=("empty_like",))
def zeros_like(a, dtype=None):
    """Zeros of the shape and dtype of a."""
    return base.zeros(list(a.shape), dtype=a.dtype if dtype is None else tenon_dtype(dtype))


@function
def ones_like(a, dtype=None):
    """Ones of the shape and dtype of a."""
    return base.ones(list(a.shape), dtype=a.dtype if dtype is None else tenon_dtype(dtype))


@function
def full(shape, vals, dtype=None):
    """Numbers, or an array, repeated to a shape."""
    return base.broadcast_to(convert(vals, tenon_dtype(dtype)), checked_extents(shape))


@function
def full_like(a, vals, dtype=None):
    """As full(), of the shape and dtype of a."""
    return base.broadcast_to(convert(vals, a.dtype if dtype is None else tenon_dtype(dtype)), list(a.shape))


def _range_dtype(values):
    if any(isinstance(v, float) for v in values):
        return _FLOAT32
    return dtypes["int64" if any(not -(2**31) <= v < 2**31 for v in values) else "int32"]


@function
def arange(*args, **named):
    """arange(stop), arange(start, stop, step=1): numbers from start (0) to before stop."""
    dtype = named.pop("dtype", None)
    args = list(args)
    if len(args) > 1 and isinstance(args[-1], Dtype):
        dtype = args.pop()
    if not args and "stop" not in named:
        raise ArgumentError("arange(): incompatible function arguments: stop is missing")
    if not args and "start" not in named:
        start, stop = 0, named.pop("stop")
    elif "stop" in named:
        start, stop = args.pop(0) if args else named.pop("start"), named.pop("stop")
    elif len(args) == 1 and "start" in named:
        start, stop = named.pop("start"), args.pop(0)
    elif len(args) == 1:
        start, stop = 0, args.pop(0)
    else:
        start, stop = args.pop(0), args.pop(0)
    step = args.pop(0) if args else named.pop("step", None)
    if stop is None:
        start, stop = 0, start
    start, step = 0 if start is None else start, 1 if step is None else step
    if args or named or not all(isinstance(v, (int, float)) for v in (start, stop, step)):
        raise ArgumentError("arange(): incompatible function arguments: expected start, stop and step as numbers")
    return _range(start, stop, step, _range_dtype((start, stop, step)) if dtype is None else tenon_dtype(dtype))


def _range(start, stop, step, dtype):
    if dtype.kind == "b":
        raise ValueError("bool not supported for arange.")
    if not all(map(math.isfinite, (start, stop))) or math.isnan(step):
        raise ValueError("[arange] Cannot compute length.")
    if step == 0:
        raise ValueError("[arange] step must be nonzero.")
    if math.isinf(step):
        return convert([start] if (step > 0) == (start < stop) and start != stop else [], dtype)
    count = math.ceil((stop - start) / step)
    if count > 2**31 - 1:
        raise ValueError("[arange] Maximum size exceeded.")
    if count <= 0:
        return base.zeros([0], dtype=dtype)
    if dtype.kind in "iu" and all(isinstance(v, int) for v in (start, stop, step)):
        return astype(base.arange(0, stop=count, step=1, dtype="int64") * step + start, dtype)
    wide = "float64" if dtype.name == "float64" else "float32"
    if dtype.kind in "iu":  # MLX converts the start and the step, then adds
        return astype(base.arange(0, stop=count, step=1, dtype="int64") * int(step) + int(start), dtype)
    return astype(base.arange(0, stop=count, step=1, dtype=wide) * float(step) + float(start), dtype)


@function
def linspace(start, stop, num=50, endpoint=True, dtype=None):
    """num numbers from start to stop, evenly spaced."""
    dtype = _dtype(dtype)
    if num < 0:
        raise ValueError(f"[linspace] number of samples, {num}, must be non-negative.")
    if num == 1:
        return convert([float(start)], dtype)
    inner = "float64" if dtype.name == "float64" else "float32"
    t = base.arange(0, stop=num, step=1, dtype=inner) / float(num - 1 if endpoint else num)
    return astype((1.0 - t) * float(start) + t * float(stop), dtype)


@function
def eye(n, m=None, k=0, dtype=None):
    """Ones on a diagonal, zeros elsewhere."""
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise ValueError("[eye] N and M must be positive integers.")
    return base.eye(n, columns, max(-n, min(k, columns)), _dtype(dtype))


@function
def identity(n, dtype=None):
    """A square array with ones on the diagonal."""
    return base.eye(n, n, 0, _dtype(dtype))


@function
def tri(n, m=None, k=0, dtype=None):
    """Ones at and below a diagonal."""
    return base.tri(n, n if m is None else m, k, _dtype(dtype))


@function
def tril(x, k=0):
    """x with zeros above a diagonal."""
    return base.tril(x, k)


@function
def triu(x, k=0):
    """x with zeros below a diagonal."""
    return base.triu(x, k)


@function
def meshgrid(*arrays, sparse=False, indexing="xy"):
    """Coordinates of a grid, an array for each of `arrays`."""
    if indexing not in ("xy", "ij"):
        raise ValueError("[meshgrid] Invalid indexing value. Valid values are 'xy' and 'ij'.")
    return tuple(base.meshgrid([as_array(x) for x in arrays], indexing, sparse)) if arrays else ()


def _window(name):
    def body(M):
        if M < 1:
            return base.zeros([0], dtype="float32")
        return getattr(base, name)(M, "float32")

    body.__name__, body.__doc__ = name, f"The {name} window of M samples."
    function(body)


for _name in ("bartlett", "blackman", "hamming", "hanning"):
    _window(_name)


def asarray(a, dtype=None, *, copy=None):
    """An array of anything that array() takes; an array of the dtype is given back as it is."""
    if copy is False:  # as MLX's builds without Metal
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return wrap(convert(a, tenon_dtype(dtype)))


def from_dlpack(x, /, *, copy=None):
    """An array of another library by its __dlpack__(), in place where that is possible."""
    if type(x) is array:
        return wrap(x._x)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack(): got {type(x).__name__}, which has no __dlpack__")
    if any(step < 0 for step in getattr(x, "strides", ()) or ()):
        raise ValueError("Cannot convert DLPack arrays with negative strides to mlx array.")
    try:
        given = _core.from_dlpack(x, copy)
    except BufferError as error:
        raise ValueError(f"[convert] Cannot import an array without a copy: {error}") from None
    return wrap(astype(given, NARROWER.get(given.dtype.name, given.dtype)))


for _value in (asarray, from_dlpack):
    _value.__module__ = "mlx.core"
    put(_value.__name__, _value)

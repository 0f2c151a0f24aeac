# SPDX-License-Identifier: MIT
"""Python's and other libraries' objects to arrays of tenon, and operands of one dtype, by MLX's rules."""

import operator
import threading

from .. import _core
from .._core import Array
from .._dtypes import dtypes
from .dtypes import Dtype, promote
from .table import ArgumentError, array, base

_INT32, _INT64, _FLOAT32, _COMPLEX64, _BOOL = (dtypes[n] for n in ("int32", "int64", "float32", "complex64", "bool"))
_LEAST, _MOST = -(2**31), 2**31 - 1
_MOST_AXES = 8  # of arrays of tenon
# Dtypes of other libraries that MLX has none for.
NARROWER = {"float64": _FLOAT32, "complex128": _COMPLEX64}


def tenon_dtype(dtype, name="dtype"):
    """The dtype of tenon of one of MLX; None stays."""
    if dtype is None:
        return None
    if type(dtype) is not Dtype:
        raise ArgumentError(f"{name}: got {dtype!r}, expected a dtype such as mx.float32")
    return dtype.tenon


def astype(x, dtype):
    """x in a dtype of tenon. Half floats are rounded before they are converted or computed with, as in MLX: one program for
    both would not round, so a view, which ends a program, is put between."""
    own = x.dtype
    if own is dtype:
        return x
    if own.kind != "f" or dtype.kind not in "fc" or x.ndim == _MOST_AXES:
        return base.astype(x, dtype)
    if own.itemsize == 2 and x.op:
        return base.reshape(base.astype(base.reshape(x, [*x.shape, 1]), dtype), list(x.shape))
    if dtype.itemsize == 2:  # other axes than above: views that cancel each other end no program
        return base.reshape(base.astype(base.reshape(x, [1, *x.shape]), dtype), list(x.shape))
    return base.astype(x, dtype)


def _kind_of(items, shape, depth):
    """The kind of nested lists: "b", "i", "f", "c", or "a" where arrays are among them. Raises where they do not fit `shape`."""
    if depth >= len(shape):
        raise ValueError("Initialization encountered extra dimension.")
    if len(items) != shape[depth]:
        raise ValueError("Initialization encountered non-uniform length.")
    kind = " " if items else "f"
    for item in items:
        kind = max(kind, _kind_of_item(item, shape, depth), key=" bifca".find)
    return kind


def _kind_of_item(item, shape, depth):
    if isinstance(item, (list, tuple)):
        return _kind_of(item, shape, depth + 1)
    if isinstance(item, (array, Array)):
        if tuple(item.shape) != tuple(shape[depth + 1:]):
            raise ValueError("Initialization encountered non-uniform length.")
        return "a"
    if depth + 1 != len(shape):
        raise ValueError("Initialization encountered non-uniform length.")
    for kind, python in (("b", bool), ("i", int), ("f", float), ("c", complex)):
        if isinstance(item, python):
            return kind
    raise ValueError(f"Invalid type {type(item).__name__} received in array initialization.")


def _shape_of(items):
    shape = []
    while isinstance(items, (list, tuple)):
        shape.append(len(items))
        if not items:
            return shape
        items = items[0]
    return [*shape, *getattr(items, "shape", ())]


def _of_list(items, dtype):
    shape = _shape_of(items)
    kind = _kind_of(items, shape, 0)
    if kind == "a":
        parts = [convert(item, None) for item in items]
        together = dtype or parts[0].dtype
        for part in parts if dtype is None else ():
            together = promote(together, part.dtype)
        return base.stack([astype(part, together) for part in parts], 0)
    if kind == "f" and 0 in shape:
        return base.zeros(shape, dtype=dtype or _FLOAT32)
    if kind == "i":
        try:
            return _core.array(items, dtype or _INT32)
        except (OverflowError, ValueError):  # a number beyond the dtype: wider, then wrapped as C does
            x = _core.array(items, _INT64)
            return x if dtype is None else base.astype(x, dtype)
    own = {"b": _BOOL, "f": _FLOAT32, "c": _COMPLEX64}[kind]
    if dtype is None or dtype is own or kind == "f" and dtype.kind == "f":
        x = _core.array(items, dtype or own)
        if x.dtype.itemsize == 2 and not _core.is_tracing():
            _core.eval(x)  # data, rounded to its dtype: a program that converts it, too, would not round
        return x
    return astype(_core.array(items, own), dtype)


def _of_other(value, dtype):
    """An array of another library."""
    if hasattr(value, "__mlx_array__"):
        x = value.__mlx_array__()
        x = x._x if type(x) is array else convert(x, None)
        return x if dtype is None else astype(x, dtype)
    checked(getattr(value, "shape", ()))
    is_numpy = hasattr(value, "__array_interface__") or hasattr(value, "__buffer__")
    if not is_numpy and not hasattr(value, "__dlpack__") and not hasattr(value, "__array__") and not _is_buffer(value):
        raise ValueError(f"Invalid type {type(value).__name__} received in array initialization.")
    if str(getattr(value, "dtype", "")) == "bfloat16" and is_numpy:
        x = base.view(_core.array(value.view("uint16")), "bfloat16")
    else:
        x = _core.array(memoryview(value) if isinstance(value, (bytes, bytearray)) else value)
    dtype = dtype or NARROWER.get(x.dtype.name)
    return x if dtype is None else astype(x, dtype)


def _is_buffer(value):
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


class _Numbers(threading.local):
    """Whether numbers become constants of the graph, as a body that is traced for several extents needs. Elsewhere they are data,
    so that a graph with other numbers has the same plan."""

    are_constants = False


numbers = _Numbers()


def number(value, dtype):
    """The array of a number."""
    if numbers.are_constants and dtype is not None and dtype.kind in "biuf":
        return base.astype(_core.array(value), dtype)
    return _core.array(value, dtype)


def convert(value, dtype=None):
    """The array of tenon of whatever mx.array() takes; `dtype` is tenon's."""
    kind = type(value)
    if kind is array:
        return value._x if dtype is None else astype(value._x, dtype)
    if kind is Array:
        return value if dtype is None else astype(value, dtype)
    if kind is float:
        if dtype is None or dtype.kind == "f":
            return number(value, dtype or _FLOAT32)
        return base.astype(number(value, _FLOAT32), dtype)
    if kind is bool:
        return number(value, dtype or _BOOL) if dtype is None or dtype is _BOOL else number(int(value), dtype)
    if kind is int:
        if dtype is None:
            dtype = _INT32 if _LEAST <= value <= _MOST else _INT64
        try:
            return number(value, dtype)
        except (OverflowError, ValueError, TypeError):
            return base.astype(number(value, _INT64), dtype)
    if kind is complex:
        x = number(value, _COMPLEX64)
        return x if dtype is None else astype(x, dtype)
    if isinstance(value, (list, tuple)):
        return _of_list(value, dtype)
    return _of_other(value, dtype)


# --- operands -----------------------------------------------------------------------------------------

_SCALARS = (bool, int, float, complex)


def scalar(value, dtype):
    """A number of Python beside an array of `dtype`: a number that tenon takes in that dtype, or an array
    of another one."""
    kind = dtype.kind
    if isinstance(value, bool):
        return number(value if kind == "b" else int(value), dtype)
    if isinstance(value, int):
        if kind == "b":
            return convert(value, _INT32)
        if kind in "iu" and dtype.itemsize < 8:
            bits = 8 * dtype.itemsize
            low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind == "i" else (0, (1 << bits) - 1)
            if not low <= value <= high:
                raise ValueError(f"Converting {value} to {dtype.name} would result in overflow.")
        return number(value, dtype) if kind != "u" or value >= 0 else convert(value, dtype)
    if isinstance(value, float):
        return number(float(value), dtype if kind == "f" else _FLOAT32)
    return number(complex(value), _COMPLEX64)


def operand(value, dtype):
    """An operand beside an array of `dtype` of tenon."""
    if type(value) is Array:
        return value
    if isinstance(value, _SCALARS) and not hasattr(value, "dtype"):
        return scalar(value, dtype)
    if value is None or isinstance(value, (str, list, tuple, dict)):
        raise ArgumentError(f"got {type(value).__name__}, expected an array or a number")
    if hasattr(value, "__mlx_array__"):
        return convert(value)
    return convert(value, dtype)


def operands(a, b):
    """Two operands as arrays of tenon of one dtype; numbers of Python have none of their own beside an
    array."""
    if type(a) is Array:
        b = operand(b, a.dtype)
    elif type(b) is Array:
        a = operand(a, b.dtype)
    else:
        a, b = convert(a), convert(b)
    x, y = a.dtype, b.dtype
    if x is y:
        return a, b
    together = promote(x, y)
    return astype(a, together), astype(b, together)


def inexact(x):
    """x, in float32 where it has integers or bools."""
    if type(x) is not Array:
        x = convert(x)
    return x if x.dtype.kind in "fc" else base.astype(x, _FLOAT32)


def as_array(x):
    """An argument for which MLX takes numbers, too."""
    return x if type(x) is Array else convert(x)


def extents(shape):
    """A shape as a list, of one number or several."""
    return checked([n if type(n) is int else whole(n) for n in (shape if isinstance(shape, (list, tuple)) else [shape])])


def whole(value):
    """An integer of Python."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"got {value!r}, expected an integer") from None


def checked(shape):
    """The extents, each of which 32 bits hold."""
    for n in shape:
        if not _LEAST <= n <= _MOST:
            raise OverflowError(f"Shape dimension {n} is outside the supported range [{_LEAST}, {_MOST}]. MLX currently uses 32-bit "
                                "integers for shape dimensions.")
    return shape

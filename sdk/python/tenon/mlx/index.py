# SPDX-License-Identifier: MIT
"""x[...], x[...] = v and x.at[...] with MLX's rules, over NumPy's of tenon._index."""

import functools

from .. import _core, _index
from .._core import Array
from .convert import astype, convert, operand
from .table import array, base, check_inputs, put, unwrapped, wrap


def _part(item, is_alone):
    """One index as tenon's indexing takes it."""
    kind = type(item)
    if kind is int:
        return _within_32_bits(item)
    if kind is slice or item is None or item is Ellipsis:
        return _plain_slice(item) if kind is slice else item
    if kind is array:
        return item._x
    if kind is bool:
        return _core.array(item)
    if kind is list:
        return convert(item) if item else base.zeros([0], dtype="int32")
    if kind is Array:
        return item
    if hasattr(item, "__mlx_array__"):
        return convert(item)
    if getattr(item, "ndim", 0) == 0 and hasattr(item, "__index__"):
        return item.__index__()
    raise ValueError("Cannot index mlx array using the given type" + ("." if is_alone else " yet"))


def _bound(value):
    if value is None:
        return value
    if type(value) is int:
        return _within_32_bits(value)
    if type(value) is array and value._x.ndim == 0 and value._x.dtype.kind in "iu":
        return value._x.item()
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError("Slice indices must be integers or None.")
    return value.__index__()


def _within_32_bits(value):
    if not -(2**31) <= value < 2**31:
        raise ValueError("Slice indices must be 32-bit integers.")
    return value


def _plain_slice(item):
    start, stop, step = item.start, item.stop, item.step
    return slice(_bound(start), _bound(stop), _bound(step))


def parts_of(where):
    """An index as tenon's indexing takes it."""
    if type(where) is tuple:
        return tuple([_part(item, False) for item in where])
    return _part(where, True)


def _check(x, where):
    if x.ndim == 0 and where is not Ellipsis and where is not None and where != ():
        items = where if isinstance(where, tuple) else (where,)
        if any(item is not None and item is not Ellipsis for item in items):
            raise ValueError("too many indices for array: array is 0-dimensional")


def _has_mask(where):
    items = where if type(where) is tuple else (where,)
    return any(type(item) is Array and item.dtype.kind == "b" for item in items)


def get(x, where):
    """x[where] of an array of tenon."""
    where = parts_of(where)
    _check(x, where)
    if _has_mask(where):
        raise ValueError("boolean indices are not yet supported")
    try:
        return x[where]
    except IndexError as error:
        raise _translated(error) from None


def _translated(error):
    text = str(error)
    if "indices for an array" in text:
        return ValueError(f"Too many indices for array: {text}")
    if "at most one" in text:
        return ValueError("An index can only have a single ellipsis (...)")
    return IndexError(text) if "out of range" in text else ValueError(text)


def _without_leading_ones(value):
    """MLX drops leading axes of extent 1 of what is written."""
    shape = value.shape
    count = 0
    while count < len(shape) and shape[count] == 1:
        count += 1
    return base.reshape(value, list(shape[count:])) if count else value


def _by_mask(x, mask, value):
    """x with `value` where a mask over its first axes holds."""
    if value.ndim == 0 or mask.ndim == x.ndim == value.ndim and value.shape == x.shape:
        wide = base.reshape(mask, [*mask.shape, *[1] * (x.ndim - mask.ndim)])
        return base.where(base.broadcast_to(wide, list(x.shape)), base.broadcast_to(value, list(x.shape)), x)
    return _by_count(x, mask, value) if _core.is_tracing() else _index.update(x, mask, value)


def _by_count(x, mask, value):
    """As _by_mask where the number of true elements is not known: the k-th true element takes row k of `value`."""
    rest = list(x.shape[mask.ndim:])
    if value.ndim <= len(rest):
        value = base.broadcast_to(base.expand_dims(value, 0), [mask.size, *rest])
    flat = base.reshape(mask, [mask.size])
    position = base.subtract(base.cumsum(astype(flat, convert(0).dtype), 0), convert(1))
    rows = base.take(value, base.clip(position, 0.0, float(max(value.shape[0] - 1, 0))), 0)
    kept = base.where(base.reshape(flat, [mask.size, *[1] * len(rest)]), rows, base.reshape(x, [mask.size, *rest]))
    return base.reshape(kept, list(x.shape))


def changed(x, where, value, mode="set"):
    """x with the elements at an index set to a value, or combined with it; the dtype stays."""
    check_inputs((x,))
    where = parts_of(where)
    value = astype(operand(unwrapped(value), x.dtype), x.dtype)
    _check(x, where)
    if type(where) is Array and where.dtype.kind == "b" and where.ndim > 0 and mode == "set":
        if where.shape != x.shape[:where.ndim]:
            raise ValueError(f"boolean index of shape {where.shape} for an array of shape {x.shape}")
        return _by_mask(x, where, _without_leading_ones(value))
    try:
        written = _written(x, where, value) if mode == "set" else None
        return _index.update(x, where, _without_leading_ones(value), mode) if written is None else written
    except IndexError as error:
        raise _translated(error) from None


# --- parts whose position is data -----------------------------------------------------------------------------


def _span(x, where):
    """(axis, start, stop) of an index that is a slice of numbers along the axis before the last, as caches are
    read and written by, and all of the other axes; else None."""
    count = len(where)
    axis = x.ndim - 2
    if axis < 1 or not 2 <= count <= x.ndim or type(where[-1]) is not slice or where[-1] != _ALL:
        return None
    if count == 3 and where[0] is Ellipsis:
        pass
    elif not (where[0] is Ellipsis and count < x.ndim or count == x.ndim) or any(w != _ALL for w in where[1 if where[0] is Ellipsis else 0:-2]):
        return None
    item = where[-2]
    if type(item) is not slice or type(item.stop) is not int or item.step not in (None, 1):
        return None
    start = item.start or 0
    return (axis, start, item.stop) if type(start) is int and 0 <= start < item.stop <= x.shape[axis] else None


_ALL = slice(None)


def part(x, where):
    """(x, axis, length) where an index takes the first elements along an axis."""
    span = _span(x, where) if not _core.is_tracing() else None
    return (x, span[0], span[2]) if span and span[1] == 0 else None


@functools.lru_cache(16)
def _position(ndim, axis, start):
    return _core.array([start if i == axis else 0 for i in range(ndim)], "int32")


def _written(x, where, value):
    """x with a span of rows replaced at a position that is data; None where the index is no span (_span)."""
    span = _span(x, where) if type(where) is tuple and not _core.is_tracing() else None
    if span is None or span[2] - span[1] == x.shape[span[0]]:
        return None
    axis, start, stop = span
    shape = [*x.shape[:axis], stop - start, *x.shape[axis + 1:]]
    if list(value.shape) != shape:
        value = base.broadcast_to(value, shape)
    return base.dynamic_slice_update(x, value, _position(x.ndim, axis, start))


class At:
    """x.at: with an index, x with some elements changed."""

    __slots__ = ("_array", "_where")

    def __init__(self, given, where=None):
        self._array, self._where = given, where

    def __getitem__(self, where):
        return At(self._array, (where,))


def _add_mode(name, mode):
    def method(self, value):
        if self._where is None:
            raise ValueError("Must give indices to array.at (e.g. `x.at[0].add(4)`).")
        return wrap(changed(self._array._x, self._where[0], value, mode))

    method.__name__, method.__doc__ = name, f"A new array: x[index] {name} value; equal indices are combined."
    setattr(At, name, method)


for _name, _mode in [("add", "add"), ("subtract", "subtract"), ("multiply", "multiply"), ("divide", "divide"), ("maximum", "max"), ("minimum", "min")]:
    _add_mode(_name, _mode)
At.__name__ = At.__qualname__ = "ArrayAt"
put("ArrayAt", At)

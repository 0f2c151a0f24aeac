# SPDX-License-Identifier: MIT
"""NumPy's indexing: x[...], x[...] = v, x.at[...]. Numbers and slices become one slice; arrays
of integers become a gather over the axes that they index; masks become such arrays."""

import math
import operator

from . import _core
from ._core import Array

_op = {}


def op(name):
    """The function of an operator of pack base."""
    function = _op.get(name)
    if function is None:
        function = _op[name] = _core.operator(f"base.{name}/1")
    return function


def _is_mask(item):
    return isinstance(item, Array) and item.dtype.name == "bool" and item.ndim > 0


def _positions(mask):
    """The indices of a mask's true elements, an array an axis."""
    if _core.is_tracing():
        raise ValueError(
            "a mask has no known number of elements within a traced body: use tenon.where, or "
            "tenon.boolean_mask(x, mask, size=...)"
        )
    count = int(op("count_nonzero")(mask))
    return op("nonzero")(mask, size=max(count, 1))[:-1] if count else None, count


def _convert(item):
    """An index as slice, None, Ellipsis, int or Array."""
    if item is None or item is Ellipsis or isinstance(item, (slice, Array)):
        return item
    if isinstance(item, (list, tuple)) and not item:
        return op("zeros")([0], dtype="int64")
    if isinstance(item, (bool, list, tuple)) or hasattr(item, "__array__"):
        return _core.array(item)
    try:
        return operator.index(item)
    except TypeError:
        raise IndexError(
            f"{item!r} is no index: expected integers, slices, ..., None, arrays of integers or of bools"
        ) from None


def _items(index):
    items = [_convert(i) for i in (index if isinstance(index, tuple) else (index,))]
    return items


def _axes_of(item):
    if item is None:
        return 0
    return item.ndim if _is_mask(item) else 1


class Plan:
    """What an index does to an array of a shape: a slice of every axis; then gathers of arrays
    of integers over some axes; then axes are dropped and added."""

    def __init__(self, shape, index):
        items = _items(index)
        used = sum(_axes_of(i) for i in items if i is not Ellipsis)
        if sum(i is Ellipsis for i in items) > 1:
            raise IndexError("an index has at most one '...'")
        if used > len(shape):
            raise IndexError(f"{used} indices for an array of {len(shape)} axes")
        if not any(i is Ellipsis for i in items):
            items.append(Ellipsis)
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        # An Ellipsis of no axes stays: arrays before and behind it are not adjacent.
        items[at : at + 1] = [slice(None)] * (len(shape) - used) or [Ellipsis]
        self.shape = shape
        self.start, self.stop, self.step = [], [], []
        self.dropped = []  # axes of the slice that integers index
        self.arrays = {}  # axis of the slice: array of integers
        self.layout = []  # axes of the result: None (new), an axis of the slice, or "arrays"
        self.is_empty_mask = False
        self.together = True
        self._read(items)

    def _read(self, items):
        has_arrays = any(isinstance(i, Array) for i in items)
        axis = 0
        last = None  # position of the last array in items
        for k, item in enumerate(items):
            if item is Ellipsis:
                continue
            if item is None:
                self.layout.append(None)
                continue
            if isinstance(item, slice):
                self._slice(axis, item)
                self.layout.append(axis)
                axis += 1
                continue
            if isinstance(item, int) and not has_arrays:
                self._number(axis, item)
                self.dropped.append(axis)
                axis += 1
                continue
            arrays = self._arrays(axis, item)
            if last is None:
                self.layout.append("arrays")
            elif last != k - 1:
                self.together = False
            last = k
            for array in arrays:
                self._slice(axis, slice(None))
                self.arrays[axis] = array
                axis += 1
        if not self.together:
            self.layout.remove("arrays")
            self.layout.insert(0, "arrays")

    def _slice(self, axis, item):
        start, stop, step = item.indices(self.shape[axis])
        count = len(range(start, stop, step))
        if count == 0:
            start, stop, step = 0, 0, 1
        elif step < 0 and start + count * step < 0:
            stop = -self.shape[axis] - 1  # before the first element
        self.start.append(start)
        self.stop.append(stop)
        self.step.append(step)

    def _number(self, axis, item):
        extent = self.shape[axis]
        if not -extent <= item < extent:
            raise IndexError(f"index {item} is out of range for axis {axis} of extent {extent}")
        first = item % extent
        self._slice(axis, slice(first, first + 1))

    def _arrays(self, axis, item):
        if isinstance(item, int):
            extent = self.shape[axis]
            if not -extent <= item < extent:
                raise IndexError(f"index {item} is out of range for axis {axis} of extent {extent}")
            return [_core.array(item)]
        if not _is_mask(item):
            if item.dtype.kind not in "iu":
                raise IndexError(f"an array of {item.dtype.name} is no index: expected integers or bools")
            return [item]
        if item.shape != tuple(self.shape[axis : axis + item.ndim]):
            raise IndexError(
                f"a mask of shape {item.shape} for axes of extents {tuple(self.shape[axis:axis + item.ndim])}"
            )
        positions, count = _positions(item)
        if count == 0:
            self.is_empty_mask = True
            return [op("zeros")([0], dtype="int64") for _ in range(item.ndim)]
        return list(positions)

    def is_whole(self):
        return all(s == 0 and e == n and t == 1 for s, e, t, n in zip(self.start, self.stop, self.step, self.shape))

    def sliced(self, x):
        return x if self.is_whole() else op("slice")(x, self.start, self.stop, self.step)

    def gathered(self, part):
        """The elements of the slice at the arrays' indices, with the arrays' axes in front."""
        if not self.arrays:
            return part
        return op("gather")(part, list(self.arrays.values()), axes=list(self.arrays))

    def arranged(self, part):
        """The gathered part with its axes in the result's order, some dropped, some added."""
        rest = [a for a in range(len(self.shape)) if a not in self.arrays]
        front = part.ndim - len(rest)
        where = {axis: front + k for k, axis in enumerate(rest)}
        order, shape = [], []
        for item in self.layout:
            if item is None:
                shape.append(1)
            elif item == "arrays":
                order += range(front)
                shape += part.shape[:front]
            else:
                order.append(where[item])
                shape.append(part.shape[where[item]])
        order += [where[a] for a in self.dropped]
        if order != sorted(order):
            part = op("transpose")(part, order)
        return part if tuple(shape) == part.shape else op("reshape")(part, shape)

    def disarranged(self, value, part_shape):
        """The inverse of arranged(), for a value that broadcasts to the result."""
        rest = [a for a in range(len(self.shape)) if a not in self.arrays]
        front = len(part_shape) - len(rest)
        where = {axis: front + k for k, axis in enumerate(rest)}
        order, result, kept = [], [], []
        for item in self.layout:
            if item is None:
                result.append(1)
            elif item == "arrays":
                order += range(front)
                result += part_shape[:front]
                kept += part_shape[:front]
            else:
                order.append(where[item])
                result.append(part_shape[where[item]])
                kept.append(part_shape[where[item]])
        order += [where[a] for a in self.dropped]
        kept += [1] * len(self.dropped)
        while value.ndim > len(result) and value.shape[0] == 1:
            value = op("reshape")(value, value.shape[1:])
        value = op("broadcast_to")(value, result)
        if list(value.shape) != kept:
            value = op("reshape")(value, kept)
        if order != sorted(order):
            inverse = sorted(range(len(order)), key=order.__getitem__)
            value = op("transpose")(value, inverse)
        return value


def _truths(index):
    """An index without its bools and masks of rank 0, and whether all of these are true; None: it has none."""
    items = index if isinstance(index, tuple) else (index,)
    masks = [i for i in items if isinstance(i, bool) or (getattr(i, "ndim", 1) == 0 and str(getattr(i, "dtype", "")).endswith("bool"))]
    if not masks:
        return index, None
    return tuple(i for i in items if not any(i is m for m in masks)), all(bool(m) for m in masks)


def get(x, index):
    index, truth = _truths(index)
    if truth is not None:
        part = op("expand_dims")(get(x, index), [0])
        return part if truth else op("slice")(part, [0], [0])
    plan = Plan(x.shape, index)
    return plan.arranged(plan.gathered(plan.sliced(x)))


_BINARY = {"add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "power": "power",
           "max": "maximum", "min": "minimum"}


def _applied(mode, x, y):
    result = op(_BINARY[mode])(x, y)
    if result.dtype is not x.dtype:
        raise TypeError(f"at[...].{mode}: gives {result.dtype.name} where the array is {x.dtype.name}: convert it with astype")
    return result


def _multiplied(arrays, extents, value):
    """The indices sorted, and running products of the values at equal indices: the last of equal indices has the product
    of all."""
    front = arrays[0].shape if len(arrays) == 1 else op("broadcast_arrays")(arrays)[0].shape
    count = math.prod(front)
    arrays = [op("flatten")(op("broadcast_to")(op("astype")(a, "int64"), list(front))) for a in arrays]
    rest = list(value.shape[len(front):])
    value = op("reshape")(value, [count, *rest])
    position = 0
    for array, extent in zip(arrays, extents):
        position = position * extent + op("where")(array < 0, array + extent, array)
    order = op("argsort")(position)
    position, value, *arrays = (op("take")(x, order, 0) for x in (position, value, *arrays))
    step = 1
    while step < count:
        is_same = op("reshape")(position[step:] == position[:-step], [count - step] + [1] * len(rest))
        value = op("concatenate")([value[:step], op("where")(is_same, value[step:] * value[:-step], value[step:])], 0)
        step *= 2
    return arrays, value


def update(x, index, value, mode="set"):
    """x with the elements at an index set to a value, or combined with it."""
    index, truth = _truths(index)
    if truth is False:
        return x
    plan = Plan(x.shape, index)
    value = value if isinstance(value, Array) else _core.array(value, x.dtype)
    if value.dtype is not x.dtype:
        value = op("astype")(value, x.dtype)
    part = plan.sliced(x)
    if not plan.arrays:
        value = plan.disarranged(value, part.shape)
        if mode != "set":
            value = _applied(mode, part, value)
        return value if plan.is_whole() else op("slice_update")(x, value, plan.start, plan.stop, plan.step)
    if plan.is_empty_mask:
        return x
    value = plan.disarranged(value, plan.gathered(part).shape)
    if mode in ("subtract",):
        value, mode = op("negative")(value), "add"
    arrays = list(plan.arrays.values())
    if mode in ("multiply", "divide", "power"):
        arrays, value = _multiplied(arrays, [part.shape[a] for a in plan.arrays], value)
        factors = op("scatter")(op("ones_like")(part), value, arrays, axes=list(plan.arrays))
        part = _applied(mode, part, factors)
    else:
        part = op("scatter")(part, value, arrays, axes=list(plan.arrays), mode=mode)
    return part if plan.is_whole() else op("slice_update")(x, part, plan.start, plan.stop, plan.step)


class At:
    """x.at: with an index, x with some elements changed."""

    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x

    def __getitem__(self, index):
        return Place(self.x, index)


class Place:
    """x.at[index]: `set`, `add`, ... give a new array; equal indices add up, and `set` keeps the
    last."""

    __slots__ = ("x", "index")

    def __init__(self, x, index):
        self.x, self.index = x, index

    def get(self):
        return get(self.x, self.index)


def _add_mode(mode):
    def method(self, value):
        return update(self.x, self.index, value, mode)

    method.__name__ = mode
    method.__doc__ = f"A new array: x[index] {mode} value."
    setattr(Place, mode, method)


for _mode in ("set", *_BINARY):
    _add_mode(_mode)

# SPDX-License-Identifier: MIT
"""What moves elements and computes none: shapes, axes, joining, splitting, gathering, padding."""

import functools
import math

from .convert import as_array, astype, checked, convert, extents, tenon_dtype
from .dtypes import Dtype, dtypes, of_name, promote
from .reduce import checked_axes
from .table import ArgumentError, array, base, function, put


def _axis_of(name, axis, ndim):
    if not -ndim <= axis < ndim:
        raise ValueError(f"[{name}] Axis {axis} is out of bounds for array with {ndim} dimensions.")
    return axis % ndim


# --- shapes ----------------------------------------------------------------------------------------------


@function
def reshape(a, shape):
    """The elements in another shape; one extent may be -1."""
    shape = extents(shape)
    given = math.prod(n for n in shape if n != -1)
    if shape.count(-1) > 1:
        raise ValueError("[reshape] Can only infer one dimension.")
    if -1 in shape:
        if given == 0 and a.size == 0:
            raise ValueError("[reshape] Cannot infer the shape of an empty array")
        fits = given > 0 and a.size % given == 0
    else:
        fits = given == a.size
    if not fits:
        raise ValueError(f"[reshape] Cannot reshape array of size {a.size} into shape ({','.join(map(str, shape))}).")
    return base.reshape(a, shape)


@function
def flatten(a, start_axis=0, end_axis=-1):
    """Several axes as one."""
    if a.ndim == 0:
        return base.reshape(a, [1])
    start = max(start_axis + a.ndim if start_axis < 0 else start_axis, 0)
    end = min(end_axis + a.ndim if end_axis < 0 else end_axis, a.ndim - 1)
    if end < 0 or start >= a.ndim:
        raise ValueError(f"[flatten] Invalid start_axis {start_axis} or end_axis {end_axis} for an array of {a.ndim} axes.")
    if end < start:
        raise ValueError("[flatten] start_axis must be less than or equal to end_axis")
    return a if start == end else base.reshape(a, [*a.shape[:start], math.prod(a.shape[start:end + 1]), *a.shape[end + 1:]])


@function
def unflatten(a, axis, shape):
    """One axis as several."""
    if not len(shape):
        raise ValueError("[unflatten] Shape to unflatten to cannot be empty.")
    axis = _axis_of("unflatten", axis, a.ndim)
    shape = extents(shape)
    if shape.count(-1) > 1:
        raise ValueError("[unflatten] Can only infer one dimension.")
    if -1 in shape:
        shape[shape.index(-1)] = a.shape[axis] // max(1, math.prod(n for n in shape if n != -1))
    if math.prod(shape) != a.shape[axis]:
        raise ValueError(f"[unflatten] Cannot unflatten axis {axis} with size {a.shape[axis]} into shape {tuple(shape)}.")
    return base.reshape(a, [*a.shape[:axis], *shape, *a.shape[axis + 1:]])


@function
def squeeze(a, axis=None):
    """a without axes of extent 1."""
    if axis is None:
        return base.squeeze(a)
    axes = [_axis_of("squeeze", each, a.ndim) for each in ([axis] if isinstance(axis, int) else axis)]
    if len(set(axes)) < len(axes):
        raise ValueError("[squeeze] Received duplicate axes.")
    for each in axes:
        if a.shape[each] != 1:
            raise ValueError(f"[squeeze] Cannot squeeze axis {each} with size {a.shape[each]} which is not equal to 1.")
    return base.squeeze(a, axes) if axes else a


@function
def expand_dims(a, axis):
    """a with new axes of extent 1."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    ndim = a.ndim + len(axes)
    axes = [_axis_of("expand_dims", each, ndim) for each in axes]
    if len(set(axes)) < len(axes):
        raise ValueError("[expand_dims] Received duplicate axes.")
    return base.expand_dims(a, axes) if axes else a


def _at_least(n):
    def body(*arys):
        results = [getattr(base, f"atleast_{n}d")(as_array(a)) for a in arys]
        return results[0] if len(results) == 1 else results

    body.__name__, body.__doc__ = f"atleast_{n}d", f"Arrays with at least {n} axes."
    function(body)


for _n in (1, 2, 3):
    _at_least(_n)


@functools.lru_cache(256)
def _order(axes, ndim):
    """All axes of an array, in the order that is asked for."""
    if len(axes) != ndim:
        raise ValueError(f"[transpose] Recived {len(axes)} axes for array with {ndim} dimensions.")
    axes = [_axis_of("transpose", each, ndim) for each in axes]
    if len(set(axes)) < len(axes):
        raise ValueError("[transpose] Repeat axes not allowed.")
    return axes


@function
def transpose(a, axes=None):
    """Axes in another order; None: reversed."""
    return base.transpose(a) if axes is None else base.transpose(a, _order(tuple(axes), a.ndim))


@function
def permute_dims(a, axes=None):
    """Axes in another order; None: reversed."""
    return transpose(a, axes)


@function
def matrix_transpose(a):
    """The last two axes swapped."""
    if a.ndim < 2:
        raise ValueError("[matrix_transpose] The array must have at least two dimensions.")
    return base.matrix_transpose(a)


@function
def swapaxes(a, axis1, axis2):
    """Two axes exchanged."""
    return base.swapaxes(a, _axis_of("swapaxes", axis1, a.ndim), _axis_of("swapaxes", axis2, a.ndim))


@function
def moveaxis(a, source, destination):
    """An axis at another place."""
    return base.moveaxis(a, _axis_of("moveaxis", source, a.ndim), _axis_of("moveaxis", destination, a.ndim))


@function
def broadcast_to(a, shape):
    """a repeated along new axes and axes of extent 1."""
    return base.broadcast_to(as_array(a), extents(shape))


@function
def broadcast_arrays(*arrays):
    """The arrays with one shape."""
    if len(arrays) == 1 and isinstance(arrays[0], (list, tuple)):
        arrays = arrays[0]
    return tuple(base.broadcast_arrays([as_array(a) for a in arrays])) if arrays else ()


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes have together."""
    if not shapes:
        raise ValueError("[broadcast_shapes] Must provide at least one shape.")
    result = ()
    for shape in shapes:
        wide, narrow = (result, tuple(shape)) if len(result) >= len(shape) else (tuple(shape), result)
        tail = []
        for n, m in zip(wide[len(wide) - len(narrow):], narrow):
            if n != m and 1 not in (n, m):
                raise ValueError(f"[broadcast_shapes] Shapes {wide} and {narrow} cannot be broadcast.")
            tail.append(m if n == 1 else n)
        result = (*wide[:len(wide) - len(narrow)], *tail)
    return result


def result_type(*arrays_and_dtypes):
    """The dtype that arrays and dtypes have together."""
    if not arrays_and_dtypes:
        raise ValueError("at least one array or dtype is required")
    found = None
    for each in arrays_and_dtypes:
        if not isinstance(each, (array, Dtype)):
            raise TypeError(f"result_type(): got {type(each).__name__}, expected an array or a dtype")
        dtype = each._x.dtype if isinstance(each, array) else each.tenon
        found = dtype if found is None else promote(found, dtype)
    return of_name(found.name)


def can_cast(from_, to):
    """Whether promotion takes a dtype, or that of an array, to another."""
    return result_type(from_, to) is to


for _value in (broadcast_shapes, result_type, can_cast):
    put(_value.__name__, _value)


@function
def contiguous(a, allow_col_major=False):
    """a, whose elements lie in a row."""
    return base.copy(a)


@function
def as_strided(a, shape=None, strides=None, offset=0):
    """The memory of a, row-major, as an array of a shape and strides in elements."""
    shape = list(a.shape) if shape is None else extents(shape)
    if strides is None:
        strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    return base.as_strided(base.flatten(a), shape, list(strides), offset)


# --- joining and splitting -----------------------------------------------------------------------------------


def _together(name, arrays):
    if not isinstance(arrays, (list, tuple)):
        raise ArgumentError(f"got {type(arrays).__name__}, expected a list of arrays")
    arrays = [as_array(a) for a in arrays]
    if not arrays:
        raise ValueError(f"[{name}] No arrays provided for concatenation")
    dtype = arrays[0].dtype
    for a in arrays:
        dtype = promote(dtype, a.dtype)
    return [astype(a, dtype) for a in arrays]


@function(also=("concat",))
def concatenate(arrays, axis=0):
    """Arrays joined along an axis; None: flattened first."""
    arrays = _together("concatenate", arrays)
    if axis is None:
        arrays, axis = [base.flatten(a) for a in arrays], 0
    if arrays[0].ndim == 0:
        raise ValueError("[concatenate] Zero dimensional arrays cannot be concatenated.")
    checked([sum(a.shape[axis] for a in arrays if -a.ndim <= axis < a.ndim)])
    return base.concatenate(arrays, _axis_of("concatenate", axis, arrays[0].ndim))


@function
def stack(arrays, axis=0):
    """Arrays joined along a new axis."""
    arrays = _together("stack", arrays)
    if any(a.shape != arrays[0].shape for a in arrays):
        raise ValueError("[stack] All arrays must have the same shape.")
    return base.stack(arrays, _axis_of("stack", axis or 0, arrays[0].ndim + 1))


@function
def split(a, indices_or_sections, axis=0):
    """Parts of a along an axis: so many equal ones, or those between indices."""
    axis = _axis_of("split", axis, a.ndim)
    extent = a.shape[axis]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count <= 0 or extent % count:
            raise ValueError(f"[split] Array split does not result in sub arrays with equal size: attempting {count} splits along axis {axis} "
                             f"for shape {a.shape}")
        bounds = [extent // count * i for i in range(count + 1)]
    else:
        bounds = [0, *(_bound(int(i), extent) for i in indices_or_sections), extent]
    where = [slice(None)] * a.ndim
    parts = []
    for first, last in zip(bounds, bounds[1:]):
        where[axis] = slice(first, max(first, last))
        parts.append(a[tuple(where)])
    return parts


def _bound(index, extent):
    return max(0, index + extent) if index < 0 else min(index, extent)


@function
def unstack(x, *, axis=0):
    """The parts of x along an axis, without it."""
    if x.ndim == 0:
        raise ValueError("[unstack] Cannot unstack a 0-d array.")
    axis = _axis_of("unstack", axis, x.ndim)
    return list(base.unstack(x, axis)) if x.shape[axis] else []


@function
def repeat(array, repeats, axis=None):  # the parameter's name is MLX's
    """Each element several times."""
    a = as_array(array)
    if axis is None:
        a, axis = base.flatten(a), 0
    axis = _axis_of("repeat", axis, a.ndim)
    if repeats < 0:
        raise ValueError("[repeat] Number of repeats cannot be negative")
    checked([a.shape[axis] * repeats])
    return base.repeat(a, [repeats], axis)


@function
def tile(a, reps):
    """a side by side."""
    return base.tile(a, extents(reps))


@function
def roll(a, shift, axis=None):
    """Elements moved along axes, those from the end to the front."""
    if axis is None:
        total = shift if isinstance(shift, int) else sum(shift)
        return base.reshape(base.roll(base.flatten(a), total, 0), list(a.shape))
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(shifts) < len(axes):
        raise ValueError("[roll] At least one shift value per axis is required.")
    axes = [_axis_of("roll", each, a.ndim) for each in axes]
    for each, by in zip(axes, shifts):
        a = base.roll(a, by, each) if a.shape[each] else a
    return a


@function
def flip(a, axis=None):
    """a in reverse order along axes."""
    axes = checked_axes(a, axis, ValueError)
    return base.flip(a, axes) if axes is None or axes else a


def _pad_widths(pad_width, ndim):
    """Pairs for each axis from whatever MLX takes."""
    if isinstance(pad_width, int):
        return [(pad_width, pad_width)] * ndim
    rows = list(pad_width)
    if all(isinstance(row, int) for row in rows):
        if len(rows) == 1:
            return [(rows[0], rows[0])] * ndim
        if len(rows) == 2:
            return [tuple(rows)] * ndim
        raise ValueError("[pad] Invalid number of padding sizes passed to pad with axes.")
    if len(rows) == 1:
        rows = rows * ndim
    if len(rows) != ndim:
        raise ValueError(f"[pad] Invalid number of padding sizes passed to pad with axes of size {ndim}.")
    return [(row, row) if isinstance(row, int) else (row[0], row[-1]) for row in rows]


@function
def pad(a, pad_width, mode="constant", constant_values=0):
    """a with more elements around it."""
    a = as_array(a)
    widths = _pad_widths(pad_width, a.ndim)
    if any(n < 0 for row in widths for n in row):
        raise ValueError(f"[pad] Invalid padding size {widths}: expected sizes from 0.")
    before, after = [row[0] for row in widths], [row[1] for row in widths]
    if mode == "constant":
        value = convert(constant_values, a.dtype)
        if value.size != 1:
            raise ValueError("[pad] Expected one value to pad with.")
        whole = [n + b + c for n, b, c in zip(a.shape, before, after)]
        ground = base.broadcast_to(base.reshape(value, [1] * a.ndim), whole)
        return base.slice_update(ground, a, before, [b + n for b, n in zip(before, a.shape)], [1] * a.ndim) if a.ndim else a
    if mode not in ("edge", "reflect", "symmetric"):
        raise ValueError(f"Invalid padding mode ({mode}) passed to pad")
    return base.pad(a, before=before, after=after, mode=mode)


# --- gathering --------------------------------------------------------------------------------------------


def _checked_indices(name, indices):
    if indices.size == 0:
        return base.astype(indices, "int32")
    if indices.dtype.kind not in "iu":
        raise ValueError(f"[{name}] Got indices with invalid dtype. Indices must be integral.")
    return indices


@function
def take(a, indices, axis=None):
    """Elements at indices, along an axis, or of all."""
    if isinstance(indices, int):
        indices = convert(indices, None)
    if axis is None:
        a, axis = base.flatten(a), 0
    elif not -a.ndim <= axis < a.ndim:
        raise ValueError(f"[take] Received invalid axis {axis} for array with {a.ndim} dimensions.")
    if 0 in a.shape and indices.size and a.shape[axis] == 0:
        raise ValueError("[take] Cannot do a non-empty take from an array with zero elements.")
    return base.take(a, _checked_indices("gather", indices), axis)


@function
def take_along_axis(a, indices, axis=None):
    """Elements of lines along an axis at the indices of lines."""
    if axis is None:
        return base.take(base.flatten(a), base.flatten(_checked_indices("take_along_axis", indices)), 0)
    axis = _axis_of("take_along_axis", axis, a.ndim)
    if indices.ndim != a.ndim:
        raise ValueError(f"[take_along_axis] Indices of dimension {indices.ndim} does not match array of dimension {a.ndim}.")
    return base.take_along_axis(*_broadcast_but("take_along_axis", axis, a, _checked_indices("take_along_axis", indices)), axis)


def _broadcast_but(name, axis, *arrays):
    """Arrays of one shape but for an axis."""
    ndim = arrays[0].ndim
    others = [broadcast_shapes(*([n for i, n in enumerate(x.shape) if i != axis] for x in arrays))] * len(arrays)
    shapes = [[*rest[:axis], x.shape[axis], *rest[axis:]] for x, rest in zip(arrays, others)]
    return [x if list(x.shape) == shape else base.broadcast_to(x, shape) for x, shape in zip(arrays, shapes)] if ndim else arrays


@function
def put_along_axis(a, indices, values, axis=None):
    """a with elements of lines along an axis replaced."""
    indices = _checked_indices("put_along_axis", indices)
    values = astype(as_array(values), a.dtype)
    if axis is None:
        flat = base.flatten(a)
        at = base.flatten(indices)
        new = base.put_along_axis(flat, at, base.broadcast_to(base.flatten(values) if values.ndim else values, list(at.shape)), 0)
        return base.reshape(new, list(a.shape))
    axis = _axis_of("put_along_axis", axis, a.ndim)
    if indices.ndim != a.ndim:
        raise ValueError(f"[put_along_axis] Indices of dimension {indices.ndim} does not match array of dimension {a.ndim}.")
    shape = [n if i != axis else indices.shape[axis] for i, n in enumerate(a.shape)]
    return base.put_along_axis(a, base.broadcast_to(indices, shape), base.broadcast_to(values, shape), axis)


def _starts(start_indices):
    return [start_indices[i] for i in range(start_indices.shape[0])]


def _all_starts(a, start_indices, axes):
    """A start for each axis as one array of integers."""
    start_indices = astype(as_array(start_indices), base_int())
    if start_indices.ndim == 0:
        start_indices = base.reshape(start_indices, [1])
    if start_indices.size != len(axes):
        raise ValueError(f"[slice] {start_indices.size} starts for {len(axes)} axes.")
    given = dict(zip((_axis_of("slice", axis, a.ndim) for axis in axes), _starts(start_indices)))
    zero = convert(0, base_int())
    return base.stack([given.get(i, zero) for i in range(a.ndim)], 0)


def base_int():
    """The dtype of starts."""
    return dtypes["int32"].tenon


@function
def slice_(a, start_indices, axes, slice_size):
    """Part of a that begins where an array says."""
    if len(slice_size) != a.ndim:
        raise ValueError(f"[slice] Sizes of {len(slice_size)} axes for an array of {a.ndim}.")
    return base.dynamic_slice(a, _all_starts(a, start_indices, list(axes)), list(slice_size))


@function
def slice_update(a, update, start_indices, axes):
    """a with a part replaced that begins where an array says."""
    update = astype(as_array(update), a.dtype)
    return base.dynamic_slice_update(a, update, _all_starts(a, start_indices, list(axes)))


# --- diagonals -----------------------------------------------------------------------------------------------


@function
def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonals of two axes."""
    if a.ndim < 2:
        raise ValueError(f"[diagonal] Array must have at least two dimensions, but got {a.ndim} dimensions.")
    axis1, axis2 = _axis_of("diagonal", axis1, a.ndim), _axis_of("diagonal", axis2, a.ndim)
    if axis1 == axis2:
        raise ValueError("[diagonal] axis1 and axis2 cannot be the same axis")
    return base.diagonal(a, offset, axis1, axis2)


@function
def diag(a, k=0):
    """A matrix with a diagonal, or the diagonal of a matrix."""
    if a.ndim not in (1, 2):
        raise ValueError(f"[diag] array must be 1-D or 2-D, got array with {a.ndim} dimensions.")
    return base.diag(a, k)


@function
def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    """Sums of diagonals."""
    if a.ndim < 2:
        raise ValueError(f"[trace] Array must have at least two dimensions, but got {a.ndim} dimensions.")
    from .reduce import _widened

    if dtype is None:
        a = _widened(a)
    part = base.diagonal(a, offset, axis1, axis2)
    part = part if dtype is None else astype(part, tenon_dtype(dtype))
    return base.sum(part, -1, False, part.dtype)


@function
def diff(a, n=1, axis=-1):
    """Differences of neighbours, n times."""
    if n < 0:
        raise ValueError(f"[diff] Order must be non-negative, got {n}.")
    if a.ndim == 0:
        raise ValueError("[diff] Input must be at least one-dimensional.")
    axis = _axis_of("diff", axis, a.ndim)
    first, last = [slice(None)] * a.ndim, [slice(None)] * a.ndim
    first[axis], last[axis] = slice(1, None), slice(0, -1)
    for _ in range(min(n, a.shape[axis])):
        new, old = a[tuple(first)], a[tuple(last)]
        a = new ^ old if a.dtype.kind == "b" else new - old
    return a



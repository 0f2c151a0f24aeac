# SPDX-License-Identifier: MIT
"""Functions of arrays that are the first elements of a buffer (table.array), as caches of quantised keys and values give them.
The number of elements is data, and what is computed of them is again the first elements of a buffer: a step of decoding at another
length has the plan of the one before. Here are expand_dims, quantized_matmul and softmax, before those of the table."""

import functools

from ... import _core
from .. import quantized, reduce, shapes  # noqa: F401: their functions stand in the table
from ..convert import convert
from ..table import NAMES, base, part_of, put, wrap, wrap_part


@functools.lru_cache(16)
def length_of(count):
    """A number of elements as data."""
    return _core.array([count], "int32")


@functools.lru_cache(64)
def _positions(ndim, axis, count):
    """0, 1, ... along an axis."""
    return base.reshape(_core.array(list(range(count)), "int32"), [count if i == axis else 1 for i in range(ndim)])


def _masked(part, value):
    """The whole buffer of a part, whose elements behind the part are replaced by a value."""
    x, axis, count = part
    return wrap(base.where(base.less(_positions(x.ndim, axis, x.shape[axis]), length_of(count)), x, convert(value, x.dtype)))


def _of_parts(name, position):
    """Puts a function before the table's, for calls whose argument at a position is a part of a buffer. The new function gets the
    table's as its first argument, and gives None where the table's is to be called."""

    def decorate(body):
        plain = NAMES[name]

        @functools.wraps(plain)
        def call(*args, **named):
            if len(args) > position and part_of(args[position]) is not None:
                result = body(plain, *args, **named)
                if result is not None:
                    return result
            return plain(*args, **named)

        put(name, call)
        return body

    return decorate


@_of_parts("expand_dims", 0)
def _(plain, a, axis, stream=None):
    buffer, position, count = part_of(a)
    if not isinstance(axis, int) or not -buffer.ndim <= axis + 1 <= buffer.ndim + 1:
        return None
    wide = plain(wrap(buffer), axis, stream=stream)
    return wrap_part((wide._x, position + (axis % wide.ndim <= position), count))


@_of_parts("quantized_matmul", 1)
def _(plain, x, w, scales, biases=None, transpose=True, *more, **named):
    parts = [part_of(a) for a in (w, scales, biases)]
    if None in parts or len({part[1:] for part in parts}) > 1 or parts[0][1] != parts[0][0].ndim - 2:
        return None
    (words, _, count), whole = parts[0], part_of(x)
    if transpose:  # rows of w are columns of the result, so the result is a part, too
        product = plain(x, *(wrap(part[0]) for part in parts), True, *more, **named)
        return wrap_part((product._x, product.ndim - 1, count))
    if whole is None or whole[1:] != (whole[0].ndim - 1, count) or whole[0].shape[-1] != words.shape[-2]:
        return None
    # Rows of w are terms of the sums: terms behind the part have to be 0, whatever the buffers hold there.
    return plain(_masked(whole, 0), wrap(words), _masked(parts[1], 0), _masked(parts[2], 0), False, *more, **named)


@_of_parts("softmax", 0)
def _(plain, a, axis=None, **named):
    buffer, position, count = part = part_of(a)
    if not isinstance(axis, int) or axis not in (position, position - buffer.ndim) or buffer.dtype.kind != "f":
        return None
    return wrap_part((plain(_masked(part, float("-inf")), axis, **named)._x, position, count))

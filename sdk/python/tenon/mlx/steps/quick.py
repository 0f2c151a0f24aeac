# SPDX-License-Identifier: MIT
"""Short ways for the calls of which a step of a language model has hundreds: arguments as these models give them go to the operator of
tenon at once. Whatever else is given, and whatever the operator refuses, goes to the function of the table, which converts, checks and
says what is wrong in MLX's words."""

import functools

from ... import _core
from ..array import array
from ..fast import _frequencies, _over_parts
from ..index import _position, _span
from .lengths import length_of
from ..table import MODULES, NAMES, base, held_base, held_nn, held_quant, part_of, put, wrap

_REFUSALS = (AttributeError, TypeError, ValueError, OverflowError)


def _before(name, of=None):
    """Replaces a function of the table by a short way, which `make` makes of that function."""

    def decorate(make):
        plain = (NAMES if of is None else MODULES[of])[name]
        put(name, functools.wraps(plain)(make(plain)), of)
        return make

    return decorate


@_before("quantized_matmul")
def _(plain):
    from ..quantized import _format, _products

    @functools.lru_cache(64)
    def product(transpose, group_size, bits, mode):
        return functools.partial(held_quant.groupwise_matmul, transpose=transpose,
                                 **_format("quantized_matmul", mode, bits, group_size), **_products)

    def quantized_matmul(x, w, scales, biases=None, transpose=True, group_size=None, bits=None, mode="affine", *, stream=None):
        if stream is None and biases is not None:
            try:
                return product(transpose, group_size, bits, mode)(x, w, scales, biases)
            except _REFUSALS:  # a part of a buffer raises an AttributeError, and goes to lengths.py
                pass
        return plain(x, w, scales, biases, transpose, group_size, bits, mode, stream=stream)

    return quantized_matmul


@_before("rms_norm", "fast")
def _(plain):
    norm = held_nn.rms_norm

    def rms_norm(x, weight, eps, *, stream=None):
        if stream is None and type(x) is array and type(weight) is array:
            rows, factor = x._x, weight._x
            if rows.dtype is factor.dtype and rows.ndim and factor.shape == rows.shape[-1:] and rows.dtype.kind == "f":
                return norm(x, weight, eps)
        return plain(x, weight, eps, stream=stream)

    return rms_norm


@functools.lru_cache(16)
def _offset(count):
    return base.reshape(length_of(count), ())


@_before("rope", "fast")
def _(plain):
    turn = held_nn.rope

    def rope(a, dims, *, traditional, base, scale, offset, freqs=None, stream=None):
        if type(offset) is int and freqs is None and base is not None and stream is None and type(a) is array:
            x = a._x
            if x.ndim >= 3 and x.shape[-1] == dims > 0 and not dims & 1 and x.dtype.kind == "f":
                return turn(a, _frequencies(dims, float(base), float(scale)), _offset(offset), traditional)
        return plain(a, dims, traditional=traditional, base=base, scale=scale, offset=offset, freqs=freqs, stream=stream)

    return rope


@_before("scaled_dot_product_attention", "fast")
def _(plain):
    attend, known = held_nn.scaled_dot_product_attention, set()

    def scaled_dot_product_attention(q, k, v, *, scale, mask=None, sinks=None, force_fused=False, stream=None):
        if mask is None and sinks is None and stream is None and not force_fused and scale and type(q) is array:
            keys, values = part_of(k), part_of(v)
            if keys and values and keys[1:] == values[1:] and keys[1] == 2:
                x, buffer, other = q._x, keys[0], values[0]
                key = (x.dtype, buffer.dtype, other.dtype, x.shape, buffer.shape, other.shape)
                if key in known:
                    return attend(q, buffer, other, None, length_of(keys[2]), float(scale))
                result = wrap(_over_parts(x, keys, values, scale))
                if x.dtype is buffer.dtype is other.dtype and buffer.shape[2] == other.shape[2] and len(known) < 256:
                    known.add(key)
                return result
        return plain(q, k, v, scale=scale, mask=mask, sinks=sinks, force_fused=force_fused, stream=stream)

    return scaled_dot_product_attention


# --- methods and indices of arrays -----------------------------------------------------------------------


def _method(name):
    def decorate(make):
        plain = getattr(array, name)
        setattr(array, name, functools.wraps(plain)(make(plain)))
        return make

    return decorate


@_method("reshape")
def _(plain):
    change = held_base.reshape

    def reshape(self, *shape, stream=None):
        if stream is None:
            try:
                return change(self, shape[0] if len(shape) == 1 else shape)
            except _REFUSALS:
                pass
        return plain(self, *shape, stream=stream)

    return reshape


@_method("transpose")
def _(plain):
    turn = held_base.transpose

    def transpose(self, *axes, stream=None):
        if stream is None and len(axes) > 1:
            try:
                return turn(self, axes)
            except _REFUSALS:
                pass
        return plain(self, *axes, stream=stream)

    return transpose


@_method("__setitem__")
def _(plain):
    write = base.dynamic_slice_update

    def __setitem__(self, where, value):
        if type(value) is array and type(where) is tuple and not _core.is_tracing():
            x, rows = self._x, value._x
            span = _span(x, where)
            if span is not None and rows.dtype is x.dtype and rows.ndim == x.ndim:
                axis, start, stop = span
                shape = rows.shape
                if stop - start < x.shape[axis] and (*x.shape[:axis], stop - start, *x.shape[axis + 1:]) == shape:
                    self._x = write(x, rows, _position(x.ndim, axis, start))
                    return
                x = rows = None  # with these references the buffer would be copied, not written in place
        plain(self, where, value)

    return __setitem__

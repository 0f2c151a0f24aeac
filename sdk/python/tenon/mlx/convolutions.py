# SPDX-License-Identifier: MIT
"""Convolutions, channels last; transposed ones are those of an input with zeros between its elements."""

from .convert import operands
from .table import base, function, nn


def _spread(name, value, count):
    """A number for each axis."""
    value = [value] if isinstance(value, int) else [int(n) for n in value]
    if len(value) == 1:
        return value * count
    if len(value) != count:
        raise ValueError(f"[conv] Invalid {name} {tuple(value)} for {count}D convolution.")
    return value


def _checked(x, w, count, groups):
    if x.ndim != count + 2:
        raise ValueError(f"[conv] Invalid input array with {x.ndim} dimensions: expected {count + 2} dimensions.")
    if w.ndim != count + 2:
        raise ValueError(f"[conv] Invalid weight array with {w.ndim} dimensions: expected {count + 2} dimensions.")
    if x.shape[-1] % groups or w.shape[0] % groups or x.shape[-1] != w.shape[-1] * groups:
        raise ValueError(f"[conv] Expect the input channels in the input and weight array to match but got shapes - input: {x.shape} and "
                         f"weight: {w.shape} with {groups} groups")
    if groups != 1 and count == 3:
        raise ValueError("[conv] Can only handle groups != 1 in 1D or 2D convolutions.")
    x, w = operands(x, w)
    if x.dtype.kind not in "fc":
        raise ValueError(f"[conv] Only inexact types are supported but {x.dtype.name} was provided.")
    return x, w


def convolution(x, w, stride=1, before=0, after=0, dilation=1, input_dilation=1, groups=1, flip=False):
    """The convolution of arrays of tenon; less than no padding leaves elements out."""
    count = x.ndim - 2
    if not 1 <= count <= 3:
        raise ValueError("[conv] Only works for inputs with 1-3 spatial dimensions. The inputs must be in the format [N, ..., C_in]")
    x, w = _checked(x, w, count, groups)
    stride, dilation = _spread("stride", stride, count), _spread("dilation", dilation, count)
    between = _spread("input dilation", input_dilation, count)
    before, after = _spread("padding", before, count), _spread("padding", after, count)
    if any(n < 1 for n in (*stride, *dilation, *between)):
        raise ValueError("[conv] Strides and dilations must be positive.")
    x, before, after = _cropped(x, before, after)
    x = _apart(x, between)
    x, before = _padded(x, before, after)
    after = before
    for n, k, low, high, d in zip(x.shape[1:-1], w.shape[1:-1], before, after, dilation):
        if n + low + high < 1 + d * (k - 1):
            raise ValueError("[conv] Spatial dimensions of input after padding cannot be smaller than weight spatial dimensions.")
    return getattr(nn, f"conv{count}d")(x, w, None, stride, before, dilation, None, groups, flip)


def _apart(x, steps):
    """x with zeros between its elements."""
    for axis, step in enumerate(steps, 1):
        n = x.shape[axis]
        if step > 1 and n > 1:
            wide = base.expand_dims(x, [axis + 1])
            none = [0] * wide.ndim
            wide = base.pad_constant(wide, none, [step - 1 if i == axis + 1 else 0 for i in range(wide.ndim)])
            x = base.reshape(wide, [*x.shape[:axis], n * step, *x.shape[axis + 1:]])
            x = x[(slice(None),) * axis + (slice(0, (n - 1) * step + 1),)]
    return x


def _cropped(x, before, after):
    """x without the elements that negative padding cuts off, and the padding that is left."""
    if any(n < 0 for n in (*before, *after)):
        x = x[(slice(None), *(slice(max(-a, 0), n + min(b, 0)) for n, a, b in zip(x.shape[1:-1], before, after)))]
    return x, [max(n, 0) for n in before], [max(n, 0) for n in after]


def _padded(x, before, after):
    """x padded by the part of the padding that differs between the sides, and the padding that is left, equal on both."""
    same = [min(low, high) for low, high in zip(before, after)]
    low, high = [[0, *(n - s for n, s in zip(side, same)), 0] for side in (before, after)]
    return (base.pad_constant(x, low, high) if any(low) or any(high) else x), same


def _conv(count):
    def body(input, weight, stride=1, padding=0, dilation=1, groups=1):
        padding = [padding] if isinstance(padding, int) else list(padding)
        if count > 1 and input.ndim != count + 2:
            raise ValueError(f"[conv] Invalid input array with {input.ndim} dimensions: expected {count + 2} dimensions.")
        if any(n < 0 for n in padding):
            raise ValueError("[conv] Padding must not be negative.")
        return convolution(input, weight, stride, padding, padding, dilation, 1, groups)

    body.__name__, body.__doc__ = f"conv{count}d", f"Convolution over {count} axes."
    function(body)


def _conv_transpose(count):
    def body(input, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1):
        if input.ndim != count + 2:
            raise ValueError(f"[conv] Invalid input array with {input.ndim} dimensions: expected {count + 2} dimensions.")
        padding, dilation = _spread("padding", padding, count), _spread("dilation", dilation, count)
        before = [d * (k - 1) - p for d, k, p in zip(dilation, weight.shape[1:-1], padding)]
        after = [n + more for n, more in zip(before, _spread("output padding", output_padding, count))]
        return convolution(input, weight, 1, before, after, dilation, _spread("stride", stride, count), groups, True)

    body.__name__, body.__doc__ = f"conv_transpose{count}d", f"Transposed convolution over {count} axes."
    function(body)


for _count in (1, 2, 3):
    _conv(_count)
    _conv_transpose(_count)


@function
def conv_general(input, weight, stride=1, padding=0, kernel_dilation=1, input_dilation=1, groups=1, flip=False):
    """Convolution over one to three axes; `padding` may be a pair of lists, before and behind."""
    is_pair = isinstance(padding, (list, tuple)) and len(padding) == 2 and isinstance(padding[0], (list, tuple))
    before, after = padding if is_pair else (padding, padding)
    return convolution(input, weight, stride, before, after, kernel_dilation, input_dilation, groups, flip)

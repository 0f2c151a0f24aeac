# SPDX-License-Identifier: MIT
"""Products of matrices and sums of products: matmul, einsum and their like, convolutions."""

import math

from .. import _core
from .convert import as_array, astype, convert, inexact, operands
from .table import base, function, nn


def _floats(name, a, b):
    a, b = operands(a, b)
    if a.dtype.kind not in "fc":
        raise ValueError(f"[{name}] Only inexact types are supported but {a.dtype.name} was provided, which is not a floating point type.")
    return a, b


@function
def matmul(a, b):
    """Products of matrices."""
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("[matmul] Got 0 dimension input. Inputs must have at least one dimension.")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ValueError(f"[matmul] Last dimension of first input with shape {a.shape} must match second to last dimension of second input "
                         f"with shape {b.shape}.")
    return base.matmul(*_floats("matmul", a, b))


@function
def addmm(c, a, b, alpha=1.0, beta=1.0):
    """beta * c + alpha * (a @ b)."""
    a, b = _floats("addmm", a, b)
    c, product = operands(c, matmul(a, b))
    if alpha != 1:
        product = product * alpha
    return product + (c if beta == 1 else c * beta)


@function
def inner(a, b):
    """Sums of products over the last axes."""
    if a.ndim == 0 or b.ndim == 0:
        x, y = operands(a, b)
        return x * y
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("[inner] a and b must have the same last dimension.")
    return base.inner(*_floats("matmul", a, b))


@function
def outer(a, b):
    """All products of two vectors' elements."""
    a, b = operands(a, b)
    return base.outer(base.flatten(a), base.flatten(b))


@function
def vecdot(a, b, *, axis=-1):
    """Sums of products along an axis, of a's conjugate."""
    a, b = operands(a, b)
    return base.vecdot(a, b, axis)


@function
def kron(a, b):
    """Every product of elements, as blocks."""
    a, b = operands(a, b)
    if a.size == 0 or b.size == 0:
        raise ValueError("[kron] Input arrays cannot be empty.")
    return base.kron(a, b)


@function
def tensordot(a, b, axes=2):
    """Sums of products over axes: so many last and first ones, or two lists."""
    a, b = _floats("tensordot", a, b)
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ValueError(f"[tensordot] axes must be between 0 and the numbers of axes, got {axes}.")
        return base.tensordot(a, b, axes)
    if len(axes) != 2:
        raise ValueError("[tensordot] axes must be a list of two lists.")
    left, right = list(axes[0]), list(axes[1])
    if len(left) != len(right):
        raise ValueError("[tensordot] axes must have the same size.")
    for i, k in zip(left, right):
        if a.shape[i] != b.shape[k]:
            raise ValueError("[tensordot] a and b must have the same shape on the contracted axes.")
    return base.tensordot(a, b, axes_a=left, axes_b=right)


@function
def hadamard_transform(a, scale=None):
    """Walsh-Hadamard transforms of the last axis."""
    return base.hadamard_transform(inexact(a), scale)


# --- convolutions, channels last ---------------------------------------------------------------------------------


def _spread(name, value, count):
    if isinstance(value, int):
        return [value] * count
    value = [int(v) for v in value]
    if len(value) == 1:
        return value * count
    if len(value) != count:
        raise ValueError(f"[conv] Invalid {name} {tuple(value)} for {count}D convolution.")
    return value


def _conv(count):
    def body(input, weight, stride=1, padding=0, dilation=1, groups=1):
        return convolution(input, weight, stride, padding, dilation, 1, groups, False, count)

    body.__name__, body.__doc__ = f"conv{count}d", f"Convolution over {count} axes, channels last."
    function(body)


def convolution(x, w, stride, padding, dilation, input_dilation, groups, flip, count):
    """Convolution of arrays of tenon over `count` axes; `padding` may be a pair of lists, before and behind."""
    if x.ndim != count + 2 or w.ndim != count + 2:
        raise ValueError(f"[conv] Invalid input array with {x.ndim} dimensions: expected {count + 2} dimensions.")
    if x.shape[-1] != w.shape[-1] * groups or w.shape[0] % groups:
        raise ValueError(f"[conv] Expect the input channels in the input and weight array to match but got shapes - input: {x.shape} and "
                         f"weight: {w.shape} with groups {groups}")
    x, w = _floats("conv", x, w)
    stride, dilation = _spread("stride", stride, count), _spread("dilation", dilation, count)
    input_dilation = _spread("input dilation", input_dilation, count)
    if isinstance(padding, (list, tuple)) and len(padding) == 2 and isinstance(padding[0], (list, tuple)):
        before, after = _spread("padding", padding[0], count), _spread("padding", padding[1], count)
    else:
        before = after = _spread("padding", padding, count)
    if any(n < 0 for n in (*before, *after)) or any(n < 1 for n in (*stride, *dilation, *input_dilation)):
        raise ValueError("[conv] Padding must not be negative, strides and dilations must be positive.")
    for n, k, b, c, d, i in zip(x.shape[1:-1], w.shape[1:-1], before, after, dilation, input_dilation):
        if 1 + i * (n - 1) + b + c < 1 + d * (k - 1):
            raise ValueError("[conv] Spatial dimensions of input after padding cannot be smaller than weight spatial dimensions.")
    return getattr(nn, f"conv{count}d")(x, w, None, stride, [*before, *after] if before != after else before, dilation, input_dilation, groups,
                                        flip)


for _count in (1, 2, 3):
    _conv(_count)


@function
def convolve(a, v, mode="full"):
    """The convolution of two vectors, as NumPy's."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"[convolve] Invalid mode '{mode}': expected 'full', 'same' or 'valid'.")
    if a.ndim != 1 or v.ndim != 1 or a.size == 0 or v.size == 0:
        raise ValueError("[convolve] Inputs must be 1D and not empty.")
    a, v = operands(a, v)
    return base.convolve(a if a.size >= v.size else v, v if a.size >= v.size else a, mode)


# --- einsum --------------------------------------------------------------------------------------------------------


def _parsed(subscripts, shapes):
    """Operands' letters and the result's."""
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    operands_ = given.split(",")
    for letter in given.replace(",", "") + result:
        if not letter.isalpha() and letter != ".":
            raise ValueError(f"[einsum] Invalid subscript {letter!r} in {subscripts!r}: expected letters.")
    if len(operands_) != len(shapes):
        raise ValueError(f"[einsum] Number of operands, {len(shapes)}, does not match number of input subscripts, {len(operands_)}")
    for letters, shape in zip(operands_, shapes):
        if "..." not in letters and len(letters) != len(shape):
            raise ValueError(f"[einsum] Invalid number of subscripts {len(letters)} for input with {len(shape)} dimensions.")
    if arrow:
        if any(letter not in given for letter in result):
            raise ValueError(f"[einsum] The output of {subscripts!r} has a letter that no input has.")
        if any(result.count(letter) > 1 for letter in result if letter != "."):
            raise ValueError("[einsum] Repeat indices not allowed in output.")
    return operands_, result if arrow else None


@function
def einsum(subscripts, *given):
    """Sums of products by an equation: einsum("ij,jk->ik", a, b)."""
    arrays = [as_array(a) for a in given]
    _parsed(subscripts, [a.shape for a in arrays])
    if not arrays:
        raise ValueError("[einsum] At least one operand is expected.")
    together = arrays[0]
    for a in arrays[1:]:
        together = operands(together, convert(_core.array(0), a.dtype))[0] if a.dtype is not together.dtype else together
    return base.einsum([astype(a, together.dtype) for a in arrays], equation=subscripts.replace(" ", ""))


@function
def einsum_path(subscripts, *given):
    """In which order einsum() multiplies, and a text about its cost."""
    arrays = [as_array(a) for a in given]
    letters, result = _parsed(subscripts, [a.shape for a in arrays])
    count = len(letters)
    path = [(0, 1)] * max(count - 1, 1) if count > 1 else [(0,)]
    sizes = {letter: n for text, a in zip(letters, arrays) for letter, n in zip(text, a.shape)}
    cost = math.prod(sizes.values()) * count
    return path, f"Complete contraction: {','.join(letters)}->{result}\nNaive FLOP count: {cost}\n"

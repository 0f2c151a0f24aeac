# SPDX-License-Identifier: MIT
"""Products of matrices and sums of products: matmul and its like."""

from .convolutions import convolution
from .convert import checked, inexact, operands
from .shapes import broadcast_shapes
from .table import base, function


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
    if broadcast_shapes(c.shape, product.shape) != product.shape:
        raise ValueError(f"[addmm] c with shape {c.shape} does not broadcast to the output shape {product.shape}.")
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
    checked([n * m for n, m in zip(reversed(a.shape), reversed(b.shape))])
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
    a = inexact(a)
    if a.ndim == 0:
        return a if scale is None else a * scale
    return base.hadamard_transform(a, scale)


@function
def convolve(a, v, mode="full"):
    """The convolution of two vectors, as NumPy's."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"[convolve] Invalid mode '{mode}': expected 'full', 'same' or 'valid'.")
    if a.ndim != 1 or v.ndim != 1 or a.size == 0 or v.size == 0:
        raise ValueError("[convolve] Inputs must be 1D and not empty.")
    a, v = operands(a, v)
    if a.dtype.kind in "biuc":
        return base.convolve(a, v, mode)
    a, v = (a, v) if a.size >= v.size else (v, a)
    around = v.size - 1
    image = convolution(base.reshape(a, [1, a.size, 1]), base.reshape(v, [1, v.size, 1]), 1, around, around, flip=True)
    full = base.flatten(image)
    cut = {"full": 0, "same": around // 2, "valid": around}[mode]
    length = {"full": full.size, "same": a.size, "valid": a.size - around}[mode]
    return full[cut:cut + length]

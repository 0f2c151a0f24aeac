# SPDX-License-Identifier: MIT
"""Quantised weights in groups, over pack quant, and products of chosen, masked and divided matrices."""

import functools
import math

from .convert import astype, convert, operands, tenon_dtype
from .shapes import broadcast_shapes
from .table import base, function, on_device, quant

# By mode: default bits, default group size, all bits, all group sizes.
_MODES = {"affine": (4, 64, (2, 3, 4, 5, 6, 8), (32, 64, 128)), "mxfp4": (4, 32, (4,), (32,)),
          "mxfp8": (8, 32, (8,), (32,)), "nvfp4": (4, 16, (4,), (16,))}


_products = {}  # further attributes of all products: see set_exact()


def set_exact():
    """Products are of floats from now on, as MLX's; before, x may be rounded to 16 bits, where that is faster."""
    _products.update(exact=True)


@functools.lru_cache(64)
def _format(what, mode, bits, group_size):
    """The attributes of a mode."""
    if mode not in _MODES:
        raise ValueError(f"[{what}] Invalid quantization mode {mode}: expected one of {', '.join(_MODES)}.")
    own_bits, own_group, all_bits, all_groups = _MODES[mode]
    bits, group = own_bits if bits is None else bits, own_group if group_size is None else group_size
    if group not in all_groups:
        raise ValueError(f"[{what}] The requested group size {group} is not supported. The supported group sizes of mode {mode} "
                         f"are {', '.join(map(str, all_groups))}.")
    if bits not in all_bits:
        raise ValueError(f"[{what}] The requested number of bits {bits} is not supported. The supported bits of mode {mode} are "
                         f"{', '.join(map(str, all_bits))}.")
    return {"mode": mode, "bits": bits, "group": group}


def _check_scale(what, mode, *scales):
    if mode != "nvfp4" and any(scale is not None for scale in scales):
        raise ValueError(f"[{what}] Global scale is only supported for 'nvfp4' quantization mode.")


def _check_parts(what, mode, scales, biases):
    if mode == "affine":
        if biases is None:
            raise ValueError(f"[{what}] Biases must be provided for affine quantization.")
        if scales.dtype.kind != "f" or biases.dtype.kind != "f":
            raise ValueError(f"[{what}] Only real floating types are supported but scales have {scales.dtype.name} and biases "
                             f"{biases.dtype.name}.")
    elif biases is not None:
        raise ValueError(f"[{what}] Biases must be None for quantization mode '{mode}'.")


@function
def quantize(w, group_size=None, bits=None, mode="affine", *, global_scale=None):
    """Rows of w as codes in words of 32 bits, with scales (and biases) of groups."""
    form = _format("quantize", mode, bits, group_size)
    _check_scale("quantize", mode, global_scale)
    if w.dtype.kind != "f":
        raise ValueError(f"[quantize] Only real floating types can be quantized but w has type {w.dtype.name}.")
    if w.ndim < 2:
        raise ValueError(f"[quantize] The matrix to be quantized must have at least 2 dimension but it has only {w.ndim}.")
    if w.shape[-1] % form["group"]:
        raise ValueError(f"[quantize] The last dimension of the matrix needs to be divisible by the quantization group size "
                         f"{form['group']}. However the provided matrix has shape {w.shape}")
    return on_device(quant.groupwise_quantize(w, global_scale, **form))


@function
def dequantize(w, scales, biases=None, group_size=None, bits=None, mode="affine", global_scale=None, dtype=None):
    """The elements that codes stand for."""
    form = _format("dequantize", mode, bits, group_size)
    _check_parts("dequantize", mode, scales, biases)
    _check_scale("dequantize", mode, global_scale)
    dtype = tenon_dtype(dtype)
    if dtype is not None and dtype.kind != "f":
        raise ValueError(f"[dequantize] dtype is {dtype.name}, expected a floating point type.")
    named = {} if dtype is None else {"dtype": dtype}
    return quant.groupwise_dequantize(w, scales, biases, global_scale, **form, **named)


def _check_product(what, x, mode, scales, biases):
    _check_parts(what, mode, scales, biases)
    if x.dtype.kind != "f":
        raise ValueError(f"[{what}] Only real floating types are supported but x has {x.dtype.name}.")


@function
def quantized_matmul(x, w, scales, biases=None, transpose=True, group_size=None, bits=None, mode="affine"):
    """x times a quantised matrix, transposed or not."""
    form = _format("quantized_matmul", mode, bits, group_size)
    _check_product("quantized_matmul", x, mode, scales, biases)
    return quant.groupwise_matmul(x, w, scales, biases, transpose=transpose, **form, **_products)


def _gathered(what, x, w, scales, biases, lhs_indices, rhs_indices, transpose, form, is_sorted):
    if lhs_indices is None and rhs_indices is None:
        return quant.groupwise_matmul(x, w, scales, biases, transpose=transpose, **form, **_products)
    for indices in (lhs_indices, rhs_indices):
        if indices is not None and indices.dtype.kind not in "iu":
            raise ValueError(f"[{what}] Got indices with invalid dtype. Indices must be integral.")
    return quant.groupwise_gather_matmul(x, w, scales, biases, lhs_indices, rhs_indices, transpose=transpose,
                                         sorted=is_sorted, **form, **_products)


@function
def gather_qmm(x, w, scales, biases=None, lhs_indices=None, rhs_indices=None, transpose=True, group_size=None, bits=None,
               mode="affine", *, sorted_indices=False):
    """Products of matrices of x and quantised ones, both chosen by indices."""
    form = _format("gather_qmm", mode, bits, group_size)
    _check_product("gather_qmm", x, mode, scales, biases)
    return _gathered("gather_qmm", x, w, scales, biases, lhs_indices, rhs_indices, transpose, form, sorted_indices)


def _both(what, x, w, scales, mode, bits, group_size, scale_x, scale_w):
    """x rounded to the format of a mode, and w, which is quantised in that format unless it has scales, as floats."""
    if mode not in ("nvfp4", "mxfp8"):
        raise ValueError(f"[{what}] Only 'nvfp4' and 'mxfp8' quantization modes are supported but '{mode}' was provided.")
    form = _format(what, mode, bits, group_size)
    _check_scale(what, mode, scale_x, scale_w)
    if x.dtype.kind != "f":
        raise ValueError(f"[{what}] Only real floating types are supported but x has {x.dtype.name}.")
    rounded = quant.groupwise_dequantize(*quant.groupwise_quantize(x, scale_x, **form), None, scale_x, dtype=x.dtype, **form)
    if scales is None:
        w, scales = quant.groupwise_quantize(w, scale_w, **form)
    return rounded, quant.groupwise_dequantize(w, scales, None, scale_w, dtype=x.dtype, **form)


@function
def qqmm(x, w, scales=None, group_size=None, bits=None, mode="nvfp4", global_scale_x=None, global_scale_w=None):
    """x, rounded to a format, times a transposed matrix in it."""
    if w.ndim != 2 or x.ndim < 1:
        raise ValueError(f"[qqmm] got shapes {x.shape} and {w.shape}, expected w to be a matrix.")
    x, w = _both("qqmm", x, w, scales, mode, bits, group_size, global_scale_x, global_scale_w)
    return base.matmul(x, base.swapaxes(w, -1, -2))


@function
def gather_qqmm(x, w, scales=None, lhs_indices=None, rhs_indices=None, group_size=None, bits=None, mode="nvfp4",
                global_scale_x=None, global_scale_w=None, *, sorted_indices=False):
    """qqmm of matrices that are chosen by indices."""
    x, w = _both("gather_qqmm", x, w, scales, mode, bits, group_size, global_scale_x, global_scale_w)
    return _chosen_product(x, base.swapaxes(w, -1, -2), lhs_indices, rhs_indices)


# --- chosen, masked and divided matrices -----------------------------------------------------------


def _chosen(x, indices):
    """The matrices of x at indices into its batch axes, which count as one axis."""
    return base.take(base.reshape(x, [-1, *x.shape[-2:]]), indices, 0)


def _in_order(x):
    """0, 1, ... in the batch axes of x."""
    batch = list(x.shape[:-2])
    return base.reshape(base.arange(stop=math.prod(batch), dtype="int32"), batch)


def _chosen_product(a, b, lhs_indices, rhs_indices):
    if lhs_indices is None and rhs_indices is None:
        return base.matmul(a, b)
    left = _in_order(a) if lhs_indices is None else lhs_indices
    right = _in_order(b) if rhs_indices is None else rhs_indices
    shape = list(broadcast_shapes(left.shape, right.shape))
    return base.matmul(_chosen(a, base.broadcast_to(left, shape)), _chosen(b, base.broadcast_to(right, shape)))


@function
def gather_mm(a, b, lhs_indices=None, rhs_indices=None, *, sorted_indices=False):
    """Products of matrices that are chosen by indices."""
    for indices in (lhs_indices, rhs_indices):
        if indices is not None and indices.dtype.kind not in "iu":
            raise ValueError("[gather_mm] Got indices with invalid dtype. Indices must be integral.")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"[gather_mm] Last dimension of first input with shape {a.shape} must match second to last dimension of "
                         f"second input with shape {b.shape}.")
    a, b = operands(a, b)
    if a.dtype.kind != "f":
        raise ValueError(f"[gather_mm] Only real floating point types are supported but {a.dtype.name} was provided.")
    return _chosen_product(a, b, lhs_indices, rhs_indices)


def _masked(x, mask, block):
    """x with its blocks masked out by a mask of bools, or multiplied by a mask of numbers."""
    if mask is None:
        return x
    for axis in (-2, -1):
        mask = base.repeat(mask, block, axis)
    mask = mask[..., :x.shape[-2], :x.shape[-1]]
    if mask.dtype.kind == "b":
        return base.where(mask, x, convert(0, x.dtype))
    return base.multiply(x, astype(mask, x.dtype))


@function
def block_masked_mm(a, b, block_size=64, mask_out=None, mask_lhs=None, mask_rhs=None):
    """The product of matrices whose blocks, and those of the result, may be masked out."""
    if block_size not in (32, 64):
        raise ValueError("[block_masked_mm] Only block_sizes 32, 64 are supported.")
    a, b = operands(a, b)
    if a.ndim == 0 or b.ndim == 0 or a.dtype.kind != "f":
        raise ValueError(f"[block_masked_mm] got {a.dtype.name}{list(a.shape)} and {b.dtype.name}{list(b.shape)}, expected "
                         "floats of at least one axis.")
    is_row, is_column = a.ndim == 1, b.ndim == 1
    a = base.expand_dims(a, 0) if is_row else a
    b = base.expand_dims(b, 1) if is_column else b
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"[block_masked_mm] Last dimension of first input with shape {a.shape} must match second to last "
                         f"dimension of second input with shape {b.shape}.")
    product = base.matmul(_masked(a, mask_lhs, block_size), _masked(b, mask_rhs, block_size))
    product = _masked(product, mask_out, block_size)
    if is_column:
        product = base.squeeze(product, -1)
    return base.squeeze(product, -1 if is_column else -2) if is_row else product


@function
def segmented_mm(a, b, segments):
    """For each segment, from one number to another, the product of these columns of a and rows of b."""
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("[segmented_mm] Batched matrix multiplication not supported.")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"[segmented_mm] Last dimension of first input with shape {a.shape} must match first dimension of second "
                         f"input with shape {b.shape}.")
    if segments.ndim < 1 or segments.shape[-1] != 2 or segments.dtype.kind not in "iu":
        raise ValueError("[segmented_mm] The segments should have shape (..., 2) and integers.")
    a, b = operands(a, b)
    if a.dtype.kind != "f":
        raise ValueError(f"[segmented_mm] Only real floating point types are supported but {a.dtype.name} was provided.")
    position = base.arange(stop=a.shape[1], dtype=segments.dtype.name)
    inside = base.logical_and(base.greater_equal(position, segments[..., :1]), base.less(position, segments[..., 1:]))
    return base.matmul(base.where(base.expand_dims(inside, -2), a, convert(0, a.dtype)), b)

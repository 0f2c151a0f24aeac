# SPDX-License-Identifier: MIT
"""mlx.core.fast over pack nn: norms, rotary positions, attention, cross entropy; kernels in Metal and CUDA, which only
say what they are."""

import functools

from .. import _core
from .convert import as_array, astype, convert
from .dtypes import of_name, promote
from .steps.lengths import length_of
from .shapes import broadcast_shapes
from .table import base, call_of, function, nn, part_of, put, unwrapped, wrap

_INT32, _FLOAT32 = of_name("int32").tenon, of_name("float32").tenon


def _together(what, *arrays):
    """The dtype of arrays together, which has to be one of floats."""
    dtype = functools.reduce(promote, [x.dtype for x in arrays if x is not None])
    if dtype.kind != "f":
        raise ValueError(f"[{what}] Received unsupported type {dtype.name}.")
    return dtype


def _check_rows(what, x, **factors):
    if x.ndim == 0:
        raise ValueError(f"[{what}] Input must have at least 1 dimension but got input with 0 dimensions.")
    for name, factor in factors.items():
        if factor is not None and factor.shape != x.shape[-1:]:
            raise ValueError(f"[{what}] {name} must have 1 dimension and the same size as the last dimension of x but has "
                             f"shape {factor.shape}, and x {x.shape}.")


def _row(factor, value, x, dtype):
    """A factor of rows, or a constant one."""
    if factor is None:
        return base.full([x.shape[-1]], value, dtype)
    return astype(factor, dtype)


@function(of="fast")
def rms_norm(x, weight, eps):
    """Rows over the root of the mean of their squares, times weight."""
    _check_rows("rms_norm", x, weight=weight)
    dtype = _together("rms_norm", x, weight)
    return nn.rms_norm(astype(x, dtype), _row(weight, 1.0, x, dtype), eps)


@function(of="fast")
def layer_norm(x, weight, bias, eps):
    """Rows minus their mean, over their standard deviation, times weight plus bias."""
    _check_rows("layer_norm", x, weight=weight, bias=bias)
    dtype = _together("layer_norm", x, weight, bias if weight is not None else None)
    return nn.layer_norm(astype(x, dtype), _row(weight, 1.0, x, dtype), _row(bias, 0.0, x, dtype), eps)


@functools.lru_cache(64)
def _frequencies(dims, base_, scale):
    """The angle in radians between neighbouring positions for each pair of elements, an array that is made once."""
    return _core.array([scale * base_ ** (-2 * i / dims) for i in range(dims // 2)], _FLOAT32)


def _offset(offset, batch):
    """Positions as data: a number that changes from call to call makes no other plan."""
    if not isinstance(offset, _core.Array):
        return base.reshape(_core.array([int(offset)], _INT32), [])
    if offset.ndim > 1 or offset.size not in (1, batch):
        raise ValueError(f"[rope] offset must be a scalar or vector with {batch} elements but has shape {offset.shape}.")
    if offset.dtype.kind not in "iu":
        raise ValueError(f"[rope] offset must be an integer but got type {offset.dtype.name}.")
    offset = astype(offset, _INT32)
    return base.reshape(offset, []) if offset.size == 1 else offset


@function(of="fast")
def rope(a, dims, *, traditional, base, scale, offset, freqs=None):  # parameters have MLX's names
    """a with pairs of its first `dims` elements turned by angles that grow with the position, along the axis before the
    last."""
    return _turned(a, dims, traditional, base, scale, offset, freqs)


def _turned(x, dims, traditional, root, scale, offset, freqs):
    if x.ndim < 3:
        raise ValueError(f"[rope] Input must have at least 3 dimensions but got input with {x.ndim} dimensions.")
    if x.dtype.kind != "f":
        raise ValueError(f"[rope] Input must be a floating type but got {x.dtype.name}.")
    if dims <= 0 or dims % 2 or dims > x.shape[-1]:
        raise ValueError(f"[rope] dims must be positive, even, and not exceed the input's last dimension ({x.shape[-1]}) but "
                         f"got {dims}.")
    if (freqs is None) == (root is None):
        raise ValueError("[rope] Exactly one of base and freqs must have a value.")
    if freqs is None:
        turns = _frequencies(dims, float(root), float(scale))
    else:
        if freqs.shape != (dims // 2,):
            raise ValueError(f"[rope] freqs must be one dimensional with size {dims // 2} but got shape {freqs.shape}.")
        turns = base.divide(convert(float(scale)), astype(freqs, _FLOAT32))
    offset = _offset(offset, x.shape[0])
    if dims == x.shape[-1]:
        return nn.rope(x, turns, offset, traditional)
    return base.concatenate([nn.rope(x[..., :dims], turns, offset, traditional), x[..., dims:]], -1)


def _check_attention(q, k, v, mask):
    what = "scaled_dot_product_attention"
    for x in (q, k, v):
        if x.ndim != 4:
            raise ValueError(f"[{what}] input with shape {x.shape} expected to be rank 4")
        if x.shape[0] != q.shape[0]:
            raise ValueError(f"[{what}] mismatching batch dimension for input with shape {x.shape}.")
    if isinstance(mask, str) and mask not in ("causal", "array", ""):
        raise ValueError(f"[{what}] Invalid mask_mode {mask}. mask_mode must be 'causal', 'array' or ''.")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"[{what}] query, keys expected to have matching last dimension; found query shape {q.shape} for "
                         f"keys shape {k.shape}.")
    if k.shape[-3] != v.shape[-3] or q.shape[-3] % k.shape[-3]:
        raise ValueError(f"[{what}] n_heads must be a multiple of n_kv_heads, the same of keys and values; found "
                         f"{q.shape[-3]}, {k.shape[-3]}, {v.shape[-3]}.")


def _check_fused(q, k, v):
    """What MLX's fused kernels take."""
    what = "scaled_dot_product_attention"
    if q.shape[-1] not in (64, 80, 96, 128, 256) or v.shape[-1] != q.shape[-1]:
        raise ValueError(f"[{what}] The fused kernel supports head dims 64, 80, 96, 128 and 256, got {q.shape[-1]} and "
                         f"{v.shape[-1]}.")
    if q.shape[-2] > k.shape[-2]:
        raise ValueError(f"[{what}] The fused kernel needs the query sequence to be no longer than the key sequence.")
    if q.shape[-3] // k.shape[-3] > 32:
        raise ValueError(f"[{what}] The fused kernel needs the GQA factor to be at most 32.")


def _mask_of(mask, q, k, dtype):
    """A mask for every query and key; None for none."""
    if isinstance(mask, str):
        if mask != "causal":
            return None
        rows, columns = q.shape[-2], k.shape[-2]
        return base.tril(base.full([rows, columns], 1.0, "bool"), columns - rows)
    if mask is None:
        return None
    mask = as_array(mask)
    if mask.ndim > 4:
        raise ValueError(f"[scaled_dot_product_attention] the mask with shape {mask.shape} expected to have at most rank 4.")
    if promote(mask.dtype, dtype) is not dtype:
        raise ValueError(f"[scaled_dot_product_attention] Mask type must promote to output type {dtype.name}.")
    full = (*q.shape[:-1], k.shape[-2])
    if broadcast_shapes(full, mask.shape) != full:
        raise ValueError(f"[scaled_dot_product_attention] Mask of shape {mask.shape} cannot be broadcast to {full}.")
    return mask if mask.dtype.kind == "b" else astype(mask, dtype)


@function(of="fast", raw=True)
def scaled_dot_product_attention(q, k, v, *, scale, mask=None, sinks=None, force_fused=False, stream=None):
    """Means of values, weighed by the softmax of queries times keys."""
    keys, values = part_of(k), part_of(v)
    if keys and values and keys[1:] == values[1:] and mask is None and sinks is None and stream is None and not force_fused:
        return wrap(_over_parts(unwrapped(q), keys, values, scale))
    return _attention_call(q, k, v, scale=scale, mask=mask, sinks=sinks, force_fused=force_fused, stream=stream)


def _over_parts(q, keys, values, scale):
    """Attention over the first positions of buffers of keys and values; the number of positions is data."""
    k, v = keys[0], values[0]
    _check_attention(q, k, v, None)
    dtype = _together("scaled_dot_product_attention", q, k, v)
    if keys[1] != 2 or scale == 0 or k.dtype is not dtype or v.dtype is not dtype or k.shape[2] != v.shape[2]:
        k, v = (x[(slice(None),) * axis + (slice(0, n),)] for x, axis, n in (keys, values))
        return attention(q, k, v, scale)
    return nn.scaled_dot_product_attention(astype(q, dtype), k, v, None, length_of(keys[2]), float(scale))


def attention(q, k, v, scale, mask=None, sinks=None, force_fused=False):
    """Attention of arrays of tenon."""
    _check_attention(q, k, v, mask)
    if force_fused:
        _check_fused(q, k, v)
    dtype = _together("scaled_dot_product_attention", q, k, v)
    q, k, v = astype(q, dtype), astype(k, dtype), astype(v, dtype)
    is_causal = mask == "causal" if isinstance(mask, str) else False
    is_square = q.shape[-2] == k.shape[-2]
    seen = None if is_causal and is_square else _mask_of(mask, q, k, dtype)
    is_causal = is_causal and is_square
    if scale == 0:  # to the operator 0 means its default
        q, scale = base.multiply(q, convert(0.0, dtype)), 1.0
    if sinks is None:
        return nn.scaled_dot_product_attention(q, k, v, seen, None, float(scale), is_causal)
    if promote(sinks.dtype, dtype) is not dtype:
        raise ValueError(f"[scaled_dot_product_attention] Type of sinks must promote to output type {dtype.name}.")
    if sinks.shape != (q.shape[1],):
        raise ValueError(f"[scaled_dot_product_attention] Received invalid shape for sinks {sinks.shape}.")
    return nn.attention_with_sinks(q, k, v, astype(sinks, dtype), seen, None, float(scale), is_causal)


_attention_call = call_of(attention, "scaled_dot_product_attention")


@function(of="fast")
def cross_entropy(logits, targets):
    """Of logits along the last axis and the numbers of classes: one float32 loss each."""
    if logits.dtype.kind != "f" or targets.dtype.kind not in "iu" or logits.shape[:-1] != targets.shape or logits.ndim == 0:
        raise ValueError(f"[cross_entropy] Invalid logits {logits.dtype.name}{list(logits.shape)} and targets "
                         f"{targets.dtype.name}{list(targets.shape)}: expected floats, and integers for each row.")
    return nn.cross_entropy(astype(logits, _FLOAT32), targets)


# --- kernels in other languages ---------------------------------------------------------------------


def _kernel(what, backend):
    """A function that makes a kernel: without complaint, so that modules which define some can be imported. A call
    raises."""

    def make(name, input_names=(), output_names=(), source="", **options):
        def kernel(**arguments):
            raise RuntimeError(f"[{what}] No {backend} back-end: tenon runs no kernel in {backend}'s language, '{name}' is "
                               "one. tenon.vulkan_kernel takes GLSL.")

        kernel.__name__ = name
        return kernel

    make.__name__, make.__doc__ = what, f"A kernel in {backend}'s language. A call of it raises."
    put(what, make, of="fast")


_kernel("metal_kernel", "Metal")
_kernel("cuda_kernel", "CUDA")
_kernel("precompiled_cuda_kernel", "CUDA")

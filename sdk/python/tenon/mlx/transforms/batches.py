# SPDX-License-Identifier: MIT
"""vmap: a function mapped over a new axis of its arguments."""

from ... import _core
from .. import random
from ..table import array, put, wrap
from ..trees import flatten, unflatten, visit_with
from .nodes import depth, value_of


def _axis(x, axis, is_output):
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if axis is None:
        return -1
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise ValueError("[vmap] axis must be int or None.")
    rank = x.ndim + is_output
    if not -rank <= axis < rank:
        raise ValueError(f"[vmap] Invalid{' output ' if is_output else ' '}vectorization axis {axis} for array with shape "
                         f"{x.shape}")
    return axis % rank


def _axes(tree, axes, is_output=False):
    """The axis of each array of a tree."""
    found = []

    def visit(x, axis):
        if not isinstance(x, array):
            raise ValueError("[vmap] The arguments should contain only arrays")
        if isinstance(axis, tuple) and not isinstance(tree, array):
            raise ValueError("[vmap] axis must be int or None.")
        found.append(_axis(x, axis, is_output))

    visit_with(tree, axes, "vmap", visit)
    return found


def vmap(fun, in_axes=0, out_axes=0):
    """A function mapped over a new axis of its arguments: trees of axes, None for what is the same for all."""

    def wrapper(*args):
        arrays = flatten(args, True)
        positions = _axes(args[0] if len(args) == 1 else args, in_axes)
        sizes = {x.shape[axis] for x, axis in zip(arrays, positions) if axis >= 0}
        if not sizes:
            raise ValueError("[vmap] At least one of in_axes must be non-None.")
        if len(sizes) > 1:
            raise ValueError(f"[vmap] Inconsistent axis sizes: {', '.join(map(str, sorted(sizes)))}.")
        results = []

        def body(slices):
            result = fun(*unflatten(args, map(wrap, slices)))
            outputs = flatten(result, True)
            results.append(result)
            return [value_of(y) for y in outputs], _axes(result, out_axes, True)

        depth.count += 1
        try:
            random.thread_key()
            with random.traced_keys():
                batches = _core.vmap(body, [value_of(x) for x in arrays], positions)
        finally:
            depth.count -= 1
        return unflatten(results[0], map(wrap, batches))

    return wrapper


put("vmap", vmap)

# SPDX-License-Identifier: MIT
"""Shared by the transforms: copies of arguments as nodes of their own, watched arrays, graphs of bodies."""

import threading

from ... import _core
from ..._index import op
from .. import random
from ..table import wrap


def value_of(x):
    return x._x


class _Depth(threading.local):
    """How many transforms run in a thread."""

    count = 0


depth = _Depth()


def is_deriving():
    """Whether derivatives are being taken in this thread."""
    return depth.count > 0


class watching:
    """Context in which all new arrays are watched, so that derivatives go through arrays that are read."""

    def __enter__(self):
        depth.count += 1
        _core.watch(1)

    def __exit__(self, *unused):
        _core.watch(-1)
        depth.count -= 1


def fresh(arrays):
    """Copies of arrays as nodes of their own: a derivative by one is by this argument alone."""
    with watching():
        return [op("copy")(value_of(x)) for x in arrays]


def tracers_of(nodes):
    """New objects of the nodes, so that []= within a function leaves the nodes as they are."""
    return [wrap(_core.alias(node)) for node in nodes]


def unwatch(arrays):
    for x in arrays:
        _core.unwatch(value_of(x))


def has_slope(x):
    return x.dtype.kind in "fc"


def check_slopes(what, nodes):
    for x in nodes:
        if not has_slope(x):
            raise ValueError(f"[{what}] Cannot compute a gradient by an array of {x.dtype.name}: convert it to floats, or leave it out "
                             "(an index, say) by stop_gradient.")


def vjp_of(outputs, cotangents, inputs):
    """The core's vjp of floats and complex numbers; inputs of other dtypes get gradients of zeros."""
    pairs = [(y, g) for y, g in zip(outputs, cotangents) if has_slope(y)]
    positions = [i for i, x in enumerate(inputs) if has_slope(x)]
    found = _core.vjp([y for y, _ in pairs], [op("astype")(g, y.dtype) for y, g in pairs],
                      [inputs[i] for i in positions]) if pairs and positions else [None] * len(positions)
    gradients = [None] * len(inputs)
    for i, g in zip(positions, found):
        gradients[i] = g
    return [op("zeros_like")(x) if g is None else g for x, g in zip(inputs, gradients)]


def traced(what, body, arrays):
    """The graph of body(list of arrays), which gives a list of arrays, and the arrays that it used beside."""

    def inside(values):
        return [value_of(y) for y in body([wrap(x) for x in values])]

    random.thread_key()
    with random.traced_keys():
        return _core.graph_trace(what, inside, [value_of(x) for x in arrays])

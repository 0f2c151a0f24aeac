# SPDX-License-Identifier: MIT
"""eval and async_eval of arrays in trees."""

from ... import _core
from .. import devices
from ..table import put
from ..trees import flatten
from .nodes import depth, value_of


def eval(*args):
    """Computes the arrays of trees."""
    arrays = [value_of(x) for x in flatten(args)]
    if not _core.is_tracing():
        with devices.failing():
            _core.eval(arrays)


def async_eval(*args):
    """Begins to compute the arrays of trees."""
    if depth.count or _core.is_tracing():
        raise ValueError("[async_eval] Not allowed inside a graph transformation.")
    arrays = [value_of(x) for x in flatten(args)]
    _core.async_eval(arrays)
    devices.begun(arrays)


for _each in (eval, async_eval):
    put(_each.__name__, _each)

# SPDX-License-Identifier: MIT
"""Evaluation, derivatives, batches, compiled functions."""

from .. import _core
from .._tree import flatten
from .table import array, put


def eval(*args):
    """Computes the arrays of trees."""
    _core.eval([leaf._x for leaf in flatten(args)[0] if type(leaf) is array])


def async_eval(*args):
    """Begins to compute the arrays of trees."""
    _core.async_eval([leaf._x for leaf in flatten(args)[0] if type(leaf) is array])


for _value in (eval, async_eval):
    put(_value.__name__, _value)

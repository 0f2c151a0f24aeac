# SPDX-License-Identifier: MIT
"""Arrays as text, as MLX writes them: C++'s six digits, three elements at each end of a long axis, and the
dtype behind."""

import math

from .. import _core
from .table import put

_EDGE = 3


class PrintOptions:
    """How arrays are printed: digits behind the point, -1 for six significant ones."""

    def __init__(self, precision=-1):
        self.precision = precision


_options = PrintOptions()


class _PrintOptionsContext:
    def __init__(self, options):
        self.options = options

    def __enter__(self):
        self.before = get_printoptions()
        set_printoptions(self.options.precision)
        return self

    def __exit__(self, *unused):
        set_printoptions(self.before.precision)


def set_printoptions(precision=-1):
    """Sets the digits behind the point of printed arrays; -1: six significant digits."""
    global _options
    _options = PrintOptions(precision)


def get_printoptions():
    """How arrays are printed."""
    return _options


def printoptions(precision=-1):
    """A context in which arrays are printed with so many digits behind the point."""
    return _PrintOptionsContext(PrintOptions(precision))


for _value in (PrintOptions, _PrintOptionsContext, set_printoptions, get_printoptions, printoptions):
    put(_value.__name__, _value)


def _real(value):
    if math.isfinite(value):
        return f"{value:g}" if _options.precision < 0 else f"{value:.{_options.precision}f}"
    return "nan" if value != value else "inf" if value > 0 else "-inf"


def _number(value):
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return _real(value)
    sign = "-" if value.imag < 0 else "+"
    return f"{_real(value.real)}{sign}{_real(abs(value.imag))}j"


def _nested(values, axis, shape, short):
    """Brackets around the elements; `short`: axes of which the middle was left out."""
    is_last = axis == len(shape) - 1
    parts = [_number(v) if is_last else _nested(v, axis + 1, shape, short) for v in values]
    if short[axis]:
        parts.insert(_EDGE, "...")
    return "[" + (", " if is_last else ",\n" + " " * (7 + axis)).join(parts) + "]"


def text(x):
    """array([1, 2], dtype=int32), of an array of tenon."""
    if x.ndim == 0:
        return f"array({_number(x.item())}, dtype={x.dtype.name})"
    if x.size == 0:
        return f"array([], dtype={x.dtype.name})"
    short = [n > 2 * _EDGE for n in x.shape]
    from .._index import get

    for axis, cut in enumerate(short):
        if cut:
            kept = [*range(_EDGE), *range(x.shape[axis] - _EDGE, x.shape[axis])]
            x = get(x, (slice(None),) * axis + (kept,))
    return f"array({_nested(x.tolist(), 0, x.shape, short)}, dtype={x.dtype.name})"

# SPDX-License-Identifier: MIT
"""Registers operators that are drawn and computed in a line: entry() for one that is called by its name,
phrase() for a few statements whose result is well defined where that of an operator alone is not (signs of
eigenvectors, numbers that are only known by their distribution)."""
import numpy as np
from draw import FINITE, NO_DERIVATIVES, SIZED, STRICT, Retry
from operators import OPERATORS
from records import RECORDS, taken
from rules import RULES, Rule

PHRASES = {}  # by name: the operators within, and statements


def entry(names, function, draw, weight=1.0, finite=True, derived=True, **facts):
    """`draw(d)` gives operands and attributes; `function` computes, or is a dict of such by name. `finite`: what
    NaN gives is not told element by element. `derived`: it has derivatives."""
    names = names.split()
    for name in names:
        if function is not None:
            RULES[name] = Rule(function[name] if isinstance(function, dict) else function, **facts)
        STRICT.add(name)
        if name.startswith('random'):  # keys
            SIZED.add(name)
        if finite:
            FINITE.add(name)
        if not derived:
            NO_DERIVATIVES.add(name)

    def one(d):
        name = d.one(names)
        d.name = name
        return (name, *draw(d))
    OPERATORS.append((one, tuple(names), weight * len(names)))


def phrase(name, covers, text, function, draw, **facts):
    PHRASES[name] = covers.split(), text
    entry(name, function, draw, **facts)
    SIZED.add(name)


def covered(names):
    """The operators of nodes with these names."""
    return {c for n in names for c in (PHRASES[n][0] if n in PHRASES else [n])}


# --- what operands are drawn ----------------------------------------------------------------


def unary(kinds='f', fits=lambda x: True, **attrs):
    """One array whose dtype the record takes; attributes are functions of d."""
    def draw(d):
        known = taken(d.name, 0, kinds) if d.name in RECORDS else lambda x: x.dtype.kind in kinds
        i = d.pick(lambda x: known(x) and fits(x))
        found = {k: v(d) if callable(v) else v for k, v in attrs.items()}
        return [i], {k: v for k, v in found.items() if v is not None}
    return draw


def within(low, high):
    return lambda x: x.dtype.itemsize > 2 and bool(np.all((x >= low) & (x <= high)))


def wide_float(x):
    return x.dtype.kind == 'f' and x.dtype.itemsize > 2


def vector(x):
    return x.ndim == 1 and x.size > 0


def filled(values, size, value=0):
    out = np.full((size,) + values.shape[1:], value, values.dtype)
    out[:len(values)] = values[:size]
    return out


def require(condition):
    if not condition:
        raise Retry

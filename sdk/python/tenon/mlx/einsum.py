# SPDX-License-Identifier: MIT
"""einsum, and the order in which it multiplies."""

import functools
import itertools
import math

from .convert import as_array, astype
from .dtypes import promote
from .table import base, function


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
    dtype = functools.reduce(promote, [a.dtype for a in arrays])
    return base.einsum([astype(a, dtype) for a in arrays], equation=subscripts.replace(" ", ""))


def _cost(letters, result, count, sizes):
    """Multiplications and additions of a product of `count` terms with these letters."""
    return math.prod(sizes[c] for c in letters) * (max(count - 1, 1) + (not letters <= result))


def _pairs(terms, result, sizes, positions):
    """For each pair of terms their product as (-elements saved, cost, positions, its letters)."""
    rows = []
    for i, k in positions:
        letters = terms[i] | terms[k]
        rest = result.union(*(term for n, term in enumerate(terms) if n not in (i, k)))
        saved = sum(math.prod(sizes[c] for c in term) for term in (terms[i], terms[k])) - math.prod(sizes[c] for c in letters & rest)
        rows.append((-saved, _cost(letters, letters & rest, 2, sizes), (i, k), letters & rest))
    return rows


def _greedy(terms, result, sizes):
    """opt_einsum's greedy path: multiplies the pair of terms that saves most, again and again, outer products last. Pairs that
    would make the path cost more than one product of all terms are left to one product at its end."""
    path, spent, limit = [], 0, _cost(set().union(*terms), result, len(terms), sizes)
    while len(terms) > 1:
        positions = list(itertools.combinations(range(len(terms)), 2))
        found = _pairs(terms, result, sizes, [(i, k) for i, k in positions if terms[i] & terms[k]]) or _pairs(terms, result, sizes, positions)
        found = [row for row in found if spent + row[1] <= limit]
        if not found:
            break
        _, cost, (i, k), letters = min(found, key=lambda row: row[:2])
        spent += cost
        path.append((i, k))
        terms = [term for n, term in enumerate(terms) if n not in (i, k)] + [letters]
    if len(terms) > 1 or not path:
        path.append(tuple(range(len(terms))))
    return path, limit, spent


@function
def einsum_path(subscripts, *given):
    """In which order einsum() multiplies, and a text about its cost."""
    arrays = [as_array(a) for a in given]
    letters, result = _parsed(subscripts, [a.shape for a in arrays])
    if result is None:
        joined = "".join(letters)
        result = sorted(c for c in set(joined) if joined.count(c) == 1)
    sizes = {letter: n for text, a in zip(letters, arrays) for letter, n in zip(text, a.shape)}
    path, naive, cost = _greedy([set(text) for text in letters], set(result), sizes)
    text = (f"  Complete contraction:  {','.join(letters)}->{''.join(result)}\n  Naive FLOP count:  {naive}\n"
            f"  Optimized FLOP count:  {cost or naive}\n")
    return path, text

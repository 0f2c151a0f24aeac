# SPDX-License-Identifier: MIT
"""Trees: nested dicts, lists, tuples (named ones, too) with arrays and other values as leaves."""

from ._core import flatten, unflatten


def describe(structure):
    """A structure as people read it, * for a leaf: {'w': *, 'b': (*, None)}."""
    if not isinstance(structure, tuple):
        return "*" if structure == "*" else "None"
    kind, keys, parts = structure
    parts = [describe(part) for part in parts]
    if kind is dict:
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(keys, parts)) + "}"
    if kind is list:
        return "[" + ", ".join(parts) + "]"
    return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"


def leaves_under(structure, tree):
    """The leaf of `tree` for each leaf of `structure`; a None in `tree` stands for all leaves below. None: they differ."""
    if tree is None:
        return [None] * count_leaves(structure)
    if not isinstance(structure, tuple):
        return [tree] if structure == "*" and not isinstance(tree, (dict, list, tuple)) else None
    kind, keys, parts = structure
    if not isinstance(tree, kind) or len(tree) != len(parts) or (kind is dict and set(tree) != set(keys)):
        return None
    leaves = []
    for item, part in zip([tree[key] for key in keys] if kind is dict else tree, parts):
        inner = leaves_under(part, item)
        if inner is None:
            return None
        leaves += inner
    return leaves


def count_leaves(structure):
    """The number of leaves of a structure."""
    if not isinstance(structure, tuple):
        return int(structure == "*")
    return sum(map(count_leaves, structure[2]))


def map_tree(function, tree, *rest):
    """A tree of function(leaf, ...) over trees of one structure."""
    leaves, structure = flatten(tree)
    others = []
    for other in rest:
        more, its = flatten(other)
        if its != structure:
            raise ValueError(f"trees of different structure: {describe(structure)} and {describe(its)}")
        others.append(more)
    return unflatten(structure, [function(*row) for row in zip(leaves, *others)])

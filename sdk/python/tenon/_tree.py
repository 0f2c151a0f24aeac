# SPDX-License-Identifier: MIT
"""Trees: nested dicts, lists, tuples (named ones, too) with arrays and other values as leaves."""


def flatten(tree):
    """The leaves of a tree, in order, and what unflatten() makes the tree of again. None is a
    tree without leaves; keys of dicts are sorted."""
    leaves = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree, leaves):
    if tree is None:
        return None
    if isinstance(tree, dict):
        try:
            keys = sorted(tree)
        except TypeError as error:
            raise TypeError(f"the keys of a dict cannot be sorted: {error}") from None
        return (dict, tuple(keys), tuple(_flatten(tree[key], leaves) for key in keys))
    if isinstance(tree, (list, tuple)):
        return (type(tree), None, tuple(_flatten(item, leaves) for item in tree))
    leaves.append(tree)
    return _LEAF


class _Leaf:
    def __repr__(self):
        return "*"


_LEAF = _Leaf()


def unflatten(structure, leaves):
    """The tree of a structure that flatten() gave, with other leaves."""
    leaves = iter(leaves)
    return _unflatten(structure, leaves)


def _unflatten(structure, leaves):
    if structure is None:
        return None
    if structure is _LEAF:
        return next(leaves)
    kind, keys, parts = structure
    items = [_unflatten(part, leaves) for part in parts]
    if kind is dict:
        return dict(zip(keys, items))
    if hasattr(kind, "_fields"):
        return kind(*items)
    return kind(items)


def describe(structure):
    """A structure as people read it, * for a leaf: {'w': *, 'b': (*, None)}."""
    if not isinstance(structure, tuple):
        return "*" if structure is _LEAF else "None"
    kind, keys, parts = structure
    parts = [describe(part) for part in parts]
    if kind is dict:
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(keys, parts)) + "}"
    if kind is list:
        return "[" + ", ".join(parts) + "]"
    return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"


def leaves_under(structure, tree):
    """The leaf of `tree` for each leaf of `structure`, where None stands for any part; None where they differ."""
    if tree is None:
        return [None] * count_leaves(structure)
    if not isinstance(structure, tuple):
        return [tree] if structure is _LEAF and not isinstance(tree, (dict, list, tuple)) else None
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
        return int(structure is _LEAF)
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

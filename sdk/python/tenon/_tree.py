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


def map_tree(function, tree, *rest):
    """A tree of function(leaf, ...) over trees of one structure."""
    leaves, structure = flatten(tree)
    others = []
    for other in rest:
        more, its = flatten(other)
        if its != structure:
            raise ValueError(f"trees of different structure: {structure} and {its}")
        others.append(more)
    return unflatten(structure, [function(*row) for row in zip(leaves, *others)])

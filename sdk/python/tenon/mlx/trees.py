# SPDX-License-Identifier: MIT
"""MLX's trees: lists, tuples and dicts (in their own order) with arrays and other values as leaves. `mx.random.state`
stands for the key of the calling thread."""

from . import random
from .table import array, other_build


def flatten(tree, strict=False, out=None):
    """The arrays of a tree in order. Strict: a leaf that is no array is an error."""
    out = [] if out is None else out
    if isinstance(tree, array):
        out.append(tree)
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            flatten(item, strict, out)
    elif isinstance(tree, dict):
        for item in tree.values():
            flatten(item, strict, out)
    elif tree is random.STATE:
        out.append(random.thread_key())
    elif strict:
        raise ValueError(f"[tree_flatten] The argument should contain only arrays{other_build(tree)}")
    return out


def _sequence(tree, items):
    """A sequence of the type of another one."""
    kind = type(tree)
    if kind is list or kind is tuple:
        return kind(items)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def rebuild(tree, next_array):
    """A tree of the same structure: next_array() in the place of each array."""
    if isinstance(tree, array):
        return next_array()
    if isinstance(tree, list):
        return [rebuild(item, next_array) for item in tree]
    if isinstance(tree, tuple):
        return _sequence(tree, [rebuild(item, next_array) for item in tree])
    if isinstance(tree, dict):
        return {key: rebuild(item, next_array) for key, item in tree.items()}
    return tree


def unflatten(tree, arrays):
    """A tree of the same structure, with these arrays in order."""
    return rebuild(tree, iter(arrays).__next__)


def update(tree, change):
    """Puts change(array) in the place of each array, in the lists and dicts themselves. Gives the tree, which is another
    one where it is a tuple."""
    if isinstance(tree, array):
        return change(tree)
    if isinstance(tree, list):
        for i, item in enumerate(tree):
            tree[i] = update(item, change)
    elif isinstance(tree, tuple):
        return _sequence(tree, [update(item, change) for item in tree])
    elif isinstance(tree, dict):
        for key, item in tree.items():
            tree[key] = update(item, change)
    elif tree is random.STATE:
        random.set_thread_key(change(random.thread_key()))
    return tree


def fill(tree, arrays):
    """Puts arrays in the places of those of a tree, in order."""
    following = iter(arrays).__next__
    return update(tree, lambda old: following())


def copied(tree):
    """A tree with lists and dicts of its own, and the same leaves; the thread's key for mx.random.state."""
    if isinstance(tree, (list, tuple)):
        return [copied(item) for item in tree]
    if isinstance(tree, dict):
        return {key: copied(item) for key, item in tree.items()}
    return random.thread_key() if tree is random.STATE else tree


def restore(tree, before):
    """Puts the arrays of a tree that copied() gave back into the tree, as far as its positions still exist."""
    if tree is random.STATE:
        random.set_thread_key(before)
    elif isinstance(tree, (list, tuple)) and isinstance(before, list):
        for i, (item, old) in enumerate(zip(tree, before)):
            if isinstance(old, array) and isinstance(tree, list) and item is not random.STATE:
                tree[i] = old
            else:
                restore(item, old)
    elif isinstance(tree, dict) and isinstance(before, dict):
        for key, old in before.items():
            if isinstance(old, array) and tree.get(key) is not random.STATE:
                tree[key] = old
            elif key in tree:
                restore(tree[key], old)


def visit_with(tree, other, what, visit):
    """visit(leaf, part) for each leaf of a tree and what stands in its place in another one, of which any part may be one
    value for all leaves there."""
    is_dict, is_sequence = isinstance(tree, dict), isinstance(tree, (list, tuple))
    if not is_dict and not is_sequence:
        visit(tree, other)
        return
    kind = dict if is_dict else list if isinstance(tree, list) else tuple
    if isinstance(other, (dict, list, tuple)) and (not isinstance(other, kind) or len(other) != len(tree)):
        raise ValueError(f"[{what}] Additional input tree is not a valid prefix of the first tree.")
    has_parts = isinstance(other, kind)
    for key, item in tree.items() if is_dict else enumerate(tree):
        if has_parts and is_dict and key not in other:
            raise ValueError(f"[{what}] Tree is not a valid prefix tree of the first tree.")
        visit_with(item, other[key] if has_parts else other, what, visit)

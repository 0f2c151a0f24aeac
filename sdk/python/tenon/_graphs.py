# SPDX-License-Identifier: MIT
"""Files of graphs: traced functions that another process runs, without the code that built them."""

import inspect

from . import _core
from ._core import Array
from ._kernels import arrays_of
from ._transforms import function


def _key(key, what):
    """A key of a dict or the number of an item as part of a name."""
    if isinstance(key, str) and key and "." not in key and not key.isdigit():
        return key
    raise ValueError(f"save_graph: {what} has the key {key!r}, expected a text without '.', which is no number")


def _leaves(tree, name, what, out):
    """Adds (name, leaf) for each leaf of a tree: "params.w", "params.layers.0"."""
    if isinstance(tree, dict):
        for key in sorted(tree, key=lambda k: _key(k, what)):
            _leaves(tree[key], f"{name}.{key}" if name else key, what, out)
    elif isinstance(tree, (list, tuple)):
        for i, item in enumerate(tree):
            _leaves(item, f"{name}.{i}" if name else str(i), what, out)
    elif tree is not None:
        out.append((name, tree))
    return out


def _tree(named):
    """The tree of leaves by dotted name: a tuple where all parts of a level are 0, 1, ..., else a dict."""
    if list(named) == [""]:
        return named[""]
    parts = {}
    for name, leaf in named.items():
        first, _, rest = name.partition(".")
        parts.setdefault(first, {})[rest] = leaf
    items = {key: _tree(part) for key, part in parts.items()}
    if list(items) == [str(i) for i in range(len(items))]:
        return tuple(items.values())
    return items


def _parameters(called, count):
    """Names of the positional arguments of a call."""
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    return names + [f"x{i}" for i in range(len(names), count)]


def _traced(name, called, args, kwargs):
    given = {**dict(zip(_parameters(called, len(args)), args)), **kwargs}
    leaves = [pair for key, arg in given.items() for pair in _leaves(arg, key, f"argument {key}", [])]
    for key, leaf in leaves:
        if not isinstance(leaf, (Array, int, float, complex)) and not hasattr(leaf, "__array__"):
            raise TypeError(f"save_graph: argument {key} is {leaf!r}, expected an array: bind other arguments before, with "
                            "functools.partial")
    outputs = []

    def body(arrays):
        inside = iter(arrays)

        def rebuilt(tree):
            if isinstance(tree, dict):
                parts = {key: rebuilt(tree[key]) for key in sorted(tree)}
                return {key: parts[key] for key in tree}
            if isinstance(tree, (list, tuple)):
                items = [rebuilt(item) for item in tree]
                return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
            return None if tree is None else next(inside)

        result = called(*[rebuilt(arg) for arg in args], **{key: rebuilt(arg) for key, arg in kwargs.items()})
        outputs.extend([("out", result)] if isinstance(result, Array) else _leaves(result, "", "the result", []))
        if isinstance(result, dict) and list(result) == ["out"]:
            raise ValueError("save_graph: the result has the one key 'out', which stands for an array alone: use another")
        return arrays_of(leaf for _, leaf in outputs)

    graph, used = _core.graph_trace("saved graph", body, arrays_of(leaf for _, leaf in leaves))
    return name, graph, [key for key, _ in leaves], [key for key, _ in outputs], used


def save_graph(path, called, /, *args, **kwargs):
    """Writes the graph of called(*args, **kwargs), arrays by name, which load_graph reads in another process and
    `tenon eval @FILE` runs. Arrays of the arguments say dtypes and shapes; what the function uses besides is in the file.
    Arguments are arrays, in dicts, lists and tuples.

    save_graph(path, {"step": (step, args), ...}) writes several under names."""
    if isinstance(called, dict):
        parts = [_traced(name, f, tuple(given), {}) for name, (f, given) in called.items()]
    else:
        name = getattr(called, "__name__", "")
        parts = [_traced(name if name.isidentifier() else "main", called, args, kwargs)]
    _core.save_graph(path, parts)


class SavedGraph:
    """A graph of a file, called as the function was: with the arguments by position or by name. `inputs` and `outputs`
    tell shape and dtype by name. Results are one array, or a dict or tuple of such."""

    def __init__(self, name, graph, inputs, input_types, outputs, output_types, constants):
        self.__name__ = self.name = name
        self.inputs, self.outputs = dict(zip(inputs, input_types)), dict(zip(outputs, output_types))
        self._replayed = function(lambda *arrays: _core.graph_call((graph, constants), list(arrays)))
        self._parameters = list(dict.fromkeys(key.partition(".")[0] for key in inputs))

    def __repr__(self):
        def rows(types):
            return ", ".join(f"{key}: {dtype.name}{list(shape)}" for key, (shape, dtype) in types.items())

        return f"<tenon graph {self.name}({rows(self.inputs)}) -> {rows(self.outputs)}>"

    def __call__(self, *args, **kwargs):
        if len(args) > len(self._parameters):
            raise TypeError(f"{self.name}() takes {len(self._parameters)} arguments, got {len(args)}")
        given = dict(zip(self._parameters, args))
        for key, arg in kwargs.items():
            if key in given:
                raise TypeError(f"{self.name}() got two values for argument '{key}'")
            given[key] = arg
        leaves = dict(pair for key, arg in given.items() for pair in _leaves(arg, key, f"argument {key}", []))
        missing = [key for key in self.inputs if key not in leaves]
        extra = [key for key in leaves if key not in self.inputs]
        if missing or extra:
            raise TypeError(f"{self.name}(): " + "; ".join(
                f"{what} {', '.join(keys)}" for what, keys in [("misses", missing), ("got an unexpected", extra)] if keys))
        arrays = self._converted(leaves)
        named = dict(zip(self.outputs, self._replayed(*arrays)))
        return named["out"] if list(named) == ["out"] else _tree(named)

    def _converted(self, leaves):
        """Arrays in order; numbers take the dtype that the graph has."""
        arrays = []
        for key, (shape, dtype) in self.inputs.items():
            leaf = leaves[key]
            array = leaf if isinstance(leaf, Array) else _core.array(leaf, None if hasattr(leaf, "__array__") else dtype)
            if (array.shape, array.dtype) != (shape, dtype):
                raise ValueError(f"{self.name}(): {key} is {array.dtype.name}{list(array.shape)}, expected "
                                 f"{dtype.name}{list(shape)}, as it was saved")
            arrays.append(array)
        return arrays


def load_graph(path, name=None):
    """The graph that save_graph (or `tenon eval --save`) wrote, as a function of arrays: that of `name`, or the only one;
    a dict of several by name."""
    graphs = {row[0]: SavedGraph(*row) for row in _core.load_graph(path)}
    if name is not None:
        if name not in graphs:
            raise LookupError(f"load_graph: {path} has no graph '{name}', it has {', '.join(graphs)}")
        return graphs[name]
    return next(iter(graphs.values())) if len(graphs) == 1 else graphs

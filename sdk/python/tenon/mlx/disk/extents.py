# SPDX-License-Identifier: MIT
"""Functions of files for all extents. A file has the function's graphs for the extents by which Shapeless finds how numbers follow
from extents; a process that loads them builds the graph of a call from these, as the body is not there."""

from ... import _core
from ..._transforms import function
from ..convert import numbers
from ..table import base, wrap
from ..transforms import traced

try:
    from ..._train import Shapeless
except ImportError:  # without the module in C, a file has the extents that were exported
    Shapeless = None

_FACTORS = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)


def traced_with_constants(body, arrays):
    """As traced(), with Python's numbers in the graph rather than among the arrays that it uses."""
    numbers.are_constants = True
    try:
        return traced("saved graph", body, arrays)
    finally:
        numbers.are_constants = False


def _placeholders(types, shapes):
    return [wrap(base.zeros(list(shape), dtype=dtype)) for (_, dtype), shape in zip(types, shapes)]


def _groups(shapes):
    """Axes that may change, as lists of (input, axis): those of extent 1 and those whose extent another one has. The same axis of
    several inputs, counted from the last, changes with all of these, and then each alone."""
    extents = [extent for shape in shapes for extent in shape]
    groups = {}
    for i, shape in enumerate(shapes):
        for axis, extent in enumerate(shape):
            if extent == 1 or extent > 1 and extents.count(extent) > 1:
                groups.setdefault((extent, len(shape) - axis), []).append((i, axis))
    together = list(groups.values())
    return together + [[each] for group in together if len(group) > 1 for each in group]


def _unlike_extents(trace, shapes):
    """Shapes with as few equal extents, and of 1, as the body takes: equal ones would have to be equal in each call."""
    for group in _groups(shapes):
        used = {extent for shape in shapes for extent in shape}
        extent = next((new for f in _FACTORS if (new := shapes[group[0][0]][group[0][1]] * f) not in used), None)
        changed = [list(shape) for shape in shapes]
        for i, axis in group:
            changed[i][axis] = extent
        try:
            trace(changed)
        except Exception:  # whatever the body raises for extents that it does not take
            continue
        shapes = changed
    return shapes


def graphs_of_extents(body, arrays, exact, used):
    """Pairs (shapes of the inputs, graph) from which the function is built for other extents than those of `exact`, its graph for
    these arrays. `used`: the arrays that it uses beside, as the graphs do. Empty: there are none."""
    if Shapeless is None or not arrays:
        return []
    types = [(x._x.shape, x._x.dtype) for x in arrays]
    size, count = _core.graph_size(exact), _core.graph_outputs(exact)
    addresses = [_core.array_address(x) for x in used]

    def trace(shapes):
        graph, others = traced_with_constants(body, _placeholders(types, shapes))
        if _core.graph_size(graph) != size or [_core.array_address(x) for x in others] != addresses:
            raise ValueError("another graph")
        return graph

    tried = []

    def outputs(leaves):
        tried.append(tuple(x.shape for x in leaves))
        return [y._x for y in body([wrap(x) for x in leaves])]

    first = _unlike_extents(trace, [list(shape) for shape, _ in types])
    numbers.are_constants = True
    try:
        Shapeless(outputs, count, False, True).graph([x._x for x in _placeholders(types, first)])
    finally:
        numbers.are_constants = False
    found = []
    for shapes in dict.fromkeys(tried):
        try:
            found.append((shapes, trace(shapes)))
        except Exception:  # the body takes no such extents
            pass
    return found if found and found[0][0] == tuple(map(tuple, first)) else []


class _OtherExtents(Exception):
    """The graphs do not tell the one for these extents."""


class ExtentsFunction:
    """A function of a file for all extents. `types`: those that were exported, (shape, dtype); `used`: what its graphs use beside."""

    def __init__(self, types, used):
        self._types, self._used = types, used
        self._graphs, self._native, self._replayed = {}, None, {}

    def add(self, types, graph):
        """A graph of the file, with the types of its inputs and of what it uses."""
        self._graphs[tuple(shape for shape, _ in types[:len(self._types)])] = graph

    def _outputs(self, leaves):
        graph = self._graphs.get(tuple(x.shape for x in leaves))
        if graph is None:
            raise _OtherExtents
        return _core.graph_call((graph, self._used), list(leaves))

    def _graph(self, values):
        if self._native is None:
            shapes, graph = next(iter(self._graphs.items()))
            native = Shapeless(self._outputs, _core.graph_outputs(graph), False, True)
            native.graph([x._x for x in _placeholders(self._types, shapes)])
            self._native = native
        return self._native.graph(values)

    def __call__(self, values):
        """The results; None where the function does not take these arrays."""
        if Shapeless is None or not self._graphs or [(x.ndim, x.dtype) for x in values] != [(len(s), d) for s, d in self._types]:
            return None
        shapes = tuple(x.shape for x in values)
        if shapes not in self._replayed:
            try:
                graph = self._graph(values)
            except _OtherExtents:
                return None
            self._replayed[shapes] = function(lambda *inner: _core.graph_call(graph, list(inner)))
        return self._replayed[shapes](*values)

# SPDX-License-Identifier: MIT
"""compile: functions that are traced once for each kind of arguments, and replayed."""

import functools
import os

from ... import _core
from ..._transforms import function
from .. import random
from ..convert import numbers
from ..table import array, other_build, put, wrap
from ..trees import copied, fill, flatten, rebuild, restore, unflatten, update
from .nodes import depth, traced


_compiles = {"enabled": not os.environ.get("MLX_DISABLE_COMPILE")}
_LARGE = 4  # nodes from which a graph whose inputs have values is run as one plan rather than put in place


def disable_compile():
    """Compiled functions are called as they are, from now on."""
    _compiles["enabled"] = False


def enable_compile():
    """Compiled functions are traced and replayed, from now on."""
    _compiles["enabled"] = True


class _Entry:
    """The graph of a compiled function for arguments of one kind."""

    def __init__(self, graph, used, result, count):
        self.graph, self.result, self.count = (graph, used), result, count
        self.is_pure = True  # the body left arrays in no object but its result
        self.is_large = _core.graph_size(graph) >= _LARGE
        self.replayed = function(lambda *values: _core.graph_call(self.graph, list(values)))

    def outputs(self, values):
        """The outputs: of one run where all inputs have values and the graph is large, else as nodes."""
        if self.is_large and not depth.count and not _core.is_tracing() and _core.have_values(values):
            return self.replayed(*values)
        return _core.graph_call(self.graph, values)


class _OtherResult(Exception):
    """The result has another structure than that of the first call."""


class _Extents:
    """A body that is built for other extents without being called (tenon.function's shapeless)."""

    def __init__(self, fun, args, kwargs, first, values):
        from ..._train import Shapeless

        place = wrap(_core.array(0))
        # Trees with placeholders, so that the arrays of the first call are not kept alive.
        self._args, self._kwargs, self._result = (rebuild(tree, lambda: place) for tree in (args, kwargs, first.result))
        self._fun, self._count = fun, first.count
        self._native = Shapeless(self._outputs, first.count, False)
        self.entry(values)

    def _outputs(self, leaves):
        following = iter([wrap(x) for x in leaves]).__next__
        outputs = flatten(self._fun(*rebuild(self._args, following), **rebuild(self._kwargs, following)))
        if len(outputs) != self._count:
            raise _OtherResult
        return [x._x for x in outputs]

    def entry(self, values):
        """The entry for arguments of these extents. _OtherResult where the result is another tree."""
        random.thread_key()
        numbers.are_constants = True
        try:
            with random.traced_keys():
                graph = self._native.graph(values)
        finally:
            numbers.are_constants = False
        return _Entry(*graph, self._result, self._count)


class _Compiled:
    """A function that is called once for each kind of arguments, and whose graph is used from then on."""

    def __init__(self, fun, inputs, outputs, shapeless):
        functools.update_wrapper(self, fun)
        self._fun, self._inputs, self._outputs = fun, inputs, outputs
        self._entries = {}
        self._extents = {} if shapeless and inputs is None and outputs is None else None
        self._short = {}  # entries of calls whose arguments and result are all arrays, by _key_of_arrays()
        self._is_pure = inputs is None and outputs is None

    def __call__(self, *args, **kwargs):
        if not _compiles["enabled"]:
            return self._fun(*args, **kwargs)
        key = _key_of_arrays(args) if self._is_pure and not kwargs else None
        entry = self._short.get(key)
        if entry is not None:
            return wrap(entry.outputs([x._x for x in args])[0])
        result, entry = self._called(args, kwargs)
        if key is not None and entry is not None and type(entry.result) is array:
            self._short[key] = entry
        return result

    def _called(self, args, kwargs):
        """The result of a call, and its entry; None where the function is called as it is."""
        key, arrays = [_core.current_device()], []
        _signature(args, key, arrays)
        _signature(kwargs, key, arrays)
        if self._inputs is not None:
            captured = flatten(self._inputs)
            arrays += captured
            key.append(len(captured))
        values = [x._x for x in arrays]
        key += [(x.dtype, x.shape) for x in values]
        key = tuple(key)
        entry = self._entries.get(key)
        if entry is None:
            if depth.count or _core.is_tracing():  # arrays that the body uses would end with the surrounding trace
                return self._fun(*args, **kwargs), None
            entry = self._entries[key] = self._entry_of(args, kwargs, arrays, key[:-len(arrays)] if arrays else key)
        outputs = [wrap(x) for x in entry.outputs(values)]
        if self._outputs is not None:
            fill(self._outputs, outputs[entry.count:])
        return unflatten(entry.result, outputs), entry

    def _entry_of(self, args, kwargs, arrays, kind):
        """The entry for a call. Of a shapeless function, the body is called once for each kind and ranks of arrays."""
        values = [x._x for x in arrays]
        if self._extents is not None and arrays:
            kind = (kind, *((x.dtype, x.ndim) for x in values))
            known = self._extents.get(kind)
            if known is not None:
                try:
                    return known.entry(values)
                except _OtherResult:
                    pass
        entry = self._traced(args, kwargs, arrays)
        if self._extents is not None and arrays and entry.is_pure:
            try:
                self._extents[kind] = _Extents(self._fun, args, kwargs, entry, values)
            except (ImportError, _OtherResult):  # without the module in C, or the body changes: each shape is traced
                pass
        return entry

    def _traced(self, args, kwargs, arrays):
        """Traces the body for a call. Arrays that it adds to `inputs` become outputs, which _leave() gives values."""
        results, left, kept = [], [], []

        def body(inner):
            count = len(arrays) if self._inputs is None else len(arrays) - len(flatten(self._inputs))
            following = iter(inner[:count]).__next__
            before = None if self._inputs is None else copied(self._inputs)
            if self._inputs is not None:
                fill(self._inputs, inner[count:])
            try:
                result = self._fun(*rebuild(args, following), **rebuild(kwargs, following))
                outputs = flatten(result)
                results.extend((result, len(outputs)))
                outputs += [] if self._outputs is None else flatten(self._outputs)
            finally:
                if self._inputs is not None:  # the body's arrays end with the trace; the call puts its outputs there
                    restore(self._inputs, before)
            if self._inputs is not None and self._outputs is None:
                known = {id(x) for x in flatten(before)}
                left.extend(x for x in flatten(self._inputs) if id(x) not in known)
            known = {id(x._x) for x in (*inner, *outputs, *left)}
            kept.extend(x for x in _core.arrays_of_body() if id(x) not in known)
            return outputs + left + [wrap(x) for x in kept]

        graph = traced("function", body, arrays)
        entry = _Entry(*_without(graph, kept, arrays) if kept else graph, *results)
        entry.is_pure = not left and not kept
        if left:
            self._leave(entry, left, arrays)
        return entry

    def _leave(self, entry, left, arrays):
        """Replaces the body's arrays in `inputs` by their values of this call."""
        outputs = _core.graph_call(entry.graph, [x._x for x in arrays])
        made = {id(x): wrap(y) for x, y in zip(left, outputs[-len(left):])}
        update(self._inputs, lambda x: made.get(id(x), x))


def _without(graph, kept, arrays):
    """The graph without its last outputs, `kept`: live arrays that the body made and stored neither in its result nor in a declared
    tree, such as the step count of an optimiser that is not in `outputs`. These get their values of this call."""
    values = [x._x for x in arrays]
    outputs = _core.graph_call(graph, values)
    count = len(outputs) - len(kept)
    for x, value in zip(kept, outputs[count:]):
        x._replace(value)
    return _core.graph_trace("function", lambda inner: _core.graph_call(graph, list(inner))[:count], values)


def _key_of_arrays(args):
    """The device, and dtypes and shapes of arguments; None where one is no array."""
    key = [_core.current_device()]
    for x in args:
        if type(x) is not array:
            return None
        x = x._x
        key += x.dtype, x.shape
    return tuple(key)


def _signature(tree, key, arrays):
    """Adds the structure and the other leaves of a tree to `key`, and its arrays to `arrays`."""
    kind = type(tree)
    if kind is array:
        key.append(array)
        arrays.append(tree)
    elif isinstance(tree, (list, tuple)):
        key.append((list, len(tree)))
        for item in tree:
            _signature(item, key, arrays)
    elif isinstance(tree, dict):
        key.append((dict, *tree))
        for item in tree.values():
            _signature(item, key, arrays)
    elif tree is None or isinstance(tree, (int, float, str)):
        key.append((kind, tree))
    else:
        raise ValueError("[compile] Function arguments must be trees of arrays or constants (floats, ints, strings, or None), "
                         f"but received type {kind.__name__}{other_build(tree)}.")


def compile(fun, inputs=None, outputs=None, shapeless=False):
    """A function that is traced once for each kind of arguments. What it reads and changes beside them are trees of arrays,
    `inputs` and `outputs`. With `shapeless` other extents are no other kind, but for those that the body reads as numbers."""
    return _Compiled(fun, inputs, outputs, shapeless)


for _each in (compile, disable_compile, enable_compile):
    put(_each.__name__, _each)

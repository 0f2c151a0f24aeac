# SPDX-License-Identifier: MIT
"""Functions as files, and pictures of graphs. A file holds a graph of tenon for each kind of arguments that the function
was exported with, in the format of tenon.save_graph."""

import io
import os

from ... import _core
from ..._transforms import function
from ..table import array, put, wrap
from ..transforms import traced
from ..trees import flatten
from .extents import ExtentsFunction, graphs_of_extents, traced_with_constants

_POSITIONAL, _NAMED, _METADATA = "p", "k_", "metadata_"
_USED, _OF_EXTENTS = "used", "_extents"


def _arguments(what, args, kwargs):
    """Arrays by position and by name, from f(x, y=y), f([x]), f((x,), {"y": y}) or f({"y": y})."""
    if not kwargs and len(args) == 2 and isinstance(args[0], (list, tuple)) and isinstance(args[1], dict):
        args, kwargs = args
    elif not kwargs and len(args) == 1 and isinstance(args[0], dict):
        args, kwargs = (), args[0]
    elif len(args) == 1 and isinstance(args[0], (list, tuple)):
        args, = args
    for x in (*args, *kwargs.values()):
        if not isinstance(x, array):
            raise ValueError(f"[{what}] Inputs can either be a variable number of positional and keyword arrays or a tuple and "
                             f"dictionary of arrays, got {type(x).__name__}.")
    return tuple(args), dict(kwargs)


def _results(result):
    """The arrays of a result: one, or a list or tuple of such."""
    outputs = [result] if isinstance(result, array) else list(result) if isinstance(result, (list, tuple)) else [None]
    if not all(isinstance(x, array) for x in outputs):
        raise ValueError("[export_function] Outputs can be either a single array, or a tuple or list of arrays.")
    return outputs


class FunctionExporter:
    """Writes a function for each kind of arguments that it is called with, when it is closed."""

    def __init__(self, file, fun, shapeless, metadata):
        self._file, self._fun, self._metadata, self._parts = os.fspath(file), fun, metadata, []
        self._is_shapeless, self._count = shapeless, 0

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __call__(self, *args, **kwargs):
        """Exports the function for these arguments."""
        if self._parts is None:
            raise RuntimeError("[export_function] Attempting to write after exporting is closed.")
        args, kwargs = _arguments("export_function", args, kwargs)

        def body(inner):
            return _results(self._fun(*inner[:len(args)], **dict(zip(kwargs, inner[len(args):]))))

        arrays = [*args, *kwargs.values()]
        graph, used = traced_with_constants(body, arrays) if self._is_shapeless else traced("saved graph", body, arrays)
        names = [f"{_POSITIONAL}{i}" for i in range(len(args))] + [f"{_NAMED}{key}" for key in kwargs]
        outputs = [f"y{i}" for i in range(_core.graph_outputs(graph))]
        name = f"f{self._count}"
        self._parts.append((name, graph, names, outputs, used))
        self._count += 1
        if self._is_shapeless:  # these have no arrays of their own: the first one's are given to them
            names = names + [f"{_USED}{i}" for i in range(len(used))]
            for i, (_, other) in enumerate(graphs_of_extents(body, arrays, graph, used)):
                self._parts.append((f"{name}{_OF_EXTENTS}{i}", other, names, outputs, []))

    def close(self):
        """Writes the file."""
        if self._parts:
            parts, self._parts = self._parts, None
            if self._metadata is not None:
                encoded = self._metadata.encode().hex()
                name, *rest = parts[0]
                parts[0] = (f"{name}.{_METADATA}{encoded}", *rest)
            _core.save_graph(self._file, parts)
        self._parts = None


def exporter(file, fun, *, shapeless=False, metadata=None):
    """A context in which a function is exported for each kind of arguments that the context is called with."""
    if metadata is not None and not isinstance(metadata, str):
        raise TypeError(f"exporter(): metadata is {metadata!r}, expected a text")
    return FunctionExporter(file, fun, shapeless, metadata)


def export_function(file_or_callback, fun, *args, shapeless=False, metadata=None, **kwargs):
    """Writes a function for arguments of one kind."""
    if callable(file_or_callback):
        if metadata is not None:
            raise ValueError("[export_function] metadata is only supported with a file")
        raise NotImplementedError("[export_function] tenon's graphs have other operations than MLX's, so there is nothing to "
                                  "tell a callback; give a file")
    with exporter(file_or_callback, fun, shapeless=shapeless, metadata=metadata) as export:
        export(*args, **kwargs)


class ImportedFunction:
    """A function of a file."""

    def __init__(self, rows):
        self._rows, by_name = {}, {}
        for name, graph, inputs, types, _, _, constants in rows:
            name, _, number = name.partition(".")[0].partition(_OF_EXTENTS)
            if number:
                by_name[name].add(types, graph)
                continue
            named = dict(zip(inputs, types))
            replayed = function(lambda *values, graph=graph, constants=constants: _core.graph_call((graph, constants), list(values)))
            others = by_name[name] = ExtentsFunction(types, constants)
            self._rows.setdefault(frozenset(named), []).append((inputs, named, replayed, others))

    def __call__(self, *args, **kwargs):
        args, kwargs = _arguments("import_function::call", args, kwargs)
        given = {f"{_POSITIONAL}{i}": x._x for i, x in enumerate(args)} | {f"{_NAMED}{key}": x._x for key, x in kwargs.items()}
        known = self._rows.get(frozenset(given), ())
        for inputs, types, replayed, _ in known:
            if all((x.shape, x.dtype) == types[key] for key, x in given.items()):
                return [wrap(y) for y in replayed(*[given[key] for key in inputs])]
        for inputs, _, _, others in known:
            outputs = others([given[key] for key in inputs])
            if outputs is not None:
                return [wrap(y) for y in outputs]
        got = ", ".join(f"{key}: {x.dtype.name}{list(x.shape)}" for key, x in given.items())
        raise ValueError(f"[import_function::call] No imported function found which matches the given positional and keyword "
                         f"arguments: {got or 'none'}.")


def import_function(file, return_metadata=False):
    """The function of a file; with the text that it was exported with, where that is asked for."""
    rows = _core.load_graph(os.fspath(file))
    metadata = [name.partition(f".{_METADATA}")[2] for name, *_ in rows]
    imported = ImportedFunction(rows)
    return (imported, bytes.fromhex("".join(metadata)).decode()) if return_metadata else imported


def export_to_dot(file, *args, **kwargs):
    """Writes the graph of arrays in the language of Graphviz, to a path or an object that is written to."""
    text = _core.explain([x._x for x in flatten([args, kwargs])], True)
    if isinstance(file, (str, os.PathLike)):
        with io.open(file, "w") as opened:
            opened.write(text)
    else:
        file.write(text)


for _each in (exporter, FunctionExporter, export_function, import_function, export_to_dot):
    put(_each.__name__, _each)

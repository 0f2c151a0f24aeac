# SPDX-License-Identifier: MIT
"""Primitives of one's own, while the process runs: ids, expressions, and what kernels share."""

import functools
import inspect
import linecache
import os
import re
import sys

from . import _core
from ._core import Array
from ._custom import custom_function

_ID = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.([A-Za-z_]\w*)(?:/([1-9]\d{0,3}))?\Z", re.A)
_WORD = re.compile(r"[A-Za-z_]\w*\Z", re.A)
_revisions = {}


class KernelError(ValueError):
    """A kernel that does not compile. `file`, `line` and `column` say where: of the text that was given, or of the
    Python file that it stands in."""

    def __init__(self, message, file="", line=0, column=0):
        super().__init__(message)
        self.file, self.line, self.column = file, line, column


def new_id(what, name):
    """The id for a primitive that is defined now: of PACK.NAME the next revision that is free."""
    match = _ID.match(name) if isinstance(name, str) else None
    if not match:
        raise ValueError(f"{what}: the name is {name!r}, expected PACK.NAME, such as 'acme.scale'")
    stem = f"{match[1]}.{match[2]}"
    if match[3]:
        return f"{stem}/{match[3]}"
    if stem not in _revisions:
        known = [int(text.rpartition("/")[2]) for text in _core.operators() if text.rpartition("/")[0] == stem]
        _revisions[stem] = max(known, default=0)
    _revisions[stem] += 1
    return f"{stem}/{_revisions[stem]}"


def names_of(what, role, names, least=0):
    """A tuple of names of inputs or outputs."""
    names = tuple(names.replace(",", " ").split()) if isinstance(names, str) else tuple(names)
    for name in names:
        if not isinstance(name, str) or not _WORD.match(name):
            raise ValueError(f"{what}: {role} has {name!r}, expected a name of letters, digits and _")
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: {role} names one twice: {', '.join(names)}")
    if len(names) < least:
        raise ValueError(f"{what}: {role} is empty")
    return names


def arrays_of(values):
    return [x if isinstance(x, Array) else _core.array(x) for x in values]


def with_rules(name, vjp, jvp, vmap):
    """A function (f, arrays) that gives f(*arrays), with these rules where one is given."""
    if vjp is None and jvp is None and vmap is None:
        return lambda function, arrays: function(*arrays)
    custom = custom_function(None, name)
    for rule, given in [("vjp", vjp), ("jvp", jvp), ("vmap", vmap)]:
        if given is not None:
            custom._rule(rule, given)
    return custom._apply


# --- where a text stands ------------------------------------------------------------------------------


class Text:
    """A text of a kernel's author: where it stands, to show errors there."""

    def __init__(self, text, name):
        self.text, self.file, self.first = text, name, 1
        frame = sys._getframe(1)
        package = os.path.dirname(__file__)
        while frame and os.path.dirname(frame.f_code.co_filename) == package:
            frame = frame.f_back
        where = "".join(linecache.getlines(frame.f_code.co_filename)) if frame and "\n" in text else ""
        before, found, _ = where.partition(text) if where else ("", "", "")
        if found:
            self.file, self.first = os.path.basename(frame.f_code.co_filename), before.count("\n") + 1

    def error(self, message, line, column):
        """The exception for a position in the text, with its line and a caret."""
        position, shown = self.file, ""
        lines = self.text.split("\n")
        if 1 <= line <= len(lines):
            position += f":{self.first + line - 1}" + (f":{column}" if column else "")
            row = lines[line - 1]
            shown = f"\n{row}"
            if column:
                shown += "\n" + re.sub(r"[^\t]", " ", row[: column - 1]).ljust(column - 1) + "^"
        return KernelError(f"{position}: error: {message}{shown}", self.file, self.first + line - 1, column)


# --- expressions --------------------------------------------------------------------------------------

# Words of the language of expressions (docs/expressions.md) that are no inputs.
_RESERVED = frozenset("true false inf nan index axis".split())
_TOKEN = re.compile(r"\s*(?:(0[xX][0-9a-fA-F]+|\d*\.?\d+(?:[eE][+-]?\d+)?j?|\d+\.)|([A-Za-z_]\w*)|(.))", re.A | re.S)


def _read(text):
    """The names that an expression uses and does not define, in order, and its number of outputs."""
    tokens = [(m[2], m[3]) for m in _TOKEN.finditer(text)]
    used, defined, depth, outputs = [], set(), 0, 1
    for i, (word, sign) in enumerate(tokens):
        following = tokens[i + 1][1] if i + 1 < len(tokens) else None
        after = tokens[i + 2][1] if i + 2 < len(tokens) else None
        if word and following == "=" and after != "=":
            defined.add(word)
        elif word and following != "(" and word not in defined and word not in used:
            used.append(word)
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0 and sign == ";":
            outputs = 1
        outputs += depth == 0 and sign == ","
    return used, outputs


class Expression:
    """A primitive that an expression means: differentiable, mapped over batches, fused with its neighbours, on every
    backend. Attributes are numbers; as an array an attribute is one more input, and has derivatives."""

    def __init__(self, name, text, attributes):
        what = f"expr {name}"
        self.text, self.attributes, self.name = text, dict(attributes), name
        for key, value in self.attributes.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{what}: attribute {key} is {value!r}, expected a number, its default")
        given, arrow, body = text.partition("->")
        used, count = _read(body if arrow else text)
        self._body = (body if arrow else text).strip()
        if arrow:
            self.inputs = names_of(what, "the list before ->", given)
        else:
            constants = {"pi", "e"} - set(self.attributes)
            self.inputs = tuple(w for w in used if w not in self.attributes and w not in _RESERVED | constants)
        if set(self.inputs) & set(self.attributes):
            raise ValueError(f"{what}: {', '.join(set(self.inputs) & set(self.attributes))} is an input and an attribute")
        self._outputs = ["out"] if count == 1 else [f"out{i}" for i in range(count)]
        self._variants = {}
        self.id = self._variant(())[0]
        keyword = inspect.Parameter.KEYWORD_ONLY
        self.__name__ = name.rpartition(".")[2]
        self.__doc__ = f"{text}\n\n{Expression.__doc__}"
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(x, inspect.Parameter.POSITIONAL_OR_KEYWORD) for x in self.inputs]
            + [inspect.Parameter(key, keyword, default=value) for key, value in self.attributes.items()])

    def __repr__(self):
        return f"<tenon expression {self.id}: {self.text}>"

    def _variant(self, arrays):
        """Id and operator for which these attributes are inputs."""
        if arrays not in self._variants:
            text = new_id("expr", self.name)
            numbers = {key: value for key, value in self.attributes.items() if key not in arrays}
            _core.define_expression(text, f"{self.text}.", self._body, [*self.inputs, *arrays], self._outputs, numbers)
            self._variants[arrays] = text, _core.operator(text)
        return self._variants[arrays]

    def __call__(self, *args, **kwargs):
        arrays = tuple(key for key in self.attributes if isinstance(kwargs.get(key), Array))
        return self._variant(arrays)[1](*args, **kwargs)


def expr(text, /, *arrays, **attributes):
    """Two uses. expr("x, y -> alpha * x + y", x, y, alpha=2.0) applies an expression (docs/expressions.md) to arrays.

    expr("acme.axpby", "alpha * x + beta * y", alpha=1, beta=1) defines a primitive, and gives the function that applies
    it: inputs are the names that are no attributes, in the order in which they are used ("x, y -> ..." says another);
    attributes have these defaults. The name is its pack's and its own; a definition by the same name is the next
    revision."""
    if len(arrays) == 1 and isinstance(arrays[0], str):
        return Expression(text, arrays[0], attributes)
    return _core.expr(text, arrays, attributes)


# --- other devices ------------------------------------------------------------------------------------


class Reference:
    """What a kernel computes, as a function of Python, for devices that cannot run the kernel."""

    def __init__(self, what, function):
        self.what, self.function, self.graphs = what, function, {}

    def graph(self, arrays, types):
        """The traced function for arrays of such types; `types` are shape and dtype of each output."""
        key = tuple((x.shape, x.dtype.name) for x in arrays), tuple(types)
        if key not in self.graphs:
            self.graphs[key] = self._trace(arrays, types)
        return self.graphs[key]

    def _trace(self, arrays, types):
        def body(inside):
            result = self.function(*inside)
            outputs = arrays_of(result if isinstance(result, (list, tuple)) else [result])
            got = [(y.shape, y.dtype.name) for y in outputs]
            if got != list(types):
                raise ValueError(f"{self.what}: reference gives {_types(got)}, expected what is declared, {_types(types)}")
            return outputs

        graph, used = _core.graph_trace("kernel", body, arrays)
        if used:
            raise ValueError(f"{self.what}: reference uses {len(used)} arrays that are no arguments")
        return graph


def _types(types):
    return ", ".join(f"{name}{list(shape)}" for shape, name in types)


@functools.lru_cache(maxsize=None)
def selected_devices():
    """The names of the devices that TENON_BACKEND selects, in its order."""
    rows = sorted((d for d in _core.devices() if d["selected"]), key=lambda d: d["selected"])
    return tuple(f"{d['backend']}:{d['index']}" for d in rows)

# SPDX-License-Identifier: MIT
"""Functions of operators, with signatures and documents from what stands beside manifests
(ops.json). No plugin is loaded for it: a function finds its plugin when it is called."""

import functools
import json

from . import _core
from ._core import PluginError

_NOT_GIVEN = -(2**63)  # the default of integer attributes that means "not given"
_found = {}  # by plugin: the records of its operators by id


def _records(plugin):
    """What a plugin's operators take."""
    name, text = plugin["id"], _core.plugin_file(plugin["id"], "ops.json")
    if text is None:
        text = _core.describe_plugin(plugin["file"])
    try:
        return {record["id"]: record for record in json.loads(text)["operators"]}
    except (KeyError, TypeError, ValueError) as error:
        raise PluginError(f"plugin {name}: its ops.json does not describe operators: {error!r}") from error


@functools.cache
def _owners():
    """The plugin of each operator. What a runtime has found stays as it is."""
    usable = [plugin for plugin in _core.plugins() if plugin["state"] in ("found", "loaded")]
    return {text: plugin for plugin in reversed(usable) for text in plugin["operators"]}


def record(text):
    """What the operator with an id takes, as ops.json has it."""
    plugin = _owners().get(text)
    if plugin is None:
        raise LookupError(f"operator '{text}': no installed plugin brings it")
    name = plugin["id"]
    if name not in _found:
        _found[name] = _records(plugin)
    if text not in _found[name]:
        raise PluginError(f"plugin {name}: its plugin.json lists the operator '{text}', its ops.json does not")
    return _found[name][text]


def _has(entry, flag):
    return flag in entry.get("flags", "").split()


def _default(field):
    """The default of an attribute as a literal of Python; None where the core has none to tell."""
    kind, value = field["kind"], field.get("default")
    if value is None or (kind == "int" and value == _NOT_GIVEN):
        return "None"
    if kind == "float":
        number = float(value)
        return "None" if number != number else repr(number).replace("inf", "1e999")
    if kind == "bits":
        return str(int(value, 16))
    return repr(value)


def parameters(entry):
    """The parameters of an operator in order: (name, default or None, whether by name alone)."""
    rows, has_default, by_name = [], False, False
    for given in entry["inputs"]:
        default = "None" if _has(given, "optional") else None
        has_default = has_default or default is not None
        rows.append((given["name"], default, False))
    for field in entry["attributes"]:
        default = None if _has(field, "required") else _default(field)
        by_name = by_name or (default is None and has_default)
        has_default = has_default or default is not None
        rows.append((field["name"], default, by_name))
    return rows


def signature(entry):
    """"softmax(x, axis=-1)", as inspect.signature reads it."""
    parts, by_name = [], False
    for name, default, is_named in parameters(entry):
        if not name.isidentifier():
            raise PluginError(f"operator '{entry['id']}': '{name}' is no parameter's name")
        if is_named and not by_name:
            parts.append("*")
        by_name = is_named
        parts.append(name if default is None else f"{name}={default}")
    return f"{short_name(entry['id'])}({', '.join(parts)})"


def short_name(text):
    """"softmax" of "nn.softmax/1"."""
    return text.partition(".")[2].partition("/")[0]


def document(entry):
    """What help() tells: what the operator does, then its parameters."""
    rows = [entry.get("doc", "")]
    if entry["inputs"] or entry["attributes"]:
        rows.append("")
    for given in entry["inputs"]:
        rows.append(f"{given['name']}: {given['doc']}{' (a list of arrays)' if _has(given, 'variadic') else ''}")
    for field in entry["attributes"]:
        words = ", ".join(map(repr, field.get("choices", [])))
        rows.append(f"{field['name']}: {field['doc']}{'; one of ' if words else ''}{words}")
    return "\n".join(rows) + "\n"


def make(text):
    """The function of an operator."""
    entry = record(text)
    try:
        shown = f"{signature(entry)}\n--\n\n{document(entry)}"
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PluginError(f"operator '{text}': its ops.json does not describe it: {error!r}") from error
    return _core.operator(text, shown)

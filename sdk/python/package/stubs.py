# SPDX-License-Identifier: MIT
"""stubs.py PACKAGE TENON: writes stubs (.pyi) for type checkers into the folder of the package: a file for each of Tenon's
packs, by `tenon header --python`, and _all.pyi, the names of the namespace `tenon` that are made while it runs.

Run by an interpreter that can import that package.
"""

import importlib
import inspect
import pathlib
import re
import subprocess
import sys

OURS = "org.tenon."


def stub_of(command, plugin, replaced):
    """The stub of a plugin; `replaced`: functions of the package that stand in the place of the pack's operators."""
    text = subprocess.run([command, "header", plugin, "--python"], check=True, capture_output=True, text=True).stdout
    for name in replaced:
        text = re.sub(rf'^def {name}\(.*\n    """.*"""\n\n?', "", text, flags=re.MULTILINE)
    rows = [f"\ndef {name}{bare(function)} -> Any: ...\n" for name, function in sorted(replaced.items())]
    return text + "".join(rows)


def bare(function):
    """A signature whose defaults are literals."""
    signature = inspect.signature(function)
    kept = [p.replace(default=p.default if isinstance(p.default, (bool, int, float, str, type(None), type(p.empty))) else None,
                      annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=kept, return_annotation=inspect.Signature.empty))


def namespace(tenon, operators, defined):
    """The stub of the names of `tenon` that its __init__.py does not define. `operators`: names by pack."""
    from tenon import _standard  # pylint: disable=import-outside-toplevel

    rows = ["# SPDX-License-Identifier: MIT", "# Made by stubs.py: do not edit."]
    rows += [f"from . import {pack} as {pack}" for pack in operators]
    rows += ["from ._dtypes import dtype as _dtype"]
    rows += [f"{name}: _dtype" for name in tenon._dtypes]
    rows += [f"from ._standard import {name} as {name}" for name in _standard.NAMES]
    rows += [f"from .{module} import {name} as {name}" for name, module in tenon._LATER.items()]
    seen = {*tenon._dtypes, *tenon._LATER, *_standard.NAMES, *defined, *operators}
    alias = {name: old for name, old in tenon._ALIASES.items()}
    for pack in [p for p in tenon._PACKS if p in operators] + [p for p in operators if p not in tenon._PACKS]:
        for name in sorted({*operators[pack], *(new for new, old in alias.items() if old in operators[pack])} - seen):
            rows.append(f"from .{pack} import {alias.get(name, name) if name not in operators[pack] else name} as {name}")
            seen.add(name)
    return "\n".join([*rows, ""])


def beside(tenon, pack):
    """Lines for the names that a Python package has beside a pack's operators; classes that are made at run time get a
    stub of their name alone."""
    module = importlib.import_module(tenon._BESIDE[f"tenon.{pack}"])
    rows = []
    for name in module.__all__:
        value = getattr(module, name)
        home = "" if inspect.ismodule(value) else getattr(value, "__module__", "")
        home = home if home in ("", *sys.modules) else "tenon._core"  # a class in C says where it is imported from
        file = pathlib.Path(sys.modules[home].__file__) if home.startswith("tenon.") else None
        written = (file if file.suffix == ".py" else file.with_name("_core.pyi")).read_text() if file else ""
        is_written = inspect.ismodule(value) or re.search(rf"^(class|def) {name}\b", written, re.MULTILINE)
        source = "." + home.removeprefix("tenon.") if home else f"._{pack}"
        rows.append(f"from {source} import {name} as {name}\n" if is_written else f"{name}: Any\n")
    return "\n" + "".join(rows)


def main():
    package, command = pathlib.Path(sys.argv[1]), sys.argv[2]
    import tenon  # pylint: disable=import-outside-toplevel
    from tenon import _core, _standard  # pylint: disable=import-outside-toplevel

    if pathlib.Path(tenon.__file__).parent.resolve() != package.resolve():
        sys.exit(f"stubs.py: imported {tenon.__file__}, expected a package in {package}")
    defined = set(vars(tenon)) - set(_standard.NAMES)
    operators = {}
    for plugin in _core.plugins():
        if plugin["id"].startswith(OURS) and plugin["operators"] and plugin["state"] in ("found", "loaded"):
            pack = plugin["operators"][0].partition(".")[0]
            replaced = _standard.PACKS[pack]() if pack in _standard.PACKS else {}
            text = stub_of(command, plugin["id"], replaced)
            more = beside(tenon, pack) if f"tenon.{pack}" in tenon._BESIDE else ""
            (package / f"{pack}.pyi").write_text(text + more)
            operators[pack] = set(re.findall(r"^def (\w+)\(", text, re.MULTILINE))
    (package / "_all.pyi").write_text(namespace(tenon, operators, defined))


if __name__ == "__main__":
    main()

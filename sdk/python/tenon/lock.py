# SPDX-License-Identifier: MIT
"""python -m tenon.lock: writes which plugins are used, with hashes, and checks that they still are.

    python -m tenon.lock              writes tenon.lock (or -o FILE)
    python -m tenon.lock --check      says what differs from tenon.lock (or -o FILE), and ends with status 1

A program checks it by tenon.lock.check("tenon.lock"). The hash is that of plugin.json, which has those of
the plugin's other files. Plugins differ by machine and by build: so do their hashes.
"""

import argparse
import hashlib
import json
import os
import sys

from . import _core

_FORMAT = 1
_FILE = "tenon.lock"


def _manifest(plugin):
    with open(os.path.join(plugin["directory"], "plugin.json"), "rb") as file:
        return file.read()


def _used():
    return [plugin for plugin in _core.plugins() if plugin["state"] in ("found", "loaded")]


def _row(plugin):
    return {"version": plugin["version"], "sha256": hashlib.sha256(_manifest(plugin)).hexdigest()}


def current():
    """What a lockfile says of the plugins that are used now."""
    rows = {plugin["id"]: _row(plugin) for plugin in sorted(_used(), key=lambda plugin: plugin["id"])}
    return {"format": _FORMAT, "tenon": _core.version, "plugins": rows}


def write(path=_FILE):
    """Writes a lockfile of the plugins that are used now."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(current(), file, indent=2)
        file.write("\n")


def _read(path):
    with open(path, encoding="utf-8") as file:
        try:
            lock = json.load(file)
            if lock["format"] != _FORMAT:
                raise ValueError(f"its format is {lock['format']!r}, expected {_FORMAT}")
            return {name: (row["version"], row["sha256"]) for name, row in lock["plugins"].items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is no lockfile of plugins: {error!r}") from error


def _difference(plugin, wanted):
    """How a plugin differs from its row of a lockfile; None: it does not."""
    version, digest = wanted
    if plugin["version"] != version:
        return f"has version {plugin['version']}, expected {version}"
    try:
        if hashlib.sha256(_manifest(plugin)).hexdigest() != digest:
            return f"is another one than was locked: {plugin['directory']}/plugin.json has another hash"
        _core.verify_plugin(plugin["directory"])
    except (OSError, _core.PluginError) as error:
        return f"is damaged: {error}"
    return None


def differences(path=_FILE):
    """What differs from a lockfile: a sentence a plugin."""
    locked, rows = _read(path), []
    states = {plugin["id"]: plugin for plugin in _core.plugins() if plugin["state"] == "refused"}
    used = {plugin["id"]: plugin for plugin in _used()}
    for name, wanted in locked.items():
        if name not in used:
            reason = states[name]["reason"] if name in states else "not installed"
            rows.append(f"{name} is not there: {reason}")
            continue
        difference = _difference(used[name], wanted)
        if difference:
            rows.append(f"{name} {difference}")
    return rows + [f"{name} is not in the lockfile: {plugin['directory']}" for name, plugin in used.items()
                   if name not in locked]


def check(path=_FILE):
    """Raises PluginError unless the plugins that are used are those of a lockfile."""
    rows = differences(path)
    if rows:
        more = f" (and {len(rows) - 1} more: python -m tenon.lock --check -o {path})" if len(rows) > 1 else ""
        raise _core.PluginError(f"{path}: plugin {rows[0]}{more}")


def main():
    parser = argparse.ArgumentParser(prog="python -m tenon.lock", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="say what differs from the lockfile")
    parser.add_argument("-o", "--output", default=_FILE, metavar="FILE", help="the lockfile (default: %(default)s)")
    args = parser.parse_args()
    try:
        if not args.check:
            write(args.output)
            print(f"{args.output}: {len(_used())} plugins")
            return 0
        rows = differences(args.output)
    except (OSError, ValueError) as error:
        print(f"tenon.lock: {error}", file=sys.stderr)
        return 1
    print(*rows or [f"{args.output}: all plugins are those that were locked"], sep="\n")
    return bool(rows)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: MIT
"""Plugins that come in wheels: an entry point of group "tenon.plugins" names a package, whose
folder has a folder for each plugin."""

import importlib.util
import os
import sys
import warnings

from . import _core

_GROUP = "tenon.plugins"


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def _points(text):
    """The packages that the group of an entry_points.txt names."""
    group = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group == _GROUP and "=" in line and not line.startswith(("#", ";")):
            yield line.partition("=")[2].partition(":")[0].partition("[")[0].strip()


def _wheels():
    """Installed distributions with such entry points, as (name, packages). By hand: importlib.metadata takes longer
    to import than this package."""
    seen = set()
    for folder in map(os.path.realpath, sys.path):
        if folder in seen or not os.path.isdir(folder):
            continue
        seen.add(folder)
        for name in sorted(os.listdir(folder)):
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            text = _read(os.path.join(folder, name, "entry_points.txt"))
            if _GROUP in text:
                yield name.partition("-")[0], list(_points(text))


def folders():
    """Folders of plugins that wheels bring, as (distribution, package, folder); None: without the package."""
    found = []
    for wheel, packages in _wheels():
        for package in packages:
            try:
                spec = importlib.util.find_spec(package)
            except (ImportError, ValueError):
                spec = None
            roots = list(spec.submodule_search_locations or []) if spec else []
            found += [(wheel, package, root) for root in roots or [None]]
    return found


def refused():
    """The reasons why plugins are refused, as the end of a sentence."""
    reasons = [plugin["reason"] for plugin in _core.plugins() if plugin["state"] == "refused"]
    more = f" (and {len(reasons) - 1} more: see python -m tenon.doctor)" if len(reasons) > 1 else ""
    return f"; a plugin is refused: {reasons[0]}{more}" if reasons else ""


def path():
    """The plugin folders that the runtime searches first. TENON_PLUGIN_PATH stands in front of the wheels' folders, so that
    its plugin wins among equal versions."""
    if os.environ.get("TENON_PLUGINS_ONLY") == "1":
        return ""
    parts = [part for part in os.environ.get("TENON_PLUGIN_PATH", "").split(":") if part.startswith("/")]
    for wheel, package, folder in folders():
        if folder is None:
            warnings.warn(f"tenon: the wheel {wheel} has plugins in the package '{package}', which is not there: "
                          "install it again", RuntimeWarning, stacklevel=2)
        else:
            parts.append(os.path.abspath(folder))
    return ":".join(parts)

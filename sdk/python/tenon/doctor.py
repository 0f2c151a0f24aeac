# SPDX-License-Identifier: MIT
"""python -m tenon.doctor: what this installation has, and whether it computes."""

import sys

import tenon as tn
from tenon import _core, _plugins


def tell_plugins():
    """What is installed, and what is wrong with it. Gives whether there are operators."""
    ids = _core.operators()
    packs = sorted({text.partition(".")[0] for text in ids})
    print(f"{len(ids)} operators in packs {', '.join(packs) or 'none'}")
    for wheel, package, folder in _plugins.folders():
        print(f"wheel {wheel}: plugins in {folder or f'{package}, which is not there: install it again'}")
    for plugin in _core.plugins():
        if plugin["state"] == "refused":
            print(f"refused: {plugin['reason']}")
    if not ids:
        print("no op pack is installed: set TENON_PLUGIN_PATH, or install plugins beside the library")
    return bool(ids)


def tell_devices():
    """The devices. Gives whether one is selected."""
    selected = 0
    for row in tn.devices():
        if row["reason"]:
            print(f"{row['backend']}: {row['reason']}")
            continue
        mark = f"number {row['selected']} of those used" if row["selected"] else "not selected"
        print(f"{row['backend']}:{row['index']} {row['name']} ({mark})")
        if row["warning"]:
            print(f"    {row['warning']}: {row['remedy']}")
        selected += row["selected"] > 0
    if not selected:
        print("no device is selected: see TENON_BACKEND")
    return selected > 0


def main():
    print(f"tenon {tn.__version__}, Python {sys.version.split()[0]}")
    if not tell_plugins() or not tell_devices():
        return 1
    x = tn.array([1.0, 2.0, 3.0])
    result = tn.sum(x * x).item()
    print("1 + 4 + 9 =", result)
    return result != 14


if __name__ == "__main__":
    sys.exit(main())

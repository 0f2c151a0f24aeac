# SPDX-License-Identifier: MIT
"""python -m tenon.doctor: what this installation has, and whether it computes."""

import sys

import tenon as tn
from tenon import _core


def main():
    print(f"tenon {tn.__version__}, Python {sys.version.split()[0]}")
    ids = _core.operators()
    packs = sorted({text.partition(".")[0] for text in ids})
    print(f"{len(ids)} operators in packs {', '.join(packs) or 'none'}")
    if not ids:
        print("no op pack is installed: set TENON_PLUGIN_PATH, or install plugins beside the library")
        return 1
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
        return 1
    x = tn.array([1.0, 2.0, 3.0])
    result = tn.sum(x * x).item()
    print("1 + 4 + 9 =", result)
    return result != 14


if __name__ == "__main__":
    sys.exit(main())

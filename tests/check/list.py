#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of checks in docs/check.md is that of `tenon check --list`.

    list.py KIT docs/check.md [--update]
"""

import re
import subprocess
import sys


def table(kit):
    lines = subprocess.run([kit, "--list"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout.splitlines()
    rows = [line.split(None, 2) for line in lines]
    return "| check | | expects |\n|---|---|---|\n" + "".join(
        f"| `{name}` | {number} | {text} |\n" for name, number, text in rows), len(rows)


def main():
    kit, page = sys.argv[1], sys.argv[2]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    wanted, count = table(kit)
    new = re.sub(r"(<!-- checks -->\n).*(<!-- end -->)",
                 lambda m: m.group(1) + wanted + m.group(2), text, flags=re.S)
    if "--update" in sys.argv:
        with open(page, "w", encoding="utf-8") as file:
            file.write(new)
        return 0
    print("1..1")
    good = text == new and count > 50
    print(f"{'ok' if good else 'not ok'} 1 - docs/check.md lists the {count} checks")
    if not good:
        print(f"# run: {sys.argv[0]} {kit} {page} --update")
    return not good


if __name__ == "__main__":
    sys.exit(main())

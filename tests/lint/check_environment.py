# SPDX-License-Identifier: MIT
"""Each variable that the code reads is in the core's table, in docs/environment.md with an
example, and has a test of its own in tests/tools/environment.py."""

import pathlib
import re
import sys

from tree import files

ROOT = pathlib.Path(__file__).resolve().parents[2]

READ = re.compile(r'(?:config_get|config_switch|->config|tn_config|getenv)\s*\([^;"]*"(TENON_\w+)"')
# What a child process is given and what tests set: no user's variables.
APART = re.compile(r"TENON_(TEST|BENCH|FAIL)_")


def read_by_code():
    found = {}
    for path in files(ROOT, ".c", ".h"):
        if path.parts[0] == "tests":
            continue
        for name in READ.findall((ROOT / path).read_text()):
            if not APART.match(name):
                found.setdefault(name, path)
    return found


def known_to_core():
    text = (ROOT / "core/base/config.c").read_text()
    return {n for n in re.findall(r'^    \{"(TENON_\w+)",', text, re.M) if not APART.match(n)}


def documented():
    rows = {}
    for line in (ROOT / "docs/environment.md").read_text().splitlines():
        found = re.match(r"\| `(TENON_\w+)` \| (.+) \| `(.+)` \|$", line)
        if found:
            rows[found[1]] = found.groups()[1:]
    return rows


def tested():
    text = (ROOT / "tests/tools/environment.py").read_text()
    functions = re.findall(r"^def (tenon_\w+)\(\):", text, re.M)
    listed = text[text.rindex("run(["):]
    if "'environment'" not in (ROOT / "tests/tools/meson.build").read_text():
        return set()
    return {name for name in functions if re.search(rf"\b{name}\b", listed)}


def main():
    read, core, rows, tests = read_by_code(), known_to_core(), documented(), tested()
    faults = [f"{name} is read in {where}, but core/base/config.c does not know it"
              for name, where in read.items() if name not in core]
    faults += [f"{name} is known to core/base/config.c, but nothing reads it" for name in core - set(read)]
    faults += [f"{name} has no row with an example in docs/environment.md" for name in core - set(rows)]
    faults += [f"docs/environment.md has a row for {name}, which no code reads" for name in set(rows) - core]
    faults += [f"{name} has no function {name.lower()}_... in tests/tools/environment.py" for name in sorted(core)
               if not any(t.startswith(name.lower() + "_") for t in tests)]
    print("\n".join(sorted(faults)) or f"{len(rows)} variables are documented and tested")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())

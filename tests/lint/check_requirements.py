# SPDX-License-Identifier: MIT
"""docs/abi.md and the checks of the conformance kit name each other: each requirement of a
plugin lists exactly the checks that have its number, each of a host existing tests.

    check_requirements.py [--self-test]
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

CHECK = re.compile(r'^    \{"([a-z-]+\.[a-z-]+)",\s+"(P\d+)",', re.M)
ENTRY = re.compile(r"^- \*\*([PH]\d+)\.\*\* (.*?)(?=^- |^#|\Z)", re.M | re.S)
NAMED = re.compile(r"`([^`]+)`")


def checks_of_kit(text):
    """{"P7": {"file.unloadable", ...}}"""
    found = {}
    for name, number in CHECK.findall(text):
        found.setdefault(number, set()).add(name)
    return found


def entries(text):
    return [(number, " ".join(body.split())) for number, body in ENTRY.findall(text)]


def plugin_faults(number, body, expected):
    """What is wrong with one P entry."""
    rule, _, rest = body.partition(" *Otherwise* ")
    harm, _, checked = rest.partition(" *Checked by* ")
    if not (rule and harm and checked):
        return [f"{number}: expected a rule, *Otherwise* ... and *Checked by* ..."]
    named = {n for n in NAMED.findall(checked) if re.fullmatch(r"[a-z-]+\.[a-z-]+", n)}
    return [f"{number}: names `{n}`, which no check of this number is" for n in sorted(named - expected)] + [
        f"{number}: does not name `{n}`, a check of this number" for n in sorted(expected - named)]


def host_faults(number, body, read):
    """What is wrong with one H entry; read(path) gives a file's text or None."""
    rule, _, rest = body.partition(" *Otherwise* ")
    harm, _, tested = rest.partition(" *Tested by* ")
    if not (rule and harm and tested):
        return [f"{number}: expected a rule, *Otherwise* ... and *Tested by* ..."]
    faults, text, path = [], None, None
    for name in NAMED.findall(tested):
        if "/" in name:
            path, text = name, read(name) if name.startswith("tests/") else None
            if text is None:
                faults.append(f"{number}: there is no test {name}")
        elif text is not None and not re.search(rf"\b{re.escape(name)}\b", text):
            faults.append(f"{number}: {path} has no {name}")
    return faults if path else [f"{number}: names no test"]


def order_faults(numbers):
    """Numbers are unique and grow."""
    return [f"{b}: stands after {a}" for a, b in zip(numbers, numbers[1:])
            if a[0] == b[0] and int(a[1:]) >= int(b[1:])]


def faults_of(document, kit, read):
    checks, found = checks_of_kit(kit), entries(document)
    faults = order_faults([n for n, _ in found])
    for number, body in found:
        faults += (plugin_faults(number, body, checks.get(number, set())) if number[0] == "P"
                   else host_faults(number, body, read))
    missing = set(checks) - {n for n, _ in found}
    return faults + [f"{n}: checks have this number, docs/abi.md has no entry" for n in sorted(missing)]


def read_file(name):
    path = ROOT / name
    return path.read_text() if path.is_file() else None


def self_test():
    """Planted faults, each of which must be named."""
    kit = '    {"file.one", "P1", "x"},\n    {"file.two",\n     "P2", "x"},\n'
    good = ("- **P1.** A. *Otherwise* b. *Checked by* `file.one`.\n"
            "- **P2.** A. *Otherwise* b. *Checked by* `file.two`.\n"
            "- **H1.** A. *Otherwise* b. *Tested by* `tests/a.c` (`it_works`).\n")
    read = {"tests/a.c": "void it_works(void)"}.get
    plants = [("`file.one`", "`file.none`"), ("*Otherwise* b. *Checked", "*Checked"),
              ("- **P2.**", "- **P3.**"), ("- **P2.**", "- **P1.**"), ("tests/a.c", "tests/b.c"),
              ("it_works", "it_sings"), (" *Tested by* `tests/a.c` (`it_works`).", "")]
    missed = [plant for plant in plants if not faults_of(good.replace(*plant, 1), kit, read)]
    wrong = faults_of(good, kit, read)
    print("\n".join([f"not found: {p}" for p in missed] + wrong) or f"{len(plants)} faults found")
    return bool(missed or wrong)


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    document = (ROOT / "docs/abi.md").read_text()
    kit = (ROOT / "sdk/conformance/checks.c").read_text()
    faults = faults_of(document, kit, read_file)
    total = len(CHECK.findall(kit))
    print("\n".join(faults) or f"{len(entries(document))} requirements, {total} checks")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())

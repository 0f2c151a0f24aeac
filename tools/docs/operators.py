#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables at the end of docs/operators.md from what the packs say of their operators.

operators.py TENON            writes them; TENON is the command, plugins are those of TENON_PLUGIN_PATH
operators.py TENON --check    says which rows are out of date

Facts that records lack come from elsewhere: names in other libraries from tests/names, libraries that tests
compare with from the tests' scripts, and differences, reasons and other oracles from operators.toml beside this
file. A cell that nothing fills is an error.
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tomllib
import warnings

try:
    import numpy  # noqa: F401 (the scripts of tests need it)
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "docs/operators.md"
FACTS = pathlib.Path(__file__).with_suffix(".toml")
MARK = "<!-- From here on tools/docs/operators.py writes. -->"
SAMPLES = ("blas", "lapack", "libm")  # packs that are examples
HEAD = ["operator", "dtypes", "kernels", "vjp", "jvp", "vmap", "oracle", "beside NumPy"]
KINDS = {"bool": ["bool"], "int": ["i8", "i16", "i32", "i64"], "uint": ["u8", "u16", "u32", "u64"],
         "float": ["f16", "bf16", "f32", "f64"], "complex": ["complex64", "complex128"],
         "f8": ["f8_e4m3", "f8_e5m2"]}
BACKENDS = {"org.tenon.cpu-blas": "cpu", "org.tenon.vulkan": "vulkan", "org.tenon.vulkan-jit": "vulkan-jit"}
TEXT = """## All operators

Made by `tools/docs/operators.py TENON`. *dtypes*: what inputs may have by their records (`any`: every dtype; an
operator may refuse more when it sees shapes and attributes). *kernels*: backends that have one of its own, `pack` a
kernel that the pack brings for CPUs; `expression`: every backend computes it in fused programs; `made of others`: its
decomposition runs; `composite`: put together when it is applied; `view`: nothing is computed. *vjp*, *jvp*, *vmap*:
`own` rule, or `derived` from its meaning. *oracle*: whose values tests compare with. *beside NumPy*: whose name it
has, and how it differs."""


# --- what others say ---------------------------------------------------------------------


def names():
    """The names that others have for an operator: {ours: {library: [theirs]}}."""
    found = {}
    for library in ("numpy", "array-api", "mlx"):
        for line in (ROOT / f"tests/names/{library}.txt").read_text().splitlines():
            theirs, kind, *ours = line.split(" ", 2)
            if kind in ("operator", "alias"):
                found.setdefault(ours[0], {}).setdefault(library, []).append(theirs)
    return found


def compared(facts, ids):
    """Libraries that tests compare with: {ours: [library]}: golden values, random programs, and scripts
    that name operators, by operators.toml's [scripts]."""
    sys.path[:0] = [str(ROOT / "tests/conformance"), str(ROOT / "tests/random")]
    import golden
    import layers  # noqa: F401 (adds rules)
    import rules
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        golden.np.seterr(all="ignore")
        golden.collect()
    found = {}
    for name in {case[0] for case in golden.cases} - {n for n in ids if n.startswith("random.")}:
        found[name] = ["NumPy"]
    for case in golden.golden_nn.nn_values.CASES:
        found["nn." + case[0]] = ["PyTorch"]
    for name in ids:
        if name.split(".", 1)[1] in rules.RULES and name.split(".")[0] in ("base", "nn", "fft"):
            found.setdefault(name, []).append("NumPy")
    for path, row in facts["scripts"].items():
        words = set(re.findall(r"\b[a-z_0-9]+\b", (ROOT / path).read_text()))
        for name in ids:
            if name.startswith(row["pack"] + ".") and name.split(".", 1)[1] in words:
                found.setdefault(name, []).append(row["library"])
    return found


def told(table, name):
    """The entry of the name, or of the first glob that it fits."""
    return table.get(name) or next((v for k, v in table.items() if fnmatch.fnmatch(name, k)), None)


# --- cells -------------------------------------------------------------------------------


def kinds(dtypes):
    left, found = set(dtypes), []
    for kind, members in KINDS.items():
        if left.issuperset(members):
            found.append(kind)
            left -= set(members)
    found += [d for d in dtypes if d in left]
    return "any" if found == list(KINDS) else " ".join(found)


def dtypes_cell(op):
    sets = [(i["name"], kinds(i["dtypes"])) for i in op["inputs"]]
    if not sets:
        return "`dtype`" if any(a["name"] == "dtype" for a in op["attributes"]) else "no input"
    if len({s for _, s in sets}) == 1:
        return sets[0][1]
    return "; ".join(f"{name}: {s}" for name, s in sets)


def kernels_cell(op, facts):
    found = [b for p, b in BACKENDS.items() if any(k["plugin"] == p for k in op["kernels"])]
    if any(k["plugin"] not in BACKENDS for k in op["kernels"]):
        found.insert(0, "pack")
    rules = op["rules"]
    meaning = ("expression" if op["expr"] else "view" if "view" in rules else "between steps" if "run" in rules else
               "made of others" if "decompose" in rules else "")
    if not found and meaning == "made of others" and "infer" not in rules:
        meaning = "composite"
    if meaning and (not found or meaning == "expression"):
        found.append(meaning)
    return ", ".join(found) or told(facts["kernels"], op["id"].split("/")[0])


def rule_cell(op, rule, facts):
    if rule != "vmap" and op["inputs"] and all(i["constant"] for i in op["inputs"]):
        return "none: no input has one"
    if not op["inputs"]:
        return "none: no input"
    if rule in op["rules"]:
        return "own"
    return "derived" if rule in op["derived"] else told(facts["rules"], op["id"].split("/")[0])


def oracle_cell(name, tests, facts):
    given = told(facts["oracles"], name)
    found = ([given] if given else []) + [t for t in tests.get(name, []) if t != given]
    return ", ".join(dict.fromkeys(found)) or None


def beside_cell(name, theirs, facts):
    given = told(facts["differences"], name)
    bare = name.split(".", 1)[1]
    if "numpy" in theirs or name.startswith(("fft.", "linalg.")) and "array-api" in theirs:
        others = [t for t in theirs.get("numpy", []) if t.split(".")[-1] != bare]
        aliases = f"NumPy's {' '.join(f'`{t}`' for t in others)}" if others and bare not in theirs.get("numpy", []) else "as NumPy's"
        return given if given else aliases
    owner = next((label for key, label in (("array-api", "the array API's"), ("mlx", "MLX's")) if key in theirs), None)
    return given or (f"not in NumPy: {owner}" if owner else None)


def rows(ops, facts):
    owners, tests = names(), compared(facts, [op["id"].split("/")[0] for op in ops])
    newest = {name: int(revision) for name, revision in sorted(op["id"].split("/") for op in ops)}
    for op in ops:
        name, revision = op["id"].split("/")
        if name.split(".")[0] in SAMPLES:
            continue
        cells = [f"`{name if int(revision) == newest[name] else op['id']}`", dtypes_cell(op), kernels_cell(op, facts)]
        cells += [rule_cell(op, rule, facts) for rule in ("vjp", "jvp", "vmap")]
        cells += [oracle_cell(name, tests, facts), beside_cell(name, owners.get(name, {}), facts)]
        yield name, cells


def tables(ops, facts):
    lines, empty, pack = [TEXT], [], None
    for name, cells in rows(ops, facts):
        empty += [f"{name}: nothing says its {title}" for title, cell in zip(HEAD, cells) if not cell]
        if name.split(".")[0] != pack:
            pack = name.split(".")[0]
            lines += ["", f"### {pack}", "", "| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
        lines.append("| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |")
    return lines, empty


def unused(facts, ops):
    """Rows of operators.toml whose operator does not exist."""
    ids = [op["id"].split("/")[0] for op in ops]
    for section in ("kernels", "rules", "oracles", "differences"):
        for key in facts[section]:
            if not fnmatch.filter(ids, key):
                yield f"operators.toml: [{section}] {key} is no operator"


def main():
    command = [sys.argv[1], "ops", "--calls", "--json"]
    ops = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    facts = tomllib.loads(FACTS.read_text())
    lines, wrong = tables(ops, facts)
    wrong += unused(facts, ops)
    if wrong:
        sys.exit("\n".join(wrong))
    kept, mark, now = OUTPUT.read_text().partition(MARK)
    new = "\n" + "\n".join(lines) + "\n"
    if "--check" not in sys.argv:
        OUTPUT.write_text((kept if mark else kept.rstrip("\n") + "\n\n") + MARK + new)
    elif now != new:
        stale = set(new.splitlines()) ^ set(now.splitlines())
        sys.exit("docs/operators.md is out of date: run tools/docs/operators.py\n" + "\n".join(sorted(stale)[:20]))


if __name__ == "__main__":
    main()

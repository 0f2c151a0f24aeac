# SPDX-License-Identifier: MIT
"""The names of others: every function of the array API, of NumPy, of mlx.core, of torch.nn.functional, and every class and
function of mlx.nn with its losses, initialisers and optimisers, is sorted in tests/names, a line a name: `operator OURS`,
`alias OURS` (another name, or another use of an operator), `layer [OURS]` (parameters or state around operators), `python`
(needs no operator: a binding has it), `device`, `later WHY`, `missing WHY`. An operator that is named exists, and
one that is missing does not; only NumPy's may be missing, with the reason."""

import collections
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "tools"))
import tap  # noqa: E402

SAMPLES = ("blas", "lapack", "libm")  # packs that are examples
KINDS = ("operator", "alias", "layer", "python", "device", "later", "missing")


def rows(name):
    for line in (FOLDER / f"{name}.txt").read_text().splitlines():
        theirs, kind, *rest = line.split(" ", 2)
        yield theirs, kind, rest[0] if rest else ""


def check(name):
    ids = {row["id"].split("/")[0] for row in json.loads(tap.tenon("ops", "--json").stdout)}
    ours = {i.split(".", 1)[1] for i in ids if i.split(".")[0] not in SAMPLES}
    kinds, wrong, missing = collections.Counter(), [], []
    for theirs, kind, text in rows(name):
        kinds[kind] += 1
        assert kind in KINDS, f"{name}: {theirs}: unknown kind {kind}"
        if kind in ("operator", "alias") and text not in ids or kind == "layer" and text and text not in ids:
            wrong.append(f"{theirs}: {text} is no operator")
        if kind == "later" and not text:
            wrong.append(f"{theirs}: is for later, for no reason")
        if kind == "missing":
            missing.append(theirs)
            if name != "numpy" or not text:
                wrong.append(f"{theirs}: is missing" + ("" if text else ", for no reason"))
            if theirs.split(".")[-1] in ours:
                wrong.append(f"{theirs}: there is an operator of this name")
    print(f"# {name}: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    print(f"# {name}: missing: " + " ".join(missing))
    assert not wrong, f"{name}: " + "; ".join(wrong)


def every_function_of_the_array_api_is_sorted():
    check("array-api")


def every_function_of_numpy_is_sorted():
    check("numpy")


def every_function_of_mlx_is_sorted():
    check("mlx")


def every_function_of_torch_nn_is_sorted():
    check("torch-nn")


def every_layer_of_mlx_is_sorted():
    check("mlx-nn")


if __name__ == "__main__":
    tap.run([every_function_of_the_array_api_is_sorted, every_function_of_numpy_is_sorted,
             every_function_of_mlx_is_sorted, every_function_of_torch_nn_is_sorted, every_layer_of_mlx_is_sorted])

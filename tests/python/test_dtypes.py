# SPDX-License-Identifier: MIT
"""Every operator with inputs of other dtypes, and of other shapes: exceptions of the right kind."""

import json
import pathlib

import pytest

import tenon as tn
from tenon import _operators

PACKS = pathlib.Path(__file__).parents[2] / "plugins/ops"
OTHERS = ["bool", "int32", "uint8", "uint64", "float16", "float32", "float64", "complex64", "float8_e4m3fn"]

# Calls of operators that have neither an example of `tenon check` nor take square matrices: shapes, attributes.
CALLS = {
    "argpartition": ([[4]], {"kth": 1}), "argwhere": ([[4]], {"size": 2}), "as_strided": ([[4]], {"shape": [2], "strides": [1]}),
    "astype": ([[4]], {"dtype": "f32"}), "bincount": ([[4]], {"length": 3}), "boolean_mask": ([[4], [4]], {"size": 2}),
    "broadcast_to": ([[4]], {"shape": [2, 4]}), "convolve": ([[4], [2]], {}), "correlate": ([[4], [2]], {}), "cross": ([[3], [3]], {}),
    "digitize": ([[4], [2]], {}), "expand_dims": ([[4]], {"axis": [0]}), "full_like": ([[4]], {"value": 1}),
    "histogram2d": ([[4], [4]], {}), "intersect1d": ([[4], [4]], {"size": 2}), "meshgrid": ([[4], [3]], {}),
    "moveaxis": ([[2, 3]], {"source": [0], "destination": [1]}), "nanpercentile": ([[4], []], {}), "nanquantile": ([[4], []], {}),
    "nonzero": ([[4]], {"size": 2}), "pad": ([[4]], {"before": [1], "after": [1]}), "pad_constant": ([[4]], {"before": [1], "after": [1]}),
    "partition": ([[4]], {"kth": 1}), "percentile": ([[4], []], {}), "quantile": ([[4], []], {}), "reshape": ([[4]], {"shape": [2, 2]}),
    "resize": ([[4]], {"shape": [3]}), "scatter_add": ([[4, 3], [2], [2, 3]], {}), "searchsorted": ([[4], [2]], {}),
    "setdiff1d": ([[4], [4]], {"size": 2}), "setxor1d": ([[4], [4]], {"size": 2}), "sum_to": ([[2, 4]], {"shape": [4]}),
    "swapaxes": ([[2, 3]], {"axis1": 0, "axis2": 1}), "trim_zeros": ([[4]], {"size": 2}), "unflatten": ([[4]], {"axis": 0, "shape": [2, 2]}),
    "unique_all": ([[4]], {"size": 2}), "unique_counts": ([[4]], {"size": 2}), "unique_inverse": ([[4]], {"size": 2}),
    "unique_values": ([[4]], {"size": 2}), "unravel_index": ([[4]], {"shape": [2, 2]}), "vander": ([[4]], {}), "view": ([[4]], {"dtype": "i32"}),
    "matrix_power": ([[2, 2]], {"n": 2}), "conv2d": ([[1, 4, 4, 2], [3, 2, 2, 2]], {}), "cross_entropy": ([[2, 3], [2]], {}),
    "adam": ([[4], [4], [4], [4], []], {}), "istft": ([[3, 4]], {}), "lu_permutation": ([[4]], {"rows": 4}), "truncated_normal": ([[2], [], []], {}),
    "layer_norm_grad": ([[2, 3], [3], [2, 3]], {}), "max_pool2d": ([[1, 4, 4, 2]], {"window": [2, 2]}),
    "max_pool2d_grad": ([[1, 4, 4, 2], [1, 2, 2, 2], [1, 2, 2, 2]], {"window": [2, 2]}),
}
# Without inputs, or with bodies, whose calls are tried in test_transforms.
LEFT_OUT = {"checkpoint", "cond", "scan", "while_loop"}
DTYPES_OF_CALLS = [["float32", "int32", "float32"], ["uint32"] + ["float32"] * 8, ["complex64"] * 9, ["bool"] * 9, ["float32"] * 9, ["int32"] * 9, ["uint8"] * 9, ["uint32"] * 9]


def examples(entry):
    """(dtypes, shapes, attributes) of calls: those of `tenon check`, or one."""
    pack, name = entry["id"].split("/")[0].split(".")
    listed = json.loads((PACKS / pack / "check.examples.json").read_text()).get(entry["id"], [])
    listed = [example for example in listed if isinstance(example, dict) and "inputs" in example]
    for example in listed:
        inputs = [given or {} for given in example["inputs"]]
        yield [i.get("dtype", "f32") for i in inputs], [i.get("shape") for i in inputs], example.get("attrs", {})
    if not listed:
        count = sum("optional" not in given.get("flags", "") for given in entry["inputs"])
        shapes, attributes = CALLS.get(name, ([[4, 4]] * count, {}))
        for dtypes in DTYPES_OF_CALLS:
            yield dtypes[:len(shapes)], shapes, attributes


def call(entry, dtypes, shapes, attributes):
    """What it raises; None for a call that is taken. Nothing is computed."""
    arrays = [None if shape is None else tn.zeros(shape, dtype=dtype) for dtype, shape in zip(dtypes, shapes)]
    if "variadic" in entry["inputs"][-1].get("flags", ""):
        fixed = len(entry["inputs"]) - 1
        arrays = [*arrays[:fixed], arrays[fixed:]]
    try:
        _operators.make(entry["id"])(*arrays, **attributes)
    except Exception as error:
        return error
    return None


def operators():
    entries = [_operators.record(text) for text in sorted(tn._core.operators())
               if text.partition(".")[0] in ("base", "nn", "fft", "linalg", "random", "quant")]
    return [entry for entry in entries if entry["inputs"] and _operators.short_name(entry["id"]) not in LEFT_OUT]


@pytest.mark.parametrize("pack", ["base", "nn", "fft", "linalg", "random", "quant"])
def test_wrong_dtypes_are_type_errors(pack):
    refused, untried, entries = 0, [], [entry for entry in operators() if entry["id"].startswith(pack + ".")]
    for entry in entries:
        taken = [example for example in examples(entry) if call(entry, *example) is None]
        if not taken:
            untried.append(entry["id"])
        for dtypes, shapes, attributes in taken[:3]:
            tries = [[dtype] * len(dtypes) for dtype in OTHERS]
            tries += [[*dtypes[:i], dtype, *dtypes[i + 1:]] for i in range(len(dtypes)) for dtype in OTHERS[::2]]
            for other in tries:
                error = call(entry, other, shapes, attributes)
                refused += error is not None
                assert error is None or type(error) is TypeError, (entry["id"], other, shapes, error)
            for wrong in ([*shapes[:-1], [5, 7, 3, 2, 1, 1]], [[11, 2]] + shapes[1:]):
                error = call(entry, dtypes, wrong, attributes)
                assert error is None or type(error) is not TypeError, (entry["id"], dtypes, wrong, error)
    assert refused > 20 or pack not in ("base", "nn")
    assert len(untried) * 20 <= len(entries), f"give CALLS a call of each: {untried}"

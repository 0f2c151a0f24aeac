# SPDX-License-Identifier: MIT
"""Gradients of products with groupwise formats beside MLX's (tests/conformance/groupwise_values.py)."""

import pathlib
import sys

import numpy as np
import pytest

import tenon as tn
from tenon import quant

sys.path.append(str(pathlib.Path(__file__).parents[2] / "conformance"))
import golden_groupwise  # noqa: E402
import groupwise_values  # noqa: E402

CASES = list(zip(golden_groupwise.products(), groupwise_values.PRODUCTS))


@pytest.mark.parametrize("case", range(len(CASES)))
def test_gradients_are_mlx_s(case):
    (x, w, indices, attrs), (coded, shape, (_, *gradients)) = CASES[case]
    words, *rest = [tn.array(np.array(c, d).reshape(*w.shape[:-1], -1))
                    for c, d in zip(coded, ("u4", "u1" if attrs["mode"] != "affine" else "f4", "f4"))]
    ids = [None if i is None else tn.array(np.array(i, "u4")) for i in indices]
    weight = tn.array(golden_groupwise.numbers(3, shape).astype("f4"))

    def f(x, *floats):
        scales, biases = floats or [*rest, None][:2]
        given = [x, words, scales, biases]
        if indices == (None, None):
            return tn.sum(quant.groupwise_matmul(*given, **attrs, exact=True) * weight)
        return tn.sum(quant.groupwise_gather_matmul(*given, *ids, **attrs, exact=True) * weight)

    got = tn.grad(f, argnums=tuple(range(len(gradients))))(tn.array(x), *rest[:len(gradients) - 1])
    for ours, theirs in zip(got, gradients):
        theirs = np.array(theirs, "f4").reshape(ours.shape)
        assert np.abs(np.asarray(ours) - theirs).max() <= 1e-5 * np.abs(theirs).max()

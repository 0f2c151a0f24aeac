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


FORMATS = [("affine", bits, group) for bits in (2, 4, 8) for group in (32, 64, 128)] + [("mxfp4", 4, 32), ("nvfp4", 4, 16)]


@pytest.mark.parametrize("mode, bits, group", FORMATS)
@pytest.mark.parametrize("rows", (1, 3, 8, 70))
def test_rounding_x_is_within_its_bound(mode, bits, group, rows):
    attrs = {"mode": mode, "bits": bits, "group": group}
    k, n = 3 * group, 37
    x = golden_groupwise.numbers(0, (rows, k)).astype("f4")
    words, *rest = quant.groupwise_quantize(tn.array(golden_groupwise.numbers(1, (n, k)).astype("f4")), **attrs)
    w = np.asarray(quant.groupwise_dequantize(words, *rest, dtype="f32", **attrs), "f8")
    got = np.asarray(quant.groupwise_matmul(tn.array(x), words, *rest, **attrs))
    parts = np.pad(np.abs(x), ((0, 0), (0, -k % 32))).reshape(rows, -1, 32).max(-1).repeat(32, 1)[:, :k]
    # Codes, without their biases, times halves of steps: of a 254th of a 127th where x is two bytes; sums of f32 round.
    spread = np.abs(w - (np.asarray(rest[1]).repeat(group, 1) if mode == "affine" else 0))
    assert (np.abs(got - x @ w.T) <= parts @ spread.T / 64516 + 3e-7 * np.abs(x) @ np.abs(w.T)).all()


# Rows of codes that end within vectors of 64 and 128: floats have no error but that of their sums.
@pytest.mark.parametrize("mode, bits, group", [*(("affine", bits, 32) for bits in (2, 3, 4, 5, 6, 8)), ("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)])
@pytest.mark.parametrize("groups", (1, 2, 3, 7, 36))
def test_products_of_floats_are_exact_for_rows_of_any_length(mode, bits, group, groups):
    attrs = {"mode": mode, "bits": bits, "group": group}
    words, *rest = quant.groupwise_quantize(tn.array(golden_groupwise.numbers(1, (5, groups * group)).astype("f4")), **attrs)
    w = np.asarray(quant.groupwise_dequantize(words, *rest, dtype="f32", **attrs), "f8")
    biases = np.asarray(rest[1], "f8").repeat(group, 1) if mode == "affine" else 0
    for rows in (1, 4):
        x = golden_groupwise.numbers(0, (rows, groups * group)).astype("f4")
        got = np.asarray(quant.groupwise_matmul(tn.array(x), words, *rest, **attrs, exact=True))
        assert (np.abs(got - x @ w.T) <= 1e-6 * np.abs(x) @ (np.abs(w - biases) + np.abs(biases)).T).all()


def test_indices_of_no_matrices_keep_their_axes():
    words, *rest = quant.groupwise_quantize(tn.ones((2, 5, 64)))
    ids = tn.zeros((0, 3), dtype="uint32")
    assert quant.groupwise_gather_matmul(tn.ones((2, 4, 64)), words, *rest, ids, ids).shape == (0, 3, 4, 5)

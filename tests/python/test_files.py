# SPDX-License-Identifier: MIT
"""Files of arrays: load and save."""

import numpy as np

import tenon as tn


def test_one_array(tmp_path):
    path = tmp_path / "x.npy"
    tn.save(path, tn.array([1.0, 2.0]))
    np.testing.assert_array_equal(np.load(path), np.array([1, 2], np.float32))
    assert tn.load(path).tolist() == [1, 2]


def test_arrays_by_name(tmp_path):
    path = tmp_path / "x.safetensors"
    tn.save(path, {"a": tn.array([1.0]), "b": tn.array([2])})
    assert {k: v.tolist() for k, v in tn.load(path).items()} == {"a": [1], "b": [2]}

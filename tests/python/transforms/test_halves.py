# SPDX-License-Identifier: MIT
"""Memory of networks whose convolutions are of halves and whose norms are of f32: what goes from the forward pass to
the backward one is halves; casts that many read, and casts to the dtype that an array has, are no arrays of their own."""
import numpy as np
import pytest
import tenon as tn


def arena(*arrays):
    return sum(segment["arena_bytes"] for segment in tn.why(*arrays)["segments"])


def layer(x, w, dtype):
    y = tn.conv2d(tn.astype(x, dtype), tn.astype(w, dtype), padding=[1, 1])
    zeros, ones = tn.zeros([16]), tn.ones([16])
    return tn.relu(tn.astype(tn.batch_norm(y, zeros, zeros, ones, zeros, training=True)[0], dtype))


def gradients(dtype, layers=6):
    x = tn.array(np.cos(np.arange(8 * 16 * 16 * 16)).reshape(8, 16, 16, 16).astype("f4"))
    weights = [tn.array(np.sin(np.arange(16 * 9 * 16) + i).reshape(16, 3, 3, 16).astype("f4")) for i in range(layers)]

    def loss(weights):
        y = x
        for w in weights:
            y = layer(y, w, dtype)
        return tn.mean(tn.astype(y, tn.float32) ** 2)

    return tn.grad(loss)(weights)


def test_halves_take_half_the_memory():
    """Of a layer two arrays are left for its gradients: the convolution's result, and the layer's."""
    images = 8 * 16 * 16 * 16
    assert arena(*gradients(tn.float32)) < (2 * 6 + 4) * images * 4
    assert arena(*gradients(tn.bfloat16)) < (2 * 6 + 9) * images * 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_programs_that_read_halves_have_the_same_elements(dtype):
    x = tn.astype(tn.array(np.linspace(-3, 3, 96, dtype="f4").reshape(4, 24)), dtype)
    tn.eval(x)  # a cast in a program does not round
    halves = np.asarray(tn.astype(x, "float32"))
    y = tn.astype(x, "float32")  # read by a kernel, programs, views and as bits
    rows = tn.sum(y, axis=1, keepdims=True)
    got = [y * rows, y.T + y.T, y[1:3] * y[:2], tn.view(y, "int32") + 1, rows]
    wide = halves
    total = np.asarray(rows)
    np.testing.assert_allclose(total[:, 0], wide.astype("f8").sum(1), atol=1e-5)
    want = [wide * total, wide.T + wide.T, wide[1:3] * wide[:2], wide.view("i4") + 1, total]
    tn.eval(*got)
    for a, b in zip(got, want):
        assert np.array_equal(np.asarray(a), b)


def test_casts_to_the_dtype_that_is_there_are_no_steps():
    x = tn.array(np.ones((4, 8), "f4"))
    y = x @ x.T
    once, twice = tn.tanh(y), tn.tanh(tn.astype(tn.astype(y, "float32"), "float32"))
    steps = [len(segment["steps"]) for a in (once, twice) for segment in tn.why(a)["segments"]]
    assert steps[0] == steps[1]
    assert len([s for segment in tn.why(y, tn.astype(y, "float32"))["segments"] for s in segment["steps"]]) == 1


def test_gradients_of_batch_norm_sum_twice_over_x():
    """The gradient and its product with the distances: others are of these, as distances have no sum."""
    x, g = (tn.array(np.cos(np.arange(8 * 6 * 4) * k).reshape(8, 6, 4).astype("f4")) for k in (1, 2))
    ones, zeros = tn.ones([4]), tn.zeros([4])

    def loss(x, w, b):
        return tn.sum(tn.batch_norm(x, zeros, zeros, w, b, training=True)[0] * g)

    steps = [s["label"] for segment in tn.why(tn.grad(loss, argnums=(0, 1, 2))(x, ones, zeros))["segments"] for s in segment["steps"]]
    assert sum("sum" in label for label in steps) == 2, steps

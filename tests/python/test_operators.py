# SPDX-License-Identifier: MIT
"""Operators: those of the language, and those of packs with their signatures."""

import inspect

import numpy as np
import pytest

import tenon as tn

BINARY = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x // y,
          lambda x, y: x % y, lambda x, y: abs(x) ** y, lambda x, y: x @ y, lambda x, y: x < y, lambda x, y: x >= y,
          lambda x, y: x == y, lambda x, y: -x, lambda x, y: +x]
BITS = [lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: x << y, lambda x, y: x >> y,
        lambda x, y: ~x]


@pytest.mark.parametrize("f", BINARY)
def test_arithmetic_is_numpys(f):
    a, b = np.array([7.0, -7, 0.5]), np.array([2.0, 3, -4])
    np.testing.assert_allclose(np.asarray(f(tn.array(a), tn.array(b))), f(a, b), rtol=1e-15)


@pytest.mark.parametrize("f", BITS)
def test_bits_are_numpys(f):
    a, b = np.array([12, 5]), np.array([3, 1])
    np.testing.assert_array_equal(f(tn.array(a), tn.array(b)), f(a, b))


@pytest.mark.parametrize("order", [None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"])
def test_orders_of_norms_are_numpys(order):
    a = np.array([[3.0, -1, 2], [0, 4, 1], [1, 1, -2]])
    np.testing.assert_allclose(tn.linalg.norm(tn.array(a), order), np.linalg.norm(a, order), rtol=1e-14)
    np.testing.assert_allclose(tn.linalg.cond(tn.array(a), order), np.linalg.cond(a, order), rtol=1e-13)
    for of_vectors in [order, 0, 2.5] if not isinstance(order, str) else []:
        np.testing.assert_allclose(tn.linalg.norm(tn.array(a), of_vectors, 0), np.linalg.norm(a, of_vectors, 0), rtol=1e-14)


def test_beside_arrays_of_numpy():
    np.testing.assert_array_equal(np.ones(2) + tn.array([1.0, 2.0]), np.array([2.0, 3.0]))
    assert isinstance(np.ones(2) * tn.array([1.0, 2.0]), tn.Array)


def test_operators_describe_themselves():
    assert str(inspect.signature(tn.sum)).split(",")[0] == "(x"
    assert "axis" in inspect.signature(tn.softmax).parameters
    assert "layer_norm" in dir(tn.nn)
    assert "softmax" in dir(tn)
    assert "The sum" in tn.sum.__doc__


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64", "complex64"])
def test_reductions_take_the_dtype_of_their_result(dtype):
    x = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    for name in ("sum", "prod", "cumsum", "cumprod", "mean"):
        if name != "mean" or np.dtype(dtype).kind in "fc":
            want = getattr(np, name)(x, axis=1, dtype=dtype)
            for got in getattr(tn, name)(tn.array(x), axis=1, dtype=dtype), getattr(tn.array(x), name)(axis=1, dtype=dtype):
                assert np.asarray(got).dtype == dtype and np.allclose(np.asarray(got), want)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_running_products_and_sums_of_complex_numbers(dtype):
    random, tolerance = np.random.default_rng(1), 3e-4 if dtype == "complex64" else 1e-11
    for shape, axis in (((5,), 0), ((4, 300), 1), ((9, 513), 1), ((9, 513), 0), ((3, 40, 2), 1), ((70000,), 0)):
        x = (np.exp(2j * np.pi * random.random(shape)) * (1 + 1e-3 * random.standard_normal(shape))).astype(dtype)
        for name in ("cumsum", "cumprod"):
            for of, step in ((x, 1), (x[..., ::-1], -1)):
                along = np.flip(of, axis) if step < 0 else of
                want = getattr(np, name)(along.astype("complex128"), axis=axis)
                want = np.flip(want, axis) if step < 0 else want
                got = np.asarray(getattr(tn, name)(tn.array(of), axis=axis, reverse=step < 0))
                assert got.dtype == dtype and np.allclose(got, want, tolerance, tolerance)
        assert np.allclose(np.asarray(tn.prod(tn.array(x), axis=axis)), np.prod(x, axis), tolerance, tolerance)
    many = np.array([1] * 37 + [complex(np.inf, 1)] + [1] * 3, dtype)
    assert np.isinf(np.asarray(tn.cumprod(tn.array(many[37:]), axis=0))[0].real)  # the number itself
    assert np.isnan(complex(tn.prod(tn.array(many))).imag)


def test_no_function_of_the_package_hides_an_operator():
    names = {name for ids in tn._ids().values() for name in ids}
    own = {name for name in names & vars(tn).keys() if inspect.isfunction(vars(tn)[name]) or inspect.isclass(vars(tn)[name])}
    transforms = {"checkpoint", "cond", "scan", "stop_gradient", "while_loop"}
    assert own - set(tn._standard.NAMES) == transforms


@pytest.mark.parametrize("name, count", [("gamma", 1), ("beta", 2), ("dirichlet", 1)])
def test_parameters_of_samples_are_constants(name, count):
    draw, key = getattr(tn.random, name), tn.random.key(1)
    a = tn.array([0.5, 1.5, 2.5], dtype="float32")
    slopes = tn.grad(lambda a: tn.sum(draw(key, *[a] * count) * a))(a)
    assert np.array_equal(np.asarray(slopes), np.asarray(draw(key, *[a] * count)))

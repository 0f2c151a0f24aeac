# SPDX-License-Identifier: MIT
"""Derivatives, batches, functions that replay, branches and loops."""

import numpy as np
import pytest

import tenon as tn

X = tn.array([1.0, 2.0, 3.0])


def test_gradients_over_trees():
    def loss(p, x):
        return tn.sum(p["w"] * x) + p["b"][0] * 2

    value, gradient = tn.value_and_grad(loss)({"w": tn.array([1.0, 1.0, 1.0]), "b": (tn.array(3.0),)}, X)
    assert value.item() == 12
    assert gradient["w"].tolist() == [1, 2, 3]
    assert gradient["b"][0].item() == 2
    assert tn.grad(lambda x, y: tn.sum(x * y), argnums=(0, 1))(X, X)[1].tolist() == [1, 2, 3]


def test_a_value_that_was_read_midway_keeps_its_derivative():
    def f(x):
        y = x * x
        assert float(y) == 9
        tn.eval(y)
        return y * y if y > 5 else y

    assert tn.grad(f)(tn.array(3.0)).item() == 108
    result, pull = tn.vjp(f, tn.array(3.0))
    assert float(result) == 81
    assert pull(tn.array(1.0))[0].item() == 108


def test_second_derivatives_and_tangents():
    assert tn.grad(tn.grad(lambda x: x * x * x))(tn.array(2.0)).item() == 12
    value, tangent = tn.jvp(lambda x: x * x, (X,), (tn.ones_like(X),))
    assert (value.tolist(), tangent.tolist()) == ([1, 4, 9], [2, 4, 6])
    assert tn.grad(lambda x: tn.sum(tn.stop_gradient(x) * x))(X).tolist() == [1, 2, 3]


def test_batches():
    m = tn.reshape(tn.arange(6.0), [2, 3])
    assert tn.vmap(lambda a: tn.sum(a) + X[0])(m).tolist() == [4, 13]
    assert tn.vmap(lambda a, b: a @ b, in_axes=(0, None))(m, X).tolist() == [8, 26]
    both = tn.vmap(lambda a: {"s": tn.sum(a), "d": a * 2}, in_axes=1)(m)
    assert (both["s"].tolist(), both["d"].shape) == ([3, 5, 7], (3, 2))
    per_sample = tn.vmap(tn.grad(lambda a: tn.sum(a * a)))(m)
    assert per_sample.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_functions_are_traced_once_a_signature():
    calls = []

    @tn.function
    def f(p, k, mode):
        calls.append(mode)
        return {"sum": p["a"] + p["b"] * k, "mode": p["a"]}

    p = {"a": X, "b": X}
    for _ in range(3):
        assert f(p, 2.0, "x")["sum"].tolist() == [3, 6, 9]
    assert f(p, 3.0, "x")["sum"].tolist() == [4, 8, 12]
    assert calls == ["x"]
    f(p, 2.0, "y")
    f({"a": X[:2], "b": X[:2]}, 2.0, "x")
    assert calls == ["x", "y", "x"]
    outer = tn.function(lambda x: f({"a": x, "b": x}, 2.0, "z")["sum"] + X)
    assert outer(X).tolist() == [4, 8, 12]
    step = tn.function(tn.value_and_grad(lambda w: tn.sum(w * w)))
    assert step(X)[1].tolist() == [2, 4, 6]


def test_a_function_that_replays_has_derivatives():
    x, one = tn.array(3.0), tn.array(1.0)
    f = tn.function(lambda x: x * x)
    for _ in range(2):  # the second time of each has been traced before
        assert f(x).item() == 9
        assert [tn.grad(f)(x).item(), tn.grad(tn.grad(f))(x).item()] == [6, 2]
        assert [t.item() for t in tn.jvp(f, (x,), (one,))] == [9, 6]
        assert tn.vjp(f, x)[1](one)[0].item() == 6
        assert tn.vmap(tn.grad(f))(tn.array([1.0, 2.0, 3.0])).tolist() == [2, 4, 6]
        assert tn.grad(lambda w: tn.function(lambda a: a * w)(x))(x).item() == 3
        assert tn.function(tn.grad(f))(x).item() == 6


def test_what_was_read_keeps_outer_derivatives_and_objects_that_took_new_values():
    total = tn.array(0.0)

    def f(x):
        assert x.item() == 2
        total[...] = x * x
        assert total.item() == 4
        return total * x

    assert tn.grad(f)(tn.array(2.0)).item() == 12
    assert tn.grad(tn.grad(f))(tn.array(2.0)).item() == 12


def test_only_arguments_that_were_named_are_given_away():
    f = tn.function(lambda k, x, y: x * k + y, donate=2)
    x, y = X + 0, X + 1
    for _ in range(2):
        y = f(2.0, x, y)
    assert (x.tolist(), y.tolist()) == ([1, 2, 3], [6, 11, 16])
    g = tn.function(lambda k, x: x * k, static=0)
    assert [g(3, X).tolist()[0], g(4, X).tolist()[0], g.traces] == [3, 4, 2]


def test_a_function_within_a_trace_leaves_nothing_of_it_behind():
    holder = []
    f = tn.function(lambda x: x * holder[0])

    def outer(x):
        holder[:] = [x + 1]
        return f(x)

    assert tn.function(outer)(X).tolist() == [2, 6, 12]
    holder[:] = [X]
    assert f(X).tolist() == [1, 4, 9]


def test_a_donated_array_is_given_away():
    f = tn.function(lambda x, y: x + y, donate=0)
    given = X + 0
    assert f(given, X).tolist() == [2, 4, 6]
    with pytest.raises(ValueError):
        given.tolist()


def test_branches_and_loops():
    for flag, want in [(True, 2), (False, 0)]:
        assert tn.cond(tn.array(flag), lambda a: a + 1, lambda a: a - X[0], X[0]).item() == want
    assert tn.while_loop(lambda v: tn.sum(v) < 100, lambda v: v * 2, X).tolist() == [32, 64, 96]
    carry, ys = tn.scan(lambda c, a: (c + a, c * a), tn.array(0.0), X)
    assert (carry.item(), ys.tolist()) == (6, [0, 2, 9])
    f = tn.checkpoint(lambda a: tn.sum(tn.exp(a) * X))
    np.testing.assert_allclose(tn.grad(f)(X).tolist(), np.exp([1, 2, 3]) * [1, 2, 3], rtol=1e-6)


def test_what_a_mapped_body_reads_keeps_its_derivative():
    v, w = tn.array([1.0, 2.0, 3.0]), tn.array(3.0)

    def f(w):
        def body(a, b):
            y = w * w
            assert (float(y), tn.sum(b).item(), f"{y}") == (9, 6, "9.0")
            y[...] = y * 1
            return a * y if y > 5 else a

        return tn.sum(tn.vmap(body, in_axes=(0, None))(v, v))

    assert f(w).item() == 54
    assert [tn.grad(f)(w).item(), tn.grad(tn.grad(f))(w).item()] == [36, 12]
    assert tn.jvp(f, (w,), (tn.array(1.0),))[1].item() == 36
    assert tn.vmap(tn.vmap(lambda a: a * float(v[0] + 1)))(tn.stack([v, v])).tolist() == [[2, 4, 6]] * 2
    assert tn.vmap(tn.function(lambda a: a * v[1]))(v).tolist() == [2, 4, 6]
    assert tn.vmap(lambda a: (a, v), out_axes=(0, None))(v)[1].tolist() == [1, 2, 3]
    assert tn.function(tn.vmap(tn.grad(lambda a: a * a)))(v).tolist() == [2, 4, 6]


def test_what_a_mapped_body_prints_is_all_slices():
    shown = []

    def f(x):
        y = x * x
        shown.append(str(y))
        return y * y

    v = tn.array([1.0, 2.0, 3.0])
    assert tn.vmap(tn.grad(f))(v).tolist() == [4, 32, 108]
    assert tn.grad(lambda v: tn.sum(tn.vmap(f)(v)))(v).tolist() == [4, 32, 108]
    assert tn.vmap(f, in_axes=1)(tn.stack([v, v])).tolist() == [[1, 1], [16, 16], [81, 81]]
    assert tn.vmap(tn.vmap(f))(v[None]).tolist() == [[1, 16, 81]]
    assert shown == ["<each slice of [1. 4. 9.]>"] * 2 + ["<each slice of [[1. 1.]\n [4. 4.]\n [9. 9.]]>",
                                                         "<each slice of <each slice of [[1. 4. 9.]]>>"]


def test_a_read_in_a_body_that_builds_a_graph_names_the_line():
    x = tn.array([1.0, 2.0])
    for transform, words in [(tn.function, "body of a function has no value yet"), (tn.vmap, "stands for each slice"),
                             (lambda f: lambda x: tn.cond(x[0] > 0, f, f, x), "body of a cond"),
                             (lambda f: tn.function(tn.vmap(f)), "an array within the body of a"),
                             (lambda f: tn.function(tn.grad(f)), "body of a function")]:
        for read in [print, float, bool, str, lambda y: y.tolist(), tn.eval]:
            if transform is tn.vmap and read in (print, str):
                continue  # which show all slices
            with pytest.raises(ValueError) as caught:
                transform(lambda a: read(tn.sum(a * 2)) or a)(x)
            assert "test_transforms.py:" in str(caught.value) and words in str(caught.value)


def test_a_body_that_changes_what_is_outside_says_so():
    x, state = tn.array([1.0, 2.0]), tn.array([0.0, 0.0])

    def assign(a):
        state[...] = a
        return a

    for transform in [tn.function, tn.vmap, tn.checkpoint]:
        with pytest.raises(ValueError, match=r"test_transforms.py:\d+: the body of a .* changes an array"):
            transform(assign)(x)
        assert state.tolist() == [0, 0]

    def inside(a):
        b = tn.zeros(2)
        b[0] = a[1]
        a += 1
        return a + b

    assert tn.function(inside)(x).tolist() == [4, 3]
    assert x.tolist() == [1, 2]


def test_jacobians_and_hessians():
    a = tn.array([[1.0, 2.0, 0.5], [3.0, -1.0, 4.0]])
    assert tn.jacobian(lambda x: a @ x)(X).tolist() == a.tolist()
    by = tn.jacobian(lambda p, y: {"s": p["w"] * y, "n": tn.sum(p["b"])}, argnums=(0, 1))({"w": X, "b": X}, X)
    assert by["s"][0]["w"].tolist() == np.diag([1, 2, 3]).tolist()
    assert by["s"][0]["b"].tolist() == np.zeros((3, 3)).tolist()
    assert (by["n"][0]["b"].tolist(), by["n"][1].tolist()) == ([1, 1, 1], [0, 0, 0])
    assert tn.jacobian(lambda x: x[:, None] * X)(X).shape == (3, 3, 3)
    assert tn.jacobian(lambda x, y: x * y, argnums=1)(X, X).tolist() == np.diag([1, 2, 3]).tolist()
    assert tn.hessian(lambda x: tn.sum(x ** 3))(X).tolist() == np.diag([6, 12, 18]).tolist()

    def f(x, y):
        return tn.sum(x * x * y) + tn.sum(y ** 3)

    (xx, xy), (yx, yy) = tn.hessian(f, argnums=(0, 1))(X, X)
    assert (xx.tolist(), yy.tolist()) == (np.diag([2, 4, 6]).tolist(), np.diag([6, 12, 18]).tolist())
    assert xy.tolist() == yx.tolist() == np.diag([2, 4, 6]).tolist()
    assert tn.jacobian(lambda x: x)(tn.zeros([0])).shape == (0, 0)
    # Batches of Hessians, and the derivative of one.
    both = tn.stack([X, 2 * X])
    assert tn.vmap(tn.hessian(lambda x: tn.sum(x ** 3)))(both).tolist() == [np.diag([6, 12, 18]).tolist(), np.diag([12, 24, 36]).tolist()]
    assert tn.grad(lambda x: tn.sum(tn.hessian(lambda z: tn.sum(z ** 4))(x)))(X).tolist() == [24, 48, 72]
    assert tn.function(tn.jacobian(lambda x: x * x))(X).tolist() == np.diag([2, 4, 6]).tolist()


@pytest.mark.parametrize("transform, function, x, error, says", [
    (tn.jacobian, lambda x: x, tn.array([1, 2]), TypeError, "jacobian: an argument: got int64, expected floats"),
    (tn.jacobian, lambda x: x, tn.array([1j]), TypeError, r"got complex64, expected floats: take real\(\)"),
    (tn.jacobian, lambda x: x + 1j, X, TypeError, "jacobian: a result: got complex64"),
    (tn.jacobian, lambda x: tn.argmax(x), X, TypeError, "jacobian: a result: got int64"),
    (tn.hessian, lambda x: x, X, ValueError, r"hessian: the function gave \(3,\), expected an array of one element"),
    (tn.hessian, lambda x: tn.argmax(x), X, TypeError, "hessian: the result: got int64"),
    (tn.hessian, lambda x: 3.0, X, ValueError, "hessian: the function gave float"),
])
def test_what_has_no_jacobian_or_hessian(transform, function, x, error, says):
    with pytest.raises(error, match=says):
        transform(function)(x)
    with pytest.raises(TypeError, match="argument 3 of 1"):
        transform(function, argnums=3)(x)


def test_chains_in_segments():
    weights = [tn.array(np.cos(np.arange(16.0) * (k + 1)).reshape(4, 4).astype("f")) for k in range(6)]
    x = tn.array(np.linspace(-1, 1, 8, dtype="f").reshape(2, 4))

    def loss(weights, segments):
        layers = [lambda v, w=w: {"h": tn.tanh(v["h"] @ w), "n": v["n"] + 1} for w in weights]
        result = tn.checkpoint_sequential(layers, segments, {"h": x, "n": tn.array(0.0)})
        return tn.sum(result["h"]) + result["n"]

    want = tn.value_and_grad(loss)(weights, 1)
    for segments in (2, 4, 6):
        value, gradients = tn.value_and_grad(loss)(weights, segments)
        assert value.item() == want[0].item()
        assert [g.tolist() for g in gradients] == [g.tolist() for g in want[1]]
    for segments in (0, 7):
        with pytest.raises(ValueError, match=f"checkpoint_sequential: {segments} segments of 6 functions"):
            loss(weights, segments)


def test_a_constant_beside_a_sum_is_there_for_each_row():
    """Rows that one program takes together: what is the same for all of them is written for each."""

    def f(x):
        product = tn.einsum("bij,bik->bjk", x, x)
        squares = tn.vecdot(product + product, product)
        count = tn.setxor1d(tn.diff(squares, n=2, axis=1), product + product, size=5)[1]
        return tn.isreal(count), count & tn.cumulative_sum(squares, axis=0)

    x = np.random.default_rng(0).integers(-9, 9, (3, 2, 3, 4)).astype("i4")
    real, numbers = tn.vmap(f)(tn.array(x))
    assert np.asarray(real).tolist() == [True] * 3
    assert np.array_equal(np.asarray(numbers), np.stack([np.asarray(f(tn.array(row))[1]) for row in x]))

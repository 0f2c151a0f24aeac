# SPDX-License-Identifier: MIT
"""Functions whose body is traced once for all extents: values beside the body's own, and what is traced again."""
import gc
import threading
import weakref

import numpy as np
import pytest
import tenon as tn

W = tn.array(np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3))


def rows(n, columns=4, dtype="f4"):
    return tn.array(np.cos(np.arange(n * columns)).reshape(n, columns).astype(dtype))


def norm(x):
    return (x - tn.mean(x, axis=0)) / tn.sqrt(tn.var(x, axis=0) + 1e-5)


BODIES = {
    "a tree of results": lambda x: {"a": tn.nn.softmax(x @ W, axis=1), "b": [tn.mean(x, axis=0), x * 2]},
    "numbers of extents": lambda x: x.reshape(-1) / x.shape[0] + tn.arange(x.shape[0] * 4, dtype=tn.float32),
    "slices": lambda x: (x[1:] - x[:-1], x[:: -1], tn.concatenate([x, x])),
    "a gradient": lambda x: tn.grad(lambda y: tn.sum(norm(y) ** 2 * y))(x),
    "a batch": lambda x: tn.vmap(lambda row: row @ W)(x),
    "a loop": lambda x: tn.scan(lambda c, row: (c + row, c * row), tn.zeros(4), x),
    "a branch": lambda x: tn.cond(tn.sum(x) > 0, lambda y: y + 1, lambda y: y - 1, x),
}


def leaves(tree):
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, (tuple, list)) else [tree]


@pytest.mark.parametrize("name", BODIES)
def test_other_extents_are_built_without_the_body(name):
    f = tn.function(BODIES[name], shapeless=True)
    f(rows(3))
    traced = f.traces
    for n in (5, 40, 3, 2):
        for got, want in zip(leaves(f(rows(n))), leaves(BODIES[name](rows(n))), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)
    assert f.traces == traced
    f(rows(1))  # an extent of 1 may mean another thing
    assert f.traces > traced


def test_what_does_not_follow_from_extents_keeps_them():
    def body(x):
        return [x[i] * 2 for i in range(x.shape[0])]

    f = tn.function(body, shapeless=True)
    assert [len(f(rows(n))) for n in (3, 4, 3)] == [3, 4, 3]
    assert "axis 0 of input 0 keeps the extent 3: the body raised: the body's result has another structure" in f.why()
    f = tn.function(lambda x: x @ W, shapeless=True)
    f(rows(3))
    assert f.why().startswith("axis 1 of input 0 keeps the extent 4: ")
    with pytest.raises(ValueError, match="matmul"):
        f(rows(3, 5))
    np.testing.assert_allclose(np.asarray(f(rows(9))), np.asarray(rows(9) @ W), rtol=1e-6)
    with pytest.raises(ValueError, match="axis 1 of input 0 keeps the extent 4"):
        tn.function(lambda x: x @ W, shapeless="strict")(rows(3))


def test_arguments_that_are_no_arrays_and_dtypes_are_traced_apart():
    f = tn.function(lambda x, by=1, *, plus=None: x * by if plus is None else x * by + plus["b"], shapeless="strict")
    for n in (3, 6):
        x = rows(n)
        assert f(x).tolist() == x.tolist()
        assert f(x, 2).tolist() == (x * 2).tolist()
        np.testing.assert_allclose(np.asarray(f(x, 2, plus={"b": x})), np.asarray(x * 3), rtol=1e-6)
        assert f(x.astype(tn.float64)).dtype == tn.float64
        counts = f.traces if n == 3 else counts
    assert f.traces == counts


def test_what_a_body_raises_is_raised():
    stop = []

    def body(x):
        if stop and x.shape[0] != 3:  # in a trace for other extents
            raise KeyboardInterrupt
        assert x.shape[1] == 4, "four columns"
        return x * 2

    f = tn.function(body, shapeless=True)
    with pytest.raises(AssertionError, match="four columns"):
        f(rows(3, 5))
    stop.append(True)
    with pytest.raises(KeyboardInterrupt):
        f(rows(3))
    stop.clear()
    assert f(rows(3)).tolist() == (rows(3) * 2).tolist()
    with pytest.raises(TypeError, match="shapeless is 3"):
        tn.function(body, shapeless=3)


def test_memory_of_arguments_is_given_away_and_functions_end():
    f = tn.function(lambda x, y: x + y, donate=0, shapeless="strict")
    for n in (3, 7):
        given = rows(n) + 0
        tn.eval(given)
        assert f(given, rows(n)).tolist() == (rows(n) * 2).tolist()
        with pytest.raises(ValueError):
            given.tolist()

    class Body:
        def __call__(self, x):
            return x + 1

    body = Body()
    f = tn.function(body, shapeless=True)
    f(rows(3))
    gone = weakref.ref(body)
    del body, f
    gc.collect()
    assert gone() is None


def test_threads_share_a_function():
    f, failed = tn.function(lambda x: x @ W + x.shape[0], shapeless=True), []

    def work(first):
        for n in range(first, first + 12, 3):
            if not np.allclose(np.asarray(f(rows(n))), np.asarray(rows(n) @ W) + n, rtol=1e-5):
                failed.append(n)

    threads = [threading.Thread(target=work, args=(first,)) for first in (2, 3, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed

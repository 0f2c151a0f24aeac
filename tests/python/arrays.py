#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package `tenon` beside NumPy: conversions, operators, indexing, transforms, errors."""

import copy
import gc
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import tenon as tn

A = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
I, J = np.array([0, 2, 1]), np.array([[1], [3]])
INDICES = [
    0, -1, (0, 1), (slice(None), 1), slice(None, None, -1), (slice(1, None), slice(None, None, 2)), (Ellipsis, 0),
    (None, 0), (0, None, Ellipsis, 1), (slice(None), I), (I[:2] % 2, I[:2]), (slice(None), slice(None), I, I),
    (0, slice(None), I), (slice(None), I, 0), (I % 2, slice(None), I), (slice(None), I, slice(None), I), (J % 2, I),
    A[:, :, 0, 0] > 20, (A[:, :, 0, 0] > 20, 0), (slice(None), slice(None), 0, slice(4, 1, -1)), A > 50,
    (slice(None, None, -2), Ellipsis, slice(-1, -4, -2)), (Ellipsis, None), np.int64(1), [0, 1], ([0, 1], [1, 2]),
    (slice(5, 2),), (0, 0, 0, 0), np.zeros(A.shape, bool), (slice(None), np.array([True, False, True])),
]  # fmt: skip


def ours(index):
    """The same index with Arrays for NumPy's."""
    if isinstance(index, tuple):
        return tuple(ours(part) for part in index)
    return tn.array(index) if isinstance(index, np.ndarray) else index


def has_repeats(index):
    return A[index].size != np.unique(A[index]).size


class Arrays(unittest.TestCase):
    def same(self, got, want):
        got = np.asarray(got)
        self.assertEqual(got.shape, want.shape)
        np.testing.assert_array_equal(got, want)

    def test_every_dtype_goes_to_python_and_back(self):
        for name in tn._dtypes:
            x = tn.array([0, 1], name)
            self.assertEqual(x.dtype, name)
            self.assertEqual([complex(v) for v in x.tolist()], [0, 1])
            y = pickle.loads(pickle.dumps(x))
            self.assertEqual((y.dtype, y.tolist()), (x.dtype, x.tolist()))
            if not name.startswith(("bfloat", "float8")):
                self.assertEqual(np.asarray(x).dtype.name, name)
                self.assertEqual(tn.array(np.array([0, 1], name)).dtype, name)
        self.assertEqual(np.asarray(tn.array([1], "bfloat16")).dtype, np.float32)

    def test_numbers_take_the_dtype_of_the_array(self):
        x = tn.array([1, 2], "int8")
        for result, name in [(x + 1, "int8"), (x + 1.5, "float64"), (x * True, "int8"), (1 - x, "int8"),
                             (tn.array([1.0]) * 2, "float32"), (tn.array([1.0]) * 2j, "complex64"),
                             (tn.array([1, 2]), "int64"), (tn.array([1.0]), "float32"), (tn.array(1j), "complex64"),
                             (tn.array(2**63), "uint64"), (tn.array([]), "float32"), (tn.array([True]), "bool")]:
            self.assertEqual(result.dtype, name)

    def test_operators_are_numpys(self):
        a, b = np.array([7.0, -7, 0.5]), np.array([2.0, 3, -4])
        for f in [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y,
                  lambda x, y: x // y, lambda x, y: x % y, lambda x, y: abs(x) ** y, lambda x, y: x @ y,
                  lambda x, y: x < y, lambda x, y: x >= y, lambda x, y: x == y, lambda x, y: -x, lambda x, y: +x]:
            np.testing.assert_allclose(np.asarray(f(tn.array(a), tn.array(b))), f(a, b), rtol=1e-15)
        a, b = np.array([12, 5]), np.array([3, 1])
        for f in [lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: x << y, lambda x, y: x >> y,
                  lambda x, y: ~x]:
            self.same(f(tn.array(a), tn.array(b)), f(a, b))
        self.same(np.ones(2) + tn.array([1.0, 2.0]), np.array([2.0, 3.0]))
        self.assertIsInstance(np.ones(2) * tn.array([1.0, 2.0]), tn.Array)

    def test_indices_are_numpys(self):
        x = tn.array(A)
        for index in INDICES:
            with self.subTest(index=index):
                self.same(x[ours(index)], A[index])

    def test_updates_are_numpys(self):
        for index in INDICES:
            with self.subTest(index=index):
                want, value = A.copy(), np.arange(A[index].size, dtype=np.float32).reshape(A[index].shape) + 1000
                if not has_repeats(index):
                    x = tn.array(A)
                    x[ours(index)] = tn.array(value)
                    want[index] = value
                    self.same(x, want)
                want = A.copy()
                want[index] = 7
                self.same(tn.array(A).at[ours(index)].set(7), want)
                for mode, ufunc in [("add", np.add), ("subtract", np.subtract), ("max", np.maximum)]:
                    want = A.copy()
                    ufunc.at(want, index, 60)
                    self.same(getattr(tn.array(A).at[ours(index)], mode)(60), want)

    def test_an_object_takes_a_new_value_and_others_keep_theirs(self):
        x = tn.array([1.0, 2.0])
        y, part = x, x[:1]
        x[0] = 9
        self.assertEqual((y.tolist(), part.tolist()), ([9, 2], [1]))
        x += 1
        self.assertEqual((x.tolist(), y.tolist()), ([10, 3], [9, 2]))
        self.assertEqual(copy.deepcopy(x).tolist(), [10, 3])

    def test_memory_is_handed_over(self):
        x = tn.array([[1.0, 2.0], [3.0, 4.0]])
        self.same(np.from_dlpack(x), np.array([[1, 2], [3, 4]], np.float32))
        self.same(tn.from_dlpack(np.arange(3.0)), np.arange(3.0))
        self.same(tn.array(np.arange(6).reshape(2, 3).T), np.arange(6).reshape(2, 3).T)
        view = memoryview(x)
        self.assertTrue(view.readonly)
        x[0] = 0
        self.assertEqual(view.tolist(), [[1, 2], [3, 4]])
        with self.assertRaises(BufferError):
            memoryview(tn.array([1], "bfloat16"))

    def test_formatting(self):
        for x, want in [(tn.array([1.0, 2.5]), "array([1. , 2.5])"), (tn.array(5), "array(5)"),
                        (tn.array([[True], [False]]), "array([[ True],\n       [False]])"),
                        (tn.array([1], "int8"), "array([1], dtype=int8)"),
                        (tn.arange(2000), "array([   0,    1,    2, ..., 1997, 1998, 1999])"),
                        (tn.zeros([0, 3]), "array([], shape=(0, 3), dtype=float32)")]:  # fmt: skip
            self.assertEqual(repr(x), want)

    def test_operators_describe_themselves(self):
        self.assertEqual(str(inspect.signature(tn.sum)).split(",")[0], "(x")
        self.assertIn("axis", inspect.signature(tn.softmax).parameters)
        self.assertIn("rows", dir(tn.nn) + ["rows"])
        self.assertIn("softmax", dir(tn))
        self.assertIn("The sum", tn.sum.__doc__)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.npy"
            tn.save(path, tn.array([1.0, 2.0]))
            self.same(np.load(path), np.array([1, 2], np.float32))
            self.assertEqual(tn.load(path).tolist(), [1, 2])
            path = pathlib.Path(folder) / "x.safetensors"
            tn.save(path, {"a": tn.array([1.0]), "b": tn.array([2])})
            self.assertEqual({k: v.tolist() for k, v in tn.load(path).items()}, {"a": [1], "b": [2]})


class Transforms(unittest.TestCase):
    x = tn.array([1.0, 2.0, 3.0])

    def test_gradients_over_trees(self):
        def loss(p, x):
            return tn.sum(p["w"] * x) + p["b"][0] * 2

        value, gradient = tn.value_and_grad(loss)({"w": tn.array([1.0, 1.0, 1.0]), "b": (tn.array(3.0),)}, self.x)
        self.assertEqual(value.item(), 12)
        self.assertEqual(gradient["w"].tolist(), [1, 2, 3])
        self.assertEqual(gradient["b"][0].item(), 2)
        self.assertEqual(tn.grad(lambda x, y: tn.sum(x * y), argnums=(0, 1))(self.x, self.x)[1].tolist(), [1, 2, 3])

    def test_a_value_that_was_read_midway_keeps_its_derivative(self):
        def f(x):
            y = x * x
            self.assertEqual(float(y), 9)
            tn.eval(y)
            return y * y if y > 5 else y

        self.assertEqual(tn.grad(f)(tn.array(3.0)).item(), 108)
        result, pull = tn.vjp(f, tn.array(3.0))
        self.assertEqual(float(result), 81)
        self.assertEqual(pull(tn.array(1.0))[0].item(), 108)

    def test_second_derivatives_and_tangents(self):
        self.assertEqual(tn.grad(tn.grad(lambda x: x * x * x))(tn.array(2.0)).item(), 12)
        value, tangent = tn.jvp(lambda x: x * x, (self.x,), (tn.ones_like(self.x),))
        self.assertEqual((value.tolist(), tangent.tolist()), ([1, 4, 9], [2, 4, 6]))
        self.assertEqual(tn.grad(lambda x: tn.sum(tn.stop_gradient(x) * x))(self.x).tolist(), [1, 2, 3])

    def test_batches(self):
        m = tn.reshape(tn.arange(6.0), [2, 3])
        self.assertEqual(tn.vmap(lambda a: tn.sum(a) + self.x[0])(m).tolist(), [4, 13])
        self.assertEqual(tn.vmap(lambda a, b: a @ b, in_axes=(0, None))(m, self.x).tolist(), [8, 26])
        both = tn.vmap(lambda a: {"s": tn.sum(a), "d": a * 2}, in_axes=1)(m)
        self.assertEqual((both["s"].tolist(), both["d"].shape), ([3, 5, 7], (3, 2)))
        per_sample = tn.vmap(tn.grad(lambda a: tn.sum(a * a)))(m)
        self.assertEqual(per_sample.tolist(), [[0, 2, 4], [6, 8, 10]])

    def test_functions_are_traced_once_a_signature(self):
        calls = []

        @tn.function
        def f(p, k, mode):
            calls.append(mode)
            return {"sum": p["a"] + p["b"] * k, "mode": p["a"]}

        p = {"a": self.x, "b": self.x}
        for _ in range(3):
            self.assertEqual(f(p, 2.0, "x")["sum"].tolist(), [3, 6, 9])
        self.assertEqual(f(p, 3.0, "x")["sum"].tolist(), [4, 8, 12])
        self.assertEqual(calls, ["x"])
        f(p, 2.0, "y")
        f({"a": self.x[:2], "b": self.x[:2]}, 2.0, "x")
        self.assertEqual(calls, ["x", "y", "x"])
        outer = tn.function(lambda x: f({"a": x, "b": x}, 2.0, "z")["sum"] + self.x)
        self.assertEqual(outer(self.x).tolist(), [4, 8, 12])
        step = tn.function(tn.value_and_grad(lambda w: tn.sum(w * w)))
        self.assertEqual(step(self.x)[1].tolist(), [2, 4, 6])

    def test_what_was_read_keeps_outer_derivatives_and_objects_that_took_new_values(self):
        total = tn.array(0.0)

        def f(x):
            self.assertEqual(x.item(), 2)
            total[...] = x * x
            self.assertEqual(total.item(), 4)
            return total * x

        self.assertEqual(tn.grad(f)(tn.array(2.0)).item(), 12)
        self.assertEqual(tn.grad(tn.grad(f))(tn.array(2.0)).item(), 12)

    def test_only_arguments_that_were_named_are_given_away(self):
        f = tn.function(lambda k, x, y: x * k + y, donate=2)
        x, y = self.x + 0, self.x + 1
        for _ in range(2):
            y = f(2.0, x, y)
        self.assertEqual((x.tolist(), y.tolist()), ([1, 2, 3], [6, 11, 16]))
        g = tn.function(lambda k, x: x * k, static=0)
        self.assertEqual([g(3, self.x).tolist()[0], g(4, self.x).tolist()[0], g.traces], [3, 4, 2])

    def test_a_function_within_a_trace_leaves_nothing_of_it_behind(self):
        holder = []
        f = tn.function(lambda x: x * holder[0])

        def outer(x):
            holder[:] = [x + 1]
            return f(x)

        self.assertEqual(tn.function(outer)(self.x).tolist(), [2, 6, 12])
        holder[:] = [self.x]
        self.assertEqual(f(self.x).tolist(), [1, 4, 9])

    def test_a_donated_array_is_given_away(self):
        f = tn.function(lambda x, y: x + y, donate=0)
        given = self.x + 0
        self.assertEqual(f(given, self.x).tolist(), [2, 4, 6])
        with self.assertRaises(ValueError):
            given.tolist()

    def test_branches_and_loops(self):
        for flag, want in [(True, 2), (False, 0)]:
            self.assertEqual(tn.cond(tn.array(flag), lambda a: a + 1, lambda a: a - self.x[0], self.x[0]).item(), want)
        self.assertEqual(tn.while_loop(lambda v: tn.sum(v) < 100, lambda v: v * 2, self.x).tolist(), [32, 64, 96])
        carry, ys = tn.scan(lambda c, a: (c + a, c * a), tn.array(0.0), self.x)
        self.assertEqual((carry.item(), ys.tolist()), (6, [0, 2, 9]))
        f = tn.checkpoint(lambda a: tn.sum(tn.exp(a) * self.x))
        np.testing.assert_allclose(tn.grad(f)(self.x).tolist(), np.exp([1, 2, 3]) * [1, 2, 3], rtol=1e-6)


class Failures(unittest.TestCase):
    def test_errors_have_pythons_kinds_and_say_what_was_expected(self):
        x = tn.array([1.0, 2.0])

        def on_no_device():
            with tn.device("qqq:7"):
                return x + 1

        for kind, words, f in [
            (ValueError, "ragged", lambda: tn.array([[1], [1, 2]])),
            (ValueError, "ragged", lambda: tn.array([1, [2]])),
            (TypeError, "no array", lambda: tn.array(object())),
            (TypeError, "no array", lambda: tn.array("a")),
            (TypeError, "no dtype", lambda: tn.array(np.array(["a"]))),
            (TypeError, "no dtype", lambda: tn.array([1], "q")),
            (OverflowError, "300", lambda: tn.array([300], "uint8")),
            (OverflowError, "-1", lambda: tn.array([-1], "uint8")),
            (OverflowError, "", lambda: tn.array([2**70])),
            (TypeError, "unsupported operand", lambda: x + "a"),
            (TypeError, "misses argument 'y'", lambda: tn.add(x)),
            (TypeError, "at most 2", lambda: tn.add(x, x, x)),
            (TypeError, "unexpected argument 'z'", lambda: tn.add(x, z=x)),
            (TypeError, "two values for argument 'x'", lambda: tn.add(x, x=x)),
            (TypeError, "axis: got 'q'", lambda: tn.sum(x, axis="q")),
            (AttributeError, "no operator 'foo'", lambda: tn.foo),
            (ValueError, "do not broadcast", lambda: x + tn.array([1.0, 2.0, 3.0])),
            (ValueError, "do not fill", lambda: tn.reshape(x, [7])),
            (ValueError, "single number", lambda: bool(x)),
            (TypeError, "unhashable", lambda: hash(x)),
            (TypeError, "without axes", lambda: len(tn.array(1))),
            (IndexError, "out of range", lambda: x[2]),
            (IndexError, "axes", lambda: x[0, 0]),
            (IndexError, "at most one", lambda: x[..., ...]),
            (IndexError, "no index", lambda: x[1.5]),
            (IndexError, "no index", lambda: x[tn.array([1.0])]),
            (IndexError, "mask", lambda: x[tn.array([True])]),
            (ValueError, "no value yet", lambda: tn.function(lambda a: float(a[0]))(x)),
            (ValueError, "traced body", lambda: tn.function(lambda a: a[a > 1])(x)),
            (ValueError, "one element", lambda: tn.grad(lambda a: a)(x)),
            (TypeError, "expected floats", lambda: tn.grad(lambda a: tn.sum(a))(tn.array([1]))),
            (ValueError, "structure", lambda: tn.vjp(lambda a: (a, a), x)[1](x)),
            (ValueError, "branches", lambda: tn.cond(tn.array(True), lambda a: a, lambda a: (a, a), x)),
            (ValueError, "out_axes", lambda: tn.vmap(lambda a: a, out_axes=-1)(x)),
            (ValueError, "no argument", lambda: tn.vmap(lambda a: a, in_axes=None)(x)),
            (ZeroDivisionError, "", lambda: tn.function(lambda a: a / (1 // 0))(x)),
            (LookupError, "no installed plugin", lambda: tn.save("/nonexistent/x.qqq", x)),
            (LookupError, "qqq", on_no_device),
        ]:
            with self.subTest(words=words):
                with self.assertRaises(kind) as caught:
                    f()
                self.assertIn(words, str(caught.exception))
        self.assertEqual((x + 1).tolist(), [2, 3])

    def test_an_array_that_leaves_a_trace_says_so(self):
        kept = []
        tn.function(lambda a: kept.append(a * 2) or a)(tn.array([1.0]))
        with self.assertRaisesRegex(ValueError, "has ended"):
            print(kept[0])
        with self.assertRaisesRegex(ValueError, "has ended"):
            kept[0] + 1

    def test_memory_does_not_grow(self):
        def resident():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        x = tn.array([1.0] * 8)
        calls = [lambda: x + x, lambda: x * 2.0, lambda: tn.sum(x, 0), lambda: tn.zeros([2]), lambda: tn.array([1.0]),
                 lambda: x[1:], lambda: x.tolist(), lambda: bytes(memoryview(x)), lambda: tn.split(x, 2)]
        for call in calls:
            for _ in range(300):
                call()
            gc.collect()
            before = resident()
            for _ in range(3000):
                call()
            gc.collect()
            self.assertLess(resident() - before, 300000)

    def test_threads(self):
        results = [None] * 4

        def work(i):
            x = tn.array([float(i)] * 100)
            for _ in range(50):
                x = tn.sqrt(x * x + 1.0) * 0.5
            results[i] = tn.sum(x).item()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({round(r, 3) for r in results}), 1)

    def test_the_process_ends_with_arrays_alive(self):
        program = ("import tenon as tn, numpy\nx = tn.array([1.0]); y = x + 1; z = numpy.asarray(y)\n"
                   "f = tn.function(lambda a: a); f(x)\nclass C: pass\nc = C(); c.self = c; c.x = x * 2\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_doctor_computes(self):
        done = subprocess.run([sys.executable, "-m", "tenon.doctor"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 + 4 + 9 = 14", done.stdout)


if __name__ == "__main__":
    unittest.main()

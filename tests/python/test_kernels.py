# SPDX-License-Identifier: MIT
"""Primitives of one's own: expressions, functions with rules, kernels in GLSL and in C. TENON_BACKEND says where; what
needs a Vulkan device is skipped without one."""

import ctypes
import gc
import inspect
import shutil
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tenon as tn
from tenon._kernels import selected_devices

X, Y = tn.array([1.0, 2.0, 3.0]), tn.array([4.0, 5.0, 6.0])
vulkan = pytest.mark.skipif(not any(d.startswith("vulkan") for d in selected_devices()), reason="no Vulkan device")
compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no compiler")
cpu = pytest.mark.skipif(not any(d.startswith("cpu") for d in selected_devices()), reason="no CPU device")


def near(x, want):
    np.testing.assert_allclose(np.asarray(x), np.asarray(want), rtol=1e-5, atol=1e-6)


# --- expressions ---


def test_an_expression_is_a_primitive():
    axpby = tn.expr("acme.axpby", "alpha * x + beta * y", alpha=1, beta=1)
    assert str(inspect.signature(axpby)) == "(x, y, *, alpha=1, beta=1)"
    assert (axpby.id, axpby(X, Y).op) == ("acme.axpby/1", "acme.axpby/1")
    near(axpby(X, Y, alpha=2), [6, 9, 12])
    near(tn.grad(lambda x: tn.sum(axpby(x, Y, alpha=3.0)))(X), [3, 3, 3])
    assert tn.grad(lambda a: tn.sum(axpby(X, Y, alpha=a)))(tn.array(2.0)).item() == 6
    assert tn.grad(tn.grad(lambda a: axpby(a * a, Y[0], alpha=a)))(tn.array(2.0)).item() == 12
    near(tn.vmap(lambda a: axpby(a, Y))(tn.stack([X, Y])), [[5, 7, 9], [8, 10, 12]])
    near(tn.function(lambda x, a: axpby(x, Y, alpha=a))(X, 2.0), [6, 9, 12])
    newer = tn.expr("acme.axpby", "alpha * x - beta * y", alpha=1, beta=1)
    near(newer(X, Y), [-3, -3, -3])
    near(axpby(X, Y), [5, 7, 9])
    steps = [step["label"] for s in tn.why(axpby(X, Y) * 2)["segments"] for step in s["steps"]]
    assert len(steps) == 1  # fused


def test_why_tells_the_types_of_all_outputs():
    plan = tn.why(*tn.topk(tn.array([[1.0, 2], [3, 4], [5, 6]]), k=1))
    expected = ("f32[3, 1]", ["f32[3, 1]", "i64[3, 1]"])
    assert [(node["type"], node["types"]) for node in plan["nodes"] if "topk" in node["op"]] == [expected]
    assert [(step["type"], step["types"]) for s in plan["segments"] for step in s["steps"] if "topk" in step["label"]] == [expected]


@pytest.mark.parametrize("text, arrays, attributes, want", [
    ("y, x -> y - x", (X, Y), {}, [-3, -3, -3]),
    ("m1 = mu * m + g; p - lr * m1, m1", (X, Y, Y), {"mu": 0.5, "lr": 2}, ([-5, -7, -9], [4.5, 6, 7.5])),
    ("e = exp(x - max(x)); e / sum(e)", (X,), {}, [0.09003057, 0.24472848, 0.66524094]),
    ("x == 2 ? 1.5e1 : x ** e", (X,), {"e": 2}, [1, 15, 9]),
    ("pow(x, 2) + pi * 0", (X,), {}, [1, 4, 9]),
])
def test_inputs_and_outputs_are_read_off_the_text(text, arrays, attributes, want):
    got = tn.expr("acme.read", text, **attributes)(*arrays)
    for part, values in zip(got, want) if isinstance(got, tuple) else [(got, want)]:
        near(part, values)


# --- functions with rules ---


def test_a_function_has_the_rules_that_it_is_given():
    @tn.custom_function
    def rounded(x):
        return tn.round(x)

    rounded.vjp(lambda primals, cotangents, outputs: cotangents * 2)
    near(rounded(X + 0.4), X)
    near(tn.grad(lambda x: tn.sum(rounded(x) * x))(X), [3, 6, 9])
    near(tn.function(tn.grad(lambda x: tn.sum(rounded(x) * x)))(X), [3, 6, 9])
    near(tn.vmap(tn.grad(lambda x: rounded(x) * x))(X), [3, 6, 9])
    near(tn.grad(lambda x: tn.sum(tn.grad(lambda x: tn.sum(rounded(x) ** 2))(x)))(X), [8, 8, 8])

    @tn.custom_function
    def scaled(x, y, n):
        return {"out": tn.sin(x) * y, "n": y * n}

    @scaled.jvp
    def _(primals, tangents):
        assert primals[2] == tangents[2] == 3
        return {"out": tangents[0] * 100 + tangents[1], "n": tangents[1]}

    @scaled.vmap
    def _(primals, axes):
        assert axes == (0, None, 3)
        return {"out": tn.sin(primals[0]) * primals[1] + 1000, "n": primals[1] * 3}, [None, 0]

    near(tn.jvp(lambda x: scaled(x, Y, 3)["out"], (X,), (X,))[1], [100, 200, 300])
    near(tn.vmap(lambda x: scaled(x, Y[0], 3)["out"])(X), np.sin([1, 2, 3]) * 4 + 1000)


def test_batches_keep_the_rules_of_derivatives():
    rounded = tn.custom_function(tn.round)
    rounded.vjp(lambda primals, cotangents, outputs: cotangents * 2)
    near(tn.grad(lambda x: tn.sum(tn.vmap(rounded)(x)))(X), [2, 2, 2])
    near(tn.grad(lambda x: tn.sum(tn.vmap(tn.vmap(rounded))(x)))(tn.stack([X, Y])), [[2] * 3] * 2)
    made = tn.stats()["plans_made"]
    for _ in range(3):
        near(tn.grad(lambda x: tn.sum(tn.vmap(rounded)(x)))(X), [2, 2, 2])
    assert tn.stats()["plans_made"] == made  # the same rules each time

    w = tn.array(5.0)
    f = tn.custom_function(lambda a, b, n: {"y": tn.round(a) * w + tn.sum(b) * n})
    f.vjp(lambda p, g, outputs: (g["y"] * 10 * p[1][0], tn.ones_like(p[1]) * g["y"] * p[0], None))
    b = tn.array([3.0, 4.0])
    shared = tn.grad(lambda a, b: tn.sum(tn.vmap(lambda a, b: f(a, b, 2)["y"], in_axes=(0, None))(a, b)), argnums=(0, 1))
    near(shared(X, b)[0], [30, 30, 30])
    near(shared(X, b)[1], [6, 6])
    columns = tn.matrix_transpose(tn.stack([b, b * 2, b * 3]))
    own = tn.grad(lambda a, b: tn.sum(tn.vmap(lambda a, b: f(a, b, 2)["y"], in_axes=(0, 1))(a, b)), argnums=(0, 1))
    near(own(X, columns)[0], [30, 60, 90])
    near(own(X, columns)[1], [[1, 2, 3]] * 2)

    forward = tn.custom_function(tn.round)
    forward.jvp(lambda primals, tangents: tangents * 7)
    near(tn.jvp(tn.vmap(forward), (X,), (Y,))[1], [28, 35, 42])


def test_one_derivative_gives_the_other():
    forward, back = tn.custom_function(lambda x, y: tn.round(x) * y), tn.custom_function(lambda x, y: (tn.round(x), y))
    forward.jvp(lambda primals, tangents: tangents[0] * 7 * primals[1] + tangents[1])
    back.vjp(lambda primals, g, outputs: (g[0] * 2 + g[1] * primals[1], g[1] * 3))
    assert [g.tolist() for g in tn.grad(lambda x, y: tn.sum(forward(x, y)), argnums=(0, 1))(X, Y)] == [[28, 35, 42], [1] * 3]
    near(tn.grad(lambda x: tn.sum(tn.vmap(forward)(x, Y)))(X), [28, 35, 42])
    near(tn.vmap(tn.grad(forward))(X, Y), [28, 35, 42])
    for f in [back, tn.vmap(back), tn.function(back)]:
        first, second = tn.jvp(f, (X, Y), (X, Y))[1]
        near(first, [2, 4, 6])
        near(second, [4 + 12, 10 + 15, 18 + 18])
    near(tn.grad(lambda x: tn.sum(tn.grad(lambda x: tn.sum(forward(x, x) ** 2))(x)))(X), [2 * (7 * v + 1) ** 2 + 14 * v * v
                                                                                       for v in (1, 2, 3)])


def test_rules_over_trees_may_leave_parts_out():
    @tn.custom_function
    def f(p, n):
        return p["u"] * n + p["v"]

    f.vjp(lambda primals, cotangents, outputs: ({"u": cotangents * 10, "v": None}, None))
    gradient = tn.grad(lambda p: tn.sum(f(p, 3)))({"u": X, "v": Y})
    near(gradient["u"], [10, 10, 10])
    near(gradient["v"], [0, 0, 0])


# --- GLSL ---


def scale(**options):
    return tn.vulkan_kernel("acme.scale", "y[index] = T(factor) * x[index];", template={"T": tn.float32, "factor": 3},
                            **options)


@vulkan
def test_a_kernel_takes_arrays_wherever_they_lie():
    for x in [X, X[1:], X[::-1], tn.array(2.0), tn.zeros((0, 3)), tn.arange(100003.0)]:
        near(scale()(x), np.asarray(x) * 3)
    near(tn.function(lambda x: scale()(x) + 1)(X), [4, 7, 10])
    copy = tn.vulkan_kernel("acme.copy", "y[index] = x[index];")
    for kind in tn._dtypes:
        z = tn.array([1, 0, 1, 1, 0, 1, 1], kind)
        for part in [z, z[2:], z[::-2], z[1:2]]:
            assert copy(part).tolist() == part.tolist()


@vulkan
def test_a_kernel_with_a_grid_and_a_rule_is_differentiated():
    product = tn.vulkan_kernel("acme.product", """
        const uint i = gl_GlobalInvocationID.y, k = gl_GlobalInvocationID.x;
        float sum = 0;
        for (uint t = 0; t < a_shape[1]; t++)
            sum += a[i * a_shape[1] + t] * b[t * b_shape[1] + k];
        c[i * c_shape[1] + k] = sum;
        """, inputs=["a", "b"], outputs=["c"], threads=(8, 8), grid=lambda a, b: (b.shape[1], a.shape[0]),
        shapes=lambda a, b: [(a.shape[0], b.shape[1])], reference=lambda a, b: a @ b,
        vjp=lambda primals, g, outputs: (g @ tn.matrix_transpose(primals[1]), tn.matrix_transpose(primals[0]) @ g))
    a, b = (tn.array(np.random.default_rng(0).random(shape, np.float32)) for shape in [(7, 5), (5, 9)])
    near(product(a, b), a @ b)
    want = tn.grad(lambda a: tn.sum((a @ b) ** 2))(a)
    near(tn.grad(lambda a: tn.sum(product(a, b) ** 2))(a), want)
    near(tn.function(tn.grad(lambda a: tn.sum(product(a, b) ** 2)))(a), want)
    near(tn.vmap(product, in_axes=(0, None))(tn.stack([a, a * 2]), b), tn.stack([a @ b, a @ b * 2]))


@vulkan
@pytest.mark.parametrize("want, call", [
    ([1, 2, 0, 3], lambda: tn.vulkan_kernel(
        "acme.count", "atomicAdd(h[x[index]], 1);", outputs=["h"], shapes=[(4,)], dtypes=["int32"], grid=lambda x: x.size,
        init_value=0)(tn.array([0, 1, 1, 3, 3, 3], "int32"))),
    (list(range(63, -1, -1)), lambda: tn.vulkan_kernel(
        "acme.turn", "part[gl_LocalInvocationIndex] = x[index];\nbarrier();\ny[index] = part[63 - gl_LocalInvocationIndex];",
        header="shared float part[64];", threads=64)(tn.arange(64.0))),
    ([0, 1, 2, 3], lambda: tn.vulkan_kernel("acme.made", "a[index] = float(index);", inputs=[], outputs=["a"])(
        shapes=[(4,)], dtypes=[tn.float32])),
    ([1.0] * 3, lambda: tn.vulkan_kernel("acme.one", "y[index] = 1.0;", inputs=["x", "unused"])(X, Y)),
    (list(range(12)), lambda: tn.vulkan_kernel("acme.cube", "y[index] = index;", grid=(2, 3, 2), threads=(2, 2, 2),
                                               shapes=[(12,)], dtypes=["uint32"])(X)),
    ([2, 2, 2], lambda: tn.vulkan_kernel("acme.axes", "y[index] = uint(x_ndim);", dtypes=["uint32"], shapes=[(3,)])(
        tn.zeros((2, 2)))),
    ([1, 2, 3], lambda: tn.vulkan_kernel("acme.words", "y[index] = x[index]; // x_shape, x_size, barrier()")(X)),
    ([7.5, 2.0, 7.5], lambda: tn.vulkan_kernel("acme.part", "if (index == 1u) y[index] = x[index];", init_value=7.5)(X)),
    ([1.5] * 3, lambda: tn.vulkan_kernel("acme.bits", "", init_value=1.5)(tn.array([1, 2, 3], "bfloat16"))),
    ([2.5, 3.5, 4.5], lambda: tn.vulkan_kernel(
        "acme.two", "a[index] = x[index] + z[0]; b[index] = int(x[index]);", inputs="x z", outputs="a b",
        shapes=lambda x, z: [x.shape] * 2, dtypes=["float32", "int32"])(X, tn.array(1.5))[0]),
])
def test_what_kernels_are_told(want, call):
    assert call().tolist() == want


@vulkan
def test_outputs_of_every_dtype_are_filled():
    for kind in ["int8", "int16", "int32", "int64", "uint8", "float16", "float64", "complex64", "complex128"]:
        k = tn.vulkan_kernel("acme.some", "if (index == 1u) y[index] = x[index];", init_value=7)
        assert k(tn.array([1, 2, 3], kind)).tolist() == [7, 2, 7]


def test_a_kernel_with_a_reference_runs_everywhere():
    square = tn.vulkan_kernel("acme.square", "y[index] = x[index] * x[index];", reference=lambda x: x * x)
    near(square(X), [1, 4, 9])
    near(tn.grad(lambda x: tn.sum(square(x) * x))(X), [3, 12, 27])
    near(tn.vmap(square)(tn.stack([X, Y])), [[1, 4, 9], [16, 25, 36]])


def test_a_kernel_goes_to_the_device_that_runs_it():
    devices = selected_devices()
    if not any(d.startswith("vulkan") for d in devices):
        with pytest.raises(NotImplementedError, match="none of the selected devices"):
            scale()(X)
        return
    first = next(d for d in devices if d.startswith("vulkan"))
    assert [n["device"] for n in tn.why(scale()(X))["nodes"] if n["op"].startswith("acme")] == [first]
    with tn.device(devices[-1]):
        near(tn.function(lambda x: scale()(x) * 2)(X), [6, 12, 18])


# --- C ---

CLIP = "float clip(float x, float lo, float hi) { return fminf(fmaxf(x, lo), hi); }"
ROWS = """
void rows(const double *x, double *y, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++) {
        y[i] = 0;
        for (int64_t k = 0; k < n; k++)
            y[i] += x[i * n + k];
    }
}
"""


@cpu
@compiler
def test_text_in_c_is_compiled_once():
    clip = tn.cpu_kernel("acme.clip", "f32 f32 f32 -> f32", CLIP)
    near(clip(X, 1.5, 2.5), [1.5, 2, 2.5])
    near(tn.vmap(lambda x: clip(x, 1.5, 2.5))(X), [1.5, 2, 2.5])
    rows = tn.cpu_kernel("acme.rows", "in f64[m, n] out f64[m] extent m extent n -> void", ROWS,
                         vjp=lambda primals, g, outputs: tn.broadcast_to(g[:, None], primals.shape))
    m = tn.array([[1.0, 2.0], [3.0, 4.0]], "float64")
    near(rows(m), [3, 7])
    near(tn.grad(lambda m: tn.sum(rows(m * m)))(m), [[2, 4], [6, 8]])
    near(tn.function(tn.grad(lambda m: tn.sum(rows(m * m))))(m), [[2, 4], [6, 8]])


@cpu
def test_functions_of_ctypes_are_called():
    library = ctypes.CDLL("libm.so.6")
    library.sinf.argtypes, library.sinf.restype = [ctypes.c_float], ctypes.c_float
    near(tn.cpu_kernel("acme.sinf", "f32 -> f32", library.sinf)(X), np.sin([1, 2, 3]))
    thrice = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(lambda x: 3 * x)
    near(tn.cpu_kernel("acme.thrice", "f32 -> f32", thrice, serial=True)(X), [3, 6, 9])
    address = ctypes.cast(library.cosf, ctypes.c_void_p).value
    near(tn.cpu_kernel("acme.cosf", "f32 -> f32", address)(X), np.cos([1, 2, 3]))


# --- bad input ---


def custom(rule, function=tn.round):
    f = tn.custom_function(function)
    f.vjp(rule)
    return tn.grad(lambda x: tn.sum(f(x)))(X)


def derived_by_an_array_around():
    def loss(w):
        f = tn.custom_function(lambda x: x * w)
        f.vjp(lambda primals, cotangents, outputs: cotangents)
        return f(X[0])

    return tn.grad(loss)(X[0])


def k(text="y[index] = x[index];", **options):
    return lambda *arrays, **given: tn.vulkan_kernel("acme.k", text, **options)(*(arrays or (X,)), **given)


FAULTS = [
    (ValueError, "expected PACK.NAME", lambda: tn.expr("x", "x")),
    (ValueError, "     ^", lambda: tn.expr("acme.bad", "x +* y")),
    (ValueError, "unknown function 'z'", lambda: tn.expr("acme.bad", "z(x)")),
    (TypeError, "expected a number", lambda: tn.expr("acme.bad", "a * x", a="q")),
    (ValueError, "registered it already", lambda: tn.expr("base.add/1", "x + y")),
    (ValueError, "is an input and an attribute", lambda: tn.expr("acme.bad", "x -> x", x=1)),
    (TypeError, "unexpected argument 'c'", lambda: tn.expr("acme.bad", "a * x", a=1)(X, c=1)),
    (ValueError, "rule vjp gave (*, *), expected cotangents as the arguments are, *", lambda: custom(lambda p, c, o: (c, c))),
    (ValueError, "shape (1,)", lambda: custom(lambda p, c, o: tn.array([1.0]))),
    (ZeroDivisionError, "", lambda: custom(lambda p, c, o: 1 / 0)),
    (ValueError, "body of a rule", lambda: custom(lambda p, c, o: c * float(p[0]))),
    (ValueError, "not among its arguments", derived_by_an_array_around),
    (TypeError, "expected a function", lambda: custom(3)),
    (TypeError, "expected a text of GLSL", lambda: tn.vulkan_kernel("acme.k", 3)),
    (ValueError, "is a word of GLSL", k(outputs=["out"])),
    (ValueError, "names one twice", k(inputs=["x", "x"])),
    (ValueError, "is an input and an output", k(inputs=["y"])),
    (TypeError, "2 arrays for the inputs x", lambda: k()(X, X)),
    (TypeError, "unexpected argument nope", lambda: k()(X, nope=1)),
    (ValueError, "2 shapes for 1 outputs", k(shapes=[(2,), (3,)])),
    (ValueError, "shape 0 is [-1]", k(shapes=[(-1,)])),
    (ValueError, "below 2^63", k(shapes=[(2**62, 4)])),
    (ValueError, "at most 8 extents", k(shapes=[(1,) * 9])),
    (ValueError, "expected a list with a shape", k(shapes=3.5)),
    (TypeError, "'q' is no dtype", k(dtypes=["q"])),
    (ValueError, "computes nothing", k(grid=0)),
    (ValueError, "one to three integers", k(grid=(1, 2, 3, 4))),
    (ValueError, "fewer than 2^32 threads", k(grid=2**33)),
    (ValueError, "expected 1 to 1024", k(threads=2048)),
    (ValueError, "init_value is 'q'", k(init_value="q")),
    (TypeError, "template value T", k(template={"T": object()})),
    (ValueError, "template has the name 'a b'", k(template={"a b": 1})),
    (TypeError, "a line of GLSL", k(template={"F": "a\nb"})),
    (TypeError, "got float, expected a function", lambda: tn.cpu_kernel("acme.bad", "f32 -> f32", 3.5)),
    (ValueError, "expected a dtype", lambda: tn.cpu_kernel("acme.bad", "f33 -> f32", "")),
]
TEXTS = [  # kernels that do not compile, or whose types are not those declared
    (k("y[index] = q;"), "acme.k:1:12: error: 'q' is not declared\ny[index] = q;\n           ^"),
    (k("if (true) {\n y[index] = x[index];"), "acme.k:2: error: found the end of the source"),
    (k("y[index] = f();", header="float f() {\n    return 1 +;\n}"), "acme.k (header):2:"),
    (k(dtypes=["int32"]), "is of type 'float', expected 'int'"),
    (k("y[index] = dvec2(1);"), "is of type 'dvec2', expected 'float'"),
]
C_TEXTS = [
    ("float bad(float x)\n{\n    return x * q;\n}", "acme.bad:3:16: error: "),
    ("double bad(double x) { return x; }", "has another type, expected float bad(float)"),
    ("float good(float x) { return x; }", "bad is not in the text"),
]


@pytest.mark.parametrize("kind, words, call", FAULTS)
def test_a_fault_is_one_sentence(kind, words, call):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)
    near(X + 1, [2, 3, 4])


@vulkan
@pytest.mark.parametrize("call, words", TEXTS)
def test_glsl_that_does_not_compile_shows_the_line(call, words):
    with pytest.raises(tn.KernelError) as caught:
        call()
    assert words in str(caught.value)


@cpu
@compiler
@pytest.mark.parametrize("text, words", C_TEXTS)
def test_c_that_does_not_compile_shows_the_line(text, words):
    with pytest.raises(tn.KernelError) as caught:
        tn.cpu_kernel("acme.bad", "f32 -> f32", text)
    assert words in str(caught.value)


@cpu
@compiler
def test_a_missing_compiler_and_a_failing_function_say_so(monkeypatch):
    fails = tn.cpu_kernel("acme.fails", "in f32[n] out f32[n] extent n -> status",
                          "int32_t fails(const float *x, float *y, int64_t n) { return 7; }")
    with pytest.raises(ValueError, match="returned status 7"):
        fails(X).tolist()
    with pytest.raises(ValueError, match="x0 has rank 0, expected 1"):
        fails(X[0])
    monkeypatch.setenv("CC", "/nowhere/cc")
    with pytest.raises(NotImplementedError, match="install gcc or clang, or set CC"):
        tn.cpu_kernel("acme.none", "f32 -> f32", "float none(float x) { return x; }")


@vulkan
@pytest.mark.parametrize("words, call", [
    ("needs 4000000 bytes of shared memory", lambda: tn.vulkan_kernel(
        "acme.large", "part[index] = x[index]; y[index] = part[index];", header="shared float part[1000000];")(X)),
    ("workgroups along x", lambda: tn.vulkan_kernel("acme.wide", "y[0] = x[0];", grid=(1 << 20, 1, 1 << 10), threads=1)(X)),
])
def test_what_a_device_cannot_run_says_so(words, call):
    result = call()
    with pytest.raises((tn.PluginError, NotImplementedError), match=words):
        result.tolist()
    near(X + 1, [2, 3, 4])


@vulkan
def test_the_line_of_the_file_is_shown():
    with pytest.raises(tn.KernelError) as caught:
        tn.vulkan_kernel("acme.k", """
            float s = 2;
            y[index] = x[index] * q;
        """)(X)
    line = inspect.currentframe().f_lineno - 2
    assert f"test_kernels.py:{line}:35: error: 'q' is not declared" in str(caught.value)


def test_kernels_without_rules_say_which():
    if any(d.startswith("vulkan") for d in selected_devices()):
        with pytest.raises(NotImplementedError, match="acme.scale/.* has no vjp"):
            tn.grad(lambda x: tn.sum(scale()(x)))(X)
        with pytest.raises(NotImplementedError, match="acme.scale/.* has no vmap"):
            tn.vmap(scale())(tn.stack([X, X]))
        with pytest.raises(ValueError, match="is no multiple of threads"):
            tn.vulkan_kernel("acme.k", "barrier(); y[index] = x[index];", threads=64)(X)
        with pytest.raises(ValueError, match="reference gives float32.2."):
            k(reference=lambda x: x[1:])(X)


def test_rules_go_with_what_has_them():
    class Marker:
        pass

    def use(number):
        marker = Marker()
        f = tn.custom_function(lambda x: x * number)
        f.vjp(lambda primals, cotangents, outputs: (cotangents, marker)[0])
        assert tn.grad(lambda x: tn.sum(f(x)))(tn.ones(3)).shape == (3,)
        return weakref.ref(marker)

    markers = [use(number) for number in range(4)]
    gc.collect()
    use(-1)  # making rules frees those that nobody has
    assert [marker() for marker in markers] == [None] * 4


def test_a_function_keeps_the_rules_of_few_kinds_of_calls():
    f = tn.custom_function(lambda x, n: x * n)
    f.vjp(lambda primals, cotangents, outputs: (cotangents, None))
    for n in range(200):
        f(tn.ones(2), n)
    assert 0 < len(f._made) <= 64


# --- operators that a device has no kernels for ---

USES = """
import tenon, tenon.mlx
tenon.mlx.install()
import json, mlx.core as mx
places = lambda x: {node["device"].partition("-")[0].partition(":")[0] for node in json.loads(tenon._core.explain([x._x], False))["nodes"]}
x = mx.eye(4) * 2
mx.eval(x)
assert mx.default_device() == mx.gpu and places(mx.exp(x)) == {"vulkan"}  # whatever the order of TENON_BACKEND
assert places(mx.exp(x, stream=mx.cpu)) == {"cpu"}
for result in (mx.linalg.inv(x), mx.abs(mx.linalg.qr(x)[1]), mx.fft.rfft(x), mx.quantize(mx.ones((32, 32)), group_size=32)[1]):
    mx.eval(result)
    before = tenon.stats()["transfers"]
    for _ in range(3):
        mx.eval(result * 2 + 1)
    assert tenon.stats()["transfers"] == before, result
"""


@vulkan
@cpu
def test_results_of_the_processor_are_transferred_once():
    done = subprocess.run([sys.executable, "-c", USES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

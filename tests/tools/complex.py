# SPDX-License-Identifier: MIT
"""complex64 and complex128, f8_e4m3 and f8_e5m2 through the command, on cpu-blas and Vulkan: values beside
Python's cmath (and NumPy where it is installed), gradients, promotion, refusals, files."""

import cmath
import json
import math
import struct

import tap
from tap import refused, tenon, values

try:
    import numpy
except ImportError:
    numpy = None

CPU = {"TENON_BACKEND": "cpu-blas"}
X = [1 + 2j, -0.5 + 0.25j, 3 - 1j, -2 - 2j, 0.001 + 0.002j, 1.5, 2j, -1.25j, -3 + 0.5j]
Y = [0.5 - 1j, 2 + 0j, -1 + 1j, 1j, 3 + 0.5j, -2, 1 + 1j, 0.25, -1 - 1j]


def text(numbers):
    return "[" + ", ".join(f"{z.real!r} + {z.imag!r}j" for z in map(complex, numbers)) + "]"


XY = (f"x={text(X)}", f"y={text(Y)}")


def joined(data):
    """Nested lists of complex numbers, from JSON's pairs: the innermost lists are pairs."""
    return [joined(d) for d in data] if isinstance(data[0], list) else complex(*data)


def near(got, want, tolerance):
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want), (got, want)
        for g, w in zip(got, want):
            near(g, w, tolerance)
        return
    assert abs(got - want) <= tolerance * max(abs(want), 1e-3), (got, want)


def table(rows, inputs, tolerance):
    """One call for all rows (expression, expected)."""
    got = values(", ".join(row[0] for row in rows), *inputs, env=CPU)
    for (expression, want), data in zip(rows, got):
        first = want[0] if isinstance(want, list) else want
        while isinstance(first, list):
            first = first[0]
        data = joined(data) if isinstance(first, complex) else data
        try:
            near(data, want, tolerance)
        except AssertionError as wrong:
            raise AssertionError(f"{expression}: {wrong}") from None


def power(a, b):
    return cmath.exp(b * cmath.log(a))


FUNCTIONS = [
    ("exp", cmath.exp), ("log", cmath.log), ("sqrt", cmath.sqrt), ("sin", cmath.sin),
    ("cos", cmath.cos), ("tan", cmath.tan), ("arcsin", cmath.asin), ("arccos", cmath.acos),
    ("arctan", cmath.atan), ("sinh", cmath.sinh), ("cosh", cmath.cosh), ("tanh", cmath.tanh),
    ("arcsinh", cmath.asinh), ("arccosh", cmath.acosh), ("arctanh", cmath.atanh),
    ("log10", cmath.log10), ("log2", lambda z: cmath.log(z) / math.log(2)),
    ("exp2", lambda z: cmath.exp(z * math.log(2))), ("rsqrt", lambda z: 1 / cmath.sqrt(z)),
    ("square", lambda z: z * z), ("reciprocal", lambda z: 1 / z), ("negative", lambda z: -z),
    ("conjugate", lambda z: z.conjugate()),
    ("expm1", lambda z: cmath.exp(z) - 1), ("log1p", lambda z: cmath.log(1 + z))]


def functions_of_complex_numbers():
    rows = [(f"{name}(x)", [complex(f(complex(z))) for z in X]) for name, f in FUNCTIONS]
    rows += [("abs(x)", [abs(z) for z in X]), ("real(x)", [complex(z).real for z in X]),
             ("imag(x)", [complex(z).imag for z in X]), ("angle(x)", [cmath.phase(z) for z in X])]
    table(rows, XY[:1], 1e-12)
    # As the last results of a program, so that x is what the statement before made of it.
    got = values("x = astype(z, complex64); " + ", ".join(row[0] for row in rows), f"z={text(X)}", env=CPU)
    for row, data in zip(rows, got):
        near(joined(data) if isinstance(row[1][0], complex) else data, row[1], 4e-6)
    # Near 0 no digit is lost.
    got = values("expm1(x), log1p(x)", "x=[1e-12 + 3e-13j]", env=CPU)
    near([joined(g)[0] for g in got], [1e-12 + 3e-13j + 0.5 * (1e-12 + 3e-13j)**2,
                                       1e-12 + 3e-13j - 0.5 * (1e-12 + 3e-13j)**2], 1e-24)


def parts_of_real_numbers():
    got = values("real(x), imag(x), conjugate(x), angle(x)", "x=[-2.0, 0, 3]", env=CPU)
    assert got == [[-2, 0, 3], [0, 0, 0], [-2, 0, 3], [math.pi, 0, 0]], got
    got = values("real(x), imag(x), conjugate(x), angle(x)", "x=[-2, 3]", env=CPU)
    assert got == [[-2, 3], [0, 0], [-2, 3], [math.pi, 0]], got


def arithmetic_and_comparison():
    pairs = list(zip(map(complex, X), map(complex, Y)))
    rows = [("x + y", [a + b for a, b in pairs]), ("x - y", [a - b for a, b in pairs]),
            ("x * y", [a * b for a, b in pairs]), ("x / y", [a / b for a, b in pairs]),
            ("x ** y", [power(a, b) for a, b in pairs]), ("x ** 3", [a**3 for a, _ in pairs]),
            ("x ** (-2)", [a**-2 for a, _ in pairs]), ("x ** 0.5", [cmath.sqrt(a) for a, _ in pairs]),
            ("2 * x + 1", [2 * a + 1 for a, _ in pairs]), ("x - 2j", [a - 2j for a, _ in pairs]),
            ("x * real(y)", [a * b.real for a, b in pairs])]
    table(rows, XY, 1e-13)
    got = values("x == y, x != y, x == 3 - 1j, isfinite(x), logical_not(x)", "x=[1 + 2j, 3 - 1j, 0j]",
                 "y=[1 + 2j, 3 + 1j, 0j]", env=CPU)
    assert got == [[True, False, True], [False, True, False], [False, True, False], [True] * 3,
                   [False, False, True]], got
    got = values("isnan(x), isinf(x), isfinite(x), x == x", "x=[1 + nan * 1j, inf + 0j, 2 - 1j]", env=CPU)
    assert got[0][0] and got[1][1] and got[2] == [False, False, True] and not got[3][0], got
    got = values("x ** y", "x=[0j, 0j, 0j, 2j]", "y=[0j, 2 + 0j, -1 + 0j, 2 + 0j]", env=CPU)[0]
    assert got[0] == [1, 0] and got[1] == [0, 0] and got[2][0] == "nan" and got[3] == [-4, 0], got
    # Of the first column alone, and of scalars beside vectors.
    m = "m=[[1 + 1j, 2 + 0j], [3j, 4 - 1j]]"
    near(joined(values("m[:, :1] * m + m[0, 0] * 2", m, env=CPU)[0]),
         [[2j + 2 + 2j, 2 + 2j + 2 + 2j], [-9 + 2 + 2j, 3j * (4 - 1j) + 2 + 2j]], 1e-13)


def reductions_products_and_views():
    m = [[1 + 2j, 3 - 1j, 0.5j], [-2 + 0j, 1 + 1j, 4 + 0j]]
    flat = m[0] + m[1]
    columns = list(zip(*m))
    text_m = "m=[" + ", ".join(text(row) for row in m) + "]"
    product = 1
    for z in flat:
        product *= z
    gram = [[sum(a * b.conjugate() for a, b in zip(r, s)) for s in m] for r in m]
    rows = [
        ("sum(m)", sum(flat)), ("sum(m, axis=0)", [sum(c) for c in columns]),
        ("sum(m, axis=1)", [sum(r) for r in m]), ("sum(m.T, axis=0)", [sum(r) for r in m]),
        ("mean(m, axis=0)", [sum(c) / 2 for c in columns]), ("mean(m)", sum(flat) / 6),
        ("prod(m)", product), ("prod(m, axis=0)", [c[0] * c[1] for c in columns]),
        ("m @ conjugate(m.T)", gram), ("m[0] @ m[1]", sum(a * b for a, b in zip(*m))),
        ("(m.T @ m)[0]", [sum(a * b for a, b in zip(columns[0], c)) for c in columns]),
        ("reshape(m, [3, 2])[1]", flat[2:4]), ("m.T[2]", [m[0][2], m[1][2]]), ("m[1, ::-1]", m[1][::-1]),
        ("concatenate(m, m, axis=1)[0]", m[0] + m[0]), ("take(m, [2, 0], axis=1)[1]", [m[1][2], m[1][0]]),
        ("pad(m[0], before=[1], after=[0], value=7)", [7 + 0j] + m[0]),
        ("scatter_add(m, [0, 0], m)[0]", [a + a + b for a, b in zip(*m)]),
        ("where(abs(m) > 2, m, 0)[0]", [z if abs(z) > 2 else 0j for z in m[0]]),
        ("slice_update(m, m[:1, :1], start=[1, 1], stop=[2, 2])[1]", [m[1][0], m[0][0], m[1][2]])]
    table(rows, [text_m], 1e-13)
    # Enough for several threads and parts, in both dtypes, with rows and columns.
    n = 70000
    for dtype, tolerance in (("complex64", 1e-5), ("complex128", 1e-12)):
        got = values(f"z = astype(arange(stop={n}), {dtype}) * (1 + 2j) / {n}; sum(z), "
                     f"sum(reshape(z, [700, 100]), axis=0)[1], sum(reshape(z, [700, 100]), axis=1)[1]", env=CPU)
        columns = sum(range(1, n, 100)) / n
        near([joined(g) for g in got], [(n - 1) / 2 * (1 + 2j), columns * (1 + 2j),
                                        sum(range(100, 200)) / n * (1 + 2j)], tolerance)


def conversions():
    rows = [("astype(x, dtype=f32)", [1, -1.5]), ("astype(x, dtype=i32)", [1, -1]),
            ("astype(x, dtype=u8)", [1, 0]), ("astype(x, dtype=bool)", [True, True]),
            ("astype(x, complex64)", [1 + 2j, -1.5 + 0j]), ("astype([1, -2], complex64)", [1 + 0j, -2 + 0j]),
            ("astype([true, false], complex128)", [1 + 0j, 0j]), ("astype([1.5, 2], complex64)", [1.5 + 0j, 2 + 0j]),
            ("full([2], value=3, dtype=complex64)", [3 + 0j, 3 + 0j])]
    table(rows, ["x=[1 + 2j, -1.5 + 0j]"], 0)
    assert values("astype(x, bool)", "x=[0j, 2j]", env=CPU) == [[False, True]]


def promotion_is_that_of_numpy():
    names = ["bool", "i8", "i16", "i32", "i64", "u8", "u32", "f16", "f32", "f64", "complex64", "complex128"]
    wide = {"i32", "i64", "u32", "f64", "complex128"}
    pairs = [(a, b) for a in names for b in ("complex64", "complex128")]
    results = json.loads(tenon("eval", "--json", ", ".join(
        f"full([1], value=1, dtype={a}) * full([1], value=1, dtype={b})" for a, b in pairs), env=CPU).stdout)["results"]
    for (a, b), result in zip(pairs, results):
        want = "complex128" if a in wide or b in wide else "complex64"
        assert result["dtype"] == want, (a, b, result)
        if numpy is not None and a in ("bool", "i8", "i16", "i32", "i64", "f16", "f32", "f64"):
            numpy_name = {"b": "bool", "i": "int", "f": "float"}[a[0]] + (a[1:] if a != "bool" else "")
            assert numpy.promote_types(numpy_name, b) == want, (a, b)
    # Numbers without a dtype of their own.
    results = json.loads(tenon(
        "eval", "--json", "f = full([1], value=1); d = full([1], value=1, dtype=f64); i = [1]; "
        "z = astype(f, complex64); f * 2j, f * (1 + 2j), d * 2j, z * 2.5, z * 2, i * 1j, abs(z), real(z), angle(z)",
        env=CPU).stdout)["results"]
    assert [r["dtype"] for r in results] == ["complex64", "complex64", "complex128", "complex64", "complex64",
                                             "complex128", "f32", "f32", "f32"], results


def what_needs_an_order_is_refused():
    for expression in ["x < y", "x >= y", "maximum(x, y)", "floor(x)", "x % y", "x // y", "ceil(x)", "arctan2(x, y)",
                       "erf(x)", "x & y", "max(x)", "argmax(x)", "clip(x, lo=0)", "softmax(x)"]:
        done = refused("eval", expression, "x=[1j]", "y=[2j]", env=CPU)
        assert "complex128" in done.stderr, done.stderr
    refused("eval", "x < y", "x=[1j]", "y=[2.0]", saying="complex ones have no order", env=CPU)
    refused("eval", "x * 2", "x=[1j]", "--grad", "x", saying="take real(), imag() or abs()", env=CPU)
    refused("eval", "2jj", saying="is no number")


# The gradient of a real L by z is dL/dx + i dL/dy, as in PyTorch: of Re(f) conj(f'), of abs z / |z|.
GRADIENTS = [
    ("sum(real(x * x))", lambda z: (2 * z).conjugate()),
    ("sum(imag(x * x))", lambda z: 1j * (2 * z).conjugate()),
    ("sum(abs(x))", lambda z: z / abs(z)),
    ("sum(abs(x) ** 2)", lambda z: 2 * z),
    ("sum(angle(x))", lambda z: 1j * z / abs(z)**2),
    ("sum(real(x * conjugate(x) * x))", lambda z: 2 * abs(z)**2 + z * z),
    ("sum(real(conjugate(x) * (2 + 1j)))", lambda z: 2 + 1j),
    ("sum(real((2 + 1j) * x))", lambda z: 2 - 1j),
    ("sum(real(x) * imag(x))", lambda z: z.imag + 1j * z.real),
    ("sum(astype(x, f64))", lambda z: 1 + 0j),
    ("sum(real(x ** 3))", lambda z: (3 * z * z).conjugate()),
    ("sum(real(x ** (1 + 2j)))", lambda z: ((1 + 2j) * power(z, 2j)).conjugate()),
    ("sum(real((1 + 2j) ** x))", lambda z: (power(1 + 2j, z) * cmath.log(1 + 2j)).conjugate()),
    ("sum(real(1 / x))", lambda z: (-1 / z**2).conjugate()),
    ("real(prod(x))", None), ("real(mean(x))", lambda z: 1 / 3 + 0j),
    ("real((x @ x))", lambda z: (2 * z).conjugate())] + [
    (f"sum(real({name}(x)))", lambda z, d=derivative: d(z).conjugate()) for name, derivative in [
        ("exp", cmath.exp), ("log", lambda z: 1 / z), ("sqrt", lambda z: 0.5 / cmath.sqrt(z)),
        ("rsqrt", lambda z: -0.5 / (z * cmath.sqrt(z))), ("sin", cmath.cos), ("cos", lambda z: -cmath.sin(z)),
        ("tan", lambda z: 1 / cmath.cos(z)**2), ("sinh", cmath.cosh), ("cosh", cmath.sinh),
        ("tanh", lambda z: 1 / cmath.cosh(z)**2), ("arcsin", lambda z: 1 / cmath.sqrt(1 - z * z)),
        ("arccos", lambda z: -1 / cmath.sqrt(1 - z * z)), ("arctan", lambda z: 1 / (1 + z * z)),
        ("arcsinh", lambda z: 1 / cmath.sqrt(1 + z * z)),
        ("arccosh", lambda z: 1 / (cmath.sqrt(z - 1) * cmath.sqrt(z + 1))),
        ("arctanh", lambda z: 1 / (1 - z * z)), ("exp2", lambda z: cmath.exp(z * math.log(2)) * math.log(2)),
        ("expm1", cmath.exp), ("log1p", lambda z: 1 / (1 + z)), ("log2", lambda z: 1 / (z * math.log(2))),
        ("log10", lambda z: 1 / (z * math.log(10)))]]


def gradients_follow_the_convention_of_pytorch():
    points = [1 + 2j, -0.5 + 0.75j, -2 - 1j]
    for expression, derivative in GRADIENTS:
        want = [derivative(z) for z in points] if derivative else [
            (points[1] * points[2]).conjugate(), (points[0] * points[2]).conjugate(),
            (points[0] * points[1]).conjugate()]
        done = json.loads(tenon("eval", "--json", expression, f"x={text(points)}", "--grad", "x", env=CPU).stdout)
        got = done["gradients"]["x"]["data"]
        try:
            near(joined(got), want, 1e-12)
        except AssertionError as wrong:
            raise AssertionError(f"{expression}: {wrong}") from None


def floats_of_8_bits_are_stored_converted_and_compared():
    values_of = {"f8_e4m3": ([0.3, 464, 464.1, -500, 0.0009, 17, -0.0], [0.3125, 448, "nan", "nan", 0, 16, 0]),
                 "f8_e5m2": ([0.3, 61439, 61440, -1e9, 7e-6, 9, -0.0], [0.3125, 57344, "inf", "-inf", 0, 8, 0])}
    for dtype, (given, want) in values_of.items():
        got = values(f"astype(astype(x, {dtype}), f32), astype(x, {dtype})", f"x={given}", env=CPU)
        assert got == [want, want], (dtype, got)
        got = values(f"a = astype(x, {dtype}); a == a, a < 2, a[::-1], where(a > 1, a, 0), reshape(a, [2, 2]).T, "
                     "concatenate(a, a), take(a, [3, 1]), isnan(a)", "x=[0.5, 2, 3, 1]", env=CPU)
        assert got == [[True] * 4, [True, False, False, True], [1, 3, 2, 0.5], [0, 2, 3, 0], [[0.5, 3], [2, 1]],
                       [0.5, 2, 3, 1] * 2, [1, 2], [False] * 4], got
    # Rounded where it is stored, also when all of it is one graph.
    assert values("astype(astype(x, f8_e4m3), f32) * 2", "x=[0.3]", env=CPU) == [[0.625]]


def floats_of_8_bits_are_not_computed_with():
    for dtype in ("f8_e4m3", "f8_e5m2"):
        for expression in ["a + a", "a * 2", "-a", "abs(a)", "exp(a)", "a + x"]:
            refused("eval", f"a = astype(x, {dtype}); {expression}", "x=[1.0]", env=CPU,
                    saying="floats of 8 bits" if expression == "a + x" else "only stored, converted and compared")
        refused("eval", f"sum(astype(x, {dtype}))", "x=[1.0]", saying="convert it with base.astype first", env=CPU)


def files_keep_the_dtypes():
    for expression, name in [("astype(x, complex64)", "C64"), ("astype(real(x), f8_e4m3)", "F8_E4M3"),
                             ("astype(real(x), f8_e5m2)", "F8_E5M2")]:
        tenon("eval", expression, f"x={text([1 + 2j, -0.5 - 1j])}", "-o", "a.safetensors", env=CPU)
        with open("a.safetensors", "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        assert name in [entry["dtype"] for entry in header.values()], header
    refused("eval", "x", "x=[1j]", "-o", "b.safetensors", saying="safetensors has no name for complex128", env=CPU)
    refused("eval", "astype(x, f8_e4m3)", "x=[1.0]", "-o", "b.npy", saying="NumPy has no name for f8_e4m3", env=CPU)
    for dtype, kind in (("complex64", "c8"), ("complex128", "c16")):
        tenon("eval", f"astype(x, {dtype})", f"x={text([1 + 2j, -0.5 - 1j])}", "-o", "c.npy", env=CPU)
        with open("c.npy", "rb") as file:
            assert f"'descr': '<{kind}'".encode() in file.read(128)
        assert values("x", "x=c.npy", env=CPU) == [[[1, 2], [-0.5, -1]]]
        if numpy is None:
            continue
        assert numpy.load("c.npy").tolist() == [1 + 2j, -0.5 - 1j]
        array = numpy.array([[1 + 2j, 3 - 4j, 5j], [6 + 0j, 7 - 1j, 8 + 2j]], f">{kind}", order="F")
        numpy.save("d.npy", array)
        near(joined(values("x", "x=d.npy", env=CPU)[0]), array.tolist(), 0)


def devices_without_the_dtypes_do_not_get_them():
    for expression, inputs in [("x * 2", "x=[1j]"), ("abs(x)", "x=[1j]"), ("astype(x, f8_e4m3)", "x=[1.0]")]:
        refused("eval", expression, inputs, saying="runs on none of the selected devices (null",
                env={"TENON_BACKEND": "null"})


def vulkan_gives_the_same():
    """The tables again on Vulkan, without another device to fall back to. Its backends share their kernels."""
    programs = (arithmetic_and_comparison, conversions, floats_of_8_bits_are_stored_converted_and_compared)
    for backend, checks in (("vulkan", (*programs, reductions_products_and_views)), ("vulkan-jit", programs)):
        probe = tap.subprocess.run([tap.TENON, "eval", "x + 1", "x=[1.0]"], capture_output=True, check=False,
                                   env={**tap.ENVIRONMENT, "TENON_BACKEND": backend})
        if probe.returncode:
            return f"{backend} has no device here"
        CPU["TENON_BACKEND"] = backend
        try:
            for check in checks:
                check()
        finally:
            CPU["TENON_BACKEND"] = "cpu-blas"
    return None


def printing_is_that_of_numpy():
    out = tenon("eval", "x", "x=[1 + 2j, -0.5 - 1j, 3]", env=CPU).stdout
    assert out == "complex128 (3,)\n[  1.+2.j -0.5-1.j   3.+0.j]\n", out
    assert tenon("eval", "1 - 2.5j", env=CPU).stdout == "complex128 ()\n1.-2.5j\n"


if __name__ == "__main__":
    tap.run([functions_of_complex_numbers, parts_of_real_numbers, arithmetic_and_comparison,
             reductions_products_and_views, conversions, promotion_is_that_of_numpy,
             what_needs_an_order_is_refused, gradients_follow_the_convention_of_pytorch,
             floats_of_8_bits_are_stored_converted_and_compared, floats_of_8_bits_are_not_computed_with,
             files_keep_the_dtypes, devices_without_the_dtypes_do_not_get_them, vulkan_gives_the_same, printing_is_that_of_numpy])

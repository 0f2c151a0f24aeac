# SPDX-License-Identifier: MIT
"""Pack fft through the command: values, shapes and dtypes beside NumPy's (where it is not installed,
beside the sums that define them), wrong arguments, gradients, plans that are checked, devices."""

import cmath
import json
import math

import tap
from tap import refused, tenon, values

try:
    import numpy
except ImportError:
    numpy = None

CPU = {"TENON_BACKEND": "cpu-blas"}
LENGTHS = [1, 2, 3, 5, 7, 8, 12, 16, 30, 97, 128, 1000, 1009]
COMPLEX = {"f32": "complex64", "f64": "complex128"}


# --- what is expected ---------------------------------------------------------------------

def transform(row, inverse):
    """The sums, by the least factor of the length."""
    n = len(row)
    p = next((p for p in range(2, math.isqrt(n) + 1) if n % p == 0), n)
    sign = 1 if inverse else -1
    roots = [cmath.rect(1, sign * 2 * math.pi * k / n) for k in range(n)]
    if p == n:
        return [sum(row[j] * roots[j * k % n] for j in range(n)) for k in range(n)]
    parts = [transform(row[r::p], inverse) for r in range(p)]
    return [sum(parts[r][k % (n // p)] * roots[r * k % n] for r in range(p)) for k in range(n)]


def along(x, axis, shape, function):
    """`function` of each row of x, a flat list of `shape`, along `axis`; and the new shape."""
    behind = math.prod(shape[axis + 1:])
    n, before = shape[axis], math.prod(shape[:axis])
    rows = [[function([x[(b * n + j) * behind + i] for j in range(n)]) for i in range(behind)]
            for b in range(before)]
    new = len(rows[0][0])
    return ([rows[b][i][j] for b in range(before) for j in range(new) for i in range(behind)],
            [*shape[:axis], new, *shape[axis + 1:]])


def single(name, x, shape, n=None, axis=-1, norm="backward"):
    kind, axis = name[:-3], axis % len(shape)
    n = n or (2 * (shape[axis] - 1) if kind == "ir" else shape[axis])
    divisor = {"backward": n if "i" in kind else 1, "ortho": math.sqrt(n), "forward": 1 if "i" in kind else n}[norm]

    def row(v):
        if kind == "ir":
            v = (v + [0] * n)[:n // 2 + 1]
            v[0] = complex(v[0]).real
            if n % 2 == 0:
                v[-1] = complex(v[-1]).real
            v = v + [complex(v[n - k]).conjugate() for k in range(n // 2 + 1, n)]
        v = [z / divisor for z in transform((v + [0] * n)[:n], "i" in kind)]
        return v[:n // 2 + 1] if kind == "r" else [z.real for z in v] if kind == "ir" else v
    return along(x, axis, shape, row)


def several(name, x, shape, s=None, axes=None, norm="backward"):
    kind, rank = name[:-4], len(shape)
    axes = axes or (range(rank - 2, rank) if name[-1] == "2" else range(rank))
    steps = [(axis, s[i] if s else None, kind if i == len(axes) - 1 else kind.replace("r", ""))
             for i, axis in enumerate(axes)]
    for axis, n, own in steps[-2::-1] + steps[-1:] if kind == "ir" else steps[::-1]:
        x, shape = single(own + "fft", x, shape, n, axis, norm)
    return x, shape


def expected(name, x, shape, given):
    if numpy is not None:
        y = getattr(numpy.fft, name)(numpy.array(x).reshape(shape), **given)
        return y.ravel().tolist(), list(y.shape)
    return (single if name.endswith("fft") else several)(name, x, shape, **given)


# --- rows of the table --------------------------------------------------------------------

def numbers(count, is_complex):
    """Whole numbers, the same in each dtype, and the expression that makes them."""
    real = [(i * i * i + 7 * i * i + 3 * i) % 31 - 15 for i in range(count)]
    return [complex(a, (5 * a * a + i) % 13 - 6) for i, a in enumerate(real)] if is_complex else real


def source(count, shape, dtype):
    text = f"i = arange(stop={count}, dtype=i64); a = (i * i * i + 7 * i * i + 3 * i) % 31 - 15; "
    if dtype.startswith("complex"):
        return text + f"x = reshape(astype(a + 1j * ((5 * a * a + i) % 13 - 6), {dtype}), {shape}); "
    return text + f"x = reshape(astype(a, {dtype}), {shape}); "


def call(name, given):
    return f"{name}(x{''.join(f', {key}={value}' for key, value in given.items())})"


def flat(data, is_complex):
    depth = data
    while isinstance(depth, list) and depth and isinstance(depth[0], list):
        if is_complex and not isinstance(depth[0][0], list):
            break
        data = [item for part in data for item in part]
        depth = data
    return [complex(*pair) for pair in data] if is_complex else data


def check_rows(shape, dtype, rows):
    """One call of the command for all rows (function, attributes) of one input."""
    count = math.prod(shape)
    results = json.loads(tenon("eval", "--json", source(count, shape, dtype) + ", ".join(call(*row) for row in rows),
                               env=CPU).stdout)["results"]
    x = numbers(count, dtype.startswith("complex"))
    for (name, given), result in zip(rows, results):
        want, want_shape = expected(name, x, shape, given)
        double = dtype not in ("f16", "f32", "complex64")
        is_real = name.startswith("ir")
        want_dtype = ("f64" if double else "f32") if is_real else "complex128" if double else "complex64"
        about = f"{call(name, given)} of {dtype}{shape}"
        assert (result["dtype"], result["shape"]) == (want_dtype, want_shape), (about, result["dtype"], result["shape"])
        got, most = flat(result["data"], not is_real), max(map(abs, want))
        error = max(abs(g - w) for g, w in zip(got, want))
        assert len(got) == len(want) and error <= (1e-14 if double else 3e-6) * most, (about, error, most)


def lengths_of_every_kind_are_those_of_numpy():
    for n in LENGTHS:
        for dtype, number in COMPLEX.items():
            rows = 18 if n < 200 else 2
            check_rows([rows, n], number, [("fft", {}), ("ifft", {"norm": "ortho"})])
            check_rows([rows, n], dtype, [("rfft", {}), ("fft", {"norm": "forward"})])
            check_rows([rows, n // 2 + 1], number, [("irfft", {"n": n})])


def axes_are_cropped_and_padded():
    for n in (1, 4, 5, 9):
        rows = [(name, {"n": n, "axis": axis, "norm": norm}) for axis, norm in
                [(0, "backward"), (-1, "ortho"), (1, "forward")] for name in ("fft", "ifft", "irfft")]
        check_rows([5, 6, 3], "complex128", rows)
        check_rows([5, 6, 3], "f32", [("rfft", {"n": n, "axis": axis}) for axis in (0, 1, -1)])
    assert values("fft(x)", "x=[[1.0, 2]]", env=CPU) == [[[[3, 0], [-1, 0]]]]
    done = json.loads(tenon("eval", "--json", "fft(x[:0]), rfft(x[:0], 4)", "x=[[1.0, 2]]", env=CPU).stdout)["results"]
    assert [r["shape"] for r in done] == [[0, 2], [0, 3]], done


def several_axes_are_transformed():
    for given in ({}, {"axes": [0, 2], "s": [4, 3]}, {"axes": [-1, 0], "norm": "ortho"}):
        for suffix in ("2", "n"):
            check_rows([3, 4, 5], "complex128", [(kind + "fft" + suffix, given) for kind in ("", "i", "ir")])
            check_rows([3, 4, 5], "f32", [("rfft" + suffix, given)])
    check_rows([3, 4, 5], "complex64", [("fftn", {"axes": [1], "norm": "forward"}), ("irfftn", {"axes": [0]})])
    # s alone is of the last axes; -1 is x's extent.
    got = values("fftn(x, s=[2, 2]), fftn(x, s=[2, 2], axes=[1, 2]), irfftn(x, s=[2, -1], axes=[0, 2]), "
                 "irfftn(x, s=[2, 2], axes=[0, 2])", "x=[[[1.0, 2], [3, 5]], [[4, 1], [2, 2]]]", env=CPU)
    assert got[0] == got[1] and got[2] == got[3], got


def dtypes_are_those_of_numpy():
    for dtype in ("bool", "i8", "i32", "u64", "f16", "bf16"):
        done = json.loads(tenon("eval", "--json", f"y = astype(x, {dtype}); fft(y), rfft(y), irfft(y)", "x=[1, 0, 1, 1]",
                                env=CPU).stdout)["results"]
        want = ["complex64", "complex64", "f32"] if dtype.endswith("f16") else ["complex128", "complex128", "f64"]
        assert [r["dtype"] for r in done] == want, (dtype, done)
        assert flat(done[0]["data"], True) == [3, 1j, 1, -1j], done[0]


def frequencies_and_shifts_are_those_of_numpy():
    got = values("fftfreq(1), fftfreq(4), fftfreq(5, d=0.1), rfftfreq(4, d=2), rfftfreq(5), fftfreq(3, dtype=f32)",
                 env=CPU)
    want = [[0], [0, .25, -.5, -.25], [0, 2, 4, -4, -2], [0, .125, .25], [0, .2, .4], [0, 1 / 3, -1 / 3]]
    for g, w in zip(got, want):
        assert len(g) == len(w) and all(abs(a - b) < 1e-7 for a, b in zip(g, w)), (g, w)
    x = "x=[[0, 1, 2], [3, 4, 5]]"
    assert values("fftshift(x), fftshift(x, axes=[1]), ifftshift(x), ifftshift(fftshift(x)), fftshift(x[0, 0]), "
                  "fftshift(x, axes=[])", x, env=CPU) == [
        [[5, 3, 4], [2, 0, 1]], [[2, 0, 1], [5, 3, 4]], [[4, 5, 3], [1, 2, 0]], [[0, 1, 2], [3, 4, 5]], 0,
        [[0, 1, 2], [3, 4, 5]]]
    assert values("fftshift(x)", "x=[1j, 2 + 0j, 3 + 0j]", env=CPU) == [[[3, 0], [0, 1], [2, 0]]]


REFUSED = [
    ("fft(x, n=0)", "n is 0, expected at least 1"),
    ("rfft(x, n=-3)", "n is -3, expected at least 1"),
    ("fft(x, axis=2)", "axis 2 is out of range for rank 2"),
    ("irfft(x, axis=-3)", "axis -3 is out of range for rank 2"),
    ("fft(x[0, 0])", "axis -1 is out of range for rank 0"),
    ("fft(x, norm=unitary)", "expected one of 'backward', 'ortho', 'forward'"),
    ("rfft(x * 1j)", "x is complex128, expected real numbers"),
    ("rfftn(x * 1j)", "x is complex128, expected real numbers"),
    ("fft(x[:, :0])", "x has shape [2, 0], expected at least 1 along axis 1, or n"),
    ("irfft(x[:, :1])", "x has shape [2, 1], expected at least 2 along axis 1, or n"),
    ("irfftn(x[:, :1])", "x has shape [2, 1], expected at least 2 along axis 1, or s"),
    ("fftn(x, axes=[0, -2])", "axis -2 is given twice"),
    ("fftn(x, axes=[0, 5])", "axis 5 is out of range for rank 2"),
    ("fftn(x, s=[2], axes=[0, 1])", "s has 1 values, expected one for each of 2 axes"),
    ("fft2(x, s=[2, 3, 4])", "s has 3 values, expected one for each of 2 axes"),
    ("fftn(x, s=[2, 0])", "s is 0, expected at least 1"),
    ("fftn(x, axes=[])", "there are 0 axes to transform along, expected at least 1"),
    ("fft2(x[0])", "axis -2 is out of range for rank 1"),
    ("fftshift(x, axes=[1, 1])", "axis 1 is given twice"),
    ("ifftshift(x, axes=[2])", "axis 2 is out of range for rank 2"),
    ("fftfreq(0)", "n is 0 and d 1, expected n at least 1"),
    ("rfftfreq(4, d=0)", "n is 4 and d 0, expected n at least 1 and d finite and not 0"),
    ("fftfreq(4, dtype=i32)", "dtype is i32, expected a float dtype"),
    ("fft(astype(x, f8_e5m2))", "convert it with base.astype first"),
    ("dft(x)", "input x is f64, expected one of complex64, complex128"),
    ("dft_of_real(x * 1j)", "input x is complex128, expected one of f32, f64"),
    ("dft(x[:, :0] * 1j)", "x has shape [2, 0], expected rows of at least 1 element"),
    ("dft(x * 1j, scale=inf)", "scale is inf, expected a finite number"),
    ("dft_to_real(x * 1j, n=6)", "x has shape [2, 3] and n is 6, expected rows of n / 2 + 1 elements"),
]


def wrong_arguments_are_named():
    for expression, saying in REFUSED:
        refused("eval", expression, "x=[[1.0, 2, 3], [4, 5, 6]]", saying=saying, env=CPU)


def gradients_are_those_of_pytorch():
    # By Parseval's theorem; of a real L by z = x + i y it is dL/dx + i dL/dy.
    z = [1 + 2j, -0.5 + 1j, 3 + 0j, -1 - 1j, 0.5j]
    text = "x=[" + ", ".join(f"{v.real} + {v.imag}j" for v in z) + "]"
    for name in ("fft", "ifft"):
        done = json.loads(tenon("eval", "--json", f"sum(abs({name}(x, norm=ortho)) ** 2)", text, "--grad", "x",
                                env=CPU).stdout)
        got = flat(done["gradients"]["x"]["data"], True)
        assert all(abs(g - 2 * v) < 1e-13 for g, v in zip(got, z)), got
    # rfft keeps one of two conjugates, irfft reads no imaginary parts at its ends.
    for n in (4, 5, 1, 2):
        x = [0.5, -1.25, 2, 0.75, 1.5][:n]
        for name, given, w in (("rfft", x, n // 2 + 1), ("irfft", numbers(n // 2 + 1, True), n)):
            weights = [0.3 * k * k - k + 0.7 + (0.4 - 0.2 * k) * 1j for k in range(w)]
            own = x if name == "rfft" else [v / 7 for v in given]

            def loss(v, name=name, weights=weights, n=n):
                y, _ = single(name, list(v), [len(v)], n)
                return sum((g.conjugate() * f).real for g, f in zip(weights, y))
            inputs = "[" + ", ".join(f"{complex(v).real!r} + {complex(v).imag!r}j" for v in own) + "]"
            first = "real(x)" if name == "rfft" else "x"
            w_text = "[" + ", ".join(f"{v.real!r} + {v.imag!r}j" for v in weights) + "]"
            done = json.loads(tenon("eval", "--json", f"sum(real(conjugate(w) * {name}({first}, {n})))", f"x={inputs}",
                                    f"w={w_text}", "--grad", "x", env=CPU).stdout)
            got = flat(done["gradients"]["x"]["data"], True)
            for i, g in enumerate(got):
                want = 0
                for step in (1, 1j) if name == "irfft" else (1,):
                    plus, minus = list(own), list(own)
                    plus[i] += step
                    minus[i] -= step
                    want += step * (loss(plus) - loss(minus)) / 2  # linear: exact for any step
                assert abs(g - want) < 1e-12, (name, n, i, g, want)


def each_launch_agrees_with_its_definition():
    for shape in ([3, 12], [2, 37], [20, 9], [1, 256]):
        text = source(math.prod(shape), shape, "complex64")
        done = tenon("eval", text + "fft(x), ifft(x, axis=0), rfft(real(x)), irfft(x), abs(fft2(x)) + 1",
                     env={**CPU, "TENON_CHECK": "1", "TENON_LOG": "warn"})
        assert done.stderr == "", done.stderr


def the_kernel_of_the_cpu_is_chosen():
    done = tenon("why", "fft(x, axis=0)", "x=[[1.0, 2], [3, 4]]", env=CPU).stdout
    assert "fft.dft/1" in done and "'planned' of org.tenon.cpu-blas" in done, done


def devices_without_kernels_leave_it_to_others():
    refused("eval", "fft(x)", "x=[1.0]", saying="runs on none of the selected devices (null", env={"TENON_BACKEND": "null"})
    if not tap.has_plugins("org.tenon.vulkan-jit"):
        return
    probe = tap.subprocess.run([tap.TENON, "eval", "x + 1", "x=[1.0]"], capture_output=True, check=False,
                               env={**tap.ENVIRONMENT, "TENON_BACKEND": "vulkan-jit"})
    if probe.returncode == 0:
        got = values("abs(fft(x)) + 1", "x=[1.0, 2, 3, 5]",
                     env={"TENON_BACKEND": "vulkan-jit,cpu-blas", "TENON_FALLBACK": "allow"})
        assert all(abs(g - w) < 1e-5 for g, w in zip(got[0], [12, 1 + 13**.5, 4, 1 + 13**.5])), got


if __name__ == "__main__":
    tap.run([lengths_of_every_kind_are_those_of_numpy, axes_are_cropped_and_padded, several_axes_are_transformed,
             dtypes_are_those_of_numpy, frequencies_and_shifts_are_those_of_numpy, wrong_arguments_are_named,
             gradients_are_those_of_pytorch, each_launch_agrees_with_its_definition, the_kernel_of_the_cpu_is_chosen,
             devices_without_kernels_leave_it_to_others])

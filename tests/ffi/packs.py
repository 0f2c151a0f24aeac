# SPDX-License-Identifier: MIT
"""The packs that are shipped as manifests (BLAS, LAPACK, libm): each is made with `tenon ffi
make`, installed to a folder, and its operators are compared with NumPy and known values."""

import json
import math
import os
import pathlib
import sys
import tempfile

import tap
from tap import refused, tenon

try:
    import numpy
except ImportError:
    numpy = None

MANIFESTS = pathlib.Path(sys.argv[3]).resolve()
SEED = int(os.environ.get("TENON_TEST_SEED", "7"))
print(f"# seed {SEED}: TENON_TEST_SEED chooses another")
random = numpy.random.default_rng(SEED) if numpy else None
FOLDER = pathlib.Path(tap.STAGING)  # where the packs are; set by the first test
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


def environment(**more):
    return {"TENON_PLUGIN_PATH": f"{FOLDER}:{tap.STAGING}", **more}


def save(arrays):
    for name, value in arrays.items():
        numpy.save(f"{name}.npy", value)
    return [f"{name}={name}.npy" for name in arrays]


def evaluate(text, grad="", env=None, **arrays):
    """The results of an expression as arrays, then its gradients."""
    more = ["--grad", grad] if grad else []
    done = tenon("eval", "--json", text, *save(arrays), *more, env=env or environment())
    said = json.loads(done.stdout)
    made = said["results"] + [said["gradients"][name] for name in grad.split(",") if name]
    types = {"f32": "float32", "f64": "float64", "i64": "int64", "i32": "int32"}
    return [numpy.array(m["data"], dtype=types[m["dtype"]]).reshape(m["shape"]) for m in made]


def same(got, expected, what, factor=1.0):
    expected = numpy.asarray(expected)
    assert got.dtype == expected.dtype, f"{what}: got {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"{what}: got {got.shape}, expected {expected.shape}"
    bound = factor * TOLERANCE.get(str(expected.dtype), 0)
    numpy.testing.assert_allclose(got, expected, rtol=bound, atol=bound, err_msg=str(what))


def numbers(*shape, dtype="f8"):
    return random.uniform(-2, 2, shape).astype(dtype)


def agrees(text, reference, dtypes=("f4", "f8"), factor=1.0, **shapes):
    """An expression against NumPy's, over dtypes."""
    for dtype in dtypes:
        arrays = {name: numbers(*shape, dtype=dtype) for name, shape in shapes.items()}
        same(evaluate(text, **arrays)[0], reference(*arrays.values()),
             (text, dtype), factor)


def derivative_agrees(text, factor=1.0, **arrays):
    """The gradients against central differences in a random direction."""
    width = 1e-6
    weights = numbers(*evaluate(text, **arrays)[0].shape)
    turned = {name: numbers(*value.shape) for name, value in arrays.items()}
    gradients = evaluate(f"sum(weights * ({text}))", grad=",".join(arrays), weights=weights,
                         **arrays)[1:]
    ends = [evaluate(f"sum(weights * ({text}))", weights=weights,
                     **{name: value + side * turned[name] for name, value in arrays.items()})[0]
            for side in (width, -width)]
    measured = (ends[0] - ends[1]) / (2 * width)
    stated = sum((g * t).sum() for g, t in zip(gradients, turned.values()))
    bound = factor * 1e-6 * max(1, abs(measured))
    assert abs(measured - stated) < bound, f"{text}: {stated}, measured {measured}"


# --- making ----------------------------------------------------------------------------


def each_manifest_is_made_into_a_pack_and_installed_to_a_folder():
    global FOLDER
    FOLDER = pathlib.Path(packs_folder) / "plugins"
    for name in "blas", "lapack", "libm":
        tenon("ffi", "check", MANIFESTS / f"{name}.json")
        tenon("ffi", "make", MANIFESTS / f"{name}.json", "-o", FOLDER)
        assert sorted(os.listdir(FOLDER / f"org.tenon.{name}")) == [
            "ops.json", f"org.tenon.{name}.so", "plugin.json"]
    listed = {p["id"]: p for p in json.loads(tenon("plugins", "--json", env=environment()).stdout)}
    for name, count in ("blas", 9), ("lapack", 5), ("libm", 17):
        plugin = listed[f"org.tenon.{name}"]
        assert plugin["directory"].startswith(str(FOLDER)), plugin


def tools_treat_a_pack_like_any_other():
    env = environment()
    assert "blas.gemm" in tenon("ops", "blas.*", env=env).stdout
    shown = tenon("op", "blas.gemm", env=env).stdout
    for text in ("blas.gemm(a, b, c, alpha=1, beta=1) -> out", "factor of the product", "vjp",
                 "org.tenon.blas", "cpu.c/1"):
        assert text in shown, shown
    shown = tenon("op", "blas.trsm", env=env).stdout
    assert "uplo=lower" in shown and "which triangle of a counts" in shown, shown
    assert "kernel 'ffi' of plugin org.tenon.blas" in tenon("why", "op", "blas.dot", env=env).stdout
    said = tenon("why", "blas.dot(x, x)", "x=[1.0, 2]", env=env).stdout
    assert "runs on cpu-blas:0 with kernel 'ffi'" in said, said
    tenon("plugin", "verify", "org.tenon.blas", env=env)
    assert "org.tenon.libm" in tenon("plugin", "show", "org.tenon.libm", env=env).stdout


def packs_pass_the_conformance_kit():
    for name in "blas", "lapack", "libm":
        tenon("check", FOLDER / f"org.tenon.{name}" / f"org.tenon.{name}.so", env=environment())


# --- BLAS ------------------------------------------------------------------------------


def blas_over_whole_arrays_broadcasts():
    def sum_of(x, y):
        return x.dtype.type(4) * x + x.dtype.type(2) * y

    text = "blas.axpby(x, y, alpha=4, beta=2)"
    for shapes in [{"x": (5,), "y": (5,)}, {"x": (3, 4), "y": (4,)}, {"x": (), "y": (2, 3)},
                   {"x": (2, 1, 3), "y": (4, 1)}, {"x": (0,), "y": (0,)}, {"x": (0, 3), "y": (3,)},
                   {"x": (), "y": ()}, {"x": (1000, 70), "y": (1000, 70)}]:
        agrees(text, sum_of, **shapes)
    agrees("blas.axpby(x[::2], transpose(y)[::-1])", lambda x, y: x[::2] + y.T[::-1],
           x=(6, 4), y=(4, 3))
    agrees("blas.axpby(x, x)", lambda x: x + x, x=(9,))
    refused("eval", "blas.axpby(x, y)", "x=[1.0,2]", "y=[1.0,2,3]", env=environment(),
            saying="y has shape [3], which does not broadcast with [2]")


def blas_vectors_have_any_stride():
    for shape in (0,), (1,), (7,), (1000,):
        agrees("blas.dot(x, y)", numpy.dot, factor=20, x=shape, y=shape)
        agrees("blas.asum(x)", lambda x: x.dtype.type(abs(x).sum()), factor=20, x=shape)
        agrees("blas.nrm2(x)", lambda x: x.dtype.type(numpy.sqrt((x * x).sum())), factor=20,
               x=shape)
    agrees("blas.dot(x[::3], y[::-1])", lambda x, y: x[::3] @ y[::-1], x=(12,), y=(4,))
    agrees("blas.dot(x[:, 1], broadcast_to(y, shape=[5]))",
           lambda x, y: x[:, 1] @ numpy.full(5, y), x=(5, 3), y=())
    agrees("blas.iamax(x[::2])", lambda x: numpy.int64(abs(x[::2]).argmax()), x=(31,))
    agrees("blas.nrm2(x) + blas.asum(x[1:])",
           lambda x: x.dtype.type(numpy.linalg.norm(x) + abs(x[1:]).sum()), x=(9,))


def blas_matrices_have_leading_dimensions():
    def product(a, b, c):
        return a @ b + c

    for m, n, k in (3, 4, 5), (1, 1, 1), (1, 5, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0), (33, 65, 17):
        agrees("blas.gemm(a, b, c)", product, factor=20, a=(m, k), b=(k, n), c=(m, n))
    agrees("blas.gemm(a[1:4, 2:], transpose(b), c[:, ::-1], alpha=0.5, beta=-1)",
           lambda a, b, c: a.dtype.type(0.5) * (a[1:4, 2:] @ b.T) - c[:, ::-1],
           a=(6, 7), b=(4, 5), c=(3, 4))
    agrees("blas.gemm(a, broadcast_to(b, shape=[3, 4]), c)",
           lambda a, b, c: a @ numpy.broadcast_to(b, (3, 4)) + c, a=(2, 3), b=(4,), c=(2, 4))
    agrees("blas.gemm(a, a, a)", lambda a: a @ a + a, a=(8, 8))
    agrees("blas.gemv(a[:, 1:], x[::2], y, alpha=3, beta=0.5)",
           lambda a, x, y: a.dtype.type(3) * (a[:, 1:] @ x[::2]) + a.dtype.type(0.5) * y,
           a=(4, 4), x=(6,), y=(4,))
    agrees("blas.ger(x[::-1], y, a[:, ::2], alpha=2)",
           lambda x, y, a: 2 * numpy.outer(x[::-1], y).astype(x.dtype) + a[:, ::2],
           x=(3,), y=(4,), a=(3, 8))
    refused("eval", "blas.gemm(a, a, a)", "a=[[1.0,2,3],[4,5,6]]", env=environment(),
            saying="b has shape [2, 3], expected [k, n] with k = 3")


def blas_solves_triangles_in_batches():
    def lower(a, b):
        return numpy.linalg.solve(numpy.tril(a), b)

    for dtype in "f4", "f8":
        a = numbers(2, 1, 4, 4, dtype=dtype) + 4 * numpy.eye(4, dtype=dtype)
        b = numbers(1, 3, 4, 2, dtype=dtype)
        same(evaluate("blas.trsm(a, b)", a=a, b=b)[0], lower(a, b), dtype, 10)
        same(evaluate("blas.trsm(a, b[..., ::-1], uplo='upper', alpha=2)", a=a, b=b)[0],
             numpy.linalg.solve(numpy.triu(a), 2 * b[..., ::-1]), dtype, 10)
        same(evaluate("blas.trsm(a, b, trans='yes')", a=a, b=b)[0],
             numpy.linalg.solve(numpy.tril(a).swapaxes(-1, -2), b), dtype, 10)
    refused("eval", "blas.trsm(a, a, uplo='uper')", "a=[[1.0]]", env=environment(),
            saying="upper")


def blas_derivatives_agree_with_differences():
    derivative_agrees("blas.axpby(x, y, alpha=3, beta=-2)", x=numbers(4, 3), y=numbers(3))
    derivative_agrees("blas.dot(x, y)", x=numbers(5), y=numbers(5))
    derivative_agrees("blas.nrm2(x)", x=numbers(5))
    derivative_agrees("blas.asum(x)", x=numbers(5) + 3)
    derivative_agrees("blas.gemv(a, x, y, alpha=2, beta=3)", a=numbers(3, 4), x=numbers(4),
                      y=numbers(3))
    derivative_agrees("blas.ger(x, y, a, alpha=2)", x=numbers(3), y=numbers(4), a=numbers(3, 4))
    derivative_agrees("blas.gemm(a, b, c, alpha=2, beta=3)", a=numbers(3, 4), b=numbers(4, 2),
                      c=numbers(3, 2))
    refused("eval", "blas.trsm(a, a)", "a=[[1.0]]", "--grad", "a", env=environment(),
            saying="blas.trsm/1 has no vjp")


# --- LAPACK ----------------------------------------------------------------------------


def lapack_solves_in_batches():
    for dtype in "f4", "f8":
        for lead in (), (3,), (2, 3), (0,):
            a = numbers(*lead, 5, 5, dtype=dtype) + 5 * numpy.eye(5, dtype=dtype)
            b = numbers(*lead, 5, 2, dtype=dtype)
            same(evaluate("lapack.solve(a, b)", a=a, b=b)[0], numpy.linalg.solve(a, b),
                 (dtype, lead), 10)
        a, b = numbers(2, 1, 4, 4, dtype=dtype), numbers(1, 3, 4, 6, dtype=dtype)
        a += 4 * numpy.eye(4, dtype=dtype)
        same(evaluate("lapack.solve(a, b[..., ::2])", a=a, b=b)[0],
             numpy.linalg.solve(a, b[..., ::2]), (dtype, "broadcast"), 10)
    same(evaluate("lapack.solve(a, b)", a=numbers(3, 3), b=numbers(3, 0))[0], numbers(3, 0), "0")
    same(evaluate("lapack.solve(a, b)", a=numbers(0, 0), b=numbers(0, 2))[0], numbers(0, 2), "0")
    a, b = numbers(4, 4) + 4 * numpy.eye(4), numbers(4, 2)
    kept = evaluate("lapack.solve(a, b), a, b", a=a, b=b)[1:]
    same(kept[0], a, "a stays"), same(kept[1], b, "b stays")
    derivative_agrees("lapack.solve(a, b)", factor=10, a=a, b=b)
    refused("eval", "lapack.solve(a, b)", "a=[[1.0,2],[2,4]]", "b=[[1.0],[2]]", env=environment(),
            saying="lapack.solve/1: dgesv_ returned status 2: the matrix is singular")
    refused("eval", "lapack.solve(a, b)", "a=[[1.0,2],[2,4]]", "b=[1.0,2]", env=environment(),
            saying="b has rank 1, expected at least 2: [..., n, k]")


def lapack_factors_and_decomposes():
    for dtype, wide in ("f4", 100), ("f8", 100):
        a = numbers(3, 4, 4, dtype=dtype)
        spd = a @ a.swapaxes(-1, -2) + numpy.eye(4, dtype=dtype)
        same(numpy.tril(evaluate("lapack.potrf(a)", a=spd)[0]), numpy.linalg.cholesky(spd), dtype,
             wide)
        upper = numpy.triu(evaluate("lapack.potrf(a, uplo='Upper')", a=spd)[0])
        same(upper.swapaxes(-1, -2) @ upper, spd, dtype, wide)
        w, v = evaluate("lapack.eigh(a)", a=spd)
        same(w, numpy.linalg.eigvalsh(spd), dtype, wide)
        same(v @ (w[..., None] * v.swapaxes(-1, -2)), spd, dtype, wide)
        same(evaluate("lapack.eigvalsh(a)", a=spd)[0], numpy.linalg.eigvalsh(spd), dtype, wide)
        for shape in (5, 3), (3, 5), (2, 4, 4), (1, 1):
            a = numbers(*shape, dtype=dtype)
            u, s, vt = evaluate("lapack.svd(a)", a=a)
            same(s, numpy.linalg.svd(a, compute_uv=False), (dtype, shape), wide)
            same(u @ (s[..., None] * vt), a, (dtype, shape), wide)
    u, s, vt = evaluate("lapack.svd(a)", a=numbers(0, 3))
    assert (u.shape, s.shape, vt.shape) == ((0, 0), (0,), (0, 3))
    refused("eval", "lapack.potrf(a)", "a=[[1.0,2],[2,1]]", env=environment(),
            saying="the matrix is not positive definite")


# --- libm ------------------------------------------------------------------------------


def conditions_bound_extents_and_derivatives_may_be_missing():
    inputs = [{"name": name, "shape": ["...", "k"][:count]} for name, count in (("x", 2), ("y", 2))]
    pathlib.Path("bounded.json").write_text(json.dumps({
        "format": 1, "id": "com.acme.bounded", "version": "1.0.0", "vendor": "Acme", "pack": "bounded",
        "library": json.loads((MANIFESTS / "blas.json").read_text())["library"],
        "functions": [{
            "name": "dot", "symbol": "cblas_ddot", "dtype": "f64", "inputs": inputs,
            "outputs": [{"name": "out", "shape": ["..."]}], "requires": ["k >= 2", "2 * k != 6"],
            "args": [{"kind": "extent", "value": "k"}, {"kind": "input", "name": "x"}, {"kind": "constant", "value": 1},
                     {"kind": "input", "name": "y"}, {"kind": "constant", "value": 1}],
            "returns": {"kind": "output"}, "vjp": {"x": "expand_dims(g, axis=-1) * y"}}]}))
    tenon("ffi", "make", "bounded.json", "-o", FOLDER)
    x, y = numbers(2, 4), numbers(2, 4)
    same(evaluate("bounded.dot(x, y)", x=x, y=y)[0], (x * y).sum(-1), "dot")
    for size, saying in ((1, "k = 1, expected k >= 2"), (3, "2 * k = 6, expected 2 * k != 6")):
        refused("eval", "bounded.dot(x, x)", *save({"x": numbers(size)}), env=environment(), saying=saying)
    same(evaluate("sum(bounded.dot(x, y))", grad="x", x=x, y=y)[1], y, "the derivative that is there")
    said = refused("eval", "sum(bounded.dot(x, y))", *save({"x": x, "y": y}), "--grad", "y", env=environment(),
                   saying="bounded.dot/1: vjp: its manifest has no derivative with respect to 'y'").stderr
    assert said.count("vjp") == 1, said
    report = tenon("check", "com.acme.bounded", "--devices", "cpu*", "--json", env=environment()).stdout
    found = {r["check"]: r["outcome"] for r in json.loads(report)["results"]}
    assert "fail" not in found.values() and found["rules.vjp"] == "skip" and found["device.values"] == "pass", found


def libm_has_the_known_values():
    for text, x, expected in [
            ("tgamma", 5.0, 24.0), ("tgamma", 0.5, math.sqrt(math.pi)), ("lgamma", 10.0, math.log(362880)),
            ("lgamma", -0.5, math.log(2 * math.sqrt(math.pi))), ("cbrt", -27.0, -3.0),
            ("erfc", 3.0, math.erfc(3)), ("j0", 1.0, 0.76519768655796655), ("j1", 1.0, 0.44005058574493352),
            ("y0", 1.0, 0.08825696421567696), ("y1", 1.0, -0.78121282130028872), ("logb", 10.0, 3.0)]:
        for dtype in "f4", "f8":
            same(evaluate(f"libm.{text}(x)", x=numpy.array(x, dtype))[0],
                 numpy.array(expected, dtype), (text, x, dtype), 2)
    x = numbers(50) * 3 + 7
    wronskian = evaluate("libm.j1(x) * libm.y0(x) - libm.j0(x) * libm.y1(x)", x=x)[0]
    same(wronskian, 2 / (math.pi * x), "Wronskian", 10)
    same(evaluate("libm.jn(x, n=1)", x=x)[0], evaluate("libm.j1(x)", x=x)[0], "jn", 10)
    refused("eval", "libm.jn(x)", "x=1.0", env=environment(), saying="n")
    refused("eval", "libm.jn(x, n=1001)", "x=1.0", env=environment(),
            saying="libm.jn/1 (x = x): n = 1001, expected -1000 to 1000")


def libm_is_elementwise_over_any_layout():
    for name, reference in [("hypot", numpy.hypot), ("copysign", numpy.copysign),
                            ("fmod", numpy.fmod), ("nextafter", numpy.nextafter)]:
        for shapes in [{"x": (4, 5), "y": (5,)}, {"x": (3, 1), "y": ()}, {"x": (0, 2), "y": (2,)},
                       {"x": (), "y": ()}]:
            agrees(f"libm.{name}(x, y)", reference, factor=2, **shapes)
        agrees(f"libm.{name}(x[::2], transpose(y)[::-1])",
               lambda x, y, f=reference: f(x[::2], y.T[::-1]), factor=2, x=(6, 4), y=(4, 3))
    agrees("libm.cbrt(x)", numpy.cbrt, x=(100, 100))
    agrees("libm.fma(x, y, z)", lambda x, y, z: x * y + z, x=(2, 3), y=(3,), z=())
    agrees("libm.fdim(x, y)", lambda x, y: numpy.maximum(x - y, 0).astype(x.dtype), x=(9,), y=(9,))
    e = numpy.array([[1], [-2]], "i4")
    for dtype in "f4", "f8":
        x = numbers(2, 3, dtype=dtype)
        same(evaluate("libm.ldexp(x, e)", x=x, e=e)[0], numpy.ldexp(x, e), "ldexp")
    refused("eval", "libm.ldexp(x, x)", "x=1.0", env=environment(),
            saying="e is f64, expected i32")
    refused("eval", "libm.hypot(x, y)", "x=1.0", "y=1", env=environment(),
            saying="y is i64, expected f64 as x")


def libm_derivatives_agree_with_differences():
    x, y, z = numbers(6) + 3, numbers(6) + 5.25, numbers(1)
    for text in ("libm.cbrt(x)", "libm.erfc(x)", "libm.j0(x)", "libm.j1(x)", "libm.y0(x)",
                 "libm.y1(x)"):
        derivative_agrees(text, factor=10, x=x)
    derivative_agrees("libm.hypot(x, y)", x=x, y=y)
    derivative_agrees("libm.fmod(x, y)", x=x + 8, y=y / 4 + 3)
    derivative_agrees("libm.copysign(x, -y)", x=x, y=y)
    derivative_agrees("libm.fma(x, y, z)", x=x, y=y, z=z)
    derivative_agrees("libm.ldexp(x, astype(3, i32))", x=x)
    derivative_agrees("libm.nextafter(x, y)", factor=10, x=x, y=y)


# --- devices ---------------------------------------------------------------------------


def any_number_of_threads_gives_the_same():
    x, y = numbers(300, 200), numbers(200)
    first = evaluate("libm.hypot(x, y), blas.axpby(x, y), lapack.eigvalsh(x[:9, :9])", x=x, y=y)
    for threads in "1", "4":
        env = environment(TENON_THREADS=threads, TENON_BACKEND="cpu-blas")
        again = evaluate("libm.hypot(x, y), blas.axpby(x, y), lapack.eigvalsh(x[:9, :9])", env=env,
                         x=x, y=y)
        for a, b in zip(first, again):
            same(a, b, threads)


def a_gpu_alone_is_an_error_and_with_the_cpu_a_transfer():
    if not tap.has_plugins("org.tenon.vulkan") or "VK_ICD_FILENAMES" not in os.environ:
        return "no software driver of Vulkan"
    alone = environment(TENON_BACKEND="vulkan")
    said = refused("eval", "libm.cbrt(x + 1)", "x=[1.0, 7]", env=alone,
                   saying="libm.cbrt/1 giving f64[2] runs on none of the selected devices (vulkan:0)")
    assert "add a backend to TENON_BACKEND" in said.stderr
    both = environment(TENON_BACKEND="vulkan,cpu-blas", TENON_FALLBACK="allow")
    x = numpy.array([1, 7], "f4")
    same(evaluate("libm.cbrt(x + 1) * 2", env=both, x=x)[0], 2 * numpy.cbrt(x + 1), "transfer")
    said = tenon("why", "libm.cbrt(x)", "x=[1.0, 7]", env=both).stdout
    assert "vulkan" in said and "cpu-blas:0 with kernel 'ffi'" in said, said


if numpy is None:
    print("1..0 # SKIP NumPy is not installed")
    sys.exit(0)
with tempfile.TemporaryDirectory() as packs_folder:
    tap.run([
        each_manifest_is_made_into_a_pack_and_installed_to_a_folder,
        tools_treat_a_pack_like_any_other, packs_pass_the_conformance_kit,
        blas_over_whole_arrays_broadcasts, blas_vectors_have_any_stride,
        blas_matrices_have_leading_dimensions, blas_solves_triangles_in_batches,
        blas_derivatives_agree_with_differences, lapack_solves_in_batches,
        lapack_factors_and_decomposes, conditions_bound_extents_and_derivatives_may_be_missing, libm_has_the_known_values,
        libm_is_elementwise_over_any_layout, libm_derivatives_agree_with_differences,
        any_number_of_threads_gives_the_same, a_gpu_alone_is_an_error_and_with_the_cpu_a_transfer])

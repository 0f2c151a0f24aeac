# SPDX-License-Identifier: MIT
"""`tenon kernels`: launches and kernels of a plan are counted by what they have in common, and
nothing runs."""

import json
import os
import pathlib
import subprocess
import sys

import tap
from tap import refused, run, tenon

GRAPHS = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/kernel_graphs.py"


def environment(backend="vulkan"):
    return {"TENON_BACKEND": backend, "TENON_CACHE_DIR": os.path.abspath("cache")}


def present(backend):
    rows = json.loads(tenon("devices", "--json").stdout)
    return any(row["backend"] == backend and not row["reason"] for row in rows)


def report(*args, backend="vulkan"):
    return json.loads(tenon("kernels", "--json", *args, env=environment(backend)).stdout)


def counts(r):
    return tuple(r[key] for key in ("launches", "baked", "exact", "folded", "modules"))


A, B, C = "a=[[1.0,2],[3,4]]", "b=[[5.0,6],[7,8]]", "c=[[1.0,2,3],[4,5,6]]"
# Nine transposed operands: arguments that are too many to be pushed lie in a buffer.
NINE = json.dumps([[[1.0, 2, 3], [4, 5, 6]]] * 9)


def wide(name, last=9):
    return " + ".join(f"{name}[{i}].T * {last if i == 8 else i + 2}" for i in range(9))


# Expression, values, then: launches, baked, exact, folded, modules.
COUNTS = [
    ("exp(a)", [A], (1, 1, 1, 1, 1)),
    # One program with other constants, other extents, or the same of other values.
    ("exp(a * 2), exp(b * 3)", [A, B], (2, 2, 2, 1, 1)),
    ("exp(a * 2), exp(c * 2)", [A, C], (2, 2, 2, 1, 1)),
    ("exp(a * 2), exp(b * 2)", [A, B], (2, 1, 1, 1, 1)),
    ("exp(a * 2), tanh(b * 2)", [A, B], (2, 2, 2, 2, 2)),
    # What a step finds and leaves lies in other places of the memory.
    ("a @ b @ b @ b", [A, B], (3, 3, 1, 1, 1)),
    # One module, specialised in two ways.
    ("a @ b, a.T @ b", [A, B], (2, 2, 2, 2, 1)),
    # Constants in a buffer count by what they are, not by where they lie.
    (f"{wide('x')}, {wide('y')}, {wide('z', 7)}", [f"{n}={NINE}" for n in "xyz"], (3, 2, 2, 1, 1)),
    # A loop's body counts once.
    ("while_loop(a, body='x -> tanh(x) * 2', times=3)", [A], (1, 1, 1, 1, 1)),
]


def launches_are_counted_by_what_they_share():
    if not present("vulkan"):
        return "no Vulkan device"
    for expression, values, expected in COUNTS:
        r = report(expression, *values)
        assert counts(r) == expected, (expression, counts(r), expected)
        assert len(r["sites"]) == r["launches"] == sum(k["launches"] for k in r["kernels"]), r
        assert len(r["kernels"]) == r["folded"] and sum(k["exact"] for k in r["kernels"]) == r["exact"], r


def each_launch_says_what_it_is():
    if not present("vulkan"):
        return "no Vulkan device"
    r = report("a @ b, a.T @ b, exp(a * 2)", A, B)
    product, turned, program = r["sites"]
    assert product["step"] == turned["step"] == "base.matmul/1" and program["step"] == "multiply·exp", r
    assert product["code"] == turned["code"] and product["spec"] != turned["spec"], r
    assert product["groups"] == [1, 1, 1] and product["push_bytes"] > program["push_bytes"] > 0, r
    assert {s["device"] for s in r["sites"]} == {"vulkan:0"} and not program["spec"], r
    of_all, of_modules = sum(s["code_bytes"] for s in r["sites"]), product["code_bytes"] + program["code_bytes"]
    assert r["code_bytes"] == {"baked": of_all, "exact": of_all, "folded": of_all, "modules": of_modules}, r
    said = tenon("kernels", "a @ b, a.T @ b", A, B, env=environment()).stdout
    assert said.count(product["name"]) == 2 and "1x1x1" not in said and "     1  modules" in said, said
    assert "1x1x1" in tenon("kernels", "-l", "a @ b", A, B, env=environment()).stdout


# Extents of x and of w, padding; kernels on a GPU, and on the software driver, where terms stay whole.
CONVOLUTIONS = [
    ("1, 7, 7, 64", "40, 3, 3, 64", "1", ["conv2d_wide_32x32", "reduce_sum_f32"], ["conv2d_wide_32x32"]),
    ("2, 32, 32, 64", "128, 1, 1, 64", "0", ["conv2d_wide_32x64"], ["conv2d_wide_32x64"]),
    ("4, 32, 32, 64", "256, 1, 1, 64", "0", ["conv2d_wide_64x128"], ["conv2d_wide_64x128"]),
    ("8, 32, 32, 16", "256, 3, 3, 16", "1", ["conv2d_wide_128x128"], ["conv2d_wide_128x128"]),
    # Channels that are no multiple of four; few filters; few channels, too.
    ("1, 7, 7, 66", "40, 3, 3, 66", "1", ["conv2d_forward_f32_16"], ["conv2d_forward_f32_16"]),
    ("1, 7, 7, 33", "8, 3, 3, 33", "1", ["conv2d_forward_f32_direct"], ["conv2d_forward_f32_direct"]),
    ("1, 7, 7, 4", "8, 3, 3, 4", "1", ["conv2d_few_f32"], ["conv2d_few_f32"]),
]


def convolutions_choose_their_tiles():
    if not present("vulkan"):
        return "no Vulkan device"
    for x, w, padding, *expected in CONVOLUTIONS:
        made = [f"broadcast_to(astype({name}, f32), shape=[{extents}])" for name, extents in (("x", x), ("w", w))]
        for as_gpu, names in zip("10", expected):
            said = tenon("kernels", "--json", f"conv2d({', '.join(made)}, padding=[{padding}, {padding}])", "x=[1.0]",
                         "w=[2.0]", env={**environment(), "TENON_VULKAN_AS_GPU": as_gpu}).stdout
            got = [s["name"] for s in json.loads(said)["sites"] if s["step"] == "nn.conv2d/1"]
            assert got == names, (x, w, as_gpu, got, names)


def why_names_the_kernel_that_is_launched():
    if not present("vulkan"):
        return "no device of vulkan"
    expression = ["astype(x, dtype=f32) @ astype(x, dtype=f32)", "x=[[1.0,2],[3,4]]"]
    names = {s["name"] for s in report(*expression)["sites"] if s["step"] == "base.matmul/1"}
    said = tenon("why", *expression, env=environment()).stdout
    assert len(names) == 1 and f"  base.matmul/1: {names.pop()}\n" in said, said


def the_compiler_s_kernels_are_counted_alike():
    if not present("vulkan-jit"):
        return "no device of vulkan-jit"
    expression, values = "exp(a * 2) @ b, exp(b * 3)", (A, B)
    ahead, jit = (report(expression, *values, backend=b) for b in ("vulkan", "vulkan-jit"))
    assert counts(ahead) == counts(jit) == (3, 3, 3, 2, 2), (ahead, jit)


def a_saved_graph_needs_no_values_and_nothing_runs():
    if not present("vulkan"):
        return "no Vulkan device"
    tenon("eval", "exp(a * 2) @ b", A, B, "--save", "work.graph")
    assert counts(report("@work.graph")) == counts(report("exp(a * 2) @ b", A, B)) == (2, 2, 2, 2, 2)
    two = {"TENON_BACKEND": "vulkan,cpu-blas", "TENON_FALLBACK": "1"}
    assert "printed" not in tenon("kernels", "exp(print(a, text='printed'))", A, env={**environment(), **two}).stdout


def large_graphs_need_few_kernels():
    if not present("vulkan"):
        return "no Vulkan device"
    graphs = ("encoder", "resnet", "lenet", "transformer")
    done = subprocess.run([sys.executable, GRAPHS, "--tenon", tap.TENON, *graphs], text=True, check=True,
                          env={**tap.ENVIRONMENT, **environment()}, stdout=subprocess.PIPE)
    rows = [line.split()[:5] for line in done.stdout.splitlines()[1:]]
    assert tuple(row[0] for row in rows) == graphs, done.stdout
    found = {row[0]: tuple(map(int, row[1:])) for row in rows}
    for launches, baked, exact, folded in found.values():
        assert launches >= baked >= exact > folded > 5, done.stdout
    assert found["encoder"][3] <= min(25, found["encoder"][1] // 10) and found["encoder"][2] > 100, done.stdout
    assert found["resnet"][3] <= 20, done.stdout


# Arguments that are pushed, in a buffer, of a program beside a kernel, at indices that are computed.
MEASURED = f"exp(a * 2) @ b, exp(b * 3), sum(c.T, axis=0) * 2, softmax(c * 2), {wide('x')}, c[:, ::2] + 1, take(c, [1, 0], axis=0)"


def folding_is_measured():
    for backend in ("vulkan", "vulkan-jit"):
        if not present(backend):
            return f"no device of {backend}"
        r = report("--measure", MEASURED, A, B, C, f"x={NINE}", backend=backend)
        total = r["cost"]
        assert total["measured"] == r["launches"] > 6 and "reason" not in total, total
        assert total["not_baked"] == total["not_run"] == total["differing"] == 0, r
        assert total["folded_us"] > 0 and abs(total["ratio"] - total["folded_us"] / total["baked_us"]) < 1e-9, total
        run = r["run"]
        assert run["folded_us"] > 0 and abs(run["ratio"] - run["folded_us"] / run["baked_us"]) < 1e-9, run
        assert sum(k["cost"]["measured"] for k in r["kernels"]) == total["measured"], r
        assert all(0 < s["cost"]["baked_bytes"] and s["cost"]["baked_us"] > 0 for s in r["sites"]), r
    # Launches that are equal are measured once; a branch that is not taken is not.
    said = tenon("kernels", "-m", "exp(a * 2), exp(b * 2)", A, B, env=environment()).stdout
    assert "ratio" in said.splitlines()[-4] and said.splitlines()[-2].split()[:2] == ["all", "2"], said
    assert said.splitlines()[-1].split()[:5] == ["all", "in", "one", "run", "2"], said
    tenon("eval", "exp(a * 2) @ b", A, B, "--save", "measured.graph")
    assert report("--measure", "@measured.graph")["cost"]["measured"] == 2
    assert "cost" not in report("exp(a)", A)


def what_tells_no_launch_is_an_error():
    refused("kernels", "exp(a)", A, env=environment("cpu-blas"), saying="no launch was told")
    refused("kernels", "exp(a", A, saying="exp(a")
    refused("kernels", "@absent.graph", saying="absent.graph")
    refused("kernels", status=2)
    refused("kernels", "exp(a)", A, "--lunches", status=2, saying="--launches")
    if present("vulkan"):
        refused("kernels", "a", A, env=environment(), saying="no launch was told")
        refused("kernels", "rfft(a)", A, env=environment(), saying="fft.dft_of_real")


run([launches_are_counted_by_what_they_share,
     each_launch_says_what_it_is,
     convolutions_choose_their_tiles,
     why_names_the_kernel_that_is_launched,
     the_compiler_s_kernels_are_counted_alike,
     a_saved_graph_needs_no_values_and_nothing_runs,
     large_graphs_need_few_kernels,
     folding_is_measured,
     what_tells_no_launch_is_an_error])

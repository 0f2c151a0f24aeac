#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A norm whose GPU kernels plan their launches is built from an installed SDK alone, and agrees with
NumPy: rows that share a workgroup or not, rows of one launch and of two, and what the kernels
leave to the expression."""

import json
import shutil
import sys

import bench
from bench import Skip

try:
    import numpy as np
except ImportError:
    np = None

KERNELS = {"vulkan": "rms_norm_spirv", "vulkan-jit": "rms_norm_glsl"}
# Shapes, and the launches of the kernel; 0: the expression runs. In one launch: an invocation a
# row; four and eight, which subgroups of 4 and of 8 just hold, with rows to spare in the last
# workgroup; several subgroups, two rows a workgroup; a workgroup a row.
SHAPES = [((3, 4), 1), ((37, 12), 1), ((37, 132), 1), ((5, 1032), 1), ((2, 1, 8192), 1),
          ((3, 8196), 2), ((2, 100000), 2), ((5, 7), 0)]
EPS = 1e-3


class RmsNorm(bench.Bench):
    def builds(self):
        """It builds against the installed SDK without a warning, and links nothing of Tenon"""
        self.install()
        shutil.copytree(self.args.source / "sdk/examples/rmsnorm", self.folder / "rmsnorm")
        self.built = self.build(self.folder / "rmsnorm")
        needed = self.run("readelf", "--dynamic", self.built / "com.acme.rmsnorm.so")
        assert "tenon" not in "".join(l for l in needed.splitlines() if "NEEDED" in l), needed
        self.tenon("plugin", "install", self.built / "com.acme.rmsnorm")

    def counts_lines(self):
        """it is at most 120 lines of C"""
        lines = (self.args.source / "sdk/examples/rmsnorm/plugin.c").read_text().splitlines()
        assert len(lines) <= 120, f"{len(lines)} lines, expected at most 120"

    def passes_check(self, backend):
        if backend and not self.has_device(backend):
            raise Skip(f"there is no {backend} device")
        only = ["--only", "device.kernel*", "--devices", f"{backend}:*"] if backend else \
            ["--devices", "cpu*"]
        report = json.loads(self.tenon("check", "com.acme.rmsnorm", "--json", *only))
        checked = {r["check"] for r in report["results"] if r["outcome"] == "pass"}
        wanted = {"device.kernel"} if backend else {"rules.vjp", "rules.jvp", "rules.vmap",
                                                    "kernel.plan", "kernel.plan-pure"}
        assert wanted <= checked, report

    def agrees(self, backend):
        if np is None:
            raise Skip("NumPy is not installed")
        if not self.has_device(backend):
            raise Skip(f"there is no {backend} device")
        random = np.random.default_rng(7)
        for shape, launches in SHAPES:
            x = random.standard_normal(shape, dtype=np.float32)
            w = random.standard_normal(shape[-1:], dtype=np.float32)
            np.save(self.folder / "x.npy", x)
            np.save(self.folder / "w.npy", w)
            given = (f"acme.rms_norm(x, w, eps={EPS})", f"x={self.folder}/x.npy",
                     f"w={self.folder}/w.npy")
            trace = self.folder / "trace.json"
            trace.unlink(missing_ok=True)
            self.run(self.command, "eval", *given, "-o", self.folder / "y.npy",
                     env={"TENON_BACKEND": backend, "TENON_TRACE": str(trace)})
            y = np.load(self.folder / "y.npy")
            wide = x.astype(np.float64)
            expected = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + EPS) * w
            worst = abs(y - expected).max()
            assert y.shape == shape and worst < 1e-5, f"{shape}: {y.shape}, off by {worst}"
            ran = trace.read_text().count('"acme.rms_norm/1')
            assert ran == launches or not launches, f"{shape}: {ran} launches, expected {launches}"
        why = self.tenon("why", "x = astype([[1, 2, 3, 4]], f32); acme.rms_norm(x, x)", backend=backend)
        assert "as an expression" in why and f"not {KERNELS[backend]}" in why, why # w is no list
        why = self.tenon("why", "w = astype([1, 2, 3, 4], f32); acme.rms_norm(w, w)", backend=backend)
        assert f"with kernel '{KERNELS[backend]}' of com.acme.rmsnorm" in why, why


def tests_of(norm):
    tests = [(t.__doc__, t, ()) for t in (norm.builds, norm.counts_lines)]
    tests += [(f"tenon check finds nothing wrong{' on ' + b if b else ''}", norm.passes_check, (b,))
              for b in (None, *KERNELS)]
    return tests + [(f"it agrees with NumPy on {b}", norm.agrees, (b,)) for b in KERNELS]


if __name__ == "__main__":
    sys.exit(bench.run(tests_of, RmsNorm))

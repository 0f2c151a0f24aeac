#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An op pack is built from an installed SDK alone, installed, and run on every backend."""

import hashlib
import json
import shutil
import subprocess
import sys

import bench
from bench import Skip

try:
    import numpy as np
except ImportError:
    np = None

PRIMITIVES = ["acme.axpby_expr", "acme.axpby", "acme.axpby_rules"]
ALPHA, BETA = 4.0, -2.5
# Two products and a sum, each rounded, or one fused: twice the spacing of f32.
TOLERANCE = 2.0**-22
# Where the kernel of acme.axpby/1 is expected to run, and its name there.
KERNELS = {"cpu-blas": "axpby_cblas", "vulkan": "axpby_spirv", "vulkan-jit": "axpby_glsl"}


class Axpby(bench.Bench):
    def installs(self):
        """Tenon installs, and the manifests hold the hashes of the installed bytes"""
        self.install()
        for folder in self.plugins.iterdir():
            manifest = json.loads((folder / "plugin.json").read_text())
            digest = hashlib.sha256((folder / f"{folder.name}.so").read_bytes()).hexdigest()
            assert digest in json.dumps(manifest), f"{folder.name}: hash {digest} is not in it"
        self.tenon("plugin", "verify")

    def counts_lines(self):
        """axpby is one line as an expression, and at most 60 with kernels, shader and rules"""
        lines = [l.strip() for name in ("plugin.c", "axpby.comp")
                 for l in (self.args.source / "sdk/examples/axpby" / name).read_text().splitlines()]
        written = [l for l in lines if l and not l.startswith("//")]
        assert len(written) <= 60, f"{len(written)} lines, expected at most 60"
        assert sum(l.startswith("TN_EXPR_OP(axpby,") and l.endswith(";") for l in written) == 1

    def builds_axpby(self):
        """axpby builds against the installed SDK without a warning"""
        shutil.copytree(self.args.source / "sdk/examples/axpby", self.folder / "axpby")
        self.axpby = self.build(self.folder / "axpby")
        needed = self.run("readelf", "--dynamic", self.axpby / "com.acme.axpby.so")
        assert "tenon" not in "".join(l for l in needed.splitlines() if "NEEDED" in l), needed

    def installs_axpby(self):
        """tenon plugin install takes the pack, and its operators are there"""
        self.tenon("plugin", "install", self.axpby / "com.acme.axpby")
        listed = self.tenon("ops", "acme.*")
        for name in PRIMITIVES:
            assert name in listed, listed
        shown = self.tenon("op", "acme.axpby")
        for family in ("cpu.c/1", "vulkan.glsl/1", "vulkan.spirv/1"):
            assert family in shown, shown

    def passes_check(self):
        """tenon check finds nothing wrong with the pack, on any device"""
        report = json.loads(self.tenon("check", "com.acme.axpby", "--json"))
        checked = {r["check"] for r in report["results"] if r["outcome"] == "pass"}
        assert {"kernel.values", "rules.vjp", "rules.vmap", "device.kernel"} <= checked, report

    def needs(self, backend):
        if np is None:
            raise Skip("NumPy is not installed")
        if not self.has_device(backend):
            raise Skip(f"there is no {backend} device")

    def arrays(self):
        """Contiguous, broadcast, and with axes that are not in memory order."""
        random = np.random.default_rng(20)
        make = lambda *shape: random.standard_normal(shape, dtype=np.float32)
        return {"contiguous": (make(33, 1031), make(33, 1031)),
                "broadcast": (make(7, 1, 9), make(5, 1)),
                "transposed": (np.asfortranarray(make(40, 30)), make(40, 30)),
                "empty": (make(0, 3), make(0, 3)),
                "scalars": (make(), make())}

    def computes(self, backend):
        self.needs(backend)
        for kind, (x, y) in self.arrays().items():
            np.save(self.folder / "x.npy", x)
            np.save(self.folder / "y.npy", y)
            expected = ALPHA * x.astype(np.float64) + BETA * y
            scale = abs(ALPHA * x) + abs(BETA * y)
            for name in PRIMITIVES:
                self.tenon("eval", f"{name}(x, y, alpha={ALPHA}, beta={BETA})",
                           f"x={self.folder}/x.npy", f"y={self.folder}/y.npy",
                           "-o", self.folder / "out.npy", backend=backend)
                out = np.load(self.folder / "out.npy")
                assert out.dtype == np.float32 and out.shape == expected.shape, \
                    f"{name}, {kind}: {out.dtype}{out.shape}"
                assert np.all(abs(out - expected) <= TOLERANCE * scale), f"{name}, {kind}"

    def chooses(self, backend):
        self.needs(backend)
        np.save(self.folder / "x.npy", np.ones((64, 64), np.float32))
        why = self.tenon("why", "acme.axpby(x, x, alpha=4, beta=2)",
                         f"x={self.folder}/x.npy", backend=backend)
        assert KERNELS[backend] in why, why

    def differentiates(self, backend):
        self.needs(backend)
        np.save(self.folder / "x.npy", np.ones((6, 4), np.float32))
        np.save(self.folder / "y.npy", np.ones(4, np.float32))  # broadcast along 6 rows
        slopes = {"x": np.full((6, 4), ALPHA), "y": np.full(4, 6 * BETA)}
        for name in PRIMITIVES:
            told = json.loads(self.tenon(
                "eval", f"{name}(x, y, alpha={ALPHA}, beta={BETA})", "--grad", "x,y", "--json",
                f"x={self.folder}/x.npy", f"y={self.folder}/y.npy", backend=backend))
            for wrt, slope in slopes.items():
                grad = np.array(told["gradients"][wrt]["data"])
                assert grad.shape == slope.shape and np.all(grad == slope), \
                    f"{name}: d/d{wrt} is {grad}, expected {slope}"

    def calls_rules(self):
        """the rules written by hand agree with loops"""
        self.run(self.args.caller)

    def refuses_changed(self):
        """the manifest no longer holds once the plugin is changed, and tenon says so"""
        file = self.folder / "data/tenon/plugins/com.acme.axpby/com.acme.axpby.so"
        with open(file, "ab") as plugin:
            plugin.write(b"\0")
        told = subprocess.run([str(self.command), "eval", "acme.axpby(1, 2)"], env=self.env,
                              text=True, capture_output=True, check=False)
        assert told.returncode == 1 and "com.acme.axpby" in told.stderr, told


def tests_of(axpby):
    tests = [(t.__doc__, t, ()) for t in (axpby.installs, axpby.counts_lines,
                                          axpby.builds_axpby, axpby.installs_axpby,
                                          axpby.passes_check)]
    for backend, kernel in KERNELS.items():
        tests += [(f"all three agree with NumPy on {backend}", axpby.computes, (backend,)),
                  (f"acme.axpby runs as {kernel} on {backend}", axpby.chooses, (backend,)),
                  (f"all three differentiate on {backend}", axpby.differentiates, (backend,))]
    return tests + [(t.__doc__, t, ()) for t in (axpby.calls_rules, axpby.refuses_changed)]


if __name__ == "__main__":
    sys.exit(bench.run(tests_of, Axpby))

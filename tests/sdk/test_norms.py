#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two norms and a loss of nine lines, built from an installed SDK alone, on each backend."""

import json
import math
import shutil
import sys

import bench

BACKENDS = ["cpu-blas", "vulkan", "vulkan-jit"]
ROW = [0.5 * i - 8 for i in range(40)]


def rms_norm(x):
    return [v / math.sqrt(sum(u * u for u in x) / len(x) + 1e-5) * 2 for v in x]


def softmax(x):
    powers = [math.exp(v - max(x)) for v in x]
    return [p / sum(powers) for p in powers]


def huber(x):
    return [v * v / 2 if abs(v) <= 3 else 3 * (abs(v) - 1.5) for v in x]


CALLS = [("acme.rms_norm(x, 2.0)", rms_norm), ("acme.softmax(x)", softmax), ("huber(x, 0.0, delta=3)", huber)]


class Norms(bench.Bench):
    def builds(self):
        """It builds against the installed SDK without a warning, of nine lines"""
        self.install()
        shutil.copytree(self.args.source / "sdk/examples/norms", self.folder / "norms")
        lines = (self.folder / "norms/plugin.c").read_text().splitlines()
        assert sum(not line.startswith("//") and bool(line) for line in lines) <= 9, lines
        self.tenon("plugin", "install", self.build(self.folder / "norms") / "com.acme.norms")

    def passes_check(self):
        """tenon check finds nothing wrong on any device, with both derivatives and batching"""
        report = json.loads(self.tenon("check", "com.acme.norms", "--samples", "6", "--json"))
        checked = {r["check"] for r in report["results"] if r["outcome"] == "pass"}
        assert {"rules.vjp", "rules.jvp", "rules.vmap"} <= checked, checked

    def runs(self, backend):
        if not self.has_device(backend):
            raise bench.Skip("no device is here")
        for call, want in CALLS:
            for rows in ([ROW], [ROW, ROW[::-1]]):
                done = json.loads(self.tenon("eval", "--json", call, f"x={json.dumps(rows)}", backend=backend))
                for row, got in zip(rows, done["results"][0]["data"]):
                    assert all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(got, want(row))), (call, got)

    def is_one_launch(self, backend):
        if not self.has_device(backend):
            raise bench.Skip("no device is here")
        told = self.tenon("why", "acme.softmax(x * 2 + 1)", f"x={json.dumps([ROW, ROW])}", backend=backend)
        assert "1 step." in told, told


def tests(norms):
    found = [(t.__doc__, t, ()) for t in (norms.builds, norms.passes_check)]
    for backend in BACKENDS:
        found += [(f"{backend} computes them", norms.runs, (backend,)),
                  (f"{backend} runs softmax and what is before it as one launch", norms.is_one_launch, (backend,))]
    return found


if __name__ == "__main__":
    sys.exit(bench.run(tests, Norms))

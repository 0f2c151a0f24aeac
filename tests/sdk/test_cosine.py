#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A kernel with a state for each step, and with a program behind it, is built from an installed SDK alone."""

import json
import math
import shutil
import sys

import bench


def transformed(row):
    """What the definition gives."""
    n = len(row)
    return [sum(x * math.cos(math.pi * (i + 0.5) * k / n) for i, x in enumerate(row)) for k in range(n)]


class Cosine(bench.Bench):
    def builds(self):
        """It builds against the installed SDK without a warning, in at most 120 lines"""
        self.install()
        shutil.copytree(self.args.source / "sdk/examples/cosine", self.folder / "cosine")
        lines = (self.folder / "cosine/plugin.c").read_text().splitlines()
        assert len(lines) <= 120, len(lines)
        self.built = self.build(self.folder / "cosine")

    def passes_check(self):
        """tenon check finds nothing wrong"""
        self.tenon("plugin", "install", self.built / "com.acme.cosine")
        report = json.loads(self.tenon("check", "com.acme.cosine", "--json"))
        passed = {r["check"] for r in report["results"] if r["outcome"] == "pass"}
        assert {"kernel.values", "kernel.threads", "device.values"} <= passed, report

    def computes(self):
        """Steps of other lengths have states of their own, also where the output is fused"""
        rows = {"a": [1, 2, 4], "b": [3, -1, 0.5, 2, 1]}
        inputs = [f"{name}={json.dumps([float(x) for x in row])}" for name, row in rows.items()]
        one = "acme.cosine(astype({0}, f32))"
        for call, change in [(one, lambda x: x), (f"2 * {one} + 1", lambda x: 2 * x + 1)]:
            for name, row in rows.items():
                text = self.tenon("eval", "--json", call.format(name), inputs[list(rows).index(name)])
                got = json.loads(text)["results"][0]["data"]
                want = [change(x) for x in transformed(row)]
                assert all(abs(g - w) < 1e-5 for g, w in zip(got, want, strict=True)), (call, got, want)
        told = self.tenon("why", f"2 * {one.format('a')} + 1", inputs[0])
        assert "cosine·multiply·add (table)" in told, told


def tests(cosine):
    return [(t.__doc__, t, ()) for t in (cosine.builds, cosine.passes_check, cosine.computes)]


if __name__ == "__main__":
    sys.exit(bench.run(tests, Cosine))

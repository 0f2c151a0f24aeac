#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Operators with a list, a text or a graph as attributes are built from an installed SDK alone."""

import json
import shutil
import subprocess
import sys

import bench

CALLER = """
#include <stdio.h>
#include "polynomial.h"

int main(void)
{
    const double values[] = {0, 0, 0, 1};
    const tn_float_list cubic = {4, values};
    const float x[] = {-1, 0.5F, 1};
    float got[3];
    tn_runtime *rt;
    if (tn_runtime_open(NULL, &rt))
        return printf("%s\\n", tn_last_error()), 1;
    tn_scope *s = tn_scope_open(rt);
    tn_array *in = tn_from_data(s, TN_F32, TN_SHAPE(3), x);
    tn_array *y = acme_polynomial(s, in, &cubic, "chebyshev");
    if (tn_read(s, y, got, sizeof(got)))
        return printf("%s\\n", tn_scope_error(s)), 1;
    printf("%g %g %g\\n", (double)got[0], (double)got[1], (double)got[2]);
    y = tn_op(s, "acme.polynomial", TN_IN(in), tn_attrs("coefficients", TN_FLOATS(1, 2)));
    if (tn_read(s, y, got, sizeof(got)))
        return printf("%s\\n", tn_scope_error(s)), 1;
    printf("%g %g %g\\n", (double)got[0], (double)got[1], (double)got[2]);
    tn_array *powers[3];
    if (acme_powers(s, in, 3, powers, 3) || tn_read(s, powers[2], got, sizeof(got)))
        return printf("%s\\n", tn_scope_error(s)), 1;
    printf("%g %g %g\\n", (double)got[0], (double)got[1], (double)got[2]);
    tn_scope_close(s);
    return tn_runtime_close(rt);
}
"""


class Polynomial(bench.Bench):
    def builds(self):
        """It builds against the installed SDK without a warning, and links nothing of Tenon"""
        self.install()
        for name in ("polynomial", "fixpoint"):
            lines = (self.args.source / "sdk/examples" / name / "plugin.c").read_text().splitlines()
            assert len(lines) <= 120, (name, len(lines))
        shutil.copytree(self.args.source / "sdk/examples/polynomial", self.folder / "polynomial")
        self.built = self.build(self.folder / "polynomial")
        needed = self.run("readelf", "--dynamic", self.built / "com.acme.polynomial.so")
        assert "tenon" not in "".join(l for l in needed.splitlines() if "NEEDED" in l), needed

    def passes_check(self):
        """tenon check finds nothing wrong, with derivatives and batching"""
        self.tenon("plugin", "install", self.built / "com.acme.polynomial")
        report = json.loads(self.tenon("check", "com.acme.polynomial", "--json"))
        checked = {r["check"] for r in report["results"] if r["outcome"] == "pass"}
        assert {"infer.accepts", "attrs.parse", "attrs.extremes", "rules.vjp", "rules.vmap"} <= checked, report

    def result(self, *words):
        return json.loads(self.tenon("eval", "--json", *words))

    def is_called(self):
        """tenon eval gives lists and texts, in either quotes"""
        for call, expected in [("polynomial(x, [1, 2.5, 3])", [18, 1.5]),
                               ("polynomial(x, coefficients=[1, 2, 3], basis='power')", [17, 2]),
                               ("polynomial(x, [0, 0, 1], \"cheby\\x73hev\")", [7, 1]),
                               ("polynomial(x, [0, 0, 1], basis=none)", [4, 1]),
                               (f"polynomial(x, [{', '.join(['0'] * 12)}, 1])", [4096, 1])]:
            got = self.result(call, "x=[2.0, -1]")["results"][0]["data"]
            assert got == expected, (call, got)
            self.tenon("eval", call, "x=[2.0, -1]", "--save", self.folder / "saved.graph")
            got = self.result(f"@{self.folder / 'saved.graph'}", "x=[2.0, -1]")["results"][0]["data"]
            assert got == expected, ("saved", call, got)
        done = self.result("polynomial(x, [1, 2, 3])", "x=2.0", "--grad", "x")
        assert done["gradients"]["x"]["data"] == 14, done

    def rates_are_data(self):
        """A runtime attribute is a number or an array, and has a batch as any array"""
        words = "x=[1.0, 2]", "y=[3.0, 6]"
        for call, more, expected in [("approach(x, y)", (), [1.2, 2.4]), ("approach(x, y, 0.5)", (), [2, 4]),
                                     ("approach(x, y, rate=r)", ("r=0.25",), [1.5, 3]),
                                     ("approach(x, y, rate=r / 2)", ("r=[0.5, 2]", "--vmap", "r"), [[1.5, 3], [3, 6]])]:
            got = self.result(call, *words, *more)["results"][0]["data"]
            assert got == expected, (call, got)
        done = self.result("approach(x, y, rate=0.25)", "x=1.0", "y=3.0", "--grad", "x,y")["gradients"]
        assert (done["x"]["data"], done["y"]["data"]) == (0.75, 0.25), done
        told = json.loads(self.tenon("op", "acme.approach", "--json"))["attributes"]
        assert [a["kind"] for a in told] == ["runtime float"], told

    def outputs_are_counted(self):
        """The number of outputs follows from an attribute, with derivatives and batching"""
        for call, expected in [("powers(x, 3)[2]", [8, 27]), ("a, b = powers(x); a + b", [6, 12]),
                               ("powers(x, 1)", [2, 3])]:
            got = self.result(call, "x=[2.0, 3]")["results"][0]["data"]
            assert got == expected, (call, got)
        assert len(self.result("powers(x, 64)", "x=1.0")["results"]) == 64
        done = self.result("powers(x, 3)[2]", "x=2.0", "--grad", "x")
        assert done["gradients"]["x"]["data"] == 12, done
        assert "-> out..." in self.tenon("op", "acme.powers")

    def mistakes_are_told(self):
        """What is wrong with a list or a text is told"""
        for call, message in [("polynomial(x)", "attribute 'coefficients' is missing, expected a list of numbers"),
                              ("polynomial(x, [])", "got no coefficients"),
                              ("polynomial(x, [1], 'cheby')", 'basis is "cheby"'),
                              ("polynomial(x, 'three')", "attribute 'coefficients' is missing, expected a list of numbers"),
                              ("polynomial(x, coefficients='three')", "got 'three', expected a list of numbers"),
                              ("polynomial(x, [1], basis=3)", "attribute 'basis': got 3, expected a text"),
                              ("polynomial(x, [1], '\\xff')", "byte 0 of the text is 0xff, expected UTF-8"),
                              ("polynomial(x, [1], basis=x)", 'basis is "x"'),
                              ("polynomial(x, [1, true])", "expected a number here"),
                              ("powers(x, 65)", "got a count of 65, expected 1 to 64"), ("powers(x, 2)[2]", "output 2 of 2"),
                              ("approach(x, x, rate=[1.0, 2])", "attribute 'rate': got a list, expected a number"),
                              ("y = [x, x]; approach(x, x, rate=y)", "attribute 'rate': got f64[2], expected a number")]:
            done = subprocess.run([str(self.command), "eval", call, "x=2.0"], env=self.env, text=True,
                                  stderr=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
            assert done.returncode == 1 and message in done.stderr, (call, done.stderr)

    def is_described(self):
        """tenon op tells the kinds of its attributes"""
        told = json.loads(self.tenon("op", "acme.polynomial", "--json"))
        kinds = {a["name"]: (a["kind"], a["default"]) for a in told["attributes"]}
        assert kinds == {"coefficients": ("float list", "required"), "basis": ("text", "none")}, kinds

    def graphs_are_attributes(self):
        """An operator with a text and a graph as attributes: a loop over what the application says"""
        shutil.copytree(self.args.source / "sdk/examples/fixpoint", self.folder / "fixpoint")
        built = self.build(self.folder / "fixpoint")
        self.tenon("plugin", "install", built / "com.acme.fixpoint")
        root = 'fixpoint(x, body="g -> (g + a / g) / 2", norm="sum", tolerance=1e-9)'
        for more in ((), ("--vmap", "x,a")):
            done = self.result(root, "x=[1.0, 1]", "a=[4.0, 9]", *more)["results"][0]["data"]
            assert max(abs(got - want) for got, want in zip(done, [2, 3])) < 1e-8, done
        saved = self.folder / "root.graph"
        self.tenon("eval", root, "x=[1.0, 1]", "a=[4.0, 9]", "--save", saved)
        assert self.result(f"@{saved}", "x=[1.0, 1]", "a=[4.0, 9]") == self.result(root, "x=[1.0, 1]", "a=[4.0, 9]")
        used = [o["id"] for o in json.loads(self.tenon("graph", saved, "--json"))["operators"]]
        assert "acme.fixpoint/1" in used, used
        for call, message in [("fixpoint(x)", "attribute 'body' is missing, expected a graph"),
                              ('fixpoint(x, body="x -> [x, x]")', "body gives another type than x"),
                              ('fixpoint(x, body="x -> x", norm="l2")', 'norm is "l2"'),
                              ('fixpoint(x, body="x -> x, x")', "body has 1 inputs and 2 outputs")]:
            done = subprocess.run([str(self.command), "eval", call, "x=2.0"], env=self.env, text=True,
                                  stderr=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
            assert done.returncode == 1 and message in done.stderr, (call, done.stderr)
        told = json.loads(self.tenon("op", "acme.fixpoint", "--json"))
        assert [a["kind"] for a in told["attributes"]] == ["graph", "text", "float"], told
        header = (built / "fixpoint.h").read_text()
        assert "const tn_graph *body;" in header and 'tn_call_graph("body", options->body)' in header, header

    def header_is_used(self):
        """The C header takes them, and a text or list that is NULL is left out"""
        (self.folder / "caller.c").write_text(CALLER)
        flags = self.run("pkg-config", "--cflags", "--libs", "tenon").split()
        program = self.folder / "caller"
        self.env["LD_LIBRARY_PATH"] = str(self.installed("libtenon.so.0").parent)
        for compiler in (["cc", "-std=c11"],):
            self.run(*compiler, "-Wall", "-Wextra", "-Werror", *self.sanitizers(), f"-I{self.built}",
                     self.folder / "caller.c", *flags, "-o", program)
        printed = self.run(program)
        assert printed == "-1 -1 1\n-1 2 3\n-1 0.125 1\n", printed


def tests(polynomial):
    return [(t.__doc__, t, ()) for t in (
        polynomial.builds, polynomial.passes_check, polynomial.is_called, polynomial.rates_are_data, polynomial.outputs_are_counted,
        polynomial.mistakes_are_told,
        polynomial.is_described, polynomial.header_is_used, polynomial.graphs_are_attributes)]


if __name__ == "__main__":
    sys.exit(bench.run(tests, Polynomial))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line of `tenon check`: exit statuses, replay, JSON, exceptions, examples.

    command.py KIT FAULTY_PLUGIN SANE_PLUGIN HANGING_PLUGIN IDLE_PLUGIN

FAULTY_PLUGIN fails kernel.values, HANGING_PLUGIN hangs where an attribute is infinite, the kernel of
IDLE_PLUGIN takes nothing.
"""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

FAST = ("--devices", "cpu*", "--timeout", "20")


class Bench:
    def __init__(self, kit, faulty, sane, hanging, idle):
        self.kit, self.faulty, self.sane, self.hanging, self.idle = kit, faulty, sane, hanging, idle
        self.folder = pathlib.Path(tempfile.mkdtemp())

    def run(self, *args, status):
        done = subprocess.run([self.kit, *args], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == status, (args, done)
        return done.stdout, done.stderr

    def report(self, *args, status):
        return json.loads(self.run(*args, "--json", status=status)[0])

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def statuses(self):
        """0 for a pass, 1 for a failure, 2 for wrong usage"""
        self.run(self.sane, "--only", "file.*", status=0)
        self.run(self.faulty, "--only", "kernel.values", status=1)
        made = {r["check"] for r in self.report(self.sane, "--only", "!kernel.*", status=0)["results"]}
        assert "infer.pure" in made and not any(name.startswith("kernel.") for name in made), made
        for wrong in ([], ["/nowhere/x.so"], [self.sane, "--only", "kernel.nothing"],
                      [self.sane, "--seed", "x"], [self.sane, "--frob"],
                      [self.sane, "--timeout", "0"], [self.sane, "--samples", "0"],
                      [self.sane, "--exceptions", "/nowhere"], [self.sane, "--seed"]):
            out, error = self.run(*wrong, status=2)
            assert not out and error, (wrong, out, error)

    def replays(self):
        """the command in a failed report gives the same failure, with the same case"""
        out, _ = self.run(self.faulty, "--seed", "77", *FAST, status=1)
        shown = re.search(r"^FAIL kernel.values acme.scale/1 acme \[P24\]\n +(.*)$", out, re.M)
        command = shlex.split(re.search(r"^One again: tenon check (.*)$", out, re.M).group(1))
        again, _ = self.run(*command, status=1)
        assert shown.group(1) in again and ["--devices", "cpu*"] == command[-2:], (out, again)
        assert "seed 77" in again and len(again.splitlines()) < 12, again
        other, _ = self.run(self.faulty, "--only", "kernel.values", "--seed", "78", status=1)
        assert shown.group(1) not in other, "another seed gives other cases"

    def one_page(self):
        """the report of a plugin without faults is a page"""
        out, _ = self.run(self.sane, *FAST, status=0)
        assert 10 < len(out.splitlines()) < 60, out
        assert re.search(r"^PASS: \d+ passed, 0 failed", out, re.M), out
        assert max(map(len, out.splitlines())) < 200, out

    def a_kernel_that_never_ran(self):
        """a kernel that never ran is warned of, in the last lines"""
        out, _ = self.run(self.idle, *FAST, status=0)
        warned = re.findall(r"^WARN (kernel.values|device.kernel) base.matmul/1 narrow .*\n +it never ran: ", out, re.M)
        assert warned == ["kernel.values", "device.kernel"], out
        assert "\nskip " not in out[out.index("WARN"):], out
        assert re.search(r"^PASS: \d+ passed, 0 failed, [1-9]\d* warned", out, re.M), out

    def json_has_all(self):
        """--json has every result, with its requirement, cases and outcome"""
        report = self.report(self.faulty, "--only", "kernel.[vg]*", status=1)
        assert report["verdict"] == "fail" and report["seed"] == 1, report
        assert report["counts"]["fail"] == 1, report
        failed = [r for r in report["results"] if r["outcome"] == "fail"]
        assert [(r["check"], r["requirement"]) for r in failed] == [("kernel.values", "P24")]
        assert failed[0]["cases"] > 0 and failed[0]["failures"] > 0, failed
        assert all(r["cases"] > 0 for r in report["results"]), report

    def report_file(self):
        """--report writes there, and says on which it stands"""
        path = self.folder / "report.txt"
        out, _ = self.run(self.faulty, "--only", "kernel.values", "--report", str(path), status=1)
        assert out == f"FAIL: {path}\n" and "kernel.values" in path.read_text(), out

    def exceptions(self):
        """what is excepted fails nothing; what is excepted and passes does"""
        known = self.file("known", "# why\nnever  \"kernel.values * acme\"  it is known\n")
        report = self.report(self.faulty, "--only", "kernel.[vg]*", "--exceptions", known, status=0)
        excepted = [r for r in report["results"] if r["outcome"] == "excepted"]
        assert [r["exception"]["reason"] for r in excepted] == ["it is known"], report
        passing = self.file("passing", "today  kernel.guards  not yet\n")
        report = self.report(self.sane, "--only", "kernel.*", "--exceptions", passing, status=1)
        failed = [r for r in report["results"] if r["outcome"] == "fail"]
        assert failed and all(r["check"] == "kernel.guards" and "excepted" in r["detail"]
                              for r in failed), report
        self.report(self.sane, "--only", "kernel.*", "--exceptions", passing, "--samples", "1", status=0)
        either = self.file("either", "sometimes  kernel.*  it depends on the seed\n")
        report = self.report(self.faulty, "--only", "kernel.values", "--exceptions", either, status=0)
        assert {r["outcome"] for r in report["results"]} == {"excepted", "pass"}, report
        for wrong in ("perhaps kernel.values x\n", "never kernel.values\n", "never\n"):
            path = self.file("wrong", wrong)
            _, error = self.run(self.sane, "--only", "file.*", "--exceptions", path, status=2)
            assert path in error and ":1:" in error, error

    def damaged(self):
        """what is no shared object, a manifest of another file, and an ops.json that lies, are found"""
        text = self.file("text.so", "no shared object")
        report = self.report(text, "--only", "file.*", status=1)
        assert [r["check"] for r in report["results"]] == ["file.format"], report
        plugin = self.folder / "damaged" / "plugin.so"
        plugin.parent.mkdir()
        shutil.copy(self.sane, plugin)
        (plugin.parent / "plugin.json").write_text("{}")
        report = self.report(str(plugin), "--only", "file.*", status=1)
        failed = [r["check"] for r in report["results"] if r["outcome"] == "fail"]
        assert failed == ["file.manifest"], report
        (plugin.parent / "ops.json").write_text("{\n}\n")
        report = self.report(str(plugin), "--only", "entry.*", status=1)
        failed = [(r["check"], r["detail"]) for r in report["results"] if r["outcome"] == "fail"]
        assert [f[0] for f in failed] == ["entry.operators"], report
        assert "something else than its tables, from line 2 on" in failed[0][1], failed

    def beside(self):
        """files that lie beside a plugin count"""
        plugin = self.folder / "beside" / "plugin.so"
        plugin.parent.mkdir()
        shutil.copy(self.faulty, plugin)
        (plugin.parent / "check.exceptions").write_text("never \"* acme\" it is known\n")
        self.run(str(plugin), "--only", "kernel.values", status=0)
        self.run(str(plugin.parent), "--only", "kernel.values", status=0)
        (plugin.parent / "check.examples.json").write_text("{")
        self.run(str(plugin), "--only", "kernel.guards", status=1)

    def examples(self):
        """examples are what is tried, and a wrong one fails"""
        def tried(entry):
            path = self.file("examples.json", json.dumps({"acme.scale/1": entry}))
            return self.report(self.sane, "--only", "reference.repeat", "--examples", path,
                               status=0)["results"][0]
        one = {"inputs": [{"dtype": "f32", "shape": [3]}] * 2, "attrs": {"sign": "minus"}}
        assert tried({"examples": [one], "random": False})["cases"] == 1
        assert tried([one])["cases"] > 1
        for wrong in ({"inputs": 3}, {"inputs": [{"dtype": "f33", "shape": []}]},
                      {"inputs": [{"dtype": "f32", "shape": [3]}, {"dtype": "f32", "shape": [4]}]},
                      {"inputs": [{"dtype": "f32", "shape": [-3]}] * 2},
                      *(one | {"attrs": a} for a in ({"nothing": 1}, {"sign": "mnus"}, {"sign": []},
                                                     {"alpha": "2"}))):
            path = self.file("examples.json", json.dumps({"acme.scale/1": [wrong]}))
            report = self.report(self.sane, "--only", "reference.repeat", "--examples", path,
                                 status=1)
            assert "xample" in report["results"][0]["detail"], (wrong, report)

    def large_examples(self):
        """an example may be of any size, its types inferred by the primitive or by the core"""
        large = {"inputs": [{"dtype": "f64", "shape": [300, 200]}] * 2}
        path = self.file("large.json", json.dumps({p: {"examples": [large], "random": False}
                                                   for p in ("acme.scale/1", "base.add/1")}))
        for plugin, subject in ((self.sane, "acme.scale/1"), ("org.tenon.base", "base.add/1")):
            report = self.report(plugin, "--only", f"infer.accepts {subject}", "--examples", path,
                                 status=0)
            assert [r["cases"] for r in report["results"]] == [1], report

    def samples(self):
        """--samples says how many applications are tried"""
        def cases(number):
            return self.report(self.sane, "--only", "reference.repeat", "--samples", str(number),
                               status=0)["results"][0]["cases"]
        assert cases(2) == 2 and cases(24) == 24, (cases(2), cases(24))

    def hangs(self):
        """a check that does not end is ended, and the others are made"""
        begin = time.monotonic()
        report = self.report(self.hanging, "--only", "[ai]*", "--timeout", "2", status=1)
        results = {r["check"]: r for r in report["results"]}
        assert results["attrs.extremes"]["outcome"] == "fail", report
        assert "within 2 s" in results["attrs.extremes"]["detail"], report
        assert results["infer.message"]["outcome"] == "pass", report
        assert time.monotonic() - begin < 60

    def lists(self):
        """--list names each check with its requirement"""
        out, _ = self.run("--list", status=0)
        assert all(re.match(r"[a-z]+\.[a-z-]+ +P\d+ +\S", line) for line in out.splitlines()), out


def main():
    bench = Bench(*sys.argv[1:])
    tests = [bench.statuses, bench.replays, bench.one_page, bench.a_kernel_that_never_ran, bench.json_has_all,
             bench.report_file, bench.exceptions, bench.damaged, bench.beside, bench.examples,
             bench.large_examples, bench.samples, bench.hangs, bench.lists]
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {test.__doc__}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            print(f"not ok {number} - {test.__doc__}\n# {error!r}"[:2000], flush=True)
    shutil.rmtree(bench.folder)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""Tenon installed into a folder of its own, for tests that build plugins from that alone."""

import argparse
import glob
import json
import os
import pathlib
import subprocess
import tempfile
import traceback


class Skip(Exception):
    pass


class Bench:
    """A folder with Tenon installed in it, and a user's home with nothing in it."""

    def __init__(self, args, folder):
        self.args, self.folder = args, pathlib.Path(folder)
        self.root = self.folder / "root"
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("TENON_", "XDG_", "PKG_CONFIG"))}
        self.env |= {"XDG_DATA_HOME": str(self.folder / "data"), "HOME": str(self.folder),
                     "XDG_CACHE_HOME": str(self.folder / "cache")}

    def sanitizers(self):
        """What a compiler is given beside, so that what it makes suits this build."""
        return [] if self.args.sanitize == "none" else [f"-fsanitize={self.args.sanitize}"]

    def finished(self, *command, env=None, **options):
        return subprocess.run([str(c) for c in command], env=self.env | (env or {}), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              **options)

    def run(self, *command, status=0, **options):
        """Runs a program, checks its exit status, and gives what it printed: on standard error
        when it is to fail."""
        done = self.finished(*command, **options)
        if done.returncode != status:
            raise RuntimeError(f"{' '.join(map(str, command))}\n  exit status {done.returncode}, "
                               f"expected {status}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stderr if status else done.stdout

    def installed(self, pattern):
        found = glob.glob(str(self.root / "**" / pattern), recursive=True)
        if not found:
            raise RuntimeError(f"nothing installed is named {pattern}")
        return pathlib.Path(found[0])

    def tenon(self, *args, backend=None, **options):
        return self.run(self.command, *args, env={"TENON_BACKEND": backend} if backend else None,
                        **options)

    def install(self):
        self.run("meson", "install", "-C", self.args.build, "--no-rebuild",
                 "--destdir", self.root)
        self.find_installed()

    def find_installed(self):
        self.command = self.installed("bin/tenon")
        self.env["PATH"] = f"{self.command.parent}:{self.env.get('PATH', '')}"
        self.env["PKG_CONFIG_PATH"] = str(self.installed("tenon-sdk.pc").parent)
        self.plugins = self.installed("tenon/plugins")
        self.env["TENON_PLUGIN_PATH"] = str(self.plugins)

    def configure(self, project):
        self.run("meson", "setup", "--werror", f"-Db_sanitize={self.args.sanitize}",
                 "-Db_lundef=false", "build", cwd=project)

    def build(self, project):
        """Builds a project that is out of sight of Tenon's sources."""
        self.configure(project)
        self.run("ninja", "-C", "build", cwd=project)
        return project / "build"

    def has_device(self, backend):
        if not hasattr(self, "devices"):
            self.devices = json.loads(self.tenon("devices", "--json"))
        return any(d["backend"] == backend and not d.get("reason") for d in self.devices)


def run(make_tests, bench_class=Bench):
    """Runs the tests that make_tests(bench) lists as (name, function, arguments)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the source tree")
    parser.add_argument("--caller", help="a program that calls the rules of axpby")
    parser.add_argument("--sanitize", default="none")
    with tempfile.TemporaryDirectory() as folder:
        tests = make_tests(bench_class(parser.parse_args(), folder))
        print(f"1..{len(tests)}")
        failed = 0
        for number, (name, test, given) in enumerate(tests, 1):
            try:
                test(*given)
                print(f"ok {number} - {name}", flush=True)
            except Skip as why:
                print(f"ok {number} - {name} # SKIP {why}", flush=True)
            except Exception:
                failed += 1
                print(f"not ok {number} - {name}")
                print("".join("# " + l + "\n" for l in traceback.format_exc().splitlines()),
                      flush=True)
    return 1 if failed else 0

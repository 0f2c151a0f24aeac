#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An installation that was copied elsewhere, and whose first place is gone, works as before."""

import shutil
import sys

import bench

PROGRAM = """
#include <stdio.h>
#include <tenon/ops/base.h>
#include <tenon/tenon.h>

int main(void)
{
    tn_runtime *runtime;
    if (tn_runtime_open(NULL, &runtime))
        return puts(tn_last_error()), 1;
    tn_scope *scope = tn_scope_open(runtime);
    const double data[] = {1, 2};
    double sums[2];
    tn_array *x = tn_from_data(scope, TN_F64, TN_SHAPE(2), data);
    if (tn_read(scope, tn_add(scope, x, x), sums, sizeof(sums)))
        return puts(tn_scope_error(scope)), 1;
    printf("%g %g\\n", sums[0], sums[1]);
    tn_scope_close(scope);
    tn_runtime_close(runtime);
    return 0;
}
"""

AXPBY = ["eval", "acme.axpby(x, y, alpha=4, beta=2)", "x=[1,2]", "y=[10,20]"]


class Moved(bench.Bench):
    def prepare(self):
        self.install()
        elsewhere = self.folder / "elsewhere"
        shutil.copytree(self.root, elsewhere, symlinks=True)
        shutil.rmtree(self.root)
        self.root = elsewhere
        self.find_installed()
        del self.env["TENON_PLUGIN_PATH"]
        self.env.pop("LD_LIBRARY_PATH", None)  # the build folder has a libtenon, too

    def doctor_is_content(self):
        said = self.tenon("doctor")
        assert str(self.plugins) in said, said

    def programs_are_built_and_run(self):
        (self.folder / "app.c").write_text(PROGRAM)
        flags = self.run("pkg-config", "--cflags", "--libs", "tenon")
        self.run("sh", "-c", f"cc {' '.join(self.sanitizers())} app.c {flags.strip()} -o app", cwd=self.folder)
        assert self.run(self.folder / "app") == "2 4\n"

    def networks_are_trained(self):
        done = self.finished(self.command, "train", "lenet", "--steps", "2", cwd=self.folder)
        if done.returncode and "dataset-fashion-mnist" in done.stderr:
            raise bench.Skip("the data set is not installed")
        assert done.returncode == 0, done.stderr

    def plugins_are_made_and_used(self):
        self.tenon("new", "op-pack", "acme", cwd=self.folder)
        built = self.build(self.folder / "acme")
        said = self.run(self.command, *AXPBY, env={"TENON_PLUGIN_PATH": str(built)})
        assert "[24. 48.]" in said, said

    def plugins_of_all_users_go_there(self):
        made = self.folder / "acme/build/com.example.acme"
        self.tenon("plugin", "install", "--system", made)
        assert (self.plugins / "com.example.acme/plugin.json").exists()
        assert "[24. 48.]" in self.tenon(*AXPBY)

    def pages_and_parts_are_found(self):
        self.tenon("check", "--list")
        assert self.installed("man1/tenon.1*").exists()
        names = [p for p in self.root.rglob("*") if p.is_file() and not p.is_symlink()]
        first = str(self.folder / "root").encode()
        assert not [n for n in names if first in n.read_bytes()], "the first place is named"


def tests(moved):
    moved.prepare()
    return [(name.replace("_", " "), getattr(moved, name), ()) for name in
            ["doctor_is_content", "programs_are_built_and_run", "networks_are_trained",
             "plugins_are_made_and_used", "plugins_of_all_users_go_there", "pages_and_parts_are_found"]]


if __name__ == "__main__":
    sys.exit(bench.run(tests, Moved))

# SPDX-License-Identifier: MIT
"""tools/wheel makes a wheel of a built tree, by pip and meson-python; pip installs it into an environment of its own,
and it computes there without the sources, without variables, and with the libraries that it carries."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mesonpy")
ROOT = pathlib.Path(__file__).resolve().parents[2]
OFFLINE = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]


def ok(command, **options):
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def plain():
    """The environment without what tests of the build folder have set."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TENON_PLUGIN_PATH")}


class Environment:
    """An environment for Python, which has meson-python from the system."""

    def __init__(self, home):
        self.home, self.python = home, home / "venv/bin/python"
        ok([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", home / "venv"])

    def pip(self, what, *options):
        ok([sys.executable, "-m", "pip", "--python", self.python, "install", *OFFLINE, *options, what], env=plain())

    def run(self, *arguments, **variables):
        """What Python says, started in a folder without the sources, with no variable of the build folder."""
        env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **variables}
        return ok([self.python, "-W", "error", *arguments], cwd=self.home, env=env)

    def packages(self):
        return next(self.home.glob("venv/lib/python*/site-packages"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("home"))
    ok([sys.executable, ROOT / "tools/wheel", "--tenon", os.environ["TEST_BUILD"], "-o", environment.home], env=plain())
    environment.pip(next(environment.home.glob("tenon_array-*.whl")))
    return environment


def test_it_computes_in_a_folder_without_the_sources(installed):
    said = installed.run("-c", "import tenon as tn; print(tn.softmax(tn.array([1., 2.])), tn.__file__)")
    values, _, where = said.rstrip().rpartition(" ")
    assert values == "[0.26894143, 0.7310586 ]"
    assert where.startswith(str(installed.home))


def test_the_doctor_is_content(installed):
    said = installed.run("-m", "tenon.doctor")
    assert "1 + 4 + 9 = 14.0" in said
    assert "cpu-blas:0" in said


def test_the_wheel_is_for_every_python_since_3_11(installed):
    info = next(installed.packages().glob("tenon_array-*.dist-info"))
    assert "Tag: cp311-abi3-manylinux_2_" in (info / "WHEEL").read_text()
    assert (info / "licenses/libopenblas.txt").exists() or not pathlib.Path("/etc/debian_version").exists()


def test_matrices_are_multiplied_and_solved_by_the_openblas_that_the_wheel_carries(installed):
    said = installed.run("-c", """
import tenon as tn
a = tn.array([[2.0, 1.0], [0.0, 4.0]], "float64")
print((a @ a).tolist(), (tn.linalg.inv(a) @ a).tolist())
print(*{line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line})""")
    values, where = said.splitlines()
    assert values == "[[4.0, 6.0], [0.0, 16.0]] [[1.0, 0.0], [0.0, 1.0]]"
    assert where == str(installed.packages() / "tenon/lib/tenon/libopenblas.so.0")


def test_every_plugin_in_the_wheel_is_whole(installed):
    """Hashes in manifests are of the files as they were repaired; what they link with is there."""
    said = installed.run("-c", """
from tenon import _core
for plugin in _core.plugins():
    print(plugin["id"], plugin["state"], plugin["reason"])
import ctypes, glob, os, tenon
for file in glob.glob(os.path.dirname(tenon.__file__) + "/lib/tenon/plugins/*/*.so"):
    ctypes.CDLL(file)
""", LD_BIND_NOW="1")
    assert len(said.splitlines()) > 10
    assert all(line.split()[1] == "found" for line in said.splitlines()), said


def test_pip_says_what_is_wrong_with_its_settings(installed):
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", *OFFLINE[:-1], "--config-settings=tenon=/nowhere",
                           str(ROOT / "sdk/python")], capture_output=True, text=True, check=False, env=plain(), cwd=installed.home)
    assert done.returncode != 0
    assert "tenon=/nowhere is no folder" in done.stdout + done.stderr

# SPDX-License-Identifier: MIT
"""pip installs the package of a built tree into an environment of its own, and it computes there without the
sources, without variables."""

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


class Environment:
    """An environment for Python, which has meson-python from the system."""

    def __init__(self, home):
        self.home, self.python = home, home / "venv/bin/python"
        ok([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", home / "venv"])

    def pip(self, what, *options):
        variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TENON_PLUGIN_PATH")}
        ok([sys.executable, "-m", "pip", "--python", self.python, "install", *OFFLINE, *options, what], env=variables)

    def run(self, *arguments, **variables):
        """What Python says, started in a folder without the sources, with no variable of the build folder."""
        env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **variables}
        return ok([self.python, "-W", "error", *arguments], cwd=self.home, env=env)

    def packages(self):
        return next(self.home.glob("venv/lib/python*/site-packages"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("home"))
    environment.pip(ROOT / "sdk/python", f"--config-settings=tenon={os.environ['TEST_BUILD']}")
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
    assert "Tag: cp311-abi3-linux_" in (info / "WHEEL").read_text()

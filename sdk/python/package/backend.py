# SPDX-License-Identifier: MIT
"""Builds the wheel `tenon-array`: the build backend that pip (PEP 517) and tools/wheel call.

meson-python builds the modules in C and the package in Python; the wheel gets libtenon, libtenon-lm, libtenon-train and the
plugins beside them, in tenon/lib, where the library finds them by its own path. They come from

    --config-settings tenon=DIR
        a build folder of Tenon's, which is built already, or the prefix of an installation: an absolute
        path. Else Tenon is built from the sources around this folder
    --config-settings tenon-args=ARGS
        arguments of meson for that build, such as "-Dvulkan=disabled"

A wheel cannot hold links, so libtenon.so.0 and those beside it are files.
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import wheel_file

HERE = pathlib.Path(__file__).resolve().parent.parent  # sdk/python
ROOT = HERE.parent.parent
LIBRARY = "libtenon.so.0"
LIBRARIES = LIBRARY, "libtenon-lm.so.0", "libtenon-train.so.0"
PLUGINS = "tenon/lib/tenon/plugins"  # in a wheel
CPYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
TAG = f"{CPYTHON}-{CPYTHON}t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "cp311-abi3"


def fail(text):
    sys.exit(f"tenon-array: {text}")


def run(*command, **options):
    print("+", shlex.join(map(str, command)), flush=True)
    if subprocess.run(list(map(str, command)), check=False, **options).returncode:
        fail(f"{command[0]} failed")


def is_built(folder):
    return (folder / "meson-info/intro-projectinfo.json").exists()


def from_sources(folder, arguments):
    """Configures and builds Tenon; gives the build folder."""
    if not (ROOT / "core/runtime.c").exists():
        fail(f"{ROOT} has no sources of Tenon: install from a checkout, or with --config-settings tenon=DIR")
    run("meson", "setup", "-Dpython=disabled", "-Dtests=false", "-Dprefix=/usr/local", "-Dlibdir=lib",
        *arguments, folder, ROOT)
    run("ninja", "-C", folder)
    return folder


def installer(build):
    """The command that installs a build folder: of the meson that configured it, which need not be pip's."""
    found = re.search(r"^ COMMAND = (.*) install --no-rebuild$", (build / "build.ninja").read_text(), re.MULTILINE)
    return [*(shlex.split(found.group(1)) if found else ["meson"]), "install", "--no-rebuild", "--quiet", "-C", build]


def one(folder, pattern, what):
    found = sorted(folder.rglob(pattern))
    if not found:
        fail(f"{folder} has no {pattern}: expected {what}")
    return found[0]


class Installation:
    """An installed Tenon, below any folder."""

    def __init__(self, folder):
        self.root = folder
        self.pkgconfig = one(folder, "pkgconfig/tenon.pc", "an installation of Tenon").parent
        self.libraries = self.pkgconfig.parent
        self.files = [self.libraries / name for name in LIBRARIES]
        self.plugins = self.libraries / "tenon/plugins"
        self.command = one(folder, "bin/tenon", "the command tenon")


def find_tenon(settings, scratch):
    """The installation that goes into the wheel."""
    given = settings.pop("tenon", None)
    arguments = shlex.split(settings.pop("tenon-args", "") or "")
    folder = pathlib.Path(given).resolve() if given else None
    if folder and not folder.is_dir():
        fail(f"--config-settings tenon={given} is no folder")
    if folder and not is_built(folder):
        return Installation(folder)
    stage = scratch / "stage"
    build = folder or from_sources(scratch / "build", arguments)
    run(*installer(build), "--strip", "--destdir", stage)
    return Installation(stage)


def build_module(settings, directory, tenon, scratch):
    """The wheel that meson-python makes of a copy of this folder, so that nothing is written to the sources."""
    import mesonpy  # pylint: disable=import-outside-toplevel

    source = scratch / "python"
    shutil.copytree(HERE, source, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    before = os.environ.get("PKG_CONFIG_PATH")
    os.environ["PKG_CONFIG_PATH"] = str(tenon.pkgconfig)
    try:
        with contextlib.chdir(source):
            return mesonpy.build_wheel(str(directory), settings or None)
    finally:
        del os.environ["PKG_CONFIG_PATH"]
        if before is not None:
            os.environ["PKG_CONFIG_PATH"] = before


def licenses(folder):
    """Where an unpacked wheel has the texts of licences."""
    target = wheel_file.info_folder(folder) / "licenses"
    target.mkdir(exist_ok=True)
    return target


def carry(tenon, folder):
    """Puts the libraries and the plugins into an unpacked wheel."""
    lib = folder / "tenon/lib"
    lib.mkdir()
    for library in tenon.files:
        shutil.copyfile(library, lib / library.name)
    shutil.copytree(tenon.plugins, folder / PLUGINS, copy_function=shutil.copyfile)
    if (ROOT / "LICENSE").exists():
        shutil.copyfile(ROOT / "LICENSE", licenses(folder) / "LICENSE")


def check_plugins(folder, names):
    for name in names:
        if not (folder / name / "plugin.json").exists():
            fail(f"there is no plugin {name}; there are {', '.join(sorted(place.name for place in folder.iterdir()))}")


def write_stubs(tenon, folder):
    """Stubs of the operators that the wheel brings, for those who check types."""
    hidden = ("TENON_PLUGIN_PATH", "TENON_PLUGINS_DISABLE", "TENON_TRUST")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    # The command, too, finds the wheel's libtenon, and with that the wheel's plugins.
    variables |= {"PYTHONPATH": str(folder), "LD_LIBRARY_PATH": str(folder / "tenon/lib"), "XDG_DATA_HOME": str(folder / "none"),
                  "PYTHONDONTWRITEBYTECODE": "1"}
    run(sys.executable, HERE / "package/stubs.py", folder / "tenon", tenon.command, env=variables)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: gives the name of the wheel that it makes in a folder."""
    directory, settings = pathlib.Path(wheel_directory).resolve(), dict(config_settings or {})
    with tempfile.TemporaryDirectory(prefix="tenon-array-") as name:
        scratch = pathlib.Path(name)
        tenon = find_tenon(settings, scratch)
        made = scratch / build_module(settings, scratch, tenon, scratch)
        folder = scratch / "wheel"
        wheel_file.unpack(made, folder)
        carry(tenon, folder)
        write_stubs(tenon, folder)
        platform = made.stem.rpartition("-")[2]
        return wheel_file.pack(folder, directory, f"{TAG}-{platform}").name

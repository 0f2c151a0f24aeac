# SPDX-License-Identifier: @LICENSE@
"""What pip calls to build the wheel: the plugin in a package, which an entry point of group
"tenon.plugins" names. Needs meson, ninja and an installed Tenon, found through pkg-config."""

import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def tell(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel into a folder and gives its name."""
    with tempfile.TemporaryDirectory() as build:
        print(tell("meson", "setup", build, HERE))
        print(tell("ninja", "-C", build))
        tool = tell("pkg-config", "--variable=tool", "tenon-sdk").strip()
        return tell(tool, "wheel", pathlib.Path(build, "@ID@"), "-o", wheel_directory).strip()

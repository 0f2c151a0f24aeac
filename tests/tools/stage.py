# SPDX-License-Identifier: MIT
"""Fixture plugins laid out as installed ones, whole or with something wrong."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import tap


def manifest_by_hand(folder, plugin_id):
    """For what cannot be loaded, and so cannot be described."""
    bytes_ = (folder / "plugin.so").read_bytes()
    good = json.loads(subprocess.run([tap.TENON, "plugin", "describe", str(FIXTURES / "fixture-good.so")],
                                     capture_output=True, check=True, text=True, env=tap.ENVIRONMENT).stdout)
    good.update(id=plugin_id, file="plugin.so", backends=[],
                files=[{"name": "plugin.so", "size": len(bytes_), "sha256": hashlib.sha256(bytes_).hexdigest()}])
    return good


def stage(plugin_id, fixture, folder="plugins", **changes):
    """Copies a fixture to folder/plugin_id, with a manifest in which `changes` are made."""
    directory = pathlib.Path(folder, plugin_id)
    directory.mkdir(parents=True)
    shutil.copyfile(FIXTURES / f"{fixture}.so", directory / "plugin.so")
    os.chmod(directory / "plugin.so", 0o755)
    described = subprocess.run([tap.TENON, "plugin", "describe", str(directory / "plugin.so")],
                               capture_output=True, text=True, env=tap.ENVIRONMENT)
    manifest = manifest_by_hand(directory, plugin_id) if described.returncode else json.loads(described.stdout)
    manifest.update(changes)
    (directory / "plugin.json").write_text(json.dumps(manifest))
    return directory


FIXTURES = None  # set by tests that use them: the folder of tests/fixtures in the build folder

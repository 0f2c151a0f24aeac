# SPDX-License-Identifier: MIT
"""Installing, verifying and removing plugins."""

import json
import os
import ast
import pathlib
import shutil

import tap
from tap import refused, tenon

BASE = pathlib.Path(tap.STAGING, "org.tenon.base")


def home():
    """An environment in which the only plugins are the user's."""
    return {"XDG_DATA_HOME": os.path.abspath("data"), "TENON_PLUGIN_PATH": ""}


def copy():
    shutil.copytree(BASE, "org.tenon.base", dirs_exist_ok=True)
    return pathlib.Path("org.tenon.base")


def a_plugin_is_installed_found_and_removed():
    tenon("plugin", "install", BASE, env=home())
    folder = pathlib.Path("data/tenon/plugins")
    assert os.listdir(folder) == ["org.tenon.base"], os.listdir(folder)
    show = json.loads(tenon("plugin", "show", "org.tenon.base", "--json", env=home()).stdout)
    assert show["state"] == "found" and show["directory"] == str(folder.absolute() / "org.tenon.base"), show
    tenon("plugin", "verify", "org.tenon.base", env=home())
    tenon("plugin", "remove", "org.tenon.base", env=home())
    assert os.listdir(folder) == []
    refused("plugin", "remove", "org.tenon.base", env=home(), saying="not installed")


def installing_again_replaces():
    tenon("plugin", "install", BASE, "--prefix", "here")
    pathlib.Path("here/org.tenon.base/old").write_text("from before")
    tenon("plugin", "install", BASE, "--prefix", "here")
    assert sorted(os.listdir("here/org.tenon.base")) == sorted(os.listdir(BASE))
    assert os.listdir("here") == ["org.tenon.base"]


def a_bad_plugin_leaves_the_installed_one():
    tenon("plugin", "install", BASE, "--prefix", "here")
    before = pathlib.Path("here/org.tenon.base/plugin.json").read_bytes()
    bad = copy()
    library = next(bad.glob("*.so"))
    with open(library, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    refused("plugin", "install", bad, "--prefix", "here", saying="SHA-256")
    refused("plugin", "verify", "./org.tenon.base")
    (bad / "plugin.json").write_text("[" * 100000)
    refused("plugin", "install", bad, "--prefix", "here")
    refused("plugin", "install", "absent", "--prefix", "here", saying="absent")
    assert pathlib.Path("here/org.tenon.base/plugin.json").read_bytes() == before
    assert os.listdir("here") == ["org.tenon.base"]


def links_are_not_copied():
    source = copy()
    (source / "link").symlink_to("/etc/passwd")
    refused("plugin", "install", source, "--prefix", "here", saying="no links")
    assert os.listdir("here") == []


def ids_stay_within_the_directory():
    for name in ["../x", "/etc", ".", "..", "A", ""]:
        refused("plugin", "remove", name, "--prefix", "here", status=2, saying="no plugin id")


def the_manifest_is_described():
    library = next(BASE.glob("*.so"))
    described = json.loads(tenon("plugin", "describe", library).stdout)
    assert described["id"] == "org.tenon.base", described["id"]
    tenon("plugin", "describe", library, "-o", "plugin.json")
    assert json.loads(pathlib.Path("plugin.json").read_text()) == described
    pathlib.Path("text.so").write_text("no library")
    refused("plugin", "describe", "text.so", saying="text.so")


def the_header_of_operators_is_written():
    tenon("header", "org.tenon.base", "-o", "base.h")
    text = pathlib.Path("base.h").read_text()
    assert "tn_array *tn_add(" in text and "#ifndef" in text
    refused("header", "org.tenon.null", "-o", "x.h", saying="no operators")
    assert not os.path.exists("x.h")


def the_stub_of_operators_is_written():
    tenon("header", "org.tenon.base", "--python", "-o", "base.pyi")
    tree = ast.parse(pathlib.Path("base.pyi").read_text())
    stubs = {node.name: ast.unparse(node).splitlines()[0] for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert stubs["argmax"] == "def argmax(x: ArrayLike, axis: int | None=None, keepdims: bool | None=False) -> Array:"
    assert "hi: float | None=1e309" in stubs["clip"] and "-> tuple[Array, ...]:" in stubs["split"], stubs["clip"]
    refused("header", "org.tenon.null", "--python", saying="no operators")


def the_header_of_a_shared_object_is_the_same():
    os.mkdir("tmp")
    tenon("header", "org.tenon.base", "-o", "installed.h")
    for name in ("tenon-files-AbCdEf", "tenon-0123456789ab"):
        pathlib.Path("tmp", name).mkdir()
    tenon("header", next(BASE.glob("*.so")), "-o", "file.h", env={"TMPDIR": "tmp", "TENON_PLUGIN_PATH": ""})
    # What a killed command left is removed; a folder of another program with such a name stays.
    assert os.listdir("tmp") == ["tenon-files-AbCdEf"], os.listdir("tmp")
    os.rmdir("tmp/tenon-files-AbCdEf")
    assert pathlib.Path("file.h").read_text() == pathlib.Path("installed.h").read_text()
    shutil.copy(next(BASE.glob("*.so")), ".")
    tenon("header", "org.tenon.base.so", "-o", "here.h", env={"TENON_PLUGIN_PATH": ""})
    assert pathlib.Path("here.h").read_text() == pathlib.Path("installed.h").read_text()
    pathlib.Path("text.so").write_text("no library")
    refused("header", "./text.so", env={"TMPDIR": "tmp"}, saying="text.so")
    assert os.listdir("tmp") == []


tap.run([a_plugin_is_installed_found_and_removed, installing_again_replaces, a_bad_plugin_leaves_the_installed_one,
         links_are_not_copied, ids_stay_within_the_directory, the_manifest_is_described,
         the_header_of_operators_is_written, the_stub_of_operators_is_written, the_header_of_a_shared_object_is_the_same])

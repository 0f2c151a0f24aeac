# SPDX-License-Identifier: MIT
"""How operators of plugins appear: signatures without loading, plugins of wheels, lockfiles; and plugins that vanish, or
lie in their manifest."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

STAGED = pathlib.Path(os.environ["TENON_PLUGIN_PATH"].partition(":")[0])


def python(code, path, *, status=0, **variables):
    """What a new interpreter says, which has the plugins of a folder alone."""
    env = os.environ | {"TENON_PLUGIN_PATH": str(path), "TENON_PLUGINS_ONLY": "1", "TENON_BACKEND": "cpu-blas",
                        "TENON_LOG": "error"} | variables
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path):
    """A folder of plugins that a test may damage: base, fft and the CPU."""
    for name in ("org.tenon.base", "org.tenon.fft", "org.tenon.cpu-blas"):
        shutil.copytree(STAGED / name, tmp_path / "plugins" / name)
    return tmp_path / "plugins"


def test_signatures_and_documents_load_no_plugin():
    said = python("""
import inspect, pydoc
import tenon as tn
from tenon import _core
for pack in ("base", "nn", "fft", "linalg", "random", "optim", "quant"):
    module = getattr(tn, pack)
    for name in dir(module):
        function = getattr(module, name)
        if not inspect.ismodule(function) and not inspect.isclass(function): # layers are the package's own
            inspect.signature(function), function.__doc__.strip()[0]
print(inspect.signature(tn.softmax), inspect.signature(tn.base.argmax), inspect.signature(tn.base.clip))
print(inspect.signature(tn.base.arange), inspect.signature(tn.base.cumsum))
print(pydoc.render_doc(tn.base.quantile, renderer=pydoc.plaintext))
print([plugin["id"] for plugin in _core.plugins() if plugin["state"] == "loaded"])
""", STAGED)
    assert "(x, axis=-1) (x, axis=None, keepdims=False) (x, lo=-inf, hi=inf)" in said
    assert "(start=0.0, *, stop, step=1.0, dtype=None)" in said
    assert "method: how to interpolate" in said or "'linear'" in said
    assert said.rstrip().endswith("[]")


def test_a_plugin_without_a_description_is_loaded_for_it(folder):
    plugin = folder / "org.tenon.fft"
    manifest = json.loads((plugin / "plugin.json").read_text())
    manifest["files"] = [row for row in manifest["files"] if row["name"] != "ops.json"]
    (plugin / "plugin.json").write_text(json.dumps(manifest))
    (plugin / "ops.json").unlink()
    said = python("import inspect, tenon as tn; print(inspect.signature(tn.fft.rfft2)); print(tn.fft.rfft2.__doc__)", folder)
    assert "(x" in said.splitlines()[0] and "axes" in said


# What is done to the pack fft, when (before the process starts, or between import and use), the exception, its words.
LIES = [
    ("before", "(plugin / 'plugin.json').write_text('{')", "AttributeError", "a plugin is refused"),
    ("before", "(plugin / 'org.tenon.fft.so').unlink()", "AttributeError", "org.tenon.fft.so"),
    ("before", "shutil.rmtree(plugin)", "AttributeError", "no installed op pack brings it"),
    ("before", "(plugin / 'plugin.json').write_text(manifest.replace('fft.rfft/1', 'fft.qqq/1'))", "AttributeError",
     "no operator"),
    ("before", "flip(plugin / 'org.tenon.fft.so')", "PluginError", "org.tenon.fft.so"),
    ("before", "flip(plugin / 'ops.json')", "PluginError", "ops.json"),
    ("after", "(plugin / 'org.tenon.fft.so').unlink()", "PluginError", "org.tenon.fft"),
    ("after", "flip(plugin / 'org.tenon.fft.so')", "PluginError", "org.tenon.fft.so"),
    ("after", "shutil.rmtree(plugin)", "PluginError", "org.tenon.fft"),
]


@pytest.mark.parametrize("when, deed, kind, words", LIES)
def test_a_plugin_that_vanishes_or_lies_is_one_exception(folder, when, deed, kind, words):
    said = python(f"""
import pathlib, shutil
import tenon as tn
plugin = pathlib.Path({str(folder / 'org.tenon.fft')!r})
manifest = (plugin / "plugin.json").read_text()
def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
def deed():
    {deed}
if {when!r} == "before":
    deed()
x = tn.ones([4])
tn.eval(x)
if {when!r} == "after":
    deed()
try:
    print(tn.fft.rfft(x), tn.base.arange(stop=2))
except Exception as error:
    print(type(error).__name__, error)
print("still", tn.sum(x).item())  # what else there is goes on
""", folder)
    lines = said.splitlines()
    assert lines[0].startswith(kind), said
    assert words in lines[0], said
    assert lines[-1] == "still 4.0"


def write_wheel(folder, package="acme_plugins", plugins=("org.tenon.fft",), named=None):
    """What a wheel with an op pack leaves in a folder of packages."""
    place = folder / package
    place.mkdir(parents=True)
    for plugin in plugins:
        shutil.copytree(STAGED / plugin, place / plugin)
    info = folder / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[console_scripts]\nq = z:main\n\n[tenon.plugins]\nacme = {named or package}\n")


def wheel_python(code, folder, path, **variables):
    packages = f"{folder}:{os.environ['PYTHONPATH']}"
    return python(code, path, PYTHONPATH=packages, **({"TENON_PLUGINS_ONLY": "0"} | variables))


def test_a_wheel_with_an_op_pack_makes_it_appear(folder, tmp_path):
    """Of equal versions TENON_PLUGIN_PATH wins; it alone counts with TENON_PLUGINS_ONLY."""
    shutil.move(folder / "org.tenon.fft", tmp_path / "org.tenon.fft")
    write_wheel(tmp_path / "packages")
    code = """
import tenon as tn
from tenon import _core
print(*(p["directory"] for p in _core.plugins() if p["id"] == "org.tenon.fft" and p["state"] == "found"))
print(tn.sum(tn.fft.rfft(tn.ones([4]))).tolist())"""
    ours = str(tmp_path / "packages/acme_plugins/org.tenon.fft")
    assert wheel_python(code, tmp_path / "packages", folder).splitlines() == [ours, "(4+0j)"]
    alone = wheel_python("import tenon as tn; print(hasattr(tn, 'fft'))", tmp_path / "packages", folder, TENON_PLUGINS_ONLY="1")
    assert alone == "False\n"
    shutil.move(tmp_path / "org.tenon.fft", folder / "org.tenon.fft")
    assert wheel_python(code, tmp_path / "packages", folder).splitlines()[0] == str(folder / "org.tenon.fft")


def test_a_wheel_whose_package_is_gone_is_a_warning(folder, tmp_path):
    write_wheel(tmp_path / "packages", named="acme_gone:plugins")
    said = wheel_python("import tenon as tn; print(tn.ones([2]).tolist())", tmp_path / "packages", folder)
    assert "the wheel acme has plugins in the package 'acme_gone', which is not there" in said
    assert "[1.0, 1.0]" in said


def lock(folder, *arguments, status=0):
    code = f"import sys; from tenon import lock; sys.argv[1:] = {list(map(str, arguments))!r}; sys.exit(lock.main())"
    return python(code, folder, status=status)


DIFFERENCES = [
    ("shutil.rmtree(plugin)", "org.tenon.fft is not there: not installed"),
    ("(plugin / 'plugin.json').write_text('{')", "org.tenon.fft is not there"),
    ("(plugin / 'plugin.json').write_text((plugin / 'plugin.json').read_text() + ' ')", "has another hash"),
    ("(plugin / 'ops.json').write_bytes((plugin / 'ops.json').read_bytes().replace(b'a', b'b', 1))", "is damaged"),
    ("shutil.copytree(STAGED / 'org.tenon.nn', plugin.parent / 'org.tenon.nn')", "org.tenon.nn is not in the lockfile"),
    ("file.write_text(file.read_text().replace('\"version\": \"', '\"version\": \"9', 1))", "expected 90.1.0"),
]


@pytest.mark.parametrize("deed, words", DIFFERENCES)
def test_a_lockfile_tells_what_differs(folder, tmp_path, deed, words):
    file = tmp_path / "tenon.lock"
    assert "3 plugins" in lock(folder, "-o", file)
    assert "all plugins are those" in lock(folder, "--check", "-o", file)
    exec(deed, {"plugin": folder / "org.tenon.fft", "shutil": shutil, "STAGED": STAGED, "file": file})
    said = lock(folder, "--check", "-o", file, status=1)
    assert words in said
    raised = python(f"import tenon.lock; tenon.lock.check({str(file)!r})", folder, status=1)
    assert "PluginError" in raised and words in raised


@pytest.mark.parametrize("text, words", [("{", "is no lockfile"), ("[]", "is no lockfile"), ('{"format": 2}', "expected 1"),
                                         ('{"format": 1, "plugins": {"a": 1}}', "is no lockfile"), (None, "No such file")])
def test_what_is_no_lockfile_is_said(folder, tmp_path, text, words):
    file = tmp_path / "tenon.lock"
    if text is not None:
        file.write_text(text)
    assert words in lock(folder, "--check", "-o", file, status=1)

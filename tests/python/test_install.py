# SPDX-License-Identifier: MIT
"""tools/wheel makes a wheel of a built tree, by pip and meson-python; pip installs it into an environment of its own,
and it computes there without the sources, without variables, and with the libraries that it carries."""

import os
import pathlib
import re
import shutil
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
    assert values == "[0.26894143 0.7310586 ]"
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


def test_the_wheel_has_language_models(installed):
    """Their library is the wheel's, and is not loaded before."""
    said = installed.run("-c", """
import tenon as tn
libraries = lambda: {line.split()[-1] for line in open("/proc/self/maps") if "tenon-lm" in line}
before = libraries()
print(tn.lm.Grammar("root ::= [a-c]+").fits("abc"), before, *libraries())""")
    assert said.split() == ["fits", "set()", str(installed.packages() / "tenon/lib/libtenon-lm.so.0")]


def test_the_wheel_has_shapeless_functions(installed):
    said = installed.run("-c", """
import tenon as tn
libraries = lambda: {line.split()[-1] for line in open("/proc/self/maps") if "tenon-train" in line}
before, f = libraries(), tn.function(lambda x: x.reshape(-1) * 2, shapeless="strict")
print(before, *[f(tn.ones((2, n))).shape[0] for n in (3, 5)], *libraries())""")
    assert said.split() == ["set()", "6", "10", str(installed.packages() / "tenon/lib/libtenon-train.so.0")]


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


@pytest.mark.parametrize("arguments, words", [
    (["--tenon", "/nowhere"], "/nowhere is no folder"),
    (["--tenon", "/etc"], "expected an installation of Tenon"),
    (["--openblas", "/nowhere"], "/nowhere"),
    (["--openblas", "/etc/passwd"], "is no shared object"),
    (["--without", "org.tenon.qqq"], "there is no plugin org.tenon.qqq; there are org.tenon.base"),
])
def test_the_tool_says_what_is_wrong(arguments, words, tmp_path):
    given = arguments if "--tenon" in arguments else [*arguments, "--tenon", os.environ["TEST_BUILD"]]
    done = subprocess.run([sys.executable, ROOT / "tools/wheel", *given, "-o", tmp_path], capture_output=True, text=True,
                          check=False, env=plain())
    assert done.returncode == 1 and words in done.stderr, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())


def test_pip_says_what_is_wrong_with_its_settings(installed):
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", *OFFLINE[:-1], "--config-settings=tenon=/nowhere",
                           str(ROOT / "sdk/python")], capture_output=True, text=True, check=False, env=plain(), cwd=installed.home)
    assert done.returncode != 0
    assert "tenon=/nowhere is no folder" in done.stdout + done.stderr


SIGNATURES = """
import ast, inspect, pathlib
import tenon as tn

def shown(node):
    rows, a = [], node.args
    places = [(p, False) for p in a.posonlyargs + a.args] + [(p, True) for p in a.kwonlyargs]
    defaults = [None] * (len(a.posonlyargs + a.args) - len(a.defaults)) + a.defaults + a.kw_defaults
    return [(p.arg, named, "none" if d is None else ast.literal_eval(d)) for (p, named), d in zip(places, defaults)]

def real(function):
    rows = inspect.signature(function).parameters.values()
    return [(p.name, p.kind == p.KEYWORD_ONLY, "none" if p.default is p.empty else p.default) for p in rows]

count = 0
for pack in ("base", "fft", "linalg", "nn", "optim", "quant", "random"):
    tree = ast.parse((pathlib.Path(tn.__file__).parent / f"{pack}.pyi").read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    names += [node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)]
    names += [name.asname for node in tree.body if isinstance(node, ast.ImportFrom) and "._" in "." * node.level + str(node.module)
              for name in node.names if name.asname]
    module = getattr(tn, pack)
    assert sorted(names) == dir(module), (pack, set(names) ^ set(dir(module)))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            count += 1
            if ast.unparse(node.returns) != "Any":  # of the package's own, defaults may be functions
                assert shown(node) == real(getattr(module, node.name)), (pack, node.name, shown(node))
                assert ast.get_docstring(node) == getattr(module, node.name).__doc__.splitlines()[0].strip()
print(count)
missing = [name for name in dir(tn) if not name.startswith("_")]
stub = (pathlib.Path(tn.__file__).parent / "_all.pyi").read_text()
source = pathlib.Path(tn.__file__).read_text()
print([name for name in missing if f" as {name}\\n" not in stub and f"\\n{name}: " not in stub and name not in source])
"""

SAMPLE = """
import tenon as tn

x = tn.array([1.0, 2.0], dtype=tn.float32)
y: tn.Array = tn.softmax(x, axis=-1)
z: tn.Array = tn.base.argmax(x, keepdims=True)
m: tuple[tn.Array, tn.Array, tn.Array] = tn.nn.layer_norm_grad(x, x, x)
layer: tn.nn.Linear = tn.nn.Linear(2, 3)
step = tn.nn.TrainStep(tn.nn.Sequential(layer, tn.nn.ReLU()), tn.optim.Adam(0.1), lambda m, x: tn.sum(m(x)))
w: tn.Array = (x + 1) @ y - 2 * z.sum()
f: float = float(w[0, ..., None].at[0].add(1.0))
"""

# What a checker of types says of a line.
MISTAKES = [
    ("tn.softmax(x, axes=-1)", "Unexpected keyword argument"),
    ("tn.gelu(x, approximate='quick')", "incompatible type"),
    ("tn.layer_norm(x)", "Missing positional argument"),
    ("tn.nn.nothing(x)", "no attribute"),
    ("tn.nn.Linear(2)", "Missing positional argument"),
    ("n: int = tn.exp(x)", "Incompatible types"),
]


def test_stubs_are_what_signatures_say(installed):
    count, missing = installed.run("-c", SIGNATURES).splitlines()
    assert int(count) > 400
    assert missing == "[]"


def test_types_are_checked_by_the_stubs(installed):
    if not shutil.which("mypy"):
        pytest.skip("mypy is not installed")
    file = installed.home / "sample.py"
    file.write_text(SAMPLE + "".join(f"{line}\n" for line, _ in MISTAKES))
    done = subprocess.run(["mypy", "--no-error-summary", "--cache-dir", os.devnull, "--python-executable", str(installed.python),
                           str(file)], capture_output=True, text=True, check=False, cwd=installed.home)
    said = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(said) == len(MISTAKES), done.stdout + done.stderr
    for line, (mistake, words) in zip(said, MISTAKES):
        assert words in line, (mistake, line)


def blocks(path):
    """The programs in Python of a document."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / path).read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", ["README.md", "sdk/python/README.md"])
def test_documents_print_what_their_comments_say(installed, path):
    for code in blocks(path):
        said = iter(installed.run("-c", code, TENON_BACKEND="cpu-blas").splitlines())
        for line in re.findall(r"^ *print\(.*", code, re.MULTILINE):
            shown = next(said)
            assert shown == line.partition("  # ")[2].strip() or "  # " not in line, line


def test_packs_are_imported_as_modules(installed):
    code = "import tenon.linalg, tenon.nn as nn; from tenon.fft import rfft; print(tenon.linalg.inv, nn.softmax, rfft)"
    assert installed.run("-c", code).count("<built-in method") == 3
    said = installed.run("-c", """
try:
    import tenon.qqq
except ModuleNotFoundError as error:
    print(error)""")
    assert "tenon.qqq" in said

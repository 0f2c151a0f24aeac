# SPDX-License-Identifier: MIT
"""Files: load and save of arrays, saved graphs, pictures, traces."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn

W = tn.array([1.0, 2.0, 3.0])
ARRAYS = {"a": tn.array([[1.0, 2.0], [3.0, 4.0]]), "b": tn.array([1, 2, 3], "int32")}


def test_one_array(tmp_path):
    path = tmp_path / "x.npy"
    tn.save(path, tn.array([1.0, 2.0]))
    np.testing.assert_array_equal(np.load(path), np.array([1, 2], np.float32))
    assert tn.load(path).tolist() == [1, 2]


@pytest.mark.parametrize("extension", ["npz", "safetensors", "gguf"])
def test_arrays_by_name(tmp_path, extension):
    path = tmp_path / f"x.{extension}"
    tn.save(path, ARRAYS)
    assert {k: (v.tolist(), v.dtype) for k, v in tn.load(path).items()} == {
        k: (v.tolist(), v.dtype) for k, v in ARRAYS.items()}


def test_numpys_files_of_several_arrays(tmp_path):
    path = tmp_path / "x.npz"
    rows = {"c": np.arange(6).reshape(2, 3).T, "d": np.array([1 + 2j]), "e": np.array(True), "f": np.zeros((0, 2))}
    for write in [np.savez, np.savez_compressed]:
        write(path, **rows)
        for name, array in tn.load(path).items():
            np.testing.assert_array_equal(np.asarray(array), rows[name])
    tn.save(path, ARRAYS)
    with np.load(path) as back:
        assert {k: back[k].tolist() for k in back} == {k: v.tolist() for k, v in ARRAYS.items()}
    tn.save(path, W)
    assert tn.load(path)["arr_0"].tolist() == [1, 2, 3]
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]


# --- graphs ---


def step(params, x, k=2.0):
    return {"loss": tn.sum(params["w"] * x * k) + params["b"][0], "out": [x + W, x]}


def test_a_saved_graph_runs_without_its_code(tmp_path):
    path, params = tmp_path / "step.graph", {"w": W, "b": [tn.array(1.0), tn.array(2.0)]}
    tn.save_graph(path, step, params, W, k=3.0)
    loaded = tn.load_graph(path)
    assert loaded.inputs["params.w"] == ((3,), tn.float32)
    assert list(loaded.outputs) == ["loss", "out.0", "out.1"]
    for got in [loaded(params, W, 3.0), loaded(params, k=3.0, x=W), tn.function(loaded)(params, W, 3.0)]:
        assert (got["loss"].item(), got["out"][0].tolist()) == (43, [2, 4, 6])
    gradient = tn.grad(lambda p: loaded(p, W, 3.0)["loss"])(params)
    assert (gradient["w"].tolist(), gradient["b"][1].item()) == ([3, 6, 9], 0)
    program = ("import sys, tenon as tn; f = tn.load_graph(sys.argv[1]); w = tn.array([1.0, 2.0, 3.0]); "
               "print(f({'w': w, 'b': [1.0, 2.0]}, w, 3.0)['loss'])")
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout == "43.0\n"


def test_several_graphs_of_a_file(tmp_path):
    path = tmp_path / "two.graph"
    tn.save_graph(path, {"f": (lambda x: (x * W, x), (W,)), "g": (tn.exp, (W,))})
    assert sorted(tn.load_graph(path)) == ["f", "g"]
    assert tn.load_graph(path, "f")(W)[0].tolist() == [1, 4, 9]
    np.testing.assert_allclose(tn.load_graph(path, "g")(W).tolist(), np.exp([1, 2, 3]), rtol=1e-6)


def custom():
    f = tn.custom_function(lambda x: x * 2)
    f.vjp(lambda primals, cotangents, outputs: cotangents)
    return f


FAULTS = [  # the kind, words, a call with a folder
    (LookupError, "no installed plugin", lambda d: tn.save(d / "x.qqq", W)),
    (TypeError, "expected an Array, or a dict", lambda d: tn.save(d / "x.npz", [W])),
    (TypeError, "whose keys are texts", lambda d: tn.save(d / "x.npz", {1: W})),
    (TypeError, "no array", lambda d: tn.save(d / "x.npz", {"a": "s"})),
    (ValueError, "one array", lambda d: tn.save(d / "x.npy", {"a": W, "b": W})),
    (OSError, "No such file", lambda d: tn.load(d / "nothing.npz")),
    (tn.PluginError, "damaged", lambda d: [(d / "x.npz").write_bytes(b"PK" * 50), tn.load(d / "x.npz")]),
    (ValueError, "the key 'a.b'", lambda d: tn.save_graph(d / "x.graph", lambda p: p["a.b"], {"a.b": W})),
    (ValueError, "the key 1,", lambda d: tn.save_graph(d / "x.graph", lambda p: p[1], {1: W})),
    (ValueError, "the key '0'", lambda d: tn.save_graph(d / "x.graph", lambda x: {"0": x}, W)),
    (ValueError, "the one key 'out'", lambda d: tn.save_graph(d / "x.graph", lambda x: {"out": x}, W)),
    (TypeError, "argument q is 's'", lambda d: tn.save_graph(d / "x.graph", lambda p, q: p, W, "s")),
    (ZeroDivisionError, "", lambda d: tn.save_graph(d / "x.graph", lambda p: 1 / 0, W)),
    (NotImplementedError, "rules of the application", lambda d: tn.save_graph(d / "x.graph", custom(), W)),
    (OSError, "cannot write", lambda d: tn.save_graph(d / "no" / "x.graph", lambda x: x, W)),
    (OSError, "No such file", lambda d: tn.load_graph(d / "nothing.graph")),
    (tn.PluginError, "", lambda d: [(d / "x.graph").write_bytes(b"hello " * 20), tn.load_graph(d / "x.graph")]),
    (ValueError, "ends in .svg or .dot", lambda d: tn.graph(W + 1).save(d / "x.png")),
    (RuntimeError, "too late", lambda d: tn.profile(d / "x.json")),
]
CALLS = [  # of a loaded graph of (params, x)
    (TypeError, "misses x", lambda f: f({"w": W})),
    (TypeError, "unexpected params.z", lambda f: f({"w": W, "z": W}, W)),
    (TypeError, "two values for argument 'x'", lambda f: f({"w": W}, W, x=W)),
    (TypeError, "takes 2 arguments", lambda f: f({"w": W}, W, W)),
    (ValueError, "x is float32[2], expected float32[3]", lambda f: f({"w": W}, W[:2])),
    (ValueError, "x is int64[3], expected float32[3]", lambda f: f({"w": W}, tn.array([1, 2, 3]))),
]


@pytest.mark.parametrize("kind, words, call", FAULTS)
def test_faults_of_files(tmp_path, kind, words, call):
    with pytest.raises(kind) as caught:
        call(tmp_path)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind, words, call", CALLS)
def test_faults_of_calls(tmp_path, kind, words, call):
    tn.save_graph(tmp_path / "f.graph", lambda params, x: params["w"] * x, {"w": W}, W)
    loaded = tn.load_graph(tmp_path / "f.graph")
    with pytest.raises(kind) as caught:
        call(loaded)
    assert words in str(caught.value)
    assert loaded({"w": W}, W).tolist() == [1, 4, 9]
    with pytest.raises(LookupError, match="no graph 'q'"):
        tn.load_graph(tmp_path / "f.graph", "q")


# --- pictures, traces, memory ---


def test_pictures(tmp_path):
    picture = tn.graph({"y": tn.softmax(W * 2)})
    assert str(picture).startswith("digraph") and "edges" in repr(picture)
    picture.save(tmp_path / "x.dot")
    assert (tmp_path / "x.dot").read_text() == str(picture)
    if shutil.which("dot"):
        assert "<svg" in picture._repr_svg_()
        picture.save(tmp_path / "x.svg")
        assert "<svg" in (tmp_path / "x.svg").read_text()


def test_a_trace_tells_kernels(tmp_path):
    program = "import sys, tenon as tn; tn.profile(sys.argv[1]); print(tn.exp(tn.array([0.0]))[0])"
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "x.json"], capture_output=True, text=True, check=True)
    assert done.stdout == "1.0\n"
    assert "exp" in json.dumps(json.loads((tmp_path / "x.json").read_text())["traceEvents"])


def test_memory_is_counted():
    before = tn.memory()["bytes"]
    x = tn.zeros(1 << 18) + 1
    tn.eval(x)
    during = tn.memory()
    assert during["bytes"] - before >= 1 << 20 and during["peak"] >= during["bytes"]
    del x
    assert tn.memory()["bytes"] - before < 1 << 20
    assert {"spare", "plans"} <= set(during) and tn.stats()["steps"] > 0

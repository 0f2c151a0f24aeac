# SPDX-License-Identifier: MIT
"""mlx.core over tenon, its modules: random numbers, linalg, fft, fast, transforms, devices, files, functions as files.
Frozen values are those of MLX 0.32.2's build for CPUs."""

import gc
import sys
import threading
import warnings
from importlib import metadata

import numpy as np
import pytest

import tenon as tn
import tenon.mlx
from tenon import _core

tenon.mlx.install()

import mlx.core as mx  # noqa: E402: after install()

KEY = mx.random.key(7)
LOGITS = mx.log(mx.arange(1, 7).astype(mx.float32)) * mx.ones((3, 1))
SQUARE = mx.array([[2.0, 1.0], [4.0, 3.0]])
ROWS = mx.array([[1.0, -2.0, 3.0, 0.5]])
HEADS = mx.arange(16, dtype=mx.float32).reshape(1, 2, 2, 4) / 10

# What MLX gives: an expression, and its values.
FROZEN = [
    ("mx.random.key(2**40 + 5)", [256, 5]),
    ("mx.random.split(KEY, 2)", [966301609, 989289821, 1948237315, 1058547403]),
    ("mx.random.uniform(-1, 3, (4,), key=KEY)", [-0.100061476, -0.0786520839, 0.814437389, -0.0141509175]),
    ("mx.random.normal((3,), loc=1.0, scale=2.0, key=KEY)", [-0.510932446, 0.627684116, 0.766905308]),
    ("mx.random.normal((2,), dtype=mx.complex64, key=KEY)", [-0.534195304-0.521659076j, -0.0824114233-0.484838188j]),
    ("mx.random.randint(-5, 50, (6,), key=KEY)", [-2, 6, 19, 16, 32, 12]),
    ("mx.random.randint(0, 2, (5,), mx.bool_, key=KEY)", [False, False, True, False, True]),
    ("mx.random.bernoulli(0.3, (8,), key=KEY)", [True, False, False, True, False, False, False, False]),
    ("mx.random.truncated_normal(-1.0, 2.0, (3,), key=KEY)", [-0.404761285, 0.0188206751, 0.0752132237]),
    ("mx.random.gumbel((3,), key=KEY)", [-0.399931937, 0.159066752, 0.235065669]),
    ("mx.random.laplace((3,), loc=1.0, scale=2.0, key=KEY)", [2.59715176, 1.31958437, 1.19474339]),
    ("mx.random.categorical(LOGITS, key=KEY)", [5, 4, 2]),
    ("mx.random.categorical(LOGITS[0], num_samples=5, key=KEY)", [1, 2, 4, 3, 4]),
    ("mx.random.permutation(6, key=KEY)", [0, 1, 5, 3, 2, 4]),
    ("mx.linalg.norm(SQUARE, ord=1)", [6.0]),
    ("mx.linalg.norm(SQUARE, ord='nuc')", [5.83095121]),
    ("mx.linalg.lu(mx.concatenate([SQUARE, ROWS[:, :2]]))[0]", [2, 0, 1]),
    ("mx.linalg.lu_factor(SQUARE)[1]", [1, 1]),
    ("mx.linalg.svd(SQUARE, compute_uv=False)", [5.46498489, 0.36596626]),
    ("mx.linalg.cross(ROWS[0, :3], mx.array([1.0, 0.0, 2.0]))", [-4.0, 1.0, 2.0]),
    ("mx.linalg.cross(mx.array([1.0, 2.0]), mx.array([3, 5]))", [0.0, 0.0, -1.0]),
    ("mx.linalg.solve(SQUARE, mx.array([1.0, 2.0]))", [0.5, 0.0]),
    ("mx.linalg.det(SQUARE)", [2.0]),
    ("mx.fft.rfft(ROWS)", [2.5+0j, -2+2.5j, 5.5+0j]),
    ("mx.fft.irfft2(mx.fft.rfft2(SQUARE))", [2.0, 1.0, 4.0, 3.0]),
    ("mx.fft.fftfreq(5, d=0.5)", [0.0, 0.400000006, 0.800000012, -0.800000012, -0.400000006]),
    ("mx.fast.rms_norm(ROWS, None, 1e-5)", [0.529812157, -1.05962431, 1.58943653, 0.264906079]),
    ("mx.fast.layer_norm(ROWS, mx.array([1.0, 2.0, 3.0, 4.0]), None, 1e-5)", [0.210558385, -2.94781756, 4.0006094, -0.280744523]),
    ("mx.fast.rope(HEADS, 2, traditional=False, base=100.0, scale=0.5, offset=3)[0, 1]",
     [-0.841155708, 0.861659467, 1.0, 1.10000002, -1.68146276, 0.55016613, 1.39999998, 1.5]),
    ("mx.fast.rope(HEADS, 4, traditional=True, base=None, scale=1.0, offset=mx.array([2]), freqs=mx.array([1.0, 4.0]))[0, 0]",
     [-0.0909297392, -0.0416146815, 0.0316888392, 0.359159887, -0.466557026, -0.438548237, -0.0381338, 0.921165466]),
    ("mx.fast.scaled_dot_product_attention(HEADS[..., :1, :], HEADS, HEADS, scale=0.5, mask='causal')[0, 0]",
     [0.211985618, 0.311985612, 0.411985636, 0.5119856]),
    ("mx.fast.scaled_dot_product_attention(HEADS, HEADS, HEADS, scale=0.5, sinks=mx.array([0.5, -1.0]))[0, 1]",
     [1.05274558, 1.15089977, 1.24905407, 1.34720838, 1.09096491, 1.19027007, 1.28957534, 1.38888049]),
    ("mx.fast.cross_entropy(LOGITS, mx.array([0, 1, 5]))", [3.04452229, 2.3513751, 1.25276279]),
    ("mx.gather_mm(HEADS[0], HEADS[0].swapaxes(-1, -2), rhs_indices=mx.array([1, 0]))[0]", [0.620000005, 0.860000014, 2.13999987, 3.01999998]),
    ("mx.segmented_mm(SQUARE, SQUARE, mx.array([[0, 1], [0, 2]]))", [4.0, 2.0, 8.0, 4.0, 8.0, 5.0, 20.0, 13.0]),
    ("mx.block_masked_mm(SQUARE, SQUARE, 32, mask_lhs=mx.array([[0.5]]))", [4.0, 2.5, 10.0, 6.5]),
]


def flat(x):
    """The elements as Python's numbers."""
    return mx.flatten(x).tolist()


@pytest.mark.parametrize("text,expected", FROZEN, ids=[text for text, _ in FROZEN])
def test_values_of_mlx(text, expected):
    got = np.array(flat(eval(text)))
    np.testing.assert_allclose(got, np.array(expected), rtol=2e-6, atol=2e-6)


# --- random numbers ----------------------------------------------------------------------------------------


def test_a_seed_makes_a_threads_numbers_the_same_again():
    def three():
        return [mx.random.uniform().item() for _ in range(3)]

    mx.random.seed(5)
    first = three()
    others = []
    thread = threading.Thread(target=lambda: (mx.random.seed(6), others.extend(three())))
    thread.start()
    thread.join()
    mx.random.seed(5)
    assert three() == first and others != first and len(set(first)) == 3


def test_compiled_functions_thread_the_random_state():
    step = mx.compile(lambda: mx.random.uniform(shape=(2,)), inputs=mx.random.state, outputs=mx.random.state)
    mx.random.seed(1)
    compiled = [flat(step()) for _ in range(3)]
    mx.random.seed(1)
    assert compiled == [flat(mx.random.uniform(shape=(2,))) for _ in range(3)]


def test_a_trace_that_draws_numbers_leaves_a_state_that_goes_on():
    mx.random.seed(1)
    mx.compile(lambda x: x + mx.random.uniform())(mx.array(0.0))
    after = mx.random.uniform().item()
    mx.random.seed(1)
    mx.random.uniform()
    assert after == mx.random.uniform().item()


# --- transforms -----------------------------------------------------------------------------------------------


def test_gradients_of_trees_and_names():
    def loss(params, x, *, scale):
        return (params["w"] * x).sum() * scale, {"seen": x}

    x, scale = mx.array([1.0, 2.0]), mx.array(3.0)
    (value, aux), (grads, named) = mx.value_and_grad(loss, argnums=0, argnames="scale")({"w": x}, x, scale=scale)
    assert (value.item(), flat(grads["w"]), named["scale"].item(), flat(aux["seen"])) == (15.0, [3.0, 6.0], 5.0, [1.0, 2.0])
    with pytest.raises(ValueError, match="Can't compute the gradient of keyword argument 'scale'"):
        mx.grad(loss, argnames="scale")({"w": x}, x)
    with pytest.raises(ValueError, match="should be a scalar array"):
        mx.grad(lambda x: x)(x)


def test_what_a_function_writes_into_its_arguments():
    state = {"x": mx.array([1.0, 2.0])}

    def fun(state):
        state["x"][0] = 5.0  # the tracer's own
        state["y"] = state["x"] * 2
        return state["x"].sum()

    grads = mx.grad(fun)(state)
    assert flat(grads["x"]) == [0.0, 1.0] and flat(state["y"]) == [10.0, 4.0] and flat(state["x"]) == [5.0, 2.0]


def test_values_are_read_within_a_derivative():
    def fun(x):
        y = x * x
        mx.eval(y)
        return (y if y[0].item() > 0 else -y).sum()

    assert flat(mx.grad(fun)(mx.array([2.0, 3.0]))) == [4.0, 6.0]
    with pytest.raises(ValueError, match="async_eval"):
        mx.grad(lambda x: (mx.async_eval(x), x.sum())[1])(mx.array([1.0]))


def test_products_with_derivatives():
    outputs, gradients = mx.vjp(lambda x, y: (x * y, x), [mx.array(2.0), mx.array(3.0)], [mx.array(1.0), mx.array(10.0)])
    assert [y.item() for y in outputs] == [6.0, 2.0] and [g.item() for g in gradients] == [13.0, 2.0]
    _, tangents = mx.jvp(lambda x: [x * x], [mx.array(3.0)], [mx.array(2.0)])
    assert tangents[0].item() == 12.0
    for wrong in [lambda: mx.vjp(mx.exp, [mx.array(1.0)], []), lambda: mx.jvp(mx.exp, [mx.array(1.0)], [mx.array([1.0])])]:
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("in_axes,out_axes,expected", [
    (0, 0, [[0, 1], [4, 9]]), ((0, {"b": 1}), 0, [[0, 2], [2, 9]]), ((0, None), 1, [[0, 0, 0, 0], [0, 1, 4, 9]])])
def test_batches_along_axes_of_trees(in_axes, out_axes, expected):
    x = mx.array([[0, 1], [2, 3]])
    out = mx.vmap(lambda a, tree: a * tree["b"], in_axes=in_axes, out_axes=out_axes)(x, {"b": x})
    if in_axes == (0, None):
        out, expected = mx.flatten(out.transpose(1, 0, 2), 1), [[0, 1, 0, 3], [0, 3, 4, 9]]
    assert out.tolist() == expected


def test_masks_within_a_batch():
    def put(x, mask, values):
        x[mask] = values
        return x

    out = mx.vmap(put)(mx.zeros((2, 3)), mx.array([[True, False, True], [False, True, False]]), mx.array([[1.0, 2.0], [3.0, 4.0]]))
    assert out.tolist() == [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]


@pytest.mark.parametrize("call", [lambda x: mx.grad(lambda x: x.sum())(x), lambda x: mx.vjp(mx.sum, [x], [mx.array(1)]),
                                  lambda x: mx.jvp(mx.sum, [x], [x])])
def test_integers_have_no_derivatives(call):
    with pytest.raises(ValueError, match="by an array of int32.*stop_gradient"):
        call(mx.array([1, 2]))


def test_rules_of_ones_own():
    @mx.custom_function
    def fun(x, y):
        return x * y

    fun.vjp(lambda primals, cotangent, output: (cotangent * 10, cotangent * output))
    fun.jvp(lambda primals, tangents: sum(t for t in tangents if t is not None) * 7)
    fun.vmap(lambda inputs, axes: (inputs[0] + inputs[1], 0))
    x, y = mx.array(2.0), mx.array(3.0)
    assert [g.item() for g in mx.grad(fun, argnums=(0, 1))(x, y)] == [10.0, 6.0]
    assert mx.jvp(fun, [x, y], [mx.array(1.0), mx.array(2.0)])[1][0].item() == 21.0
    assert flat(mx.vmap(fun)(mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))) == [4.0, 6.0]
    assert mx.grad(mx.checkpoint(lambda x: mx.exp(x) * x))(mx.array(0.0)).item() == 1.0
    x = fun(mx.ones(1 << 20), y)  # whose rules stay, but no array of 4 MiB
    mx.eval(x)
    before = mx.get_active_memory()
    del x
    gc.collect()
    assert before - mx.get_active_memory() >= 4 << 20 and mx.get_active_memory() < 4 << 20


def test_compiled_functions_are_traced_once_a_kind():
    traces = []

    @mx.compile
    def fun(x, scale, name="a"):
        traces.append(name)
        return {"y": x * scale, "n": None}

    for args in [(mx.array([1.0]), 2), (mx.array([3.0]), 2), (mx.array([3.0]), 3), (mx.array([3.0, 1.0]), 3)]:
        assert flat(fun(*args)["y"]) == [v * args[1] for v in flat(args[0])]
    assert len(traces) == 3 and fun(mx.array([1.0]), 2, name="b")["n"] is None and len(traces) == 4
    with pytest.raises(ValueError, match="trees of arrays or constants"):
        fun(mx.array([1.0]), object())


def test_compiled_functions_have_state():
    state = {"count": mx.array(0), "fixed": mx.array(10)}

    def fun(x):
        state["count"] = state["count"] + x
        return state["count"] * state["fixed"]

    step = mx.compile(fun, inputs=state, outputs=state)
    assert [step(mx.array(2)).item() for _ in range(3)] == [20, 40, 60]
    state["fixed"] = mx.array(1)
    assert step(mx.array(2)).item() == 8 and state["count"].item() == 8 and state["fixed"].item() == 1


def test_what_a_compiled_function_leaves_in_its_inputs():
    state = {"rate": mx.array(2.0)}

    def fun(x):
        if "first" not in state:
            state["first"] = x * 0 + 5
        return x * state["rate"]

    step = mx.compile(fun, inputs=state)
    assert [step(mx.array(1.0)).item(), step(mx.array(3.0)).item(), state["first"].item()] == [2.0, 6.0, 5.0]


def test_what_a_compiled_function_leaves_elsewhere_has_the_values_of_its_trace():
    class Left:
        count, squares = mx.array(0), None

    @mx.compile
    def fun(x):
        Left.count = Left.count + 1
        Left.squares = x * x
        return Left.squares + 1

    found = []
    for length in (3, 3, 4, 5, 4):
        assert flat(fun(mx.full(length, 2.0))) == [5.0] * length
        found.append((Left.count.item(), Left.squares.size))
    assert found == [(1, 3), (1, 3), (2, 4), (3, 5), (3, 5)] and flat(Left.squares) == [4.0] * 5


def test_derivatives_and_batches_go_through_compiled_functions():
    fun = mx.compile(lambda x: mx.exp(x).sum())
    fun(mx.array([0.0, 1.0]))
    assert flat(mx.grad(fun)(mx.array([0.0, 0.0]))) == [1.0, 1.0]
    assert flat(mx.vmap(fun)(mx.zeros((2, 2)))) == [2.0, 2.0]
    assert flat(mx.compile(mx.grad(fun))(mx.array([0.0, 0.0]))) == [1.0, 1.0]


# --- devices ----------------------------------------------------------------------------------------------------


def test_devices_and_streams():
    assert str(mx.Device(mx.cpu)) == "Device(cpu, 0)" and mx.Device(mx.cpu) == mx.cpu and mx.is_available(mx.cpu)
    first, second = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)
    assert first != second and first.device == mx.cpu
    with mx.stream(first):
        assert mx.default_stream(mx.cpu) == first and mx.default_device() == mx.cpu
        assert mx.add(1, 2, stream=second).item() == 3
    assert mx.default_stream(mx.cpu) != first and "device_name" in mx.device_info()
    assert not mx.metal.is_available() and not mx.cuda.is_available()


@pytest.mark.parametrize("devices", [(mx.cpu, mx.cpu), (mx.cpu, mx.default_device()), (mx.default_device(), mx.cpu)])
@pytest.mark.parametrize("last", [lambda x, device: x, lambda x, device: mx.add(x, 1, stream=device)], ids=["data", "work"])
def test_synchronize_waits_for_all_that_was_begun(devices, last):
    x = mx.ones((800, 800))
    made = [mx.matmul(x, x, stream=devices[0]), last(mx.array([1.0]), devices[1])]
    for y in made:
        mx.async_eval(y)
    mx.synchronize()
    assert _core.have_values([y._x for y, device in zip(made, devices) if device == mx.cpu])


def test_streams_belong_to_threads():
    own, everybodys = mx.new_stream(mx.cpu), mx.new_thread_local_stream(mx.cpu)
    found = []

    def use(stream):
        try:
            with mx.stream(stream):
                found.append(mx.arange(3).tolist())
        except RuntimeError as error:
            found.append(str(error))

    for stream in (own, everybodys):
        thread = threading.Thread(target=use, args=(stream,))
        thread.start()
        thread.join()
    assert found == [f"There is no {own} in current thread.", [0, 1, 2]]


def test_memory_is_counted():
    gc.collect()
    before = mx.get_active_memory()
    x = mx.zeros((256, 256)) + 1
    mx.eval(x)
    assert mx.get_active_memory() - before >= x.nbytes and mx.get_peak_memory() >= x.nbytes
    del x
    mx.reset_peak_memory()
    assert mx.get_cache_memory() > 0 and mx.get_peak_memory() == 0
    mx.clear_cache()
    assert mx.get_cache_memory() == 0
    limit = mx.set_memory_limit(1 << 30)
    assert mx.set_memory_limit(limit) == 1 << 30


def test_a_group_of_one():
    group = mx.distributed.init()
    assert (group.size(), group.rank(), mx.distributed.is_available()) == (1, 0, False)
    assert flat(mx.distributed.all_sum(mx.array([1.0, 2.0]), group=group)) == [1.0, 2.0]
    for call in [lambda: mx.distributed.init(strict=True), lambda: group.split(0), lambda: mx.distributed.send(mx.array(1.0), 0)]:
        with pytest.raises((RuntimeError, ValueError)):
            call()


def test_kernels_in_other_languages_say_what_they_are_when_called():
    kernel = mx.fast.metal_kernel(name="mine", input_names=["x"], output_names=["y"], source="y[0] = x[0];")
    with pytest.raises(RuntimeError, match="No Metal back-end.*'mine'"):
        kernel(inputs=[mx.array(1.0)], output_shapes=[()], output_dtypes=[mx.float32], grid=(1, 1, 1), threadgroup=(1, 1, 1))


# --- files -------------------------------------------------------------------------------------------------------


ARRAYS = {"a": mx.array([[1.5, 2.0], [3.0, 4.0]]), "b": mx.array([1, 2, 3]), "half": mx.array([0.5, -2.0], mx.float16)}


@pytest.mark.parametrize("extension", ["npz", "safetensors", "gguf"])
def test_files_of_several_arrays(tmp_path, extension):
    path = str(tmp_path / f"x.{extension}")
    {"npz": lambda: mx.savez(path, **ARRAYS), "safetensors": lambda: mx.save_safetensors(path, ARRAYS, {"by": "us"}),
     "gguf": lambda: mx.save_gguf(path, ARRAYS, {"by": "us", "n": mx.array([1, 2], mx.uint16)})}[extension]()
    found = mx.load(path)
    assert {k: (v.tolist(), v.dtype) for k, v in found.items()} == {k: (v.tolist(), v.dtype) for k, v in ARRAYS.items()}
    if extension != "npz":
        metadata = mx.load(path, return_metadata=True)[1]
        assert metadata["by"] == "us" and (extension == "safetensors" or metadata["n"].dtype == mx.uint16)
    else:
        with pytest.raises(ValueError, match="metadata not supported"):
            mx.load(path, return_metadata=True)


def test_file_objects(tmp_path):
    x = mx.array([1, 2, 3], mx.int16)
    with open(tmp_path / "x.npy", "wb") as file:
        mx.save(file, x)
    with open(tmp_path / "x.npy", "rb") as file:
        assert mx.load(file).tolist() == [1, 2, 3]
    assert np.load(tmp_path / "x.npy").dtype == np.int16
    with open(tmp_path / "x.safetensors", "wb") as file:
        mx.save_safetensors(file, {"x": x})
    with open(tmp_path / "x.safetensors", "rb") as file:
        assert mx.load(file)["x"].dtype == mx.int16


@pytest.mark.parametrize("call,kind,words", [
    (lambda: mx.load(5), ValueError, "file-like object"), (lambda: mx.load("x"), ValueError, "infer file format"),
    (lambda: mx.load("x.doc"), ValueError, "Unknown file format doc"),
    (lambda: mx.save_safetensors("x", {"a": mx.array(1)}, {"n": 0}), ValueError, "Metadata must be texts"),
    (lambda: mx.save_gguf("/tmp/none", {"a": mx.array([1.0])}, {"n": mx.array(1j)}), ValueError, "Unsupported metadata n"),
    (lambda: mx.import_function("/nowhere.mlxfn"), (OSError, RuntimeError), "nowhere")])
def test_files_that_cannot_be(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_functions_as_files(tmp_path):
    path = str(tmp_path / "f.mlxfn")
    bias = mx.array([1.0, 2.0])

    def fun(x, y=None):
        return x * 2 + bias if y is None else x * y

    with mx.exporter(path, fun, metadata='{"by": "us"}') as export:
        export(mx.array([1.0, 1.0]))
        export(mx.array([1.0]), y=mx.array([3.0]))
    with pytest.raises(RuntimeError, match="after exporting is closed"):
        export(mx.array([1.0]))
    found, metadata = mx.import_function(path, return_metadata=True)
    assert metadata == '{"by": "us"}' and flat(found(mx.array([1.0, 5.0]))[0]) == [3.0, 12.0]
    assert flat(found(mx.array([2.0]), y=mx.array([4.0]))[0]) == [8.0]
    for wrong in [lambda: found(mx.array([1.0])), lambda: found(1.0), lambda: found(mx.array([1.0]), z=mx.array([1.0]))]:
        with pytest.raises(ValueError):
            wrong()


WEIGHT = mx.arange(32, dtype=mx.float32).reshape(8, 4) / 32


@pytest.mark.parametrize("body, exported, taken, refused", [
    (lambda x: x @ WEIGHT, [(4, 8)], [[(4, 8)], [(1, 8)], [(7, 8)]], [[(4, 6)], [(4, 8, 8)]]),
    (lambda x, y: x + 2 * y, [(1, 4), (1, 4)], [[(5, 3), (5, 3)], [(1, 1), (1, 1)]], [[(5, 3), (5, 4)]]),
    (lambda q, k: mx.softmax(q @ k.T / q.shape[-1] ** 0.5, axis=-1) @ k, [(2, 4), (2, 4)], [[(3, 8), (5, 8)], [(1, 2), (6, 2)]],
     [[(3, 8), (3, 7)]]),
    (lambda x: (x.reshape(-1) / x.shape[0], x.mean(axis=0)), [(1, 3)], [[(6, 2)], [(2, 2)], [(1, 1)]], []),
    (lambda x: mx.conv2d(x, mx.ones((2, 3, 3, 1)), stride=2, padding=1), [(1, 8, 8, 1)], [[(3, 7, 9, 1)]], [[(1, 8, 8, 2)]]),
    (lambda x: sum(x[i] for i in range(x.shape[0])), [(3, 4)], [[(3, 9)]], [[(4, 4)]]),
])  # fmt: skip
def test_functions_of_files_take_other_extents(tmp_path, body, exported, taken, refused):
    path = str(tmp_path / "f.mlxfn")
    mx.export_function(path, body, *map(mx.zeros, exported), shapeless=True)
    found = mx.import_function(path)
    for shapes in [exported, *taken]:
        values = [mx.random.normal(shape) for shape in shapes]
        want = body(*values)
        for got, right in zip(found(*values), want if isinstance(want, tuple) else (want,), strict=True):
            assert got.shape == right.shape and mx.allclose(got, right, atol=1e-5).item()
    for shapes in refused:
        with pytest.raises(ValueError, match="No imported function found"):
            found(*map(mx.zeros, shapes))


def test_a_function_of_a_file_keeps_what_other_extents_would_change(tmp_path):
    tables = [mx.array([1.0]), mx.array([2.0])]
    mx.export_function(str(tmp_path / "f.mlxfn"), lambda x: x * tables[x.shape[0] > 4], mx.ones((4,)), shapeless=True)
    found = mx.import_function(str(tmp_path / "f.mlxfn"))
    assert flat(found(mx.ones((4,)))[0]) == [1.0] * 4
    with pytest.raises(ValueError, match="No imported function found"):
        found(mx.ones((8,)))


@pytest.mark.parametrize("rows", (1, 8, 70))
def test_products_with_quantised_weights_keep_sixteen_bits_of_x(rows):
    mx.random.seed(1)
    x, w = mx.random.normal((rows, 256)), mx.random.normal((40, 256))
    for bits in (2, 4, 8):
        parts = mx.quantize(w, 64, bits)
        exact = x @ mx.dequantize(*parts, 64, bits).T
        assert mx.abs(mx.quantized_matmul(x, *parts, True, 64, bits) - exact).max().item() < 1e-4 * mx.abs(exact).max().item()


WORDS = mx.quantize(mx.arange(128).reshape(2, 64) / 64)
CACHE = mx.arange(64, dtype=mx.float32).reshape(1, 2, 8, 4)

# Calls of functions with a short way, which is before the function of the table: as models give arguments, and others.
SHORT = [("quantized_matmul", "mx.ones((3, 64)), *WORDS"), ("quantized_matmul", "mx.ones((3, 64)), *WORDS, True, 64, 4, 'affine'"),
         ("quantized_matmul", "mx.ones((3, 2)), *WORDS, transpose=False"), ("quantized_matmul", "mx.ones((3, 60)), *WORDS"),
         ("quantized_matmul", "mx.ones((3, 64), dtype=mx.int32), *WORDS"), ("quantized_matmul", "mx.ones((3, 64)), *WORDS, bits=7"),
         ("fast.rms_norm", "ROWS, mx.ones(4), 1e-5"), ("fast.rms_norm", "ROWS, mx.ones(4, dtype=mx.float16), 1e-5"),
         ("fast.rms_norm", "ROWS, mx.ones(1), 1e-5"), ("fast.rms_norm", "ROWS.astype(mx.int32), mx.ones(4, dtype=mx.int32), 1e-5"),
         ("fast.rope", "HEADS, 4, traditional=False, base=100.0, scale=1.0, offset=3"),
         ("fast.rope", "HEADS, 6, traditional=False, base=100.0, scale=1.0, offset=3"),
         ("fast.rope", "HEADS, 4, traditional=True, base=100.0, scale=1.0, offset=mx.array(2)"),
         ("fast.scaled_dot_product_attention", "CACHE[..., :1, :], CACHE[..., :5, :], CACHE[..., :5, :], scale=0.5"),
         ("fast.scaled_dot_product_attention", "CACHE[..., :1, :], CACHE[..., :5, :], CACHE[..., :6, :], scale=0.5"),
         ("array.reshape", "ROWS, 2, -1"), ("array.reshape", "ROWS, (2, 2)"), ("array.reshape", "ROWS, 3"), ("array.reshape", "mx.zeros((0, 4)), -1"),
         ("array.transpose", "CACHE, 0, 2, 1, 3"), ("array.transpose", "CACHE, 0, 2"), ("array.transpose", "CACHE, 0, 1, 1, 2")]


@pytest.mark.parametrize("name, text", SHORT)
def test_short_ways_answer_as_the_functions_that_they_are_before(name, text):
    function = mx
    for part in name.split("."):
        function = getattr(function, part)

    def answer(call):
        try:
            return np.array(eval(f"call({text})", {**globals(), "call": call}))
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    for _ in range(2):  # the second time of what is remembered
        short, plain = answer(function), answer(function.__wrapped__)
        assert short == plain if isinstance(plain, str) else np.array_equal(short, plain), (short, plain)


def test_rows_of_a_cache_are_written_where_they_fit():
    for shape, where in [((1, 2, 1, 4), 2), ((1, 2, 3, 4), 4), ((4,), 1), ((1, 1, 1, 4), 7)]:
        cache, rows = mx.zeros((1, 2, 8, 4)), mx.random.normal(shape)
        expected = np.zeros((1, 2, 8, 4), "f4")
        count = shape[-2] if len(shape) > 1 else 1
        cache[..., where:where + count, :] = rows
        expected[..., where:where + count, :] = np.array(rows)
        assert np.array_equal(np.array(cache), expected)
    with pytest.raises(ValueError):
        cache[..., 2:4, :] = mx.ones((1, 2, 3, 4))


def test_operators_of_what_holds_arrays():
    negative = _core.held_operator("base.negative/1", mx.array, None)
    x = mx.array([1.0, -2.0])
    inner = x._x
    before = sys.getrefcount(inner)
    results = [negative(x), negative(inner)]
    assert sys.getrefcount(inner) == before
    assert [flat(y) for y in results] == [[-1.0, 2.0]] * 2 and type(results[0]) is mx.array
    with pytest.raises(AttributeError, match="without a value"):
        negative(mx.array.__new__(mx.array))
    with pytest.raises(TypeError, match="derived from Held"):
        _core.held_operator("base.negative/1", float, None)
    with pytest.raises(ValueError, match="refused"):
        _core.held_operator("base.negative/1", mx.array, refuse)(mx.array(1.0, mx.float64))


def refuse():
    raise ValueError("refused")


class Other(_core.Held):
    """As an array of MLX's own build: its buffers have a format of their own for bfloat16."""

    __module__ = "mlx.core"

    def _lent(self):
        return tn.view(self._x, "uint16"), "bfloat16"

    def __dlpack__(self, **named):
        return self._x.__dlpack__(**named)

    def __dlpack_device__(self):
        return self._x.__dlpack_device__()


Other.__name__ = "array"


@pytest.mark.parametrize("take,expected", [
    (mx.array, [1.5, -2.0]), (mx.sum, -0.5), (lambda x: mx.array([2.0, 2.0], mx.bfloat16) * x, [3.0, -4.0]),
    (lambda x: mx.concatenate([mx.zeros(1, mx.bfloat16), x]), [0.0, 1.5, -2.0]), (lambda x: mx.array(tn.array(x)), [1.5, -2.0]),
    (mx.compile(lambda x: x), "own build"), (mx.grad(lambda x: x.sum()), "own build")])
def test_arrays_of_another_build(take, expected):
    other = Other()
    other._x = tn.array([1.5, -2.0], "bfloat16")
    if type(expected) is str:
        with pytest.raises(ValueError, match=expected):
            take(other)
    else:
        assert take(other).dtype == mx.bfloat16 and take(other).tolist() == expected


@pytest.mark.parametrize("name,version,told", [("mlx", "0.31.0", 1), ("mlx-lm", "0.31.1", 1), ("mlx", "0.32.9", 0)])
def test_other_releases_are_told(monkeypatch, name, version, told):
    def installed(asked):
        if asked != name:
            raise metadata.PackageNotFoundError(asked)
        return version

    monkeypatch.setattr(metadata, "version", installed)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tenon.mlx._check_release("0.32.2")
    assert [f"{name} {version}" in str(w.message) for w in seen] == [True] * told

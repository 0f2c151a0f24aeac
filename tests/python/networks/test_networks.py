# SPDX-License-Identifier: MIT
"""tenon.nn's layers, tenon.optim's optimisers and tenon.data, beside values of PyTorch (frozen.py)."""

import gzip
import importlib
import json
import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn
from frozen import LAYERS, OPTIMISERS, SHAPES, STEPS, numbers
from tenon import nn, optim
from tenon.data import Batches, fashion_mnist, plot, progress, read_csv, read_idx, read_images, read_text

FROZEN = json.loads((pathlib.Path(__file__).parent / "frozen.json").read_text())


def array(shape, start, scale=0.5, dtype="float32"):
    return tn.array(np.array(numbers(shape, start, scale), dtype).reshape(shape))


def agrees(got, want, what):
    np.testing.assert_allclose(np.asarray(got).ravel(), np.asarray(want), rtol=2e-4, atol=2e-5, err_msg=what)


# --- layers ------------------------------------------------------------------------------------

X2, X3 = (2, 8, 8, 4), (2, 4, 4, 4, 4)
# Class: its arguments and the shapes of inputs; every layer that there is stands here.
TABLE = {
    "ALiBi": [((), (2, 3, 4, 5))], "AlphaDropout": [((0.5,), (3, 4))], "ChannelShuffle": [((2,), X2)], "CircularPad1d": [((1,), (2, 8, 4))],
    "CircularPad2d": [((1,), X2)], "CircularPad3d": [((1,), X3)], "ConstantPad1d": [((1, 2.0), (2, 8, 4))], "ConstantPad2d": [((1, 2.0), X2)],
    "ConstantPad3d": [((1, 2.0), X3)], "CosineSimilarity": [((), (3, 4), (3, 4))], "EmbeddingBag": [((9, 4), (2, 5))],
    "FeatureAlphaDropout": [((0.5,), X2)], "Fold": [(((3, 3), 2), (1, 4, 8))], "FractionalMaxPool2d": [((2, 3), X2), ((2, None, 0.5, True), X2)],
    "FractionalMaxPool3d": [((2, 2), X3)], "GRUCell": [((4, 5), (3, 4))], "GlobalAvgPool": [((), X2)], "GlobalMaxPool": [((), X2)],
    "LPPool1d": [((2, 2), (2, 8, 4))], "LPPool2d": [((2, 2), X2)], "LPPool3d": [((2, 2), X3)], "LSTMCell": [((4, 5), (3, 4))],
    "LocalResponseNorm": [((3,), X2)], "PairwiseDistance": [((), (3, 4), (3, 4))], "PixelShuffle": [((2,), X2)], "PixelUnshuffle": [((2,), X2)],
    "QuantizedEmbedding": [((9, 64), (2, 5))], "QuantizedLinear": [((64, 5), (3, 64)), ((64, 5, False, 32, 8, "mxfp8"), (3, 64))],
    "RNNCell": [((4, 5), (3, 4))], "RReLU": [((), (3, 4))], "ReflectionPad1d": [((1,), (2, 8, 4))], "ReflectionPad2d": [((1,), X2)],
    "ReflectionPad3d": [((1,), X3)], "ReplicationPad1d": [((1,), (2, 8, 4))], "ReplicationPad2d": [((1,), X2)], "ReplicationPad3d": [((1,), X3)],
    "Softmax2d": [((), X2)], "Squareplus": [((), (3, 4))], "Step": [((), (3, 4))], "Threshold": [((0.1, 2.0), (3, 4))],
    "Transformer": [((8, 2, 1, 1), (2, 5, 8), (2, 3, 8))], "Unflatten": [((-1, (2, 2)), X2)], "Unfold": [((2,), X2)], "ZeroPad1d": [((1,), (2, 8, 4))],
    "ZeroPad2d": [((1,), X2)], "ZeroPad3d": [((1,), X3)],
    "AdaptiveAvgPool1d": [((2,), (2, 8, 4))], "AdaptiveAvgPool2d": [((1,), X2)], "AdaptiveAvgPool3d": [((2,), X3)],
    "AdaptiveMaxPool1d": [((2,), (2, 8, 4))], "AdaptiveMaxPool2d": [(((2, 3),), X2)], "AdaptiveMaxPool3d": [((2,), X3)],
    "AvgPool1d": [((2,), (2, 8, 4))], "AvgPool2d": [((3, 2, 1), X2)], "AvgPool3d": [((2,), X3)],
    "BatchNorm": [((4,), X2), ((4,), (6, 4))], "Bilinear": [((4, 3, 5), (2, 4), (2, 3))],
    "CELU": [((), (3, 4))], "Conv1d": [((4, 6, 3), (2, 8, 4))], "Conv2d": [((4, 6, 3, 1, "same"), X2), ((4, 6, 3, 2, 1, 1, 2), X2)],
    "Conv3d": [((4, 6, 3), X3)], "ConvTranspose1d": [((4, 6, 3, 2), (2, 8, 4))], "ConvTranspose2d": [((4, 6, 3, 2), X2)],
    "ConvTranspose3d": [((4, 6, 3, 2), X3)], "Dropout": [((0.5,), (3, 4))], "Dropout1d": [((0.5,), (2, 8, 4))],
    "Dropout2d": [((0.5,), X2)], "Dropout3d": [((0.5,), X3)], "ELU": [((0.5,), (3, 4))], "Embedding": [((9, 4), (2, 5))], "Flatten": [((), X2)],
    "GELU": [((), (3, 4)), (("tanh",), (3, 4)), (("fast",), (3, 4))], "GLU": [((), (3, 4))], "GRU": [((4, 5), (2, 3, 4))], "GroupNorm": [((2, 4), X2)],
    "HardShrink": [((), (3, 4))], "HardTanh": [((), (3, 4))], "Hardsigmoid": [((), (3, 4))], "Hardswish": [((), (3, 4))], "Identity": [((), (3, 4))],
    "InstanceNorm": [((4,), X2), ((4, 1e-5, True), X2)], "LSTM": [((4, 5), (2, 3, 4)), ((4, 5, 2, True, True, 0.0, True, 3), (2, 3, 4))], "LayerNorm": [((4,), (3, 4)), ((4, 1e-5, False), (3, 4))],
    "LeakyReLU": [((0.1,), (3, 4))], "Linear": [((4, 5), (3, 4)), ((4, 5, False), (2, 3, 4))], "LogSigmoid": [((), (3, 4))],
    "LogSoftmax": [((), (3, 4))], "MaxPool1d": [((2,), (2, 8, 4))], "MaxPool2d": [((3, 2, 1), X2)], "MaxPool3d": [((2,), X3)], "Mish": [((), (3, 4))],
    "MultiHeadAttention": [((8, 4, True, 2), (2, 5, 8))], "PReLU": [((), (3, 4))], "RMSNorm": [((4,), (3, 4))], "RNN": [((4, 5), (2, 3, 4))],
    "ReLU": [((), (3, 4))], "ReLU2": [((), (3, 4))], "ReLU6": [((), (3, 4))], "RoPE": [((4,), (2, 3, 5, 4))], "SELU": [((), (3, 4))],
    "SiLU": [((), (3, 4))], "Sigmoid": [((), (3, 4))], "SinusoidalPositionalEncoding": [((8,), (3, 4))], "Softmax": [((), (3, 4))],
    "Softmin": [((), (3, 4))], "Softplus": [((), (3, 4))], "Softshrink": [((), (3, 4))], "Softsign": [((), (3, 4))], "Tanh": [((), (3, 4))],
    "Tanhshrink": [((), (3, 4))], "TransformerDecoder": [((2, 8, 2), (2, 5, 8), (2, 3, 8))], "TransformerDecoderLayer": [((8, 2), (2, 5, 8), (2, 3, 8))],
    "TransformerEncoder": [((2, 8, 2), (2, 5, 8))], "TransformerEncoderLayer": [((8, 2), (2, 5, 8))],
    "Upsample": [((2,), X2), ((None, "linear", False, 5), (2, 8, 4))],
}  # fmt: skip
PARTS = {"Module", "Sequential"}  # what other layers are made of
UNPOOLS = {"MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"}  # their inputs are a pooling's results


def test_every_layer_stands_in_the_table():
    layers = {name for name in nn.__all__ if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)}
    assert layers - PARTS - UNPOOLS == set(TABLE)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_maxima_go_back_where_they_were(axes):
    x = tn.abs(array((2, *[4] * axes, 3), 1)) + 1
    pool, adaptive = (getattr(nn, f"{name}MaxPool{axes}d")(2, return_indices=True) for name in ("", "Adaptive"))
    for layer in (pool, adaptive):
        y, indices = layer(x)
        back = np.asarray(getattr(nn, f"MaxUnpool{axes}d")(2)(y, indices))
        assert back.shape == x.shape and np.array_equal(back[back != 0], np.asarray(x)[back != 0]) and (back != 0).sum() == y.size


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_layer_has_results_and_gradients(name):
    for arguments, *shapes in TABLE[name]:
        layer = getattr(nn, name)(*arguments)
        inputs = [tn.arange(10).reshape((2, 5)) % 9 if "Embedding" in name else array(shape, i) for i, shape in enumerate(shapes)]
        named = set(nn.flat(layer.trainable_parameters()))

        def loss(*inputs):
            y = layer(*inputs)
            y = y[0] if isinstance(y, tuple) else y
            return tn.sum(y * y)

        value, gradients = nn.value_and_grad(layer, loss)(*inputs)
        gradients = nn.flat(gradients)
        assert set(gradients) == named and np.isfinite(float(value))
        for key, p in nn.flat(layer.trainable_parameters()).items():
            assert gradients[key].shape == p.shape and np.isfinite(np.asarray(gradients[key])).all()
        assert type(layer).__name__ in repr(layer)


def ours_of(kind, arguments):
    """Our layer for one of PyTorch's, and its parameters in PyTorch's order."""
    given = dict(arguments)
    if kind in ("LSTM", "GRU", "RNN"):
        layer = getattr(nn, kind)(**given)
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh") + (("weight_hr",) if "proj_size" in given else ())
        names = [f"{part}.{k}" for k in range(len(layer.weight_ih)) for part in parts]
    elif kind.endswith("Cell"):
        layer, names = getattr(nn, kind)(**given), ["weight_ih.0", "weight_hh.0", "bias_ih.0", "bias_hh.0"]
    elif kind.startswith("Conv"):
        layer, names = getattr(nn, kind)(**given, axis=1), ["weight", "bias"]
    elif kind == "BatchNorm1d":
        layer, names = nn.BatchNorm(**given), ["weight", "bias"]
    elif kind != "TransformerEncoderLayer":
        layer, names = getattr(nn, kind)(**given, axis=1), []
    else:
        layer = nn.TransformerEncoderLayer(given["d_model"], given["nhead"], given["dim_feedforward"], norm_first=given.get("norm_first", False))
        layer.attention = nn.MultiHeadAttention(given["d_model"], given["nhead"], bias=True)
        names = ["attention.in", "attention.in", "attention.out_proj.weight", "attention.out_proj.bias", "feed.up.weight", "feed.up.bias",
                 "feed.down.weight", "feed.down.bias", "ln1.weight", "ln1.bias", "ln2.weight", "ln2.bias"]  # fmt: skip
    return layer, names


def joined(named, name, i):
    """PyTorch's parameter of ours: it has the three projections of attention in one."""
    if name != "attention.in":
        return named[name]
    part = "bias" if i else "weight"
    return tn.concatenate([named[f"attention.{which}_proj.{part}"] for which in ("query", "key", "value")], axis=0)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_as_pytorchs(name):
    kind, arguments, shape = LAYERS[name]
    layer, names = ours_of(kind, arguments)
    for i, key in enumerate(names):
        p = joined(layer.state(), key, i)
        value = array(p.shape, 10 * i)
        if key == "attention.in":
            part = "bias" if i else "weight"
            thirds = {f"attention.{which}_proj.{part}": value[8 * k : 8 * k + 8] for k, which in enumerate(("query", "key", "value"))}
            layer.load_weights(thirds, strict=False)
        else:
            layer.load_weights({key: value}, strict=False)
    x = array(shape, 3, 1.0)

    def loss(arrays):
        layer.update(arrays["p"])
        y = layer(arrays["x"])
        y = y[0] if isinstance(y, tuple) else y
        return tn.sum(y * y), y

    (_, y), gradients = tn.value_and_grad(loss, has_aux=True)({"p": layer.parameters(), "x": x})
    want, named = FROZEN["layers"][name], nn.flat(gradients["p"])
    agrees(y, want["y"], "y")
    agrees(gradients["x"], want["x"], "x")
    for i, key in enumerate(names):
        agrees(joined(named, key, i), want[f"parameter {i}"], key)
    for key, value in layer.state().items():
        if key in want:
            agrees(value, want[key], key)


# --- modules -----------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        self.parts = {"a": nn.Linear(3, 4), "b": [nn.Linear(4, 4), nn.BatchNorm(4)]}
        self.scale = tn.ones([4])
        self.words, self._hidden = "not a parameter", tn.zeros([2])

    def __call__(self, x):
        x = self.parts["a"](x)
        for part in self.parts["b"]:
            x = part(x)
        return x * self.scale


def test_parameters_are_a_tree():
    net = Net()
    assert list(nn.flat(net.parameters())) == ["parts.a.weight", "parts.a.bias", "parts.b.0.weight", "parts.b.0.bias", "parts.b.1.weight",
                                               "parts.b.1.bias", "scale"]  # fmt: skip
    assert list(nn.flat(net.buffers())) == ["parts.b.1.running_mean", "parts.b.1.running_var"]
    assert [name for name, _ in net.named_modules()] == ["", "parts.a", "parts.b.0", "parts.b.1"]
    net.freeze().unfreeze(keys="weight")
    assert list(nn.flat(net.trainable_parameters())) == ["parts.a.weight", "parts.b.0.weight", "parts.b.1.weight"]
    _, gradients = nn.value_and_grad(net, lambda x: tn.sum(net(x)))(tn.ones([2, 3]))
    assert list(nn.flat(gradients)) == ["parts.a.weight", "parts.b.0.weight", "parts.b.1.weight"]
    net.unfreeze().apply(lambda p: p * 0, where=lambda name, p: name.endswith("bias"))
    assert float(tn.sum(tn.abs(net.parts["a"].bias))) == 0 and float(tn.sum(tn.abs(net.parts["a"].weight))) > 0
    assert net.astype(tn.float16).scale.dtype == tn.float16
    assert net.eval().parts["b"][1].training is False and net.train().parts["b"][1].training is True


def test_layers_are_quantised(tmp_path):
    net = nn.Sequential(nn.Embedding(9, 64), nn.Linear(64, 64), nn.Linear(64, 24, bias=False), nn.Linear(24, 3))
    ids = tn.arange(10).reshape((2, 5)) % 9
    want = np.asarray(net(ids))
    assert nn.quantize(net, group_size=32, bits=8) is net
    assert [type(layer).__name__ for layer in net.layers] == ["QuantizedEmbedding", "QuantizedLinear", "QuantizedLinear", "Linear"]
    np.testing.assert_allclose(np.asarray(net(ids)), want, atol=0.02)
    assert set(nn.flat(net.trainable_parameters())) == {"layers.3.weight", "layers.3.bias"}
    scores = np.asarray(net.layers[0].as_linear(tn.ones([2, 64])))
    np.testing.assert_allclose(scores[0], np.asarray(tn.sum(net.layers[0](tn.arange(9)), axis=-1)), atol=1e-3)
    net.save_weights(tmp_path / "net.safetensors")
    other = nn.quantize(nn.Sequential(nn.Embedding(9, 64), nn.Linear(64, 64), nn.Linear(64, 24, bias=False), nn.Linear(24, 3)), 32, 8)
    assert np.array_equal(np.asarray(other.load_weights(tmp_path / "net.safetensors")(ids)), np.asarray(net(ids)))
    step = nn.TrainStep(net, optim.Adam(0.01), lambda net, ids: tn.mean(net(ids) ** 2))
    assert float(step(ids)) > float(step(ids))
    chosen = nn.quantize(Net(), 32, where=lambda name, layer: False)
    assert type(chosen.parts["a"]) is nn.Linear
    nested = Net()
    nested.parts["b"][0] = nn.Linear(64, 64)
    assert type(nn.quantize(nested).parts["b"][0]) is nn.QuantizedLinear
    with pytest.raises(ValueError, match="the model is a Linear itself"):
        nn.quantize(nn.Linear(64, 4))


def test_weights_of_files(tmp_path):
    path = tmp_path / "net.safetensors"
    net, other = Net(), Net()
    net(tn.ones([2, 3]))
    net.save_weights(path)
    other.load_weights(path)
    for name, value in net.state().items():
        assert np.array_equal(np.asarray(value), np.asarray(other.state()[name])), name
    state = net.state()
    rows = [
        ({key: state[key] for key in state if key != "scale"}, "parameter 'scale' of Net is missing"),
        ({**state, "more": tn.ones([1])}, "Net has no parameter 'more'"),
        ({**state, "scale": tn.ones([5])}, r"parameter 'scale' of Net: got shape \(5,\), expected \(4,\)"),
    ]
    for named, message in rows:
        before = other.scale
        with pytest.raises(ValueError, match=message):
            other.load_weights(named)
        assert other.scale is before
    (tmp_path / "cut.safetensors").write_bytes(path.read_bytes()[:100])
    with pytest.raises(tn.PluginError, match="cut.safetensors"):
        other.load_weights(tmp_path / "cut.safetensors")


@pytest.mark.parametrize("make, message", [
    (lambda: nn.Linear(3, 4)(tn.ones([2, 5])), "nn.linear"), (lambda: nn.Conv2d(4, 6, 3, groups=3), "4 channels to 6 in 3 groups"),
    (lambda: nn.GroupNorm(3, 4), "4 channels in 3 groups"), (lambda: nn.MultiHeadAttention(8, 3), "8 dims, 3 heads"),
    (lambda: nn.Dropout(1.0), "p is 1.0"), (lambda: nn.ConstantPad2d((1, 2)), "2 numbers, expected one, or 4"), (lambda: nn.ZeroPad1d(1)(tn.ones([3])), "got 1 axes"),
    (lambda: nn.FractionalMaxPool2d(2), "one of output_size and output_ratio"), (lambda: nn.init.sparse(0.5)([3]), "expected a matrix"), (lambda: nn.GELU("slow"), "approximate is 'slow'"), (lambda: nn.LSTM(3, 4, 0), "0 layers"), (lambda: nn.LSTM(3, 4, proj_size=4), "proj_size is 4"), (lambda: nn.Upsample(), "one of scale_factor and size"),
    (lambda: nn.init.identity()([2, 3]), "square"), (lambda: nn.init.he_normal("fan")([2, 3]), "mode is 'fan'"),
    (lambda: nn.losses.cross_entropy(tn.ones([2, 3]), tn.array([0, 1]), reduction="all"), "reduction is 'all'"),
    (lambda: Net().update({"scal": tn.ones([4])}), "no parameter 'scal'"),
    (lambda: optim.MultiOptimizer([optim.SGD(1)], [None]), "1 filters of 1"),
    (lambda: optim.SGD(1).apply_gradients({"b": tn.ones([2])}, {"a": tn.ones([2])}), "a gradient of 'b'"),
    (lambda: optim.schedules.join_schedules([None], [3]), "1 boundaries of 1"),
])  # fmt: skip
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_error_names_the_layer():
    with pytest.raises(ValueError) as told:
        nn.Sequential(nn.ReLU(), nn.Linear(3, 4))(tn.ones([2, 5]))
    assert "in Linear(3, 4, bias=True)" in told.value.__notes__


def test_activations_are_functions():
    x = array((5, 4), 0, 3.0)
    v = np.asarray(x, "f8")
    want = {"sigmoid": 1 / (1 + np.exp(-v)), "tanh": np.tanh(v), "step": v >= 0, "hard_tanh": v.clip(-1, 1), "log_sigmoid": -np.log1p(np.exp(-v)),
            "hard_shrink": v * (abs(v) > 0.5), "gelu_fast_approx": v / (1 + np.exp(-1.702 * v)),
            "gelu_approx": v / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (v + 0.044715 * v**3)))}  # fmt: skip
    for name, values in want.items():
        agrees(getattr(nn, name)(x), values.ravel(), name)
    agrees(nn.GELU("fast")(x), want["gelu_fast_approx"].ravel(), "fast")
    agrees(nn.GELU("precise")(x), want["gelu_approx"].ravel(), "precise")


@pytest.mark.parametrize("name", ["binary_cross_entropy", "l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "hinge_loss", "log_cosh_loss",
                                  "soft_margin_loss", "hinge_embedding_loss", "multilabel_soft_margin_loss", "poisson_nll_loss"])
def test_targets_may_be_integers(name):
    loss, x, whole = getattr(nn.losses, name), array((3, 4), 0), tn.array([[0, 1, 1, 0]] * 3)
    assert float(tn.mean(loss(x, whole))) == float(tn.mean(loss(x, whole.astype(tn.float32))))


def test_losses_of_three_arrays():
    x, y, ones = array((3, 4), 0), array((3, 4), 5), tn.array([[1, -1, -1, 1]] * 3)
    variances = np.abs(np.asarray(array((3, 4), 9))) + np.float32(0.1)
    want = np.mean(0.5 * (np.log(variances) + (np.asarray(x) - np.asarray(y)) ** 2 / variances))
    assert float(nn.losses.gaussian_nll_loss(x, y, tn.array(variances))) == pytest.approx(want, rel=1e-5)
    assert float(nn.losses.margin_ranking_loss(x, y, ones, reduction="mean")) == float(nn.losses.margin_ranking_loss(x, y, ones.astype(tn.float32), reduction="mean"))
    assert float(nn.losses.cosine_embedding_loss(x, y, ones[0, :3])) == float(nn.losses.cosine_embedding_loss(x, y, ones[0, :3].astype(tn.float32)))


def test_first_values():
    draws = {"uniform": nn.init.uniform(-1, 1), "normal": nn.init.normal(), "glorot_normal": nn.init.glorot_normal(), "glorot_uniform": nn.init.glorot_uniform(),
             "he_normal": nn.init.he_normal(), "he_uniform": nn.init.he_uniform("fan_out")}  # fmt: skip
    deviations = {"uniform": 3**-0.5, "normal": 1, "glorot_normal": (2 / 500) ** 0.5, "glorot_uniform": (2 / 500) ** 0.5, "he_normal": 0.1,
                  "he_uniform": (2 / 300) ** 0.5}  # fmt: skip
    for name, draw in draws.items():
        nn.init.seed(5)
        first, second = np.asarray(draw([300, 200])), np.asarray(draw([300, 200]))
        nn.init.seed(5)
        assert np.array_equal(first, np.asarray(draw([300, 200]))) and not np.array_equal(first, second), name
        assert abs(first.std() / deviations[name] - 1) < 0.02 and abs(first.mean()) < 0.02, name
    bounded = np.asarray(nn.init.truncated_normal(1.0, 2.0, -1.0, 3.0)([200, 300]))
    assert -1 <= bounded.min() < -0.9 and 2.9 < bounded.max() <= 3 and abs(bounded.mean() - 1) < 0.02
    assert ((np.asarray(nn.init.sparse(0.25)([8, 6])) == 0).sum(axis=0) == 2).all()
    q = np.asarray(nn.init.orthogonal()([6, 2, 2]), "f8").reshape(6, 4)
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-5)


# --- optimisers --------------------------------------------------------------------------------


def optimiser_of(name):
    given = dict(OPTIMISERS[name][1])
    rate = given.pop("lr")
    given.pop("amsgrad", None)
    return getattr(optim, name.partition(",")[0])(rate, **given)


def gradients_of(p):
    return tn.grad(lambda p: tn.sum((p["a"] @ p["b"] - 1) ** 2))(p)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_is_as_pytorchs(name):
    p, optimiser = {key: array(shape, 5 * i) for i, (key, shape) in enumerate(zip("ab", SHAPES))}, optimiser_of(name)
    for _ in range(STEPS):
        p = optimiser.apply_gradients(gradients_of(p), p)
        tn.eval(p)
    for got, want in zip(p.values(), FROZEN["optimisers"][name]):
        np.testing.assert_allclose(np.asarray(got).ravel(), want, rtol=2e-4, atol=2e-4)



@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_traced_step_is_an_optimisers_update(name):
    states = []
    for is_traced in (False, True):
        net, optimiser = nn.Module(), optimiser_of(name)
        net.a, net.b, net.c = array((3, 4), 0), array((4, 3), 5), array((3,), 9)

        def loss(net):
            return tn.sum((net.a @ net.b + net.c - 1) ** 2)

        step = nn.TrainStep(net, optimiser, loss)
        for _ in range(3):
            if is_traced:
                step()
            else:
                optimiser.update(net, nn.value_and_grad(net, lambda: loss(net))()[1])
        states.append({**net.state(), **optimiser.flat_state()})
    for key, value in states[0].items():
        np.testing.assert_allclose(np.asarray(states[1][key]), np.asarray(value), rtol=1e-5, atol=1e-7, err_msg=key)


def test_gradients_are_clipped_as_a_tree():
    tree = {"layers": [{"weight": tn.array([3.0, 0.0])}, {}], "bias": tn.array([4.0])}
    clipped, norm = optim.clip_gradients(tree, max_norm=0.5)
    assert float(norm) == 5 and np.allclose(clipped["layers"][0]["weight"], [0.3, 0]) and np.allclose(clipped["bias"], [0.4])
    assert float(optim.clip_gradients(tree, 9.0)[0]["bias"][0]) == 4 and optim.clip_gradients({})[0] == {}


def test_every_optimiser_is_compared():
    names = {name for name in optim.__all__ if isinstance(getattr(optim, name), type)}
    assert names - {"Optimizer", "MultiOptimizer", "Lion", "Muon"} == {name.partition(",")[0] for name in OPTIMISERS}
    p, g = array((3, 4), 0), array((3, 4), 5)  # PyTorch has no Lion, and its Muon iterates in bf16: the operators
    for optimiser, (want, _) in [(optim.Lion(0.1, weight_decay=0.2), tn.optim.lion(p, g, tn.zeros([3, 4]), lr=0.1, weight_decay=0.2)),
                                 (optim.Muon(0.1), tn.optim.muon(p, g, tn.zeros([3, 4]), lr=0.1))]:
        agrees(optimiser.apply_gradients({"p": g}, {"p": p})["p"], np.asarray(want).ravel(), repr(optimiser))


@pytest.mark.parametrize("schedule, want", [
    (optim.schedules.constant(0.5), [0.5, 0.5, 0.5]), (optim.schedules.exponential_decay(1.0, 0.5), [1, 0.5, 0.25]),
    (optim.schedules.step_decay(1.0, 0.1, 2), [1, 1, 0.1]), (optim.schedules.linear_schedule(0.0, 1.0, 2), [0, 0.5, 1]),
    (optim.schedules.cosine_decay(1.0, 2), [1, 0.5, 0]), (optim.schedules.polynomial_decay(1.0, 0.0, 2.0, 2), [1, 0.25, 0]),
    (optim.schedules.join_schedules([optim.schedules.linear_schedule(0.0, 1.0, 2), optim.schedules.exponential_decay(1.0, 0.5)], [1]), [0, 1, 0.5]),
])  # fmt: skip
def test_schedules(schedule, want):
    optimiser = optim.SGD(schedule)
    for rate in want:
        assert float(optimiser.learning_rate) == pytest.approx(rate, abs=1e-6)
        before = tn.array([1.0])
        after = optimiser.apply_gradients({"p": tn.ones([1])}, {"p": before})["p"]
        assert float(before[0] - after[0]) == pytest.approx(rate, abs=1e-6)


def model():
    nn.init.seed(3)
    return nn.Sequential(nn.Linear(4, 16), nn.BatchNorm(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


def loss_of(net, x, y):
    return nn.losses.cross_entropy(net(x), y, reduction="mean")


DATA = array((12, 4), 0, 2.0), tn.array([i % 3 for i in range(12)])


def test_a_training_step_is_traced_once(tmp_path):
    net = model()
    step = nn.TrainStep(net, optim.AdamW(optim.schedules.cosine_decay(0.05, 200)), loss_of, max_norm=1.0)
    losses = [float(step(*DATA)) for _ in range(100)]
    assert step._function.traces == 1 and sum(losses[-5:]) < 0.9 * sum(losses[:5])
    assert float(net.layers[1].running_mean[0]) != 0
    net.eval()
    assert np.array_equal(np.asarray(net(DATA[0])), np.asarray(net(DATA[0])))
    quiet = [float(step(*DATA)) for _ in range(2)]
    assert step._function.traces == 2 and quiet[1] < quiet[0]
    net.train().layers[0].freeze()
    before = np.asarray(net.layers[0].weight).copy()
    step(*DATA)
    assert np.array_equal(before, np.asarray(net.layers[0].weight)) and step._function.traces == 3


def test_a_training_that_resumes_is_the_same(tmp_path):
    def steps(net, optimiser, count):
        step = nn.TrainStep(net, optimiser, loss_of)
        return [float(step(*DATA)) for _ in range(count)]

    net, optimiser = model(), optim.Adam(0.01)
    whole = steps(net, optimiser, 8)
    first, its = model(), optim.Adam(0.01)
    begin = steps(first, its, 4)
    first.save_weights(tmp_path / "net.safetensors")
    its.save_state(tmp_path / "optimiser.safetensors")
    second, own = model(), optim.Adam(0.01)
    second.load_weights(tmp_path / "net.safetensors")
    own.init(second.trainable_parameters())
    own.load_state(tn.load(tmp_path / "optimiser.safetensors"))
    assert begin + steps(second, own, 4) == whole
    for name, value in net.state().items():
        assert np.array_equal(np.asarray(value), np.asarray(second.state()[name])), name


def test_a_step_without_a_function_is_the_same():
    net, other = model(), model()
    for m in (net, other):
        m.layers[3].p = 0
    step, optimiser = nn.TrainStep(net, optim.SGD(0.1, momentum=0.9), loss_of), optim.SGD(0.1, momentum=0.9)
    for _ in range(3):
        value, gradients = nn.value_and_grad(other, lambda x, y: loss_of(other, x, y))(*DATA)
        optimiser.update(other, gradients)
        assert float(step(*DATA)) == pytest.approx(float(value), rel=1e-5)


def test_several_optimisers():
    net = model()
    both = optim.MultiOptimizer([optim.Muon(0.02), optim.Adam(0.01)], [lambda name, p: p.ndim == 2])
    step = nn.TrainStep(net, both, loss_of)
    losses = [float(step(*DATA)) for _ in range(20)]
    assert losses[-1] < losses[0] and set(both.optimizers[0].state["of"]) == {"layers.0.weight", "layers.4.weight"}
    both.load_state(both.flat_state())


# --- losses, imports ---------------------------------------------------------------------------


def test_losses_and_imports():
    from tenon.nn import Linear, relu, softmax  # layers and operators
    from tenon.nn.losses import mse_loss
    from tenon.optim.schedules import cosine_decay

    assert Linear is nn.Linear and callable(relu) and callable(softmax) and callable(cosine_decay)
    assert importlib.import_module("tenon.nn.init") is nn.init and "Linear" in dir(nn) and "conv2d" in dir(nn)
    assert float(mse_loss(tn.array([1.0, 3.0]), tn.array([1.0, 1.0]))) == 2
    logits, classes = array((4, 3), 0, 2.0), tn.array([0, 2, 1, 1])
    marks = tn.astype(tn.expand_dims(classes, 1) == tn.arange(3), tn.float32)
    rows = [nn.losses.cross_entropy(logits, y, label_smoothing=s) for s in (0.0, 0.1) for y in (classes, marks)]
    np.testing.assert_allclose(np.asarray(rows[0]), np.asarray(rows[1]), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(rows[2]), np.asarray(rows[3]), rtol=1e-5)
    anchors = array((2, 3), 0), array((2, 3), 1), array((2, 3), 2)
    np.testing.assert_allclose(np.asarray(nn.losses.triplet_loss(*anchors)),
                               np.asarray(tn.nn.triplet_margin_loss(*anchors, reduction="none")), rtol=1e-4)


# --- data --------------------------------------------------------------------------------------


def idx(kind, shape, data):
    return bytes([0, 0, kind, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape) + data


def test_files_of_data(tmp_path):
    def written(name, data):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    assert np.asarray(read_idx(written("a", idx(8, (2, 3), bytes(range(6)))))).tolist() == [[0, 1, 2], [3, 4, 5]]
    floats = struct.pack(">3f", 1.5, -2, 3)
    assert np.asarray(read_idx(written("b.gz", gzip.compress(idx(0x0D, (3,), floats))))).tolist() == [1.5, -2, 3]
    assert read_idx(written("c", idx(8, (0, 3), b""))).shape == (0, 3)
    assert np.asarray(read_csv(written("d.csv", b"1,2\n3,4.5\n"))).tolist() == [[1, 2], [3, 4.5]]
    table = read_csv(written("e.csv", b"x,y\n1,2\n3,4\n"))
    assert np.asarray(table["y"]).tolist() == [2, 4]
    text, known = read_text(written("f.txt", "abca".encode()))
    assert np.asarray(text).tolist() == [0, 1, 2, 0] and known == "abc"
    bad = [
        (read_idx, b"", "no IDX file: begins with nothing"), (read_idx, b"\1\2\3\4", "no IDX file: begins with 01 02 03 04"),
        (read_idx, idx(8, (2, 3), bytes(5)), "5 bytes of elements, expected 6 for uint8"), (read_idx, idx(8, (2, 3), bytes(7)), "7 bytes of elements"),
        (read_idx, idx(8, (2**32 - 1,) * 4, b""), "0 bytes of elements"), (read_idx, bytes([0, 0, 8, 3, 0, 0]), "0 bytes of elements"),
        (read_idx, gzip.compress(idx(8, (2,), bytes(2)))[:-6], "damaged gzip"), (read_csv, b"", "no rows"), (read_csv, b"1,2\n3\n", "row 2: 1 columns, expected 2"),
        (read_csv, b"1,2\n3,a\n", "row 2, column 2: 'a' is no number"), (read_csv, b"a,a\n1,2\n", "two columns have one name"),
    ]  # fmt: skip
    for read, data, message in bad:
        with pytest.raises(ValueError, match=message) as told:
            read(written("bad", data))
        assert str(tmp_path / "bad") in str(told.value)
    with pytest.raises(ValueError, match="'c' is not in the vocabulary of 2 characters"):
        read_text(tmp_path / "f.txt", "ab")
    with pytest.raises(ValueError, match="part is 'all'"):
        fashion_mnist(part="all")


def test_batches():
    rows = tn.arange(10)
    for ahead in (0, 2):
        batches = Batches((rows, rows * 2), 4, seed=1, ahead=ahead)
        epochs = [[[np.asarray(part).tolist() for part in batch] for batch in batches] for _ in range(2)]
        assert len(batches) == 3 and [len(batch[0]) for batch in epochs[0]] == [4, 4, 2] and epochs[0] != epochs[1]
        for epoch in epochs:
            assert sorted(sum((x for x, _ in epoch), [])) == list(range(10)) and all([2 * a for a in x] == y for x, y in epoch)
        again, seen = Batches((rows, rows * 2), 4, seed=1, ahead=ahead), []
        for x, _ in again:
            seen.append(np.asarray(x).tolist())
            if len(seen) == 2:
                break
        later = Batches((rows, rows * 2), 4, ahead=ahead)
        later.load_state(again.state())
        seen += [np.asarray(x).tolist() for x, _ in later]
        assert seen == [x for x, _ in epochs[0]]
    assert [np.asarray(b).tolist() for b in Batches(rows, 4, shuffle=False, drop_last=True)] == [[0, 1, 2, 3], [4, 5, 6, 7]]

    def fails(x):
        raise RuntimeError("no such picture")

    with pytest.raises(RuntimeError, match="no such picture"):
        list(Batches(rows, 4, transform=fails))
    with pytest.raises(ValueError, match="expected one number of rows"):
        Batches((rows, rows[:3]), 4)


def test_progress(capsys):
    assert list(progress([1, 2, 3])) == [1, 2, 3] and capsys.readouterr().err == ""
    assert list(progress([1, 2, 3], text=lambda: "loss 0.5", always=True)) == [1, 2, 3]
    assert "3/3" in (told := capsys.readouterr().err) and "loss 0.5" in told


def test_plot(tmp_path):
    import xml.etree.ElementTree as tree

    plot(tmp_path / "a.svg", {"loss <1>": [3.0, float("nan"), 2.0, 1.0], "other": tn.array([1.0, 1.5])}, title="a & b")
    root = tree.parse(tmp_path / "a.svg").getroot()
    lines = [node.get("points").split() for node in root if node.tag.endswith("polyline")]
    assert [len(line) for line in lines] == [1, 2, 2] and lines[1][-1].endswith("360.0") and lines[0][0].endswith("36.0")
    with pytest.raises(ValueError, match="no finite number"):
        plot(tmp_path / "a.svg", {"loss": [float("nan")]})


def test_pictures_are_an_array(tmp_path):
    pictures = [np.arange(24, dtype=np.uint8).reshape(2, 4, 3) + i for i in (0, 100)]
    for i, picture in enumerate(pictures):
        (tmp_path / f"{i}.ppm").write_bytes(b"P6 4 2 255\n" + picture.tobytes())
    assert np.array_equal(read_images(tmp_path), pictures)
    half = np.asarray(read_images([tmp_path / "1.ppm"], size=(1, 2)))
    assert half.shape == (1, 1, 2, 3) and abs(half[0, 0].astype(int) - pictures[1].reshape(2, 2, 2, 3).mean(axis=(0, 2))).max() <= 1
    (tmp_path / "2.ppm").write_bytes(b"P6 1 1 255\n" + bytes(3))
    np.save(tmp_path / "a.npy", np.ones(3))
    for paths, message in [(tmp_path, "2.ppm: a picture of shape .1, 1, 3., expected .2, 4, 3."), ([tmp_path / "a.npy"], "expected a picture"), ([], "no pictures")]:
        with pytest.raises(ValueError, match=message):
            read_images(paths)


def test_the_example_learns(tmp_path):
    if not pathlib.Path("/usr/share/datasets/fashion-mnist").exists():
        pytest.skip("no dataset-fashion-mnist")
    program = pathlib.Path(__file__).parents[3] / "docs/examples/python/networks/fashion.py"
    done = subprocess.run([sys.executable, program, "60"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) > 55 and {"loss.svg", "fashion.safetensors"} <= {path.name for path in tmp_path.iterdir()}

# SPDX-License-Identifier: MIT
"""The networks of `tenon train` in PyTorch, from the initial values and in the order of data that libtenon-train has."""
import json
import math

import losses
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def name_hash(name):
    value = 0xcbf29ce484222325
    for c in name.encode():
        value = (value ^ c) * 0x100000001b3 & losses.MASK
    return value & 0xffffff


def uniform(name, count):
    stream = name_hash(name)
    return np.array([((losses.mixed(losses.SEED, stream, i) >> 11) + 0.5) * 2.0 ** -53 for i in range(count)])


class Net:
    """Parameters by name, made at first use."""

    def __init__(self, dtype, moved):
        self.dtype, self.moved, self.all = dtype, np.random.default_rng(moved) if moved else None, {}

    def param(self, name, shape, bound=None, constant=None):
        if name not in self.all:
            count = math.prod(shape)
            if constant is not None:
                values = np.full(count, constant)
            elif bound is None:  # normal
                u = uniform(name, 2 * count)
                values = np.sqrt(-2 * np.log(u[0::2])) * np.cos(6.283185307179586 * u[1::2])
            else:
                values = bound * (2 * uniform(name, count) - 1)
            values = values.astype(np.float32)
            if self.moved:
                values *= 1 + self.moved.choice([-6e-8, 6e-8], count)
            tensor = torch.tensor(values.astype(np.float32)).to(self.dtype).reshape(shape)
            self.all[name] = tensor.requires_grad_()
        return self.all[name]

    def linear(self, name, x, outputs):
        inputs = x.shape[-1]
        bound = 1 / math.sqrt(inputs)
        return F.linear(x, self.param(name + ".weight", (outputs, inputs), bound), self.param(name + ".bias", (outputs,), bound))

    def conv(self, name, x, outputs, size, stride, padding, bias):
        inputs = x.shape[1]
        bound = 1 / math.sqrt(inputs * size * size)
        weight = self.param(name + ".weight", (outputs, size, size, inputs), bound).permute(0, 3, 1, 2)
        return F.conv2d(x, weight, self.param(name + ".bias", (outputs,), bound) if bias else None, stride, padding)

    def norm_params(self, name, width):
        return self.param(name + ".weight", (width,), constant=1.0), self.param(name + ".bias", (width,), constant=0.0)


def normalised(pixels, dtype):
    x = torch.tensor(np.frombuffer(pixels, np.uint8).reshape(-1, 1, 28, 28).copy()).to(dtype)
    return (x - float(np.float32(72.94))) * float(np.float32(1 / 90.02))


def mlp(net, x):
    x = x.reshape(-1, 784)
    x = F.relu(net.linear("hidden1", x, 128))
    return net.linear("out", F.relu(net.linear("hidden2", x, 128)), 10)


def lenet(net, x):
    x = F.max_pool2d(F.relu(net.conv("conv1", x, 6, 5, 1, 2, True)), 2)
    x = F.max_pool2d(F.relu(net.conv("conv2", x, 16, 5, 1, 0, True)), 2)
    x = x.permute(0, 2, 3, 1).reshape(-1, 400)
    x = F.relu(net.linear("fc1", x, 120))
    return net.linear("fc3", F.relu(net.linear("fc2", x, 84)), 10)


def resnet(net, x):
    def convolve(name, x, filters, size, stride):
        y = net.conv(name + ".conv", x, filters, size, stride, size // 2, False)
        weight, bias = net.norm_params(name + ".norm", filters)
        return F.batch_norm(y, None, None, weight, bias, training=True)
    x = F.relu(convolve("first", x, 16, 3, 1))
    for i in range(6):
        filters, stride, at = 16 << i // 2, 2 if i > 0 and i % 2 == 0 else 1, f"block{i}."
        y = convolve(at + "b", F.relu(convolve(at + "a", x, filters, 3, stride)), filters, 3, 1)
        if stride != 1:
            x = convolve(at + "shortcut", x, filters, 1, stride)
        x = F.relu(x + y)
    return net.linear("out", x.mean((2, 3)), 10)


def transformer(net, ids):
    batch, time = ids.shape
    x = net.param("bytes.weight", (256, 64))[ids] + net.param("places.weight", (64, 64))[torch.arange(time)]
    for i in range(2):
        at = f"block{i}."
        a = F.layer_norm(x, (64,), *net.norm_params(at + "norm1", 64))
        q, k, v = (net.linear(f"{at}attention.{name}", a, 64).reshape(batch, time, 4, 16).transpose(1, 2) for name in "qkv")
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, time, 64)
        x = x + net.linear(at + "attention.out", y, 64)
        a = net.linear(at + "up", F.layer_norm(x, (64,), *net.norm_params(at + "norm2", 64)), 256)
        x = x + net.linear(at + "down", F.gelu(a), 64)
    return net.linear("scores", F.layer_norm(x, (64,), *net.norm_params("norm", 64)), 256)


MOVED = 9  # trainings of which rounding is found
NETWORKS = {
    "mlp": (mlp, lambda p: torch.optim.SGD(p, losses.RATE["mlp"], 0.9, nesterov=True)),
    "lenet": (lenet, lambda p: torch.optim.Adam(p, losses.RATE["lenet"])),
    "resnet": (resnet, lambda p: torch.optim.SGD(p, losses.RATE["resnet"], 0.9, weight_decay=5e-4)),
    "transformer": (transformer, lambda p: torch.optim.AdamW(p, losses.RATE["transformer"])),
}


def shuffled(rows, epoch):
    order = list(range(rows))
    for i in range(rows - 1, 0, -1):
        j = losses.mixed(losses.SEED, epoch + 2, i) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def batches(name, dtype):
    size = losses.BATCH[name]
    if name == "transformer":
        text = torch.tensor(list(losses.TEXT))
        rows, pick = len(text) - 64, lambda at: (torch.stack([text[i:i + 64] for i in at]), torch.stack([text[i + 1:i + 65] for i in at]))
    else:
        pixels, labels = losses.images(losses.IMAGES, 1)
        x, y = normalised(pixels, dtype), torch.tensor(list(labels))
        rows, pick = losses.IMAGES, lambda at: (x[at], y[at])
    each = rows // size
    for step in range(losses.STEPS):
        if step % each == 0:
            order = shuffled(rows, step // each)
        yield pick(order[step % each * size:step % each * size + size])


def train(name, dtype, moved=0):
    forward, optimiser_of = NETWORKS[name]
    net, optimiser, found = Net(dtype, moved), None, []
    for x, y in batches(name, dtype):
        scores = forward(net, x)
        loss = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1))
        if optimiser is None:
            optimiser = optimiser_of(list(net.all.values()))
        optimiser.zero_grad()
        loss.backward()
        if name == "transformer":
            nn.utils.clip_grad_norm_(list(net.all.values()), 1.0)
        optimiser.step()
        found.append(loss.item())
    return found


def frozen():
    torch.set_num_threads(1)
    rows = {}
    for name in NETWORKS:
        exact = train(name, torch.float64)
        others = [train(name, torch.float32, moved) for moved in range(MOVED)]
        rows[name] = {"loss": [float(f"{x:.10g}") for x in exact],
                      "rounding": [float(f"{max(abs(exact[i] - o[i]) for o in others):.2g}") for i in range(len(exact))]}
    return json.dumps(rows).replace(', "rounding"', ',\n  "rounding"').replace('}, "', '},\n "') + "\n"

# SPDX-License-Identifier: MIT
"""LeNet-5 on Fashion-MNIST from Python, as `tenon train lenet` does it in C: seconds of N steps."""

import array
import gzip
import json
import random
import sys
import time

import tenon as tn

DATA = "/usr/share/datasets/fashion-mnist/train-"
BATCH, GROUP = 64, 50
SHAPES = [[6, 5, 5, 1], [6], [16, 5, 5, 6], [16], [400, 120], [120], [120, 84], [84], [84, 10], [10]]
SUMMED = [25, 25, 150, 150, 400, 400, 120, 120, 84, 84]


def read(name, skip, shape):
    with gzip.open(DATA + name + ".gz") as file:
        data = file.read()[skip:]
    return tn.array(memoryview(data).cast("B", [len(data) // (shape[0] * shape[1]) if shape else len(data), *shape]))


def scores(p, images):
    x = (tn.astype(images, tn.float32) - 72.94) * (1 / 90.02)
    x = tn.reshape(x, [-1, 28, 28, 1])
    x = tn.max_pool2d(tn.relu(tn.conv2d(x, p[0], p[1], padding=[2, 2])), window=[2, 2])
    x = tn.max_pool2d(tn.relu(tn.conv2d(x, p[2], p[3])), window=[2, 2])
    x = tn.reshape(x, [-1, 400])
    x = tn.relu(x @ p[4] + p[5])
    x = tn.relu(x @ p[6] + p[7])
    return x @ p[8] + p[9]


def loss_of(p, images, labels, indices):
    labels = tn.astype(tn.take(labels, indices, 0), tn.int32)
    return tn.mean(tn.cross_entropy(scores(p, tn.take(images, indices, 0)), labels))


def step(images, labels, indices, state):
    p, m, v, done = state
    done = done + 1
    loss, gradients = tn.value_and_grad(loss_of)(p, images, labels, indices)
    updated = [tn.adam(*parts, done, lr=1e-3) for parts in zip(p, gradients, m, v)]
    return loss, [list(parts) for parts in zip(*updated)] + [done]


def train(steps):
    images, labels = read("images-idx3-ubyte", 16, [28, 28]), read("labels-idx1-ubyte", 8, [])
    p = [tn.random_uniform(tn.array([i, 0], tn.uint32), shape=shape, dtype="float32", a=-count**-0.5, b=count**-0.5)
         for i, (shape, count) in enumerate(zip(SHAPES, SUMMED))]  # fmt: skip
    state = [p, [tn.zeros(shape) for shape in SHAPES], [tn.zeros(shape) for shape in SHAPES], tn.zeros([])]
    tn.eval(images, labels, state)
    order, function, losses = list(range(images.shape[0])), tn.function(step, donate=3), []
    random.Random(0).shuffle(order)
    order = array.array("i", order)
    begin = time.perf_counter()
    for i in range(steps):
        at = i % (len(order) // BATCH) * BATCH
        loss, state = function(images, labels, tn.array(order[at : at + BATCH]), state)
        losses.append(loss)
        if (i + 1) % GROUP == 0:
            last, losses = [float(loss) for loss in losses][-1], []
    tn.eval(state)
    return time.perf_counter() - begin, last


if __name__ == "__main__":
    seconds, loss = train(int(sys.argv[1]))
    print(json.dumps({"event": "trained", "seconds": seconds, "loss": loss}))

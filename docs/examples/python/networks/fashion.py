# SPDX-License-Identifier: MIT
"""A network on Fashion-MNIST: layers, an optimiser, batches made ahead by a thread, and a plot of the loss.

    python3 fashion.py [STEPS [PLOT.svg]]

Debian has the data as dataset-fashion-mnist.
"""

import sys

import tenon as tn
from tenon import data, nn, optim

steps, plot = int(sys.argv[1]) if sys.argv[1:] else 2000, sys.argv[2] if sys.argv[2:] else "loss.svg"


def scaled(images, labels):
    return tn.astype(images, tn.float32).reshape((-1, 28, 28, 1)) / 255, labels.astype(tn.int32)


net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm(16), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm(32), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 49, 10))  # fmt: skip
optimiser = optim.AdamW(optim.schedules.cosine_decay(2e-3, steps))
step = nn.TrainStep(net, optimiser, lambda net, x, y: nn.losses.cross_entropy(net(x), y, reduction="mean"))
batches, losses = data.Batches(data.fashion_mnist(), 64, transform=scaled), []
while len(losses) < steps:
    for x, y in data.progress(batches, text=lambda: f"loss {losses[-1]:.3f}" if losses else ""):
        losses.append(float(step(x, y)))
        if len(losses) == steps:
            break
net.eval()
x, y = scaled(*data.fashion_mnist(part="test"))
right = sum(int(tn.sum(tn.argmax(net(x[i : i + 1000]), axis=-1) == y[i : i + 1000])) for i in range(0, 10000, 1000))
net.save_weights("fashion.safetensors")
data.plot(plot, {"loss": losses}, title="Fashion-MNIST")
print(f"{right / 100:.1f} % of 10,000 pictures are right")

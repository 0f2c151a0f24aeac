# SPDX-License-Identifier: MIT
"""LeNet-5 on Fashion-MNIST in PyTorch, as `tenon train lenet` does it: seconds of N steps."""

import gzip
import json
import sys
import time

import torch
from torch import nn

DATA = "/usr/share/datasets/fashion-mnist/train-"
STEPS, BATCH = int(sys.argv[1]), 64
torch.set_num_threads(int(sys.argv[2]))
torch.manual_seed(0)


def read(name, skip):
    with gzip.open(DATA + name + ".gz") as file:
        return torch.frombuffer(bytearray(file.read()[skip:]), dtype=torch.uint8)


images = read("images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
labels = read("labels-idx1-ubyte", 8).long()
net = nn.Sequential(
    nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)

begin = time.perf_counter()
order, losses = torch.randperm(len(images)), []
for step in range(STEPS):
    at = step % (len(images) // BATCH) * BATCH
    batch = order[at:at + BATCH]
    x = (images[batch].float() - 72.94) / 90.02
    loss = nn.functional.cross_entropy(net(x), labels[batch])
    adam.zero_grad()
    loss.backward()
    adam.step()
    losses.append(loss.detach())
print(json.dumps({"event": "trained", "seconds": time.perf_counter() - begin, "loss": losses[-1].item()}))

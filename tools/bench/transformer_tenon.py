# SPDX-License-Identifier: MIT
"""The character transformer of `tenon train transformer` from Python, by tenon.nn: seconds of N steps."""

import json
import sys
import time

import tenon as tn
from tenon import data, nn, optim

WIDTH, HEADS, LAYERS, CONTEXT, BATCH, BYTES = 64, 4, 2, 64, 32, 256


class Transformer(nn.Module):
    def __init__(self):
        self.bytes, self.positions = nn.Embedding(BYTES, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.encoder = nn.TransformerEncoder(LAYERS, WIDTH, HEADS, activation=tn.gelu)
        for layer in self.encoder.layers:  # projections with biases, as in C
            layer.attention = nn.MultiHeadAttention(WIDTH, HEADS, bias=True)
        self.scores = nn.Linear(WIDTH, BYTES)

    def forward(self, ids):
        return self.scores(self.encoder(self.bytes(ids) + self.positions(tn.arange(CONTEXT)), is_causal=True))


def windows(path):
    """Inputs and targets: all pieces of a text, as C's loader cuts it."""
    text = open(path, "rb").read()
    count = (len(text) - 1) // CONTEXT
    pieces = [memoryview(text)[first : first + count * CONTEXT].cast("B", [count, CONTEXT]) for first in (0, 1)]
    return [tn.astype(tn.array(piece), tn.int32) for piece in pieces]


def train(path, steps):
    model = Transformer()
    step = nn.TrainStep(model, optim.AdamW(1e-3), lambda net, x, y: nn.losses.cross_entropy(net(x), y, reduction="mean"), max_norm=1)
    batches, done, last = data.Batches(windows(path), BATCH, drop_last=True), 0, 0.0
    begin = time.perf_counter()
    while done < steps:
        for x, y in batches:
            last = float(step(x, y))
            done += 1
            if done == steps:
                break
    return time.perf_counter() - begin, last


if __name__ == "__main__":
    seconds, loss = train(sys.argv[1], int(sys.argv[2]))
    print(json.dumps({"event": "trained", "seconds": seconds, "loss": loss}))

# SPDX-License-Identifier: MIT
"""Networks and optimisers of PyTorch whose results test_networks.py has, as frozen values in frozen.json:

    PYTHON-WITH-TORCH tests/python/networks/frozen.py >tests/python/networks/frozen.json

Both sides make parameters and inputs by numbers(), so that only results are frozen.
"""

import json
import math


def numbers(shape, start, scale=0.5):
    """The same numbers everywhere: sines of the positions."""
    return [scale * math.sin(1.7 * (i + start)) for i in range(math.prod(shape))]


# name: (class of PyTorch, its arguments, shape of the input)
LAYERS = {
    "lstm": ("LSTM", dict(input_size=3, hidden_size=4, num_layers=2, bidirectional=True, batch_first=True), (2, 5, 3)),
    "lstm, projected": ("LSTM", dict(input_size=3, hidden_size=4, proj_size=2, num_layers=2, bidirectional=True, batch_first=True), (2, 5, 3)),
    "gru": ("GRU", dict(input_size=3, hidden_size=4, num_layers=2, batch_first=True), (2, 5, 3)),
    "rnn": ("RNN", dict(input_size=3, hidden_size=4, bidirectional=True, batch_first=True, nonlinearity="relu"), (2, 5, 3)),
    "conv": ("Conv2d", dict(in_channels=4, out_channels=6, kernel_size=3, stride=2, padding=1, groups=2), (2, 4, 7, 6)),
    "transpose": ("ConvTranspose1d", dict(in_channels=4, out_channels=2, kernel_size=3, stride=2, output_padding=1), (2, 4, 5)),
    "encoder": ("TransformerEncoderLayer", dict(d_model=8, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True, norm_first=True), (2, 5, 8)),
    "encoder, norms behind": ("TransformerEncoderLayer", dict(d_model=8, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True), (2, 5, 8)),
    "batch norm": ("BatchNorm1d", dict(num_features=4), (6, 4)),
    "lstm, a step": ("LSTMCell", dict(input_size=3, hidden_size=2), (2, 3)), "gru, a step": ("GRUCell", dict(input_size=3, hidden_size=2), (2, 3)),
    "rnn, a step": ("RNNCell", dict(input_size=3, hidden_size=2, nonlinearity="relu"), (2, 3)),
    "shuffled": ("PixelShuffle", dict(upscale_factor=2), (1, 4, 2, 3)), "unshuffled": ("PixelUnshuffle", dict(downscale_factor=2), (1, 1, 4, 6)),
    "channels": ("ChannelShuffle", dict(groups=2), (1, 4, 2, 3)), "responses": ("LocalResponseNorm", dict(size=3, alpha=0.5), (1, 4, 2, 3)),
    "windows": ("Unfold", dict(kernel_size=2, stride=(1, 2), padding=1), (1, 2, 3, 4)),
    "folded": ("Fold", dict(output_size=(3, 4), kernel_size=2, stride=(1, 2)), (1, 8, 4)), "norms": ("LPPool2d", dict(norm_type=3, kernel_size=2), (1, 2, 3, 4)),
    "zeros": ("ZeroPad2d", dict(padding=(1, 2, 0, 1)), (1, 1, 3, 4)), "a border": ("ConstantPad1d", dict(padding=(1, 2), value=2.5), (1, 2, 3)),
    "mirrored": ("ReflectionPad2d", dict(padding=(1, 2, 0, 1)), (1, 1, 3, 4)), "repeated": ("ReplicationPad2d", dict(padding=(1, 2, 0, 1)), (1, 1, 3, 4)),
    "circular": ("CircularPad2d", dict(padding=(1, 2, 0, 1)), (1, 1, 3, 4)), "softmax of channels": ("Softmax2d", {}, (1, 3, 2, 2)),
}  # fmt: skip

# name: (class of PyTorch, its arguments)
OPTIMISERS = {
    "SGD": ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "SGD, dampening": ("SGD", dict(lr=0.1, momentum=0.8, dampening=0.3)),
    "Adam": ("Adam", dict(lr=0.01, weight_decay=0.02)), "AdamW": ("AdamW", dict(lr=0.01, weight_decay=0.1)),
    "AMSGrad": ("Adam", dict(lr=0.01, amsgrad=True)), "Adamax": ("Adamax", dict(lr=0.01)), "Adagrad": ("Adagrad", dict(lr=0.1, lr_decay=0.1)),
    "AdaDelta": ("Adadelta", dict(lr=1.0, rho=0.8)), "RMSprop": ("RMSprop", dict(lr=0.01)),
    "RMSprop, momentum": ("RMSprop", dict(lr=0.01, momentum=0.9)), "RMSprop, centered": ("RMSprop", dict(lr=0.01, momentum=0.9, centered=True)),
    "Adafactor": ("Adafactor", dict(lr=0.1)),
}  # fmt: skip
SHAPES = [(3, 4), (4, 3)]
STEPS = 5


def main():
    import torch

    def tensor(shape, start, scale=0.5):
        return torch.tensor(numbers(shape, start, scale), dtype=torch.float64).reshape(shape)

    def layer(name):
        kind, arguments, shape = LAYERS[name]
        module = getattr(torch.nn, kind)(**arguments).double()
        with torch.no_grad():
            for start, p in enumerate(module.parameters()):
                p.copy_(tensor(p.shape, 10 * start))
        x = tensor(shape, 3, 1.0).requires_grad_()
        y = module(x)
        y = y[0] if isinstance(y, tuple) else y
        (y * y).sum().backward()
        rows = [("y", y), ("x", x.grad), *((f"parameter {i}", p.grad) for i, p in enumerate(module.parameters()))]
        rows += [(key, value.double()) for key, value in module.named_buffers() if value.ndim]
        return {key: value.flatten().tolist() for key, value in rows}

    def optimiser(name):
        kind, arguments = OPTIMISERS[name]
        p = [tensor(shape, 5 * i).requires_grad_() for i, shape in enumerate(SHAPES)]
        steps = getattr(torch.optim, kind)(p, **arguments)
        for _ in range(STEPS):
            steps.zero_grad()
            ((p[0] @ p[1] - 1) ** 2).sum().backward()
            steps.step()
        return [value.flatten().tolist() for value in p]

    print(json.dumps({"layers": {n: layer(n) for n in LAYERS}, "optimisers": {n: optimiser(n) for n in OPTIMISERS}}, indent=0))


if __name__ == "__main__":
    main()

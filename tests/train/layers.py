#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes layers.inc.h: what PyTorch makes of the layers in layers.c. usage: layers.py > layers.inc.h (Python with PyTorch)"""
import math

import torch
from torch import nn

torch.set_default_dtype(torch.float64)


def filled(shape, k, scale=1.0):
    count = math.prod(shape)
    return torch.tensor([scale * 0.4 * math.sin(0.7 * i + k) for i in range(count)], dtype=torch.float32).double().reshape(shape)


def last_to_first(x):
    return x.movedim(-1, 1) if x.dim() > 2 else x


def first_to_last(x):
    return x.movedim(1, -1) if x.dim() > 2 else x


def checksum(x):
    flat = x.detach().reshape(-1)
    return sum(float(v) * math.sin(1.0 + i) for i, v in enumerate(flat))


def row(name, shape, make, transposes=False, channels=True):
    """Numbers of the result, and of derivatives of its squares by x and by parameters, which have channels last."""
    layer = make()
    slots = [p for _, p in layer.named_parameters()] if isinstance(layer, nn.Module) else []
    turned = []
    with torch.no_grad():
        for k, p in enumerate(slots):
            if p.dim() > 2 and channels:  # filters: channels last
                mine = filled([p.shape[0], *p.shape[2:], p.shape[1]], k)
                p.copy_(mine.movedim(-1, 1))
            else:
                p.copy_(filled(p.shape, k))
    x = filled(shape, 9).requires_grad_()
    y = layer(last_to_first(x)) if channels else layer(x)
    y = y[0] if isinstance(y, tuple) else y
    y = first_to_last(y) if channels else y
    grads = torch.autograd.grad((y * y).sum(), [x, *slots])
    for k, g in enumerate(grads[1:]):
        turned.append((k + 1) * checksum(first_to_last(g) if channels else g))
    print(f'    {{"{name}", {checksum(y):.9g}, {checksum(grads[0]):.9g}, {sum(turned):.9g}}},')


print('// SPDX-License-Identifier: MIT')
print('// Written by layers.py: PyTorch of f64. Result, derivatives by x, by parameters.')
row('conv1d', [2, 7, 3], lambda: nn.Conv1d(3, 4, 3, stride=2, padding=1))
row('conv1d of groups', [2, 9, 4], lambda: nn.Conv1d(4, 6, 3, dilation=2, groups=2, bias=False))
row('conv2d', [2, 5, 6, 2], lambda: nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 0)))
row('conv3d', [1, 4, 3, 4, 2], lambda: nn.Conv3d(2, 2, 2))
row('transpose of conv1d', [2, 5, 3], lambda: nn.ConvTranspose1d(3, 4, 3, stride=2, padding=1, output_padding=1))
row('transpose of conv2d', [1, 3, 4, 4], lambda: nn.ConvTranspose2d(4, 2, 3, stride=2, groups=2))
row('transpose of conv3d', [1, 2, 3, 2, 2], lambda: nn.ConvTranspose3d(2, 3, 2, stride=2))
row('batch norm', [4, 3, 3, 2], lambda: nn.BatchNorm2d(2))
row('batch norm of vectors', [6, 3], lambda: nn.BatchNorm1d(3))
row('instance norm', [2, 5, 3], lambda: nn.InstanceNorm1d(3, affine=True))
row('group norm', [2, 3, 3, 4], lambda: nn.GroupNorm(2, 4))
row('layer norm', [2, 3, 5], lambda: nn.LayerNorm(5), channels=False)
row('max pool', [1, 7, 6, 2], lambda: nn.MaxPool2d(3, 2, 1))
row('max pool of vectors', [2, 8, 3], lambda: nn.MaxPool1d(2))
row('average pool', [1, 7, 6, 2], lambda: nn.AvgPool2d(3, 2, 1))
row('average pool of volumes', [1, 4, 4, 2, 2], lambda: nn.AvgPool3d(2))
row('adaptive average pool', [1, 7, 5, 2], lambda: nn.AdaptiveAvgPool2d(3))
row('adaptive max pool', [1, 7, 5, 2], lambda: nn.AdaptiveMaxPool2d(3))
row('global average pool', [2, 4, 5, 3], lambda: lambda x: x.mean((2, 3)))
row('global max pool', [2, 4, 5, 3], lambda: lambda x: x.amax((2, 3)))
row('lstm', [2, 4, 3], lambda: nn.LSTM(3, 2, batch_first=True), channels=False)
row('gru', [2, 4, 3], lambda: nn.GRU(3, 4, batch_first=True), channels=False)
row('rnn', [2, 4, 3], lambda: nn.RNN(3, 4, batch_first=True), channels=False)
row('linear', [2, 4, 3], lambda: nn.Linear(3, 5), channels=False)

# SPDX-License-Identifier: MIT
"""Cases of golden.py for pack nn: PyTorch's values (nn_values.py), and what follows from random words."""
import nn_values
import numpy as np
from golden_operators import threefry

# Sums of some ten products, and functions of them.
NEAR = 64


def numbers(i, shape):
    """Operand i of a case: eighths between -2.5 and 2.5, which every float dtype holds."""
    at = np.arange(int(np.prod(shape, dtype=int)))
    return ((at * 7919 + at * at * (31 + i) + 17 * i) % 41 - 20).reshape(shape) / 8


def array(i, given, dtype):
    if given is None:
        return None
    x = numbers(i, given) if isinstance(given, tuple) else np.array(given)
    return x.astype(dtype) if x.dtype.kind == 'f' else x


def words(seed, shape):
    key = np.array([seed & 0xffffffff, seed >> 32 & 0xffffffff], 'u4')
    return threefry(key, int(np.prod(shape))).reshape(shape)


def chance(add):
    """PyTorch's formulas with the random words of a seed."""
    seed, p = 2**40 + 3, 0.375
    limit = -1.7580993408473766
    a = ((1 - p) * (1 + p * limit * limit)) ** -0.5
    for name, shape, axis in [('dropout1d', (3, 2, 4), -1), ('dropout2d', (2, 5, 2, 3), 1), ('dropout3d', (2, 2, 1, 3, 4), 4),
                              ('alpha_dropout', (3, 5), None), ('feature_alpha_dropout', (3, 4, 2), 1)]:
        x = numbers(0, shape).astype('f4')
        of_channels = [n if i in (0, axis % x.ndim) else 1 for i, n in enumerate(shape)] if axis else shape
        kept = words(seed, of_channels) >= int(p * 2**32)
        y = (np.where(kept, x, limit) * a - a * limit * p).astype('f4') if 'alpha' in name else np.where(kept, x / (1 - p), 0).astype('f4')
        more = {'axis': axis} if axis else {}
        add('nn.' + name, [x], y, NEAR, p=p, seed=seed, **more)
        add('nn.' + name, [x], x, training=False, **more)
        add('nn.' + name, [x], x * 0, p=1, **more)
    x = numbers(0, (4, 6)).astype('f4')
    u = ((words(seed, x.shape) >> 9) + 0.5) / 2**23
    add('nn.rrelu', [x], np.where(x >= 0, x, (0.25 + u * 0.5) * x).astype('f4'), NEAR, lower=0.25, upper=0.75, training=True, seed=seed)
    for axis, tau in ((1, 1), (0, 0.5)):
        z = (x - np.log(-np.log(u))) / tau
        e = np.exp(z - z.max(axis, keepdims=True))
        add('nn.gumbel_softmax', [x], (e / e.sum(axis, keepdims=True)).astype('f4'), 1 << 9, tau=tau, axis=axis, seed=seed)
        add('nn.gumbel_softmax', [x], (z == z.max(axis, keepdims=True)).astype('f4'), NEAR, tau=tau, axis=axis, seed=seed, hard=True)


def make(add):
    chance(add)
    for k, (name, inputs, attrs, results) in enumerate(nn_values.CASES):
        for dtype in ('f4', 'f8') if k % 4 == 0 else ('f4',):
            add('nn.' + name, [array(i, x, dtype) for i, x in enumerate(inputs)],
                tuple(np.array(values, 'i8' if values and isinstance(values[0], int) else dtype).reshape(shape) for shape, values in results),
                NEAR if dtype == 'f4' else 1 << 12, **attrs)

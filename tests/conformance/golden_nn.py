# SPDX-License-Identifier: MIT
"""Cases of golden.py for pack nn: PyTorch's values (nn_values.py)."""
import nn_values
import numpy as np

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


def make(add):
    for k, (name, inputs, attrs, results) in enumerate(nn_values.CASES):
        for dtype in ('f4', 'f8') if k % 4 == 0 else ('f4',):
            add('nn.' + name, [array(i, x, dtype) for i, x in enumerate(inputs)],
                tuple(np.array(values, dtype).reshape(shape) for shape, values in results),
                NEAR if dtype == 'f4' else 1 << 12, **attrs)

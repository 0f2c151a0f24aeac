# SPDX-License-Identifier: MIT
"""Cases of golden.py for the groupwise formats of pack quant: MLX's values (groupwise_values.py)."""
import groupwise_values
import numpy as np
from golden_numbers import EVERY_BIT

# Sums of 64 products, beside those of MLX in f32 in another order.
NEAR = 4096
# mode, bits, group, dtype of w, whether elements are equal in each bit: MLX rounds those of f16 and bf16 twice
MODES = {'mxfp4': (4, 32), 'mxfp8': (8, 32), 'nvfp4': (4, 16)}
FORMATS = ([('affine', bits, group, 'f4', True) for bits in (2, 3, 4, 5, 6, 8) for group in (32, 64, 128)] +
           [('affine', bits, 64, dtype, False) for bits in (3, 4) for dtype in ('f2', 'bf16')] +
           [(mode, *MODES[mode], 'f4', True) for mode in MODES])


def numbers(i, shape):
    """Operand i of a case: sixteenths between -4 and 4, in no order."""
    at = np.arange(int(np.prod(shape, dtype=int)))
    return ((at * 7919 + at * at * (31 + i) + 17 * i) % 127 - 63).reshape(shape) / 16


def floats(x, dtype):
    """bf16 is not among NumPy's dtypes."""
    return np.array(x, 'f4' if dtype == 'bf16' else dtype)


def codes(add):
    for key, (words, scales, *rest) in groupwise_values.CODES.items():
        mode, bits, group, dtype, is_exact = key
        if dtype == 'bf16':
            continue
        attrs = {'mode': mode, 'bits': bits, 'group': group}
        w = numbers(0, (1, 2 * group if group < 128 else group)).astype(dtype)
        coded = [np.array(words, 'u4'), np.array(scales, 'u1' if mode in MODES else dtype)]
        coded += [floats(rest[0], dtype)] if len(rest) > 1 else []
        add('quant.groupwise_quantize', [w], tuple(coded), EVERY_BIT, **attrs)
        add('quant.groupwise_dequantize', coded, floats(rest[-1], dtype), EVERY_BIT if is_exact else 2, **attrs,
            **({'dtype': 'f32'} if mode in MODES else {}))


def make(add):
    codes(add)
    for (x, w, indices, attrs), (coded, shape, results) in zip(products(), groupwise_values.PRODUCTS):
        coded = [np.array(c, d).reshape(*w.shape[:-1], -1)
                 for c, d in zip(coded, ('u4', 'u1' if attrs['mode'] in MODES else 'f4', 'f4'))]
        result = np.array(results[0], 'f4').reshape(shape)
        if indices == (None, None):
            add('quant.groupwise_matmul', [x, *coded], result, NEAR, **attrs, exact=True)
            continue
        ids = [None if i is None else np.array(i, 'u4') for i in indices]
        add('quant.groupwise_gather_matmul', [x, *coded, *ids], result, NEAR, **attrs, exact=True)


def products():
    """x, floats that become w, the indices of both sides, attributes."""
    cases = []
    for mode, bits, group in (('affine', 4, 64), ('affine', 8, 32), ('affine', 3, 32), ('mxfp4', 4, 32), ('mxfp8', 8, 32), ('nvfp4', 4, 16)):
        for transpose in (True, False):
            w = numbers(1, (5, 64)).astype('f4')
            x = numbers(2, (2, 3, 64 if transpose else 5)).astype('f4')
            cases.append((x, w, (None, None), {'mode': mode, 'bits': bits, 'group': group, 'transpose': transpose}))
    w = numbers(1, (3, 5, 64)).astype('f4')
    # Of w three matrices, which indices choose.
    for transpose in (True, False):
        x = numbers(2, (2, 2, 64 if transpose else 5)).astype('f4')
        attrs = {'mode': 'affine', 'bits': 4, 'group': 64, 'transpose': transpose}
        cases.append((x, w, ([[0, 1, 1], [1, 0, 0]], [[2, 0, 1], [1, 1, 2]]), attrs))
        cases.append((x, w, (None, [2, 0]), attrs))
    return cases

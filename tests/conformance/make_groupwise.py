#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes groupwise_values.py: what MLX's build for processors gives of groupwise formats. Run by hand, with PyPI's mlx[cpu]
installed: make_groupwise.py > groupwise_values.py"""
import mlx.core as mx
import numpy as np
from golden_groupwise import FORMATS, MODES, numbers, products

DTYPES = {'f4': mx.float32, 'f2': mx.float16, 'bf16': mx.bfloat16}


def listed(x):
    """Words and bytes as they are, floats as texts that give the same f32."""
    a = np.array(x.astype(mx.float32) if x.dtype in DTYPES.values() else x)
    return a.tolist() if a.dtype.kind != 'f' else [[float(str(np.float32(v))) for v in row] for row in a.reshape(-1, a.shape[-1])]


def main():
    print('# SPDX-License-Identifier: MIT')
    print(f'"""What quantised formats of MLX {mx.__version__} give; printed by make_groupwise.py. CODES: of a format its words,')
    print('scales, biases (or none) and elements. PRODUCTS: of golden_groupwise.products() the result and gradients."""')
    print('CODES = {')
    for key in FORMATS:
        mode, bits, group, dtype, _ = key
        w = mx.array(numbers(0, (1, 2 * group if group < 128 else group)).astype('f4')).astype(DTYPES[dtype])
        coded = mx.quantize(w, group_size=group, bits=bits, mode=mode)
        values = mx.dequantize(*coded, group_size=group, bits=bits, mode=mode, dtype=mx.float32 if mode in MODES else None)
        print(f'    {key}: {tuple(listed(x) for x in (*coded, values))},')
    print('}')
    print('PRODUCTS = [')
    for x, w, dims, attrs in products():
        key = {'group_size': attrs['group'], 'bits': attrs['bits'], 'mode': attrs['mode']}
        x, coded = mx.array(x), mx.quantize(mx.array(w), **key)
        lhs, rhs = (None if i is None else mx.array(i, mx.uint32) for i in dims)

        def f(x, *rest):
            if lhs is None and rhs is None:
                return mx.quantized_matmul(x, coded[0], *rest, transpose=attrs['transpose'], **key)
            return mx.gather_qmm(x, coded[0], *rest, lhs_indices=lhs, rhs_indices=rhs, transpose=attrs['transpose'], **key)
        y = f(x, *coded[1:])
        # MLX has no gradient of scales of chosen matrices that are not transposed.
        has_scales = attrs['mode'] == 'affine' and (attrs['transpose'] or dims == (None, None))
        wanted = list(range(len(coded))) if has_scales else [0]
        gradients = mx.grad(lambda *a: (f(*a) * mx.array(numbers(3, y.shape).astype('f4'))).sum(), argnums=wanted)(x, *coded[1:])
        gradients = gradients if len(wanted) > 1 else [gradients]
        print(f'    ({tuple(listed(a) for a in coded)}, {y.shape}, {[listed(a) for a in (y, *gradients)]}),')
    print(']')


main()

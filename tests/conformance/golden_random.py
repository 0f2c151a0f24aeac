# SPDX-License-Identifier: MIT
"""Cases of golden.py for pack random: JAX's and MLX's numbers (random_values.py)."""
import golden_numbers
import numpy as np
import random_values

# Functions of uniform numbers: 1e-6, and what the functions of both sides are off by.
NEAR = 24


def make(add):
    for name, key, inputs, attrs, dtype, values in random_values.CASES:
        want = np.array(values, dtype)
        if dtype.startswith('float'):
            want = want.reshape([*attrs['shape'], *([3] if name == 'multivariate_normal' else [])])
        if name == 'split':
            want = want.reshape(attrs['num'], 2)
        if name in ('categorical', 'choice'):
            want = want.astype('i8')
        given = [np.array(x, 'f4') for x in inputs]
        if name == 'choice' and given:
            given = [None] + given  # p, of the integers below n
        if name == 'fold_in':
            given = [np.array(attrs['data'])]
            attrs = {}
        exact = name == 'uniform' and key == [0, 7]  # all other exact results are integers
        roundings = golden_numbers.EVERY_BIT if exact else NEAR
        add('random.' + name, [np.array(key, 'u4')] + given, want, roundings, **attrs)

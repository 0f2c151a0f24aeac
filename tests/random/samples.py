# SPDX-License-Identifier: MIT
"""Operators of pack random, and base's older ones. What is a function of words of Threefry is computed; of
distributions by rejection a phrase tells whether numbers are within their bounds, and equal for equal keys."""
import math

import numpy as np
from draw import given
from entries import entry, phrase, wide_float
from golden_operators import threefry
from rules import DTYPES, erfinv

KEY = np.dtype('u4')


def block(key, a, b):
    """Both words of Threefry-2x32 of 20 rounds."""
    with np.errstate(over='ignore'):
        key = key.astype('u4')
        keys = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
        a, b = a.astype('u4') + keys[0], b.astype('u4') + keys[1]
        for i in range(20):
            turn = np.uint32(((13, 15, 26, 6), (17, 29, 16, 24))[i // 4 % 2][i % 4])
            a = a + b
            b = (b << turn | b >> np.uint32(32 - turn)) ^ a
            if i % 4 == 3:
                j = i // 4 + 1
                a, b = a + keys[j % 3], b + keys[(j + 1) % 3] + np.uint32(j)
        return a, b


def words(key, count, layout='counters'):
    n = np.arange(count, dtype='u4')
    if layout == 'counters':
        a, b = block(key, np.zeros(count, 'u4'), n)
        return a ^ b
    half = count - count // 2
    a, b = block(key, n[:half], np.concatenate([n[half:], np.zeros(2 * half - count, 'u4')]))
    return np.concatenate([a, b])[:count]


def bits(key, shape, layout='counters'):
    return words(key, math.prod(shape), layout).reshape(shape)


def numbers(key, shape, dtype='f32', layout='counters'):
    """In [0, 1)."""
    count = math.prod(shape)
    if dtype == 'f64':
        n = np.arange(count, dtype='u4')
        x, y = block(key, 0 * n, n) if layout == 'counters' else block(key, n, n + np.uint32(count))
        out = (x.astype('f8') * 2.0**20 + (y >> np.uint32(12)).astype('f8')) * 2.0**-52
    elif layout == 'counters':
        out = (words(key, count) >> np.uint32(9)).astype('f4') * np.float32(2.0**-23)
    else:
        out = np.minimum(words(key, count, layout).astype('f4') * np.float32(2.0**-32), np.nextafter(np.float32(1), np.float32(0)))
    return out.reshape(shape)


def normals(key, shape, dtype='f32', layout='counters'):
    u = numbers(key, shape, dtype, layout)
    low = -np.nextafter(u.dtype.type(1), u.dtype.type(0))
    return (erfinv(np.maximum(u * u.dtype.type(2) + low, low).astype('f8')) * np.sqrt(2)).astype(u.dtype)


def of_dtype(*dtypes, dtype='f32', **attrs):
    return np.dtype(DTYPES[dtype])


def drawn(*more, layouts=('counters', 'halves')):
    """A key, arrays of parameters in styles, attributes."""
    def draw(d):
        shape, dtype = [d.number(1, 5) for _ in range(d.number(0, 2))], d.one(['f32', 'f32', 'f64'])
        operands = [d.of(KEY, (2,), 'key')]
        for style in more:
            operands.append(d.make(np.dtype(DTYPES[dtype]), shape[1:] if d.chance(0.5) else (), style))
        return operands, given(shape=shape, dtype=dtype, layout=d.one([None, *layouts]))
    return draw


def bits_of(d):
    operands, attrs = drawn()(d)
    return operands, given(shape=attrs['shape'], layout=attrs.get('layout'))


FLOATS = {'dtype': of_dtype, 'derived': True}
entry('random.bits', bits, bits_of)
entry('random.random', numbers, drawn(), **FLOATS)
entry('random.standard_normal', normals, drawn(), ulps=32, unit=True, **FLOATS)
entry('random.key', lambda seed: np.array([seed >> 32, seed & 0xffffffff], 'u4'), lambda d: ([], {'seed': d.number(0, 2**40)}))
entry('random.fold_in', lambda key, data: np.array(block(key, np.array([0]), np.array([int(data)]))).reshape(2), lambda d: (
    [d.of(KEY, (2,), 'key'), d.make(np.dtype('i4'), (), 'positive')], {}))
entry('random.split', lambda key, num: np.stack(block(key, np.zeros(num, 'u4'), np.arange(num)), -1), lambda d: (
    [d.of(KEY, (2,), 'key')], {'num': d.number(1, 4)}))


def placed(of, key, given_, shape, dtype='f32', layout='counters'):
    loc, scale = given_
    return of(numbers(key, shape, dtype, layout)) * scale + loc


def least(x):
    return x.dtype.type(np.finfo(x.dtype).tiny)


def gumbel(u):
    u = np.maximum(u, least(u)).astype('g')
    return -np.log(-np.log(u))


def laplace(u):
    low = -np.nextafter(u.dtype.type(1), u.dtype.type(0))
    v = np.maximum(u * u.dtype.type(2) + low, low).astype('g')
    return np.sign(v) * np.log1p(-np.abs(v))


def uniform(key, low, high, **attrs):
    return numbers(key, **attrs).astype('g') * (high - low) + low


NEAR = {'dtype': of_dtype, 'ulps': 32, 'unit': True, 'sums': True}
entry('random.uniform', uniform, drawn('any', 'positive'), dtype=of_dtype, ulps=2, unit='norm', sums=True)
entry('random.normal', lambda key, loc, scale, **attrs: normals(key, **attrs).astype('g') * scale + loc, drawn('any', 'positive'), **NEAR)
entry('random.gumbel', lambda key, loc, scale, **attrs: placed(gumbel, key, (loc, scale), **attrs), drawn('any', 'positive'), **NEAR)
entry('random.laplace', lambda key, loc, scale, **attrs: placed(laplace, key, (loc, scale), **attrs), drawn('any', 'positive'), **NEAR)
entry('random.exponential', lambda key, scale, **attrs: -np.log1p(-numbers(key, **attrs).astype('g')) * scale, drawn('positive'), **NEAR)
entry('random.bernoulli', lambda key, p, shape: numbers(key, shape, 'f32') < p, lambda d: (lambda shape: (
    [d.of(KEY, (2,), 'key'), d.make(np.dtype('f4'), shape[1:], 'share')], {'shape': shape}))([d.number(1, 5) for _ in range(d.number(1, 2))]))
entry('random_bits', lambda key, shape: threefry(key.astype('u4'), math.prod(shape)).reshape(shape), lambda d: (
    [d.of(KEY, (2,), 'key')], {'shape': [d.number(1, 5) for _ in range(d.number(0, 2))]}))

# --- by bounds -----------------------------------------------------------------------------


def same(x, *more, **attrs):
    return np.array(x)


def bounded(name, call, holds, *styles):
    """Gives an array as it is where two draws are equal and hold the condition; the key and parameters beside it."""
    def draw(d):
        i = d.pick(lambda x: wide_float(x) and 0 < x.ndim < 4 and x.size > 0)
        dtype = d.values[i].dtype
        operands = [i, d.of(KEY, (2,), 'key')] + [d.make(dtype, s[1], s[0]) if isinstance(s, tuple) else d.make(dtype, (), s)
                                                  for s in styles]
        return operands, {'shape': list(d.values[i].shape), 'dtype': 'f32' if dtype == np.dtype('f4') else 'f64',
                          'count': d.values[i].shape[-1]}
    call = call.replace('SHAPE', 'shape={shape}, dtype={dtype}')
    phrase('bounds_of_' + name, 'random_' + name[4:] if name.startswith('old_') else 'random.' + name,
           f'a{{n}} = {call}; b{{n}} = {call}; where(all(({holds.replace("z", "a{n}")}) & (a{{n}} == b{{n}})), {{0}}, {{0}} - 1000)',
           same, draw, weight=0.5, finite=False)


bounded('gamma', 'random.gamma({1}, {2}, SHAPE)', '(z >= 0) & isfinite(z)', 'positive')
bounded('beta', 'random.beta({1}, {2}, {3}, SHAPE)', '(z >= 0) & (z <= 1)', 'positive', 'positive')
bounded('dirichlet', 'random.dirichlet({1}, {2}, SHAPE)', 'abs(sum(z, axis=[-1], keepdims=true) - 1) < 0.00001', ('positive', (3,)))
bounded('poisson', 'random.poisson({1}, {2}, shape={shape})', '(z >= 0) & (z < 60)', 'positive')
bounded('truncated_normal', 'random.truncated_normal({1}, 0 - {2}, {3}, SHAPE)', '(z >= 0 - {2}) & (z <= {3})', 'positive', 'positive')
bounded('randint', 'random.randint({1}, shape={shape}, low=-2, high=7)', '(z >= -2) & (z < 7)')
bounded('categorical', 'random.categorical({1}, {2}, shape={shape})', '(z >= 0) & (z < 3)', ('any', (3,)))
bounded('choice', 'random.choice({1}, n=5, shape={shape})', '(z >= 0) & (z < 5)')
bounded('permutation', 'random.permutation({1}, n={count})', 'sort(z) == arange(stop={count}, dtype=i64)')
bounded('multivariate_normal', 'random.multivariate_normal({1}, {2}, {3}, SHAPE)', 'isfinite(z)', ('any', (2,)), ('definite', (2, 2)))
bounded('old_uniform', 'random_uniform({1}, SHAPE)', '(z >= 0) & (z < 1)')
bounded('old_normal', 'random_normal({1}, SHAPE)', 'abs(z) < 9')

# SPDX-License-Identifier: MIT
"""Operators of pack base that the other files leave out: special functions, numbers, arrays that are made,
windows, places, borders."""
import math

import numpy as np
from draw import Number, given, is_complex, is_int, is_number, is_real
from entries import entry, filled, phrase, require, unary, vector, wide_float, within
from operators import operator
from rules import DTYPES, like_first, vectorised

# --- special functions ---------------------------------------------------------------------

BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]


def raised(x, step, asymptotic):
    """A function of large numbers, and what each step up to those adds."""
    x, total = np.array(x if x.dtype == np.longdouble else x.astype('g')), 0
    for _ in range(24):
        small = x < 24
        total = total + np.where(small, step(x), 0)
        x = np.where(small, x + 1, x)
    return asymptotic(x) + total


def digamma(x):
    return raised(x, lambda x: -1 / x, lambda x: np.log(x) - 1 / (2 * x) - sum(
        np.longdouble(b) / (2 * k) / x ** (2 * k) for k, b in enumerate(BERNOULLI, 1)))


def trigamma(x):
    return raised(x, lambda x: 1 / (x * x), lambda x: 1 / x + 1 / (2 * x * x) + sum(
        np.longdouble(b) / x ** (2 * k + 1) for k, b in enumerate(BERNOULLI, 1)))


def bessel(order):
    """exp(-|x|) I(x): the series, whose terms are of one sign; of large numbers the asymptotic one."""
    def f(x):
        x = np.asarray(x, 'g')
        near, far = np.where(np.abs(x) < 25, x, 0), np.clip(np.abs(x), 25, np.longdouble('1e4900'))
        term = (near / 2) ** order
        total, tail, last = term, 1, np.longdouble(1)
        for k in range(1, 60):
            term = term * (near / 2) ** 2 / (k * (k + order))
            total = total + term
        for k in range(1, 22):
            last = -last * (4 * order**2 - (2 * k - 1)**2) / (8 * k * far)
            tail = tail + last
        return np.where(np.abs(x) < 25, total * np.exp(-np.abs(near)), np.sign(x)**order * tail / np.sqrt(2 * np.pi * far))
    return f


entry('digamma trigamma', {'digamma': digamma, 'trigamma': trigamma}, unary(fits=within(0.2, 60)), ulps=32, unit=True,
      dtype=like_first)
entry('gamma', vectorised(math.gamma), unary(fits=within(0.2, 12)), ulps=16, double=True, dtype=like_first)
entry('i0e i1e', {'i0e': bessel(0), 'i1e': bessel(1)}, unary(fits=within(-99, 99)), ulps=16, unit=True, dtype=like_first)
entry('positive', lambda x: np.array(x), unary('iufc'), finite=False)
entry('bitwise_count', np.vectorize(lambda v: bin(abs(int(v))).count('1'), otypes=['u1']), unary('iu'), finite=False)
entry('modf', lambda x: np.modf(x), unary(fits=wide_float), results=2, finite=False, derived=False)
entry('frexp', np.frexp, unary(fits=wide_float), results=2, dtype=None, derived=False)
entry('ldexp', lambda x, i: np.ldexp(x, np.clip(i.astype('f8'), -4000, 4000).astype('i4')), lambda d: (lambda i: ([i, d.like(
    i, lambda x: is_int(x) and x.dtype.itemsize < 8 and bool(np.all(np.abs(x.astype('f8')) < 9)))], {}))(
        d.pick(wide_float)), dtype=lambda x, i: np.dtype(x))


def two_alike(d):
    i = d.pick(lambda x: is_number(x) or is_complex(x))
    j = i if d.chance(0.3) else d.like(i, lambda x: x.dtype == d.values[i].dtype)
    return [i, j], given(equal_nan=True if d.chance(0.4) else None, rtol=d.one([None, 0.03]), atol=d.one([None, 0.26]))


def close(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.isclose(x, y, rtol, atol, equal_nan)


entry('isclose allclose', {'isclose': close, 'allclose': lambda x, y, **attrs: np.asarray(np.all(close(x, y, **attrs)))},
      two_alike, finite=False)
entry('hadamard_transform', lambda x: hadamard(x), unary(
    fits=lambda x: wide_float(x) and x.ndim > 0 and x.shape[-1] in (1, 2, 4)), sums=True, ulps=2, unit='norm')


def hadamard(x):
    h = np.ones((1, 1), x.dtype)
    while len(h) < x.shape[-1]:
        h = np.block([[h, h], [h, -h]])
    return x @ h / np.sqrt(x.dtype.type(len(h)))


@operator('maximum', 'fmin', 'fmax', 'arctan2', 'logaddexp', 'heaviside', 'hypot', 'where', weight=3)
def pair_with_number(d):
    name = d.one(['maximum', 'fmin', 'fmax', 'arctan2', 'logaddexp', 'heaviside', 'hypot', 'where'])
    i = d.pick(wide_float)
    if name == 'where':
        return name, [d.of(np.dtype('?'), d.values[i].shape), i, Number(d.one([2, 1.5]))], {}
    return name, [i, Number(d.one([2, 3, 1.5]))], {}


# --- making --------------------------------------------------------------------------------


def made(function, dtypes=('f32', 'f64', 'i32'), **numbers):
    """Without inputs: attributes are numbers between bounds."""
    def draw(d):
        attrs = {k: v(d) if callable(v) else d.number(*v) for k, v in numbers.items()}
        return [], {**attrs, **({'dtype': d.one(list(dtypes))} if dtypes else {})}
    return (lambda *arrays, dtype='f64', **attrs: np.asarray(function(*arrays, **attrs)).astype(DTYPES[dtype])), draw


def extents_of(d):
    return [d.number(1, 4) for _ in range(d.number(0, 3))]


for name, function in (('zeros', np.zeros), ('ones', np.ones), ('empty', np.zeros)):
    entry(name, *made(function, shape=extents_of), weight=0.3)
for name in ('hanning', 'hamming', 'blackman', 'bartlett'):
    entry(name, *made(getattr(np, name), ('f32', 'f64'), m=(1, 6)), weight=0.3, ulps=16, unit=True)
entry('kaiser', *made(np.kaiser, ('f32', 'f64'), m=(1, 6), beta=(0, 9)), weight=0.3, ulps=64, unit=True)
entry('tri', *made(lambda n, m, k: np.tri(n, m, k), n=(1, 4), m=(1, 4), k=(-2, 2)), weight=0.3)
entry('indices', *made(lambda dimensions: np.indices(dimensions), ('i32', 'i64', 'f32'), dimensions=lambda d: [
    d.number(1, 3) for _ in range(d.number(1, 3))]), weight=0.3)
entry('logspace', *made(lambda start, stop, num: np.logspace(start, stop, num), ('f32', 'f64'), start=(-2, 0), stop=(1, 2),
                        num=(1, 5)), weight=0.3, ulps=32)
entry('geomspace', *made(lambda start, stop, num: np.geomspace(start, stop, num), ('f32', 'f64'), start=(1, 3), stop=(1, 64),
                         num=(1, 5)), weight=0.3, ulps=32)
entry('diag_indices', lambda n, ndim: np.diag_indices(n, ndim), lambda d: ([], {'n': d.number(1, 4), 'ndim': d.number(1, 3)}),
      weight=0.3)
for name in ('tril_indices', 'triu_indices'):
    entry(name, lambda n, k, m, f=getattr(np, name): f(n, k, m), lambda d: ([], {
        'n': d.number(1, 4), 'k': d.number(-1, 1), 'm': d.number(1, 4)}), weight=0.3)
    entry(name + '_from', lambda x, k, f=getattr(np, name): f(x.shape[0], k, x.shape[1]), unary(
        'iufb', lambda x: x.ndim == 2, k=lambda d: d.number(-1, 1)), weight=0.3, derived=False)
entry('diag_indices_from', lambda x: np.diag_indices(x.shape[0], x.ndim), unary(
    'iufb', lambda x: x.ndim > 1 and len(set(x.shape)) == 1), weight=0.3, derived=False)
entry('full_like', lambda x, value: np.full_like(x, value), unary('iuf', value=lambda d: d.number(0, 3)), weight=0.4)
entry('empty_like', np.zeros_like, unary('iufb'), weight=0.4)

# --- arranging -----------------------------------------------------------------------------


def strided(x, shape, strides, offset=0):
    at = np.asarray(offset)
    for n, s in zip(shape, strides):
        at = at[..., None] + np.arange(n) * s
    return x.reshape(-1)[at]


def draw_strided(d):
    i = d.pick(lambda x: is_real(x) and 3 < x.size < 200)
    size, shape = d.values[i].size, [d.number(1, 3) for _ in range(d.number(1, 3))]
    strides = [d.number(-2, 3) for _ in shape]
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides))
    require(high - low < size)
    return [i], {'shape': shape, 'strides': strides, 'offset': d.number(-low, size - 1 - high)}


entry('as_strided', strided, draw_strided, finite=False)
VIEWS = {'i4': ['u32'], 'u4': ['i32'], 'i8': ['u64'], 'u8': ['i64'], 'u1': ['i8'], 'i1': ['u8'], 'i2': ['u16'], 'b1': ['u8']}


def draw_view(d):
    i = d.pick(lambda x: x.dtype.str[1:] in VIEWS)
    return [i], {'dtype': d.one(VIEWS[d.values[i].dtype.str[1:]])}


entry('view', lambda x, dtype: x.view(DTYPES[dtype]), draw_view, narrow=True, finite=False)
entry('broadcast_arrays', lambda x, y: tuple(np.broadcast_arrays(x, y)), lambda d: (lambda i: ([i, d.like(i)], {}))(d.pick()),
      finite=False)
entry('meshgrid', lambda x, y, indexing, sparse: tuple(np.meshgrid(x, y, indexing=indexing, sparse=sparse)),
      lambda d: ([d.pick(lambda x: x.ndim == 1) for _ in 'ab'], {'indexing': d.one(['xy', 'ij']), 'sparse': d.chance(0.4)}),
      finite=False)
entry('atleast_1d', np.atleast_1d, unary('iufbc'), finite=False)


def draw_unflatten(d):
    i = d.pick(lambda x: 0 < x.ndim < 5 and x.size > 0)
    axis = d.axis(i)
    n = d.values[i].shape[axis]
    k = d.one([k for k in range(1, n + 1) if n % k == 0])
    return [i], {'axis': axis, 'shape': d.one([[k, n // k], [k, -1], [-1, k]])}


def unflatten(x, axis, shape):
    axis %= x.ndim
    rest = x.shape[axis] // max(int(np.prod([n for n in shape if n > 0])), 1)
    return x.reshape(x.shape[:axis] + tuple(rest if n < 0 else n for n in shape) + x.shape[axis + 1:])


entry('unflatten', unflatten, draw_unflatten, finite=False)


def draw_changed(d):
    i = d.pick(lambda x: is_real(x) and 0 < x.ndim < 4 and x.size > 0)
    axis = d.axis(i)
    n = d.values[i].shape[axis]
    if d.name == 'delete':
        return [i], {'indices': [d.number(-n, n - 1) for _ in range(d.number(1, 2))], 'axis': axis}
    at = [d.number(-n, n) for _ in range(d.number(1, 2))]
    shape = [len(at) if k == axis % d.values[i].ndim else m for k, m in enumerate(d.values[i].shape)]
    return [i, d.of(d.values[i].dtype, shape if d.chance(0.7) else ())], {'indices': at, 'axis': axis}


entry('delete', lambda x, indices, axis: np.delete(x, indices, axis), draw_changed, finite=False)
entry('insert', lambda x, v, indices, axis: np.insert(x, indices, v, axis), draw_changed, finite=False)
entry('vander', lambda x, n, increasing=False: np.vander(x, n, increasing), unary(
    'f', lambda x: vector(x) and wide_float(x), n=lambda d: d.number(1, 4), increasing=lambda d: True if d.chance(0.4) else None),
      ulps=3, dtype=like_first)
entry('ediff1d', np.ediff1d, unary('if', lambda x: x.size > 1))

MODES = ['edge', 'reflect', 'symmetric', 'wrap', 'maximum', 'minimum']


def draw_border(d):
    i = d.pick(lambda x: is_number(x) and 0 < x.ndim < 4 and 0 < x.size < 60 and min(x.shape) > 1)
    widths = [[d.number(0, min(2, n - 1)) for n in d.values[i].shape] for _ in 'ab']
    if 'mean' in d.name:
        require(wide_float(d.values[i]))
    mode = d.one(['mean', 'linear_ramp'] if 'mean' in d.name else MODES)
    return [i], {'before': widths[0], 'after': widths[1], 'mode': mode}


def border(x, before, after, mode):
    return np.pad(x, list(zip(before, after)), mode)


phrase('pad_by_mode', 'pad', 'pad({0}, before={before}, after={after}, mode={mode})', border, draw_border)
phrase('pad_by_mean', 'pad', 'pad({0}, before={before}, after={after}, mode={mode})', border, draw_border, sums=True, ulps=2,
       unit='norm')
entry('pad_constant', lambda x, before, after, value: np.pad(x, list(zip(before, after)), constant_values=value), lambda d: (
    lambda i: ([i], {'before': [d.number(0, 2) for _ in d.values[i].shape], 'after': [d.number(0, 1) for _ in d.values[i].shape],
                     'value': d.number(0, 2)}))(d.pick(lambda x: is_number(x) and 0 < x.ndim < 4 and x.size < 60)), finite=False)

# --- places --------------------------------------------------------------------------------


def choose(x, *choices, mode='clip'):
    return np.choose(x % len(choices) if mode == 'wrap' else x, choices, mode='clip')


def draw_choose(d):
    i = d.pick(lambda x: is_int(x) and x.dtype != np.uint64)
    j = d.like(i, is_number)
    k = d.like(i, lambda x: x.dtype == d.values[j].dtype)
    return [i, j, k], given(mode=d.one([None, 'wrap']))


entry('choose', choose, draw_choose, finite=False)


def ravel(i, j, dims, mode='clip', order='C'):
    at = [x.astype('i8') % n if mode == 'wrap' else x.astype('i8') for x, n in zip((i, j), dims)]
    return np.asarray(np.ravel_multi_index(at, dims, 'clip', order))


entry('ravel_multi_index', ravel, lambda d: (lambda i: ([i, d.like(i, lambda x: is_int(x) and x.dtype != np.uint64)], given(
    dims=[d.number(1, 5), d.number(1, 5)], mode=d.one([None, 'wrap']), order=d.one([None, 'F']))))(
        d.pick(lambda x: is_int(x) and x.dtype != np.uint64)))
entry('unravel_index', lambda x, shape, order='C': tuple(np.asarray(i, 'i8') for i in np.unravel_index(x.astype('i8'), shape, order)),
      unary('iu', lambda x: x.dtype != np.uint64 and bool(np.all((x >= 0) & (x < 6))), shape=lambda d: d.one([[2, 3], [6], [3, 1, 2]]),
            order=lambda d: d.one([None, 'F'])))


def bits_axis(d):
    return d.one([None, 0, -1])


entry('packbits', lambda x, axis=None, bitorder='big': np.packbits(x, axis, bitorder), unary(
    'b', lambda x: x.ndim > 0 and x.size > 0, axis=bits_axis, bitorder=lambda d: d.one([None, 'little'])))
entry('unpackbits', lambda x, axis=None, count=None, bitorder='big': np.unpackbits(x, axis, count, bitorder), lambda d: (
    [d.pick(lambda x: x.dtype == np.uint8 and 0 < x.ndim and 0 < x.size < 60)], given(axis=bits_axis(d), count=d.one([None, 5, -3]),
                                                                                    bitorder=d.one([None, 'little']))))
entry('trim_zeros', lambda x, size, trim='fb': (lambda y: (filled(y, size), np.asarray(len(y), 'i8')))(np.trim_zeros(x, trim)), unary(
    'iu', vector, size=lambda d: d.number(1, 8), trim=lambda d: d.one([None, 'f', 'b'])))

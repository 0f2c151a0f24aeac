# SPDX-License-Identifier: MIT
"""Cases of golden.py for what NumPy has beside the array API: what its functions of the same names give.
Where ours leave something to a bound or to an attribute, the case says it as NumPy's."""
import warnings

import numpy as np
from golden_operators import B1, F4, F8, I4, I8, SOME, U1, real, whole

NAN, INF = np.nan, np.inf


def filled(y, size, value=0):
    return np.concatenate([y, np.full(max(size - len(y), 0), value, y.dtype)])[:size]


def numbers(add):
    hard = np.array([0.0, -0.0, 1, -1, 2.5, -2.5, 3, -7.25, INF, -INF, NAN, 1e30, -8, 0.1])
    for d in (F4, F8):
        x = hard.astype(d)
        add('base.cbrt', [x], np.cbrt(x), 4)
        add('base.fmod', [x[:8], x[7::-1].copy()], np.fmod(x[:8], x[7::-1]))
        add('base.fmod', [x, np.array(3, d)], np.fmod(x, d.type(3)))
        add('base.modf', [x], np.modf(x))
        add('base.frexp', [x], np.frexp(x))
        add('base.ldexp', [x, np.array(-3)], np.ldexp(x, -3))
        add('base.isreal', [x], np.isreal(x))
        add('base.i0', [x[:7]], np.i0(x[:7].astype(F8)).astype(d), 16)
    most = {F4: 300, F8: 2200}
    for d, top in most.items():
        i = np.array([-top, -top // 2, -1, 0, 5, top // 2, top], 'i4')
        for start in (1.5, -3e-20, 1e30):
            x = np.full(7, start, d)
            add('base.ldexp', [x, i], np.ldexp(x, i))
    x = np.array([5e-324, 3e-310, 1.7e308, -2.3e-308, 2**-1022])
    add('base.frexp', [x], np.frexp(x))
    add('base.cbrt', [x], np.cbrt(x), 4)
    x = real(50) * 10.0**np.arange(-25, 25)
    add('base.cbrt', [x], np.cbrt(x), 4)
    x = np.array([0, 1, -3, 9, 20, 300, 705, -712.0])
    # mpmath's values.
    add('base.i0', [np.array([0.5, -3, 9, 20, 300, 705, -712.5])], np.array(
        [1.0634833707413236, 4.8807925858650245, 1093.5883545113747, 43558282.559553534, 4.475847367935052e+128,
         2.2620505526554727e+304, 4.068293090664341e+307]), 8)
    for d in (I4, I8, U1, np.dtype('i1'), np.dtype('u8')):
        info = np.iinfo(d)
        x = np.array([0, 1, 12, 18, 100, 7, info.max, info.max - 1, 97, 64, info.min, info.min], d)
        y = np.array([0, 0, 18, 12, 75, 21, 6, info.max, 89, 48, 6, 9], d)
        add('base.gcd', [x[:10], y[:10]], np.gcd(x[:10], y[:10]))
        small = [0, 1, 2, 3, 5, 9] if d.itemsize > 1 else [0, 1, 2, 3]
        add('base.lcm', [x[small], y[small]], np.lcm(x[small], y[small]))
        add('base.bitwise_count', [x], np.array([bin(abs(int(v))).count('1') for v in x], U1))
        y = np.where(y == 0, 5, y).astype(d)
        add('base.fmod', [x, y], np.fmod(x, y))
    a, b = np.array([12586269025, 2**40, -36], 'i8'), np.array([7778742049, 6**15, 24], 'i8')
    add('base.gcd', [a, b], np.gcd(a, b))
    z = np.array([1 + 2j, 3, 0, -1j, complex(0, NAN)])
    add('base.iscomplex', [z], np.iscomplex(z))
    add('base.isreal', [z], np.isreal(z))


def places(add):
    for shape in [(2, 3), (4,), (0, 2), (), (2, 1, 3)]:
        add('base.indices', [], np.indices(shape), dimensions=list(shape))
    add('base.indices', [], np.indices((2, 2), dtype='f4'), dimensions=[2, 2], dtype='f32')
    for n, ndim in [(3, 2), (0, 1), (2, 4)]:
        add('base.diag_indices', [], np.diag_indices(n, ndim), n=n, ndim=ndim)
    add('base.diag_indices_from', [np.ones((3, 3, 3))], np.diag_indices_from(np.ones((3, 3, 3))))
    for n, m in [(3, 3), (2, 5), (5, 2), (0, 3), (1, 1)]:
        for k in (-9, -2, -1, 0, 1, 3, 9):
            for name in ('tril_indices', 'triu_indices'):
                add('base.' + name, [], getattr(np, name)(n, k, m), n=n, k=k, m=m)
                add('base.' + name + '_from', [np.ones((n, m), 'f4')], getattr(np, name)(n, k, m), k=k)
    i, j = np.array([[3, 6], [6, 0]]), np.array([4, 1], 'i4')
    for order in 'CF':
        add('base.ravel_multi_index', [i, j], np.ravel_multi_index((i, j), (7, 6), order=order), dims=[7, 6], order=order)
        add('base.ravel_multi_index', [i * 3 - 4, j * 3], np.ravel_multi_index((i * 3 - 4, j * 3), (7, 6), 'clip', order),
            dims=[7, 6], order=order)
        add('base.ravel_multi_index', [i * 3 - 4, j * 3], np.ravel_multi_index((i * 3 - 4, j * 3), (7, 6), 'wrap', order),
            dims=[7, 6], order=order, mode='wrap')
        add('base.unravel_index', [np.array([[22, 41], [37, 0]])], np.unravel_index([[22, 41], [37, 0]], (7, 2, 3), order),
            shape=[7, 2, 3], order=order)
    for d in SOME:
        c = [whole(d, (2, 3)), whole(d, 3), whole(d, ())]
        x = np.array([[0, 2, 1], [1, 0, 2]])
        add('base.choose', [x, *c], np.choose(x, c))
        for mode in ('clip', 'wrap'):
            add('base.choose', [x * 3 - 2, *c], np.choose(x * 3 - 2, c, mode=mode), mode=mode)
        y = whole(d, (2, 3))
        if d != B1:
            add('base.select', [y > 3, y, y == 0, c[1]], np.select([y > 3, y == 0], [y, c[1]]))
        if d.kind == 'f':
            add('base.select', [y > 3, y, y < -3, -y], np.select([y > 3, y < -3], [y, -y], d.type(-0.5)),
                default_value=-0.5)
    x = whole(I4, 4)
    add('base.select', [x > 0, x], np.select([x > 0], [x], 0.5), default_value=0.5)


def changing(add):
    for d in SOME:
        x = whole(d, (3, 4))
        for at in ([1], [-1, 0, 1], [2, 2, -2], []):
            given = np.array(at, int)
            add('base.delete', [x], np.delete(x, given, 1), indices=at, axis=1)
            add('base.delete', [x], np.delete(x, given), indices=at)
        add('base.delete', [x], np.delete(x, [0, 1, 2], 0), indices=[2, 1, 0], axis=0)
        for at in ([1], [3, 0], [4, 4, 0, -1]):
            add('base.insert', [x, np.array(1, d)], np.insert(x, at, d.type(1), 1), indices=at, axis=1)
            v = whole(d, (3, len(at)))
            add('base.insert', [x, v], np.insert(x, at, v, 1), indices=at, axis=1)
        add('base.insert', [x, x[0].copy()], np.insert(x, [2], x[0], 0), indices=[2], axis=0)
        add('base.insert', [x, x[:2].copy()], np.insert(x, [1], x[:2], 0), indices=[1], axis=0)
        add('base.insert', [x, x[0].copy()], np.insert(x, 5, x[0]), indices=[5])
        for shape in [(2, 3), (7, 5), (0, 2), (12,), ()]:
            add('base.resize', [x], np.resize(x, shape), shape=list(shape))
        add('base.resize', [x[:0]], np.resize(x[:0], (2, 2)), shape=[2, 2])
        add('base.diagflat', [x[:2, :2].copy()], np.diagflat(x[:2, :2], 1), k=1)
        if d.kind == 'f' or d == I4:
            add('base.ediff1d', [x], np.ediff1d(x))
            add('base.ediff1d', [x, x[0].copy(), x[1, :2].copy()], np.ediff1d(x, x[0], x[1, :2]))
    for n in (1, 7, 8, 9, 20):
        for d in (B1, U1):
            x = (whole(d, (3, n)) > 0).astype(d)
            for order in ('big', 'little'):
                for axis in (0, 1):
                    add('base.packbits', [x], np.packbits(x, axis, order), axis=axis, bitorder=order)
                add('base.packbits', [x], np.packbits(x, None, order), bitorder=order)
    x = whole(U1, (3, 2), 0, 255)
    for order in ('big', 'little'):
        for count in (None, 5, -3, 30, 0):
            given = {} if count is None else {'count': count}
            for axis in (0, 1):
                add('base.unpackbits', [x], np.unpackbits(x, axis, count, order), axis=axis, bitorder=order, **given)
            add('base.unpackbits', [x], np.unpackbits(x, None, count, order), bitorder=order, **given)


def sets(add):
    for d in (F8, F4, I4, U1):
        a, b = whole(d, (3, 4)), whole(d, 7)
        for name in ('intersect1d', 'setdiff1d', 'setxor1d'):
            want = getattr(np, name)(a, b)
            for size in (20, 2):
                add('base.' + name, [a, b], (filled(want, size), np.array(len(want))), size=size)
            want = getattr(np, name)(a, b[:0])
            add('base.' + name, [a, b[:0]], (filled(want, 5, 1), np.array(len(want))), size=5, fill_value=1)
    a = np.array([3, NAN, 1, NAN])
    add('base.setdiff1d', [a, np.array([1.0])], (np.array([3, NAN, 0]), np.array(2)), size=3)
    for d in (F8, I4, U1):
        x = np.array([0, 0, 3, 0, 1, 2, 0], d)
        for trim in ('fb', 'f', 'b'):
            for y in (x, x[:2], x[2:3], x[:0]):
                want = np.trim_zeros(y, trim)
                add('base.trim_zeros', [y], (filled(want, 6, 9), np.array(len(want))), size=6, trim=trim, fill_value=9)
    a, b, c = whole(I4, (4, 9), 0, 2), real((4, 9)), whole(U1, (4, 9), 0, 3)
    for keys in ([a], [b, a], [b, c, a], [a, a]):
        add('base.lexsort', keys, np.lexsort(keys))
        add('base.lexsort', keys, np.lexsort(keys, 0), axis=0)
    xp, fp = np.sort(real(7)), real(7)
    x = np.concatenate([real((2, 9)).ravel(), xp, [NAN, INF, -INF, 5, -5]])
    add('base.interp', [x, xp, fp], np.interp(x, xp, fp), 16)
    add('base.interp', [x, xp, fp, np.array(NAN), np.array(9.0)], np.interp(x, xp, fp, NAN, 9), 16)
    add('base.interp', [x, xp, fp, None, np.array(9.0)], np.interp(x, xp, fp, None, 9), 16)
    add('base.interp', [x[:-5], xp[:1], fp[:1]], np.interp(x[:-5], xp[:1], fp[:1]))
    add('base.interp', [x[:-5], fp, xp], np.interp(x[:-5], fp, xp, period=1.5), 64, period=1.5)
    add('base.interp', [np.array([1, 3]), np.array([0, 2, 4]), np.array([5, 7, 1])], np.array([6.0, 4.0]))
    add('base.interp', [np.array(0.5), np.array([0, 1.0]), np.array([5, 7.0])], np.array(6.0))


def samples(add):
    x, y = real((3, 9)), real((2, 9))
    for d in (F8, F4):
        m, n, e = x.astype(d), y.astype(d), 64
        add('base.cov', [m], np.cov(x.astype(d), dtype=F8).astype(d), e)
        add('base.cov', [m, n], np.cov(m, n, dtype=F8).astype(d), e)
        add('base.cov', [m.T.copy()], np.cov(m.T, rowvar=False, dtype=F8).astype(d), e, rowvar=False)
        add('base.cov', [m], np.cov(m, bias=True, dtype=F8).astype(d), e, bias=True)
        add('base.cov', [m], np.cov(m, ddof=3, dtype=F8).astype(d), e, ddof=3)
        add('base.cov', [m[0].copy()], np.cov(m[0], dtype=F8).astype(d), e)
        add('base.corrcoef', [m], np.corrcoef(m, dtype=F8).astype(d), e)
        add('base.corrcoef', [m, n[0].copy()], np.corrcoef(m, n[0], dtype=F8).astype(d), e)
    x = real((5, 6))
    c0, c1 = np.cumsum(np.abs(real(5)) + 0.1), np.cumsum(np.abs(real(6)) + 0.1)
    for order in (1, 2):
        add('base.gradient', [x], tuple(np.gradient(x, edge_order=order)), 16, edge_order=order)
        add('base.gradient', [x, np.array(0.5)], tuple(np.gradient(x, 0.5, edge_order=order)), 16, edge_order=order)
        add('base.gradient', [x, c0, np.array(2.0)], tuple(np.gradient(x, c0, 2.0, edge_order=order)), 256, edge_order=order)
        add('base.gradient', [x, c1], np.gradient(x, c1, axis=-1, edge_order=order), 256, edge_order=order, axis=[-1])
        add('base.gradient', [x, c1, c0], tuple(np.gradient(x, c1, c0, axis=(1, 0), edge_order=order)), 256,
            edge_order=order, axis=[1, 0])
    add('base.gradient', [x[:2, :3].copy()], tuple(np.gradient(x[:2, :3])), 16)
    add('base.gradient', [c1[:2].copy(), c0[:2].copy()], np.gradient(c1[:2], c0[:2]), 16)
    p = np.cumsum(real((3, 20)) * 3, 1)
    w = p % (2 * np.pi)
    add('base.unwrap', [w], np.unwrap(w), 256)
    add('base.unwrap', [w], np.unwrap(w, axis=0), 256, axis=0)
    add('base.unwrap', [w, ], np.unwrap(w, 4.0), 256, discont=4.0)
    add('base.unwrap', [p % 2], np.unwrap(p % 2, period=2), 256, period=2)
    add('base.unwrap', [p[:, :0]], p[:, :0])
    x = real((4, 5))
    x[0, 1] = x[2, 2] = NAN
    for d in (F8, F4):
        for name in ('nanargmax', 'nanargmin'):
            f = getattr(np, name)
            add('base.' + name, [x.astype(d)], np.asarray(f(x)))
            add('base.' + name, [x.astype(d)], f(x, 1, keepdims=True), axis=1, keepdims=True)
    y = whole(I4, (3, 4))
    add('base.nanargmax', [y], np.nanargmax(y, 0), axis=0)


def spaces(add):
    for start, stop, num, endpoint in [(0, 3, 7, True), (-2, 2.5, 9, False), (1, 1, 3, True), (2, 3, 1, True), (2, 3, 0, True)]:
        given = {'start': start, 'stop': stop, 'num': num, 'endpoint': endpoint}
        add('base.logspace', [], np.logspace(start, stop, num, endpoint), 256, **given)
        add('base.logspace', [], np.logspace(start, stop, num, endpoint, 2), 256, base=2, **given)
    for start, stop, num, endpoint in [(1, 1000, 4, True), (-3, -0.01, 9, True), (1, 256, 5, False), (2, 3, 1, True)]:
        given = {'start': start, 'stop': stop, 'num': num, 'endpoint': endpoint}
        add('base.geomspace', [], np.geomspace(start, stop, num, endpoint), 256, **given)
    add('base.geomspace', [], np.geomspace(1, 1000, 4).astype('f4'), 64, start=1, stop=1000, num=4, dtype='f32')
    for d in (F8, I4, U1):
        x = whole(d, 5, -4, 4)
        wide = np.vander(x).dtype if d.kind == 'i' else d if d.kind == 'f' else np.dtype('u8')
        for n in (None, 0, 1, 3):
            add('base.vander', [x], np.vander(x, n).astype(wide), **({} if n is None else {'n': n}))
        add('base.vander', [x], np.vander(x, 4, True).astype(wide), n=4, increasing=True)


def histograms(add):
    x, y, w = real(40), real(40), np.abs(real(40))
    ex, ey = np.array([-1.5, -1, 0, 0.25, 2]), np.array([-2.0, 0, 1.5])
    for bins in (1, 4):
        for density in (False, True):
            h = np.histogram2d(x, y, bins, density=density)
            add('base.histogram2d', [x, y], h, 64, bins=bins, density=density)
    add('base.histogram2d', [x, y], np.histogram2d(x, y, (3, 5)), 16, bins=[3, 5])
    add('base.histogram2d', [x, y, w, ex, ey], np.histogram2d(x, y, (ex, ey), weights=w), 64)
    add('base.histogram2d', [x, y, None, None, ey], np.histogram2d(x, y, (3, ey)), 16, bins=3)
    s = real((50, 3))
    h, edges = np.histogramdd(s, (2, 3, 4))
    add('base.histogramdd', [s], (h, *edges), 16, bins=[2, 3, 4])
    v = np.abs(real(50))
    h, edges = np.histogramdd(s[:, :2], 3, [(-1, 1.5), (-0.5, 2)], weights=v, density=True)
    add('base.histogramdd', [s[:, :2].copy(), v], (h, *edges), 256, density=True, bins=3, lo=[-1, -0.5], hi=[1.5, 2])


# Rows of MLX's matrices of 12, 20 and 28: bit j of row i says that element j is -1.
HADAMARD = {
    12: [0x2, 0xaab, 0x3c8, 0x96e, 0xf20, 0x5ba, 0xc8c, 0x6e6, 0x23c, 0xb96, 0x8f0, 0xe5a],
    20: [0x6cc3e, 0xd1c5d, 0xab89b, 0x5f117, 0xb660f, 0x9cbde, 0x397bd, 0x72b7b, 0xe52f7, 0xca5ef, 0xf79ac, 0xef758,
         0xdeeb1, 0xbdd63, 0x7bec6, 0xf0592, 0xe8b05, 0xd922a, 0xba074, 0x7c0c9],
    28: [0x32961fe, 0x65283fd, 0xc85477b, 0x92a8e77, 0x2751c6f, 0x4ca785f, 0x994b0bf, 0x4b9bf3c, 0x9537ef8, 0x2a6fdf1,
         0x54dbbe3, 0xa9b37c7, 0x5366f8f, 0xa4cdf9e, 0x79f8cda, 0xf1f5935, 0xe3ef26a, 0xc7de4d5, 0x8fbc9ab, 0x1f7d356,
         0x3cfe62d, 0xfd0ed66, 0xfa1dacd, 0xf63b51b, 0xee72ab6, 0xdee15ec, 0xbfc2b59, 0x7f856b3]}


def transforms(add):
    for m, rows in HADAMARD.items():
        h = np.array([[-1 if row >> j & 1 else 1 for j in range(m)] for row in rows])
        for power in (1, 2, 16, 128):
            if power > 1:
                h2 = np.ones((1, 1))
                while len(h2) < power:
                    h2 = np.block([[h2, h2], [h2, -h2]])
                whole_h = np.kron(h, h2)
            else:
                whole_h = h
            x = real((2, m * power))
            add('base.hadamard_transform', [x], x @ whole_h, 1024, scale=1)
        add('base.hadamard_transform', [x[:, :m].astype(F4)], (x[:, :m].astype(F4) @ h / np.sqrt(m)).astype(F4), 64)


NAMES = {'f8': 'f64', 'f4': 'f32', 'i4': 'i32', 'i8': 'i64', 'u1': 'u8', 'u8': 'u64', 'c8': 'complex64', 'c16': 'complex128',
         '?': 'bool'}


def results(add):
    """dtype= of reductions and running results."""
    for d in (F8, F4, I4, U1, B1):
        x = whole(d, (3, 4), 0, 5)
        for to, name in NAMES.items():
            t = np.dtype(to)
            if t.kind != '?':
                for axis in (None, 1):
                    given = {'dtype': name} if axis is None else {'dtype': name, 'axis': [axis]}
                    for f in ('sum', 'prod', 'nansum', 'nanprod'):
                        add('base.' + f, [x], np.asarray(getattr(np, f)(x, axis, dtype=t)), 8, **given)
                for f in ('cumsum', 'cumprod', 'nancumsum', 'nancumprod'):
                    add('base.' + f, [x], getattr(np, f)(x, 1, dtype=t), 8, axis=1, dtype=name)
                add('base.cumulative_sum', [x], np.cumsum(x, 0, dtype=t), 8, axis=0, dtype=name)
            if t.kind in 'fc':
                add('base.mean', [x], np.mean(x, 0, dtype=t), 16, axis=[0], dtype=name)
                add('base.nanmean', [x], np.mean(x, 0, dtype=t), 16, axis=[0], dtype=name)
            if t.kind == 'f':
                add('base.var', [x], np.var(x, 0, dtype=t), 64, axis=[0], dtype=name)
                add('base.std', [x], np.std(x, 0, dtype=t, ddof=1), 64, axis=[0], ddof=1, dtype=name)
                add('base.nanvar', [x], np.var(x, 0, dtype=t), 64, axis=[0], dtype=name)
    z = real((3, 4)) + 1j * real((3, 4))
    add('base.sum', [z.astype('c8')], z.astype('c8').sum(0, dtype='c16'), 8, axis=[0], dtype='complex128')


def complexes(add):
    for d in ('c8', 'c16'):
        z = (real((3, 4)) + 1j * real((3, 4))).astype(d)
        holes = z.copy()
        holes[0, 1], holes[2, 2], holes[1, 1] = complex(NAN, 1), complex(0, INF), 0
        for axis in (0, 1):
            for f in ('cumsum', 'cumprod'):
                add('base.' + f, [z], getattr(np, f)(z, axis), 64, axis=axis)
                add('base.' + f, [z], np.flip(getattr(np, f)(np.flip(z, axis), axis), axis), 64, axis=axis, reverse=True)
            add('base.nancumsum', [np.where(np.isinf(holes), 1, holes).astype(d)],
                np.nancumsum(np.where(np.isinf(holes), 1, holes).astype(d), axis), 64, axis=axis)
            for f in ('var', 'std'):
                add('base.' + f, [z], getattr(np, f)(z, axis), 64, axis=[axis])
                add('base.' + f, [z], np.asarray(getattr(np, f)(z, ddof=1)), 64, ddof=1)
            for f in ('all', 'any'):
                add('base.' + f, [z * (z.real > 0)], getattr(np, f)(z * (z.real > 0), axis), axis=[axis])
        add('base.cumsum', [z], np.cumsum(z), 64)
        add('base.cumprod', [z], np.cumprod(z), 64)
        add('base.nansum', [z], np.asarray(np.nansum(z)), 64)
        add('base.cumulative_prod', [z], np.cumprod(z, 1), 64, axis=1)
        add('base.round', [z * 10], np.round(z * 10), 4)
        add('base.round', [z * 10], np.round(z * 10, 2), 8, decimals=2)
        add('base.nan_to_num', [holes], np.nan_to_num(holes))
        near = np.where(np.isinf(holes), 1, holes).astype(d)
        add('base.isclose', [near, near], np.isclose(near, near))
        add('base.sigmoid', [z], 1 / (1 + np.exp(-z.astype('c16'))).astype(d), 64)
        add('base.sigmoid', [np.array([-800 + 1j, 90 + 2j, -90 - 3j, 0], d)],
            np.array([0, 1, np.exp(-90 - 3j) if d == 'c16' else np.exp(-90) * np.exp(-3j), 0.5], d), 64)
        for f in ('nanvar', 'nanstd'):
            hole = np.where(np.isinf(holes), 1, holes).astype(d)
            add('base.' + f, [hole], getattr(np, f)(hole, axis=1), 64, axis=[1])
        add('base.diff', [z], np.diff(z), 8)
        add('base.ediff1d', [z], np.ediff1d(z), 8)
        add('base.gradient', [z[0].copy()], np.gradient(z[0]), 8)
        add('base.average', [z, np.arange(4.0)], np.average(z, 1, np.arange(4.0)), 64, axis=[1])
        add('base.addmm', [z[:, :3].copy(), z, z.T.copy()], z[:, :3] + z @ z.T, 64)
        add('base.insert', [z, z[:, :1].copy()], np.insert(z, [2], z[:, :1], 1), indices=[2], axis=1)
        add('base.vander', [z[0].copy()], np.vander(z[0]).astype(d), 64)
        add('base.cov', [z], np.cov(z.astype('c16')).astype(d), 64)


def directions(z):
    """numpy.sign of complex numbers, as NumPy 2 has it."""
    parts = np.stack([z.real, z.imag], -1)
    infinite, size = np.isinf(parts), np.hypot(z.real, z.imag)[..., None]
    at_end = np.where(infinite.all(-1, keepdims=True), NAN, np.where(infinite, np.sign(parts), 0))
    return np.where(infinite.any(-1, keepdims=True), at_end, np.where(size == 0, 0, parts / size))


def ends(add):
    """Complex numbers at infinities and NaN, and moves of them."""
    for d in ('c8', 'c16'):
        ends_of = (0, 1, -2.5, INF, -INF, NAN)
        z = np.array([complex(a, b) for a in ends_of for b in ends_of], d)
        add('base.sign', [z], directions(z).astype(z.real.dtype).view(d)[:, 0], 8)
        # The array API's: NumPy's has NaN in parts of expm1, and other signs of 0 in tanh.
        z = np.array([complex(INF, 0), complex(-INF, 0), complex(INF, 1), complex(-INF, 1), complex(-INF, INF), complex(INF, INF),
                      complex(-INF, NAN), complex(INF, NAN), complex(NAN, 0), complex(NAN, 1)], d)
        add('base.expm1', [z], np.array([complex(INF, 0), -1, complex(INF, INF), -1, -1, complex(INF, NAN), -1, complex(INF, NAN),
                                         complex(NAN, 0), complex(NAN, NAN)], d))
        z = np.array([complex(INF, 2), complex(-INF, 2), complex(INF, INF), complex(-INF, -INF), complex(INF, -2), complex(NAN, 0)], d)
        add('base.tanh', [z], np.array([1, -1, 1, -1, 1, complex(NAN, 0)], d))
        x = np.concatenate([whole(F8, (12,), -2, 2) + 1j * whole(F8, (12,), -1, 1),
                            [complex(1, NAN), complex(NAN, 0), 0, complex(-2, NAN)]]).astype(d)
        order = sorted(range(len(x)), key=lambda i: (np.isnan(x[i].real) * 2 + np.isnan(x[i].imag), np.nan_to_num(x[i].real),
                                                     np.nan_to_num(x[i].imag)))
        starts = [not k or x[i] != x[order[k - 1]] for k, i in enumerate(order)]
        first, inverse = np.array(order)[starts], np.empty(len(x), 'i8')
        inverse[order] = np.cumsum(starts) - 1
        add('base.unique_all', [x], (x[first], first, inverse, np.bincount(inverse), np.array(len(first))), size=len(first))
        u, v = ((real((3, 4)) + 1j * real((3, 4))).astype(d) for _ in range(2))
        i, j = np.array([2, 0]), np.array([[1], [-1]])
        for mode in ('set', 'add'):
            out = u.copy()
            if mode == 'set':
                out[i, j] = v[:2, :2]
            else:
                np.add.at(out, (i, j), v[:2, :2])
            add('base.scatter', [u, v[:2, :2].copy(), i, j], out, 8, mode=mode)
        out = u.copy()
        np.add.at(out, [0, 2, 0], v)
        add('base.scatter_add', [u, np.array([0, 2, 0]), v], out, 8)
        out = u.copy()
        out[[2, 0]] = v[:2]
        add('base.scatter_set', [u, np.array([2, 0]), v[:2].copy()], out)
        add('base.gather', [u, i, j], u[i, j])
        add('base.take', [u, i], u[:, i], axis=1)
        add('base.where', [u.real > 0, u, v], np.where(u.real > 0, u, v))
        add('base.concatenate', [u, v], np.concatenate([u, v], 1), axis=1)
        for mode in ('reflect', 'symmetric', 'edge', 'constant'):
            add('base.pad', [u], np.pad(u, ((1, 0), (2, 1)), mode), before=[1, 2], after=[0, 1], mode=mode)


def make(add):
    with np.errstate(all='ignore'), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for family in (numbers, places, changing, sets, samples, spaces, histograms, transforms, results, complexes, ends):
            family(add)

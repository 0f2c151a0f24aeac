# SPDX-License-Identifier: MIT
"""Cases of golden.py for composites, operators that are put together when they are applied: what
NumPy's functions of the same names give. Special functions have values of mpmath
(special_values.py)."""
import warnings

import numpy as np
import special_values
from golden_operators import B1, F4, F8, I4, I8, SOME, U1, real, whole

NAN, INF = np.nan, np.inf


def making(add):
    for d in SOME:
        x = whole(d, (2, 3))
        for name in ('zeros', 'ones'):
            add('base.' + name + '_like', [x], getattr(np, name + '_like')(x))
        add('base.full_like', [x], np.full_like(x, 1), value=1)
        add('base.zeros_like', [x], np.zeros((2, 3), 'f8'), dtype='f64')
    add('base.zeros', [], np.zeros((2, 0), 'f4'), shape=[2, 0])
    add('base.ones', [], np.ones((), 'i4'), shape=[], dtype='i32')
    add('base.empty', [], np.zeros(3, 'f4'), shape=[3])
    add('base.empty_like', [np.ones(2, 'u1')], np.zeros(2, 'u1'))
    for n, m, k in [(3, None, 0), (2, 4, 1), (4, 2, -1), (0, 3, 0), (2, 2, -7)]:
        add('base.tri', [], np.tri(n, m, k, 'f4'), n=n, m=-1 if m is None else m, k=k)
    x, y, z = whole(I4, 3), real(2), np.array(4, 'u1')
    for indexing in ('xy', 'ij'):
        for sparse in (False, True):
            for given in ([x, y], [x, y, z], [y]):
                add('base.meshgrid', given, tuple(np.ascontiguousarray(g) for g in np.meshgrid(
                    *given, indexing=indexing, sparse=sparse)), indexing=indexing, sparse=sparse)
    for name in ('hanning', 'hamming', 'blackman', 'bartlett'):
        for m in (0, 1, 2, 5, 16):
            add('base.' + name, [], getattr(np, name)(m), 16, m=m)
        add('base.' + name, [], getattr(np, name)(7).astype('f4'), 16, m=7, dtype='f32')
    for m, beta in [(1, 3.0), (5, 0.0), (8, 14.0), (9, -2.5), (0, 1.0)]:
        add('base.kaiser', [], np.kaiser(m, beta), 256, m=m, beta=beta)


def moving(add):
    x = whole(I4, (2, 3, 4))
    for source, destination in [((0,), (2,)), ((-1, 0), (0, 1)), ((0, 1, 2), (2, 0, 1)), ((), ())]:
        add('base.moveaxis', [x], np.moveaxis(x, source, destination).copy(), source=list(source),
            destination=list(destination))
    add('base.swapaxes', [x], np.swapaxes(x, 0, -1).copy(), axis1=0, axis2=-1)
    add('base.matrix_transpose', [x], np.swapaxes(x, -1, -2).copy())
    for first, last, shape in [(0, -1, (24,)), (1, 2, (2, 12)), (0, 1, (6, 4)), (1, 1, (2, 3, 4))]:
        add('base.flatten', [x], x.reshape(shape), start_axis=first, end_axis=last)
    add('base.flatten', [np.array(3.5)], np.array([3.5]))
    add('base.flatten', [x[:0]], x[:0].reshape(0))
    add('base.unflatten', [x], x.reshape(2, 3, 2, 2), axis=-1, shape=[2, -1])
    add('base.unflatten', [x], x.reshape(1, 2, 3, 4), axis=0, shape=[1, 2])
    add('base.unstack', [x], tuple(x[:, i].copy() for i in range(3)), axis=1)
    for y in (np.array(2.5), real(3), real((2, 3)), x):
        for n in (1, 2, 3):
            f = getattr(np, 'atleast_%dd' % n)
            add('base.atleast_%dd' % n, [y], f(y))
    w = whole(F4, 4)
    add('base.broadcast_arrays', [x[:1, :, :1].copy(), w],
        tuple(np.ascontiguousarray(b) for b in np.broadcast_arrays(x[:1, :, :1], w)))
    for k in range(-1, 4):
        add('base.rot90', [x], np.rot90(x, k).copy(), k=k)
        add('base.rot90', [x], np.rot90(x, k, (2, 0)).copy(), k=k, axes=[2, 0])
    for d in SOME:
        y = whole(d, (3, 4))
        for k in (-4, -1, 0, 2, 9):
            add('base.diagonal', [y], np.diagonal(y, k).copy(), offset=k)
            add('base.diag', [y], np.diag(y, k), k=k)
        add('base.diag', [y[0].copy()], np.diag(y[0], 1), k=1)
        add('base.diag', [y[0].copy()], np.diag(y[0], -2), k=-2)
        if d != U1 and d != B1:
            add('base.diff', [y], np.diff(y))
        add('base.trace', [y], np.trace(y).astype(d if d.kind == 'f' else np.sum(y).dtype))
    add('base.diagonal', [x], np.diagonal(x, 1, 2, 0).copy(), offset=1, axis1=2, axis2=0)
    add('base.trace', [x], np.trace(x, -1, 1, 2, dtype='f8'), offset=-1, axis1=1, axis2=2, dtype='f64')
    add('base.diff', [x], np.diff(x, 2, 1), n=2, axis=1)
    add('base.diff', [x], np.diff(x, 0), n=0)
    add('base.diff', [x], np.diff(x, 9), n=9)
    add('base.diff', [x, np.array(5, 'i4'), x[..., :2].copy()],
        np.diff(x, prepend=np.int32(5), append=x[..., :2]))
    add('base.diff', [x > 0], np.diff(x > 0))
    y = real((3, 4))
    for a, b in [('f8', 'i8'), ('f8', 'u4'), ('f8', 'f4'), ('f4', 'u1')]:
        z = y.astype(a)
        names = {'i8': 'i64', 'u4': 'u32', 'f4': 'f32', 'u1': 'u8'}
        add('base.view', [z], z.view(b), dtype=names[b])
    w = whole(U1, (2, 8))
    add('base.view', [w], w.view('u4'), dtype='u32')
    for shape, strides, offset in [((2, 2), (1, 1), 0), ((3, 4), (4, -1), 3), ((5,), (0,), 11), ((0, 3), (99, 1), 0)]:
        flat = y.reshape(-1)
        at = sum((np.arange(n).reshape((-1,) + (1,) * (len(shape) - 1 - i)) * s
                  for i, (n, s) in enumerate(zip(shape, strides))), offset)
        add('base.as_strided', [y], flat[np.broadcast_to(at, shape)], shape=list(shape), strides=list(strides),
            offset=offset)


def products(add):
    for d in (F4, F8, I4, U1):
        a, b, m, n = whole(d, 4, 0, 5), whole(d, 4, 0, 5), whole(d, (3, 4), 0, 5), whole(d, (2, 4), 0, 5)
        add('base.outer', [m, b], np.outer(m, b))
        add('base.inner', [m, n], np.inner(m, n))
        add('base.inner', [m, np.array(3, d)], np.inner(m, np.array(3, d)))
        add('base.dot', [m, a], np.dot(m, a))
        add('base.dot', [a, b], np.dot(a, b))
        add('base.dot', [np.stack([m, m]), n.T.copy()], np.dot(np.stack([m, m]), n.T))
        add('base.vecdot', [m, a], (m * a).sum(-1, dtype=d))
        add('base.vdot', [m, m[::-1].copy()], np.vdot(m, m[::-1]))
        add('base.kron', [m, n], np.kron(m, n))
        add('base.kron', [a, m], np.kron(a, m))
        add('base.matvec', [m, a], m @ a)
        add('base.vecmat', [a, m.T.copy()], a @ m.T)
    a, b = real((2, 3, 4)), real((4, 3, 5))
    add('base.tensordot', [a, b], np.tensordot(a, b, [(1, 2), (1, 0)]), 64, axes_a=[1, -1], axes_b=[1, 0])
    add('base.tensordot', [a, b], np.tensordot(a, b, 1), 64, axes=1)
    add('base.tensordot', [a, b[0, 0]], np.tensordot(a, b[0, 0], 0), 64, axes=0)
    add('base.kron', [a[:1], b[:, :1]], np.kron(a[:1], b[:, :1]), 4)
    add('base.vecdot', [a, a[:, :1].copy()], (a * a[:, :1]).sum(-1), 64)
    x, y = real((5, 3)), real((2, 1, 3))
    add('base.cross', [x, x[::-1].copy()], np.cross(x, x[::-1]), 16)
    add('base.cross', [x, y], np.cross(np.broadcast_to(x, (2, 5, 3)), np.broadcast_to(y, (2, 5, 3))), 16)
    add('base.cross', [x.T.copy(), x.T.copy() + 1], np.cross(x.T, x.T + 1, axis=0), 16, axis=0)
    c, p = real(5), (a[0], b[:, 0].copy())
    add('base.addmm', [c, *p], c + p[0] @ p[1], 64)
    add('base.addmm', [c, *p], 0.5 * c - 2 * (p[0] @ p[1]), 64, alpha=-2, beta=0.5)


def numbers(add):
    hard = np.array([0.0, -0.0, 1, -1, 2.5, -2.5, INF, -INF, NAN, 3e-39, 1e30, 7])
    for d in (F4, F8):
        x = hard.astype(d)
        y = x[::-1].copy()
        for name in ('fmax', 'fmin', 'hypot', 'heaviside', 'logaddexp', 'logaddexp2'):
            add('base.' + name, [x, y], getattr(np, name)(x, y), 8)
            add('base.' + name, [x, x], getattr(np, name)(x, x), 8)
        add('base.copysign', [x[:8], y[4:]], np.copysign(x[:8], y[4:]))
        add('base.signbit', [x], np.signbit(x))
        add('base.nextafter', [x, y], np.nextafter(x, y))
        add('base.nextafter', [x, np.array(INF, d)], np.nextafter(x, d.type(INF)))
        add('base.nextafter', [x, np.array(-1, d)], np.nextafter(x, d.type(-1)))
        for name in ('isposinf', 'isneginf', 'positive'):
            add('base.' + name, [x], getattr(np, name)(x))
        add('base.sinc', [x[2:6]], np.sinc(x[2:6]), 8)
        add('base.sinc', [x[:2]], np.ones(2, d))
        for name in ('degrees', 'radians'):
            add('base.' + name, [x], getattr(np, name)(x), 4)
        add('base.nan_to_num', [x], np.nan_to_num(x))
        add('base.nan_to_num', [x], np.nan_to_num(x, nan=-1, posinf=9, neginf=-9), nan=-1, posinf=9, neginf=-9)
        for decimals in (0, 1, 3, -1):
            z = (real(40) * 100).astype(d)
            add('base.round', [z], np.round(z, decimals), 4, decimals=decimals)
        for equal_nan in (False, True):
            z = x + np.array([0, 1e-9, 1e-6, 1e-3] * 3).astype(d)
            add('base.isclose', [x, z], np.isclose(x, z, equal_nan=equal_nan), equal_nan=equal_nan)
            add('base.allclose', [x, x], np.allclose(x, x, equal_nan=equal_nan), equal_nan=equal_nan)
            add('base.array_equal', [x, x], np.array_equal(x, x, equal_nan=equal_nan), equal_nan=equal_nan)
    add('base.isclose', [hard, hard + 0.1], np.isclose(hard, hard + 0.1, 0.01, 0.05), rtol=0.01, atol=0.05)
    for d in (I4, I8, U1):
        x, y = whole(d, 12), whole(d, 12)
        y[y == 0] = 4
        add('base.divmod', [x, y], np.divmod(x, y))
        add('base.round', [x], x, decimals=2)
        add('base.isclose', [x, y], np.isclose(x, y))
        add('base.array_equal', [x, x.reshape(3, 4)], np.array(False))
        add('base.signbit', [x], x < 0)
        add('base.fmax', [x, y], np.fmax(x, y))
    x, y = real(12) * 9, real(12) + 3
    add('base.divmod', [x, y], np.divmod(x, y))
    add('base.isposinf', [whole(I4, 3)], np.zeros(3, '?'))
    for name, values in special_values.VALUES.items():
        x = np.array(special_values.AT[name])
        wanted = np.array(values)
        add('base.' + name, [x], wanted, special_values.ROUNDINGS[name])
        single = np.abs(wanted) < 3e38
        add('base.' + name, [x[single].astype('f4')], wanted[single].astype('f4'), 16) if np.all(
            x[single].astype('f4') == x[single]) else None


def reducing(add):
    x = real((3, 4, 5))
    x[0, 1, 2] = x[2, 3] = NAN
    x[1, 0, 0] = INF
    for d in (F4, F8):
        y = x.astype(d)
        for axes in (None, (0,), (2,), (0, 2), (-1, 1)):
            given = {} if axes is None else {'axis': list(axes)}
            for name in ('nansum', 'nanprod', 'nanmean', 'nanmax', 'nanmin'):
                add('base.' + name, [y], np.asarray(getattr(np, name)(y, axis=axes)), 64, **given)
            finite = np.where(np.isinf(y), 0, y).astype(d)
            for name in ('nanvar', 'nanstd'):
                for ddof in (0, 1):
                    add('base.' + name, [finite], np.asarray(getattr(np, name)(finite, axis=axes, ddof=ddof)), 256,
                        ddof=ddof, **given)
            add('base.nanmedian', [y], np.asarray(np.nanmedian(y, axis=axes)), 4, **given)
        add('base.nansum', [y], np.nansum(y, axis=1, keepdims=True), 16, axis=[1], keepdims=True)
    for d in SOME:
        y = whole(d, (3, 5, 4))
        for axes in (None, (1,), (0, 2)):
            given = {} if axes is None else {'axis': list(axes)}
            add('base.count_nonzero', [y], np.asarray(np.count_nonzero(y, axis=axes)), **given)
            add('base.minmax', [y], (np.min(y, axis=axes), np.max(y, axis=axes)), **given)
            if d.kind in 'if':
                add('base.ptp', [y], np.ptp(y, axis=axes), **given)
            middle = np.asarray(np.median(y, axis=axes)).astype(d if d.kind == 'f' else 'f8')
            add('base.median', [y], middle, 4, **given)
    y, q = real((3, 6, 5)), np.array([0, 0.1, 0.5, 0.77, 1])
    for method in ('linear', 'lower', 'higher', 'midpoint', 'nearest'):
        for axes in (None, (1,), (0, 2)):
            given = {} if axes is None else {'axis': list(axes)}
            add('base.quantile', [y, q], np.quantile(y, q, axis=axes, method=method), 16, method=method, **given)
            add('base.nanpercentile', [x[:, :, :4].copy() * 0 + y[:, :4, :4], q * 100],
                np.nanpercentile(x[:, :, :4] * 0 + y[:, :4, :4], q * 100, axis=axes, method=method), 64,
                method=method, **given)
    add('base.quantile', [y, np.array(0.3)], np.quantile(y, 0.3, axis=-1, keepdims=True), 16, axis=[-1], keepdims=True)
    add('base.percentile', [y, q * 100], np.percentile(y, q * 100), 16)
    finite = np.where(np.isinf(x), 1, x)
    add('base.nanquantile', [finite, q], np.nanquantile(finite, q, axis=1), 64, axis=[1])
    add('base.median', [x], np.median(x, axis=2), 4, axis=[2])
    w = np.abs(real(6))
    add('base.average', [y], np.average(y), 16)
    add('base.average', [y, w], np.average(y, 1, w), 64, axis=[1])
    add('base.average', [y, np.abs(y)], np.average(y, weights=np.abs(y)), 64)


def searching(add):
    for d in (F8, I4, U1):
        a, v = np.sort(whole(d, 9)), whole(d, (2, 7))
        for side in ('left', 'right'):
            for n in (0, 1, 2, 5, 8, 9):
                add('base.searchsorted', [a[:n], v], np.asarray(np.searchsorted(a[:n], v, side)), side=side)
        add('base.digitize', [v, np.unique(a)], np.digitize(v, np.unique(a)))
        add('base.digitize', [v, np.unique(a)], np.digitize(v, np.unique(a), right=True), right=True)
        add('base.isin', [v, a[:4]], np.isin(v, a[:4]))
        add('base.isin', [v, a[:0]], np.isin(v, a[:0], invert=True), invert=True)
        x = whole(d, (4, 5))
        values, indices, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        n, size = len(values), 21

        def filled(y, size=size):
            return np.concatenate([y, np.zeros(max(size - len(y), 0), y.dtype)])[:size]
        inverse = inverse.reshape(x.shape)
        add('base.unique_all', [x], (filled(values), filled(indices), inverse, filled(counts), np.array(n)), size=size)
        add('base.unique_counts', [x], (filled(values, 3), filled(counts, 3), np.array(n)), size=3)
        add('base.unique_inverse', [x], (values, inverse, np.array(n)), size=n)
        add('base.unique_values', [x], (filled(values), np.array(n)), size=size)
        mask = x > 1
        chosen = x[mask]
        add('base.boolean_mask', [x, mask], (filled(chosen), np.array(len(chosen))), size=21)
        add('base.boolean_mask', [x, mask], (filled(chosen, 2), np.array(len(chosen))), size=2)
        rows = np.array([True, False, True, True])
        add('base.boolean_mask', [x, rows], (x[rows], np.array(3)), size=3)
        found = np.nonzero(x)
        add('base.nonzero', [x], tuple(filled(i) for i in found) + (np.array(len(found[0])),), size=21)
        add('base.argwhere', [x], (np.argwhere(x)[:5], np.array(len(found[0]))), size=5)
    x = np.array([3, NAN, 1, NAN, 3])
    add('base.unique_counts', [x], (np.array([1, 3, NAN, NAN]), np.array([1, 2, 1, 1]), np.array(4)), size=4)
    add('base.unique_counts', [x], (np.array([1, 3, NAN]), np.array([1, 2, 2]), np.array(3)), size=3, equal_nan=True)
    a = np.array([1, 2, NAN])
    for side in ('left', 'right'):
        add('base.searchsorted', [a, x], np.searchsorted(a, x, side), side=side)
    x = whole(U1, 30, 0, 6)
    add('base.bincount', [x], np.bincount(x, minlength=10)[:10], length=10)
    add('base.bincount', [x], np.bincount(x, minlength=10)[:3], length=3)
    w = real(30)
    add('base.bincount', [x, w], np.bincount(x, w, 8)[:8], 16, length=8)
    x = real((6, 7))
    for bins in (1, 3, 10):
        add('base.histogram', [x], np.histogram(x, bins), 4, bins=bins)
        add('base.histogram', [x], np.histogram(x, bins, (-1, 0.5)), 4, bins=bins, lo=-1, hi=0.5)
    add('base.histogram', [x], np.histogram(x, 4, density=True), 16, bins=4, density=True)
    add('base.histogram', [np.ones(5)], np.histogram(np.ones(5), 3), 4, bins=3)
    edges = np.array([-1.5, -1, 0, 0.25, 2])
    add('base.histogram', [x, edges], np.histogram(x, edges))
    add('base.histogram', [x, edges, np.abs(x)], np.histogram(x, edges, weights=np.abs(x)), 64)
    partitions(add)


def argpartition(x, kth, axis):
    """Places before, at and behind place kth of a stable sort, each part in ascending order."""
    places = np.argsort(np.argsort(x, axis, kind='stable'), axis)
    return np.argsort(np.sign(places - kth % x.shape[axis]), axis, kind='stable')


def partitions(add):
    rows = np.round(real((3, 200)) * 50) / 10
    rows[0, 7::31] = NAN
    rows[1, ::9] = -0.0
    rows[1, 1::9] = 0.0
    cases = [(whole(I4, (4, 6)), -1, (0, 3, -1)), (whole(I4, (4, 6)), 0, (0, 3, -1)), (rows, -1, (0, 100, 196, -1)),
             (rows.astype('f4'), -1, (3, 117)), (rows.astype('f2').T, 0, (60, )), (whole(U1, (70, 2), 0, 3), 0, (40, )),
             (whole(I8, (1, 90)), 1, (44, )), (np.ones((2, 0, 3)), 2, (1, ))]
    for x, axis, places in cases:
        for k in places:
            at = argpartition(x, k, axis)
            values = np.take_along_axis(x, at, axis)
            np.testing.assert_array_equal(np.take(values, [k], axis), np.take(np.partition(x, k, axis), [k], axis))
            add('base.partition', [x], values, kth=k, axis=axis)
            add('base.argpartition', [x], at, kth=k, axis=axis)


def padding(add):
    def case(x, widths, mode, roundings=0, **given):
        names = {'stat_length': 'stat_length', 'constant_values': 'value', 'end_values': 'value'}
        add('base.pad', [x], np.pad(x, widths, mode, **given), roundings, before=[w[0] for w in widths],
            after=[w[1] for w in widths], mode=mode, **{names[k]: v for k, v in given.items()})
    for d in (F8, I4, U1):
        x = whole(d, (3, 4))
        for mode in ('edge', 'reflect', 'symmetric', 'wrap'):
            case(x, ((2, 1), (0, 7)), mode)
            case(x[:1], ((3, 0), (5, 5)), mode)
            case(x, ((0, 0), (0, 0)), mode)
        case(x, ((1, 2), (3, 0)), 'constant', constant_values=5)
        case(x, ((1, 2), (3, 0)), 'maximum')
        case(x, ((1, 2), (3, 1)), 'minimum', stat_length=2)
        case(x, ((2, 3), (1, 4)), 'linear_ramp', 4, end_values=9)
    x = real((3, 5))
    for mode in ('mean', 'median'):
        case(x, ((2, 1), (1, 3)), mode, 16)
        case(x, ((2, 1), (1, 3)), mode, 16, stat_length=2)
    add('base.pad', [x, np.array([2.5])], np.pad(x, ((1, 0), (2, 2)), constant_values=2.5), before=[1, 2], after=[0, 2])


def joining(add):
    for d in SOME:
        a, b, m = whole(d, 3), whole(d, 3), whole(d, (3, 2))
        for name, given in [('hstack', [a, b, a]), ('hstack', [m, m[:, :1].copy()]), ('vstack', [a, b]),
                            ('vstack', [m, m[:1]]), ('dstack', [a, b]), ('dstack', [m, m]),
                            ('column_stack', [a, m, b]), ('hstack', [np.array(1, d), np.array(0, d)])]:
            add('base.' + name, given, getattr(np, name)(given))


def running(add):
    for d in (F8, I4, U1):
        x = whole(d, (3, 4))
        for axis in (0, 1, -1):
            sums = np.cumsum(x, axis)
            add('base.cumulative_sum', [x], sums, axis=axis)
            zero = np.zeros_like(np.take(sums, [0], axis))
            add('base.cumulative_sum', [x], np.concatenate([zero, sums], axis), axis=axis, include_initial=True)
            products = np.cumprod(x % 3, axis)
            add('base.cumulative_prod', [x % 3], np.concatenate([zero.astype(products.dtype) + 1, products], axis),
                axis=axis, include_initial=True)
        add('base.cumulative_sum', [x[0].copy()], np.cumsum(x[0], dtype='f4'), dtype='f32')
    x = real((3, 9))
    x[0, 2] = x[1, 0] = NAN
    for axis in (0, 1):
        add('base.nancumsum', [x], np.nancumsum(x, axis), 16, axis=axis)
        add('base.nancumprod', [x], np.nancumprod(x, axis), 16, axis=axis)
    add('base.nancumsum', [x], np.nancumsum(x), 64)
    x = np.concatenate([real((3, 11)) * 400, np.full((1, 11), -INF)])
    x[1, 3] = -INF
    for axis in (0, 1):
        add('base.logcumsumexp', [x], np.logaddexp.accumulate(x, axis), 64, axis=axis)
        add('base.logcumsumexp', [x], np.flip(np.logaddexp.accumulate(np.flip(x, axis), axis), axis), 64, axis=axis,
            reverse=True)


def transforming(add):
    for d in (F8, I4):
        for n, m in ((7, 3), (3, 7), (5, 4), (4, 5), (1, 1), (6, 6)):
            a, v = whole(d, n), whole(d, m)
            for mode in ('full', 'same', 'valid'):
                add('base.convolve', [a, v], np.convolve(a, v, mode), 16, mode=mode)
                add('base.correlate', [a, v], np.correlate(a, v, mode), 16, mode=mode)
    for n in (1, 2, 8, 64, 256):
        h = np.ones((1, 1))
        while len(h) < n:
            h = np.block([[h, h], [h, -h]])
        x = real((3, n))
        add('base.hadamard_transform', [x], x @ h / np.sqrt(n), 256)
        add('base.hadamard_transform', [x[0].copy()], x[0] @ h * 0.5, 256, scale=0.5)


def make(add):
    with np.errstate(all='ignore'), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for family in (making, moving, products, numbers, reducing, searching, padding, joining, running,
                       transforming):
            family(add)


def framing(add):
    """Transforms of frames, as sums over each; their inverse gives the signal back."""
    x = real((2, 70))
    for n, hop, window, center, mode in [(16, 4, np.hanning(16), True, 'reflect'), (12, 5, None, False, 'reflect'),
                                         (16, 8, np.hamming(10), True, 'constant'), (9, 3, None, True, 'edge')]:
        width = n if window is None else len(window)
        whole_window = np.zeros(n)
        whole_window[(n - width) // 2:(n - width) // 2 + width] = 1 if window is None else window
        padded = np.pad(x, ((0, 0), (n // 2, n // 2)), mode) if center else x
        count = 1 + (padded.shape[1] - n) // hop
        frames = np.stack([padded[:, t * hop:t * hop + n] * whole_window for t in range(count)], -1)
        given = {'n_fft': n, 'hop_length': hop, 'win_length': width, 'center': center}
        inputs = [x] if window is None else [x, window]
        half, whole_spectrum = np.fft.rfft(frames, axis=1), np.fft.fft(frames, axis=1)
        add('fft.stft', inputs, half, 64, pad_mode=mode, **given)
        add('fft.stft', inputs, whole_spectrum, 64, pad_mode=mode, onesided='two', **given)
        envelope = sum(np.pad(whole_window**2, (t * hop, (count - 1 - t) * hop)) for t in range(count))
        known = envelope[n // 2:-(n // 2)] > 1e-6 if center else envelope > 1e-6
        if known.all():
            back = x[:, :len(known)]
            add('fft.istft', [half] + inputs[1:], back, 256, **given)
            add('fft.istft', [half] + inputs[1:], back[:, :-3], 256, length=len(known) - 3, **given)


def make_complex(add):
    """Moves, products and transforms of complex numbers."""
    framing(add)
    for n in (5, 8):
        x = real((3, n)) + 1j * real((3, n))
        for norm in ('backward', 'ortho', 'forward'):
            add('fft.hfft', [x], np.fft.hfft(x, norm=norm), 64, norm=norm)
            add('fft.hfft', [x], np.fft.hfft(x, 2 * n - 1, 0, norm), 64, n=2 * n - 1, axis=0, norm=norm)
            add('fft.ihfft', [x.real.copy()], np.fft.ihfft(x.real, norm=norm), 64, norm=norm)
    for d in ('c8', 'c16'):
        x, y = ((real((3, 4)) + 1j * real((3, 4))).astype(d) for _ in range(2))
        i = np.array([[2, 0, -1], [1, 1, 0]])
        for name, inputs, result, given in [
                ('stack', [x, y], np.stack([x, y], 1), {'axis': 1}), ('flip', [x], np.flip(x, 1), {'axis': [1]}),
                ('roll', [x], np.roll(x, 2, 1), {'shift': [2], 'axis': [1]}), ('tril', [x], np.tril(x), {}),
                ('repeat', [x], np.repeat(x, 2, 0), {'repeats': [2], 'axis': 0}), ('triu', [x], np.triu(x, 1), {'k': 1}),
                ('tile', [x], np.tile(x, (2, 1)), {'reps': [2, 1]}),
                ('take_along_axis', [x[:2], i], np.take_along_axis(x[:2], i, 1), {'axis': 1}),
                ('put_along_axis', [x[:2], i[:, :2].copy(), y[:2, :2].copy()], None, {'axis': 1}),
                ('einsum', [x, y], np.einsum('ij,kj->ik', x, y), {'equation': 'ij,kj->ik'}),
                ('kron', [x, y[:2]], np.kron(x, y[:2]), {}), ('vecdot', [x, y], (x.conj() * y).sum(-1), {}),
                ('vdot', [x, y], np.vdot(x, y), {}), ('outer', [x[0].copy(), y[0].copy()], np.outer(x[0], y[0]), {}),
                ('inner', [x, y], np.inner(x, y), {}), ('cross', [x[:, :3].copy(), y[:, :3].copy()],
                                                        np.cross(x[:, :3], y[:, :3]), {}),
                ('matvec', [x, y[0].copy()], x @ y[0], {}),
                ('vecmat', [x[0, :3].copy(), y], x[0, :3].conj() @ y, {}),
                ('diagonal', [x], np.diagonal(x, 1).copy(), {'offset': 1}), ('trace', [x], np.trace(x), {}),
                ('diag', [x[0].copy()], np.diag(x[0], -1), {'k': -1}), ('pad', [x], np.pad(x, ((1, 0), (2, 1)), 'wrap'),
                 {'before': [1, 2], 'after': [0, 1], 'mode': 'wrap'}),
                ('count_nonzero', [x], np.count_nonzero(x), {}), ('isclose', [x, x + 1e-9], np.isclose(x, x + 1e-9), {}),
                ('convolve', [x[0].copy(), y[1].copy()], np.convolve(x[0], y[1]), {}),
                ('correlate', [x[0].copy(), y[1].copy()], np.correlate(x[0], y[1], 'full'), {'mode': 'full'}),
                ('correlate', [x[0, :2].copy(), y[1].copy()], np.correlate(x[0, :2], y[1], 'same'), {'mode': 'same'})]:
            if result is None:
                result = inputs[0].copy()
                np.put_along_axis(result, inputs[1], inputs[2], 1)
            add('base.' + name, inputs, result, 64, **given)

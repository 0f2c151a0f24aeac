# SPDX-License-Identifier: MIT
"""Operators of pack base that search, count and order; statistics; transforms of pack fft that are left."""
import numpy as np
from draw import given, is_complex, is_int, is_number
from entries import entry, filled, phrase, require, unary, vector, wide_float
from layers import complex_of, real_of
from rules import argpartition, axes_of, like_first

# --- searching -----------------------------------------------------------------------------


def sorted_and(d, kinds='f', most=30):
    """A sorted vector, and numbers of its dtype."""
    i = d.pick(lambda x: x.dtype.kind in kinds and x.dtype.itemsize > 2 and 0 < x.size <= most)
    return d.make(d.values[i].dtype, (d.number(2, 5),), 'sorted'), i


def draw_sorted(d):
    a, v = sorted_and(d, 'if')
    if d.name == 'digitize':
        return [v, a], given(right=True if d.chance(0.4) else None)
    return [a, v], given(side=d.one([None, 'right']))


entry('searchsorted', lambda a, v, side='left': np.asarray(np.searchsorted(a, v, side), 'i8'), draw_sorted, derived=False)
entry('digitize', lambda x, bins, right=False: np.asarray(np.searchsorted(bins, x, 'left' if right else 'right'), 'i8'),
      draw_sorted, derived=False)
entry('interp', lambda x, xp, fp: interp(x, xp, fp), lambda d: (lambda a, x: ([x, a, d.of(
    d.values[a].dtype, d.values[a].shape)], {}))(*sorted_and(d)), ulps=4, sums=True, unit='norm', dtype=like_first)


def interp(x, xp, fp):
    k = np.clip(np.searchsorted(xp, x, 'right') - 1, 0, len(xp) - 2)
    t = np.clip((x - xp[k]) / (xp[k + 1] - xp[k]), 0, 1)
    return fp[k] + (fp[k + 1] - fp[k]) * t


def bincount(x, w=None, length=1):
    x, w = x.ravel().astype('i8'), None if w is None else w.ravel()
    kept = (x >= 0) & (x < length)
    if w is None:
        return np.bincount(x[kept], minlength=length).astype('i8')
    out = np.zeros(length, w.dtype)
    np.add.at(out, x[kept], w[kept])
    return out


def draw_bincount(d):
    i = d.pick(lambda x: is_int(x) and vector(x) and x.dtype != np.uint64)
    w = [d.of(np.dtype(d.one(['f4', 'f8'])), d.values[i].shape)] if d.chance(0.5) else []
    return [i, *w], {'length': d.number(1, 7)}


entry('bincount', bincount, draw_bincount, sums=True)
BOUNDS = {'lo': -2.25, 'hi': 2.75}


def histogram(x, edges=None, bins=10, lo=None, hi=None):
    counts, at = np.histogram(x, bins if edges is None else edges, None if lo is None else (lo, hi))
    return counts.astype('i8'), at.astype('f8') if edges is None else edges


def draw_histogram(d):
    i = d.pick(lambda x: wide_float(x) and x.size > 0)
    if d.chance(0.5):
        return [i, d.make(d.values[i].dtype, (d.number(2, 5),), 'sorted')], {}
    return [i], {'bins': d.number(1, 5), **(BOUNDS if d.chance(0.6) else {})}




def on_edges(x, bins=10, lo=None, hi=None):
    """Whether a number lies where a bin of equal width ends."""
    low, high = (np.min(x), np.max(x)) if lo is None else (lo, hi)
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    at = (x.astype('f8') - low) / max(float(high) - float(low), 1e-9) * bins
    return bool(np.any((np.abs(at - np.round(at)) < 1e-5 * bins) & (at > 0.5) & (at < bins - 0.5)))


entry('histogram', histogram, draw_histogram, sums=True, ulps=2, unit='norm', derived=False,
      ties=lambda x, edges=None, **attrs: edges is None and on_edges(x, **attrs))


def histogramdd(x, bins, lo=None, hi=None):
    counts, edges = np.histogramdd(x, bins, None if lo is None else list(zip(lo, hi)))
    return (counts.astype('f8'), *(e.astype('f8') for e in edges))


entry('histogramdd', histogramdd, unary('f', lambda x: wide_float(x) and x.ndim == 2 and x.shape[1] == 2 and x.size > 0, bins=lambda d: [
    d.number(1, 3), d.number(1, 3)], lo=[-2.25, -2.5], hi=[2.75, 2.25]), sums=True, ulps=2, unit='norm', derived=False,
      ties=lambda x, bins, lo, hi: any(on_edges(x[:, k], bins=bins[k], lo=lo[k], hi=hi[k]) for k in (0, 1)))


def histogram2d(x, y, bins):
    counts, a, b = np.histogram2d(x, y, bins)
    return counts.astype('f8'), a.astype('f8'), b.astype('f8')


def two_vectors(d):
    i = d.pick(lambda x: wide_float(x) and vector(x))
    return [i, d.of(d.values[i].dtype, d.values[i].shape)]


entry('histogram2d', histogram2d, lambda d: (two_vectors(d), {'bins': [d.number(1, 3), d.number(1, 3)]}), sums=True, ulps=2,
      unit='norm', results=3, derived=False, ties=lambda x, y, bins: on_edges(x, bins=bins[0]) or on_edges(y, bins=bins[1]))
entry('lexsort', lambda *keys, axis=-1: np.asarray(np.lexsort(keys, axis)), lambda d: (lambda i: ([i, d.of(
    np.dtype(d.one(['i4', 'f4'])), d.values[i].shape)], given(axis=d.one([None, 0]))))(
        d.pick(lambda x: is_number(x) and x.ndim > 0 and x.size > 0)), derived=False)
entry('argpartition', argpartition, lambda d: (lambda i, a: ([i], {
    'kth': d.number(0, d.values[i].shape[a] - 1), 'axis': a}))(*axis_of(d)))


def axis_of(d, fits=is_number):
    i = d.pick(lambda x: fits(x) and x.ndim > 0 and x.size > 0)
    return i, d.axis(i)


for name in ('nanargmax', 'nanargmin'):
    entry(name, lambda x, axis=None, keepdims=False, f=getattr(np, name): np.asarray(f(x, axis=axis, keepdims=keepdims)), lambda d: (
        lambda i, a: ([i], given(axis=d.one([None, a]), keepdims=True if d.chance(0.3) else None)))(*axis_of(d)), finite=False)


def nonzero(x, size):
    found = np.nonzero(x)
    return (*(filled(i, size) for i in found), np.asarray(len(found[0]), 'i8'))


def within_bound(d):
    return d.number(1, 9)


entry('nonzero', nonzero, unary('iuf', lambda x: x.ndim > 0 and x.size > 0, size=within_bound), derived=False)


def unique(name):
    def apply(x, size):
        values, indices, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        parts = {'all': (filled(values, size), filled(indices, size), inverse.reshape(x.shape), filled(counts, size)),
                 'counts': (filled(values, size), filled(counts, size)),
                 'inverse': (filled(values, size), inverse.reshape(x.shape))}[name.split('_')[1]]
        return (*parts, np.asarray(len(values), 'i8'))
    return apply


for name in ('unique_all', 'unique_counts', 'unique_inverse'):
    entry(name, unique(name), lambda d: (lambda i: ([i], {'size': d.values[i].size + d.number(0, 2)}))(
        d.pick(lambda x: is_int(x) and 0 < x.size < 60)))
for name in ('intersect1d', 'setdiff1d', 'setxor1d'):
    entry(name, lambda x, y, size, f=getattr(np, name): (lambda v: (filled(v, size), np.asarray(len(v), 'i8')))(f(x, y)), lambda d: (
        lambda i: ([i, d.pick(lambda x: x.dtype == d.values[i].dtype and 0 < x.size < 60)], {'size': d.number(1, 9)}))(
            d.pick(lambda x: is_int(x) and 0 < x.size < 60)), results=2)

# --- statistics ----------------------------------------------------------------------------


def draw_quantile(d):
    i = d.pick(lambda x: wide_float(x) and x.ndim > 0 and x.size > 0)
    hundred = 'percent' in d.name
    q = d.make(d.values[i].dtype, d.one([(), (2,)]), 'percent' if hundred else 'share')
    axis = d.axes(i)
    count = d.values[i].size if axis is None else np.prod([d.values[i].shape[a] for a in axis])
    require(count > 0)
    return [i, q], given(axis=axis, keepdims=True if d.chance(0.3) else None,
                         method=d.one([None, None, 'lower', 'higher', 'midpoint', 'nearest']))


def quantile(x, q, axis=None, keepdims=False, method='linear', of=1):
    """By NumPy's definition, of the sorted numbers of some axes."""
    axes = tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in axis)
    rest = tuple(a for a in range(x.ndim) if a not in axes)
    y = np.sort(np.transpose(x, rest + axes).reshape(tuple(x.shape[a] for a in rest) + (-1,)), -1)
    at = q / of * (y.shape[-1] - 1)
    low = np.floor(at)
    share = {'linear': at - low, 'lower': 0 * at, 'higher': np.ceil(at) - low, 'midpoint': (np.ceil(at) - low) / 2,
             'nearest': np.round(at) - low}[method]
    k = low.astype('i8')
    share = share.reshape(share.shape + (1,) * len(rest))
    a, b = (np.moveaxis(y[..., np.minimum(i, y.shape[-1] - 1)], list(range(len(rest), len(rest) + q.ndim)), list(range(q.ndim)))
            for i in (k, k + 1))
    out = a + (b - a) * share
    if keepdims:
        out = out.reshape(q.shape + tuple(1 if i in axes else n for i, n in enumerate(x.shape)))
    return out


def size_of_place(x, q):
    """A place among n numbers is known to n roundings of what lies between two."""
    return x.size * float(np.nanmax(x) - np.nanmin(x)) / 8 if np.any(np.isfinite(x)) else 0


for name in ('quantile', 'nanquantile', 'percentile', 'nanpercentile'):
    entry(name, lambda x, q, of=100 if 'percent' in name else 1, **attrs: quantile(x, q, of=of, **attrs), draw_quantile,
          dtype=like_first, ulps=2, sums=True, unit=size_of_place)


def average(x, w=None, axis=None, keepdims=False):
    w = np.ones_like(x) if w is None else w
    return np.sum(x * w, axis=axes_of(axis), keepdims=keepdims) / np.sum(w, axis=axes_of(axis), keepdims=keepdims)


def draw_average(d):
    i = d.pick(lambda x: wide_float(x) and x.size > 0)
    w = [d.of(d.values[i].dtype, d.values[i].shape, 'positive', lambda x: bool(np.all(x > 0.05)))] if d.chance(0.6) else []
    return [i, *w], given(axis=d.axes(i), keepdims=True if d.chance(0.3) else None)


entry('average', average, draw_average, sums=True, ulps=2)


def spread_out(x):
    return wide_float(x) and x.ndim == 2 and x.shape[0] > 0 and x.shape[1] > 2 and bool(np.all(x.astype('f8').std(1) > 0.1))


entry('cov', lambda x, **attrs: np.cov(x, **attrs), unary('f', spread_out, bias=lambda d: True if d.chance(0.3) else None), sums=True,
      ulps=8, unit='norm', dtype=like_first)
entry('corrcoef', lambda x: np.corrcoef(x), unary('f', spread_out), sums=True, ulps=8, unit='norm', dtype=like_first)
entry('gradient', lambda x, axis, edge_order=1: np.gradient(x, axis=axis[0], edge_order=edge_order), lambda d: (lambda i, a: (
    [i], given(axis=[a], edge_order=2 if d.values[i].shape[a] > 2 and d.chance(0.4) else None)))(
        *axis_of(d, lambda x: wide_float(x) and min(x.shape, default=0) > 1)), ulps=2, sums=True, unit='norm')
entry('unwrap', lambda x, axis=-1: np.unwrap(x, axis=axis), lambda d: (lambda i, a: ([i], given(axis=a)))(
    *axis_of(d, lambda x: wide_float(x) and bool(np.all(np.abs(x) < 50)))), sums=True, ulps=8, unit='norm')
entry('vecmat', lambda a, b: np.matmul(a[..., None, :], b)[..., 0, :], lambda d: (lambda i: ([d.of(
    d.values[i].dtype, d.values[i].shape[-2:-1]), i], {}))(d.pick(lambda x: is_number(x) and 1 < x.ndim < 4 and x.size > 0)),
      promotes=True, sums=True)

# --- Fourier transforms --------------------------------------------------------------------

SUMMED = {'sums': True, 'ulps': 4, 'unit': 'norm', 'double': True}


def last(x):
    return x.ndim > 0 and x.size > 0


entry('dft', lambda x, inverse=False, scale=1.0: (np.fft.ifft(x) * x.shape[-1] if inverse else np.fft.fft(x)) * scale, unary(
    'c', last, inverse=lambda d: d.chance(0.5), scale=lambda d: d.one([1.0, 0.5])), **SUMMED, dtype=complex_of)
entry('dft_of_real', lambda x, scale=1.0: np.fft.rfft(x) * scale, unary('f', last, scale=lambda d: d.one([1.0, 0.5])), **SUMMED,
      dtype=complex_of)
entry('dft_to_real', lambda x, n, scale=1.0: np.fft.irfft(x, n) * n * scale, lambda d: (lambda i: ([i], {
    'n': d.one([2 * d.values[i].shape[-1] - 2, 2 * d.values[i].shape[-1] - 1]), 'scale': d.one([1.0, 0.5])}))(
        d.pick(lambda x: is_complex(x) and last(x) and x.shape[-1] > 1)), **SUMMED, dtype=real_of)
entry('hfft', lambda x, **attrs: np.fft.hfft(x, **attrs), lambda d: (lambda i: ([i], given(n=d.number(2, 7), axis=d.axis(i), norm=d.one(
    [None, 'ortho', 'forward']))))(d.pick(lambda x: is_complex(x) and last(x))), **SUMMED, dtype=real_of)
entry('ihfft', lambda x, **attrs: np.fft.ihfft(x, **attrs), lambda d: (lambda i: ([i], given(axis=d.axis(i), norm=d.one(
    [None, 'ortho', 'forward']))))(d.pick(lambda x: wide_float(x) and last(x))), **SUMMED, dtype=complex_of)


def framed(x, window, n_fft, hop_length):
    """Centred frames of a signal that is mirrored at its ends."""
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], 'reflect')
    count = 1 + (x.shape[-1] - n_fft) // hop_length
    return np.stack([x[..., t * hop_length:t * hop_length + n_fft] * window for t in range(count)], -1)


def stft(x, window, n_fft, hop_length):
    return np.fft.rfft(framed(x, window, n_fft, hop_length), axis=-2)


def draw_signal(d):
    i = d.pick(lambda x: wide_float(x) and 0 < x.ndim < 3 and x.shape[-1] > 4)
    return [i, d.make(d.values[i].dtype, (4,), 'positive')], {'n_fft': 4, 'hop_length': d.number(1, 2)}


entry('stft', stft, draw_signal, **SUMMED, dtype=complex_of)


def draw_back(d):
    operands, attrs = draw_signal(d)
    return operands, {**attrs, 'hop_length': 1, 'length': d.values[operands[0]].shape[-1]}


phrase('stft_back', 'stft istft', 's{n} = stft({0}, {1}, n_fft={n_fft}, hop_length={hop_length}); '
       'istft(s{n}, {1}, n_fft={n_fft}, hop_length={hop_length}, length={length})', lambda x, window, **attrs: np.array(x), draw_back,
       sums=True, ulps=32, unit='norm', dtype=like_first, results=1)

# SPDX-License-Identifier: MIT
"""Operators of pack nn that move elements of images: windows as columns, shuffles, places of maxima, sampling;
what is left out by chance, where that is known; sums of rows by number, sequences of labels."""
import numpy as np
from draw import SIZED, given
from entries import entry, phrase, require, wide_float
from networks import channels_last, ensure, lists, pads, pooled, sides, some_images
from rules import like_first

FACTS = {'ulps': 8, 'sums': True, 'unit': True, 'dtype': like_first}
FLOATS = [np.dtype('f4'), np.dtype('f8')]

# --- shuffles -----------------------------------------------------------------------------


@channels_last
def pixel_shuffle(x, upscale_factor):
    n, h, w, c = x.shape
    r = upscale_factor
    return x.reshape(n, h, w, c // r // r, r, r).transpose(0, 1, 4, 2, 5, 3).reshape(n, h * r, w * r, c // r // r)


@channels_last
def pixel_unshuffle(x, downscale_factor):
    n, h, w, c = x.shape
    r = downscale_factor
    return x.reshape(n, h // r, r, w // r, r, c).transpose(0, 1, 3, 5, 2, 4).reshape(n, h // r, w // r, c * r * r)


@channels_last
def channel_shuffle(x, groups):
    return np.swapaxes(x.reshape(*x.shape[:-1], groups, -1), -1, -2).reshape(x.shape)


def image(d, extents, channels):
    axis = d.one([None, 1])
    shape = [d.number(1, 2), *extents, channels]
    return d.make(d.one(FLOATS), shape if axis is None else [shape[0], channels, *extents], 'any'), axis


def shuffled(d):
    i, axis = image(d, [d.number(1, 3), d.number(1, 3)], 4 * d.number(1, 2))
    return [i], given(axis=axis, **{'groups' if d.name == 'channel_shuffle' else 'upscale_factor': 2})


def unshuffled(d):
    i, axis = image(d, [2 * d.number(1, 2), 2 * d.number(1, 2)], d.number(1, 2))
    return [i], given(axis=axis, downscale_factor=2)


entry('pixel_shuffle channel_shuffle', {'pixel_shuffle': pixel_shuffle, 'channel_shuffle': channel_shuffle}, shuffled,
      weight=0.5, finite=False)
entry('pixel_unshuffle', pixel_unshuffle, unshuffled, weight=0.5, finite=False)

# --- windows as columns -------------------------------------------------------------------


def windows_of(extents, window, dilation, padding, stride):
    """For each element of a window the slices of the padded images, and how many windows there are."""
    n = len(extents)
    window, dilation, stride = lists(None, n, window), lists(None, n, dilation), lists(None, n, stride)
    around = sides(n, padding)
    sizes = [(s + low + high - d * (k - 1) - 1) // t + 1
             for s, (low, high), d, k, t in zip(extents, around, dilation, window, stride)]
    ensure(min(sizes) > 0)
    return around, sizes, [tuple(slice(a * d, a * d + (s - 1) * t + 1, t) for a, d, s, t in zip(at, dilation, sizes, stride))
                           for at in np.ndindex(*window)]


def column_axis(f):
    """A function of N, ..., C and of columns N, L, C * elements; `axis` 1: channels ahead."""
    def call(x, axis=-1, **attrs):
        out = f(np.moveaxis(x, 1, -1) if axis == 1 else x, **attrs)
        return np.moveaxis(out, -1, 1) if axis == 1 else out
    return call


@column_axis
def unfold(x, window, dilation=None, padding=None, stride=None):
    around, sizes, parts = windows_of(x.shape[1:-1], window, dilation, padding, stride)
    x = np.pad(x, [(0, 0), *around, (0, 0)])
    columns = np.stack([x[(slice(None), *p)] for p in parts], -1)
    return columns.reshape(x.shape[0], int(np.prod(sizes)), -1)


@column_axis
def fold(x, output_size, window, dilation=None, padding=None, stride=None):
    around, sizes, parts = windows_of(output_size, window, dilation, padding, stride)
    ensure(x.shape[1] == int(np.prod(sizes)) and x.shape[2] % len(parts) == 0)
    columns = x.reshape(x.shape[0], *sizes, -1, len(parts))
    out = np.zeros((x.shape[0], *(s + a + b for s, (a, b) in zip(output_size, around)), columns.shape[-2]), x.dtype)
    for k, p in enumerate(parts):
        out[(slice(None), *p)] += columns[..., k]
    return out[(slice(None), *(slice(a, a + s) for s, (a, _) in zip(output_size, around)))]


def column_attrs(d):
    return {'window': [d.number(1, 2), d.number(1, 3)], 'stride': d.one([None, 2]), 'padding': pads(d, 2),
            'dilation': d.one([None, 2])}


def unfolded(d):
    i, axis = image(d, [d.number(2, 4), d.number(2, 4)], d.number(1, 2))
    return [i], given(axis=axis, **column_attrs(d))


def folded(d):
    attrs, extents, channels = column_attrs(d), [d.number(2, 4), d.number(2, 4)], d.number(1, 2)
    _, sizes, parts = windows_of(extents, **attrs)
    shape, axis = [d.number(1, 2), int(np.prod(sizes)), channels * len(parts)], d.one([None, 1])
    i = d.make(d.one(FLOATS), shape if axis is None else [shape[0], shape[2], shape[1]], 'any')
    return [i], given(axis=axis, output_size=extents, **attrs)


entry('unfold', unfold, unfolded, weight=0.5, finite=False)
entry('fold', fold, folded, weight=0.5, sums=True)

# --- powers, places of maxima --------------------------------------------------------------


def lp_pool(x, norm_type, window, stride=None, ceil_mode=False, axis=-1):
    count = np.prod(lists(None, x.ndim - 2, window))
    means = pooled(lambda part, n: np.sum(part, tuple(range(1, part.ndim - 1))) / n)
    return (means(x ** norm_type, window=window, stride=stride, ceil_mode=ceil_mode, axis=axis) * count) ** (1 / np.asarray(norm_type, x.dtype))


def lp_windows(d):
    n = int(d.name[-2])
    i, axis = image(d, [d.number(2, 6 - n) for _ in range(n)], d.number(1, 2))
    require(np.all(d.values[i] > 0.05))
    return [i], given(norm_type=d.one([1.0, 2.0, 3.0]), window=[d.number(1, 2) for _ in range(n)], axis=axis,
                      stride=d.one([None, d.number(1, 2)]))


entry('lp_pool1d lp_pool2d lp_pool3d', lp_pool, lp_windows, weight=0.5, **FACTS)


def places(x, parts, sizes, axes):
    """The greatest of each window, the first of equal ones, and its number among all of an image."""
    at = np.arange(int(np.prod(x.shape[1:-1]))).reshape(x.shape[1:-1])
    out = np.zeros((x.shape[0], *sizes, x.shape[-1]), x.dtype)
    where = np.zeros(out.shape, 'i8')
    for k, p in parts:
        part = x[(slice(None), *p)].reshape(x.shape[0], -1, x.shape[-1])
        best = np.argmax(part, 1)
        out[(slice(None), *k)] = np.max(part, 1)
        where[(slice(None), *k)] = at[p].reshape(-1)[best]
    return out, where


def with_places(f):
    def call(x, axis=-1, **attrs):
        out = f(np.moveaxis(x, 1, -1) if axis == 1 else x, **attrs)
        return tuple(np.moveaxis(o, -1, 1) if axis == 1 else o for o in out)
    return call


@with_places
def max_pool(x, window, stride=None, padding=None):
    n = x.ndim - 2
    window = lists(None, n, window)
    stride, around = lists(None, n, stride) if stride else window, sides(n, padding)
    sizes = [(s + a + b - k) // t + 1 for s, (a, b), k, t in zip(x.shape[1:-1], around, window, stride)]
    ensure(min(sizes) > 0 and all(2 * max(s) <= k for s, k in zip(around, window)))
    parts = [(at, tuple(slice(max(a * t - b, 0), a * t - b + k) for a, t, (b, _), k in zip(at, stride, around, window)))
             for at in np.ndindex(*sizes)]
    return places(x, parts, sizes, n)


@with_places
def adaptive_max_pool(x, output_size):
    output_size = lists(None, x.ndim - 2, output_size)
    parts = [(at, tuple(slice(a * s // o, -(-(a + 1) * s // o)) for a, s, o in zip(at, x.shape[1:-1], output_size)))
             for at in np.ndindex(*output_size)]
    return places(x, parts, output_size, x.ndim - 2)


def maxima(d):
    n = int(d.name.split('_pool')[1][0])
    i, axis = image(d, [d.number(2, 6 - n) for _ in range(n)], d.number(1, 2))
    if d.name.startswith('adaptive'):
        return [i], given(output_size=[d.number(1, 4) for _ in range(n)], axis=axis)
    return [i], given(window=[d.number(1, 3) for _ in range(n)], stride=d.one([None, d.number(1, 2)]), padding=pads(d, n), axis=axis)


def near_ties(x, *_, **attrs):
    """Whether rounding may decide which of two is greater."""
    least = np.min(np.diff(np.sort(x, None)), initial=1)
    return bool(least < 1e-5 * (1 + np.max(np.abs(x), initial=0)) and least > 0)


for n in '123':
    entry(f'max_pool{n}d_with_indices', max_pool, maxima, weight=0.3, results=2, ties=near_ties)
    entry(f'adaptive_max_pool{n}d_with_indices', adaptive_max_pool, maxima, weight=0.3, results=2, ties=near_ties)


def each_place(d):
    """Windows at every place, where chance has no say."""
    n = int(d.name.split('_pool')[1][0])
    extents, window = [d.number(2, 6 - n) for _ in range(n)], [d.number(1, 2) for _ in range(n)]
    i, axis = image(d, extents, d.number(1, 2))
    return [i], given(window=window, output_size=[e - k + 1 for e, k in zip(extents, window)], axis=axis, seed=d.number(0, 9))


for n in '23':
    entry(f'fractional_max_pool{n}d', lambda x, window, output_size, seed=0, axis=-1: max_pool(x, window=window, stride=1, axis=axis)[0],
          each_place, weight=0.3, ties=near_ties)
    entry(f'fractional_max_pool{n}d_with_indices',
          lambda x, window, output_size, seed=0, axis=-1: max_pool(x, window=window, stride=1, axis=axis), each_place, weight=0.3,
          results=2, ties=near_ties)


def unpool(x, indices, window, stride=None, padding=None, output_size=None, axis=-1):
    x, indices = (np.moveaxis(a, 1, -1) if axis == 1 else a for a in (x, indices))
    out = np.zeros((x.shape[0], int(np.prod(output_size)), x.shape[-1]), x.dtype)
    for n, c in np.ndindex(x.shape[0], x.shape[-1]):
        out[n, indices[n, ..., c].reshape(-1), c] = x[n, ..., c].reshape(-1)
    out = out.reshape(x.shape[0], *output_size, x.shape[-1])
    return np.moveaxis(out, -1, 1) if axis == 1 else out


def pool_and_back(x, window, axis):
    out, where = max_pool(x, window=window, axis=axis)
    extents = list(x.shape[2:] if axis == 1 else x.shape[1:-1])
    return unpool(out, where, window, output_size=extents, axis=axis)


def there_and_back(d):
    n = int(d.name[-2])
    i, axis = image(d, [d.number(2, 6 - n) for _ in range(n)], d.number(1, 2))
    x = d.values[i]
    extents = list(x.shape[2:] if axis == 1 else x.shape[1:-1])
    return [i], {'window': [d.number(1, 2) for _ in range(n)], 'axis': axis or -1, 'size': extents}


for n in '123':
    phrase(f'unpooled{n}d', f'max_unpool{n}d max_pool{n}d_with_indices',
           f'o{{n}}, i{{n}} = max_pool{n}d_with_indices({{0}}, window={{window}}, axis={{axis}}); '
           f'max_unpool{n}d(o{{n}}, i{{n}}, window={{window}}, output_size={{size}}, axis={{axis}})',
           lambda x, window, axis, size: pool_and_back(x, window, axis), there_and_back, weight=0.3, ties=near_ties)

# --- sampling -----------------------------------------------------------------------------


def affine_grid(theta, size, align_corners=False):
    n = len(size) - 2
    extents = size[-n:]
    axes = [(np.linspace(-1, 1, s) if align_corners else (2 * np.arange(s) + 1) / s - 1) if s > 1 or not align_corners
            else np.zeros(1) for s in extents]
    mesh = np.meshgrid(*[a.astype(theta.dtype) for a in axes], indexing='ij')[::-1]
    base = np.stack([*mesh, np.ones(extents, theta.dtype)], -1)
    return np.einsum('nij,...j->n...i', theta, base)


def grid_of(d):
    n, batch = d.number(2, 3), d.number(1, 2)
    theta = d.make(d.one(FLOATS), (batch, n, n + 1), 'any')
    return [theta], given(size=[batch, 1, *(d.number(1, 4) for _ in range(n))], align_corners=d.one([None, True]))


entry('affine_grid', affine_grid, grid_of, weight=0.5, sums=True, ulps=4, unit=True, dtype=like_first)


@channels_last
def grid_sample(x, grid, mode='linear', padding_mode='zeros', align_corners=False):
    """Linear, of zeros or of the border."""
    n = x.ndim - 2
    at = [((g + 1) * (s - 1) / 2 if align_corners else ((g + 1) * s - 1) / 2)
          for g, s in zip(np.moveaxis(grid, -1, 0)[::-1], x.shape[1:-1])]
    if padding_mode == 'border':
        at = [np.clip(a, 0, s - 1) for a, s in zip(at, x.shape[1:-1])]
    out = 0
    batch = np.arange(x.shape[0]).reshape(-1, *[1] * n)
    for corner in np.ndindex(*[2] * n):
        place = [np.floor(a).astype('i8') + c for a, c in zip(at, corner)]
        weight = np.prod([a - np.floor(a) if c else 1 - (a - np.floor(a)) for a, c in zip(at, corner)], 0)
        inside = np.all([(p >= 0) & (p < s) for p, s in zip(place, x.shape[1:-1])], 0)
        part = x[(batch, *(np.clip(p, 0, s - 1) for p, s in zip(place, x.shape[1:-1])))]
        out = out + part * np.where(inside, weight, 0)[..., None]
    return out


def sampled(x, grid, axis=-1, **attrs):
    """channels_last() turns filters, and a grid is none."""
    x = np.moveaxis(x, 1, -1) if axis == 1 else x
    out = grid_sample(x, grid, **attrs)
    return np.moveaxis(out, -1, 1) if axis == 1 else out


def grids(d):
    i, axis = image(d, [d.number(2, 4), d.number(2, 4)], d.number(1, 2))
    x = d.values[i]
    return [i, d.make(x.dtype, (x.shape[0], d.number(1, 3), d.number(1, 3), 2), 'any')], given(
        padding_mode=d.one([None, 'border']), align_corners=d.one([None, True]), axis=axis)


entry('grid_sample', sampled, grids, ulps=16, sums=True, unit=True, dtype=like_first)

# --- chance -------------------------------------------------------------------------------


def untouched(d):
    rank = {'1d': 3, '2d': 4, '3d': 5}.get(d.name[-2:])
    i = d.pick(lambda x: wide_float(x) and x.ndim > 2 and rank in (None, x.ndim))
    return [i], d.one([{'training': False}, {'p': 0.0}])


entry('dropout1d dropout2d dropout3d feature_alpha_dropout', lambda x, **attrs: np.array(x), untouched, weight=0.5, finite=False)
entry('alpha_dropout', lambda x, **attrs: np.array(x), untouched, weight=0.25, finite=False)
entry('rrelu', lambda x, lower=0.125, upper=1 / 3: np.where(x >= 0, x, x * ((np.asarray(lower, 'f8') + upper) / 2).astype('f8')),
      lambda d: ([d.pick(lambda x: wide_float(x) and bool(np.all(np.abs(x) > 0.01)))], given(lower=d.one([None, 0.25]))), weight=0.25,
      **FACTS)
phrase('gumbel_sum', 'gumbel_softmax', 'sum(gumbel_softmax({0}, hard={hard}, seed={seed}), axis=[-1])',
       lambda x, hard, seed: np.ones(x.shape[:-1], x.dtype), lambda d: ([d.pick(
           lambda x: wide_float(x) and x.ndim > 0 and x.size > 0 and bool(np.all(np.abs(x) < 9)))], {
               'hard': d.one([True, False]), 'seed': d.number(0, 99)}), weight=0.25, derived=False, ulps=16, unit=True, dtype=like_first)

# --- vectors ------------------------------------------------------------------------------


def bilinear_of(d):
    dtype, ahead, i, j, o = d.one(FLOATS), d.one([(), (2,), (2, 3)]), d.number(1, 3), d.number(1, 3), d.number(1, 3)
    return [d.make(dtype, s, 'any') for s in ((*ahead, i), (*ahead, j), (o, i, j), (o,))], {}


entry('bilinear', lambda x, y, w, b: np.einsum('...i,oij,...j->...o', x, w, y) + b, bilinear_of, weight=0.5, sums=True, ulps=4)


def embedding_bag(x, weight, factors=None, mode='mean'):
    rows = weight[x]
    if factors is not None:
        rows = rows * factors[..., None]
    return {'sum': np.sum, 'mean': np.mean, 'max': np.max}[mode](rows, 1)


def bags(d):
    weight = d.make(d.one(FLOATS), (6, d.number(1, 3)), 'any')
    x = d.make(np.dtype('i4'), (d.number(1, 3), d.number(1, 4)), 'positive')
    return [x, weight], given(mode=d.one([None, 'sum', 'max']))


entry('embedding_bag', embedding_bag, bags, weight=0.5, sums=True, ulps=2, dtype=lambda x, w, **attrs: np.dtype(w))


@channels_last
def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    before, after = size // 2, (size - 1) // 2
    squares = np.pad(x * x, [(0, 0)] * (x.ndim - 1) + [(before, after)])
    total = sum(squares[..., i:i + x.shape[-1]] for i in range(size))
    return x / (k + alpha * total / size) ** np.asarray(beta, x.dtype)


def responses(d):
    i, axis = some_images(d, d.number(1, 2))
    return [i], given(size=d.number(1, 3), alpha=d.one([None, 0.5]), beta=d.one([None, 0.5]), axis=axis)


entry('local_response_norm', local_response_norm, responses, weight=0.5, **FACTS)


def distances(x, y, p=2.0, eps=1e-6, keepdim=False):
    return np.sum(np.abs(x - y + np.asarray(eps, x.dtype)) ** p, -1, keepdims=keepdim) ** (1 / np.asarray(p, x.dtype))


def two_apart(d):
    dtype, shape = d.one(FLOATS), (d.number(1, 3), d.number(1, 4))
    i, j = d.make(dtype, shape, 'share'), d.make(dtype, shape, 'percent')
    require(np.all(np.abs(d.values[i] - d.values[j]) > 0.05))
    return [i, j], given(p=d.one([None, 1.0, 3.0]), keepdim=d.one([None, True]))


def pdist(x, p=2.0):
    pairs = [(i, j) for i in range(len(x)) for j in range(i + 1, len(x))]
    return np.stack([np.sum(np.abs(x[i] - x[j]) ** p) ** (1 / np.asarray(p, x.dtype)) for i, j in pairs])


entry('pairwise_distance', distances, two_apart, weight=0.5, **FACTS)
entry('pdist', pdist, lambda d: ([d.make(d.one(FLOATS), (d.number(2, 4), d.number(2, 3)), 'any')], given(p=d.one([None, 3.0]))),
      weight=0.5, **FACTS)

# --- sequences of labels ------------------------------------------------------------------


def ctc_loss(logs, targets, lengths, counts, reduction='mean'):
    """By all alignments: of a state to itself, the next one, or over a blank between two labels."""
    own = []
    for n in range(logs.shape[1]):
        labels = [int(t) for t in targets[n, :counts[n]]]
        states = [0] + [s for t in labels for s in (t, 0)]
        alpha = np.full(len(states), -np.inf, logs.dtype)
        alpha[:2] = [logs[0, n, s] for s in states[:2]]
        for t in range(1, int(lengths[n])):
            before = alpha
            alpha = np.empty_like(before)
            for k, s in enumerate(states):
                ways = [before[k]] + ([before[k - 1]] if k else []) + ([before[k - 2]] if k > 1 and s and s != states[k - 2] else [])
                alpha[k] = np.logaddexp.reduce(np.array(ways)) + logs[t, n, s]
        own.append(-np.logaddexp.reduce(alpha[-2:]))
    own = np.array(own, logs.dtype)
    if reduction == 'mean':
        return np.mean(own / np.maximum(counts, 1).astype(logs.dtype))
    return own if reduction == 'none' else np.sum(own)


def sequences(d):
    batch, labels, classes = d.number(1, 2), d.number(1, 2), 6
    length = 2 * labels + 1
    logs = d.make(d.one(FLOATS), (length, batch, classes), 'any')
    i8 = np.dtype('i8')
    return [logs, d.make(i8, (batch, labels), 'positive'), d.make(i8, (batch,), f'length {length}'),
            d.make(i8, (batch,), f'length {labels}')], given(reduction=d.one([None, 'none', 'sum']))


entry('ctc_loss', ctc_loss, sequences, weight=0.5, **{**FACTS, 'ulps': 16})

for name in ('fold', 'unfold', 'pixel_shuffle', 'pixel_unshuffle', 'channel_shuffle', 'grid_sample', 'affine_grid', 'embedding_bag', 'bilinear',
             'pdist', 'ctc_loss', 'local_response_norm', 'pairwise_distance'):
    SIZED.add(name)

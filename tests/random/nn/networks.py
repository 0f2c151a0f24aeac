# SPDX-License-Identifier: MIT
"""Operators of pack nn: convolutions, pooling, activations, norms, recurrence, attention."""
import golden_operators as golden
import numpy as np
from draw import SIZED, given
from entries import entry, require, unary, wide_float, within
from layers import log_softmax, softmax
from rules import like_first

FACTS = {'ulps': 8, 'sums': True, 'unit': True, 'dtype': like_first}


def ensure(condition):
    if not condition:
        raise ValueError('shapes that do not fit')


# --- images -------------------------------------------------------------------------------


def lists(x, n, value, absent=1):
    value = absent if value is None else value
    value = value if isinstance(value, list) else [value]
    return value * n if len(value) == 1 else value


def sides(n, padding):
    padding = lists(None, n, padding, 0)
    return [tuple(padding[2 * i:2 * i + 2]) for i in range(n)] if len(padding) == 2 * n > n else [(p, p) for p in padding]


def channels_last(f):
    """A function of arrays with channels last, by `axis`."""
    def call(x, *others, axis=-1, **attrs):
        if axis == 1:
            x = np.moveaxis(x, 1, -1)
            others = [np.moveaxis(w, 1, -1) if w is not None and w.ndim > 1 else w for w in others]
        out = f(x, *others, **attrs)
        return np.moveaxis(out, -1, 1) if axis == 1 else out
    return call


@channels_last
def convolution(x, w, bias=None, stride=None, padding=None, dilation=None, input_dilation=None, groups=1, flip=False):
    n = x.ndim - 2
    stride, dilation, steps = (lists(x, n, v) for v in (stride, dilation, input_dilation))
    w = np.flip(w, tuple(range(1, n + 1))) if flip else w
    wide = np.zeros((x.shape[0], *((s - 1) * d + 1 for s, d in zip(x.shape[1:-1], steps)), x.shape[-1]), x.dtype)
    wide[(slice(None), *(slice(None, None, d) for d in steps))] = x
    x = np.pad(wide, [(0, 0), *sides(n, padding), (0, 0)])
    sizes = [(s - d * (k - 1) - 1) // t + 1 for s, d, k, t in zip(x.shape[1:-1], dilation, w.shape[1:-1], stride)]
    ensure(min(sizes) > 0)
    out = np.zeros((x.shape[0], *sizes, w.shape[0]), x.dtype)
    inputs, outputs = w.shape[-1], w.shape[0] // groups
    ensure(x.shape[-1] == inputs * groups and w.shape[0] % groups == 0)
    for at in np.ndindex(*w.shape[1:-1]):
        part = x[(slice(None), *(slice(a * d, a * d + (s - 1) * t + 1, t)
                                 for a, d, s, t in zip(at, dilation, sizes, stride)))]
        for g in range(groups):
            of = slice(g * outputs, (g + 1) * outputs)
            out[..., of] += part[..., g * inputs:(g + 1) * inputs] @ w[(of, *at)].T
    return out if bias is None else out + bias


@channels_last
def transpose(x, w, bias=None, stride=None, padding=None, dilation=None, output_padding=None, groups=1, flip=False):
    n = x.ndim - 2
    stride, dilation = (lists(x, n, v) for v in (stride, dilation))
    more = lists(x, n, output_padding, 0)
    w = np.flip(w, tuple(range(1, n + 1))) if flip else w
    full = [(s - 1) * t + d * (k - 1) + 1 for s, t, d, k in zip(x.shape[1:-1], stride, dilation, w.shape[1:-1])]
    inputs, outputs = w.shape[0] // groups, w.shape[-1]
    ensure(x.shape[-1] == w.shape[0] and w.shape[0] % groups == 0)
    out = np.zeros((x.shape[0], *(f + m for f, m in zip(full, more)), outputs * groups), x.dtype)
    for at in np.ndindex(*w.shape[1:-1]):
        to = (slice(None), *(slice(a * d, a * d + (s - 1) * t + 1, t)
                             for a, d, s, t in zip(at, dilation, x.shape[1:-1], stride)))
        for g in range(groups):
            of = slice(g * inputs, (g + 1) * inputs)
            out[to + (slice(g * outputs, (g + 1) * outputs),)] += x[..., of] @ w[(of, *at)]
    kept = [(low, f + m - high) for (low, high), f, m in zip(sides(n, padding), full, more)]
    ensure(all(low < high - m for (low, high), m in zip(kept, more)))  # zeros alone are refused
    out = out[(slice(None), *(slice(*k) for k in kept))]
    return out if bias is None else out + bias


def some_images(d, n, channels=None):
    shape = [d.number(1, 2), *(d.number(1, 6 - n) for _ in range(n)), channels or d.number(1, 3)]
    axis = d.one([None, 1])
    if axis == 1:
        shape = [shape[0], shape[-1], *shape[1:-1]]
    i = d.pick(lambda x: wide_float(x) and x.ndim == n + 2 and x.size > 0) if d.chance(0.4) and not channels else d.make(
        d.one([np.dtype('f4'), np.dtype('f8')]), shape, 'any')
    return i, axis


def pads(d, n, most=1):
    return d.one([None, d.number(0, most), [d.number(0, most) for _ in range(n)],
                  [d.number(0, most) for _ in range(2 * n)]])


def filters(d, transposed):
    n = int(d.name[-2])
    groups = d.one([1, 1, 2])
    i, axis = some_images(d, n, d.number(1, 2) * groups)
    x = d.values[i]
    channels = x.shape[1 if axis == 1 else -1]
    window = [d.number(1, 3 if n < 3 else 2) for _ in range(n)]
    ends = (channels, d.number(1, 2)) if transposed else (d.number(1, 2) * groups, channels // groups)
    w = d.of(x.dtype, (ends[0], ends[1], *window) if axis == 1 else (ends[0], *window, ends[1]))
    bias = [d.of(x.dtype, (ends[1] * groups if transposed else ends[0],))] if d.chance(0.3) else []
    attrs = given(axis=axis, groups=groups if groups > 1 else None, stride=d.one([None, d.number(1, 2)]), padding=pads(d, n),
                  dilation=d.one([None, 2]), flip=d.one([None, True]),
                  output_padding=d.one([None, d.number(0, 2)]) if transposed else None,
                  input_dilation=d.one([None, 2]) if not transposed else None)
    return [i, w, *bias], attrs


entry('conv1d conv2d conv3d', convolution, lambda d: filters(d, False), sums=True)
entry('conv_transpose1d conv_transpose2d conv_transpose3d', transpose, lambda d: filters(d, True), sums=True)


def pooled(f):
    @channels_last
    def call(x, window, stride=None, padding=None, ceil_mode=False, count_include_pad=True, divisor_override=0):
        n = x.ndim - 2
        window = lists(x, n, window)
        stride, around = lists(x, n, stride) if stride else window, sides(n, padding)
        sizes = []
        for s, k, t, (low, high) in zip(x.shape[1:-1], window, stride, around):
            ensure(k <= s + low + high and 2 * max(low, high) <= k)
            count = (s + low + high - k + (t - 1 if ceil_mode else 0)) // t + 1
            sizes.append(count - (ceil_mode and (count - 1) * t >= s + low))
        out = np.zeros((x.shape[0], *sizes, x.shape[-1]), x.dtype)
        for at in np.ndindex(*sizes):
            first = [a * t - low for a, t, (low, _) in zip(at, stride, around)]
            part = x[(slice(None), *(slice(max(a, 0), a + k) for a, k in zip(first, window)))]
            counted = [min(a + k, s + (high if count_include_pad else 0)) - (a if count_include_pad else max(a, 0))
                       for a, k, s, (_, high) in zip(first, window, x.shape[1:-1], around)]
            out[(slice(None), *at)] = f(part, divisor_override or int(np.prod(counted)))
        return out
    return call


def divided(f):
    @channels_last
    def call(x, output_size):
        n = x.ndim - 2
        output_size = lists(x, n, output_size)
        out = np.zeros((x.shape[0], *output_size, x.shape[-1]), x.dtype)
        for at in np.ndindex(*output_size):
            part = x[(slice(None), *(slice(a * s // o, -(-(a + 1) * s // o))
                                     for a, s, o in zip(at, x.shape[1:-1], output_size)))]
            out[(slice(None), *at)] = f(part, int(np.prod(part.shape[1:-1])))
        return out
    return call


def greatest(part, count):
    return np.max(part, axis=tuple(range(1, part.ndim - 1)))


def mean(part, count):
    return np.sum(part, axis=tuple(range(1, part.ndim - 1))) / count


def windows(d):
    n = int(d.name[-2])
    i, axis = some_images(d, n)
    attrs = {'window': [d.number(1, 3) for _ in range(n)], 'axis': axis, 'stride': d.one([None, d.number(1, 3)]),
             'padding': pads(d, n), 'ceil_mode': d.one([None, True])}
    if d.name.startswith('avg'):
        attrs.update(count_include_pad=d.one([None, False]), divisor_override=d.one([None, None, 3]))
    return [i], given(**attrs)


def outputs(d):
    n = int(d.name[-2])
    i, axis = some_images(d, n)
    return [i], given(output_size=[d.number(1, 4) for _ in range(n)], axis=axis)


entry('max_pool1d max_pool2d max_pool3d', pooled(greatest), windows)
entry('avg_pool1d avg_pool2d avg_pool3d', pooled(mean), windows, ulps=4, sums=True, dtype=like_first)
for n in '123':
    entry(f'adaptive_max_pool{n}d', divided(greatest), outputs)
    entry(f'adaptive_avg_pool{n}d', divided(mean), outputs, ulps=4, sums=True, dtype=like_first)


def all_but(x, axis):
    return tuple(a for a in range(1, x.ndim) if a != axis % x.ndim)


entry('global_avg_pool global_max_pool', {
    'global_avg_pool': lambda x, axis=-1, keepdims=True: np.mean(x, axis=all_but(x, axis), keepdims=keepdims),
    'global_max_pool': lambda x, axis=-1, keepdims=True: np.max(x, axis=all_but(x, axis), keepdims=keepdims)},
      unary(fits=lambda x: wide_float(x) and x.ndim > 2 and x.size > 0, axis=lambda d: d.one([None, 1]),
            keepdims=lambda d: d.one([None, False])), ulps=2, sums=True, dtype=like_first)


def plane(d):
    """mean_pool2d and its transpose, which avg_pool2d checks and counts for."""
    i, _ = some_images(d, 2)
    x = d.values[i]
    require(x.ndim == 4)
    window, stride = [d.number(1, 3) for _ in 'ab'], [d.number(1, 2) for _ in 'ab']
    before = [d.number(0, k // 2) for k in window]
    if d.name == 'mean_pool2d':
        extent = [(s + b - k) // t + 1 for s, b, k, t in zip(x.shape[1:3], before, window, stride)]
    else:
        extent = [(s - 1) * t + k - b for s, b, k, t in zip(x.shape[1:3], before, window, stride)]
    require(min(extent) > 0)
    return [i], given(window=window, stride=stride, before=before, after=[0, 0], extent=extent,
                      count_padding=d.one([None, False]), divisor=d.one([None, 3]))


def spread(x, window, stride, before, after, extent, count_padding=True, divisor=0):
    """Each element is shared out among its window's."""
    ensure(all((s - 1) * t - b <= e for s, t, b, e in zip(x.shape[1:3], stride, before, extent)))
    out = np.zeros((x.shape[0], *extent, x.shape[3]), x.dtype)
    for at in np.ndindex(*x.shape[1:3]):
        first = [a * t - b for a, t, b in zip(at, stride, before)]
        ends = [min(a + k, s) for a, k, s in zip(first, window, extent)]
        count = [e - (a if count_padding else max(a, 0)) for a, e in zip(first, ends)]
        to = out[:, max(first[0], 0):ends[0], max(first[1], 0):ends[1]]
        to += (x[:, at[0], at[1]] / (divisor or count[0] * count[1]))[:, None, None]
    return out


def means(x, window, stride, before, after, extent, count_padding=True, divisor=0):
    out = np.zeros((x.shape[0], *extent, x.shape[3]), x.dtype)
    for at in np.ndindex(*extent):
        first = [a * t - b for a, t, b in zip(at, stride, before)]
        ends = [min(a + k, s) for a, k, s in zip(first, window, x.shape[1:3])]
        count = [e - (a if count_padding else max(a, 0)) for a, e in zip(first, ends)]
        part = x[:, max(first[0], 0):ends[0], max(first[1], 0):ends[1]]
        out[:, at[0], at[1]] = np.sum(part, axis=(1, 2)) / (divisor or count[0] * count[1])
    return out


entry('mean_pool2d mean_pool2d_input', {'mean_pool2d': means, 'mean_pool2d_input': spread}, plane, ulps=4, sums=True,
      dtype=like_first)

# --- activations --------------------------------------------------------------------------


def logsigmoid(x):
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def softplus(x, beta=1.0, threshold=20.0):
    u = beta * x
    return np.where(u > threshold, x, np.log1p(np.exp(np.minimum(u, threshold))) / beta)


ACTIVATIONS = {
    'relu6': lambda x: np.clip(x, 0, 6), 'relu2': lambda x: np.where(x <= 0, 0 * x, x * x),
    'selu': lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772),
    'mish': lambda x: x * np.tanh(softplus(x)), 'hardswish': lambda x: x * np.clip(x + 3, 0, 6) / 6,
    'hardsigmoid': lambda x: np.clip(x / 6 + x.dtype.type(0.5), 0, 1), 'logsigmoid': logsigmoid,
    'softsign': lambda x: x / (1 + np.abs(x)), 'tanhshrink': lambda x: x - np.tanh(x)}
NUMBERS = {
    'leaky_relu': (lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x), 'negative_slope'),
    'elu': (elu, 'alpha'), 'celu': (lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)), 'alpha'),
    'hardshrink': (lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0 * x, x), 'lambd'),
    'softshrink': (lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0), 'lambd'),
    'squareplus': (lambda x, b=4.0: np.where(x >= 0, (x + np.sqrt(x * x + b)) / 2, b / 2 / (np.sqrt(x * x + b) - x)), 'b')}


def smooth(x):
    """Away from bends, which are at these numbers."""
    return within(-30, 30)(x) and all(bool(np.all(np.abs(x - bend) > 1e-2)) for bend in (0, 0.5, -0.5, 1, -1, 3, -3, 4, 6, 20))


entry(' '.join(ACTIVATIONS), ACTIVATIONS, unary(fits=smooth), weight=0.4, **FACTS)
for name, (f, attr) in NUMBERS.items():
    entry(name, f, unary(fits=smooth, **{attr: lambda d: d.one([None, 1.0])}), weight=0.4, **FACTS)
entry('softplus', softplus, unary(fits=smooth, beta=lambda d: d.one([None, 1.0]), threshold=lambda d: d.one([None, 4.0])), **FACTS)
entry('hardtanh', lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
      unary(fits=smooth, min_val=lambda d: d.one([None, -3.0]), max_val=lambda d: d.one([None, 6.0])), **FACTS)
entry('threshold', lambda x, threshold, value: np.where(x > threshold, x, x.dtype.type(value)),
      unary(fits=smooth, threshold=lambda d: d.one([0.5, -1.0]), value=lambda d: 7.0), **FACTS)


def axis_of_float(d, fits=lambda x: True):
    i = d.pick(lambda x: within(-30, 30)(x) and wide_float(x) and x.ndim > 0 and x.size > 0 and fits(x))
    return i, d.axis(i)


def softmin_of(d):
    i, axis = axis_of_float(d)
    return [i], {'axis': axis}


def glu_of(d):
    i, axis = axis_of_float(d)
    require(d.values[i].shape[axis] % 2 == 0)
    return [i], {'axis': axis}


def glu(x, axis=-1):
    a, b = np.split(x, 2, axis)
    return a / (1 + np.exp(-b))


def prelu_of(d):
    i, axis = axis_of_float(d, smooth)
    x = d.values[i]
    return [i, d.of(x.dtype, (d.one([1, x.shape[axis]]),))], {'axis': axis}


def prelu(x, weight, axis=-1):
    return np.where(x > 0, x, np.moveaxis(np.moveaxis(x, axis, -1) * weight, -1, axis))


entry('softmin', lambda x, axis=-1: softmax(-x, axis), softmin_of, **FACTS)
entry('glu', glu, glu_of, **FACTS)
entry('prelu', prelu, prelu_of, **FACTS)

# --- layers -------------------------------------------------------------------------------


def linear_of(d):
    i = d.pick(lambda x: wide_float(x) and x.ndim > 0 and x.size > 0)
    x, n = d.values[i], d.number(1, 3)
    return [i, d.of(x.dtype, (n, x.shape[-1]))] + ([d.of(x.dtype, (n,))] if d.chance(0.5) else []), {}


entry('linear', lambda x, w, b=0: x @ w.T + b, linear_of, sums=True)


def channels_of(d, norms):
    """An array of several elements a channel, and vectors of channels; variances are squares."""
    shape = [d.number(2, 4), d.number(2, 3), d.number(1, 3)]
    axis = d.one([None, 1])
    dtype = d.one([np.dtype('f4'), np.dtype('f8')])
    i = d.make(dtype, shape if axis is None else [shape[0], shape[2], shape[1]], 'share')
    more = [d.make(dtype, (shape[2],), 'share') for _ in range(4 if norms else 2)]
    return [i, *more], given(axis=axis, eps=d.one([0.5, 0.1]), **({'training': d.one([None, True]), 'momentum': d.one([None, 0.5])} if norms else {}))


def batch_norm(x, mean, var, weight, bias, axis=-1, eps=1e-5, training=False, momentum=0.1):
    y = np.moveaxis(x, axis, -1)
    others = tuple(range(y.ndim - 1))
    if training:
        count = y.size // y.shape[-1]
        now, spread = y.mean(others), y.var(others)
        mean, var, old, older = now, spread, mean, var
        after = old + momentum * (now - old), older + momentum * (spread * count / (count - 1) - older)
    else:
        after = mean, var
    out = (y - mean) / np.sqrt(var + eps) * weight + bias
    return np.moveaxis(out, -1, axis), *after


def instance_norm(x, weight, bias, axis=-1, eps=1e-5):
    y = np.moveaxis(x, axis, -1)
    others = tuple(range(1, y.ndim - 1))
    y = (y - y.mean(others, keepdims=True)) / np.sqrt(y.var(others, keepdims=True) + eps)
    return np.moveaxis(y * weight + bias, -1, axis)


entry('batch_norm', batch_norm, lambda d: channels_of(d, True), results=3, ulps=8, sums=True, unit='norm',
      dtype=like_first)
entry('instance_norm', instance_norm, lambda d: channels_of(d, False), ulps=8, sums=True, unit='norm', dtype=like_first)


def resized(d):
    mode = d.one([None, 'nearest_exact', 'linear', 'area', 'cubic'])
    i, axis = some_images(d, 2 if mode == 'cubic' else d.number(1, 2))
    n = d.values[i].ndim - 2
    require(mode != 'cubic' or n == 2)
    corners = d.one([None, True]) if mode in ('linear', 'cubic') else None
    to = {'size': [d.number(1, 6) for _ in range(n)]} if d.chance(0.7) else {'scale_factor': [d.one([0.5, 1.0, 1.5, 2.0])] * n}
    return [i], given(**to, mode=mode, align_corners=corners, axis=axis)


def cubic(t):
    """Weights of four neighbours, by Keys with a = -0.75, as PyTorch's."""
    def near(u):
        return (1.25 * u - 2.25) * u * u + 1

    def far(u):
        return ((-0.75 * u + 3.75) * u - 6) * u + 3
    return far(t + 1), near(t), near(1 - t), far(2 - t)


@channels_last
def interpolate(x, size=None, scale_factor=None, mode='nearest', align_corners=False):
    size = size or [int(np.floor(n * f)) for n, f in zip(x.shape[1:-1], scale_factor)]
    ensure(min(size) > 0)
    if mode == 'area':
        return divided(mean)(x, size)
    for a, n in enumerate(size, 1):
        most = x.shape[a] - 1
        ratio = 1 / np.longdouble(scale_factor[0]) if scale_factor else np.longdouble(x.shape[a]) / n
        if align_corners:
            at = np.arange(n) * (np.longdouble(most) / max(n - 1, 1))
        else:
            at = (np.arange(n) + (0 if mode == 'nearest' else 0.5)) * ratio - (0.5 if mode in ('linear', 'cubic') else 0)
        at = np.maximum(at, 0) if mode == 'linear' else at
        low = np.floor(at).astype('i8')
        part = (at - np.floor(at)).astype(x.dtype).reshape(-1, *[1] * (x.ndim - 1 - a))

        def neighbour(k):
            return np.take(x, np.clip(low + k, 0, most), a)
        if mode == 'cubic':
            x = sum(w * neighbour(k) for k, w in zip((-1, 0, 1, 2), cubic(part)))
        else:
            x = neighbour(0) * (1 - part) + neighbour(1) * part if mode == 'linear' else neighbour(0)
    return x


entry('interpolate', interpolate, resized, ulps=8, sums=True, unit='norm', dtype=like_first)


def recurrent_of(d):
    gates = {'lstm': 4, 'gru': 3, 'rnn': 1}[d.name]
    length, batch, inputs, hidden = (d.number(1, 3) for _ in range(4))
    dtype = d.one([np.dtype('f4'), np.dtype('f8')])
    shapes = [(length, batch, inputs), (gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,),
              (batch, hidden)] + ([(batch, hidden)] if d.name == 'lstm' else [])
    first = d.one([None, True])
    shapes[0] = (batch, length, inputs) if first else shapes[0]
    return [d.make(dtype, s, 'share') for s in shapes], given(
        reverse=d.one([None, True]), batch_first=first, nonlinearity=d.one([None, 'relu']) if d.name == 'rnn' else None)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent(step):
    def call(x, w, u, b, c, *state, reverse=False, batch_first=False, **attrs):
        x = np.swapaxes(x, 0, 1) if batch_first else x
        out = [None] * len(x)
        for t in range(len(x))[::-1 if reverse else 1]:
            state = step(x[t] @ w.T + b, state[0] @ u.T + c, *state, **attrs)
            out[t] = state[0]
        return np.stack(out, 1 if batch_first else 0), *state
    return call


def lstm_step(a, b, h, c):
    i, f, g, o = np.split(a + b, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(a, b, h):
    (r, z, n), (s, y, m) = np.split(a, 3, -1), np.split(b, 3, -1)
    z = sigmoid(z + y)
    return ((1 - z) * np.tanh(n + sigmoid(r + s) * m) + z * h,)


def rnn_step(a, b, h, nonlinearity='tanh'):
    return (np.tanh(a + b) if nonlinearity == 'tanh' else np.maximum(a + b, 0),)


for name, step, results in (('lstm', lstm_step, 3), ('gru', gru_step, 2), ('rnn', rnn_step, 2)):
    entry(name, recurrent(step), recurrent_of, results=results, ulps=16, sums=True, unit=True, dtype=like_first)


def causal_of(d):
    groups, n, k = d.number(1, 2), d.number(1, 2), d.number(1, 3)
    dtype = d.one([np.dtype('f4'), np.dtype('f8')])
    shapes = [(n, d.number(1, 4), groups), (groups, k, 1), (groups,), (n, (k - 1) * 2, groups)]
    return [d.make(dtype, s, 'any') for s in shapes], {'groups': groups, 'dilation': 2}


def causal(x, w, bias, state, groups, dilation):
    ensure(state.shape[1] == (w.shape[1] - 1) * dilation)
    whole = np.concatenate([state, x], 1)
    return convolution(whole, w, bias, dilation=[dilation], groups=groups), whole[:, x.shape[1]:]


entry('causal_conv1d', causal, causal_of, results=2, sums=True)


def masked(d, q, keys):
    """A mask, lengths, and what else hides keys; the mask hides no row whole."""
    attrs = given(scale=d.one([None, 0.5]), is_causal=d.one([None, True]), soft_cap=d.one([None, None, 2.0]), window=d.one([None, None, 2]))
    kind = d.one(['none', 'none', 'bool', 'added'])
    if kind == 'none':
        return [], attrs
    shape = d.one([(q.shape[-2], keys), (1, keys), q.shape[:-1] + (keys,)])
    return [d.make(np.dtype('?') if kind == 'bool' else q.dtype, shape, 'any')], attrs


def heads_of(d, sinks):
    groups, share, queries, keys, width = d.one([1, 2]), d.one([1, 2]), d.number(1, 4), d.number(1, 5), d.number(1, 3)
    dtype, ahead = d.one([np.dtype('f4'), np.dtype('f8')]), d.one([(), (2,)])
    shapes = [(*ahead, groups * share, queries, width), (*ahead, groups, keys, width), (*ahead, groups, keys, d.number(1, 3))]
    q, k, v = (d.make(dtype, s, 'any') for s in shapes)
    more, attrs = masked(d, d.values[q], keys)
    if sinks:
        more = [d.make(dtype, (groups * share,), 'any'), *more]
    elif more and d.chance(0.4):
        more.append(d.make(np.dtype('i4'), d.one([(), ahead]), 'positive'))
    return [q, k, v, *more], attrs


def attention(q, k, v, mask=None, lengths=None, **attrs):
    return golden.attention(q, k, v, mask, lengths, **attrs)


def with_sinks(q, k, v, sinks, mask=None, scale=0, is_causal=False, window=0, soft_cap=0):
    k, v = golden.shared_heads(q, k), golden.shared_heads(q, v)
    scores = q @ np.swapaxes(k, -1, -2) * (scale or 1 / np.sqrt(np.asarray(q.shape[-1], q.dtype)))
    scores = soft_cap * np.tanh(scores / soft_cap) if soft_cap else scores
    i, j = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    seen = (j <= i if is_causal else j >= 0) & (i - j < window if window else j >= 0)
    if mask is not None and mask.dtype == bool:
        seen = seen & mask
    elif mask is not None:
        scores = scores + mask
    scores = np.where(seen, scores, -np.inf)
    column = np.broadcast_to(sinks[:, None, None], scores.shape[:-1] + (1,))
    return softmax(np.concatenate([scores, column], -1))[..., :-1] @ v


# Where everything is hidden the result is 0, and rounding cannot change what is seen.
entry('scaled_dot_product_attention', attention, lambda d: heads_of(d, False), weight=1.5, ulps=6, sums=True, dtype=like_first)
entry('attention_with_sinks', with_sinks, lambda d: heads_of(d, True), weight=1.5, ulps=8, sums=True, unit=True, dtype=like_first)

SIZED.update(('lstm', 'gru', 'rnn', 'causal_conv1d', 'attention_with_sinks', 'scaled_dot_product_attention', 'batch_norm'))

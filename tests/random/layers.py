# SPDX-License-Identifier: MIT
"""What the operators of packs nn and fft, and those with graphs, give: further RULES."""
import golden_operators as golden
import numpy as np
from rules import like_first, rule

# --- norms, losses ------------------------------------------------------------------------


def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x, axis=-1):
    y = x - np.max(x, axis=axis, keepdims=True)
    return y - np.log(np.sum(np.exp(y), axis=axis, keepdims=True))


def normed(x, axis, eps):
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps)


def layer_norm(x, weight, bias, eps=1e-5, axis=-1):
    return normed(x, axis, eps) * weight + bias


def rms_norm(x, weight, eps=1e-5, axis=-1):
    return x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + eps) * weight


def group_norm(x, weight, bias, groups, eps=1e-5, axis=-1):
    y = np.moveaxis(x, axis, 1)
    y = normed(y.reshape(x.shape[0], groups, -1), -1, eps).reshape(y.shape)
    column = (-1,) + (1,) * (x.ndim - 2)
    return np.moveaxis(y * weight.reshape(column) + bias.reshape(column), 1, axis)


rule('softmax', softmax, ulps=3, sums=True, dtype=like_first)
rule('log_softmax', log_softmax, ulps=3, sums=True, unit=True, dtype=like_first)
rule('layer_norm', layer_norm, promotes=True, ulps=3, sums=True, dtype=like_first, unit='norm')
rule('rms_norm', rms_norm, promotes=True, ulps=3, sums=True, dtype=like_first, unit='norm')
rule('group_norm', group_norm, promotes=True, ulps=3, sums=True, dtype=like_first, unit='norm')

# --- images -------------------------------------------------------------------------------


def padded(x, padding, value):
    (top, left), (bottom, right) = padding[:2], padding[2:] or padding[:2]
    return np.pad(x, [(0, 0), (top, bottom), (left, right), (0, 0)], constant_values=value)


def conv2d(x, w, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    """Loops over the filter's places."""
    x = padded(x, list(padding), 0)
    if any(n < k for n, k in zip(x.shape[1:3], w.shape[1:3])):
        raise ValueError('filters are larger than images')
    rows = (x.shape[1] - dilation[0] * (w.shape[1] - 1) - 1) // stride[0] + 1
    columns = (x.shape[2] - dilation[1] * (w.shape[2] - 1) - 1) // stride[1] + 1
    out = np.zeros((x.shape[0], rows, columns, w.shape[0]), x.dtype)
    inputs, outputs = w.shape[3], w.shape[0] // groups
    for i in range(w.shape[1]):
        for j in range(w.shape[2]):
            part = x[:, i * dilation[0]:, j * dilation[1]:][:, ::stride[0], ::stride[1]][:, :rows, :columns]
            for g in range(groups):
                of = slice(g * outputs, (g + 1) * outputs)
                out[..., of] += part[..., g * inputs:(g + 1) * inputs] @ w[of, i, j].T
    return out if bias is None else out + bias


def max_pool2d(x, window, stride=None, padding=(0, 0)):
    stride = stride or window
    x = padded(x, list(padding), -np.inf)
    if any(w > n for w, n in zip(window, x.shape[1:3])):
        raise ValueError('a window is larger than images')
    rows, columns = ((x.shape[1 + a] - window[a]) // stride[a] + 1 for a in (0, 1))
    out = np.full((x.shape[0], rows, columns, x.shape[3]), -np.inf, x.dtype)
    for i in range(window[0]):
        for j in range(window[1]):
            out = np.maximum(out, x[:, i:, j:][:, ::stride[0], ::stride[1]][:, :rows, :columns])
    return out



# --- rotation -----------------------------------------------------------------------------

rule('rope', lambda x, f, interleaved=False, axis=-2: np.moveaxis(golden.turned(
    np.moveaxis(x, axis, -2), f, np.arange(x.shape[axis]).astype(x.dtype), interleaved), -2, axis),
     ulps=6, sums=True, dtype=like_first)

# --- optimisers ---------------------------------------------------------------------------


def sgd(p, g, m, lr=0.01, momentum=0, weight_decay=0):
    m = momentum * m + g + weight_decay * p
    return p - lr * m, m


def adam(p, g, m, v, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    t = step.astype(p.dtype)
    way = m / (1 - beta1 ** t) / (np.sqrt(v / (1 - beta2 ** t)) + eps)
    return p - lr * (way + weight_decay * p), m, v


rule('sgd', sgd, ulps=2, sums=True, dtype=like_first, results=2)
rule('adam', adam, ulps=8, sums=True, dtype=like_first, results=3)
rule('dropout', lambda x, p=0.5, training=True: np.zeros_like(x) if training and p == 1 else np.array(x), dtype=like_first)

# --- Fourier transforms -------------------------------------------------------------------


def complex_of(*dtypes, **attrs):
    """f16, f32 and complex64 give complex64, all else complex128."""
    return np.dtype('c8' if dtypes[0] in ('f2', 'f4', 'c8') else 'c16')


def real_of(*dtypes, **attrs):
    return np.dtype('f4' if dtypes[0] in ('f2', 'f4', 'c8') else 'f8')


def transform(name):
    f = getattr(np.fft, name)
    return lambda x, **attrs: f(x, **attrs)


for names, dtype in (('fft ifft rfft fft2 ifft2 fftn ifftn rfft2 rfftn', complex_of),
                     ('irfft irfft2 irfftn', real_of)):
    for name in names.split():
        rule(name, transform(name), ulps=4, sums=True, double=True, dtype=dtype, unit='norm')
rule('fftshift', lambda x, axes=None: np.fft.fftshift(x, axes))
rule('ifftshift', lambda x, axes=None: np.fft.ifftshift(x, axes))

# --- graphs as attributes -----------------------------------------------------------------

BODIES = {'x -> x * 0.5 + 1': lambda x: x * 0.5 + 1, 'x -> sin(x)': np.sin, 'x -> x * x': np.square,
          'x -> tanh(x) + x': lambda x: np.tanh(x) + x}
PAIRS = {'s, x -> s * 0.5 + x, s - x': lambda s, x: (s * 0.5 + x, s - x),
         's, x -> maximum(s, x), s * x': lambda s, x: (np.maximum(s, x), s * x)}


def cond(pred, x, then, otherwise):
    return BODIES[then if pred else otherwise](x)


def while_loop(x, body, times):
    for _ in range(times):
        x = BODIES[body](x)
    return x


def scan(carry, x, body, carries, slices, reverse=False):
    """The last carry, what is stacked, and what was carried to each slice."""
    out, before = [None] * len(x), [None] * len(x)
    for i in range(len(x))[::-1 if reverse else 1]:
        before[i] = carry
        carry, out[i] = PAIRS[body](carry, x[i])
    return carry, np.stack(out), np.stack(before)


rule('cond', cond, ulps=3, sums=True, dtype=lambda pred, x, **attrs: x)
rule('while_loop', while_loop, ulps=6, sums=True, dtype=like_first)
rule('checkpoint', lambda x, body: BODIES[body](x), ulps=3, sums=True, dtype=like_first)
rule('scan', scan, ulps=6, sums=True, dtype=like_first, results=3)

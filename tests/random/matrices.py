# SPDX-License-Identifier: MIT
"""Operators of pack linalg, and derivatives that are operators of pack nn. Factors are drawn as phrases that
give back what was factored, or functions of it: signs and orders of vectors are nobody's."""
import golden_operators as golden
import numpy as np
from draw import given
from entries import entry, phrase, wide_float
from layers import conv2d, max_pool2d
from rules import axes_of, like_first

SOLVED = {'sums': True, 'ulps': 64, 'double': True, 'unit': 'norm', 'dtype': like_first}
F4, F8 = np.dtype('f4'), np.dtype('f8')


def matrix(d, style='dominant', rows=None, columns=None, stack=True):
    n = d.number(1, 4)
    ahead = (d.number(1, 2),) if stack and d.chance(0.3) else ()
    return d.make(d.one([F4, F8]), ahead + (n if rows is None else rows, n if columns is None else columns), style)


def of_matrix(style='dominant', stack=True):
    return lambda d: ([matrix(d, style, stack=stack)], {})


def turned(x):
    return np.swapaxes(x, -1, -2)


def eye_like(a):
    return np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)


def expm(a):
    """Squared sixteen times behind a series."""
    a, out = a / 65536, np.array(eye_like(a))
    term = out
    for k in range(1, 12):
        term = term @ a / k
        out = out + term
    for _ in range(16):
        out = out @ out
    return out


def triangle(a, lower=False, unit_diagonal=False):
    t = np.tril(a) if lower else np.triu(a)
    return t - t * eye_like(a) + eye_like(a) if unit_diagonal else t


def solve_triangular(a, b, lower=False, transpose='none', unit_diagonal=False):
    """By substitution, which is exact where LU with exchanged rows is not."""
    t = triangle(a, lower, unit_diagonal)
    t, lower = (turned(t), not lower) if transpose != 'none' else (t, lower)
    ahead = np.broadcast_shapes(t.shape[:-2], b.shape[:-2])
    x, n = np.array(np.broadcast_to(b, ahead + b.shape[-2:])), t.shape[-1]
    for i in range(n) if lower else range(n)[::-1]:
        done = slice(0, i) if lower else slice(i + 1, n)
        x[..., i, :] = (x[..., i, :] - np.einsum('...k,...kj->...j', t[..., i, done], x[..., done, :])) / t[..., i, i, None]
    return x


def draw_triangular(d):
    i = matrix(d)
    x = d.values[i]
    return [i, d.of(x.dtype, x.shape[:-1] + (d.number(1, 3),))], given(
        lower=True if d.chance(0.5) else None, transpose=d.one([None, 'transpose', 'adjoint']),
        unit_diagonal=True if d.chance(0.3) else None)


def norm(x, ord=None, axis=None, keepdims=False):  # noqa: A002: the operator's name
    return np.asarray(np.linalg.norm(x, ord, axes_of(axis), keepdims))


entry('linalg.adjugate', lambda a: np.linalg.det(a)[..., None, None] * np.linalg.inv(a) if a.shape[-1] > 1 else np.ones_like(a), of_matrix(), **SOLVED)
entry('linalg.cholesky_inv', lambda a: np.linalg.inv(np.tril(a) @ turned(np.tril(a))), of_matrix('definite'), **SOLVED)
entry('linalg.tri_inv', lambda a, upper=False: np.linalg.inv(triangle(a, not upper)), lambda d: ([matrix(d)], given(
    upper=True if d.chance(0.5) else None)), **SOLVED)
entry('linalg.solve_triangular', solve_triangular, draw_triangular, **SOLVED)
entry('linalg.expm', expm, of_matrix('any'), sums=True, ulps=64, unit='norm', dtype=like_first)
entry('linalg.pinv', lambda a: np.linalg.pinv(a), lambda d: ([matrix(d, 'tall', 4, d.number(1, 2))], {}), **SOLVED)
entry('linalg.svdvals', lambda a: np.linalg.svd(a, compute_uv=False), of_matrix(), **SOLVED)
entry('linalg.slogdet', lambda a: tuple(np.asarray(p) for p in np.linalg.slogdet(a)), of_matrix(), sums=True, ulps=64,
      double=True, unit=True, results=2, dtype=like_first)
entry('linalg.matrix_rank', lambda a: np.asarray(np.linalg.matrix_rank(a)), of_matrix('definite'), double=True, derived=False)


def order(x, ord=None, **attrs):  # noqa: A002
    return np.asarray(np.linalg.norm(x, axis=(-2, -1), ord=ord if ord in (None, 'fro', 'nuc') else float(ord), **attrs))


entry('linalg.cond', lambda a, p='2': np.asarray(np.linalg.cond(a, p if p == 'fro' else float(p))), lambda d: ([matrix(d)], given(
    p=d.one([None, 'fro', '1', 'inf', '-2']))), **SOLVED)
entry('linalg.matrix_norm', order, lambda d: ([matrix(d)], given(ord=d.one([None, 'fro', '1', 'inf', '2', 'nuc']),
                                                                 keepdims=True if d.chance(0.3) else None)), **SOLVED)


def away_from_zero(x):
    return wide_float(x) and 0 < x.ndim < 4 and x.size > 0 and bool(np.all(np.abs(x) > 0.01))


entry('linalg.vector_norm', norm, lambda d: (lambda i: ([i], given(axis=[d.axis(i)], ord=d.one([2.0, 1.0, 3.0]), keepdims=True if d.chance(
    0.3) else None)))(d.pick(away_from_zero)), sums=True, ulps=8, dtype=like_first)
entry('linalg.norm', norm, lambda d: ([d.pick(away_from_zero)], {}), sums=True, ulps=8, dtype=like_first)

# --- factors -------------------------------------------------------------------------------

A_WHOLE = {**SOLVED, 'results': 1}
phrase('by_lu', 'linalg.lu', 'p{n}, l{n}, u{n} = linalg.lu({0}); p{n} @ l{n} @ u{n} + triu(l{n}, 1) + tril(u{n}, -1)',
       lambda a: np.array(a), of_matrix(), **A_WHOLE)
phrase('by_lu_factor', 'linalg.lu_factor linalg.lu_permutation',
       'f{n}, v{n} = linalg.lu_factor({0}); o{n} = argsort(linalg.lu_permutation(v{n}, rows={rows})); '
       'take((tril(f{n}, -1) + eye({rows}, dtype={dtype})) @ triu(f{n}), o{n}, axis=0)', lambda a, rows, dtype: np.array(a),
       lambda d: (lambda i: ([i], {'rows': d.values[i].shape[0], 'dtype': 'f32' if d.values[i].dtype == F4 else 'f64'}))(
           matrix(d, stack=False)), **A_WHOLE)
phrase('by_qr', 'linalg.qr', 'q{n}, r{n} = linalg.qr({0}); q{n} @ r{n} + q{n}.mT @ q{n} + tril(r{n}, -1)',
       lambda a: a + eye_like(a), of_matrix(), **A_WHOLE)


def by_svd(a):
    u, s, v = np.linalg.svd(a)
    return (u * np.sin(s)[..., None, :]) @ v + eye_like(a)


def by_eigh(a):
    a = np.tril(a) + turned(np.tril(a, -1))
    w, v = np.linalg.eigh(a)
    return (v * np.tanh(w)[..., None, :]) @ turned(v) + eye_like(a)


phrase('by_svd', 'linalg.svd', 'u{n}, s{n}, v{n} = linalg.svd({0}); '
       '(u{n} * expand_dims(sin(s{n}), axis=[-2])) @ v{n} + u{n}.mT @ u{n}', by_svd, of_matrix(), derived=False, **A_WHOLE)
phrase('by_eigh', 'linalg.eigh', 'w{n}, v{n} = linalg.eigh({0}); '
       '(v{n} * expand_dims(tanh(w{n}), axis=[-2])) @ v{n}.mT + v{n}.mT @ v{n}', by_eigh, of_matrix('definite'), derived=False,
       **A_WHOLE)
phrase('by_eig', 'linalg.eig', 'w{n}, v{n} = linalg.eig({0}); real(v{n} @ (expand_dims(w{n}, axis=[-1]) * linalg.inv(v{n})))',
       lambda a: np.array(a), of_matrix('definite'), derived=False, **A_WHOLE)
phrase('by_eigvals', 'linalg.eigvals', 'w{n} = linalg.eigvals({0}); real(sum(w{n} * w{n}, axis=[-1]))',
       lambda a: np.asarray(np.trace(a @ a, axis1=-2, axis2=-1)), of_matrix(), derived=False, **A_WHOLE)
phrase('by_lstsq', 'linalg.lstsq', 'x{n}, r{n}, k{n}, s{n} = linalg.lstsq({0}, {1}); x{n}',
       lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], lambda d: (lambda i: ([i, d.of(d.values[i].dtype, (4, 2))], {}))(
           matrix(d, 'tall', 4, d.number(1, 2), False)), **A_WHOLE)

# --- derivatives of layers -----------------------------------------------------------------


def attention_grad(q, k, v, gradient, **attrs):
    return golden.attention_gradients(q, k, v, gradient, None, None, **attrs)


def products_within(q, k, v, gradient, *more):
    most = [float(np.max(np.abs(x), initial=0)) for x in (q, k, v, gradient)]
    return (1 + most[3]) * (1 + most[2]) * (1 + most[0] + most[1]) * q.shape[-1]


def draw_attention(d):
    i = d.pick(lambda x: wide_float(x) and x.ndim in (2, 3) and x.size > 0)
    q, rows, n = d.values[i], d.number(1, 5), d.number(1, 4)
    k, v = d.of(q.dtype, q.shape[:-2] + (rows, q.shape[-1])), d.of(q.dtype, q.shape[:-2] + (rows, n))
    return [i, k, v, d.of(q.dtype, q.shape[:-1] + (n,))], {'scale': d.one([0.5, 0.25]), 'is_causal': d.chance(0.4)}


phrase('attention_grad_of', 'attention_grad',
       'o{n} = scaled_dot_product_attention({0}, {1}, {2}, scale={scale}, is_causal={is_causal}); '
       'attention_grad({0}, {1}, {2}, o{n}, {3}, scale={scale}, is_causal={is_causal})', attention_grad, draw_attention,
       derived=False, sums=True, ulps=16, unit=products_within, results=3, dtype=like_first)


def draw_norm(d):
    i = d.pick(lambda x: wide_float(x) and x.ndim > 0 and x.size > 0)
    x = d.values[i]
    return [i, d.of(x.dtype, x.shape[-1:]), d.of(x.dtype, x.shape)], {'eps': 0.1}


def normed_terms(x, w, g):
    """The greatest of the terms that gradients of layer_norm are sums of, which may cancel."""
    scale = 1 / np.sqrt(np.var(x, -1, keepdims=True) + 0.1)
    sums = np.abs(g).reshape(-1, g.shape[-1]).sum(0) * np.sqrt(g.shape[-1])
    return float(max(np.max(np.abs(g * w) * scale, initial=0), np.max(sums, initial=0)))


entry('layer_norm_grad', lambda x, w, g, eps: golden.layer_norm_gradients(x, w, g, eps), draw_norm, derived=False, sums=True, ulps=4,
      unit=normed_terms, results=3, dtype=like_first)


def transposed(linear, shape, gradient):
    """The transpose of a linear function of arrays of this shape, one by one."""
    out = np.zeros(int(np.prod(shape)), gradient.dtype)
    for k in range(len(out)):
        one = np.zeros(len(out), gradient.dtype)
        one[k] = 1
        out[k] = np.sum(linear(one.reshape(shape)) * gradient)
    return out.reshape(shape)


def conv2d_input(g, w, extent, stride, padding):
    shape = (g.shape[0], *extent, w.shape[3])
    return transposed(lambda x: conv2d(x, w, None, stride, padding), shape, g)


def conv2d_weight(x, g, extent, stride, padding):
    return transposed(lambda w: conv2d(x, w, None, stride, padding), (g.shape[3], *extent, x.shape[3]), g)


def draw_conv(d):
    x = (d.number(1, 2), d.number(2, 4), d.number(2, 4), d.number(1, 2))
    w = (d.number(1, 2), d.number(1, 2), d.number(1, 2), x[3])
    stride, padding, dtype = [d.number(1, 2) for _ in 'ab'], [d.number(0, 1) for _ in 'ab'], d.one([F4, F8])
    g = conv2d(np.zeros(x), np.zeros(w), None, stride, padding).shape
    attrs = {'stride': stride, 'padding': padding}
    if d.name == 'conv2d_input':
        return [d.of(dtype, g), d.of(dtype, w)], {**attrs, 'extent': list(x[1:3])}
    return [d.of(dtype, x), d.of(dtype, g)], {**attrs, 'extent': list(w[1:3])}


entry('conv2d_input', conv2d_input, draw_conv, sums=True, ulps=2)
entry('conv2d_weight', conv2d_weight, draw_conv, sums=True, ulps=2)


def max_pool2d_grad(x, g, window, stride):
    out, whole = np.zeros_like(x), max_pool2d(x, window, stride)
    for at in np.ndindex(whole.shape):
        n, i, j, c = at
        part = x[n, i * stride[0]:i * stride[0] + window[0], j * stride[1]:j * stride[1] + window[1], c]
        a, b = np.unravel_index(np.argmax(part), part.shape)
        out[n, i * stride[0] + a, j * stride[1] + b, c] += g[at]
    return out


def draw_pool(d):
    dtype, window, stride = d.one([F4, F8]), [d.number(1, 2) for _ in 'ab'], [d.number(1, 2) for _ in 'ab']
    i = d.make(dtype, (d.number(1, 2), d.number(2, 4), d.number(2, 4), d.number(1, 2)), 'any')
    g = max_pool2d(d.values[i], window, stride)
    return [i, d.of(dtype, g.shape)], {'window': window, 'stride': stride}


phrase('max_pool2d_grad_of', 'max_pool2d_grad', 'm{n} = max_pool2d({0}, window={window}, stride={stride}); '
       'max_pool2d_grad({0}, m{n}, {1}, window={window}, stride={stride})', max_pool2d_grad, draw_pool, derived=False, sums=True)

# SPDX-License-Identifier: MIT
"""What operators give, by NumPy: RULES[name] computes in whatever dtype its operands have, so that
programs.py can evaluate in a wider one."""
import math

import numpy as np
from golden_operators import order_of

RULES = {}


class Rule:
    """`promotes`: operands get their common dtype first. `floats`: whole numbers become floats.
    `ulps`: how far off a right result may be that was rounded before it was exact; 0: what is
    exact has to come out. `sums`: adds up products or elements in any order. `double`: NumPy has
    it in f64 at most. `narrow`: is computed in the operands' dtype. `dtype`: of the results by the
    operands' dtypes, where it is not NumPy's. `unit`: numbers near 1 are rounded on the way,
    whatever the size of the result; 'norm': as large ones as the greatest result; a function of the
    operands tells their size. `ties`: tells of operands whether rounding decides by jumps; `steep`: whether
    there is no slope, which differences of what stays there do not show."""

    def __init__(self, function, promotes=False, floats=False, ulps=0, sums=False, double=False,
                 narrow=False, dtype=None, results=1, unit=False, ties=None, steep=None):
        self.function, self.promotes, self.floats = function, promotes, floats
        self.ulps, self.sums, self.double, self.narrow = ulps, sums, double, narrow
        self.dtype, self.results, self.unit, self.ties, self.steep = dtype, results, unit, ties, steep


def like_first(*dtypes, **attrs):
    """The first operand's dtype, f64 of whole numbers."""
    return np.dtype(dtypes[0] if dtypes[0][0] in 'fcgG' else 'f8')


def rule(names, function, **facts):
    for name in names.split():
        given = function(name) if function.__name__ == 'make' else function
        RULES[name] = Rule(given, **facts)


def by_numpy(make_of):
    def make(name):
        return make_of(name)
    return make


def vectorised(function):
    f = np.vectorize(function, otypes=['f8'])

    def apply(x):
        x = np.asarray(x)
        return f(x.astype('f8')) if x.size else np.zeros(x.shape)
    return apply


def axes_of(axis):
    return tuple(axis) if isinstance(axis, list) else axis


# --- element by element -------------------------------------------------------------------

numpy_of = by_numpy(lambda name: getattr(np, name))
rule('exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh '
     'arccosh arctanh', numpy_of, floats=True, ulps=2)
rule('sqrt', np.sqrt, floats=True, steep=lambda x: bool(np.any(x == 0)))
rule('rsqrt', lambda x: 1 / np.sqrt(x), dtype=like_first, floats=True, ulps=2)
rule('square', np.square)
rule('reciprocal', lambda x: 1 / x, dtype=like_first, floats=True)
rule('abs', np.abs)
rule('negative', np.negative)
rule('sign', np.sign)
rule('floor ceil trunc', numpy_of)
rule('round', np.round)
rule('isnan isinf isfinite', numpy_of)
rule('copy stop_gradient', lambda x: np.array(x))
rule('conjugate', np.conjugate)
rule('real imag', numpy_of)
rule('angle', np.angle, ulps=2)
erf, erfc = vectorised(math.erf), vectorised(math.erfc)


def erfinv(x):
    """Newton's method from a rough start."""
    x = np.asarray(x, 'f8')
    w = np.log1p(-x * x) / 2 + 2 / (np.pi * 0.147)
    y = np.sign(x) * np.sqrt(np.sqrt(w * w - np.log1p(-x * x) / 0.147) - w)
    for _ in range(4):
        y = y - (erf(y) - x) * np.sqrt(np.pi) / 2 * np.exp(y * y)
    return np.where(np.abs(x) == 1, x * np.inf, y)


def gelu(x, approximate='none'):
    if approximate == 'tanh':
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return x / 2 * erfc(-x / np.sqrt(2))


def sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


rule('erf', erf, dtype=like_first, floats=True, ulps=2, double=True)
rule('erfinv', erfinv, dtype=like_first, floats=True, ulps=6, double=True)
rule('erfc', erfc, dtype=like_first, floats=True, ulps=4, double=True)
rule('sigmoid', sigmoid, dtype=like_first, floats=True, ulps=3)
rule('relu', lambda x: np.maximum(x, 0), dtype=like_first)
rule('silu', lambda x: x * sigmoid(x), dtype=like_first, floats=True, ulps=4)
rule('gelu', gelu, dtype=like_first, floats=True, ulps=6, double=True, unit=True)
rule('cbrt', np.cbrt, floats=True, ulps=2)
rule('lgamma', vectorised(math.lgamma), dtype=like_first, ulps=16, double=True, unit=True)
rule('tgamma', vectorised(math.gamma), dtype=like_first, ulps=16, double=True)
rule('hypot copysign fmod', numpy_of, promotes=True, ulps=1)
rule('nextafter', np.nextafter, promotes=True, narrow=True)
rule('fdim', lambda x, y: np.where((x > y) | np.isnan(x) | np.isnan(y), x - y, 0).astype(x.dtype), promotes=True, ulps=1)
rule('fma', lambda x, y, z: x * y + z, promotes=True, ulps=1, sums=True)


def floor_divide(x, y):
    with np.errstate(all='ignore'):
        return np.floor_divide(x, y)


def power(x, y):
    return np.power(x, y)


rule('add subtract multiply', numpy_of, promotes=True)
rule('divide', np.divide, promotes=True, floats=True)
rule('floor_divide', floor_divide, promotes=True)
rule('remainder', np.remainder, promotes=True)
rule('power', power, promotes=True, ulps=4)
rule('maximum minimum', numpy_of, promotes=True)
rule('arctan2', np.arctan2, promotes=True, floats=True, ulps=3)
rule('equal not_equal less less_equal greater greater_equal', numpy_of, promotes=True)
rule('logical_and logical_or logical_xor logical_not', numpy_of)
rule('bitwise_and bitwise_or bitwise_xor left_shift right_shift', numpy_of, promotes=True)
rule('invert', np.invert)
rule('clip', lambda x, lo=-np.inf, hi=np.inf: np.clip(x, lo, hi).astype(x.dtype))


def where(c, x, y):
    common = np.promote_types(x.dtype, y.dtype)
    return np.where(c, x.astype(common), y.astype(common))


rule('where', where)


def astype(x, dtype):
    """The nearest number of an integer's dtype, 0 for NaN; low bits of whole numbers."""
    to = np.dtype(DTYPES[dtype])
    if x.dtype.kind in 'fg' and to.kind == 'f':
        return x  # programs.py rounds, once
    if x.dtype.kind == 'f' and to.kind in 'iu':
        info = np.iinfo(to)
        x = np.trunc(np.nan_to_num(x.astype(np.longdouble), nan=0, posinf=np.inf, neginf=-np.inf))
        low, high = np.longdouble(info.min), np.longdouble(info.max)
        return np.where(x >= high, info.max, np.where(x <= low, info.min, np.clip(x, low, high).astype(to))).astype(to)
    if x.dtype.kind == 'c' and to.kind != 'c':
        x = x.real
    return x.astype(to)


DTYPES = {'bool': '?', 'i8': 'i1', 'i16': 'i2', 'i32': 'i4', 'i64': 'i8', 'u8': 'u1', 'u16': 'u2',
          'u32': 'u4', 'u64': 'u8', 'f16': 'f2', 'f32': 'f4', 'f64': 'f8', 'complex64': 'c8',
          'complex128': 'c16'}
rule('astype', astype, dtype=lambda x, dtype: np.dtype(DTYPES[dtype]))

# --- reductions, running results, orders --------------------------------------------------


def reduction(name):
    f = getattr(np, name)
    return lambda x, axis=None, keepdims=False: f(x, axis=axes_of(axis), keepdims=keepdims)


rule('sum prod mean', by_numpy(reduction), sums=True)
RULES['mean'].floats = True
rule('max min all any', by_numpy(reduction))


def spread(name):
    f = getattr(np, name)
    return lambda x, axis=None, keepdims=False, ddof=0: f(x, axis=axes_of(axis), keepdims=keepdims, ddof=ddof)


def all_alike(x, axis=None, **attrs):
    """Whether a variance is 0 but for rounding."""
    eps = np.finfo(x.dtype).eps if x.dtype.kind in 'fc' else 0
    axis = axes_of(axis)
    return bool(np.any(np.var(x, axis=axis) <= (8 * eps) ** 2 * np.mean(np.abs(x) ** 2, axis=axis)) and np.any(x))


rule('var std', by_numpy(spread), floats=True, ulps=2, sums=True, ties=all_alike)


def argument(name):
    f = getattr(np, name)

    def apply(x, axis=None, keepdims=False):
        return np.asarray(f(x, axis=axis, keepdims=keepdims))
    return apply


rule('argmax argmin', by_numpy(argument))


def logsumexp(x, axis=None, keepdims=False):
    axis = axes_of(axis)
    most = np.max(x, axis=axis, keepdims=True)
    most = np.where(np.isfinite(most), most, 0)
    s = np.log(np.sum(np.exp(x - most), axis=axis, keepdims=True)) + most
    return s if keepdims else s.reshape(np.sum(x, axis=axis).shape)


rule('logsumexp', logsumexp, dtype=like_first, floats=True, ulps=3, sums=True, unit=True)


def running(name):
    f = {'cumsum': np.cumsum, 'cumprod': np.cumprod, 'cummax': np.maximum.accumulate,
         'cummin': np.minimum.accumulate}[name]

    def apply(x, axis=None, reverse=False):
        x, axis = (x.ravel(), 0) if axis is None else (x, axis)
        return np.flip(f(np.flip(x, axis), axis), axis) if reverse else f(x, axis)
    return apply


rule('cumsum cumprod', by_numpy(running), sums=True)
rule('cummax cummin', by_numpy(running))


def argsort(x, axis=-1, descending=False):
    return order_of(x, axis, descending)


def sort(x, axis=-1, descending=False):
    return np.take_along_axis(x, argsort(x, axis, descending), axis)


def argpartition(x, kth, axis=-1):
    """Places before, at and behind place kth of a sort, each part in ascending order."""
    places = np.argsort(argsort(x, axis), axis)
    return np.argsort(np.sign(places - kth % x.shape[axis]), axis, kind='stable')


def partition(x, kth, axis=-1):
    return np.take_along_axis(x, argpartition(x, kth, axis), axis)


def topk(x, k, axis=-1, largest=True):
    at = np.take(argsort(x, axis, largest), np.arange(k), axis)
    return np.take_along_axis(x, at, axis), at


rule('argsort', argsort)
rule('sort', sort)
rule('topk', topk)

# --- arranging ----------------------------------------------------------------------------

rule('index', lambda x, key: x[eval('np.s_[' + key + ']')])  # noqa: S307: written by operators.py
rule('reshape', lambda x, shape: x.reshape(shape))
rule('transpose', lambda x, axes=None: np.transpose(x, axes))
rule('T', np.transpose)
rule('mT', lambda x: np.swapaxes(x, -1, -2))
rule('flip', lambda x, axis=None: np.flip(x, axes_of(axis)))
rule('roll', lambda x, shift, axis=None: np.roll(x, shift[0] if axis is None else shift, axes_of(axis)))
rule('repeat', lambda x, repeats, axis=None: np.repeat(x, repeats, axis))
rule('tile', lambda x, reps: np.tile(x, reps))
rule('pad', lambda x, before, after, value=0: np.pad(x, list(zip(before, after)), constant_values=value))
rule('expand_dims', lambda x, axis: np.expand_dims(x, tuple(axis)))
rule('squeeze', lambda x, axis=None: np.squeeze(x, axes_of(axis)))
rule('broadcast_to', lambda x, shape: np.broadcast_to(x, shape))
rule('tril triu', by_numpy(lambda name: lambda x, k=0: getattr(np, name)(x, k)))


def together(name):
    def apply(*arrays, axis=0):
        common = np.result_type(*[x.dtype for x in arrays])
        return getattr(np, name)([x.astype(common) for x in arrays], axis)
    return apply


rule('concatenate stack', by_numpy(together))


def split(x, sections=0, indices=None, axis=0, uneven=False):
    if sections and x.shape[axis] % sections and not uneven:
        raise ValueError('parts of different extents')
    return tuple(np.array_split(x, sections, axis) if sections else np.split(x, indices, axis))


rule('split', split)


def sum_to(x, shape):
    if np.broadcast_shapes(x.shape, tuple(shape)) != x.shape:
        raise ValueError('does not broadcast')
    x = x.sum(tuple(range(x.ndim - len(shape))))
    return x.sum(tuple(i for i, n in enumerate(shape) if x.shape[i] != n), keepdims=True)


rule('sum_to', sum_to, sums=True, dtype=lambda x, **attrs: x)


def slices(start, stop, step):
    end = 2**63 - 1
    return tuple(slice(a, None if b == end else b, c) for a, b, c in zip(start, stop, step))


rule('slice', lambda x, start, stop, step: x[slices(start, stop, step)])


def slice_update(x, update, start, stop, step):
    out = np.array(x)
    out[slices(start, stop, step)] = update
    return out


def begin_of(x, start, sizes):
    """Where a part begins: negative indices count from the end, what does not fit is moved."""
    if start.shape != (x.ndim,) or any(n > e for n, e in zip(sizes, x.shape)):
        raise ValueError('no such part')
    return tuple(slice(a, a + n) for a, n in zip(
        [min(max(int(s) + (e if s < 0 else 0), 0), e - n) for s, e, n in zip(start, x.shape, sizes)], sizes))


def dynamic_slice_update(x, update, start):
    out = np.array(x)
    out[begin_of(x, start, update.shape)] = update
    return out


rule('slice_update', slice_update)
rule('dynamic_slice', lambda x, start, sizes: x[begin_of(x, start, sizes)])
rule('dynamic_slice_update', dynamic_slice_update)

# --- making -------------------------------------------------------------------------------

rule('arange', lambda start=0, stop=1, step=1, dtype='f32': np.arange(start, stop, step).astype(DTYPES[dtype]))
rule('full', lambda shape, value=0, dtype='f32': np.full(shape, value, DTYPES[dtype]))
rule('eye', lambda n, m=-1, k=0, dtype='f32': np.eye(n, n if m < 0 else m, k, DTYPES[dtype]))
rule('linspace', lambda start, stop, num=50, endpoint=True: np.linspace(start, stop, num, endpoint), ulps=4)
rule('fftfreq', lambda n, d=1: np.fft.fftfreq(n, d), ulps=2)
rule('rfftfreq', lambda n, d=1: np.fft.rfftfreq(n, d), ulps=2)


def one_hot(x, num_classes, axis=-1, dtype='i64'):
    hot = (x[..., None] == np.arange(num_classes)).astype(DTYPES[dtype])
    return np.moveaxis(hot, -1, axis)


rule('one_hot', one_hot)

# --- indexing -----------------------------------------------------------------------------


def signed(indices):
    return (np.minimum(indices, 2**62) if indices.dtype.kind == 'u' else indices).astype('i8')


def clamped(indices, extent):
    indices = signed(indices)
    return np.clip(np.where(indices < 0, indices + extent, indices), 0, max(extent - 1, 0))


def inside(indices, extent):
    """Which indices are elements', and their numbers."""
    indices = signed(indices)
    indices = np.where(indices < 0, indices + extent, indices)
    return (indices >= 0) & (indices < extent), indices


def take_along_axis(x, indices, axis=-1):
    shape = list(np.broadcast_shapes(
        tuple(1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)),
        tuple(1 if i == axis % x.ndim else n for i, n in enumerate(indices.shape))))
    shape[axis] = indices.shape[axis]
    at = np.broadcast_to(clamped(indices, x.shape[axis]), shape)
    shape[axis] = x.shape[axis]
    return np.take_along_axis(np.broadcast_to(x, shape), at, axis)


rule('take', lambda x, i, axis=0: np.take(x, clamped(i, x.shape[axis]), axis))
rule('take_along_axis', take_along_axis)


def gather(x, *indices, axes=None):
    axes = list(range(len(indices))) if axes is None else [a % x.ndim for a in axes]
    order = axes + [a for a in range(x.ndim) if a not in axes]
    return np.transpose(x, order)[tuple(clamped(i, x.shape[a]) for i, a in zip(indices, axes))]


UPDATES = {'add': np.add, 'max': np.maximum, 'min': np.minimum}


def put(out, at, updates, kept, mode):
    """Writes the updates that are kept, one behind the other."""
    at = [np.broadcast_to(a, kept.shape)[kept] for a in at]
    updates = np.broadcast_to(updates, kept.shape + out.shape[len(at):])[kept]
    if mode == 'set':
        for k in range(len(updates)):
            out[tuple(a[k] for a in at)] = updates[k]
    else:
        UPDATES[mode].at(out, tuple(at), updates)
    return out


def scatter(x, updates, *indices, axes=None, mode='set'):
    axes = list(range(len(indices))) if axes is None else [a % x.ndim for a in axes]
    order = axes + [a for a in range(x.ndim) if a not in axes]
    found = [inside(i, x.shape[a]) for i, a in zip(indices, axes)]
    kept = np.logical_and.reduce(np.broadcast_arrays(*[f[0] for f in found]))
    out = put(np.array(np.transpose(x, order)), [f[1] for f in found], updates, kept, mode)
    return np.transpose(out, np.argsort(order))


def scatter_along(name):
    def apply(x, indices, updates, axis=0):
        out = np.moveaxis(np.array(x), axis, 0)
        kept, at = inside(indices, x.shape[axis])
        if updates.shape != x.shape[:axis] + indices.shape + x.shape[axis + 1:]:
            raise ValueError('updates of another shape')
        updates = np.moveaxis(updates, list(range(axis, axis + indices.ndim)), list(range(indices.ndim)))
        return np.moveaxis(put(out, [at], updates, kept, name.split('_')[1]), 0, axis)
    return apply


def put_along_axis(x, indices, values, axis=-1, mode='set'):
    out = np.array(x)
    shape = list(x.shape)
    shape[axis] = indices.shape[axis]
    kept, at = inside(np.broadcast_to(indices, shape), x.shape[axis])
    grid = list(np.indices(shape))
    grid[axis % x.ndim] = at
    return put(out, grid, np.broadcast_to(values, shape), kept, mode)


rule('gather', gather)
rule('scatter', scatter, sums=True)
rule('scatter_add scatter_max scatter_min scatter_set', by_numpy(scatter_along), sums=True)
rule('put_along_axis', put_along_axis, sums=True)

# --- products -----------------------------------------------------------------------------


rule('matmul', np.matmul, promotes=True, sums=True)
rule('einsum', lambda *arrays, equation: np.einsum(equation, *arrays), promotes=True, sums=True)
rule('blas.dot', lambda x, y: np.dot(x, y), sums=True)
rule('blas.nrm2', lambda x: np.sqrt(np.sum(x * x)), sums=True, ulps=2)
rule('blas.asum', lambda x: np.sum(np.abs(x)), sums=True)
rule('blas.gemv', lambda a, x, y, alpha=1, beta=1: alpha * (a @ x) + beta * y, sums=True, ulps=1)
rule('blas.gemm', lambda a, b, c, alpha=1, beta=1: alpha * (a @ b) + beta * c, sums=True, ulps=1)
rule('blas.ger', lambda x, y, a, alpha=1: alpha * np.outer(x, y) + a, sums=True, ulps=1)
rule('blas.axpby', lambda x, y, alpha=1, beta=1: alpha * x + beta * y, sums=True, ulps=1)
rule('blas.iamax', lambda x: np.asarray(np.argmax(np.abs(x))), dtype=lambda *x, **attrs: np.dtype('i8'))
rule('linalg.solve', lambda a, b: np.linalg.solve(a, b), dtype=like_first, sums=True, ulps=64, double=True)
rule('potrf', lambda a: np.linalg.cholesky(a) + np.triu(a, 1), sums=True, ulps=64, double=True)
rule('linalg.cholesky', lambda a: np.linalg.cholesky(a), sums=True, ulps=64, double=True, unit='norm')
rule('linalg.inv', lambda a: np.linalg.inv(a), sums=True, ulps=64, double=True, unit='norm')
rule('linalg.det', lambda a: np.asarray(np.linalg.det(a)), sums=True, ulps=64, double=True)
rule('linalg.matrix_power', lambda a, n: np.linalg.matrix_power(a, n), sums=True, ulps=64, double=True, unit='norm')
rule('linalg.eigvalsh', lambda a: np.linalg.eigvalsh(a), sums=True, ulps=64, double=True)

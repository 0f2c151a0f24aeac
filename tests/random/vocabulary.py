# SPDX-License-Identifier: MIT
"""Operators that NumPy has beside those of operators.py, drawn and computed here: composites of pack base,
most of them of one array and an axis."""
import numpy as np
from draw import Retry, given, is_bool, is_float, is_int, is_number, is_real, is_signed, is_wide
from elements import bessel
from operators import operator
from rules import RULES, axes_of, like_first, partition, rule


def nonempty(x):
    return is_wide(x) and x.ndim > 0 and x.size > 0


# --- one array, element by element --------------------------------------------------------

for name in ('degrees', 'radians', 'sinc'):
    rule(name, getattr(np, name), dtype=like_first, floats=True, ulps=4, unit=name == 'sinc')
rule('i0', lambda x: bessel(0)(x) * np.exp(np.abs(x)), dtype=like_first, floats=True, ulps=8)
for name in ('signbit', 'isposinf', 'isneginf', 'zeros_like', 'ones_like', 'iscomplex', 'isreal'):
    rule(name, getattr(np, name))
rule('nan_to_num', np.nan_to_num, narrow=True)


@operator('degrees', 'radians', 'sinc', 'i0', weight=3)
def scaled(d):
    name = d.one(['degrees', 'radians', 'sinc', 'i0'])
    return name, [d.pick(lambda x: is_wide(x) and np.all(np.abs(x) < (3 if name == 'sinc' else 20)) and
                        (name != 'sinc' or np.all(np.abs(x) > 0.3)))], {}


@operator('signbit', 'isposinf', 'isneginf', 'nan_to_num', 'zeros_like', 'ones_like', 'isreal', 'iscomplex', weight=3)
def of_each(d):
    name = d.one(['signbit', 'isposinf', 'isneginf', 'nan_to_num', 'zeros_like', 'ones_like', 'isreal', 'iscomplex'])
    fits = {'signbit': is_float, 'isposinf': is_float, 'isneginf': is_float, 'nan_to_num': is_wide}
    return name, [d.pick(fits.get(name, is_real))], {}


# --- two arrays ---------------------------------------------------------------------------

for name in ('fmax', 'fmin', 'gcd', 'lcm'):
    rule(name, getattr(np, name), promotes=True)
for name in ('logaddexp', 'logaddexp2'):
    rule(name, getattr(np, name), promotes=True, floats=True, ulps=4, unit=True)
rule('heaviside', np.heaviside, promotes=True)
rule('divmod', lambda x, y: np.divmod(x, y), promotes=True, results=2)
rule('isclose', lambda x, y, equal_nan=False: np.isclose(x, y, equal_nan=equal_nan))
rule('array_equal', lambda x, y: np.array(np.array_equal(x, y)))


@operator('fmax', 'fmin', 'logaddexp', 'logaddexp2', 'heaviside', 'gcd', 'lcm', weight=4)
def pairs(d):
    name = d.one(['fmax', 'fmin', 'logaddexp', 'logaddexp2', 'heaviside', 'gcd', 'lcm'])
    fits = {'fmax': is_number, 'fmin': is_number, 'gcd': is_int, 'lcm': is_int}.get(name, is_wide)
    i = d.pick(fits)
    return name, [i, d.like(i, lambda x: fits(x) and x.dtype == d.values[i].dtype)], {}


@operator('divmod', 'array_equal', weight=2)
def both(d):
    name = d.one(['divmod', 'array_equal'])
    i = d.pick(lambda x: x.dtype in (np.dtype('i4'), np.dtype('i8'), np.dtype('f4'), np.dtype('f8')))
    j = d.like(i, lambda x: x.dtype == d.values[i].dtype and (name != 'divmod' or np.all(np.abs(x.astype('f8')) > 0.05)))
    if name == 'array_equal' and d.chance(0.5):
        j = i
    return name, [i, j], {}


# --- reductions ---------------------------------------------------------------------------


def reducing(f, **more):
    return lambda x, axis=None, keepdims=False, **attrs: f(x, axis=axes_of(axis), keepdims=keepdims, **more, **attrs)


def counted(x, axis=None, keepdims=False):
    return np.asarray(np.count_nonzero(x, axis=axes_of(axis), keepdims=keepdims))


for name in ('nansum', 'nanprod', 'nanmean'):
    rule(name, reducing(getattr(np, name)), sums=True)
for name in ('nanmax', 'nanmin'):
    rule(name, reducing(getattr(np, name)))
for name in ('nanvar', 'nanstd'):
    rule(name, reducing(getattr(np, name)), floats=True, ulps=2, sums=True)
rule('ptp', lambda x, axis=None, keepdims=False: np.max(x, axis=axes_of(axis), keepdims=keepdims) -
     np.min(x, axis=axes_of(axis), keepdims=keepdims))
rule('minmax', lambda x, axis=None, keepdims=False: (np.min(x, axis=axes_of(axis), keepdims=keepdims),
                                                    np.max(x, axis=axes_of(axis), keepdims=keepdims)), results=2)
rule('count_nonzero', counted)
for name in ('median', 'nanmedian'):
    rule(name, lambda x, axis=None, keepdims=False, f=getattr(np, name): np.asarray(f(x, axis=axes_of(axis),
         keepdims=keepdims)), dtype=like_first, floats=True)


@operator('nansum', 'nanprod', 'nanmean', 'nanmax', 'nanmin', 'nanvar', 'nanstd', 'ptp', 'minmax', 'count_nonzero',
          'median', 'nanmedian', weight=7)
def reduction(d):
    name = d.one(['nansum', 'nanprod', 'nanmean', 'nanmax', 'nanmin', 'nanvar', 'nanstd', 'ptp', 'minmax',
                  'count_nonzero', 'median', 'nanmedian'])
    least = 1 if name in ('nansum', 'count_nonzero') else 2
    fits = {'count_nonzero': is_real, 'ptp': lambda x: is_wide(x) or x.dtype in (np.dtype('i4'), np.dtype('i8')),
            'minmax': is_number, 'nanmax': is_number, 'nanmin': is_number, 'median': nonempty, 'nanmedian': nonempty}
    i = d.pick(lambda x: fits.get(name, is_wide)(x) and x.size > 0 and (name != 'nanprod' or x.size < 40))
    x, axis = d.values[i], d.axes(i)
    count = x.size if axis is None else np.prod([x.shape[a] for a in axis])
    if count < least or x.dtype.kind == 'f' and name != 'count_nonzero' and not np.all(np.isfinite(x)):
        raise Retry
    if name == 'nanstd' and not np.all(x.std(axes_of(axis)) > 0.05):
        raise Retry
    return name, [i], given(axis=axis, keepdims=True if d.chance(0.4) else None)


# --- along an axis ------------------------------------------------------------------------


def cumulative(f, first):
    def apply(x, axis=-1, include_initial=False):
        y = f(x, axis)
        start = np.full([1 if k == axis % x.ndim else n for k, n in enumerate(x.shape)], first, y.dtype)
        return np.concatenate([start, y], axis) if include_initial else y
    return apply


rule('cumulative_sum', cumulative(np.cumsum, 0), sums=True)
rule('cumulative_prod', cumulative(np.cumprod, 1), sums=True)
rule('nancumsum', lambda x, axis=None: np.nancumsum(x, axis), sums=True)
rule('nancumprod', lambda x, axis=None: np.nancumprod(x, axis), sums=True)
rule('logcumsumexp', lambda x, axis=-1: np.logaddexp.accumulate(x, axis), floats=True, ulps=4, sums=True, unit=True)
rule('diff', lambda x, n=1, axis=-1: np.diff(x, n, axis), sums=True)
rule('partition', partition)
rule('gradient', lambda x, axis: np.gradient(x, axis=axis), floats=True, ulps=2, sums=True)
rule('unstack', lambda x, axis=0: tuple(np.moveaxis(x, axis, 0)))


@operator('cumulative_sum', 'cumulative_prod', 'nancumsum', 'nancumprod', 'logcumsumexp', 'diff', 'partition',
          'unstack', weight=6)
def along(d):
    name = d.one(['cumulative_sum', 'cumulative_prod', 'nancumsum', 'nancumprod', 'logcumsumexp', 'diff', 'partition',
                  'unstack'])
    fits = {'logcumsumexp': nonempty, 'nancumsum': is_wide, 'nancumprod': is_wide, 'diff': lambda x: is_number(x),
            'partition': is_number}.get(name, is_number)
    i = d.pick(lambda x: fits(x) and x.ndim > 0 and x.size > 0 and ('prod' not in name or x.size < 40))
    x, axis = d.values[i], d.axis(i)
    if name == 'diff':
        if x.shape[axis] < 3:
            raise Retry
        return name, [i], given(n=d.one([None, 2]), axis=axis)
    if name == 'partition':
        return name, [i], {'kth': d.number(0, x.shape[axis] - 1), 'axis': axis}
    if name == 'unstack' and x.shape[axis] > 4:
        raise Retry
    return name, [i], given(axis=axis, include_initial=True if name.startswith('cumulative') and d.chance(0.5) else None)


# --- moving -------------------------------------------------------------------------------

rule('swapaxes', lambda x, axis1, axis2: np.swapaxes(x, axis1, axis2))
rule('moveaxis', lambda x, source, destination: np.moveaxis(x, source, destination))
rule('matrix_transpose', lambda x: np.swapaxes(x, -1, -2))
rule('flatten', lambda x: x.reshape(-1))
rule('atleast_2d', np.atleast_2d)
rule('atleast_3d', np.atleast_3d)
rule('diagonal', lambda x, offset=0, axis1=0, axis2=1: np.diagonal(x, offset, axis1, axis2))
rule('trace', lambda x, offset=0, axis1=0, axis2=1: np.asarray(np.trace(x, offset, axis1, axis2)), sums=True)
rule('diag', lambda x, k=0: np.diag(x, k))
rule('diagflat', lambda x, k=0: np.diagflat(x, k))
rule('rot90', lambda x, k=1, axes=(0, 1): np.rot90(x, k, axes))
rule('resize', lambda x, shape: np.resize(x, shape))
for name in ('hstack', 'vstack', 'dstack', 'column_stack'):
    rule(name, lambda *arrays, f=getattr(np, name): f(arrays))


@operator('swapaxes', 'moveaxis', 'matrix_transpose', 'diagonal', 'trace', 'rot90', weight=6)
def axes(d):
    name = d.one(['swapaxes', 'moveaxis', 'matrix_transpose', 'diagonal', 'trace', 'rot90'])
    i = d.pick(lambda x: x.ndim > 1 and (name != 'trace' or is_number(x)))
    first, second = (int(a) for a in d.random.permutation(d.values[i].ndim)[:2])
    if name == 'matrix_transpose':
        return name, [i], {}
    if name == 'moveaxis':
        return name, [i], {'source': [first], 'destination': [second]}
    if name == 'rot90':
        return name, [i], {'k': d.number(-1, 3), 'axes': [first, second]}
    more = given(offset=d.one([None, d.number(-2, 2)])) if name != 'swapaxes' else {}
    return name, [i], {**more, 'axis1': first, 'axis2': second}


@operator('flatten', 'atleast_2d', 'atleast_3d', 'diag', 'diagflat', 'resize', weight=3)
def forms(d):
    name = d.one(['flatten', 'atleast_2d', 'atleast_3d', 'diag', 'diagflat', 'resize'])
    i = d.pick(lambda x: x.ndim > 0 and x.size > 0 and (name != 'diag' or x.ndim < 3) and
               ('diag' not in name or x.size < 20))
    more = given(k=d.one([None, d.number(-1, 1)])) if 'diag' in name else {}
    return name, [i], {'shape': [d.number(1, 4), d.number(1, 5)]} if name == 'resize' else more


@operator('hstack', 'vstack', 'dstack', 'column_stack', weight=2)
def stacks(d):
    i = d.pick(lambda x: 0 < x.ndim < 3 and is_real(x))
    return d.one(['hstack', 'vstack', 'dstack', 'column_stack']), [
        i, d.of(d.values[i].dtype, d.values[i].shape)], {}


# --- products -----------------------------------------------------------------------------

for name in ('kron', 'outer', 'inner', 'vdot', 'dot'):
    rule(name, lambda x, y, f=getattr(np, name): np.asarray(f(x, y)), promotes=True, sums=True)
rule('cross', lambda x, y: np.cross(x, y), promotes=True, sums=True)
rule('vecdot', lambda x, y: np.sum(x * y, -1, dtype=x.dtype), promotes=True, sums=True)
rule('matvec', lambda x, y: np.matmul(x, y[..., None])[..., 0], promotes=True, sums=True)
rule('tensordot', lambda x, y, axes=2: np.tensordot(x, y, axes), promotes=True, sums=True)
rule('addmm', lambda c, x, y: c + x @ y, promotes=True, sums=True)
rule('convolve', lambda a, v, mode='full': np.convolve(a, v, mode), promotes=True, sums=True)
rule('correlate', lambda a, v, mode='valid': np.correlate(a, v, mode), promotes=True, sums=True)


@operator('kron', 'outer', 'inner', 'vdot', 'dot', 'cross', 'vecdot', 'matvec', 'tensordot', 'addmm', 'convolve',
          'correlate', weight=6)
def products(d):
    name = d.one(['kron', 'outer', 'inner', 'vdot', 'dot', 'cross', 'vecdot', 'matvec', 'tensordot', 'addmm',
                  'convolve', 'correlate'])
    rank = {'cross': None, 'matvec': 2, 'addmm': 2, 'convolve': 1, 'correlate': 1, 'tensordot': 2}.get(name)
    i = d.pick(lambda x: is_number(x) and 0 < x.size <= 36 and x.ndim > 0 and (rank is None or x.ndim == rank) and
               (name != 'cross' or x.shape[-1] == 3))
    x = d.values[i]
    if name in ('convolve', 'correlate'):
        return name, [i, d.of(x.dtype, (d.number(1, x.size),))], {'mode': d.one(['full', 'same', 'valid'])}
    if name == 'addmm':
        y = d.of(x.dtype, (x.shape[1], d.number(1, 4)))
        return name, [d.of(x.dtype, (x.shape[0], d.values[y].shape[1])), i, y], {}
    if name in ('matvec', 'dot'):
        return name, [i, d.of(x.dtype, x.shape[-1:])], {}
    if name in ('kron', 'outer'):
        return name, [i, d.of(x.dtype, tuple(d.number(1, 3) for _ in range(x.ndim)))], {}
    return name, [i, d.of(x.dtype, x.shape)], {}


# --- searching ----------------------------------------------------------------------------


def sized(values, size, fill=0):
    out = np.full((size,) + values.shape[1:], fill, values.dtype)
    out[:len(values)] = values[:size]
    return out, np.asarray(len(values), 'i8')


rule('searchsorted', lambda a, v, side='left': np.asarray(np.searchsorted(np.sort(a), v, side), 'i8'))
rule('isin', lambda x, values, invert=False: np.isin(x, values, invert=invert))
rule('bincount', lambda x, length: np.bincount(x[(x >= 0) & (x < length)], minlength=length)[:length].astype('i8'))
rule('boolean_mask', lambda x, mask, size: sized(x[mask], size), results=2)
rule('argwhere', lambda x, size: sized(np.argwhere(x), size), results=2)
rule('unique_values', lambda x, size: sized(np.unique(x), size), results=2)
rule('select', lambda c, x, e, y: np.where(c, x, np.where(e, y, 0)).astype(x.dtype))


@operator('isin', 'boolean_mask', 'argwhere', 'unique_values', weight=4)
def searching(d):
    name = d.one(['isin', 'boolean_mask', 'argwhere', 'unique_values'])
    i = d.pick(lambda x: (is_int(x) if name in ('isin', 'unique_values') else is_real(x)) and x.ndim > 0 and x.size > 0)
    x = d.values[i]
    if name == 'isin':
        j = d.pick(lambda y: y.dtype == x.dtype)
        return name, [i, j], given(invert=True if d.chance(0.3) else None)
    size = {'size': d.number(1, x.size + 2)}
    return name, [i, d.of(np.dtype('?'), x.shape)] if name == 'boolean_mask' else [i], size


# --- borders, rounding --------------------------------------------------------------------


@operator('select', weight=2)
def select(d):
    i = d.pick(is_bool)
    shape = d.values[i].shape
    j = d.pick(lambda x: is_signed(x) and x.shape == shape)
    dtype = d.values[j].dtype
    return 'select', [i, j, d.of(np.dtype('?'), shape), d.of(dtype, shape)], {}

# --- where rounding decides ---------------------------------------------------------------

for name in ('copysign', 'signbit'):  # NaN has either sign
    RULES[name].ties = lambda *x: bool(np.any(np.isnan(x[-1])))
RULES['count_nonzero'].ties = lambda x, **attrs: x.dtype.kind in 'fg' and not bool(np.all(np.isfinite(x)))
RULES['heaviside'].ties = lambda x, y: x.dtype.kind in 'fg' and bool(np.any((x != 0) & (np.abs(x) < 1e-6)))
for name in ('less', 'less_equal', 'greater', 'greater_equal', 'equal', 'not_equal'):  # where one jumps
    RULES[name].steep = lambda a, b: np.result_type(a, b).kind == 'f' and bool(
        np.any((a * 8 != np.round(a * 8)) & (np.abs(a - b) <= 1e-12 * np.maximum(np.abs(a), np.abs(b)))))
for name in ('corrcoef', 'cov'):  # squares vanish
    RULES[name].ties = lambda x, **attrs: x.dtype.kind in 'fg' and bool(np.any((x != 0) & (np.abs(x) < 1e-18)))
for name in ('logical_and', 'logical_or', 'logical_xor', 'logical_not'):  # whether rounding left a 0
    RULES[name].ties = lambda *x: any(a.dtype.kind in 'fcgG' and bool(np.any((a != 0) & (np.abs(a) < 1e-6))) for a in x)
for name in ('remainder', 'floor_divide', 'fmod', 'divmod'):  # no digit is left, or steps are narrow
    RULES[name].ties = lambda x, y: np.result_type(x, y).kind == 'f' and bool(
        np.any(np.abs(x / np.where(y == 0, 1, y)) > 1e4))

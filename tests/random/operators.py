# SPDX-License-Identifier: MIT
"""Draws an application of an operator to arrays that there are: OPERATORS lists functions that give
(name, operands, attributes), or raise Retry where no array fits. An operand is the number of an
array, or a Number."""
import numpy as np
from draw import (Number, Retry, given, is_bool, is_complex, is_float, is_int, is_number, is_real, is_signed, is_wide)
from layers import BODIES, PAIRS

OPERATORS = []


def operator(*names, weight=1):
    def add(draw):
        OPERATORS.append((draw, names, weight))
        return draw
    return add


# --- element by element -------------------------------------------------------------------

DOMAINS = {'log': (1e-3, 1e9), 'log2': (1e-3, 1e9), 'log10': (1e-3, 1e9), 'log1p': (-0.99, 1e9),
           'sqrt': (0, 1e9), 'rsqrt': (1e-3, 1e9), 'exp': (-20, 9), 'exp2': (-20, 9), 'expm1': (-20, 9),
           'sin': (-50, 50), 'cos': (-50, 50), 'tan': (-1.4, 1.4), 'sinh': (-8, 8), 'cosh': (-8, 8),
           'tanh': (-50, 50), 'arcsin': (-0.99, 0.99), 'arccos': (-0.99, 0.99), 'arctan': (-1e9, 1e9),
           'arcsinh': (-1e6, 1e6), 'arccosh': (1.01, 1e6), 'arctanh': (-0.99, 0.99), 'erf': (-9, 9),
           'erfinv': (-0.99, 0.99), 'sigmoid': (-60, 60), 'silu': (-60, 60), 'gelu': (-9, 9),
           'relu': (-1e9, 1e9), 'cbrt': (-1e9, 1e9), 'erfc': (-5, 5), 'lgamma': (0.1, 50), 'tgamma': (0.1, 20)}
WHOLE = {'log', 'log2', 'log1p', 'sqrt', 'exp', 'sin', 'cos', 'tanh', 'arctan', 'arcsinh', 'erf', 'sigmoid'}
LIBM = {'cbrt', 'erfc', 'lgamma', 'tgamma'}


@operator(*DOMAINS, weight=9)
def function(d):
    name = d.one(list(DOMAINS))
    low, high = DOMAINS[name]
    i = d.pick(lambda x: (is_wide(x) if name in LIBM else is_float(x) or name in WHOLE and is_int(x) and
                          x.dtype.itemsize >= 4) and np.all((x >= low) & (x <= high)))
    attrs = {'approximate': 'tanh'} if name == 'gelu' and d.chance(0.3) else {}
    return name, [i], attrs


@operator('abs', 'negative', 'sign', 'floor', 'ceil', 'trunc', 'round', 'square', 'copy', 'stop_gradient', weight=5)
def plain(d):
    name = d.one(['abs', 'negative', 'negative', 'sign', 'floor', 'ceil', 'trunc', 'round', 'square', 'copy',
                  'stop_gradient'])
    fits = {'abs': is_number, 'negative': is_signed, 'sign': is_signed, 'square': is_number}
    return name, [d.pick(fits.get(name, is_float))], {}


@operator('reciprocal')
def reciprocal(d):
    return 'reciprocal', [d.pick(lambda x: is_float(x) and np.all(np.abs(x) > 1e-2))], {}


@operator('isnan', 'isinf', 'isfinite', 'logical_not', 'invert')
def test(d):
    name = d.one(['isnan', 'isinf', 'isfinite', 'logical_not', 'invert'])
    return name, [d.pick({'logical_not': is_real, 'invert': lambda x: x.dtype.kind in 'iub'}.get(name, is_float))], {}


@operator('add', 'subtract', 'multiply', weight=12)
def arithmetic(d):
    i = d.pick(lambda x: is_number(x) or is_complex(x))
    j = d.like(i, lambda x: is_number(x) or is_complex(x))
    kinds = {str(d.values[k].dtype) for k in (i, j)}
    if 'uint64' in kinds and len(kinds) > 1:
        raise Retry
    return d.one(['add', 'subtract', 'multiply']), [i, j], {}


@operator('add', 'subtract', 'multiply', 'divide', 'power', weight=6)
def with_number(d):
    name = d.one(['add', 'subtract', 'multiply', 'multiply', 'divide', 'power'])
    i = d.pick(is_number)
    whole = d.number(1, 3)
    n = Number(whole if is_int(d.values[i]) or d.chance(0.5) else d.one([0.5, 1.5, 2.25, -0.75, 0.1]))
    if name == 'divide' and n.value == 0.1 or name == 'power':
        n = Number(2 if name == 'power' else 3)
    both = [i, n] if d.chance(0.7) or name in ('divide', 'power') else [n, i]
    return name, both, {}


@operator('divide', 'floor_divide', 'remainder', 'fmod', weight=5)
def quotient(d):
    name = d.one(['divide', 'divide', 'floor_divide', 'remainder', 'fmod'])
    fits = is_wide if name == 'fmod' else is_number
    i = d.pick(fits)
    j = d.like(i, lambda x: fits(x) and np.all(np.abs(x.astype('f8')) > 0.05) and
               (name != 'fmod' or x.dtype == d.values[i].dtype))
    if {str(d.values[k].dtype) for k in (i, j)} & {'uint64', 'int8', 'uint8', 'int16', 'uint16'} and name != 'remainder':
        raise Retry
    if 'uint64' in {str(d.values[k].dtype) for k in (i, j)}:
        raise Retry
    return name, [i, j], {}


@operator('power')
def power(d):
    i = d.pick(lambda x: is_float(x) and np.all((x > 0.05) & (x < 20)))
    return 'power', [i, d.like(i, lambda x: is_float(x) and np.all(np.abs(x) < 5))], {}


@operator('maximum', 'minimum', 'arctan2', 'hypot', 'copysign', 'nextafter', 'fdim', weight=4)
def pair(d):
    name = d.one(['maximum', 'minimum', 'maximum', 'minimum', 'arctan2', 'hypot', 'copysign', 'nextafter', 'fdim'])
    fits = is_number if name in ('maximum', 'minimum') else is_wide
    i = d.pick(fits)
    j = d.like(i, lambda x: fits(x) and x.dtype == d.values[i].dtype)
    if name in ('arctan2', 'copysign', 'hypot') and not np.all(np.abs(d.values[j]) > 0.05):
        raise Retry
    return name, [i, j], {}


@operator('fma')
def fma(d):
    i = d.pick(is_wide)
    x = d.values[i]
    return 'fma', [i, d.of(x.dtype, x.shape), d.of(x.dtype, x.shape[x.ndim // 2:])], {}


@operator('equal', 'not_equal', 'less', 'less_equal', 'greater', 'greater_equal', weight=4)
def comparison(d):
    i = d.pick(is_number)
    j = d.like(i, lambda x: x.dtype == d.values[i].dtype or is_float(x) and is_float(d.values[i]))
    return d.one(['equal', 'not_equal', 'less', 'less_equal', 'greater', 'greater_equal']), [i, j], {}


@operator('less', 'greater_equal')
def comparison_with_number(d):
    return d.one(['less', 'greater_equal']), [d.pick(is_number), Number(d.number(0, 3))], {}


@operator('logical_and', 'logical_or', 'logical_xor', weight=2)
def logical(d):
    i = d.pick(is_real)
    return d.one(['logical_and', 'logical_or', 'logical_xor']), [i, d.like(i, is_real)], {}


@operator('bitwise_and', 'bitwise_or', 'bitwise_xor', 'left_shift', 'right_shift', weight=3)
def bits(d):
    name = d.one(['bitwise_and', 'bitwise_or', 'bitwise_xor', 'left_shift', 'right_shift'])
    i = d.pick(is_int if 'shift' in name else lambda x: is_int(x) or is_bool(x))
    j = d.like(i, lambda x: x.dtype == d.values[i].dtype and ('shift' not in name or np.all((x >= 0) & (x < 70))))
    return name, [i, j], {}


@operator('where', weight=4)
def where(d):
    c = d.pick(is_bool)
    i = d.like(c, is_real)
    j = d.like(c, lambda x: is_real(x) and x.dtype == d.values[i].dtype)
    np.broadcast_shapes(*[d.values[k].shape for k in (c, i, j)])
    return 'where', [c, i, j], {}


@operator('clip', weight=2)
def clip(d):
    low = d.number(-2, 1)
    return 'clip', [d.pick(is_float)], given(lo=low + 0.25, hi=d.one([None, low + 1.5]))


@operator('astype', weight=4)
def astype(d):
    i = d.pick(is_real)
    to = d.one(['bool', 'i8', 'i16', 'i32', 'i64', 'u8', 'u16', 'u32', 'u64', 'f16', 'f32', 'f32', 'f32', 'f64', 'f64',
                'f64'])
    return 'astype', [i], {'dtype': to}


@operator('conjugate', 'real', 'imag', 'angle', 'abs', weight=2)
def complex_parts(d):
    i = d.pick(is_complex)
    name = d.one(['conjugate', 'real', 'real', 'imag', 'imag', 'abs', 'angle'])
    if name in ('abs', 'angle') and not np.all(np.abs(d.values[i]) > 0.1):
        raise Retry
    if name == 'angle' and not np.all(d.values[i].real > 0.1):
        raise Retry
    return name, [i], {}


# --- reductions, running results, orders --------------------------------------------------


@operator('sum', 'prod', 'mean', 'max', 'min', 'all', 'any', 'var', 'std', 'logsumexp', weight=8)
def reduction(d):
    name = d.one(['sum', 'sum', 'sum', 'prod', 'mean', 'mean', 'max', 'min', 'all', 'any', 'var', 'std', 'logsumexp'])
    fits = {'all': is_real, 'any': is_real, 'var': is_wide, 'std': is_wide, 'logsumexp': is_wide,
            'prod': lambda x: is_number(x) and x.size < 40, 'sum': is_real,
            'mean': lambda x: is_wide(x) or x.dtype == np.int32}.get(name, is_number)
    i = d.pick(fits)
    axis = d.axes(i)
    x = d.values[i]
    count = x.size if axis is None else np.prod([x.shape[a] for a in axis])
    if count == 0 and name not in ('sum', 'prod', 'all', 'any') or name == 'std' and count < 2:
        raise Retry
    if name == 'std' and not np.all(x.std(None if axis is None else tuple(axis)) > 0.05):
        raise Retry
    ddof = 1 if name in ('var', 'std') and count > 2 and d.chance(0.3) else None
    return name, [i], given(axis=axis, keepdims=True if d.chance(0.4) else None, ddof=ddof)


@operator('argmax', 'argmin', weight=2)
def argument(d):
    i = d.pick(lambda x: is_number(x) and x.size > 0)
    axis = d.axis(i) if d.values[i].ndim and d.chance(0.8) else None
    return d.one(['argmax', 'argmin']), [i], given(axis=axis, keepdims=True if d.chance(0.3) else None)


@operator('cumsum', 'cumprod', 'cummax', 'cummin', weight=4)
def running(d):
    name = d.one(['cumsum', 'cumsum', 'cumprod', 'cummax', 'cummin'])
    i = d.pick(lambda x: is_number(x) and x.ndim > 0 and (name != 'cumprod' or x.size < 40))
    axis = None if d.chance(0.15) else d.axis(i)
    return name, [i], given(axis=axis, reverse=True if d.chance(0.3) else None)


@operator('sort', 'argsort', 'topk', weight=4)
def order(d):
    name = d.one(['sort', 'sort', 'argsort', 'topk'])
    i = d.pick(lambda x: is_real(x) and x.ndim > 0 and x.size > 0)
    axis, down = d.axis(i), d.chance(0.4)
    if name == 'topk':
        return name, [i], given(k=d.number(1, d.values[i].shape[axis]), axis=axis, largest=False if down else None)
    return name, [i], given(axis=axis, descending=True if down else None)


# --- arranging ----------------------------------------------------------------------------


@operator('index', 'slice', weight=9)
def index(d):
    i = d.pick(lambda x: x.ndim > 0)
    keys = []
    for n in d.values[i].shape:
        way = d.number(0, 7)
        if way == 0 and n > 0:
            keys.append(str(d.number(-n, n - 1)))
        elif way < 4:
            bounds = [d.one(['', str(d.number(-n - 1, n + 1))]) for _ in 'ab']
            keys.append(':'.join(bounds) + d.one(['', ':2', ':-1', ':-1', ':-2']))
        else:
            keys.append(d.one([':', '::-1', '::-1', '::1']))
    if d.chance(0.2):
        keys = keys[:d.number(1, len(keys))]
    elif d.chance(0.2):
        keys = ['...'] + keys[d.number(1, len(keys)):]
    return 'index', [i], {'key': ', '.join(keys)}


@operator('reshape', weight=4)
def reshape(d):
    i = d.pick()
    n, shape = d.values[i].size, []
    for _ in range(d.number(0, 3)):
        parts = [k for k in (1, 2, 3, 4, 5, 6, 7, 12) if n and n % k == 0]
        k = d.one(parts or [0, 1, 3])
        shape.append(k)
        n = n // k if k else 0
    shape.append(n)
    shape = [shape[k] for k in d.random.permutation(len(shape))]
    if np.prod(shape) != d.values[i].size:
        raise Retry
    if np.prod(shape) and d.chance(0.3):
        shape[d.number(0, len(shape) - 1)] = -1
    return 'reshape', [i], {'shape': shape}


@operator('transpose', 'T', 'mT', weight=6)
def transpose(d):
    i = d.pick(lambda x: x.ndim > 1)
    name = d.one(['T', 'mT', 'transpose', 'transpose'])
    axes = [int(a) for a in d.random.permutation(d.values[i].ndim)]
    return name, [i], {'axes': axes} if name == 'transpose' else {}


@operator('flip', 'roll', 'tile', 'tril', 'triu', 'sum_to', weight=4)
def arrange(d):
    name = d.one(['flip', 'flip', 'roll', 'tile', 'tril', 'triu', 'sum_to'])
    i = d.pick(lambda x: x.ndim > (1 if 'tri' in name else 0) and (is_number if name == 'sum_to' else is_real)(x))
    x = d.values[i]
    if name == 'flip':
        return name, [i], given(axis=d.axes(i))
    if name == 'roll':
        axes = d.axes(i)
        return name, [i], given(shift=[d.number(-5, 5) for _ in axes or [0]], axis=axes) if axes != [] else {'shift': [1]}
    if name == 'tile':
        if x.size > 100:
            raise Retry
        return name, [i], {'reps': [d.number(1, 2) for _ in range(x.ndim)]}
    if name == 'sum_to':
        shape = [1 if d.chance(0.4) else n for n in x.shape]
        return name, [i], {'shape': shape[d.number(0, len(shape) - 1):]}
    return name, [i], given(k=d.one([None, d.number(-2, 2)]))


@operator('repeat', 'pad', weight=3)
def enlarge(d):
    i = d.pick(lambda x: 0 < x.ndim and x.size <= 100 and is_real(x))
    x = d.values[i]
    if d.chance(0.5):
        value = None if is_bool(x) else d.one([None, 1])
        return 'pad', [i], given(before=[d.number(0, 2) for _ in x.shape], after=[d.number(0, 2) for _ in x.shape],
                                 value=value)
    axis = d.axis(i)
    repeats = [d.number(1, 2)] if d.chance(0.5) else [d.number(0, 2) for _ in range(x.shape[axis])]
    if not repeats:
        raise Retry
    return 'repeat', [i], {'repeats': repeats, 'axis': axis}


@operator('expand_dims', 'squeeze', 'broadcast_to', weight=4)
def extents(d):
    name = d.one(['expand_dims', 'squeeze', 'broadcast_to'])
    i = d.pick(lambda x: x.ndim < 4 and (name != 'squeeze' or 1 in x.shape))
    x = d.values[i]
    if name == 'expand_dims':
        return name, [i], {'axis': [d.number(-x.ndim - 1, x.ndim)]}
    if name == 'squeeze':
        return name, [i], {'axis': [d.one([a for a, n in enumerate(x.shape) if n == 1])]}
    shape = [d.number(1, 4) if n == 1 else n for n in x.shape]
    shape = ([d.number(1, 3)] if d.chance(0.5) else []) + shape
    if np.prod(shape) > 600:
        raise Retry
    return name, [i], {'shape': shape}


@operator('concatenate', 'stack', weight=4)
def together(d):
    i = d.pick(lambda x: is_real(x) and x.ndim > 0)
    x, name, axis = d.values[i], d.one(['concatenate', 'stack']), d.axis(i)
    def fits(y):
        return y.dtype == x.dtype and y.ndim == x.ndim and y.size <= 200 and all(
            a == b or name == 'concatenate' and k == axis % x.ndim for k, (a, b) in enumerate(zip(y.shape, x.shape)))
    return name, [i] + [d.pick(fits) for _ in range(d.number(1, 2))], {'axis': axis}


@operator('split', weight=2)
def split(d):
    i = d.pick(lambda x: x.ndim > 0)
    axis = d.axis(i)
    n = d.values[i].shape[axis]
    if n < 2:
        raise Retry
    if d.chance(0.5):
        return 'split', [i], {'indices': [d.number(1, n - 1)], 'axis': axis}
    sections = d.number(2, min(n, 3))
    return 'split', [i], given(sections=sections, axis=axis, uneven=True if n % sections else None)


@operator('slice_update', 'dynamic_slice', 'dynamic_slice_update', weight=3)
def parts(d):
    name = d.one(['slice_update', 'dynamic_slice', 'dynamic_slice_update'])
    i = d.pick(lambda x: 0 < x.ndim < 4 and x.size > 0 and is_real(x))
    shape = d.values[i].shape
    if name == 'dynamic_slice':
        at = d.of(np.dtype('i4'), (len(shape),))
        return name, [i, at], {'sizes': [d.number(1, n) for n in shape]}
    def fits(x):
        return x.dtype == d.values[i].dtype and x.ndim == len(shape) and all(a <= b for a, b in zip(x.shape, shape))
    update = d.pick(fits)
    if name == 'dynamic_slice_update':
        return name, [i, update, d.of(np.dtype('i4'), (len(shape),))], {}
    start = [d.number(0, n - k) for n, k in zip(shape, d.values[update].shape)]
    stop = [s + k for s, k in zip(start, d.values[update].shape)]
    return name, [i, update], {'start': start, 'stop': stop, 'step': [1] * len(shape)}


# --- making -------------------------------------------------------------------------------


@operator('arange', 'full', 'eye', 'linspace', 'fftfreq', 'rfftfreq', weight=2)
def making(d):
    name, dtype = d.one(['arange', 'full', 'eye', 'linspace', 'fftfreq', 'rfftfreq']), d.one(['f32', 'f64', 'i32', 'i64'])
    if name == 'arange':
        return name, [], {'start': d.number(-3, 3), 'stop': d.number(3, 9), 'step': d.number(1, 2), 'dtype': dtype}
    if name == 'full':
        return name, [], {'shape': [d.number(1, 4) for _ in range(d.number(0, 3))], 'value': d.number(-2, 2), 'dtype': dtype}
    if name == 'eye':
        return name, [], {'n': d.number(1, 4), 'm': d.number(1, 4), 'k': d.number(-1, 1), 'dtype': dtype}
    if name == 'linspace':
        return name, [], given(start=d.number(-3, 0), stop=d.number(1, 3), num=d.number(1, 6),
                               endpoint=False if d.chance(0.3) else None)
    return name, [], {'n': d.number(1, 7), 'd': d.one([1, 0.5])}


@operator('one_hot')
def one_hot(d):
    i = d.pick(lambda x: is_int(x) and x.size <= 100)
    return 'one_hot', [i], given(num_classes=d.number(1, 5), axis=d.number(-1, d.values[i].ndim),
                                 dtype=d.one([None, 'f32', 'f64']))


# --- indexing -----------------------------------------------------------------------------


@operator('take', 'take_along_axis', 'gather', weight=6)
def gathering(d):
    name = d.one(['take', 'take', 'take_along_axis', 'gather'])
    i = d.pick(lambda x: x.ndim > 0 and x.size > 0 and is_real(x))
    x = d.values[i]
    if name == 'gather':
        count = d.number(1, min(2, x.ndim))
        first = d.pick(lambda y: is_int(y) and y.size <= 30)
        rest = [d.like(first, lambda y: is_int(y) and y.size <= 30) for _ in range(count - 1)]
        axes = [int(a) for a in d.random.permutation(x.ndim)[:count]] if d.chance(0.4) else None
        return name, [i, first, *rest], given(axes=axes)
    axis = d.axis(i)
    if name == 'take':
        return name, [i, d.pick(lambda y: is_int(y) and y.size <= 20)], {'axis': axis}
    shape = [d.number(1, 4) if k == axis % x.ndim else n for k, n in enumerate(x.shape)]
    return name, [i, d.of(d.one([np.dtype('i4'), np.dtype('i8')]), shape, 'index')], {'axis': axis}


@operator('scatter', 'scatter_add', 'scatter_max', 'scatter_min', 'scatter_set', 'put_along_axis', weight=5)
def scattering(d):
    mode = d.one(['set', 'add', 'max', 'min'])
    way = d.one(['scatter', 'along', 'along', 'put'])
    i = d.pick(lambda x: x.ndim > 0 and x.size > 0 and is_number(x))
    x = d.values[i]
    axis, dtype = d.number(0, x.ndim - 1), d.one([np.dtype('i4'), np.dtype('i8')])
    if way == 'put':
        shape = [d.number(1, 3) if k == axis else n for k, n in enumerate(x.shape)]
        return 'put_along_axis', [i, d.of(dtype, shape, 'index'), d.of(x.dtype, shape)], {'axis': axis, 'mode': mode}
    shape = tuple(d.number(1, 3) for _ in range(d.number(0, 2)))
    at = d.of(dtype, shape, 'index')
    if way == 'scatter':
        return 'scatter', [i, d.of(x.dtype, shape + x.shape[1:]), at], {'mode': mode}
    return 'scatter_' + mode, [i, at, d.of(x.dtype, x.shape[:axis] + shape + x.shape[axis + 1:])], {'axis': axis}


# --- products -----------------------------------------------------------------------------


@operator('matmul', weight=7)
def matmul(d):
    i = d.pick(lambda x: x.ndim > 0 and is_number(x))
    a = d.values[i]
    def fits(b):
        if b.dtype != a.dtype or b.ndim == 0 or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
            return False
        try:
            return np.matmul(a, b).size <= 600
        except ValueError:
            return False
    if d.chance(0.5):
        return 'matmul', [i, d.of(a.dtype, a.shape[-1:] + d.one([(), (3,), (1,), (5,)]))], {}
    return 'matmul', [i, d.pick(fits)], {}


EQUATIONS = [('ij,jk->ik', 2, 2), ('ij,kj->ki', 2, 2), ('ij,ij->i', 2, 2), ('ij,ij->', 2, 2), ('i,j->ij', 1, 1),
             ('bij,bjk->bik', 3, 3), ('bij,jk->bik', 3, 2), ('ij->ji', 2), ('ij->', 2), ('ijk->ki', 3), ('ii->i', 2),
             ('...i,...i->...', 2, 2), ('ij,j->i', 2, 1), ('ij,jk,k->i', 2, 2, 1), ('bij,bik->bjk', 3, 3)]


@operator('einsum', weight=5)
def einsum(d):
    equation, *ranks = d.one(EQUATIONS)
    first = d.pick(lambda x: is_number(x) and x.ndim == ranks[0] and ('ii' not in equation or x.shape[0] == x.shape[1]))
    rest = [d.pick(lambda x: x.dtype == d.values[first].dtype and x.ndim == n) for n in ranks[1:]]
    return 'einsum', [first, *rest], {'equation': equation}


@operator('blas.dot', 'blas.nrm2', 'blas.asum', 'blas.gemv', 'blas.gemm', 'blas.ger', 'blas.axpby', 'blas.iamax', weight=2)
def blas(d):
    name = d.one(['dot', 'nrm2', 'asum', 'gemv', 'gemm', 'ger', 'axpby', 'iamax'])
    first = d.pick(lambda x: is_wide(x) and x.size > 0 and x.ndim == (2 if name in ('gemv', 'gemm') else 1))
    dtype, shape = d.values[first].dtype, d.values[first].shape
    if name in ('nrm2', 'asum', 'iamax'):
        if name == 'nrm2' and not np.linalg.norm(d.values[first].astype('f8')) > 0.1:
            raise Retry
        if name == 'iamax' and np.isnan(d.values[first]).any(): # BLAS leaves it open
            raise Retry
        return 'blas.' + name, [first], {}
    factor = {} if name == 'dot' else given(alpha=d.one([None, 0.5]), beta=d.one([None, -2.0]) if name != 'ger' else None)
    if name in ('dot', 'axpby'):
        return 'blas.' + name, [first, d.of(dtype, shape)], factor
    if name == 'gemv':
        return 'blas.gemv', [first, d.of(dtype, shape[1:]), d.of(dtype, shape[:1])], factor
    n = d.number(1, 4)
    second = d.of(dtype, (n,) if name == 'ger' else (shape[1], n))
    return 'blas.' + name, [first, second, d.of(dtype, (shape[0], n))], factor


@operator('linalg.solve', 'linalg.cholesky', 'linalg.eigvalsh', 'linalg.inv', 'linalg.det', 'linalg.matrix_power',
          'potrf', weight=2)
def linear(d):
    dtype, n = d.one([np.dtype('f4'), np.dtype('f8')]), d.number(1, 4)
    i, name = d.make(dtype, (n, n), 'definite'), d.one(
        ['linalg.' + f for f in ('solve', 'cholesky', 'eigvalsh', 'inv', 'det', 'matrix_power')] + ['potrf'])
    if name == 'linalg.matrix_power':
        return name, [i], {'n': d.number(-1, 3)}
    return name, [i, d.of(dtype, (n, 2))] if name == 'linalg.solve' else [i], {}


# --- layers -------------------------------------------------------------------------------


@operator('softmax', 'log_softmax', weight=3)
def softmax(d):
    i = d.pick(lambda x: is_float(x) and x.ndim > 0 and x.size > 0)
    return d.one(['softmax', 'log_softmax']), [i], {'axis': d.axis(i)}


@operator('layer_norm', 'rms_norm', 'group_norm', weight=3)
def norm(d):
    name = d.one(['layer_norm', 'rms_norm', 'group_norm'])
    i = d.pick(lambda x: is_wide(x) and x.size > 0 and x.ndim > (1 if name == 'group_norm' else 0))
    x = d.values[i]
    axis = d.number(1 if name == 'group_norm' else 0, x.ndim - 1) - d.one([0, x.ndim])
    behind = x.ndim - 1 - axis % x.ndim if name != 'group_norm' else 0
    others = [d.of(x.dtype, (x.shape[axis],) + (1,) * behind) for _ in range(1 if name == 'rms_norm' else 2)]
    groups = d.one([g for g in (1, 2, 3) if x.shape[axis] % g == 0]) if name == 'group_norm' else None
    return name, [i, *others], given(groups=groups, eps=d.one([None, 0.1]), axis=d.one([axis, None]) if axis == -1 else axis)


@operator('scaled_dot_product_attention', 'rope', weight=3)
def attention(d):
    i = d.pick(lambda x: is_wide(x) and x.ndim in (2, 3) and x.size > 0)
    q = d.values[i]
    if d.chance(0.3):
        f = d.of(q.dtype, [d.number(1, q.shape[-1] // 2)] if q.shape[-1] > 1 else d.one([]))
        return 'rope', [i, f], given(interleaved=True if d.chance(0.4) else None,
                                     axis=d.one([None, d.number(0, q.ndim - 2)]))
    rows = d.number(1, 5)
    k = d.of(q.dtype, q.shape[:-2] + (rows, q.shape[-1]))
    v = d.of(q.dtype, q.shape[:-2] + (rows, d.number(1, 4)))
    return 'scaled_dot_product_attention', [i, k, v], given(scale=d.one([None, 0.5]), is_causal=d.one([None, True]),
                                                            soft_cap=d.one([None, None, 2.0]))


@operator('sgd', 'adam', 'dropout')
def training(d):
    name = d.one(['sgd', 'adam', 'dropout'])
    i = d.pick(is_wide)
    p = d.values[i]
    if name == 'dropout':
        return name, [i], d.one([{'training': False}, {'p': 0}, {'p': 1}])
    def same(style='any'):
        return d.of(p.dtype, p.shape, style, lambda x: style == 'any' or np.all(x > 0.01))
    if name == 'sgd':
        return name, [i, same(), same()], {'lr': 0.1, 'momentum': 0.9, 'weight_decay': d.one([0, 0.01])}
    return name, [i, same(), same(), same('positive'), d.of(p.dtype, (), 'step', lambda x: x in range(1, 9))], \
        {'lr': 0.1}


# --- Fourier transforms -------------------------------------------------------------------


@operator('fft', 'ifft', 'rfft', 'irfft', 'fftshift', 'ifftshift', weight=3)
def fft(d):
    name = d.one(['fft', 'ifft', 'rfft', 'irfft', 'irfft', 'fftshift', 'ifftshift'])
    fits = {'rfft': is_wide, 'irfft': is_complex}.get(name, lambda x: is_wide(x) or is_complex(x))
    i = d.pick(lambda x: fits(x) and x.ndim > 0 and x.size > 0)
    if 'shift' in name:
        return name, [i], given(axes=d.one([None, [d.axis(i)]]))
    return name, [i], given(n=d.one([None, None, d.number(1, 9)] if name != 'irfft' else [d.number(2, 9)]),
                            axis=d.axis(i), norm=d.one([None, 'ortho']))


@operator('fft2', 'ifft2', 'fftn', 'ifftn', 'rfft2', 'rfftn', 'irfft2', 'irfftn', weight=2)
def fft_of_several(d):
    name = d.one(['fft2', 'ifft2', 'fftn', 'ifftn', 'rfft2', 'rfftn', 'irfft2', 'irfftn'])
    fits = is_wide if name[0] == 'r' else is_complex if name[:2] == 'ir' else lambda x: is_wide(x) or is_complex(x)
    i = d.pick(lambda x: fits(x) and 1 < x.ndim < 4 and x.size > 0 and (name[:2] != 'ir' or x.shape[-1] > 1))
    return name, [i], {}


# --- graphs as attributes -----------------------------------------------------------------


@operator('cond', 'while_loop', 'scan', 'checkpoint', weight=3)
def control(d):
    name = d.one(['cond', 'while_loop', 'scan', 'checkpoint'])
    if name == 'scan':
        x = d.pick(lambda x: is_wide(x) and x.ndim > 0 and x.size > 0)
        return name, [d.of(d.values[x].dtype, d.values[x].shape[1:]), x], given(body=d.one(list(PAIRS)), carries=1, slices=1,
                                                 reverse=True if d.chance(0.3) else None)
    i = d.pick(is_wide)
    if name == 'cond':
        return name, [d.of(np.dtype('?'), ()), i], \
            {'then': d.one(list(BODIES)), 'otherwise': d.one(list(BODIES))}
    return name, [i], given(body=d.one(list(BODIES)), times=d.number(1, 3) if name == 'while_loop' else None)

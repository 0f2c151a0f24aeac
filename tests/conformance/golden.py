#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes cases that NumPy decides: promotion, floor division, slicing, broadcasting, shapes
of matmul, ties of argmax. usage: golden.py OUT

A case is the primitive's name, its attributes as text, its inputs, and what NumPy gives, one
array for each output that is compared; numbers are little-endian 64 bits, texts are a length and
bytes. The cases of the other golden_*.py are added.
"""
import struct
import sys

import golden_composites
import golden_groupwise
import golden_matrices
import golden_nn
import golden_numbers
import golden_numpy
import golden_operators
import golden_optim
import golden_random
import numpy as np

DTYPES = {np.dtype(n): i + 1 for i, n in enumerate(
    ['bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64',
     'float16'])}
DTYPES[np.dtype('float32')] = 12
DTYPES[np.dtype('float64')] = 13
NUMBERS = [d for d in DTYPES if d != np.dtype('bool')]
INTEGERS = [d for d in NUMBERS if d.kind in 'iu']

random = np.random.default_rng(7)
cases = []


def text(value):
    if isinstance(value, (list, tuple)):
        return '[' + ', '.join(str(v) for v in value) + ']'
    return {True: 'true', False: 'false'}.get(value, str(value)) if isinstance(
        value, bool) else str(value)


def add(name, inputs, results, roundings=0, **attrs):
    """An input that is None is not given. `roundings`: of the result's dtype, to which elements are
    right beside their own (a GPU is given four times as many); golden_numbers.EVERY_BIT: all bits are right."""
    results = results if isinstance(results, tuple) else (results,)
    cases.append((name, [(k, text(v)) for k, v in attrs.items()],
                  [None if x is None else np.asarray(x) for x in inputs],
                  [np.asarray(x) for x in results], roundings))


def numbers(dtype, shape, low=-9, high=9):
    if dtype.kind == 'u':
        low = 0
    return random.integers(low, high, shape, endpoint=True).astype(dtype)


def promotion():
    for a in DTYPES:
        for b in DTYPES:
            x, y = numbers(a, 4, 0, 1), numbers(b, 4, 0, 1)
            if a.kind == 'b' and b.kind == 'b':
                add('base.bitwise_xor', [x, y], x ^ y)
                continue
            add('base.add', [x, y], x + y)
            add('base.less', [x, y], x < y)
            add('base.where', [np.array([True, False, True, False]), x, y],
                np.where([True, False, True, False], x, y))
            if {a, b} != {np.dtype('int64'), np.dtype('uint64')}:
                y = numbers(b, 4, 1, 1)
                add('base.divide', [x, y], np.true_divide(x, y).astype(
                    np.result_type(a, b) if np.result_type(a, b).kind == 'f' else 'f8'))


def division():
    for d in INTEGERS + [np.dtype('float32'), np.dtype('float64')]:
        x, y = numbers(d, 40, -99, 99), numbers(d, 40, -7, 7)
        y[y == 0] = 3
        add('base.floor_divide', [x, y], x // y)
        add('base.remainder', [x, y], x % y)


def slices():
    x = np.arange(7 * 9, dtype='i4').reshape(7, 9)
    bounds = [None, 0, 1, -1, 3, -3, 7, 20, -20]
    steps = [None, 1, 2, 3, -1, -2, -9]
    end = 2**63 - 1
    for start in bounds:
        for stop in bounds:
            step = steps[random.integers(len(steps))]
            add('base.slice', [x], x[start:stop:step],
                start=[end if start is None else start],
                stop=[end if stop is None else stop],
                step=[1 if step is None else step])


def shapes():
    pairs = [((3, 1), (4,)), ((2, 1, 4), (3, 1)), ((1,), (5, 1)), ((), (2, 2)), ((0, 3), (1, 3))]
    for a, b in pairs:
        x, y = numbers(np.dtype('f4'), a), numbers(np.dtype('f4'), b)
        add('base.multiply', [x, y], x * y)
    products = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)),
                ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((3,), (2, 3, 2)),
                ((2, 2, 3), (3,)), ((0, 3), (3, 2)), ((2, 0), (0, 3))]
    for a, b in products:
        for d in [np.dtype(n) for n in ('f4', 'f8', 'i8', 'u1')]:
            x, y = numbers(d, a), numbers(d, b)
            add('base.matmul', [x, y], np.matmul(x, y))


def reductions():
    for d in DTYPES:
        x = numbers(d, (3, 4, 5), 0 if d.kind == 'b' else -3, 1 if d.kind == 'b' else 3)
        for axes in [None, (0,), (1,), (2,), (0, 2), (-1, -3), ()]:
            given = {} if axes is None else {'axis': list(axes)}
            sums = 'f8' if d.kind == 'f' else None
            add('base.sum', [x], np.sum(x, axis=axes, dtype=sums).astype(
                d if d.kind == 'f' else np.sum(x[:1, :1, :1]).dtype), **given)
            add('base.max', [x], np.max(x, axis=axes), **given)
            add('base.min', [x], np.min(x, axis=axes, keepdims=True), keepdims=True, **given)
        add('base.argmax', [x], np.argmax(x))
        add('base.argmin', [x], np.argmin(x))
        for axis in range(-3, 3):
            add('base.argmax', [x], np.argmax(x, axis=axis), axis=axis)
            add('base.argmin', [x], np.argmin(x, axis=axis), axis=axis)
    x = np.array([[1, np.nan, 3], [4, 2, 4]], 'f4')
    add('base.max', [x], np.max(x, axis=1), axis=[1])
    add('base.argmax', [x], np.argmax(x, axis=1), axis=1)
    add('base.argmin', [x], np.argmin(x, axis=1), axis=1)
    add('base.argmin', [x], np.argmin(x, axis=0), axis=0)
    for n, width in [(1037, 5), (1024, 16), (600, 1)]:  # narrow columns, with ties
        for d in ('?', 'i1', 'u4', 'f2', 'f8'):
            x = (np.arange(n * width) * 7919 % 23).reshape(n, width).astype(d)
            for f in ('argmax', 'argmin'):
                add('base.' + f, [x], getattr(np, f)(x, axis=0), axis=0)
                add('base.' + f, [x], getattr(np, f)(x))
            if d[0] == 'f':
                x = x.copy()
                x[n // 2::7, 0] = np.nan
                add('base.argmin', [x], np.argmin(x, axis=0), axis=0)
                add('base.argmax', [x], np.argmax(x, axis=0), axis=0)
    wide = np.array([[2**62, 2**62 + 2**40, 2**63 - 1], [2**62, -2**63, -2**62]], 'i8')
    for x in (wide, wide[1:] - 3, np.abs(wide).astype('u8') * 2 - 1):  # their sums are beyond 64 bits
        add('base.mean', [x], np.mean(x), 4)
        add('base.mean', [x], np.mean(x, axis=0), 4, axis=[0])
        add('base.mean', [x], np.mean(x, axis=1), 4, axis=[1])
    add('base.logsumexp', [np.full((2, 3), -np.inf, 'f4')], np.full(2, -np.inf, 'f4'), axis=[1])


def moving():
    x = numbers(np.dtype('i4'), (4, 5))
    add('base.transpose', [x], x.T)
    add('base.reshape', [x.T.copy()], x.T.reshape(2, -1), shape=[2, -1])
    add('base.concatenate', [x, x[:1]], np.concatenate([x, x[:1]]))
    add('base.pad', [x], np.pad(x, ((1, 2), (0, 3)), constant_values=7),
        before=[1, 0], after=[2, 3], value=7)
    for start in [(0, 0), (2, 3), (-1, -2), (9, -9), (-5, 4)]:
        # The part fits: NumPy's slice at the index from the front, clamped.
        a, b = (min(max(at + n if at < 0 else at, 0), n - size)
                for at, n, size in zip(start, x.shape, (2, 3)))
        y = x.copy()
        y[a:a + 2, b:b + 3] = 100
        at = np.array(start)
        add('base.dynamic_slice', [x, at], x[a:a + 2, b:b + 3].copy(), sizes=[2, 3])
        add('base.dynamic_slice_update', [x, np.full((2, 3), 100, 'i4'), at], y)
    i = np.array([[0, -1], [3, 2]])
    add('base.take', [x, i], np.take(x, i, axis=1), axis=1)
    add('base.arange', [], np.arange(1, 2, 0.3), start=1, stop=2, step=0.3)
    add('base.arange', [], np.arange(7, -8, -5), start=7, stop=-8, step=-5)


def put_text(out, value):
    data = value.encode()
    out.write(struct.pack('<q', len(data)) + data)


def put_array(out, x):
    if x is None:
        out.write(struct.pack('<qq', 0, 0))
        return
    out.write(struct.pack('<qq', DTYPES[x.dtype], x.ndim))
    out.write(struct.pack(f'<{x.ndim}q', *x.shape))
    out.write(np.ascontiguousarray(x).tobytes())


def collect():
    """Fills the list of cases."""
    for make in (promotion, division, slices, shapes, reductions, moving):
        make()
    golden_numbers.make(add)
    golden_operators.make(add, DTYPES)
    golden_composites.make(add)
    golden_random.make(add)
    golden_nn.make(add)
    golden_groupwise.make(add)
    golden_matrices.make(add)
    DTYPES.update({np.dtype('complex64'): 14, np.dtype('complex128'): 15})
    golden_composites.make_complex(add)
    golden_numpy.make(add)
    golden_optim.make(add)
    golden_matrices.make_complex(add)


def main():
    collect()
    with open(sys.argv[1], 'wb') as out:
        out.write(struct.pack('<q', len(cases)))
        for name, attrs, inputs, results, roundings in cases:
            put_text(out, name)
            out.write(struct.pack('<q', len(attrs)))
            for key, value in attrs:
                put_text(out, key)
                put_text(out, value)
            out.write(struct.pack('<q', len(inputs)))
            for x in inputs:
                put_array(out, x)
            out.write(struct.pack('<qq', roundings, len(results)))
            for x in results:
                put_array(out, x)


if __name__ == '__main__':
    np.seterr(all='ignore')
    main()

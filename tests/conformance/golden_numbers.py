#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cases in which every bit counts: quotients of floats far apart, and integers compared where no
dtype holds both. Operands come from their bits. What is expected is hashed, and the hashes are
NumPy 2's: golden_numbers.py prints them anew, with NumPy 2 or later.
"""
import hashlib

import numpy as np

FROZEN = {
    'float16': 'de2545fc9127e2b5a2671604f9c60045',
    'float32': '321eea15ed01cac5bd534c685b915640',
    'float64': 'b08ee47d35752c95e9008b8d0ebb7e8a',
    'uint64 int64': 'b53cd04b6f0f6abcdf749ffe4c538f6c',
    'int64 uint64': '09d44608209a3fd2998c0c1d72004c82',
    'uint64 int16': 'd6809ed897648184f747c39d7e5981a6',
    'int8 uint64': 'c1544cc2b63739218bb1257089fbec37',
}
EVERY_BIT = 2**20 # as in golden.c: floats are equal to the bit
COMPARISONS = {'equal': '__eq__', 'not_equal': '__ne__', 'less': '__lt__', 'less_equal': '__le__',
               'greater': '__gt__', 'greater_equal': '__ge__'}
SPECIAL = [0, 1, 2, 3, 7, 10, 0.1, 0.3, 0.5, 1.5, 1e-3, 1e4, 59.99, 2.0**21, 2.0**26 + 1, np.inf,
           np.nan]
EDGES = [0, 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1025, 2**63 - 1, 2**63, 2**63 + 1025, 2**64 - 1]


def draws(count):
    """Numbers of 64 bits, by Knuth's generator: the same everywhere."""
    state, found = 1, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        found.append(state)
    return np.array(found, 'u8')


def pairs(dtype):
    """Special values with either sign, the limits of the dtype, and floats of any bits; then
    multiples of the divisor and what lies next to them, up to quotients of 2^30."""
    limits = np.finfo(dtype)
    special = np.array(SPECIAL + [limits.tiny, limits.smallest_subnormal, limits.max], dtype)
    special = np.concatenate([special, -special])
    x, y = (a.ravel() for a in np.meshgrid(special, special))
    bits = draws(1800)
    size = dtype.itemsize
    drawn = (bits[:1200] >> np.uint64(64 - 8 * size)).astype(f'u{size}').view(dtype)
    unit = ((bits[1200:] >> np.uint64(40)).astype('f8') / 2**23 - 1).astype(dtype)
    powers = ((bits[1200:] >> np.uint64(8)) % np.uint64(31)).astype('i4')
    whole = np.ldexp(1.0, powers) + (bits[1200:] % np.uint64(9)).astype('f8')
    near = (unit.astype('f8') * whole).astype(dtype)
    near[::3] = np.nextafter(near[::3], dtype.type(np.inf))
    near[1::3] = np.nextafter(near[1::3], dtype.type(-np.inf))
    return (np.concatenate([x, drawn[:600], near]), np.concatenate([y, drawn[600:], unit]))


def digest(results):
    """NaNs count as one: sign and payload are open."""
    found = hashlib.sha256()
    for x in results:
        x = np.where(np.isnan(x), np.array(np.nan, x.dtype), x) if x.dtype.kind == 'f' else x
        found.update(np.ascontiguousarray(x).tobytes())
    return found.hexdigest()[:32]


def exact(a, b, method):
    """As Python compares: NumPy before 2 converts both to f64."""
    return np.array([getattr(int(x), method)(int(y)) for x, y in zip(a, b)])


def quotients():
    for name in ('float16', 'float32', 'float64'):
        x, y = pairs(np.dtype(name))
        yield name, x, y, [x // y, x % y]


def comparisons():
    signed = np.array([s * e - (s < 0) for e in EDGES if e < 2**63 for s in (1, -1)], 'i8')
    a, b = (x.ravel() for x in np.meshgrid(np.array(EDGES, 'u8'), signed))
    for x, y in ((a, b), (b, a), (a, b.astype('i2')), (b.astype('i1'), a)):
        yield f'{x.dtype} {y.dtype}', x, y, [exact(x, y, m) for m in COMPARISONS.values()]


def make(add):
    for name, x, y, results in quotients():
        assert digest(results) == FROZEN[name], f'{name}: NumPy 2 gives other quotients'
        for operator, result in zip(('floor_divide', 'remainder'), results):
            add('base.' + operator, [x, y], result, roundings=EVERY_BIT)
    for name, x, y, results in comparisons():
        assert digest(results) == FROZEN[name], f'{name}: NumPy 2 compares otherwise'
        for operator, result in zip(COMPARISONS, results):
            add('base.' + operator, [x, y], result, roundings=EVERY_BIT)


def main():
    assert int(np.__version__.split('.')[0]) >= 2, np.__version__
    for name, x, y, results in [*quotients(), *comparisons()]:
        if x.dtype.kind != 'f':
            numpys = [getattr(np, operator)(x, y) for operator in COMPARISONS]
            assert digest(numpys) == digest(results), name
        print(f"    '{name}': '{digest(results)}',")


if __name__ == '__main__':
    np.seterr(all='ignore')
    main()

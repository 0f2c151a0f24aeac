#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints special.h, the polynomials of special.c. Run by hand; needs mpmath.

Each function is interpolated at Chebyshev nodes in 60 digits, its Chebyshev series cut where what
is left is below a tenth of a unit in the last place of f32 or f64, and the rest written in powers
of t, from -1 to 1, by Horner's rule.
"""
import mpmath as mp

mp.mp.dps = 60
NARROW, WIDE = mp.mpf('1e-8'), mp.mpf('1.5e-17')


def series(function, low, high, bound, count=64):
    """Coefficients of a function over [low, high] by powers of t, within a bound on relative errors."""
    nodes = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count) for k in range(count)]
    values = [function(low + (high - low) * (t + 1) / 2) for t in nodes]
    terms = [2 * sum(v * mp.cos(j * mp.pi * (k + mp.mpf(1) / 2) / count) for k, v in enumerate(values)) / count
             for j in range(count)]
    terms[0] /= 2
    least, left = min(abs(v) for v in values), mp.mpf(0)
    while left + abs(terms[-1]) < bound * least:
        left += abs(terms.pop())
    powers = [mp.mpf(0)] * len(terms)
    before, chebyshev = [], [mp.mpf(1)]
    for term in terms:
        for i, c in enumerate(chebyshev):
            powers[i] += term * c
        scale = 1 if len(chebyshev) == 1 else 2
        following = [mp.mpf(0)] + [scale * c for c in chebyshev]
        for i, c in enumerate(before):
            following[i] -= c
        before, chebyshev = chebyshev, following
    return powers


def number(x, bound):
    """The text of a coefficient with as many digits as its dtype has, behind its sign."""
    text = repr(float(abs(x))) if bound == WIDE else '%.9g' % float(abs(x))
    return '%s %s' % ('-+'[x > 0], text)


def define(name, comment, function, low, high, result, t='t'):
    """Two definitions of an expression, name_32 and name_64: the polynomial in `t` as `result`."""
    print('// %s, as %s' % (comment, result))
    for bits, bound in (32, NARROW), (64, WIDE):
        powers = [number(c, bound) for c in series(function, mp.mpf(low), mp.mpf(high), bound)]
        first = powers[-1].replace(' ', '').lstrip('+')
        lines = ['%s%d = %s * %s %s' % (result, len(powers) - 2, t, first, powers[-2])]
        for i in range(len(powers) - 3, -1, -1):
            lines.append('%s%s = %s * %s%d %s' % (result, i or '', t, result, i + 1, powers[i]))
        print('#define %s_%d \\' % (name, bits))
        for i, line in enumerate(lines):
            print('    "%s; "%s' % (line, ' \\' if i + 1 < len(lines) else ''))
    print()


def log_gamma(u):
    if abs(u) < mp.mpf('1e-25'):
        return mp.euler
    if abs(u - 1) < mp.mpf('1e-25'):
        return 1 - mp.euler
    return mp.loggamma(1 + u) / (u * (u - 1))


def bessel_near(n):
    return lambda x: mp.exp(-x) * mp.besseli(n, x) / x**n


def bessel_far(n):
    return lambda v: mp.exp(-1 / v) * mp.besseli(n, 1 / v) / mp.sqrt(v)


def main():
    print('// SPDX-License-Identifier: MIT')
    print('// Polynomials as definitions of an expression, of t or o in [-1, 1], for f32 and f64; printed by special.py.')
    print('#ifndef BASE_SPECIAL_H\n#define BASE_SPECIAL_H\n')
    define('LOG_GAMMA', 'lgamma(1 + u) / (u (u - 1)) for u = t + 1 in [0, 2]', log_gamma, 0, 2, 'g')
    define('GAMMA_NEAR', 'gamma(z) for z = t / 2 + 3 / 2 in [1, 2]', mp.gamma, 1, 2, 'g')
    for n in 0, 1:
        divided = ' / x' if n else ''
        define('I%dE_BELOW' % n, 'exp(-x) I%d(x)%s for x = 4 t + 4 in [0, 8]' % (n, divided), bessel_near(n), 0, 8, 'a')
        define('I%dE_ABOVE' % n, 'sqrt(x) exp(-x) I%d(x) for x = 16 / (o + 1) from 8 on' % n,
               bessel_far(n), 0, mp.mpf(1) / 8, 'b', 'o')
    print('#endif // BASE_SPECIAL_H')


main()

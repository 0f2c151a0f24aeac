#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints special.h, the polynomials of special.c. Run by hand; needs mpmath.

Each function is interpolated at Chebyshev nodes in 60 digits, and its Chebyshev series cut where
terms fall below 1e-18; Clenshaw's recurrence evaluates it in u, from -2 to 2.
"""
import mpmath as mp

mp.mp.dps = 60


def series(function, low, high, count=64):
    """Chebyshev coefficients of a function over [low, high], the first halved."""
    nodes = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count) for k in range(count)]
    values = [function(low + (high - low) * (t + 1) / 2) for t in nodes]
    terms = [2 * sum(v * mp.cos(j * mp.pi * (k + mp.mpf(1) / 2) / count) for k, v in enumerate(values)) / count
             for j in range(count)]
    terms[0] /= 2
    while abs(terms[-1]) < mp.mpf('1e-18') * abs(terms[0]):
        terms.pop()
    return terms


def clenshaw(name, terms, u='u'):
    """The series as definitions of an expression: of U, which is 2 t, the sum in NAME."""
    last = len(terms) - 1
    lines = ['%s%d = %s' % (name, last, float(terms[last])),
             '%s%d = %s * %s%d + %s' % (name, last - 1, u, name, last, float(terms[last - 1]))]
    for i in range(last - 2, 0, -1):
        sign, size = '-+'[terms[i] > 0], abs(float(terms[i]))
        lines.append('%s%d = %s * %s%d - %s%d %s %s' % (name, i, u, name, i + 1, name, i + 2, sign, size))
    lines.append('%s = %s / 2 * %s1 - %s2 + %s' % (name, u, name, name, float(terms[0])))
    return lines


def define(name, comment, lines):
    print('// %s' % comment)
    print('#define %s \\' % name)
    for i, line in enumerate(lines):
        print('    "%s; "%s' % (line, ' \\' if i + 1 < len(lines) else ''))
    print()


def log_gamma(x):
    if abs(x - 1) < mp.mpf('1e-25'):
        return mp.euler
    if abs(x - 2) < mp.mpf('1e-25'):
        return 1 - mp.euler
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def main():
    print('// SPDX-License-Identifier: MIT')
    print('// Chebyshev series as definitions of an expression, of u, w and o; printed by special.py.')
    print('#ifndef BASE_SPECIAL_H\n#define BASE_SPECIAL_H\n')
    define('LOG_GAMMA_SERIES', 'lgamma(x) / ((x - 1) (x - 2)) for x = u / 2 + 2 in [1, 3], as g',
           clenshaw('g', series(log_gamma, 1, 3)))
    for n, below, above in (0, 'a', 'b'), (1, 'a', 'b'):
        divided = ' / x' if n else ''
        define('I%dE_BELOW' % n, 'exp(-x) I%d(x)%s for x = 2 w + 4 in [0, 8], as a' % (n, divided),
               clenshaw(below, series(lambda x: mp.exp(-x) * mp.besseli(n, x) / x**n, 0, 8), 'w'))
        define('I%dE_ABOVE' % n, 'sqrt(x) exp(-x) I%d(x) for x = 32 / (o + 2) from 8 on, as b' % n,
               clenshaw(above, series(lambda v: mp.exp(-1 / v) * mp.besseli(n, 1 / v) / mp.sqrt(v),
                                      mp.mpf(0), mp.mpf(1) / 8), 'o'))
    print('#endif // BASE_SPECIAL_H')


main()

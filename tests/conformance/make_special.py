#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes special_values.py: values of special functions by mpmath. Run by hand."""
import mpmath as mp

mp.mp.dps = 40
AT = [2**-20, 0.125, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.375, 2.9375, 3, 4.5, 7, 7.875, 8, 9.5, 20, 33.25]
BELOW = [-0.25, -0.5, -1.5, -2.75, -7.625, -20.5]
FUNCTIONS = {
    'lgamma': (lambda x: mp.log(abs(mp.gamma(x))), BELOW + AT + [1e5, 2.0**100], 24),
    'gamma': (mp.gamma, BELOW + AT, 24),
    'digamma': (mp.digamma, BELOW + AT + [1e5, 2.0**100], 64),
    'trigamma': (lambda x: mp.polygamma(1, x), BELOW + AT + [1e5], 64),
    'i0e': (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), [-x for x in AT] + AT + [0.0, 700.0], 16),
    'i1e': (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), [-x for x in AT] + AT + [0.0, 700.0], 16),
}


def table(name, values):
    print('%s = {' % name)
    for key, value in values.items():
        print('    %r: [' % key)
        row = ''
        for v in value:
            if len(row) + len(repr(v)) > 100:
                print('        ' + row.rstrip())
                row = ''
            row += '%r, ' % v
        print('        %s],' % row.rstrip(', '))
    print('}')


print('# SPDX-License-Identifier: MIT')
print('"""Special functions at some numbers, in f64; printed by make_special.py."""')
table('AT', {name: [float(x) for x in at] for name, (_, at, _) in FUNCTIONS.items()})
table('VALUES', {name: [float(f(mp.mpf(x))) for x in at] for name, (f, at, _) in FUNCTIONS.items()})
print('ROUNDINGS = %r' % {name: roundings for name, (_, _, roundings) in FUNCTIONS.items()})

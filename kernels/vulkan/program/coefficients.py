#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the constants of functions_f64.glsl and circular_f64.glsl that are no plain fractions,
and those of erfinv in functions.glsl and <tenon/ops/program.h>.

Run by hand; needs mpmath. Constants are printed as a double and the remainder, also a double.
Constants that are multiplied by whole numbers are first cut to a few bits, so that the
products are exact. The polynomial for erfc interpolates at Chebyshev nodes.
"""
import mpmath as mp

mp.mp.prec = 1400  # for 1216 bits of 2 / pi


def show(name, value):
    high = mp.mpf(float(value))
    print('%-12s %-24r %r' % (name, float(high), float(value - high)))


def show_parts(name, value, num_bits, num_parts):
    """`value` as parts of num_bits bits each, and the rest."""
    for _ in range(num_parts):
        mantissa, exponent = mp.frexp(value)
        part = mp.ldexp(mp.floor(mp.ldexp(mantissa, num_bits)), exponent - num_bits)
        print('%-12s %r' % (name, float(part)))
        value -= part
    print('%-12s %r' % (name + ' rest', float(value)))


def two_over_pi():
    """2 / pi in words of 32 bits: a word of zeros, then the bits behind the point."""
    number = int(mp.floor(mp.ldexp(2 / mp.pi, 1216)))
    words = [0] + [number >> 32 * (37 - i) & 0xffffffff for i in range(38)] + [0]
    for i in range(0, 40, 4):
        print(', '.join('0x%08xu' % word for word in words[i:i + 4]))


def erf_series(count):
    """erf(x) / x - 1 in powers of x^2."""
    for k in range(count):
        value = 2 / mp.sqrt(mp.pi) * (-1)**k / (mp.factorial(k) * (2 * k + 1))
        print('erf x^%-2d     %r' % (2 * k, float(value - (k == 0))))


def interpolate(function, count):
    """Coefficients, from the constant on, of a polynomial over -1 .. 1."""
    nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    values = [function(node) for node in nodes]
    before, power = [mp.mpf(0)], [mp.mpf(1)]  # Chebyshev polynomials in powers
    out = [mp.mpf(0)] * count
    for k in range(count):
        weight = mp.mpf(2 if k else 1) / count * sum(
            value * mp.cos(k * mp.acos(node)) for node, value in zip(nodes, values))
        out = [a + weight * b for a, b in zip(out, power + [0] * (count - len(power)))]
        factor = 2 if k else 1
        next_power = [mp.mpf(0)] + [factor * a for a in power]
        for i, a in enumerate(before if k else []):
            next_power[i] -= a
        before, power = power, next_power
    return out


def erfc_polynomial(count):
    """erfc(a) exp(a^2) / t, t = 1 / (1 + a / 2), for a in 1 .. 6, in s = (t - middle) / half."""
    low, high = 1 / (1 + mp.mpf(6) / 2), 1 / (1 + mp.mpf(1) / 2)
    middle, half = (low + high) / 2, (high - low) / 2
    show('middle', middle)
    show('1 / half', 1 / half)

    def wanted(s):
        t = middle + half * s
        a = 2 * (1 / t - 1)
        return mp.erfc(a) * mp.exp(a * a) / t
    polynomial = interpolate(wanted, count)
    for k, value in enumerate(polynomial):
        print('erfc s^%-2d    %r' % (k, float(value)))
    worst = 0
    for i in range(501):
        s = mp.mpf(i) / 250 - 1
        t = middle + half * s
        a = 2 * (1 / t - 1)
        got = mp.polyval([mp.mpf(float(value)) for value in polynomial[::-1]], s)
        worst = max(worst, abs(got - wanted(s)) * t * mp.exp(-a * a) / mp.erf(a))
    print('erfc within  2^%s of erf' % mp.nstr(mp.log(worst, 2), 4))


def exchange(function, low, high, degree):
    """Remez: the polynomial of least relative error over low .. high, and that error."""
    count, known = degree + 2, {}

    def value(t):
        if t not in known:
            known[t] = function(t)
        return known[t]

    def points(n):
        return [(low + high - (high - low) * mp.cos(mp.pi * i / n)) / 2 for i in range(n + 1)]
    nodes, grid = points(count - 1), points(40 * count)
    while True:
        rows = [[node**k / value(node) for k in range(degree + 1)] + [(-1)**i]
                for i, node in enumerate(nodes)]
        solved = mp.lu_solve(mp.matrix(rows), mp.matrix([1] * count))
        polynomial = [solved[k] for k in range(degree + 1)]
        errors = [mp.polyval(polynomial[::-1], t) / value(t) - 1 for t in grid]
        starts = [0] + [i for i in range(1, len(grid)) if errors[i] * errors[i - 1] < 0]
        peaks = [max(range(first, last), key=lambda i: abs(errors[i]))
                 for first, last in zip(starts, starts[1:] + [len(grid)])]
        while len(peaks) > count:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        worst = max(map(abs, errors))
        if len(peaks) < count or worst < 1.05 * min(abs(errors[i]) for i in peaks):
            return polynomial, worst
        nodes = [grid[i] for i in peaks]


def erfinv_ratio(w):
    """erfinv(x) / x of w = -log(1 - x^2)."""
    if w < mp.mpf('1e-12'):
        return mp.sqrt(mp.pi) / 2 * (1 + mp.pi / 12 * w)
    x = mp.sqrt(-mp.expm1(-w))
    rest = mp.exp(-w) / (1 + x)
    y = mp.findroot(lambda y: mp.log(mp.erfc(y) / rest), mp.sqrt(w) if w > 1 else x)
    return y / x


def erfinv_polynomials():
    for name, function, low, high, degree in (
            ('near', lambda s: erfinv_ratio(s + mp.mpf(2.5)), mp.mpf(-2.5), mp.mpf(2.5), 10),
            ('far', lambda t: erfinv_ratio((t + 4)**2), mp.sqrt(5) - 4, mp.mpf('2.1'), 12)):
        polynomial, worst = exchange(function, low, high, degree)
        for k, value in enumerate(polynomial):
            print('erfinv %-4s^%-2d %r' % (name, k, float(value)))
        print('erfinv %s within %s' % (name, mp.nstr(worst, 3)))


def main():
    show_parts('log(2)', mp.log(2), 42, 1)
    show_parts('log10(2)', mp.log10(2), 42, 1)
    show_parts('pi / 2', mp.pi / 2, 31, 3)
    for name, value in (('log(2)', mp.log(2)), ('1 / log(2)', 1 / mp.log(2)),
                        ('2 / log(2)', 2 / mp.log(2)), ('1 / log(10)', 1 / mp.log(10)),
                        ('pi', mp.pi), ('pi / 2', mp.pi / 2), ('pi / 4', mp.pi / 4),
                        ('2 / pi', 2 / mp.pi), ('atan(1/2)', mp.atan(mp.mpf(1) / 2)),
                        ('1/3', mp.mpf(1) / 3), ('1/sqrt(pi)', 1 / mp.sqrt(mp.pi))):
        show(name, value)
    two_over_pi()
    mp.mp.prec = 160
    erf_series(19)
    erfc_polynomial(18)
    erfinv_polynomials()


if __name__ == '__main__':
    main()

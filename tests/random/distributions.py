# SPDX-License-Identifier: MIT
"""Random numbers of pack random from one key, through the command: moments, and the greatest distance of
their distribution to the one that they are of (Kolmogorov and Smirnov); counts of integers and categories."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import tap  # noqa: E402 pylint: disable=wrong-import-position
from tap import values  # noqa: E402 pylint: disable=wrong-import-position

N = 20000
CPU = {"TENON_BACKEND": "cpu-blas"}


# --- distributions ------------------------------------------------------------------------

def normal(x):
    return (1 + math.erf(x / math.sqrt(2))) / 2


def cut_normal(low, high):
    return lambda x: (normal(x) - normal(low)) / (normal(high) - normal(low))


def gamma(a):
    """The regularised incomplete gamma function, by its series."""
    def below(x):
        if x <= 0:
            return 0
        term = total = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
        n = a
        while term > 1e-12 * total:
            n += 1
            term *= x / n
            total += term
        return total
    return below


def beta(a, b):
    """Of whole a and b a sum of a binomial distribution; of two halves an arc sine."""
    if (a, b) == (0.5, 0.5):
        return lambda x: 2 / math.pi * math.asin(math.sqrt(min(max(x, 0), 1)))
    n = a + b - 1
    return lambda x: sum(math.comb(n, k) * x**k * (1 - x)**(n - k) for k in range(a, n + 1))


def poisson(mean):
    return lambda k: 1 - gamma(k + 1)(mean)


# What is drawn, its distribution, mean and variance.
SAMPLES = [
    ("uniform(k, shape=[{n}])", lambda x: x, 1 / 2, 1 / 12),
    ("uniform(k, -3.0, 5.0, shape=[{n}], dtype=f32)", lambda x: (x + 3) / 8, 1, 64 / 12),
    ("uniform(k, shape=[{n}], dtype=f64)", lambda x: x, 1 / 2, 1 / 12),
    ("normal(k, shape=[{n}])", normal, 0, 1),
    ("normal(k, shape=[{n}], dtype=f64)", normal, 0, 1),
    ("normal(k, 1.0, 2.0, shape=[{n}])", lambda x: normal((x - 1) / 2), 1, 4),
    ("truncated_normal(k, -0.5, 2.0, shape=[{n}])", cut_normal(-0.5, 2), 0.4707, 0.3915),
    ("gumbel(k, shape=[{n}])", lambda x: math.exp(-math.exp(-x)), 0.5772, math.pi**2 / 6),
    ("laplace(k, shape=[{n}])", lambda x: math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2, 0, 2),
    ("exponential(k, 3.0, shape=[{n}])", lambda x: 1 - math.exp(-x / 3), 3, 9),
    ("gamma(k, 0.05, shape=[{n}])", gamma(0.05), 0.05, 0.05),
    ("gamma(k, 0.7, shape=[{n}], dtype=f32)", gamma(0.7), 0.7, 0.7),
    ("gamma(k, 1.0, shape=[{n}])", gamma(1), 1, 1),
    ("gamma(k, 12.5, 2.0, shape=[{n}])", lambda x: gamma(12.5)(x / 2), 25, 50),
    ("beta(k, 0.5, 0.5, shape=[{n}])", beta(0.5, 0.5), 1 / 2, 1 / 8),
    ("beta(k, 2.0, 5.0, shape=[{n}], dtype=f32)", beta(2, 5), 2 / 7, 10 / (49 * 8)),
    ("dirichlet(k, [1.0, 2.0, 4.0], shape=[{n}])[:, 2]", beta(4, 3), 4 / 7, 12 / (49 * 8)),
    ("multivariate_normal(k, [1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]], shape=[{n}]) @ [1.0, -1.0]",
     lambda x: normal((x + 1) / math.sqrt(2)), -1, 2),
    ("poisson(k, 0.3, shape=[{n}])", poisson(0.3), 0.3, 0.3),
    ("poisson(k, 9.9, shape=[{n}], dtype=i32)", poisson(9.9), 9.9, 9.9),
    ("poisson(k, 10.0, shape=[{n}])", poisson(10), 10, 10),
    ("poisson(k, 70.0, shape=[{n}], dtype=f32)", poisson(70), 70, 70),
]


def draw(expression, seed=7):
    return values(f"k = random.key(seed={seed}); random." + expression.format(n=N), env=CPU)[0]


def distance(xs, below, counts):
    """The greatest distance of the numbers' distribution to `below`; counts are compared at whole numbers."""
    xs = sorted(xs)
    if counts:
        return max(abs(sum(x <= k for x in xs) / N - below(k)) for k in range(int(xs[0]), int(xs[-1]) + 1))
    places = [below(x) for x in xs]
    return max(max(abs(p - i / N), abs(p - (i + 1) / N)) for i, p in enumerate(places))


def check_sample(expression, below, mean, variance):
    xs = draw(expression)
    assert len(xs) == N and all(math.isfinite(x) for x in xs), expression
    found = sum(xs) / N
    spread = sum((x - found)**2 for x in xs) / N
    kurtosis = sum((x - found)**4 for x in xs) / N
    # Five deviations of a mean and of a variance; 1.95 is passed once in a thousand keys.
    assert abs(found - mean) < 5 * math.sqrt(variance / N) + 1e-4, f"{expression}: mean {found}, expected {mean}"
    off = 5 * math.sqrt((kurtosis - spread**2) / N) + 1e-4
    assert abs(spread - variance) < off, f"{expression}: variance {spread}, expected {variance}"
    d = distance(xs, below, expression.startswith("poisson")) * math.sqrt(N)
    assert d < 1.95, f"{expression}: distance {d}"


def numbers_have_their_distribution():
    for sample in SAMPLES:
        check_sample(*sample)


def both_layouts_have_it():
    for expression, *rest in SAMPLES:
        if expression.split("(")[0] in ("normal", "uniform", "gamma", "poisson") and "f64" not in expression:
            check_sample(expression.replace("shape=", "layout=\"halves\", shape="), *rest)


# --- counts -------------------------------------------------------------------------------

COUNTS = [
    ("randint(k, low=-100, high=101, dtype=i8, shape=[{n}])", range(-100, 101), None),
    ("randint(k, low=10, high=256, dtype=u8, shape=[{n}])", range(10, 256), None),
    ("randint(k, low=0, high=7, dtype=u16, shape=[{n}])", range(7), None),
    ("randint(k, low=-3, high=4, layout=\"halves\", shape=[{n}])", range(-3, 4), None),
    ("randint(k, low=0, high=3000000000, dtype=u32, shape=[{n}]) // 500000000", range(6), None),
    ("randint(k, dtype=u64, shape=[{n}]) >> 60", range(16), None),
    ("randint(k, low=-9000000000000000000, high=9000000000000000000, dtype=i64, shape=[{n}]) // 3000000000000000000",
     range(-3, 3), None),
    ("randint(k, low=0, high=11, dtype=i64, shape=[{n}])", range(11), None),
    ("categorical(k, [0.0, 1.0, 2.0], shape=[{n}])", range(3), [math.exp(i) for i in range(3)]),
    ("categorical(k, [0.0, 1.0, 2.0], num_samples={n}, layout=\"halves\")", range(3), [math.exp(i) for i in range(3)]),
    ("choice(k, n=5, shape=[{n}])", range(5), None),
    ("choice(k, [2, 3, 5], [0.2, 0.7, 0.1], shape=[{n}])", (2, 3, 5), [0.2, 0.7, 0.1]),
    ("bernoulli(k, p=0.3, shape=[{n}])", (False, True), [0.7, 0.3]),
    ("bernoulli(k, p=0.3, shape=[{n}], layout=\"halves\")", (False, True), [0.7, 0.3]),
]


def integers_have_their_counts():
    for expression, places, weights in COUNTS:
        xs = draw(expression)
        weights = weights or [1] * len(places)
        assert set(xs) <= set(places), f"{expression}: {sorted(set(xs) - set(places))}"
        square, free = 0, len(places) - 1
        for place, weight in zip(places, weights):
            expected = N * weight / sum(weights)
            square += (xs.count(place) - expected)**2 / expected
        # Chi-squared by its normal approximation (Wilson and Hilferty): passed once in a thousand keys.
        z = ((square / free)**(1 / 3) - 1 + 2 / (9 * free)) / math.sqrt(2 / (9 * free))
        assert z < 3.1, f"{expression}: chi-squared {square} of {free}"


def orders_are_random():
    for layout in ("counters", "halves"):
        whole = values(f"random.permutation(random.key(seed=9), n=3000, layout=\"{layout}\")", env=CPU)[0]
        assert sorted(whole) == list(range(3000)), layout
        # Places of an order and the numbers there are independent: their correlation is near 0.
        mean = 2999 / 2
        correlation = sum((i - mean) * (x - mean) for i, x in enumerate(whole)) / sum((i - mean)**2 for i in range(3000))
        assert abs(correlation) < 4 / math.sqrt(3000), f"{layout}: correlation {correlation}"


if __name__ == "__main__":
    tap.run([numbers_have_their_distribution, both_layouts_have_it, integers_have_their_counts,
             orders_are_random])

# SPDX-License-Identifier: MIT
"""What random programs found wrong once, each as small as it became: program, inputs, what is right (within
some units in the last place), and tangents where a derivative was wrong."""
import numpy as np

F4, F8, I4 = np.dtype('f4'), np.dtype('f8'), np.dtype('i4')
NAN, INF = np.nan, np.inf
NEAR_0 = np.array([0.0, 1e-6, 1e-3, 0.0189, 0.2, 0.26, -0.7, 2.5])
TWOS = np.arange(32.0).reshape(2, 1, 4, 2, 2) - 7
POWER = np.array([-2 + 0j, 3]) ** np.array([2 + 0.5j, -1j])


def slope_of_sinc(x):
    t = np.pi * x.astype('g')
    series = -t / 3 * (1 - t**2 / 10 * (1 - t**2 / 28 * (1 - t**2 / 54 * (1 - t**2 / 88))))
    with np.errstate(all='ignore'):
        return np.pi * np.where(np.abs(t) < 0.2, series, (np.cos(t) - np.sin(t) / t) / t)


FINDINGS = [
    ('a whole literal beside isnan', 'fmax(x, 2), fmin(x, 2)', [np.array([NAN, 1, 3])],
     [np.array([2.0, 2, 3]), np.array([2.0, 1, 2])], 0, None),
    ('the bits of a constant', 'view(full(shape=[2], value=1065353216, dtype=i32), dtype=f32) * x', [np.array([-1.5, 2], F4)],
     [np.array([-1.5, 2], F4)], 0, None),
    ('halves of a constant', 'view(full(shape=[2], value=5, dtype=i64), dtype=i32)', [], [np.array([5, 0, 5, 0], I4)], 0, None),
    ('ldexp by a literal', 'ldexp(x, 1)', [np.array([-1.25, 2], F4)], [np.array([-2.5, 4], F4)], 0, None),
    ('ldexp by a constant', 'ldexp(x, ones(shape=[], dtype=i32))', [np.array([-1.25, 2], F4)], [np.array([-2.5, 4], F4)], 0, None),
    ("the fraction's sign", 'f, w = modf(x); 1 / f, 1 / w', [np.array([-3.0, -0.0, 0.0])],
     [np.array([-INF, -INF, INF]), np.array([-1 / 3, -INF, INF])], 0, None),
    ('sinc', 'sinc(x)', [NEAR_0.astype(F4)], [np.sinc(NEAR_0.astype(F4).astype(F8)).astype(F4)], 2, None),
    ('slopes of sinc near 0', 'sinc(x)', [NEAR_0.astype(F4)], [slope_of_sinc(NEAR_0.astype(F4)).astype(F4)], 24,
     [np.ones(8, F4)]),
    ('slopes of sinc near 0', 'sinc(x)', [NEAR_0], [slope_of_sinc(NEAR_0).astype(F8)], 24, [np.ones(8)]),
    ('slopes of quantiles of equal elements', 'median(x), quantile(x, 0.1), percentile(x, 10, method=midpoint)',
     [np.array([2.0, 1, 1, 3])], [np.array(6.0), np.array(0.7 * 2 + 0.3 * 4), np.array(3.0)], 4,
     [np.array([8.0, 2, 4, 16])]),
    ('a slope of expm along a large matrix', 'linalg.expm(x) * 0.000001', [np.eye(2, dtype=F4)],
     [np.full((2, 2), np.e, F4)], 8, [np.full((2, 2), 1e6, F4)]),
    ('1 - beta of the first step', 'p, m, v = adam(x, x, zeros_like(x), zeros_like(x), ones(shape=[], dtype=f32)); m, v',
     [np.array([1, -3, 0.3], F4)], [np.array([0.1, -0.3, 0.03], F4), np.array([0.001, 0.009, 0.00009], F4)], 1, None),
    ('nine axes of a product', 'kron(x, y)', [TWOS, np.moveaxis(TWOS, 0, 1)], [np.kron(TWOS, np.moveaxis(TWOS, 0, 1))], 0, None),
    ('a negative number to a complex power', 'x ** y', [np.array([-2.0, 3]), np.array([2 + 0.5j, -1j])],
     [POWER * np.log(np.array([-2 + 0j, 3]))], 8, [np.zeros(2), np.ones(2, 'c16')]),
    ('tangents of nothing', 'scatter_min(x, y, zeros(shape=[2], dtype=f64))', [np.zeros(0), np.array([0, 2])], [np.zeros(0)], 0, [np.zeros(0)]),
    ('least integers', 'hypot(x, y), sinc(x), i0(x)', [np.array([-2**31, 0, -3], I4), np.array([0, 5, 4], I4)],
     [np.array([2.0**31, 5, 5]), np.sinc(np.array([-2.0**31, 0, -3])), np.array([INF, 1, 4.880792585865024])], 8, None),
    ('signs of 0', '1 / fmod(x, 3), angle(x)', [np.array([-0.0, 0.0, -6, 4])],
     [np.array([-INF, INF, -INF, 1]), np.array([np.pi, 0, np.pi, 0])], 1, None),
    ('powers of 2 with an infinite part', 'exp2(x)', [np.array([INF + 1.5j, -INF + 1j])], [np.array([complex(INF, INF), 0])], 1, None),
    ('a place among many', 'quantile(x, y)', [np.repeat(np.array([0, 1], F4), [17, 6]), np.array(0.7338141798973083, F4)],
     [np.array(0.14391196, F4)], 2, None),
    ('a middle that cancels', 'nanmedian(x)', [np.array([-11.03603744506836, 10.86817022, NAN, INF, -INF], F4)],
     [np.array(-0.08393383, F4)], 1, None),
    ('slopes at vectors of zeros', 'normalize(x) * 0.0009765625, normalize(x, p=3, axis=0)', [np.zeros((1, 3))], [np.full((1, 3), 1e12 / 1024), np.full((1, 3), 1e12)], 2,
     [np.ones((1, 3))]),
    ('tangents of equal maxima', 'max_pool2d(x, window=[2, 2])', [np.ones((1, 2, 2, 1))], [np.full((1, 1, 1, 1), 5.0)], 0,
     [np.array([5.0, 2, 3, 4]).reshape(1, 2, 2, 1)]),
    ('a product of one complex number', 'cumprod(x)', [np.array([complex(INF, 3), 1j])], [np.array([complex(INF, 3), complex(NAN, INF)])], 0, None),
    ('means of no windows', 'mean_pool2d(x, window=[1], stride=[4, 3], before=[5, 3], after=[2], extent=[0, 1], divisor=1)',
     [np.ones((2, 7, 5, 4))], [np.zeros((2, 0, 1, 4))], 0, None),
    ('gradients of no windows', 'mean_pool2d_input(x, window=[2], stride=[4], before=[1, 0], after=[1], extent=[4, 3], divisor=1)',
     [np.zeros((3, 0, 0, 3))], [np.zeros((3, 4, 3, 3))], 0, None),
    ('lengths beyond half floats', 'normalize(x, p=0.25) * 1000000', [np.full(33, 0.5, 'f2')], [np.full(33, 1e6 / 33**4, 'f2')], 60, None),
    ('NaN that is dropped', 'fmin(dropout(x, p=1), y), fmin(dropout(x, p=0), y)', [np.array([NAN, 3.0]), np.array([2.0, 2])],
     [np.array([0.0, 0]), np.array([2.0, 2])], 0, None),
    ('slopes by a counter', 'linear_schedule(x, init=0.5, steps=4), exponential_decay(x)', [np.array([1.0, 3])], [np.zeros(2), np.zeros(2)], 0,
     [np.ones(2)]),
    ('slopes by rates and numbers of steps', 'p, v = adafactor_vector(x, x, x, y, lr=y); q, m = muon(x, x, x, lr=y); p, q', [np.ones((2, 2)), np.array(2.0)],
     [np.zeros((2, 2))] * 2, 0, [np.zeros((2, 2)), np.array(1.0)]),
    ('slopes by variances below eps', 'gaussian_nll_loss(x, x, y, eps=1, reduction=sum)', [np.ones(3), np.array([0.25, 2, -1])],
     [np.array(0.5 + 0.25 + 0.5)], 2, [np.zeros(3), np.ones(3)]),
    ('the slope of a norm of zeros', 'global_norm(x), clip_grad_norm(x)[1]', [np.zeros(2)], [np.array(0.0)] * 2, 0, [np.ones(2)]),
    ('a norm of f32 and f64', 'global_norm(x, y)', [np.array([0.1, 0.3], F4), np.array([0.5])],
     [np.sqrt(np.array(0.25 + np.sum(np.array([0.1, 0.3], F4).astype(F8)**2)))], 2, None),
]


def check(driver):
    """Sentences of what is wrong."""
    wrong = []
    for name, program, inputs, want, units, tangents in FINDINGS:
        names = ['x', 'y'][:len(inputs)]
        request = {'program': program, 'names': names, 'outputs': len(want), 'way': 'value', 'wrt': []}
        if tangents is not None:
            request.update(derive='jvp', wrt=list(range(len(tangents))))
        got = driver.ask(request, inputs + (tangents or []))
        if isinstance(got, str):
            wrong.append(f'{name}: {program} is refused: {got}')
            continue
        for g, w in zip(got, want):
            size = units * np.finfo(w.dtype).eps * np.abs(w) if w.dtype.kind in 'fc' else 0
            with np.errstate(all='ignore'):
                near = (g == w) | (np.isnan(g) & np.isnan(w)) | (np.abs(g - w) <= size + (units > 0) * np.finfo('f4').tiny)
            if g.dtype != w.dtype or g.shape != w.shape or not np.all(near):
                wrong.append(f'{name}: {program} is {g.dtype} {g.tolist()}, expected {w.dtype} {w.tolist()}')
    return wrong

# SPDX-License-Identifier: MIT
"""Pack optim: steps of optimisers, norms of gradients, schedules; a rate that is an operand, too."""
import functools

import numpy as np
from draw import given
from entries import entry, phrase, require, wide_float
from rules import like_first

CONSTANTS = {}  # operands of phrases without a derivative: numbers of steps, rates
FACTS = {'ulps': 8, 'sums': True, 'unit': True, 'dtype': like_first}


def decayed(p, g, weight_decay):
    return g + weight_decay * p


# --- element by element -------------------------------------------------------------------


def sgd(p, g, m, step, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    d = decayed(p, g, weight_decay)
    m = momentum * m + (1 - dampening) * d if step > 1 and momentum != 0 else d
    return p - lr * (d + momentum * m if nesterov else m), m


def lion(p, g, m, lr=1e-4, beta1=0.9, beta2=0.99, weight_decay=0.0):
    return p - lr * (np.sign(beta1 * m + (1 - beta1) * g) + weight_decay * p), beta2 * m + (1 - beta2) * g


def moments(g, m, v, beta1, beta2):
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


def way(m, v, step, beta1, beta2, eps):
    t = step.astype(m.dtype)
    return m / (1 - beta1 ** t) / (np.sqrt(v / (1 - beta2 ** t)) + eps)


def adam(p, g, m, v, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = moments(decayed(p, g, weight_decay), m, v, beta1, beta2)
    return p - lr * way(m, v, step, beta1, beta2, eps), m, v


def adamw(p, g, m, v, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01):
    m, v = moments(g, m, v, beta1, beta2)
    return p - lr * (way(m, v, step, beta1, beta2, eps) + weight_decay * p), m, v


def amsgrad(p, g, m, v, most, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, decoupled=False):
    m, v = moments(g if decoupled else decayed(p, g, weight_decay), m, v, beta1, beta2)
    most = np.maximum(most, v)
    return p - lr * (way(m, most, step, beta1, beta2, eps) + (weight_decay * p if decoupled else 0)), m, v, most


def adamax(p, g, m, u, step, lr=2e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    d = decayed(p, g, weight_decay)
    m, u = beta1 * m + (1 - beta1) * d, np.maximum(beta2 * u, np.abs(d) + eps)
    return p - lr * m / (1 - beta1 ** step.astype(p.dtype)) / u, m, u


def adagrad(p, g, v, step, lr=1e-2, lr_decay=0.0, weight_decay=0.0, eps=1e-10):
    d = decayed(p, g, weight_decay)
    v = v + d * d
    return p - lr / (1 + (step - 1) * lr_decay) * d / (np.sqrt(v) + eps), v


def adadelta(p, g, v, u, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0):
    d = decayed(p, g, weight_decay)
    v = rho * v + (1 - rho) * d * d
    delta = np.sqrt(u + eps) / np.sqrt(v + eps) * d
    return p - lr * delta, v, rho * u + (1 - rho) * delta * delta


def rmsprop(p, g, v, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0):
    d = decayed(p, g, weight_decay)
    v = alpha * v + (1 - alpha) * d * d
    return p - lr * d / (np.sqrt(v) + eps), v


def rmsprop_momentum(p, g, v, m, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0):
    d = decayed(p, g, weight_decay)
    v = alpha * v + (1 - alpha) * d * d
    m = momentum * m + d / (np.sqrt(v) + eps)
    return p - lr * m, v, m


def rmsprop_centered(p, g, v, mean, m, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0):
    d = decayed(p, g, weight_decay)
    v, mean = alpha * v + (1 - alpha) * d * d, alpha * mean + (1 - alpha) * d
    m = momentum * m + d / (np.sqrt(v - mean * mean) + eps)
    return p - lr * m, v, mean, m


# By name: the function, what its state looks like, whether it counts steps, attributes besides.
LR = {'lr': [None, 0.1]}
DECAY = {'weight_decay': [None, 0.05]}
BETAS = {'beta1': [None, 0.75], 'beta2': [None, 0.875], 'eps': [None, 1e-3]}
STEPS = {
    'sgd': (sgd, ['any'], True, {'momentum': [None, 0.9], 'dampening': [None, 0.25], 'nesterov': [None, True]}),
    'lion': (lion, ['any'], False, {'beta1': [None, 0.75], 'beta2': [None, 0.5]}),
    'adam': (adam, ['any', 'positive'], True, BETAS), 'adamw': (adamw, ['any', 'positive'], True, BETAS),
    'amsgrad': (amsgrad, ['any', 'positive', 'positive'], True, {**BETAS, 'decoupled': [None, True]}),
    'adamax': (adamax, ['any', 'positive'], True, BETAS),
    'adagrad': (adagrad, ['positive'], True, {'lr_decay': [None, 0.25], 'eps': [None, 1e-3]}),
    'adadelta': (adadelta, ['positive', 'positive'], False, {'rho': [None, 0.75], 'eps': [None, 1e-3]}),
    'rmsprop': (rmsprop, ['positive'], False, {'alpha': [None, 0.75]}),
    'rmsprop_momentum': (rmsprop_momentum, ['positive', 'any'], False, {'alpha': [None, 0.75], 'momentum': [None, 0.5]}),
    'rmsprop_centered': (rmsprop_centered, ['positive', 'small', 'any'], False,
                         {'alpha': [None, 0.75], 'momentum': [None, 0.5]})}


def parameters(d):
    i = d.pick(lambda x: wide_float(x) and bool(np.all(np.abs(x) < 50)))
    return i, d.values[i]


def state(d, p, style):
    """An array like p; second moments are positive, means of centred steps 0 to 0.1."""
    if style == 'small':
        return d.make(p.dtype, p.shape, 'tenth')
    return d.of(p.dtype, p.shape, style, lambda x: bool(np.all(np.abs(x) < 50)) and (
        style == 'any' or bool(np.all(x > 0.05))))


def counter(d, p):
    return d.of(p.dtype, (), 'step', lambda x: x in range(1, 9))


def step_of(name):
    _, styles, counts, choices = STEPS[name]

    def draw(d):
        i, p = parameters(d)
        operands = [i, state(d, p, 'any'), *(state(d, p, s) for s in styles)]
        operands += [counter(d, p)] if counts else []
        return operands, given(**{k: d.one(v) for k, v in {**LR, **DECAY, **choices}.items()})
    return draw


for name, (f, styles, counts, _) in STEPS.items():
    entry('optim.' + name, f, step_of(name), weight=0.5, results=len(styles) + 1, **FACTS)


# --- matrices -----------------------------------------------------------------------------


def rms(x):
    return np.sqrt(np.mean(x * x))


def adafactor_apply(p, g, v, step, lr, eps1, eps2, d, weight_decay):
    update = g / np.sqrt(np.maximum(v, eps1 * eps1))
    rate = np.maximum(eps2, rms(p)) * np.minimum(lr, 1 / np.sqrt(step)) / np.maximum(1, rms(update) / d)
    return p * (1 - lr * weight_decay) - rate * update


def adafactor(p, g, row, column, step, eps1, lr=1e-2, beta2_decay=-0.8, eps2=1e-3, d=1.0, weight_decay=0.0):
    share = step ** beta2_decay
    row = row + (np.mean(g * g, -1, keepdims=True) - row) * share
    column = column + (np.mean(g * g, -2, keepdims=True) - column) * share
    v = row * column / np.maximum(np.mean(row, -2, keepdims=True), eps1)
    return adafactor_apply(p, g, v, step, lr, eps1, eps2, d, weight_decay), row, column


def adafactor_vector(p, g, v, step, eps1, lr=1e-2, beta2_decay=-0.8, eps2=1e-3, d=1.0, weight_decay=0.0):
    v = v + (g * g - v) * step ** beta2_decay
    return adafactor_apply(p, g, v, step, lr, eps1, eps2, d, weight_decay), v


def factored(d):
    i, p = parameters(d)
    require(p.size > 0)
    g = state(d, p, 'any')
    require(np.all(np.abs(d.values[g]) > 1e-2))
    if d.name.endswith('adafactor'):
        require(p.ndim > 1)
        means = [d.of(p.dtype, (*p.shape[:-1], 1), 'positive', lambda x: bool(np.all(x > 0.05))),
                 d.of(p.dtype, (*p.shape[:-2], 1, p.shape[-1]), 'positive', lambda x: bool(np.all(x > 0.05)))]
    else:
        means = [state(d, p, 'positive')]
    return [i, g, *means, counter(d, p)], given(
        lr=d.one([None, 0.1]), beta2_decay=d.one([None, -0.5]), eps1=d.one([1e-10, 1e-3]), eps2=d.one([None, 0.5]),
        d=d.one([None, 0.5]), weight_decay=d.one([None, 0.05]))


entry('optim.adafactor', adafactor, factored, results=3, **FACTS)
entry('optim.adafactor_vector', adafactor_vector, factored, weight=0.5, results=2, **FACTS)


def orthogonal(x, steps, eps):
    turned = x.shape[0] > x.shape[1]
    x = x.T if turned else x
    x = x / np.maximum(np.sqrt(np.sum(x * x)), eps)
    for _ in range(steps):
        gram = x @ x.T
        x = x.dtype.type(3.4445) * x + (x.dtype.type(-4.775) * gram + x.dtype.type(2.0315) * (gram @ gram)) @ x
    return x.T if turned else x


def muon(p, g, m, lr=1e-3, momentum=0.95, weight_decay=0.1, eps=1e-7, nesterov=True, ns_steps=5, adjust_lr='original'):
    m = m + (g - m) * (1 - momentum)
    along = g + (m - g) * momentum if nesterov else m
    rows, columns = along.shape[0], int(np.prod(along.shape[1:]))
    update = orthogonal(along.reshape(rows, columns), ns_steps, eps).reshape(p.shape)
    factor = np.sqrt(max(1, rows / columns)) if adjust_lr == 'original' else 0.2 * np.sqrt(max(rows, columns))
    return p * (1 - lr * weight_decay) - lr * factor * update, m


def muon_of(d):
    i, p = parameters(d)
    require(p.ndim > 1 and p.size > 0)
    return [i, state(d, p, 'any'), state(d, p, 'any')], given(
        lr=d.one([None, 0.1]), momentum=d.one([None, 0.5]), nesterov=d.one([None, False]), ns_steps=d.one([None, 2, 0]),
        adjust_lr=d.one([None, 'match_rms_adamw']))


entry('optim.muon', muon, muon_of, results=2, **FACTS)

# --- rates that are operands --------------------------------------------------------------


RATED = {'sgd': (sgd, step_of('sgd'), ''), 'lion': (lion, step_of('lion'), ''), 'adam': (adam, step_of('adam'), ''),
         'muon': (muon, muon_of, ''), 'adafactor': (adafactor, factored, ', eps1={eps1}')}


def rated(name, f, draw, more):
    """A phrase of the operator with its default attributes, whose rate is one more operand."""
    count = {'lion': 3, 'sgd': 4, 'adam': 5, 'muon': 3, 'adafactor': 5}[name]

    def drawn(d):
        operands, _ = draw(d)
        return [*operands, d.of(d.values[operands[0]].dtype, (), 'share', lambda x: 0 < x < 1)], {'eps1': 1e-10} if more else {}
    places = ', '.join('{%d}' % k for k in range(count))
    CONSTANTS['rated_' + name] = [count] if name in ('lion', 'muon') else [count - 1, count]
    phrase('rated_' + name, 'optim.' + name, f'optim.{name}({places}, lr={{{count}}}{more})',
           lambda *arrays, **attrs: f(*arrays[:count], lr=arrays[count], **attrs), drawn, weight=0.25,
           results={'adam': 3, 'adafactor': 3}.get(name, 2), **FACTS)


for name, (f, draw, more) in RATED.items():
    rated(name, f, draw, more)

# --- norms of gradients -------------------------------------------------------------------


def of_norms(x):
    return x.astype(np.result_type(x.dtype, 'f4'))


def global_norm(*gradients):
    return np.sqrt(functools.reduce(np.add, [np.asarray(np.sum(np.square(of_norms(g)))) for g in gradients]))


def clip_grad_norm(*gradients, max_norm=1.0):
    norm = global_norm(*gradients)
    factor = np.minimum(1, max_norm / (norm + 1e-6))
    return *((g * factor).astype(g.dtype) for g in gradients), norm


def several(d):
    found = [d.pick(lambda x: x.dtype.kind == 'f' and bool(np.all(np.abs(x) < 200))) for _ in range(d.number(1, 3))]
    require(any(np.any(np.abs(d.values[i]) > 0.05) for i in found))
    return found, given(max_norm=d.one([None, 0.5, 100.0])) if d.name.endswith('clip_grad_norm') else {}


entry('optim.global_norm', global_norm, several, ulps=4, sums=True)
entry('optim.clip_grad_norm', clip_grad_norm, several, ulps=4, sums=True)

# --- schedules ----------------------------------------------------------------------------


def rate_dtype(step, *others, **attrs):
    return np.dtype(step if step[0] in 'fg' else 'f4')


def of_counter(f):
    return lambda step, **attrs: f(step if step.dtype.kind == 'f' else step.astype('f8'), **attrs)


def fraction(x, steps):
    return np.minimum(x, steps) / steps


# Factors have few bits: those of f32 would be off by rounding, times the number of steps.
SCHEDULES = {
    'constant_schedule': (lambda x, init=1e-3: 0 * x + init, {}),
    'step_decay': (lambda x, init, rate, steps: init * rate ** np.floor(x / steps), {'rate': [0.5, 0.75], 'steps': [1, 2, 3]}),
    'exponential_decay': (lambda x, init, rate: init * rate ** x, {'rate': [0.5, 0.75, 0.875]}),
    'cosine_decay': (lambda x, init, steps, end=0.0: end + (init - end) / 2 * (1 + np.cos(fraction(x, steps) * np.pi)),
                     {'end': [None, 0.125], 'steps': [3, 4, 7]}),
    'linear_schedule': (lambda x, init, steps, end=0.0: init + (end - init) * fraction(x, steps), {'end': [None, 0.125], 'steps': [3, 4, 7]}),
    'polynomial_decay': (lambda x, init, steps, end=0.0, power=1.0: end + (init - end) * (1 - fraction(x, steps)) ** power,
                         {'end': [None, 0.125], 'power': [None, 2.0], 'steps': [3, 4, 7]})}


def counted(choices):
    def draw(d):
        i = d.pick(lambda x: x.dtype.kind in 'iu' and bool(np.all((x >= 0) & (x < 99)))) if d.chance(0.5) else d.make(
            d.one([np.dtype('i4'), np.dtype('f4'), np.dtype('f8'), np.dtype('i8')]), d.one([(), (3,)]), 'step')
        return [i], given(init=d.one([0.5, 1.0]), **{k: d.one(v) for k, v in choices.items()})
    return draw


for name, (f, choices) in SCHEDULES.items():
    entry('optim.' + name, of_counter(f), counted(choices), weight=0.25, ulps=8, sums=True, unit=True, dtype=rate_dtype)


def join(step, *schedules, boundaries):
    out = schedules[0]
    for start, behind in zip(boundaries, schedules[1:]):
        out = np.where(step < start, out, behind)
    return out


def joined(d):
    i = d.pick(lambda x: x.dtype in (np.dtype('f4'), np.dtype('f8')))
    x = d.values[i]
    count = d.number(1, 3)
    more = [d.like(i, lambda y: y.dtype == x.dtype) for _ in range(count - 1)]
    step = d.make(d.one([np.dtype('i4'), x.dtype]), (), 'step')
    return [step, i, *more], {'boundaries': sorted(d.number(1, 9) for _ in range(count - 1))}


entry('optim.join_schedules', join, joined, weight=0.5)

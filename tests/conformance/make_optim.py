#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes optim_values.py: steps of optimisers by PyTorch (Muon's iteration in f64 instead of
bf16), of Lion by MLX. usage: make_optim.py, with torch and mlx"""
import pprint

import mlx.core as mx
import mlx.optimizers
import numpy as np
import torch
from torch.optim import _muon

STEPS = 5
random = np.random.default_rng(35)

source = __import__('inspect').getsource(_muon._zeropower_via_newtonschulz)
exec(source.replace('torch.bfloat16', 'torch.float64'), _muon.__dict__)  # the iteration alone, in f64


def trajectory(make, keys, shape):
    """p and state at first, then [gradient, p and state after] of each step."""
    p = torch.nn.Parameter(torch.tensor(np.round(random.normal(size=shape), 3)))
    optimiser = make([p])
    steps = []

    def now():
        state = optimiser.state[p]
        return [p.detach().numpy().copy()] + [
            None if state.get(k) is None else state[k].numpy().copy() for k in keys]
    for i in range(STEPS):
        g = np.round(random.normal(size=shape), 3)
        p.grad = torch.tensor(g)
        before = now()
        optimiser.step()
        after = now()
        before = [np.zeros_like(a) if b is None else b for a, b in zip(after, before)]
        if i == 0:
            steps.append([a.tolist() for a in before])
        steps.append([g.tolist(), [a.tolist() for a in after]])
    return steps


def lion(**options):
    optimiser = mlx.optimizers.Lion(**{k: v for k, v in options.items()})
    p = mx.array(np.round(random.normal(size=(2, 2)), 3).astype('f4'))
    state, steps = {'m': mx.zeros((2, 2))}, []
    optimiser.init({'p': p})
    steps.append([np.array(p).tolist(), np.array(state['m']).tolist()])
    for _ in range(STEPS):
        g = np.round(random.normal(size=(2, 2)), 3).astype('f4')
        p = optimiser.apply_single(mx.array(g), p, state)
        steps.append([g.tolist(), [np.array(p).tolist(), np.array(state['m']).tolist()]])
    return steps


def main():
    o, cases = torch.optim, []

    def add(name, make, keys, attrs, shape=(2, 2), **options):
        cases.append((name, attrs, trajectory(lambda p: make(p, **options), keys, shape)))
    sgd = {'lr': 0.1, 'momentum': 0.9, 'weight_decay': 0.02}
    add('sgd', o.SGD, ['momentum_buffer'], {**sgd, 'dampening': 0.3}, **sgd, dampening=0.3)
    add('sgd', o.SGD, ['momentum_buffer'], {**sgd, 'nesterov': True}, **sgd, nesterov=True)
    moments = ['exp_avg', 'exp_avg_sq']
    for decay in (0, 0.1):
        add('adam', o.Adam, moments, {'lr': 0.05, 'weight_decay': decay}, lr=0.05, weight_decay=decay)
    add('adamw', o.AdamW, moments, {'lr': 0.05, 'beta1': 0.8, 'beta2': 0.95, 'eps': 1e-3},
        lr=0.05, betas=(0.8, 0.95), eps=1e-3)
    add('amsgrad', o.Adam, moments + ['max_exp_avg_sq'],
        {'lr': 0.05, 'beta2': 0.7, 'weight_decay': 0.1}, lr=0.05, betas=(0.9, 0.7), weight_decay=0.1,
        amsgrad=True)
    add('amsgrad', o.AdamW, moments + ['max_exp_avg_sq'],
        {'lr': 0.05, 'beta2': 0.7, 'weight_decay': 0.1, 'decoupled': True}, lr=0.05, betas=(0.9, 0.7),
        weight_decay=0.1, amsgrad=True)
    add('adamax', o.Adamax, ['exp_avg', 'exp_inf'], {'lr': 0.05, 'weight_decay': 0.1}, lr=0.05,
        weight_decay=0.1)
    add('adagrad', o.Adagrad, ['sum'], {'lr': 0.1, 'lr_decay': 0.2, 'weight_decay': 0.1}, lr=0.1,
        lr_decay=0.2, weight_decay=0.1)
    add('adadelta', o.Adadelta, ['square_avg', 'acc_delta'], {'rho': 0.8, 'weight_decay': 0.1}, rho=0.8,
        weight_decay=0.1)
    rms = {'lr': 0.05, 'alpha': 0.9, 'weight_decay': 0.1}
    add('rmsprop', o.RMSprop, ['square_avg'], rms, **rms)
    rms = {**rms, 'momentum': 0.7}
    add('rmsprop_momentum', o.RMSprop, ['square_avg', 'momentum_buffer'], rms, **rms)
    add('rmsprop_centered', o.RMSprop, ['square_avg', 'grad_avg', 'momentum_buffer'], rms, **rms,
        centered=True)
    for shape in ((3, 2), (2, 2, 3)):
        add('adafactor', o.Adafactor, ['row_var', 'col_var'], {'lr': 0.3, 'weight_decay': 0.1}, shape,
            lr=0.3, weight_decay=0.1)
    add('adafactor_vector', o.Adafactor, ['variance'], {'lr': 0.3}, (4,), lr=0.3)
    for shape, more in [((3, 2), {}), ((2, 3), {'nesterov': False}),
                        ((2, 2), {'adjust_lr': 'match_rms_adamw', 'ns_steps': 3})]:
        torch_more = {'adjust_lr_fn' if k == 'adjust_lr' else k: v for k, v in more.items()}
        add('muon', o.Muon, ['momentum_buffer'], {'lr': 0.2, **more}, shape, lr=0.2, **torch_more)
    for options in ({'learning_rate': 0.05}, {'learning_rate': 0.05, 'weight_decay': 0.3}):
        attrs = {'lr': options['learning_rate'], 'weight_decay': options.get('weight_decay', 0)}
        cases.append(('lion', attrs, lion(**options)))

    steps = mx.array(np.arange(0, 12, 2).astype('f4'))
    m = mlx.optimizers
    schedules = []
    for name, attrs, f in [
            ('exponential_decay', {'init': 0.1, 'rate': 0.9}, m.exponential_decay(0.1, 0.9)),
            ('step_decay', {'init': 0.1, 'rate': 0.5, 'steps': 3}, m.step_decay(0.1, 0.5, 3)),
            ('cosine_decay', {'init': 0.1, 'end': 0.01, 'steps': 7}, m.cosine_decay(0.1, 7, 0.01)),
            ('linear_schedule', {'init': 0.0, 'end': 0.1, 'steps': 5}, m.linear_schedule(0.0, 0.1, 5))]:
        schedules.append((name, attrs, [float(f(s)) for s in steps]))
    joined = m.join_schedules([m.linear_schedule(0.0, 0.1, 4), m.cosine_decay(0.1, 6)], [4])
    schedules.append(('join_schedules', {}, [float(joined(s)) for s in steps]))

    gs = [random.normal(size=s).round(3) for s in ((3,), (2, 2))]
    clipped = [torch.nn.Parameter(torch.zeros(g.shape, dtype=torch.float64)) for g in gs]
    for c, g in zip(clipped, gs):
        c.grad = torch.tensor(g)
    norm = torch.nn.utils.clip_grad_norm_(clipped, 0.7)
    clip = ([g.tolist() for g in gs], [c.grad.numpy().tolist() for c in clipped], float(norm))
    with open('optim_values.py', 'w') as out:
        out.write('# SPDX-License-Identifier: MIT\n'
                  f'"""Written by make_optim.py with PyTorch {torch.__version__.split("+")[0]} and MLX {mx.__version__}."""\n')
        for name, value in [('STEPS', cases), ('SCHEDULES', schedules), ('CLIP', clip)]:
            out.write(f'{name} = {pprint.pformat(value, width=150, compact=True)}\n')


main()

# SPDX-License-Identifier: MIT
"""Cases of golden.py for pack optim: what PyTorch and MLX computed (optim_values.py), a step from
each of their states."""
import numpy as np
import optim_values

COUNTED = ('sgd', 'adam', 'adamw', 'amsgrad', 'adamax', 'adagrad', 'adafactor', 'adafactor_vector')


def make(add):
    for name, attrs, steps in optim_values.STEPS:
        dtypes = ['f4'] if name == 'lion' else ['f8', 'f4']
        before = steps[0]
        for i, (g, after) in enumerate(steps[1:]):
            for d in dtypes:
                inputs = [np.array(before[0], d), np.array(g, d)] + [np.array(b, d) for b in before[1:]]
                if name in COUNTED:
                    inputs.append(np.array(i + 1, d))
                # f32 rounds what is near 1, a decay of 0.999, before it takes the distance from 1.
                add('optim.' + name, inputs, tuple(np.array(a, d) for a in after),
                    {'f8': 4096, 'f4': 1024}[d], **attrs)
            before = after
    for name, attrs, values in optim_values.SCHEDULES:
        for i, value in enumerate(values):
            step = np.array(2 * i, 'f4')
            inputs = [step]
            if name == 'join_schedules':
                attrs = {'boundaries': [4]}
                inputs = [step, np.array(min(step, 4) * 0.1 / 4, 'f4'),
                          np.array(0.05 * (1 + np.cos(np.pi * min(step - 4, 6) / 6)), 'f4')]
            add('optim.' + name, inputs, np.array(value, 'f4'), 64, **attrs)
            if name != 'join_schedules':
                add('optim.' + name, [np.array(2 * i)], np.array(value, 'f4'), 64, **attrs)
    add('optim.constant_schedule', [np.array(7)], np.array(0.25, 'f4'), init=0.25)
    add('optim.polynomial_decay', [np.array(3.0)], np.array(0.1 + 0.9 * 0.25 ** 2), 64, init=1.0, end=0.1,
        power=2.0, steps=4)
    gradients, clipped, norm = optim_values.CLIP
    gradients = [np.array(g) for g in gradients]
    add('optim.clip_grad_norm', gradients, (*map(np.array, clipped), np.array(norm)), 64, max_norm=0.7)
    add('optim.clip_grad_norm', gradients, (*gradients, np.array(norm)), 64, max_norm=70.0)
    add('optim.global_norm', gradients, np.array(norm), 64)
    halves = [np.full(3, 300, 'f2'), np.full((2, 2), -400, 'f2')]  # squares are beyond f16
    add('optim.global_norm', halves, np.array(np.sqrt(3 * 300**2 + 4 * 400**2), 'f4'), 16)

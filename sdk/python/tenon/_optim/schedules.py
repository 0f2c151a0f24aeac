# SPDX-License-Identifier: MIT
"""Schedules: functions of a step counter, which is an array, to a learning rate, computed with the step."""

import tenon as tn


def constant(init):
    """init."""
    return lambda step: tn.optim.constant_schedule(step, init=init)


def exponential_decay(init, decay_rate):
    """init * decay_rate ** step."""
    return lambda step: tn.optim.exponential_decay(step, init=init, rate=decay_rate)


def step_decay(init, decay_rate, step_size):
    """init * decay_rate ** (step // step_size)."""
    return lambda step: tn.optim.step_decay(step, init=init, rate=decay_rate, steps=step_size)


def cosine_decay(init, decay_steps, end=0.0):
    """From init to end by half a cosine, in decay_steps."""
    return lambda step: tn.optim.cosine_decay(step, init=init, end=end, steps=decay_steps)


def linear_schedule(init, end, steps):
    """From init to end on a line, in steps."""
    return lambda step: tn.optim.linear_schedule(step, init=init, end=end, steps=steps)


def polynomial_decay(init, end, power, steps):
    """From init to end by a power of what is left, in steps."""
    return lambda step: tn.optim.polynomial_decay(step, init=init, end=end, power=power, steps=steps)


def join_schedules(schedules, boundaries):
    """Each schedule from its boundary on, where its step is 0."""
    if len(boundaries) != len(schedules) - 1:
        raise ValueError(f"join_schedules: {len(boundaries)} boundaries of {len(schedules)} schedules, expected {len(schedules) - 1}")

    def rate(step):
        starts = [0, *boundaries]
        parts = [schedule(tn.maximum(step - start, tn.zeros([], dtype=step.dtype))) for schedule, start in zip(schedules, starts)]
        result = parts[0]
        for start, part in zip(boundaries, parts[1:]):
            result = tn.where(step < start, result, part)
        return result

    return rate

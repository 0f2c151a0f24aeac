# SPDX-License-Identifier: MIT
"""Whether answers are right. Values lie within SLACK times the spread that rounding gives them;
derivatives are compared with differences of the program in long doubles, those in reverse mode by
products with directions: the cotangents times J t is t times the gradients."""
import itertools

import numpy as np
from programs import Rounding, evaluate, evaluate_sides
from rules import RULES

ROUNDS = 6     # evaluations whose spread is taken: pairs, moved to opposite sides
MORE = 48      # where a result is beyond that: moves of two operators cancel in one of 64 elements
SLACK = 16     # a maximum of five draws is below a sixteenth of a bound once in 10^6 elements
STEP = 1e-5    # of differences: their own error is some 1e-10
KINK = 1e-4    # one-sided differences that differ more belong to a point without a derivative


def tiny(dtype):
    return 4 * float(np.finfo(dtype).tiny if dtype.itemsize > 2 else 6e-8)


def unlike(got, want):
    return np.ravel(np.flatnonzero(np.ravel(~(np.asarray(got) == np.asarray(want)))))


def describe(name, k, got, want, tolerance=None):
    at = np.unravel_index(k, np.shape(want))
    text = f'{name}{list(map(int, at))} is {np.ravel(got)[k]!r}, expected {np.ravel(want)[k]!r}'
    return text + (f' within {np.ravel(tolerance)[k]:.3g}' if tolerance is not None else '')


def check_type(name, got, want):
    if got.dtype != want.dtype or got.shape != want.shape:
        return f'{name} is {got.dtype} {list(got.shape)}, expected {want.dtype} {list(want.shape)}'
    return None


def check_close(name, got, want, tolerance):
    """Where the tolerance is not finite, anything goes."""
    with np.errstate(all='ignore'):
        g, w = got.astype('G' if got.dtype.kind == 'c' else 'g'), want.astype('G' if got.dtype.kind == 'c' else 'g')
        near = (np.abs(g - w) <= tolerance) | (g == w) | (got == want.astype(got.dtype)) | (np.isnan(g) & np.isnan(w)) | ~np.isfinite(tolerance)
    wrong = np.flatnonzero(np.ravel(~near))
    return describe(name, wrong[0], got, want, tolerance) if len(wrong) else None


def value_tolerance(want, moved, slack, units):
    """Infinite where rounding decides whether there is a number. `units`: in the last place, which the spread of
    rounded numbers may not show."""
    with np.errstate(all='ignore'):
        w = want.astype('G' if want.dtype.kind == 'c' else 'g')
        spread = np.zeros(want.shape, 'g')
        for m in moved:
            far = np.abs(m.astype(w.dtype) - w)
            far = np.where((m == want) | (np.isnan(m) & np.isnan(want)), 0, np.where(np.isfinite(far), far, np.inf))
            spread = np.maximum(spread, far)
        size = np.where(np.isfinite(w), np.abs(w), 0)
        return slack * spread + units * np.finfo(want.dtype).eps * size + tiny(want.dtype)


def check_value(name, got, want, moved, slack, units):
    wrong = check_type(name, got, want)
    if wrong:
        return wrong
    if want.dtype.kind in 'fc':
        return check_close(name, got, want, value_tolerance(want, moved, slack, units))
    stable = np.ones(want.shape, bool)
    for m in moved:
        stable &= m == want
    differ = np.flatnonzero(np.ravel((got != want) & stable))
    return describe(name, differ[0], got, want) if len(differ) else None


def check_values(case, k, answers, slack):
    program, data = case.program, case.instances[k]
    want = evaluate(program, data)

    def moves(first, last):
        return [evaluate(program, data, Rounding(np.random.default_rng(n // 2), sign=1 - n % 2 * 2)) for n in range(first, last)]
    moved = moves(0, ROUNDS)
    case.known[k] = want, moved
    units = 4 if any(RULES[n].sums for n in program.nodes()) else 2
    for o, got in zip(program.outputs, answers):
        wrong = check_value(program.name_of(o), got, want[o], [m[o] for m in moved], slack, units)
        if wrong and len(moved) == ROUNDS:
            moved += moves(ROUNDS, MORE)
            wrong = check_value(program.name_of(o), got, want[o], [m[o] for m in moved], slack, units)
        if wrong:
            return wrong
    return None


# --- derivatives --------------------------------------------------------------------------


def coarsest(data):
    """Gradients are rounded to the dtype of their input before parts of them are added."""
    return max(float(np.finfo(d.dtype).eps) for d in data if d.dtype.kind == 'f')


def outputs_at(case, data, tangents, steps, seed, frozen):
    """The outputs at several steps along the tangents."""
    x = [d.astype('g') if d.dtype.kind == 'f' else d for d in data]
    sides = []
    for step in steps:
        sides.append(list(x))
        for i, t in zip(case.wrt, tangents):
            sides[-1][i] = x[i] + np.longdouble(step) * t.astype('g')
    for step_, d in zip(case.program.inputs(), data):
        step_.stored = d.dtype
    random = None if seed is None else np.random.default_rng(seed)
    values = evaluate_sides(case.program, sides, Rounding(random, True, frozen, coarsest(data)))
    return [[v[o].astype('g') for o in case.program.outputs] for v in values]


def direction(case, data, tangents, seed=None):
    """J t for each output, and how far off that may be: infinitely far at kinks."""
    frozen, out = {}, []
    steps = (0, 1, -1, 0.5, -0.5) if seed is None else (0.5, -0.5)
    at = dict(zip(steps, outputs_at(case, data, tangents, [s * STEP for s in steps], seed, frozen)))
    if seed is not None:
        return [((a - b) / STEP, np.zeros(a.shape)) for a, b in zip(at[0.5], at[-0.5])]
    for k in range(len(at[0])):
        slope = (at[1][k] - at[-1][k]) / (2 * STEP)
        half = (at[0.5][k] - at[-0.5][k]) / STEP
        sides = np.abs(at[1][k] + at[-1][k] - 2 * at[0][k]) / STEP
        size = np.abs(slope).max() if slope.size else 0
        # What is computed in doubles alone moves by their rounding between two steps.
        capped = 4e-16 / STEP if any(RULES[n].double for n in case.program.nodes()) else 0
        off = 10 * np.abs(slope - half) + 1e-9 * size + max(capped, 1e-11 if size else 0) * (
            np.abs(at[0][k]).max() if at[0][k].size else 0)
        out.append((half, np.where(sides <= KINK * (1 + size), off, np.inf)))
    return out


def spread_of(of_seed):
    """The result without rounding, how far it is known, and how far rounding moves it."""
    exact = of_seed(None)
    moved = [of_seed(k) for k in range(3)]
    return [(want, off, np.max([np.abs(m[i][0] - want) for m in moved], axis=0))
            for i, (want, off) in enumerate(exact)]


def note_kinks(case, k, tangents):
    """Whether instance k is at a point without a derivative along the tangents."""
    with np.errstate(all='ignore'):
        found = direction(case, case.instances[k], tangents)
    case.kinks[k] = any(not np.all(np.isfinite(off)) for _, off in found)


def check_jvp(case, k, answers, slack, most):
    data, tangents = case.instances[k], case.beside[k]
    if not most:
        note_kinks(case, k, tangents)
        return None
    with np.errstate(all='ignore'):
        found = spread_of(lambda seed: direction(case, data, tangents, seed))
    case.kinks[k] = any(not np.all(np.isfinite(off)) for _, off, _ in found)
    like = evaluate(case.program, data)
    for o, got, (want, off, spread) in zip(case.program.outputs, answers, found):
        wrong = check_type('the tangent of ' + case.program.name_of(o), got, like[o])
        eps = np.finfo(got.dtype).eps if got.dtype.kind == 'f' else 0
        tolerance = 4 * slack * spread + off + 8 * eps * (np.abs(want).max() if want.size else 0) + tiny(like[o].dtype)
        # Of parts whose sum is 0, each rounded, the differences show nothing.
        tolerance = tolerance + 4 * eps * largest([like[o]]) * largest(tangents)
        tolerance = tolerance + np.where(want == 0, cancelled(like) * largest(tangents), 0)
        wrong = wrong or check_close('the tangent of ' + case.program.name_of(o), got, want, tolerance)
        if wrong:
            return wrong
    return None


def cancelled(values):
    """What rounding may leave of parts that cancel each other, of the size of the program's values."""
    floats = [v for v in values.values() if v.dtype.kind == 'f']
    eps = max((float(np.finfo(v.dtype).eps) for v in floats), default=0)
    return 4 * eps * min(largest(floats), 1e3)


def largest(arrays):
    """The largest finite magnitude."""
    return max((float(np.abs(a[np.isfinite(a)]).max()) for a in arrays if a.dtype.kind == 'f' and np.any(np.isfinite(a))),
               default=0)


def products(case, data, tangents, cotangents, seed):
    """Of the cotangents with J t."""
    total, off, size = np.longdouble(0), np.longdouble(0), np.longdouble(0)
    for (jt, far), c in zip(direction(case, data, tangents, seed), cotangents):
        c = c.astype('g')
        total, size = total + np.sum(jt * c), size + np.sum(np.abs(jt * c))
        off += np.sum(np.where(far == 0, 0, far * np.abs(c)))
    return [(total, off + 1e-9 * size)]


def directions(case, data, random):
    """One of all elements, and one of a single one."""
    def zeros():
        return [np.zeros_like(data[i]) for i in case.wrt]
    yield [random.uniform(-1, 1, data[i].shape).astype(data[i].dtype) for i in case.wrt]
    t = zeros()
    which = int(random.integers(len(t)))
    if t[which].size:
        np.ravel(t[which])[int(random.integers(t[which].size))] = 1
        yield t


def check_vjp(case, k, answers, slack, most):
    data, cotangents = case.instances[k], case.beside[k]
    for g, i in zip(answers, case.wrt):
        wrong = check_type(f'the gradient of {case.program.names()[i]}', g, data[i])
        if wrong:
            return wrong
    case.kinks[k] = False
    if not most:
        note_kinks(case, k, next(directions(case, data, np.random.default_rng(1))))
    for tangents in itertools.islice(directions(case, data, np.random.default_rng(1)), most):
        with np.errstate(all='ignore'):
            (want, off, spread), = spread_of(lambda seed: products(case, data, tangents, cotangents, seed))
            parts = [g.astype('g') * t for g, t in zip(answers, tangents)]
            got = sum((np.sum(p) for p in parts), np.longdouble(0))
            size = sum(float(np.finfo(g.dtype).eps) * np.sum(np.abs(p)) for p, g in zip(parts, answers))
            most = max((float(np.abs(g).max()) * float(np.finfo(g.dtype).eps) for g in answers if g.size), default=0)
            tolerance = 4 * slack * spread + off + 16 * size + 8 * most + 1e-30
            if want == 0:
                tolerance += cancelled(evaluate(case.program, data)) * largest(tangents) * largest(cotangents)
        case.kinks[k] |= not np.isfinite(tolerance)
        if np.isfinite(tolerance) and not abs(got - want) <= tolerance and np.isfinite(want):
            names = [f'{case.program.names()[i]}{np.argwhere(t).tolist()}' if np.count_nonzero(t) == 1
                     else case.program.names()[i] for i, t in zip(case.wrt, tangents) if np.any(t)]
            return f'the gradients along {", ".join(names)} give {got}, expected {want} within {tolerance:.3g}'
    return None


def check(case, answers, slack=SLACK, most=2):
    """What is wrong with the driver's answers, in words; None: nothing. `most`: directions of gradients; 0:
    derivatives are compared elsewhere."""
    if isinstance(answers, str):
        return 'refused: ' + answers
    for k, (got, held) in enumerate(case.split(answers)):
        if case.derive == 'vjp':
            wrong = check_vjp(case, k, got, slack, most)
        elif case.derive == 'jvp':
            wrong = check_jvp(case, k, got, slack, most)
        else:
            wrong = check_values(case, k, got, slack)
        for i, view in zip(case.held[k] if held else [], held):
            if view.tobytes() != (case.instances[k] + case.beside[k])[i].tobytes():
                wrong = wrong or f'input {i}, which was held, is overwritten'
        if wrong:
            return wrong if case.way == 'value' else f'{case.way}, number {k}: {wrong}'
    return None

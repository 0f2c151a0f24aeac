# SPDX-License-Identifier: MIT
"""Makes a failing case smaller: fewer outputs, calls and slices, nodes replaced by inputs with their
values. What remains is printed as a program for `tenon eval` where that can run it."""
import copy

import numpy as np
from cases import Case, list_wrt, prune
from driver import Died
from programs import NAMES, Input, Node, evaluate

MOST_LITERALS = 200


def verdict(case, judge):
    """The failure's text; None: it does not fail, or has no meaning any more."""
    try:
        return judge(case)
    except Died as died:
        return str(died)
    except (ValueError, IndexError, TypeError, KeyError, OverflowError, np.linalg.LinAlgError):
        return None


def by_number(case):
    """What an instance has for each input: data, and tangent and axes where there are some."""
    numbers = [x.number for x in case.program.inputs()]
    told = [dict(zip(numbers, d)) for d in case.instances]
    tangents = [dict(zip([numbers[i] for i in case.wrt], b)) if case.derive == 'jvp' else {} for b in case.beside]
    return told, tangents, dict(zip(numbers, case.axes))


def rebuild(case, program, outputs, values=None):
    """The case with another program, whose new inputs have the values of `values` by instance."""
    program.outputs = [case.program.outputs[k] for k in outputs]
    prune(program)
    told, tangents, axes = by_number(case)
    other = Case(program, case.way, case.derive)
    other.apart, numbers = case.apart, [x.number for x in program.inputs()]
    other.instances = [[t[n] if n in t else values[k][n] for n in numbers] for k, t in enumerate(told)]
    other.wrt = list_wrt(program) if case.derive else []
    if case.derive == 'jvp':
        other.beside = [[t[numbers[i]] if numbers[i] in t else np.ones_like(d[i]) for i in other.wrt]
                        for t, d in zip(tangents, other.instances)]
    else:
        other.beside = [[b[k] for k in outputs] if b else [] for b in case.beside]
    count = len(numbers) + len(other.beside[0])
    if case.way == 'vmap':
        other.axes = [axes.get(n, 0) for n in numbers] + [0] * len(other.beside[0])
        other.out_axes = [0] * other.results()
    elif case.way == 'call':
        other.donated = list(range(count)) if case.donated else []
        other.held = [other.donated if h else [] for h in case.held]
    return other


def fewer_outputs(case):
    for k in range(len(case.program.outputs)):
        if len(case.program.outputs) > 1:
            yield rebuild(case, copy.deepcopy(case.program), [k])


def cut_nodes(case):
    values = [evaluate(case.program, d) for d in case.instances]
    for at in range(len(case.program.steps) - 1, -1, -1):
        node = case.program.steps[at]
        if not isinstance(node, Node) or set(range(node.first, node.first + node.count)) & set(case.program.outputs):
            continue
        program = copy.deepcopy(case.program)
        new = []
        for n in range(node.first, node.first + node.count):
            new.append(Input(values[0][n].dtype, values[0][n].shape, 'any'))
            new[-1].number = n
        program.steps[at:at + 1] = new
        yield rebuild(case, program, range(len(program.outputs)), values)


def fewer_instances(case):
    for k in range(len(case.instances)):
        other = case.copy()
        other.way, other.instances, other.beside = 'value', [case.instances[k]], [case.beside[k]]
        other.axes, other.out_axes, other.donated, other.held = [], [], [], []
        if case.way != 'value':
            yield other
    for k in range(len(case.instances)):
        other = case.copy()
        for name in ('instances', 'beside', 'held'):
            part = list(getattr(case, name))
            del part[k:k + 1]
            setattr(other, name, part)
        if len(case.instances) > 1:
            yield other


def same_kind(text, wrong):
    """A refusal stays one: what a cut changes may be refused for another reason."""
    return text and text.startswith('refused') == wrong.startswith('refused') and \
        (not wrong.startswith('refused') or text[:40] == wrong[:40])


def shrink(case, wrong, judge, most=300):
    """A smaller case that fails, and its failure; of what does not answer few are tried."""
    tried, again = 0, True
    most = min(most, 3) if 'does not answer' in wrong else most
    while again and tried < most:
        again = False
        for ways in (fewer_outputs, fewer_instances, cut_nodes):
            for other in ways(case):
                tried += 1
                text = verdict(other, judge)
                if same_kind(text, wrong):
                    case, wrong, again = other, text, True
                    break
                if tried >= most:
                    break
    return case, wrong


# --- printing -----------------------------------------------------------------------------


def literal(x):
    """An array as `tenon eval` reads it."""
    def number(v):
        if x.dtype.kind == 'b':
            return str(bool(v)).lower()
        return str(int(v)) if x.dtype.kind in 'iu' else repr(float(v))

    def nested(a):
        return number(a) if a.ndim == 0 else '[' + ', '.join(nested(b) for b in a) + ']'
    name = NAMES[x.dtype]
    if x.size == 0:
        return f'full({list(x.shape)}, 0, {name})'
    return f'astype({nested(x)}, dtype={name})'


def command(case):
    """The case for a shell; what only the driver can do is told."""
    data, beside = case.instances[0], case.beside[0]
    if sum(x.size for x in data) > MOST_LITERALS or any(x.dtype.kind == 'c' for x in data):
        return f'# of the program {case.program.text()}'
    values = ' '.join(f"{name}='{literal(x)}'" for name, x in zip(case.program.names(), data))
    told = f"tenon eval '{case.program.text()}' {values}"
    if case.way != 'value' or case.derive:
        beside = ', '.join(literal(b) for b in beside)
        told += f'\n  # as {case.way}{" of " + case.derive if case.derive else ""}, first of {len(case.instances)}' + (
            f', with {beside}' if beside else '')
    return told

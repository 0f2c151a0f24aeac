# SPDX-License-Identifier: MIT
"""A case: a program, how it is computed, and data. draw_case() makes one of a seed."""
import copy

import numpy as np
from draw import SIZED, STRICT
from programs import Generator, Input, Node, evaluate

# What each of ten cases is: how it is computed, and of what.
KINDS = [('value', None), ('value', None), ('value', None), ('call', None), ('vmap', None), ('value', 'vjp'),
         ('value', 'jvp'), ('vmap', 'vjp'), ('vmap', 'jvp'), ('call', 'vjp')]
COMPLEX_OR_WHOLE = 'ciub'


class Case:
    """`instances` are the data of the inputs: of one evaluation, of each slice or of each call; `beside`
    are cotangents or tangents for each. `axes` and `out_axes` say where slices are."""

    def __init__(self, program, way, derive):
        self.program, self.way, self.derive = program, way, derive
        self.instances, self.beside, self.wrt = [], [], []
        self.axes, self.out_axes, self.donated, self.held, self.apart = [], [], [], [], False
        self.known, self.kinks = {}, {}  # by instance: what compare.py found of values, and of derivatives

    def copy(self):
        """Another case with the same data, whose program may be changed."""
        other = copy.copy(self)
        other.program = copy.deepcopy(self.program)
        return other

    def results(self):
        return len(self.wrt) if self.derive == 'vjp' else len(self.program.outputs)

    def request(self):
        """What driver.c is asked, and the arrays for it."""
        request = {'program': self.program.text(), 'names': self.program.names(), 'outputs': self.results(),
                   'way': self.way, 'wrt': self.wrt, **({'derive': self.derive} if self.derive else {})}
        all_arrays = [x + y for x, y in zip(self.instances, self.beside)]
        if self.way == 'vmap':
            arrays = [np.stack([a[i] for a in all_arrays], axis) if axis >= 0 else all_arrays[0][i]
                      for i, axis in enumerate(self.axes)]
            return dict(request, axes=self.axes, out_axes=self.out_axes), arrays
        if self.way == 'call':
            request.update(calls=len(self.instances), donated=self.donated, held=self.held, apart=self.apart)
        return request, [a for arrays in all_arrays for a in arrays]

    def split(self, answers):
        """The answers by instance, and what was held of each."""
        if self.way == 'vmap':
            return [([np.take(a, k, axis) for a, axis in zip(answers, self.out_axes)], [])
                    for k in range(len(self.instances))]
        out, n = [], self.results()
        for k in range(len(self.instances)):
            held = len(self.held[k]) if self.way == 'call' else 0
            out.append((answers[:n], answers[n:n + held]))
            answers = answers[n + held:]
        return out


# --- drawing ------------------------------------------------------------------------------


def is_derivable(program, value, values):
    return values[value].dtype in (np.dtype('f4'), np.dtype('f8'))


def draw_program(random, way, derive, most, only=None):
    hostile = not derive and random.random() < 0.1
    for _ in range(50):
        generator = Generator(random, hostile, derive is not None, way == 'vmap', most, only)
        program = generator.generate()
        if program is None:
            continue
        if derive:
            program.outputs = [o for o in program.outputs if is_derivable(program, o, generator.values)][-5:]
            prune(program)
        if program.outputs and (not derive or list_wrt(program)):
            return program
    raise AssertionError('no program can be drawn')


def prune(program):
    """Leaves out what no output needs."""
    needed = set(program.outputs)
    for step in reversed(program.steps):
        if isinstance(step, Node) and needed & set(range(step.first, step.first + step.count)):
            needed |= {o for o in step.operands if isinstance(o, int)}
    program.steps = [s for s in program.steps if needed & (
        {s.number} if isinstance(s, Input) else set(range(s.first, s.first + s.count)))]


def list_wrt(program):
    return [i for i, x in enumerate(program.inputs()) if x.dtype in (np.dtype('f4'), np.dtype('f8'))]


def beside(case, random, inputs):
    """Cotangents of the outputs, or tangents of the inputs."""
    if case.derive == 'vjp':
        values = evaluate(case.program, inputs)
        return [random.uniform(-1, 1, values[o].shape).astype(values[o].dtype) for o in case.program.outputs]
    if case.derive == 'jvp':
        return [random.uniform(-1, 1, inputs[i].shape).astype(inputs[i].dtype) for i in case.wrt]
    return []


def other_signature(case, random):
    """Data of other dtypes or extents with which the program has a meaning, if some is found."""
    inputs = case.program.inputs()
    nodes = case.program.nodes()
    if nodes & SIZED or any(name.startswith('optim.') for name in nodes):  # gradients have their parameters' extents
        return None
    for _ in range(4):
        extents = sorted({n for x in inputs for n in x.shape if n > 1})
        old = random.choice(extents) if extents else 0
        new = int(random.choice([n for n in (1, 2, 3, 5) if n != old]))
        retypes = random.random() < 0.4 and not case.program.nodes() & STRICT
        to = {np.dtype('f4'): 'f8', np.dtype('f8'): 'f4'} if retypes else {}
        data = [Input(to.get(x.dtype, x.dtype), x.shape if to else tuple(new if n == old else n for n in x.shape),
                      x.style).draw(random) for x in inputs]
        try:
            evaluate(case.program, data)
            return data
        except (KeyError, ValueError, IndexError, TypeError, np.linalg.LinAlgError):
            continue  # KeyError: another number of results
    return None


def draw_calls(case, random):
    inputs = case.program.inputs()
    draw = [[x.draw(random) for x in inputs] for _ in range(3)]
    other = None if case.derive else other_signature(case, random)
    case.instances = [d for d in (draw[0], other, draw[1], draw[0], other, draw[2]) if d is not None]
    case.beside = [beside(case, random, d) for d in case.instances]
    count = len(inputs) + len(case.beside[0])
    case.donated = [i for i in range(count) if random.random() < 0.4]
    case.held = [[i for i in case.donated if random.random() < 0.4] for _ in case.instances]
    case.apart = bool(random.random() < 0.5)


def draw_slices(case, random):
    inputs, count = case.program.inputs(), int(random.choice([1, 2, 3], p=[.2, .4, .4]))
    shared = [random.random() < 0.3 for _ in inputs]
    if all(shared):
        shared[0] = False
    first = [x.draw(random) for x in inputs]
    case.instances = [[f if s or k == 0 else x.draw(random) for f, s, x in zip(first, shared, inputs)]
                      for k in range(count)]
    case.beside = [beside(case, random, d) for d in case.instances]
    case.axes = [-1 if s else int(random.integers(0, f.ndim, endpoint=True)) for f, s in zip(first, shared)]
    case.axes += [int(random.integers(0, b.ndim, endpoint=True)) for b in case.beside[0]]
    values = evaluate(case.program, first)
    shapes = [first[i] for i in case.wrt] if case.derive == 'vjp' else [values[o] for o in case.program.outputs]
    case.out_axes = [int(random.integers(0, x.ndim, endpoint=True)) for x in shapes]


def draw_case(seed, number, most=45, only=None):
    random = np.random.default_rng([seed, number])
    way, derive = KINDS[number % len(KINDS)]
    while True:
        case = Case(draw_program(random, way, derive, most, only), way, derive)
        case.wrt = list_wrt(case.program) if derive else []
        try:
            if way == 'call':
                draw_calls(case, random)
            elif way == 'vmap':
                draw_slices(case, random)
            else:
                case.instances = [[x.draw(random) for x in case.program.inputs()]]
                case.beside = [beside(case, random, case.instances[0])]
            for data in case.instances:
                evaluate(case.program, data)
            return case
        except (ValueError, IndexError, TypeError, OverflowError, np.linalg.LinAlgError):
            continue  # other data is outside what an operator takes


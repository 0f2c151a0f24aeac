# SPDX-License-Identifier: MIT
"""Random programs, and what they give: each operator computed in a wider dtype and rounded once.

A right implementation rounds elsewhere, too. So a program is evaluated several times with what
was rounded moved by that rounding, to either side at random: how far the results move is what
errors of rounding amount to in this program at these values, however ill conditioned it is."""
import numpy as np
import layers  # noqa: F401: fills RULES
from draw import FINITE, NO_BATCHES, NO_DERIVATIVES, Draw, Number, Retry
import elements  # noqa: F401: these add operators
import losses  # noqa: F401
import matrices  # noqa: F401
import networks  # noqa: F401
import places  # noqa: F401
import samples  # noqa: F401
import searches  # noqa: F401
import steps  # noqa: F401
import vocabulary  # noqa: F401
from entries import PHRASES, covered
from operators import OPERATORS
from records import constants_of
from rules import DTYPES, RULES

NAMES = {np.dtype(v): k for k, v in DTYPES.items()}
WIDER = {'f2': 'f8', 'f4': 'f8', 'f8': 'g', 'c8': 'c16', 'c16': 'G', 'g': 'g', 'G': 'G'}
CAPPED = {'f2': 'f8', 'f4': 'f8', 'f8': 'f8', 'g': 'f8', 'c8': 'c16', 'c16': 'c16', 'G': 'c16'}
INFIX = {'add': '+', 'subtract': '-', 'multiply': '*', 'divide': '/', 'floor_divide': '//', 'remainder': '%',
         'power': '**', 'matmul': '@', 'bitwise_and': '&', 'bitwise_or': '|', 'bitwise_xor': '^',
         'left_shift': '<<', 'right_shift': '>>', 'equal': '==', 'not_equal': '!=', 'less': '<',
         'less_equal': '<=', 'greater': '>', 'greater_equal': '>='}
# Operands that have a derivative of 0 wherever there is one; those that have none are told by records.
CONSTANTS = {'stop_gradient': [0], 'adam': [4], 'floor': [0], 'ceil': [0], 'trunc': [0], 'round': [0], 'sign': [0],
             'floor_divide': [0, 1], **steps.CONSTANTS}
TEXTS = ('body', 'then', 'otherwise', 'equation', 'ord', 'p')


def code(dtype):
    return np.dtype(dtype).char if np.dtype(dtype).char in 'gG' else np.dtype(dtype).str[1:]


def wide(x, capped=False):
    if x.dtype.kind not in 'fc':
        return x
    return x.astype((CAPPED if capped else WIDER)[code(x.dtype)])


# --- inputs -------------------------------------------------------------------------------


def draw_float(random, shape, style):
    if style == 'positive':
        return random.uniform(0.1, 3, shape)
    if style in ('share', 'percent'):
        return random.uniform(0.02, 0.98, shape) * (1 if style == 'share' else 100)
    if style == 'sign':
        return random.choice([-1.0, 1.0], shape)
    if style == 'tenth':
        return random.uniform(-0.1, 0.1, shape)
    if style == 'sorted':
        return np.cumsum(random.uniform(0.2, 1, shape), -1) - 2
    if style == 'whole':
        return random.integers(-3, 4, shape).astype('f8')
    x = random.uniform(-2, 2, shape)
    if style == 'hostile':
        special = random.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0], shape)
        x = np.where(random.random(shape) < 0.3, special, x)
    if style == 'step':
        return random.integers(1, 9, shape).astype('f8')
    if style == 'definite':
        x = x @ np.swapaxes(x, -1, -2)
        x = np.round((x + np.swapaxes(x, -1, -2)) * 8) / 8 + 3 * np.eye(shape[-1])
    if style in ('dominant', 'tall'):
        x = x + 6 * np.eye(*shape[-2:]) * random.uniform(0.8, 1.2, shape[-1])
    return x


def draw_integer(random, dtype, shape, style):
    info = np.iinfo(dtype)
    if style in ('hostile', 'key'):
        return random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if style == 'labels':
        return random.integers(-1, 6, shape).astype(dtype)
    if style.startswith('length'):
        return np.full(shape, int(style.split()[1]), dtype)
    if style == 'sorted':
        return np.sort(random.integers(max(-4, int(info.min)), 6, shape)).astype(dtype)
    low, high = {'index': (-3, 6), 'positive': (1, 6)}.get(style, (-4, 6))
    return random.integers(max(low, int(info.min)), high, shape).astype(dtype)


class Input:
    """An input: data is drawn anew for each call or slice."""

    def __init__(self, dtype, shape, style):
        self.dtype, self.shape, self.style = np.dtype(dtype), tuple(shape), style

    def draw(self, random):
        if self.dtype.kind == 'b':
            x = random.random(self.shape) < 0.5
        elif self.dtype.kind in 'iu':
            x = draw_integer(random, self.dtype, self.shape, self.style)
        else:
            x = draw_float(random, self.shape, self.style)
        return np.asarray(x).astype(self.dtype)


def draw_shape(random, base):
    """A shape that broadcasts with the base, or is one of its own."""
    if random.random() < 0.25:
        base = [int(n) for n in random.choice([0, 1, 2, 3, 4, 5, 7], random.integers(0, 5),
                                              p=[.03, .17, .2, .2, .2, .1, .1])]
    shape = [1 if random.random() < 0.12 else n for n in base][random.integers(0, 2) if base else 0:]
    return tuple(shape) if np.prod(shape) <= 300 else tuple(shape[-2:])


KINDS = ['f4', 'f8', 'i4', 'i8', 'u1', '?', 'f2', 'i2', 'u4', 'i1', 'u8']
SHARES = [.34, .26, .11, .08, .04, .07, .03, .02, .02, .02, .01]
STYLES = ['any', 'positive', 'whole', 'index']


# --- programs -----------------------------------------------------------------------------


class Node:
    def __init__(self, name, operands, attrs, first):
        self.name, self.operands, self.attrs = name, operands, attrs
        self.first, self.count = first, 1  # its results


class Program:
    """Steps are inputs and nodes; values are numbered in their order."""

    def __init__(self):
        self.steps, self.count, self.outputs, self.types = [], 0, [], {}

    def inputs(self):
        return [s for s in self.steps if isinstance(s, Input)]

    def add_input(self, x):
        self.steps.append(x)
        x.number = self.count
        self.count += 1
        return x.number

    def names(self):
        return [f'x{x.number}' for x in self.inputs()]

    # --- text

    def name_of(self, operand):
        if isinstance(operand, Number):
            return str(operand)
        return ('x' if any(x.number == operand for x in self.inputs()) else 't') + str(operand)

    def text_of(self, node):
        given = [self.name_of(o) for o in node.operands]
        if node.name == 'index':
            return f"{given[0]}[{node.attrs['key']}]"
        if node.name in ('T', 'mT'):
            return f'{given[0]}.{node.name}'
        if node.name in INFIX:
            return f' {INFIX[node.name]} '.join(given)
        if node.name == 'einsum':
            return f"einsum('{node.attrs['equation']}', {', '.join(given)})"
        told = {key: str(value).lower() if not isinstance(value, str) else f'"{value}"' if key in TEXTS else value
                for key, value in node.attrs.items()}
        if node.name in PHRASES:
            return PHRASES[node.name][1].format(*given, n=node.first, **told)
        given += [f'{key}={value}' for key, value in told.items()]
        return f"{node.name}({', '.join(given)})"

    def text(self):
        lines = []
        for node in self.steps:
            if isinstance(node, Node):
                names = ', '.join(f't{node.first + k}' for k in range(node.count))
                *before, value = self.text_of(node).split('; ')
                lines += [*before, f'{names} = {value}']
        return '; '.join(lines + [', '.join(self.name_of(o) for o in self.outputs)])

    def nodes(self):
        return {n.name for n in self.steps if isinstance(n, Node)}

    def operators(self):
        return covered(self.nodes())


# --- evaluating ---------------------------------------------------------------------------


def operand_arrays(node, values):
    """The operands, with literals of the dtype beside them."""
    arrays = [None if isinstance(o, Number) else values[o] for o in node.operands]
    for k, o in enumerate(node.operands):
        if arrays[k] is None:
            beside = arrays[abs(1 - k)].dtype
            whole = isinstance(o.value, int)
            arrays[k] = np.asarray(o.value, beside if beside.kind in 'fcgG' or whole else 'f8')
    return arrays


def result_dtypes(rule, node, arrays):
    """Those that NumPy gives for these operands."""
    if rule.dtype:
        return (np.dtype(rule.dtype(*[code(a.dtype) for a in arrays], **node.attrs)),) * rule.results
    results = rule.function(*arrays, **node.attrs)
    return tuple(np.asarray(r).dtype for r in (results if isinstance(results, tuple) else (results,)))


def are_finite(arrays):
    return all(a.dtype.kind not in 'fc' or np.all(np.isfinite(a)) for a in arrays)


class Rounding:
    """Moves what was rounded; None of it: computes as well as it goes. `smooth`: rounds nothing, for
    differences. `frozen`: operands without a derivative by node. `least`: of the rounding errors.

    `sign`: of all moves, so that of a pair one is on either side of a jump.

    Sides of a difference are moved alike: begin() forgets what was drawn, again() draws the same."""

    def __init__(self, random=None, smooth=False, frozen=None, least=0, sign=1):
        self.random, self.smooth, self.frozen, self.least, self.sign = random, smooth, frozen, least, sign
        self.drawn, self.at = [], 0

    def begin(self):
        self.drawn, self.at = [], 0

    def again(self):
        self.at = 0

    def draw(self, shape):
        """From 1/2 to 1 to either side: two of them seldom cancel each other."""
        self.at += 1
        if self.at <= len(self.drawn) and self.drawn[self.at - 1].shape == shape:
            return self.drawn[self.at - 1]
        x = self.random.uniform(0.5, 1.5, shape)
        x = np.asarray(np.where(x < 1, x, x - 2)) * self.sign
        if self.at > len(self.drawn):
            self.drawn.append(x)
        return x

    def move(self, x, eps, where=True, unit=False):
        if self.random is None or x.dtype.kind not in 'fc' or not x.size:
            return x
        eps = max(eps, self.least)
        signs = self.draw(x.shape)
        size = np.abs(x)
        if unit == 'norm':
            size = np.max(size)
        elif unit is not False:
            size = size + np.longdouble(unit)
        if x.dtype.kind == 'c':
            signs = signs + 1j * self.draw(x.shape)
        return np.where(where, x + eps * size * signs, x)

    def anything(self, x):
        """NaN, or a number that nothing gives; moved something else each time, of whole numbers 0, too."""
        if self.random is None and x.dtype.kind in 'iu':
            return np.full_like(x, np.iinfo(x.dtype).max - 3)
        if self.random is None:
            return np.full_like(x, np.nan if x.dtype.kind in 'fc' else False)
        if x.dtype.kind in 'biu':
            some = self.random.random(x.shape) < 0.5
            if x.dtype.kind == 'b':
                return some
            return np.where(some, self.random.integers(np.iinfo(x.dtype).min, np.iinfo(x.dtype).max, x.shape, x.dtype,
                                                       endpoint=True), x.dtype.type(0))
        # Sums of both infinities are NaN, so they are seldom drawn together.
        kinds = [[1], [np.inf, -np.inf, 1], [self.random.choice([np.inf, -np.inf])]][self.random.integers(3)]
        return (self.random.choice(kinds, x.shape) * self.random.uniform(0, 1, x.shape)).astype(x.dtype)

    def zeros(self, x):
        """A sum that is 0 has either sign, by what it is added to."""
        if x.dtype.kind != 'f' or not np.any(x == 0):
            return x
        return np.where(x == 0, x * self.random.choice([-1.0, 1.0]), x)

    def move_tangents(self, sides, eps):
        """The differences of two sides, operand by operand: so far rounding moves derivatives."""
        if self.random is None or len(sides) != 2:
            return
        eps = max(eps, self.least)
        for k, (a, b) in enumerate(zip(*sides)):
            if a.dtype.char in 'gG' and a.size and a.shape == b.shape and a is not b:
                far = (a - b) * (eps / 2) * self.random.uniform(-1, 1, a.shape)
                sides[0][k], sides[1][k] = a + far, b - far

    def move_results(self, sides, results, eps):
        """What is computed in several steps loses as much as each part of the tangent is large: a relative
        change of an operand, times the result."""
        if self.random is None or len(sides) != 2:
            return
        change = np.longdouble(0)
        for a, b in zip(*sides):
            if a.dtype.char in 'gG' and a.size and a.shape == b.shape and a is not b:
                size = min(np.max(np.abs(a)), 1)
                change += np.max(np.abs(a - b)) / size if size > 0 else 0
        for k, (a, b) in enumerate(zip(*results)):
            if a.dtype.kind in 'fc' and a.size and a.shape == b.shape:
                far = np.max(np.abs(a)) * change * (max(eps, self.least) / 2) * self.random.uniform(-1, 1, a.shape)
                results[0][k], results[1][k] = a + far, b - far


def is_exact_sum(x):
    """Whether sums of products of such numbers are exact in any order."""
    return x.dtype.kind not in 'fc' or bool(np.all((x * 8 == np.round(x * 8)) & (np.abs(x) < 64)))


def apply(node, arrays, dtypes, rounding):
    rule = RULES[node.name]
    target = dtypes[0]
    if rule.promotes:
        common = np.result_type(*[a.dtype for a in arrays])
        arrays = [a if a.dtype.kind in 'fc' and common.kind in 'fc' else a.astype(common) for a in arrays]
    if target.kind in 'fc' and (rule.promotes or rule.floats):
        arrays = [a.astype(target) if a.dtype.kind in 'iub' else a for a in arrays]
    operands = arrays if rule.narrow else [wide(a, rule.double) for a in arrays]
    if rule.promotes and target.kind == 'c':
        operands = [a.astype(np.result_type(*operands)) for a in operands]
    if rule.sums and rounding.random is not None:
        eps = np.finfo(target).eps if target.kind in 'fc' else 0
        exact = not rounding.smooth and rule.ulps == 0 and all(is_exact_sum(a) for a in operands)
        operands = [a if exact else rounding.move(a, eps) for a in operands]
    raw = rule.function(*operands, **node.attrs)
    if rule.sums and rounding.random is not None and not rounding.smooth:
        raw = tuple(map(rounding.zeros, raw)) if isinstance(raw, tuple) else rounding.zeros(raw)
    out = []
    for r, dtype in zip(raw if isinstance(raw, tuple) else (raw,), dtypes):
        r = np.asarray(r)
        rounded = r if rounding.smooth and dtype.kind in 'fc' else r.astype(dtype)
        if dtype.kind in 'fc':
            inexact = rounding.smooth or (r != r.astype(dtype)) | (rule.ulps > 0)
            eps = np.finfo(dtype).eps * max(rule.ulps, 1)
            moved = rounding.move(r, eps, inexact, rule.unit(*operands) if callable(rule.unit) else rule.unit)
            rounded = moved if rounding.smooth else moved.astype(dtype)
        out.append(rounded)
    return out


def evaluate(program, inputs, rounding=None):
    """All values of a program, by their numbers."""
    return evaluate_sides(program, [inputs], rounding)[0]


def evaluate_sides(program, sides, rounding=None):
    """evaluate() of several inputs, whose values are moved alike."""
    rounding, values, stored = rounding or Rounding(), [{} for _ in sides], {}
    given = iter(zip(*sides))
    with np.errstate(all='ignore'):
        for step in program.steps:
            if isinstance(step, Input):
                x = next(given)
                stored[step.number] = x[0].dtype if not rounding.smooth else step.stored
                for v, one in zip(values, x):
                    v[step.number] = one
                continue
            types = evaluate_node(program, step, values, stored, rounding)
            for i, dtype in enumerate(types):
                stored[step.first + i] = dtype
    return values


def evaluate_node(program, step, values, stored, rounding):
    """One node's results on all sides; gives their dtypes."""
    sides = [operand_arrays(step, v) for v in values]
    key = (step.first, *[code(stored[o]) for o in step.operands if not isinstance(o, Number)])
    if key not in program.types:
        program.types[key] = result_dtypes(RULES[step.name], step, promoted(step, sides[0]))
    types, rule = program.types[key], RULES[step.name]
    if rounding.frozen is not None:
        for k in {*CONSTANTS.get(step.name, ()), *constants_of(step.name, len(sides[0]))}:
            kept = rounding.frozen.setdefault((step.first, k), sides[0][k])
            for arrays in sides:
                arrays[k] = kept
    if rounding.smooth and types[0].kind in 'fc':
        rounding.move_tangents(sides, np.finfo(types[0]).eps * min(max(rule.ulps, 1), 8))
    rounding.begin()
    results_of = []
    for arrays in sides:
        rounding.again()
        results_of.append(apply(step, arrays, types, rounding))
    if rounding.smooth and types[0].kind in 'fc' and (rule.ulps or rule.sums):
        rounding.move_results(sides, results_of, np.finfo(types[0]).eps * min(max(rule.ulps, 1), 8))
    for arrays, results, v in zip(sides, results_of, values):
        if step.name in FINITE and not are_finite(arrays):  # anything goes
            results = [rounding.anything(r) for r in results]
        elif rounding.random is not None and any(told and told(*arrays, **step.attrs)
                                                 for told in (rule.ties, rounding.smooth and rule.steep)):
            results = [rounding.anything(r) for r in results]
        for i, x in enumerate(results):
            v[step.first + i] = x
    return types


def promoted(node, arrays):
    if not RULES[node.name].promotes:
        return arrays
    common = np.result_type(*[a.dtype for a in arrays])
    return [a.astype(common) for a in arrays]


# --- generating ---------------------------------------------------------------------------


class Generator:
    """`only`: names of operators; None: all."""

    def __init__(self, random, hostile=False, derived=False, mapped=False, most=45, only=None):
        self.random, self.hostile, self.derived, self.mapped, self.most = random, hostile, derived, mapped, most
        self.only = only
        self.program, self.values, self.data = Program(), [], []
        rank = random.integers(0, 5)
        self.base = [int(n) for n in random.choice([0, 1, 2, 3, 4, 5, 6], rank, p=[.02, .13, .25, .25, .2, .1, .05])]
        total = sum(o[2] for o in OPERATORS)
        self.weights = [o[2] / total for o in OPERATORS]

    def make(self, dtype, shape, style):
        if len(self.program.inputs()) >= 12:
            raise Retry
        if style == 'any':
            style = self.random.choice(['any', 'positive', 'whole']) if not self.derived else 'any'
        self.program.add_input(Input(dtype, shape, style))
        self.data.append(self.program.inputs()[-1].draw(self.random))
        self.values.append(self.data[-1])
        return self.program.count - 1

    def make_first(self):
        style = self.random.choice(STYLES, p=[.45, .3, .15, .1])
        kind = np.dtype(self.random.choice(KINDS, p=SHARES))
        if self.hostile and self.random.random() < 0.5:
            style = 'hostile'
        if self.derived:
            kind = np.dtype(self.random.choice(['f4', 'f8', 'f8', 'i4'], p=[.4, .3, .25, .05]))
            style = 'index' if kind.kind == 'i' else self.random.choice(['any', 'positive'])
        self.make(kind, draw_shape(self.random, self.base), style)

    def usable(self, results):
        """Programs that are not about them keep away from what is not finite, and huge."""
        for x in results:
            if x.size > 700 or x.ndim > 6:
                return False
            most = 200 if x.dtype.kind == 'f' and x.dtype.itemsize == 2 else 1e5
            if x.dtype.kind in 'fc' and not self.hostile and not np.all(np.abs(x) < most):
                return False
        return True

    def add_node(self):
        draw = OPERATORS[self.random.choice(len(OPERATORS), p=self.weights)][0]
        mark = len(self.program.steps), len(self.data), len(self.values), self.program.count
        try:
            name, operands, attrs = draw(Draw(self.random, self.values, self.make))
            if self.only is not None and name not in self.only or \
                    self.derived and name in NO_DERIVATIVES or self.mapped and name in NO_BATCHES or \
                    self.hostile and name in FINITE:
                raise Retry
            node = Node(name, operands, attrs, self.program.count)
            arrays = operand_arrays(node, self.values)
            with np.errstate(all='ignore'):
                dtypes = result_dtypes(RULES[name], node, promoted(node, arrays))
                results = apply(node, arrays, dtypes, Rounding())
            if any(d not in NAMES for d in dtypes) or not self.usable(results):
                raise Retry
        except (Retry, ValueError, IndexError, TypeError, OverflowError, np.linalg.LinAlgError):
            del self.program.steps[mark[0]:], self.data[mark[1]:], self.values[mark[2]:]
            self.program.count = mark[3]
            return
        node.count = len(results)
        self.program.steps.append(node)
        self.program.count += node.count
        self.values += results

    def generate(self):
        for _ in range(self.random.integers(2, 5)):
            self.make_first()
        for _ in range(self.random.integers(min(8, self.most // 2), self.most)):
            self.add_node()
        return self.choose_outputs()

    def choose_outputs(self):
        """What nothing reads, and now and then what something does."""
        program = self.program
        read = {o for s in program.steps if isinstance(s, Node) for o in s.operands if not isinstance(o, Number)}
        last = [s.first + k for s in program.steps if isinstance(s, Node) for k in range(s.count)]
        program.outputs = [v for v in last if v not in read or self.random.random() < 0.1][-12:]
        return program if program.outputs else None

# SPDX-License-Identifier: MIT
"""Compares answers with PyTorch: values, each operator computed in f64 and rounded; gradients and
tangents by its automatic differentiation, element by element. How far they may be off is what
moving each result by the rounding of its dtype does to them."""
import compare
import numpy as np
import torch
import torch.autograd.forward_ad as forward
from draw import Number
from programs import Input, Rounding, code, evaluate, operand_arrays, promoted, result_dtypes
from rules import RULES
from torch_rules import TORCH, tensor
import torch_layers  # noqa: F401, E402: further rows

torch.set_num_threads(1)
KNOWN = {'?', 'b1', 'i1', 'i2', 'i4', 'i8', 'u1', 'f2', 'f4', 'f8', 'c8', 'c16'}
WIDE = {'f2': torch.float64, 'f4': torch.float64, 'f8': torch.float64, 'c8': torch.complex128, 'c16': torch.complex128}


class Unknown(Exception):
    """PyTorch has no such operator or dtype."""


def plan(case, data):
    """For each node its operands' dtypes and those of its results."""
    values, planned = evaluate(case.program, data), {}
    for step in case.program.steps:
        if isinstance(step, Input):
            continue
        if step.name not in TORCH:
            raise Unknown(step.name)
        arrays = operand_arrays(step, values)
        with np.errstate(all='ignore'):
            dtypes = result_dtypes(RULES[step.name], step, promoted(step, arrays))
        if not {code(d) for d in list(dtypes) + [a.dtype for a in arrays]} <= KNOWN:
            raise Unknown('unsigned dtypes')
        planned[step.first] = arrays, dtypes
    return values, planned


def stored(x, dtype, smooth):
    """Rounded to the dtype, kept in a wider one."""
    to = {'c8': torch.complex64, 'c16': torch.complex128}.get(code(dtype))
    if dtype.kind not in 'fc':
        return x.to(tensor(np.zeros(1, dtype)).dtype)
    if not smooth:
        x = x.to(to or tensor(np.zeros(1, dtype)).dtype)
    return x.to(WIDE[code(dtype)])


def operands_of(step, values, arrays, target):
    """Tensors of what NumPy's rule is given: literals, and whole numbers where floats are asked for."""
    rule, out = RULES[step.name], []
    common = np.result_type(*[a.dtype for a in arrays]) if rule.promotes else None
    for o, a in zip(step.operands, arrays):
        x = tensor(a) if isinstance(o, Number) else values[o]
        kind = a.dtype
        if rule.promotes and common != kind:
            kind = common
        if kind.kind in 'iub' and target.kind in 'fc' and (rule.promotes or rule.floats):
            kind = target
        x = x.to(WIDE.get(code(kind), tensor(np.zeros(1, kind)).dtype))
        out.append(x.to(torch.float32) if rule.narrow and code(kind) == 'f4' else x)
    return out


def moved(x, dtype, random, least, ulps=1):
    """Elements moved by the rounding of a dtype."""
    if not (x.is_floating_point() or x.is_complex()) or dtype.kind not in 'fc':
        return x
    eps = max(float(np.finfo(dtype).eps), least) * ulps
    return x * tensor(1 + eps * Rounding(random).draw(tuple(x.shape)))


def compute(case, planned, inputs, smooth, random, least=0.0):
    values, given = {}, iter(inputs)
    for step in case.program.steps:
        if isinstance(step, Input):
            values[step.number] = next(given)
            continue
        arrays, dtypes = planned[step.first]
        operands = operands_of(step, values, arrays, dtypes[0])
        if random is not None and RULES[step.name].sums and dtypes[0].kind in 'fc':
            operands = [moved(x, dtypes[0], random, least) for x in operands]
        raw = TORCH[step.name](*operands, **step.attrs)
        for k, (r, dtype) in enumerate(zip(raw if isinstance(raw, tuple) else (raw,), dtypes)):
            x = stored(r, dtype, smooth)
            if random is not None:
                x = moved(x, dtype, random, least, max(RULES[step.name].ulps, 1))
            values[step.first + k] = x
    return [values[o] for o in case.program.outputs]


def wide_inputs(data):
    return [tensor(d).to(WIDE.get(code(d.dtype), tensor(d).dtype)) for d in data]


def check_values(case, k, answers, slack):
    values, planned = plan(case, case.instances[k])
    got = compute(case, planned, wide_inputs(case.instances[k]), False, None)
    want, moved = case.known[k]
    for o, answer, theirs in zip(case.program.outputs, answers, got):
        theirs = theirs.resolve_conj().numpy().astype(answer.dtype)
        if theirs.shape != answer.shape:
            return f'{case.program.name_of(o)} has shape {answer.shape}, PyTorch gives {theirs.shape}'
        tolerance = compare.value_tolerance(want[o], [m[o] for m in moved], 2 * slack, 4) if answer.dtype.kind in 'fc' \
            else np.where(np.logical_and.reduce([m[o] == want[o] for m in moved]), 0, np.inf)
        wrong = compare.check_close(case.program.name_of(o), answer, theirs, tolerance)
        if wrong:
            return 'beside PyTorch: ' + wrong
    return None


def derivative(case, planned, data, beside, seed):
    """The gradients of case.wrt, or the tangents of the outputs."""
    inputs, random = wide_inputs(data), None if seed is None else np.random.default_rng(seed)
    least = compare.coarsest(data)

    def outputs(*x):
        given = list(inputs)
        for i, one in zip(case.wrt, x):
            given[i] = one
        return tuple(compute(case, planned, given, True, random, least))
    primals = tuple(inputs[i] for i in case.wrt)
    beside = tuple(tensor(b).to(torch.float64) for b in beside)
    if case.derive == 'jvp':
        with forward.dual_level():
            told = [forward.unpack_dual(o) for o in outputs(*map(forward.make_dual, primals, beside))]
            return [torch.zeros_like(t.primal) if t.tangent is None else t.tangent.clone() for t in told]
    primals = tuple(p.requires_grad_(True) for p in primals)
    got = outputs(*primals)
    pairs = [(o, b) for o, b in zip(got, beside) if o.requires_grad]
    if not pairs:
        return tuple(torch.zeros_like(p) for p in primals)
    return torch.autograd.grad([o for o, _ in pairs], primals, [b for _, b in pairs], allow_unused=True,
                               materialize_grads=True)


def check_derivative(case, k, answers, slack):
    data, beside = case.instances[k], case.beside[k]
    _, planned = plan(case, data)
    want = [w.detach().numpy() for w in derivative(case, planned, data, beside, None)]
    others = [[m.detach().numpy() for m in derivative(case, planned, data, beside, seed)] for seed in range(4)]
    most = max([np.abs(w).max() for w in want if w.size], default=0)
    names = [case.program.names()[i] for i in case.wrt] if case.derive == 'vjp' else \
        ['t' + str(o) for o in case.program.outputs]
    for n, (name, answer, w) in enumerate(zip(names, answers, want)):
        if w.shape != answer.shape:
            return f'the derivative by {name} has shape {answer.shape}, PyTorch gives {w.shape}'
        spread = np.max([np.abs(m[n] - w) for m in others], axis=0)
        tolerance = 8 * slack * spread + 16 * float(np.finfo(answer.dtype).eps) * most + compare.tiny(answer.dtype)
        wrong = compare.check_close(f'the {"gradient" if case.derive == "vjp" else "tangent"} of {name}', answer,
                                    w, tolerance)
        if wrong:
            return 'beside PyTorch: ' + wrong
    return None


def check(case, answers, slack):
    """What was compared, and what is wrong; None: nothing."""
    for k, (got, _) in enumerate(case.split(answers)):
        if case.derive and case.kinks[k]:
            return 'at a kink, where derivatives are a convention', None
        try:
            wrong = (check_derivative if case.derive else check_values)(case, k, got, slack)
        except Unknown as unknown:
            return f'without {unknown}', None
        except (RuntimeError, NotImplementedError, TypeError, ValueError, ZeroDivisionError) as refused:
            return f'refused by PyTorch ({type(refused).__name__})', None
        if wrong:
            return 'differ', wrong
    return 'compared', None

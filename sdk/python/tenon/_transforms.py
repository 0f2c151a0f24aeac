# SPDX-License-Identifier: MIT
"""Derivatives, batches, functions that replay, branches and loops over trees of arrays."""

import contextlib
import functools
import inspect
import threading

from . import _core
from ._core import Array
from ._index import op
from ._tree import describe, flatten, unflatten


def _is_array(leaf):
    return isinstance(leaf, Array)


def _as_arrays(leaves):
    return [leaf if _is_array(leaf) else _core.array(leaf) for leaf in leaves]


def _fresh(leaves):
    """Copies of the leaves as nodes of their own, so that a derivative by one is by this argument alone, also where two
    arguments share an array. They are watched: reading one computes a copy, so that an outer derivative goes through it."""
    with _Watching():
        return [op("copy")(x) for x in _as_arrays(leaves)]


def _given(structure, leaves):
    """A tree of other Array objects of the same values, so that []= and += in a function leave `leaves` as they are."""
    return unflatten(structure, [_core.alias(leaf) for leaf in leaves])


def _check_float(leaves, what):
    for leaf in leaves:
        if leaf.dtype.kind not in "fc":
            raise TypeError(f"{what}: got {leaf.dtype.name}, expected floats or complex numbers")


def value_and_grad(function, argnums=0, has_aux=False):
    """A function that gives function(*args) and its gradient by arguments `argnums` (a number, or
    several), as a tree of their structure. `function` gives one number; with `has_aux` a pair of
    that and anything else, which is handed through."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result, leaves, positions = _by_arguments("grad", function, argnums, args, kwargs, _check_float)
        value, aux = result if has_aux else (result, None)
        if not _is_array(value) or value.size != 1:
            shape = value.shape if _is_array(value) else type(value).__name__
            raise ValueError(f"grad: the function gave {shape}, expected an array of one element")
        gradient = _grouped(positions, _core.vjp([value], None, leaves), argnums)
        _unwatch(result)
        return (value, aux) if has_aux else value, gradient

    return wrapper


def grad(function, argnums=0, has_aux=False):
    """A function that gives the gradient of function(*args); with `has_aux`, it and the rest."""
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def _real(leaves, what):
    for leaf in leaves:
        if not _is_array(leaf) or leaf.dtype.kind != "f":
            got = leaf.dtype.name if _is_array(leaf) else type(leaf).__name__
            advice = ": take real() and imag() of what is complex" if got.startswith("complex") else ""
            raise TypeError(f"{what}: got {got}, expected floats{advice}")


def _by_arguments(what, function, argnums, args, kwargs, check):
    """Calls function with fresh nodes in the place of the leaves of arguments `argnums`. Gives its value, the nodes, and for
    each such argument (structure, number of leaves)."""
    args = list(args)
    leaves, positions = [], []
    for position in (argnums,) if isinstance(argnums, int) else argnums:
        if position >= len(args):
            raise TypeError(f"{what}: argument {position} of {len(args)}: it has to be given by position")
        part, structure = flatten(args[position])
        fresh = _fresh(part)
        check(fresh, f"{what}: an argument")
        positions.append((structure, len(fresh)))
        args[position] = _given(structure, fresh)
        leaves += fresh
    with _Watching():
        return function(*args, **kwargs), leaves, positions


def _grouped(positions, items, argnums):
    """One tree an argument, from one item a leaf; without a tuple for one argument."""
    trees, at = [], 0
    for structure, count in positions:
        trees.append(unflatten(structure, items[at : at + count]))
        at += count
    return trees[0] if isinstance(argnums, int) else tuple(trees)


def _basis(x):
    return op("reshape")(op("eye")(n=x.size, dtype=x.dtype), [x.size, *x.shape])


def jacobian(function, argnums=0):
    """A function that gives the derivatives of each element of function(*args) by each of arguments
    `argnums`: a tree of the result's structure, of trees of the argument's, of arrays with the axes of
    the result, then those of the argument. By rows, in reverse mode."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result, leaves, positions = _by_arguments("jacobian", function, argnums, args, kwargs, _real)
        outputs, structure = flatten(result)
        _real(outputs, "jacobian: a result")
        blocks = []
        for output in outputs:
            rows = _core.vmap(lambda cotangents, y=output: (_core.vjp([y], cotangents, leaves), [0] * len(leaves)),
                              [_basis(output)], [0]) if leaves else []
            blocks.append(_grouped(positions, [op("reshape")(row, [*output.shape, *leaf.shape])
                                            for row, leaf in zip(rows, leaves)], argnums))
        _unwatch(result)
        return unflatten(structure, blocks)

    return wrapper


def hessian(function, argnums=0):
    """A function that gives the second derivatives of function(*args), one number, by arguments
    `argnums`: a tree of their structure, of trees of their structure, of arrays with the axes of the one
    and the other. Forward over reverse."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        value, leaves, positions = _by_arguments("hessian", function, argnums, args, kwargs, _real)
        if not _is_array(value) or value.size != 1:
            shape = value.shape if _is_array(value) else type(value).__name__
            raise ValueError(f"hessian: the function gave {shape}, expected an array of one element")
        _real([value], "hessian: the result")
        gradients = _core.vjp([value], None, leaves)
        blocks = []
        for x in leaves:
            rows = _core.vmap(lambda tangents, x=x: (_core.jvp(gradients, tangents, [x]), [0] * len(leaves)),
                              [_basis(x)], [0])
            blocks.append(_grouped(positions, [op("reshape")(row, [*x.shape, *leaf.shape])
                                            for row, leaf in zip(rows, leaves)], argnums))
        _unwatch(value)
        return _grouped(positions, blocks, argnums)

    return wrapper


class _Watching:
    """Context in which all new arrays are watched: reading them computes a copy, so that derivatives go through them."""

    def __enter__(self):
        _core.watch(1)

    def __exit__(self, *unused):
        _core.watch(-1)


def _unwatch(tree):
    """Makes reading the arrays of a tree compute no copy any more, as no derivative goes through them."""
    for leaf in flatten(tree)[0]:
        _core.unwatch(leaf)


def vjp(function, *primals):
    """function(*primals), and a function from cotangents of its outputs to those of primals."""
    leaves, structure = flatten(tuple(primals))
    leaves = _fresh(leaves)
    with _Watching():
        result = function(*_given(structure, leaves))
    outputs, shape = flatten(result)

    def pull(cotangents):
        given, its = flatten(cotangents)
        if its != shape:
            raise ValueError(f"vjp: cotangents of structure {describe(its)}, expected that of the outputs, {describe(shape)}")
        gradients = unflatten(structure, _core.vjp(outputs, _as_arrays(given), leaves))
        return gradients

    # The caller gets copies: `pull` differentiates the results themselves, which stay watched.
    return unflatten(shape, [op("copy")(output) if _is_array(output) else output for output in outputs]), pull


def jvp(function, primals, tangents):
    """function(*primals), and the tangents of its outputs for those of the primals."""
    leaves, structure = flatten(tuple(primals))
    given, its = flatten(tuple(tangents))
    if its != structure:
        raise ValueError(f"jvp: tangents of structure {describe(its)}, expected that of the primals, {describe(structure)}")
    leaves = _fresh(leaves)
    given = [op("astype")(_core.array(t), leaf.dtype) for t, leaf in zip(given, leaves)]
    with _Watching():
        result = function(*_given(structure, leaves))
    outputs, shape = flatten(result)
    tangents = _core.jvp(outputs, given, leaves)
    _unwatch(result)
    return result, unflatten(shape, tangents)


def stop_gradient(x):
    """x, of which derivatives are zero."""
    return op("stop_gradient")(x)


# --- bodies ------------------------------------------------------------------------------------


class _Body:
    """A function over a tree as one over a list of leaves; a call sets `result`, the structure of its result."""

    def __init__(self, function, structure):
        self.function, self.structure, self.result = function, structure, None

    def __call__(self, leaves):
        outputs, self.result = flatten(self.function(*unflatten(self.structure, leaves)))
        return _as_arrays(outputs)


def _trace(what, function, leaves, structure, axes=None):
    body = _Body(function, structure)
    pair = _core.graph_trace(what, body, leaves, axes)
    return pair, body.result


def vmap(function, in_axes=0, out_axes=0):
    """A function mapped over a new axis: in_axes is the axis of each argument (None: the same for
    all), or of all; out_axes the axis of the results."""

    @functools.wraps(function)
    def wrapper(*args):
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ValueError(f"vmap: {len(axes)} axes for {len(args)} arguments")
        leaves, structure = flatten(tuple(args))
        leaves = _as_arrays(leaves)
        numbers = []
        for arg, axis in zip(args, axes):
            for leaf in _as_arrays(flatten(arg)[0]):
                if axis is not None and not -leaf.ndim <= axis < leaf.ndim:
                    raise ValueError(f"vmap: axis {axis} of an array of {leaf.ndim} axes")
                numbers.append(-1 if axis is None else axis % leaf.ndim)
        if all(n < 0 for n in numbers):
            raise ValueError("vmap: no argument has an axis to map over")
        results = []

        def body(slices):
            outputs, result = flatten(function(*unflatten(structure, slices)))
            results.append(result)
            outs = out_axes if isinstance(out_axes, (tuple, list)) else (out_axes,) * len(outputs)
            if len(outs) != len(outputs) or any(o is not None and o < 0 for o in outs):
                raise ValueError(
                    f"vmap: out_axes {outs} for {len(outputs)} results: expected an axis from 0, or None, for each")
            return _as_arrays(outputs), [-1 if o is None else o for o in outs]

        batches = _core.vmap(body, leaves, numbers)
        return unflatten(results[0], batches)

    return wrapper


def flatten_structure(structure):
    """One item a leaf of a structure."""
    if structure is None:
        return []
    if not isinstance(structure, tuple):
        return [structure]
    return [leaf for part in structure[2] for leaf in flatten_structure(part)]


def _numbers(what, value):
    """Numbers of positional arguments, from one or several."""
    numbers = (value,) if isinstance(value, int) else tuple(value)
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise TypeError(f"function: {what} is {value!r}, expected numbers of positional arguments")
    return numbers


class _OtherResult(Exception):
    """The body's result has another structure than that of the first call."""

    def __init__(self):
        super().__init__("the body's result has another structure")


class _Shapeless:
    """A body that is built for other extents without being called: for one structure of arguments and results."""

    def __init__(self, body, strict, key, result, num_outputs):
        from ._train import Shapeless  # loads libtenon-train

        self.body, self.key, self.result = body, key, result
        self.native = Shapeless(self._outputs, num_outputs, strict)

    def _outputs(self, leaves):
        outputs = self.body(leaves)
        if self.body.result != self.result:
            raise _OtherResult
        return outputs


def _are_alike(a, b):
    """Whether two keys are equal in values and types: 1 is not 1.0."""
    return len(a) == len(b) and all(x is y or (type(x) is type(y) and x == y) for x, y in zip(a, b))


class function(_core.Function):
    """A function that is traced once for each signature (structure, shapes and dtypes of its
    arrays, and the values of all else), then replayed: `body` is not called again. Arguments
    numbered in `donate` are donated: their memory may become that of results.

    With `shapeless` the body is traced for other extents, too, with the first call, and is not called again
    for those: numbers in its operations that follow from extents are found. An extent of which they do not
    follow keeps its value, and a call with another one traces again; `why()` tells such extents. With
    shapeless="strict" one is an error."""

    def __init__(self, body, donate=(), static=(), shapeless=False):
        functools.update_wrapper(self, body)
        if shapeless not in (False, True, "strict"):
            raise TypeError(f"function: shapeless is {shapeless!r}, expected True, False or 'strict'")
        self.body = body
        self.donate, self.static = _numbers("donate", donate), _numbers("static", static)
        self.shapeless, self.traces = shapeless, 0
        self._bodies, self._lock = [], threading.Lock()
        super().__init__(body, tuple(i in self.static for i in range(max(self.static, default=-1) + 1)))

    def _trace(self, arrays, plan, args, kwargs):
        """For a call of a new signature: the graph, the arrays that it used, the numbers of those
        that are donated, and the structure of its result. `plan` has all leaves, TRACED for arrays."""
        structure = flatten((args, kwargs))[1]

        def body(*leaves):
            self.traces += 1
            it = iter(leaves)
            inside = [next(it) if item is _core.TRACED else item for item in plan]
            positional, named = unflatten(structure, inside)
            return self.body(*positional, **named)

        flat = (tuple, None, (_LEAF_STRUCTURE,) * len(arrays))
        if self.shapeless:
            with self._lock:  # tenon._train's functions wait for each other in C
                pair, result = self._build(_Body(body, flat), arrays, (structure, *plan))
        else:
            pair, result = _trace("function", body, arrays, flat)
        # The positional argument of each leaf, in order; leaves of arguments by name have None.
        owners = iter([i for i, arg in enumerate(args) for _ in flatten(arg)[0]])
        of_arrays = [owner for item in plan for owner in [next(owners, None)] if item is _core.TRACED]
        given = [k for k, owner in enumerate(of_arrays) if owner in self.donate]
        return pair[0], pair[1], given, result

    def _build(self, body, arrays, key):
        """The graph of a body for other extents than before, with the arrays that it uses, and its result's structure."""
        for known in self._bodies:
            if _are_alike(known.key, key):
                with contextlib.suppress(_OtherResult):
                    return known.native.graph(arrays), known.result
        graph, _ = _core.graph_trace("function", body, arrays, None)
        new = _Shapeless(body, self.shapeless == "strict", key, body.result, _core.graph_outputs(graph))
        pair = new.native.graph(arrays)
        self._bodies.append(new)
        return pair, new.result

    def why(self):
        """Which extents keep their values, of a shapeless function, a line each."""
        return "\n".join(text for known in self._bodies for text in [known.native.why()] if text)


_LEAF_STRUCTURE = flatten(0)[1]


def checkpoint(body):
    """A function whose reverse-mode derivative computes its inner values again instead of keeping
    them."""

    @functools.wraps(body)
    def wrapper(*args):
        leaves, structure = flatten(tuple(args))
        leaves = _as_arrays(leaves)
        pair, result = _trace("checkpoint", body, leaves, structure)
        return unflatten(result, _core.checkpoint(pair, leaves))

    return wrapper


def checkpoint_sequential(functions, segments, x):
    """functions[-1](... functions[0](x)), divided into `segments` parts of lengths that differ by one at
    most: the reverse-mode derivative keeps what goes from part to part, and computes the rest of a part
    again when it comes to it."""
    functions = list(functions)
    if not 1 <= segments <= len(functions):
        raise ValueError(
            f"checkpoint_sequential: {segments} segments of {len(functions)} functions, expected 1 to as many as "
            "there are functions, at least one")
    for i in range(segments):
        part = functions[len(functions) * i // segments : len(functions) * (i + 1) // segments]

        def run(value, part=part):
            for each in part:
                value = each(value)
            return value

        x = checkpoint(run)(x) if segments > 1 else run(x)
    return x


def cond(pred, then, otherwise, *args):
    """then(*args) where `pred` holds, else otherwise(*args); both give one structure."""
    leaves, structure = flatten(tuple(args))
    leaves = _as_arrays(leaves)
    first, result = _trace("cond", then, leaves, structure)
    second, other = _trace("cond", otherwise, leaves, structure)
    if result != other:
        raise ValueError(f"cond: the branches give {describe(result)} and {describe(other)}")
    pred = pred if _is_array(pred) else _core.array(pred)
    return unflatten(result, _core.cond(op("astype")(pred, "bool"), first, second, leaves))


def while_loop(condition, body, init, times=-1):
    """body(...body(init)) as long as condition(value) holds, at most `times` times (-1: any);
    `condition` may be None. Values keep their structure, shapes and dtypes."""
    leaves, structure = flatten(init)
    leaves = _as_arrays(leaves)
    whole = (tuple, None, (structure,))
    pair, result = _trace("while_loop", body, leaves, whole)
    if result != structure:
        raise ValueError(f"while_loop: the body gives {describe(result)}, expected {describe(structure)}")
    test = None if condition is None else _trace("while_loop", condition, leaves, whole)[0]
    return unflatten(structure, _core.while_loop(pair, test, times, leaves))


def scan(body, init, xs=None, length=None, reverse=False):
    """As JAX's: body(carry, x) -> (carry, y) at each position of xs' first axis; gives the last
    carry, and the y of all positions stacked."""
    carries, structure = flatten(init)
    slices, shape = flatten(xs)
    carries, slices = _as_arrays(carries), _as_arrays(slices)
    if not slices and length is None:
        raise ValueError("scan: xs has no arrays: give length")
    both = (tuple, None, (structure, shape))
    axes = [-1] * len(carries) + [0] * len(slices)
    pair, result = _trace("scan", body, carries + slices, both, axes)
    if result is None or result[0] is not tuple or len(result[2]) != 2 or result[2][0] != structure:
        raise ValueError(f"scan: the body gives {describe(result)}, expected (carry of {describe(structure)}, y)")
    outputs = _core.scan(pair, len(carries), -1 if length is None else length, reverse, carries + slices)
    return unflatten(structure, outputs[: len(carries)]), unflatten(result[2][1], outputs[len(carries) :])

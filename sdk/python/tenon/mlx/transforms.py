# SPDX-License-Identifier: MIT
"""MLX's transforms of functions over trees: derivatives, batches, checkpoints, rules of one's own; and evaluation."""

import functools
import os
import threading

from .. import _core
from .._index import op
from .._transforms import function
from . import devices, random
from .table import array, put, wrap
from .trees import copied, fill, flatten, rebuild, restore, unflatten, update, visit_with


def _value(x):
    return x._x


class _Depth(threading.local):
    """How many transforms run in a thread."""

    count = 0


_depth = _Depth()


def is_deriving():
    """Whether derivatives are being taken in this thread."""
    return _depth.count > 0


class watching:
    """Within: arrays that are made are watched, so that derivatives go on through what reads them."""

    def __enter__(self):
        _depth.count += 1
        _core.watch(1)

    def __exit__(self, *unused):
        _core.watch(-1)
        _depth.count -= 1


def _fresh(arrays):
    """The same elements as other nodes: derivatives by them are those by one argument."""
    with watching():
        return [op("copy")(_value(x)) for x in arrays]


def _tracers(nodes):
    """Objects of their own, so that []= within a function leaves the nodes as they are."""
    return [wrap(_core.alias(node)) for node in nodes]


def _unwatch(arrays):
    for x in arrays:
        _core.unwatch(_value(x))


def _has_slope(x):
    return x.dtype.kind in "fc"


def _check_slopes(what, nodes):
    for x in nodes:
        if not _has_slope(x):
            raise ValueError(f"[{what}] Cannot compute a gradient by an array of {x.dtype.name}: convert it to floats, or leave it out "
                             "(an index, say) by stop_gradient.")


def _vjp(outputs, cotangents, inputs):
    """The core's, of what has derivatives: outputs and inputs of other dtypes have gradients of zeros."""
    pairs = [(y, g) for y, g in zip(outputs, cotangents) if _has_slope(y)]
    places = [i for i, x in enumerate(inputs) if _has_slope(x)]
    found = _core.vjp([y for y, _ in pairs], [op("astype")(g, y.dtype) for y, g in pairs],
                      [inputs[i] for i in places]) if pairs and places else [None] * len(places)
    gradients = [None] * len(inputs)
    for i, g in zip(places, found):
        gradients[i] = g
    return [op("zeros_like")(x) if g is None else g for x, g in zip(inputs, gradients)]


_PLACE = array.__new__(array)  # of an array in the structure of a tree


# --- gradients -----------------------------------------------------------------------------------


def _numbers(what, argnums, argnames):
    """Which arguments: numbers in order, and a set of names."""
    names = {argnames} if isinstance(argnames, str) else set(argnames or ())
    if argnums is None:
        numbers = [] if names else [0]
    else:
        numbers = [argnums] if isinstance(argnums, int) else sorted(argnums) if all(
            isinstance(n, int) for n in argnums) else None
    if numbers is None:
        raise TypeError(f"[{what}] argnums is {argnums!r}, expected a number or several")
    if not numbers and not names:
        raise ValueError(f"[{what}] Gradient wrt no argument requested")
    if numbers and numbers[0] < 0:
        raise ValueError(f"[{what}] Can't compute the gradient of negative argument index {numbers[0]}")
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"[{what}] Duplicate argument index {numbers[0]} is not allowed.")
    return numbers, names


def _check_call(what, numbers, names, args, kwargs):
    if numbers and numbers[-1] >= len(args):
        raise ValueError(f"[{what}] Can't compute the gradient of argument index {numbers[-1]} because the function is "
                         f"called with only {len(args)} positional arguments.")
    for name in names:
        if name not in kwargs:
            raise ValueError(f"[{what}] Can't compute the gradient of keyword argument '{name}' because the function is "
                             f"called with the following keyword arguments {{{','.join(kwargs)}}}")


def _check_value(what, result, scalar_only):
    """The array whose gradient is wanted."""
    first = result
    if not isinstance(result, array):
        if scalar_only:
            raise ValueError(f"[{what}] The return value of the function whose gradient we want to compute should be a "
                             f"scalar array; but {type(result).__name__} was returned.")
        first = result[0] if isinstance(result, tuple) and result else None
        if not isinstance(first, array):
            raise ValueError(f"[{what}] The return value of the function whose gradient we want to compute should be either "
                             "a scalar array or a tuple with the first value being a scalar array; but "
                             f"{type(result).__name__} was returned.")
    if first.ndim != 0:
        raise ValueError(f"[{what}] The return value of the function whose gradient we want to compute should be a scalar "
                         f"array; but an array of shape {first.shape} was returned.")
    return first


def _with_tracers(fun, args, kwargs):
    """fun(*args, **kwargs) with other nodes in the place of all arrays, and these. Lists and dicts among the arguments have
    them meanwhile, as MLX's; what the function puts there stays."""
    full = [list(args), kwargs]
    arrays = flatten(full)
    nodes = _fresh(arrays)
    tracers = _tracers(nodes)
    values = [tracer._x for tracer in tracers]
    fill(full, tracers)
    try:
        with watching():
            return fun(*full[0], **full[1]), nodes
    finally:
        originals = {id(t): (x, old) for t, x, old in zip(tracers, values, arrays)}

        def original(tracer):
            value, old = originals.get(id(tracer), (None, None))
            return old if value is not None and tracer._x is value else tracer

        update(full, original)


def _value_and_grad(what, fun, argnums, argnames, scalar_only):
    numbers, names = _numbers(what, argnums, argnames)

    def wrapper(*args, **kwargs):
        _check_call(what, numbers, names, args, kwargs)
        counts, wanted, trees = 0, [], []
        for key, arg in [*enumerate(args), *kwargs.items()]:
            is_wanted = key in names if isinstance(key, str) else key in numbers
            count = len(flatten(arg, is_wanted))
            if is_wanted:
                wanted += range(counts, counts + count)
                trees.append((key, rebuild(arg, lambda: _PLACE)))
            counts += count
        result, nodes = _with_tracers(fun, args, kwargs)
        y = _value(_check_value(what, result, scalar_only))
        _check_slopes(what, [nodes[i] for i in wanted])
        gradients = iter(_vjp([y], [op("ones_like")(y)], [nodes[i] for i in wanted]))
        _unwatch(flatten(result))
        positional, named = [], {}
        for key, tree in trees:
            gradient = rebuild(tree, lambda: wrap(next(gradients)))
            if isinstance(key, str):
                named[key] = gradient
            else:
                positional.append(gradient)
        positional = None if not numbers else positional[0] if len(numbers) == 1 else tuple(positional)
        return result, (positional, named) if names else positional

    return wrapper


def value_and_grad(fun, argnums=None, argnames=()):
    """A function that gives fun(...), one number or a tuple whose first item is one, and its gradient."""
    return _value_and_grad("value_and_grad", fun, argnums, argnames, False)


def grad(fun, argnums=None, argnames=()):
    """A function that gives the gradient of fun(...)."""
    both = _value_and_grad("grad", fun, argnums, argnames, True)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def _outputs(result):
    """The arrays of a result: one, or several in a list or tuple."""
    if isinstance(result, array):
        return [result]
    if isinstance(result, (list, tuple)) and all(isinstance(each, array) for each in result):
        return list(result)
    raise ValueError(f"The function should return an array or a list of arrays, but {type(result).__name__} was returned.")


def vjp(fun, primals, cotangents):
    """fun(*primals), and the products of the cotangents with its derivatives, as two lists."""
    nodes = _fresh(primals)
    with watching():
        result = fun(*_tracers(nodes))
    outputs = _outputs(result)
    if len(outputs) != len(cotangents):
        raise ValueError(f"[vjp] Number of outputs, {len(outputs)}, does not match the number of cotangents, "
                         f"{len(cotangents)}.")
    for y, g in zip(outputs, cotangents):
        if y.shape != g.shape:
            raise ValueError(f"[vjp] Output shape {y.shape} does not match cotangent shape {g.shape}.")
    _check_slopes("vjp", nodes)
    gradients = _vjp([_value(y) for y in outputs], [_value(g) for g in cotangents], nodes)
    _unwatch(outputs)
    return outputs, [wrap(g) for g in gradients]


def jvp(fun, primals, tangents):
    """fun(*primals), and the products of its derivatives with the tangents, as two lists."""
    if len(primals) != len(tangents):
        raise ValueError(f"[jvp] Number of inputs, {len(primals)}, does not match the number of tangents, {len(tangents)}.")
    for x, t in zip(primals, tangents):
        if x.shape != t.shape:
            raise ValueError(f"[jvp] Input shape {x.shape} does not match tangent shape {t.shape}.")
    nodes = _fresh(primals)
    with watching():
        result = fun(*_tracers(nodes))
    outputs = _outputs(result)
    _check_slopes("jvp", nodes)
    given = [op("astype")(_value(t), x.dtype) for t, x in zip(tangents, nodes)]
    values = [_value(y) for y in outputs]
    slopes = [y for y in values if _has_slope(y)]
    found = iter(_core.jvp(slopes, given, nodes) if slopes and nodes else map(op("zeros_like"), slopes))
    _unwatch(outputs)
    # What is neither float nor complex does not change with the inputs: zeros of a tangent's dtype.
    dtype = given[0].dtype if given else None
    return outputs, [wrap(next(found) if _has_slope(y) else op("zeros")(list(y.shape), dtype=dtype or y.dtype)) for y in values]


# --- batches ----------------------------------------------------------------------------------------


def _axis(x, axis, is_output):
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if axis is None:
        return -1
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise ValueError("[vmap] axis must be int or None.")
    rank = x.ndim + is_output
    if not -rank <= axis < rank:
        raise ValueError(f"[vmap] Invalid{' output ' if is_output else ' '}vectorization axis {axis} for array with shape "
                         f"{x.shape}")
    return axis % rank


def _axes(tree, axes, is_output=False):
    """The axis of each array of a tree."""
    found = []

    def visit(x, axis):
        if not isinstance(x, array):
            raise ValueError("[vmap] The arguments should contain only arrays")
        if isinstance(axis, tuple) and not isinstance(tree, array):
            raise ValueError("[vmap] axis must be int or None.")
        found.append(_axis(x, axis, is_output))

    visit_with(tree, axes, "vmap", visit)
    return found


def vmap(fun, in_axes=0, out_axes=0):
    """A function mapped over a new axis of its arguments: trees of axes, None for what is the same for all."""

    def wrapper(*args):
        arrays = flatten(args, True)
        places = _axes(args[0] if len(args) == 1 else args, in_axes)
        sizes = {x.shape[axis] for x, axis in zip(arrays, places) if axis >= 0}
        if not sizes:
            raise ValueError("[vmap] At least one of in_axes must be non-None.")
        if len(sizes) > 1:
            raise ValueError(f"[vmap] Inconsistent axis sizes: {', '.join(map(str, sorted(sizes)))}.")
        results = []

        def body(slices):
            result = fun(*unflatten(args, map(wrap, slices)))
            outputs = flatten(result, True)
            results.append(result)
            return [_value(y) for y in outputs], _axes(result, out_axes, True)

        _depth.count += 1
        try:
            random.thread_key()
            with random.traced_keys():
                batches = _core.vmap(body, [_value(x) for x in arrays], places)
        finally:
            _depth.count -= 1
        return unflatten(results[0], map(wrap, batches))

    return wrapper


# --- bodies -----------------------------------------------------------------------------------------


def traced(what, body, arrays):
    """The graph of body(list of arrays), which gives a list of arrays, and the arrays that it used beside."""

    def inside(values):
        return [_value(y) for y in body([wrap(x) for x in values])]

    random.thread_key()
    with random.traced_keys():
        return _core.graph_trace(what, inside, [_value(x) for x in arrays])


def checkpoint(fun):
    """A function whose reverse-mode derivative computes its inner values again instead of keeping them."""

    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        full, results = (args, kwargs), []
        arrays = flatten(full)

        def body(inner):
            positional, named = unflatten(full, inner)
            results.append(fun(*positional, **named))
            return flatten(results[0])

        graph = traced("checkpoint", body, arrays)
        outputs = _core.checkpoint(graph, [_value(x) for x in arrays])
        return unflatten(results[0], map(wrap, outputs))

    return wrapper


class custom_function:
    """A function with derivatives and batches of one's own, by its methods vjp, jvp and vmap."""

    def __init__(self, f):
        functools.update_wrapper(self, f)
        self._function, self._rules = f, {"vjp": None, "jvp": None, "vmap": None}

    def _rule(self, name, rule):
        self._rules[name] = rule
        return self

    def vjp(self, f):
        """Takes the rule f(primals, cotangents, outputs)."""
        return self._rule("vjp", f)

    def jvp(self, f):
        """Takes the rule f(primals, tangents)."""
        return self._rule("jvp", f)

    def vmap(self, f):
        """Takes the rule f(inputs, axes)."""
        return self._rule("vmap", f)

    def __call__(self, *args, **kwargs):
        if not any(self._rules.values()):
            return self._function(*args, **kwargs)
        return _Call(self._function, self._rules, args, kwargs).apply()


class _Call:
    """A call of a custom function."""

    def __init__(self, function, rules, args, kwargs):
        self.function, self.given, self.full = function, rules, (args, kwargs)
        self.arrays = flatten(self.full)
        self.result = self.graph = None

    def apply(self):
        self.graph, used = traced("custom_function", self.body, self.arrays)
        given = self.given
        rules = _core.custom_rules(self.vjp if given["vjp"] else self.own_vjp, self.jvp if given["jvp"] else None,
                                   self.vmap if given["vmap"] else self.own_vmap)
        outputs = _core.custom_call(self.graph, rules, [_value(x) for x in self.arrays] + used)
        return unflatten(self.result, map(wrap, outputs))

    def body(self, arrays):
        args, kwargs = unflatten(self.full, arrays)
        self.result = self.function(*args, **kwargs)
        return flatten(self.result)

    def _primals(self, values):
        args, kwargs = unflatten(self.full, map(wrap, values[: len(self.arrays)]))
        return args[0] if len(args) == 1 else args, kwargs

    def _results(self, values):
        return unflatten(self.result, map(wrap, values))

    def vjp(self, inputs, outputs, cotangents, wanted):
        primals, kwargs = self._primals(inputs)
        cotangents = [op("zeros_like")(y) if g is None else g for g, y in zip(cotangents, outputs)]
        gradients = flatten(self.given["vjp"](primals, self._results(cotangents), self._results(outputs), **kwargs))
        return [_value(g) for g in gradients] + [None] * (len(inputs) - len(gradients))

    def own_vjp(self, inputs, outputs, cotangents, wanted):
        """The derivatives of the function itself, where only another rule is given."""
        nodes = [op("copy")(x) for x in inputs]
        results = _core.graph_call((self.graph, []), nodes)
        given = [op("zeros_like")(y) if g is None else g for g, y in zip(cotangents, results)]
        return _vjp(results, given, nodes)

    def jvp(self, inputs, outputs, tangents):
        primals, kwargs = self._primals(inputs)
        if kwargs:
            raise ValueError("[custom jvp] Function should only accept positional arguments")
        following = iter(tangents).__next__

        def tangent():
            t = following()
            return None if t is None else wrap(t)

        args = tuple(rebuild(self.full[0], tangent))
        results = self.given["jvp"](primals, args[0] if len(args) == 1 else args)
        return [_value(t) for t in flatten(results)]

    def vmap(self, inputs, axes, size):
        primals, kwargs = self._primals(inputs)
        if kwargs:
            raise ValueError("[custom vmap] Function should only accept positional arguments")
        places = tuple(unflatten(self.full[0], axes))
        result = self.given["vmap"](primals, places[0] if len(places) == 1 else places)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError("[custom vmap] Vmap function should return a tuple with 2 items.")
        outputs, found = [], []

        def visit(y, axis):
            if isinstance(y, array):
                outputs.append(_value(y))
                found.append(axis)

        visit_with(*result, "custom vmap", visit)
        return outputs, found

    def own_vmap(self, inputs, axes, size):
        """A batch of the function itself, with the rules that are given."""
        places = [-1 if axis is None else axis for axis in axes]
        outputs = _core.vmap(lambda slices: ((found := _core.graph_call((self.graph, []), slices)), [0] * len(found)),
                             inputs, places)
        return outputs, [0] * len(outputs)


def stop_gradient(x, *, stream=None):
    """x, of which derivatives are zero."""
    with devices.on(stream):
        return wrap(op("stop_gradient")(_value(x)))


def depends(inputs, dependencies):
    """The inputs, which are computed after the dependencies."""
    arrays = flatten(inputs, True)
    after = [_value(x) for x in flatten(dependencies, True)]
    if _depth.count == 0 and not _core.is_tracing():
        _core.async_eval(after)
    results = [wrap(op("copy")(_value(x))) for x in arrays]
    return results[0] if isinstance(inputs, array) else results


# --- compiled functions -------------------------------------------------------------------------------

_compiles = {"enabled": not os.environ.get("MLX_DISABLE_COMPILE")}
_LARGE = 4  # nodes from which a graph whose inputs have values is run as one plan rather than put in place


def disable_compile():
    """Compiled functions are called as they are, from now on."""
    _compiles["enabled"] = False


def enable_compile():
    """Compiled functions are traced and replayed, from now on."""
    _compiles["enabled"] = True


class _Entry:
    """What a compiled function was for arguments of one kind."""

    def __init__(self, graph, used, result, count):
        self.graph, self.result, self.count = (graph, used), result, count
        self.is_large = _core.graph_size(graph) >= _LARGE
        self.replayed = function(lambda *values: _core.graph_call(self.graph, list(values)))

    def outputs(self, values):
        """The outputs: as nodes, or of a run where all inputs are there and it saves building much."""
        if self.is_large and not _depth.count and not _core.is_tracing() and _core.have_values(values):
            return self.replayed(*values)
        return _core.graph_call(self.graph, values)


class _Compiled:
    """A function that is called once for each kind of arguments, and whose graph is used from then on."""

    def __init__(self, fun, inputs, outputs, shapeless):
        functools.update_wrapper(self, fun)
        self._fun, self._inputs, self._outputs = fun, inputs, outputs
        self._entries = {}

    def __call__(self, *args, **kwargs):
        if not _compiles["enabled"]:
            return self._fun(*args, **kwargs)
        key, arrays = [_core.current_device()], []
        _signature(args, key, arrays)
        _signature(kwargs, key, arrays)
        if self._inputs is not None:
            captured = flatten(self._inputs)
            arrays += captured
            key.append(len(captured))
        values = [x._x for x in arrays]
        key += [(x.dtype, x.shape) for x in values]
        key = tuple(key)
        entry = self._entries.get(key)
        if entry is None:
            if _depth.count or _core.is_tracing():  # what the body uses ends with that
                return self._fun(*args, **kwargs)
            entry = self._entries[key] = self._traced(args, kwargs, arrays)
        outputs = [wrap(x) for x in entry.outputs(values)]
        if self._outputs is not None:
            fill(self._outputs, outputs[entry.count:])
        return unflatten(entry.result, outputs)

    def _traced(self, args, kwargs, arrays):
        """The entry for a call, and what it leaves: arrays that the body put among the inputs where there were none."""
        results, left, kept = [], [], []

        def body(inner):
            count = len(arrays) if self._inputs is None else len(arrays) - len(flatten(self._inputs))
            following = iter(inner[:count]).__next__
            before = None if self._inputs is None else copied(self._inputs)
            if self._inputs is not None:
                fill(self._inputs, inner[count:])
            try:
                result = self._fun(*rebuild(args, following), **rebuild(kwargs, following))
                outputs = flatten(result)
                results.extend((result, len(outputs)))
                outputs += [] if self._outputs is None else flatten(self._outputs)
            finally:
                if self._inputs is not None:  # what the body put there ends with it; outputs come from the call
                    restore(self._inputs, before)
            if self._inputs is not None and self._outputs is None:
                known = {id(x) for x in flatten(before)}
                left.extend(x for x in flatten(self._inputs) if id(x) not in known)
            known = {id(x._x) for x in (*inner, *outputs, *left)}
            kept.extend(x for x in _core.arrays_of_body() if id(x) not in known)
            return outputs + left + [wrap(x) for x in kept]

        graph = traced("function", body, arrays)
        entry = _Entry(*_without(graph, kept, arrays) if kept else graph, *results)
        if left:
            self._leave(entry, left, arrays)
        return entry

    def _leave(self, entry, left, arrays):
        """Gives what the body left among the inputs its values."""
        outputs = _core.graph_call(entry.graph, [x._x for x in arrays])
        made = {id(x): wrap(y) for x, y in zip(left, outputs[-len(left):])}
        update(self._inputs, lambda x: made.get(id(x), x))


def _without(graph, kept, arrays):
    """A graph without its last outputs: arrays that the body left where it says nothing of, as the count of steps in an
    optimiser that is not among the outputs. They get their values of this call."""
    values = [x._x for x in arrays]
    outputs = _core.graph_call(graph, values)
    count = len(outputs) - len(kept)
    for x, value in zip(kept, outputs[count:]):
        x._replace(value)
    return _core.graph_trace("function", lambda inner: _core.graph_call(graph, list(inner))[:count], values)


def _signature(tree, key, arrays):
    """Adds to the key what a tree is but for its arrays, and these to their list."""
    kind = type(tree)
    if kind is array:
        key.append(array)
        arrays.append(tree)
    elif isinstance(tree, (list, tuple)):
        key.append((list, len(tree)))
        for item in tree:
            _signature(item, key, arrays)
    elif isinstance(tree, dict):
        key.append((dict, *tree))
        for item in tree.values():
            _signature(item, key, arrays)
    elif tree is None or isinstance(tree, (int, float, str)):
        key.append((kind, tree))
    else:
        raise ValueError("[compile] Function arguments must be trees of arrays or constants (floats, ints, strings, or None), "
                         f"but received type {kind.__name__}.")


def compile(fun, inputs=None, outputs=None, shapeless=False):
    """A function that is traced once for each kind of arguments. What it reads and changes beside them are trees of arrays,
    `inputs` and `outputs`. (With `shapeless`, too, another shape is another kind.)"""
    return _Compiled(fun, inputs, outputs, shapeless)


# --- evaluation ------------------------------------------------------------------------------------


def eval(*args):
    """Computes the arrays of trees."""
    arrays = [_value(x) for x in flatten(args)]
    if not _core.is_tracing():
        with devices.failing():
            _core.eval(arrays)


def async_eval(*args):
    """Begins to compute the arrays of trees."""
    if _depth.count or _core.is_tracing():
        raise ValueError("[async_eval] Not allowed inside a graph transformation.")
    arrays = [_value(x) for x in flatten(args)]
    _core.async_eval(arrays)
    devices.begun(arrays)


for _each in (value_and_grad, grad, vjp, jvp, vmap, checkpoint, custom_function, stop_gradient, depends, compile,
              disable_compile, enable_compile, eval, async_eval):
    put(_each.__name__, _each)

# SPDX-License-Identifier: MIT
"""Functions whose derivatives are other than those of their graphs: checkpoint, custom_function, stop_gradient, depends."""

import functools

from ... import _core
from ..._index import op
from .. import devices
from ..table import array, put, wrap
from ..trees import flatten, rebuild, unflatten, visit_with
from .nodes import depth, traced, value_of, vjp_of


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
        outputs = _core.checkpoint(graph, [value_of(x) for x in arrays])
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


@functools.cache
def _position():
    """A placeholder for an array in a tree."""
    return array(0)


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
        outputs = _core.custom_call(self.graph, rules, [value_of(x) for x in self.arrays] + used)
        results = unflatten(self.result, map(wrap, outputs))
        self._forget()
        return results

    def _forget(self):
        """Rules live as long as a graph that has them; of arrays they need the positions alone."""
        self.full, self.result = rebuild(self.full, _position), rebuild(self.result, _position)
        self.arrays = flatten(self.full)

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
        return [value_of(g) for g in gradients] + [None] * (len(inputs) - len(gradients))

    def own_vjp(self, inputs, outputs, cotangents, wanted):
        """The derivatives of the function itself, where only another rule is given."""
        nodes = [op("copy")(x) for x in inputs]
        results = _core.graph_call((self.graph, []), nodes)
        given = [op("zeros_like")(y) if g is None else g for g, y in zip(cotangents, results)]
        return vjp_of(results, given, nodes)

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
        return [value_of(t) for t in flatten(results)]

    def vmap(self, inputs, axes, size):
        primals, kwargs = self._primals(inputs)
        if kwargs:
            raise ValueError("[custom vmap] Function should only accept positional arguments")
        positions = tuple(unflatten(self.full[0], axes))
        result = self.given["vmap"](primals, positions[0] if len(positions) == 1 else positions)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError("[custom vmap] Vmap function should return a tuple with 2 items.")
        outputs, found = [], []

        def visit(y, axis):
            if isinstance(y, array):
                outputs.append(value_of(y))
                found.append(axis)

        visit_with(*result, "custom vmap", visit)
        return outputs, found

    def own_vmap(self, inputs, axes, size):
        """A batch of the function itself, with the rules that are given."""
        positions = [-1 if axis is None else axis for axis in axes]
        outputs = _core.vmap(lambda slices: ((found := _core.graph_call((self.graph, []), slices)), [0] * len(found)),
                             inputs, positions)
        return outputs, [0] * len(outputs)


def stop_gradient(x, *, stream=None):
    """x, of which derivatives are zero."""
    with devices.on(stream):
        return wrap(op("stop_gradient")(value_of(x)))


def depends(inputs, dependencies):
    """The inputs, which are computed after the dependencies."""
    arrays = flatten(inputs, True)
    after = [value_of(x) for x in flatten(dependencies, True)]
    if depth.count == 0 and not _core.is_tracing():
        _core.async_eval(after)
    results = [wrap(op("copy")(value_of(x))) for x in arrays]
    return results[0] if isinstance(inputs, array) else results


for _each in (checkpoint, custom_function, stop_gradient, depends):
    put(_each.__name__, _each)

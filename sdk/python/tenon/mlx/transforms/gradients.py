# SPDX-License-Identifier: MIT
"""Derivatives of functions over trees: grad, value_and_grad, vjp, jvp."""

from ... import _core
from ..._index import op
from ..table import array, put, wrap
from ..trees import fill, flatten, rebuild, update
from .nodes import check_slopes, fresh, has_slope, tracers_of, unwatch, value_of, vjp_of, watching


_LEAF = array.__new__(array)  # stands for an array in the structure of a tree


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
    """Calls fun with fresh nodes in the place of all arrays, and gives (result, nodes). The lists and dicts of the arguments hold
    the nodes meanwhile, as in MLX; arrays that the function puts there stay."""
    full = [list(args), kwargs]
    arrays = flatten(full)
    nodes = fresh(arrays)
    tracers = tracers_of(nodes)
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
                trees.append((key, rebuild(arg, lambda: _LEAF)))
            counts += count
        result, nodes = _with_tracers(fun, args, kwargs)
        y = value_of(_check_value(what, result, scalar_only))
        check_slopes(what, [nodes[i] for i in wanted])
        gradients = iter(vjp_of([y], [op("ones_like")(y)], [nodes[i] for i in wanted]))
        unwatch(flatten(result))
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
    nodes = fresh(primals)
    with watching():
        result = fun(*tracers_of(nodes))
    outputs = _outputs(result)
    if len(outputs) != len(cotangents):
        raise ValueError(f"[vjp] Number of outputs, {len(outputs)}, does not match the number of cotangents, "
                         f"{len(cotangents)}.")
    for y, g in zip(outputs, cotangents):
        if y.shape != g.shape:
            raise ValueError(f"[vjp] Output shape {y.shape} does not match cotangent shape {g.shape}.")
    check_slopes("vjp", nodes)
    gradients = vjp_of([value_of(y) for y in outputs], [value_of(g) for g in cotangents], nodes)
    unwatch(outputs)
    return outputs, [wrap(g) for g in gradients]


def jvp(fun, primals, tangents):
    """fun(*primals), and the products of its derivatives with the tangents, as two lists."""
    if len(primals) != len(tangents):
        raise ValueError(f"[jvp] Number of inputs, {len(primals)}, does not match the number of tangents, {len(tangents)}.")
    for x, t in zip(primals, tangents):
        if x.shape != t.shape:
            raise ValueError(f"[jvp] Input shape {x.shape} does not match tangent shape {t.shape}.")
    nodes = fresh(primals)
    with watching():
        result = fun(*tracers_of(nodes))
    outputs = _outputs(result)
    check_slopes("jvp", nodes)
    given = [op("astype")(value_of(t), x.dtype) for t, x in zip(tangents, nodes)]
    values = [value_of(y) for y in outputs]
    slopes = [y for y in values if has_slope(y)]
    found = iter(_core.jvp(slopes, given, nodes) if slopes and nodes else map(op("zeros_like"), slopes))
    unwatch(outputs)
    # Outputs of other dtypes than floats and complex numbers have tangents of zeros, in the dtype of a tangent.
    dtype = given[0].dtype if given else None
    return outputs, [wrap(next(found) if has_slope(y) else op("zeros")(list(y.shape), dtype=dtype or y.dtype)) for y in values]


for _each in (value_and_grad, grad, vjp, jvp):
    put(_each.__name__, _each)

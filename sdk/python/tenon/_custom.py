# SPDX-License-Identifier: MIT
"""Functions with derivatives and batching of one's own."""

import functools

from . import _core
from ._core import Array
from ._index import op
from ._tree import describe, flatten, leaves_under, unflatten


class custom_function:
    """A function whose derivatives, or whose mapping over a batch, are given beside it:

        @tenon.custom_function
        def rounded(x):
            return tenon.round(x)

        @rounded.vjp
        def _(primals, cotangents, outputs):
            return cotangents

    Rules get `primals` as the function got its arguments: the one, or a tuple of several.
    vjp gives the cotangents of the primals (None: zero), of their structure;
    jvp(primals, tangents) gives the tangents of the outputs; vmap(primals, axes) gives the
    outputs and the axis of each, where `axes` is one number or None, or a tuple of such.
    Of vjp and jvp one gives the other, which is its transpose; without vmap a batch is mapped, with
    these derivatives. Where neither is given, they are the function's own. Arguments are given by
    position; what is no array is handed to the rules as it is. The function is traced: it has no
    values to read."""

    def __init__(self, function, name=None):
        if function:
            functools.update_wrapper(self, function)
        else:
            self.__name__ = name
        self.function = function
        self._rules = {"vjp": None, "jvp": None, "vmap": None}
        self._made = {}

    def _rule(self, name, rule):
        if not callable(rule):
            raise TypeError(f"custom_function: {name} is {rule!r}, expected a function")
        self._rules[name] = rule
        self._made.clear()
        return self

    def vjp(self, rule):
        """Takes the rule of reverse mode."""
        return self._rule("vjp", rule)

    def jvp(self, rule):
        """Takes the rule of forward mode."""
        return self._rule("jvp", rule)

    def vmap(self, rule):
        """Takes the rule of batching."""
        return self._rule("vmap", rule)

    def __call__(self, *args):
        return self._apply(self.function, args)

    def _apply(self, function, args):
        args = tuple(args)
        if not any(self._rules.values()):
            return function(*args)
        leaves, structure = flatten(args)
        is_array = tuple(isinstance(leaf, Array) or hasattr(leaf, "__array__") for leaf in leaves)
        arrays = [leaf if isinstance(leaf, Array) else _core.array(leaf) for leaf, of in zip(leaves, is_array) if of]
        call = _Call(self, function, structure, leaves, is_array)
        call.graph, used = _core.graph_trace("custom_function", call.body, arrays)
        outputs = _core.custom_call(call.graph, call.rules(len(used), self._made), arrays + used)
        return unflatten(call.result, outputs)


_MOST_KINDS = 64  # kinds of calls whose rules a function keeps


class _Call:
    """A call of a custom function: which leaves of its arguments are arrays, and rules over lists of arrays for the core. It
    refers to the function's rules and not to the function, which would be a cycle: the function keeps the core's rules."""

    def __init__(self, owner, function, structure, leaves, is_array):
        self.given, self.name = owner._rules, getattr(owner, "__name__", "custom_function")
        self.function, self.structure, self.is_array = function, structure, is_array
        self.leaves = [None if of else leaf for leaf, of in zip(leaves, is_array)]
        self.result = self.graph = None
        self.batches = {}  # of _Mapped

    def tree(self, arrays):
        """The arguments with these arrays in the place of the call's: the one argument, or the tuple."""
        arrays = iter(arrays)
        args = unflatten(self.structure, [next(arrays) if of else leaf
                                          for leaf, of in zip(self.leaves, self.is_array)])
        return args[0] if len(args) == 1 else args

    def body(self, arrays):
        args = self.tree(arrays)
        many = len(self.structure[2]) != 1
        outputs, self.result = flatten(self.function(*args) if many else self.function(args))
        return [leaf if isinstance(leaf, Array) else _core.array(leaf) for leaf in outputs]

    def rules(self, num_used, made):
        """The core's rules for this kind of call, made once; `made` keeps the latest _MOST_KINDS."""
        given = self.given
        key = (self.structure, self.is_array, self.result, num_used)
        if not given["vmap"]:  # then the rule of batching maps this graph
            key += (_core.graph_address(self.graph),)
        try:
            key += tuple((type(leaf), leaf) for leaf in self.leaves)
            known = made.get(key)
        except TypeError:  # an argument that is no array and has no hash
            key = known = None
        if known is None:
            has_any = given["vjp"] or given["jvp"]
            known = _core.custom_rules(self.vjp if has_any else None, self.jvp if has_any else None, self.vmap)
            if key is not None:
                while len(made) >= _MOST_KINDS:
                    made.pop(next(iter(made)), None)
                made[key] = known
        return known

    def _own(self, arrays, what, is_given):
        """The items that belong to arguments. The rest belong to arrays that the body uses beside them, and must not be given."""
        count = sum(self.is_array)
        if any(is_given(item) for item in arrays[count:]):
            raise ValueError(f"{self.name}: a {what} is asked for by an array that the function uses and that is "
                             "not among its arguments, of which its rules know nothing: pass it as an argument")
        return arrays[:count]

    def _results(self, tree, structure, rule, what):
        leaves, its = flatten(tree)
        if its != structure:
            raise ValueError(f"{self.name}: rule {rule} gave {describe(its)}, expected {what}, {describe(structure)}")
        return leaves

    def vjp(self, inputs, outputs, cotangents, wanted):
        self._own(wanted, "derivative", bool)
        count = sum(self.is_array)
        cotangents = [op("zeros_like")(y) if g is None else g for g, y in zip(cotangents, outputs)]
        if not self.given["vjp"]:
            return self._transposed_jvp(inputs, outputs, cotangents)
        given = self.given["vjp"](self.tree(inputs), unflatten(self.result, cotangents),
                                         unflatten(self.result, outputs))
        parts = self._gradients(given)
        gradients = [part for part, of in zip(parts, self.is_array) if of]
        for number, (x, g) in enumerate(zip(inputs, gradients)):
            if isinstance(g, Array) and g.shape != x.shape:
                raise ValueError(f"{self.name}: rule vjp gave shape {g.shape} for array {number} of its "
                                 f"arguments, which has {x.shape}")
        return gradients + [None] * (len(inputs) - count)

    def _gradients(self, given):
        """The leaf for each leaf of the arguments in what a vjp gave; None where it gave None."""
        expected = self.structure if len(self.structure[2]) != 1 else self.structure[2][0]
        parts = leaves_under(expected, tuple(given) if isinstance(given, list) and expected is self.structure else given)
        if parts is None:
            raise ValueError(f"{self.name}: rule vjp gave {describe(flatten(given)[1])}, expected cotangents as the "
                             f"arguments are, {describe(expected)}")
        return parts

    def _transposed_jvp(self, inputs, outputs, cotangents):
        """The vjp of a function that has a jvp: the jvp's transpose, as it is linear in the tangents."""
        count = sum(self.is_array)
        tangents = [op("zeros_like")(x) for x in inputs[:count]]
        results = self.jvp(inputs, outputs, tangents + [None] * (len(inputs) - count))
        positions = [i for i, x in enumerate(tangents) if _is_float(x)]
        gradients = [None] * len(inputs)
        for i, g in zip(positions, _vjp(results, cotangents, [tangents[i] for i in positions])):
            gradients[i] = g
        return gradients

    def _transposed_vjp(self, inputs, outputs, tangents):
        """The jvp of a function that has a vjp: the vjp's transpose, as it is linear in the cotangents."""
        cotangents = [op("zeros_like")(y) for y in outputs]
        gradients = self.vjp(inputs, outputs, cotangents, [t is not None for t in tangents])
        pairs = [(g, t) for g, t in zip(gradients, tangents) if g is not None and t is not None]
        positions = [i for i, c in enumerate(cotangents) if _is_float(c)]
        results = [None] * len(outputs)
        found = _vjp([g for g, _ in pairs], [t for _, t in pairs], [cotangents[i] for i in positions])
        for i, t in zip(positions, found):
            results[i] = t
        return results

    def jvp(self, inputs, outputs, tangents):
        if not self.given["jvp"]:
            return self._transposed_vjp(inputs, outputs, tangents)
        primals = inputs[: sum(self.is_array)]
        given = self._own(tangents, "derivative", lambda t: t is not None)
        given = [op("zeros_like")(x) if t is None else t for t, x in zip(given, primals)]
        result = self.given["jvp"](self.tree(primals), self.tree(given))
        return self._results(result, self.result, "jvp", "tangents as the outputs are")

    def vmap(self, inputs, axes, size):
        if not self.given["vmap"]:
            return _Mapped(self, self.graph, axes, self.given).apply(inputs)
        primals = inputs[: sum(self.is_array)]
        given = self._own(axes, "batch", lambda a: a is not None)
        result = self.given["vmap"](self.tree(primals), self.tree(given))
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError(f"{self.name}: rule vmap gave {type(result).__name__}, expected (outputs, axes)")
        outputs = self._results(result[0], self.result, "vmap", "outputs as without a batch")
        positions = result[1]
        if isinstance(positions, int) or positions is None:
            positions = [positions] * len(outputs)
        positions = list(positions)
        if len(positions) != len(outputs):
            raise ValueError(f"{self.name}: rule vmap gave {len(positions)} axes for {len(outputs)} outputs")
        return outputs, positions


class _Mapped:
    """A batch of calls where no rule of batching is given: the graph is mapped, and derivatives map the function's rules."""

    def __init__(self, call, graph, axes, given):
        self.call, self.graph, self.given = call, graph, given
        self.axes = [-1 if axis is None else axis for axis in axes]
        self.batches = {}

    def apply(self, inputs):
        """The outputs, and their axes."""
        def body(arrays):
            return _core.vmap(lambda slices: _all_along_0(_core.graph_call((self.graph, []), slices)), arrays, self.axes)

        whole, _ = _core.graph_trace("custom_function", body, inputs)
        key = tuple(self.axes), _core.graph_address(whole)
        known = self.call.batches.get(key)
        if known is None:
            inner = _Mapped(self, whole, (), self.given)
            has_any = self.given["vjp"] or self.given["jvp"]
            rules = _core.custom_rules(self.vjp if has_any else None, self.jvp if has_any else None, inner.vmap)
            known = self.call.batches[key] = rules, whole
        outputs = _core.custom_call(whole, known[0], inputs)
        return outputs, [0] * len(outputs)

    def vmap(self, inputs, axes, size):
        """The rule of a batch of this batch."""
        return _Mapped(self.call, self.graph, axes, self.given).apply(inputs)

    def vjp(self, inputs, outputs, cotangents, wanted):
        cotangents = [op("zeros_like")(y) if g is None else g for g, y in zip(cotangents, outputs)]
        count, many = len(inputs), len(outputs)
        positions = []

        def body(slices):
            gradients = self.call.vjp(slices[:count], slices[count : count + many], slices[count + many :], wanted)
            positions.extend(i for i, g in enumerate(gradients) if g is not None)
            return _all_along_0([op("astype")(gradients[i], slices[i].dtype) for i in positions])

        batches = _core.vmap(body, [*inputs, *outputs, *cotangents], self.axes + [0] * (2 * many))
        gradients = [None] * count
        for i, batch in zip(positions, batches):
            gradients[i] = op("sum")(batch, axis=0) if self.axes[i] < 0 else op("moveaxis")(batch, 0, self.axes[i])
        return gradients

    def jvp(self, inputs, outputs, tangents):
        count, many = len(inputs), len(outputs)
        given = [i for i, t in enumerate(tangents) if t is not None]
        positions = []

        def body(slices):
            inner = [None] * count
            for i, t in zip(given, slices[count + many :]):
                inner[i] = t
            results = self.call.jvp(slices[:count], slices[count : count + many], inner)
            positions.extend(i for i, t in enumerate(results) if t is not None)
            return _all_along_0([results[i] for i in positions])

        axes = self.axes + [0] * many + [self.axes[i] for i in given]
        results = [None] * many
        for i, t in zip(positions, _core.vmap(body, [*inputs, *outputs, *(tangents[i] for i in given)], axes)):
            results[i] = t
        return results


def _is_float(x):
    return x.dtype.kind in "fc"


def _vjp(outputs, cotangents, wrt):
    """The core's vjp of the outputs of floats and complex numbers, with cotangents in the outputs' dtypes and shapes."""
    rows = [(y, g) for y, g in zip(outputs, cotangents) if isinstance(y, Array) and _is_float(y)]
    if not rows or not wrt:
        return [None] * len(wrt)
    return _core.vjp([y for y, _ in rows], [op("astype")(g, y.dtype) for y, g in rows], wrt)


def _all_along_0(arrays):
    """For the core's vmap: arrays, and axis 0 for the batch of each."""
    return list(arrays), [0] * len(arrays)

# SPDX-License-Identifier: MIT
"""Optimisers over trees of parameters, by the operators of pack optim.

State is a tree: `step`, `learning_rate`, and for each parameter by name what the operator keeps. It is saved with the
model, and an optimiser that loads it goes on bit for bit.
"""

import tenon as tn

from .._nn.module import _nested, flat


class Optimizer:
    """learning_rate: a number, or a function of the step (tenon.optim.schedules). Subclasses name the operator, what it
    keeps, and what it is given."""

    OPERATOR, KEPT, COUNTS = "sgd", ("m",), True

    def __init__(self, learning_rate, **attributes):
        self._schedule = learning_rate if callable(learning_rate) else None
        self.attributes = attributes
        first = 0.0 if self._schedule else float(learning_rate)
        self.state = {"step": tn.zeros([]), "learning_rate": tn.array(first, tn.float32), "of": {}}

    @property
    def learning_rate(self):
        """The learning rate of the next step."""
        return self._schedule(self.state["step"]) if self._schedule else self.state["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, value):
        if self._schedule:
            raise ValueError(f"{type(self).__name__}: its learning rate is a schedule")
        self.state["learning_rate"] = tn.array(value, tn.float32)

    def init(self, parameters):
        """Makes the state of parameters that have none."""
        for name, p in flat(parameters).items():
            if name not in self.state["of"]:
                self.state["of"][name] = self._first(p)

    def _keys(self, p):
        """Names of a parameter's state arrays, in the order of the operator's inputs, since traced functions sort dicts."""
        return self.KEPT

    def _first(self, p):
        return {key: tn.zeros(p.shape, dtype=p.dtype) for key in self._keys(p)}

    def _operator(self, p):
        return self.OPERATOR

    def _one(self, p, g, kept, step, rate):
        """A parameter after a step, and its state arrays by name."""
        counted, keys = (step,) if self.COUNTS else (), self._keys(p)
        result = getattr(tn.optim, self._operator(p))(p, g, *(kept[key] for key in keys), *counted, lr=rate, **self.attributes)
        result = result if isinstance(result, tuple) else (result,)
        return result[0], dict(zip(keys, result[1:]))

    def step_of(self, names, parameters, gradients, state):
        """Parameters after a step, as a list, and the state; what a traced function calls."""
        missing = [name for name in names if name not in state["of"]]
        if missing:
            raise ValueError(f"{type(self).__name__} has no state for parameter '{missing[0]}': call init() with all parameters")
        step = state["step"] + 1
        rate = self._schedule(state["step"]) if self._schedule else state["learning_rate"]
        kept, moved = dict(state["of"]), []
        for name, p, g in zip(names, parameters, gradients):
            p, kept[name] = self._one(p, g, kept[name], step, rate)
            moved.append(p)
        return moved, {"step": step, "learning_rate": state["learning_rate"], "of": kept}

    def apply_gradients(self, gradients, parameters):
        """Parameters after a step, of a tree of gradients that may lack some; this optimiser's state moves on."""
        named, given = flat(parameters), flat(gradients)
        unknown = [name for name in given if name not in named]
        if unknown:
            raise ValueError(f"{type(self).__name__}: a gradient of '{unknown[0]}', which is no parameter")
        self.init({name: named[name] for name in given})
        moved, self.state = self.step_of(list(given), [named[name] for name in given], list(given.values()), self.state)
        named.update(zip(given, moved))
        paths = {name: path for name, path in zip(named, _paths(parameters))}
        return _nested([(paths[name], array) for name, array in named.items()])

    def update(self, model, gradients):
        """A step of a model; gradients as tenon.nn.value_and_grad gives them."""
        model.update(self.apply_gradients(gradients, model.trainable_parameters()))

    def flat_state(self):
        """The state by names, for tenon.save."""
        rows = {"step": self.state["step"], "learning_rate": self.state["learning_rate"]}
        for name, kept in self.state["of"].items():
            rows.update((f"{name}:{key}", array) for key, array in kept.items())
        return rows

    def load_state(self, named):
        """Takes the state that flat_state() gave. An array that this optimiser has and `named` lacks is an error."""
        for name, array in self.flat_state().items():
            if name not in named:
                raise ValueError(f"{type(self).__name__}: '{name}' is missing in the state")
            if named[name].shape != array.shape:
                raise ValueError(f"{type(self).__name__}: '{name}' has shape {named[name].shape}, expected {array.shape}")
        of = {}
        for name, array in named.items():
            parameter, _, key = name.rpartition(":")
            if parameter:
                of.setdefault(parameter, {})[key] = array
        self.state = {"step": named["step"], "learning_rate": named["learning_rate"], "of": of}

    def save_state(self, path):
        tn.save(path, self.flat_state())

    def __repr__(self):
        rows = ", ".join(f"{key}={value}" for key, value in self.attributes.items())
        return f"{type(self).__name__}({rows})"


def clip_gradients(gradients, max_norm=1.0):
    """A tree of gradients scaled so that their common norm is at most max_norm, and the norm before; the operator
    clip_grad_norm does so with a list."""
    named, names = flat(gradients), _paths(gradients)
    if not named:
        return gradients, tn.zeros([])
    *clipped, norm = tn.optim.clip_grad_norm(list(named.values()), max_norm=max_norm)
    return _nested(list(zip(names, clipped))), norm


def _paths(tree, path=()):
    if isinstance(tree, tn.Array):
        return [path]
    rows = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return [inner for key, value in rows for inner in _paths(value, path + (key,))]


class SGD(Optimizer):
    """p - lr * g, with momentum, Nesterov's too."""

    def __init__(self, learning_rate, momentum=0.0, weight_decay=0.0, dampening=0.0, nesterov=False):
        super().__init__(learning_rate, momentum=momentum, weight_decay=weight_decay, dampening=dampening, nesterov=nesterov)


class _Adaptive(Optimizer):
    def __init__(self, learning_rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(learning_rate, beta1=betas[0], beta2=betas[1], eps=eps, weight_decay=weight_decay)


class Adam(_Adaptive):
    """Kingma and Ba (2015), with correction of the first steps."""

    OPERATOR, KEPT = "adam", ("m", "v")


class AdamW(_Adaptive):
    """Adam with weights that decay on their own."""

    OPERATOR, KEPT = "adamw", ("m", "v")

    def __init__(self, learning_rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(learning_rate, betas, eps, weight_decay)


class Adamax(_Adaptive):
    """Adam with the greatest of past gradients."""

    OPERATOR, KEPT = "adamax", ("m", "u")


class AMSGrad(_Adaptive):
    """Adam whose divisor never falls."""

    OPERATOR, KEPT = "amsgrad", ("m", "v", "most")


class Adagrad(Optimizer):
    """Rates over the root of all past squares."""

    OPERATOR, KEPT = "adagrad", ("v",)

    def __init__(self, learning_rate, eps=1e-10, lr_decay=0.0, weight_decay=0.0):
        super().__init__(learning_rate, eps=eps, lr_decay=lr_decay, weight_decay=weight_decay)


class AdaDelta(Optimizer):
    """Zeiler (2012)."""

    OPERATOR, KEPT, COUNTS = "adadelta", ("v", "u"), False

    def __init__(self, learning_rate=1.0, rho=0.9, eps=1e-6, weight_decay=0.0):
        super().__init__(learning_rate, rho=rho, eps=eps, weight_decay=weight_decay)


class RMSprop(Optimizer):
    """Rates over the root of a mean of squares; momentum, centered: PyTorch's."""

    OPERATOR, KEPT, COUNTS = "rmsprop", ("v",), False

    def __init__(self, learning_rate, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False):
        super().__init__(learning_rate, alpha=alpha, eps=eps, weight_decay=weight_decay)
        if centered:
            self.OPERATOR, self.KEPT = "rmsprop_centered", ("v", "mean", "m")
        elif momentum:
            self.OPERATOR, self.KEPT = "rmsprop_momentum", ("v", "m")
        if centered or momentum:
            self.attributes["momentum"] = momentum


class Lion(Optimizer):
    """Chen et al. (2023): signs of a momentum."""

    OPERATOR, KEPT, COUNTS = "lion", ("m",), False

    def __init__(self, learning_rate, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(learning_rate, beta1=betas[0], beta2=betas[1], weight_decay=weight_decay)


class Adafactor(Optimizer):
    """Shazeer and Stern (2018): of matrices means of rows and columns alone."""

    def __init__(self, learning_rate=0.01, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0):
        super().__init__(learning_rate, beta2_decay=beta2_decay, eps1=eps[0] or 0.0, eps2=eps[1], d=d, weight_decay=weight_decay)

    def _operator(self, p):
        return "adafactor" if p.ndim > 1 else "adafactor_vector"

    def _keys(self, p):
        return ("row", "column") if p.ndim > 1 else ("v",)

    def _first(self, p):
        if p.ndim < 2:
            return super()._first(p)
        return {"row": tn.zeros([*p.shape[:-1], 1], dtype=p.dtype), "column": tn.zeros([*p.shape[:-2], 1, p.shape[-1]], dtype=p.dtype)}


class Muon(Optimizer):
    """Jordan et al. (2024), of matrices; others are for MultiOptimizer to give to another one."""

    OPERATOR, KEPT, COUNTS = "muon", ("m",), False

    def __init__(self, learning_rate, momentum=0.95, weight_decay=0.1, nesterov=True, ns_steps=5, adjust_lr="original", dtype=None):
        super().__init__(learning_rate, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov, ns_steps=ns_steps,
                         adjust_lr=adjust_lr, **({"dtype": dtype} if dtype else {}))


class MultiOptimizer:
    """Several optimisers: filters[i](name, parameter) chooses what optimizers[i] moves; the last one moves the rest."""

    def __init__(self, optimizers, filters):
        if len(filters) != len(optimizers) - 1:
            raise ValueError(f"MultiOptimizer: {len(filters)} filters of {len(optimizers)} optimisers, expected {len(optimizers) - 1}")
        self.optimizers, self.filters = list(optimizers), list(filters)

    def _choose(self, name, p):
        return next((i for i, chosen in enumerate(self.filters) if chosen(name, p)), len(self.filters))

    @property
    def state(self):
        return [optimizer.state for optimizer in self.optimizers]

    @state.setter
    def state(self, states):
        for optimizer, state in zip(self.optimizers, states):
            optimizer.state = state

    def init(self, parameters):
        named = flat(parameters)
        for i, optimizer in enumerate(self.optimizers):
            optimizer.init({name: p for name, p in named.items() if self._choose(name, p) == i})

    def step_of(self, names, parameters, gradients, states):
        moved, states = dict(zip(names, parameters)), list(states)
        for i, optimizer in enumerate(self.optimizers):
            rows = [row for row in zip(names, parameters, gradients) if self._choose(row[0], row[1]) == i]
            its = [list(column) for column in zip(*rows)] or [[], [], []]
            result, states[i] = optimizer.step_of(*its, states[i])
            moved.update(zip(its[0], result))
        return [moved[name] for name in names], states

    apply_gradients = Optimizer.apply_gradients
    update = Optimizer.update

    def flat_state(self):
        return {f"{i}/{name}": array for i, optimizer in enumerate(self.optimizers) for name, array in optimizer.flat_state().items()}

    def load_state(self, named):
        for i, optimizer in enumerate(self.optimizers):
            optimizer.load_state({name[len(f"{i}/"):]: array for name, array in named.items() if name.startswith(f"{i}/")})

    save_state = Optimizer.save_state

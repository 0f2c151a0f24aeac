# SPDX-License-Identifier: MIT
"""Modules: objects whose attributes are parameters, buffers, modules, and lists and dicts of these."""

import tenon as tn

from .._transforms import value_and_grad as _value_and_grad


def _holds(value):
    """Whether a value belongs to a module's tree."""
    if isinstance(value, (tn.Array, Module)):
        return True
    if isinstance(value, dict):
        return any(map(_holds, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_holds, value))


def _items(container):
    """The entries of a module, dict or sequence that belong to the tree, as (key, value)."""
    if isinstance(container, Module):
        rows = [(key, value) for key, value in vars(container).items() if not key.startswith("_")]
    elif isinstance(container, dict):
        rows = container.items()
    else:
        rows = enumerate(container)
    return [(key, value) for key, value in rows if _holds(value)]


def _arrays(container, path=(), owner=None):
    """Every array of a tree: (path, what holds it, its key, the module that owns it, its attribute there)."""
    for key, value in _items(container):
        here = path + (key,)
        its = (container, key) if isinstance(container, Module) else owner
        if isinstance(value, tn.Array):
            if isinstance(container, tuple):
                raise TypeError(f"module: '{_text(path)}' is a tuple of arrays: make it a list, its arrays are replaced")
            yield here, container, key, its
        else:
            yield from _arrays(value, here, its)


def _text(path):
    return ".".join(map(str, path))


def _store(container, key, value):
    if isinstance(container, Module):
        container.__dict__[key] = value
    else:
        container[key] = value


def _nested(rows):
    """A tree of dicts, and of lists where the module has them, from (path, array)."""
    tree = {}
    for path, array in rows:
        at = tree
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = array
    return _with_lists(tree)


def _with_lists(tree):
    if not isinstance(tree, dict):
        return tree
    parts = {key: _with_lists(value) for key, value in tree.items()}
    if parts and all(isinstance(key, int) for key in parts):  # a hole is a part without arrays
        return [parts.get(i, {}) for i in range(max(parts) + 1)]
    return parts


def flat(tree, path=()):
    """A tree of parameters as a dict by names with dots: {"layers.0.weight": array}."""
    if isinstance(tree, tn.Array):
        return {_text(path): tree}
    rows = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return {name: array for key, value in rows for name, array in flat(value, path + (key,)).items()}


_changes = [0]  # number of changes to attributes of all modules, but for arrays that replace arrays


class Module:
    """What networks are made of. A subclass makes parameters and parts in __init__ and has forward(), or __call__().

    Attributes that are arrays are parameters: trained, saved. Those that buffer() made are saved and not trained. Names
    with an underscore at their front are neither.
    """

    _buffers = frozenset()
    _frozen = frozenset()
    training = True

    def __call__(self, *args, **kwargs):
        try:
            return self.forward(*args, **kwargs)
        except (TypeError, ValueError) as error:
            error.add_note(f"in {self._title()}")
            raise

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has neither forward() nor __call__()")

    def __setattr__(self, name, value):
        if not (isinstance(value, tn.Array) and isinstance(self.__dict__.get(name), tn.Array)):
            _changes[0] += 1
        object.__setattr__(self, name, value)

    def buffer(self, name, value):
        """Makes an attribute that is saved with the parameters, and that no optimiser changes."""
        self._buffers = self._buffers | {name}
        setattr(self, name, value)

    # --- trees -------------------------------------------------------------------------------

    def _rows(self, wanted):
        """(path, container, key) of the arrays that are wanted: "all", "parameters", "trainable", "buffers"."""
        rows = []
        for path, container, key, (owner, attribute) in _arrays(self):
            is_buffer = attribute in owner._buffers
            is_kept = {"all": True, "buffers": is_buffer, "parameters": not is_buffer,
                       "trainable": not is_buffer and attribute not in owner._frozen}[wanted]
            if is_kept:
                rows.append((path, container, key))
        return rows

    def _tree(self, wanted):
        return _nested([(path, _fetch(container, key)) for path, container, key in self._rows(wanted)])

    def parameters(self):
        """Every parameter, as nested dicts and lists."""
        return self._tree("parameters")

    def trainable_parameters(self):
        """The parameters that are not frozen."""
        return self._tree("trainable")

    def buffers(self):
        """What is saved and not trained: running statistics, keys of random numbers."""
        return self._tree("buffers")

    def state(self):
        """Parameters and buffers by name: {"layers.0.weight": array}."""
        return {_text(path): _fetch(container, key) for path, container, key in self._rows("all")}

    def update(self, tree, strict=True):
        """Replaces arrays by those of a tree like parameters(), which may have fewer. Shapes stay; `strict`: a name that
        the module lacks is an error."""
        self._put(flat(tree), strict)
        return self

    def _put(self, named, strict):
        here = {_text(path): (container, key) for path, container, key in self._rows("all")}
        unknown = [name for name in named if name not in here]
        if strict and unknown:
            raise ValueError(f"{type(self).__name__} has no parameter '{unknown[0]}'"
                             + (f" (and lacks {len(unknown) - 1} more)" if unknown[1:] else ""))
        for name, array in named.items():
            if name in here and array.shape != _fetch(*here[name]).shape:
                raise ValueError(f"parameter '{name}' of {type(self).__name__}: got shape {array.shape}, "
                                 f"expected {_fetch(*here[name]).shape}")
        for name, array in named.items():
            if name in here:
                _store(*here[name], array)

    def apply(self, function, where=None):
        """Replaces each parameter by function(parameter); `where(name, parameter)` chooses."""
        for path, container, key in self._rows("parameters"):
            array = _fetch(container, key)
            if where is None or where(_text(path), array):
                _store(container, key, function(array))
        return self

    def astype(self, dtype):
        """Makes all parameters of floats those of another dtype."""
        return self.apply(lambda x: tn.astype(x, dtype) if x.dtype.kind == "f" else x)

    # --- parts -------------------------------------------------------------------------------

    def named_modules(self, path=""):
        """This module and all in it, as (name, module); this one is ""."""
        rows = [(path, self)]
        pending = [(path, value, key) for key, value in _contents(self)]
        while pending:
            above, value, key = pending.pop(0)
            name = f"{above}.{key}" if above else str(key)
            if isinstance(value, Module):
                rows += value.named_modules(name)
            else:
                pending = [(name, inner, k) for k, inner in _contents(value)] + pending
        return rows

    def modules(self):
        """This module and all in it."""
        return [module for _, module in self.named_modules()]

    def children(self):
        """The modules that are attributes of this one, by name."""
        return {key: value for key, value in vars(self).items() if isinstance(value, Module)}

    def _each(self, recurse):
        return self.modules() if recurse else [self]

    def freeze(self, *, recurse=True, keys=None):
        """No optimiser changes these parameters: of all parts, or with `keys` those of these attribute names."""
        return self._mark(True, recurse, keys)

    def unfreeze(self, *, recurse=True, keys=None):
        """Parameters are trained again."""
        return self._mark(False, recurse, keys)

    def _mark(self, frozen, recurse, keys):
        keys = [keys] if isinstance(keys, str) else keys
        found = False
        for module in self._each(recurse):
            names = {key for key, _ in _items(module)} if keys is None else set(keys)
            found = found or keys is None or any(hasattr(module, key) for key in keys)
            module._frozen = module._frozen | names if frozen else module._frozen - names
        if not found:
            raise KeyError(f"{type(self).__name__} has no parameter '{keys[0]}'")
        return self

    def train(self, mode=True):
        """Dropout and batch norm work as in training; eval(): as in use."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Dropout does nothing, batch norm takes its running statistics."""
        return self.train(False)

    # --- files -------------------------------------------------------------------------------

    def save_weights(self, path):
        """Writes parameters and buffers, by name: safetensors, npz, whatever format tenon.save has."""
        tn.save(path, self.state())
        return self

    def load_weights(self, source, strict=True):
        """Takes parameters and buffers of a file, or of a dict by name. `strict`: neither more nor fewer."""
        named = dict(source) if isinstance(source, (dict, list)) else tn.load(source)
        if not isinstance(named, dict):
            raise ValueError(f"{source}: one array, expected parameters by name")
        if strict:
            missing = [name for name in self.state() if name not in named]
            if missing:
                where = "" if isinstance(source, (dict, list)) else f"{source}: "
                raise ValueError(f"{where}parameter '{missing[0]}' of {type(self).__name__} is missing"
                                 + (f" (and {len(missing) - 1} more)" if missing[1:] else ""))
        self._put(named, strict)
        return self

    # --- text --------------------------------------------------------------------------------

    def _describe(self):
        """What stands in the parentheses of repr()."""
        return ""

    def _title(self):
        return f"{type(self).__name__}({self._describe()})"

    def __repr__(self):
        rows = [f"  ({key}): " + repr(value).replace("\n", "\n  ") for key, value in _direct(self)]
        return self._title() if not rows else "\n".join([f"{type(self).__name__}(", *rows, ")"])


def _contents(container):
    """Entries that modules may be in, also such without parameters (activations)."""
    if isinstance(container, Module):
        rows = [(key, value) for key, value in vars(container).items() if not key.startswith("_")]
    elif isinstance(container, dict):
        rows = list(container.items())
    else:
        rows = list(enumerate(container))
    return [(key, value) for key, value in rows if isinstance(value, (Module, dict, list, tuple))]


def _direct(module):
    """The modules right below, those in lists and dicts too, by name."""
    rows, pending = [], [(str(key), value) for key, value in _contents(module)]
    while pending:
        name, value = pending.pop(0)
        if isinstance(value, Module):
            rows.append((name, value))
        else:
            pending = [(f"{name}.{key}", inner) for key, inner in _contents(value)] + pending
    return rows


def _fetch(container, key):
    return container.__dict__[key] if isinstance(container, Module) else container[key]


class Sequential(Module):
    """Modules, or functions, one behind the other."""

    def __init__(self, *layers):
        self.layers = list(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def __getitem__(self, index):
        return self.layers[index]

    def __len__(self):
        return len(self.layers)


class _Held:
    """Context in which a module has other arrays; restore() puts the arrays back that it had before."""

    def __init__(self, module, wanted):
        self.rows = module._rows(wanted)
        self.before = [_fetch(container, key) for _, container, key in self.rows]

    def put(self, arrays):
        for (_, container, key), array in zip(self.rows, arrays):
            _store(container, key, array)

    def now(self):
        return [_fetch(container, key) for _, container, key in self.rows]

    def restore(self):
        self.put(self.before)


def value_and_grad(model, function):
    """A function that gives function(*args) and its gradient by the model's trainable parameters, as a tree like
    trainable_parameters(). Of several results the first is the value that is differentiated."""

    def wrapper(*args, **kwargs):
        held, buffers = _Held(model, "trainable"), _Held(model, "buffers")

        def body(arrays):
            held.put(arrays)
            result = function(*args, **kwargs)
            parts = result if isinstance(result, tuple) else (result,)
            return parts[0], (parts[1:], buffers.now())

        try:
            (value, (rest, _)), gradients = _value_and_grad(body, has_aux=True)(held.before)
        finally:
            held.restore()
        tree = _nested([(path, gradient) for (path, _, _), gradient in zip(held.rows, gradients)])
        return (value, *rest) if rest else value, tree

    return wrapper


class TrainStep:
    """step(*batch): one step of training in one function that is traced once a signature and replayed: the loss of
    function(model, *batch), gradients of all trainable parameters, the optimiser, buffers. Gives the loss; of several
    results of the function all.

    max_norm: gradients are scaled so that their common norm is at most that. donate: memory of the parameters before
    becomes that of those after, so that arrays taken from the model before a step are no longer there. group: a
    tenon.dist.Group whose members have a part of each batch: gradients are their means, reduced in buckets while others
    are computed, and so is the loss. Members begin with the same parameters.
    """

    def __init__(self, model, optimizer, function, max_norm=None, donate=True, group=None):
        self.group = group
        self.model, self.optimizer, self.loss, self.max_norm = model, optimizer, function, max_norm
        self._function = tn.function(self._body, donate=0 if donate else ())
        self._key = self._parts = self._mark = self._changes = None

    def _refresh(self):
        """The arrays of the model, found anew where modules were frozen, set to training, or exchanged."""
        if self._changes == _changes[0]:
            return self._parts
        model, self._changes = self.model, _changes[0]
        key = tuple((id(m), m.training, m._frozen) for m in model.modules())
        if key != self._key:
            self._key, self._mark = key, repr(key)  # an argument of _function: another text is another signature
            self._parts = tuple(_Held(model, wanted) for wanted in ("trainable", "all"))
            names = {_text(path) for path, _, _ in self._parts[0].rows}
            others = [row for row in self._parts[1].rows if _text(row[0]) not in names]
            self._parts[1].rows = others
            self.optimizer.init(model.trainable_parameters())
        return self._parts

    def _body(self, state, mark, *batch):
        trained, others = self._parts
        arrays, buffers, optimizer = state
        trained.put(arrays)
        others.put(buffers)

        def loss(parameters):
            trained.put(parameters)
            result = self.loss(self.model, *batch)
            return (result[0], result[1:]) if isinstance(result, tuple) else (result, ())

        (value, rest), gradients = _value_and_grad(loss, has_aux=True)(arrays)
        names = [_text(path) for path, _, _ in trained.rows]
        if self.group is not None:
            value, *gradients = self.group.average([value, *gradients])
        if self.max_norm is not None and gradients:
            *gradients, _ = tn.optim.clip_grad_norm(gradients, max_norm=self.max_norm)
        arrays, optimizer = self.optimizer.step_of(names, arrays, gradients, optimizer)
        return (value, *rest), (arrays, others.now(), optimizer)

    def __call__(self, *batch):
        trained, others = self._refresh()
        state = (trained.now(), others.now(), self.optimizer.state)
        try:
            results, (arrays, buffers, self.optimizer.state) = self._function(state, self._mark, *batch)
        except BaseException:
            trained.put(state[0])
            others.put(state[1])
            raise
        trained.put(arrays)
        others.put(buffers)
        return results if len(results) > 1 else results[0]

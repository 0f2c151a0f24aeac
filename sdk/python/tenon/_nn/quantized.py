# SPDX-License-Identifier: MIT
"""Layers whose weights are codes of a few bits with a scale (and a bias) for each group, and what makes them of others. Codes are
not trained: layers are frozen, and what stands beside them, an adapter, may learn."""

import tenon as tn

from .layers import Embedding, Linear
from .module import Module


class _Quantized(Module):
    def __init__(self, weight, group_size=None, bits=None, mode="affine"):
        given = {"bits": bits, "group": group_size}
        self.form = {"mode": mode, **{key: value for key, value in given.items() if value is not None}}
        self.dims = weight.shape[1]
        parts = tn.quant.groupwise_quantize(weight, **self.form)
        for name, part in zip(("weight", "scales", "biases"), parts):
            self.buffer(name, part)

    def _product(self, x):
        return tn.quant.groupwise_matmul(x, self.weight, self.scales, vars(self).get("biases"), **self.form)

    def _describe(self):
        return f"{self.dims}, {self.weight.shape[0]}, " + ", ".join(f"{key}={value}" for key, value in self.form.items())


class QuantizedLinear(_Quantized):
    """x @ weight.T + bias with a quantised weight; from_linear() makes one of a Linear."""

    def __init__(self, input_dims, output_dims, bias=True, group_size=None, bits=None, mode="affine"):
        self._take(Linear(input_dims, output_dims, bias), group_size, bits, mode)

    def _take(self, layer, group_size, bits, mode):
        super().__init__(layer.weight, group_size, bits, mode)
        if "bias" in vars(layer):
            self.bias = layer.bias
            self.freeze()

    @classmethod
    def from_linear(cls, layer, group_size=None, bits=None, mode="affine"):
        made = cls.__new__(cls)
        made._take(layer, group_size, bits, mode)
        return made

    def forward(self, x):
        y = self._product(x)
        return y + self.bias if "bias" in vars(self) else y


class QuantizedEmbedding(_Quantized):
    """Rows of a quantised weight; from_embedding() makes one of an Embedding."""

    def __init__(self, num_embeddings, dims, group_size=None, bits=None, mode="affine"):
        super().__init__(Embedding(num_embeddings, dims).weight, group_size, bits, mode)

    @classmethod
    def from_embedding(cls, layer, group_size=None, bits=None, mode="affine"):
        made = cls.__new__(cls)
        _Quantized.__init__(made, layer.weight, group_size, bits, mode)
        return made

    def forward(self, x):
        own = vars(self)
        parts = [tn.take(own[name], x, 0) for name in ("weight", "scales", "biases") if name in own]
        return tn.quant.groupwise_dequantize(*parts, **self.form)

    def as_linear(self, x):
        """x @ weight.T: scores of all rows."""
        return self._product(x)


_MADE = {Linear: QuantizedLinear.from_linear, Embedding: QuantizedEmbedding.from_embedding}


def quantize(model, group_size=64, bits=4, mode="affine", where=None):
    """Puts quantised layers in the place of a model's Linear and Embedding layers whose rows are whole groups, or of those that
    where(name, layer) chooses. Gives the model."""
    for name, layer in model.named_modules():
        make = _MADE.get(type(layer))
        is_chosen = layer.weight.shape[1] % group_size == 0 if make and where is None else make and where(name, layer)
        if not is_chosen:
            continue
        if not name:
            raise ValueError(f"quantize: the model is a {type(layer).__name__} itself: use {_MADE[type(layer)].__qualname__}")
        *path, key = name.split(".")
        _store_part(_part(model, path), key, make(layer, group_size, bits, mode))
    return model


def _part(container, path):
    """What holds the module of a name: a module, dict or list of them."""
    for key in path:
        container = vars(container)[key] if isinstance(container, Module) else container[_key(container, key)]
    return container


def _key(container, key):
    return int(key) if isinstance(container, (list, tuple)) else next(k for k in container if str(k) == key)


def _store_part(container, key, module):
    if isinstance(container, Module):
        setattr(container, key, module)
    elif isinstance(container, tuple):
        raise TypeError(f"quantize: '{key}' is in a tuple of modules: make it a list, its layers are replaced")
    else:
        container[_key(container, key)] = module

# SPDX-License-Identifier: MIT
"""Recurrent layers with PyTorch's gates, several layers and both directions. Parameters are lists: weight_ih[k] is of
layer k // directions, and with two directions of the reverse one where k is odd."""

import tenon as tn

from . import init
from .module import Module


class _Recurrent(Module):
    OPERATOR, GATES, HAS_CELLS = "rnn", 1, False

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=True, dropout=0.0, bidirectional=False,
                 **more):
        if num_layers < 1:
            raise ValueError(f"{type(self).__name__}: {num_layers} layers, expected at least 1")
        self.hidden_size, self.num_layers, self.batch_first = hidden_size, num_layers, batch_first
        self.out_size = more.pop("proj_size", 0) or hidden_size
        self.directions, self.more, self.has_bias = 1 + bidirectional, more, bias
        self.weight_ih, self.weight_hh = [], []
        if bias:
            self.bias_ih, self.bias_hh = [], []
        for layer in range(num_layers):
            width = input_size if layer == 0 else self.out_size * self.directions
            for _ in range(self.directions):
                self._add(width)
        if dropout:
            from .layers import Dropout

            self.dropout = Dropout(dropout)

    def _add(self, width):
        gates = self.GATES * self.hidden_size
        self.weight_ih.append(init.uniform_of(self.hidden_size, [gates, width]))
        self.weight_hh.append(init.uniform_of(self.hidden_size, [gates, self.out_size]))
        if self.has_bias:
            self.bias_ih.append(init.uniform_of(self.hidden_size, [gates]))
            self.bias_hh.append(init.uniform_of(self.hidden_size, [gates]))

    def _one(self, x, k, state):
        """Direction k of a layer: all positions, then the last state."""
        biases = (self.bias_ih[k], self.bias_hh[k]) if self.has_bias else (None, None)
        return getattr(tn.nn, self.OPERATOR)(x, self.weight_ih[k], self.weight_hh[k], *biases, *state, batch_first=self.batch_first,
                                             reverse=bool(k % self.directions), **self.more)

    def forward(self, x, state=None):
        """All positions' results, and the last state: (layers * directions, N, H), of an LSTM a pair of these."""
        given = [None, None][: 1 + self.HAS_CELLS] if state is None else list(state) if self.HAS_CELLS else [state]
        last = [[] for _ in given]
        for layer in range(self.num_layers):
            outputs = []
            for k in range(layer * self.directions, (layer + 1) * self.directions):
                y, *ends = self._one(x, k, [s if s is None else s[k] for s in given])
                outputs.append(y)
                for kept, end in zip(last, ends):
                    kept.append(end)
            x = outputs[0] if self.directions == 1 else tn.concatenate(outputs, axis=-1)
            if "dropout" in vars(self) and layer + 1 < self.num_layers:
                x = self.dropout(x)
        last = tuple(tn.stack(kept, axis=0) for kept in last)
        return x, last if self.HAS_CELLS else last[0]

    def _describe(self):
        return (f"{self.weight_ih[0].shape[1]}, {self.hidden_size}, num_layers={self.num_layers}, "
                f"bidirectional={self.directions == 2}, batch_first={self.batch_first}")


class RNN(_Recurrent):
    """h = tanh(W x + b + V h + c), or relu: nonlinearity=."""


class GRU(_Recurrent):
    """Gated recurrent units, gates r, z, n."""

    OPERATOR, GATES = "gru", 3


class LSTM(_Recurrent):
    """Long short-term memory, gates i, f, g, o."""

    OPERATOR, GATES, HAS_CELLS = "lstm", 4, True

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=True, dropout=0.0, bidirectional=False,
                 proj_size=0):
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"LSTM: proj_size is {proj_size}, expected 0, none, to {hidden_size - 1}")
        if proj_size:
            self.weight_hr = []
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size=proj_size)

    def _add(self, width):
        super()._add(width)
        if "weight_hr" in vars(self):
            self.weight_hr.append(init.uniform_of(self.hidden_size, [self.out_size, self.hidden_size]))

    def _one(self, x, k, state):
        if "weight_hr" not in vars(self):
            return super()._one(x, k, state)
        biases = (self.bias_ih[k], self.bias_hh[k]) if self.has_bias else (None, None)
        return tn.nn.lstm(x, self.weight_ih[k], self.weight_hh[k], *biases, *state, self.weight_hr[k], batch_first=self.batch_first,
                          reverse=bool(k % self.directions))


class _Cell(_Recurrent):
    """One position of a recurrent layer of one layer and direction."""

    def __init__(self, input_size, hidden_size, bias=True, **more):
        super().__init__(input_size, hidden_size, bias=bias, batch_first=False, **more)

    def forward(self, x, state=None):
        """The state behind x: (N, H), of an LSTM a pair; x: (N, inputs)."""
        given = [None, None][: 1 + self.HAS_CELLS] if state is None else list(state) if self.HAS_CELLS else [state]
        _, *ends = self._one(tn.expand_dims(x, 0), 0, given)
        return tuple(ends) if self.HAS_CELLS else ends[0]

    def _describe(self):
        return f"{self.weight_ih[0].shape[1]}, {self.hidden_size}"


class RNNCell(_Cell):
    """One step of RNN."""


class GRUCell(_Cell):
    """One step of GRU."""

    OPERATOR, GATES = "gru", 3


class LSTMCell(_Cell):
    """One step of LSTM."""

    OPERATOR, GATES, HAS_CELLS = "lstm", 4, True

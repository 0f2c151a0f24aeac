# SPDX-License-Identifier: MIT
"""Layers, losses and first values: what `tenon.nn` has beside the operators of pack nn."""

from . import activations as _activations, init, layers as _layers, losses, windows as _windows
from .attention import (ALiBi, MultiHeadAttention, RoPE, SinusoidalPositionalEncoding, Transformer, TransformerDecoder,
                        TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer)
from .module import Module, Sequential, TrainStep, flat, value_and_grad
from .quantized import QuantizedEmbedding, QuantizedLinear, quantize
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

_NAMES = []
for _part in (_activations, _layers, _windows):
    globals().update((name, getattr(_part, name)) for name in _part.NAMES)
    _NAMES += _part.NAMES
ModuleList = list  # PyTorch's name: modules in a list are found
__all__ = sorted({"ALiBi", "GRU", "GRUCell", "LSTM", "LSTMCell", "Module", "ModuleList", "MultiHeadAttention", "QuantizedEmbedding",
                  "QuantizedLinear", "RNN", "RNNCell", "RoPE", "Sequential", "SinusoidalPositionalEncoding", "TrainStep", "Transformer",
                  "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "flat", "init",
                  "losses", "quantize", "value_and_grad", *_NAMES})

# SPDX-License-Identifier: MIT
"""Layers, losses and first values: what `tenon.nn` has beside the operators of pack nn."""

from . import init, layers as _layers, losses
from .attention import (MultiHeadAttention, RoPE, SinusoidalPositionalEncoding, TransformerDecoder, TransformerDecoderLayer,
                        TransformerEncoder, TransformerEncoderLayer)
from .module import Module, Sequential, TrainStep, flat, value_and_grad
from .recurrent import GRU, LSTM, RNN

globals().update((name, getattr(_layers, name)) for name in _layers.NAMES)
ModuleList = list  # PyTorch's name: modules in a list are found
__all__ = sorted({"GRU", "LSTM", "Module", "ModuleList", "MultiHeadAttention", "RNN", "RoPE", "Sequential", "SinusoidalPositionalEncoding",
                  "TrainStep", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
                  "flat", "init", "losses", "value_and_grad", *_layers.NAMES})

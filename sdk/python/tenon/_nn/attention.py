# SPDX-License-Identifier: MIT
"""Attention, positions, and layers of transformers over N, L, dims."""

import math

import tenon as tn

from .layers import Dropout, LayerNorm, Linear
from .module import Module


class MultiHeadAttention(Module):
    """Scaled dot-product attention of several heads between projections. kv_heads: fewer heads of keys and values, each
    for as many heads of queries."""

    def __init__(self, dims, num_heads, bias=False, kv_heads=None, query_input_dims=None, key_input_dims=None, value_input_dims=None,
                 value_output_dims=None):
        kv_heads = kv_heads or num_heads
        if dims % num_heads or num_heads % kv_heads:
            raise ValueError(f"MultiHeadAttention: {dims} dims, {num_heads} heads, {kv_heads} of keys, expected numbers that divide each other")
        self.num_heads, self.kv_heads = num_heads, kv_heads
        inner = dims // num_heads * kv_heads
        self.query_proj = Linear(query_input_dims or dims, dims, bias=bias)
        self.key_proj = Linear(key_input_dims or dims, inner, bias=bias)
        self.value_proj = Linear(value_input_dims or key_input_dims or dims, inner, bias=bias)
        self.out_proj = Linear(dims, value_output_dims or dims, bias=bias)

    def _heads(self, x, count):
        return tn.permute_dims(tn.reshape(x, [*x.shape[:-1], count, x.shape[-1] // count]), [0, 2, 1, 3])

    def forward(self, queries, keys=None, values=None, mask=None, is_causal=False):
        keys = queries if keys is None else keys
        values = keys if values is None else values
        q = self._heads(self.query_proj(queries), self.num_heads)
        k = self._heads(self.key_proj(keys), self.kv_heads)
        v = self._heads(self.value_proj(values), self.kv_heads)
        y = tn.permute_dims(tn.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal), [0, 2, 1, 3])
        return self.out_proj(tn.reshape(y, [*y.shape[:2], y.shape[2] * y.shape[3]]))

    @staticmethod
    def create_additive_causal_mask(n, dtype=None):
        """What is added to scores: -1e9 beyond the diagonal."""
        return tn.astype(tn.triu(tn.full([n, n], -1e9, dtype=tn.float32), k=1), dtype or tn.float32)


class RoPE(Module):
    """Rotary positions of N, heads, L, dims, from `offset` on; traditional: neighbouring elements turn together."""

    def __init__(self, dims, traditional=False, base=10000.0, scale=1.0):
        self._frequencies = tn.array([scale * base ** (-2 * i / dims) for i in range(dims // 2)])
        self.traditional = traditional

    def forward(self, x, offset=0):
        offset = offset if isinstance(offset, tn.Array) else tn.array(offset)
        return tn.nn.rope(x, self._frequencies, offset, interleaved=self.traditional)


class ALiBi(Module):
    """Scores of attention, (N, heads, L, S), less a slope of each head times the distance of positions; Press et al. (2022)."""

    def forward(self, scores, offset=0, mask=None):
        heads, queries, keys = scores.shape[-3:]
        slopes = tn.array([2.0 ** (-8 * (i + 1) / heads) for i in range(heads)])
        places = tn.arange(offset, offset + queries, dtype=tn.float32)
        distances = tn.abs(tn.expand_dims(places, -1) - tn.arange(0, keys, dtype=tn.float32))
        bias = tn.astype(-tn.reshape(slopes, [heads, 1, 1]) * distances, scores.dtype)
        return scores + (bias if mask is None else bias + mask)


class SinusoidalPositionalEncoding(Module):
    """Sines and cosines of positions, Vaswani et al. (2017)."""

    def __init__(self, dims, min_freq=1e-4, max_freq=1.0):
        half = dims // 2
        self._frequencies = tn.array([max_freq * (min_freq / max_freq) ** (i / max(half - 1, 1)) for i in range(half)])
        self._scale = math.sqrt(2 / dims)

    def forward(self, x):
        angles = tn.expand_dims(tn.astype(x, tn.float32), -1) * self._frequencies
        return tn.concatenate([tn.sin(angles), tn.cos(angles)], axis=-1) * self._scale


class _Feed(Module):
    """Two projections with an activation between, and dropout."""

    def __init__(self, dims, mlp_dims, dropout, activation):
        self.up, self.down = Linear(dims, mlp_dims or 4 * dims), Linear(mlp_dims or 4 * dims, dims)
        self.dropout, self._activation = Dropout(dropout), activation or tn.relu

    def forward(self, x):
        return self.down(self.dropout(self._activation(self.up(x))))


class TransformerEncoderLayer(Module):
    """Attention, then a feed-forward part, each beside x; norms before (norm_first) or behind."""

    def __init__(self, dims, num_heads, mlp_dims=None, dropout=0.0, activation=None, norm_first=True):
        self.attention = MultiHeadAttention(dims, num_heads)
        self.ln1, self.ln2 = LayerNorm(dims), LayerNorm(dims)
        self.feed = _Feed(dims, mlp_dims, dropout, activation)
        self.dropout, self.norm_first = Dropout(dropout), norm_first

    def forward(self, x, mask=None, is_causal=False):
        if self.norm_first:
            x = x + self.dropout(self.attention(self.ln1(x), mask=mask, is_causal=is_causal))
            return x + self.dropout(self.feed(self.ln2(x)))
        x = self.ln1(x + self.dropout(self.attention(x, mask=mask, is_causal=is_causal)))
        return self.ln2(x + self.dropout(self.feed(x)))


class TransformerEncoder(Module):
    """Layers of TransformerEncoderLayer, and a norm."""

    def __init__(self, num_layers, dims, num_heads, mlp_dims=None, dropout=0.0, activation=None, norm_first=True):
        self.layers = [TransformerEncoderLayer(dims, num_heads, mlp_dims, dropout, activation, norm_first) for _ in range(num_layers)]
        self.ln = LayerNorm(dims)

    def forward(self, x, mask=None, is_causal=False):
        for layer in self.layers:
            x = layer(x, mask, is_causal)
        return self.ln(x)


class TransformerDecoderLayer(Module):
    """Attention to x, to a memory, and a feed-forward part, each beside x."""

    def __init__(self, dims, num_heads, mlp_dims=None, dropout=0.0, activation=None, norm_first=True):
        self.self_attention, self.cross_attention = MultiHeadAttention(dims, num_heads), MultiHeadAttention(dims, num_heads)
        self.ln1, self.ln2, self.ln3 = LayerNorm(dims), LayerNorm(dims), LayerNorm(dims)
        self.feed = _Feed(dims, mlp_dims, dropout, activation)
        self.dropout, self.norm_first = Dropout(dropout), norm_first

    def forward(self, x, memory, x_mask=None, memory_mask=None, is_causal=False):
        parts = [
            (self.ln1, lambda y: self.self_attention(y, mask=x_mask, is_causal=is_causal)),
            (self.ln2, lambda y: self.cross_attention(y, memory, mask=memory_mask)),
            (self.ln3, self.feed),
        ]
        for norm, part in parts:
            x = x + self.dropout(part(norm(x))) if self.norm_first else norm(x + self.dropout(part(x)))
        return x


class TransformerDecoder(Module):
    """Layers of TransformerDecoderLayer, and a norm."""

    def __init__(self, num_layers, dims, num_heads, mlp_dims=None, dropout=0.0, activation=None, norm_first=True):
        self.layers = [TransformerDecoderLayer(dims, num_heads, mlp_dims, dropout, activation, norm_first) for _ in range(num_layers)]
        self.ln = LayerNorm(dims)

    def forward(self, x, memory, x_mask=None, memory_mask=None, is_causal=False):
        for layer in self.layers:
            x = layer(x, memory, x_mask, memory_mask, is_causal)
        return self.ln(x)


class Transformer(Module):
    """An encoder of a source, and a decoder of a target that attends to its result; Vaswani et al. (2017)."""

    def __init__(self, dims=512, num_heads=8, num_encoder_layers=6, num_decoder_layers=6, mlp_dims=None, dropout=0.0, activation=None,
                 norm_first=True):
        self.encoder = TransformerEncoder(num_encoder_layers, dims, num_heads, mlp_dims, dropout, activation, norm_first)
        self.decoder = TransformerDecoder(num_decoder_layers, dims, num_heads, mlp_dims, dropout, activation, norm_first)

    def forward(self, source, target, source_mask=None, target_mask=None, memory_mask=None):
        return self.decoder(target, self.encoder(source, source_mask), target_mask, memory_mask)

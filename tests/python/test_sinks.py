# SPDX-License-Identifier: MIT
"""Attention with sinks beside the formula and its derivatives in NumPy: a column more of the softmax."""

import numpy as np
import pytest

import tenon as tn

# Batch, heads, groups of heads, queries, keys, depth, width; None: without these axes.
SHAPES = [(2, 4, 2, 5, 7, 4, 3), (1, 2, 2, 70, 70, 16, 16), (None, 3, 1, 1, 300, 8, 8), (None, None, None, 6, 9, 4, 4),
          (1, 2, 1, 40, 600, 32, 16), (2, 2, 2, 3, 1, 2, 2)]
OPTIONS = [{}, {"is_causal": True}, {"window": 3}, {"soft_cap": 1.5, "scale": 0.7}, {"lengths": True},
           {"lengths": True, "is_causal": True}, {"mask": "bool"}, {"mask": "float", "is_causal": True}, {"mask": "heads"},
           {"lengths": True, "window": 2, "is_causal": True}]


def operands(shape, options, dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    batch, heads, groups, queries, keys, depth, width = shape
    front = tuple(n for n in (batch,) if n)
    axes = lambda n: front + (n,) if n else front
    q, k, v = (random.standard_normal(axes(h) + tail) for h, tail in
               ((heads, (queries, depth)), (groups, (keys, depth)), (groups, (keys, width))))
    sinks = random.standard_normal(heads or 1)
    mask = lengths = None
    if options.get("mask") == "bool":
        mask = random.random((queries, keys)) < 0.6
    elif options.get("mask") == "float":
        mask = random.standard_normal((1, keys))
    elif options.get("mask") == "heads":
        mask = random.random(((heads,) if heads else ()) + (queries, 1)) < 0.7
    if options.get("lengths"):
        lengths = random.integers(0, keys + 1, (batch,) if batch else ())
    return [a.astype(dtype).astype(np.float64) for a in (q, k, v, sinks)], mask, lengths


def formula(values, mask, lengths, gradient=None, scale=0, soft_cap=0, is_causal=False, window=0, **_):
    """The output, or with its gradient those of q, k, v and the sinks."""
    q, k, v, sinks = values
    queries, keys = q.shape[-2], k.shape[-2]
    rank = q.ndim
    if rank == 2:
        q, k, v = q[None], k[None], v[None]
    each = q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, each, -3), np.repeat(v, each, -3)
    factor = scale or 1 / np.sqrt(q.shape[-1])
    raw = s = q @ np.swapaxes(k, -1, -2) * factor
    if soft_cap:
        s = soft_cap * np.tanh(s / soft_cap)
    capped = s
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    n = keys if lengths is None else np.reshape(lengths, np.shape(lengths) + (1,) * (3 if np.ndim(lengths) else 0))
    key, at = np.arange(keys), np.arange(queries)[:, None] + (0 if lengths is None else n - queries)
    sees = key < n
    sees = sees & (key <= at) if is_causal else sees
    sees = sees & (at - key < window) if window else sees
    s = np.where(np.broadcast_to(sees, s.shape), s, -np.inf)
    column = np.broadcast_to(sinks[:, None, None], s.shape[:-1] + (1,))
    every = np.concatenate([s, column], -1)
    p = np.exp(every - every.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    out = p[..., :-1] @ v
    if gradient is None:
        return out[0] if rank == 2 else out
    d = np.sum(out * gradient, -1, keepdims=True)
    ds = p[..., :-1] * (gradient @ np.swapaxes(v, -1, -2) - d) * factor
    if soft_cap:
        ds = ds * (1 - (capped / soft_cap) ** 2)
    assert raw.shape == ds.shape
    grouped = lambda x: x.reshape(x.shape[:-3] + (x.shape[-3] // each, each) + x.shape[-2:]).sum(-3)
    dsinks = -(p[..., -1:] * d)[..., 0].sum(-1)
    results = [ds @ k, grouped(np.swapaxes(ds, -1, -2) @ q), grouped(np.swapaxes(p[..., :-1], -1, -2) @ gradient),
               dsinks.sum(tuple(range(dsinks.ndim - 1)))]
    return [r[0] if rank == 2 and i < 3 else r for i, r in enumerate(results)]


def attention(values, mask, lengths, dtype, attrs):
    extra = [None if mask is None else tn.array(mask if mask.dtype == bool else mask.astype(dtype)),
             None if lengths is None else tn.array(np.asarray(lengths))]
    attrs = {name: value for name, value in attrs.items() if name not in ("mask", "lengths")}
    return lambda *a: tn.nn.attention_with_sinks(*a, *extra, **attrs)


def near(got, want, bound):
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=bound, atol=bound * max(1, np.abs(want).max()))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients(shape, options):
    for dtype, bound in ((np.float32, 2e-5), (np.float64, 1e-11), (np.float16, 1e-2)):
        if dtype == np.float16 and shape[3] > 10:
            continue
        values, mask, lengths = operands(shape, options, dtype)
        if mask is not None and mask.dtype != bool:
            mask = mask.astype(dtype).astype(np.float64)
        call = attention(values, mask, lengths, dtype, options)
        given = [tn.array(v.astype(dtype)) for v in values]
        want = formula(values, mask, lengths, **{k: v for k, v in options.items() if k not in ("mask", "lengths")})
        near(call(*given), want, bound)
        gradient = np.random.default_rng(5).standard_normal(want.shape).astype(dtype)
        got = tn.grad(lambda *a: tn.sum(tn.astype(call(*a), tn.float64) * tn.array(gradient.astype(np.float64))),
                      argnums=(0, 1, 2, 3))(*given)
        slopes = formula(values, mask, lengths, gradient.astype(np.float64),
                         **{k: v for k, v in options.items() if k not in ("mask", "lengths")})
        for a, b in zip(got, slopes):
            near(a, b, bound * (4 if dtype == np.float16 else 1))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_batches_tangents_and_masks(options):
    values, mask, lengths = operands(SHAPES[0], options)
    call = attention(values, mask, lengths, np.float64, options)
    given = [tn.array(v) for v in values]
    random = np.random.default_rng(7)
    many = np.stack([random.standard_normal(values[3].shape) for _ in range(3)])
    every = np.asarray(tn.vmap(lambda s: call(*given[:3], s))(tn.array(many)))
    for n in range(3):
        near(every[n], np.asarray(call(*given[:3], tn.array(many[n]))), 1e-12)
    # A tangent beside the gradients.
    tangents = [random.standard_normal(v.shape) for v in values]
    weights = tn.array(random.standard_normal(np.asarray(call(*given)).shape))
    along = tn.jvp(lambda *a: tn.sum(call(*a) * weights), tuple(given), tuple(tn.array(t) for t in tangents))[1].item()
    gradients = tn.grad(lambda *a: tn.sum(call(*a) * weights), argnums=(0, 1, 2, 3))(*given)
    assert abs(along - sum((np.asarray(g) * t).sum() for g, t in zip(gradients, tangents))) < 1e-10 * max(1, abs(along))


def test_far_sinks():
    q, k, v = (tn.array(np.random.default_rng(n).standard_normal((2, 3, 4)).astype(np.float32)) for n in range(3))
    plain = np.asarray(tn.nn.scaled_dot_product_attention(q, k, v))
    results = np.asarray(tn.nn.attention_with_sinks(q, k, v, tn.array(np.array([-np.inf, 1e30], np.float32))))
    np.testing.assert_allclose(results[0], plain[0], rtol=1e-6)
    assert (results[1] == 0).all()
    assert np.isnan(np.asarray(tn.nn.attention_with_sinks(q, k, v, tn.array(np.array([np.nan, 0], np.float32))))[0]).all()


def test_gradient_of_an_added_mask():
    values, _, _ = operands(SHAPES[0], {})
    given, mask = [tn.array(v) for v in values], np.random.default_rng(4).standard_normal((5, 7))
    loss = lambda m: tn.sum(tn.nn.attention_with_sinks(*given, m) ** 2)
    slope, step = np.asarray(tn.grad(loss)(tn.array(mask))), np.random.default_rng(6).standard_normal((5, 7))
    difference = (loss(tn.array(mask + 1e-6 * step)).item() - loss(tn.array(mask - 1e-6 * step)).item()) / 2e-6
    assert abs(difference - (slope * step).sum()) < 1e-7

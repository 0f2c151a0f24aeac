#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes random_values.py: random numbers of JAX, with jax_threefry_partitionable on and off, and of
mlx.core. Run by hand, with both installed: make_random.py > random_values.py"""
import jax
import jax.numpy as jnp
import mlx.core as mx
import numpy as np

KEYS = ([0, 7], [0, 0], [4294967295, 3735928559])
COUNTERS, HALVES = {}, {'layout': 'halves'}
cases = []


def add(name, key, result, inputs=(), **attrs):
    """`inputs`: lists of f32 behind the key."""
    result = np.asarray(result)
    values = result.tolist() if result.dtype.kind in 'iub' else [float(x) for x in result.ravel()]
    cases.append((name, key, [np.asarray(x, 'f4').tolist() for x in inputs], attrs, str(result.dtype), values))


def jax_numbers(key, k, layout):
    r = jax.random
    dtypes = {'uint8': 'u8', 'uint16': 'u16', 'uint32': 'u32', 'uint64': 'u64'}
    for n in (1, 2, 5, 8):
        add('bits', key, r.bits(k, (n,), 'uint32'), shape=[n], **layout)
    for theirs in ('uint64',) if layout else ('uint8', 'uint16', 'uint64'):
        add('bits', key, r.bits(k, (5,), theirs), shape=[5], dtype=dtypes[theirs], **layout)
    for n in (0, 1, 2, 3):
        add('split', key, np.asarray(r.key_data(r.split(r.wrap_key_data(k), n))).reshape(n, 2), num=n, **layout)
    for theirs, ours in (('int8', 'i8'), ('uint8', 'u8'), ('int16', 'i16')):
        # JAX draws as many bits as the dtype has; these are its numbers of 32 bits.
        add('randint', key, r.randint(k, (6,), -5 if ours[0] == 'i' else 0, 100, 'int32').astype(theirs),
            low=-5 if ours[0] == 'i' else 0, high=100, dtype=ours, shape=[6], **layout)
    for low, high in ((0, 10), (-1000, 1), (7, 8), (-32768, 32768)):
        add('randint', key, r.randint(k, (6,), low, high, 'int32'), low=low, high=high, shape=[6], **layout)
    add('randint', key, r.randint(k, (5,), 0, 65536, 'uint32'), high=65536, dtype='u32', shape=[5], **layout)
    for low, high in ((0, 10), (-4, 2**32 - 8), (2**60, 2**60 + 3)):
        add('randint', key, r.randint(k, (6,), low, high, 'int64'), low=low, high=high, dtype='i64', shape=[6], **layout)
    add('fold_in', key, r.key_data(r.fold_in(r.wrap_key_data(k), 3)), data=3)
    if not layout:
        add('uniform', key, r.uniform(k, (8,), 'float32'), shape=[8])
        add('uniform', key, r.uniform(k, (4,), 'float32', -3, 5), [-3, 5], shape=[4])
        add('uniform', key, r.uniform(k, (5,), 'float16'), shape=[5], dtype='f16')
        add('normal', key, r.normal(k, (8,), 'float32'), shape=[8])
        add('truncated_normal', key, r.truncated_normal(k, -1, 1.5, (6,), 'float32'), [-1, 1.5], shape=[6])
        for name in ('gumbel', 'laplace', 'exponential'):
            add(name, key, getattr(r, name)(k, (6,), 'float32'), shape=[6])
        add('bernoulli', key, r.bernoulli(k, jnp.float32(0.25), (12,)), shape=[12], p=0.25)
        logits = jnp.array([[0.5, -1, 2], [0, 0, 0]], 'float32')
        add('categorical', key, r.categorical(k, logits), [logits])
        add('categorical', key, r.categorical(k, logits, axis=0, shape=(4, 3)), [logits], axis=0, shape=[4, 3])
        add('categorical', key, r.categorical(k, logits, shape=(2, 2), replace=False), [logits], shape=[2, 2],
            replace=False)
        cov = jnp.array([[2, 0.5, 0], [0.5, 1, -0.3], [0, -0.3, 3]], 'float32')
        add('multivariate_normal', key, r.multivariate_normal(k, jnp.array([1, -2, 0.5], 'float32'), cov, (2,),
                                                              'float32'), [[1, -2, 0.5], cov], shape=[2])
        p = jnp.array([0.1, 0, 0.6, 0.3], 'float32')
        add('permutation', key, r.permutation(k, 9), n=9)
        add('choice', key, r.choice(k, 4, (7,), p=p), [p], n=4, shape=[7])
        add('choice', key, r.choice(k, 4, (3,), replace=False, p=p), [p], n=4, shape=[3], replace=False)
    add('uniform', key, r.uniform(k, (5,), 'float64'), shape=[5], dtype='f64', **layout)
    add('normal', key, r.normal(k, (5,), 'float64'), shape=[5], dtype='f64', **layout)


def jax_default_numbers(key):
    """As without jax_enable_x64: choice draws integers of 32 bits."""
    with jax.enable_x64(False):
        add('choice', key, jax.random.choice(jnp.asarray(key, 'uint32'), 6, (2, 3)), n=6, shape=[2, 3])
        add('choice', key, jax.random.choice(jnp.asarray(key, 'uint32'), 6, (4,), replace=False), n=6, shape=[4],
            replace=False)


def mlx_numbers(key):
    r, k = mx.random, mx.array(key, mx.uint32)
    for n in (1, 2, 3):
        add('split', key, r.split(k, n), num=n, **HALVES)
    add('bits', key, np.asarray(r.split(k, 4)).ravel(), shape=[8], **HALVES)
    for n in (1, 2, 5, 8):
        add('uniform', key, r.uniform(shape=(n,), key=k), shape=[n], **HALVES)
        add('normal', key, r.normal(shape=(n,), key=k), shape=[n], **HALVES)
    add('uniform', key, r.uniform(-3, 5, (4,), key=k), [-3, 5], shape=[4], **HALVES)
    add('uniform', key, r.uniform(shape=(5,), dtype=mx.float16, key=k), shape=[5], dtype='f16', **HALVES)
    add('truncated_normal', key, r.truncated_normal(-1, 1.5, (6,), key=k), [-1, 1.5], shape=[6], **HALVES)
    for name in ('gumbel', 'laplace'):
        add(name, key, getattr(r, name)(shape=(6,), key=k), shape=[6], **HALVES)
    add('bernoulli', key, r.bernoulli(0.25, (12,), key=k), shape=[12], p=0.25, **HALVES)
    add('permutation', key, r.permutation(9, key=k).astype(mx.int64), n=9, **HALVES)
    logits = mx.array([[0.5, -1, 2], [0, 0, 0]])
    add('categorical', key, r.categorical(logits, key=k).astype(mx.int64), [logits], **HALVES)
    add('categorical', key, r.categorical(logits, axis=0, num_samples=4, key=k).astype(mx.int64), [logits], axis=0,
        num_samples=4, **HALVES)


jax.config.update('jax_enable_x64', True)
for key in KEYS:
    for on, layout in ((True, COUNTERS), (False, HALVES)):
        with jax.threefry_partitionable(on):
            jax_numbers(key, jnp.asarray(key, 'uint32'), layout)
    jax_default_numbers(key)
    mlx_numbers(key)
print('# SPDX-License-Identifier: MIT')
print('"""Random numbers of JAX %s and MLX %s; printed by make_random.py. A case: the operator, the key,' %
      (jax.__version__, mx.__version__))
print('further inputs, attributes, the dtype of the result and the result."""')
print('CASES = [')
for case in cases:
    print('    %r,' % (case,))
print(']')

# SPDX-License-Identifier: MIT
"""First values of parameters: each function gives a function from a shape to an array. seed() repeats their random numbers."""

import math
import threading

import tenon as tn

_lock = threading.Lock()
_drawn = {"seed": 0, "count": 0}


def seed(value):
    """What follows draws the same numbers as after another seed(value)."""
    with _lock:
        _drawn.update(seed=int(value), count=0)


def next_key():
    """The next key of random numbers: of the seed, and of how many were taken since."""
    with _lock:
        _drawn["count"] += 1
        return tn.random.fold_in(tn.random.key(_drawn["seed"]), _drawn["count"])


def _shape(shape):
    return list(shape.shape if isinstance(shape, tn.Array) else shape)


def constant(value, dtype=None):
    """value, everywhere."""
    return lambda shape: tn.full(_shape(shape), value, dtype=dtype or tn.float32)


def zeros(shape):
    """0, everywhere."""
    return tn.zeros(_shape(shape))


def ones(shape):
    """1, everywhere."""
    return tn.ones(_shape(shape))


def uniform(low=0.0, high=1.0, dtype=None):
    """Uniform numbers of [low, high)."""
    return lambda shape: tn.random.uniform(next_key(), tn.array(low), tn.array(high), shape=_shape(shape), dtype=dtype or tn.float32)


def uniform_of(terms, shape):
    """Numbers of [-b, b) with b = 1 / sqrt(terms): what PyTorch's and MLX's layers begin with."""
    bound = 1 / math.sqrt(terms) if terms else 0.0
    return uniform(-bound, bound)(shape)


def normal(mean=0.0, std=1.0, dtype=None):
    """Numbers of the normal distribution."""
    return lambda shape: tn.random.normal(next_key(), tn.array(mean), tn.array(std), shape=_shape(shape), dtype=dtype or tn.float32)


def truncated_normal(mean=0.0, std=1.0, low=-2.0, high=2.0, dtype=None):
    """Numbers of the normal distribution from low to high."""

    def make(shape):
        bounds = [tn.array((bound - mean) / std, tn.float32) for bound in (low, high)]
        return mean + std * tn.random.truncated_normal(next_key(), *bounds, shape=_shape(shape), dtype=dtype or tn.float32)

    return make


def sparse(sparsity, mean=0.0, std=1.0, dtype=None):
    """Normal numbers, and zeros in their place in a share `sparsity` of each column's rows (Martens, 2010)."""

    def make(shape):
        shape = _shape(shape)
        if len(shape) != 2:
            raise ValueError(f"sparse: got shape {tuple(shape)}, expected a matrix")
        order = tn.argsort(uniform()(shape), axis=0)
        kept = tn.argsort(order, axis=0) >= math.ceil(sparsity * shape[0])  # ranks of random numbers
        return tn.where(kept, normal(mean, std, dtype)(shape), tn.zeros([], dtype=dtype or tn.float32))

    return make


def identity(dtype=None):
    """The identity, of square matrices."""

    def make(shape):
        shape = _shape(shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"identity: got shape {tuple(shape)}, expected a square matrix")
        return tn.eye(shape[0], dtype=dtype or tn.float32)

    return make


def _fans(what, shape):
    """Terms of an output, and of an input's gradient, of a weight (out, window..., in)."""
    if len(shape) < 2:
        raise ValueError(f"{what}: got shape {tuple(shape)}, expected at least 2 axes")
    window = math.prod(shape[1:-1])
    return window * shape[-1], window * shape[0]


def _scaled(what, deviation, draw):
    return lambda shape: draw(deviation(*_fans(what, _shape(shape))))(shape)


def _normal(deviation):
    return normal(0.0, deviation)


def _uniform(deviation):
    return uniform(-math.sqrt(3) * deviation, math.sqrt(3) * deviation)


def glorot_normal(gain=1.0):
    """Glorot and Bengio (2010): deviation gain * sqrt(2 / (fan_in + fan_out))."""
    return _scaled("glorot_normal", lambda i, o: gain * math.sqrt(2 / (i + o)), _normal)


def glorot_uniform(gain=1.0):
    """As glorot_normal, of uniform numbers."""
    return _scaled("glorot_uniform", lambda i, o: gain * math.sqrt(2 / (i + o)), _uniform)


def _he(what, mode, gain, draw):
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{what}: mode is {mode!r}, expected 'fan_in' or 'fan_out'")
    return _scaled(what, lambda i, o: gain / math.sqrt(i if mode == "fan_in" else o), draw)


def he_normal(mode="fan_in", gain=math.sqrt(2)):
    """He et al. (2015): deviation gain / sqrt(fan)."""
    return _he("he_normal", mode, gain, _normal)


def he_uniform(mode="fan_in", gain=math.sqrt(2)):
    """As he_normal, of uniform numbers."""
    return _he("he_uniform", mode, gain, _uniform)


def orthogonal(gain=1.0):
    """Saxe et al. (2013): orthonormal rows or columns."""

    def make(shape):
        shape = _shape(shape)
        if len(shape) < 2:
            raise ValueError(f"orthogonal: got shape {tuple(shape)}, expected at least 2 axes")
        rows, columns = shape[0], math.prod(shape[1:])
        q, r = tn.linalg.qr(normal()([max(rows, columns), min(rows, columns)]))
        q = q * tn.sign(tn.diagonal(r))
        return tn.reshape(gain * (q if rows >= columns else q.T), shape)

    return make

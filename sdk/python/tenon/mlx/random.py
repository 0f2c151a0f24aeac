# SPDX-License-Identifier: MIT
"""mlx.core.random: pack random's numbers in MLX's layout, so that a key gives MLX's numbers."""

import math
import threading
import time


from .. import _core
from .convert import as_array, astype, convert, extents, tenon_dtype
from .devices import when_cleared
from .dtypes import of_name
from .shapes import broadcast_shapes
from .table import base, function, linalg_pack, put, random_pack, wrap

_LAYOUT = "halves"  # MLX's: which words an element gets
_BELOW_ONE = {"float16": 1 - 2.0**-11, "bfloat16": 1 - 2.0**-8, "float32": 1 - 2.0**-24}


class _Key(threading.local):
    """A thread's key, and how many were taken from it."""

    state, taken = None, 0


_key = _Key()


class _RandomState:
    """mx.random.state: in every thread the key of that thread, as a list of one."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        if index not in (0, -1):
            raise IndexError("random state index out of range")
        return thread_key()

    def __iter__(self):
        return iter([thread_key()])


STATE = put("state", _RandomState(), of="random")
put("_RandomState", _RandomState, of="random")


def thread_key():
    """The key of this thread, as an array of mlx."""
    if _key.state is None:
        _key.state = wrap(random_pack.key(seed=time.time_ns() // 1_000_000))
    return _key.state


def set_thread_key(key):
    """Gives this thread another key."""
    _key.state = key


when_cleared(lambda: set_thread_key(None))


def _next(key):
    """A key for one call: the given one, or the next one of this thread."""
    if key is not None:
        return key
    pair = random_pack.split(thread_key()._x, 2, layout=_LAYOUT)
    _key.state = wrap(pair[0])
    _key.taken += 1
    return pair[1]


class traced_keys:
    """Context in which a body is traced: afterwards the thread's key is the one of before, split once for each key that the body
    took. The key that the body made is an array of the trace, and ends with it."""

    def __enter__(self):
        self.before = _key.state, _key.taken

    def __exit__(self, *unused):
        state, taken = self.before
        if _key.taken == taken:
            return
        for _ in range(_key.taken - taken):
            state = wrap(random_pack.split(state._x, 2, layout=_LAYOUT)[0])
        _key.state = state


@function(of="random", raw=True)
def seed(seed):
    """Makes the thread's numbers the same again."""
    set_thread_key(wrap(random_pack.key(seed=int(seed) & (2**64 - 1))))


@function(of="random")
def key(seed):
    """The key of a seed."""
    return random_pack.key(seed=int(seed) & (2**64 - 1))


@function(of="random")
def split(key, num=2):
    """Independent keys of a key."""
    return random_pack.split(key, num, layout=_LAYOUT)


def _shape(shape, what):
    shape = extents(shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"[{what}] Shape {tuple(shape)} has a negative extent.")
    return shape


def _floats(what, dtype, also=()):
    """The dtype of tenon of random floats."""
    dtype = tenon_dtype(dtype) or tenon_dtype(of_name("float32"))
    if dtype.kind != "f" and dtype.name not in also:
        raise ValueError(f"[{what}] Only floating point types are supported, got {dtype.name}.")
    return dtype


def _broadcast(what, shape, *arrays):
    """Raises unless the arrays broadcast to a shape."""
    for x in arrays:
        try:
            fits = list(broadcast_shapes(tuple(shape), x.shape)) == list(shape)
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"[{what}] Cannot generate random values of shape {tuple(shape)} from an array of shape "
                             f"{x.shape}.")


def _uniform(what, key, low, high, shape, dtype):
    """Numbers from low to below high, arrays of tenon."""
    low, high = astype(low, dtype), astype(high, dtype)
    _broadcast(what, shape, low, high)
    if dtype.name not in _BELOW_ONE:
        raise RuntimeError(f"[{what}] Unsupported type {dtype.name}.")
    return random_pack.uniform(key, low, high, shape, dtype.name, layout=_LAYOUT)


@function(of="random")
def uniform(low=0, high=1, shape=(), dtype=None, key=None):
    """Random numbers spread evenly from low to high."""
    key = _next(key)
    dtype = _floats("uniform", dtype)
    return _uniform("uniform", key, convert(low), convert(high), _shape(shape, "uniform"), dtype)


def _signed(what, key, shape):
    """Float32 numbers above -1 and below 1."""
    one = convert(1.0)
    return _uniform(what, key, convert(-_BELOW_ONE["float32"]), one, shape, one.dtype)


def _moved(what, samples, shape, loc, scale):
    """scale * samples + loc, of one dtype."""
    dtype = samples.dtype
    for factor, apply in ((scale, base.multiply), (loc, base.add)):
        if factor is not None:
            factor = astype(as_array(factor), dtype)
            _broadcast(what, shape, factor)
            samples = apply(factor, samples)
    return samples


@function(of="random")
def normal(shape=(), dtype=None, loc=None, scale=None, key=None):
    """Random numbers of the normal distribution."""
    key = _next(key)
    dtype = _floats("normal", dtype, also=("complex64",))
    shape = _shape(shape, "normal")
    if dtype.kind == "c":
        parts = base.erfinv(_signed("normal", key, [*shape, 2]))
        first, second = base.unstack(base.moveaxis(parts, -1, 0))
        return _moved("normal", base.add(astype(first, dtype), base.multiply(convert(1j), astype(second, dtype))),
                      shape, loc, scale)
    samples = astype(base.erfinv(_signed("normal", key, shape)), dtype)
    factor = convert(math.sqrt(2), dtype)
    if scale is not None:
        scale = astype(as_array(scale), dtype)
        _broadcast("normal", shape, scale)
        factor = base.multiply(factor, scale)
    return _moved("normal", base.multiply(factor, samples), shape, loc, None)


@function(of="random")
def multivariate_normal(mean, cov, shape=(), dtype=None, key=None):
    """Random vectors of the normal distribution with a mean and covariances."""
    key = _next(key)
    what = "multivariate_normal"
    dtype = _floats(what, dtype) if dtype is None else tenon_dtype(dtype)
    if dtype.name != "float32":
        raise ValueError(f"[{what}] dtype must be float32.")
    if mean.ndim < 1 or cov.ndim < 2:
        raise ValueError(f"[{what}] mean must have at least one dimension, cov two.")
    if cov.shape[-1] != cov.shape[-2] or mean.shape[-1] != cov.shape[-1]:
        raise ValueError(f"[{what}] mean {mean.shape} and cov {cov.shape} must have compatible shapes.")
    batch = broadcast_shapes(cov.shape[:-2], mean.shape[:-1], tuple(_shape(shape, what)))
    u, s, vt = linalg_pack.svd(astype(cov, dtype), full_matrices=False)
    root = base.matmul(base.multiply(u, base.expand_dims(base.sqrt(s), -2)), vt)
    n = mean.shape[-1]
    samples = base.multiply(convert(math.sqrt(2)), base.erfinv(_signed(what, key, [*batch, n])))
    turned = base.squeeze(base.matmul(base.expand_dims(samples, -2), root), -2)
    return base.add(astype(mean, dtype), turned)


@function(of="random")
def randint(low, high, shape=(), dtype=None, key=None):
    """Random integers from low to below high, by float32 numbers."""
    key = _next(key)
    dtype = tenon_dtype(dtype) or tenon_dtype(of_name("int32"))
    if dtype.kind in "fc":
        raise ValueError("[randint] randint only accepts integer dtypes and bool.")
    low, high = convert(low), convert(high)
    numbers = _uniform("randint", key, low, high, _shape(shape, "randint"), tenon_dtype(of_name("float32")))
    least = astype(low, dtype)
    most = astype(base.subtract(high, convert(1, high.dtype)), dtype)
    return base.maximum(base.minimum(astype(base.floor(numbers), dtype), most), least)


@function(of="random")
def bernoulli(p=0.5, shape=None, key=None):
    """Random bools, true with probability p."""
    key = _next(key)
    p = convert(p)
    if p.dtype.kind != "f":
        raise ValueError("[bernoulli] bernoulli probability `p` must be a float type.")
    shape = list(p.shape) if shape is None else _shape(shape, "bernoulli")
    _broadcast("bernoulli", shape, p)
    return random_pack.bernoulli(key, p, shape, layout=_LAYOUT)


@function(of="random")
def truncated_normal(lower, upper, shape=None, dtype=None, key=None):
    """Random numbers of the normal distribution between two bounds."""
    key = _next(key)
    dtype = _floats("truncated_normal", dtype)
    lower, upper = astype(convert(lower), dtype), astype(convert(upper), dtype)
    if shape is None:
        shape = list(broadcast_shapes(lower.shape, upper.shape))
    root = convert(math.sqrt(2), dtype)
    numbers = _uniform("truncated_normal", key, base.erf(base.divide(lower, root)), base.erf(base.divide(upper, root)),
                       _shape(shape, "truncated_normal"), dtype)
    return base.maximum(base.minimum(upper, base.multiply(root, base.erfinv(numbers))), lower)


def _gumbel(key, shape, dtype):
    return random_pack.gumbel(key, shape=shape, dtype=dtype.name, layout=_LAYOUT)


@function(of="random")
def gumbel(shape=(), dtype=None, key=None):
    """Random numbers of the standard Gumbel distribution."""
    key = _next(key)
    return _gumbel(key, _shape(shape, "gumbel"), _floats("gumbel", dtype))


def _categorical(logits, axis, shape, key):
    n = logits.shape[axis]
    if n > 0 and logits.size == n and shape:
        return _by_sums(base.reshape(logits, [n]), shape, key)
    position = axis + len(shape) - logits.ndim + 1
    noise = _gumbel(key, [*shape[:position], n, *shape[position:]], tenon_dtype(of_name("float32")))
    return base.astype(base.argmax(base.add(*_together(noise, logits)), position), "uint32")


def _together(a, b):
    return (a, b) if a.dtype is b.dtype else (astype(a, a.dtype), astype(b, a.dtype))


def _by_sums(logits, shape, key):
    """Samples of one distribution: the positions of uniform numbers among the running sums of its weights."""
    single = tenon_dtype(of_name("float32"))
    x = astype(logits, single)
    most = base.max(x)
    weights = base.where(base.isinf(most), astype(base.equal(x, most), single), base.exp(base.subtract(x, most)))
    sums = base.subtract(base.cumsum(weights, 0), weights)
    numbers = _uniform("categorical", key, convert(0.0), convert(1.0), shape, single)
    found = base.searchsorted(sums, base.multiply(numbers, base.sum(weights)), side="right")
    return base.astype(base.subtract(found, convert(1, found.dtype)), "uint32")


@function(of="random")
def categorical(logits, axis=-1, shape=None, num_samples=None, key=None):
    """Random indices along an axis, by logits of their probabilities."""
    key = _next(key)
    if shape is not None and num_samples is not None:
        raise ValueError("[categorical] At most one of shape or num_samples can be specified.")
    if not -logits.ndim <= axis < logits.ndim:
        raise ValueError(f"[categorical] Invalid axis {axis} for logits with {logits.ndim} dimensions.")
    axis %= logits.ndim
    if num_samples is not None:
        wide = base.expand_dims(logits, -1)
        left = [n for i, n in enumerate(wide.shape) if i != axis]
        return _categorical(wide, axis, [*left[:-1], num_samples], key)
    left = [n for i, n in enumerate(logits.shape) if i != axis]
    if shape is None:
        return _categorical(logits, axis, left, key)
    shape = _shape(shape, "categorical")
    try:
        fits = list(broadcast_shapes(tuple(shape), tuple(left))) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"[categorical] Requested shape {tuple(shape)} is not broadcast compatible with reduced logits "
                         f"shape {tuple(left)}.")
    return _categorical(logits, axis, shape, key)


@function(of="random")
def laplace(shape=(), dtype=None, loc=0.0, scale=1.0, key=None):
    """Random numbers of the Laplace distribution."""
    key = _next(key)
    dtype = _floats("laplace", dtype)
    shape = _shape(shape, "laplace")
    samples = _signed("laplace", key, shape)
    size = base.log1p(base.multiply(convert(-1.0), base.abs(samples)))
    samples = astype(base.multiply(base.sign(samples), size), dtype)
    return _moved("laplace", samples, shape, None if loc == 0.0 else convert(float(loc), dtype),
                  None if scale == 1.0 else convert(float(scale), dtype))


@function(of="random")
def permutation(x, axis=0, key=None):
    """The numbers below x in random order, or an array with an axis in random order."""
    key = _next(key)
    n = x.shape[axis] if isinstance(x, _core.Array) else int(x)
    order = base.astype(random_pack.permutation(key, n=n, layout=_LAYOUT), "uint32")
    return base.take(x, order, axis) if isinstance(x, _core.Array) else order

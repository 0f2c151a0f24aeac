# SPDX-License-Identifier: MIT
"""The table of mlx.core: `function` puts a function into it. A function is written over arrays and
operators of tenon; the table takes mlx's arrays apart, wraps results, and takes `stream=`.

    @function(also=("concat",))
    def concatenate(arrays, axis=0): ...            # mx.concatenate, mx.concat: arrays of tenon inside
    @function(of="fast")
    def rms_norm(x, weight, eps): ...               # mx.fast.rms_norm
"""

import functools
import os

from .. import _core
from .._core import Array
from .._dtypes import dtypes

NAMES = {}  # of mlx.core
MODULES = {name: {} for name in ("random", "linalg", "fft", "fast", "metal", "cuda", "distributed")}

_STREAM = [None]  # the context manager of a stream or device: devices.py sets it


class Operators:
    """The operators of a pack of tenon by name, the newest revision of each. `make` makes one of its text."""

    def __init__(self, pack, make=_core.operator):
        self.__dict__.update(_pack=pack, _make=make)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        import tenon

        text = tenon._ids().get(self._pack, {}).get(name, f"{self._pack}.{name}/1")
        made = self.__dict__[name] = self._make(text)
        return made


base, nn, quant, fft_pack, linalg_pack, random_pack = map(Operators, ("base", "nn", "quant", "fft", "linalg", "random"))


class array(_core.Held):
    """Filled in by array.py; here so that the table knows the type. The base has `_x`, and lends memory.

    `_part` is (buffer, axis, length) of an array that is the first elements of a buffer along an axis, as a cache
    gives them: the slice is made (`_x`) when something asks for it. What takes a length as data, attention for one,
    asks for part_of() instead, so that a step at another length needs no other plan."""

    __slots__ = ("_part",)

    def __getattr__(self, name):  # also asked for `_x` of an object without a value
        if name == "_part":
            return None
        part = self._part if name == "_x" else None
        if part is None:
            raise AttributeError(f"'array' object has no attribute '{name}'")
        buffer, axis, length = part
        self._x = x = buffer[(slice(None),) * axis + (slice(0, length),)]
        self._part = None
        return x


_new = array.__new__
value_or_error = _core.Held._x.__get__  # `_x`; an AttributeError for a part of a buffer, and for an object without a value


def part_of(a):
    """(buffer, axis, length) of an array that is part of a buffer and no slice of it yet; else None."""
    if type(a) is not array:
        return None
    try:
        value_or_error(a)
    except AttributeError:
        return a._part
    return None  # the slice was made


def wrap_part(part):
    """An array of the first elements of a buffer along an axis."""
    made = _new(array)
    made._part = part
    return made


def _wrap(x):
    """An array of mlx of one of tenon."""
    made = _new(array)
    made._x = x
    return made


def _wrap_checked(x):
    """As _wrap where there may be a GPU: MLX has no operations of float64 there."""
    if x.dtype is _FLOAT64 and _ON_GPU[0]():
        raise ValueError("float64 is not supported on the GPU")
    made = _new(array)
    made._x = x
    return made


def check_inputs(values):
    """Raises where arrays of float64 would be read on a GPU."""
    for x in values:
        if type(x) is Array and x.dtype is _FLOAT64 and _ON_GPU[0]():
            raise ValueError("float64 is not supported on the GPU")


def guarded(apply):
    """A function of two arrays of tenon that checks them where there may be a GPU."""

    def checked(x, y):
        check_inputs((x,))
        return apply(x, y)

    return checked if _MAY_HAVE_GPU else apply


_FLOAT64 = dtypes["float64"]
_ON_GPU = [bool]  # whether this thread's operations are applied on one: devices.py sets it


def is_on_gpu():
    """Whether this thread's operations are applied on a GPU."""
    return _MAY_HAVE_GPU and _ON_GPU[0]()


def on_device(result):
    """Results of an operator that has no kernel on GPUs, on the GPU where one is chosen: they are transferred once, not at each use."""
    if not is_on_gpu():
        return result
    return tuple(map(base.copy, result)) if isinstance(result, (list, tuple)) else base.copy(result)


def _is_of_cpu(name, of):
    """Whether a function is an operator that has kernels on the CPU alone: factorisations and transforms."""
    return of in ("fft", "linalg") and name not in ("norm", "cross", "fftfreq", "rfftfreq", "fftshift", "ifftshift")


_named = [name.strip().partition(":")[0] for name in os.environ.get("TENON_BACKEND", "").split(",")]
_MAY_HAVE_GPU = not set(_named) <= {"cpu-blas", "null"}
wrap = _wrap_checked if _MAY_HAVE_GPU else _wrap


def _refuse_float64():
    if _ON_GPU[0]():
        raise ValueError("float64 is not supported on the GPU")


def _held_operator(text):
    """An operator of arrays of mlx."""
    return _core.held_operator(text, array, _refuse_float64 if _MAY_HAVE_GPU else None)


held_base, held_nn, held_quant = (Operators(pack, _held_operator) for pack in ("base", "nn", "quant"))


def wrapped(value):
    """A result with arrays of mlx in place of tenon's: also in lists and tuples."""
    kind = type(value)
    if kind is Array:
        return wrap(value)
    if kind is tuple or kind is list:
        return kind([wrapped(item) for item in value])
    return value


def unwrapped(value):
    """An argument with arrays of tenon in place of mlx's: also in lists and tuples, and of objects that
    have __mlx_array__()."""
    kind = type(value)
    if kind is array:
        return value._x
    if kind is list or kind is tuple:
        return kind([unwrapped(item) for item in value])
    if kind in _PLAIN:
        return value
    if hasattr(kind, "__mlx_array__"):
        return value.__mlx_array__()._x
    return _core.array(value) if is_of_other_build(value) else value


def is_of_other_build(value):
    """Whether a value is an array of MLX's own build, which operations copy by DLPack."""
    kind = type(value)
    return kind is not array and kind.__name__ == "array" and kind.__module__ == "mlx.core"


def other_build(value):
    """What an error adds where only arrays of this module can stand."""
    return " (an array of MLX's own build: tenon.mlx.array(x) takes it over)" if is_of_other_build(value) else ""


_PLAIN = frozenset((int, float, bool, str, type(None), complex))


def on_stream(stream):
    """A context in which operations are applied on a stream or device."""
    return _STREAM[0](stream)


def put(name, value, of=None, also=()):
    """Puts anything into mlx.core, or into one of its modules."""
    into = NAMES if of is None else MODULES[of]
    for each in (name, *also):
        into[each] = value
    return value


def call_of(body, name, is_of_cpu=False):
    """The function of the table around a body; is_of_cpu: its operator has no kernel on GPUs."""

    @functools.wraps(body)
    def call(*args, stream=None, **named):
        if stream is not None:
            with on_stream(stream):
                return call(*args, **named)
        args = [a._x if (kind := type(a)) is array else a if kind in _PLAIN else unwrapped(a) for a in args]
        for key, value in named.items():
            if type(value) not in _PLAIN:
                named[key] = unwrapped(value)
        if _MAY_HAVE_GPU:
            check_inputs(args)
        try:
            result = body(*args, **named)
        except TypeError as error:
            raise translated(error, name) from None
        if is_of_cpu:
            result = on_device(result)
        return wrap(result) if type(result) is Array else wrapped(result)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "mlx.core"
    return call


class ArgumentError(TypeError):
    """An argument that does not fit a function's signature."""


def translated(error, name):
    """What MLX raises: a TypeError for arguments that do not fit the signature, a ValueError for dtypes that
    an operator does not take."""
    if isinstance(error, ArgumentError) or error.__traceback__.tb_next is None:
        return TypeError(f"{name}(): incompatible function arguments: {error}")
    return ValueError(f"[{name}] {error}")


def function(body=None, *, of=None, also=(), name=None, raw=False):
    """Puts a function into mlx.core, under its name without a last underscore. `raw`: it is given arrays of
    mlx and `stream` itself."""
    if body is None:
        return lambda given: function(given, of=of, also=also, name=name, raw=raw)
    name = name or body.__name__.rstrip("_")
    if raw:
        body.__module__, body.__name__, body.__qualname__ = "mlx.core", name, name
    put(name, body if raw else call_of(body, name, _MAY_HAVE_GPU and _is_of_cpu(name, of)), of, also)
    return body

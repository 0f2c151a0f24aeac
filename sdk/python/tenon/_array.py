# SPDX-License-Identifier: MIT
"""Methods of Array that are operators, indexing, formatting, pickling."""

from . import _core, _format, _index
from ._core import Array
from ._dtypes import as_dtype
from ._index import op

# Methods of one name with an operator of pack base.
_METHODS = """abs all any argmax argmin argsort astype clip conjugate cos cumprod cumsum diagonal exp flatten log max mean
min prod repeat round sin sort sqrt square squeeze std sum swapaxes take tanh trace var""".split()


def _method(name):
    def method(self, *args, **kwargs):
        return op(name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"As tenon.{name}."
    return method


for _name in _METHODS:
    setattr(Array, _name, _method(_name))


def _ints(values):
    """Extents as one list or as arguments."""
    return list(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else list(values)


def reshape(self, *shape):
    """The elements in another shape; one extent may be -1."""
    return op("reshape")(self, _ints(shape))


def transpose(self, *axes):
    """Axes in another order; none given: reversed."""
    return op("transpose")(self, _ints(axes) if axes else None)


def astype(self, dtype, copy=True):
    """The elements converted."""
    dtype = as_dtype(dtype)
    return self if dtype is self.dtype and not copy else op("astype")(self, dtype)


def __setitem__(self, index, value):
    self._replace(_index.update(self, index, value))


def __iter__(self):
    if self.ndim == 0:
        raise TypeError("iteration over an array without axes")
    return iter(op("unstack")(self)) if self.shape[0] else iter(())


def __contains__(self, value):
    return bool(op("any")(self == value))


def __array__(self, dtype=None, copy=None):
    import numpy

    if self.dtype.name == "bfloat16" or self.dtype.name.startswith("float8"):
        _core.eval(self)  # rounded to its dtype, which one program with the conversion would not do
        result = numpy.asarray(op("astype")(self, "float32"))
    else:
        result = numpy.asarray(memoryview(self))
    return result.astype(dtype) if dtype is not None and result.dtype != dtype else result


def __array_namespace__(self, api_version=None):
    import tenon

    return tenon


def _rebuild(data, shape, dtype):
    flat = _core.array(data)
    return op("reshape")(op("astype" if dtype == "bool" else "view")(flat, dtype), list(shape))


def __reduce__(self):
    is_bool = self.dtype.name == "bool"
    flat = op("astype" if is_bool else "view")(op("flatten")(self), "uint8")
    return _rebuild, (memoryview(flat).tobytes(), self.shape, self.dtype.name)


def __copy__(self):
    return op("copy")(self)


def __format__(self, spec):
    return format(self.item(), spec) if self.ndim == 0 and spec else str(self)


def to_device(self, device, /, *, stream=None):
    """The array itself: an array lies where its last result was computed."""
    if stream is not None:
        raise ValueError("to_device: tenon has no streams")
    if device != "default":
        raise ValueError(f"to_device: got {device!r}, expected \"default\"; a block of `with tenon.device(...)` chooses devices")
    return self


for _name, _value in list(globals().items()):
    if _name in ("reshape", "transpose", "astype", "to_device") or (
        _name in ("__setitem__", "__iter__", "__contains__", "__array__", "__array_namespace__",
                  "__reduce__", "__copy__", "__format__")
    ):
        setattr(Array, _name, _value)

Array.__repr__ = _format.representation
Array.__str__ = _format.text
Array.__deepcopy__ = lambda self, memo: op("copy")(self)
Array.__array_ufunc__ = None  # NumPy's operators leave mixed expressions to ours
Array.at = property(_index.At, doc="x.at[index].set(v), .add(v), ...: x with elements changed, as a new array.")
Array.T = property(lambda self: op("transpose")(self), doc="The axes reversed.")
Array.mT = property(lambda self: op("matrix_transpose")(self), doc="The last two axes swapped.")
Array.real = property(lambda self: op("real")(self), doc="The real parts.")
Array.imag = property(lambda self: op("imag")(self), doc="The imaginary parts.")
Array.itemsize = property(lambda self: self.dtype.itemsize, doc="The bytes of an element.")
Array.device = property(lambda self: "default", doc="Where the array API asks: tenon chooses by TENON_BACKEND.")

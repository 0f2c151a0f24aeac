# SPDX-License-Identifier: MIT
"""mlx.core.array: an object that holds an immutable array of tenon (`_x`) and takes another one on []= and
+=, so that every name of the object sees the change, and a slice that was taken before keeps its values.
The buffer that is let go of is given to the new value when nobody else holds it.

Every method goes through `_x`, which may be filled when it is first asked for (array.__getattr__)."""

import operator

from . import index, printing
from .convert import convert, operands, tenon_dtype
from .dtypes import of_name
from .table import NAMES, array, base, part_of, put, value_or_error, wrap, wrap_part

_DTYPES = {}
put("array", array)
array.__module__ = "mlx.core"
array.__doc__ = "An N-dimensional array: lazy data behind an object that may take another value."


def _method(function, name=None):
    setattr(array, name or function.__name__, function)
    return function


@_method
def __init__(self, val, dtype=None):
    self._x = convert(val, tenon_dtype(dtype))


def _property(name, doc):
    def decorate(get):
        setattr(array, name, property(get, doc=doc))
        return get

    return decorate


@_property("dtype", "The array's Dtype.")
def _(self):
    try:
        return of_name(value_or_error(self).dtype.name)
    except AttributeError:
        return of_name((part_of(self) or (self._x,))[0].dtype.name)


@_property("shape", "The extents, outermost axis first.")
def _(self):
    try:
        return value_or_error(self).shape
    except AttributeError:
        buffer, axis, count = part_of(self) or (self._x, 0, 0)  # the second one raises
        return (*buffer.shape[:axis], count, *buffer.shape[axis + 1:])


for _name, _doc in [("ndim", "The number of axes."), ("size", "The number of elements."), ("nbytes", "The bytes of all elements.")]:
    setattr(array, _name, property(operator.attrgetter(f"_x.{_name}"), doc=_doc))


@_property("itemsize", "The bytes of an element.")
def _(self):
    return self._x.dtype.itemsize


@_property("T", "The axes reversed.")
def _(self):
    return wrap(base.transpose(self._x))


@_property("real", "The real parts.")
def _(self):
    return NAMES["real"](self)


@_property("imag", "The imaginary parts.")
def _(self):
    return NAMES["imag"](self)


@_property("at", "x.at[index].add(v), ...: x with elements changed, as a new array.")
def _(self):
    return index.At(self)


# --- operators of Python's syntax ------------------------------------------------------------------------

_BINARY = {"add": "addition", "sub": "subtraction", "mul": "multiplication", "truediv": "division", "floordiv": "floor division",
           "mod": "modulus", "pow": "power", "and": "bitwise and", "or": "bitwise or", "xor": "bitwise xor", "lshift": "left shift",
           "rshift": "right shift"}
_FUNCTIONS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
              "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
              "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
_NOT_OPERANDS = (str, list, tuple, dict, set)


def _refuse(what, other):
    return ValueError(f"Cannot perform {what} on an mlx.core.array and {type(other).__name__}")


def _is_foreign(other):
    """Whether an operand is neither an array nor a number, nor can be converted to one."""
    return isinstance(other, _NOT_OPERANDS) or not (
        isinstance(other, (array, int, float, complex)) or hasattr(other, "__mlx_array__") or hasattr(other, "__array__") or
        hasattr(other, "__dlpack__"))


def _add_binary(symbol, what, apply):
    """__add__, __radd__, __iadd__. `apply` takes arrays of tenon of one dtype."""

    def forward(self, other):
        x = self._x
        if type(other) is array:
            y = other._x
            if x.dtype is y.dtype:
                return wrap(apply(x, y))
        else:
            if _is_foreign(other):
                if other is None:
                    return NotImplemented
                raise _refuse(what, other)
            y = unwrap_other(other)
        return wrap(apply(*operands(x, y)))

    def backward(self, other):
        if _is_foreign(other):
            if other is None:
                return NotImplemented
            raise _refuse(what, other)
        return wrap(apply(*operands(unwrap_other(other), self._x)))

    def in_place(self, other):
        if _is_foreign(other):
            raise _refuse(f"inplace {what}", other)
        if symbol == "truediv" and self._x.dtype.kind not in "fc":
            raise ValueError("In-place division cannot be performed on a non-floating point array")
        self._x = forward(self, other)._x
        return self

    for name, method in ((f"__{symbol}__", forward), (f"__r{symbol}__", backward), (f"__i{symbol}__", in_place)):
        method.__name__ = name
        setattr(array, name, method)


def unwrap_other(other):
    """An operand for `operands`."""
    return other.__mlx_array__()._x if hasattr(other, "__mlx_array__") else other


def _add_comparison(symbol, apply):
    def method(self, other):
        if type(other) is array:
            x, y = self._x, other._x
            if x.dtype is y.dtype:
                return wrap(apply(x, y))
        else:
            if other is None:
                raise TypeError(f"__{symbol}__(): incompatible function arguments: got None, expected an array or a number")
            if _is_foreign(other):
                if symbol in ("eq", "ne"):
                    return symbol == "ne"
                raise _refuse("comparison", other)
            x, y = self._x, unwrap_other(other)
        return wrap(apply(*operands(x, y)))

    method.__name__ = f"__{symbol}__"
    setattr(array, method.__name__, method)


def add_operators(table):
    """Gives the type its operators: `table` has functions of two arrays of one dtype by MLX's names."""
    for symbol, what in _BINARY.items():
        _add_binary(symbol, what, table[_FUNCTIONS[symbol]])
    for symbol in ("lt", "le", "gt", "ge", "eq", "ne"):
        _add_comparison(symbol, table[_FUNCTIONS[symbol]])
    array.__div__, array.__rdiv__ = array.__truediv__, array.__rtruediv__


array.__hash__ = object.__hash__


@_method
def __matmul__(self, other):
    if not isinstance(other, array):
        raise TypeError(f"__matmul__(): incompatible function arguments: got {type(other).__name__}, expected an array")
    return NAMES["matmul"](self, other)


@_method
def __imatmul__(self, other):
    self._x = (self @ other)._x
    return self


@_method
def __neg__(self):
    return NAMES["negative"](self)


@_method
def __abs__(self):
    return NAMES["abs"](self)


@_method
def __invert__(self):
    if self._x.dtype.kind in "fc":
        raise ValueError("Floating point types not allowed with bitwise inversion.")
    return NAMES["bitwise_invert"](self)


# --- reading -----------------------------------------------------------------------------------------------


@_method
def item(self):
    """The one element as a number of Python."""
    if self._x.size != 1:
        raise ValueError("[convert] Only length-1 arrays can be converted to Python scalars.")
    return self._x.item()


@_method
def tolist(self):
    """Nested lists of numbers."""
    return self._x.tolist()


@_method
def __bool__(self):
    return bool(self.item())


@_method
def __int__(self):
    return int(self.item())


@_method
def __float__(self):
    return float(self.item())


@_method
def __complex__(self):
    return complex(self.item())


@_method
def __len__(self):
    if self._x.ndim == 0:
        raise TypeError("len() 0-dimensional array.")
    return self._x.shape[0]


@_method
def __iter__(self):
    if self._x.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return ArrayIterator(self)


class ArrayIterator:
    """Iterates over the first axis of an array."""

    def __init__(self, given):
        self._x, self._at = given._x, 0

    def __iter__(self):
        return self

    def __next__(self):
        at = self._at
        if at >= self._x.shape[0]:
            raise StopIteration
        self._at = at + 1
        return wrap(self._x[at])


put("ArrayIterator", ArrayIterator)


@_method
def __contains__(self, value):
    return bool(base.any((self == value)._x).item())


@_method
def __repr__(self):
    return printing.text(self._x)


@_method
def __format__(self, spec):
    if self._x.ndim == 0:
        return format(self.item(), spec)
    if spec:
        raise TypeError("unsupported format string passed to mlx.core.array.__format__")
    return str(self)


@_method
def __array__(self, dtype=None, copy=None):
    import numpy

    return numpy.array(memoryview(self), dtype=dtype, copy=copy is not False)


_BRAIN = "bfloat16"  # module struct has no format for it


@_method
def _lent(self):
    """For Held's buffer protocol: the array whose memory is lent, and a format to tell in the place of its own, or None."""
    x = self._x
    return (base.view(x, "uint16"), _BRAIN) if x.dtype.name == _BRAIN else (x, None)


@_method
def __array_namespace__(self, api_version=None):
    from .core import core

    if api_version is not None and api_version not in ("2022.12", "2023.12", "2024.12"):
        raise ValueError(f"array API version {api_version!r} is not supported")
    return core


@_method
def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    return self._x.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


@_method
def __dlpack_device__(self):
    return self._x.__dlpack_device__()


@_method
def __reduce__(self):
    return _unpickle, self._x.__reduce__()


def _unpickle(rebuild, arguments):
    return wrap(rebuild(*arguments))


@_method
def __copy__(self):
    return wrap(self._x)


@_method
def __deepcopy__(self, memo):
    return wrap(self._x)


# --- indexing ------------------------------------------------------------------------------------------------


@_method
def __getitem__(self, where):
    if type(where) is tuple:
        part = index.part(self._x, where)
        if part is not None:
            return wrap_part(part)
    return wrap(index.get(self._x, where))


@_method
def __setitem__(self, where, value):
    self._x = index.changed(self._x, where, value)


# --- methods that are functions --------------------------------------------------------------------------------

_METHODS = """abs all any argmax argmin conj cos cummax cummin cumprod cumsum diag diagonal exp flatten log log10 log1p log2 logcumsumexp
logsumexp max mean min moveaxis prod reciprocal round rsqrt sin split sqrt square squeeze std sum swapaxes var view""".split()


def _add_method(name):
    def method(self, *args, **named):
        return NAMES[name](self, *args, **named)

    method.__name__ = name
    method.__doc__ = f"As mx.{name}."
    setattr(array, name, method)


for _name in _METHODS:
    _add_method(_name)


def _numbers(values):
    return list(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else list(values)


@_method
def astype(self, dtype, stream=None):
    """The elements in another dtype."""
    return NAMES["astype"](self, dtype, stream=stream)


@_method
def reshape(self, *shape, stream=None):
    """The elements in another shape; one extent may be -1."""
    return NAMES["reshape"](self, _numbers(shape), stream=stream)


@_method
def transpose(self, *axes, stream=None):
    """Axes in another order; none given: reversed."""
    return NAMES["transpose"](self, _numbers(axes) if axes else None, stream=stream)

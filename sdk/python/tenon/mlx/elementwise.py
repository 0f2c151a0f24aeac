# SPDX-License-Identifier: MIT
"""Functions of single elements, as a table: what MLX calls them, what dtypes they compute in, the operator."""

import operator

from .. import _core
from .._core import Array
from .._dtypes import dtypes
from .array import add_operators
from .convert import as_array, astype, convert, inexact, operands, tenon_dtype
from .table import array, base, function, guarded, on_stream, put, unwrapped, wrap

# Rows of name=alias and the result's dtype: `float`: integers become float32 first, `same`: the input's, `truth`: bool.
_UNARY = """
exp float | expm1 float | log float | log1p float | log2 float | log10 float | sin float | cos float | tan float | sinh float | cosh float
tanh float | arcsin=asin float | arccos=acos float | arctan=atan float | arcsinh=asinh float | arccosh=acosh float | arctanh=atanh float
sqrt float | rsqrt float | reciprocal float | sigmoid float | erf float | erfinv float | degrees float | radians float
abs same | square same | sign same | floor same | ceil same | trunc same | conjugate=conj same | positive same
isnan truth | isinf truth | isfinite truth | isneginf truth | isposinf truth
"""

_BOOL = dtypes["bool"]
_WHOLE = ("floor", "ceil", "trunc")
_REAL = (*_WHOLE, "expm1", "sigmoid", "erf", "erfinv", "degrees", "radians")


def _rows(text):
    for row in text.replace("\n", "|").split("|"):
        if row.strip():
            names, kind = row.split()
            yield names.split("="), kind


def _unary_body(name, kind):
    apply = None

    def body(a):
        nonlocal apply
        if apply is None:
            apply = getattr(base, name)
        if name in _REAL and type(a) is Array and a.dtype.kind == "c":
            raise ValueError(f"[{name}] Not supported for complex64.")
        if kind == "float":
            return apply(a if type(a) is Array and a.dtype.kind in "fc" else inexact(a))
        a = as_array(a)
        if name in _WHOLE and a.dtype.kind not in "f" or name in ("square", "abs") and a.dtype.kind == "b":
            return a
        return apply(a)

    return body


for (_name, *_also), _kind in _rows(_UNARY):
    _body = _unary_body(_name, _kind)
    _body.__name__ = _name
    function(_body, also=_also)


@function
def negative(a):
    """-a."""
    a = as_array(a)
    if a.dtype.kind == "b":
        raise ValueError("[negative] Not supported for bool, use logical_not instead.")
    return -a


@function
def logical_not(a):
    """Whether elements are 0."""
    return base.logical_not(as_array(a))


@function
def bitwise_invert(a):
    """Every bit of integers turned."""
    a = as_array(a)
    if a.dtype.kind in "fc":
        raise ValueError("[bitwise_invert] Bitwise inversion only defined for integer types.")
    return ~a


@function
def real(a):
    """The real parts."""
    return base.real(a) if a.dtype.kind == "c" else a


@function
def imag(a):
    """The imaginary parts."""
    return base.imag(a) if a.dtype.kind == "c" else base.zeros_like(a)


@function
def round_(a, decimals=0):
    """Elements to so many decimals, halves to even."""
    a = as_array(a)
    if a.dtype.kind in "b" or a.dtype.kind in "iu" and decimals >= 0:
        return a
    if decimals == 0:
        return base.round(a)
    kind = a if a.dtype.kind in "fc" else base.astype(a, "float32")
    scale = 10.0 ** abs(decimals)
    x = base.round(kind * scale) / scale if decimals > 0 else base.round(kind / scale) * scale
    return astype(x, a.dtype)


# --- two operands ------------------------------------------------------------------------------------------


def _int_quotient(x, y):
    """The quotient of integers, rounded towards 0, as in C."""
    if x.dtype.kind == "u":
        return x // y
    quotient = x // y
    rest = x - quotient * y
    return quotient + base.astype((rest != 0) & ((x < 0) != (y < 0)), x.dtype)


def _floor_divide(x, y):
    if x.dtype.kind == "c":
        raise ValueError("[floor_divide] Complex type not supported.")
    if x.dtype.kind == "b":
        return base.astype(_int_quotient(base.astype(x, "int32"), base.astype(y, "int32")), _BOOL)
    return _int_quotient(x, y) if x.dtype.kind in "iu" else x // y


def _remainder(x, y):
    if x.dtype.kind == "c":
        raise ValueError("[remainder] Complex type not supported.")
    return base.astype(base.astype(x, "int32") % base.astype(y, "int32"), _BOOL) if x.dtype.kind == "b" else x % y


def _divide(x, y):
    return x / y if x.dtype.kind in "fc" else base.astype(x, "float32") / base.astype(y, "float32")


def _subtract(x, y):
    return x ^ y if x.dtype.kind == "b" else x - y


def _power(x, y):
    """Integers to a negative power are 0 but for 1 and -1, as C's loop over bits has it."""
    if x.dtype.kind == "b":
        return base.astype(base.power(base.astype(x, "int32"), base.astype(y, "int32")), _BOOL)
    if x.dtype.kind == "i":
        return base.where(y < 0, base.astype(base.zeros_like(x), x.dtype), base.power(x, base.maximum(y, 0)))
    return base.power(x, y)


def _logaddexp(x, y):
    if x.dtype.kind != "c":
        return base.logaddexp(inexact(x), inexact(y))
    is_first = base.real(x) >= base.real(y)
    high, low = base.where(is_first, x, y), base.where(is_first, y, x)
    return high + base.log1p(base.exp(low - high))


def _arctan2(x, y):
    if x.dtype.kind == "c":
        raise ValueError("[arctan2] Not supported for complex64.")
    return base.arctan2(inexact(x), inexact(y))


def _bitwise(name, apply, text):
    def body(x, y):
        if x.dtype.kind in "fc":
            raise ValueError(f"Floating point types not allowed with bitwise {text}.")
        return apply(x, y)

    body.__name__ = name
    return body


def _shift(apply):
    def body(x, y):
        if x.dtype.kind in "fc":
            raise ValueError("Floating point types not allowed with bitwise shift.")
        if x.dtype.kind == "b":
            x, y = base.astype(x, "uint8"), base.astype(y, "uint8")
        return apply(x, y)

    return body


def _extreme(name):
    return lambda x, y: getattr(base, name)(x, y)


def _logical(apply):
    return lambda x, y: apply(x if x.dtype.kind == "b" else x != 0, y if y.dtype.kind == "b" else y != 0)


# Functions of two arrays of one dtype, by MLX's names.
BINARY = {
    "add": operator.add, "subtract": _subtract, "multiply": operator.mul, "divide": _divide, "floor_divide": _floor_divide,
    "remainder": _remainder, "power=pow": _power, "maximum": _extreme("maximum"), "minimum": _extreme("minimum"),
    "logaddexp": _logaddexp, "arctan2=atan2": _arctan2,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge, "logical_and": _logical(operator.and_), "logical_or": _logical(operator.or_),
    "logical_xor": _logical(operator.xor),
    "bitwise_and": _bitwise("bitwise_and", operator.and_, "and"), "bitwise_or": _bitwise("bitwise_or", operator.or_, "or"),
    "bitwise_xor": _bitwise("bitwise_xor", operator.xor, "xor"), "left_shift=bitwise_left_shift": _shift(operator.lshift),
    "right_shift=bitwise_right_shift": _shift(operator.rshift),
}
_BY_NAME = {}


def _add_binary(names, apply):
    name, *also = names.split("=")
    _BY_NAME[name] = apply

    def call(a, b, stream=None):
        if stream is not None:
            with on_stream(stream):
                return call(a, b)
        if type(a) is array and type(b) is array:
            x, y = a._x, b._x
            if x.dtype is y.dtype:
                return wrap(apply(x, y))
        elif a is None or b is None or isinstance(a, (str, list, dict, tuple)) or isinstance(b, (str, list, dict, tuple)):
            raise TypeError(f"{name}(): incompatible function arguments: got {type(a).__name__} and {type(b).__name__}, "
                            "expected arrays or numbers")
        return wrap(apply(*operands(unwrapped(a), unwrapped(b))))

    call.__name__ = call.__qualname__ = name
    call.__module__ = "mlx.core"
    put(name, call, also=also)


for _names, _apply in BINARY.items():
    _add_binary(_names, guarded(_apply))
add_operators(_BY_NAME)


@function
def divmod_(a, b):
    """The quotients, rounded down, and the remainders; neither has derivatives, as in MLX."""
    x, y = operands(a, b)
    if x.dtype.kind == "c":
        raise ValueError("[divmod] Complex type not supported.")
    return [base.stop_gradient(each) for each in (x // y, x % y)]


@function
def where(condition, x, y):
    """x where the condition holds, else y."""
    condition = as_array(condition)
    x, y = operands(x, y)
    return base.where(condition if condition.dtype is _BOOL else condition != 0, x, y)


@function
def clip(a, a_min, a_max):
    """a, with what is below a_min or above a_max replaced by them."""
    if a_min is None and a_max is None:
        raise ValueError("At most one of a_min and a_max may be None")
    if a_min is not None:
        a = base.maximum(*operands(a, a_min))
    return a if a_max is None else base.minimum(*operands(a, a_max))


@function
def nan_to_num(a, nan=0.0, posinf=None, neginf=None):
    """a with numbers in the place of what is none, and of infinities: the greatest and least ones."""
    a = as_array(a)
    if a.dtype.kind not in "fc":
        return a
    return base.nan_to_num(a, nan, *(value for value in (_limit(a, posinf, 1), _limit(a, neginf, -1))))


def _limit(a, given, sign):
    from .dtypes import finfo, of_name

    return sign * finfo(of_name(a.dtype.name)).max if given is None else given


@function
def isclose(a, b, rtol=1e-5, atol=1e-8, *, equal_nan=False):
    """Whether elements differ by no more than atol + rtol * |b|."""
    return base.isclose(*operands(a, b), rtol, atol, equal_nan)


@function
def allclose(a, b, rtol=1e-5, atol=1e-8, *, equal_nan=False):
    """Whether all elements are close."""
    return base.allclose(*operands(a, b), rtol, atol, equal_nan)


@function
def array_equal(a, b, equal_nan=False):
    """Whether arrays have one shape and equal elements."""
    a, b = operands(a, b)
    if a.shape != b.shape:
        return _core.array(False)
    return base.array_equal(a, b, equal_nan)


@function
def astype_(a, dtype):
    """a in another dtype."""
    return astype(as_array(a), tenon_dtype(dtype))


@function
def view(a, dtype):
    """The bytes of a, read as another dtype."""
    a, dtype = as_array(a), tenon_dtype(dtype)
    if a.dtype is dtype:
        return a
    if _BOOL in (a.dtype, dtype):
        return _view_of_bools(a, dtype)
    ratio = dtype.itemsize / a.dtype.itemsize
    if ratio != 1 and a.ndim == 0:
        raise ValueError("[view] Changing the type size of a scalar is not allowed")
    if ratio > 1 and a.shape[-1] % int(ratio):
        raise ValueError("[view] When viewing as a larger dtype, the size in bytes of the last axis must be a multiple of the dtype's size")
    return base.view(a, dtype)


def _view_of_bools(a, dtype):
    if a.dtype is _BOOL:
        return base.view(base.astype(a, "uint8"), dtype)
    return base.view(a, "uint8") != 0


@function
def stop_gradient(a):
    """a, of which derivatives are zero."""
    return base.stop_gradient(a)


def _float_of_bits(x):
    return base.view(x, "float8_e4m3fn")


@function
def from_fp8(x, dtype=None):
    """The numbers of bytes of 8-bit floats (e4m3)."""
    return base.astype(_float_of_bits(x), "bfloat16" if dtype is None else tenon_dtype(dtype))


@function
def to_fp8(x):
    """Floats as bytes of 8-bit floats (e4m3)."""
    limited = base.clip(x, -448.0, 448.0)
    return base.view(base.astype(limited, "float8_e4m3fn"), "uint8")



# SPDX-License-Identifier: MIT
"""MLX's element types: Dtype objects, their categories, what two types become together, finfo and iinfo."""

from .._dtypes import dtypes as _tenon


class DtypeCategory:
    """A set of dtypes, which lies in others: mx.floating in mx.inexact, say."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"DtypeCategory.{self.name}"

    def __reduce__(self):
        return _category, (self.name,)


class Dtype:
    """The type of an array's elements. `tenon` is the same type there."""

    __slots__ = ("name", "category", "number", "tenon")

    def __init__(self, name, category, number, tenon):
        self.name, self.category, self.number, self.tenon = name, category, number, tenon

    @property
    def size(self):
        """Bytes of an element."""
        return self.tenon.itemsize

    def __repr__(self):
        return f"mlx.core.{self.name}"

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return self.number

    def __reduce__(self):
        return _dtype, (self.name,)


# A category and those that it lies in.
_PARENTS = {"complexfloating": "inexact", "floating": "inexact", "inexact": "number", "signedinteger": "integer",
            "unsignedinteger": "integer", "integer": "number", "number": "generic", "generic": None}
categories = {name: DtypeCategory(name) for name in _PARENTS}
for _name, _value in categories.items():
    setattr(DtypeCategory, _name, _value)

_ROWS = """bool:generic uint8:unsignedinteger uint16:unsignedinteger uint32:unsignedinteger uint64:unsignedinteger int8:signedinteger
int16:signedinteger int32:signedinteger int64:signedinteger float16:floating float32:floating float64:floating bfloat16:floating
complex64:complexfloating"""
dtypes = {}
for _number, _row in enumerate(_ROWS.split()):
    _name, _, _category_name = _row.partition(":")
    dtypes[_name] = Dtype(_name, categories[_category_name], _number, _tenon[_name])
bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64, bfloat16, complex64 = dtypes.values()
of_name = dtypes.__getitem__


def _dtype(name):
    return dtypes[name]


def _category(name):
    return categories[name]


def _together(a, b):
    """The dtype of two types of tenon, by JAX's rules."""
    if a is b:
        return a
    first, second = (a, b) if dtypes[a.name].number < dtypes[b.name].number else (b, a)
    if first.kind == "b" or second.name == "complex64":
        return second
    if second.kind == "f":
        if first.kind != "f":
            return second
        wide = {first.name, second.name}
        return _tenon["float64" if "float64" in wide else "float32"]
    if first.kind == second.kind:
        return first if first.itemsize > second.itemsize else second
    # Unsigned beside signed: the signed one of enough bits; none has those of uint64.
    if first.itemsize == 8:
        return _tenon["float32"]
    return _tenon[f"int{8 * max(2 * first.itemsize, second.itemsize)}"]


_RULES = {(a.tenon, b.tenon): _together(a.tenon, b.tenon) for a in dtypes.values() for b in dtypes.values()}


def promote(a, b):
    """The dtype (of tenon) that two dtypes of tenon have together."""
    return a if a is b else _RULES[a, b]


def issubdtype(arg1, arg2):
    """Whether a dtype or category is, or lies in, another."""
    if isinstance(arg2, Dtype):
        return arg1 is arg2
    if not isinstance(arg1, (Dtype, DtypeCategory)) or not isinstance(arg2, DtypeCategory):
        raise TypeError(f"issubdtype: got {arg1!r} and {arg2!r}, expected dtypes or categories")
    name = arg1.category.name if isinstance(arg1, Dtype) else arg1.name
    while name is not None and name != arg2.name:
        name = _PARENTS[name]
    return name is not None


_KINDS = {"bool": "generic", "signed integer": "signedinteger", "unsigned integer": "unsignedinteger", "integral": "integer",
          "real floating": "floating", "complex floating": "complexfloating", "numeric": "number"}


def isdtype(dtype, kind):
    """Whether a dtype is of a kind of the array API ("integral", say), a dtype, or one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, Dtype):
        return dtype is kind
    if kind == "bool":
        return dtype is bool_
    if kind not in _KINDS:
        raise ValueError(f"[isdtype] Unsupported dtype kind '{kind}': expected one of {', '.join(map(repr, _KINDS))}.")
    return issubdtype(dtype, categories[_KINDS[kind]])


_LIMITS = {  # max, eps, smallest normal number, bits
    "float16": (65504.0, 2.0**-10, 2.0**-14, 16), "bfloat16": ((2 - 2.0**-7) * 2.0**127, 2.0**-7, 2.0**-126, 16),
    "float32": ((2 - 2.0**-23) * 2.0**127, 2.0**-23, 2.0**-126, 32),
    "float64": ((2 - 2.0**-52) * 2.0**1023, 2.0**-52, 2.0**-1022, 64),
}


class finfo:
    """The limits of a dtype of floats."""

    def __init__(self, dtype):
        if not isinstance(dtype, Dtype):
            raise TypeError(f"finfo: got {dtype!r}, expected a dtype")
        if dtype is complex64:
            dtype = float32
        if dtype.name not in _LIMITS:
            raise ValueError(f"[finfo] dtype {dtype.name} is not inexact.")
        self.dtype = dtype
        self.max, self.eps, self.smallest_normal, self.bits = _LIMITS[dtype.name]
        self.min = -self.max

    def __repr__(self):
        return f"finfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype.name})"


class iinfo:
    """The limits of a dtype of integers."""

    def __init__(self, dtype):
        if not isinstance(dtype, Dtype):
            raise TypeError(f"iinfo: got {dtype!r}, expected a dtype")
        if dtype.tenon.kind not in "iu":
            raise ValueError(f"[iinfo] dtype {dtype.name} is not an integer.")
        self.dtype, self.bits = dtype, 8 * dtype.size
        is_signed = dtype.tenon.kind == "i"
        self.min = -(2 ** (self.bits - 1)) if is_signed else 0
        self.max = 2 ** (self.bits - is_signed) - 1

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"

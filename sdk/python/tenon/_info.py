# SPDX-License-Identifier: MIT
"""What the array API asks of a namespace: limits of dtypes, defaults, devices."""

from ._dtypes import as_dtype, dtypes


class finfo:
    """Limits of a dtype of floats; of complex numbers those of their parts."""

    # name: bits, digits of the significand after the point, greatest and least exponents of normal numbers
    _ROWS = {"float16": (16, 10, 15, -14), "bfloat16": (16, 7, 127, -126), "float32": (32, 23, 127, -126),
             "float64": (64, 52, 1023, -1022)}

    def __init__(self, kind):
        given = as_dtype(getattr(kind, "dtype", kind))
        name = {"complex64": "float32", "complex128": "float64"}.get(given.name, given.name)
        if name not in self._ROWS:
            raise ValueError(f"finfo: got {given.name}, expected a dtype of floats")
        self.bits, digits, greatest, least = self._ROWS[name]
        self.dtype = dtypes[name]
        self.eps = 2.0**-digits
        self.max = (2 - 2.0**-digits) * 2.0**greatest
        self.min = -self.max
        self.smallest_normal = 2.0**least

    def __repr__(self):
        return f"finfo(dtype={self.dtype.name}, min={self.min}, max={self.max}, eps={self.eps})"


class iinfo:
    """Limits of a dtype of integers."""

    def __init__(self, kind):
        self.dtype = as_dtype(getattr(kind, "dtype", kind))
        if self.dtype.kind not in "iu":
            raise ValueError(f"iinfo: got {self.dtype.name}, expected a dtype of integers")
        self.bits = 8 * self.dtype.itemsize
        is_signed = self.dtype.kind == "i"
        self.max = 2 ** (self.bits - is_signed) - 1
        self.min = -self.max - 1 if is_signed else 0

    def __repr__(self):
        return f"iinfo(dtype={self.dtype.name}, min={self.min}, max={self.max})"


_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
          "complex floating": "c", "numeric": "iufc"}
# The array API's dtypes; those beside them are of no kind of its names.
STANDARD = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
            "complex64", "complex128")


def isdtype(dtype, kind):
    """Whether a dtype is another, or of a kind of the array API's ("integral", "real floating"),
    or of one of a tuple."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return dtype.kind in _KINDS[kind]
    return dtype == kind


class Info:
    """What __array_namespace_info__() gives."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self):
        return "default"

    def devices(self):
        return ["default"]

    def default_dtypes(self, *, device=None):
        return {"real floating": dtypes["float32"], "complex floating": dtypes["complex64"], "integral": dtypes["int64"],
                "indexing": dtypes["int64"]}

    def dtypes(self, *, device=None, kind=None):
        return {name: dtypes[name] for name in STANDARD if kind is None or isdtype(dtypes[name], kind)}

# SPDX-License-Identifier: MIT
"""Element types, with NumPy's names."""

from . import _core


class dtype:
    """An element type: `tenon.float32` and its like. Equal to its names, "float32" and "f32"."""

    __slots__ = ("name", "short", "itemsize", "kind")

    def __init__(self, name, short, itemsize, kind):
        self.name, self.short, self.itemsize, self.kind = name, short, itemsize, kind

    def __repr__(self):
        return f"tenon.{self.name}"

    def __eq__(self, other):
        if isinstance(other, dtype):
            return self is other
        return getattr(other, "name", other) in (self.name, self.short)

    def __hash__(self):
        return hash(self.name)

    def __reduce__(self):
        return (_of_name, (self.name,))


# In the order of the core's numbers, which begin at 1. Kinds are NumPy's letters.
_ROWS = """bool bool 1 b|int8 i8 1 i|int16 i16 2 i|int32 i32 4 i|int64 i64 8 i|uint8 u8 1 u|uint16 u16 2 u
uint32 u32 4 u|uint64 u64 8 u|float16 f16 2 f|bfloat16 bf16 2 f|float32 f32 4 f|float64 f64 8 f
complex64 complex64 8 c|complex128 complex128 16 c|float8_e4m3fn f8_e4m3 1 f|float8_e5m2 f8_e5m2 1 f"""

dtypes = {}
for _row in _ROWS.replace("\n", "|").split("|"):
    _name, _short, _size, _kind = _row.split()
    dtypes[_name] = dtype(_name, _short, int(_size), _kind)
_core.set_dtypes([None, *dtypes.values()])


def _of_name(name):
    return dtypes[name]


def as_dtype(kind):
    """The dtype of a dtype, a name, a type of Python or a dtype of NumPy."""
    if isinstance(kind, dtype):
        return kind
    return _core.array(0, kind).dtype

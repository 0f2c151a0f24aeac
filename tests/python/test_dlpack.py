# SPDX-License-Identifier: MIT
"""DLPack both ways: tensors that a library of our own makes, which counts how often each is deleted; NumPy; PyTorch."""

import ctypes
import gc

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tenon as tn

INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL, E4M3, E5M2 = 0, 1, 2, 4, 5, 6, 10, 12
# Code and bits, Tenon's dtype, NumPy's of elements of that size.
KINDS = [(BOOL, 8, "bool", "u1"), (INT, 8, "int8", "i1"), (INT, 16, "int16", "i2"), (INT, 32, "int32", "i4"), (INT, 64, "int64", "i8"),
         (UINT, 8, "uint8", "u1"), (UINT, 16, "uint16", "u2"), (UINT, 32, "uint32", "u4"), (UINT, 64, "uint64", "u8"),
         (FLOAT, 16, "float16", "f2"), (BFLOAT, 16, "bfloat16", "u2"), (FLOAT, 32, "float32", "f4"), (FLOAT, 64, "float64", "f8"),
         (COMPLEX, 64, "complex64", "c8"), (COMPLEX, 128, "complex128", "c16"), (E4M3, 8, "float8_e4m3fn", "u1"),
         (E5M2, 8, "float8_e5m2", "u1")]
NUMPYS = [kind for kind in KINDS if kind[0] not in (BFLOAT, E4M3, E5M2)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Plain(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


api = ctypes.pythonapi
api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
kept = []  # what the C side points to, for as long as the process lives


class Library:
    """An array of another library, whose tensors are views of `memory`."""

    def __init__(self, memory, kind, shape, strides, offset, versioned=True, flags=0, wrong=()):
        self.memory, self.kind, self.shape, self.strides, self.offset = memory, kind, shape, strides, offset
        self.versioned, self.flags, self.wrong = versioned, flags, dict(wrong)
        self.deleted, self.made, self.asked = 0, 0, []

    def capsule(self, versioned):
        self.made += 1
        rows = [(ctypes.c_int64 * max(len(row), 1))(*row) if row is not None else None for row in (self.shape, self.strides)]
        fields = {"data": self.memory.ctypes.data, "device_type": 1, "ndim": len(self.shape), "code": self.kind[0], "bits": self.kind[1],
                  "lanes": 1, "shape": ctypes.addressof(rows[0]), "strides": rows[1] and ctypes.addressof(rows[1]),
                  "byte_offset": self.offset}
        fields.update({name: value for name, value in self.wrong.items() if name != "major"})
        managed = (Versioned if versioned else Plain)(tensor=Tensor(**fields), deleter=DELETER(self.delete))
        if versioned:
            managed.major, managed.flags = self.wrong.get("major", 1), self.flags
        kept.append((managed, rows, self))
        return api.PyCapsule_New(ctypes.addressof(managed), NAMES[versioned], None)

    def delete(self, tensor):
        self.deleted += 1

    def __dlpack__(self, **asked):
        self.asked.append(asked)
        if asked and not self.versioned:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        return self.capsule(bool(asked) and self.versioned)

    def __dlpack_device__(self):
        return 1, 0

    def values(self):
        size = self.kind[1] // 8
        if self.strides is None:
            count = int(np.prod(self.shape, dtype=int))
            return self.memory[self.offset:self.offset + count * size].view(self.kind[3]).reshape(self.shape)
        return np.lib.stride_tricks.as_strided(self.memory[self.offset:].view(self.kind[3]), self.shape, [s * size for s in self.strides])


def bits(x, kind):
    """The elements' bits of an Array."""
    return np.asarray(tn.view(x, "uint" + str(kind[1])) if kind[0] in (BFLOAT, E4M3, E5M2) else x)


def same(got, want, kind):
    np.testing.assert_array_equal(got, want.astype(bool) if kind[0] == BOOL else want, strict=True)


@st.composite
def layouts(draw, kinds=KINDS):
    kind = draw(st.sampled_from(kinds))
    size = kind[1] // 8
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    strides = draw(st.one_of(st.none(), st.lists(st.integers(-5, 5), min_size=len(shape), max_size=len(shape))))
    # Which elements are reached, from the lowest to the highest.
    row = strides or [0] * len(shape)
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, row) if n > 0)
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, row) if n > 0)
    first = draw(st.integers(0, 3)) - low
    count = first + (high if strides else int(np.prod(shape, dtype=int))) + 1
    memory = np.zeros(count * size + 64, "u1")
    memory = memory[-memory.ctypes.data % 64:][:count * size]
    elements = np.arange(1, count + 1)
    memory.view(kind[3])[:] = elements % 2 if kind[0] == BOOL else elements % 50
    return memory, kind, shape, strides, first * size


def deleted(library):
    """How many tensors were deleted once the last Array is gone: what waits for a run is waited for."""
    for _ in range(3):
        gc.collect()
        if library.deleted >= library.made:
            break
        tn.eval(tn.zeros([1]) + 1)
    return library.deleted


@given(layouts(), st.booleans(), st.booleans(), st.sampled_from([None, True, False]), st.booleans())
def test_tensors_of_others(layout, versioned, read_only, copy, is_capsule):
    library = Library(*layout, versioned=versioned, flags=int(read_only))
    given_ = library.capsule(versioned) if is_capsule else library
    in_place = not tn.devices()[0]["name"].startswith("vulkan")
    try:
        x = tn.from_dlpack(given_, copy=copy)
    except BufferError:
        assert copy is False and not in_place
    else:
        want = library.values().copy()
        same(bits(x, layout[1]), want, layout[1])
        if copy:
            library.memory[:] = 0
            same(bits(x, layout[1]), want, layout[1])
        if is_capsule:
            with pytest.raises(ValueError, match="taken before"):
                tn.from_dlpack(given_)
        y = tn.equal(x, x)
        del x
        tn.eval(y)
        del y
    assert deleted(library) == library.made == 1


@given(layouts(), st.booleans())
def test_array_and_operators_copy(layout, versioned):
    library = Library(*layout, versioned=versioned)
    want = library.values().copy()
    x = tn.array(library)
    y = tn.stack([tn.asarray(library), x])
    library.memory[:] = 0
    same(bits(x, layout[1]), want, layout[1])
    same(bits(y, layout[1])[0], want, layout[1])
    del x, y
    assert deleted(library) == library.made == 2


WRONG = [
    (ValueError, "device type 2", {"device_type": 2}), (ValueError, "32 bits and 2 lanes", {"lanes": 2}), (ValueError, "12 bits", {"bits": 12}),
    (ValueError, "code 3", {"code": 3}), (ValueError, "9", {"ndim": 9}), (ValueError, "-1", {"ndim": -1}), (ValueError, "data is NULL", {"data": None}),
    (ValueError, "without a shape", {"shape": None}), (ValueError, "DLPack 2.0", {"major": 2}), (ValueError, "multiple of 4", {"byte_offset": 1}),
    (ValueError, "address space", {"byte_offset": 2**64 - 1}),
]


@pytest.mark.parametrize("take", [tn.from_dlpack, tn.array, lambda x: tn.from_dlpack(x, copy=True), lambda x: tn.from_dlpack(x, copy=False)],
                         ids=["from_dlpack", "array", "copy", "no-copy"])
@pytest.mark.parametrize("kind, words, wrong", WRONG, ids=range(len(WRONG)))
def test_wrong_tensors(take, kind, words, wrong):
    library = Library(np.zeros(64, "u1"), KINDS[11], [2, 3], None, 0, wrong=wrong)
    if "byte_offset" in wrong and wrong["byte_offset"] == 1 and take is not tn.from_dlpack:
        take = tn.from_dlpack  # what is copied need not be aligned
    with pytest.raises(kind, match=words):
        take(library)
    assert library.deleted == library.made == 1


def test_negative_extents():
    library = Library(np.zeros(64, "u1"), KINDS[11], [2, -3], None, 0)
    for take in (tn.from_dlpack, tn.array):
        with pytest.raises(ValueError, match="-3"):
            take(library)
    assert library.deleted == library.made == 2


def test_numpy_gives_what_is_read_only():
    a = np.broadcast_to(np.float32(3), (2, 2))
    try:
        x = tn.from_dlpack(a)
    except BufferError:
        assert np.lib.NumpyVersion(np.__version__) < "2.0.0"
    else:
        assert x.tolist() == a.tolist()


def test_what_the_library_raises():
    class Broken(Library):
        def __dlpack__(self, **asked):
            raise KeyError("of the library")

    library = Broken(np.zeros(64, "u1"), KINDS[11], [2], None, 0)
    for take in (tn.from_dlpack, tn.array, lambda x: tn.ones([2]) + x):
        with pytest.raises(KeyError, match="of the library"):
            take(library)


# --- tensors of tenon's -------------------------------------------------------------------


def views(x):
    return [x, x.T, x[::-1], x[:, ::-2], x[1:, :0], x[None, 1], tn.broadcast_to(x[:1], [3, 4]), x + x, x[0, 0]]


@pytest.mark.parametrize("kind", NUMPYS, ids=lambda kind: kind[2])
def test_numpy_takes(kind):
    if kind[0] == BOOL and np.lib.NumpyVersion(np.__version__) < "1.25.0":
        pytest.skip("this NumPy takes no bool by DLPack")
    a = np.arange(12).reshape(3, 4).astype(kind[2])
    for x, want in zip(views(tn.array(a)), [a, a.T, a[::-1], a[:, ::-2], a[1:, :0], a[None, 1], np.broadcast_to(a[:1], (3, 4)), a + a, a[0, 0]]):
        got = np.from_dlpack(x)
        same(got, want, kind)
        assert not got.flags.writeable
        del x
        same(got, want, kind)


def pointer(capsule, versioned):
    managed = ctypes.cast(api.PyCapsule_GetPointer(capsule, NAMES[versioned]), ctypes.POINTER(Versioned if versioned else Plain)).contents
    return managed, managed.tensor.data + managed.tensor.byte_offset


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 3), (2, 0)])
@pytest.mark.parametrize("copy", [None, False, True])
def test_capsules(version, copy):
    x = tn.array([[1.0, 2.0], [3.0, 4.0]]).T
    capsule = x.__dlpack__(max_version=version, dl_device=(1, 0), copy=copy, stream=None)
    versioned = version is not None and version >= (1, 0)
    assert api.PyCapsule_IsValid(capsule, NAMES[versioned])
    managed, first = pointer(capsule, versioned)
    again, other = pointer(x.__dlpack__(max_version=version, copy=copy), versioned)
    assert (managed.tensor.device_type, managed.tensor.ndim, managed.tensor.code, managed.tensor.bits) == (1, 2, FLOAT, 32)
    if versioned:
        assert managed.flags == (2 if copy else 1)  # a copy may be written to, the array's memory may not
    assert (first == other) == (not copy)
    if copy:
        ctypes.memset(first, 0, 16)
    assert x.tolist() == [[1, 3], [2, 4]]
    y = tn.from_dlpack(capsule)
    del x
    assert y.tolist() == ([[0, 0], [0, 0]] if copy else [[1, 3], [2, 4]])
    assert y.__dlpack_device__() == (1, 0)


def test_capsules_that_nobody_takes():
    before = tn.memory()
    for _ in range(50):
        x = tn.ones([1000]) * 2
        x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), x.__dlpack__(max_version=(1, 0), copy=True)
        del x
    gc.collect()
    assert all(tn.memory()[name] <= before[name] + 100000 for name in before if "used" in name or "live" in name)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
                                   "complex128", "float8_e4m3fn", "float8_e5m2"])
def test_pytorch(dtype):
    torch = pytest.importorskip("torch")
    t = torch.arange(12).reshape(3, 4).to(getattr(torch, dtype))
    kind = next(kind for kind in KINDS if kind[2] == dtype)

    def bits_of(t):
        return t.contiguous().view(getattr(torch, "uint" + str(kind[1]))).numpy() if kind[0] in (BFLOAT, E4M3, E5M2) else t.numpy()

    for view in (t, t.T, t[1:, ::2], t[:0], t[:1].expand(3, 4)):
        x = tn.from_dlpack(view)
        assert x.dtype == getattr(tn, dtype)
        np.testing.assert_array_equal(bits(x, kind), bits_of(view))
        np.testing.assert_array_equal(bits_of(torch.from_dlpack(x)), bits_of(view))
    x, want = tn.stack([tn.asarray(t), tn.array(t)]), bits_of(t.clone())
    t.zero_()
    np.testing.assert_array_equal(bits(x, kind), np.stack([want, want]))

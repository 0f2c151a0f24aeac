#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NumPy, and PyTorch where it is installed, see an exported array's memory; arrays of theirs
are used in place, and let go when the scope is closed. Also on Vulkan, where the host sees what
is the device's (TENON_BACKEND).

    dlpack.py LIBTENON
"""

import ctypes
import os
import sys

try:
    import numpy
except ImportError:
    print("1..0 # SKIP NumPy is not installed")
    sys.exit(0)
try:
    import torch
except ImportError:
    torch = None

CAPSULE, USED = b"dltensor", b"used_dltensor"

os.environ["TENON_LOG"] = "off"
tenon = ctypes.CDLL(sys.argv[1])
python = ctypes.pythonapi
POINTER = ctypes.c_void_p


class AttrList(ctypes.Structure):
    """tn_attr_list: all zero for no attributes."""

    _fields_ = [("items", POINTER), ("count", ctypes.c_uint64),
                ("item_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


for name, result, arguments in [
        ("tn_runtime_open", ctypes.c_int32, [POINTER, POINTER]),
        ("tn_runtime_close", ctypes.c_int32, [POINTER]),
        ("tn_scope_open", POINTER, [POINTER]),
        ("tn_scope_close", None, [POINTER]),
        ("tn_scope_error", ctypes.c_char_p, [POINTER]),
        ("tn_last_error", ctypes.c_char_p, []),
        ("tn_array_export", POINTER, [POINTER, POINTER]),
        ("tn_array_import", POINTER, [POINTER, POINTER]),
        ("tn_data", POINTER, [POINTER, POINTER]),
        ("tn_op", POINTER, [POINTER, ctypes.c_char_p, POINTER, ctypes.c_uint64, AttrList]),
]:
    function = getattr(tenon, name)
    function.restype, function.argtypes = result, arguments
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [POINTER, ctypes.c_char_p, POINTER]
python.PyCapsule_GetPointer.restype = POINTER
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Exported:
    """What from_dlpack asks for."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None, **_):
        return python.PyCapsule_New(self.tensor, CAPSULE, None)

    def __dlpack_device__(self):
        return (1, 0)


def take(array):
    """The DLManagedTensor of another library's array, which is ours from now on."""
    capsule = array.__dlpack__()
    tensor = python.PyCapsule_GetPointer(capsule, CAPSULE)
    python.PyCapsule_SetName(capsule, USED)
    return tensor


class Session:
    def __enter__(self):
        self.runtime = POINTER()
        status = tenon.tn_runtime_open(None, ctypes.byref(self.runtime))
        assert status == 0, tenon.tn_last_error()
        self.scope = tenon.tn_scope_open(self.runtime)
        return self

    def __exit__(self, *_):
        tenon.tn_scope_close(self.scope)
        status = tenon.tn_runtime_close(self.runtime)
        assert status == 0, tenon.tn_last_error()

    def need(self, pointer):
        assert pointer, tenon.tn_scope_error(self.scope).decode()
        return pointer

    def take(self, array):
        return self.need(tenon.tn_array_import(self.scope, take(array)))

    def twice(self, x):
        inputs = (POINTER * 2)(x, x)
        return self.need(tenon.tn_op(self.scope, b"base.add", inputs, 2, AttrList()))


def numpy_sees_the_memory_of_an_exported_array():
    with Session() as s:
        source = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
        y = s.twice(s.take(source))
        there = numpy.from_dlpack(Exported(s.need(tenon.tn_array_export(s.scope, y))))
        assert there.dtype == numpy.float32 and there.shape == (3, 4)
        assert there.ctypes.data == tenon.tn_data(s.scope, y)
        assert (there == 2 * source).all()
        tenon.tn_scope_close(s.scope)
        s.scope = None
        assert (there == 2 * source).all()  # outlives the scope
        assert tenon.tn_runtime_close(s.runtime) != 0
        assert b"1 exported array" in tenon.tn_last_error()
        del there


def an_array_of_numpys_is_used_in_place_and_let_go():
    source = numpy.arange(2400, dtype=numpy.float64).reshape(40, 60)
    before = sys.getrefcount(source)
    with Session() as s:
        x = s.take(source)
        assert tenon.tn_data(s.scope, x) == source.ctypes.data
        assert sys.getrefcount(source) > before
    assert sys.getrefcount(source) == before


def strided_views_travel_both_ways():
    source = numpy.arange(2400, dtype=numpy.int64).reshape(40, 60)[::2, ::-1]
    with Session() as s:
        x = s.take(source)
        there = numpy.from_dlpack(Exported(s.need(tenon.tn_array_export(s.scope, x))))
        assert (there == source).all() and there.strides == source.strides
        assert there.ctypes.data == source.ctypes.data
        assert (numpy.from_dlpack(Exported(s.need(
            tenon.tn_array_export(s.scope, s.twice(x))))) == 2 * source).all()
        del there


def every_dtype_of_numpys_comes_back():
    with Session() as s:
        for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8",
                     "c16"):
            source = numpy.arange(7).astype(name)
            if name[0] == "c":
                source = (source * (1 - 2j)).astype(name)
            there = numpy.from_dlpack(Exported(s.need(
                tenon.tn_array_export(s.scope, s.take(source)))))
            assert there.dtype == source.dtype and (there == source).all(), name
            del there


def pytorch_sees_the_memory_of_an_exported_array():
    with Session() as s:
        source = torch.arange(12, dtype=torch.float32).reshape(3, 4)
        y = s.twice(s.take(source))
        there = torch.from_dlpack(Exported(s.need(tenon.tn_array_export(s.scope, y))))
        assert there.data_ptr() == tenon.tn_data(s.scope, y)
        assert bool((there == 2 * source).all())
        del there


def main():
    tests = [numpy_sees_the_memory_of_an_exported_array,
             an_array_of_numpys_is_used_in_place_and_let_go,
             strided_views_travel_both_ways,
             every_dtype_of_numpys_comes_back,
             pytorch_sees_the_memory_of_an_exported_array]
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        if "pytorch" in test.__name__ and not torch:
            print(f"ok {number} - {test.__name__} # SKIP PyTorch is not installed")
            continue
        try:
            test()
            print(f"ok {number} - {test.__name__}", flush=True)
        except AssertionError as wrong:
            line = wrong.__traceback__
            while line.tb_next:
                line = line.tb_next
            print(f"not ok {number} - {test.__name__}\n# line {line.tb_lineno}: {wrong}",
                  flush=True)


if __name__ == "__main__":
    main()

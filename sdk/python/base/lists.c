// SPDX-License-Identifier: MIT
// Elements of arrays as numbers of Python, and nested lists of them.
#include "base.h"

#include <string.h>

PyObject *element_of(const char *at, DLDataType type)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32[2];
        double f64[2];
    } v;
    memcpy(&v, at, (size_t)type.bits / 8);
    switch (type.code) {
    case kDLBool:
        return PyBool_FromLong(v.u8);
    case kDLInt:
        return PyLong_FromLongLong(type.bits == 8    ? v.i8
                                   : type.bits == 16 ? v.i16
                                   : type.bits == 32 ? v.i32
                                                     : v.i64);
    case kDLUInt:
        return PyLong_FromUnsignedLongLong(type.bits == 8    ? v.u8
                                           : type.bits == 16 ? v.u16
                                           : type.bits == 32 ? v.u32
                                                             : v.u64);
    case kDLComplex:
        return type.bits == 64 ? PyComplex_FromDoubles((double)v.f32[0], (double)v.f32[1])
                               : PyComplex_FromDoubles(v.f64[0], v.f64[1]);
    default:
        return PyFloat_FromDouble(type.bits == 32 ? (double)v.f32[0] : v.f64[0]);
    }
}

PyObject *lists_of(const DLTensor *t, int axis, const char *at)
{
    if (axis == t->ndim)
        return element_of(at, t->dtype);
    int64_t stride = t->dtype.bits / 8;
    if (t->strides)
        stride *= t->strides[axis];
    else
        for (int i = axis + 1; i < t->ndim; i++)
            stride *= t->shape[i];
    PyObject *list = PyList_New((Py_ssize_t)t->shape[axis]);
    for (int64_t i = 0; list && i < t->shape[axis]; i++) {
        PyObject *item = lists_of(t, axis + 1, at + i * stride);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// SPDX-License-Identifier: MIT
// Python's objects to arrays: numbers, nested lists, buffers, DLPack tensors; dtypes by
// name.
#include "core.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/dlpack.h>

// --- dtypes ---

static PyObject *dtype_objects; // a list, by number

PyObject *set_dtypes(PyObject *module, PyObject *list)
{
    PY_GUARD;
    (void)module;
    Py_XDECREF(dtype_objects);
    dtype_objects = Py_NewRef(list);
    Py_RETURN_NONE;
}

PyObject *dtype_object(tn_dtype dtype)
{
    PyObject *object = dtype_objects ? PyList_GetItem(dtype_objects, dtype) : NULL;
    if (!dtype_objects)
        PyErr_SetString(PyExc_RuntimeError, "tenon: the package is not imported");
    return object ? Py_NewRef(object) : NULL;
}

static bool dtype_of_name(const char *name, tn_dtype *out_dtype)
{
#define NAMES(name_, short_name, type, kind, precision, computed, numpy)                   \
    {short_name, numpy},
    static const char *const names[TN_NUM_DTYPES][2] = {{"", ""}, TN_DTYPES(NAMES)};
#undef NAMES
    for (tn_dtype d = 1; d < TN_NUM_DTYPES; d++)
        if (strcmp(name, names[d][0]) == 0 || strcmp(name, names[d][1]) == 0) {
            *out_dtype = d;
            return true;
        }
    return false;
}

// The dtype of Python's numbers where nothing else says one.
static bool dtype_of_type(PyObject *type, tn_dtype *out_dtype)
{
    const struct {
        PyTypeObject *type;
        tn_dtype dtype;
    } known[] = {{&PyBool_Type, TN_BOOL},
                 {&PyLong_Type, TN_I64},
                 {&PyFloat_Type, TN_F32},
                 {&PyComplex_Type, TN_COMPLEX64}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (type == (PyObject *)known[i].type) {
            *out_dtype = known[i].dtype;
            return true;
        }
    return false;
}

bool dtype_from_object(PyObject *object, tn_dtype *out_dtype)
{
    if (dtype_of_type(object, out_dtype))
        return true;
    PyObject *name = PyUnicode_Check(object) ? Py_NewRef(object) : NULL;
    if (!name && !(name = PyObject_GetAttrString(object, "name"))) {
        PyErr_Clear();
        name = PyObject_GetAttrString(object, "__name__");
    }
    const char *text =
        name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    bool found = text && dtype_of_name(text, out_dtype);
    if (!found) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "%R is no dtype; expected one of tenon's, such as "
                     "tenon.float32, or its name",
                     object);
    }
    Py_XDECREF(name);
    return found;
}

// --- numbers ---

static tn_array *from_python_integer(struct py_building *b, PyObject *object, bool weak)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    if (!overflow)
        return weak ? tn_int(b->scope, value) : tn_i64(b->scope, value);
    unsigned long long large = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_OverflowError, "%R fits neither int64 nor uint64", object);
        return NULL;
    }
    return weak ? tn_uint(b->scope, large)
                : tn_from_data(b->scope, TN_U64, TN_SCALAR, &(uint64_t){large});
}

static tn_array *complex_number(struct py_building *b, PyObject *object, bool weak)
{
    double re = PyComplex_RealAsDouble(object), im = PyComplex_ImagAsDouble(object);
    return weak ? tn_complex(b->scope, re, im)
                : tn_from_data(b->scope, TN_COMPLEX64, TN_SCALAR,
                               &(tn_complex64){(float)re, (float)im});
}

// The array of a number of Python's own types; NULL without an exception for anything else.
static tn_array *from_python_number(struct py_building *b, PyObject *object, bool weak)
{
    if (PyBool_Check(object))
        return tn_bool(b->scope, object == Py_True);
    if (PyLong_CheckExact(object))
        return from_python_integer(b, object, weak);
    if (PyFloat_CheckExact(object)) {
        double value = PyFloat_AsDouble(object);
        return weak ? tn_float(b->scope, value) : tn_f32(b->scope, (float)value);
    }
    if (PyComplex_CheckExact(object))
        return complex_number(b, object, weak);
    return NULL;
}

// --- nested lists ---

// A list of lists of numbers, as it is walked over: first its extents and the kind of its
// numbers, then the numbers.
struct nested {
    tn_shape shape;
    uint64_t count;   // of numbers that were stored
    uint32_t kind;    // TN_KIND_...: the widest of the numbers
    bool is_large;    // an integer is above INT64_MAX
    bool is_negative; // an integer is below 0
    double *reals;    // pairs for complex numbers
    int64_t *whole;   // bits, for integers
};

static bool from_python_is_sequence(PyObject *object)
{
    return PyList_Check(object) || PyTuple_Check(object);
}

static bool from_python_extents_of(struct nested *n, PyObject *object)
{
    PyObject *at = Py_NewRef(object);
    while (from_python_is_sequence(at)) {
        Py_ssize_t size = PySequence_Size(at);
        if (n->shape.rank == TN_MAX_RANK) {
            PyErr_Format(PyExc_ValueError, "lists nested deeper than %d", TN_MAX_RANK);
            Py_DECREF(at);
            return false;
        }
        n->shape.extent[n->shape.rank++] = size;
        if (size == 0)
            break;
        PyObject *first =
            PyList_Check(at) ? item_of_list(at, 0) : Py_NewRef(PyTuple_GetItem(at, 0));
        Py_DECREF(at);
        at = first;
        if (!at)
            return false;
    }
    Py_DECREF(at);
    return true;
}

static uint32_t from_python_kind_of(PyObject *object)
{
    if (PyBool_Check(object))
        return TN_KIND_BOOL;
    if (PyLong_Check(object))
        return TN_KIND_SIGNED;
    if (PyFloat_Check(object))
        return TN_KIND_FLOAT;
    if (PyComplex_Check(object))
        return TN_KIND_COMPLEX;
    return TN_KIND_NONE;
}

// Scalars of other libraries: what has __index__ is an integer, what has __float__ a float.
static PyObject *plain_number(PyObject *object)
{
    if (from_python_kind_of(object) != TN_KIND_NONE)
        return Py_NewRef(object);
    if (array_check(object))
        return array_number(object);
    PyObject *result = NULL;
    if (PyUnicode_Check(object) || PyBytes_Check(object))
        PyErr_SetString(PyExc_TypeError, "");
    else if (PyIndex_Check(object))
        result = PyNumber_Index(object);
    if (!result) {
        PyErr_Clear();
        result = PyUnicode_Check(object) ? NULL : PyNumber_Float(object);
    }
    if (!result) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%R in a list is no number", object);
    }
    return result;
}

static bool from_python_store(struct nested *n, PyObject *object)
{
    uint32_t kind = from_python_kind_of(object);
    n->kind = kind > n->kind ? kind : n->kind;
    if (kind == TN_KIND_COMPLEX) {
        n->reals[2 * n->count] = PyComplex_RealAsDouble(object);
        n->reals[2 * n->count++ + 1] = PyComplex_ImagAsDouble(object);
        return true;
    }
    if (kind == TN_KIND_SIGNED || kind == TN_KIND_BOOL) {
        int overflow;
        n->whole[n->count] = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (overflow) {
            n->whole[n->count] = (int64_t)PyLong_AsUnsignedLongLong(object);
            n->is_large = true;
        } else if (n->whole[n->count] < 0) {
            n->is_negative = true;
        }
        if (!PyErr_Occurred() && n->is_large && n->is_negative)
            PyErr_SetString(PyExc_OverflowError,
                            "integers below 0 beside some above those of int64");
        if (PyErr_Occurred())
            return false;
        // A float may come later in the list: then all numbers are read from `reals`.
        n->reals[2 * n->count] = PyLong_AsDouble(object);
    } else {
        n->reals[2 * n->count] = PyFloat_AsDouble(object);
    }
    n->reals[2 * n->count++ + 1] = 0;
    return true;
}

static bool store_all(struct nested *n, PyObject *object, int32_t axis)
{
    if (axis == n->shape.rank) {
        PyObject *plain = from_python_is_sequence(object) ? NULL : plain_number(object);
        if (from_python_is_sequence(object))
            PyErr_SetString(PyExc_ValueError, "a ragged list: lists stand beside numbers");
        bool stored = plain && from_python_store(n, plain);
        Py_XDECREF(plain);
        return stored;
    }
    Py_ssize_t size = from_python_is_sequence(object) ? PySequence_Size(object) : -1;
    if (size != n->shape.extent[axis]) {
        PyErr_Format(PyExc_ValueError,
                     "a ragged list: on axis %d one part has %lld elements, another %lld",
                     axis, (long long)n->shape.extent[axis],
                     (long long)(size < 0 ? 0 : size));
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        // A reference: converting the item may run Python code that removes it.
        PyObject *item = PySequence_GetItem(object, i);
        bool stored = item && store_all(n, item, axis + 1);
        Py_XDECREF(item);
        if (!stored)
            return false;
    }
    return true;
}

// Whether a dtype of integers holds all numbers; else an OverflowError is set.
static bool from_python_fits(const struct nested *n, tn_dtype dtype)
{
    bool is_signed = tn_dtype_in(dtype, TN_SIGNED_DTYPES);
    int32_t bits = tn_dtype_precision(dtype);
    for (uint64_t i = 0; i < n->count; i++) {
        int64_t value = n->whole[i];
        bool is_outside = n->is_large && value < 0 ? dtype != TN_U64
                          : value >= 0             ? bits < 63 && value >> bits != 0
                          : is_signed ? bits < 63 && value < -((int64_t)1 << bits)
                                      : true;
        if (is_outside) {
            PyErr_Format(PyExc_OverflowError, "a number of %lld is out of the range of %s",
                         (long long)value, tn_dtype_name(dtype));
            return false;
        }
    }
    return true;
}

// As from_python_fits, for floats, which are truncated to integers. Complex numbers fit
// complex dtypes alone.
static bool reals_fit(const struct nested *n, tn_dtype dtype)
{
    if (!dtype || tn_dtype_in(dtype, TN_COMPLEX_DTYPES) || dtype == TN_BOOL)
        return true;
    if (n->kind == TN_KIND_COMPLEX) {
        PyErr_Format(PyExc_TypeError,
                     "complex numbers for an array of %s: take tenon.real of them",
                     tn_dtype_name(dtype));
        return false;
    }
    if (!tn_dtype_in(dtype, TN_INTEGER_DTYPES))
        return true;
    double end = (double)((uint64_t)1 << (tn_dtype_precision(dtype) - 1)) * 2;
    double start = tn_dtype_in(dtype, TN_SIGNED_DTYPES) ? -end : 0;
    for (uint64_t i = 0; i < n->count; i++) {
        double value = n->reals[2 * i];
        if ((value > start - 1 || value >= start) && value < end)
            continue;
        char text[32];
        PyOS_snprintf(text, sizeof(text), "%g", value);
        PyErr_Format(PyExc_OverflowError, "a number of %s is out of the range of %s", text,
                     tn_dtype_name(dtype));
        return false;
    }
    return true;
}

// Converts `whole` in place to an integer dtype that holds the numbers, or to bool. False
// for other dtypes.
static bool cut_whole(struct nested *n, tn_dtype dtype)
{
    char *at = (char *)n->whole;
    if (dtype != TN_BOOL && !tn_dtype_in(dtype, TN_INTEGER_DTYPES))
        return false;
    size_t size = (size_t)tn_dtype_bytes(dtype);
    for (uint64_t i = 0; i < n->count; i++, at += size) {
        int64_t value = dtype == TN_BOOL ? n->whole[i] != 0 : n->whole[i];
        memcpy(at, &value, size); // the low bytes come first
    }
    return true;
}

// Converts `reals`, numbers or pairs, in place to f32.
static void round_reals(struct nested *n, bool are_pairs)
{
    float *to = (float *)(void *)n->reals;
    for (uint64_t i = 0; i < n->count * (are_pairs ? 2 : 1); i++)
        to[i] = (float)n->reals[are_pairs ? i : 2 * i];
}

// The numbers as an array: of the default dtype of their kind, i64 (u64), f32, complex64,
// or, where `dtype` has to be converted to, of the widest dtype of the kind.
static tn_array *nested_array(struct py_building *b, struct nested *n, tn_dtype dtype)
{
    if (n->count == 0 && n->kind == TN_KIND_NONE)
        n->kind = TN_KIND_FLOAT;
    if (n->kind == TN_KIND_BOOL || n->kind == TN_KIND_SIGNED) {
        if (tn_dtype_in(dtype, TN_INTEGER_DTYPES) && !from_python_fits(n, dtype))
            return NULL;
        tn_dtype whole = n->is_large ? TN_U64 : TN_I64;
        tn_dtype wanted = dtype ? dtype : n->kind == TN_KIND_BOOL ? TN_BOOL : whole;
        bool is_cut = cut_whole(n, wanted);
        tn_array *x = tn_from_data(b->scope, is_cut ? wanted : whole, &n->shape, n->whole);
        return is_cut || wanted == whole ? x
                                         : tn_op(b->scope, "base.astype/1", TN_IN(x),
                                                 tn_attrs("dtype", (int64_t)wanted));
    }
    if (!reals_fit(n, dtype))
        return NULL;
    bool is_complex = n->kind == TN_KIND_COMPLEX;
    tn_dtype wanted = dtype ? dtype : is_complex ? TN_COMPLEX64 : TN_F32;
    if (wanted == (is_complex ? TN_COMPLEX64 : TN_F32)) {
        round_reals(n, is_complex);
        return tn_from_data(b->scope, wanted, &n->shape, n->reals);
    }
    for (uint64_t i = 0; !is_complex && i < n->count; i++)
        n->reals[i] = n->reals[2 * i];
    tn_array *x =
        tn_from_data(b->scope, is_complex ? TN_COMPLEX128 : TN_F64, &n->shape, n->reals);
    return wanted == (is_complex ? TN_COMPLEX128 : TN_F64)
               ? x
               : tn_op(b->scope, "base.astype/1", TN_IN(x),
                       tn_attrs("dtype", (int64_t)wanted));
}

static tn_array *from_python_list_array(struct py_building *b, PyObject *object,
                                        tn_dtype dtype)
{
    struct nested n = {0};
    uint64_t count = 1, bytes;
    bool fits_memory = from_python_extents_of(&n, object);
    for (int32_t i = 0; fits_memory && i < n.shape.rank; i++)
        fits_memory = tn_checked_multiply(count, (uint64_t)n.shape.extent[i], &count);
    if (PyErr_Occurred())
        return NULL;
    fits_memory = fits_memory && tn_checked_multiply(count + 1, 3 * sizeof(double), &bytes);
    n.reals = fits_memory ? malloc(bytes) : NULL;
    if (!n.reals) {
        PyErr_NoMemory();
        return NULL;
    }
    n.whole = (int64_t *)(n.reals + 2 * (count + 1));
    tn_array *x = store_all(&n, object, 0) ? nested_array(b, &n, dtype) : NULL;
    free(n.reals);
    return x;
}

// --- buffers ---

// The dtype of a format of module struct in native byte order; TN_DTYPE_NONE: another one.
static tn_dtype dtype_of_format(const char *format, Py_ssize_t size)
{
    format += strspn(format, "@=");
    if (*format == '<') // native: this machine is little-endian
        format++;
    if (strcmp(format, "Zf") == 0)
        return TN_COMPLEX64;
    if (strcmp(format, "Zd") == 0)
        return TN_COMPLEX128;
    if (strlen(format) != 1)
        return TN_DTYPE_NONE;
    static const tn_dtype with_sign[] = {
        [1] = TN_I8, [2] = TN_I16, [4] = TN_I32, [8] = TN_I64};
    static const tn_dtype without[] = {
        [1] = TN_U8, [2] = TN_U16, [4] = TN_U32, [8] = TN_U64};
    if (size > 8)
        return TN_DTYPE_NONE;
    if (strchr("bhilqn", *format))
        return with_sign[size];
    if (strchr("BHILQN", *format))
        return without[size];
    return *format == '?'   ? TN_BOOL
           : *format == 'e' ? TN_F16
           : *format == 'f' ? TN_F32
           : *format == 'd' ? TN_F64
                            : TN_DTYPE_NONE;
}

static tn_array *view_array(struct py_building *b, PyObject *object, Py_buffer *view)
{
    tn_dtype dtype = dtype_of_format(view->format ? view->format : "B", view->itemsize);
    tn_shape shape = {.rank = view->ndim};
    if (!dtype) {
        PyErr_Format(PyExc_TypeError,
                     "elements of format \"%s\" of %R: no dtype of tenon's",
                     view->format ? view->format : "B", (PyObject *)Py_TYPE(object));
        return NULL;
    }
    if (view->ndim > TN_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "%d axes, expected at most %d", view->ndim,
                     TN_MAX_RANK);
        return NULL;
    }
    for (int i = 0; i < view->ndim; i++)
        shape.extent[i] = view->shape[i];
    if (PyBuffer_IsContiguous(view, 'C'))
        return tn_from_data(b->scope, dtype, &shape, view->buf);
    void *bytes = malloc((size_t)view->len + 1);
    tn_array *x = NULL;
    if (!bytes)
        PyErr_NoMemory();
    else if (PyBuffer_ToContiguous(bytes, view, view->len, 'C') == 0)
        x = tn_from_data(b->scope, dtype, &shape, bytes);
    free(bytes);
    return x;
}

static tn_array *buffer_array(struct py_building *b, PyObject *object)
{
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) != 0)
        return NULL;
    // MLX's bfloat16: module struct has no format for it, but DLPack has a type.
    bool is_tensor = view.format && strcmp(view.format, "bfloat16") == 0 &&
                     PyObject_HasAttrString(object, "__dlpack__");
    tn_array *x = is_tensor ? NULL : view_array(b, object, &view);
    PyBuffer_Release(&view);
    return is_tensor ? dlpack_copied(b, object) : x;
}

// --- any object ---

static tn_array *array_of_numpy(struct py_building *b, PyObject *object)
{
    PyObject *other = PyObject_CallMethod(object, "__array__", NULL);
    tn_array *x = other ? buffer_array(b, other) : NULL;
    Py_XDECREF(other);
    return x;
}

static tn_array *from_python_unconverted(struct py_building *b, PyObject *object)
{
    if (array_check(object))
        return array_get(object, b);
    if (PyObject_CheckBuffer(object))
        return buffer_array(b, object);
    if (PyObject_HasAttrString(object, "__dlpack__"))
        return dlpack_copied(b, object);
    if (PyObject_HasAttrString(object, "__array__"))
        return array_of_numpy(b, object);
    PyErr_Format(PyExc_TypeError, "%R of type %R is no array, number or list of numbers",
                 object, (PyObject *)Py_TYPE(object));
    return NULL;
}

// The array of a number in the dtype that was asked for: integers are exact. Fails where
// the dtype cannot hold the number.
static tn_array *from_python_number_of(struct py_building *b, PyObject *object,
                                       tn_dtype dtype)
{
    struct nested n = {0};
    double reals[4];
    int64_t whole[2];
    n.reals = reals;
    n.whole = whole;
    return from_python_store(&n, object) ? nested_array(b, &n, dtype) : NULL;
}

tn_array *array_from_object(struct py_building *b, PyObject *object, tn_dtype dtype)
{
    if (from_python_is_sequence(object))
        return from_python_list_array(b, object, dtype);
    if (from_python_kind_of(object) != TN_KIND_NONE && dtype)
        return from_python_number_of(b, object, dtype);
    tn_array *x = from_python_number(b, object, false);
    if (!x && !PyErr_Occurred() && tn_scope_status(b->scope) == TN_OK)
        x = from_python_unconverted(b, object);
    if (x && dtype && tn_array_type(x)->dtype != dtype)
        x = tn_op(b->scope, "base.astype/1", TN_IN(x), tn_attrs("dtype", (int64_t)dtype));
    return x;
}

tn_array *operand_get(struct py_building *b, PyObject *object, bool weak)
{
    if (array_check(object))
        return array_get(object, b);
    tn_array *x = from_python_number(b, object, weak);
    if (!x && !PyErr_Occurred() && tn_scope_status(b->scope) == TN_OK)
        x = from_python_is_sequence(object) ? from_python_list_array(b, object, 0)
                                            : from_python_unconverted(b, object);
    if (!x && !PyErr_Occurred())
        raise_scope(b->scope);
    return x;
}

// SPDX-License-Identifier: MIT
// Attributes of primitives from Python's values, by the kinds of their table.
#include "core.h"

#include <stdlib.h>
#include <string.h>

// An integer beyond 64 bits stays an OverflowError.
static bool py_attrs_refuse(const tn_attr_field *field, const char *expected,
                            PyObject *value)
{
    PyObject *kind =
        PyErr_ExceptionMatches(PyExc_OverflowError) ? PyExc_OverflowError : PyExc_TypeError;
    PyErr_Clear();
    PyErr_Format(kind, "attribute %s: got %R, expected %s", field->name, value, expected);
    return false;
}

static bool py_attrs_is_sequence(PyObject *value)
{
    return PyList_Check(value) || PyTuple_Check(value);
}

// Calls `store` with each element of a list or tuple, or with the one number that stands
// for a list of one.
static bool each_element(PyObject *value, void *to,
                         bool (*store)(void *to, uint64_t index, PyObject *item))
{
    if (!py_attrs_is_sequence(value))
        return store(to, 0, value);
    for (Py_ssize_t i = 0, n = PySequence_Size(value); i < n; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        bool stored = item && store(to, (uint64_t)i, item);
        Py_XDECREF(item);
        if (!stored)
            return false;
    }
    return true;
}

static bool store_int(void *to, uint64_t index, PyObject *item)
{
    PyObject *whole = PyNumber_Index(item);
    ((int64_t *)to)[index] = whole ? PyLong_AsLongLong(whole) : 0;
    Py_XDECREF(whole);
    return !PyErr_Occurred();
}

static bool store_float(void *to, uint64_t index, PyObject *item)
{
    ((double *)to)[index] = PyFloat_AsDouble(item);
    return !PyErr_Occurred();
}

static uint64_t py_attrs_length_of(PyObject *value)
{
    return py_attrs_is_sequence(value) ? (uint64_t)PySequence_Size(value) : 1;
}

static bool add_ints(struct attr_room *room, tn_attr *attr, const tn_attr_field *field,
                     PyObject *value)
{
    tn_ints *ints = &room->ints[room->count];
    uint64_t count = py_attrs_length_of(value);
    if (count > TN_MAX_RANK) {
        PyErr_Format(
            PyExc_ValueError,
            "attribute %s: got %R, expected at most %d integers, the most axes that "
            "an array has",
            field->name, value, TN_MAX_RANK);
        return false;
    }
    *ints = (tn_ints){.count = (uint32_t)count, .given = 1};
    if (!each_element(value, ints->value, store_int))
        return py_attrs_refuse(field, "an integer or a list of integers of 64 bits", value);
    attr->ints = ints;
    return true;
}

static bool py_attrs_add_list(struct attr_room *room, tn_attr *attr,
                              const tn_attr_field *field, PyObject *value)
{
    bool is_float = field->kind == TN_ATTR_FLOAT_LIST;
    uint64_t count = py_attrs_length_of(value);
    void *elements = calloc(count + 1, 8);
    if (!elements)
        return PyErr_NoMemory(), false;
    room->lists[room->count] = elements;
    if (!each_element(value, elements, is_float ? store_float : store_int))
        return py_attrs_refuse(field, is_float ? "a list of numbers" : "a list of integers",
                               value);
    room->float_lists[room->count] = (tn_float_list){count, elements};
    room->int_lists[room->count] = (tn_int_list){count, elements};
    attr->float_list = is_float ? &room->float_lists[room->count] : NULL;
    attr->int_list = is_float ? NULL : &room->int_lists[room->count];
    return true;
}

static bool py_attrs_add_number(tn_attr *attr, const tn_attr_field *field, PyObject *value)
{
    if (field->kind == TN_ATTR_F64) {
        attr->f = PyFloat_AsDouble(value);
        return !PyErr_Occurred() || py_attrs_refuse(field, "a number", value);
    }
    PyObject *whole = PyNumber_Index(value);
    attr->i = !whole                        ? 0
              : field->kind == TN_ATTR_BITS ? (int64_t)PyLong_AsUnsignedLongLong(whole)
                                            : PyLong_AsLongLong(whole);
    Py_XDECREF(whole);
    return !PyErr_Occurred() || py_attrs_refuse(field, "an integer", value);
}

static bool add_truth(tn_attr *attr, const tn_attr_field *field, PyObject *value)
{
    if (!PyBool_Check(value) && !PyLong_Check(value))
        return py_attrs_refuse(field, "True or False", value);
    attr->i = PyObject_IsTrue(value);
    return true;
}

static bool add_dtype(tn_attr *attr, PyObject *value)
{
    tn_dtype dtype;
    if (!dtype_from_object(value, &dtype))
        return false;
    attr->i = dtype;
    return true;
}

static bool py_attrs_add_text(tn_attr *attr, const tn_attr_field *field, PyObject *value)
{
    attr->kind = field->kind == TN_ATTR_STRING ? TN_ATTR_STRING : TN_ATTR_TEXT;
    attr->text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    return attr->text || py_attrs_refuse(field, "a text", value);
}

bool attr_add(struct py_building *b, struct attr_room *room, const tn_attr_field *field,
              PyObject *value)
{
    tn_attr *attr = &room->items[room->count];
    *attr = (tn_attr){.name = field->name, .kind = field->kind};
    room->lists[room->count] = NULL;
    bool added;
    if (array_check(value) && (field->flags & TN_ATTR_RUNTIME)) {
        attr->kind = TN_ATTR_ARRAY;
        attr->array = array_get(value, b);
        added = attr->array != NULL;
    } else if (field->kind == TN_ATTR_BOOL) {
        added = add_truth(attr, field, value);
    } else if (field->kind == TN_ATTR_INTS) {
        added = add_ints(room, attr, field, value);
    } else if (field->kind == TN_ATTR_INT_LIST || field->kind == TN_ATTR_FLOAT_LIST) {
        added = py_attrs_add_list(room, attr, field, value);
    } else if (field->kind == TN_ATTR_DTYPE) {
        added = add_dtype(attr, value);
    } else if (field->kind == TN_ATTR_CHOICE || field->kind == TN_ATTR_STRING) {
        added = py_attrs_add_text(attr, field, value);
    } else if (field->kind == TN_ATTR_GRAPH) {
        added =
            py_attrs_refuse(field, "a graph, which tenon.cond and its like give", value);
    } else {
        added = py_attrs_add_number(attr, field, value);
    }
    room->count++;
    return added;
}

void attr_room_free(struct attr_room *room)
{
    for (uint32_t i = 0; i < room->count; i++)
        free(room->lists[i]);
}

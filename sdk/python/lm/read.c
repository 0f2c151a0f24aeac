// SPDX-License-Identifier: MIT
// Python's objects to C's, and back.
#include "lm.h"

#include <stdlib.h>
#include <string.h>

bool ids_read(PyObject *object, int32_t **out_ids, int64_t *out_count)
{
    if (PyUnicode_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "tenon.lm: got a text, expected a list of tokens");
        return false;
    }
    PyObject *list = PySequence_List(object);
    Py_ssize_t count = list ? PyList_Size(list) : 0;
    int32_t *ids = malloc(sizeof(*ids) * (size_t)(count + 1));
    if (list && !ids)
        PyErr_NoMemory();
    bool read = list && ids;
    for (Py_ssize_t i = 0; read && i < count; i++) {
        PyObject *item = item_of_list(list, i);
        int overflow = 0;
        long id = item ? PyLong_AsLongAndOverflow(item, &overflow) : -1;
        Py_XDECREF(item);
        read = !PyErr_Occurred();
        if (read && (overflow || id < INT32_MIN || id > INT32_MAX)) {
            PyErr_Format(PyExc_ValueError, "tenon.lm: token %zd is no number of 32 bits",
                         i);
            read = false;
        }
        ids[i] = (int32_t)id;
    }
    Py_XDECREF(list);
    if (!read) {
        free(ids);
        return false;
    }
    *out_ids = ids;
    *out_count = count;
    return true;
}

PyObject *ids_list(const int32_t *ids, uint64_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list && i < count; i++) {
        PyObject *id = PyLong_FromLong(ids[i]);
        if (!id || PyList_SetItem(list, (Py_ssize_t)i, id) != 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *floats_bytes(const float *values, int64_t count)
{
    return PyBytes_FromStringAndSize((const char *)values,
                                     (Py_ssize_t)sizeof(*values) * (Py_ssize_t)count);
}

int field_read(const struct lm_field *fields, size_t count, PyObject *name, PyObject *value,
               void *out)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text)
        return -1;
    size_t at = 0;
    while (at < count && strcmp(fields[at].name, text) != 0)
        at++;
    if (at == count)
        return 0;
    char *position = (char *)out + fields[at].offset;
    if (fields[at].kind == 'd')
        *(double *)(void *)position = PyFloat_AsDouble(value);
    else if (fields[at].kind == 'u')
        *(uint64_t *)(void *)position = PyLong_AsUnsignedLongLong(value);
    else
        *(int64_t *)(void *)position = PyLong_AsLongLong(value);
    return PyErr_Occurred() ? -1 : 1;
}

PyObject *raise_unknown(const char *what, PyObject *name)
{
    return PyErr_Format(PyExc_TypeError, "%s: no option %R", what, name);
}

PyTypeObject *type_add(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, type) != 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

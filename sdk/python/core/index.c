// SPDX-License-Identifier: MIT
// x[index] of numbers, slices, None and ...: one slice, and one reshape where axes go or
// come. Arrays, masks, and what is no index are the package's, in Python.
#include "core.h"

static bool py_index_has_shape(PyObject *array, const tn_ints *shape)
{
    const tn_type *type = array_type_of(array);
    bool is_same = type && (uint32_t)type->rank == shape->count;
    for (uint32_t i = 0; is_same && i < shape->count; i++)
        is_same = type->extent[i] == shape->value[i];
    return is_same;
}

static PyObject *apply_move(PyObject *x, const char *name, tn_attr_list attrs)
{
    struct py_building b;
    if (!building_begin_node(&b))
        return NULL;
    const tn_array *array = array_get(x, &b);
    PyObject *result = array ? building_apply(&b, name, &array, 1, attrs) : NULL;
    building_end(&b);
    return result;
}

// The array at an index. Takes the reference to `x`.
static PyObject *apply_index(PyObject *x, struct py_index *index)
{
    index->start.count = index->stop.count = index->step.count = (uint32_t)index->rank;
    index->start.given = index->stop.given = index->step.given = index->shape.given = 1;
    PyObject *part = index->is_whole
                         ? Py_NewRef(x)
                         : apply_move(x, "base.slice/1",
                                      tn_attrs("start", &index->start, "stop", &index->stop,
                                               "step", &index->step));
    Py_DECREF(x);
    if (!part || py_index_has_shape(part, &index->shape))
        return part;
    PyObject *result = apply_move(part, "base.reshape/1", tn_attrs("shape", &index->shape));
    Py_DECREF(part);
    return result;
}

PyObject *array_subscript(PyObject *self, PyObject *index)
{
    PY_GUARD;
    const tn_type *given = array_type_of(self);
    if (!given)
        return NULL;
    const tn_type type = *given; // reading an index may run anything
    struct py_index x = {.extent = type.extent, .rank = type.rank, .is_whole = true};
    if (index_read(&x, index))
        return apply_index(Py_NewRef(self), &x);
    if (PyErr_Occurred())
        return NULL;
    PyObject *package = PyImport_ImportModule("tenon._index");
    PyObject *result =
        package ? PyObject_CallMethod(package, "get", "OO", self, index) : NULL;
    Py_XDECREF(package);
    return result;
}

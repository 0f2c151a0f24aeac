// SPDX-License-Identifier: MIT
// Python without a GIL: see base.h. And items of containers that other threads may change.
#include "base.h"

#ifdef Py_GIL_DISABLED
static PyObject *all; // the object whose lock every critical section takes

bool guard_init(PyObject *shared)
{
    all = shared ? Py_NewRef(shared) : PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    return all != NULL;
}

PyObject *guard_object(void)
{
    return all;
}

void guard_begin(struct py_guard *guard)
{
    PyCriticalSection_Begin(&guard->section, all);
}

void guard_end(struct py_guard *guard)
{
    PyCriticalSection_End(&guard->section);
}

PyObject *item_of_dict(PyObject *dict, PyObject *key)
{
    PyObject *item = NULL;
    PyDict_GetItemRef(dict, key, &item);
    return item;
}
#else
PyObject *item_of_dict(PyObject *dict, PyObject *key)
{
    return Py_XNewRef(PyDict_GetItemWithError(dict, key));
}
#endif

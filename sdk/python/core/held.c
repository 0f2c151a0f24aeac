// SPDX-License-Identifier: MIT
// The type Held: an object that holds another one as `_x`, and whose buffer is that of the
// array that its method _lent() gives. A base for Python classes, which cannot provide a
// buffer themselves before 3.12.
#include "core.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

PyTypeObject *held_type;

struct py_held_object {
    PyObject ob_base;
    PyObject *x;        // NULL: not there, and __getattr__ is asked
    PyObject *weakrefs; // of CPython
};

static void held_dealloc(PyObject *object)
{
    PY_GUARD;
    struct py_held_object *self = (struct py_held_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(object);
    Py_XDECREF(self->x);
    // Derived Python classes are garbage-collected: tp_free is theirs.
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

// The memory is writable, as in MLX: the caller sees to it that no other array shares it.
static int held_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    PY_GUARD;
    PyObject *source;
    const char *format;
    view->obj = NULL;
    PyObject *lent = PyObject_CallMethod(self, "_lent", NULL);
    Py_buffer *inner = lent ? calloc(1, sizeof(*inner)) : NULL;
    bool has_source = inner && PyArg_ParseTuple(lent, "Oz", &source, &format);
    if (lent && !inner)
        PyErr_NoMemory();
    if (!has_source || PyObject_GetBuffer(source, inner, flags & ~PyBUF_WRITABLE) != 0) {
        free(inner);
        Py_XDECREF(lent);
        return -1;
    }
    *view = *inner;
    view->obj = Py_NewRef(self);
    view->internal = inner;
    view->readonly = 0;
    if (format && view->format)
        view->format = (char *)(uintptr_t)PyUnicode_AsUTF8AndSize(
            PyTuple_GetItem(lent, 1), NULL); // borrowed: a constant of the class
    Py_DECREF(lent);
    return 0;
}

static void held_releasebuffer(PyObject *self, Py_buffer *view)
{
    PY_GUARD;
    (void)self;
    PyBuffer_Release(view->internal);
    free(view->internal);
}

PyObject *held_value(PyObject *object)
{
    return ((struct py_held_object *)object)->x;
}

PyObject *held_make(PyTypeObject *type, PyObject *value)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *made = value ? alloc(type, 0) : NULL;
    if (made)
        ((struct py_held_object *)made)->x = value;
    else
        Py_XDECREF(value);
    return made;
}

static PyMemberDef held_members[] = {
    {"_x", T_OBJECT_EX, offsetof(struct py_held_object, x), 0, "The object that is held."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_held_object, weakrefs), READONLY,
     NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot held_slots[] = {
    {Py_tp_dealloc, held_dealloc},
    {Py_tp_members, held_members},
    {Py_bf_getbuffer, held_getbuffer},
    {Py_bf_releasebuffer, held_releasebuffer},
    {0, NULL},
};

static PyType_Spec held_spec = {
    .name = "tenon._core.Held",
    .basicsize = sizeof(struct py_held_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = held_slots,
};

bool held_init(PyObject *module)
{
    held_type = (PyTypeObject *)PyType_FromSpec(&held_spec);
    return held_type && PyModule_AddObjectRef(module, "Held", (PyObject *)held_type) == 0;
}

// SPDX-License-Identifier: MIT
// The module tenon._train: bodies in Python that are traced once for all extents, over
// libtenon-train. The options, and which bodies are alike, are Python: tenon._transforms.
//
// Threads. The caller holds a Python lock over graph(): a thread that waited in C for a
// body of another thread would keep the GIL, which that body needs.
#include "../base/base.h"

#include <tenon/train.h>

static const struct py_host *py_host; // functions of tenon._core

// Shapeless(body, num_outputs, strict, ones): `body` is a callable from a list of Arrays to
// a list of `num_outputs` Arrays.
struct train_shapeless {
    PyObject ob_base;
    PyObject *body;
    tn_shapeless *shapeless; // NULL: not set up, or the runtime is closed
    uint64_t num_outputs;
    bool was_called; // the body was called within this graph()
    struct py_held held;
};

// Turns an exception of the body into the scope's failure. For extents other than the
// call's, the exception is the reason why the extents keep their values.
static tn_status tell_raised(tn_scope *scope)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *sentence = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    tn_scope_clear_error(scope);
    tn_status status = tn_scope_fail(scope, TN_ERR_ARGUMENT, "the body raised%s%s",
                                     sentence ? ": " : "", sentence ? sentence : "");
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    return status;
}

static tn_status py_train_run_body(tn_scope *scope, tn_array *const *inputs,
                                   uint64_t num_inputs, tn_array **outputs,
                                   uint64_t num_outputs, void *user)
{
    struct train_shapeless *self = user;
    bool is_first = !self->was_called; // for the extents of the call
    if (PyErr_Occurred())
        return tn_scope_fail(scope, TN_ERR_ARGUMENT, "the body raised");
    self->was_called = true;
    tn_status status =
        py_host->run_callable(scope, inputs, num_inputs, outputs, num_outputs, self->body);
    bool stays = !PyErr_Occurred() || is_first || !PyErr_ExceptionMatches(PyExc_Exception);
    return stays ? status : tell_raised(scope);
}

static tn_status run_shapeless(tn_scope *scope, tn_array *const *inputs,
                               uint64_t num_inputs, tn_array **outputs,
                               uint64_t num_outputs, void *user)
{
    return tn_shapeless_body(scope, inputs, num_inputs, outputs, num_outputs,
                             ((struct train_shapeless *)user)->shapeless);
}

static void shapeless_drop(struct py_held *held)
{
    struct train_shapeless *self =
        (struct train_shapeless *)((char *)held - offsetof(struct train_shapeless, held));
    tn_shapeless_destroy(self->shapeless);
    self->shapeless = NULL;
}

static int shapeless_setup(PyObject *object, PyObject *args, PyObject *named)
{
    PY_GUARD;
    struct train_shapeless *self = (struct train_shapeless *)object;
    PyObject *body;
    unsigned long long count;
    int strict, ones = 0;
    (void)named;
    if (!PyArg_ParseTuple(args, "OKp|p:Shapeless", &body, &count, &strict, &ones))
        return -1;
    tn_runtime *runtime = py_host->runtime_get();
    if (!runtime || self->body)
        return -1;
    uint32_t flags = (strict ? TN_SHAPELESS_STRICT : 0) | (ones ? TN_SHAPELESS_ONES : 0);
    tn_status status =
        tn_shapeless_create(runtime, py_train_run_body, self, flags, &self->shapeless);
    if (status != TN_OK) {
        py_host->raise_status(status, tn_train_error());
        return -1;
    }
    self->num_outputs = count;
    self->body = Py_NewRef(body);
    py_host->held_add(&self->held, shapeless_drop);
    return 0;
}

// graph(list of Arrays): (Graph, list of the Arrays that the body uses besides), for their
// types.
static PyObject *shapeless_graph(PyObject *object, PyObject *arrays)
{
    PY_GUARD;
    struct train_shapeless *self = (struct train_shapeless *)object;
    if (!self->shapeless)
        return py_host->raise_status(TN_ERR_ARGUMENT,
                                     "tenon: the interpreter is being shut down");
    self->was_called = false;
    return py_host->trace_body(run_shapeless, self, arrays, self->num_outputs);
}

// why(): which extents keep their values, and why, a line each.
static PyObject *shapeless_why(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    tn_shapeless *shapeless = ((struct train_shapeless *)object)->shapeless;
    uint64_t size = shapeless ? tn_shapeless_why(shapeless, NULL, 0) + 1 : 1;
    char *text = PyMem_Calloc(1, size);
    if (!text)
        return PyErr_NoMemory();
    if (shapeless)
        tn_shapeless_why(shapeless, text, size);
    PyObject *result = PyUnicode_FromString(text);
    PyMem_Free(text);
    return result;
}

static int shapeless_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((struct train_shapeless *)object)->body);
    return 0;
}

static int shapeless_clear(PyObject *object)
{
    Py_CLEAR(((struct train_shapeless *)object)->body);
    return 0;
}

static void shapeless_dealloc(PyObject *object)
{
    PY_GUARD;
    struct train_shapeless *self = (struct train_shapeless *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->body)
        py_host->held_remove(&self->held);
    shapeless_drop(&self->held);
    shapeless_clear(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static bool shapeless_init(PyObject *module)
{
    static PyMethodDef methods[] = {{"graph", shapeless_graph, METH_O, NULL},
                                    {"why", shapeless_why, METH_NOARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_init, shapeless_setup},
                                  {Py_tp_new, PyType_GenericNew},
                                  {Py_tp_dealloc, shapeless_dealloc},
                                  {Py_tp_traverse, shapeless_traverse},
                                  {Py_tp_clear, shapeless_clear},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {.name = "tenon._train.Shapeless",
                               .basicsize = sizeof(struct train_shapeless),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                               .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);
    bool added = type && PyModule_AddObjectRef(module, "Shapeless", type) == 0;
    Py_XDECREF(type);
    return added;
}

PyMODINIT_FUNC PyInit__train(void);

PyMODINIT_FUNC PyInit__train(void)
{
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                            "tenon._train",
                                            "Bodies that are built for all extents.",
                                            -1,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL};
    py_host = PyCapsule_Import(PY_HOST, 0);
    PyObject *module =
        py_host && guard_init(py_host->guard) ? PyModule_Create(&definition) : NULL;
    if (!module)
        return NULL;
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    if (!shapeless_init(module))
        Py_CLEAR(module);
    return module;
}

// SPDX-License-Identifier: MIT
// A scope for one operation: that of the innermost trace, or one of its own whose results
// are retained.
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <tenon/retain.h>

// The device that operations are applied on; NULL: the first that can.
static _Thread_local PyObject *device;

// As scope_choose_device, also where none is chosen.
static bool scope_set_device(tn_scope *scope)
{
    const char *name = device ? PyUnicode_AsUTF8AndSize(device, NULL) : NULL;
    if (device && !name)
        return false;
    if (tn_scope_device(scope, name) == TN_OK)
        return true;
    raise_scope(scope);
    return false;
}

bool scope_choose_device(tn_scope *scope)
{
    return !device || scope_set_device(scope);
}

PyObject *set_device(PyObject *module, PyObject *name)
{
    (void)module;
    if (name != Py_None && !PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError,
                        "a device is a text such as \"vulkan:0\", or None");
        return NULL;
    }
    thread_scope_close();
    PyObject *before = device ? device : Py_NewRef(Py_None);
    device = name == Py_None ? NULL : Py_NewRef(name);
    const struct py_trace *trace = trace_current();
    if (trace && !scope_set_device(trace->scope)) {
        Py_XDECREF(device);
        device = before == Py_None ? NULL : before;
        return NULL;
    }
    return before;
}

PyObject *current_device(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_NewRef(device ? device : Py_None);
}

// False with an exception set, and the scope closed.
static bool choose_device(struct py_building *b)
{
    if (scope_set_device(b->scope))
        return true;
    tn_scope_close(b->scope);
    b->scope = NULL;
    return false;
}

bool building_begin_apart(struct py_building *b)
{
    tn_runtime *runtime = runtime_get();
    b->trace = NULL;
    b->is_kept = false;
    b->scope = runtime ? tn_scope_open(runtime) : NULL;
    if (runtime && !b->scope)
        PyErr_SetString(
            PyExc_RuntimeError,
            "tenon: no scope: out of memory, or this process was forked from one "
            "that uses the runtime; start it with multiprocessing's \"spawn\"");
    return b->scope && (!device || choose_device(b));
}

bool building_begin(struct py_building *b)
{
    struct py_trace *trace = trace_current();
    if (!trace)
        return building_begin_apart(b);
    *b = (struct py_building){.scope = trace->scope, .trace = trace};
    return true;
}

// A scope for each thread, closed when that ends.
static pthread_key_t thread_scope;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static void close_scope(void *scope)
{
    tn_scope_close(scope);
}

static void make_key(void)
{
    if (pthread_key_create(&thread_scope, close_scope))
        Py_FatalError("tenon: no key for a thread's scope");
}

void thread_scope_close(void)
{
    pthread_once(&thread_once, make_key);
    tn_scope_close(pthread_getspecific(thread_scope));
    pthread_setspecific(thread_scope, NULL);
}

// The scope keeps the numbers of its applications: it is closed after so many applications.
#define KEPT_APPLICATIONS 256
static _Thread_local uint32_t applications;

bool building_begin_node(struct py_building *b)
{
    struct py_trace *trace = trace_current();
    if (trace)
        return building_begin(b);
    pthread_once(&thread_once, make_key);
    *b = (struct py_building){.scope = pthread_getspecific(thread_scope), .is_kept = true};
    if (b->scope)
        return true;
    if (!building_begin_apart(b))
        return false;
    b->is_kept = pthread_setspecific(thread_scope, b->scope) == 0;
    return true;
}

void building_end(struct py_building *b)
{
    if (!b->trace && !b->is_kept)
        tn_scope_close(b->scope);
    if (b->is_kept && ++applications % KEPT_APPLICATIONS == 0)
        thread_scope_close();
}

// More outputs than an operator has but few.
#define FEW_OUTPUTS 16

bool building_apply_n(struct py_building *b, const char *name,
                      const tn_array *const *inputs, uint64_t num_inputs,
                      tn_attr_list attrs, PyObject **outputs, uint64_t num_outputs)
{
    tn_array *few[FEW_OUTPUTS];
    tn_array **arrays = few;
    if (num_outputs > FEW_OUTPUTS && !(arrays = malloc(num_outputs * sizeof(*arrays))))
        return PyErr_NoMemory(), false;
    tn_status status =
        b->trace ? tn_op_n(b->scope, name, inputs, num_inputs, attrs, arrays, num_outputs)
                 : tn_op_retained_n(b->scope, name, inputs, num_inputs, attrs, arrays,
                                    num_outputs);
    bool wrapped = status == TN_OK;
    for (uint64_t i = 0; i < num_outputs; i++)
        outputs[i] = NULL;
    for (uint64_t i = 0; status == TN_OK && i < num_outputs; i++) {
        outputs[i] = array_wrap(arrays[i], b->trace ? trace_retain(b->trace) : NULL);
        wrapped = wrapped && outputs[i];
    }
    if (status != TN_OK)
        raise_scope(b->scope);
    for (uint64_t i = 0; !wrapped && i < num_outputs; i++)
        Py_CLEAR(outputs[i]);
    if (arrays != few)
        free(arrays);
    return wrapped;
}

PyObject *building_apply(struct py_building *b, const char *name,
                         const tn_array *const *inputs, uint64_t num_inputs,
                         tn_attr_list attrs)
{
    PyObject *output;
    return building_apply_n(b, name, inputs, num_inputs, attrs, &output, 1) ? output : NULL;
}

PyObject *building_array(struct py_building *b, tn_array *array)
{
    if (!array)
        return raise_scope(b->scope);
    if (b->trace)
        return array_wrap(array, trace_retain(b->trace));
    tn_array *retained = tn_retain(b->scope, array);
    return retained ? array_wrap(retained, NULL) : raise_scope(b->scope);
}

bool array_list_get(struct py_building *b, PyObject *list, struct array_list *out)
{
    Py_ssize_t count = PySequence_Size(list);
    *out = (struct array_list){0};
    if (count < 0)
        return false;
    out->items = calloc((size_t)count + 1, sizeof(*out->items));
    if (!out->items)
        return PyErr_NoMemory(), false;
    out->count = (uint64_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        out->items[i] = item ? operand_get(b, item, false) : NULL;
        Py_XDECREF(item);
        if (!out->items[i])
            return false;
    }
    return true;
}

PyObject *array_list_wrap(struct py_building *b, tn_array *const *arrays, uint64_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list && i < count; i++) {
        PyObject *array = building_array(b, arrays[i]);
        if (!array || PyList_SetItem(list, (Py_ssize_t)i, array) != 0)
            Py_CLEAR(list);
    }
    return list;
}

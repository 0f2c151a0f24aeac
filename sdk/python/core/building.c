// SPDX-License-Identifier: MIT
// A scope for one operation: that of the innermost trace, or one of its own whose results
// are retained.
#include "trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tenon/retain.h>

_Thread_local struct py_thread py_thread;

// Device for threads that chose none; NULL: the first that can run an operation. Threads
// open their kept scopes anew when `process_choice`, its serial number, has changed.
static PyObject *process_device;
static uint32_t process_choice;

PyObject *device_now(void)
{
    PyObject *device = py_thread.device ? py_thread.device : process_device;
    return device == Py_None ? NULL : device;
}

// As scope_choose_device; resets the scope's device where none is chosen.
static bool scope_set_device(tn_scope *scope)
{
    PyObject *device = device_now();
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
    return !device_now() || scope_set_device(scope);
}

static bool is_device(PyObject *name)
{
    if (name == Py_None || PyUnicode_Check(name))
        return true;
    PyErr_SetString(PyExc_TypeError, "a device is a text such as \"vulkan:0\", or None");
    return false;
}

// Applies further operations of this thread's innermost trace on the chosen device.
static bool trace_set_device(void)
{
    const struct py_trace *trace = trace_current();
    return !trace || scope_set_device(trace->scope);
}

PyObject *set_device(PyObject *module, PyObject *name)
{
    PY_GUARD;
    (void)module;
    if (name != Py_Ellipsis && !is_device(name))
        return NULL;
    thread_scope_close();
    PyObject *before = py_thread.device;
    py_thread.device = name == Py_Ellipsis ? NULL : Py_NewRef(name);
    if (!trace_set_device()) {
        Py_XDECREF(py_thread.device);
        py_thread.device = before;
        return NULL;
    }
    return before ? before : Py_NewRef(Py_Ellipsis);
}

PyObject *set_process_device(PyObject *module, PyObject *name)
{
    PY_GUARD;
    (void)module;
    if (!is_device(name))
        return NULL;
    PyObject *before = process_device;
    process_device = name == Py_None ? NULL : Py_NewRef(name);
    if (!trace_set_device()) {
        Py_XDECREF(process_device);
        process_device = before;
        return NULL;
    }
    process_choice++;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

PyObject *current_device(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    PyObject *device = device_now();
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
    b->kept = NULL;
    b->scope = runtime ? tn_scope_open(runtime) : NULL;
    if (runtime && !b->scope)
        raise_status(TN_ERR_MEMORY, tn_last_error());
    return b->scope && (!device_now() || choose_device(b));
}

bool building_begin(struct py_building *b)
{
    struct py_trace *trace = trace_current();
    if (!trace)
        return building_begin_apart(b);
    *b = (struct py_building){.scope = trace->scope, .trace = trace};
    return true;
}

// A scope for each thread, closed when the thread ends.
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static atomic_uint num_scopes;

static void close_scope(void *scope)
{
    tn_scope_close(scope);
    atomic_fetch_sub(&num_scopes, 1);
}

// A child of fork() drops the parent's scope; opening another one fails with a message.
static void forget_scope(void)
{
    py_thread.scope = NULL;
}

static void make_key(void)
{
    if (pthread_key_create(&thread_key, close_scope) ||
        pthread_atfork(NULL, NULL, forget_scope))
        Py_FatalError("tenon: no key for a thread's scope");
}

bool threads_have_scopes(void)
{
    return atomic_load(&num_scopes) > 0;
}

void thread_scope_close(void)
{
    if (!py_thread.scope)
        return;
    pthread_setspecific(thread_key, NULL);
    close_scope(py_thread.scope);
    py_thread.scope = NULL;
}

// Number arrays of all applications stay in the scope, so it is closed after so many.
#define KEPT_APPLICATIONS 256

static bool open_kept(struct py_building *b, struct py_thread *thread)
{
    pthread_once(&thread_once, make_key);
    if (!building_begin_apart(b))
        return false;
    if (pthread_setspecific(thread_key, b->scope) != 0)
        return true;
    atomic_fetch_add(&num_scopes, 1);
    b->kept = thread;
    thread->scope = b->scope;
    thread->choice = process_choice;
    thread->depth = 1;
    return true;
}

static inline bool begin_kept(struct py_building *b, struct py_thread *thread)
{
    if (thread->choice != process_choice && thread->depth == 0)
        thread_scope_close();
    *b = (struct py_building){.scope = thread->scope, .kept = thread};
    if (!b->scope)
        return open_kept(b, thread);
    thread->depth++;
    return true;
}

bool building_begin_kept(struct py_building *b)
{
    return begin_kept(b, &py_thread);
}

bool building_begin_node(struct py_building *b)
{
    struct py_thread *thread = &py_thread;
    return thread->innermost ? building_begin(b) : begin_kept(b, thread);
}

void building_end(struct py_building *b)
{
    if (b->kept && --b->kept->depth == 0 &&
        ++b->kept->applications % KEPT_APPLICATIONS == 0)
        thread_scope_close();
    if (!b->trace && !b->kept)
        tn_scope_close(b->scope);
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

PyObject *building_data(struct py_building *b, tn_array *array)
{
    if (!array || b->trace || *tn_array_op(array)) // no data: it stays a node
        return building_array(b, array);
    tn_array *kept = tn_keep(b->scope, array);
    return kept ? array_wrap(kept, NULL) : raise_scope(b->scope);
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

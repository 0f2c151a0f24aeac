// SPDX-License-Identifier: MIT
// The runtime of the process, and failures of the core as exceptions.
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/retain.h>

static tn_runtime *runtime;
static bool is_closed;
static PyObject *device_error, *plugin_error, *rank_error;
static PyObject *path_finder; // gives the folders of plugins in installed wheels

static struct py_held ring = {.next = &ring, .prev = &ring};

void held_add(struct py_held *held, void (*drop)(struct py_held *self))
{
    *held = (struct py_held){.next = &ring, .prev = ring.prev, .drop = drop};
    ring.prev->next = held;
    ring.prev = held;
}

void held_remove(struct py_held *held)
{
    if (!held->next)
        return;
    held->next->prev = held->prev;
    held->prev->next = held->next;
}

struct py_held *held_next(const struct py_held *held)
{
    struct py_held *next = held ? held->next : ring.next;
    return next == &ring ? NULL : next;
}

static bool is_forked;

static void note_fork(void)
{
    is_forked = runtime != NULL;
}

// Raises the core's message about a forked process, with a remedy.
static tn_runtime *refuse_forked(void)
{
    tn_scope_close(tn_scope_open(runtime));
    PyErr_Format(PyExc_RuntimeError,
                 "tenon: %s; with multiprocessing, start processes by \"spawn\"",
                 tn_last_error());
    return NULL;
}

tn_runtime *runtime_get(void)
{
    if (is_forked)
        return refuse_forked();
    if (runtime)
        return runtime;
    if (is_closed) {
        PyErr_SetString(PyExc_RuntimeError, "tenon: the interpreter is being shut down");
        return NULL;
    }
    PyObject *path = path_finder ? PyObject_CallNoArgs(path_finder) : NULL;
    if (path_finder && !path)
        return NULL;
    const char *folders = path ? PyUnicode_AsUTF8AndSize(path, NULL) : "";
    if (!folders)
        return Py_DECREF(path), NULL;
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .plugin_path = *folders ? folders : NULL};
    // Another thread may have opened it while this one looked for folders.
    tn_status status = runtime ? TN_OK : tn_runtime_open(&options, &runtime);
    Py_XDECREF(path);
    if (status != TN_OK)
        raise_status(status, tn_last_error());
    else
        pthread_atfork(NULL, NULL, note_fork);
    return runtime;
}

PyObject *set_path_finder(PyObject *module, PyObject *function)
{
    PY_GUARD;
    (void)module;
    PyObject *before = path_finder;
    path_finder = Py_NewRef(function);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

PyObject *runtime_is_open(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    return PyBool_FromLong(runtime != NULL);
}

PyObject *runtime_close(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    bool is_idle = work_wait_left();
    if (!is_idle)
        PyErr_Clear();
    is_closed = true;
    // Not idle: a second signal interrupted the wait, and work still uses the runtime.
    if (runtime && is_idle) {
        for (struct py_held *held = ring.next; held != &ring; held = held->next)
            held->drop(held);
        thread_scope_close();
        // Exported memory and other threads may still use the runtime: then the process
        // ends with the runtime open.
        if (!has_exports() && !threads_have_scopes() && tn_runtime_close(runtime) == TN_OK)
            runtime = NULL;
    }
    Py_RETURN_NONE;
}

// The rank that a collective's failure names: "rank 1 was ended by signal 9 (Killed); rank
// 0 was in all_reduce (sum) of 4 f32". -1: another failure.
static long lost_rank(const char *message)
{
    const char *lost = message ? strstr(message, "rank ") : NULL;
    const char *own = lost ? strstr(lost, "; rank ") : NULL;
    long rank = lost && own ? strtol(lost + 5, NULL, 10) : -1;
    char *end = NULL;
    if (own && strtol(own + 7, &end, 10) >= 0 && strncmp(end, " was ", 5) == 0)
        return rank;
    return -1;
}

static void raise_lost_rank(const char *message, long rank)
{
    PyObject *number = PyLong_FromLong(rank);
    PyObject *error = number ? PyObject_CallFunction(rank_error, "s", message) : NULL;
    if (error && PyObject_SetAttrString(error, "rank", number) == 0)
        PyErr_SetObject(rank_error, error);
    Py_XDECREF(error);
    Py_XDECREF(number);
}

PyObject *raise_status(tn_status status, const char *message)
{
    long rank = status == TN_ERR_IO ? lost_rank(message) : -1;
    PyObject *kind = status == TN_ERR_ARGUMENT      ? PyExc_ValueError
                     : status == TN_ERR_UNSUPPORTED ? PyExc_NotImplementedError
                     : status == TN_ERR_NOT_FOUND   ? PyExc_LookupError
                     : status == TN_ERR_MEMORY      ? PyExc_MemoryError
                     : status == TN_ERR_DEVICE      ? device_error
                     : status == TN_ERR_IO          ? PyExc_OSError
                     : status == TN_ERR_REFUSED     ? plugin_error
                                                    : PyExc_RuntimeError;
    // A body of Python that failed has set its own exception, which is the cause.
    if (!PyErr_Occurred() && rank >= 0)
        raise_lost_rank(message, rank);
    else if (!PyErr_Occurred())
        PyErr_SetString(kind, message && *message ? message : tn_status_name(status));
    return NULL;
}

PyObject *raise_scope(tn_scope *scope)
{
    if (tn_scope_error_kind(scope) != TN_ERROR_OF_DTYPE)
        raise_status(tn_scope_status(scope), tn_scope_error(scope));
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, tn_scope_error(scope));
    tn_scope_clear_error(scope);
    return NULL;
}

bool errors_init(PyObject *module)
{
    device_error = PyErr_NewExceptionWithDoc("tenon.DeviceError",
                                             "A device was lost: close and open it again.",
                                             PyExc_RuntimeError, NULL);
    plugin_error = PyErr_NewExceptionWithDoc(
        "tenon.PluginError", "A plugin or file is damaged, untrusted or incompatible.",
        PyExc_RuntimeError, NULL);
    rank_error = PyErr_NewExceptionWithDoc(
        "tenon.dist.RankError",
        "A process of a group ended, was stopped or is gone: `rank` in the world.",
        PyExc_OSError, NULL);
    return device_error && plugin_error && rank_error &&
           PyModule_AddObjectRef(module, "DeviceError", device_error) == 0 &&
           PyModule_AddObjectRef(module, "PluginError", plugin_error) == 0 &&
           PyModule_AddObjectRef(module, "RankError", rank_error) == 0;
}

bool host_init(PyObject *module)
{
    static struct py_host host = {.runtime_get = runtime_get,
                                  .raise_status = raise_status,
                                  .held_add = held_add,
                                  .held_remove = held_remove,
                                  .run_callable = run_callable,
                                  .trace_body = trace_body};
    host.guard = guard_object();
    PyObject *capsule = PyCapsule_New(&host, PY_HOST, NULL);
    bool added = capsule && PyModule_AddObjectRef(module, "host", capsule) == 0;
    Py_XDECREF(capsule);
    return added;
}

// SPDX-License-Identifier: MIT
// Helpers of the modules in C that need Python but not Tenon: trees of Python objects, long
// work on another thread while Python handles signals, and what module tenon._core exports
// to the other modules.
#ifndef TENON_PYTHON_BASE_H
#define TENON_PYTHON_BASE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenon/attr.h>
#include <tenon/dlpack.h>
#include <tenon/tenon.h>

// --- guard.c: Python without a GIL ---------------------------------------------------

// Without a GIL, a critical section over each entry of the module protects the same data.
// A thread leaves it wherever it would leave the GIL: when it waits.
struct py_guard {
#ifdef Py_GIL_DISABLED
    PyCriticalSection section;
#else
    bool unused;
#endif
};

#ifdef Py_GIL_DISABLED
// `shared`: the object whose lock is another module's guard; NULL: a new one.
bool guard_init(PyObject *shared);
PyObject *guard_object(void);
void guard_begin(struct py_guard *guard);
void guard_end(struct py_guard *guard);
// A list's item as a new reference: another thread may replace it.
#define item_of_list PyList_GetItemRef
#else
static inline bool guard_init(PyObject *shared)
{
    (void)shared;
    return true;
}
static inline PyObject *guard_object(void)
{
    return NULL;
}
static inline void guard_begin(struct py_guard *guard)
{
    (void)guard;
}
static inline void guard_end(struct py_guard *guard)
{
    (void)guard;
}
static inline PyObject *item_of_list(PyObject *list, Py_ssize_t i)
{
    return Py_XNewRef(PyList_GetItem(list, i));
}
#endif
// The value of a key as a new reference; NULL: the dict lacks the key, or an exception is
// set.
PyObject *item_of_dict(PyObject *dict, PyObject *key);

// The first line of each function that Python calls.
#define PY_GUARD                                                                           \
    __attribute__((cleanup(guard_end))) struct py_guard guard;                             \
    guard_begin(&guard)

// --- what module tenon._core exports to the other modules ---

// A Python object's reference to the runtime, in a ring of all such objects: the runtime
// is closed when the interpreter exits, before it frees them.
struct py_held {
    struct py_held *next, *prev;
    void (*drop)(struct py_held *self); // drops the reference; may be called again
};

// Functions of tenon._core for the other modules, in a capsule of this name; see core.h and
// guard.c. The module that imports it comes from the same build.
#define PY_HOST "tenon._core.host"
struct py_host {
    tn_runtime *(*runtime_get)(void);
    PyObject *(*raise_status)(tn_status status, const char *message);
    void (*held_add)(struct py_held *held, void (*drop)(struct py_held *self));
    void (*held_remove)(struct py_held *held);
    PyObject *guard;
    // A body in C that calls `user`, a callable from a list of Arrays to a list of Arrays.
    tn_function_body run_callable;
    // Traces a body in C for the types of a list of Arrays: (Graph, list of the Arrays of
    // the enclosing scope that it used). NULL with an exception set.
    PyObject *(*trace_body)(tn_function_body body, void *user, PyObject *arrays,
                            uint64_t num_outputs);
};

// --- trees.c: nested dicts, lists and tuples of arrays and other values ---------------

bool trees_init(void);
PyObject *tree_flatten(PyObject *module, PyObject *tree);
PyObject *tree_unflatten(PyObject *module, PyObject *args);
// A tree of these leaves in a structure that tree_flatten() gave.
PyObject *tree_of(PyObject *structure, PyObject *const *leaves, uint64_t count);
// The keys of a dict, sorted, as a list; NULL with an exception set.
PyObject *tree_keys(PyObject *dict);

// --- index.c: x[index] ---------------------------------------------------------------

// An index of numbers, slices, None and ... applied to a shape: a slice of every axis,
// then the result's shape.
struct py_index {
    const int64_t *extent; // of the array
    int32_t rank;
    tn_ints start, stop, step, shape;
    int32_t axis;  // next axis of the array
    bool is_whole; // every slice so far takes its whole axis
};

// Reads `index` for the shape in `x`. False: the index is invalid or needs arrays, which is
// for Python code to do; an exception may be set.
bool index_read(struct py_index *x, PyObject *index);

// --- lists.c: elements as objects --------------------------------------------------------

// The element at an address; NULL with an exception set.
PyObject *element_of(const char *at, DLDataType type);
// Nested lists over `axis` and the later axes of the tensor; `at`: their first element.
PyObject *lists_of(const DLTensor *t, int axis, const char *at);

// --- waiting.c: work that may last -----------------------------------------------------

// Work that another thread does, while this one waits for it and for signals.
struct py_work {
    void (*run)(struct py_work *self);    // without the GIL, in any thread
    void (*finish)(struct py_work *self); // frees the work; without the GIL, in any thread
    bool is_done, is_left;
};

// Runs the work to its end. False with an exception set: a signal's handler raised, and the
// work is finished by this file, not by the caller.
bool work_wait(struct py_work *work);
// Waits for all work whose callers were interrupted. False: a signal's handler raised.
bool work_wait_left(void);

#endif // TENON_PYTHON_BASE_H

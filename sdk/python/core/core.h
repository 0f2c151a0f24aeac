// SPDX-License-Identifier: MIT
// Shared by the files of module tenon._core: Tenon's C functions for Python.
//
// The module is compiled against CPython's limited API of 3.11, so one build serves every
// later version. What is convenient but not hot (trees, indexing, formatting, documents) is
// Python, in the package beside this folder.
//
// An Array object outside a trace holds a retained array, which any scope may use. Within a
// trace (trace.h) it holds an array of the trace's scope, and is dead once that has ended.
//
// Threads. All functions hold the GIL but for planning, evaluating and reading, which
// release it. Work that may last runs on another thread (waiting.c), so that Python handles
// signals meanwhile.
#ifndef TENON_PYTHON_CORE_H
#define TENON_PYTHON_CORE_H

#include "../base/base.h"

struct py_trace;
struct DLTensor;

// An Array object. `array` is NULL once it was donated or the trace has ended.
struct py_array {
    PyObject ob_base;
    tn_array *array;
    struct py_trace *trace; // a reference; its scope owns `array`; NULL: it is retained
    PyObject *weakrefs;     // of CPython
    PyObject *older;        // chain of replaced values that calls still use; NULL: none
    uint32_t uses;          // number of calls that use the object without the GIL
    bool is_used;           // such a call uses the present `array`
    bool has_left;   // array_leave_trace(): made in a body, in no trace since it was read
    bool is_watched; // reading it computes a copy, so that derivatives go on through it
    struct py_held held;
};

// All state of one thread in one variable: a call looks up thread-local storage once.
struct py_thread {
    struct py_trace *innermost; // trace
    PyObject *device;      // chosen here, Py_None: the first that can; NULL: the process's
    tn_scope *scope;       // for single nodes and evaluations; NULL: none yet
    uint32_t applications; // number of applications in `scope`
    uint32_t depth;        // nested calls in `scope`: finalizers may run within others
    uint32_t choice;       // process_choice when `scope` was opened
    long watching;         // number of derivatives that are being taken
    long branches;         // calls of branches, loops, files: their time depends on data
};
extern _Thread_local struct py_thread py_thread;

// --- runtime.c: the runtime, failures ---------------------------------------------------

// The process's runtime, opened at first use; NULL with an exception set.
tn_runtime *runtime_get(void);
// set_path_finder(function): `function` is called when the runtime is opened, and gives the
// plugin folders to search before all others, as a text.
PyObject *set_path_finder(PyObject *module, PyObject *function);
// is_open(): whether the runtime was opened, and has read the environment.
PyObject *runtime_is_open(PyObject *module, PyObject *unused);
// Closes the runtime; later calls raise. For atexit.
PyObject *runtime_close(PyObject *module, PyObject *unused);
void held_add(struct py_held *held, void (*drop)(struct py_held *self));
void held_remove(struct py_held *held); // may be zeroed
// The object behind `held` in the ring, the first one for NULL; NULL: there are no more.
struct py_held *held_next(const struct py_held *held);
// Sets the exception that a status stands for, with `message`. Returns NULL.
PyObject *raise_status(tn_status status, const char *message);
// Sets the exception of the scope's first failure, which the scope forgets. Returns NULL.
PyObject *raise_scope(tn_scope *scope);
// Creates DeviceError and the like in the module.
bool errors_init(PyObject *module);
// Puts a struct py_host into the module, as a capsule for the other modules in C.
bool host_init(PyObject *module);

// --- building.c: a scope to build in ---

// Where an operation is applied: the innermost trace of this thread, or a scope of its own.
struct py_building {
    tn_scope *scope;
    struct py_trace *trace;
    // The calling thread's state, where `scope` is the thread's kept scope, which
    // applications of single nodes share; NULL: another scope.
    struct py_thread *kept;
};

// False with an exception set.
bool building_begin(struct py_building *b);
// As building_begin, never in a trace: for reading and evaluating.
bool building_begin_apart(struct py_building *b);
// As building_begin, for one node whose operands are Arrays and numbers: such a node leaves
// nothing in a scope, so the thread's kept scope will do.
bool building_begin_node(struct py_building *b);
// As building_begin_apart, in the thread's kept scope: for work that leaves nothing in it.
bool building_begin_kept(struct py_building *b);
void building_end(struct py_building *b);
// Apply a primitive of one output, or of several into `outputs`, and give Array objects.
// NULL, or false, with the scope's failure raised.
PyObject *building_apply(struct py_building *b, const char *name,
                         const tn_array *const *inputs, uint64_t num_inputs,
                         tn_attr_list attrs);
bool building_apply_n(struct py_building *b, const char *name,
                      const tn_array *const *inputs, uint64_t num_inputs,
                      tn_attr_list attrs, PyObject **outputs, uint64_t num_outputs);
// Closes this thread's kept scope: the runtime is about to close, or the device changed.
void thread_scope_close(void);
// Whether any thread has a kept scope.
bool threads_have_scopes(void);
// set_device(name): this thread's operations are applied on this device from now on; None:
// on the first that can; ...: on the process's device. Gives the argument of before.
PyObject *set_device(PyObject *module, PyObject *name);
// set_process_device(name or None): the device for threads that chose none; None: the first
// that can.
PyObject *set_process_device(PyObject *module, PyObject *name);
// current_device(): the name of the device of this thread's operations, or None.
PyObject *current_device(PyObject *module, PyObject *unused);
// The same, borrowed; NULL for None.
PyObject *device_now(void);
// Sets the scope's device to this thread's, where one is chosen. False with an exception
// set.
bool scope_choose_device(tn_scope *scope);
// Gives an Array object of an array of the scope. NULL with the scope's failure raised.
PyObject *building_array(struct py_building *b, tn_array *array);
// The same for data that was made in this scope, in fewer steps. Not for numbers: those
// have to stay constants of plans.
PyObject *building_data(struct py_building *b, tn_array *array);

// Arrays of a Python list, for the scope of a building. The caller frees `items`, after a
// failure too.
struct array_list {
    tn_array **items;
    uint64_t count;
};

// False with an exception set.
bool array_list_get(struct py_building *b, PyObject *list, struct array_list *out);
// A list of Array objects; NULL with an exception set.
PyObject *array_list_wrap(struct py_building *b, tn_array *const *arrays, uint64_t count);

// --- array.c: the type Array ---

extern PyTypeObject *array_type;
bool array_init(PyObject *module);
// Gives an Array object. Takes the reference `array`, or the array of `trace`'s scope; on
// failure too.
PyObject *array_wrap(tn_array *array, struct py_trace *trace);
static inline bool array_check(PyObject *object)
{
    return Py_TYPE(object) == array_type || PyType_IsSubtype(Py_TYPE(object), array_type);
}
// watch(change): adds to the number of derivatives that this thread is taking; Arrays made
// while it is above 0 are watched. unwatch(array): reading the Array no longer copies it.
PyObject *watch_arrays(PyObject *module, PyObject *change);
PyObject *unwatch_array(PyObject *module, PyObject *array);
void array_set_watched(PyObject *array, bool is_watched);
// The type of an Array object; NULL with an exception set.
const tn_type *array_type_of(PyObject *object);
// alias(array): another Array of the same value, which stays when the first is replaced.
PyObject *alias_array(PyObject *module, PyObject *array);
// From array_use() to array_unuse() the Array's value stays alive, also when another thread
// replaces it.
void array_use(PyObject *array); // adds a reference to the object
void array_unuse(PyObject *array);
// The tn_array of an Array object, for the scope of `b`; NULL with an exception set for one
// that was donated, or of a trace that has ended.
tn_array *array_get(PyObject *object, const struct py_building *b);
// Within the body of a vmap, an array that depends on no slice has a value: the object then
// leaves the trace, and any scope may use it. False: the array depends on a slice.
bool array_leave_trace(struct py_array *self);

// arrays_of_body(): the live Arrays that the innermost running body has made.
PyObject *arrays_of_body(PyObject *module, PyObject *unused);

// array._replace(other): takes the value of another Array.
PyObject *array_replace(PyObject *object, PyObject *other);

// --- index.c: x[index] ---

PyObject *array_subscript(PyObject *self, PyObject *index);

// --- from_python.c: Python's objects to arrays ---

// The array of an operand in the scope of `b`: an Array, a number (without a dtype of its
// own where `weak`), or whatever array_from_object takes. NULL with an exception set.
tn_array *operand_get(struct py_building *b, PyObject *object, bool weak);
// The array of nested lists, a buffer, a DLPack tensor or a number, copied; `dtype`
// TN_DTYPE_NONE: the object's. NULL with an exception set.
tn_array *array_from_object(struct py_building *b, PyObject *object, tn_dtype dtype);
// A dtype from a tenon.dtype, a name ("f32", "float32"), a type of Python or of NumPy.
// False with an exception set.
bool dtype_from_object(PyObject *object, tn_dtype *out_dtype);
// The tenon.dtype object. New reference.
PyObject *dtype_object(tn_dtype dtype);
PyObject *set_dtypes(PyObject *module, PyObject *list);

// --- read.c: arrays to Python's objects ---

// Whether other libraries hold memory of arrays: then the runtime stays open.
bool has_exports(void);
int array_getbuffer(PyObject *self, Py_buffer *view, int flags);
void array_releasebuffer(PyObject *self, Py_buffer *view);
PyObject *array_item(PyObject *self, PyObject *unused);
PyObject *array_tolist(PyObject *self, PyObject *unused);
PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);
// The one element as a number of Python; NULL with an exception set.
PyObject *array_number(PyObject *self);

// --- dlpack.c: tensors of other libraries ---

// A tensor of a copy of the elements, row-major without gaps; NULL without memory, with an
// exception set.
struct DLManagedTensorVersioned *dlpack_copy(const struct DLTensor *t);
// The array of a copy of an object's tensor; NULL with an exception or the scope's failure.
tn_array *dlpack_copied(struct py_building *b, PyObject *object);
// from_dlpack(object, copy=None): an array of another library, in place where the device
// permits. copy: true, always a copy; false, an error where one would be needed.
PyObject *from_dlpack(PyObject *module, PyObject *args);

// --- operators.c: any primitive as a function of Python ---

// Applies an operator of one output to one or two operands: for +, - and the like.
PyObject *apply_unary(const char *name, PyObject *x);
// As x += y: x takes the result, converted to its shape and dtype, as its value.
PyObject *apply_in_place(const char *name, PyObject *x, PyObject *y);
PyObject *apply_binary(const char *name, PyObject *x, PyObject *y);
// operator(id, document=""): the function of Python that applies a primitive. Its document
// begins with its signature, as CPython's own.
PyObject *make_operator(PyObject *module, PyObject *args);
// held_operator(id, type, check): the same for a type derived from Held, whose objects hold
// Arrays: the function takes and gives such objects. check(): called, unless None, before
// the function gives a result of float64.
PyObject *make_held_operator(PyObject *module, PyObject *args);
// operators(): the ids of installed primitives. Loads no plugin.
PyObject *list_operators(PyObject *module, PyObject *unused);
PyObject *apply_expression(PyObject *module, PyObject *args);
// Fills `list` from attributes of Python by the table. See attrs.c.
#define MAX_ATTRS 32
struct attr_room {
    tn_attr items[MAX_ATTRS];
    tn_ints ints[MAX_ATTRS];
    tn_int_list int_lists[MAX_ATTRS];
    tn_float_list float_lists[MAX_ATTRS];
    void *lists[MAX_ATTRS]; // to be freed
    uint32_t count;
};
// Adds the value of one attribute. False with an exception set.
bool attr_add(struct py_building *b, struct attr_room *room, const tn_attr_field *field,
              PyObject *value);
void attr_room_free(struct attr_room *room);

// --- held.c: the type Held ---

extern PyTypeObject *held_type;
bool held_init(PyObject *module);
// The object that a Held holds, borrowed; NULL: nothing yet.
PyObject *held_value(PyObject *object);
// An object of `type`, derived from Held. Takes `value`, and gives NULL for NULL.
PyObject *held_make(PyTypeObject *type, PyObject *value);

// --- module/plugins.c: functions of the module; their definitions list the arguments ---

PyObject *list_plugins(PyObject *module, PyObject *unused);
PyObject *read_plugin_file(PyObject *module, PyObject *args);
PyObject *describe_plugin(PyObject *module, PyObject *args);
PyObject *verify_plugin(PyObject *module, PyObject *args);

// --- evaluate.c: functions of the module; their definitions list the arguments ---

// Computes the value of one array that is in use; false with an exception set.
bool evaluate_array(tn_array *array);
PyObject *async_eval_arrays(PyObject *module, PyObject *const *trees, Py_ssize_t count);
PyObject *eval_arrays(PyObject *module, PyObject *const *trees, Py_ssize_t count);
// have_values(arrays): whether each of a list of Arrays is data, or has elements that can
// be read without waiting and copying.
PyObject *arrays_have_values(PyObject *module, PyObject *list);
// array_address(Array): a number that objects of the same array have while one of them
// lives.
PyObject *array_address(PyObject *module, PyObject *object);
PyObject *vjp_arrays(PyObject *module, PyObject *args);
PyObject *jvp_arrays(PyObject *module, PyObject *args);
PyObject *explain_arrays(PyObject *module, PyObject *args);
PyObject *load_file(PyObject *module, PyObject *args);
PyObject *save_file(PyObject *module, PyObject *args);
PyObject *list_devices(PyObject *module, PyObject *unused);
PyObject *runtime_stats(PyObject *module, PyObject *unused);
// trim(flags): frees memory that is kept for reuse (1), resets the peak (2).
PyObject *trim_runtime(PyObject *module, PyObject *flags);

#endif // TENON_PYTHON_CORE_H

// SPDX-License-Identifier: MIT
// Functions that are traced once a signature, then replayed: the table of signatures, and
// calls that replay. Tracing is Python: method _trace of the class derived from this type.
#include "call.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/retain.h>
#include <time.h>

// --- entries ---

// The trace of one signature.
struct py_entry {
    struct py_entry *next; // with the same position in the table
    uint64_t hash, *words;
    PyObject **objects; // references
    uint32_t num_words, num_objects, num_used, num_outputs;
    tn_function *function;
    PyObject *graph;  // of its body
    PyObject **used;  // Arrays of the enclosing scope, references
    PyObject *result; // structure
    long long last;   // how long the last call took, in milliseconds; -1: none yet
    bool may_vary;    // the next one may take longer, by branches or loops in the body
};

#define TABLE 64

struct py_function {
    PyObject ob_base;
    PyObject *body, *is_static; // a callable; a tuple of bools
    struct py_entry *recent, *table[TABLE];
    uint32_t uses; // calls that replay
    struct py_held held;
};

static PyTypeObject *function_type;

static uint64_t py_function_hash_of(const struct py_call *c)
{
    uint64_t h = c->num_words;
    for (uint32_t i = 0; i < c->num_words; i++) {
        h = (h ^ c->words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

static int py_function_is_of(const struct py_entry *e, const struct py_call *c)
{
    int same = e && e->num_words == c->num_words && e->num_objects == c->num_objects &&
               memcmp(e->words, c->words, c->num_words * sizeof(*c->words)) == 0;
    for (uint32_t i = 0; same == 1 && i < c->num_objects; i++)
        same = call_is_same(e->objects[i], c->objects[i]);
    return same;
}

// Gives the entry of a call's signature in *out, or NULL. False with an exception set.
static bool py_function_find_entry(struct py_function *f, const struct py_call *c,
                                   uint64_t *out_hash, struct py_entry **out)
{
    int same = py_function_is_of(f->recent, c);
    *out = same == 1 ? f->recent : NULL;
    if (same)
        return same == 1;
    *out_hash = py_function_hash_of(c);
    for (struct py_entry *e = f->table[*out_hash % TABLE]; e && !same; e = e->next) {
        same = e->hash == *out_hash ? py_function_is_of(e, c) : 0;
        if (same == 1)
            f->recent = *out = e;
    }
    return same >= 0;
}

static void entry_free(struct py_entry *e)
{
    for (uint32_t i = 0; e->objects && i < e->num_objects; i++)
        Py_DECREF(e->objects[i]);
    for (uint32_t i = 0; e->used && i < e->num_used; i++)
        Py_DECREF(e->used[i]);
    tn_function_destroy(e->function);
    Py_XDECREF(e->graph);
    Py_XDECREF(e->result);
    free(e->words);
    free(e->objects);
    free(e->used);
    free(e);
}

// Copies of `count` objects, with references; NULL without memory.
static PyObject **copy_objects(PyObject *const *objects, uint32_t count)
{
    PyObject **copy = malloc((count + 1) * sizeof(*copy));
    for (uint32_t i = 0; copy && i < count; i++)
        copy[i] = Py_NewRef(objects[i]);
    return copy;
}

static bool copy_signature(struct py_entry *e, const struct py_call *c)
{
    e->words = malloc((c->num_words + 1) * sizeof(*e->words));
    e->objects = copy_objects(c->objects, c->num_objects);
    e->num_objects = c->num_objects;
    e->num_words = c->num_words;
    if (e->words)
        memcpy(e->words, c->words, c->num_words * sizeof(*e->words));
    return e->words && e->objects;
}

static bool copy_used(struct py_entry *e, PyObject *list)
{
    uint32_t count = (uint32_t)PyList_Size(list);
    e->used = malloc((count + 1) * sizeof(PyObject *));
    for (; e->used && e->num_used < count; e->num_used++)
        e->used[e->num_used] = Py_NewRef(PyList_GetItem(list, e->num_used));
    for (uint32_t i = 0; i < e->num_used; i++)
        array_set_watched(e->used[i], false);
    return e->used;
}

static tn_status py_function_run_graph(tn_scope *scope, tn_array *const *inputs,
                                       uint64_t num_inputs, tn_array **outputs,
                                       uint64_t num_outputs, void *user)
{
    return tn_graph_call(scope, user, inputs, num_inputs, outputs, num_outputs);
}

// `donated`: a list of the numbers of inputs.
static bool py_create_function(struct py_entry *e, PyObject *donated)
{
    uint32_t numbers[1024];
    tn_function_options options = {.struct_size = sizeof(options), .donated = numbers};
    Py_ssize_t count = PyList_Size(donated);
    if (count > 1024)
        PyErr_SetString(PyExc_ValueError, "at most 1024 inputs can be donated");
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++)
        numbers[i] = (uint32_t)PyLong_AsUnsignedLong(PyList_GetItem(donated, i));
    options.num_donated = (uint64_t)count;
    const tn_graph *graph = PyErr_Occurred() ? NULL : graph_get(e->graph);
    tn_runtime *runtime = graph ? runtime_get() : NULL;
    if (!runtime)
        return false;
    e->num_outputs = graph->num_outputs;
    tn_status status = tn_function_create(runtime, py_function_run_graph,
                                          (void *)(uintptr_t)graph, &options, &e->function);
    return status == TN_OK || raise_status(status, tn_last_error());
}

static bool fill_entry(struct py_entry *e, const struct py_call *c, PyObject *made)
{
    PyObject *graph, *used, *donated, *result;
    if (!PyArg_ParseTuple(made, "OO!O!O:_trace", &graph, &PyList_Type, &used, &PyList_Type,
                          &donated, &result))
        return false;
    e->last = -1;
    e->graph = Py_NewRef(graph);
    e->result = Py_NewRef(result);
    if (!copy_signature(e, c) || !copy_used(e, used))
        return PyErr_NoMemory(), false;
    return py_create_function(e, donated);
}

// Calls self._trace(arrays, plan, args, named): (graph, used, donated, result).
static PyObject *call_trace(struct py_function *self, PyObject *args, PyObject *named)
{
    struct py_call c;
    call_init(&c);
    c.plan = PyList_New(0);
    PyObject *made = NULL, *names = named ? Py_NewRef(named) : PyDict_New();
    PyObject *arrays = c.plan && names && call_add(&c, args, named, self->is_static)
                           ? PyList_New((Py_ssize_t)c.num_leaves)
                           : NULL;
    for (uint32_t i = 0; arrays && i < c.num_leaves; i++)
        PyList_SetItem(arrays, (Py_ssize_t)i, Py_NewRef(c.leaves[i]));
    if (arrays)
        made = PyObject_CallMethod((PyObject *)self, "_trace", "OOOO", arrays, c.plan, args,
                                   names);
    Py_XDECREF(arrays);
    Py_XDECREF(names);
    Py_XDECREF(c.plan);
    call_finish(&c);
    return made;
}

static struct py_entry *py_function_make_entry(struct py_function *self,
                                               const struct py_call *c, uint64_t hash,
                                               PyObject *args, PyObject *named)
{
    long branches = py_thread.branches;
    PyObject *made = call_trace(self, args, named);
    struct py_entry *e = made ? calloc(1, sizeof(*e)) : NULL;
    if (made && !e)
        PyErr_NoMemory();
    if (e && !fill_entry(e, c, made)) {
        entry_free(e);
        e = NULL;
    }
    Py_XDECREF(made);
    if (!e)
        return NULL;
    e->hash = hash;
    e->may_vary = py_thread.branches != branches;
    e->next = self->table[hash % TABLE];
    self->table[hash % TABLE] = e;
    self->recent = e;
    return e;
}

// --- replaying ---

#define FEW_OUTPUTS 16
// Milliseconds. An entry whose last call took longer is replayed on another thread; so is
// one that may_vary.
#define MOST_BRIEF 20

// A running call on another thread. Holds references to its inputs, since it goes on when a
// signal interrupts the caller.
struct py_replay {
    struct py_work work;
    tn_scope *scope;
    tn_function *function; // of an entry of `owner`
    PyObject *owner;       // the Function, a reference
    tn_array **inputs, **outputs;
    uint64_t num_inputs, num_outputs;
};

static void replay_run(struct py_work *work)
{
    struct py_replay *r = (struct py_replay *)work;
    tn_function_call(r->function, r->scope, r->inputs, r->num_inputs, r->outputs,
                     r->num_outputs);
}

// Called without the GIL, which it takes to release the Python objects.
static void replay_finish(struct py_work *work)
{
    struct py_replay *r = (struct py_replay *)work;
    tn_scope_close(r->scope);
    for (uint64_t i = 0; i < r->num_inputs; i++)
        tn_release(r->inputs[i]);
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(r->owner);
    PyGILState_Release(state);
    free(r);
}

static long long now_in_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// The outputs, arrays of the building's scope, in the structure of the body's result.
static PyObject *wrap_results(struct py_building *b, const struct py_entry *e,
                              tn_array *const *outputs)
{
    PyObject *few[FEW_OUTPUTS] = {NULL};
    PyObject **objects = few;
    if (e->num_outputs > FEW_OUTPUTS &&
        !(objects = malloc(e->num_outputs * sizeof(*objects))))
        return PyErr_NoMemory();
    uint32_t count = 0;
    while (count < e->num_outputs && (objects[count] = building_data(b, outputs[count])))
        count++;
    PyObject *tree =
        count == e->num_outputs ? tree_of(e->result, objects, e->num_outputs) : NULL;
    while (count > 0)
        Py_DECREF(objects[--count]);
    if (objects != few)
        free(objects);
    return tree;
}

// Replays on another thread, in a scope of its own, which outlives an interrupted call.
static PyObject *replay_apart(PyObject *self, struct py_entry *e, tn_array *const *inputs,
                              uint64_t count)
{
    struct py_building b;
    struct py_replay *r =
        malloc(sizeof(*r) + (count + e->num_outputs) * sizeof(tn_array *));
    if (!r)
        return PyErr_NoMemory();
    if (!building_begin_apart(&b)) {
        free(r);
        return NULL;
    }
    *r = (struct py_replay){.work = {.run = replay_run, .finish = replay_finish},
                            .scope = b.scope,
                            .function = e->function,
                            .owner = Py_NewRef(self),
                            .inputs = (tn_array **)(r + 1),
                            .outputs = (tn_array **)(r + 1) + count,
                            .num_outputs = e->num_outputs};
    while (r->num_inputs < count &&
           (r->inputs[r->num_inputs] = tn_retain(NULL, inputs[r->num_inputs])))
        r->num_inputs++;
    PyObject *result = NULL;
    if (r->num_inputs < count)
        raise_status(TN_ERR_ARGUMENT, tn_last_error());
    else if (!work_wait(&r->work))
        return NULL;
    else if (tn_scope_status(b.scope) != TN_OK)
        raise_scope(b.scope);
    else
        result = wrap_results(&b, e, r->outputs);
    replay_finish(&r->work);
    return result;
}

static PyObject *replay_here(struct py_building *b, const struct py_entry *e,
                             tn_array *const *inputs, uint64_t count)
{
    tn_array *few[FEW_OUTPUTS];
    tn_array **outputs = few;
    tn_status status;
    if (e->num_outputs > FEW_OUTPUTS &&
        !(outputs = malloc(e->num_outputs * sizeof(*outputs))))
        return PyErr_NoMemory();
    if (b->trace || py_thread.watching > 0) {
        // A surrounding trace or derivative needs the body's nodes.
        status = tn_graph_call(b->scope, graph_get(e->graph), inputs, count, outputs,
                               e->num_outputs);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        status =
            tn_function_call(e->function, b->scope, inputs, count, outputs, e->num_outputs);
        Py_END_ALLOW_THREADS;
    }
    PyObject *result =
        status == TN_OK ? wrap_results(b, e, outputs) : raise_scope(b->scope);
    if (outputs != few)
        free(outputs);
    return result;
}

static PyObject *py_function_replay(PyObject *self, struct py_entry *e,
                                    tn_array *const *inputs, uint64_t count)
{
    struct py_building b;
    long long begin = now_in_milliseconds();
    bool is_brief = trace_current() || py_thread.watching > 0 ||
                    (e->last >= 0 && e->last <= MOST_BRIEF && !e->may_vary);
    py_thread.branches += e->may_vary; // then the enclosing body may vary, too
    PyObject *result = NULL;
    if (!is_brief) {
        result = replay_apart(self, e, inputs, count);
    } else if (building_begin(&b)) {
        result = replay_here(&b, e, inputs, count);
        building_end(&b);
    }
    e->last = now_in_milliseconds() - begin;
    return result;
}

// The arrays of the arguments and of what the body used, each in use meanwhile.
static PyObject *replay_call(PyObject *self, struct py_entry *e, const struct py_call *c)
{
    struct py_building where = {.trace = trace_current()};
    tn_array *few[FEW_OUTPUTS * 4];
    tn_array **inputs = few;
    uint64_t count = c->num_leaves + e->num_used, used = 0;
    if (!e->function)
        return raise_status(TN_ERR_ARGUMENT, "tenon: the interpreter is being shut down");
    if (count > sizeof(few) / sizeof(few[0]) && !(inputs = malloc(count * sizeof(*inputs))))
        return PyErr_NoMemory();
    for (; used < count; used++) {
        PyObject *array =
            used < c->num_leaves ? c->leaves[used] : e->used[used - c->num_leaves];
        if (!(inputs[used] = array_get(array, &where)))
            break;
        array_use(array);
    }
    ((struct py_function *)self)->uses++;
    PyObject *result = used == count ? py_function_replay(self, e, inputs, count) : NULL;
    ((struct py_function *)self)->uses--;
    for (uint64_t i = 0; i < used; i++)
        array_unuse(i < c->num_leaves ? c->leaves[i] : e->used[i - c->num_leaves]);
    if (inputs != few)
        free(inputs);
    return result;
}

static PyObject *py_function_call(PyObject *object, PyObject *args, PyObject *named)
{
    PY_GUARD;
    struct py_function *self = (struct py_function *)object;
    struct py_call c;
    struct py_entry *e = NULL;
    uint64_t hash = 0;
    PyObject *result = NULL;
    if (!self->body) {
        PyErr_SetString(PyExc_TypeError, "function: it has no body");
        return NULL;
    }
    call_init(&c);
    if (call_add(&c, args, named, self->is_static) &&
        py_function_find_entry(self, &c, &hash, &e)) {
        // No entry: the body uses Arrays of the enclosing trace, which end with it.
        if (!e && trace_current())
            result = PyObject_Call(self->body, args, named);
        else if (e || (e = py_function_make_entry(self, &c, hash, args, named)))
            result = replay_call(object, e, &c);
    }
    call_finish(&c);
    return result;
}

// --- the type ---

static void drop_functions(struct py_held *held)
{
    struct py_function *self =
        (struct py_function *)((char *)held - offsetof(struct py_function, held));
    for (uint32_t i = 0; i < TABLE && self->uses == 0; i++)
        for (struct py_entry *e = self->table[i]; e; e = e->next) {
            tn_function_destroy(e->function);
            e->function = NULL;
        }
}

// Function(body, is_static).
static int function_setup(PyObject *object, PyObject *args, PyObject *named)
{
    PY_GUARD;
    struct py_function *self = (struct py_function *)object;
    PyObject *body, *is_static;
    (void)named;
    if (!PyArg_ParseTuple(args, "OO!:Function", &body, &PyTuple_Type, &is_static))
        return -1;
    if (self->body) {
        PyErr_SetString(PyExc_TypeError, "function: it has a body already");
        return -1;
    }
    self->body = Py_NewRef(body);
    self->is_static = Py_NewRef(is_static);
    held_add(&self->held, drop_functions);
    return 0;
}

static int function_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct py_function *self = (struct py_function *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->body);
    for (uint32_t i = 0; i < TABLE; i++)
        for (struct py_entry *e = self->table[i]; e; e = e->next) {
            Py_VISIT(e->result);
            for (uint32_t k = 0; k < e->num_objects; k++)
                Py_VISIT(e->objects[k]);
        }
    return 0;
}

static int function_clear(PyObject *object)
{
    PY_GUARD;
    struct py_function *self = (struct py_function *)object;
    self->recent = NULL;
    for (uint32_t i = 0; i < TABLE; i++)
        while (self->table[i]) {
            struct py_entry *e = self->table[i];
            self->table[i] = e->next;
            entry_free(e);
        }
    Py_CLEAR(self->body);
    return 0;
}

static void function_dealloc(PyObject *object)
{
    PY_GUARD;
    struct py_function *self = (struct py_function *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    held_remove(&self->held);
    function_clear(object);
    Py_CLEAR(self->is_static);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

bool function_init(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_init, function_setup},
                                  {Py_tp_new, PyType_GenericNew},
                                  {Py_tp_dealloc, function_dealloc},
                                  {Py_tp_call, py_function_call},
                                  {Py_tp_traverse, function_traverse},
                                  {Py_tp_clear, function_clear},
                                  {0, NULL}};
    static PyType_Spec spec = {.name = "tenon._core.Function",
                               .basicsize = sizeof(struct py_function),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                        Py_TPFLAGS_HAVE_GC,
                               .slots = slots};
    function_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return function_type && call_init_module(module) &&
           PyModule_AddObjectRef(module, "Function", (PyObject *)function_type) == 0;
}

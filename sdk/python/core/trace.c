// SPDX-License-Identifier: MIT
// Bodies in Python: traced once into a graph, which functions replay, and which batches,
// branches and loops put in place.
#include "trace.h"

#include <stdlib.h>
#include <string.h>

// --- traces ---

struct py_trace *trace_retain(struct py_trace *trace)
{
    trace->refs++;
    return trace;
}

void trace_release(struct py_trace *trace)
{
    if (--trace->refs == 0)
        free(trace);
}

struct py_trace *trace_begin(const char *what, tn_scope *scope)
{
    struct py_trace *trace = malloc(sizeof(*trace));
    if (!trace)
        return NULL;
    *trace = (struct py_trace){
        .refs = 1, .what = what, .scope = scope, .outer = py_thread.innermost};
    py_thread.innermost = trace;
    return trace;
}

void trace_end(struct py_trace *trace)
{
    py_thread.innermost = trace->outer;
    trace->scope = NULL;
    trace_release(trace);
}

// --- graphs ---

struct py_graph {
    PyObject ob_base;
    const tn_graph *graph; // a reference
    struct py_held held;
};

static PyTypeObject *graph_type;

static void drop_graph(struct py_held *held)
{
    struct py_graph *self =
        (struct py_graph *)((char *)held - offsetof(struct py_graph, held));
    tn_graph_release(self->graph);
    self->graph = NULL;
}

static void graph_dealloc(PyObject *object)
{
    PY_GUARD;
    struct py_graph *self = (struct py_graph *)object;
    PyTypeObject *type = Py_TYPE(object);
    held_remove(&self->held);
    drop_graph(&self->held);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

const tn_graph *graph_get(PyObject *object)
{
    bool is_graph = Py_TYPE(object) == graph_type;
    const tn_graph *graph = is_graph ? ((struct py_graph *)object)->graph : NULL;
    if (!graph)
        PyErr_SetString(PyExc_TypeError, is_graph ? "the interpreter is being shut down"
                                                  : "expected a graph");
    return graph;
}

PyObject *graph_wrap(const tn_graph *graph)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(graph_type, Py_tp_alloc);
    struct py_graph *self = (struct py_graph *)alloc(graph_type, 0);
    if (!self)
        return NULL;
    self->graph = tn_graph_retain(graph);
    held_add(&self->held, drop_graph);
    return (PyObject *)self;
}

PyObject *graph_address(PyObject *module, PyObject *object)
{
    PY_GUARD;
    (void)module;
    const tn_graph *graph = graph_get(object);
    return graph ? PyLong_FromVoidPtr((void *)(uintptr_t)graph) : NULL;
}

PyObject *graph_size(PyObject *module, PyObject *object)
{
    PY_GUARD;
    (void)module;
    const tn_graph *graph = graph_get(object);
    return graph ? PyLong_FromUnsignedLong(graph->num_nodes) : NULL;
}

PyObject *graph_num_outputs(PyObject *module, PyObject *object)
{
    PY_GUARD;
    (void)module;
    const tn_graph *graph = graph_get(object);
    return graph ? PyLong_FromUnsignedLong(graph->num_outputs) : NULL;
}

// A body in Python, while it is traced.
struct python_body {
    const char *what;
    PyObject *callable; // from a list of Arrays to a list of Arrays
    bool is_counted;    // traced for a given number of outputs
};

static PyObject *call_with(struct py_trace *trace, PyObject *callable,
                           tn_array *const *inputs, uint64_t count)
{
    struct py_building b = {.scope = trace->scope, .trace = trace};
    PyObject *list = array_list_wrap(&b, inputs, count);
    PyObject *result = list ? PyObject_CallFunctionObjArgs(callable, list, NULL) : NULL;
    Py_XDECREF(list);
    return result;
}

static tn_status py_trace_write_results(tn_scope *scope, const struct array_list *results,
                                        tn_array **outputs, uint64_t num_outputs)
{
    if (results->count != num_outputs)
        return tn_scope_fail(
            scope, TN_ERR_ARGUMENT, "the body gave %llu arrays, expected %llu",
            (unsigned long long)results->count, (unsigned long long)num_outputs);
    if (num_outputs)
        memcpy(outputs, results->items, num_outputs * sizeof(*outputs));
    return TN_OK;
}

static tn_status run_python(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    const struct python_body *body = user;
    struct py_trace *trace = trace_begin(body->what, scope);
    if (!trace)
        return TN_ERR_MEMORY;
    struct py_building b = {.scope = scope, .trace = trace};
    struct array_list results = {0};
    PyObject *list = scope_choose_device(scope)
                         ? call_with(trace, body->callable, inputs, num_inputs)
                         : NULL;
    bool returned = list && array_list_get(&b, list, &results);
    tn_status status;
    if (!returned)
        status = tn_scope_fail(scope, TN_ERR_ARGUMENT, "the body raised");
    else if (body->is_counted)
        status = py_trace_write_results(scope, &results, outputs, num_outputs);
    else
        status = tn_graph_outputs(scope, results.items, results.count);
    free(results.items);
    Py_XDECREF(list);
    trace_end(trace);
    return status;
}

// The types of a body's arguments: those of the arrays, without the axes in `axes`.
static bool argument_types(const struct array_list *arrays, PyObject *axes, tn_type *types)
{
    for (uint64_t i = 0; i < arrays->count; i++) {
        types[i] = *tn_array_type(arrays->items[i]);
        PyObject *item = axes == Py_None ? NULL : PySequence_GetItem(axes, (Py_ssize_t)i);
        long axis = item ? PyLong_AsLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return false;
        if (axis >= types[i].rank) {
            PyErr_Format(PyExc_ValueError,
                         "vmap: input %llu has %d axes, none of number %ld",
                         (unsigned long long)i, types[i].rank, axis);
            return false;
        }
        if (axis < 0)
            continue;
        types[i].rank--;
        for (int32_t k = (int32_t)axis; k < types[i].rank; k++)
            types[i].extent[k] = types[i].extent[k + 1];
        types[i].extent[types[i].rank] = 0;
    }
    return true;
}

tn_status run_callable(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                       tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct python_body body = {.what = "function", .callable = user, .is_counted = true};
    return run_python(scope, inputs, num_inputs, outputs, num_outputs, &body);
}

// A body to trace, in Python or in C.
struct traced_body {
    tn_function_body run;
    void *user;
    uint64_t num_outputs;
};

static PyObject *trace_graph(struct py_building *b, const struct traced_body *body,
                             const tn_type *types, uint64_t count)
{
    tn_captures captures = {0};
    const tn_graph *graph;
    tn_status status = tn_graph_trace(b->scope, body->run, body->user, types, count,
                                      body->num_outputs, &captures, &graph);
    if (status != TN_OK || PyErr_Occurred())
        return raise_scope(b->scope);
    PyObject *object = graph_wrap(graph);
    PyObject *used = object ? array_list_wrap(b, captures.arrays, captures.count) : NULL;
    PyObject *pair = used ? PyTuple_Pack(2, object, used) : NULL;
    Py_XDECREF(object);
    Py_XDECREF(used);
    return pair;
}

// `axes`: None, or the axis of each array that the body's argument lacks.
static PyObject *trace_for(const struct traced_body *body, PyObject *list, PyObject *axes)
{
    struct py_building b;
    if (!building_begin(&b))
        return NULL;
    struct array_list arrays;
    PyObject *result = NULL;
    bool has_arrays = array_list_get(&b, list, &arrays);
    tn_type *types = has_arrays ? calloc(arrays.count + 1, sizeof(*types)) : NULL;
    if (types && argument_types(&arrays, axes, types))
        result = trace_graph(&b, body, types, arrays.count);
    else if (has_arrays && !types)
        PyErr_NoMemory();
    free(types);
    free(arrays.items);
    building_end(&b);
    return result;
}

// A body in C, whose operations are applied on the thread's device.
static tn_status run_there(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                           tn_array **outputs, uint64_t num_outputs, void *user)
{
    const struct traced_body *body = user;
    if (!scope_choose_device(scope))
        return tn_scope_fail(scope, TN_ERR_ARGUMENT, "the device cannot be chosen");
    return body->run(scope, inputs, num_inputs, outputs, num_outputs, body->user);
}

PyObject *trace_body(tn_function_body body, void *user, PyObject *arrays,
                     uint64_t num_outputs)
{
    struct traced_body own = {body, user, num_outputs};
    return trace_for(&(struct traced_body){run_there, &own, num_outputs}, arrays, Py_None);
}

PyObject *graph_trace(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    static const char *const known[] = {"function",        "vmap",   "cond",
                                        "while_loop",      "scan",   "checkpoint",
                                        "custom_function", "kernel", "saved graph"};
    const char *what;
    struct python_body body = {.what = "graph"};
    PyObject *list, *axes = Py_None;
    if (!PyArg_ParseTuple(args, "sOO|O:graph_trace", &what, &body.callable, &list, &axes))
        return NULL;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(what, known[i]) == 0)
            body.what = known[i];
    return trace_for(&(struct traced_body){run_python, &body, TN_OUTPUTS_ANY}, list, axes);
}

// --- graphs in place ---

// A body in C: a graph, and the arrays of the enclosing scope that the traced body used.
struct py_bound {
    const tn_graph *graph;
    struct array_list used;
};

static tn_status bound_call(const struct py_bound *body, tn_scope *scope,
                            tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs)
{
    tn_array **all = malloc((num_inputs + body->used.count + 1) * sizeof(*all));
    if (!all)
        return TN_ERR_MEMORY;
    if (num_inputs)
        memcpy(all, inputs, num_inputs * sizeof(*all));
    if (body->used.count)
        memcpy(all + num_inputs, body->used.items, body->used.count * sizeof(*all));
    tn_status status = tn_graph_call(scope, body->graph, all, num_inputs + body->used.count,
                                     outputs, num_outputs);
    free(all);
    return status;
}

static tn_status py_trace_run_first(tn_scope *scope, tn_array *const *inputs,
                                    uint64_t num_inputs, tn_array **outputs,
                                    uint64_t num_outputs, void *user)
{
    return bound_call(user, scope, inputs, num_inputs, outputs, num_outputs);
}

static tn_status run_second(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    return bound_call((const struct py_bound *)user + 1, scope, inputs, num_inputs, outputs,
                      num_outputs);
}

// From a pair (graph, arrays that it used), or None.
static bool bound_get(struct py_building *b, PyObject *pair, struct py_bound *out)
{
    PyObject *graph, *used;
    *out = (struct py_bound){0};
    if (pair == Py_None)
        return true;
    if (!PyArg_ParseTuple(pair, "OO", &graph, &used))
        return false;
    out->graph = graph_get(graph);
    return out->graph && array_list_get(b, used, &out->used);
}

// A call with up to two bodies on a list of arrays, and room for its results.
struct bodies {
    struct py_building b;
    struct py_bound body[2];
    struct array_list inputs;
    tn_array **outputs;
    uint64_t num_outputs;
};

static bool bodies_begin(struct bodies *c, PyObject *first, PyObject *second,
                         PyObject *inputs)
{
    memset(c, 0, sizeof(*c));
    if (!building_begin(&c->b))
        return false;
    if (!bound_get(&c->b, first, &c->body[0]) || !bound_get(&c->b, second, &c->body[1]) ||
        !array_list_get(&c->b, inputs, &c->inputs))
        return false;
    c->num_outputs = (c->body[0].graph ? c->body[0].graph : c->body[1].graph)->num_outputs;
    c->outputs = calloc(c->num_outputs + 1, sizeof(tn_array *));
    if (!c->outputs)
        PyErr_NoMemory();
    return c->outputs != NULL;
}

static PyObject *bodies_end(struct bodies *c, bool begun, tn_status status)
{
    PyObject *result = NULL;
    if (begun)
        result = status == TN_OK ? array_list_wrap(&c->b, c->outputs, c->num_outputs)
                                 : raise_scope(c->b.scope);
    free(c->outputs);
    free(c->inputs.items);
    free(c->body[0].used.items);
    free(c->body[1].used.items);
    if (c->b.scope)
        building_end(&c->b);
    return result;
}

PyObject *graph_call(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    py_thread.branches++; // a graph of a file may have branches
    PyObject *pair, *list;
    struct bodies c;
    if (!PyArg_ParseTuple(args, "OO:graph_call", &pair, &list))
        return NULL;
    bool begun = bodies_begin(&c, pair, Py_None, list);
    return bodies_end(&c, begun,
                      begun ? bound_call(&c.body[0], c.b.scope, c.inputs.items,
                                         c.inputs.count, c.outputs, c.num_outputs)
                            : TN_OK);
}

PyObject *control_cond(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *pred, *then, *otherwise, *list;
    struct bodies c;
    if (!PyArg_ParseTuple(args, "OOOO:cond", &pred, &then, &otherwise, &list))
        return NULL;
    py_thread.branches++;
    bool begun = bodies_begin(&c, then, otherwise, list);
    tn_array *condition = begun ? operand_get(&c.b, pred, false) : NULL;
    begun = begun && condition;
    return bodies_end(&c, begun,
                      begun ? tn_cond_call(c.b.scope, condition, py_trace_run_first,
                                           run_second, c.body, c.inputs.items,
                                           c.inputs.count, c.outputs, c.num_outputs)
                            : TN_OK);
}

PyObject *control_while(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *body, *cond, *list;
    long long times;
    struct bodies c;
    if (!PyArg_ParseTuple(args, "OOLO:while_loop", &body, &cond, &times, &list))
        return NULL;
    py_thread.branches++;
    bool begun = bodies_begin(&c, body, cond, list);
    tn_function_body test = begun && c.body[1].graph ? run_second : NULL;
    return bodies_end(&c, begun,
                      begun
                          ? tn_while_call(c.b.scope, test, py_trace_run_first, c.body,
                                          times, c.inputs.items, c.inputs.count, c.outputs)
                          : TN_OK);
}

PyObject *control_scan(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *body, *list;
    tn_scan_call_options options = {.struct_size = sizeof(options)};
    unsigned long long carries;
    long long length;
    int reverse;
    struct bodies c;
    if (!PyArg_ParseTuple(args, "OKLpO:scan", &body, &carries, &length, &reverse, &list))
        return NULL;
    options.carries = carries;
    options.length = length;
    options.reverse = reverse;
    bool begun = bodies_begin(&c, body, Py_None, list);
    return bodies_end(&c, begun,
                      begun ? tn_scan_call(c.b.scope, py_trace_run_first, c.body, &options,
                                           c.inputs.items, c.inputs.count, c.outputs,
                                           c.num_outputs)
                            : TN_OK);
}

PyObject *control_checkpoint(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *body, *list;
    struct bodies c;
    if (!PyArg_ParseTuple(args, "OO:checkpoint", &body, &list))
        return NULL;
    bool begun = bodies_begin(&c, body, Py_None, list);
    return bodies_end(&c, begun,
                      begun ? tn_checkpoint_call(c.b.scope, py_trace_run_first, c.body,
                                                 c.inputs.items, c.inputs.count, c.outputs,
                                                 c.num_outputs)
                            : TN_OK);
}

// Axes from a list of as many integers; -1 where an array has none. NULL with an exception.
static int32_t *axes_get(PyObject *list, uint64_t count)
{
    int32_t *axes = calloc(count + 1, sizeof(*axes));
    if (!axes)
        return PyErr_NoMemory(), NULL;
    for (uint64_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(list, (Py_ssize_t)i);
        axes[i] = item ? (int32_t)PyLong_AsLong(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return free(axes), NULL;
    }
    return axes;
}

// A body of vmap, which builds in the enclosing scope: nodes of arrays that are not mapped
// can be evaluated there.
struct mapped_body {
    PyObject *callable; // from a list of Arrays to (list of Arrays, axes)
    tn_array **slices;  // room for as many as there are inputs
    struct py_mapping mapping;
    struct array_list outputs;
    int32_t *out_axes;
};

static tn_status run_mapped(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)outputs, (void)num_outputs;
    struct mapped_body *body = user;
    PyObject *list, *axes;
    struct py_trace *trace = trace_begin("vmap", scope);
    if (!trace)
        return TN_ERR_MEMORY;
    struct py_building b = {.scope = scope, .trace = trace};
    if (num_inputs)
        memcpy(body->slices, inputs, num_inputs * sizeof(*inputs));
    trace->mapping = &body->mapping;
    PyObject *pair = call_with(trace, body->callable, inputs, num_inputs);
    bool done = pair && PyArg_ParseTuple(pair, "OO", &list, &axes) &&
                array_list_get(&b, list, &body->outputs);
    body->out_axes = done ? axes_get(axes, body->outputs.count) : NULL;
    Py_XDECREF(pair);
    trace_end(trace);
    return body->out_axes ? TN_OK
                          : tn_scope_fail(scope, TN_ERR_ARGUMENT, "the body raised");
}

static tn_status map_body(tn_scope *scope, struct mapped_body *body,
                          const struct array_list *inputs, const int32_t *in_axes,
                          tn_array ***out_batches)
{
    body->mapping =
        (struct py_mapping){body->slices, inputs->items, in_axes, inputs->count};
    tn_status status = tn_vmap_call(scope, run_mapped, body, inputs->items, in_axes,
                                    inputs->count, inputs->items, NULL, 0);
    if (status == TN_OK)
        *out_batches = calloc(body->outputs.count + 1, sizeof(**out_batches));
    if (status == TN_OK && !*out_batches)
        return tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory");
    return status == TN_OK
               ? tn_vmap(scope, body->outputs.items, body->out_axes, body->outputs.count,
                         body->slices, inputs->items, in_axes, inputs->count, *out_batches)
               : status;
}

PyObject *vmap_body(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *list, *in, *result = NULL;
    struct mapped_body body = {0};
    struct py_building b;
    if (!PyArg_ParseTuple(args, "OOO:vmap", &body.callable, &list, &in) ||
        !building_begin(&b))
        return NULL;
    struct array_list inputs;
    tn_array **batches = NULL;
    int32_t *in_axes =
        array_list_get(&b, list, &inputs) ? axes_get(in, inputs.count) : NULL;
    body.slices = in_axes ? calloc(inputs.count + 1, sizeof(*body.slices)) : NULL;
    if (body.slices)
        result = map_body(b.scope, &body, &inputs, in_axes, &batches) == TN_OK
                     ? array_list_wrap(&b, batches, body.outputs.count)
                     : raise_scope(b.scope);
    else if (in_axes)
        PyErr_NoMemory();
    free(batches);
    free(body.slices);
    free(body.outputs.items);
    free(body.out_axes);
    free(in_axes);
    free(inputs.items);
    building_end(&b);
    return result;
}

PyObject *batch_of(PyObject *module, PyObject *object)
{
    PY_GUARD;
    (void)module;
    struct py_array *self = (struct py_array *)object;
    struct py_trace *trace = array_check(object) ? self->trace : NULL;
    if (!trace || !trace->scope || !trace->mapping || array_leave_trace(self))
        Py_RETURN_NONE;
    const struct py_mapping *m = trace->mapping;
    struct py_building b = {.scope = trace->scope, .trace = trace->outer};
    tn_array *batch;
    tn_status status = tn_vmap(b.scope, &self->array, NULL, 1, m->slices, m->inputs,
                               m->axes, m->count, &batch);
    return status == TN_OK ? building_array(&b, batch) : raise_scope(b.scope);
}

bool trace_init(PyObject *module)
{
    (void)module;
    static PyType_Slot graph_slots[] = {{Py_tp_dealloc, graph_dealloc}, {0, NULL}};
    static PyType_Spec graph_spec = {.name = "tenon._core.Graph",
                                     .basicsize = sizeof(struct py_graph),
                                     .flags = Py_TPFLAGS_DEFAULT |
                                              Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                     .slots = graph_slots};
    graph_type = (PyTypeObject *)PyType_FromSpec(&graph_spec);
    return graph_type != NULL;
}

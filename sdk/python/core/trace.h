// SPDX-License-Identifier: MIT
// Traces: bodies of functions, batches, branches and loops, which build graph in a scope
// that ends with the body.
#ifndef TENON_PYTHON_TRACE_H
#define TENON_PYTHON_TRACE_H

#include "core.h"

#include <tenon/control.h>

// A running body. Its Array objects refer to it, so that using one after the body's end is
// an error.
struct py_trace {
    uint32_t refs;
    const char *what;                 // "function", "vmap": for messages; static
    tn_scope *scope;                  // borrowed from the core; NULL: the body has ended
    struct py_trace *outer;           // that this thread returns to
    const struct py_mapping *mapping; // of a vmap
};

// Arrays that the body of a vmap is mapped over. Borrowed.
struct py_mapping {
    tn_array *const *slices, *const *inputs;
    const int32_t *axes;
    uint64_t count;
};

// The innermost trace of this thread, or NULL. Borrowed.
static inline struct py_trace *trace_current(void)
{
    return py_thread.innermost;
}
struct py_trace *trace_retain(struct py_trace *trace);
void trace_release(struct py_trace *trace);

// Begins a body in `scope`, until trace_end; `what` is static. NULL without memory.
struct py_trace *trace_begin(const char *what, tn_scope *scope);
void trace_end(struct py_trace *trace);

// The graph of a Graph object, borrowed; NULL with an exception set.
const tn_graph *graph_get(PyObject *object);
// A Graph object of a graph.
PyObject *graph_wrap(const tn_graph *graph);
// graph_address(graph): a number that graphs of equal structure have while one of them
// lives.
PyObject *graph_address(PyObject *module, PyObject *object);
// graph_size(graph): how many operations it has; graph_outputs(graph): how many outputs.
PyObject *graph_size(PyObject *module, PyObject *object);
PyObject *graph_num_outputs(PyObject *module, PyObject *object);

// --- custom.c: rules of derivatives and batching in Python ---

// custom_rules(vjp, jvp, vmap): an object for custom_call, of callables or None, which
// lives as long as a graph that has it:
//   vjp(inputs, outputs, cotangents, wanted) -> a list, an Array or None for each input
//   jvp(inputs, outputs, tangents) -> a list for the outputs
//   vmap(inputs, axes, size) -> (outputs, axes of outputs)
// Lists have None for an array that is not given, and for no axis.
PyObject *custom_rules(PyObject *module, PyObject *args);
// custom_call(graph, rules, arrays): the outputs of a graph with rules of its own.
PyObject *custom_call(PyObject *module, PyObject *args);

// graph_trace(what, body, types): calls body(list of Arrays), which returns a list of
// Arrays. Gives (Graph, list of the Arrays of the enclosing scope that the body used).
PyObject *graph_trace(PyObject *module, PyObject *args);
// See struct py_host.
tn_status run_callable(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                       tn_array **outputs, uint64_t num_outputs, void *user);
PyObject *trace_body(tn_function_body body, void *user, PyObject *arrays,
                     uint64_t num_outputs);
// graph_call(graph, arrays): the graph's outputs, in place.
PyObject *graph_call(PyObject *module, PyObject *args);
// vmap(body, arrays, in_axes): calls body(list of Arrays), which returns (list of Arrays,
// axes of these); axes are -1 for none.
PyObject *vmap_body(PyObject *module, PyObject *args);
// batch_of(array): within the body of a vmap, all slices of an Array of it, along axis 0;
// None for an array that is not of one, or the same for each slice.
PyObject *batch_of(PyObject *module, PyObject *array);
// cond(pred, then, otherwise, arrays), while_loop(cond, body, times, arrays),
// scan(body, carries, length, reverse, arrays), checkpoint(body, arrays): bodies are
// callables from list to list.
PyObject *control_cond(PyObject *module, PyObject *args);
PyObject *control_while(PyObject *module, PyObject *args);
PyObject *control_scan(PyObject *module, PyObject *args);
PyObject *control_checkpoint(PyObject *module, PyObject *args);
bool trace_init(PyObject *module);

// --- graphs.c: files of graphs ---

// save_graph(path, list of (name, graph, names of inputs, of outputs, arrays that the body
// used)).
PyObject *graphs_save(PyObject *module, PyObject *args);
// load_graph(path): a list of (name, graph, names of inputs, their types as (shape, dtype),
// names of outputs, their types, constants).
PyObject *graphs_load(PyObject *module, PyObject *args);

// --- function.c ---

// The type Function: see there.
bool function_init(PyObject *module);

#endif // TENON_PYTHON_TRACE_H

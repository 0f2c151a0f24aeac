// SPDX-License-Identifier: MIT
// The module tenon._core: the list of its functions.
#include "define.h"
#include "../core/trace.h"

// array(object, dtype or None): a new Array.
static PyObject *make_array(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *object, *kind = Py_None;
    tn_dtype dtype = TN_DTYPE_NONE;
    if (!PyArg_ParseTuple(args, "O|O:array", &object, &kind) ||
        (kind != Py_None && !dtype_from_object(kind, &dtype)))
        return NULL;
    struct py_building b;
    if (!building_begin(&b))
        return NULL;
    tn_array *array = array_from_object(&b, object, dtype);
    bool is_data = array && !array_check(object) && tn_array_type(array)->rank > 0;
    PyObject *result = PyErr_Occurred() ? NULL
                       : is_data        ? building_data(&b, array)
                                        : building_array(&b, array);
    building_end(&b);
    return result;
}

// is_tracing(): whether a body of a function, batch, branch or loop is running.
static PyObject *is_tracing(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    return PyBool_FromLong(trace_current() != NULL);
}

static const char eval_text[] =
    "eval(*trees)\n--\n\n"
    "Computes the arrays in trees, and returns when they are done.";
static const char async_eval_text[] =
    "async_eval(*trees)\n--\n\n"
    "Starts computing the arrays in trees, and returns at once.";
static const char flatten_text[] =
    "tree_flatten(tree)\n--\n\n"
    "The leaves of a tree, in order, and what tree_unflatten() makes the tree of again.\n"
    "None is a tree without leaves; keys of dicts are sorted.";
static const char unflatten_text[] =
    "tree_unflatten(structure, leaves)\n--\n\n"
    "The tree of a structure that tree_flatten() gave, with other leaves.";

static PyMethodDef functions[] = {
    {"array", make_array, METH_VARARGS, NULL},
    {"from_dlpack", from_dlpack, METH_VARARGS, NULL},
    {"operator", make_operator, METH_VARARGS, NULL},
    {"held_operator", make_held_operator, METH_VARARGS, NULL},
    {"operators", list_operators, METH_NOARGS, NULL},
    {"plugins", list_plugins, METH_NOARGS, NULL},
    {"plugin_file", read_plugin_file, METH_VARARGS, NULL},
    {"describe_plugin", describe_plugin, METH_VARARGS, NULL},
    {"verify_plugin", verify_plugin, METH_VARARGS, NULL},
    {"expr", apply_expression, METH_VARARGS, NULL},
    {"eval", (PyCFunction)(void (*)(void))eval_arrays, METH_FASTCALL, eval_text},
    {"async_eval", (PyCFunction)(void (*)(void))async_eval_arrays, METH_FASTCALL,
     async_eval_text},
    {"have_values", arrays_have_values, METH_O, NULL},
    {"array_address", array_address, METH_O, NULL},
    {"alias", alias_array, METH_O, NULL},
    {"flatten", tree_flatten, METH_O, flatten_text},
    {"unflatten", tree_unflatten, METH_VARARGS, unflatten_text},
    {"vjp", vjp_arrays, METH_VARARGS, NULL},
    {"jvp", jvp_arrays, METH_VARARGS, NULL},
    {"explain", explain_arrays, METH_VARARGS, NULL},
    {"load", load_file, METH_VARARGS, NULL},
    {"save", save_file, METH_VARARGS, NULL},
    {"devices", list_devices, METH_NOARGS, NULL},
    {"stats", runtime_stats, METH_NOARGS, NULL},
    {"trim", trim_runtime, METH_O, NULL},
    {"set_path_finder", set_path_finder, METH_O, NULL},
    {"set_device", set_device, METH_O, NULL},
    {"current_device", current_device, METH_NOARGS, NULL},
    {"set_process_device", set_process_device, METH_O, NULL},
    {"set_dtypes", set_dtypes, METH_O, NULL},
    {"graph_trace", graph_trace, METH_VARARGS, NULL},
    {"graph_address", graph_address, METH_O, NULL},
    {"graph_size", graph_size, METH_O, NULL},
    {"graph_outputs", graph_num_outputs, METH_O, NULL},
    {"graph_call", graph_call, METH_VARARGS, NULL},
    {"batch_of", batch_of, METH_O, NULL},
    {"vmap", vmap_body, METH_VARARGS, NULL},
    {"cond", control_cond, METH_VARARGS, NULL},
    {"while_loop", control_while, METH_VARARGS, NULL},
    {"scan", control_scan, METH_VARARGS, NULL},
    {"checkpoint", control_checkpoint, METH_VARARGS, NULL},
    {"custom_rules", custom_rules, METH_VARARGS, NULL},
    {"custom_call", custom_call, METH_VARARGS, NULL},
    {"define_expression", define_expression, METH_VARARGS, NULL},
    {"define_callback", define_callback, METH_VARARGS, NULL},
    {"glsl", compile_glsl, METH_VARARGS, NULL},
    {"define_shader", define_shader, METH_VARARGS, NULL},
    {"apply_shader", apply_shader, METH_VARARGS, NULL},
    {"group_find", group_find, METH_VARARGS, NULL},
    {"group_split", group_split, METH_VARARGS, NULL},
    {"group_shrink", group_shrink, METH_VARARGS, NULL},
    {"group_set_deadline", group_set_deadline, METH_VARARGS, NULL},
    {"group_abort", group_abort, METH_VARARGS, NULL},
    {"group_leave", group_leave, METH_NOARGS, NULL},
    {"save_graph", graphs_save, METH_VARARGS, NULL},
    {"load_graph", graphs_load, METH_VARARGS, NULL},
    {"is_open", runtime_is_open, METH_NOARGS, NULL},
    {"is_tracing", is_tracing, METH_NOARGS, NULL},
    {"arrays_of_body", arrays_of_body, METH_NOARGS, NULL},
    {"watch", watch_arrays, METH_O, NULL},
    {"unwatch", unwatch_array, METH_O, NULL},
    {"close", runtime_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                            "tenon._core",
                                            "Tenon's C functions.",
                                            -1,
                                            functions,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL};
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    if (!guard_init(NULL) || !errors_init(module) || !host_init(module) ||
        !array_init(module) || !held_init(module) || !trace_init(module) || !trees_init() ||
        !function_init(module) ||
        PyModule_AddStringConstant(module, "version", TN_VERSION) != 0)
        Py_CLEAR(module);
    return module;
}

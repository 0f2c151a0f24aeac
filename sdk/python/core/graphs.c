// SPDX-License-Identifier: MIT
// Files of graphs (<tenon/graph_file.h>): traced functions that another process runs.
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph_file.h>
#include <tenon/retain.h>

// --- saving ---

// A signature from a tuple of Python, with the lists that it points to.
struct py_signature {
    tn_graph_signature record;
    struct array_list constants;
    const char **inputs, **outputs; // texts of the tuple
};

// Texts of a list of `count`; NULL with an exception set.
static const char **texts_of(PyObject *list, uint64_t count)
{
    const char **texts = calloc(count + 1, sizeof(*texts));
    if (!texts)
        return (const char **)PyErr_NoMemory();
    if (PySequence_Size(list) != (Py_ssize_t)count)
        PyErr_SetString(PyExc_ValueError, "as many names as arrays are needed");
    for (uint64_t i = 0; !PyErr_Occurred() && i < count; i++) {
        PyObject *item = PySequence_GetItem(list, (Py_ssize_t)i);
        texts[i] = item ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
        Py_XDECREF(item); // the list has it
    }
    if (!PyErr_Occurred())
        return texts;
    free(texts);
    return NULL;
}

static bool signature_get(struct py_building *b, PyObject *tuple, struct py_signature *out)
{
    const char *name;
    PyObject *object, *inputs, *outputs, *constants;
    *out = (struct py_signature){0};
    if (!PyArg_ParseTuple(tuple, "sOOOO", &name, &object, &inputs, &outputs, &constants))
        return false;
    const tn_graph *graph = graph_get(object);
    Py_ssize_t count = graph ? PySequence_Size(inputs) : -1;
    if (count < 0 || !array_list_get(b, constants, &out->constants) ||
        !(out->inputs = texts_of(inputs, (uint64_t)count)) ||
        !(out->outputs = texts_of(outputs, graph->num_outputs)))
        return false;
    out->record = (tn_graph_signature){.struct_size = sizeof(out->record),
                                       .name = name,
                                       .graph = graph,
                                       .num_inputs = (uint64_t)count,
                                       .input_names = out->inputs,
                                       .output_names = out->outputs,
                                       .constants = out->constants.items,
                                       .num_constants = out->constants.count};
    return true;
}

PyObject *graphs_save(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *path, *list, *result = NULL;
    struct py_building b;
    if (!PyArg_ParseTuple(args, "O&O:save_graph", PyUnicode_FSConverter, &path, &list))
        return NULL;
    Py_ssize_t count = PySequence_Size(list), done = 0;
    struct py_signature *all = calloc((size_t)count + 1, sizeof(*all));
    tn_graph_signature *records = calloc((size_t)count + 1, sizeof(*records));
    bool begun = all && records && building_begin_apart(&b);
    for (bool fine = begun; fine && done < count; done++) {
        PyObject *item = PySequence_GetItem(list, done);
        fine = item && signature_get(&b, item, &all[done]);
        records[done] = all[done].record;
        Py_XDECREF(item); // the list has it
    }
    if (begun && !PyErr_Occurred()) {
        tn_status status;
        const char *bytes = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS;
        status = tn_graph_save(b.scope, bytes, records, (uint64_t)count, NULL);
        Py_END_ALLOW_THREADS;
        result = status == TN_OK ? Py_NewRef(Py_None) : raise_scope(b.scope);
    }
    for (Py_ssize_t i = 0; i < done; i++) {
        free(all[i].constants.items);
        free(all[i].inputs);
        free(all[i].outputs);
    }
    if (begun)
        building_end(&b);
    free(records);
    free(all);
    Py_DECREF(path);
    return result;
}

// --- loading ---

static PyObject *names_list(const char *const *names, uint64_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list && i < count; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *types_list(const tn_type *types, uint64_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list && i < count; i++) {
        PyObject *shape = PyTuple_New(types[i].rank);
        for (int32_t k = 0; shape && k < types[i].rank; k++)
            PyTuple_SetItem(shape, k, PyLong_FromLongLong(types[i].extent[k]));
        PyObject *dtype = dtype_object(types[i].dtype);
        PyObject *pair = shape && dtype ? PyTuple_Pack(2, shape, dtype) : NULL;
        Py_XDECREF(shape);
        Py_XDECREF(dtype);
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *constants_list(const tn_graph_signature *s)
{
    PyObject *list = PyList_New((Py_ssize_t)s->num_constants);
    for (uint64_t i = 0; list && i < s->num_constants; i++) {
        tn_array *array = tn_retain(NULL, s->constants[i]);
        PyObject *object = array ? array_wrap(array, NULL)
                                 : raise_status(TN_ERR_ARGUMENT, tn_last_error());
        if (!object || PyList_SetItem(list, (Py_ssize_t)i, object) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *signature_object(const tn_graph_signature *s)
{
    return Py_BuildValue("(sNNNNNN)", s->name, graph_wrap(s->graph),
                         names_list(s->input_names, s->num_inputs),
                         types_list(s->graph->inputs, s->num_inputs),
                         names_list(s->output_names, s->graph->num_outputs),
                         types_list(s->graph->outputs, s->graph->num_outputs),
                         constants_list(s));
}

PyObject *graphs_load(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *path;
    const tn_graph_file *file = NULL;
    tn_runtime *runtime = runtime_get();
    if (!runtime || !PyArg_ParseTuple(args, "O&:load_graph", PyUnicode_FSConverter, &path))
        return NULL;
    tn_status status;
    const char *bytes = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = tn_graph_load(runtime, bytes, NULL, &file);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (status != TN_OK)
        return raise_status(status, tn_last_error());
    PyObject *list = PyList_New(0);
    for (uint64_t i = 0; list && i < file->num_signatures; i++) {
        PyObject *item = signature_object(file->signatures[i]);
        if (!item || PyList_Append(list, item) != 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    tn_graph_unload(runtime, file);
    return list;
}

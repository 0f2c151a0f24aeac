// SPDX-License-Identifier: MIT
// Installed plugins and their operators, as the runtime found them. Loads none but to
// describe it.
#include "../core/core.h"

static PyObject *text_list(const char *const *texts)
{
    PyObject *list = PyList_New(0);
    for (; list && texts && *texts; texts++) {
        PyObject *text = PyUnicode_FromString(*texts);
        if (!text || PyList_Append(list, text) != 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *plugin_row(const tn_plugin_info *info)
{
    static const char *const states[] = {"",        "found",    "loaded",
                                         "refused", "disabled", "shadowed"};
    const uint32_t num_states = sizeof(states) / sizeof(states[0]);
    PyObject *operators = text_list(info->primitives);
    if (!operators)
        return NULL;
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:N}", "id", info->id, "version",
                         info->version, "vendor", info->vendor, "directory",
                         info->directory, "file", info->file, "reason", info->reason,
                         "state", info->state < num_states ? states[info->state] : "",
                         "operators", operators);
}

// plugins(): every plugin in the order of search, refused ones too.
PyObject *list_plugins(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    tn_runtime *runtime = runtime_get();
    PyObject *list = runtime ? PyList_New(0) : NULL;
    uint64_t count = list ? tn_plugin_count(runtime) : 0;
    for (uint64_t i = 0; list && i < count; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        tn_status status = tn_plugin_get(runtime, i, &info);
        PyObject *row =
            status == TN_OK ? plugin_row(&info) : raise_status(status, tn_last_error());
        if (!row || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

// plugin_file(id, name): the text of a file that a plugin's manifest lists, checked; None
// where the manifest does not list it.
PyObject *read_plugin_file(PyObject *module, PyObject *args)
{
    PY_GUARD;
    enum { MOST_BYTES = 16 << 20 };
    const char *id, *name;
    char *text = NULL;
    uint64_t size = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss:plugin_file", &id, &name))
        return NULL;
    tn_runtime *runtime = runtime_get();
    if (!runtime)
        return NULL;
    tn_status status = tn_plugin_read(runtime, id, name, MOST_BYTES, &text, &size);
    if (status == TN_ERR_NOT_FOUND)
        Py_RETURN_NONE;
    if (status != TN_OK)
        return raise_status(status, tn_last_error());
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, NULL);
    tn_text_free(text);
    return result;
}

// describe_plugin(file): the text that ops.json of a plugin would have. Loads the plugin.
PyObject *describe_plugin(PyObject *module, PyObject *args)
{
    PY_GUARD;
    const char *file;
    char *text = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:describe_plugin", &file))
        return NULL;
    tn_runtime *runtime = runtime_get();
    if (!runtime)
        return NULL;
    tn_status status = tn_plugin_describe_ops(runtime, file, &text);
    if (status != TN_OK)
        return raise_status(status, tn_last_error());
    PyObject *result = PyUnicode_FromString(text ? text : "");
    tn_text_free(text);
    return result;
}

// verify_plugin(directory): checks all files of a plugin, as loading would.
PyObject *verify_plugin(PyObject *module, PyObject *args)
{
    PY_GUARD;
    const char *directory;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:verify_plugin", &directory))
        return NULL;
    tn_status status = tn_plugin_verify(directory);
    if (status != TN_OK)
        return raise_status(status, tn_last_error());
    Py_RETURN_NONE;
}

PyObject *list_operators(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    tn_runtime *runtime = runtime_get();
    return runtime ? text_list(tn_primitive_names(runtime)) : NULL;
}

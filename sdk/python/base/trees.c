// SPDX-License-Identifier: MIT
// Trees: nested dicts, lists and tuples (named ones, too) with arrays and other values as
// leaves.
//
// A structure is what a tree is without its leaves: None for None, "*" for a leaf, else a
// tuple of the type, a dict's sorted keys or None, and the structures of the parts.
#include "base.h"

#include <stdlib.h>

static PyObject *leaf;

PyObject *tree_keys(PyObject *dict)
{
    PyObject *keys = PyDict_Keys(dict);
    if (!keys || PyList_Size(keys) < 2 || PyList_Sort(keys) == 0)
        return keys;
    Py_DECREF(keys);
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return NULL;
    PyObject *kind, *error, *traceback;
    PyErr_Fetch(&kind, &error, &traceback);
    PyErr_Format(PyExc_TypeError, "the keys of a dict cannot be sorted: %S", error);
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return NULL;
}

// --- flattening ---

static PyObject *py_tree_flatten(PyObject *tree, PyObject *leaves);

// Takes `keys` and `parts`, which may be NULL after a failure.
static PyObject *py_tree_pack(PyObject *kind, PyObject *keys, PyObject *parts)
{
    PyObject *structure = keys && parts ? PyTuple_Pack(3, kind, keys, parts) : NULL;
    Py_XDECREF(keys);
    Py_XDECREF(parts);
    return structure;
}

static PyObject *flatten_dict(PyObject *tree, PyObject *leaves)
{
    PyObject *keys = tree_keys(tree);
    Py_ssize_t count = keys ? PyList_Size(keys) : 0;
    PyObject *parts = keys ? PyTuple_New(count) : NULL;
    for (Py_ssize_t i = 0; parts && i < count; i++) {
        PyObject *item = item_of_dict(tree, PyList_GetItem(keys, i));
        PyObject *part = item ? py_tree_flatten(item, leaves) : NULL;
        if (!item && !PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "a dict changed while it was flattened");
        Py_XDECREF(item);
        if (!part || PyTuple_SetItem(parts, i, part) != 0)
            Py_CLEAR(parts);
    }
    PyObject *names = keys ? PyList_AsTuple(keys) : NULL;
    Py_XDECREF(keys);
    return py_tree_pack((PyObject *)&PyDict_Type, names, parts);
}

static PyObject *flatten_sequence(PyObject *tree, PyObject *leaves)
{
    Py_ssize_t count = PySequence_Size(tree);
    PyObject *parts = count < 0 ? NULL : PyTuple_New(count);
    for (Py_ssize_t i = 0; parts && i < count; i++) {
        PyObject *item = PySequence_GetItem(tree, i);
        PyObject *part = item ? py_tree_flatten(item, leaves) : NULL;
        Py_XDECREF(item);
        if (!part || PyTuple_SetItem(parts, i, part) != 0)
            Py_CLEAR(parts);
    }
    return py_tree_pack((PyObject *)Py_TYPE(tree), Py_NewRef(Py_None), parts);
}

static PyObject *py_tree_flatten(PyObject *tree, PyObject *leaves)
{
    if (tree == Py_None)
        return Py_NewRef(Py_None);
    bool is_dict = PyDict_Check(tree);
    if (!is_dict && !PyList_Check(tree) && !PyTuple_Check(tree))
        return PyList_Append(leaves, tree) == 0 ? Py_NewRef(leaf) : NULL;
    if (Py_EnterRecursiveCall(" in a tree"))
        return NULL;
    PyObject *structure =
        is_dict ? flatten_dict(tree, leaves) : flatten_sequence(tree, leaves);
    Py_LeaveRecursiveCall();
    return structure;
}

PyObject *tree_flatten(PyObject *module, PyObject *tree)
{
    PY_GUARD;
    (void)module;
    PyObject *leaves = PyList_New(0);
    PyObject *structure = leaves ? py_tree_flatten(tree, leaves) : NULL;
    PyObject *pair = structure ? PyTuple_Pack(2, leaves, structure) : NULL;
    Py_XDECREF(structure);
    Py_XDECREF(leaves);
    return pair;
}

// --- unflattening ---

struct py_tree_leaves {
    PyObject *const *items;
    uint64_t count, used;
};

static PyObject *py_tree_build(PyObject *structure, struct py_tree_leaves *from);

static PyObject *build_dict(PyObject *keys, PyObject *parts, struct py_tree_leaves *from)
{
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0, n = PyTuple_Size(parts); dict && i < n; i++) {
        PyObject *key = PyTuple_GetItem(keys, i);
        PyObject *item = key ? py_tree_build(PyTuple_GetItem(parts, i), from) : NULL;
        if (!item || PyDict_SetItem(dict, key, item) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(item);
    }
    return dict;
}

// A list or tuple of the parts.
static PyObject *py_tree_build_parts(bool as_list, PyObject *parts,
                                     struct py_tree_leaves *from)
{
    Py_ssize_t count = PyTuple_Size(parts);
    PyObject *all = as_list ? PyList_New(count) : PyTuple_New(count);
    for (Py_ssize_t i = 0; all && i < count; i++) {
        PyObject *item = py_tree_build(PyTuple_GetItem(parts, i), from);
        if (!item ||
            (as_list ? PyList_SetItem(all, i, item) : PyTuple_SetItem(all, i, item)) != 0)
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *build_sequence(PyObject *kind, PyObject *parts,
                                struct py_tree_leaves *from)
{
    if (kind == (PyObject *)&PyTuple_Type)
        return py_tree_build_parts(false, parts, from);
    PyObject *all = py_tree_build_parts(true, parts, from);
    if (!all || kind == (PyObject *)&PyList_Type)
        return all;
    PyObject *fields = PyObject_HasAttrString(kind, "_fields") ? PyList_AsTuple(all) : NULL;
    PyObject *built = fields ? PyObject_Call(kind, fields, NULL)
                             : PyObject_CallFunctionObjArgs(kind, all, NULL);
    Py_XDECREF(fields);
    Py_DECREF(all);
    return built;
}

static PyObject *py_tree_build(PyObject *structure, struct py_tree_leaves *from)
{
    if (structure == Py_None)
        return Py_NewRef(Py_None);
    if (PyUnicode_Check(structure)) {
        if (from->used < from->count)
            return Py_NewRef(from->items[from->used++]);
        PyErr_Format(PyExc_ValueError, "a tree of more leaves than %llu was asked for",
                     (unsigned long long)from->count);
        return NULL;
    }
    PyObject *kind, *keys, *parts;
    if (!PyTuple_Check(structure) || PyTuple_Size(structure) != 3) {
        PyErr_Format(PyExc_TypeError, "%R is no structure that flatten gave", structure);
        return NULL;
    }
    kind = PyTuple_GetItem(structure, 0);
    keys = PyTuple_GetItem(structure, 1);
    parts = PyTuple_GetItem(structure, 2);
    if (Py_EnterRecursiveCall(" in a tree"))
        return NULL;
    PyObject *tree = kind == (PyObject *)&PyDict_Type ? build_dict(keys, parts, from)
                                                      : build_sequence(kind, parts, from);
    Py_LeaveRecursiveCall();
    return tree;
}

PyObject *tree_of(PyObject *structure, PyObject *const *leaves, uint64_t count)
{
    struct py_tree_leaves from = {leaves, count, 0};
    return py_tree_build(structure, &from);
}

// unflatten(structure, leaves): any iterable.
PyObject *tree_unflatten(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *structure, *iterable;
    if (!PyArg_ParseTuple(args, "OO:unflatten", &structure, &iterable))
        return NULL;
    PyObject *leaves = PySequence_Tuple(iterable);
    Py_ssize_t count = leaves ? PyTuple_Size(leaves) : 0;
    PyObject **items = leaves ? malloc(((size_t)count + 1) * sizeof(*items)) : NULL;
    PyObject *tree = NULL;
    if (leaves && !items)
        PyErr_NoMemory();
    if (items) {
        for (Py_ssize_t i = 0; i < count; i++)
            items[i] = PyTuple_GetItem(leaves, i);
        tree = tree_of(structure, items, (uint64_t)count);
    }
    free(items);
    Py_XDECREF(leaves);
    return tree;
}

bool trees_init(void)
{
    leaf = PyUnicode_InternFromString("*");
    return leaf != NULL;
}

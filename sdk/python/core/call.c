// SPDX-License-Identifier: MIT
// Arguments of a call: one walk over their tree makes the signature and lists the arrays.
#include "call.h"

#include <stdlib.h>
#include <string.h>

// First word of a tree's node: its kind, with its number of parts, or with dtype and rank.
enum {
    NODE_NONE = 1,
    NODE_LIST,
    NODE_TUPLE,
    NODE_SEQUENCE, // its type is in `objects`
    NODE_DICT,     // its keys are in `objects`
    NODE_ARRAY,    // its extents are the next words
    NODE_STATIC,   // its value is in `objects`
};
#define WORD(kind, more) ((uint64_t)(kind) << 48 | (uint64_t)(more))

static PyObject *traced; // TRACED: stands for an array in `plan`

void call_init(struct py_call *c)
{
    c->words = c->few_words;
    c->objects = c->few_objects;
    c->leaves = c->few_leaves;
    c->plan = NULL;
    c->num_words = c->num_objects = c->num_leaves = 0;
    c->max_words = sizeof(c->few_words) / sizeof(c->few_words[0]);
    c->max_objects = sizeof(c->few_objects) / sizeof(c->few_objects[0]);
    c->max_leaves = sizeof(c->few_leaves) / sizeof(c->few_leaves[0]);
}

void call_finish(struct py_call *c)
{
    for (uint32_t i = 0; i < c->num_objects; i++)
        Py_DECREF(c->objects[i]);
    for (uint32_t i = 0; i < c->num_leaves; i++)
        Py_DECREF(c->leaves[i]);
    if (c->words != c->few_words)
        free(c->words);
    if (c->objects != c->few_objects)
        free(c->objects);
    if (c->leaves != c->few_leaves)
        free(c->leaves);
}

// Four times the room for a list of words or pointers. NULL with an exception set.
static void *py_call_grown(void *list, const void *few, uint32_t *max)
{
    size_t size = (size_t)*max * sizeof(uint64_t);
    void *larger = *max < UINT32_MAX / 8 ? malloc(4 * size) : NULL;
    if (!larger)
        return PyErr_NoMemory();
    memcpy(larger, list, size);
    if (list != few)
        free(list);
    *max *= 4;
    return larger;
}

static bool py_call_add_word(struct py_call *c, uint64_t word)
{
    if (c->num_words == c->max_words) {
        uint64_t *words = py_call_grown(c->words, c->few_words, &c->max_words);
        if (!words)
            return false;
        c->words = words;
    }
    c->words[c->num_words++] = word;
    return true;
}

static bool py_call_add_object(struct py_call *c, PyObject *object)
{
    if (c->num_objects == c->max_objects) {
        PyObject **objects = py_call_grown(c->objects, c->few_objects, &c->max_objects);
        if (!objects)
            return false;
        c->objects = objects;
    }
    c->objects[c->num_objects++] = Py_NewRef(object);
    return true;
}

static bool py_call_add_leaf(struct py_call *c, PyObject *array)
{
    if (c->num_leaves == c->max_leaves) {
        PyObject **leaves = py_call_grown(c->leaves, c->few_leaves, &c->max_leaves);
        if (!leaves)
            return false;
        c->leaves = leaves;
    }
    c->leaves[c->num_leaves++] = Py_NewRef(array);
    return true;
}

static PyObject *to_array(PyObject *object)
{
    struct py_building b;
    if (!building_begin(&b))
        return NULL;
    tn_array *array = array_from_object(&b, object, TN_DTYPE_NONE);
    PyObject *made = PyErr_Occurred() ? NULL : building_array(&b, array);
    building_end(&b);
    return made;
}

static bool py_call_add_array(struct py_call *c, PyObject *array)
{
    const tn_type *type = array_type_of(array);
    if (!type || !py_call_add_word(c, WORD(NODE_ARRAY, (uint32_t)type->dtype << 8 |
                                                           (uint32_t)type->rank)))
        return false;
    for (int32_t i = 0; i < type->rank; i++)
        if (!py_call_add_word(c, (uint64_t)type->extent[i]))
            return false;
    return py_call_add_leaf(c, array) && (!c->plan || PyList_Append(c->plan, traced) == 0);
}

static bool add_static(struct py_call *c, PyObject *object)
{
    Py_hash_t hash = PyObject_Hash(object);
    if (hash == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError,
                         "function: a value of type %R is neither an array nor can it be "
                         "hashed",
                         (PyObject *)Py_TYPE(object));
        return false;
    }
    return py_call_add_word(c, WORD(NODE_STATIC, 0)) &&
           py_call_add_word(c, (uint64_t)hash) && py_call_add_object(c, object) &&
           (!c->plan || PyList_Append(c->plan, object) == 0);
}

static bool add_leaf_object(struct py_call *c, PyObject *object, bool is_static)
{
    bool is_array = PyFloat_CheckExact(object) || PyLong_CheckExact(object) ||
                            PyComplex_CheckExact(object)
                        ? !is_static
                    : PyUnicode_CheckExact(object) || PyBool_Check(object)
                        ? false
                        : PyObject_HasAttrString(object, "__array__");
    if (!is_array)
        return add_static(c, object);
    PyObject *array = to_array(object);
    bool added = array && py_call_add_array(c, array);
    Py_XDECREF(array);
    return added;
}

static bool add_tree(struct py_call *c, PyObject *tree, bool is_static);

static bool add_dict(struct py_call *c, PyObject *dict, bool is_static)
{
    PyObject *keys = tree_keys(dict);
    Py_ssize_t count = keys ? PyList_Size(keys) : 0;
    bool added = keys && py_call_add_word(c, WORD(NODE_DICT, count));
    for (Py_ssize_t i = 0; added && i < count; i++) {
        PyObject *key = PyList_GetItem(keys, i);
        PyObject *item = item_of_dict(dict, key);
        if (!item && !PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "a dict changed while it was flattened");
        Py_hash_t hash = item ? PyObject_Hash(key) : -1;
        added = item && py_call_add_word(c, (uint64_t)hash) && py_call_add_object(c, key) &&
                add_tree(c, item, is_static);
        Py_XDECREF(item);
    }
    Py_XDECREF(keys);
    return added;
}

static bool add_sequence(struct py_call *c, PyObject *tree, bool is_static)
{
    bool is_tuple = PyTuple_CheckExact(tree), is_list = PyList_CheckExact(tree);
    Py_ssize_t count = PySequence_Size(tree);
    uint32_t kind = is_tuple ? NODE_TUPLE : is_list ? NODE_LIST : NODE_SEQUENCE;
    bool added =
        count >= 0 && py_call_add_word(c, WORD(kind, count)) &&
        (kind != NODE_SEQUENCE || py_call_add_object(c, (PyObject *)Py_TYPE(tree)));
    for (Py_ssize_t i = 0; added && i < count; i++) {
        PyObject *item = is_tuple  ? Py_XNewRef(PyTuple_GetItem(tree, i))
                         : is_list ? item_of_list(tree, i)
                                   : PySequence_GetItem(tree, i);
        added = item && add_tree(c, item, is_static);
        Py_XDECREF(item);
    }
    return added;
}

static bool add_tree(struct py_call *c, PyObject *tree, bool is_static)
{
    if (array_check(tree))
        return py_call_add_array(c, tree);
    if (tree == Py_None)
        return py_call_add_word(c, WORD(NODE_NONE, 0));
    bool is_dict = PyDict_Check(tree);
    if (!is_dict && !PyList_Check(tree) && !PyTuple_Check(tree))
        return add_leaf_object(c, tree, is_static);
    if (Py_EnterRecursiveCall(" in a tree"))
        return false;
    bool added = is_dict ? add_dict(c, tree, is_static) : add_sequence(c, tree, is_static);
    Py_LeaveRecursiveCall();
    return added;
}

bool call_add(struct py_call *c, PyObject *args, PyObject *named, PyObject *is_static)
{
    Py_ssize_t count = PyTuple_Size(args), marks = PyTuple_Size(is_static);
    PyObject *device = device_now();
    bool added = py_call_add_object(c, device ? device : Py_None) &&
                 py_call_add_word(c, WORD(NODE_TUPLE, count));
    for (Py_ssize_t i = 0; added && i < count; i++)
        added = add_tree(c, PyTuple_GetItem(args, i),
                         i < marks && PyTuple_GetItem(is_static, i) == Py_True);
    return added && (!named || add_dict(c, named, false));
}

int call_is_same(PyObject *a, PyObject *b)
{
    if (a == b)
        return 1;
    if (Py_TYPE(a) != Py_TYPE(b))
        return 0;
    if (PyFloat_CheckExact(a)) {
        double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b);
        return memcmp(&x, &y, sizeof(x)) == 0;
    }
    if (PyComplex_CheckExact(a)) {
        double x[] = {PyComplex_RealAsDouble(a), PyComplex_ImagAsDouble(a)};
        double y[] = {PyComplex_RealAsDouble(b), PyComplex_ImagAsDouble(b)};
        return memcmp(x, y, sizeof(x)) == 0;
    }
    return PyObject_RichCompareBool(a, b, Py_EQ);
}

bool call_init_module(PyObject *module)
{
    traced = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    return traced && PyModule_AddObjectRef(module, "TRACED", traced) == 0;
}

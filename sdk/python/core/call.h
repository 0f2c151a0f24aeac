// SPDX-License-Identifier: MIT
// Arguments of a call of a function that replays, as its signature and its arrays.
#ifndef TENON_PYTHON_CALL_H
#define TENON_PYTHON_CALL_H

#include "core.h"

// A signature is the device that operations are applied on, and what a call's arguments are
// without the elements of arrays: a row of words for the nodes of the tree, and the objects
// that some of them stand for. Lists have
// references, and begin on the stack.
struct py_call {
    uint64_t *words;
    PyObject **objects;
    PyObject **leaves; // Arrays
    PyObject *plan;    // for a trace: a list of all leaves, TRACED for arrays; NULL: none
    uint32_t num_words, num_objects, num_leaves, max_words, max_objects, max_leaves;
    uint64_t few_words[128];
    PyObject *few_objects[32], *few_leaves[48];
};

void call_init(struct py_call *c);
void call_finish(struct py_call *c);
// Adds positional arguments, of which those marked in a tuple of bools are static, and
// those by name (NULL: none). False with an exception set.
bool call_add(struct py_call *c, PyObject *args, PyObject *named, PyObject *is_static);
// Whether a value is of one type with another, and equal: floats by their bits, so that
// -0.0 is not 0.0. -1: an exception.
int call_is_same(PyObject *a, PyObject *b);
bool call_init_module(PyObject *module);

#endif // TENON_PYTHON_CALL_H

// SPDX-License-Identifier: MIT
// Arguments of a call of a function that replays, as its signature and its arrays.
#ifndef TENON_PYTHON_CALL_H
#define TENON_PYTHON_CALL_H

#include "core.h"

// A call's signature: the device that operations are applied on, and the arguments without
// the elements of arrays. It is a row of words, some for each node of the tree, and the
// objects that some nodes refer to. The lists hold references, and begin on the stack.
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
// Adds positional arguments and arguments by name (NULL: none). `is_static`: a bool for
// each positional argument. False with an exception set.
bool call_add(struct py_call *c, PyObject *args, PyObject *named, PyObject *is_static);
// Whether two values have one type and are equal; floats are compared by their bits, so
// that -0.0 is not 0.0. -1 with an exception set.
int call_is_same(PyObject *a, PyObject *b);
bool call_init_module(PyObject *module);

#endif // TENON_PYTHON_CALL_H

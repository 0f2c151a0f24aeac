// SPDX-License-Identifier: MIT
// Primitives that are defined while the process runs: expressions, kernels of GPUs, C
// functions. What is registered lives until the runtime is closed. And groups of
// processes, which are made then, too.
#ifndef TENON_PYTHON_DEFINE_H
#define TENON_PYTHON_DEFINE_H

#include "../core/core.h"

#include <tenon/plugin.h>

// --- define.c ---

// The record of a primitive, with the memory that it points to. definition_create() makes
// one with inputs and outputs of these names (sequences of texts), and `more` zeroed bytes
// behind it for its caller. NULL with an exception set.
struct py_definition {
    tn_primitive record;
    tn_input_info inputs[64];
    tn_output_info outputs[8];
    tn_attr_field fields[MAX_ATTRS];
    void *kept[128]; // memory of the record: texts, code
    uint32_t num_kept;
    struct py_definition *next; // in the list of registered definitions
};
struct py_definition *definition_create(const char *id, const char *doc, PyObject *inputs,
                                        PyObject *outputs, size_t more);
// Registers a definition with a kernel (NULL: none). False with an exception set.
bool definition_register(struct py_definition *definition, const tn_kernel *kernel);
// Copies of bytes, and of a text, that live as long as the definition; NULL with an
// exception.
void *definition_keep(struct py_definition *d, const void *bytes, size_t size);
char *text_keep(struct py_definition *d, PyObject *text);
// Frees a definition that was not registered; NULL is fine. Returns NULL.
PyObject *definition_free(struct py_definition *d);

// define_expression(id, doc, expression, inputs, outputs, attributes: a dict of numbers).
PyObject *define_expression(PyObject *module, PyObject *args);
// define_callback(id, signature, address, is_serial): a C function (<tenon/ffi.h>).
PyObject *define_callback(PyObject *module, PyObject *args);

// --- shader.c ---

// glsl(text, name): SPIR-V as bytes, or a tuple (message, file, line, column) of the first
// error.
PyObject *compile_glsl(PyObject *module, PyObject *args);
// define_shader(id, doc, inputs, outputs, features, modules, hash, has_body): modules are
// SPIR-V: the kernel, then five modules that copy and five that fill elements of 1, 2, 4, 8
// and 16 bytes, which may be left out (see shader.c).
PyObject *define_shader(PyObject *module, PyObject *args);
// apply_shader(id, arrays, launch: a list of integers, body: a Graph or None, outputs).
PyObject *apply_shader(PyObject *module, PyObject *args);

// --- dist.c: groups of processes, by name ---

// group_find(name): (rank, size, library, whether it can shrink). Joins the world.
PyObject *group_find(PyObject *module, PyObject *args);
// group_split(name, color, key, made), group_shrink(name, made).
PyObject *group_split(PyObject *module, PyObject *args);
PyObject *group_shrink(PyObject *module, PyObject *args);
PyObject *group_set_deadline(PyObject *module, PyObject *args); // name, milliseconds
PyObject *group_abort(PyObject *module, PyObject *args);        // name, reason
PyObject *group_leave(PyObject *module, PyObject *unused);      // all groups

#endif // TENON_PYTHON_DEFINE_H

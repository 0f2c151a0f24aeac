// SPDX-License-Identifier: MIT
// The type Sampler, and sampling options.
#include "lm.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct lm_field fields[] = {
    {"temperature", 'd', offsetof(tn_lm_sampling, temperature)},
    {"top_k", 'i', offsetof(tn_lm_sampling, top_k)},
    {"top_p", 'd', offsetof(tn_lm_sampling, top_p)},
    {"min_p", 'd', offsetof(tn_lm_sampling, min_p)},
    {"repetition_penalty", 'd', offsetof(tn_lm_sampling, penalty)},
    {"repetition_context", 'i', offsetof(tn_lm_sampling, penalty_last)},
    {"presence_penalty", 'd', offsetof(tn_lm_sampling, presence)},
    {"frequency_penalty", 'd', offsetof(tn_lm_sampling, frequency)},
    {"seed", 'u', offsetof(tn_lm_sampling, seed)},
};

// logit_bias: a dict of numbers by token.
static bool biases_read(PyObject *dict, struct lm_drawing *out)
{
    PyObject *items = PyMapping_Items(dict);
    Py_ssize_t count = items ? PyList_Size(items) : 0;
    free(out->biases);
    out->biases = malloc(sizeof(*out->biases) * (size_t)(count + 1));
    bool read = items && (out->biases || PyErr_NoMemory());
    for (Py_ssize_t i = 0; read && i < count; i++) {
        PyObject *item = item_of_list(items, i);
        float value = 0;
        int id = 0;
        read = item && PyArg_ParseTuple(item, "if:logit_bias", &id, &value);
        Py_XDECREF(item);
        out->biases[i] = (tn_lm_bias){.id = id, .value = value};
    }
    Py_XDECREF(items);
    out->sampling.biases = out->biases;
    out->sampling.num_biases = (uint64_t)count;
    return read;
}

static bool option_read(PyObject *name, PyObject *value, struct lm_drawing *out)
{
    if (PyUnicode_CompareWithASCIIString(name, "logit_bias") == 0)
        return biases_read(value, out);
    int found = field_read(fields, COUNT(fields), name, value, &out->sampling);
    if (found == 0)
        raise_unknown("tenon.lm", name);
    return found == 1;
}

bool drawing_read(PyObject *options, struct lm_drawing *out)
{
    *out = (struct lm_drawing){.sampling = {.struct_size = sizeof(out->sampling)}};
    PyObject *items = PyDict_Items(options);
    Py_ssize_t count = items ? PyList_Size(items) : 0;
    bool read = items != NULL;
    for (Py_ssize_t i = 0; read && i < count; i++) {
        PyObject *item = item_of_list(items, i);
        read = item && option_read(PyTuple_GetItem(item, 0), PyTuple_GetItem(item, 1), out);
        Py_XDECREF(item);
    }
    Py_XDECREF(items);
    if (!read) {
        free(out->biases);
        out->biases = NULL;
    }
    return read;
}

// --- the type ---

struct lm_sampler {
    PyObject ob_base;
    tn_lm_sampler *sampler;
    int64_t vocabulary;
};

// Sampler(options, vocabulary)
static PyObject *sampler_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PY_GUARD;
    (void)keywords;
    PyObject *options;
    long long vocabulary;
    struct lm_drawing drawing;
    if (!PyArg_ParseTuple(args, "O!L:Sampler", &PyDict_Type, &options, &vocabulary) ||
        !drawing_read(options, &drawing))
        return NULL;
    tn_lm_sampler *sampler = NULL;
    tn_status status = tn_lm_sampler_open(&drawing.sampling, vocabulary, &sampler);
    free(drawing.biases);
    if (status != TN_OK)
        return lm_raise(status);
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct lm_sampler *self = (struct lm_sampler *)alloc(type, 0);
    if (!self) {
        tn_lm_sampler_close(sampler);
        return NULL;
    }
    self->sampler = sampler;
    self->vocabulary = vocabulary;
    return (PyObject *)self;
}

static void sampler_dealloc(PyObject *object)
{
    PY_GUARD;
    PyTypeObject *type = Py_TYPE(object);
    tn_lm_sampler_close(((struct lm_sampler *)object)->sampler);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

static PyObject *sampler_draw(struct lm_sampler *self, const float *logits,
                              const int32_t *last, int64_t num_last)
{
    size_t size = sizeof(*logits) * (size_t)self->vocabulary;
    float *copy = PyMem_Malloc(size);
    if (!copy)
        return PyErr_NoMemory();
    for (int64_t i = 0; i < self->vocabulary; i++)
        copy[i] = logits[i];
    double log_probability = 0;
    int32_t id = tn_lm_sample(self->sampler, copy, last, num_last, &log_probability);
    PyMem_Free(copy);
    return Py_BuildValue("id", (int)id, log_probability);
}

// sample(logits: floats in a buffer, last: tokens): (id, log probability).
static PyObject *sampler_sample(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_sampler *self = (struct lm_sampler *)object;
    Py_buffer logits;
    PyObject *given, *result = NULL;
    int32_t *last = NULL;
    int64_t num_last = 0;
    if (!PyArg_ParseTuple(args, "y*O:sample", &logits, &given))
        return NULL;
    int64_t count = (int64_t)logits.len / (int64_t)sizeof(float);
    if (count != self->vocabulary)
        PyErr_Format(PyExc_ValueError, "sample: %lld logits, expected %lld",
                     (long long)count, (long long)self->vocabulary);
    else if (ids_read(given, &last, &num_last))
        result = sampler_draw(self, logits.buf, last, num_last);
    free(last);
    PyBuffer_Release(&logits);
    return result;
}

bool sampler_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"sample", sampler_sample, METH_VARARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {{Py_tp_new, sampler_new},
                                  {Py_tp_dealloc, sampler_dealloc},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {.name = "tenon._lm.Sampler",
                               .basicsize = sizeof(struct lm_sampler),
                               .flags = Py_TPFLAGS_DEFAULT,
                               .slots = slots};
    PyObject *names = PyTuple_New(COUNT(fields) + 1);
    for (size_t i = 0; names && i <= COUNT(fields); i++)
        PyTuple_SetItem(
            names, (Py_ssize_t)i,
            PyUnicode_FromString(i < COUNT(fields) ? fields[i].name : "logit_bias"));
    bool added = names && PyModule_AddObjectRef(module, "SAMPLING", names) == 0;
    Py_XDECREF(names);
    return added && type_add(module, &spec);
}

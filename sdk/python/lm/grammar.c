// SPDX-License-Identifier: MIT
// The type Grammar, which constrains generated texts.
#include "lm.h"

struct lm_grammar {
    PyObject ob_base;
    tn_lm_grammar *grammar;
};

static PyTypeObject *grammar_type;

// Grammar(text, kind). A text that is no grammar of this kind raises a ValueError.
static PyObject *grammar_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PY_GUARD;
    (void)keywords;
    const char *text;
    Py_ssize_t size;
    unsigned int kind;
    if (!PyArg_ParseTuple(args, "s#I:Grammar", &text, &size, &kind))
        return NULL;
    tn_lm_grammar *grammar = NULL;
    tn_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_lm_grammar_open(text, (uint64_t)size, kind, &grammar);
    Py_END_ALLOW_THREADS;
    if (status != TN_OK)
        return lm_raise(status == TN_ERR_REFUSED ? TN_ERR_ARGUMENT : status);
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct lm_grammar *self = (struct lm_grammar *)alloc(type, 0);
    if (self)
        self->grammar = grammar;
    else
        tn_lm_grammar_close(grammar);
    return (PyObject *)self;
}

static void grammar_dealloc(PyObject *object)
{
    PY_GUARD;
    PyTypeObject *type = Py_TYPE(object);
    tn_lm_grammar_close(((struct lm_grammar *)object)->grammar);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

// fits(text): how the bytes fit the grammar, a number of TN_LM_FITS_NOT and its like.
static PyObject *grammar_fits(PyObject *object, PyObject *args)
{
    PY_GUARD;
    const char *text;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "s#:fits", &text, &size))
        return NULL;
    int32_t fits = 0;
    tn_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_lm_grammar_test(((struct lm_grammar *)object)->grammar, text,
                                (uint64_t)size, &fits);
    Py_END_ALLOW_THREADS;
    return status == TN_OK ? PyLong_FromLong(fits) : lm_raise(status);
}

const tn_lm_grammar *grammar_get(PyObject *object)
{
    if (Py_TYPE(object) == grammar_type)
        return ((struct lm_grammar *)object)->grammar;
    PyErr_SetString(PyExc_TypeError, "grammar: expected a Grammar");
    return NULL;
}

bool grammar_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"fits", grammar_fits, METH_VARARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {{Py_tp_new, grammar_new},
                                  {Py_tp_dealloc, grammar_dealloc},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {.name = "tenon._lm.Grammar",
                               .basicsize = sizeof(struct lm_grammar),
                               .flags = Py_TPFLAGS_DEFAULT,
                               .slots = slots};
    grammar_type = type_add(module, &spec);
    return grammar_type != NULL;
}

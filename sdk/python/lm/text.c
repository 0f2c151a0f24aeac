// SPDX-License-Identifier: MIT
// Methods of Model on texts, tokens and conversations.
#include "lm.h"

#include <stdlib.h>

// tokenize(text, flags): a list of ids.
PyObject *model_tokenize(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    const char *text;
    Py_ssize_t size;
    unsigned int flags;
    if (!PyArg_ParseTuple(args, "s#I:tokenize", &text, &size, &flags) ||
        !model_enter(self, false))
        return NULL;
    int32_t *ids = NULL;
    uint64_t count = 0;
    tn_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_lm_tokenize(self->lm, text, (uint64_t)size, flags, &ids, &count);
    Py_END_ALLOW_THREADS;
    model_leave(self, false);
    PyObject *list = status == TN_OK ? ids_list(ids, count) : lm_raise(status);
    tn_lm_free(ids);
    return list;
}

// detokenize(ids): bytes, which may begin or end within a character.
PyObject *model_detokenize(PyObject *object, PyObject *given)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    int32_t *ids;
    int64_t count;
    if (!ids_read(given, &ids, &count))
        return NULL;
    if (!model_enter(self, false)) {
        free(ids);
        return NULL;
    }
    char *text = NULL;
    uint64_t size = 0;
    tn_status status = tn_lm_detokenize(self->lm, ids, (uint64_t)count, &text, &size);
    model_leave(self, false);
    PyObject *bytes = status == TN_OK ? PyBytes_FromStringAndSize(text, (Py_ssize_t)size)
                                      : lm_raise(status);
    tn_lm_free(text);
    free(ids);
    return bytes;
}

PyObject *model_is_end(PyObject *object, PyObject *id)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    long long number = PyLong_AsLongLong(id);
    if (PyErr_Occurred() || !model_enter(self, false))
        return NULL;
    bool is_id = number >= 0 && number <= INT32_MAX;
    bool is_end = is_id && tn_lm_is_end(self->lm, (int32_t)number);
    model_leave(self, false);
    return PyBool_FromLong(is_end);
}

// Messages of a list of (role, text, images), which owns the texts.
struct chat_messages {
    tn_lm_message *items;
    uint32_t *num_images;
    uint64_t count;
    bool has_images;
};

static void messages_free(struct chat_messages *m)
{
    free(m->items);
    free(m->num_images);
}

static bool message_read(PyObject *item, tn_lm_message *message, uint32_t *num_images)
{
    if (PyTuple_Check(item))
        return PyArg_ParseTuple(item, "ssI:message", &message->role, &message->text,
                                num_images);
    PyErr_SetString(PyExc_TypeError, "chat: a message is no tuple");
    return false;
}

static bool messages_read(PyObject *tuple, struct chat_messages *out)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    *out = (struct chat_messages){.items = calloc((size_t)count + 1, sizeof(*out->items)),
                                  .num_images =
                                      calloc((size_t)count + 1, sizeof(*out->num_images))};
    if (!out->items || !out->num_images)
        return PyErr_NoMemory(), false;
    for (; out->count < (uint64_t)count; out->count++) {
        uint64_t at = out->count;
        if (!message_read(PyTuple_GetItem(tuple, (Py_ssize_t)at), &out->items[at],
                          &out->num_images[at]))
            return false;
        out->has_images = out->has_images || out->num_images[at] > 0;
    }
    return true;
}

static PyObject *chat_text(struct lm_model *self, const char *family,
                           const struct chat_messages *m)
{
    char *text = NULL;
    uint64_t size = 0;
    tn_status status = tn_lm_chat_text(self->lm, family, m->items, m->count, &text, &size);
    PyObject *object = status == TN_OK
                           ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace")
                           : lm_raise(status);
    tn_lm_free(text);
    return object;
}

static PyObject *chat_ids(struct lm_model *self, const char *family,
                          const struct chat_messages *m)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    tn_status status =
        m->has_images
            ? tn_lm_chat_images(self->lm, family, m->items, m->count, m->num_images, &ids,
                                &count)
            : tn_lm_chat_tokens(self->lm, family, m->items, m->count, &ids, &count);
    PyObject *object = status == TN_OK ? ids_list(ids, count) : lm_raise(status);
    tn_lm_free(ids);
    return object;
}

// chat(messages: a tuple of (role, text, images), template or None, is_text): the
// conversation as a text, or a list of ids.
PyObject *model_chat(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    PyObject *tuple;
    const char *family;
    int is_text;
    struct chat_messages m;
    if (!PyArg_ParseTuple(args, "O!zp:chat", &PyTuple_Type, &tuple, &family, &is_text))
        return NULL;
    PyObject *result = NULL;
    if (messages_read(tuple, &m) && model_enter(self, false)) {
        result = is_text ? chat_text(self, family, &m) : chat_ids(self, family, &m);
        model_leave(self, false);
    }
    messages_free(&m);
    return result;
}

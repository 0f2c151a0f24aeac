// SPDX-License-Identifier: MIT
// The type Model: opening, closing, facts.
#include "lm.h"

#include <unistd.h>

PyTypeObject *model_type;

PyObject *lm_raise(tn_status status)
{
    return py_host->raise_status(status, tn_lm_error());
}

// --- shared and exclusive use ---

bool model_enter(struct lm_model *model, bool alone)
{
    if (!py_host->runtime_get() || !work_settle(&model->left))
        return false;
    if (!model->lm) {
        PyErr_SetString(PyExc_ValueError, "tenon.lm: the model is closed");
        return false;
    }
    if (model->is_alone || (alone && model->uses > 0)) {
        PyErr_SetString(PyExc_RuntimeError,
                        model->is_alone
                            ? "tenon.lm: the model is being changed: end its training, or "
                              "wait for the thread that loads"
                            : "tenon.lm: the model is in use: end what is being generated, "
                              "or wait for the other thread");
        return false;
    }
    model->is_alone = alone;
    model->uses += !alone;
    return true;
}

void model_leave(struct lm_model *model, bool alone)
{
    if (alone)
        model->is_alone = false;
    else
        model->uses--;
}

bool model_enter_for(struct lm_model *model, bool alone, struct lm_work *work)
{
    if (!work)
        return false;
    if (!model_enter(model, alone)) {
        work_free(work);
        return false;
    }
    work->model = model;
    work->is_alone = alone;
    return true;
}

// --- opening and closing ---

// Closes a model with its streams, sequences and images. The child of a fork() lacks their
// threads, so it closes nothing.
static void model_drop(struct py_held *held)
{
    struct lm_model *self =
        (struct lm_model *)((char *)held - offsetof(struct lm_model, held));
    if (!self->lm || self->process != getpid())
        return;
    while (self->streams)
        stream_shut(self->streams);
    for (struct lm_sequence *s = self->sequences; s; s = s->next)
        sequence_drop(s);
    for (struct lm_work *work; (work = self->left) != NULL;) {
        self->left = work->next;
        work_free(work);
    }
    for (struct lm_image *image = self->images; image; image = image->next)
        image_drop(image);
    tn_lm_close(self->lm);
    self->lm = NULL;
}

static PyObject *model_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PY_GUARD;
    (void)keywords;
    const char *path;
    tn_lm_options options = {.struct_size = sizeof(options)};
    long long context, sequences;
    if (!PyArg_ParseTuple(args, "sLzLz:Model", &path, &context, &options.cache, &sequences,
                          &options.split))
        return NULL;
    options.context = context;
    options.sequences = sequences;
    tn_runtime *runtime = py_host->runtime_get();
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct lm_model *self = runtime ? (struct lm_model *)alloc(type, 0) : NULL;
    if (!self)
        return NULL;
    tn_lm *lm = NULL;
    tn_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_lm_open(runtime, path, &options, &lm);
    Py_END_ALLOW_THREADS;
    if (status != TN_OK) {
        lm_raise(status);
        Py_DECREF(self);
        return NULL;
    }
    self->lm = lm;
    self->process = getpid();
    py_host->held_add(&self->held, model_drop);
    return (PyObject *)self;
}

static void model_dealloc(PyObject *object)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    PyTypeObject *type = Py_TYPE(object);
    py_host->held_remove(&self->held);
    model_drop(&self->held);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

// close(): closes the model with its streams, sequences and images.
static PyObject *model_close(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_model *self = (struct lm_model *)object;
    if (!self->lm)
        Py_RETURN_NONE;
    if (!model_enter(self, true))
        return NULL;
    model_drop(&self->held);
    model_leave(self, true);
    Py_RETURN_NONE;
}

// --- facts of a model ---

static PyObject *model_info(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_model *self = (struct lm_model *)object;
    if (!model_enter(self, false))
        return NULL;
    tn_lm_info i = {.struct_size = sizeof(i)};
    tn_lm_describe(self->lm, &i);
    PyObject *info = Py_BuildValue(
        "{s:s,s:s,s:s,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:K,s:K,s:s,s:L}", "name", i.name,
        "architecture", i.architecture, "plugin", i.plugin, "layers", (long long)i.layers,
        "width", (long long)i.width, "vocabulary", (long long)i.vocabulary, "context",
        (long long)i.context, "trained", (long long)i.trained, "first", (long long)i.first,
        "end", (long long)i.end, "weight_bytes", (unsigned long long)i.weight_bytes,
        "cache_bytes", (unsigned long long)i.cache_bytes, "cache", i.cache, "sequences",
        (long long)i.sequences);
    model_leave(self, false);
    return info;
}

static PyObject *part_dict(const tn_lm_part *part)
{
    return Py_BuildValue("{s:s,s:s,s:L,s:L,s:K,s:K}", "device", part->device, "name",
                         part->name, "first", (long long)part->first, "end",
                         (long long)part->end, "weight_bytes",
                         (unsigned long long)part->weight_bytes, "cache_bytes",
                         (unsigned long long)part->cache_bytes);
}

static PyObject *parts_list(struct lm_model *self)
{
    enum { MOST = 256 }; // devices
    uint64_t count = MOST;
    tn_lm_part *parts = PyMem_Calloc(MOST, sizeof(*parts));
    if (!parts)
        return PyErr_NoMemory();
    parts[0].struct_size = sizeof(*parts);
    tn_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_lm_parts(self->lm, parts, &count);
    Py_END_ALLOW_THREADS;
    PyObject *list = status == TN_OK ? PyList_New(0) : lm_raise(status);
    for (uint64_t i = 0; list && i < count && i < MOST; i++) {
        PyObject *part = part_dict(&parts[i]);
        if (!part || PyList_Append(list, part) != 0)
            Py_CLEAR(list);
        Py_XDECREF(part);
    }
    PyMem_Free(parts);
    return list;
}

// parts(): which device has which layers.
static PyObject *model_parts(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_model *self = (struct lm_model *)object;
    if (!model_enter(self, false))
        return NULL;
    PyObject *list = parts_list(self);
    model_leave(self, false);
    return list;
}

// A value of metadata; None for an unknown kind.
static PyObject *metadata_value(const tn_metadata *pair, uint64_t at)
{
    const tn_text *text;
    switch (pair->kind) {
    case TN_METADATA_TEXT:
        text = (const tn_text *)pair->data + at;
        return PyUnicode_DecodeUTF8(text->data, (Py_ssize_t)text->size, "replace");
    case TN_METADATA_INTEGER:
        return PyLong_FromLongLong(((const int64_t *)pair->data)[at]);
    case TN_METADATA_UNSIGNED:
        return PyLong_FromUnsignedLongLong(((const uint64_t *)pair->data)[at]);
    case TN_METADATA_FLOAT:
        return PyFloat_FromDouble(((const double *)pair->data)[at]);
    case TN_METADATA_BOOL:
        return PyBool_FromLong(((const uint8_t *)pair->data)[at]);
    default:
        return Py_NewRef(Py_None);
    }
}

static PyObject *metadata_object(const tn_metadata *pair)
{
    if (!(pair->flags & TN_METADATA_LIST))
        return metadata_value(pair, 0);
    PyObject *list = PyList_New((Py_ssize_t)pair->count);
    for (uint64_t i = 0; list && i < pair->count; i++) {
        PyObject *value = metadata_value(pair, i);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// metadata(): the file's pairs, as a dict.
static PyObject *model_metadata(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_model *self = (struct lm_model *)object;
    if (!model_enter(self, false))
        return NULL;
    const tn_metadata_list *list = tn_lm_metadata(self->lm);
    PyObject *dict = PyDict_New();
    for (uint64_t i = 0; dict && i < list->count; i++) {
        const tn_metadata *pair = tn_metadata_at(list, i);
        PyObject *value = metadata_object(pair);
        if (!value || PyDict_SetItemString(dict, pair->key, value) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    model_leave(self, false);
    return dict;
}

bool model_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"close", model_close, METH_NOARGS, NULL},
        {"info", model_info, METH_NOARGS, NULL},
        {"parts", model_parts, METH_NOARGS, NULL},
        {"metadata", model_metadata, METH_NOARGS, NULL},
        {"tokenize", model_tokenize, METH_VARARGS, NULL},
        {"detokenize", model_detokenize, METH_O, NULL},
        {"is_end", model_is_end, METH_O, NULL},
        {"chat", model_chat, METH_VARARGS, NULL},
        {"sequence", model_sequence, METH_NOARGS, NULL},
        {"batch", model_batch, METH_VARARGS, NULL},
        {"image", model_image, METH_VARARGS, NULL},
        {"image_mark", model_image_mark, METH_NOARGS, NULL},
        {"vision", model_vision, METH_VARARGS, NULL},
        {"expand", model_expand, METH_VARARGS, NULL},
        {"load_adapter", model_load_adapter, METH_VARARGS, NULL},
        {"save_adapter", model_save_adapter, METH_VARARGS, NULL},
        {"train", model_train, METH_VARARGS, NULL},
        {"shard", model_shard, METH_VARARGS, NULL},
        {"importance", model_importance, METH_VARARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {{Py_tp_new, model_new},
                                  {Py_tp_dealloc, model_dealloc},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {.name = "tenon._lm.Model",
                               .basicsize = sizeof(struct lm_model),
                               .flags = Py_TPFLAGS_DEFAULT,
                               .slots = slots};
    model_type = type_add(module, &spec);
    return model_type != NULL;
}

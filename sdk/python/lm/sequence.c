// SPDX-License-Identifier: MIT
// The type Sequence: opening one, logits, embeddings, files.
#include "lm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

PyTypeObject *sequence_type;

// --- use by one caller at a time ---

bool sequence_enter(struct lm_sequence *s)
{
    if (s->left) {
        if (!work_settle(&s->left))
            return false;
        s->is_used = false;
    }
    if (s->stream && !stream_settle(s->stream))
        return false;
    if (!s->sequence || s->is_used) {
        PyErr_SetString(s->sequence ? PyExc_RuntimeError : PyExc_ValueError,
                        s->sequence ? "tenon.lm: the sequence is in use: end what it "
                                      "generates, or wait for the other thread"
                                    : "tenon.lm: the sequence is closed");
        return false;
    }
    if (!model_enter(s->model, false))
        return false;
    s->is_used = true;
    return true;
}

void sequence_leave(struct lm_sequence *s)
{
    s->is_used = false;
    model_leave(s->model, false);
}

// Runs work of a sequence that was entered; freeing the work leaves the model.
static bool sequence_do(struct lm_sequence *s, struct lm_work **work)
{
    (*work)->model = s->model;
    bool done = work_do(work, &s->left);
    if (*work)
        s->is_used = false;
    return done;
}

// --- opening and closing ---

struct open_work {
    struct lm_work work;
    tn_lm *lm;
    tn_lm_sequence *sequence; // NULL once it was taken
};

static void open_run(struct lm_work *work)
{
    struct open_work *w = (struct open_work *)work;
    work_set(work, tn_lm_sequence_open(w->lm, &w->sequence));
}

static void open_free(struct lm_work *work)
{
    tn_lm_sequence_close(((struct open_work *)work)->sequence);
}

static PyObject *sequence_of(struct lm_model *model, struct open_work *w)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(sequence_type, Py_tp_alloc);
    struct lm_sequence *self = (struct lm_sequence *)alloc(sequence_type, 0);
    if (!self)
        return NULL;
    self->sequence = w->sequence;
    w->sequence = NULL;
    self->model = (struct lm_model *)Py_NewRef((PyObject *)model);
    self->next = model->sequences;
    model->sequences = self;
    return (PyObject *)self;
}

// sequence(): an empty sequence. Loads the model's weights at the first call.
PyObject *model_sequence(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_model *self = (struct lm_model *)object;
    struct lm_work *work = work_new(sizeof(struct open_work), open_run, open_free);
    if (!model_enter_for(self, false, work))
        return NULL;
    struct open_work *w = (struct open_work *)work;
    w->lm = self->lm;
    PyObject *sequence = work_do(&work, &self->left) ? sequence_of(self, w) : NULL;
    work_free(work);
    return sequence;
}

void sequence_drop(struct lm_sequence *s)
{
    for (struct lm_work *work; (work = s->left) != NULL;) {
        s->left = work->next;
        work_free(work);
    }
    tn_lm_sequence_close(s->sequence);
    s->sequence = NULL;
}

static void sequence_dealloc(PyObject *object)
{
    PY_GUARD;
    struct lm_sequence *self = (struct lm_sequence *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->model->process == getpid())
        sequence_drop(self);
    struct lm_sequence **at = &self->model->sequences;
    while (*at && *at != self)
        at = &(*at)->next;
    if (*at)
        *at = self->next;
    Py_DECREF((PyObject *)self->model);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

static PyObject *sequence_close(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_sequence *self = (struct lm_sequence *)object;
    if (!self->sequence)
        Py_RETURN_NONE;
    if (!sequence_enter(self))
        return NULL;
    sequence_drop(self);
    sequence_leave(self);
    Py_RETURN_NONE;
}

// --- positions and files ---

static PyObject *sequence_length(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_sequence *self = (struct lm_sequence *)object;
    if (!sequence_enter(self))
        return NULL;
    int64_t length = tn_lm_sequence_length(self->sequence);
    sequence_leave(self);
    return PyLong_FromLongLong(length);
}

static PyObject *sequence_cut(PyObject *object, PyObject *length)
{
    PY_GUARD;
    struct lm_sequence *self = (struct lm_sequence *)object;
    long long count = PyLong_AsLongLong(length);
    if (PyErr_Occurred() || !sequence_enter(self))
        return NULL;
    tn_status status = tn_lm_sequence_cut(self->sequence, count);
    sequence_leave(self);
    return status == TN_OK ? Py_NewRef(Py_None) : lm_raise(status);
}

static PyObject *with_file(PyObject *object, PyObject *path, bool saves)
{
    struct lm_sequence *self = (struct lm_sequence *)object;
    const char *name = PyUnicode_AsUTF8AndSize(path, NULL);
    if (!name || !sequence_enter(self))
        return NULL;
    tn_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = saves ? tn_lm_sequence_save(self->sequence, name)
                   : tn_lm_sequence_restore(self->sequence, name);
    Py_END_ALLOW_THREADS;
    sequence_leave(self);
    return status == TN_OK ? Py_NewRef(Py_None) : lm_raise(status);
}

static PyObject *sequence_save(PyObject *self, PyObject *path)
{
    PY_GUARD;
    return with_file(self, path, true);
}

static PyObject *sequence_restore(PyObject *self, PyObject *path)
{
    PY_GUARD;
    return with_file(self, path, false);
}

// --- logits and embeddings ---

struct infer_work {
    struct lm_work work;
    tn_lm_sequence *sequence;
    int32_t *ids; // NULL: the input is `hidden`
    const float *hidden;
    int64_t count;
    const tn_lm_image **images;
    uint64_t num_images;
    uint32_t flags, pooling;
    bool is_shard, is_embedding;
    float *out;
};

static void infer_run(struct lm_work *work)
{
    struct infer_work *w = (struct infer_work *)work;
    if (w->is_embedding)
        work_set(work,
                 tn_lm_embed(w->sequence, w->ids, w->count, w->pooling, w->flags, w->out));
    else if (w->is_shard)
        work_set(work,
                 tn_lm_infer_tensor(w->sequence,
                                    w->ids ? (const void *)w->ids : (const void *)w->hidden,
                                    w->count, w->flags, w->out));
    else if (w->images)
        work_set(work, tn_lm_infer_images(w->sequence, w->ids, w->count, w->images,
                                          w->num_images, w->flags, w->out));
    else
        work_set(work, tn_lm_infer(w->sequence, w->ids, w->count, w->flags, w->out));
}

static void infer_free(struct lm_work *work)
{
    struct infer_work *w = (struct infer_work *)work;
    free(w->ids);
    free((void *)w->images);
    free(w->out);
}

// Number of rows of logits; an image's rows stand in the place of its mark.
static int64_t count_logit_rows(struct lm_sequence *s, const struct infer_work *w)
{
    int32_t *ids = NULL;
    int64_t count = w->count;
    if (w->images && tn_lm_image_expand(s->model->lm, w->ids, w->count, w->images,
                                        w->num_images, &ids, &count) == TN_OK)
        tn_lm_free(ids);
    return w->flags & TN_LM_ALL_ROWS ? count : 1;
}

static PyObject *infer_take(struct lm_sequence *s, struct infer_work *w)
{
    struct lm_work *work = &w->work;
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(s->model->lm, &info);
    bool is_hidden = w->is_embedding || (w->is_shard && info.end < info.layers);
    int64_t rows = w->is_embedding ? 1 : is_hidden ? w->count : count_logit_rows(s, w);
    int64_t floats = rows * (is_hidden ? info.width : info.vocabulary);
    PyObject *result = NULL;
    w->sequence = s->sequence;
    w->out = malloc(sizeof(float) * (size_t)(floats + 1));
    if (!w->out) {
        PyErr_NoMemory();
        sequence_leave(s);
    } else if (sequence_do(s, &work)) {
        result = floats_bytes(w->out, floats);
    }
    work_free(work);
    return result;
}

// infer(ids, flags, images or None): bytes of float32, the logits.
static PyObject *sequence_infer(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_sequence *self = (struct lm_sequence *)object;
    PyObject *ids, *images;
    unsigned int flags;
    if (!PyArg_ParseTuple(args, "OIO:infer", &ids, &flags, &images))
        return NULL;
    struct infer_work *w = work_new(sizeof(struct infer_work), infer_run, infer_free);
    bool read =
        w && ids_read(ids, &w->ids, &w->count) &&
        (images == Py_None || images_take(self->model, images, &w->images, &w->num_images));
    if (!read || !sequence_enter(self)) {
        work_free(&w->work);
        return NULL;
    }
    w->flags = flags;
    w->work.kept = Py_NewRef(images);
    return infer_take(self, w);
}

// infer_tensor(input: tokens, or float32 of the hidden state, flags): bytes of float32.
static PyObject *sequence_infer_tensor(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_sequence *self = (struct lm_sequence *)object;
    PyObject *input;
    unsigned int flags;
    if (!PyArg_ParseTuple(args, "OI:infer_tensor", &input, &flags))
        return NULL;
    struct infer_work *w = work_new(sizeof(struct infer_work), infer_run, infer_free);
    if (!w || !sequence_enter(self)) {
        work_free(w ? &w->work : NULL);
        return NULL;
    }
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(self->model->lm, &info);
    char *bytes = NULL;
    Py_ssize_t size = 0, row = (Py_ssize_t)sizeof(float) * (Py_ssize_t)info.width;
    bool read = info.first == 0 ? ids_read(input, &w->ids, &w->count)
                                : PyBytes_AsStringAndSize(input, &bytes, &size) == 0;
    if (read && bytes && (size == 0 || size % row != 0)) {
        PyErr_Format(PyExc_ValueError,
                     "infer_tensor: %zd bytes, expected rows of %lld float32", size,
                     (long long)info.width);
        read = false;
    }
    if (!read) {
        sequence_leave(self);
        work_free(&w->work);
        return NULL;
    }
    w->hidden = (const float *)(const void *)bytes;
    w->count = bytes ? size / row : w->count;
    w->flags = flags;
    w->is_shard = true;
    w->work.kept = Py_NewRef(input);
    return infer_take(self, w);
}

// embed(ids, pooling, flags): bytes of float32.
static PyObject *sequence_embed(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_sequence *self = (struct lm_sequence *)object;
    PyObject *ids;
    unsigned int pooling, flags;
    if (!PyArg_ParseTuple(args, "OII:embed", &ids, &pooling, &flags))
        return NULL;
    struct infer_work *w = work_new(sizeof(struct infer_work), infer_run, infer_free);
    if (!w || !ids_read(ids, &w->ids, &w->count) || !sequence_enter(self)) {
        work_free(w ? &w->work : NULL);
        return NULL;
    }
    w->pooling = pooling;
    w->flags = flags;
    w->is_embedding = true;
    return infer_take(self, w);
}

// --- several sequences ---

// Inference over several entered sequences at once.
struct joint_infer {
    struct lm_sequence **sequences;
    tn_lm_item *items;
    uint64_t count;
};

static void joint_free(struct joint_infer *b)
{
    for (uint64_t i = 0; i < b->count; i++) {
        sequence_leave(b->sequences[i]);
        free((int32_t *)(uintptr_t)b->items[i].ids);
        free(b->items[i].out_logits);
    }
    free(b->sequences);
    free(b->items);
}

static bool joint_add(struct joint_infer *b, PyObject *pair)
{
    PyObject *object, *given;
    int32_t *ids = NULL;
    int64_t count = 0;
    if (!PyTuple_Check(pair) ||
        !PyArg_ParseTuple(pair, "O!O:infer_batch", sequence_type, &object, &given))
        return false;
    struct lm_sequence *s = (struct lm_sequence *)object;
    if (!ids_read(given, &ids, &count))
        return false;
    if (!sequence_enter(s)) {
        free(ids);
        return false;
    }
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(s->model->lm, &info);
    float *logits = malloc(sizeof(float) * (size_t)info.vocabulary);
    b->sequences[b->count] = s;
    b->items[b->count++] = (tn_lm_item){
        .sequence = s->sequence, .ids = ids, .count = count, .out_logits = logits};
    return logits || PyErr_NoMemory();
}

static PyObject *joint_infer(struct joint_infer *b)
{
    tn_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_lm_infer_batch(b->items, b->count);
    Py_END_ALLOW_THREADS;
    PyObject *list = status == TN_OK ? PyList_New(0) : lm_raise(status);
    for (uint64_t i = 0; list && i < b->count; i++) {
        tn_lm_info info = {.struct_size = sizeof(info)};
        tn_lm_describe(b->sequences[i]->model->lm, &info);
        PyObject *row = floats_bytes(b->items[i].out_logits, info.vocabulary);
        if (!row || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

// infer_batch([(sequence, ids), ...]): the logits of each, bytes of float32.
PyObject *infer_batch(PyObject *module, PyObject *list)
{
    PY_GUARD;
    (void)module;
    PyObject *pairs = PySequence_List(list);
    size_t count = pairs ? (size_t)PyList_Size(pairs) : 0;
    struct joint_infer b = {.sequences = calloc(count + 1, sizeof(struct lm_sequence *)),
                            .items = calloc(count + 1, sizeof(tn_lm_item))};
    bool read = pairs && ((b.sequences && b.items) || PyErr_NoMemory());
    for (size_t i = 0; read && i < count; i++) {
        PyObject *pair = item_of_list(pairs, (Py_ssize_t)i);
        read = pair && joint_add(&b, pair);
        Py_XDECREF(pair);
    }
    if (!read && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "infer_batch: expected pairs (sequence, tokens)");
    PyObject *result = read ? joint_infer(&b) : NULL;
    joint_free(&b);
    Py_XDECREF(pairs);
    return result;
}

bool sequence_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"close", sequence_close, METH_NOARGS, NULL},
        {"length", sequence_length, METH_NOARGS, NULL},
        {"cut", sequence_cut, METH_O, NULL},
        {"save", sequence_save, METH_O, NULL},
        {"restore", sequence_restore, METH_O, NULL},
        {"infer", sequence_infer, METH_VARARGS, NULL},
        {"infer_tensor", sequence_infer_tensor, METH_VARARGS, NULL},
        {"embed", sequence_embed, METH_VARARGS, NULL},
        {"generate", sequence_generate, METH_O, NULL},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, sequence_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
    static PyType_Spec spec = {.name = "tenon._lm.Sequence",
                               .basicsize = sizeof(struct lm_sequence),
                               .flags =
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    sequence_type = type_add(module, &spec);
    return sequence_type != NULL;
}

// SPDX-License-Identifier: MIT
// The type Stream: an iterator over what work yields. The work resumes when the next item
// is asked for, and ends when the iterator is destroyed.
#include "lm.h"

#include <time.h>
#include <unistd.h>

struct lm_stream {
    PyObject ob_base;
    struct lm_work *work;         // NULL once it has ended
    struct lm_model *model;       // a reference
    struct lm_sequence *sequence; // a reference; NULL: work of the model
    PyObject *(*item)(struct lm_work *work);
    PyObject *(*result)(struct lm_work *work);
    PyObject *outcome;      // object of `result`; NULL: none yet
    struct lm_stream *next; // in the model's list
    bool is_running;        // a thread waits for an item
};

static PyTypeObject *stream_type;

PyObject *stream_new(struct lm_work *work, struct lm_sequence *sequence,
                     PyObject *(*item)(struct lm_work *work),
                     PyObject *(*result)(struct lm_work *work))
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(stream_type, Py_tp_alloc);
    struct lm_stream *self = (struct lm_stream *)alloc(stream_type, 0);
    if (!self) {
        if (sequence)
            sequence->is_used = false;
        work_free(work);
        return NULL;
    }
    self->work = work;
    self->item = item;
    self->result = result;
    self->model = (struct lm_model *)Py_NewRef((PyObject *)work->model);
    self->sequence = (struct lm_sequence *)Py_XNewRef((PyObject *)sequence);
    self->next = self->model->streams;
    self->model->streams = self;
    if (sequence)
        sequence->stream = self;
    return (PyObject *)self;
}

// Frees the work, which leaves the model, and leaves the sequence. Keeps a set exception.
static void stream_finish(struct lm_stream *self)
{
    struct lm_work *work = self->work;
    self->work = NULL;
    struct lm_stream **at = &self->model->streams;
    while (*at && *at != self)
        at = &(*at)->next;
    if (*at)
        *at = self->next;
    work_free(work);
    if (self->sequence) {
        self->sequence->stream = NULL;
        self->sequence->is_used = false;
    }
}

bool stream_settle(struct lm_stream *self)
{
    if (!self->work->is_stopped || self->is_running)
        return true; // the caller then finds the sequence in use
    if (!work_end(self->work))
        return false;
    stream_finish(self);
    return true;
}

void stream_shut(struct lm_stream *self)
{
    PyObject *keep = Py_NewRef((PyObject *)self);
    while (self->work && self->is_running) {
        work_stop(self->work);
        PyThreadState *state = PyEval_SaveThread();
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        PyEval_RestoreThread(state);
    }
    if (self->work) {
        work_stop(self->work);
        stream_finish(self);
    }
    Py_DECREF(keep);
}

static void stream_dealloc(PyObject *object)
{
    PY_GUARD;
    struct lm_stream *self = (struct lm_stream *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->work) {
        work_stop(self->work);
        stream_finish(self);
    }
    Py_XDECREF(self->outcome);
    Py_XDECREF((PyObject *)self->sequence);
    Py_DECREF((PyObject *)self->model);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

// The work has ended: sets `outcome`, or raises its failure.
static void stream_conclude(struct lm_stream *self)
{
    if (self->work->status != TN_OK)
        work_raise(self->work);
    else if (self->result)
        self->outcome = self->result(self->work);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    stream_finish(self);
    PyErr_Restore(type, value, trace);
}

static PyObject *stream_next(PyObject *object)
{
    PY_GUARD;
    struct lm_stream *self = (struct lm_stream *)object;
    if (!py_host->runtime_get() || (self->work && !stream_settle(self)) || !self->work)
        return NULL;
    if (self->is_running) {
        PyErr_SetString(PyExc_RuntimeError,
                        "tenon.lm: another thread waits for the next item");
        return NULL;
    }
    self->is_running = true;
    bool went_on = work_next(self->work);
    self->is_running = false;
    if (!went_on) {
        work_stop(self->work);
        return NULL;
    }
    if (self->work->state == WORK_YIELDS)
        return self->item(self->work);
    stream_conclude(self);
    return NULL;
}

// close(): ends the work. The items that it gave so far stay valid.
static PyObject *stream_close(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_stream *self = (struct lm_stream *)object;
    if (self->is_running) {
        PyErr_SetString(PyExc_RuntimeError,
                        "tenon.lm: another thread waits for the next item");
        return NULL;
    }
    if (self->work) {
        work_stop(self->work);
        if (!work_end(self->work))
            return NULL;
        stream_conclude(self);
        if (PyErr_Occurred())
            return NULL;
    }
    Py_RETURN_NONE;
}

// outcome(): how the work ended; None before, and where it was stopped.
static PyObject *stream_outcome(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    PyObject *outcome = ((struct lm_stream *)object)->outcome;
    return Py_NewRef(outcome ? outcome : Py_None);
}

bool stream_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"close", stream_close, METH_NOARGS, NULL},
        {"outcome", stream_outcome, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {{Py_tp_dealloc, stream_dealloc},
                                  {Py_tp_iter, PyObject_SelfIter},
                                  {Py_tp_iternext, stream_next},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {.name = "tenon._lm.Stream",
                               .basicsize = sizeof(struct lm_stream),
                               .flags =
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    stream_type = type_add(module, &spec);
    return stream_type != NULL;
}

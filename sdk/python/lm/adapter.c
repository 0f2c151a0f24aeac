// SPDX-License-Identifier: MIT
// Methods of Model that change it: adapters, shards; and how important columns are. While
// one runs, no other function of the model is called.
#include "lm.h"

#include <stdlib.h>
#include <string.h>

// --- calls that may last ---

struct model_change {
    struct lm_work work;
    tn_lm *lm;
    char *path;
    double scale;
    int64_t first, last;
    int32_t *ids;
    int64_t count;
    int64_t window;
};

static void change_free(struct lm_work *work)
{
    struct model_change *c = (struct model_change *)work;
    free(c->path);
    free(c->ids);
}

static void run_load(struct lm_work *work)
{
    struct model_change *c = (struct model_change *)work;
    work_set(work, tn_lm_adapter_load(c->lm, c->path, c->scale));
}

static void run_save(struct lm_work *work)
{
    struct model_change *c = (struct model_change *)work;
    work_set(work, tn_lm_adapter_save(c->lm, c->path));
}

static void run_shard(struct lm_work *work)
{
    struct model_change *c = (struct model_change *)work;
    work_set(work, tn_lm_ensure_shard(c->lm, c->first, c->last));
}

static void run_importance(struct lm_work *work)
{
    struct model_change *c = (struct model_change *)work;
    work_set(work,
             tn_lm_importance_save(c->lm, c->ids, (uint64_t)c->count, c->window, c->path));
}

static PyObject *change_model(struct lm_model *self, struct model_change *c)
{
    struct lm_work *work = &c->work;
    if (!model_enter_for(self, true, work))
        return NULL;
    c->lm = self->lm;
    PyObject *result = work_do(&work, &self->left) ? Py_NewRef(Py_None) : NULL;
    work_free(work);
    return result;
}

// load_adapter(path or None, scale)
PyObject *model_load_adapter(PyObject *object, PyObject *args)
{
    PY_GUARD;
    const char *path;
    double scale;
    if (!PyArg_ParseTuple(args, "zd:load_adapter", &path, &scale))
        return NULL;
    struct model_change *c = work_new(sizeof(*c), run_load, change_free);
    if (!c)
        return NULL;
    c->path = path ? strdup(path) : NULL;
    c->scale = scale;
    return change_model((struct lm_model *)object, c);
}

PyObject *model_save_adapter(PyObject *object, PyObject *args)
{
    PY_GUARD;
    const char *path;
    if (!PyArg_ParseTuple(args, "s:save_adapter", &path))
        return NULL;
    struct model_change *c = work_new(sizeof(*c), run_save, change_free);
    if (!c)
        return NULL;
    c->path = strdup(path);
    return change_model((struct lm_model *)object, c);
}

// shard(first, last): loads the weights of these layers alone from now on.
PyObject *model_shard(PyObject *object, PyObject *args)
{
    PY_GUARD;
    long long first, last;
    if (!PyArg_ParseTuple(args, "LL:shard", &first, &last))
        return NULL;
    struct model_change *c = work_new(sizeof(*c), run_shard, change_free);
    if (!c)
        return NULL;
    c->first = first;
    c->last = last;
    return change_model((struct lm_model *)object, c);
}

// importance(ids, window, path)
PyObject *model_importance(PyObject *object, PyObject *args)
{
    PY_GUARD;
    PyObject *ids;
    long long window;
    const char *path;
    if (!PyArg_ParseTuple(args, "OLs:importance", &ids, &window, &path))
        return NULL;
    struct model_change *c = work_new(sizeof(*c), run_importance, change_free);
    if (!c)
        return NULL;
    if (!ids_read(ids, &c->ids, &c->count)) {
        work_free(&c->work);
        return NULL;
    }
    c->path = strdup(path);
    c->window = window;
    return change_model((struct lm_model *)object, c);
}

// --- training ---

struct adapter_training {
    struct lm_work work;
    tn_lm *lm;
    int32_t *ids;
    int64_t count;
    tn_lm_training how;
    const char **weights;
    tn_lm_trained now; // latest argument of give_step()
};

static int32_t give_step(void *context, const tn_lm_trained *now)
{
    struct adapter_training *t = context;
    t->now = *now;
    return !work_yield(&t->work);
}

static void train_run(struct lm_work *work)
{
    struct adapter_training *t = (struct adapter_training *)work;
    work_set(work, tn_lm_train_adapter(t->lm, t->ids, (uint64_t)t->count, &t->how));
}

static void training_free(struct lm_work *work)
{
    struct adapter_training *t = (struct adapter_training *)work;
    free(t->ids);
    free((void *)t->weights);
}

// (step, steps, loss, seconds)
static PyObject *step_tuple(struct lm_work *work)
{
    const tn_lm_trained *now = &((const struct adapter_training *)work)->now;
    return Py_BuildValue("(LLdd)", (long long)now->step, (long long)now->steps, now->loss,
                         now->seconds);
}

static bool weights_read(struct adapter_training *t, PyObject *names)
{
    Py_ssize_t count = PyTuple_Size(names);
    t->weights = calloc((size_t)count + 1, sizeof(*t->weights));
    bool read = t->weights || PyErr_NoMemory();
    for (Py_ssize_t i = 0; read && i < count; i++) {
        t->weights[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL);
        read = t->weights[i] != NULL;
    }
    t->how.weights = count > 0 ? t->weights : NULL;
    t->how.num_weights = (uint64_t)count;
    t->work.kept = Py_NewRef(names);
    return read;
}

static bool training_read(struct adapter_training *t, PyObject *options)
{
    static const struct lm_field fields[] = {
        {"rank", 'i', offsetof(tn_lm_training, rank)},
        {"alpha", 'd', offsetof(tn_lm_training, alpha)},
        {"window", 'i', offsetof(tn_lm_training, window)},
        {"steps", 'i', offsetof(tn_lm_training, steps)},
        {"rate", 'd', offsetof(tn_lm_training, rate)},
        {"seed", 'u', offsetof(tn_lm_training, seed)},
    };
    t->how = (tn_lm_training){
        .struct_size = sizeof(t->how), .progress = give_step, .context = t};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        PyObject *name = PyUnicode_FromString(fields[i].name);
        PyObject *value = name ? item_of_dict(options, name) : NULL;
        bool read = value && field_read(&fields[i], 1, name, value, &t->how) == 1;
        bool is_absent = name && !value && !PyErr_Occurred();
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (!read && !is_absent)
            return false;
    }
    return true;
}

// train(ids, weights: a tuple of names, options: a dict): a Stream of steps.
PyObject *model_train(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    PyObject *ids, *weights, *options;
    if (!PyArg_ParseTuple(args, "OO!O!:train", &ids, &PyTuple_Type, &weights, &PyDict_Type,
                          &options))
        return NULL;
    struct adapter_training *t = work_new(sizeof(*t), train_run, training_free);
    if (!t)
        return NULL;
    if (!training_read(t, options) || !ids_read(ids, &t->ids, &t->count) ||
        !weights_read(t, weights)) {
        work_free(&t->work);
        return NULL;
    }
    if (!model_enter_for(self, true, &t->work))
        return NULL;
    t->lm = self->lm;
    return stream_new(&t->work, NULL, step_tuple, NULL);
}

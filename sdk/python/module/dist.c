// SPDX-License-Identifier: MIT
// Groups of processes: the interface <tenon/dist.h> of pack "dist". Calls wait for other
// processes, so another thread makes them, and signals are handled meanwhile.
#include "define.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/dist.h>

enum group_action { FIND, SPLIT, SHRINK, SET_DEADLINE, ABORT, LEAVE };

struct py_group_call {
    struct py_work work;
    enum group_action action;
    const tn_dist *dist;
    const tn_host *host;
    char name[256], text[512]; // text: name of the group to make, or reason of an abort
    int32_t color, key;
    uint64_t milliseconds;
    tn_group_facts facts;
    tn_status status;
    char message[1024];
};

static tn_status group_call_make(struct py_group_call *c)
{
    switch (c->action) {
    case FIND:
        return c->dist->find(c->host, c->name, &c->facts, sizeof(c->facts));
    case SPLIT:
        return c->dist->split(c->host, c->name, c->color, c->key, c->text);
    case SHRINK:
        return c->dist->shrink(c->host, c->name, c->text);
    case SET_DEADLINE:
        return c->dist->set_deadline(c->host, c->name, c->milliseconds);
    case ABORT:
        return c->dist->abort(c->host, c->name, c->text);
    default:
        c->dist->leave(c->host);
        return TN_OK;
    }
}

static void group_call_run(struct py_work *work)
{
    struct py_group_call *c = (struct py_group_call *)work;
    c->status = group_call_make(c);
    if (c->status != TN_OK)
        snprintf(c->message, sizeof(c->message), "%s", tn_last_error());
}

static void group_call_free(struct py_work *work)
{
    free(work);
}

// A call, to be freed; NULL with an exception set.
static struct py_group_call *group_call(enum group_action action, const char *name,
                                        const char *text)
{
    tn_runtime *runtime = runtime_get();
    struct py_group_call *c = runtime ? calloc(1, sizeof(*c)) : NULL;
    if (!c)
        return runtime ? (struct py_group_call *)PyErr_NoMemory() : NULL;
    c->work = (struct py_work){.run = group_call_run, .finish = group_call_free};
    c->action = action;
    if (strlen(name) >= sizeof(c->name) || strlen(text) >= sizeof(c->text)) {
        free(c);
        PyErr_Format(PyExc_ValueError, "a text of %zu bytes, expected fewer than %zu",
                     strlen(name) + strlen(text), sizeof(c->name));
        return NULL;
    }
    memcpy(c->name, name, strlen(name));
    memcpy(c->text, text, strlen(text));
    tn_status status =
        tn_interface_find(runtime, TN_IFACE_DIST, (const void **)&c->dist, &c->host);
    if (status == TN_OK)
        return c;
    free(c);
    raise_status(status, tn_last_error());
    return NULL;
}

// Runs the call, and frees it unless a signal interrupted it. False with an exception set.
static bool group_call_wait(struct py_group_call *c, tn_group_facts *out_facts)
{
    if (!c || !work_wait(&c->work))
        return false;
    tn_status status = c->status;
    if (status != TN_OK)
        raise_status(status, c->message);
    else if (out_facts)
        *out_facts = c->facts;
    free(c);
    return status == TN_OK;
}

static PyObject *py_dist_done(bool is_done)
{
    return is_done ? Py_NewRef(Py_None) : NULL;
}

PyObject *group_find(PyObject *module, PyObject *args)
{
    PY_GUARD;
    const char *name;
    tn_group_facts facts;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:group_find", &name) ||
        !group_call_wait(group_call(FIND, name, ""), &facts))
        return NULL;
    return Py_BuildValue("(iisi)", (int)facts.rank, (int)facts.size, facts.library,
                         (facts.flags & TN_GROUP_SHRINKS) != 0);
}

PyObject *group_split(PyObject *module, PyObject *args)
{
    PY_GUARD;
    const char *name, *made;
    int color, key;
    (void)module;
    if (!PyArg_ParseTuple(args, "siis:group_split", &name, &color, &key, &made))
        return NULL;
    struct py_group_call *c = group_call(SPLIT, name, made);
    if (c) {
        c->color = color;
        c->key = key;
    }
    return py_dist_done(group_call_wait(c, NULL));
}

PyObject *group_shrink(PyObject *module, PyObject *args)
{
    PY_GUARD;
    const char *name, *made;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss:group_shrink", &name, &made))
        return NULL;
    return py_dist_done(group_call_wait(group_call(SHRINK, name, made), NULL));
}

PyObject *group_set_deadline(PyObject *module, PyObject *args)
{
    PY_GUARD;
    const char *name;
    unsigned long long milliseconds;
    (void)module;
    if (!PyArg_ParseTuple(args, "sK:group_set_deadline", &name, &milliseconds))
        return NULL;
    struct py_group_call *c = group_call(SET_DEADLINE, name, "");
    if (c)
        c->milliseconds = milliseconds;
    return py_dist_done(group_call_wait(c, NULL));
}

PyObject *group_abort(PyObject *module, PyObject *args)
{
    PY_GUARD;
    const char *name, *reason;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss:group_abort", &name, &reason))
        return NULL;
    return py_dist_done(group_call_wait(group_call(ABORT, name, reason), NULL));
}

PyObject *group_leave(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    return py_dist_done(group_call_wait(group_call(LEAVE, "", ""), NULL));
}

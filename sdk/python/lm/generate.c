// SPDX-License-Identifier: MIT
// Generating texts, token by token: in one sequence, or in several that share steps.
#include "lm.h"

#include <stdlib.h>
#include <string.h>

struct lm_generation;

// A text to generate, with the memory that `how` points to.
struct lm_text_request {
    struct lm_generation *of;
    tn_lm_generation how;
    tn_lm_result result;
    struct lm_drawing drawing;
    int32_t *ids;
    const char **stops;
    const tn_lm_image **images;
};

struct lm_generation {
    struct lm_work work;
    tn_lm *lm;
    tn_lm_sequence *sequence; // NULL: a batch, whose sequences the model makes
    int64_t at_once;
    // The latest piece, and the index of its text.
    const tn_lm_piece *piece;
    uint64_t index;
    uint64_t count;
    struct lm_text_request requests[];
};

// --- on the work's thread ---

static int32_t give_piece(void *context, const tn_lm_piece *piece)
{
    struct lm_text_request *request = context;
    struct lm_generation *g = request->of;
    g->piece = piece;
    g->index = (uint64_t)(request - g->requests);
    return !work_yield(&g->work);
}

static void generate_one(struct lm_work *work)
{
    struct lm_generation *g = (struct lm_generation *)work;
    struct lm_text_request *r = &g->requests[0];
    work_set(work, tn_lm_generate(g->sequence, &r->how, &r->result));
}

static void generate_all(struct lm_work *work)
{
    struct lm_generation *g = (struct lm_generation *)work;
    tn_lm_request *requests = calloc(g->count + 1, sizeof(*requests));
    if (!requests) {
        work_set(work, TN_ERR_MEMORY);
        return;
    }
    for (uint64_t i = 0; i < g->count; i++)
        requests[i] = (tn_lm_request){.how = &g->requests[i].how,
                                      .out_result = &g->requests[i].result};
    work_set(work, tn_lm_generate_batch(g->lm, requests, g->count, g->at_once));
    free(requests);
}

static void generation_free(struct lm_work *work)
{
    struct lm_generation *g = (struct lm_generation *)work;
    for (uint64_t i = 0; i < g->count; i++) {
        struct lm_text_request *r = &g->requests[i];
        free(r->ids);
        free((void *)r->stops);
        free((void *)r->images);
        free(r->drawing.biases);
    }
}

// --- for Python ---

static PyObject *top_tuple(const tn_lm_piece *piece)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)piece->num_top);
    for (uint64_t i = 0; tuple && i < piece->num_top; i++) {
        PyObject *pair =
            Py_BuildValue("(id)", (int)piece->top[i].id, piece->top[i].log_probability);
        if (!pair || PyTuple_SetItem(tuple, (Py_ssize_t)i, pair) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

// The latest piece as a tuple (index of the text, token or -1 for the rest of a text, text,
// log probability, top). The piece stays valid while the work waits.
static PyObject *piece_tuple(struct lm_work *work)
{
    const struct lm_generation *g = (const struct lm_generation *)work;
    const tn_lm_piece *piece = g->piece;
    PyObject *text = PyUnicode_DecodeUTF8(piece->text, (Py_ssize_t)piece->size, "replace");
    PyObject *top = text ? top_tuple(piece) : NULL;
    if (!top) {
        Py_XDECREF(text);
        return NULL;
    }
    return Py_BuildValue("(KiNdN)", (unsigned long long)g->index, (int)piece->id, text,
                         piece->log_probability, top);
}

// A list of (reason, tokens of the prompt, tokens, seconds of the prompt, seconds).
static PyObject *results_list(struct lm_work *work)
{
    const struct lm_generation *g = (const struct lm_generation *)work;
    PyObject *list = PyList_New((Py_ssize_t)g->count);
    for (uint64_t i = 0; list && i < g->count; i++) {
        const tn_lm_result *r = &g->requests[i].result;
        PyObject *row = Py_BuildValue("(ILLdd)", r->reason, (long long)r->prompt_tokens,
                                      (long long)r->tokens, r->prompt_seconds, r->seconds);
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static bool stops_read(PyObject *stops, struct lm_text_request *r)
{
    Py_ssize_t count = PyTuple_Size(stops);
    r->stops = calloc((size_t)count + 1, sizeof(*r->stops));
    bool read = r->stops || PyErr_NoMemory();
    for (Py_ssize_t i = 0; read && i < count; i++) {
        r->stops[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(stops, i), NULL);
        read = r->stops[i] != NULL;
    }
    r->how.stops = r->stops;
    r->how.num_stops = (uint64_t)count;
    return read;
}

// A request is a tuple (prompt or None, ids or None, flags, max_tokens, stops, top, grammar
// or None, images, sampling).
static bool request_read(struct lm_model *model, PyObject *tuple, struct lm_text_request *r)
{
    PyObject *ids, *stops, *grammar, *images, *sampling;
    unsigned int flags;
    long long max_tokens, top;
    int64_t num_ids = 0;
    r->how.struct_size = sizeof(r->how);
    r->result.struct_size = sizeof(r->result);
    if (!PyArg_ParseTuple(tuple, "zOILO!LOO!O!:generate", &r->how.prompt, &ids, &flags,
                          &max_tokens, &PyTuple_Type, &stops, &top, &grammar, &PyTuple_Type,
                          &images, &PyDict_Type, &sampling) ||
        (ids != Py_None && !ids_read(ids, &r->ids, &num_ids)) || !stops_read(stops, r) ||
        !images_take(model, images, &r->images, &r->how.num_images) ||
        !drawing_read(sampling, &r->drawing))
        return false;
    if (grammar != Py_None && !(r->how.grammar = grammar_get(grammar)))
        return false;
    r->how.prompt_flags = flags;
    r->how.ids = r->ids;
    r->how.num_ids = (uint64_t)num_ids;
    r->how.max_tokens = max_tokens;
    r->how.sampling = &r->drawing.sampling;
    r->how.top = top;
    r->how.images = r->images;
    r->how.piece = give_piece;
    r->how.context = r;
    return true;
}

// Makes the work for a tuple of requests, and keeps the tuple. NULL with an exception set.
static struct lm_generation *generation_new(struct lm_model *model, PyObject *requests,
                                            void (*run)(struct lm_work *))
{
    size_t count = (size_t)PyTuple_Size(requests);
    struct lm_generation *g =
        work_new(sizeof(struct lm_generation) + count * sizeof(struct lm_text_request), run,
                 generation_free);
    if (!g)
        return NULL;
    g->work.kept = Py_NewRef(requests);
    for (; g->count < count; g->count++)
        g->requests[g->count].of = g;
    for (size_t i = 0; i < count; i++)
        if (!request_read(model, PyTuple_GetItem(requests, (Py_ssize_t)i),
                          &g->requests[i])) {
            work_free(&g->work);
            return NULL;
        }
    return g;
}

// generate(request): a Stream.
PyObject *sequence_generate(PyObject *object, PyObject *request)
{
    PY_GUARD;
    struct lm_sequence *self = (struct lm_sequence *)object;
    PyObject *requests = PyTuple_Pack(1, request);
    struct lm_generation *g =
        requests ? generation_new(self->model, requests, generate_one) : NULL;
    Py_XDECREF(requests);
    if (!g || !sequence_enter(self)) {
        work_free(g ? &g->work : NULL);
        return NULL;
    }
    g->work.model = self->model;
    g->sequence = self->sequence;
    return stream_new(&g->work, self, piece_tuple, results_list);
}

// batch(requests: a tuple, at_once): a Stream.
PyObject *model_batch(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    PyObject *requests;
    long long at_once;
    if (!PyArg_ParseTuple(args, "O!L:batch", &PyTuple_Type, &requests, &at_once))
        return NULL;
    struct lm_generation *g = generation_new(self, requests, generate_all);
    if (!g || !model_enter_for(self, false, &g->work))
        return NULL;
    g->lm = self->lm;
    g->at_once = at_once;
    return stream_new(&g->work, NULL, piece_tuple, results_list);
}

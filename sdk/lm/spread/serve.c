// SPDX-License-Identifier: MIT
// Ranks above 0: they run their part of each step that rank 0 begins.
#include <stdlib.h>
#include <string.h>
#include "../engine/caches.h"
#include "spread.h"

// A step that an order describes, with memory of its own.
struct served {
    struct lm_spread *spread;
    const struct lm_order *order;
    tn_lm_sequence storage[LM_MOST_TOGETHER], *sequences[LM_MOST_TOGETHER];
    void *input;        // hidden states of the rank before, or ids
    float *packed;      // rows of images; NULL: none
    const float **rows; // by position: a row in `packed`, or NULL
    float *made;        // rows for the next rank, or for rank 0; NULL: none are wanted
    uint64_t made_bytes;
};

// Checks the numbers of an order that index arrays or count bytes.
static tn_status spread_serve_check_order(const tn_lm *model, const struct lm_order *order)
{
    bool is_sound = order->num_sequences >= 1 && order->num_sequences <= LM_MOST_TOGETHER &&
                    order->valid >= 1 && order->count >= order->valid &&
                    order->count <= model->capacity && order->kind >= 0 &&
                    order->kind < LM_KINDS;
    for (int32_t i = 0; is_sound && i < order->num_sequences; i++)
        is_sound = order->position[i] >= 0 &&
                   order->position[i] + order->count <= model->capacity &&
                   order->slot[i] >= 0 && order->slot[i] < model->slots;
    return is_sound ? TN_OK
                    : lm_fail(TN_ERR_REFUSED,
                              "rank 0 sent an order of a step that cannot be: its model "
                              "is another one");
}

// --- what comes ------------------------------------------------------------------------

static tn_status receive_input(struct served *s)
{
    struct lm_spread *spread = s->spread;
    bool is_pipeline = spread->kind == TN_LM_PIPELINE;
    uint64_t rows = (uint64_t)(s->order->valid * s->order->num_sequences);
    uint64_t bytes = rows * 4 * (is_pipeline ? (uint64_t)spread->model->facts->width : 1);
    s->input = lm_alloc(1, bytes);
    if (!s->input)
        return TN_ERR_MEMORY;
    return lm_mail_receive(&spread->mail, is_pipeline ? spread->base.rank - 1 : 0,
                           is_pipeline ? LM_TAG_HIDDEN : LM_TAG_INPUT, s->input, bytes);
}

static tn_status receive_rows(struct served *s)
{
    int64_t width = s->spread->model->facts->width, count = s->order->valid;
    uint64_t bytes = (uint64_t)(count * (width + 1)) * sizeof(float);
    if (!s->order->has_rows || s->spread->kind == TN_LM_PIPELINE)
        return TN_OK;
    s->packed = lm_alloc(1, bytes);
    s->rows = lm_alloc((uint64_t)count, sizeof(*s->rows));
    if (!s->packed || !s->rows)
        return TN_ERR_MEMORY;
    tn_status status = lm_mail_receive(&s->spread->mail, 0, LM_TAG_ROWS, s->packed, bytes);
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        const float *row = s->packed + i * (width + 1);
        s->rows[i] = row[0] > 0 ? row + 1 : NULL;
    }
    return status;
}

// --- the step --------------------------------------------------------------------------

static bool has_output(const tn_lm *model)
{
    return model->end == model->facts->layers;
}

// Makes memory for the step's rows: rows of all positions, but for the last layers only the
// wanted ones. With TN_LM_TENSOR rank 0 keeps the rows, and this rank makes none.
static tn_status make_outputs(struct served *s, enum lm_kind kind, float **outputs)
{
    const tn_lm *model = s->spread->model;
    int64_t rows = kind == LM_LAST_ROW ? 1 : s->order->valid;
    int64_t each =
        rows * (has_output(model) ? lm_row_of_kind(model, kind) : model->facts->width);
    for (int32_t i = 0; i < s->order->num_sequences; i++)
        outputs[i] = NULL;
    if (kind == LM_NOTHING || s->spread->kind == TN_LM_TENSOR)
        return TN_OK;
    s->made_bytes = (uint64_t)(each * s->order->num_sequences) * sizeof(float);
    s->made = malloc(s->made_bytes);
    if (!s->made)
        return lm_fail(TN_ERR_MEMORY, "out of memory for a step");
    for (int32_t i = 0; i < s->order->num_sequences; i++)
        outputs[i] = s->made + i * each;
    return TN_OK;
}

static tn_status spread_serve_run_step(struct served *s)
{
    tn_lm *model = s->spread->model;
    struct lm_caches *caches;
    float *outputs[LM_MOST_TOGETHER];
    enum lm_kind kind = has_output(model) ? (enum lm_kind)s->order->kind : LM_EACH_ROW;
    tn_status status = lm_caches_numbered(model, s->order->caches, &caches);
    if (status == TN_OK)
        status = make_outputs(s, kind, outputs);
    for (int32_t i = 0; i < s->order->num_sequences && status == TN_OK; i++) {
        s->storage[i] = (tn_lm_sequence){.model = model,
                                         .caches = caches,
                                         .slot = s->order->slot[i],
                                         .length = s->order->position[i]};
        s->sequences[i] = &s->storage[i];
    }
    const struct lm_chunk chunk = {.sequences = s->sequences,
                                   .num_sequences = s->order->num_sequences,
                                   .input = s->input,
                                   .rows = s->rows,
                                   .valid = s->order->valid,
                                   .count = s->order->count,
                                   .kind = kind,
                                   .outputs = outputs};
    return status == TN_OK ? lm_step_here(&chunk) : status;
}

static tn_status send_made(struct served *s)
{
    struct lm_spread *spread = s->spread;
    bool is_last = has_output(spread->model);
    void *made = s->made;
    s->made = NULL;
    return made ? lm_mail_send(&spread->mail, is_last ? 0 : spread->base.rank + 1,
                               is_last ? LM_TAG_REPLY : LM_TAG_HIDDEN, made, s->made_bytes)
                : TN_OK;
}

static tn_status serve_step(struct lm_spread *spread, const struct lm_order *order)
{
    struct served s = {.spread = spread, .order = order};
    tn_status status = spread_serve_check_order(spread->model, order);
    if (status == TN_OK)
        status = receive_input(&s);
    if (status == TN_OK)
        status = receive_rows(&s);
    if (status != TN_OK) { // the library may still write to this memory
        lm_mail_abandon(s.input);
        lm_mail_abandon(s.packed);
        free(s.rows);
        return status;
    }
    status = spread_serve_run_step(&s);
    if (status == TN_OK)
        status = send_made(&s);
    free(s.input);
    free(s.packed);
    free(s.rows);
    free(s.made);
    return status;
}

// --- serving ---------------------------------------------------------------------------

static tn_status serve_order(struct lm_spread *spread, struct lm_order *order)
{
    tn_status status =
        lm_mail_receive(&spread->mail, 0, LM_TAG_ORDER, order, sizeof(*order));
    if (status != TN_OK)
        return status;
    switch (order->action) {
    case LM_RUN:
        return serve_step(spread, order);
    case LM_FORGET:
        lm_caches_drop(spread->model, order->caches);
        return TN_OK;
    default:
        spread->is_over = true;
        return TN_OK;
    }
}

tn_status tn_lm_serve(tn_lm *model)
{
    struct lm_spread *spread = (struct lm_spread *)(void *)model->remote;
    if (!spread || spread->base.rank == 0)
        return lm_fail(TN_ERR_ARGUMENT,
                       "%s serves: ranks above 0 of a model that "
                       "tn_lm_distribute divided do",
                       spread ? "rank 0" : "no process");
    struct lm_order *order = lm_alloc(1, sizeof(*order));
    tn_status status = order ? TN_OK : TN_ERR_MEMORY;
    while (status == TN_OK && !spread->is_over)
        status = serve_order(spread, order);
    spread->is_over = true;
    lm_caches_drop_all(model);
    if (status == TN_OK) {
        free(order);
        return TN_OK;
    }
    lm_mail_abandon(order);
    struct lm_failure failure = {TN_OK, ""};
    lm_failure_note(&failure, status);
    lm_mail_abort(&spread->mail, failure.text);
    return lm_failure_tell(&failure);
}

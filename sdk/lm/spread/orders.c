// SPDX-License-Identifier: MIT
// Steps of rank 0 in a model whose layers, or parts of products, are on other processes,
// too.
#include <stdlib.h>
#include <string.h>
#include "../engine/caches.h"
#include "spread.h"

static struct lm_spread *orders_spread_of(struct lm_remote *remote)
{
    return (struct lm_spread *)(void *)remote;
}

int64_t lm_row_of_kind(const tn_lm *model, enum lm_kind kind)
{
    return kind == LM_HIDDEN ? model->facts->width : model->facts->vocabulary;
}

// A copy of `size` bytes, for a message that takes it.
static void *copy_of(const void *data, uint64_t size)
{
    void *copy = lm_alloc(1, size);
    if (copy)
        memcpy(copy, data, size);
    return copy;
}

tn_status lm_spread_order(struct lm_spread *spread, const struct lm_order *order)
{
    tn_status status = TN_OK;
    for (int32_t to = 1; to < spread->base.size && status == TN_OK; to++) {
        void *copy = copy_of(order, sizeof(*order));
        status = copy ? lm_mail_send(&spread->mail, to, LM_TAG_ORDER, copy, sizeof(*order))
                      : TN_ERR_MEMORY;
    }
    return status;
}

static void write_order(const struct lm_chunk *chunk, struct lm_order *out)
{
    *out = (struct lm_order){.action = LM_RUN,
                             .kind = (int32_t)chunk->kind,
                             .num_sequences = (int32_t)chunk->num_sequences,
                             .has_rows = chunk->rows != NULL,
                             .valid = chunk->valid,
                             .count = chunk->count,
                             .caches = chunk->sequences[0]->caches->number};
    for (int64_t i = 0; i < chunk->num_sequences; i++) {
        out->position[i] = (int32_t)chunk->sequences[i]->length;
        out->slot[i] = (int32_t)chunk->sequences[i]->slot;
    }
}

// --- layers ----------------------------------------------------------------------------

// Runs the first layers, and sends the hidden state on. The order is sent after the step,
// so that a step that fails here reaches no other rank.
static tn_status begin_layers(struct lm_spread *spread, const struct lm_chunk *chunk,
                              const struct lm_order *order, bool *out_begun)
{
    int64_t width = spread->model->facts->width, each = chunk->valid * width;
    uint64_t bytes = (uint64_t)(each * chunk->num_sequences) * sizeof(float);
    float *outputs[LM_MOST_TOGETHER], *hidden = malloc(bytes);
    if (!hidden)
        return lm_fail(TN_ERR_MEMORY, "out of memory for a hidden state");
    struct lm_chunk mine = *chunk;
    for (int64_t i = 0; i < chunk->num_sequences; i++)
        outputs[i] = hidden + i * each;
    mine.kind = LM_EACH_ROW;
    mine.outputs = outputs;
    tn_status status = lm_step_here(&mine);
    *out_begun = status == TN_OK;
    if (status == TN_OK)
        status = lm_spread_order(spread, order);
    if (status == TN_OK)
        return lm_mail_send(&spread->mail, 1, LM_TAG_HIDDEN, hidden, bytes);
    free(hidden);
    return status;
}

// Begins to receive the rows that the last rank will send.
static tn_status await_rows(struct lm_spread *spread, const struct lm_chunk *chunk,
                            struct lm_pending *out)
{
    int64_t rows = chunk->kind == LM_LAST_ROW ? 1 : chunk->valid;
    if (chunk->kind == LM_NOTHING)
        return TN_OK;
    out->row = (uint64_t)(rows * lm_row_of_kind(spread->model, chunk->kind));
    out->num_outputs = chunk->num_sequences;
    memcpy(out->outputs, chunk->outputs, (size_t)out->num_outputs * sizeof(float *));
    uint64_t bytes = out->row * (uint64_t)out->num_outputs * sizeof(float);
    out->rows = malloc(bytes);
    if (!out->rows)
        return lm_fail(TN_ERR_MEMORY, "out of memory for logits");
    tn_collective_work *work;
    tn_status status = lm_mail_begin(&spread->mail, spread->base.size - 1, LM_TAG_REPLY,
                                     out->rows, bytes, &work);
    if (status == TN_OK)
        out->work = work;
    else
        lm_mail_abandon(out->rows);
    return status;
}

// --- products --------------------------------------------------------------------------

// Packs the rows of images, each behind a number that is 1 where the position has a row.
static float *spread_orders_pack_rows(const struct lm_chunk *chunk, int64_t width,
                                      uint64_t *out_bytes)
{
    *out_bytes = (uint64_t)(chunk->valid * (width + 1)) * sizeof(float);
    float *packed = lm_alloc(1, *out_bytes);
    for (int64_t i = 0; packed && i < chunk->valid; i++) {
        float *to = packed + i * (width + 1);
        to[0] = chunk->rows[i] ? 1 : 0;
        if (chunk->rows[i])
            memcpy(to + 1, chunk->rows[i], (size_t)width * sizeof(float));
    }
    return packed;
}

static tn_status send_input(struct lm_spread *spread, const struct lm_chunk *chunk,
                            int32_t to)
{
    uint64_t bytes = (uint64_t)(chunk->valid * chunk->num_sequences) * sizeof(int32_t);
    void *copy = copy_of(chunk->input, bytes);
    tn_status status =
        copy ? lm_mail_send(&spread->mail, to, LM_TAG_INPUT, copy, bytes) : TN_ERR_MEMORY;
    if (status != TN_OK || !chunk->rows)
        return status;
    copy = spread_orders_pack_rows(chunk, spread->model->facts->width, &bytes);
    return copy ? lm_mail_send(&spread->mail, to, LM_TAG_ROWS, copy, bytes) : TN_ERR_MEMORY;
}

// Runs the whole step, as all ranks do: its sums are all-reduced.
static tn_status run_products(struct lm_spread *spread, const struct lm_chunk *chunk,
                              const struct lm_order *order)
{
    tn_status status = lm_spread_order(spread, order);
    for (int32_t to = 1; to < spread->base.size && status == TN_OK; to++)
        status = send_input(spread, chunk, to);
    return status == TN_OK ? lm_step_here(chunk) : status;
}

// --- for the engine --------------------------------------------------------------------

// Ends the group after a failure between an order and its end: the other ranks wait for
// messages that will not come.
static tn_status give_up(struct lm_spread *spread, tn_status status)
{
    struct lm_failure failure = {TN_OK, ""};
    lm_failure_note(&failure, status);
    spread->is_over = true;
    lm_mail_abort(&spread->mail, failure.text);
    return lm_failure_tell(&failure);
}

tn_status lm_spread_begin(struct lm_remote *remote, const struct lm_chunk *chunk,
                          struct lm_pending *out)
{
    struct lm_spread *spread = orders_spread_of(remote);
    struct lm_order order;
    write_order(chunk, &order);
    pthread_mutex_lock(&spread->lock);
    bool is_pipeline = spread->kind == TN_LM_PIPELINE, has_begun = !is_pipeline;
    tn_status status = is_pipeline ? begin_layers(spread, chunk, &order, &has_begun)
                                   : run_products(spread, chunk, &order);
    if (status == TN_OK && is_pipeline)
        status = await_rows(spread, chunk, out);
    pthread_mutex_unlock(&spread->lock);
    return status != TN_OK && has_begun ? give_up(spread, status) : status;
}

tn_status lm_spread_end(struct lm_remote *remote, struct lm_pending *pending)
{
    struct lm_spread *spread = orders_spread_of(remote);
    if (!pending->work)
        return TN_OK;
    tn_status status = lm_mail_end(&spread->mail, pending->work);
    if (status != TN_OK) {
        lm_mail_abandon(pending->rows);
        return give_up(spread, status);
    }
    for (int64_t i = 0; i < pending->num_outputs; i++)
        if (pending->outputs[i])
            memcpy(pending->outputs[i], pending->rows + (uint64_t)i * pending->row,
                   pending->row * sizeof(float));
    free(pending->rows);
    return TN_OK;
}

// Tells the other ranks. A failure shows at the next step.
void lm_spread_forget(struct lm_remote *remote, uint64_t caches)
{
    struct lm_spread *spread = orders_spread_of(remote);
    const struct lm_order order = {.action = LM_FORGET, .caches = caches};
    pthread_mutex_lock(&spread->lock);
    if (!spread->is_over)
        lm_spread_order(spread, &order);
    pthread_mutex_unlock(&spread->lock);
}

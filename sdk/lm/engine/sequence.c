// SPDX-License-Identifier: MIT
// Sequences: positions appended in chunks of a few sizes, so that a few plans serve all
// prompts, of one sequence or of several that share a step.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "caches.h"
#include "sequence.h"
#include "step.h"

// --- opening ---------------------------------------------------------------------------

tn_status tn_lm_sequence_open(tn_lm *model, tn_lm_sequence **out_sequence)
{
    tn_status status = model->end > model->first
                           ? TN_OK
                           : tn_lm_ensure_shard(model, 0, model->facts->layers - 1);
    tn_lm_sequence *sequence = status == TN_OK ? lm_alloc(1, sizeof(*sequence)) : NULL;
    if (!sequence)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    sequence->model = model;
    atomic_fetch_add(&model->sequences, 1);
    sequence->ids = lm_alloc((uint64_t)model->capacity, sizeof(int32_t));
    status = sequence->ids ? lm_caches_enter(sequence) : TN_ERR_MEMORY;
    if (status == TN_OK)
        *out_sequence = sequence;
    else
        tn_lm_sequence_close(sequence);
    return status;
}

void tn_lm_sequence_close(tn_lm_sequence *sequence)
{
    if (!sequence)
        return;
    lm_caches_leave(sequence);
    atomic_fetch_sub(&sequence->model->sequences, 1);
    free(sequence->ids);
    free(sequence);
}

int64_t tn_lm_sequence_length(const tn_lm_sequence *sequence)
{
    return sequence->length;
}

tn_status tn_lm_sequence_cut(tn_lm_sequence *sequence, int64_t length)
{
    if (length < 0 || length > sequence->length)
        return lm_fail(TN_ERR_ARGUMENT,
                       "cut to %" PRId64 " positions, of a sequence that has %" PRId64,
                       length, sequence->length);
    sequence->length = length;
    return TN_OK;
}

// --- inference -------------------------------------------------------------------------

// Chunks of a prompt for each stage behind the first: the stages then idle for one part in
// ten of the time, at the beginning and the end.
#define CHUNKS_A_STAGE 9

// Whether a call of `count` positions has enough chunks of this size to keep all stages
// busy.
static bool fills_stages(const tn_lm *model, int64_t count, int64_t size)
{
    int64_t behind = model->remote ? model->remote->stages - 1 : 0;
    return size <= 64 || count / size >= CHUNKS_A_STAGE * behind;
}

// Number of positions of the next chunk, where `left` of the call's `count` are left: a
// size more than half of which is used, so that few plans and few runs serve any number.
// With all_rows at most 64, since logits of all rows are large. Processes that share
// products meet twice a layer of each chunk: they take larger ones.
static int64_t chunk_size(const tn_lm_sequence *sequence, int64_t count, int64_t left,
                          bool all_rows)
{
    static const int64_t sizes[] = {2048, 512, 64, 8};
    int64_t room = sequence->model->capacity - sequence->length;
    size_t first = all_rows ? 2 : sequence->model->partial.has ? 0 : 1;
    for (size_t i = first; i < COUNT(sizes); i++)
        if (sizes[i] <= room && left > sizes[i] / (sizes[i] == 8 ? 8 : 2) &&
            fills_stages(sequence->model, count, sizes[i]))
            return sizes[i];
    return 1;
}

tn_status lm_check_ids(const tn_lm *model, const int32_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= model->facts->vocabulary)
            return lm_fail(TN_ERR_ARGUMENT,
                           "token %" PRId64 " is %d, expected 0 to %" PRId64, i, ids[i],
                           model->facts->vocabulary - 1);
    return TN_OK;
}

// Checks a call's arguments, but not the ids of its tokens.
static tn_status sequence_check_room(const tn_lm_sequence *sequence, const void *input,
                                     int64_t count, uint32_t flags)
{
    const tn_lm *model = sequence->model;
    int64_t room = model->context - sequence->length;
    if (count < 1 || !input || flags & ~(uint32_t)TN_LM_ALL_ROWS)
        return lm_fail(TN_ERR_ARGUMENT,
                       "%" PRId64 " positions%s, flags 0x%x: expected at least one", count,
                       input ? "" : " at NULL", flags);
    if (count > room)
        return lm_fail(TN_ERR_ARGUMENT,
                       "%" PRId64 " positions are too many: the context has %" PRId64
                       ", of which %" PRId64 " are left",
                       count, model->context, room);
    return TN_OK;
}

static tn_status sequence_check_call(const tn_lm_sequence *sequence, const void *input,
                                     int64_t count, uint32_t flags)
{
    tn_status status = sequence_check_room(sequence, input, count, flags);
    return status != TN_OK || sequence->model->first > 0
               ? status
               : lm_check_ids(sequence->model, input, count);
}

// Rows of images from position `first` on; NULL if none of the next `count` positions has
// one.
static const float *const *rows_within(const float *const *rows, int64_t first,
                                       int64_t count)
{
    for (int64_t i = first; rows && i < first + count; i++)
        if (rows[i])
            return rows + first;
    return NULL;
}

// Whether steps give logits: this process has the output, or its steps reach the process
// that has.
static bool reaches_output(const tn_lm *model)
{
    return model->remote || model->end == model->facts->layers;
}

tn_status lm_append(tn_lm_sequence *sequence, const void *input, const float *const *rows,
                    int64_t count, enum lm_kind kind, int64_t columns, float *output)
{
    const tn_lm *model = sequence->model;
    int64_t row = 4 * (model->first > 0 ? model->facts->width : 1); // bytes of the input
    bool all = kind == LM_EACH_ROW || kind == LM_HIDDEN;
    bool is_wide = kind == LM_EACH_ROW && reaches_output(model);
    tn_status status = TN_OK;
    for (int64_t done = 0; done < count && status == TN_OK;) {
        int64_t left = count - done;
        int64_t chunk = chunk_size(sequence, count, left, is_wide);
        int64_t valid = left < chunk ? left : chunk;
        bool is_wanted = output && (all || done + valid == count);
        const char *from = (const char *)input + done * row;
        float *to = all && output ? output + done * columns : output;
        status = lm_step(&(struct lm_chunk){.sequences = &sequence,
                                            .num_sequences = 1,
                                            .input = from,
                                            .rows = rows_within(rows, done, valid),
                                            .valid = valid,
                                            .count = chunk,
                                            .kind = is_wanted ? kind : LM_NOTHING,
                                            .outputs = &to});
        if (status != TN_OK)
            break;
        for (int64_t i = 0; i < valid; i++)
            sequence->ids[sequence->length + i] =
                model->first > 0 ? -1 : ((const int32_t *)input)[done + i];
        sequence->length += valid;
        done += valid;
    }
    return status;
}

tn_status tn_lm_infer_tensor(tn_lm_sequence *sequence, const void *input, int64_t count,
                             uint32_t flags, float *output)
{
    const tn_lm *model = sequence->model;
    bool is_end = reaches_output(model);
    enum lm_kind kind = !is_end || flags & TN_LM_ALL_ROWS ? LM_EACH_ROW : LM_LAST_ROW;
    tn_status status = sequence_check_call(sequence, input, count, flags);
    return status == TN_OK
               ? lm_append(sequence, input, NULL, count, kind,
                           is_end ? model->facts->vocabulary : model->facts->width, output)
               : status;
}

static tn_status check_whole(const tn_lm *model)
{
    if (model->remote && model->remote->rank > 0)
        return lm_fail(TN_ERR_ARGUMENT,
                       "rank %d of a model on %d processes serves: rank 0 infers",
                       model->remote->rank, model->remote->size);
    if (model->remote || (model->first == 0 && model->end == model->facts->layers))
        return TN_OK;
    return lm_fail(TN_ERR_ARGUMENT,
                   "layers %" PRId64 " to %" PRId64 " of %" PRId64
                   " are loaded, expected all: tn_lm_infer_tensor runs a shard",
                   model->first, model->end - 1, model->facts->layers);
}

tn_status tn_lm_infer(tn_lm_sequence *sequence, const int32_t *ids, int64_t count,
                      uint32_t flags, float *out_logits)
{
    tn_status status = check_whole(sequence->model);
    return status == TN_OK ? tn_lm_infer_tensor(sequence, ids, count, flags, out_logits)
                           : status;
}

tn_status lm_infer_rows(tn_lm_sequence *sequence, const int32_t *ids,
                        const float *const *rows, int64_t count, uint32_t flags,
                        float *out_logits)
{
    if (!rows)
        return tn_lm_infer(sequence, ids, count, flags, out_logits);
    tn_status status = check_whole(sequence->model);
    if (status == TN_OK)
        status = sequence_check_room(sequence, ids, count, flags);
    return status == TN_OK ? lm_append(sequence, ids, rows, count,
                                       flags & TN_LM_ALL_ROWS ? LM_EACH_ROW : LM_LAST_ROW,
                                       sequence->model->facts->vocabulary, out_logits)
                           : status;
}

// --- embeddings ------------------------------------------------------------------------

// Pools `count` rows into the first one.
static void sequence_pool(float *rows, int64_t count, int64_t width, uint32_t pooling)
{
    if (pooling == TN_LM_POOL_LAST)
        memmove(rows, rows + (count - 1) * width, (size_t)width * sizeof(*rows));
    for (int64_t k = 0; k < width && pooling == TN_LM_POOL_MEAN; k++) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += (double)rows[i * width + k];
        rows[k] = (float)(sum / (double)count);
    }
}

static void make_unit(float *row, int64_t width)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++)
        sum += (double)row[i] * (double)row[i];
    for (int64_t i = 0; i < width && sum > 0; i++)
        row[i] = (float)((double)row[i] / sqrt(sum));
}

tn_status tn_lm_embed(tn_lm_sequence *sequence, const int32_t *ids, int64_t count,
                      uint32_t pooling, uint32_t flags, float *out_embedding)
{
    const tn_lm *model = sequence->model;
    int64_t width = model->facts->width;
    tn_status status = check_whole(model);
    if (status == TN_OK && (pooling > TN_LM_POOL_FIRST || flags & ~(uint32_t)TN_LM_UNIT))
        status = lm_fail(TN_ERR_ARGUMENT,
                         "pooling %u, flags 0x%x: expected TN_LM_POOL_MEAN, _LAST or "
                         "_FIRST, and 0 or TN_LM_UNIT",
                         pooling, flags);
    if (status == TN_OK && count > model->context)
        status = lm_fail(TN_ERR_ARGUMENT,
                         "%" PRId64 " tokens are too many: the context has %" PRId64, count,
                         model->context);
    if (status == TN_OK)
        status = count < 1 || !ids ? lm_fail(TN_ERR_ARGUMENT, "an embedding of no tokens")
                                   : lm_check_ids(model, ids, count);
    float *rows =
        status == TN_OK ? lm_alloc((uint64_t)(count * width), sizeof(*rows)) : NULL;
    if (!rows)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    sequence->length = 0;
    status = lm_append(sequence, ids, NULL, count, LM_HIDDEN, width, rows);
    if (status == TN_OK) {
        sequence_pool(rows, count, width, pooling);
        if (flags & TN_LM_UNIT)
            make_unit(rows, width);
        status = lm_check_numbers(rows, (uint64_t)width,
                                  "%s: the embedding of %" PRId64 " tokens is no number",
                                  model->source.metadata->name, count);
    }
    if (status == TN_OK)
        memcpy(out_embedding, rows, (size_t)width * sizeof(*rows));
    free(rows);
    return status;
}

// --- several sequences -------------------------------------------------------------------

static tn_status sequence_check_item(const tn_lm_item *items, uint64_t index)
{
    const tn_lm_item *item = &items[index];
    for (uint64_t i = 0; i < index; i++)
        if (items[i].sequence == item->sequence)
            return lm_fail(TN_ERR_ARGUMENT,
                           "items %" PRIu64 " and %" PRIu64 " are of the same sequence", i,
                           index);
    tn_status status = check_whole(item->sequence->model);
    return status == TN_OK ? sequence_check_call(item->sequence, item->ids, item->count, 0)
                           : status;
}

// Begins a step of the last token of each item. All items share the same caches.
static void begin_together(struct lm_flight *flight)
{
    tn_lm_item *const *items = flight->items;
    tn_lm_sequence *sequences[LM_MOST_TOGETHER];
    int32_t ids[LM_MOST_TOGETHER];
    float *outputs[LM_MOST_TOGETHER];
    bool has_output = false;
    for (int64_t i = 0; i < flight->count; i++) {
        sequences[i] = items[i]->sequence;
        ids[i] = items[i]->ids[items[i]->count - 1];
        outputs[i] = items[i]->out_logits;
        has_output = has_output || outputs[i];
    }
    tn_status status =
        lm_step_begin(&(struct lm_chunk){.sequences = sequences,
                                         .num_sequences = flight->count,
                                         .input = ids,
                                         .valid = 1,
                                         .count = 1,
                                         .kind = has_output ? LM_LAST_ROW : LM_NOTHING,
                                         .outputs = outputs},
                      &flight->pending);
    for (int64_t i = 0; i < flight->count; i++)
        items[i]->status = status;
}

// Begins a step of the first waiting item, together with the waiting items that share its
// caches.
static bool begin_some(struct lm_flights *flights, tn_lm_item *items, uint64_t num_items,
                       int64_t most, bool *waits)
{
    struct lm_flight flight = {.count = 0};
    for (uint64_t i = 0; i < num_items && flight.count < most; i++)
        if (waits[i] && (flight.count == 0 ||
                         items[i].sequence->caches == flight.items[0]->sequence->caches)) {
            flight.items[flight.count++] = &items[i];
            waits[i] = false;
        }
    if (flight.count == 0)
        return false;
    begin_together(&flight);
    flights->items[flights->count++] = flight;
    return true;
}

tn_status lm_batch_begin(tn_lm_item *items, uint64_t num_items, int64_t most,
                         struct lm_flights *out)
{
    struct lm_failure first = {TN_OK, ""};
    bool *waits = lm_alloc(num_items, sizeof(*waits));
    *out = (struct lm_flights){.items = lm_alloc(num_items, sizeof(*out->items))};
    if (!waits || !out->items) {
        free(waits);
        return TN_ERR_MEMORY;
    }
    for (uint64_t i = 0; i < num_items; i++) {
        tn_lm_item *item = &items[i];
        item->status = sequence_check_item(items, i);
        if (item->status == TN_OK && item->count > 1)
            item->status =
                tn_lm_infer_tensor(item->sequence, item->ids, item->count - 1, 0, NULL);
        lm_failure_note(&first, item->status);
        waits[i] = item->status == TN_OK;
    }
    while (begin_some(out, items, num_items, most, waits))
        ;
    for (uint64_t i = 0; i < num_items; i++)
        lm_failure_note(&first, items[i].status);
    free(waits);
    return lm_failure_tell(&first);
}

tn_status lm_batch_end(struct lm_flights *flights)
{
    struct lm_failure first = {TN_OK, ""};
    for (uint64_t k = 0; k < flights->count; k++) {
        struct lm_flight *flight = &flights->items[k];
        tn_status status = flight->items[0]->status;
        if (status == TN_OK)
            status = lm_step_end(&flight->pending);
        for (int64_t i = 0; i < flight->count; i++) {
            tn_lm_item *item = flight->items[i];
            tn_lm_sequence *sequence = item->sequence;
            item->status = status;
            if (status == TN_OK)
                sequence->ids[sequence->length++] = item->ids[item->count - 1];
        }
        lm_failure_note(&first, status);
    }
    free(flights->items);
    *flights = (struct lm_flights){0};
    return lm_failure_tell(&first);
}

// Where layers are on several processes, as many steps as there are stages are in flight.
tn_status tn_lm_infer_batch(tn_lm_item *items, uint64_t num_items)
{
    struct lm_flights flights;
    const tn_lm *model = num_items > 0 ? items[0].sequence->model : NULL;
    int64_t stages = model && model->remote ? model->remote->stages : 1;
    int64_t most = ((int64_t)num_items + stages - 1) / stages;
    struct lm_failure first = {TN_OK, ""};
    most = most < LM_MOST_TOGETHER ? most : LM_MOST_TOGETHER;
    lm_failure_note(&first, lm_batch_begin(items, num_items, most, &flights));
    lm_failure_note(&first, lm_batch_end(&flights));
    return lm_failure_tell(&first);
}

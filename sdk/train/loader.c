// SPDX-License-Identifier: MIT
// Loads batches on a thread ahead of their use. Batch k is rows k * batch and following of
// the order of its epoch, which depends on the seed and the epoch alone.
//
// The thread owns the slot that it fills; the lock guards whether a slot is full. Seeking
// empties all slots and raises `generation`, so that the batch under construction is
// dropped.
//
// Where the device has memory of its own, and the tables take a small part of it, the
// tables are kept there from the first batch on: then a batch is row numbers, by which the
// device gathers.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/backend.h>
#include <tenon/selected.h>
#include "common.h"

enum { SLOTS = 3, MOST_ARRAYS = MOST_TABLES };
#define KEPT_PART 4 // tables take at most 1 / KEPT_PART of the device's free memory

struct loader_slot {
    unsigned char *data[MOST_ARRAYS];
    int64_t *rows;   // numbers of the rows; with kept tables `data` is stale
    uint64_t number; // number of the batch
    bool is_full;
};

struct tn_loader {
    const tn_table *tables; // borrowed
    uint64_t num_tables, num_arrays, row_bytes[MOST_ARRAYS];
    tn_loader_options options;
    int64_t rows;  // rows to draw from
    int64_t share; // rows of a batch that this loader gives, from `first_row` on
    int64_t first_row;
    uint64_t batches; // in an epoch
    int64_t *order;   // the thread's: order of epoch `order_epoch` - 1
    uint64_t order_epoch;
    struct loader_slot slots[SLOTS];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t next, ahead, generation; // batch to give, batch to gather, number of seeks
    bool has_thread, ends;
    tn_runtime *runtime;         // runtime of the first batch; NULL before
    tn_array *kept[MOST_ARRAYS]; // the tables on its device, or NULL
};

static void shuffle_rows(struct tn_loader *l, uint64_t epoch)
{
    if (l->order_epoch == epoch + 1)
        return;
    for (int64_t i = 0; i < l->rows; i++)
        l->order[i] = i;
    for (int64_t i = l->rows - 1; i > 0 && !l->options.in_order; i--) {
        uint64_t random = train_random(l->options.seed, epoch + 2, (uint64_t)i);
        int64_t j = (int64_t)(random % (uint64_t)(i + 1)), saved = l->order[i];
        l->order[i] = l->order[j];
        l->order[j] = saved;
    }
    l->order_epoch = epoch + 1;
}

// Copies row `from` of the tables to row `to` of the batch.
static void loader_gather_row(const struct tn_loader *l, struct loader_slot *slot,
                              int64_t from, int64_t to)
{
    int64_t window = l->options.window;
    if (window == 0) {
        for (uint64_t i = 0; i < l->num_arrays; i++)
            memcpy(slot->data[i] + (uint64_t)to * l->row_bytes[i],
                   (const unsigned char *)l->tables[i].data +
                       (uint64_t)from * l->row_bytes[i],
                   (size_t)l->row_bytes[i]);
        return;
    }
    const unsigned char *text = (const unsigned char *)l->tables[0].data + from;
    int32_t *x = (int32_t *)slot->data[0] + to * window;
    int32_t *y = (int32_t *)slot->data[1] + to * window;
    for (int64_t i = 0; i < window; i++) {
        x[i] = text[i];
        y[i] = text[i + 1];
    }
}

static void gather_rows(const struct tn_loader *l, struct loader_slot *slot)
{
    for (int64_t i = 0; i < l->share; i++)
        loader_gather_row(l, slot, slot->rows[i], i);
}

static void fill_slot(struct tn_loader *l, struct loader_slot *slot, uint64_t number,
                      bool by_number)
{
    shuffle_rows(l, number / l->batches);
    int64_t first = (int64_t)(number % l->batches) * l->options.batch + l->first_row;
    memcpy(slot->rows, l->order + first, (size_t)l->share * sizeof(*slot->rows));
    if (!by_number)
        gather_rows(l, slot);
}

static void *run_loader(void *context)
{
    struct tn_loader *l = context;
    pthread_mutex_lock(&l->lock);
    while (!l->ends) {
        struct loader_slot *slot = &l->slots[l->ahead % SLOTS];
        if (slot->is_full) {
            pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        uint64_t number = l->ahead, generation = l->generation;
        bool by_number = l->kept[0] != NULL;
        pthread_mutex_unlock(&l->lock);
        fill_slot(l, slot, number, by_number);
        pthread_mutex_lock(&l->lock);
        if (generation != l->generation)
            continue;
        slot->number = number;
        slot->is_full = true;
        l->ahead++;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

// --- creating ---------------------------------------------------------------------------

static tn_status check_tables(const tn_table *tables, uint64_t count,
                              const tn_loader_options *o)
{
    if (!o || o->batch < 1 || o->window < 0)
        return train_fail(TN_ERR_ARGUMENT,
                          "tn_loader_create: batch %lld, window %lld; expected a batch of "
                          "at least 1 and no negative window",
                          o ? (long long)o->batch : 0, o ? (long long)o->window : 0);
    tn_status status = train_check_tables(tables, count);
    if (status != TN_OK)
        return status;
    if (o->window && (count != 1 || tables[0].dtype != TN_U8 || tables[0].shape.rank != 1))
        return train_fail(TN_ERR_ARGUMENT,
                          "windows are of one table of bytes, got %llu, the first of %s",
                          (unsigned long long)count, tn_dtype_name(tables[0].dtype));
    int64_t rows = tables[0].shape.extent[0] - o->window;
    if (rows < o->batch)
        return train_fail(TN_ERR_ARGUMENT,
                          "the data have %lld samples, fewer than a batch of %lld",
                          (long long)(rows > 0 ? rows : 0), (long long)o->batch);
    return TN_OK;
}

// Checks `part` against `parts`, the number of processes.
static tn_status loader_check_part(const tn_loader_options *o)
{
    if (o->parts == 0 && o->part == 0)
        return TN_OK;
    if (o->parts < 1 || o->part < 0 || o->part >= o->parts)
        return train_fail(TN_ERR_ARGUMENT, "tn_loader_create: part %d of %d", o->part,
                          o->parts);
    return o->batch % o->parts == 0
               ? TN_OK
               : train_fail(TN_ERR_ARGUMENT,
                            "a batch of %lld rows for %d processes, expected a multiple",
                            (long long)o->batch, o->parts);
}

static tn_status make_slots(struct tn_loader *l)
{
    l->num_arrays = l->options.window ? 2 : l->num_tables;
    for (uint64_t i = 0; i < l->num_arrays; i++) {
        const tn_table *table = &l->tables[l->options.window ? 0 : i];
        tn_type row = {.rank = table->shape.rank - 1};
        memcpy(row.extent, table->shape.extent + 1, sizeof(int64_t) * (TN_MAX_RANK - 1));
        l->row_bytes[i] = l->options.window ? (uint64_t)l->options.window * sizeof(int32_t)
                                            : train_elements(&row) *
                                                  (uint64_t)tn_dtype_bytes(table->dtype);
        for (int k = 0; k < SLOTS; k++) {
            l->slots[k].data[i] =
                malloc((size_t)(l->row_bytes[i] * (uint64_t)l->share) + 1);
            if (!l->slots[k].data[i])
                return train_fail_memory();
        }
    }
    for (int k = 0; k < SLOTS; k++) {
        l->slots[k].rows = malloc((size_t)l->share * sizeof(*l->order));
        if (!l->slots[k].rows)
            return train_fail_memory();
    }
    l->order = malloc((size_t)l->rows * sizeof(*l->order));
    return l->order ? TN_OK : train_fail_memory();
}

tn_status tn_loader_create(const tn_table *tables, uint64_t num_tables,
                           const tn_loader_options *options, tn_loader **out_loader)
{
    tn_loader_options o = {0};
    if (options)
        train_read_options(&o, sizeof(o), options, options->struct_size,
                           offsetof(tn_loader_options, part));
    tn_status status = check_tables(tables, num_tables, options ? &o : NULL);
    if (status == TN_OK)
        status = loader_check_part(&o);
    if (status != TN_OK)
        return status;
    struct tn_loader *l = calloc(1, sizeof(*l));
    if (!l)
        return train_fail_memory();
    l->tables = tables;
    l->num_tables = num_tables;
    l->options = o;
    l->share = o.parts ? o.batch / o.parts : o.batch;
    l->first_row = o.part * l->share;
    l->rows = tables[0].shape.extent[0] - o.window;
    l->batches = (uint64_t)(l->rows / o.batch);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    status = make_slots(l);
    if (status == TN_OK) {
        l->has_thread = pthread_create(&l->thread, NULL, run_loader, l) == 0;
        if (!l->has_thread)
            status = train_fail(TN_ERR_MEMORY, "the loader's thread cannot be started");
    }
    if (status == TN_OK)
        *out_loader = l;
    else
        tn_loader_destroy(l);
    return status;
}

void tn_loader_destroy(tn_loader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->ends = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (l->has_thread)
        pthread_join(l->thread, NULL);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    for (int k = 0; k < SLOTS; k++)
        for (int i = 0; i < MOST_ARRAYS; i++)
            free(l->slots[k].data[i]);
    for (int k = 0; k < SLOTS; k++)
        free(l->slots[k].rows);
    for (int i = 0; i < MOST_ARRAYS; i++)
        tn_release(l->kept[i]);
    free(l->order);
    free(l);
}

uint64_t tn_loader_arrays(const tn_loader *loader)
{
    return loader->num_arrays;
}

uint64_t loader_batch(const tn_loader *loader)
{
    return (uint64_t)loader->options.batch;
}

uint64_t tn_loader_batches(const tn_loader *loader)
{
    return loader->batches;
}

// --- giving -----------------------------------------------------------------------------

void tn_loader_seek(tn_loader *l, uint64_t batch)
{
    pthread_mutex_lock(&l->lock);
    if (batch != l->next) {
        for (int k = 0; k < SLOTS; k++)
            l->slots[k].is_full = false;
        l->next = l->ahead = batch;
        l->generation++;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
}

// Whether the device that the runtime prefers has memory of its own, and enough of it free.
static bool has_room(tn_runtime *runtime, uint64_t bytes)
{
    tn_selected_device device = {.struct_size = sizeof(device)};
    uint64_t count = 1;
    return tn_selected_devices(runtime, &device, &count) == TN_OK &&
           !(device.flags & TN_DEVICE_HOST_MEMORY) && bytes <= device.available / KEPT_PART;
}

// Keeps all tables on the device, or none; after a failure batches come from the host.
static void keep_tables(struct tn_loader *l, tn_scope *scope)
{
    tn_array *kept[MOST_ARRAYS] = {NULL};
    uint64_t bytes = 0, count = 0;
    l->runtime = tn_scope_runtime(scope);
    for (uint64_t i = 0; i < l->num_tables; i++)
        bytes += (uint64_t)l->rows * l->row_bytes[i];
    if (l->options.window || tn_scope_status(scope) || !has_room(l->runtime, bytes))
        return;
    for (; count < l->num_tables; count++) {
        const tn_table *table = &l->tables[count];
        kept[count] =
            tn_keep(scope, tn_from_data(scope, table->dtype, &table->shape, table->data));
        if (!kept[count])
            break;
    }
    if (count < l->num_tables) {
        tn_scope_clear_error(scope);
        while (count > 0)
            tn_release(kept[--count]);
        return;
    }
    pthread_mutex_lock(&l->lock);
    memcpy(l->kept, kept, sizeof(kept));
    pthread_mutex_unlock(&l->lock);
}

static tn_array *as_array(const struct tn_loader *l, tn_scope *scope,
                          const struct loader_slot *slot, uint64_t i)
{
    const tn_table *table = &l->tables[l->options.window ? 0 : i];
    tn_shape shape = table->shape;
    shape.extent[0] = l->share;
    if (l->kept[0] && tn_scope_runtime(scope) == l->runtime)
        return tn_op(
            scope, "base.take/1",
            TN_IN(l->kept[i], tn_from_data(scope, TN_I64, TN_SHAPE(l->share), slot->rows)),
            tn_attrs("axis", 0));
    if (l->options.window)
        shape = (tn_shape){.rank = 2, .extent = {l->share, l->options.window}};
    return tn_from_data(scope, l->options.window ? TN_I32 : table->dtype, &shape,
                        slot->data[i]);
}

tn_status tn_loader_next(tn_loader *l, tn_scope *scope, tn_array **out_batch)
{
    if (!l->runtime)
        keep_tables(l, scope);
    pthread_mutex_lock(&l->lock);
    struct loader_slot *slot = &l->slots[l->next % SLOTS];
    while (!slot->is_full)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    if (l->kept[0] && tn_scope_runtime(scope) != l->runtime)
        gather_rows(l, slot);
    for (uint64_t i = 0; i < l->num_arrays; i++) // full slots are this thread's
        out_batch[i] = as_array(l, scope, slot, i);
    pthread_mutex_lock(&l->lock);
    slot->is_full = false;
    l->next++;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return tn_scope_status(scope);
}

// SPDX-License-Identifier: MIT
// Storages, and the reuse of spare storages: allocating device memory costs more than most
// operations. A spare buffer serves requests of exactly its size, which a replayed plan
// repeats; a spare arena serves plans that need as much or less. Work of one queue may take
// a spare storage that earlier work of the same queue still uses, because a queue runs in
// order.
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/thread.h"
#include "../plugin/host/host.h"
#include "device_set.h"
#include "outcome.h"

#define MOST_TRIES 16    // storages of one bucket that a search looks at
#define MOST_SPARE 16384 // spare storages of one device

// --- spare storages --------------------------------------------------------------------

// Fibonacci hashing (Knuth, volume 3, 6.4): the product's high bits name the bucket.
static uint64_t bucket_of_size(uint64_t size)
{
    return size * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SPARE_BUCKETS_LOG2);
}

// Spare storages of all queues. Sequentially consistent: of two threads that each add a
// storage, one sees both.
struct amount {
    uint64_t bytes, count;
};

static struct amount spare_amount(const struct device *device)
{
    struct amount amount = {0};
    for (uint32_t i = 0; i < device->num_queues; i++) {
        amount.bytes += atomic_load(&device->queues[i].spares.bytes);
        amount.count += atomic_load(&device->queues[i].spares.count);
    }
    return amount;
}

// Each queue's share of the limits is reserved for it, so that a queue within its share
// needs to look at no other queue, and the sum of all stays within the limits. All shares
// together are an eighth of the bytes, because one queue may need nearly all, and half of
// the count.
static struct amount device_memory_share_of(const struct device *device, struct amount most)
{
    uint64_t queues = device->num_queues;
    return (struct amount){most.bytes / (8 * queues), most.count / (2 * queues)};
}

static uint64_t device_memory_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool device_memory_is_within(const struct device *device, struct amount most)
{
    struct amount share = device_memory_share_of(device, most), amount = {0};
    for (uint32_t i = 0; i < device->num_queues; i++) {
        const struct spares *spares = &device->queues[i].spares;
        amount.bytes += device_memory_larger(atomic_load(&spares->bytes), share.bytes);
        amount.count += device_memory_larger(atomic_load(&spares->count), share.count);
    }
    return amount.bytes <= most.bytes && amount.count <= most.count;
}

static bool is_within_share(const struct device *device, uint32_t queue, struct amount most)
{
    const struct spares *spares = &device->queues[queue].spares;
    struct amount share = device_memory_share_of(device, most);
    return atomic_load(&spares->bytes) <= share.bytes &&
           atomic_load(&spares->count) <= share.count;
}

static struct amount kept_amount(const struct device *device)
{
    return (struct amount){device->spare_limit, MOST_SPARE};
}

// The list that holds `storage` while it is spare: the arenas, or a bucket by size. The
// most recently released storage is first. Under the queue's lock, as the functions below.
static struct storage **device_memory_bucket_of(struct spares *spares,
                                                const struct storage *storage)
{
    return storage->is_arena ? &spares->arenas
                             : &spares->buckets[bucket_of_size(storage->size)];
}

static void spare_link(struct spares *spares, struct storage *storage)
{
    struct storage **first = device_memory_bucket_of(spares, storage);
    storage->next = *first;
    storage->link = first;
    if (storage->next)
        storage->next->link = &storage->next;
    *first = storage;
    storage->newer = NULL;
    storage->older = spares->newest;
    *(spares->newest ? &spares->newest->newer : &spares->oldest) = storage;
    spares->newest = storage;
    atomic_fetch_add(&spares->bytes, storage->size);
    atomic_fetch_add(&spares->count, 1);
}

static void spare_unlink(struct spares *spares, struct storage *storage)
{
    *storage->link = storage->next;
    if (storage->next)
        storage->next->link = storage->link;
    *(storage->newer ? &storage->newer->older : &spares->newest) = storage->older;
    *(storage->older ? &storage->older->newer : &spares->oldest) = storage->newer;
    atomic_fetch_sub(&spares->bytes, storage->size);
    atomic_fetch_sub(&spares->count, 1);
}

// Whether no work uses the storage, except work of `except_queue` (QUEUE_HOST: no
// exception).
static bool device_memory_is_idle(const struct storage *storage, uint32_t except_queue)
{
    const struct device *device = storage->device;
    for (uint32_t i = 0; i < device->num_timelines; i++) {
        tn_point point = {
            .queue = i,
            .value = atomic_load_explicit(&storage->last_use[i], memory_order_acquire)};
        if (i != except_queue && !device_has_reached(device, point))
            return false;
    }
    return true;
}

bool storage_is_idle(const struct storage *storage)
{
    return device_memory_is_idle(storage, QUEUE_HOST);
}

static struct storage *find_buffer(struct spares *spares, uint64_t size, uint32_t queue)
{
    const struct storage like = {.size = size};
    struct storage *storage = *device_memory_bucket_of(spares, &like);
    for (uint32_t tries = 0; storage && tries < MOST_TRIES;
         storage = storage->next, tries++)
        if (storage->size == size && device_memory_is_idle(storage, queue))
            return storage;
    return NULL;
}

// The smallest arena of at least this size.
static struct storage *find_arena(const struct spares *spares, uint64_t size,
                                  uint32_t queue)
{
    struct storage *best = NULL;
    for (struct storage *s = spares->arenas; s; s = s->next)
        if (s->size >= size && (!best || s->size < best->size) &&
            device_memory_is_idle(s, queue))
            best = s;
    return best;
}

// Forgets the uses that device_memory_is_idle() found reached, so that no later check looks
// at the queues of other threads for them. The storage is no longer spare and not yet
// shared.
static void forget_uses(struct storage *storage, uint32_t except_queue)
{
    for (uint32_t i = 0; i < storage->device->num_timelines; i++)
        if (i != except_queue)
            atomic_store_explicit(&storage->last_use[i], 0, memory_order_relaxed);
}

static struct storage *take_from(struct device_queue *from, uint64_t size, uint32_t queue,
                                 bool is_arena)
{
    if (atomic_load_explicit(&from->spares.count, memory_order_relaxed) == 0)
        return NULL;
    pthread_mutex_lock(&from->lock);
    struct storage *storage = is_arena ? find_arena(&from->spares, size, queue)
                                       : find_buffer(&from->spares, size, queue);
    if (storage)
        spare_unlink(&from->spares, storage);
    pthread_mutex_unlock(&from->lock);
    if (storage)
        forget_uses(storage, queue);
    return storage;
}

// Looks first at what this thread's queue, `first`, released.
static struct storage *spare_take(struct device *device, uint32_t first, uint64_t size,
                                  uint32_t queue, bool is_arena)
{
    struct storage *storage = NULL;
    uint32_t count = device->num_queues;
    if (atomic_load_explicit(&device->lost, memory_order_acquire))
        return NULL; // buffer_create fails then, with the backend's message
    for (uint32_t i = 0; i < count && !storage; i++)
        storage = take_from(&device->queues[(first + i) % count], size, queue, is_arena);
    return storage;
}

// --- giving memory back ----------------------------------------------------------------

static void device_memory_destroy(struct storage *storage)
{
    struct device *device = storage->device;
    atomic_fetch_sub(&device_stats(device->runtime)->made_bytes, storage->size);
    device->ops->buffer_destroy(device->handle, storage->buffer);
    mem_free(storage);
}

// Destroys idle spare storages, queue by queue and least recently released first, until the
// rest is within the limits.
static void destroy_surplus(struct device *device, struct amount most)
{
    struct storage *surplus = NULL, *next;
    for (uint32_t i = 0; i < device->num_queues && !device_memory_is_within(device, most);
         i++) {
        struct device_queue *queue = &device->queues[i];
        pthread_mutex_lock(&queue->lock);
        for (struct storage *s = queue->spares.oldest; s; s = next) {
            next = s->newer;
            if (device_memory_is_within(device, most))
                break;
            if (!device_memory_is_idle(s, QUEUE_HOST))
                continue;
            spare_unlink(&queue->spares, s);
            s->next = surplus;
            surplus = s;
        }
        pthread_mutex_unlock(&queue->lock);
    }
    for (; surplus; surplus = next) {
        next = surplus->next;
        device_memory_destroy(surplus);
    }
}

void device_sweep(struct device *device, uint32_t queue)
{
    struct amount most = kept_amount(device);
    device_sweep_retired(device);
    bool had_surplus = atomic_load(&device->has_surplus);
    if (!had_surplus && is_within_share(device, queue, most))
        return;
    destroy_surplus(device, most);
    bool has_surplus = !device_memory_is_within(device, most);
    if (has_surplus != had_surplus)
        atomic_store(&device->has_surplus, has_surplus);
}

// Waits for all work that uses spare storages.
static void drain_spares(struct device *device)
{
    uint64_t last[MAX_TIMELINES] = {0};
    for (uint32_t k = 0; k < device->num_queues; k++) {
        struct device_queue *queue = &device->queues[k];
        pthread_mutex_lock(&queue->lock);
        for (struct storage *s = queue->spares.oldest; s; s = s->newer)
            for (uint32_t i = 0; i < device->num_timelines; i++) {
                uint64_t use = atomic_load_explicit(&s->last_use[i], memory_order_acquire);
                last[i] = use > last[i] ? use : last[i];
            }
        pthread_mutex_unlock(&queue->lock);
    }
    for (uint32_t i = 0; i < device->num_timelines; i++)
        device_drain(device, (tn_point){.queue = i, .value = last[i]});
}

// Bytes of spare buffers of all devices. They are open.
static uint64_t sum_of_spares(const struct device_set *set)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < set->count; i++)
        bytes += spare_amount(set->devices[i]).bytes;
    return bytes;
}

uint64_t device_spare_bytes(const tn_runtime *runtime)
{
    return device_set_is_open(runtime->devices) ? sum_of_spares(runtime->devices) : 0;
}

// Bytes in use on open devices.
static uint64_t used_bytes(const tn_runtime *runtime)
{
    uint64_t spare = sum_of_spares(runtime->devices);
    uint64_t made = atomic_load(&device_stats(runtime)->made_bytes);
    return made > spare ? made - spare : 0;
}

uint64_t device_used_bytes(const tn_runtime *runtime)
{
    return device_set_is_open(runtime->devices) ? used_bytes(runtime) : 0;
}

// --- the peak --------------------------------------------------------------------------

// The peak is that of `counted`, the bytes in use and the credits of all queues. A queue
// takes small storages from its credit and returns them there, so that its threads share no
// counter with others. Hence the peak is too high by up to MOST_CREDIT for each queue.
#define CREDIT (INT64_C(64) << 10)
#define MOST_CREDIT (2 * CREDIT)

static void raise_peak(struct device_stats *stats, int64_t counted)
{
    int64_t peak = atomic_load(&stats->used_peak);
    while (peak < counted &&
           !atomic_compare_exchange_weak(&stats->used_peak, &peak, counted))
        ;
}

// Called by a thread of the queue when `bytes` came into use.
static void note_used(struct device_queue *queue, struct device_stats *stats, int64_t bytes)
{
    int64_t credit = atomic_fetch_sub(&queue->credit, bytes) - bytes;
    if (credit >= 0)
        return;
    int64_t more = CREDIT - credit;
    raise_peak(stats, atomic_fetch_add(&stats->counted, more) + more);
    atomic_fetch_add(&queue->credit, more);
}

// Called by a thread of the queue when `bytes` became spare.
static void note_spare(struct device_queue *queue, struct device_stats *stats,
                       int64_t bytes)
{
    int64_t credit = atomic_fetch_add(&queue->credit, bytes) + bytes;
    if (credit <= MOST_CREDIT)
        return;
    atomic_fetch_sub(&queue->credit, credit - CREDIT);
    atomic_fetch_sub(&stats->counted, credit - CREDIT);
}

// --- giving all back -------------------------------------------------------------------

void device_trim(struct device *device)
{
    drain_spares(device);
    destroy_surplus(device, (struct amount){0});
    device_trim_retired(device);
}

static struct storage *take_small_arena(struct device_queue *queue, uint64_t size)
{
    pthread_mutex_lock(&queue->lock);
    struct storage *small = queue->spares.arenas;
    while (small && !(small->size < size && device_memory_is_idle(small, QUEUE_HOST)))
        small = small->next;
    if (small)
        spare_unlink(&queue->spares, small);
    pthread_mutex_unlock(&queue->lock);
    return small;
}

// Destroys one idle arena that is too small for this request, because a larger one is about
// to be made: there are then no more arenas than simultaneous runs.
static void drop_small_arena(struct device *device, uint64_t size)
{
    struct storage *small = NULL;
    for (uint32_t i = 0; i < device->num_queues && !small; i++)
        small = take_small_arena(&device->queues[i], size);
    if (small)
        device_memory_destroy(small);
}

// --- storages --------------------------------------------------------------------------

// Prefixes the backend's message with the bytes that were asked for and, where the backend
// tells, the bytes that are free.
static void tell_short(struct device *device, uint64_t size)
{
    char said[FAIL_TEXT_SIZE];
    fail_save(said);
    uint64_t available = device_available(device);
    fail_restore(said);
    if (available)
        fail_prefix("%llu bytes were asked for, %llu are free: ", (unsigned long long)size,
                    (unsigned long long)available);
    else
        fail_prefix("%llu bytes were asked for: ", (unsigned long long)size);
}

// When memory is short, frees all spare storages and tries again.
static tn_status make_buffer(struct device *device, uint64_t size, tn_buffer **out_buffer)
{
    fail_clear();
    tn_status status = device->ops->buffer_create(device->handle, size, out_buffer);
    if (status == TN_ERR_MEMORY && spare_amount(device).count > 0) {
        device_trim(device);
        fail_clear();
        status = device->ops->buffer_create(device->handle, size, out_buffer);
    }
    if (status == TN_OK)
        return TN_OK;
    status = device_failed(device, "buffer_create", status);
    if (status == TN_ERR_MEMORY)
        tell_short(device, size);
    return status;
}

static tn_status make_storage(struct device *device, uint64_t size, struct storage **out)
{
    if (device->info.max_buffer_size && size > device->info.max_buffer_size) {
        fail(TN_ERR_MEMORY, "device %s: a buffer has at most %llu bytes", device->name,
             (unsigned long long)device->info.max_buffer_size);
        tell_short(device, size);
        return TN_ERR_MEMORY;
    }
    // On cache lines of its own: memory beside it may be used by other threads.
    struct storage *storage = mem_alloc_aligned(sizeof(*storage), 64);
    if (!storage)
        return TN_ERR_MEMORY;
    *storage = (struct storage){0};
    tn_status status = make_buffer(device, size, &storage->buffer);
    if (status != TN_OK) {
        mem_free(storage);
        return status;
    }
    storage->device = device;
    storage->size = size;
    atomic_fetch_add(&device_stats(device->runtime)->made_bytes, size);
    *out = storage;
    return TN_OK;
}

static tn_status device_memory_create(struct device *device, uint64_t size, uint32_t queue,
                                      bool is_arena, struct storage **out)
{
    const uint32_t own = device_queue_of_thread(device);
    size = size ? size : 1;
    struct storage *storage = spare_take(device, own, size, queue, is_arena);
    if (!storage) {
        if (is_arena)
            drop_small_arena(device, size);
        tn_status status = make_storage(device, size, &storage);
        if (status != TN_OK)
            return status;
    }
    storage->is_arena = is_arena;
    atomic_store_explicit(&storage->refs, 1, memory_order_relaxed);
    note_used(&device->queues[own], device_stats(device->runtime), (int64_t)storage->size);
    *out = storage;
    return TN_OK;
}

tn_status storage_create(struct device *device, uint64_t size, uint32_t queue,
                         struct storage **out)
{
    return device_memory_create(device, size, queue, false, out);
}

tn_status storage_create_arena(struct device *device, uint64_t size, uint32_t queue,
                               struct storage **out)
{
    return device_memory_create(device, size, queue, true, out);
}

void storage_retain(struct storage *storage)
{
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
}

void storage_release(struct storage *storage)
{
    // acq_rel: the last owner must see every use by the others before the storage is
    // reused.
    if (!storage || atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct device *device = storage->device;
    outcome_release(storage->outcome);
    storage->outcome = NULL;
    if (life_is_inherited(&device->runtime->life)) { // the device is the parent's
        mem_free(storage->import);
        mem_free(storage);
        return;
    }
    if (storage->import) {
        storage_retire(storage);
        return;
    }
    uint32_t number = device_queue_of_thread(device);
    struct device_queue *queue = &device->queues[number];
    pthread_mutex_lock(&queue->lock);
    uint64_t size = storage->size; // the storage may be taken or destroyed from then on
    spare_link(&queue->spares, storage);
    pthread_mutex_unlock(&queue->lock);
    note_spare(queue, device_stats(device->runtime), (int64_t)size);
    if (atomic_load_explicit(&device->lost, memory_order_acquire))
        device_trim(device); // spare storages of a lost device are useless
    else
        device_sweep(device, number);
}

tn_status storage_drain(struct storage *storage)
{
    struct device *device = storage->device;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < device->num_timelines && status == TN_OK; i++) {
        uint64_t use = atomic_load_explicit(&storage->last_use[i], memory_order_acquire);
        if (use > 0 || i == 0) // unused memory, too, reports a lost device
            status = device_wait(device, (tn_point){.queue = i, .value = use});
    }
    return status;
}

tn_status storage_wait(struct storage *storage)
{
    tn_status status = storage_drain(storage);
    return status == TN_OK ? outcome_end(storage->outcome) : status;
}

tn_status storage_wait_outside(struct storage *storage)
{
    tn_status status = device_memory_is_idle(storage, QUEUE_HOST)
                           ? TN_OK
                           : callback_check(storage->device->runtime);
    return status == TN_OK ? storage_wait(storage) : status;
}

static tn_point written_point(const struct storage *storage)
{
    const struct outcome *outcome = storage->outcome;
    return outcome ? outcome_point(outcome) : (tn_point){0};
}

bool storage_is_written(const struct storage *storage)
{
    return outcome_succeeded(storage->outcome) ||
           device_has_reached(storage->device, written_point(storage));
}

tn_status storage_wait_written(struct storage *storage)
{
    tn_status status =
        storage_is_written(storage) ? TN_OK : callback_check(storage->device->runtime);
    if (status == TN_OK) // memory that nothing wrote, too, reports a lost device
        status = device_wait(storage->device, written_point(storage));
    return status == TN_OK ? outcome_end(storage->outcome) : status;
}

// Reads behind the work that writes the storage, where the device can.
static tn_status device_memory_read_after(struct storage *storage, uint64_t offset,
                                          void *data, uint64_t size, bool *out_done)
{
    struct device *device = storage->device;
    const tn_point point = written_point(storage);
    *out_done = size > 0 && TN_HAS(device->ops, buffer_read_after) &&
                !storage_is_written(storage) &&
                !device_is_host_timeline(device, point.queue) &&
                outcome_known(storage->outcome) == TN_OK &&
                callback_check(device->runtime) == TN_OK;
    if (!*out_done)
        return TN_OK;
    fail_clear();
    tn_status status = device->ops->buffer_read_after(device->handle, storage->buffer,
                                                      offset, data, size, point);
    if (status != TN_OK)
        return device_failed(device, "buffer_read_after", status);
    return storage_wait_written(storage);
}

tn_status storage_read(struct storage *storage, uint64_t offset, void *data, uint64_t size)
{
    struct device *device = storage->device;
    bool done;
    tn_status status = device_memory_read_after(storage, offset, data, size, &done);
    if (done)
        return status;
    status = storage_wait_written(storage);
    if (status != TN_OK || size == 0)
        return status;
    fail_clear();
    status = device->ops->buffer_read(device->handle, storage->buffer, offset, data, size);
    return status == TN_OK ? TN_OK : device_failed(device, "buffer_read", status);
}

tn_status storage_write(struct storage *storage, uint64_t offset, const void *data,
                        uint64_t size)
{
    struct device *device = storage->device;
    if (size == 0)
        return TN_OK;
    fail_clear();
    tn_status status =
        device->ops->buffer_write(device->handle, storage->buffer, offset, data, size);
    return status == TN_OK ? TN_OK : device_failed(device, "buffer_write", status);
}

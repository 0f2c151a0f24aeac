// SPDX-License-Identifier: MIT
// Devices, selected by TENON_BACKEND: opening them, waiting for their timeline points, and
// their memory.
//
// Threads. Any. Locks are held for lists and counters only, never while a backend is
// called.
#ifndef CORE_DEVICE_DEVICE_H
#define CORE_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/backend.h>
#include <tenon/share.h>
#include "../base/counts.h"
#include "../base/hash.h"
#include "../base/runtime.h"

#define MAX_DEVICE_NAME 96
#define MAX_TIMELINES (TN_MAX_QUEUES + 1)

struct outcome;
struct plugin;
struct prim;
struct storage;

// Spare storages: unreferenced ones that are kept for reuse (memory.c). A bucket and
// `arenas` are linked by storage->next.
#define SPARE_BUCKETS_LOG2 6
struct spares {
    struct storage *oldest, *newest;                  // by the time of their last release
    struct storage *buckets[1 << SPARE_BUCKETS_LOG2]; // hash table by size
    struct storage *arenas;
    atomic_uint_fast64_t bytes, count; // of all; any thread may read them
};

// One in-order queue of a device, and the lists that the threads of the queue use, so that
// threads of different queues rarely wait for each other.
struct device_queue {
    atomic_uint_fast64_t reached;    // the highest value of a point known to be reached
    atomic_uint_fast64_t last_long;  // the highest value of a point of device_note_long()
    atomic_uint_fast64_t last_given; // the highest value of a point of a submission
    pthread_mutex_t lock;            // guards the members below
    struct outcome *oldest, *newest; // listed outcomes, in point order
    uint32_t num_outcomes;
    struct spares spares;       // storages that threads of the queue released
    atomic_int_fast64_t credit; // bytes, see note_used() in memory.c
    char apart[LINES_APART];    // no cache line holds members of two queues
};

// An open device. Constant after devices_open(), but for `host_points`, `lost`,
// `has_surplus`, `num_retired` and the members after `lock`.
struct device {
    const tn_backend *ops;
    const tn_host *host;
    struct plugin *plugin;
    tn_device *handle;
    tn_runtime *runtime;
    tn_device_info info;
    char name[MAX_DEVICE_NAME]; // "cpu-blas:0"
    uint32_t number;            // index in the order of TENON_BACKEND
    uint32_t fusion_limit;      // instructions of a fused program; 0: never fuse
    uint32_t num_queues;        // 1 .. TN_MAX_QUEUES
    uint32_t num_workers;       // as tn_kernel_query.num_workers
    // The queues' timelines and, where device_has_host_points(), the host's, which is the
    // last.
    uint32_t num_timelines;
    // Whether the backend's kernel families have TN_FAMILY_EXPR; and TN_FAMILY_CPU, so that
    // the device also runs references in C.
    bool runs_expr, runs_reference;
    uint64_t spare_limit; // bytes of spare storages; more only while work uses them
    uint64_t host_points; // the last point of the host's timeline; under the mover's lock
    atomic_bool lost;     // permanently; the content of all buffers is gone
    atomic_bool has_surplus; // spare storages beyond the limits, because work uses them
    atomic_uint num_retired; // storages in `retired`
    pthread_mutex_t lock;    // guards `ready` and `retired`
    struct storage *retired; // imported storages that nobody refers to, but work uses
    struct map ready;        // primitives with kernel families whose device_load_kernels()
                             // succeeded
    char apart[LINES_APART];
    struct device_queue queues[MAX_TIMELINES];
};

// Whether work of the device waits for points that the mover reaches (mover.h). Known when
// all devices are open: with one device there is nothing to move.
static inline bool device_has_host_points(const struct device *device)
{
    return device->num_timelines > device->num_queues;
}

// Whether a timeline of the device is the host's; the backends' number for that one is
// TN_QUEUE_HOST.
static inline bool device_is_host_timeline(const struct device *device, uint32_t timeline)
{
    return timeline == device->num_queues;
}

// --- opening (open.c) ------------------------------------------------------------------

// Gives the devices that TENON_BACKEND selects, at least one. The first call opens the
// devices. *out_devices is borrowed until the runtime closes.
tn_status devices_open(tn_runtime *runtime, struct device ***out_devices,
                       uint32_t *out_count);

// Gives the open device of this name, "vulkan:1", or "vulkan" for "vulkan:0". `call` begins
// the message.
tn_status device_find(tn_runtime *runtime, const char *call, const char *name,
                      struct device **out_device);

// Loads the plugins that bring kernels of the primitive in a kernel family of the backend;
// once for each primitive and family.
tn_status device_load_kernels(struct device *device, const struct prim *prim,
                              const char *family);

// Called when a runtime opens and closes. Devices are opened on first use.
tn_status device_set_create(tn_runtime *runtime);
void device_set_destroy(tn_runtime *runtime);

// --- timeline points (points.c) --------------------------------------------------------
//
// tn_point.queue is the number of a timeline of the device here.

// Sets the counter to the maximum of itself and `value`.
static inline void counter_raise(atomic_uint_fast64_t *counter, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(counter, memory_order_acquire);
    while (seen < value && !atomic_compare_exchange_weak_explicit(counter, &seen, value,
                                                                  memory_order_acq_rel,
                                                                  memory_order_acquire))
        ;
}

// The queue that the calling thread submits to: round-robin over the device's queues, by
// thread_number().
uint32_t device_queue_of_thread(const struct device *device);

// Whether the point is known to be reached; does not ask the backend. Value 0 stands for no
// work; other threads' queues are then not looked at.
static inline bool device_has_reached(const struct device *device, tn_point point)
{
    return point.value == 0 ||
           point.value <= atomic_load_explicit(&device->queues[point.queue].reached,
                                               memory_order_acquire);
}

// An atomic maximum: all points of the timeline up to this one are reached.
void device_note_reached(struct device *device, tn_point point);

// Handles a failed call of the backend's `slot`: prefixes the message with the device's
// name, makes a message where the backend gave none, and marks the device lost after
// TN_ERR_DEVICE. Returns the status; see fail_from.
tn_status device_failed(struct device *device, const char *slot, tn_status status);

// Bytes that new buffers can have, spare storages included; 0: the backend does not tell,
// or fails to. (selected.c)
uint64_t device_available(struct device *device);

// Brief work reads and writes at most this many bytes, and has no loop.
#define MOST_BRIEF (UINT64_C(1) << 20) // bytes

// Notes that the work of a point may not be brief.
void device_note_long(struct device *device, tn_point point);
// Whether all work that uses the storage is brief.
bool storage_ends_soon(const struct storage *storage);

// Asks the backend to block until the point is reached, and returns the status of the work.
// Then evicts surplus spare storages and settles the queue's outcomes up to the point.
tn_status device_wait_status(struct device *device, tn_point point);

// Blocks until the point is reached. Fails only when the device is lost, whose memory is
// gone; a failure of the work is reported by its outcome.
tn_status device_wait(struct device *device, tn_point point);

// Blocks until all work up to the point has ended, failed or not, so that the memory of the
// work can be freed. Keeps this thread's pending error.
void device_drain(struct device *device, tn_point point);

// --- memory (memory.c) -----------------------------------------------------------------

// A device buffer that arrays share. Reference-counted; releasing the last reference makes
// the storage a spare one of its device.
struct storage {
    atomic_uint refs;
    uint32_t is_arena;                    // made by storage_create_arena()
    struct storage *next, *older, *newer; // links of spare storages, see struct spares
    struct storage **link;                // the pointer of the same list that points here
    struct device *device;
    tn_buffer *buffer;
    uint64_t size;           // bytes
    struct import *import;   // of imported memory (import.c); NULL: the device's own. Owned
    struct outcome *outcome; // of the work that wrote the buffer; NULL: no such work. Owned
    // By timeline: value of the last point whose work, or copy, uses the buffer.
    atomic_uint_fast64_t last_use[MAX_TIMELINES];
};

// In place of a queue: the storage is for the host to write.
#define QUEUE_HOST UINT32_MAX

// Gives a storage of `size` bytes with undefined content. Earlier work of `queue` may still
// use the buffer: work that is submitted to `queue` from now on may use the buffer without
// waiting. With QUEUE_HOST no work uses the buffer.
tn_status storage_create(struct device *device, uint64_t size, uint32_t queue,
                         struct storage **out);

// As storage_create(), for the intermediate results of one run. The storage may be larger
// than `size`.
tn_status storage_create_arena(struct device *device, uint64_t size, uint32_t queue,
                               struct storage **out);
void storage_retain(struct storage *storage);
void storage_release(struct storage *storage); // NULL is fine

// Records that work up to this point uses the storage.
static inline void storage_use(struct storage *storage, tn_point point)
{
    atomic_uint_fast64_t *last = &storage->last_use[point.queue];
    uint64_t seen = atomic_load_explicit(last, memory_order_relaxed);
    while (seen < point.value &&
           !atomic_compare_exchange_weak_explicit(
               last, &seen, point.value, memory_order_release, memory_order_relaxed))
        ;
}

// Blocks until no submitted work uses the storage. Fails when the device is lost.
tn_status storage_drain(struct storage *storage);
// As storage_drain(), and fails when the work that wrote the storage failed.
tn_status storage_wait(struct storage *storage);
// As storage_wait(), for a call of the application: refused in a callback, unless the
// storage is idle.
tn_status storage_wait_outside(struct storage *storage);

// Whether the work that wrote the storage ended. Work that reads it may go on.
bool storage_is_written(const struct storage *storage);
// As storage_wait_outside(), but for that work alone.
tn_status storage_wait_written(struct storage *storage);

// Waits for the work that wrote the storage (storage_wait_written), then copies the bytes
// [offset, offset + size) to `data`.
tn_status storage_read(struct storage *storage, uint64_t offset, void *data, uint64_t size);

// Writes bytes from the host. No submitted work may use the storage.
tn_status storage_write(struct storage *storage, uint64_t offset, const void *data,
                        uint64_t size);

// Evicts idle spare storages, least recently released first, until the rest is within the
// limits. Called after work of the queue ended or storages became its spares.
void device_sweep(struct device *device, uint32_t queue);

// Waits for the work that uses spare storages, and destroys all spare storages.
void device_trim(struct device *device);

// Whether no submitted work uses the storage.
bool storage_is_idle(const struct storage *storage);

// --- imported memory (import.c) --------------------------------------------------------

// Memory of the application, and the call that gives it back.
struct host_memory {
    void *data;                     // the first byte
    uint64_t size;                  // bytes, at least 1
    bool writable;                  // when donated
    void (*release)(void *context); // may be NULL
    void *context;
};

// Gives a storage that is this memory, without a copy; takes the memory on success, and
// releases it after the last use. TN_ERR_UNSUPPORTED: this device does not use memory of
// the host in place.
tn_status storage_import(struct device *device, const struct host_memory *memory,
                         struct storage **out);

// Makes the storage of a buffer that the backend imported. Takes the buffer, which is
// destroyed on failure, and on success the memory. `reusable`: see storage_is_reusable().
tn_status storage_wrap(struct device *device, tn_buffer *buffer,
                       const struct host_memory *memory, bool reusable,
                       struct storage **out);

// Whether work may write the storage when no array needs it any more: not so for imported
// memory, unless it is writable and aligned for every dtype.
bool storage_is_reusable(const struct storage *storage);

// Called when the last reference of an imported storage is gone: destroys the storage and
// releases its memory, or lists it until the work that uses it has ended.
void storage_retire(struct storage *storage);

// Destroys the retired storages that no work uses any more. Called after work has ended.
void device_sweep_retired(struct device *device);

// Waits for the work that uses retired storages, and destroys them.
void device_trim_retired(struct device *device);

// --- values (value.c) ------------------------------------------------------------------

// The evaluated elements of an array: bytes on a device, in a storage, that arrays refer
// to. This is the core's one meaning of "value". Reference-counted: an array and its kept
// arrays share a value; a view has a value of its own in the storage of the value viewed.
struct value {
    atomic_uint refs;
    uint32_t reserved;
    struct storage *storage; // owns a reference
    uint64_t offset;         // bytes from the buffer's start
    tn_layout layout;
    // A contiguous copy of the elements, made by tn_data when the host cannot address the
    // device's memory; NULL: none. Owned.
    _Atomic(void *) host_copy;
};

// Makes a value with one reference. Takes `storage`, on success only.
tn_status value_create(struct storage *storage, uint64_t offset, const tn_layout *layout,
                       struct value **out);
// As value_create(), but leaves `storage` to the caller: the value has its own reference.
tn_status value_share(struct storage *storage, uint64_t offset, const tn_layout *layout,
                      struct value **out);
void value_retain(struct value *value);
void value_release(struct value *value);

// Whether nothing but one reference to this value refers to its memory, which begins with
// the value and may be written.
bool value_is_sole(const struct value *value);

// Copies elements from the host, row-major without gaps, to device number `device`.
tn_status value_from_host(tn_runtime *runtime, uint32_t device, const tn_type *type,
                          const void *data, struct value **out);

// As value_from_host(), for elements that lie in `layout` from `data` on, which holds
// element (0, 0, ...): in place where the device can, else a copy, unless `must_share`.
// Takes the memory, whose `data` and `size` are not read: it is released after its last
// use, on failure at once. The layout's offset is 0.
tn_status value_from_memory(tn_runtime *runtime, uint32_t device, const tn_layout *layout,
                            const void *data, const struct host_memory *memory,
                            bool must_share, struct value **out);

// A value in memory that others use, too (share.c): element (0, 0, ...) lies at
// shared->offset, the layout's offset is 0. Takes `memory`, of which `size` and `data` are
// not read, as value_from_memory() does.
tn_status value_from_fd(tn_runtime *runtime, uint32_t device, const tn_layout *layout,
                        const tn_shared_memory *shared, const struct host_memory *memory,
                        struct value **out);

// Fills in where the elements of a contiguous value lie, for others that read them there
// from the point on that is filled in; or write them, where no work uses them.
tn_status value_export(struct value *value, uint32_t wants, tn_run_export *out);

// Fills in memory with the elements of a contiguous value, for others.
tn_status value_export_fd(struct value *value, tn_shared_memory *out);

// Whether one device imports what the other exports; and a copy by that way, on the calling
// thread, while no work uses the buffers.
bool devices_share(const struct device *from, const struct device *to);
tn_status buffers_copy_shared(struct device *from, const tn_buffer *from_buffer,
                              uint64_t from_offset, struct device *to, tn_buffer *to_buffer,
                              uint64_t to_offset, uint64_t size);

// --- statistics ------------------------------------------------------------------------

// Counters of a runtime's memory and work, for tn_runtime_stats.
enum stats_counter {
    STATS_PLANS_MADE,
    STATS_PLAN_HITS,
    STATS_SUBMISSIONS,
    STATS_STEPS,
    STATS_TRANSFERS,
    STATS_CHECKED,   // launches compared by TENON_CHECK
    STATS_DIFFERING, // those of them whose results differed
    STATS_WRITTEN,   // bytes, as tn_stats.bytes_written
};

struct device_stats {
    struct counts work;                     // by enum stats_counter
    atomic_uint_fast64_t made_bytes;        // in all storages
    atomic_int_fast64_t counted, used_peak; // see note_used() in memory.c
};
struct device_stats *device_stats(const tn_runtime *runtime);
// With TN_TRIM_WAIT, waits for all submissions to open devices; with TN_TRIM_SPARE,
// device_trim() of these; with TN_TRIM_PEAK, lets buffers count anew.
void devices_trim(const tn_runtime *runtime, uint32_t flags);
// Bytes in the spare storages of all devices, and in the others.
uint64_t device_spare_bytes(const tn_runtime *runtime);
uint64_t device_used_bytes(const tn_runtime *runtime);

static inline void stats_count(const tn_runtime *of, enum stats_counter counter,
                               int64_t amount)
{
    counts_add(&device_stats(of)->work, counter, amount);
}

static inline uint64_t stats_sum(const tn_runtime *of, enum stats_counter counter)
{
    return (uint64_t)counts_sum(&device_stats(of)->work, counter);
}

#endif // CORE_DEVICE_DEVICE_H

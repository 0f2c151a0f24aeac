// SPDX-License-Identifier: MIT
// Devices in the order of TENON_BACKEND, and values in their memory.
//
// Threads. Any. [device] slots of a backend are called under the device's lock, which is
// the core's own and protects nothing else.
#ifndef CORE_SCHED_DEVICE_H
#define CORE_SCHED_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/backend.h>
#include "../base/hash.h"
#include "../runtime.h"

struct fate;
struct plugin;

struct device {
    const tn_backend *ops;
    const tn_host *host;
    struct plugin *plugin;
    tn_device *handle;
    tn_runtime *runtime;
    tn_device_info info;
    char name[96];         // "cpu-blas:0"
    uint32_t number;       // in the order of TENON_BACKEND
    uint32_t fusion_limit; // instructions of a fused program; 0: never fuse
    bool runs_expr, runs_reference;
    pthread_mutex_t lock;         // around [device] slots
    atomic_uint_fast64_t reached; // all points up to this are known to be reached
    atomic_bool lost;             // for good, with all that its buffers held
    pthread_mutex_t late_lock;
    struct late_buffer *late;       // to be destroyed when their point is reached
    struct fate *fates, *last_fate; // not known yet, in the order of points; late_lock
    uint32_t num_fates;
    struct map kernels_loaded; // primitives whose kernels' plugins were loaded; late_lock
};

// The selected devices, opened on the first call. *out_devices is borrowed; at least one.
tn_status devices_open(tn_runtime *runtime, struct device ***out_devices,
                       uint32_t *out_count);

// Puts the device's name before the message of a call of its backend's `slot` that failed,
// makes one where there is none, and notes a loss. Gives the status; see fail_from.
tn_status device_failed(struct device *device, const char *slot, tn_status status);

// Blocks until the point is reached, and tells how its work ended.
tn_status device_ask(struct device *device, uint64_t point);
// Only blocks: fails when the device is lost, as all that was there is gone then, and not
// when the work failed: that is told by fates.
tn_status device_wait(struct device *device, uint64_t point);

// Blocks until no work up to the point runs, however it went, so that what it used can go.
// Leaves the thread's message as it is.
void device_settle(struct device *device, uint64_t point);

// --- memory on a device ------------------------------------------------------------------

// A buffer that arrays share. Destroyed when nobody refers to it and its last use is over.
struct storage {
    atomic_uint refs;
    struct device *device;
    tn_buffer *buffer;
    uint64_t size;
    atomic_uint_fast64_t point; // of its last use
    struct fate *fate;          // of what wrote it; NULL: that was waited for. Owned
};

tn_status storage_create(struct device *device, uint64_t size, struct storage **out);
void storage_retain(struct storage *storage);
void storage_release(struct storage *storage);

// Blocks until what uses it is done, and fails when what wrote it did.
tn_status storage_wait(struct storage *storage);
// The same for an application: refused in a callback unless that is known to be done.
tn_status storage_wait_outside(struct storage *storage);

// Destroys at once, or after the point is reached.
void device_drop_buffer(struct device *device, tn_buffer *buffer, uint64_t size,
                        uint64_t point);

// Elements of an array: where they lie. Counted.
struct value {
    atomic_uint refs;
    uint32_t reserved;
    struct storage *storage;
    uint64_t offset; // bytes from the buffer's start
    tn_layout layout;
    _Atomic(void *)
        host_copy; // contiguous, made by tn_data when the device's memory cannot be seen
};

// Takes `storage`, on success only.
tn_status value_create(struct storage *storage, uint64_t offset, const tn_layout *layout,
                       struct value **out);
void value_retain(struct value *value);
void value_release(struct value *value);

// Last axis of stride 1, or of one element at most.
bool layout_has_rows(const tn_layout *layout);

// Copies elements, row-major without gaps, to the first device.
tn_status value_from_host(tn_runtime *runtime, const tn_type *type, const void *data,
                          struct value **out);

// Bytes [offset, offset + size) of a value's storage, when done.
tn_status storage_read(struct storage *storage, uint64_t offset, void *data, uint64_t size);

// Writes bytes that no submission uses.
tn_status storage_write(struct storage *storage, uint64_t offset, const void *data,
                        uint64_t size);

// Statistics of a runtime's memory and work, for tn_runtime_stats.
struct sched_stats {
    atomic_uint_fast64_t plans_made, plan_hits, submissions, steps, transfers;
    atomic_uint_fast64_t buffer_bytes, buffer_peak;
};
struct sched_stats *sched_stats(const tn_runtime *runtime);
void stats_add_bytes(struct sched_stats *stats, int64_t bytes);

#endif // CORE_SCHED_DEVICE_H

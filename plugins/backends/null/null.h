// SPDX-License-Identifier: MIT
// The null backend: implements every slot of tn_backend and computes nothing.
//
// It is the template for new backends and the test double of the core. Copy the folder,
// rename null_ to your prefix, and fill in: device.c (enumeration, open and close),
// buffer.c (memory), segment.c (compiling steps), queue.c (submission and waiting).
#ifndef NULL_H
#define NULL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <tenon/plugin.h>

struct tn_device {
    const tn_host *host;      // borrowed until device_close
    _Atomic uint64_t used;    // bytes in buffers
    _Atomic uint64_t peak;    // highest value of `used`
    _Atomic uint64_t reached; // last timeline point of the only queue
    atomic_bool is_lost;      // never cleared
};

struct tn_buffer {
    uint64_t size;
    void *bytes;
    bool is_imported; // `bytes` are the application's
};

struct tn_executable {
    uint32_t num_slots; // buffers that a submission must bind
};

// device.c
tn_status null_device_count(const tn_host *host, uint32_t *out_count);
tn_status null_device_info(const tn_host *host, uint32_t index, tn_device_info *out);
tn_status null_device_open(const tn_host *host, uint32_t index, tn_device **out_device);
void null_device_close(tn_device *device);
tn_status null_memory_info(tn_device *device, tn_memory_info *out);
tn_status null_lose(tn_device *device);
// TN_ERR_DEVICE, with a message, once the device is lost; else TN_OK.
tn_status null_check_lost(tn_device *device);

// buffer.c
tn_status null_buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer);
void null_buffer_destroy(tn_device *device, tn_buffer *buffer);
tn_status null_buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                            const void *data, uint64_t size);
tn_status null_buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset,
                           void *data, uint64_t size);
void *null_buffer_map(tn_device *device, tn_buffer *buffer);
tn_status null_buffer_import(tn_device *device, const tn_buffer_import *import,
                             tn_buffer **out_buffer);

// segment.c
int32_t null_step_check(tn_device *device, const tn_step *step, const char **out_reason);
uint32_t null_fusion_limit(tn_device *device);
tn_status null_segment_compile(tn_device *device, const tn_segment *segment,
                               tn_executable **out_executable);
void null_executable_destroy(tn_device *device, tn_executable *executable);

// queue.c
tn_status null_submit(tn_device *device, const tn_submission *submission,
                      uint64_t *out_point);
tn_status null_wait(tn_device *device, uint32_t queue, uint64_t value);

#endif // NULL_H

// SPDX-License-Identifier: MIT
// The null backend: complete, and it computes nothing.
//
// It is the template for backends and the double on which the core is tested. Copy the
// folder, rename null_ to your prefix, and fill in: device.c what there is, buffer.c where
// values live, segment.c what a step becomes, queue.c how it is started and awaited.
#ifndef NULL_H
#define NULL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <tenon/plugin.h>

struct tn_device {
    const tn_host *host;      // borrowed until device_close
    _Atomic uint64_t used;    // bytes in buffers
    _Atomic uint64_t peak;    // the most there were
    _Atomic uint64_t reached; // the last point: work is done when it is submitted
    atomic_bool is_lost;      // for good
};

struct tn_buffer {
    uint64_t size;
    void *bytes;
};

struct tn_executable {
    uint32_t num_slots;
};

// device.c
tn_status null_device_count(const tn_host *host, uint32_t *out_count);
tn_status null_device_info(const tn_host *host, uint32_t index, tn_device_info *out);
tn_status null_device_open(const tn_host *host, uint32_t index, tn_device **out_device);
void null_device_close(tn_device *device);
tn_status null_memory_info(tn_device *device, tn_memory_info *out);
tn_status null_lose(tn_device *device);
// TN_OK as long as the device is not lost. Nothing works on a lost one.
tn_status null_check_lost(tn_device *device);

// buffer.c
tn_status null_buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer);
void null_buffer_destroy(tn_device *device, tn_buffer *buffer);
tn_status null_buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                            const void *data, uint64_t size);
tn_status null_buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset,
                           void *data, uint64_t size);
void *null_buffer_map(tn_device *device, tn_buffer *buffer);

// segment.c
int32_t null_step_check(tn_device *device, const tn_step *step, const char **out_reason);
uint32_t null_fusion_limit(tn_device *device);
tn_status null_segment_compile(tn_device *device, const tn_segment *segment,
                               tn_executable **out_executable);
void null_executable_destroy(tn_device *device, tn_executable *executable);

// queue.c
tn_status null_submit(tn_device *device, const tn_submission *submission,
                      uint64_t *out_point);
tn_status null_wait(tn_device *device, uint64_t point);

#endif // NULL_H

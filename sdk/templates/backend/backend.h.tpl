// SPDX-License-Identifier: @LICENSE@
// Structs and functions of the files of backend @NAME@, a CPU backend that runs every operator
// in plain loops.
//
//   device.c  devices, buffers, and the table of the backend
//   queue.c   compiling segments, running and awaiting submissions
//   weights.c a packing of quantised weights, and the product that reads it
#ifndef BACKEND_H
#define BACKEND_H

#include <pthread.h>
#include <tenon/plugin.h>

struct tn_device {
    const tn_host *host; // borrowed until device_close
    // Several threads may call any slot at once. The lock is held while a submission runs, so
    // the device has one queue; a device with several queues has these members for each.
    pthread_mutex_t lock;
    uint64_t reached; // under the lock: the last point; submit returns when its work is done
};

struct tn_buffer {
    uint64_t size;
    unsigned char *bytes;
};

// queue.c
tn_status segment_compile(tn_device *device, const tn_segment *segment,
                          tn_executable **out_executable);
void executable_destroy(tn_device *device, tn_executable *executable);
tn_status submit(tn_device *device, const tn_submission *submission, uint64_t *out_point);
tn_status wait(tn_device *device, uint32_t queue, uint64_t value);

// weights.c
enum { NUM_PACKINGS = 1 };
extern const tn_packing packings[NUM_PACKINGS];
const void *query_weights(const char *id);

#endif // BACKEND_H

// SPDX-License-Identifier: @LICENSE@
// What the files of backend @NAME@ share: a CPU backend that computes everything, plainly.
//
//   device.c  what there is, where values live, and the table of the backend
//   queue.c   what a step becomes, how it is started and awaited
#ifndef BACKEND_H
#define BACKEND_H

#include <stdatomic.h>
#include <tenon/plugin.h>

struct tn_device {
    const tn_host *host;      // borrowed until device_close
    _Atomic uint64_t reached; // the last point: work is done when it is submitted
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
tn_status wait(tn_device *device, uint64_t point);

#endif // BACKEND_H

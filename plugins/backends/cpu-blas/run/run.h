// SPDX-License-Identifier: MIT
// Segments, which are compiled to executables, and the queues that run these.
#ifndef CPU_BLAS_RUN_H
#define CPU_BLAS_RUN_H

#include "device/device.h"

// segment.c
int32_t cpu_step_check(tn_device *device, const tn_step *step, const char **out_reason);
tn_status cpu_segment_compile(tn_device *device, const tn_segment *segment,
                              tn_executable **out_executable);
void cpu_executable_destroy(tn_device *device, tn_executable *executable);

// run.c
// Runs all launches in order, up to the first that fails. The caller has the queue to
// itself.
tn_status cpu_executable_run(struct cpu_queue *queue, const tn_submission *submission);

// queue.c
// Initialises a queue of which only the fields that open_queues sets are not zero.
tn_status cpu_queue_init(struct cpu_queue *queue);
void cpu_queue_finish(struct cpu_queue *queue);
tn_status cpu_submit(tn_device *device, const tn_submission *submission,
                     uint64_t *out_point);
tn_status cpu_wait(tn_device *device, uint32_t queue, uint64_t value);
tn_status cpu_signal(tn_device *device, uint64_t value);

#endif // CPU_BLAS_RUN_H

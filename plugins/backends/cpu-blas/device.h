// SPDX-License-Identifier: MIT
// The CPU as a device: what its parts share.
//
// Threads. Launches of one device run one after the other, on the thread that submits or on
// the device's queue thread; each may spread over the pool of threads.h.
#ifndef CPU_BLAS_DEVICE_H
#define CPU_BLAS_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/backend.h>
#include "cpu.h"
#include "threads.h"

#define CPU_ALIGNMENT 64
#define CPU_MESSAGE_SIZE 512

// Bytes of registers that one thread has for programs.
#define CPU_REGISTER_BYTES 131072

// The host table that kernels get: its fail also keeps the message, for those who wait.
struct cpu_host {
    tn_host table; // first: a kernel's host is cast back in exactly one function
    tn_device *device;
};

#define CPU_SIZE_CLASSES 160
struct cpu_memory {
    pthread_mutex_t lock;
    tn_buffer *free[CPU_SIZE_CLASSES]; // to be used again
    tn_memory_info info;
    uint64_t idle; // bytes in `free`
};

// Work on its way through the queue's thread. One that failed stays in `failures`, so that
// whoever waits for its point learns why.
struct cpu_submission {
    tn_submission what;
    struct cpu_submission *next;
    uint64_t point;
    tn_status status;
    char message[CPU_MESSAGE_SIZE];
    tn_binding bindings[]; // one a slot
};

struct cpu_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed; // work came, or a point was reached
    pthread_t thread;
    bool started, stopping;
    struct cpu_submission *first, **last;
    struct cpu_submission *failures; // the latest first
    uint64_t forgotten;              // up to here failures may have been forgotten; lock
    uint64_t submitted;
    _Atomic uint64_t reached;
};

struct tn_device {
    const tn_host *host;
    struct cpu_host kernel_host;
    const tn_host_trace *trace; // NULL: not traced
    const struct cpu_kernels *kernels;
    uint32_t cpu_features; // TN_CPU_...
    uint32_t num_threads;
    uint32_t blas_callers; // threads that memory of OpenBLAS is kept for; 0: none yet
    struct pool *pool;
    unsigned char *registers;       // num_threads times CPU_REGISTER_BYTES
    char message[CPU_MESSAGE_SIZE]; // of the launch that failed last
    struct cpu_memory memory;
    struct cpu_queue queue;
};

// device.c
tn_status cpu_device_count(const tn_host *host, uint32_t *out_count);
tn_status cpu_device_info(const tn_host *host, uint32_t index, tn_device_info *out);
tn_status cpu_device_details(const tn_host *host, uint32_t index, tn_device_details *out);
tn_status cpu_device_open(const tn_host *host, uint32_t index, tn_device **out_device);
void cpu_device_close(tn_device *device);

// The device behind the host table that a kernel got.
tn_device *cpu_device_of(const tn_host *kernel_host);
// Whether the host table that a kernel got is of a device of this plugin.
bool cpu_is_own_host(const tn_host *kernel_host);

// buffer.c
tn_status cpu_memory_init(tn_device *device);
void cpu_memory_finish(tn_device *device);
tn_status cpu_buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer);
void cpu_buffer_destroy(tn_device *device, tn_buffer *buffer);
tn_status cpu_buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                           const void *data, uint64_t size);
tn_status cpu_buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset, void *data,
                          uint64_t size);
void *cpu_buffer_map(tn_device *device, tn_buffer *buffer);
tn_status cpu_memory_info(tn_device *device, tn_memory_info *out);

// segment.c
tn_status cpu_segment_compile(tn_device *device, const tn_segment *segment,
                              tn_executable **out_executable);
void cpu_executable_destroy(tn_device *device, tn_executable *executable);
// Runs all steps; stops at the first that fails.
tn_status cpu_executable_run(tn_device *device, tn_executable *executable,
                             const tn_binding *bindings);

// queue.c
tn_status cpu_queue_init(tn_device *device);
void cpu_queue_finish(tn_device *device);
tn_status cpu_submit(tn_device *device, const tn_submission *submission,
                     uint64_t *out_point);
tn_status cpu_wait(tn_device *device, uint64_t point);

#endif // CPU_BLAS_DEVICE_H

// SPDX-License-Identifier: MIT
// The CPU as a device: structs and functions that the files of this plugin share.
//
// Threads. Launches of one queue run one after the other, on the submitting thread or on
// the queue's own; launches of different queues run concurrently. Each launch may spread
// its loops over the pool of threads.h.
#ifndef CPU_BLAS_DEVICE_H
#define CPU_BLAS_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/backend.h>
#include "cpu/cpu.h"
#include "threads.h"

#define CPU_ALIGNMENT 64
#define CPU_MESSAGE_SIZE 512

// Bytes that one thread has for the registers of a program (program.h).
#define CPU_REGISTER_BYTES 155648

// The host table that kernels receive, one for each queue. Its fail() also keeps the
// message, which cpu_wait reports again.
struct cpu_host {
    tn_host table; // first: a kernel's host is cast back in exactly one function
    struct cpu_queue *queue;
    char message[CPU_MESSAGE_SIZE]; // of the queue's last failed launch; "": none
};

struct tn_buffer {
    tn_buffer *next;      // in the free list of its class
    uint64_t capacity;    // bytes of `bytes`
    unsigned char *bytes; // `inside`, or imported memory
    bool is_mapped;       // from mmap(), not from the host
    bool is_imported;
    _Alignas(CPU_ALIGNMENT) unsigned char inside[];
};

// Size classes from 64 bytes to the largest buffer, 2^46, and a class behind it.
#define CPU_SIZE_CLASSES (4 * (46 - 6) + 2)
struct cpu_memory {
    pthread_mutex_t lock;              // guards the fields below
    tn_buffer *free[CPU_SIZE_CLASSES]; // free lists, by size class
    tn_memory_info info;
    uint64_t idle; // bytes in the free lists
};

// A submission that waits for the queue's thread, or runs there. A failed one moves to the
// queue's `failures`, for cpu_wait to report.
struct cpu_submission {
    tn_submission submission; // bindings and waits are copies in this allocation
    struct cpu_submission *next;
    uint64_t point;
    tn_status status;
    char message[CPU_MESSAGE_SIZE];
    tn_binding bindings[]; // one a slot
};

// A queue and its timeline. A thread claims point n by raising `submitted` from n - 1 to n,
// and has the queue to itself once `reached` is n - 1. So `registers`, `kernel_host` and
// the frames of executables need no lock.
struct cpu_queue {
    _Alignas(128) tn_device *device; // a pair of cache lines apart from other queues
    uint32_t index;
    bool calls_blas;          // an OpenBLAS buffer is reserved for this queue
    unsigned char *registers; // CPU_REGISTER_BYTES, for the thread that runs its launches
    char track[32];           // its name in traces
    struct cpu_host kernel_host;  // for the kernels of its launches
    _Atomic uint64_t submitted;   // value of the last claimed point
    _Atomic uint64_t reached;     // points up to this value are reached
    _Atomic uint32_t num_waiters; // threads that sleep until `reached` grows
    _Atomic bool has_failed;      // a queued submission has failed; never cleared
    pthread_mutex_t lock;         // guards the fields below
    pthread_cond_t changed;       // work was queued, a point reached, or `stopping` set
    pthread_t thread;
    bool started, stopping;
    // Queued, oldest first; `last` is the link to append at.
    struct cpu_submission *first, **last;
    struct cpu_submission *failures; // the latest first
    uint64_t forgotten;              // failures of points up to this value may be dropped
};

struct tn_device {
    const tn_host *host;
    const tn_host_trace *trace; // NULL: not traced
    const struct cpu_kernels *kernels;
    uint32_t cpu_features; // TN_CPU_...
    uint32_t num_threads;
    uint32_t num_queues;
    uint32_t num_open;     // of `queues`: less than all while the device opens
    uint32_t blas_callers; // threads that OpenBLAS buffers are reserved for; 0: none yet
    uint64_t stream_from;  // bytes of a step's operands; see TENON_CPU_STREAM
    struct cpu_pool *pool;
    unsigned char *registers; // of the pool's own threads, then of the queues
    struct cpu_memory memory;
    // [num_queues + 1]: the last has no work of its own, but the points that the host
    // signals (TN_QUEUE_HOST).
    struct cpu_queue *queues;
};

// host.c
// Sets the host table of a queue whose device is set.
void cpu_host_init(struct cpu_queue *queue);
// The queue whose host table a kernel received; cpu_is_own_host must be true.
struct cpu_queue *cpu_queue_of(const tn_host *kernel_host);
// Whether a kernel's host table belongs to a device of this plugin. Other backends that
// consume cpu.c/1 run these kernels with host tables of their own.
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
tn_status cpu_buffer_import(tn_device *device, const tn_buffer_import *import,
                            tn_buffer **out_buffer);
tn_status cpu_memory_info(tn_device *device, tn_memory_info *out);

#endif // CPU_BLAS_DEVICE_H

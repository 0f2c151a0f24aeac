// SPDX-License-Identifier: MIT
// Members of a group whose GPUs NCCL connects, and the memory that Vulkan shares with CUDA.
//
// Members agree on each call through the group below (tn_collective). NCCL gets only calls
// that all of them can make, so none waits for a member that does something else. While the
// GPU works, the group is asked again and again whether a member failed.
#ifndef NCCL_GROUP_H
#define NCCL_GROUP_H

#include <tenon/backend.h>
#include <tenon/collective_device.h>
#include "library.h"

enum { NCCL_REASON = 256, NCCL_UUID = 16, NCCL_LOCATION = 32 };

// Memory, or a timeline, of a Vulkan device that CUDA has imported.
struct nccl_import {
    uint32_t device; // tn_run_export.number
    uint64_t number; // of the memory; for a timeline, of its queue
    cuda_memory *memory;
    cuda_semaphore *semaphore;
    cuda_address address;
};

struct nccl_imports {
    struct nccl_import *all;
    uint32_t count, room;
};

struct tn_device_group {
    const tn_collective *base;
    const tn_host *base_host;
    tn_group *group;
    int32_t rank, size;
    uint64_t least; // bytes of a member's array from which on calls are NCCL's
    const struct nccl_library *library;
    char refused[NCCL_REASON]; // why this process's GPU cannot be used; "": no reason known
    const char *reason;        // why the operands of this call cannot be used
    bool is_told;              // the user was told that arrays go through the host
    // The GPU, known from the first operand: its UUID, its location (machine and bus),
    // context and stream.
    bool has_device;
    uint8_t uuid[NCCL_UUID];
    char location[NCCL_LOCATION];
    int device;
    cuda_context *context;
    cuda_stream *stream;
    nccl_comm *comm; // NULL until the first call makes it
    bool is_broken;
    struct nccl_imports memories, timelines;
    uint64_t num_freed; // memories that the device had freed at the last call
};

// Begins and ends work with CUDA in this thread, and restores the thread's own context.
struct nccl_context {
    cuda_context *before;
};
bool nccl_context_begin(tn_device_group *g, struct nccl_context *context);
void nccl_context_end(tn_device_group *g, const struct nccl_context *context);

// --- group.c ----------------------------------------------------------------------------

tn_status nccl_ready(const tn_host *host, char *why, uint64_t size);
tn_status nccl_group_open(const tn_host *host, const tn_collective *base,
                          const tn_host *base_host, tn_group *group, tn_device_group **out);
void nccl_group_close(const tn_host *host, tn_device_group *g);

// Finds the GPU with this UUID, and opens it for CUDA; a group has one GPU. False:
// g->refused has the reason.
bool nccl_find_device(tn_device_group *g, const uint8_t uuid[NCCL_UUID]);

// Makes the communicator; all members call it.
tn_status nccl_connect(const tn_host *host, tn_device_group *g,
                       const tn_collective_call *call);

// Ends the communicator, and the group below with this reason. Returns `status`.
tn_status nccl_break(const tn_host *host, tn_device_group *g, tn_status status,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

// --- import.c ---------------------------------------------------------------------------

// Gives the address by which CUDA knows an operand; the stream waits for the operand's
// point. Call it for operand 0 first.
tn_status nccl_operand(const tn_host *host, tn_device_group *g, const tn_run *run,
                       uint32_t operand, cuda_address *out);
void nccl_forget(tn_device_group *g, struct nccl_imports *imports);

// --- call.c -----------------------------------------------------------------------------

tn_status nccl_run(const tn_host *host, tn_device_group *g, const tn_collective_call *call,
                   const tn_run *run, int32_t *out_done);

// Waits until the communicator has done its last call, which returned `code`, and, with
// `on_stream`, until the GPU has; looks for failures meanwhile.
tn_status nccl_settle(const tn_host *host, tn_device_group *g,
                      const tn_collective_call *call, int code, bool on_stream);

#endif // NCCL_GROUP_H

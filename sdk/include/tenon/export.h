// SPDX-License-Identifier: MIT
// Exports: where buffers and operands lie in the memory of a device, for libraries that use
// them there, without a copy: CUDA's, of Vulkan's memory.
//
//   tn_buffer_export exported = {.struct_size = sizeof(exported)};
//   if (backend->buffer_export(device, buffer, TN_EXPORT_MEMORY_FD, &exported) == TN_OK)
//       address = import(exported.fd, exported.size) + exported.offset;
//
// A backend tells it of its buffers, the core of the operands of a primitive's `run`.
//
// Threads. Those of the functions that fill them in.
#ifndef TENON_EXPORT_H
#define TENON_EXPORT_H

#include <stdint.h>

// File descriptors to give beside the members that are always filled in.
enum {
    TN_EXPORT_MEMORY_FD = 1, // a file descriptor of the memory
    TN_EXPORT_POINT_FD = 2,  // of a tn_run_export: of the timeline of its point
};

// Where a buffer lies. Filled by buffer_export, up to the caller's struct_size.
typedef struct tn_buffer_export {
    uint32_t struct_size; // set by the caller
    uint32_t flags;       // 0
    int32_t fd;           // -1 without TN_EXPORT_MEMORY_FD; the caller closes it
    uint32_t reserved;    // 0
    uint64_t memory;      // a number that no other memory of the device has or will have
    uint64_t size;        // bytes, of all the memory
    uint64_t offset;      // bytes: where the buffer begins
    // Memories that the device has freed so far. When the number grows, an import may hold
    // memory that nothing else refers to any more.
    uint64_t num_freed;
} tn_buffer_export;

// Where an operand lies. Filled by `operand_export` of tn_run_memory, up to the caller's
// struct_size.
typedef struct tn_run_export {
    uint32_t struct_size; // set by the caller
    uint32_t flags;       // 0
    uint64_t value;       // point of `queue` to wait for before using the memory; 0: none
    uint64_t memory, size, num_freed; // as tn_buffer_export has them
    uint64_t offset;                  // bytes: where the elements begin, row-major
    int32_t memory_fd;  // -1 without TN_EXPORT_MEMORY_FD; the caller closes it
    int32_t point_fd;   // -1 without TN_EXPORT_POINT_FD, or without a point; likewise
    uint8_t device[32]; // the device's share_id
    uint32_t number;    // of the device, in the order of TENON_BACKEND
    uint32_t queue;     // of the point
} tn_run_export;

#endif // TENON_EXPORT_H

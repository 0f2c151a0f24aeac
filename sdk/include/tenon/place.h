// SPDX-License-Identifier: MIT
// Places of buffers and operands in the memory of a device, for libraries that use them
// there, without a copy: CUDA's, of Vulkan's memory.
//
//   tn_buffer_place place = {.struct_size = sizeof(place)};
//   if (backend->buffer_place(device, buffer, TN_PLACE_MEMORY_FD, &place) == TN_OK)
//       address = import(place.fd, place.size) + place.offset;
//
// A backend tells them of its buffers, the core of the operands of a primitive's `run`.
//
// Threads. Those of the functions that fill them in.
#ifndef TENON_PLACE_H
#define TENON_PLACE_H

#include <stdint.h>

// File descriptors that are wanted beside what is always there.
enum {
    TN_PLACE_MEMORY_FD = 1, // a file descriptor of the memory
    TN_PLACE_POINT_FD = 2,  // of a tn_run_place: of the timeline of its point
};

// A buffer's place. Filled by buffer_place, up to the caller's struct_size.
typedef struct tn_buffer_place {
    uint32_t struct_size; // set by the caller
    uint32_t flags;       // 0
    int32_t fd;           // -1 without TN_PLACE_MEMORY_FD; the caller closes it
    uint32_t reserved;    // 0
    uint64_t memory;      // a number that no other memory of the device has or will have
    uint64_t size;        // bytes, of all the memory
    uint64_t offset;      // bytes: where the buffer begins
    // Memories of the device that were given back so far. When it grows some imports may be
    // of memory that nothing else refers to any more.
    uint64_t num_freed;
} tn_buffer_place;

// An operand's place. Filled by `place` of tn_run_memory, up to the caller's struct_size.
typedef struct tn_run_place {
    uint32_t struct_size; // set by the caller
    uint32_t flags;       // 0
    uint64_t value;       // 0: the memory may be used now; else once this point is reached
    uint64_t memory, size, num_freed; // as tn_buffer_place has them
    uint64_t offset;                  // bytes: where the elements begin, row-major
    int32_t memory_fd;                // -1 without TN_PLACE_MEMORY_FD; the caller closes it
    int32_t point_fd;                 // -1 without TN_PLACE_POINT_FD, or a point; likewise
    uint8_t device[32];               // the device's share_id
    uint32_t number;                  // of the device, in the order of TENON_BACKEND
    uint32_t queue;                   // of the point
} tn_run_place;

#endif // TENON_PLACE_H

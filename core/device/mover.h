// SPDX-License-Identifier: MIT
// The mover: one thread of a runtime that copies between devices, so that a thread of the
// application which starts work on several devices waits for none of them.
//
// A copy waits for the work that computes what it reads, and for the work that still uses
// what it writes. When the copy has ended it reaches a point of the host's timeline on both
// devices: later work waits for these points as for those of a queue, and storages note
// them as uses. Copies run one after the other, in the order in which they were queued, so
// the points of each host's timeline are reached in order; and a copy depends only on what
// was submitted or queued before, so none waits for ever.
//
// Threads. Any. The thread starts with the first copy.
#ifndef CORE_DEVICE_MOVER_H
#define CORE_DEVICE_MOVER_H

#include "device.h"

// A copy between two devices, both with device_has_host_points().
struct move {
    struct device *from, *to; // `from` NULL: a number is written to each element
    const tn_buffer *from_buffer;
    tn_buffer *to_buffer;
    uint64_t from_offset, to_offset, size; // bytes; size 0: only waits
    uint64_t number;                       // as dtype_store_bits() takes it
    tn_dtype dtype;                        // of the elements
    struct outcome *outcome;               // of the copy, owned; NULL: nobody asks
    struct device *after; // the copy begins after `after_point` of this device; NULL: none
    tn_point after_point;
    // Values of the points that the copy reaches, set by mover_add().
    uint64_t from_value, to_value;
    uint64_t to_uses[MAX_TIMELINES]; // of `to`: the copy begins after these points
    struct move *next;
    uint32_t num_causes, max_causes;
    struct outcome *causes[]; // owned: of what it reads; the copy begins after them
};

struct mover;
struct mover *mover_create(void); // NULL: out of memory
// Ends the thread after the last copy. NULL is fine.
void mover_destroy(struct mover *mover);

// Gives a move without causes, of which it has room for `max_causes`. NULL: out of memory.
struct move *move_create(uint32_t max_causes);
// Adds a cause, with a reference of its own.
void move_add_cause(struct move *move, struct outcome *cause);
void move_destroy(struct move *move); // NULL is fine

// Queues the copy and lists its outcome, on `to`. Takes the move, also on failure. Gives
// the values of the points that the copy reaches: of `to`, and of `from` unless that is
// NULL.
tn_status mover_add(tn_runtime *runtime, struct move *move, uint64_t *out_to,
                    uint64_t *out_from);

// Blocks until a point of the device's host timeline is reached.
void mover_wait(struct device *device, uint64_t value);

// Copies `size` bytes between buffers of two devices on the calling thread: no work uses
// them. Without a copy on the host in between, where it sees one of the buffers.
tn_status buffers_copy(struct device *from, const tn_buffer *from_buffer,
                       uint64_t from_offset, struct device *to, tn_buffer *to_buffer,
                       uint64_t to_offset, uint64_t size);

// Writes a number to each element.
tn_status buffer_fill(struct device *device, tn_buffer *buffer, uint64_t offset,
                      uint64_t size, tn_dtype dtype, uint64_t number);

#endif // CORE_DEVICE_MOVER_H

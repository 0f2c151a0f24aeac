// SPDX-License-Identifier: MIT
// Offsets in one device's arena, found while a plan is made. No memory is touched.
#ifndef CORE_PLAN_POOL_H
#define CORE_PLAN_POOL_H

#include <stdint.h>
#include <tenon/status.h>

struct arena;

// Memory that is in use from step `first` to step `last`, both included.
struct pool_range {
    uint64_t size, offset; // bytes
    uint32_t first, last;
    uint32_t block, unused; // while offsets are found
};

// Writes the offsets of ranges, which ascend by `first`, and *out_end, the arena's size:
// all are multiples of the alignment, as are the sizes, which it rounds up. O(n log n) in
// the number of ranges. `device` is a name, for messages; the stack is used meanwhile.
tn_status pool_assign(const char *device, uint64_t alignment, struct arena *stack,
                      struct pool_range *ranges, uint32_t count, uint64_t *out_end);

#endif // CORE_PLAN_POOL_H

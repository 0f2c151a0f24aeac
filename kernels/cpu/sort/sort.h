// SPDX-License-Identifier: MIT
// Stable sorts of the elements of rows, in ascending or descending order; NaN is the
// greatest.
//
// An element becomes an unsigned key in whose order it is to come, with its position: an
// item, of one word of 64 bits for dtypes of up to 32, otherwise of two. A row is sorted at
// once, or in parts that are then merged.
//
// Threads. Everything here is pure: memory that is written is the caller's.
#ifndef KERNELS_CPU_SORT_H
#define KERNELS_CPU_SORT_H

#include <stdbool.h>
#include <stdint.h>
#include "quick.h"

#define CPU_SORT_DIGIT_BITS 11
#define CPU_SORT_DIGITS (1 << CPU_SORT_DIGIT_BITS)
#define CPU_SORT_COUNTS (6 * CPU_SORT_DIGITS) // counters of a sort, at most

struct cpu_sort {
    int32_t dtype;
    uint32_t size, passes;    // bytes of an element; cpu_sort_passes
    bool is_wide, descending; // wide: items of two words
    int64_t n, inner, k; // elements of a row, their distance in outputs, the first so many
    int64_t kth;         // of a partition
    char *values;        // NULL: not wanted
    int64_t *indices;    // NULL: not wanted
    const struct cpu_quick_kernels *quick;
};

static inline uint64_t cpu_sort_item_bytes(bool is_wide)
{
    return is_wide ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

// Digits of a key of an element of `size` bytes.
static inline uint32_t cpu_sort_passes(uint32_t size)
{
    return (8 * size + CPU_SORT_DIGIT_BITS - 1) / CPU_SORT_DIGIT_BITS;
}

// The k first of a packed row in order: items that come behind the k-th of those so far are
// left out, and the others are sorted whenever `room` are there. Gives the sorted items, in
// one of both buffers of `room` items.
const void *cpu_sort_select(const struct cpu_sort *s, const void *row, void *items,
                            void *other, int64_t room, uint32_t *counts);

// Sorts a packed row and writes its elements, or their places, to the output's row that
// begins with element `at`, by words of 32 bits or of an element's; `keys` and `other` have
// room for items. False: the row is yet to be sorted. Both are wanted, elements of one key
// may differ in bits, or keys are not spread evenly.
bool cpu_sort_keys(const struct cpu_sort *s, const void *row, void *keys, void *other,
                   int64_t at);

// Writes a packed row to the output's row that begins with element `at`: the element that a
// sort puts at position kth there, those before it in front and the others behind, in their
// order. Both buffers have room for CPU_SPLIT_SLACK items more than elements.
void cpu_sort_partition(const struct cpu_sort *s, const void *row, void *items, void *other,
                        int64_t at);

// Sorts the items of elements [begin, end) of a row in their places.
void cpu_sort_part(const struct cpu_sort *s, const void *row, void *items, void *other,
                   int64_t begin, int64_t end, uint32_t *counts);

// Items [begin, end) of what parts of `width` sorted items, the last one of which may be
// shorter, merge to in pairs. They are of one pair.
void cpu_sort_merge(const struct cpu_sort *s, void *to, const void *items, int64_t width,
                    int64_t begin, int64_t end);

// Writes positions [begin, end) in order, and the elements there, to the output's row that
// begins with element `at`.
void cpu_sort_write(const struct cpu_sort *s, const void *row, const void *sorted,
                    int64_t at, int64_t begin, int64_t end);

#endif // KERNELS_CPU_SORT_H

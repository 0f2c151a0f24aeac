// SPDX-License-Identifier: MIT
// Stable sorts of the elements of rows, in ascending or descending order; NaN is the
// greatest.
//
// An element becomes an item: an unsigned key, whose order is that of the output, and the
// element's position. Items are one word of 64 bits for dtypes of up to 32 bits, else two.
// A row is sorted at once, or in parts that are then merged.
//
// Threads. Everything here is pure: memory that is written is the caller's.
#ifndef KERNELS_CPU_SORT_H
#define KERNELS_CPU_SORT_H

#include <stdbool.h>
#include <stdint.h>
#include "quick.h"

#define CPU_SORT_DIGIT_BITS 11
#define CPU_SORT_DIGITS (1 << CPU_SORT_DIGIT_BITS)
#define CPU_SORT_COUNTS (6 * CPU_SORT_DIGITS) // most counters of a sort

struct cpu_sort {
    int32_t dtype;
    uint32_t size, passes;    // bytes of an element; cpu_sort_passes(size)
    bool is_wide, descending; // wide: items of two words
    int64_t n, inner, k; // elements of a row; their stride in outputs; how many are output
    int64_t kth;         // for cpu_sort_partition() alone
    char *values;        // output of elements; NULL: not wanted
    int64_t *indices;    // output of positions; NULL: not wanted
    const struct cpu_quick_kernels *quick;
};

static inline uint64_t cpu_sort_item_bytes(bool is_wide)
{
    return is_wide ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

// Number of digits of the key of an element of `size` bytes.
static inline uint32_t cpu_sort_passes(uint32_t size)
{
    return (8 * size + CPU_SORT_DIGIT_BITS - 1) / CPU_SORT_DIGIT_BITS;
}

// Returns the items of the first k elements, in order, of a packed row. Collects items, but
// for those that come behind the k-th so far, and sorts them whenever there are `room`.
// `items` and `other` have room for `room` items; the result lies in one of them.
const void *cpu_sort_select(const struct cpu_sort *s, const void *row, void *items,
                            void *other, int64_t room, uint32_t *counts);

// Sorts a packed row without items, and writes its elements or their positions to the
// output's row that begins with element `at`. `keys` and `other` have room for n items.
// False: it cannot, since both outputs are wanted, elements with equal keys may differ in
// bits, or keys are not spread evenly. Then use items.
bool cpu_sort_keys(const struct cpu_sort *s, const void *row, void *keys, void *other,
                   int64_t at);

// Partitions a packed row into the output's row that begins with element `at`: the element
// that a sort puts at position kth goes there, elements that sort before it in front and
// the others behind, in their order. `items` and `other` have room for n + CPU_SPLIT_SLACK
// items.
void cpu_sort_partition(const struct cpu_sort *s, const void *row, void *items, void *other,
                        int64_t at);

// Makes the items of elements [begin, end) of a row, and sorts this range of `items`.
void cpu_sort_part(const struct cpu_sort *s, const void *row, void *items, void *other,
                   int64_t begin, int64_t end, uint32_t *counts);

// `items` consists of sorted parts of `width` items, the last one of which may be shorter.
// Merges pairs of parts, and writes items [begin, end) of the result, all of one pair, to
// the same positions of `to`.
void cpu_sort_merge(const struct cpu_sort *s, void *to, const void *items, int64_t width,
                    int64_t begin, int64_t end);

// Writes positions [begin, end) in order, and the elements there, to the output's row that
// begins with element `at`.
void cpu_sort_write(const struct cpu_sort *s, const void *row, const void *sorted,
                    int64_t at, int64_t begin, int64_t end);

#endif // KERNELS_CPU_SORT_H

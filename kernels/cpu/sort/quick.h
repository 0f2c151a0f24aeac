// SPDX-License-Identifier: MIT
// Sorts and selections of unsigned words in vectors.
//
// Threads. Everything here is pure: memory that is written is the caller's.
#ifndef KERNELS_CPU_QUICK_H
#define KERNELS_CPU_QUICK_H

#include <stdbool.h>
#include <stdint.h>

// How elements become words (keys) whose order is the order of the elements.
struct cpu_keys {
    bool is_float, is_signed, descending;
};

#define CPU_SPLIT_SLACK 16 // writable words that split_... needs behind each result

struct cpu_quick_kernels {
    // Make keys of n elements. False: a float is NaN or -0, which shares its key.
    bool (*keys_32)(const struct cpu_keys *of, const void *x, uint32_t *keys, int64_t n);
    bool (*keys_64)(const struct cpu_keys *of, const void *x, uint64_t *keys, int64_t n);
    // Return the word that a sort puts at position `kth`, and leave x in any order. `other`
    // has room for n words.
    uint32_t (*select_32)(uint32_t *x, uint32_t *other, int64_t n, int64_t kth);
    uint64_t (*select_64)(uint64_t *x, uint64_t *other, int64_t n, int64_t kth);
    // Copy words of `from`, in their order, to `before` if their keys are below the pivot
    // or are among the first `ties` equal to it; the next equal one to *own, others to
    // `behind`. Both arrays have room for CPU_SPLIT_SLACK words more.
    void (*split_32)(const uint32_t *keys, const uint32_t *from, int64_t n, uint32_t pivot,
                     int64_t ties, uint32_t *before, uint32_t *own, uint32_t *behind);
    void (*split_64)(const uint64_t *keys, const uint64_t *from, int64_t n, uint64_t pivot,
                     int64_t ties, uint64_t *before, uint64_t *own, uint64_t *behind);

    // Functions from here on are NULL where the processor cannot pack lanes by a mask. Sort
    // n words in ascending order; `other` has room for n words.
    void (*sort_32)(uint32_t *x, uint32_t *other, int64_t n);
    void (*sort_64)(uint64_t *x, uint64_t *other, int64_t n);
    // As keys_32, but an item has the key in its upper half and the position in the lower.
    bool (*positions_32)(const struct cpu_keys *of, const void *x, uint64_t *items,
                         int64_t n);
    // Writes the positions of elements in order, if their keys are spread evenly. `other`
    // has room for n words of 64 bits. False: they are not, and `positions` is garbage.
    bool (*order_32)(const struct cpu_keys *of, const void *x, uint64_t *positions,
                     void *other, int64_t n);
    // Write the elements of n keys to x, `step` elements apart.
    void (*elements_32)(const struct cpu_keys *of, const uint32_t *keys, void *x,
                        int64_t step, int64_t n);
    void (*elements_64)(const struct cpu_keys *of, const uint64_t *keys, void *x,
                        int64_t step, int64_t n);
};

#endif // KERNELS_CPU_QUICK_H

// SPDX-License-Identifier: MIT
// Sorts of unsigned words in vectors.
//
// Threads. Everything here is pure: memory that is written is the caller's.
#ifndef KERNELS_CPU_QUICK_H
#define KERNELS_CPU_QUICK_H

#include <stdbool.h>
#include <stdint.h>

// How elements become words in whose order they come.
struct cpu_keys {
    bool is_float, is_signed, descending;
};

// What is NULL is so in all members: the processor lacks what they are made of.
struct cpu_quick_kernels {
    // Sort n words in ascending order; `other` is as much memory.
    void (*sort_32)(uint32_t *x, uint32_t *other, int64_t n);
    void (*sort_64)(uint64_t *x, uint64_t *other, int64_t n);
    // Make n words of elements. False where a float is NaN or -0, whose key is not its own.
    bool (*keys_32)(const struct cpu_keys *of, const void *x, uint32_t *keys, int64_t n);
    bool (*keys_64)(const struct cpu_keys *of, const void *x, uint64_t *keys, int64_t n);
    // The same with an element's place in the lower half of a word.
    bool (*places_32)(const struct cpu_keys *of, const void *x, uint64_t *items, int64_t n);
    // Write the elements, `step` elements apart.
    void (*elements_32)(const struct cpu_keys *of, const uint32_t *keys, void *x,
                        int64_t step, int64_t n);
    void (*elements_64)(const struct cpu_keys *of, const uint64_t *keys, void *x,
                        int64_t step, int64_t n);
};

#endif // KERNELS_CPU_QUICK_H

// SPDX-License-Identifier: MIT
// Random words and numbers: Threefry-2x32 of counters, and the floats that the op packs
// base and random make of its words.
#ifndef KERNELS_CPU_RANDOM_H
#define KERNELS_CPU_RANDOM_H

#include <stdint.h>

// Counters: element i of n is the pair of words (first[0] + i, first[1] + i), where a word
// whose mask is 0 does not count up. No word exceeds UINT32_MAX within n elements.
struct cpu_counters {
    uint32_t key[2], first[2], mask[2]; // masks: 0 or UINT32_MAX
};

// Words of an encrypted pair (a, b) that are written: a; a ^ b; a and b.
enum { CPU_WORDS_FIRST, CPU_WORDS_FOLDED, CPU_WORDS_BOTH, CPU_NUM_WORDS };

// FIRST and BOTH: x[i] = a; FOLDED: x[i] = a ^ b. BOTH: y[i] = b; else y is not written.
typedef void cpu_words_fn(uint32_t *x, uint32_t *y, const struct cpu_counters *counters,
                          int64_t n);

// Conversions of a word w to an f32 in the same memory.
enum {
    CPU_UNIT_23,       // (w >> 9) / 2^23, in [0, 1)
    CPU_UNIT_24,       // (w >> 8) / 2^24
    CPU_UNIT_24_AFTER, // ((w >> 8) + 1) / 2^24, in (0, 1]
    CPU_UNIT_32,       // w / 2^32, at most the number before 1
    CPU_SIGNED_23,     // 2 u - 1 for u of CPU_UNIT_23, at least the number after -1
    CPU_SIGNED_32,     // 2 u - 1 for u of CPU_UNIT_32, at least the number after -1
    CPU_ANGLE_24,      // (w >> 8) times 2 pi / 2^24
    CPU_NUM_UNITS
};
typedef void cpu_unit_fn(void *words, int64_t n);

struct cpu_random_kernels {
    cpu_words_fn *words[CPU_NUM_WORDS];
    cpu_unit_fn *unit[CPU_NUM_UNITS];
    void (*scale)(float *x, int64_t n, float factor);      // x[i] *= factor
    void (*multiply)(float *x, const float *y, int64_t n); // x[i] = 0 + x[i] * y[i]
};

#endif // KERNELS_CPU_RANDOM_H

// SPDX-License-Identifier: MIT
// Rows of codes of <tenon/ops/quant_groups.h>: decoding, and products with a few rows of
// floats in about the time of reading the codes.
//
// Threads. Everything here is pure: any thread, any number at once.
#ifndef KERNELS_CPU_GROUPWISE_H
#define KERNELS_CPU_GROUPWISE_H

#include <stdint.h>
#include <tenon/ops/quant_groups.h>

// Most rows of x that are multiplied by the unpacked codes of a row.
#define CPU_GROUPWISE_ROWS 4

// A matrix of rows of k codes, without gaps. Scales and biases are k / group f32 a row;
// `biases` is read in the affine mode alone.
struct cpu_groupwise {
    int32_t mode, bits, group;
    int32_t reserved;
    int64_t k;
};

// One row of codes.
struct cpu_groupwise_row {
    const uint32_t *words;
    const float *scales, *biases;
};

// The kernels of one variant.
struct cpu_groupwise_kernels {
    const char *name;
    uint32_t needs; // CPU_HAS_..., instruction sets
    // Writes the k elements of a row.
    void (*decode)(const struct cpu_groupwise *w, const struct cpu_groupwise_row *row,
                   float *out);
    // Writes cpu_groupwise_prepared() floats: the k floats of x in the order in which `dot`
    // reads them, then the sum of each group of them.
    void (*prepare)(const struct cpu_groupwise *w, const float *x, float *out);
    // Products of `columns` rows of codes, whose words, scales and biases are adjacent,
    // with `count` prepared rows of x, 1 .. CPU_GROUPWISE_ROWS. Element [t][column] of the
    // product is at t * out_row + column.
    void (*dot)(const struct cpu_groupwise *w, const struct cpu_groupwise_row *first,
                int64_t columns, const float *x, int64_t count, float *out,
                int64_t out_row);
};

// Number of floats of a prepared row: k padded to whole vectors of words, and the sums.
static inline int64_t cpu_groupwise_padded(int64_t k)
{
    return (k + 255) / 256 * 256;
}
static inline int64_t cpu_groupwise_prepared(int64_t k, int64_t group)
{
    return cpu_groupwise_padded(k) + (k / group + 15) / 16 * 16;
}

// The same functions with x rounded to two bytes an element: 32 elements to multiples of
// their greatest magnitude / 127, and the remainders to multiples of 1 / 254 of that unit.
// Sums of x, which biases multiply, are of the elements before rounding.
struct cpu_groupwise_rounding {
    void (*prepare)(const struct cpu_groupwise *w, const float *x, float *out);
    void (*dot)(const struct cpu_groupwise *w, const struct cpu_groupwise_row *first,
                int64_t columns, const float *x, int64_t count, float *out,
                int64_t out_row);
};

// The functions for codes of 2, 4 and 8 bits but mxfp8; NULL: the format or the processor
// has none.
const struct cpu_groupwise_rounding *
cpu_groupwise_rounding_pick(const struct cpu_groupwise *w, uint32_t features);

const struct cpu_groupwise_kernels *const *cpu_groupwise_variants(void);
const struct cpu_groupwise_kernels *cpu_groupwise_pick(uint32_t features);

#endif // KERNELS_CPU_GROUPWISE_H

// SPDX-License-Identifier: MIT
// Products with weights in packings of <tenon/ops/quant.h>, which interleave 16 rows, and
// decoding of rows of blocks.
//
// The other operand is rounded to bytes first: 32 elements to multiples of their greatest
// magnitude / 127. Sums of 32 products are exact sums of integers; they are then added up
// in floats, block by block in order. So all variants give the same bits.
//
// Threads. Everything here is pure: any thread, any number at once.
#ifndef KERNELS_CPU_QUANT_H
#define KERNELS_CPU_QUANT_H

#include <stdint.h>
#include <tenon/ops/quant.h>

// Numbers of the packings.
enum {
#define CPU_QUANT_NUMBER(name, ...) CPU_QUANT_##name,
    TN_QUANT_PACKED_FORMATS(CPU_QUANT_NUMBER)
#undef CPU_QUANT_NUMBER
};

// Bytes of a rounded row of k elements: k bytes; then for each 32 elements a float, the
// scale; then for each 32 elements a word that the format needs: an integer, with which the
// sum of products begins; or a float, the scale times the sum of the bytes; or the sums of
// both halves, 16 bits each. Rounded up to whole cache lines.
static inline int64_t cpu_quant_row_bytes(int64_t k)
{
    return (k + k / 32 * 8 + 63) / 64 * 64;
}

// A product: out = x * w'. Rows of x are rounded.
struct cpu_quant_product {
    const uint8_t *w; // groups of 16 rows
    const uint8_t *x; // `rows` rounded rows, cpu_quant_row_bytes() apart
    float *out;       // element [row][16 * group + i] at row * out_row + 16 * group + i
    int64_t out_row;  // elements of out from row to row
    int64_t k, rows, groups;
    int32_t format; // CPU_QUANT_...
};

// The kernels of one variant.
struct cpu_quant_kernels {
    const char *name;
    uint32_t needs; // CPU_HAS_..., instruction sets
    // Rounds k elements, a multiple of 32, for products with rows of a format. If 32
    // elements contain infinity or NaN, their scale is NaN.
    void (*round)(int32_t format, const float *x, int64_t k, uint8_t *out);
    void (*product)(const struct cpu_quant_product *p);
    // Writes the elements of `blocks` blocks of format `format` of TN_QUANT_FORMATS.
    void (*decode)(uint32_t format, const uint8_t *from, int64_t blocks, float *out);
};

#endif // KERNELS_CPU_QUANT_H

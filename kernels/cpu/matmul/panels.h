// SPDX-License-Identifier: MIT
// Products of matrices of floats, blocked for the caches.
#ifndef KERNELS_CPU_PANELS_H
#define KERNELS_CPU_PANELS_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/types.h>

// A product, c = a b: a is m by k, b is k by n, of `dtype` (F32, F16, BF16); c is of F32,
// as are the sums, and so are the panels into which both are copied. Strides of a and b in
// elements, any, 0 and negative ones too; the columns of c are adjacent. c overlaps neither
// a nor b. m, n and k may be 0.
struct cpu_panels {
    const void *a, *b;
    float *c;
    void *scratch; // cpu_panels_scratch() bytes, aligned to 64; not cleared
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column, c_row;
    int32_t dtype;
};
typedef void cpu_panels_fn(const struct cpu_panels *p);

// Rows, columns and inner elements of a block: multiples of every variant's register tile.
// A block of a stays in the second-level cache, one of b in the last one, a panel of b's in
// the first one.
#define CPU_PANELS_ROWS 336
#define CPU_PANELS_COLUMNS 2048
#define CPU_PANELS_INNER 320

// Rows of one operand up to which the elements of the other one are read where they lie,
// once, and no panels are made; inner elements of these rows that are widened at a time;
// and elements between the widened rows, no power of two.
#define CPU_PANELS_FEW 8
#define CPU_PANELS_FEW_INNER 2048
#define CPU_PANELS_FEW_PITCH (CPU_PANELS_FEW_INNER + 16)

// The same of products of BF16 on AMX: multiples of 32.
#define CPU_PANELS_AMX_ROWS 320
#define CPU_PANELS_AMX_INNER 512

// Bytes that a product of these extents, or any part of it, needs in any variant: a part
// may have few rows or columns, whatever the whole has.
static inline int64_t cpu_panels_scratch(int64_t m, int64_t n, int64_t k)
{
    int64_t rows = m < CPU_PANELS_ROWS ? m : CPU_PANELS_ROWS;
    int64_t columns = n < CPU_PANELS_COLUMNS ? n : CPU_PANELS_COLUMNS;
    int64_t inner = k < CPU_PANELS_INNER ? k : CPU_PANELS_INNER;
    int64_t few = CPU_PANELS_FEW * CPU_PANELS_FEW_PITCH * 4;
    // Whole register tiles, of at most 14 by 32; 64 bytes beyond, which copies may write.
    int64_t bytes = (((rows + 13) + (columns + 31)) * inner * 4 + 2 * 64 + 63) / 64 * 64;
    int64_t pairs = k < CPU_PANELS_AMX_INNER ? (k + 31) / 32 * 32 : CPU_PANELS_AMX_INNER;
    int64_t tiles = ((rows + 31) / 32 + (columns + 31) / 32) * 32 * pairs * 2;
    bytes = bytes > tiles ? bytes : tiles;
    return bytes > few ? bytes : few;
}

// One variant of these products.
struct cpu_panels_variant {
    const char *name;
    uint32_t needs; // CPU_HAS_..., instruction sets
    cpu_panels_fn *multiply;
    bool flushes; // takes subnormal numbers of BF16 for zeros
};

#endif // KERNELS_CPU_PANELS_H

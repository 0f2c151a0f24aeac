// SPDX-License-Identifier: MIT
// Products of matrices of floats, blocked for the caches.
#ifndef KERNELS_CPU_PANELS_H
#define KERNELS_CPU_PANELS_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/types.h>

// A product, c = a b: a is m by k, b is k by n, of `dtype` (F32, F16, BF16, F64, COMPLEX64
// or COMPLEX128); c, as the sums, is of F32 for halves, else of the dtype. Strides of a and
// b in elements, any, 0 and negative ones too; the columns of c are adjacent. c overlaps
// neither a nor b. m, n and k may be 0.
//
// What callers may rely on: every element of c is written, none is read and nothing beside
// them is written; nothing beside the operands' elements is read; an element of c is the
// sum of its own row and column alone, so that parts of c may be computed apart, by any
// threads, each with cpu_panels_scratch() bytes of its own. The order of sums, and so their
// last bits, may be another one for other extents and strides.
struct cpu_panels {
    const void *a, *b;
    void *c;
    void *scratch; // cpu_panels_scratch() bytes, aligned to 64; not cleared
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column, c_row;
    int32_t dtype;
    // Where b has been copied by cpu_pack_panels_fn, for several products with parts of one
    // b: the memory of all its `packed_columns`, and the number of the first column here, a
    // multiple of CPU_PANELS_WIDTH. NULL: not copied. b's extents and dtype are set still.
    const void *packed;
    int64_t packed_first, packed_columns;
};
typedef void cpu_panels_fn(const struct cpu_panels *p);

// Copies columns [first, end) of b, of which only end may be no multiple of
// CPU_PANELS_WIDTH, to where they belong in `to`, which has cpu_panels_packed() bytes,
// aligned to 64. p is of the whole b, with any m. Parts may be copied by several threads.
typedef void cpu_pack_panels_fn(const struct cpu_panels *p, int64_t first, int64_t end,
                                void *to);
#define CPU_PANELS_WIDTH 32

// Rows, columns and inner elements of a block. One of a stays in the second-level cache,
// one of b in the last one. COLUMNS_BESIDE: where there is one block of a, so that b's
// stays beside it. THIN_INNER: where b is read where it lies.
#define CPU_PANELS_ROWS 336
#define CPU_PANELS_COLUMNS 2048
#define CPU_PANELS_COLUMNS_BESIDE 256
#define CPU_PANELS_INNER 384
#define CPU_PANELS_THIN_INNER 128

// Rows of one operand up to which the elements of the other one are read where they lie,
// once, and no panels are made; inner elements of these rows that are widened at a time;
// and elements between the widened rows, no power of two.
#define CPU_PANELS_FEW 8
#define CPU_PANELS_FEW_INNER 2048
#define CPU_PANELS_FEW_PITCH (CPU_PANELS_FEW_INNER + 16)

// The same of products of BF16 on AMX: multiples of 32.
#define CPU_PANELS_AMX_ROWS 320
#define CPU_PANELS_AMX_INNER 512

// Bytes that a product of these extents, or any part of it, needs in any variant; of F64
// twice as many, of complex numbers as many as those of 2 m and 2 n of F32 or F64. A part
// may have few rows or columns, whatever the whole has.
static inline int64_t cpu_panels_scratch(int64_t m, int64_t n, int64_t k)
{
    int64_t rows = m < CPU_PANELS_ROWS ? m : CPU_PANELS_ROWS;
    int64_t columns = n < CPU_PANELS_COLUMNS ? n : CPU_PANELS_COLUMNS;
    int64_t inner = k < CPU_PANELS_INNER ? k : CPU_PANELS_INNER;
    int64_t few = CPU_PANELS_FEW * CPU_PANELS_FEW_PITCH * 4;
    // Whole panels of b, of 32 columns; a with some elements beyond each row or column.
    int64_t bytes = (columns + 31) / 32 * 32 * inner * 4 +
                    ((rows + 13 + 32) * (inner + 32) * 4 + 63) / 64 * 64;
    int64_t pairs = k < CPU_PANELS_AMX_INNER ? (k + 31) / 32 * 32 : CPU_PANELS_AMX_INNER;
    int64_t tiles = ((rows + 31) / 32 + (columns + 31) / 32) * 32 * pairs * 2;
    bytes = bytes > tiles ? bytes : tiles;
    return bytes > few ? bytes : few;
}

// Bytes of a copied b.
static inline int64_t cpu_panels_packed(int32_t dtype, int64_t n, int64_t k)
{
    const int64_t columns =
        (n + CPU_PANELS_WIDTH - 1) / CPU_PANELS_WIDTH * CPU_PANELS_WIDTH;
    return columns * ((k + 31) / 32 * 32) * (dtype == TN_F64 ? 8 : 4);
}

// One variant of these products.
struct cpu_panels_variant {
    const char *name;
    uint32_t needs; // CPU_HAS_..., instruction sets
    cpu_panels_fn *multiply;
    cpu_pack_panels_fn *pack;
    bool flushes; // takes subnormal numbers of BF16 for zeros
};

#endif // KERNELS_CPU_PANELS_H

// SPDX-License-Identifier: MIT
// Products of matrices of floats, blocked for the caches.
#ifndef KERNELS_CPU_PANELS_H
#define KERNELS_CPU_PANELS_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/types.h>

// A product, c = a b: a is m by k, b is k by n, of `dtype` (F32, F16, BF16, F64, COMPLEX64
// or COMPLEX128). c and the sums are of F32 for halves, else of `dtype`. Strides of a and b
// are in elements and may be 0 or negative; the columns of c are adjacent. c overlaps
// neither a nor b. m, n and k may be 0.
//
// Callers may rely on this: every element of c is written, none is read and nothing else is
// written; nothing but the operands' elements is read; an element of c depends on its row
// of a and column of b alone, so that threads may compute ranges of c, each with
// cpu_panels_scratch() bytes of its own. The order of sums, and so their last bits, may
// depend on extents and strides.
struct cpu_panels {
    const void *a, *b;
    void *c;
    void *scratch; // cpu_panels_scratch() bytes, aligned to 64; not cleared
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column, c_row;
    int32_t dtype;
    // A copy of a whole b of `packed_columns` columns by cpu_pack_panels_fn, for several
    // products with ranges of its columns, and the number of this product's first column, a
    // multiple of CPU_PANELS_WIDTH. NULL: not copied. Extents and dtype are set anyway.
    const void *packed;
    int64_t packed_first, packed_columns;
};
typedef void cpu_panels_fn(const struct cpu_panels *p);

// Copies columns [first, end) of b to their position in `to`, which has cpu_panels_packed()
// bytes, aligned to 64. `first` is a multiple of CPU_PANELS_WIDTH, `end` too unless it is
// n. p describes the whole b, with any m. Several threads may copy ranges of one b.
typedef void cpu_pack_panels_fn(const struct cpu_panels *p, int64_t first, int64_t end,
                                void *to);
#define CPU_PANELS_WIDTH 32

// Rows, columns and inner elements of a block. A block of a stays in the second-level
// cache, a block of b in the last-level cache. COLUMNS_BESIDE: columns if there is one
// block of a, so that b's block fits beside it. THIN_INNER: inner elements if b is not
// copied.
#define CPU_PANELS_ROWS 336
#define CPU_PANELS_COLUMNS 2048
#define CPU_PANELS_COLUMNS_BESIDE 256
#define CPU_PANELS_INNER 384
#define CPU_PANELS_THIN_INNER 128

// Products with few rows: most rows of one operand for which the elements of the other are
// read once, without panels; inner elements of these rows that are widened at a time; and
// elements from one widened row to the next, no power of two.
#define CPU_PANELS_FEW 8
#define CPU_PANELS_FEW_INNER 2048
#define CPU_PANELS_FEW_PITCH (CPU_PANELS_FEW_INNER + 16)

// Rows and inner elements of a block in products of BF16 on AMX: multiples of 32.
#define CPU_PANELS_AMX_ROWS 320
#define CPU_PANELS_AMX_INNER 512

// Bytes of scratch memory that a product of these extents, or of any range of its rows and
// columns, needs in any variant. F64 needs twice as many; complex numbers need as many as
// F32 or F64 with extents 2 m and 2 n.
static inline int64_t cpu_panels_scratch(int64_t m, int64_t n, int64_t k)
{
    int64_t rows = m < CPU_PANELS_ROWS ? m : CPU_PANELS_ROWS;
    int64_t columns = n < CPU_PANELS_COLUMNS ? n : CPU_PANELS_COLUMNS;
    int64_t inner = k < CPU_PANELS_INNER ? k : CPU_PANELS_INNER;
    int64_t few = CPU_PANELS_FEW * CPU_PANELS_FEW_PITCH * 4;
    // Whole panels of b, of 32 columns; a with a pitch of some elements more than its rows
    // or columns have.
    int64_t bytes = (columns + 31) / 32 * 32 * inner * 4 +
                    ((rows + 13 + 32) * (inner + 32) * 4 + 63) / 64 * 64;
    int64_t pairs = k < CPU_PANELS_AMX_INNER ? (k + 31) / 32 * 32 : CPU_PANELS_AMX_INNER;
    int64_t tiles = ((rows + 31) / 32 + (columns + 31) / 32) * 32 * pairs * 2;
    bytes = bytes > tiles ? bytes : tiles;
    return bytes > few ? bytes : few;
}

// Bytes of a copy of b by cpu_pack_panels_fn.
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
    bool flushes; // its products of BF16 take subnormal numbers for zeros
};

#endif // KERNELS_CPU_PANELS_H

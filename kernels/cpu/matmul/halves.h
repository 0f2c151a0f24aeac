// SPDX-License-Identifier: MIT
// Products of F32 with halves on the tiles of AMX, which multiply BF16: an element of x is
// the sum of three numbers of BF16 (pieces), and an F16 the sum of two, so that nothing is
// rounded but sums in F32. AMX takes subnormal numbers for zeros.
#ifndef KERNELS_CPU_HALVES_H
#define KERNELS_CPU_HALVES_H

#include <stdint.h>
#include <tenon/types.h>

#define CPU_HALVES_ROWS 32     // rows of x that are multiplied at a time; rows of w too
#define CPU_HALVES_COLUMNS 256 // most rows of w in a product
#define CPU_HALVES_TERMS 32    // terms of a step
#define CPU_HALVES_STEPS 6     // steps, after which sums are stored to memory
#define CPU_HALVES_X_PIECES 3

// out = x w': x is `rows` by k, and w is `columns` by k, of F16 or BF16.
struct cpu_halves {
    const float *x;
    void *pieces; // of x: cpu_halves_pieces() bytes, aligned to 64
    const uint16_t *w;
    float *out;
    void *scratch; // cpu_halves_scratch() bytes, aligned to 64; not cleared
    int64_t rows, columns, k;
    int64_t out_row; // elements between rows of out
    tn_dtype dtype;  // of w
};

static inline int64_t cpu_halves_groups(int64_t rows)
{
    return (rows + CPU_HALVES_ROWS - 1) / CPU_HALVES_ROWS;
}

static inline int64_t cpu_halves_pieces(int64_t rows, int64_t k)
{
    return cpu_halves_groups(rows) * CPU_HALVES_ROWS * CPU_HALVES_X_PIECES *
           ((k + CPU_HALVES_TERMS - 1) / CPU_HALVES_TERMS * CPU_HALVES_TERMS) * 2;
}

// Bytes of scratch memory: the sums, and the pieces of some steps of w.
static inline int64_t cpu_halves_scratch(int64_t rows)
{
    return CPU_HALVES_COLUMNS * cpu_halves_groups(rows) * CPU_HALVES_ROWS * 4 +
           CPU_HALVES_COLUMNS * CPU_HALVES_STEPS * CPU_HALVES_TERMS * 2 * 2;
}

struct cpu_halves_kernels {
    // Makes the pieces of groups [first, end) of CPU_HALVES_ROWS rows of x.
    void (*split)(const struct cpu_halves *p, int64_t first, int64_t end);
    // Computes the product, which has at most CPU_HALVES_COLUMNS columns.
    void (*multiply)(const struct cpu_halves *p);
};
extern const struct cpu_halves_kernels cpu_halves_amx; // in builds with AMX alone

#endif // KERNELS_CPU_HALVES_H

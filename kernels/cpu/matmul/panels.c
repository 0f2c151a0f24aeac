// SPDX-License-Identifier: MIT
// Products of matrices of floats, whose sums are of f32: tile.inc.h and panels.inc.h say
// how. Half floats are widened where they are copied. Compiled with contraction, as every
// product and sum is to round once where the processor can.
#include "elements.h"
#include "variants.h"

#define T float
#include "tile.inc.h"

// Rows, and bytes of b, up to which b is read where it lies; columns up to which a is,
// however its rows lie.
#define DIRECT_ROWS 112
#define DIRECT_BYTES 65536
#define DIRECT_COLUMNS 64
#include "panels.inc.h"

#define SIDE 8
typedef v8f square;
typedef v8f_loose square_loose;
#define side_f32 eight_f32
#define side_bf16 eight_bf16
#define side_f16 eight_f16

// --- copies ----------------------------------------------------------------------------

#define PAIR(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
// Element i of x[j] becomes element j of x[i].
INLINE void transpose(v8f x[8])
{
    v8f t[8], u[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = PAIR(x[2 * i], x[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[2 * i + 1] = PAIR(x[2 * i], x[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            v8f low = t[4 * h + i], high = t[4 * h + i + 2];
            u[4 * h + 2 * i] = PAIR(low, high, 0, 1, 8, 9, 4, 5, 12, 13);
            u[4 * h + 2 * i + 1] = PAIR(low, high, 2, 3, 10, 11, 6, 7, 14, 15);
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        x[i] = PAIR(u[i], u[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        x[i + 4] = PAIR(u[i], u[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#undef PAIR

#include "copies.inc.h"
PACK(f32, 4)
PACK(bf16, 2)
PACK(f16, 2)

static const struct panel_packing packings[TN_NUM_DTYPES] = {
    [TN_F32] = {rows_f32, columns_f32, 4},
    [TN_BF16] = {rows_bf16, columns_bf16, 2},
    [TN_F16] = {rows_f16, columns_f16, 2},
};

// Whether the other operand of few rows, or columns, is large enough to be read in a way of
// its own: tiles read it from a cache faster.
static bool is_few(const struct cpu_panels *p)
{
    const int64_t few = p->m < p->n ? p->m : p->n, most = p->m < p->n ? p->n : p->m;
    return p->dtype != TN_F32 || most * p->k > (few > 4 ? 1 << 18 : 1 << 13);
}

#define COLUMNS_OF_PARTS columns_f32
#include "complex.inc.h"

void V(cpu_panels)(const struct cpu_panels *p)
{
    if (p->dtype == TN_F64 || p->dtype == TN_COMPLEX128)
        V(cpu_panels_f64)(p);
    else if (p->dtype == TN_COMPLEX64)
        multiply_complex(p);
    else if (p->packed || !is_few(p) || !V(cpu_panels_few)(p))
        multiply_or_clear(p);
}

void V(cpu_pack_panels)(const struct cpu_panels *p, int64_t first, int64_t end, void *to)
{
    if (p->dtype == TN_F64)
        V(cpu_pack_panels_f64)(p, first, end, to);
    else
        pack_b(p, first, end, to);
}

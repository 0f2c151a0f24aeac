// SPDX-License-Identifier: MIT
// Products of matrices of floats, whose sums are of f32: tile.inc.h and panels.inc.h say
// how. Half floats are widened where they are copied. Compiled with contraction, as every
// product and sum is to round once where the processor can.
#include "elements.h"
#include "variants.h"
#include "cpu/squares.h"

#define T float
#include "tile.inc.h"

// Most rows of c, or bytes of b, for which b is not copied; most columns for which a is not
// copied, whatever the stride of its rows.
#define DIRECT_ROWS 112
#define DIRECT_BYTES 65536
#define DIRECT_COLUMNS 64
#include "panels.inc.h"

#define SIDE 8
typedef square_row square;
#define transpose square_transpose
#define side_f32 eight_f32
#define side_bf16 eight_bf16
#define side_f16 eight_f16

// --- copies ----------------------------------------------------------------------------

#include "copies.inc.h"
PACK(f32, 4)
PACK(bf16, 2)
PACK(f16, 2)

static const struct panel_packing packings[TN_NUM_DTYPES] = {
    [TN_F32] = {rows_f32, columns_f32, 4},
    [TN_BF16] = {rows_bf16, columns_bf16, 2},
    [TN_F16] = {rows_f16, columns_f16, 2},
};

// Whether the larger operand of a product with few rows, or columns, is large enough for
// panels_few.c: tiles read a small one from a cache faster.
static bool panels_is_few(const struct cpu_panels *p)
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
    else if (p->packed || !panels_is_few(p) || !V(cpu_panels_few)(p))
        multiply_or_clear(p);
}

void V(cpu_pack_panels)(const struct cpu_panels *p, int64_t first, int64_t end, void *to)
{
    if (p->dtype == TN_F64)
        V(cpu_pack_panels_f64)(p, first, end, to);
    else
        pack_b(p, first, end, to);
}

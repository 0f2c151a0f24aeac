// SPDX-License-Identifier: MIT
// Products of matrices of F64, whose sums are of F64: tile.inc.h and panels.inc.h say how.
// Compiled with contraction, as every product and sum is to round once where the processor
// can.
#include "variants.h"

#define T double
#if defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
#define INLINE static inline __attribute__((always_inline))
typedef double vector __attribute__((vector_size(8 * LANES)));
typedef double loose __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
#include "tile.inc.h"

// As in panels.c.
#define DIRECT_ROWS 112
#define DIRECT_BYTES 65536
#define DIRECT_COLUMNS 32
#include "panels.inc.h"

#define SIDE 4
typedef double square __attribute__((vector_size(32)));
typedef double square_loose __attribute__((vector_size(32), aligned(8), may_alias));

#define PAIR(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
// Element i of x[j] becomes element j of x[i].
INLINE void transpose(square x[4])
{
    const square a = PAIR(x[0], x[1], 0, 4, 2, 6), b = PAIR(x[0], x[1], 1, 5, 3, 7);
    const square c = PAIR(x[2], x[3], 0, 4, 2, 6), d = PAIR(x[2], x[3], 1, 5, 3, 7);
    x[0] = PAIR(a, c, 0, 1, 4, 5);
    x[1] = PAIR(b, d, 0, 1, 4, 5);
    x[2] = PAIR(a, c, 2, 3, 6, 7);
    x[3] = PAIR(b, d, 2, 3, 6, 7);
}
#undef PAIR

INLINE double one_f64(const char *p)
{
    double x;
    memcpy(&x, p, sizeof(x));
    return x;
}

INLINE square side_f64(const char *p)
{
    return *(const square_loose *)(const void *)p;
}

INLINE vector many_f64(const char *p)
{
    return *(const loose *)(const void *)p;
}

#include "copies.inc.h"
PACK(f64, 8)

static const struct panel_packing packings[TN_NUM_DTYPES] = {
    [TN_F64] = {rows_f64, columns_f64, 8},
};

#define COLUMNS_OF_PARTS columns_f64
#include "complex.inc.h"

void V(cpu_panels_f64)(const struct cpu_panels *p)
{
    if (p->dtype == TN_COMPLEX128)
        multiply_complex(p);
    else
        multiply_or_clear(p);
}

void V(cpu_pack_panels_f64)(const struct cpu_panels *p, int64_t first, int64_t end,
                            void *to)
{
    pack_b(p, first, end, to);
}

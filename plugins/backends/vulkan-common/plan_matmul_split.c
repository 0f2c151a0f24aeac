// SPDX-License-Identifier: MIT
// Products of few tiles and many terms: sums of a part of the terms each, as if these were
// products of a batch, and then one of the parts.
#include "plan_matmul.h"

#include <tenon/checked.h>

#define TILE 32          // rows and columns of the smallest tile that is read by vectors
#define FEW_TILES 128    // with so many a large device has work for most of its processors
#define ENOUGH_TILES 512 // and with so many for all
#define LEAST_TILES 16   // fewer have kernels with smaller tiles
#define LEAST_TERMS 128  // of a part; a multiple of the terms of a slice
#define MOST_PARTS 8

uint32_t product_parts(const tn_layout *a, const struct product *p)
{
    uint64_t tiles = ceil_div(p->rows, TILE) * ceil_div(p->columns, TILE), parts = 1;
    if (a->dtype != TN_F32 || p->num_axes > 0 || p->batches != 1 || tiles < LEAST_TILES ||
        tiles >= FEW_TILES)
        return 1;
    while (parts < MOST_PARTS && tiles * parts < ENOUGH_TILES &&
           p->terms % (2 * parts * LEAST_TERMS) == 0)
        parts *= 2;
    return (uint32_t)parts;
}

void product_split(struct product *p, uint32_t parts)
{
    uint32_t terms = (uint32_t)(p->terms / parts);
    p->terms = terms;
    p->batches = parts;
    p->num_axes = 1;
    p->extent[0] = parts;
    p->a_stride[0] = terms * p->a.column;
    p->b_stride[0] = terms * p->b.row;
}

// Bytes of the sums.
uint64_t product_parts_size(const struct product *p, uint32_t parts)
{
    uint64_t elements = tn_saturated_multiply(p->rows, p->columns);
    return parts == 1 ? 0 : tn_saturated_multiply(elements, parts * sizeof(float));
}

uint64_t vk_matmul_scratch(const tn_kernel_query *query)
{
    const struct product p = product_describe(&query->inputs[0], &query->inputs[1]);
    return product_parts_size(&p, product_parts(&query->inputs[0], &p));
}

// SPDX-License-Identifier: MIT
// Products of few tiles and many terms: workgroups compute sums of a split of the terms
// each, as if these were products of a batch, and a second launch adds the splits.
#include "plan_matmul.h"

#include <stdio.h>
#include <tenon/checked.h>

#define LEAST_TERMS 128 // of a split; a multiple of the terms of a slice
#define MOST_SPLITS 8
#define LEAST_BLOCKS 256 // of 8 rows and columns: fewer have a kernel with such tiles

// Tiles of so many rows and columns. Fewer than `few` get as many splits as make `enough`
// workgroups for a large device; up to `many` gain by splits where terms are many. On an
// H200, of f32: 64x1024x1024 takes 12 us, 22 before; 16x4096x4096 60, 98 before, and 120 in
// 4 splits; 128x4096x4096 135, 169 before. Of f16: 64x1024x1024 9, 15 before; 64x4096x4096
// 23, 47 before; 128x4096x4096 41, 48 before; but 512x512x512 11 in 2 splits, 9.5 in one.
struct tiles {
    uint32_t tile, few, enough, many, many_terms, splits_of_many;
};
static const struct tiles of_f32 = {32, 128, 512, 1024, 4096, 2},
                          of_halves = {64, 64, 256, 256, 1024, 4};

// Products of many terms and much work get the largest tile that they fill, and so many
// splits that nearly all workgroups which a large device runs at once have work, once or
// several times: gradients of weights. On an H200, of f32, in powers of 2 that were at
// least 256 workgroups: 384x16384x384 takes 136 us, 384x16384x1536 503; before, in tiles of
// 128x128, 195 and 660.
#define LONG_TERMS 4096
#define LONG_WORK (UINT64_C(1) << 29)
#define LONG_SPLITS 32
#define LONG_SPLIT 512 // terms
#define LONG_STEP 16   // terms of splits are multiples
#define WELL_FILLED 95 // percent of the workgroups that run at once

// Tiles for at least so many rows, and workgroups with them that run at once on a device of
// 132 processors.
struct long_tile {
    uint32_t rows, columns, resident;
};
static const struct long_tile long_f32 = {64, 128, 528}, long_few = {32, 64, 264},
                              long_halves = {128, 128, 264};

// Terms of each split but the last one, which may have fewer.
static uint64_t split_terms(uint64_t terms, uint64_t splits)
{
    return terms % splits == 0 ? terms / splits
                               : ceil_div(ceil_div(terms, splits), LONG_STEP) * LONG_STEP;
}

static uint64_t count_long_splits(const struct product *p, bool is_half)
{
    const struct long_tile *t = is_half        ? &long_halves
                                : p->rows < 64 ? &long_few
                                               : &long_f32;
    uint64_t tiles = ceil_div(p->rows, t->rows) * ceil_div(p->columns, t->columns),
             best = 1;
    uint64_t most_filled = 0;
    if (p->terms < LONG_TERMS || p->rows < t->rows || p->columns < t->columns ||
        2 * tiles > t->resident ||
        tn_saturated_multiply(p->rows * p->columns, p->terms) < LONG_WORK)
        return 1;
    for (uint64_t splits = 2; splits <= LONG_SPLITS && splits * LONG_SPLIT <= p->terms;
         splits++) {
        uint64_t rounds = ceil_div(tiles * splits, t->resident);
        uint64_t filled = 100 * tiles * splits / (rounds * t->resident);
        bool has_last = split_terms(p->terms, splits) * (splits - 1) < p->terms;
        if (filled > most_filled && most_filled < WELL_FILLED && has_last) {
            most_filled = filled;
            best = splits;
        }
    }
    return best;
}

// Halves have one such tile.
static bool fills_long_tile(const struct product *p)
{
    return p->rows >= long_halves.rows && p->columns >= long_halves.columns;
}

// The splits, by shapes alone, as scratch memory is sized before a device is known; 1: the
// whole. `a`: the left operand.
static uint32_t matmul_split_plan_count_splits(const tn_layout *a, const struct product *p)
{
    bool is_half = a->dtype == TN_F16 || a->dtype == TN_BF16;
    const struct tiles *t = is_half ? &of_halves : &of_f32;
    uint64_t tiles = ceil_div(p->rows, t->tile) * ceil_div(p->columns, t->tile), splits = 1;
    // Halves are stored as whole matrices.
    bool fits = is_half ? p->rows % 16 == 0 && p->columns % 16 == 0
                        : a->dtype == TN_F32 &&
                              ceil_div(p->rows, 8) * ceil_div(p->columns, 8) > LEAST_BLOCKS;
    if (!fits || p->num_axes > 0 || p->batches != 1 || p->rows <= PRODUCT_FEW_ROWS)
        return 1; // few rows: workgroups have strips of columns
    uint64_t long_splits =
        is_half && !fills_long_tile(p) ? 1 : count_long_splits(p, is_half);
    if (long_splits > 1)
        return (uint32_t)long_splits;
    uint64_t most = tiles < t->few                                 ? MOST_SPLITS
                    : tiles < t->many && p->terms >= t->many_terms ? t->splits_of_many
                                                                   : 1;
    while (splits < most && (tiles >= t->few || tiles * splits < t->enough) &&
           p->terms % (2 * splits * LEAST_TERMS) == 0)
        splits *= 2;
    return (uint32_t)splits;
}

// Makes a batch of splits of as many terms; if the last one has fewer, their number stands
// behind the extents.
static void matmul_plan_split(struct product *p, uint32_t splits)
{
    uint32_t terms = (uint32_t)split_terms(p->terms, splits);
    if (p->terms % splits != 0)
        p->extent[MAX_BATCH_AXES - 1] =
            (uint32_t)(p->terms - (uint64_t)(splits - 1) * terms);
    p->terms = terms;
    p->batches = splits;
    p->num_axes = 1;
    p->extent[0] = splits;
    p->a_stride[0] = terms * p->a.column;
    p->b_stride[0] = terms * p->b.row;
}

uint32_t product_split(const tn_vulkan_limits *limits, const tn_step *step,
                       struct product *p, struct tiling *tiling)
{
    const tn_layout *a = &tn_step_input(step, 0)->layout;
    struct product split = *p;
    uint32_t splits =
        limits->features & TN_VULKAN_IS_SOFTWARE ? 1 : matmul_split_plan_count_splits(a, p);
    *tiling = product_tiling(limits, step, p);
    if (splits == 1 || tiling->is_whole || (a->dtype != TN_F32 && !tiling->may_split))
        return 1;
    matmul_plan_split(&split, splits);
    if (tiling->may_split) {
        bool is_long = fills_long_tile(p) && count_long_splits(p, true) > 1;
        tiling->rows = tiling->columns = is_long ? long_halves.rows : of_halves.tile;
        snprintf(tiling->name, sizeof(tiling->name), "matmul_matrix_%s_%u_split",
                 dtype_glsl(a->dtype), tiling->rows);
    } else {
        *tiling = product_tiling(limits, step, &split);
        for (; !tiling->takes_rest && p->terms % splits != 0; splits--)
            ;
        if (split.batches != splits) {
            split = *p;
            matmul_plan_split(&split, splits);
            *tiling = product_tiling(limits, step, &split);
        }
    }
    *p = split;
    return splits;
}

uint64_t product_splits_size(const struct product *p, uint32_t splits)
{
    uint64_t elements = tn_saturated_multiply(p->rows, p->columns);
    return splits == 1 ? 0 : tn_saturated_multiply(elements, splits * sizeof(float));
}

uint64_t vk_matmul_scratch(const tn_kernel_query *query)
{
    const struct product p = product_describe(&query->inputs[0], &query->inputs[1]);
    uint64_t few = product_few_scratch(&p, query->inputs[0].dtype);
    uint64_t split =
        product_splits_size(&p, matmul_split_plan_count_splits(&query->inputs[0], &p));
    return few > split ? few : split;
}

// SPDX-License-Identifier: MIT
// Products of many rows of f32 with weights of f16 or bf16 on cooperative matrices: first a
// launch turns each element of x into two floats of 16 bits; both are multiplied by the
// weights as they are.
#include "plan_halves.h"

#include <stdio.h>
#include <tenon/checked.h>
#include "../record.h"
#include "../reduce/plan_reduce.h"

#define PART 8             // halves that are read at a time
#define PIECES 2           // floats of 16 bits of an element of x
#define LEAST_MATRIX 32    // columns and terms
#define LEAST_ROWS 17      // fewer are read beside the weights
#define LEAST_WORK 4194304 // multiplications: fewer take the time of a launch either way
#define SLICE 32           // terms; the terms of a split are a multiple of it
#define LEAST_SLICES 8     // of a split
#define MOST_SPLITS 8
#define ALIGNMENT 256       // of scratch memory
#define MATRIX_GROUP 256    // invocations of a workgroup, at most
#define MATRIX_SHARED 40960 // bytes of its shared memory, at most

// An H100: workgroups of a tile that it runs at once, and the nanoseconds that these take
// for a slice; those of a launch that adds splits, and bytes that it moves in one.
#define ADDING 8000
#define ADDED_BYTES 1300
static const struct halves_tile {
    const char *name;
    uint32_t rows, columns, at_once, time;
} halves_tiles[] = {
    {"128x256", 128, 256, 132, 1790},
    {"64x128", 64, 128, 264, 1160},
};
#define TILES (sizeof(halves_tiles) / sizeof(halves_tiles[0]))

// How a product is divided: tiles, and splits of the terms that are computed beside each
// other and added in the end.
struct halves_division {
    const struct halves_tile *tile;
    uint64_t tiles;
    uint32_t splits;
};

static uint64_t slices_of_split(const struct product *p, uint32_t splits)
{
    return ceil_div(ceil_div(p->terms, SLICE), splits);
}

static double division_time(const struct product *p, const struct halves_division *d)
{
    uint64_t rounds = ceil_div(d->tiles * d->splits, d->tile->at_once);
    double time = (double)(rounds * slices_of_split(p, d->splits)) * d->tile->time;
    double moved = (double)(p->rows * p->columns * sizeof(float)) * (2 * d->splits + 1);
    return time + (d->splits > 1 ? ADDING + moved / ADDED_BYTES : 0);
}

// The fastest division.
static struct halves_division halves_divide(const struct product *p)
{
    struct halves_division best = {0};
    for (size_t i = 0; i < TILES; i++) {
        const struct halves_tile *tile = &halves_tiles[i];
        struct halves_division d = {
            tile, ceil_div(p->rows, tile->rows) * ceil_div(p->columns, tile->columns), 1};
        for (; d.splits == 1 ||
               (d.splits <= MOST_SPLITS && slices_of_split(p, d.splits) >= LEAST_SLICES);
             d.splits *= 2)
            if (!best.tile || division_time(p, &d) < division_time(p, &best))
                best = d;
    }
    return best;
}

// Whether cooperative matrices have work, and read the weights as they lie in memory.
static bool halves_fit(const tn_layout *w, const struct product *p)
{
    return p->rows >= LEAST_ROWS && p->columns >= LEAST_MATRIX &&
           p->terms >= LEAST_MATRIX &&
           tn_saturated_multiply(p->rows * p->columns, p->terms) >= LEAST_WORK &&
           ((uint64_t)w->offset | p->terms) % PART == 0;
}

// Scratch memory: sums of splits, and x with the scales of its rows.
struct halves_offsets {
    uint64_t x, end;
};

static struct halves_offsets halves_at(const struct product *p)
{
    uint32_t splits = halves_divide(p).splits;
    uint64_t sums = splits > 1 ? p->rows * p->columns * splits * sizeof(float) : 0;
    struct halves_offsets at = {.x = ceil_div(sums, ALIGNMENT) * ALIGNMENT};
    at.end = at.x + p->rows * p->terms * PIECES * sizeof(uint16_t) +
             ceil_div(p->rows, 4) * 4 * sizeof(float);
    return at;
}

uint64_t halves_matrix_scratch(const tn_layout *w, const struct product *p)
{
    return halves_fit(w, p) ? halves_at(p).end : 0;
}

bool halves_takes_matrices(const tn_vulkan_limits *limits, const tn_layout *w,
                           const struct product *p)
{
    uint32_t needed =
        w->dtype == TN_F16 ? TN_VULKAN_HAS_F16_MATRICES : TN_VULKAN_HAS_BF16_MATRICES;
    return halves_fit(w, p) && limits->features & needed && limits->subgroup_size == 32 &&
           limits->max_invocations >= MATRIX_GROUP && limits->max_shared >= MATRIX_SHARED &&
           halves_divide(p).tiles <= limits->max_groups[0];
}

static tn_vulkan_operand halves_scratch_x(const struct product *p, uint16_t access)
{
    struct halves_offsets at = halves_at(p);
    return tn_vulkan_scratch(at.x, at.end - at.x, access);
}

static tn_status halves_launch_x(const tn_vulkan_plan *plan, const struct product *p)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "quant_halves_x_%s",
             dtype_glsl(tn_step_input(plan->step, 1)->layout.dtype));
    struct kernel_launch launch = {.name = name, .groups = p->rows};
    kernel_spec(&launch, x->offset % 4 == 0);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, halves_scratch_x(p, TN_VULKAN_WRITES));
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_push(&launch, p->rows);
    kernel_push(&launch, p->terms / PART);
    kernel_push(&launch, (uint64_t)x->offset);
    kernel_push(&launch, p->rows * p->terms * PIECES / PART);
    return kernel_launch(plan, &launch);
}

static tn_status halves_launch(const tn_vulkan_plan *plan, const struct product *p)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *w = &tn_step_input(plan->step, 1)->layout;
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    struct halves_division d = halves_divide(p);
    uint32_t splits = d.splits;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "quant_halves_matrix_%s_%s", dtype_glsl(w->dtype),
             d.tile->name);
    struct kernel_launch launch = {
        .name = name, .fixed_grid = true, .grid = {(uint32_t)d.tiles, 1, splits}};
    kernel_bind(&launch, halves_scratch_x(p, TN_VULKAN_READS));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, splits > 1 ? tn_vulkan_scratch(0, halves_at(p).x, TN_VULKAN_WRITES)
                                    : tn_vulkan_output(0));
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_push(&launch, p->rows);
    kernel_push(&launch, p->columns);
    kernel_push(&launch, p->terms);
    kernel_push(&launch, slices_of_split(p, splits) * SLICE);
    kernel_push(&launch, (uint64_t)x->offset);
    kernel_push(&launch, (uint64_t)w->offset / PART);
    kernel_push(&launch, splits > 1 ? 0 : (uint64_t)out->offset);
    kernel_push(&launch, p->rows * p->terms * PIECES / PART);
    tn_status status = kernel_launch(plan, &launch);
    return status == TN_OK && splits > 1
               ? vk_plan_sum_splits(plan, p->rows * p->columns, splits)
               : status;
}

tn_status halves_plan_matrices(const tn_vulkan_plan *plan, const struct product *p)
{
    tn_status status = halves_launch_x(plan, p);
    return status == TN_OK ? halves_launch(plan, p) : status;
}

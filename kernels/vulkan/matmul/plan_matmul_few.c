// SPDX-License-Identifier: MIT
// Products of which one operand, x, has a few rows (on the left) or columns (on the right),
// and the other, w, is large: their time is that of reading w once. With x on the right the
// product is that of the operands transposed and exchanged, and so is the result.
#include "plan_matmul.h"

#include <stdio.h>
#include <tenon/checked.h>

#define LEAST_BYTES (1 << 20)         // of w: smaller ones are a matter of launches
#define LEAST_BYTES_OF_MORE (1 << 22) // with more rows than a vector has
#define MOST_FEW 16
#define LEAST_TERMS 256
#define LEAST_COLUMNS 64
#define LINE_BYTES 16 // that are read at a time

// matmul_lines.comp
#define GROUP 256
#define EACH 4             // columns of an invocation, along the terms
#define LOADS 8            // lines of w of a round
#define SPACE 4096         // elements of x in shared memory
#define LINES_SHARED 16384 // bytes
#define MOST_AT_ONCE 8     // rows
#define ENOUGH_GROUPS 128

// matmul_strip.comp
#define STRIP_GROUP 128
#define STRIP_COLUMNS 64
#define STRIP_DEPTH 128
#define STRIP_ROWS 16
#define STRIP_SHARED 22784 // bytes
#define LEAST_STRIP 5      // rows: fewer have lines
#define MOST_SPLITS 16
#define ENOUGH_STRIPS 256
#define COUNTER_PITCH 32

static uint32_t per_line(tn_dtype dtype)
{
    return LINE_BYTES / dtype_bytes(dtype);
}

// Turns the product where its columns are the few.
static void few_transpose(const struct product *p, struct product_few *few)
{
    few->is_transposed = p->columns < p->rows;
    if (few->is_transposed) {
        few->rows = p->columns;
        few->columns = p->rows;
        few->x_row = p->b.column;
        few->x_k = p->b.row;
        few->w_k = p->a.column;
        few->w_column = p->a.row;
    } else {
        few->rows = p->rows;
        few->columns = p->columns;
        few->x_row = p->a.row;
        few->x_k = p->a.column;
        few->w_k = p->b.row;
        few->w_column = p->b.column;
    }
    few->terms = p->terms;
    few->w_along_k = few->w_k == 1 && few->w_column != 1;
}

// Whether w is read by lines.
static bool is_in_lines(const struct product_few *few, const tn_layout *w)
{
    uint32_t per = per_line(w->dtype);
    uint64_t along = few->w_along_k ? few->terms : few->columns;
    uint32_t across = few->w_along_k ? few->w_column : few->w_k;
    return (few->w_along_k || few->w_column == 1) &&
           ((uint64_t)w->offset | across | along) % per == 0;
}

static bool has_strips(const tn_vulkan_limits *limits, const struct product_few *few,
                       tn_dtype dtype)
{
    uint32_t needed = dtype == TN_F16    ? TN_VULKAN_HAS_F16_MATRICES
                      : dtype == TN_BF16 ? TN_VULKAN_HAS_BF16_MATRICES
                                         : 0;
    return needed && (limits->features & needed) && limits->subgroup_size == 32 &&
           limits->max_shared >= STRIP_SHARED && limits->max_invocations >= STRIP_GROUP &&
           few->rows >= LEAST_STRIP;
}

// The splits of the terms of a strip, as many as give a large device work. By extents
// alone.
static uint32_t strip_count_splits(const struct product_few *few, uint64_t *out_terms)
{
    uint64_t tiles = ceil_div(few->columns, STRIP_COLUMNS);
    uint64_t slices = ceil_div(few->terms, STRIP_DEPTH), splits = 1;
    while (splits < MOST_SPLITS && tiles * splits < ENOUGH_STRIPS && splits * 4 <= slices)
        splits *= 2;
    *out_terms = ceil_div(slices, splits) * STRIP_DEPTH;
    return (uint32_t)ceil_div(few->terms, *out_terms);
}

// The rows of a workgroup of lines, and the invocations that share an output.
static void choose_lines(struct product_few *few, tn_dtype dtype)
{
    uint32_t at_once = 1, lanes = 32, per = per_line(dtype);
    while (at_once < few->rows && at_once < MOST_AT_ONCE)
        at_once *= 2;
    uint32_t of_lane = few->w_along_k ? LOADS / EACH * per : LOADS; // terms of a round
    uint32_t width = few->w_along_k ? EACH : per;
    // Along the columns narrower strips read memory in pieces of less than 128 bytes.
    while (few->w_along_k && lanes < GROUP && 2 * lanes * of_lane <= SPACE / at_once &&
           2 * lanes * of_lane <= few->terms &&
           ceil_div(few->columns, GROUP / lanes * width) < ENOUGH_GROUPS)
        lanes *= 2;
    few->tile_rows = at_once;
    few->tile_columns = GROUP / lanes * width;
    few->lanes = lanes;
    few->splits = 1;
    snprintf(few->name, sizeof(few->name), "matmul_lines_%s_%u", dtype_glsl(dtype),
             at_once);
}

static void choose_strip(struct product_few *few, tn_dtype dtype)
{
    few->tile_rows = STRIP_ROWS;
    few->tile_columns = STRIP_COLUMNS;
    few->splits = strip_count_splits(few, &few->split_terms);
    snprintf(few->name, sizeof(few->name), "matmul_strip_%s", dtype_glsl(dtype));
}

// Whether reading w is the time of the product. By extents alone.
static bool few_is_large(const struct product_few *few, tn_dtype dtype)
{
    bool is_float = dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16;
    uint64_t least = few->rows > 4 ? LEAST_BYTES_OF_MORE : LEAST_BYTES;
    return is_float && few->terms >= LEAST_TERMS && few->columns >= LEAST_COLUMNS &&
           tn_saturated_multiply(few->terms, few->columns) >= least / dtype_bytes(dtype);
}

bool product_few(const tn_vulkan_limits *limits, const tn_step *step,
                 const struct product *p, struct product_few *out)
{
    struct product_few few = {0};
    few_transpose(p, &few);
    const tn_layout *w = &tn_step_input(step, few.is_transposed ? 0 : 1)->layout;
    if (p->batches != 1 || !few_is_large(&few, w->dtype))
        return false;
    if (few.rows > MOST_FEW || !is_in_lines(&few, w))
        return false;
    few.is_strip = has_strips(limits, &few, w->dtype);
    if (few.is_strip)
        choose_strip(&few, w->dtype);
    else if (limits->max_invocations >= GROUP && limits->max_shared >= LINES_SHARED)
        choose_lines(&few, w->dtype);
    else
        return false;
    *out = few;
    return true;
}

static uint64_t strip_splits_size(const struct product_few *few)
{
    uint64_t tiles = ceil_div(few->columns, STRIP_COLUMNS);
    uint64_t elements = tiles * few->splits * STRIP_ROWS * STRIP_COLUMNS;
    return few->splits == 1 ? 0 : elements * sizeof(float);
}

uint64_t product_few_scratch(const struct product *p, tn_dtype dtype)
{
    struct product_few few = {0};
    uint64_t terms;
    few_transpose(p, &few);
    if (few.rows > MOST_FEW || few.rows < LEAST_STRIP || p->batches != 1 ||
        dtype == TN_F32 || !few_is_large(&few, dtype))
        return 0;
    few.splits = strip_count_splits(&few, &terms);
    return strip_splits_size(&few);
}

// How matmul_strip.comp reads x: X_BY.
static uint32_t x_by(const struct product_few *few, const tn_layout *x)
{
    uint32_t per = per_line(x->dtype);
    if (few->x_k == 1 && ((uint64_t)x->offset | few->x_row | few->terms) % per == 0)
        return 0;
    return few->x_k == 1 || few->x_row != 1 ? 1 : 2;
}

static void strip_bind_splits(struct kernel_launch *launch, const struct product_few *few,
                              tn_vulkan_operand x)
{
    uint64_t tiles = ceil_div(few->columns, few->tile_columns);
    kernel_bind(launch, x);
    if (few->splits == 1) { // the shader does not read these
        kernel_bind(launch, x);
        kernel_bind(launch, x);
        return;
    }
    kernel_bind(launch, tn_vulkan_scratch(0, strip_splits_size(few),
                                          TN_VULKAN_READS | TN_VULKAN_WRITES));
    kernel_bind(launch, kernel_counters(tiles * COUNTER_PITCH));
}

tn_status product_few_launch(const tn_vulkan_plan *plan, struct product_few *few)
{
    const tn_layout *x = &tn_step_input(plan->step, few->is_transposed ? 1 : 0)->layout;
    const tn_layout *w = &tn_step_input(plan->step, few->is_transposed ? 0 : 1)->layout;
    const tn_vulkan_operand x_operand = tn_vulkan_input(few->is_transposed ? 1 : 0);
    if (few->is_strip && !(plan->flags & KERNEL_PLAN_OWN)) { // there are no counters
        few->splits = 1;
        few->split_terms = ceil_div(few->terms, STRIP_DEPTH) * STRIP_DEPTH;
    }
    struct kernel_launch launch = {.name = few->name};
    launch.groups = ceil_div(few->rows, few->tile_rows) *
                    ceil_div(few->columns, few->tile_columns) * few->splits;
    kernel_spec(&launch, few->w_along_k);
    kernel_spec(&launch, few->is_strip ? x_by(few, x) : few->x_k == 1 || few->x_row != 1);
    if (!few->is_strip)
        kernel_spec(&launch, few->lanes);
    kernel_bind(&launch, x_operand);
    kernel_bind(&launch, tn_vulkan_input(few->is_transposed ? 0 : 1));
    kernel_bind(&launch, tn_vulkan_output(0));
    if (few->is_strip)
        strip_bind_splits(&launch, few, x_operand);
    const uint64_t words[] = {few->rows,
                              few->columns,
                              few->terms,
                              (uint64_t)x->offset,
                              (uint64_t)w->offset,
                              (uint64_t)tn_step_output(plan->step, 0)->layout.offset,
                              few->x_row,
                              few->x_k,
                              few->w_along_k ? few->w_column : few->w_k,
                              few->is_transposed ? 1 : few->columns,
                              few->is_transposed ? few->rows : 1,
                              few->splits,
                              few->split_terms};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) - (few->is_strip ? 0 : 2); i++)
        kernel_push(&launch, words[i]);
    return kernel_launch(plan, &launch);
}

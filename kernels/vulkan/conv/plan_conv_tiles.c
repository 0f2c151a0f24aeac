// SPDX-License-Identifier: MIT
// Convolutions as products of matrices in tiles (conv2d.glsl): of f32 by conv2d_wide.comp,
// of 16-bit floats on cooperative matrices by conv2d_matrix.comp.
#include "plan_conv.h"

#include <stdio.h>
#include <tenon/checked.h>
#include "../matmul/plan_matmul.h"
#include "../reduce/plan_reduce.h"

#define ALIGNMENT 8            // elements of a half that are read at once
#define MOST_STRIDE 4          // of phases
#define MOST_REACH (1 << 24)   // of extents, strides, paddings and dilations
#define MOST_SPLITS 16         // of the terms
#define MOST_WEIGHT_SPLITS 128 // of pixels
#define ENOUGH_TILES 128       // a large device has work for all its processors
#define LONG_TERMS 1024        // so many terms are worth two splits

// The product that a convolution is: rows and terms are those of the largest phase.
struct conv_product {
    uint64_t rows, columns, terms, layers;
    uint32_t phases;
};

// Tiles of conv2d_matrix.comp, largest first; `shared`: bytes of a workgroup of
// MATRIX_GROUP invocations. On an H100 tiles of 128x128, 256x128 and 128x256 were within 3
// % of the first for 256 channels, and 20 to 120 % slower for 64; others were slower
// throughout.
#define MATRIX_GROUP 128
static const struct conv_tile {
    const char *name;
    uint32_t rows, columns, shared;
} matrix_tiles[] = {{"128x64", 128, 64, 27648}, {"64x64", 64, 64, 18432}};
#define SMALLEST_TILE (&matrix_tiles[sizeof(matrix_tiles) / sizeof(matrix_tiles[0]) - 1])

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Most filter elements that a phase of an axis has.
static uint64_t phase_taps(const struct conv_plan *c, int axis)
{
    uint64_t stride = (uint64_t)c->stride[axis];
    return ceil_div((uint64_t)c->kernel[axis],
                    stride / greatest_divisor(stride, (uint64_t)c->dilation[axis]));
}

static struct conv_product conv_product_of(const struct conv_plan *c, enum conv_op op)
{
    uint64_t outputs = (uint64_t)(c->num * c->out_height * c->out_width);
    uint64_t taps = (uint64_t)(c->kernel[0] * c->kernel[1]);
    struct conv_product e = {.layers = (uint64_t)c->groups, .phases = 1};
    if (op == CONV_FORWARD) {
        e.rows = outputs;
        e.columns = (uint64_t)c->out_channels;
        e.terms = taps * (uint64_t)c->channels;
    } else if (op == CONV_WEIGHT) {
        e.rows = (uint64_t)c->out_channels;
        e.columns = taps * (uint64_t)c->channels;
        e.terms = outputs;
    } else {
        e.phases = (uint32_t)(c->stride[0] * c->stride[1]);
        e.rows = (uint64_t)c->num * ceil_div((uint64_t)c->height, (uint64_t)c->stride[0]) *
                 ceil_div((uint64_t)c->width, (uint64_t)c->stride[1]);
        e.columns = (uint64_t)c->channels;
        e.terms = phase_taps(c, 0) * phase_taps(c, 1) * (uint64_t)c->out_channels;
    }
    e.layers *= e.phases;
    return e;
}

static bool tiles_half(tn_dtype dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16;
}

// By shapes alone, as scratch memory is sized before a device is known.
static bool conv_plan_tiles_fit(const struct conv_plan *c, enum conv_op op, tn_dtype dtype)
{
    bool is_small = c->height < MOST_REACH && c->width < MOST_REACH;
    int64_t alignment = tiles_half(dtype) ? ALIGNMENT : WIDE_ALIGNMENT;
    for (int i = 0; i < 2; i++)
        is_small = is_small && c->stride[i] < MOST_REACH && c->pad[i] < MOST_REACH &&
                   c->dilation[i] < MOST_REACH && c->kernel[i] < MOST_REACH &&
                   (op != CONV_INPUT || c->stride[i] <= MOST_STRIDE);
    if ((dtype != TN_F32 && !tiles_half(dtype)) || !is_small ||
        (c->channels | c->out_channels) % alignment != 0)
        return false;
    const struct conv_product e = conv_product_of(c, op);
    uint64_t least = tiles_half(dtype) ? 16 : 32;
    return e.rows >= least && e.columns >= least &&
           e.terms >= (op == CONV_WEIGHT ? 16 : 2 * least);
}

// Few tiles have splits of the terms, so that a large device has work for all its
// processors. On an H100, of f32 3x3 of 64x14x14x256: the filters' gradient takes 449 us
// with 512 tiles, 680 with 128 and 443 with 1,024; the other two 407 in 2 splits where
// tiles of 128 are too few for two a processor, 513 in one, but of 8x56x56x64 101 and 92.
static uint64_t tiles_splits(const struct conv_product *e, enum conv_op op, tn_dtype dtype)
{
    bool is_weight = op == CONV_WEIGHT, is_half = tiles_half(dtype);
    uint64_t tile = is_half || is_weight ? 128 : 32, splits = 1;
    uint64_t enough = is_half ? 128 : 512;
    uint64_t least = is_half || is_weight ? 256 : 128;
    uint64_t most = is_weight ? MOST_WEIGHT_SPLITS : MOST_SPLITS;
    uint64_t n = ceil_div(e->rows, tile) * ceil_div(e->columns, tile) * e->layers;
    uint64_t large = ceil_div(e->rows, 128) * ceil_div(e->columns, 128) * e->layers;
    while (splits < most && n * splits < enough && e->terms >= 2 * splits * least)
        splits *= 2;
    bool is_scarce = large >= ENOUGH_TILES && large < 2 * ENOUGH_TILES;
    return !is_half && splits == 1 && is_scarce && e->terms >= LONG_TERMS ? 2 : splits;
}

// Elements of the result, which each split has.
static uint64_t tiles_result_size(const struct conv_plan *c, enum conv_op op,
                                  const struct conv_product *e)
{
    uint64_t rows = op == CONV_INPUT ? (uint64_t)(c->num * c->height * c->width) : e->rows;
    return tn_saturated_multiply(rows * e->columns, (uint64_t)c->groups);
}

uint64_t conv_tiles_scratch(const struct conv_plan *c, enum conv_op op, tn_dtype dtype)
{
    if (!conv_plan_tiles_fit(c, op, dtype))
        return 0;
    const struct conv_product e = conv_product_of(c, op);
    uint64_t splits = tiles_splits(&e, op, dtype);
    return splits > 1
               ? tn_saturated_multiply(tiles_result_size(c, op, &e), splits * sizeof(float))
               : 0;
}

// --- the kernel ------------------------------------------------------------------------

// The tile on cooperative matrices; NULL: the device runs none.
static const struct conv_tile *conv_matrix_tiles(const tn_vulkan_limits *limits,
                                                 tn_dtype dtype,
                                                 const struct conv_product *e,
                                                 uint64_t splits)
{
    uint32_t needed =
        dtype == TN_F16 ? TN_VULKAN_HAS_F16_MATRICES : TN_VULKAN_HAS_BF16_MATRICES;
    const struct conv_tile *tile = matrix_tiles;
    while (tile < SMALLEST_TILE &&
           (e->rows <= SMALLEST_TILE->rows || ceil_div(e->rows, tile->rows) *
                                                      ceil_div(e->columns, tile->columns) *
                                                      e->layers * splits <
                                                  ENOUGH_TILES))
        tile++;
    bool takes = (limits->features & needed) && limits->subgroup_size == 32 &&
                 limits->max_shared >= tile->shared &&
                 limits->max_invocations >= MATRIX_GROUP;
    return takes ? tile : NULL;
}

// Chooses the variant and its tile; false: the device runs none.
static bool tiles_choose(const tn_vulkan_plan *plan, tn_dtype dtype,
                         const struct conv_product *e, uint64_t splits,
                         char name[VARIANT_NAME], uint32_t tile[2])
{
    bool by_element = splits == 1 && plan->step->num_fused > 0;
    const char *suffix = by_element ? "_by_element" : splits > 1 ? "_split" : "";
    if (tiles_half(dtype)) {
        const struct conv_tile *found = conv_matrix_tiles(plan->limits, dtype, e, splits);
        if (!found)
            return false;
        tile[0] = found->rows;
        tile[1] = found->columns;
        snprintf(name, VARIANT_NAME, "conv2d_matrix_%s_%s%s", dtype_glsl(dtype),
                 found->name, suffix);
        return true;
    }
    const struct product_wide *wide =
        product_wide(plan->limits, e->rows, e->columns, e->layers * splits);
    if (!wide || (by_element && !wide->stores_by_element))
        return false;
    tile[0] = wide->rows;
    tile[1] = wide->columns;
    snprintf(name, VARIANT_NAME, "conv2d_wide_%s%s", wide->name, by_element ? suffix : "");
    return true;
}

// Terms of the longest slice.
static uint64_t whole_terms(tn_dtype dtype)
{
    return tiles_half(dtype) ? 64 : 32;
}

static void tiles_push(struct kernel_launch *launch, const struct conv_plan *c,
                       enum conv_op op, const int64_t offsets[4], uint64_t splits,
                       uint64_t terms, uint64_t whole)
{
    for (int i = 0; i < 4; i++)
        kernel_push(launch, i == 3 && splits > 1 ? 0 : (uint64_t)offsets[i]);
    conv_push(launch, c);
    kernel_push(launch, splits);
    kernel_push(launch, ceil_div(ceil_div(terms, splits), whole) * whole);
    kernel_push_divisor(launch,
                        (uint64_t)(op == CONV_INPUT ? c->out_channels : c->channels));
    kernel_push_divisor(launch, (uint64_t)c->out_width);
    kernel_push_divisor(launch, (uint64_t)c->out_height);
}

tn_status conv_tiles_plan(const tn_vulkan_plan *plan, const struct conv_plan *c,
                          enum conv_op op, const int64_t offsets[4], bool has_bias,
                          bool *out_done)
{
    tn_dtype dtype = tn_step_output(plan->step, 0)->layout.dtype;
    int64_t aligned = offsets[0] | offsets[1] | offsets[3];
    *out_done = false;
    if (!conv_plan_tiles_fit(c, op, dtype) ||
        aligned % (tiles_half(dtype) ? ALIGNMENT : WIDE_ALIGNMENT) != 0 ||
        (!tiles_half(dtype) && offsets[2] % WIDE_ALIGNMENT != 0))
        return TN_OK;
    const struct conv_product e = conv_product_of(c, op);
    bool is_software = plan->limits->features & TN_VULKAN_IS_SOFTWARE;
    uint64_t splits = is_software ? 1 : tiles_splits(&e, op, dtype);
    uint32_t tile[2];
    char name[VARIANT_NAME];
    if (!tiles_choose(plan, dtype, &e, splits, name, tile))
        return TN_OK;
    uint64_t groups = ceil_div(e.rows, tile[0]) * ceil_div(e.columns, tile[1]);
    if (groups > plan->limits->max_groups[0] ||
        e.layers * splits > plan->limits->max_groups[2])
        return TN_OK;
    struct kernel_launch launch = {
        .name = name,
        .fixed_grid = true,
        .grid = {(uint32_t)groups, 1, (uint32_t)(e.layers * splits)},
    };
    int64_t inner = op == CONV_INPUT ? c->out_channels : c->channels;
    kernel_spec(&launch, op);
    kernel_spec(&launch, has_bias);
    kernel_spec(&launch, conv_is_pointwise(c));
    kernel_spec(&launch, (uint64_t)inner % whole_terms(dtype) == 0);
    kernel_spec(&launch, e.phases);
    for (uint32_t i = 0; i < 3; i++)
        kernel_bind(&launch, tn_vulkan_input(i < plan->step->num_inputs ? i : 0));
    uint64_t n = tiles_result_size(c, op, &e);
    kernel_bind(&launch, splits > 1 ? tn_vulkan_scratch(0, n * splits * sizeof(float),
                                                        TN_VULKAN_WRITES)
                                    : tn_vulkan_output(0));
    tiles_push(&launch, c, op, offsets, splits, e.terms, whole_terms(dtype));
    tn_status status = kernel_launch(plan, &launch);
    *out_done = status == TN_OK;
    return status == TN_OK && splits > 1 ? vk_plan_sum_splits(plan, n, (uint32_t)splits)
                                         : status;
}

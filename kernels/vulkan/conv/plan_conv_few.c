// SPDX-License-Identifier: MIT
// Convolutions between few channels: conv2d_few.comp; the gradients of their filters:
// conv2d_weight_few.comp.
#include "plan_conv.h"

#include <stdio.h>
#include <tenon/checked.h>
#include "../reduce/plan_reduce.h"

#define GROUP 256        // invocations of a workgroup
#define POOL 4096        // elements of bands in shared memory
#define MOST_OWN 8       // channels of the gradient of an invocation
#define MOST_RUN 5       // pixels of a run
#define MOST_WIDTH 8     // of filters: their sums are in registers
#define MOST_SPAN 32     // pixels of x that a run reads in a line
#define MOST_JOBS 128    // so that two invocations or more share each
#define MOST_CHANNELS 32 // more are a product of matrices
#define IMAGE_CHANNELS 3 // of images, with more on the other side: rows of 27 terms
#define MOST_OF_IMAGES 128
#define MOST_REACH (1 << 24) // of extents, strides, paddings and dilations
#define MOST_SPLITS 512
#define FEW_RUN 4        // pixels of an invocation of conv2d_few.comp
#define MOST_SUMS 48     // of a run's products with a line of filters, in registers
#define MANY_GROUPS 2048 // workgroups: further runs go to the same ones

struct conv_few {
    uint64_t own, run, blocks, jobs, band_lines, bands, workgroups;
};

// Elements of the pool that a band of `lines` lines has.
static uint64_t few_band_size(const struct conv_plan *c, int64_t lines)
{
    int64_t reach = (lines - 1) * c->stride[0] + (c->kernel[0] - 1) * c->dilation[0] + 1;
    int64_t read = reach < c->height ? reach : c->height;
    return (uint64_t)(lines * c->out_width * c->out_channels +
                      read * c->width * c->channels);
}

static bool conv_plan_has_few_channels(const struct conv_plan *c, enum conv_op op)
{
    if (c->channels <= IMAGE_CHANNELS && op != CONV_INPUT)
        return c->out_channels <= MOST_OF_IMAGES;
    return c->channels <= MOST_CHANNELS && c->out_channels <= MOST_CHANNELS;
}

static bool few_fits(const struct conv_plan *c, enum conv_op op, tn_dtype dtype)
{
    bool small = c->groups == 1 && conv_plan_has_few_channels(c, op) &&
                 c->kernel[1] <= MOST_WIDTH && c->height < MOST_REACH &&
                 c->width < MOST_REACH;
    for (int i = 0; i < 2; i++)
        small = small && c->stride[i] < MOST_REACH && c->pad[i] < MOST_REACH &&
                c->dilation[i] < MOST_REACH;
    return small && (dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16) &&
           (MOST_RUN - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] < MOST_SPAN;
}

// By shapes alone, as scratch memory is sized before a device is known.
static bool few_weight_fits(const struct conv_plan *c, tn_dtype dtype)
{
    return few_fits(c, CONV_WEIGHT, dtype) && c->kernel[0] <= MOST_JOBS &&
           c->out_width <= POOL && c->width <= POOL && few_band_size(c, 1) <= POOL;
}

static struct conv_few few_weight_describe(const struct conv_plan *c)
{
    struct conv_few f = {.run = MOST_RUN, .band_lines = 1};
    f.blocks = ceil_div((uint64_t)c->out_channels, MOST_OWN);
    f.own = ceil_div((uint64_t)c->out_channels, f.blocks);
    f.jobs = f.blocks * (uint64_t)(c->kernel[0] * c->channels);
    while ((uint64_t)c->out_width % f.run != 0)
        f.run--;
    while ((int64_t)f.band_lines < c->out_height &&
           few_band_size(c, (int64_t)f.band_lines + 1) <= POOL)
        f.band_lines++;
    f.bands = ceil_div((uint64_t)c->out_height, f.band_lines);
    f.band_lines = ceil_div((uint64_t)c->out_height, f.bands); // of nearly equal sizes
    uint64_t all = f.bands * (uint64_t)c->num;
    f.workgroups = all < MOST_SPLITS ? all : MOST_SPLITS;
    if (all == 0) // no images: gradients are zeros
        f.workgroups = 1;
    return f;
}

static uint64_t few_filters_size(const struct conv_plan *c)
{
    return (uint64_t)(c->out_channels * c->kernel[0] * c->kernel[1] * c->channels);
}

uint64_t conv_few_scratch(const struct conv_plan *c, enum conv_op op, tn_dtype dtype)
{
    if (op != CONV_WEIGHT || !few_weight_fits(c, dtype))
        return 0;
    const struct conv_few f = few_weight_describe(c);
    return f.jobs > MOST_JOBS
               ? 0
               : tn_saturated_multiply(few_filters_size(c), f.workgroups * sizeof(float));
}

static void few_weight_push(struct kernel_launch *launch, const struct conv_plan *c,
                            const struct conv_few *f, const int64_t offsets[4])
{
    const int64_t words[] = {offsets[0],    offsets[1],    c->height,    c->width,
                             c->channels,   c->out_height, c->out_width, c->out_channels,
                             c->kernel[0],  c->stride[0],  c->pad[0],    c->pad[1],
                             c->dilation[0]};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(launch, (uint64_t)words[i]);
    kernel_push(launch, f->band_lines);
    kernel_push(launch, f->bands);
    kernel_push(launch, f->bands * (uint64_t)c->num);
    kernel_push(launch, f->jobs);
    kernel_push(launch, f->blocks);
    kernel_push(launch, f->workgroups);
}

static tn_status few_weight_plan(const tn_vulkan_plan *plan, const struct conv_plan *c,
                                 const int64_t offsets[4], bool *out_done)
{
    tn_dtype dtype = tn_step_output(plan->step, 0)->layout.dtype;
    *out_done = false;
    if (!few_weight_fits(c, dtype) || plan->limits->max_invocations < GROUP)
        return TN_OK;
    const struct conv_few f = few_weight_describe(c);
    if (f.jobs > MOST_JOBS)
        return TN_OK;
    char name[VARIANT_NAME];
    struct kernel_launch launch = {
        .name = name, .fixed_grid = true, .grid = {(uint32_t)f.workgroups, 1, 1}};
    snprintf(name, sizeof(name), "conv2d_weight_few_%s", dtype_glsl(dtype));
    kernel_spec(&launch, (uint32_t)c->kernel[1]);
    kernel_spec(&launch, (uint32_t)c->stride[1]);
    kernel_spec(&launch, (uint32_t)c->dilation[1]);
    kernel_spec(&launch, (uint32_t)f.own);
    kernel_spec(&launch, (uint32_t)f.run);
    uint64_t n = few_filters_size(c);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch,
                tn_vulkan_scratch(0, n * f.workgroups * sizeof(float), TN_VULKAN_WRITES));
    few_weight_push(&launch, c, &f, offsets);
    tn_status status = kernel_launch(plan, &launch);
    *out_done = status == TN_OK;
    return status == TN_OK ? vk_plan_sum_splits(plan, n, (uint32_t)f.workgroups) : status;
}

// --- the convolution, and the gradient of its input ------------------------------------

// The gradient of the input is a convolution of the gradient by flipped filters.
static struct conv_plan few_flipped(const struct conv_plan *c)
{
    struct conv_plan t = *c;
    t.height = c->out_height;
    t.width = c->out_width;
    t.channels = c->out_channels;
    t.out_height = c->height;
    t.out_width = c->width;
    t.out_channels = c->channels;
    for (int i = 0; i < 2; i++)
        t.pad[i] = c->dilation[i] * (c->kernel[i] - 1) - c->pad[i];
    return t;
}

static void few_forward_push(struct kernel_launch *launch, const struct conv_plan *c,
                             const int64_t offsets[4], uint64_t blocks, uint64_t workgroups)
{
    uint64_t line_runs = ceil_div((uint64_t)c->out_width, FEW_RUN);
    const int64_t words[] = {offsets[0],   offsets[1],      offsets[2],    offsets[3],
                             c->height,    c->width,        c->channels,   c->out_height,
                             c->out_width, c->out_channels, c->kernel[0],  c->stride[0],
                             c->pad[0],    c->pad[1],       c->dilation[0]};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(launch, (uint64_t)words[i]);
    kernel_push(launch, blocks);
    kernel_push(launch, line_runs);
    kernel_push(launch, line_runs * (uint64_t)(c->num * c->out_height));
    kernel_push(launch, workgroups);
    kernel_push_divisor(launch, blocks);
    kernel_push_divisor(launch, line_runs);
    kernel_push_divisor(launch, (uint64_t)c->out_height);
}

static tn_status few_forward_plan(const tn_vulkan_plan *plan, const struct conv_plan *given,
                                  enum conv_op op, const int64_t offsets[4], bool has_bias,
                                  bool *out_done)
{
    tn_dtype dtype = tn_step_output(plan->step, 0)->layout.dtype;
    bool is_input = op == CONV_INPUT;
    if (!few_fits(given, op, dtype) || plan->limits->max_invocations < GROUP ||
        (is_input && (given->stride[0] != 1 || given->stride[1] != 1)))
        return TN_OK;
    const struct conv_plan c = is_input ? few_flipped(given) : *given;
    uint64_t most = MOST_SUMS / (uint64_t)c.kernel[1];
    most = most < MOST_OWN ? most : MOST_OWN;
    uint64_t blocks = ceil_div((uint64_t)c.out_channels, most);
    uint64_t own = ceil_div((uint64_t)c.out_channels, blocks);
    if (c.kernel[0] > POOL ||
        (uint64_t)(c.kernel[0] * c.kernel[1] * c.channels) * blocks * own > POOL)
        return TN_OK;
    uint64_t units = ceil_div((uint64_t)c.out_width, FEW_RUN) * blocks *
                     (uint64_t)(c.num * c.out_height);
    uint64_t workgroups = ceil_div(units, GROUP);
    workgroups = workgroups < MANY_GROUPS ? workgroups : MANY_GROUPS;
    char name[VARIANT_NAME];
    struct kernel_launch launch = {
        .name = name, .fixed_grid = true, .grid = {(uint32_t)workgroups, 1, 1}};
    snprintf(name, sizeof(name), "conv2d_few_%s", dtype_glsl(dtype));
    kernel_spec(&launch, (uint32_t)c.kernel[1]);
    kernel_spec(&launch, (uint32_t)c.stride[1]);
    kernel_spec(&launch, (uint32_t)c.dilation[1]);
    kernel_spec(&launch, (uint32_t)own);
    kernel_spec(&launch, has_bias);
    kernel_spec(&launch, is_input);
    for (uint32_t i = 0; i < 3; i++)
        kernel_bind(&launch, tn_vulkan_input(i < plan->step->num_inputs ? i : 0));
    kernel_bind(&launch, tn_vulkan_output(0));
    few_forward_push(&launch, &c, offsets, blocks, workgroups);
    tn_status status = kernel_launch(plan, &launch);
    *out_done = status == TN_OK;
    return status;
}

tn_status conv_few_plan(const tn_vulkan_plan *plan, const struct conv_plan *c,
                        enum conv_op op, const int64_t offsets[4], bool has_bias,
                        bool *out_done)
{
    *out_done = false;
    return op == CONV_WEIGHT ? few_weight_plan(plan, c, offsets, out_done)
                             : few_forward_plan(plan, c, op, offsets, has_bias, out_done);
}

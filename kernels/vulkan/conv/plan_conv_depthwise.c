// SPDX-License-Identifier: MIT
// Convolutions whose channels have one filter each: conv2d_depthwise.comp.
#include "plan_conv.h"

#include <stdio.h>
#include <tenon/checked.h>
#include "../reduce/plan_reduce.h"

#define ALIGNMENT 4          // channels of an invocation
#define RUN 4                // output pixels of an invocation
#define MOST_RUN 7           // of gradients of filters, whose runs divide lines
#define GROUP 256            // invocations of a workgroup
#define MOST_LANES 32        // vectors of channels of a workgroup
#define MOST_TAPS 49         // whose filters shared memory holds
#define MOST_SUMMED_TAPS 25  // whose gradients registers hold
#define MOST_SPAN 32         // pixels that a run's windows have in a line
#define FILTERS (16 * 1024)  // bytes of filters in shared memory
#define MOST_REACH (1 << 24) // of extents, strides, paddings and dilations
#define MANY_GROUPS 1024     // workgroups: further runs go to the same ones
#define MANY_PARTS 512       // MANY_GROUPS for the gradients of filters

// Sizes that conv2d_depthwise.comp reads, with those of its rows and columns.
struct conv_depthwise {
    int64_t height, width, out_height, out_width;
    int64_t stride[2], pad[2], up[2];
    uint64_t taps, vectors, lanes, run, line_runs, runs, blocks, workgroups;
};

// The lanes that leave the fewest idle: a power of two.
static uint64_t depthwise_lanes(uint64_t vectors, uint64_t taps)
{
    uint64_t best = 1;
    for (uint64_t lanes = 1; lanes <= MOST_LANES && taps * lanes * 16 <= FILTERS;
         lanes *= 2)
        if (lanes == 1 ||
            ceil_div(vectors, lanes) * lanes <= ceil_div(vectors, best) * best ||
            lanes <= vectors / 4)
            best = lanes;
    return best;
}

// The longest run that divides lines of the gradient, of which 4 is preferred.
static uint64_t depthwise_run(uint64_t width)
{
    uint64_t run = width % RUN == 0 ? RUN : MOST_RUN;
    while (width % run != 0)
        run--;
    return run;
}

// The gradient of the input is a convolution of the gradient by turned filters, where
// strides lie between its pixels.
static struct conv_depthwise depthwise_describe(const struct conv_plan *c, enum conv_op op)
{
    struct conv_depthwise d = {.height = c->height,
                               .width = c->width,
                               .out_height = c->out_height,
                               .out_width = c->out_width,
                               .taps = (uint64_t)(c->kernel[0] * c->kernel[1]),
                               .vectors = (uint64_t)c->groups / ALIGNMENT};
    for (int i = 0; i < 2; i++) {
        bool turned = op == CONV_INPUT;
        d.stride[i] = turned ? 1 : c->stride[i];
        d.up[i] = turned ? c->stride[i] : 1;
        d.pad[i] = turned ? c->dilation[i] * (c->kernel[i] - 1) - c->pad[i] : c->pad[i];
    }
    if (op == CONV_INPUT) {
        d.height = c->out_height;
        d.width = c->out_width;
        d.out_height = c->height;
        d.out_width = c->width;
    }
    d.lanes = depthwise_lanes(d.vectors, d.taps);
    d.run = op == CONV_WEIGHT ? depthwise_run((uint64_t)c->out_width) : RUN;
    d.line_runs = ceil_div((uint64_t)d.out_width, d.run);
    d.runs = (uint64_t)(c->num * d.out_height) * d.line_runs;
    d.blocks = ceil_div(d.vectors, d.lanes);
    uint64_t many = (op == CONV_WEIGHT ? MANY_PARTS : MANY_GROUPS) / d.blocks;
    d.workgroups = ceil_div(d.runs, GROUP / d.lanes * (op == CONV_WEIGHT ? 4 : 1));
    if (d.workgroups > many)
        d.workgroups = many;
    if (d.workgroups == 0) // no images, or more blocks than `many` counts
        d.workgroups = 1;
    return d;
}

// By shapes alone, as scratch memory is sized before a device is known.
static bool depthwise_fits(const struct conv_plan *c, enum conv_op op, tn_dtype dtype)
{
    bool is_small = c->height < MOST_REACH && c->width < MOST_REACH;
    for (int i = 0; i < 2; i++)
        is_small = is_small && c->stride[i] < MOST_REACH && c->pad[i] < MOST_REACH &&
                   c->dilation[i] < MOST_REACH && c->kernel[i] <= MOST_TAPS;
    return (dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16) && is_small &&
           c->channels == 1 && c->out_channels == 1 && c->groups % ALIGNMENT == 0 &&
           c->kernel[0] * c->kernel[1] <=
               (op == CONV_WEIGHT ? MOST_SUMMED_TAPS : MOST_TAPS) &&
           ((op == CONV_WEIGHT ? MOST_RUN : RUN) - 1) *
                       (op == CONV_INPUT ? 1 : c->stride[1]) +
                   (c->kernel[1] - 1) * c->dilation[1] + 1 <=
               MOST_SPAN;
}

// Bytes of the gradients of all filters, in splits.
static uint64_t depthwise_splits_bytes(const struct conv_plan *c,
                                       const struct conv_depthwise *d)
{
    return tn_saturated_multiply((uint64_t)c->groups * d->taps, d->workgroups * 4);
}

uint64_t conv_depthwise_scratch(const struct conv_plan *c, enum conv_op op, tn_dtype dtype)
{
    if (op != CONV_WEIGHT || !depthwise_fits(c, op, dtype))
        return 0;
    const struct conv_depthwise d = depthwise_describe(c, op);
    return depthwise_splits_bytes(c, &d);
}

static void depthwise_push(struct kernel_launch *launch, const struct conv_plan *c,
                           const struct conv_depthwise *d, const int64_t offsets[4])
{
    const int64_t words[] = {offsets[0],          offsets[1],
                             offsets[2],          offsets[3],
                             d->height,           d->width,
                             d->out_height,       d->out_width,
                             (int64_t)d->vectors, d->stride[0],
                             d->pad[0],           d->pad[1],
                             c->dilation[0],      (int64_t)d->line_runs,
                             (int64_t)d->runs,    (int64_t)d->workgroups};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(launch, (uint64_t)words[i]);
    kernel_push_divisor(launch, d->line_runs);
    kernel_push_divisor(launch, (uint64_t)d->out_height);
}

tn_status conv_depthwise_plan(const tn_vulkan_plan *plan, const struct conv_plan *c,
                              enum conv_op op, const int64_t offsets[4], bool has_bias,
                              bool *out_done)
{
    tn_dtype dtype = tn_step_output(plan->step, 0)->layout.dtype;
    bool is_weight = op == CONV_WEIGHT, is_fused = !is_weight && plan->step->num_fused > 0;
    int64_t aligned = offsets[0] | (is_weight ? offsets[1] : is_fused ? 0 : offsets[3]);
    *out_done = false;
    if (!depthwise_fits(c, op, dtype) || aligned % ALIGNMENT != 0)
        return TN_OK;
    const struct conv_depthwise d = depthwise_describe(c, op);
    if (d.workgroups > plan->limits->max_groups[0] ||
        d.blocks > plan->limits->max_groups[1] || plan->limits->max_invocations < GROUP)
        return TN_OK;
    char name[VARIANT_NAME];
    struct kernel_launch launch = {
        .name = name,
        .fixed_grid = true,
        .grid = {(uint32_t)d.workgroups, (uint32_t)d.blocks, 1},
    };
    snprintf(name, sizeof(name), "conv2d_depthwise_%s%s", dtype_glsl(dtype),
             is_weight  ? "_weight"
             : is_fused ? "_by_element"
                        : "");
    kernel_spec(&launch, (uint32_t)c->kernel[0]);
    kernel_spec(&launch, (uint32_t)c->kernel[1]);
    kernel_spec(&launch, (uint32_t)(op == CONV_INPUT ? 1 : c->stride[1]));
    kernel_spec(&launch, (uint32_t)c->dilation[1]);
    kernel_spec(&launch, (uint32_t)d.lanes);
    kernel_spec(&launch, has_bias);
    kernel_spec(&launch, op == CONV_INPUT);
    kernel_spec(&launch, (uint32_t)d.up[0]);
    kernel_spec(&launch, (uint32_t)d.up[1]);
    kernel_spec(&launch, (uint32_t)d.run);
    for (uint32_t i = 0; i < 3; i++)
        kernel_bind(&launch, tn_vulkan_input(i < plan->step->num_inputs ? i : 0));
    kernel_bind(&launch, is_weight ? tn_vulkan_scratch(0, depthwise_splits_bytes(c, &d),
                                                       TN_VULKAN_WRITES)
                                   : tn_vulkan_output(0));
    int64_t at[4] = {offsets[0], offsets[1], offsets[2], is_weight ? 0 : offsets[3]};
    depthwise_push(&launch, c, &d, at);
    tn_status status = kernel_launch(plan, &launch);
    *out_done = status == TN_OK;
    return status == TN_OK && is_weight
               ? vk_plan_sum_splits(plan, (uint64_t)c->groups * d.taps,
                                    (uint32_t)d.workgroups)
               : status;
}

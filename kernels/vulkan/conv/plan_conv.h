// SPDX-License-Identifier: MIT
// A convolution, and kernels for some of them.
#ifndef KERNELS_VULKAN_CONV_PLAN_CONV_H
#define KERNELS_VULKAN_CONV_PLAN_CONV_H

#include "../launch.h"

enum conv_op { CONV_FORWARD, CONV_INPUT, CONV_WEIGHT };

struct conv_plan {
    int64_t num, height, width, channels;        // of x; channels of one group
    int64_t out_height, out_width, out_channels; // of y; channels of one group
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    int64_t groups;
};

// Whether terms are channels, and rows the pixels of x: conv2d.comp's POINTWISE.
static inline bool conv_is_pointwise(const struct conv_plan *c)
{
    return c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 &&
           c->stride[1] == 1 && c->pad[0] == 0 && c->pad[1] == 0;
}

// Pushes num, height, ... to dilation: the arguments of conv2d.comp behind the offsets.
void conv_push(struct kernel_launch *launch, const struct conv_plan *c);

// Bytes of scratch memory that conv_tiles_plan() may ask for, by shapes alone.
uint64_t conv_tiles_scratch(const struct conv_plan *c, enum conv_op op, tn_dtype dtype);

// Plans the step's convolution in tiles of conv2d.glsl; *out_done false: it is not for
// them. `offsets`: of inputs 0 and 1, the bias, and the output.
tn_status conv_tiles_plan(const tn_vulkan_plan *plan, const struct conv_plan *c,
                          enum conv_op op, const int64_t offsets[4], bool has_bias,
                          bool *out_done);

// The same of convolutions whose channels have one filter each: conv2d_depthwise.comp.
uint64_t conv_depthwise_scratch(const struct conv_plan *c, enum conv_op op, tn_dtype dtype);
tn_status conv_depthwise_plan(const tn_vulkan_plan *plan, const struct conv_plan *c,
                              enum conv_op op, const int64_t offsets[4], bool has_bias,
                              bool *out_done);

// The same of convolutions between few channels: conv2d_few.comp, conv2d_weight_few.comp.
uint64_t conv_few_scratch(const struct conv_plan *c, enum conv_op op, tn_dtype dtype);
tn_status conv_few_plan(const tn_vulkan_plan *plan, const struct conv_plan *c,
                        enum conv_op op, const int64_t offsets[4], bool has_bias,
                        bool *out_done);

#endif // KERNELS_VULKAN_CONV_PLAN_CONV_H

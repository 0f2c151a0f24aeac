// SPDX-License-Identifier: MIT
// nn.conv2d/1 and its gradients, nn.conv2d_input/1 and nn.conv2d_weight/1.
#include "../record.h"

#include <stdio.h>
#include <tenon/checked.h>
#include <tenon/ops/nn_attrs.h>
#include "../reduce/plan_reduce.h"
#include "plan_conv.h"

// The gradient of the weights is a sum over output pixels, in splits of equal size.
#define PIXELS_PER_SPLIT 512
#define MAX_SPLITS 128

static int64_t conv_plan_pair(const tn_ints *given, uint32_t i, int64_t absent)
{
    if (!given->given || given->count == 0)
        return absent;
    return given->value[given->count > 1 ? i : 0];
}

// Describes a convolution by the layouts of x, w and y, of which any may be inputs or
// outputs.
static struct conv_plan conv_plan_describe(const tn_conv2d_attrs *attrs, const tn_layout *x,
                                           const tn_layout *w, const tn_layout *y)
{
    struct conv_plan c = {
        .num = x->extent[0],
        .height = x->extent[1],
        .width = x->extent[2],
        .channels = w->extent[3],
        .out_height = y->extent[1],
        .out_width = y->extent[2],
        .out_channels = y->extent[3] / attrs->groups,
        .kernel = {w->extent[1], w->extent[2]},
        .groups = attrs->groups,
    };
    for (uint32_t i = 0; i < 2; i++) {
        c.stride[i] = conv_plan_pair(&attrs->stride, i, 1);
        c.pad[i] = conv_plan_pair(&attrs->padding, i, 0);
        c.dilation[i] = conv_plan_pair(&attrs->dilation, i, 1);
    }
    return c;
}

static void push_divisors(struct kernel_launch *launch, int64_t channels, int64_t width,
                          int64_t pixels_width, int64_t pixels_height)
{
    kernel_push_divisor(launch, (uint64_t)channels);
    kernel_push_divisor(launch, (uint64_t)width);
    kernel_push_divisor(launch, (uint64_t)pixels_width);
    kernel_push_divisor(launch, (uint64_t)pixels_height);
}

void conv_push(struct kernel_launch *launch, const struct conv_plan *c)
{
    const int64_t words[] = {c->num,        c->height,      c->width,        c->channels,
                             c->out_height, c->out_width,   c->out_channels, c->kernel[0],
                             c->kernel[1],  c->stride[0],   c->stride[1],    c->pad[0],
                             c->pad[1],     c->dilation[0], c->dilation[1],  c->groups};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(launch, (uint64_t)words[i]);
}

// `is_input`: rows are pixels of x, and terms channels of y.
static void push_conv(struct kernel_launch *launch, const struct conv_plan *c,
                      const int64_t offsets[4], uint32_t splits, bool is_input)
{
    for (int i = 0; i < 4; i++)
        kernel_push(launch, (uint64_t)offsets[i]);
    conv_push(launch, c);
    kernel_push(launch, splits);
    push_divisors(launch, is_input ? c->out_channels : c->channels, c->kernel[1],
                  is_input ? c->width : c->out_width, is_input ? c->height : c->out_height);
}

// The size of a matrix product, of which there are `layers`. A product that leaves tiles
// mostly empty, or has few terms to share, is computed directly, without tiles.
struct product_size {
    uint64_t rows, columns, terms, layers;
};

#define MIN_TILED_COLUMNS 32
#define MIN_TILED_TERMS 64

static bool is_tiled(const struct product_size *e)
{
    return e->columns >= MIN_TILED_COLUMNS && e->rows >= MIN_TILED_COLUMNS &&
           e->terms >= MIN_TILED_TERMS;
}

static void set_grid(struct kernel_launch *launch, char name[VARIANT_NAME], const char *op,
                     tn_dtype dtype, struct product_size e)
{
    uint32_t tile =
        ceil_div(e.rows, 64) * ceil_div(e.columns, 64) * e.layers >= 64 ? 64 : 16;
    launch->name = name;
    if (!is_tiled(&e)) {
        snprintf(name, VARIANT_NAME, "conv2d_%s_%s_direct", op, dtype_glsl(dtype));
        launch->groups = ceil_div(e.rows * e.columns * e.layers, 256);
        return;
    }
    snprintf(name, VARIANT_NAME, "conv2d_%s_%s_%u", op, dtype_glsl(dtype), tile);
    launch->fixed_grid = true;
    launch->grid[0] = (uint32_t)ceil_div(e.rows, tile);
    launch->grid[1] = (uint32_t)ceil_div(e.columns, tile);
    launch->grid[2] = (uint32_t)e.layers;
}

static bool conv_plan_is_empty(const tn_step *step)
{
    return layout_count(&tn_step_output(step, 0)->layout) == 0;
}

// Binds input `i`, or input 0, which the shader then does not read, if the step lacks it.
static tn_vulkan_operand bind_input(const tn_step *step, uint32_t i)
{
    return tn_vulkan_input(i < step->num_inputs ? i : 0);
}

// --- depthwise, and on cooperative matrices --------------------------------------------

static uint64_t conv_special_scratch(const struct conv_plan *c, enum conv_op op,
                                     tn_dtype dtype)
{
    uint64_t bytes[] = {conv_depthwise_scratch(c, op, dtype),
                        conv_tiles_scratch(c, op, dtype), conv_few_scratch(c, op, dtype)};
    uint64_t most = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    return most > bytes[2] ? most : bytes[2];
}

// Plans the convolution, where one of these kernels has it; else *out_done is false.
static tn_status conv_special_plan(const tn_vulkan_plan *plan, const struct conv_plan *c,
                                   enum conv_op op, const int64_t offsets[4], bool has_bias,
                                   bool *out_done)
{
    tn_status status = conv_depthwise_plan(plan, c, op, offsets, has_bias, out_done);
    if (status == TN_OK && !*out_done)
        status = conv_tiles_plan(plan, c, op, offsets, has_bias, out_done);
    if (status == TN_OK && !*out_done)
        status = conv_few_plan(plan, c, op, offsets, has_bias, out_done);
    return status;
}

// --- kernels ---------------------------------------------------------------------------

// Inputs are read many times: a prologue would be computed as often.
static int32_t conv_accepts(const tn_kernel_query *query)
{
    return (query->fused & ((UINT64_C(1) << query->num_inputs) - 1)) == 0;
}

static tn_status conv2d_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *y = &tn_step_output(step, 0)->layout;
    if (conv_plan_is_empty(step))
        return TN_OK;
    struct conv_plan c = conv_plan_describe(step->attrs, &tn_step_input(step, 0)->layout,
                                            &tn_step_input(step, 1)->layout, y);
    bool has_bias =
        step->num_inputs > 2 && tn_step_input(step, 2)->layout.dtype != TN_DTYPE_NONE;
    int64_t offsets[4] = {tn_step_input(step, 0)->layout.offset,
                          tn_step_input(step, 1)->layout.offset,
                          has_bias ? tn_step_input(step, 2)->layout.offset : 0, y->offset};
    bool is_done;
    tn_status status =
        conv_special_plan(plan, &c, CONV_FORWARD, offsets, has_bias, &is_done);
    if (status != TN_OK || is_done)
        return status;
    struct kernel_launch launch = {0};
    char name[VARIANT_NAME];
    kernel_spec(&launch, has_bias);
    kernel_spec(&launch, conv_is_pointwise(&c));
    for (uint32_t i = 0; i < 3; i++)
        kernel_bind(&launch, bind_input(step, i));
    set_grid(&launch, name, "forward", y->dtype,
             (struct product_size){
                 (uint64_t)(c.num * c.out_height * c.out_width), (uint64_t)c.out_channels,
                 (uint64_t)(c.kernel[0] * c.kernel[1] * c.channels), (uint64_t)c.groups});
    kernel_bind(&launch, tn_vulkan_output(0));
    push_conv(&launch, &c, offsets, 1, false);
    return kernel_launch(plan, &launch);
}

static uint64_t conv_plan_conv2d_scratch(const tn_kernel_query *query)
{
    const tn_layout *y = &query->outputs[0];
    const struct conv_plan c =
        conv_plan_describe(query->attrs, &query->inputs[0], &query->inputs[1], y);
    return conv_special_scratch(&c, CONV_FORWARD, y->dtype);
}

static uint64_t conv2d_input_scratch(const tn_kernel_query *query)
{
    const struct conv_plan c = conv_plan_describe(query->attrs, &query->outputs[0],
                                                  &query->inputs[1], &query->inputs[0]);
    return conv_special_scratch(&c, CONV_INPUT, query->outputs[0].dtype);
}

static tn_status conv2d_input_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *x = &tn_step_output(step, 0)->layout;
    if (conv_plan_is_empty(step))
        return TN_OK;
    struct conv_plan c = conv_plan_describe(step->attrs, x, &tn_step_input(step, 1)->layout,
                                            &tn_step_input(step, 0)->layout);
    int64_t offsets[4] = {tn_step_input(step, 0)->layout.offset,
                          tn_step_input(step, 1)->layout.offset, 0, x->offset};
    bool is_done;
    tn_status status = conv_special_plan(plan, &c, CONV_INPUT, offsets, false, &is_done);
    if (status != TN_OK || is_done)
        return status;
    struct kernel_launch launch = {0};
    char name[VARIANT_NAME];
    set_grid(&launch, name, "input", x->dtype,
             (struct product_size){(uint64_t)(c.num * c.height * c.width),
                                   (uint64_t)c.channels,
                                   (uint64_t)(c.kernel[0] * c.kernel[1] * c.out_channels),
                                   (uint64_t)c.groups});
    for (uint32_t i = 0; i < 3; i++)
        kernel_bind(&launch, bind_input(step, i));
    kernel_bind(&launch, tn_vulkan_output(0));
    push_conv(&launch, &c, offsets, 1, true);
    return kernel_launch(plan, &launch);
}

static uint32_t count_splits(const tn_layout *gradient)
{
    uint64_t pixels =
        (uint64_t)(gradient->extent[0] * gradient->extent[1] * gradient->extent[2]);
    uint64_t splits = ceil_div(pixels, PIXELS_PER_SPLIT);
    return (uint32_t)(splits < 1 ? 1 : splits > MAX_SPLITS ? MAX_SPLITS : splits);
}

// Bytes of an element of a partial sum.
static uint64_t conv_plan_split_bytes(tn_dtype dtype)
{
    return dtype == TN_F64 ? 8 : 4;
}

static uint64_t conv_plan_conv2d_weight_scratch(const tn_kernel_query *query)
{
    const tn_layout *w = &query->outputs[0];
    const struct conv_plan c =
        conv_plan_describe(query->attrs, &query->inputs[0], w, &query->inputs[1]);
    uint64_t bytes = tn_saturated_multiply(
        layout_count(w) * conv_plan_split_bytes(w->dtype), count_splits(&query->inputs[1]));
    uint64_t with_matrices = conv_special_scratch(&c, CONV_WEIGHT, w->dtype);
    return bytes > with_matrices ? bytes : with_matrices;
}

static tn_status conv2d_weight_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *w = &tn_step_output(step, 0)->layout,
                    *gradient = &tn_step_input(step, 1)->layout;
    if (conv_plan_is_empty(step))
        return TN_OK;
    struct conv_plan c =
        conv_plan_describe(step->attrs, &tn_step_input(step, 0)->layout, w, gradient);
    int64_t offsets[4] = {tn_step_input(step, 0)->layout.offset, gradient->offset, 0, 0};
    bool is_done;
    tn_status status = conv_special_plan(plan, &c, CONV_WEIGHT, offsets, false, &is_done);
    if (status != TN_OK || is_done)
        return status;
    uint32_t splits = count_splits(gradient);
    uint64_t n = layout_count(w);
    struct kernel_launch launch = {0};
    char name[VARIANT_NAME];
    set_grid(&launch, name, "weight", w->dtype,
             (struct product_size){(uint64_t)c.out_channels,
                                   (uint64_t)(c.kernel[0] * c.kernel[1] * c.channels),
                                   PIXELS_PER_SPLIT, (uint64_t)c.groups * splits});
    for (uint32_t i = 0; i < 3; i++)
        kernel_bind(&launch, bind_input(step, i));
    kernel_bind(&launch, tn_vulkan_scratch(0, n * splits * conv_plan_split_bytes(w->dtype),
                                           TN_VULKAN_WRITES));
    push_conv(&launch, &c, offsets, splits, false);
    status = kernel_launch(plan, &launch);
    return status == TN_OK ? vk_plan_sum_splits(plan, n, splits) : status;
}

// --- records ---------------------------------------------------------------------------

// The third rule is for the bias, or for the output if there is none.
static const tn_operand_rule conv_rules[] = {
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
OWN_KERNEL(conv2d, "nn.conv2d/1", conv2d_plan, KERNEL_PRODUCT, conv_rules,
           .accepts = conv_accepts, .scratch_size = conv_plan_conv2d_scratch);
OWN_KERNEL(conv2d_input, "nn.conv2d_input/1", conv2d_input_plan, KERNEL_PRODUCT, conv_rules,
           .accepts = conv_accepts, .scratch_size = conv2d_input_scratch);
OWN_KERNEL(conv2d_weight, "nn.conv2d_weight/1", conv2d_weight_plan, KERNEL_PRODUCT,
           conv_rules, .accepts = conv_accepts,
           .scratch_size = conv_plan_conv2d_weight_scratch);

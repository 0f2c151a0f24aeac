// SPDX-License-Identifier: MIT
// nn.conv2d/1 and its gradients, nn.conv2d_input/1 and nn.conv2d_weight/1.
#include "../record.h"

#include <stdio.h>
#include <tenon/checked.h>
#include <tenon/ops/nn_attrs.h>
#include "../matmul/plan_matmul.h"
#include "../reduce/plan_reduce.h"

// The gradient of the weights is a sum over output pixels, in parts of so many pixels.
#define PIXELS_PER_SPLIT 512
#define MAX_SPLITS 128

struct conv {
    int64_t num, height, width, channels;        // of x; channels of one group
    int64_t out_height, out_width, out_channels; // of y; channels of one group
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    int64_t groups;
};

static int64_t pair(const tn_ints *given, uint32_t i, int64_t absent)
{
    if (!given->given || given->count == 0)
        return absent;
    return given->value[given->count > 1 ? i : 0];
}

// Describes a convolution by the layouts of x, w and y, of which any may be inputs or
// outputs.
static struct conv describe(const tn_conv2d_attrs *attrs, const tn_layout *x,
                            const tn_layout *w, const tn_layout *y)
{
    struct conv c = {
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
        c.stride[i] = pair(&attrs->stride, i, 1);
        c.pad[i] = pair(&attrs->padding, i, 0);
        c.dilation[i] = pair(&attrs->dilation, i, 1);
    }
    return c;
}

// Whether terms are channels, and rows the pixels of x: conv2d.comp's POINTWISE.
static bool is_pointwise(const struct conv *c)
{
    return c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 &&
           c->stride[1] == 1 && c->pad[0] == 0 && c->pad[1] == 0;
}

static void push_divisors(struct kernel_launch *launch, int64_t channels, int64_t width,
                          int64_t pixels_width, int64_t pixels_height)
{
    kernel_push_divisor(launch, (uint64_t)channels);
    kernel_push_divisor(launch, (uint64_t)width);
    kernel_push_divisor(launch, (uint64_t)pixels_width);
    kernel_push_divisor(launch, (uint64_t)pixels_height);
}

// `is_input`: rows are pixels of x, and terms channels of y.
static void push_conv(struct kernel_launch *launch, const struct conv *c,
                      const int64_t offsets[4], uint32_t splits, bool is_input)
{
    for (int i = 0; i < 4; i++)
        kernel_push(launch, (uint64_t)offsets[i]);
    const int64_t words[] = {c->num,        c->height,      c->width,        c->channels,
                             c->out_height, c->out_width,   c->out_channels, c->kernel[0],
                             c->kernel[1],  c->stride[0],   c->stride[1],    c->pad[0],
                             c->pad[1],     c->dilation[0], c->dilation[1],  c->groups};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(launch, (uint64_t)words[i]);
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

static bool is_empty(const tn_step *step)
{
    return layout_count(&tn_step_output(step, 0)->layout) == 0;
}

// Binds input `i`. One that the step has not is not read, but bound: input 0.
static tn_vulkan_operand bind_input(const tn_step *step, uint32_t i)
{
    return tn_vulkan_input(i < step->num_inputs ? i : 0);
}

// --- four elements at a time -----------------------------------------------------------

// Parts of the terms of convolutions of few tiles, as of products (plan_matmul_split.c):
// the terms of a part at least, a multiple of those of a slice, tiles of so many rows and
// columns that a large device has work for, and parts at most.
#define LEAST_TERMS 128
#define SLICE 32
#define TILE 32
#define ENOUGH_TILES 512
#define MOST_PARTS 16

static struct product_size size_of(const struct conv *c)
{
    return (struct product_size){
        (uint64_t)(c->num * c->out_height * c->out_width), (uint64_t)c->out_channels,
        (uint64_t)(c->kernel[0] * c->kernel[1] * c->channels), (uint64_t)c->groups};
}

// Whether conv2d_wide.comp has the convolution: f32, in multiples of four.
static bool is_wide(const struct conv *c, tn_dtype dtype, const int64_t offsets[4])
{
    const struct product_size e = size_of(c);
    int64_t all =
        c->channels | c->out_channels | offsets[0] | offsets[1] | offsets[2] | offsets[3];
    return dtype == TN_F32 && all % WIDE_ALIGNMENT == 0 && is_tiled(&e);
}

// By shapes alone, as scratch memory is sized before a device is known.
static uint64_t count_parts(const struct product_size *e)
{
    uint64_t tiles = ceil_div(e->rows, TILE) * ceil_div(e->columns, TILE) * e->layers;
    uint64_t parts = 1;
    while (parts < MOST_PARTS && tiles * parts < ENOUGH_TILES &&
           e->terms >= 2 * parts * LEAST_TERMS)
        parts *= 2;
    return parts;
}

static uint64_t parts_bytes(const struct product_size *e, uint64_t parts)
{
    return tn_saturated_multiply(e->rows * e->columns * e->layers, parts * sizeof(float));
}

static void push_wide(struct kernel_launch *launch, const struct conv *c,
                      const int64_t offsets[4], uint64_t parts)
{
    const struct product_size e = size_of(c);
    uint64_t part_terms = ceil_div(ceil_div(e.terms, parts), SLICE) * SLICE;
    const uint64_t sizes[] = {e.rows, e.columns, e.terms, parts, part_terms};
    const int64_t words[] = {c->height,     c->width,     c->channels, c->out_height,
                             c->out_width,  c->kernel[1], c->groups,   c->stride[0],
                             c->stride[1],  c->pad[0],    c->pad[1],   c->dilation[0],
                             c->dilation[1]};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        kernel_push(launch, sizes[i]);
    for (int i = 0; i < 4; i++)
        kernel_push(launch, i == 3 && parts > 1 ? 0 : (uint64_t)offsets[i]);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(launch, (uint64_t)words[i]);
    push_divisors(launch, c->channels, c->kernel[1], c->out_width, c->out_height);
}

// Plans the convolution whose inputs `launch` binds; *out_done false: the device does not
// take such tiles.
static tn_status plan_wide(const tn_vulkan_plan *plan, struct kernel_launch *launch,
                           const struct conv *c, const int64_t offsets[4], bool *out_done)
{
    const struct product_size e = size_of(c);
    bool is_software = plan->limits->features & TN_VULKAN_IS_SOFTWARE;
    uint64_t parts = is_software ? 1 : count_parts(&e);
    const struct product_wide *tile =
        product_wide(plan->limits, e.rows, e.columns, e.layers * parts);
    bool by_element = parts == 1 && plan->step->num_fused > 0;
    char name[VARIANT_NAME];
    *out_done = tile && (!by_element || tile->stores_by_element);
    if (!*out_done)
        return TN_OK;
    snprintf(name, sizeof(name), "conv2d_wide_%s%s", tile->name,
             by_element ? "_by_element" : "");
    launch->name = name;
    launch->fixed_grid = true;
    launch->grid[0] = (uint32_t)ceil_div(e.rows, tile->rows);
    launch->grid[1] = (uint32_t)ceil_div(e.columns, tile->columns);
    launch->grid[2] = (uint32_t)(e.layers * parts);
    kernel_bind(launch, parts > 1
                            ? tn_vulkan_scratch(0, parts_bytes(&e, parts), TN_VULKAN_WRITES)
                            : tn_vulkan_output(0));
    push_wide(launch, c, offsets, parts);
    tn_status status = kernel_launch(plan, launch);
    return status == TN_OK && parts > 1
               ? vk_plan_sum_parts(plan, e.rows * e.columns * e.layers, (uint32_t)parts)
               : status;
}

// --- kernels ---------------------------------------------------------------------------

// Inputs are read many times, which programs beside them would be computed.
static int32_t conv_accepts(const tn_kernel_query *query)
{
    return (query->fused & ((UINT64_C(1) << query->num_inputs) - 1)) == 0;
}

static tn_status conv2d_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *y = &tn_step_output(step, 0)->layout;
    if (is_empty(step))
        return TN_OK;
    struct conv c = describe(step->attrs, &tn_step_input(step, 0)->layout,
                             &tn_step_input(step, 1)->layout, y);
    bool has_bias =
        step->num_inputs > 2 && tn_step_input(step, 2)->layout.dtype != TN_DTYPE_NONE;
    struct kernel_launch launch = {0};
    char name[VARIANT_NAME];
    bool is_done = false;
    int64_t offsets[4] = {tn_step_input(step, 0)->layout.offset,
                          tn_step_input(step, 1)->layout.offset,
                          has_bias ? tn_step_input(step, 2)->layout.offset : 0, y->offset};
    kernel_spec(&launch, has_bias);
    kernel_spec(&launch, is_pointwise(&c));
    for (uint32_t i = 0; i < 3; i++)
        kernel_bind(&launch, bind_input(step, i));
    tn_status status = is_wide(&c, y->dtype, offsets)
                           ? plan_wide(plan, &launch, &c, offsets, &is_done)
                           : TN_OK;
    if (status != TN_OK || is_done)
        return status;
    set_grid(&launch, name, "forward", y->dtype, size_of(&c));
    kernel_bind(&launch, tn_vulkan_output(0));
    push_conv(&launch, &c, offsets, 1, false);
    return kernel_launch(plan, &launch);
}

// Sums of parts, where there may be some.
static uint64_t conv2d_scratch(const tn_kernel_query *query)
{
    const tn_layout *y = &query->outputs[0];
    const struct conv c = describe(query->attrs, &query->inputs[0], &query->inputs[1], y);
    const struct product_size e = size_of(&c);
    uint64_t parts = y->dtype == TN_F32 && is_tiled(&e) ? count_parts(&e) : 1;
    return parts > 1 ? parts_bytes(&e, parts) : 0;
}

static tn_status conv2d_input_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *x = &tn_step_output(step, 0)->layout;
    if (is_empty(step))
        return TN_OK;
    struct conv c = describe(step->attrs, x, &tn_step_input(step, 1)->layout,
                             &tn_step_input(step, 0)->layout);
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
    int64_t offsets[4] = {tn_step_input(step, 0)->layout.offset,
                          tn_step_input(step, 1)->layout.offset, 0, x->offset};
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
static uint64_t part_bytes(tn_dtype dtype)
{
    return dtype == TN_F64 ? 8 : 4;
}

static uint64_t conv2d_weight_scratch(const tn_kernel_query *query)
{
    const tn_layout *w = &query->outputs[0];
    return tn_saturated_multiply(layout_count(w) * part_bytes(w->dtype),
                                 count_splits(&query->inputs[1]));
}

static tn_status conv2d_weight_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *w = &tn_step_output(step, 0)->layout,
                    *gradient = &tn_step_input(step, 1)->layout;
    if (is_empty(step))
        return TN_OK;
    struct conv c = describe(step->attrs, &tn_step_input(step, 0)->layout, w, gradient);
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
    kernel_bind(&launch,
                tn_vulkan_scratch(0, n * splits * part_bytes(w->dtype), TN_VULKAN_WRITES));
    int64_t offsets[4] = {tn_step_input(step, 0)->layout.offset, gradient->offset, 0, 0};
    push_conv(&launch, &c, offsets, splits, false);
    tn_status status = kernel_launch(plan, &launch);
    return status == TN_OK ? vk_plan_sum_parts(plan, n, splits) : status;
}

// --- records ---------------------------------------------------------------------------

// The third is the bias, or the output where there is none.
static const tn_operand_rule conv_rules[] = {
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
OWN_KERNEL(conv2d, "nn.conv2d/1", conv2d_plan, KERNEL_PRODUCT, conv_rules,
           .accepts = conv_accepts, .scratch_size = conv2d_scratch);
OWN_KERNEL(conv2d_input, "nn.conv2d_input/1", conv2d_input_plan, KERNEL_PRODUCT, conv_rules,
           .accepts = conv_accepts);
OWN_KERNEL(conv2d_weight, "nn.conv2d_weight/1", conv2d_weight_plan, KERNEL_PRODUCT,
           conv_rules, .accepts = conv_accepts, .scratch_size = conv2d_weight_scratch);

// SPDX-License-Identifier: MIT
// Convolutions on a Vulkan backend against the references. Part of vulkan_kernels.c's
// program.
#include "check.h"

#include <math.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/reference.h>
#include "../vulkan_check.h"

static void begin(void)
{
    vb_as_gpu = true; // the kernels of GPUs
    begin_checks();
}

TestSuite(vulkan_convolutions, .init = begin, .fini = end_checks);

static void add_convolutions(tn_dtype t, const tn_conv2d_attrs *attrs, int64_t images,
                             int64_t size, int64_t channels, int64_t filters,
                             int64_t window)
{
    int64_t stride = attrs->stride.given ? attrs->stride.value[0] : 1;
    int64_t pad = attrs->padding.given ? attrs->padding.value[0] : 0;
    int64_t dilation = attrs->dilation.given ? attrs->dilation.value[0] : 1;
    int64_t out = (size + 2 * pad - dilation * (window - 1) - 1) / stride + 1;
    tn_layout x = LAYOUT(t, images, size, size, channels);
    tn_layout w = LAYOUT(t, filters, window, window, channels / attrs->groups);
    tn_layout y = LAYOUT(t, images, out, out, filters);
    static tn_conv2d_attrs kept[64]; // with the extent that the transposes rebuild
    static uint32_t num_kept;
    tn_conv2d_attrs *input = &kept[num_kept++ % 64], *weight = &kept[num_kept++ % 64];
    *input = *weight = *attrs;
    input->extent = (tn_ints)INTS(size, size);
    weight->extent = (tn_ints)INTS(window, window);
    add_check(&(struct application){"nn.conv2d/1", attrs, 2, {x, w, y}, 1e-5, 0});
    add_check(&(struct application){
        "nn.conv2d/1", attrs, 3, {x, w, LAYOUT(t, filters), y}, 1e-5, 0});
    add_check(&(struct application){"nn.conv2d_input/1", input, 2, {y, w, x}, 1e-5, 0});
    add_check(&(struct application){"nn.conv2d_weight/1", weight, 2, {x, y, w}, 2e-5, 0});
}

Test(vulkan_convolutions, convolutions_and_their_transposes_agree_with_the_reference)
{
    static const tn_dtype floats[] = {TN_F16, TN_BF16, TN_F32, TN_F64};
    static const tn_conv2d_attrs plain = {.groups = 1}, all = {.stride = INTS(2, 2),
                                                               .padding = INTS(2, 2),
                                                               .dilation = INTS(2, 2),
                                                               .groups = 2};
    for (int i = 0; i < 4; i++) {
        add_convolutions(floats[i], &plain, 2, 8, 1, 6, 5);
        add_convolutions(floats[i], &plain, 3, 10, 40, 36, 3); // tiles
        add_convolutions(floats[i], &all, 2, 9, 4, 6, 3);
        add_convolutions(floats[i], &all, 1, 11, 70, 80, 3);
    }
    run_checks();
}

static void add_convolution(const tn_conv2d_attrs *attrs, int64_t images, int64_t size,
                            int64_t channels, int64_t filters, int64_t window)
{
    int64_t stride = attrs->stride.given ? attrs->stride.value[0] : 1;
    int64_t pad = attrs->padding.given ? attrs->padding.value[0] : 0;
    int64_t out = (size + 2 * pad - window) / stride + 1;
    tn_layout x = LAYOUT(TN_F32, images, size, size, channels);
    tn_layout w = LAYOUT(TN_F32, filters, window, window, channels / attrs->groups);
    tn_layout y = LAYOUT(TN_F32, images, out, out, filters);
    add_check(&(struct application){"nn.conv2d/1", attrs, 2, {x, w, y}, 2e-5, 0});
    add_check(&(struct application){
        "nn.conv2d/1", attrs, 3, {x, w, LAYOUT(TN_F32, filters), y}, 2e-5, 0});
}

// --- convolutions of 16-bit floats on matrix units
// -----------------------------------------

static tn_layout shape_of(tn_dtype t, const int64_t extent[4])
{
    return row_major(t, 4, extent);
}

// What a convolution is made of: rows and columns differ.
struct convolution {
    int64_t images, size[2], channels, filters, window[2], stride[2], padding[2],
        dilation[2], groups;
};

static tn_ints both(const int64_t two[2])
{
    return (tn_ints){.count = 2, .given = 1, .value = {two[0], two[1]}};
}

// An operand's infinities and NaNs, which have neighbours of ordinary numbers: in the first
// and the last element, and in some between.
static void put_hostile(tn_step *step, uint32_t operand)
{
    static const double values[] = {INFINITY, -INFINITY, NAN};
    const tn_value *value = tn_step_input(step, operand);
    tn_tensor tensor = {bench.memory[value->slot] + value->offset, value->layout};
    int64_t n = tn_layout_count(&value->layout);
    for (int i = 0; i < 3 && n > 0; i++)
        tn_set_f64(&tensor,
                   i == 0   ? 0
                   : i == 1 ? n - 1
                            : random_between(0, n - 1),
                   values[(seed + (uint64_t)i) % 3]);
}

// The convolution, with a bias, too, and its transposes; `hostile`: the operand that has
// infinities and NaNs, -1: none. Of operand 1 these meet the zeros in which tiles have
// padding.
static void add_all_of(tn_dtype t, const struct convolution *c, int hostile)
{
    static tn_conv2d_attrs kept[256];
    static uint32_t num_kept;
    int64_t out[2];
    for (int i = 0; i < 2; i++)
        out[i] =
            (c->size[i] + 2 * c->padding[i] - c->dilation[i] * (c->window[i] - 1) - 1) /
                c->stride[i] +
            1;
    tn_conv2d_attrs *attrs[3];
    for (int i = 0; i < 3; i++) {
        attrs[i] = &kept[num_kept++ % 256];
        *attrs[i] = (tn_conv2d_attrs){.stride = both(c->stride),
                                      .padding = both(c->padding),
                                      .dilation = both(c->dilation),
                                      .groups = c->groups};
    }
    attrs[1]->extent = both(c->size);
    attrs[2]->extent = both(c->window);
    tn_layout x = shape_of(t, (int64_t[]){c->images, c->size[0], c->size[1], c->channels});
    tn_layout w = shape_of(
        t, (int64_t[]){c->filters, c->window[0], c->window[1], c->channels / c->groups});
    tn_layout y = shape_of(t, (int64_t[]){c->images, out[0], out[1], c->filters});
    tn_step *steps[] = {
        add_check(&(struct application){"nn.conv2d/1", attrs[0], 2, {x, w, y}, 1e-5, 0}),
        add_check(&(struct application){
            "nn.conv2d/1", attrs[0], 3, {x, w, LAYOUT(t, c->filters), y}, 1e-5, 0}),
        add_check(
            &(struct application){"nn.conv2d_input/1", attrs[1], 2, {y, w, x}, 1e-5, 0}),
        add_check(
            &(struct application){"nn.conv2d_weight/1", attrs[2], 2, {x, y, w}, 2e-5, 0})};
    for (int i = 0; i < 4 && hostile >= 0; i++)
        put_hostile(steps[i], (uint32_t)hostile);
}

// Sizes around those of matrices and tiles; channels of slices that have one filter
// element, and several; parts of the terms; each number of phases of strided gradients.
static const struct convolution on_units[] = {
    {1, {5, 4}, 32, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {0, {5, 4}, 32, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, {7, 9}, 8, 24, {3, 5}, {1, 1}, {1, 2}, {1, 1}, 1},
    {3, {6, 11}, 40, 72, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1},
    {1, {13, 8}, 64, 136, {3, 2}, {1, 2}, {2, 0}, {2, 1}, 1},
    {2, {9, 9}, 32, 32, {3, 3}, {2, 3}, {2, 2}, {2, 2}, 1},
    {2, {8, 8}, 48, 64, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {2, {8, 7}, 16, 24, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 1},
    {1, {10, 10}, 128, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 4},
    {2, {6, 6}, 48, 96, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 2},
    {1, {12, 3}, 16, 16, {5, 3}, {4, 3}, {3, 1}, {1, 1}, 1},
    {1, {4, 5}, 16, 16, {2, 2}, {2, 1}, {0, 3}, {3, 3}, 1},
    {1, {16, 16}, 256, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {5, {3, 3}, 24, 16, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
};

// In tiles of f32, and on matrix units where the device has them; software drivers have
// none, and get half of the table in f16, the other half in bf16.
static void check_in_tiles(tn_dtype t)
{
    bool is_large = getenv("TEST_LARGE") != NULL;
    for (size_t i = 0; i < sizeof(on_units) / sizeof(on_units[0]); i++) {
        if (!is_large && t != TN_F32 && i % 2 == (t == TN_BF16 ? 0 : 1))
            continue;
        for (int hostile = -1; hostile < 1; hostile++)
            add_all_of(t, &on_units[i], hostile);
        run_checks();
    }
}

Test(vulkan_convolutions, convolutions_of_f16_in_tiles_agree_with_the_reference)
{
    check_in_tiles(TN_F16);
}

Test(vulkan_convolutions, convolutions_of_bf16_in_tiles_agree_with_the_reference)
{
    check_in_tiles(TN_BF16);
}

Test(vulkan_convolutions, convolutions_of_f32_in_tiles_agree_with_the_reference)
{
    check_in_tiles(TN_F32);
}

// Channels with one filter each: fewer and more than a workgroup has, strides and dilations
// of each axis, windows that are larger than x. The last three are for GPUs.
static const struct convolution of_channels[] = {
    {2, {7, 9}, 8, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8},
    {2, {9, 8}, 20, 20, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 20},
    {3, {3, 2}, 12, 12, {3, 3}, {1, 2}, {2, 4}, {2, 2}, 12},
    {1, {6, 6}, 16, 16, {1, 1}, {1, 1}, {1, 0}, {1, 1}, 16},
    {0, {7, 9}, 8, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8},
    {1, {5, 13}, 132, 132, {3, 5}, {1, 1}, {0, 2}, {1, 1}, 132},
    {1, {8, 17}, 4, 4, {7, 7}, {1, 1}, {3, 3}, {1, 1}, 4},
    {40, {12, 12}, 36, 36, {5, 5}, {1, 3}, {1, 1}, {1, 1}, 36},
};

// Few channels on both sides, or an image's on one: bands of lines, whose last is shorter,
// runs of each length, and filters that reach beyond x.
static const struct convolution of_few[] = {
    {2, {31, 37}, 5, 11, {3, 4}, {2, 1}, {1, 3}, {1, 2}, 1},
    {1, {2, 23}, 2, 1, {4, 1}, {3, 1}, {5, 0}, {1, 1}, 1},
    {0, {4, 4}, 3, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, {9, 11}, 3, 40, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}, // an image's
    {3, {28, 28}, 1, 6, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1},
    {2, {14, 14}, 6, 16, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1},
    {1, {9, 7}, 3, 20, {3, 8}, {1, 2}, {0, 4}, {2, 1}, 1},
};

// The first of the table in all dtypes, the others in one; the last three are for GPUs.
static void check_all_of(const struct convolution *table, size_t count)
{
    static const tn_dtype floats[] = {TN_F32, TN_F16, TN_BF16, TN_F64};
    bool is_large = getenv("TEST_LARGE") != NULL;
    for (int t = 0; t < 4; t++)
        for (size_t i = 0; i < (is_large ? count : t == 0 ? count - 3 : 1); i++) {
            for (int hostile = -1; hostile < 2; hostile++)
                add_all_of(floats[t], &table[i], hostile);
            run_checks();
        }
}

Test(vulkan_convolutions, convolutions_of_single_channels_agree_with_the_reference)
{
    check_all_of(of_channels, sizeof(of_channels) / sizeof(of_channels[0]));
}

Test(vulkan_convolutions, convolutions_of_few_channels_agree_with_the_reference)
{
    check_all_of(of_few, sizeof(of_few) / sizeof(of_few[0]));
}

// Of channels in multiples of four: each tile, with the terms whole and in parts, of which
// the last may be shorter, or empty.
Test(vulkan_convolutions, convolutions_of_aligned_channels_agree_with_the_reference)
{
    static const tn_conv2d_attrs plain = {.groups = 1},
                                 same = {.padding = INTS(1, 1), .groups = 1},
                                 two = {.stride = INTS(2, 2),
                                        .padding = INTS(1, 1),
                                        .groups = 2};
    add_convolution(&same, 1, 7, 64, 40,
                    3); // 32x32, four parts of 160 terms, the last of 96
    add_convolution(&plain, 2, 5, 516, 36, 1);  // pointwise, in parts
    add_convolution(&plain, 1, 8, 1028, 32, 1); // eight parts, of which the last is empty
    add_convolution(&two, 3, 13, 128, 72, 3);   // groups
    add_convolution(&plain, 2, 32, 64, 128, 1); // 32x64
    if (getenv("TEST_LARGE")) {
        add_convolution(&plain, 4, 32, 64, 256, 1); // 64x128
        add_convolution(&same, 8, 32, 16, 256, 3);  // 128x128
    }
    run_checks();
}

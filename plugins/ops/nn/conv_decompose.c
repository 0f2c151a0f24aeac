// SPDX-License-Identifier: MIT
// Decompositions of the convolutions into matmul, for devices without a kernel: one product
// for each group and each tap (a position within the window), over the strided slice of x
// that the tap reads.
#include "conv.h"

// A position within the window, for one group, and the blocks that its product reads.
struct tap {
    int64_t row, column, group;
    struct window x; // of the padded image
    struct window w; // of the filters, whose first axis is taken whole
    struct window g; // of the output's channels
};

static struct tap conv_decompose_tap_at(const struct conv *c, int64_t row, int64_t column,
                                        int64_t group)
{
    int64_t per_group = c->filters / c->groups;
    return (struct tap){
        .row = row,
        .column = column,
        .group = group,
        .x = {row * c->dilation[0], column * c->dilation[1], group * c->group_channels,
              c->out[0], c->out[1], c->group_channels, c->stride[0], c->stride[1]},
        .w = {row, column, 0, 1, 1, c->group_channels, 1, 1},
        .g = {0, 0, group * per_group, c->out[0], c->out[1], per_group, 1, 1},
    };
}

// x in the dtype of accumulation: f32 for half floats.
static tn_array *conv_decompose_widened(const tn_build *build, tn_array *x)
{
    tn_dtype dtype = dtype_of(build, x);
    return tn_dtype_computed(dtype) == dtype ? x : cast(build, x, tn_dtype_computed(dtype));
}

static tn_status conv_decompose_narrowed(const tn_build *build, tn_array *x, tn_dtype dtype,
                                         tn_array **outputs)
{
    outputs[0] = dtype_of(build, x) == dtype ? x : cast(build, x, dtype);
    return built(outputs[0]);
}

// The number of output positions: rows of x and g as matrices.
static int64_t conv_decompose_points(const struct conv *c)
{
    return c->images * c->out[0] * c->out[1];
}

static tn_array *conv_decompose_as_matrix(const tn_build *build, const tn_array *x,
                                          int64_t rows, int64_t columns)
{
    int64_t extent[2] = {rows, columns};
    return with_shape(build, "base.reshape/1", x, 2, extent);
}

static tn_array *conv_decompose_transposed(const tn_build *build, const tn_array *x)
{
    return build->op(build, "base.transpose/1", TN_IN(x), TN_NO_ATTRS);
}

static tn_array *conv_decompose_product(const tn_build *build, const tn_array *a,
                                        const tn_array *b)
{
    return build->op(build, "base.matmul/1", TN_IN(a, b), TN_NO_ATTRS);
}

// The filters of the tap's group at its position: filters / groups by channels / groups.
static tn_array *filters_of(const tn_build *build, const struct conv *c, const tn_array *w,
                            const struct tap *tap)
{
    int64_t per_group = c->filters / c->groups, first = tap->group * per_group;
    tn_array *own_filters =
        build->op(build, "base.slice/1", TN_IN(w),
                  tn_attrs("start", TN_INTS(first), "stop", TN_INTS(first + per_group)));
    return conv_decompose_as_matrix(build, window_slice(build, own_filters, &tap->w),
                                    per_group, c->group_channels);
}

// A block of x or g: output positions by the block's channels.
static tn_array *points_of(const tn_build *build, const struct conv *c, const tn_array *x,
                           const struct window *window)
{
    return conv_decompose_as_matrix(build, window_slice(build, x, window),
                                    conv_decompose_points(c), window->channels);
}

// Runs the statement behind it for each tap of a group.
#define FOR_EACH_TAP(c, tap, group)                                                        \
    for (int64_t row_ = 0; row_ < (c)->window[0]; row_++)                                  \
        for (int64_t column_ = 0; column_ < (c)->window[1]; column_++)                     \
            for (struct tap tap = conv_decompose_tap_at(c, row_, column_, group),          \
                            *once_ = &tap;                                                 \
                 once_; once_ = NULL)

tn_status conv2d_decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    const tn_type *tx = build->type(rule->inputs[0]), *tw = build->type(rule->inputs[1]);
    struct conv c;
    if (!tx || !tw || conv_of_forward(build->host, rule->attrs, tx, tw, &c))
        return TN_ERR_ARGUMENT;
    int64_t whole[4] = {c.images, c.out[0], c.out[1], c.filters};
    int64_t part[4] = {c.images, c.out[0], c.out[1], c.filters / c.groups};
    tn_array *x =
        pad_image(build, conv_decompose_widened(build, rule->inputs[0]), c.padding, 0);
    tn_array *w = conv_decompose_widened(build, rule->inputs[1]);
    tn_array *out = c.groups > 1 ? zeros(build, dtype_of(build, x), 4, whole) : NULL;
    for (int64_t group = 0; group < c.groups; group++) {
        tn_array *sum = NULL;
        FOR_EACH_TAP(&c, tap, group)
        {
            tn_array *term = conv_decompose_product(
                build, points_of(build, &c, x, &tap.x),
                conv_decompose_transposed(build, filters_of(build, &c, w, &tap)));
            sum = sum ? add(build, sum, term) : term;
        }
        sum = with_shape(build, "base.reshape/1", sum, 4, part);
        struct tap any = conv_decompose_tap_at(&c, 0, 0, group);
        out = out ? window_update(build, out, sum, &any.g) : sum;
    }
    if (rule->num_inputs > 2 && rule->inputs[2])
        out = add(build, out, conv_decompose_widened(build, rule->inputs[2]));
    return conv_decompose_narrowed(build, out, tx->dtype, outputs);
}

tn_status conv2d_input_decompose(const tn_build *build, const tn_rule *rule,
                                 tn_array **outputs)
{
    const tn_type *tg = build->type(rule->inputs[0]), *tw = build->type(rule->inputs[1]);
    struct conv c;
    if (!tg || !tw || conv_of_input(build->host, rule->attrs, tg, tw, &c))
        return TN_ERR_ARGUMENT;
    int64_t padded[4] = {c.images, c.size[0] + 2 * c.padding[0],
                         c.size[1] + 2 * c.padding[1], c.channels};
    tn_array *g = conv_decompose_widened(build, rule->inputs[0]),
             *w = conv_decompose_widened(build, rule->inputs[1]);
    tn_array *zero_image = zeros(build, dtype_of(build, g), 4, padded), *out = NULL;
    for (int64_t group = 0; group < c.groups; group++)
        FOR_EACH_TAP(&c, tap, group)
        {
            int64_t part[4] = {c.images, c.out[0], c.out[1], c.group_channels};
            tn_array *term = conv_decompose_product(build, points_of(build, &c, g, &tap.g),
                                                    filters_of(build, &c, w, &tap));
            term = with_shape(build, "base.reshape/1", term, 4, part);
            term = window_update(build, zero_image, term, &tap.x);
            out = out ? add(build, out, term) : term;
        }
    return conv_decompose_narrowed(build, crop_image(build, out, c.padding), tg->dtype,
                                   outputs);
}

tn_status conv2d_weight_decompose(const tn_build *build, const tn_rule *rule,
                                  tn_array **outputs)
{
    const tn_type *tx = build->type(rule->inputs[0]), *tg = build->type(rule->inputs[1]);
    struct conv c;
    if (!tx || !tg || conv_of_weight(build->host, rule->attrs, tx, tg, &c))
        return TN_ERR_ARGUMENT;
    int64_t per_group = c.filters / c.groups;
    int64_t whole[4] = {c.filters, c.window[0], c.window[1], c.group_channels};
    int64_t part[4] = {per_group, 1, 1, c.group_channels};
    tn_array *x =
        pad_image(build, conv_decompose_widened(build, rule->inputs[0]), c.padding, 0);
    tn_array *all = conv_decompose_widened(build, rule->inputs[1]);
    tn_array *out = zeros(build, dtype_of(build, x), 4, whole);
    for (int64_t group = 0; group < c.groups; group++)
        FOR_EACH_TAP(&c, tap, group)
        {
            tn_array *g = points_of(build, &c, all, &tap.g);
            tn_array *term =
                conv_decompose_product(build, conv_decompose_transposed(build, g),
                                       points_of(build, &c, x, &tap.x));
            term = with_shape(build, "base.reshape/1", term, 4, part);
            tn_ints start = {4, 1, {group * per_group, tap.row, tap.column, 0}};
            tn_ints stop = {
                4,
                1,
                {(group + 1) * per_group, tap.row + 1, tap.column + 1, c.group_channels}};
            out = build->op(build, "base.slice_update/1", TN_IN(out, term),
                            tn_attrs("start", &start, "stop", &stop));
        }
    return conv_decompose_narrowed(build, out, tx->dtype, outputs);
}

// SPDX-License-Identifier: MIT
// mean_pool2d, which average pooling is made of, and its transpose: primitives with
// kernels. Both are linear, and each is the other's derivative.
#include "images.h"
#include <tenon/ops/rules.h>

static tn_status read_mean_pool(const tn_host *host, const tn_mean_pool2d_attrs *attrs,
                                struct spatial axes[2])
{
    const char *const names[] = {"window", "stride", "before", "after", "extent"};
    const tn_ints *lists[] = {&attrs->window, &attrs->stride, &attrs->before, &attrs->after,
                              &attrs->extent};
    int64_t pairs[5][2];
    for (int i = 0; i < 5; i++) {
        tn_status status = read_pair(host, names[i], lists[i], 0, i < 2 ? 1 : 0, pairs[i]);
        if (status)
            return status;
    }
    for (int i = 0; i < 2; i++)
        axes[i] = (struct spatial){.window = pairs[0][i],
                                   .stride = pairs[1][i],
                                   .before = pairs[2][i],
                                   .after = pairs[3][i],
                                   .out = pairs[4][i]};
    return TN_OK;
}

// Each window begins in x or in its padding, so that positions fit 32 bits.
static tn_status check_windows(const tn_host *host, const struct spatial axes[2])
{
    for (int i = 0; i < 2; i++) {
        const struct spatial *a = &axes[i];
        if (a->window > INT32_MAX / 4 || a->stride > INT32_MAX / 4 ||
            a->before > INT32_MAX / 4 || a->after > INT32_MAX / 4 ||
            a->size > INT32_MAX / 4 ||
            (a->out - 1) * a->stride - a->before > a->size + a->after)
            return host->fail(
                host, TN_ERR_ARGUMENT,
                "%" PRId64 " windows of %" PRId64 ", %" PRId64 " apart from -%" PRId64
                " on, expected all to begin in %" PRId64 " elements and %" PRId64
                " behind them, each number at most %d",
                a->out, a->window, a->stride, a->before, a->size, a->after, INT32_MAX / 4);
    }
    return TN_OK;
}

// The type of the result, whose rows and columns are `extent`.
static tn_status mean_pool_type(const tn_infer *infer, int is_input, tn_type *types)
{
    const tn_type *x = &infer->types[0];
    struct spatial axes[2];
    tn_status status = check_images(infer->host, "x", x, 2, -1);
    if (status == TN_OK)
        status = read_mean_pool(infer->host, infer->attrs, axes);
    if (status)
        return status;
    const tn_type out = {
        x->dtype, 4, {x->extent[0], axes[0].out, axes[1].out, x->extent[3]}};
    for (int i = 0; i < 2; i++) {
        axes[i].size = (is_input ? &out : x)->extent[i + 1];
        axes[i].out = (is_input ? x : &out)->extent[i + 1];
    }
    status = check_windows(infer->host, axes);
    if (status == TN_OK)
        types[0] = out;
    return status;
}

static tn_status mean_pool2d_infer(const tn_infer *infer, tn_type *types)
{
    return mean_pool_type(infer, 0, types);
}

static tn_status mean_pool2d_input_infer(const tn_infer *infer, tn_type *types)
{
    return mean_pool_type(infer, 1, types);
}

static tn_attr_list mean_pool_attrs(const tn_mean_pool2d_attrs *attrs,
                                    const tn_ints *extent, tn_attr items[7])
{
    const char *const names[] = {"window", "stride", "before", "after", "extent"};
    const tn_ints *lists[] = {&attrs->window, &attrs->stride, &attrs->before, &attrs->after,
                              extent};
    for (int i = 0; i < 5; i++)
        items[i] = (tn_attr){.name = names[i], .kind = TN_ATTR_INTS, .ints = lists[i]};
    items[5] = (tn_attr)TN_ATTR_INIT("count_padding", attrs->count_padding);
    items[6] = (tn_attr)TN_ATTR_INIT("divisor", attrs->divisor);
    return TN_ATTR_LIST(items, 7);
}

// Applies `primitive` to x; the result has the rows and columns of `like`.
static tn_status mean_pool_as(const tn_build *build, const tn_rule *rule,
                              const char *primitive, tn_array *x, const tn_array *like,
                              tn_array **out)
{
    const tn_type *type = build->type(like);
    tn_attr items[7];
    if (!type)
        return TN_ERR_ARGUMENT;
    const tn_ints extent = {2, 1, {type->extent[1], type->extent[2]}};
    *out =
        build->op(build, primitive, TN_IN(x), mean_pool_attrs(rule->attrs, &extent, items));
    return built(*out);
}

// --- decompositions ---------------------------------------------------------------------

// 1 / (number of elements that a window counts), for windows of one axis from number
// `first` on, along an axis with `behind` axes behind it.
static tn_array *mean_pool_shares_of(const tn_build *build, const struct spatial *a,
                                     int64_t count_padding, int32_t behind)
{
    return build->expr(build,
                       "i -> b = i * stride - before; e = min(b + window, end); "
                       "1 / max(e - max(b, begin), 1)",
                       TN_IN(counted(build, a->out, behind)),
                       tn_attrs("stride", a->stride, "before", a->before, "window",
                                a->window, "end", a->size + (count_padding ? a->after : 0),
                                "begin", count_padding ? -a->before : 0));
}

// x, one element for each window, divided by the number of elements that each window
// counts.
static tn_array *shared_out(const tn_build *build, const tn_rule *rule, tn_array *x,
                            const struct spatial axes[2])
{
    const tn_mean_pool2d_attrs *attrs = rule->attrs;
    if (attrs->divisor)
        return build->expr(build, "x -> x / divisor", TN_IN(x),
                           tn_attrs("divisor", attrs->divisor));
    tn_dtype dtype = dtype_of(build, x);
    tn_array *rows =
        cast(build, mean_pool_shares_of(build, &axes[0], attrs->count_padding, 2), dtype);
    tn_array *columns =
        cast(build, mean_pool_shares_of(build, &axes[1], attrs->count_padding, 1), dtype);
    return build->expr(build, "x, r, c -> x * (r * c)", TN_IN(x, rows, columns),
                       TN_NO_ATTRS);
}

// The rows and columns that all windows cover, padding included.
static void cover_windows(struct spatial axes[2], int64_t behind[2])
{
    for (int i = 0; i < 2; i++) {
        int64_t end = axes[i].out ? (axes[i].out - 1) * axes[i].stride + axes[i].window : 0;
        behind[i] = end - axes[i].before - axes[i].size;
        behind[i] = behind[i] > 0 ? behind[i] : 0;
    }
}

static struct window tap_of(const struct spatial axes[2], int64_t row, int64_t column,
                            int64_t channels)
{
    return (struct window){
        row, column, 0, axes[0].out, axes[1].out, channels, axes[0].stride, axes[1].stride};
}

static tn_array *with_zeros(const tn_build *build, tn_array *x,
                            const struct spatial axes[2], const int64_t behind[2])
{
    struct spatial around[MOST_SPATIAL] = {{.before = axes[0].before, .after = behind[0]},
                                           {.before = axes[1].before, .after = behind[1]}};
    return padded_images(build, x, 2, around, 0);
}

static tn_array *zeros_of(const tn_build *build, const tn_type *like, int64_t rows,
                          int64_t columns)
{
    return zeros(build, like->dtype, 4,
                 (int64_t[]){like->extent[0], rows, columns, like->extent[3]});
}

DECOMPOSE(mean_pool2d)
{
    const tn_type *type = build->type(rule->inputs[0]);
    struct spatial axes[2];
    int64_t behind[2];
    if (!type || read_mean_pool(build->host, rule->attrs, axes))
        return TN_ERR_ARGUMENT;
    tn_dtype dtype = type->dtype;
    int64_t channels = type->extent[3];
    tn_array *x = rule->inputs[0], *sum = NULL;
    axes[0].size = type->extent[1];
    axes[1].size = type->extent[2];
    cover_windows(axes, behind);
    if (axes[0].out == 0 || axes[1].out == 0) { // the result has no element
        outputs[0] = zeros_of(build, type, axes[0].out, axes[1].out);
        return built(outputs[0]);
    }
    if (tn_dtype_computed(dtype) != dtype)
        x = cast(build, x, tn_dtype_computed(dtype));
    x = with_zeros(build, x, axes, behind);
    for (int64_t row = 0; row < axes[0].window; row++)
        for (int64_t column = 0; column < axes[1].window; column++) {
            struct window tap = tap_of(axes, row, column, channels);
            tn_array *part = window_slice(build, x, &tap);
            sum = sum ? add(build, sum, part) : part;
        }
    tn_array *out = shared_out(build, rule, sum, axes);
    outputs[0] = dtype_of(build, out) == dtype ? out : cast(build, out, dtype);
    return built(outputs[0]);
}

DECOMPOSE(mean_pool2d_input)
{
    const tn_type *type = build->type(rule->inputs[0]);
    struct spatial axes[2];
    int64_t behind[2];
    if (!type || read_mean_pool(build->host, rule->attrs, axes))
        return TN_ERR_ARGUMENT;
    tn_dtype dtype = type->dtype;
    int64_t images = type->extent[0], channels = type->extent[3];
    tn_array *g = rule->inputs[0];
    for (int i = 0; i < 2; i++) {
        axes[i].size = axes[i].out;
        axes[i].out = type->extent[i + 1];
    }
    cover_windows(axes, behind);
    if (axes[0].out == 0 || axes[1].out == 0 || axes[0].size == 0 || axes[1].size == 0) {
        outputs[0] = zeros_of(build, type, axes[0].size, axes[1].size);
        return built(outputs[0]);
    }
    if (tn_dtype_computed(dtype) != dtype)
        g = cast(build, g, tn_dtype_computed(dtype));
    g = shared_out(build, rule, g, axes);
    int64_t whole[4] = {images, axes[0].before + axes[0].size + behind[0],
                        axes[1].before + axes[1].size + behind[1], channels};
    tn_array *none = zeros(build, dtype_of(build, g), 4, whole), *sum = none;
    for (int64_t row = 0; row < axes[0].window; row++)
        for (int64_t column = 0; column < axes[1].window; column++) {
            struct window tap = tap_of(axes, row, column, channels);
            sum = add(build, sum, window_update(build, none, g, &tap));
        }
    struct window inside = {axes[0].before, axes[1].before, 0, axes[0].size,
                            axes[1].size,   channels,       1, 1};
    tn_array *out = window_slice(build, sum, &inside);
    outputs[0] = dtype_of(build, out) == dtype ? out : cast(build, out, dtype);
    return built(outputs[0]);
}

// --- derivatives ------------------------------------------------------------------------

TN_VJP(mean_pool2d_vjp)
{
    return mean_pool_as(build, rule, "nn.mean_pool2d_input/1", cotangents[0],
                        rule->inputs[0], gradients);
}

TN_JVP(mean_pool2d_jvp)
{
    return mean_pool_as(build, rule, "nn.mean_pool2d/1", tangents[0], rule->outputs[0],
                        out_tangents);
}

TN_VJP(mean_pool2d_input_vjp)
{
    return mean_pool_as(build, rule, "nn.mean_pool2d/1", cotangents[0], rule->inputs[0],
                        gradients);
}

TN_JVP(mean_pool2d_input_jvp)
{
    return mean_pool_as(build, rule, "nn.mean_pool2d_input/1", tangents[0],
                        rule->outputs[0], out_tangents);
}

// The batch is merged into the axis of images.
static tn_status mean_pool_batch(const tn_build *build, const tn_rule *rule,
                                 const char *primitive, int32_t axis, int64_t size,
                                 tn_array **outputs)
{
    tn_array *x = merge_batch(build, rule->inputs[0], axis, size), *out = NULL;
    if (!x)
        return TN_ERR_ARGUMENT;
    tn_status status = mean_pool_as(build, rule, primitive, x, rule->outputs[0], &out);
    outputs[0] = split_batch(build, out, rule->outputs[0], size);
    return status ? status : built(outputs[0]);
}

TN_VMAP(mean_pool2d_vmap)
{
    out_axes[0] = 0;
    return mean_pool_batch(build, rule, "nn.mean_pool2d/1", axes[0], size, outputs);
}

TN_VMAP(mean_pool2d_input_vmap)
{
    out_axes[0] = 0;
    return mean_pool_batch(build, rule, "nn.mean_pool2d_input/1", axes[0], size, outputs);
}

// --- records ----------------------------------------------------------------------------

#define PAIR_FIELD(member, text)                                                           \
    TN_REQUIRED_FIELD(tn_mean_pool2d_attrs, member, TN_ATTR_INTS, text)
static const tn_attr_field mean_pool2d_fields[] = {
    PAIR_FIELD(window, "rows and columns of a window"),
    PAIR_FIELD(stride, "distance of windows"),
    PAIR_FIELD(before, "zeros above and left of x"),
    PAIR_FIELD(after, "zeros below and right of x that count"),
    PAIR_FIELD(extent, "rows and columns of the result"),
    TN_BOOL_FIELD(tn_mean_pool2d_attrs, count_padding, 1,
                  "zeros around x count as elements"),
    TN_I64_FIELD(tn_mean_pool2d_attrs, divisor, 0,
                 "what sums are divided by; 0: the elements that count"),
};
static const tn_input_info mean_pool2d_inputs[] = {
    {"x", "N, H, W, C: images, channels last", 0, TN_FLOAT_DTYPES},
};

#define MEAN_POOL(name, sentence)                                                          \
    const tn_primitive nn_##name = {                                                       \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "nn." #name "/1",                                                            \
        .doc = sentence,                                                                   \
        TN_INPUTS(mean_pool2d_inputs),                                                     \
        .attrs = TN_ATTR_TABLE(tn_mean_pool2d_attrs, mean_pool2d_fields),                  \
        .infer = name##_infer,                                                             \
        .decompose = name##_decompose,                                                     \
        .vjp = name##_vjp,                                                                 \
        .jvp = name##_jvp,                                                                 \
        .vmap = name##_vmap,                                                               \
    }
MEAN_POOL(mean_pool2d, "The mean of each window, channel by channel: see avg_pool2d.");
MEAN_POOL(mean_pool2d_input,
          "mean_pool2d's transpose: each element is shared out among its window's.");

// SPDX-License-Identifier: MIT
// Max pooling that gives positions of maxima, or whose windows have gaps, by gathers of all
// elements of each window; and its inverse, which puts elements at such positions.
#include "maxima.h"
#include <tenon/ops/rules.h>

// The position in its axis of element k of window i. A position beyond the axis becomes the
// window's first or last position within.
static tn_array *nn_maxima_positions_of(const tn_build *build, const struct spatial *a,
                                        int32_t behind_i, int32_t behind_k)
{
    tn_array *i = counted(build, a->out, behind_i);
    tn_array *k = counted(build, a->window, behind_k);
    if (!a->stride) // windows that divide the axis, as in adaptive pooling
        return build->expr(build,
                           "i, k -> b = i * size // out; "
                           "e = ((i + 1) * size + out - 1) // out; min(b + k, e - 1)",
                           TN_IN(i, k), tn_attrs("size", a->size, "out", a->out));
    return build->expr(build,
                       "i, k -> p = i * stride - before + k * d; "
                       "p < 0 ? p + d * ((d - 1 - p) // d) : "
                       "p >= size ? p - d * ((p - size + d) // d) : p",
                       TN_IN(i, k),
                       tn_attrs("stride", a->stride, "before", a->before, "d", a->dilation,
                                "size", a->size));
}

tn_status maxima_of(const tn_build *build, tn_array *x, int64_t images, int64_t channels,
                    int32_t n, const struct spatial axes[MOST_SPATIAL], tn_array *out[2])
{
    tn_array *table = NULL;
    int64_t size = 1, windows = 1, elements = 1;
    tn_status status = check_elements(build->host, n, axes);
    if (status)
        return status;
    for (int32_t i = 0; i < n; i++) {
        tn_array *positions =
            nn_maxima_positions_of(build, &axes[i], 2 * n - 1 - i, n - 1 - i);
        table = table ? build->expr(build, "t, p -> t * size + p", TN_IN(table, positions),
                                    tn_attrs("size", axes[i].size))
                      : positions;
        size *= axes[i].size;
        windows *= axes[i].out;
        elements *= axes[i].window;
    }
    table = with_shape(build, "base.reshape/1", table, 2, (int64_t[]){windows, elements});
    x = with_shape(build, "base.reshape/1", x, 3, (int64_t[]){images, size, channels});
    tn_array *all =
        build->op(build, "base.take/1", TN_IN(x, table), tn_attrs("axis", (int64_t)1));
    tn_array *best =
        build->op(build, "base.argmax/1", TN_IN(all), tn_attrs("axis", (int64_t)2));
    best = build->expr(build, "i, b -> i * n + b", TN_IN(counted(build, windows, 1), best),
                       tn_attrs("n", elements));
    table = with_shape(build, "base.reshape/1", table, 1, (int64_t[]){windows * elements});
    out[1] =
        build->op(build, "base.take/1", TN_IN(table, best), tn_attrs("axis", (int64_t)0));
    out[0] = build->op(build, "base.take_along_axis/1", TN_IN(x, out[1]),
                       tn_attrs("axis", (int64_t)1));
    return out[0] && out[1] ? TN_OK : TN_ERR_ARGUMENT;
}

// --- max_unpool -------------------------------------------------------------------------

typedef struct {
    tn_ints window, stride, padding, output_size;
    int64_t axis;
} unpool_attrs;
static const tn_attr_field unpool_fields[] = {
    TN_REQUIRED_FIELD(unpool_attrs, window, TN_ATTR_INTS,
                      "extents of a window, one for all or one an axis"),
    TN_INTS_FIELD(unpool_attrs, stride, "distance of windows; not given: the window"),
    TN_INTS_FIELD(unpool_attrs, padding,
                  "elements around: one for all, one an axis, or two an axis; 0"),
    TN_INTS_FIELD(unpool_attrs, output_size,
                  "extents of the result; not given: the least that x came from"),
    AXIS_FIELD(unpool_attrs),
};
static const tn_input_info unpool_inputs[] = {
    {"x", "N, ..., C: maxima, channels last, or axis 1", 0, TN_FLOAT_DTYPES},
    {"indices", "of x's shape: where in its image or volume each one was",
     TN_INPUT_CONSTANT, TN_INTEGER_DTYPES},
};

static tn_status unpool_extents(const tn_build *build, const unpool_attrs *attrs, int32_t n,
                                struct spatial axes[MOST_SPATIAL])
{
    const tn_host *host = build->host;
    int64_t window[MOST_SPATIAL], stride[MOST_SPATIAL], given[MOST_SPATIAL];
    tn_status status = read_numbers(host, "window", &attrs->window, n, 0, 1, window);
    if (status == TN_OK)
        status = read_numbers(host, "stride", &attrs->stride, n, 1, 1, stride);
    if (status == TN_OK)
        status = read_padding(host, &attrs->padding, n, axes);
    if (status == TN_OK)
        status = read_numbers(host, "output_size", &attrs->output_size, n, 1, 1, given);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        struct spatial *a = &axes[i];
        a->stride = attrs->stride.given ? stride[i] : window[i];
        a->out = attrs->output_size.given
                     ? given[i]
                     : (a->size - 1) * a->stride - a->before - a->after + window[i];
        if (a->out < 1 || a->out > INT32_MAX)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "an axis of %" PRId64 " elements would have %" PRId64
                              ", expected 1 to %d",
                              a->size, a->out, INT32_MAX);
    }
    return status ? status : check_elements(host, n, axes);
}

static tn_status max_unpool(const tn_build *build, const tn_rule *rule, int32_t n,
                            tn_array **outputs)
{
    const unpool_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    struct spatial axes[MOST_SPATIAL] = {{0}};
    int32_t first = attrs->axis == 1 ? 2 : 1;
    int64_t flat[3] = {x->extent[0], 1, attrs->axis == 1 ? 1 : 0}, whole[3];
    tn_status status = check_images(build->host, "x", x, n, attrs->axis);
    if (status == TN_OK)
        status = check_extents(build->host, "indices", build->type(rule->inputs[1]),
                               x->rank, x->extent);
    for (int32_t i = 0; i < n && status == TN_OK; i++)
        axes[i].size = x->extent[first + i];
    if (status == TN_OK)
        status = unpool_extents(build, attrs, n, axes);
    if (status)
        return status;
    tn_ints shape = tn_extents(build, rule->inputs[0]);
    flat[0] *= attrs->axis == 1 ? x->extent[1] : 1;
    flat[2] = attrs->axis == 1 ? 1 : x->extent[n + 1];
    memcpy(whole, flat, sizeof(whole));
    for (int32_t i = 0; i < n; i++) {
        flat[1] *= axes[i].size;
        whole[1] *= axes[i].out;
        shape.value[first + i] = axes[i].out;
    }
    tn_array *positions = with_shape(build, "base.reshape/1", rule->inputs[1], 3, flat);
    tn_array *values = with_shape(build, "base.reshape/1", rule->inputs[0], 3, flat);
    tn_array *y = build->op(build, "base.put_along_axis/1",
                            TN_IN(zeros(build, x->dtype, 3, whole), positions, values),
                            tn_attrs("axis", (int64_t)1));
    outputs[0] = build->op(build, "base.reshape/1", TN_IN(y),
                           tn_attrs("shape", (const tn_ints *)&shape));
    return built(outputs[0]);
}

#define MAX_UNPOOL(name, n)                                                                \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return max_unpool(build, rule, n, outputs);                                        \
    }                                                                                      \
    COMPOSITE(name, #name "/1", "Zeros, and each element of x where indices say.",         \
              TN_INPUTS(unpool_inputs),                                                    \
              .attrs = TN_ATTR_TABLE(unpool_attrs, unpool_fields))
MAX_UNPOOL(max_unpool1d, 1);
MAX_UNPOOL(max_unpool2d, 2);
MAX_UNPOOL(max_unpool3d, 3);

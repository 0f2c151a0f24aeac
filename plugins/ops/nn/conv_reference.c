// SPDX-License-Identifier: MIT
// References of the convolutions as plain loops: the definition of the three primitives.
#include "conv.h"

static tn_type conv_reference_type_of(const tn_tensor *tensor)
{
    tn_type type = {.dtype = tensor->layout.dtype, .rank = tensor->layout.rank};
    memcpy(type.extent, tensor->layout.extent, sizeof(type.extent));
    return type;
}

static double conv_reference_element(const tn_tensor *t, int64_t a, int64_t b, int64_t c,
                                     int64_t d)
{
    return tn_get_f64(t, tn_offset_at(&t->layout, (const int64_t[]){a, b, c, d}));
}

// The row and column of x that output position `at` reads through tap `window`. Returns 0
// when they are in the padding.
static int tap_position(const struct conv *c, const int64_t *at, const int64_t *window,
                        int64_t out[2])
{
    for (int i = 0; i < 2; i++) {
        out[i] = at[i] * c->stride[i] + window[i] * c->dilation[i] - c->padding[i];
        if (out[i] < 0 || out[i] >= c->size[i])
            return 0;
    }
    return 1;
}

// index: image, row, column, filter
static double conv2d_at(const struct conv *c, const tn_tensor *x, const tn_tensor *w,
                        const int64_t *index)
{
    int64_t window[2] = {0}, at[2];
    int64_t first = index[3] / (c->filters / c->groups) * c->group_channels;
    double sum = 0;
    do {
        if (!tap_position(c, &index[1], window, at))
            continue;
        for (int64_t k = 0; k < c->group_channels; k++)
            sum += conv_reference_element(x, index[0], at[0], at[1], first + k) *
                   conv_reference_element(w, index[3], window[0], window[1], k);
    } while (tn_index_next(2, c->window, window));
    return sum;
}

tn_status conv2d_reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *w = &call->inputs[1], *out = &call->outputs[0];
    const tn_tensor *bias =
        call->num_inputs > 2 && call->inputs[2].data ? &call->inputs[2] : NULL;
    tn_type tx = conv_reference_type_of(x), tw = conv_reference_type_of(w);
    int64_t index[TN_MAX_RANK] = {0};
    struct conv c;
    tn_status status = conv_of_forward(call->host, call->attrs, &tx, &tw, &c);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    do {
        double sum = conv2d_at(&c, x, w, index);
        if (bias)
            sum += tn_get_f64(bias, tn_offset_at(&bias->layout, &index[3]));
        tn_set_f64(out, tn_offset_at(&out->layout, index), sum);
    } while (tn_index_next(4, out->layout.extent, index));
    return TN_OK;
}

// The output row (i = 0) or column (i = 1) that reads row or column `at` of x through tap
// `window`. -1: none.
static int64_t reading_output(const struct conv *c, int i, int64_t at, int64_t window)
{
    int64_t from = at + c->padding[i] - window * c->dilation[i];
    if (from < 0 || from % c->stride[i] != 0 || from / c->stride[i] >= c->out[i])
        return -1;
    return from / c->stride[i];
}

// index: image, row, column, channel
static double conv2d_input_at(const struct conv *c, const tn_tensor *g, const tn_tensor *w,
                              const int64_t *index)
{
    int64_t window[2] = {0}, per_group = c->filters / c->groups;
    int64_t group = index[3] / c->group_channels, k = index[3] % c->group_channels;
    double sum = 0;
    do {
        int64_t row = reading_output(c, 0, index[1], window[0]);
        int64_t column = reading_output(c, 1, index[2], window[1]);
        if (row < 0 || column < 0)
            continue;
        for (int64_t o = group * per_group; o < (group + 1) * per_group; o++)
            sum += conv_reference_element(g, index[0], row, column, o) *
                   conv_reference_element(w, o, window[0], window[1], k);
    } while (tn_index_next(2, c->window, window));
    return sum;
}

tn_status conv2d_input_reference(const tn_cpu_call *call)
{
    const tn_tensor *g = &call->inputs[0], *w = &call->inputs[1], *out = &call->outputs[0];
    tn_type tg = conv_reference_type_of(g), tw = conv_reference_type_of(w);
    int64_t index[TN_MAX_RANK] = {0};
    struct conv c;
    tn_status status = conv_of_input(call->host, call->attrs, &tg, &tw, &c);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    do
        tn_set_f64(out, tn_offset_at(&out->layout, index),
                   conv2d_input_at(&c, g, w, index));
    while (tn_index_next(4, out->layout.extent, index));
    return TN_OK;
}

// index: filter, row, column, channel within the group
static double conv2d_weight_at(const struct conv *c, const tn_tensor *x, const tn_tensor *g,
                               const int64_t *index)
{
    int64_t from[3] = {0}, at[2], extent[3] = {c->images, c->out[0], c->out[1]};
    int64_t channel = index[0] / (c->filters / c->groups) * c->group_channels + index[3];
    double sum = 0;
    if (c->images == 0)
        return 0;
    do {
        if (tap_position(c, &from[1], &index[1], at))
            sum += conv_reference_element(x, from[0], at[0], at[1], channel) *
                   conv_reference_element(g, from[0], from[1], from[2], index[0]);
    } while (tn_index_next(3, extent, from));
    return sum;
}

tn_status conv2d_weight_reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *g = &call->inputs[1], *out = &call->outputs[0];
    tn_type tx = conv_reference_type_of(x), tg = conv_reference_type_of(g);
    int64_t index[TN_MAX_RANK] = {0};
    struct conv c;
    tn_status status = conv_of_weight(call->host, call->attrs, &tx, &tg, &c);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    do
        tn_set_f64(out, tn_offset_at(&out->layout, index),
                   conv2d_weight_at(&c, x, g, index));
    while (tn_index_next(4, out->layout.extent, index));
    return TN_OK;
}

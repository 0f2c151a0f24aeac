// SPDX-License-Identifier: MIT
// Batching rules: the same primitive with the batch as one more leading axis. Convolutions
// and pooling merge the batch into the axis of images or, where filters differ between
// slices, into the axis of channels, with separate groups for each slice.
#include "conv.h"
#include "pool.h"
#include <tenon/ops/rules.h>

// --- graph building ---------------------------------------------------------------------

// x with axes `axis` and `axis` + 1 merged.
static tn_array *nn_batch_merged(const tn_build *build, tn_array *x, int32_t axis)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    int64_t extent[TN_MAX_RANK];
    for (int32_t i = 0; i < type->rank - 1; i++)
        extent[i] = type->extent[i + (i > axis)] * (i == axis ? type->extent[i + 1] : 1);
    return with_shape(build, "base.reshape/1", x, type->rank - 1, extent);
}

// Splits axis `axis` of the result x, into which the batch was merged: gives the rule's
// output and its batch axis.
static tn_status nn_batch_split(const tn_build *build, const tn_rule *rule, tn_array *x,
                                int32_t axis, int64_t size, tn_array **outputs,
                                int32_t *out_axes)
{
    const tn_type *slice = build->type(rule->outputs[0]);
    int64_t extent[TN_MAX_RANK];
    for (int32_t i = 0; i <= slice->rank; i++)
        extent[i] = i == axis ? size : slice->extent[i - (i > axis)];
    outputs[0] = with_shape(build, "base.reshape/1", x, slice->rank + 1, extent);
    out_axes[0] = axis;
    return built(outputs[0]);
}

// x with its batch merged into the axis of images.
static tn_array *as_images(const tn_build *build, tn_array *x, int32_t axis, int64_t size)
{
    return nn_batch_merged(build, tn_batch_whole(build, x, axis, size), 0);
}

// x with its batch merged into the axis of channels: slice b's channels are adjacent,
// behind those of slice b - 1.
static tn_array *as_channels(const tn_build *build, tn_array *x, int32_t axis, int64_t size)
{
    return nn_batch_merged(
        build, tn_move_axis(build, tn_batch_whole(build, x, axis, size), 0, 3), 3);
}

// --- cross_entropy ----------------------------------------------------------------------

tn_status cross_entropy_vmap(const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, int64_t size, tn_array **outputs,
                             int32_t *out_axes)
{
    outputs[0] = build->op(build, "nn.cross_entropy/1",
                           TN_IN(tn_batch_whole(build, rule->inputs[0], axes[0], size),
                                 tn_batch_whole(build, rule->inputs[1], axes[1], size)),
                           TN_NO_ATTRS);
    out_axes[0] = 0;
    return built(outputs[0]);
}

// --- convolutions -----------------------------------------------------------------------

// Applies a convolution with the rule's attributes and `slices` times its groups.
static tn_array *conv_op(const tn_build *build, const char *primitive,
                         const tn_conv2d_attrs *attrs, int64_t slices,
                         tn_array *const *inputs, uint64_t num_inputs)
{
    const char *const names[] = {"stride", "padding", "dilation", "extent"};
    const tn_ints *lists[] = {&attrs->stride, &attrs->padding, &attrs->dilation,
                              &attrs->extent};
    int64_t groups = attrs->groups * slices;
    tn_attr items[5] = {TN_ATTR_INIT("groups", groups)};
    uint64_t n = 1;
    for (int i = 0; i < 4; i++)
        if (lists[i]->given)
            items[n++] =
                (tn_attr){.name = names[i], .kind = TN_ATTR_INTS, .ints = lists[i]};
    return build->op(build, primitive, (const tn_array *const *)inputs, num_inputs,
                     TN_ATTR_LIST(items, n));
}

// The result of a batch of 0 slices: a convolution has at least one group.
static tn_status no_slices(const tn_build *build, const tn_rule *rule, tn_array **outputs,
                           int32_t *out_axes)
{
    const tn_type *slice = build->type(rule->outputs[0]);
    int64_t extent[5] = {0, slice->extent[0], slice->extent[1], slice->extent[2],
                         slice->extent[3]};
    outputs[0] = zeros(build, slice->dtype, 5, extent);
    out_axes[0] = 0;
    return built(outputs[0]);
}

// Whether one convolution without groups computes all slices: x has no batch, so the
// filters of all slices are filters of the same x.
static int nn_batch_is_shared(const tn_rule *rule, int32_t axis)
{
    const tn_conv2d_attrs *attrs = rule->attrs;
    return axis < 0 && attrs->groups == 1;
}

tn_status conv2d_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes)
{
    tn_array *in[3] = {rule->inputs[0], rule->inputs[1], NULL};
    uint32_t count = rule->num_inputs > 2 && rule->inputs[2] ? 3 : 2;
    if (count == 3)
        in[2] = rule->inputs[2];
    if (size == 0)
        return no_slices(build, rule, outputs, out_axes);
    if (axes[1] < 0 && (count == 2 || axes[2] < 0)) {
        in[0] = as_images(build, in[0], axes[0], size);
        tn_array *out = conv_op(build, "nn.conv2d/1", rule->attrs, 1, in, count);
        return nn_batch_split(build, rule, out, 0, size, outputs, out_axes);
    }
    int shared = nn_batch_is_shared(rule, axes[0]);
    if (!shared)
        in[0] = as_channels(build, in[0], axes[0], size);
    for (uint32_t i = 1; i < count; i++)
        in[i] = nn_batch_merged(build, tn_batch_whole(build, in[i], axes[i], size), 0);
    tn_array *out =
        conv_op(build, "nn.conv2d/1", rule->attrs, shared ? 1 : size, in, count);
    return nn_batch_split(build, rule, out, 3, size, outputs, out_axes);
}

tn_status conv2d_input_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                            int64_t size, tn_array **outputs, int32_t *out_axes)
{
    tn_array *in[2] = {rule->inputs[0], rule->inputs[1]};
    if (size == 0)
        return no_slices(build, rule, outputs, out_axes);
    if (axes[1] < 0) {
        in[0] = as_images(build, in[0], axes[0], size);
        tn_array *out = conv_op(build, "nn.conv2d_input/1", rule->attrs, 1, in, 2);
        return nn_batch_split(build, rule, out, 0, size, outputs, out_axes);
    }
    in[0] = as_channels(build, in[0], axes[0], size);
    in[1] = nn_batch_merged(build, tn_batch_whole(build, in[1], axes[1], size), 0);
    tn_array *out = conv_op(build, "nn.conv2d_input/1", rule->attrs, size, in, 2);
    return nn_batch_split(build, rule, out, 3, size, outputs, out_axes);
}

tn_status conv2d_weight_vmap(const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, int64_t size, tn_array **outputs,
                             int32_t *out_axes)
{
    tn_array *in[2] = {rule->inputs[0], rule->inputs[1]};
    if (size == 0)
        return no_slices(build, rule, outputs, out_axes);
    int shared = nn_batch_is_shared(rule, axes[0]);
    if (!shared)
        in[0] = as_channels(build, in[0], axes[0], size);
    in[1] = as_channels(build, in[1], axes[1], size);
    tn_array *out =
        conv_op(build, "nn.conv2d_weight/1", rule->attrs, shared ? 1 : size, in, 2);
    return nn_batch_split(build, rule, out, 0, size, outputs, out_axes);
}

// --- pooling ----------------------------------------------------------------------------

static tn_status pool_batch(const tn_build *build, const char *primitive,
                            const tn_rule *rule, const int32_t *axes, int64_t size,
                            tn_array **outputs, int32_t *out_axes)
{
    tn_array *in[3];
    tn_attr items[3];
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        in[i] = as_images(build, rule->inputs[i], axes[i], size);
    tn_array *out = build->op(build, primitive, (const tn_array *const *)in,
                              rule->num_inputs, pool_attrs(rule->attrs, items));
    return nn_batch_split(build, rule, out, 0, size, outputs, out_axes);
}

tn_status max_pool2d_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                          int64_t size, tn_array **outputs, int32_t *out_axes)
{
    return pool_batch(build, "nn.max_pool2d/1", rule, axes, size, outputs, out_axes);
}

tn_status max_pool2d_grad_vmap(const tn_build *build, const tn_rule *rule,
                               const int32_t *axes, int64_t size, tn_array **outputs,
                               int32_t *out_axes)
{
    return pool_batch(build, "nn.max_pool2d_grad/1", rule, axes, size, outputs, out_axes);
}

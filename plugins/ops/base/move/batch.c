// SPDX-License-Identifier: MIT
// Batching rules of views, slices, concatenate and pad: the same primitive with the batch
// as one more leading axis.
#include "../pack.h"

// --- views ------------------------------------------------------------------------------

tn_status reshape_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                       int64_t size, tn_array **outputs, int32_t *out_axes)
{
    tn_ints slice = tn_extents(build, rule->outputs[0]);
    outputs[0] = with_shape(build, "base.reshape/1",
                            tn_move_axis(build, rule->inputs[0], axes[0], 0),
                            tn_ints_after(size, &slice));
    out_axes[0] = 0;
    return built(outputs[0]);
}

tn_status broadcast_to_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                            int64_t size, tn_array **outputs, int32_t *out_axes)
{
    tn_ints slice = tn_extents(build, rule->outputs[0]);
    tn_ints shape = tn_ints_after(size, &slice);
    outputs[0] = with_shape(
        build, "base.broadcast_to/1",
        tn_batch_first(build, rule->inputs[0], axes[0], (int32_t)shape.count), shape);
    out_axes[0] = 0;
    return built(outputs[0]);
}

tn_status transpose_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                         int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_transpose_attrs *attrs = rule->attrs;
    int32_t rank = build->type(rule->outputs[0])->rank;
    tn_ints order = {.count = (uint32_t)rank, .given = 1};
    (void)size;
    for (int32_t i = 0; i < rank; i++)
        order.value[i] =
            1 + (attrs->axes.given ? tn_axis(attrs->axes.value[i], rank) : rank - 1 - i);
    order = tn_ints_after(0, &order);
    outputs[0] = build->op(build, "base.transpose/1",
                           TN_IN(tn_move_axis(build, rule->inputs[0], axes[0], 0)),
                           tn_attrs("axes", &order));
    out_axes[0] = 0;
    return built(outputs[0]);
}

tn_status stop_gradient_vmap(const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, int64_t size, tn_array **outputs,
                             int32_t *out_axes)
{
    (void)size;
    outputs[0] =
        build->op(build, "base.stop_gradient/1", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    out_axes[0] = axes[0];
    return built(outputs[0]);
}

// --- slices -----------------------------------------------------------------------------

// Applies slice or slice_update with an entry in front that takes the whole batch axis.
static tn_array *sliced_batch(const tn_build *build, const char *primitive,
                              const tn_slice_attrs *attrs, tn_array *const *inputs,
                              uint64_t num_inputs)
{
    const char *const names[] = {"start", "stop", "step"};
    const tn_ints *lists[] = {&attrs->start, &attrs->stop, &attrs->step};
    tn_ints longer[3];
    tn_attr items[3];
    uint64_t n = 0;
    for (int i = 0; i < 3; i++) {
        if (!lists[i]->given)
            continue;
        longer[i] = tn_ints_after(TN_SLICE_END, lists[i]);
        items[n++] = (tn_attr){.name = names[i], .kind = TN_ATTR_INTS, .ints = &longer[i]};
    }
    return build->op(build, primitive, (const tn_array *const *)inputs, num_inputs,
                     TN_ATTR_LIST(items, n));
}

tn_status slice_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                     int64_t size, tn_array **outputs, int32_t *out_axes)
{
    tn_array *x = tn_move_axis(build, rule->inputs[0], axes[0], 0);
    (void)size;
    outputs[0] = sliced_batch(build, "base.slice/1", rule->attrs, &x, 1);
    out_axes[0] = 0;
    return built(outputs[0]);
}

tn_status slice_update_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                            int64_t size, tn_array **outputs, int32_t *out_axes)
{
    tn_array *inputs[2];
    for (int i = 0; i < 2; i++)
        inputs[i] = tn_batch_whole(build, rule->inputs[i], axes[i], size);
    outputs[0] = sliced_batch(build, "base.slice_update/1", rule->attrs, inputs, 2);
    out_axes[0] = 0;
    return built(outputs[0]);
}

// --- concatenate and pad ----------------------------------------------------------------

tn_status concatenate_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                           int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_concatenate_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    int64_t axis = 1 + tn_axis(attrs->axis, build->type(rule->outputs[0])->rank);
    tn_array **inputs = host->alloc(host, rule->num_inputs * sizeof(*inputs), 0);
    if (!inputs)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        inputs[i] = tn_batch_whole(build, rule->inputs[i], axes[i], size);
    outputs[0] = build->op(build, "base.concatenate/1", (const tn_array *const *)inputs,
                           rule->num_inputs, tn_attrs("axis", axis));
    host->free(host, inputs);
    out_axes[0] = 0;
    return built(outputs[0]);
}

tn_status pad_constant_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                            int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_pad_attrs *attrs = rule->attrs;
    tn_ints before = tn_ints_after(0, &attrs->before),
            after = tn_ints_after(0, &attrs->after);
    (void)size;
    outputs[0] =
        build->op(build, "base.pad_constant/1",
                  TN_IN(tn_move_axis(build, rule->inputs[0], axes[0], 0)),
                  tn_attrs("before", &before, "after", &after, "value", attrs->value));
    out_axes[0] = 0;
    return built(outputs[0]);
}

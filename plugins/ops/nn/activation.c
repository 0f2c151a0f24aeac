// SPDX-License-Identifier: MIT
// relu, softmax and log_softmax.
#include "pack.h"

static const tn_input_info x_input[] = {{"x", "the array", 0, 0}};

// --- relu -------------------------------------------------------------------------------

static tn_status relu_vjp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *cotangents, const uint64_t *wanted,
                          tn_array **gradients)
{
    (void)wanted;
    gradients[0] = build->expr(build, "g, x -> select(x > 0, g, 0)",
                               TN_IN(cotangents[0], rule->inputs[0]), TN_NO_ATTRS);
    return built(gradients[0]);
}

static tn_status relu_jvp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = build->expr(build, "t, x -> select(x > 0, t, 0)",
                                  TN_IN(tangents[0], rule->inputs[0]), TN_NO_ATTRS);
    return built(out_tangents[0]);
}

const tn_primitive nn_relu = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.relu/1",
    .doc = "x where it is positive, else 0. The derivative at 0 is 0.",
    TN_INPUTS(x_input),
    .expr = "max(x, 0)",
    .vjp = relu_vjp,
    .jvp = relu_jvp,
};

// --- softmax and log_softmax -----------------------------------------------------------

static const tn_attr_field softmax_fields[] = {
    TN_I64_FIELD(tn_softmax_attrs, axis, -1, "axis along which the exponentials sum to 1"),
};

static tn_status softmax_infer(const tn_infer *infer, tn_type *types)
{
    const tn_softmax_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    tn_status status = check_float(infer->host, "x", x);
    if (status)
        return status;
    if (attrs->axis < -x->rank || attrs->axis >= x->rank)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "axis %" PRId64 " is out of range for rank %d",
                                 attrs->axis, x->rank);
    types[0] = *x;
    return TN_OK;
}

// The elements along the axis at one index of the other axes. Offsets are in elements.
struct line {
    const tn_tensor *in, *out;
    int64_t from, to;          // offsets of the first element
    int64_t step_in, step_out; // strides
    int64_t count;
};

static void softmax_line(const struct line *line, int is_log)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < line->count; i++) {
        double v = tn_get_f64(line->in, line->from + i * line->step_in);
        most = isnan(v) || v > most ? v : most;
    }
    for (int64_t i = 0; i < line->count; i++)
        sum += exp(tn_get_f64(line->in, line->from + i * line->step_in) - most);
    for (int64_t i = 0; i < line->count; i++) {
        double v = tn_get_f64(line->in, line->from + i * line->step_in) - most;
        tn_set_f64(line->out, line->to + i * line->step_out,
                   is_log ? v - log(sum) : exp(v) / sum);
    }
}

static tn_status each_line(const tn_cpu_call *call, int is_log)
{
    const tn_softmax_attrs *attrs = call->attrs;
    const tn_tensor *in = &call->inputs[0], *out = &call->outputs[0];
    int32_t axis = tn_axis(attrs->axis, in->layout.rank);
    int64_t index[TN_MAX_RANK] = {0}, extent[TN_MAX_RANK];
    memcpy(extent, in->layout.extent, sizeof(extent));
    if (tn_layout_count(&in->layout) == 0)
        return TN_OK;
    extent[axis] = 1;
    do {
        struct line line = {in,
                            out,
                            tn_offset_at(&in->layout, index),
                            tn_offset_at(&out->layout, index),
                            in->layout.stride[axis],
                            out->layout.stride[axis],
                            in->layout.extent[axis]};
        softmax_line(&line, is_log);
    } while (tn_index_next(in->layout.rank, extent, index));
    return TN_OK;
}

static tn_status softmax_reference(const tn_cpu_call *call)
{
    return each_line(call, 0);
}

static tn_status log_softmax_reference(const tn_cpu_call *call)
{
    return each_line(call, 1);
}

// Decomposition of both: expression `text` of x, its maximum, and the sum of exponentials.
// Half floats are computed in f32.
static tn_status softmax_build(const tn_build *build, const tn_rule *rule, const char *text,
                               tn_array **outputs)
{
    const tn_softmax_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    tn_array *x = rule->inputs[0];
    if (!type)
        return TN_ERR_ARGUMENT;
    if (type->extent[tn_axis(attrs->axis, type->rank)] == 0) { // there is no maximum
        outputs[0] = build->expr(build, "x -> x", TN_IN(x), TN_NO_ATTRS);
        return built(outputs[0]);
    }
    tn_dtype computed = tn_dtype_computed(type->dtype);
    int is_half = computed != type->dtype;
    if (is_half)
        x = cast(build, x, computed);
    tn_array *most = reduce_axis(build, "base.max/1", x, attrs->axis);
    tn_array *power = build->expr(build, "x, m -> exp(x - m)", TN_IN(x, most), TN_NO_ATTRS);
    tn_array *sum = reduce_axis(build, "base.sum/1", power, attrs->axis);
    tn_array *out = build->expr(build, text, TN_IN(x, most, sum), TN_NO_ATTRS);
    outputs[0] = is_half ? cast(build, out, type->dtype) : out;
    return built(outputs[0]);
}

static tn_status softmax_decompose(const tn_build *build, const tn_rule *rule,
                                   tn_array **outputs)
{
    return softmax_build(build, rule, "x, m, s -> exp(x - m) / s", outputs);
}

static tn_status log_softmax_decompose(const tn_build *build, const tn_rule *rule,
                                       tn_array **outputs)
{
    return softmax_build(build, rule, "x, m, s -> x - m - log(s)", outputs);
}

// The Jacobian of softmax is symmetric, so the vjp and the jvp are one function.
static tn_array *softmax_derivative(const tn_build *build, const tn_rule *rule,
                                    const tn_array *t)
{
    const tn_softmax_attrs *attrs = rule->attrs;
    const tn_array *y = rule->outputs[0];
    tn_array *part = build->expr(build, "t, y -> t * y", TN_IN(t, y), TN_NO_ATTRS);
    tn_array *sum = reduce_axis(build, "base.sum/1", part, attrs->axis);
    return build->expr(build, "t, y, s -> y * (t - s)", TN_IN(t, y, sum), TN_NO_ATTRS);
}

static tn_status softmax_vjp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *cotangents, const uint64_t *wanted,
                             tn_array **gradients)
{
    (void)wanted;
    gradients[0] = softmax_derivative(build, rule, cotangents[0]);
    return built(gradients[0]);
}

static tn_status softmax_jvp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = softmax_derivative(build, rule, tangents[0]);
    return built(out_tangents[0]);
}

static tn_status log_softmax_vjp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *cotangents, const uint64_t *wanted,
                                 tn_array **gradients)
{
    const tn_softmax_attrs *attrs = rule->attrs;
    (void)wanted;
    tn_array *sum = reduce_axis(build, "base.sum/1", cotangents[0], attrs->axis);
    gradients[0] = build->expr(build, "g, y, s -> g - exp(y) * s",
                               TN_IN(cotangents[0], rule->outputs[0], sum), TN_NO_ATTRS);
    return built(gradients[0]);
}

static tn_status log_softmax_jvp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_softmax_attrs *attrs = rule->attrs;
    tn_array *part = build->expr(build, "t, y -> t * exp(y)",
                                 TN_IN(tangents[0], rule->outputs[0]), TN_NO_ATTRS);
    tn_array *sum = reduce_axis(build, "base.sum/1", part, attrs->axis);
    out_tangents[0] =
        build->expr(build, "t, s -> t - s", TN_IN(tangents[0], sum), TN_NO_ATTRS);
    return built(out_tangents[0]);
}

const tn_primitive nn_softmax = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.softmax/1",
    .doc = "exp(x) over its sum along an axis, without overflow.",
    TN_INPUTS(x_input),
    .attrs = TN_ATTR_TABLE(tn_softmax_attrs, softmax_fields),
    .infer = softmax_infer,
    .reference = softmax_reference,
    .decompose = softmax_decompose,
    .vjp = softmax_vjp,
    .jvp = softmax_jvp,
    .vmap = softmax_vmap,
};

const tn_primitive nn_log_softmax = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.log_softmax/1",
    .doc = "The logarithm of softmax, exact where softmax is 0.",
    TN_INPUTS(x_input),
    .attrs = TN_ATTR_TABLE(tn_softmax_attrs, softmax_fields),
    .infer = softmax_infer,
    .reference = log_softmax_reference,
    .decompose = log_softmax_decompose,
    .vjp = log_softmax_vjp,
    .jvp = log_softmax_jvp,
    .vmap = log_softmax_vmap,
};

// SPDX-License-Identifier: MIT
// conv2d and its two transposes: type inference, primitives and derivatives.
//
// conv2d is linear in x and in w. conv2d_input is its transpose in x, conv2d_weight its
// transpose in w. So the derivative of any of the three with respect to either operand is
// one of the three.
#include "conv.h"

#include <tenon/checked.h>

// --- geometry ---------------------------------------------------------------------------

static tn_status nn_conv_read_attrs(const tn_host *host, const tn_conv2d_attrs *attrs,
                                    struct conv *conv)
{
    tn_status status = read_pair(host, "stride", &attrs->stride, 1, 1, conv->stride);
    if (status == TN_OK)
        status = read_pair(host, "padding", &attrs->padding, 0, 0, conv->padding);
    if (status == TN_OK)
        status = read_pair(host, "dilation", &attrs->dilation, 1, 1, conv->dilation);
    if (status == TN_OK && attrs->groups < 1)
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "groups is %" PRId64 ", expected at least 1", attrs->groups);
    conv->groups = attrs->groups;
    return status;
}

// Extents below 2^31 keep every product here within 64 bits.
static tn_status check_sizes(const tn_host *host, const char *input, const tn_type *type)
{
    char text[SHAPE_TEXT];
    for (int32_t i = 0; i < type->rank; i++)
        if (type->extent[i] > INT32_MAX)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "%s has shape %s, expected extents of at most %d", input,
                              shape_text(type, text), INT32_MAX);
    return TN_OK;
}

static tn_status nn_conv_check_operands(const tn_host *host, const char *const names[2],
                                        const tn_type *a, const tn_type *b)
{
    static const char *const axes = "N, H, W, C, or O, kH, kW, C / groups for w";
    tn_status status = check_float(host, names[0], a);
    if (status == TN_OK)
        status = check_dtype(host, names[1], b, a->dtype);
    if (status == TN_OK)
        status = check_rank(host, names[0], a, 4, axes);
    if (status == TN_OK)
        status = check_rank(host, names[1], b, 4, axes);
    if (status == TN_OK)
        status = check_sizes(host, names[0], a);
    return status == TN_OK ? check_sizes(host, names[1], b) : status;
}

// Computes the output's rows and columns from those of x and w.
static tn_status find_out(const tn_host *host, struct conv *conv)
{
    static const char *const names[] = {"rows", "columns"};
    for (int i = 0; i < 2; i++) {
        int64_t reach = conv->dilation[i] * (conv->window[i] - 1) + 1;
        int64_t room = conv->size[i] + 2 * conv->padding[i];
        if (conv->window[i] < 1 || reach > room)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "w has %" PRId64 " %s, which reach over %" PRId64
                              ", expected at least 1 and no more than the %" PRId64
                              " of x with its padding",
                              conv->window[i], names[i], reach, room);
        conv->out[i] = (room - reach) / conv->stride[i] + 1;
    }
    return TN_OK;
}

static tn_status check_groups(const tn_host *host, const struct conv *conv)
{
    if (conv->filters % conv->groups == 0 &&
        conv->channels == conv->group_channels * conv->groups)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT,
                      "x has %" PRId64 " channels, w takes %" PRId64 " and gives %" PRId64
                      ": expected %" PRId64 " groups of them",
                      conv->channels, conv->group_channels, conv->filters, conv->groups);
}

// The gradient must have the extents of the output.
static tn_status check_gradient(const tn_host *host, const tn_type *g,
                                const struct conv *conv)
{
    int64_t expected[4] = {conv->images, conv->out[0], conv->out[1], conv->filters};
    return check_extents(host, "gradient", g, 4, expected);
}

static void take_x(const tn_type *x, struct conv *conv)
{
    conv->images = x->extent[0];
    conv->size[0] = x->extent[1];
    conv->size[1] = x->extent[2];
    conv->channels = x->extent[3];
}

static void take_w(const tn_type *w, struct conv *conv)
{
    conv->filters = w->extent[0];
    conv->window[0] = w->extent[1];
    conv->window[1] = w->extent[2];
    conv->group_channels = w->extent[3];
}

tn_status conv_of_forward(const tn_host *host, const tn_conv2d_attrs *attrs,
                          const tn_type *x, const tn_type *w, struct conv *out)
{
    static const char *const names[] = {"x", "w"};
    tn_status status = nn_conv_check_operands(host, names, x, w);
    if (status == TN_OK)
        status = nn_conv_read_attrs(host, attrs, out);
    if (status)
        return status;
    take_x(x, out);
    take_w(w, out);
    status = check_groups(host, out);
    return status == TN_OK ? find_out(host, out) : status;
}

static tn_status nn_conv_read_extent(const tn_host *host, const tn_conv2d_attrs *attrs,
                                     int64_t out[2])
{
    if (!attrs->extent.given)
        return host->fail(
            host, TN_ERR_ARGUMENT,
            "extent is not given, expected the rows and columns of the result");
    return read_pair(host, "extent", &attrs->extent, 0, 0, out);
}

tn_status conv_of_input(const tn_host *host, const tn_conv2d_attrs *attrs, const tn_type *g,
                        const tn_type *w, struct conv *out)
{
    static const char *const names[] = {"gradient", "w"};
    tn_status status = nn_conv_check_operands(host, names, g, w);
    if (status == TN_OK)
        status = nn_conv_read_attrs(host, attrs, out);
    if (status == TN_OK)
        status = nn_conv_read_extent(host, attrs, out->size);
    if (status)
        return status;
    take_w(w, out);
    out->images = g->extent[0];
    if (!tn_checked_multiply_extents(out->group_channels, out->groups, &out->channels))
        return host->fail(host, TN_ERR_ARGUMENT, "%" PRId64 " groups are too many",
                          out->groups);
    status = check_groups(host, out);
    if (status == TN_OK)
        status = find_out(host, out);
    return status == TN_OK ? check_gradient(host, g, out) : status;
}

tn_status conv_of_weight(const tn_host *host, const tn_conv2d_attrs *attrs,
                         const tn_type *x, const tn_type *g, struct conv *out)
{
    static const char *const names[] = {"x", "gradient"};
    tn_status status = nn_conv_check_operands(host, names, x, g);
    if (status == TN_OK)
        status = nn_conv_read_attrs(host, attrs, out);
    if (status == TN_OK)
        status = nn_conv_read_extent(host, attrs, out->window);
    if (status)
        return status;
    take_x(x, out);
    out->filters = g->extent[3];
    out->group_channels = out->channels / out->groups;
    status = check_groups(host, out);
    if (status == TN_OK)
        status = find_out(host, out);
    return status == TN_OK ? check_gradient(host, g, out) : status;
}

// --- types ------------------------------------------------------------------------------

static tn_status conv2d_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *x = &infer->types[0];
    struct conv c;
    tn_status status = conv_of_forward(infer->host, infer->attrs, x, &infer->types[1], &c);
    if (status == TN_OK && infer->num_inputs > 2 && infer->types[2].dtype) {
        status = check_dtype(infer->host, "bias", &infer->types[2], x->dtype);
        if (status == TN_OK)
            status = check_extents(infer->host, "bias", &infer->types[2], 1, &c.filters);
    }
    if (status == TN_OK)
        types[0] = (tn_type){x->dtype, 4, {c.images, c.out[0], c.out[1], c.filters}};
    return status;
}

static tn_status conv2d_input_infer(const tn_infer *infer, tn_type *types)
{
    struct conv c;
    tn_status status =
        conv_of_input(infer->host, infer->attrs, &infer->types[0], &infer->types[1], &c);
    if (status == TN_OK)
        types[0] = (tn_type){
            infer->types[0].dtype, 4, {c.images, c.size[0], c.size[1], c.channels}};
    return status;
}

static tn_status conv2d_weight_infer(const tn_infer *infer, tn_type *types)
{
    struct conv c;
    tn_status status =
        conv_of_weight(infer->host, infer->attrs, &infer->types[0], &infer->types[1], &c);
    if (status == TN_OK)
        types[0] = (tn_type){infer->types[0].dtype,
                             4,
                             {c.filters, c.window[0], c.window[1], c.group_channels}};
    return status;
}

// --- derivatives ------------------------------------------------------------------------

// Applies one of the three primitives with the same attributes. The result has the rows and
// columns of `like` (attribute `extent`); NULL `like` for conv2d, which has no such
// attribute.
static tn_array *nn_conv_sibling(const tn_build *build, const char *primitive,
                                 const tn_conv2d_attrs *attrs, const tn_array *a,
                                 const tn_array *b, const tn_array *like)
{
    tn_attr items[5];
    uint64_t n = 0;
    tn_ints extent;
    if (attrs->stride.given)
        items[n++] = (tn_attr)TN_ATTR_INIT("stride", &attrs->stride);
    if (attrs->padding.given)
        items[n++] = (tn_attr)TN_ATTR_INIT("padding", &attrs->padding);
    if (attrs->dilation.given)
        items[n++] = (tn_attr)TN_ATTR_INIT("dilation", &attrs->dilation);
    items[n++] = (tn_attr)TN_ATTR_INIT("groups", attrs->groups);
    if (like) {
        const tn_type *type = build->type(like);
        extent = (tn_ints){2, 1, {type->extent[1], type->extent[2]}};
        items[n++] = (tn_attr)TN_ATTR_INIT("extent", &extent);
    }
    return build->op(build, primitive, TN_IN(a, b), TN_ATTR_LIST(items, n));
}

static tn_status conv2d_vjp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *cotangents, const uint64_t *wanted,
                            tn_array **gradients)
{
    tn_array *x = rule->inputs[0], *w = rule->inputs[1], *g = cotangents[0];
    if (wants(wanted, 0))
        gradients[0] = nn_conv_sibling(build, "nn.conv2d_input/1", rule->attrs, g, w, x);
    if (wants(wanted, 1))
        gradients[1] = nn_conv_sibling(build, "nn.conv2d_weight/1", rule->attrs, x, g, w);
    if (rule->num_inputs > 2 && wants(wanted, 2))
        gradients[2] =
            build->op(build, "base.sum/1", TN_IN(g), tn_attrs("axis", TN_INTS(0, 1, 2)));
    return built_wanted(wanted, gradients, rule->num_inputs);
}

static tn_status conv2d_input_vjp(const tn_build *build, const tn_rule *rule,
                                  tn_array *const *cotangents, const uint64_t *wanted,
                                  tn_array **gradients)
{
    tn_array *g = rule->inputs[0], *w = rule->inputs[1], *t = cotangents[0];
    if (wants(wanted, 0))
        gradients[0] = nn_conv_sibling(build, "nn.conv2d/1", rule->attrs, t, w, NULL);
    if (wants(wanted, 1))
        gradients[1] = nn_conv_sibling(build, "nn.conv2d_weight/1", rule->attrs, t, g, w);
    return built_wanted(wanted, gradients, 2);
}

static tn_status conv2d_weight_vjp(const tn_build *build, const tn_rule *rule,
                                   tn_array *const *cotangents, const uint64_t *wanted,
                                   tn_array **gradients)
{
    tn_array *x = rule->inputs[0], *g = rule->inputs[1], *t = cotangents[0];
    if (wants(wanted, 0))
        gradients[0] = nn_conv_sibling(build, "nn.conv2d_input/1", rule->attrs, g, t, x);
    if (wants(wanted, 1))
        gradients[1] = nn_conv_sibling(build, "nn.conv2d/1", rule->attrs, x, t, NULL);
    return built_wanted(wanted, gradients, 2);
}

// Being linear in each operand, the primitive is applied to each given tangent, and summed.
static tn_status bilinear_jvp(const tn_build *build, const tn_rule *rule,
                              const char *primitive, const tn_array *like,
                              tn_array *const *tangents, tn_array **out_tangents)
{
    tn_array *left = NULL, *right = NULL;
    if (tangents[0])
        left = nn_conv_sibling(build, primitive, rule->attrs, tangents[0], rule->inputs[1],
                               like);
    if (tangents[1])
        right = nn_conv_sibling(build, primitive, rule->attrs, rule->inputs[0], tangents[1],
                                like);
    out_tangents[0] = left && right ? add(build, left, right) : left ? left : right;
    return (tangents[0] && !left) || (tangents[1] && !right) ? TN_ERR_ARGUMENT : TN_OK;
}

static tn_status conv2d_jvp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *tangents, tn_array **out_tangents)
{
    tn_status status =
        bilinear_jvp(build, rule, "nn.conv2d/1", NULL, tangents, out_tangents);
    if (status || rule->num_inputs < 3 || !tangents[2])
        return status;
    const tn_type *out = build->type(rule->outputs[0]);
    tn_array *bias = with_shape(build, "base.broadcast_to/1", tangents[2], 4, out->extent);
    out_tangents[0] = out_tangents[0] ? add(build, out_tangents[0], bias) : bias;
    return built(out_tangents[0]);
}

static tn_status conv2d_input_jvp(const tn_build *build, const tn_rule *rule,
                                  tn_array *const *tangents, tn_array **out_tangents)
{
    return bilinear_jvp(build, rule, "nn.conv2d_input/1", rule->outputs[0], tangents,
                        out_tangents);
}

static tn_status conv2d_weight_jvp(const tn_build *build, const tn_rule *rule,
                                   tn_array *const *tangents, tn_array **out_tangents)
{
    return bilinear_jvp(build, rule, "nn.conv2d_weight/1", rule->outputs[0], tangents,
                        out_tangents);
}

// --- primitives -------------------------------------------------------------------------

#define COMMON_FIELDS                                                                      \
    TN_INTS_FIELD(tn_conv2d_attrs, stride,                                                 \
                  "distance of windows, rows and columns or one for both; not given: 1"),  \
        TN_INTS_FIELD(tn_conv2d_attrs, padding,                                            \
                      "zeros on each side, rows and columns or one for both; not given: "  \
                      "0"),                                                                \
        TN_INTS_FIELD(tn_conv2d_attrs, dilation,                                           \
                      "distance of elements in a window; not given: 1"),                   \
        TN_I64_FIELD(tn_conv2d_attrs, groups, 1,                                           \
                     "groups that channels and filters are split into")

static const tn_attr_field conv2d_fields[] = {COMMON_FIELDS};
static const tn_attr_field transpose_fields[] = {
    COMMON_FIELDS,
    TN_REQUIRED_FIELD(tn_conv2d_attrs, extent, TN_ATTR_INTS,
                      "rows and columns of the result"),
};

static const tn_input_info conv2d_inputs[] = {
    {"x", "N, H, W, C: images, channels last", 0, 0},
    {"w", "O, kH, kW, C / groups: filters", 0, 0},
    {"bias", "O: added to each filter's result", TN_INPUT_OPTIONAL, 0},
};
static const tn_input_info conv2d_input_inputs[] = {
    {"gradient", "N, oH, oW, O: of conv2d's output", 0, 0},
    {"w", "O, kH, kW, C / groups: filters", 0, 0},
};
static const tn_input_info conv2d_weight_inputs[] = {
    {"x", "N, H, W, C: images, channels last", 0, 0},
    {"gradient", "N, oH, oW, O: of conv2d's output", 0, 0},
};

const tn_primitive nn_conv2d = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.conv2d/1",
    .doc = "Correlation of images with filters, channels last, as in MLX.",
    TN_INPUTS(conv2d_inputs),
    .attrs = TN_ATTR_TABLE(tn_conv2d_attrs, conv2d_fields),
    .infer = conv2d_infer,
    .reference = conv2d_reference,
    .decompose = conv2d_decompose,
    .vjp = conv2d_vjp,
    .jvp = conv2d_jvp,
    .vmap = conv2d_vmap,
};

const tn_primitive nn_conv2d_input = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.conv2d_input/1",
    .doc =
        "conv2d's transpose in x: the gradient of its input, or a transposed convolution.",
    TN_INPUTS(conv2d_input_inputs),
    .attrs = TN_ATTR_TABLE(tn_conv2d_attrs, transpose_fields),
    .infer = conv2d_input_infer,
    .reference = conv2d_input_reference,
    .decompose = conv2d_input_decompose,
    .vjp = conv2d_input_vjp,
    .jvp = conv2d_input_jvp,
    .vmap = conv2d_input_vmap,
};

const tn_primitive nn_conv2d_weight = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.conv2d_weight/1",
    .doc = "conv2d's transpose in w: the gradient of its filters.",
    TN_INPUTS(conv2d_weight_inputs),
    .attrs = TN_ATTR_TABLE(tn_conv2d_attrs, transpose_fields),
    .infer = conv2d_weight_infer,
    .reference = conv2d_weight_reference,
    .decompose = conv2d_weight_decompose,
    .vjp = conv2d_weight_vjp,
    .jvp = conv2d_weight_jvp,
    .vmap = conv2d_weight_vmap,
};

// SPDX-License-Identifier: MIT
// Layers of vectors, images and volumes, channels last: convolutions, pooling, norms over
// channels.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "common.h"

// --- convolutions -----------------------------------------------------------------------

// Spreads `given` to `dims` axes; NULL: `other` for each. False: it has another number of
// entries.
static bool for_each_axis(const tn_ints *given, int32_t dims, int64_t other, tn_ints *out)
{
    *out = (tn_ints){.count = (uint32_t)dims, .given = 1};
    for (int32_t i = 0; i < dims; i++)
        out->value[i] = !given ? other : given->value[given->count == 1 ? 0 : i];
    return !given || given->count == 1 || given->count == (uint32_t)dims;
}

// Arguments of a convolution, for each axis of x between its first and last.
struct conv_layer {
    const char *kind;
    int32_t dims;
    int64_t inputs, outputs, groups;
    tn_ints size, stride, padding, dilation, output_padding;
};

static tn_status conv_fail(tn_net *net, const char *name, const struct conv_layer *c,
                           const char *what, int64_t got, const char *wanted)
{
    return tn_scope_fail(net->scope, TN_ERR_ARGUMENT, "%s '%s%s': %s %lld, expected %s",
                         c->kind, net->path, name, what, (long long)got, wanted);
}

static tn_status check_conv(tn_net *net, const char *name, const struct conv_layer *c,
                            const tn_array *x, bool transposes)
{
    if (c->outputs < 1)
        return conv_fail(net, name, c, "outputs are", c->outputs, "at least 1");
    if (c->groups < 1 || c->inputs % c->groups || c->outputs % c->groups)
        return tn_scope_fail(net->scope, TN_ERR_ARGUMENT,
                             "%s '%s%s': %lld channels and %lld outputs are not divided by "
                             "%lld groups",
                             c->kind, net->path, name, (long long)c->inputs,
                             (long long)c->outputs, (long long)c->groups);
    for (int32_t i = 0; i < c->dims; i++) {
        int64_t extent = tn_array_type(x)->extent[1 + i], reach;
        if (c->size.value[i] < 1 || c->dilation.value[i] < 1 || c->stride.value[i] < 1 ||
            c->padding.value[i] < 0)
            return tn_scope_fail(net->scope, TN_ERR_ARGUMENT,
                                 "%s '%s%s': size %lld, stride %lld, dilation %lld, "
                                 "padding %lld; expected at least 1, 1, 1 and 0",
                                 c->kind, net->path, name, (long long)c->size.value[i],
                                 (long long)c->stride.value[i],
                                 (long long)c->dilation.value[i],
                                 (long long)c->padding.value[i]);
        if (__builtin_mul_overflow(c->size.value[i] - 1, c->dilation.value[i], &reach) ||
            c->padding.value[i] > INT32_MAX ||
            (!transposes && reach >= extent + 2 * c->padding.value[i]))
            return tn_scope_fail(net->scope, TN_ERR_ARGUMENT,
                                 "%s '%s%s': filters of %lld with dilation %lld are larger "
                                 "than axis %d of x, %lld with padding %lld",
                                 c->kind, net->path, name, (long long)c->size.value[i],
                                 (long long)c->dilation.value[i], 1 + i, (long long)extent,
                                 (long long)c->padding.value[i]);
    }
    return TN_OK;
}

// Filters of a convolution: [outputs, size..., inputs / groups]; of a transpose [inputs,
// size..., outputs / groups].
static tn_array *conv_filters(tn_net *net, const struct conv_layer *c, bool transposes,
                              double *out_bound)
{
    tn_shape shape = {.rank = 2 + c->dims};
    shape.extent[0] = transposes ? c->inputs : c->outputs;
    shape.extent[1 + c->dims] = (transposes ? c->outputs : c->inputs) / c->groups;
    double terms = (double)shape.extent[1 + c->dims];
    for (int32_t i = 0; i < c->dims; i++) {
        shape.extent[1 + i] = c->size.value[i];
        terms *= (double)c->size.value[i];
    }
    *out_bound = terms > 0 ? 1 / sqrt(terms) : 0;
    return tn_net_param(net, "weight", &shape, "uniform", *out_bound);
}

static tn_array *apply_conv(tn_net *net, const char *name, tn_array *x,
                            const struct conv_layer *c, bool transposes, bool no_bias)
{
    const tn_array *in[3] = {x};
    const tn_ints *stride = &c->stride, *padding = &c->padding, *dilation = &c->dilation,
                  *behind = &c->output_padding;
    double bound;
    char id[40];
    if (check_conv(net, name, c, x, transposes))
        return NULL;
    tn_net_enter(net, name, 0);
    in[1] = conv_filters(net, c, transposes, &bound);
    if (!no_bias)
        in[2] = tn_net_param(net, "bias", TN_SHAPE(c->outputs), "uniform", bound);
    tn_net_leave(net);
    uint64_t count = no_bias ? 2 : 3;
    snprintf(id, sizeof(id), "nn.%s", c->kind);
    if (transposes)
        return tn_op(net->scope, id, in, count,
                     tn_attrs("stride", stride, "padding", padding, "dilation", dilation,
                              "output_padding", behind, "groups", c->groups));
    return tn_op(net->scope, id, in, count,
                 tn_attrs("stride", stride, "padding", padding, "dilation", dilation,
                          "groups", c->groups));
}

tn_array *tn_net_conv(tn_net *net, const char *name, tn_array *x,
                      const tn_net_conv_options *options)
{
    static const char *const kinds[2][3] = {
        {"conv1d", "conv2d", "conv3d"},
        {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}};
    const tn_net_conv_options o = options ? *options : (tn_net_conv_options){0};
    bool transposes = o.transposes != 0;
    if (!layer_fits(net, transposes ? "conv_transpose" : "conv", name, x, 3, 5))
        return NULL;
    struct conv_layer c = {.dims = tn_array_type(x)->rank - 2,
                           .inputs = layer_width(x),
                           .outputs = o.outputs,
                           .groups = o.groups ? o.groups : 1};
    c.kind = kinds[transposes][c.dims - 1];
    if (!for_each_axis(o.size, c.dims, 1, &c.size) ||
        !for_each_axis(o.stride, c.dims, 1, &c.stride) ||
        !for_each_axis(o.padding, c.dims, 0, &c.padding) ||
        !for_each_axis(o.dilation, c.dims, 1, &c.dilation) ||
        !for_each_axis(o.output_padding, c.dims, 0, &c.output_padding)) {
        conv_fail(net, name, &c, "x has axes between its first and last:", c.dims,
                  "one number or as many for size, stride, padding and dilation");
        return NULL;
    }
    return apply_conv(net, name, x, &c, transposes, o.no_bias != 0);
}

tn_array *tn_net_conv2d(tn_net *net, const char *name, tn_array *x, int64_t outputs,
                        int64_t size, int64_t stride, int64_t padding)
{
    if (!layer_fits(net, "conv2d", name, x, 4, 4))
        return NULL;
    return tn_net_conv(net, name, x,
                       &(tn_net_conv_options){.outputs = outputs,
                                              .size = TN_INTS(size),
                                              .stride = TN_INTS(stride),
                                              .padding = TN_INTS(padding)});
}

// --- pooling ----------------------------------------------------------------------------

// The id of `kind` for the rank of x, such as "nn.max_pool2d"; false after a failure.
static bool pool_name(tn_net *net, const char *kind, const tn_array *x, char id[40])
{
    if (!layer_fits(net, kind, "", x, 3, 5))
        return false;
    snprintf(id, 40, "nn.%s%dd", kind, tn_array_type(x)->rank - 2);
    return true;
}

static tn_array *image_layers_pool(tn_net *net, const char *kind, tn_array *x, int64_t size,
                                   int64_t stride, int64_t padding)
{
    char id[40];
    if (!pool_name(net, kind, x, id))
        return NULL;
    return tn_op(net->scope, id, TN_IN(x),
                 tn_attrs("window", TN_INTS(size), "stride",
                          TN_INTS(stride ? stride : size), "padding", TN_INTS(padding)));
}

tn_array *tn_net_max_pool(tn_net *net, tn_array *x, int64_t size, int64_t stride,
                          int64_t padding)
{
    return image_layers_pool(net, "max_pool", x, size, stride, padding);
}

tn_array *tn_net_avg_pool(tn_net *net, tn_array *x, int64_t size, int64_t stride,
                          int64_t padding)
{
    return image_layers_pool(net, "avg_pool", x, size, stride, padding);
}

static tn_array *image_layers_adaptive(tn_net *net, const char *kind, tn_array *x,
                                       int64_t size)
{
    char id[40];
    if (!pool_name(net, kind, x, id))
        return NULL;
    return tn_op(net->scope, id, TN_IN(x), tn_attrs("output_size", TN_INTS(size)));
}

tn_array *tn_net_adaptive_avg_pool(tn_net *net, tn_array *x, int64_t size)
{
    return image_layers_adaptive(net, "adaptive_avg_pool", x, size);
}

tn_array *tn_net_adaptive_max_pool(tn_net *net, tn_array *x, int64_t size)
{
    return image_layers_adaptive(net, "adaptive_max_pool", x, size);
}

static tn_array *image_layers_global_pool(tn_net *net, const char *kind, tn_array *x)
{
    char id[40];
    if (!layer_fits(net, kind, "", x, 3, 5))
        return NULL;
    snprintf(id, sizeof(id), "nn.%s/1", kind);
    return tn_op(net->scope, id, TN_IN(x), tn_attrs("keepdims", 0));
}

tn_array *tn_net_global_avg_pool(tn_net *net, tn_array *x)
{
    return image_layers_global_pool(net, "global_avg_pool", x);
}

tn_array *tn_net_global_max_pool(tn_net *net, tn_array *x)
{
    return image_layers_global_pool(net, "global_max_pool", x);
}

// --- norms over channels ----------------------------------------------------------------

// Weight and bias of a norm, below the current path.
static void norm_params(tn_net *net, const tn_array *x, tn_array **weight, tn_array **bias)
{
    *weight = tn_net_param(net, "weight", TN_SHAPE(layer_width(x)), "ones", 1);
    *bias = tn_net_param(net, "bias", TN_SHAPE(layer_width(x)), "zeros", 1);
}

tn_array *tn_net_batch_norm(tn_net *net, const char *name, tn_array *x)
{
    tn_array *weight, *bias, *out[3] = {NULL};
    if (!layer_fits(net, "batch_norm", name, x, 2, 5))
        return NULL;
    const tn_shape *shape = TN_SHAPE(layer_width(x));
    tn_net_enter(net, name, 0);
    norm_params(net, x, &weight, &bias);
    tn_array *mean = tn_net_state(net, "running_mean", shape, "zeros");
    tn_array *variance = tn_net_state(net, "running_var", shape, "ones");
    tn_op_n(net->scope, "nn.batch_norm/1", TN_IN(x, mean, variance, weight, bias),
            tn_attrs("training", (int64_t)(net->training != 0)), out, 3);
    if (net->training) {
        tn_net_set_state(net, "running_mean", out[1]);
        tn_net_set_state(net, "running_var", out[2]);
    }
    tn_net_leave(net);
    return out[0];
}

tn_array *tn_net_instance_norm(tn_net *net, const char *name, tn_array *x)
{
    tn_array *weight, *bias;
    if (!layer_fits(net, "instance_norm", name, x, 3, 5))
        return NULL;
    tn_net_enter(net, name, 0);
    norm_params(net, x, &weight, &bias);
    tn_net_leave(net);
    return tn_op(net->scope, "nn.instance_norm/1", TN_IN(x, weight, bias), TN_NO_ATTRS);
}

tn_array *tn_net_group_norm(tn_net *net, const char *name, tn_array *x, int64_t groups)
{
    tn_array *weight, *bias;
    if (!layer_fits(net, "group_norm", name, x, 2, 5))
        return NULL;
    if (groups < 1 || layer_width(x) % groups) {
        tn_scope_fail(net->scope, TN_ERR_ARGUMENT,
                      "group_norm '%s%s': %lld channels are not divided by %lld groups",
                      net->path, name, (long long)layer_width(x), (long long)groups);
        return NULL;
    }
    tn_net_enter(net, name, 0);
    norm_params(net, x, &weight, &bias);
    tn_net_leave(net);
    return tn_op(net->scope, "nn.group_norm/1", TN_IN(x, weight, bias),
                 tn_attrs("groups", groups));
}

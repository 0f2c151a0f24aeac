// SPDX-License-Identifier: MIT
// Layers: operators of pack "nn" and "base" with parameters that are made at first use.
#include <math.h>
#include <stdio.h>
#include <tenon/control.h>
#include "internal.h"

// Fails with the layer's name and what it got, unless x has a rank in the range.
static bool axes_fit(tn_net *net, const char *layer, const char *name, const tn_array *x,
                     int32_t least, int32_t most)
{
    char text[SHAPE_TEXT];
    if (!x || tn_scope_status(net->scope))
        return false;
    const tn_type *type = tn_array_type(x);
    if (type->rank >= least && type->rank <= most)
        return true;
    tn_scope_fail(net->scope, TN_ERR_ARGUMENT, "%s '%s%s': x is %s, expected %d%s axes",
                  layer, net->path, name, train_shape_text(type, text), least,
                  most == least ? ""
                  : least == 1  ? " or more"
                                : " at least");
    return false;
}

static int64_t last_extent(const tn_array *x)
{
    const tn_type *type = tn_array_type(x);
    return type->extent[type->rank - 1];
}

tn_array *tn_net_linear(tn_net *net, const char *name, tn_array *x, int64_t outputs)
{
    if (!axes_fit(net, "linear", name, x, 1, TN_MAX_RANK))
        return NULL;
    int64_t inputs = last_extent(x);
    double bound = inputs ? 1 / sqrt((double)inputs) : 0;
    tn_net_enter(net, name, 0);
    tn_array *w = tn_net_param(net, "weight", TN_SHAPE(outputs, inputs), "uniform", bound);
    tn_array *b = tn_net_param(net, "bias", TN_SHAPE(outputs), "uniform", bound);
    tn_net_leave(net);
    tn_array *turned = tn_op(net->scope, "base.transpose/1", TN_IN(w), TN_NO_ATTRS);
    tn_array *y = tn_op(net->scope, "base.matmul/1", TN_IN(x, turned), TN_NO_ATTRS);
    return tn_op(net->scope, "base.add/1", TN_IN(y, b), TN_NO_ATTRS);
}

tn_array *tn_net_embedding(tn_net *net, const char *name, tn_array *ids, int64_t count,
                           int64_t width)
{
    if (!axes_fit(net, "embedding", name, ids, 0, TN_MAX_RANK - 1))
        return NULL;
    tn_net_enter(net, name, 0);
    tn_array *w = tn_net_param(net, "weight", TN_SHAPE(count, width), "normal", 1);
    tn_net_leave(net);
    return tn_op(net->scope, "base.take/1", TN_IN(w, ids), tn_attrs("axis", 0));
}

tn_array *tn_net_norm(tn_net *net, const char *name, tn_array *x)
{
    if (!axes_fit(net, "norm", name, x, 1, TN_MAX_RANK))
        return NULL;
    tn_net_enter(net, name, 0);
    tn_array *w = tn_net_param(net, "weight", TN_SHAPE(last_extent(x)), "ones", 1);
    tn_array *b = tn_net_param(net, "bias", TN_SHAPE(last_extent(x)), "zeros", 1);
    tn_net_leave(net);
    return tn_op(net->scope, "nn.layer_norm/1", TN_IN(x, w, b), TN_NO_ATTRS);
}

tn_array *tn_net_conv2d(tn_net *net, const char *name, tn_array *x, int64_t outputs,
                        int64_t size, int64_t stride, int64_t padding)
{
    if (!axes_fit(net, "conv2d", name, x, 4, 4))
        return NULL;
    int64_t inputs = last_extent(x);
    double bound = inputs > 0 && size > 0 ? 1 / sqrt((double)(inputs * size * size)) : 0;
    tn_net_enter(net, name, 0);
    tn_array *w = tn_net_param(net, "weight", TN_SHAPE(outputs, size, size, inputs),
                               "uniform", bound);
    tn_array *b = tn_net_param(net, "bias", TN_SHAPE(outputs), "uniform", bound);
    tn_net_leave(net);
    return tn_op(net->scope, "nn.conv2d/1", TN_IN(x, w, b),
                 tn_attrs("stride", TN_INTS(stride), "padding", TN_INTS(padding)));
}

// [batch, time, width] as [batch, heads, time, width / heads].
static tn_array *by_heads(tn_scope *s, tn_array *x, int64_t heads)
{
    const tn_type *type = tn_array_type(x);
    x = tn_op(s, "base.reshape/1", TN_IN(x),
              tn_attrs("shape", TN_INTS(type->extent[0], type->extent[1], heads,
                                        type->extent[2] / heads)));
    return tn_op(s, "base.transpose/1", TN_IN(x), tn_attrs("axes", TN_INTS(0, 2, 1, 3)));
}

tn_array *tn_net_attention(tn_net *net, const char *name, tn_array *x, int64_t heads,
                           int32_t causal)
{
    static const char *const names[] = {"q", "k", "v"};
    tn_scope *s = net->scope;
    if (!axes_fit(net, "attention", name, x, 3, 3))
        return NULL;
    const tn_type *type = tn_array_type(x);
    int64_t width = last_extent(x);
    if (heads < 1 || width % heads) {
        tn_scope_fail(
            s, TN_ERR_ARGUMENT,
            "attention '%s%s': x has width %lld, which is no multiple of %lld heads",
            net->path, name, (long long)width, (long long)heads);
        return NULL;
    }
    tn_array *in[3];
    tn_net_enter(net, name, 0);
    for (int i = 0; i < 3; i++)
        in[i] = by_heads(s, tn_net_linear(net, names[i], x, width), heads);
    tn_array *y = tn_op(s, "nn.scaled_dot_product_attention/1", TN_IN(in[0], in[1], in[2]),
                        tn_attrs("is_causal", (int64_t)(causal != 0)));
    y = tn_op(s, "base.transpose/1", TN_IN(y), tn_attrs("axes", TN_INTS(0, 2, 1, 3)));
    y = tn_op(s, "base.reshape/1", TN_IN(y),
              tn_attrs("shape", TN_INTS(type->extent[0], type->extent[1], width)));
    y = tn_net_linear(net, "out", y, width);
    tn_net_leave(net);
    return y;
}

// --- the LSTM ---------------------------------------------------------------------------

// Carried: h and c, [batch, width]. Sliced: the gates' share of the input. The weight of h
// is captured.
static tn_status lstm_step(tn_scope *s, tn_array *const *in, uint64_t num_in,
                           tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    tn_array *gates =
        tn_op(s, "base.add/1",
              TN_IN(in[2], tn_op(s, "base.matmul/1", TN_IN(in[0], user), TN_NO_ATTRS)),
              TN_NO_ATTRS);
    tn_array *part[4] = {NULL};
    tn_op_n(s, "base.split/1", TN_IN(gates), tn_attrs("sections", 4, "axis", -1), part, 4);
    out[1] = tn_expr(s, "i, f, g, c -> c / (1 + exp(-f)) + tanh(g) / (1 + exp(-i))",
                     TN_IN(part[0], part[1], part[2], in[1]), TN_NO_ATTRS);
    out[0] =
        tn_expr(s, "o, c -> tanh(c) / (1 + exp(-o))", TN_IN(part[3], out[1]), TN_NO_ATTRS);
    out[2] = out[0];
    return tn_scope_status(s);
}

tn_array *tn_net_lstm(tn_net *net, const char *name, tn_array *x, int64_t width)
{
    tn_scope *s = net->scope;
    if (!axes_fit(net, "lstm", name, x, 3, 3))
        return NULL;
    const tn_type *type = tn_array_type(x);
    double bound = width > 0 ? 1 / sqrt((double)width) : 0;
    tn_net_enter(net, name, 0);
    tn_array *wi = tn_net_param(net, "weight_ih", TN_SHAPE(4 * width, last_extent(x)),
                                "uniform", bound);
    tn_array *wh =
        tn_net_param(net, "weight_hh", TN_SHAPE(4 * width, width), "uniform", bound);
    tn_array *bi = tn_net_param(net, "bias_ih", TN_SHAPE(4 * width), "uniform", bound);
    tn_array *bh = tn_net_param(net, "bias_hh", TN_SHAPE(4 * width), "uniform", bound);
    tn_net_leave(net);
    tn_array *turned = tn_op(s, "base.transpose/1", TN_IN(wh), TN_NO_ATTRS);
    // All positions at once, time first, which the scan cuts.
    x = tn_op(s, "base.transpose/1", TN_IN(x), tn_attrs("axes", TN_INTS(1, 0, 2)));
    x = tn_op(s, "base.matmul/1",
              TN_IN(x, tn_op(s, "base.transpose/1", TN_IN(wi), TN_NO_ATTRS)), TN_NO_ATTRS);
    x = tn_expr(s, "x, a, b -> x + (a + b)", TN_IN(x, bi, bh), TN_NO_ATTRS);
    tn_array *zero = tn_op(s, "base.zeros/1", NULL, 0,
                           tn_attrs("shape", TN_INTS(type->extent[0], width)));
    tn_array *in[] = {zero, zero, x}, *out[3] = {NULL};
    const tn_scan_call_options options = {.struct_size = sizeof(options), .carries = 2};
    tn_scan_call(s, lstm_step, turned, &options, in, 3, out, 3);
    return tn_op(s, "base.transpose/1", TN_IN(out[2]), tn_attrs("axes", TN_INTS(1, 0, 2)));
}

// --- what has no parameters -------------------------------------------------------------

tn_array *tn_net_dropout(tn_net *net, tn_array *x, double p)
{
    if (!net->training || !net->key || p <= 0)
        return x;
    tn_scope *s = net->scope;
    const tn_type *type = tn_array_type(x);
    tn_ints shape = {.count = (uint32_t)type->rank, .given = 1};
    for (int32_t i = 0; i < type->rank; i++)
        shape.value[i] = type->extent[i];
    const tn_ints *extents = &shape;
    tn_array *key = tn_op(s, "random.fold_in/1",
                          TN_IN(net->key, tn_i64(s, (int64_t)net->draws++)), TN_NO_ATTRS);
    tn_array *u = tn_op(s, "random.random/1", TN_IN(key), tn_attrs("shape", extents));
    return tn_expr(s, "x, u -> u < p ? 0 : x / (1 - p)", TN_IN(x, u), tn_attrs("p", p));
}

// As rows of scores and one label a row.
static bool rows_of(tn_net *net, tn_array **scores, tn_array **labels)
{
    if (!*scores || !*labels || tn_scope_status(net->scope))
        return false;
    tn_scope *s = net->scope;
    const tn_type *type = tn_array_type(*scores);
    if (type->rank < 1 || tn_array_type(*labels)->rank != type->rank - 1) {
        tn_scope_fail(s, TN_ERR_ARGUMENT,
                      "scores have rank %d and labels %d, expected one less", type->rank,
                      tn_array_type(*labels)->rank);
        return false;
    }
    *scores = tn_op(s, "base.reshape/1", TN_IN(*scores),
                    tn_attrs("shape", TN_INTS(-1, last_extent(*scores))));
    *labels = tn_op(s, "base.reshape/1", TN_IN(*labels), tn_attrs("shape", TN_INTS(-1)));
    return true;
}

tn_array *tn_net_loss(tn_net *net, tn_array *scores, tn_array *labels)
{
    if (!rows_of(net, &scores, &labels))
        return NULL;
    tn_array *each =
        tn_op(net->scope, "nn.cross_entropy/1", TN_IN(scores, labels), TN_NO_ATTRS);
    return tn_op(net->scope, "base.mean/1", TN_IN(each), TN_NO_ATTRS);
}

tn_array *tn_net_accuracy(tn_net *net, tn_array *scores, tn_array *labels)
{
    if (!rows_of(net, &scores, &labels))
        return NULL;
    tn_array *best =
        tn_op(net->scope, "base.argmax/1", TN_IN(scores), tn_attrs("axis", -1));
    tn_array *right =
        tn_expr(net->scope, "a, b -> f32(a == b)", TN_IN(best, labels), TN_NO_ATTRS);
    return tn_op(net->scope, "base.mean/1", TN_IN(right), TN_NO_ATTRS);
}

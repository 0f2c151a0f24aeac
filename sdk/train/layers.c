// SPDX-License-Identifier: MIT
// Layers: operators of pack "nn" and "base" with parameters that are made at first use.
#include <math.h>
#include <stdio.h>
#include "common.h"

bool layer_fits(tn_net *net, const char *layer, const char *name, const tn_array *x,
                int32_t least, int32_t most)
{
    char text[SHAPE_TEXT];
    if (!x || tn_scope_status(net->scope))
        return false;
    const tn_type *type = tn_array_type(x);
    if (type->rank >= least && type->rank <= most)
        return true;
    char most_text[32] = "";
    if (most > least)
        snprintf(most_text, sizeof(most_text), " to %d", most);
    bool named = net->path[0] || name[0];
    tn_scope_fail(net->scope, TN_ERR_ARGUMENT, "%s%s%s%s%s: x is %s, expected %d%s axes",
                  layer, named ? " '" : "", net->path, name, named ? "'" : "",
                  train_shape_text(type, text), least, most_text);
    return false;
}

int64_t layer_width(const tn_array *x)
{
    const tn_type *type = tn_array_type(x);
    return type->extent[type->rank - 1];
}

tn_array *tn_net_linear(tn_net *net, const char *name, tn_array *x, int64_t outputs)
{
    if (!layer_fits(net, "linear", name, x, 1, TN_MAX_RANK))
        return NULL;
    int64_t inputs = layer_width(x);
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
    if (!layer_fits(net, "embedding", name, ids, 0, TN_MAX_RANK - 1))
        return NULL;
    if (!tn_dtype_in(tn_array_type(ids)->dtype, TN_INTEGER_DTYPES)) {
        tn_scope_fail(net->scope, TN_ERR_ARGUMENT,
                      "embedding '%s%s': ids are %s, expected whole numbers", net->path,
                      name, tn_dtype_name(tn_array_type(ids)->dtype));
        return NULL;
    }
    tn_net_enter(net, name, 0);
    tn_array *w = tn_net_param(net, "weight", TN_SHAPE(count, width), "normal", 1);
    tn_net_leave(net);
    return tn_op(net->scope, "base.take/1", TN_IN(w, ids), tn_attrs("axis", 0));
}

tn_array *tn_net_norm(tn_net *net, const char *name, tn_array *x)
{
    if (!layer_fits(net, "norm", name, x, 1, TN_MAX_RANK))
        return NULL;
    tn_net_enter(net, name, 0);
    tn_array *w = tn_net_param(net, "weight", TN_SHAPE(layer_width(x)), "ones", 1);
    tn_array *b = tn_net_param(net, "bias", TN_SHAPE(layer_width(x)), "zeros", 1);
    tn_net_leave(net);
    return tn_op(net->scope, "nn.layer_norm/1", TN_IN(x, w, b), TN_NO_ATTRS);
}

// Turns [batch, time, width] into [batch, heads, time, width / heads].
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
    if (!layer_fits(net, "attention", name, x, 3, 3))
        return NULL;
    const tn_type *type = tn_array_type(x);
    int64_t width = layer_width(x);
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

// --- layers without parameters ----------------------------------------------------------

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

// Reshapes scores to rows, and labels to one for each row.
static bool train_layers_rows_of(tn_net *net, tn_array **scores, tn_array **labels)
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
    if (layer_width(*scores) == 0) {
        tn_scope_fail(s, TN_ERR_ARGUMENT,
                      "scores have 0 classes on their last axis, expected at least 1");
        return false;
    }
    *scores = tn_op(s, "base.reshape/1", TN_IN(*scores),
                    tn_attrs("shape", TN_INTS(-1, layer_width(*scores))));
    *labels = tn_op(s, "base.reshape/1", TN_IN(*labels), tn_attrs("shape", TN_INTS(-1)));
    return true;
}

tn_array *tn_net_loss(tn_net *net, tn_array *scores, tn_array *labels)
{
    if (!train_layers_rows_of(net, &scores, &labels))
        return NULL;
    tn_array *each =
        tn_op(net->scope, "nn.cross_entropy/1", TN_IN(scores, labels), TN_NO_ATTRS);
    return tn_op(net->scope, "base.mean/1", TN_IN(each), TN_NO_ATTRS);
}

tn_array *tn_net_accuracy(tn_net *net, tn_array *scores, tn_array *labels)
{
    if (!train_layers_rows_of(net, &scores, &labels))
        return NULL;
    tn_array *best =
        tn_op(net->scope, "base.argmax/1", TN_IN(scores), tn_attrs("axis", -1));
    tn_array *right =
        tn_expr(net->scope, "a, b -> f32(a == b)", TN_IN(best, labels), TN_NO_ATTRS);
    return tn_op(net->scope, "base.mean/1", TN_IN(right), TN_NO_ATTRS);
}

tn_array *tn_net_confusion(tn_net *net, tn_array *scores, tn_array *labels)
{
    tn_scope *s = net->scope;
    if (!train_layers_rows_of(net, &scores, &labels))
        return NULL;
    tn_array *best = tn_op(s, "base.argmax/1", TN_IN(scores), tn_attrs("axis", -1));
    tn_array *classes = tn_op(s, "base.arange/1", NULL, 0,
                              tn_attrs("stop", (double)layer_width(scores), "step", 1.0,
                                       "dtype", (int64_t)TN_I32));
    best = tn_op(s, "base.expand_dims/1", TN_IN(best), tn_attrs("axis", 1));
    labels = tn_op(s, "base.expand_dims/1", TN_IN(labels), tn_attrs("axis", 0));
    tn_array *columns =
        tn_expr(s, "b, c -> f32(b == c)", TN_IN(best, classes), TN_NO_ATTRS);
    classes = tn_op(s, "base.expand_dims/1", TN_IN(classes), tn_attrs("axis", 1));
    tn_array *rows = tn_expr(s, "l, c -> f32(l == c)", TN_IN(labels, classes), TN_NO_ATTRS);
    tn_array *counts = tn_op(s, "base.matmul/1", TN_IN(rows, columns), TN_NO_ATTRS);
    double all = (double)tn_array_type(best)->extent[0];
    return tn_expr(s, "x -> x / all", TN_IN(counts), tn_attrs("all", all > 0 ? all : 1));
}

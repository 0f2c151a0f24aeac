// SPDX-License-Identifier: MIT
// attention_with_sinks: a sink is one more key, of score `sink` and with values of 0.
// Devices without a kernel for it, where there is no window, get that key in front of the
// others: zeros as its key and values, and a mask that adds the sinks to its scores. All
// queries see key 0; causal ones have `lengths` that count it, so that positions keep their
// meaning.
#include "attention.h"
#include <tenon/ops/rules.h>

// The operands of attention with one more key.
struct with_key {
    tn_array *k, *v, *mask, *lengths;
};

static tn_array *row_in_front(const tn_build *build, tn_array *x, double value)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    tn_type row = *type;
    row.extent[row.rank - 2] = 1;
    tn_array *first =
        with_shape(build, "base.broadcast_to/1", build->scalar(build, type->dtype, value),
                   row.rank, row.extent);
    return build->op(build, "base.concatenate/1", TN_IN(first, x),
                     tn_attrs("axis", (int64_t)row.rank - 2));
}

// The mask to add to the scores: the sinks, followed by the given mask or zeros.
static tn_array *mask_with_sinks(const tn_build *build, const tn_type *q, int64_t keys,
                                 tn_array *sinks, tn_array *mask)
{
    const tn_type *given = mask ? build->type(mask) : NULL;
    int32_t least = q->rank > 2 ? 3 : 2,
            rank = given && given->rank > least ? given->rank : least;
    int64_t extent[TN_MAX_RANK], column[3] = {attention_extent(q, 3), 1, 1};
    for (int32_t i = 0; i < rank; i++)
        extent[i] =
            given && i >= rank - given->rank ? given->extent[i - rank + given->rank] : 1;
    extent[rank - 1] = keys;
    if (least == 3)
        extent[rank - 3] = column[0];
    tn_array *zero = build->scalar(build, q->dtype, 0), *rest = mask ? mask : zero;
    if (given && given->dtype == TN_BOOL)
        rest = build->expr(build, "m, z -> select(m, z, -inf)", TN_IN(mask, zero),
                           TN_NO_ATTRS);
    rest = with_shape(build, "base.broadcast_to/1", rest, rank, extent);
    extent[rank - 1] = 1;
    sinks = with_shape(build, "base.reshape/1", sinks, least, column + 3 - least);
    sinks = with_shape(build, "base.broadcast_to/1", sinks, rank, extent);
    return build->op(build, "base.concatenate/1", TN_IN(sinks, rest),
                     tn_attrs("axis", (int64_t)rank - 1));
}

// in: q, k, v, sinks; mask and lengths may be NULL.
static struct with_key add_key(const tn_build *build, const tn_attention_attrs *attrs,
                               tn_array *const in[4], tn_array *mask, tn_array *lengths)
{
    const tn_type *q = build->type(in[0]);
    struct with_key w = {.k = row_in_front(build, in[1], 0),
                         .v = row_in_front(build, in[2], 0),
                         .mask = mask_with_sinks(build, q,
                                                 attention_extent(build->type(in[1]), 2),
                                                 in[3], mask)};
    if (lengths)
        w.lengths = build->expr(build, "n -> i64(n) + i64(1)", TN_IN(lengths), TN_NO_ATTRS);
    else if (attrs->is_causal)
        w.lengths = build->scalar(build, TN_I64, (double)(attention_extent(q, 2) + 1));
    return w;
}

static tn_array *attention_sinks_attend(const tn_build *build,
                                        const tn_attention_attrs *attrs, tn_array *q,
                                        const struct with_key *w, tn_array *v)
{
    tn_array *in[5] = {q, w->k, v, w->mask, w->lengths};
    return build->op(build, "nn.scaled_dot_product_attention/1",
                     (const tn_array *const *)in, w->lengths ? 5 : 4,
                     ATTENTION_ATTRS(attrs));
}

static tn_array *given_input(const tn_rule *rule, uint32_t i)
{
    return i < rule->num_inputs ? rule->inputs[i] : NULL;
}

tn_status attention_with_sinks_decompose(const tn_build *build, const tn_rule *rule,
                                         tn_array **outputs)
{
    const tn_attention_attrs *attrs = rule->attrs;
    if (attrs->window > 0)
        return attention_with_sinks_define(build, rule, outputs);
    struct with_key w =
        add_key(build, attrs, rule->inputs, given_input(rule, 4), given_input(rule, 5));
    outputs[0] = attention_sinks_attend(build, attrs, rule->inputs[0], &w, w.v);
    return built(outputs[0]);
}

// The gradient of each query's sink: minus the sink's weight times the sum of out times its
// gradient, as the sink's values are 0.
static tn_array *slopes_of(const tn_build *build, tn_array *weight, tn_array *out,
                           tn_array *gradient)
{
    tn_dtype dtype = tn_dtype_computed(dtype_of(build, out));
    const tn_type *type = build->type(out);
    tn_array *both = build->expr(
        build, "o, g -> o * g",
        TN_IN(cast(build, out, dtype), cast(build, gradient, dtype)), TN_NO_ATTRS);
    tn_array *sum =
        build->op(build, "base.sum/1", TN_IN(both), tn_attrs("axis", TN_INTS(-1)));
    weight = with_shape(build, "base.reshape/1", weight, type->rank - 1, type->extent);
    return build->expr(build, "p, d -> -(p * d)", TN_IN(cast(build, weight, dtype), sum),
                       TN_NO_ATTRS);
}

// The sum of the weights of all keys for each query, [..., L, 1], at least in f32:
// attention over values of 1.
static tn_array *weights_of_keys(const tn_build *build, const tn_rule *rule)
{
    const tn_type *k = build->type(rule->inputs[1]);
    const tn_dtype dtype = tn_dtype_computed(k->dtype);
    tn_type one = *k;
    one.extent[one.rank - 1] = 1;
    tn_array *in[6] = {NULL};
    for (uint32_t i = 0; i < 2; i++)
        in[i] = cast(build, rule->inputs[i], dtype);
    in[2] = with_shape(build, "base.broadcast_to/1", build->scalar(build, dtype, 1),
                       one.rank, one.extent);
    in[3] = cast(build, rule->inputs[SINKS_SINKS], dtype);
    in[4] = given_input(rule, SINKS_MASK);
    if (in[4] && dtype_of(build, in[4]) != TN_BOOL)
        in[4] = cast(build, in[4], dtype);
    in[5] = given_input(rule, SINKS_MASK + 1);
    return build->op(build, "nn.attention_with_sinks/1", (const tn_array *const *)in,
                     in[5]   ? 6
                     : in[4] ? 5
                             : 4,
                     ATTENTION_ATTRS((const tn_attention_attrs *)rule->attrs));
}

// With a window no key can stand for a sink. The result is r times attention's, where r is
// the keys' share of the weights. As r = 1 / (1 + exp(sink - s)), with s the logarithm of
// the sum of exponentials, the derivative is attention's for r times the gradient, at the
// result with sinks.
static tn_status windowed_grad(const tn_build *build, const tn_rule *rule,
                               tn_array **outputs)
{
    tn_array *gradient = rule->inputs[SINKS_GRADIENT], *out = rule->inputs[SINKS_OUT];
    tn_array *share = weights_of_keys(build, rule), *scaled;
    if (!share)
        return TN_ERR_ARGUMENT;
    scaled = build->expr(build, "r, g -> r * g",
                         TN_IN(share, cast(build, gradient, dtype_of(build, share))),
                         TN_NO_ATTRS);
    tn_array *in[7] = {rule->inputs[0],
                       rule->inputs[1],
                       rule->inputs[2],
                       out,
                       cast(build, scaled, dtype_of(build, out)),
                       given_input(rule, SINKS_MASK),
                       given_input(rule, SINKS_MASK + 1)};
    tn_status status =
        build->op_n(build, "nn.attention_grad/1", (const tn_array *const *)in,
                    in[6]   ? 7
                    : in[5] ? 6
                            : 5,
                    ATTENTION_ATTRS((const tn_attention_attrs *)rule->attrs), outputs, 3);
    // A query that sees no key has the result 0, so its sink gets no gradient.
    tn_array *weight = build->expr(build, "r -> 1 - r", TN_IN(share), TN_NO_ATTRS);
    outputs[3] = slopes_of(build, weight, out, gradient);
    return status ? status : built(outputs[3]);
}

tn_status attention_with_sinks_grad_decompose(const tn_build *build, const tn_rule *rule,
                                              tn_array **outputs)
{
    const tn_attention_attrs *attrs = rule->attrs;
    tn_array *q = rule->inputs[0], *out = rule->inputs[SINKS_OUT], *all[3];
    tn_array *gradient = rule->inputs[SINKS_GRADIENT], *weight;
    if (attrs->window > 0)
        return windowed_grad(build, rule, outputs);
    struct with_key w = add_key(build, attrs, rule->inputs, given_input(rule, SINKS_MASK),
                                given_input(rule, SINKS_MASK + 1));
    tn_array *in[7] = {q, w.k, w.v, out, gradient, w.mask, w.lengths};
    tn_status status =
        build->op_n(build, "nn.attention_grad/1", (const tn_array *const *)in,
                    w.lengths ? 7 : 6, ATTENTION_ATTRS(attrs), all, 3);
    if (status)
        return status;
    const tn_type *k = build->type(rule->inputs[1]);
    int64_t keys = attention_extent(k, 2);
    outputs[0] = all[0];
    for (int i = 1; i < 3; i++)
        outputs[i] = part_of_axis(build, all[i], k->rank - 2, 1, 1, keys);
    tn_type one = *k; // the sink's weight: attention over a 1 at the sink's key
    one.extent[one.rank - 1] = 1;
    tn_array *others = zeros(build, k->dtype, one.rank, one.extent);
    weight = attention_sinks_attend(build, attrs, q, &w, row_in_front(build, others, 1));
    outputs[3] = slopes_of(build, weight, out, gradient);
    return built(outputs[3]);
}

// --- rules ------------------------------------------------------------------------------

tn_status attention_with_sinks_vjp(const tn_build *build, const tn_rule *rule,
                                   tn_array *const *cotangents, const uint64_t *wanted,
                                   tn_array **gradients)
{
    tn_array *all[4], *in[8] = {rule->inputs[0],      rule->inputs[1],     rule->inputs[2],
                                rule->inputs[3],      rule->outputs[0],    cotangents[0],
                                given_input(rule, 4), given_input(rule, 5)};
    const tn_type *q = build->type(in[0]);
    tn_status status = TN_OK;
    int any = 0;
    for (uint32_t i = 0; i < 4; i++)
        any |= wants(wanted, i);
    if (any)
        status = build->op_n(
            build, "nn.attention_with_sinks_grad/1", (const tn_array *const *)in, 8,
            ATTENTION_ATTRS((const tn_attention_attrs *)rule->attrs), all, 4);
    if (status)
        return status;
    for (uint32_t i = 0; i < 3 && any; i++)
        gradients[i] = all[i];
    if (wants(wanted, 3)) {
        // Sums over all axes but the heads'.
        tn_ints axes = {.given = 1};
        for (int32_t i = 0; i < q->rank - 1; i++)
            if (i != q->rank - 3)
                axes.value[axes.count++] = i;
        gradients[3] = build->op(build, "base.sum/1", TN_IN(all[3]),
                                 tn_attrs("axis", (const tn_ints *)&axes));
        if (q->rank == 2) {
            int64_t heads = 1;
            gradients[3] = with_shape(build, "base.reshape/1", gradients[3], 1, &heads);
        }
    }
    if (wants(wanted, 4))
        gradients[4] = attention_with_sinks_mask_gradient(build, rule->attrs, in);
    return built_wanted(wanted, gradients, 5);
}

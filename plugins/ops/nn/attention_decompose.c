// SPDX-License-Identifier: MIT
// The definitions of attention and of its derivative, by matrix products and a matrix of
// all scores.
//
// Query heads that share a key-value head are rows of one matrix product: q as [..., G, H /
// G * L, E]. In the scores, [..., G, H / G, L, S], axes are numbered as q's, with one more
// for H / G.

#include "attention.h"
#include <tenon/ops/rules.h>

struct decompose_attention {
    const tn_build *build;
    const tn_attention_attrs *attrs;
    const tn_type *whole; // of q
    tn_type q, scores;    // of q [..., G, R, L, E], of the scores [..., G, R, L, S]
    int64_t groups, keys, width;
    tn_dtype computed;
    int is_grouped;
    tn_array *in[3], *mask, *lengths; // q, k, v; NULL: not given
    tn_array *sinks;                  // one for each head; NULL: none
};

// The inputs before `mask` are q, k, v, and possibly others.
static struct decompose_attention attention_decompose_begin(const tn_build *build,
                                                            const tn_attention_attrs *attrs,
                                                            tn_array *const *in,
                                                            uint32_t num_in, uint32_t mask)
{
    const tn_type *q = build->type(in[0]), *k = build->type(in[1]);
    struct decompose_attention a = {.build = build,
                                    .attrs = attrs,
                                    .whole = q,
                                    .q = *q,
                                    .in = {in[0], in[1], in[2]},
                                    .width = attention_extent(build->type(in[2]), 1),
                                    .computed = tn_dtype_computed(q->dtype)};
    a.groups = attention_extent(k, 3);
    a.keys = attention_extent(k, 2);
    int64_t heads = attention_extent(q, 3);
    if (q->rank > 2 && heads != a.groups) {
        a.q.rank++;
        a.q.extent[q->rank - 3] = a.groups;
        a.q.extent[q->rank - 2] = heads / a.groups;
        a.q.extent[q->rank - 1] = attention_extent(q, 2);
        a.q.extent[q->rank] = attention_extent(q, 1);
    }
    a.scores = a.q;
    a.scores.extent[a.q.rank - 1] = a.keys;
    a.is_grouped = a.q.rank != q->rank;
    a.mask = num_in > mask ? in[mask] : NULL;
    a.lengths = num_in > mask + 1 ? in[mask + 1] : NULL;
    return a;
}

// Merges q's query heads of a key-value head with its rows, or splits them: to the axes of
// `type`, with a last axis of extent `last`.
static tn_array *attention_decompose_regrouped(const struct decompose_attention *a,
                                               tn_array *x, int merged, int64_t last)
{
    if (!a->is_grouped)
        return x;
    tn_type to = a->q;
    int32_t rank = to.rank;
    if (merged) {
        to.extent[rank - 3] *= to.extent[rank - 2];
        rank--;
    }
    to.extent[rank - 1] = last;
    return with_shape(a->build, "base.reshape/1", x, rank, to.extent);
}

// Merges q's heads to one axis again: the axes of q, with a last axis of extent `last`.
static tn_array *attention_decompose_ungrouped(const struct decompose_attention *a,
                                               tn_array *x, int64_t last)
{
    tn_type to = *a->whole;
    to.extent[to.rank - 1] = last;
    return a->is_grouped ? with_shape(a->build, "base.reshape/1", x, to.rank, to.extent)
                         : x;
}

// The mask with the axes of the scores, in which heads are two axes.
static tn_array *grouped_mask(const struct decompose_attention *a)
{
    const tn_type *mask = a->build->type(a->mask);
    tn_type to = *mask;
    if (!a->is_grouped || mask->rank < 3)
        return a->mask;
    int32_t heads = mask->rank - 3;
    to.rank++;
    for (int32_t i = to.rank - 1; i > heads + 1; i--)
        to.extent[i] = mask->extent[i - 1];
    int is_one = mask->extent[heads] == 1;
    to.extent[heads] = is_one ? 1 : a->groups;
    to.extent[heads + 1] = is_one ? 1 : mask->extent[heads] / a->groups;
    return with_shape(a->build, "base.reshape/1", a->mask, to.rank, to.extent);
}

// Whether a query sees a key by their positions: bool, or NULL where all see all.
static tn_array *attention_decompose_seen(const struct decompose_attention *a)
{
    const tn_build *build = a->build;
    const tn_attention_attrs *attrs = a->attrs;
    int64_t queries = attention_extent(&a->scores, 2);
    if (!a->lengths && !attrs->is_causal && attrs->window == 0)
        return NULL;
    tn_array *key = counted(build, a->keys, 0), *at = counted(build, queries, 1);
    tn_array *end = NULL, *sees = NULL;
    if (a->lengths) {
        int64_t column[TN_MAX_RANK] = {a->scores.extent[0], 1, 1, 1, 1, 1, 1, 1};
        end = build->type(a->lengths)->rank == 0
                  ? a->lengths
                  : with_shape(build, "base.reshape/1", a->lengths, a->scores.rank, column);
        end = build->expr(build, "n -> i64(n)", TN_IN(end), TN_NO_ATTRS);
        at = build->expr(build, "i, n -> n - i64(l) + i", TN_IN(at, end),
                         tn_attrs("l", queries));
        sees = build->expr(build, "j, n -> j < n", TN_IN(key, end), TN_NO_ATTRS);
    }
    if (attrs->is_causal || attrs->window > 0) {
        tn_array *near = build->expr(
            build,
            "j, i -> (i64(causal) == 0 | j <= i) & (i64(window) == 0 | i - j < "
            "i64(window))",
            TN_IN(key, at), tn_attrs("causal", attrs->is_causal, "window", attrs->window));
        sees = sees ? build->expr(build, "a, b -> a & b", TN_IN(sees, near), TN_NO_ATTRS)
                    : near;
    }
    return sees;
}

// Swaps rows and columns of the matrices in x.
static tn_array *attention_decompose_flipped(const tn_build *build, tn_array *x)
{
    const tn_type *type = build->type(x);
    int32_t rank = type ? type->rank : 2;
    return tn_move_axis(build, x, rank - 1, rank - 2);
}

static tn_array *attention_decompose_product(const tn_build *build, tn_array *x,
                                             tn_array *y)
{
    return build->op(build, "base.matmul/1", TN_IN(x, y), TN_NO_ATTRS);
}

static tn_array *attention_decompose_as(const struct decompose_attention *a, tn_array *x,
                                        tn_dtype dtype)
{
    return dtype_of(a->build, x) == dtype ? x : cast(a->build, x, dtype);
}

static double attention_decompose_scale_of(const struct decompose_attention *a)
{
    double width = (double)attention_extent(a->whole, 1);
    return a->attrs->scale != 0 ? a->attrs->scale : 1 / sqrt(width > 0 ? width : 1);
}

// Scores after scale and soft cap, [..., G, R, L, S], in the dtype of computation.
static tn_array *attention_decompose_capped(const struct decompose_attention *a)
{
    const tn_build *build = a->build;
    tn_array *queries =
        attention_decompose_regrouped(a, a->in[0], 1, attention_extent(a->whole, 1));
    tn_array *scores = attention_decompose_product(
        build, queries, attention_decompose_flipped(build, a->in[1]));
    scores = attention_decompose_as(a, attention_decompose_regrouped(a, scores, 0, a->keys),
                                    a->computed);
    double scale = attention_decompose_scale_of(a), cap = a->attrs->soft_cap;
    return build->expr(
        build, cap > 0 ? "s -> cap * tanh(s * scale / cap)" : "s -> s * scale",
        TN_IN(scores),
        cap > 0 ? tn_attrs("scale", scale, "cap", cap) : tn_attrs("scale", scale));
}

// The sinks with the axes of the scores: one more score for each head, without a key.
static tn_array *sink_column(const struct decompose_attention *a)
{
    const tn_build *build = a->build;
    int64_t heads = attention_extent(a->whole, 3);
    int64_t columns[4] = {a->is_grouped ? a->groups : heads,
                          a->is_grouped ? heads / a->groups : 1, 1, 1};
    int32_t rank = a->is_grouped ? 4 : a->whole->rank > 2 ? 3 : 2;
    return attention_decompose_as(
        a, with_shape(build, "base.reshape/1", a->sinks, rank, columns), a->computed);
}

// Masks scores: keys that a query does not see get minus infinity.
static tn_array *masked_scores(const struct decompose_attention *a, tn_array *scores)
{
    const tn_build *build = a->build;
    if (a->mask) {
        tn_array *mask = grouped_mask(a);
        scores = build->expr(build,
                             dtype_of(build, mask) == TN_BOOL ? "s, m -> select(m, s, -inf)"
                                                              : "s, m -> s + m",
                             TN_IN(scores, mask), TN_NO_ATTRS);
    }
    tn_array *sees = attention_decompose_seen(a);
    if (sees)
        scores = build->expr(build, "s, m -> select(m, s, -inf)", TN_IN(scores, sees),
                             TN_NO_ATTRS);
    return scores;
}

// The softmax of the scores.
static tn_array *attention_decompose_weights(const struct decompose_attention *a,
                                             tn_array *scores)
{
    const tn_build *build = a->build;
    scores = masked_scores(a, scores);
    if (a->sinks && a->keys > 0)
        return build->expr(build,
                           "s, k -> m = max(max(s), k); o = select(m > -inf, m, 0); "
                           "e = exp(s - o); d = sum(e) + exp(k - o); "
                           "select(d == 0, 0, e / d)",
                           TN_IN(scores, sink_column(a)), TN_NO_ATTRS);
    return a->keys == 0 ? scores
                        : build->expr(build,
                                      "s -> m = max(s); e = exp(s - select(m > -inf, m, "
                                      "0)); d = sum(e); select(d == 0, 0, e / d)",
                                      TN_IN(scores), TN_NO_ATTRS);
}

// q of rank 2 stays a matrix in all products; otherwise batch axes are in front.
tn_status attention_decompose(const tn_build *build, const tn_rule *rule,
                              tn_array **outputs)
{
    struct decompose_attention a = attention_decompose_begin(
        build, rule->attrs, rule->inputs, rule->num_inputs, ATTENTION_MASK - 2);
    tn_array *p = attention_decompose_as(
        &a, attention_decompose_weights(&a, attention_decompose_capped(&a)),
        a.whole->dtype);
    p = attention_decompose_regrouped(&a, p, 1, a.keys);
    outputs[0] = attention_decompose_ungrouped(
        &a, attention_decompose_product(build, p, a.in[2]), a.width);
    return built(outputs[0]);
}

// The inputs: q, k, v, sinks, mask, lengths.
tn_status attention_with_sinks_define(const tn_build *build, const tn_rule *rule,
                                      tn_array **outputs)
{
    struct decompose_attention a =
        attention_decompose_begin(build, rule->attrs, rule->inputs, rule->num_inputs, 4);
    a.sinks = rule->inputs[3];
    tn_array *p = attention_decompose_as(
        &a, attention_decompose_weights(&a, attention_decompose_capped(&a)),
        a.whole->dtype);
    p = attention_decompose_regrouped(&a, p, 1, a.keys);
    outputs[0] = attention_decompose_ungrouped(
        &a, attention_decompose_product(build, p, a.in[2]), a.width);
    return built(outputs[0]);
}

// --- derivatives ------------------------------------------------------------------------
//
// With weights p = softmax(s) of masked scores s, and out = p v: the gradient of p is out's
// gradient times v', and ds = p (dp - sum(dp p)), where the sum over keys equals that of
// out times its gradient. The soft cap c of scores, c tanh(x / c), has the derivative 1 -
// (s / c)^2.

// The gradient of the scores before or after the soft cap; *out_weights, if not NULL, gets
// the weights.
static tn_array *score_gradient(const struct decompose_attention *a, tn_array *out,
                                tn_array *gradient, int is_before, tn_array **out_weights)
{
    const tn_build *build = a->build;
    tn_array *s = attention_decompose_capped(a), *p = attention_decompose_weights(a, s);
    tn_array *dp = attention_decompose_product(
        build, attention_decompose_regrouped(a, gradient, 1, a->width),
        attention_decompose_flipped(build, a->in[2]));
    dp = attention_decompose_as(a, attention_decompose_regrouped(a, dp, 0, a->keys),
                                a->computed);
    tn_array *both = build->expr(build, "o, g -> o * g",
                                 TN_IN(attention_decompose_as(a, out, a->computed),
                                       attention_decompose_as(a, gradient, a->computed)),
                                 TN_NO_ATTRS);
    tn_array *d = build->op(build, "base.sum/1", TN_IN(both),
                            tn_attrs("axis", TN_INTS(-1), "keepdims", (int64_t)1));
    d = attention_decompose_regrouped(a, d, 0, 1);
    double cap = a->attrs->soft_cap;
    if (out_weights)
        *out_weights = p;
    return is_before && cap > 0
               ? build->expr(build,
                             "p, g, d, s -> p * (g - d) * (1 - (s / cap) * (s / cap))",
                             TN_IN(p, dp, d, s), tn_attrs("cap", cap))
               : build->expr(build, "p, g, d -> p * (g - d)", TN_IN(p, dp, d), TN_NO_ATTRS);
}

tn_array *attention_mask_gradient(const tn_build *build, const tn_attention_attrs *attrs,
                                  tn_array *const in[7])
{
    struct decompose_attention a =
        attention_decompose_begin(build, attrs, in, 7, ATTENTION_MASK);
    tn_array *ds = score_gradient(&a, in[ATTENTION_OUT], in[ATTENTION_GRADIENT], 0, NULL);
    return attention_decompose_ungrouped(&a, ds, a.keys);
}

static tn_status matrix_gradients(const struct decompose_attention *a, tn_array *out,
                                  tn_array *gradient, tn_array **outputs)
{
    const tn_build *build = a->build;
    tn_array *p, *ds = score_gradient(a, out, gradient, 1, &p);
    ds = build->expr(build, "s -> s * scale", TN_IN(ds),
                     tn_attrs("scale", attention_decompose_scale_of(a)));
    int64_t depth = attention_extent(a->whole, 1);
    ds = attention_decompose_regrouped(a, attention_decompose_as(a, ds, a->whole->dtype), 1,
                                       a->keys);
    p = attention_decompose_regrouped(a, attention_decompose_as(a, p, a->whole->dtype), 1,
                                      a->keys);
    outputs[0] = attention_decompose_ungrouped(
        a, attention_decompose_product(build, ds, a->in[1]), depth);
    outputs[1] =
        attention_decompose_product(build, attention_decompose_flipped(build, ds),
                                    attention_decompose_regrouped(a, a->in[0], 1, depth));
    outputs[2] = attention_decompose_product(
        build, attention_decompose_flipped(build, p),
        attention_decompose_regrouped(a, gradient, 1, a->width));
    return outputs[0] && outputs[1] && outputs[2] ? TN_OK : TN_ERR_ARGUMENT;
}

tn_status attention_grad_decompose(const tn_build *build, const tn_rule *rule,
                                   tn_array **outputs)
{
    struct decompose_attention a = attention_decompose_begin(
        build, rule->attrs, rule->inputs, rule->num_inputs, ATTENTION_MASK);
    return matrix_gradients(&a, rule->inputs[ATTENTION_OUT],
                            rule->inputs[ATTENTION_GRADIENT], outputs);
}

tn_array *attention_with_sinks_mask_gradient(const tn_build *build,
                                             const tn_attention_attrs *attrs,
                                             tn_array *const in[8])
{
    struct decompose_attention a =
        attention_decompose_begin(build, attrs, in, 8, SINKS_MASK);
    a.sinks = in[SINKS_SINKS];
    return attention_decompose_ungrouped(
        &a, score_gradient(&a, in[SINKS_OUT], in[SINKS_GRADIENT], 0, NULL), a.keys);
}

// SPDX-License-Identifier: MIT
// scaled_dot_product_attention.
#include "pack.h"

static const tn_input_info attention_inputs[] = {
    {"q", "queries: ..., heads, L, E", 0, TN_FLOAT_DTYPES},
    {"k", "keys: ..., groups of heads, S, E", 0, TN_FLOAT_DTYPES},
    {"v", "values: ..., groups of heads, S, F", 0, TN_FLOAT_DTYPES},
    {"mask", "bool: which keys are seen; or q's dtype: added to the scores",
     TN_INPUT_OPTIONAL, 0},
    {"lengths", "integers: keys there are, one or one for each index of axis 0",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field attention_fields[] = {
    TN_F64_FIELD(tn_attention_attrs, scale, 0, "of the scores; 0: 1 / sqrt(E)"),
    TN_BOOL_FIELD(tn_attention_attrs, is_causal, 0, "keys up to a query's own position"),
    TN_I64_FIELD(tn_attention_attrs, window, 0, "keys up to a query's position; 0: all"),
    TN_F64_FIELD(tn_attention_attrs, soft_cap, 0, "bound of the scores; 0: none"),
};

// --- types ------------------------------------------------------------------------------

// Extent of axis `behind` the end: 1 is the last one.
static int64_t extent_of(const tn_type *type, int32_t behind)
{
    return type->rank >= behind ? type->extent[type->rank - behind] : 1;
}

static tn_status check_kv(const tn_host *host, const tn_type *q, const tn_type *k,
                          const tn_type *v)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT], c[SHAPE_TEXT];
    const tn_type *all[] = {k, v};
    static const char *const names[] = {"k", "v"};
    for (int i = 0; i < 2; i++) {
        tn_status status = check_dtype(host, names[i], all[i], q->dtype);
        if (status)
            return status;
        if (all[i]->rank != q->rank)
            return host->fail(host, TN_ERR_ARGUMENT, "%s has rank %d, expected %d as q",
                              names[i], all[i]->rank, q->rank);
    }
    int fits = extent_of(q, 1) == extent_of(k, 1) && extent_of(k, 2) == extent_of(v, 2) &&
               extent_of(k, 3) == extent_of(v, 3);
    for (int32_t i = 4; i <= q->rank; i++)
        fits &= extent_of(q, i) == extent_of(k, i) && extent_of(q, i) == extent_of(v, i);
    int64_t heads = extent_of(q, 3), groups = extent_of(k, 3);
    if (fits && (groups == heads || (groups > 0 && heads % groups == 0)))
        return TN_OK;
    return host->fail(
        host, TN_ERR_ARGUMENT,
        "q has shape %s, k %s and v %s, expected [..., H, L, E], [..., G, S, E] "
        "and [..., G, S, F] with H a multiple of G",
        shape_text(q, a), shape_text(k, b), shape_text(v, c));
}

// Whether `mask` broadcasts to the extents of the scores.
static int fits_scores(const tn_type *mask, const tn_type *scores)
{
    for (int32_t i = 1; i <= mask->rank; i++)
        if (i > scores->rank ||
            (extent_of(mask, i) != 1 && extent_of(mask, i) != extent_of(scores, i)))
            return 0;
    return 1;
}

static tn_status check_masks(const tn_infer *infer, const tn_type *scores)
{
    const tn_host *host = infer->host;
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    const tn_type *mask = infer->num_inputs > 3 ? &infer->types[3] : NULL;
    const tn_type *lengths = infer->num_inputs > 4 ? &infer->types[4] : NULL;
    if (mask && mask->dtype) {
        if (mask->dtype != TN_BOOL && mask->dtype != scores->dtype)
            return host->fail(host, TN_ERR_ARGUMENT, "mask is %s, expected bool or q's %s",
                              tn_dtype_name(mask->dtype), tn_dtype_name(scores->dtype));
        if (!fits_scores(mask, scores))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "mask has shape %s, which does not broadcast to %s",
                              shape_text(mask, got), shape_text(scores, expected));
    }
    if (lengths && lengths->dtype) {
        if (!tn_dtype_in(lengths->dtype, TN_INTEGER_DTYPES))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "lengths is %s, expected an integer dtype",
                              tn_dtype_name(lengths->dtype));
        if (lengths->rank > 1 ||
            (lengths->rank == 1 &&
             (scores->rank < 4 || lengths->extent[0] != scores->extent[0])))
            return host->fail(
                host, TN_ERR_ARGUMENT,
                "lengths has shape %s, expected [], or [N] for the first of 4 "
                "or more axes, in %s",
                shape_text(lengths, got), shape_text(scores, expected));
    }
    return TN_OK;
}

static tn_status attention_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_attention_attrs *attrs = infer->attrs;
    const tn_type *q = &infer->types[0], *k = &infer->types[1], *v = &infer->types[2];
    if (q->rank < 2)
        return host->fail(host, TN_ERR_ARGUMENT, "q has rank %d, expected 2 or more",
                          q->rank);
    tn_status status = check_kv(host, q, k, v);
    if (status)
        return status;
    if (!isfinite(attrs->scale) || !(attrs->soft_cap >= 0) || attrs->window < 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "scale is %g, soft_cap %g and window %" PRId64
                          ", expected a finite scale, and the others at least 0",
                          attrs->scale, attrs->soft_cap, attrs->window);
    tn_type scores = *q;
    scores.extent[q->rank - 1] = extent_of(k, 2);
    status = check_masks(infer, &scores);
    if (status)
        return status;
    types[0] = *q;
    types[0].extent[q->rank - 1] = extent_of(v, 1);
    return TN_OK;
}

// --- decomposition ----------------------------------------------------------------------
//
// Query heads of a group are rows of one matrix product: q as [..., G, H / G * L, E]. In
// the scores, [..., G, H / G, L, S], the axes count as those of q, and one more for H / G.

struct attention {
    const tn_build *build;
    const tn_attention_attrs *attrs;
    tn_type q, scores; // of q [..., G, R, L, E], of the scores [..., G, R, L, S]
    int64_t groups, rows, keys;
    tn_array *mask, *lengths; // NULL: not given
};

static struct attention begin(const tn_build *build, const tn_rule *rule)
{
    const tn_type *q = build->type(rule->inputs[0]), *k = build->type(rule->inputs[1]);
    struct attention a = {.build = build, .attrs = rule->attrs, .q = *q};
    a.groups = extent_of(k, 3);
    a.keys = extent_of(k, 2);
    int64_t heads = extent_of(q, 3);
    if (q->rank > 2 && heads != a.groups) {
        a.q.rank++;
        a.q.extent[q->rank - 3] = a.groups;
        a.q.extent[q->rank - 2] = heads / a.groups;
        a.q.extent[q->rank - 1] = extent_of(q, 2);
        a.q.extent[q->rank] = extent_of(q, 1);
    }
    a.scores = a.q;
    a.scores.extent[a.q.rank - 1] = a.keys;
    a.mask = rule->num_inputs > 3 ? rule->inputs[3] : NULL;
    a.lengths = rule->num_inputs > 4 ? rule->inputs[4] : NULL;
    return a;
}

// q with the query heads of a group merged with its rows, or the reverse: the axes of
// `type`, the last one of extent `last`.
static tn_array *regrouped(const struct attention *a, tn_array *x, int merged, int64_t last)
{
    tn_type to = a->q;
    int32_t rank = to.rank;
    if (merged) {
        to.extent[rank - 3] *= to.extent[rank - 2];
        rank--;
    }
    to.extent[rank - 1] = last;
    return with_shape(a->build, "base.reshape/1", x, rank, to.extent);
}

// The mask with the axes of the scores, in which heads are two axes.
static tn_array *grouped_mask(const struct attention *a, const tn_type *q)
{
    const tn_type *mask = a->build->type(a->mask);
    tn_type to = *mask;
    if (a->q.rank == q->rank || mask->rank < 3)
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

// Whether a key is seen by place alone: bool, or NULL where all are.
static tn_array *seen(const struct attention *a)
{
    const tn_build *build = a->build;
    const tn_attention_attrs *attrs = a->attrs;
    int64_t queries = extent_of(&a->scores, 2);
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

// Scores with scale, soft cap and mask, in the dtype that they are computed in; what is not
// seen is minus infinity.
static tn_array *masked(const struct attention *a, const tn_type *q, tn_array *scores)
{
    const tn_build *build = a->build;
    const tn_attention_attrs *attrs = a->attrs;
    double width = (double)extent_of(q, 1);
    double scale = attrs->scale != 0 ? attrs->scale : 1 / sqrt(width > 0 ? width : 1);
    scores = build->expr(
        build, attrs->soft_cap > 0 ? "s -> cap * tanh(s * scale / cap)" : "s -> s * scale",
        TN_IN(scores),
        attrs->soft_cap > 0 ? tn_attrs("scale", scale, "cap", attrs->soft_cap)
                            : tn_attrs("scale", scale));
    if (a->mask) {
        tn_array *mask = grouped_mask(a, q);
        scores = build->expr(build,
                             dtype_of(build, mask) == TN_BOOL ? "s, m -> select(m, s, -inf)"
                                                              : "s, m -> s + m",
                             TN_IN(scores, mask), TN_NO_ATTRS);
    }
    tn_array *sees = seen(a);
    return sees ? build->expr(build, "s, m -> select(m, s, -inf)", TN_IN(scores, sees),
                              TN_NO_ATTRS)
                : scores;
}

// q's rank-2 form and the products are matrices of rank 2; others have batches in front.
static tn_status attention_decompose(const tn_build *build, const tn_rule *rule,
                                     tn_array **outputs)
{
    const tn_type *q = build->type(rule->inputs[0]), *v = build->type(rule->inputs[2]);
    struct attention a = begin(build, rule);
    int is_grouped = a.q.rank != q->rank;
    tn_dtype computed = tn_dtype_computed(q->dtype);
    tn_array *queries = rule->inputs[0], *keys = rule->inputs[1], *values = rule->inputs[2];
    tn_ints order = {.count = (uint32_t)q->rank, .given = 1};
    for (int32_t i = 0; i < q->rank; i++)
        order.value[i] = i < q->rank - 2 ? i : 2 * q->rank - 3 - i;
    tn_array *columns = build->op(build, "base.transpose/1", TN_IN(keys),
                                  tn_attrs("axes", (const tn_ints *)&order));
    if (is_grouped)
        queries = regrouped(&a, queries, 1, extent_of(q, 1));
    tn_array *scores =
        build->op(build, "base.matmul/1", TN_IN(queries, columns), TN_NO_ATTRS);
    if (is_grouped)
        scores = regrouped(&a, scores, 0, a.keys);
    if (computed != q->dtype)
        scores = cast(build, scores, computed);
    scores = masked(&a, q, scores);
    tn_array *weights =
        a.keys == 0 ? scores
                    : build->expr(build,
                                  "s -> m = max(s); e = exp(s - select(m > -inf, m, "
                                  "0)); d = sum(e); select(d == 0, 0, e / d)",
                                  TN_IN(scores), TN_NO_ATTRS);
    if (computed != q->dtype)
        weights = cast(build, weights, q->dtype);
    if (is_grouped)
        weights = regrouped(&a, weights, 1, a.keys);
    tn_array *out = build->op(build, "base.matmul/1", TN_IN(weights, values), TN_NO_ATTRS);
    tn_type to = *q;
    to.extent[q->rank - 1] = extent_of(v, 1);
    outputs[0] =
        is_grouped ? with_shape(build, "base.reshape/1", out, to.rank, to.extent) : out;
    return built(outputs[0]);
}

const tn_primitive nn_scaled_dot_product_attention = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.scaled_dot_product_attention/1",
    .doc = "Means of values, weighed by the softmax of queries times keys.",
    TN_INPUTS(attention_inputs),
    .attrs = TN_ATTR_TABLE(tn_attention_attrs, attention_fields),
    .infer = attention_infer,
    .decompose = attention_decompose,
};

// SPDX-License-Identifier: MIT
// Distances and similarities of vectors, and the losses made of them.
#include "losses.h"

// --- lengths ----------------------------------------------------------------------------

// (sum(abs(x) ** p) along `axis`) ** (1 / p); the axis is kept or removed. Its slope at a
// vector of zeros is 0, as in PyTorch.
static tn_array *nn_distances_length_of(const tn_build *build, tn_array *x, double p,
                                        int64_t axis, int64_t keepdims)
{
    if (isinf(p))
        return build->op(build, "base.max/1",
                         TN_IN(build->expr(build, "x -> abs(x)", TN_IN(x), TN_NO_ATTRS)),
                         tn_attrs("axis", TN_INTS(axis), "keepdims", keepdims));
    const char *power = p == 1   ? "x -> abs(x)"
                        : p == 2 ? "x -> x * x"
                                 : "x -> pow(abs(x), p)";
    tn_attr_list attrs = p == 1 || p == 2 ? TN_NO_ATTRS : tn_attrs("p", p);
    tn_array *sum =
        summed_over(build, build->expr(build, power, TN_IN(x), attrs), axis, keepdims);
    return p == 1   ? sum
           : p == 2 ? build->expr(build, "s -> s == 0 ? 0 : sqrt(s == 0 ? 1 : s)",
                                  TN_IN(sum), TN_NO_ATTRS)
                    : build->expr(build, "s -> s == 0 ? 0 : pow(s == 0 ? 1 : s, q)",
                                  TN_IN(sum), tn_attrs("q", 1 / p));
}

static tn_status check_norm(const tn_host *host, double p)
{
    if (p > 0)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "p is %g, expected more than 0", p);
}

typedef struct {
    double p, eps;
    int64_t axis;
} normalize_attrs;
static const tn_attr_field normalize_fields[] = {
    TN_F64_FIELD(normalize_attrs, p, 2, "power of the norm"),
    TN_I64_FIELD(normalize_attrs, axis, -1, "of vectors; PyTorch's is 1"),
    TN_F64_FIELD(normalize_attrs, eps, 1e-12, "the least length that is divided by"),
};
static const tn_input_info vectors_input[] = {{"x", "the array", 0, TN_FLOAT_DTYPES}};

DECOMPOSE(normalize)
{
    const normalize_attrs *attrs = rule->attrs;
    tn_status status = check_norm(build->host, attrs->p);
    if (status)
        return status;
    // The length may exceed a half float's range.
    tn_dtype dtype = dtype_of(build, rule->inputs[0]), computed = tn_dtype_computed(dtype);
    tn_array *x =
        computed == dtype ? rule->inputs[0] : cast(build, rule->inputs[0], computed);
    tn_array *length = nn_distances_length_of(build, x, attrs->p, attrs->axis, 1);
    x = build->expr(build, "x, n -> x / max(n, eps)", TN_IN(x, length),
                    tn_attrs("eps", attrs->eps));
    outputs[0] = computed == dtype ? x : cast(build, x, dtype);
    return built(outputs[0]);
}
COMPOSITE(normalize, "normalize/1", "x divided by its length along an axis.",
          TN_INPUTS(vectors_input),
          .attrs = TN_ATTR_TABLE(normalize_attrs, normalize_fields));

// --- similarity -------------------------------------------------------------------------

typedef struct {
    double eps;
    int64_t axis;
} similarity_attrs;
static const tn_attr_field similarity_fields[] = {
    TN_I64_FIELD(similarity_attrs, axis, -1, "of vectors; PyTorch's is 1"),
    TN_F64_FIELD(similarity_attrs, eps, 1e-8, "the least length that is divided by"),
};
static const char *const two_names[] = {"x1", "x2"};
static const tn_input_info two_inputs[] = {
    {"x1", "vectors", 0, TN_FLOAT_DTYPES},
    {"x2", "vectors, of x1's shape", 0, TN_FLOAT_DTYPES},
};

// sum(a * b) / sqrt(the product for a and b of max(sum(x * x), least) + more).
static tn_array *cosine_of(const tn_build *build, tn_array *a, tn_array *b, int64_t axis,
                           double least, double more)
{
    tn_array *sums[3];
    tn_array *const pairs[3][2] = {{a, b}, {a, a}, {b, b}};
    for (int i = 0; i < 3; i++)
        sums[i] = summed_over(build,
                              build->expr(build, "a, b -> a * b",
                                          TN_IN(pairs[i][0], pairs[i][1]), TN_NO_ATTRS),
                              axis, 0);
    return build->expr(build,
                       "s, m, n -> s / (sqrt(max(m, least) + more) * "
                       "sqrt(max(n, least) + more))",
                       TN_IN(sums[0], sums[1], sums[2]),
                       tn_attrs("least", least, "more", more));
}

DECOMPOSE(cosine_similarity)
{
    const similarity_attrs *attrs = rule->attrs;
    tn_status status = check_alike(build, rule, two_names, 2);
    if (status)
        return status;
    outputs[0] = cosine_of(build, rule->inputs[0], rule->inputs[1], attrs->axis,
                           attrs->eps * attrs->eps, 0);
    return built(outputs[0]);
}
COMPOSITE(cosine_similarity, "cosine_similarity/1",
          "The cosine of the angle between vectors along an axis.", TN_INPUTS(two_inputs),
          .attrs = TN_ATTR_TABLE(similarity_attrs, similarity_fields));

// --- distances --------------------------------------------------------------------------

typedef struct {
    double p, eps;
    int64_t keepdim;
} distance_attrs;
static const tn_attr_field distance_fields[] = {
    TN_F64_FIELD(distance_attrs, p, 2, "power of the norm"),
    TN_F64_FIELD(distance_attrs, eps, 1e-6, "added to differences"),
    TN_BOOL_FIELD(distance_attrs, keepdim, 0, "keep the axis of vectors with extent 1"),
};
static const tn_attr_field pdist_fields[] = {
    TN_F64_FIELD(distance_attrs, p, 2, "power of the norm"),
};
static const tn_input_info distance_inputs[] = {
    {"x1", "..., D: vectors", 0, TN_FLOAT_DTYPES},
    {"x2", "..., D: vectors, which broadcast with x1", 0, TN_FLOAT_DTYPES},
};
static const tn_input_info rows_input[] = {{"x", "N, D: vectors", 0, TN_FLOAT_DTYPES}};

DECOMPOSE(pairwise_distance)
{
    const distance_attrs *attrs = rule->attrs;
    tn_array *a = rule->inputs[0], *b = rule->inputs[1];
    tn_status status = check_norm(build->host, attrs->p);
    if (status == TN_OK)
        status = check_dtype(build->host, "x2", build->type(b), dtype_of(build, a));
    if (status)
        return status;
    tn_array *d =
        build->expr(build, "a, b -> a - b + eps", TN_IN(a, b), tn_attrs("eps", attrs->eps));
    outputs[0] = nn_distances_length_of(build, d, attrs->p, -1, attrs->keepdim);
    return built(outputs[0]);
}

DECOMPOSE(pdist)
{
    const distance_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_array *ends[2], *rows[2];
    tn_status status = check_rank(build->host, "x", x, 2, "N, D");
    if (status == TN_OK)
        status = check_norm(build->host, attrs->p);
    if (status == TN_OK)
        status = build->op_n(build, "base.triu_indices/1", NULL, 0,
                             tn_attrs("n", x->extent[0], "k", (int64_t)1), ends, 2);
    for (int i = 0; i < 2 && status == TN_OK; i++)
        rows[i] = build->op(build, "base.take/1", TN_IN(rule->inputs[0], ends[i]),
                            tn_attrs("axis", (int64_t)0));
    if (status)
        return status;
    tn_array *d = build->expr(build, "a, b -> a - b", TN_IN(rows[0], rows[1]), TN_NO_ATTRS);
    outputs[0] = nn_distances_length_of(build, d, attrs->p, -1, 0);
    return built(outputs[0]);
}
COMPOSITE(pairwise_distance, "pairwise_distance/1",
          "The length of the difference of vectors along the last axis.",
          TN_INPUTS(distance_inputs),
          .attrs = TN_ATTR_TABLE(distance_attrs, distance_fields));
COMPOSITE(pdist, "pdist/1", "The distance of each pair of rows, that of row 0 and 1 first.",
          TN_INPUTS(rows_input), .attrs = TN_ATTR_TABLE(distance_attrs, pdist_fields));

// --- losses -----------------------------------------------------------------------------

typedef struct {
    double margin;
    int64_t reduction;
} margin_attrs;
static const tn_attr_field margin_fields[] = {
    TN_F64_FIELD(margin_attrs, margin, 0, "what one has to exceed the other by"),
    REDUCTION_FIELD(margin_attrs),
};
static const char *const ranking_names[] = {"x1", "x2", "target"};
static const tn_input_info ranking_inputs[] = {
    {"x1", "ranks", 0, TN_FLOAT_DTYPES},
    {"x2", "ranks, of x1's shape", 0, TN_FLOAT_DTYPES},
    {"target", "1 where x1 should be greater, -1 where x2 should, of that shape", 0,
     TN_FLOAT_DTYPES},
};
static const tn_input_info embedding_inputs[] = {
    {"x1", "N, D, or D: vectors", 0, TN_FLOAT_DTYPES},
    {"x2", "vectors, of x1's shape", 0, TN_FLOAT_DTYPES},
    {"target", "N: 1 where they should be alike, else -1", 0, TN_FLOAT_DTYPES},
};

DECOMPOSE(margin_ranking_loss)
{
    const margin_attrs *attrs = rule->attrs;
    tn_status status = check_alike(build, rule, ranking_names, 3);
    if (status)
        return status;
    tn_array *loss = build->expr(build, "a, b, y -> max(-y * (a - b) + margin, 0)",
                                 TN_IN(rule->inputs[0], rule->inputs[1], rule->inputs[2]),
                                 tn_attrs("margin", attrs->margin));
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}

DECOMPOSE(cosine_embedding_loss)
{
    const margin_attrs *attrs = rule->attrs;
    tn_array *a = rule->inputs[0], *y = rule->inputs[2];
    const tn_type *type = build->type(a);
    tn_status status = check_alike(build, rule, two_names, 2);
    if (status == TN_OK && type->rank != 1)
        status = check_rank(build->host, "x1", type, 2, "N, D");
    if (status == TN_OK)
        status = check_dtype(build->host, "target", build->type(y), type->dtype);
    if (status == TN_OK)
        status = check_extents(build->host, "target", build->type(y), type->rank - 1,
                               type->extent);
    if (status)
        return status;
    tn_array *cosine = cosine_of(build, a, rule->inputs[1], -1, 0, 1e-12);
    tn_array *loss =
        build->expr(build, "c, y -> y == 1 ? 1 - c : y == -1 ? max(c - margin, 0) : 0 * c",
                    TN_IN(cosine, y), tn_attrs("margin", attrs->margin));
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}

COMPOSITE(margin_ranking_loss, "margin_ranking_loss/1",
          "What the greater of two falls short of the other and a margin.",
          TN_INPUTS(ranking_inputs), .attrs = TN_ATTR_TABLE(margin_attrs, margin_fields));
COMPOSITE(cosine_embedding_loss, "cosine_embedding_loss/1",
          "1 - cosine_similarity of what is alike, else what it exceeds a margin by.",
          TN_INPUTS(embedding_inputs), .attrs = TN_ATTR_TABLE(margin_attrs, margin_fields));

typedef struct {
    double margin, p, eps;
    int64_t swap, reduction;
} triplet_attrs;
static const tn_attr_field triplet_fields[] = {
    TN_F64_FIELD(triplet_attrs, margin, 1, "what the far one has to be farther by"),
    TN_F64_FIELD(triplet_attrs, p, 2, "power of the norm"),
    TN_F64_FIELD(triplet_attrs, eps, 1e-6, "added to differences"),
    TN_BOOL_FIELD(triplet_attrs, swap, 0, "the far one from the nearer of the other two"),
    REDUCTION_FIELD(triplet_attrs),
};
static const char *const triplet_names[] = {"anchor", "positive", "negative"};
static const tn_input_info triplet_inputs[] = {
    {"anchor", "..., D: vectors", 0, TN_FLOAT_DTYPES},
    {"positive", "vectors that should be near, of that shape", 0, TN_FLOAT_DTYPES},
    {"negative", "vectors that should be far, of that shape", 0, TN_FLOAT_DTYPES},
};

static tn_array *distance_of(const tn_build *build, tn_array *a, tn_array *b,
                             const triplet_attrs *attrs)
{
    tn_array *d =
        build->expr(build, "a, b -> a - b + eps", TN_IN(a, b), tn_attrs("eps", attrs->eps));
    return nn_distances_length_of(build, d, attrs->p, -1, 0);
}

DECOMPOSE(triplet_margin_loss)
{
    const triplet_attrs *attrs = rule->attrs;
    tn_array *anchor = rule->inputs[0], *positive = rule->inputs[1];
    tn_array *negative = rule->inputs[2];
    tn_status status = check_alike(build, rule, triplet_names, 3);
    if (status == TN_OK)
        status = check_norm(build->host, attrs->p);
    if (status)
        return status;
    tn_array *near = distance_of(build, anchor, positive, attrs);
    tn_array *far = distance_of(build, anchor, negative, attrs);
    if (attrs->swap)
        far = build->expr(build, "f, g -> min(f, g)",
                          TN_IN(far, distance_of(build, positive, negative, attrs)),
                          TN_NO_ATTRS);
    tn_array *loss = build->expr(build, "n, f -> max(n - f + margin, 0)", TN_IN(near, far),
                                 tn_attrs("margin", attrs->margin));
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}
COMPOSITE(triplet_margin_loss, "triplet_margin_loss/1",
          "How much farther the near one is than the far one, and a margin, at least 0.",
          TN_INPUTS(triplet_inputs), .attrs = TN_ATTR_TABLE(triplet_attrs, triplet_fields));

// SPDX-License-Identifier: MIT
// Normal vectors of a mean and a covariance, by the Cholesky factor of pack linalg.
#include "pack.h"

static const tn_input_info multivariate_inputs[] = {
    KEY_INPUT,
    {"mean", "along the last axis, n", 0, 0},
    {"cov", "the covariance, positive definite: n, n", 0, 0},
};
static const tn_attr_field multivariate_fields[] = {
    TN_INTS_FIELD(tn_random_bits_attrs, shape,
                  "extents without n; not given: what those of mean and cov broadcast to"),
    FLOAT_FIELD(tn_random_bits_attrs),
    LAYOUT_FIELD(tn_random_bits_attrs),
};

static tn_status check_covariance(const tn_host *host, const tn_type *mean,
                                  const tn_type *cov)
{
    char text[SHAPE_TEXT];
    if (mean->rank == 0)
        return host->fail(host, TN_ERR_ARGUMENT, "mean has rank 0, expected at least 1");
    int64_t n = mean->extent[mean->rank - 1];
    if (cov->rank >= 2 && cov->extent[cov->rank - 1] == n &&
        cov->extent[cov->rank - 2] == n)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT,
                      "cov has shape %s, expected [..., %" PRId64 ", %" PRId64
                      "] for means of %" PRId64,
                      random_shape_text(cov->rank, cov->extent, text), n, n, n);
}

// Finds the sample of the vectors' elements: its extents are `shape`, or those to which
// mean and cov's rows broadcast.
static tn_status find_vectors(const tn_build *build, const tn_rule *rule, struct drawn *out)
{
    const tn_random_bits_attrs *attrs = rule->attrs;
    const tn_type *cov = build->type(rule->inputs[2]);
    tn_random_bits_attrs whole = *attrs;
    if (attrs->shape.given && attrs->shape.count == TN_MAX_RANK)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "shape has %u axes, expected at most %d",
                                 attrs->shape.count, TN_MAX_RANK - 1);
    if (attrs->shape.given)
        whole.shape.value[whole.shape.count++] = cov->extent[cov->rank - 1];
    tn_array *row = build->op(build, "base.take/1",
                              TN_IN(rule->inputs[2], build->scalar(build, TN_I64, 0)),
                              tn_attrs("axis", INT64_C(-2)));
    tn_array *const inputs[] = {rule->inputs[0], rule->inputs[1], row};
    const tn_rule rows = {.struct_size = sizeof(rows), .inputs = inputs, .num_inputs = 3};
    return row ? read_sample(build, &rows, &whole, 1, out) : TN_ERR_ARGUMENT;
}

// mean + factor z, with cov = factor factor^T. Half floats are computed in f32.
DECOMPOSE(multivariate_normal)
{
    const tn_host *host = build->host;
    const tn_type *mean = build->type(rule->inputs[1]);
    struct drawn s;
    tn_status status = random_check_key(host, build->type(rule->inputs[0]));
    if (!status)
        status = check_covariance(host, mean, build->type(rule->inputs[2]));
    if (!status)
        status = find_vectors(build, rule, &s);
    if (status)
        return status;
    tn_dtype dtype = s.dtype;
    s.dtype = tn_dtype_computed(dtype);
    tn_array *factor =
        build->op(build, "linalg.cholesky/1",
                  TN_IN(random_cast(build, rule->inputs[2], s.dtype)), TN_NO_ATTRS);
    tn_array *z =
        draw_numbers(build, "random.standard_normal/1", s.key, &s.shape, s.dtype, s.layout);
    tn_array *column =
        build->op(build, "base.expand_dims/1", TN_IN(z), tn_attrs("axis", TN_INTS(-1)));
    tn_array *product =
        build->op(build, "base.matmul/1", TN_IN(factor, column), TN_NO_ATTRS);
    tn_array *x =
        build->expr(build, "x, m -> x + m",
                    TN_IN(random_with_shape(build, "base.reshape/1", product, &s.shape),
                          random_cast(build, rule->inputs[1], s.dtype)),
                    TN_NO_ATTRS);
    outputs[0] = random_cast(build, x, dtype);
    return built(outputs[0]);
}

COMPOSITE(multivariate_normal, "Random vectors of the normal distribution.",
          TN_INPUTS(multivariate_inputs),
          .attrs = TN_ATTR_TABLE(tn_random_bits_attrs, multivariate_fields));

// SPDX-License-Identifier: MIT
// Sequences of powers: logspace, geomspace, vander.
#include "../pack.h"

typedef struct {
    double start, stop;
    int64_t num, endpoint;
    double base;
    int64_t dtype;
} space_attrs;

#define SPACE_FIELDS(start_text, stop_text)                                                \
    TN_REQUIRED_FIELD(space_attrs, start, TN_ATTR_F64, start_text),                        \
        TN_REQUIRED_FIELD(space_attrs, stop, TN_ATTR_F64, stop_text),                      \
        TN_I64_FIELD(space_attrs, num, 50, "elements"),                                    \
        TN_BOOL_FIELD(space_attrs, endpoint, 1, "the last element is stop"),               \
        TN_DTYPE_FIELD(space_attrs, dtype, 0, "dtype; not given: f64")
static const tn_attr_field logspace_fields[] = {
    SPACE_FIELDS("the power of the first element", "the power of the last one"),
    TN_F64_FIELD(space_attrs, base, 10, "of the powers"),
};
static const tn_attr_field geomspace_fields[] = {
    SPACE_FIELDS("the first element", "the last one"),
};

static tn_array *space_linear(const tn_build *build, const space_attrs *attrs, double start,
                              double stop)
{
    return build->op(build, "base.linspace/1", NULL, 0,
                     tn_attrs("start", start, "stop", stop, "num", attrs->num, "endpoint",
                              attrs->endpoint));
}

DECOMPOSE(logspace)
{
    const space_attrs *attrs = rule->attrs;
    tn_array *x = space_linear(build, attrs, attrs->start, attrs->stop);
    x = build->expr(build, "x -> base ** x", TN_IN(x), tn_attrs("base", attrs->base));
    outputs[0] = as_dtype(build, x, attrs->dtype ? (tn_dtype)attrs->dtype : TN_F64);
    return built(outputs[0]);
}

// The first and the last element are exact.
DECOMPOSE(geomspace)
{
    const space_attrs *attrs = rule->attrs;
    double start = attrs->start, stop = attrs->stop;
    if (!isfinite(start) || !isfinite(stop) || start == 0 || stop == 0 ||
        (start < 0) != (stop < 0))
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT,
            "start is %g and stop %g, expected finite numbers of one sign", start, stop);
    tn_array *x = space_linear(build, attrs, log10(fabs(start)), log10(fabs(stop)));
    int64_t n = build->type(x) ? build->type(x)->extent[0] : 0;
    x = build->expr(build,
                    "x, i -> i == 0 ? start : i == last ? stop "
                    ": start < 0 ? -(10.0 ** x) : 10.0 ** x",
                    TN_IN(x, counted(build, n, 0)),
                    tn_attrs("start", start, "stop", stop, "last",
                             attrs->endpoint && n > 1 ? n - 1 : -1));
    outputs[0] = as_dtype(build, x, attrs->dtype ? (tn_dtype)attrs->dtype : TN_F64);
    return built(outputs[0]);
}

COMPOSITE(logspace, "Powers of a base, their exponents at equal distances.",
          .attrs = TN_ATTR_TABLE(space_attrs, logspace_fields));
COMPOSITE(geomspace, "Numbers, each a constant multiple of the one before.",
          .attrs = TN_ATTR_TABLE(space_attrs, geomspace_fields));

// --- vander -----------------------------------------------------------------------------

typedef struct {
    int64_t n, increasing;
} vander_attrs;

static const tn_attr_field vander_fields[] = {
    TN_I64_FIELD(vander_attrs, n, -1, "columns; -1: as many as x has elements"),
    TN_BOOL_FIELD(vander_attrs, increasing, 0, "the powers grow from left to right"),
};

DECOMPOSE(vander)
{
    const vander_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    int64_t rows = x->rank == 1 ? x->extent[0] : 0, n = attrs->n == -1 ? rows : attrs->n;
    if (x->rank != 1 || n < 0)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has rank %d and n is %" PRId64
                                 ", expected rank 1 and at least 0",
                                 x->rank, attrs->n);
    // Running products of 1, x, x, ...
    tn_array *column = with_shape(build, "base.reshape/1", rule->inputs[0],
                                  ints_of(2, (int64_t[]){rows, 1}));
    tn_array *factors =
        build->expr(build, "x, i, one -> i == 0 ? one : x",
                    TN_IN(column, counted(build, n, 0), build->scalar(build, x->dtype, 1)),
                    TN_NO_ATTRS);
    tn_array *powers =
        build->op(build, "base.cumprod/1", TN_IN(factors), tn_attrs("axis", 1));
    outputs[0] = attrs->increasing ? powers
                                   : build->op(build, "base.flip/1", TN_IN(powers),
                                               tn_attrs("axis", TN_INTS(1)));
    return built(outputs[0]);
}

COMPOSITE(vander, "The powers of each element of a vector, in a row.",
          TN_INPUTS(base_number_x), .attrs = TN_ATTR_TABLE(vander_attrs, vander_fields));

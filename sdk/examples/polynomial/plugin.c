// SPDX-License-Identifier: MIT
// A polynomial of any degree: its coefficients are a list of numbers, its basis is a text.
// Derivatives and batching follow from the decomposition. And a step with a rate that
// changes from call to call.
#include <string.h>
#include <tenon/pack.h>

typedef struct polynomial_attrs {
    const tn_float_list *coefficients;
    const char *basis;
} polynomial_attrs;

static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(polynomial_attrs, coefficients, TN_ATTR_FLOAT_LIST,
                      "of the terms, that of degree 0 first; at least one"),
    TN_STRING_FIELD(polynomial_attrs, basis, "\"power\" (the default) or \"chebyshev\""),
};

static int is_chebyshev(const polynomial_attrs *attrs)
{
    return attrs->basis && strcmp(attrs->basis, "chebyshev") == 0;
}

// Each output is as x, of floats.
static tn_status infer_same(const tn_infer *infer, tn_type *types)
{
    if (!tn_is_float(infer->types[0].dtype))
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT, "x is %s, expected a float",
                                 tn_dtype_name(infer->types[0].dtype));
    for (uint32_t i = 0; i < infer->num_outputs; i++)
        types[i] = infer->types[0];
    return TN_OK;
}

static tn_status infer(const tn_infer *infer, tn_type *types)
{
    const polynomial_attrs *attrs = infer->attrs;
    if (attrs->coefficients->count == 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "got no coefficients, expected at least one");
    if (attrs->basis && strcmp(attrs->basis, "power") != 0 && !is_chebyshev(attrs))
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "basis is \"%s\", expected \"power\" or \"chebyshev\"",
                                 attrs->basis);
    return infer_same(infer, types);
}

// Clenshaw's recurrence; with powers it is Horner's.
static tn_status decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    const polynomial_attrs *attrs = rule->attrs;
    const tn_float_list *list = attrs->coefficients;
    const tn_array *x = rule->inputs[0];
    tn_array *sum = build->expr(build, "x -> 0 * x", TN_IN(x), TN_NO_ATTRS), *before = sum;
    for (uint64_t i = list->count; i-- > 0;) {
        const char *text = !is_chebyshev(attrs) ? "x, s, t -> s * x + c"
                           : i > 0              ? "x, s, t -> 2 * x * s - t + c"
                                                : "x, s, t -> x * s - t + c";
        tn_array *last = sum;
        sum =
            build->expr(build, text, TN_IN(x, sum, before), tn_attrs("c", list->value[i]));
        before = last;
    }
    outputs[0] = sum;
    return TN_OK;
}

TN_OP(polynomial, "acme.polynomial/1", (x),
      .attrs = TN_ATTR_TABLE(polynomial_attrs, fields), .infer = infer,
      .decompose = decompose,
      .doc = "A polynomial at each element of x, given by its coefficients in a basis.");

// A step from x towards a target. The rate is data: a schedule of rates plans nothing anew.
typedef struct approach_attrs {
    double rate;
} approach_attrs;

static const tn_attr_field approach_fields[] = {
    TN_RUNTIME_F64_FIELD(approach_attrs, rate, 0.1, "share of the way that is gone"),
};

TN_OP(approach, "acme.approach/1", (x, target), .attrs = TN_ATTRS_OF(approach),
      TN_MEANS("x + rate * (target - x)"));

// x, x * x, x * x * x and so on: the number of outputs is an attribute.
typedef struct powers_attrs {
    int64_t count;
} powers_attrs;

static const tn_attr_field powers_fields[] = {
    TN_I64_FIELD(powers_attrs, count, 2, "number of powers"),
};

static tn_status count_powers(const tn_infer *infer, uint64_t *out_count)
{
    int64_t count = ((const powers_attrs *)infer->attrs)->count;
    if (count < 1 || count > TN_MAX_OUTPUTS)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "got a count of %lld, expected 1 to %d", (long long)count,
                                 TN_MAX_OUTPUTS);
    *out_count = (uint64_t)count;
    return TN_OK;
}

static tn_status build_powers(const tn_build *build, const tn_rule *rule,
                              tn_array **outputs)
{
    outputs[0] = rule->inputs[0];
    for (uint32_t i = 1; i < rule->num_outputs; i++)
        outputs[i] = build->expr(build, "x, y -> x * y",
                                 TN_IN(rule->inputs[0], outputs[i - 1]), TN_NO_ATTRS);
    return TN_OK;
}

TN_OP(powers, "acme.powers/1", (x), .attrs = TN_ATTRS_OF(powers), .infer = infer_same,
      .decompose = build_powers, .count_outputs = count_powers,
      .doc = "The first powers of x.");

TN_PACK("com.acme.polynomial", "1.0.0", "Acme",
        TN_PRIMITIVES(&polynomial, &approach, &powers));

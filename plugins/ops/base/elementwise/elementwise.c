// SPDX-License-Identifier: MIT
// The primitives of the tables in elementwise.h, and where, sigmoid, astype and clip, which
// have inputs, attributes or rules of their own.
#include "../pack.h"

static const tn_input_info x_and_y[] = {
    {"x", "the left operand", 0, TN_ALL_DTYPES},
    {"y", "the right operand", 0, TN_ALL_DTYPES},
};

#define UNARY(name, text, sentence)                                                        \
    const tn_primitive base_##name = {                                                     \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "base." #name "/1",                                                          \
        .doc = sentence,                                                                   \
        TN_INPUTS(base_any_x),                                                             \
        .expr = text,                                                                      \
    };
BASE_UNARY(UNARY)
#undef UNARY

#define BINARY(name, text, sentence)                                                       \
    const tn_primitive base_##name = {                                                     \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "base." #name "/1",                                                          \
        .doc = sentence,                                                                   \
        TN_INPUTS(x_and_y),                                                                \
        .expr = text,                                                                      \
    };
BASE_BINARY(BINARY)
#undef BINARY

// --- where ------------------------------------------------------------------------------

static const tn_input_info where_inputs[] = {
    {"condition", "nonzero or true: take x", TN_INPUT_CONSTANT, TN_ALL_DTYPES},
    {"x", "values where the condition holds", 0, TN_ALL_DTYPES},
    {"y", "values elsewhere", 0, TN_ALL_DTYPES},
};

const tn_primitive base_where = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.where/1",
    .doc = "x where the condition holds, y elsewhere.",
    TN_INPUTS(where_inputs),
    .expr = "select(bool(condition), x, y)",
};

// --- sigmoid ----------------------------------------------------------------------------

// The expression has exp(x) in the place of exp(-x), which overflows where the result is
// subnormal, and because unsigned integers cannot be negated. The bound avoids infinity /
// infinity and divisors above 2^126, for which Vulkan promises no precision: from there on
// the quotient is 1. Complex numbers take the power that does not overflow; for real ones
// imag(x) == 0 folds that branch away, and sin(imag(r)) gives its 0 the dtype of exp(x).
// The rules compute s * (1 - s) from the result s, which takes less memory than the
// symbolic derivative.

static tn_status sigmoid_vjp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *cotangents, const uint64_t *wanted,
                             tn_array **gradients)
{
    (void)wanted;
    gradients[0] = build->expr(build, "g, s -> g * conj(s) * (1 - conj(s))",
                               TN_IN(cotangents[0], rule->outputs[0]), TN_NO_ATTRS);
    return built(gradients[0]);
}

static tn_status sigmoid_jvp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = build->expr(build, "t, s -> t * s * (1 - s)",
                                  TN_IN(tangents[0], rule->outputs[0]), TN_NO_ATTRS);
    return built(out_tangents[0]);
}

const tn_primitive base_sigmoid = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.sigmoid/1",
    .doc = "1 / (1 + exp(-x)): of real numbers from 0 to 1.",
    TN_INPUTS(base_number_x),
    .expr = "r = real(x); e = exp(r > 0 ? sin(imag(r)) - x : x); "
            "imag(x) == 0 ? min(exp(r), 1e30) / (1 + min(exp(r), 1e30)) "
            ": (r > 0 ? 1 : e) / (1 + e)",
    .vjp = sigmoid_vjp,
    .jvp = sigmoid_jvp,
};

// --- astype -----------------------------------------------------------------------------

static const tn_attr_field astype_fields[] = {
    TN_REQUIRED_FIELD(tn_astype_attrs, dtype, TN_ATTR_DTYPE, "dtype of the result"),
};

static tn_status astype_infer(const tn_infer *infer, tn_type *types)
{
    const tn_astype_attrs *attrs = infer->attrs;
    types[0] = infer->types[0];
    types[0].dtype = (tn_dtype)attrs->dtype;
    return TN_OK;
}

const tn_primitive base_astype = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_OWN_TYPE,
    .id = "base.astype/1",
    .doc = "x converted: floats to integers lose their fraction, anything but 0 is true.",
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(tn_astype_attrs, astype_fields),
    .expr = "x",
    .infer = astype_infer,
};

// --- clip -------------------------------------------------------------------------------

static const tn_attr_field clip_fields[] = {
    TN_F64_FIELD(tn_clip_attrs, lo, -INFINITY, "the least value of the result"),
    TN_F64_FIELD(tn_clip_attrs, hi, INFINITY, "the greatest value of the result"),
};

static tn_status clip_infer(const tn_infer *infer, tn_type *types)
{
    const tn_clip_attrs *attrs = infer->attrs;
    if (isnan(attrs->lo) || isnan(attrs->hi) || attrs->lo > attrs->hi)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "lo is %g and hi is %g, expected lo <= hi", attrs->lo,
                                 attrs->hi);
    types[0] = infer->types[0];
    return TN_OK;
}

// Applies each limit in x's own dtype, and only where the dtype has values beyond it: so no
// integer is compared with a double.
static tn_status clip_decompose(const tn_build *build, const tn_rule *rule,
                                tn_array **outputs)
{
    const tn_clip_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    tn_dtype dtype = type ? type->dtype : TN_F32;
    int is_float = tn_dtype_in(dtype, TN_FLOAT_DTYPES);
    double least, most;
    dtype_range(dtype, &least, &most);
    double lo = is_float ? attrs->lo : ceil(attrs->lo);
    double hi = is_float ? attrs->hi : floor(attrs->hi);
    tn_array *x = rule->inputs[0];
    if (lo > least)
        x = build->expr(build, "x, lo -> max(x, lo)",
                        TN_IN(x, build->scalar(build, dtype, fmin(lo, most))), TN_NO_ATTRS);
    if (hi <= most && hi < INFINITY) // equal, too: 64-bit integers may be greater
        x = build->expr(build, "x, hi -> min(x, hi)",
                        TN_IN(x, build->scalar(build, dtype, fmax(hi, least))),
                        TN_NO_ATTRS);
    outputs[0] =
        x == rule->inputs[0] ? build->expr(build, "x -> x", TN_IN(x), TN_NO_ATTRS) : x;
    return built(outputs[0]);
}

const tn_primitive base_clip = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.clip/1",
    .doc = "x, but at least lo and at most hi, in x's dtype.",
    TN_INPUTS(base_x),
    .attrs = TN_ATTR_TABLE(tn_clip_attrs, clip_fields),
    .infer = clip_infer,
    .decompose = clip_decompose,
};

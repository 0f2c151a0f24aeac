// SPDX-License-Identifier: MIT
// Elementwise primitives with attributes, several results or bits: divmod, round, isclose,
// nan_to_num, signbit, copysign, nextafter; allclose and array_equal.
#include "../pack.h"

static const tn_input_info x_and_y[] = {
    {"x", "the left operand", 0, 0},
    {"y", "the right operand", 0, 0},
};

// --- divmod -----------------------------------------------------------------------------

static const tn_output_info divmod_outputs[] = {
    {"quotient", "x // y", 0, 0},
    {"remainder", "x % y", 0, 0},
};

const tn_primitive base_divmod = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.divmod/1",
    .doc = "The quotient rounded towards minus infinity, and the remainder.",
    TN_INPUTS(x_and_y),
    TN_OUTPUTS(divmod_outputs),
    .expr = "x // y, x % y",
};

// Applies a primitive to both parts of complex numbers.
static tn_status number_of_parts(const tn_build *build, const char *primitive,
                                 tn_array *const *inputs, tn_attr_list attrs,
                                 tn_array **outputs)
{
    tn_array *part[2];
    for (int32_t i = 0; i < 2; i++)
        part[i] = build->op(build, primitive,
                            TN_IN(build->expr(build, i ? "x -> imag(x)" : "x -> real(x)",
                                              TN_IN(inputs[0]), TN_NO_ATTRS)),
                            attrs);
    outputs[0] =
        build->expr(build, "a, b -> complex(a, b)", TN_IN(part[0], part[1]), TN_NO_ATTRS);
    return built(outputs[0]);
}

// --- round ------------------------------------------------------------------------------

typedef struct {
    int64_t decimals;
} round_attrs;

static const tn_attr_field round_fields[] = {
    TN_I64_FIELD(round_attrs, decimals, 0, "digits behind the point; below 0: in front"),
};

// As NumPy: multiplies by a power of ten, and rounds the product.
DECOMPOSE(round)
{
    const round_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    double factor = pow(10, fabs((double)attrs->decimals));
    if (tn_is_complex(type->dtype))
        return number_of_parts(build, "base.round/1", rule->inputs,
                               tn_attrs("decimals", attrs->decimals), outputs);
    if (attrs->decimals == 0)
        outputs[0] = build->expr(build, "x -> round(x)", TN_IN(x), TN_NO_ATTRS);
    else if (attrs->decimals > 0 && !tn_is_float(type->dtype))
        outputs[0] = x;
    else if (!tn_is_float(type->dtype)) // integers are rounded to tens, hundreds, ...
        outputs[0] = cast(build,
                          build->expr(build, "x -> round(x / factor) * factor", TN_IN(x),
                                      tn_attrs("factor", factor)),
                          type->dtype);
    else
        outputs[0] = build->expr(build,
                                 attrs->decimals > 0 ? "x -> round(x * factor) / factor"
                                                     : "x -> round(x / factor) * factor",
                                 TN_IN(x), tn_attrs("factor", factor));
    return built(outputs[0]);
}

COMPOSITE(round, "The nearest number of so many decimals, halves to the even one.",
          TN_INPUTS(base_number_x), .attrs = TN_ATTR_TABLE(round_attrs, round_fields));

// --- isclose, allclose, array_equal -----------------------------------------------------

typedef struct {
    double rtol, atol;
    int64_t equal_nan;
} close_attrs;

static const tn_attr_field close_fields[] = {
    TN_F64_FIELD(close_attrs, rtol, 1e-5, "tolerance for each unit of abs(y)"),
    TN_F64_FIELD(close_attrs, atol, 1e-8, "tolerance beside"),
    TN_BOOL_FIELD(close_attrs, equal_nan, 0, "NaN is close to NaN"),
};
static const tn_attr_field equal_fields[] = {
    TN_BOOL_FIELD(close_attrs, equal_nan, 0, "NaN is equal to NaN"),
};
static const tn_input_info any_two[] = {
    {"x", "the left operand", TN_INPUT_CONSTANT, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"y", "the right operand", TN_INPUT_CONSTANT, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
static const tn_input_info equal_two[] = {
    {"x", "the left operand", TN_INPUT_CONSTANT, TN_ALL_DTYPES},
    {"y", "the right operand", TN_INPUT_CONSTANT, TN_ALL_DTYPES},
};

// Converts integers to f64, so that differences do not wrap.
static tn_array *number_inexact(const tn_build *build, tn_array *x)
{
    const tn_type *type = build->type(x);
    return !type || tn_is_float(type->dtype) || tn_is_complex(type->dtype)
               ? x
               : cast(build, x, TN_F64);
}

static tn_array *number_closeness(const tn_build *build, const tn_rule *rule)
{
    const close_attrs *attrs = rule->attrs;
    const char *text =
        attrs->equal_nan
            ? "x, y -> select(isfinite(x) & isfinite(y), "
              "abs(x - y) <= atol + rtol * abs(y), x == y | isnan(x) & isnan(y))"
            : "x, y -> select(isfinite(x) & isfinite(y), "
              "abs(x - y) <= atol + rtol * abs(y), x == y)";
    return build->expr(build, text,
                       TN_IN(number_inexact(build, rule->inputs[0]),
                             number_inexact(build, rule->inputs[1])),
                       tn_attrs("rtol", attrs->rtol, "atol", attrs->atol));
}

DECOMPOSE(isclose)
{
    outputs[0] = number_closeness(build, rule);
    return built(outputs[0]);
}

DECOMPOSE(allclose)
{
    outputs[0] =
        build->op(build, "base.all/1", TN_IN(number_closeness(build, rule)), TN_NO_ATTRS);
    return built(outputs[0]);
}

DECOMPOSE(array_equal)
{
    const close_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]), *y = build->type(rule->inputs[1]);
    if (x->rank != y->rank ||
        memcmp(x->extent, y->extent, sizeof(int64_t) * (size_t)x->rank) != 0) {
        outputs[0] = build->scalar(build, TN_BOOL, 0);
        return built(outputs[0]);
    }
    tn_array *equal = build->expr(
        build, attrs->equal_nan ? "x, y -> x == y | isnan(x) & isnan(y)" : "x, y -> x == y",
        TN_IN(rule->inputs[0], rule->inputs[1]), TN_NO_ATTRS);
    outputs[0] = build->op(build, "base.all/1", TN_IN(equal), TN_NO_ATTRS);
    return built(outputs[0]);
}

#define CLOSE TN_INPUTS(any_two), .attrs = TN_ATTR_TABLE(close_attrs, close_fields)
COMPOSITE(isclose, "Whether x and y differ by at most atol + rtol * abs(y).", CLOSE);
COMPOSITE(allclose, "Whether all elements of x and y are close.", CLOSE);
COMPOSITE(array_equal, "Whether x and y have equal extents and elements.",
          TN_INPUTS(equal_two), .attrs = TN_ATTR_TABLE(close_attrs, equal_fields));

// --- nan_to_num -------------------------------------------------------------------------

typedef struct {
    double nan, posinf, neginf;
} nan_to_num_attrs;

static const tn_attr_field nan_to_num_fields[] = {
    TN_F64_FIELD(nan_to_num_attrs, nan, 0, "what replaces NaN"),
    TN_F64_FIELD(nan_to_num_attrs, posinf, INFINITY, "of infinity: the greatest number"),
    TN_F64_FIELD(nan_to_num_attrs, neginf, -INFINITY,
                 "of minus infinity: the least number"),
};

// The greatest finite number of a float dtype.
static double number_most(tn_dtype dtype)
{
    return dtype == TN_F16    ? 65504
           : dtype == TN_BF16 ? 0x1.fep127
           : dtype == TN_F32  ? 0x1.fffffep127
                              : 0x1.fffffffffffffp1023;
}

DECOMPOSE(nan_to_num)
{
    const nan_to_num_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_dtype dtype = build->type(x)->dtype;
    double most = number_most(dtype);
    if (tn_is_complex(dtype))
        return number_of_parts(
            build, "base.nan_to_num/1", rule->inputs,
            tn_attrs("nan", attrs->nan, "posinf", attrs->posinf, "neginf", attrs->neginf),
            outputs);
    outputs[0] = x;
    if (tn_is_float(dtype))
        outputs[0] = build->expr(
            build, "x, n, p, m -> isnan(x) ? n : x == inf ? p : x == -inf ? m : x",
            TN_IN(x, build->scalar(build, dtype, attrs->nan),
                  build->scalar(build, dtype, fmin(attrs->posinf, most)),
                  build->scalar(build, dtype, fmax(attrs->neginf, -most))),
            TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(nan_to_num, "x with NaN and infinities replaced by numbers.",
          TN_INPUTS(base_number_x),
          .attrs = TN_ATTR_TABLE(nan_to_num_attrs, nan_to_num_fields));

// --- bits -------------------------------------------------------------------------------

// The integer dtype of as many bits as a float dtype.
static tn_dtype float_bits(tn_dtype dtype)
{
    int64_t bytes = tn_dtype_bytes(dtype);
    return bytes == 2 ? TN_I16 : bytes == 4 ? TN_I32 : TN_I64;
}

static tn_array *number_view(const tn_build *build, const tn_array *x, tn_dtype dtype)
{
    return build->op(build, "base.view/1", TN_IN(x), tn_attrs("dtype", (int64_t)dtype));
}

DECOMPOSE(signbit)
{
    tn_array *x = rule->inputs[0];
    tn_dtype dtype = build->type(x)->dtype;
    if (tn_is_float(dtype))
        x = number_view(build, x, float_bits(dtype));
    outputs[0] = build->expr(build, "x -> x < 0", TN_IN(x), TN_NO_ATTRS);
    return built(outputs[0]);
}

DECOMPOSE(copysign)
{
    tn_array *x = number_inexact(build, rule->inputs[0]),
             *y = number_inexact(build, rule->inputs[1]);
    const tn_type *of_x = build->type(x), *of_y = build->type(y);
    if (!of_x || !of_y)
        return TN_ERR_ARGUMENT;
    tn_array *bits = number_view(build, y, float_bits(of_y->dtype));
    x = as_dtype(build, x, tn_dtype_promote(of_x->dtype, of_y->dtype));
    outputs[0] =
        build->expr(build, "x, b -> b < 0 ? -abs(x) : abs(x)", TN_IN(x, bits), TN_NO_ATTRS);
    return built(outputs[0]);
}

DECOMPOSE(nextafter)
{
    tn_array *x = rule->inputs[0], *y = rule->inputs[1];
    tn_dtype dtype = tn_dtype_promote(build->type(x)->dtype, build->type(y)->dtype);
    if (!tn_is_float(dtype))
        dtype = TN_F64;
    x = as_dtype(build, x, dtype);
    y = as_dtype(build, y, dtype);
    tn_dtype bits = float_bits(dtype);
    // The bits of a magnitude are an integer that grows with it: the next number is a step
    // of 1, towards y's bits. Where signs differ these are negated. A zero takes the sign
    // of y. Subnormal numbers are not compared as floats: devices may take them for zeros.
    double width = 8 * (double)tn_dtype_bytes(dtype);
    tn_array *sign = build->scalar(build, bits, -pow(2, width - 1));
    tn_array *one = build->scalar(build, bits, 1);
    tn_array *last = build->scalar(build, bits,
                                   dtype == TN_F64    ? 0x7ffp52
                                   : dtype == TN_F32  ? 0x7f800000
                                   : dtype == TN_BF16 ? 0x7f80
                                                      : 0x7c00);
    tn_array *next = build->expr(
        build,
        "a, b, sign, one, last -> m = a & ~sign; s = (m == 0 ? b : a) & sign; "
        "n = min(max(b ^ s, m - one), m + one) ^ s; "
        "m > last ? a : (b & ~sign) > last ? b : n",
        TN_IN(number_view(build, x, bits), number_view(build, y, bits), sign, one, last),
        TN_NO_ATTRS);
    outputs[0] = number_view(build, next, dtype);
    return built(outputs[0]);
}

static const tn_input_info constants[] = {
    {"x", "the number", TN_INPUT_CONSTANT, 0},
    {"y", "in whose direction", TN_INPUT_CONSTANT, 0},
};

COMPOSITE(signbit, "Whether the sign is minus, also of -0 and NaN.", TN_INPUTS(base_x));
COMPOSITE(copysign, "abs(x) with the sign of y, as a float.", TN_INPUTS(x_and_y));
COMPOSITE(nextafter, "The next number after x towards y, as a float.",
          TN_INPUTS(constants));
